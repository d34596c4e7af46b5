/// @file map.h
/// @brief Elementwise kernels: one functor over strided, broadcast operands, several results.
#ifndef AIT_KERNELS_CPU_MAP_H_
#define AIT_KERNELS_CPU_MAP_H_

#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/operand.h"
#include "ait/math.h"
#include "ait/parallel.h"

namespace ait::cpu {

namespace detail {
template <class F, class... Ins, size_t... I, class... Outs, size_t... O>
inline void map_run(const Pack<Ins...>& ins, std::index_sequence<I...> in_indices, const Pack<Outs...>& outs,
                    std::index_sequence<O...> out_indices, const int64_t* coordinate, int inner, int64_t begin, int64_t end) {
  Pack<InputBlock<Ins>...> in_blocks;
  Pack<OutputBlock<Outs>...> out_blocks;
  for (int64_t first = begin; first < end; first += kBlock) {
    const int64_t n = end - first < kBlock ? end - first : kBlock;
    const auto values = pack(get<I>(in_blocks).load(at(get<I>(ins), coordinate, inner) + first * get<I>(ins).strides[inner],
                                                    get<I>(ins).strides[inner], n)...);
    const auto results = pack(
        get<O>(out_blocks).begin(at(get<O>(outs), coordinate, inner) + first * get<O>(outs).strides[inner])...);
    apply_run<F>(values, in_indices, results, out_indices, n);
    (get<O>(out_blocks).store(at(get<O>(outs), coordinate, inner) + first * get<O>(outs).strides[inner],
                              get<O>(outs).strides[inner], n),
     ...);
  }
}
}  // namespace detail

/// @brief outs[...] = F(ins[...]) over an iteration space of `sizes`.
///
/// The operands have a stride for each dim of the space (0 where they are broadcast). An output may be the very buffer of an input with the
/// same strides; no other overlap is allowed.
template <class F, size_t kRank, class... Ins, class... Outs>
int32_t map(const Context&, const int64_t (&sizes)[kRank], const Pack<Ins...>& ins, const Pack<Outs...>& outs) {
  constexpr int kInner = static_cast<int>(kRank) - 1;
  constexpr int64_t kTask = 16 * kBlock;
  int64_t rows = 1;
  for (int d = 0; d < kInner; ++d) rows *= sizes[d];
  const int64_t n = sizes[kInner];
  if (rows <= 0 || n <= 0) return 0;
  const int64_t parts = (n + kTask - 1) / kTask;
  parallel_for(rows * parts, rows * n >= kParallelElements, [=](int64_t task) {
    const int64_t row = task / parts;
    const int64_t begin = (task - row * parts) * kTask;
    const int64_t end = begin + kTask < n ? begin + kTask : n;
    int64_t coordinate[kRank] = {};
    if constexpr (kInner > 0) coordinates<kInner>(row, sizes, coordinate);
    detail::map_run<F>(ins, std::index_sequence_for<Ins...>{}, outs, std::index_sequence_for<Outs...>{}, coordinate, kInner, begin, end);
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_MAP_H_
