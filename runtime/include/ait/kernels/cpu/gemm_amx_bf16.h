/// @file gemm_amx_bf16.h
/// @brief Gemm of bf16 on the matrix unit (`ait/kernels/cpu/amx.h`), for matrices whose elements along k are neighbours.
///
/// The transposed result is computed, so that `b`, most often a weight, is read where it lies; rows of `a` are laid out in pairs of k once a task.
/// Sums are f32. Subnormal numbers count as zero.
#ifndef AIT_KERNELS_CPU_GEMM_AMX_BF16_H_
#define AIT_KERNELS_CPU_GEMM_AMX_BF16_H_

#include <stdint.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/cpu/amx.h"
#include "ait/kernels/cpu/gemm_block.h"
#include "ait/kernels/cpu/gemm_shape.h"
#include "ait/kernels/cpu/transpose.h"
#include "ait/parallel.h"
#include "ait/types.h"

#ifdef AIT_CPU_AMX
namespace ait::cpu {

namespace detail {

/// Rows that are left to the vector unit.
inline constexpr int64_t kAmxBf16Few = 8;

/// Bytes of rows of `a` that a task lays out: they stay in the second-level cache.
inline constexpr int64_t kAmxBf16Bytes = 1024 * 1024;

/// @brief Copies `rows` rows of `count` numbers, at most 16 of at most 32, to a tile that is zero otherwise.
inline void copy_tile(const bfloat16* from, int64_t row, int64_t rows, int64_t count, char* to) {
  memset(to, 0, size_t(amx::kTileBytes));
  for (int64_t r = 0; r < rows; ++r) memcpy(to + r * 64, from + r * row, size_t(count) * 2);
}

/// @brief Rows [m0, m1) by columns [n0, n1) of one batch.
template <class F, class D, class... E>
bool gemm_amx_bf16_task(const GemmShape& shape, int64_t o, int64_t i, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                        const Matrices<const bfloat16>& a, const Matrices<const bfloat16>& b, const Matrices<D>& d,
                        const Operands<E...>& extra) {
  constexpr int64_t kTile = amx::kTileRows, kPair = 2 * kTile, kDepth = amx::kTileDepth;
  static thread_local Scratch scratch;
  const int64_t rows = m1 - m0, m_pairs = (rows + kPair - 1) / kPair, steps = (shape.k + kDepth - 1) / kDepth, left = shape.k % kDepth;
  const int64_t strip = steps * amx::kTileBytes, staged_bytes = kPair * kPair * int64_t(sizeof(float));
  char* const tiles = static_cast<char*>(scratch.get(size_t(2 * m_pairs * strip + 2 * strip + 2 * staged_bytes)));
  if (tiles == nullptr) return false;
  char* const edge = tiles + 2 * m_pairs * strip;
  float* const staged = reinterpret_cast<float*>(edge + 2 * strip);
  float* const lines = staged + kPair * kPair;

  const bfloat16* const from = a.at(o, i) + m0 * a.row;
  for (int64_t t = 0; t < 2 * m_pairs; ++t) {
    const int64_t some = rows - t * kTile < 0 ? 0 : (rows - t * kTile < kTile ? rows - t * kTile : kTile);
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t count = shape.k - step * kDepth < kDepth ? shape.k - step * kDepth : kDepth;
      alignas(64) char padded[amx::kTileBytes];
      const char* at = reinterpret_cast<const char*>(from + t * kTile * a.row + step * kDepth);
      int64_t pitch = a.row * 2;
      if (some < kTile || count < kDepth) {
        copy_tile(from + (some > 0 ? t * kTile * a.row + step * kDepth : 0), a.row, some, count, padded);
        at = padded, pitch = 64;
      }
      Vector<float> block[kTile];  // pairs of numbers
#pragma GCC unroll 16
      for (int r = 0; r < kTile; ++r) block[r] = *reinterpret_cast<const Vector<float>*>(at + r * pitch);
      transpose<float>(block);
#pragma GCC unroll 16
      for (int r = 0; r < kTile; ++r) *reinterpret_cast<Vector<float>*>(tiles + t * strip + step * amx::kTileBytes + r * 64) = block[r];
    }
  }

  const bfloat16* const weights = b.at(o, i);
  for (int64_t n = n0; n < n1; n += kPair) {
    const int64_t columns = n1 - n < kPair ? n1 - n : kPair;
    const char* b0 = reinterpret_cast<const char*>(weights + n * b.col);
    const char* b1 = b0 + kTile * b.col * 2;
    const char* last = nullptr;
    int64_t pitch = b.col * 2, next = 2 * kDepth;
    if (columns < kPair) {  // all steps are copied, with zeros for the columns that are not there
      for (int64_t half = 0; half < 2; ++half) {
        const int64_t first = half * kTile < columns ? half * kTile : 0;
        const int64_t some = columns - half * kTile < 0 ? 0 : (columns - half * kTile < kTile ? columns - half * kTile : kTile);
        for (int64_t step = 0; step < steps; ++step) {
          const int64_t count = shape.k - step * kDepth < kDepth ? shape.k - step * kDepth : kDepth;
          copy_tile(weights + (n + first) * b.col + step * kDepth, b.col, some, count, edge + half * strip + step * amx::kTileBytes);
        }
      }
      b0 = edge, b1 = edge + strip, pitch = 64, next = amx::kTileBytes;
    } else if (left > 0) {
      for (int64_t half = 0; half < 2; ++half) {
        copy_tile(weights + (n + half * kTile) * b.col + (steps - 1) * kDepth, b.col, kTile, left, edge + half * amx::kTileBytes);
      }
      last = edge;
    }
    const int64_t ahead = n1 - n - kPair < kPair ? (n1 - n > kPair ? n1 - n - kPair : 0) : kPair;
    const char* const following = reinterpret_cast<const char*>(weights + (n + kPair) * b.col);
    for (int64_t t = 0; t < m_pairs; ++t) {
      // The next columns come from memory: a line of each of some of them in each step.
      const int64_t begin = ahead * t / m_pairs, end = ahead * (t + 1) / m_pairs;
      const auto fetch = [&](int64_t step) __attribute__((always_inline)) {
        for (int64_t c = begin; c < end; ++c) __builtin_prefetch(following + c * b.col * 2 + step * 64, 0, 2);
      };
      const char* const strips = tiles + 2 * t * strip;
      amx::multiply_bf16(b0, b1, pitch, next, last, strips, strips + strip, steps, staged, fetch);
      for (int64_t q = 0; q < 4; ++q) {
        Vector<float> block[kTile];
#pragma GCC unroll 16
        for (int r = 0; r < kTile; ++r) block[r] = *reinterpret_cast<const Vector<float>*>(staged + (q / 2 * kTile + r) * kPair + q % 2 * kTile);
        transpose<float>(block);
#pragma GCC unroll 16
        for (int r = 0; r < kTile; ++r) *reinterpret_cast<Vector<float>*>(lines + (q % 2 * kTile + r) * kPair + q / 2 * kTile) = block[r];
      }
      const int64_t m = t * kPair, count = rows - m < kPair ? rows - m : kPair;
      for (int64_t r = 0; r < count; ++r) finish_row<F>(extra, d, o, i, m0 + m + r, n, columns, lines + r * kPair);
    }
  }
  return true;
}

}  // namespace detail

/// @brief `gemm` for bf16 on the matrix unit, for k > 0: a.col == 1 and b.row == 1.
template <class F, class D, class... E>
int32_t gemm_amx_bf16(const Context& ctx, const GemmShape& shape, Matrices<const bfloat16> a, Matrices<const bfloat16> b, Matrices<D> d,
                      Operands<E...> extra) {
  constexpr int64_t kPair = 2 * amx::kTileRows;
  const int64_t batches = shape.outer * shape.inner, units = (shape.n + kPair - 1) / kPair;
  const int threads = threads_for(shape.m * shape.n * shape.k * batches);
  const int64_t room = detail::kAmxBf16Bytes / (2 * shape.k) / kPair * kPair, most = room < kPair ? kPair : room;
  const int64_t blocks = (shape.m + most - 1) / most, block = ((shape.m + blocks - 1) / blocks + kPair - 1) / kPair * kPair;
  // Columns are cut only as far as the threads need work: each cut lays out rows again.
  const int64_t wanted = (threads + batches * blocks - 1) / (batches * blocks);
  const int64_t share = (units + (wanted < units ? wanted : units) - 1) / (wanted < units ? wanted : units), cuts = (units + share - 1) / share;
  AllOf enough;
  parallel_tasks(batches * blocks * cuts, threads, [&](int64_t task) {
    const amx::TileRegisters registers;
    const int64_t piece = task / cuts, batch = piece / blocks;
    const int64_t m0 = piece % blocks * block, m1 = m0 + block, n0 = task % cuts * share * kPair, n1 = n0 + share * kPair;
    if (m0 >= shape.m) return;
    enough.note(detail::gemm_amx_bf16_task<F>(shape, batch / shape.inner, batch % shape.inner, m0, m1 < shape.m ? m1 : shape.m, n0,
                                           n1 < shape.n ? n1 : shape.n, a, b, d, extra));
  });
  return enough.all() ? 0 : ctx.fail("gemm: no memory for rows in pairs");
}

}  // namespace ait::cpu
#endif
#endif  // AIT_KERNELS_CPU_GEMM_AMX_BF16_H_
