/// @file scatter_lines.cuh
/// @brief As `scatter_segments.cuh`, for elements that indices name side by side in memory: a line has all elements of a column, and its values.
///
/// The values of a line pass through shared memory, which a warp or a block reads in the order of memory; then each thread combines the segments of some
/// elements, neighbours of those of the threads beside it. All lines have the same segments, so a block finds these once where they are few.
#ifndef AIT_KERNELS_GPU_SCATTER_LINES_CUH_
#define AIT_KERNELS_GPU_SCATTER_LINES_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/gpu/multiprocessors.h"
#include "ait/kernels/gpu/scatter_sorted.cuh"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

namespace detail {

inline constexpr int kLineThreads = 256, kWideLineThreads = 1024;  ///< of a block whose warps have a line each, and of one that has a line
inline constexpr int kLineElements = 2048;                         ///< elements whose segments are in shared memory, at least
inline constexpr int kLineParts = 64;                              ///< the most parts of a line, of as many elements
inline constexpr int kLinePieces = 8;                              ///< pieces of a long segment

/// @brief How many sorted keys are below a key. A warp calls. In an order that is not sorted, some number from 0 to `length`.
template <class Places>
__device__ __forceinline__ uint32_t keys_below(const Places& sorted, uint32_t length, int64_t key) {
  const uint32_t lane = threadIdx.x % kWarpSize;
  uint32_t low = 0, high = length;
  while (low < high) {
    const uint32_t step = (high - low + kWarpSize - 1) / kWarpSize, left = (high - low - 1) / step;  // lanes up to `left` have a key
    const bool below = lane <= left && static_cast<int64_t>(sorted.key(low + lane * step)) < key;
    const int count = count_lanes(ballot(below));
    if (count == 0) return low;
    const uint32_t last = low + static_cast<uint32_t>(count - 1) * step;
    high = high - last > step ? last + step : high;
    low = last + 1;
  }
  return low;
}

/// @brief How lines are computed. A block has `elements` of a line at a time, and shared memory for `held` of their places.
struct LinePlan {
  int64_t lines;
  uint32_t targets, places;
  int elements, held;
  int bytes;      ///< of the values of a line in shared memory; 0 if there is no room, so that values are read where they are combined
  uint32_t most;  ///< places of a segment that is combined at once
  bool in_words;  ///< whether values of a line are read as words
};

/// @brief The segments of some neighbouring elements: where the places of each begin, and the places as far as there is room for them.
struct LineSegments {
  const GivenPlaces& given;
  uint32_t *begins, *places;
  uint32_t first, held;
  __device__ __forceinline__ uint32_t place(uint32_t i) const { return i - first < held ? places[i - first] : given.place(i); }
};
}  // namespace detail

/// Combines the values of lines: one for a warp, or, if `kWide`, for a block.
template <bool kWide, class Space, class Start, class Finish, class Out>
__global__ void __launch_bounds__(kWide ? detail::kWideLineThreads : detail::kLineThreads)
    scatter_lines_kernel(Space space, Start start, detail::GivenPlaces given, Finish finish, Out* out, detail::LinePlan plan) {
  using T = typename Space::Value;
  using Sum = typename Space::Sum;
  constexpr int kThreads = kWide ? detail::kWideLineThreads : detail::kLineThreads, kTeam = kWide ? kThreads : kWarpSize, kTeams = kThreads / kTeam;
  constexpr int kWord = 16 / sizeof(T) > 0 ? 16 / sizeof(T) : 1;
  constexpr int kAhead = kWide ? 6 : 4;  // elements that a thread reads before it combines the values of the first
  AIT_DYNAMIC_SHARED(16, scatter_lines);
  __shared__ uint32_t ends[detail::kLineParts + 1], long_in_block;
  wait_for_previous();
  allow_next();
  const int thread = threadIdx.x, lane = thread % kTeam;
  T* const values = reinterpret_cast<T*>(scatter_lines + static_cast<int64_t>(thread / kTeam) * plan.bytes);
  uint32_t* const begins = reinterpret_cast<uint32_t*>(scatter_lines + static_cast<int64_t>(kTeams) * plan.bytes);
  detail::LineSegments segments{given, begins, begins + plan.elements + 1, 0, 0};
  uint32_t here = 0;
  const uint32_t elements = plan.elements, parts = (plan.targets + elements - 1) / elements;
  for (uint32_t i = thread / kWarpSize; i <= parts; i += kThreads / kWarpSize) {
    const uint32_t found = detail::keys_below(given, given.length, i == parts ? plan.targets : int64_t(i) * elements);
    if (thread % kWarpSize == 0) ends[i] = found;
  }
  // Finds the segments of the elements of a part. All threads of a block call.
  const auto prepare = [&](uint32_t part) {
    __syncthreads();  // the segments of other elements have been read
    if (thread == 0) long_in_block = 0;
    const uint32_t from = part * elements, begin = ends[part], end = ends[part + 1] < begin ? begin : ends[part + 1];
    here = plan.targets - from < elements ? plan.targets - from : elements;
    const auto element = [&](uint32_t at) {
      const int64_t found = static_cast<int64_t>(given.key(at)) - from;
      return found < 0 ? 0u : found < here ? static_cast<uint32_t>(found) : here - 1;
    };
    segments.first = begin;
    segments.held = end - begin < static_cast<uint32_t>(plan.held) ? end - begin : plan.held;
    for (uint32_t e = thread; e <= here; e += kThreads) begins[e] = begin;
    __syncthreads();
    for (uint32_t at = begin + thread; at <= end; at += kThreads) {
      const uint32_t last = at == end ? here : element(at);
      for (uint32_t e = at == begin ? 0 : element(at - 1) + 1; e <= last; ++e) begins[e] = at;
      if (at - begin < segments.held) segments.places[at - begin] = given.place(at);
    }
    __syncthreads();
  };
  int64_t dense = 0;
  const auto combine = [&](uint32_t next, uint32_t end, bool& begun, Sum& sum) {
    for (uint32_t i = next; i < end; ++i) {
      const uint32_t place = segments.place(i);
      if ((place & detail::kSkipped<uint32_t>) != 0) continue;
      T value[1];
      if (kWide && plan.bytes == 0) {
        detail::load_values<1>(space.values, dense + place, value);
      } else {
        value[0] = values[place];
      }
      const Sum one = convert<Sum>(value[0]);
      sum = begun ? Space::Combine::template apply<Sum>(sum, one) : one;
      begun = true;
    }
  };
  if (parts == 1) prepare(0);
  for (int64_t line = static_cast<int64_t>(blockIdx.x) * kTeams + thread / kTeam; line < plan.lines; line += static_cast<int64_t>(gridDim.x) * kTeams) {
    int64_t whole = 0, from = 0, column[Space::kFree];
    dense = 0;
    space.template step<Space::kSerial + Space::kKeyed, Space::kFree>(line, dense, whole);
    coordinates<Space::kFree>(line, space.space.sizes + Space::kSerial + Space::kKeyed, column);
#pragma unroll
    for (int d = 0; d < Space::kFree; ++d) from += column[d] * start.strides[d];
    if constexpr (kWide) {
      __syncthreads();  // the values of the line before have been read
      if (thread == 0) long_in_block = 0;
    } else {
      sync_warp();
    }
    if (kWide && plan.bytes == 0) {
      // read where they are combined
    } else if (!Space::kComputed && plan.in_words) {
#pragma unroll 4
      for (uint32_t i = lane * kWord; i < plan.places; i += kTeam * kWord) {
        T word[kWord];
        detail::load_values<kWord>(space.values, dense + i, word);
        store<kWord, false>(values + i, word);
      }
    } else {
#pragma unroll 8
      for (uint32_t i = lane; i < plan.places; i += kTeam) {
        T value[1];
        detail::load_values<1>(space.values, dense + i, value);
        values[i] = value[0];
      }
    }
    if constexpr (!kWide) sync_warp();
    for (uint32_t part = 0, first = 0; part < parts; ++part, first += elements) {
      if (kWide && parts > 1) {
        prepare(part);
      } else if constexpr (kWide) {
        __syncthreads();
      }
      bool has_long = false;
      for (uint32_t e = lane; e < here; e += kTeam * kAhead) {
        // In steps, so that what several elements read is on its way together.
        T own[kAhead];
        Sum sums[kAhead][1];
        Out results[kAhead][1];
        bool counts[kAhead];
#pragma unroll
        for (int u = 0; u < kAhead; ++u) {
          counts[u] = e + u * kTeam < here;
          if (counts[u]) own[u] = start.from[from + (first + e + u * kTeam) * start.steps[0]];
        }
#pragma unroll
        for (int u = 0; u < kAhead; ++u) {
          if (!counts[u]) continue;
          const uint32_t next = begins[e + u * kTeam], end = begins[e + u * kTeam + 1];
          sums[u][0] = convert<Sum>(own[u]);
          bool begun = true;
          if (next < end && end - next > plan.most) {
            has_long = true;
            counts[u] = false;
          } else {
            combine(next, end, begun, sums[u][0]);
          }
        }
#pragma unroll
        for (int u = 0; u < kAhead; ++u) {
          if (counts[u]) finish.apply(whole + first + e + u * kTeam, sums[u], results[u]);
        }
#pragma unroll
        for (int u = 0; u < kAhead; ++u) {
          if (counts[u]) out[whole + first + e + u * kTeam] = results[u][0];
        }
      }
      // A warp combines long segments: eight lanes have a piece each.
      if constexpr (kWide) {
        if (has_long) atomicOr(&long_in_block, 1u);
        __syncthreads();
        if (long_in_block == 0) continue;
      } else {
        if (ballot(has_long) == 0) continue;
      }
      const uint32_t warp = lane / kWarpSize, own = lane % kWarpSize;
      for (uint32_t e = warp; e < here; e += kTeam / kWarpSize) {
        const uint32_t next = begins[e], end = begins[e + 1];
        if (next >= end || end - next <= plan.most) continue;
        const uint32_t each = (end - next + detail::kLinePieces - 1) / detail::kLinePieces;
        const uint32_t before = own * each < end - next ? own * each : end - next, left = end - next - before;
        Sum sum = {};
        bool begun = own == 0;
        if (begun) sum = convert<Sum>(start.from[from + (first + e) * start.steps[0]]);
        if (own < detail::kLinePieces) combine(next + before, next + before + (left < each ? left : each), begun, sum);
        Sum sums[1] = {sum};
        for (int piece = 1; piece < detail::kLinePieces; ++piece) {
          const Sum other = detail::ScatterPart<1, Space>::of_lane(sum, piece);
          const bool counts = (ballot(begun) >> piece & 1) != 0;
          if (counts) sums[0] = Space::Combine::template apply<Sum>(sums[0], other);
        }
        if (own == 0) {
          Out result[1];
          const int64_t to = whole + first + e;
          finish.apply(to, sums, result);
          out[to] = result[0];
        }
      }
    }
  }
}

namespace detail {
/// @brief Combines values in lines, if there are many of short segments.
/// @param most places of a segment that is combined at once
/// @param fits becomes whether it has
template <class Space, class Start, class Finish, class Out>
int32_t scatter_lines(const Context& ctx, const Space& space, const Start& start, const GivenPlaces& given, const Finish& finish, Out* out, uint32_t most,
                      bool& fits) {
  using T = typename Space::Value;
  constexpr int64_t kFewLines = 64, kLongSegments = 32, kWarpBytes = 8 * 1024;
  constexpr int kLast = Space::kSerial + Space::kKeyed + Space::kFree - 1, kWord = 16 / sizeof(T) > 0 ? 16 / sizeof(T) : 1;
  const int64_t places = space.places(), targets = space.targets(), lines = space.columns();
  static_assert(Space::kSerial == 1 && Space::kNumbers == 1, "a line has one loop of places and one of elements");
  fits = lines >= kFewLines && places <= kLongSegments * targets;
  LinePlan plan = {};
  plan.lines = lines;
  plan.targets = static_cast<uint32_t>(targets);
  plan.places = static_cast<uint32_t>(places);
  plan.most = most;
  constexpr int64_t kOthers = 1024 + 2 * kLineElements * static_cast<int64_t>(sizeof(uint32_t));
  const int64_t limit = shared_limit(), of_line = (places * static_cast<int64_t>(sizeof(T)) + 15) / 16 * 16;
  const int64_t bytes = of_line + kOthers <= limit ? of_line : 0;
  const bool wide = of_line > kWarpBytes || targets > kLineElements;
  const int teams = wide ? 1 : kLineThreads / kWarpSize;
  const auto shared_for = [&](int64_t elements) {
    plan.elements = static_cast<int>(targets < elements ? targets : elements);
    plan.held = static_cast<int>(places < elements ? places : elements);
    return teams * bytes + (plan.elements + 1 + plan.held) * static_cast<int64_t>(sizeof(uint32_t)) + 1024;
  };
  int64_t elements = kLineElements;
  while (elements < targets && shared_for(2 * elements) <= limit) elements *= 2;
  const int64_t shared = shared_for(elements);
  fits = fits && shared <= limit && targets <= kLineParts * elements;
  if (!fits) return 0;
  plan.bytes = static_cast<int>(bytes);
  plan.in_words = address_of(space.values) % 16 == 0;
  for (int d = Space::kSerial + Space::kKeyed; d <= kLast; ++d) plan.in_words = plan.in_words && space.space.dense_strides[d] % kWord == 0;
  plan.in_words = plan.in_words && places % kWord == 0;
  LaunchConfig config;
  config.block = dim3(wide ? kWideLineThreads : kLineThreads);
  config.shared_bytes = static_cast<uint32_t>(shared);
  config.dependent = true;
  const int64_t blocks = (lines + teams - 1) / teams, most_blocks = int64_t(multiprocessors()) * 8;
  config.grid = dim3(grid_size(blocks < most_blocks ? blocks : most_blocks));
  if (wide) return launch(ctx, config, scatter_lines_kernel<true, Space, Start, Finish, Out>, space, start, given, finish, out, plan);
  return launch(ctx, config, scatter_lines_kernel<false, Space, Start, Finish, Out>, space, start, given, finish, out, plan);
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SCATTER_LINES_CUH_
