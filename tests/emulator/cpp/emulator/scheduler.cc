/// @file scheduler.cc
/// @brief Fibers for the threads of a cluster, one after the other, and the places where they meet.
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "emulator/state.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace ait::emulator {
// What kernels see as threadIdx and so on. They see them as constants, which they are for each thread.
Size thread_index asm("ait_emulator_threadIdx");
Size block_index asm("ait_emulator_blockIdx");
Size block_size asm("ait_emulator_blockDim");
Size grid_size asm("ait_emulator_gridDim");

Fiber* current = nullptr;
const Launch* launching = nullptr;
uint64_t launch_number = 0;
std::vector<std::unique_ptr<Block>> blocks;

namespace {
std::string error;
bool failed = false;
std::deque<Fiber*> ready;
std::vector<std::unique_ptr<Fiber>> fibers;   // of the cluster that runs; kept with their stacks for the next
std::vector<char*> windows;
std::map<const void*, size_t> allowed;
std::set<std::string> executed;
std::map<const void*, std::string> names;
std::map<const void*, uint32_t> launches;
bool latest_first = false;  ///< in every other launch of a kernel, threads go on in the opposite order

// ** switching **

#if defined(__x86_64__)
extern "C" void ait_emulator_switch(void** save, void* to);
asm(R"(
.text
.type ait_emulator_switch, @function
ait_emulator_switch:
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbp
  popq %rbx
  ret
.size ait_emulator_switch, .-ait_emulator_switch
)");
void* scheduler_stack;
void* prepare(char* stack, size_t bytes, void (*entry)()) {
  void** top = reinterpret_cast<void**>(stack + bytes - 64);
  *--top = nullptr;  // what `entry` would return to; it is aligned as after a call
  *--top = reinterpret_cast<void*>(entry);
  return top - 6;    // six registers, of any value
}
void to_fiber(Fiber& fiber) { ait_emulator_switch(&scheduler_stack, fiber.stack_pointer); }
void to_scheduler(Fiber& fiber) { ait_emulator_switch(&fiber.stack_pointer, scheduler_stack); }
#else
ucontext_t scheduler_context;
std::map<const Fiber*, ucontext_t> contexts;
void* prepare(char*, size_t, void (*)()) { return nullptr; }
void to_fiber(Fiber& fiber) { swapcontext(&scheduler_context, &contexts[&fiber]); }
void to_scheduler(Fiber& fiber) { swapcontext(&contexts[&fiber], &scheduler_context); }
#endif

Size unlinear(uint32_t linear, const Size& size) { return {linear % size.x, linear / size.x % size.y, linear / (size.x * size.y)}; }

/// Shared memory of a block goes with its last thread: other blocks must be done with it, and that must be known here. Nor may a named
/// barrier be left half full.
void check_end(const Block& block) {
  for (const NamedBarrier& barrier : block.named) {
    if (!barrier.arrived.empty()) {
      fail("the block ends while named barrier %td has %zu of %u arrivals", &barrier - block.named, barrier.arrived.size(), barrier.threads);
    }
  }
  for (const auto& [visitor, event] : block.visits) {
    const bool known = std::any_of(block.threads.begin(), block.threads.end(), [&](const Fiber* fiber) { return event_of(*fiber->seen, visitor) >= event; });
    if (!known) fail("the block ends while %s of the cluster may still touch its shared memory", name_of(visitor).c_str());
  }
}

void leave(Fiber& self) {
  Block& block = *self.block;
  if (const char* what = left_undone(self)) fail("the thread ends, but %s", what);
  self.done = true;
  if (++block.exited == block.threads.size()) check_end(block);
  if (!block.all.here.empty()) {
    fail("the thread ends while thread %u waits at %s (%s:%d)", block.all.here[0]->thread, block.all.what, block.all.site.file, block.all.site.line);
  }
}

void fiber_entry() {
  launching->call(launching->arguments);
  leave(*current);
  to_scheduler(*current);
  abort();
}

void resume(Fiber& fiber) {
  current = &fiber;
  thread_index = unlinear(fiber.thread, launching->block);
  block_index = fiber.block->index;
  to_fiber(fiber);
  current = nullptr;
}

const char* base(const char* file) {
  const char* slash = strrchr(file, '/');
  return slash == nullptr ? file : slash + 1;
}

/// What the threads that cannot go on wait for, told once for each place.
std::string stuck() {
  std::map<std::string, std::string> places;
  for (const auto& fiber : fibers) {
    if (fiber->block == nullptr || fiber->done) continue;
    std::string place = std::string(fiber->waits_for) + " (" + base(fiber->site.file) + ":" + std::to_string(fiber->site.line) + ")";
    if (const Barrier* barrier = fiber->barrier) {
      place += ", the barrier at byte " + std::to_string(barrier->offset - fiber->block->dynamic_begin) + ", of which phase " +
               std::to_string(barrier->phase) + " lacks " + std::to_string(barrier->pending) + " arrivals and " + std::to_string(barrier->bytes) + " bytes";
    }
    std::string& threads = places[place];
    if (threads.size() < 24) threads += (threads.empty() ? "" : ", ") + std::to_string(fiber->thread);
    else if (threads.back() != '.') threads += " ...";
  }
  std::string text;
  for (const auto& [place, threads] : places) text += (text.empty() ? "" : "; ") + std::string("threads ") + threads + " wait at " + place;
  return text;
}

bool run_cluster(uint32_t first) {
  const Launch& launch = *launching;
  const uint32_t threads = launch.block.count(), all = threads * launch.cluster;
  while (fibers.size() < all) {
    fibers.push_back(std::make_unique<Fiber>());
    void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) return failed = true, error = "no memory for stacks", false;
    fibers.back()->stack = static_cast<char*>(stack);
  }
  while (windows.size() < launch.cluster) windows.push_back(static_cast<char*>(aligned_alloc(kWindowBytes, kWindowBytes)));
  for (const auto& fiber : fibers) fiber->block = nullptr;
  blocks.clear();
  ready.clear();
  const auto nothing = std::make_shared<const Seen>(2 * all);
  start_clocks(threads, launch.cluster);
  for (uint32_t rank = 0; rank < launch.cluster; ++rank) {
    blocks.push_back(std::make_unique<Block>());
    Block& block = *blocks.back();
    block.rank = rank;
    block.index = unlinear(first + rank, launch.grid);
    block.window = windows[rank];
    block.warps.resize((threads + kWarp - 1) / kWarp);
    block.warpgroups.resize((threads + 127) / 128);
    block.products.resize((threads + 127) / 128);
    start_block(block);
    for (uint32_t t = 0; t < threads; ++t) {
      Fiber& fiber = *fibers[rank * threads + t];
      char* const stack = fiber.stack;
      fiber = Fiber{};
      fiber.stack = stack;
      fiber.block = &block;
      fiber.thread = t;
      fiber.index = rank * threads + t;
      fiber.seen = nothing;
      fiber.stack_pointer = prepare(stack, kStackBytes, fiber_entry);
#if !defined(__x86_64__)
      ucontext_t& context = contexts[&fiber];
      getcontext(&context);
      context.uc_stack = {stack, 0, kStackBytes};
      makecontext(&context, fiber_entry, 0);
#endif
      block.threads.push_back(&fiber);
      ready.push_back(&fiber);
    }
  }
  uint32_t done = 0;
  while (!ready.empty()) {
    Fiber& fiber = latest_first ? *ready.back() : *ready.front();
    latest_first ? ready.pop_back() : ready.pop_front();
    resume(fiber);
    if (failed) return false;
    done += fiber.done;
  }
  if (done == all && (error = copies_left()).empty()) return true;
  if (done < all) error = "threads wait for others that never come: " + stuck();
  failed = true;
  return false;
}
}  // namespace

const char* kernel_name(const void* kernel) {
  std::string& name = names[kernel];
  if (name.empty()) {
    Dl_info info;
    name = dladdr(kernel, &info) != 0 && info.dli_sname != nullptr ? info.dli_sname : "?";
  }
  return name.c_str() + (name.compare(0, 2, "_Z") == 0 ? 2 : 0);
}

namespace {
/// `row_kernel` of the mangled name of `ait::gpu::row_kernel<...>`.
std::string template_name(const void* kernel) {
  const std::string name = kernel_name(kernel);
  const size_t end = name.find("_kernel");
  if (end == std::string::npos) return name;
  size_t begin = end;
  while (begin > 0 && (name[begin - 1] < '0' || name[begin - 1] > '9')) --begin;
  return name.substr(begin, end + 7 - begin);
}
}  // namespace

uint64_t block_number(const Block& block) {
  return (uint64_t(block.index.z) * launching->grid.y + block.index.y) * launching->grid.x + block.index.x;
}

const char* last_error() { return error.c_str(); }

bool allow_shared(const void* kernel, size_t bytes) {
  allowed[kernel] = bytes;
  return bytes <= kMostShared;
}

bool run(const Launch& launch) {
  error.clear();
  failed = false;
  ++launch_number;
  launching = &launch;
  start_launch(launch);
  executed.insert(kernel_name(launch.kernel));
  latest_first = launches[launch.kernel]++ % 2 == 1;
  const size_t fixed = static_shared_bytes(launch);
  const size_t limit = std::max(kDefaultShared, allowed.count(launch.kernel) ? allowed[launch.kernel] : 0);
  char text[256] = "";
  if (launch.block.count() == 0 || launch.block.count() > 1024) {
    snprintf(text, sizeof text, "a block of %u threads", launch.block.count());
  } else if (launch.shared_bytes > limit || fixed + launch.shared_bytes > kMostShared || fixed > kDefaultShared) {
    snprintf(text, sizeof text, "%zu bytes of dynamic and %zu of static shared memory, where %zu and %zu are allowed", launch.shared_bytes, fixed,
             limit, kDefaultShared);
  } else if (launch.cluster > 1 && (launch.grid.x % launch.cluster != 0 || launch.cluster > 16)) {
    snprintf(text, sizeof text, "clusters of %u in a grid of %u", launch.cluster, launch.grid.x);
  } else if (launch.cluster > 1 && fixed != 0) {
    snprintf(text, sizeof text, "static shared memory in clusters is not emulated");
  }
  if (text[0] != 0) {
    error = template_name(launch.kernel) + ": " + text;
    return false;
  }
  block_size = launch.block;
  grid_size = launch.grid;
  for (uint32_t first = 0; first < launch.grid.count(); first += launch.cluster) {
    if (run_cluster(first)) continue;
    error = template_name(launch.kernel) + ": " + error;
    break;
  }
  current = nullptr;
  return !failed;
}

void fail(const char* format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  failed = true;
  const Size& b = current->block->index;
  char where[96];
  snprintf(where, sizeof where, "block (%u, %u, %u), thread %u: ", b.x, b.y, b.z, current->thread);
  error = std::string(where) + text;
  Fiber* self = current;
  to_scheduler(*self);  // never resumed
  abort();
}

void meet(Scope scope, const char* what, bool orders, Combine combine, void* brought, Site site, uint64_t lanes) {
  Fiber& self = *current;
  Block& block = *self.block;
  const int threads = int(block.threads.size());
  int first = 0, count = threads;
  Meeting* meeting = &block.all;
  if (scope == Scope::warp) {
    first = self.warp() * kWarp, count = std::min(kWarp, threads - first), meeting = &block.warps[size_t(self.warp())];
  } else if (scope == Scope::warpgroup) {
    first = int(self.thread) / 128 * 128, count = std::min(128, threads - first), meeting = &block.warpgroups[self.thread / 128];
  } else if (scope == Scope::cluster) {
    meeting = &blocks[0]->cluster, count = threads * int(blocks.size());
  }
  if (scope == Scope::warp) {
    if (count < 64) lanes &= (uint64_t(1) << count) - 1;
    if ((lanes >> self.lane() & 1) == 0) fail("%s (%s:%d) with a mask that leaves its own lane out", what, base(site.file), site.line);
  } else if (scope == Scope::block && block.exited != 0) {
    fail("%s (%s:%d) after %u threads of the block have ended", what, base(site.file), site.line, block.exited);
  }
  if (meeting->here.empty()) {
    meeting->what = what, meeting->site = site, meeting->lanes = lanes, meeting->orders = orders;
  } else if (strcmp(meeting->what, what) != 0 || meeting->site.line != site.line || strcmp(meeting->site.file, site.file) != 0 ||
             (scope == Scope::warp && meeting->lanes != lanes)) {
    fail("%s (%s:%d) while thread %u waits at %s (%s:%d): they must be the same", what, base(site.file), site.line,
         meeting->here[0]->thread, meeting->what, base(meeting->site.file), meeting->site.line);
  }
  meeting->here.push_back(&self);
  self.waits_for = what;
  self.site = site;
  static std::vector<std::vector<void*>> brought_by;  // one for each fiber that waits; indexed as fibers are
  if (brought_by.empty()) brought_by.resize(1);
  auto& slots = brought_by[0];
  if (slots.size() < fibers.size()) slots.resize(fibers.size());
  slots[self.index] = brought;
  const int expected = scope == Scope::warp ? __builtin_popcountll(lanes) : count;
  if (int(meeting->here.size()) < expected) {
    to_scheduler(self);
    return;
  }
  if (combine != nullptr) {
    std::vector<void*> in_order(size_t(count), nullptr);
    for (const Fiber* fiber : meeting->here) in_order[scope == Scope::cluster ? fiber->index : fiber->thread - uint32_t(first)] = slots[fiber->index];
    combine(in_order.data(), count);
  }
  if (orders) join(meeting->here);
  for (Fiber* fiber : meeting->here) {
    if (fiber != &self) ready.push_back(fiber);
  }
  meeting->here.clear();
}

void suspend(const char* what, Site site) {
  current->waits_for = what;
  current->site = site;
  to_scheduler(*current);
}

void make_ready(Fiber* fiber) { ready.push_back(fiber); }

int lane_index() { return current->lane(); }
int warp_lanes() { return kWarp; }
void wait_for_previous() { current->waited_for_previous = true; }

}  // namespace ait::emulator

/// The names of the kernels that ran since they were last asked for, one a line. Returns the bytes that it takes; forgets them if there are as many.
extern "C" size_t ait_emulator_executed(char* text, size_t bytes) {
  std::string all;
  for (const std::string& name : ait::emulator::executed) all += name + "\n";
  if (bytes > all.size()) {
    memcpy(text, all.c_str(), all.size() + 1);
    ait::emulator::executed.clear();
  }
  return all.size() + 1;
}
