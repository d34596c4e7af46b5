/// @file row_policies.cuh
/// @brief The computations on a row that a group of threads holds: norms and softmax.
#ifndef AIT_KERNELS_GPU_ROW_POLICIES_CUH_
#define AIT_KERNELS_GPU_ROW_POLICIES_CUH_

#include <math.h>
#include <stdint.h>

#include <type_traits>
#include <utility>

#include "ait/kernels/gpu/row_group.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/norm_eps.h"
#include "ait/kernels/operand.h"
#include "ait/math.h"

namespace ait::gpu {

/// @brief (x - mean) / sqrt(variance + eps) * scale + bias. The mean is corrected by the mean of the differences from it.
///
/// Where it is not centred the mean counts as 0: x / sqrt(mean(x^2) + eps) * scale + bias. What is stored is E of that and of the elements of
/// further operands, or that alone if E is void.
template <class S, bool kCentred, bool kConstantFactors, class E = void, class ExtrasOf = Pack<>>
struct RowNorm {
  using Extras = ExtrasOf;
  const S* scale;  ///< contiguous, or null
  const S* bias;
  double eps;
  Extras extras;

  static constexpr bool kHasEarly = true;
  static constexpr bool kPlain = std::is_void_v<E>;
  static constexpr bool kConstant = kConstantFactors;  ///< nothing ever writes scale and bias

  /// Factors that are read before they are needed, so that their way is not added to the row's: before the row itself where rows are few, else
  /// before the last sums.
  template <class R>
  struct Early {
    static constexpr bool kHeld = R::kItems > 0 && R::kWhole && (R::kEarly || R::kItems <= 2);
    /// Those of one chunk, and of the next one while a chunk is finished.
    static constexpr bool kNext = !kHeld && R::kFull && R::kItems > 2;
    typename R::template Factors<S, R::kVec> scale[kHeld ? R::kItems : 1];
    typename R::template Factors<S, R::kVec> bias[kHeld ? R::kItems : 1];
  };

  template <class R>
  __device__ __forceinline__ void read_early(const R& row, Early<R>& early) const {
    if constexpr (Early<R>::kHeld) {
#pragma unroll
      for (int item = 0; item < R::kItems; ++item) read_item(row, early, item, item);
    } else if constexpr (Early<R>::kNext) {
      read_item(row, early, 0, 0);
    }
  }

  /// The factors of chunk `item` of a lane.
  template <class R>
  __device__ __forceinline__ void read_item(const R& row, Early<R>& early, int item, int place) const {
    if (!row.has(row.number(item))) return;
    row.read_factors(scale, row.start(row.number(item)), early.scale[place]);
    row.read_factors(bias, row.start(row.number(item)), early.bias[place]);
  }

  /// The elements of a further operand beside the chunk at `i`.
  template <class R, int kCount, class Op, class Index>
  static __device__ __forceinline__ Values<typename Op::Compute, kCount> beside(const R& row, const Op& operand, Index i) {
    const auto* from = row.at(operand, i);
    if constexpr (Op::kInner == Inner::zero || (R::kWhole && kCount == R::kVec && Op::kInner == Inner::unit)) {
      return load_values<kCount>(operand, from);
    } else {
      Values<typename Op::Compute, kCount> result;
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        result.v[j] = convert<typename Op::Compute>(from[Op::kInner == Inner::unit ? j : j * operand.strides[Op::kRank - 1]]);
      }
      return result;
    }
  }

  /// E of a normalised chunk.
  template <class R, class Chunk, class Index, size_t... I>
  static __device__ __forceinline__ void finish_chunk(const R& row, const Extras& of_row, Index i, Chunk& chunk, std::index_sequence<I...>) {
    constexpr int kCount = Chunk::kCount;
    const auto others = pack(beside<R, kCount>(row, get<I>(of_row), i)...);
    Chunk result;
#pragma unroll
    for (int j = 0; j < kCount; ++j) E::apply(chunk.v[j], get<I>(others).v[j]..., result.v[j]);
    chunk = result;
  }

  /// `of_row`: the further operands, moved to the row.
  template <class R>
  __device__ __forceinline__ void operator()(R& row, Early<R>& early, const Extras& of_row) const {
    using C = typename R::C;
    const C count = static_cast<C>(row.length);
    C mean = 0, shift = 0, variance = 0;
    const auto before_last_sums = [&] {
      if constexpr (!R::kEarly) read_early(row, early);
    };
    if constexpr (kCentred && R::kFull && is_narrow_float<typename R::Out::Value>) {
      constexpr int kCount = R::kItems * R::kVec;
      C sums[4] = {0, 0, 0, 0}, squares[4] = {0, 0, 0, 0};  // apart, so that they do not wait for each other
      row.template each<true>([&](auto& chunk, auto, int) {
#pragma unroll
        for (int j = 0; j < R::kVec; ++j) sums[j % 4] += chunk.v[j];
      });
      const C total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
      mean = total * (C(1) / C(kCount));
      mean += (total - C(kCount) * mean) * (C(1) / C(kCount));  // the division, so that rows of one value have it as their mean
      row.each([&](auto& chunk, auto, int) {
#pragma unroll
        for (int j = 0; j < R::kVec; ++j) squares[j % 4] += (chunk.v[j] - mean) * (chunk.v[j] - mean);
      });
      variance = (squares[0] + squares[1]) + (squares[2] + squares[3]);
      before_last_sums();
      join_moments<kCount>(row.reducer, mean, variance);
      variance /= count;
    } else if constexpr (kCentred) {
      C total = 0;
      row.template each<true>([&](auto& chunk, auto, int) {
#pragma unroll
        for (const C& x : chunk.v) total += x;
      });
      mean = row.sum(total) / count;
      C moments[2] = {0, 0};  // of the differences from the mean, and of their squares
      row.each([&](auto& chunk, auto, int) {
#pragma unroll
        for (const C& x : chunk.v) {
          const C difference = x - mean;
          moments[0] += difference;
          moments[1] += difference * difference;
        }
      });
      before_last_sums();
      row.sums(moments);
      shift = moments[0] / count;
      variance = moments[1] / count - shift * shift;
    } else {
      C squares = 0;
      row.template each<true>([&](auto& chunk, auto, int) {
#pragma unroll
        for (const C& x : chunk.v) squares += x * x;
      });
      before_last_sums();
      variance = row.sum(squares) / count;
    }
    const C inverse = ait::rsqrt(with_eps(variance < C(0) ? C(0) : variance, static_cast<C>(eps)));
    row.finish([&](auto& chunk, auto i, int slot) {
      constexpr int kCount = std::decay_t<decltype(chunk)>::kCount;
      typename R::template Factors<S, kCount> scales, biases;
      if constexpr (Early<R>::kHeld && kCount == R::kVec) {
        scales = early.scale[slot], biases = early.bias[slot];
      } else if constexpr (Early<R>::kNext && kCount == R::kVec) {
        scales = early.scale[0], biases = early.bias[0];
        if (slot + 1 < R::kItems) read_item(row, early, slot + 1, 0);
      } else {
        row.read_factors(scale, i, scales);
        row.read_factors(bias, i, biases);
      }
      const auto factors = row.take_factors(scale, scales), offsets = row.take_factors(bias, biases);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        C y = ((chunk.v[j] - mean) - shift) * inverse;
        if (scale != nullptr) y *= convert<C>(factors.v[j]);
        if (bias != nullptr) y += convert<C>(offsets.v[j]);
        chunk.v[j] = y;
      }
      if constexpr (!kPlain) finish_chunk(row, of_row, i, chunk, typename Extras::Indices{});
    });
  }

  template <int kVec>
  bool may_access() const {
    constexpr uintptr_t kAlign = kAccessBytes<S, kVec>;
    return reinterpret_cast<uintptr_t>(scale) % kAlign == 0 && reinterpret_cast<uintptr_t>(bias) % kAlign == 0 &&
           extras_may_access<kVec>(typename Extras::Indices{});
  }

 private:
  template <int kVec, size_t... I>
  bool extras_may_access(std::index_sequence<I...>) const {
    return (gpu::may_access<kVec>(get<I>(extras)) && ... && true);
  }
};

/// @brief exp(x - max) / sum(exp(x - max)).
struct Softmax {
  using Extras = Pack<>;
  static constexpr bool kHasEarly = false, kConstant = false, kPlain = true;
  Extras extras;
  template <class R>
  struct Early {};
  template <class R>
  __device__ __forceinline__ void read_early(const R&, Early<R>&) const {}

  template <class R>
  __device__ __forceinline__ void operator()(R& row, Early<R>&, const Extras&) const {
    using C = typename R::C;
    C top = -INFINITY;
    row.template each<true>([&](auto& chunk, auto, int) {
#pragma unroll
      for (const C& x : chunk.v) top = x > top ? x : top;
    });
    top = row.largest(top);
    const C scaled_top = top * C(kLog2E);
    const auto exponential = [&](C x) {
      if constexpr (is_narrow_float<typename R::Out::Value>) {
        return ait::detail::exp2_core(x * kLog2E - scaled_top);  // an error of scaled_top is one of all elements, and cancels
      } else {
        return ait::exp(x - top);
      }
    };
    C total = 0;
    row.template each<false, true>([&](auto& chunk, auto, int) {
#pragma unroll
      for (C& x : chunk.v) {
        const C e = exponential(x);
        if constexpr (R::kKeeps) x = e;
        total += e;
      }
    });
    const C inverse = C(1) / row.sum(total);
    row.finish([&](auto& chunk, auto, int) {
#pragma unroll
      for (C& x : chunk.v) x = (R::kKeeps ? x : exponential(x)) * inverse;
    });
  }

  static constexpr float kLog2E = 1.44269504088896341f;

  template <int kVec>
  bool may_access() const {
    return true;
  }
};

/// @brief F that passes its argument.
struct PassThrough {
  template <class C>
  static AIT_FN void apply(C x, C& y) {
    y = x;
  }
};

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_ROW_POLICIES_CUH_
