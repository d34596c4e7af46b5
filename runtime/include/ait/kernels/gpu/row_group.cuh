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

/// A row in the hands of a group: `each` visits what this thread holds, `finish` visits it again and stores it.
template <class F, int kGroup, int kItemsOf, int kVecOf, bool kEarlyOf, int kRowRank, class Ins, class Outs>
struct Row;

template <class F, int kGroup, int kItemsOf, int kVecOf, bool kEarlyOf, int kRowRank, class... Ins, class... Outs>
struct Row<F, kGroup, kItemsOf, kVecOf, kEarlyOf, kRowRank, Pack<Ins...>, Pack<Outs...>> {
  static constexpr int kVec = kVecOf;
  static constexpr int kItems = kItemsOf;
  static constexpr bool kEarly = kEarlyOf;
  static constexpr bool kResident = kItems > 0;
  using Out = std::decay_t<decltype(get<0>(std::declval<Pack<Outs...>&>()))>;
  using C = typename Out::Compute;
  using Chunk = Values<C, kVec>;
  using Reducer = GroupReducer<C, kGroup>;

  Pack<Ins...> ins;
  Pack<Outs...> outs;
  int64_t length;
  int64_t sizes[kRowRank];
  int lane;
  Reducer reducer;
  Chunk held[kResident ? kItems : 1];

  /// Where the held chunk `item` is in the row.
  __device__ __forceinline__ int64_t place(int item) const { return (static_cast<int64_t>(item) * kGroup + lane) * kVec; }

  /// Computes chunk `i`, storing the further results of F if asked.
  template <bool kStore, size_t... I, size_t... O>
  __device__ __forceinline__ Chunk compute(int64_t i, std::index_sequence<I...> in_indices, std::index_sequence<0, O...> out_indices) {
    const Pack<Values<typename Ins::Compute, kVec>...> values =
        pack(load_values<kVec>(get<I>(ins), get<I>(ins).data + row_offset<kRowRank>(get<I>(ins), i, sizes))...);
    Pack<Values<typename Outs::Compute, kVec>...> results;
    apply_values<F, kVec>(values, in_indices, results, out_indices);
    if constexpr (kStore) {
      (store_values<kVec>(get<O>(outs), get<O>(outs).data + row_offset<kRowRank>(get<O>(outs), i, sizes), get<O>(results)), ...);
    }
    return get<0>(results);
  }

  /// Moves all operands to the row with these outer coordinates.
  template <int kOuter, size_t... I, size_t... O>
  __device__ __forceinline__ void take(const Pack<Ins...>& all_ins, const Pack<Outs...>& all_outs, const int64_t (&coordinate)[kOuter],
                                       std::index_sequence<I...>, std::index_sequence<O...>) {
    ((get<I>(ins) = at_row(get<I>(all_ins), coordinate)), ...);
    ((get<O>(outs) = at_row(get<O>(all_outs), coordinate)), ...);
  }

  __device__ __forceinline__ void load() {
    if constexpr (kResident) {
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        const int64_t i = place(item);
        if (i < length) held[item] = compute<true>(i, std::index_sequence_for<Ins...>{}, std::index_sequence_for<Outs...>{});
      }
    }
  }

  /// visit(chunk, i, item) with the place of the chunk in the row and among those held; the first pass of a row that is not held stores the further results.
  template <bool kFirst = false, class Visit>
  __device__ __forceinline__ void each(Visit visit) {
    if constexpr (kResident) {
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        const int64_t i = place(item);
        if (i < length) visit(held[item], i, item);
      }
    } else {
      for (int64_t i = static_cast<int64_t>(lane) * kVec; i < length; i += static_cast<int64_t>(kGroup) * kVec) {
        Chunk chunk = compute<kFirst>(i, std::index_sequence_for<Ins...>{}, std::index_sequence_for<Outs...>{});
        visit(chunk, i, 0);
      }
    }
  }

  template <class Visit>
  __device__ __forceinline__ void finish(Visit visit) {
    each([&](Chunk& chunk, int64_t i, int item) {
      visit(chunk, i, item);
      store_values<kVec>(get<0>(outs), get<0>(outs).data + row_offset<kRowRank>(get<0>(outs), i, sizes), chunk);
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
