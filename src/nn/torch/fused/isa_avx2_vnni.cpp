#define TESSERA_ISA avx2_vnni
#include "isa.h"

namespace tessera::fused {

Kernels avx2_vnni_int8() { return avx2_vnni::kernels<avx2_vnni::Quantised<float>>(); }

}  // namespace tessera::fused
