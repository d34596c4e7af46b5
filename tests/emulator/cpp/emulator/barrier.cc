/// @file barrier.cc
/// @brief Barriers in shared memory, which count arrivals and bytes, and named barriers.
#include <algorithm>

#include "emulator/bulk.h"
#include "emulator/state.h"

namespace ait::emulator {
namespace {
/// Ends the phase if nothing is missing.
void settle(Barrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.pending = barrier.arrivals;
  ++barrier.phase;
  auto known = std::make_shared<Seen>(*barrier.arrived);
  for (const uint32_t who : {barrier.actor, barrier.sender}) {
    if (who == 0) continue;
    if (known->size() <= who + 1) known->resize(who + 2);
    (*known)[who] = barrier.phase;
  }
  barrier.arrived = barrier.ended = known;
  for (Fiber* fiber : barrier.waiting) make_ready(fiber);
  barrier.waiting.clear();
}
}  // namespace

size_t at_byte(const Place& place) { return place.offset - place.block.dynamic_begin; }

Place place_of(uint32_t address, const char* what) {
  const uint32_t rank = address >> kRankShift, offset = address & ((1u << kRankShift) - 1);
  if (rank > blocks.size()) fail("%s: %#x is no address of shared memory of the cluster", what, address);
  Block& block = rank == 0 ? *current->block : *blocks[rank - 1];
  if (offset >= kWindowBytes) fail("%s: %#x is no address of dynamic shared memory", what, address);
  return {block, offset};
}

Barrier& barrier_at(const Place& place, const char* what, bool for_copies) {
  const auto found = place.block.barriers.find(place.offset);
  if (place.block.exited == place.block.threads.size()) fail("%s in block %u of the cluster, which has ended", what, place.block.rank);
  if (found == place.block.barriers.end()) fail("%s at byte %zu of dynamic shared memory, where no barrier was made", what, at_byte(place));
  Barrier& barrier = found->second;
  const Fiber& self = *current;
  if (barrier.maker != self.index && event_of(*self.seen, barrier.maker) < barrier.made) {
    fail("%s at the barrier at byte %zu, which %s made with no barrier between", what, at_byte(place), name_of(barrier.maker).c_str());
  }
  if (for_copies && !barrier.fenced) fail("%s at the barrier at byte %zu, whose making no fence.mbarrier_init followed", what, at_byte(place));
  return barrier;
}

void visit(Block& block) {
  if (&block != current->block) block.visits[current->index] = current->now;
}

void barrier_init(uint32_t address, uint32_t arrivals) {
  const Place place = place_of(address, "mbarrier.init");
  if (&place.block != current->block) fail("mbarrier.init in another block");
  if (address % 8 != 0) fail("mbarrier.init at byte %zu, which is not aligned to 8 bytes", at_byte(place));
  if (arrivals == 0 || arrivals >= 1u << 20) fail("mbarrier.init with %u arrivals", arrivals);
  check_write(place.block.window + place.offset, 8);
  for (int i = 0; i < 8; ++i) place.block.dynamic_history[place.offset + i].state = ByteHistory::barrier;
  Barrier barrier;
  barrier.offset = place.offset;
  barrier.arrivals = arrivals;
  barrier.pending = arrivals;
  barrier.actor = add_actor("a copy that is counted at the barrier at byte " + std::to_string(at_byte(place)));
  barrier.maker = current->index, barrier.made = current->now;
  barrier.arrived = barrier.ended = current->seen;
  place.block.barriers[place.offset] = std::move(barrier);
}

void barrier_init_fence() {
  for (auto& [offset, barrier] : current->block->barriers) barrier.fenced = barrier.fenced || barrier.maker == current->index;
}

void barrier_arrive(uint32_t address, uint32_t bytes) {
  const char* what = bytes > 0 ? "mbarrier.arrive.expect_tx" : "mbarrier.arrive";
  const Place place = place_of(address, what);
  Barrier& barrier = barrier_at(place, what, &place.block != current->block);
  visit(place.block);
  if (bytes > 0 && &place.block != current->block) fail("mbarrier.arrive.expect_tx in another block");
  if (barrier.pending == 0) {
    fail("%s at the barrier at byte %zu, which takes %u arrivals a phase, and has them: it lacks %lld bytes", what, at_byte(place), barrier.arrivals,
         static_cast<long long>(barrier.bytes));
  }
  barrier.bytes += bytes;
  --barrier.pending;
  barrier.arrived = joined(barrier.arrived, release(*current));
  settle(barrier);
}

void count_bytes(const Place& place, int64_t bytes) {
  Barrier& barrier = barrier_at(place, "a copy that is counted", true);
  barrier.copied = barrier.phase + 1;
  barrier.bytes -= bytes;
  settle(barrier);
}

void barrier_wait(uint32_t address, uint32_t parity, Site site) {
  const Place place = place_of(address, "mbarrier.try_wait");
  if (&place.block != current->block) fail("mbarrier.try_wait in another block");
  if (parity > 1) fail("mbarrier.try_wait for parity %u", parity);
  Barrier& barrier = barrier_at(place, "mbarrier.try_wait", false);
  while ((barrier.phase & 1) == parity) {
    barrier.waiting.push_back(current);
    current->barrier = &barrier;
    suspend("barrier_wait", site);
  }
  current->barrier = nullptr;
  barrier.waited = barrier.phase;
  learn(*current, barrier.ended);
}

uint32_t address_in(uint32_t address, uint32_t rank) {
  if (rank >= blocks.size()) fail("mapa to block %u of a cluster of %zu", rank, blocks.size());
  return (rank + 1) << kRankShift | place_of(address, "mapa").offset;
}

std::string copies_left() {
  for (const auto& block : blocks) {
    for (const auto& [offset, barrier] : block->barriers) {
      if (barrier.copied > barrier.waited) {
        return "block " + std::to_string(block->rank) + " of the cluster ends, but nobody waited for " + name_of(barrier.actor);
      }
    }
  }
  return {};
}

void named_barrier(int id, int threads, bool waits, Site site) {
  const char* what = waits ? "bar.sync" : "bar.arrive";
  Fiber& self = *current;
  if (id < 0 || id > 15) fail("%s at barrier %d of 16", what, id);
  if (threads <= 0 || threads % kWarp != 0 || size_t(threads) > self.block->threads.size()) fail("%s of %d threads", what, threads);
  NamedBarrier& barrier = self.block->named[id];
  if (barrier.threads != 0 && barrier.threads != uint32_t(threads)) {
    fail("%s of %d threads at barrier %d, where others wait for %u", what, threads, id, barrier.threads);
  }
  if (std::find(barrier.arrived.begin(), barrier.arrived.end(), self.thread) != barrier.arrived.end()) {
    fail("%s at barrier %d, where the thread has arrived already", what, id);
  }
  barrier.threads = uint32_t(threads);
  barrier.arrived.push_back(self.thread);
  barrier.seen = joined(barrier.seen, release(self));
  if (waits) barrier.waiting.push_back(&self);
  if (barrier.arrived.size() == size_t(threads)) {
    for (Fiber* fiber : barrier.waiting) {
      learn(*fiber, barrier.seen);
      if (fiber != &self) make_ready(fiber);
    }
    barrier = {};
  } else if (waits) {
    suspend(what, site);
  }
}

}  // namespace ait::emulator
