/// @file gemm_wgmma.cuh
/// @brief Gemm on Hopper (sm_90a): bulk tensor copies into a ring of stages, wgmma, a persistent grid, any epilogue.
///
/// A block has a warpgroup of which one thread copies, and one or two teams of warpgroups that compute. A team computes a whole tile, each of
/// its groups some rows. Two teams take turns, so that the epilogue of one hides behind the products of the other.
/// The blocks of a cluster compute tiles one below the other and copy the columns of b that they share once, to all of them.
/// The accumulators are transposed among four lanes, so that the epilogue sees `kSpan` neighbouring columns and writes 16 bytes.
#ifndef AIT_KERNELS_GPU_GEMM_WGMMA_CUH_
#define AIT_KERNELS_GPU_GEMM_WGMMA_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/gemm_epilogue.cuh"
#include "ait/kernels/gpu/gemm_simt.cuh"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/tma.cuh"
#include "ait/kernels/gpu/wgmma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief The shape of a block's work.
/// @tparam kM_, kN_ tile of the result
/// @tparam kStages_ steps of 64 along K in flight
/// @tparam kCluster_ blocks of a cluster: 1, 2 or 4
/// @tparam kTeams_, kGroups_ how many tiles are worked on at a time; warpgroups that share one
template <int kM_, int kN_, int kStages_, int kCluster_, int kTeams_, int kGroups_>
struct HopperTile {
  static constexpr int kM = kM_, kN = kN_, kK = 64, kStages = kStages_, kCluster = kCluster_, kTeams = kTeams_, kGroups = kGroups_;
  static constexpr int kConsumers = 128 * kTeams * kGroups, kThreads = kConsumers + 128;
  static constexpr int kMmaM = kM / kGroups / 64;  ///< times 64 rows of a warpgroup
  static constexpr int kABytes = kM * kK * 2, kBBytes = kN * kK * 2, kStageBytes = kABytes + kBBytes;
  static constexpr int kSharedBytes = 1024 + kStages * kStageBytes + (kStages + 1) * 16;  ///< with room to align the first stage

  /// Registers of a thread at the start, of one that copies and of one that computes: together no more than at the start.
  static constexpr int kStartRegisters = 65536 / kThreads / 8 * 8;
  static constexpr int kCopyRegisters = kTeams * kGroups == 2 ? 40 : 32;
  static constexpr int kRegisters = (kStartRegisters * kThreads - kCopyRegisters * 128) / kConsumers / 8 * 8;

  static_assert((kTeams == 1 || kTeams == 2) && kTeams * kGroups <= 4, "at most four warpgroups compute");
  static_assert(kM % (64 * kGroups) == 0 && kM <= 256 && kN % 32 == 0 && kN <= 256, "a warpgroup computes multiples of 64 x 32");
  static_assert(kMmaM * kN / 2 + 40 <= kRegisters, "the accumulators fit in registers");
  static_assert(kN % (8 * kCluster) == 0 && kStages >= 2 && kSharedBytes <= 227 * 1024);
};

/// @brief What `gemm_wgmma_kernel` is given.
template <class T, class D, class... E>
struct HopperArgs {
  CUtensorMap a_map, b_map;
  GemmArgs<T, D, E...> gemm;  ///< tiles_m counts tiles of whole clusters
  int tiles, steps;           ///< of all batches, for a cluster; along K
  bool a_inner, a_outer, b_inner, b_outer;  ///< whether the operand has a matrix of its own for each batch
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
    constexpr int kPart = Tile::kK / kShares;
#pragma unroll
    for (int i = 0; i < kLines / 64; ++i) {
      copy_box<(kShares > 1)>(to + i * Tile::kK * 128 + share * kPart * 128, map, barrier, line + i * 64, k + share * kPart, inner, outer, kMask);
    }
  }
}

/// @brief Among four neighbouring lanes: block j of lane i becomes block i of lane j.
__device__ __forceinline__ void transpose_quad(float (&v)[4][2]) {
  const int lane = int(threadIdx.x);
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool upper = (lane & bit) != 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if ((j & bit) != 0) continue;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float sent = upper ? v[j][e] : v[j + bit][e];
        const float received = shuffle_xor(sent, bit);
        if (upper) {
          v[j][e] = received;
        } else {
          v[j + bit][e] = received;
        }
      }
    }
  }
}

/// @brief Whether spans of all operands are read in 16-byte pieces.
inline bool all_aligned(const Operands<>&) { return true; }

template <class E, class... Rest>
bool all_aligned(const Operands<E, Rest...>& operands) {
  return operands.aligned && all_aligned(operands.rest);
}

/// @brief Reads a whole span of each operand, without a branch.
template <class... E>
__device__ __forceinline__ void fetch_aligned(const Operands<E...>& operands, int64_t outer, int64_t inner, int row, int col,
                                              typename Operands<E...>::Raw& raw) {
  if constexpr (sizeof...(E) > 0) {
    const auto& x = operands.first;
    load_span(x.data + outer * x.outer + inner * x.inner + int64_t(row) * x.row + col, 1, true, kSpan, raw.first);
    fetch_aligned(operands.rest, outer, inner, row, col, raw.rest);
  }
}

/// @brief Writes a whole span if `exists`, without a branch, so that the spans around it are computed side by side.
template <class D>
__device__ __forceinline__ void store_aligned(D* to, const Span<compute_t<D>>& from, bool exists) {
  if constexpr (sizeof(D) == 2 || sizeof(D) == 4) {
    RawSpan<D> raw;
    struct alignas(16) Words {
      uint32_t v[4];
    };
#pragma unroll
    for (int i = 0; i < kSpan; ++i) raw.pieces[i / (kSpan / kPieces<D>)].v[i % (kSpan / kPieces<D>)] = convert<D>(from.v[i]);
#pragma unroll
    for (int p = 0; p < kPieces<D>; ++p) {
      const Words words = bit_cast<Words>(raw.pieces[p]);
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n@p st.global.v4.b32 [%0], {%1, %2, %3, %4};\n}\n" ::"l"(
                       reinterpret_cast<Piece<D>*>(to) + p),
                   "r"(words.v[0]), "r"(words.v[1]), "r"(words.v[2]), "r"(words.v[3]), "r"(int(exists))
                   : "memory");
    }
  } else {
    if (exists) store_span(to, 1, true, kSpan, from);
  }
}

/// @brief The epilogue over the accumulators of a warpgroup, whose first row is `m0`. `ready` returns when they are complete.
template <class Tile, class F, class T, class D, class... E, class Ready>
__device__ __forceinline__ void finish_accumulators(const GemmArgs<T, D, E...>& args, float (&acc)[Tile::kMmaM][Tile::kN / 2], int m0, int n0,
                                                    int64_t outer, int64_t inner, const Ready& ready) {
  // A round finishes a span of several rows. The operands of a round are read before the round before is finished.
  constexpr int kSpans = Tile::kMmaM * 2, kRound = Tile::kRegisters - Tile::kMmaM * Tile::kN / 2 < 64 ? 1 : 2, kPerBlock = kSpans / kRound;
  constexpr int kRounds = Tile::kN / 32 * kPerBlock;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32 % 4;
  const int first_row = m0 + warp * 16 + lane / 4, first_col = n0 + (lane % 4) * kSpan;
  D* const to = args.d.data + outer * args.d.outer + inner * args.d.inner;
  typename Operands<E...>::Raw raw[2][kRound];
  auto row_of = [&](int span) { return first_row + span / 2 * 64 + span % 2 * 8; };
  auto fetch = [&](int round, typename Operands<E...>::Raw(&into)[kRound]) {
    const int col = first_col + round / kPerBlock * 32;
#pragma unroll
    for (int s = 0; s < kRound; ++s) {
      const int row = row_of(round % kPerBlock * kRound + s);
      // What does not exist is read from the last row and columns, and not used.
      fetch_aligned(args.operands, outer, inner, row < args.m ? row : args.m - 1, col < args.n ? col : args.n - kSpan, into[s]);
    }
  };
  fetch(0, raw[0]);
  ready();
#pragma unroll
  for (int block = 0; block < Tile::kN / 32; ++block) {
    const int col = first_col + block * 32;
#pragma unroll
    for (int part = 0; part < kPerBlock; ++part) {
      const int round = block * kPerBlock + part;
      if (round + 1 < kRounds) fetch(round + 1, raw[(round + 1) % 2]);
#pragma unroll
      for (int s = 0; s < kRound; ++s) {
        const int span = part * kRound + s, row = row_of(span);
        float v[4][2];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int at = (block * 4 + j) * 4 + span % 2 * 2;
          v[j][0] = acc[span / 2][at], v[j][1] = acc[span / 2][at + 1];
        }
        transpose_quad(v);
        Span<float> sum;
        Span<compute_t<D>> out;
#pragma unroll
        for (int e = 0; e < kSpan; ++e) sum.v[e] = v[e / 2][e % 2];
        Operands<E...>::template run<F>(raw[round % 2][s], sum, out);
        store_aligned(to + int64_t(row) * args.d.row + col, out, row < args.m && col < args.n);
      }
    }
  }
}

/// @brief `d = epilogue(a @ b)`; grid: any multiple of the cluster, block: Tile::kThreads. At least one step along K.
/// @tparam kAK, kBK whether K is the contiguous dim of the operand
template <class Tile, bool kAK, bool kBK, class F, class T, class D, class... E>
__global__ void __launch_bounds__(Tile::kThreads, 1) gemm_wgmma_kernel(const __grid_constant__ HopperArgs<T, D, E...> args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ char shared[];
  const uint32_t stages = (shared_address(shared) + 1023u) & ~1023u;
  const uint32_t full = stages + Tile::kStages * Tile::kStageBytes, empty = full + Tile::kStages * 8, turns = empty + Tile::kStages * 8;
  const int warp = __shfl_sync(0xffffffffu, int(threadIdx.x) / 32, 0);
  const uint32_t rank = Tile::kCluster > 1 ? blockIdx.x % Tile::kCluster : 0;
  const int first = int(blockIdx.x / Tile::kCluster), stride = int(gridDim.x / Tile::kCluster);

  if (threadIdx.x == 0) {
    for (int s = 0; s < Tile::kStages; ++s) {
      barrier_init(full + s * 8, 1);
      barrier_init(empty + s * 8, 4 * Tile::kGroups * Tile::kCluster);
    }
    for (int team = 0; team < 2; ++team) barrier_init(turns + team * 8, 4 * Tile::kGroups);
    barrier_init_fence();
    prefetch_map(&args.a_map);
    prefetch_map(&args.b_map);
  }
  if constexpr (Tile::kCluster > 1) {
    cluster_barrier();
  } else {
    __syncthreads();
  }
  wait_for_previous();

  const GemmArgs<T, D, E...>& gemm = args.gemm;
  RingPlace<Tile::kStages> place;
  if (warp >= Tile::kConsumers / 32) {
    if constexpr (Tile::kConsumers > 128) shrink_registers<Tile::kCopyRegisters>();
    if (threadIdx.x == Tile::kConsumers) {
      for (int t = first; t < args.tiles; t += stride) {
        const TileIndex tile(uint32_t(t), gemm.tiles_m, gemm.tiles_n);
        const int m0 = (tile.m * Tile::kCluster + int(rank)) * Tile::kM, n0 = tile.n * Tile::kN;
        const int outer = tile.batch / gemm.inner, inner = tile.batch % gemm.inner;
        for (int step = 0; step < args.steps; ++step) {
          const uint32_t barrier = full + place.stage * 8, to = stages + place.stage * Tile::kStageBytes;
          barrier_wait(empty + place.stage * 8, place.parity ^ 1);
          barrier_expect(barrier, Tile::kStageBytes);
          copy_operand<Tile, Tile::kM, kAK, 1>(to, &args.a_map, barrier, m0, step * Tile::kK, args.a_inner ? inner : 0,
                                               args.a_outer ? outer : 0, 0);
          copy_operand<Tile, Tile::kN, kBK, Tile::kCluster>(to + Tile::kABytes, &args.b_map, barrier, n0, step * Tile::kK,
                                                            args.b_inner ? inner : 0, args.b_outer ? outer : 0, int(rank));
          place.next();
        }
      }
      allow_next();
    }
  } else {
    if constexpr (Tile::kConsumers > 128) grow_registers<Tile::kRegisters>();
    const int team = warp / 4 / Tile::kGroups, group = warp / 4 % Tile::kGroups, lane = int(threadIdx.x) % 32;
    auto release = [&](uint32_t stage) {
      // What was read there was read by the tensor cores, and is done: no memory of this thread needs to be ordered.
      if constexpr (Tile::kCluster > 1) {
        if (lane < Tile::kCluster) barrier_arrive(empty + stage * 8, uint32_t(lane));
      } else if (lane == 0) {
        barrier_arrive(empty + stage * 8);
      }
    };
    place.skip(uint32_t(team * args.steps));
    uint32_t turn_parity = team == 0;  // nobody goes before the first turn of team 0
    for (int t = first + team * stride; t < args.tiles; t += Tile::kTeams * stride) {
      // Parities tell a phase of a stage only from its neighbours, so a team waits for stages when the other has seen its last.
      if (Tile::kTeams > 1) barrier_wait(turns + team * 8, turn_parity);
      turn_parity ^= 1;
      float acc[Tile::kMmaM][Tile::kN / 2];
      uint32_t previous = 0;
      for (int step = 0; step < args.steps; ++step) {
        barrier_wait(full + place.stage * 8, place.parity);
        const uint32_t a = stages + place.stage * Tile::kStageBytes, b = a + Tile::kABytes;
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < Tile::kK / 16; ++k) {
          const uint64_t b_operand = wgmma_operand(b + (kBK ? k * 32 : k * 2048), Tile::kK * 128);
#pragma unroll
          for (int i = 0; i < Tile::kMmaM; ++i) {
            const int block = group * Tile::kMmaM + i;  // of 64 rows
            const uint64_t a_operand = wgmma_operand(a + block * 64 * 128 + (kAK ? k * 32 : k * 2048), Tile::kK * 128);
            Wgmma<Tile::kN>::template run<T, !kAK, !kBK>(acc[i], a_operand, b_operand, k > 0 || step > 0);
          }
        }
        wgmma_commit();
        wgmma_wait<1>();  // the products of the step before are done with their stage
        if (step > 0) release(previous);
        previous = place.stage;
        place.next();
      }
      if (Tile::kTeams > 1 && lane == 0) barrier_arrive(turns + (team ^ 1) * 8);
      place.skip(uint32_t((Tile::kTeams - 1) * args.steps));
      const TileIndex tile(uint32_t(t), gemm.tiles_m, gemm.tiles_n);
      const int m0 = (tile.m * Tile::kCluster + int(rank)) * Tile::kM + group * Tile::kMmaM * 64;
      finish_accumulators<Tile, F>(gemm, acc, m0, tile.n * Tile::kN, tile.batch / gemm.inner, tile.batch % gemm.inner, [&] {
        wgmma_wait<0>();
        release(previous);
      });
    }
  }
  if constexpr (Tile::kCluster > 1) {
    __syncwarp();
    cluster_barrier();  // the others may still write to this block and arrive at its barriers
  }
#endif
}

/// @brief Launches `gemm_wgmma_kernel`: half or bfloat16 operands, each with one stride of 1. Where rows of any matrix start off 16-byte
/// boundaries, columns of d or an extra operand are not contiguous, N is no multiple of 8, or K is 0, a slow kernel takes over.
template <class Tile, bool kAK, bool kBK, class F, class T, class D, class... E>
int32_t gemm_wgmma(const Context& ctx, const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d,
                   Operands<E...> operands) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  const bool aligned = (kAK ? rows_aligned(a, a.col, a.row) : rows_aligned(a, a.row, a.col)) &&
                       (kBK ? rows_aligned(b, b.row, b.col) : rows_aligned(b, b.col, b.row));
  if (!aligned || !rows_aligned(d, d.col, d.row) || !all_aligned(operands) || shape.n % kSpan != 0 || shape.k == 0) {
    return gemm_simt<F>(ctx, shape, a, b, d, operands);
  }
  constexpr int kRows = Tile::kM * Tile::kCluster;
  HopperArgs<T, D, E...> args{{},
                              {},
                              {int(shape.m), int(shape.n), int(shape.k), int(shape.inner), int((shape.m + kRows - 1) / kRows),
                               int((shape.n + Tile::kN - 1) / Tile::kN), a, b, d, true, true, true, operands},
                              0,
                              int((shape.k + Tile::kK - 1) / Tile::kK),
                              a.inner != 0,
                              a.outer != 0,
                              b.inner != 0,
                              b.outer != 0};
  args.tiles = int(shape.outer * shape.inner) * args.gemm.tiles_m * args.gemm.tiles_n;
  const bool mapped =
      tensor_map(&args.a_map, a.data, kAK ? shape.k : shape.m, kAK ? shape.m : shape.k, kAK ? a.row : a.col, shape.inner, a.inner,
                 shape.outer, a.outer, kAK ? Tile::kM : Tile::kK) &&
      tensor_map(&args.b_map, b.data, kBK ? shape.k : shape.n, kBK ? shape.n : shape.k, kBK ? b.col : b.row, shape.inner, b.inner,
                 shape.outer, b.outer, (kBK ? Tile::kN : Tile::kK) / Tile::kCluster);
  if (!mapped) return ctx.fail("gemm: the driver does not describe its operands to the copy engine (cuTensorMapEncodeTiled)");
  const int clusters = multiprocessors() / Tile::kCluster;
  LaunchConfig config;
  config.grid = dim3(uint32_t(clusters < args.tiles ? clusters : args.tiles) * Tile::kCluster);
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = Tile::kSharedBytes;
  config.cluster = Tile::kCluster;
  config.dependent = true;
  return launch(ctx, config, gemm_wgmma_kernel<Tile, kAK, kBK, F, T, D, E...>, args);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_GEMM_WGMMA_CUH_
