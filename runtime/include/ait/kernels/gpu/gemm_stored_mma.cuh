/// @file gemm_stored_mma.cuh
/// @brief Products of some rows of half or bfloat16 with a weight that stays in 4 or 8 bits (sm_80 and later), as in decoding: bound by the bytes
/// of the weight, which every warp reads straight into registers, 16 bytes a lane, and unpacks there for the tensor cores.
///
/// As in gemm_stream.cuh, the order of k within a step is permuted. A bit pattern of the exponent makes a float of a number: 1024 + u is
/// 0x6400 | u in half, 128 + u is 0x4300 | u in bfloat16. Scales multiply the sums of a group: of a step of the warp, or of a word of each lane where groups are smaller.
#ifndef AIT_KERNELS_GPU_GEMM_STORED_MMA_CUH_
#define AIT_KERNELS_GPU_GEMM_STORED_MMA_CUH_

#include "ait/kernels/gpu/few_rows.cuh"
#include "ait/kernels/gpu/gemm_stored.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @tparam kAhead_ steps of a warp that are on their way from memory; the others are those of `FewRowsTile`
template <int kSixteens_, int kEights_, int kWarps_, int kAhead_, int kBlocks_>
struct StoredTile : FewRowsTile<kSixteens_, kEights_, kWarps_, kBlocks_> {
  static constexpr int kAhead = kAhead_;
};

/// @brief How the numbers of 32 bits of a weight become pairs of T, less an origin; all are exact.
template <int kBits, class T>
struct StoredPairs {
  static constexpr bool kIsHalf = std::is_same_v<T, half>;
  static constexpr int kPairs = 16 / kBits;
  static constexpr bool kAdds = kIsHalf || kBits == 4;  ///< else the numbers are too large for a bit pattern

  /// What `unpack` adds for an origin.
  static __device__ __forceinline__ uint32_t offset(int origin) {
    const float less = -(kIsHalf ? 1024.f : 0.f) - float(origin);
    return kAdds ? pack_pair<T>(less, less) : uint32_t(origin);
  }

  /// A pair of numbers as they are in the bits 0 and 16 on.
  static __device__ __forceinline__ uint32_t number(uint32_t bits, uint32_t offset) {
    if constexpr (kIsHalf) return add_pairs<T>(bits | 0x64006400u, offset);
    // Less 128 first: an origin of 255 and 128 have no sum in bfloat16.
    return add_pairs<T>(add_pairs<T>(bits | 0x43004300u, 0xc300c300u), offset);
  }

  /// @param flip is xored to the bits. Of 4 bits pair i has the numbers i and i + 4, of 8 bits the numbers 2i and 2i + 1.
  static __device__ __forceinline__ void unpack(uint32_t word, uint32_t flip, uint32_t offset, uint32_t (&pairs)[kPairs]) {
    word ^= flip;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      if constexpr (kBits == 4) {
        pairs[i] = number((word >> (4 * i)) & 0x000f000fu, offset);
      } else if constexpr (kAdds) {
        const uint32_t part = word >> (16 * i);
        pairs[i] = number((part & 0xffu) | (part & 0xff00u) << 8, offset);
      } else {
        const int low = int((word >> (16 * i)) & 0xffu), high = int((word >> (16 * i + 8)) & 0xffu);
        pairs[i] = pack_pair<T>(float(low - int(offset)), float(high - int(offset)));
      }
    }
  }
};

/// @brief The part of the weight that a warp reads in a step, of k: four words of two rows of each sixteen a lane, with scales and origins.
/// @tparam kByWord whether the step has four groups, a word of each for every lane; else it lies in one group, and a lane's words are neighbours
template <class Tile, class Stored, bool kByWord>
struct StoredStep {
  static constexpr int kLane = 128 / Stored::kBits;  ///< numbers of four words
  static constexpr int kWord = kLane / 4, kStep = 4 * kLane, kGroups = kByWord ? 4 : 1;
  uint32_t data[Tile::kSixteens][2][4];
  float scale[Tile::kSixteens][2][kGroups];
  int origin[Tile::kSixteens][2][kGroups];

  /// Where word w of this lane begins in a step.
  static __device__ __forceinline__ int place(int w) {
    const int quarter = int(threadIdx.x) % 4;
    return kByWord ? w * kLane + quarter * kWord : quarter * kLane + w * kWord;
  }

  /// @param n the lane's first row of the weight, of which `rows` exist from there on
  __device__ __forceinline__ void load(const Stored& from, int n, int rows, int k0, int k) {
#pragma unroll
    for (int s = 0; s < Tile::kSixteens; ++s) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = s * 16 + h * 8;
        const uint8_t* const at = from.data + int64_t(n + row) * from.pitch + (k0 + place(0)) * Stored::kBits / 8;
        if constexpr (kByWord) {
#pragma unroll
          for (int w = 0; w < 4; ++w) {
            data[s][h][w] = 0;
            if (row < rows && k0 + place(w) < k) data[s][h][w] = *reinterpret_cast<const uint32_t*>(at + 16 * w);
          }
        } else {
          const uint4 v = read_once(at, row < rows && k0 + place(0) < k);
          data[s][h][0] = v.x, data[s][h][1] = v.y, data[s][h][2] = v.z, data[s][h][3] = v.w;
        }
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
          const int first = k0 + g * kLane, group = first / int(from.group);
          scale[s][h][g] = 0.f;
          origin[s][h][g] = 0;
          if (row < rows && first < k) {
            scale[s][h][g] = convert<float>(from.scale[int64_t(n + row) * from.groups + group]);
            origin[s][h][g] = from.origin(n + row, group);
          }
        }
      }
    }
  }
};

/// @brief The elements of a row of x that belong to the words of a lane in a step, in the order of the pairs of the weight.
template <class Step, int kBits>
struct StoredRow {
  static constexpr int kPairs = 16 / kBits;  ///< of a word
  uint32_t pairs[4][kPairs];

  /// @param from the row, from the first element of the step on
  template <class T>
  __device__ __forceinline__ void load(const T* from, bool exists, int left) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const bool has = exists && Step::place(w) < left;
      uint32_t(&to)[kPairs] = pairs[w];
      if constexpr (kBits == 4) {
        uint4 v = make_uint4(0, 0, 0, 0);
        if (has) v = *reinterpret_cast<const uint4*>(from + Step::place(w));
        to[0] = (v.x & 0xffffu) | v.z << 16, to[1] = v.x >> 16 | (v.z & 0xffff0000u);
        to[2] = (v.y & 0xffffu) | v.w << 16, to[3] = v.y >> 16 | (v.w & 0xffff0000u);
      } else {
        uint2 v = make_uint2(0, 0);
        if (has) v = *reinterpret_cast<const uint2*>(from + Step::place(w));
        to[0] = v.x, to[1] = v.y;
      }
    }
  }
};

/// @brief A tile of columns for at most Tile::kRows rows.
/// @tparam kByWord as of StoredStep
/// @param early whether the weight may be read before the launch before has ended
template <class Tile, bool kByWord, class F, class T, class Stored, class D, class... E>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    gemm_stored_mma_kernel(const __grid_constant__ StoredArgs<T, Stored, D, E...> args, bool early) {
  using Step = StoredStep<Tile, Stored, kByWord>;
  using Pairs = StoredPairs<Stored::kBits, T>;
  constexpr int kAhead = Tile::kAhead;
  AIT_DYNAMIC_SHARED(128, stored_shared);
  float* const parts = reinterpret_cast<float*>(stored_shared);
  const GemmArgs<T, D, E...>& gemm = args.gemm;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, splits = int(gridDim.x);
  const int n0 = int(blockIdx.y) * Tile::kColumns, m0 = int(blockIdx.z) * Tile::kRows, n = n0 + lane / 4;
  const int columns = gemm.n - n, rows = gemm.m - m0 - lane / 4;  // that exist from this lane's first on
  const T* const x = gemm.a.data + int64_t(m0 + lane / 4) * gemm.a.row;
  const int stride = splits * Tile::kWarps * Step::kStep;
  const uint32_t flip = args.b.flip();
  int k0 = (int(blockIdx.x) * Tile::kWarps + warp) * Step::kStep;

  Step steps[kAhead];
  if (early) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) steps[i].load(args.b, n, columns, k0 + i * stride, gemm.k);
  }
  wait_for_previous();
  if (!early) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) steps[i].load(args.b, n, columns, k0 + i * stride, gemm.k);
  }

  typename Tile::Sums sums;
#pragma unroll
  for (int s = 0; s < Tile::kSixteens; ++s)
#pragma unroll
    for (int e = 0; e < Tile::kEights; ++e)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[s][e][i] = 0.f;

  while (k0 < gemm.k) {
#pragma unroll
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      if (k0 < gemm.k) {
        Step& step = steps[ahead];
        StoredRow<Step, Stored::kBits> row[Tile::kEights];
#pragma unroll
        for (int e = 0; e < Tile::kEights; ++e) row[e].load(x + int64_t(8 * e) * gemm.a.row + k0, 8 * e < rows, gemm.k - k0);
#pragma unroll
        for (int s = 0; s < Tile::kSixteens; ++s) {
          float part[Tile::kEights][4];
#pragma unroll
          for (int w = 0; w < 4; ++w) {
            const int g = kByWord ? w : 0;
            if (kByWord || w == 0) {
#pragma unroll
              for (int e = 0; e < Tile::kEights; ++e)
#pragma unroll
                for (int i = 0; i < 4; ++i) part[e][i] = 0.f;
            }
            uint32_t pairs[2][Pairs::kPairs];
#pragma unroll
            for (int h = 0; h < 2; ++h) Pairs::unpack(step.data[s][h][w], flip, Pairs::offset(step.origin[s][h][g]), pairs[h]);
#pragma unroll
            for (int p = 0; p < Pairs::kPairs; p += 2) {
              const uint32_t a[4] = {pairs[0][p], pairs[1][p], pairs[0][p + 1], pairs[1][p + 1]};
#pragma unroll
              for (int e = 0; e < Tile::kEights; ++e) mma_16x8x16<T>(part[e], a, row[e].pairs[w][p], row[e].pairs[w][p + 1]);
            }
            if (kByWord || w == 3) {
#pragma unroll
              for (int e = 0; e < Tile::kEights; ++e)
#pragma unroll
                for (int i = 0; i < 4; ++i) sums[s][e][i] += part[e][i] * step.scale[s][i / 2][g];
            }
          }
        }
        step.load(args.b, n, columns, k0 + kAhead * stride, gemm.k);
      }
      k0 += stride;
    }
  }
  allow_next();
  finish_few_rows<Tile, F>(gemm, parts, sums, m0, n0);
}

/// @brief Launches `gemm_stored_mma_kernel` on half or bfloat16, a contiguous along k. Where rows of a or of the weight do not start on 16-byte
/// boundaries, or groups do not consist of whole pieces of 16 bytes, the kernel of ordinary arithmetic takes over.
/// @param split blocks of a cluster, which share k: 1, 2, 4 or 8; more than 1 from sm_90 on
template <class Tile, bool kByWord, class F, class T, class Stored, class D, class... E>
int32_t gemm_stored_mma(const Context& ctx, const GemmShape& shape, Matrices<const T> a, const Stored& b, Matrices<D> d,
                        const Operands<E...>& operands, int split, bool early) {
  using Step = StoredStep<Tile, Stored, kByWord>;
  if (shape.m == 0 || shape.n == 0) return 0;
  if (shape.m == 1) a.row = d.row = 0;
  const int64_t tiles_n = (shape.n + Tile::kColumns - 1) / Tile::kColumns, tiles_m = (shape.m + Tile::kRows - 1) / Tile::kRows;
  const bool aligned = rows_aligned(a, a.col, a.row) && reinterpret_cast<uintptr_t>(b.data) % 16 == 0 && shape.k % Step::kLane == 0;
  const bool whole = b.groups == 1 || b.group % (kByWord ? Step::kLane : Step::kStep) == 0;
  if (!aligned || !whole || shape.k == 0 || tiles_n > 65535 || tiles_m > 65535) return gemm_stored<F>(ctx, shape, a, b, d, operands);
  return launch(ctx, few_rows_config<Tile>(split, tiles_n, tiles_m), gemm_stored_mma_kernel<Tile, kByWord, F, T, Stored, D, E...>,
                stored_args(shape, a, b, d, operands), early);
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_GEMM_STORED_MMA_CUH_
