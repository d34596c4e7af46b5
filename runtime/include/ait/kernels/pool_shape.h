/// @file pool_shape.h
/// @brief The windows of a pool, for host and device.
#ifndef AIT_KERNELS_POOL_SHAPE_H_
#define AIT_KERNELS_POOL_SHAPE_H_

#include <stdint.h>

#include "ait/kernels/spatial.h"
#include "ait/types.h"

namespace ait {

/// @brief A window along one dim: `count` elements of the input from `first` on, a `step` apart; `padded` counts those in the pads, too.
template <class I>
struct PoolWindowOf {
  I first, count, step, padded;
};
using PoolWindow = PoolWindowOf<int64_t>;

/// @brief The windows along one dim. Without `taps` they are adaptive: of about equal size, and they cover the input.
struct PoolAxis {
  int64_t size, places;                           ///< of the input, of the result
  int64_t taps, stride, before, behind, dilation;  ///< elements of a window, from window to window, pads, from element to element

  /// @brief The window of a place of the result.
  /// @tparam I a type that holds every place of the padded input
  template <class I>
  AIT_FN PoolWindowOf<I> window(I place) const {
    if (taps == 0) {
      const int64_t first = place * size / places, count = ((place + 1) * size + places - 1) / places - first;
      return {I(first), I(count), I(1), I(count)};
    }
    const I start = place * I(stride) - I(before);
    const I skipped = start < 0 ? steps<I>(-start) : 0;
    const I inside = below<I>(start, I(size)), count = inside - skipped;
    return {start + skipped * I(dilation), count > 0 ? count : 0, I(dilation), below<I>(start, I(size + behind))};
  }
  /// @brief Whether 32 bits hold every place of the padded input.
  bool is_narrow() const {
    constexpr int64_t kMost = int64_t(1) << 29;
    return size < kMost && before < kMost && behind < kMost && stride < kMost && taps < kMost && dilation < kMost && places * stride < kMost &&
           taps * dilation < kMost;
  }

 private:
  /// The number of elements of the window from `start` on that are below `limit`.
  template <class I>
  AIT_FN I below(I start, I limit) const {
    const I fit = limit > start ? steps<I>(limit - start) : 0;
    return fit < I(taps) ? fit : I(taps);
  }
  /// How many steps of the dilation are `distance` or more. Divisions are slow on a GPU, and the dilation is rarely above 1.
  template <class I>
  AIT_FN I steps(I distance) const {
    return dilation == 1 ? distance : (distance + I(dilation) - 1) / I(dilation);
  }
};

/// @brief A pool over three spatial dims; with fewer, the leading ones have size 1.
struct PoolShape {
  int64_t batch, channels;
  PoolAxis axes[3];
  bool exclude_pad;  ///< a mean divides by the elements in the input
  int64_t divisor;   ///< a mean divides by this, unless 0

  /// @brief The divisor of the sum of a window.
  template <class I>
  AIT_FN int64_t count(const PoolWindowOf<I> (&w)[3]) const {
    if (divisor != 0) return divisor;
    const int64_t elements = exclude_pad ? int64_t(w[0].count) * w[1].count * w[2].count : int64_t(w[0].padded) * w[1].padded * w[2].padded;
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
