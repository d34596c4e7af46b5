/// @file exported.h
/// @brief A model as a function of a tvm-ffi library; `ait compile --emit module` and `--emit kernels` link this with the model.
#ifndef AIT_RUNTIME_EXPORT_EXPORTED_H_
#define AIT_RUNTIME_EXPORT_EXPORTED_H_

#include <tvm/ffi/c_api.h>

#include <cstdint>

#include "ait/model_abi.h"

namespace ait::runtime {

/// @brief A constant in the weights that follow the library in its file: where it begins, from the begin of the weights.
struct StoredWeight {
  const char* name;
  int64_t offset;
};

/// @brief A constant-initialised description of a function.
struct ExportedFunction {
  const char* name;
  ait_model_get_fn table;
  const StoredWeight* weights;
  int32_t num_weights;
  int32_t num_runtimes;
  void* state;  ///< made by the first call
};

/// @brief Places of a library ("openblas") that were found when the model was exported; ended by null.
struct LibraryPlaces {
  const char* key;
  const char* const* places;
};

/// The places of all libraries; ended by a null key. Defined by the generated code.
extern const LibraryPlaces kLibraryPlaces[];

/// @brief A kernel library that the model calls, behind the weights: its SHA-256, where it begins, from the begin of the weights, and its size.
struct StoredLibrary {
  const char* sha256;
  int64_t offset, bytes;
};

/// The kernel libraries of all functions; ended by a null hash. Defined by the generated code.
extern const StoredLibrary kStoredLibraries[];

/// @brief `name(inputs..., outputs...)`, or `name(inputs...)`, which allocates the outputs and returns them.
int call_exported(ExportedFunction* function, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

/// @brief `name_set_constant(constant, value)`: on every device that the function has run on, and will run on.
int set_exported_constant(ExportedFunction* function, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

/// @brief `name_describe()`: JSON with the names, dtypes and ranks of inputs and outputs, dims and constants.
int describe_exported(ExportedFunction* function, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_EXPORT_EXPORTED_H_
