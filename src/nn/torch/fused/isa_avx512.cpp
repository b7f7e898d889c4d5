#define TESSERA_ISA avx512
#include "isa.h"

namespace tessera::fused {

Kernels avx512_f32() { return avx512::kernels<float>(); }
Kernels avx512_bf16() { return avx512::kernels<uint16_t>(); }

}  // namespace tessera::fused
