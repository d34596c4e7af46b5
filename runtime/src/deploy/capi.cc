/// @file capi.cc
/// @brief The C interface of `ait/model.h`.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
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
using ait::runtime::Lender;
using ait::runtime::StoredConstants;

struct ait_model {
  ait_model(const std::string& library, int num_runtimes, int device, const Lender& memory) : model(library, num_runtimes, device, memory, memory) {}

  /// Whether the file has a value of a constant.
  bool is_stored(const char* name) const { return std::find(stored.begin(), stored.end(), name) != stored.end(); }

  ait::runtime::Model model;
  std::vector<std::string> stored;  ///< the constants whose values the file has
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

/// The file of this library, or of the program that it is linked into.
std::string own_file() {
  Dl_info about{};
  if (dladdr(ait::runtime::device_target(), &about) == 0 || about.dli_fname == nullptr) return "";
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(about.dli_fname, nullptr), &std::free);
  return real == nullptr ? about.dli_fname : real.get();
}

/// Libraries that were installed beside this one are found first.
void find_neighbours() {
  static std::once_flag once;
  std::call_once(once, [] {
    const std::string path = own_file();
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    ait::runtime::set_library_candidates("openblas", {folder + "libscipy_openblas.so", "libopenblas.so.0"});
  });
}

/// Memory of the caller's allocator; null where there is none.
Lender lender_of(const ait_allocator* given) {
  if (given == nullptr) return nullptr;
  const ait_allocator allocator = options_of(given);
  if (allocator.allocate == nullptr || allocator.release == nullptr) fail(ErrorKind::kInput, "the allocator has no function allocate or release");
  return [allocator](ait::runtime::Device& device, size_t bytes) {
    void* const data = allocator.allocate(allocator.self, bytes);
    if (data == nullptr) fail(ErrorKind::kMemory, "the allocator of the caller has no ", bytes, " bytes on ", device.name());
    return std::shared_ptr<void>(data, [allocator, bytes](void* lent) { allocator.release(allocator.self, lent, bytes); });
  };
}

/// Writes as much of `found` as the caller's header knows.
template <class Info>
void tell(Info* info, Info found) {
  expect(info, "the place of the answer");
  if (info->size < sizeof(size_t)) fail(ErrorKind::kInput, "the place of the answer has size ", info->size, ": set it to sizeof");
  found.size = info->size;
  std::memcpy(info, &found, std::min(info->size, sizeof found));
}

void check_index(const char* what, int32_t index, int32_t count) {
  if (index < 0 || index >= count) fail(ErrorKind::kInput, "there is no ", what, " ", index, ": the model has ", count);
}

void tell_tensor(const ait_model* model, const char* what, bool is_input, int32_t index, ait_tensor_info* info) {
  expect(model, "the model");
  const ait_model_v1& table = model->model.table();
  check_index(what, index, is_input ? table.num_inputs : table.num_outputs);
  const ait_tensor_v1& tensor = (is_input ? table.inputs : table.outputs)[index];
  tell(info, {0, tensor.name, tensor.dtype, tensor.rank, tensor.in_place_of - 1});
}

/// Takes the values of the file; null: those of a model of the same file, which has published them under `key`.
void load_constants(const Artifact& artifact, ait_model& made, const std::string& key, std::unique_ptr<StoredConstants> stored) {
  ait::runtime::Constants& constants = made.model.constants();
  const ait_model_v1& table = made.model.table();
  if (stored == nullptr && constants.adopt(key)) {
    const std::vector<std::string> missing = constants.missing(false);
    for (int32_t i = 0; i < table.num_constants; ++i) {
      const std::string name = table.constants[i].name;
      if (std::find(missing.begin(), missing.end(), name) == missing.end()) made.stored.push_back(name);
    }
    return;
  }
  if (stored == nullptr) stored = artifact.constants();
  for (const auto& constant : stored->all()) {
    const auto is_same = [&](const ait_constant_v1& c) { return constant.name == c.name; };
    if (std::none_of(table.constants, table.constants + table.num_constants, is_same)) continue;
    const ait_tensor value{const_cast<uint8_t*>(constant.data), constant.dtype, static_cast<int32_t>(constant.shape.size()),
                           constant.shape.data(), nullptr, 1};
    constants.set({constant.name}, DlTensors(&value, 1, "constant", made.model.device().dl()).tensors(), {});
    stored->release(constant);
    made.stored.push_back(constant.name);
  }
  if (!key.empty() && !made.stored.empty()) constants.publish(key);
}

std::unique_ptr<ait_model> load(const Artifact& artifact, const ait_load_options& options) {
  const std::string key = options.allocator == nullptr ? artifact.constants_key() : "";
  const std::string target = ait::runtime::device_target();
  const std::string device = target == "cpu" ? target : target + ":" + std::to_string(options.device);
  // All of the file is checked before any of its code is loaded.
  std::unique_ptr<StoredConstants> stored;
  if (!key.empty() && ait::runtime::Constants::is_published(device, key)) {
    artifact.check_constants();
  } else {
    stored = artifact.constants();
  }
  const std::string library = artifact.extract_library();
  std::unique_ptr<ait_model> made;
  try {
    const Lender memory = lender_of(options.allocator);
    made = std::make_unique<ait_model>(library, options.num_runtimes == 0 ? 1 : options.num_runtimes, options.device, memory);
  } catch (...) {
    unlink(library.c_str());
    throw;
  }
  unlink(library.c_str());
  load_constants(artifact, *made, key, std::move(stored));
  return made;
}

/// The options of a load. Throws an Error of kind kArtifact for a program that was compiled with the header of a later library.
ait_load_options checked(const ait_load_options* given) {
  const ait_load_options options = options_of(given);
  if (options.api_version > AIT_API_VERSION) {
    fail(ErrorKind::kArtifact, own_file(), " has API version ", AIT_API_VERSION, ", but this program was compiled with the header of version ",
         options.api_version, ": install that library with `ait runtime`, or compile the program with the header beside this one");
  }
  find_neighbours();
  return options;
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
    const ait_load_options options = checked(given);
    *model = load(Artifact(path, options.skip_weights == 0), options).release();
  });
}

ait_status ait_model_load_memory(const void* data, size_t size, const ait_load_options* given, ait_model** model) {
  return guarded([&] {
    expect(data, "the artifact in memory");
    expect(model, "the place of the model");
    *model = nullptr;
    const ait_load_options options = checked(given);
    *model = load(Artifact(data, size, options.skip_weights == 0), options).release();
  });
}

void ait_model_free(ait_model* model) { delete model; }

const ait_model_v1* ait_model_table(const ait_model* model) { return model == nullptr ? nullptr : &model->model.table(); }

void ait_model_maximum_shapes(const ait_model* model, int64_t* shapes) {
  if (model != nullptr) write_shapes(model->model.maximum_output_shapes(), shapes);
}

ait_status ait_model_about(const ait_model* model, ait_model_info* info) {
  return guarded([&] {
    expect(model, "the model");
    const ait_model_v1& t = model->model.table();
    tell(info, {0, t.name, t.target, t.num_inputs, t.num_outputs, t.num_dims, t.num_constants, model->model.num_runtimes(), model->model.stats().bytes});
  });
}

ait_status ait_model_input(const ait_model* model, int32_t index, ait_tensor_info* info) {
  return guarded([&] { tell_tensor(model, "input", true, index, info); });
}

ait_status ait_model_output(const ait_model* model, int32_t index, ait_tensor_info* info) {
  return guarded([&] { tell_tensor(model, "output", false, index, info); });
}

ait_status ait_model_dim(const ait_model* model, int32_t index, ait_dim_info* info) {
  return guarded([&] {
    expect(model, "the model");
    const ait_model_v1& table = model->model.table();
    check_index("dim", index, table.num_dims);
    const ait_dim_v1& dim = table.dims[index];
    tell(info, {0, dim.name, dim.lo, dim.hi, dim.input == AIT_BOUND ? AIT_DIM_OF_RUN : dim.input == AIT_GIVEN ? AIT_DIM_OF_CALLER : AIT_DIM_OF_INPUTS});
  });
}

ait_status ait_model_constant(const ait_model* model, int32_t index, ait_constant_info* info) {
  return guarded([&] {
    expect(model, "the model");
    const ait_model_v1& table = model->model.table();
    check_index("constant", index, table.num_constants);
    const ait_constant_v1& constant = table.constants[index];
    const std::vector<std::string> missing = model->model.constants().missing(false);
    const bool is_set = std::find(missing.begin(), missing.end(), constant.name) == missing.end();
    tell(info, {0, constant.name, constant.dtype, constant.rank, constant.shape, model->is_stored(constant.name) ? 1 : 0, is_set ? 1 : 0});
  });
}

ait_status ait_model_shapes(const ait_model* model, const int64_t* dims, int32_t num_dims, int64_t* shapes) {
  return guarded([&] {
    expect(model, "the model");
    if (num_dims < 0) fail(ErrorKind::kInput, "the number of dims is ", num_dims);
    if (num_dims > 0) expect(dims, "the list of dims");
    const ait::runtime::Shapes found = model->model.shapes_of_dims({dims, dims + num_dims});
    const std::vector<int64_t> inputs = found.inputs(), outputs = found.outputs();
    expect(shapes, "the place of the shapes");
    std::copy(outputs.begin(), outputs.end(), std::copy(inputs.begin(), inputs.end(), shapes));
  });
}

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
  if (model == nullptr || data == nullptr) return;
  (void)guarded([&] {
    const DeviceScope scope(model->model.device());
    model->model.device().release(data);
  });
}

ait_status ait_model_copy(ait_model* model, void* to, const void* from, size_t bytes) {
  return guarded([&] {
    expect(model, "the model");
    const DeviceScope scope(model->model.device());
    if (bytes > 0) model->model.device().copy(to, from, bytes);
  });
}

}  // extern "C"
