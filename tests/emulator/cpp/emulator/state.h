/// @file state.h
/// @brief What the scheduler and the memory of the emulator know of each other.
#ifndef AIT_EMULATOR_STATE_H_
#define AIT_EMULATOR_STATE_H_

#include <deque>
#include <memory>
#include <vector>

#include "emulator/emulator.h"

namespace ait::emulator {

#if defined(__HIPCC__)
inline constexpr int kWarp = 64;
inline constexpr size_t kDefaultShared = 64 * 1024, kMostShared = 64 * 1024;  // gfx90a, gfx942
#else
inline constexpr int kWarp = 32;
inline constexpr size_t kDefaultShared = 48 * 1024, kMostShared = 227 * 1024;  // sm_90
#endif

/// What a thread knows of all others of its cluster: their events up to these are visible to it (Lamport's happened-before, as a vector).
using Seen = std::vector<uint32_t>;

struct AsyncCopy {
  char* to;
  const char* from;
  int bytes;
};

struct Block;

struct Fiber {
  void* stack_pointer = nullptr;
  char* stack = nullptr;
  Block* block = nullptr;
  uint32_t thread = 0;   ///< in the block
  uint32_t index = 0;    ///< in the cluster
  uint32_t now = 1;      ///< the number of its next event
  std::shared_ptr<const Seen> seen;
  bool done = false, waited_for_previous = false;
  const char* waits_for = nullptr;
  Site site{nullptr, 0};
  std::vector<AsyncCopy> copies;
  std::deque<std::vector<AsyncCopy>> groups;

  int warp() const { return int(thread) / kWarp; }
  int lane() const { return int(thread) % kWarp; }
  bool knows(uint32_t other, uint32_t event) const { return other == index || (*seen)[other] >= event; }
};

/// What happened to a byte of shared memory.
struct ByteHistory {
  uint32_t write_event = 0, read_event = 0, other_read_event = 0;
  uint16_t writer = 0, reader = 0, other_reader = 0;
  enum State : uint8_t { unwritten, written, pending } state = unwritten;
  bool atomic = false;
};

struct Meeting {
  const char* what = nullptr;
  Site site{nullptr, 0};
  uint64_t lanes = 0;
  std::vector<Fiber*> here;
  bool orders = false;
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
};

inline constexpr size_t kStackBytes = 128 * 1024, kWindowBytes = 256 * 1024;
inline constexpr uint32_t kStaticWindow = uint32_t(kWindowBytes);  ///< where static shared memory starts in the shared window

// scheduler.cc
extern Fiber* current;          ///< null outside of kernels
extern const Launch* launching;
extern uint64_t launch_number;
extern std::vector<std::unique_ptr<Block>> blocks;  ///< of the cluster that runs
const char* kernel_name(const void* kernel);
uint64_t block_number(const Block& block);

// memory.cc
void start_block(Block& block);
void start_launch(const Launch& launch);
/// Whether the kernel's static shared memory fits beside the dynamic; the bytes of the former.
size_t static_shared_bytes(const Launch& launch);

}  // namespace ait::emulator
#endif  // AIT_EMULATOR_STATE_H_
