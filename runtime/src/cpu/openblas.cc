/// @file openblas.cc
/// @brief `compute_gemm` on OpenBLAS, for f32 and f64.
///
/// OpenBLAS is used with one thread; the parallelism is that of our loops, here or in the caller, so that one pool of threads serves a whole run.
#include <stdlib.h>
#include <string.h>

#include <string>
#include <type_traits>
#include <vector>

#include "ait/math.h"
#include "ait/parallel.h"
#include "dynamic_library.h"
#include "gemm.h"

namespace ait::runtime {
namespace {

constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;

using Sgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda, const float* b, int ldb,
                       float beta, float* c, int ldc);
using Dgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, double alpha, const double* a, int lda, const double* b,
                       int ldb, double beta, double* c, int ldc);

/// The functions of a loaded OpenBLAS: the build of scipy-openblas32 prefixes its symbols.
struct Library {
  Sgemm sgemm = nullptr;
  Dgemm dgemm = nullptr;
  bool loaded = false;
  std::string error;

  Library() {
#if defined(__x86_64__)
    // OpenBLAS knows some processors with AVX-512 only as their older kin; its own choice of cores is then half as fast.
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
#endif
    void (*set_threads)(int) = nullptr;
    const LibraryName name{"OpenBLAS", "openblas", "AIT_OPENBLAS", "pip install scipy-openblas32",
                           {"libscipy_openblas.so", "libopenblas.so.0", "libopenblas.so"}};
    const std::vector<Symbol> symbols{{"cblas_sgemm", sgemm}, {"cblas_dgemm", dgemm}, {"openblas_set_num_threads", set_threads}};
    loaded = load_functions(name, places_of(name), symbols, &error, nullptr, {"scipy_", ""});
    if (loaded) set_threads(1);
  }
};

const Library& library() {
  static const Library instance;
  return instance;
}

template <class T>
void call(const Library& lib, int ta, int tb, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc) {
  if constexpr (std::is_same_v<T, float>) {
    lib.sgemm(kRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  } else {
    lib.dgemm(kRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  }
}

/// A leading dimension as the library checks it: of a matrix with one row it may be anything.
int leading(int64_t ld, int64_t columns) { return int(ld < columns ? columns : ld); }

/// One rectangle of one batch of the result.
template <class T>
void piece(const Library& lib, const Gemm& g, int64_t batch, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
  const int64_t rows = m1 - m0, columns = n1 - n0;
  const T* a = static_cast<const T*>(g.a) + batch * g.batch_a + (g.trans_a ? m0 : m0 * g.lda);
  const T* b = static_cast<const T*>(g.b) + batch * g.batch_b + (g.trans_b ? n0 * g.ldb : n0);
  T* d = static_cast<T*>(g.d) + batch * g.batch_d + m0 * g.ldd + n0;
  const bool residual = g.c != nullptr && g.beta != 0.f;
  if (residual) {
    const T* c = static_cast<const T*>(g.c) + batch * g.batch_c + m0 * g.ldc + n0;
    if (c != d) {
      for (int64_t i = 0; i < rows; ++i) memcpy(d + i * g.ldd, c + i * g.ldc, size_t(columns) * sizeof(T));
    }
  }
  if (g.k == 0) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) d[i * g.ldd + j] = residual ? T(g.beta) * d[i * g.ldd + j] : T(0);
    }
  } else {
    call<T>(lib, g.trans_a ? kTranspose : kNoTranspose, g.trans_b ? kTranspose : kNoTranspose, int(rows), int(columns), int(g.k), T(g.alpha),
            a, leading(g.lda, g.trans_a ? g.m : g.k), b, leading(g.ldb, g.trans_b ? g.k : g.n), residual ? T(g.beta) : T(0), d,
            leading(g.ldd, columns));
  }
  if (g.epilogue == AIT_EPILOGUE_NONE) return;
  const T* bias = (g.epilogue & AIT_EPILOGUE_BIAS) ? static_cast<const T*>(g.bias) + n0 : nullptr;
  for (int64_t i = 0; i < rows; ++i) {
    T* row = d + i * g.ldd;
    if (bias != nullptr) {
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) row[j] += bias[j];
    }
    if (g.epilogue & AIT_EPILOGUE_RELU) {
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) row[j] = ait::relu(row[j]);
    }
    if (g.epilogue & AIT_EPILOGUE_FAST_GELU) {
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) row[j] = ait::fast_gelu(row[j]);
    }
  }
}

template <class T>
void run(const Library& lib, const Gemm& g) {
  const int threads = threads_for(g.batch * g.m * g.n * g.k);
  // Cut the longer side of each product: the other operand is packed once for every piece.
  const bool by_rows = g.m > g.n;
  const int64_t side = by_rows ? g.m : g.n;
  int64_t cuts = threads == 1 || g.batch >= 4 * threads ? 1 : 2 * threads;
  int64_t step = (side + cuts - 1) / cuts;
  step = threads == 1 ? side : (step + 31) / 32 * 32;
  cuts = (side + step - 1) / step;
  parallel_tasks(g.batch * cuts, threads, [&](int64_t task) {
    const int64_t begin = task % cuts * step, end = begin + step < side ? begin + step : side;
    if (by_rows) {
      piece<T>(lib, g, task / cuts, begin, end, 0, g.n);
    } else {
      piece<T>(lib, g, task / cuts, 0, g.m, begin, end);
    }
  });
}

}  // namespace

int32_t compute_gemm(const Gemm& gemm, void*, std::string* error) {
  const Library& lib = library();
  if (!lib.loaded) {
    *error = lib.error;
    return 1;
  }
  if (gemm.m == 0 || gemm.n == 0 || gemm.batch == 0) return 0;
  constexpr int64_t kLimit = INT32_MAX;
  for (int64_t size : {gemm.m, gemm.n, gemm.k, gemm.lda, gemm.ldb, gemm.ldd}) {
    if (size < 0 || size > kLimit) {
      *error = "the library gemm takes sizes below 2^31, found " + std::to_string(size);
      return 1;
    }
  }
  if (gemm.dtype == AIT_F32) {
    run<float>(lib, gemm);
  } else if (gemm.dtype == AIT_F64) {
    run<double>(lib, gemm);
  } else {
    *error = "OpenBLAS computes f32 and f64 only; the native gemm computes other types (found dtype " + std::to_string(gemm.dtype) + ")";
    return 1;
  }
  return 0;
}

int32_t gemm_algorithms(const Gemm&, std::vector<ait_gemm_algorithm_v1>*, std::string*) { return 0; }

}  // namespace ait::runtime
