#include "device.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "error.h"
#include "forks.h"
#include "gpu/api.h"
#include "gpu/collective.h"
#include "gpu/ranges.h"
#include "strided.h"

namespace ait::runtime {
namespace {

/// Throws if `status` is an error, and clears it where the platform allows that.
void check(gpu::Error status, const char* what) {
  if (status == gpu::kSuccess) return;
  (void)GPU(GetLastError)();
  fail(ErrorKind::kRun, what, ": ", GPU(GetErrorString)(status), " (", GPU(GetErrorName)(status), ")");
}

/// Fails in a process whose parent used the device before the fork: the platform does not work there any more.
void check_fork(int forks_of_use) {
  if (forks_of_use == forks()) return;
  fail(ErrorKind::kRun, gpu::kPlatform, " was used before this process was forked, and does not work in a forked process: start processes with "
                        "the method \"spawn\", or load models only after the fork");
}

gpu::Stream as_stream(void* stream) { return static_cast<gpu::Stream>(stream); }

class GpuEvent : public Event {
 public:
  GpuEvent() { check(GPU(EventCreateWithFlags)(&event_, GPU(EventDisableTiming)), "creating an event"); }
  ~GpuEvent() override { (void)GPU(EventDestroy)(event_); }
  void record(void* stream) override { check(GPU(EventRecord)(event_, as_stream(stream)), "recording an event"); }
  void wait(void* stream) override { check(GPU(StreamWaitEvent)(as_stream(stream), event_, 0), "waiting for an event"); }

 private:
  GPU(Event_t) event_ = nullptr;
};

class GpuStream : public Stream {
 public:
  GpuStream() { check(GPU(StreamCreateWithFlags)(&stream_, GPU(StreamNonBlocking)), "creating a stream"); }
  ~GpuStream() override { (void)GPU(StreamDestroy)(stream_); }
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;
  void* get() const override { return stream_; }

 private:
  gpu::Stream stream_ = nullptr;
};

/// Shared by what is being recorded: to wait for a whole device is an error while any stream of it records, and ends that recording.
std::shared_mutex& recordings() {
  static std::shared_mutex mutex;
  return mutex;
}

/// The launches of `body`, as a graph that the caller destroys; null if they cannot be recorded.
GPU(Graph_t) capture(const std::function<bool(void*)>& body) {
  const std::shared_lock<std::shared_mutex> recording(recordings());
  const GpuStream stream;
  if (GPU(StreamBeginCapture)(as_stream(stream.get()), GPU(StreamCaptureModeThreadLocal)) != gpu::kSuccess) {
    (void)GPU(GetLastError)();
    return nullptr;
  }
  const bool launched = body(stream.get());
  GPU(Graph_t) graph = nullptr;
  const gpu::Error status = GPU(StreamEndCapture)(as_stream(stream.get()), &graph);
  if (status == gpu::kSuccess && launched) return graph;
  (void)GPU(GetLastError)();
  if (graph != nullptr) (void)GPU(GraphDestroy)(graph);
  return nullptr;
}

class GpuGraph : public Graph {
 public:
  explicit GpuGraph(GPU(GraphExec_t) exec) : exec_(exec) {}
  ~GpuGraph() override { (void)GPU(GraphExecDestroy)(exec_); }
  void launch(void* stream) override { check(GPU(GraphLaunch)(exec_, as_stream(stream)), "launching a graph"); }
  bool update(const std::function<bool(void*)>& body) override {
    GPU(Graph_t) graph = capture(body);
    if (graph == nullptr) return false;
#if defined(AIT_HIP)
    hipGraphNode_t node = nullptr;
    hipGraphExecUpdateResult result{};
    const gpu::Error status = hipGraphExecUpdate(exec_, graph, &node, &result);
#else
    cudaGraphExecUpdateResultInfo result{};
    const gpu::Error status = cudaGraphExecUpdate(exec_, graph, &result);
#endif
    (void)GPU(GraphDestroy)(graph);
    if (status != gpu::kSuccess) (void)GPU(GetLastError)();
    return status == gpu::kSuccess;
  }

 private:
  GPU(GraphExec_t) exec_;
};

class TimedEvent {
 public:
  TimedEvent() { check(GPU(EventCreate)(&event_), "creating an event"); }
  ~TimedEvent() { (void)GPU(EventDestroy)(event_); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  void record(void* stream = nullptr) const { check(GPU(EventRecord)(event_, as_stream(stream)), "recording an event"); }
  GPU(Event_t) get() const { return event_; }

 private:
  GPU(Event_t) event_ = nullptr;
};

class GpuTimeline : public Timeline {
 public:
  void mark(void* stream) override {
    if (used_ == events_.size()) events_.push_back(std::make_unique<TimedEvent>());
    events_[used_++]->record(stream);
  }
  std::vector<double> seconds() override {
    std::vector<double> found;
    for (size_t i = 0; i < used_; ++i) {
      float milliseconds = 0;
      check(GPU(EventSynchronize)(events_[i]->get()), "the run failed on the device");
      check(GPU(EventElapsedTime)(&milliseconds, events_[0]->get(), events_[i]->get()), "reading a time");
      found.push_back(double(milliseconds) * 1e-3);
    }
    used_ = 0;
    return found;
  }

 private:
  std::vector<std::unique_ptr<TimedEvent>> events_;
  size_t used_ = 0;
};

class GpuDevice : public Device {
 public:
  explicit GpuDevice(int id) : id_(id) {}

  DLDevice dl() const override { return {gpu::kIsRocm ? kDLROCM : kDLCUDA, id_}; }
  std::string name() const override { return gpu::kTarget + (":" + std::to_string(id_)); }
  size_t tensor_alignment() const override { return 16; }

  int enter() override {
    check_fork(forks_);
    int previous = 0;
    check(GPU(GetDevice)(&previous), "asking for the current device");
    if (previous != id_) check(GPU(SetDevice)(id_), "selecting the device");
    return previous;
  }
  void leave(int previous) noexcept override {
    if (previous != id_) (void)GPU(SetDevice)(previous);
  }

  void* allocate(size_t bytes, const char* what) override {
    void* data = nullptr;
    const gpu::Error status = GPU(Malloc)(&data, bytes);
    if (status == GPU(ErrorMemoryAllocation)) {
      (void)GPU(GetLastError)();
      size_t available = 0, total = 0;
      const std::string needed = "out of memory: " + std::string(what) + " needs " + std::to_string(bytes) + " bytes on " + name();
      if (GPU(MemGetInfo)(&available, &total) == gpu::kSuccess) {
        fail(ErrorKind::kMemory, needed, ", ", available, " of ", total, " bytes are free");
      }
      (void)GPU(GetLastError)();
      fail(ErrorKind::kMemory, needed);
    }
    check(status, "allocating device memory");
    return data;
  }
  void release(void* data) noexcept override { (void)GPU(Free)(data); }
  void copy(void* to, const void* from, size_t bytes) override {
    check(GPU(Memcpy)(to, from, bytes, GPU(MemcpyDefault)), "copying memory");
    // A copy inside the device returns before it is done.
    check(GPU(StreamSynchronize)(nullptr), "copying memory");
  }
  void copy_on(void* to, const void* from, size_t bytes, void* stream) override {
    check(GPU(MemcpyAsync)(to, from, bytes, GPU(MemcpyDefault), as_stream(stream)), "copying memory");
  }

  /// As copies of lines, each one launch: a line is as long as one axis.
  void copy_strided(const StridedCopy& copy, void* stream) override {
    for_each_line(copy, 2, [stream](char* to, const char* from, const StridedLines& lines) {
      const auto bytes = static_cast<int64_t>(lines.bytes);
      if (lines.count == 1 || (lines.to_stride >= bytes && lines.from_stride >= bytes)) {
        const auto pitch = [&](int64_t stride) { return lines.count == 1 ? lines.bytes : static_cast<size_t>(stride); };
        check(GPU(Memcpy2DAsync)(to, pitch(lines.to_stride), from, pitch(lines.from_stride), lines.bytes, static_cast<size_t>(lines.count),
                                 GPU(MemcpyDeviceToDevice), as_stream(stream)), "copying a strided tensor");
        return;
      }
      for (int64_t i = 0; i < lines.count; ++i) {  // expanded tensors, whose distance is 0
        check(GPU(MemcpyAsync)(to + i * lines.to_stride, from + i * lines.from_stride, lines.bytes, GPU(MemcpyDeviceToDevice), as_stream(stream)),
              "copying a strided tensor");
      }
    });
  }

  void sync(void* stream) override { check(GPU(StreamSynchronize)(as_stream(stream)), "the run failed on the device"); }
  void sync_all() override {
    const std::unique_lock<std::shared_mutex> alone(recordings());
    check(GPU(DeviceSynchronize)(), "an earlier run failed on the device");
  }

  void watch_collectives(void* stream) override { runtime::watch_collectives(stream); }
  void check_collectives() override {
    if (const std::string why = collectives_failure(); !why.empty()) fail(ErrorKind::kRun, why);
  }

  bool is_capturing(void* stream) override {
    GPU(StreamCaptureStatus) status = GPU(StreamCaptureStatusNone);
    if (GPU(StreamIsCapturing)(as_stream(stream), &status) != gpu::kSuccess) {
      (void)GPU(GetLastError)();
      return false;
    }
    return status != GPU(StreamCaptureStatusNone);
  }

  std::unique_ptr<Event> make_event() override { return std::make_unique<GpuEvent>(); }

  std::unique_ptr<Stream> make_stream() override { return std::make_unique<GpuStream>(); }
  std::unique_ptr<Timeline> make_timeline() override { return std::make_unique<GpuTimeline>(); }

  void occupy(DeviceBuffer& scratch, int launches, void* stream) override {
    // The host makes a launch in 5 us; the device writes at less than 10 TB/s, and is at work for 20 us with 200 MB at least.
    constexpr size_t kBytes = size_t{200} << 20;
    scratch.grow(kBytes, "the work that keeps the device busy before a run");
    const int times = std::min(1 + launches / 4, 256);
    for (int i = 0; i < times; ++i) check(GPU(MemsetAsync)(scratch.data(), 0, kBytes, as_stream(stream)), "writing memory");
  }

  bool has_ranges() const override { return runtime::has_ranges(); }
  void open_range(const char* name) override { runtime::open_range(name); }
  void close_range() override { runtime::close_range(); }

  bool has_graphs() const override { return true; }
  std::unique_ptr<Graph> record(const std::function<bool(void*)>& body) override {
    GPU(Graph_t) graph = capture(body);
    if (graph == nullptr) return nullptr;
    GPU(GraphExec_t) exec = nullptr;
    const gpu::Error status = GPU(GraphInstantiateWithFlags)(&exec, graph, 0);
    (void)GPU(GraphDestroy)(graph);
    if (status != gpu::kSuccess || exec == nullptr) {
      (void)GPU(GetLastError)();
      return nullptr;
    }
    return std::make_unique<GpuGraph>(exec);
  }

  double seconds(const std::function<void()>& lead, const std::function<void()>& body) override {
    const TimedEvent begin, end;
    lead();
    begin.record();
    body();
    end.record();
    check(GPU(EventSynchronize)(end.get()), "timing failed on the device");
    float milliseconds = 0;
    check(GPU(EventElapsedTime)(&milliseconds, begin.get(), end.get()), "reading a time");
    return double(milliseconds) * 1e-3;
  }

  size_t cache_bytes() override {
    int bytes = 0;
    check(GPU(DeviceGetAttribute)(&bytes, gpu::kCacheBytes, id_), "asking for the size of the L2 cache");
    return static_cast<size_t>(bytes);
  }

 private:
  int id_, forks_ = forks();
};

}  // namespace

const char* device_target() { return gpu::kTarget; }

std::unique_ptr<Device> make_device(int id) {
  static const int forks_of_first_use = forks();
  check_fork(forks_of_first_use);
  int count = 0;
  const gpu::Error status = GPU(GetDeviceCount)(&count);
  if (status != gpu::kSuccess) {
    (void)GPU(GetLastError)();
    fail(ErrorKind::kRun, "no ", gpu::kPlatform, " device can be used: ", GPU(GetErrorString)(status), "; this model was compiled for target ",
         gpu::kTarget, ": run it where ", gpu::kListsCards, " lists a card, or compile it for target cpu");
  }
  if (id < 0 || id >= count) {
    fail(ErrorKind::kRun, "there is no ", gpu::kTarget, ":", id, ": this machine has ", count, " ", gpu::kPlatform, " device(s)");
  }
  int lanes = 0;
  check(GPU(DeviceGetAttribute)(&lanes, gpu::kLanes, id), "asking for the lanes of a wave");
  if (lanes != gpu::kLanesNeeded) {
    fail(ErrorKind::kRun, gpu::kTarget, ":", id, " cannot be used: its waves have ", lanes, " lanes, the kernels need ", gpu::kLanesNeeded,
         ": run the model on a card of the architecture that it was compiled for, or compile it for target cpu");
  }
  return std::make_unique<GpuDevice>(id);
}

}  // namespace ait::runtime
