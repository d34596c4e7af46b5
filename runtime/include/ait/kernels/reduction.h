/// @file reduction.h
/// @brief The start value of a reduction, the combination of two partial results, and the final step: for host and device.
///
/// Integers narrower than 32 bits are reduced in 32, and sums of integers in unsigned ones, so that they wrap.
#ifndef AIT_KERNELS_REDUCTION_H_
#define AIT_KERNELS_REDUCTION_H_

#include <math.h>
#include <stdint.h>

#include <type_traits>

#include "ait/math.h"
#include "ait/types.h"

namespace ait {

namespace detail {
template <class C>
using signed_acc_t = std::conditional_t<std::is_integral<C>::value && (sizeof(C) < 4), int32_t, C>;
template <class C, bool kInteger = std::is_integral<C>::value>
struct SumAccumulator {
  using Type = C;
};
template <class C>
struct SumAccumulator<C, true> {
  using Type = std::conditional_t<(sizeof(C) < 8), uint32_t, uint64_t>;
};

/// The least value of an element type, -inf where there is one.
template <class T, class A>
AIT_FN A lowest() {
  if constexpr (std::is_same_v<T, bool>) {
    return A(0);
  } else if constexpr (std::is_integral<T>::value) {
    return std::is_signed<T>::value ? static_cast<A>(static_cast<T>(uint64_t(1) << (8 * sizeof(T) - 1))) : A(0);
  } else {
    return -static_cast<A>(INFINITY);
  }
}
}  // namespace detail

struct Sum {
  static constexpr bool kCentred = false;
  template <class C>
  using Acc = typename detail::SumAccumulator<C>::Type;
  template <class T, class A>
  static AIT_FN A start() {
    return A(0);
  }
  template <class A>
  static AIT_FN A join(A a, A b) {
    return a + b;
  }
  template <class A>
  static AIT_FN A finish(A a, A, double) {
    return a;
  }
};

struct Mean : Sum {
  template <class A>
  static AIT_FN A finish(A a, A count, double) {
    return a / count;
  }
};

/// @brief The product; integers wrap.
struct Prod : Sum {
  template <class T, class A>
  static AIT_FN A start() {
    return A(1);
  }
  template <class A>
  static AIT_FN A join(A a, A b) {
    return a * b;
  }
};

/// @brief log(exp(a) + exp(b)) of all elements, which are floats; -inf without elements.
struct LogSumExp : Sum {
  template <class T, class A>
  static AIT_FN A start() {
    return detail::lowest<T, A>();
  }
  template <class A>
  static AIT_FN A join(A a, A b) {
    const A below = a > b ? b - a : a - b;
    if (below != below) return a != a ? a : b;  // a NaN, or two infinities of one sign
    return (a > b ? a : b) + log1p(exp(below));
  }
};

/// @brief The largest element; NaN if there is one.
struct Max {
  static constexpr bool kCentred = false;
  template <class C>
  using Acc = detail::signed_acc_t<C>;
  template <class T, class A>
  static AIT_FN A start() {
    return detail::lowest<T, A>();
  }
  /// Also for vectors of the compiler.
  template <class A>
  static AIT_FN A join(A a, A b) {
    return ((a > b) | (a != a)) ? a : b;
  }
  template <class A>
  static AIT_FN A finish(A a, A, double) {
    return a;
  }
};

/// @brief The smallest element; NaN if there is one.
struct Min {
  static constexpr bool kCentred = false;
  template <class C>
  using Acc = detail::signed_acc_t<C>;
  template <class T, class A>
  static AIT_FN A start() {
    if constexpr (std::is_same_v<T, bool>) {
      return A(1);
    } else if constexpr (std::is_integral<T>::value) {
      return static_cast<A>(static_cast<T>(~detail::lowest<T, T>()));
    } else {
      return static_cast<A>(INFINITY);
    }
  }
  template <class A>
  static AIT_FN A join(A a, A b) {
    return ((a < b) | (a != a)) ? a : b;
  }
  template <class A>
  static AIT_FN A finish(A a, A, double) {
    return a;
  }
};

/// @brief Mean square distance from the mean, over `count - correction`: a second pass sums the differences from the mean, and their squares.
struct Var : Sum {
  static constexpr bool kCentred = true;
  template <class A>
  static AIT_FN A finish_centred(A differences, A squares, A count, double correction) {
    const A rest = squares - differences * (differences / count);
    const A divisor = count - static_cast<A>(correction);
    return (rest < A(0) ? A(0) : rest) / (divisor > A(0) ? divisor : A(0));
  }
};

}  // namespace ait
#endif  // AIT_KERNELS_REDUCTION_H_
