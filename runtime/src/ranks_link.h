/// @file ranks_link.h
/// @brief How the processes that run one model reach each other on the host. The runtime library of the CPU has the connections; that of a
/// GPU gets a pointer to its functions.
#ifndef AIT_RUNTIME_RANKS_LINK_H_
#define AIT_RUNTIME_RANKS_LINK_H_

#include <stdint.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "ait/permute_service.h"
#include "ait/ranks_service.h"

namespace ait::runtime {

struct RanksLink {
  int64_t rank, ranks;
  /// `ait_ranks_service_v1::exchange`; on failure writes the reason.
  int32_t (*exchange)(const ait_exchange_v1* args, char* reason, int64_t room);
  /// Writes the ranks that are known to have ended, as "rank 1, rank 3", or nothing.
  void (*ended)(char* text, int64_t room);
};

/// @brief The link of this process; null before a model with ranks is loaded.
const RanksLink* ranks_link();
void set_ranks_link(const RanksLink* link);

/// @brief The seconds to wait for another rank.
inline double ranks_timeout() {
  const char* const text = std::getenv("AIT_RANKS_TIMEOUT");
  const double seconds = text == nullptr ? 0 : std::atof(text);
  return seconds > 0 ? seconds : 300;
}

/// @brief The numbers of the members of a rank's group, and its own place among them.
inline std::vector<int64_t> members_of(const ait_group_v1& group, int64_t rank, int64_t* place) {
  int64_t base = rank, count = 1;
  *place = 0;
  for (int32_t i = 0; i < group.num_axes; ++i) {
    const int64_t own = rank / group.steps[i] % group.sizes[i];
    base -= own * group.steps[i];
    *place = *place * group.sizes[i] + own;
    count *= group.sizes[i];
  }
  std::vector<int64_t> members;
  for (int64_t member = 0; member < count; ++member) {
    int64_t left = member, at = base;
    for (int32_t i = group.num_axes - 1; i >= 0; --i) {
      at += left % group.sizes[i] * group.steps[i];
      left /= group.sizes[i];
    }
    members.push_back(at);
  }
  return members;
}

/// @brief The member that sends to a member, and the one that gets its data; -1: there is none.
struct Partners {
  int64_t source = -1, target = -1;
};
inline Partners partners_of(const ait_permute_v1& args, int64_t place) {
  Partners found;
  for (const int64_t* pair = args.pairs; pair != args.pairs + 2 * args.num_pairs; pair += 2) {
    if (pair[0] == place) found.target = pair[1];
    if (pair[1] == place) found.source = pair[0];
  }
  return found;
}

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_RANKS_LINK_H_
