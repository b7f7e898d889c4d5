// Sums gradients over the processes of a run during backward, like the reducer of PyTorch's
// DistributedDataParallel (Li et al. 2020).
#include "../../torch/shim.h"
#include "begin.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

using c10::intrusive_ptr;
using tessera::guarded;

namespace {

// The sums of one step. On CUDA, autograd calls its methods from a thread of its own.
class Sums {
 public:
  Sums(intrusive_ptr<c10d::Backend> group, std::vector<at::Tensor> gradients)
      : group_(std::move(group)),
        gradients_(std::move(gradients)),
        order_(gradients_.size()),
        ready_(gradients_.size(), false) {
    // The gradients of the last layers are ready first.
    std::iota(order_.rbegin(), order_.rend(), size_t{0});
  }

  // From now on, a gradient is complete once autograd has added to it.
  void arm() {
    const std::lock_guard lock(mutex_);
    armed_ = true;
    seen_.clear();
  }

  void complete(size_t bucket) {
    const std::lock_guard lock(mutex_);
    if (!armed_ || ready_[bucket]) {
      return;
    }
    ready_[bucket] = true;
    // An exception here would appear to come from autograd, so finish() reports it instead.
    try {
      seen_.push_back(bucket);
      launch();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  // Starts the pending buckets, which received no gradient, and then waits for all sums.
  void finish() {
    const std::lock_guard lock(mutex_);
    ready_.assign(ready_.size(), true);
    const auto reset = [this] {
      ready_.assign(ready_.size(), false);
      works_.clear();
      next_ = 0;
      armed_ = false;
      failure_ = nullptr;
    };
    try {
      if (failure_) {
        std::rethrow_exception(failure_);
      }
      launch();
      for (const auto& work : works_) {
        work->wait();
      }
    } catch (...) {
      reset();
      throw;
    }
    reset();
  }

  // Returns the order in which gradients were completed in the last step; buckets without a
  // gradient come last.
  void seen(int64_t* order) {
    const std::lock_guard lock(mutex_);
    std::vector<size_t> all = seen_;
    for (size_t bucket = 0; bucket < order_.size(); ++bucket) {
      if (std::find(seen_.begin(), seen_.end(), bucket) == seen_.end()) {
        all.push_back(bucket);
      }
    }
    std::copy(all.begin(), all.end(), order);
  }

  void reorder(const int64_t* order) {
    const std::lock_guard lock(mutex_);
    order_.assign(order, order + order_.size());
  }

 private:
  // Every process must start its sums in the same order, so a bucket that is ready early waits for
  // those before it.
  void launch() {
    for (; next_ < order_.size() && ready_[order_[next_]]; ++next_) {
      works_.push_back(tessera::begin(gradients_[order_[next_]],
                                      [&](auto& tensors) { return group_->allreduce(tensors); }));
    }
  }

  std::mutex mutex_;
  intrusive_ptr<c10d::Backend> group_;
  std::vector<at::Tensor> gradients_;
  std::vector<size_t> order_;
  std::vector<bool> ready_;
  std::vector<size_t> seen_;
  std::vector<intrusive_ptr<c10d::Work>> works_;
  std::exception_ptr failure_;
  size_t next_ = 0;
  bool armed_ = false;
};

class Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(std::shared_ptr<Sums> sums, size_t bucket)
      : sums_(std::move(sums)), bucket_(bucket) {}

  void operator()(const at::Tensor&) override { sums_->complete(bucket_); }

 private:
  std::shared_ptr<Sums> sums_;
  size_t bucket_;
};

}  // namespace

extern "C" {

// Makes autograd add the gradient of `leaf` to `gradient` from now on.
char* tessera_leaf_gradient(const at::Tensor* leaf, const at::Tensor* gradient) {
  return guarded([&] { leaf->mutable_grad() = *gradient; });
}

// Sums the gradients of the leaves, each of which is a bucket.
char* tessera_sums_create(const intrusive_ptr<c10d::Backend>* group,
                          at::Tensor* const* leaves, size_t count,
                          std::shared_ptr<Sums>** out) {
  return guarded([&] {
    std::vector<at::Tensor> gradients;
    for (size_t bucket = 0; bucket < count; ++bucket) {
      gradients.push_back(leaves[bucket]->grad());
    }
    auto sums = std::make_shared<Sums>(*group, std::move(gradients));
    for (size_t bucket = 0; bucket < count; ++bucket) {
      torch::autograd::impl::set_post_acc_grad_hooks(
          *leaves[bucket], std::make_unique<Hook>(sums, bucket));
    }
    *out = new std::shared_ptr<Sums>(std::move(sums));
  });
}

void tessera_sums_free(std::shared_ptr<Sums>* sums) { delete sums; }

void tessera_sums_arm(const std::shared_ptr<Sums>* sums) { (*sums)->arm(); }

char* tessera_sums_finish(const std::shared_ptr<Sums>* sums) {
  return guarded([&] { (*sums)->finish(); });
}

char* tessera_sums_seen(const std::shared_ptr<Sums>* sums, int64_t* order) {
  return guarded([&] { (*sums)->seen(order); });
}

char* tessera_sums_reorder(const std::shared_ptr<Sums>* sums, const int64_t* order) {
  return guarded([&] { (*sums)->reorder(order); });
}
}
