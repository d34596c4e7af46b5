/// @file mma_parts.cuh
/// @brief Exact products of floats on the tensor cores of CUDA devices: each float is the sum of two parts of TF32.
///
/// The tensor cores cut off what their sums do not hold. So a long sum is to be added outside of them, where each addition rounds.
#ifndef AIT_KERNELS_GPU_MMA_PARTS_CUH_
#define AIT_KERNELS_GPU_MMA_PARTS_CUH_

#include "ait/kernels/gpu/mma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief A float as `high + low`, within 2^-23 of it. An infinity has no such parts: its `low` is no number.
struct Tf32Parts {
  uint32_t high, low;
};

__device__ __forceinline__ Tf32Parts tf32_parts(uint32_t value) {
  const uint32_t high = round_to_tf32(value);
  return {high, round_to_tf32(bit_cast<uint32_t>(bit_cast<float>(value) - bit_cast<float>(high)))};
}

/// @brief As `mma_16x8x8`, of floats in parts: `large` gets the products of the high parts, `small` those of a high and a low part. The product
/// of two low parts, at most 2^-22 of a product, is left out.
__device__ __forceinline__ void mma_16x8x8_parts(float (&large)[4], float (&small)[4], const uint32_t (&a_high)[4], const uint32_t (&a_low)[4],
                                                 Tf32Parts b0, Tf32Parts b1) {
  mma_16x8x8(small, a_low, b0.high, b1.high);
  mma_16x8x8(small, a_high, b0.low, b1.low);
  mma_16x8x8(large, a_high, b0.high, b1.high);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_MMA_PARTS_CUH_
