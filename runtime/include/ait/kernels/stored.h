/// @file stored.h
/// @brief A weight as it is stored: numbers of 4 or 8 bits with scales and zero points by group.
#ifndef AIT_KERNELS_STORED_H_
#define AIT_KERNELS_STORED_H_

#include <stdint.h>

#include "ait/types.h"

namespace ait {

/// @brief A matrix [n, k] in row-major order: element (n, k) is `(bits ^ flip) - origin(n, group of k)` times the scale of the group. Of two
/// numbers of 4 bits in a byte, the lower half is the first.
/// @tparam kBits_ bits of a number: 4 or 8
/// @tparam S type of the scales, [n, groups]
/// @tparam Z type of the zero points, [n, groups], of which there may be none
template <int kBits_, class S, class Z>
struct StoredMatrix {
  static constexpr int kBits = kBits_;
  using Scale = S;
  using Zero = Z;
  const uint8_t* data;
  const S* scale;
  const Z* zero;
  int64_t pitch;          ///< bytes from row to row
  int64_t groups, group;  ///< of a row; numbers of a group
  bool is_signed;

  /// The bits that make signed numbers unsigned: their sign.
  AIT_FN uint32_t flip() const { return !is_signed ? 0u : kBits == 4 ? 0x88888888u : 0x80808080u; }
  /// What is subtracted from the unsigned numbers of a group.
  AIT_FN int origin(int64_t row, int64_t at) const {
    const int middle = is_signed ? 1 << (kBits - 1) : 0;
    return zero == nullptr ? middle : middle + int(zero[row * groups + at]);
  }
};

}  // namespace ait
#endif  // AIT_KERNELS_STORED_H_
