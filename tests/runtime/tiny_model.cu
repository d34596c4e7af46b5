// The tiny model of tiny_model.cc for CUDA: y = x * w + b * m, s = row sums of y. A batch of 3 makes the model fail after its first
// launch; a batch of 5 waits for the stream, which cannot be recorded into a graph.
#include "ait/gpu/launch.h"

namespace {

const ait_dim_v1 kDims[] = {{"batch", 0, 64, 0, 0, 1, 0}, {"seq", 1, 16, 0, 1, 2, 0}};
const ait_tensor_v1 kInputs[] = {{"x", AIT_F32, 2}, {"m", AIT_F32, 2}};
const ait_tensor_v1 kOutputs[] = {{"y", AIT_F32, 2}, {"s", AIT_F32, 1}};
const int64_t kShape[] = {1};
const int64_t kPlaceW[] = {0, 512}, kPlaceB[] = {256};
const ait_constant_v1 kConstants[] = {{"w", AIT_F32, 1, kShape, 4, 2, kPlaceW}, {"b", AIT_F32, 1, kShape, 4, 1, kPlaceB}};

void shapes(const int64_t* d, int64_t* out) {
  const int64_t values[] = {d[0], 2 * d[1], d[0], d[1], d[0], 2 * d[1], d[0]};
  for (int i = 0; i < 7; ++i) out[i] = values[i];
}

// No machine has the memory for a batch of 7.
int64_t arena_bytes(const int64_t* d) { return d[0] == 7 ? int64_t{1} << 60 : d[0] * d[1] * 8; }

__global__ void scale(const float* x, const float* w, float* scratch, int64_t count) {
  ait::gpu::wait_for_previous();
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < count) scratch[i] = x[i] * *w;
  ait::gpu::allow_next();
}

__global__ void shift_and_sum(const float* scratch, const float* m, const float* b, float* y, float* s, int64_t columns) {
  ait::gpu::wait_for_previous();
  const int64_t row = blockIdx.x;
  if (threadIdx.x != 0) return;
  float sum = 0;
  for (int64_t c = 0; c < columns; ++c) {
    const float value = scratch[row * columns + c] + *b * m[row * (columns / 2) + c / 2];
    y[row * columns + c] = value;
    sum += value;
  }
  s[row] = sum;
}

int32_t run(const ait_run_v1* args) {
  const ait::Context ctx{args->stream, args->host};
  const int64_t batch = args->dims[0], columns = 2 * args->dims[1], count = batch * columns;
  const auto* constants = static_cast<const char*>(args->constants);
  auto* scratch = static_cast<float*>(args->arena);
  ait::gpu::LaunchConfig config;
  config.dependent = true;
  config.grid = dim3(static_cast<unsigned>((count + 127) / 128));
  config.block = dim3(128);
  int32_t status = ait::gpu::launch(ctx, config, scale, static_cast<const float*>(args->inputs[0]),
                                    reinterpret_cast<const float*>(constants + 512), scratch, count);
  if (status != 0) return status;
  if (batch == 3) return ctx.fail("a batch of 3 is refused");
  if (batch == 5 && cudaStreamSynchronize(static_cast<cudaStream_t>(ctx.stream)) != cudaSuccess) return ctx.fail("cannot wait");
  config.grid = dim3(static_cast<unsigned>(batch));
  config.block = dim3(32);
  return ait::gpu::launch(ctx, config, shift_and_sum, static_cast<const float*>(scratch), static_cast<const float*>(args->inputs[1]),
                          reinterpret_cast<const float*>(constants + 256), static_cast<float*>(args->outputs[0]),
                          static_cast<float*>(args->outputs[1]), columns);
}

const ait_model_v1 kModel = {AIT_MODEL_ABI_VERSION, "tiny", "cuda",     2,   2,      2,           2, kDims,
                             kInputs,               kOutputs, kConstants, 768, shapes, arena_bytes, run};

}  // namespace

extern "C" const ait_model_v1* ait_model_get(void) { return &kModel; }
