/// @file scatter_segments.cuh
/// @brief Values combined with elements of a tensor by index, whose places `ait.order` has sorted: every element of the result is written once, also
/// those that no place names.
///
/// The places of an element are neighbours in the order: its segment. A block has some neighbouring elements, all columns or a part of them. Two of its
/// warps find the first and the last place of these elements by search, then all threads write where each segment begins to shared memory. Groups of
/// lanes read the values of a segment together, and combine them in order. The warps of a block combine the pieces of a long segment, and join what
/// they have in the order of the pieces: how many places are long follows from the numbers of places and elements, so each run has the same bits.
#ifndef AIT_KERNELS_GPU_SCATTER_SEGMENTS_CUH_
#define AIT_KERNELS_GPU_SCATTER_SEGMENTS_CUH_

#include <stdint.h>
#include <string.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/scatter_lines.cuh"
#include "ait/kernels/gpu/scatter_sorted.cuh"

namespace ait::gpu {

namespace detail {

inline constexpr int kSegmentThreads = 256, kSegmentWarps = kSegmentThreads / kWarpSize;
inline constexpr int kMostSegments = 256;    ///< elements of a block, for each part of the columns
inline constexpr int kSegmentBlocks = 2048;  ///< blocks of a large tensor, at least
inline constexpr int kFewSegments = 1024;    ///< below, a block has one element, if segments are long on average
inline constexpr int kPieces = 8;            ///< pieces of a long segment
inline constexpr int64_t kPlacesOfFew = 32, kPlacesOfMany = 256;  ///< places of the longest segment that one warp combines, at least

/// @brief Blocks on a multiprocessor: as many as the registers of short segments allow.
template <int kVec, class Sum>
inline constexpr int kSegmentResident = kVec * sizeof(Sum) <= 16 ? 3 : 2;

/// @brief The tensor whose elements the values are combined with: the steps of its indices, and those of the columns.
template <class T, int kIndices, int kFree>
struct SegmentStart {
  const T* from;
  int64_t steps[kIndices], strides[kFree];
  bool in_words;  ///< whether neighbouring columns are read as words
};

/// @brief How a launch is cut: a block has `elements` of the result, and `sharing` groups of lanes read a segment together. Segments of more than `most`
/// places are combined in pieces.
struct SegmentShape {
  int64_t targets;
  int elements, sharing;
  uint32_t most;
};

/// @brief The places of the longest segment that is combined at once, for so many elements and places.
inline uint32_t most_places(int64_t targets, int64_t places) {
  if (targets < kFewSegments && places > kPlacesOfFew * targets) return kPlacesOfFew;
  const int64_t usual = places / targets;
  return static_cast<uint32_t>(8 * usual < kPlacesOfMany ? kPlacesOfMany : 8 * usual);
}

/// @brief A word of values of another lane.
template <int kVec, class T>
__device__ __forceinline__ void values_of_lane(const T (&values)[kVec], int lane, T (&found)[kVec]) {
  constexpr int kBytes = kVec * static_cast<int>(sizeof(T)), kWords = kBytes / 4;
  if constexpr (kWords == 0) {
    static_assert(kVec == 1, "a word has four bytes, or one value");
    found[0] = bit_cast<T>(static_cast<word_t<sizeof(T)>>(shuffle(static_cast<uint32_t>(bit_cast<word_t<sizeof(T)>>(values[0])), lane)));
  } else {
    uint32_t words[kWords];
    memcpy(words, values, kBytes);
#pragma unroll
    for (int w = 0; w < kWords; ++w) words[w] = shuffle(words[w], lane);
    memcpy(found, words, kBytes);
  }
}

/// @brief The elements of one part of the columns that a warp computes.
template <int kVec, class Space>
struct SegmentPart : ScatterPart<kVec, Space> {
  using Base = ScatterPart<kVec, Space>;
  using typename Base::A;
  using typename Base::T;
  using Base::kAhead;
  using Start = SegmentStart<T, Space::kNumbers, Space::kFree>;
  int64_t start = 0;

  __device__ __forceinline__ SegmentPart(const Space& of, const Start& from, int64_t part, const ScatterParts& cut) : Base(of, 0, part, cut) {
    int64_t column[Space::kFree];
    coordinates<Space::kFree>((part * cut.lanes + this->lane) * kVec, of.space.sizes + Space::kSerial + Space::kKeyed, column);
#pragma unroll
    for (int d = 0; d < Space::kFree; ++d) start += column[d] * from.strides[d];
  }

  /// @brief The elements that the values of a target are combined with.
  __device__ __forceinline__ void begin(const Start& from, int64_t target, A (&sums)[kVec]) const {
    int64_t index[Space::kNumbers], at = start;
    coordinates<Space::kNumbers>(target, this->space.space.extents, index);
#pragma unroll
    for (int k = 0; k < Space::kNumbers; ++k) at += index[k] * from.steps[k];
    T own[kVec];
    if (from.in_words) {
      load<kVec>(from.from + at, own);
    } else {
#pragma unroll
      for (int j = 0; j < kVec; ++j) own[j] = from.from[at + j * from.strides[Space::kFree - 1]];
    }
#pragma unroll
    for (int j = 0; j < kVec; ++j) sums[j] = convert<A>(own[j]);
  }

  /// @brief Combines the values of the places from `next` to `end` of a segment. A warp calls, with a segment for each `sharing` groups.
  /// @param begun whether `sums` has values; else the first one is taken as it is
  template <class Places>
  __device__ __forceinline__ void combine(const Places& sorted, uint32_t next, uint32_t end, int sharing, bool& begun, A (&sums)[kVec]) const {
    const int own = this->group % sharing, first = threadIdx.x % kWarpSize - own * this->lanes;
    for (; ballot(next < end) != 0; next = end - next > static_cast<uint32_t>(kAhead * sharing) ? next + kAhead * sharing : end) {
      T values[kAhead][kVec];
      lanes_t counted[kAhead];
      uint32_t places[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const uint32_t left = end - next, step = static_cast<uint32_t>(u * sharing + own);
        places[u] = step < left ? sorted.place(next + step) : kSkipped<uint32_t>;
        counted[u] = ballot((places[u] & kSkipped<uint32_t>) == 0);
      }
      // Values that are computed read memory several times: none has a condition of its own, so that they wait for memory together.
      if (this->present && next < end) {
#pragma unroll
        for (int u = 0; u < kAhead; ++u) {
          if (Space::kComputed || (places[u] & kSkipped<uint32_t>) == 0) this->read(places[u] & ~kSkipped<uint32_t>, values[u]);
        }
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        if (counted[u] == 0) continue;
        for (int g = 0; g < sharing; ++g) {
          const int from = first + g * this->lanes;
          T value[kVec];
          if (sharing > 1) {
            values_of_lane<kVec>(values[u], from, value);
          } else {
#pragma unroll
            for (int j = 0; j < kVec; ++j) value[j] = values[u][j];
          }
          if ((counted[u] >> from & 1) == 0) continue;
#pragma unroll
          for (int j = 0; j < kVec; ++j) {
            const A one = convert<A>(value[j]);
            sums[j] = begun ? Space::Combine::template apply<A>(sums[j], one) : one;
          }
          begun = true;
        }
      }
    }
  }
};

/// @brief A result as it is combined.
struct PlainSegments {
  template <class A, class T, int kVec>
  __device__ __forceinline__ void apply(int64_t, const A (&sums)[kVec], T (&result)[kVec]) const {
#pragma unroll
    for (int j = 0; j < kVec; ++j) result[j] = convert<T>(sums[j]);
  }
};
}  // namespace detail

template <int kVec, class Space, class Start, class Finish, class Out>
__global__ void __launch_bounds__(detail::kSegmentThreads, (detail::kSegmentResident<kVec, typename Space::Sum>))
    scatter_segments_kernel(Space space, Start start, detail::GivenPlaces given, Finish finish, Out* out, detail::SegmentShape shape, detail::ScatterParts cut) {
  using Sum = typename Space::Sum;
  __shared__ uint32_t begins[detail::kMostSegments + 1], ends[2], has_long;
  alignas(16) __shared__ unsigned char joined[detail::kPieces * kVec * kWarpSize * sizeof(Sum)];
  __shared__ bool begun_pieces[detail::kPieces];
  wait_for_previous();
  allow_next();
  const int thread = threadIdx.x, warp = thread / kWarpSize;
  const int64_t part = static_cast<int64_t>(blockIdx.x) % cut.parts, first = static_cast<int64_t>(blockIdx.x) / cut.parts * shape.elements;
  const int here = shape.targets - first < shape.elements ? static_cast<int>(shape.targets - first) : shape.elements;
  if (warp < 2) {
    const uint32_t found = detail::keys_below(given, given.length, first + (warp == 0 ? 0 : here));
    if (thread % kWarpSize == 0) ends[warp] = found;
  }
  for (int i = thread; i <= here; i += detail::kSegmentThreads) begins[i] = 0;
  if (thread == 0) has_long = 0;
  __syncthreads();
  const uint32_t from = ends[0], to = ends[1] < from ? from : ends[1];
  // A place begins the segments of the elements after that of the place before it, up to its own.
  const auto element = [&](uint32_t at) {
    const int64_t found = static_cast<int64_t>(given.key(at)) - first;
    return found < 0 ? 0 : found < here ? static_cast<int>(found) : here - 1;
  };
  for (uint32_t at = from + thread; at <= to; at += detail::kSegmentThreads) {
    const int last = at == to ? here : element(at);
    for (int e = at == from ? 0 : element(at - 1) + 1; e <= last; ++e) begins[e] = at;
  }
  __syncthreads();
  const detail::SegmentPart<kVec, Space> columns(space, start, part, cut);
  const int beside = columns.groups / shape.sharing;
  for (int e = warp * beside; e < here; e += detail::kSegmentWarps * beside) {
    const int own = e + columns.group / shape.sharing;
    const bool there = own < here;
    const int64_t target = first + (there ? own : here - 1);
    Sum sums[kVec] = {};
    bool begun = true;
    const uint32_t next = there ? begins[own] : 0, end = there ? begins[own + 1] : 0;
    const bool is_long = next < end && end - next > shape.most;
    if (is_long) atomicOr(&has_long, 1u);
    if (there && !is_long && columns.present) columns.begin(start, target, sums);
    columns.combine(given, next < end && !is_long ? next : end, end, shape.sharing, begun, sums);
    if (!there || is_long || !columns.present || columns.group % shape.sharing != 0) continue;
    const int64_t at = columns.whole + space.whole_of_target(target);
    Out result[kVec];
    finish.apply(at, sums, result);
    store<kVec>(out + at, result);
  }
  __syncthreads();
  if (has_long == 0) return;
  Sum* const of_lane = reinterpret_cast<Sum*>(joined) + thread % kWarpSize;  // of each piece and neighbour
  for (int e = 0; e < here; ++e) {
    const uint32_t next = begins[e], end = begins[e + 1];
    if (next >= end || end - next <= shape.most) continue;
    const uint32_t each = (end - next + detail::kPieces - 1) / detail::kPieces;
    for (int piece = warp; piece < detail::kPieces; piece += detail::kSegmentWarps) {
      const uint32_t before = end - next < piece * each ? end - next : piece * each, left = end - next - before;
      Sum sums[kVec] = {};
      bool begun = piece == 0;
      if (begun && columns.present) columns.begin(start, first + e, sums);
      columns.combine(given, next + before, next + before + (left < each ? left : each), columns.groups, begun, sums);
#pragma unroll
      for (int j = 0; j < kVec; ++j) of_lane[(piece * kVec + j) * kWarpSize] = sums[j];
      if (thread % kWarpSize == 0) begun_pieces[piece] = begun;
    }
    __syncthreads();
    if (warp == 0 && columns.present && columns.group == 0) {
      Sum sums[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) sums[j] = of_lane[j * kWarpSize];
      for (int piece = 1; piece < detail::kPieces; ++piece) {
        if (!begun_pieces[piece]) continue;
#pragma unroll
        for (int j = 0; j < kVec; ++j) sums[j] = Space::Combine::template apply<Sum>(sums[j], of_lane[(piece * kVec + j) * kWarpSize]);
      }
      const int64_t at = columns.whole + space.whole_of_target(first + e);
      Out result[kVec];
      finish.apply(at, sums, result);
      store<kVec>(out + at, result);
    }
    __syncthreads();
  }
}

namespace detail {
template <int kVec, class Space, class Start, class Finish, class Out>
int32_t scatter_segments(const Context& ctx, const Space& space, const Start& start, const GivenPlaces& given, const Finish& finish, Out* out) {
  const ScatterParts cut = scatter_parts<kVec>(space);
  SegmentShape shape{space.targets(), 1, 1, 0};
  const int groups = kWarpSize / cut.lanes;
  constexpr int kAhead = ScatterPart<kVec, Space>::kAhead;
  while (shape.sharing < groups && shape.targets * shape.sharing * kAhead < given.length) shape.sharing *= 2;
  shape.most = most_places(shape.targets, given.length);
  if (shape.most > kPlacesOfFew) {
    // Few elements in a block, so that the blocks of a small tensor fill the card; more where each block then searches less often.
    shape.elements = kSegmentWarps * (groups / shape.sharing);
    while (2 * shape.elements <= kMostSegments && shape.targets * cut.parts >= 2 * shape.elements * kSegmentBlocks) shape.elements *= 2;
  }
  LaunchConfig config;
  config.block = dim3(kSegmentThreads);
  config.grid = dim3(grid_size((shape.targets + shape.elements - 1) / shape.elements * cut.parts));
  config.dependent = true;
  return launch(ctx, config, scatter_segments_kernel<kVec, Space, Start, Finish, Out>, space, start, given, finish, out, shape, cut);
}
}  // namespace detail

/// @brief The result of `scatter_ordered` (`scatter_sorted.cuh`) in a tensor of its own, of which all elements are written. The columns of the space are
/// those of the whole tensor.
/// @param x the tensor whose elements the values are combined with; `x_steps` and `x_strides` step along its indices and along the columns
/// @param finish computes neighbouring elements of the result from what is combined, and from their offset in the result
/// @tparam kLines whether indices name elements, and values have places, side by side in memory
template <class Kind, int kSerial, int kKeyed, bool kLines, int kRank, int kIndices, class Id, class T, class Source, class Finish, class Out>
int32_t scatter_segments(const Context& ctx, const IndexedSpace<kRank, kIndices, Id>& space, const Source& values, const T* x,
                         const int64_t (&x_steps)[kIndices], const int64_t (&x_strides)[kRank - kSerial - kKeyed], Out* out, const int32_t* keys,
                         const int32_t* places, const Finish& finish, bool in_words = true) {
  const ScatterSpace<Kind, kSerial, kKeyed, kRank, kIndices, Id, T, Source> segments{space, values, nullptr};
  constexpr int kFree = kRank - kSerial - kKeyed;
  detail::SegmentStart<T, kIndices, kFree> start{};
  start.from = x;
  for (int k = 0; k < kIndices; ++k) start.steps[k] = x_steps[k];
  for (int d = 0; d < kFree; ++d) start.strides[d] = x_strides[d];
  const int64_t count = segments.places(), targets = segments.targets();
  if (targets <= 0 || segments.columns() <= 0) return 0;
  if (count > INT32_MAX || targets > INT32_MAX) return ctx.fail("scatter: an order of more than 2^31 - 1 places");
  const detail::GivenPlaces given{reinterpret_cast<const uint32_t*>(keys), reinterpret_cast<const uint32_t*>(places), static_cast<uint32_t>(targets),
                                  static_cast<uint32_t>(count)};
  if constexpr (kLines) {
    bool fits = false;
    const int32_t status = detail::scatter_lines(ctx, segments, start, given, finish, out, detail::most_places(targets, count), fits);
    if (fits) return status;
  }
  constexpr int kVec = kLines ? 1 : 16 / sizeof(T);  // columns of lines lie apart
  if (kVec > 1 && in_words && segments.may_access(kVec) && reinterpret_cast<uintptr_t>(out) % kAccessBytes<Out, kVec> == 0) {
    start.in_words = start.strides[kFree - 1] == 1 && reinterpret_cast<uintptr_t>(x) % (kVec * sizeof(T)) == 0;
    for (int d = 0; d < kFree - 1; ++d) start.in_words = start.in_words && start.strides[d] % kVec == 0;
    for (int k = 0; k < kIndices; ++k) start.in_words = start.in_words && start.steps[k] % kVec == 0;
    return detail::scatter_segments<kVec>(ctx, segments, start, given, finish, out);
  }
  return detail::scatter_segments<1>(ctx, segments, start, given, finish, out);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SCATTER_SEGMENTS_CUH_
