/// @file roi_align.h
/// @brief Features of regions, averaged over the samples of their bins.
#ifndef AIT_KERNELS_CPU_ROI_ALIGN_H_
#define AIT_KERNELS_CPU_ROI_ALIGN_H_

#include <stdint.h>
#include <stdio.h>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/roi.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief y [regions, bins, bins, channels], any strides. Fails if the image of a region is outside of the batch.
template <class T, class R, int kLevels>
int32_t roi_align(const Context& ctx, const RoiShape<T, R, kLevels>& shape, T* y, const int64_t (&strides)[4]) {
  using A = std::conditional_t<std::is_same_v<T, double> || std::is_same_v<R, double>, double, float>;
  if (shape.regions * shape.bins[0] * shape.bins[1] == 0) return 0;
  for (int64_t n = 0; n < shape.regions; ++n) {
    if (shape.template roi<A>(n).image >= 0) continue;
    char message[160];
    snprintf(message, sizeof message, "roi_align: region %lld is of image %g, which is outside of the batch of %lld", static_cast<long long>(n),
             static_cast<double>(shape.rois[n * shape.roi_strides[0]]), static_cast<long long>(shape.batch));
    return ctx.fail(message);
  }
  const int64_t tasks = shape.regions * shape.bins[0];
  parallel_tasks(tasks, tasks * shape.bins[1] * shape.channels >= kParallelElements / 8 ? num_threads() : 1, [&](int64_t task) {
    const int64_t n = task / shape.bins[0], row = task % shape.bins[0];
    const Roi<A> roi = shape.template roi<A>(n);
    const int64_t step = shape.step(roi.level) * (shape.sensitive ? shape.bins[0] * shape.bins[1] : 1);
    const A count = static_cast<A>(roi.rows) * static_cast<A>(roi.columns), samples = count > A(1) ? count : A(1);
    for (int64_t column = 0; column < shape.bins[1]; ++column) {
      const int64_t first = shape.channel(0, row, column) * shape.step(roi.level);
      T* const to = y + n * strides[0] + row * strides[1] + column * strides[2];
      for (int64_t c0 = 0; c0 < shape.channels; c0 += kBlock) {
        const int64_t left = shape.channels - c0 < kBlock ? shape.channels - c0 : kBlock;
        A sums[kBlock];
        for (int64_t c = 0; c < left; ++c) sums[c] = A(0);
        shape.each(roi, row, column, [&](const T* from, A weight) {
          const T* const at = from + first + c0 * step;
          if (step == 1) {
#pragma omp simd
            for (int64_t c = 0; c < left; ++c) sums[c] += weight * static_cast<A>(at[c]);
          } else {
            for (int64_t c = 0; c < left; ++c) sums[c] += weight * static_cast<A>(at[c * step]);
          }
        });
        for (int64_t c = 0; c < left; ++c) to[(c0 + c) * strides[3]] = convert<T>(sums[c] / samples);
      }
    }
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_ROI_ALIGN_H_
