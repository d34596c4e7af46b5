/// @file row_split.cuh
/// @brief Softmax of long rows, each split among the blocks of a cluster (sm_90 and later).
///
/// A block has up to 32 KB of a row in shared memory, so that an SM has six blocks or more, of which some read or store while others compute or wait
/// for what the other blocks of their row know. Where no more than one block has room in an SM, its memory stands still meanwhile.
#ifndef AIT_KERNELS_GPU_ROW_SPLIT_CUH_
#define AIT_KERNELS_GPU_ROW_SPLIT_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/bulk_copy.cuh"
#include "ait/kernels/gpu/cluster.cuh"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/resident.cuh"
#include "ait/kernels/gpu/ring_policies.cuh"
#include "ait/kernels/gpu/row_told.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief How rows of one length are split.
struct SplitPlan {
  static constexpr int kThreads = 256, kBlocks = 8;  ///< of a block; of an SM, if their memory has room

  int cluster = 0;  ///< blocks of a row; 0: these rows are not split
  int own = 0;      ///< chunks of 16 bytes that a block has
};

namespace detail {
/// Rows of so many chunks: those of which an SM had room for one or none in the hands of one block.
constexpr SplitPlan plan_split(int64_t chunks) {
  constexpr int64_t kMost = 8 * SplitPlan::kThreads;  // 32 KB
  if (2 * chunks * 16 <= kRingBytes) return SplitPlan{};
  for (int cluster = 4; cluster <= 8; cluster *= 2) {
    if (chunks <= cluster * kMost) return SplitPlan{cluster, static_cast<int>((chunks + cluster - 1) / cluster)};
  }
  return SplitPlan{};
}

template <int kVec, int64_t kLengthOf>
struct SplitOf {
  static constexpr int64_t kLength = kLengthOf;
  static constexpr SplitPlan value = plan_split(kLength / kVec);
  static constexpr int kTurns = (value.own + SplitPlan::kThreads - 1) / SplitPlan::kThreads;  ///< chunks of a thread
};
}  // namespace detail

/// A cluster has the row of its number. Chunks are copied as many at a time as there are threads.
template <class Plan, int kVec, class Policy, class In, class Out>
__global__ void __launch_bounds__(SplitPlan::kThreads, SplitPlan::kBlocks) row_split_kernel(In in, Out out, Policy policy) {
  using Part = typename Policy::Part;
  constexpr SplitPlan kPlan = Plan::value;
  constexpr int kThreads = SplitPlan::kThreads, kTurns = Plan::kTurns, kChunks = static_cast<int>(Plan::kLength / kVec);
  AIT_DYNAMIC_SHARED(16, split_shared);
  const int rank = blockIdx.x % kPlan.cluster, first = rank * kPlan.own;
  const int64_t row = blockIdx.x / kPlan.cluster;
  const int chunks = kChunks - first < kPlan.own ? kChunks - first : kPlan.own;
  const uint4* words = reinterpret_cast<const uint4*>(split_shared) + threadIdx.x;
  detail::RowTold<Policy, kThreads / kWarpSize, kPlan.cluster> told(split_shared + kPlan.own * 16, rank);
  const uint32_t arrived = shared_address(split_shared) + kPlan.own * 16 + told.kBytes;
  if (threadIdx.x == 0) {
    for (int turn = 0; turn < kTurns; ++turn) barrier_init(arrived + turn * 8, 1);
    told.make();
  }
  wait_for_previous();
  allow_next();
  if (threadIdx.x == 0) {
    const auto* from = in.data + row * in.strides[0] + static_cast<int64_t>(first) * kVec;
    for (int turn = 0; turn < kTurns && turn * kThreads < chunks; ++turn) {
      const uint32_t bytes = static_cast<uint32_t>(chunks - turn * kThreads < kThreads ? chunks - turn * kThreads : kThreads) * 16;
      barrier_expect(arrived + turn * 8, bytes);
      copy_bulk(shared_address(split_shared) + turn * kThreads * 16, from + turn * kThreads * kVec, bytes, arrived + turn * 8);
    }
  }
  cluster_barrier();  // barriers are made
  const auto values = [&](int turn, float (&v)[kVec]) {
    typename In::Value elements[kVec];
    copy_bytes(&elements, words + turn * kThreads, 16);
    convert_all(elements, v);
  };
  Part own[1];
  float v[kVec];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    if (turn * kThreads + static_cast<int>(threadIdx.x) >= chunks) break;
    barrier_wait(arrived + turn * 8, 0);
    values(turn, v);
    policy.add(own[0], v, turn);
  }
  policy.template settle<kVec>(own[0]);
  told.publish(policy.join(own, 0.f), 0);
  const auto result = policy.result(told.collect(policy, 0, static_cast<float>(Plan::kLength)), static_cast<float>(Plan::kLength));
  auto* to = out.data + row * out.strides[0] + static_cast<int64_t>(first + static_cast<int>(threadIdx.x)) * kVec;
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    if (turn * kThreads + static_cast<int>(threadIdx.x) >= chunks) break;
    values(turn, v);
    typename Out::Value elements[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) elements[j] = convert<typename Out::Value>(policy.apply(v[j], result, 1.f, 0.f));
    uint4 word;
    copy_bytes(&word, &elements, 16);
    *reinterpret_cast<uint4*>(to + turn * kThreads * kVec) = word;
  }
}

namespace detail {
/// Launches softmax of rows that are split; `done` says whether they are.
template <int kVec, int64_t kLength, class In, class Out>
int32_t launch_split(const Context& ctx, int64_t rows, const In& in, const Out& out, const Softmax& of_rows, bool& done) {
  using OfRing = RingPolicy<Softmax, is_narrow_float<typename Out::Value>>;
  constexpr bool kWords = In::kInner == Inner::unit && Out::kInner == Inner::unit && sizeof(typename In::Value) * kVec == 16 &&
                          sizeof(typename Out::Value) * kVec == 16 && std::is_same<typename Out::Compute, float>::value;
  if constexpr (kHasClusters && kWords) {
    using Plan = SplitOf<kVec, kLength>;
    constexpr SplitPlan kPlan = Plan::value;
    if constexpr (kPlan.cluster > 0) {
      using Told = RowTold<OfRing, SplitPlan::kThreads / kWarpSize, kPlan.cluster>;
      const auto kernel = row_split_kernel<Plan, kVec, OfRing, In, Out>;
      LaunchConfig config;
      config.block = dim3(SplitPlan::kThreads);
      config.cluster = kPlan.cluster;
      config.dependent = true;
      config.shared_bytes = static_cast<uint32_t>(kPlan.own * 16 + Told::kBytes + Plan::kTurns * 8);
      static const int together = resident_clusters(config, kernel);
      if (together == 0 || rows > INT32_MAX / kPlan.cluster) return 0;
      config.grid = dim3(grid_size(rows * kPlan.cluster));
      done = true;
      return launch(ctx, config, kernel, in, out, OfRing(of_rows));
    }
  }
  return 0;
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_ROW_SPLIT_CUH_
