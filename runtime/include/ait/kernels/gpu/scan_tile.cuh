/// @file scan_tile.cuh
/// @brief The operations of cumulative sums on tiles of rows and columns: read, sum, write.
#ifndef AIT_KERNELS_GPU_SCAN_TILE_CUH_
#define AIT_KERNELS_GPU_SCAN_TILE_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/mma.cuh"
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
inline constexpr int kChainAhead = 8;  ///< as `kScanAhead`, where chunks are in shared memory
template <int kVec>
inline constexpr int kScanRows = kVec == 4 ? 8 : 16;
/// Elements of a row, rows of columns, and columns, that a block works on at once.
template <int kVec>
inline constexpr int kRowTile = kScanThreads * kVec * kChainAhead;
template <int kVec>
inline constexpr int kColumnTile = kScanParts * kScanRows<kVec>;
template <int kVec>
inline constexpr int kTileColumns = kScanLanes * kVec;

namespace detail {
template <class R, class Op>
using scan_acc_t = typename R::template Acc<typename Op::Compute>;

/// @brief The cumulative result of zero elements.
template <class R, class Op>
__device__ __forceinline__ scan_acc_t<R, Op> scan_start() {
  return R::template start<typename Op::Value, scan_acc_t<R, Op>>();
}

/// @brief An element that changes nothing.
template <class R, class Op>
__device__ __forceinline__ typename Op::Value scan_neutral() {
  return convert<typename Op::Value>(element_of<typename Op::Compute>(scan_start<R, Op>()));
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

/// @brief Replaces the sums of a lane's `kAhead` chunks by the sums before each chunk; returns the sum of all lanes. Lane l has chunks l, kLanes + l
/// and so on.
template <class R, int kLanes, int kAhead, class A>
__device__ __forceinline__ A scan_before(A (&sums)[kAhead], A none) {
#pragma unroll
  for (int u = 0; u < kAhead; ++u) sums[u] = scan_lanes<R, kLanes>(sums[u]);
  const int lane = threadIdx.x % kWarpSize;
  A before = none;
#pragma unroll
  for (int u = 0; u < kAhead; ++u) {
    const A through = sums[u], below = shuffle_up(through, 1);
    sums[u] = R::join(before, lane % kLanes == 0 ? none : below);
    before = R::join(before, shuffle(through, lane / kLanes * kLanes + kLanes - 1));
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

  using Word = word_t<kAccessBytes<T, kVec>>;
  static_assert(sizeof(Word) == sizeof(T) * kVec, "a chunk is a word");

  /// Starts to copy chunks `first`, `first` + kWarpSize and so on to places of this thread in shared memory; `finish_copies` waits for them. Where all
  /// of them exist there is one branch for them, not one for each.
  template <int kAhead>
  __device__ __forceinline__ void start_copies(int64_t first, Word (*to)[kScanThreads]) const {
    const int64_t one = begin(first), other = begin(first + (kAhead - 1) * kWarpSize), least = one < other ? one : other, most = one < other ? other : one;
    if (In::kInner == Inner::unit && least >= 0 && most + kVec <= length) {
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const Word* const from = reinterpret_cast<const Word*>(in.data + begin(first + u * kWarpSize));
#if defined(AIT_CUDA)
        if constexpr (sizeof(Word) == 16) {
          copy_async_16(shared_address(&to[u][threadIdx.x]), from, 16);
          continue;
        }
#endif
        to[u][threadIdx.x] = *from;
      }
    } else {
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        T elements[kVec];
        read(first + u * kWarpSize, elements);
        copy_bytes(&to[u][threadIdx.x], &elements, sizeof(Word));
      }
    }
  }
  static __device__ __forceinline__ void finish_copies() {
#if defined(AIT_CUDA)
    copy_async_commit();
    copy_async_wait<0>();
#endif
  }

  /// What was read, in the order of the sums.
  __device__ __forceinline__ static void widen(const T (&from)[kVec], A (&to)[kVec]) {
#pragma unroll
    for (int j = 0; j < kVec; ++j) to[j] = state_of<A>(convert<typename In::Compute>(from[kReverse ? kVec - 1 - j : j]));
  }

  /// The sums of what was read, in `to`, and the sum of all of it.
  template <bool kExclusive>
  __device__ __forceinline__ static A scan(const T (&from)[kVec], A (&to)[kVec]) {
    widen(from, to);
    return scan_thread<R, kExclusive>(to, scan_start<R, In>());
  }

  __device__ __forceinline__ void write(int64_t chunk, A before, const A (&sums)[kVec]) const {
    const int64_t first = begin(chunk);
    typename Out::Value raw[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      raw[kReverse ? kVec - 1 - j : j] = convert<typename Out::Value>(element_of<typename In::Compute>(R::join(before, sums[j])));
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

namespace detail {
/// @brief A thread's `kVec` neighbouring columns: what it has of a tile of rows, and where that goes. There are kScanParts of them, each with its part of the rows.
template <class R, bool kExclusive, int kVec, int kOuter, class In, class Out, int kRows = kScanRows<kVec>>
struct ScanColumns {
  using T = typename In::Value;
  using A = scan_acc_t<R, In>;
  static constexpr int kColumns = kTileColumns<kVec>;
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

  static __device__ __forceinline__ A widen(T value) { return state_of<A>(convert<typename In::Compute>(value)); }

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
        raw[j] = convert<typename Out::Value>(element_of<typename In::Compute>(sum));
      }
      store<kVec>(out.data + row(from, r) * out.strides[kOuter], raw);
    }
  }
};
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SCAN_TILE_CUH_
