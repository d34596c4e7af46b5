/// @file graph_cache.h
/// @brief The recorded graphs of one runtime, least recently used last.
#ifndef AIT_RUNTIME_GRAPH_CACHE_H_
#define AIT_RUNTIME_GRAPH_CACHE_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <vector>

#include "device.h"

namespace ait::runtime {

/// @brief The key of a recorded graph: dims, then the addresses of inputs, outputs, arena and constants.
using GraphKey = std::vector<int64_t>;

/// @brief Counts of how runs in graph mode went.
struct GraphStats {
  int64_t hits = 0;       ///< launched a graph recorded earlier
  int64_t captures = 0;   ///< recorded, then launched
  int64_t warmups = 0;    ///< first use of a key: run plainly
  int64_t fallbacks = 0;  ///< run plainly, since it cannot be recorded
  int64_t evictions = 0;  ///< graphs dropped for newer ones
  int64_t updates = 0;    ///< took the graph of other addresses, then launched it
};

class GraphCache {
 public:
  struct Entry {
    GraphKey key;
    std::unique_ptr<Graph> graph;  ///< null until recorded
    bool failed = false;           ///< recording was tried and failed
  };

  /// The entry of `key`, moved to the front; null if it is not there.
  Entry* find(const GraphKey& key) {
    for (auto* list : {&recorded_, &seen_}) {
      for (auto it = list->begin(); it != list->end(); ++it) {
        if (it->key != key) continue;
        list->splice(list->begin(), *list, it);
        return &list->front();
      }
    }
    return nullptr;
  }

  /// Remembers that `key` ran once without a graph.
  void remember(GraphKey key) {
    seen_.push_front({std::move(key), nullptr});
    if (seen_.size() > kSeen) seen_.pop_back();
  }

  /// If the cache is full: the graph that was used longest ago of those with the first `shape` numbers of `key`. It leaves the cache. Null if
  /// there is none. An update of it costs less than a new graph.
  std::unique_ptr<Graph> take_alike(const GraphKey& key, size_t shape) {
    const auto is_alike = [&](const Entry& entry) { return std::equal(key.begin(), key.begin() + static_cast<std::ptrdiff_t>(shape), entry.key.begin()); };
    const auto oldest = std::find_if(recorded_.rbegin(), recorded_.rend(), is_alike);
    if (recorded_.size() < kRecorded || oldest == recorded_.rend()) return nullptr;
    std::unique_ptr<Graph> graph = std::move(oldest->graph);
    recorded_.erase(std::prev(oldest.base()));
    return graph;
  }

  /// Keeps the graph of an entry that `find` just returned. Returns how many graphs were dropped for it.
  int64_t keep(Entry* entry, std::unique_ptr<Graph> graph) {
    entry->graph = std::move(graph);
    recorded_.splice(recorded_.begin(), seen_, seen_.begin());
    if (recorded_.size() <= kRecorded) return 0;
    recorded_.pop_back();
    return 1;
  }

  void clear() {
    recorded_.clear();
    seen_.clear();
  }

 private:
  // Keys that ran once are many when a caller's pointers change with every run; they must not push out graphs that are used.
  static constexpr size_t kRecorded = 16, kSeen = 64;
  std::list<Entry> recorded_, seen_;
};

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_GRAPH_CACHE_H_
