/// @file norm_eps.h
/// @brief What norms make of `eps`, for host and device.
#ifndef AIT_KERNELS_NORM_EPS_H_
#define AIT_KERNELS_NORM_EPS_H_

#include "ait/math.h"

namespace ait {

/// @brief What a norm divides by the root of: a variance, or mean of squares, plus `eps`; a negative one bounds it from below by -`eps` instead.
template <class T>
AIT_FN T with_eps(T squares, T eps) {
  return eps < T(0) ? max(squares, -eps) : squares + eps;
}

}  // namespace ait
#endif  // AIT_KERNELS_NORM_EPS_H_
