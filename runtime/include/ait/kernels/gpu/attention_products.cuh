/// @file attention_products.cuh
/// @brief The two products of attention_hopper.cuh as a warpgroup computes them: scores, and sums of v with the weights.
#ifndef AIT_KERNELS_GPU_ATTENTION_PRODUCTS_CUH_
#define AIT_KERNELS_GPU_ATTENTION_PRODUCTS_CUH_

#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/tma.cuh"
#include "ait/kernels/gpu/wgmma.cuh"
#include "ait/kernels/gpu/wgmma_registers.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief The name that `Wgmma` has for two operands of one type of 8 bits.
template <class T>
struct SameBytes {
  using First = T;
  using Second = T;
  using Sum = float;
};

/// @brief Starts scores = q @ k^T of the 64 rows of `group`. Rows of q and k lie in chunks of `Tile::kLine` columns.
template <class Tile, class T>
__device__ __forceinline__ void start_scores(float (&scores)[Tile::kCols / 2], uint32_t q, uint32_t k, int group) {
  using Element = std::conditional_t<Tile::kBytes == 1, SameBytes<T>, T>;
  constexpr int kLineBytes = Tile::kLineBytes, kSteps = kLineBytes / 32;
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < Tile::kChunks * kSteps; ++i) {
    const uint64_t a = wgmma_operand<kLineBytes>(q + i / kSteps * (Tile::kRows * kLineBytes) + group * 64 * kLineBytes + i % kSteps * 32, 0);
    const uint64_t b = wgmma_operand<kLineBytes>(k + i / kSteps * (Tile::kCols * kLineBytes) + i % kSteps * 32, 0);
    Wgmma<Tile::kCols>::template run<Element, 0, 0>(scores, a, b, i > 0);
  }
  wgmma_commit();
}

/// @brief The weights of a step and their product with v, added to the sums of the steps before. @tparam kBytes of an element
template <class Tile, class T, int kBytes = Tile::kBytes>
struct FlashSums;

/// Of half and bfloat16 the tensor cores add to the sums themselves.
template <class Tile, class T>
struct FlashSums<Tile, T, 2> {
  static constexpr int kCols = Tile::kCols, kOut = Tile::kDepth / 2;
  uint32_t weights[kCols / 16][4];

  __device__ __forceinline__ void clear() {}
  __device__ __forceinline__ void round(const float (&scores)[kCols / 2]) {
#pragma unroll
    for (int i = 0; i < kCols / 16; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) weights[i][e] = pack_pair<T>(scores[8 * i + 2 * e], scores[8 * i + 2 * e + 1]);
  }
  /// @param v its rows, in chunks of 64 columns
  __device__ __forceinline__ void start(float (&out)[kOut], uint32_t v) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kCols / 16; ++i) {
      WgmmaFromRegisters<Tile::kDepth>::template run<T>(out, weights[i], wgmma_operand(v + i * 2048, kCols * 128));
    }
    wgmma_commit();
  }
  __device__ __forceinline__ void hold(float (&out)[kOut]) { hold_registers(out); }
  __device__ __forceinline__ void add(float (&)[kOut]) {}
  /// @param keep what the sums so far must be multiplied by, for the weights of the next step
  __device__ __forceinline__ void rescale(float (&out)[kOut], const float (&keep)[2]) {
#pragma unroll
    for (int i = 0; i < kOut; ++i) out[i] *= keep[i / 2 % 2];
  }
};

/// Of 8-bit floats the tensor cores keep about 14 bits of a sum, so each step has sums of its own. They are added to the others in float,
/// by the instruction that also rescales those.
template <class Tile, class T>
struct FlashSums<Tile, T, 1> {
  static constexpr int kCols = Tile::kCols, kOut = Tile::kDepth / 2;
  static_assert(kCols <= 128, "sums of at most 128 products");
  uint32_t weights[kCols / 32][4];
  float part[kOut], kept[2];

  __device__ __forceinline__ void clear() { kept[0] = kept[1] = 0.f; }
  /// A thread has columns 2 t and 2 t + 1 of each 8, and gives them to the product as its four columns of each 16: `turn_values` has put the
  /// rows of v in this order.
  __device__ __forceinline__ void round(const float (&scores)[kCols / 2]) {
#pragma unroll
    for (int i = 0; i < kCols / 32; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int at = 16 * i + e / 2 * 8 + e % 2 * 2;
        weights[i][e] = uint32_t(T::saturated(scores[at], scores[at + 1])) | uint32_t(T::saturated(scores[at + 4], scores[at + 5])) << 16;
      }
  }
  /// @param v its columns, in chunks of 128 rows
  __device__ __forceinline__ void start(float (&)[kOut], uint32_t v) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kCols / 32; ++i) WgmmaFromRegisters<Tile::kDepth>::run_e4m3(part, weights[i], wgmma_operand(v + i * 32, 0), i > 0);
    wgmma_commit();
  }
  __device__ __forceinline__ void hold(float (&)[kOut]) { hold_registers(part); }
  __device__ __forceinline__ void add(float (&out)[kOut]) {
#pragma unroll
    for (int i = 0; i < kOut; ++i) out[i] = out[i] * kept[i / 2 % 2] + part[i];
  }
  __device__ __forceinline__ void rescale(float (&)[kOut], const float (&keep)[2]) { kept[0] = keep[0], kept[1] = keep[1]; }
};

/// @brief Turns a step of v of 8-bit floats: its columns become lines of shared memory, along which its rows lie in the order 0, 1, 8, 9, 2, 3,
/// 10, 11, ... of each 16.
///
/// Pairs of columns are transposed as 16-bit elements by the load, and taken apart in registers. Of the eight lines of a matrix that is stored,
/// four are even and four odd columns, so that they lie in different banks.
/// @param to,from lines of 128 bytes, and of `Tile::kLineBytes`, swizzled. @param warp of the `Tile::kTurners` that share the work
template <class Tile>
__device__ __forceinline__ void turn_values(uint32_t to, uint32_t from, int warp) {
  constexpr int kLineBytes = Tile::kLineBytes, kUnits = Tile::kCols / 32;
  const int lane = int(threadIdx.x) % 32;
  const bool upper = lane >= 16;
  const uint32_t first = upper ? 0x7531 : 0x6420, second = upper ? 0x6420 : 0x7531;
  const int pair = lane % 8, matrix = lane / 8, column = 2 * pair + (matrix % 2 ^ pair / 4);
#pragma unroll 1
  for (int unit = warp; unit < kUnits * (Tile::kDepth / 16); unit += Tile::kTurners) {  // 32 rows of 16 columns
    const int row = unit % kUnits * 32, piece = unit / kUnits;
    const uint32_t line = uint32_t(row + lane), swizzle = kLineBytes == 128 ? line % 8 : line / 2 % 4;
    uint32_t words[4];
    load_matrix_x4_transposed(words, from + line * kLineBytes + ((uint32_t(piece) ^ swizzle) * 16));
    const uint32_t turned[4] = {__byte_perm(words[0], words[1], first), __byte_perm(words[0], words[1], second),
                                __byte_perm(words[2], words[3], first), __byte_perm(words[2], words[3], second)};
    const uint32_t at = uint32_t(piece * 16 + column), sixteen = uint32_t(row / 16 + matrix / 2);
    store_matrix_x4(to + at * 128 + ((sixteen ^ at % 8) * 16), turned);
  }
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_ATTENTION_PRODUCTS_CUH_
