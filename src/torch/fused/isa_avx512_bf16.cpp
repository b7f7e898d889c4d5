#define TESSERA_ISA avx512_bf16
#include "isa.h"

namespace tessera::fused {

Kernels avx512_bf16() { return avx512_bf16::kernels<avx512_bf16::Exact<uint16_t>>(); }
Kernels avx512_bf16_int8() { return avx512_bf16::kernels<avx512_bf16::Quantised<uint16_t>>(); }

}  // namespace tessera::fused
