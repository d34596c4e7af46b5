// Checks the threads of the CPU (src/cpu/pool.cc) by themselves. Prints what is wrong, if anything.
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ait/parallel.h"
#include "cpu/pool.h"

static std::atomic<int64_t> clock_reads{0};

/// In place of the C library's: the pool reads the clock while it looks for work again and again.
extern "C" int clock_gettime(clockid_t clock, timespec* found) noexcept {
  ++clock_reads;
  return static_cast<int>(syscall(SYS_clock_gettime, clock, found));
}

namespace {

using ait::runtime::enter_run;
using ait::runtime::kThreadsService;
using ait::runtime::leave_run;

int wrong = 0;
void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  ++wrong;
}

/// Every number of a loop is met once, whatever its count.
void check_counts() {
  for (const int64_t count : {0, 1, 2, 3, 7, 100, 4099}) {
    for (const bool alone : {false, true}) {
      std::vector<int> met(size_t(count) + 1);
      const auto visit = [&](int64_t i) { ++met[size_t(i)]; };
      alone ? ait::parallel_tasks(count, ait::num_threads(), visit) : ait::parallel_for(count, true, visit);
      for (int64_t i = 0; i < count; ++i) expect(met[size_t(i)] == 1, "a number of the loop is met once");
    }
  }
  std::atomic<int64_t> sum{0};
  const int64_t many = 5 * int64_t{AIT_MAX_CHUNKS} + 3;
  ait::parallel_tasks(many, ait::num_threads(), [&](int64_t i) { sum += i; });
  expect(sum == many * (many - 1) / 2, "more tasks than chunks");
}

/// Loops inside of a loop are computed by the thread that meets them.
void check_nested() {
  std::atomic<int> met{0};
  ait::parallel_tasks(8, 2, [&](int64_t) {
    const auto own = std::this_thread::get_id();
    ait::parallel_tasks(16, 2, [&](int64_t) { met += std::this_thread::get_id() == own; });
    expect(ait::num_threads() == 1, "one thread inside of a loop");
  });
  expect(met == 8 * 16, "inner loops stay on their thread");
}

/// A step meets each number once, and finds all that the step before has written.
void check_steps() {
  for (const int64_t count : {0, 1, 2, 9, 37, 1000}) {
    const int64_t steps = 50;
    std::vector<int64_t> rows[2] = {std::vector<int64_t>(size_t(count), 0), std::vector<int64_t>(size_t(count), -1)};
    std::atomic<int64_t> stale{0};
    ait::parallel_steps(steps, count, ait::num_threads(), [&](int64_t step, int64_t first, int64_t last) {
      const std::vector<int64_t>& before = rows[step % 2];
      for (const int64_t value : before) stale += value != step;
      for (int64_t i = first; i < last; ++i) rows[(step + 1) % 2][size_t(i)] = before[size_t(count - 1 - i)] + 1;
    });
    expect(stale == 0, "a step finds the results of the one before");
    for (const int64_t value : rows[steps % 2]) expect(value == steps, "each number is met once in each step");
  }
}

/// The first exception reaches the caller, and loops work afterwards.
void check_exceptions() {
  for (int round = 0; round < 50; ++round) {
    std::string found;
    try {
      ait::parallel_tasks(64, 2, [&](int64_t i) {
        if (i % 8 == 5) throw std::runtime_error("chunk");
      });
    } catch (const std::runtime_error& error) {
      found = error.what();
    }
    expect(found == "chunk", "an exception reaches the caller");
    check_nested();
  }
}

/// Several callers have loops at the same time, more of them than jobs.
void check_callers() {
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum{0};
  for (int c = 0; c < 80; ++c) {
    callers.emplace_back([&] {
      enter_run();
      for (int round = 0; round < 20; ++round) ait::parallel_tasks(10, 2, [&](int64_t i) { sum += i; });
      leave_run();
    });
  }
  for (std::thread& caller : callers) caller.join();
  expect(sum == 80 * 20 * 45, "loops of several callers");
}

/// A loop ends though no helper comes, and never uses more threads than its run has.
void check_shares() {
  enter_run();
  std::thread([] {
    enter_run();
    expect(ait::num_threads() == 1, "a second run has its caller's thread");
    const auto own = std::this_thread::get_id();
    ait::parallel_for(1000, true, [&](int64_t) { expect(std::this_thread::get_id() == own, "the loop stays on it"); });
    leave_run();
  }).join();
  leave_run();
  expect(ait::num_threads() == int(kThreadsService.count()) && ait::num_threads() > 1, "the threads are free again");
}

/// A child of a fork has helpers of its own.
void check_fork() {
  const pid_t child = fork();
  if (child == 0) {
    wrong = 0;
    check_counts();
    check_nested();
    std::set<std::thread::id> met;
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (met.size() < 2 && std::chrono::steady_clock::now() < late) {
      ait::parallel_tasks(64, 2, [&](int64_t) {
        while (busy.test_and_set(std::memory_order_acquire)) {
        }
        met.insert(std::this_thread::get_id());
        busy.clear(std::memory_order_release);
      });
    }
    expect(met.size() >= 2, "another thread helps in the child");
    std::fflush(stdout);
    _exit(wrong == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  expect(status == 0, "loops in the child of a fork");
}

/// A helper on the processor of its caller does not look for the next loop again and again: it would keep the caller from making one.
void check_one_processor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);  // helpers start with the first loop, on this processor
  const int loops = 200;
  std::atomic<int> met{0};
  clock_reads = 0;
  for (int round = 0; round < loops; ++round) {
    ait::parallel_tasks(2, 2, [&](int64_t) { ++met; });
    usleep(100);
  }
  expect(met == 2 * loops, "loops on one processor");
  // A wait reads the clock once, and each of two threads waits at most twice for a loop.
  expect(clock_reads > 0 && clock_reads <= 4 * loops, "who waits for a thread on its own processor looks once");
}

}  // namespace

/// With the argument "one", checks loops on one processor; with another, prints the number of threads.
int main(int count, char** arguments) {
  ait::detail::needed_service<ait_threads_service_v1>.entry.table = &kThreadsService;
  if (count > 1 && arguments[1] == std::string("one")) return check_one_processor(), wrong;
  if (count > 1) return std::printf("%d\n", ait::num_threads()), 0;
  check_counts();
  check_nested();
  check_steps();
  if (ait::num_threads() > 1) {
    check_exceptions();
    check_callers();
    check_shares();
    check_fork();
  }
  std::exit(wrong == 0 ? 0 : 1);
}
