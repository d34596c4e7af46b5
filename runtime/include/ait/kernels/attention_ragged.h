/// @file attention_ragged.h
/// @brief The places of the rows of sequences of different lengths: padded, packed or in pages of a pool.
#ifndef AIT_KERNELS_ATTENTION_RAGGED_H_
#define AIT_KERNELS_ATTENTION_RAGGED_H_

#include <stdint.h>

#include "ait/kernels/attention_window.h"
#include "ait/types.h"

namespace ait {

/// @brief The integers of ragged attention; a pointer is null if they are not given.
template <class I>
struct Ragged {
  const I* columns;    ///< [sequences]: rows of k and v of each
  const I* rows;       ///< [sequences]: rows of q of each
  const I* pages;      ///< [sequences, table]: pages of each
  const I* segments;   ///< [sequences + 1]: where the rows of each start in packed q, k and v
  int64_t sequences;
  int64_t table = 0;   ///< the most pages of a sequence
  int64_t page = 1;    ///< columns of a page
  int64_t pool = 0;    ///< the number of pages
};

/// @brief The rows of q, and of k and v, of one sequence.
struct Sequence {
  int64_t row0, rows, col0, cols;

  /// @brief The first row that sees a column. Row r stands at column r + cols - rows and sees columns at a distance below `reach` before it.
  AIT_FN int64_t first_seeing(int64_t reach) const {
    const int64_t first = cols == 0 ? rows : rows - cols - reach + 1;
    return first < 0 ? 0 : first < rows ? first : rows;
  }
};

AIT_FN int64_t clamp_to(int64_t x, int64_t most) { return x < 0 ? 0 : x < most ? x : most; }

/// @brief Sequence `b`, clamped to `rows` rows of q and `cols` columns.
template <class I>
AIT_FN Sequence sequence_of(const Ragged<I>& ragged, int64_t b, int64_t rows, int64_t cols) {
  if (ragged.segments != nullptr) {
    const int64_t start = clamp_to(int64_t(ragged.segments[b]), rows), end = clamp_to(int64_t(ragged.segments[b + 1]), rows);
    return {start, end < start ? 0 : end - start, start, end < start ? 0 : end - start};
  }
  return {0, ragged.rows == nullptr ? rows : clamp_to(int64_t(ragged.rows[b]), rows), 0, clamp_to(int64_t(ragged.columns[b]), cols)};
}

/// @brief Which tile of which packed sequence.
struct PackedTile {
  int sequence, tile;  ///< a tile below 0: before the first sequence
};

/// @brief How many slots the packed sequences of a head share. A sequence has those from its first row / `tile_rows` + its number on: one for each
/// of its tiles of `tile_rows` rows, and at most one more.
AIT_FN int64_t packed_slots(int64_t rows, int64_t sequences, int tile_rows) { return rows / tile_rows + sequences; }

/// @brief The tile of a slot, by a binary search.
template <class I>
AIT_FN PackedTile packed_tile(const Ragged<I>& ragged, int slot, int64_t rows, int tile_rows) {
  auto first_slot = [&](int b) { return int(clamp_to(int64_t(ragged.segments[b]), rows)) / tile_rows + b; };
  int b = 0;
  for (int last = int(ragged.sequences) - 1; b < last;) {
    const int middle = (b + last + 1) / 2;
    if (first_slot(middle) <= slot) {
      b = middle;
    } else {
      last = middle - 1;
    }
  }
  return {b, slot - first_slot(b)};
}

}  // namespace ait
#endif  // AIT_KERNELS_ATTENTION_RAGGED_H_
