/// @file radix.cuh
/// @brief Stable radix sorts of unsigned keys and the places that they come from: of a tile in a block, and of rows of any length.
///
/// A pass orders by 8 bits of the keys, the lowest first. In a block, each warp counts the digits of its elements one item after the other; the lanes
/// of an item that have one digit find each other by votes (Merrill and Garland's ranks). Rows longer than a tile have one launch that counts the digits
/// of all passes, and one for each pass, whose blocks tell each other how many elements of each digit they have (`chain.cuh`): one sweep over memory
/// for each pass (Adinets and Merrill, 2022).
///
/// These are own kernels, not those of CUB and rocPRIM: they are compiled in place, in less time than CUB's headers take to read, take keys from any
/// function and hand results to any function, serve HIP too, and the emulator executes them.
#ifndef AIT_KERNELS_GPU_RADIX_CUH_
#define AIT_KERNELS_GPU_RADIX_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/chain.cuh"
#include "ait/kernels/reduction.h"

namespace ait::gpu {

inline constexpr int kRadixBits = 8, kRadixDigits = 1 << kRadixBits;
/// A block: as many threads as digits, `kRadixEach` elements each.
inline constexpr int kRadixThreads = kRadixDigits, kRadixEach = 16, kRadixTile = kRadixThreads * kRadixEach;
inline constexpr int kRadixWarps = kRadixThreads / kWarpSize;
inline constexpr int kRadixFan = 16;  ///< counts that a block asks for at once

/// @brief How many passes sort keys of so many bits, at least one.
AIT_FN int radix_passes(int bits) { return bits <= kRadixBits ? 1 : (bits + kRadixBits - 1) / kRadixBits; }

/// @brief The bits of the largest key.
inline int key_bits(uint64_t largest) {
  int bits = 0;
  while (bits < 64 && largest >> bits != 0) ++bits;
  return bits;
}

/// @brief What the threads of a block share when they rank digits.
struct RadixCounters {
  uint32_t of_warp[kRadixWarps][kRadixDigits];
  uint32_t starts[kRadixDigits];  ///< the rank of the first element of each digit
  uint32_t sums[kRadixWarps];
};

namespace detail {
template <class K>
__device__ __forceinline__ uint32_t radix_digit(K key, int shift) {
  return static_cast<uint32_t>(key >> shift) & (kRadixDigits - 1);
}

/// @brief Where item `i` of this thread is in a tile: a warp has neighbours, `each` items of them.
__device__ __forceinline__ int radix_element(int i, int each) {
  const int thread = threadIdx.x;
  return (thread / kWarpSize * each + i) * kWarpSize + thread % kWarpSize;
}

/// @brief The lanes of the warp with this number of so many bits, for several numbers at once.
template <int kCount>
__device__ __forceinline__ void lanes_with(const uint32_t (&numbers)[kCount], int bits, lanes_t (&same)[kCount]) {
#pragma unroll
  for (int u = 0; u < kCount; ++u) same[u] = ~lanes_t(0);
#pragma unroll 1
  for (int bit = 0; bit < bits; ++bit) {
#pragma unroll
    for (int u = 0; u < kCount; ++u) {
      const bool set = (numbers[u] >> bit & 1) != 0;
      const lanes_t lanes = ballot(set);
      same[u] &= set ? lanes : ~lanes;
    }
  }
}

/// @brief The lanes of the warp with this digit.
__device__ __forceinline__ lanes_t lanes_with(uint32_t digit) {
  lanes_t same = ~lanes_t(0);
#pragma unroll
  for (int bit = 0; bit < kRadixBits; ++bit) {
    const bool set = (digit >> bit & 1) != 0;
    const lanes_t lanes = ballot(set);
    same &= set ? lanes : ~lanes;
  }
  return same;
}

/// @brief The sum over the threads of a block before this one. `sums` has room for kRadixWarps.
__device__ __forceinline__ uint32_t sum_before(uint32_t value, uint32_t* sums) {
  const int lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  uint32_t through = value;
#pragma unroll
  for (int delta = 1; delta < kWarpSize; delta *= 2) {
    const uint32_t below = shuffle_up(through, delta);
    if (lane >= delta) through += below;
  }
  if (lane == kWarpSize - 1) sums[warp] = through;
  __syncthreads();
  uint32_t before = through - value;
#pragma unroll
  for (int w = 0; w < kRadixWarps; ++w) before += w < warp ? sums[w] : 0;
  return before;
}

/// @brief The ranks of the first `each` digits of each thread in the stable order of a block; how many elements have digit threadIdx.x.
template <class Digit>
__device__ __forceinline__ uint32_t radix_rank(RadixCounters& shared, int each, const Digit& digit_of, uint32_t (&ranks)[kRadixEach]) {
  const int thread = threadIdx.x, lane = thread % kWarpSize;
  uint32_t* const counters = shared.of_warp[thread / kWarpSize];
  for (int d = lane; d < kRadixDigits; d += kWarpSize) counters[d] = 0;
  sync_warp();
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    if (i >= each) continue;
    const uint32_t digit = digit_of(i);
    const lanes_t same = lanes_with(digit), lower = same & lanes_below();
    const uint32_t before = counters[digit];
    sync_warp();
    if (lower == 0) counters[digit] = before + count_lanes(same);
    sync_warp();
    ranks[i] = before + count_lanes(lower);
  }
  __syncthreads();
  uint32_t count = 0;
#pragma unroll
  for (int w = 0; w < kRadixWarps; ++w) {
    const uint32_t own = shared.of_warp[w][thread];
    shared.of_warp[w][thread] = count;
    count += own;
  }
  shared.starts[thread] = sum_before(count, shared.sums);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    if (i >= each) continue;
    const uint32_t digit = digit_of(i);
    ranks[i] += counters[digit] + shared.starts[digit];
  }
  return count;
}

/// @brief Moves elements to their ranks: this thread gets those of its own places.
template <class V>
__device__ __forceinline__ void radix_exchange(V* shared, int each, const uint32_t (&ranks)[kRadixEach], V (&values)[kRadixEach]) {
  __syncthreads();  // what was there has been read
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    if (i < each) shared[ranks[i]] = values[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRadixEach; ++i) {
    if (i < each) values[i] = shared[radix_element(i, each)];
  }
}
}  // namespace detail

/// @brief Sorts `each` times kRadixThreads keys of a block, and what comes with them, by their lowest bits. Equal keys keep their order.
/// @param keys,places item i of a thread is element `radix_element(i, each)`
/// @param exchanged room for kRadixTile elements of both types
template <class K, class V>
__device__ __forceinline__ void radix_sort_block(RadixCounters& shared, void* exchanged, int each, int passes, K (&keys)[kRadixEach],
                                                 V (&places)[kRadixEach]) {
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    uint32_t ranks[kRadixEach];
    detail::radix_rank(shared, each, [&](int i) { return detail::radix_digit(keys[i], pass * kRadixBits); }, ranks);
    detail::radix_exchange(static_cast<K*>(exchanged), each, ranks, keys);
    detail::radix_exchange(static_cast<V*>(exchanged), each, ranks, places);
  }
}

// ** rows of any length **

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
