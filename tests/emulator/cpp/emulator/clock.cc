/// @file clock.cc
#include "emulator/clock.h"

#include <algorithm>
#include <array>

#include "emulator/state.h"

namespace ait::emulator {
uint32_t cluster_threads = 0;
std::vector<Actor> actors;

namespace {
uint32_t block_threads = 0;
/// Threads of a warpgroup mostly know the same: what they learn is worked out, and kept, once.
struct Step {
  SeenPointer from, what, to;
  uint32_t actor = 0, event = 0;
};
std::array<Step, 32> steps;
size_t next_step = 0;

void raise(Seen& to, const Seen& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

const SeenPointer& keep(Step step) {
  Step& slot = steps[next_step++ % steps.size()];
  slot = std::move(step);
  return slot.to;
}
}  // namespace

void start_clocks(uint32_t threads_of_block, uint32_t blocks) {
  block_threads = threads_of_block;
  cluster_threads = threads_of_block * blocks;
  actors.clear();
  steps = {};
}

uint32_t add_actor(std::string name, uint32_t parts) {
  const size_t at = actors.size();
  actors.resize(at + parts, {name, parts, false});
  return 2 * cluster_threads + uint32_t(at);
}

uint32_t add_ordinary_actor(std::string name) {
  const size_t at = actors.size();
  actors.push_back({name, 1, true});
  actors.push_back({name, 1, false});
  return 2 * cluster_threads + uint32_t(at);
}

std::string name_of(uint32_t who) {
  if (!is_thread(who)) return actor_at(who).name;
  const std::string thread = "thread " + std::to_string(who % block_threads);
  return block_threads == cluster_threads ? thread : thread + " of block " + std::to_string(who / block_threads);
}

SeenPointer joined(const SeenPointer& a, const SeenPointer& b) {
  if (a == b || b == nullptr) return a;
  if (a == nullptr) return b;
  for (const Step& step : steps) {
    if (step.from == a && step.what == b) return step.to;
  }
  auto all = std::make_shared<Seen>(*a);
  raise(*all, *b);
  return keep({a, b, all});
}

void join(const std::vector<Fiber*>& threads) {
  std::vector<const Seen*> distinct;
  for (const Fiber* fiber : threads) {
    if (std::find(distinct.begin(), distinct.end(), fiber->seen.get()) == distinct.end()) distinct.push_back(fiber->seen.get());
  }
  auto all = std::make_shared<Seen>(*distinct[0]);
  for (size_t i = 1; i < distinct.size(); ++i) raise(*all, *distinct[i]);
  for (Fiber* fiber : threads) (*all)[fiber->index] = fiber->now++;
  for (Fiber* fiber : threads) fiber->seen = all;
}

SeenPointer release(Fiber& fiber) {
  auto all = std::make_shared<Seen>(*fiber.seen);
  (*all)[fiber.index] = fiber.now++;
  return all;
}

void learn(Fiber& fiber, const SeenPointer& what) { fiber.seen = joined(fiber.seen, what); }

void learn(Fiber& fiber, uint32_t actor, uint32_t event) {
  if (event_of(*fiber.seen, actor) >= event) return;
  for (const Step& step : steps) {
    if (step.from == fiber.seen && step.what == nullptr && step.actor == actor && step.event == event) {
      fiber.seen = step.to;
      return;
    }
  }
  auto all = std::make_shared<Seen>(*fiber.seen);
  if (all->size() <= actor) all->resize(actor + 1);
  (*all)[actor] = event;
  fiber.seen = keep({fiber.seen, nullptr, all, actor, event});
}

void publish(Fiber& fiber) {
  auto all = std::make_shared<Seen>(*fiber.seen);
  (*all)[published(fiber.index)] = (*all)[fiber.index] = fiber.now++;
  for (uint32_t who = 2 * cluster_threads; who + 1 < all->size(); ++who) (*all)[published(who)] = (*all)[who];
  fiber.seen = all;
}

Seen common(const std::vector<Fiber*>& threads) {
  Seen all = *threads[0]->seen;
  const Seen* last = threads[0]->seen.get();
  for (const Fiber* fiber : threads) {
    if (fiber->seen.get() == last) continue;
    last = fiber->seen.get();
    if (all.size() > last->size()) all.resize(last->size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = std::min(all[i], (*last)[i]);
  }
  return all;
}

}  // namespace ait::emulator
