/// @file model_abi.h
/// @brief The C table between a generated model library and the runtime library.
///
/// A model library exports one symbol, `ait_model_get`, which returns a table with a version. The runtime library refuses a version it does
/// not know. Nothing here depends on C++ or on tvm-ffi, so that generated code includes nothing heavy.
#ifndef AIT_MODEL_ABI_H_
#define AIT_MODEL_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AIT_MODEL_ABI_VERSION 10

typedef enum ait_dtype {
  AIT_F16 = 0,
  AIT_BF16 = 1,
  AIT_F32 = 2,
  AIT_F64 = 3,
  AIT_BOOL = 4,
  AIT_I8 = 5,
  AIT_I32 = 6,
  AIT_I64 = 7,
  AIT_UI8 = 8,
  AIT_I16 = 9,
  AIT_F8E4M3FN = 10,
  AIT_F8E5M2 = 11,
  AIT_F8E8M0FNU = 12,
  AIT_I4 = 13,   ///< an element in each byte, from -8 to 7
  AIT_UI4 = 14   ///< an element in each byte, from 0 to 15
} ait_dtype;
#define AIT_DTYPES 15  ///< how many there are

#define AIT_MAX_RUNTIMES 4096  ///< the most runs of a model that may be under way at the same time

#define AIT_BOUND (-2)  ///< `ait_dim_v1::input` of a dim that a launch binds: at most what `ait_model_v1::bounds` says
#define AIT_GIVEN (-3)  ///< `ait_dim_v1::input` of a dim that the caller of a run gives: `add` where it gives none

/// A named dim and where its value comes from: `(shape(input)[axis] - add) / mul`, which must be an integer in [lo, hi]. An axis of `rank` and
/// more is that of a stride: if it gives no such integer, the dim is `lo` and the input is copied.
typedef struct ait_dim_v1 {
  const char* name;
  int64_t lo, hi;
  int32_t input, axis;
  int64_t mul, add;
} ait_dim_v1;

/// An input or output. An output that takes the place of a donated input lies in that input's memory: both have one address in a run.
typedef struct ait_tensor_v1 {
  const char* name;
  int32_t dtype;
  int32_t rank;
  int32_t in_place_of;  ///< of an output: 1 + the index of the input the place of which it takes; 0: none
} ait_tensor_v1;

typedef enum ait_layout {
  AIT_ROWS = 0,       ///< row-major, as the value is
  AIT_PANELS_KN = 1,  ///< in panels (`ait/panels.h`); the rows of the value are k
  AIT_PANELS_NK = 2,  ///< in panels; the rows of the value are n
  AIT_PANELS_WINOGRAD = 3  ///< a weight of n rows of 3 x 3 x channels, transformed, in panels of f32
} ait_layout;

/// How a parameter lies at one of its places. In panels it is rows [first, first + its own) of a matrix of `rows` rows that begins there.
typedef struct ait_packing_v1 {
  int32_t layout;
  int64_t first, rows;
} ait_packing_v1;

/// A parameter: its bytes are stored at each of `places` (byte offsets into the constants blob), there as its one of `packings` says; all
/// of them are row-major where `packings` is null.
typedef struct ait_constant_v1 {
  const char* name;
  int32_t dtype;
  int32_t rank;
  const int64_t* shape;
  int64_t bytes;
  int32_t num_places;
  const int64_t* places;
  const ait_packing_v1* packings;
  int32_t can_be_bound;  ///< a run may read it at an address of the caller's instead (`ait_run_v1::bound`): it is alone at each place, row-major
} ait_constant_v1;

/// What a run is given to say why it failed.
typedef struct ait_host_v1 {
  void* self;
  /// Keeps `message` as the reason of the failure and returns a non-zero status, so that code can `return host->fail(...)`.
  int32_t (*fail)(void* self, const char* message);
} ait_host_v1;

/// A table of functions that a model needs from the runtime library, by name and version (`ait/service.h`). The runtime library writes
/// `table` when it loads the model, and refuses the model where it has no such table. A table never changes: other arguments are another version.
typedef struct ait_service_v1 {
  const char* name;
  int32_t version;
  const void* table;
  struct ait_service_v1* next;
} ait_service_v1;

/// What watches a run.
typedef struct ait_observer_v1 {
  void* self;
  /// Called before each launch, with its index in `ait_model_v1::launches`, and with -1 after the last one of a part.
  void (*before)(void* self, int32_t launch, void* stream);
  /// Called after each launch of a program that was emitted to be inspected, for each result that lies contiguously.
  void (*result)(void* self, int32_t launch, int32_t result, const void* data, int32_t dtype, int64_t elements, void* stream);
} ait_observer_v1;

typedef struct ait_run_v1 {
  int64_t* dims;                  ///< in the order of the model's dims; those that launches bind at their bounds, until `wait` writes them
  const void* const* inputs;
  void* const* outputs;
  const void* constants;          ///< the constants blob
  void* arena;                    ///< at least arena_bytes(dims), 256-byte aligned
  void* stream;                   ///< cudaStream_t / hipStream_t; null on the CPU
  const ait_host_v1* host;
  int32_t part;                   ///< which of the model's parts
  const void* const* bound;       ///< for each constant the address to read it at, null: in the blob; null where all are in the blob
  const ait_observer_v1* observer;  ///< null where nobody watches
} ait_run_v1;

/// A copy between tensors of one shape; strides are in elements of `element` bytes, none is below 0.
typedef struct ait_copy_v1 {
  void* to;
  const void* from;
  int32_t rank, element;
  const int64_t *shape, *to_strides, *from_strides;
} ait_copy_v1;
#define AIT_MAX_COPY_RANK 16

typedef struct ait_model_v1 {
  int32_t version;                ///< AIT_MODEL_ABI_VERSION
  const char* name;
  const char* target;             ///< "cpu", "cuda", "rocm"
  int32_t num_dims, num_inputs, num_outputs, num_constants;
  const ait_dim_v1* dims;
  const ait_tensor_v1* inputs;
  const ait_tensor_v1* outputs;
  const ait_constant_v1* constants;
  int64_t constants_bytes;
  /// Writes the shapes of all inputs, then all outputs, one after another, for these dims.
  void (*shapes)(const int64_t* dims, int64_t* out);
  int64_t (*arena_bytes)(const int64_t* dims);
  int32_t (*run)(const ait_run_v1* args);  ///< launches one part, and never waits for it
  ait_service_v1* (*services)(void);  ///< the first of the services that the library needs; null where there are none
  /// Writes the most that each dim may be that a launch binds, from the other dims; null where there are none.
  void (*bounds)(int64_t* dims);
  /// A run is part 0, a wait, part 1, a wait and so on. It has one part more than waits, or, if it ends with a wait, as many.
  int32_t num_waits, ends_with_wait;
  int32_t (*wait)(const ait_run_v1* args);  ///< waits until a part has ended, and writes the dims that it has bound
  int32_t num_launches;
  const char* const* launches;    ///< what each launch computes, for people
  /// Writes the strides, in elements, of all inputs, then all outputs, as `shapes` does; null where all are row-major.
  void (*strides)(const int64_t* dims, int64_t* out);
  /// Launches a copy of an input or output of at most AIT_MAX_COPY_RANK dims; null where the runtime library copies.
  int32_t (*copy)(const ait_copy_v1* copy, void* stream, const ait_host_v1* host);
  /// What needs more than 2^62 bytes for these dims, "the arena of @f"; null if nothing does, so that a run computes all sizes in 64 bits. Dims
  /// that launches bind are not read. `shapes`, `strides`, `bounds` and `arena_bytes` give INT64_MAX for a number that is too large. The
  /// pointer is null where no number can be, whatever the dims.
  const char* (*too_large)(const int64_t* dims);
} ait_model_v1;

/// Exported by every model library.
typedef const ait_model_v1* (*ait_model_get_fn)(void);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // AIT_MODEL_ABI_H_
