/// @file gemm_packed.h
/// @brief Gemm on the CPU with weights that lie in panels (`ait/panels.h`).
///
/// The columns of a panel are along the vectors, elements of `a` are read in place and broadcast. A task owns some rows and one panel: it
/// walks through the panel in blocks of k, fetches the next block into the second-level cache while it works on one, and gives each tile of
/// results to the epilogue while it lies in the first-level cache. Nothing is packed during a run; rows of f16 and bf16 are widened.
#ifndef AIT_KERNELS_CPU_GEMM_PACKED_H_
#define AIT_KERNELS_CPU_GEMM_PACKED_H_

#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/cpu/gemm_amx.h"
#include "ait/kernels/cpu/gemm_gathered.h"
#include "ait/kernels/cpu/gemm_stage.h"
#include "ait/parallel.h"

namespace ait::cpu {

namespace detail {

/// `gemm_packed` with rows that are read where they are.
template <class F, class T, class... E>
int32_t gemm_in_place(const Context& ctx, const GemmShape& shape, const Matrices<const T>& a, const T* panels, const Matrices<T>& d,
                      const Operands<E...>& extra) {
  constexpr int64_t kColumns = kPanelColumns<T>;
  const int64_t batches = shape.outer * shape.inner;
#ifdef AIT_CPU_AMX
  if constexpr (std::is_same_v<T, float>) {
    if (shape.m > kAmxFew && shape.k > 0 && may_use_amx()) return gemm_amx<F>(ctx, shape, a, panels, d, extra);
  }
#endif
  const int64_t products = shape.m * shape.n * shape.k * batches, count = (shape.n + kColumns - 1) / kColumns;
  const int threads = threads_for(products);
  int64_t most = kPanelTask;
  while (most > kPanelStage && most * shape.k * int64_t(sizeof(T)) > kPanelRowsBytes) most /= 2;
  // Rows are cut further only as far as the threads need work.
  const RowPieces pieces(shape.m, most, kPanelLeast, tasks_for(products, threads) / (batches * count));
  const int64_t block = pieces.size, blocks = pieces.count;
  AllOf enough;
  parallel_tasks(batches * blocks * count, threads, [&](int64_t task) {
    static thread_local Scratch scratch;
    T* const staged = static_cast<T*>(scratch.get(size_t(kStageBytes<T>)));
    const int64_t n0 = task % count * kColumns, rest = task / count;
    const int64_t m0 = rest % blocks * block, batch = rest / blocks;
    const int64_t m1 = m0 + block < shape.m ? m0 + block : shape.m;
    const T* const panel = panels + n0 * shape.k;
    const T* const after = panel + threads * kColumns * shape.k;
    enough.note(staged != nullptr);
    for (int64_t m = m0; staged != nullptr && m < m1; m += kPanelStage) {
      const int64_t end = m + kPanelStage < m1 ? m + kPanelStage : m1;
      gemm_stage<F>(shape, batch / shape.inner, batch % shape.inner, m, end, n0, a, panel, end < m1 ? panel : after, d, extra, staged);
    }
  });
  return enough.all() ? 0 : ctx.fail("gemm: no memory for a tile of results");
}

}  // namespace detail

/// @brief d = F(a @ b, operands...) with `b` in panels, the same for all batches. The elements of a row of `a` are neighbours; each column of
/// `d` may have any stride.
template <class F, class T, class... E>
int32_t gemm_packed(const Context& ctx, const GemmShape& shape, Matrices<const T> a, const T* panels, Matrices<T> d, Operands<E...> extra) {
  static_assert(kPanelColumns<T> <= kGemmColumns, "a row of a tile is finished at once");
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  if constexpr (is_narrow_float<T>) {
    const auto rows = [&](int64_t batch, int64_t m, int64_t count, auto* to) {
      const T* const from = a.at(batch / shape.inner, batch % shape.inner);
      for (int64_t r = 0; r < count; ++r) detail::copy_or_widen(from + (m + r) * a.row, shape.k, to + r * shape.k);
    };
    return detail::gemm_gathered<false, F>(ctx, shape, rows, panels, d, extra, "gemm: no memory for widened rows");
  } else {
    return detail::gemm_in_place<F>(ctx, shape, a, panels, d, extra);
  }
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_GEMM_PACKED_H_
