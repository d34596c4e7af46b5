/// @file gather.cuh
/// @brief Rows of a table, chosen by ids.
#ifndef AIT_KERNELS_GPU_GATHER_CUH_
#define AIT_KERNELS_GPU_GATHER_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"

namespace ait::gpu {

/// @brief The table and the strides of ids and result, rows counted in words.
template <int kRank>
struct GatherSpace {
  int64_t sizes[kRank], id_strides[kRank], out_strides[kRank];
  int64_t count, rows, words, table_stride;
};

/// The bits of NaN in each element of a word for float types, of 0 for others.
template <class T, class Word>
__device__ __forceinline__ Word missing_word() {
  constexpr int kCount = sizeof(Word) / sizeof(T);
  T values[kCount];
  for (int i = 0; i < kCount; ++i) {
    if constexpr (std::is_integral_v<T>) {
      values[i] = T(0);
    } else {
      values[i] = convert<T>(compute_t<T>(NAN));
    }
  }
  Word word;
  memcpy(&word, &values, sizeof(Word));
  return word;
}

/// A row of threads (threadIdx.y) takes an id at a time, and has `kUnroll` words of each thread on their way at once.
template <class T, class Word, int kRank, class Id>
__global__ void __launch_bounds__(128) gather_kernel(GatherSpace<kRank> space, const Word* table, const Id* ids, Word* out) {
  constexpr int kUnroll = 4;
  wait_for_previous();
  allow_next();
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; i < space.count;
       i += static_cast<int64_t>(gridDim.x) * blockDim.y) {
    int64_t coordinate[kRank];
    coordinates<kRank>(i, space.sizes, coordinate);
    int64_t from = 0, to = 0;
#pragma unroll
    for (int d = 0; d < kRank; ++d) {
      from += coordinate[d] * space.id_strides[d];
      to += coordinate[d] * space.out_strides[d];
    }
    const int64_t id = static_cast<int64_t>(ids[from]);
    const bool known = id >= 0 && id < space.rows;
    const Word* row = table + (known ? id : 0) * space.table_stride;
    for (int64_t first = threadIdx.x; first < space.words; first += kUnroll * blockDim.x) {
      Word words[kUnroll];
#pragma unroll
      for (int k = 0; k < kUnroll; ++k) {
        const int64_t w = first + k * blockDim.x;
        if (w < space.words) words[k] = known ? row[w] : missing_word<T, Word>();
      }
#pragma unroll
      for (int k = 0; k < kUnroll; ++k) {
        const int64_t w = first + k * blockDim.x;
        if (w < space.words) out[to + w] = words[k];
      }
    }
  }
}

namespace detail {
template <class T, class Word, int kRank, class Id>
int32_t launch_gather(const Context& ctx, GatherSpace<kRank> space, const T* table, const Id* ids, T* out) {
  constexpr int64_t kFactor = sizeof(Word) / sizeof(T);
  space.words /= kFactor;
  space.table_stride /= kFactor;
  for (int d = 0; d < kRank; ++d) space.out_strides[d] /= kFactor;
  LaunchConfig config;
  uint32_t lanes = 8;
  while (lanes < 32 && lanes < space.words) lanes *= 2;
  config.block = dim3(lanes, 128 / lanes);
  config.grid = dim3(ceil_div(space.count, config.block.y, 1 << 20));
  config.dependent = true;
  return launch(ctx, config, gather_kernel<T, Word, kRank, Id>, space, reinterpret_cast<const Word*>(table), ids,
                reinterpret_cast<Word*>(out));
}
}  // namespace detail

/// @brief out[..., :] = table[ids[...], :] over ids of shape `sizes`.
///
/// Rows have `width` elements, contiguous on both sides; `table_stride` separates the rows of the table. `ids` and `out` have a stride for
/// each dim of `sizes`. The row of an id outside of the table is NaN, or 0 for integers; nothing outside of the table is read.
template <size_t kRank, class T, class Id>
int32_t gather(const Context& ctx, const int64_t (&sizes)[kRank], const T* table, int64_t rows, int64_t width, int64_t table_stride,
               const Id* ids, const int64_t (&id_strides)[kRank], T* out, const int64_t (&out_strides)[kRank]) {
  constexpr int kDims = static_cast<int>(kRank);
  constexpr int64_t kSize = sizeof(T);
  GatherSpace<kDims> space;
  space.count = 1;
  uintptr_t bits = reinterpret_cast<uintptr_t>(table) | reinterpret_cast<uintptr_t>(out) | static_cast<uintptr_t>(width * kSize) |
                   static_cast<uintptr_t>(table_stride * kSize);
  for (int d = 0; d < kDims; ++d) {
    space.count *= space.sizes[d] = sizes[d];
    space.id_strides[d] = id_strides[d];
    space.out_strides[d] = out_strides[d];
    bits |= static_cast<uintptr_t>(out_strides[d] * kSize);
  }
  space.rows = rows;
  space.words = width;
  space.table_stride = table_stride;
  if (space.count <= 0 || width <= 0) return 0;
  if (bits % 16 == 0) return detail::launch_gather<T, uint4>(ctx, space, table, ids, out);
  return detail::launch_gather<T, word_t<sizeof(T)>>(ctx, space, table, ids, out);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_GATHER_CUH_
