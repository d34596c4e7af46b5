/// @file cudnn.cc
/// @brief `library_attention` on cuDNN. A plan is made for each shape, with its strides, at its first use, and kept; the least recently
/// used one goes when there are too many, unless a recorded CUDA graph still launches its kernels.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "ait/attention_service.h"
#include "cudnn_api.h"
#include "cudnn_sdpa.h"

namespace ait::runtime {
namespace {

constexpr size_t kPlans = 128;

/// What a plan depends on. Only 64-bit members: compared and hashed as bytes.
struct Key {
  int64_t device, dtype, mask_dtype, causal, algo, batch, heads, groups, rows, cols, depth, width, window, scale, workspace;
  int64_t strides[12], strides_mask[4];

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

Key key_of(const ait_attention_v1& args, int device) {
  Key key{};
  key.device = device, key.dtype = args.dtype, key.mask_dtype = args.mask != nullptr ? args.mask_dtype : -1;
  key.causal = args.causal != 0, key.algo = args.algo, key.batch = args.batch, key.heads = args.heads, key.groups = args.groups;
  key.rows = args.rows, key.cols = args.cols, key.depth = args.depth, key.width = args.width, key.window = args.window;
  memcpy(&key.scale, &args.scale, sizeof args.scale);
  key.workspace = args.workspace_bytes;
  const int64_t* strides[] = {args.strides_q, args.strides_k, args.strides_v, args.strides_o};
  for (int i = 0; i < 4; ++i) memcpy(key.strides + 3 * i, strides[i], 3 * sizeof(int64_t));
  if (args.mask != nullptr) memcpy(key.strides_mask, args.strides_mask, sizeof key.strides_mask);
  return key;
}

/// cuDNN compiles kernels with NVRTC, which looks for a part of itself by name only: in pip's folders nothing finds it, unless it is there
/// already.
void load_compiler_part(const std::string& cudnn) {
  const std::string pattern = cudnn.substr(0, cudnn.rfind('/') + 1) + "../../{cu13,cuda_nvrtc}/lib/libnvrtc-builtins.so.*";
  glob_t found{};
  if (glob(pattern.c_str(), GLOB_BRACE, nullptr, &found) == 0) (void)dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_LOCAL);
  globfree(&found);
}

/// cuDNN, its handles, and the plans. Lives until the process ends, as the driver may be gone before static destructors run.
struct Library {
  dnn::Api api;
  bool loaded = false;
  std::string error;
  std::mutex lock;  // a handle has one stream at a time; held while a plan is made, and for a launch
  std::unordered_map<int, dnn::Handle> handles;
  using Entry = std::pair<Key, std::unique_ptr<dnn::SdpaPlan>>;
  std::list<Entry> plans;  // the most recently used first
  std::unordered_map<Key, std::list<Entry>::iterator, KeyHash> index;

  Library() {
    std::vector<std::string> candidates;
    if (const char* named = getenv("AIT_CUDNN"); named != nullptr && *named != 0) candidates.push_back(named);
    for (const std::string& path : attention_library_candidates()) candidates.push_back(path);
    candidates.push_back("libcudnn.so.9");
    for (const std::string& path : candidates) {
      if (path.find('/') != std::string::npos) load_compiler_part(path);
    }
    loaded = api.load(candidates, &error);
  }

  dnn::Handle handle_of(int device, std::string* reason) {
    dnn::Handle& handle = handles[device];
    if (handle != nullptr) return handle;
    if (const dnn::Status status = api.create(&handle); status != dnn::kSuccess) {
      handle = nullptr;
      *reason = std::string("cuDNN: creating a handle: ") + api.status_text(status);
    }
    return handle;
  }

  /// Room for one more plan. Kernels of a plan that goes may still run, so the device is waited for.
  void evict() {
    bool waited = false;
    for (auto it = plans.end(); plans.size() >= kPlans && it != plans.begin();) {
      --it;
      if (it->second->pins.load() != 0) continue;
      if (!waited) (void)cudaDeviceSynchronize();
      waited = true;
      index.erase(it->first);
      it = plans.erase(it);
    }
  }
};

Library& library() {
  static Library* instance = new Library;
  return *instance;
}

std::string describe(const ait_attention_v1& args) {
  return "an attention of batch " + std::to_string(args.batch) + ", " + std::to_string(args.heads) + " heads in " +
         std::to_string(args.groups) + " groups, " + std::to_string(args.rows) + " x " + std::to_string(args.cols) + ", widths " +
         std::to_string(args.depth) + " and " + std::to_string(args.width) + (args.causal ? ", causal" : "") +
         (args.window > 0 ? ", window " + std::to_string(args.window) : "") + (args.mask != nullptr ? ", masked" : "");
}

bool misaligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 != 0; }

void CUDART_CB unpin(void* plan) { static_cast<dnn::SdpaPlan*>(plan)->pins.fetch_sub(1); }

/// Ties the plan to the graph that `stream` records: it stays until the graph, and what was instantiated of it, are gone.
bool pin(dnn::SdpaPlan* plan, cudaGraph_t graph) {
  cudaUserObject_t object = nullptr;
  plan->pins.fetch_add(1);
  if (cudaUserObjectCreate(&object, plan, unpin, 1, cudaUserObjectNoDestructorSync) != cudaSuccess) {
    plan->pins.fetch_sub(1);
    return false;
  }
  if (cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove) == cudaSuccess) return true;
  (void)cudaUserObjectRelease(object, 1);  // which unpins
  return false;
}

}  // namespace

int32_t library_attention(const ait_attention_v1* args, void* stream, std::string* error) {
  if (args->batch == 0 || args->heads == 0 || args->rows == 0) return 0;
  Library& lib = library();
  if (!lib.loaded) {
    *error = lib.error;
    return 1;
  }
  if (args->dtype != AIT_F16 && args->dtype != AIT_BF16) {
    *error = "the library attention computes f16 and bf16, not dtype " + std::to_string(args->dtype);
    return 1;
  }
  if (args->cols == 0 || ((args->causal || args->window > 0) && args->rows > args->cols)) {
    *error = "the library attention needs a column for each row: " + describe(*args);
    return 1;
  }
  if (misaligned(args->q) || misaligned(args->k) || misaligned(args->v) || misaligned(args->o)) {
    *error = "the library attention needs q, k, v and the result on 16-byte boundaries: compile with another kernel for this attention";
    return 1;
  }
  if (lib.api.version() == 91400 && args->window > 0 && !args->causal && args->cols > 1024) {
    *error = "cuDNN 9.14.0 is known to be wrong for " + describe(*args) + ": install a later one";
    return 1;
  }
  int device = 0;
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) {
    status = cudaStreamGetCaptureInfo(static_cast<cudaStream_t>(stream), &capture, nullptr, &graph);
  }
  if (status != cudaSuccess) {
    *error = std::string("the library attention: ") + cudaGetErrorString(status);
    return 1;
  }
  const bool capturing = capture == cudaStreamCaptureStatusActive;
  const Key key = key_of(*args, device);

  const std::lock_guard<std::mutex> held(lib.lock);
  const dnn::Handle handle = lib.handle_of(device, error);
  if (handle == nullptr) return 1;
  auto found = lib.index.find(key);
  if (found == lib.index.end()) {
    if (capturing) {
      *error = "cuDNN has no plan yet for " + describe(*args) + ", and cannot make one while a stream is captured: run once before";
      return 1;
    }
    auto plan = std::make_unique<dnn::SdpaPlan>(lib.api);
    if (!plan->make(*args, handle)) {
      *error = "cuDNN " + std::to_string(lib.api.version()) + " cannot compute " + describe(*args) + ":" + plan->error();
      return 1;
    }
    lib.evict();
    lib.plans.emplace_front(key, std::move(plan));
    found = lib.index.emplace(key, lib.plans.begin()).first;
  }
  lib.plans.splice(lib.plans.begin(), lib.plans, found->second);
  dnn::SdpaPlan* plan = found->second->second.get();
  if (capturing && !pin(plan, graph)) {
    *error = "the plan of an attention cannot be tied to the CUDA graph that launches it";
    return 1;
  }
  std::string reason;
  if (const dnn::Status set = lib.api.set_stream(handle, stream); set != dnn::kSuccess) {
    reason = lib.api.status_text(set);
  } else {
    reason = plan->execute(*args, handle);
  }
  if (reason.empty()) return 0;
  *error = "cuDNN: " + describe(*args) + ": " + reason;
  return 1;
}

}  // namespace ait::runtime
