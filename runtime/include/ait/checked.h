/// @file checked.h
/// @brief Dim expressions that notice when they pass 2^62, for sizes that the ranges of the dims allow to be too large.
#ifndef AIT_CHECKED_H_
#define AIT_CHECKED_H_

#include <cstdint>

#include "ait/dims.h"

namespace ait {

/// @brief The value of a dim expression, or none where it, or a part of it, is beyond 2^62. It has the operators of dim expressions.
class Checked {
 public:
  static constexpr int64_t kMost = int64_t{1} << 62;

  constexpr Checked(int64_t value) : value_(value), fits_(-kMost <= value && value <= kMost) {}  // NOLINT: numbers are operands, too

  constexpr bool fits() const { return fits_; }
  /// @brief The value; the largest number there is where it does not fit.
  constexpr int64_t value() const { return fits_ ? value_ : INT64_MAX; }

  friend Checked operator+(Checked a, Checked b) {
    int64_t sum = 0;
    const bool wraps = __builtin_add_overflow(a.value_, b.value_, &sum);
    return of(sum, wraps, a, b);
  }
  friend Checked operator-(Checked a, Checked b) {
    int64_t difference = 0;
    const bool wraps = __builtin_sub_overflow(a.value_, b.value_, &difference);
    return of(difference, wraps, a, b);
  }
  friend Checked operator*(Checked a, Checked b) {
    int64_t product = 0;
    const bool wraps = __builtin_mul_overflow(a.value_, b.value_, &product);
    return of(product, wraps, a, b);
  }
  friend Checked operator-(Checked a) { return Checked(0) - a; }
  friend Checked floordiv(Checked a, Checked b) { return of(ait::floordiv(a.value_, b.divisor()), false, a, b); }
  friend Checked ceildiv(Checked a, Checked b) { return of(ait::ceildiv(a.value_, b.divisor()), false, a, b); }
  friend Checked mod(Checked a, Checked b) { return of(ait::mod(a.value_, b.divisor()), false, a, b); }
  friend Checked min(Checked a, Checked b) { return of(ait::min(a.value_, b.value_), false, a, b); }
  friend Checked max(Checked a, Checked b) { return of(ait::max(a.value_, b.value_), false, a, b); }

 private:
  static Checked of(int64_t value, bool wraps, Checked a, Checked b) {
    Checked result(value);
    result.fits_ = result.fits_ && !wraps && a.fits_ && b.fits_;
    return result;
  }
  /// @brief At least 1, as a divisor is that fits.
  int64_t divisor() const { return value_ < 1 ? 1 : value_; }

  int64_t value_;
  bool fits_;
};

// Generated code calls these with their namespace.
Checked floordiv(Checked a, Checked b);
Checked ceildiv(Checked a, Checked b);
Checked mod(Checked a, Checked b);
Checked min(Checked a, Checked b);
Checked max(Checked a, Checked b);

}  // namespace ait

#endif  // AIT_CHECKED_H_
