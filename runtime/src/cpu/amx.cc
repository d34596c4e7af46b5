#include "cpu/amx.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ait::runtime {
namespace {

/// Asks processor and kernel; the kernel keeps its answer for all threads of the process, also those to come.
bool request() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24, kXsave = 1u << 27;  // leaf 7, edx; leaf 1, ecx
  constexpr unsigned kTileState = 3u << 17;                                   // of XCR0: configuration and data
  constexpr long kRequestPermission = 0x1023, kTileData = 18;                 // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kXsave) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kBf16) == 0 || (d & kTiles) == 0) return false;
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileState) == kTileState && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

std::atomic<bool>& wanted() {
  static std::atomic<bool> flag{[] {
    const char* const text = std::getenv("AIT_AMX");
    return text == nullptr || std::strcmp(text, "0") != 0;
  }()};
  return flag;
}

int32_t may_use() {
  if (!wanted().load(std::memory_order_relaxed)) return 0;
  static const bool granted = request();
  return granted;
}

int32_t set_wanted(int32_t want) { return wanted().exchange(want != 0); }

}  // namespace

const ait_amx_service_v1 kAmxService{may_use, set_wanted};

}  // namespace ait::runtime
