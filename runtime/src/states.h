/// @file states.h
/// @brief The memory of donated inputs: runs that share some run one after the other, and state that a failed run left is refused.
#ifndef AIT_RUNTIME_STATES_H_
#define AIT_RUNTIME_STATES_H_

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device.h"

namespace ait::runtime {

/// @brief Bytes that hold a donated input of a run.
struct StateRange {
  uintptr_t begin, end;
  const char* name;
  bool overlaps(const StateRange& other) const { return begin < other.end && other.begin < end; }
};

/// @brief The condition of a model's state, by address: the model does not own state; callers pass it with every run.
class States {
 public:
  explicit States(Device& device) : device_(device) {}

  /// @brief The state of one run, taken for its launches. Waits while another run has some of it; throws an Error of kind kInput for
  /// state that a failed run left. Destroyed without `finish`, the run has failed, and its state is invalid.
  class Lease {
   public:
    Lease(States& states, const std::vector<StateRange>& ranges, void* stream, bool capturing)
        : states_(states), taken_(states.acquire(ranges, stream, capturing)) {}
    ~Lease() {
      if (!taken_.empty()) states_.release(taken_, true);
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    /// Gives the state back when all is launched; `pending` says that the run goes on on `stream`.
    void finish(void* stream, bool pending) {
      states_.record(taken_, stream, pending);
      cancel();
    }
    /// Gives the state back where nothing was launched.
    void cancel() {
      states_.release(taken_, false);
      taken_.clear();
    }

   private:
    struct Entry;
    friend class States;
    States& states_;
    std::vector<std::list<States::Lease::Entry>::iterator> taken_;
  };

  /// The caller has written these bytes: they are valid again.
  void set(const StateRange& range);
  /// A wait has failed: the state written by the runs under way is invalid.
  void invalidate_pending();

 private:
  using Entry = Lease::Entry;
  using Taken = std::vector<std::list<Entry>::iterator>;

  Taken acquire(const std::vector<StateRange>& ranges, void* stream, bool capturing);
  void record(const Taken& taken, void* stream, bool pending);
  void release(const Taken& taken, bool failed);
  void forget_old();

  static constexpr size_t kRemembered = 256;  ///< a caller who makes new state for every run must not make this grow
  Device& device_;
  std::mutex mutex_;
  std::condition_variable released_;
  std::list<Entry> entries_;
};

struct States::Lease::Entry {
  StateRange range;
  bool busy = false;     ///< a run launches on it
  bool invalid = false;  ///< a run that wrote it has failed
  bool pending = false;  ///< a run was left going on `stream`; `event` is its end
  void* stream = nullptr;
  std::unique_ptr<Event> event;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_STATES_H_
