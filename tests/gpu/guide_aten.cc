// The code blocks of tvm-ffi's Kernel Library Guide that compare the environment with PyTorch's C++.
#include <ATen/ATen.h>
#include <ATen/DLConvertor.h>
#include <c10/cuda/CUDAStream.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

namespace ffi = tvm::ffi;

// As ATen/cuda/CUDAContext.h has it, which needs the headers of further libraries.
namespace at::cuda {
using c10::cuda::getCurrentCUDAStream;
}

namespace at {
/// PyTorch exports this function under another name.
template <class Managed>
Managed* toDLPackImpl(const Tensor& tensor) {
  return toDLPackVersioned(tensor);
}
}  // namespace at

/// Whether both tensors come from PyTorch's allocator, on the device of arg0.
bool func(ffi::TensorView arg0) {
  ffi::Tensor tensor0 = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, arg0.shape(), arg0.dtype(), arg0.device());
  ffi::Tensor tensor1 = ffi::Tensor::FromDLPackVersioned(at::toDLPackImpl<DLManagedTensorVersioned>(
      at::empty({arg0.size(0), arg0.size(1)}, at::TensorOptions().dtype(at::kFloat).device(at::kCUDA, arg0.device().device_id))));
  // tensor0 and tensor1 are equivalent once arg{i} at Python side has type of torch.Tensor.
  return tensor0.sizes().size() == tensor1.sizes().size() && tensor0.numel() == tensor1.numel() &&
         tensor0.device().device_type == tensor1.device().device_type && tensor0.device().device_id == tensor1.device().device_id &&
         tensor0.dtype().code == tensor1.dtype().code;
}

bool streams(ffi::TensorView arg0) {
  DLDevice device = arg0.device();
  cudaStream_t stream0 = reinterpret_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  cudaStream_t stream1 = reinterpret_cast<cudaStream_t>(at::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device.device_id)).stream());
  // stream0 and stream1 are the same cuda stream handle once arg0 is of type torch.Tensor at Python side
  return stream0 == stream1;
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(func, func);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(streams, streams);
