/// @file update_space.h
/// @brief Where rows come from and go to when they are written over a tensor, for host and device.
#ifndef AIT_KERNELS_UPDATE_SPACE_H_
#define AIT_KERNELS_UPDATE_SPACE_H_

#include <stdint.h>

#include "ait/types.h"

namespace ait {

/// @brief Loops over runs of `width` contiguous elements. Along loop `axis`, row i goes to place `place(positions, i)` of a dim of
/// `extent`, whose places are `place_stride` apart; the result has no stride of its own along that loop. Strides are in elements.
template <int kRank>
struct UpdateSpace {
  int64_t sizes[kRank], row_strides[kRank], out_strides[kRank];
  int64_t width, extent, place_stride;
  int64_t position_stride;  ///< between the places of two rows; 0: positions[0] is the place of row 0, and the others follow it
  int axis;

  template <class P>
  AIT_FN int64_t place(const P* positions, int64_t row) const {
    return static_cast<int64_t>(positions[row * position_stride]) + (position_stride == 0 ? row : 0);
  }
};

/// @brief The space of these loops.
template <size_t kRank>
UpdateSpace<static_cast<int>(kRank)> update_space(const int64_t (&sizes)[kRank], const int64_t (&row_strides)[kRank],
                                                  const int64_t (&out_strides)[kRank], int64_t width, int axis, int64_t extent,
                                                  int64_t place_stride, int64_t position_stride) {
  UpdateSpace<static_cast<int>(kRank)> space;
  for (size_t d = 0; d < kRank; ++d) {
    space.sizes[d] = sizes[d];
    space.row_strides[d] = row_strides[d];
    space.out_strides[d] = static_cast<int>(d) == axis ? 0 : out_strides[d];
  }
  space.width = width;
  space.extent = extent;
  space.place_stride = place_stride;
  space.position_stride = position_stride;
  space.axis = axis;
  return space;
}

}  // namespace ait
#endif  // AIT_KERNELS_UPDATE_SPACE_H_
