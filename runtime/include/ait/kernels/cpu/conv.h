/// @file conv.h
/// @brief Convolution as a product, of which the rows are gathered from the input while they are packed.
#ifndef AIT_KERNELS_CPU_CONV_H_
#define AIT_KERNELS_CPU_CONV_H_

#include <stdint.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/conv_shape.h"
#include "ait/kernels/cpu/gemm.h"
#include "ait/kernels/cpu/transpose.h"
#include "ait/parallel.h"

namespace ait::cpu {

namespace detail {

/// @brief Finds the elements of one tap for many places: the division of the tap's number is made once.
template <class T, int R, bool kTransposed>
class TapReader {
 public:
  using Input = ConvInput<T, R, kTransposed>;

  TapReader(const Input& x, int tap, int64_t group) : x_(x), tap_(tap), group_(group), first_(x.data + group * x.depth * x.strides[R + 1]) {
    for (int d = R - 1; d >= 0; --d) {
      shift_[d] = tap % x.kernel[d] * x.dilation[d];
      tap /= int(x.kernel[d]);
    }
  }
  /// The first channel of the group, or null where there are zeros.
  const T* at(const typename Input::Place& place) const {
    if constexpr (kTransposed) return x_.at(place, tap_, group_);
    const T* from = first_ + place.batch * x_.strides[0];
    bool inside = true;
    for (int d = 0; d < R; ++d) {
      const int64_t along = place.at[d] + shift_[d];
      inside = inside && along >= 0 && along < x_.size[d];
      from += along * x_.strides[d + 1];
    }
    return inside ? from : nullptr;
  }

 private:
  const Input& x_;
  int tap_;
  int64_t group_;
  const T* first_;
  int64_t shift_[R];
};

/// @brief to[k][r] = row first + r, column k of the input as a matrix, for one strip of `rows` rows, the rest zero. Squares of contiguous channels
/// are transposed in registers.
template <class T, int R, bool kTransposed, class A>
inline void gather_strip(const ConvInput<T, R, kTransposed>& x, int64_t group, int64_t first, int64_t rows, int strip, A* to) {
  constexpr int kSide = kLanes<A>;
  const int64_t step = x.strides[R + 1];
  const int taps = int(x.taps());
  if (rows < strip) memset(static_cast<void*>(to), 0, size_t(taps * x.depth) * size_t(strip) * sizeof(A));
  for (int64_t r0 = 0; r0 < rows; r0 += kSide) {
    const int count = int(rows - r0 < kSide ? rows - r0 : kSide);
    typename ConvInput<T, R, kTransposed>::Place places[kSide];
    for (int r = 0; r < count; ++r) places[r] = x.place(first + r0 + r);
    A* at = to + r0;
    for (int tap = 0; tap < taps; ++tap) {
      const TapReader reader(x, tap, group);
      const T* from[kSide];
      for (int r = 0; r < kSide; ++r) from[r] = r < count ? reader.at(places[r]) : nullptr;
      int64_t c = 0;
      for (; count == kSide && step == 1 && c < x.depth; c += kSide) {
        const int64_t left = x.depth - c;
        Vector<A> square[kSide];
#pragma GCC unroll 16
        for (int r = 0; r < kSide; ++r) {
          square[r] = from[r] == nullptr ? Vector<A>{} : (left < kSide ? load_some<T>(from[r] + c, left) : load_vector<T>(from[r] + c));
        }
        transpose<A>(square);
        A* const lines = at + c * strip;
#pragma GCC unroll 16
        for (int i = 0; i < kSide; ++i) {
          if (i < left) *reinterpret_cast<Vector<A>*>(lines + i * strip) = square[i];
        }
      }
      for (; c < x.depth; ++c) {
        for (int r = 0; r < count; ++r) at[c * strip + r] = from[r] == nullptr ? A(0) : static_cast<A>(from[r][c * step]);
      }
      at += x.depth * strip;
    }
  }
}

template <int kVectors, class F, class T, int R, bool kTransposed, class D, class... E>
int32_t conv_parallel(const Context& ctx, const GemmShape& shape, const ConvInput<T, R, kTransposed>& x, const Matrices<const T>& w, const Matrices<D>& d,
                      const Operands<E...>& extra) {
  using A = compute_t<T>;
  constexpr int64_t kStripOf = kStrip<A, kVectors>;
  // Rows that are packed together: what fills about half of a second-level cache, at most 256.
  int64_t block_m = int64_t(768 * 1024 / sizeof(A)) / (shape.k > 0 ? shape.k : 1) / kStripOf * kStripOf;
  block_m = block_m < kStripOf ? kStripOf : (block_m > 256 ? 256 : block_m);
  const int64_t blocks_m = (shape.m + block_m - 1) / block_m, columns = shape.n / x.groups;
  const int64_t pieces = blocks_m * x.groups * shape.outer * shape.inner;
  AllOf enough;
  parallel_tasks(pieces, threads_for(shape.m * columns * shape.k * pieces / blocks_m), [&](int64_t piece) {
    const int64_t m0 = piece % blocks_m * block_m, m1 = m0 + block_m < shape.m ? m0 + block_m : shape.m;
    const int64_t group = piece / blocks_m % x.groups, batch = piece / blocks_m / x.groups;
    const auto pack = [&](int64_t m, int64_t count, int strip, A* to) { gather_strip(x, group, batch * shape.m + m, count, strip, to); };
    enough.note(gemm_piece<kVectors, F>(batch / shape.inner, batch % shape.inner, m0, m1, group * columns, (group + 1) * columns, shape.k, pack, w,
                                        d, extra));
  });
  return enough.all() ? 0 : ctx.fail("conv: no memory for packing the input");
}

}  // namespace detail

/// @brief d = F(conv(x, w), operands...). The rows of `d` are places of the window, cut into batches as its strides need, all its columns are
/// channels; `w` is [k, n] by its strides: k are the elements of the window, as the columns of `x` are.
template <class F, class T, int R, bool kTransposed, class D, class... E>
int32_t conv(const Context& ctx, const GemmShape& shape, const ConvInput<T, R, kTransposed>& x, Matrices<const T> w, Matrices<D> d, Operands<E...> extra) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  if (shape.m <= kLanes<compute_t<T>>) return detail::conv_parallel<1, F>(ctx, shape, x, w, d, extra);
  return detail::conv_parallel<2, F>(ctx, shape, x, w, d, extra);
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_CONV_H_
