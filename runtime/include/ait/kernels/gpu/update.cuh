/// @file update.cuh
/// @brief Rows written over a tensor at places that another tensor says.
#ifndef AIT_KERNELS_GPU_UPDATE_CUH_
#define AIT_KERNELS_GPU_UPDATE_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/kernels/update_space.h"

namespace ait::gpu {

/// A thread moves a word at a time; `space.width` and the strides are counted in words.
template <class Word, int kRank, class P>
__global__ void __launch_bounds__(128) update_kernel(UpdateSpace<kRank> space, int64_t words, const Word* rows, const P* positions, Word* out) {
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += stride) {
    const int64_t run = i / space.width;
    int64_t coordinate[kRank];
    coordinates<kRank>(run, space.sizes, coordinate);
    int64_t from = i - run * space.width, to = from, row = 0;
#pragma unroll
    for (int d = 0; d < kRank; ++d) {
      from += coordinate[d] * space.row_strides[d];
      to += coordinate[d] * space.out_strides[d];
      row = d == space.axis ? coordinate[d] : row;
    }
    const int64_t place = space.place(positions, row);
    if (place >= 0 && place < space.extent) out[to + place * space.place_stride] = rows[from];
  }
}

namespace detail {
template <class Word, class T, int kRank, class P>
int32_t launch_update(const Context& ctx, UpdateSpace<kRank> space, const T* rows, const P* positions, T* out) {
  constexpr int64_t kFactor = sizeof(Word) / sizeof(T);
  space.width /= kFactor;
  space.place_stride /= kFactor;
  int64_t words = space.width;
  for (int d = 0; d < kRank; ++d) {
    space.row_strides[d] /= kFactor;
    space.out_strides[d] /= kFactor;
    words *= space.sizes[d];
  }
  LaunchConfig config;
  config.block = dim3(128);
  config.grid = dim3(ceil_div(words, config.block.x, 1 << 20));
  config.dependent = true;
  return launch(ctx, config, update_kernel<Word, kRank, P>, space, words, reinterpret_cast<const Word*>(rows), positions,
                reinterpret_cast<Word*>(out));
}
}  // namespace detail

/// @brief Writes rows over `out`: `space.sizes[space.axis]` of them along one dim, to the places that `positions` says.
///
/// Each innermost run has `space.width` elements, contiguous on both sides. A row whose place is outside of the dim is left out.
template <int kRank, class T, class P>
int32_t update_slice(const Context& ctx, const UpdateSpace<kRank>& space, const T* rows, const P* positions, T* out) {
  constexpr int64_t kSize = sizeof(T);
  uintptr_t bits = reinterpret_cast<uintptr_t>(rows) | reinterpret_cast<uintptr_t>(out) | static_cast<uintptr_t>(space.width * kSize) |
                   static_cast<uintptr_t>(space.place_stride * kSize);
  int64_t count = space.width;
  for (int d = 0; d < kRank; ++d) {
    count *= space.sizes[d];
    bits |= static_cast<uintptr_t>(space.row_strides[d] * kSize) | static_cast<uintptr_t>(space.out_strides[d] * kSize);
  }
  if (count <= 0) return 0;
  if (bits % 16 == 0) return detail::launch_update<uint4>(ctx, space, rows, positions, out);
  return detail::launch_update<word_t<kSize>>(ctx, space, rows, positions, out);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_UPDATE_CUH_
