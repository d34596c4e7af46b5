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

/// A thread copies one word at a time; `width`, strides and steps of the space are counted in words.
template <class T, class Word, int kRank, int kIndices, class Id>
__global__ void __launch_bounds__(128) take_kernel(IndexedSpace<kRank, kIndices, Id> space, int64_t width, int64_t words, const Word* whole,
                                                   Word* out) {
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += stride) {
    const int64_t run = i / width, within = i - run * width;
    int64_t coordinate[kRank], to, from;
    coordinates<kRank>(run, space.sizes, coordinate);
    const bool known = space.offsets(coordinate, to, from);
    out[to + within] = known ? whole[from + within] : missing_word<T, Word>();
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
  LaunchConfig config;
  config.block = dim3(128);
  config.grid = dim3(ceil_div(words, config.block.x, 1 << 20));
  config.dependent = true;
  return launch(ctx, config, take_kernel<T, Word, kRank, kIndices, Id>, space, width, words, reinterpret_cast<const Word*>(whole),
                reinterpret_cast<Word*>(out));
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
