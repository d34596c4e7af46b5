/// @file conv_shape.h
/// @brief What a convolution over two dims reads, for host and device.
#ifndef AIT_KERNELS_CONV_SHAPE_H_
#define AIT_KERNELS_CONV_SHAPE_H_

#include <stdint.h>

#include "ait/types.h"

namespace ait {

/// @brief The input of a convolution, [batch, height, width, channels] with any strides, and its window. Pairs are (height, width).
///
/// As a matrix it has a row for each place of the window, in the order of the result, and a column for each element of the window's channels of
/// one group: column (i * kernel[1] + j) * depth + c is channel c of the group, at row i and column j of the window.
template <class T>
struct ConvInput {
  const T* data;
  int64_t strides[4];
  int64_t height, width, depth;  ///< depth: channels of a group
  int64_t places[2];             ///< of the window: height and width of the result
  int64_t kernel[2], stride[2], dilation[2];
  int64_t pad[2];                ///< zeros above and left of the input
  int64_t groups;

  /// @brief Where a place of the window begins; it may be outside of the input.
  struct Place {
    int64_t batch, row, column;
  };
  AIT_FN Place place(int64_t number) const {
    const int64_t column = number % places[1], rest = number / places[1];
    return {rest / places[0], rest % places[0] * stride[0] - pad[0], column * stride[1] - pad[1]};
  }
  /// @brief The first channel of a group at element (i, j) of the window, or null where there are zeros.
  AIT_FN const T* at(const Place& from, int64_t i, int64_t j, int64_t group) const {
    const int64_t row = from.row + i * dilation[0], column = from.column + j * dilation[1];
    if (row < 0 || row >= height || column < 0 || column >= width) return nullptr;
    return data + from.batch * strides[0] + row * strides[1] + column * strides[2] + group * depth * strides[3];
  }
};

}  // namespace ait
#endif  // AIT_KERNELS_CONV_SHAPE_H_
