/// @file loops.cuh
/// @brief Accesses and reductions of generated loops.
#ifndef AIT_KERNELS_GPU_LOOPS_CUH_
#define AIT_KERNELS_GPU_LOOPS_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/loops.h"

namespace ait::gpu {

/// @brief Reads neighbours that begin on a multiple of their bytes, at most of 16.
template <class T, int kLanes>
__device__ __forceinline__ void load_lanes(const T* from, T (&to)[kLanes]) {
  load<kLanes>(from, to);
}

/// @brief Writes neighbours that begin on a multiple of their bytes, at most of 16.
template <class T, int kLanes>
__device__ __forceinline__ void store_lanes(T* to, const T (&from)[kLanes]) {
  store<kLanes>(to, from);
}

/// @brief Where element (row, column) of a tile is, whose rows have `kColumns` elements: words of `kWord` neighbours of a row lie together, and those of
/// every `kPiece`-th row, which threads read together, in different banks.
template <int kPiece, int kColumns, int kWord = kPiece>
__device__ __forceinline__ int turned(int row, int column) {
  constexpr int kWords = kColumns / kWord;
  return row * kColumns + ((column / kWord) ^ (row / kPiece % kWords)) * kWord + column % kWord;
}

/// @brief Writes neighbours to shared memory, where they begin on a multiple of their bytes, at most of 16.
template <class T, int kLanes>
__device__ __forceinline__ void keep_lanes(T* to, const T (&from)[kLanes]) {
  store<kLanes, false>(to, from);
}

/// @brief Copies `count` neighbours, at most `kMost`, to shared memory; all `kThreads` threads of a block take part. Where `from` begins on 16 bytes, a
/// thread reads so many at a time, and all that it reads is on its way at once.
template <int kThreads, int kMost, class T>
__device__ __forceinline__ void take_neighbours(const T* from, int count, T* to) {
  constexpr int kOfWord = 16 / sizeof(T), kWords = (kMost / kOfWord + kThreads - 1) / kThreads;
  int done = 0;
  if (reinterpret_cast<uintptr_t>(from) % 16 == 0) {
    const int words = count / kOfWord;
    uint4 read[kWords > 0 ? kWords : 1];
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const int word = i * kThreads + static_cast<int>(threadIdx.x);
      if (word < words) read[i] = read_word(reinterpret_cast<const uint4*>(from) + word);
    }
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const int word = i * kThreads + static_cast<int>(threadIdx.x);
      if (word < words) reinterpret_cast<uint4*>(to)[word] = read[i];
    }
    done = words * kOfWord;
  }
  for (int i = done + static_cast<int>(threadIdx.x); i < count; i += kThreads) to[i] = from[i];
}

/// @brief Writes `count` neighbours from shared memory, which begin on 16 bytes there; all `kThreads` threads of a block take part.
template <int kThreads, class T>
__device__ __forceinline__ void put_neighbours(const T* from, int count, T* to) {
  constexpr int kOfWord = 16 / sizeof(T);
  int done = 0;
  if (reinterpret_cast<uintptr_t>(to) % 16 == 0) {
    const int words = count / kOfWord;
    for (int word = static_cast<int>(threadIdx.x); word < words; word += kThreads) {
      store_word(reinterpret_cast<uint4*>(to) + word, read_word(reinterpret_cast<const uint4*>(from) + word));
    }
    done = words * kOfWord;
  }
  for (int i = done + static_cast<int>(threadIdx.x); i < count; i += kThreads) to[i] = from[i];
}

/// @brief Bytes of shared memory with which a block joins states of `kBytes`.
template <int kThreads, int kBytes>
inline constexpr int kJoinBytes = kThreads > kWarpSize ? kThreads / kWarpSize * kBytes : 16;

/// @brief Joins the states of `kThreads` neighbouring threads, a part of a warp or the whole block; all get the result.
///
/// A block may use `shared` again after one more barrier.
template <class F, int kThreads, class A>
__device__ __forceinline__ A join_threads(A state, char* shared) {
  constexpr int kSpan = kThreads < kWarpSize ? kThreads : kWarpSize;
#pragma unroll
  for (int mask = kSpan / 2; mask > 0; mask /= 2) state = F::join(state, shuffle_xor(state, mask));
  if constexpr (kThreads > kWarpSize) {
    A* slots = reinterpret_cast<A*>(shared);
    if (threadIdx.x % kWarpSize == 0) slots[threadIdx.x / kWarpSize] = state;
    __syncthreads();
    state = slots[0];
#pragma unroll
    for (int w = 1; w < kThreads / kWarpSize; ++w) state = F::join(state, slots[w]);
  }
  return state;
}

/// @brief Joins the states of the `kRows` threads of a block that have the same columns; all of these get the results.
///
/// Thread `y * kColumns + x` has the states of `kLanes` columns. A block may use `shared` again after one more barrier.
template <class F, int kColumns, int kRows, class A, int kLanes>
__device__ __forceinline__ void join_columns(A (&states)[kLanes], char* shared) {
  if constexpr (kRows > 1) {
    A* slots = reinterpret_cast<A*>(shared);
    const int x = threadIdx.x % kColumns, y = threadIdx.x / kColumns;
#pragma unroll
    for (int j = 0; j < kLanes; ++j) slots[(j * kRows + y) * kColumns + x] = states[j];
    __syncthreads();
#pragma unroll
    for (int half = kRows / 2; half > 0; half /= 2) {
      if (y < half) {
#pragma unroll
        for (int j = 0; j < kLanes; ++j) {
          states[j] = F::join(states[j], slots[(j * kRows + y + half) * kColumns + x]);
          slots[(j * kRows + y) * kColumns + x] = states[j];
        }
      }
      __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < kLanes; ++j) states[j] = slots[j * kRows * kColumns + x];
  }
}

/// @brief Whether a pointer allows accesses of `kLanes` elements.
template <int kLanes, class T>
inline bool is_aligned(const T* data) {
  return reinterpret_cast<uintptr_t>(data) % kAccessBytes<T, kLanes> == 0;
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_LOOPS_CUH_
