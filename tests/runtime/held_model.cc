// A model library written by hand: a run writes 1 to y, and ends when its caller writes to x.
#include "ait/model_abi.h"

namespace {

const ait_tensor_v1 kInputs[] = {{"x", AIT_F32, 1}};
const ait_tensor_v1 kOutputs[] = {{"y", AIT_F32, 1}};

void shapes(const int64_t*, int64_t* out) { out[0] = out[1] = 1; }
int64_t arena_bytes(const int64_t*) { return 0; }

int32_t run(const ait_run_v1* args) {
  *static_cast<volatile float*>(args->outputs[0]) = 1;
  while (*static_cast<const volatile float*>(args->inputs[0]) == 0) {
  }
  return 0;
}

const ait_model_v1 kModel = {AIT_MODEL_ABI_VERSION, "held", "cpu", 0, 1, 1, 0, nullptr, kInputs, kOutputs, nullptr, 0,
                             shapes, arena_bytes, run};

}  // namespace

extern "C" const ait_model_v1* ait_model_get() { return &kModel; }
