/// @file group_norm_cluster.cuh
/// @brief Group norm with the channels last, in one launch: a cluster of blocks has some neighbouring groups of a sample.
///
/// Each block of a cluster has a share of the places. A thread keeps its elements in registers between the statistics and the result, so memory is
/// read once. A thread reads `kVec` neighbouring channels of each of its places; these belong to two groups at most.
#ifndef AIT_KERNELS_GPU_GROUP_NORM_CLUSTER_CUH_
#define AIT_KERNELS_GPU_GROUP_NORM_CLUSTER_CUH_

#include <math.h>
#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/row_read.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/math.h"
#if defined(AIT_CUDA)
#include "ait/kernels/gpu/mma.cuh"
#endif

namespace ait::gpu {

/// @brief The most threads of a block whose threads have up to `items` chunks each, and how many such blocks a multiprocessor should have room for.
constexpr int group_norm_threads(int items) { return items <= 4 ? 768 : items == 8 ? 384 : 512; }
constexpr int group_norm_blocks(int items) {
#if defined(AIT_HIP)
  return 1;
#else
  return items == 8 ? 2 : 1;
#endif
}

/// @brief How the elements are shared out. Sizes are in elements.
struct GroupNormPlan {
  int64_t places, share;   ///< of a sample; of a block
  int64_t units;           ///< of a sample: `width` channels each, whole groups
  int groups, width;       ///< groups of a unit; its channels
  int cluster;             ///< blocks of a unit
  int columns, lanes;      ///< threads side by side along the channels, and along the places
  double eps;
};

/// @brief The number, the mean, and the sum of the squares of the differences from it, of some elements.
struct GroupMoments {
  float count, mean, squares;
};

namespace detail {
/// Joins what `read(i)` gives for i below `count`, over the lanes of a warp; every lane gets the result. No part is joined to another by itself, so
/// that there is one division.
template <class Read>
__device__ __forceinline__ GroupMoments join_moments_of(int count, Read read) {
  const int lane = static_cast<int>(threadIdx.x % kWarpSize);
  float elements = 0.f, sum = 0.f;
  for (int i = lane; i < count; i += kWarpSize) {
    const GroupMoments part = read(i);
    elements += part.count;
    sum += part.count * part.mean;
  }
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    elements += shuffle_xor(elements, mask);
    sum += shuffle_xor(sum, mask);
  }
  const float mean = elements > 0.f ? sum / elements : 0.f;
  float squares = 0.f;
  for (int i = lane; i < count; i += kWarpSize) {
    const GroupMoments part = read(i);
    squares += part.squares + part.count * (part.mean - mean) * (part.mean - mean);
  }
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) squares += shuffle_xor(squares, mask);
  return {elements, mean, squares};
}

/// Adds elements with a mean of their own (Chan, Golub and LeVeque, 1979).
__device__ __forceinline__ void join_moments_to(GroupMoments& whole, const GroupMoments& part) {
  const float count = whole.count + part.count, difference = part.mean - whole.mean;
  const float share = count > 0.f ? part.count / count : 0.f;
  whole.mean += difference * share;
  whole.squares += part.squares + difference * difference * (whole.count * share);
  whole.count = count;
}

/// Where a channel of a sample begins, and how far a place is from there.
template <class Op>
__device__ __forceinline__ typename Op::Element* channel_of(const Op& operand, int64_t sample, int64_t channel) {
  return operand.data + sample * operand.strides[0] + (Op::kInner == Inner::zero ? 0 : channel * operand.strides[Op::kRank - 1]);
}
template <int kPlaces, class Op>
__device__ __forceinline__ int64_t place_offset(const Op& operand, const int64_t (&place)[kPlaces]) {
  int64_t offset = 0;
#pragma unroll
  for (int d = 0; d < kPlaces; ++d) offset += place[d] * operand.strides[1 + d];
  return offset;
}

/// Writes F of the normalised elements and of the further operands at a place.
template <class F, int kVec, int kPlaces, class C, class... Extras, size_t... I, class Out>
__device__ __forceinline__ void write_normed(const Values<C, kVec>& normed, const Pack<Extras...>& extras, std::index_sequence<I...>, const Out& out,
                                             int64_t sample, int64_t channel, const int64_t (&place)[kPlaces]) {
  const Pack<Values<typename Extras::Compute, kVec>...> others =
      pack(load_values<kVec>(get<I>(extras), channel_of(get<I>(extras), sample, channel) + place_offset(get<I>(extras), place))...);
  Values<typename Out::Compute, kVec> results;
#pragma unroll
  for (int j = 0; j < kVec; ++j) F::apply(normed.v[j], get<I>(others).v[j]..., results.v[j]);
  store_values<kVec>(out, channel_of(out, sample, channel) + place_offset(out, place), results);
}
}  // namespace detail

/// @tparam F the epilogue of the normalised elements and of the further operands
/// @tparam kItems chunks of a thread; with `kAgain`, at a time: the input is read once more for the result
/// @tparam kConstant nothing ever writes scale and bias
template <class F, int kVec, int kItems, bool kAgain, bool kConstant, int kPlaces, bool kWide, class X, class Extras, class Out, class S>
__global__ void __launch_bounds__(group_norm_threads(kItems), group_norm_blocks(kItems))
    group_norm_cluster_kernel(GroupNormPlan plan, Space<kPlaces, kWide> space, X x, Extras extras, Out out, const S* scale, const S* bias) {
  using C = typename X::Compute;
  static_assert(std::is_same<C, float>::value, "moments are floats");
  AIT_DYNAMIC_SHARED(16, group_norm_shared);
  float4* const of_block = reinterpret_cast<float4*>(group_norm_shared);       // by group: count, mean, squares
  float2* const normal = reinterpret_cast<float2*>(of_block + plan.groups);    // by group: mean, 1 / sqrt(variance + eps)
  GroupMoments* const parts = reinterpret_cast<GroupMoments*>(normal + plan.groups);  // by thread: of its first group, then of its second
  const int column = static_cast<int>(threadIdx.x) % plan.columns, lane = static_cast<int>(threadIdx.x) / plan.columns;
  const int64_t unit = blockIdx.x / plan.cluster;
  const int rank = static_cast<int>(blockIdx.x % plan.cluster), channel = column * kVec, group = plan.width / plan.groups;
  const int64_t sample = unit / plan.units, first_channel = unit % plan.units * plan.width + channel;
  const int64_t begin = rank * plan.share, end = begin + plan.share < plan.places ? begin + plan.share : plan.places;
  // The first `split` channels of the thread belong to group `own`, the others to the next one.
  const int own = channel / group, left = (own + 1) * group - channel, split = left < kVec ? left : kVec;

  S scales[kVec], biases[kVec];
  const auto read_factors = [&] {
    if (lane >= plan.lanes) return;
    if (scale != nullptr) load<kVec>(scale + first_channel, scales);
    if (bias != nullptr) load<kVec>(bias + first_channel, biases);
  };
  allow_next();
  if constexpr (kConstant) read_factors();
  wait_for_previous();
  if constexpr (!kConstant) read_factors();

  const auto* const from = detail::channel_of(x, sample, first_channel);
  Raw<X, kVec, false> raws[kItems];
  const auto position = [&](int64_t place, int64_t (&coordinate)[kPlaces]) {
    if constexpr (kPlaces == 1) {
      coordinate[0] = place;
    } else {
      space.split(static_cast<typename Space<kPlaces, kWide>::Index>(place), coordinate);
    }
  };
  const auto read = [&](int64_t first) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int64_t place = first + i * plan.lanes;
      if (place >= end) break;
      int64_t coordinate[kPlaces];
      position(place, coordinate);
      raws[i].read(from + detail::place_offset(x, coordinate));
    }
  };
  GroupMoments mine = {0.f, 0.f, 0.f}, next = {0.f, 0.f, 0.f};  // of the thread's first group, and of the one behind it
  const auto add = [&](int64_t first) {
    // By channel first: which group that belongs to is looked at once for all places.
    float sums[kVec], centres[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) sums[j] = 0.f;
    int items = 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (first + i * plan.lanes >= end) break;
      ++items;
      const auto values = raws[i].values();
#pragma unroll
      for (int j = 0; j < kVec; ++j) sums[j] += values.v[j];
    }
    float sum = 0.f, next_sum = 0.f;
#pragma unroll
    for (int j = 0; j < kVec; ++j) sum += j < split ? sums[j] : 0.f, next_sum += j < split ? 0.f : sums[j];
    const float count = static_cast<float>(items * split), next_count = static_cast<float>(items * (kVec - split));
    const float mean = count > 0.f ? sum / count : 0.f, next_mean = next_count > 0.f ? next_sum / next_count : 0.f;
#pragma unroll
    for (int j = 0; j < kVec; ++j) centres[j] = j < split ? mean : next_mean, sums[j] = 0.f;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (i >= items) break;
      const auto values = raws[i].values();
#pragma unroll
      for (int j = 0; j < kVec; ++j) sums[j] += (values.v[j] - centres[j]) * (values.v[j] - centres[j]);
    }
    float squares = 0.f, next_squares = 0.f;
#pragma unroll
    for (int j = 0; j < kVec; ++j) squares += j < split ? sums[j] : 0.f, next_squares += j < split ? 0.f : sums[j];
    const GroupMoments of_these = {count, mean, squares}, of_next = {next_count, next_mean, next_squares};
    if constexpr (kAgain) {
      detail::join_moments_to(mine, of_these);
      detail::join_moments_to(next, of_next);
    } else {
      mine = of_these;
      next = of_next;
    }
  };
  const bool present = lane < plan.lanes;
  const int64_t turn = static_cast<int64_t>(kItems) * plan.lanes;
  if (present) {
    if constexpr (kAgain) {
      for (int64_t first = begin + lane; first < end; first += turn) read(first), add(first);
    } else {
      read(begin + lane);
      add(begin + lane);
    }
    parts[threadIdx.x] = mine;
    parts[blockDim.x + threadIdx.x] = next;
  }
  __syncthreads();

  // A warp joins what the threads of its group know, then what the blocks of the cluster know.
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize, warps = static_cast<int>(blockDim.x) / kWarpSize;
  const auto finish = [&](int g, const GroupMoments& whole) {
    if (threadIdx.x % kWarpSize == 0) {
      normal[g] = {whole.mean, 1.f / ::sqrtf(whole.squares / whole.count + static_cast<float>(plan.eps))};
    }
  };
  for (int g = warp; g < plan.groups; g += warps) {
    const int first = g * group / kVec, last = ((g + 1) * group - 1) / kVec, beside = last - first + 1;
    const GroupMoments whole = detail::join_moments_of(beside * plan.lanes, [&](int i) {
      const int of_column = first + i % beside;
      return parts[(of_column * kVec / group == g ? 0 : blockDim.x) + i / beside * plan.columns + of_column];
    });
    if (plan.cluster == 1) {
      finish(g, whole);
    } else if (threadIdx.x % kWarpSize == 0) {
      of_block[g] = {whole.count, whole.mean, whole.squares, 0.f};
    }
  }
#if defined(AIT_CUDA)
  if (plan.cluster > 1) {
    cluster_barrier();
    for (int g = warp; g < plan.groups; g += warps) {
      const int other = static_cast<int>(threadIdx.x % kWarpSize);
      float4 known = {0.f, 0.f, 0.f, 0.f};
      if (other < plan.cluster) known = load_cluster_float4(shared_address(of_block + g), static_cast<uint32_t>(other));
      finish(g, detail::join_moments_of(plan.cluster, [&](int) { return GroupMoments{known.x, known.y, known.z}; }));
    }
    cluster_arrive();
  }
#endif
  __syncthreads();

  if (present) {
    const float2 of_own = normal[own], of_next = normal[split < kVec ? own + 1 : own];
    float factors[kVec], shifts[kVec], means[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      const float rest = j < split ? of_own.y : of_next.y;
      means[j] = j < split ? of_own.x : of_next.x;
      factors[j] = scale == nullptr ? rest : rest * convert<float>(scales[j]);
      shifts[j] = bias == nullptr ? 0.f : convert<float>(biases[j]);
    }
    const auto write = [&](int64_t first) {
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const int64_t place = first + i * plan.lanes;
        if (place >= end) break;
        int64_t coordinate[kPlaces];
        position(place, coordinate);
        auto values = raws[i].values();
#pragma unroll
        for (int j = 0; j < kVec; ++j) values.v[j] = (values.v[j] - means[j]) * factors[j] + shifts[j];
        detail::write_normed<F, kVec, kPlaces>(values, extras, typename Extras::Indices{}, out, sample, first_channel, coordinate);
      }
    };
    if constexpr (kAgain) {
      for (int64_t first = begin + lane; first < end; first += turn) read(first), write(first);
    } else {
      write(begin + lane);
    }
  }
#if defined(AIT_CUDA)
  if (plan.cluster > 1) cluster_wait();  // the others may still read what this block knows
#endif
}

namespace detail {
template <class F, int kVec, int kItems, bool kAgain, bool kConstant, int kPlaces, bool kWide, class X, class Extras, class Out, class S>
int32_t launch_group_norm(const Context& ctx, int64_t samples, GroupNormPlan plan, const int64_t* places, const X& x, const Extras& extras,
                          const Out& out, const S* scale, const S* bias) {
  plan.columns = plan.width / kVec;
  const int64_t room = group_norm_threads(kItems) / plan.columns, wanted = (plan.share + kItems - 1) / kItems;
  if (room < 1) return ctx.fail("a group norm has more channels in a unit than a block has threads");
  plan.lanes = static_cast<int>(wanted < room ? wanted : room);
  const int64_t blocks = samples * plan.units * plan.cluster;
  if (blocks > INT32_MAX) return ctx.fail("a group norm has more groups than a launch has blocks");
  LaunchConfig config;
  config.block = dim3(static_cast<uint32_t>((plan.columns * plan.lanes + kWarpSize - 1) / kWarpSize * kWarpSize));
  config.grid = dim3(static_cast<uint32_t>(blocks));
  config.cluster = static_cast<uint32_t>(plan.cluster);
  config.shared_bytes =
      static_cast<uint32_t>(plan.groups * (sizeof(float4) + sizeof(float2)) + 2 * config.block.x * sizeof(GroupMoments));
  config.dependent = true;
  return launch(ctx, config, group_norm_cluster_kernel<F, kVec, kItems, kAgain, kConstant, kPlaces, kWide, X, Extras, Out, S>, plan,
                Space<kPlaces, kWide>(places), x, extras, out, scale, bias);
}

template <int kVec, class... Extras, size_t... I>
bool extras_may_access(const Pack<Extras...>& extras, std::index_sequence<I...>) {
  return (gpu::may_access<kVec>(get<I>(extras)) && ... && true);
}
}  // namespace detail

/// @brief out = F((x - mean) / sqrt(variance + eps) * scale + bias, extras...), with the mean and the variance of `groups` groups of neighbouring
/// channels of each sample.
///
/// `sizes` are the samples, the places (one dim or several) and the channels. The channels of x are neighbours in memory. `scale` and `bias` are
/// contiguous, or null.
/// @tparam kMost elements of an access at most: a power of two, and no more than a group has channels
/// @tparam kItems accesses that a thread keeps: 1, 2, 4, 8 or 16
/// @tparam kHolds whether threads always have room for the elements of a block
/// @tparam kConstant nothing ever writes scale and bias
/// @tparam kWide whether a sample may have 2^31 places or more
/// @param width channels of a cluster, whole groups; at most 512
/// @param cluster blocks of a cluster, 1 to 8: 1 where the architecture has no clusters
template <class F, int kMost, int kItems, bool kHolds, bool kConstant, bool kWide, size_t kRank, class X, class... Extras, class Out, class S>
int32_t group_norm(const Context& ctx, const int64_t (&sizes)[kRank], const X& x, const Pack<Extras...>& extras, const Out& out, const S* scale,
                   const S* bias, int64_t groups, int64_t width, int cluster, double eps) {
  static_assert(kRank >= 3, "samples, places, channels");
  constexpr int kPlaces = static_cast<int>(kRank) - 2;
  GroupNormPlan plan = {};
  plan.places = 1;
  for (int d = 0; d < kPlaces; ++d) plan.places *= sizes[1 + d];
  const int64_t channels = sizes[kRank - 1];
  if (sizes[0] <= 0 || plan.places <= 0 || channels <= 0) return 0;
  plan.units = channels / width;
  plan.width = static_cast<int>(width);
  plan.groups = static_cast<int>(groups / plan.units);
  plan.cluster = kHasClusters ? cluster : 1;
  plan.share = (plan.places + plan.cluster - 1) / plan.cluster;
  plan.eps = eps;
  constexpr int kVec = vector_width<X, Out, Extras...>() < kMost ? vector_width<X, Out, Extras...>() : kMost;
  const uintptr_t factors = reinterpret_cast<uintptr_t>(scale) | reinterpret_cast<uintptr_t>(bias);
  const bool aligned = may_access<kVec>(x) && may_access<kVec>(out) && factors % kAccessBytes<S, kVec> == 0 &&
                       detail::extras_may_access<kVec>(extras, std::index_sequence_for<Extras...>{});
  if (aligned && width % kVec == 0 && width / plan.groups >= kVec) {
    const bool holds = plan.share <= static_cast<int64_t>(kItems) * (group_norm_threads(kItems) / (plan.width / kVec));
    if (kHolds || holds) {
      return detail::launch_group_norm<F, kVec, kItems, false, kConstant, kPlaces, kWide>(ctx, sizes[0], plan, sizes + 1, x, extras, out, scale,
                                                                                          bias);
    }
    if constexpr (!kHolds) {
      return detail::launch_group_norm<F, kVec, 4, true, kConstant, kPlaces, kWide>(ctx, sizes[0], plan, sizes + 1, x, extras, out, scale, bias);
    }
  }
  return detail::launch_group_norm<F, 1, 4, true, kConstant, kPlaces, kWide>(ctx, sizes[0], plan, sizes + 1, x, extras, out, scale, bias);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_GROUP_NORM_CLUSTER_CUH_
