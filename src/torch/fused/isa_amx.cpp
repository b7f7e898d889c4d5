#define TESSERA_ISA amx
#include "isa.h"

namespace tessera::fused {

Kernels amx_bf16() { return amx::kernels<amx::Exact<uint16_t>>(); }

}  // namespace tessera::fused
