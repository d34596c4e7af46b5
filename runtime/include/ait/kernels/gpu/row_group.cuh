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

/// A row in the hands of a group: `each` visits what this thread holds, `finish` visits it again and stores it.
///
/// The row is cut into chunks of kVec elements. If it is shifted, chunks begin where the first result is aligned, so that the first and the
/// last one may be partly outside of the row: `live` has a bit for each element that is inside.
template <class F, int kGroup, int kItemsOf, int kVecOf, bool kShifted, bool kEarlyOf, int kRowRank, class Ins, class Outs>
struct Row;

template <class F, int kGroup, int kItemsOf, int kVecOf, bool kShifted, bool kEarlyOf, int kRowRank, class... Ins, class... Outs>
struct Row<F, kGroup, kItemsOf, kVecOf, kShifted, kEarlyOf, kRowRank, Pack<Ins...>, Pack<Outs...>> {
  static constexpr int kVec = kVecOf;
  static constexpr int kItems = kItemsOf;
  static constexpr bool kEarly = kEarlyOf;
  static constexpr bool kResident = kItems != kReadAgain;
  static constexpr int kAhead = kGroup >= 1024 ? 2 : 4;  ///< chunks that are read before the first of them is used
  using Out = std::decay_t<decltype(get<0>(std::declval<Pack<Outs...>&>()))>;
  using C = typename Out::Compute;
  using Chunk = Values<C, kVec>;
  using Reducer = GroupReducer<C, kGroup>;
  using Raws = Pack<Raw<Ins, kVec>...>;
  static constexpr int kPlanes = sizeof(Chunk) >= 16 ? sizeof(Chunk) / 16 : 1;

  Pack<Ins...> ins;
  Pack<Outs...> outs;
  int64_t length;
  int64_t sizes[kRowRank];
  int lane;
  int phase = 0;  ///< elements of the first chunk that are before the row
  int pitch = 0;  ///< chunks in shared memory
  uint4* shared = nullptr;
  Reducer reducer;
  Chunk held[kItems > 0 ? kItems : 1];

  /// Where chunk `number` is in the row.
  __device__ __forceinline__ int64_t start(int64_t number) const { return number * kVec - (kShifted ? phase : 0); }
  /// Where the held chunk `item` is in the row.
  __device__ __forceinline__ int64_t place(int item) const { return start(static_cast<int64_t>(item) * kGroup + lane); }

  /// A bit for each element of the chunk at `i` that the row has.
  __device__ __forceinline__ uint32_t live(int64_t i) const {
    if constexpr (!kShifted) return ~0u;
    const int64_t left = length - i;
    const uint32_t below = left >= kVec ? ~0u : (1u << left) - 1u;
    return i >= 0 ? below : below & ~((1u << -i) - 1u);
  }

  template <class Op>
  __device__ __forceinline__ Raw<Op, kVec> read(const Op& operand, int64_t i) const {
    Raw<Op, kVec> raw;
    const auto* from = operand.data + row_offset<kRowRank>(operand, i, sizes);
    if constexpr (Op::kInner == Inner::zero) {
      raw.v[0] = *from;
    } else if constexpr (Op::kInner == Inner::unit) {
      if constexpr (kShifted) {
        load_within<kVec>(from, i, length - i, raw.v);
      } else {
        gpu::load<kVec>(from, raw.v);
      }
    } else {
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        const bool inside = !kShifted || (i + j >= 0 && i + j < length);
        raw.v[j] = inside ? from[j * operand.strides[Op::kRank - 1]] : typename Op::Value{};
      }
    }
    return raw;
  }

  template <class Op>
  __device__ __forceinline__ void write(const Op& operand, int64_t i, const Values<typename Op::Compute, kVec>& values) const {
    auto* to = operand.data + row_offset<kRowRank>(operand, i, sizes);
    if constexpr (!kShifted) {
      store_values<kVec>(operand, to, values);
    } else if constexpr (Op::kInner == Inner::unit) {
      typename Op::Value raw[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) raw[j] = convert<typename Op::Value>(values.v[j]);
      store_within<kVec>(to, i, length - i, raw);
    } else {
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        if (i + j >= 0 && i + j < length) to[j * operand.strides[Op::kRank - 1]] = convert<typename Op::Value>(values.v[j]);
      }
    }
  }

  /// Elements of a contiguous row of factors that belong to the chunk at `i`.
  template <class S>
  __device__ __forceinline__ void factors(const S* row, int64_t i, S (&to)[kVec]) const {
    if constexpr (kShifted) {
      load_within<kVec>(row + i, i, length - i, to);
    } else {
      gpu::load<kVec>(row + i, to);
    }
  }

  template <size_t... I>
  __device__ __forceinline__ Raws fetch(int64_t i, std::index_sequence<I...>) const {
    return pack(read(get<I>(ins), i)...);
  }
  __device__ __forceinline__ Raws fetch(int64_t i) const { return fetch(i, std::index_sequence_for<Ins...>{}); }

  /// Computes the chunk at `i` from what was read, storing the further results of F if asked.
  template <bool kStore, size_t... I, size_t... O>
  __device__ __forceinline__ Chunk compute(const Raws& raws, int64_t i, std::index_sequence<I...> in_indices, std::index_sequence<0, O...> out_indices) const {
    const Pack<Values<typename Ins::Compute, kVec>...> values = pack(get<I>(raws).values()...);
    Pack<Values<typename Outs::Compute, kVec>...> results;
    apply_values<F, kVec>(values, in_indices, results, out_indices);
    if constexpr (kStore) (write(get<O>(outs), i, get<O>(results)), ...);
    return get<0>(results);
  }
  template <bool kStore>
  __device__ __forceinline__ Chunk compute(const Raws& raws, int64_t i) const {
    return compute<kStore>(raws, i, std::index_sequence_for<Ins...>{}, std::index_sequence_for<Outs...>{});
  }

  /// Moves all operands to the row with these outer coordinates.
  template <int kOuter, size_t... I, size_t... O>
  __device__ __forceinline__ void take(const Pack<Ins...>& all_ins, const Pack<Outs...>& all_outs, const int64_t (&coordinate)[kOuter],
                                       std::index_sequence<I...>, std::index_sequence<O...>) {
    ((get<I>(ins) = at_row(get<I>(all_ins), coordinate)), ...);
    ((get<O>(outs) = at_row(get<O>(all_outs), coordinate)), ...);
    if constexpr (kShifted) phase = static_cast<int>(reinterpret_cast<uintptr_t>(get<0>(outs).data) % 16 / sizeof(typename Out::Value));
  }

  __device__ __forceinline__ void get_shared(int64_t number, Chunk& chunk) const {
#pragma unroll
    for (int p = 0; p < kPlanes; ++p) {
      const uint4 word = shared[p * pitch + number];
      memcpy(reinterpret_cast<char*>(&chunk) + 16 * p, &word, 16);
    }
  }
  __device__ __forceinline__ void put_shared(int64_t number, const Chunk& chunk) const {
#pragma unroll
    for (int p = 0; p < kPlanes; ++p) {
      uint4 word;
      memcpy(&word, reinterpret_cast<const char*>(&chunk) + 16 * p, 16);
      shared[p * pitch + number] = word;
    }
  }

  /// Reads the whole row, several chunks ahead of what is done with them: visit(chunk, i, number).
  template <bool kStore, class Visit>
  __device__ __forceinline__ void stream(Visit visit) const {
    for (int64_t first = lane; start(first) < length; first += static_cast<int64_t>(kGroup) * kAhead) {
      Raws raws[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int64_t i = start(first + u * kGroup);
        if (i < length) raws[u] = fetch(i);
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int64_t i = start(first + u * kGroup);
        if (i >= length) continue;
        Chunk chunk = compute<kStore>(raws[u], i);
        visit(chunk, i, first + u * kGroup);
      }
    }
  }

  __device__ __forceinline__ void load() {
    if constexpr (kItems > 0) {
      Raws raws[kItems];
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        if (place(item) < length) raws[item] = fetch(place(item));
      }
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        if (place(item) < length) held[item] = compute<true>(raws[item], place(item));
      }
    } else if constexpr (kItems == kInShared) {
      stream<true>([&](const Chunk& chunk, int64_t, int64_t number) { put_shared(number, chunk); });
    }
  }

  /// visit(chunk, i, item, live) with the place of the chunk in the row and among those held; what a visit that `kChanges` leaves is kept where
  /// rows are held. The first pass of a row that is not held stores the further results.
  template <bool kFirst = false, bool kChanges = false, class Visit>
  __device__ __forceinline__ void each(Visit visit) {
    if constexpr (kItems > 0) {
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        const int64_t i = place(item);
        if (i < length) visit(held[item], i, item, live(i));
      }
    } else if constexpr (kItems == kInShared) {
#pragma unroll 2
      for (int64_t number = lane; start(number) < length; number += kGroup) {
        Chunk chunk;
        get_shared(number, chunk);
        visit(chunk, start(number), 0, live(start(number)));
        if constexpr (kChanges) put_shared(number, chunk);
      }
    } else {
      stream<kFirst>([&](Chunk& chunk, int64_t i, int64_t) { visit(chunk, i, 0, live(i)); });
    }
  }

  template <class Visit>
  __device__ __forceinline__ void finish(Visit visit) {
    each([&](Chunk& chunk, int64_t i, int item, uint32_t) {
      visit(chunk, i, item);
      write(get<0>(outs), i, chunk);
    });
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
