/// @file pack_panels.h
/// @brief Stores matrices in panels (`ait/panels.h`), when the weights of a model are set.
#ifndef AIT_PACK_PANELS_H_
#define AIT_PACK_PANELS_H_

#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "ait/panels.h"
#include "ait/parallel.h"

namespace ait {

/// Rows and columns of the blocks that `transpose_block` moves.
inline constexpr int64_t kPackBlock = 4;

/// @brief Stores a block of 4 x 4 elements transposed: element (i, j) of rows that are `stride` apart goes to row j, column i.
template <class T>
inline void transpose_block(const T* from, int64_t stride, T* to, int64_t to_stride) {
#ifdef __SSE2__
  if constexpr (sizeof(T) == 4) {
    __m128i rows[kPackBlock];
    for (int i = 0; i < kPackBlock; ++i) rows[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * stride));
    const __m128i low = _mm_unpacklo_epi32(rows[0], rows[1]), low2 = _mm_unpacklo_epi32(rows[2], rows[3]);
    const __m128i high = _mm_unpackhi_epi32(rows[0], rows[1]), high2 = _mm_unpackhi_epi32(rows[2], rows[3]);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi64(low, low2));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + to_stride), _mm_unpackhi_epi64(low, low2));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * to_stride), _mm_unpacklo_epi64(high, high2));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 3 * to_stride), _mm_unpackhi_epi64(high, high2));
    return;
  }
  if constexpr (sizeof(T) == 2) {
    __m128i rows[kPackBlock];
    for (int i = 0; i < kPackBlock; ++i) rows[i] = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + i * stride));
    const __m128i one = _mm_unpacklo_epi16(rows[0], rows[1]), two = _mm_unpacklo_epi16(rows[2], rows[3]);
    const __m128i low = _mm_unpacklo_epi32(one, two), high = _mm_unpackhi_epi32(one, two);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), low);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + to_stride), _mm_unpackhi_epi64(low, low));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 2 * to_stride), high);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 3 * to_stride), _mm_unpackhi_epi64(high, high));
    return;
  }
#endif
  for (int64_t i = 0; i < kPackBlock; ++i) {
    for (int64_t j = 0; j < kPackBlock; ++j) to[j * to_stride + i] = from[i * stride + j];
  }
}

/// @brief Stores an element of bytes at each place of a panel that has rows [first, last) of k and columns [begin, end): element(k, c). After
/// the last k come zeros.
template <class T, class Element>
inline void pack_fours(int64_t first, int64_t last, int64_t begin, int64_t end, int64_t k, const Element& element, T* panel) {
  constexpr int64_t kColumns = kPanelColumns<T>, kSteps = kPanelSteps<T>;
  const int64_t stop = last == k ? (k + kSteps - 1) / kSteps * kSteps : last;
  for (int64_t r = first; r < stop; ++r) {
    T* const line = panel + r / kSteps * kSteps * kColumns + r % kSteps;
    for (int64_t c = begin; c < end; ++c) line[c * kSteps] = r < last ? element(r, c) : T(0);
  }
}

/// @brief Calls each(n0) for the first column n0 of each panel that has some of the columns [first, end). Threads share the panels.
template <class Each>
void share_panels(int64_t first, int64_t end, int64_t columns, const Each& each) {
  const int64_t before = first / columns;
  parallel_for((end + columns - 1) / columns - before, true, [&](int64_t panel) { each((before + panel) * columns); });
}

/// @brief Stores rows [first, first + rows) of a [k, n] matrix into its panels; `from` holds them row-major.
template <class T>
void pack_panels_kn(const T* from, int64_t first, int64_t rows, int64_t k, int64_t n, T* to) {
  constexpr int64_t kColumns = kPanelColumns<T>;
  if constexpr (kPanelSteps<T> > 1) {
    const int64_t pitch = (k + kPanelSteps<T> - 1) / kPanelSteps<T> * kPanelSteps<T>;
    share_panels(0, n, kColumns, [=](int64_t n0) {
      const auto element = [&](int64_t r, int64_t c) { return n0 + c < n ? from[(r - first) * n + n0 + c] : T(0); };
      pack_fours(first, first + rows, 0, kColumns, k, element, to + n0 * pitch);
    });
    return;
  }
  share_panels(0, n, kColumns, [=](int64_t n0) {
    const int64_t columns = n - n0 < kColumns ? n - n0 : kColumns;
    for (int64_t r = 0; r < rows; ++r) {
      T* line = to + n0 * k + (first + r) * kColumns;
      for (int64_t c = 0; c < columns; ++c) line[c] = from[r * n + n0 + c];
      for (int64_t c = columns; c < kColumns; ++c) line[c] = T(0);
    }
  });
}

/// @brief Stores columns [first, first + rows) of a [k, n] matrix into its panels; `from` holds them transposed: [rows, k], row-major.
///
/// A cache line of each row at a time: rows that are a multiple of a page apart share few sets of the cache. The next line is fetched
/// early, because the processor follows fewer rows than a panel has columns.
template <class T>
void pack_panels_nk(const T* from, int64_t first, int64_t rows, int64_t k, int64_t n, T* to) {
  constexpr int64_t kColumns = kPanelColumns<T>, kStep = 64 / int64_t(sizeof(T));
  const int64_t last = first + rows, end = last == n ? (n + kColumns - 1) / kColumns * kColumns : last;
  if constexpr (kPanelSteps<T> > 1) {
    const int64_t pitch = (k + kPanelSteps<T> - 1) / kPanelSteps<T> * kPanelSteps<T>;
    share_panels(first, end, kColumns, [=](int64_t n0) {
      const auto element = [&](int64_t r, int64_t c) { return n0 + c < last ? from[(n0 + c - first) * k + r] : T(0); };
      for (int64_t c = first > n0 ? first - n0 : 0; c < kColumns && n0 + c < end; ++c) {
        pack_fours(0, k, c, c + 1, k, element, to + n0 * pitch);
      }
    });
    return;
  }
  share_panels(first, end, kColumns, [=](int64_t n0) {
    const int64_t begin = first > n0 ? first - n0 : 0, stop = end - n0 < kColumns ? end - n0 : kColumns;
    for (int64_t k0 = 0; k0 < k; k0 += kStep) {
      const int64_t count = k - k0 < kStep ? k - k0 : kStep;
      T* lines = to + n0 * k + k0 * kColumns;
      int64_t c = begin;
      for (; count == kStep && c + kPackBlock <= stop && n0 + c + kPackBlock <= last; c += kPackBlock) {
        const T* block = from + (n0 + c - first) * k + k0;
        for (int64_t r = 0; r < kPackBlock && k0 + 2 * kStep <= k; ++r) __builtin_prefetch(block + r * k + kStep);
        for (int64_t i = 0; i < kStep; i += kPackBlock) transpose_block(block + i, k, lines + i * kColumns + c, kColumns);
      }
      for (; c < stop; ++c) {
        const bool inside = n0 + c < last;
        const T* row = from + (n0 + c - first) * k + k0;
        for (int64_t i = 0; i < count; ++i) lines[i * kColumns + c] = inside ? row[i] : T(0);
      }
    }
  });
}

/// @brief Stores columns [first, first + rows) of the transformed weight of a 3 x 3 convolution into panels of f32; `from` holds [rows, 3, 3, channels].
///
/// Per channel the weight g becomes G g G^T, 4 x 4, with G = [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1]. The matrix has a row for each
/// channel of each of the 16 products, `n` columns, and lies as `pack_panels_kn` would store it.
template <class T>
void pack_panels_winograd(const T* from, int64_t first, int64_t rows, int64_t channels, int64_t n, float* to) {
  constexpr int64_t kColumns = kPanelColumns<float>, kStep = 16;
  const int64_t last = first + rows, end = last == n ? (n + kColumns - 1) / kColumns * kColumns : last;
  share_panels(first, end, kColumns, [=](int64_t n0) {
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
  });
}

}  // namespace ait
#endif  // AIT_PACK_PANELS_H_
