/// @file jagged.h
/// @brief Sequences of different lengths, laid end to end: the places of their rows. For host and device.
#ifndef AIT_KERNELS_JAGGED_H_
#define AIT_KERNELS_JAGGED_H_

#include <stddef.h>
#include <stdint.h>

#include "ait/types.h"

namespace ait {

/// @brief The reduction of an embedding bag.
enum class Bag { sum, mean, max };

/// @brief The sizes of an embedding bag, in elements. An id equal to `padding` is ignored; `closed`: a last offset ends the last bag.
struct BagSpace {
  int64_t bags, count, rows, width, table_stride, out_stride;
  int64_t padding;
  bool closed;
};

/// @brief The rows from `begin` to `end`.
struct Span {
  int64_t begin, end;
};

/// @brief `begin` and `end`, clamped to [0, limit] and to begin <= end, so that nothing outside of the data is read.
AIT_FN Span span_within(int64_t begin, int64_t end, int64_t limit) {
  begin = begin < 0 ? 0 : begin > limit ? limit : begin;
  end = end < begin ? begin : end > limit ? limit : end;
  return {begin, end};
}

/// @brief The ids of bag `i`.
template <class Offset>
AIT_FN Span bag_span(const BagSpace& space, const Offset* offsets, int64_t i) {
  const bool open = !space.closed && i + 1 == space.bags;
  return span_within(static_cast<int64_t>(offsets[i]), open ? space.count : static_cast<int64_t>(offsets[i + 1]), space.count);
}

/// @brief A jagged dim of `kLevels` levels: level l has `sequences[l]` sequences of at most `longest[l]` rows, whose offsets are `offsets[l]`
/// (one more than sequences). The rows of a level are the sequences of the next one; the last level has `total` rows.
template <int kLevels, class Offset>
struct JaggedSpace {
  const Offset* offsets[kLevels];
  int64_t sequences[kLevels], longest[kLevels];
  int64_t total;

  /// The number of rows at a level.
  AIT_FN int64_t limit(int level) const { return level + 1 < kLevels ? sequences[level + 1] : total; }

  /// The rows of sequence `i` of a level, within the data; empty if there is no such sequence.
  AIT_FN Span span(int level, int64_t i) const {
    if (i >= sequences[level]) return {0, 0};
    return span_within(static_cast<int64_t>(offsets[level][i]), static_cast<int64_t>(offsets[level][i + 1]), limit(level));
  }

  /// The number of places, [batch, longest[0], ...].
  AIT_FN int64_t places() const {
    int64_t count = sequences[0];
    for (int level = 0; level < kLevels; ++level) count *= longest[level];
    return count;
  }

  /// The row at a place, counted row-major; -1 if the sequence is shorter.
  AIT_FN int64_t row_at(int64_t place) const {
    int64_t index[kLevels];
    for (int level = kLevels - 1; level >= 0; --level) {
      index[level] = place % longest[level];
      place /= longest[level];
    }
    for (int level = 0; level < kLevels; ++level) {
      const Span rows = span(level, place);
      if (index[level] >= rows.end - rows.begin) return -1;
      place = rows.begin + index[level];
    }
    return place;
  }

  /// The place of a row; -1 if it belongs to no sequence.
  AIT_FN int64_t place_of(int64_t row) const {
    int64_t place = 0, scale = 1;
    for (int level = kLevels - 1; level >= 0; --level) {
      int64_t low = 0, high = sequences[level];  // searches the last sequence that does not begin after the row
      while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (static_cast<int64_t>(offsets[level][middle]) <= row) {
          low = middle;
        } else {
          high = middle;
        }
      }
      if (low >= sequences[level]) return -1;
      const Span rows = span(level, low);
      if (row < rows.begin || row >= rows.end || row - rows.begin >= longest[level]) return -1;
      place += (row - rows.begin) * scale;
      scale *= longest[level];
      row = low;
    }
    return place + row * scale;
  }
};

template <size_t kLevels, class Offset>
inline JaggedSpace<static_cast<int>(kLevels), Offset> jagged_space(const Offset* const (&offsets)[kLevels], const int64_t (&sequences)[kLevels],
                                                                   const int64_t (&longest)[kLevels], int64_t total) {
  JaggedSpace<static_cast<int>(kLevels), Offset> space;
  for (size_t i = 0; i < kLevels; ++i) {
    space.offsets[i] = offsets[i];
    space.sequences[i] = sequences[i];
    space.longest[i] = longest[i];
  }
  space.total = total;
  return space;
}

}  // namespace ait
#endif  // AIT_KERNELS_JAGGED_H_
