// Functions of a kernel library for the tests: the first part holds the code blocks of tvm-ffi's Kernel Library Guide.
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/string.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

namespace ffi = tvm::ffi;

namespace {

// ** the guide: attributes **

ffi::String attributes(ffi::TensorView view, ffi::Tensor tensor) {
  std::string text;
  const auto tell = [&text](auto t) {
    const DLDevice device = t.device();
    const DLDataType dtype = t.dtype();
    const ffi::ShapeView sizes = t.sizes(), strides = t.strides();
    text += "dim " + std::to_string(t.dim()) + " sizes";
    for (int64_t n : sizes) text += " " + std::to_string(n);
    text += " size(-1) " + std::to_string(t.size(-1)) + " strides";
    for (int64_t n : strides) text += " " + std::to_string(n);
    text += " stride(0) " + std::to_string(t.stride(0)) + " numel " + std::to_string(t.numel());
    text += " device " + std::to_string(device.device_type) + ":" + std::to_string(device.device_id);
    text += " dtype " + std::to_string(dtype.code) + "," + std::to_string(dtype.bits) + "," + std::to_string(dtype.lanes);
    text += t.is_contiguous() ? " contiguous" : " strided";
    text += t.data_ptr() == nullptr ? " null\n" : " data\n";
  };
  tell(view);
  tell(tensor);
  return text;
}

// ** the guide: tensor allocation **

int64_t env_allocations = 0;

ffi::Tensor func(ffi::TensorView arg0, ffi::TensorView arg1) {
  ffi::Tensor tensor0 = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, arg0.shape(), arg0.dtype(), arg0.device());
  TVM_FFI_CHECK(tensor0.numel() == arg1.numel(), ValueError) << "both arguments have as many elements";
  ++env_allocations;
  std::memcpy(tensor0.data_ptr(), arg1.data_ptr(), ffi::GetDataSize(static_cast<size_t>(arg1.numel()), arg1.dtype()));
  return tensor0;
}

int64_t living = 0;

// CPU Allocator
struct CPUNDAlloc {
  void AllocData(DLTensor* tensor) { tensor->data = malloc(ffi::GetDataSize(*tensor)); ++living; }
  void FreeData(DLTensor* tensor) { free(tensor->data); --living; }
};

// NVSHMEM, of which only the declarations are here: what follows is compiled and never run
extern "C" void* nvshmem_malloc(size_t size) { return malloc(size); }
extern "C" void nvshmem_free(void* data) { free(data); }

// NVSHMEM Allocator
struct NVSHMEMNDAlloc {
  void AllocData(DLTensor* tensor) {
    size_t size = tvm::ffi::GetDataSize(*tensor);
    tensor->data = nvshmem_malloc(size);
    TVM_FFI_ICHECK_NE(tensor->data, nullptr) << "nvshmem_malloc failed. size: " << size;
  }
  void FreeData(DLTensor* tensor) { nvshmem_free(tensor->data); }
};

ffi::Tensor nvshmem_compiled(ffi::Shape shape) {
  ffi::Tensor nvshmem_tensor = ffi::Tensor::FromNDAlloc(NVSHMEMNDAlloc(), shape, DLDataType{kDLFloat, 32, 1}, DLDevice{kDLCUDA, 0});
  return nvshmem_tensor;
}

ffi::Tensor nd_alloc(ffi::Shape shape) {
  ffi::Tensor cpu_tensor = ffi::Tensor::FromNDAlloc(CPUNDAlloc(), shape, DLDataType{kDLFloat, 32, 1}, DLDevice{kDLCPU, 0});
  for (int64_t i = 0; i < cpu_tensor.numel(); ++i) static_cast<float*>(cpu_tensor.data_ptr())[i] = static_cast<float>(i);
  return cpu_tensor;
}

int64_t nd_alive() { return living; }

// FromDLPack with ToDLPack, FromDLPackVersioned with ToDLPackVersioned
ffi::Tensor through_dlpack(ffi::Tensor tensor, bool versioned) {
  if (versioned) {
    DLManagedTensorVersioned* managed = tensor.ToDLPackVersioned();
    return ffi::Tensor::FromDLPackVersioned(managed);
  }
  DLManagedTensor* managed = tensor.ToDLPack();
  return ffi::Tensor::FromDLPack(managed);
}

// ** the guide: passing tensors **

// Kernel definition
void passing(ffi::TensorView input, ffi::Optional<ffi::Tensor> optional_input, ffi::TensorView output, ffi::TensorView workspace) {
  const auto* x = static_cast<const float*>(input.data_ptr());
  auto* y = static_cast<float*>(output.data_ptr());
  auto* scratch = static_cast<float*>(workspace.data_ptr());
  std::memcpy(scratch, x, ffi::GetDataSize(static_cast<size_t>(input.numel()), input.dtype()));
  const auto* other = optional_input.has_value() ? static_cast<const float*>(optional_input.value().data_ptr()) : nullptr;
  for (int64_t i = 0; i < input.numel(); ++i) y[i] = scratch[i] + (other != nullptr ? other[i] : 0.0f);
}

// ** the guide: the stream **

int64_t stream(ffi::TensorView arg0) {
  DLDevice device = arg0.device();
  return reinterpret_cast<intptr_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
}

// ** for graphs **

/// y = x * factor + bias, along the last dim; x may be strided.
void scale(ffi::TensorView x, ffi::Optional<ffi::Tensor> bias, double factor, ffi::TensorView y) {
  TVM_FFI_CHECK(x.dim() == 2, ValueError) << "x has rank " << x.dim() << ", expected 2";
  TVM_FFI_CHECK(x.dtype().bits == 32 && x.dtype().code == kDLFloat, TypeError) << "x is " << x.dtype() << ", expected float32";
  TVM_FFI_CHECK(x.device().device_type == kDLCPU, ValueError) << "x is on device type " << x.device().device_type << ", expected the CPU";
  const auto* in = static_cast<const float*>(x.data_ptr());
  const auto* b = bias.has_value() ? static_cast<const float*>(bias.value().data_ptr()) : nullptr;
  auto* out = static_cast<float*>(y.data_ptr());
  for (int64_t i = 0; i < x.size(0); ++i) {
    for (int64_t j = 0; j < x.size(1); ++j) {
      const float value = in[i * x.stride(0) + j * x.stride(1)];
      out[i * x.size(1) + j] = value * static_cast<float>(factor) + (b != nullptr ? b[j] : 0.0f);
    }
  }
}

/// The sum of each row, through the workspace, and the number of rows that `least` or more; all kinds of arguments.
void row_sums(ffi::TensorView sums, ffi::TensorView x, ffi::TensorView workspace, ffi::TensorView count, double least, int64_t rows, bool negate,
              ffi::String mode) {
  TVM_FFI_CHECK(workspace.numel() == 4 * rows, ValueError) << "the workspace has " << workspace.numel() << " bytes";
  TVM_FFI_CHECK(mode == "sum", ValueError) << "mode is " << mode;
  auto* scratch = static_cast<float*>(workspace.data_ptr());
  const auto* in = static_cast<const float*>(x.data_ptr());
  int32_t many = 0;
  for (int64_t i = 0; i < rows; ++i) {
    scratch[i] = 0;
    for (int64_t j = 0; j < x.size(1); ++j) scratch[i] += in[i * x.size(1) + j];
    many += scratch[i] >= least;
    static_cast<float*>(sums.data_ptr())[i] = negate ? -scratch[i] : scratch[i];
  }
  static_cast<int32_t*>(count.data_ptr())[0] = many;
}

/// |x| of bf16, by its bits.
void absolute_bf16(ffi::TensorView x, ffi::TensorView y) {
  TVM_FFI_CHECK(x.dtype().code == kDLBfloat && x.dtype().bits == 16, TypeError) << "x is " << x.dtype() << ", expected bfloat16";
  for (int64_t i = 0; i < x.numel(); ++i) static_cast<uint16_t*>(y.data_ptr())[i] = static_cast<const uint16_t*>(x.data_ptr())[i] & 0x7fff;
}

/// Copies x through a tensor that it allocates itself.
void through_temporary(ffi::TensorView x, ffi::TensorView y) {
  const size_t bytes = ffi::GetDataSize(static_cast<size_t>(x.numel()), x.dtype());
  ffi::Tensor temporary = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), x.device());
  TVM_FFI_CHECK(temporary.is_contiguous(), ValueError) << "expected a row-major tensor";
  std::memcpy(temporary.data_ptr(), x.data_ptr(), bytes);
  std::memcpy(y.data_ptr(), temporary.data_ptr(), bytes);
}

/// Fails where an element of x is negative.
void square_root(ffi::TensorView x, ffi::TensorView y) {
  for (int64_t i = 0; i < x.numel(); ++i) {
    const float value = static_cast<const float*>(x.data_ptr())[i];
    if (value < 0) TVM_FFI_THROW(ValueError) << "element " << i << " is " << value;
    static_cast<float*>(y.data_ptr())[i] = std::sqrt(value);
  }
}

int64_t returns_status(ffi::TensorView x, ffi::TensorView y) {
  std::memcpy(y.data_ptr(), x.data_ptr(), ffi::GetDataSize(static_cast<size_t>(x.numel()), x.dtype()));
  return static_cast<const float*>(x.data_ptr())[0] < 0 ? 7 : 0;
}

ffi::Tensor returns_tensor(ffi::Tensor x, ffi::Tensor) { return x; }

void throws_other(ffi::TensorView, ffi::TensorView) { throw std::runtime_error("not an error of tvm-ffi"); }

void too_few(ffi::TensorView) {}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(attributes, attributes);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(func, func);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(nd_alloc, nd_alloc);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(nd_alive, nd_alive);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(nvshmem_compiled, nvshmem_compiled);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(through_dlpack, through_dlpack);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(passing, passing);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(stream, stream);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale, scale);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(row_sums, row_sums);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(absolute_bf16, absolute_bf16);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(through_temporary, through_temporary);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(square_root, square_root);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(returns_status, returns_status);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(returns_tensor, returns_tensor);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(throws_other, throws_other);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(too_few, too_few);
