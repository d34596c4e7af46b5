/// @file library.h
/// @brief A loaded model library, and the contents of its table.
#ifndef AIT_RUNTIME_LIBRARY_H_
#define AIT_RUNTIME_LIBRARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ait/model_abi.h"

namespace ait::runtime {

/// @brief The elements from the first one of a tensor to its last one, at strides of at least 0.
int64_t extent(const int64_t* shape, const int64_t* strides, int32_t rank);

/// @brief Whether strides are those of a row-major tensor; those of dims of 1 do not matter.
bool are_packed(const int64_t* shape, const int64_t* strides, int32_t rank);

/// @brief The shapes and strides of one set of dims: of inputs, then outputs, each with the rank of its table entry.
class Shapes {
 public:
  Shapes(const ait_model_v1& table, const int64_t* dims);
  const int64_t* input(int i) const { return values_.data() + starts_[i]; }
  const int64_t* output(int i) const { return values_.data() + starts_[num_inputs_ + i]; }
  /// The shapes of all inputs, or of all outputs, one after another.
  std::vector<int64_t> inputs() const { return of_inputs(values_); }
  std::vector<int64_t> outputs() const { return of_outputs(values_); }
  /// The strides, in elements, with which kernels use an input's memory.
  const int64_t* input_strides(int i) const { return strides_.data() + starts_[i]; }
  const int64_t* output_strides(int i) const { return strides_.data() + starts_[num_inputs_ + i]; }
  /// The strides of all inputs, or of all outputs, one after another.
  std::vector<int64_t> strides_of_inputs() const { return of_inputs(strides_); }
  std::vector<int64_t> strides_of_outputs() const { return of_outputs(strides_); }

 private:
  std::vector<int64_t> of_inputs(const std::vector<int64_t>& values) const { return {values.data(), values.data() + starts_[num_inputs_]}; }
  std::vector<int64_t> of_outputs(const std::vector<int64_t>& values) const { return {values.data() + starts_[num_inputs_], values.data() + values.size()}; }

  std::vector<int64_t> values_, strides_;
  std::vector<size_t> starts_;
  size_t num_inputs_;
};

/// @brief Owns the handle of a model library. Throws an Error of kind kArtifact if it is none, or not for this runtime.
class Library {
 public:
  /// `symbol` is the function that returns the table: a library of candidates has several.
  explicit Library(const std::string& path, const std::string& symbol = "ait_model_get");
  /// The model of a table in this library itself.
  explicit Library(ait_model_get_fn get);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const ait_model_v1& table() const { return *table_; }
  /// The largest extent of each output dim over the corners of the ranges of the dims; one output after another.
  std::vector<int64_t> maximum_output_shapes() const;
  /// Whether the model calls functions of a service.
  bool needs(const char* service) const;
  /// Names, dtypes, ranks, dims and constants, as JSON.
  std::string describe() const;

 private:
  /// Reads the table and finds the services; `path` is for errors.
  void open(ait_model_get_fn get, const std::string& path);

  void* handle_ = nullptr;
  const ait_model_v1* table_ = nullptr;
};

/// @brief NumPy's name of a dtype: "float16", "bfloat16", "bool" ...
const char* dtype_name(int32_t dtype);
/// @brief Bytes of one element.
int64_t dtype_bytes(int32_t dtype);

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_LIBRARY_H_
