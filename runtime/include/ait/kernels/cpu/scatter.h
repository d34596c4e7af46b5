/// @file scatter.h
/// @brief Values combined with elements of a tensor by index along some of its dims.
#ifndef AIT_KERNELS_CPU_SCATTER_H_
#define AIT_KERNELS_CPU_SCATTER_H_

#include <stdint.h>

#include "ait/context.h"
#include "ait/kernels/cpu/take.h"
#include "ait/kernels/indexed_space.h"
#include "ait/kernels/operand.h"
#include "ait/parallel.h"

namespace ait::cpu {
namespace detail {

/// Combines the values of the columns `first` to `last` in `elements`, place by place in the order of the first `kSerial` loops.
template <class Kind, int kSerial, int kRank, int kIndices, class Id, class T, class A>
void scatter_columns(const IndexedSpace<kRank, kIndices, Id>& space, int64_t places, int64_t first, int64_t last, const T* values,
                     A* elements) {
  constexpr int kInner = kRank - 1;
  bool shared = true;  // one index for a whole run
  for (int k = 0; k < kIndices; ++k) shared = shared && space.index_strides[k][kInner] == 0;
  const int64_t from_step = space.dense_strides[kInner], to_step = space.whole_strides[kInner];
  for (int64_t place = 0; place < places; ++place) {
    int64_t coordinate[kRank], from, to;
    coordinates<kSerial>(place, space.sizes, coordinate);
    for (int64_t column = first; column < last;) {
      coordinates<kRank - kSerial>(column, space.sizes + kSerial, coordinate + kSerial);
      const int64_t left = space.sizes[kInner] - coordinate[kInner];
      const int64_t run = left < last - column ? left : last - column;
      (void)space.offsets(coordinate, from, to);
      for (int64_t i = 0; i < run; ++i) {
        if (i > 0 && shared) {
          from += from_step;
          to += to_step;
        } else if (i > 0) {
          ++coordinate[kInner];
          (void)space.offsets(coordinate, from, to);
        }
        elements[to] = Kind::template apply<A>(elements[to], convert<A>(values[from]));
      }
      column += run;
    }
  }
}

}  // namespace detail

/// @brief Combines values with the elements of `out` that a space names; values for one element are combined in row-major order.
///
/// Places of the first `kSerial` loops may name the same element; along the other loops, the columns, elements differ. If `Kind`
/// rounds 16-bit floats, `out` is contiguous, has `size` elements, and `sums` has room for them. Fails with the first index outside of its
/// dim; nothing is written then.
template <class Kind, int kSerial, int kRank, int kIndices, class Id, class T>
int32_t scatter(const Context& ctx, const IndexedSpace<kRank, kIndices, Id>& space, const T* values, T* out,
                combined_t<Kind, T>* sums, int64_t size) {
  if (space.count() <= 0) return 0;
  if (const int32_t status = check_indices(ctx, "scatter", space)) return status;
  int64_t places = 1, columns = 1;
  for (int d = 0; d < kRank; ++d) (d < kSerial ? places : columns) *= space.sizes[d];
  using A = combined_t<Kind, T>;
  constexpr bool kApart = !std::is_same_v<A, T>;
  constexpr int64_t kParts = 64;
  const int64_t parts = columns < kParts ? columns : kParts;
  if constexpr (kApart) {
    for (int64_t i = 0; i < size; ++i) sums[i] = convert<A>(out[i]);
  }
  parallel_tasks(parts, places * columns >= 64 * 1024 ? num_threads() : 1, [&](int64_t part) {
    const int64_t first = columns * part / parts, last = columns * (part + 1) / parts;
    if constexpr (kApart) {
      detail::scatter_columns<Kind, kSerial>(space, places, first, last, values, sums);
    } else {
      detail::scatter_columns<Kind, kSerial>(space, places, first, last, values, out);
    }
  });
  if constexpr (kApart) {
    for (int64_t i = 0; i < size; ++i) out[i] = convert<T>(sums[i]);
  }
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_SCATTER_H_
