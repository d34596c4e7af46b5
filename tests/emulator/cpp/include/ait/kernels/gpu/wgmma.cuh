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

  template <class Element, int kAT, int kBT, class Sum>
  static void run(Sum (&d)[kN / 2], uint64_t a, uint64_t b, int accumulate, AIT_EMULATOR_CALLER) {
    if constexpr (is_narrow_float<Element>) {
      static_assert(std::is_same_v<Sum, float>);
      emulator::wgmma({d, kN, nullptr, a, b, kAT != 0, kBT != 0, accumulate != 0, kNarrow<Element>, kNarrow<Element>}, {file, line});
    } else {
      static_assert(kAT == 0 && kBT == 0, "K is the contiguous dim of both operands of 8-bit numbers");
      static_assert(std::is_same_v<Sum, typename Element::Sum>);
      constexpr auto kA = kNarrow<typename Element::First>, kB = kNarrow<typename Element::Second>;
      emulator::wgmma({d, kN, nullptr, a, b, false, false, accumulate != 0, kA, kB}, {file, line});
    }
  }
};

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_WGMMA_CUH_
