/// @file sort.cuh
/// @brief Rows in ascending or descending order, with equal elements in their original order: a merge sort.
///
/// Elements become pairs of a key and a place (`order.h`), which are all different, so that no step has to be stable. The first launch sorts tiles
/// of `kSortTile` elements of a row, or several short rows, in shared memory (bitonic: Batcher, 1968). Each further launch merges pairs of runs; the
/// block of `kSortTile` results finds its part of both runs by bisection (Green, McColl and Bader, 2012). The last launch writes the results.
#ifndef AIT_KERNELS_GPU_SORT_CUH_
#define AIT_KERNELS_GPU_SORT_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/row_group.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/kernels/order.h"

namespace ait::gpu {

inline constexpr int kSortThreads = 256, kSortEach = 8, kSortTile = kSortThreads * kSortEach;

/// @brief The results for a row: the first `count` of its sorted pairs.
template <int kOuter, class In, class Values, class Indices>
struct SortedRows {
  RowSpace<kOuter, 1> space;
  int64_t count;
  In in;
  Values values;
  Indices indices;

  template <class Pair>
  __device__ __forceinline__ void write(int64_t row, int64_t rank, const Pair& pair) const {
    if (rank >= count) return;
    int64_t coordinate[kOuter];
    coordinates<kOuter>(row, space.outer, coordinate);
    const In from = detail::at_row(in, coordinate);
    const Values to = detail::at_row(values, coordinate);
    const Indices places = detail::at_row(indices, coordinate);
    to.data[rank * to.strides[kOuter]] = from.data[pair.place() * from.strides[kOuter]];
    places.data[rank * places.strides[kOuter]] = static_cast<typename Indices::Value>(pair.place());
  }
};

/// A block sorts `kSortTile / width` rows of up to `width` elements, a power of two, or one of the `tiles` of a row; then it writes pairs.
/// @param columns whether neighbouring elements in memory belong to neighbouring rows
template <bool kDescending, class Pair, int kOuter, class In, class Values, class Indices>
__global__ void __launch_bounds__(kSortThreads)
    sort_tile_kernel(SortedRows<kOuter, In, Values, Indices> sorted, int width, bool columns, int64_t tiles, Pair* pairs) {
  __shared__ Pair shared[kSortTile];
  wait_for_previous();
  allow_next();
  const int rows = kSortTile / width, thread = threadIdx.x;
  const int64_t length = sorted.space.length;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) / tiles * rows, first = static_cast<int64_t>(blockIdx.x) % tiles * kSortTile;
#pragma unroll 1
  for (int i = thread; i < kSortTile; i += kSortThreads) {
    const int row = columns ? i % rows : i / width, place = columns ? i / rows : i % width;
    Pair pair = Pair::last();
    if (first_row + row < sorted.space.rows && first + place < length) {
      int64_t coordinate[kOuter];
      coordinates<kOuter>(first_row + row, sorted.space.outer, coordinate);
      const In from = detail::at_row(sorted.in, coordinate);
      pair = Pair::of(sort_key<kDescending>(from.data[(first + place) * from.strides[kOuter]]), first + place);
    }
    shared[row * width + place] = pair;
  }
  __syncthreads();
  // Two sorted runs of size / 2 become one of `size`: first the lower half gets the lesser of both ends, then of both halves of each half.
  for (int size = 2; size <= width; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      for (int i = thread; i < kSortTile / 2; i += kSortThreads) {
        const int low = i / step * 2 * step + i % step, high = step == size / 2 ? low ^ (size - 1) : low + step;
        const Pair a = shared[low], b = shared[high];
        if (b < a) shared[low] = b, shared[high] = a;
      }
      __syncthreads();
    }
  }
  for (int i = thread; i < kSortTile; i += kSortThreads) {
    const int64_t row = first_row + i / width, place = first + i % width;
    if (row >= sorted.space.rows || place >= length) continue;
    if (tiles > 1) {
      pairs[row * length + place] = shared[i];
    } else {
      sorted.write(row, place, shared[i]);
    }
  }
}

namespace detail {
/// @brief How many of the first `taken` pairs of two sorted runs together come from `a`.
template <class Pair>
__device__ __forceinline__ int64_t merge_cut(const Pair* a, int64_t in_a, const Pair* b, int64_t in_b, int64_t taken) {
  int64_t low = taken > in_b ? taken - in_b : 0, high = taken < in_a ? taken : in_a;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (b[taken - 1 - middle] < a[middle]) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}
}  // namespace detail

/// A block writes `kSortTile` pairs of a row. It merges runs of `run` pairs in `from`, a multiple of kSortTile, to runs of twice the length.
template <bool kLast, class Pair, int kOuter, class In, class Values, class Indices>
__global__ void __launch_bounds__(kSortThreads)
    sort_merge_kernel(SortedRows<kOuter, In, Values, Indices> sorted, int64_t run, int64_t tiles, const Pair* from, Pair* to) {
  __shared__ Pair shared[kSortTile];
  __shared__ int64_t cuts[2];
  wait_for_previous();
  allow_next();
  const int thread = threadIdx.x;
  const int64_t length = sorted.space.length, row = static_cast<int64_t>(blockIdx.x) / tiles;
  const int64_t first = static_cast<int64_t>(blockIdx.x) % tiles * kSortTile, begin = first / (2 * run) * (2 * run);
  const int64_t left = length - begin, in_a = left < run ? left : run, in_b = left - in_a < run ? left - in_a : run;
  const Pair* const a = from + row * length + begin;
  const Pair* const b = a + in_a;
  const int64_t skipped = first - begin;
  const int here = static_cast<int>(in_a + in_b - skipped < kSortTile ? in_a + in_b - skipped : kSortTile);
  if (thread < 2) cuts[thread] = detail::merge_cut(a, in_a, b, in_b, skipped + (thread == 0 ? 0 : here));
  __syncthreads();
  const int64_t from_a = cuts[0], from_b = skipped - from_a;
  const int of_a = static_cast<int>(cuts[1] - from_a);
  for (int i = thread; i < here; i += kSortThreads) shared[i] = i < of_a ? a[from_a + i] : b[from_b + i - of_a];
  __syncthreads();
  Pair mine[kSortEach];
  const int taken = thread * kSortEach < here ? thread * kSortEach : here;
  int i = static_cast<int>(detail::merge_cut(shared, of_a, shared + of_a, here - of_a, taken)), j = of_a + taken - i;
#pragma unroll
  for (int k = 0; k < kSortEach; ++k) {
    const bool from_first = i < of_a && (j >= here || shared[i] < shared[j]);
    const int next = from_first ? i++ : j++;
    mine[k].set(shared[next < here ? next : 0]);
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kSortEach; ++k) {
    if (taken + k < here) shared[taken + k].set(mine[k]);
  }
  __syncthreads();
  for (int p = thread; p < here; p += kSortThreads) {
    if constexpr (kLast) {
      sorted.write(row, first + p, shared[p]);
    } else {
      to[row * length + first + p] = shared[p];
    }
  }
}

/// @brief The first `count` elements along the last of `sizes` in the order of `sort_key`, and their places.
/// @tparam kFar whether rows may have 2^32 - 1 elements or more
/// @param workspace two pairs for each element if rows may have more than kSortTile elements
template <bool kDescending, bool kFar, size_t kRank, class In, class Values, class Indices>
int32_t sort(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, int64_t count, const Values& values, const Indices& indices,
             void* workspace) {
  constexpr int kOuter = static_cast<int>(kRank) - 1;
  using Pair = sort_pair_t<typename In::Value, kFar>;
  SortedRows<kOuter, In, Values, Indices> sorted{{}, count, in, values, indices};
  sorted.space.rows = 1;
  for (int d = 0; d < kOuter; ++d) sorted.space.rows *= sorted.space.outer[d] = sizes[d];
  const int64_t length = sorted.space.length = sorted.space.row[0] = sizes[kOuter], rows = sorted.space.rows;
  if (rows <= 0 || length <= 0) return 0;
  int width = 2;
  while (width < kSortTile && width < length) width *= 2;
  const int64_t tiles = (length + kSortTile - 1) / kSortTile;
  const bool columns = in.strides[kOuter] != 1 && in.strides[kOuter - 1] == 1;
  Pair* from = static_cast<Pair*>(workspace);
  Pair* to = from + rows * length;
  LaunchConfig config;
  config.block = dim3(kSortThreads);
  config.dependent = true;
  const int64_t blocks = tiles > 1 ? rows * tiles : (rows + kSortTile / width - 1) / (kSortTile / width);
  if (blocks > INT32_MAX) return ctx.fail("sort: a tensor has more elements than a launch can sort");
  config.grid = dim3(grid_size(blocks));
  if (const int32_t status = launch(ctx, config, sort_tile_kernel<kDescending, Pair, kOuter, In, Values, Indices>, sorted, width, columns, tiles, from)) {
    return status;
  }
  for (int64_t run = kSortTile; run < length; run *= 2) {
    const auto kernel = 2 * run < length ? sort_merge_kernel<false, Pair, kOuter, In, Values, Indices>
                                         : sort_merge_kernel<true, Pair, kOuter, In, Values, Indices>;
    if (const int32_t status = launch(ctx, config, kernel, sorted, run, tiles, static_cast<const Pair*>(from), to)) return status;
    Pair* const other = from;
    from = to;
    to = other;
  }
  return 0;
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SORT_CUH_
