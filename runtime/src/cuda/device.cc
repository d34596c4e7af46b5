#include "device.h"

#include <cuda_runtime.h>

#include "error.h"

namespace ait::runtime {
namespace {

/// Throws if `status` is an error, and clears it where CUDA allows that.
void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  fail(ErrorKind::kRun, what, ": ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")");
}

cudaStream_t as_stream(void* stream) { return static_cast<cudaStream_t>(stream); }

class CudaEvent : public Event {
 public:
  CudaEvent() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "creating an event"); }
  ~CudaEvent() override { (void)cudaEventDestroy(event_); }
  void record(void* stream) override { check(cudaEventRecord(event_, as_stream(stream)), "recording an event"); }
  void wait(void* stream) override { check(cudaStreamWaitEvent(as_stream(stream), event_, 0), "waiting for an event"); }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaGraph : public Graph {
 public:
  explicit CudaGraph(cudaGraphExec_t exec) : exec_(exec) {}
  ~CudaGraph() override { (void)cudaGraphExecDestroy(exec_); }
  void launch(void* stream) override { check(cudaGraphLaunch(exec_, as_stream(stream)), "launching a CUDA graph"); }

 private:
  cudaGraphExec_t exec_;
};

/// A stream that waits for nothing else, used only to record graphs.
class CaptureStream {
 public:
  CaptureStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream"); }
  ~CaptureStream() { (void)cudaStreamDestroy(stream_); }
  CaptureStream(const CaptureStream&) = delete;
  CaptureStream& operator=(const CaptureStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class TimedEvent {
 public:
  TimedEvent() { check(cudaEventCreate(&event_), "creating an event"); }
  ~TimedEvent() { (void)cudaEventDestroy(event_); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  void record() const { check(cudaEventRecord(event_, nullptr), "recording an event"); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int id) : id_(id) {}

  DLDevice dl() const override { return {kDLCUDA, id_}; }
  std::string name() const override { return "cuda:" + std::to_string(id_); }
  size_t tensor_alignment() const override { return 16; }

  int enter() override {
    int previous = 0;
    check(cudaGetDevice(&previous), "asking for the current device");
    if (previous != id_) check(cudaSetDevice(id_), "selecting the device");
    return previous;
  }
  void leave(int previous) noexcept override {
    if (previous != id_) (void)cudaSetDevice(previous);
  }

  void* allocate(size_t bytes, const char* what) override {
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, bytes);
    if (status == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      size_t available = 0, total = 0;
      (void)cudaMemGetInfo(&available, &total);
      fail(ErrorKind::kMemory, "out of memory: ", what, " needs ", bytes, " bytes on ", name(), ", ", available, " of ", total,
           " bytes are free");
    }
    check(status, "allocating device memory");
    return data;
  }
  void release(void* data) noexcept override { (void)cudaFree(data); }
  void copy(void* to, const void* from, size_t bytes) override {
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copying memory");
    // A copy inside the device returns before it is done.
    check(cudaStreamSynchronize(nullptr), "copying memory");
  }

  void sync(void* stream) override { check(cudaStreamSynchronize(as_stream(stream)), "the run failed on the device"); }
  void sync_all() override { check(cudaDeviceSynchronize(), "an earlier run failed on the device"); }

  bool is_capturing(void* stream) override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(as_stream(stream), &status) != cudaSuccess) {
      (void)cudaGetLastError();
      return false;
    }
    return status != cudaStreamCaptureStatusNone;
  }

  std::unique_ptr<Event> make_event() override { return std::make_unique<CudaEvent>(); }

  std::unique_ptr<Graph> record(const std::function<bool(void*)>& body) override {
    const CaptureStream stream;
    if (cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
      (void)cudaGetLastError();
      return nullptr;
    }
    const bool launched = body(stream.get());
    cudaGraph_t graph = nullptr;
    cudaError_t status = cudaStreamEndCapture(stream.get(), &graph);
    cudaGraphExec_t exec = nullptr;
    if (status == cudaSuccess && launched) status = cudaGraphInstantiate(&exec, graph, 0);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    if (status != cudaSuccess || exec == nullptr) {
      (void)cudaGetLastError();
      return nullptr;
    }
    return std::make_unique<CudaGraph>(exec);
  }

  double seconds(const std::function<void()>& lead, const std::function<void()>& body) override {
    const TimedEvent begin, end;
    lead();
    begin.record();
    body();
    end.record();
    check(cudaEventSynchronize(end.get()), "timing failed on the device");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "reading a time");
    return double(milliseconds) * 1e-3;
  }

  size_t cache_bytes() override {
    int bytes = 0;
    check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, id_), "asking for the size of the L2 cache");
    return static_cast<size_t>(bytes);
  }

 private:
  int id_;
};

}  // namespace

const char* device_target() { return "cuda"; }

std::unique_ptr<Device> make_device(int id) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    (void)cudaGetLastError();
    fail(ErrorKind::kRun, "no CUDA device can be used: ", cudaGetErrorString(status),
         "; this model was compiled for target cuda: run it where nvidia-smi lists a card, or compile it for target cpu");
  }
  if (id < 0 || id >= count) fail(ErrorKind::kRun, "there is no cuda:", id, ": this machine has ", count, " CUDA device(s)");
  return std::make_unique<CudaDevice>(id);
}

}  // namespace ait::runtime
