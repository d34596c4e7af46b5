#include "ranks_link.h"

#include <atomic>

namespace ait::runtime {
namespace {

std::atomic<const RanksLink*> the_link{nullptr};

}  // namespace

const RanksLink* ranks_link() { return the_link.load(); }
void set_ranks_link(const RanksLink* link) { the_link.store(link); }

}  // namespace ait::runtime
