/// @file state.h
/// @brief What the scheduler and the memory of the emulator know of each other.
#ifndef AIT_EMULATOR_STATE_H_
#define AIT_EMULATOR_STATE_H_

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "emulator/clock.h"
#include "emulator/emulator.h"

namespace ait::emulator {

#if defined(__HIPCC__)
inline constexpr int kWarp = 64;
inline constexpr size_t kDefaultShared = 64 * 1024, kMostShared = 64 * 1024;  // gfx90a, gfx942
#else
inline constexpr int kWarp = 32;
inline constexpr size_t kDefaultShared = 48 * 1024, kMostShared = 227 * 1024;  // sm_90
#endif

struct AsyncCopy {
  char* to;
  const char* from;
  int size, bytes;  ///< what is written, and how much of it is read
};

/// @brief A barrier in shared memory (mbarrier).
struct Barrier {
  uint32_t offset = 0;      ///< in its window
  uint32_t arrivals = 0;    ///< that a phase takes
  uint32_t phase = 0;       ///< how many have ended
  int64_t pending = 0;      ///< arrivals that this phase still lacks
  int64_t bytes = 0;        ///< announced and not copied; below 0: copied and not announced
  uint32_t actor = 0;       ///< of the copies whose bytes it counts: their events are the phases that they belong to, from 1
  uint32_t sender = 0;      ///< the same of `st.async`, if there was any
  uint32_t copied = 0, waited = 0;  ///< the last phase that has a copy; the last one that any thread waited for
  uint32_t maker = 0, made = 0;     ///< the thread and the event of its initialisation
  bool fenced = false;      ///< whether that is visible to the copy engine and to the cluster
  SeenPointer arrived, ended;       ///< what those that arrived knew; and when the last phase ended
  std::vector<Fiber*> waiting;
};

/// @brief Registers of a thread that a matrix product still uses.
struct Held {
  const char* begin;
  size_t bytes;
  bool result;  ///< not to be read either
};

struct Block;

struct Fiber {
  void* stack_pointer = nullptr;
  char* stack = nullptr;
  Block* block = nullptr;
  uint32_t thread = 0;   ///< in the block
  uint32_t index = 0;    ///< in the cluster
  uint32_t now = 1;      ///< the number of its next event
  SeenPointer seen;
  bool done = false, waited_for_previous = false;
  const char* waits_for = nullptr;
  Site site{nullptr, 0};
  const Barrier* barrier = nullptr;  ///< that it waits for
  std::vector<AsyncCopy> copies;
  std::deque<std::vector<AsyncCopy>> groups;
  /// Bulk stores: their actor, the group that is open, and the last groups that have a store and that were waited for.
  uint32_t store_actor = 0, store_group = 1, stored = 0, store_waited = 0;
  std::vector<Held> held;

  int warp() const { return int(thread) / kWarp; }
  int lane() const { return int(thread) % kWarp; }
};

/// What happened to a byte of shared memory.
struct ByteHistory {
  static constexpr int kReaders = 3;  ///< as many warpgroups as read the same operand
  uint32_t write_event = 0, read_events[kReaders] = {};
  uint16_t writer = 0, readers[kReaders] = {};
  enum State : uint8_t { unwritten, written, pending, barrier } state = unwritten;
  bool atomic = false;
};

/// What an access is.
enum Access { read, speculative_read, write, atomic_write };

/// Who touches memory: under which component and event it is remembered, and what it knows.
struct Toucher {
  static constexpr uint32_t kNobody = ~uint32_t(0);
  const Seen& seen;
  uint32_t who, event;
  uint32_t self;      ///< the thread whose own events are visible, if it is one
  bool async;         ///< by the asynchronous proxy
  const char* by = "";  ///< which instruction, for messages; ends in a space
  uint32_t met = kNobody;  ///< the first of a warp whose threads have all come to this instruction: what they read, they have read

  bool knows(uint32_t other, uint32_t at) const {
    if (other == self) return true;
    for (uint32_t part = is_thread(other) ? 1 : actor_at(other).parts; part-- > 0;) {
      if (event_of(seen, other + part) < at) return false;
    }
    return true;
  }
  /// As `knows`; what the ordinary proxy did must be visible to the asynchronous one as well, if that makes this access.
  bool follows(uint32_t other, uint32_t at) const {
    const uint32_t there = async ? published(other) : other;
    return there == other ? knows(other, at) : event_of(seen, there) >= at;
  }
  bool follows_read(uint32_t reader, uint32_t at) const { return follows(reader, at) || (met != kNobody && reader >= met && reader < met + kWarp); }
};

struct Meeting {
  const char* what = nullptr;
  Site site{nullptr, 0};
  uint64_t lanes = 0;
  std::vector<Fiber*> here;
  bool orders = false;
};

/// @brief The accumulators of products that a warpgroup has not waited for: what they will be. The registers hold a mark until then.
struct Accumulator {
  std::vector<char*> registers;  ///< of each thread
  int columns = 0;
  uint32_t group = 0;             ///< of the last product
  bool integers = false;          ///< whether the registers hold int32_t
  std::vector<double> values;     ///< [64, columns]
};

/// @brief Registers that hold an operand of a product, and what they held when it started.
struct HeldOperand {
  Fiber* fiber;
  const uint32_t* registers;
  uint32_t words[4];
  uint32_t group;
};

struct Warpgroup {
  uint32_t actor = 0, group = 1, started = 0, waited = 0;  ///< `group` is open; the last that has a product; the last waited for
  bool fenced = false;            ///< since the last wait
  std::vector<Accumulator> accumulators;
  std::vector<HeldOperand> operands;
};

struct NamedBarrier {
  uint32_t threads = 0;
  std::vector<uint32_t> arrived;
  std::vector<Fiber*> waiting;
  SeenPointer seen;
};

struct Block {
  uint32_t rank = 0;  ///< in its cluster
  Size index;
  std::vector<Fiber*> threads;
  char* window = nullptr;        ///< kWindowBytes of shared memory
  size_t dynamic_begin = 0, dynamic_end = 0;
  std::vector<ByteHistory> dynamic_history, static_history;
  std::vector<Meeting> warps, warpgroups;
  Meeting all, cluster;  ///< `cluster` of the first block is that of all of them
  uint32_t exited = 0;
  std::map<uint32_t, uint32_t> visits;   ///< of threads of other blocks to its shared memory: their last events
  std::map<uint32_t, Barrier> barriers;  ///< by their offset in the window
  NamedBarrier named[16];
  std::vector<Warpgroup> products;       ///< of each warpgroup
};

inline constexpr size_t kStackBytes = 128 * 1024, kWindowBytes = 256 * 1024;
inline constexpr uint32_t kStaticWindow = uint32_t(kWindowBytes);  ///< where static shared memory starts in the shared window
inline constexpr uint32_t kRankShift = 24;  ///< of an address in the cluster: above it is the rank of the block, from 1

// scheduler.cc
extern Fiber* current;          ///< null outside of kernels
extern const Launch* launching;
extern uint64_t launch_number;
extern std::vector<std::unique_ptr<Block>> blocks;  ///< of the cluster that runs
const char* kernel_name(const void* kernel);
uint64_t block_number(const Block& block);

/// Lets others run until `make_ready`.
void suspend(const char* what, Site site);
void make_ready(Fiber* fiber);

// memory.cc
void start_block(Block& block);
void start_launch(const Launch& launch);
/// Whether the kernel's static shared memory fits beside the dynamic; the bytes of the former.
size_t static_shared_bytes(const Launch& launch);
/// Checks and remembers an access to dynamic shared memory.
void touch_dynamic(Block& block, uintptr_t offset, size_t bytes, Access access, const Toucher& by);

// barrier.cc and bulk.cc
/// A place in shared memory of the cluster.
struct Place {
  Block& block;
  uint32_t offset;
};
Place place_of(uint32_t address, const char* what);
size_t at_byte(const Place& place);
/// Counts `bytes` that a copy wrote at the barrier of `place`.
void count_bytes(const Place& place, int64_t bytes);
/// The barrier that lies there; fails if there is none, or none that this thread, or the copy engine, can know of.
Barrier& barrier_at(const Place& place, const char* what, bool for_copies);
/// Remembers that this thread touches shared memory of the block, if it is another's.
void visit(Block& block);
/// What the thread leaves unfinished that must not be, or null.
const char* left_undone(const Fiber& fiber);
/// What the cluster leaves on its way.
std::string copies_left();

}  // namespace ait::emulator
#endif  // AIT_EMULATOR_STATE_H_
