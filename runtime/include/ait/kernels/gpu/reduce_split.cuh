/// @file reduce_split.cuh
/// @brief Reductions of many elements to few results, by two launches: `reduce_parts`, of which each block reduces a part of what belongs to a
/// result, then `join_parts`, of which a block joins the parts of each result. Sums are taken in one order for a number of multiprocessors, so
/// results are the same in every run.
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

/// @brief The partial result of some elements: their sum or extreme.
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

/// Numbers in the buffer between the launches that make one part.
template <class R>
inline constexpr size_t kNumbers = R::kCentred ? 3 : 1;

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
/// @brief How a reduction is split, the same for both launches: blocks of `kVec` or of one neighbouring result a thread (`wide`), how many
/// blocks it takes to see each result once, and how many `parts` there are of each result.
template <int kVec, bool kColumns, int kKept, int kReduced>
struct Split {
  RowSpace<kKept, kReduced> space;
  bool wide;
  int64_t groups, parts;

  template <size_t kRank, class In>
  static Split of(const int64_t (&sizes)[kRank], const In& in) {
    static_assert(kRank == kKept + kReduced, "kept dims and reduced ones");
    Split s;
    s.space.rows = s.space.length = 1;
    for (int d = 0; d < kKept; ++d) s.space.rows *= s.space.outer[d] = sizes[d];
    for (int d = 0; d < kReduced; ++d) s.space.length *= s.space.row[d] = sizes[kKept + d];
    s.wide = true;
    if (kColumns) {
      s.wide = reinterpret_cast<uintptr_t>(in.data) % (sizeof(typename In::Value) * kVec) == 0 && s.space.outer[kKept - 1] % kVec == 0;
      for (int d = 0; d < In::kRank; ++d) s.wide = s.wide && (d == kKept - 1 || in.strides[d] % kVec == 0);
      s.wide = s.wide && s.space.rows >= kPartLanes * kVec;
    }
    const int64_t side = kPartLanes * (s.wide ? kVec : 1);
    s.groups = kColumns ? (s.space.rows + side - 1) / side : s.space.rows;
    const int64_t room = int64_t(multiprocessors()) * kPartBlocks, most = room < kMostParts ? room : kMostParts;
    const int64_t wanted = s.groups > 0 ? most / s.groups : 0, useful = s.space.length / (kColumns ? 8 * kPartRows : kVec * kPartThreads);
    const int64_t fewer = wanted < useful ? wanted : useful;
    s.parts = fewer < 1 ? 1 : fewer;
    return s;
  }
};

/// Neighbours that a thread reads at once: results side by side, or elements of one.
template <bool kColumns, int kReduced, class In>
constexpr int split_vector() {
  if constexpr (kColumns) {
    return sizeof(typename In::Value) <= 4 ? 4 : 2;
  } else {
    return kReduced == 1 && In::kInner == Inner::unit ? vector_width<In>() : 1;
  }
}

template <bool kColumns, int kKept, size_t kRank, class In>
using split_t = Split<split_vector<kColumns, int(kRank) - kKept, In>(), kColumns, kKept, int(kRank) - kKept>;
}  // namespace detail

/// @brief The first launch: the parts of each result of `join_parts`.
/// @param parts a buffer in the workspace, declared by `ait_mlir/lowering/kernels/reduce.py: SplitReduce.between`
template <class R, int kKept, bool kColumns, size_t kRank, class In, class Number>
int32_t reduce_parts(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, Number* parts) {
  using P = detail::part_t<R, In>;
  static_assert(sizeof(P) == detail::kNumbers<R> * sizeof(Number), "the buffer holds numbers of the accumulator's size");
  constexpr int kReduced = static_cast<int>(kRank) - kKept, kVec = detail::split_vector<kColumns, kReduced, In>();
  const auto split = detail::split_t<kColumns, kKept, kRank, In>::of(sizes, in);
  if (split.space.rows <= 0) return 0;
  P* const found = reinterpret_cast<P*>(parts);
  LaunchConfig config;
  config.block = dim3(kPartThreads);
  config.grid = dim3(grid_size(split.groups * split.parts));
  config.dependent = true;
  if constexpr (kColumns) {
    if (split.wide) return launch(ctx, config, reduce_part_columns_kernel<R, kVec, kKept, kReduced, In, P>, split.space, in, split.parts, found);
    return launch(ctx, config, reduce_part_columns_kernel<R, 1, kKept, kReduced, In, P>, split.space, in, split.parts, found);
  } else {
    return launch(ctx, config, reduce_part_rows_kernel<R, kVec, kKept, kReduced, In, P>, split.space, in, split.parts, found);
  }
}

/// @brief The second launch: out = R over the dims of `sizes` from kKept on, where there are few results; `out` has stride 0 along them.
/// @tparam kColumns whether the last kept dim, not the last reduced one, has neighbours in memory
/// @param parts what `reduce_parts` wrote for the same sizes and operand
/// @param correction what Var takes off the number of elements that it divides by
template <class R, int kKept, bool kColumns, size_t kRank, class In, class Number, class Out>
int32_t join_parts(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, const Number* parts, const Out& out, double correction) {
  using P = detail::part_t<R, In>;
  static_assert(sizeof(P) == detail::kNumbers<R> * sizeof(Number), "the buffer holds numbers of the accumulator's size");
  const P* const found = reinterpret_cast<const P*>(parts);
  constexpr int kReduced = static_cast<int>(kRank) - kKept;
  const auto split = detail::split_t<kColumns, kKept, kRank, In>::of(sizes, in);
  if (split.space.rows <= 0) return 0;
  LaunchConfig config;
  config.block = dim3(kPartThreads);
  config.grid = dim3(grid_size(split.space.rows));
  config.dependent = true;
  // Parts of one result lie side by side, or those of neighbouring results do.
  const int64_t step = kColumns ? split.space.rows : 1, next = kColumns ? 1 : split.parts;
  return launch(ctx, config, reduce_join_kernel<R, kKept, kReduced, typename In::Value, Out, P>, split.space, found, split.parts, step, next, out,
                correction);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_REDUCE_SPLIT_CUH_
