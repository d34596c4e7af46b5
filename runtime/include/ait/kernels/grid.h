/// @file grid.h
/// @brief The elements around the places of a grid, for host and device.
#ifndef AIT_KERNELS_GRID_H_
#define AIT_KERNELS_GRID_H_

#include <math.h>
#include <stdint.h>

#include "ait/kernels/resize_shape.h"
#include "ait/types.h"

namespace ait {

/// @brief The treatment of neighbours outside of the input.
enum class GridOutside { zeros, border, reflection };

/// @brief One dim of the input.
struct GridAxis {
  int64_t size;
  bool corners;

  /// @brief A place moved into the input; 0 for NaN.
  template <GridOutside kOutside>
  AIT_FN double moved(double at) const {
    const double last = static_cast<double>(size - 1);
    if constexpr (kOutside == GridOutside::reflection) {
      const double low = corners ? 0 : -0.5, span = static_cast<double>(corners ? 2 * (size - 1) : 2 * size);
      if (span > 0) {
        const double distance = fabs(at - low), rest = distance - floor(distance / span) * span;
        at = (rest < span - rest ? rest : span - rest) + low;
      }
    }
    return at > 0 ? (at < last ? at : last) : 0;
  }

  /// @brief The indices, -1 for those outside, and the weights for a place from -1 to 1. NaN and infinite places have weights of NaN,
  /// unless they are moved into the input.
  template <ResizeMode kMode, GridOutside kOutside>
  AIT_FN ResizeTaps<double, kResizeTaps<kMode>> taps(double place) const {
    double at = corners ? (place + 1) / 2 * static_cast<double>(size - 1) : ((place + 1) * static_cast<double>(size) - 1) / 2;
    if constexpr (kOutside != GridOutside::zeros && kMode != ResizeMode::cubic) at = moved<kOutside>(at);
    if constexpr (kMode == ResizeMode::nearest) return {{inside(rint(at))}, {1.0}};
    const double first = floor(at), t = at - first;
    const double near = t == t ? first : 0;  // an element, with a weight of NaN, stands for NaN and infinite places
    if constexpr (kMode == ResizeMode::linear) return {{inside(near), inside(first + 1)}, {1 - t, t}};
    if constexpr (kMode == ResizeMode::cubic) {
      return {{neighbour<kOutside>(first - 1), neighbour<kOutside>(near), neighbour<kOutside>(first + 1), neighbour<kOutside>(first + 2)},
              {cubic_far(t + 1), cubic_near(t), cubic_near(1 - t), cubic_far(2 - t)}};
    }
  }

 private:
  /// @brief A whole number as an index, -1 outside of the input and for NaN.
  AIT_FN int64_t inside(double whole) const {
    return whole >= 0 && whole < static_cast<double>(size) ? static_cast<int64_t>(whole) : -1;
  }
  template <GridOutside kOutside>
  AIT_FN int64_t neighbour(double whole) const {
    if constexpr (kOutside == GridOutside::zeros) return inside(whole);
    return inside(moved<kOutside>(whole));
  }
};

/// @brief The sizes of a sampling.
struct GridShape {
  int64_t batch, places[2], channels;
  GridAxis axes[2];  ///< height and width of the input
};

/// @brief f(pointer to channel 0, weight) for the elements around a place (across, down) of a batch.
///
/// Places are computed in double: for an image thousands of elements wide, a float has few digits left for the weights.
template <ResizeMode kMode, GridOutside kOutside, class A, class T, class F>
AIT_FN void each_of_grid(const GridShape& shape, const SpatialTensor<const T>& x, int64_t n, A across, A down, F&& f) {
  constexpr int kTaps = kResizeTaps<kMode>;
  const auto rows = shape.axes[0].template taps<kMode, kOutside>(static_cast<double>(down));
  const auto columns = shape.axes[1].template taps<kMode, kOutside>(static_cast<double>(across));
  for (int i = 0; i < kTaps; ++i) {
    for (int j = 0; j < kTaps; ++j) {
      if (rows.index[i] < 0 || columns.index[j] < 0) continue;
      f(x.at(n, 0, rows.index[i], columns.index[j]), static_cast<A>(rows.weight[i] * columns.weight[j]));
    }
  }
}

}  // namespace ait
#endif  // AIT_KERNELS_GRID_H_
