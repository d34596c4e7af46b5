/// @file gemm_gathered.h
/// @brief Gemm on the CPU with a weight in panels, whose rows are made where they are needed: gathered from an image, or widened from 2 bytes.
///
/// A task owns a piece of the rows and some panels. The rows are written in the compute type, or in pairs (pairs.h), at most once by each thread,
/// and stay in its second-level cache from panel to panel.
#ifndef AIT_KERNELS_CPU_GEMM_GATHERED_H_
#define AIT_KERNELS_CPU_GEMM_GATHERED_H_

#include <stdint.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/cpu/gemm_amx.h"
#include "ait/kernels/cpu/gemm_stage.h"
#include "ait/parallel.h"

namespace ait::cpu::detail {

/// The most rows, and the most bytes, that are gathered together.
inline constexpr int64_t kGatherRows = 256, kGatherBytes = 1 << 20;

/// The rows that a thread gathered last, for a piece of a call; see `AmxScratch`.
struct GatherScratch {
  Scratch rows, staged;
  int64_t call = -1, piece = -1;
};

inline GatherScratch& gather_scratch() {
  static thread_local GatherScratch scratch;
  return scratch;
}

/// @brief `count` numbers, as they are or in their compute type.
template <class T, class To>
inline void copy_or_widen(const T* from, int64_t count, To* to) {
  if constexpr (std::is_same_v<T, To> && std::is_same_v<T, float> && kVectorBytes == 64) {
    constexpr int64_t kStep = kLanes<T>;
    int64_t i = 0;
    for (; i + kStep <= count; i += kStep) *reinterpret_cast<Vector<T>*>(to + i) = load_vector<T>(from + i);
    if (i < count) store_some<T>(load_some<T>(from + i, count - i), count - i, to + i);
  } else if constexpr (std::is_same_v<T, To>) {
    memcpy(static_cast<void*>(to), static_cast<const void*>(from), size_t(count) * sizeof(T));
  } else {
    widen<T>(from, count, to);
  }
}

/// @brief Rows of an even number of elements: one of an odd number is followed by a zero.
template <class Gather, class T>
void gather_pairs(const Gather& gather, int64_t batch, int64_t m, int64_t count, int64_t k, T* to) {
  if (k % 2 == 0) return gather(batch, m, count, to);
  for (int64_t r = 0; r < count; ++r, to += k + 1) {
    gather(batch, m + r, 1, to);
    to[k] = T(0.0f);
  }
}

/// @brief d = F(rows @ b, operands...) with `b` in panels, on the matrix unit (f32) or on the vector unit.
/// @param gather `gather(batch, m, count, to)` writes rows [m, m + count) of a batch to `to`, one after another, in the type that `to` points to
/// @param what the kernel, for the error if there is no memory
template <bool kMatrixUnit, class F, class T, class Gather, class... E>
int32_t gemm_gathered(const Context& ctx, const GemmShape& shape, const Gather& gather, const T* panels, const Matrices<T>& d,
                      const Operands<E...>& extra, const char* what) {
  using A = compute_t<T>;
  using R = RowElement<T>;
  constexpr bool kPairs = std::is_same_v<R, Pair>;
  const int64_t pitch = (shape.k + kStepsOf<R> - 1) / kStepsOf<R>;
  constexpr int64_t kUnit = (kMatrixUnit ? 2 : 1) * kPanelColumns<T>;  // columns of a task
  const int64_t batches = shape.outer * shape.inner, units = (shape.n + kUnit - 1) / kUnit;
  const int64_t products = shape.m * shape.n * shape.k * batches;
  const int threads = threads_for(products);
  int64_t most = kGatherBytes / int64_t(sizeof(R)) / (pitch > 0 ? pitch : 1);
  most = most < kPanelRows ? kPanelRows : (most < kGatherRows ? most : kGatherRows);
  const RowPieces pieces(shape.m, most, most, 1);
  const int64_t block = pieces.size, blocks = pieces.count;
  // Columns are cut only as far as the threads need work; a thread does not gather the rows of the next cut again.
  const ColumnCuts columns(units, (tasks_for(products, threads) + batches * blocks - 1) / (batches * blocks));
  const int64_t share = columns.share, cuts = columns.cuts;
  const int64_t call = panel_call();
  AllOf enough;
  parallel_tasks(batches * blocks * cuts, threads, [&](int64_t task) {
#ifdef AIT_CPU_AMX
    const std::conditional_t<kMatrixUnit, amx::TileRegisters, bool> registers{};
    (void)registers;
#endif
    GatherScratch& scratch = gather_scratch();
    const int64_t piece = task / cuts, batch = piece / blocks, o = batch / shape.inner, i = batch % shape.inner;
    const int64_t m0 = piece % blocks * block, m1 = m0 + block < shape.m ? m0 + block : shape.m;
    const int64_t n0 = task % cuts * share * kUnit, n1 = n0 + share * kUnit < shape.n ? n0 + share * kUnit : shape.n;
    R* const rows = static_cast<R*>(scratch.rows.get(size_t(block * pitch + 1) * sizeof(R)));
    A* const staged = static_cast<A*>(scratch.staged.get(size_t(kStageBytes<T>)));
    enough.note(rows != nullptr && staged != nullptr);
    if (rows == nullptr || staged == nullptr) return;
    if (scratch.call != call || scratch.piece != piece) {
      if constexpr (kPairs) {
        gather_pairs(gather, batch, m0, m1 - m0, shape.k, reinterpret_cast<T*>(rows));
      } else {
        gather(batch, m0, m1 - m0, rows);
      }
    }
    scratch.call = call, scratch.piece = piece;
    const Matrices<const R> a{rows - m0 * pitch, pitch, 1};
#ifdef AIT_CPU_AMX
    if constexpr (kMatrixUnit) {
      const AmxWork<E...> work{shape, a, panels, d, extra, o, i, m0, m1, n0, n1, share * kUnit, call, piece};
      enough.note(AmxTask<F, E...>(work).run(amx_scratch()));
      return;
    }
#endif
    for (int64_t n = n0; n < n1; n += kPanelColumns<T>) {
      const T* const panel = panels + n * shape.k;
      const T* const after = panel + kPanelColumns<T> * shape.k;
      for (int64_t m = m0; m < m1; m += kPanelStage) {
        const int64_t end = m + kPanelStage < m1 ? m + kPanelStage : m1;
        gemm_stage<F>(shape, o, i, m, end, n, a, panel, end < m1 ? panel : after, d, extra, staged);
      }
    }
  });
  return enough.all() ? 0 : ctx.fail(what);
}

}  // namespace ait::cpu::detail
#endif  // AIT_KERNELS_CPU_GEMM_GATHERED_H_
