/// @file model.h
/// @brief Runs compiled models (`NAME.ait`) from C and C++, without Python.
///
/// `ait runtime --target cpu` builds the library behind this header and prints the folder with it, with this header, and with files for CMake
/// (`find_package(ait)`, target `ait::cpu`) and pkg-config (`ait-cpu`). The C interface is stable: functions and structs only grow at their
/// end, and `AIT_API_VERSION` rises. The C++ classes below are inline code over it.
///
/// All functions may be called from several threads. Those that can fail return a status; `ait_last_error` has the message.
#ifndef AIT_MODEL_H_
#define AIT_MODEL_H_

#include <stddef.h>
#include <stdint.h>

#include "ait/model_abi.h"

#define AIT_API_VERSION 1

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

typedef struct ait_load_options {
  size_t size;             ///< sizeof(ait_load_options)
  int32_t num_runtimes;    ///< runs at the same time; 0: 1
  int32_t device;          ///< number of the GPU
  int32_t skip_weights;    ///< do not check the hash of the weights
} ait_load_options;

typedef struct ait_run_options {
  size_t size;             ///< sizeof(ait_run_options)
  void* stream;            ///< cudaStream_t or hipStream_t; null: the default stream
  int32_t no_wait;         ///< return when all is launched; the tensors must live until the stream is done
  int32_t graph;           ///< launch the run as one recorded graph; refused on the CPU
} ait_run_options;

/// The version of the library, an `AIT_API_VERSION`.
AIT_API int32_t ait_api_version(void);
/// "cpu", "cuda" or "rocm": the target of the models that this library runs.
AIT_API const char* ait_target(void);
/// The message of the last call of this thread that failed; valid until the next one.
AIT_API const char* ait_last_error(void);

/// Loads an artifact with its weights. `options` may be null.
AIT_API ait_status ait_model_load(const char* path, const ait_load_options* options, ait_model** model);
/// Frees a model that is not running; null is allowed.
AIT_API void ait_model_free(ait_model* model);

/// Name, tensors, dims and constants of a model; they live as long as it does. Shapes are given by `ait_model_infer`.
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

template <class T>
struct dtype_of;
template <>
struct dtype_of<float> { static constexpr int32_t value = AIT_F32; };
template <>
struct dtype_of<double> { static constexpr int32_t value = AIT_F64; };
template <>
struct dtype_of<bool> { static constexpr int32_t value = AIT_BOOL; };
template <>
struct dtype_of<int8_t> { static constexpr int32_t value = AIT_I8; };
template <>
struct dtype_of<uint8_t> { static constexpr int32_t value = AIT_UI8; };
template <>
struct dtype_of<int16_t> { static constexpr int32_t value = AIT_I16; };
template <>
struct dtype_of<int32_t> { static constexpr int32_t value = AIT_I32; };
template <>
struct dtype_of<int64_t> { static constexpr int32_t value = AIT_I64; };

}  // namespace detail

/// @brief A row-major tensor in memory of the caller's.
struct TensorView {
  TensorView(void* address, int32_t element, Shape extents) : data(address), dtype(element), shape(std::move(extents)) {}
  /// A tensor of C++ numbers; f16 and bf16 have no C++ type and use the constructor above.
  template <class T>
  TensorView(T* address, Shape extents)
      : TensorView(const_cast<void*>(static_cast<const void*>(address)), detail::dtype_of<std::remove_const_t<T>>::value, std::move(extents)) {}

  void* data;
  int32_t dtype;
  Shape shape;
  bool on_host = false;

  ait_tensor c() const { return {data, dtype, static_cast<int32_t>(shape.size()), shape.data(), nullptr, on_host ? 1 : 0}; }
};

/// @brief A compiled model. Its methods throw a `ModelError` where the C functions return a status.
class Model {
 public:
  explicit Model(const std::string& path, int num_runtimes = 1, int device = 0, bool verify_weights = true) {
    const ait_load_options options{sizeof(ait_load_options), num_runtimes, device, verify_weights ? 0 : 1};
    ait_model* model = nullptr;
    detail::check(ait_model_load(path.c_str(), &options, &model));
    model_.reset(model);
  }

  const ait_model_v1& table() const { return *ait_model_table(model_.get()); }
  std::string name() const { return table().name; }
  std::vector<std::string> input_names() const { return names(table().inputs, table().num_inputs); }
  std::vector<std::string> output_names() const { return names(table().outputs, table().num_outputs); }

  /// The largest shape of each output.
  std::vector<Shape> maximum_shapes() const {
    Shape flat = room();
    ait_model_maximum_shapes(model_.get(), flat.data());
    return split(flat);
  }

  /// The shapes of the outputs for these inputs.
  std::vector<Shape> infer(const std::vector<TensorView>& inputs) {
    const std::vector<ait_tensor> given = plain(inputs);
    Shape flat = room();
    detail::check(ait_model_infer(model_.get(), given.data(), static_cast<int32_t>(given.size()), flat.data()));
    return split(flat);
  }

  /// Runs the model and waits for it, or with `no_wait` returns when all is launched. Returns the shapes of the outputs.
  std::vector<Shape> run(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs, void* stream = nullptr, bool wait = true,
                         bool graph = false) {
    const std::vector<ait_tensor> ins = plain(inputs), outs = plain(outputs);
    const ait_run_options options{sizeof(ait_run_options), stream, wait ? 0 : 1, graph ? 1 : 0};
    Shape flat = room();
    detail::check(ait_model_run(model_.get(), ins.data(), static_cast<int32_t>(ins.size()), outs.data(), static_cast<int32_t>(outs.size()),
                                &options, flat.data()));
    return split(flat);
  }

  void sync(void* stream = nullptr) { detail::check(ait_model_sync(model_.get(), stream)); }
  void set_constant(const std::string& name, const TensorView& value) { set(name, value, 0); }
  void set_double_buffer_constant(const std::string& name, const TensorView& value) { set(name, value, 1); }
  void swap_constants() { detail::check(ait_model_swap_constants(model_.get())); }
  ait_model* get() const { return model_.get(); }

 private:
  struct Free {
    void operator()(ait_model* model) const { ait_model_free(model); }
  };

  static std::vector<std::string> names(const ait_tensor_v1* tensors, int32_t count) {
    std::vector<std::string> found;
    for (int32_t i = 0; i < count; ++i) found.emplace_back(tensors[i].name);
    return found;
  }
  static std::vector<ait_tensor> plain(const std::vector<TensorView>& tensors) {
    std::vector<ait_tensor> found;
    for (const TensorView& tensor : tensors) found.push_back(tensor.c());
    return found;
  }
  void set(const std::string& name, const TensorView& value, int32_t spare) {
    const ait_tensor tensor = value.c();
    detail::check(ait_model_set_constant(model_.get(), name.c_str(), &tensor, spare));
  }
  Shape room() const {
    size_t count = 0;
    for (int32_t i = 0; i < table().num_outputs; ++i) count += static_cast<size_t>(table().outputs[i].rank);
    return Shape(count);
  }
  std::vector<Shape> split(const Shape& flat) const {
    std::vector<Shape> shapes;
    auto begin = flat.begin();
    for (int32_t i = 0; i < table().num_outputs; ++i) {
      shapes.emplace_back(begin, begin + table().outputs[i].rank);
      begin += table().outputs[i].rank;
    }
    return shapes;
  }

  std::unique_ptr<ait_model, Free> model_;
};

}  // namespace ait
#endif  // __cplusplus
#endif  // AIT_MODEL_H_
