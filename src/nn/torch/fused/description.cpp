#include "description.h"

#include <ATen/core/Tensor.h>
#include <c10/util/hash.h>
#include <torch/csrc/jit/ir/constants.h>

#include <optional>
#include <sstream>
#include <unordered_map>

using torch::jit::Node;
using torch::jit::Value;

namespace tessera::fused {
namespace {

// Values that a description may enter, how deep it may go, and bytes of its constant
// tensors: files are untrusted. What known_inputs.h holds is a few times smaller.
constexpr size_t kMostValues = 1000;
constexpr size_t kDeepest = 200;
constexpr size_t kMostBytes = 4 << 20;

class Description {
 public:
  // The name of a value, whose operators are in the text by then; nothing where there are
  // too many.
  std::optional<std::string> name(const Value* value, size_t depth = 0) {
    if (const auto known = names_.find(value); known != names_.end()) {
      return known->second;
    }
    const Node* node = value->node();
    if (node->kind() == c10::prim::Param) {
      return "input" + std::to_string(value->offset());
    }
    if (++entered_ > kMostValues || depth > kDeepest) {
      return std::nullopt;
    }
    if (const auto constant = torch::jit::toIValue(value)) {
      return text_of(*constant);
    }
    if (node->outputs().size() != 1 || !node->blocks().empty()) {
      return std::nullopt;
    }
    std::ostringstream line;
    line << node->kind().toUnqualString() << '(';
    for (size_t place = 0; place < node->inputs().size(); ++place) {
      const Value* input = node->input(place);
      const bool only_type = node->kind() == c10::aten::type_as && place == 1;
      const auto constant = torch::jit::toIValue(input);
      const auto argument = only_type && constant && constant->isTensor()
                                ? type_of(constant->toTensor())
                                : name(input, depth + 1);
      if (!argument) {
        return std::nullopt;
      }
      line << (place > 0 ? ", " : "") << *argument;
    }
    const std::string own = std::to_string(names_.size());
    text_ += own + " = " + line.str() + ")\n";
    return names_.emplace(value, own).first->second;
  }

  const std::string& text() const { return text_; }

 private:
  // Networks are known in whichever type they were frozen.
  static std::string type_of(const at::Tensor& tensor) {
    return tensor.is_floating_point() ? "Floating" : c10::toString(tensor.scalar_type());
  }

  std::optional<std::string> text_of(const c10::IValue& constant) {
    std::ostringstream text;
    if (!constant.isTensor()) {
      // A number has a point where it is not whole, and so differs from a value's name.
      text << (constant.isInt() ? "i" : "") << constant;
      return text.str();
    }
    bytes_ += constant.toTensor().nbytes();
    if (bytes_ > kMostBytes) {
      return std::nullopt;
    }
    const at::Tensor tensor = constant.toTensor().cpu().contiguous();
    const std::string bytes(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
    text << tensor.scalar_type() << tensor.sizes() << ' ' << c10::sha1(bytes).str();
    return text.str();
  }

  size_t entered_ = 0, bytes_ = 0;
  std::unordered_map<const Value*, std::string> names_;
  std::string text_;
};

}  // namespace

std::string describe(const Value* value) {
  Description description;
  return description.name(value) ? description.text() : "";
}

}  // namespace tessera::fused
