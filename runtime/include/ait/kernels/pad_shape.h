/// @file pad_shape.h
/// @brief The sources of the elements of a padded tensor, for host and device.
#ifndef AIT_KERNELS_PAD_SHAPE_H_
#define AIT_KERNELS_PAD_SHAPE_H_

#include <stdint.h>

#include "ait/types.h"

namespace ait {

/// @brief The values outside of the input.
enum class PadMode { constant, reflect, replicate, circular };

/// @brief One dim: sizes of the input and the result, elements before the input (fewer than 0: cropped), strides in elements.
struct PadDim {
  int64_t in, out, before, in_stride, out_stride;

  /// @brief The index of the input for an index of the result; -1 for none.
  template <PadMode kMode>
  AIT_FN int64_t source(int64_t i) const {
    const int64_t j = i - before;
    if constexpr (kMode == PadMode::constant) return j >= 0 && j < in ? j : -1;
    if constexpr (kMode == PadMode::replicate) return j < 0 ? 0 : (j < in ? j : in - 1);
    if constexpr (kMode == PadMode::circular) return j < 0 ? j + in : (j < in ? j : j - in);
    const int64_t mirrored = j < 0 ? -j : j;
    return mirrored < in ? mirrored : 2 * (in - 1) - mirrored;
  }
};

template <size_t kRankOf>
struct PadDims {
  static constexpr int kRank = static_cast<int>(kRankOf);
  PadDim dims[kRankOf];

  /// @brief Offsets in the input and the result of an element of the result, given its coordinates in the first `kCount` dims; whether there is one
  /// in the input.
  template <PadMode kMode, int kCount>
  AIT_FN bool place(const int64_t* at, int64_t& from, int64_t& to) const {
    bool inside = true;
    from = to = 0;
    for (int d = 0; d < kCount; ++d) {
      const int64_t j = dims[d].template source<kMode>(at[d]);
      inside = inside && j >= 0;
      from += j * dims[d].in_stride;
      to += at[d] * dims[d].out_stride;
    }
    return inside;
  }
};

}  // namespace ait
#endif  // AIT_KERNELS_PAD_SHAPE_H_
