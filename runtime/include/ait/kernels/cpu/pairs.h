/// @file pairs.h
/// @brief Products of pairs of bf16, two of which one instruction adds to a sum of f32.
#ifndef AIT_KERNELS_CPU_PAIRS_H_
#define AIT_KERNELS_CPU_PAIRS_H_

#include <stdint.h>

#include "ait/kernels/cpu/block.h"
#include "ait/kernels/cpu/vector.h"
#include "ait/types.h"

/// Whether bf16 is multiplied in pairs: where `vdpbf16ps` makes twice the products of an fma of f32. AMD's processors do; on those of Intel it takes
/// twice the time of an fma. A processor without the instruction computes the same with two fmas, for tests.
#ifndef AIT_CPU_PAIRS
#if defined(__AVX512BF16__) && (defined(__znver3__) || defined(__znver4__) || defined(__znver5__))
#define AIT_CPU_PAIRS 1
#else
#define AIT_CPU_PAIRS 0
#endif
#endif

namespace ait::cpu {

/// Whether an element of a row or of a panel is a group of steps of k, with its own functions `add_product` and `load`.
template <class T>
inline constexpr bool kIsGroup = false;

/// @brief Two neighbouring numbers of bf16, the first in the low half.
struct Pair {
  uint32_t bits;

  static __attribute__((always_inline)) Vector<uint32_t> load(const Pair* from) { return *reinterpret_cast<const Vector<uint32_t>*>(from); }

  /// acc += this * x, for each lane.
  __attribute__((always_inline)) void add_product(Vector<float>& acc, const Vector<uint32_t>& x) const {
#if defined(__AVX512BF16__)
    const auto two = reinterpret_cast<__m512bh>(_mm512_set1_epi32(int(bits)));
    acc = reinterpret_cast<Vector<float>>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(acc), reinterpret_cast<__m512bh>(x), two));
#else
    acc += reinterpret_cast<Vector<float>>(x << 16) * bit_cast<float>(bits << 16);
    acc += reinterpret_cast<Vector<float>>(x & 0xffff0000u) * bit_cast<float>(bits & 0xffff0000u);
#endif
  }
};
template <>
inline constexpr bool kIsGroup<Pair> = true;

/// @brief The type in which rows are multiplied: pairs where that is faster, else the compute type.
template <class T>
using RowElement = std::conditional_t<AIT_CPU_PAIRS && std::is_same_v<T, bfloat16>, Pair, compute_t<T>>;

/// Steps of k in an element of a row.
template <class R>
inline constexpr int64_t kStepsOf = std::is_same_v<R, Pair> ? 2 : 1;

/// @brief acc += x * y, for each lane of a sum.
template <class V, class X, class R>
inline __attribute__((always_inline)) void add_product(V& acc, const X& x, R y) {
  if constexpr (kIsGroup<R>) {
    y.add_product(acc, x);
  } else {
    acc += x * y;
  }
}

/// @brief A register of neighbouring elements of a panel.
template <class P>
inline __attribute__((always_inline)) auto load_line(const P* from) {
  if constexpr (kIsGroup<P>) {
    return P::load(from);
  } else {
    return load_vector<P>(from);
  }
}

/// @brief Joins `depth` lines of `columns` numbers by twos: to[k][c] has from[2 k][c] and from[2 k + 1][c], or zero after the last line.
inline void pair_lines(const bfloat16* from, int64_t depth, int64_t columns, Pair* to) {
  const uint16_t* low = reinterpret_cast<const uint16_t*>(from);
  uint32_t* out = reinterpret_cast<uint32_t*>(to);
  int64_t k = 0;
  for (; k + 2 <= depth; k += 2, low += 2 * columns, out += columns) {
    const uint16_t* const high = low + columns;
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) out[c] = uint32_t(low[c]) | uint32_t(high[c]) << 16;
  }
  if (k < depth) {
    for (int64_t c = 0; c < columns; ++c) out[c] = low[c];
  }
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_PAIRS_H_
