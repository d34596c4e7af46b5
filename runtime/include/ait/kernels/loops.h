/// @file loops.h
/// @brief What generated loops need on host and device: divisions of indices, and folds that keep the place of a value.
#ifndef AIT_KERNELS_LOOPS_H_
#define AIT_KERNELS_LOOPS_H_

#include <stdint.h>

#include <type_traits>

#include "ait/kernels/reduction.h"
#include "ait/types.h"

namespace ait {

/// @brief `a / b` of an index that is at least 0: unsigned, which needs no correction.
template <class Index>
AIT_FN Index quotient(Index a, Index b) {
  using U = std::make_unsigned_t<Index>;
  return static_cast<Index>(static_cast<U>(a) / static_cast<U>(b));
}

/// @brief `a` modulo `b` of an index that is at least 0.
template <class Index>
AIT_FN Index remainder(Index a, Index b) {
  using U = std::make_unsigned_t<Index>;
  return static_cast<Index>(static_cast<U>(a) % static_cast<U>(b));
}

/// @brief `a / b` rounded down, of any index.
template <class Index>
AIT_FN Index floor_quotient(Index a, Index b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

/// @brief `a - b * floor_quotient(a, b)`, in [0, b).
template <class Index>
AIT_FN Index floor_remainder(Index a, Index b) {
  return a % b < 0 ? a % b + b : a % b;
}

/// @brief Whether a value is an index of a dim of `size` elements.
template <class T>
AIT_FN bool within(T value, int64_t size) {
  return static_cast<uint64_t>(static_cast<int64_t>(value)) < static_cast<uint64_t>(size);
}

/// @brief A value and its place among those that are folded.
template <class C, class P>
struct Placed {
  C value;
  P place;
};

/// @brief The largest value and its place, or the smallest; NaN comes before any number, of equal values the first.
template <bool kLargest>
struct Best {
  /// Behind any place.
  template <class C, class A>
  static AIT_FN A start() {
    using P = decltype(A::place);
    constexpr P kBehind = static_cast<P>(static_cast<std::make_unsigned_t<P>>(~P(0)) >> 1);
    if constexpr (kLargest) {
      return A{detail::lowest<C, C>(), kBehind};
    } else {
      return A{Min::template start<C, C>(), kBehind};
    }
  }
  template <class A>
  static AIT_FN A join(A a, A b) {
    const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
    const bool equal = a.value == b.value || (nan_a && nan_b);
    const bool better = kLargest ? b.value > a.value : b.value < a.value;
    return (equal ? b.place < a.place : nan_a ? false : nan_b || better) ? b : a;
  }
  /// `join` with a value whose place is behind that of the state, unless the state is the start.
  template <class A>
  static AIT_FN A join_next(A a, A b) {
    const bool better = kLargest ? !(b.value <= a.value) : !(b.value >= a.value);  // or NaN
    return (better && a.value == a.value) || a.place > b.place ? b : a;
  }
};

}  // namespace ait
#endif  // AIT_KERNELS_LOOPS_H_
