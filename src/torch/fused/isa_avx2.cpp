#define TESSERA_ISA avx2
#include "isa.h"

namespace tessera::fused {

Kernels avx2_f32() { return avx2::kernels<avx2::Exact<float>>(); }
Kernels avx2_int8() { return avx2::kernels<avx2::Quantised<float>>(); }

}  // namespace tessera::fused
