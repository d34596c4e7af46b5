/// @file peers.h
/// @brief Memory of each card of a group that all cards of the group write, opened by CUDA IPC.
#ifndef AIT_RUNTIME_GPU_PEERS_H_
#define AIT_RUNTIME_GPU_PEERS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ait/peers_service.h"
#include "gpu/api.h"

namespace ait::runtime {

/// @brief Sends `bytes` bytes to all members of a group and gets theirs, this member's among them, one after another; a reason if it cannot.
using Exchange = std::function<std::string(const void* own, size_t bytes, void* all)>;

/// @brief The rooms of a group on one card.
class Peers {
 public:
  /// @brief Makes this member's room and opens those of the others. All members call it at the same time; all of them have the rooms, or none.
  /// Fails with a reason where the members do not reach each other.
  std::string open(int64_t members, int64_t place, const uint32_t* stop, const Exchange& exchange);

  /// @brief Where the rooms are; 0 members if there are none.
  const ait_peer_memory_v1& memory() const { return memory_; }
  /// @brief Whether AIT_PEER_MEMORY says that this process has no rooms.
  static bool is_off();
  /// @brief Why there are none, for people.
  const std::string& why() const { return why_; }

  /// @brief Orders what follows on `stream` behind the last launch, unless a graph has recorded one of the two.
  std::string begin(gpu::Stream stream);
  /// @brief Notes a launch on `stream`.
  std::string end(gpu::Stream stream);

 private:
  ait_peer_memory_v1 memory_{};
  std::string why_;
  gpu::Stream last_ = nullptr;
  unsigned long long last_capture_ = 0;  ///< the number of the recording of the last launch; 0 for a launch that was not recorded
  GPU(Event_t) launched_ = nullptr;
};

/// @brief A number in memory of the host that cards can read, 0 at first; null where there is none. It lives as long as the process.
uint32_t* new_stop();

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_GPU_PEERS_H_
