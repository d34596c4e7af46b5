/// @file overlap_shape.h
/// @brief Sums of overlapping windows: which elements of the windows lie over an element of the result, for host and device.
#ifndef AIT_KERNELS_OVERLAP_SHAPE_H_
#define AIT_KERNELS_OVERLAP_SHAPE_H_

#include <stdint.h>

#include "ait/types.h"

namespace ait {

/// @brief One dim of the result. Element k of window l lies at l * stride + k * dilation - before.
struct OverlapAxis {
  int64_t size, window, count, stride, dilation, before;
  int64_t x_window, x_count, y;  ///< strides in elements
};

/// @brief The dims of the result that windows cover, and `kOuter` others.
template <int kOuter, int kAxes>
struct OverlapShape {
  int64_t outer[kOuter], x_outer[kOuter], y_outer[kOuter];
  OverlapAxis axes[kAxes];

  AIT_FN int64_t count() const {
    int64_t total = 1;
    for (int d = 0; d < kOuter; ++d) total *= outer[d];
    for (int a = 0; a < kAxes; ++a) total *= axes[a].size;
    return total;
  }

  /// @brief The sum of the elements that lie over place `at`, in row-major order of their places in windows. `x` is at the outer coordinates.
  template <class A, class T, class Index>
  AIT_FN A sum(const T* x, const Index (&at)[kAxes]) const {
    return sum_from<0, A>(x, at, A(0));
  }

 private:
  template <int kAxis, class A, class T, class Index>
  AIT_FN A sum_from(const T* x, const Index (&at)[kAxes], A total) const {
    const OverlapAxis& axis = axes[kAxis];
    const Index stride = static_cast<Index>(axis.stride), dilation = static_cast<Index>(axis.dilation), window = static_cast<Index>(axis.window);
    const Index shifted = at[kAxis] + static_cast<Index>(axis.before);
    // With no dilation every stride-th element of a window counts, from the first that may.
    const bool dense = dilation == 1;
    const Index begin = dense ? shifted % stride : 0, step = dense ? stride : 1;
    for (Index k = begin; k < window; k += step) {
      const Index rest = shifted - k * dilation;
      if (rest < 0 || (!dense && rest % stride != 0)) continue;
      const Index l = rest / stride;
      if (l >= static_cast<Index>(axis.count)) continue;
      const T* const from = x + k * axis.x_window + l * axis.x_count;
      if constexpr (kAxis + 1 < kAxes) {
        total = sum_from<kAxis + 1, A>(from, at, total);
      } else {
        total = total + convert<A>(*from);
      }
    }
    return total;
  }
};

}  // namespace ait
#endif  // AIT_KERNELS_OVERLAP_SHAPE_H_
