/// @file hip_runtime.h
/// @brief The emulator's stand-in for the HIP runtime and the built-ins of a wave of 64.
#ifndef AIT_EMULATOR_HIP_RUNTIME_H_
#define AIT_EMULATOR_HIP_RUNTIME_H_

#include "simt.h"

// ** host **

using hipStream_t = void*;
enum hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorLaunchFailure = 719 };
namespace ait::emulator {
inline hipError_t hip_error = hipSuccess;
}
inline const char* hipGetErrorString(hipError_t error) { return error == hipSuccess ? "no error" : ait::emulator::last_error(); }
inline hipError_t hipGetLastError() {
  const hipError_t error = ait::emulator::hip_error;
  return ait::emulator::hip_error = hipSuccess, error;
}

enum hipFuncAttribute { hipFuncAttributeMaxDynamicSharedMemorySize };
inline hipError_t hipFuncSetAttribute(const void* kernel, hipFuncAttribute, int value) {
  return ait::emulator::allow_shared(kernel, size_t(value)) ? hipSuccess : hipErrorInvalidValue;
}
template <class... Params, class... Args>
void hipLaunchKernelGGL(void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared_bytes, hipStream_t, Args&&... args) {
  if (!ait::emulator::start(kernel, grid, block, shared_bytes, 1, false, args...)) ait::emulator::hip_error = hipErrorLaunchFailure;
}
inline hipError_t hipMemsetAsync(void* data, int value, size_t bytes, hipStream_t) {
  return ait::emulator::fill(data, value, bytes) ? hipSuccess : hipErrorInvalidValue;
}

/// As few multiprocessors as for CUDA.
enum hipDeviceAttribute_t { hipDeviceAttributeMultiprocessorCount };
inline hipError_t hipGetDevice(int* device) { return *device = 0, hipSuccess; }
inline hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t, int) { return *value = 4, hipSuccess; }

// ** device **

inline constexpr int warpSize = 64;

template <class T>
T __shfl(T value, int from, int width = 64, AIT_EMULATOR_CALLER) {
  return ait::emulator::shuffle(value, ait::emulator::lane_of_part(from, width), "__shfl", {file, line});
}
template <class T>
T __shfl_xor(T value, int mask, int = 64, AIT_EMULATOR_CALLER) {
  return ait::emulator::shuffle(value, ait::emulator::lane_index() ^ mask, "__shfl_xor", {file, line});
}
template <class T>
T __shfl_down(T value, int delta, int width = 64, AIT_EMULATOR_CALLER) {
  return ait::emulator::shuffle(value, ait::emulator::lane_above(delta, width), "__shfl_down", {file, line});
}
template <class T>
T __shfl_up(T value, int delta, int width = 64, AIT_EMULATOR_CALLER) {
  return ait::emulator::shuffle(value, ait::emulator::lane_below(delta, width), "__shfl_up", {file, line});
}
inline uint64_t __ballot(int vote, AIT_EMULATOR_CALLER) { return ait::emulator::ballot(vote != 0, "__ballot", {file, line}); }
/// What `sync_warp` of `ait/gpu/gpu.h` is on a card: the lanes of a wave run together.
inline void emulated_wave_barrier(AIT_EMULATOR_CALLER) {
  ait::emulator::meet(ait::emulator::Scope::warp, "a wave barrier", true, nullptr, nullptr, {file, line});
}
inline int __any(int vote, AIT_EMULATOR_CALLER) { return __ballot(vote, file, line) != 0; }
inline int __all(int vote, AIT_EMULATOR_CALLER) { return __ballot(!vote, file, line) == 0; }

#endif  // AIT_EMULATOR_HIP_RUNTIME_H_
