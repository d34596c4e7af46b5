/// @file bulk_row.cuh
/// @brief A row that bulk copies bring: who copies it, and a thread that has some of its chunks in registers.
#ifndef AIT_KERNELS_GPU_BULK_ROW_CUH_
#define AIT_KERNELS_GPU_BULK_ROW_CUH_

#include <stdint.h>

#include "ait/kernels/gpu/bulk_copy.cuh"
#include "ait/kernels/gpu/bulk_plan.cuh"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/row_group.cuh"
#include "ait/kernels/gpu/tma.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

namespace detail {
/// A thread of the blocks that a row belongs to. Chunk n of a row is the n-th word of 16 bytes from the one in which it begins, of each operand;
/// the first and the last may have elements of other rows.
template <class F, class Plan, int kVec, Cut kCut, class Policy, class Ins, class Outs>
struct BulkRow;

template <class F, class Plan, int kVec, Cut kCut, class Policy, class... Ins, class... Outs>
struct BulkRow<F, Plan, kVec, kCut, Policy, Pack<Ins...>, Pack<Outs...>> {
  static constexpr BulkPlan kPlan = Plan::value;
  static constexpr int kThreads = kPlan.threads, kTurns = kPlan.turns, kIns = sizeof...(Ins), kFactors = Policy::kFactors;
  static constexpr int kLength = static_cast<int>(Plan::kLength);
  static constexpr bool kWhole = kCut == Cut::whole;
  static constexpr int kWarps = kPlan.warps(), kFactorChunks = kPlan.factor_chunks();
  static constexpr int kFactorsAt = bulk_factors_at(kPlan, kIns), kExchangeAt = bulk_exchange_at(kPlan, kIns, kFactors);
  using S = typename Policy::Factor;
  using Part = typename Policy::Part;
  using Result = typename Policy::Result;
  using R = Row<F, kThreads * kPlan.cluster, kInShared, kVec, kCut, Few::unknown, 1, Pack<Ins...>, Pack<Outs...>>;
  using InIndices = std::index_sequence_for<Ins...>;
  using OutIndices = std::index_sequence_for<Outs...>;
  using Place = RingPlace<kPlan.places>;

  R row;                     ///< its results are those of the row at hand
  Pack<Outs...> outs;        ///< as given
  int chunks;                ///< of the row at hand
  int rank, thread;
  uint4* ring;
  uint4* factors;
  uint32_t full, empty;      ///< the barriers of the places
  Place place;
  uint4 words[kTurns][kIns]; ///< the chunks of this thread

  /// Elements from the beginning of a word to that of the row.
  template <class T>
  static __device__ __forceinline__ int phase_of(const T* row_begin) {
    return kWhole ? 0 : static_cast<int>(reinterpret_cast<uintptr_t>(row_begin) / sizeof(T) % kVec);
  }
  static __device__ __forceinline__ int chunks_behind(int phase) { return (phase + kLength + kVec - 1) / kVec; }

  // ---- the thread that copies -----------------------------------------------------------------------------------------------------------

  /// Writes the chunk at the beginning or the end of an operand, of which no more than the elements from `from` on and before `to` exist.
  template <class T>
  static __device__ __forceinline__ void write_part(uint4* place, const T* chunk, int from, int to) {
    T elements[kVec];
    for (int j = 0; j < kVec; ++j) elements[j] = j >= from && j < to ? chunk[j] : T{};
    uint4 word;
    copy_bytes(&word, &elements, 16);
    *place = word;
  }
  /// The chunks from `begin` on and before `end` of one operand.
  template <class Op>
  __device__ __forceinline__ void copy(const Op& operand, int which, int64_t index, int begin, int end, bool first, bool last, int at_place,
                                       uint32_t barrier) const {
    const auto* row_begin = operand.data + index * operand.strides[0];
    const int phase = phase_of(row_begin);
    const auto* from = row_begin - phase + begin * kVec;
    uint4* to = ring + (at_place * kIns + which) * kThreads;
    const int skipped = first ? 1 : 0, copied = end - begin - skipped - (last ? 1 : 0);
    if (first) write_part(to, from, phase, kVec);
    if (last) write_part(to + (end - 1 - begin), from + (end - 1 - begin) * kVec, 0, phase + kLength - (end - 1) * kVec);
    if (first || last) publish_to_copies();
    if (copied > 0) copy_bulk(shared_address(to + skipped), from + skipped * kVec, static_cast<uint32_t>(copied) * 16, barrier);
  }
  template <size_t... I>
  __device__ __forceinline__ void copy_rows(const Pack<Ins...>& ins, int64_t first_row, int64_t rows, int64_t step, std::index_sequence<I...>) {
    for (int64_t index = first_row; index < rows; index += step) {
      const int phase = phase_of(get<0>(ins).data + index * get<0>(ins).strides[0]), all = chunks_behind(phase);
      for (int turn = 0; turn < kTurns; ++turn, place.next()) {
        const int begin = rank * kPlan.own + turn * kThreads, most = all < (rank + 1) * kPlan.own ? all : (rank + 1) * kPlan.own;
        const int end = begin + kThreads < most ? begin + kThreads : most;
        const uint32_t barrier = full + place.stage * 8;
        barrier_wait(empty + place.stage * 8, place.parity ^ 1);
        if (begin >= end) {
          barrier_arrive(barrier);
          continue;
        }
        // A word at the very beginning or end of an operand is the only one of which some does not exist.
        const bool first = !kWhole && index == 0 && begin == 0 && phase > 0;
        const bool last = !kWhole && index == rows - 1 && end == all && (phase + kLength) % kVec != 0;
        const int copied = end - begin - (first ? 1 : 0) - (last ? 1 : 0);
        if (copied == 0) {
          (copy(get<I>(ins), static_cast<int>(I), index, begin, end, first, last, place.stage, barrier), ...);
          barrier_arrive(barrier);
          continue;
        }
        if (first || last) {  // what is written is so before the arrival
          (copy(get<I>(ins), static_cast<int>(I), index, begin, end, first, last, place.stage, barrier), ...);
          barrier_expect(barrier, static_cast<uint32_t>(copied) * 16 * kIns);
        } else {
          barrier_expect(barrier, static_cast<uint32_t>(copied) * 16 * kIns);
          (copy(get<I>(ins), static_cast<int>(I), index, begin, end, false, false, place.stage, barrier), ...);
        }
      }
    }
  }

  // ---- threads that have chunks ---------------------------------------------------------------------------------------------------------

  __device__ __forceinline__ int number(int turn) const { return rank * kPlan.own + turn * kThreads + thread; }
  /// In this turn every thread of every block has a chunk of kVec elements, wherever the row begins.
  static __device__ __forceinline__ constexpr bool sure(int turn) {
    return (kWhole || turn > 0) && (turn + 1) * kThreads <= kPlan.own && (kPlan.cluster - 1) * kPlan.own + (turn + 1) * kThreads <= kLength / kVec;
  }
  __device__ __forceinline__ bool has(int turn) const { return sure(turn) || (turn * kThreads + thread < kPlan.own && number(turn) < chunks); }
  /// Whether all elements of that chunk are of the row.
  __device__ __forceinline__ bool is_whole(int turn) const {
    return kWhole || sure(turn) || (row.start(number(turn)) >= 0 && row.start(number(turn)) + kVec <= kLength);
  }

  template <size_t... O>
  __device__ __forceinline__ void move(int64_t index, std::index_sequence<O...>) {
    ((get<O>(row.outs).data = get<O>(outs).data + index * get<O>(outs).strides[0]), ...);
    row.phase = phase_of(get<0>(row.outs).data);
    chunks = chunks_behind(row.phase);
  }
  __device__ __forceinline__ void move(int64_t index) { move(index, OutIndices{}); }

  template <size_t... I>
  __device__ __forceinline__ typename R::Elements elements(int turn, std::index_sequence<I...>) const {
    typename R::Elements elements;
    (copy_bytes(&get<I>(elements), &words[turn][I], 16), ...);
    return elements;
  }
  /// Element j of a word.
  template <class T>
  static __device__ __forceinline__ T pick(const uint4& word, int j) {
    const int at_byte = j * static_cast<int>(sizeof(T));
    const uint32_t part = at_byte < 8 ? (at_byte < 4 ? word.x : word.y) : (at_byte < 12 ? word.z : word.w), bits = part >> at_byte % 4 * 8;
    T element;
    copy_bytes(&element, &bits, sizeof(T));
    return element;
  }
  static __device__ __forceinline__ uint4 word_of_lane(const uint4& word, int lane) {
    return uint4{shuffle(word.x, lane), shuffle(word.y, lane), shuffle(word.z, lane), shuffle(word.w, lane)};
  }
  template <size_t... I>
  __device__ __forceinline__ typename R::template ElementsOf<1> element(int turn, int lane, int j, std::index_sequence<I...>) const {
    typename R::template ElementsOf<1> one;
    ((get<I>(one).v[0] = pick<typename Ins::Value>(word_of_lane(words[turn][I], lane), j)), ...);
    return one;
  }
  /// All lanes of a warp: visit(element, its number in the chunk, its place in the row, the thread of the chunk) of those elements of the row that are
  /// in a chunk with others, an element a lane.
  template <class Visit>
  __device__ __forceinline__ void each_element(int turn, Visit visit) const {
    if (sure(turn)) return;
    for (uint32_t parts = __ballot_sync(0xffffffffu, has(turn) && !is_whole(turn)); parts != 0; parts &= parts - 1) {
      const int lane = __ffs(static_cast<int>(parts)) - 1, own = thread % kWarpSize, j = own % kVec;
      const auto x = element(turn, lane, j, InIndices{});
      const int i = row.start(number(turn) - own + lane) + j;
      if (own < kVec && i >= 0 && i < kLength) visit(x, j, i, thread - own + lane);
    }
  }

  template <size_t... I>
  __device__ __forceinline__ void take(int turn, std::index_sequence<I...>) {
    ((words[turn][I] = ring[(place.stage * kIns + static_cast<int>(I)) * kThreads + thread]), ...);
  }
  /// Takes the row out of the ring, stores the further results of F, and returns what this thread's elements are together.
  __device__ __forceinline__ Part read(const Policy& policy) {
    Part own;
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn, place.next()) {
      barrier_wait(full + place.stage * 8, place.parity);
      const bool has_chunk = has(turn);
      if (has_chunk) take(turn, InIndices{});
      publish_to_copies();  // an arrival may overtake reads that wait behind stores, and the next copy comes before them
      __syncwarp();
      if (thread % kWarpSize == 0) barrier_arrive(empty + place.stage * 8);
      if (has_chunk && is_whole(turn)) policy.add(own, row.template compute<true, kVec, true, false>(elements(turn, InIndices{}), row.start(number(turn))).v, turn);
    }
    policy.template settle<kVec>(own);
    if constexpr (!kWhole) {
#pragma unroll
      for (int turn = 0; turn < kTurns; ++turn) {
        each_element(turn, [&](const auto& x, int, int i, int) { policy.add_one(own, row.template compute<true, 1, true, false>(x, i).v[0]); });
      }
    }
    return own;
  }

  /// Elements of factors from `i` on, of which some may not exist.
  static __device__ __forceinline__ uint4 factor_chunk(const S* from, float otherwise, int i) {
    S elements[kVec];
    if (from == nullptr) {
      for (S& element : elements) element = convert<S>(otherwise);
    } else if (i >= kVec && i + 2 * kVec <= kLength) {
      Words<S, kVec, true> read;
      read.read(from + i, true);
      read.elements(from + i, true, 0, elements);
    } else {
      for (int j = 0; j < kVec; ++j) elements[j] = i + j >= 0 && i + j < kLength ? from[i + j] : convert<S>(0.f);
    }
    uint4 word;
    copy_bytes(&word, &elements, 16);
    return word;
  }
  /// Fills shared memory with the factors of this block's chunks.
  __device__ __forceinline__ void keep_factors(const Policy& policy) {
    if constexpr (kFactors > 0) {
      for (int which = 0; which < kFactors; ++which) {
        const S* from = policy.factor(which);
        uint4* to = factors + which * kFactorChunks;
        const float otherwise = which == 0 ? 1.f : 0.f;
        if constexpr (kPlan.kept) {
          for (int turn = 0; turn < kTurns; ++turn) to[turn * kThreads + thread] = factor_chunk(from, otherwise, row.start(number(turn)));
        } else {  // from one chunk before the first
          for (int n = thread; n < kFactorChunks; n += kThreads) to[n] = factor_chunk(from, otherwise, (rank * kPlan.own - 1 + n) * kVec);
        }
      }
    }
  }
  /// The factors of a chunk of thread `of`.
  __device__ __forceinline__ uint4 factor_word(int which, int turn, int of) const {
    const uint4* from = factors + which * kFactorChunks + turn * kThreads + of;
    if constexpr (kPlan.kept || kWhole) {
      return from[kPlan.kept ? 0 : 1];
    } else {
      from += row.phase > 0 ? 0 : 1;
      const Words<S, kVec, true> both{{from[0], from[1]}};
      S elements[kVec];
      both.elements_behind(static_cast<uint32_t>((kVec - row.phase) % kVec * sizeof(S)), elements);
      uint4 word;
      copy_bytes(&word, &elements, 16);
      return word;
    }
  }
  __device__ __forceinline__ void factors_of(int which, int turn, float (&to)[kVec]) const {
    S elements[kVec];
    const uint4 word = factor_word(which, turn, thread);
    copy_bytes(&elements, &word, 16);
    convert_all(elements, to);
  }

  /// Stores the first result.
  __device__ __forceinline__ void finish(const Policy& policy, const Result& result) const {
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      if (!has(turn) || !is_whole(turn)) continue;
      auto chunk = row.template compute<false, kVec>(elements(turn, InIndices{}), row.start(number(turn)));
      float scales[kVec], biases[kVec];
      if constexpr (kFactors > 0) factors_of(0, turn, scales);
      if constexpr (kFactors > 1) factors_of(1, turn, biases);
#pragma unroll
      for (int j = 0; j < kVec; ++j) chunk.v[j] = policy.apply(chunk.v[j], result, kFactors > 0 ? scales[j] : 1.f, kFactors > 1 ? biases[j] : 0.f);
      row.template write<false>(get<0>(row.outs), row.start(number(turn)), chunk);
    }
    if constexpr (!kWhole) {
#pragma unroll
      for (int turn = 0; turn < kTurns; ++turn) {
        each_element(turn, [&](const auto& x, int j, int i, int of) {
          float scale = 1, bias = 0;
          if constexpr (kFactors > 0) scale = convert<float>(pick<S>(factor_word(0, turn, of), j));
          if constexpr (kFactors > 1) bias = convert<float>(pick<S>(factor_word(1, turn, of), j));
          const Values<float, 1> y{policy.apply(row.template compute<false, 1>(x, i).v[0], result, scale, bias)};
          row.template write<false>(get<0>(row.outs), i, y);
        });
      }
    }
  }
};
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_BULK_ROW_CUH_
