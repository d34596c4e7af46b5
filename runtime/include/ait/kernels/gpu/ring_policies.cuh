/// @file ring_policies.cuh
/// @brief The computations on rows that pass through a ring: norms and softmax, whose statistics need each element only once.
#ifndef AIT_KERNELS_GPU_RING_POLICIES_CUH_
#define AIT_KERNELS_GPU_RING_POLICIES_CUH_

#include <math.h>
#include <stdint.h>

#include "ait/kernels/gpu/group.cuh"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/ring_plan.cuh"
#include "ait/kernels/gpu/row_policies.cuh"
#include "ait/kernels/norm_eps.h"
#include "ait/math.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

namespace detail {
/// The sum, in pairs, so that it is exact where all are equal.
template <int kCount>
__device__ __forceinline__ float sum_of(const float (&v)[kCount]) {
  float sums[kCount];
#pragma unroll
  for (int j = 0; j < kCount; ++j) sums[j] = v[j];
#pragma unroll
  for (int step = 1; step < kCount; step *= 2) {
#pragma unroll
    for (int j = 0; j + step < kCount; j += 2 * step) sums[j] += sums[j + step];
  }
  return sums[0];
}

/// One value over a warp.
template <class Combine>
__device__ __forceinline__ float over_warp(float value, Combine combine) {
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) value = combine(value, shuffle_xor(value, mask));
  return value;
}

/// What a policy of row.cuh does with rows that pass through a ring; `kNarrow`: its results are rounded to half or bfloat16.
///
/// A `Part` is what some elements are together: `add` takes a chunk in, of which each thread has them in turn and may lack the first, `settle` says
/// that there are no more, `add_one` takes in an element, and `join` joins those of all lanes, of `total` elements. `result` is what `apply` needs.
template <class Policy, bool kNarrow>
struct RingPolicy;

template <class S, bool kCentred, bool kConstant, bool kNarrow>
struct RingPolicy<RowNorm<S, kCentred, kConstant>, kNarrow> {
  using Factor = S;
  static constexpr int kFactors = kCentred ? 2 : 1;
  static constexpr RingUse kUse = kCentred ? RingUse::centred_norm : RingUse::norm;
  const S* scale;
  const S* bias;
  float eps;

  explicit RingPolicy(const RowNorm<S, kCentred, kConstant>& norm) : scale(norm.scale), bias(norm.bias), eps(static_cast<float>(norm.eps)) {}
  bool fits() const { return kCentred || bias == nullptr; }
  /// Whether nothing but the rows is read.
  bool plain() const { return scale == nullptr && bias == nullptr; }
  __device__ __forceinline__ const S* factor(int which) const { return which == 0 ? scale : bias; }

  /// Elements, their mean, and the sum of the squares of their differences from it (Chan, Golub and LeVeque, 1979). Where rows are not centred the
  /// mean counts as 0.
  struct Part {
    float count = 0, mean = 0, squares = 0;
    Part() = default;
    __device__ __forceinline__ explicit Part(const float4& v) : count(v.x), mean(v.y), squares(v.z) {}
    __device__ __forceinline__ float4 packed() const { return float4{count, mean, squares, 0}; }
  };
  struct Result {
    float mean, inverse;
  };

  template <int kVec>
  __device__ __forceinline__ void add(Part& part, const float (&v)[kVec], int turn) const {
    if constexpr (kCentred) {
      const float mean = sum_of(v) * (1.f / kVec), seen = part.count, difference = mean - part.mean;
      const float share = seen == static_cast<float>(turn) ? 1.f / static_cast<float>(turn + 1) : 1.f / static_cast<float>(turn > 0 ? turn : 1);
      float squares = 0;
#pragma unroll
      for (int j = 0; j < kVec; ++j) squares += (v[j] - mean) * (v[j] - mean);
      part.mean += difference * share;
      part.squares += squares + difference * difference * (kVec * seen * share);
      part.count = seen + 1;
    } else {
#pragma unroll
      for (int j = 0; j < kVec; ++j) part.squares += v[j] * v[j];
    }
  }
  template <int kVec>
  __device__ __forceinline__ void settle(Part& part) const {
    part.count *= kVec;
  }
  __device__ __forceinline__ void add_one(Part& part, float x) const {
    if constexpr (kCentred) {
      const float share = 1.f / (part.count + 1), difference = x - part.mean;
      part.mean += difference * share;
      part.squares += difference * difference * (part.count * share);
      part.count += 1;
    } else {
      part.squares += x * x;
    }
  }
  template <int kCount>
  __device__ __forceinline__ Part join(const Part (&parts)[kCount], float total) const {
    Part joined;
    joined.count = total;
    float shift = 0, squares = 0, origin = 0;
    if constexpr (kCentred) {
      origin = shuffle(parts[0].mean, 0);
#pragma unroll
      for (int p = 0; p < kCount; ++p) shift += parts[p].count * (parts[p].mean - origin);
      shift = over_warp(shift, Plus{}) * (total > 0 ? 1.f / total : 0.f);
    }
#pragma unroll
    for (int p = 0; p < kCount; ++p) {
      const float difference = kCentred ? (parts[p].mean - origin) - shift : 0.f;
      squares += parts[p].squares + parts[p].count * difference * difference;
    }
    joined.mean = origin + shift;
    joined.squares = over_warp(squares, Plus{});
    return joined;
  }
  __device__ __forceinline__ Result result(const Part& all, float length) const { return Result{all.mean, ait::rsqrt(with_eps(all.squares / length, eps))}; }
  __device__ __forceinline__ float apply(float x, const Result& result, float scaled, float shifted) const {
    return (x - result.mean) * (result.inverse * scaled) + shifted;
  }
};

template <bool kNarrow>
struct RingPolicy<Softmax, kNarrow> {
  using Factor = std::conditional_t<kNarrow, uint16_t, float>;
  static constexpr int kFactors = 0;
  static constexpr RingUse kUse = RingUse::softmax;
  static constexpr float kLog2E = Softmax::kLog2E;

  explicit RingPolicy(const Softmax&) {}
  bool fits() const { return true; }
  bool plain() const { return true; }

  /// The largest element, and the sum of the exponentials of the differences from it. An exponent of 2 where results are narrow.
  struct Part {
    float top = -INFINITY, total = 0;
    Part() = default;
    __device__ __forceinline__ explicit Part(const float4& v) : top(v.x), total(v.y) {}
    __device__ __forceinline__ float4 packed() const { return float4{top, total, 0, 0}; }
  };
  struct Result {
    float top, inverse;
  };
  /// exp(x - top), where `scaled_top` is what `scaled` makes of the top.
  static __device__ __forceinline__ float exponential(float x, float scaled_top) {
    if constexpr (kNarrow) {
      return exp2_fast(x * kLog2E - scaled_top);  // an error of scaled_top is one of all elements, and cancels
    } else {
      return ait::exp(x - scaled_top);
    }
  }
  /// Of no elements, or none above -inf, 0: the differences from it are -inf, too.
  static __device__ __forceinline__ float scaled(float top) { return top == -INFINITY ? 0.f : kNarrow ? top * kLog2E : top; }

  template <int kVec>
  __device__ __forceinline__ void add(Part& part, const float (&v)[kVec], int) const {
    float top = part.top, total = 0;
#pragma unroll
    for (int j = 0; j < kVec; ++j) top = v[j] > top ? v[j] : top;
    const float to = scaled(top);
#pragma unroll
    for (int j = 0; j < kVec; ++j) total += exponential(v[j], to);
    part.total = part.total * exponential(part.top, to) + total;
    part.top = top;
  }
  template <int kVec>
  __device__ __forceinline__ void settle(Part&) const {}
  __device__ __forceinline__ void add_one(Part& part, float x) const {
    const float one[1] = {x};
    add(part, one, 0);
  }
  template <int kCount>
  __device__ __forceinline__ Part join(const Part (&parts)[kCount], float) const {
    Part joined;
#pragma unroll
    for (int p = 0; p < kCount; ++p) joined.top = parts[p].top > joined.top ? parts[p].top : joined.top;
    joined.top = over_warp(joined.top, Larger{});
    const float to = scaled(joined.top);
#pragma unroll
    for (int p = 0; p < kCount; ++p) joined.total += parts[p].total * exponential(parts[p].top, to);
    joined.total = over_warp(joined.total, Plus{});
    return joined;
  }
  __device__ __forceinline__ Result result(const Part& all, float) const { return Result{kNarrow ? all.top * kLog2E : all.top, 1.f / all.total}; }
  __device__ __forceinline__ float apply(float x, const Result& result, float, float) const { return exponential(x, result.top) * result.inverse; }
};
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_RING_POLICIES_CUH_
