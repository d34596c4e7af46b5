/// @file vector.cuh
/// @brief Vector accesses, index splitting and host-side checks that the memory-bound GPU kernels share.
#ifndef AIT_KERNELS_GPU_VECTOR_CUH_
#define AIT_KERNELS_GPU_VECTOR_CUH_

#include <stdint.h>

#include <type_traits>

#include "ait/gpu/gpu.h"
#include "ait/kernels/operand.h"
#include "ait/types.h"

namespace ait::gpu {

template <int kBytes>
struct WordOf;
template <>
struct WordOf<1> {
  using Type = uint8_t;
};
template <>
struct WordOf<2> {
  using Type = uint16_t;
};
template <>
struct WordOf<4> {
  using Type = uint32_t;
};
template <>
struct WordOf<8> {
  using Type = uint2;
};
template <>
struct WordOf<16> {
  using Type = uint4;
};
/// @brief The unsigned word of so many bytes: 1, 2, 4, 8 or 16.
template <int kBytes>
using word_t = typename WordOf<kBytes>::Type;

/// Bytes that one access of `kCount` elements of `T` moves; more are several accesses.
template <class T, int kCount>
inline constexpr int kAccessBytes = sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16;

/// @brief The distance of rows of `length` elements in shared memory, such that neighbouring rows begin in different banks.
template <class T>
AIT_FN int bank_pitch(int length) {
  constexpr int kOfWord = sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 1;
  return ((length + kOfWord - 1) / kOfWord | 1) * kOfWord;
}

/// @brief Reads a word from an address aligned to its size, in one instruction.
template <class Word>
__device__ __forceinline__ Word read_word(const Word* from) {
#if defined(AIT_HIP) && !defined(AIT_EMULATED)
  if constexpr (sizeof(Word) >= 8) {
    typedef uint32_t Native __attribute__((vector_size(sizeof(Word)), may_alias));
    const Native native = *reinterpret_cast<const Native*>(from);
    if constexpr (sizeof(Word) == 16) {
      return Word{native[0], native[1], native[2], native[3]};
    } else {
      return Word{native[0], native[1]};
    }
  }
#endif
  return *from;
}

/// @brief Reads `kCount` elements from an address aligned to `kAccessBytes`.
template <int kCount, class T>
__device__ __forceinline__ void load(const T* from, T (&to)[kCount]) {
  using Word = word_t<kAccessBytes<T, kCount>>;
  constexpr int kWords = sizeof(T) * kCount / sizeof(Word);
  Word words[kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = read_word(reinterpret_cast<const Word*>(from) + i);
  copy_bytes(&to, &words, sizeof(to));
}

/// @brief Hides from the compiler what a word consists of: it would choose between two words half a register at a time if these are elements of 16 bits.
template <class Word>
__device__ __forceinline__ void keep_whole(Word& word) {
#if defined(AIT_CUDA) && !defined(AIT_EMULATED)
  if constexpr (sizeof(Word) >= 4) {
    uint32_t parts[sizeof(Word) / 4];
    copy_bytes(&parts, &word, sizeof(word));
#pragma unroll
    for (uint32_t& part : parts) asm("" : "+r"(part));
    copy_bytes(&word, &parts, sizeof(word));
  }
#endif
}

/// @brief Writes a word to global memory, aligned to its size, in one instruction. Where the compiler (nvcc 13) computes the address outside of a loop, it
/// forgets how it is aligned, and makes four stores of a word of 16 bytes, each with 4 bytes of every 16.
template <class Word>
__device__ __forceinline__ void store_word(Word* to, const Word& word) {
#if defined(AIT_EMULATED)
  ::ait::emulator::check_global(to);
#elif defined(AIT_CUDA)
  if constexpr (sizeof(Word) == 16) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w) : "memory");
    return;
  } else if constexpr (sizeof(Word) == 8) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "r"(word.x), "r"(word.y) : "memory");
    return;
  }
#elif defined(AIT_HIP)
  typedef uint32_t Native __attribute__((vector_size(sizeof(Word) < 4 ? 4 : sizeof(Word)), may_alias));
  if constexpr (sizeof(Word) == 16) {
    *reinterpret_cast<Native*>(to) = Native{word.x, word.y, word.z, word.w};
    return;
  } else if constexpr (sizeof(Word) == 8) {
    *reinterpret_cast<Native*>(to) = Native{word.x, word.y};
    return;
  }
#endif
  *to = word;
}

/// @brief Writes `kCount` elements to an address of global memory that is aligned to `kAccessBytes`.
/// @tparam kForced whether by `store_word`, which no other access passes: kernels whose words the compiler stores as a whole are better off without
template <int kCount, bool kForced = true, class T>
__device__ __forceinline__ void store(T* to, const T (&from)[kCount]) {
  using Word = word_t<kAccessBytes<T, kCount>>;
  constexpr int kWords = sizeof(T) * kCount / sizeof(Word);
  Word words[kWords];
  copy_bytes(&words, &from, sizeof(from));
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    if constexpr (kForced) {
      store_word(reinterpret_cast<Word*>(to) + i, words[i]);
    } else {
      reinterpret_cast<Word*>(to)[i] = words[i];
    }
  }
}

/// @brief The aligned 16-byte words around `kCount` neighbours, as they were read: one more than the elements need if these may begin anywhere.
///
/// `read` has no branches, so that many may be on their way; `elements` waits and shifts. Nothing that does not exist is read: where not all words
/// do, elements are read one by one.
template <class T, int kCount, bool kAnywhere>
struct Words {
  static_assert(sizeof(T) * kCount % 16 == 0, "elements of whole words");
  static constexpr int kOfWord = 16 / sizeof(T);
  static constexpr int kWords = kCount / kOfWord, kRead = kWords + (kAnywhere ? 1 : 0), kSlots = kRead * kOfWord;
  /// Elements on either side of the `kCount` that must exist, too, for all words to exist.
  static constexpr int kMargin = kAnywhere ? kOfWord : 0;
  uint4 words[kRead];

  /// Elements from the first word to the first element.
  static __device__ __forceinline__ int lead(const T* from) {
    return kAnywhere ? static_cast<int>(reinterpret_cast<uintptr_t>(from) % 16 / sizeof(T)) : 0;
  }

  /// Reads all words, if they exist.
  __device__ __forceinline__ void read(const T* from, bool exist) {
    const uint4* at = reinterpret_cast<const uint4*>(from - lead(from));
#pragma unroll
    for (int k = 0; k < kRead; ++k) {
      words[k] = uint4{0, 0, 0, 0};
      if (exist && (k < kWords || lead(from) != 0)) words[k] = read_word(at + k);
    }
  }

  /// Reads all words, which exist, from an aligned address.
  __device__ __forceinline__ void read_aligned(const T* from) {
#pragma unroll
    for (int k = 0; k < kRead; ++k) words[k] = read_word(reinterpret_cast<const uint4*>(from) + k);
  }

  /// What was read from this address. Where not all words `exist`, the elements whose bit is set in `live` are read now, one by one; the others are
  /// anything.
  __device__ __forceinline__ void elements(const T* from, bool exist, uint32_t live, T (&to)[kCount]) const {
    if (!exist) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) to[j] = live >> j & 1 ? from[j] : T{};
      return;
    }
    elements_behind(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) % 16), to);
  }

  /// The elements that begin so many bytes behind the first word.
  __device__ __forceinline__ void elements_behind(uint32_t bytes, T (&to)[kCount]) const {
    uint32_t parts[4 * kRead];
    copy_bytes(&parts, &words, sizeof(words));
    if constexpr (kAnywhere) {
      constexpr int kNeeded = 4 * kWords;
#pragma unroll
      for (int k = 0; k < kNeeded + 2; ++k) parts[k] = choose((bytes & 8) != 0, parts[k + 2], parts[k]);
#pragma unroll
      for (int k = 0; k < kNeeded + 1; ++k) parts[k] = choose((bytes & 4) != 0, parts[k + 1], parts[k]);
      if constexpr (sizeof(T) < 4) {
        const uint32_t bits = bytes % 4 * 8;
#pragma unroll
        for (int k = 0; k < kNeeded; ++k) parts[k] = static_cast<uint32_t>((uint64_t(parts[k + 1]) << 32 | parts[k]) >> bits);
      }
    }
    copy_bytes(&to, &parts, sizeof(to));
  }
};

/// @brief Writes those of `kCount` elements with `-before <= j < count` to any address.
template <int kCount, class T>
__device__ __forceinline__ void store_within(T* to, int64_t before, int64_t count, const T (&from)[kCount]) {
  if (before >= 0 && count >= kCount && reinterpret_cast<uintptr_t>(to) % kAccessBytes<T, kCount> == 0) {
    store<kCount>(to, from);
    return;
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    if (j + before >= 0 && j < count) to[j] = from[j];
  }
}

/// @brief `kCount` values of one operand, in its compute type.
template <class C, int kCountOf>
struct Values {
  static constexpr int kCount = kCountOf;
  C v[kCountOf];
};

/// @brief Converts elements. Pairs of bfloat16 are words: one instruction each, where halves of a register would have to be taken out first.
template <class T, class C, int kCount>
__device__ __forceinline__ void convert_all(const T (&from)[kCount], C (&to)[kCount]) {
  if constexpr (std::is_same_v<T, bfloat16> && std::is_same_v<C, float> && kCount % 2 == 0) {
    uint32_t pairs[kCount / 2];
    copy_bytes(&pairs, &from, sizeof(pairs));
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) to[2 * i] = bit_cast<float>(pairs[i] << 16), to[2 * i + 1] = bit_cast<float>(pairs[i] & 0xffff0000u);
  } else {
#pragma unroll
    for (int j = 0; j < kCount; ++j) to[j] = convert<C>(from[j]);
  }
}

/// @brief The elements of one operand that a thread has read for `kVec` neighbours, before their conversion. One element stands for all if it is a splat.
///
/// Kept as the words that were read: elements of 16 bits would be taken out of them where they are read, so that each read waits for the one before.
template <class Op, int kVec, bool kSplat = Op::kInner == Inner::zero>
struct Raw {
  using T = typename Op::Value;
  static constexpr int kCount = kSplat ? 1 : kVec, kWords = static_cast<int>(sizeof(T)) * kCount / kAccessBytes<T, kCount>;
  using Word = word_t<kAccessBytes<T, kCount>>;
  Word words[kWords];

  /// Reads the elements from an address aligned to `kAccessBytes`.
  __device__ __forceinline__ void read(const T* from) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = read_word(reinterpret_cast<const Word*>(from) + i);
  }
  __device__ __forceinline__ void set(const T (&elements)[kCount]) { copy_bytes(&words, &elements, sizeof(words)); }
  __device__ __forceinline__ Values<typename Op::Compute, kVec> values() const {
    using C = typename Op::Compute;
    T elements[kCount];
    copy_bytes(&elements, &words, sizeof(words));
    Values<C, kVec> result;
    if constexpr (kSplat) {
#pragma unroll
      for (int j = 0; j < kVec; ++j) result.v[j] = convert<C>(elements[0]);
    } else {
      convert_all(elements, result.v);
    }
    return result;
  }
};

/// @brief Reads the `kCount` elements that follow each other along the innermost dim, from an address that is aligned if they are neighbours.
template <int kCount, class Op>
__device__ __forceinline__ Raw<Op, kCount> load_raw(const Op& operand, const typename Op::Value* from) {
  Raw<Op, kCount> raw;
  if constexpr (Op::kInner == Inner::strided) {
    typename Op::Value elements[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) elements[i] = from[i * operand.strides[Op::kRank - 1]];
    raw.set(elements);
  } else {
    raw.read(from);
  }
  return raw;
}

/// @brief Reads the `kCount` elements that follow each other along the innermost dim.
template <int kCount, class Op>
__device__ __forceinline__ Values<typename Op::Compute, kCount> load_values(const Op& operand, const typename Op::Value* from) {
  return load_raw<kCount>(operand, from).values();
}

/// @brief Writes `kCount` elements along the innermost dim, rounded to the element type.
template <int kCount, bool kForced = true, class Op>
__device__ __forceinline__ void store_values(const Op& operand, typename Op::Value* to, const Values<typename Op::Compute, kCount>& values) {
  using T = typename Op::Value;
  if constexpr (Op::kInner == Inner::unit) {
    T raw[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) raw[i] = convert<T>(values.v[i]);
    store<kCount, kForced>(to, raw);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i * operand.strides[Op::kRank - 1]] = convert<T>(values.v[i]);
  }
}

/// @brief F on each of `kCount` elements.
template <class F, int kCount, class... Ins, size_t... I, class... Outs, size_t... O>
__device__ __forceinline__ void apply_values(const Pack<Ins...>& ins, std::index_sequence<I...>, Pack<Outs...>& outs,
                                             std::index_sequence<O...>) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) F::apply(get<I>(ins).v[i]..., get<O>(outs).v[i]...);
}

/// @brief Division of 31-bit numbers by a number known on the host: a multiplication and a shift (Granlund and Montgomery, 1994).
struct Divider {
  uint32_t divisor;
  uint32_t multiplier;
  uint32_t shift;

  Divider() = default;
  explicit Divider(uint32_t d) : divisor(d), multiplier(0), shift(0) {
    while ((uint64_t(1) << shift) < d) ++shift;
    multiplier = static_cast<uint32_t>(((uint64_t(1) << 32) * ((uint64_t(1) << shift) - d)) / d + 1);
  }
  __device__ __forceinline__ uint32_t divide(uint32_t n) const { return (__umulhi(n, multiplier) + n) >> shift; }
};

/// @brief The sizes of an iteration space (`last` is the innermost), prepared for splitting a linear index; `kWide` when it may need more than 31 bits.
template <int kRank, bool kWide>
struct Space;
template <int kRank>
struct Space<kRank, false> {
  using Index = uint32_t;
  Divider sizes[kRank];

  explicit Space(const int64_t* from) {
    for (int d = 0; d < kRank; ++d) sizes[d] = Divider(from[d] < 1 ? 1u : static_cast<uint32_t>(from[d]));
  }
  __device__ __forceinline__ void split(uint32_t linear, int64_t (&out)[kRank]) const {
#pragma unroll
    for (int d = kRank - 1; d > 0; --d) {
      const uint32_t quotient = sizes[d].divide(linear);
      out[d] = linear - quotient * sizes[d].divisor;
      linear = quotient;
    }
    out[0] = linear;
  }
  __device__ __forceinline__ int64_t last() const { return sizes[kRank - 1].divisor; }
};
template <int kRank>
struct Space<kRank, true> {
  using Index = int64_t;
  int64_t sizes[kRank];

  explicit Space(const int64_t* from) {
    for (int d = 0; d < kRank; ++d) sizes[d] = from[d];
  }
  __device__ __forceinline__ void split(int64_t linear, int64_t (&out)[kRank]) const { coordinates<kRank>(linear, sizes, out); }
  __device__ __forceinline__ int64_t last() const { return sizes[kRank - 1]; }
};

/// @brief Where an operand is at these coordinates, the last of which counts steps of `kCount` elements.
template <int kCount, class Op>
__device__ __forceinline__ typename Op::Element* at(const Op& operand, const int64_t (&coordinate)[Op::kRank]) {
  int64_t offset = 0;
#pragma unroll
  for (int d = 0; d < Op::kRank; ++d) {
    const int64_t step = d == Op::kRank - 1 ? coordinate[d] * kCount : coordinate[d];
    offset += step * operand.strides[d];
  }
  return operand.data + offset;
}

// ---- host -------------------------------------------------------------------------------------------------------------------------------

/// @brief Whether each access of `kCount` elements along the innermost dim is aligned; operands with other strides do not care.
template <int kCount, class Op>
inline bool may_access(const Op& operand) {
  if constexpr (Op::kInner != Inner::unit) return true;
  constexpr int64_t kAlign = kAccessBytes<typename Op::Value, kCount>;
  constexpr int64_t kSize = sizeof(typename Op::Value);
  bool aligned = reinterpret_cast<uintptr_t>(operand.data) % kAlign == 0;
  for (int d = 0; d + 1 < Op::kRank; ++d) aligned = aligned && operand.strides[d] * kSize % kAlign == 0;
  return aligned;
}

/// @brief Elements of a 16-byte access of the narrowest of these operands, at most 8.
template <class... Ops>
constexpr int vector_width() {
  size_t narrowest = 8;
  ((narrowest = sizeof(typename Ops::Value) < narrowest ? sizeof(typename Ops::Value) : narrowest), ...);
  return narrowest < 2 ? 8 : static_cast<int>(16 / narrowest);
}

inline uint32_t ceil_div(int64_t a, int64_t b, int64_t limit) {
  const int64_t q = (a + b - 1) / b;
  return static_cast<uint32_t>(q < limit ? q : limit);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_VECTOR_CUH_
