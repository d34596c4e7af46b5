/// @file gpu.h
/// @brief Common names for the functions and types of CUDA and HIP, so that one source compiles with nvcc and with hipcc.
#ifndef AIT_GPU_GPU_H_
#define AIT_GPU_GPU_H_

#include <stdint.h>

#include <type_traits>

#include "ait/types.h"

#if defined(AIT_HIP)
#include <hip/hip_runtime.h>
#else
#include <cuda_runtime.h>
#endif

namespace ait::gpu {

#if defined(AIT_HIP)
using Stream = hipStream_t;
using Error = hipError_t;
inline constexpr Error kSuccess = hipSuccess;
inline const char* error_text(Error error) { return hipGetErrorString(error); }
/// Returns and clears the last error of this thread.
inline Error take_error() { return hipGetLastError(); }
#else
using Stream = cudaStream_t;
using Error = cudaError_t;
inline constexpr Error kSuccess = cudaSuccess;
inline const char* error_text(Error error) { return cudaGetErrorString(error); }
/// Returns and clears the last error of this thread.
inline Error take_error() { return cudaGetLastError(); }
#endif

#if defined(AIT_GPU)
/// @brief Declares `char name[]`: the dynamic shared memory of the block, aligned to `alignment` bytes. One name has one alignment.
#if defined(AIT_EMULATED)
#define AIT_DYNAMIC_SHARED(alignment, name) char* const name = ::ait::emulator::dynamic_shared(alignment)
#else
#define AIT_DYNAMIC_SHARED(alignment, name) extern __shared__ __align__(alignment) char name[]
#endif

/// Before a parameter of a kernel that is read where the launch put it: indexing it copies nothing.
#if defined(AIT_HIP)
#define AIT_GRID_CONSTANT
#else
#define AIT_GRID_CONSTANT __grid_constant__
#endif

/// Lanes that run together: 32 on NVIDIA, 64 on the AMD data-centre cards that we target.
#if defined(AIT_HIP)
inline constexpr int kWarpSize = 64;
#else
inline constexpr int kWarpSize = 32;
#endif

/// Whether the blocks of the architecture that this is compiled for form clusters; the toolchain says `AIT_SM`.
#if defined(AIT_NO_CLUSTER) || defined(AIT_HIP)
inline constexpr bool kHasClusters = false;
#elif defined(AIT_EMULATED)
inline constexpr bool kHasClusters = true;
#elif defined(AIT_SM)
inline constexpr bool kHasClusters = AIT_SM >= 90;
#else
inline constexpr bool kHasClusters = false;
#endif

#if defined(AIT_HIP) && !defined(AIT_EMULATED)
/// @brief Words that one instruction moves. Those of HIP are vectors of clang: an array of other elements that is copied from one stays in memory.
struct alignas(8) uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
#endif

namespace detail {
/// @brief `move` of a value; of a struct, such as the state of a fold, `move` of each of its words of 4 bytes.
template <class T, class Move>
__device__ __forceinline__ T by_words(T value, Move move) {
  if constexpr (std::is_class_v<T> && sizeof(T) % 4 == 0) {
    uint32_t words[sizeof(T) / 4];
    copy_bytes(words, &value, sizeof(T));
#pragma unroll
    for (uint32_t& word : words) word = move(word);
    copy_bytes(&value, words, sizeof(T));
    return value;
  } else {
    return move(value);
  }
}
}  // namespace detail

/// @brief The value of the lane whose index differs in the bits of `mask`. All lanes of the warp must take part.
template <class T>
__device__ __forceinline__ T shuffle_xor(T value, int mask) {
#if defined(AIT_HIP)
  return detail::by_words(value, [&](auto word) { return __shfl_xor(word, mask, kWarpSize); });
#else
  return detail::by_words(value, [&](auto word) { return __shfl_xor_sync(0xffffffffu, word, mask); });
#endif
}

/// @brief The value of the lane `delta` above this one.
template <class T>
__device__ __forceinline__ T shuffle_down(T value, int delta) {
#if defined(AIT_HIP)
  return detail::by_words(value, [&](auto word) { return __shfl_down(word, delta, kWarpSize); });
#else
  return detail::by_words(value, [&](auto word) { return __shfl_down_sync(0xffffffffu, word, delta); });
#endif
}

/// @brief The value of the lane `delta` below this one; its own where there is none.
template <class T>
__device__ __forceinline__ T shuffle_up(T value, int delta) {
#if defined(AIT_HIP)
  return detail::by_words(value, [&](auto word) { return __shfl_up(word, delta, kWarpSize); });
#else
  return detail::by_words(value, [&](auto word) { return __shfl_up_sync(0xffffffffu, word, delta); });
#endif
}

/// @brief The value of lane `lane`.
template <class T>
__device__ __forceinline__ T shuffle(T value, int lane) {
#if defined(AIT_HIP)
  return detail::by_words(value, [&](auto word) { return __shfl(word, lane, kWarpSize); });
#else
  return detail::by_words(value, [&](auto word) { return __shfl_sync(0xffffffffu, word, lane); });
#endif
}

/// @brief A bit for each lane of a warp, the lowest for lane 0.
#if defined(AIT_HIP)
using lanes_t = uint64_t;
#else
using lanes_t = uint32_t;
#endif

/// @brief The lanes that vote yes. All lanes of the warp must take part.
__device__ __forceinline__ lanes_t ballot(bool yes) {
#if defined(AIT_HIP)
  return __ballot(yes);
#else
  return __ballot_sync(0xffffffffu, yes);
#endif
}

/// @brief The lanes below this one.
__device__ __forceinline__ lanes_t lanes_below() { return (lanes_t(1) << (threadIdx.x % kWarpSize)) - 1; }

__device__ __forceinline__ int count_lanes(lanes_t lanes) {
  if constexpr (sizeof(lanes_t) == 8) {
    return __popcll(lanes);
  } else {
    return __popc(lanes);
  }
}

/// @brief Waits for all lanes of the warp; what they wrote to shared memory before is visible to all of them after.
__device__ __forceinline__ void sync_warp() {
#if defined(AIT_HIP) && defined(AIT_EMULATED)
  emulated_wave_barrier();
#elif defined(AIT_HIP)
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
#else
  __syncwarp();
#endif
}

/// @brief Waits until the launch before has ended, and with it all launches before that; their writes are visible then. Needed in every kernel
/// that is launched as dependent, before what another launch writes is read and before anything is written that another launch reads.
__device__ __forceinline__ void wait_for_previous() {
#if defined(AIT_CUDA) && ((defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900) || defined(AIT_EMULATED))
  cudaGridDependencySynchronize();
#endif
}

/// @brief Lets the next dependent launch start its blocks, when all blocks of this one have called it or ended. What that does before its own
/// `wait_for_previous` then costs nothing; a kernel may call this before it waits itself.
__device__ __forceinline__ void allow_next() {
#if defined(AIT_CUDA) && ((defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900) || defined(AIT_EMULATED))
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// @brief Bytes of shared memory that a block may have on the current device, including static declarations.
inline uint32_t shared_limit() {
#if defined(AIT_HIP)
  return 64 * 1024;
#elif defined(AIT_EMULATED)
  return 227 * 1024;
#else
  int device = 0, bytes = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 48 * 1024;
  if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess) return 48 * 1024;
  return static_cast<uint32_t>(bytes);
#endif
}

#if defined(AIT_CUDA)
/// @brief How many multiprocessors the current device has; 0 on an error.
inline int multiprocessors() {
  int device = 0, count = 0;
  if (cudaGetDevice(&device) != kSuccess) return 0;
  return cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) == kSuccess ? count : 0;
}
#endif
#endif  // AIT_GPU

}  // namespace ait::gpu

#endif  // AIT_GPU_GPU_H_
