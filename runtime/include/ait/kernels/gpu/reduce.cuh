/// @file reduce.cuh
/// @brief Sums, means, extremes and variances over any dims.
///
/// Where the reduced elements are neighbours, a warp or a block has a result, or a cluster of blocks where there are few and long ones. Else a block has as many results as a warp has lanes, which
/// are neighbours, and its warps share the reduced elements; few long columns are shared by the blocks of a cluster.
#ifndef AIT_KERNELS_GPU_REDUCE_CUH_
#define AIT_KERNELS_GPU_REDUCE_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/cluster.cuh"
#include "ait/kernels/gpu/row_group.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/kernels/reduction.h"

namespace ait::gpu {

#if defined(AIT_CUDA)
template <int kCluster>
__device__ __forceinline__ float2 part_of_cluster(const float* part) {
  cluster_barrier();
  return load_cluster_float2(shared_address(part), threadIdx.x % kCluster);
}
#endif

namespace detail {
template <class R>
struct Join {
  template <class A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    return R::join(a, b);
  }
};
}  // namespace detail

/// Blocks of a cluster that share what there is to reduce for few results.
inline constexpr int kSharingBlocks = 8;

/// A group of threads, a cluster of blocks, a block or a part of a warp, has a result. The row of a shifted one is cut where it is aligned; the elements around are
/// read one by one.
template <class R, int kGroup, int kCluster, int kVec, bool kShifted, int kKept, int kReduced, class In, class Out>
__global__ void __launch_bounds__(kGroup < 256 ? 256 : kGroup) reduce_rows_kernel(RowSpace<kKept, kReduced> space, In in, Out out, double correction) {
  using T = typename In::Value;
  using C = typename In::Compute;
  using A = typename R::template Acc<C>;
  using Reducer = GroupReducer<A, kGroup, kCluster>;
  using Read = detail::RowRead<In, kVec, kShifted ? detail::Cut::same : detail::Cut::whole>;
  constexpr int kAhead = 4, kLanes = kGroup * kCluster;
  Reducer reducer;
  if constexpr (kCluster > 1) {
    AIT_DYNAMIC_SHARED(16, row_shared);
    reducer.parts = reinterpret_cast<float*>(row_shared);
    reducer.shared = reinterpret_cast<A*>(row_shared + 16);
  } else {
    __shared__ A shared[Reducer::kShared];
    reducer.shared = shared;
  }
  wait_for_previous();
  allow_next();
  const int lane = blockIdx.x % kCluster * kGroup + threadIdx.x % kGroup;
  constexpr int kSpan = kGroup < kWarpSize ? kWarpSize : kGroup;  // a warp walks on as one, for its lanes take part in each other's shuffles
  const int64_t rows_of_block = blockDim.x / kGroup, step = gridDim.x / kCluster * rows_of_block;
  for (int64_t base = blockIdx.x / kCluster * rows_of_block + threadIdx.x / kSpan * (kSpan / kGroup); base < space.rows; base += step) {
    const int64_t index = base + threadIdx.x % kSpan / kGroup;
    const bool present = index < space.rows;
    const int64_t length = present ? space.length : 0;
    int64_t coordinate[kKept];
    coordinates<kKept>(present ? index : base, space.outer, coordinate);
    const In row = detail::at_row(in, coordinate);
    const int64_t most = kShifted ? (kVec - reinterpret_cast<uintptr_t>(row.data) % 16 / sizeof(T)) % kVec : 0;
    const int64_t head = most < length ? most : length, chunks = (length - head) / kVec, tail = length - head - chunks * kVec;
    /// Visits all elements; those around the aligned chunks of kVec are read first and visited last.
    const auto each = [&](auto visit) {
      constexpr int kEdges = kShifted ? (2 * (kVec - 1) + kLanes - 1) / kLanes : 0;
      T edges[kEdges > 0 ? kEdges : 1];
      const auto edge = [&](int slot) {
        const int64_t e = slot * kLanes + lane;
        return e < head ? e : e < head + tail ? e + chunks * kVec : int64_t(-1);
      };
#pragma unroll
      for (int slot = 0; slot < kEdges; ++slot) {
        if (edge(slot) >= 0) edges[slot] = row.data[edge(slot)];
      }
      for (int64_t first = lane; first < chunks; first += kLanes * kAhead) {
        Read reads[kAhead];
#pragma unroll
        for (int u = 0; u < kAhead; ++u) {
          const int64_t i = (first + u * kLanes) * kVec + head;
          if (first + u * kLanes < chunks) reads[u].read(row, row.data + detail::row_offset<kReduced>(row, i, space.row), 0);
        }
#pragma unroll
        for (int u = 0; u < kAhead; ++u) {
          if (first + u * kLanes >= chunks) continue;
          const auto x = reads[u].elements(0);
#pragma unroll
          for (int j = 0; j < kVec; ++j) visit(static_cast<A>(convert<C>(x.v[Read::kSplat ? 0 : j])));
        }
      }
#pragma unroll
      for (int slot = 0; slot < kEdges; ++slot) {
        if (edge(slot) >= 0) visit(static_cast<A>(convert<C>(edges[slot])));
      }
    };
    A total[1] = {R::template start<T, A>()};
    each([&](A x) { total[0] = R::join(total[0], x); });
    reducer.reduce(total, detail::Join<R>{});
    const A count = static_cast<A>(space.length);
    A result;
    if constexpr (R::kCentred) {
      const A mean = total[0] / count;
      A moments[2] = {A(0), A(0)};
      each([&](A x) {
        moments[0] += x - mean;
        moments[1] += (x - mean) * (x - mean);
      });
      reducer.reduce(moments, Plus{});
      result = R::finish_centred(moments[0], moments[1], count, correction);
    } else {
      result = R::finish(total[0], count, correction);
    }
    if (lane == 0 && present) *detail::at_row(out, coordinate).data = convert<typename Out::Value>(static_cast<C>(result));
  }
#if defined(AIT_CUDA)
  if constexpr (kCluster > 1) cluster_barrier();  // the others may still read what this block has reduced
#endif
}

/// Short columns, of which so many 16-byte words lie next to each other that they keep a card busy: few warps share a column, as joining them
/// would take longer than what they read.
inline constexpr int64_t kShortColumns = 256, kManyColumns = 2048;

/// Warps of a block of reduce_columns_kernel: where there is much to reduce, as many as a block may have.
inline constexpr int kFewWarps = 8, kManyWarps = 1024 / kWarpSize;

/// Block: `kVec` neighbouring results a lane, and `kWarps` warps that share the reduced elements.
template <class R, int kVec, int kWarps, int kKept, int kReduced, class In, class Out>
__global__ void __launch_bounds__(kWarpSize* kWarps) reduce_columns_kernel(RowSpace<kKept, kReduced> space, In in, Out out, double correction) {
  using T = typename In::Value;
  using C = typename In::Compute;
  using A = typename R::template Acc<C>;
  constexpr int kAhead = 8, kColumns = kWarpSize * kVec;
  __shared__ A shared[R::kCentred ? 2 : 1][kWarps][kColumns];
  wait_for_previous();
  allow_next();
  const int lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kColumns; first < space.rows; first += static_cast<int64_t>(gridDim.x) * kColumns) {
    const bool present = first + lane * kVec < space.rows;
    int64_t coordinate[kKept];
    coordinates<kKept>(present ? first + lane * kVec : first, space.outer, coordinate);
    const In row = detail::at_row(in, coordinate);
    const auto each = [&](auto visit) {
      for (int64_t base = warp; base < space.length; base += kWarps * kAhead) {
        T raws[kAhead][kVec];
#pragma unroll
        for (int u = 0; u < kAhead; ++u) {
          const int64_t i = base + u * kWarps;
          if (i < space.length) load<kVec>(row.data + detail::row_offset<kReduced>(row, i, space.row), raws[u]);
        }
#pragma unroll
        for (int u = 0; u < kAhead; ++u) {
          if (base + u * kWarps >= space.length) continue;
#pragma unroll
          for (int j = 0; j < kVec; ++j) visit(static_cast<A>(convert<C>(raws[u][j])), j);
        }
      }
    };
    /// What the warps have together, of each of the lane's results.
    const auto join_warps = [&](int plane, A (&values)[kVec], auto join) {
#pragma unroll
      for (int j = 0; j < kVec; ++j) shared[plane][warp][lane * kVec + j] = values[j];
      __syncthreads();
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        values[j] = shared[plane][0][lane * kVec + j];
        for (int w = 1; w < kWarps; ++w) values[j] = join(values[j], shared[plane][w][lane * kVec + j]);
      }
      __syncthreads();
    };
    A total[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) total[j] = R::template start<T, A>();
    each([&](A x, int j) { total[j] = R::join(total[j], x); });
    join_warps(0, total, detail::Join<R>{});
    const A count = static_cast<A>(space.length);
    A result[kVec];
    if constexpr (R::kCentred) {
      A mean[kVec], differences[kVec], squares[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) mean[j] = total[j] / count, differences[j] = squares[j] = A(0);
      each([&](A x, int j) {
        differences[j] += x - mean[j];
        squares[j] += (x - mean[j]) * (x - mean[j]);
      });
      join_warps(0, differences, Plus{});
      join_warps(1, squares, Plus{});
#pragma unroll
      for (int j = 0; j < kVec; ++j) result[j] = R::finish_centred(differences[j], squares[j], count, correction);
    } else {
#pragma unroll
      for (int j = 0; j < kVec; ++j) result[j] = R::finish(total[j], count, correction);
    }
    if (warp == 0 && present) {
      const Out to = detail::at_row(out, coordinate);
#pragma unroll
      for (int j = 0; j < kVec; ++j) to.data[j * out.strides[kKept - 1]] = convert<typename Out::Value>(static_cast<C>(result[j]));
    }
  }
}

#if defined(AIT_CUDA)
/// Few long columns: each warp of a cluster reads `kVec` neighbouring results a lane, words of 16 bytes, of a part of what there is to reduce.
template <class R, int kVec, int kKept, int kReduced, class In, class Out>
__global__ void __launch_bounds__(1024) reduce_shared_columns_kernel(RowSpace<kKept, kReduced> space, In in, Out out, double correction) {
  using T = typename In::Value;
  using C = typename In::Compute;
  using A = typename R::template Acc<C>;
  static_assert(std::is_same<A, float>::value && !R::kCentred && kVec % 4 == 0, "blocks exchange one float a result, four at a time");
  constexpr int kAhead = 4, kColumns = kWarpSize * kVec, kWarps = kManyWarps, kAllWarps = kWarps * kSharingBlocks;
  AIT_DYNAMIC_SHARED(16, column_shared);
  A* parts = reinterpret_cast<A*>(column_shared);
  wait_for_previous();
  allow_next();
  const int lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize, rank = blockIdx.x % kSharingBlocks;
  const int64_t step = static_cast<int64_t>(gridDim.x / kSharingBlocks) * kColumns;
  for (int64_t first = static_cast<int64_t>(blockIdx.x / kSharingBlocks) * kColumns; first < space.rows; first += step) {
    int64_t coordinate[kKept];
    A total[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) total[j] = R::template start<T, A>();
    if (first + lane * kVec < space.rows) {
      coordinates<kKept>(first + lane * kVec, space.outer, coordinate);
      const In row = detail::at_row(in, coordinate);
      const auto place = [&](int64_t i) { return row.data + detail::row_offset<kReduced>(row, i, space.row); };
      int64_t i = rank * kWarps + warp;
      for (; i + (kAhead - 1) * kAllWarps < space.length; i += kAhead * kAllWarps) {
        T raws[kAhead][kVec];
#pragma unroll
        for (int u = 0; u < kAhead; ++u) load<kVec>(place(i + u * kAllWarps), raws[u]);
#pragma unroll
        for (int j = 0; j < kVec; ++j) {
          A some[kAhead];  // in pairs, so that sums are exact to fewer roundings
#pragma unroll
          for (int u = 0; u < kAhead; ++u) some[u] = static_cast<A>(convert<C>(raws[u][j]));
#pragma unroll
          for (int step = 1; step < kAhead; step *= 2) {
#pragma unroll
            for (int u = 0; u < kAhead; u += 2 * step) some[u] = R::join(some[u], some[u + step]);
          }
          total[j] = R::join(total[j], some[0]);
        }
      }
      for (; i < space.length; i += kAllWarps) {
        T raws[kVec];
        load<kVec>(place(i), raws);
#pragma unroll
        for (int j = 0; j < kVec; ++j) total[j] = R::join(total[j], static_cast<A>(convert<C>(raws[j])));
      }
    }
    float4* const own = reinterpret_cast<float4*>(parts + warp * kColumns + lane * kVec);
#pragma unroll
    for (int j = 0; j < kVec; j += 4) own[j / 4] = float4{total[j], total[j + 1], total[j + 2], total[j + 3]};
    __syncthreads();
    for (int column = threadIdx.x; column < kColumns; column += kWarps * kWarpSize) {
      A joined[4];
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        const A part = parts[w * kColumns + column];
        joined[w % 4] = w < 4 ? part : R::join(joined[w % 4], part);
      }
      parts[column] = R::join(R::join(joined[0], joined[1]), R::join(joined[2], joined[3]));
    }
    cluster_barrier();
    const int64_t pair = first + 2 * threadIdx.x;
    if (rank == 0 && 2 * threadIdx.x < kColumns && pair < space.rows) {
      float2 of_block[kSharingBlocks];
#pragma unroll
      for (int r = 0; r < kSharingBlocks; ++r) of_block[r] = load_cluster_float2(shared_address(parts + 2 * threadIdx.x), static_cast<uint32_t>(r));
      A joined[2] = {of_block[0].x, of_block[0].y};
#pragma unroll
      for (int r = 1; r < kSharingBlocks; ++r) {
        joined[0] = R::join(joined[0], of_block[r].x);
        joined[1] = R::join(joined[1], of_block[r].y);
      }
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        coordinates<kKept>(pair + j, space.outer, coordinate);
        const A result = R::finish(joined[j], static_cast<A>(space.length), correction);
        if (pair + j < space.rows) *detail::at_row(out, coordinate).data = convert<typename Out::Value>(static_cast<C>(result));
      }
    }
    cluster_barrier();  // before the next results take their place, or the block ends
  }
}
#endif

namespace detail {
template <class R, int kGroup, int kVec, bool kShifted, int kCluster = 1, int kKept, int kReduced, class In, class Out>
int32_t launch_reduce(const Context& ctx, const RowSpace<kKept, kReduced>& space, const In& in, const Out& out, double correction) {
  LaunchConfig config;
  config.dependent = true;
  config.block = dim3(kGroup < 256 ? 256 : kGroup);
  config.grid = dim3(ceil_div(space.rows, config.block.x / kGroup, 1 << 20) * kCluster);
  config.cluster = kCluster;
  if constexpr (kCluster > 1) config.shared_bytes = 16 + sizeof(float) * GroupReducer<float, kGroup, kCluster>::kShared;
  return launch(ctx, config, reduce_rows_kernel<R, kGroup, kCluster, kVec, kShifted, kKept, kReduced, In, Out>, space, in, out, correction);
}

template <class R, int kVec, int kWarps, int kKept, int kReduced, class In, class Out>
int32_t launch_columns(const Context& ctx, const RowSpace<kKept, kReduced>& space, const In& in, const Out& out, double correction) {
  LaunchConfig config;
  config.dependent = true;
  config.block = dim3(kWarpSize * kWarps);
  config.grid = dim3(ceil_div(space.rows, kWarpSize * kVec, 1 << 20));
  return launch(ctx, config, reduce_columns_kernel<R, kVec, kWarps, kKept, kReduced, In, Out>, space, in, out, correction);
}

#if defined(AIT_CUDA)
template <class R, int kVec, int kKept, int kReduced, class In, class Out>
int32_t launch_shared_columns(const Context& ctx, const RowSpace<kKept, kReduced>& space, const In& in, const Out& out, double correction) {
  LaunchConfig config;
  config.dependent = true;
  config.block = dim3(kWarpSize * kManyWarps);
  config.grid = dim3(ceil_div(space.rows, kWarpSize * kVec, 1 << 16) * kSharingBlocks);
  config.cluster = kSharingBlocks;
  config.shared_bytes = sizeof(float) * kManyWarps * kWarpSize * kVec;
  return launch(ctx, config, reduce_shared_columns_kernel<R, kVec, kKept, kReduced, In, Out>, space, in, out, correction);
}
#endif

/// Rows that leave the card idle unless clusters share them, and the chunks that make this worth it.
inline constexpr int64_t kFewRowsOfBlocks = 128, kLongOfBlocks = 16384;

/// As few threads a row as read it in a few turns.
template <class R, int kVec, bool kShifted, int kKept, int kReduced, class In, class Out>
int32_t launch_reduce_rows(const Context& ctx, const RowSpace<kKept, kReduced>& space, const In& in, const Out& out, double correction) {
  const int64_t chunks = (space.length + kVec - 1) / kVec;
  if (kVec > 1 && chunks <= 16) return launch_reduce<R, 8, kVec, kShifted>(ctx, space, in, out, correction);
  if (chunks <= 1024 / kVec) return launch_reduce<R, kWarpSize, kVec, kShifted>(ctx, space, in, out, correction);
  if constexpr (kHasClusters && std::is_same<typename R::template Acc<typename In::Compute>, float>::value) {
    if (space.rows <= kFewRowsOfBlocks && chunks >= kLongOfBlocks) {
      return launch_reduce<R, 1024, kVec, kShifted, kSharingBlocks>(ctx, space, in, out, correction);
    }
  }
  return launch_reduce<R, 256, kVec, kShifted>(ctx, space, in, out, correction);
}
}  // namespace detail

/// @brief out = R over the dims of `sizes` from kKept on; `out` has stride 0 along them.
/// @tparam kColumns whether the last kept dim, not the last reduced one, has neighbours in memory
/// @param correction what Var takes off the number of elements that it divides by
template <class R, int kKept, bool kColumns, size_t kRank, class In, class Out>
int32_t reduce(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, const Out& out, double correction) {
  constexpr int kReduced = static_cast<int>(kRank) - kKept;
  RowSpace<kKept, kReduced> space;
  space.rows = space.length = 1;
  for (int d = 0; d < kKept; ++d) space.rows *= space.outer[d] = sizes[d];
  for (int d = 0; d < kReduced; ++d) space.length *= space.row[d] = sizes[kKept + d];
  if (space.rows <= 0) return 0;
  if constexpr (kColumns) {
    constexpr int kVec = sizeof(typename In::Value) <= 2 ? 4 / sizeof(typename In::Value) : 1;
    const auto words = [&](int count) {
      bool aligned = reinterpret_cast<uintptr_t>(in.data) % (sizeof(typename In::Value) * count) == 0 && space.outer[kKept - 1] % count == 0;
      for (int d = 0; d < In::kRank; ++d) aligned = aligned && (d == kKept - 1 || in.strides[d] % count == 0);
      return aligned;
    };
    const bool aligned = words(kVec);
#if defined(AIT_CUDA)
    if constexpr (kHasClusters && !R::kCentred && std::is_same<typename R::template Acc<typename In::Compute>, float>::value) {
      constexpr int kWide = vector_width<In>();
      constexpr int64_t kFewBlocks = 512, kLong = 2 * kSharingBlocks * kManyWarps;
      if (space.length >= kLong && space.rows <= kFewBlocks * kWarpSize * kWide / kSharingBlocks && words(kWide)) {
        return detail::launch_shared_columns<R, kWide>(ctx, space, in, out, correction);
      }
    }
#endif
    if constexpr (vector_width<In>() > kVec) {
      constexpr int kWide = vector_width<In>();
      if (space.length <= kShortColumns && space.rows >= kManyColumns * kWide && words(kWide)) {
        return detail::launch_columns<R, kWide, kFewWarps>(ctx, space, in, out, correction);
      }
    }
    if (aligned && space.length >= kManyWarps) return detail::launch_columns<R, kVec, kManyWarps>(ctx, space, in, out, correction);
    return detail::launch_columns<R, 1, kFewWarps>(ctx, space, in, out, correction);
  } else {
    constexpr int kVec = vector_width<In>();
    if constexpr (kReduced == 1 && In::kInner == Inner::unit && kVec > 1) {
      if (may_access<kVec>(in) && space.length % kVec == 0) return detail::launch_reduce_rows<R, kVec, false>(ctx, space, in, out, correction);
      return detail::launch_reduce_rows<R, kVec, true>(ctx, space, in, out, correction);
    } else {
      return detail::launch_reduce_rows<R, 1, false>(ctx, space, in, out, correction);
    }
  }
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_REDUCE_CUH_
