#include "environment.h"

#include <cstdlib>

namespace ait::runtime {

DLDevice current_device() { return {kDLCPU, 0}; }

bool is_recorded(void*) { return false; }

void* allocate_on(void*, size_t bytes) noexcept {
  constexpr size_t kAlignment = 64;
  return std::aligned_alloc(kAlignment, (bytes + kAlignment) / kAlignment * kAlignment);
}

void release_on(void*, void* data) noexcept { std::free(data); }

}  // namespace ait::runtime
