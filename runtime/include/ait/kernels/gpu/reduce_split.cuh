/// @file reduce_split.cuh
/// @brief Reductions of many elements to few results, by two launches: each block reduces a part of what belongs to a result, then a block joins
/// the parts of each result. Sums are taken in one order for a number of multiprocessors, so results are the same in every run.
#ifndef AIT_KERNELS_GPU_REDUCE_SPLIT_CUH_
#define AIT_KERNELS_GPU_REDUCE_SPLIT_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/gpu/multiprocessors.h"
#include "ait/kernels/gpu/row_read.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/kernels/reduction.h"

namespace ait::gpu {

/// Threads of a block, blocks that a multiprocessor runs at once, and the most parts that there are of all results, or one of each.
inline constexpr int kPartThreads = 256, kPartBlocks = 4;
inline constexpr int64_t kMostParts = 1024;

/// @brief What is known of some elements: their sum or extreme.
template <class R, class A, bool kCentred = R::kCentred>
struct Part {
  A value;

  template <class T>
  static __device__ __forceinline__ Part none() {
    return {R::template start<T, A>()};
  }
  __device__ __forceinline__ void join(const Part& other) { value = R::join(value, other.value); }
  __device__ __forceinline__ void add(A x) { value = R::join(value, x); }
  /// In pairs, so that sums are exact to fewer roundings.
  template <int kCount>
  __device__ __forceinline__ void add(A (&x)[kCount]) {
#pragma unroll
    for (int step = 1; step < kCount; step *= 2) {
#pragma unroll
      for (int i = 0; i + step < kCount; i += 2 * step) x[i] = R::join(x[i], x[i + step]);
    }
    add(x[0]);
  }
  __device__ __forceinline__ A finish(int64_t count, double correction) const { return R::finish(value, static_cast<A>(count), correction); }
  __device__ __forceinline__ Part from_lane(int mask) const { return {shuffle_xor(value, mask)}; }
};

/// @brief Their number, their mean, and the sum of the squares of their differences from it (Chan, Golub and LeVeque, 1979).
template <class R, class A>
struct Part<R, A, true> {
  A count, mean, squares;

  template <class T>
  static __device__ __forceinline__ Part none() {
    return {A(0), A(0), A(0)};
  }
  __device__ __forceinline__ void join(const Part& other) {
    const A all = count + other.count, difference = other.mean - mean, share = all > A(0) ? other.count / all : A(0);
    mean += difference * share;
    squares += other.squares + difference * difference * (count * share);
    count = all;
  }
  __device__ __forceinline__ void add(A x) { join({A(1), x, A(0)}); }
  template <int kCount>
  __device__ __forceinline__ void add(A (&x)[kCount]) {
    A sum = A(0), differences = A(0), squared = A(0);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum += x[i];
    const A of_these = sum * (A(1) / A(kCount));
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const A difference = x[i] - of_these;
      differences += difference;
      squared += difference * difference;
    }
    join({A(kCount), of_these, squared - differences * differences * (A(1) / A(kCount))});
  }
  __device__ __forceinline__ A finish(int64_t, double correction) const { return R::finish_centred(A(0), squares, count, correction); }
  __device__ __forceinline__ Part from_lane(int mask) const {
    return {shuffle_xor(count, mask), shuffle_xor(mean, mask), shuffle_xor(squares, mask)};
  }
};

namespace detail {
template <class R, class In>
using part_t = Part<R, typename R::template Acc<typename In::Compute>>;

/// The parts of all threads of a block, in the first one. `shared` has room for one a warp.
template <class P>
__device__ __forceinline__ void join_block(P& part, P* shared) {
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) part.join(part.from_lane(mask));
  if (threadIdx.x % kWarpSize == 0) shared[threadIdx.x / kWarpSize] = part;
  __syncthreads();
  if (threadIdx.x == 0) {
#pragma unroll
    for (int w = 1; w < kPartThreads / kWarpSize; ++w) part.join(shared[w]);
  }
}
}  // namespace detail

/// Block b reduces part b % `parts` of result b / `parts`.
template <class R, int kVec, int kKept, int kReduced, class In, class P>
__global__ void __launch_bounds__(kPartThreads, kPartBlocks) reduce_part_rows_kernel(RowSpace<kKept, kReduced> space, In in, int64_t parts, P* found) {
  using T = typename In::Value;
  using C = typename In::Compute;
  using A = typename R::template Acc<C>;
  constexpr int kAhead = 4;
  __shared__ P shared[kPartThreads / kWarpSize];
  wait_for_previous();
  allow_next();
  int64_t coordinate[kKept];
  coordinates<kKept>(static_cast<int64_t>(blockIdx.x) / parts, space.outer, coordinate);
  const In row = detail::at_row(in, coordinate);
  const auto place = [&](int64_t i) { return row.data + detail::row_offset<kReduced>(row, i, space.row); };
  // Chunks are cut where they are aligned; the first and the last may have elements before and behind the row.
  const int64_t lead = kVec == 1 ? 0 : static_cast<int64_t>(reinterpret_cast<uintptr_t>(row.data) % (sizeof(T) * kVec) / sizeof(T));
  const int64_t chunks = (space.length + lead + kVec - 1) / kVec, each = (chunks + parts - 1) / parts;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) % parts * each, end = begin + each < chunks ? begin + each : chunks;
  P part = P::template none<T>();
  for (int64_t first = begin + threadIdx.x; first < end; first += kAhead * kPartThreads) {
    const int64_t from = first * kVec - lead, step = kPartThreads * kVec;
    if (from >= 0 && first + (kAhead - 1) * kPartThreads < end && from + (kAhead - 1) * step + kVec <= space.length) {
      T raws[kAhead][kVec];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) load<kVec>(place(from + u * step), raws[u]);
      A x[kAhead * kVec];
#pragma unroll
      for (int i = 0; i < kAhead * kVec; ++i) x[i] = static_cast<A>(convert<C>(raws[i / kVec][i % kVec]));
      part.add(x);
      continue;
    }
    for (int64_t chunk = first; chunk < end && chunk < first + kAhead * kPartThreads; chunk += kPartThreads) {
      for (int64_t i = chunk * kVec - lead; i < (chunk + 1) * kVec - lead; ++i) {
        if (i >= 0 && i < space.length) part.add(static_cast<A>(convert<C>(*place(i))));
      }
    }
  }
  detail::join_block(part, shared);
  if (threadIdx.x == 0) found[blockIdx.x] = part;
}

/// Threads side by side along neighbouring results, and those that share the elements of one.
inline constexpr int kPartLanes = 32, kPartRows = kPartThreads / kPartLanes;

/// Block (c, p) reduces part p of `kVec` neighbouring results a thread.
template <class R, int kVec, int kKept, int kReduced, class In, class P>
__global__ void __launch_bounds__(kPartThreads) reduce_part_columns_kernel(RowSpace<kKept, kReduced> space, In in, int64_t parts, P* found) {
  using T = typename In::Value;
  using C = typename In::Compute;
  using A = typename R::template Acc<C>;
  constexpr int kAhead = 8;
  __shared__ P shared[kPartRows][kPartLanes * kVec];
  wait_for_previous();
  allow_next();
  const int lane = threadIdx.x % kPartLanes, sharer = threadIdx.x / kPartLanes;
  const int64_t result = (static_cast<int64_t>(blockIdx.x) / parts * kPartLanes + lane) * kVec;
  const bool present = result < space.rows;
  const int64_t index = static_cast<int64_t>(blockIdx.x) % parts, each = (space.length + parts - 1) / parts;
  const int64_t begin = index * each, end = present ? (begin + each < space.length ? begin + each : space.length) : begin;
  int64_t coordinate[kKept];
  coordinates<kKept>(present ? result : 0, space.outer, coordinate);
  const In row = detail::at_row(in, coordinate);
  const auto place = [&](int64_t i) { return row.data + detail::row_offset<kReduced>(row, i, space.row); };
  P part[kVec];
#pragma unroll
  for (int j = 0; j < kVec; ++j) part[j] = P::template none<T>();
  int64_t i = begin + sharer;
  for (; i + (kAhead - 1) * kPartRows < end; i += kAhead * kPartRows) {
    T raws[kAhead][kVec];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) load<kVec>(place(i + u * kPartRows), raws[u]);
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      A x[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) x[u] = static_cast<A>(convert<C>(raws[u][j]));
      part[j].add(x);
    }
  }
  for (; i < end; i += kPartRows) {
    T raws[kVec];
    load<kVec>(place(i), raws);
#pragma unroll
    for (int j = 0; j < kVec; ++j) part[j].add(static_cast<A>(convert<C>(raws[j])));
  }
#pragma unroll
  for (int j = 0; j < kVec; ++j) shared[sharer][lane * kVec + j] = part[j];
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.x) / parts * kPartLanes * kVec;
  for (int c = threadIdx.x; c < kPartLanes * kVec && first + c < space.rows; c += kPartThreads) {
    P joined = shared[0][c];
#pragma unroll
    for (int s = 1; s < kPartRows; ++s) joined.join(shared[s][c]);
    found[index * space.rows + first + c] = joined;
  }
}

/// A block makes a result of its `parts`, which lie `step` apart, from those of the next result `next` apart.
template <class R, int kKept, int kReduced, class T, class Out, class P>
__global__ void __launch_bounds__(kPartThreads)
    reduce_join_kernel(RowSpace<kKept, kReduced> space, const P* found, int64_t parts, int64_t step, int64_t next, Out out, double correction) {
  __shared__ P shared[kPartThreads / kWarpSize];
  wait_for_previous();
  allow_next();
  P part = P::template none<T>();
  for (int64_t p = threadIdx.x; p < parts; p += kPartThreads) part.join(found[blockIdx.x * next + p * step]);
  detail::join_block(part, shared);
  if (threadIdx.x != 0) return;
  int64_t coordinate[kKept];
  coordinates<kKept>(static_cast<int64_t>(blockIdx.x), space.outer, coordinate);
  *detail::at_row(out, coordinate).data = convert<typename Out::Value>(static_cast<typename Out::Compute>(part.finish(space.length, correction)));
}

namespace detail {
template <class R, int kVec, bool kColumns, int kKept, int kReduced, class In, class Out>
int32_t launch_parts(const Context& ctx, const RowSpace<kKept, kReduced>& space, const In& in, const Out& out, double correction, void* workspace) {
  using P = part_t<R, In>;
  P* const found = static_cast<P*>(workspace);
  const int64_t groups = kColumns ? (space.rows + kPartLanes * kVec - 1) / (kPartLanes * kVec) : space.rows;
  const int64_t room = int64_t(multiprocessors()) * kPartBlocks, most = room < kMostParts ? room : kMostParts;
  const int64_t wanted = most / groups, useful = space.length / (kColumns ? 8 * kPartRows : kVec * kPartThreads);
  const int64_t fewer = wanted < useful ? wanted : useful, parts = fewer < 1 ? 1 : fewer;
  LaunchConfig config;
  config.block = dim3(kPartThreads);
  config.grid = dim3(static_cast<uint32_t>(groups * parts));
  config.dependent = true;
  int32_t status;
  if constexpr (kColumns) {
    status = launch(ctx, config, reduce_part_columns_kernel<R, kVec, kKept, kReduced, In, P>, space, in, parts, found);
  } else {
    status = launch(ctx, config, reduce_part_rows_kernel<R, kVec, kKept, kReduced, In, P>, space, in, parts, found);
  }
  if (status != 0) return status;
  config.grid = dim3(static_cast<uint32_t>(space.rows));
  return launch(ctx, config, reduce_join_kernel<R, kKept, kReduced, typename In::Value, Out, P>, space, found, parts, kColumns ? space.rows : int64_t(1),
                kColumns ? int64_t(1) : parts, out, correction);
}
}  // namespace detail

/// @brief out = R over the dims of `sizes` from kKept on, where there are few results; `out` has stride 0 along them.
/// @tparam kColumns whether the last kept dim, not the last reduced one, has neighbours in memory
/// @param correction what Var takes off the number of elements that it divides by
/// @param workspace of `ait_mlir/lowering/kernels/reduce.py: split_bytes`, aligned to 16 bytes
template <class R, int kKept, bool kColumns, size_t kRank, class In, class Out>
int32_t reduce_split(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, const Out& out, double correction, void* workspace) {
  constexpr int kReduced = static_cast<int>(kRank) - kKept;
  RowSpace<kKept, kReduced> space;
  space.rows = space.length = 1;
  for (int d = 0; d < kKept; ++d) space.rows *= space.outer[d] = sizes[d];
  for (int d = 0; d < kReduced; ++d) space.length *= space.row[d] = sizes[kKept + d];
  if (space.rows <= 0) return 0;
  if constexpr (kColumns) {
    constexpr int kVec = sizeof(typename In::Value) <= 4 ? 4 : 2;
    bool words = reinterpret_cast<uintptr_t>(in.data) % (sizeof(typename In::Value) * kVec) == 0 && space.outer[kKept - 1] % kVec == 0;
    for (int d = 0; d < In::kRank; ++d) words = words && (d == kKept - 1 || in.strides[d] % kVec == 0);
    if (words && space.rows >= kPartLanes * kVec) return detail::launch_parts<R, kVec, true>(ctx, space, in, out, correction, workspace);
    return detail::launch_parts<R, 1, true>(ctx, space, in, out, correction, workspace);
  } else {
    constexpr int kVec = kReduced == 1 && In::kInner == Inner::unit ? vector_width<In>() : 1;
    return detail::launch_parts<R, kVec, false>(ctx, space, in, out, correction, workspace);
  }
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_REDUCE_SPLIT_CUH_
