/// @file parallel.h
/// @brief Loops whose iterations threads of the CPU share, and the service "threads" that lends the threads.
///
/// A loop is cut into chunks. The calling thread takes one after the other, and so do the helpers of the runtime library that come to
/// it; the loop ends when all chunks are done. It never waits for a helper that has no chunk. Which thread takes a chunk makes no
/// difference to a result, so kernels give the same bits in each run.
#ifndef AIT_PARALLEL_H_
#define AIT_PARALLEL_H_

#include <sched.h>
#include <stdint.h>

#include <atomic>

#include "ait/service.h"

struct ait_threads_service_v1 {
  static constexpr const char* kName = "threads";
  static constexpr int32_t kVersion = 1;
  /// The threads that a loop of the calling thread may use, itself among them; 1 inside of a shared loop.
  int32_t (*count)(void);
  /// Calls `chunk(self, i)` for each i below `chunks`, on several threads, and returns when all calls have ended. Throws the first exception
  /// of a call; chunks that have not begun are then left out. `chunks` is at most AIT_MAX_CHUNKS.
  void (*run)(void (*chunk)(const void* self, int64_t i), const void* self, int64_t chunks);
};
#define AIT_MAX_CHUNKS (1 << 20)

namespace ait {

/// @brief The threads that a loop here may use; 1 in code that no runtime library loaded.
inline int num_threads() {
  const ait_threads_service_v1* const table = find_service<ait_threads_service_v1>();
  return table == nullptr ? 1 : int(table->count());
}

/// @brief The threads for a loop of so many multiplications: 1 where they take less time than another thread needs to begin.
inline int threads_for(int64_t products) { return products < 65536 ? 1 : num_threads(); }

namespace detail {

/// @brief The iterations of a loop in chunks of `size`.
template <class Each>
struct Chunks {
  const Each& each;
  int64_t count, size;

  static __attribute__((noinline)) void call(const void* self, int64_t i) {
    const Chunks& chunks = *static_cast<const Chunks*>(self);
    const int64_t first = i * chunks.size, left = chunks.count - first;
    chunks.each(first, left < chunks.size ? chunks.count : first + chunks.size);
  }
  void run() const {
    const int64_t chunks = (count + size - 1) / size;
    if (chunks == 1) return call(this, 0);
    find_service<ait_threads_service_v1>()->run(call, this, chunks);
  }
};

/// @brief Calls each(first, last) for ranges of at least `size` numbers that make up those below `count`.
template <class Each>
void run_chunks(int64_t count, int64_t size, const Each& each) {
  const int64_t least = (count + AIT_MAX_CHUNKS - 1) / AIT_MAX_CHUNKS;
  Chunks<Each>{each, count, size < least ? least : size}.run();
}

/// Chunks for each thread: where one is held up, the others take its work.
inline constexpr int64_t kChunksOfThread = 4;

/// The most pieces of a step of `parallel_steps`.
inline constexpr int64_t kMostPieces = 256;

/// @brief Work in steps, each of pieces that do not depend on each other; a step begins when all pieces of the one before have ended.
///
/// A thread prefers the same pieces in each step, in one order and then in the other, so that it finds in its cache what it read last. It takes
/// pieces of others when its own are done, so no step waits for a thread that has not come.
template <class Each>
class Steps {
 public:
  Steps(int64_t steps, int64_t pieces, int threads, const Each& each) : steps_(steps), pieces_(pieces), threads_(threads), each_(each) {
    for (int64_t piece = 0; piece < pieces; ++piece) begun_[piece].store(0, std::memory_order_relaxed);
  }

  /// Works on all steps that have not ended, as thread `number` of those below `threads`.
  void work(int64_t number) {
    const int64_t first = number * pieces_ / threads_, last = (number + 1) * pieces_ / threads_;
    for (int64_t step = ended_.load(std::memory_order_acquire) / pieces_; step < steps_; ++step) {
      for (int64_t looks = 0; ended_.load(std::memory_order_acquire) < step * pieces_; ++looks) wait(looks);
      const bool backward = step % 2 != 0;
      for (int64_t i = 0; i < last - first; ++i) take(step, backward ? last - 1 - i : first + i);
      for (int64_t i = 0; i < pieces_ - (last - first); ++i) take(step, (backward ? last + i : first - 1 - i + pieces_) % pieces_);
    }
  }

 private:
  void take(int64_t step, int64_t piece) {
    int64_t begun = step;
    if (!begun_[piece].compare_exchange_strong(begun, step + 1, std::memory_order_relaxed)) return;
    each_(step, piece);
    ended_.fetch_add(1, std::memory_order_release);
  }

  /// A thread that waits for long lets others run: the one that it waits for may need its processor.
  static void wait(int64_t looks) {
    constexpr int64_t kMostLooks = 1000;
    if (looks < kMostLooks) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      __asm__ volatile("yield");
#endif
    } else {
      sched_yield();
    }
  }

  const int64_t steps_, pieces_;
  const int threads_;
  const Each& each_;
  std::atomic<int64_t> ended_{0};              ///< pieces of all steps
  std::atomic<int64_t> begun_[kMostPieces];    ///< of each piece, how many steps have begun it
};

}  // namespace detail

/// @brief Calls each(first, last) for ranges of neighbours that make up the numbers below `count`; threads share the ranges if `is_shared`.
template <class Each>
void parallel_ranges(int64_t count, bool is_shared, const Each& each) {
  if (count <= 0) return;
  const int64_t threads = is_shared ? num_threads() : 1, chunks = threads == 1 ? 1 : detail::kChunksOfThread * threads;
  detail::run_chunks(count, (count + chunks - 1) / chunks, each);
}

/// @brief Calls each(i) for each i below `count`; threads share ranges of neighbours if `is_shared`. A lambda that captures by value is copied
/// for each range, so that compilers keep its values in registers.
template <class Each>
void parallel_for(int64_t count, bool is_shared, const Each& each) {
  parallel_ranges(count, is_shared, [&each](int64_t first, int64_t last) {
    const Each own = each;
    for (int64_t i = first; i < last; ++i) own(i);
  });
}

/// @brief Calls each(i) for each i below `count`, for tasks that are long: threads take one at a time if `threads` is more than 1.
template <class Each>
void parallel_tasks(int64_t count, int threads, const Each& each) {
  if (count <= 0) return;
  detail::run_chunks(count, threads == 1 ? count : 1, [&each](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) each(i);
  });
}

/// @brief Calls each(step, first, last) for ranges of neighbours that make up the numbers below `count`, in each step below `steps`; a step begins
/// when the one before has ended. `each` throws nothing. Threads share the ranges of a step if `threads` is more than 1.
template <class Each>
void parallel_steps(int64_t steps, int64_t count, int threads, const Each& each) {
  if (steps <= 0 || count <= 0) return;
  constexpr int64_t kMost = detail::kMostPieces / detail::kChunksOfThread;
  const int64_t wanted = threads == 1 ? 1 : detail::kChunksOfThread * (threads < kMost ? threads : kMost);
  const int64_t size = (count + wanted - 1) / wanted;
  const auto piece = [&each, count, size](int64_t step, int64_t i) { each(step, i * size, (i + 1) * size < count ? (i + 1) * size : count); };
  detail::Steps<decltype(piece)> all(steps, (count + size - 1) / size, threads, piece);
  detail::run_chunks(threads, 1, [&all](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) all.work(i);
  });
}

/// @brief Whether all of the tasks of a loop succeeded.
class AllOf {
 public:
  void note(bool done) {
    if (!done) all_.store(false, std::memory_order_relaxed);
  }
  bool all() const { return all_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> all_{true};
};

/// @brief The smallest of the numbers that threads note.
class Smallest {
 public:
  explicit Smallest(int64_t none) : least_(none) {}
  void note(int64_t number) {
    int64_t found = least_.load(std::memory_order_relaxed);
    while (number < found && !least_.compare_exchange_weak(found, number, std::memory_order_relaxed)) {
    }
  }
  int64_t get() const { return least_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> least_;
};

}  // namespace ait
#endif  // AIT_PARALLEL_H_
