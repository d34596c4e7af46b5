/// @file indexed_space.h
/// @brief The places of a tensor that are given by indices along some of its dims, for host and device.
#ifndef AIT_KERNELS_INDEXED_SPACE_H_
#define AIT_KERNELS_INDEXED_SPACE_H_

#include <stddef.h>
#include <stdint.h>

#include <type_traits>

#include "ait/math.h"
#include "ait/types.h"

namespace ait {

/// @brief Loops over places. Along loop d, the dense side (what is gathered or scattered) steps by `dense_strides[d]`, the whole tensor by
/// `whole_strides[d]` and index tensor k by `index_strides[k][d]`, in elements. The value of index k, times `steps[k]`, is added to the offset in
/// the whole tensor.
template <int kRank, int kIndices, class Id>
struct IndexedSpace {
  int64_t sizes[kRank], dense_strides[kRank], whole_strides[kRank], index_strides[kIndices][kRank];
  int64_t extents[kIndices], steps[kIndices];
  const Id* indices[kIndices];

  /// @brief The number of places.
  AIT_FN int64_t count() const {
    int64_t total = 1;
    for (int d = 0; d < kRank; ++d) total *= sizes[d];
    return total;
  }

  /// @brief The value of index k at these coordinates, as it is stored: negative ones count from the end of the dim.
  AIT_FN int64_t stored(int k, const int64_t (&coordinate)[kRank]) const {
    int64_t at = 0;
    for (int d = 0; d < kRank; ++d) at += coordinate[d] * index_strides[k][d];
    return static_cast<int64_t>(indices[k][at]);
  }

  /// @brief The value of index k at these coordinates, counted from the front; 0, and `known` becomes false, if it is outside of its dim.
  AIT_FN int64_t index(int k, const int64_t (&coordinate)[kRank], bool& known) const {
    const int64_t given = stored(k, coordinate);
    const int64_t found = given < 0 ? given + extents[k] : given;
    const bool inside = found >= 0 && found < extents[k];
    known = known && inside;
    return inside ? found : 0;
  }

  /// @brief Offsets of a place on the dense side and in the whole; false if an index is outside of its dim.
  AIT_FN bool offsets(const int64_t (&coordinate)[kRank], int64_t& dense, int64_t& whole) const {
    bool known = true;
    dense = 0;
    whole = 0;
    for (int d = 0; d < kRank; ++d) {
      dense += coordinate[d] * dense_strides[d];
      whole += coordinate[d] * whole_strides[d];
    }
    for (int k = 0; k < kIndices; ++k) whole += index(k, coordinate, known) * steps[k];
    return known;
  }
};

/// @brief The space of these loops.
template <size_t kRank, size_t kIndices, class Id>
IndexedSpace<static_cast<int>(kRank), static_cast<int>(kIndices), Id> indexed_space(
    const int64_t (&sizes)[kRank], const int64_t (&dense_strides)[kRank], const int64_t (&whole_strides)[kRank],
    const Id* const (&indices)[kIndices], const int64_t (&index_strides)[kIndices][kRank], const int64_t (&extents)[kIndices],
    const int64_t (&steps)[kIndices]) {
  IndexedSpace<static_cast<int>(kRank), static_cast<int>(kIndices), Id> space;
  for (size_t d = 0; d < kRank; ++d) {
    space.sizes[d] = sizes[d];
    space.dense_strides[d] = dense_strides[d];
    space.whole_strides[d] = whole_strides[d];
    for (size_t k = 0; k < kIndices; ++k) space.index_strides[k][d] = index_strides[k][d];
  }
  for (size_t k = 0; k < kIndices; ++k) {
    space.extents[k] = extents[k];
    space.steps[k] = steps[k];
    space.indices[k] = indices[k];
  }
  return space;
}

// ** how a value is combined with an element **

/// @brief Each has `apply(element, value)`; `kRounds` says whether it rounds, so that 16-bit floats are combined in float.
struct SetElement {
  static constexpr bool kRounds = false;
  template <class T>
  static AIT_FN T apply(T, T value) {
    return value;
  }
};
struct AddElement {
  static constexpr bool kRounds = true;
  template <class T>
  static AIT_FN T apply(T element, T value) {
    return add<T>(element, value);
  }
};
struct MulElement {
  static constexpr bool kRounds = true;
  template <class T>
  static AIT_FN T apply(T element, T value) {
    return mul<T>(element, value);
  }
};
struct MaxElement {
  static constexpr bool kRounds = false;
  template <class T>
  static AIT_FN T apply(T element, T value) {
    return max<T>(element, value);
  }
};
struct MinElement {
  static constexpr bool kRounds = false;
  template <class T>
  static AIT_FN T apply(T element, T value) {
    return min<T>(element, value);
  }
};

/// @brief The type in which `Kind` combines elements of `T`.
template <class Kind, class T>
using combined_t = std::conditional_t<Kind::kRounds, compute_t<T>, T>;

}  // namespace ait
#endif  // AIT_KERNELS_INDEXED_SPACE_H_
