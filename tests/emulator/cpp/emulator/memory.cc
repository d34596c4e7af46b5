/// @file memory.cc
/// @brief Which memory a thread may touch, and who touched it before: bounds, alignment, first writes, and the order of accesses.
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <mutex>
#include <string>

#include "emulator/state.h"

namespace ait::emulator {
namespace {

/// A variable in static shared memory.
struct Variable {
  std::string kernel;  ///< mangled name of the kernel, without _Z
  std::string name;
  size_t offset, bytes;
  std::string where = "shared '" + name + "'";  ///< for messages
  size_t history = 0;  ///< the place of its first byte in `Block::static_history`, if its kernel was launched
};

/// A buffer of the case.
struct Buffer {
  uintptr_t begin, end;
  bool writable, constant;  ///< `constant`: no launch ever writes it
  int number;
  struct Byte {
    uint64_t launch = 0, writer = 0;
    bool exists = false;
  };
  std::vector<Byte> bytes;
};

std::vector<Variable> variables;
std::vector<const Variable*> launched_variables;
size_t launched_bytes = 0;  ///< of all of them
std::vector<Buffer> buffers;
uintptr_t static_begin = 0, static_end = 0;
std::vector<std::pair<uintptr_t, size_t>> guards;  ///< of the compiler, beside variables in shared memory: it notes whether they are initialised
struct Range {
  uintptr_t begin, end;
};
std::vector<Range> program;

int find_program(dl_phdr_info* info, size_t, void* self) {
  bool mine = false;
  std::vector<Range> ranges;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    ranges.push_back({begin, begin + header.p_memsz});
    mine = mine || (uintptr_t(self) >= begin && uintptr_t(self) < ranges.back().end);
  }
  if (mine) program = ranges;
  return mine;
}

const char* access_name(Access access) { return access >= write ? "write" : "read"; }

[[noreturn]] void fail_access(const Toucher& by, Access access, const char* where, size_t at, const char* format, uint32_t who) {
  char text[200];
  snprintf(text, sizeof text, format, name_of(who).c_str());
  fail("%s%s of %s, byte %zu, %s", by.by, access_name(access), where, at, text);
}

/// An access may not follow that of `who`.
[[noreturn]] void fail_unordered(const Toucher& by, Access access, const char* where, size_t at, const char* did, uint32_t who, uint32_t event) {
  const char* lacks = by.async && by.knows(who, event) ? "with no fence.proxy.async and barrier between"
                      : is_thread(who)                 ? "with no barrier between"
                                                       : "and nobody waited for";
  char text[100];
  snprintf(text, sizeof text, "which %%s %s %s", did, lacks);
  fail_access(by, access, where, at, text, who);
}

void check_history(ByteHistory& byte, Access access, const char* where, size_t at, const Toucher& by) {
  if (byte.state == ByteHistory::pending) {
    fail_access(by, access, where, at, "which an asynchronous copy of %s is still going to write", byte.writer);
  }
  if (byte.state == ByteHistory::barrier) fail_access(by, access, where, at, "which is a barrier that %s made", byte.writer);
  if (access == read && byte.state == ByteHistory::unwritten) fail("%sread of %s, byte %zu, which nothing wrote", by.by, where, at);
  if (byte.state == ByteHistory::written && !(access == atomic_write && byte.atomic) && !by.follows(byte.writer, byte.write_event)) {
    fail_unordered(by, access, where, at, "wrote", byte.writer, byte.write_event);
  }
  if (access >= write) {
    for (int i = 0; i < ByteHistory::kReaders && byte.read_events[i] != 0; ++i) {
      if (!by.follows_read(byte.readers[i], byte.read_events[i])) {
        fail_unordered(by, access, where, at, "read", byte.readers[i], byte.read_events[i]);
      }
      byte.read_events[i] = 0;
    }
    byte.state = ByteHistory::written;
    byte.writer = uint16_t(by.who);
    byte.write_event = by.event;
    byte.atomic = access == atomic_write;
  } else {
    // In the place of an older read that this one follows; the last place, if there is none.
    int place = 0;
    while (place < ByteHistory::kReaders - 1 && byte.read_events[place] != 0 && !by.knows(byte.readers[place], byte.read_events[place]) &&
           byte.readers[place] != by.who) {
      ++place;
    }
    byte.readers[place] = uint16_t(by.who);
    byte.read_events[place] = by.event;
  }
}

Toucher thread_touching() { return {*current->seen, current->index, current->now, current->index, false}; }

void check_dynamic(Block& block, uintptr_t offset, size_t bytes, Access access) { touch_dynamic(block, offset, bytes, access, thread_touching()); }

/// Registers that products still use may not be touched.
void check_held(const Fiber& self, uintptr_t address, size_t bytes, Access access) {
  for (const Held& held : self.held) {
    if (address >= uintptr_t(held.begin) + held.bytes || address + bytes <= uintptr_t(held.begin)) continue;
    if (held.result) fail("%s of an accumulator of a wgmma that was not waited for", access_name(access));
    if (access >= write) fail("write of an operand register of a wgmma that was not waited for");
  }
}

bool is_guard(uintptr_t address) {
  return std::any_of(guards.begin(), guards.end(), [&](const auto& guard) { return address - guard.first < guard.second; });
}

void check_static(Block& block, uintptr_t address, size_t bytes, Access access) {
  const size_t offset = address - static_begin;
  const Toucher by = thread_touching();
  for (const Variable* variable : launched_variables) {
    if (offset < variable->offset || offset >= variable->offset + variable->bytes) continue;
    if (offset + bytes > variable->offset + variable->bytes) break;
    const size_t inside = offset - variable->offset;
    for (size_t i = inside; i < inside + bytes; ++i) check_history(block.static_history[variable->history + i], access, variable->where.c_str(), i, by);
    return;
  }
  if (is_guard(address)) return;
  const Variable* nearest = nullptr;
  for (const Variable* variable : launched_variables) {
    if (variable->offset <= offset && (nearest == nullptr || variable->offset > nearest->offset)) nearest = variable;
  }
  if (nearest == nullptr) fail("%s of %zu bytes in shared memory that is not this kernel's", access_name(access), bytes);
  fail("%s of %zu bytes at byte %zu of shared '%s', which has %zu", access_name(access), bytes, offset - nearest->offset, nearest->name.c_str(),
       nearest->bytes);
}

bool check_buffers(uintptr_t address, size_t bytes, Access access) {
  for (size_t which = 0; which < buffers.size(); ++which) {
    Buffer& buffer = buffers[which];
    if (address < buffer.begin || address >= buffer.end) continue;
    if (address + bytes > buffer.end) return false;
    if (launching->dependent && !current->waited_for_previous && !buffer.constant) {
      fail("%s of buffer %d before wait_for_previous(): the launch before may still be running", access_name(access), buffer.number);
    }
    if (access >= write && !buffer.writable) fail("write of %zu bytes to buffer %d, an operand, at byte %zu", bytes, buffer.number, address - buffer.begin);
    if (buffer.writable) {
      const uint64_t self = block_number(*current->block) << 16 | current->thread;
      for (size_t i = 0; i < bytes; ++i) {
        Buffer::Byte& byte = buffer.bytes[address - buffer.begin + i];
        if (access < write && !byte.exists) fail("read of buffer %d, a result, at byte %zu, which nothing wrote", buffer.number, address - buffer.begin + i);
        if (access < write) continue;
        if (byte.launch == launch_number && byte.writer != self && access != atomic_write) {
          fail("write of buffer %d at byte %zu, which thread %u of block %u wrote in the same launch", buffer.number,
               address - buffer.begin + i, unsigned(byte.writer & 0xffff), unsigned(byte.writer >> 16));
        }
        byte = {launch_number, self, true};
      }
    }
    // Buffers lie in order: the one found first is the only one.
    if (which != 0) std::swap(buffers[which], buffers[which - 1]);
    return true;
  }
  return false;
}

void check(uintptr_t address, size_t bytes, Access access) {
  Fiber* self = current;
  if (self == nullptr) return;  // the host
  if (address - uintptr_t(self->stack) < kStackBytes) {
    if (!self->held.empty()) check_held(*self, address, bytes, access);
    return;
  }
  Block& block = *self->block;
  if (address - uintptr_t(block.window) < kWindowBytes) return check_dynamic(block, address - uintptr_t(block.window), bytes, access);
  if (address >= static_begin && address < static_end) return check_static(block, address, bytes, access);
  if (check_buffers(address, bytes, access)) return;
  if (access < write) {
    const uintptr_t arguments = uintptr_t(launching->arguments);
    if (address >= arguments && address + bytes <= arguments + launching->argument_bytes) return;
    for (const Range& range : program) {
      if (address >= range.begin && address + bytes <= range.end) return;
    }
  }
  for (const auto& other : blocks) {
    if (address - uintptr_t(other->window) < kWindowBytes) fail("%s of shared memory of block %u of the cluster by a plain address", access_name(access), other->rank);
    for (const Fiber* fiber : other->threads) {
      if (address - uintptr_t(fiber->stack) < kStackBytes) fail("%s of a local variable of thread %u", access_name(access), fiber->thread);
    }
  }
  if (is_guard(address)) return;
  if (!launched_variables.empty() && address - static_end < 4096) check_static(block, address, bytes, access);  // which fails
  const Buffer* near = nullptr;
  ptrdiff_t distance = 1 << 20;
  for (const Buffer& buffer : buffers) {
    for (const ptrdiff_t away : {ptrdiff_t(buffer.begin - address), ptrdiff_t(address - buffer.end)}) {
      if (away >= -ptrdiff_t(bytes) && away < distance) distance = away, near = &buffer;
    }
  }
  if (near == nullptr) fail("%s of %zu bytes at %p, far from any buffer", access_name(access), bytes, reinterpret_cast<void*>(address));
  fail("%s of %zu bytes at byte %td of buffer %d, which has %zu", access_name(access), bytes, ptrdiff_t(address - near->begin), near->number,
       size_t(near->end - near->begin));
}

template <size_t kBytes>
inline void check_aligned(const void* address, Access access) {
  if (kBytes > 1 && current != nullptr && uintptr_t(address) % kBytes != 0) {
    fail("%s of %zu bytes at %p, which is not aligned to them", access_name(access), kBytes, address);
  }
  check(uintptr_t(address), kBytes, access);
}

}  // namespace

void touch_dynamic(Block& block, uintptr_t offset, size_t bytes, Access access, const Toucher& by) {
  if (offset < block.dynamic_begin || offset + bytes > block.dynamic_end) {
    fail("%s%s of %zu bytes at byte %td of dynamic shared memory, which has %zu", by.by, access_name(access), bytes,
         ptrdiff_t(offset) - ptrdiff_t(block.dynamic_begin), block.dynamic_end - block.dynamic_begin);
  }
  if (block.exited == block.threads.size()) fail("%s%s of shared memory of block %u of the cluster, which has ended", by.by, access_name(access), block.rank);
  for (size_t i = 0; i < bytes; ++i) {
    check_history(block.dynamic_history[offset + i], access, "dynamic shared memory", offset + i - block.dynamic_begin, by);
  }
}

void start_launch(const Launch& launch) {
  if (program.empty()) dl_iterate_phdr(find_program, const_cast<void*>(launch.kernel));
}

size_t static_shared_bytes(const Launch& launch) {
  const std::string kernel = kernel_name(launch.kernel);
  launched_variables.clear();
  launched_bytes = 0;
  for (Variable& variable : variables) {
    if (variable.kernel != kernel) continue;
    launched_variables.push_back(&variable);
    variable.history = launched_bytes;
    launched_bytes += variable.bytes;
  }
  return launched_bytes;
}

void start_block(Block& block) {
  block.dynamic_begin = block.dynamic_end = 0;
  block.dynamic_history.clear();
  block.static_history.assign(launched_bytes, {});
  for (const Variable* variable : launched_variables) memset(reinterpret_cast<char*>(static_begin) + variable->offset, 0xff, variable->bytes);
}

void check_global(const void* address) {
  const uintptr_t at = uintptr_t(address);
  const bool is_static = at >= static_begin && at < static_end;
  if (current != nullptr && (is_static || at - uintptr_t(current->block->window) < kWindowBytes)) {
    fail("an address of shared memory, where an instruction accesses global memory alone");
  }
}

char* dynamic_shared(size_t alignment) {
  Block& block = *current->block;
  if (block.dynamic_begin == 0) {
    block.dynamic_begin = alignment < 16 ? 16 : alignment;  // no better aligned than it must be
    block.dynamic_end = block.dynamic_begin + launching->shared_bytes;
    block.dynamic_history.assign(block.dynamic_end, {});
    memset(block.window, 0xff, block.dynamic_end);  // nothing behind it can be read
  }
  return block.window + block.dynamic_begin;
}

uint32_t shared_address(const void* pointer) {
  const uintptr_t address = uintptr_t(pointer), window = uintptr_t(current->block->window);
  // In a cluster, the bits above say which block.
  if (address - window < kWindowBytes) return (blocks.size() > 1 ? (current->block->rank + 1) << kRankShift : 0) | uint32_t(address - window);
  if (address >= static_begin && address < static_end) return kStaticWindow + uint32_t(address - static_begin);
  fail("%p is no address of shared memory", pointer);
}

void* shared_pointer(uint32_t address, int rank) {
  if (address >> kRankShift != 0 && address >> kRankShift != current->block->rank + 1) {
    fail("the address of shared memory of another block where one of this block is needed");
  }
  address &= (1u << kRankShift) - 1;
  const Block& block = rank < 0 ? *current->block : *blocks[size_t(rank)];
  if (address < kStaticWindow) return block.window + address;
  return reinterpret_cast<char*>(static_begin) + (address - kStaticWindow);
}

void check_read(const void* from, size_t bytes) { check(uintptr_t(from), bytes, read); }
void check_speculative_read(const void* from, size_t bytes) { check(uintptr_t(from), bytes, speculative_read); }
void check_write(void* to, size_t bytes) { check(uintptr_t(to), bytes, write); }
void check_atomic(void* to, size_t bytes) { check(uintptr_t(to), bytes, atomic_write); }

void check_write_of_warp(uint32_t address, size_t bytes) {
  Fiber& self = *current;
  const uintptr_t offset = uintptr_t(shared_pointer(address)) - uintptr_t(self.block->window);
  if (offset >= kWindowBytes) return check_write(shared_pointer(address), bytes);
  touch_dynamic(*self.block, offset, bytes, write, {*self.seen, self.index, self.now, self.index, false, "", self.index - uint32_t(self.lane())});
}

namespace {
void check_remote(const void* at, size_t bytes, Access access) {
  if (uintptr_t(at) % bytes != 0) fail("%s of %zu bytes at %p of another block, which is not aligned to them", access_name(access), bytes, at);
  for (const auto& other : blocks) {
    const uintptr_t offset = uintptr_t(at) - uintptr_t(other->window);
    if (offset < kWindowBytes) return visit(*other), check_dynamic(*other, offset, bytes, access);
  }
  fail("%s of another block's memory that is not dynamic shared memory", access_name(access));
}
}  // namespace

void check_remote_read(const void* from, size_t bytes) { check_remote(from, bytes, read); }
void check_remote_write(void* to, size_t bytes) { check_remote(to, bytes, write); }

bool fill(void* data, int value, size_t bytes) {
  for (Buffer& buffer : buffers) {
    const uintptr_t begin = uintptr_t(data) - buffer.begin;
    if (uintptr_t(data) < buffer.begin || uintptr_t(data) + bytes > buffer.end || !buffer.writable) continue;
    for (size_t i = 0; i < bytes; ++i) buffer.bytes[begin + i].exists = true;
    memset(data, value, bytes);
    return true;
  }
  return false;
}

}  // namespace ait::emulator

// ** called from outside **

/// Forgets the library used before. `static_base`: where the thread-local variables of the one that is used from now on start.
extern "C" void ait_emulator_use(void* static_base) {
  using namespace ait::emulator;
  variables.clear();
  program.clear();
  guards.clear();
  static_begin = static_end = uintptr_t(static_base);
}

/// A variable in static shared memory of a kernel of that library.
extern "C" void ait_emulator_variable(const char* kernel, const char* name, size_t offset, size_t bytes) {
  using namespace ait::emulator;
  variables.push_back({kernel, name, offset, bytes});
  static_end = std::max(static_end, static_begin + offset + bytes);
}

/// A guard of the compiler in the same memory.
extern "C" void ait_emulator_guard(size_t offset, size_t bytes) {
  ait::emulator::guards.emplace_back(ait::emulator::static_begin + offset, bytes);
}

extern "C" void ait_emulator_forget_buffers() { ait::emulator::buffers.clear(); }

/// `role`: 0 an operand, 1 a result, 2 a constant, 3 a result that lies over an operand.
extern "C" void ait_emulator_buffer(void* begin, size_t bytes, int role, int number) {
  ait::emulator::Buffer buffer{uintptr_t(begin), uintptr_t(begin) + bytes, role == 1 || role == 3, role == 2, number, {}};
  if (buffer.writable) buffer.bytes.resize(bytes);
  for (auto& byte : buffer.bytes) byte.exists = role == 3;
  ait::emulator::buffers.push_back(std::move(buffer));
}

// ** called by what -fsanitize=thread inserts **

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
#define AIT_ACCESS(N)                                                                                            \
  void __tsan_read##N(void* p) { ait::emulator::check_aligned<N>(p, ait::emulator::read); }                                    \
  void __tsan_write##N(void* p) { ait::emulator::check_aligned<N>(p, ait::emulator::write); }                                    \
  void __tsan_unaligned_read##N(void* p) { ait::emulator::check(uintptr_t(p), N, ait::emulator::read); }                \
  void __tsan_unaligned_write##N(void* p) { ait::emulator::check(uintptr_t(p), N, ait::emulator::write); }                \
  void __tsan_volatile_read##N(void* p) { ait::emulator::check_aligned<N>(p, ait::emulator::read); }                           \
  void __tsan_volatile_write##N(void* p) { ait::emulator::check_aligned<N>(p, ait::emulator::write); }
AIT_ACCESS(1)
AIT_ACCESS(2)
AIT_ACCESS(4)
AIT_ACCESS(8)
AIT_ACCESS(16)
#undef AIT_ACCESS
void __tsan_read_range(void* p, size_t bytes) { ait::emulator::check(uintptr_t(p), bytes, ait::emulator::read); }
void __tsan_write_range(void* p, size_t bytes) { ait::emulator::check(uintptr_t(p), bytes, ait::emulator::write); }
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// What remains of calls of memcpy and memset in the sources is named so (simt.h).
void* ait_emulator_memcpy(void* to, const void* from, size_t bytes) {
  ait::emulator::check(uintptr_t(from), bytes, ait::emulator::read);
  ait::emulator::check(uintptr_t(to), bytes, ait::emulator::write);
  return memcpy(to, from, bytes);
}
void* ait_emulator_memset(void* to, int value, size_t bytes) {
  ait::emulator::check(uintptr_t(to), bytes, ait::emulator::write);
  return memset(to, value, bytes);
}
}
