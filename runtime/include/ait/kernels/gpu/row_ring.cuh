/// @file row_ring.cuh
/// @brief Norms and softmax of many rows by blocks that stay: rows pass through a ring in shared memory, and factors lie beside it.
///
/// A row belongs to a warp, or to the blocks of a cluster where it is long. Each thread copies its chunks of the rows to come into the places of
/// those that it has just stored, so that memory is read while rows are reduced and stored. All rows of a block begin equally far from a
/// boundary, so that scale and bias are shifted once.
#ifndef AIT_KERNELS_GPU_ROW_RING_CUH_
#define AIT_KERNELS_GPU_ROW_RING_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/exchange.cuh"
#include "ait/kernels/gpu/ring_policies.cuh"
#include "ait/kernels/gpu/row_group.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief How rows of one length pass through the shared memory of a block.
struct RingPlan {
  int cluster;  ///< blocks that share a row; 0: these rows do not pass through a ring
  int group;    ///< threads of a block that share a row
  int groups;   ///< rows of a block at a time
  int turns;    ///< chunks of a row that a thread has
  int places;   ///< chunks that a thread has room for

  constexpr int threads() const { return group * groups; }
};

namespace detail {
/// Shared memory of a block on the architectures that have clusters.
inline constexpr int kRingBytes = 227 * 1024;

/// What the warps of a cluster tell each other of two rows.
constexpr int exchange_bytes(int cluster, int group) { return cluster * (group / kWarpSize) * 2 * 16; }

/// Less of a row than this is read sooner than two blocks have told each other what they know of it.
inline constexpr int64_t kExchangeBytes = 64 * 1024;

/// The plan with as many places as there is room for: as many as two rows and a half need let one row be stored while the next is reduced and the one
/// after it read.
constexpr RingPlan fill_ring(RingPlan plan, int chunk_bytes, int factor_bytes) {
  const int free = kRingBytes - exchange_bytes(plan.cluster, plan.group) - plan.turns * plan.group * factor_bytes;
  plan.places = free > 0 ? free / (plan.group * plan.groups * chunk_bytes) : 0;
  return plan;
}

/// Rows of so many chunks in the hands of blocks, each of which has some of them in so many turns; no plan if that takes more than `most_threads`.
constexpr RingPlan plan_blocks(int cluster, int64_t chunks, int64_t turns, int most_threads, int chunk_bytes, int factor_bytes) {
  const int64_t own = (chunks + cluster - 1) / cluster;
  const int group = static_cast<int>(((own + turns - 1) / turns + kWarpSize - 1) / kWarpSize * kWarpSize);
  if (group > most_threads) return RingPlan{0, 0, 0, 0, 0};
  const RingPlan plan = fill_ring(RingPlan{cluster, group, 1, static_cast<int>(turns), 0}, chunk_bytes, factor_bytes);
  return 2 * plan.places >= 5 * turns ? plan : RingPlan{0, 0, 0, 0, 0};
}

/// Rows of so many chunks, of which each has `chunk_bytes` and needs `factor_bytes` of factors. Blocks that tell each other what they know have few
/// threads, since each warp reads what all warps know; and more than two blocks share a row only where one could not hold it, and it has no edges.
constexpr RingPlan plan_ring(int64_t chunks, int chunk_bytes, int factor_bytes, bool edges) {
  if (chunks <= 1100) {  // a warp has a row
    const int turns = static_cast<int>((chunks + kWarpSize - 1) / kWarpSize);
    const RingPlan plan = fill_ring(RingPlan{1, kWarpSize, chunks <= 640 ? 16 : 8, turns, 0}, chunk_bytes, factor_bytes);
    if (4 * plan.places >= 5 * plan.turns) return plan;
  }
  if (chunks <= 4 * 1024) {
    const RingPlan plan = plan_blocks(1, chunks, (chunks + 1023) / 1024, 1024, chunk_bytes, factor_bytes);
    if (plan.cluster > 0) return plan;
  }
  const int64_t bytes = chunks * chunk_bytes;
  const int most = bytes < kExchangeBytes ? 1 : bytes <= kRingBytes || edges ? 2 : 8;
  for (int cluster = 2; cluster <= most; cluster *= 2) {
    for (int threads = 512; threads <= 1024; threads *= 2) {
      for (int turns = 4; turns <= 8; turns *= 2) {
        const RingPlan plan = plan_blocks(cluster, chunks, turns, threads, chunk_bytes, factor_bytes);
        if (plan.cluster > 0) return plan;
      }
    }
  }
  return RingPlan{0, 0, 0, 0, 0};
}

/// The rows of `kLength` elements are cut at sectors of memory.
inline constexpr size_t kRingBoundary = 32;

template <int kVec, Cut kCut, int64_t kLengthOf, int kIns, int kFactors>
struct RingOf {
  static constexpr int64_t kLength = kLengthOf;
  static constexpr RingPlan value = plan_ring(chunks_of<kVec, kCut>(kLengthOf, kRingBoundary / 16), 16 * kIns, 16 * kFactors, kCut != Cut::whole);
};

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
      memcpy(&to, &word, 16);
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
      if (row.edge(0) >= 0) edge[kSlot] = row.template compute<true, 1>(row.template take<1>(edge_reads.reads[0], InIndices{}), row.edge(0));
    }
    int place = first_place;
    const auto some = [&](auto index) {
      constexpr int kFirst = decltype(index)::value * kPart, kEnd = kFirst + kPart < kTurns ? kFirst + kPart : kTurns;
      copy_async_wait<kPlaces - (kWarps ? 0 : kTurns) - kEnd>();
#pragma unroll
      for (int turn = kFirst; turn < kEnd; ++turn, place = next(place)) {
        if (!has(turn)) continue;
        policy.add(own, row.template compute<true, kVec>(take(place, InIndices{}), row.start(number(turn))).v, turn);
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
      memcpy(&word, &elements, 16);
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
        row.write(get<0>(row.outs), row.start(number(turn)), chunk);
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
        row.write(get<0>(row.outs), row.edge(0), y);
      }
    }
    advance(get<0>(row.outs), step);
  }
  __device__ __forceinline__ void factors_of(int which, int turn, float (&to)[kVec]) const {
    S elements[kVec];
    const uint4 word = factors[(which * kTurns + turn) * kPlan.group];
    memcpy(&elements, &word, 16);
    convert_all(elements, to);
  }
};
}  // namespace detail

/// Blocks stay: a warp, or a cluster, has the rows `step` apart from its first.
template <class F, class Plan, int kVec, detail::Cut kCut, class Policy, class Ins, class Outs>
__global__ void __launch_bounds__(Plan::value.threads(), 1) row_ring_kernel(int64_t rows, int length, Ins ins, Outs outs, Policy policy) {
  using R = detail::RingRow<F, Plan, kVec, kCut, Policy, Ins, Outs>;
  using Part = typename Policy::Part;
  constexpr RingPlan kPlan = Plan::value;
  constexpr int kThreads = R::kThreads, kWarpsOfRow = kPlan.group / kWarpSize, kParts = kWarpsOfRow * kPlan.cluster;
  AIT_DYNAMIC_SHARED(16, ring_shared);
  uint4* shared = reinterpret_cast<uint4*>(ring_shared);
  const int rank = blockIdx.x % kPlan.cluster, thread = threadIdx.x % kPlan.group;
  R row;
  row.row.lane = rank * kPlan.group + thread;
  row.ring = shared + threadIdx.x;
  row.factors = shared + Ins::kSize * kPlan.places * kThreads + thread;
  float4* exchange = reinterpret_cast<float4*>(row.factors - thread + R::kFactors * kPlan.turns * kPlan.group);
  wait_for_previous();
  allow_next();
  const int64_t blocks = gridDim.x / kPlan.cluster, step = blocks * kPlan.groups;
  const int64_t first = blockIdx.x / kPlan.cluster + blocks * (threadIdx.x / kPlan.group);
  row.begin(ins, outs, first < rows ? first : 0, first < rows ? (rows - 1 - first) / step + 1 : 0, step, length);
  row.keep_factors(policy);
  const float all = static_cast<float>(length);
  float warp_count = row.count();
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) warp_count += shuffle_xor(warp_count, mask);
  if constexpr (R::kWarps) {
    for (int64_t index = first; index < rows; index += step) {
      const Part own[1] = {row.template read<0>(policy, index + step < rows)};
      row.template finish<0>(policy, policy.result(policy.join(own, all), all));
    }
  } else {
    constexpr int kPartsOfLane = (kParts + kWarpSize - 1) / kWarpSize;
    const auto publish = [&](const Part& of_thread, int slot) {
      const Part own[1] = {of_thread}, joined = policy.join(own, warp_count);
      const int to = thread % kWarpSize, from = rank * kWarpsOfRow + thread / kWarpSize;
      if (to < kPlan.cluster) store_cluster_float4(shared_address(exchange + slot * kParts + from), to, joined.packed());
      cluster_arrive();
    };
    const auto collect = [&](int slot) {
      Part parts[kPartsOfLane];
#pragma unroll
      for (int p = 0; p < kPartsOfLane; ++p) {
        const int part = p * kWarpSize + thread % kWarpSize;
        if (part >= kParts) continue;
        parts[p] = Part(exchange[slot * kParts + part]);
      }
      return policy.join(parts, all);
    };
    if (first >= rows) return;  // all blocks of the cluster
    cluster_barrier();          // before a block writes to one that has not begun
    publish(row.template read<0>(policy, first + step < rows), 0);
    const auto turn = [&](auto slot, int64_t index) {
      constexpr int kSlot = decltype(slot)::value;
      const bool more = index + step < rows;
      Part next_row;
      if (more) next_row = row.template read<1 - kSlot>(policy, index + 2 * step < rows);
      cluster_wait();
      const Part total = collect(kSlot);
      if (more) publish(next_row, 1 - kSlot);
      row.template finish<kSlot>(policy, policy.result(total, all));
    };
    for (int64_t index = first; index < rows; index += 2 * step) {
      turn(std::integral_constant<int, 0>{}, index);
      if (index + step < rows) turn(std::integral_constant<int, 1>{}, index + step);
    }
  }
}

namespace detail {
/// How many clusters of `config` of this kernel the current device runs at once; 0 where it does not say.
template <class... Params>
int resident_clusters(const LaunchConfig& config, void (*kernel)(Params...)) {
  const int most = multiprocessors() / static_cast<int>(config.cluster);
  if (config.cluster == 1 || most == 0) return most;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = config.cluster, attribute.val.clusterDim.y = 1, attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t launch_config = {};
  launch_config.gridDim = dim3(config.cluster), launch_config.blockDim = config.block, launch_config.dynamicSmemBytes = config.shared_bytes;
  launch_config.attrs = &attribute, launch_config.numAttrs = 1;
  int count = 0;
  const auto* function = reinterpret_cast<const void*>(kernel);
  if (cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(config.shared_bytes)) != kSuccess ||
      cudaOccupancyMaxActiveClusters(&count, function, &launch_config) != kSuccess) {
    (void)take_error();
    return 0;
  }
  return count < most ? count : most;
}

/// Rows that lie as many elements behind a boundary again, at most.
template <class Op>
bool steps_evenly(const Op& operand, int64_t rows_apart) {
  constexpr int64_t kSector = kRingBoundary / sizeof(typename Op::Value);
  return operand.strides[0] * rows_apart % kSector == 0;
}

/// Launches what is done with rows where they pass through a ring; `done` says whether they do.
template <class F, int kVec, Cut kCut, int64_t kLength, class Policy, class... Ins, size_t... I, class... Outs, size_t... O>
int32_t launch_ring(const Context& ctx, int64_t rows, const Pack<Ins...>& ins, std::index_sequence<I...>, const Pack<Outs...>& outs,
                    std::index_sequence<O...>, const Policy& of_rows, bool& done) {
  using Out = std::decay_t<decltype(get<0>(outs))>;
  using OfRing = RingPolicy<Policy, is_narrow_float<typename Out::Value>>;
  constexpr bool kWords = ((Ins::kInner == Inner::unit && sizeof(typename Ins::Value) * kVec == 16) && ...) &&
                          sizeof(typename OfRing::Factor) * kVec == 16 && sizeof(typename Out::Value) * kVec == 16 &&
                          std::is_same<typename Out::Compute, float>::value;
  if constexpr (kHasClusters && kWords) {
    using Plan = RingOf<kVec, kCut, kLength, static_cast<int>(sizeof...(Ins)), OfRing::kFactors>;
    constexpr RingPlan kPlan = Plan::value;
    if constexpr (kPlan.cluster > 0) {
      const auto kernel = row_ring_kernel<F, Plan, kVec, kCut, OfRing, Pack<Ins...>, Pack<Outs...>>;
      const OfRing policy(of_rows);
      LaunchConfig config;
      config.block = dim3(static_cast<uint32_t>(kPlan.threads()));
      config.cluster = kPlan.cluster;
      config.dependent = true;
      config.shared_bytes = static_cast<uint32_t>(16 * kPlan.threads() * kPlan.places * sizeof...(Ins) + 16 * kPlan.group * kPlan.turns * OfRing::kFactors +
                                                  exchange_bytes(kPlan.cluster, kPlan.group));
      if (config.shared_bytes > shared_limit() || !policy.fits()) return 0;
      static const int together = resident_clusters(config, kernel);
      int64_t clusters = together;
      if (clusters == 0) return 0;
      int64_t period = 1;  // rows until they lie alike again
      while (kCut != Cut::whole && !((steps_evenly(get<I>(ins), period) && ...) && (steps_evenly(get<O>(outs), period) && ...))) period *= 2;
      if (clusters > period) clusters -= clusters % period;
      if (clusters % period != 0 || rows < 2 * clusters * kPlan.groups) return 0;
      config.grid = dim3(static_cast<uint32_t>(clusters * kPlan.cluster));
      done = true;
      return launch(ctx, config, kernel, rows, static_cast<int>(kLength), ins, outs, policy);
    }
  }
  return 0;
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_ROW_RING_CUH_
