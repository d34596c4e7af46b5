// A CUDA runtime of two devices in host memory, for tests of the runtime library on machines without a card. Work runs when it is launched;
// a capturing stream records it. Each call that can fail on a device is a step that a test can make fail. A launch checks that the memory it
// is given is of the current device.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

struct CUgraph_st {
  std::vector<std::function<void()>> nodes;
  std::map<CUstream_st*, bool> joined;  ///< the streams that are recorded, and whether another one waits for the last work of each
};
struct CUgraphExec_st : CUgraph_st {};
struct CUstream_st {
  CUgraph_st* recording = nullptr;
};
struct CUevent_st {
  CUstream_st* recorded_on = nullptr;
};

namespace {

constexpr int kDevices = 2;

struct Block {
  size_t bytes;
  int device;
};

std::mutex mutex;
std::map<char*, Block> blocks;
int64_t launches[kDevices];
int64_t events;   ///< how often one was recorded or waited for by a stream
std::set<cudaStream_t> used;  ///< the streams that launches were on
int64_t objects;  ///< streams, events and graphs that are not destroyed
thread_local int current = 0;
thread_local int64_t until_fault = -1;
thread_local cudaError_t last = cudaSuccess;

bool faulty() { return until_fault >= 0 && until_fault-- == 0; }
cudaError_t step(cudaError_t error = cudaErrorLaunchFailure) { return last = faulty() ? error : cudaSuccess; }
cudaError_t launch(cudaStream_t stream, std::function<void()> work) {
  if (step() != cudaSuccess) return last;
  if (stream != nullptr && stream->recording != nullptr) {
    stream->recording->nodes.push_back(std::move(work));
    stream->recording->joined[stream] = false;
  } else {
    work();
  }
  return cudaSuccess;
}
template <class T>
cudaError_t make(T** made) {
  if (step() != cudaSuccess) return last;
  *made = new T;
  const std::lock_guard<std::mutex> lock(mutex);
  ++objects;
  return cudaSuccess;
}
template <class T>
cudaError_t destroy(T* made) {
  delete made;
  const std::lock_guard<std::mutex> lock(mutex);
  --objects;
  return cudaSuccess;
}
int device_of(const void* place) {
  const std::lock_guard<std::mutex> lock(mutex);
  auto found = blocks.upper_bound(static_cast<char*>(const_cast<void*>(place)));
  if (found == blocks.begin()) return -1;
  --found;
  return static_cast<const char*>(place) < found->first + found->second.bytes ? found->second.device : -1;
}

}  // namespace

extern "C" {

// ** for tests **

void fake_fault_after(int64_t steps) { until_fault = steps; }
int64_t fake_steps_left() { return until_fault; }
int64_t fake_launches(int device) { return launches[device]; }
int64_t fake_objects() { return objects; }
int64_t fake_events() { return events; }
int64_t fake_streams() { return static_cast<int64_t>(used.size()); }
void fake_forget() {
  events = 0;
  used.clear();
}
int64_t fake_bytes(int device) {
  const std::lock_guard<std::mutex> lock(mutex);
  int64_t sum = 0;
  for (const auto& [place, block] : blocks) sum += block.device == device ? static_cast<int64_t>(block.bytes) : 0;
  return sum;
}
/// What the tiny model launches with: `work` begins with `count` addresses on the current device.
int ait_test_launch(void* stream, void (*body)(const void*), const void* work, size_t bytes, int count) {
  for (int i = 0; i < count; ++i) {
    const void* const place = static_cast<const void* const*>(work)[i];
    if (place != nullptr && device_of(place) != current) return 1;
  }
  std::vector<char> copy(static_cast<const char*>(work), static_cast<const char*>(work) + bytes);
  const int device = current;
  used.insert(static_cast<cudaStream_t>(stream));
  return launch(static_cast<cudaStream_t>(stream), [copy, body, device] {
           ++launches[device];
           body(copy.data());
         }) == cudaSuccess ? 0 : 2;
}

// ** the CUDA runtime **

cudaError_t cudaGetDeviceCount(int* count) { return *count = kDevices, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = current, cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return current = device, cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return step(); }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  return *value = which == cudaDevAttrWarpSize ? 32 : 1 << 20, cudaSuccess;
}
cudaError_t cudaGetLastError() {
  const cudaError_t found = last;
  last = cudaSuccess;
  return found;
}
const char* cudaGetErrorString(cudaError_t) { return "a fault of the test"; }
const char* cudaGetErrorName(cudaError_t) { return "fault"; }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) { return *free = *total = size_t{1} << 33, cudaSuccess; }
cudaError_t cudaMalloc(void** data, size_t bytes) {
  if (bytes > (size_t{1} << 33)) return last = cudaErrorMemoryAllocation;
  if (step(cudaErrorMemoryAllocation) != cudaSuccess) return last;
  if (posix_memalign(data, 256, bytes) != 0) return last = cudaErrorMemoryAllocation;
  const std::lock_guard<std::mutex> lock(mutex);
  blocks[static_cast<char*>(*data)] = {bytes, current};
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (blocks.erase(static_cast<char*>(data)) == 0) std::abort();
  }
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** data, size_t bytes, cudaStream_t) { return cudaMalloc(data, bytes); }
cudaError_t cudaFreeAsync(void* data, cudaStream_t) { return cudaFree(data); }
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  if (step() == cudaSuccess) std::memcpy(to, from, bytes);
  return last;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return launch(stream, [=] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind,
                              cudaStream_t stream) {
  return launch(stream, [=] {
    for (size_t i = 0; i < height; ++i) std::memcpy(static_cast<char*>(to) + i * to_pitch, static_cast<const char*>(from) + i * from_pitch, width);
  });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return launch(stream, [=] { std::memset(to, value, bytes); });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return make(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return destroy(stream); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return step(); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  ++events;
  CUstream_st* const from = event->recorded_on;
  if (from != nullptr && from->recording != nullptr && stream != nullptr) {  // what waits for recorded work is recorded, too
    from->recording->joined[from] = true;
    stream->recording = from->recording;
    stream->recording->joined.emplace(stream, false);
  }
  return step();
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream != nullptr && stream->recording != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, size_t*) {
  *id = 0;
  return cudaStreamIsCapturing(stream, status);
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) { return make(&stream->recording); }
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = stream->recording;
  cudaError_t found = cudaSuccess;
  for (const auto& [other, joined] : (*graph)->joined) {
    other->recording = nullptr;
    if (other != stream && !joined) found = cudaErrorStreamCaptureUnjoined;
  }
  stream->recording = nullptr;
  return last = found;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return destroy(graph); }
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (make(exec) == cudaSuccess) (*exec)->nodes = graph->nodes;
  return last;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return destroy(exec); }
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo*) {
  if (step() == cudaSuccess) exec->nodes = graph->nodes;
  return last;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return launch(stream, [exec] { for (const auto& node : exec->nodes) node(); });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return make(event); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return make(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return destroy(event); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  ++events;
  event->recorded_on = stream;
  return step();
}
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return step(); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) { return *milliseconds = 1, cudaSuccess; }

// What memory of other cards needs: these cards share none.
cudaError_t cudaDeviceGetPCIBusId(char* name, int bytes, int device) { return std::snprintf(name, size_t(bytes), "0000:%02x:00.0", device), cudaSuccess; }
cudaError_t cudaMemset(void* to, int value, size_t bytes) { return std::memset(to, value, bytes), step(); }
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) { return *data = std::malloc(bytes), cudaSuccess; }
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) { return last = cudaErrorNotSupported; }
cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) { return last = cudaErrorNotSupported; }
cudaError_t cudaIpcCloseMemHandle(void*) { return cudaSuccess; }

// What the library services use; no test of these gets there.
cudaError_t cudaUserObjectCreate(cudaUserObject_t*, void*, cudaHostFn_t, unsigned, unsigned) { return cudaErrorNotSupported; }
cudaError_t cudaUserObjectRelease(cudaUserObject_t, unsigned) { return cudaErrorNotSupported; }
cudaError_t cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t, unsigned, unsigned) { return cudaErrorNotSupported; }

}  // extern "C"
