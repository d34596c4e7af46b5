/// @file device.h
/// @brief The functions that the runtime library needs from a device. `src/cpu` and `src/gpu` each have one implementation.
#ifndef AIT_RUNTIME_DEVICE_H_
#define AIT_RUNTIME_DEVICE_H_

#include <dlpack/dlpack.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ait/model_abi.h"
#include "error.h"

namespace ait::runtime {

/// @brief A recorded run that can be launched again as one unit.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void launch(void* stream) = 0;
  /// Takes the arguments of the launches of `body`, which launches the same kernels, without building the graph again. If false is returned,
  /// the graph cannot be used any more.
  virtual bool update(const std::function<bool(void* stream)>& body) = 0;
};

/// @brief A point in a stream that another stream can wait for.
class Event {
 public:
  virtual ~Event() = default;
  virtual void record(void* stream) = 0;
  /// Makes later work on `stream` wait for the recorded point; does not block the caller.
  virtual void wait(void* stream) = 0;
};

/// @brief A stream that waits for no other.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void* get() const = 0;
};

/// @brief Points in the work of the device, and the times at which it came to them.
class Timeline {
 public:
  virtual ~Timeline() = default;
  virtual void mark(void* stream) = 0;
  /// Waits for all marks; returns the seconds from the first one to each, and forgets them.
  virtual std::vector<double> seconds() = 0;
};

class DeviceBuffer;
class Device;

/// @brief Lends memory of an allocator that is not the device's: the caller's framework's. The memory goes back with the last reference. Null
/// where there is no such allocator now.
using Lender = std::function<std::shared_ptr<void>(Device& device, size_t bytes)>;

/// @brief A copy of `shape` elements of `element` bytes.
struct StridedCopy {
  void* to;
  const void* from;
  std::vector<int64_t> shape, to_strides, from_strides;
  size_t element;

  /// Whether kernels can make it: there are not too many dims, addresses are of whole elements, and no stride is below 0.
  bool fits_kernels() const {
    const auto is_whole = [this](const void* address) { return reinterpret_cast<uintptr_t>(address) % element == 0; };
    const auto grows = [](const std::vector<int64_t>& strides) { return std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s >= 0; }); };
    return shape.size() <= AIT_MAX_COPY_RANK && is_whole(to) && is_whole(from) && grows(to_strides) && grows(from_strides);
  }
};

class Device {
 public:
  virtual ~Device() = default;

  virtual DLDevice dl() const = 0;
  /// "cpu", "cuda:0": the spelling of the frameworks.
  virtual std::string name() const = 0;
  /// Bytes to which the caller's tensors must be aligned; 1 where the element's own alignment is enough.
  virtual size_t tensor_alignment() const = 0;

  /// Makes this device current for the calling thread; `leave` takes the returned value and restores the previous
  /// device.
  virtual int enter() = 0;
  virtual void leave(int previous) noexcept = 0;

  /// 256-byte aligned memory, freed by `release`. Throws an Error of kind kMemory that says how much was asked (`what`) and is free.
  virtual void* allocate(size_t bytes, const char* what) = 0;
  virtual void release(void* data) noexcept = 0;
  /// Copies in any direction between host and device, and returns when it is done.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  /// Copies in any direction, after the work on `stream`. Memory of the host may be changed when it returns, unless it
  /// is page-locked.
  virtual void copy_on(void* to, const void* from, size_t bytes, void* stream) = 0;
  /// Stores the value of a constant as `packing` says, which is not AIT_ROWS. Throws an Error of kind kRun where the device has no such layout.
  virtual void pack(void* to, const void* from, const ait_constant_v1& constant, const ait_packing_v1& packing) {
    (void)to, (void)from;
    fail(ErrorKind::kRun, "constant '", constant.name, "' has layout ", packing.layout, ", which ", name(), " does not know: compile the model again");
  }

  /// Copies elements between tensors of one shape on the device, after the work on `stream`. Strides are in elements.
  virtual void copy_strided(const StridedCopy& copy, void* stream) = 0;

  virtual void sync(void* stream) = 0;
  virtual void sync_all() = 0;
  /// Watches that what is on `stream`, which has collectives, ends in time.
  virtual void watch_collectives(void* stream) { (void)stream; }
  /// Throws an Error of kind kRun if the ranks cannot exchange data any more.
  virtual void check_collectives() {}
  /// True while the caller records `stream` into a graph of their own.
  virtual bool is_capturing(void* stream) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual std::unique_ptr<Timeline> make_timeline() = 0;
  /// Gives the stream work, in `scratch`, for the time in which the host makes `launches` launches.
  virtual void occupy(DeviceBuffer& scratch, int launches, void* stream) = 0;
  /// Whether a profiler is told which launch the host makes. Throws an Error of kind kInput if that is asked for and cannot be done.
  virtual bool has_ranges() const { return false; }
  /// Opens a range that a profiler shows under `name`, for what this thread launches until it is closed.
  virtual void open_range(const char* name) { (void)name; }
  virtual void close_range() {}
  /// Whether `record` can record anything here.
  virtual bool has_graphs() const = 0;
  /// Records the launches of `body` on the stream that it gets, without running them. Null if recording failed (the
  /// device is usable after it).
  virtual std::unique_ptr<Graph> record(const std::function<bool(void* stream)>& body) = 0;

  /// Seconds that what `body` launches on the default stream takes, with `lead` launched just before, so that the device is at work
  /// while the host launches `body`. Returns when both are done.
  virtual double seconds(const std::function<void()>& lead, const std::function<void()>& body) = 0;
  /// Bytes of the last cache before memory.
  virtual size_t cache_bytes() = 0;

  std::atomic<int64_t> buffer_bytes{0};  ///< in all buffers of this device object
};

/// @brief Makes a device current for a scope.
class DeviceScope {
 public:
  explicit DeviceScope(Device& device) : device_(device), previous_(device.enter()) {}
  ~DeviceScope() { device_.leave(previous_); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device& device_;
  int previous_;
};

/// @brief Memory of a device that is freed with its owner.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(Device& device, Lender lender = nullptr) : device_(device), lender_(std::move(lender)) {}
  ~DeviceBuffer() { reset(); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  /// Makes room for at least `bytes`; the contents are lost if the buffer moves. After an exception the buffer is
  /// empty.
  void grow(size_t bytes, const char* what) {
    if (bytes <= bytes_) return;
    reset();
    constexpr size_t kAlignment = 256;
    if (lender_ != nullptr) lent_ = lender_(device_, bytes + kAlignment - 1);
    data_ = lent_ == nullptr ? device_.allocate(bytes, what) : aligned(lent_.get(), kAlignment);
    bytes_ = bytes;
    device_.buffer_bytes += static_cast<int64_t>(bytes);
  }

  /// Takes memory of another owner, 256-byte aligned, which goes back with the last reference.
  void take(std::shared_ptr<void> memory, size_t bytes) noexcept {
    reset();
    lent_ = std::move(memory);
    data_ = lent_.get();
    bytes_ = bytes;
    device_.buffer_bytes += static_cast<int64_t>(bytes);
  }

  void reset() noexcept {
    if (data_ != nullptr && lent_ == nullptr) device_.release(data_);
    lent_.reset();
    device_.buffer_bytes -= static_cast<int64_t>(bytes_);
    data_ = nullptr;
    bytes_ = 0;
  }

 private:
  static void* aligned(void* data, size_t alignment) {
    return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(data) + alignment - 1) / alignment * alignment);
  }

  Device& device_;
  Lender lender_;
  std::shared_ptr<void> lent_;  ///< holds the memory where it is not the device's own
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

/// @brief The value of `ait_model_v1::target` that this runtime library runs.
const char* device_target();

/// @brief Opens device number `id`. Throws an Error of kind kRun when there is none.
std::unique_ptr<Device> make_device(int id);

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_DEVICE_H_
