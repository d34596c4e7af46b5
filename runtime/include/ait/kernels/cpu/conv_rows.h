/// @file conv_rows.h
/// @brief The rows that a convolution multiplies: the elements of the window at each place, gathered from the input.
#ifndef AIT_KERNELS_CPU_CONV_ROWS_H_
#define AIT_KERNELS_CPU_CONV_ROWS_H_

#include <stdint.h>
#include <string.h>

#include "ait/kernels/conv_shape.h"
#include "ait/kernels/cpu/gemm_gathered.h"

namespace ait::cpu {

namespace detail {

/// @brief to[r] = row first + r of the input as a matrix, as it is or in the compute type. Channels are contiguous.
template <class T, int R, bool kTransposed, class To>
void gather_rows(const ConvInput<T, R, kTransposed>& x, int64_t first, int64_t rows, To* to) {
  const int64_t across = x.kernel[R - 1], taps = x.taps();
  // Taps along the last dim whose elements lie one after another are copied at once.
  const bool joined = !kTransposed && x.dilation[R - 1] == 1 && x.strides[R] == x.depth;
  const auto copy = [&to](const T* from, int64_t count) {
    if (from == nullptr) {
      memset(static_cast<void*>(to), 0, size_t(count) * sizeof(*to));
    } else {
      copy_or_widen(from, count, to);
    }
    to += count;
  };
  auto place = x.place(first);
  for (int64_t r = 0; r < rows; ++r, x.advance(place)) {
    if (!joined) {
      for (int64_t tap = 0; tap < taps; ++tap) copy(x.at(place, int(tap), 0), x.depth);
      continue;
    }
    const int64_t before = -place.at[R - 1], inside = x.size[R - 1] + before;
    const int64_t begin = before < 0 ? 0 : (before < across ? before : across), end = inside < begin ? begin : (inside < across ? inside : across);
    int64_t line[R] = {};  // of the window: a place along each dim but the last
    for (int64_t tap = 0; tap < taps; tap += across) {
      bool is_inside = begin < end;
      int64_t offset = place.batch * x.strides[0] + (begin - before) * x.strides[R];
      for (int d = 0; d < R - 1; ++d) {
        const int64_t along = place.at[d] + line[d] * x.dilation[d];
        is_inside = is_inside && along >= 0 && along < x.size[d];
        offset += along * x.strides[d + 1];
      }
      if (begin > 0) copy(nullptr, begin * x.depth);
      copy(is_inside ? x.data + offset : nullptr, (end - begin) * x.depth);
      if (end < across) copy(nullptr, (across - end) * x.depth);
      for (int d = R - 2; d >= 0 && ++line[d] == x.kernel[d]; --d) line[d] = 0;
    }
  }
}

}  // namespace detail

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_CONV_ROWS_H_
