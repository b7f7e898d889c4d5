// Runs the encoder kernel on the CPU, board by board, so that tests can check its arithmetic without
// a GPU. This is far slower than the CPU's own kernels.
#include "../shim.h"
#include "sizes.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <c10/util/Half.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace tessera::gpu {
namespace {

thread_local Sizes sizes;

#include "warp.cuh"
// The file above must come first.
#include "encoder.cuh"

}  // namespace

extern "C" {

// Returns the bytes of shared memory that a block needs.
int tessera_gpu_shared_memory(const Sizes* of) {
  sizes = *of;
  return shared_bytes();
}

// Encodes boards to tokens f16 [boards · 64, width]. If `reversed`, warps and lanes run in the
// opposite order.
char* tessera_gpu_emulate(const Sizes* of, bool reversed, const at::Tensor* words,
                          const at::Tensor* matrices, const at::Tensor* vectors,
                          const at::Tensor* tokens) {
  return guarded([&] {
    RECORD_FUNCTION("tessera::encode", {});
    sizes = *of;
    is_reversed = reversed;
    // Words, because the shared memory starts with words.
    std::vector<Word> memory(shared_bytes() / sizeof(Word) + 1);
    const auto* board = static_cast<const Word*>(words->const_data_ptr());
    auto* out = static_cast<Pair*>(tokens->mutable_data_ptr());
    for (int64_t index = 0; index < words->size(0); ++index) {
      encode_board(reinterpret_cast<unsigned char*>(memory.data()), board,
                   {static_cast<const Half*>(matrices->const_data_ptr()),
                    vectors->const_data_ptr<float>()},
                   out);
      board += of->words;
      out += kSquares * of->width / 2;
    }
  });
}

}  // extern "C"
}  // namespace tessera::gpu
