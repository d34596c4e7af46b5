/// @file copy_async.cc
/// @brief cp.async: copies of 4 or 16 bytes, in groups that a thread waits for.
#include <string.h>

#include "emulator/state.h"

namespace ait::emulator {

void copy_async(void* to, const void* from, int size, int bytes) {
  if (uintptr_t(to) % uintptr_t(size) != 0) fail("cp.async: the destination %p is not aligned to %d bytes", to, size);
  if (bytes < 0 || bytes > size) fail("cp.async: %d bytes", bytes);
  if (bytes > 0) {
    if (uintptr_t(from) % uintptr_t(size) != 0) fail("cp.async: the source %p is not aligned to %d bytes", from, size);
    check_read(from, size_t(bytes));
  }
  check_write(to, size_t(size));
  ByteHistory* history = &current->block->dynamic_history[uintptr_t(to) - uintptr_t(current->block->window)];
  for (int i = 0; i < size; ++i) history[i].state = ByteHistory::pending;
  current->copies.push_back({static_cast<char*>(to), static_cast<const char*>(from), size, bytes});
}

void copy_async_commit() {
  current->groups.push_back(std::move(current->copies));
  current->copies.clear();
}

void copy_async_wait(int pending) {
  Fiber& self = *current;
  while (self.groups.size() > size_t(pending)) {
    for (const AsyncCopy& copy : self.groups.front()) {
      memset(copy.to, 0, size_t(copy.size));
      memcpy(copy.to, copy.from, size_t(copy.bytes));
      ByteHistory* history = &self.block->dynamic_history[uintptr_t(copy.to) - uintptr_t(self.block->window)];
      for (int i = 0; i < copy.size; ++i) {
        history[i].state = ByteHistory::written;
        history[i].write_event = self.now;
      }
    }
    self.groups.pop_front();
  }
}

}  // namespace ait::emulator
