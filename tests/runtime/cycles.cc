// Runs of one model, and cycles of load, run and free, of the tiny model. Built with AddressSanitizer, which counts the
// bytes of the heap and looks for leaks at the end. Prints what the second half of the runs and of the cycles have left:
// bytes of the heap, mappings of memory, open files.
//
//   cycles tiny.ait RUNS CYCLES
#include <ait/model.h>
#include <dirent.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

/// Of AddressSanitizer; not every compiler comes with its header.
extern "C" size_t __sanitizer_get_current_allocated_bytes();

namespace {

[[noreturn]] void stop(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::_Exit(1);
}

struct Usage {
  int64_t bytes = 0, mappings = 0, files = 0;

  static Usage now() {
    Usage usage;
    {
      std::ifstream maps("/proc/self/maps");
      for (std::string line; std::getline(maps, line);) usage.mappings += line.find(".so") != std::string::npos;
    }
    DIR* const open = opendir("/proc/self/fd");
    while (readdir(open) != nullptr) ++usage.files;
    closedir(open);
    usage.bytes = static_cast<int64_t>(__sanitizer_get_current_allocated_bytes());
    return usage;
  }

  void print_since(const Usage& start) const {
    std::printf("%lld %lld %lld\n", static_cast<long long>(bytes - start.bytes), static_cast<long long>(mappings - start.mappings),
                static_cast<long long>(files - start.files));
  }
};

ait_model* load(const char* path) {
  const ait_load_options options{sizeof(ait_load_options), 2, 0, 0};
  ait_model* model = nullptr;
  if (ait_model_load(path, &options, &model) != AIT_OK) stop(ait_last_error());
  return model;
}

/// Runs with x = 2 and m = 1, so that y = 2.5 x - m = 4.
void run(ait_model* model, int64_t batch, int64_t seq) {
  const int64_t shape[] = {batch, 2 * seq}, m_shape[] = {batch, seq};
  std::vector<float> x(static_cast<size_t>(batch * seq * 2), 2), m(static_cast<size_t>(batch * seq), 1), y(x.size()), s(static_cast<size_t>(batch));
  const ait_tensor inputs[] = {{x.data(), AIT_F32, 2, shape, nullptr, 0}, {m.data(), AIT_F32, 2, m_shape, nullptr, 0}};
  const ait_tensor outputs[] = {{y.data(), AIT_F32, 2, shape, nullptr, 0}, {s.data(), AIT_F32, 1, shape, nullptr, 0}};
  if (ait_model_run(model, inputs, 2, outputs, 2, nullptr, nullptr) != AIT_OK) stop(ait_last_error());
  for (const float value : y) {
    if (value != 4) stop("a wrong result: " + std::to_string(value));
  }
  // The tiny model refuses a batch of 3: a run that fails leaves nothing either.
  const int64_t wrong[] = {3, 2 * seq};
  const ait_tensor refused[] = {{x.data(), AIT_F32, 2, wrong, nullptr, 0}, inputs[1]};
  if (ait_model_run(model, refused, 2, outputs, 2, nullptr, nullptr) == AIT_OK) stop("a wrong input was accepted");
}

template <class Step>
void repeat(int count, Step&& step) {
  Usage half;
  for (int i = 0; i < count; ++i) {
    if (i == count / 2) half = Usage::now();
    step(i);
  }
  Usage::now().print_since(half);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int64_t batches[] = {1, 2, 4, 5, 6, 8}, seqs[] = {1, 3, 8, 16};
  ait_model* const model = load(argv[1]);
  repeat(std::atoi(argv[2]), [&](int i) { run(model, batches[i % 6], seqs[i % 4]); });
  ait_model_free(model);
  repeat(std::atoi(argv[3]), [&](int i) {
    ait_model* const own = load(argv[1]);
    run(own, batches[i % 6], seqs[i % 4]);
    ait_model_free(own);
  });
}
