/// @file ring_row.cuh
/// @brief A thread's part of a row that passes through a ring: its copies, reads and stores.
#ifndef AIT_KERNELS_GPU_RING_ROW_CUH_
#define AIT_KERNELS_GPU_RING_ROW_CUH_

#include <stdint.h>

#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/ring_plan.cuh"
#include "ait/kernels/gpu/row_group.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

namespace detail {
/// A thread of the group that a row belongs to, with its part of the ring.
template <class F, class Plan, int kVec, Cut kCut, class Policy, class Ins, class Outs>
struct RingRow;

template <class F, class Plan, int kVec, Cut kCut, class Policy, class... Ins, class... Outs>
struct RingRow<F, Plan, kVec, kCut, Policy, Pack<Ins...>, Pack<Outs...>> {
  static constexpr RingPlan kPlan = Plan::value;
  static constexpr int kThreads = kPlan.threads(), kTurns = kPlan.turns, kPlaces = kPlan.places;
  static constexpr int kLanes = kPlan.group * kPlan.cluster;
  static constexpr bool kWarps = kPlan.group == kWarpSize;
  /// Turns whose copies are waited for at once.
  static constexpr int kPart = 4, kParts = (kTurns + kPart - 1) / kPart;
  static constexpr int kFactors = Policy::kFactors;
  using S = typename Policy::Factor;
  using Part = typename Policy::Part;
  using Result = typename Policy::Result;
  using R = Row<F, kLanes, kInShared, kVec, kCut, Few::unknown, 1, Pack<Ins...>, Pack<Outs...>>;
  using Index = typename R::Index;
  using InIndices = typename R::InIndices;
  using Edge = typename R::EdgeReads;
  static constexpr int kEdges = R::kEdges;
  static_assert(kEdges <= 1, "a group has a lane for each element around the chunks");
  /// Turns from `kSureFrom` on and before `kSureTo` have a chunk for every thread, wherever the rows begin.
  static constexpr int kSureFrom = kCut == Cut::whole ? 0 : 1;
  static constexpr int kSureTo = static_cast<int>((kCut == Cut::whole ? Plan::kLength : Plan::kLength - (2 * kVec - 1) - kVec) / kVec / kLanes);
  /// From a place of the ring to the next.
  static constexpr int kPlace = kThreads, kRing = kPlaces * kThreads;

  R row;                ///< where it is cut; its first result is that of the row being finished, its other operands of the row being read
  Pack<Ins...> ahead;   ///< the next chunk to be copied
  int64_t rows_ahead;   ///< to be copied, with that one
  int64_t step;         ///< rows from one to the next
  Index next_number, next_end;
  uint4* ring;
  uint4* factors;
  Edge edge_reads;
  Values<float, 1> edge[2];
  float edge_factors[2] = {1, 0};  ///< of the edge
  int first_place = 0, last_place = 0;  ///< of the row being read, and of the row being finished

  template <class Op>
  static __device__ __forceinline__ void advance(Op& operand, int64_t rows_on) {
    operand.data += rows_on * operand.strides[0];
  }
  template <size_t... I>
  static __device__ __forceinline__ void advance_all(Pack<Ins...>& ins, int64_t rows_on, std::index_sequence<I...>) {
    (advance(get<I>(ins), rows_on), ...);
  }
  template <size_t... I>
  static __device__ __forceinline__ void move_all(Pack<Ins...>& ins, Index elements, std::index_sequence<I...>) {
    ((get<I>(ins).data += elements), ...);
  }
  template <size_t... O>
  __device__ __forceinline__ void advance_kept(int64_t rows_on, std::index_sequence<0, O...>) {
    (advance(get<O>(row.outs), rows_on), ...);
  }

  __device__ __forceinline__ Index number(int turn) const { return turn * kLanes + row.lane; }
  __device__ __forceinline__ bool has(int turn) const { return (turn >= kSureFrom && turn < kSureTo) || row.has(number(turn)); }
  __device__ __forceinline__ static int next(int place) { return place + kPlace == kRing ? 0 : place + kPlace; }

  template <size_t... I>
  __device__ __forceinline__ void copy(int place, std::index_sequence<I...>) const {
    (copy_async_16(shared_address(ring + static_cast<int>(I) * kRing + place), get<I>(ahead).data, 16), ...);
  }
  /// Copies the next chunk of the rows to come to `place`.
  __device__ __forceinline__ void copy_next(int place) {
    if (next_number < next_end && next_number >= row.begin) copy(place, InIndices{});
    copy_async_commit();
    next_number += kLanes;
    if (next_number < kTurns * kLanes) {
      move_all(ahead, kLanes * kVec, InIndices{});
    } else {
      next_number = row.lane;
      move_all(ahead, -(kTurns - 1) * kLanes * kVec, InIndices{});
      advance_all(ahead, step, InIndices{});
      if (--rows_ahead <= 0) next_end = 0;
    }
  }
  template <size_t... I>
  __device__ __forceinline__ typename R::Elements take(int place, std::index_sequence<I...>) const {
    typename R::Elements elements;
    const auto each = [&](auto& to, int operand) {
      const uint4 word = ring[operand * kRing + place];
      copy_bytes(&to, &word, 16);
    };
    (each(get<I>(elements), static_cast<int>(I)), ...);
    return elements;
  }

  /// Begins with row `first`, and `count` rows, `apart` from one to the next.
  __device__ __forceinline__ void begin(const Pack<Ins...>& ins, const Pack<Outs...>& outs, int64_t first, int64_t count, int64_t apart, int length) {
    const int64_t coordinate[1] = {first};
    row.move(ins, outs, coordinate, InIndices{}, std::index_sequence_for<Outs...>{});
    row.template cut<kRingBoundary>(length);
    ahead = row.ins;
    move_all(ahead, row.start(row.lane), InIndices{});
    rows_ahead = count, step = apart;
    next_number = row.lane, next_end = count > 0 ? row.end : 0;
    for (int place = 0; place < kRing; place += kPlace) copy_next(place);
    row.fetch_edges(edge_reads);
  }

  /// How many elements of each row this thread has.
  __device__ __forceinline__ float count() const {
    int chunks = 0;
    for (int turn = 0; turn < kTurns; ++turn) chunks += has(turn) ? 1 : 0;
    return static_cast<float>(chunks * kVec + (kEdges > 0 && row.edge(0) >= 0 ? 1 : 0));
  }

  /// Reads the next row, stores the further results of F, and returns what this thread's elements are together. `more`: there is one after it.
  template <int kSlot>
  __device__ __forceinline__ Part read(const Policy& policy, bool more) {
    Part own;
    if constexpr (kEdges > 0) {
      if (row.edge(0) >= 0) edge[kSlot] = row.template compute<true, 1, true, false>(row.template take<1>(edge_reads.reads[0], InIndices{}), row.edge(0));
    }
    int place = first_place;
    const auto some = [&](auto index) {
      constexpr int kFirst = decltype(index)::value * kPart, kEnd = kFirst + kPart < kTurns ? kFirst + kPart : kTurns;
      copy_async_wait<kPlaces - (kWarps ? 0 : kTurns) - kEnd>();
#pragma unroll
      for (int turn = kFirst; turn < kEnd; ++turn, place = next(place)) {
        if (!has(turn)) continue;
        policy.add(own, row.template compute<true, kVec, true, false>(take(place, InIndices{}), row.start(number(turn))).v, turn);
      }
    };
    each_part(some, std::make_index_sequence<kParts>{});
    first_place = place;
    policy.template settle<kVec>(own);
    if constexpr (kEdges > 0) {
      if (row.edge(0) >= 0) policy.add_one(own, edge[kSlot].v[0]);
    }
    if (more) {
      advance_all(row.ins, step, InIndices{});
      row.fetch_edges(edge_reads);
    }
    advance_kept(step, std::index_sequence_for<Outs...>{});
    return own;
  }
  template <class Some, size_t... P>
  __device__ __forceinline__ static void each_part(Some some, std::index_sequence<P...>) {
    (some(std::integral_constant<int, static_cast<int>(P)>{}), ...);
  }

  /// Keeps the factors of this thread's chunks, or of the block's where its rows share them, shifted as the rows lie.
  __device__ __forceinline__ void keep_factors(const Policy& policy) {
    if constexpr (kFactors > 0) {
      keep_rows(policy.factor(0), policy.factor(1));
      if (kPlan.groups > 1) __syncthreads();
    }
  }
  __device__ __forceinline__ void keep_rows(const S* scale, const S* bias) {
    const auto keep = [&](const S* from, float otherwise, int which, int turn) {
      typename R::template Factors<S, kVec>::Elements elements;
      if (from != nullptr) {
        typename R::template Factors<S, kVec> read;
        row.read_factors(from, row.start(number(turn)), read);
        elements = row.take_factors(from, read);
      } else {
        for (S& element : elements.v) element = convert<S>(otherwise);
      }
      uint4 word;
      copy_bytes(&word, &elements, 16);
      factors[(which * kTurns + turn) * kPlan.group] = word;
    };
    for (int turn = threadIdx.x / kPlan.group; turn < kTurns; turn += kPlan.groups) {
      if (!has(turn)) continue;
      keep(scale, 1.f, 0, turn);
      if constexpr (kFactors > 1) keep(bias, 0.f, 1, turn);
    }
    if constexpr (kEdges > 0) {
      if (row.edge(0) >= 0) {
        if (scale != nullptr) edge_factors[0] = convert<float>(scale[row.edge(0)]);
        if (bias != nullptr) edge_factors[1] = convert<float>(bias[row.edge(0)]);
      }
    }
  }

  /// Stores the first result of the row before those being read, and copies rows to come into its places.
  template <int kSlot>
  __device__ __forceinline__ void finish(const Policy& policy, const Result& result) {
    int place = last_place;
    const auto one = [&](int turn) {
      if (has(turn)) {
        auto chunk = row.template compute<false, kVec>(take(place, InIndices{}), row.start(number(turn)));
        float scales[kVec], biases[kVec];
        if constexpr (kFactors > 0) factors_of(0, turn, scales);
        if constexpr (kFactors > 1) factors_of(1, turn, biases);
#pragma unroll
        for (int j = 0; j < kVec; ++j) chunk.v[j] = policy.apply(chunk.v[j], result, kFactors > 0 ? scales[j] : 1.f, kFactors > 1 ? biases[j] : 0.f);
        row.template write<false>(get<0>(row.outs), row.start(number(turn)), chunk);
      }
      copy_next(place);
      place = next(place);
    };
    if constexpr (kTurns <= kPart) {
#pragma unroll
      for (int turn = 0; turn < kTurns; ++turn) one(turn);
    } else {
      if (kSureFrom > 0) one(0);
#pragma unroll 2
      for (int turn = kSureFrom; turn < kSureTo; ++turn) one(turn);
#pragma unroll
      for (int turn = kSureTo; turn < kTurns; ++turn) one(turn);
    }
    last_place = place;
    if constexpr (kEdges > 0) {
      if (row.edge(0) >= 0) {
        const Values<float, 1> y{policy.apply(edge[kSlot].v[0], result, edge_factors[0], edge_factors[1])};
        row.template write<false>(get<0>(row.outs), row.edge(0), y);
      }
    }
    advance(get<0>(row.outs), step);
  }
  __device__ __forceinline__ void factors_of(int which, int turn, float (&to)[kVec]) const {
    S elements[kVec];
    const uint4 word = factors[(which * kTurns + turn) * kPlan.group];
    copy_bytes(&elements, &word, 16);
    convert_all(elements, to);
  }
};
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_RING_ROW_CUH_
