/// @file conv_packed.h
/// @brief Convolution on the CPU with a weight that lies in panels (`ait/panels.h`): rows are gathered, then multiplied as `gemm_packed` does.
#ifndef AIT_KERNELS_CPU_CONV_PACKED_H_
#define AIT_KERNELS_CPU_CONV_PACKED_H_

#include <omp.h>
#include <stdint.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/conv_shape.h"
#include "ait/kernels/cpu/gemm_packed.h"

namespace ait::cpu {

namespace detail {

/// The most rows, and the most bytes, that are gathered together; they stay in the second-level cache from panel to panel.
inline constexpr int64_t kConvRows = 256, kConvBytes = 1 << 20;

/// The rows that a thread gathered last, for a piece of a call; see `AmxScratch`.
struct GatherScratch {
  Scratch rows, staged;
  int64_t call = -1, piece = -1;
};

/// @brief to[r] = row first + r of the input as a matrix. Channels are contiguous.
template <class T, int R, bool kTransposed>
void gather_rows(const ConvInput<T, R, kTransposed>& x, int64_t first, int64_t rows, T* to) {
  const int64_t across = x.kernel[R - 1], taps = x.taps();
  // Taps along the last dim whose elements lie one after another are copied at once.
  const bool joined = !kTransposed && x.dilation[R - 1] == 1 && x.strides[R] == x.depth;
  const auto copy = [&to](const T* from, int64_t count) {
    if (from == nullptr) {
      memset(static_cast<void*>(to), 0, size_t(count) * sizeof(T));
    } else {
      memcpy(static_cast<void*>(to), from, size_t(count) * sizeof(T));
    }
    to += count;
  };
  for (int64_t r = 0; r < rows; ++r) {
    const auto place = x.place(first + r);
    if (!joined) {
      for (int64_t tap = 0; tap < taps; ++tap) copy(x.at(place, int(tap), 0), x.depth);
      continue;
    }
    const int64_t before = -place.at[R - 1], inside = x.size[R - 1] + before;
    const int64_t begin = before < 0 ? 0 : (before < across ? before : across), end = inside < begin ? begin : (inside < across ? inside : across);
    for (int64_t tap = 0; tap < taps; tap += across) {
      const T* const from = begin < end ? x.at(place, int(tap + begin), 0) : nullptr;
      copy(nullptr, begin * x.depth);
      copy(from, (end - begin) * x.depth);
      copy(nullptr, (across - end) * x.depth);
    }
  }
}

/// @brief `conv_packed` on the matrix unit or on the vector unit.
template <bool kMatrixUnit, class F, class T, int R, bool kTransposed, class... E>
int32_t conv_packed_on(const Context& ctx, const GemmShape& shape, const ConvInput<T, R, kTransposed>& x, const T* panels, const Matrices<T>& d,
                       const Operands<E...>& extra) {
  constexpr int64_t kUnit = (kMatrixUnit ? 2 : 1) * kPanelColumns<T>;  // columns of a task
  const int64_t batches = shape.outer * shape.inner, units = (shape.n + kUnit - 1) / kUnit;
  const int threads = shape.m * shape.n * shape.k * batches < 65536 ? 1 : omp_get_max_threads();
  int64_t most = kConvBytes / int64_t(sizeof(T)) / (shape.k > 0 ? shape.k : 1);
  most = most < kPanelRows ? kPanelRows : (most < kConvRows ? most : kConvRows);
  const int64_t pieces = (shape.m + most - 1) / most;
  const int64_t block = ((shape.m + pieces - 1) / pieces + kPanelRows - 1) / kPanelRows * kPanelRows, blocks = (shape.m + block - 1) / block;
  // Columns are cut only as far as the threads need work.
  const int64_t wanted = (2 * threads + batches * blocks - 1) / (batches * blocks);
  const int64_t share = (units + (wanted < units ? wanted : units) - 1) / (wanted < units ? wanted : units), cuts = (units + share - 1) / share;
  const int64_t call = panel_call();
  bool enough = true;
#pragma omp parallel num_threads(threads) reduction(&& : enough)
  {
#ifdef AIT_CPU_AMX
    const std::conditional_t<kMatrixUnit, amx::TileRegisters, bool> registers{};
    (void)registers;
#endif
    static thread_local GatherScratch scratch;
#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < batches * blocks * cuts; ++task) {
      const int64_t piece = task / cuts, batch = piece / blocks, o = batch / shape.inner, i = batch % shape.inner;
      const int64_t m0 = piece % blocks * block, m1 = m0 + block < shape.m ? m0 + block : shape.m;
      const int64_t n0 = task % cuts * share * kUnit, n1 = n0 + share * kUnit < shape.n ? n0 + share * kUnit : shape.n;
      T* const rows = static_cast<T*>(scratch.rows.get(size_t(block * shape.k) * sizeof(T)));
      T* const staged = static_cast<T*>(scratch.staged.get(size_t(kPanelStage * kPanelBytes)));
      enough = enough && rows != nullptr && staged != nullptr;
      if (!enough) continue;
      if (scratch.call != call || scratch.piece != piece) gather_rows(x, batch * shape.m + m0, m1 - m0, rows);
      scratch.call = call, scratch.piece = piece;
      const Matrices<const T> a{rows - m0 * shape.k, shape.k, 1};
#ifdef AIT_CPU_AMX
      if constexpr (kMatrixUnit) {
        const AmxWork<E...> work{shape, a, panels, d, extra, o, i, m0, m1, n0, n1, share * kUnit, call, piece};
        enough = AmxTask<F, E...>(work).run(amx_scratch()) && enough;
        continue;
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
    }
  }
  return enough ? 0 : ctx.fail("conv: no memory for gathered rows");
}

}  // namespace detail

/// @brief d = F(conv(x, w), operands...) with `w` of one group in panels. Channels of `x` are contiguous; otherwise as `conv`.
template <class F, class T, int R, bool kTransposed, class... E>
int32_t conv_packed(const Context& ctx, const GemmShape& shape, const ConvInput<T, R, kTransposed>& x, const T* panels, Matrices<T> d,
                    Operands<E...> extra) {
  static_assert(std::is_same_v<T, compute_t<T>>, "panels hold what is computed with");
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
#ifdef AIT_CPU_AMX
  if constexpr (std::is_same_v<T, float>) {
    if (shape.m > detail::kAmxFew && shape.k > 0 && may_use_amx()) return detail::conv_packed_on<true, F>(ctx, shape, x, panels, d, extra);
  }
#endif
  return detail::conv_packed_on<false, F>(ctx, shape, x, panels, d, extra);
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_CONV_PACKED_H_
