/// @file gemm_grouped.h
/// @brief Groups of rows of one matrix, each times a matrix of its own.
#ifndef AIT_KERNELS_CPU_GEMM_GROUPED_H_
#define AIT_KERNELS_CPU_GEMM_GROUPED_H_

#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/cpu/gemm.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief d = F(a[begin:end] @ b[group], operands...) for each group of rows; rows after the last group are F(0, operands...).
///
/// `shape` is that of all rows, `b.inner` the distance of the matrices b. Group g has the rows from the end of group g - 1 up to `ends[g]`;
/// an end that is below the previous one or outside of the rows is clamped.
template <class F, class I, class T, class D, class... E>
int32_t gemm_ragged(const Context& ctx, const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d, Operands<E...> extra,
                    const I* ends, int64_t groups) {
  using A = compute_t<T>;
  if (shape.m == 0 || shape.n == 0) return 0;
  const int threads = threads_for(shape.m * shape.n * shape.k);
  AllOf enough;
  int64_t begin = 0;
  for (int64_t group = 0; group <= groups; ++group) {
    const int64_t found = group < groups ? int64_t(ends[group]) : shape.m;
    const int64_t end = found > shape.m ? shape.m : (found > begin ? found : begin), rows = end - begin;
    if (rows == 0) continue;
    const int64_t depth = group < groups ? shape.k : 0;
    Matrices<const T> own = b;
    own.data += (group < groups ? group : 0) * b.inner, own.inner = 0;
    const auto pack = [&](int64_t m, int64_t count, int strip, A* to) {
      pack_strip<T, A>(a.data + m * a.row, a.row, a.col, count, depth, strip, to);
    };
    // Pieces of rows by pieces of columns: columns are cut only as far as the threads need work, as each cut packs a again.
    const int64_t block_m = rows < 64 ? rows : 64, blocks_m = (rows + block_m - 1) / block_m;
    int64_t cuts = threads == 1 || blocks_m >= 4 * threads ? 1 : (2 * threads + blocks_m - 1) / blocks_m;
    const int64_t block_n = ((shape.n + cuts - 1) / cuts + kGemmColumns - 1) / kGemmColumns * kGemmColumns;
    cuts = (shape.n + block_n - 1) / block_n;
    parallel_tasks(blocks_m * cuts, threads, [&](int64_t piece) {
      const int64_t n0 = piece % cuts * block_n, n1 = n0 + block_n < shape.n ? n0 + block_n : shape.n;
      const int64_t m0 = begin + piece / cuts * block_m, m1 = m0 + block_m < end ? m0 + block_m : end;
      const bool done = rows <= kLanes<A> ? detail::gemm_piece<1, F>(0, 0, m0, m1, n0, n1, depth, pack, own, d, extra)
                                          : detail::gemm_piece<2, F>(0, 0, m0, m1, n0, n1, depth, pack, own, d, extra);
      enough.note(done);
    });
    begin = end;
  }
  return enough.all() ? 0 : ctx.fail("ragged_gemm: no memory for packing an operand");
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_GEMM_GROUPED_H_
