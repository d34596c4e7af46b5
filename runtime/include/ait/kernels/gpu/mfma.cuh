/// @file mfma.cuh
/// @brief The matrix instructions of AMD's CDNA cards (gfx90a, gfx942): a wave multiplies kSize x kDepth by kDepth x kSize tiles of half or
/// bfloat16 from registers, and accumulates in float; on gfx90a also of signed bytes, with sums of int32_t. gfx90a takes subnormal operands and
/// results for zero.
#ifndef AIT_KERNELS_GPU_MFMA_CUH_
#define AIT_KERNELS_GPU_MFMA_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"
#include "ait/kernels/gpu/mfma_layout.h"
#include "ait/types.h"

#if defined(AIT_HIP)
namespace ait::gpu {

/// @brief Four elements along k, as a lane holds them.
struct alignas(8) Quad {
  uint16_t v[4];
};

/// @tparam kSize_ 32 or 16: rows and columns of the result
template <class T, int kSize_>
struct Mfma : MfmaLayout<kSize_> {
  static_assert(is_narrow_float<T>, "half and bfloat16");
  using MfmaLayout<kSize_>::kSize;
  using Four = Quad;
  typedef float Accumulators __attribute__((vector_size(MfmaLayout<kSize_>::kElements * sizeof(float))));

  /// c += a @ b
  static __device__ __forceinline__ void run(Accumulators& c, const Quad& a, const Quad& b) {
#if defined(__HIP_DEVICE_COMPILE__)
    typedef _Float16 Halves __attribute__((vector_size(8)));
    typedef short Shorts __attribute__((vector_size(8)));
    if constexpr (std::is_same_v<T, half>) {
      if constexpr (kSize == 32) {
        c = __builtin_amdgcn_mfma_f32_32x32x8f16(bit_cast<Halves>(a), bit_cast<Halves>(b), c, 0, 0, 0);
      } else {
        c = __builtin_amdgcn_mfma_f32_16x16x16f16(bit_cast<Halves>(a), bit_cast<Halves>(b), c, 0, 0, 0);
      }
    } else {
      if constexpr (kSize == 32) {
        c = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(bit_cast<Shorts>(a), bit_cast<Shorts>(b), c, 0, 0, 0);
      } else {
        c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(bit_cast<Shorts>(a), bit_cast<Shorts>(b), c, 0, 0, 0);
      }
    }
#endif
  }
};

/// @brief Four signed bytes along k, as a lane holds them.
struct alignas(4) ByteQuad {
  uint8_t v[4];
};

/// @brief As `Mfma`, for signed bytes.
template <int kSize_>
struct MfmaBytes : MfmaLayout<kSize_> {
  using MfmaLayout<kSize_>::kSize;
  using Four = ByteQuad;
  typedef int Accumulators __attribute__((vector_size(MfmaLayout<kSize_>::kElements * sizeof(int))));

  /// c += a @ b
  static __device__ __forceinline__ void run(Accumulators& c, const ByteQuad& a, const ByteQuad& b) {
#if defined(__gfx90a__)
    if constexpr (kSize == 32) {
      c = __builtin_amdgcn_mfma_i32_32x32x8i8(bit_cast<int>(a), bit_cast<int>(b), c, 0, 0, 0);
    } else {
      c = __builtin_amdgcn_mfma_i32_16x16x16i8(bit_cast<int>(a), bit_cast<int>(b), c, 0, 0, 0);
    }
#elif defined(__HIP_DEVICE_COMPILE__)
    static_assert(kSize < 0, "only gfx90a has these instructions");
#endif
  }
};

}  // namespace ait::gpu
#endif  // AIT_HIP
#endif  // AIT_KERNELS_GPU_MFMA_CUH_
