/// @file forks.h
/// @brief The runtime library after a fork: the child has the memory of its parent, but only the thread that forked.
#ifndef AIT_RUNTIME_FORKS_H_
#define AIT_RUNTIME_FORKS_H_

#include <atomic>
#include <mutex>

namespace ait::runtime {

/// @brief The number of forks between this process and the process that loaded the library.
int forks();

/// @brief Refuses an object in a forked process if a thread of the parent was using it: locks and memory that the thread held are never released.
class ForkGuard {
 public:
  /// @param what the name of the object in the error
  explicit ForkGuard(const char* what) : what_(what), forks_(forks()) {}
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  /// @brief Uses the object for a scope. Throws an Error of kind kRun where that is refused.
  class Use {
   public:
    explicit Use(const ForkGuard& guard) : guard_(guard) { guard_.enter(); }
    ~Use() { --guard_.users_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    const ForkGuard& guard_;
  };

 private:
  void enter() const;

  const char* what_;
  mutable std::atomic<int> forks_, users_{0};
  mutable std::atomic<bool> is_lost_{false};
};

/// @brief A mutex of the whole process that no other thread holds while the process forks. A thread may hold several, in the order of their ranks.
class ProcessMutex {
 public:
  enum Rank { kExported, kServices, kKernelLibraries, kSharedConstants, kForkGuards, kRanks };

  explicit ProcessMutex(Rank rank);
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_FORKS_H_
