/// @file timing_module.cc
/// @brief The timing of kernels as a module of tvm-ffi.
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <memory>
#include <string>
#include <utility>

#include "error.h"
#include "ffi_errors.h"
#include "ffi_tensors.h"
#include "timing.h"

namespace ait::runtime {
namespace {

namespace ffi = tvm::ffi;

/// Times candidates: `add(path, symbol, algorithm) -> reason or ""`, `algorithms(path, symbol) -> parts`, `sample(index) -> seconds`.
class TimingModule : public ffi::ModuleObj {
 public:
  explicit TimingModule(std::shared_ptr<Timing> timing) : timing_(std::move(timing)) {}

  const char* kind() const override { return "ait_timing"; }
  int GetPropertyMask() const override { return ffi::Module::kRunnable; }

  ffi::Optional<ffi::Function> GetFunction(const ffi::String& name) override {
    const std::shared_ptr<Timing> timing = timing_;
    if (name == "add") {
      return ffi::Function::FromTyped([timing](const ffi::String& path, const ffi::String& symbol, const ffi::Shape& algorithm) {
        return guarded([&] { return ffi::String(timing->add(std::string(path), std::string(symbol), to_vector(algorithm))); });
      });
    }
    if (name == "algorithms") {
      return ffi::Function::FromTyped([timing](const ffi::String& path, const ffi::String& symbol) {
        return guarded([&] { return to_shape(timing->algorithms(std::string(path), std::string(symbol))); });
      });
    }
    if (name == "sample") {
      return ffi::Function::FromTyped([timing](int64_t index) {
        return guarded([&] { return timing->sample(static_cast<size_t>(index)); });
      });
    }
    return std::nullopt;
  }

 private:
  std::shared_ptr<Timing> timing_;
};

/// timing(device, dims, chain, places, copies, num_inputs, inputs..., patterns...) -> Module
ffi::Function timing_function() {
  return ffi::Function::FromPacked([](ffi::PackedArgs args, ffi::Any* result) {
    guarded([&] {
      const int num_inputs = args[5].cast<int>();
      constexpr int kFirst = 6;
      if (num_inputs < 0 || kFirst + num_inputs > args.size()) fail(ErrorKind::kInput, "a timing got too few tensors");
      const TensorArguments inputs(args, kFirst, kFirst + num_inputs);
      const TensorArguments patterns(args, kFirst + num_inputs, args.size());
      auto timing = std::make_shared<Timing>(args[0].cast<int>(), to_vector(args[1].cast<ffi::Shape>()), args[2].cast<int>(),
                                             args[3].cast<int>(), args[4].cast<int>(), inputs.tensors(), patterns.tensors());
      *result = ffi::Module(ffi::make_object<TimingModule>(std::move(timing)));
    });
  });
}

}  // namespace
}  // namespace ait::runtime

TVM_FFI_DLL_EXPORT_TYPED_FUNC(make_timing, ait::runtime::timing_function);
