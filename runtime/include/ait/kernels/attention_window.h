/// @file attention_window.h
/// @brief What the attention kernels of all targets say about the columns that a row sees.
#ifndef AIT_KERNELS_ATTENTION_WINDOW_H_
#define AIT_KERNELS_ATTENTION_WINDOW_H_

#include <stdint.h>

namespace ait {

/// @brief The window of a row that sees columns at any distance: more than any, and small enough to add to.
inline constexpr int64_t kNoWindow = int64_t(1) << 40;

}  // namespace ait
#endif  // AIT_KERNELS_ATTENTION_WINDOW_H_
