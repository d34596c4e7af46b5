// Stands before the CUDA runtime library: while a test asks for it, the n-th call of a function that can fail on a card fails.
// Only the thread that asked is affected. Built as a shared library that is linked to libcudart.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace {

thread_local int64_t until_fault = -1;  ///< the calls before the one that fails; negative: none fails
thread_local const char* failed = "";   ///< the function that failed last
thread_local cudaError_t left_behind = cudaSuccess;  ///< what cudaGetLastError returns next

template <class T>
T* real(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "libcudart has no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<T*>(found);
}

bool fails(const char* name) {
  if (until_fault < 0 || until_fault-- > 0) return false;
  failed = name;
  left_behind = cudaErrorLaunchFailure;
  return true;
}

}  // namespace

extern "C" {

void fail_after(int64_t calls) { until_fault = calls; }
int64_t calls_left() { return until_fault; }
const char* failed_call() { return failed; }

#define AIT_MAY_FAIL(error, name, parameters, ...)                    \
  cudaError_t name parameters {                                       \
    static auto* const call = real<cudaError_t parameters>(#name);    \
    return fails(#name) ? error : call(__VA_ARGS__);                  \
  }

/// The error of a call that was made to fail is the last error of the thread, as it would be of the library.
cudaError_t cudaGetLastError() {
  static auto* const call = real<cudaError_t()>("cudaGetLastError");
  const cudaError_t last = call();
  return std::exchange(left_behind, cudaSuccess) == cudaSuccess ? last : cudaErrorLaunchFailure;
}

AIT_MAY_FAIL(cudaErrorMemoryAllocation, cudaMalloc, (void** p, size_t n), p, n)
AIT_MAY_FAIL(cudaErrorMemoryAllocation, cudaMallocAsync, (void** p, size_t n, cudaStream_t s), p, n, s)
AIT_MAY_FAIL(cudaErrorMemoryAllocation, cudaStreamCreateWithFlags, (cudaStream_t* s, unsigned f), s, f)
AIT_MAY_FAIL(cudaErrorMemoryAllocation, cudaEventCreateWithFlags, (cudaEvent_t* e, unsigned f), e, f)
AIT_MAY_FAIL(cudaErrorMemoryAllocation, cudaStreamBeginCapture, (cudaStream_t s, cudaStreamCaptureMode m), s, m)
AIT_MAY_FAIL(cudaErrorMemoryAllocation, cudaStreamEndCapture, (cudaStream_t s, cudaGraph_t* g), s, g)
AIT_MAY_FAIL(cudaErrorMemoryAllocation, cudaGraphInstantiateWithFlags, (cudaGraphExec_t* e, cudaGraph_t g, unsigned long long f), e, g, f)
AIT_MAY_FAIL(cudaErrorLaunchFailure, cudaGraphLaunch, (cudaGraphExec_t e, cudaStream_t s), e, s)
AIT_MAY_FAIL(cudaErrorLaunchFailure, cudaMemcpy, (void* to, const void* from, size_t n, cudaMemcpyKind k), to, from, n, k)
AIT_MAY_FAIL(cudaErrorLaunchFailure, cudaMemcpyAsync, (void* to, const void* from, size_t n, cudaMemcpyKind k, cudaStream_t s), to, from, n, k, s)
AIT_MAY_FAIL(cudaErrorLaunchFailure, cudaMemsetAsync, (void* to, int value, size_t n, cudaStream_t s), to, value, n, s)
AIT_MAY_FAIL(cudaErrorLaunchFailure, cudaLaunchKernelExC, (const cudaLaunchConfig_t* c, const void* f, void** a), c, f, a)
AIT_MAY_FAIL(cudaErrorLaunchFailure, cudaLaunchKernel, (const void* f, dim3 g, dim3 b, void** a, size_t n, cudaStream_t s), f, g, b, a, n, s)
AIT_MAY_FAIL(cudaErrorLaunchFailure, cudaFuncSetAttribute, (const void* f, cudaFuncAttribute a, int value), f, a, value)
AIT_MAY_FAIL(cudaErrorLaunchFailure, cudaEventRecord, (cudaEvent_t e, cudaStream_t s), e, s)
AIT_MAY_FAIL(cudaErrorLaunchFailure, cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t e, unsigned f), s, e, f)
AIT_MAY_FAIL(cudaErrorLaunchFailure, cudaStreamSynchronize, (cudaStream_t s), s)
AIT_MAY_FAIL(cudaErrorLaunchFailure, cudaEventSynchronize, (cudaEvent_t e), e)
AIT_MAY_FAIL(cudaErrorLaunchFailure, cudaDeviceSynchronize, (), )

}  // extern "C"
