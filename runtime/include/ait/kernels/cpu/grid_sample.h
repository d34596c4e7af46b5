/// @file grid_sample.h
/// @brief An image sampled at the places of a grid.
#ifndef AIT_KERNELS_CPU_GRID_SAMPLE_H_
#define AIT_KERNELS_CPU_GRID_SAMPLE_H_

#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/grid.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief y [batch, places, channels] = x at `grid` [batch, places, 2], whose places are (across, down), from -1 to 1. Any strides.
template <ResizeMode kMode, GridOutside kOutside, class T>
int32_t grid_sample(const Context&, const GridShape& shape, const SpatialTensor<const T>& x, const SpatialTensor<const T>& grid,
                    const SpatialTensor<T>& y) {
  using A = compute_t<T>;
  const int64_t sizes[3] = {shape.batch, shape.places[0], shape.places[1]}, tasks = sizes[0] * sizes[1] * sizes[2];
  parallel_for(tasks, tasks * shape.channels >= kParallelElements / 8, [=](int64_t task) {
    int64_t at[3];
    coordinates<3>(task, sizes, at);
    const T* const place = grid.at(at[0], 0, at[1], at[2]);
    T* const to = y.at(at[0], 0, at[1], at[2]);
    const A across = static_cast<A>(place[0]), down = static_cast<A>(place[grid.strides[4]]);
    A sums[kBlock];
    for (int64_t c0 = 0; c0 < shape.channels; c0 += kBlock) {
      const int64_t count = shape.channels - c0 < kBlock ? shape.channels - c0 : kBlock;
      for (int64_t c = 0; c < count; ++c) sums[c] = A(0);
      each_of_grid<kMode, kOutside>(shape, x, at[0], across, down, [&](const T* from, A weight) {
        const T* const first = from + c0 * x.strides[4];
        if (x.strides[4] == 1) {
#pragma omp simd
          for (int64_t c = 0; c < count; ++c) sums[c] += weight * static_cast<A>(first[c]);
        } else {
          for (int64_t c = 0; c < count; ++c) sums[c] += weight * static_cast<A>(first[c * x.strides[4]]);
        }
      });
      for (int64_t c = 0; c < count; ++c) to[(c0 + c) * y.strides[4]] = static_cast<T>(sums[c]);
    }
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_GRID_SAMPLE_H_
