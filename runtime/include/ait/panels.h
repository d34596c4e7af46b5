/// @file panels.h
/// @brief Matrices stored in panels: how weights lie for the CPU's packed gemm.
///
/// A [k, n] matrix is cut into panels of `kPanelColumns` neighbouring columns; a panel holds its columns for k = 0, then for k = 1, and so
/// on, so that a product streams through it once, in order. The last panel is filled up with zeros. Elements of 2 bytes are widened to 4
/// where they are multiplied: a panel of them has as many columns as one of f32, and half the bytes. The layout is the same for all
/// processors.
#ifndef AIT_PANELS_H_
#define AIT_PANELS_H_

#include <stdint.h>

#include "ait/types.h"

namespace ait {

/// Bytes of a line of a panel in the compute type: three vector registers of AVX-512, six of AVX.
inline constexpr int64_t kPanelBytes = 192;

/// @brief Columns of a panel.
template <class T>
inline constexpr int64_t kPanelColumns = kPanelBytes / int64_t(sizeof(T) < 4 ? 4 : sizeof(T));

/// @brief Stores rows [first, first + rows) of a [k, n] matrix into its panels; `from` holds them row-major. The panels are packed in
/// parallel where the code is compiled with OpenMP.
template <class T>
void pack_panels_kn(const T* from, int64_t first, int64_t rows, int64_t k, int64_t n, T* to) {
  constexpr int64_t kColumns = kPanelColumns<T>;
#pragma omp parallel for schedule(static)
  for (int64_t n0 = 0; n0 < n; n0 += kColumns) {
    const int64_t columns = n - n0 < kColumns ? n - n0 : kColumns;
    for (int64_t r = 0; r < rows; ++r) {
      T* line = to + n0 * k + (first + r) * kColumns;
      for (int64_t c = 0; c < columns; ++c) line[c] = from[r * n + n0 + c];
      for (int64_t c = columns; c < kColumns; ++c) line[c] = T(0);
    }
  }
}

/// @brief Stores columns [first, first + rows) of a [k, n] matrix into its panels; `from` holds them transposed: [rows, k], row-major.
/// The panels are packed in parallel where the code is compiled with OpenMP.
template <class T>
void pack_panels_nk(const T* from, int64_t first, int64_t rows, int64_t k, int64_t n, T* to) {
  constexpr int64_t kColumns = kPanelColumns<T>, kStep = 16;
  const int64_t last = first + rows, end = last == n ? (n + kColumns - 1) / kColumns * kColumns : last;
#pragma omp parallel for schedule(static)
  for (int64_t n0 = first / kColumns * kColumns; n0 < end; n0 += kColumns) {
    const int64_t begin = first > n0 ? first - n0 : 0, stop = end - n0 < kColumns ? end - n0 : kColumns;
    for (int64_t k0 = 0; k0 < k; k0 += kStep) {
      const int64_t count = k - k0 < kStep ? k - k0 : kStep;
      T* lines = to + n0 * k + k0 * kColumns;
      for (int64_t c = begin; c < stop; ++c) {
        const bool inside = n0 + c < last;
        const T* row = from + (n0 + c - first) * k + k0;
        for (int64_t i = 0; i < count; ++i) lines[i * kColumns + c] = inside ? row[i] : T(0);
      }
    }
  }
}

/// Products for a tile of 2 x 2 results of a window of 3 x 3: see `ait/kernels/cpu/conv_winograd.h`.
inline constexpr int64_t kWinogradTaps = 16;

/// @brief Stores columns [first, first + rows) of the transformed weight of a 3 x 3 convolution into panels of f32; `from` holds [rows, 3, 3, channels].
///
/// Per channel the weight g becomes G g G^T, 4 x 4, with G = [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1]. The matrix has a row for each
/// channel of each of the 16 products, `n` columns, and lies as `pack_panels_kn` would store it. The panels are packed in parallel where
/// the code is compiled with OpenMP.
template <class T>
void pack_panels_winograd(const T* from, int64_t first, int64_t rows, int64_t channels, int64_t n, float* to) {
  constexpr int64_t kColumns = kPanelColumns<float>, kStep = 16;
  const int64_t last = first + rows, end = last == n ? (n + kColumns - 1) / kColumns * kColumns : last;
#pragma omp parallel for schedule(static)
  for (int64_t n0 = first / kColumns * kColumns; n0 < end; n0 += kColumns) {
    const int64_t begin = first > n0 ? first - n0 : 0, stop = end - n0 < kColumns ? end - n0 : kColumns;
    float* const panel = to + n0 * kWinogradTaps * channels;
    for (int64_t c0 = 0; c0 < channels; c0 += kStep) {
      const int64_t after = channels - c0 < kStep ? channels : c0 + kStep;
      for (int64_t column = begin; column < stop; ++column) {
        const bool inside = n0 + column < last;
        for (int64_t c = c0; c < after; ++c) {
          double half_done[4][3] = {};
          for (int j = 0; inside && j < 3; ++j) {
            const T* const g = from + ((n0 + column - first) * 9 + j) * channels + c;
            const double g0 = static_cast<float>(g[0]), g1 = static_cast<float>(g[3 * channels]), g2 = static_cast<float>(g[6 * channels]);
            half_done[0][j] = g0, half_done[1][j] = (g0 + g1 + g2) / 2, half_done[2][j] = (g0 - g1 + g2) / 2, half_done[3][j] = g2;
          }
          for (int i = 0; i < 4; ++i) {
            const double* const g = half_done[i];
            const double done[4] = {g[0], (g[0] + g[1] + g[2]) / 2, (g[0] - g[1] + g[2]) / 2, g[2]};
            for (int j = 0; j < 4; ++j) panel[((i * 4 + j) * channels + c) * kColumns + column] = static_cast<float>(done[j]);
          }
        }
      }
    }
  }
}

}  // namespace ait
#endif  // AIT_PANELS_H_
