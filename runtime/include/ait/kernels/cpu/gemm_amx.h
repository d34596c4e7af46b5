/// @file gemm_amx.h
/// @brief Gemm of f32 on the matrix unit, with weights that lie in panels (`ait/panels.h`).
///
/// A task owns some rows of `a` and some panels. It cuts its rows into planes (`ait/kernels/cpu/amx.h`), which stay in the second-level cache
/// while they are multiplied by 32 columns after the other. The vector unit cuts the next 32 columns, and finishes the last results, beside
/// the products. Rows and panels with numbers that planes do not stand for are computed by `gemm_stage` afterwards.
#ifndef AIT_KERNELS_CPU_GEMM_AMX_H_
#define AIT_KERNELS_CPU_GEMM_AMX_H_

#include <stdint.h>
#include <string.h>

#include "ait/kernels/cpu/amx.h"
#include "ait/kernels/cpu/gemm_stage.h"
#include "ait/parallel.h"

#ifdef AIT_CPU_AMX
namespace ait::cpu {

namespace detail {

/// Rows that the vector unit multiplies faster: cutting weights into planes takes as long for one row as for many.
inline constexpr int64_t kAmxFew = 32;

/// Rows of a task at most, and steps of k whose planes are in the caches together: 256 x 768 of them are 1.1 MiB.
inline constexpr int64_t kAmxRows = 256, kAmxDepth = 768;

/// Columns that are multiplied by together, and columns of which tasks are made: whole panels, and whole pairs of tiles.
inline constexpr int64_t kAmxColumns = 2 * amx::kTileRows, kAmxUnit = 2 * kPanelColumns<float>;

/// What a thread has of its task, and which rows of which call its planes are of.
struct AmxScratch {
  Scratch memory, staged;
  int64_t call = -1, piece = -1;
};

inline AmxScratch& amx_scratch() {
  static thread_local AmxScratch scratch;
  return scratch;
}

/// @brief Cuts a row of a tile of `a` into planes: `depth` numbers, then zeros up to whole tiles.
/// @return the bits of the largest number, see `amx::largest`
inline uint32_t cut_row(const float* from, int64_t depth, int64_t steps, char* to) {
  amx::Words most{};
  for (int64_t step = 0; step < steps; ++step, to += amx::kStepBytes) {
    const int64_t k = step * amx::kTileDepth;
    alignas(64) float padded[amx::kTileDepth];
    const float* at = from + k;
    if (k + amx::kTileDepth > depth) {
      memset(padded, 0, sizeof padded);
      if (k < depth) memcpy(padded, at, size_t(depth - k) * sizeof(float));
      at = padded;
    }
    const amx::Floats x = *reinterpret_cast<const amx::Floats*>(at), y = *reinterpret_cast<const amx::Floats*>(at + amx::kTileRows);
    most = amx::largest(amx::largest(most, x), y);
    amx::split(x, y, to);
  }
  uint32_t top = 0;
  for (int lane = 0; lane < 16; ++lane) top = most[lane] > top ? most[lane] : top;
  return top;
}

/// @brief Cuts 32 columns of panels into planes, a few rows at a time.
class AmxColumns {
 public:
  /// Some pairs of rows of 16 columns: row 16 further is the other one of a pair.
  struct Rows {
    const float* from = nullptr;
    char* to = nullptr;
    int64_t count = 0;
    amx::Words most{};

    inline __attribute__((always_inline)) void cut(int64_t r) {
      const float* const low = from + r * kPanelColumns<float>;
      const float* const high = low + amx::kTileRows * kPanelColumns<float>;
      constexpr int64_t kAhead = 2 * amx::kTileDepth * kPanelColumns<float>;
      __builtin_prefetch(low + kAhead, 0, 2);
      __builtin_prefetch(high + kAhead, 0, 2);
      put(*reinterpret_cast<const amx::Floats*>(low), *reinterpret_cast<const amx::Floats*>(high), r);
    }
    inline __attribute__((always_inline)) void put(amx::Floats x, amx::Floats y, int64_t r) {
      most = amx::largest(amx::largest(most, x), y);
      amx::split(x, y, to + r * 64);
    }
  };

  AmxColumns() = default;

  /// @param panel0,panel1 the first number of 16 columns each, null where there are none; @param most the bits of the largest of each column
  AmxColumns(const float* panel0, const float* panel1, int64_t depth, int64_t steps, char* to, uint32_t* most)
      : panels_{panel0, panel1}, depth_(depth), tile_(steps * amx::kStepBytes), count_(steps * 2 * amx::kTileRows), to_(to), most_(most) {}

  /// The next `count` pairs of rows, which divide 16, to be cut by the caller, who gives them back.
  Rows begin(int64_t count) {
    if (at_ >= count_) return {};
    constexpr int64_t kPitch = kPanelColumns<float>, kTile = amx::kTileRows;
    const int64_t half = at_ * 2 >= count_, local = at_ - half * (count_ / 2), first = local % kTile;
    const int64_t k0 = local / kTile * amx::kTileDepth, k = k0 + first;
    const float* const panel = panels_[half];
    at_ += count, half_ = half;
    Rows rows{nullptr, to_ + half * tile_ + local / kTile * amx::kStepBytes + first * 64, 0, top()};
    if (panel != nullptr && k0 + amx::kTileDepth <= depth_) {
      rows.from = panel + k * kPitch, rows.count = count;
      return rows;
    }
    const int64_t inside = panel == nullptr ? 0 : depth_;
    for (int64_t r = 0; r < count; ++r) {
      amx::Floats x{}, y{};
      if (k + r < inside) x = *reinterpret_cast<const amx::Floats*>(panel + (k + r) * kPitch);
      if (k + r + kTile < inside) y = *reinterpret_cast<const amx::Floats*>(panel + (k + r + kTile) * kPitch);
      rows.put(x, y, r);
    }
    return rows;
  }
  void end(const Rows& rows) {
    if (rows.to != nullptr) top() = rows.most;
  }

  /// Cuts what is left.
  void finish() {
    while (at_ < count_) {
      Rows rows = begin(amx::kTileRows);
      for (int64_t r = 0; r < rows.count; ++r) rows.cut(r);
      end(rows);
    }
  }

 private:
  amx::Words& top() { return *reinterpret_cast<amx::Words*>(most_ + half_ * amx::kTileRows); }

  const float* panels_[2] = {nullptr, nullptr};
  int64_t depth_ = 0, tile_ = 0, count_ = 0, at_ = 0, half_ = 0;
  char* to_ = nullptr;
  uint32_t* most_ = nullptr;
};

/// @brief A task: rows [m0, m1), at most kAmxRows, by the panels of columns [n0, n1) of one batch.
template <class... E>
struct AmxWork {
  const GemmShape& shape;
  const Matrices<const float>& a;
  const float* panels;
  const Matrices<float>& d;
  const Operands<E...>& extra;
  int64_t o, i, m0, m1, n0, n1;
  int64_t width;        ///< the most columns of a task of this call
  int64_t call, piece;  ///< a number of this call, and of these rows in it: planes that the thread already has of them are used again
};

/// @brief How it is done.
template <class F, class... E>
class AmxTask : AmxWork<E...> {
  using Work = AmxWork<E...>;
  using Work::a, Work::d, Work::extra, Work::panels, Work::shape;
  using Work::i, Work::m0, Work::m1, Work::n0, Work::n1, Work::o;

 public:
  explicit AmxTask(const Work& work) : Work(work) {}

  /// @return whether there was memory
  bool run(AmxScratch& scratch) {
    rows_ = m1 - m0, row_tiles_ = (rows_ + kTile - 1) / kTile, pitch_ = (this->width + kPair - 1) / kPair * kPair;
    const int64_t most_depth = shape.k < kAmxDepth ? shape.k : kAmxDepth;
    const int64_t most_steps = (most_depth + amx::kTileDepth - 1) / amx::kTileDepth;
    const bool parts = shape.k > kAmxDepth;
    const int64_t bytes_a = row_tiles_ * most_steps * amx::kStepBytes, bytes_b = 2 * most_steps * amx::kStepBytes;
    const int64_t bytes_rows = row_tiles_ * kTile * 4, bytes_staged = kPair * kPair * 4, bytes_columns = pitch_ * 4;
    const int64_t bytes_sums = parts ? row_tiles_ * kTile * pitch_ * 4 : 0;
    char* at = static_cast<char*>(scratch.memory.get(size_t(bytes_a + bytes_rows + 2 * bytes_b + 2 * bytes_staged + bytes_columns + bytes_sums)));
    if (at == nullptr) return false;
    const auto take = [&at](int64_t bytes) { return (at += bytes) - bytes; };
    planes_ = take(bytes_a);
    most_rows_ = reinterpret_cast<uint32_t*>(take(bytes_rows));
    char* const planes_b[2] = {take(bytes_b), take(bytes_b)};
    float* const staged[2] = {reinterpret_cast<float*>(take(bytes_staged)), reinterpret_cast<float*>(take(bytes_staged))};
    most_columns_ = reinterpret_cast<uint32_t*>(take(bytes_columns));
    sums_ = reinterpret_cast<float*>(take(bytes_sums));
    const bool again = !parts && scratch.call == this->call && scratch.piece == this->piece;
    scratch.call = this->call, scratch.piece = this->piece;
    if (!again) memset(most_rows_, 0, size_t(bytes_rows));
    memset(most_columns_, 0, size_t(bytes_columns));

    const int64_t pairs = (n1 - n0 + kPair - 1) / kPair;
    AmxColumns next = columns(0, 0, planes_b[0]);
    int64_t turn = 0, block = 0;
    Waiting waiting;
    for (int64_t k = 0; k < shape.k; k += kAmxDepth) {
      const int64_t depth = depth_at(k), steps = steps_of(depth), tile = steps * amx::kStepBytes;
      if (!again) cut_rows(k, depth, steps);
      const bool last = k + depth == shape.k;
      // What is done beside each step of the products: so much that it is done when they are.
      int64_t pace = 1, lines = (2 * kTile + steps - 1) / steps;
      while (pace < kTile && pace * row_tiles_ < 4 * kTile) pace *= 2;
      for (int64_t pair = 0; pair < pairs; ++pair, ++turn) {
        next.finish();
        const char* const b0 = planes_b[turn % 2];
        const char* const b1 = b0 + tile;
        char* const free = planes_b[(turn + 1) % 2];
        next = pair + 1 < pairs ? columns(pair + 1, k, free) : (last ? AmxColumns() : columns(0, k + depth, free));
        for (int64_t t = 0; t < row_tiles_; t += 2, ++block) {
          const char* const a0 = planes_ + t * tile;
          float* const out = staged[block % 2];
          Beside beside{*this, next, waiting, pace, lines, {}};
          if (t + 1 < row_tiles_) {
            amx::multiply_tiles<2>(a0, a0 + tile, b0, b1, steps, out, kPair * 4, beside);
          } else {
            amx::multiply_tiles<1>(a0, a0, b0, b1, steps, out, kPair * 4, beside);
          }
          finish_lines(waiting, 2 * kTile);
          const int64_t left = rows_ - t * kTile;
          waiting = {out, t * kTile, pair * kPair, 0, left < 2 * kTile ? left : 2 * kTile, k == 0, last};
        }
      }
    }
    finish_lines(waiting, 2 * kTile);
    return compute_others(scratch);
  }

 private:
  static constexpr int64_t kTile = amx::kTileRows, kPair = kAmxColumns, kPanel = kPanelColumns<float>;

  /// Results that lie as the tiles left them, and the next line of them that is to be finished.
  struct Waiting {
    float* staged = nullptr;
    int64_t row = 0, column = 0, next = 0, count = 0;
    bool first = true, last = true;
  };

  /// What the vector unit does in a step of the products.
  struct Beside {
    AmxTask& task;
    AmxColumns& next;
    Waiting& waiting;
    int64_t pace, lines;
    AmxColumns::Rows rows;

    inline __attribute__((always_inline)) void begin() { rows = next.begin(pace); }
    template <int kPart>
    inline __attribute__((always_inline)) void part() {
      if (rows.count == 1) {
        if (kPart == 0) rows.cut(0);
        return;
      }
#pragma GCC unroll 1
      for (int64_t r = rows.count * kPart / 4; r < rows.count * (kPart + 1) / 4; ++r) rows.cut(r);
    }
    inline __attribute__((always_inline)) void end() {
      next.end(rows);
      if (waiting.next < waiting.count) task.finish_lines(waiting, lines);
    }
  };

  int64_t depth_at(int64_t k) const { return shape.k - k < kAmxDepth ? shape.k - k : kAmxDepth; }
  static int64_t steps_of(int64_t depth) { return (depth + amx::kTileDepth - 1) / amx::kTileDepth; }

  AmxColumns columns(int64_t pair, int64_t k, char* to) const {
    const int64_t depth = depth_at(k);
    const float* from[2];
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t column = n0 + pair * kPair + half * kTile, panel = column / kPanel;
      from[half] = panel * kPanel < shape.n ? panels + (panel * shape.k + k) * kPanel + column % kPanel : nullptr;
    }
    return {from[0], from[1], depth, steps_of(depth), to, most_columns_ + pair * kPair};
  }

  void cut_rows(int64_t k, int64_t depth, int64_t steps) {
    for (int64_t r = 0; r < row_tiles_ * kTile; ++r) {
      const bool inside = r < rows_;
      char* const to = planes_ + r / kTile * steps * amx::kStepBytes + r % kTile * 64;
      const uint32_t top = cut_row(a.at(o, i) + (m0 + (inside ? r : 0)) * a.row + k, inside ? depth : 0, steps, to);
      most_rows_[r] = top > most_rows_[r] ? top : most_rows_[r];
    }
  }

  void finish_lines(Waiting& w, int64_t count) {
    for (const int64_t end = w.next + count < w.count ? w.next + count : w.count; w.next < end; ++w.next) {
      amx::Floats* const now = reinterpret_cast<amx::Floats*>(w.staged + w.next * kPair);
      if (!w.first || !w.last) {
        amx::Floats* const sum = reinterpret_cast<amx::Floats*>(sums_ + (w.row + w.next) * pitch_ + w.column);
        for (int half = 0; half < 2; ++half) {
          if (!w.first) now[half] += sum[half];
          if (!w.last) sum[half] = now[half];
        }
      }
      const int64_t n = n0 + w.column;
      if (w.last) finish_row<F>(extra, d, o, i, m0 + w.row + w.next, n, n1 - n < kPair ? n1 - n : kPair, w.staged + w.next * kPair);
    }
  }

  /// What planes do not stand for: whole panels, for some rows or all of them.
  bool compute_others(AmxScratch& scratch) {
    for (int64_t n = n0; n < n1; n += kPanel) {
      bool fits = true;
      for (int64_t c = n; c < n + kPanel && c < n1; ++c) fits = fits && amx::fits_planes(most_columns_[c - n0]);
      for (int64_t m = m0; m < m1; m += kPanelStage) {
        const int64_t end = m + kPanelStage < m1 ? m + kPanelStage : m1;
        bool all = fits;
        for (int64_t r = m; r < end; ++r) all = all && amx::fits_planes(most_rows_[r - m0]);
        if (all) continue;
        float* const staged = static_cast<float*>(scratch.staged.get(size_t(kPanelStage * kPanelBytes)));
        if (staged == nullptr) return false;
        const float* const panel = panels + n * shape.k;
        gemm_stage<F>(shape, o, i, m, end, n, a, panel, panel, d, extra, staged);
      }
    }
    return true;
  }

  int64_t rows_ = 0, row_tiles_ = 0, pitch_ = 0;
  char* planes_ = nullptr;
  uint32_t *most_rows_ = nullptr, *most_columns_ = nullptr;
  float* sums_ = nullptr;
};

}  // namespace detail

/// @brief `gemm_packed` for f32 on the matrix unit, for k > 0.
template <class F, class... E>
int32_t gemm_amx(const Context& ctx, const GemmShape& shape, Matrices<const float> a, const float* panels, Matrices<float> d,
                 Operands<E...> extra) {
  constexpr int64_t kUnit = detail::kAmxUnit, kPair = 2 * amx::kTileRows;
  const int64_t call = detail::panel_call(), batches = shape.outer * shape.inner, units = (shape.n + kUnit - 1) / kUnit;
  const int threads = threads_for(shape.m * shape.n * shape.k * batches);
  const int64_t most = (shape.m + detail::kAmxRows - 1) / detail::kAmxRows;
  const int64_t block = ((shape.m + most - 1) / most + kPair - 1) / kPair * kPair, blocks = (shape.m + block - 1) / block;
  // Two tasks for each thread, for balance, unless each of them has to cut its rows into planes anew.
  const int64_t tasks = (shape.k > detail::kAmxDepth ? 1 : 2) * threads;
  const int64_t wanted = (tasks + batches * blocks - 1) / (batches * blocks);
  const int64_t share = (units + (wanted < units ? wanted : units) - 1) / (wanted < units ? wanted : units), cuts = (units + share - 1) / share;
  AllOf enough;
  parallel_tasks(batches * blocks * cuts, threads, [&](int64_t task) {
    const amx::TileRegisters registers;
    const int64_t piece = task / cuts, batch = piece / blocks;
    const int64_t m0 = piece % blocks * block, m1 = m0 + block, n0 = task % cuts * share * kUnit, n1 = n0 + share * kUnit;
    const detail::AmxWork<E...> work{shape, a, panels, d, extra, batch / shape.inner, batch % shape.inner, m0, m1 < shape.m ? m1 : shape.m,
                                     n0, n1 < shape.n ? n1 : shape.n, share * kUnit, call, piece};
    enough.note(detail::AmxTask<F, E...>(work).run(detail::amx_scratch()));
  });
  return enough.all() ? 0 : ctx.fail("gemm: no memory for planes of rows");
}

}  // namespace ait::cpu
#endif
#endif  // AIT_KERNELS_CPU_GEMM_AMX_H_
