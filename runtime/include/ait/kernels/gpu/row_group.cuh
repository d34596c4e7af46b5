/// @file row_group.cuh
/// @brief A row in the hands of a group of threads: how it is read, held, reduced over and stored.
#ifndef AIT_KERNELS_GPU_ROW_GROUP_CUH_
#define AIT_KERNELS_GPU_ROW_GROUP_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"

namespace ait::gpu {

// ---- reductions over a group of threads -------------------------------------------------------------------------------------------------

struct Plus {
  template <class C>
  __device__ __forceinline__ C operator()(C a, C b) const {
    return a + b;
  }
};
struct Larger {
  template <class C>
  __device__ __forceinline__ C operator()(C a, C b) const {
    return a > b ? a : b;
  }
};

/// @brief Reduces over `kGroup` threads; every thread gets the result. A group larger than a warp is the whole block, and all must call.
template <class C, int kGroup>
struct GroupReducer {
  static constexpr int kWarps = (kGroup + kWarpSize - 1) / kWarpSize;
  C* shared;     ///< 4 * kWarps values, used in turn, so that one barrier a reduction is enough
  int turn = 0;

  /// Reduces `kCount` values at once, at most 2.
  template <int kCount, class Combine>
  __device__ __forceinline__ void reduce(C (&values)[kCount], Combine combine) {
    static_assert(kCount <= 2, "there is room for two");
    constexpr int kLanes = kGroup < kWarpSize ? kGroup : kWarpSize;
#pragma unroll
    for (int mask = kLanes / 2; mask > 0; mask /= 2) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) values[k] = combine(values[k], shuffle_xor(values[k], mask));
    }
    if constexpr (kWarps > 1) {
      C* slots = shared + turn * 2 * kWarps;
      turn ^= 1;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (threadIdx.x % kWarpSize == 0) slots[k * kWarps + threadIdx.x / kWarpSize] = values[k];
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        values[k] = slots[k * kWarps];
#pragma unroll
        for (int w = 1; w < kWarps; ++w) values[k] = combine(values[k], slots[k * kWarps + w]);
      }
    }
  }
};

// ---- rows -------------------------------------------------------------------------------------------------------------------------------

/// @brief The iteration space of a row kernel: the sizes of the dims outside of the row, and of those that form it.
template <int kOuter, int kRowRank>
struct RowSpace {
  int64_t outer[kOuter];
  int64_t row[kRowRank];
  int64_t rows, length;
};

namespace detail {
/// Where element `i` of the row is, from its first.
template <int kRowRank, class Op>
__device__ __forceinline__ int64_t row_offset(const Op& operand, int64_t i, const int64_t (&sizes)[kRowRank]) {
  if constexpr (kRowRank == 1) {
    return Op::kInner == Inner::zero ? 0 : Op::kInner == Inner::unit ? i : i * operand.strides[Op::kRank - 1];
  } else {
    int64_t offset = 0;
#pragma unroll
    for (int d = kRowRank - 1; d > 0; --d) {
      const int64_t quotient = i / sizes[d];
      offset += (i - quotient * sizes[d]) * operand.strides[Op::kRank - kRowRank + d];
      i = quotient;
    }
    return offset + i * operand.strides[Op::kRank - kRowRank];
  }
}

/// The operand, moved to the row with these outer coordinates.
template <int kOuter, class Op>
__device__ __forceinline__ Op at_row(Op operand, const int64_t (&coordinate)[kOuter]) {
#pragma unroll
  for (int d = 0; d < kOuter; ++d) operand.data += coordinate[d] * operand.strides[d];
  return operand;
}

/// Held in shared memory, not in registers; and not held, but read again for each pass.
inline constexpr int kInShared = -1, kReadAgain = 0;

/// How rows lie: chunks of 16 bytes in all operands; cut at the boundaries of the first result, which are those of all operands; or of some.
enum class Cut { whole, same, mixed };

/// Rows are cut so that a warp's accesses fill lines of this many bytes.
inline constexpr int kLine = 128;

/// What a thread has read of one operand for a chunk.
template <class Op, int kVec, Cut kCut>
struct RowRead {
  using T = typename Op::Value;
  static constexpr bool kByWords = Op::kInner == Inner::unit && sizeof(T) * kVec % 16 == 0;
  static constexpr bool kSplat = Op::kInner == Inner::zero;
  struct Elements {
    T v[kSplat ? 1 : kVec];
  };
  using Data = std::conditional_t<kByWords, Words<T, kByWords ? kVec : 16, kCut == Cut::mixed>, Elements>;
  Data data;

  /// Begins to read a chunk, whose words all `exist` or do not.
  __device__ __forceinline__ void read(const Op& operand, const T* from, uint32_t live, bool exist) {
    if constexpr (kByWords) {
      data.read(from, kCut == Cut::whole || exist);
    } else if constexpr (kSplat) {
      data.v[0] = *from;
    } else {
#pragma unroll
      for (int j = 0; j < kVec; ++j) data.v[j] = live >> j & 1 ? from[Op::kInner == Inner::unit ? j : j * operand.strides[Op::kRank - 1]] : T{};
    }
  }
  __device__ __forceinline__ Elements elements(const T* from, uint32_t live, bool exist) const {
    if constexpr (kByWords) {
      Elements result;
      data.elements(from, kCut == Cut::whole || exist, live, result.v);
      return result;
    } else {
      return data;
    }
  }
};

/// A row in the hands of a group: `each` visits its chunks of kVec elements, `finish` visits them again and stores them.
///
/// The first and the last chunk may be partly outside of the row, and chunks before the first wholly: `live` has a bit for each element that is
/// inside.
template <class F, int kGroup, int kItemsOf, int kVecOf, Cut kCut, bool kEarlyOf, int kRowRank, class Ins, class Outs>
struct Row;

template <class F, int kGroup, int kItemsOf, int kVecOf, Cut kCut, bool kEarlyOf, int kRowRank, class... Ins, class... Outs>
struct Row<F, kGroup, kItemsOf, kVecOf, kCut, kEarlyOf, kRowRank, Pack<Ins...>, Pack<Outs...>> {
  static constexpr int kVec = kVecOf;
  static constexpr int kItems = kItemsOf;
  static constexpr bool kEarly = kEarlyOf;
  static constexpr bool kWhole = kCut == Cut::whole;
  static constexpr uint32_t kAll = (1u << kVec) - 1;
  static constexpr int kDepth = kGroup >= 1024 ? 2 : 4;
  /// Chunks that are read before the first of them is used.
  static constexpr int kAhead = kDepth / sizeof...(Ins) < 1 ? 1 : kDepth / sizeof...(Ins);
  /// Counts elements of a row and chunks; rows that are held are short.
  using Index = std::conditional_t<kItemsOf == kReadAgain || (kRowRank > 1), int64_t, int>;
  using In = std::decay_t<decltype(get<0>(std::declval<Pack<Ins...>&>()))>;
  using Out = std::decay_t<decltype(get<0>(std::declval<Pack<Outs...>&>()))>;
  using C = typename Out::Compute;
  using Chunk = Values<C, kVec>;
  using Reducer = GroupReducer<C, kGroup>;
  using Reads = Pack<RowRead<Ins, kVec, kCut>...>;
  using Elements = Pack<typename RowRead<Ins, kVec, kCut>::Elements...>;
  /// One narrow operand takes less room in shared memory than what F makes of it, and F is cheap.
  static constexpr bool kHoldsInput = kItems == kInShared && sizeof(Elements) < sizeof(Chunk) && sizeof(Elements) % 16 == 0;
  using Held = std::conditional_t<kHoldsInput, Elements, Chunk>;
  static constexpr int kPlanes = sizeof(Held) >= 16 ? sizeof(Held) / 16 : 1;
  /// Whether changes of a chunk last until the next pass.
  static constexpr bool kKeeps = kItems > 0 || (kItems == kInShared && !kHoldsInput);
  /// Elements around a chunk that must exist for all that it reads to exist.
  static constexpr int kMargin = kCut == Cut::mixed ? 8 : 0;

  Pack<Ins...> ins;
  Pack<Outs...> outs;
  Index length;
  int64_t sizes[kRowRank];
  int lane;
  int phase = 0;  ///< elements from the first chunk to the row
  int pitch = 0;  ///< chunks in shared memory
  uint4* shared = nullptr;
  Reducer reducer;
  Chunk held[kItems > 0 ? kItems : 1];

  /// Where chunk `number` is in the row.
  __device__ __forceinline__ Index start(Index number) const { return number * kVec - (kWhole ? 0 : phase); }
  /// Where the held chunk `item` is in the row.
  __device__ __forceinline__ Index place(int item) const { return start(static_cast<Index>(item) * kGroup + lane); }
  /// Whether the chunk at `i` has an element of the row.
  __device__ __forceinline__ bool has(Index i) const { return i < length && (kWhole || i > -kVec); }
  /// Whether the row has the chunk at `i` and `margin` elements around it.
  __device__ __forceinline__ bool has_all(Index i, int margin = 0) const { return kWhole || (i >= margin && i + kVec + margin <= length); }

  /// A bit for each element of the chunk at `i`, which has one, that the row has.
  __device__ __forceinline__ uint32_t live(Index i) const {
    if constexpr (kWhole) return kAll;
    const Index left = length - i;
    const uint32_t below = left >= kVec ? kAll : (1u << left) - 1u;
    return i >= 0 ? below : below & ~((1u << -i) - 1u);
  }

  template <class Op>
  __device__ __forceinline__ typename Op::Element* at(const Op& operand, Index i) const {
    return operand.data + row_offset<kRowRank>(operand, i, sizes);
  }

  template <class Op>
  __device__ __forceinline__ void write(const Op& operand, Index i, const Values<typename Op::Compute, kVec>& values) const {
    auto* to = at(operand, i);
    if constexpr (kWhole) {
      store_values<kVec>(operand, to, values);
    } else {
      using T = typename Op::Value;
      T raw[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) raw[j] = convert<T>(values.v[j]);
      const bool aligned = Op::kInner == Inner::unit &&
                           (kCut == Cut::same || reinterpret_cast<uintptr_t>(to) % kAccessBytes<T, kVec> == 0);
      if (aligned && has_all(i)) {
        store<kVec>(to, raw);
      } else {
        const uint32_t inside = live(i);
#pragma unroll
        for (int j = 0; j < kVec; ++j) {
          if (inside >> j & 1) to[Op::kInner == Inner::unit ? j : j * operand.strides[Op::kRank - 1]] = raw[j];
        }
      }
    }
  }

  /// A row of factors, of which chunks are read as those of operands are.
  template <class S>
  using Factors = RowRead<Operand<const S, 1, Inner::unit>, kVec, kWhole ? Cut::whole : Cut::mixed>;
  template <class S>
  __device__ __forceinline__ void read_factors(const S* row, Index i, Factors<S>& factors) const {
    if (row != nullptr) factors.read(Operand<const S, 1, Inner::unit>{}, row + i, kWhole ? kAll : live(i), has_all(i, 8));
  }
  template <class S>
  __device__ __forceinline__ typename Factors<S>::Elements take_factors(const S* row, Index i, const Factors<S>& factors) const {
    return factors.elements(row + i, row == nullptr ? 0 : live(i), has_all(i, 8));
  }

  template <size_t... I>
  __device__ __forceinline__ void fetch(Reads& reads, Index i, std::index_sequence<I...>) const {
    (get<I>(reads).read(get<I>(ins), at(get<I>(ins), i), live(i), has_all(i, kMargin)), ...);
  }
  template <size_t... I>
  __device__ __forceinline__ Elements take(const Reads& reads, Index i, std::index_sequence<I...>) const {
    return pack(get<I>(reads).elements(at(get<I>(ins), i), live(i), has_all(i, kMargin))...);
  }
  using InIndices = std::index_sequence_for<Ins...>;

  template <class Op>
  static __device__ __forceinline__ Values<typename Op::Compute, kVec> values_of(const typename RowRead<Op, kVec, kCut>::Elements& elements) {
    Values<typename Op::Compute, kVec> result;
#pragma unroll
    for (int j = 0; j < kVec; ++j) result.v[j] = convert<typename Op::Compute>(elements.v[Op::kInner == Inner::zero ? 0 : j]);
    return result;
  }

  /// Computes the chunk at `i` from its elements, storing the further results of F if asked.
  template <bool kStore, size_t... I, size_t... O>
  __device__ __forceinline__ Chunk compute(const Elements& elements, Index i, std::index_sequence<I...> in_indices,
                                           std::index_sequence<0, O...> out_indices) const {
    const Pack<Values<typename Ins::Compute, kVec>...> values = pack(values_of<Ins>(get<I>(elements))...);
    Pack<Values<typename Outs::Compute, kVec>...> results;
    apply_values<F, kVec>(values, in_indices, results, out_indices);
    if constexpr (kStore) (write(get<O>(outs), i, get<O>(results)), ...);
    return get<0>(results);
  }
  template <bool kStore>
  __device__ __forceinline__ Chunk compute(const Elements& elements, Index i) const {
    return compute<kStore>(elements, i, InIndices{}, std::index_sequence_for<Outs...>{});
  }

  /// Moves all operands to the row with these outer coordinates.
  template <int kOuter, size_t... I, size_t... O>
  __device__ __forceinline__ void move(const Pack<Ins...>& all_ins, const Pack<Outs...>& all_outs, const int64_t (&coordinate)[kOuter],
                                       std::index_sequence<I...>, std::index_sequence<O...>) {
    ((get<I>(ins) = at_row(get<I>(all_ins), coordinate)), ...);
    ((get<O>(outs) = at_row(get<O>(all_outs), coordinate)), ...);
    if constexpr (!kWhole) phase = static_cast<int>(reinterpret_cast<uintptr_t>(get<0>(outs).data) % kLine / sizeof(typename Out::Value));
  }

  __device__ __forceinline__ void get_shared(Index number, Held& to) const {
#pragma unroll
    for (int p = 0; p < kPlanes; ++p) {
      const uint4 word = shared[p * pitch + number];
      memcpy(reinterpret_cast<char*>(&to) + 16 * p, &word, 16);
    }
  }
  __device__ __forceinline__ void put_shared(Index number, const Held& from) const {
#pragma unroll
    for (int p = 0; p < kPlanes; ++p) {
      uint4 word;
      memcpy(&word, reinterpret_cast<const char*>(&from) + 16 * p, 16);
      shared[p * pitch + number] = word;
    }
  }

  /// Visits a chunk; the one that the row has in full with all bits known to be set.
  template <class Visit>
  __device__ __forceinline__ void visit_live(Visit visit, Chunk& chunk, Index i, int item) const {
    if (kWhole || has_all(i)) {
      visit(chunk, i, item, kAll);
    } else {
      visit(chunk, i, item, live(i));
    }
  }

  /// Reads the whole row from memory, several chunks ahead of what is done with them: visit(chunk, i, elements, number).
  template <bool kStore, class Visit>
  __device__ __forceinline__ void stream(Visit visit) const {
    for (Index first = lane; start(first) < length; first += kGroup * kAhead) {
      Reads reads[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const Index i = start(first + u * kGroup);
        if (has(i)) fetch(reads[u], i, InIndices{});
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const Index i = start(first + u * kGroup);
        if (!has(i)) continue;
        const Elements elements = take(reads[u], i, InIndices{});
        Chunk chunk = compute<kStore>(elements, i);
        visit(chunk, i, elements, first + u * kGroup);
      }
    }
  }

  /// Reads what registers hold, and stores the further results of F.
  __device__ __forceinline__ void load() {
    if constexpr (kItems > 0) {
      Reads reads[kItems];
#pragma unroll
      for (int batch = 0; batch < kItems; batch += kAhead) {
#pragma unroll
        for (int item = batch; item < kItems && item < batch + kAhead; ++item) {
          if (has(place(item))) fetch(reads[item], place(item), InIndices{});
        }
#pragma unroll
        for (int item = batch; item < kItems && item < batch + kAhead; ++item) {
          if (has(place(item))) held[item] = compute<true>(take(reads[item], place(item), InIndices{}), place(item));
        }
      }
    }
  }

  /// visit(chunk, i, item, live) with the place of the chunk in the row and among those held. What a visit that `kChanges` leaves is kept if
  /// `kKeeps`. The first pass of a row that registers do not hold reads it and stores the further results.
  template <bool kFirst = false, bool kChanges = false, class Visit>
  __device__ __forceinline__ void each(Visit visit) {
    if constexpr (kItems > 0) {
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        if (has(place(item))) visit_live(visit, held[item], place(item), item);
      }
    } else if constexpr (kItems == kInShared && kFirst) {
      stream<true>([&](Chunk& chunk, Index i, const Elements& elements, Index number) {
        if constexpr (kHoldsInput) {
          put_shared(number, elements);
        } else {
          put_shared(number, chunk);
        }
        visit_live(visit, chunk, i, 0);
      });
    } else if constexpr (kItems == kInShared) {
#pragma unroll 2
      for (Index number = lane; start(number) < length; number += kGroup) {
        const Index i = start(number);
        if (!has(i)) continue;
        Chunk chunk;
        if constexpr (kHoldsInput) {
          Elements elements;
          get_shared(number, elements);
          chunk = compute<false>(elements, i);
        } else {
          get_shared(number, chunk);
        }
        visit_live(visit, chunk, i, 0);
        if constexpr (kChanges && kKeeps) put_shared(number, chunk);
      }
    } else {
      stream<kFirst>([&](Chunk& chunk, Index i, const Elements&, Index) { visit_live(visit, chunk, i, 0); });
    }
  }

  /// visit(chunk, i, item) leaves what is stored as the first result.
  template <class Visit>
  __device__ __forceinline__ void finish(Visit visit) {
    const auto store = [&](Chunk& chunk, Index i, int item) {
      visit(chunk, i, item);
      write(get<0>(outs), i, chunk);
    };
    if constexpr (kItems > 0) {
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        if (has(place(item))) store(held[item], place(item), item);
      }
    } else if constexpr (kItems == kInShared) {
      each([&](Chunk& chunk, Index i, int item, uint32_t) { store(chunk, i, item); });
    } else {
      stream<false>([&](Chunk& chunk, Index i, const Elements&, Index) { store(chunk, i, 0); });
    }
  }

  __device__ __forceinline__ C sum(C value) {
    C values[1] = {value};
    reducer.reduce(values, Plus{});
    return values[0];
  }
  __device__ __forceinline__ void sums(C (&values)[2]) { reducer.reduce(values, Plus{}); }
  __device__ __forceinline__ C largest(C value) {
    C values[1] = {value};
    reducer.reduce(values, Larger{});
    return values[0];
  }
};
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_ROW_GROUP_CUH_
