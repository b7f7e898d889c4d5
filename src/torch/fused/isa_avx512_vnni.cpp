#define TESSERA_ISA avx512_vnni
#include "isa.h"

namespace tessera::fused {

Kernels avx512_vnni_f32() { return avx512_vnni::kernels<avx512_vnni::Exact<float>>(); }
Kernels avx512_vnni_int8() { return avx512_vnni::kernels<avx512_vnni::Quantised<float>>(); }

}  // namespace tessera::fused
