/// @file pool_shape.h
/// @brief The windows of a pool, for host and device.
#ifndef AIT_KERNELS_POOL_SHAPE_H_
#define AIT_KERNELS_POOL_SHAPE_H_

#include <stdint.h>

#include "ait/kernels/spatial.h"
#include "ait/types.h"

namespace ait {

/// @brief A window along one dim: `count` elements of the input from `first` on, a `step` apart; `padded` counts those in the pads, too.
struct PoolWindow {
  int64_t first, count, step, padded;
};

/// @brief The windows along one dim. Without `taps` they are adaptive: of about equal size, and they cover the input.
struct PoolAxis {
  int64_t size, places;                           ///< of the input, of the result
  int64_t taps, stride, before, behind, dilation;  ///< elements of a window, from window to window, pads, from element to element

  AIT_FN PoolWindow window(int64_t place) const {
    if (taps == 0) {
      const int64_t first = place * size / places, count = ((place + 1) * size + places - 1) / places - first;
      return {first, count, 1, count};
    }
    const int64_t start = place * stride - before;
    const int64_t skipped = start < 0 ? steps(-start) : 0;
    const int64_t inside = below(start, size), count = inside - skipped;
    return {start + skipped * dilation, count > 0 ? count : 0, dilation, below(start, size + behind)};
  }

 private:
  /// The number of elements of the window from `start` on that are below `limit`.
  AIT_FN int64_t below(int64_t start, int64_t limit) const {
    const int64_t fit = limit > start ? steps(limit - start) : 0;
    return fit < taps ? fit : taps;
  }
  /// How many steps of the dilation are `distance` or more. Divisions are slow on a GPU, and the dilation is rarely above 1.
  AIT_FN int64_t steps(int64_t distance) const { return dilation == 1 ? distance : (distance + dilation - 1) / dilation; }
};

/// @brief A pool over three spatial dims; with fewer, the leading ones have size 1.
struct PoolShape {
  int64_t batch, channels;
  PoolAxis axes[3];
  bool exclude_pad;  ///< a mean divides by the elements in the input
  int64_t divisor;   ///< a mean divides by this, unless 0

  /// @brief The divisor of the sum of a window.
  AIT_FN int64_t count(const PoolWindow (&w)[3]) const {
    if (divisor != 0) return divisor;
    const int64_t elements = exclude_pad ? w[0].count * w[1].count * w[2].count : w[0].padded * w[1].padded * w[2].padded;
    return elements < 1 ? 1 : elements;
  }
  /// @brief The row-major index of an element in the spatial dims of the input.
  AIT_FN int64_t index(int64_t d, int64_t h, int64_t w) const { return (d * axes[1].size + h) * axes[2].size + w; }
};

/// @brief The intermediate result of a window for one channel.
template <bool kMax, bool kPlaces, class A>
struct Pooled {
  A value;
  int64_t place = 0;

  AIT_FN void join(A x, int64_t index) {
    if constexpr (kMax) {
      const bool larger = (x > value) | (x != x);
      value = larger ? x : value;
      if constexpr (kPlaces) place = larger ? index : place;
    } else {
      value += x;
    }
  }
};

}  // namespace ait
#endif  // AIT_KERNELS_POOL_SHAPE_H_
