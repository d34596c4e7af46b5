/// @file jagged.h
/// @brief Bags of rows, and sequences laid end to end.
#ifndef AIT_KERNELS_CPU_JAGGED_H_
#define AIT_KERNELS_CPU_JAGGED_H_

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/jagged.h"
#include "ait/math.h"
#include "ait/parallel.h"

namespace ait::cpu {

/// @brief Fails unless the `count + 1` offsets never decrease, stay in [0, limit], and bound sequences of at most `longest` rows.
template <class Offset>
int32_t check_offsets(const Context& ctx, const char* op, int level, const Offset* offsets, int64_t count, int64_t limit, int64_t longest) {
  char message[240];
  for (int64_t i = 0; i <= count; ++i) {
    const long long at = static_cast<long long>(offsets[i]), before = i == 0 ? 0 : static_cast<long long>(offsets[i - 1]);
    const long long place = static_cast<long long>(i);
    if (at < before) {
      snprintf(message, sizeof message, "%s: offset %lld at place %lld of offsets %d is below %s, %lld", op, at, place, level,
               i == 0 ? "the first row" : "the one before it", before);
    } else if (at > limit) {
      snprintf(message, sizeof message, "%s: offset %lld at place %lld of offsets %d is beyond the data, which has %lld rows", op, at, place,
               level, static_cast<long long>(limit));
    } else if (i > 0 && at - before > longest) {
      snprintf(message, sizeof message, "%s: sequence %lld of offsets %d has %lld rows, more than the declared %lld", op, place - 1, level,
               at - before, static_cast<long long>(longest));
    } else {
      continue;
    }
    return ctx.fail(message);
  }
  return 0;
}

template <int kLevels, class Offset>
int32_t check_offsets(const Context& ctx, const char* op, const JaggedSpace<kLevels, Offset>& space) {
  for (int level = 0; level < kLevels; ++level) {
    const int32_t status =
        check_offsets(ctx, op, level, space.offsets[level], space.sequences[level], space.limit(level), space.longest[level]);
    if (status != 0) return status;
  }
  return 0;
}

namespace detail {
inline constexpr int64_t kBagColumns = 64;  ///< sums that stay in registers
inline constexpr int64_t kJaggedParallelBytes = 256 * 1024;
}  // namespace detail

/// @brief out[i, :] = the sum, mean or maximum of the rows of the table for the ids of bag i.
///
/// Rows are contiguous on both sides. `weights` (one for each id) may be null. Fails with the first wrong offset, or with the first id
/// outside of the table.
template <Bag kKind, class T, class Id, class Offset>
int32_t embedding_bag(const Context& ctx, const BagSpace& space, const T* table, const Id* ids, const Offset* offsets, const T* weights,
                      T* out) {
  using C = compute_t<T>;
  const int64_t ends = space.closed ? space.bags : space.bags - 1;
  if (const int32_t status = check_offsets(ctx, "embedding_bag", 0, offsets, ends, space.count, space.count)) return status;
  Smallest first_wrong(space.count);
  parallel_for(space.bags, space.count * space.width * static_cast<int64_t>(sizeof(T)) >= detail::kJaggedParallelBytes, [=, &first_wrong](int64_t i) {
    const Span bag = bag_span(space, offsets, i);
    for (int64_t first = 0; first < space.width; first += detail::kBagColumns) {
      const int64_t width = space.width - first < detail::kBagColumns ? space.width - first : detail::kBagColumns;
      C sums[detail::kBagColumns] = {};
      int64_t kept = 0;
      for (int64_t j = bag.begin; j < bag.end; ++j) {
        const int64_t id = static_cast<int64_t>(ids[j]);
        if (id < 0 || id >= space.rows) {
          first_wrong.note(j);
          continue;
        }
        if (id == space.padding) continue;
        const T* row = table + id * space.table_stride + first;
        const C weight = weights == nullptr ? C(1) : static_cast<C>(weights[j]);
        for (int64_t c = 0; c < width; ++c) {
          const C value = static_cast<C>(row[c]);
          if constexpr (kKind == Bag::max) {
            sums[c] = kept == 0 ? value : max(sums[c], value);
          } else {
            sums[c] += weight * value;
          }
        }
        ++kept;
      }
      const C count = kKind == Bag::mean && kept > 0 ? static_cast<C>(kept) : C(1);
      T* to = out + i * space.out_stride + first;
      for (int64_t c = 0; c < width; ++c) to[c] = convert<T>(kKind == Bag::mean ? sums[c] / count : sums[c]);
    }
  });
  int64_t wrong = first_wrong.get();
  for (int64_t j = 0; wrong == space.count && space.width == 0 && j < space.count; ++j) {
    if (static_cast<int64_t>(ids[j]) < 0 || static_cast<int64_t>(ids[j]) >= space.rows) wrong = j;
  }
  if (wrong == space.count) return 0;
  char message[200];
  snprintf(message, sizeof message, "embedding_bag: id %lld at place %lld of the ids is outside of the table, which has %lld rows",
           static_cast<long long>(ids[wrong]), static_cast<long long>(wrong), static_cast<long long>(space.rows));
  return ctx.fail(message);
}

/// @brief out[place, :] = x[row, :] for each place of the padded form, or `value` if the sequence is shorter. Both are row-major.
template <int kLevels, class Offset, class T>
int32_t jagged_pad(const Context& ctx, const char* op, const JaggedSpace<kLevels, Offset>& space, int64_t width, const T* x, double value,
                   T* out) {
  if (const int32_t status = check_offsets(ctx, op, space)) return status;
  const int64_t places = space.places();
  const T fill = cast<T>(value);
  parallel_for(places, places * width * static_cast<int64_t>(sizeof(T)) >= detail::kJaggedParallelBytes, [=](int64_t place) {
    const int64_t row = space.row_at(place);
    T* to = out + place * width;
    if (row < 0) {
      for (int64_t c = 0; c < width; ++c) to[c] = fill;
    } else if (width > 0) {
      memcpy(to, x + row * width, static_cast<size_t>(width) * sizeof(T));
    }
  });
  return 0;
}

/// @brief out[row, :] = x[place, :]; rows that belong to no sequence are 0, or not written if `partial`. Both are row-major.
template <int kLevels, class Offset, class T>
int32_t jagged_unpad(const Context& ctx, const char* op, const JaggedSpace<kLevels, Offset>& space, int64_t width, const T* x, T* out,
                     bool partial = false) {
  if (const int32_t status = check_offsets(ctx, op, space)) return status;
  parallel_for(space.total, space.total * width * static_cast<int64_t>(sizeof(T)) >= detail::kJaggedParallelBytes, [=](int64_t row) {
    const int64_t place = space.place_of(row);
    if (partial && place < 0) return;
    T* to = out + row * width;
    for (int64_t c = 0; c < width; ++c) to[c] = place < 0 ? convert<T>(0.0) : x[place * width + c];
  });
  return 0;
}

/// @brief out[b, h, :] = the sum over the rows i of sequence b of vectors[b, h, i] * matrices[row, h, :]. All are row-major.
template <class Offset, class T>
int32_t jagged_vector_product(const Context& ctx, const char* op, const JaggedSpace<1, Offset>& space, int64_t heads, int64_t width,
                              const T* vectors, const T* matrices, T* out) {
  using C = compute_t<T>;
  if (const int32_t status = check_offsets(ctx, op, space)) return status;
  parallel_for(space.sequences[0] * heads, space.total * heads * width * static_cast<int64_t>(sizeof(T)) >= detail::kJaggedParallelBytes, [=](int64_t i) {
    const Span rows = space.span(0, i / heads);
    const T* vector = vectors + i * space.longest[0];
    for (int64_t first = 0; first < width; first += detail::kBagColumns) {
      const int64_t columns = width - first < detail::kBagColumns ? width - first : detail::kBagColumns;
      C sums[detail::kBagColumns] = {};
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        const T* from = matrices + (row * heads + i % heads) * width + first;
        const C factor = static_cast<C>(vector[row - rows.begin]);
        for (int64_t c = 0; c < columns; ++c) sums[c] += factor * static_cast<C>(from[c]);
      }
      for (int64_t c = 0; c < columns; ++c) out[i * width + first + c] = convert<T>(sums[c]);
    }
  });
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_JAGGED_H_
