/// @file cumulative.cuh
/// @brief Sums, products, extremes and so on of all elements up to each one, along one dim of any strides; comments say sums.
///
/// Where the elements of a sum are neighbours, a part of a warp, a warp or a block walks along a row; else a block has neighbouring columns and
/// walks down. Both read their elements once and write them once. Few long rows or columns leave the card idle: `cumulative_chained.cuh`.
#ifndef AIT_KERNELS_GPU_CUMULATIVE_CUH_
#define AIT_KERNELS_GPU_CUMULATIVE_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/cumulative_copied.cuh"
#include "ait/kernels/gpu/scan_tile.cuh"

namespace ait::gpu {

/// Each `kLanes` lanes of a warp have a row, and `kAhead` chunks of it at once. No row has more than `most` chunks.
template <class R, bool kExclusive, bool kReverse, int kLanes, int kAhead, int kVec, int kOuter, class In, class Out>
__global__ void __launch_bounds__(kScanThreads) cumulative_rows_kernel(RowSpace<kOuter, 1> space, int64_t most, In in, Out out) {
  using Row = detail::ScanRow<R, kVec, kReverse, In, Out>;
  using A = typename Row::A;
  const A none = detail::scan_start<R, In>();
  constexpr int kStep = kLanes * kAhead, kRows = kScanThreads / kLanes;
  wait_for_previous();
  allow_next();
  const int lane = threadIdx.x % kLanes;
  // All lanes of a warp walk on together, for they take part in each other's shuffles.
  const int64_t last = (space.rows + kRows - 1) / kRows * kRows;
  for (int64_t index = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kLanes; index < last; index += static_cast<int64_t>(gridDim.x) * kRows) {
    int64_t coordinate[kOuter];
    coordinates<kOuter>(index < space.rows ? index : 0, space.outer, coordinate);
    const Row row(in, out, coordinate, index < space.rows ? space.length : 0);
    A carry = none;
    for (int64_t first = lane; first - lane < most; first += kStep) {
      typename Row::T raws[kAhead][kVec];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) row.read(first + u * kLanes, raws[u]);
      A x[kAhead][kVec], before[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) before[u] = row.template scan<kExclusive>(raws[u], x[u]);
      const A total = detail::scan_before<R, kLanes>(before, none);
#pragma unroll
      for (int u = 0; u < kAhead; ++u) row.write(first + u * kLanes, R::join(carry, before[u]), x[u]);
      carry = R::join(carry, total);
    }
  }
}

/// A block has a row, and walks along it tile by tile.
template <class R, bool kExclusive, bool kReverse, int kVec, int kOuter, class In, class Out>
__global__ void __launch_bounds__(kScanThreads) cumulative_blocks_kernel(RowSpace<kOuter, 1> space, In in, Out out) {
  using Row = detail::ScanRow<R, kVec, kReverse, In, Out>;
  using A = typename Row::A;
  const A none = detail::scan_start<R, In>();
  constexpr int kAhead = kScanAhead<kVec>, kChunks = kScanThreads * kAhead;
  __shared__ A shared[2][kScanWarps];
  wait_for_previous();
  allow_next();
  const int place = threadIdx.x / kWarpSize * kWarpSize * kAhead + threadIdx.x % kWarpSize;
  int turn = 0;  // one barrier a tile is enough
  for (int64_t index = blockIdx.x; index < space.rows; index += gridDim.x) {
    int64_t coordinate[kOuter];
    coordinates<kOuter>(index, space.outer, coordinate);
    const Row row(in, out, coordinate, space.length);
    A carry = none;
    for (int64_t first = place; first - place < row.chunks; first += kChunks) {
      typename Row::T raws[kAhead][kVec];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) row.read(first + u * kWarpSize, raws[u]);
      A x[kAhead][kVec], before[kAhead], within, total;
#pragma unroll
      for (int u = 0; u < kAhead; ++u) before[u] = row.template scan<kExclusive>(raws[u], x[u]);
      detail::join_warps<R>(detail::scan_before<R, kWarpSize>(before, none), none, shared[turn], within, total);
      turn ^= 1;
      within = R::join(carry, within);
#pragma unroll
      for (int u = 0; u < kAhead; ++u) row.write(first + u * kWarpSize, R::join(within, before[u]), x[u]);
      carry = R::join(carry, total);
    }
  }
}

/// A block has `kTileColumns` neighbouring columns, and walks down tile by tile.
template <class R, bool kExclusive, int kVec, int kOuter, class In, class Out>
__global__ void __launch_bounds__(kScanThreads, 2) cumulative_columns_kernel(RowSpace<kOuter, 1> space, In in, Out out) {
  using Columns = detail::ScanColumns<R, kExclusive, kVec, kOuter, In, Out>;
  using A = typename Columns::A;
  const A none = detail::scan_start<R, In>();
  __shared__ A shared[2][kScanParts * Columns::kColumns];  // in turn, so that two barriers a tile are enough
  wait_for_previous();
  allow_next();
  const int part = threadIdx.x / kScanLanes;
  const int64_t step = static_cast<int64_t>(gridDim.x) * Columns::kColumns;
  int turn = 0;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * Columns::kColumns; first < space.rows; first += step) {
    Columns columns(space, in, out, first);
    A carry = none;  // of one column
    for (int64_t from = 0; from < space.length; from += kColumnTile<kVec>, turn ^= 1) {
      columns.read(from, shared[turn]);
      __syncthreads();
      if (static_cast<int>(threadIdx.x) < Columns::kColumns) carry = Columns::join_parts(shared[turn], carry);
      __syncthreads();
      A before[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) before[j] = shared[turn][Columns::place(part, j)];
      columns.write(from, before);
    }
  }
}

namespace detail {
/// @brief The rows of `sizes`, the last of which is the dim of the sums.
template <int kOuter, size_t kRank>
RowSpace<kOuter, 1> scan_space(const int64_t (&sizes)[kRank]) {
  RowSpace<kOuter, 1> space;
  space.rows = 1;
  for (int d = 0; d < kOuter; ++d) space.rows *= space.outer[d] = sizes[d];
  space.length = space.row[0] = sizes[kOuter];
  return space;
}

/// @brief The same elements along the last dim, from the last to the first.
template <class Op>
Op reversed(Op operand, int64_t length) {
  int64_t& step = operand.strides[Op::kRank - 1];
  operand.data += (length - 1) * step;
  step = -step;
  return operand;
}

/// @brief Whether `kVec` neighbours along the last but one dim are one access in this operand, at every row.
template <int kVec, int kOuter, class Op>
bool may_access_columns(const RowSpace<kOuter, 1>& space, const Op& operand) {
  constexpr int64_t kAlign = kAccessBytes<typename Op::Value, kVec>, kSize = sizeof(typename Op::Value);
  bool aligned = reinterpret_cast<uintptr_t>(operand.data) % kAlign == 0 && space.outer[kOuter - 1] % kVec == 0;
  for (int d = 0; d <= kOuter; ++d) aligned = aligned && (d == kOuter - 1 || operand.strides[d] * kSize % kAlign == 0);
  return aligned && space.rows >= kTileColumns<kVec>;
}

/// @brief The most chunks that a row is cut into: one more than of an aligned row if not all rows are aligned.
template <int kVec, int kOuter, class In>
int64_t most_chunks(const RowSpace<kOuter, 1>& space, const In& in) {
  constexpr int64_t kSize = sizeof(typename In::Value), kAlign = kSize * kVec;
  bool aligned = reinterpret_cast<uintptr_t>(in.data) % kAlign == 0;
  for (int d = 0; d < kOuter; ++d) aligned = aligned && (space.outer[d] == 1 || in.strides[d] * kSize % kAlign == 0);
  return (space.length + (aligned ? 1 : 2) * (kVec - 1)) / kVec;
}

/// @brief Whether rows of `kLength` elements, any number of them if 0, may be cut into more than `kBelow` and at most `kUpTo` chunks.
template <int64_t kLength, int kVec, int64_t kBelow, int64_t kUpTo>
inline constexpr bool kMayBeCut = kLength == 0 || ((kLength + kVec - 1) / kVec <= kUpTo && (kLength + 2 * (kVec - 1)) / kVec > kBelow);

/// @brief The rows of at most `kLanes` times `kAhead` chunks, else those of more: `kLanes` and `kAhead` grow along the ways to share a row. Ways that rows
/// of a fixed length cannot take are not compiled.
template <class R, bool kExclusive, bool kReverse, int64_t kLength, int kLanes, int kAhead, int64_t kBelow, int kVec, int kOuter, class In, class Out>
int32_t launch_scan_rows(const Context& ctx, const RowSpace<kOuter, 1>& space, const In& in, const Out& out) {
  LaunchConfig config;
  config.block = dim3(kScanThreads);
  config.dependent = true;
  if constexpr (kLanes > kWarpSize) {
    config.grid = dim3(ceil_div(space.rows, 1, 1 << 20));
    return launch(ctx, config, cumulative_blocks_kernel<R, kExclusive, kReverse, kVec, kOuter, In, Out>, space, in, out);
  } else {
    constexpr int64_t kUpTo = kLanes * kAhead;
    const int64_t most = most_chunks<kVec>(space, in);
    if constexpr (kMayBeCut<kLength, kVec, kBelow, kUpTo>) {
      if (most <= kUpTo) {
        config.grid = dim3(ceil_div(space.rows, kScanThreads / kLanes, 1 << 20));
        return launch(ctx, config, cumulative_rows_kernel<R, kExclusive, kReverse, kLanes, kAhead, kVec, kOuter, In, Out>, space, most, in, out);
      }
    }
    constexpr bool kWhole = kLanes == kWarpSize;
    constexpr int kNextLanes = !kWhole ? (kLanes < 8 ? 2 * kLanes : kWarpSize) : kAhead < 4 ? kWarpSize : kScanThreads;
    constexpr int kNextAhead = kWhole && kAhead < 4 ? 2 * kAhead : 1;
    if constexpr (kMayBeCut<kLength, kVec, kUpTo, INT64_MAX>) {
      return launch_scan_rows<R, kExclusive, kReverse, kLength, kNextLanes, kNextAhead, kUpTo, kVec>(ctx, space, in, out);
    } else {
      return 0;  // no row has so many elements
    }
  }
}

template <class R, bool kExclusive, int kVec, int kOuter, class In, class Out>
int32_t launch_scan_columns(const Context& ctx, const RowSpace<kOuter, 1>& space, const In& in, const Out& out) {
  LaunchConfig config;
  config.block = dim3(kScanThreads);
  config.grid = dim3(ceil_div(space.rows, kTileColumns<kVec>, 1 << 20));
  config.dependent = true;
#if defined(AIT_CUDA)
  constexpr bool kCopied = sizeof(typename In::Value) * kVec == 16;
#else
  constexpr bool kCopied = false;
#endif
  if constexpr (kCopied) {
#if defined(AIT_CUDA)
    config.shared_bytes = 2 * CopiedColumns<R, kExclusive, kVec, kOuter, In, Out>::kSlotBytes;
    return launch(ctx, config, cumulative_copied_columns_kernel<R, kExclusive, kVec, kOuter, In, Out>, space, in, out);
#endif
  } else {
    return launch(ctx, config, cumulative_columns_kernel<R, kExclusive, kVec, kOuter, In, Out>, space, in, out);
  }
}
}  // namespace detail

/// @brief out[..., i] = R over in[..., 0] to in[..., i] along the last of `sizes`. Floats narrower than f32 are added in f32; integers wrap.
/// @tparam R of `ait/kernels/reduction.h`
/// @tparam kExclusive without in[..., i] itself
/// @tparam kReverse from the last element to the first
/// @tparam kColumns whether the last but one dim has neighbours in memory, in both operands, and not the last
/// @tparam kLength the last of `sizes`, if it is the same in each run; else 0
template <class R, bool kExclusive, bool kReverse, bool kColumns, int64_t kLength, size_t kRank, class In, class Out>
int32_t cumulative(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, const Out& out) {
  constexpr int kOuter = static_cast<int>(kRank) - 1;
  const auto space = detail::scan_space<kOuter>(sizes);
  if (space.rows <= 0 || space.length <= 0) return 0;
  if constexpr (kColumns) {
    constexpr int kVec = vector_width<In, Out>();
    const In from = kReverse ? detail::reversed(in, space.length) : in;
    const Out to = kReverse ? detail::reversed(out, space.length) : out;
    if (detail::may_access_columns<kVec>(space, from) && detail::may_access_columns<kVec>(space, to)) {
      return detail::launch_scan_columns<R, kExclusive, kVec>(ctx, space, from, to);
    }
    return detail::launch_scan_columns<R, kExclusive, 1>(ctx, space, from, to);
  } else {
    constexpr int kVec = In::kInner == Inner::unit ? vector_width<In>() : 1;
    return detail::launch_scan_rows<R, kExclusive, kReverse, kLength, 1, 1, 0, kVec>(ctx, space, in, out);
  }
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_CUMULATIVE_CUH_
