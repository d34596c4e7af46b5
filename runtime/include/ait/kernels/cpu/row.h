/// @file row.h
/// @brief Kernels that reduce over each row and keep its shape: softmax, layer_norm and rms_norm.
///
/// A row is staged in its compute type, which is read from memory once; sums run in sixteen lanes, in one order whatever the threads.
#ifndef AIT_KERNELS_CPU_ROW_H_
#define AIT_KERNELS_CPU_ROW_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <memory>

#include "ait/context.h"
#include "ait/kernels/cpu/block.h"
#include "ait/kernels/norm_eps.h"
#include "ait/kernels/operand.h"
#include "ait/math.h"
#include "ait/parallel.h"

namespace ait::cpu {

namespace detail {

/// A vector register of the compute type, 64 bytes of lanes; the compiler splits it where registers are shorter.
template <class C>
struct Lanes {
  static constexpr int64_t kCount = 64 / sizeof(C);
  typedef C Type __attribute__((vector_size(64)));

  static Type load(const C* from) {
    Type lanes;
    memcpy(&lanes, from, sizeof lanes);
    return lanes;
  }
};

/// combine(...) of the lanes of step(lanes, x[i]); four registers run side by side.
template <class C, class Step, class Combine>
inline C reduce(const C* x, int64_t n, C start, Step step, Combine combine) {
  using L = Lanes<C>;
  constexpr int64_t kCount = L::kCount;
  typename L::Type sums[4];
  for (auto& lanes : sums) lanes = start - typename L::Type{};
  int64_t i = 0;
  for (; i + 4 * kCount <= n; i += 4 * kCount) {
    for (int j = 0; j < 4; ++j) sums[j] = step(sums[j], L::load(x + i + j * kCount));
  }
  for (; i + kCount <= n; i += kCount) sums[0] = step(sums[0], L::load(x + i));
  const typename L::Type all = combine(combine(sums[0], sums[1]), combine(sums[2], sums[3]));
  C lanes[kCount];
  memcpy(lanes, &all, sizeof lanes);
  for (int64_t j = 0; i < n; ++i, ++j) lanes[j] = step(lanes[j], x[i]);
  for (int64_t width = kCount / 2; width > 0; width /= 2) {
    for (int64_t j = 0; j < width; ++j) lanes[j] = combine(lanes[j], lanes[j + width]);
  }
  return lanes[0];
}

/// The largest value; NaN may be ignored.
template <class C>
inline C row_max(const C* x, int64_t n) {
  const auto larger = [](auto a, auto b) { return a > b ? a : b; };
  return reduce(x, n, static_cast<C>(-INFINITY), larger, larger);
}

template <class C>
inline C row_sum(const C* x, int64_t n) {
  const auto plus = [](auto a, auto b) { return a + b; };
  return reduce(x, n, C(0), plus, plus);
}

/// The sums of x[i] - centre and of its square.
template <class C>
struct Moments {
  C differences, squares;
};

template <class C>
inline Moments<C> row_moments(const C* x, int64_t n, C centre) {
  using L = Lanes<C>;
  constexpr int64_t kCount = L::kCount;
  typename L::Type differences[2] = {}, squares[2] = {};
  int64_t i = 0;
  for (; i + 2 * kCount <= n; i += 2 * kCount) {
    for (int j = 0; j < 2; ++j) {
      const typename L::Type d = L::load(x + i + j * kCount) - centre;
      differences[j] += d;
      squares[j] += d * d;
    }
  }
  C lanes[2][kCount];
  const typename L::Type all[2] = {differences[0] + differences[1], squares[0] + squares[1]};
  memcpy(lanes, all, sizeof lanes);
  for (int64_t j = 0; i < n; ++i, j = (j + 1) % kCount) {
    const C d = x[i] - centre;
    lanes[0][j] += d;
    lanes[1][j] += d * d;
  }
  for (int64_t width = kCount / 2; width > 0; width /= 2) {
    for (int64_t j = 0; j < width; ++j) {
      lanes[0][j] += lanes[0][j + width];
      lanes[1][j] += lanes[1][j + width];
    }
  }
  return {lanes[0][0], lanes[1][0]};
}

/// Fills `row` with the first result of F over the row at `coordinate`, and stores its further results.
template <class F, int kRowRank, size_t kRank, class... Ins, size_t... I, class Outs, size_t... O, class C>
inline void load_row(const int64_t (&sizes)[kRank], const Pack<Ins...>& ins, std::index_sequence<I...> in_indices, const Outs& outs,
                     std::index_sequence<O...>, int64_t (&coordinate)[kRank], C* row) {
  constexpr int kInner = static_cast<int>(kRank) - 1;
  constexpr int kOuter = static_cast<int>(kRank) - kRowRank;
  const int64_t n = sizes[kInner];
  int64_t segments = 1;
  for (int d = kOuter; d < kInner; ++d) segments *= sizes[d];
  Pack<InputBlock<Ins>...> in_blocks;
  [[maybe_unused]] Pack<OutputBlock<std::decay_t<decltype(get<O + 1>(outs))>>...> out_blocks;
  for (int64_t segment = 0; segment < segments; ++segment) {
    if constexpr (kRowRank > 1) coordinates<kRowRank - 1>(segment, sizes + kOuter, coordinate + kOuter);
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t count = n - first < kBlock ? n - first : kBlock;
      const auto values = pack(get<I>(in_blocks).load(at(get<I>(ins), coordinate, kInner) + first * get<I>(ins).strides[kInner],
                                                      get<I>(ins).strides[kInner], count)...);
      const auto results = pack(row + segment * n + first, get<O>(out_blocks).begin(at(get<O + 1>(outs), coordinate, kInner) +
                                                                                     first * get<O + 1>(outs).strides[kInner])...);
      apply_run<F>(values, in_indices, results, std::make_index_sequence<sizeof...(O) + 1>{}, count);
      (get<O>(out_blocks)
           .store(at(get<O + 1>(outs), coordinate, kInner) + first * get<O + 1>(outs).strides[kInner], get<O + 1>(outs).strides[kInner],
                  count),
       ...);
    }
  }
}

/// Where a finished row is computed: in place where the result is contiguous and of the compute type, else in `row`.
template <int kRowRank, size_t kRank, class Out, class C>
inline C* row_target(const Out& out, const int64_t (&coordinate)[kRank], C* row) {
  if constexpr (kRowRank == 1 && Out::kInner == Inner::unit && std::is_same_v<typename Out::Value, C>) {
    return at(out, coordinate, static_cast<int>(kRank) - 1);
  } else {
    return row;
  }
}

/// Stores a finished row, rounded to the element type.
template <int kRowRank, size_t kRank, class Out, class C>
inline void store_row(const int64_t (&sizes)[kRank], const Out& out, int64_t (&coordinate)[kRank], const C* row) {
  constexpr int kInner = static_cast<int>(kRank) - 1;
  constexpr int kOuter = static_cast<int>(kRank) - kRowRank;
  using T = typename Out::Value;
  const int64_t n = sizes[kInner];
  int64_t segments = 1;
  for (int d = kOuter; d < kInner; ++d) segments *= sizes[d];
  for (int64_t segment = 0; segment < segments; ++segment) {
    if constexpr (kRowRank > 1) coordinates<kRowRank - 1>(segment, sizes + kOuter, coordinate + kOuter);
    T* to = at(out, coordinate, kInner);
    const C* from = row + segment * n;
    if constexpr (Out::kInner == Inner::unit) {
      narrow(from, n, to);
    } else {
      for (int64_t i = 0; i < n; ++i) to[i * out.strides[kInner]] = static_cast<T>(from[i]);
    }
  }
}
}  // namespace detail

namespace detail {
/// Stores E of the elements of a normalised row and of the further operands.
template <class E, int kRowRank, size_t kRank, class... Extras, size_t... I, class Out, class C>
inline void finish_row(const int64_t (&sizes)[kRank], const Pack<Extras...>& extras, std::index_sequence<I...>, const Out& out,
                       int64_t (&coordinate)[kRank], const C* row) {
  constexpr int kInner = static_cast<int>(kRank) - 1;
  constexpr int kOuter = static_cast<int>(kRank) - kRowRank;
  const int64_t n = sizes[kInner], step = out.strides[kInner];
  int64_t segments = 1;
  for (int d = kOuter; d < kInner; ++d) segments *= sizes[d];
  [[maybe_unused]] Pack<InputBlock<Extras>...> in_blocks;
  OutputBlock<Out> out_block;
  for (int64_t segment = 0; segment < segments; ++segment) {
    if constexpr (kRowRank > 1) coordinates<kRowRank - 1>(segment, sizes + kOuter, coordinate + kOuter);
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t count = n - first < kBlock ? n - first : kBlock;
      auto* const to = at(out, coordinate, kInner) + first * step;
      const auto values = pack(row + segment * n + first,
                               get<I>(in_blocks).load(at(get<I>(extras), coordinate, kInner) + first * get<I>(extras).strides[kInner],
                                                      get<I>(extras).strides[kInner], count)...);
      apply_run<E>(values, std::make_index_sequence<sizeof...(Extras) + 1>{}, pack(out_block.begin(to)), std::index_sequence<0>{}, count);
      out_block.store(to, step, count);
    }
  }
}

/// Both norms: less the mean if centred, over the root of the mean square.
template <class F, bool kCentred, int kRowRank, class E, size_t kRank, class... Ins, class... Outs, class S, class Extras>
int32_t norm(const int64_t (&sizes)[kRank], const Pack<Ins...>& ins, const Pack<Outs...>& outs, const S* scale, const S* bias, double eps,
             const Extras& extras) {
  constexpr int kOuter = static_cast<int>(kRank) - kRowRank;
  using Out = std::decay_t<decltype(get<0>(outs))>;
  using C = typename Out::Compute;
  int64_t rows = 1, n = 1;
  for (int d = 0; d < kOuter; ++d) rows *= sizes[d];
  for (int d = kOuter; d < static_cast<int>(kRank); ++d) n *= sizes[d];
  if (rows <= 0 || n <= 0) return 0;
  const std::unique_ptr<C[]> factors(new C[2 * n]);
  C* const g = factors.get();
  C* const b = g + n;
  for (int64_t i = 0; i < n; ++i) {
    g[i] = scale != nullptr ? static_cast<C>(scale[i]) : C(1);
    b[i] = bias != nullptr ? static_cast<C>(bias[i]) : C(0);
  }
  parallel_ranges(rows, rows * n >= kParallelElements, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<C[]> staged(new C[n]);
    C* const row = staged.get();
    for (int64_t r = begin; r < end; ++r) {
      int64_t coordinate[kRank] = {};
      coordinates<kOuter>(r, sizes, coordinate);
      load_row<F, kRowRank>(sizes, ins, std::index_sequence_for<Ins...>{}, outs, std::make_index_sequence<sizeof...(Outs) - 1>{},
                                    coordinate, row);
      const C count = static_cast<C>(n);
      const C mean = kCentred ? row_sum(row, n) / count : C(0);
      const Moments<C> moments = row_moments(row, n, mean);
      const C shift = kCentred ? moments.differences / count : C(0);
      const C variance = moments.squares / count - shift * shift;
      const C inverse = C(1) / ait::sqrt(with_eps(variance < C(0) ? C(0) : variance, static_cast<C>(eps)));
      C* const to = std::is_void_v<E> ? row_target<kRowRank>(get<0>(outs), coordinate, row) : row;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) to[i] = ((row[i] - mean) - shift) * inverse * g[i] + b[i];
      if constexpr (!std::is_void_v<E>) {
        finish_row<E, kRowRank>(sizes, extras, typename Extras::Indices{}, get<0>(outs), coordinate, row);
      } else if (to == row) {
        store_row<kRowRank>(sizes, get<0>(outs), coordinate, row);
      }
    }
  });
  return 0;
}
}  // namespace detail

/// @brief Normalises the rows of s to mean 0 and variance 1, then scales and shifts them: out0 = (s - mean) / sqrt(variance + eps) * scale + bias.
///
/// `s` is the first result of F over the inputs; its further results are stored in the further outputs. The last `kRowRank` of the sizes are
/// the row. `scale` and `bias` are contiguous rows, or null. The mean is corrected by the mean of the differences from it, so that rows of
/// large mean lose nothing. With an epilogue `E`, out0 is E of that and of the elements of `extras`.
template <class F, int kRowRank, class E = void, size_t kRank, class... Ins, class... Outs, class S, class Extras = Pack<>>
int32_t layer_norm(const Context&, const int64_t (&sizes)[kRank], const Pack<Ins...>& ins, const Pack<Outs...>& outs, const S* scale,
                   const S* bias, double eps, const Extras& extras = {}) {
  return detail::norm<F, true, kRowRank, E>(sizes, ins, outs, scale, bias, eps, extras);
}

/// @brief Divides the rows of s by the root of their mean square: out0 = s / sqrt(mean(s^2) + eps) * scale + bias; otherwise as layer_norm. A negative
/// eps bounds the mean from below by -eps instead.
template <class F, int kRowRank, class E = void, size_t kRank, class... Ins, class... Outs, class S, class Extras = Pack<>>
int32_t rms_norm(const Context&, const int64_t (&sizes)[kRank], const Pack<Ins...>& ins, const Pack<Outs...>& outs, const S* scale,
                 const S* bias, double eps, const Extras& extras = {}) {
  return detail::norm<F, false, kRowRank, E>(sizes, ins, outs, scale, bias, eps, extras);
}

namespace detail {
/// Rows that are contiguous on both sides.
template <size_t kRank, class In, class Out>
void softmax_rows(const int64_t (&sizes)[kRank], const In& in, const Out& out, int64_t rows) {
  constexpr int kOuter = static_cast<int>(kRank) - 1;
  using C = typename In::Compute;
  const int64_t n = sizes[kOuter];
  parallel_ranges(rows, rows * n >= kParallelElements, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<C[]> staged(new C[n]);
    C* const row = staged.get();
    for (int64_t r = begin; r < end; ++r) {
      int64_t coordinate[kRank] = {};
      coordinates<kOuter>(r, sizes, coordinate);
      widen(at(in, coordinate, kOuter), n, row);
      const C largest = row_max(row, n);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) row[i] = ait::exp(row[i] - largest);
      const C inverse = C(1) / row_sum(row, n);
      C* const to = row_target<1>(out, coordinate, row);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) to[i] = row[i] * inverse;
      if (to == row) narrow(row, n, at(out, coordinate, kOuter));
    }
  });
}

/// Rows that step through memory, as columns beside each other along the dim before: blocks of columns are reduced together.
template <size_t kRank, class In, class Out>
void softmax_columns(const int64_t (&sizes)[kRank], const In& in, const Out& out, int64_t rows) {
  constexpr int kRow = static_cast<int>(kRank) - 1;
  constexpr int kColumn = kRow - 1;
  constexpr int64_t kWidth = 128;
  using C = typename In::Compute;
  using T = typename Out::Value;
  const int64_t n = sizes[kRow], columns = sizes[kColumn], parts = (columns + kWidth - 1) / kWidth;
  const int64_t in_column = in.strides[kColumn], out_column = out.strides[kColumn];
  parallel_for(rows / columns * parts, rows * n >= kParallelElements, [=](int64_t task) {
    int64_t coordinate[kRank] = {};
    if constexpr (kColumn > 0) coordinates<kColumn>(task / parts, sizes, coordinate);
    const int64_t first = task % parts * kWidth;
    const int64_t width = columns - first < kWidth ? columns - first : kWidth;
    const auto* from = at(in, coordinate, kColumn) + first * in_column;
    T* to = at(out, coordinate, kColumn) + first * out_column;
    C largest[kWidth], sum[kWidth], lost[kWidth], x[kWidth];
    const auto read = [&](int64_t i) {
      const auto* row = from + i * in.strides[kRow];
      if (in_column == 1) {
        widen(row, width, x);
      } else {
        for (int64_t c = 0; c < width; ++c) x[c] = static_cast<C>(row[c * in_column]);
      }
    };
    for (int64_t c = 0; c < width; ++c) largest[c] = static_cast<C>(-INFINITY), sum[c] = lost[c] = C(0);
    for (int64_t i = 0; i < n; ++i) {
      read(i);
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) largest[c] = x[c] > largest[c] ? x[c] : largest[c];
    }
    for (int64_t i = 0; i < n; ++i) {
      read(i);
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) {  // compensated: a column is summed in sequence
        const C term = ait::exp(x[c] - largest[c]) - lost[c];
        const C next = sum[c] + term;
        lost[c] = (next - sum[c]) - term;
        sum[c] = next;
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      read(i);
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) x[c] = ait::exp(x[c] - largest[c]) / sum[c];
      T* row = to + i * out.strides[kRow];
      if (out_column == 1) {
        narrow(x, width, row);
      } else {
        for (int64_t c = 0; c < width; ++c) row[c * out_column] = static_cast<T>(x[c]);
      }
    }
  });
}
}  // namespace detail

/// @brief out = exp(in - max) / sum(exp(in - max)) along the last of the sizes. A row with NaN or +inf, or of -inf alone, becomes NaN.
template <size_t kRank, class In, class Out>
int32_t softmax(const Context&, const int64_t (&sizes)[kRank], const In& in, const Out& out) {
  static_assert(kRank >= 2, "the row and at least one dim around it");
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < kRank; ++d) rows *= sizes[d];
  if (rows <= 0 || sizes[kRank - 1] <= 0) return 0;
  if constexpr (In::kInner == Inner::unit && Out::kInner == Inner::unit) {
    detail::softmax_rows(sizes, in, out, rows);
  } else {
    detail::softmax_columns(sizes, in, out, rows);
  }
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_ROW_H_
