/// @file overlap_add.h
/// @brief Sums of overlapping windows.
#ifndef AIT_KERNELS_CPU_OVERLAP_ADD_H_
#define AIT_KERNELS_CPU_OVERLAP_ADD_H_

#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/operand.h"
#include "ait/kernels/overlap_shape.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief y = the sums of the elements of windows that lie over each element.
template <int kOuter, int kAxes, class T>
int32_t overlap_add(const Context&, const OverlapShape<kOuter, kAxes>& shape, const T* x, T* y) {
  using A = compute_t<T>;
  const int64_t count = shape.count();
  if (count <= 0) return 0;
  const OverlapAxis& inner = shape.axes[kAxes - 1];
  int64_t sizes[kOuter + kAxes];
  for (int d = 0; d < kOuter; ++d) sizes[d] = shape.outer[d];
  for (int a = 0; a < kAxes; ++a) sizes[kOuter + a] = shape.axes[a].size;
  parallel_for(count / inner.size, count >= kParallelElements, [=](int64_t line) {
    int64_t coordinate[kOuter + kAxes], at[kAxes];
    coordinates<kOuter + kAxes>(line * inner.size, sizes, coordinate);
    const T* from = x;
    T* to = y;
    for (int d = 0; d < kOuter; ++d) {
      from += coordinate[d] * shape.x_outer[d];
      to += coordinate[d] * shape.y_outer[d];
    }
    for (int a = 0; a + 1 < kAxes; ++a) {
      at[a] = coordinate[kOuter + a];
      to += at[a] * shape.axes[a].y;
    }
    for (int64_t i = 0; i < inner.size; ++i) {
      at[kAxes - 1] = i;
      to[i * inner.y] = convert<T>(shape.template sum<A>(from, at));
    }
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_OVERLAP_ADD_H_
