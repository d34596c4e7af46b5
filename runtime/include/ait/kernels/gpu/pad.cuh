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

/// @brief Each thread computes a row of the result, `kRow` elements that are written at once: channels that are filled with zeros, for instance.
template <PadMode kMode, int kRank, bool kWide, int kRow, class Word>
__global__ void __launch_bounds__(256) pad_rows_kernel(Space<kRank, kWide> space, int64_t total, PadDims<kRank> shape, const Word* in, Word* out, Word value) {
  struct alignas(kRow * sizeof(Word)) Row {
    Word v[kRow];
  };
  wait_for_previous();
  allow_next();
  const PadDim inner = shape.dims[kRank - 1];
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += stride) {
    int64_t at[kRank], from, to;
    space.split(static_cast<typename Space<kRank, kWide>::Index>(i), at);
    const bool inside = shape.template place<kMode, kRank - 1>(at, from, to);
    Row row;
#pragma unroll
    for (int j = 0; j < kRow; ++j) {
      const int64_t source = inner.template source<kMode>(j);
      row.v[j] = inside && source >= 0 ? in[from + source * inner.in_stride] : value;
    }
    *reinterpret_cast<Row*>(out + to) = row;
  }
}

namespace detail {
/// Whether a row of the result is one access of `bytes` bytes.
template <size_t kRank>
bool writes_rows(const PadDims<kRank>& shape, int64_t element, const void* out, int64_t bytes) {
  const PadDim& inner = shape.dims[kRank - 1];
  bool aligned = inner.out * element == bytes && inner.out_stride == 1 && reinterpret_cast<uintptr_t>(out) % bytes == 0;
  for (size_t d = 0; d + 1 < kRank; ++d) aligned = aligned && shape.dims[d].out_stride * element % bytes == 0;
  return aligned;
}

template <PadMode kMode, int kRow, class Word, size_t kRank>
int32_t launch_pad_rows(const Context& ctx, const PadDims<kRank>& shape, const void* in, void* out, const void* value) {
  int64_t sizes[kRank], total = 1;
  for (size_t d = 0; d < kRank; ++d) total *= sizes[d] = d + 1 < kRank ? shape.dims[d].out : 1;
  Word fill;
  memcpy(&fill, value, sizeof fill);
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(total, 256, 1 << 20));
  config.dependent = true;
  constexpr int kDims = static_cast<int>(kRank);
  const Word* const from = static_cast<const Word*>(in);
  Word* const to = static_cast<Word*>(out);
  if (total < int64_t(1) << 31) {
    return launch(ctx, config, pad_rows_kernel<kMode, kDims, false, kRow, Word>, Space<kDims, false>(sizes), total, shape, from, to, fill);
  }
  return launch(ctx, config, pad_rows_kernel<kMode, kDims, true, kRow, Word>, Space<kDims, true>(sizes), total, shape, from, to, fill);
}

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
  using Word = word_t<sizeof(T)>;
  if constexpr (kElement < 8) {
    if (detail::writes_rows(shape, kElement, out, 16)) return detail::launch_pad_rows<kMode, 16 / kElement, Word>(ctx, shape, in, out, &value);
    if (detail::writes_rows(shape, kElement, out, 8)) return detail::launch_pad_rows<kMode, 8 / kElement, Word>(ctx, shape, in, out, &value);
  }
  return detail::launch_pad<kMode, Word>(ctx, shape, 1, in, out, &value, sizeof value);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_PAD_CUH_
