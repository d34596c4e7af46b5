/// @file conv_winograd.h
/// @brief Convolution of 3 x 3 with step 1 on the CPU by Winograd's method F(2 x 2, 3 x 3): 16 products for 4 results instead of 36.
///
/// A tile of 2 x 2 results reads 4 x 4 places of the input, d. Per channel these become B^T d B, the weight is stored as G g G^T
/// (`ait/panels.h`); a product over the channels for each of the 16 elements gives m, and A^T m A are the results (Lavin and Gray, "Fast
/// Algorithms for Convolutional Neural Networks", 2016). All of it is in f32. The transforms of inputs and results are sums, so that errors
/// stay near those of the direct sums, relative to the largest numbers of a tile. A tile with infinities or NaN is computed directly.
///
/// A task owns a block of tiles and some panels. The transformed inputs of the block stay in the second-level cache from panel to panel.
#ifndef AIT_KERNELS_CPU_CONV_WINOGRAD_H_
#define AIT_KERNELS_CPU_CONV_WINOGRAD_H_

#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/conv_shape.h"
#include "ait/kernels/cpu/gemm_few.h"
#include "ait/kernels/cpu/gemm_gathered.h"
#include "ait/kernels/cpu/gemm_stage.h"
#include "ait/parallel.h"

namespace ait::cpu {

namespace detail {

/// Bytes of transformed inputs that a task holds, and bounds of its tiles.
inline constexpr int64_t kWinogradBytes = 1 << 20, kWinogradMost = 96, kWinogradLeast = 16;

/// @brief One call: the tiles of all images, row by row, and the lengths of the planes in which a task keeps its numbers.
template <class F, class T, class D, class... E>
struct Winograd {
  using V = Vector<float>;
  static constexpr int kTaps = int(kWinogradTaps), kSide = 4;
  static constexpr int64_t kColumns = kPanelColumns<float>, kLine = kLanes<float>;

  const GemmShape& shape;
  const ConvInput<T, 2>& x;
  const float* panels;
  const Matrices<D>& d;
  const Operands<E...>& extra;
  int64_t across, down, block;  ///< tiles of a line and of an image, tiles of a task
  int64_t pitch;                ///< numbers from a tile to the next

  int64_t tiles() const { return images() * down * across; }
  int64_t images() const { return shape.m * shape.outer * shape.inner / (x.places[0] * x.places[1]); }
  int64_t input_floats() const { return kTaps * block * pitch; }
  int64_t sum_floats() const { return kTaps * block * kColumns; }

  struct Tile {
    int64_t image, y, x;  ///< the first of its results
  };
  Tile tile(int64_t number) const {
    const int64_t line = number / across;
    return {line / down, line % down * 2, (number - line * across) * 2};
  }
  /// The first channel of a place of the input, or null in the padding.
  const T* pixel(const Tile& t, int i, int j) const {
    const int64_t y = t.y - x.pad[0] + i, along = t.x - x.pad[1] + j;
    const bool inside = y >= 0 && y < x.size[0] && along >= 0 && along < x.size[1];
    return inside ? x.data + t.image * x.strides[0] + y * x.strides[1] + along * x.strides[2] : nullptr;
  }

  /// @brief Writes B^T d B of tile t0 + i to plane p of `to` at (p * block + i) * pitch; channels are filled up with zeros to whole vectors.
  void transform_inputs(int64_t t0, int64_t t1, float* to) const {
    for (int64_t number = t0; number < t1; ++number, to += pitch) {
      const Tile t = tile(number);
      const T* from[kTaps];
      for (int p = 0; p < kTaps; ++p) from[p] = pixel(t, p / kSide, p % kSide);
      for (int64_t c = 0; c < x.depth; c += kLine) transform_channels(from, c, x.depth - c, to + c);
    }
  }
  void transform_channels(const T* const (&from)[kTaps], int64_t c, int64_t left, float* to) const {
    V e[kTaps];
#pragma GCC unroll 16
    for (int p = 0; p < kTaps; ++p) {
      if (from[p] == nullptr) {
        e[p] = V{};
      } else {
        e[p] = left < kLine ? load_some<T>(from[p] + c, left) : load_vector<T>(from[p] + c);
      }
    }
    const auto transform = [](V& a, V& b, V& c, V& d) __attribute__((always_inline)) {
      const V difference = c - b;
      a = a - c, d = b - d, b = b + c, c = difference;
    };
#pragma GCC unroll 4
    for (int j = 0; j < kSide; ++j) transform(e[j], e[4 + j], e[8 + j], e[12 + j]);
#pragma GCC unroll 4
    for (int i = 0; i < kSide; ++i) transform(e[4 * i], e[4 * i + 1], e[4 * i + 2], e[4 * i + 3]);
#pragma GCC unroll 16
    for (int p = 0; p < kTaps; ++p) *reinterpret_cast<V*>(to + p * block * pitch) = e[p];
  }

  /// @brief sums[p][i][column] = the products of tile i over the channels, for the panel of column n0.
  void multiply(int64_t count, int64_t n0, const float* inputs, float* sums) const {
    const int64_t columns = shape.n - n0, groups = (count + kPanelRows - 1) / kPanelRows;
    const int64_t step = (kPanelBytes + groups - 1) / groups;  // each group of rows fetches a share of the next block
    const float* panel = panels + n0 * kTaps * x.depth;
    for (int p = 0; p < kTaps; ++p) {
      int64_t c = 0;
      do {
        const int64_t depth = x.depth - c < kPanelDepth ? x.depth - c : kPanelDepth;
        const char* const next = reinterpret_cast<const char*>(panel + depth * kColumns);
        for (int64_t i = 0; i < count; i += kPanelRows) {
          const int rows = int(count - i < kPanelRows ? count - i : kPanelRows);
          multiply_rows<float>(rows, columns, inputs + (p * block + i) * pitch + c, pitch, panel, depth, c > 0, sums + (p * block + i) * kColumns,
                               next + i / kPanelRows * depth * step, step);
        }
        panel += depth * kColumns, c += depth;
      } while (c < x.depth);
    }
  }

  /// @brief Results of tile t0 + i from its sums, through the epilogue.
  void finish(int64_t t0, int64_t t1, int64_t n0, const float* sums) const {
    const int64_t columns = shape.n - n0 < kColumns ? shape.n - n0 : kColumns;
    alignas(64) float out[4][kColumns];
    for (int64_t number = t0; number < t1; ++number, sums += kColumns) {
      const Tile t = tile(number);
      V special{};
      for (int64_t c = 0; c < columns; c += kLine) special += transform_sums(sums + c, out, c);
      if (!(sum_lanes<float>(special) == 0.f)) sum_directly(t, n0, columns, out);
      for (int r = 0; r < 4; ++r) {
        const int64_t h = t.y + r / 2, w = t.x + r % 2;
        if (h >= x.places[0] || w >= x.places[1]) continue;
        const int64_t row = (t.image * x.places[0] + h) * x.places[1] + w, batch = row / shape.m;
        finish_row<F>(extra, d, batch / shape.inner, batch % shape.inner, row % shape.m, n0, columns, out[r]);
      }
    }
  }
  /// A^T m A of one vector of columns; returns zeros where all four results are finite.
  V transform_sums(const float* sums, float (&out)[4][kColumns], int64_t c) const {
    V s[2][kSide];
#pragma GCC unroll 4
    for (int j = 0; j < kSide; ++j) {
      V m[kSide];
#pragma GCC unroll 4
      for (int i = 0; i < kSide; ++i) m[i] = *reinterpret_cast<const V*>(sums + (4 * i + j) * block * kColumns);
      s[0][j] = m[0] + m[1] + m[2], s[1][j] = m[1] - m[2] - m[3];
    }
    V special{};
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const V first = s[i][0] + s[i][1] + s[i][2], second = s[i][1] - s[i][2] - s[i][3];
      special += first * 0.f + second * 0.f;
      *reinterpret_cast<V*>(out[2 * i] + c) = first;
      *reinterpret_cast<V*>(out[2 * i + 1] + c) = second;
    }
    return special;
  }

  /// @brief out = the results of one tile as sums over the window, with the weight taken back out of its transform: an infinity or NaN
  /// reaches only the results whose windows have it.
  void sum_directly(const Tile& t, int64_t n0, int64_t columns, float (&out)[4][kColumns]) const {
    const float* const panel = panels + n0 * kTaps * x.depth;
    for (auto& row : out) {
      for (float& value : row) value = 0.f;
    }
    for (int tap = 0; tap < 9; ++tap) {
      for (int64_t c = 0; c < x.depth; ++c) {
        const auto stored = [&](int i, int j, int64_t column) { return panel[((i * kSide + j) * x.depth + c) * kColumns + column]; };
        const auto line = [&](int i, int64_t column) {  // of G g: g's columns from those of g G^T
          const int j = tap % 3;
          return j == 1 ? stored(i, 1, column) - stored(i, 2, column) : stored(i, j == 0 ? 0 : 3, column);
        };
        const int i = tap / 3;
        float weight[kColumns];
        for (int64_t column = 0; column < columns; ++column) {
          weight[column] = i == 1 ? line(1, column) - line(2, column) : line(i == 0 ? 0 : 3, column);
        }
        for (int r = 0; r < 4; ++r) {
          const T* const from = pixel(t, r / 2 + i, r % 2 + tap % 3);
          if (from == nullptr) continue;
          const float value = static_cast<float>(from[c]);
          for (int64_t column = 0; column < columns; ++column) out[r][column] += value * weight[column];
        }
      }
    }
  }
};

}  // namespace detail

/// @brief d = F(conv(x, w), operands...) for a window of 3 x 3 with step and dilation 1 and one group. Channels of `x` are contiguous; `w` is
/// transformed and in panels of f32, whatever the type of `x`; otherwise as `conv`.
template <class F, class T, class D, class... E>
int32_t conv_winograd(const Context& ctx, const GemmShape& shape, const ConvInput<T, 2>& x, const T* weight, Matrices<D> d,
                      Operands<E...> extra) {
  static_assert(std::is_same_v<compute_t<T>, float>, "the sums are of f32");
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  using Call = detail::Winograd<F, T, D, E...>;
  const float* const panels = reinterpret_cast<const float*>(weight);
  Call work{shape, x, panels, d, extra, (x.places[1] + 1) / 2, (x.places[0] + 1) / 2, 0, 0};
  // Lines of a power of two would share few sets of the first-level cache.
  work.pitch = (x.depth + Call::kLine - 1) / Call::kLine * Call::kLine + Call::kLine;
  const int64_t tiles = work.tiles(), panels_count = (shape.n + Call::kColumns - 1) / Call::kColumns;
  const int64_t products = shape.m * shape.outer * shape.inner * shape.n * shape.k;
  const int threads = threads_for(products);
  int64_t most = detail::kWinogradBytes / int64_t(sizeof(float)) / (Call::kTaps * work.pitch);
  most = most < detail::kWinogradLeast ? detail::kWinogradLeast : (most < detail::kWinogradMost ? most : detail::kWinogradMost);
  const detail::RowPieces pieces(tiles, most, detail::kWinogradLeast, 1);
  work.block = pieces.size;
  const int64_t blocks = pieces.count;
  // Columns are cut only as far as the threads need work; a thread does not transform the inputs of the next cut again.
  const detail::ColumnCuts columns(panels_count, (detail::tasks_for(products, threads) + blocks - 1) / blocks);
  const int64_t share = columns.share, cuts = columns.cuts, call = detail::panel_call();
  AllOf enough;
  parallel_tasks(blocks * cuts, threads, [&](int64_t task) {
    detail::GatherScratch& scratch = detail::gather_scratch();
    float* const inputs = static_cast<float*>(scratch.rows.get(size_t(work.input_floats()) * sizeof(float)));
    float* const sums = static_cast<float*>(scratch.staged.get(size_t(work.sum_floats()) * sizeof(float)));
    enough.note(inputs != nullptr && sums != nullptr);
    if (inputs == nullptr || sums == nullptr) return;
    const int64_t t0 = task / cuts * work.block, t1 = t0 + work.block < tiles ? t0 + work.block : tiles;
    const int64_t begin = task % cuts * share, end = begin + share < panels_count ? begin + share : panels_count;
    if (scratch.call != call || scratch.piece != task / cuts) work.transform_inputs(t0, t1, inputs);
    scratch.call = call, scratch.piece = task / cuts;
    for (int64_t n0 = begin * Call::kColumns; n0 < end * Call::kColumns; n0 += Call::kColumns) {
      work.multiply(t1 - t0, n0, inputs, sums);
      work.finish(t0, t1, n0, sums);
    }
  });
  return enough.all() ? 0 : ctx.fail("conv: no memory for transformed inputs");
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_CONV_WINOGRAD_H_
