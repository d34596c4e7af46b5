/// @file wgmma_registers.cuh
/// @brief The instructions of runtime/include/ait/kernels/gpu/wgmma_registers.cuh, emulated.
#ifndef AIT_KERNELS_GPU_WGMMA_REGISTERS_CUH_
#define AIT_KERNELS_GPU_WGMMA_REGISTERS_CUH_

#include "ait/kernels/gpu/wgmma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

template <int kCount>
void hold_registers(float (&)[kCount]) {}

template <int kN>
struct WgmmaFromRegisters {
  static_assert(kN == 64 || kN == 128 || kN == 192 || kN == 256);

  template <class Element>
  static void run(float (&d)[kN / 2], const uint32_t (&a)[4], uint64_t b, AIT_EMULATOR_CALLER) {
    static_assert(is_narrow_float<Element>, "operands are half or bfloat16");
    emulator::wgmma({d, kN, a, 0, b, false, true, true, kNarrow<Element>, kNarrow<Element>}, {file, line});
  }
  static void run_e4m3(float (&d)[kN / 2], const uint32_t (&a)[4], uint64_t b, int accumulate, AIT_EMULATOR_CALLER) {
    emulator::wgmma({d, kN, a, 0, b, false, false, accumulate != 0, emulator::Narrow::e4m3, emulator::Narrow::e4m3}, {file, line});
  }
};

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_WGMMA_REGISTERS_CUH_
