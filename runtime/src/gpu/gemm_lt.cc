/// @file gemm_lt.cc
/// @brief `compute_gemm` on cuBLASLt or hipBLASLt. The library's choice for a problem is kept, so that a later call costs a look-up and a launch, and
/// can be captured: no allocation on the device and no synchronisation.
#include <string.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "gemm.h"
#include "gpu/api.h"
#include "gpu/lt.h"

namespace ait::runtime {
namespace {

constexpr int kAlgorithms = 16;
/// Bytes of workspace in each question to the library, so that its answer does not depend on the model's workspace.
constexpr int64_t kAskedWorkspace = int64_t(32) << 20;
/// Described algorithms want all operands to begin on so many bytes.
constexpr int64_t kAlignment = 16;

/// A problem as far as the choice of an algorithm depends on it. Only 64-bit members: compared and hashed as bytes.
struct Key {
  int64_t device, dtype, precision, trans_a, trans_b, epilogue, bias, residual;
  int64_t batch, m, n, k, lda, ldb, ldc, ldd, batch_a, batch_b, batch_c, batch_d;
  int64_t align_a, align_b, align_c, align_d, workspace;
  int64_t described, algorithm[AIT_GEMM_ALGORITHM_PARTS];

  bool operator==(const Key& other) const { return memcmp(this, &other, sizeof(Key)) == 0; }
};

struct KeyHash {
  size_t operator()(const Key& key) const {
    const int64_t* words = reinterpret_cast<const int64_t*>(&key);
    uint64_t hash = 0x9e3779b97f4a7c15ull;
    for (size_t i = 0; i < sizeof(Key) / sizeof(int64_t); ++i) {
      hash = (hash ^ uint64_t(words[i])) * 0xff51afd7ed558ccdull;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

/// The descriptors of the matrices of a problem, and the algorithm.
struct Plan {
  lt::Descriptor a = nullptr, b = nullptr, c = nullptr, d = nullptr;
  lt::Algorithm algorithm{};
};

/// The library's answer to a question for algorithms.
struct Answer {
  lt::Heuristic found[kAlgorithms];
  int count = 0;
};

/// The library, its handles, and the plans made so far. Lives until the process ends, as the driver may be gone before static destructors run.
struct Library {
  lt::Api api;
  bool loaded = false;
  std::string error;
  std::shared_mutex lock;
  std::unordered_map<int64_t, lt::Handle> handles;  // by device
  std::unordered_map<Key, std::unique_ptr<Plan>, KeyHash> plans;

  Library() {
    loaded = api.load(places_of(lt::kLibrary), &error);
  }
};

Library& library() {
  static Library* instance = new Library;
  return *instance;
}

int64_t alignment(const void* pointer) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  return address % 16 == 0 ? 16 : int64_t(address & (~address + 1));
}

int32_t failed(const lt::Api& api, const char* what, lt::Status status, std::string* error) {
  *error = std::string(lt::kLibrary.name) + ": " + what + ": " + api.status_text(status) + " (status " + std::to_string(status) + ")";
  return 1;
}

bool element_type(const Gemm& args, int* type, int* compute) {
  switch (args.dtype) {
    case AIT_F16: *type = lt::kF16, *compute = lt::kComputeF32; return true;
    case AIT_BF16: *type = lt::kBf16, *compute = lt::kComputeF32; return true;
    case AIT_F32: 
      *type = lt::kF32;
      *compute = args.precision == AIT_PRECISION_HIGH ? lt::kComputeTf32 : args.precision == AIT_PRECISION_MEDIUM ? lt::kComputeBf16 : lt::kComputeF32;
      return true;
    case AIT_F64: *type = lt::kF64, *compute = lt::kComputeF64; return true;
    default: return false;
  }
}

/// The operation. The row-major product D = A B is the column-major D^T = B^T A^T, so our B is the library's first operand.
struct Operation {
  const lt::Api& api;
  lt::Descriptor desc = nullptr;
  int scale = lt::kF32;
  explicit Operation(const lt::Api& table) : api(table) {}
  ~Operation() {
    if (desc != nullptr) api.desc_destroy(desc);
  }

  lt::Status make(const Gemm& args, int compute) {
    scale = compute == lt::kComputeF64 ? lt::kF64 : lt::kF32;
    lt::Status status = api.desc_create(&desc, compute, scale);
    auto set = [&](int attribute, const auto& value) {
      if (status == lt::kSuccess) status = api.desc_set(desc, attribute, &value, sizeof value);
    };
    set(lt::kDescTransA, args.trans_b ? lt::kTranspose : lt::kNoTranspose);
    set(lt::kDescTransB, args.trans_a ? lt::kTranspose : lt::kNoTranspose);
    uint32_t epilogue = 0;
    if (args.epilogue & AIT_EPILOGUE_BIAS) epilogue |= lt::kEpilogueBias;
    if (args.epilogue & AIT_EPILOGUE_RELU) epilogue |= lt::kEpilogueRelu;
    if (args.epilogue & AIT_EPILOGUE_FAST_GELU) epilogue |= lt::kEpilogueGelu;
    if (epilogue != 0) set(lt::kDescEpilogue, epilogue);
    if (args.epilogue & AIT_EPILOGUE_BIAS) set(lt::kDescBias, args.bias);
    return status;
  }
};

lt::Status make_layout(const lt::Api& api, lt::Descriptor* layout, int type, int64_t rows, int64_t cols, int64_t ld, int64_t batch,
                       int64_t stride) {
  lt::Status status = api.layout_create(layout, type, uint64_t(rows), uint64_t(cols), ld < rows ? rows : ld);
  if (status == lt::kSuccess && batch > 1) {
    const int32_t count = int32_t(batch);
    status = api.layout_set(*layout, lt::kLayoutBatchCount, &count, sizeof count);
    if (status == lt::kSuccess) status = api.layout_set(*layout, lt::kLayoutBatchStride, &stride, sizeof stride);
  }
  return status;
}

/// The algorithms of an answer that round once, in their order.
Answer rounding_once(const lt::Api& api, const Gemm& args, bool residual, const Answer& answer) {
  Answer once;
  for (int i = 0; i < answer.count; ++i) {
    if (lt::roundings(api, answer.found[i].algorithm, args, residual) == 1) once.found[once.count++] = answer.found[i];
  }
  return once;
}

int32_t describe_matrices(const lt::Api& api, const Gemm& args, const Key& key, int type, Plan* plan, std::string* error) {
  lt::Status status = make_layout(api, &plan->a, type, args.trans_b ? args.k : args.n, args.trans_b ? args.n : args.k, args.ldb, args.batch,
                                  args.batch_b);
  if (status == lt::kSuccess) {
    status = make_layout(api, &plan->b, type, args.trans_a ? args.m : args.k, args.trans_a ? args.k : args.m, args.lda, args.batch,
                         args.batch_a);
  }
  if (status == lt::kSuccess) status = make_layout(api, &plan->d, type, args.n, args.m, args.ldd, args.batch, args.batch_d);
  if (status == lt::kSuccess) {
    status = make_layout(api, &plan->c, type, args.n, args.m, key.residual ? args.ldc : args.ldd, args.batch,
                         key.residual ? args.batch_c : args.batch_d);
  }
  return status == lt::kSuccess ? 0 : failed(api, "describing the matrices", status, error);
}

/// The list of the library: algorithms that need at most so much workspace and add up partial sums in no other way, best estimate first.
lt::Status list(const lt::Api& api, lt::Handle handle, const Key& key, const lt::Matmul& matmul, int64_t room, uint32_t reductions,
                Answer* answer) {
  lt::Descriptor preference = nullptr;
  lt::Status status = api.preference_create(&preference);
  if (status != lt::kSuccess) return status;
  const uint64_t workspace = uint64_t(room);
  status = api.preference_set(preference, lt::kPreferWorkspace, &workspace, sizeof workspace);
  if (status == lt::kSuccess) status = lt::prefer(api, preference, reductions, {key.align_b, key.align_a, key.align_c, key.align_d});
  if (status == lt::kSuccess) {
    status = api.heuristic(handle, matmul.desc, matmul.a, matmul.b, matmul.c, matmul.d, preference, kAlgorithms, answer->found,
                           &answer->count);
  }
  api.preference_destroy(preference);
  return status;
}

/// Asks the library for algorithms that need at most so much workspace and round once. Where all that it names split k, and so round twice,
/// it is asked for others; only where there is none either, its first list stands.
int32_t ask(const lt::Api& api, lt::Handle handle, const Gemm& args, const Key& key, const lt::Matmul& matmul, int64_t room,
            Answer* answer, std::string* error) {
  const lt::Status status = list(api, handle, key, matmul, room, lt::kReduceInComputeType, answer);
  if (status != lt::kSuccess || answer->count == 0) {
    *error = std::string(lt::kLibrary.name) + " has no algorithm for a gemm of m " + std::to_string(args.m) + ", n " + std::to_string(args.n) + ", k " +
             std::to_string(args.k) + ", batch " + std::to_string(args.batch) + ", dtype " + std::to_string(args.dtype) + ", epilogue " +
             std::to_string(args.epilogue) + ": " + api.status_text(status);
    return 1;
  }
  Answer once = rounding_once(api, args, key.residual, *answer);
  if (once.count == 0) {
    Answer whole;
    if (list(api, handle, key, matmul, room, lt::kReduceNothing, &whole) == lt::kSuccess) {
      once = rounding_once(api, args, key.residual, whole);
    }
  }
  if (once.count > 0) *answer = once;
  return 0;
}

bool is_aligned(const Key& key) {
  return key.align_a >= kAlignment && key.align_b >= kAlignment && key.align_c >= kAlignment && key.align_d >= kAlignment;
}

lt::Matmul matmul_of(const Operation& operation, const Plan& plan, int type, int compute) {
  return {type, compute, operation.scale, operation.desc, plan.a, plan.b, plan.c, plan.d};
}

/// The described algorithm if the library accepts it, else the algorithm that it estimates to be the fastest.
int32_t make_plan(const lt::Api& api, lt::Handle handle, const Gemm& args, const Key& key, const Operation& operation, int type,
                  int compute, Plan* plan, std::string* error) {
  if (describe_matrices(api, args, key, type, plan, error) != 0) return 1;
  const lt::Matmul matmul = matmul_of(operation, *plan, type, compute);
  if (args.algorithm != nullptr && is_aligned(key) &&
      lt::takes(api, handle, matmul, args, key.residual, key.workspace, *args.algorithm, &plan->algorithm)) {
    return 0;
  }
  Answer answer;
  if (ask(api, handle, args, key, matmul, kAskedWorkspace, &answer, error) != 0) return 1;
  for (int i = 0; i < answer.count; ++i) {
    plan->algorithm = answer.found[i].algorithm;
    if (int64_t(answer.found[i].workspace) <= key.workspace) return 0;
  }
  if (ask(api, handle, args, key, matmul, key.workspace, &answer, error) != 0) return 1;
  plan->algorithm = answer.found[0].algorithm;
  return 0;
}

void destroy(const lt::Api& api, const Plan& plan) {
  for (lt::Descriptor layout : {plan.a, plan.b, plan.c, plan.d}) {
    if (layout != nullptr) api.layout_destroy(layout);
  }
}

/// The handle of a device, made at its first use; null with the reason in `error`. The lock must be held for writing.
lt::Handle find_handle(Library& lib, int64_t device, std::string* error) {
  lt::Handle& slot = lib.handles[device];
  if (slot == nullptr) {
    const lt::Status status = lib.api.create(&slot);
    if (status != lt::kSuccess) {
      slot = nullptr;
      failed(lib.api, "creating a handle", status, error);
    }
  }
  return slot;
}

/// The plan for `key`, made now if this is its first use. Plans are never removed, so the pointer stays good.
const Plan* find_plan(Library& lib, const Gemm& args, const Key& key, const Operation& operation, int type, int compute,
                      lt::Handle* handle, std::string* error) {
  {
    std::shared_lock<std::shared_mutex> reading(lib.lock);
    const auto found = lib.plans.find(key);
    if (found != lib.plans.end()) {
      *handle = lib.handles.at(key.device);
      return found->second.get();
    }
  }
  std::unique_lock<std::shared_mutex> writing(lib.lock);
  *handle = find_handle(lib, key.device, error);
  if (*handle == nullptr) return nullptr;
  std::unique_ptr<Plan>& plan = lib.plans[key];
  if (plan == nullptr) {
    auto made = std::make_unique<Plan>();
    if (make_plan(lib.api, *handle, args, key, operation, type, compute, made.get(), error) != 0) {
      destroy(lib.api, *made);
      lib.plans.erase(key);
      return nullptr;
    }
    plan = std::move(made);
  }
  return plan.get();
}

/// What `args` asks for, as far as it can be wrong: the library, its types and the device.
int32_t open(const Gemm& args, Library& lib, int* type, int* compute, int* device, std::string* error) {
  if (!lib.loaded) {
    *error = lib.error;
    return 1;
  }
  if (!element_type(args, type, compute)) {
    *error = "the library gemm computes f16, bf16, f32 and f64, not dtype " + std::to_string(args.dtype);
    return 1;
  }
  if (const gpu::Error status = GPU(GetDevice)(device); status != gpu::kSuccess) {
    *error = std::string("no ") + gpu::kPlatform + " device: " + GPU(GetErrorString)(status);
    return 1;
  }
  return 0;
}

Key key_of(const Gemm& args, int device) {
  const bool residual = args.c != nullptr && args.beta != 0.f;
  Key key{};
  key.device = device, key.dtype = args.dtype, key.precision = args.precision, key.trans_a = args.trans_a != 0, key.trans_b = args.trans_b != 0;
  key.epilogue = args.epilogue, key.bias = 0, key.residual = residual;
  key.batch = args.batch, key.m = args.m, key.n = args.n, key.k = args.k;
  key.lda = args.lda, key.ldb = args.ldb, key.ldc = residual ? args.ldc : 0, key.ldd = args.ldd;
  if (args.batch > 1) {
    key.batch_a = args.batch_a, key.batch_b = args.batch_b, key.batch_c = residual ? args.batch_c : 0, key.batch_d = args.batch_d;
  }
  key.align_a = alignment(args.a), key.align_b = alignment(args.b), key.align_c = alignment(residual ? args.c : args.d);
  key.align_d = alignment(args.d);
  if (args.epilogue & AIT_EPILOGUE_BIAS) key.bias = alignment(args.bias);
  key.workspace = args.workspace != nullptr ? args.workspace_bytes : 0;
  if (args.algorithm != nullptr) {
    key.described = 1;
    for (int i = 0; i < AIT_GEMM_ALGORITHM_PARTS; ++i) key.algorithm[i] = args.algorithm->parts[i];
  }
  return key;
}

}  // namespace

int32_t compute_gemm(const Gemm& args, void* stream, std::string* error) {
  if (args.m == 0 || args.n == 0 || args.batch == 0) return 0;
  Library& lib = library();
  int type = 0, compute = 0, device = 0;
  if (open(args, lib, &type, &compute, &device, error) != 0) return 1;
  const Key key = key_of(args, device);
  Operation operation(lib.api);
  if (const lt::Status status = operation.make(args, compute); status != lt::kSuccess) {
    return failed(lib.api, "describing the operation", status, error);
  }
  lt::Handle handle = nullptr;
  const Plan* plan = find_plan(lib, args, key, operation, type, compute, &handle, error);
  if (plan == nullptr) return 1;
  const double alpha64 = args.alpha, beta64 = key.residual ? args.beta : 0.0;
  const float alpha32 = args.alpha, beta32 = key.residual ? args.beta : 0.f;
  const bool wide = compute == lt::kComputeF64;
  const void* alpha = wide ? static_cast<const void*>(&alpha64) : &alpha32;
  const void* beta = wide ? static_cast<const void*>(&beta64) : &beta32;
  const lt::Status status =
      lib.api.matmul(handle, operation.desc, alpha, args.b, plan->a, args.a, plan->b, beta, key.residual ? args.c : args.d, plan->c,
                     args.d, plan->d, &plan->algorithm, args.workspace, size_t(key.workspace), stream);
  return status == lt::kSuccess ? 0 : failed(lib.api, "matmul", status, error);
}

int32_t gemm_algorithms(const Gemm& args, std::vector<ait_gemm_algorithm_v1>* found, std::string* error) {
  if (args.m == 0 || args.n == 0 || args.batch == 0) return 0;
  Library& lib = library();
  int type = 0, compute = 0, device = 0;
  if (open(args, lib, &type, &compute, &device, error) != 0) return 1;
  const Key key = key_of(args, device);
  if (!is_aligned(key)) return 0;
  Operation operation(lib.api);
  if (const lt::Status status = operation.make(args, compute); status != lt::kSuccess) {
    return failed(lib.api, "describing the operation", status, error);
  }
  std::unique_lock<std::shared_mutex> writing(lib.lock);
  const lt::Handle handle = find_handle(lib, key.device, error);
  if (handle == nullptr) return 1;
  Plan plan;
  Answer answer;
  const bool asked = describe_matrices(lib.api, args, key, type, &plan, error) == 0 &&
                     ask(lib.api, handle, args, key, matmul_of(operation, plan, type, compute), kAskedWorkspace, &answer, error) == 0;
  const lt::Matmul matmul = matmul_of(operation, plan, type, compute);
  for (int i = 0; asked && i < answer.count; ++i) {
    ait_gemm_algorithm_v1 description{};
    lt::Algorithm restored;
    if (!lt::describe(lib.api, answer.found[i].algorithm, &description)) continue;
    const int64_t room = std::min(key.workspace, lt::room_for(description, args));
    if (lt::takes(lib.api, handle, matmul, args, key.residual, room, description, &restored)) found->push_back(description);
  }
  destroy(lib.api, plan);
  return asked ? 0 : 1;
}

}  // namespace ait::runtime
