/// @file gemm_stored_panels.h
/// @brief Products on the CPU of several rows with a weight of 4 or 8 bits whose bytes lie in panels (`ait/panels.h`).
///
/// A block of a panel is unpacked into floats, times their scales, once for all rows, and multiplied while it lies in the first two caches. A word of
/// a panel has four numbers of 8 bits, or eight of 4 bits, of one column.
#ifndef AIT_KERNELS_CPU_GEMM_STORED_PANELS_H_
#define AIT_KERNELS_CPU_GEMM_STORED_PANELS_H_

#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/cpu/gemm_gathered.h"
#include "ait/kernels/cpu/gemm_shape.h"
#include "ait/kernels/cpu/gemm_stage.h"
#include "ait/kernels/stored.h"
#include "ait/parallel.h"

namespace ait::cpu {
namespace detail {

/// @brief Lines of floats of the numbers [k0, k0 + depth) of the columns from n0 on; k0 is the first number of a word, and so is that of each group.
template <class Stored>
void unpack_lines(const Stored& b, const uint32_t* panel, int64_t n0, int64_t columns, int64_t k0, int64_t depth, float* lines) {
  constexpr int kBits = Stored::kBits, kPer = 32 / kBits;
  constexpr int64_t kColumns = kPanelColumns<float>;
  constexpr uint32_t kMask = (1u << kBits) - 1u;
  alignas(64) int32_t origins[kColumns] = {};
  alignas(64) float scales[kColumns] = {};
  const uint32_t flip = b.flip();
  for (int64_t k = 0, end; k < depth; k = end) {
    const int64_t group = (k0 + k) / b.group, next = (group + 1) * b.group - k0;
    end = next < depth ? next : depth;
    for (int64_t c = 0; c < columns; ++c) {
      origins[c] = b.origin(n0 + c, group);
      scales[c] = static_cast<float>(b.scale[(n0 + c) * b.groups + group]);
    }
    for (; k < end; k += kPer) {
      const uint32_t* const words = panel + (k0 + k) / kPer * kColumns;
      const int count = int(end - k < kPer ? end - k : kPer);
      float* line = lines + k * kColumns;
      for (int i = 0; i < count; ++i, line += kColumns) {
#pragma omp simd
        for (int64_t c = 0; c < kColumns; ++c) line[c] = float(int32_t((words[c] ^ flip) >> (kBits * i) & kMask) - origins[c]) * scales[c];
      }
    }
  }
}

}  // namespace detail

/// @brief d = epilogue(a @ b^T) for a stored b whose bytes lie in panels; a is contiguous along k. Groups have whole words, or one is as long as k.
template <class F, class T, class Stored, class D, class... E>
int32_t gemm_stored_panels(const Context& ctx, const GemmShape& shape, const Matrices<const T>& a, const Stored& b, const Matrices<D>& d,
                           const Operands<E...>& extra) {
  constexpr int64_t kColumns = kPanelColumns<float>, kPer = 32 / Stored::kBits, kLineBytes = kColumns * Stored::kBits / 8;
  static_assert(std::is_same_v<compute_t<T>, float> && kColumns <= kGemmColumns, "sums are floats, and a row of a tile is finished at once");
  if (shape.m == 0 || shape.n == 0) return 0;
  const int64_t words = (shape.k + kPer - 1) / kPer, count = (shape.n + kColumns - 1) / kColumns;
  const int64_t most = shape.m <= detail::kPanelFew ? detail::kPanelShort : detail::kPanelDepth;
  const int64_t pieces = (shape.m + detail::kPanelTask - 1) / detail::kPanelTask;
  const int64_t call = detail::panel_call();
  AllOf enough;
  parallel_tasks(pieces * count, threads_for(shape.m * shape.n * shape.k), [&](int64_t task) {
    detail::GatherScratch& scratch = detail::gather_scratch();
    const int64_t piece = task / count, n0 = task % count * kColumns, m0 = piece * detail::kPanelTask;
    const int64_t rows = shape.m - m0 < detail::kPanelTask ? shape.m - m0 : detail::kPanelTask;
    const int64_t columns = shape.n - n0 < kColumns ? shape.n - n0 : kColumns, tiles = (rows + detail::kPanelRows - 1) / detail::kPanelRows;
    float* const staged = static_cast<float*>(scratch.staged.get(size_t((rows + most) * kColumns) * sizeof(float)));
    const float* from = nullptr;
    int64_t pitch = a.row;
    if constexpr (std::is_same_v<T, float>) {
      from = a.data + m0 * a.row;
    } else {
      float* const wide = static_cast<float*>(scratch.rows.get(size_t(rows * shape.k + 1) * sizeof(float)));
      for (int64_t r = 0; wide != nullptr && (scratch.call != call || scratch.piece != piece) && r < rows; ++r) {
        widen<T>(a.data + (m0 + r) * a.row, shape.k, wide + r * shape.k);
      }
      scratch.call = call, scratch.piece = piece;
      from = wide, pitch = shape.k;
    }
    enough.note(staged != nullptr && from != nullptr);
    if (staged == nullptr || from == nullptr) return;
    float* const lines = staged + rows * kColumns;
    const uint32_t* const panel = reinterpret_cast<const uint32_t*>(b.data) + n0 * words;
    int64_t k = 0;
    do {
      const int64_t depth = shape.k - k < most ? shape.k - k : most;
      const bool last = k + depth == shape.k;
      detail::unpack_lines(b, panel, n0, columns, k, depth, lines);
      const char* const next = reinterpret_cast<const char*>(panel + (k + depth) / kPer * kColumns);
      const int64_t step = (kLineBytes + tiles - 1) / tiles;
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t m = tile * detail::kPanelRows;
        const int some = int(rows - m < detail::kPanelRows ? rows - m : detail::kPanelRows);
        float* const out = staged + m * kColumns;
        detail::multiply_rows<float>(some, columns, from + m * pitch + k, pitch, lines, depth, k > 0, out, next + tile * depth * step, step);
        if (last) finish_rows<F>(extra, d, 0, 0, m0 + m, some, n0, columns, out, kColumns);
      }
      k += depth;
    } while (k < shape.k);
  });
  return enough.all() ? 0 : ctx.fail("gemm: no memory for unpacked weights");
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_GEMM_STORED_PANELS_H_
