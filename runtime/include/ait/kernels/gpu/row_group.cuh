/// @file row_group.cuh
/// @brief A row in the hands of a group of threads: how it is cut, read, held and stored.
#ifndef AIT_KERNELS_GPU_ROW_GROUP_CUH_
#define AIT_KERNELS_GPU_ROW_GROUP_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"
#include "ait/kernels/gpu/group.cuh"
#include "ait/kernels/gpu/row_read.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#if defined(AIT_CUDA)
#include "ait/kernels/gpu/mma.cuh"
#endif

namespace ait::gpu {

namespace detail {
/// A row in the hands of a group: `each` visits its chunks, `finish` visits them again and stores them.
///
/// Chunks have kVec elements that are all of the row. Where rows are cut at boundaries of the first result, what is left at both ends, and a chunk
/// beside it, are chunks of one element, so that the words around those of kVec exist in all operands, wherever these begin.
template <class F, int kGroup, int kItemsOf, int kVecOf, Cut kCut, Few kFewOf, int kRowRank, class Ins, class Outs>
struct Row;

template <class F, int kGroup, int kItemsOf, int kVecOf, Cut kCut, Few kFewOf, int kRowRank, class... Ins, class... Outs>
struct Row<F, kGroup, kItemsOf, kVecOf, kCut, kFewOf, kRowRank, Pack<Ins...>, Pack<Outs...>> {
  static constexpr int kVec = kVecOf;
  static constexpr int kItems = kItemsOf;
  /// All chunks that a lane may have exist, in all lanes.
  static constexpr bool kFull = kFewOf != Few::unknown;
  static constexpr bool kEarly = kFewOf == Few::rows;
  static constexpr bool kWhole = kCut == Cut::whole;
  /// Chunks of one element that a lane may have.
  static constexpr int kEdges = kWhole ? 0 : (2 * (2 * kVec - 1) + kGroup - 1) / kGroup;
  static constexpr int kDepth = kItems > 0 ? 8 : kGroup >= 1024 ? 2 : 4;
  /// Chunks that are read before the first of them is used.
  static constexpr int kAhead = kDepth / sizeof...(Ins) < 1 ? 1 : kDepth / sizeof...(Ins);
  /// Counts elements of a row and chunks; rows that are held are short.
  using Index = std::conditional_t<kItemsOf == kReadAgain || (kRowRank > 1), int64_t, int>;
  using In = std::decay_t<decltype(get<0>(std::declval<Pack<Ins...>&>()))>;
  using Out = std::decay_t<decltype(get<0>(std::declval<Pack<Outs...>&>()))>;
  using C = typename Out::Compute;
  using Chunk = Values<C, kVec>;
  using Reducer = GroupReducer<C, kGroup>;
  template <int kCount>
  using Reads = Pack<RowRead<Ins, kCount, kCut>...>;
  template <int kCount>
  using ElementsOf = Pack<typename RowRead<Ins, kCount, kCut>::Elements...>;
  using Elements = ElementsOf<kVec>;
  /// The chunks of all operands are words that are copied to shared memory past the registers.
#if defined(AIT_CUDA)
  static constexpr bool kCopies =
      kItems == kInShared && kCut != Cut::mixed && ((RowRead<Ins, kVec, kCut>::kByWords && sizeof(typename Ins::Value) * kVec == 16) && ...);
#else
  static constexpr bool kCopies = false;
#endif
  /// Narrow operands take no more room in shared memory than what F makes of them, and F is cheap.
  static constexpr bool kHoldsInput =
      kItems == kInShared && ((sizeof(Elements) < sizeof(Chunk) && sizeof(Elements) % 16 == 0) || (kCopies && sizeof(Elements) <= sizeof(Chunk)));
  using Held = std::conditional_t<kHoldsInput, Elements, Chunk>;
  static constexpr int kPlanes = sizeof(Held) >= 16 ? sizeof(Held) / 16 : 1;
  /// softmax of 50257 in bf16 takes 172 us in place of 148 by pairs, with fewer instructions in the same order; other rows win 1 % by them.
  static constexpr bool kPairsInShared = false;
  /// Whether changes of a chunk last until the next pass.
  static constexpr bool kKeeps = kItems > 0 || (kItems == kInShared && !kHoldsInput);

  Pack<Ins...> ins;
  Pack<Outs...> outs;
  Index length;
  int64_t sizes[kRowRank];
  int lane;
  int phase = 0;             ///< elements from chunk 0 to the row; below 0 where that is inside
  Index begin = 0, end;      ///< the chunks of kVec elements
  Index head = 0, tail = 0;  ///< elements before and behind them
  int pitch = 0;             ///< chunks in shared memory
  uint4* shared = nullptr;
  Reducer reducer;
  Chunk held[kItems > 0 ? kItems : 1];
  Values<C, 1> edges[kEdges > 0 ? kEdges : 1];

  /// Where chunk `number` is in the row.
  __device__ __forceinline__ Index start(Index number) const { return number * kVec - (kWhole ? 0 : phase); }
  /// The number of the held chunk `item`.
  __device__ __forceinline__ Index number(int item) const { return static_cast<Index>(item) * kGroup + lane; }
  /// Whether this is a chunk of kVec elements of the row.
  __device__ __forceinline__ bool has(Index number) const {
    if constexpr (kFull && kGroup >= kWarpSize) return true;
    return number < end && (kWhole || number >= begin);
  }
  /// Where the element of this lane's edge `slot` is in the row, or -1.
  __device__ __forceinline__ Index edge(int slot) const {
    const Index e = static_cast<Index>(slot) * kGroup + lane;
    return e < head ? e : e < head + tail ? e + (length - tail - head) : Index(-1);
  }

  /// Cuts a row of so many elements, to which the operands have been moved, at boundaries of so many bytes.
  template <size_t kBoundaryOf = kBoundary<Pack<Ins...>>>
  __device__ __forceinline__ void cut(Index count) {
    length = count;
    if constexpr (kWhole) {
      end = count / kVec;
    } else {
      constexpr int kStep = kBoundaryChunks<Pack<Ins...>, sizeof(typename Out::Value) * kVec, kBoundaryOf>;
      phase = static_cast<int>(reinterpret_cast<uintptr_t>(get<0>(outs).data) / sizeof(typename Out::Value) % (kVec * kStep));
      const Index least = kVec + (kVec - phase % kVec) % kVec;
      head = least < count ? least : count;
      const Index rest = count - head, chunks = rest / kVec - 1;
      begin = (phase + head) / kVec;
      phase -= static_cast<int>(begin / kStep) * kStep * kVec;
      begin %= kStep;
      end = begin + (chunks > 0 ? chunks : 0);
      tail = rest - (end - begin) * kVec;
    }
  }

  /// Elements from a 16-byte boundary to the chunks of what begins at `row`.
  template <class T>
  __device__ __forceinline__ int lead(const T* row) const {
    constexpr uint32_t kOfWord = 16 / sizeof(T) > 0 ? 16 / sizeof(T) : 1;
    return static_cast<int>((static_cast<uint32_t>(reinterpret_cast<uintptr_t>(row) / sizeof(T)) - static_cast<uint32_t>(phase)) % kOfWord);
  }

  template <class Op>
  __device__ __forceinline__ typename Op::Element* at(const Op& operand, Index i) const {
    return operand.data + row_offset<kRowRank>(operand, i, sizes);
  }

  /// @tparam kForced as of `store`
  template <bool kForced = true, class Op, int kCount>
  __device__ __forceinline__ void write(const Op& operand, Index i, const Values<typename Op::Compute, kCount>& values) const {
    auto* to = at(operand, i);
    if constexpr (kWhole || kCount == 1 || (kCut == Cut::same && Op::kInner == Inner::unit)) {
      store_values<kCount, kForced>(operand, to, values);
    } else if (Op::kInner == Inner::unit && reinterpret_cast<uintptr_t>(to) % kAccessBytes<typename Op::Value, kCount> == 0) {
      store_values<kCount, kForced>(operand, to, values);
    } else {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        to[Op::kInner == Inner::unit ? j : j * operand.strides[Op::kRank - 1]] = convert<typename Op::Value>(values.v[j]);
      }
    }
  }

  /// A row of factors, of which chunks are read as those of operands are.
  template <class S, int kCount>
  using Factors = RowRead<Operand<const S, 1, Inner::unit>, kCount, kWhole ? Cut::whole : Cut::mixed>;
  template <class S, int kCount>
  __device__ __forceinline__ void read_factors(const S* row, Index i, Factors<S, kCount>& factors) const {
    if (row != nullptr) factors.read(Operand<const S, 1, Inner::unit>{}, row + i, kWhole ? 0 : lead(row));
  }
  template <class S, int kCount>
  __device__ __forceinline__ typename Factors<S, kCount>::Elements take_factors(const S* row, const Factors<S, kCount>& factors) const {
    return factors.elements(kWhole ? 0 : lead(row));
  }

  template <int kCount, size_t... I>
  __device__ __forceinline__ void fetch(Reads<kCount>& reads, Index i, std::index_sequence<I...>) const {
    (get<I>(reads).read(get<I>(ins), at(get<I>(ins), i), kCut == Cut::mixed ? lead(get<I>(ins).data) : 0), ...);
  }
  template <int kCount, size_t... I>
  __device__ __forceinline__ ElementsOf<kCount> take(const Reads<kCount>& reads, std::index_sequence<I...>) const {
    return pack(get<I>(reads).elements(kCut == Cut::mixed ? lead(get<I>(ins).data) : 0)...);
  }
  using InIndices = std::index_sequence_for<Ins...>;

  /// `kPairs`: pairs of narrow elements are converted at once.
  template <class Op, int kCount, bool kPairs>
  static __device__ __forceinline__ Values<typename Op::Compute, kCount> values_of(const typename RowRead<Op, kCount, kCut>::Elements& elements) {
    Values<typename Op::Compute, kCount> result;
    if constexpr (kPairs && Op::kInner != Inner::zero) {
      convert_all(elements.v, result.v);
    } else {
#pragma unroll
      for (int j = 0; j < kCount; ++j) result.v[j] = convert<typename Op::Compute>(elements.v[Op::kInner == Inner::zero ? 0 : j]);
    }
    return result;
  }

  /// Computes the chunk at `i` from its elements, storing the further results of F if asked (`kForced` as of `store`).
  template <bool kStore, int kCount, bool kPairs, bool kForced, size_t... I, size_t... O>
  __device__ __forceinline__ Values<C, kCount> compute(const ElementsOf<kCount>& elements, Index i, std::index_sequence<I...> in_indices,
                                                       std::index_sequence<0, O...> out_indices) const {
    const Pack<Values<typename Ins::Compute, kCount>...> values = pack(values_of<Ins, kCount, kPairs>(get<I>(elements))...);
    Pack<Values<typename Outs::Compute, kCount>...> results;
    apply_values<F, kCount>(values, in_indices, results, out_indices);
    if constexpr (kStore) (write<kForced>(get<O>(outs), i, get<O>(results)), ...);
    return get<0>(results);
  }
  template <bool kStore, int kCount, bool kPairs = true, bool kForced = true>
  __device__ __forceinline__ Values<C, kCount> compute(const ElementsOf<kCount>& elements, Index i) const {
    return compute<kStore, kCount, kPairs, kForced>(elements, i, InIndices{}, std::index_sequence_for<Outs...>{});
  }

  /// Moves all operands to the row with these outer coordinates.
  template <int kOuter, size_t... I, size_t... O>
  __device__ __forceinline__ void move(const Pack<Ins...>& all_ins, const Pack<Outs...>& all_outs, const int64_t (&coordinate)[kOuter],
                                       std::index_sequence<I...>, std::index_sequence<O...>) {
    ((get<I>(ins) = at_row(get<I>(all_ins), coordinate)), ...);
    ((get<O>(outs) = at_row(get<O>(all_outs), coordinate)), ...);
  }

  __device__ __forceinline__ void get_shared(Index number, Held& to) const {
#pragma unroll
    for (int p = 0; p < kPlanes; ++p) {
      const uint4 word = shared[p * pitch + number];
      copy_bytes(reinterpret_cast<char*>(&to) + 16 * p, &word, 16);
    }
  }
  __device__ __forceinline__ void put_shared(Index number, const Held& from) const {
#pragma unroll
    for (int p = 0; p < kPlanes; ++p) {
      uint4 word;
      copy_bytes(&word, reinterpret_cast<const char*>(&from) + 16 * p, 16);
      shared[p * pitch + number] = word;
    }
  }

  /// What was read of the edges of the row.
  struct EdgeReads {
    Reads<1> reads[kEdges > 0 ? kEdges : 1];
  };
  __device__ __forceinline__ void fetch_edges(EdgeReads& edge_reads) const {
#pragma unroll
    for (int slot = 0; slot < kEdges; ++slot) {
      if (edge(slot) >= 0) fetch<1>(edge_reads.reads[slot], edge(slot), InIndices{});
    }
  }
  template <bool kStore>
  __device__ __forceinline__ void compute_edges(const EdgeReads& edge_reads) {
#pragma unroll
    for (int slot = 0; slot < kEdges; ++slot) {
      if (edge(slot) >= 0) edges[slot] = compute<kStore, 1>(take<1>(edge_reads.reads[slot], InIndices{}), edge(slot));
    }
  }
  template <class Visit>
  __device__ __forceinline__ void each_edge(Visit visit) {
#pragma unroll
    for (int slot = 0; slot < kEdges; ++slot) {
      if (edge(slot) >= 0) visit(edges[slot], edge(slot), kItems + slot);
    }
  }

  /// Reads the chunks of kVec elements from memory, several ahead of what is done with them: visit(chunk, i, elements, number).
  template <bool kStore, class Visit>
  __device__ __forceinline__ void stream(Visit visit) const {
    for (Index first = lane; first < end; first += kGroup * kAhead) {
      Reads<kVec> reads[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const Index at = first + u * kGroup;
        if (has(at)) fetch<kVec>(reads[u], start(at), InIndices{});
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const Index at = first + u * kGroup;
        if (!has(at)) continue;
        const Elements elements = take<kVec>(reads[u], InIndices{});
        Chunk chunk = compute<kStore, kVec>(elements, start(at));
        visit(chunk, start(at), elements, at);
      }
    }
  }

#if defined(AIT_CUDA)
  template <size_t... I>
  __device__ __forceinline__ void copy(Index at_number, std::index_sequence<I...>) const {
    (copy_async_16(shared_address(shared + static_cast<int>(I) * pitch + at_number), at(get<I>(ins), start(at_number)), 16), ...);
  }
#endif

  /// Copies the chunks of kVec elements to shared memory, all before the first is used: visit(chunk, i), which stores the further results.
  template <class Visit>
  __device__ __forceinline__ void copy_all(Visit visit) const {
#if defined(AIT_CUDA)
    constexpr int kParts = 4;
    const Index turns = (end + kGroup - 1) / kGroup;
    const auto each_of = [&](int part, auto&& what) {
      const Index last = turns * (part + 1) / kParts;
      for (Index turn = turns * part / kParts; turn < last; ++turn) {
        if (has(turn * kGroup + lane)) what(turn * kGroup + lane);
      }
    };
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      each_of(part, [&](Index at_number) { copy(at_number, InIndices{}); });
      copy_async_commit();
    }
    const auto use = [&](Index at_number) {
      Elements elements;
      get_shared(at_number, elements);
      Chunk chunk = compute<true, kVec, kPairsInShared>(elements, start(at_number));
      visit(chunk, start(at_number), 0);
    };
    copy_async_wait<3>();
    each_of(0, use);
    copy_async_wait<2>();
    each_of(1, use);
    copy_async_wait<1>();
    each_of(2, use);
    copy_async_wait<0>();
    each_of(3, use);
#endif
  }

  /// Reads what registers hold, and stores the further results of F.
  __device__ __forceinline__ void load() {
    EdgeReads edge_reads;
    fetch_edges(edge_reads);
    if constexpr (kItems > 0) {
      Reads<kVec> reads[kItems];
#pragma unroll
      for (int batch = 0; batch < kItems; batch += kAhead) {
#pragma unroll
        for (int item = batch; item < kItems && item < batch + kAhead; ++item) {
          if (has(number(item))) fetch<kVec>(reads[item], start(number(item)), InIndices{});
        }
#pragma unroll
        for (int item = batch; item < kItems && item < batch + kAhead; ++item) {
          if (has(number(item))) held[item] = compute<true, kVec>(take<kVec>(reads[item], InIndices{}), start(number(item)));
        }
      }
    }
    compute_edges<true>(edge_reads);
  }

  /// visit(chunk, i, slot) with the place of the chunk in the row and among those held. What a visit that `kChanges` leaves is kept if `kKeeps`.
  /// The first pass of a row that registers do not hold reads it and stores the further results.
  template <bool kFirst = false, bool kChanges = false, class Visit>
  __device__ __forceinline__ void each(Visit visit) {
    if constexpr (kItems > 0) {
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        if (has(number(item))) visit(held[item], start(number(item)), item);
      }
    } else if constexpr (kItems == kInShared && kFirst && kCopies && kHoldsInput) {
      copy_all(visit);
    } else if constexpr (kItems == kInShared && kFirst) {
      stream<true>([&](Chunk& chunk, Index i, const Elements& elements, Index at) {
        if constexpr (kHoldsInput) {
          put_shared(at, elements);
        } else {
          put_shared(at, chunk);
        }
        visit(chunk, i, 0);
      });
    } else if constexpr (kItems == kInShared) {
#pragma unroll 2
      for (Index at = lane; at < end; at += kGroup) {
        if (!has(at)) continue;
        Chunk chunk;
        if constexpr (kHoldsInput) {
          Elements elements;
          get_shared(at, elements);
          chunk = compute<false, kVec, kPairsInShared>(elements, start(at));
        } else {
          get_shared(at, chunk);
        }
        visit(chunk, start(at), 0);
        if constexpr (kChanges && kKeeps) put_shared(at, chunk);
      }
    } else {
      stream<kFirst>([&](Chunk& chunk, Index i, const Elements&, Index) { visit(chunk, i, 0); });
    }
    if constexpr (kChanges && !kKeeps) {
#pragma unroll
      for (int slot = 0; slot < kEdges; ++slot) {
        Values<C, 1> copy = edges[slot];
        if (edge(slot) >= 0) visit(copy, edge(slot), kItems + slot);
      }
    } else {
      each_edge(visit);
    }
  }

  /// visit(chunk, i, slot) leaves what is stored as the first result.
  template <class Visit>
  __device__ __forceinline__ void finish(Visit visit) {
    const auto store = [&](auto& chunk, Index i, int slot) {
      visit(chunk, i, slot);
      write(get<0>(outs), i, chunk);
    };
    if constexpr (kItems > 0) {
#pragma unroll
      for (int item = 0; item < kItems; ++item) {
        if (has(number(item))) store(held[item], start(number(item)), item);
      }
      each_edge(store);
    } else if constexpr (kItems == kInShared) {
      each(store);
    } else {
      stream<false>([&](Chunk& chunk, Index i, const Elements&, Index) { store(chunk, i, 0); });
      each_edge(store);
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
