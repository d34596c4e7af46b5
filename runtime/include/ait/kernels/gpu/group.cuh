/// @file group.cuh
/// @brief Reductions over a group of threads: a part of a warp, a warp, a block, or the blocks of a cluster.
#ifndef AIT_KERNELS_GPU_GROUP_CUH_
#define AIT_KERNELS_GPU_GROUP_CUH_

#include <stdint.h>

#include <type_traits>

#include "ait/gpu/gpu.h"

namespace ait::gpu {

struct Plus {
  template <class C>
  __device__ __forceinline__ C operator()(C a, C b) const {
    return a + b;
  }
};
struct Larger {
  template <class C>
  __device__ __forceinline__ C operator()(C a, C b) const {
    return a > b ? a : b;
  }
};

#if defined(AIT_CUDA)
/// @brief Waits for the `kCluster` blocks of the cluster; lane l gets what block l % `kCluster` has in its `part`. reduce.cuh defines it: most
/// kernels with groups have no clusters, and their code does not depend on the architecture.
template <int kCluster>
__device__ __forceinline__ float2 part_of_cluster(const float* part);
#endif

/// @brief Reduces over `kGroup` threads; every thread gets the result. A group larger than a warp is the whole block, and all must call.
///
/// Where `kCluster` is more than 1, over the blocks of a cluster, which must not end before all have read (`cluster_barrier`).
template <class C, int kGroup, int kCluster = 1>
struct GroupReducer {
  static constexpr int kWarps = (kGroup + kWarpSize - 1) / kWarpSize;
  static constexpr int kShared = 4 * kWarps;
  C* shared;     ///< kShared values, used in turn, so that one barrier a reduction is enough
  float* parts;  ///< 4 values of dynamic shared memory for the other blocks of a cluster, aligned to 8 bytes, used in turn
  int turn = 0;

  /// Reduces `kCount` values at once, at most 2.
  template <int kCount, class Combine>
  __device__ __forceinline__ void reduce(C (&values)[kCount], Combine combine) {
    static_assert(kCount <= 2, "there is room for two");
    constexpr int kLanes = kGroup < kWarpSize ? kGroup : kWarpSize;
#pragma unroll
    for (int mask = kLanes / 2; mask > 0; mask /= 2) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) values[k] = combine(values[k], shuffle_xor(values[k], mask));
    }
    if constexpr (kWarps > 1) {
      C* slots = shared + turn * 2 * kWarps;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (threadIdx.x % kWarpSize == 0) slots[k * kWarps + threadIdx.x / kWarpSize] = values[k];
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        values[k] = slots[k * kWarps];
#pragma unroll
        for (int w = 1; w < kWarps; ++w) values[k] = combine(values[k], slots[k * kWarps + w]);
      }
    }
#if defined(AIT_CUDA)
    if constexpr (kCluster > 1) {
      static_assert(std::is_same<C, float>::value, "blocks exchange floats");
      float* part = parts + turn * 2;
      if (threadIdx.x == 0) {
        part[0] = values[0];
        part[1] = values[kCount - 1];
      }
      const float2 of_block = part_of_cluster<kCluster>(part);
      values[0] = of_block.x;
      values[kCount - 1] = of_block.y;
#pragma unroll
      for (int mask = kCluster / 2; mask > 0; mask /= 2) {
#pragma unroll
        for (int k = 0; k < kCount; ++k) values[k] = combine(values[k], shuffle_xor(values[k], mask));
      }
    }
#endif
    turn ^= 1;
  }
};

/// @brief The mean of `kCount` values a thread, and the sum of the squares of their differences from it, over a group (Chan, Golub and LeVeque, 1979).
///
/// Every thread has as many values. One reduction, where sums need two, the second of which waits for the first.
template <int kCount, class C, int kGroup>
__device__ __forceinline__ void join_moments(GroupReducer<C, kGroup>& reducer, C& mean, C& squares) {
  constexpr int kSpan = kGroup < kWarpSize ? kGroup : kWarpSize;
#pragma unroll
  for (int lanes = 1; lanes < kSpan; lanes *= 2) {
    const C other = shuffle_xor(mean, lanes), difference = other - mean;
    squares = (squares + shuffle_xor(squares, lanes)) + difference * difference * (C(lanes * kCount) / C(2));
    mean = (mean + other) / C(2);
  }
  constexpr int kWarps = GroupReducer<C, kGroup>::kWarps;
  if constexpr (kWarps > 1) {
    C* slots = reducer.shared + reducer.turn * 2 * kWarps;
    reducer.turn ^= 1;
    if (threadIdx.x % kWarpSize == 0) {
      slots[threadIdx.x / kWarpSize] = mean;
      slots[kWarps + threadIdx.x / kWarpSize] = squares;
    }
    __syncthreads();
    const C first = slots[0];
    C shift = 0;
#pragma unroll
    for (int w = 1; w < kWarps; ++w) shift += slots[w] - first;
    shift /= C(kWarps);
    mean = first + shift;
    squares = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const C difference = (slots[w] - first) - shift;
      squares += slots[kWarps + w] + difference * difference * C(kWarpSize * kCount);
    }
  }
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_GROUP_CUH_
