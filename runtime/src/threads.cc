#include "threads.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "error.h"

namespace ait::runtime {
namespace {

/// The number that a variable begins with, before its end or a comma; 0 if that is no number of threads.
int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  char* end = nullptr;
  const long count = text == nullptr ? 0 : std::strtol(text, &end, 10);
  return count >= 1 && count <= 4096 && (*end == '\0' || *end == ',') ? static_cast<int>(count) : 0;
}

int count_threads() {
  for (const char* const variable : {"AIT_NUM_THREADS", "OMP_NUM_THREADS"}) {
    if (const int count = number_in(variable)) return count;
  }
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof mine, &mine) == 0) return std::max(1, CPU_COUNT(&mine));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

/// Threads that keep the first exception, and are joined whatever happens.
class Threads {
 public:
  ~Threads() { join(); }

  /// Starts `work(1)` to `work(count - 1)`. Returns why it could not start all of them, or null.
  std::exception_ptr start(size_t count, const std::function<void(size_t)>& work) {
    try {
      threads_.reserve(count);
      for (size_t i = 1; i < count; ++i) threads_.emplace_back([this, &work, i] { call(work, i); });
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }
  /// Calls `work(0)`, waits for the threads, and throws the first exception of all.
  void finish(const std::function<void(size_t)>& work) {
    call(work, 0);
    join();
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }
  void join() {
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  size_t size() const { return threads_.size(); }

 private:
  void call(const std::function<void(size_t)>& work, size_t i) {
    try {
      work(i);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (failure_ == nullptr) failure_ = std::current_exception();
    }
  }

  std::mutex mutex_;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace

int num_threads() {
  static const int count = count_threads();
  return count;
}

void run_threads(size_t count, const std::function<void(size_t)>& work) {
  // Work that starts threads of its own may end the process where there is no memory for them, so none begins before all threads are there.
  std::promise<bool> are_all_started;
  const auto started = are_all_started.get_future().share();
  const std::function<void(size_t)> when_started = [&](size_t i) {
    const auto mine = started;
    if (mine.get()) work(i);
  };
  Threads threads;
  const std::exception_ptr refusal = threads.start(count, when_started);
  are_all_started.set_value(refusal == nullptr);
  if (refusal == nullptr) return threads.finish(work);
  threads.join();
  try {
    std::rethrow_exception(refusal);
  } catch (const std::exception& error) {
    fail(ErrorKind::kMemory, "only ", threads.size() + 1, " of ", count, " threads could be started (", error.what(),
         "): use fewer, or allow the process more");
  }
}

void share_work(size_t count, const std::function<void()>& work) {
  if (count <= 1) return work();
  const auto each = [&work](size_t) { work(); };
  Threads threads;
  (void)threads.start(count, each);
  threads.finish(each);
}

}  // namespace ait::runtime
