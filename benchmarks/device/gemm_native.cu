// The kernels that gemm_native.py checks and times, behind a C interface. Compiled in parts (-DPART=n), see PARTS there.
#include <stdio.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "ait/kernels/gpu/gemm.cuh"
#include "ait/math.h"
#include "gemm_call.h"

using namespace ait::gpu;

struct BiasGelu {
  static AIT_FN void apply(float acc, float bias, float& out) { out = ait::gelu(acc + bias); }
};
struct BiasResidual {
  static AIT_FN void apply(float acc, float bias, float residual, float& out) { out = acc + bias + residual; }
};

inline int32_t print_failure(void*, const char* message) {
  fprintf(stderr, "%s\n", message);
  return 1;
}
inline ait_host_v1 host{nullptr, print_failure};
inline ait::Context context(void* stream) { return {stream, &host}; }

template <class T>
Matrices<T> matrices(T* data, bool unit_is_second, int64_t pitch, int64_t batch, int64_t inner) {
  return {data, unit_is_second ? pitch : 1, unit_is_second ? 1 : pitch, batch * inner, batch};
}

template <class Tile, class T, bool kAK, bool kBK>
int32_t gemm_with(const GemmCall& c) {
  const GemmShape shape{c.m, c.n, c.k, c.outer, c.inner};
  const auto a = matrices(static_cast<const T*>(c.a), kAK, c.lda, c.a_batch, c.inner);
  const auto b = matrices(static_cast<const T*>(c.b), !kBK, c.ldb, c.b_batch, c.inner);
  const auto d = matrices(static_cast<T*>(c.d), true, c.ldd, c.d_batch, c.inner);
  const Matrices<const T> bias{static_cast<const T*>(c.bias), 0, 1};
  const auto residual = matrices(static_cast<const T*>(c.residual), true, c.ldr, c.r_batch, c.inner);
  const ait::Context ctx = context(c.stream);
  auto go = [&](auto functor, auto extra) {
    using F = decltype(functor);
    if constexpr (std::is_same_v<Tile, void>) {
      return gemm_simt<F>(ctx, shape, a, b, d, extra);
    } else {
      return gemm_mma<Tile, kAK, kBK, true, F>(ctx, shape, a, b, d, extra, c.split);
    }
  };
  switch (c.epilogue) {
    case 0: return go(NoEpilogue{}, operands());
    case 1: return go(BiasGelu{}, operands(bias));
    default: return go(BiasResidual{}, operands(bias, residual));
  }
}

#if PART < 100
extern "C" int32_t NAME(const GemmCall* c) { return gemm_with<TILE, ait::half, true, true>(*c); }
#elif PART == 100
extern "C" int32_t gemm_other(const GemmCall* c) {  // other layouts and types, through one tile
  using Small = Tile<64, 64, 64, 2, 2, 4, 3>;
  using Wide = Tile<128, 64, 32, 4, 1, 3>;
  if (c->dtype == AIT_F32) return gemm_with<void, float, true, true>(*c);
  if (c->dtype == AIT_BF16) return gemm_with<Wide, ait::bfloat16, true, false>(*c);
  if (c->a_k && c->b_k) return gemm_with<Wide, ait::half, true, true>(*c);
  if (c->a_k) return gemm_with<Small, ait::half, true, false>(*c);
  return c->b_k ? gemm_with<Small, ait::half, false, true>(*c) : gemm_with<Wide, ait::half, false, false>(*c);
}
extern "C" int32_t gemm_simt_f32(const GemmCall* c) {  // any layout: strides decide
  const GemmShape shape{c->m, c->n, c->k, c->outer, c->inner};
  return gemm_simt<NoEpilogue>(context(c->stream), shape, matrices(static_cast<const float*>(c->a), c->a_k, c->lda, c->a_batch, c->inner),
                               matrices(static_cast<const float*>(c->b), !c->b_k, c->ldb, c->b_batch, c->inner),
                               matrices(static_cast<float*>(c->d), true, c->ldd, c->d_batch, c->inner), operands());
}
#elif PART == 101
#include "dynamic_library.cc"
#include "gemm.h"
/// On an algorithm of the library's own list; a status other than 0 past its end.
extern "C" int32_t gemm_library(const ait::runtime::Gemm* args, int32_t index, void* stream) {
  std::string error;
  std::vector<ait_gemm_algorithm_v1> list;
  int32_t status = ait::runtime::gemm_algorithms(*args, &list, &error);
  if (status == 0 && size_t(index) >= list.size()) return 2;
  ait::runtime::Gemm named = *args;
  named.algorithm = list.data() + index;
  if (status == 0) status = ait::runtime::compute_gemm(named, stream, &error);
  if (status != 0) fprintf(stderr, "%s\n", error.c_str());
  return status;
}
#endif
