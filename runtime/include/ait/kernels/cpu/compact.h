/// @file compact.h
/// @brief The rows of a tensor where a mask is true, in order.
#ifndef AIT_KERNELS_CPU_COMPACT_H_
#define AIT_KERNELS_CPU_COMPACT_H_

#include <stdint.h>
#include <string.h>

#include "ait/context.h"

namespace ait::cpu {

/// @brief Writes the rows of `in` whose place in `mask` is true to `out`, one after another, and how many they are to `count`.
///
/// `rows` rows of `width` elements, contiguous everywhere.
template <class T>
int32_t compact(const Context&, int64_t rows, int64_t width, const T* in, const bool* mask, T* out, int64_t* count) {
  int64_t found = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (!mask[row]) continue;
    if (width > 0) memcpy(out + found * width, in + row * width, static_cast<size_t>(width) * sizeof(T));
    ++found;
  }
  *count = found;
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_COMPACT_H_
