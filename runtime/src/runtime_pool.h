/// @file runtime_pool.h
/// @brief The runtimes of a model: each has the memory of one run, so that several runs may be under way.
#ifndef AIT_RUNTIME_RUNTIME_POOL_H_
#define AIT_RUNTIME_RUNTIME_POOL_H_

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "device.h"
#include "graph_cache.h"

namespace ait::runtime {

/// @brief An arena, the graphs recorded over it, and the stream that used it last.
struct Runtime {
  explicit Runtime(Device& device, const Lender& arenas = nullptr) : lender(arenas), arena(std::make_unique<DeviceBuffer>(device, arenas)) {}

  /// Makes room in the arena. One that a graph of the caller's was recorded over is kept as long as the model: the
  /// caller may replay it at any time.
  void make_room(Device& device, size_t bytes, const char* what) {
    graphs.clear();
    if (is_recorded) {
      kept.push_back(std::move(arena));
      arena = std::make_unique<DeviceBuffer>(device, lender);
      is_recorded = false;
    }
    arena->grow(bytes, what);
  }

  /// Records the event: later launches begin only after all earlier launches have ended.
  void mark(Device& device, void* stream) {
    if (event == nullptr) event = device.make_event();
    event->record(stream);
  }

  /// After a failure: nothing that the failed run has launched or recorded is used again. The memory of graphs of the caller's stays.
  void replace(Device& device) noexcept {
    try {
      device.sync(last_stream);
    } catch (const Error&) {
      // The failure was reported already.
    }
    graphs.clear();
    event.reset();
    pending = false;
    if (!is_recorded) arena->reset();
  }

  Lender lender;  ///< of arenas; null: they are the device's own memory
  std::unique_ptr<DeviceBuffer> arena;
  std::vector<std::unique_ptr<DeviceBuffer>> kept;  ///< earlier arenas, which graphs of the caller's use
  bool is_recorded = false;                         ///< a graph of the caller's uses the arena
  GraphCache graphs;
  std::unique_ptr<Event> event;   ///< end of the last run, made when a run is first left going on
  void* last_stream = nullptr;
  bool pending = false;           ///< a run was left going on `last_stream`
};

/// @brief Lends runtimes; a caller waits while all are lent.
class RuntimePool {
 public:
  RuntimePool(Device& device, int size, const Lender& arenas) {
    for (int i = 0; i < size; ++i) {
      runtimes_.push_back(std::make_unique<Runtime>(device, arenas));
      idle_.push_back(runtimes_.back().get());
    }
  }

  /// A runtime lent for a scope.
  class Lease {
   public:
    Lease(RuntimePool& pool, void* stream) : pool_(pool), runtime_(pool.acquire(stream)) {}
    ~Lease() { pool_.release(runtime_); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Runtime& operator*() const { return *runtime_; }

   private:
    RuntimePool& pool_;
    Runtime* runtime_;
  };

  int size() const { return static_cast<int>(runtimes_.size()); }
  /// How many runs had to wait for a runtime.
  int64_t waits() const { return waits_.load(); }

 private:
  /// Prefers the runtime that last ran on `stream`: its graphs fit, and there is nothing to wait for.
  Runtime* acquire(void* stream) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (idle_.empty()) ++waits_;
    released_.wait(lock, [this] { return !idle_.empty(); });
    size_t choice = idle_.size() - 1;
    for (size_t i = 0; i < idle_.size(); ++i) {
      if (idle_[i]->last_stream == stream) choice = i;
    }
    Runtime* runtime = idle_[choice];
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(choice));
    return runtime;
  }

  void release(Runtime* runtime) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      idle_.push_back(runtime);
    }
    released_.notify_one();
  }

  std::atomic<int64_t> waits_{0};
  std::mutex mutex_;
  std::condition_variable released_;
  std::vector<std::unique_ptr<Runtime>> runtimes_;
  std::vector<Runtime*> idle_;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_RUNTIME_POOL_H_
