/// @file conv_bytes.h
/// @brief Convolution of integers of 8 bits on the CPU, with sums of 32 bits, which wrap: rows are gathered, then multiplied as in `gemm_bytes.h`.
#ifndef AIT_KERNELS_CPU_CONV_BYTES_H_
#define AIT_KERNELS_CPU_CONV_BYTES_H_

#include <stdint.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/conv_shape.h"
#include "ait/kernels/cpu/conv_rows.h"
#include "ait/kernels/cpu/gemm_bytes.h"

namespace ait::cpu {

namespace detail {

/// @brief Lays out the rows of a convolution, for `gemm_by_fours`. Channels are contiguous.
template <class A, int R, bool kTransposed>
struct RowsOfImage {
  const GemmShape& shape;
  const ConvInput<A, R, kTransposed>& x;

  void operator()(int64_t batch, int64_t m, int64_t count, uint32_t* to) const {
    const int64_t first = batch * shape.m + m;
    A* const bytes = reinterpret_cast<A*>(to);
    if (shape.k % 4 == 0) return gather_rows(x, first, count, bytes);
    const int64_t pitch = (shape.k + 3) / 4 * 4;
    for (int64_t r = 0; r < count; ++r) {
      gather_rows(x, first + r, 1, bytes + r * pitch);
      memset(bytes + r * pitch + shape.k, 0, size_t(pitch - shape.k));
    }
  }
};

/// @brief The operands from a column on.
inline Operands<> from_column(const Operands<>&, int64_t) { return {}; }
template <class E, class... Rest>
inline Operands<E, Rest...> from_column(Operands<E, Rest...> extra, int64_t column) {
  extra.first.data += column * extra.first.col;
  extra.rest = from_column(extra.rest, column);
  return extra;
}

}  // namespace detail

/// @brief d = F(conv(x, w), operands...) for elements of `x` and `w` that are int8_t or uint8_t each. Channels of `x` are contiguous; otherwise as
/// `conv`.
template <class F, class A, class B, int R, bool kTransposed, class D, class... E>
int32_t conv_bytes(const Context& ctx, const GemmShape& shape, const ConvInput<A, R, kTransposed>& x, Matrices<const B> w, Matrices<D> d,
                   Operands<E...> extra) {
  GemmShape group = shape;
  group.n = shape.n / x.groups;
  for (int64_t g = 0; g < x.groups; ++g) {
    ConvInput<A, R, kTransposed> own = x;
    own.data += g * x.depth * x.strides[R + 1];
    const int64_t column = g * group.n;
    const Matrices<const B> weight{w.data + column * w.col, w.row, w.col};
    const Matrices<D> to{d.data + column * d.col, d.row, d.col, d.outer, d.inner};
    const int32_t status = detail::gemm_by_fours<F, A, B>(ctx, group, detail::RowsOfImage<A, R, kTransposed>{group, own},
                                                          detail::MadePanels<B>{weight, shape.k}, to, detail::from_column(extra, column));
    if (status != 0) return status;
  }
  return 0;
}

/// @brief `conv_bytes` with `w` of one group in panels.
template <class F, class A, class B, int R, bool kTransposed, class D, class... E>
int32_t conv_bytes_packed(const Context& ctx, const GemmShape& shape, const ConvInput<A, R, kTransposed>& x, const B* panels, Matrices<D> d,
                          Operands<E...> extra) {
  return detail::gemm_by_fours<F, A, B>(ctx, shape, detail::RowsOfImage<A, R, kTransposed>{shape, x}, detail::StoredPanels<B>{panels}, d, extra);
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_CONV_BYTES_H_
