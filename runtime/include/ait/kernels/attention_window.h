/// @file attention_window.h
/// @brief The columns that a row of attention sees, for the kernels of all targets.
#ifndef AIT_KERNELS_ATTENTION_WINDOW_H_
#define AIT_KERNELS_ATTENTION_WINDOW_H_

#include <stdint.h>

namespace ait {

/// @brief The window of a row that sees columns at any distance: more than any, and small enough to add to.
inline constexpr int64_t kNoWindow = int64_t(1) << 40;

}  // namespace ait
#endif  // AIT_KERNELS_ATTENTION_WINDOW_H_
