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

/// @brief How many elements there are, their sum, and the sum of their squared distances from their mean.
template <class C>
struct MomentsOf {
  C count, sum, squares;
  /// The squared distances; NaN if an element is not finite, as its distance from the mean is.
  AIT_FN C distances() const { return squares + (sum - sum); }
};

/// @brief A sum and squared distances from the mean in one pass (Youngs and Cramer, 1971; Chan, Golub and LeVeque, 1979).
struct Moments {
  template <class C, class A>
  static AIT_FN A start() {
    return A{0, 0, 0};
  }
  template <class C>
  static AIT_FN MomentsOf<C> join(MomentsOf<C> a, MomentsOf<C> b) {
    const C count = a.count + b.count, distance = b.sum / b.count - a.sum / a.count;
    const C between = a.count > 0 && b.count > 0 ? distance * distance * (a.count * (b.count / count)) : C(0);
    return {count, a.sum + b.sum, a.squares + b.squares + between};
  }
  /// `join` with one element.
  template <class C>
  static AIT_FN MomentsOf<C> join_next(MomentsOf<C> a, C x) {
    const C count = a.count + 1, distance = x - a.sum * inverse(a.count);
    return {count, a.sum + x, a.count > 0 ? a.squares + distance * distance * (a.count * inverse(count)) : C(0)};
  }

 private:
  /// To 1 ulp: the mean of the elements before may be off by as much.
  static AIT_FN float inverse(float x) {
#if defined(AIT_DEVICE_MATH) && defined(AIT_CUDA)
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1.f / x;
#endif
  }
  static AIT_FN double inverse(double x) { return 1.0 / x; }
};

}  // namespace ait
#endif  // AIT_KERNELS_LOOPS_H_
