/// @file model.h
/// @brief Runs compiled models (`NAME.ait`) from C and C++, without Python.
///
/// `ait runtime --target cpu` builds the library behind this header and prints the folder with it, with this header, and with files for CMake
/// (`find_package(ait)`, target `ait::cpu`) and pkg-config (`ait-cpu`). The C++ classes below are inline code over the C interface.
///
/// The C interface is stable. A later version has more functions, and more members at the end of the structs that begin with `size`, which the
/// caller sets to sizeof; `ait_tensor` and `ait_allocator` never change. `AIT_API_VERSION` rises. A program runs with the library of its own
/// version or of a later one; an earlier one is refused when a model is loaded.
///
/// All functions may be called from several threads. Those that can fail return a status; `ait_last_error` has the message.
#ifndef AIT_MODEL_H_
#define AIT_MODEL_H_

#include <stddef.h>
#include <stdint.h>

#include "ait/model_abi.h"

#define AIT_API_VERSION 2

#if defined(__GNUC__)
#define AIT_API __attribute__((visibility("default")))
#else
#define AIT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ait_model ait_model;  ///< a loaded model

typedef enum ait_status {
  AIT_OK = 0,
  AIT_INPUT_ERROR = 1,     ///< an argument is wrong; nothing was launched
  AIT_ARTIFACT_ERROR = 2,  ///< the file is damaged or not for this machine
  AIT_MEMORY_ERROR = 3,    ///< not enough memory
  AIT_RUN_ERROR = 4        ///< the model or the device failed
} ait_status;

/// A tensor of the caller's. An input or output is on the model's device; the value of a constant may be on the host, too.
typedef struct ait_tensor {
  void* data;
  int32_t dtype;           ///< an `ait_dtype`
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides;  ///< in elements; null: row-major. Other strides than those of `ait_model_v1::strides` cost a copy
  int32_t on_host;         ///< of a constant of a model on a GPU: its value is in host memory
} ait_tensor;

/// Memory of the caller's for constants and for the scratch memory of runs, on the model's device. Several threads may call it at the same time.
typedef struct ait_allocator {
  size_t size;             ///< sizeof(ait_allocator)
  void* self;              ///< passed to the functions
  void* (*allocate)(void* self, size_t bytes);  ///< null: there is no memory
  void (*release)(void* self, void* data, size_t bytes);
} ait_allocator;

typedef struct ait_load_options {
  size_t size;             ///< sizeof(ait_load_options)
  int32_t num_runtimes;    ///< runs at the same time, at most AIT_MAX_RUNTIMES; 0: 1
  int32_t device;          ///< number of the GPU
  int32_t skip_weights;    ///< do not check the hash of the weights
  int32_t unused;
  int32_t api_version;     ///< the AIT_API_VERSION of the caller, which the library compares with its own; 0: it does not
  int32_t unused_too;
  const ait_allocator* allocator;  ///< null: the device's memory, and models of one file share their constants
} ait_load_options;

typedef struct ait_run_options {
  size_t size;             ///< sizeof(ait_run_options)
  void* stream;            ///< cudaStream_t or hipStream_t; null: the default stream
  int32_t no_wait;         ///< return when all is launched; the tensors must live until the stream is done
  int32_t graph;           ///< launch the run as one recorded graph; refused on the CPU
} ait_run_options;

typedef struct ait_model_info {
  size_t size;             ///< sizeof(ait_model_info)
  const char* name;
  const char* target;      ///< "cpu", "cuda" or "rocm"
  int32_t num_inputs, num_outputs, num_dims, num_constants;
  int32_t num_runtimes;    ///< runs that may be under way at the same time
  int64_t bytes;           ///< of constants and scratch memory that the model holds now; the first of the models that share constants holds them
} ait_model_info;

typedef struct ait_tensor_info {
  size_t size;             ///< sizeof(ait_tensor_info)
  const char* name;
  int32_t dtype;           ///< an `ait_dtype`
  int32_t rank;
  int32_t in_place_of;     ///< of an output: the index of the input whose memory a run updates, so that both have one address; else -1
} ait_tensor_info;

typedef enum ait_dim_kind {
  AIT_DIM_OF_INPUTS = 0,   ///< the shapes of the inputs of a run give it
  AIT_DIM_OF_RUN = 1,      ///< the run finds it: at most its value in `ait_model_shapes`
  AIT_DIM_OF_CALLER = 2    ///< the caller of a kernel gives it
} ait_dim_kind;

typedef struct ait_dim_info {
  size_t size;             ///< sizeof(ait_dim_info)
  const char* name;
  int64_t lo, hi;          ///< the range of its values
  int32_t kind;            ///< an `ait_dim_kind`
} ait_dim_info;

typedef struct ait_constant_info {
  size_t size;             ///< sizeof(ait_constant_info)
  const char* name;
  int32_t dtype;           ///< an `ait_dtype`
  int32_t rank;
  const int64_t* shape;    ///< lives as long as the model
  int32_t is_bound;        ///< the file has its value
  int32_t is_set;          ///< it has a value now: a run needs all of them
} ait_constant_info;

/// The version of the library, an `AIT_API_VERSION`.
AIT_API int32_t ait_api_version(void);
/// "cpu", "cuda" or "rocm": the target of the models that this library runs.
AIT_API const char* ait_target(void);
/// The message of the last call of this thread that failed; valid until the next one.
AIT_API const char* ait_last_error(void);

/// Loads an artifact with its weights. `options` may be null.
AIT_API ait_status ait_model_load(const char* path, const ait_load_options* options, ait_model** model);
/// Loads an artifact that lies in memory, which may be freed afterwards.
AIT_API ait_status ait_model_load_memory(const void* data, size_t size, const ait_load_options* options, ait_model** model);
/// Frees a model that is not running; null is allowed.
AIT_API void ait_model_free(ait_model* model);

/// What a model is. The caller sets `size` of the answer; names live as long as the model.
AIT_API ait_status ait_model_about(const ait_model* model, ait_model_info* info);
/// Input, output, dim or constant number `index`, from 0 on.
AIT_API ait_status ait_model_input(const ait_model* model, int32_t index, ait_tensor_info* info);
AIT_API ait_status ait_model_output(const ait_model* model, int32_t index, ait_tensor_info* info);
AIT_API ait_status ait_model_dim(const ait_model* model, int32_t index, ait_dim_info* info);
AIT_API ait_status ait_model_constant(const ait_model* model, int32_t index, ait_constant_info* info);
/// Writes the shapes of all inputs, then of all outputs, one after another, for these values of all dims. The values of dims that a run finds
/// are ignored, and count as the largest that they may be.
AIT_API ait_status ait_model_shapes(const ait_model* model, const int64_t* dims, int32_t num_dims, int64_t* shapes);

/// The table of the model's library, of version AIT_MODEL_ABI_VERSION of the library, which may not be that of this header: check
/// `version` before anything else. It lives as long as the model. Null for a null model.
AIT_API const ait_model_v1* ait_model_table(const ait_model* model);
/// Writes the largest shapes of all outputs, one after another: as many numbers as the ranks of the outputs together.
AIT_API void ait_model_maximum_shapes(const ait_model* model, int64_t* shapes);

/// Checks the inputs as a run does, and writes the shapes of all outputs, one after another.
AIT_API ait_status ait_model_infer(ait_model* model, const ait_tensor* inputs, int32_t num_inputs, int64_t* shapes);
/// Runs the model on `inputs`, into `outputs`, which may be larger than needed in any dim; their actual shapes are written to `shapes`,
/// unless it is null. Without `options` it waits for the run.
AIT_API ait_status ait_model_run(ait_model* model, const ait_tensor* inputs, int32_t num_inputs, const ait_tensor* outputs, int32_t num_outputs,
                                 const ait_run_options* options, int64_t* shapes);
/// Waits for the runs on a stream.
AIT_API ait_status ait_model_sync(ait_model* model, void* stream);

/// Copies the value of a constant to the device; waits for current runs. With `spare` not 0 it becomes visible at the next swap.
AIT_API ait_status ait_model_set_constant(ait_model* model, const char* name, const ait_tensor* value, int32_t spare);
/// Runs that begin after it read the constants that were set as `spare`.
AIT_API ait_status ait_model_swap_constants(ait_model* model);

/// Memory on the model's device, aligned to 256 bytes.
AIT_API ait_status ait_model_allocate(ait_model* model, size_t bytes, void** data);
AIT_API void ait_model_release(ait_model* model, void* data);
/// Copies between host and device in any direction, and waits for it.
AIT_API ait_status ait_model_copy(ait_model* model, void* to, const void* from, size_t bytes);

#ifdef __cplusplus
}  // extern "C"

#if defined(__GLIBC__) && defined(_GNU_SOURCE)
#include <dlfcn.h>
#endif

#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ait {

/// @brief A call that failed.
class ModelError : public std::runtime_error {
 public:
  ModelError(ait_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  ait_status status() const { return status_; }

 private:
  ait_status status_;
};

using Shape = std::vector<int64_t>;

namespace detail {

inline void check(ait_status status) {
  if (status != AIT_OK) throw ModelError(status, ait_last_error());
}

/// The file of the library, or of the program that it is linked into.
inline std::string library_file() {
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
  Dl_info about{};
  if (dladdr(ait_target(), &about) != 0 && about.dli_fname != nullptr) {
    const std::unique_ptr<char, void (*)(void*)> real(realpath(about.dli_fname, nullptr), std::free);
    return real == nullptr ? about.dli_fname : real.get();
  }
#endif
  return "the ait library";
}

/// Refuses a library that is older than this header.
inline void check_version(int32_t wanted = AIT_API_VERSION) {
  if (const int32_t found = ait_api_version(); found < wanted) {
    throw ModelError(AIT_ARTIFACT_ERROR, library_file() + " has API version " + std::to_string(found) +
                                             ", but this program was compiled with the header of version " + std::to_string(wanted) +
                                             ": install that library with `ait runtime`, or compile the program with the header beside this one");
  }
}

template <class T>
constexpr bool is_half = false;
#if defined(__FLT16_MAX__)
template <>
inline constexpr bool is_half<_Float16> = true;
#endif

/// The `ait_dtype` of a C++ type; -1 where there is none.
template <class T>
constexpr int32_t dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return AIT_BOOL;
  if constexpr (std::is_same_v<T, float>) return AIT_F32;
  if constexpr (std::is_same_v<T, double>) return AIT_F64;
  if constexpr (is_half<T>) return AIT_F16;
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return sizeof(T) == 1 ? AIT_I8 : sizeof(T) == 2 ? AIT_I16 : sizeof(T) == 4 ? AIT_I32 : sizeof(T) == 8 ? AIT_I64 : -1;
  }
  return std::is_same_v<T, unsigned char> ? AIT_UI8 : -1;
}

/// A struct that the library fills in.
template <class Info, class Function, class... Arguments>
Info ask(Function function, Arguments... arguments) {
  Info info{};
  info.size = sizeof info;
  check(function(arguments..., &info));
  return info;
}

}  // namespace detail

/// @brief A tensor in memory of the caller's, row-major unless it has strides.
struct TensorView {
  /// `element` is an `ait_dtype`; `steps` are strides in elements; none: the tensor is row-major.
  template <class Dtype, std::enable_if_t<std::is_same_v<Dtype, int32_t> || std::is_same_v<Dtype, ait_dtype>, int> = 0>
  TensorView(void* address, Dtype element, Shape extents, Shape steps = {})
      : data(address), dtype(static_cast<int32_t>(element)), shape(std::move(extents)), strides(std::move(steps)) {
    if (!strides.empty() && strides.size() != shape.size()) {
      throw ModelError(AIT_INPUT_ERROR, "a tensor has " + std::to_string(shape.size()) + " dims and " + std::to_string(strides.size()) +
                                            " strides: give one for each dim, or none");
    }
  }
  /// A tensor of C++ numbers, `_Float16` and `long long` among them; bf16 has no C++ type and uses the constructor above.
  template <class T>
  TensorView(T* address, Shape extents, Shape steps = {})
      : TensorView(const_cast<void*>(static_cast<const void*>(address)), detail::dtype_of<std::remove_const_t<T>>(), std::move(extents),
                   std::move(steps)) {
    static_assert(detail::dtype_of<std::remove_const_t<T>>() >= 0, "models have no tensors of this type: name the dtype, an ait_dtype");
  }

  void* data;
  int32_t dtype;
  Shape shape, strides;
  bool on_host = false;

  ait_tensor c() const {
    return {data, dtype, static_cast<int32_t>(shape.size()), shape.data(), strides.empty() ? nullptr : strides.data(), on_host ? 1 : 0};
  }
};

/// @brief An input or output.
struct TensorInfo {
  std::string name;
  int32_t dtype, rank;
  int32_t in_place_of;  ///< of an output: the index of the input whose memory a run updates: pass that memory for both; else -1
};

/// @brief A named dim and the range of its values.
struct DimInfo {
  std::string name;
  int64_t lo, hi;
  int32_t kind;  ///< an `ait_dim_kind`
};

/// @brief A constant.
struct ConstantInfo {
  std::string name;
  int32_t dtype;
  Shape shape;
  bool is_bound;  ///< the file has its value
  bool is_set;    ///< it has a value now
};

/// @brief Values of dims by name.
using Dims = std::map<std::string, int64_t>;

/// @brief How a model is loaded.
struct LoadOptions {
  int num_runtimes = 1;  ///< runs at the same time, at most AIT_MAX_RUNTIMES
  int device = 0;        ///< number of the GPU
  bool verify_weights = true;
  const ait_allocator* allocator = nullptr;  ///< where memory comes from; null: the device

  ait_load_options c() const {
    ait_load_options options{};
    options.size = sizeof options;
    options.num_runtimes = num_runtimes;
    options.device = device;
    options.skip_weights = verify_weights ? 0 : 1;
    options.api_version = AIT_API_VERSION;
    options.allocator = allocator;
    return options;
  }
};

/// @brief A compiled model. Its methods throw a `ModelError` where the C functions return a status. Models of one file that are loaded with
/// the same library share their constants, until one of them sets its own.
class Model {
 public:
  explicit Model(const std::string& path, int num_runtimes = 1, int device = 0, bool verify_weights = true)
      : Model(path, LoadOptions{num_runtimes, device, verify_weights, nullptr}) {}
  Model(const std::string& path, const LoadOptions& given) {
    load(given, [&](const ait_load_options* options, ait_model** model) { return ait_model_load(path.c_str(), options, model); });
  }
  /// A model from an artifact that lies in memory, which may be freed afterwards.
  static Model from_memory(const void* data, size_t size, const LoadOptions& given = {}) {
    Model made;
    made.load(given, [&](const ait_load_options* options, ait_model** model) { return ait_model_load_memory(data, size, options, model); });
    return made;
  }

  std::string name() const { return about().name; }
  /// Bytes of constants and scratch memory that the model holds now.
  int64_t bytes() const { return about().bytes; }
  const std::vector<TensorInfo>& inputs() const { return get(), inputs_; }
  const std::vector<TensorInfo>& outputs() const { return get(), outputs_; }
  std::vector<std::string> input_names() const { return names(inputs()); }
  std::vector<std::string> output_names() const { return names(outputs()); }
  std::vector<DimInfo> dims() const {
    std::vector<DimInfo> found;
    for (int32_t i = 0; i < about().num_dims; ++i) {
      const auto dim = detail::ask<ait_dim_info>(ait_model_dim, get(), i);
      found.push_back({dim.name, dim.lo, dim.hi, dim.kind});
    }
    return found;
  }
  std::vector<ConstantInfo> constants() const {
    std::vector<ConstantInfo> found;
    for (int32_t i = 0; i < about().num_constants; ++i) {
      const auto c = detail::ask<ait_constant_info>(ait_model_constant, get(), i);
      found.push_back({c.name, c.dtype, Shape(c.shape, c.shape + c.rank), c.is_bound != 0, c.is_set != 0});
    }
    return found;
  }
  /// The constants without a value: set them before the first run.
  std::vector<std::string> unset_constants() const {
    std::vector<std::string> found;
    for (const ConstantInfo& constant : constants()) {
      if (!constant.is_set) found.push_back(constant.name);
    }
    return found;
  }
  /// The table of the model's library.
  const ait_model_v1& table() const {
    const ait_model_v1& found = *ait_model_table(get());
    if (found.version == AIT_MODEL_ABI_VERSION) return found;
    throw ModelError(AIT_ARTIFACT_ERROR, detail::library_file() + " has tables of version " + std::to_string(found.version) +
                                             ", this program knows version " + std::to_string(AIT_MODEL_ABI_VERSION));
  }

  /// The shapes of the inputs, or outputs, for these values of the dims. Each dim that the inputs give is named.
  std::vector<Shape> input_shapes(const Dims& dims) const { return shapes_for(dims).first; }
  std::vector<Shape> output_shapes(const Dims& dims) const { return shapes_for(dims).second; }

  /// The largest shape of each output.
  std::vector<Shape> maximum_shapes() const {
    const std::vector<TensorInfo>& outs = outputs();
    Shape flat = room(outs);
    ait_model_maximum_shapes(get(), flat.data());
    return split(flat, outs);
  }

  /// The shapes of the outputs for these inputs.
  std::vector<Shape> infer(const std::vector<TensorView>& inputs) {
    const std::vector<ait_tensor> given = plain(inputs);
    const std::vector<TensorInfo>& outs = outputs();
    Shape flat = room(outs);
    detail::check(ait_model_infer(get(), given.data(), static_cast<int32_t>(given.size()), flat.data()));
    return split(flat, outs);
  }

  /// Runs the model and waits for it, or with `no_wait` returns when all is launched. Returns the shapes of the outputs.
  std::vector<Shape> run(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs, void* stream = nullptr, bool wait = true,
                         bool graph = false) {
    const std::vector<ait_tensor> ins = plain(inputs), outs = plain(outputs);
    const ait_run_options options{sizeof(ait_run_options), stream, wait ? 0 : 1, graph ? 1 : 0};
    const std::vector<TensorInfo>& infos = this->outputs();
    Shape flat = room(infos);
    detail::check(ait_model_run(get(), ins.data(), static_cast<int32_t>(ins.size()), outs.data(), static_cast<int32_t>(outs.size()),
                                &options, flat.data()));
    return split(flat, infos);
  }

  void sync(void* stream = nullptr) { detail::check(ait_model_sync(get(), stream)); }
  void set_constant(const std::string& name, const TensorView& value) { set(name, value, 0); }
  void set_double_buffer_constant(const std::string& name, const TensorView& value) { set(name, value, 1); }
  void swap_constants() { detail::check(ait_model_swap_constants(get())); }
  /// The model of the C interface. Throws a `ModelError` if this one was moved.
  ait_model* get() const {
    if (model_ == nullptr) throw ModelError(AIT_INPUT_ERROR, "this ait::Model is empty, because it was moved: use the one that it was moved to");
    return model_.get();
  }

 private:
  struct Free {
    void operator()(ait_model* model) const { ait_model_free(model); }
  };

  Model() = default;

  template <class Load>
  void load(const LoadOptions& given, Load&& function) {
    detail::check_version();
    const ait_load_options options = given.c();
    ait_model* model = nullptr;
    detail::check(function(&options, &model));
    model_.reset(model);
    inputs_ = tensors(ait_model_input, about().num_inputs);
    outputs_ = tensors(ait_model_output, about().num_outputs);
  }
  ait_model_info about() const { return detail::ask<ait_model_info>(ait_model_about, get()); }
  template <class Function>
  std::vector<TensorInfo> tensors(Function function, int32_t count) const {
    std::vector<TensorInfo> found;
    for (int32_t i = 0; i < count; ++i) {
      const auto tensor = detail::ask<ait_tensor_info>(function, get(), i);
      found.push_back({tensor.name, tensor.dtype, tensor.rank, tensor.in_place_of});
    }
    return found;
  }
  static std::vector<std::string> names(const std::vector<TensorInfo>& tensors) {
    std::vector<std::string> found;
    for (const TensorInfo& tensor : tensors) found.push_back(tensor.name);
    return found;
  }
  static std::vector<ait_tensor> plain(const std::vector<TensorView>& tensors) {
    std::vector<ait_tensor> found;
    for (const TensorView& tensor : tensors) found.push_back(tensor.c());
    return found;
  }
  void set(const std::string& name, const TensorView& value, int32_t spare) {
    const ait_tensor tensor = value.c();
    detail::check(ait_model_set_constant(get(), name.c_str(), &tensor, spare));
  }
  std::pair<std::vector<Shape>, std::vector<Shape>> shapes_for(const Dims& given) const {
    Shape values;
    for (const DimInfo& dim : dims()) {
      const auto found = given.find(dim.name);
      if (found == given.end() && dim.kind != AIT_DIM_OF_RUN) throw ModelError(AIT_INPUT_ERROR, "dim '" + dim.name + "' has no value");
      values.push_back(found == given.end() ? dim.lo : found->second);
    }
    for (const auto& [name, value] : given) {
      (void)value;
      if (!has_dim(name)) throw ModelError(AIT_INPUT_ERROR, "the model has no dim '" + name + "'");
    }
    const std::vector<TensorInfo>&ins = inputs(), &outs = outputs();
    Shape flat = room(ins);
    flat.resize(flat.size() + room(outs).size());
    detail::check(ait_model_shapes(get(), values.data(), static_cast<int32_t>(values.size()), flat.data()));
    const auto middle = flat.begin() + static_cast<std::ptrdiff_t>(room(ins).size());
    return {split(Shape(flat.begin(), middle), ins), split(Shape(middle, flat.end()), outs)};
  }
  bool has_dim(const std::string& name) const {
    for (const DimInfo& dim : dims()) {
      if (dim.name == name) return true;
    }
    return false;
  }
  static Shape room(const std::vector<TensorInfo>& tensors) {
    size_t count = 0;
    for (const TensorInfo& tensor : tensors) count += static_cast<size_t>(tensor.rank);
    return Shape(count);
  }
  static std::vector<Shape> split(const Shape& flat, const std::vector<TensorInfo>& tensors) {
    std::vector<Shape> shapes;
    auto begin = flat.begin();
    for (const TensorInfo& tensor : tensors) {
      shapes.emplace_back(begin, begin + tensor.rank);
      begin += tensor.rank;
    }
    return shapes;
  }

  std::unique_ptr<ait_model, Free> model_;
  std::vector<TensorInfo> inputs_, outputs_;
};

}  // namespace ait
#endif  // __cplusplus
#endif  // AIT_MODEL_H_
