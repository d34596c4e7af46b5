/// @file module.cc
/// @brief A model as a module of tvm-ffi, and the functions of the runtime library for Python. `timing_module.cc` and
/// `kernel_libraries.cc` know tvm-ffi, too.
///
/// A loaded model is a `ModuleObj` whose functions are the methods below. It has no type key of its own, so that several runtime
/// libraries may live in one process.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ait/amx_service.h"
#include "ait/checked.h"
#include "device_models.h"
#include "dynamic_library.h"
#include "error.h"
#include "inspect.h"
#include "ffi_errors.h"
#include "ffi_outputs.h"
#include "ffi_tensors.h"
#include "kernel_libraries.h"
#include "measure.h"
#include "model.h"
#include "ranks_link.h"
#include "services.h"
#include "threads.h"

namespace ait::runtime {
namespace {

namespace ffi = tvm::ffi;

using Models = std::shared_ptr<DeviceModels>;

/// Memory of a model's device for tensors of the caller's. They keep the model alive.
struct TensorMemory {
  Models models;
  Model* model;

  void AllocData(DLTensor* tensor) {
    Checked bytes = (tensor->dtype.bits + 7) / 8;
    for (int32_t i = 0; i < tensor->ndim; ++i) bytes = bytes * tensor->shape[i];
    const DeviceScope scope(model->device());
    tensor->data = bytes.value() == 0 ? nullptr : model->device().allocate(static_cast<size_t>(bytes.value()), "a tensor");
  }
  void FreeData(DLTensor* tensor) {
    const DeviceScope scope(model->device());
    if (tensor->data != nullptr) model->device().release(tensor->data);
  }
};

/// Memory of the allocator of the framework that calls: PyTorch's caching allocator for a call with torch tensors. Null for other callers.
std::shared_ptr<void> lend_from_framework(Device& device, size_t bytes) {
  if (TVMFFIEnvGetDLPackManagedTensorAllocator() == nullptr) return nullptr;
  const DLDevice place = device.dl();
  const auto extent = static_cast<int64_t>(bytes);
  const auto tensor = std::make_shared<ffi::Tensor>(
      ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, ffi::ShapeView(&extent, 1), DLDataType{kDLUInt, 8, 1}, place));
  // What the framework has launched before it freed these bytes may still use them; a run may be on another stream than that.
  device.sync(TVMFFIEnvGetStream(place.device_type, place.device_id));
  return {tensor, tensor->data_ptr()};
}

class ModelModule : public ffi::ModuleObj {
 public:
  /// @param device of the model; only that one if `is_fixed`, else the first of those that are used
  ModelModule(const std::string& library, int num_runtimes, int device, bool is_fixed, bool lends)
      : models_(std::make_shared<DeviceModels>(
            [library, num_runtimes, lends](int id) {
              return std::make_unique<Model>(library, num_runtimes, id, lends ? Lender(lend_from_framework) : nullptr);
            },
            device, is_fixed)) {}

  const char* kind() const override { return "ait_model"; }
  int GetPropertyMask() const override { return ffi::Module::kRunnable; }

  ffi::Optional<ffi::Function> GetFunction(const ffi::String& name) override {
    // Functions keep the model alive, for a caller may hold one longer than the module.
    const Models models = models_;
    const std::shared_ptr<Model> model(models, &models->first());
    if (name == "run") return run_function(models);
    if (name == "run_whole") return run_whole_function(models);
    if (name == "run_and_return") return run_and_return_function(models);
    if (name == "run_in") return run_in_function(models);
    if (name == "launch_in") return launch_in_function(model);
    if (name == "infer") return infer_function(models, &Shapes::outputs);
    if (name == "infer_strides") return infer_function(models, &Shapes::strides_of_outputs);
    if (name == "set_constants") return set_constants_function(models);
    if (name == "swap_constants") {
      return ffi::Function::FromTyped([models] { guarded([&] { models->swap_constants(); }); });
    }
    if (name == "adopt_constants") {
      return ffi::Function::FromTyped([models](const ffi::String& key) {
        return guarded([&] { return models->adopt_constants(std::string(key)); });
      });
    }
    if (name == "publish_constants") {
      return ffi::Function::FromTyped([models](const ffi::String& key) { guarded([&] { models->publish_constants(std::string(key)); }); });
    }
    if (name == "write_constants") {
      return ffi::Function::FromTyped([models](bool spare, int file) { guarded([&] { models->write_constants(spare, file); }); });
    }
    if (name == "map_constants") {
      return ffi::Function::FromTyped([models](bool spare, int file, const ffi::Array<ffi::String>& names) {
        guarded([&] { models->map_constants(spare, file, to_strings(names)); });
      });
    }
    if (name == "devices") return ffi::Function::FromTyped([models] { return guarded([&] { return to_shape(models->devices()); }); });
    if (name == "describe") return ffi::Function::FromTyped([model] { return ffi::String(model->describe()); });
    if (name == "input_shapes") return shapes_function(model, &Shapes::inputs);
    if (name == "output_shapes") return shapes_function(model, &Shapes::outputs);
    if (name == "input_strides") return shapes_function(model, &Shapes::strides_of_inputs);
    if (name == "output_strides") return shapes_function(model, &Shapes::strides_of_outputs);
    if (name == "arena_bytes") {
      return ffi::Function::FromTyped([model](const ffi::Shape& dims) {
        return guarded([&] { return model->arena_bytes(to_vector(dims)); });
      });
    }
    if (name == "missing_constants") {
      return ffi::Function::FromTyped([model](bool spare) {
        ffi::Array<ffi::String> names;
        for (const std::string& missing : guarded([&] { return model->constants().missing(spare); })) names.push_back(missing);
        return names;
      });
    }
    if (name == "benchmark") return benchmark_function(models);
    if (name == "profile") return profile_function(models);
    if (name == "inspect") return inspect_function(models);
    if (name == "allocated_bytes") return ffi::Function::FromTyped([models] { return guarded([&] { return models->stats().bytes; }); });
    if (name == "stats") {
      return ffi::Function::FromTyped([models] {
        const ModelStats s = guarded([&] { return models->stats(); });
        const GraphStats& g = s.graphs;
        return ffi::Shape({s.runs, s.failures, s.waits, s.copies, s.bytes, g.hits, g.captures, g.updates, g.warmups, g.fallbacks, g.evictions});
      });
    }
    if (name == "sync") {
      return ffi::Function::FromTyped([models](int64_t stream) {
        guarded([&] { models->sync(reinterpret_cast<void*>(stream)); });
      });
    }
    if (name == "finish") return ffi::Function::FromTyped([models] { guarded([&] { models->finish(); }); });
    if (name == "state_was_set") {
      return ffi::Function::FromTyped([models](int64_t address, int64_t bytes) {
        guarded([&] { models->state_was_set(static_cast<uintptr_t>(address), static_cast<size_t>(bytes)); });
      });
    }
    if (name == "allocate") {
      return ffi::Function::FromTyped([model](int64_t bytes) {
        return guarded([&] {
          if (bytes < 0) fail(ErrorKind::kInput, "cannot allocate ", bytes, " bytes");
          const DeviceScope scope(model->device());
          if (bytes == 0) return int64_t{0};
          return static_cast<int64_t>(reinterpret_cast<intptr_t>(model->device().allocate(static_cast<size_t>(bytes), "the caller")));
        });
      });
    }
    if (name == "release") {
      return ffi::Function::FromTyped([model](int64_t address) {
        guarded([&] {
          const DeviceScope scope(model->device());
          if (address != 0) model->device().release(reinterpret_cast<void*>(address));
        });
      });
    }
    if (name == "copy") {
      return ffi::Function::FromTyped([model](int64_t to, int64_t from, int64_t bytes) {
        guarded([&] {
          const DeviceScope scope(model->device());
          if (bytes > 0) model->device().copy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), static_cast<size_t>(bytes));
        });
      });
    }
    if (name == "copy_on") {
      return ffi::Function::FromTyped([model](int64_t to, int64_t from, int64_t bytes, int64_t stream, bool sync) {
        guarded([&] {
          const DeviceScope scope(model->device());
          void* const on = reinterpret_cast<void*>(stream);
          if (bytes > 0) model->device().copy_on(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), static_cast<size_t>(bytes), on);
          if (sync) model->device().sync(on);
        });
      });
    }
    if (name == "empty") {
      return ffi::Function::FromTyped([models](int device, DLDataType dtype, const ffi::Shape& shape) {
        return guarded([&] {
          Model& on = models->on(device);
          return ffi::Tensor::FromNDAlloc(TensorMemory{models, &on}, shape, dtype, on.device().dl());
        });
      });
    }
    return std::nullopt;
  }

 private:
  /// run(stream, sync, graph, num_inputs, inputs..., outputs...) -> Shape. A stream of -1 is the current stream of the framework.
  static ffi::Function run_function(Models models) {
    return ffi::Function::FromPacked([models = std::move(models)](ffi::PackedArgs args, ffi::Any* result) {
      guarded([&] {
        *result = run_with(*models, args, 0, RunOptions{});
      });
    });
  }

  /// run_in(workspace, bytes, and what run takes) -> Shape
  static ffi::Function run_in_function(Models models) {
    return ffi::Function::FromPacked([models = std::move(models)](ffi::PackedArgs args, ffi::Any* result) {
      guarded([&] {
        RunOptions options;
        options.workspace = reinterpret_cast<void*>(args[0].cast<int64_t>());
        options.workspace_bytes = static_cast<size_t>(args[1].cast<int64_t>());
        *result = run_with(*models, args, 2, options);
      });
    });
  }

  static ffi::Shape run_with(DeviceModels& models, const ffi::PackedArgs& args, int first, RunOptions options) {
    const auto stream = args[first].cast<int64_t>();
    options.sync = args[first + 1].cast<bool>();
    options.graph = args[first + 2].cast<bool>();
    const auto num_inputs = args[first + 3].cast<int>();
    first += 4;
    if (num_inputs < 0 || first + num_inputs > args.size()) fail(ErrorKind::kInput, "run got too few tensors");
    const TensorArguments inputs(args, first, first + num_inputs);
    const TensorArguments outputs(args, first + num_inputs, args.size());
    Model& model = models.of(inputs.tensors(), outputs.tensors());
    const DLDevice device = model.device().dl();
    options.stream = stream == -1 ? TVMFFIEnvGetStream(device.device_type, device.device_id) : reinterpret_cast<void*>(stream);
    return to_shape(model.run(inputs.tensors(), outputs.tensors(), options));
  }

  /// run_whole(stream, sync, graph, inputs..., outputs...): `run` of as many tensors as the model has. Returns nothing if each output has
  /// the shape of its buffer, which costs the caller less, else the shapes.
  static ffi::Function run_whole_function(Models models) {
    return ffi::Function::FromPacked([models = std::move(models)](ffi::PackedArgs args, ffi::Any* result) {
      guarded([&] {
        constexpr int kFirst = 3;
        const int outputs_from = kFirst + models->first().table().num_inputs;
        if (outputs_from > args.size()) fail(ErrorKind::kInput, "run got too few tensors");
        RunOptions options;
        options.stream = reinterpret_cast<void*>(args[0].cast<int64_t>());
        options.sync = args[1].cast<bool>();
        options.graph = args[2].cast<bool>();
        const TensorArguments inputs(args, kFirst, outputs_from), outputs(args, outputs_from, args.size());
        const std::vector<int64_t> shapes = models->of(inputs.tensors(), outputs.tensors()).run(inputs.tensors(), outputs.tensors(), options);
        const int64_t* shape = shapes.data();
        for (const DLTensor* output : outputs.tensors()) {
          if (!std::equal(output->shape, output->shape + output->ndim, shape)) {
            *result = to_shape(shapes);
            return;
          }
          shape += output->ndim;
        }
      });
    });
  }

  /// run_and_return(stream, sync, graph, inputs...) -> the outputs, in the framework of the inputs, one or an array
  static ffi::Function run_and_return_function(Models models) {
    return ffi::Function::FromPacked([models = std::move(models)](ffi::PackedArgs args, ffi::Any* result) {
      guarded([&] {
        constexpr int kFirst = 3;
        RunOptions options;
        options.stream = reinterpret_cast<void*>(args[0].cast<int64_t>());
        options.sync = args[1].cast<bool>();
        options.graph = args[2].cast<bool>();
        const TensorArguments inputs(args, kFirst, args.size());
        Model& model = models->of(inputs.tensors(), {});
        *result = run_and_return(model, TensorMemory{models, &model}, inputs.tensors(), options);
      });
    });
  }

  /// launch_in(stream, arena, bytes, dims, num_inputs, addresses of the inputs..., addresses of the outputs...)
  static ffi::Function launch_in_function(std::shared_ptr<Model> model) {
    return ffi::Function::FromPacked([model = std::move(model)](ffi::PackedArgs args, ffi::Any*) {
      guarded([&] {
        const auto address = [&](int i) { return reinterpret_cast<void*>(args[i].cast<int64_t>()); };
        const auto num_inputs = args[4].cast<int>();
        constexpr int kFirst = 5;
        if (num_inputs < 0 || kFirst + num_inputs > args.size()) fail(ErrorKind::kInput, "a launch got too few tensors");
        std::vector<const void*> inputs;
        std::vector<void*> outputs;
        for (int i = kFirst; i < kFirst + num_inputs; ++i) inputs.push_back(address(i));
        for (int i = kFirst + num_inputs; i < args.size(); ++i) outputs.push_back(address(i));
        model->launch_in(to_vector(args[3].cast<ffi::Shape>()), std::move(inputs), std::move(outputs), address(1),
                         static_cast<size_t>(args[2].cast<int64_t>()), address(0));
      });
    });
  }

  /// benchmark(stream, graph, count, repeat, threads, stream_each, num_inputs, inputs..., outputs...) -> milliseconds per run, a batch each
  static ffi::Function benchmark_function(Models models) {
    return ffi::Function::FromPacked([models = std::move(models)](ffi::PackedArgs args, ffi::Any* result) {
      guarded([&] {
        constexpr int kFirst = 7;
        BenchmarkOptions options;
        options.run.stream = reinterpret_cast<void*>(args[0].cast<int64_t>());
        options.run.graph = args[1].cast<bool>();
        options.count = args[2].cast<int>();
        options.repeat = args[3].cast<int>();
        options.threads = args[4].cast<int>();
        options.stream_each = args[5].cast<bool>();
        const int outputs_from = kFirst + args[6].cast<int>();
        const TensorArguments inputs(args, kFirst, outputs_from), outputs(args, outputs_from, args.size());
        ffi::Array<double> times;
        for (const double time : benchmark(models->of(inputs.tensors(), outputs.tensors()), inputs.tensors(), outputs.tensors(), options)) times.push_back(time);
        *result = times;
      });
    });
  }

  /// profile(stream, iterations, num_inputs, inputs..., outputs...) -> iteration, launch, begin and duration in microseconds, of each launch
  static ffi::Function profile_function(Models models) {
    return ffi::Function::FromPacked([models = std::move(models)](ffi::PackedArgs args, ffi::Any* result) {
      guarded([&] {
        constexpr int kFirst = 3;
        RunOptions options;
        options.stream = reinterpret_cast<void*>(args[0].cast<int64_t>());
        const int outputs_from = kFirst + args[2].cast<int>();
        const TensorArguments inputs(args, kFirst, outputs_from), outputs(args, outputs_from, args.size());
        ffi::Array<double> times;
        for (const LaunchTime& time : profile(models->of(inputs.tensors(), outputs.tensors()), inputs.tensors(), outputs.tensors(), options, args[1].cast<int>())) {
          for (const double number : {double(time.iteration), double(time.launch), time.begin, time.duration}) times.push_back(number);
        }
        *result = times;
      });
    });
  }

  /// inspect(stream, num_inputs, inputs..., outputs...) -> the Shape of run, and eight numbers for each result of each launch
  static ffi::Function inspect_function(Models models) {
    return ffi::Function::FromPacked([models = std::move(models)](ffi::PackedArgs args, ffi::Any* result) {
      guarded([&] {
        constexpr int kFirst = 2;
        RunOptions options;
        options.stream = reinterpret_cast<void*>(args[0].cast<int64_t>());
        const int outputs_from = kFirst + args[1].cast<int>();
        const TensorArguments inputs(args, kFirst, outputs_from), outputs(args, outputs_from, args.size());
        std::vector<ResultValues> values;
        ffi::Shape shapes = to_shape(inspect(models->of(inputs.tensors(), outputs.tensors()), inputs.tensors(), outputs.tensors(), options, values));
        ffi::Array<double> numbers;
        for (const ResultValues& v : values) {
          for (const double number : {double(v.launch), double(v.result), double(v.elements), double(v.nans), double(v.infinities), v.lowest,
                                      v.highest, v.mean}) {
            numbers.push_back(number);
          }
        }
        *result = ffi::Array<ffi::Any>{shapes, numbers};
      });
    });
  }

  /// infer(inputs...), infer_strides(inputs...) -> Shape
  static ffi::Function infer_function(Models models, std::vector<int64_t> (Shapes::*part)() const) {
    return ffi::Function::FromPacked([models = std::move(models), part](ffi::PackedArgs args, ffi::Any* result) {
      guarded([&] {
        const TensorArguments inputs(args, 0, args.size());
        *result = to_shape((models->of(inputs.tensors(), {}).infer(inputs.tensors()).*part)());
      });
    });
  }

  /// set_constants(spare, bind, stream, names, tensors...)
  static ffi::Function set_constants_function(Models models) {
    return ffi::Function::FromPacked([models = std::move(models)](ffi::PackedArgs args, ffi::Any*) {
      guarded([&] {
        constexpr int kFirst = 4;
        const SetOptions options{args[0].cast<bool>(), args[1].cast<bool>(), reinterpret_cast<void*>(args[2].cast<int64_t>())};
        const std::vector<std::string> names = to_strings(args[3].cast<ffi::Array<ffi::String>>());
        const TensorArguments values(args, kFirst, args.size());
        if (values.tensors().size() != names.size()) fail(ErrorKind::kInput, names.size(), " names and ", values.tensors().size(), " values of constants");
        models->set_constants(names, values.tensors(), options);
      });
    });
  }

  static ffi::Function shapes_function(std::shared_ptr<Model> model, std::vector<int64_t> (Shapes::*part)() const) {
    return ffi::Function::FromTyped([model = std::move(model), part](const ffi::Shape& dims) {
      return guarded([&] { return to_shape((model->shapes_of_dims(to_vector(dims)).*part)()); });
    });
  }

  Models models_;
};

ffi::Module create(const ffi::String& library, int num_runtimes, int device, bool is_fixed, bool lends) {
  return guarded([&] { return ffi::Module(ffi::make_object<ModelModule>(std::string(library), num_runtimes, device, is_fixed, lends)); });
}

/// The last cache of a device, in bytes.
int64_t cache_bytes(int device) {
  return guarded([&] {
    const auto opened = make_device(device);
    const DeviceScope scope(*opened);
    return static_cast<int64_t>(opened->cache_bytes());
  });
}

/// Says where a library ("cublaslt", "cudnn", ...) may be. Called before the first model is made.
/// The address of a `RanksLink` of another runtime library.
void use_ranks_link(int64_t address) { set_ranks_link(reinterpret_cast<const RanksLink*>(address)); }

void configure(const ffi::String& library, const ffi::Array<ffi::String>& places) {
  set_library_candidates(std::string(library), to_strings(places));
}

/// Says where the file of a kernel library is, by its SHA-256.
void kernel_library(const ffi::String& sha256, const ffi::String& path) { add_kernel_library(std::string(sha256), std::string(path)); }

bool has_constants(const ffi::String& device, const ffi::String& key) {
  return Constants::is_published(std::string(device), std::string(key));
}

/// "amx 1", "gemm 2" ...
ffi::Array<ffi::String> service_names() {
  ffi::Array<ffi::String> names;
  for (const Service& service : device_services()) names.push_back(service.name + std::string(" ") + std::to_string(service.version));
  return names;
}

const ait_amx_service_v1* amx() { return static_cast<const ait_amx_service_v1*>(find_service("amx", 1)); }
bool may_use_amx() { return amx() != nullptr && amx()->may_use() != 0; }
bool set_amx(bool wanted) { return amx() != nullptr && amx()->set_wanted(wanted) != 0; }

}  // namespace
}  // namespace ait::runtime

TVM_FFI_DLL_EXPORT_TYPED_FUNC(create, ait::runtime::create);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(configure, ait::runtime::configure);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(use_ranks_link, ait::runtime::use_ranks_link);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(add_kernel_library, ait::runtime::kernel_library);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(has_constants, ait::runtime::has_constants);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(services, ait::runtime::service_names);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(num_threads, ait::runtime::num_threads);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(may_use_amx, ait::runtime::may_use_amx);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(set_amx, ait::runtime::set_amx);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(cache_bytes, ait::runtime::cache_bytes);
