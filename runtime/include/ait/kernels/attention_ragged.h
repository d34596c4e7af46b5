/// @file attention_ragged.h
/// @brief Where the rows of a sequence lie that has a length of its own: padded, packed or in pages of a pool.
#ifndef AIT_KERNELS_ATTENTION_RAGGED_H_
#define AIT_KERNELS_ATTENTION_RAGGED_H_

#include <stdint.h>

#include "ait/kernels/attention_window.h"
#include "ait/types.h"

namespace ait {

/// @brief The integers of ragged attention; a pointer is null where they are not given.
template <class I>
struct Ragged {
  const I* columns;    ///< [sequences]: rows of k and v of each
  const I* rows;       ///< [sequences]: rows of q of each
  const I* pages;      ///< [sequences, table]: pages of each
  const I* segments;   ///< [sequences + 1]: where the rows of each start in packed q, k and v
  int64_t sequences;
  int64_t table = 0;   ///< pages that a sequence has at most
  int64_t page = 1;    ///< columns of a page
  int64_t pool = 0;    ///< pages that there are
};

/// @brief The rows of q and of k and v that one sequence has.
struct Sequence {
  int64_t row0, rows, col0, cols;

  /// @brief The first row that sees a column. Row r stands at column r + cols - rows and sees less than `reach` columns in front of it.
  AIT_FN int64_t first_seeing(int64_t reach) const {
    const int64_t first = cols == 0 ? rows : rows - cols - reach + 1;
    return first < 0 ? 0 : first < rows ? first : rows;
  }
};

AIT_FN int64_t clamp_to(int64_t x, int64_t most) { return x < 0 ? 0 : x < most ? x : most; }

/// @brief Sequence `b`, inside of `rows` rows of q and `cols` columns whatever the integers say.
template <class I>
AIT_FN Sequence sequence_of(const Ragged<I>& ragged, int64_t b, int64_t rows, int64_t cols) {
  if (ragged.segments != nullptr) {
    const int64_t start = clamp_to(int64_t(ragged.segments[b]), rows), end = clamp_to(int64_t(ragged.segments[b + 1]), rows);
    return {start, end < start ? 0 : end - start, start, end < start ? 0 : end - start};
  }
  return {0, ragged.rows == nullptr ? rows : clamp_to(int64_t(ragged.rows[b]), rows), 0, clamp_to(int64_t(ragged.columns[b]), cols)};
}

}  // namespace ait
#endif  // AIT_KERNELS_ATTENTION_RAGGED_H_
