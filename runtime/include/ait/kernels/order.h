/// @file order.h
/// @brief The order of elements, for host and device: unsigned keys, and pairs of a key and a place, no two of which are equal.
///
/// NaN is the largest number. All NaN are equal, and so are 0 and -0.
#ifndef AIT_KERNELS_ORDER_H_
#define AIT_KERNELS_ORDER_H_

#include <stdint.h>

#include <type_traits>

#include "ait/types.h"

namespace ait {

/// @brief The type of the keys of an element type: 32 bits, or 64 for elements of 64 bits.
template <class T>
using sort_key_t = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;

/// @brief The bits that keys of an element type may have set.
template <class T>
inline constexpr int kSortBits = std::is_same_v<T, bool> ? 1 : 8 * sizeof(T);

/// @brief A number that grows with the element, or falls with it if kDescending.
template <bool kDescending, class T>
AIT_FN sort_key_t<T> sort_key(T element) {
  using K = sort_key_t<T>;
  constexpr K kSign = K(1) << (kSortBits<T> - 1), kAll = kSign | (kSign - 1);
  K key;
  if constexpr (std::is_same_v<T, bool>) {
    key = element ? 1 : 0;
  } else if constexpr (std::is_integral_v<T>) {
    key = (static_cast<K>(static_cast<std::make_signed_t<K>>(element)) ^ (std::is_signed_v<T> ? kSign : K(0))) & kAll;
  } else {
    using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, K>;
    const compute_t<T> value = convert<compute_t<T>>(element);
    const K bits = value == compute_t<T>(0) ? K(0) : static_cast<K>(bit_cast<Bits>(element));
    key = value != value ? kAll : (bits & kSign) != 0 ? ~bits & kAll : bits | kSign;
  }
  return kDescending ? kAll & ~key : key;
}

/// @brief A 32-bit key and a place below 2^32 - 1 in one word.
struct NarrowPair {
  uint64_t word;

  template <class K>
  static AIT_FN NarrowPair of(K key, int64_t place) {
    return {static_cast<uint64_t>(key) << 32 | static_cast<uint64_t>(place)};
  }
  /// A pair that comes after every element.
  static AIT_FN NarrowPair last() { return {~uint64_t(0)}; }
  AIT_FN void set(const NarrowPair& other) { word = other.word; }
  AIT_FN int64_t place() const { return static_cast<int64_t>(word & 0xffffffffu); }
  AIT_FN bool operator<(const NarrowPair& other) const { return word < other.word; }
};

/// @brief A 16-bit key and a place below 2^16 - 1 in one word.
struct PackedPair {
  uint32_t word;

  template <class K>
  static AIT_FN PackedPair of(K key, int64_t place) {
    return {static_cast<uint32_t>(key) << 16 | static_cast<uint32_t>(place)};
  }
  static AIT_FN PackedPair last() { return {~uint32_t(0)}; }
  AIT_FN int64_t place() const { return static_cast<int64_t>(word & 0xffffu); }
  AIT_FN bool operator<(const PackedPair& other) const { return word < other.word; }
};

/// @brief A key of up to 64 bits and any place.
struct WidePair {
  uint64_t key, at;

  template <class K>
  static AIT_FN WidePair of(K key, int64_t place) {
    return {static_cast<uint64_t>(key), static_cast<uint64_t>(place)};
  }
  static AIT_FN WidePair last() { return {~uint64_t(0), ~uint64_t(0)}; }
  /// Word by word: clang copies structures through scratch memory.
  AIT_FN void set(const WidePair& other) { key = other.key, at = other.at; }
  AIT_FN int64_t place() const { return static_cast<int64_t>(at); }
  AIT_FN bool operator<(const WidePair& other) const { return key < other.key || (key == other.key && at < other.at); }
};

/// @brief The pairs of an element type; kFar if rows may have 2^32 - 1 elements or more.
template <class T, bool kFar>
using sort_pair_t = std::conditional_t<(sizeof(T) > 4) || kFar, WidePair, NarrowPair>;

/// @brief The pairs of an element type in rows of fewer than 2^16 - 1 elements.
template <class T>
using short_pair_t = std::conditional_t<(sizeof(T) <= 2), PackedPair, sort_pair_t<T, false>>;

/// @brief The number of elements of a sorted row before `value`, with those equal to it if kRight.
template <bool kRight, class T>
AIT_FN int64_t search_sorted(const T* row, int64_t length, int64_t step, T value) {
  using C = compute_t<T>;
  const C sought = convert<C>(value);
  int64_t low = 0, high = length;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const C found = convert<C>(row[middle * step]);
    if (kRight ? !(found > sought) : !(found >= sought)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace ait
#endif  // AIT_KERNELS_ORDER_H_
