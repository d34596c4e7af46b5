/// @file histogram.h
/// @brief The number of occurrences of each small number.
#ifndef AIT_KERNELS_CPU_HISTOGRAM_H_
#define AIT_KERNELS_CPU_HISTOGRAM_H_

#include <stdint.h>

#include "ait/context.h"

namespace ait::cpu {

/// @brief out[b] = how many of the `count` elements of `in` are b, for b from 0 to `bins` - 1; other elements are not counted.
template <class T, class Count>
int32_t histogram(const Context&, int64_t count, const T* in, int64_t bins, Count* out) {
  for (int64_t b = 0; b < bins; ++b) out[b] = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t bin = static_cast<int64_t>(in[i]);
    if (bin >= 0 && bin < bins) ++out[bin];
  }
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_HISTOGRAM_H_
