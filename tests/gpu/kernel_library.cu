// Functions of a kernel library on CUDA for the tests; the first part holds the code blocks of tvm-ffi's Kernel Library Guide.
#include <cuda_runtime.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>

namespace ffi = tvm::ffi;

namespace {

cudaStream_t stream_of(DLDevice device) {
  return reinterpret_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
}

void check(cudaError_t status) { TVM_FFI_CHECK(status == cudaSuccess, RuntimeError) << cudaGetErrorString(status); }

// ** the guide **

// CUDA Allocator
struct CUDANDAlloc {
  void AllocData(DLTensor* tensor) {
    size_t data_size = ffi::GetDataSize(*tensor);
    void* ptr = nullptr;
    cudaError_t err = cudaMalloc(&ptr, data_size);
    TVM_FFI_ICHECK_EQ(err, cudaSuccess) << "cudaMalloc failed: " << cudaGetErrorString(err);
    tensor->data = ptr;
  }
  void FreeData(DLTensor* tensor) {
    if (tensor->data != nullptr) {
      cudaError_t err = cudaFree(tensor->data);
      TVM_FFI_ICHECK_EQ(err, cudaSuccess) << "cudaFree failed: " << cudaGetErrorString(err);
      tensor->data = nullptr;
    }
  }
};

ffi::Tensor nd_alloc(ffi::TensorView like) {
  ffi::Tensor cuda_tensor = ffi::Tensor::FromNDAlloc(CUDANDAlloc(), like.shape(), like.dtype(), like.device());
  check(cudaMemcpyAsync(cuda_tensor.data_ptr(), like.data_ptr(), ffi::GetDataSize(static_cast<size_t>(like.numel()), like.dtype()),
                        cudaMemcpyDeviceToDevice, stream_of(like.device())));
  return cuda_tensor;
}

ffi::Tensor env_alloc(ffi::TensorView arg0) {
  ffi::Tensor tensor0 = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, arg0.shape(), arg0.dtype(), arg0.device());
  check(cudaMemcpyAsync(tensor0.data_ptr(), arg0.data_ptr(), ffi::GetDataSize(static_cast<size_t>(arg0.numel()), arg0.dtype()),
                        cudaMemcpyDeviceToDevice, stream_of(arg0.device())));
  return tensor0;
}

int64_t stream(ffi::TensorView arg0) {
  DLDevice device = arg0.device();
  cudaStream_t stream0 = reinterpret_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  return reinterpret_cast<intptr_t>(stream0);
}

// ** for graphs **

__global__ void scale_kernel(const float* x, const float* bias, float factor, float* y, int64_t count, int64_t width) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < count) y[i] = x[i] * factor + (bias != nullptr ? bias[i % width] : 0.0f);
}

void launch(const float* x, const float* bias, double factor, float* y, int64_t count, int64_t width, cudaStream_t stream) {
  if (count == 0) return;
  scale_kernel<<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream>>>(x, bias, static_cast<float>(factor), y, count, width);
  check(cudaGetLastError());
}

void scale(ffi::TensorView x, ffi::Optional<ffi::Tensor> bias, double factor, ffi::TensorView y) {
  TVM_FFI_CHECK(x.device().device_type == kDLCUDA, ValueError) << "x is not on a CUDA device";
  const float* b = bias.has_value() ? static_cast<const float*>(bias.value().data_ptr()) : nullptr;
  launch(static_cast<const float*>(x.data_ptr()), b, factor, static_cast<float*>(y.data_ptr()), x.numel(), x.size(-1), stream_of(x.device()));
}

/// y = 4 x, through a tensor that it allocates.
void through_temporary(ffi::TensorView x, ffi::TensorView y) {
  ffi::Tensor temporary = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), x.device());
  auto* const t = static_cast<float*>(temporary.data_ptr());
  launch(static_cast<const float*>(x.data_ptr()), nullptr, 2, t, x.numel(), 1, stream_of(x.device()));
  launch(t, nullptr, 2, static_cast<float*>(y.data_ptr()), x.numel(), 1, stream_of(x.device()));
}

void wants_cpu(ffi::TensorView x, ffi::TensorView) {
  TVM_FFI_CHECK(x.device().device_type == kDLCPU, ValueError) << "x is on device type " << x.device().device_type << ", expected the CPU";
}

// ** faults **

__global__ void copy_or_stray_kernel(const float* x, float* y, int64_t count) {
  constexpr int64_t kFar = int64_t{1} << 40;
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < count) y[x[i] < 0 ? i + kFar : i] = x[i];
}

/// y = x; a negative element goes to an address at which there is no memory.
void copy_or_stray(ffi::TensorView x, ffi::TensorView y) {
  const int64_t count = x.numel();
  copy_or_stray_kernel<<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream_of(x.device())>>>(
      static_cast<const float*>(x.data_ptr()), static_cast<float*>(y.data_ptr()), count);
  check(cudaGetLastError());
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(nd_alloc, nd_alloc);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(env_alloc, env_alloc);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(stream, stream);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale, scale);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(through_temporary, through_temporary);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(wants_cpu, wants_cpu);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(copy_or_stray, copy_or_stray);
