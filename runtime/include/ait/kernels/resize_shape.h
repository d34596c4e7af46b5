/// @file resize_shape.h
/// @brief The elements from which resampling computes each element, for host and device.
#ifndef AIT_KERNELS_RESIZE_SHAPE_H_
#define AIT_KERNELS_RESIZE_SHAPE_H_

#include <stdint.h>

#include "ait/kernels/spatial.h"
#include "ait/types.h"

namespace ait {

enum class ResizeMode { nearest, nearest_exact, linear, cubic };

/// @brief The number of elements along a dim from which an element of the result is computed.
template <ResizeMode kMode>
inline constexpr int kResizeTaps = kMode == ResizeMode::cubic ? 4 : (kMode == ResizeMode::linear ? 2 : 1);

/// @brief The cubic weight of an element less than 1 away, and of one 1 to 2 away (Keys 1981, with a = -0.75).
template <class A>
AIT_FN A cubic_near(A x) {
  return (A(1.25) * x - A(2.25)) * x * x + A(1);
}
template <class A>
AIT_FN A cubic_far(A x) {
  return ((A(-0.75) * x + A(3.75)) * x - A(6)) * x + A(3);
}

/// @brief Indices of the input, and their weights.
template <class A, int kTaps, class I = int64_t>
struct ResizeTaps {
  I index[kTaps];
  A weight[kTaps];
};

/// @brief One dim: sizes of the input and the result, and the distance of neighbouring elements of the result in the input.
struct ResizeAxis {
  int64_t in, out;
  double scale;  ///< 0: the quotient of the sizes
  bool corners;  ///< align_corners: the first elements coincide, and so do the last ones
  double step = 0;  ///< from one element of the result to the next, in the input; 0: not computed yet

  /// @brief The same with `step`, so that no thread of a GPU divides.
  ResizeAxis prepared() const {
    ResizeAxis made = *this;
    made.step = corners ? (out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0)
                        : (scale > 0 ? 1 / scale : static_cast<double>(in) / static_cast<double>(out));
    return made;
  }
  /// @brief The place in the input of element `i` of the result.
  AIT_FN double place(double i) const {
    if (step > 0) return i * step;
    if (corners) return out > 1 ? i * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
    return scale > 0 ? i / scale : i * static_cast<double>(in) / static_cast<double>(out);
  }
  template <class I>
  AIT_FN I clamped(I i) const {
    return i < 0 ? 0 : (i < I(in) ? i : I(in) - 1);
  }

  /// @brief The elements from which element `i` of the result is computed.
  /// @tparam I a type that holds every index of the input and the result
  template <ResizeMode kMode, class A, class I>
  AIT_FN ResizeTaps<A, kResizeTaps<kMode>, I> taps(I i) const {
    const double number = static_cast<double>(i);
    if constexpr (kMode == ResizeMode::nearest || kMode == ResizeMode::nearest_exact) {
      // In whole numbers where they fit: exact, and no thread divides doubles.
      constexpr int64_t kTwice = kMode == ResizeMode::nearest ? 1 : 2, kHalf = kTwice - 1;
      const int64_t above = (kTwice * int64_t(i) + kHalf) * in, below = kTwice * out;
      if (!corners && !(scale > 0) && above < int64_t(1) << 32 && below < int64_t(1) << 32) {
        return {{clamped(I(uint32_t(above) / uint32_t(below)))}, {A(1)}};
      }
    }
    if constexpr (kMode == ResizeMode::nearest) return {{clamped(static_cast<I>(place(number)))}, {A(1)}};
    if constexpr (kMode == ResizeMode::nearest_exact) return {{clamped(static_cast<I>(place(number + 0.5)))}, {A(1)}};
    double at = corners ? place(number) : place(number + 0.5) - 0.5;
    if constexpr (kMode == ResizeMode::linear) {
      at = at < 0 ? 0 : at;
      const I first = clamped(static_cast<I>(at));
      const double t = first == I(in) - 1 ? 0 : at - static_cast<double>(first);
      return {{first, clamped(first + 1)}, {static_cast<A>(1 - t), static_cast<A>(t)}};
    }
    if constexpr (kMode == ResizeMode::cubic) {
      const I whole = static_cast<I>(at), first = static_cast<double>(whole) > at ? whole - 1 : whole;
      const double t = at - static_cast<double>(first);
      return {{clamped(first - 1), clamped(first), clamped(first + 1), clamped(first + 2)},
              {static_cast<A>(cubic_far(t + 1)), static_cast<A>(cubic_near(t)), static_cast<A>(cubic_near(1 - t)), static_cast<A>(cubic_far(2 - t))}};
    }
  }
};

/// @brief Three spatial dims; with fewer, the leading ones have size 1.
struct ResizeShape {
  int64_t batch, channels;
  ResizeAxis axes[3];
};

/// @brief The weights and places of an element of the result along the dims that are resampled: the last `kDims` of three.
template <ResizeMode kMode, int kDims, class A, class I = int64_t>
struct ResizeWindow {
  static constexpr int kTaps = kResizeTaps<kMode>;
  ResizeTaps<A, kTaps, I> along[kDims];

  AIT_FN ResizeWindow(const ResizeShape& shape, const int64_t (&at)[3]) {
    for (int d = 0; d < kDims; ++d) along[d] = shape.axes[3 - kDims + d].template taps<kMode, A>(I(at[3 - kDims + d]));
  }
  /// @brief f(pointer to channel 0, weight) for each element.
  template <class T, class F>
  AIT_FN void each(const SpatialTensor<const T>& x, int64_t n, F&& f) const {
    constexpr int kFirst = kDims > 2 ? kTaps : 1, kSecond = kDims > 1 ? kTaps : 1;
    for (int i = 0; i < kFirst; ++i) {
      for (int j = 0; j < kSecond; ++j) {
        int64_t d = 0, h = 0;
        if constexpr (kDims > 1) h = along[kDims - 2].index[j];
        if constexpr (kDims > 2) d = along[0].index[i];
        const T* const line = x.at(n, d, h, 0);
        for (int k = 0; k < kTaps; ++k) {
          A weight = along[kDims - 1].weight[k];
          if constexpr (kDims > 1) weight *= along[kDims - 2].weight[j];
          if constexpr (kDims > 2) weight *= along[0].weight[i];
          f(line + along[kDims - 1].index[k] * x.strides[3], weight);
        }
      }
    }
  }
};

}  // namespace ait
#endif  // AIT_KERNELS_RESIZE_SHAPE_H_
