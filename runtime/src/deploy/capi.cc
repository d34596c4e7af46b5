/// @file capi.cc
/// @brief The C interface of `ait/model.h`.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "ait/model.h"
#include "deploy/artifact.h"
#include "dynamic_library.h"
#include "error.h"
#include "model.h"

using ait::runtime::Artifact;
using ait::runtime::DeviceScope;
using ait::runtime::Error;
using ait::runtime::ErrorKind;
using ait::runtime::fail;

struct ait_model {
  ait_model(const std::string& library, int num_runtimes, int device) : model(library, num_runtimes, device) {}
  ait::runtime::Model model;
};

namespace {

thread_local std::string last_error;

ait_status refused(ait_status status, const char* message) {
  last_error = message;
  return status;
}

template <class Body>
ait_status guarded(Body&& body) {
  try {
    body();
    return AIT_OK;
  } catch (const Error& error) {
    switch (error.kind()) {
      case ErrorKind::kInput: return refused(AIT_INPUT_ERROR, error.what());
      case ErrorKind::kArtifact: return refused(AIT_ARTIFACT_ERROR, error.what());
      case ErrorKind::kMemory: return refused(AIT_MEMORY_ERROR, error.what());
      default: return refused(AIT_RUN_ERROR, error.what());
    }
  } catch (const std::bad_alloc&) {
    return refused(AIT_MEMORY_ERROR, "out of host memory");
  } catch (const std::exception& error) {
    return refused(AIT_RUN_ERROR, error.what());
  }
}

template <class T>
void expect(const T* pointer, const char* what) {
  if (pointer == nullptr) fail(ErrorKind::kInput, what, " is null");
}

/// The options of a caller, who may have been compiled with an earlier header that has fewer of them.
template <class Options>
Options options_of(const Options* given) {
  Options options{};
  if (given != nullptr) std::memcpy(&options, given, std::min(given->size, sizeof options));
  return options;
}

/// The tensors of a call as DLPack has them.
class DlTensors {
 public:
  DlTensors(const ait_tensor* tensors, int32_t count, const char* role, DLDevice device) {
    if (count < 0) fail(ErrorKind::kInput, "the number of ", role, "s is ", count);
    if (count > 0) expect(tensors, role);
    for (int32_t i = 0; i < count; ++i) {
      const ait_tensor& t = tensors[i];
      if (t.rank < 0 || (t.rank > 0 && t.shape == nullptr)) fail(ErrorKind::kInput, role, " ", i, " has no shape");
      const DLDevice place = t.on_host != 0 ? DLDevice{kDLCPU, 0} : device;
      held_.push_back({t.data, place, t.rank, dtype_of(t.dtype, role, i), const_cast<int64_t*>(t.shape), const_cast<int64_t*>(t.strides), 0});
    }
    for (const DLTensor& tensor : held_) pointers_.push_back(&tensor);
  }
  const ait::runtime::Tensors& tensors() const { return pointers_; }

 private:
  static DLDataType dtype_of(int32_t dtype, const char* role, int32_t which) {
    if (dtype < 0 || dtype >= AIT_DTYPES) fail(ErrorKind::kInput, role, " ", which, " has the dtype ", dtype, ", which there is not");
    return ait::runtime::dl_dtype(dtype);
  }

  std::vector<DLTensor> held_;
  ait::runtime::Tensors pointers_;
};

/// Libraries that were installed beside this one are found first.
void find_neighbours() {
  static std::once_flag once;
  std::call_once(once, [] {
    Dl_info about{};
    if (dladdr(reinterpret_cast<const void*>(&ait_api_version), &about) == 0 || about.dli_fname == nullptr) return;
    const std::string path = about.dli_fname;
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    ait::runtime::set_library_candidates("openblas", {folder + "libscipy_openblas.so", "libopenblas.so.0"});
  });
}

void write_shapes(const std::vector<int64_t>& values, int64_t* shapes) {
  if (shapes != nullptr) std::copy(values.begin(), values.end(), shapes);
}

}  // namespace

extern "C" {

int32_t ait_api_version(void) { return AIT_API_VERSION; }
const char* ait_target(void) { return ait::runtime::device_target(); }
const char* ait_last_error(void) { return last_error.c_str(); }

ait_status ait_model_load(const char* path, const ait_load_options* given, ait_model** model) {
  return guarded([&] {
    expect(path, "the path");
    expect(model, "the place of the model");
    *model = nullptr;
    find_neighbours();
    const ait_load_options options = options_of(given);
    const Artifact artifact(path, options.skip_weights == 0);
    const std::string library = artifact.extract_library();
    std::unique_ptr<ait_model> made;
    try {
      made = std::make_unique<ait_model>(library, options.num_runtimes == 0 ? 1 : options.num_runtimes, options.device);
    } catch (...) {
      unlink(library.c_str());
      throw;
    }
    unlink(library.c_str());
    for (const auto& constant : artifact.constants()) {
      const ait_model_v1& table = made->model.table();
      const auto is_same = [&](const ait_constant_v1& c) { return constant.name == c.name; };
      if (std::none_of(table.constants, table.constants + table.num_constants, is_same)) continue;
      const ait_tensor value{const_cast<uint8_t*>(constant.data), constant.dtype, static_cast<int32_t>(constant.shape.size()),
                             constant.shape.data(), nullptr, 1};
      made->model.constants().set({constant.name}, DlTensors(&value, 1, "constant", made->model.device().dl()).tensors(), {});
      artifact.release(constant);
    }
    *model = made.release();
  });
}

void ait_model_free(ait_model* model) { delete model; }

const ait_model_v1* ait_model_table(const ait_model* model) { return &model->model.table(); }

void ait_model_maximum_shapes(const ait_model* model, int64_t* shapes) { write_shapes(model->model.maximum_output_shapes(), shapes); }

ait_status ait_model_infer(ait_model* model, const ait_tensor* inputs, int32_t num_inputs, int64_t* shapes) {
  return guarded([&] {
    expect(model, "the model");
    const DlTensors ins(inputs, num_inputs, "input", model->model.device().dl());
    write_shapes(model->model.infer(ins.tensors()).outputs(), shapes);
  });
}

ait_status ait_model_run(ait_model* model, const ait_tensor* inputs, int32_t num_inputs, const ait_tensor* outputs, int32_t num_outputs,
                         const ait_run_options* given, int64_t* shapes) {
  return guarded([&] {
    expect(model, "the model");
    const ait_run_options options = options_of(given);
    const DLDevice device = model->model.device().dl();
    const DlTensors ins(inputs, num_inputs, "input", device), outs(outputs, num_outputs, "output", device);
    ait::runtime::RunOptions run;
    run.stream = options.stream;
    run.sync = options.no_wait == 0;
    run.graph = options.graph != 0;
    write_shapes(model->model.run(ins.tensors(), outs.tensors(), run), shapes);
  });
}

ait_status ait_model_sync(ait_model* model, void* stream) {
  return guarded([&] {
    expect(model, "the model");
    model->model.sync(stream);
  });
}

ait_status ait_model_set_constant(ait_model* model, const char* name, const ait_tensor* value, int32_t spare) {
  return guarded([&] {
    expect(model, "the model");
    expect(name, "the name of the constant");
    const DlTensors values(value, 1, "constant", model->model.device().dl());
    ait::runtime::SetOptions options;
    options.spare = spare != 0;
    model->model.constants().set({name}, values.tensors(), options);
  });
}

ait_status ait_model_swap_constants(ait_model* model) {
  return guarded([&] {
    expect(model, "the model");
    model->model.constants().swap();
  });
}

ait_status ait_model_allocate(ait_model* model, size_t bytes, void** data) {
  return guarded([&] {
    expect(model, "the model");
    expect(data, "the place of the address");
    const DeviceScope scope(model->model.device());
    *data = bytes == 0 ? nullptr : model->model.device().allocate(bytes, "the caller");
  });
}

void ait_model_release(ait_model* model, void* data) {
  if (data == nullptr) return;
  const DeviceScope scope(model->model.device());
  model->model.device().release(data);
}

ait_status ait_model_copy(ait_model* model, void* to, const void* from, size_t bytes) {
  return guarded([&] {
    expect(model, "the model");
    const DeviceScope scope(model->model.device());
    if (bytes > 0) model->model.device().copy(to, from, bytes);
  });
}

}  // extern "C"
