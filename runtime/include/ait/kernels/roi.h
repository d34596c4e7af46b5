/// @file roi.h
/// @brief Regions of feature maps and the samples in their bins, for host and device.
#ifndef AIT_KERNELS_ROI_H_
#define AIT_KERNELS_ROI_H_

#include <math.h>
#include <stdint.h>

#include "ait/types.h"

namespace ait {

/// @brief Features [batch, height, width, channels] with any strides; `scale`: their size divided by that of the image in which boxes are measured.
template <class T>
struct RoiLevel {
  const T* data;
  int64_t strides[4];
  int64_t height, width;
  double scale;
};

/// @brief A region: its image and level, and its bins in elements of that level.
template <class A>
struct Roi {
  int64_t image;
  int level;
  A top, left, bin_height, bin_width;
  int rows, columns;  ///< samples of a bin
};

/// @brief The elements around a sample along one dim; none if it is outside.
template <class A>
struct RoiNeighbours {
  int64_t low, high;
  A weight;  ///< of the higher element
  bool inside;
};

template <class A>
AIT_FN RoiNeighbours<A> roi_neighbours(A at, int64_t size) {
  if (!(at >= A(-1)) || !(at <= static_cast<A>(size))) return {0, 0, A(0), false};
  at = at < A(0) ? A(0) : at;
  const int64_t low = static_cast<int64_t>(at);
  if (low >= size - 1) return {size - 1, size - 1, A(0), true};
  return {low, low + 1, at - static_cast<A>(low), true};
}

/// @brief The operands and options of an alignment.
template <class T, class R, int kLevelsOf>
struct RoiShape {
  static constexpr int kLevels = kLevelsOf;
  static constexpr int kMostSamples = 4096;
  int64_t regions, batch, bins[2], channels;
  RoiLevel<T> levels[kLevelsOf];
  const R* rois;
  int64_t roi_strides[2];
  int sampling;  ///< samples of a bin along a dim; 0: one for each element
  bool aligned, sensitive;
  double second_from;  ///< the least square root of the area for the second level

  /// @brief A region in type `A`; an image outside of the batch is -1.
  template <class A>
  AIT_FN Roi<A> roi(int64_t n) const {
    const R* const from = rois + n * roi_strides[0];
    const A index = convert<A>(from[0]);
    const A x1 = convert<A>(from[roi_strides[1]]), y1 = convert<A>(from[2 * roi_strides[1]]);
    const A x2 = convert<A>(from[3 * roi_strides[1]]), y2 = convert<A>(from[4 * roi_strides[1]]);
    Roi<A> found;
    found.image = index >= A(0) && index < static_cast<A>(batch) ? static_cast<int64_t>(index) : -1;
    found.level = 0;
    A size = static_cast<A>(second_from);
    for (int i = 1; i < kLevels; ++i, size *= A(2)) found.level += (x2 - x1) * (y2 - y1) >= size * size ? 1 : 0;
    const A scale = static_cast<A>(level_of(found.level).scale);
    const A offset = aligned ? A(0.5) : A(0);
    found.top = y1 * scale - offset, found.left = x1 * scale - offset;
    A height = y2 * scale - offset - found.top, width = x2 * scale - offset - found.left;
    if (!aligned) height = height > A(1) ? height : A(1), width = width > A(1) ? width : A(1);
    found.bin_height = height / static_cast<A>(bins[0]), found.bin_width = width / static_cast<A>(bins[1]);
    found.rows = samples(found.bin_height), found.columns = samples(found.bin_width);
    return found;
  }

  /// @brief f(pointer to channel 0, weight) for the elements around each sample of a bin; the weights of a sample add up to 1.
  template <class A, class F>
  AIT_FN void each(const Roi<A>& roi, int64_t row, int64_t column, F&& f) const {
    const RoiLevel<T> level = level_of(roi.level);
    const T* const data = level.data + roi.image * level.strides[0];
    for (int a = 0; a < roi.rows; ++a) {
      const A part = (static_cast<A>(a) + A(0.5)) / static_cast<A>(roi.rows);
      const RoiNeighbours<A> y = roi_neighbours(roi.top + roi.bin_height * (static_cast<A>(row) + part), level.height);
      if (!y.inside) continue;
      for (int b = 0; b < roi.columns; ++b) {
        const A along = (static_cast<A>(b) + A(0.5)) / static_cast<A>(roi.columns);
        const RoiNeighbours<A> x = roi_neighbours(roi.left + roi.bin_width * (static_cast<A>(column) + along), level.width);
        if (!x.inside) continue;
        const T* const top = data + y.low * level.strides[1];
        const T* const bottom = data + y.high * level.strides[1];
        f(top + x.low * level.strides[2], (A(1) - y.weight) * (A(1) - x.weight));
        f(top + x.high * level.strides[2], (A(1) - y.weight) * x.weight);
        f(bottom + x.low * level.strides[2], y.weight * (A(1) - x.weight));
        f(bottom + x.high * level.strides[2], y.weight * x.weight);
      }
    }
  }
  /// @brief The channel of the features for a channel of the result.
  AIT_FN int64_t channel(int64_t c, int64_t row, int64_t column) const { return sensitive ? (c * bins[0] + row) * bins[1] + column : c; }
  /// @brief The stride of the channels of a level.
  AIT_FN int64_t step(int level) const {
    return level_of(level).strides[3];
  }

 private:
  /// @brief A level, field by field, so that none has to be in memory.
  AIT_FN RoiLevel<T> level_of(int number) const {
    RoiLevel<T> found = levels[0];
    for (int i = 1; i < kLevels; ++i) {
      const RoiLevel<T> other = levels[i];
      const bool here = i == number;
      found.data = choose(here, other.data, found.data);
      found.height = choose(here, other.height, found.height), found.width = choose(here, other.width, found.width);
      found.scale = choose(here, other.scale, found.scale);
      for (int d = 0; d < 4; ++d) found.strides[d] = choose(here, other.strides[d], found.strides[d]);
    }
    return found;
  }

  template <class A>
  AIT_FN int samples(A bin) const {
    if (sampling > 0) return sampling;
    if (!(bin < static_cast<A>(kMostSamples))) return kMostSamples;
    const int whole = bin > A(0) ? static_cast<int>(bin) : 0;
    return static_cast<A>(whole) < bin ? whole + 1 : whole;
  }
};

}  // namespace ait
#endif  // AIT_KERNELS_ROI_H_
