/// @file group_moments.cuh
/// @brief The statistics of groups of channels, and how threads join them.
#ifndef AIT_KERNELS_GPU_GROUP_MOMENTS_CUH_
#define AIT_KERNELS_GPU_GROUP_MOMENTS_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"

namespace ait::gpu {

/// @brief The number, the mean, and the sum of the squares of the differences from it, of some elements.
struct GroupMoments {
  float count, mean, squares;
};

namespace detail {
/// Joins what `read(i)` gives for i from `begin` to `end`, over the lanes of a warp; every lane gets the result. No part is joined to another by
/// itself, so that there is one division.
template <class Read>
__device__ __forceinline__ GroupMoments join_moments_of(int begin, int end, Read read) {
  const int lane = static_cast<int>(threadIdx.x % kWarpSize);
  float elements = 0.f, sum = 0.f;
#pragma unroll 4
  for (int i = begin + lane; i < end; i += kWarpSize) {
    const GroupMoments part = read(i);
    elements += part.count;
    sum += part.count * part.mean;
  }
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    elements += shuffle_xor(elements, mask);
    sum += shuffle_xor(sum, mask);
  }
  const float mean = elements > 0.f ? sum / elements : 0.f;
  float squares = 0.f;
#pragma unroll 4
  for (int i = begin + lane; i < end; i += kWarpSize) {
    const GroupMoments part = read(i);
    squares += part.squares + part.count * (part.mean - mean) * (part.mean - mean);
  }
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) squares += shuffle_xor(squares, mask);
  return {elements, mean, squares};
}

/// Adds elements with a mean of their own (Chan, Golub and LeVeque, 1979).
__device__ __forceinline__ void join_moments_to(GroupMoments& whole, const GroupMoments& part) {
  const float count = whole.count + part.count, difference = part.mean - whole.mean;
  const float share = count > 0.f ? part.count / count : 0.f;
  whole.mean += difference * share;
  whole.squares += part.squares + difference * difference * (whole.count * share);
  whole.count = count;
}

/// Adds up the channels of a thread by group: `kSmall` channels each, or, where that is 0, the first `split` and the rest.
template <int kSmall, int kVec, int kOwn>
__device__ __forceinline__ void add_by_group(const float (&channels)[kVec], int split, float (&groups)[kOwn]) {
#pragma unroll
  for (int g = 0; g < kOwn; ++g) groups[g] = 0.f;
#pragma unroll
  for (int j = 0; j < kVec; ++j) {
    if constexpr (kSmall > 0) {
      groups[j / kSmall] += channels[j];
    } else {
      groups[0] += j < split ? channels[j] : 0.f;
      groups[1] += j < split ? 0.f : channels[j];
    }
  }
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_GROUP_MOMENTS_CUH_
