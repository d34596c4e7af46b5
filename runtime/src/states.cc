#include "states.h"

#include <algorithm>
#include <iterator>

#include "error.h"

namespace ait::runtime {

States::Taken States::acquire(const std::vector<StateRange>& ranges, void* stream, bool capturing) {
  Taken taken;
  if (ranges.empty()) return taken;
  const auto shared = [&ranges](const Entry& entry) {
    return std::any_of(ranges.begin(), ranges.end(), [&entry](const StateRange& range) { return range.overlaps(entry.range); });
  };
  std::unique_lock<std::mutex> lock(mutex_);
  released_.wait(lock, [&] {
    return std::none_of(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.busy && shared(entry); });
  });
  for (const Entry& entry : entries_) {
    if (!entry.invalid || !shared(entry)) continue;
    const auto range = std::find_if(ranges.begin(), ranges.end(), [&entry](const StateRange& r) { return r.overlaps(entry.range); });
    fail(ErrorKind::kInput, "input '", range->name, "' is state that a run which failed may have left half written: set it again, with "
         "set_state, before the next run");
  }
  forget_old();
  for (Entry& entry : entries_) {
    if (entry.pending && shared(entry) && entry.stream != stream && !capturing) entry.event->wait(stream);
  }
  for (const StateRange& range : ranges) {
    auto found = std::find_if(entries_.begin(), entries_.end(), [&range](const Entry& entry) {
      return entry.range.begin == range.begin && entry.range.end == range.end;
    });
    if (found == entries_.end()) {
      entries_.emplace_back();
      found = std::prev(entries_.end());
    }
    found->range = range;
    found->busy = true;
    taken.push_back(found);
  }
  return taken;
}

void States::record(const Taken& taken, void* stream, bool pending) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& entry : taken) {
    entry->pending = pending;
    if (!pending) continue;
    if (entry->event == nullptr) entry->event = device_.make_event();
    entry->event->record(stream);
    entry->stream = stream;
  }
}

void States::release(const Taken& taken, bool failed) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& entry : taken) {
      entry->busy = false;
      entry->invalid = failed;
    }
  }
  released_.notify_all();
}

void States::set(const StateRange& range) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Entry& entry : entries_) {
    if (range.begin <= entry.range.begin && entry.range.end <= range.end) entry.invalid = false;
  }
}

void States::invalidate_pending() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Entry& entry : entries_) {
    entry.invalid |= entry.pending;
    entry.pending = false;
  }
}

/// Drops the entry that was used longest ago, once there are many.
void States::forget_old() {
  if (entries_.size() < kRemembered) return;
  const auto old = std::find_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.busy && !entry.invalid; });
  if (old == entries_.end()) return;
  if (old->pending) device_.sync(old->stream);
  entries_.erase(old);
}

}  // namespace ait::runtime
