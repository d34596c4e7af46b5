/// @file norm_eps.h
/// @brief The use of `eps` in norms, for host and device.
#ifndef AIT_KERNELS_NORM_EPS_H_
#define AIT_KERNELS_NORM_EPS_H_

#include "ait/math.h"

namespace ait {

/// @brief The number by whose root a norm divides: the variance, or mean of squares, plus `eps`; with a negative `eps`, at least -`eps` instead.
template <class T>
AIT_FN T with_eps(T squares, T eps) {
  return eps < T(0) ? max(squares, -eps) : squares + eps;
}

}  // namespace ait
#endif  // AIT_KERNELS_NORM_EPS_H_
