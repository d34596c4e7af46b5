/// @file conv_packed.h
/// @brief Convolution on the CPU with a weight that lies in panels (`ait/panels.h`): rows are gathered, then multiplied as a gemm's.
#ifndef AIT_KERNELS_CPU_CONV_PACKED_H_
#define AIT_KERNELS_CPU_CONV_PACKED_H_

#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/cpu/conv_rows.h"
#include "ait/kernels/cpu/gemm_gathered.h"

namespace ait::cpu {

/// @brief d = F(conv(x, w), operands...) with `w` of one group in panels. Channels of `x` are contiguous; otherwise as `conv`.
template <class F, class T, int R, bool kTransposed, class... E>
int32_t conv_packed(const Context& ctx, const GemmShape& shape, const ConvInput<T, R, kTransposed>& x, const T* panels, Matrices<T> d,
                    Operands<E...> extra) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  const auto gather = [&](int64_t batch, int64_t m, int64_t count, auto* to) { detail::gather_rows(x, batch * shape.m + m, count, to); };
  const char* const what = "conv: no memory for gathered rows";
#ifdef AIT_CPU_AMX
  if constexpr (std::is_same_v<T, float>) {
    if (shape.m > detail::kAmxFew && shape.k > 0 && may_use_amx()) return detail::gemm_gathered<true, F>(ctx, shape, gather, panels, d, extra, what);
  }
#endif
  return detail::gemm_gathered<false, F>(ctx, shape, gather, panels, d, extra, what);
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_CONV_PACKED_H_
