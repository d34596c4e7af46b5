#include "threads.h"

#include <cstdlib>
#include <thread>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace ait::runtime {
namespace {

int count_threads() {
  if (const char* text = std::getenv("AIT_NUM_THREADS")) {
    char* end = nullptr;
    const long count = std::strtol(text, &end, 10);
    if (end != text && *end == '\0' && count >= 1 && count <= 4096) return static_cast<int>(count);
  }
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : static_cast<int>(count);
#endif
}

}  // namespace

int num_threads() {
  static const int count = count_threads();
  return count;
}

}  // namespace ait::runtime
