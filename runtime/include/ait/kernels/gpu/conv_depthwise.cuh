/// @file conv_depthwise.cuh
/// @brief Depthwise convolution: a thread computes `kSpan` neighbouring channels of one place.
#ifndef AIT_KERNELS_GPU_CONV_DEPTHWISE_CUH_
#define AIT_KERNELS_GPU_CONV_DEPTHWISE_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/conv_shape.h"
#include "ait/kernels/gpu/gemm_epilogue.cuh"

#if defined(AIT_GPU)
namespace ait::gpu {

inline constexpr int kDepthwiseThreads = 256;

/// @brief The input, and the product: its columns are all channels, and each channel has its own sum.
template <class X, class T, class D, class... E>
struct DepthwiseArgs : GemmArgs<T, D, E...> {
  X x;
  int64_t spans;  ///< of all channels, all places
};

template <class T>
__device__ __forceinline__ compute_t<T> element(const RawSpan<T>& from, int i) {
  return convert<compute_t<T>>(from.pieces[i / (kSpan / kPieces<T>)].v[i % (kSpan / kPieces<T>)]);
}

template <class F, class X, class T, class D, class... E>
__global__ void __launch_bounds__(kDepthwiseThreads) conv_depthwise_kernel(const DepthwiseArgs<X, T, D, E...> args) {
  using A = compute_t<T>;
  wait_for_previous();
  allow_next();
  const int64_t step = args.x.strides[X::kRank + 1];
  const int across = (args.n + kSpan - 1) / kSpan;
  for (int64_t i = int64_t(blockIdx.x) * kDepthwiseThreads + threadIdx.x; i < args.spans; i += int64_t(gridDim.x) * kDepthwiseThreads) {
    const int64_t number = i / across, batch = number / args.m;
    const int col = int(i - number * across) * kSpan, valid = args.n - col, row = int(number - batch * args.m);
    const int64_t outer = batch / args.inner, inner = batch - outer * args.inner;
    const typename X::Place place = args.x.place(number);
    Span<A> acc;
#pragma unroll
    for (int e = 0; e < kSpan; ++e) acc.v[e] = A(0);
    for (int tap = 0; tap < args.k; ++tap) {
      const T* const from = args.x.at(place, tap, 0);
      if (from == nullptr) continue;
      RawSpan<T> seen, weight;
      load_span<T>(from + col * step, step, args.a_aligned, valid, seen);
      load_span<T>(args.b.data + tap * args.b.row + col * args.b.col, args.b.col, args.b_aligned, valid, weight);
#pragma unroll
      for (int e = 0; e < kSpan; ++e) {
        if (e < valid) acc.v[e] += element<T>(seen, e) * element<T>(weight, e);
      }
    }
    typename Operands<E...>::Raw raw;
    args.operands.fetch(outer, inner, row, col, valid, raw);
    args.template finish_some<F>(outer, inner, row, col, valid, acc, raw);
  }
}

/// @brief d = F(conv(x, w), operands...) with as many groups as channels of `x` and of `d`. The rows of `d` are places of the window, cut into
/// batches as its strides need; `w` is [taps, channels] by its strides.
template <class F, class X, class T, class D, class... E>
int32_t conv_depthwise(const Context& ctx, const GemmShape& shape, const X& x, Matrices<const T> w, Matrices<D> d, Operands<E...> operands) {
  if (shape.m == 0 || shape.n == 0 || shape.outer * shape.inner == 0) return 0;
  constexpr int64_t kElements = 16 / sizeof(T);
  bool x_aligned = x.strides[X::kRank + 1] == 1 && reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
  for (int i = 0; i <= X::kRank; ++i) x_aligned = x_aligned && x.strides[i] % kElements == 0;
  DepthwiseArgs<X, T, D, E...> args;
  static_cast<GemmArgs<T, D, E...>&>(args) = {int(shape.m), int(shape.n), int(shape.k), int(shape.inner), 0, 0, {}, w, d, x_aligned,
                                              rows_aligned(w, w.col, w.row), rows_aligned(d, d.col, d.row), operands};
  args.x = x;
  args.spans = shape.outer * shape.inner * shape.m * ((shape.n + kSpan - 1) / kSpan);
  const int64_t blocks = (args.spans + kDepthwiseThreads - 1) / kDepthwiseThreads;
  LaunchConfig config;
  config.grid = dim3(uint32_t(blocks < (int64_t(1) << 24) ? blocks : int64_t(1) << 24));
  config.block = dim3(kDepthwiseThreads);
  config.dependent = true;
  return launch(ctx, config, conv_depthwise_kernel<F, X, T, D, E...>, args);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_CONV_DEPTHWISE_CUH_
