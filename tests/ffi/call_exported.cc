// Calls an exported model from C++: argv[1] is the library, argv[2] the function.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <cstdio>
#include <cstdlib>

namespace ffi = tvm::ffi;

struct CPUNDAlloc {
  void AllocData(DLTensor* tensor) { tensor->data = malloc(ffi::GetDataSize(*tensor)); }
  void FreeData(DLTensor* tensor) { free(tensor->data); }
};

int main(int, char** argv) {
  const ffi::Module module = ffi::Module::LoadFromFile(argv[1]);
  const ffi::Function function = module->GetFunction(argv[2]).value();
  const DLDataType f32{kDLFloat, 32, 1};
  const ffi::Tensor x = ffi::Tensor::FromNDAlloc(CPUNDAlloc(), ffi::Shape{2, 8}, f32, DLDevice{kDLCPU, 0});
  const ffi::Tensor y = ffi::Tensor::FromNDAlloc(CPUNDAlloc(), ffi::Shape{2, 16}, f32, DLDevice{kDLCPU, 0});
  for (int i = 0; i < 16; ++i) static_cast<float*>(x.data_ptr())[i] = static_cast<float>(i) / 8;
  function(x, y);
  const auto made = function(x).cast<ffi::Tensor>();
  for (int i = 0; i < 32; ++i) {
    if (static_cast<float*>(y.data_ptr())[i] != static_cast<float*>(made.data_ptr())[i]) return 1;
    std::printf("%.6f\n", double(static_cast<float*>(y.data_ptr())[i]));
  }
  try {
    function(x, y, y);
    return 2;
  } catch (const ffi::Error& error) {
    std::printf("%s: %s\n", error.kind().c_str(), error.message().c_str());
  }
  return 0;
}
