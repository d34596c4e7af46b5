/// @file row_grouped.cuh
/// @brief Norms of rows of several tensors in one launch, each with its own sizes.
///
/// Every tensor has blocks of its own. All rows are held by groups of one size, that of the longest row, so that a launch is for rows that take
/// about the same time.
#ifndef AIT_KERNELS_GPU_ROW_GROUPED_CUH_
#define AIT_KERNELS_GPU_ROW_GROUPED_CUH_

#include "ait/kernels/gpu/row.cuh"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief One norm of `norm_grouped`.
template <int kOuterOf, class InOf, class OutOf, class SOf, class ExtrasOf>
struct GroupedNorm {
  using In = InOf;
  using Out = OutOf;
  using S = SOf;
  using Extras = ExtrasOf;
  static constexpr int kOuter = kOuterOf;

  RowSpace<kOuter, 1> space;
  In in;
  Out out;
  const S* scale;  ///< contiguous, or null
  const S* bias;
  Extras extras;
};

/// @brief The norm of rows along the last of the sizes.
template <size_t kRank, class In, class Out, class S, class Extras>
inline auto grouped_norm(const int64_t (&sizes)[kRank], const In& in, const Out& out, const S* scale, const S* bias, const Extras& extras) {
  constexpr int kOuter = static_cast<int>(kRank) - 1;
  GroupedNorm<kOuter, In, Out, S, Extras> norm{{}, in, out, scale, bias, extras};
  norm.space.rows = 1;
  for (int d = 0; d < kOuter; ++d) norm.space.rows *= norm.space.outer[d] = sizes[d];
  norm.space.length = norm.space.row[0] = sizes[kOuter];
  return norm;
}

/// @brief The norms of a launch, and the first block of each.
template <class Norm>
struct GroupedNorms {
  /// Those that fit into 4 KiB, the size of kernel arguments that every device accepts.
  static constexpr int kNorms = 3840 / int(sizeof(Norm) + sizeof(int));
  static_assert(kNorms > 0, "a norm with so many extra operands does not fit into the arguments of a kernel");

  double eps;
  int count;
  int first[kNorms + 1];
  Norm norms[kNorms];
};

namespace detail {
/// Threads that hold a row, and how many chunks each of them keeps, for rows of up to so many chunks.
template <int64_t kChunks>
struct GroupOf {
  static constexpr bool kWarp = kChunks <= 4 * kWarpSize;
  static constexpr int kThreads = kWarp ? kWarpSize : kChunks <= 1024 ? 256 : 512;
  static constexpr int kItems = kChunks > 2048 ? kReadAgain : kChunks <= kThreads ? 1 : static_cast<int>((kChunks + kThreads - 1) / kThreads);
  static constexpr int kMostThreads = kWarp ? kWarpRowThreads : kThreads;  ///< of a block
};
}  // namespace detail

/// @brief A group for each row; a block has rows of one norm.
template <bool kCentred, bool kConstant, class E, int kVec, class Group, class Norm>
__global__ void __launch_bounds__(Group::kMostThreads) norm_grouped_kernel(const AIT_GRID_CONSTANT GroupedNorms<Norm> group) {
  constexpr int kGroup = Group::kThreads;
  using Policy = RowNorm<typename Norm::S, kCentred, kConstant, E, typename Norm::Extras>;
  using R = detail::Row<PassThrough, kGroup, Group::kItems, kVec, detail::Cut::whole, detail::Few::unknown, 1, Pack<typename Norm::In>,
                        Pack<typename Norm::Out>>;
  using One = std::index_sequence<0>;
  wait_for_previous();
  allow_next();
  int number = 0;
  while (number + 1 < group.count && int(blockIdx.x) >= group.first[number + 1]) ++number;
  const Norm& norm = group.norms[number];
  const Policy policy{norm.scale, norm.bias, group.eps, norm.extras};
  __shared__ typename R::C shared[R::Reducer::kShared];
  R row;
  row.sizes[0] = norm.space.row[0];
  row.lane = int(threadIdx.x) % kGroup;
  row.reducer.shared = shared;
  typename Policy::template Early<R> early;
  const int64_t rows_of_block = blockDim.x / kGroup, blocks = group.first[number + 1] - group.first[number];
  for (int64_t index = (blockIdx.x - group.first[number]) * rows_of_block + threadIdx.x / kGroup; index < norm.space.rows;
       index += blocks * rows_of_block) {
    int64_t coordinate[Norm::kOuter];
    coordinates<Norm::kOuter>(index, norm.space.outer, coordinate);
    row.move(pack(norm.in), pack(norm.out), coordinate, One{}, One{});
    row.cut(static_cast<typename R::Index>(norm.space.length));
    row.load();
    policy(row, early, detail::all_at_row(policy.extras, coordinate, typename Norm::Extras::Indices{}));
  }
}

namespace detail {
/// Launches of as many norms as fit into the arguments of one.
template <bool kCentred, bool kConstant, class E, int kVec, int64_t kHigh, class Norm>
int32_t launch_grouped(const Context& ctx, const Norm* norms, size_t count, double eps) {
  using Group = GroupOf<(kHigh + kVec - 1) / kVec>;
  using Norms = GroupedNorms<Norm>;
  int64_t all = 0;
  for (size_t i = 0; i < count; ++i) all += norms[i].space.rows;
  const int threads = Group::kWarp && all * Group::kThreads < 64 * Group::kMostThreads ? kWarpSize : Group::kMostThreads;
  for (size_t at = 0; at < count;) {
    Norms group = {};
    group.eps = eps;
    int64_t blocks = 0;
    for (; at < count && group.count < Norms::kNorms; ++at) {
      const Norm& norm = norms[at];
      if (norm.space.rows <= 0 || norm.space.length <= 0) continue;
      group.norms[group.count] = norm;
      group.first[group.count++] = static_cast<int>(blocks);
      blocks += ceil_div(norm.space.rows, threads / Group::kThreads, 1 << 20);
    }
    if (group.count == 0) continue;
    group.first[group.count] = static_cast<int>(blocks);
    LaunchConfig config;
    config.block = dim3(static_cast<uint32_t>(threads));
    config.grid = dim3(grid_size(blocks));
    config.dependent = true;
    const int32_t status = launch(ctx, config, norm_grouped_kernel<kCentred, kConstant, E, kVec, Group, Norm>, group);
    if (status != 0) return status;
  }
  return 0;
}

/// Whether a norm's rows are chunks of 16 bytes in all operands.
template <int kVec, bool kCentred, bool kConstant, class E, class Norm>
bool in_chunks(const Norm& norm) {
  const RowNorm<typename Norm::S, kCentred, kConstant, E, typename Norm::Extras> policy{norm.scale, norm.bias, 0.0, norm.extras};
  return norm.space.length % kVec == 0 && may_access<kVec>(norm.in) && may_access<kVec>(norm.out) && policy.template may_access<kVec>();
}
}  // namespace detail

/// @brief out_i = the norm of the rows of in_i, times scale_i, plus bias_i, for each of the norms.
/// @tparam kCentred layer_norm; else rms_norm
/// @tparam kHigh, kStep the most elements of a row, and what divides their number in all of them
/// @tparam kConstant nothing ever writes scales and biases
/// @tparam E what is stored is E of that and of the elements of `extras`, or that alone if E is void
template <bool kCentred, int64_t kHigh, int kStep, bool kConstant, class E = void, size_t kCount, class Norm>
int32_t norm_grouped(const Context& ctx, const Norm (&norms)[kCount], double eps) {
  constexpr int kVec = vector_width<typename Norm::In, typename Norm::Out>();
  if constexpr (kStep % kVec == 0) {
    bool whole = true;
    for (const Norm& norm : norms) whole = whole && detail::in_chunks<kVec, kCentred, kConstant, E>(norm);
    if (whole) return detail::launch_grouped<kCentred, kConstant, E, kVec, kHigh>(ctx, norms, kCount, eps);
  }
  return detail::launch_grouped<kCentred, kConstant, E, 1, kHigh>(ctx, norms, kCount, eps);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_ROW_GROUPED_CUH_
