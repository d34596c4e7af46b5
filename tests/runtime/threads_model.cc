// A model library written by hand: y is the number of threads that a run may use. A run waits, for some seconds at most, until x runs in
// all have begun, and until as many are about to end; y is -1 if they do not.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "ait/model_abi.h"
#include "ait/parallel.h"

namespace {

const ait_tensor_v1 kInputs[] = {{"x", AIT_F32, 1}};
const ait_tensor_v1 kOutputs[] = {{"y", AIT_F32, 1}};
std::atomic<int> begun{0}, ended{0};

void shapes(const int64_t*, int64_t* out) { out[0] = out[1] = 1; }
int64_t arena_bytes(const int64_t*) { return 0; }

int32_t run(const ait_run_v1* args) {
  const int wanted = int(*static_cast<const float*>(args->inputs[0]));
  float& y = *static_cast<float*>(args->outputs[0]);
  y = float(ait::num_threads());
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto meet = [&](std::atomic<int>& count) {
    ++count;
    while (count.load() < wanted) {
      if (std::chrono::steady_clock::now() > late) return false;
      std::this_thread::yield();
    }
    return true;
  };
  if (!meet(begun) || !meet(ended)) y = -1;
  return 0;
}

const ait_model_v1 kModel = {AIT_MODEL_ABI_VERSION, "threads", "cpu", 0, 1, 1, 0, nullptr, kInputs, kOutputs, nullptr, 0,
                             shapes, arena_bytes, run, ait::needed_services};

}  // namespace

extern "C" const ait_model_v1* ait_model_get(void) { return &kModel; }
