/// @file pad.h
/// @brief Padding and cropping, row by row.
#ifndef AIT_KERNELS_CPU_PAD_H_
#define AIT_KERNELS_CPU_PAD_H_

#include <stdint.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/pad_shape.h"
#include "ait/parallel.h"

namespace ait::cpu {

namespace detail {
/// @brief One row along the last dim.
template <PadMode kMode, class T>
void pad_row(const PadDim& dim, const T* from, T* to, T value, bool inside) {
  const int64_t step = dim.out_stride;
  if (!inside) {
    for (int64_t i = 0; i < dim.out; ++i) to[i * step] = value;
    return;
  }
  // the part inside of the input
  const int64_t first = dim.before < 0 ? 0 : (dim.before < dim.out ? dim.before : dim.out);
  const int64_t end = dim.in + dim.before, last = end < first ? first : (end < dim.out ? end : dim.out);
  const auto outside = [&](int64_t i) {
    const int64_t j = dim.template source<kMode>(i);
    to[i * step] = j < 0 ? value : from[j * dim.in_stride];
  };
  for (int64_t i = 0; i < first; ++i) outside(i);
  const T* const source = from + (first - dim.before) * dim.in_stride;
  if (step == 1 && dim.in_stride == 1) {
    if (last > first) memcpy(static_cast<void*>(to + first), source, size_t(last - first) * sizeof(T));
  } else {
    for (int64_t i = first; i < last; ++i) to[i * step] = source[(i - first) * dim.in_stride];
  }
  for (int64_t i = last; i < dim.out; ++i) outside(i);
}
}  // namespace detail

/// @brief out[i] = in[i - before] in each dim, the value that `kMode` defines outside of the input. Any strides.
template <PadMode kMode, size_t kRank, class T>
int32_t pad(const Context&, const PadDims<kRank>& shape, const T* in, T* out, T value) {
  constexpr int kOuter = static_cast<int>(kRank) - 1;
  int64_t sizes[kRank] = {}, rows = 1;
  for (int d = 0; d < kOuter; ++d) rows *= sizes[d] = shape.dims[d].out;
  const PadDim& row = shape.dims[kOuter];
  if (rows * row.out == 0) return 0;
  parallel_for(rows, rows * row.out >= kParallelElements, [=](int64_t task) {
    int64_t at[kRank] = {}, from, to;
    if constexpr (kOuter > 0) coordinates<kOuter>(task, sizes, at);
    const bool inside = shape.template place<kMode, kOuter>(at, from, to);
    detail::pad_row<kMode>(row, in + (inside ? from : 0), out + to, value, inside);
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_PAD_H_
