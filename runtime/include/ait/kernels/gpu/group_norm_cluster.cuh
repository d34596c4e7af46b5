/// @file group_norm_cluster.cuh
/// @brief Group norm with the channels last, in one launch or two: a unit of some neighbouring groups of a sample belongs to several blocks.
///
/// Each block of a unit has a share of the places. In one launch these are a cluster, which exchanges what the blocks found. In two launches there may
/// be more of them: the first writes what each block found, the second joins that and reads the input once more. In one launch a thread keeps its
/// elements in registers between the statistics and the result, so memory is read once. A thread reads `kVec` neighbouring channels of each of its
/// places: they belong to one group or two, or are several whole groups.
#ifndef AIT_KERNELS_GPU_GROUP_NORM_CLUSTER_CUH_
#define AIT_KERNELS_GPU_GROUP_NORM_CLUSTER_CUH_

#include <math.h>
#include <stdint.h>

#include <algorithm>

#include "ait/gpu/launch.h"
#include "ait/gpu/spread.h"
#include "ait/kernels/gpu/group_moments.cuh"
#include "ait/kernels/gpu/row_read.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/math.h"
#if defined(AIT_CUDA)
#include "ait/kernels/gpu/cluster.cuh"
#endif

namespace ait::gpu {

/// @brief The most threads of a block whose threads have up to `items` chunks each, and how many such blocks a multiprocessor should have room for.
constexpr int group_norm_threads(int items) { return items == 4 ? 768 : items == 8 ? 384 : 512; }
constexpr int group_norm_blocks(int items) {
#if defined(AIT_HIP)
  return 1;
#else
  return items <= 2 || items == 8 ? 2 : 1;  // the next launch begins beside the last blocks
#endif
}

/// @brief How the elements are shared out. Sizes are in elements.
struct GroupNormPlan {
  int64_t places, share;   ///< of a sample; of a block
  int64_t units;           ///< of a sample: `width` channels each, whole groups
  int groups, width;       ///< groups of a unit; its channels
  int cluster;             ///< blocks of a unit, which are a cluster if there is one launch
  int columns, lanes;      ///< threads side by side along the channels, and along the places
  int slices;              ///< warps that share the lanes of a group
  double eps;
};

/// @brief The part of the work that a launch does: all, or one of two halves.
enum class NormPart { whole, moments, result };

/// Warps that share the lanes of a group at most, where a second launch joins what they found.
inline constexpr int kFoundSlices = 4;

namespace detail {
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
/// @tparam kPart which half of the work; `found` are the moments between them: by unit, block, group and slice
/// @tparam kSmall channels of a group where `kVec` channels are several whole groups, otherwise 0
/// @tparam kItems chunks of a thread; with `kAgain`, at a time: the input is read once more for the result
/// @tparam kConstant nothing ever writes scale and bias
template <class F, NormPart kPart, int kVec, int kSmall, int kItems, bool kAgain, bool kConstant, int kPlaces, bool kWide, class X, class Extras,
          class Out, class S>
__global__ void __launch_bounds__(group_norm_threads(kItems), group_norm_blocks(kItems))
    group_norm_cluster_kernel(GroupNormPlan plan, Space<kPlaces, kWide> space, X x, Extras extras, Out out, const S* scale, const S* bias,
                              float4* found) {
  using C = typename X::Compute;
  static_assert(std::is_same<C, float>::value, "moments are floats");
  constexpr int kOwn = kSmall > 0 ? kVec / kSmall : 2;  // groups of a thread
  static_assert(kSmall == 0 || (kOwn * kSmall == kVec && kOwn > 1 && kOwn <= 4), "several whole groups");
  AIT_DYNAMIC_SHARED(16, group_norm_shared);
  float4* const of_block = reinterpret_cast<float4*>(group_norm_shared);                  // by group and slice: count, mean, squares
  float2* const normal = reinterpret_cast<float2*>(of_block + plan.groups * plan.slices);  // by group: mean, 1 / sqrt(variance + eps)
  GroupMoments* const parts = reinterpret_cast<GroupMoments*>(normal + plan.groups);       // by group of a thread, then by thread
  const int column = static_cast<int>(threadIdx.x) % plan.columns, lane = static_cast<int>(threadIdx.x) / plan.columns;
  const int64_t unit = blockIdx.x / plan.cluster;
  const int rank = static_cast<int>(blockIdx.x % plan.cluster), channel = column * kVec, group = plan.width / plan.groups;
  const int64_t sample = unit / plan.units, first_channel = unit % plan.units * plan.width + channel;
  const int64_t begin = rank * plan.share, end = begin + plan.share < plan.places ? begin + plan.share : plan.places;
  // Without `kSmall`, the first `split` channels of the thread belong to group `own`, the others to the next one.
  const int own = channel / group, left = (own + 1) * group - channel, split = left < kVec ? left : kVec;

  S scales[kVec], biases[kVec];
  const auto read_factors = [&] {
    if (kPart == NormPart::moments || lane >= plan.lanes) return;
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
  GroupMoments mine[kOwn] = {};
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
    float by_group[kOwn];
    GroupMoments of_these[kOwn];
    detail::add_by_group<kSmall>(sums, split, by_group);
#pragma unroll
    for (int g = 0; g < kOwn; ++g) {
      const float count = static_cast<float>(items * (kSmall > 0 ? kSmall : g == 0 ? split : kVec - split));
      of_these[g].count = count;
      of_these[g].mean = by_group[g] * (count > 0.f ? 1.f / count : 0.f);
    }
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      centres[j] = kSmall > 0 ? of_these[kSmall > 0 ? j / kSmall : 0].mean : j < split ? of_these[0].mean : of_these[1].mean;
      sums[j] = 0.f;
    }
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (i >= items) break;
      const auto values = raws[i].values();
#pragma unroll
      for (int j = 0; j < kVec; ++j) sums[j] += (values.v[j] - centres[j]) * (values.v[j] - centres[j]);
    }
    detail::add_by_group<kSmall>(sums, split, by_group);
#pragma unroll
    for (int g = 0; g < kOwn; ++g) {
      of_these[g].squares = by_group[g];
      if constexpr (kAgain) {
        detail::join_moments_to(mine[g], of_these[g]);
      } else {
        mine[g] = of_these[g];
      }
    }
  };
  const bool present = lane < plan.lanes;
  const int64_t turn = static_cast<int64_t>(kItems) * plan.lanes;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize, warps = static_cast<int>(blockDim.x) / kWarpSize;
  const auto finish = [&](int g, const GroupMoments& whole) {
    if (threadIdx.x % kWarpSize == 0) {
      normal[g] = {whole.mean, 1.f / ::sqrtf(whole.squares / whole.count + static_cast<float>(plan.eps))};
    }
  };
  const bool alone = kPart == NormPart::whole && plan.slices * plan.cluster == 1;
  if constexpr (kPart == NormPart::result) {
    if (!kAgain && present) read(begin + lane);
    const float4* const of_unit = found + unit * plan.cluster * plan.groups * plan.slices;
    for (int g = warp; g < plan.groups; g += warps) {
      finish(g, detail::join_moments_of(0, plan.cluster * plan.slices, [&](int i) {
        const float4 known = of_unit[(i / plan.slices * plan.groups + g) * plan.slices + i % plan.slices];
        return GroupMoments{known.x, known.y, known.z};
      }));
    }
  } else {
    if (present) {
      if constexpr (kAgain) {
        for (int64_t first = begin + lane; first < end; first += turn) read(first), add(first);
      } else {
        read(begin + lane);
        add(begin + lane);
      }
#pragma unroll
      for (int g = 0; g < kOwn; ++g) parts[g * blockDim.x + threadIdx.x] = mine[g];
    }
    __syncthreads();

    // Warps join what the threads of a group know, some lanes each.
    float4* const to = kPart == NormPart::moments ? found + static_cast<int64_t>(blockIdx.x) * plan.groups * plan.slices : of_block;
    for (int task = warp; task < plan.groups * plan.slices; task += warps) {
      const int g = task / plan.slices, slice = task - g * plan.slices;
      GroupMoments whole;
      if constexpr (kSmall > 0) {
        const int each = (plan.lanes + plan.slices - 1) / plan.slices, from_lane = slice * each;
        const GroupMoments* const of_column = parts + g % kOwn * blockDim.x + g / kOwn;
        whole = detail::join_moments_of(from_lane, min(from_lane + each, plan.lanes), [&](int i) { return of_column[i * plan.columns]; });
      } else {
        const int first = g * group / kVec, last = ((g + 1) * group - 1) / kVec, beside = last - first + 1, all = beside * plan.lanes;
        const int each = (all + plan.slices - 1) / plan.slices, from_part = slice * each;
        whole = detail::join_moments_of(from_part, min(from_part + each, all), [&](int i) {
          const int of_column = first + i % beside;
          return parts[(of_column * kVec / group == g ? 0 : blockDim.x) + i / beside * plan.columns + of_column];
        });
      }
      if (alone) {
        finish(g, whole);
      } else if (threadIdx.x % kWarpSize == 0) {
        to[task] = {whole.count, whole.mean, whole.squares, 0.f};
      }
    }
    if constexpr (kPart == NormPart::moments) return;
  }
  // Then one warp joins what these and the blocks of the cluster know.
  if (kPart == NormPart::whole && !alone) {
#if defined(AIT_CUDA)
    if (plan.cluster > 1) {
      cluster_barrier();
    } else {
      __syncthreads();
    }
#else
    __syncthreads();
#endif
    const int place = static_cast<int>(threadIdx.x % kWarpSize), other = place % plan.cluster, slice = place / plan.cluster;
    for (int g = warp; g < plan.groups; g += warps) {
      float4 known = {0.f, 0.f, 0.f, 0.f};
      if (slice < plan.slices) {
        const float4* const from_block = of_block + g * plan.slices + slice;
#if defined(AIT_CUDA)
        known = plan.cluster > 1 ? load_cluster_float4(shared_address(from_block), static_cast<uint32_t>(other)) : *from_block;
#else
        known = *from_block;
#endif
      }
      finish(g, detail::join_moments_of(0, kWarpSize, [&](int) { return GroupMoments{known.x, known.y, known.z}; }));
    }
#if defined(AIT_CUDA)
    if (plan.cluster > 1) cluster_arrive();
#endif
  }
  __syncthreads();

  if (present) {
    float2 of_own[kOwn];
#pragma unroll
    for (int g = 0; g < kOwn; ++g) of_own[g] = normal[kSmall > 0 || g == 0 || split < kVec ? own + g : own];
    float factors[kVec], shifts[kVec], means[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      const float2 found = kSmall > 0 ? of_own[kSmall > 0 ? j / kSmall : 0] : j < split ? of_own[0] : of_own[1];
      means[j] = found.x;
      factors[j] = scale == nullptr ? found.y : found.y * convert<float>(scales[j]);
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
  if (kPart == NormPart::whole && plan.cluster > 1) cluster_wait();  // the others may still read what this block knows
#endif
}

namespace detail {
template <class F, NormPart kPart, int kVec, int kSmall, int kItems, bool kAgain, bool kConstant, int kPlaces, bool kWide, class X, class Extras,
          class Out, class S>
int32_t launch_group_norm(const Context& ctx, int64_t samples, GroupNormPlan plan, const int64_t* places, const X& x, const Extras& extras,
                          const Out& out, const S* scale, const S* bias, float4* found) {
  plan.columns = plan.width / kVec;
  const int64_t room = group_norm_threads(kItems) / plan.columns, wanted = (plan.share + kItems - 1) / kItems;
  if (room < 1) return ctx.fail("a group norm has more channels in a unit than a block has threads");
  plan.lanes = static_cast<int>(wanted < room ? wanted : room);
  const int threads = (plan.columns * plan.lanes + kWarpSize - 1) / kWarpSize * kWarpSize, warps = threads / kWarpSize;
  const int needed = (plan.lanes + kWarpSize - 1) / kWarpSize;
  const int most = kPart == NormPart::whole ? kWarpSize / plan.cluster : kFoundSlices;  // one warp joins all in the end
  plan.slices = std::max(1, std::min(std::min(warps / plan.groups, most), needed));
  const int64_t blocks = samples * plan.units * plan.cluster;
  if (blocks > INT32_MAX) return ctx.fail("a group norm has more groups than a launch has blocks");
  LaunchConfig config;
  config.block = dim3(static_cast<uint32_t>(threads));
  config.grid = dim3(grid_size(blocks));
  config.cluster = kPart == NormPart::whole ? static_cast<uint32_t>(plan.cluster) : 1;
  constexpr int kOwn = kSmall > 0 ? kVec / kSmall : 2;
  const size_t bytes = plan.groups * (plan.slices * sizeof(float4) + sizeof(float2)) + kOwn * threads * sizeof(GroupMoments);
  config.shared_bytes = spread(static_cast<uint32_t>(bytes), config.grid.x);
  config.dependent = true;
  return launch(ctx, config, group_norm_cluster_kernel<F, kPart, kVec, kSmall, kItems, kAgain, kConstant, kPlaces, kWide, X, Extras, Out, S>, plan,
                Space<kPlaces, kWide>(places), x, extras, out, scale, bias, found);
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
/// @tparam kMost elements of an access at most: a power of two
/// @tparam kGroup channels of a group, where an access of `kMost` has two to four whole groups; otherwise 0, and a group has at least `kMost`
/// @tparam kPart all of it, or one of two halves, which take the same arguments
/// @tparam kItems accesses that a thread keeps: 1, 2, 4, 8 or 16
/// @tparam kHolds whether threads always have room for the elements of a block
/// @tparam kConstant nothing ever writes scale and bias
/// @tparam kWide whether a sample may have 2^31 places or more
/// @param width channels of a cluster, whole groups; at most 512
/// @param cluster blocks that share a unit: of one launch 1 to 8, 1 where the architecture has no clusters; of two launches any number
/// @param found of two launches what passes between them: `kFoundSlices` * cluster numbers of 16 bytes for each group of each sample
template <class F, NormPart kPart, int kMost, int kGroup, int kItems, bool kHolds, bool kConstant, bool kWide, size_t kRank, class X, class... Extras,
          class Out, class S>
int32_t group_norm(const Context& ctx, const int64_t (&sizes)[kRank], const X& x, const Pack<Extras...>& extras, const Out& out, const S* scale,
                   const S* bias, int64_t groups, int64_t width, int cluster, double eps, float* between = nullptr) {
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
  plan.cluster = kHasClusters || kPart != NormPart::whole ? cluster : 1;
  plan.share = (plan.places + plan.cluster - 1) / plan.cluster;
  plan.eps = eps;
  float4* const found = reinterpret_cast<float4*>(between);
  constexpr int kVec = vector_width<X, Out, Extras...>() < kMost ? vector_width<X, Out, Extras...>() : kMost;
  constexpr int kSmall = kGroup < kVec ? kGroup : 0;
  const uintptr_t factors = reinterpret_cast<uintptr_t>(scale) | reinterpret_cast<uintptr_t>(bias);
  const bool aligned = may_access<kVec>(x) && may_access<kVec>(out) && factors % kAccessBytes<S, kVec> == 0 &&
                       detail::extras_may_access<kVec>(extras, std::index_sequence_for<Extras...>{});
  if (aligned && width % kVec == 0 && (kSmall > 0 ? width / plan.groups == kSmall : width / plan.groups >= kVec)) {
    const bool holds = plan.share <= static_cast<int64_t>(kItems) * (group_norm_threads(kItems) / (plan.width / kVec));
    if (kHolds || holds) {
      return detail::launch_group_norm<F, kPart, kVec, kSmall, kItems, false, kConstant, kPlaces, kWide>(ctx, sizes[0], plan, sizes + 1, x, extras,
                                                                                                         out, scale, bias, found);
    }
    if constexpr (!kHolds) {
      return detail::launch_group_norm<F, kPart, kVec, kSmall, 4, true, kConstant, kPlaces, kWide>(ctx, sizes[0], plan, sizes + 1, x, extras, out,
                                                                                                   scale, bias, found);
    }
  }
  return detail::launch_group_norm<F, kPart, 1, 0, 4, true, kConstant, kPlaces, kWide>(ctx, sizes[0], plan, sizes + 1, x, extras, out, scale, bias,
                                                                                       found);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_GROUP_NORM_CLUSTER_CUH_
