// A fault at each allocation and each launch in turn, of a load and of runs of the tiny model: an error with a status, and the next
// call is right. Built with AddressSanitizer, which then looks for leaks. The library has no hook for it: this program
// has its own `operator new` and `aligned_alloc`, which the library uses, and a function that the tiny model asks before a launch.
//
//   faults tiny.ait
#include <ait/model.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {

thread_local int64_t until_fault = -1;  ///< the steps before the one that fails; negative: none fails

bool fails() { return until_fault >= 0 && until_fault-- == 0; }

}  // namespace

extern "C" bool ait_test_fault(const char*) { return fails(); }

extern "C" void* aligned_alloc(size_t alignment, size_t bytes) {
  void* data = nullptr;
  return fails() || posix_memalign(&data, alignment, bytes) != 0 ? nullptr : data;
}

void* operator new(size_t bytes) {
  void* const data = fails() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }

namespace {

[[noreturn]] void stop(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::_Exit(1);
}

struct Case {
  Case(int64_t batch, int64_t seq, bool is_strided)
      : shape{batch, 2 * seq}, strides{4 * seq, 2}, m_shape{batch, seq}, x(static_cast<size_t>(batch * seq * (is_strided ? 4 : 2))),
        m(static_cast<size_t>(batch * seq)), y(static_cast<size_t>(batch * seq * 2)), s(static_cast<size_t>(batch)),
        inputs{{x.data(), AIT_F32, 2, shape, is_strided ? strides : nullptr, 0}, {m.data(), AIT_F32, 2, m_shape, nullptr, 0}},
        outputs{{y.data(), AIT_F32, 2, shape, nullptr, 0}, {s.data(), AIT_F32, 1, shape, nullptr, 0}} {
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
    for (size_t i = 0; i < m.size(); ++i) m[i] = static_cast<float>(i % 5);
  }

  ait_status run(ait_model* model) { return ait_model_run(model, inputs, 2, outputs, 2, nullptr, nullptr); }

  /// Runs again; y must be 2.5 x - m.
  void check(ait_model* model) {
    for (float& value : y) value = -99;
    if (run(model) != AIT_OK) stop(std::string("the run after a fault: ") + ait_last_error());
    const size_t step = x.size() / y.size();
    for (size_t i = 0; i < y.size(); ++i) {
      if (y[i] != 2.5f * x[i * step] - m[i / 2]) stop("a wrong result after a fault");
    }
  }

  const int64_t shape[2], strides[2], m_shape[2];
  std::vector<float> x, m, y, s;
  const ait_tensor inputs[2], outputs[2];
};

/// Fails step after step of `body`, until it takes no more; calls `after` after each. Returns how many failed.
template <class Body, class After>
int faults(const char* what, Body&& body, After&& after) {
  for (int n = 0; n < 100000; ++n) {
    until_fault = n;
    const ait_status status = body();
    const bool has_failed = until_fault < 0;
    until_fault = -1;
    if (!has_failed && status == AIT_OK) return n;
    if (!has_failed) stop(std::string(what) + ": an error without a fault: " + ait_last_error());
    if (status != AIT_MEMORY_ERROR && status != AIT_RUN_ERROR) {
      stop(std::string(what) + ": fault " + std::to_string(n) + " has status " + std::to_string(status) + ": " + ait_last_error());
    }
    after();
  }
  stop(std::string(what) + ": no end of faults");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const ait_load_options options{sizeof(ait_load_options), 2, 0, 0};
  Case plain(8, 16, false), strided(8, 16, true), small(1, 1, false);
  ait_model* model = nullptr;
  const auto load = [&] { return ait_model_load(argv[1], &options, &model); };
  const auto release = [&] {
    ait_model_free(model);
    model = nullptr;
  };
  const int of_load = faults("a load", load, [&] {
    if (model != nullptr) stop("a load that failed returned a model");
    if (load() != AIT_OK) stop(std::string("the load after a fault: ") + ait_last_error());
    small.check(model);
    release();
  });
  int of_runs = 0;
  for (Case* one : {&small, &plain, &strided}) {
    // A run with the memory of earlier ones, and the first run of a model.
    of_runs += faults("a run", [&] { return one->run(model); }, [&] { one->check(model); });
    release();
    if (load() != AIT_OK) stop(ait_last_error());
    of_runs += faults("a first run", [&] { return one->run(model); }, [&] {
      one->check(model);
      release();
      if (load() != AIT_OK) stop(ait_last_error());
    });
  }
  release();
  std::printf("%d %d\n", of_load, of_runs);
}
