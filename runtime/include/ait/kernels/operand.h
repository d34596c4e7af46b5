/// @file operand.h
/// @brief Strided operands of memory-bound kernels, and lists of them, for host and device.
#ifndef AIT_KERNELS_OPERAND_H_
#define AIT_KERNELS_OPERAND_H_

#include <stddef.h>
#include <stdint.h>

#include <type_traits>
#include <utility>

#include "ait/types.h"

namespace ait {

/// @brief What the compiler knows of the stride of the innermost dim: 0 (broadcast), 1, or neither.
enum class Inner { zero, unit, strided };

/// @brief A pointer with a stride (in elements) for each dim of the iteration space.
template <class T, int kRankOf, Inner kInnerOf>
struct Operand {
  using Element = T;
  using Value = std::remove_const_t<T>;
  using Compute = compute_t<Value>;
  static constexpr int kRank = kRankOf;
  static constexpr Inner kInner = kInnerOf;

  T* data;
  int64_t strides[kRankOf];
};

template <Inner kInner, class T, size_t kRank>
inline Operand<T, static_cast<int>(kRank), kInner> operand(T* data, const int64_t (&strides)[kRank]) {
  Operand<T, static_cast<int>(kRank), kInner> result;
  result.data = data;
  for (size_t i = 0; i < kRank; ++i) result.strides[i] = strides[i];
  return result;
}

/// @brief A pointer to which nothing is written.
struct NoData {
  struct Element {
    template <class V>
    AIT_FN const Element& operator=(const V&) const {
      return *this;
    }
  };
  AIT_FN Element operator[](int64_t) const { return {}; }
  AIT_FN NoData operator+(int64_t) const { return {}; }
  AIT_FN NoData& operator+=(int64_t) { return *this; }
  AIT_FN int64_t operator-(NoData) const { return 0; }
};

/// @brief An operand for a result that nobody reads: a kernel stores elements as in an `Operand`, and they are dropped.
template <class T, int kRankOf, Inner kInnerOf>
struct Unread : Operand<T, kRankOf, kInnerOf> {
  NoData data;  ///< in place of the pointer
};

template <Inner kInner, class T, size_t kRank>
inline Unread<T, static_cast<int>(kRank), kInner> unread(T* data, const int64_t (&strides)[kRank]) {
  return {operand<kInner>(data, strides), {}};
}

template <class Op>
inline constexpr bool kIsUnread = false;
template <class T, int kRank, Inner kInner>
inline constexpr bool kIsUnread<Unread<T, kRank, kInner>> = true;

namespace detail {
template <size_t kIndex, class T>
struct Leaf {
  T value;
};
template <class Indices, class... Ts>
struct PackOf;
template <size_t... kIndices, class... Ts>
struct PackOf<std::index_sequence<kIndices...>, Ts...> : Leaf<kIndices, Ts>... {};
}  // namespace detail

/// @brief A tuple that device code can use and a kernel can take by value.
template <class... Ts>
struct Pack : detail::PackOf<std::index_sequence_for<Ts...>, Ts...> {
  static constexpr size_t kSize = sizeof...(Ts);
  using Indices = std::index_sequence_for<Ts...>;
};

template <size_t kIndex, class T>
AIT_FN T& get(detail::Leaf<kIndex, T>& leaf) {
  return leaf.value;
}
template <size_t kIndex, class T>
AIT_FN const T& get(const detail::Leaf<kIndex, T>& leaf) {
  return leaf.value;
}

namespace detail {
template <class P, class... Ts, size_t... kIndices>
AIT_FN P make_pack(std::index_sequence<kIndices...>, Ts... values) {
  P result;
  ((get<kIndices>(result) = values), ...);
  return result;
}
}  // namespace detail

template <class... Ts>
AIT_FN Pack<Ts...> pack(Ts... values) {
  return detail::make_pack<Pack<Ts...>>(std::index_sequence_for<Ts...>{}, values...);
}

/// @brief Calls `f` with each member in turn.
template <class F, class... Ts, size_t... kIndices>
AIT_FN void for_each_in(Pack<Ts...>& members, F&& f, std::index_sequence<kIndices...>) {
  (f(get<kIndices>(members)), ...);
}

/// @brief Splits a linear index over `sizes[0..kRank)` into one coordinate a dim, the last fastest.
template <int kRank, class Index>
AIT_FN void coordinates(Index linear, const int64_t* sizes, int64_t* out) {
  for (int d = kRank - 1; d > 0; --d) {
    const Index size = static_cast<Index>(sizes[d]);
    const Index quotient = linear / size;
    out[d] = static_cast<int64_t>(linear - quotient * size);
    linear = quotient;
  }
  out[0] = static_cast<int64_t>(linear);
}

}  // namespace ait
#endif  // AIT_KERNELS_OPERAND_H_
