/// @file radix.cuh
/// @brief Stable radix sorts of unsigned keys and the places that they come from: of rows of any length.
///
/// A few rows of up to kRadixClusterMost elements are sorted by a cluster of blocks each, in one launch (`radix_cluster.cuh`). Other rows longer than a
/// tile have one launch that counts the digits of all passes, and one for each pass, whose blocks tell each other how many elements of each digit they
/// have (`chain.cuh`): one sweep over memory for each pass (Adinets and Merrill, 2022).
///
/// These are own kernels, not those of CUB and rocPRIM: they are compiled in place, in less time than CUB's headers take to read, take keys from any
/// function and hand results to any function, serve HIP too, and the emulator executes them.
#ifndef AIT_KERNELS_GPU_RADIX_CUH_
#define AIT_KERNELS_GPU_RADIX_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/chain.cuh"
#include "ait/kernels/gpu/radix_block.cuh"
#include "ait/kernels/gpu/radix_cluster.cuh"
#include "ait/kernels/reduction.h"

namespace ait::gpu {

inline constexpr int kRadixFan = 16;  ///< counts that a block asks for at once

/// @brief Keys and places between passes, row after row.
template <class K>
struct RadixBuffers {
  K* keys;
  uint32_t* places;
  int64_t length;

  __device__ __forceinline__ K key(int64_t row, int64_t i) const { return keys[row * length + i]; }
  __device__ __forceinline__ uint32_t place(int64_t row, int64_t i) const { return places[row * length + i]; }
  __device__ __forceinline__ void store(int64_t row, int64_t i, K key, uint32_t place) const {
    keys[row * length + i] = key;
    places[row * length + i] = place;
  }
};

/// Counts the digits of each pass in each row. A block has a tile of a row.
template <class K, class From>
__global__ void __launch_bounds__(kRadixThreads) radix_count_kernel(From from, int64_t length, int64_t tiles, int each, int passes, uint32_t* counts) {
  __shared__ uint32_t shared[sizeof(K)][kRadixDigits];
  wait_for_previous();
  allow_next();
  const int64_t row = static_cast<int64_t>(blockIdx.x) / tiles, first = static_cast<int64_t>(blockIdx.x) % tiles * (each * kRadixThreads);
  const int thread = threadIdx.x;
  for (int pass = 0; pass < passes; ++pass) shared[pass][thread] = 0;
  __syncthreads();
#pragma unroll 4
  for (int i = 0; i < each; ++i) {
    const int64_t at = first + i * kRadixThreads + thread;
    if (at >= length) continue;
    const K key = from.key(row, at);
    for (int pass = 0; pass < passes; ++pass) atomicAdd(&shared[pass][detail::radix_digit(key, pass * kRadixBits)], 1u);
  }
  __syncthreads();
  for (int pass = 0; pass < passes; ++pass) {
    const uint32_t count = shared[pass][thread];
    if (count != 0) atomicAdd(counts + (row * passes + pass) * kRadixDigits + thread, count);
  }
}

/// Moves elements to where a pass wants them. A block has a tile of a row.
template <class K, class From, class To, class Chain>
__global__ void __launch_bounds__(kRadixThreads)
    radix_pass_kernel(From from, To to, Chain chain, int64_t length, int each, int pass, int passes, const uint32_t* counts) {
  __shared__ RadixCounters shared;
  __shared__ K exchanged[kRadixTile];
  __shared__ uint32_t offsets[kRadixDigits], number;
  wait_for_previous();
  allow_next();
  const int64_t taken = chain.take(number), tile = taken / chain.chains, row = taken % chain.chains;
  const int64_t first = tile * (each * kRadixThreads), left = length - first;
  const int thread = threadIdx.x, here = left < each * kRadixThreads ? static_cast<int>(left) : each * kRadixThreads;
  K keys[kRadixEach];
  uint32_t places[kRadixEach], ranks[kRadixEach];
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    const int at = detail::radix_element(i, each);
    const bool there = i < each && at < here;
    keys[i] = there ? from.key(row, first + at) : ~K(0);
    places[i] = there ? from.place(row, first + at) : 0;
  }
  const int shift = pass * kRadixBits;
  const uint32_t own = detail::radix_rank(shared, each, [&](int i) { return detail::radix_digit(keys[i], shift); }, ranks);
  const uint32_t before = chain.before(row, tile, own, 0u, nullptr);
  const uint32_t of_lower = detail::sum_before(counts[(row * passes + pass) * kRadixDigits + thread], shared.sums);
  offsets[thread] = of_lower + before - shared.starts[thread];
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    if (i < each) exchanged[ranks[i]] = keys[i];
  }
  __syncthreads();
  // Now in the order of the tile: neighbours mostly go to neighbouring places. Elements behind the end come last.
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    if (i < each) keys[i] = exchanged[i * kRadixThreads + thread];
  }
  __syncthreads();
  uint32_t* const moved = reinterpret_cast<uint32_t*>(exchanged);
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    if (i < each) moved[ranks[i]] = places[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    const int at = i * kRadixThreads + thread;
    if (i < each && at < here) to.store(row, offsets[detail::radix_digit(keys[i], shift)] + static_cast<uint32_t>(at), keys[i], moved[at]);
  }
}

/// @brief The workspace of a sort of rows: counts and messages, which begin as 0, then two pairs of buffers.
template <class K>
struct RadixWorkspace {
  using Chain = Chains<Sum, uint32_t, kRadixDigits, kRadixFan>;
  int64_t rows, length, tiles;
  int each, passes;
  char* begin;

  RadixWorkspace(int64_t rows_, int64_t length_, int each_, int bits, void* workspace)
      : rows(rows_),
        length(length_),
        tiles((length_ + each_ * kRadixThreads - 1) / (each_ * kRadixThreads)),
        each(each_),
        passes(radix_passes(bits)),
        begin(static_cast<char*>(workspace)) {}
  uint32_t* counts() const { return reinterpret_cast<uint32_t*>(begin); }
  int64_t counts_bytes() const { return rows * passes * kRadixDigits * 4; }
  int64_t chain_bytes() const { return Chain(rows, tiles, nullptr).cleared(); }
  Chain chain(int pass) const { return Chain(rows, tiles, begin + counts_bytes() + pass * chain_bytes()); }
  int64_t cleared() const { return counts_bytes() + passes * chain_bytes(); }
  RadixBuffers<K> buffers(int which) const {
    const int64_t keys = (rows * length * int64_t(sizeof(K)) + 15) / 16 * 16, places = (rows * length * 4 + 15) / 16 * 16;
    char* const at = begin + cleared() + which * (keys + places);
    return {reinterpret_cast<K*>(at), reinterpret_cast<uint32_t*>(at + keys), length};
  }
};

/// @brief Sorts rows of fewer than 2^32 keys by their lowest `bits`. Equal keys keep their order.
/// @param source `key(row, i)` and `place(row, i)` of element i
/// @param each elements of a thread, up to kRadixEach: fewer where few elements have to fill the card
/// @param sink `store(row, i, key, place)` takes what comes i-th in a row
/// @param workspace of `ait_mlir/lowering/kernels/radix.py: radix_bytes`
template <class K, class Source, class Sink>
int32_t radix_sort(const Context& ctx, int64_t rows, int64_t length, int each, int bits, const Source& source, const Sink& sink, void* workspace) {
  using Chain = typename RadixWorkspace<K>::Chain;
  using Buffers = RadixBuffers<K>;
  if (rows <= 0 || length <= 0) return 0;
  if (length > UINT32_MAX) return ctx.fail("a sort of more than 2^32 - 1 elements in a row");
#if defined(AIT_CUDA)
  if constexpr (kHasClusters) {
    if (detail::fits_in_clusters<K>(rows, length)) return detail::radix_sort_in_clusters<K>(ctx, rows, length, bits, source, sink);
  }
#endif
  const RadixWorkspace<K> space(rows, length, each, bits, workspace);
  if (const int32_t status = fill_bytes(ctx, workspace, 0, static_cast<size_t>(space.cleared()))) return status;
  LaunchConfig config;
  config.block = dim3(kRadixThreads);
  config.grid = dim3(grid_size(rows * space.tiles));
  config.dependent = true;
  const int passes = space.passes;
  if (const int32_t status = launch(ctx, config, radix_count_kernel<K, Source>, source, length, space.tiles, each, passes, space.counts())) return status;
  for (int pass = 0; pass < passes; ++pass) {
    const Buffers from = space.buffers((pass + 1) % 2), to = space.buffers(pass % 2);
    const uint32_t* const counts = space.counts();
    const Chain chain = space.chain(pass);
    const bool last = pass == passes - 1;
    int32_t status = 0;
    if (pass == 0 && last) {
      status = launch(ctx, config, radix_pass_kernel<K, Source, Sink, Chain>, source, sink, chain, length, each, pass, passes, counts);
    } else if (pass == 0) {
      status = launch(ctx, config, radix_pass_kernel<K, Source, Buffers, Chain>, source, to, chain, length, each, pass, passes, counts);
    } else if (last) {
      status = launch(ctx, config, radix_pass_kernel<K, Buffers, Sink, Chain>, from, sink, chain, length, each, pass, passes, counts);
    } else {
      status = launch(ctx, config, radix_pass_kernel<K, Buffers, Buffers, Chain>, from, to, chain, length, each, pass, passes, counts);
    }
    if (status) return status;
  }
  return 0;
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_RADIX_CUH_
