// A model library written by hand: y = x * w + b, s = row sums of y, for x of shape [batch, 2*seq] and m of shape [batch, seq].
// A batch of 3 makes the model fail, so that tests see what a failed run leaves behind.
#include <cstring>

#include "ait/context.h"
#include "ait/model_abi.h"
#include "ait/types.h"

/// A program that makes launches fail defines it.
extern "C" __attribute__((weak)) bool ait_test_fault(const char* what);
/// A device of a test's (fake_cuda/cudart.cc) defines it: `work` begins with `count` addresses.
extern "C" __attribute__((weak)) int ait_test_launch(void* stream, void (*body)(const void* work), const void* work, size_t bytes, int count);

namespace {

const ait_dim_v1 kDims[] = {{"batch", 0, 8, 0, 0, 1, 0}, {"seq", 1, 16, 0, 1, 2, 0}};
const ait_tensor_v1 kInputs[] = {{"x", AIT_F32, 2}, {"m", AIT_F32, 2}};
const ait_tensor_v1 kOutputs[] = {{"y", AIT_F32, 2}, {"s", AIT_F32, 1}};
const int64_t kShape[] = {1};
const int64_t kPlaceW[] = {0, 512}, kPlaceB[] = {256};
const ait_constant_v1 kConstants[] = {{"w", AIT_F32, 1, kShape, 4, 2, kPlaceW}, {"b", AIT_F32, 1, kShape, 4, 1, kPlaceB}};

void shapes(const int64_t* d, int64_t* out) {
  const int64_t values[] = {d[0], 2 * d[1], d[0], d[1], d[0], 2 * d[1], d[0]};
  std::memcpy(out, values, sizeof values);
}

// No machine has the memory for a batch of 7.
int64_t arena_bytes(const int64_t* d) { return d[0] == 7 ? int64_t{1} << 60 : d[0] * d[1] * 8; }

/// What a launch needs; the addresses come first.
struct Work {
  const void *x, *m, *scratch, *y, *s, *constants;
  float w, b;
  int64_t batch, columns;
};

void compute(const void* work) {
  const Work& given = *static_cast<const Work*>(work);
  const float w = given.w, b = given.b;
  const int64_t batch = given.batch, columns = given.columns;
  const auto* x = static_cast<const float*>(given.x);
  const auto* m = static_cast<const float*>(given.m);
  auto* scratch = static_cast<float*>(const_cast<void*>(given.scratch));
  auto* y = static_cast<float*>(const_cast<void*>(given.y));
  auto* s = static_cast<float*>(const_cast<void*>(given.s));
  for (int64_t i = 0; i < batch * columns; ++i) scratch[i] = x[i] * w;
  for (int64_t r = 0; r < batch; ++r) {
    float sum = 0;
    for (int64_t c = 0; c < columns; ++c) {
      y[r * columns + c] = scratch[r * columns + c] + b * m[r * (columns / 2) + c / 2];
      sum += y[r * columns + c];
    }
    s[r] = sum;
  }
}

int32_t run(const ait_run_v1* args) {
  const ait::Context ctx{args->stream, args->host};
  const int64_t batch = args->dims[0], columns = 2 * args->dims[1];
  const void *x = args->inputs[0], *m = args->inputs[1];
  const auto* constants = static_cast<const char*>(args->constants);
  float w, again, b;
  std::memcpy(&w, constants, 4);
  std::memcpy(&again, constants + 512, 4);
  std::memcpy(&b, constants + 256, 4);
  if (ait_test_fault != nullptr && ait_test_fault("a launch")) return ctx.fail("a launch failed");
  if (batch == 3) return ctx.fail("a batch of 3 is refused");
  if (w != again) return ctx.fail("the places of w disagree");
  const Work work{x, m, args->arena, args->outputs[0], args->outputs[1], args->constants, w, b, batch, columns};
  if (ait_test_launch == nullptr) {
    compute(&work);
  } else if (const int status = ait_test_launch(args->stream, compute, &work, sizeof work, 6); status != 0) {
    return ctx.fail(status == 1 ? "memory of another device" : "a launch failed");
  }
  return 0;
}

const ait_model_v1 kModel = {AIT_MODEL_ABI_VERSION, "tiny", "cpu",      2,           2,   2,     2, kDims,
                             kInputs,               kOutputs, kConstants, 768, shapes, arena_bytes, run};

}  // namespace

extern "C" const ait_model_v1* ait_model_get(void) { return &kModel; }
