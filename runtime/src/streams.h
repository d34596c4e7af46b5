/// @file streams.h
/// @brief The streams and events that a run uses beside the stream that it is given.
#ifndef AIT_RUNTIME_STREAMS_H_
#define AIT_RUNTIME_STREAMS_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "device.h"
#include "services.h"

namespace ait::runtime {

/// @brief Streams and events, made at their first use. For one run at a time, while that launches.
class StreamSet {
 public:
  explicit StreamSet(Device& device) : device_(device) {}

  /// Stream `index`, from 1 on.
  void* stream(size_t index) {
    while (streams_.size() < index) streams_.push_back(device_.make_stream());
    return streams_[index - 1]->get();
  }
  Event& event(size_t index) {
    while (events_.size() <= index) events_.push_back(device_.make_event());
    return *events_[index];
  }
  /// Whether a graph is being recorded that uses the streams. They cannot be used for anything else meanwhile.
  bool is_capturing() {
    for (const auto& stream : streams_) {
      if (device_.is_capturing(stream->get())) return true;
    }
    return false;
  }
  /// Waits for all that was launched, after a failure.
  void settle() noexcept {
    for (const auto& stream : streams_) {
      try {
        if (!device_.is_capturing(stream->get())) device_.sync(stream->get());
      } catch (const Error&) {
        // The reason of the failure is the one to report.
      }
    }
  }

  void* first = nullptr;  ///< the stream of the run that used it last

 private:
  Device& device_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Event>> events_;
};

/// @brief The sets of a model, lent to its runs.
class StreamSets {
 public:
  explicit StreamSets(Device& device) : device_(device) {}

  /// A set for the time of a scope, taken when the run first asks for a stream.
  class Lease : public RunStreams {
   public:
    explicit Lease(StreamSets& sets) : sets_(sets) {}
    ~Lease() override {
      if (set_ != nullptr) sets_.release(set_);
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    void* stream(int32_t index, void* first) override {
      if (set_ == nullptr) set_ = sets_.acquire(first);
      return set_->stream(static_cast<size_t>(index));
    }
    Event& event(int32_t index) override {
      if (set_ == nullptr) set_ = sets_.acquire(nullptr);
      return set_->event(static_cast<size_t>(index));
    }
    bool is_recorded(void* first) override { return sets_.device_.is_capturing(first); }
    void settle() noexcept {
      if (set_ != nullptr) set_->settle();
    }

   private:
    StreamSets& sets_;
    StreamSet* set_ = nullptr;
  };

 private:
  /// Runs on different streams get different sets, so that they do not wait for each other, up to a limit.
  static constexpr size_t kSets = 8;

  StreamSet* acquire(void* first) {
    const std::lock_guard<std::mutex> lock(mutex_);
    size_t choice = idle_.size();
    for (size_t i = 0; i < idle_.size(); ++i) {
      if (idle_[i]->is_capturing()) continue;
      if (idle_[i]->first == first || (choice == idle_.size() && sets_.size() >= kSets)) choice = i;
    }
    if (choice == idle_.size()) {
      sets_.push_back(std::make_unique<StreamSet>(device_));
      idle_.push_back(sets_.back().get());
    }
    StreamSet* set = idle_[choice];
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(choice));
    set->first = first;
    return set;
  }
  void release(StreamSet* set) {
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(set);
  }

  Device& device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<StreamSet>> sets_;
  std::vector<StreamSet*> idle_;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_STREAMS_H_
