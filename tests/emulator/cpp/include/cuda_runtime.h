/// @file cuda_runtime.h
/// @brief The emulator's stand-in for the CUDA runtime and the built-ins of a warp of 32.
#ifndef AIT_EMULATOR_CUDA_RUNTIME_H_
#define AIT_EMULATOR_CUDA_RUNTIME_H_

#include "cuda.h"
#include "simt.h"

#define __grid_constant__
#define CUDART_VERSION 13000
/// Kernels for sm_90a have bodies.
#define __CUDA_ARCH_FEAT_SM90_ALL 1

// ** host **

using cudaStream_t = void*;
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorLaunchFailure = 719 };
inline const char* cudaGetErrorString(cudaError_t error) { return error == cudaSuccess ? "no error" : ait::emulator::last_error(); }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaPeekAtLastError() { return cudaSuccess; }

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaFuncAttributePreferredSharedMemoryCarveout, cudaFuncAttributeNonPortableClusterSizeAllowed };
inline cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute what, int value) {
  if (what != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  return ait::emulator::allow_shared(kernel, size_t(value)) ? cudaSuccess : cudaErrorInvalidValue;
}
template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute what, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), what, value);
}

enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization, cudaLaunchAttributeClusterDimension };
struct cudaLaunchAttributeValue {
  int programmaticStreamSerializationAllowed = 0;
  struct {
    uint32_t x, y, z;
  } clusterDim;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};
/// As many clusters of any size as a card of 64 multiprocessors has room for.
inline cudaError_t cudaOccupancyMaxActiveClusters(int* count, const void*, const cudaLaunchConfig_t* config) {
  *count = int(64 / config->gridDim.x);
  return cudaSuccess;
}
template <class... Params, class... Args>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Params...), Args&&... args) {
  uint32_t cluster = 1;
  bool dependent = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeClusterDimension) cluster = attribute.val.clusterDim.x;
    if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization) dependent = attribute.val.programmaticStreamSerializationAllowed != 0;
  }
  const bool ok = ait::emulator::start(kernel, config->gridDim, config->blockDim, config->dynamicSmemBytes, cluster, dependent, args...);
  return ok ? cudaSuccess : cudaErrorLaunchFailure;
}
inline cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t) {
  return ait::emulator::fill(data, value, bytes) ? cudaSuccess : cudaErrorInvalidValue;
}

/// As few multiprocessors as make a persistent grid go round.
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount };
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = 4, cudaSuccess; }

enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess, cudaDriverEntryPointSymbolNotFound };
constexpr unsigned long long cudaEnableDefault = 0;
/// Of the driver there are tensor maps (cuda.h).
inline cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** entry, unsigned, unsigned long long, cudaDriverEntryPointQueryResult* found) {
  const bool tiled = strcmp(name, "cuTensorMapEncodeTiled") == 0, known = tiled || strcmp(name, "cuTensorMapEncodeIm2col") == 0;
  if (known) *entry = tiled ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled) : reinterpret_cast<void*>(&cuTensorMapEncodeIm2col);
  return *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound, cudaSuccess;
}

// ** device **

inline constexpr int warpSize = 32;

template <class T>
T __shfl_sync(uint32_t lanes, T value, int from, int width = 32, AIT_EMULATOR_CALLER) {
  return ait::emulator::shuffle(value, ait::emulator::lane_of_part(from, width), "__shfl_sync", {file, line}, lanes);
}
template <class T>
T __shfl_xor_sync(uint32_t lanes, T value, int mask, int = 32, AIT_EMULATOR_CALLER) {
  return ait::emulator::shuffle(value, ait::emulator::lane_index() ^ mask, "__shfl_xor_sync", {file, line}, lanes);
}
template <class T>
T __shfl_down_sync(uint32_t lanes, T value, int delta, int width = 32, AIT_EMULATOR_CALLER) {
  return ait::emulator::shuffle(value, ait::emulator::lane_above(delta, width), "__shfl_down_sync", {file, line}, lanes);
}
template <class T>
T __shfl_up_sync(uint32_t lanes, T value, int delta, int width = 32, AIT_EMULATOR_CALLER) {
  return ait::emulator::shuffle(value, ait::emulator::lane_below(delta, width), "__shfl_up_sync", {file, line}, lanes);
}
inline uint32_t __ballot_sync(uint32_t lanes, int vote, AIT_EMULATOR_CALLER) {
  return uint32_t(ait::emulator::ballot(vote != 0, "__ballot_sync", {file, line}, lanes));
}
inline int __any_sync(uint32_t lanes, int vote, AIT_EMULATOR_CALLER) { return __ballot_sync(lanes, vote, file, line) != 0; }
inline int __all_sync(uint32_t lanes, int vote, AIT_EMULATOR_CALLER) { return __ballot_sync(lanes, !vote, file, line) == 0; }
inline void __syncwarp(uint32_t lanes = 0xffffffffu, AIT_EMULATOR_CALLER) {
  ait::emulator::meet(ait::emulator::Scope::warp, "__syncwarp", true, nullptr, nullptr, {file, line}, lanes);
}
inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift) { return uint32_t((uint64_t(high) << 32 | low) >> (shift & 31)); }
inline void cudaGridDependencySynchronize() { ait::emulator::wait_for_previous(); }
inline void cudaTriggerProgrammaticLaunchCompletion() {}
inline void __trap() { ait::emulator::fail("a trap"); }
inline size_t __cvta_generic_to_shared(const void* pointer) { return ait::emulator::shared_address(pointer); }

#endif  // AIT_EMULATOR_CUDA_RUNTIME_H_
