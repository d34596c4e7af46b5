/// @file dims.h
/// @brief The operators of dim expressions that C++ lacks, on int64_t, for host and device.
///
/// Division rounds down for every sign of the dividend, as in the compiler; a divisor is at least 1.
#ifndef AIT_DIMS_H_
#define AIT_DIMS_H_

#include <cstdint>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define AIT_DIM_FN __host__ __device__ inline constexpr
#else
#define AIT_DIM_FN inline constexpr
#endif

namespace ait {

/// @brief `a / b` rounded down. @param b at least 1
AIT_DIM_FN int64_t floordiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// @brief `a / b` rounded up. @param b at least 1
AIT_DIM_FN int64_t ceildiv(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

/// @brief `a - b * floordiv(a, b)`, in [0, b). @param b at least 1
AIT_DIM_FN int64_t mod(int64_t a, int64_t b) { return a % b < 0 ? a % b + b : a % b; }

AIT_DIM_FN int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
AIT_DIM_FN int64_t max(int64_t a, int64_t b) { return a < b ? b : a; }

}  // namespace ait

#undef AIT_DIM_FN
#endif  // AIT_DIMS_H_
