/// @file attention_ragged.h
/// @brief Attention on the CPU of sequences of different lengths: padded, packed or in pages.
#ifndef AIT_KERNELS_CPU_ATTENTION_RAGGED_H_
#define AIT_KERNELS_CPU_ATTENTION_RAGGED_H_

#include <stdio.h>

#include "ait/kernels/attention_ragged.h"
#include "ait/kernels/cpu/attention.h"
#include "ait/parallel.h"

namespace ait::cpu {
namespace detail {

/// @brief Fails with the first of `count` integers that is outside of 0 to `most`.
template <class I>
int32_t check_integers(const Context& ctx, const char* what, const I* values, int64_t count, int64_t most) {
  for (int64_t i = 0; values != nullptr && i < count; ++i) {
    if (int64_t(values[i]) >= 0 && int64_t(values[i]) <= most) continue;
    char message[200];
    snprintf(message, sizeof message, "ragged_attention: %s %lld at %lld is outside of 0 to %lld", what, static_cast<long long>(values[i]),
             static_cast<long long>(i), static_cast<long long>(most));
    return ctx.fail(message);
  }
  return 0;
}

/// @brief Fails for integers that do not fit. Only pages with columns in use are checked.
template <class I>
int32_t check_ragged(const Context& ctx, const Ragged<I>& r, int64_t rows, int64_t cols) {
  if (check_integers(ctx, "length of keys", r.columns, r.sequences, cols) != 0) return 1;
  if (check_integers(ctx, "length of queries", r.rows, r.sequences, rows) != 0) return 1;
  if (check_integers(ctx, "offset", r.segments, r.sequences + 1, rows) != 0) return 1;
  for (int64_t b = 0; r.segments != nullptr && b < r.sequences; ++b) {
    if (r.segments[b] <= r.segments[b + 1]) continue;
    char message[200];
    snprintf(message, sizeof message, "ragged_attention: offset %lld at %lld is below the one before it, %lld",
             static_cast<long long>(r.segments[b + 1]), static_cast<long long>(b + 1), static_cast<long long>(r.segments[b]));
    return ctx.fail(message);
  }
  for (int64_t b = 0; r.pages != nullptr && b < r.sequences; ++b) {
    const int64_t used = (int64_t(r.columns[b]) + r.page - 1) / r.page;
    if (check_integers(ctx, "page", r.pages + b * r.table, used, r.pool - 1) != 0) return 1;
  }
  return 0;
}

template <class T>
void zero_rows(T* rows, int64_t pitch, int64_t width, int64_t from, int64_t to) {
  for (int64_t row = from; row < to; ++row) {
    for (int64_t d = 0; d < width; ++d) rows[row * pitch + d] = T(0.0f);
  }
}

/// @brief The rows of a head of k or of v that lie in pages, side by side.
template <class T, class A, class I>
void gather_pages(Heads<const T> x, const Ragged<I>& r, int64_t sequence, int64_t head, int64_t count, int64_t width, A* to) {
  for (int64_t c = 0; c < count; ++c) {
    const T* page = x.data + int64_t(r.pages[sequence * r.table + c / r.page]) * x.batch + head * x.head;
    widen<T>(page + c % r.page * x.row, width, to + c * width);
  }
}

}  // namespace detail

/// @brief Ragged attention; `s.rows` and `s.cols` are the largest numbers for a sequence. Nothing is written if the integers do not fit.
template <bool kCausal, class T, class I>
int32_t attention_ragged(const Context& ctx, const AttentionShape& s, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                         const Ragged<I>& ragged) {
  using A = compute_t<T>;
  constexpr int64_t kRows = kStrip<A, 2>;
  if (detail::check_ragged(ctx, ragged, s.rows, s.cols) != 0) return 1;
  const bool packed = ragged.segments != nullptr;
  for (int64_t head = 0; packed && head < s.heads; ++head) {
    T* rows = o.data + head * o.head;
    detail::zero_rows(rows, o.row, s.width, 0, int64_t(ragged.segments[0]));
    detail::zero_rows(rows, o.row, s.width, int64_t(ragged.segments[ragged.sequences]), s.rows);
  }
  const int64_t groups = s.heads / (s.group > 0 ? s.group : 1), pairs = ragged.sequences * groups;
  if (pairs == 0 || s.rows == 0 || s.width == 0) return 0;
  const int threads = threads_for(pairs * s.group * s.rows * s.cols * (s.depth + s.width));
  const int64_t strips = (s.rows + kRows - 1) / kRows, wanted = pairs >= 4 * threads ? 1 : (4 * threads + pairs - 1) / pairs;
  const int64_t parts = wanted < strips ? wanted : strips;
  const int64_t reach = kCausal ? 1 : s.window;
  AllOf enough;
  parallel_tasks(pairs * parts, threads, [&](int64_t task) {
    static thread_local Scratch scratch;
    const int64_t part = task % parts, kv = task / parts % groups, b = task / parts / groups, batch = packed ? 0 : b;
    const Sequence seq = sequence_of(ragged, b, s.rows, s.cols);
    AttentionShape shape = s;
    shape.rows = seq.rows, shape.cols = seq.cols;
    const int64_t first = kCausal || s.window < kNoWindow ? seq.first_seeing(reach) : seq.cols == 0 ? seq.rows : 0;
    const int64_t step = ((seq.rows - first + kRows - 1) / kRows + parts - 1) / parts * kRows;
    const int64_t from = first + part * step, to = from + step < seq.rows ? from + step : seq.rows;
    A* gathered = nullptr;
    if (ragged.pages != nullptr && from < to) {
      gathered = static_cast<A*>(scratch.get(size_t(seq.cols * (s.depth + s.width)) * sizeof(A)));
      if (gathered == nullptr) {
        enough.note(false);
        return;
      }
      detail::gather_pages<T, A>(k, ragged, b, kv, seq.cols, s.depth, gathered);
      detail::gather_pages<T, A>(v, ragged, b, kv, seq.cols, s.width, gathered + seq.cols * s.depth);
    }
    for (int64_t head = kv * s.group; head < (kv + 1) * s.group; ++head) {
      const T* q_rows = q.data + batch * q.batch + head * q.head + seq.row0 * q.row;
      T* o_rows = o.data + batch * o.batch + head * o.head + seq.row0 * o.row;
      if (part == 0) {
        detail::zero_rows(o_rows, o.row, s.width, 0, first);
        if (!packed) detail::zero_rows(o_rows, o.row, s.width, seq.rows, s.rows);
      }
      for (int64_t row = from; row < to; row += kRows) {
        const int64_t rows = to - row < kRows ? to - row : kRows;
        if (gathered != nullptr) {
          const detail::HeadRows<A> keys{gathered, s.depth}, values{gathered + seq.cols * s.depth, s.width};
          enough.note(detail::attention_rows<kCausal, T, A>(shape, q_rows, q.row, keys, values, o_rows, o.row, PlainScores{}, {}, row, rows));
        } else {
          const detail::HeadRows<T> keys{k.data + batch * k.batch + kv * k.head + seq.col0 * k.row, k.row};
          const detail::HeadRows<T> values{v.data + batch * v.batch + kv * v.head + seq.col0 * v.row, v.row};
          enough.note(detail::attention_rows<kCausal, T, T>(shape, q_rows, q.row, keys, values, o_rows, o.row, PlainScores{}, {}, row, rows));
        }
      }
    }
  });
  return enough.all() ? 0 : ctx.fail("ragged_attention: no memory for a tile of scores");
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_ATTENTION_RAGGED_H_
