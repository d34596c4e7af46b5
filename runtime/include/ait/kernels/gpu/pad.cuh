/// @file pad.cuh
/// @brief Padding and cropping, in accesses of up to 16 bytes where rows and pads allow them.
#ifndef AIT_KERNELS_GPU_PAD_CUH_
#define AIT_KERNELS_GPU_PAD_CUH_

#include <stdint.h>
#include <string.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/pad_shape.h"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief Each thread computes one word of the result.
template <PadMode kMode, int kRank, bool kWide, class Word>
__global__ void __launch_bounds__(256) pad_kernel(Space<kRank, kWide> space, int64_t total, PadDims<kRank> shape, const Word* in, Word* out, Word value) {
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += stride) {
    int64_t at[kRank], from, to;
    space.split(static_cast<typename Space<kRank, kWide>::Index>(i), at);
    const bool inside = shape.template place<kMode, kRank>(at, from, to);
    out[to] = inside ? in[from] : value;
  }
}

namespace detail {
/// The widest access, in bytes, that divides rows, pads and strides.
template <PadMode kMode, size_t kRank>
int64_t pad_access(const PadDims<kRank>& shape, int64_t element, const void* in, const void* out) {
  uintptr_t bits = reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(out) | 16;
  for (size_t d = 0; d < kRank; ++d) {
    const PadDim& dim = shape.dims[d];
    if (d + 1 < kRank) {
      bits |= static_cast<uintptr_t>((dim.in_stride | dim.out_stride) * element);
      continue;
    }
    const bool moved = dim.before != 0 || dim.in != dim.out;
    if (dim.in_stride != 1 || dim.out_stride != 1) return element;
    if (moved && (kMode == PadMode::reflect || kMode == PadMode::replicate)) return element;
    bits |= static_cast<uintptr_t>((dim.in | dim.out | dim.before) * element);
  }
  return static_cast<int64_t>(bits & (~bits + 1));  // the lowest bit
}

template <PadMode kMode, class Word, size_t kRank>
int32_t launch_pad(const Context& ctx, PadDims<kRank> shape, int64_t factor, const void* in, void* out, const void* value, size_t value_bytes) {
  int64_t sizes[kRank], total = 1;
  for (size_t d = 0; d < kRank; ++d) {
    PadDim& dim = shape.dims[d];
    if (factor > 1) {
      const bool inner = d + 1 == kRank;
      dim = inner ? PadDim{dim.in / factor, dim.out / factor, dim.before / factor, 1, 1}
                  : PadDim{dim.in, dim.out, dim.before, dim.in_stride / factor, dim.out_stride / factor};
    }
    total *= sizes[d] = dim.out;
  }
  Word fill;
  for (size_t i = 0; i < sizeof(Word); i += value_bytes) memcpy(reinterpret_cast<char*>(&fill) + i, value, value_bytes);
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(total, 256, 1 << 20));
  config.dependent = true;
  constexpr int kDims = static_cast<int>(kRank);
  const Word* const from = static_cast<const Word*>(in);
  if (total < int64_t(1) << 31) {
    return launch(ctx, config, pad_kernel<kMode, kDims, false, Word>, Space<kDims, false>(sizes), total, shape, from, static_cast<Word*>(out), fill);
  }
  return launch(ctx, config, pad_kernel<kMode, kDims, true, Word>, Space<kDims, true>(sizes), total, shape, from, static_cast<Word*>(out), fill);
}
}  // namespace detail

/// @brief out[i] = in[i - before] in each dim, the value that `kMode` defines outside of the input. Any strides.
template <PadMode kMode, size_t kRank, class T>
int32_t pad(const Context& ctx, const PadDims<kRank>& shape, const T* in, T* out, T value) {
  constexpr int64_t kElement = sizeof(T);
  const int64_t bytes = detail::pad_access<kMode>(shape, kElement, in, out);
  if (bytes >= 16) return detail::launch_pad<kMode, uint4>(ctx, shape, 16 / kElement, in, out, &value, sizeof value);
  if (bytes >= 8 && kElement < 8) return detail::launch_pad<kMode, uint2>(ctx, shape, 8 / kElement, in, out, &value, sizeof value);
  if (bytes >= 4 && kElement < 4) return detail::launch_pad<kMode, uint32_t>(ctx, shape, 4 / kElement, in, out, &value, sizeof value);
  return detail::launch_pad<kMode, word_t<sizeof(T)>>(ctx, shape, 1, in, out, &value, sizeof value);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_PAD_CUH_
