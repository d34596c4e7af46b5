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

}  // namespace ait
#endif  // AIT_PANELS_H_
