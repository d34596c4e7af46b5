/// @file wgmma.cuh
/// @brief The instructions of runtime/include/ait/kernels/gpu/wgmma.cuh, emulated.
#ifndef AIT_KERNELS_GPU_WGMMA_CUH_
#define AIT_KERNELS_GPU_WGMMA_CUH_

#include "ait/gpu/gpu.h"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/wgmma_operand.cuh"
#include "emulator/warpgroup.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

inline void wgmma_fence(AIT_EMULATOR_CALLER) { emulator::wgmma_fence({file, line}); }
inline void wgmma_commit(AIT_EMULATOR_CALLER) { emulator::wgmma_commit({file, line}); }
template <int kPending>
void wgmma_wait(AIT_EMULATOR_CALLER) {
  emulator::wgmma_wait(kPending, {file, line});
}
template <int kCount>
void grow_registers(AIT_EMULATOR_CALLER) {
  emulator::set_registers(kCount, {file, line});
}
template <int kCount>
void shrink_registers(AIT_EMULATOR_CALLER) {
  emulator::set_registers(kCount, {file, line});
}

template <int kN>
struct Wgmma {
  static_assert(kN % 32 == 0 && 32 <= kN && kN <= 256);

  template <class Element, int kAT, int kBT>
  static void run(float (&d)[kN / 2], uint64_t a, uint64_t b, int accumulate, AIT_EMULATOR_CALLER) {
    static_assert(is_narrow_float<Element>, "operands are half or bfloat16");
    emulator::wgmma({d, kN, nullptr, a, b, kAT != 0, kBT != 0, accumulate != 0, kNarrow<Element>}, {file, line});
  }
};

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_WGMMA_CUH_
