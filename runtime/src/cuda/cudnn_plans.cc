#include "cudnn_plans.h"

#include <dlfcn.h>
#include <glob.h>

#include <utility>

namespace ait::runtime::dnn {
namespace {

constexpr size_t kPlans = 128;

/// cuDNN compiles kernels with NVRTC, which looks for a part of itself by name only: in pip's folders nothing finds it, unless it is there
/// already.
void load_compiler_part(const std::string& cudnn) {
  const std::string pattern = cudnn.substr(0, cudnn.rfind('/') + 1) + "../../{cu13,cuda_nvrtc}/lib/libnvrtc-builtins.so.*";
  glob_t found{};
  if (glob(pattern.c_str(), GLOB_BRACE, nullptr, &found) == 0) (void)dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_LOCAL);
  globfree(&found);
}

/// The text of an error, which is cleared: no later launch may take it for its own. Empty for a success.
std::string reason_of(cudaError_t status) {
  if (status == cudaSuccess) return {};
  (void)cudaGetLastError();
  return cudaGetErrorString(status);
}

void CUDART_CB unpin(void* plan) { static_cast<Plan*>(plan)->pins.fetch_sub(1); }

}  // namespace

Library::Library() {
  const std::vector<std::string> places = places_of(kLibrary);
  for (const std::string& path : places) {
    if (path.find('/') != std::string::npos) load_compiler_part(path);
  }
  loaded = api.load(places, &error);
}

Library& Library::get() {
  static Library* instance = new Library;
  return *instance;
}

Handle Library::handle_of(int device, std::string* reason) {
  Handle& handle = handles_[device];
  if (handle != nullptr) return handle;
  if (const Status status = api.create(&handle); status != kSuccess) {
    handle = nullptr;
    *reason = std::string("cuDNN: creating a handle: ") + api.status_text(status);
  }
  return handle;
}

Plan* Library::find(const PlanKey& key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  plans_.splice(plans_.begin(), plans_, found->second);
  return found->second->second.get();
}

Plan* Library::keep(const PlanKey& key, std::unique_ptr<Plan> plan, std::string* reason) {
  if (*reason = evict(); !reason->empty()) return nullptr;
  plans_.emplace_front(key, std::move(plan));
  index_.emplace(key, plans_.begin());
  return plans_.front().second.get();
}

/// Makes room for one more plan. Kernels of a plan that goes may still run, so the device is waited for.
std::string Library::evict() {
  bool waited = false;
  for (auto it = plans_.end(); plans_.size() >= kPlans && it != plans_.begin();) {
    --it;
    if (it->second->pins.load() != 0) continue;
    if (!waited) {
      if (std::string reason = reason_of(cudaDeviceSynchronize()); !reason.empty()) return "an earlier run failed on the device: " + reason;
    }
    waited = true;
    index_.erase(it->first);
    it = plans_.erase(it);
  }
  return {};
}

std::string find_capture(void* stream, int* device, cudaGraph_t* recorded) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  cudaError_t status = cudaGetDevice(device);
  if (status == cudaSuccess) status = cudaStreamGetCaptureInfo(static_cast<cudaStream_t>(stream), &capture, nullptr, &graph);
  if (status != cudaSuccess) return reason_of(status);
  if (capture == cudaStreamCaptureStatusInvalidated) {
    return "the capture of the stream is not valid any more, perhaps because a library was loaded during it: run once before";
  }
  *recorded = capture == cudaStreamCaptureStatusActive ? graph : nullptr;
  return {};
}

std::string finish_launches(void* stream, int device, cudaGraph_t recorded) {
  const auto on = static_cast<cudaStream_t>(stream);
  cudaError_t status = cudaSuccess;
  if (recorded == nullptr) {
    static std::unordered_map<int, void*> places;  // of 4 bytes that nobody reads; the caller holds the lock
    void*& place = places[device];
    if (place == nullptr) status = cudaMalloc(&place, 4);
    if (status == cudaSuccess) status = cudaMemsetAsync(place, 0, 4, on);
  } else {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t* before = nullptr;
    const cudaGraphEdgeData* edges = nullptr;
    size_t count = 0;
    cudaGraphNode_t node = nullptr;
    status = cudaStreamGetCaptureInfo(on, &capture, nullptr, nullptr, &before, &edges, &count);
    if (status == cudaSuccess) status = cudaGraphAddEmptyNode(&node, recorded, before, count);
    if (status == cudaSuccess) status = cudaStreamUpdateCaptureDependencies(on, &node, nullptr, 1, cudaStreamSetCaptureDependencies);
  }
  return reason_of(status);
}

bool pin(Plan* plan, cudaGraph_t graph) {
  cudaUserObject_t object = nullptr;
  plan->pins.fetch_add(1);
  if (cudaUserObjectCreate(&object, plan, unpin, 1, cudaUserObjectNoDestructorSync) != cudaSuccess) {
    plan->pins.fetch_sub(1);
    (void)cudaGetLastError();
    return false;
  }
  if (cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove) == cudaSuccess) return true;
  (void)cudaGetLastError();
  (void)cudaUserObjectRelease(object, 1);  // which unpins
  return false;
}

}  // namespace ait::runtime::dnn
