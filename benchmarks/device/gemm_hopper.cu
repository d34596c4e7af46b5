// The kernels that gemm_hopper.py checks and times, behind the C interface of gemm_native.py. Compiled in parts (-DPART=n), see there.
#include <stdio.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "ait/kernels/gpu/gemm_wgmma.cuh"
#include "ait/math.h"
#include "gemm_call.h"

#ifndef EPILOGUES
#define EPILOGUES 7  // a mask of gemm_problem.MODEL_EPILOGUES
#endif

using namespace ait::gpu;

struct BiasGelu {
  static AIT_FN void apply(float acc, float bias, float& out) { out = ait::gelu_narrow(acc + bias); }
};
struct BiasTanh {
  static AIT_FN void apply(float acc, float bias, float& out) { out = ait::fast_gelu_narrow(acc + bias); }
};
struct Add {  // a bias or a residual
  static AIT_FN void apply(float acc, float more, float& out) { out = acc + more; }
};
struct BiasResidual {
  static AIT_FN void apply(float acc, float bias, float residual, float& out) { out = acc + bias + residual; }
};

struct SiluMul {  // of a gated product: its two sums
  static AIT_FN void apply(float gate, float up, float& out) { out = ait::silu_narrow(gate) * up; }
};
struct SiluMulAdd {
  static AIT_FN void apply(float gate, float up, float more, float& out) { out = ait::silu_narrow(gate) * up + more; }
};

inline int32_t print_failure(void*, const char* message) {
  fprintf(stderr, "%s\n", message);
  return 1;
}
inline ait_host_v1 host{nullptr, print_failure};

template <class T>
Matrices<T> matrices(T* data, bool unit_is_second, int64_t pitch, int64_t batch, int64_t inner) {
  return {data, unit_is_second ? pitch : 1, unit_is_second ? 1 : pitch, batch * inner, batch};
}

template <class Tile, class T, bool kAK, bool kBK, bool kAligned = true>
int32_t gemm_with(const GemmCall& c) {
  const GemmShape shape{c.m, c.n, c.k, c.outer, c.inner};
  const auto a = matrices(static_cast<const T*>(c.a), kAK, c.lda, c.a_batch, c.inner);
  const auto b = matrices(static_cast<const T*>(c.b), !kBK, c.ldb, c.b_batch, c.inner);
  const auto d = matrices(static_cast<T*>(c.d), true, c.ldd, c.d_batch, c.inner);
  const Matrices<const T> bias{static_cast<const T*>(c.bias), 0, 1};
  const auto residual = matrices(static_cast<const T*>(c.residual), true, c.ldr, c.r_batch, c.inner);
  const ait::Context ctx{c.stream, &host};
  const bool early = c.tile != 0;  // weights may be copied before the launch before has ended
  auto go = [&](auto wanted, auto vectors, auto functor, const auto& extra) {
    if constexpr ((EPILOGUES >> wanted.value & 1) != 0) {
      return gemm_wgmma<Tile, kAK, kBK, kAligned, vectors.value, decltype(functor)>(ctx, shape, a, b, d, extra, false, early);
    } else {
      return 2;
    }
  };
  const std::integral_constant<uint32_t, 0> none;
  const std::integral_constant<uint32_t, 1> one;
  switch (c.epilogue) {
    case 0: return go(none, none, NoEpilogue(), operands());
    case 1: return go(one, one, BiasGelu(), operands(bias));
    case 2: return go(std::integral_constant<int, 2>(), one, BiasResidual(), operands(bias, residual));
    case 3: return go(std::integral_constant<int, 3>(), one, Add(), operands(bias));
    case 4: return go(std::integral_constant<int, 4>(), none, Add(), operands(residual));
    default: return go(std::integral_constant<int, 5>(), one, BiasTanh(), operands(bias));
  }
}

/// n counts columns of d; b has twice as many. Epilogue 0, or 1 with a residual.
template <class Tile, class T, bool kAK, bool kBK, bool kAligned = true>
int32_t gated_with(const GemmCall& c) {
  const GemmShape shape{c.m, c.n, c.k, c.outer, c.inner};
  const auto a = matrices(static_cast<const T*>(c.a), kAK, c.lda, c.a_batch, c.inner);
  const auto b = matrices(static_cast<const T*>(c.b), !kBK, c.ldb, c.b_batch, c.inner);
  const auto d = matrices(static_cast<T*>(c.d), true, c.ldd, c.d_batch, c.inner);
  const auto residual = matrices(static_cast<const T*>(c.residual), true, c.ldr, c.r_batch, c.inner);
  const ait::Context ctx{c.stream, &host};
  const bool early = c.tile != 0;
  if (c.epilogue == 0) return gemm_wgmma<Tile, kAK, kBK, kAligned, 0, SiluMul>(ctx, shape, a, b, d, operands(), false, early);
  if constexpr (EPILOGUES > 1) {
    return gemm_wgmma<Tile, kAK, kBK, kAligned, 0, SiluMulAdd>(ctx, shape, a, b, d, operands(residual), false, early);
  }
  return 2;
}

#if PART == 0
extern "C" int32_t NAME(const GemmCall* c) { return gemm_with<TILE, ait::half, true, true>(*c); }
#elif PART == 1
extern "C" int32_t NAME(const GemmCall* c) { return gemm_with<TILE, ELEMENT, AK, BK>(*c); }
#elif PART == 3
extern "C" int32_t NAME(const GemmCall* c) { return gemm_with<TILE, ELEMENT, true, true, false>(*c); }
#elif PART == 4
extern "C" int32_t NAME(const GemmCall* c) { return gated_with<TILE, ELEMENT, AK, BK, ALIGNED>(*c); }
#else
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
