#include "forks.h"

#include <pthread.h>

#include "error.h"

namespace ait::runtime {
namespace {

std::atomic<int> fork_count{0};
std::atomic<ProcessMutex*> process_mutexes[ProcessMutex::kRanks];
ProcessMutex* held_for_fork[ProcessMutex::kRanks];  ///< of the thread that forks now: the C library lets one fork at a time

void lock_all() {
  for (int rank = 0; rank < ProcessMutex::kRanks; ++rank) {
    ProcessMutex* const made = process_mutexes[rank].load();
    if (made != nullptr) made->lock();
    held_for_fork[rank] = made;
  }
}

void unlock_all() {
  for (ProcessMutex* const mutex : held_for_fork) {
    if (mutex != nullptr) mutex->unlock();
  }
}

void begin_child() {
  unlock_all();
  ++fork_count;
}

[[maybe_unused]] const int registered = pthread_atfork(lock_all, unlock_all, begin_child);

}  // namespace

int forks() { return fork_count.load(std::memory_order_relaxed); }

void ForkGuard::enter() const {
  const int now = forks();
  if (forks_.load(std::memory_order_acquire) != now) {
    static ProcessMutex looking(ProcessMutex::kForkGuards);
    const std::lock_guard<ProcessMutex> lock(looking);
    if (forks_.load(std::memory_order_relaxed) != now) {
      is_lost_ = is_lost_ || users_.load() != 0;
      forks_.store(now, std::memory_order_release);
    }
  }
  if (is_lost_.load(std::memory_order_relaxed)) {
    fail(ErrorKind::kRun, what_, " was in use by another thread when this process was forked, so it cannot be used here: load the model again, "
                                 "or start processes with the method \"spawn\"");
  }
  ++users_;
}

ProcessMutex::ProcessMutex(Rank rank) { process_mutexes[rank].store(this); }

}  // namespace ait::runtime
