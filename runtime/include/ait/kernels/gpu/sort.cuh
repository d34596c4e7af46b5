/// @file sort.cuh
/// @brief Rows in ascending or descending order, with equal elements in their original order.
///
/// Warps sort short rows (`sort_short.cuh`). Rows of up to kRadixTile elements have a block each, or share one that reads and writes across them; longer
/// ones have several (`radix.cuh`).
#ifndef AIT_KERNELS_GPU_SORT_CUH_
#define AIT_KERNELS_GPU_SORT_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/radix.cuh"
#include "ait/kernels/gpu/row_group.cuh"
#include "ait/kernels/gpu/row_tile.cuh"
#include "ait/kernels/gpu/sort_short.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/kernels/order.h"

namespace ait::gpu {

/// @brief The results for a row: the first `count` of its elements in order.
template <bool kDescending, int kOuter, class In, class Values, class Indices>
struct SortedRows {
  using Value = typename In::Value;
  using K = sort_key_t<Value>;
  static constexpr K kLast = ~K(0) >> (8 * sizeof(K) - kSortBits<Value>);  ///< the last key, of NaN in ascending order
  RowSpace<kOuter, 1> space;
  int64_t count;
  In in;
  Values values;
  Indices indices;

  /// Where a row begins, in elements.
  __device__ __forceinline__ int64_t start(int64_t row) const {
    int64_t coordinate[kOuter];
    coordinates<kOuter>(row, space.outer, coordinate);
    return detail::at_row(in, coordinate).data - in.data;
  }
  __device__ __forceinline__ Value element(int64_t start, int64_t i) const { return in.data[start + i * in.strides[kOuter]]; }
  static __device__ __forceinline__ K key_of(Value element) { return sort_key<kDescending>(element); }
  __device__ __forceinline__ K key(int64_t row, int64_t i) const { return key_of(element(start(row), i)); }
  /// Where the results of a row begin.
  __device__ __forceinline__ void result_starts(int64_t row, int64_t& value, int64_t& index) const {
    int64_t coordinate[kOuter];
    coordinates<kOuter>(row, space.outer, coordinate);
    value = detail::at_row(values, coordinate).data - values.data;
    index = detail::at_row(indices, coordinate).data - indices.data;
  }
  __device__ __forceinline__ void store_at(int64_t value_start, int64_t index_start, int64_t rank, Value element, int64_t place) const {
    values.data[value_start + rank * values.strides[kOuter]] = element;
    indices.data[index_start + rank * indices.strides[kOuter]] = static_cast<typename Indices::Value>(place);
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

/// A block sorts some rows of up to kRadixTile elements one after the other, and reads and writes them in the order of memory.
/// @param reads,writes whether neighbours in the memory of the input, of the results, belong to neighbouring rows
template <class Sorted>
__global__ void __launch_bounds__(kRadixThreads) sort_columns_kernel(Sorted sorted, int most, int each, int passes, bool reads, bool writes) {
  using K = typename Sorted::K;
  using T = typename Sorted::Value;
  using Tile = TileOfRows<T>;
  static_assert(kRadixThreads == kRowTileThreads, "the threads that sort read the rows");
  __shared__ RadixCounters counters;
  AIT_DYNAMIC_SHARED(16, sort_shared);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * most;
  const int length = static_cast<int>(sorted.space.length), pitch = bank_pitch<uint16_t>(length);
  const Tile tile(sort_shared, most, sorted.space.rows - first, length, reads);
  char* const exchanged = sort_shared + Tile::bytes(most, length);
  int64_t* const starts = reinterpret_cast<int64_t*>(exchanged + each * kRadixThreads * sizeof(K));
  uint16_t* const order = reinterpret_cast<uint16_t*>(starts + 2 * most);
  wait_for_previous();
  allow_next();
  if (threadIdx.x < tile.rows) sorted.result_starts(first + threadIdx.x, starts[2 * threadIdx.x], starts[2 * threadIdx.x + 1]);
  tile.read(sorted, first);
#pragma unroll 1
  for (int row = 0; row < tile.rows; ++row) {
    K keys[kRadixEach];
    uint16_t places[kRadixEach];
#pragma unroll
    for (int i = 0; i < kRadixEach; ++i) {
      const int at = detail::radix_element(i, each);
      keys[i] = i < each && at < length ? sorted.key_of(tile.at(row, at)) : ~K(0);
      places[i] = static_cast<uint16_t>(at);
    }
    radix_sort_block(counters, exchanged, each, passes, keys, places);
#pragma unroll
    for (int i = 0; i < kRadixEach; ++i) {
      const int at = detail::radix_element(i, each);
      if (i < each && at < length) order[row * pitch + at] = places[i];
    }
  }
  __syncthreads();
  const int count = sorted.count < length ? static_cast<int>(sorted.count) : length, outer = writes ? count : tile.rows;
  for (typename Tile::Walk walk(tile, writes, count); walk.other < outer; walk.next()) {
    const int row = walk.row(), place = order[row * pitch + walk.place()];
    sorted.store_at(starts[2 * row], starts[2 * row + 1], walk.place(), tile.at(row, place), place);
  }
}

namespace detail {
/// @brief The bytes of shared memory of `sort_columns_kernel`.
template <class K, class T>
int64_t sort_columns_bytes(int most, int length, int each) {
  return TileOfRows<T>::bytes(most, length) + each * int64_t(kRadixThreads) * int64_t(sizeof(K)) + most * (16 + 2 * int64_t(bank_pitch<uint16_t>(length)));
}
}  // namespace detail

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

/// @brief Whether neighbouring elements in memory belong to neighbouring rows.
template <class In>
bool memory_has_columns(const In& in) {
  return In::kRank > 1 && in.strides[In::kRank - 1] != 1 && in.strides[In::kRank - 2] == 1;
}

/// @brief The first `count` elements along the last of `sizes` in the order of `sort_key`, and their places.
/// @tparam kLeast,kMost the shortest and the longest row, at most kRadixTile + 1: lengths that do not occur need no kernel
/// @param each as of `radix_sort`
/// @param workspace of `ait_mlir/lowering/kernels/radix.py: radix_bytes`
template <bool kDescending, int kLeast, int kMost, size_t kRank, class In, class Values, class Indices>
int32_t sort(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, int64_t count, const Values& values, const Indices& indices,
             int each, void* workspace) {
  using T = typename In::Value;
  using Sorted = SortedRows<kDescending, static_cast<int>(kRank) - 1, In, Values, Indices>;
  constexpr int kBits = kSortBits<T>, kShort = kSortShort<T>;
  const Sorted sorted = sorted_rows<Sorted>(sizes, in, count, values, indices);
  const int64_t length = sorted.space.length, rows = sorted.space.rows;
  if (rows <= 0 || length <= 0) return 0;
  const bool reads = memory_has_columns(in), writes = kIsUnread<Indices> ? memory_has_columns(values) : memory_has_columns(indices);
  if constexpr (kLeast <= kShort) {
    if (kMost <= kShort || length <= kShort) return sort_short<kLeast, (kMost < kShort ? kMost : kShort)>(ctx, sorted, reads, writes);
  }
  if constexpr (kMost > kRadixTile) {
    if (length > kRadixTile) return radix_sort<typename Sorted::K>(ctx, rows, length, each, kBits, sorted, sorted, workspace);
  }
  if constexpr (kMost > kShort && kLeast <= kRadixTile) {
    const int held = static_cast<int>((length + kRadixThreads - 1) / kRadixThreads), passes = radix_passes(kBits);
    LaunchConfig config;
    config.dependent = true;
    config.block = dim3(kRadixThreads);
    if (reads || writes) {
      constexpr int64_t kStatic = 12 * 1024;  // counters
      const int64_t limit = shared_limit() / 2 - kStatic;
      const auto bytes = [&](int most) { return detail::sort_columns_bytes<typename Sorted::K, T>(most, static_cast<int>(length), held); };
      int most = rows_of_tile<T>(1, true);
      while (most > 2 && bytes(most) > limit) most /= 2;
      if (bytes(most) <= limit) {
        config.grid = dim3(grid_size((rows + most - 1) / most));
        config.shared_bytes = static_cast<uint32_t>(bytes(most));
        return launch(ctx, config, sort_columns_kernel<Sorted>, sorted, most, held, passes, reads, writes);
      }
    }
    config.grid = dim3(grid_size(rows));
    return launch(ctx, config, sort_row_kernel<Sorted>, sorted, held, passes);
  }
  return 0;
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SORT_CUH_
