/// @file scatter_sorted.cuh
/// @brief Values combined with elements of a tensor by index: places are sorted by the element that they name, and each element has one thread that
/// combines its values in order. So the result is that of one place after the other, with the same bits in each run.
///
/// The loops of a space come in three groups: places that may name one element; rows, along which indices differ, so that each is sorted by itself; and
/// columns, along which indices are the same, so that they share the sorted places. The places of a row that fit into a block are sorted there and
/// combined by the same launch; others are sorted by `radix_sort`.
#ifndef AIT_KERNELS_GPU_SCATTER_SORTED_CUH_
#define AIT_KERNELS_GPU_SCATTER_SORTED_CUH_

#include <stdint.h>

#include <type_traits>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/radix.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/indexed_space.h"
#include "ait/kernels/operand.h"

namespace ait::gpu {

namespace detail {
/// @brief Neighbouring values: in memory, or as a functor with `load(offset, values)` computes them.
template <int kVec, class T>
__device__ __forceinline__ void load_values(const T* from, int64_t offset, T (&values)[kVec]) {
  load<kVec>(from + offset, values);
}
template <int kVec, class T, class Source>
__device__ __forceinline__ void load_values(const Source& from, int64_t offset, T (&values)[kVec]) {
  from.load(offset, values);
}
/// @brief The address of values in memory, 0 of computed ones.
template <class T>
uintptr_t address_of(const T* values) {
  return reinterpret_cast<uintptr_t>(values);
}
template <class Source>
uintptr_t address_of(const Source&) {
  return 0;
}
}  // namespace detail

/// @brief A space whose first `kSerialOf` loops are places and the next `kKeyedOf` are rows; the others are columns, at least one.
/// @tparam Source where the values come from
template <class Kind, int kSerialOf, int kKeyedOf, int kRank, int kIndices, class Id, class T, class Source = const T*>
struct ScatterSpace {
  static constexpr int kSerial = kSerialOf, kKeyed = kKeyedOf, kFree = kRank - kSerialOf - kKeyedOf, kNumbers = kIndices;
  static_assert(kSerial > 0 && kKeyed > 0 && kFree > 0, "each group has a loop");
  static constexpr bool kComputed = !std::is_pointer_v<Source>;
  using Combine = Kind;
  using Value = T;
  using Index = Id;
  using Sum = combined_t<Kind, T>;
  IndexedSpace<kRank, kIndices, Id> space;
  Source values;
  T* out;

  /// @brief The product of the sizes of `count` loops from `first` on.
  AIT_FN int64_t size(int first, int count) const {
    int64_t product = 1;
    for (int d = first; d < first + count; ++d) product *= space.sizes[d];
    return product;
  }
  AIT_FN int64_t places() const { return size(0, kSerial); }
  AIT_FN int64_t rows() const { return size(kSerial, kKeyed); }
  AIT_FN int64_t columns() const { return size(kSerial + kKeyed, kFree); }
  AIT_FN int64_t targets() const {
    int64_t product = 1;
    for (int k = 0; k < kIndices; ++k) product *= space.extents[k];
    return product;
  }

  /// @brief Where each index tensor begins for a row.
  __device__ __forceinline__ void index_starts(int64_t row, int64_t* starts) const {
    int64_t at_row[kKeyed];
    coordinates<kKeyed>(row, space.sizes + kSerial, at_row);
#pragma unroll
    for (int k = 0; k < kIndices; ++k) {
      starts[k] = 0;
#pragma unroll
      for (int d = 0; d < kKeyed; ++d) starts[k] += at_row[d] * space.index_strides[k][kSerial + d];
    }
  }
  /// @brief The number of the element, among those that indices can name, of a place; -1 if an index is outside of its dim.
  __device__ __forceinline__ int64_t target(int64_t row, int64_t place) const {
    int64_t starts[kIndices];
    index_starts(row, starts);
    return target_at(starts, place);
  }
  __device__ __forceinline__ int64_t target_at(const int64_t* starts, int64_t place) const {
    Id ids[kIndices];
    ids_at(starts, place, ids);
    return target_of(ids);
  }
  /// @brief The indices of a place as they are stored.
  __device__ __forceinline__ void ids_at(const int64_t* starts, int64_t place, Id (&ids)[kIndices]) const {
    int64_t at_place[kSerial];
    coordinates<kSerial>(place, space.sizes, at_place);
#pragma unroll
    for (int k = 0; k < kIndices; ++k) {
      int64_t at = starts[k];
#pragma unroll
      for (int d = 0; d < kSerial; ++d) at += at_place[d] * space.index_strides[k][d];
      ids[k] = space.indices[k][at];
    }
  }
  /// @brief The number of the element that indices name; -1 if one is outside of its dim.
  __device__ __forceinline__ int64_t target_of(const Id (&ids)[kIndices]) const {
    int64_t number = 0;
    bool known = true;
#pragma unroll
    for (int k = 0; k < kIndices; ++k) {
      const int64_t given = static_cast<int64_t>(ids[k]), found = given < 0 ? given + space.extents[k] : given;
      known = known && found >= 0 && found < space.extents[k];
      number = number * space.extents[k] + found;
    }
    return known ? number : -1;
  }

  /// @brief Where the element of a target is, without row and column.
  __device__ __forceinline__ int64_t whole_of_target(int64_t target) const {
    int64_t index[kIndices], at = 0;
    coordinates<kIndices>(target, space.extents, index);
#pragma unroll
    for (int k = 0; k < kIndices; ++k) at += index[k] * space.steps[k];
    return at;
  }
  /// @brief Where the values of a place are, without row and column.
  __device__ __forceinline__ int64_t dense_of_place(int64_t place) const {
    int64_t coordinate[kSerial], at = 0;
    coordinates<kSerial>(place, space.sizes, coordinate);
#pragma unroll
    for (int d = 0; d < kSerial; ++d) at += coordinate[d] * space.dense_strides[d];
    return at;
  }
  /// @brief Adds the steps of `kCount` loops from `kFirst` on, at the coordinates of a number, to both offsets.
  template <int kFirst, int kCount>
  __device__ __forceinline__ void step(int64_t number, int64_t& dense, int64_t& whole) const {
    int64_t coordinate[kCount];
    coordinates<kCount>(number, space.sizes + kFirst, coordinate);
#pragma unroll
    for (int d = 0; d < kCount; ++d) {
      dense += coordinate[d] * space.dense_strides[kFirst + d];
      whole += coordinate[d] * space.whole_strides[kFirst + d];
    }
  }

  /// @brief Whether `count` neighbouring columns can be accessed as one word on both sides.
  bool may_access(int count) const {
    constexpr int kLast = kRank - 1;
    bool fits = space.dense_strides[kLast] == 1 && space.whole_strides[kLast] == 1 && space.sizes[kLast] % count == 0;
    for (int d = 0; d < kLast; ++d) fits = fits && space.dense_strides[d] % count == 0 && space.whole_strides[d] % count == 0;
    for (int k = 0; k < kIndices; ++k) fits = fits && space.steps[k] % count == 0;
    const uintptr_t bits = detail::address_of(values) | reinterpret_cast<uintptr_t>(out);
    return fits && bits % (count * sizeof(T)) == 0;
  }
  /// @brief Whether `count` elements can be accessed as one word: those of neighbouring rows, or those of a row that a single index names.
  bool may_access_rows(int count, bool of_rows) const {
    constexpr int kLast = kSerial + kKeyed - 1;
    bool fits = reinterpret_cast<uintptr_t>(out) % (count * sizeof(T)) == 0;
    for (int d = kSerial; d <= kLast; ++d) fits = fits && (space.sizes[d] == 1 || space.whole_strides[d] % count == 0 || (of_rows && d == kLast));
    if (!of_rows) return fits && kIndices == 1 && space.steps[0] == 1 && space.extents[0] % count == 0;
    for (int k = 0; k < kIndices; ++k) fits = fits && space.steps[k] % count == 0;
    return fits && space.whole_strides[kLast] == 1 && space.sizes[kLast] % count == 0;
  }
};

namespace detail {

struct Quotient {
  int64_t quotient, rest;
};
/// @brief Divides in 32 bits where the numbers fit.
__device__ __forceinline__ Quotient divide(int64_t a, int64_t b) {
  const bool narrow = static_cast<uint64_t>(a | b) >> 32 == 0;
  const int64_t quotient = narrow ? static_cast<uint32_t>(a) / static_cast<uint32_t>(b) : a / b;
  return {quotient, a - quotient * b};
}

/// @brief How the columns of a space are cut: a thread has a word of `kVec` neighbours, `lanes` threads of a warp lie side by side, and a part is
/// what they have together.
struct ScatterParts {
  int64_t chunks, parts;
  int lanes;
};

template <int kVec, class Space>
ScatterParts scatter_parts(const Space& space) {
  const int64_t chunks = space.columns() / kVec;
  int lanes = 1;
  while (lanes < kWarpSize && lanes < chunks) lanes *= 2;
  return {chunks, (chunks + lanes - 1) / lanes, lanes};
}

/// @brief A bit of places with an index outside of its dim, which are sorted with those of the first element.
template <class Place>
inline constexpr Place kSkipped = Place(1) << (8 * sizeof(Place) - 1);

/// @brief Sorted keys and places that this launch or one before it in the same op has written.
template <class K, class Place>
struct SortedPlaces {
  const K* keys;
  const Place* places;
  __device__ __forceinline__ K key(int64_t i) const { return keys[i]; }
  __device__ __forceinline__ Place place(int64_t i) const { return places[i]; }
};
/// @brief Those of another op. A key or place that the space does not have touches no memory outside of it.
struct GivenPlaces {
  const uint32_t *keys, *places;
  uint32_t targets, length;
  __device__ __forceinline__ uint32_t key(int64_t i) const { return keys[i] < targets ? keys[i] : 0; }
  __device__ __forceinline__ uint32_t place(int64_t i) const {
    const uint32_t found = places[i];
    return found < length ? found : kSkipped<uint32_t>;
  }
};

/// @brief The elements of one part of the columns that a warp combines values with. Lanes that lie side by side have a word of `kVec` neighbours each.
template <int kVec, class Space>
struct ScatterPart {
  using T = typename Space::Value;
  using A = typename Space::Sum;
  static constexpr int kAhead = 8;  ///< values of a long run that a lane reads before the first is combined
  static constexpr int kBeside = sizeof(T) * kVec < 16 ? 8 : 4;  ///< values of short runs, each perhaps with its element: more words need more registers
  const Space& space;
  int lanes, groups, lane, group;  ///< groups of lanes have the same columns
  bool present;
  int64_t dense = 0, whole = 0;

  __device__ __forceinline__ ScatterPart(const Space& of, int64_t row, int64_t part, const ScatterParts& cut)
      : space(of), lanes(cut.lanes), groups(kWarpSize / cut.lanes), lane(threadIdx.x % kWarpSize % cut.lanes), group(threadIdx.x % kWarpSize / cut.lanes) {
    const int64_t chunk = part * lanes + lane;
    present = chunk < cut.chunks;
    space.template step<Space::kSerial, Space::kKeyed>(row, dense, whole);
    space.template step<Space::kSerial + Space::kKeyed, Space::kFree>(chunk * kVec, dense, whole);
  }
  __device__ __forceinline__ T* element(int64_t target) const { return space.out + whole + space.whole_of_target(target); }
  __device__ __forceinline__ void begin(const T* from, A (&sums)[kVec]) const {
    T own[kVec];
    load<kVec>(from, own);
#pragma unroll
    for (int j = 0; j < kVec; ++j) sums[j] = convert<A>(own[j]);
  }
  __device__ __forceinline__ void end_at(T* to, const A (&sums)[kVec]) const {
    T own[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) own[j] = convert<T>(sums[j]);
    store<kVec>(to, own);
  }
  __device__ __forceinline__ void read(uint32_t place, T (&values)[kVec]) const {
    load_values<kVec>(space.values, dense + space.dense_of_place(static_cast<int64_t>(place)), values);
  }

  static __device__ __forceinline__ A of_lane(A value, int lane) {
    if constexpr (sizeof(A) < 4) {
      return bit_cast<A>(static_cast<word_t<sizeof(A)>>(shuffle(static_cast<uint32_t>(bit_cast<word_t<sizeof(A)>>(value)), lane)));
    } else {
      return shuffle(value, lane);
    }
  }

  /// @brief Combines the values of sorted places that each lane of the warp has one of: those from `begin` to `end`, of which the first is that of a new
  /// element. A warp calls, with a range for each group.
  /// @param heads the lanes with the first place of an element
  template <class K, class Place>
  __device__ __forceinline__ void combine(K key, Place place, lanes_t heads, int begin, int end) const {
    A sums[kVec] = {};
    T* to = nullptr;
    for (int first = begin; ballot(first < end) != 0; first += kBeside) {
      T values[kBeside][kVec], elements[kBeside][kVec];
      T* of[kBeside];
      uint32_t from[kBeside];
      bool counts[kBeside];
#pragma unroll
      for (int u = 0; u < kBeside; ++u) {
        const int at = (Space::kComputed && first + u >= end ? end - 1 : first + u) & (kWarpSize - 1);
        const K target = shuffle(key, at);
        from[u] = shuffle(static_cast<uint32_t>(place), at);
        const bool inside = present && first + u < end;
        counts[u] = inside && (from[u] & kSkipped<Place>) == 0;
        of[u] = inside && (heads >> at & 1) != 0 ? element(static_cast<int64_t>(target)) : nullptr;
        if (!Space::kComputed && counts[u]) read(from[u], values[u]);
        if (of[u] != nullptr) load<kVec>(of[u], elements[u]);
      }
      // Several reads that follow from one another: no value has a condition of its own, so that they wait for memory together.
      if (Space::kComputed && present && first < end) {
#pragma unroll
        for (int u = 0; u < kBeside; ++u) read(from[u] & ~uint32_t(kSkipped<Place>), values[u]);
      }
#pragma unroll
      for (int u = 0; u < kBeside; ++u) {
        if (of[u] != nullptr) {
          if (to != nullptr) end_at(to, sums);
          to = of[u];
#pragma unroll
          for (int j = 0; j < kVec; ++j) sums[j] = convert<A>(elements[u][j]);
        }
        if (!counts[u]) continue;
#pragma unroll
        for (int j = 0; j < kVec; ++j) sums[j] = Space::Combine::template apply<A>(sums[j], convert<A>(values[u][j]));
      }
    }
    if (to != nullptr) end_at(to, sums);
  }

  /// @brief Combines the values of the sorted places that begin a long run of equal keys. A warp calls: each group reads some values, all combine them.
  template <class Places>
  __device__ __forceinline__ void combine_run(const Places& sorted, int64_t head, int64_t left) const {
    using Place = decltype(sorted.place(0));
    const auto target = sorted.key(head);
    A sums[kVec] = {};
    if (present) begin(element(static_cast<int64_t>(target)), sums);
    for (int64_t first = 0, ended = 0; !ended; first += kAhead * groups) {
      T values[kAhead][kVec];
      lanes_t counted[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int64_t at = first + u * groups + group;
        const bool equal = at < left && sorted.key(head + at) == target;
        const Place from = equal ? sorted.place(head + at) : kSkipped<Place>;
        const bool counts = (from & kSkipped<Place>) == 0;
        if (present && (counts || Space::kComputed)) read(from & static_cast<Place>(~kSkipped<Place>), values[u]);
        counted[u] = ballot(counts);
        ended = ballot(!equal) != 0;
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        if (counted[u] == 0) continue;
#pragma unroll 8
        for (int g = 0; g < groups; ++g) {
#pragma unroll
          for (int j = 0; j < kVec; ++j) {
            const A value = of_lane(convert<A>(values[u][j]), g * lanes + lane);
            if (counted[u] >> (g * lanes) & 1) sums[j] = Space::Combine::template apply<A>(sums[j], value);
          }
        }
      }
    }
    if (present && group == 0) end_at(element(static_cast<int64_t>(target)), sums);
  }
};

/// @brief The number of the lowest of some lanes, at most `most`.
__device__ __forceinline__ int lowest_lane(lanes_t lanes, int most) {
  const int found = lanes == 0 ? most : count_lanes((lanes & (~lanes + 1)) - 1);
  return found < most ? found : most;
}

/// @brief Combines the values of the elements whose first place is among kWarpSize of a sorted row, for one part of the columns. A warp calls: each lane
/// reads one of the places, and each group of lanes combines those from its first element on to that of the next group.
template <int kVec, class Space, class Places>
__device__ __forceinline__ void combine_sorted(const Space& space, const Places& sorted, int64_t places, int64_t first, int64_t row, int64_t part,
                                               const ScatterParts& cut) {
  using K = decltype(sorted.key(0));
  using Place = decltype(sorted.place(0));
  const int lane = threadIdx.x % kWarpSize;
  const int64_t at = first + lane, left = places - first;
  const int here = left < kWarpSize ? static_cast<int>(left) : kWarpSize;
  const bool there = lane < here;
  const K key = there ? sorted.key(at) : K(0);
  const Place place = there ? sorted.place(at) : kSkipped<Place>;
  const bool begins = there && (at == 0 || sorted.key(at - 1) != key);
  const bool goes_on = here < left && sorted.key(first + here) == sorted.key(first + here - 1);
  const lanes_t heads = ballot(begins), last = ballot(begins && heads >> lane == 1);
  if (heads == 0) return;
  const ScatterPart<kVec, Space> columns(space, row, part, cut);
  const int stop = goes_on ? lowest_lane(last, kWarpSize) : here, size = kWarpSize / columns.groups;
  const auto from_group = [&](int group) {
    const int lower = group * size;
    return lower < kWarpSize ? lowest_lane(heads & ~((lanes_t(1) << lower) - 1), stop) : stop;
  };
  columns.combine(key, place, heads, from_group(columns.group), from_group(columns.group + 1));
  if (goes_on) columns.combine_run(sorted, first + stop, left - stop);
}

/// @brief Keys of a space for `radix_sort`.
template <class K, class Space>
struct ScatterKeys {
  Space space;
  __device__ __forceinline__ K key(int64_t row, int64_t i) const {
    const int64_t target = space.target(row, i);
    return static_cast<K>(target < 0 ? 0 : target);
  }
  __device__ __forceinline__ uint32_t place(int64_t row, int64_t i) const {
    return static_cast<uint32_t>(i) | (space.target(row, i) < 0 ? kSkipped<uint32_t> : 0);
  }
};
}  // namespace detail

/// Combines what `radix_sort` has sorted: a warp has kWarpSize sorted places of a row and a part of the columns.
template <int kVec, class Space, class K>
__global__ void __launch_bounds__(kRadixThreads)
    scatter_sorted_kernel(Space space, RadixBuffers<K> sorted, int64_t windows, int64_t items, detail::ScatterParts cut) {
  wait_for_previous();
  allow_next();
  const int warp = threadIdx.x / kWarpSize;
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kRadixWarps + warp;
  if (item >= items) return;
  const int64_t part = item % cut.parts, window = item / cut.parts % windows, row = item / cut.parts / windows;
  const detail::SortedPlaces<K, uint32_t> places{sorted.keys + row * sorted.length, sorted.places + row * sorted.length};
  detail::combine_sorted<kVec>(space, places, sorted.length, window * kWarpSize, row, part, cut);
}

/// Combines the values of one row in the order of another op: a warp has kWarpSize places and a part of the columns.
template <int kVec, class Space>
__global__ void __launch_bounds__(kRadixThreads) scatter_ordered_kernel(Space space, detail::GivenPlaces given, int64_t items, detail::ScatterParts cut) {
  wait_for_previous();
  allow_next();
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kRadixWarps + threadIdx.x / kWarpSize;
  if (item >= items) return;
  detail::combine_sorted<kVec>(space, given, given.length, item / cut.parts * kWarpSize, 0, item % cut.parts, cut);
}

namespace detail {
/// @brief Sorts the places of a row, at most kRadixTile, by the element that they name: a thread gets those of its own items.
template <class K, class Space>
__device__ __forceinline__ void sort_places(RadixCounters& counters, K* exchanged, const Space& space, int64_t row, int each, int passes,
                                            K (&held)[kRadixEach], uint16_t (&from)[kRadixEach]) {
  const int places = static_cast<int>(space.places());
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    const int at = radix_element(i, each);
    const bool there = i < each && at < places;
    const int64_t target = there ? space.target(row, at) : 0;
    held[i] = there ? static_cast<K>(target < 0 ? 0 : target) : ~K(0);
    from[i] = static_cast<uint16_t>(at) | (target < 0 ? kSkipped<uint16_t> : 0);
  }
  radix_sort_block(counters, exchanged, each, passes, held, from);
}
}  // namespace detail

/// Sorts the places of a row, at most kRadixTile, and combines some parts of the columns: a block for each.
template <int kVec, class Space, class K>
__global__ void __launch_bounds__(kRadixThreads)
    scatter_block_kernel(Space space, int each, int passes, int64_t shares, detail::ScatterParts cut) {
  __shared__ RadixCounters counters;
  __shared__ K keys[kRadixTile];
  __shared__ uint16_t sorted[kRadixTile];
  wait_for_previous();
  allow_next();
  const int64_t row = static_cast<int64_t>(blockIdx.x) / shares, share = static_cast<int64_t>(blockIdx.x) % shares;
  const int places = static_cast<int>(space.places());
  K held[kRadixEach];
  uint16_t from[kRadixEach];
  detail::sort_places(counters, keys, space, row, each, passes, held, from);
  __syncthreads();  // what was exchanged has been read
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    if (i >= each) continue;
    keys[detail::radix_element(i, each)] = held[i];
    sorted[detail::radix_element(i, each)] = from[i];
  }
  __syncthreads();
  const int warp = threadIdx.x / kWarpSize;
  const int windows = (places + kWarpSize - 1) / kWarpSize;
  const int64_t first = cut.parts * share / shares, last = cut.parts * (share + 1) / shares;
  for (int64_t item = warp; item < windows * (last - first); item += kRadixWarps) {
    detail::combine_sorted<kVec>(space, detail::SortedPlaces<K, uint16_t>{keys, sorted}, places, item % windows * kWarpSize, row, first + item / windows, cut);
  }
}

namespace detail {
template <class K, int kVec, class Space>
int32_t scatter_sorted(const Context& ctx, const Space& space, int each, void* workspace) {
  const ScatterParts cut = scatter_parts<kVec>(space);
  const int64_t places = space.places(), rows = space.rows();
  const int bits = key_bits(static_cast<uint64_t>(space.targets() - 1));
  LaunchConfig config;
  config.block = dim3(kRadixThreads);
  config.dependent = true;
  if (places <= kRadixTile) {
    // Each block sorts all places of its row, so a row has no more blocks than fill the card.
    constexpr int64_t kBlocks = 512;
    const int64_t most = rows < kBlocks ? kBlocks / rows : 1, shares = cut.parts < most ? cut.parts : most;
    config.grid = dim3(grid_size(rows * shares));
    const int held = static_cast<int>((places + kRadixThreads - 1) / kRadixThreads);
    return launch(ctx, config, scatter_block_kernel<kVec, Space, K>, space, held, radix_passes(bits), shares, cut);
  }
  if (places > INT32_MAX) return ctx.fail("scatter: more than 2^31 - 1 places that may name one element");
  const RadixWorkspace<K> buffers(rows, places, each, bits, workspace);
  const RadixBuffers<K> sorted = buffers.buffers((buffers.passes - 1) % 2);
  if (const int32_t status = radix_sort<K>(ctx, rows, places, each, bits, ScatterKeys<K, Space>{space}, sorted, workspace)) return status;
  const int64_t windows = (places + kWarpSize - 1) / kWarpSize, items = rows * windows * cut.parts;
  config.grid = dim3(grid_size((items + kRadixWarps - 1) / kRadixWarps));
  return launch(ctx, config, scatter_sorted_kernel<kVec, Space, K>, space, sorted, windows, items, cut);
}

template <int kVec, class Space>
int32_t scatter_ordered(const Context& ctx, const Space& space, const GivenPlaces& given) {
  const ScatterParts cut = scatter_parts<kVec>(space);
  const int64_t items = (given.length + kWarpSize - 1) / kWarpSize * cut.parts;
  LaunchConfig config;
  config.block = dim3(kRadixThreads);
  config.grid = dim3(grid_size((items + kRadixWarps - 1) / kRadixWarps));
  config.dependent = true;
  return launch(ctx, config, scatter_ordered_kernel<kVec, Space>, space, given, items, cut);
}
}  // namespace detail

/// @brief As `scatter` (`scatter.cuh`), for a space of one row whose places `order_places` has sorted.
/// @param values a pointer, or a functor whose `load(offset, values)` computes neighbours from an offset of the space on
/// @param keys,places the number of the element and the place of each item, both below 2^31; a place with its highest bit set is skipped
/// @param in_words whether the values may be read as words of 16 bytes, if the space may be accessed so
template <class Kind, int kSerial, int kKeyed, int kRank, int kIndices, class Id, class T, class Source>
int32_t scatter_ordered(const Context& ctx, const IndexedSpace<kRank, kIndices, Id>& space, const Source& values, T* out, const int32_t* keys,
                        const int32_t* places, bool in_words = true) {
  const ScatterSpace<Kind, kSerial, kKeyed, kRank, kIndices, Id, T, Source> sorted{space, values, out};
  const int64_t count = sorted.places(), targets = sorted.targets();
  if (count <= 0 || targets <= 0 || sorted.columns() <= 0) return 0;
  if (sorted.rows() != 1 || count > INT32_MAX || targets > INT32_MAX) return ctx.fail("scatter: an order of several rows, or of more than 2^31 - 1 places");
  const detail::GivenPlaces given{reinterpret_cast<const uint32_t*>(keys), reinterpret_cast<const uint32_t*>(places), static_cast<uint32_t>(targets),
                                  static_cast<uint32_t>(count)};
  constexpr int kVec = 16 / sizeof(T);
  if (in_words && sorted.may_access(kVec)) return detail::scatter_ordered<kVec>(ctx, sorted, given);
  return detail::scatter_ordered<1>(ctx, sorted, given);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SCATTER_SORTED_CUH_
