/// @file gemm_bytes.h
/// @brief Gemm of integers of 8 bits on the CPU, with sums of 32 bits, which wrap: for weights in panels and for any strides.
///
/// Both operands lie in fours of k: a row of `a` as words of four bytes, `b` in panels (`ait/panels.h`). One instruction (VNNI) multiplies four
/// unsigned by four signed bytes and adds the products to a sum. Where both operands are signed, or both unsigned, the highest bit of each byte of
/// b is flipped, which moves b by 128, and 128 times the sum of the row of `a` makes up for that. Rows are laid out at most once by each thread.
#ifndef AIT_KERNELS_CPU_GEMM_BYTES_H_
#define AIT_KERNELS_CPU_GEMM_BYTES_H_

#include <stdint.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/cpu/gemm_block.h"
#include "ait/kernels/cpu/gemm_gathered.h"
#include "ait/kernels/cpu/gemm_shape.h"
#include "ait/kernels/cpu/gemm_stage.h"
#include "ait/panels.h"
#include "ait/parallel.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace ait::cpu {

namespace detail {

#if defined(__AVX512VNNI__) || (defined(__AVXVNNI__) && !defined(__AVX512F__))
inline constexpr bool kHasVnni = true;
#else
inline constexpr bool kHasVnni = false;
#endif

/// Whether the bytes of b change their sign bit before they are multiplied.
template <bool kSignedA, bool kSignedB>
inline constexpr bool kFlips = kHasVnni && kSignedA == kSignedB;

/// @brief Byte `i` of each word, as a number.
template <bool kSigned>
inline __attribute__((always_inline)) Vector<int32_t> byte_of(Vector<uint32_t> words, int i) {
  const Vector<uint32_t> high = words << (24 - 8 * i);
  return kSigned ? reinterpret_cast<Vector<int32_t>>(high) >> 24 : reinterpret_cast<Vector<int32_t>>(high >> 24);
}

#if defined(__AVX512BW__) || (defined(__AVX2__) && !defined(__AVX512F__))
#define AIT_CPU_HALVES 1
typedef int16_t Halves __attribute__((vector_size(kVectorBytes), may_alias));
typedef uint16_t UnsignedHalves __attribute__((vector_size(kVectorBytes), may_alias));

/// @brief The bytes with even numbers (`kOdd` false) or odd numbers, as numbers of 16 bits.
template <bool kSigned, bool kOdd>
inline __attribute__((always_inline)) Halves halves_of(Vector<uint32_t> words) {
  const UnsignedHalves high = kOdd ? reinterpret_cast<UnsignedHalves>(words) : reinterpret_cast<UnsignedHalves>(words) << 8;
  return kSigned ? reinterpret_cast<Halves>(high) >> 8 : reinterpret_cast<Halves>(high >> 8);
}

/// @brief acc += the two products in each word.
inline __attribute__((always_inline)) void add_halves(Vector<int32_t>& acc, Halves x, Halves y) {
#if defined(__AVX512BW__)
  acc += reinterpret_cast<Vector<int32_t>>(_mm512_madd_epi16(reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(y)));
#else
  acc += reinterpret_cast<Vector<int32_t>>(_mm256_madd_epi16(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(y)));
#endif
}
#endif

}  // namespace detail

/// @brief Four neighbouring bytes of a row of `a`, the first in the low byte.
template <bool kSignedA, bool kSignedB>
struct RowFour {
  uint32_t bits;

  /// acc += the sum of the four products with x, for each lane.
  __attribute__((always_inline)) void add_product(Vector<int32_t>& acc, const Vector<uint32_t>& x) const {
    const Vector<uint32_t> row = Vector<uint32_t>{} + bits;
#if defined(__AVX512VNNI__)
    const Vector<uint32_t>&u = kSignedA ? x : row, &s = kSignedA ? row : x;
    acc = reinterpret_cast<Vector<int32_t>>(
        _mm512_dpbusd_epi32(reinterpret_cast<__m512i>(acc), reinterpret_cast<__m512i>(u), reinterpret_cast<__m512i>(s)));
#elif defined(__AVXVNNI__) && !defined(__AVX512F__)
    const Vector<uint32_t>&u = kSignedA ? x : row, &s = kSignedA ? row : x;
    acc = reinterpret_cast<Vector<int32_t>>(
        _mm256_dpbusd_avx_epi32(reinterpret_cast<__m256i>(acc), reinterpret_cast<__m256i>(u), reinterpret_cast<__m256i>(s)));
#elif defined(AIT_CPU_HALVES)
    detail::add_halves(acc, detail::halves_of<kSignedB, false>(x), detail::halves_of<kSignedA, false>(row));
    detail::add_halves(acc, detail::halves_of<kSignedB, true>(x), detail::halves_of<kSignedA, true>(row));
#else
    for (int i = 0; i < 4; ++i) acc += detail::byte_of<kSignedB>(x, i) * detail::byte_of<kSignedA>(row, i);
#endif
  }
};
template <bool kSignedA, bool kSignedB>
inline constexpr bool kIsGroup<RowFour<kSignedA, kSignedB>> = true;

/// @brief Four neighbouring bytes of a column of `b`; with `kFlip` their sign bits are flipped as they are loaded.
template <bool kFlip>
struct PanelFour {
  uint32_t bits;

  static __attribute__((always_inline)) Vector<uint32_t> load(const PanelFour* from) {
    const Vector<uint32_t> words = *reinterpret_cast<const Vector<uint32_t>*>(from);
    return kFlip ? words ^ 0x80808080u : words;
  }
};
template <bool kFlip>
inline constexpr bool kIsGroup<PanelFour<kFlip>> = true;

namespace detail {

template <class T>
inline constexpr bool kIsSigned = std::is_same_v<T, int8_t>;

inline constexpr int64_t kByteColumns = kPanelColumns<int8_t>;

/// @brief Lays out `rows` rows of k bytes one after another in fours, with zeros after the last byte.
template <class T>
void lay_out_rows(const T* from, int64_t row, int64_t col, int64_t rows, int64_t k, uint32_t* to) {
  const int64_t fours = (k + 3) / 4;
  uint8_t* const bytes = reinterpret_cast<uint8_t*>(to);
  if (col == 1) {
    for (int64_t r = 0; r < rows; ++r) memcpy(bytes + 4 * r * fours, from + r * row, size_t(k));
  } else {
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t r = 0; r < rows; ++r) bytes[4 * r * fours + i] = uint8_t(from[r * row + i * col]);
    }
  }
  for (int64_t r = 0; r < rows && k % 4 != 0; ++r) memset(bytes + 4 * r * fours + k, 0, size_t(4 * fours - k));
}

/// @brief The sum of the bytes of a row, which wraps.
template <class T>
inline uint32_t sum_of_bytes(const uint32_t* row, int64_t fours) {
  const T* const bytes = reinterpret_cast<const T*>(row);
  int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < 4 * fours; ++i) sum += bytes[i];
  return uint32_t(sum);
}

/// @brief A weight that lies in panels.
template <class T>
struct StoredPanels {
  static constexpr bool kStored = true;
  const T* data;

  static int64_t bytes(int64_t) { return 0; }
  const uint32_t* get(int64_t, int64_t, int64_t n0, int64_t, int64_t fours, uint32_t*) const {
    return reinterpret_cast<const uint32_t*>(data) + n0 * fours;
  }
};

/// @brief An operand of any strides, a panel of which is laid out where it is multiplied.
template <class T>
struct MadePanels {
  static constexpr bool kStored = false;
  Matrices<const T> b;
  int64_t k;

  static int64_t bytes(int64_t fours) { return fours * kByteColumns * 4; }
  const uint32_t* get(int64_t o, int64_t i, int64_t n0, int64_t columns, int64_t fours, uint32_t* to) const {
    const T* const from = b.at(o, i) + n0 * b.col;
    const int64_t whole = k / 4;
    if (b.row == 1 && b.col % 4 == 0 && reinterpret_cast<uintptr_t>(from) % 4 == 0) {
      pack_strip<int32_t, int32_t>(reinterpret_cast<const int32_t*>(from), b.col / 4, 1, columns, whole, int(kByteColumns),
                                   reinterpret_cast<int32_t*>(to));
    } else {
      for (int64_t four = 0; four < whole; ++four) gather(from + 4 * four * b.row, columns, 4, to + four * kByteColumns);
    }
    if (whole < fours) gather(from + 4 * whole * b.row, columns, k - 4 * whole, to + whole * kByteColumns);
    return to;
  }

 private:
  /// `count` steps of k of some columns, at most four of each, as a line of a panel.
  void gather(const T* from, int64_t columns, int64_t count, uint32_t* line) const {
    for (int64_t c = 0; c < kByteColumns; ++c) line[c] = 0;
    for (int64_t j = 0; j < count; ++j) {
      const T* const step = from + j * b.row;
      if (b.col == 1) {
#pragma omp simd
        for (int64_t c = 0; c < columns; ++c) line[c] |= uint32_t(uint8_t(step[c])) << 8 * j;
      } else {
        for (int64_t c = 0; c < columns; ++c) line[c] |= uint32_t(uint8_t(step[c * b.col])) << 8 * j;
      }
    }
  }
};

/// @brief Rows [m0, m1), at most kPanelStage, by the panel that begins at column n0.
/// @param rows,moved the rows [m0, m1) in fours, and what is added to each sum of a row; @param after the panel that is multiplied next
/// @param staged [kPanelStage, kByteColumns]
template <class F, class R, class P, class D, class... E>
void multiply_bytes(const GemmShape& shape, int64_t o, int64_t i, int64_t m0, int64_t m1, int64_t n0, const R* rows, const int32_t* moved,
                    const P* panel, const P* after, const Matrices<D>& d, const Operands<E...>& extra, int32_t* staged) {
  const int64_t fours = (shape.k + 3) / 4, columns = shape.n - n0 < kByteColumns ? shape.n - n0 : kByteColumns;
  const int64_t tiles = (m1 - m0 + kPanelRows - 1) / kPanelRows, step = (kPanelBytes + tiles - 1) / tiles;
  for (int64_t r = 0; moved != nullptr && r < m1 - m0; ++r) {
    for (int64_t c = 0; c < kByteColumns; ++c) staged[r * kByteColumns + c] = moved[r];
  }
  int64_t at = 0;
  do {
    const int64_t depth = fours - at < kPanelDepth ? fours - at : kPanelDepth;
    const P* const block = panel + at * kByteColumns;
    const bool last = at + depth == fours;
    const char* const next = reinterpret_cast<const char*>(last ? after : block + depth * kByteColumns);
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t m = tile * kPanelRows;
      const int count = int(m1 - m0 - m < kPanelRows ? m1 - m0 - m : kPanelRows);
      int32_t* const out = staged + m * kByteColumns;
      multiply_rows<P>(count, columns, rows + m * fours + at, fours, block, depth, at > 0 || moved != nullptr, out, next + tile * depth * step, step);
      if (last) finish_rows<F>(extra, d, o, i, m0 + m, count, n0, columns, out, kByteColumns);
    }
    at += depth;
  } while (at < fours);
}

/// @brief d = F(rows @ b, operands...) with b from `panels`. Tasks are pieces of the rows by some panels, as in `gemm_gathered`.
/// @param lay_out `lay_out(batch, m, count, to)` writes rows [m, m + count) of a batch in fours to `to`
template <class F, class A, class B, class LayOut, class Panels, class D, class... E>
int32_t gemm_by_fours(const Context& ctx, const GemmShape& shape, const LayOut& lay_out, const Panels& panels, const Matrices<D>& d,
                      const Operands<E...>& extra) {
  using R = RowFour<kIsSigned<A>, kIsSigned<B>>;
  constexpr bool kMoves = kFlips<kIsSigned<A>, kIsSigned<B>>;
  using P = PanelFour<kMoves>;
  static_assert(kByteColumns <= kGemmColumns, "a row of a tile is finished at once");
  const int64_t batches = shape.outer * shape.inner;
  if (shape.m == 0 || shape.n == 0 || batches == 0) return 0;
  const int64_t fours = (shape.k + 3) / 4, units = (shape.n + kByteColumns - 1) / kByteColumns;
  const int threads = threads_for(shape.m * shape.n * shape.k * batches / 4);
  int64_t most = kGatherBytes / 4 / (fours > 0 ? fours : 1);
  most = most < kPanelRows ? kPanelRows : (most < kGatherRows ? most : kGatherRows);
  const int64_t pieces = (shape.m + most - 1) / most;
  const int64_t block = ((shape.m + pieces - 1) / pieces + kPanelRows - 1) / kPanelRows * kPanelRows, blocks = (shape.m + block - 1) / block;
  const int64_t wanted = threads == 1 ? 1 : (2 * threads + batches * blocks - 1) / (batches * blocks);
  const int64_t share = (units + (wanted < units ? wanted : units) - 1) / (wanted < units ? wanted : units), cuts = (units + share - 1) / share;
  const int64_t call = panel_call();
  AllOf enough;
  parallel_tasks(batches * blocks * cuts, threads, [&](int64_t task) {
    GatherScratch& scratch = gather_scratch();
    const int64_t piece = task / cuts, batch = piece / blocks, o = batch / shape.inner, i = batch % shape.inner;
    const int64_t m0 = piece % blocks * block, m1 = m0 + block < shape.m ? m0 + block : shape.m;
    const int64_t n0 = task % cuts * share * kByteColumns, n1 = n0 + share * kByteColumns < shape.n ? n0 + share * kByteColumns : shape.n;
    // Rows, then the numbers that move their sums; results, then a panel.
    constexpr int64_t kStaged = kPanelStage * kByteColumns;
    uint32_t* const rows = static_cast<uint32_t*>(scratch.rows.get(size_t(block * (fours + 1)) * 4));
    int32_t* const staged = static_cast<int32_t*>(scratch.staged.get(size_t(kStaged * 4 + Panels::bytes(fours))));
    enough.note(rows != nullptr && staged != nullptr);
    if (rows == nullptr || staged == nullptr) return;
    int32_t* const moved = reinterpret_cast<int32_t*>(rows + block * fours);
    if (scratch.call != call || scratch.piece != piece) {
      lay_out(batch, m0, m1 - m0, rows);
      for (int64_t r = 0; kMoves && r < m1 - m0; ++r) {
        moved[r] = int32_t(sum_of_bytes<A>(rows + r * fours, fours) * (kIsSigned<A> ? uint32_t(-128) : 128u));
      }
    }
    scratch.call = call, scratch.piece = piece;
    for (int64_t n = n0; n < n1; n += kByteColumns) {
      const int64_t columns = n1 - n < kByteColumns ? n1 - n : kByteColumns;
      const P* const panel = reinterpret_cast<const P*>(panels.get(o, i, n, columns, fours, reinterpret_cast<uint32_t*>(staged + kStaged)));
      const P* const after = panel + (Panels::kStored ? kByteColumns * fours : 0);
      for (int64_t m = m0; m < m1; m += kPanelStage) {
        const int64_t end = m + kPanelStage < m1 ? m + kPanelStage : m1;
        const R* const first = reinterpret_cast<const R*>(rows + (m - m0) * fours);
        multiply_bytes<F>(shape, o, i, m, end, n, first, kMoves ? moved + (m - m0) : nullptr, panel, end < m1 ? panel : after, d, extra, staged);
      }
    }
  });
  return enough.all() ? 0 : ctx.fail("gemm: no memory for rows of bytes");
}

/// @brief Lays out rows of matrices, for `gemm_by_fours`.
template <class A>
struct RowsOfMatrices {
  const GemmShape& shape;
  Matrices<const A> a;

  void operator()(int64_t batch, int64_t m, int64_t count, uint32_t* to) const {
    lay_out_rows(a.at(batch / shape.inner, batch % shape.inner) + m * a.row, a.row, a.col, count, shape.k, to);
  }
};

}  // namespace detail

/// @brief d = F(a @ b, operands...) for any strides of a and b, whose elements are int8_t or uint8_t each. The sums are int32_t.
template <class F, class A, class B, class D, class... E>
int32_t gemm_bytes(const Context& ctx, const GemmShape& shape, Matrices<const A> a, Matrices<const B> b, Matrices<D> d, Operands<E...> extra) {
  return detail::gemm_by_fours<F, A, B>(ctx, shape, detail::RowsOfMatrices<A>{shape, a}, detail::MadePanels<B>{b, shape.k}, d, extra);
}

/// @brief `gemm_bytes` with `b` in panels, the same for all batches.
template <class F, class A, class B, class D, class... E>
int32_t gemm_bytes_packed(const Context& ctx, const GemmShape& shape, Matrices<const A> a, const B* panels, Matrices<D> d, Operands<E...> extra) {
  return detail::gemm_by_fours<F, A, B>(ctx, shape, detail::RowsOfMatrices<A>{shape, a}, detail::StoredPanels<B>{panels}, d, extra);
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_GEMM_BYTES_H_
