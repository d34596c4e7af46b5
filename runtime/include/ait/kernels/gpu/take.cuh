/// @file take.cuh
/// @brief Elements of a tensor by index along some of its dims.
#ifndef AIT_KERNELS_GPU_TAKE_CUH_
#define AIT_KERNELS_GPU_TAKE_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/gather.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/indexed_space.h"
#include "ait/kernels/operand.h"

namespace ait::gpu {

/// A thread copies `kUnroll` words, a block apart, and all of them are on their way at once. `places` are the sizes of the space and, last, the
/// width; strides and steps of the space are counted in words.
template <class T, class Word, int kRank, int kIndices, class Id, bool kWide>
__global__ void __launch_bounds__(128) take_kernel(IndexedSpace<kRank, kIndices, Id> space, Space<kRank + 1, kWide> places, int64_t words,
                                                   const Word* whole, Word* out) {
  constexpr int kUnroll = 4;
  wait_for_previous();
  allow_next();
  const int64_t span = static_cast<int64_t>(blockDim.x) * kUnroll, stride = gridDim.x * span;
  for (int64_t first = blockIdx.x * span + threadIdx.x; first < words; first += stride) {
    int64_t to[kUnroll], from[kUnroll];
    bool known[kUnroll];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      const int64_t i = first + k * static_cast<int64_t>(blockDim.x);
      int64_t split[kRank + 1], coordinate[kRank];
      places.split(static_cast<typename Space<kRank + 1, kWide>::Index>(i < words ? i : first), split);
#pragma unroll
      for (int d = 0; d < kRank; ++d) coordinate[d] = split[d];
      known[k] = space.offsets(coordinate, to[k], from[k]);
      to[k] += split[kRank];
      from[k] += split[kRank];
    }
    Word found[kUnroll];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) found[k] = known[k] ? whole[from[k]] : missing_word<T, Word>();
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      if (first + k * static_cast<int64_t>(blockDim.x) < words) out[to[k]] = found[k];
    }
  }
}

namespace detail {
template <class Word, int kRank, int kIndices, class Id, class T>
int32_t launch_take(const Context& ctx, IndexedSpace<kRank, kIndices, Id> space, int64_t width, const T* whole, T* out) {
  constexpr int64_t kFactor = sizeof(Word) / sizeof(T);
  width /= kFactor;
  for (int d = 0; d < kRank; ++d) {
    space.dense_strides[d] /= kFactor;
    space.whole_strides[d] /= kFactor;
  }
  for (int k = 0; k < kIndices; ++k) space.steps[k] /= kFactor;
  const int64_t words = space.count() * width;
  int64_t sizes[kRank + 1];
  for (int d = 0; d < kRank; ++d) sizes[d] = space.sizes[d];
  sizes[kRank] = width;
  LaunchConfig config;
  config.block = dim3(128);
  config.grid = dim3(ceil_div(words, 4 * config.block.x, 1 << 20));
  config.dependent = true;
  const Word* from = reinterpret_cast<const Word*>(whole);
  Word* to = reinterpret_cast<Word*>(out);
  if (words < int64_t(1) << 31) {
    return launch(ctx, config, take_kernel<T, Word, kRank, kIndices, Id, false>, space, Space<kRank + 1, false>(sizes), words, from, to);
  }
  return launch(ctx, config, take_kernel<T, Word, kRank, kIndices, Id, true>, space, Space<kRank + 1, true>(sizes), words, from, to);
}
}  // namespace detail

/// @brief out = the elements of `whole` at the places of the space, in runs of `width` contiguous elements.
///
/// Indices may have any strides. A place with an index outside of its dim is NaN, or 0 for integers; nothing outside is read.
template <int kRank, int kIndices, class Id, class T>
int32_t take(const Context& ctx, const IndexedSpace<kRank, kIndices, Id>& space, int64_t width, const T* whole, T* out) {
  constexpr int64_t kSize = sizeof(T);
  if (space.count() <= 0 || width <= 0) return 0;
  uintptr_t bits = reinterpret_cast<uintptr_t>(whole) | reinterpret_cast<uintptr_t>(out) | static_cast<uintptr_t>(width * kSize);
  for (int d = 0; d < kRank; ++d) bits |= static_cast<uintptr_t>((space.dense_strides[d] | space.whole_strides[d]) * kSize);
  for (int k = 0; k < kIndices; ++k) bits |= static_cast<uintptr_t>(space.steps[k] * kSize);
  if (bits % 16 == 0) return detail::launch_take<uint4>(ctx, space, width, whole, out);
  return detail::launch_take<word_t<kSize>>(ctx, space, width, whole, out);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_TAKE_CUH_
