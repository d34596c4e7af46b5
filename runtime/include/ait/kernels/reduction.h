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

/// @brief The logarithm of a sum of exponentials: the largest exponent, and the sum of the exponentials divided by that of `most`, at least 1. To join
/// two takes one exponential.
template <class C>
struct Exponentials {
  C most, sum;
};

/// @brief The state of a reduction of one element.
template <class A, class C>
AIT_FN A state_of(C element) {
  if constexpr (std::is_arithmetic_v<A>) {
    return static_cast<A>(element);
  } else {
    return A{element, 1};
  }
}

/// @brief The result of a state, as an element.
template <class C, class A>
AIT_FN C element_of(A state) {
  if constexpr (std::is_arithmetic_v<A>) {
    return static_cast<C>(state);
  } else {
    return static_cast<C>(state.most + log(state.sum));
  }
}

/// @brief log(exp(a) + exp(b)) of all elements, which are floats; -inf without elements.
struct LogSumExp : Sum {
  template <class C>
  using Acc = Exponentials<C>;
  template <class T, class A>
  static AIT_FN A start() {
    return state_of<A>(detail::lowest<T, decltype(A::most)>());
  }
  template <class C>
  static AIT_FN Exponentials<C> join(Exponentials<C> a, Exponentials<C> b) {
    const bool is_first = a.most > b.most;
    const C above = is_first ? a.sum : b.sum, below = is_first ? b.sum : a.sum;
    Exponentials<C> joined;
    joined.most = is_first ? a.most : b.most;
    joined.sum = above + below * exp_of_negative(a.most == b.most ? C(0) : is_first ? b.most - a.most : a.most - b.most);  // infinities are equal
    return joined;
  }

 private:
  static AIT_FN float exp_of_negative(float x) { return exp_narrow(x); }  // added to at least 1: the error is that of an addition
  static AIT_FN double exp_of_negative(double x) { return exp(x); }
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
