/// @file gemm.h
/// @brief Gemm on the CPU: natively for every float type and layout, and on the runtime's gemm library with a fused pass after it.
///
/// The native form packs the rows of `a` into strips that are vectors across m, and broadcasts elements of `b` read in place. A weight matrix
/// is thus streamed once and never repacked; the results of a strip are finished by the epilogue while they lie in the first-level cache.
#ifndef AIT_KERNELS_CPU_GEMM_H_
#define AIT_KERNELS_CPU_GEMM_H_

#include <stdint.h>

#include "ait/amx_service.h"
#include "ait/context.h"
#include "ait/gemm_service.h"
#include "ait/kernels/cpu/gemm_amx_bf16.h"
#include "ait/kernels/cpu/gemm_block.h"
#include "ait/kernels/cpu/gemm_few.h"
#include "ait/kernels/cpu/gemm_shape.h"
#include "ait/parallel.h"

namespace ait::cpu {

namespace detail {

/// One piece of work: rows [m0, m1) by columns [n0, n1) of one batch.
/// @param pack writes a strip of so many rows of a, from a row on, as `pack_strip` does
template <int kVectors, class F, class T, class D, class Pack, class... E>
bool gemm_piece(int64_t o, int64_t bi, int64_t m0, int64_t m1, int64_t n0, int64_t n1, int64_t depth, const Pack& pack,
                const Matrices<const T>& b, const Matrices<D>& d, const Operands<E...>& extra) {
  using A = compute_t<T>;
  constexpr int kStripOf = kStrip<A, kVectors>;
  static thread_local Scratch scratch;
  const int64_t strips = (m1 - m0 + kStripOf - 1) / kStripOf;
  const size_t packed_count = size_t(strips * kStripOf * depth);
  const bool in_place = std::is_same_v<T, A>;
  const size_t converted_count = in_place ? 0 : size_t(kGemmColumns) * size_t(depth);
  const size_t staged_count = size_t(kStripOf) * kGemmColumns;
  const size_t pad = 64 / sizeof(A);
  A* memory = static_cast<A*>(scratch.get((packed_count + converted_count + staged_count + 3 * pad) * sizeof(A)));
  if (memory == nullptr) return false;
  A* packed = memory;
  A* staged = packed + (packed_count + pad - 1) / pad * pad;
  A* converted = staged + staged_count + pad;

  const T* b0 = b.at(o, bi);
  for (int64_t s = 0; s < strips; ++s) {
    const int64_t m = m0 + s * kStripOf;
    pack(m, m1 - m < kStripOf ? m1 - m : kStripOf, kStripOf, packed + s * kStripOf * depth);
  }
  for (int64_t n = n0; n < n1; n += kGemmColumns) {
    const int64_t columns = n1 - n < kGemmColumns ? n1 - n : kGemmColumns;
    const A* from;
    int64_t pitch_b, step_b;  // bytes
    if constexpr (std::is_same_v<T, A>) {
      from = b0 + n * b.col;
      pitch_b = b.col * int64_t(sizeof(A)), step_b = b.row * int64_t(sizeof(A));
    } else {
      if (b.row == 1) {
        for (int64_t c = 0; c < columns; ++c) widen<T>(b0 + (n + c) * b.col, depth, converted + c * depth);
        pitch_b = depth * int64_t(sizeof(A)), step_b = int64_t(sizeof(A));
      } else {
        for (int64_t k = 0; k < depth; ++k) {
          const T* row = b0 + k * b.row + n * b.col;
          if (b.col == 1) {
            widen<T>(row, columns, converted + k * kGemmColumns);
          } else {
            for (int64_t c = 0; c < columns; ++c) converted[k * kGemmColumns + c] = static_cast<A>(row[c * b.col]);
          }
        }
        pitch_b = int64_t(sizeof(A)), step_b = int64_t(sizeof(A)) * kGemmColumns;
      }
      from = converted;
    }
    for (int64_t s = 0; s < strips; ++s) {
      const A* strip = packed + s * kStripOf * depth;
      for (int64_t c = 0; c < columns; c += kGemmRows) {
        const int count = int(columns - c < kGemmRows ? columns - c : kGemmRows);
        const A* at = reinterpret_cast<const A*>(reinterpret_cast<const char*>(from) + c * pitch_b);
        int64_t k = 0;
        do {
          const int64_t run = depth - k < kGemmDepth ? depth - k : kGemmDepth;
          const A* piece = reinterpret_cast<const A*>(reinterpret_cast<const char*>(at) + k * step_b);
          if (step_b == int64_t(sizeof(A))) {
            multiply_strip<A, kVectors, true>(strip + k * kStripOf, piece, pitch_b, step_b, run, count, k > 0, staged + c, kGemmColumns);
          } else {
            multiply_strip<A, kVectors, false>(strip + k * kStripOf, piece, pitch_b, step_b, run, count, k > 0, staged + c, kGemmColumns);
          }
          k += run;
        } while (k < depth);
      }
      const int64_t m = m0 + s * kStripOf;
      const int64_t rows = m1 - m < kStripOf ? m1 - m : kStripOf;
      finish_rows<F>(extra, d, o, bi, m, rows, n, columns, staged, kGemmColumns);
    }
  }
  return true;
}

template <int kVectors, class F, class T, class D, class... E>
int32_t gemm_parallel(const Context& ctx, const GemmShape& shape, const Matrices<const T>& a, const Matrices<const T>& b,
                      const Matrices<D>& d, const Operands<E...>& extra) {
  using A = compute_t<T>;
  constexpr int64_t kStripOf = kStrip<A, kVectors>;
  const int threads = threads_for(shape.m * shape.n * shape.k * shape.outer * shape.inner);
  // Rows of a that are packed together: what fills about half of a second-level cache, at most 256.
  int64_t block_m = int64_t(768 * 1024 / sizeof(A)) / (shape.k > 0 ? shape.k : 1) / kStripOf * kStripOf;
  block_m = block_m < kStripOf ? kStripOf : (block_m > 256 ? 256 : block_m);
  const int64_t blocks_m = (shape.m + block_m - 1) / block_m;
  const int64_t others = blocks_m * shape.outer * shape.inner;
  // Columns are cut only as far as the threads need work: each cut packs a again.
  int64_t cuts = others >= 4 * threads ? 1 : (2 * threads + others - 1) / others;
  if (threads == 1) cuts = 1;
  int64_t block_n = (shape.n + cuts - 1) / cuts;
  block_n = (block_n + kGemmColumns - 1) / kGemmColumns * kGemmColumns;
  cuts = (shape.n + block_n - 1) / block_n;
  const int64_t pieces = others * cuts;
  AllOf enough;
  parallel_tasks(pieces, threads, [&](int64_t piece) {
    const int64_t n0 = piece % cuts * block_n, rest = piece / cuts;
    const int64_t m0 = rest % blocks_m * block_m, batch = rest / blocks_m;
    const int64_t m1 = m0 + block_m < shape.m ? m0 + block_m : shape.m, n1 = n0 + block_n < shape.n ? n0 + block_n : shape.n;
    const T* const rows = a.at(batch / shape.inner, batch % shape.inner);
    const auto pack = [&](int64_t m, int64_t count, int strip, A* to) {
      pack_strip<T, A>(rows + m * a.row, a.row, a.col, count, shape.k, strip, to);
    };
    enough.note(gemm_piece<kVectors, F>(batch / shape.inner, batch % shape.inner, m0, m1, n0, n1, shape.k, pack, b, d, extra));
  });
  return enough.all() ? 0 : ctx.fail("gemm: no memory for packing an operand");
}

}  // namespace detail

/// @brief d = F(a @ b, operands...) for any strides. `a` is [m, k], `b` is [k, n], by their row and col strides.
template <class F, class T, class D, class... E>
int32_t gemm(const Context& ctx, const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d, Operands<E...> extra) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
#ifdef AIT_CPU_AMX
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (shape.m > detail::kAmxBf16Few && shape.k > 0 && a.col == 1 && b.row == 1 && may_use_amx()) {
      return gemm_amx_bf16<F>(ctx, shape, a, b, d, extra);
    }
  }
#endif
  if (shape.m <= kDotRows && a.col == 1 && b.row == 1) return gemm_few<F>(shape, a, b, d, extra);
  if (shape.m <= kLanes<compute_t<T>>) return detail::gemm_parallel<1, F>(ctx, shape, a, b, d, extra);
  return detail::gemm_parallel<2, F>(ctx, shape, a, b, d, extra);
}

/// @brief As `gemm` for f32 and f64 on the runtime's gemm library: pieces of the result, each finished by the epilogue as soon as it is made.
/// Every matrix needs a contiguous dim, and the columns of `d` must be contiguous.
template <class F, class T, class D, class... E>
int32_t gemm_library(const Context& ctx, const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d,
                     Operands<E...> extra) {
  static_assert(std::is_same_v<T, D> && (std::is_same_v<T, float> || std::is_same_v<T, double>), "OpenBLAS computes f32 and f64");
  const int64_t batches = shape.outer * shape.inner;
  if (shape.m == 0 || shape.n == 0 || batches == 0) return 0;
  ait_gemm_v2 whole = {};
  whole.a.dtype = whole.b.dtype = whole.d.dtype = std::is_same_v<T, float> ? AIT_F32 : AIT_F64;
  whole.a.transposed = a.col != 1;
  whole.b.transposed = b.col != 1;
  whole.batch = 1, whole.m = shape.m, whole.n = shape.n, whole.k = shape.k;
  whole.a.ld = whole.a.transposed ? a.col : a.row;
  whole.b.ld = whole.b.transposed ? b.col : b.row;
  whole.d.ld = d.row;
  whole.alpha = 1.f;
  const int threads = threads_for(shape.m * shape.n * shape.k * batches);
  // Pieces of the longer side: two a thread, and small enough that the epilogue finds its piece in the second-level cache.
  const bool by_rows = shape.m > shape.n;
  const int64_t side = by_rows ? shape.m : shape.n, other = by_rows ? shape.n : shape.m;
  int64_t step = threads == 1 || batches >= 4 * threads ? side : (side + 2 * threads - 1) / (2 * threads);
  const int64_t cached = int64_t(1024 * 1024 / sizeof(T)) / other;
  if (sizeof...(E) > 0 && step > cached) step = cached > 384 ? cached : (step > 384 ? 384 : step);
  step = (step + 31) / 32 * 32;
  const int64_t cuts = (side + step - 1) / step;
  auto compute = [&](int64_t task) -> int32_t {
    const int64_t batch = task / cuts, o = batch / shape.inner, i = batch % shape.inner;
    const int64_t begin = task % cuts * step, end = begin + step < side ? begin + step : side;
    const int64_t m0 = by_rows ? begin : 0, m1 = by_rows ? end : shape.m, n0 = by_rows ? 0 : begin, n1 = by_rows ? shape.n : end;
    ait_gemm_v2 part = whole;
    part.a.data = a.at(o, i) + m0 * a.row, part.b.data = b.at(o, i) + n0 * b.col, part.d.data = d.at(o, i) + m0 * d.row + n0;
    part.m = m1 - m0, part.n = n1 - n0;
    const int32_t status = library_gemm(ctx, part);
    if constexpr (!std::is_same_v<F, NoEpilogue>) {
      for (int64_t n = n0; n < n1; n += kGemmColumns) {
        const int64_t count = n1 - n < kGemmColumns ? n1 - n : kGemmColumns;
        finish_rows<F>(extra, d, o, i, m0, m1 - m0, n, count, d.at(o, i) + m0 * d.row + n, d.row);
      }
    }
    return status;
  };
  ait_gemm_v2 empty = whole;
  empty.m = 0;
  const int32_t usable = library_gemm(ctx, empty);  // on this thread: only one may report why the library cannot be used
  if (usable != 0) return usable;
  std::atomic<int32_t> status{0};
  parallel_tasks(batches * cuts, threads, [&](int64_t task) { status |= compute(task); });
  return status;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_GEMM_H_
