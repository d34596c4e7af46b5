// The attention kernels that attention.py checks and times, behind a C interface. Compiled in parts, see VARIANTS there.
#include <stdio.h>

#include "ait/kernels/gpu/attention.cuh"
#include "ait/kernels/gpu/attention_hopper.cuh"
#include "ait/kernels/gpu/attention_split.cuh"

using namespace ait::gpu;

struct AttentionCall {
  int64_t batch, heads, rows, cols, depth, width, group, window, masked, causal, option;
  int64_t strides[4][3];  // of q, k, v, o: batch, head, row
  int64_t mask[4];
  const void *q, *k, *v, *m;
  void *o, *stream;
  float scale;
};

// Every part has the same names here.
namespace {
int32_t print_failure(void*, const char* message) {
  fprintf(stderr, "%s\n", message);
  return 1;
}

template <class T, bool kMasked, bool kCausal, bool kWindow>
int32_t attention_with(const AttentionCall& c) {
  ait_host_v1 host{nullptr, print_failure};
  const ait::Context ctx{c.stream, &host};
  const AttentionShape shape{c.batch, c.heads, c.rows, c.cols, c.depth, c.width, c.scale, c.group, c.window > 0 ? c.window : ait::kNoWindow};
  auto heads = [&](auto* data, int i) { return Heads<std::remove_pointer_t<decltype(data)>>{data, c.strides[i][0], c.strides[i][1], c.strides[i][2]}; };
  const auto q = heads(static_cast<const T*>(c.q), 0), k = heads(static_cast<const T*>(c.k), 1), v = heads(static_cast<const T*>(c.v), 2);
  const auto o = heads(static_cast<T*>(c.o), 3);
  const ScoreOperand<T, true, ait::ScoreColumns::kUnit> mask{static_cast<const T*>(c.m), c.mask[0], c.mask[1], c.mask[2], c.mask[3]};
  auto run = [&](const auto& scores) {
#if defined(HOPPER)
    return attention_hopper<TILE, kCausal, kWindow>(ctx, shape, q, k, v, o, scores, LogSums<float>{}, int(c.option));
#elif defined(SPLIT)
    return attention_split<TILE, kCausal, kWindow>(ctx, shape, q, k, v, o, scores, LogSums<float>{}, int(c.option));
#else
    return attention_mma<TILE, kCausal, kWindow, false>(ctx, shape, q, k, v, o, scores);
#endif
  };
  if constexpr (kMasked) {
    return run(changed_scores<ait::AddMask>(mask));
  } else {
    return run(PlainScores{});
  }
}

}  // namespace

extern "C" int32_t NAME(const AttentionCall* c) {
#if !defined(HOPPER)
  if (c->masked) return c->causal ? attention_with<TYPE, true, true, false>(*c) : attention_with<TYPE, true, false, false>(*c);
#endif
#if defined(WINDOWS)
  if (c->window > 0) return c->causal ? attention_with<TYPE, false, true, true>(*c) : attention_with<TYPE, false, false, true>(*c);
#endif
  return c->causal ? attention_with<TYPE, false, true, false>(*c) : attention_with<TYPE, false, false, false>(*c);
}
