/// @file scatter.cuh
/// @brief Values combined with elements of a tensor by index along some of its dims, with the same bits in each run.
#ifndef AIT_KERNELS_GPU_SCATTER_CUH_
#define AIT_KERNELS_GPU_SCATTER_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/scatter_last.cuh"
#include "ait/kernels/gpu/scatter_rows.cuh"
#include "ait/kernels/gpu/scatter_sorted.cuh"
#include "ait/kernels/gpu/scatter_wide_rows.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/indexed_space.h"
#include "ait/kernels/operand.h"

namespace ait::gpu {

/// Each thread owns a range of the targets (the index tuples, row-major) of one column. It goes through all places of the column in order and
/// combines those of its range, so the result depends neither on atomics nor on the order of threads.
template <class Kind, int kSerial, int kRank, int kIndices, class Id, class T>
__global__ void __launch_bounds__(128) scatter_kernel(IndexedSpace<kRank, kIndices, Id> space, int64_t places, int64_t columns, int64_t targets,
                                                      int64_t ranges, const T* values, T* out, combined_t<Kind, T>* sums) {
  using A = combined_t<Kind, T>;
  constexpr bool kApart = !std::is_same_v<A, T>;
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < columns * ranges; i += stride) {
    const int64_t range = i / columns;
    const int64_t first = targets * range / ranges, last = targets * (range + 1) / ranges;
    int64_t coordinate[kRank], dense = 0, base = 0;
    coordinates<kRank - kSerial>(i - range * columns, space.sizes + kSerial, coordinate + kSerial);
#pragma unroll
    for (int d = kSerial; d < kRank; ++d) {
      dense += coordinate[d] * space.dense_strides[d];
      base += coordinate[d] * space.whole_strides[d];
    }
    if constexpr (kApart) {
      for (int64_t target = first; target < last; ++target) {
        int64_t index[kIndices], at = base;
        coordinates<kIndices>(target, space.extents, index);
        for (int k = 0; k < kIndices; ++k) at += index[k] * space.steps[k];
        sums[at] = convert<A>(out[at]);
      }
    }
    for (int64_t place = 0; place < places; ++place) {
      coordinates<kSerial>(place, space.sizes, coordinate);
      int64_t target = 0, at = base, from = dense;
      bool known = true;
#pragma unroll
      for (int k = 0; k < kIndices; ++k) {
        const int64_t found = space.index(k, coordinate, known);
        target = target * space.extents[k] + found;
        at += found * space.steps[k];
      }
      if (!known || target < first || target >= last) continue;
#pragma unroll
      for (int d = 0; d < kSerial; ++d) from += coordinate[d] * space.dense_strides[d];
      if constexpr (kApart) {
        sums[at] = Kind::template apply<A>(sums[at], convert<A>(values[from]));
      } else {
        out[at] = Kind::template apply<A>(out[at], values[from]);
      }
    }
    if constexpr (kApart) {
      for (int64_t target = first; target < last; ++target) {
        int64_t index[kIndices], at = base;
        coordinates<kIndices>(target, space.extents, index);
        for (int k = 0; k < kIndices; ++k) at += index[k] * space.steps[k];
        out[at] = convert<T>(sums[at]);
      }
    }
  }
}

/// @brief Combines values with the elements of `out` that a space names; values for one element are combined in row-major order.
///
/// Places of the first `kSerial` loops may name the same element; each step of these loops has one index tuple; along the others elements differ. Along
/// the next `kKeyed` loops indices differ, too; along the rest, the columns, they do not. If `Kind` rounds 16-bit floats, `out` is contiguous and `sums`
/// has room for as many elements. A place with an index outside of its dim is skipped.
/// @tparam K unsigned, for as many numbers as there are elements that indices can name
/// @tparam kLast whether many places replace elements without a sort
/// @param each as of `radix_sort`
/// @param workspace with kLast 4 bytes for each element of each row that indices can name; else of `radix_bytes` for the places of each row if these may
/// be more than kRadixTile
template <class Kind, int kSerial, int kKeyed, class K, bool kLast, int kRank, int kIndices, class Id, class T>
int32_t scatter(const Context& ctx, const IndexedSpace<kRank, kIndices, Id>& space, const T* values, T* out, combined_t<Kind, T>* sums,
                int each, void* workspace) {
  using Sorted = ScatterSpace<Kind, kSerial, kKeyed, kRank, kIndices, Id, T>;
  const Sorted sorted{space, values, out};
  const int64_t places = sorted.places(), columns = sorted.rows() * sorted.columns(), targets = sorted.targets();
  if (places <= 0 || columns <= 0 || targets <= 0) return 0;
  constexpr int64_t kThreads = 1 << 15;  // one range a thread, and each thread reads all places, so more threads would read more
  const int64_t wanted = columns < kThreads ? kThreads / columns : 1;
  const int64_t ranges = wanted < targets ? wanted : targets;
  constexpr int64_t kManyRows = 64;
  const bool neighbours = space.index_strides[0][kSerial + kKeyed - 1] == 1 && space.index_strides[0][kSerial - 1] != 1;  // indices of rows
  if (sorted.columns() == 1 && sorted.rows() >= kManyRows && places * 8 >= targets) {
    bool fits = false;
    if (!neighbours) {
      const int32_t status = detail::scatter_wide_rows(ctx, sorted, fits);
      if (fits) return status;
    }
    const int32_t status = detail::scatter_rows(ctx, sorted, neighbours, fits);
    if (fits) return status;
  }
  // Few places cost less than a sort; of a column for each thread, each place is read once.
  constexpr int64_t kFewPlaces = 64;
  constexpr int kVec = 16 / sizeof(T);
  const bool in_words = sorted.may_access(kVec);
  if constexpr (kLast) {
    static_assert(std::is_same_v<Kind, SetElement>, "the last value of each element");
    if (places > kFewPlaces) {
      if (in_words) return detail::scatter_last<kVec>(ctx, sorted, neighbours, workspace);
      return detail::scatter_last<1>(ctx, sorted, neighbours, workspace);
    }
  } else if (places > kFewPlaces && ranges > 1) {
    if (in_words) return detail::scatter_sorted<K, kVec>(ctx, sorted, each, workspace);
    return detail::scatter_sorted<K, 1>(ctx, sorted, each, workspace);
  }
  LaunchConfig config;
  config.block = dim3(128);
  config.grid = dim3(ceil_div(columns * ranges, config.block.x, 1 << 20));
  config.dependent = true;
  return launch(ctx, config, scatter_kernel<Kind, kSerial, kRank, kIndices, Id, T>, space, places, columns, targets, ranges, values, out, sums);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SCATTER_CUH_
