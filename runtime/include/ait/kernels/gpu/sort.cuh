/// @file sort.cuh
/// @brief Rows in ascending or descending order, with equal elements in their original order.
///
/// Short rows are sorted several to a block, in shared memory (bitonic: Batcher, 1968): as pairs of a key and a place (`order.h`), which are all
/// different, so that no step has to be stable. Rows of up to kRadixTile elements have a block each, longer ones several (`radix.cuh`).
#ifndef AIT_KERNELS_GPU_SORT_CUH_
#define AIT_KERNELS_GPU_SORT_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/radix.cuh"
#include "ait/kernels/gpu/row_group.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/kernels/order.h"

namespace ait::gpu {

inline constexpr int kSortThreads = 256, kSortTile = 2048, kSortWidth = 128;  ///< the widest of the short rows

/// @brief The results for a row: the first `count` of its elements in order.
template <bool kDescending, int kOuter, class In, class Values, class Indices>
struct SortedRows {
  using K = sort_key_t<typename In::Value>;
  static constexpr K kLast = ~K(0) >> (8 * sizeof(K) - kSortBits<typename In::Value>);  ///< the last key, of NaN in ascending order
  RowSpace<kOuter, 1> space;
  int64_t count;
  In in;
  Values values;
  Indices indices;

  __device__ __forceinline__ K key(int64_t row, int64_t i) const {
    int64_t coordinate[kOuter];
    coordinates<kOuter>(row, space.outer, coordinate);
    const In from = detail::at_row(in, coordinate);
    return sort_key<kDescending>(from.data[i * from.strides[kOuter]]);
  }
  __device__ __forceinline__ uint32_t place(int64_t, int64_t i) const { return static_cast<uint32_t>(i); }
  __device__ __forceinline__ void store(int64_t row, int64_t rank, K, int64_t place) const {
    if (rank >= count) return;
    int64_t coordinate[kOuter];
    coordinates<kOuter>(row, space.outer, coordinate);
    const In from = detail::at_row(in, coordinate);
    const Values to = detail::at_row(values, coordinate);
    const Indices places = detail::at_row(indices, coordinate);
    to.data[rank * to.strides[kOuter]] = from.data[place * from.strides[kOuter]];
    places.data[rank * places.strides[kOuter]] = static_cast<typename Indices::Value>(place);
  }
};

/// A block sorts `kSortTile / width` rows of up to `width` elements, a power of two.
/// @param columns whether neighbouring elements in memory belong to neighbouring rows
template <class Pair, class Sorted>
__global__ void __launch_bounds__(kSortThreads) sort_tile_kernel(Sorted sorted, int width, bool columns) {
  __shared__ Pair shared[kSortTile];
  wait_for_previous();
  allow_next();
  const int rows = kSortTile / width, thread = threadIdx.x;
  const int64_t length = sorted.space.length, first_row = static_cast<int64_t>(blockIdx.x) * rows;
#pragma unroll 1
  for (int i = thread; i < kSortTile; i += kSortThreads) {
    const int row = columns ? i % rows : i / width, place = columns ? i / rows : i % width;
    Pair pair = Pair::last();
    if (first_row + row < sorted.space.rows && place < length) pair = Pair::of(sorted.key(first_row + row, place), place);
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
    const int64_t row = first_row + i / width, place = i % width;
    if (row < sorted.space.rows && place < length) sorted.store(row, place, 0, shared[i].place());
  }
}

/// A block sorts a row of up to kRadixTile elements, `each` a thread.
template <class Sorted>
__global__ void __launch_bounds__(kRadixThreads) sort_row_kernel(Sorted sorted, int each, int passes) {
  using K = typename Sorted::K;
  __shared__ RadixCounters counters;
  __shared__ K exchanged[kRadixTile];
  wait_for_previous();
  allow_next();
  const int64_t row = blockIdx.x;
  const int length = static_cast<int>(sorted.space.length);
  K keys[kRadixEach];
  uint16_t places[kRadixEach];
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    const int at = detail::radix_element(i, each);
    keys[i] = i < each && at < length ? sorted.key(row, at) : ~K(0);
    places[i] = static_cast<uint16_t>(at);
  }
  radix_sort_block(counters, exchanged, each, passes, keys, places);
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    const int at = detail::radix_element(i, each);
    if (i < each && at < length) sorted.store(row, at, 0, places[i]);
  }
}

/// @brief The rows along the last of `sizes`.
template <class Sorted, size_t kRank, class In, class Values, class Indices>
Sorted sorted_rows(const int64_t (&sizes)[kRank], const In& in, int64_t count, const Values& values, const Indices& indices) {
  constexpr int kOuter = static_cast<int>(kRank) - 1;
  Sorted sorted{{}, count, in, values, indices};
  sorted.space.rows = 1;
  for (int d = 0; d < kOuter; ++d) sorted.space.rows *= sorted.space.outer[d] = sizes[d];
  sorted.space.length = sorted.space.row[0] = sizes[kOuter];
  return sorted;
}

/// @brief The first `count` elements along the last of `sizes` in the order of `sort_key`, and their places.
/// @param each as of `radix_sort`
/// @param workspace of `ait_mlir/lowering/kernels/radix.py: radix_bytes`
template <bool kDescending, size_t kRank, class In, class Values, class Indices>
int32_t sort(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, int64_t count, const Values& values, const Indices& indices,
             int each, void* workspace) {
  constexpr int kOuter = static_cast<int>(kRank) - 1, kBits = kSortBits<typename In::Value>;
  using Sorted = SortedRows<kDescending, kOuter, In, Values, Indices>;
  using Pair = sort_pair_t<typename In::Value, false>;
  const Sorted sorted = sorted_rows<Sorted>(sizes, in, count, values, indices);
  const int64_t length = sorted.space.length, rows = sorted.space.rows;
  if (rows <= 0 || length <= 0) return 0;
  if (length > kRadixTile) return radix_sort<typename Sorted::K>(ctx, rows, length, each, kBits, sorted, sorted, workspace);
  LaunchConfig config;
  config.dependent = true;
  if (length > kSortWidth) {
    config.block = dim3(kRadixThreads);
    config.grid = dim3(grid_size(rows));
    return launch(ctx, config, sort_row_kernel<Sorted>, sorted, static_cast<int>((length + kRadixThreads - 1) / kRadixThreads), radix_passes(kBits));
  }
  int width = 2;
  while (width < length) width *= 2;
  const bool columns = in.strides[kOuter] != 1 && in.strides[kOuter - 1] == 1;
  config.block = dim3(kSortThreads);
  config.grid = dim3(grid_size((rows + kSortTile / width - 1) / (kSortTile / width)));
  return launch(ctx, config, sort_tile_kernel<Pair, Sorted>, sorted, width, columns);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SORT_CUH_
