#define TESSERA_ISA avx512
#include "isa.h"

namespace tessera::fused {

Kernels avx512_f32() { return avx512::kernels<avx512::Exact<float>>(); }
Kernels avx512_bf16() { return avx512::kernels<avx512::Exact<uint16_t>>(); }
Kernels avx512_bf16_int8() { return avx512::kernels<avx512::Quantised<uint16_t>>(); }

}  // namespace tessera::fused
