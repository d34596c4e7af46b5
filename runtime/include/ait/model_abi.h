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

#define AIT_MODEL_ABI_VERSION 4

typedef enum ait_dtype {
  AIT_F16 = 0,
  AIT_BF16 = 1,
  AIT_F32 = 2,
  AIT_F64 = 3,
  AIT_BOOL = 4,
  AIT_I8 = 5,
  AIT_I32 = 6,
  AIT_I64 = 7
} ait_dtype;

/// A named dim and where its value comes from: `(shape(input)[axis] - add) / mul`, which must be an integer in [lo, hi].
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
  AIT_PANELS_NK = 2   ///< in panels; the rows of the value are n
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
} ait_constant_v1;

typedef enum ait_epilogue {
  AIT_EPILOGUE_NONE = 0,
  AIT_EPILOGUE_BIAS = 1,       ///< + bias[n]
  AIT_EPILOGUE_RELU = 2,       ///< relu, after the bias if both are set
  AIT_EPILOGUE_FAST_GELU = 4   ///< tanh-form gelu, after the bias if both are set
} ait_epilogue;

#define AIT_GEMM_ALGORITHM_PARTS 9

/// An algorithm of a gemm library, in the library's own numbers: id, tile, split of k, reduction, swizzle, custom option, stages, inner
/// shape, cluster (cuBLASLt's `cublasLtMatmulAlgoConfigAttributes_t`, in their order).
typedef struct ait_gemm_algorithm_v1 {
  int32_t parts[AIT_GEMM_ALGORITHM_PARTS];
} ait_gemm_algorithm_v1;

/// D = epilogue(alpha * op(A) @ op(B) + beta * C), row-major D of shape [batch, m, n]; strides and leading dims in elements.
/// op(A) is [m, k]: A stored [m, k] (trans_a = 0) or [k, m] (1). op(B) is [k, n]: B stored [k, n] (trans_b = 0) or [n, k] (1).
typedef struct ait_gemm_v1 {
  int32_t dtype;            ///< of A, B, C, D and bias; accumulation is in f32 (f64 for f64)
  int32_t trans_a, trans_b;
  int32_t epilogue;         ///< ait_epilogue flags
  int64_t batch, m, n, k;
  int64_t lda, ldb, ldc, ldd;
  int64_t batch_a, batch_b, batch_c, batch_d;  ///< strides between batches
  const void *a, *b, *c, *bias;                ///< c and bias may be null
  void* d;
  float alpha, beta;
  const ait_gemm_algorithm_v1* algorithm;      ///< what to run where the library takes it; null: what it estimates to be the fastest
  void* workspace;
  int64_t workspace_bytes;
} ait_gemm_v1;

/// O = softmax(scale * Q K^T + mask) V for each head; strides in elements, the last dims of Q, K, V and O are contiguous.
typedef struct ait_attention_v1 {
  int32_t dtype;            ///< of Q, K, V and O: AIT_F16 or AIT_BF16
  int32_t mask_dtype;       ///< `dtype` or AIT_F32
  int32_t causal;           ///< row s, which stands at column p = s + cols - rows, sees no column after p
  int32_t algo;             ///< index into the library's list of plans; past its end: the last
  int64_t batch, heads, groups, rows, cols, depth, width;  ///< Q [batch, heads, rows, depth], K [batch, groups, cols, depth], V [.., width]
  int64_t window;           ///< columns that are this far from p, or further, are hidden; 0: none are
  int64_t strides_q[3], strides_k[3], strides_v[3], strides_o[3];
  int64_t strides_mask[4];  ///< 0 where the mask is broadcast
  const void *q, *k, *v, *mask;                            ///< mask may be null
  void* o;
  float scale;
  void* workspace;
  int64_t workspace_bytes;
} ait_attention_v1;

#define AIT_SERVICES_VERSION 3

/// What the runtime library offers to a model library. A version adds to the end; a model asks for the version before it calls.
typedef struct ait_services_v1 {
  int32_t version;          ///< 1: gemm and fail; 2: attention too; 3: amx too
  void* self;
  int32_t (*gemm)(void* self, const ait_gemm_v1* args, void* stream);
  /// Keeps `message` as the reason of the failure and returns a non-zero status, so that code can `return services->fail(...)`.
  int32_t (*fail)(void* self, const char* message);
  int32_t (*attention)(void* self, const ait_attention_v1* args, void* stream);
  int32_t amx;              ///< not 0: the processor has AMX for bf16, and this process may use it
} ait_services_v1;

typedef struct ait_run_v1 {
  const int64_t* dims;            ///< in the order of the model's dims
  const void* const* inputs;
  void* const* outputs;
  const void* constants;          ///< the constants blob
  void* arena;                    ///< at least arena_bytes(dims), 256-byte aligned
  void* stream;                   ///< cudaStream_t / hipStream_t; null on the CPU
  const ait_services_v1* services;
} ait_run_v1;

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
  int32_t (*run)(const ait_run_v1* args);
} ait_model_v1;

/// Exported by every model library.
typedef const ait_model_v1* (*ait_model_get_fn)(void);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // AIT_MODEL_ABI_H_
