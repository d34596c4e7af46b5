/// @file mfma.cuh
/// @brief The matrix instructions of runtime/include/ait/kernels/gpu/mfma.cuh, emulated.
#ifndef AIT_KERNELS_GPU_MFMA_CUH_
#define AIT_KERNELS_GPU_MFMA_CUH_

#include "ait/gpu/gpu.h"
#include "ait/kernels/gpu/mfma_layout.h"
#include "ait/types.h"
#include "emulator/matrix.h"

#if defined(AIT_HIP)
namespace ait::gpu {

struct alignas(8) Quad {
  uint16_t v[4];
};

template <class T, int kSize_>
struct Mfma : MfmaLayout<kSize_> {
  static_assert(is_narrow_float<T>, "half and bfloat16");
  using Four = Quad;
  struct Accumulators {
    float v[MfmaLayout<kSize_>::kElements];
    float& operator[](int i) { return v[i]; }
  };

  static void run(Accumulators& c, const Quad& a, const Quad& b) {
    constexpr auto kType = std::is_same_v<T, half> ? emulator::Narrow::half : emulator::Narrow::bfloat16;
    emulator::multiply_mfma(kSize_, c.v, a.v, b.v, kType, AIT_EMULATOR_SITE);
  }
};

struct alignas(4) ByteQuad {
  uint8_t v[4];
};

template <int kSize_>
struct MfmaBytes : MfmaLayout<kSize_> {
  using Four = ByteQuad;
  struct Accumulators {
    int32_t v[MfmaLayout<kSize_>::kElements];
    int32_t& operator[](int i) { return v[i]; }
  };

  static void run(Accumulators& c, const ByteQuad& a, const ByteQuad& b) {
    emulator::multiply_mfma_bytes(kSize_, c.v, a.v, b.v, AIT_EMULATOR_SITE);
  }
};

}  // namespace ait::gpu
#endif  // AIT_HIP
#endif  // AIT_KERNELS_GPU_MFMA_CUH_
