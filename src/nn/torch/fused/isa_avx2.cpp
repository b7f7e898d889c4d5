#define TESSERA_ISA avx2
#include "isa.h"

namespace tessera::fused {

Kernels avx2_f32() { return avx2::kernels<float>(); }

}  // namespace tessera::fused
