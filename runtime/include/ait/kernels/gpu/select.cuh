/// @file select.cuh
/// @brief The largest or smallest elements of rows and where they are: argmax and topk.
///
/// A block has a row and walks over it once for each element that is asked for: meant for few.
#ifndef AIT_KERNELS_GPU_SELECT_CUH_
#define AIT_KERNELS_GPU_SELECT_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/row_group.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/kernels/reduction.h"

namespace ait::gpu {

/// @brief An element and its place; place -1 is none, and comes after all.
template <bool kSmallest, bool kNanFirst, class C>
struct Placed {
  C value;
  int64_t place;

  __device__ __forceinline__ bool before(const Placed& other) const {
    if (place < 0 || other.place < 0) return place >= 0 && other.place < 0;
    if ((value != value) != (other.value != other.value)) return kNanFirst == (value != value);
    const bool above = kSmallest ? value < other.value : value > other.value, below = kSmallest ? other.value < value : other.value > value;
    return above || (!below && place < other.place);
  }
};

inline constexpr int kSelectThreads = 256;

template <bool kValues, bool kSmallest, bool kNanFirst, int kOuter, class In, class Values, class Indices>
__global__ void __launch_bounds__(kSelectThreads) select_kernel(RowSpace<kOuter, 1> space, In in, int64_t count, Values values, Indices indices) {
  using C = ait::detail::signed_acc_t<typename In::Compute>;
  using Best = Placed<kSmallest, kNanFirst, C>;
  constexpr int kWarps = kSelectThreads / kWarpSize;
  __shared__ C shared_values[kWarps];
  __shared__ int64_t shared_places[kWarps];
  wait_for_previous();
  allow_next();
  for (int64_t index = blockIdx.x; index < space.rows; index += gridDim.x) {
    int64_t coordinate[kOuter];
    coordinates<kOuter>(index, space.outer, coordinate);
    const In row = detail::at_row(in, coordinate);
    const int64_t step = row.strides[kOuter];
    Best last{C(0), -1};
    for (int64_t k = 0; k < count; ++k) {
      Best best{C(0), -1};
      for (int64_t i = threadIdx.x; i < space.length; i += kSelectThreads) {
        const Best x{static_cast<C>(convert<typename In::Compute>(row.data[i * step])), i};
        if ((k == 0 || last.before(x)) && x.before(best)) best = x;
      }
      for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
        const Best other{shuffle_xor(best.value, mask), shuffle_xor(best.place, mask)};
        if (other.before(best)) best = other;
      }
      __syncthreads();
      if (threadIdx.x % kWarpSize == 0) {
        shared_values[threadIdx.x / kWarpSize] = best.value;
        shared_places[threadIdx.x / kWarpSize] = best.place;
      }
      __syncthreads();
      best = {shared_values[0], shared_places[0]};
      for (int w = 1; w < kWarps; ++w) {
        const Best other{shared_values[w], shared_places[w]};
        if (other.before(best)) best = other;
      }
      last = best;
      if (threadIdx.x == 0) {
        const auto places = detail::at_row(indices, coordinate);
        places.data[k * places.strides[kOuter]] = static_cast<typename Indices::Value>(best.place);
        if constexpr (kValues) {
          const auto largest = detail::at_row(values, coordinate);
          largest.data[k * largest.strides[kOuter]] = row.data[best.place * step];
        }
      }
    }
  }
}

/// @brief The `count` largest elements along the last of `sizes`, in descending order, or if kSmallest the smallest, in ascending order: their
/// places in `indices` and, if kValues, themselves in `values`. NaN comes before any number if kNanFirst, else after; of equal ones the first comes
/// first.
/// @param values,indices have `count` elements along the last dim
template <bool kValues, bool kSmallest, bool kNanFirst, size_t kRank, class In, class Values, class Indices>
int32_t select(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, int64_t count, const Values& values, const Indices& indices) {
  constexpr int kOuter = static_cast<int>(kRank) - 1;
  RowSpace<kOuter, 1> space;
  space.rows = 1;
  for (int d = 0; d < kOuter; ++d) space.rows *= space.outer[d] = sizes[d];
  space.length = space.row[0] = sizes[kOuter];
  if (space.rows <= 0 || count <= 0) return 0;
  LaunchConfig config;
  config.block = dim3(kSelectThreads);
  config.grid = dim3(ceil_div(space.rows, 1, 1 << 20));
  config.dependent = true;
  return launch(ctx, config, select_kernel<kValues, kSmallest, kNanFirst, kOuter, In, Values, Indices>, space, in, count, values, indices);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SELECT_CUH_
