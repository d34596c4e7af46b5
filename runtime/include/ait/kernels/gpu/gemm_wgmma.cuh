/// @file gemm_wgmma.cuh
/// @brief Gemm on Hopper (sm_90a): bulk tensor copies into a ring of stages, wgmma, a persistent grid, any epilogue.
///
/// A block has a thread that copies, and one or two teams of warpgroups that compute. A team computes a whole tile, each of its groups some
/// rows. Two teams take turns, so that the epilogue of one hides behind the products of the other.
/// The blocks of a cluster either compute tiles one below the other and copy the columns of b that they share once, to all of them; or they
/// share the K range of one tile, send each other partial sums, and each finish some of its columns.
///
/// A gated product has results that are made of two columns of a @ b each, one of either half: silu(gate) * up. Half of its tile's columns
/// are of the first half of b, the others of the second, so that a thread has both sums of a result, and stores half as many.
///
/// The columns of a rotated product are heads, and those of the first heads are turned: a tile has whole heads, so that a thread has both columns
/// of a pair, which lie half a head apart.
///
/// Of 8-bit numbers a step has twice as many elements along K. The tensor cores add products of 8-bit floats with few bits, so that the sums of a
/// step, 128 products long, are added to those of the other steps in float. Meanwhile other warpgroups of the multiprocessor multiply.
#ifndef AIT_KERNELS_GPU_GEMM_WGMMA_CUH_
#define AIT_KERNELS_GPU_GEMM_WGMMA_CUH_

#include "ait/gpu/launch.h"
#include "ait/gpu/spread.h"
#include "ait/kernels/gpu/cluster.cuh"
#include "ait/kernels/gpu/gemm_epilogue.cuh"
#include "ait/kernels/gpu/gemm_fragments.cuh"
#include "ait/kernels/gpu/gemm_simt.cuh"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/tma.cuh"
#include "ait/kernels/gpu/wgmma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief The shape of a block's work.
/// @tparam kM_, kN_ tile of the result
/// @tparam kStages_ steps of 128 bytes along K in flight
/// @tparam kCluster_ blocks of a cluster that share columns of b: 1, 2 or 4
/// @tparam kTeams_, kGroups_ how many tiles are worked on at a time; warpgroups that share one
/// @tparam kSplit_ blocks of a cluster that share the K range of a tile: 1, 2, 4 or 8
/// @tparam kGated_ whether a result is made of two columns, one of either half of b; the tile is `kN / 2` results wide
/// @tparam kHead_ columns of a head of a rotated product; 0 for any other product
/// @tparam kShortSums_ whether the sums of a step are kept apart from those of all steps
template <int kM_, int kN_, int kStages_, int kCluster_, int kTeams_, int kGroups_, int kSplit_ = 1, bool kGated_ = false, int kHead_ = 0,
          bool kShortSums_ = false>
struct HopperTile {
  static constexpr int kM = kM_, kN = kN_, kK = 64, kStages = kStages_, kCluster = kCluster_, kTeams = kTeams_, kGroups = kGroups_;
  static constexpr int kSplit = kSplit_, kHalves = kGated_ ? 2 : 1, kHead = kHead_;
  static constexpr int kConsumers = 128 * kTeams * kGroups;
  static constexpr int kMmaM = kM / kGroups / 64;  ///< times 64 rows of a warpgroup
  static constexpr bool kShortSums = kShortSums_;
  static constexpr int kAccumulators = kMmaM * kN / 2, kHeld = kAccumulators * (kShortSums ? 2 : 1);
  /// Whether threads that compute get registers of those that copy, which whole warpgroups do.
  static constexpr bool kMoves = kConsumers > 256 || (kConsumers > 128 && kHeld > 64);
  static constexpr int kThreads = kConsumers + (kMoves ? 128 : 32);
  /// Elements of a step along K.
  template <class T>
  static constexpr int kDepth = kK * 2 / int(sizeof(T));
  static constexpr int kABytes = kM * kK * 2, kBBytes = kN * kK * 2, kStageBytes = kABytes + kBBytes;
  static constexpr int kCols = kN / kHalves;          ///< columns of results
  static constexpr int kShare = kCols / kSplit;       ///< those that a block finishes
  static constexpr int kPartBytes = kM * kShare * 4;  ///< partial sums from one block to another
  /// Boxes of a warp for operands and results on their way: as many as the tile has, if there is room.
  static constexpr int kBoxCols = kSplit > 1 ? 0 : kCols % 64 == 0 ? 64 : kCols % 32 == 0 ? 32 : 0;
  static constexpr int kBoxBytes = kConsumers / 32 * 16 * kBoxCols * 2;  ///< one box of each warp
  static constexpr int kRoom = 227 * 1024 - 2048 - kStages * kStageBytes;
  static constexpr int kTileBoxes = kBoxCols == 0 ? 1 : kMmaM * kCols / (kBoxCols == 0 ? 1 : kBoxCols);
  static constexpr int kBoxes = kBoxCols == 0 ? 1 : kTileBoxes * kBoxBytes <= kRoom ? kTileBoxes : kRoom / kBoxBytes;
  static constexpr int kStagingBytes = kSplit > 1 ? kPartBytes * (kSplit - 1) : kBoxes * kBoxBytes;
  static constexpr int kBarriers = 2 * kStages + 3 + kConsumers / 32 * kBoxes;
  static constexpr int kSharedBytes = 1024 + kStages * kStageBytes + kStagingBytes + kBarriers * 8;  ///< with room to align

  /// Small blocks leave room for others on the multiprocessor: of the next launch, which then copies ahead. A grid that has no more blocks
  /// than there are multiprocessors does not (spread.h).
  static constexpr int kResident = kHeld > 64 ? 1 : kSharedBytes <= 75 * 1024 && kConsumers == 128 ? 3 : kSharedBytes <= 113 * 1024 ? 2 : 1;

  /// Registers of a thread at the start, of one that copies and of one that computes: together no more than at the start.
  static constexpr int kWarpsOfQuarter = (kThreads * kResident / 32 + 3) / 4, kMost = 512 / kWarpsOfQuarter / 8 * 8;
  static constexpr int kStartRegisters = kMost < 248 ? kMost : 248;
  static constexpr int kCopyRegisters = kTeams * kGroups == 2 ? 40 : 32;
  static constexpr int kRegisters = kMoves ? (kStartRegisters * kThreads - kCopyRegisters * 128) / kConsumers / 8 * 8 : kStartRegisters;

  static_assert((kTeams == 1 || kTeams == 2) && kTeams * kGroups <= 4, "at most four warpgroups compute");
  static_assert(kM % (64 * kGroups) == 0 && kM <= 256 && kN % 32 == 0 && kN <= 256, "a warpgroup computes multiples of 64 x 32");
  static_assert(kHeld + 40 <= kRegisters, "the accumulators fit in registers");
  static_assert(kCols % (8 * kCluster) == 0 && kStages >= 2 && kSharedBytes <= 227 * 1024);
  static_assert(kTileBoxes == 1 || kBoxes >= 2, "a warp has two boxes of results on their way");
  static_assert(kHalves == 1 || (kSplit == 1 && kCols % 16 == 0), "a gated tile is not split, and multiples of 16 results wide");
  static_assert(kHead == 0 || (kSplit == 1 && kN % kHead == 0), "a rotated tile is not split, and has whole heads");
  static_assert(kSplit == 1 || (kCluster == 1 && kTeams == 1 && kShare % 8 == 0), "blocks that share a tile finish multiples of 8 columns");
};

/// @brief Where a and b are matrices in memory; whether each has one of its own for each batch.
struct InMatrices {
  bool a_inner, a_outer, b_inner, b_outer;
};

/// @brief The same, with scales of groups along K as long as a step.
struct InScaledMatrices : InMatrices {
  BlockScales scales;
};

/// @brief The arguments of `gemm_wgmma_kernel`. `From`: the source of a and b.
template <class From, class T, class D, class... E>
struct HopperArgs {
  CUtensorMap a_map, b_map, d_map, e_map;  ///< of a, b, d and the extra operand that is copied to where the results will be
  GemmArgs<T, D, E...> gemm;  ///< tiles_m counts tiles of whole clusters
  From from;
  int tiles, steps;           ///< of all batches, for a cluster; along K
  bool e_inner, e_outer;      ///< whether that operand has a matrix of its own for each batch
  bool a_early, b_early;      ///< whether the operand may be read before the launch before has ended
  int turned;                 ///< of a rotated product, the columns of heads that are turned
};

/// @brief Starts the copies of one operand of a stage: this block's share, 1 / `kShares`, of its lines. `kLines` x K if K is contiguous.
template <class Tile, int kLines, bool kContiguousK, int kShares>
__device__ __forceinline__ void copy_operand(uint32_t to, const CUtensorMap* map, uint32_t barrier, int line, int k, int inner, int outer,
                                             int share) {
  constexpr uint16_t kMask = (1 << kShares) - 1;
  if constexpr (kContiguousK) {
    constexpr int kPart = kLines / kShares;
    copy_box<(kShares > 1)>(to + share * kPart * 128, map, barrier, k, line + share * kPart, inner, outer, kMask);
  } else {
    constexpr int kPart = Tile::kK / kShares;  // of elements of 2 bytes: those of 8 bits have K contiguous
#pragma unroll
    for (int i = 0; i < kLines / 64; ++i) {
      copy_box<(kShares > 1)>(to + i * Tile::kK * 128 + share * kPart * 128, map, barrier, line + i * 64, k + share * kPart, inner, outer, kMask);
    }
  }
}

/// @brief Whether spans of all operands but columns can be read in 16-byte pieces.
template <uint32_t kVectors>
bool all_aligned(const Operands<>&) {
  return true;
}

template <uint32_t kVectors, class E, class... Rest>
bool all_aligned(const Operands<E, Rest...>& operands) {
  return (is_one_column<kVectors> ? operands.first.col == 0 : operands.aligned) && all_aligned<(kVectors >> 1)>(operands.rest);
}

/// @brief Where a block's tile is.
template <class Tile>
struct TilePlace {
  int outer, inner;  ///< its batch
  int m0, n0;        ///< its first row and column; `kSplit` blocks share it

  template <class Args>
  __device__ __forceinline__ TilePlace(const Args& args, int number, int rank) {
    const TileIndex tile(uint32_t(number), args.gemm.tiles_m, args.gemm.tiles_n);
    outer = tile.batch / args.gemm.inner, inner = tile.batch % args.gemm.inner;
    m0 = (Tile::kCluster > 1 ? tile.m * Tile::kCluster + rank : tile.m) * Tile::kM, n0 = tile.n * Tile::kCols;
  }
};

/// @brief Starts the copies of a step: those of the operands chosen. `From` is `InMatrices` or `InScaledMatrices`.
template <class Tile, bool kAK, bool kBK, class From, class T, class D, class... E, std::enable_if_t<std::is_base_of_v<InMatrices, From>, int> = 0>
__device__ __forceinline__ void copy_step(const HopperArgs<From, T, D, E...>& args, uint32_t to, uint32_t barrier,
                                          const TilePlace<Tile>& tile, int step, int rank, bool a, bool b) {
  const InMatrices& from = args.from;
  const int k = step * Tile::template kDepth<T>;
  if (a) {
    copy_operand<Tile, Tile::kM, kAK, 1>(to, &args.a_map, barrier, tile.m0, k, from.a_inner ? tile.inner : 0,
                                         from.a_outer ? tile.outer : 0, 0);
  }
  if (b) {
#pragma unroll
    for (int half = 0; half < Tile::kHalves; ++half) {
      copy_operand<Tile, Tile::kCols, kBK, Tile::kCluster>(to + Tile::kABytes + half * Tile::kCols * 128, &args.b_map, barrier,
                                                           tile.n0 + half * args.gemm.n, k, from.b_inner ? tile.inner : 0,
                                                           from.b_outer ? tile.outer : 0, Tile::kCluster > 1 ? rank : 0);
    }
  }
}

/// @brief Zeros.
template <class Sum, int kM, int kN>
__device__ __forceinline__ void zero_sums(Sum (&sums)[kM][kN]) {
#pragma unroll
  for (int i = 0; i < kM; ++i)
#pragma unroll
    for (int r = 0; r < kN; ++r) sums[i][r] = Sum(0);
}

/// @brief Adds the sums of a step, which the tensor cores have finished, to those of the steps before.
template <class Sum, int kM, int kN>
__device__ __forceinline__ void add_sums(Sum (&sums)[kM][kN], const Sum (&part)[kM][kN]) {
#pragma unroll
  for (int i = 0; i < kM; ++i)
#pragma unroll
    for (int r = 0; r < kN; ++r) sums[i][r] += part[i][r];
}

/// @brief The scales of a step for the rows of a thread's sums: of rows `lane / 4` and 8 below in each 64 rows of the warpgroup, times that of the
/// tile's columns.
/// @param row the first row of the warpgroup; rows from `m` on have any scale
template <class Tile>
__device__ __forceinline__ void load_scales(const BlockScales& from, float (&scales)[Tile::kMmaM][2], int row, int col, int step, int m) {
  const float column = from.columns[int64_t(col / from.block) * from.groups + step];
  const int first = row + int(threadIdx.x) % 128 / 32 * 16 + int(threadIdx.x) % 32 / 4;
#pragma unroll
  for (int i = 0; i < Tile::kMmaM; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = first + i * 64 + half * 8;
      scales[i][half] = column * from.rows[int64_t(at < m ? at : m - 1) * from.groups + step];
    }
}

/// @brief Adds the sums of a step, times the scales of their rows, to those of the steps before.
template <int kM, int kN>
__device__ __forceinline__ void add_scaled_sums(float (&sums)[kM][kN], const float (&part)[kM][kN], const float (&scales)[kM][2]) {
#pragma unroll
  for (int i = 0; i < kM; ++i)
#pragma unroll
    for (int r = 0; r < kN; ++r) sums[i][r] += part[i][r] * scales[i][r / 2 % 2];
}

/// @brief Sends the partial sums of other blocks' columns to them and adds up this block's own. In the order of the ranks, so that a result
/// never depends on who came first.
template <class Tile, class Sum>
__device__ __forceinline__ void exchange_sums(const Sum (&acc)[Tile::kMmaM][Tile::kN / 2], Sum (&sum)[Tile::kMmaM][Tile::kShare / 2],
                                              uint32_t inbox, uint32_t received, int rank) {
  constexpr int kQuads = Tile::kShare / 8;
  const uint32_t mine = inbox + threadIdx.x * 16;
  auto place = [&](int slot, int i, int q) { return uint32_t(slot * Tile::kPartBytes + (i * kQuads + q) * Tile::kConsumers * 16); };
#pragma unroll
  for (int to = 0; to < Tile::kSplit; ++to) {
    if (to == rank) {
#pragma unroll
      for (int i = 0; i < Tile::kMmaM; ++i)
#pragma unroll
        for (int r = 0; r < Tile::kShare / 2; ++r) sum[i][r] = acc[i][to * (Tile::kShare / 2) + r];
    } else {
      const uint32_t remote = address_in(mine, uint32_t(to)), barrier = address_in(received, uint32_t(to));
      const int slot = rank < to ? rank : rank - 1;
#pragma unroll
      for (int i = 0; i < Tile::kMmaM; ++i)
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
          const Sum* v = &acc[i][to * (Tile::kShare / 2) + q * 4];
          send(remote + place(slot, i, q), barrier, bit_cast<float>(v[0]), bit_cast<float>(v[1]), bit_cast<float>(v[2]), bit_cast<float>(v[3]));
        }
    }
  }
  barrier_wait(received, 0);
#pragma unroll
  for (int slot = 0; slot < Tile::kSplit - 1; ++slot) {
#pragma unroll
    for (int i = 0; i < Tile::kMmaM; ++i)
#pragma unroll
      for (int q = 0; q < kQuads; ++q) {
        float v[4];
        load_shared_floats(v, mine + place(slot, i, q));
#pragma unroll
        for (int e = 0; e < 4; ++e) sum[i][q * 4 + e] += bit_cast<Sum>(v[e]);
      }
  }
}

/// @brief One of the extra operands, before any further result.
template <int kIndex, class E, class... Rest>
const auto& operand_at(const Operands<E, Rest...>& operands) {
  if constexpr (kIndex == 0) {
    return operands.first;
  } else {
    return operand_at<kIndex - 1>(operands.rest);
  }
}

/// @brief `d = epilogue(a @ b)`, gated `d = epilogue(a @ b[:, :n], a @ b[:, n:])`; block: Tile::kThreads; grid: any multiple of the cluster, or `kSplit` blocks for each tile. At least one
/// step along K.
/// @tparam kAK, kBK whether K is the contiguous dim of the operand
/// @tparam kAligned whether rows of d and of extra operands start on 16 bytes, and have a multiple of 8 columns
/// @tparam kVectors bit i: extra operand i is one row that all rows share; bit 16 + i: one column that all columns share
template <class Tile, bool kAK, bool kBK, bool kAligned, uint32_t kVectors, class F, class From, class T, class D, class... E>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kResident) gemm_wgmma_kernel(const __grid_constant__ HopperArgs<From, T, D, E...> args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  AIT_DYNAMIC_SHARED(16, shared);
  static_assert(!is_byte<T> || (kAK && kBK), "K is the contiguous dim of both operands of 8-bit numbers");
  using Sum = sum_t<T>;
  static_assert(Tile::kShortSums == has_short_sums<T>, "the tile keeps the sums of a step apart where they are short");
  constexpr int kClusterBlocks = Tile::kCluster * Tile::kSplit, kSpare = Tile::kRegisters - Tile::kHeld;
  using Rounds = FragmentRounds<Tile::kMmaM, Tile::kShare, Tile::kHalves, Tile::kBoxCols, kSpare, kAligned, Tile::kHead, kVectors, D, E...>;
  const uint32_t stages = (shared_address(shared) + 1023u) & ~1023u, staging = stages + Tile::kStages * Tile::kStageBytes;
  const uint32_t full = staging + Tile::kStagingBytes, empty = full + Tile::kStages * 8, turns = empty + Tile::kStages * 8, received = turns + 16, landed = received + 8;
  const int warp = __shfl_sync(0xffffffffu, int(threadIdx.x) / 32, 0);
  const int rank = kClusterBlocks > 1 ? int(blockIdx.x % kClusterBlocks) : 0;
  const int first = int(blockIdx.x / kClusterBlocks), stride = int(gridDim.x / kClusterBlocks);

  if (threadIdx.x == 0) {
    for (int s = 0; s < Tile::kStages; ++s) {
      barrier_init(full + s * 8, 1);
      barrier_init(empty + s * 8, 4 * Tile::kGroups * Tile::kCluster);
    }
    for (int team = 0; team < 2; ++team) barrier_init(turns + team * 8, 4 * Tile::kGroups);
    barrier_init(received, 1);
    for (int i = 0; i < Tile::kConsumers / 32 * Tile::kBoxes; ++i) barrier_init(landed + i * 8, 1);
    barrier_init_fence();
    if (Tile::kSplit > 1) barrier_expect(received, uint32_t(Tile::kPartBytes * (Tile::kSplit - 1)));
    prefetch_map(&args.a_map);
    prefetch_map(&args.b_map);
  }
  if constexpr (kClusterBlocks > 1) {
    cluster_barrier();
  } else {
    __syncthreads();
  }

  const GemmArgs<T, D, E...>& gemm = args.gemm;
  // The steps along K of this block.
  const int begin = Tile::kSplit > 1 ? args.steps * rank / Tile::kSplit : 0;
  const int steps = Tile::kSplit > 1 ? args.steps * (rank + 1) / Tile::kSplit - begin : args.steps;
  RingPlace<Tile::kStages> place;
  if (warp >= Tile::kConsumers / 32) {
    if constexpr (Tile::kMoves) shrink_registers<Tile::kCopyRegisters>();
    if (threadIdx.x == Tile::kConsumers) {
      // What does not depend on the launch before is known, and on its way, while that ends.
      TilePlace<Tile> tile(args, first, rank);
      const int early = !args.a_early && !args.b_early ? 0 : steps < Tile::kStages ? steps : Tile::kStages;
#pragma unroll 1
      for (int step = 0; step < early; ++step) {
        const uint32_t barrier = full + uint32_t(step) * 8;
        barrier_expect(barrier, Tile::kStageBytes);
        copy_step<Tile, kAK, kBK>(args, stages + uint32_t(step) * Tile::kStageBytes, barrier, tile, begin + step, rank, args.a_early, args.b_early);
      }
      wait_for_previous();
#pragma unroll 1
      for (int step = 0; step < early; ++step) {
        copy_step<Tile, kAK, kBK>(args, stages + uint32_t(step) * Tile::kStageBytes, full + uint32_t(step) * 8, tile, begin + step, rank,
                                  !args.a_early, !args.b_early);
      }
      place.skip(uint32_t(early));
      for (int t = first, step = early;;) {
#pragma unroll 1
        for (; step < steps; ++step) {
          const uint32_t barrier = full + place.stage * 8;
          barrier_wait(empty + place.stage * 8, place.parity ^ 1);
          barrier_expect(barrier, Tile::kStageBytes);
          copy_step<Tile, kAK, kBK>(args, stages + place.stage * Tile::kStageBytes, barrier, tile, begin + step, rank, true, true);
          place.next();
        }
        t += stride;
        if (t >= args.tiles) break;
        tile = TilePlace<Tile>(args, t, rank), step = 0;
      }
      // Not before: blocks of the next launch would take room, and copy what they can, while this one still waits for its own operands.
      allow_next();
    }
  } else {
    if constexpr (Tile::kMoves) grow_registers<Tile::kRegisters>();
    const int team = warp / 4 / Tile::kGroups, group = warp / 4 % Tile::kGroups, lane = int(threadIdx.x) % 32;
    TilePlace<Tile> tile(args, first + team * stride, rank);
    wait_for_previous();
    // Where nothing hides the epilogue, its first operands are read before the products.
    constexpr bool kEarlyExtra = Tile::kTeams == 1 && kSpare - 2 * Rounds::Extra::kWords >= 64;
    using WarpBoxes = Boxes<(Tile::kBoxCols > 0 ? Tile::kBoxCols : 64), Tile::kBoxes, (Rounds::kBytes ? 1 : 2)>;
    WarpBoxes boxes{staging + uint32_t(warp * Tile::kBoxes * WarpBoxes::kBytes), landed + uint32_t(warp * Tile::kBoxes * 8)};
    auto release = [&](uint32_t stage) {
      // What was read there was read by the tensor cores, and is done: no memory of this thread needs to be ordered.
      if constexpr (Tile::kCluster > 1) {
        if (lane < Tile::kCluster) barrier_arrive(empty + stage * 8, uint32_t(lane));
      } else if (lane == 0) {
        barrier_arrive(empty + stage * 8);
      }
    };
    place.skip(uint32_t(team * steps));
    uint32_t turn_parity = team == 0;  // nobody goes before the first turn of team 0
    for (int t = first + team * stride; t < args.tiles; t += Tile::kTeams * stride) {
      // Parities tell a phase of a stage only from its neighbours, so a team waits for stages when the other has seen its last.
      if (Tile::kTeams > 1) barrier_wait(turns + team * 8, turn_parity);
      turn_parity ^= 1;
      const int outer = tile.outer, inner = tile.inner;
      const int m0 = tile.m0 + group * Tile::kMmaM * 64, n0 = tile.n0 + (Tile::kSplit > 1 ? rank * Tile::kShare : 0);
      load_staged<Rounds, WarpBoxes, Tile::kBoxes>(&args.e_map, boxes, m0, n0, args.e_outer ? outer : 0, args.e_inner ? inner : 0);
      typename Rounds::Extra first_extra;
      if constexpr (kEarlyExtra) fetch_extra<Rounds>(gemm, first_extra, 0, m0, n0, outer, inner);
      Sum acc[Tile::kMmaM][Tile::kN / 2];
      uint32_t previous = 0;
      if constexpr (Tile::kShortSums) zero_sums(acc);
      for (int step = 0; step < steps; ++step) {
        barrier_wait(full + place.stage * 8, place.parity);
        using Operand = WgmmaOperand<Tile::kK * 128>;
        const uint32_t stage_at = Operand::sixteenths(stages) + place.stage * (Tile::kStageBytes >> 4), b_at = stage_at + (Tile::kABytes >> 4);
        const uint32_t at = stage_at + uint32_t(group) * (Tile::kMmaM * 64 * 128 >> 4);
        auto multiply = [&](Sum(&sums)[Tile::kMmaM][Tile::kN / 2], bool adds) {
          wgmma_fence();
#pragma unroll
          for (int k = 0; k < Tile::kK / 16; ++k) {
            const uint64_t b_operand = Operand::at(b_at + (kBK ? k * 32 : k * 2048) / 16);
#pragma unroll
            for (int i = 0; i < Tile::kMmaM; ++i) {
              const uint64_t a_operand = Operand::at(at + (i * 64 * 128 + (kAK ? k * 32 : k * 2048)) / 16);
              Wgmma<Tile::kN>::template run<T, !kAK, !kBK>(sums[i], a_operand, b_operand, k > 0 || adds);
            }
          }
          wgmma_commit();
        };
        if constexpr (Tile::kShortSums) {
          Sum part[Tile::kMmaM][Tile::kN / 2];
          if constexpr (std::is_base_of_v<InScaledMatrices, From>) {
            float scales[Tile::kMmaM][2];
            multiply(part, false);
            load_scales<Tile>(args.from.scales, scales, m0, tile.n0, begin + step, gemm.m);  // while the tensor cores multiply
            wgmma_wait<0>();
            release(place.stage);
            add_scaled_sums(acc, part, scales);
          } else {
            multiply(part, false);
            wgmma_wait<0>();
            release(place.stage);
            add_sums(acc, part);
          }
        } else {
          multiply(acc, step > 0);
          wgmma_wait<1>();  // the products of the step before are done with their stage
          if (step > 0) release(previous);
          previous = place.stage;
        }
        place.next();
      }
      if (Tile::kTeams > 1 && lane == 0) barrier_arrive(turns + (team ^ 1) * 8);
      place.skip(uint32_t((Tile::kTeams - 1) * steps));
      if constexpr (Tile::kSplit > 1) {
        wgmma_wait<0>();
        if (!Tile::kShortSums && steps == 0) zero_sums(acc);
        Sum sum[Tile::kMmaM][Tile::kShare / 2];
        finish_fragments<Rounds, Tile::kBoxes, F, kEarlyExtra>(gemm, first_extra, &args.d_map, &args.e_map, boxes, sum, m0, n0, outer, inner,
                                                               args.e_inner, args.e_outer,
                                                               [&] { exchange_sums<Tile>(acc, sum, staging, received, rank); });
      } else {
        finish_fragments<Rounds, Tile::kBoxes, F, kEarlyExtra>(gemm, first_extra, &args.d_map, &args.e_map, boxes, acc, m0, n0, outer, inner,
                                                               args.e_inner, args.e_outer,
                                                               [&] {
                                                                 if (Tile::kShortSums) return;
                                                                 wgmma_wait<0>();
                                                                 release(previous);
                                                               },
                                                               args.turned);
      }
      if (t + Tile::kTeams * stride < args.tiles) tile = TilePlace<Tile>(args, t + Tile::kTeams * stride, rank);
    }
    if (lane == 0) store_wait<0>();  // copies still read shared memory
  }
  if constexpr (Tile::kCluster > 1) {
    __syncwarp();
    cluster_barrier();  // the others may still write to this block and arrive at its barriers
  }
#endif
}

/// @brief Whether columns of all operands are contiguous, or one, which is all that kernels for rows that start anywhere need.
template <uint32_t kVectors>
bool all_rows(const Operands<>&) {
  return true;
}

template <uint32_t kVectors, class E, class... Rest>
bool all_rows(const Operands<E, Rest...>& operands) {
  return operands.first.col == (is_one_column<kVectors> ? 0 : 1) && all_rows<(kVectors >> 1)>(operands.rest);
}

/// @brief Describes result and extra operands to the copy engine, and launches `gemm_wgmma_kernel`. `args` has maps of a and b, the product,
/// and what it says of a and b.
/// @param rows of the result, `inner * outer` times
/// @param mapped whether the driver took the maps of a and b
template <class Tile, bool kAK, bool kBK, bool kAligned, uint32_t kVectors, class F, class From, class T, class D, class... E>
int32_t launch_wgmma(const Context& ctx, const GemmShape& shape, HopperArgs<From, T, D, E...>& args, bool mapped) {
  const Matrices<D>& d = args.gemm.d;
  args.tiles = int(shape.outer * shape.inner) * args.gemm.tiles_m * args.gemm.tiles_n;
  using Rounds = FragmentRounds<Tile::kMmaM, Tile::kShare, Tile::kHalves, Tile::kBoxCols, 0, kAligned, Tile::kHead, kVectors, D, E...>;
  if constexpr (Rounds::kBoxed && kAligned) {
    mapped = mapped && tensor_map(&args.d_map, d.data, shape.n, shape.m, d.row, shape.inner, d.inner, shape.outer, d.outer, 16, Tile::kBoxCols);
  }
  if constexpr (Rounds::kStaged >= 0) {
    const auto& e = operand_at<Rounds::kStaged>(args.gemm.operands);
    args.e_inner = e.inner != 0, args.e_outer = e.outer != 0;
    mapped = mapped && tensor_map(&args.e_map, e.data, shape.n, shape.m, e.row, shape.inner, e.inner, shape.outer, e.outer, 16, Tile::kBoxCols);
  }
  if (!mapped) return ctx.fail("gemm: the driver does not describe its operands to the copy engine (cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col)");
  constexpr int kClusterBlocks = Tile::kCluster * Tile::kSplit;
  const int clusters = Tile::kSplit > 1 ? args.tiles : multiprocessors() * Tile::kResident / kClusterBlocks;
  LaunchConfig config;
  config.grid = dim3(grid_size(clusters < args.tiles ? clusters : args.tiles) * kClusterBlocks);
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = spread(Tile::kSharedBytes, config.grid.x);
  config.cluster = kClusterBlocks;
  config.dependent = true;
  return launch(ctx, config, gemm_wgmma_kernel<Tile, kAK, kBK, kAligned, kVectors, F, From, T, D, E...>, args);
}

/// @brief The number of tiles along one dim.
constexpr int tiles_of(int64_t size, int tile) { return int((size + tile - 1) / tile); }

/// @brief Describes matrices a and b to the copy engine, and launches `gemm_wgmma_kernel`.
/// @param turned of a rotated product, the columns of heads that are turned
/// @param from an `InMatrices`, or with scales, whose flags are set here
template <class Tile, bool kAK, bool kBK, bool kAligned, uint32_t kVectors, class F, class T, class D, class... E, class From>
int32_t launch_matrices_from(const Context& ctx, const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d,
                             Operands<E...> operands, bool a_early, bool b_early, int turned, const From& from) {
  HopperArgs<From, T, D, E...> args{};
  args.gemm = {int(shape.m), int(shape.n), int(shape.k), int(shape.inner), tiles_of(shape.m, Tile::kM * Tile::kCluster),
               tiles_of(shape.n, Tile::kCols), a, b, d, true, true, true, operands};
  args.from = from;
  static_cast<InMatrices&>(args.from) = {a.inner != 0, a.outer != 0, b.inner != 0, b.outer != 0};
  args.steps = tiles_of(shape.k, Tile::template kDepth<T>);
  args.a_early = a_early, args.b_early = b_early, args.turned = turned;
  const int64_t b_cols = shape.n * Tile::kHalves;
  const bool mapped =
      tensor_map(&args.a_map, a.data, kAK ? shape.k : shape.m, kAK ? shape.m : shape.k, kAK ? a.row : a.col, shape.inner, a.inner,
                 shape.outer, a.outer, kAK ? Tile::kM : Tile::kK) &&
      tensor_map(&args.b_map, b.data, kBK ? shape.k : b_cols, kBK ? b_cols : shape.k, kBK ? b.col : b.row, shape.inner, b.inner,
                 shape.outer, b.outer, (kBK ? Tile::kCols : Tile::kK) / Tile::kCluster);
  return launch_wgmma<Tile, kAK, kBK, kAligned, kVectors, F>(ctx, shape, args, mapped);
}

/// @brief `launch_matrices_from` without scales.
template <class Tile, bool kAK, bool kBK, bool kAligned, uint32_t kVectors, class F, class T, class D, class... E>
int32_t launch_matrices(const Context& ctx, const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d, Operands<E...> operands,
                        bool a_early, bool b_early, int turned = 0) {
  return launch_matrices_from<Tile, kAK, kBK, kAligned, kVectors, F>(ctx, shape, a, b, d, operands, a_early, b_early, turned, InMatrices{});
}

/// @brief Launches `gemm_wgmma_kernel`: half or bfloat16 operands, each with one stride of 1, or bytes. Where rows of a or b start off 16-byte
/// boundaries, columns of d or an extra operand are not contiguous, or K is 0, a slow kernel takes over; so it does, if `kAligned`, where rows
/// of d or an extra operand start off 16-byte boundaries, or N is no multiple of 8.
/// @param shape of a gated product as well: N is how many columns d has, b has twice as many
/// @param a_early, b_early whether the operand is never written, as weights are
template <class Tile, bool kAK, bool kBK, bool kAligned, uint32_t kVectors, class F, class T, class D, class... E,
          std::enable_if_t<!are_bytes<T, T>, int> = 0>
int32_t gemm_wgmma(const Context& ctx, const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d,
                   Operands<E...> operands, bool a_early = false, bool b_early = false) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  const bool aligned = (kAK ? rows_aligned(a, a.col, a.row) : rows_aligned(a, a.row, a.col)) &&
                       (kBK ? rows_aligned(b, b.row, b.col) : rows_aligned(b, b.col, b.row));
  const bool rows = kAligned ? rows_aligned(d, d.col, d.row) && all_aligned<kVectors>(operands) && shape.n % kSpan == 0 : d.col == 1 && all_rows<kVectors>(operands);
  if (!aligned || !rows || shape.k == 0) {
    return gemm_simt<F, Tile::kHalves>(ctx, shape, a, b, d, operands);
  }
  return launch_matrices<Tile, kAK, kBK, kAligned, kVectors, F>(ctx, shape, a, b, d, operands, a_early, b_early);
}

/// @brief The same for numbers of 8 bits, integers or floats.
template <class Tile, bool kAK, bool kBK, bool kAligned, uint32_t kVectors, class F, class A, class B, class D, class... E,
          std::enable_if_t<are_bytes<A, B>, int> = 0>
int32_t gemm_wgmma(const Context& ctx, const GemmShape& shape, Matrices<const A> a, Matrices<const B> b, Matrices<D> d, Operands<E...> operands,
                   bool a_early = false, bool b_early = false) {
  using T = Byte<A, B>;
  return gemm_wgmma<Tile, kAK, kBK, kAligned, kVectors, F, T>(ctx, shape, as_bytes<T>(a), as_bytes<T>(b), d, operands, a_early, b_early);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_GEMM_WGMMA_CUH_
