#include "cpu/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>

#include "threads.h"

namespace ait::runtime {
namespace {

using Chunk = void (*)(const void* self, int64_t i);
using Word = std::atomic<uint32_t>;
static_assert(sizeof(Word) == 4 && Word::is_always_lock_free, "the kernel reads the word");

/// Sleeps until somebody wakes sleepers at the word, unless it is no longer `value`. Returns whether it slept.
bool sleep_at(Word& word, uint32_t value) { return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0) == 0; }
/// Wakes up to `count` sleepers; returns how many.
int wake_at(Word& word, int count) { return std::max(0, int(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0))); }

/// How long a thread looks again and again before it sleeps: about as long as the kernel takes to wake one.
constexpr std::chrono::microseconds kHelperSpins{50}, kCallerSpins{20};

/// The processor on which a thread was when it noted that. A thread that waits for one on its own processor keeps it from its work.
class Processor {
 public:
  void note() { number_.store(sched_getcpu(), std::memory_order_relaxed); }
  bool is_here() const { return number_.load(std::memory_order_relaxed) == sched_getcpu(); }

 private:
  std::atomic<int> number_{-1};
};

/// Looks until the word is no longer `value`, for a while, unless the one who changes it needs this processor; returns whether it has changed.
bool spin_at(const Word& word, uint32_t value, std::chrono::microseconds most, const Processor& others) {
  const auto late = std::chrono::steady_clock::now() + most;
  do {
    for (int i = 0; i < 32; ++i) {
      if (word.load(std::memory_order_acquire) != value) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      __asm__ volatile("yield");
#endif
    }
  } while (!others.is_here() && std::chrono::steady_clock::now() < late);
  return false;
}

thread_local bool in_loop = false;  ///< whether the thread computes a chunk: loops inside of it are not shared

/// @brief The loop of one caller. Jobs are never freed, so that a helper that comes late finds no chunk there, or those of the next loop.
class alignas(128) Job {
 public:
  /// Computes all chunks with at most `helpers` others; `announce` tells helpers that there is work.
  template <class Announce>
  void run(Chunk chunk, const void* self, int64_t chunks, int helpers, const Announce& announce) {
    std::exception_ptr failure;
    chunk_ = chunk, self_ = self, failure_ = &failure;
    has_failed_.store(false, std::memory_order_relaxed);
    helped_.store(0, std::memory_order_relaxed);
    left_.store(Left{0, uint32_t(chunks), uint32_t(helpers)}.bits(), std::memory_order_release);
    announce();
    in_loop = true;
    uint32_t own = 0;
    for (int64_t i = take(true, false); i >= 0; i = take(true, false), ++own) compute(i);
    in_loop = false;
    wait(uint32_t(chunks) - own);
    if (failure != nullptr) std::rethrow_exception(failure);
  }

  /// Computes chunks as a helper; returns whether there was one.
  bool help() {
    int64_t i = take(false, true);
    if (i < 0) return false;
    helper_.note();
    uint32_t own = 0;
    // While a chunk is not counted, the loop cannot end, so the next one is of the same loop.
    for (; i >= 0; i = take(false, false), ++own) compute(i);
    helped_.fetch_add(own, std::memory_order_seq_cst);
    if (is_waiting_.load(std::memory_order_seq_cst)) wake_at(helped_, 1);
    return true;
  }

 private:
  /// Chunks [first, last) that nobody has taken, and how many helpers may still come, in one number.
  struct Left {
    uint32_t first, last, room;
    static Left of(uint64_t bits) { return {uint32_t(bits & kMask), uint32_t(bits >> 24 & kMask), uint32_t(bits >> 48)}; }
    uint64_t bits() const { return uint64_t(first) | uint64_t(last) << 24 | uint64_t(room) << 48; }
    static constexpr uint64_t kMask = (1 << 24) - 1;
  };
  static_assert(AIT_MAX_CHUNKS < 1 << 24, "the number of a chunk has 24 bits");

  /// Takes the first chunk, or the last one: the caller and helpers begin at different ends, so that each finds in its cache what it computed
  /// in the loop before. Returns -1 if none is left.
  int64_t take(bool from_front, bool is_new) {
    uint64_t found = left_.load(std::memory_order_acquire);
    for (;;) {
      Left left = Left::of(found);
      if (left.first == left.last || (is_new && left.room == 0)) return -1;
      const uint32_t taken = from_front ? left.first++ : --left.last;
      left.room -= is_new;
      if (left_.compare_exchange_weak(found, left.bits(), std::memory_order_acq_rel, std::memory_order_acquire)) return taken;
    }
  }

  void compute(int64_t i) {
    if (has_failed_.load(std::memory_order_relaxed)) return;
    try {
      chunk_(self_, i);
    } catch (...) {
      if (!has_failed_.exchange(true, std::memory_order_relaxed)) *failure_ = std::current_exception();
    }
  }

  /// Waits until helpers have computed so many chunks.
  void wait(uint32_t chunks) {
    uint32_t found = helped_.load(std::memory_order_acquire);
    while (found != chunks) {
      if (!spin_at(helped_, found, kCallerSpins, helper_)) {
        is_waiting_.store(true, std::memory_order_seq_cst);
        if (helped_.load(std::memory_order_seq_cst) == found) (void)sleep_at(helped_, found);
        is_waiting_.store(false, std::memory_order_relaxed);
      }
      found = helped_.load(std::memory_order_acquire);
    }
  }

  std::atomic<uint64_t> left_{0};
  alignas(64) Word helped_{0};  ///< chunks that helpers have computed
  std::atomic<bool> is_waiting_{false};
  Processor helper_;  ///< of the helper that came last
  alignas(64) std::atomic<bool> has_failed_{false};
  Chunk chunk_ = nullptr;
  const void* self_ = nullptr;
  std::exception_ptr* failure_ = nullptr;  ///< of the caller: the first exception
};

/// @brief The helpers of the process, which start with its first shared loop, and the loops that they look at.
class Pool {
 public:
  Pool() = default;
  /// Ends the helpers, before their code goes away.
  ~Pool() {
    is_ending_.store(true);
    announce(INT_MAX);
    for (int i = 0; i < num_helpers_; ++i) pthread_join(helpers_[i], nullptr);
    std::free(helpers_);
  }

  void run(Chunk chunk, const void* self, int64_t chunks, int helpers) {
    const int slot = helpers > 0 ? open_slot() : -1;
    if (slot < 0) {
      for (int64_t i = 0; i < chunks; ++i) chunk(self, i);
      return;
    }
    if (!has_started_.load(std::memory_order_acquire)) start();
    struct Closing {
      std::atomic<uint64_t>& open;
      uint64_t bit;
      ~Closing() { open.fetch_and(~bit, std::memory_order_release); }
    } const closing{open_, uint64_t{1} << slot};
    const int wanted = int(std::min<int64_t>(helpers, chunks - 1));
    jobs_[slot].run(chunk, self, chunks, wanted, [this, wanted] { announce(wanted); });
  }

 private:
  void start() {
    const std::lock_guard<std::mutex> lock(starting_);
    if (has_started_.load(std::memory_order_relaxed)) return;
    sigset_t others, before;  // the program's threads take all signals but those for an instruction of a helper
    sigfillset(&others);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&others, own);
    pthread_sigmask(SIG_BLOCK, &others, &before);
    helpers_ = static_cast<pthread_t*>(std::calloc(size_t(num_threads()), sizeof(pthread_t)));
    const int wanted = helpers_ == nullptr ? 0 : num_threads() - 1;
    while (num_helpers_ < wanted && pthread_create(&helpers_[num_helpers_], nullptr, serve, this) == 0) ++num_helpers_;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    has_started_.store(true, std::memory_order_release);
  }

  /// The number of a job that nobody uses, or -1.
  int open_slot() {
    uint64_t found = open_.load(std::memory_order_relaxed);
    while (~found != 0) {
      const int slot = __builtin_ctzll(~found);
      if (open_.compare_exchange_weak(found, found | uint64_t{1} << slot, std::memory_order_acquire, std::memory_order_relaxed)) return slot;
    }
    return -1;
  }

  void announce(int count) {
    caller_.note();
    announced_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) sleepers_.fetch_sub(wake_at(announced_, count), std::memory_order_relaxed);
  }

  static void* serve(void* pool) {
    static_cast<Pool*>(pool)->serve();
    return nullptr;
  }
  void serve() {
    in_loop = true;
    while (!is_ending_.load(std::memory_order_relaxed)) {
      const uint32_t seen = announced_.load(std::memory_order_seq_cst);
      bool has_helped = false;
      for (uint64_t open = open_.load(std::memory_order_acquire); open != 0; open &= open - 1) {
        has_helped = jobs_[__builtin_ctzll(open)].help() || has_helped;
      }
      if (has_helped || is_ending_.load() || spin_at(announced_, seen, kHelperSpins, caller_)) continue;
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      // The one who wakes a helper counts it, so that it does not wake it again before the helper runs.
      if (!sleep_at(announced_, seen)) sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }
  }

  static constexpr int kJobs = 64;
  Job jobs_[kJobs];
  alignas(64) std::atomic<uint64_t> open_{0};  ///< bit i: job i is in use
  alignas(64) Word announced_{0};              ///< loops so far
  Processor caller_;                           ///< of the last loop
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<bool> has_started_{false}, is_ending_{false};
  std::mutex starting_;
  pthread_t* helpers_ = nullptr;
  int num_helpers_ = 0;
};

Pool pool;
std::atomic<int> used_threads{0};  ///< by all runs; more than there are where there are more callers

/// @brief What the runs of a thread have of the threads of the process.
struct Share {
  int depth = 0, taken = 0;
};
thread_local Share share;

/// Of the threads of its parent, a child of a fork has the one that forked: its pool begins anew.
void begin_child() {
  new (&pool) Pool;
  used_threads = share.depth > 0 ? share.taken : 0;
}

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, begin_child);

int32_t count_threads() {
  if (in_loop) return 1;
  return share.depth > 0 ? share.taken : num_threads();
}

void run_chunks(Chunk chunk, const void* self, int64_t chunks) { pool.run(chunk, self, chunks, count_threads() - 1); }

}  // namespace

const ait_threads_service_v1 kThreadsService{count_threads, run_chunks};

void enter_run() {
  if (share.depth++ > 0) return;
  int used = used_threads.load();
  do share.taken = std::max(num_threads() - used, 1);
  while (!used_threads.compare_exchange_weak(used, used + share.taken));
}

void leave_run() noexcept {
  if (--share.depth == 0) used_threads -= share.taken;
}

}  // namespace ait::runtime
