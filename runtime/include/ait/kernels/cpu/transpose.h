/// @file transpose.h
/// @brief Square blocks of elements, transposed in registers.
#ifndef AIT_KERNELS_CPU_TRANSPOSE_H_
#define AIT_KERNELS_CPU_TRANSPOSE_H_

#include <stdint.h>

#include <utility>

#include "ait/kernels/cpu/vector.h"

namespace ait::cpu {

namespace detail {

/// Exchanges the off-diagonal quarters of a pair of rows, whose lanes are taken `kHalf` at a time.
template <int kHalf, class V, size_t... L>
inline __attribute__((always_inline)) void exchange(V& low, V& high, std::index_sequence<L...>) {
  constexpr int kCount = int(sizeof...(L));
  const V a = low, b = high;
  low = __builtin_shufflevector(a, b, ((int(L) & kHalf) == 0 ? int(L) : kCount + int(L) - kHalf)...);
  high = __builtin_shufflevector(a, b, ((int(L) & kHalf) == 0 ? int(L) + kHalf : kCount + int(L))...);
}

template <int kHalf, class A>
inline __attribute__((always_inline)) void exchange_all(Vector<A> (&rows)[kLanes<A>]) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes<A>; ++i) {
    if ((i & kHalf) == 0) exchange<kHalf>(rows[i], rows[i + kHalf], std::make_index_sequence<kLanes<A>>{});
  }
  if constexpr (kHalf > 1) exchange_all<kHalf / 2, A>(rows);
}

}  // namespace detail

/// @brief rows[i][j] becomes rows[j][i].
template <class A>
inline __attribute__((always_inline)) void transpose(Vector<A> (&rows)[kLanes<A>]) {
  detail::exchange_all<kLanes<A> / 2, A>(rows);
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_TRANSPOSE_H_
