#include "config.h"

#include <cstdlib>
#include <thread>

#include "ait/attention_service.h"
#include "ait/gemm_service.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace ait::runtime {
namespace {

struct Candidates {
  std::vector<std::string> gemm, attention;
};

Candidates& candidates() {
  static Candidates lists;
  return lists;
}

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

const std::vector<std::string>& gemm_library_candidates() { return candidates().gemm; }
void set_gemm_library_candidates(std::vector<std::string> list) { candidates().gemm = std::move(list); }

const std::vector<std::string>& attention_library_candidates() { return candidates().attention; }
void set_attention_library_candidates(std::vector<std::string> list) { candidates().attention = std::move(list); }

int num_threads() {
  static const int count = count_threads();
  return count;
}

}  // namespace ait::runtime
