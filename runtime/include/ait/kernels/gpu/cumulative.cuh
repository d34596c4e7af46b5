/// @file cumulative.cuh
/// @brief Sums, products, extremes and so on of all elements up to each one, along one dim of any strides; comments say sums.
///
/// Where the elements of a sum are neighbours, a part of a warp, a warp or a block walks along a row; else a block has neighbouring columns and
/// walks down. Both read their elements once and write them once. Few long rows or columns leave the card idle: `cumulative_chained.cuh`.
#ifndef AIT_KERNELS_GPU_CUMULATIVE_CUH_
#define AIT_KERNELS_GPU_CUMULATIVE_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/row_group.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/kernels/reduction.h"

namespace ait::gpu {

/// Threads of a block, and the sums that one of them holds at once.
inline constexpr int kScanThreads = 256, kScanHeld = 32;
inline constexpr int kScanWarps = kScanThreads / kWarpSize;
/// Threads side by side along the rows of columns, and parts of a tile's rows.
inline constexpr int kScanLanes = 32, kScanParts = kScanThreads / kScanLanes;
/// Chunks of `kVec` neighbours that a thread of a block holds at once; rows of a column that it does. Of 2 bytes and less it holds what it read, half
/// the registers of sums or fewer, and has longer tiles: what blocks tell each other about a tile is the same for any length.
template <int kVec>
inline constexpr int kScanAhead = kScanHeld / kVec < 8 ? kScanHeld / kVec : 8;
template <int kVec>
inline constexpr int kScanRows = kVec == 4 ? 8 : 16;
/// Elements of a row, rows of columns, and columns, that a block works on at once.
template <int kVec>
inline constexpr int kRowTile = kScanThreads * kVec * kScanAhead<kVec>;
template <int kVec>
inline constexpr int kColumnTile = kScanParts * kScanRows<kVec>;
template <int kVec>
inline constexpr int kTileColumns = kScanLanes * kVec;

namespace detail {
template <class R, class Op>
using scan_acc_t = typename R::template Acc<typename Op::Compute>;

/// @brief What no elements of an operand come to.
template <class R, class Op>
__device__ __forceinline__ scan_acc_t<R, Op> scan_start() {
  return R::template start<typename Op::Value, scan_acc_t<R, Op>>();
}

/// @brief An element that changes nothing.
template <class R, class Op>
__device__ __forceinline__ typename Op::Value scan_neutral() {
  return convert<typename Op::Value>(static_cast<typename Op::Compute>(scan_start<R, Op>()));
}

/// @brief The sum over this lane and those below it, of each `kLanes` lanes of a warp.
template <class R, int kLanes, class A>
__device__ __forceinline__ A scan_lanes(A value) {
#pragma unroll
  for (int delta = 1; delta < kLanes; delta *= 2) {
    const A below = shuffle_up(value, delta);
    if (static_cast<int>(threadIdx.x) % kLanes >= delta) value = R::join(value, below);
  }
  return value;
}

/// @brief The sums of `kCount` neighbours in place, of those before each one if kExclusive, and the sum of all.
template <class R, bool kExclusive, int kCount, class A>
__device__ __forceinline__ A scan_thread(A (&x)[kCount], A none) {
  A sum = none;
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    const A before = sum;
    sum = R::join(sum, x[j]);
    x[j] = kExclusive ? before : sum;
  }
  return sum;
}

/// @brief The sums over `kAhead` times `kLanes` chunks in place, and the sum of all. Lane l has chunks l, kLanes + l and so on.
template <class R, bool kExclusive, int kLanes, int kAhead, int kVec, class A>
__device__ __forceinline__ A scan_chunks(A (&x)[kAhead][kVec], A none) {
  A through[kAhead];
#pragma unroll
  for (int u = 0; u < kAhead; ++u) through[u] = scan_lanes<R, kLanes>(scan_thread<R, kExclusive>(x[u], none));
  const int lane = threadIdx.x % kWarpSize;
  A before = none;
#pragma unroll
  for (int u = 0; u < kAhead; ++u) {
    A offset = shuffle_up(through[u], 1);
    offset = R::join(before, lane % kLanes == 0 ? none : offset);
#pragma unroll
    for (int j = 0; j < kVec; ++j) x[u][j] = R::join(offset, x[u][j]);
    before = R::join(before, shuffle(through[u], lane / kLanes * kLanes + kLanes - 1));
  }
  return before;
}

/// @brief A row of an operand as chunks of `kVec`, cut where the input is aligned, in the order of the sums.
template <class R, int kVec, bool kReverse, class In, class Out>
struct ScanRow {
  using T = typename In::Value;
  using A = scan_acc_t<R, In>;
  In in;
  Out out;
  int64_t length, lead, chunks;

  template <int kOuter>
  __device__ __forceinline__ ScanRow(const In& operand, const Out& result, const int64_t (&coordinate)[kOuter], int64_t count)
      : in(at_row(operand, coordinate)), out(at_row(result, coordinate)), length(count) {
    lead = kVec == 1 ? 0 : static_cast<int64_t>(reinterpret_cast<uintptr_t>(in.data) % (sizeof(T) * kVec) / sizeof(T));
    chunks = (length + lead + kVec - 1) / kVec;
  }

  /// Where a chunk begins; there are elements from 0 to `length`.
  __device__ __forceinline__ int64_t begin(int64_t chunk) const { return (kReverse ? chunks - 1 - chunk : chunk) * kVec - lead; }

  __device__ __forceinline__ void read(int64_t chunk, T (&to)[kVec]) const {
    const int64_t first = begin(chunk);
    if (In::kInner == Inner::unit && first >= 0 && first + kVec <= length) {
      load<kVec>(in.data + first, to);
      return;
    }
#pragma unroll
    for (int j = 0; j < kVec; ++j) to[j] = first + j >= 0 && first + j < length ? in.data[row_offset<1>(in, first + j, {length})] : scan_neutral<R, In>();
  }

  /// What was read, in the order of the sums.
  __device__ __forceinline__ static void widen(const T (&from)[kVec], A (&to)[kVec]) {
#pragma unroll
    for (int j = 0; j < kVec; ++j) to[j] = static_cast<A>(convert<typename In::Compute>(from[kReverse ? kVec - 1 - j : j]));
  }

  __device__ __forceinline__ void write(int64_t chunk, A before, const A (&sums)[kVec]) const {
    const int64_t first = begin(chunk);
    typename Out::Value raw[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      raw[kReverse ? kVec - 1 - j : j] = convert<typename Out::Value>(static_cast<typename In::Compute>(R::join(before, sums[j])));
    }
    if constexpr (Out::kInner == Inner::unit) {
      store_within<kVec>(out.data + first, first, length - first, raw);
    } else {
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        if (first + j >= 0 && first + j < length) out.data[row_offset<1>(out, first + j, {length})] = raw[j];
      }
    }
  }
};

/// @brief The sums over a tile of a row, or of columns, without what comes before it: a block's warps have one part after the other.
/// `within` is what the warps before this one have, `total` what all of them have. `shared` has room for kScanWarps.
template <class R, class A>
__device__ __forceinline__ void join_warps(A own, A none, A* shared, A& within, A& total) {
  const int warp = threadIdx.x / kWarpSize;
  if (threadIdx.x % kWarpSize == 0) shared[warp] = own;
  __syncthreads();
  within = total = none;
#pragma unroll
  for (int w = 0; w < kScanWarps; ++w) {
    if (w == warp) within = total;
    total = R::join(total, shared[w]);
  }
}
}  // namespace detail

/// Each `kLanes` lanes of a warp have a row.
template <class R, bool kExclusive, bool kReverse, int kLanes, int kVec, int kOuter, class In, class Out>
__global__ void __launch_bounds__(kScanThreads) cumulative_rows_kernel(RowSpace<kOuter, 1> space, In in, Out out) {
  using Row = detail::ScanRow<R, kVec, kReverse, In, Out>;
  using A = typename Row::A;
  const A none = detail::scan_start<R, In>();
  constexpr int kAhead = 4, kStep = kLanes * kAhead, kRows = kScanThreads / kLanes;
  wait_for_previous();
  allow_next();
  const int lane = threadIdx.x % kLanes;
  // All lanes of a warp walk on together, for they take part in each other's shuffles.
  const int64_t most = (space.length + 2 * (kVec - 1)) / kVec, last = (space.rows + kRows - 1) / kRows * kRows;
  for (int64_t index = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kLanes; index < last; index += static_cast<int64_t>(gridDim.x) * kRows) {
    int64_t coordinate[kOuter];
    coordinates<kOuter>(index < space.rows ? index : 0, space.outer, coordinate);
    const Row row(in, out, coordinate, index < space.rows ? space.length : 0);
    A carry = none;
    for (int64_t first = lane; first - lane < most; first += kStep) {
      typename Row::T raws[kAhead][kVec];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) row.read(first + u * kLanes, raws[u]);
      A x[kAhead][kVec];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) Row::widen(raws[u], x[u]);
      const A total = detail::scan_chunks<R, kExclusive, kLanes>(x, none);
#pragma unroll
      for (int u = 0; u < kAhead; ++u) row.write(first + u * kLanes, carry, x[u]);
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
      A x[kAhead][kVec], within, total;
#pragma unroll
      for (int u = 0; u < kAhead; ++u) Row::widen(raws[u], x[u]);
      detail::join_warps<R>(detail::scan_chunks<R, kExclusive, kWarpSize>(x, none), none, shared[turn], within, total);
      turn ^= 1;
#pragma unroll
      for (int u = 0; u < kAhead; ++u) row.write(first + u * kWarpSize, R::join(carry, within), x[u]);
      carry = R::join(carry, total);
    }
  }
}

namespace detail {
/// @brief A thread's `kVec` neighbouring columns: what it has of a tile of rows, and where that goes. There are kScanParts of them, each with its part of the rows.
template <class R, bool kExclusive, int kVec, int kOuter, class In, class Out>
struct ScanColumns {
  using T = typename In::Value;
  using A = scan_acc_t<R, In>;
  static constexpr int kRows = kScanRows<kVec>, kColumns = kTileColumns<kVec>;
  static constexpr bool kAsRead = sizeof(T) <= 2;
  static_assert(kColumns <= kScanThreads, "a thread has the sums of a column");
  In in;
  Out out;
  int64_t length;
  bool present;
  std::conditional_t<kAsRead, T, A> x[kRows][kVec];  ///< what was read, or the sums of this thread's part

  __device__ __forceinline__ ScanColumns(const RowSpace<kOuter, 1>& space, const In& operand, const Out& result, int64_t first)
      : in(operand), out(result), length(space.length), present(first + threadIdx.x % kScanLanes * kVec < space.rows) {
    int64_t coordinate[kOuter];
    coordinates<kOuter>(present ? first + threadIdx.x % kScanLanes * kVec : first, space.outer, coordinate);
    in = at_row(in, coordinate), out = at_row(out, coordinate);
  }

  /// Where the sum of a part and column `j` of this thread lies in shared memory: neighbouring lanes have neighbouring words.
  static __device__ __forceinline__ int place(int part, int j) { return part * kColumns + j * kScanLanes + int(threadIdx.x) % kScanLanes; }

  static __device__ __forceinline__ A widen(T value) { return static_cast<A>(convert<typename In::Compute>(value)); }

  /// Row `r` of this thread's part of the tile that begins at `from`.
  static __device__ __forceinline__ int64_t row(int64_t from, int r) { return from + threadIdx.x / kScanLanes * kRows + r; }

  /// Reads a tile and writes what each part has of each column to `shared`, of kScanParts times kColumns.
  __device__ __forceinline__ void read(int64_t from, A* shared) {
    T raws[kRows][kVec];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (present && row(from, r) < length) {
        load<kVec>(in.data + row(from, r) * in.strides[kOuter], raws[r]);
      } else {
#pragma unroll
        for (int j = 0; j < kVec; ++j) raws[r][j] = scan_neutral<R, In>();
      }
    }
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      A column[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) column[r] = widen(raws[r][j]);
      shared[place(threadIdx.x / kScanLanes, j)] = scan_thread<R, kExclusive>(column, scan_start<R, In>());
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if constexpr (kAsRead) {
          x[r][j] = raws[r][j];
        } else {
          x[r][j] = column[r];
        }
      }
    }
  }

  /// Of the column that this thread has in `shared`: makes each part's sum that of the parts before it, after `first`; the sum of all parts.
  static __device__ __forceinline__ A join_parts(A* shared, A first) {
#pragma unroll
    for (int w = 0; w < kScanParts; ++w) {
      const A own = shared[w * kColumns + threadIdx.x];
      shared[w * kColumns + threadIdx.x] = first;
      first = R::join(first, own);
    }
    return first;
  }

  /// Writes the sums, with what comes before this thread's part.
  __device__ __forceinline__ void write(int64_t from, const A (&before)[kVec]) const {
    if (!present) return;
    A running[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) running[j] = before[j];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (row(from, r) >= length) continue;
      typename Out::Value raw[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        A sum = running[j];
        if constexpr (kAsRead) {
          running[j] = R::join(sum, widen(x[r][j]));
          if (!kExclusive) sum = running[j];
        } else {
          sum = R::join(sum, x[r][j]);
        }
        raw[j] = convert<typename Out::Value>(static_cast<typename In::Compute>(sum));
      }
      store<kVec>(out.data + row(from, r) * out.strides[kOuter], raw);
    }
  }
};
}  // namespace detail

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

template <class R, bool kExclusive, bool kReverse, int kLanes, int kVec, int kOuter, class In, class Out>
int32_t launch_scan_rows(const Context& ctx, const RowSpace<kOuter, 1>& space, const In& in, const Out& out) {
  LaunchConfig config;
  config.block = dim3(kScanThreads);
  config.dependent = true;
  if constexpr (kLanes > kWarpSize) {
    config.grid = dim3(ceil_div(space.rows, 1, 1 << 20));
    return launch(ctx, config, cumulative_blocks_kernel<R, kExclusive, kReverse, kVec, kOuter, In, Out>, space, in, out);
  } else {
    config.grid = dim3(ceil_div(space.rows, kScanThreads / kLanes, 1 << 20));
    return launch(ctx, config, cumulative_rows_kernel<R, kExclusive, kReverse, kLanes, kVec, kOuter, In, Out>, space, in, out);
  }
}

template <class R, bool kExclusive, int kVec, int kOuter, class In, class Out>
int32_t launch_scan_columns(const Context& ctx, const RowSpace<kOuter, 1>& space, const In& in, const Out& out) {
  LaunchConfig config;
  config.block = dim3(kScanThreads);
  config.grid = dim3(ceil_div(space.rows, kTileColumns<kVec>, 1 << 20));
  config.dependent = true;
  return launch(ctx, config, cumulative_columns_kernel<R, kExclusive, kVec, kOuter, In, Out>, space, in, out);
}
}  // namespace detail

/// @brief out[..., i] = R over in[..., 0] to in[..., i] along the last of `sizes`. Floats narrower than f32 are added in f32; integers wrap.
/// @tparam R of `ait/kernels/reduction.h`
/// @tparam kExclusive without in[..., i] itself
/// @tparam kReverse from the last element to the first
/// @tparam kColumns whether the last but one dim has neighbours in memory, in both operands, and not the last
template <class R, bool kExclusive, bool kReverse, bool kColumns, size_t kRank, class In, class Out>
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
    if (space.length <= 8 * kVec) return detail::launch_scan_rows<R, kExclusive, kReverse, 8, kVec>(ctx, space, in, out);
    if (space.length <= 8 * kWarpSize * kVec) return detail::launch_scan_rows<R, kExclusive, kReverse, kWarpSize, kVec>(ctx, space, in, out);
    return detail::launch_scan_rows<R, kExclusive, kReverse, kScanThreads, kVec>(ctx, space, in, out);
  }
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_CUMULATIVE_CUH_
