/// @file conv_shape.h
/// @brief The input of a convolution and its window, for host and device.
#ifndef AIT_KERNELS_CONV_SHAPE_H_
#define AIT_KERNELS_CONV_SHAPE_H_

#include <stdint.h>

#include "ait/types.h"

namespace ait {

/// @brief The input of a convolution over R dims, [batch, sizes..., channels] with any strides, and its window.
///
/// As a matrix it has a row for each place of the window, in the order of the result, and a column for each element of the window's channels of
/// one group: column tap * depth + c is channel c of the group at this tap; taps are numbered row-major. In a transposed convolution an element
/// of x meets tap i at place p * stride - pad + i * dilation of the result, so most elements of a row are zeros where the stride is above 1.
template <class T, int R, bool kTransposed = false>
struct ConvInput {
  static constexpr int kRank = R;
  static constexpr bool kSpreads = kTransposed;
  const T* data;
  int64_t strides[R + 2];
  int64_t size[R], depth;  ///< depth: channels of a group
  int64_t places[R];       ///< of the window: the sizes of the result
  int64_t kernel[R], stride[R], dilation[R];
  int64_t pad[R];          ///< zeros in front of the input
  int64_t groups;

  AIT_FN int64_t taps() const {
    int64_t count = 1;
    for (int d = 0; d < R; ++d) count *= kernel[d];
    return count;
  }
  /// @brief Where a place of the window begins; it may be outside of the input.
  struct Place {
    int64_t batch, at[R];
  };
  AIT_FN Place place(int64_t number) const {
    Place found;
    for (int d = R - 1; d >= 0; --d) {
      const int64_t rest = number / places[d], index = number - rest * places[d];
      found.at[d] = kTransposed ? index + pad[d] : index * stride[d] - pad[d];
      number = rest;
    }
    found.batch = number;
    return found;
  }
  /// @brief Makes a place the next one.
  AIT_FN void advance(Place& from) const {
    for (int d = R - 1; d >= 0; --d) {
      const int64_t first = kTransposed ? pad[d] : -pad[d], step = kTransposed ? 1 : stride[d];
      from.at[d] += step;
      if (from.at[d] < first + places[d] * step) return;
      from.at[d] = first;
    }
    ++from.batch;
  }
  /// @brief A place where there are zeros only.
  AIT_FN Place nowhere() const {
    Place found{};
    found.at[0] = kTransposed ? -1 : size[0];
    return found;
  }
  /// @brief The first channel of a group at a tap, or null where there are zeros.
  AIT_FN const T* at(const Place& from, int tap, int64_t group) const {
    int64_t offset = from.batch * strides[0] + group * depth * strides[R + 1];
    bool inside = true;
    for (int d = R - 1; d >= 0; --d) {
      const int rest = tap / int(kernel[d]), index = tap - rest * int(kernel[d]);
      int64_t along = kTransposed ? from.at[d] - index * dilation[d] : from.at[d] + index * dilation[d];
      if (kTransposed) {
        const int64_t step = along / stride[d];
        inside = inside && along >= 0 && step * stride[d] == along;
        along = step;
      }
      inside = inside && along >= 0 && along < size[d];
      offset += along * strides[d + 1];
      tap = rest;
    }
    return inside ? data + offset : nullptr;
  }
};

}  // namespace ait
#endif  // AIT_KERNELS_CONV_SHAPE_H_
