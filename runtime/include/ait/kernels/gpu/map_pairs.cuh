/// @file map_pairs.cuh
/// @brief Elementwise kernels on operands that hold every other element: the two halves of a pair of neighbours, such as those that a rotation
/// turns, or the real and imaginary parts of complex numbers.
///
/// A thread reads whole pairs in words of 16 bytes and takes the elements that it needs; two results that lie between each other are written as
/// pairs. Element by element, each instruction of a warp would use a part of every 32 bytes.
#ifndef AIT_KERNELS_GPU_MAP_PAIRS_CUH_
#define AIT_KERNELS_GPU_MAP_PAIRS_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/math.h"

namespace ait::gpu {

namespace detail {
/// Pairs that a thread computes: those of 16 bytes of the narrowest operand.
template <class... Ops>
inline constexpr int kPairs = vector_width<Ops...>() / 2;

/// Whether all inputs are strided or one element a row, and both results strided, with elements of one size.
template <class Ins, class Outs>
inline constexpr bool kMayBePairs = false;
template <class... Ins, class First, class Second>
inline constexpr bool kMayBePairs<Pack<Ins...>, Pack<First, Second>> =
    First::kInner == Inner::strided && std::is_same_v<typename First::Element, typename Second::Element> && Second::kInner == Inner::strided &&
    sizeof...(Ins) > 0 && ((Ins::kInner != Inner::unit && sizeof(typename Ins::Value) == sizeof(typename First::Value)) && ... && true);

/// Elements of an operand between the pair that it points into and its first one.
template <class Op>
inline int odd_start(const Op& operand) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(operand.data) / sizeof(typename Op::Value) % 2);
}

/// Whether whole words of `kCount` pairs are aligned wherever a thread begins.
template <int kCount, class Op>
inline bool holds_pairs(const Op& operand) {
  if constexpr (Op::kInner == Inner::zero) return true;
  constexpr int64_t kAlign = kAccessBytes<typename Op::Value, 2 * kCount>;
  constexpr int64_t kSize = sizeof(typename Op::Value);
  bool aligned = operand.strides[Op::kRank - 1] == 2 && reinterpret_cast<uintptr_t>(operand.data - odd_start(operand)) % kAlign == 0;
  for (int d = 0; d + 1 < Op::kRank; ++d) aligned = aligned && operand.strides[d] * kSize % kAlign == 0;
  return aligned;
}

/// Whether two results are the first and the second elements of the same pairs.
template <class First, class Second>
inline bool are_pairs(const First& first, const Second& second) {
  bool same = odd_start(first) == 0 && second.data == first.data + 1;
  for (int d = 0; d < First::kRank; ++d) same = same && first.strides[d] == second.strides[d];
  return same;
}

/// Whether each operand that is not one element a row has another one that holds the other elements of the same pairs: nothing else is read.
template <class... Ops, size_t... I>
bool have_partners(const Pack<Ops...>& operands, std::index_sequence<I...>) {
  struct Place {
    uintptr_t data;
    const int64_t* strides;
    int rank, size;
    bool one, odd;
  };
  const Place places[] = {{reinterpret_cast<uintptr_t>(get<I>(operands).data), get<I>(operands).strides, Ops::kRank,
                           static_cast<int>(sizeof(typename Ops::Value)), Ops::kInner == Inner::zero, odd_start(get<I>(operands)) != 0}...};
  for (const Place& place : places) {
    bool found = place.one;
    for (const Place& other : places) {
      bool same = !other.one && other.data == (place.odd ? place.data - place.size : place.data + place.size);
      for (int d = 0; same && d < place.rank; ++d) same = place.strides[d] == other.strides[d];
      found = found || same;
    }
    if (!found) return false;
  }
  return true;
}

/// The elements of one kind of `kCount` pairs, the first of which is at `from`.
template <int kCount, class Op>
__device__ __forceinline__ Values<typename Op::Compute, kCount> load_of_pairs(const Op& operand, const typename Op::Value* from, bool odd) {
  using C = typename Op::Compute;
  Values<C, kCount> result;
  if constexpr (Op::kInner == Inner::zero) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) result.v[j] = convert<C>(*from);
  } else {
    typename Op::Value pairs[2 * kCount];
    using Word = word_t<kAccessBytes<typename Op::Value, 2 * kCount>>;
    constexpr int kWords = static_cast<int>(sizeof(pairs) / sizeof(Word));
    Word words[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = reinterpret_cast<const Word*>(from - (odd ? 1 : 0))[i];
    copy_bytes(&pairs, &words, sizeof(pairs));
#pragma unroll
    for (int j = 0; j < kCount; ++j) result.v[j] = convert<C>(odd ? pairs[2 * j + 1] : pairs[2 * j]);
  }
  return result;
}
}  // namespace detail

/// A thread computes groups of `kCount` pairs along the innermost dim. `odd` has a bit for each input that holds the second elements.
template <class F, int kCount, int kRank, bool kWide, class... Ins, class First, class Second, size_t... I>
__device__ __forceinline__ void map_pairs(const Space<kRank, kWide>& groups_of, int64_t groups, uint32_t odd, const Pack<Ins...>& ins,
                                          std::index_sequence<I...> in_indices, const Pack<First, Second>& outs) {
  using Index = typename Space<kRank, kWide>::Index;
  for (int64_t group = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; group < groups;
       group += gridDim.x * static_cast<int64_t>(blockDim.x)) {
    int64_t coordinate[kRank];
    groups_of.split(static_cast<Index>(group), coordinate);
    const Pack<Values<typename Ins::Compute, kCount>...> values =
        pack(detail::load_of_pairs<kCount>(get<I>(ins), at<kCount>(get<I>(ins), coordinate), (odd >> I & 1) != 0)...);
    Pack<Values<typename First::Compute, kCount>, Values<typename Second::Compute, kCount>> results;
    apply_values<F, kCount>(values, in_indices, results, std::index_sequence<0, 1>{});
    using T = typename First::Value;
    T pairs[2 * kCount];
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      pairs[2 * j] = convert<T>(get<0>(results).v[j]);
      pairs[2 * j + 1] = convert<T>(get<1>(results).v[j]);
    }
    store<2 * kCount>(at<kCount>(get<0>(outs), coordinate), pairs);
  }
}

template <class F, int kCount, int kRank, bool kWide, class Ins, class Outs>
__global__ void map_pairs_kernel(Space<kRank, kWide> groups_of, int64_t groups, uint32_t odd, Ins ins, Outs outs) {
  wait_for_previous();
  allow_next();
  map_pairs<F, kCount>(groups_of, groups, odd, ins, typename Ins::Indices{}, outs);
}

namespace detail {
/// Launches the kernel for pairs, if the operands lie so; `done` says whether they do.
template <class F, size_t kRank, class... Ins, size_t... I, class First, class Second>
int32_t launch_pairs(const Context& ctx, const int64_t (&sizes)[kRank], const Pack<Ins...>& ins, std::index_sequence<I...>,
                     const Pack<First, Second>& outs, bool& done) {
  constexpr int kDims = static_cast<int>(kRank);
  constexpr int kCount = kPairs<Ins..., First, Second>;
  done = sizes[kRank - 1] % kCount == 0 && are_pairs(get<0>(outs), get<1>(outs)) && holds_pairs<kCount>(get<0>(outs)) &&
         (holds_pairs<kCount>(get<I>(ins)) && ... && true) && have_partners(ins, std::index_sequence_for<Ins...>{});
  if (!done) return 0;
  int64_t counts[kRank];
  int64_t groups = 1;
  for (int d = 0; d < kDims; ++d) {
    counts[d] = d == kDims - 1 ? sizes[d] / kCount : sizes[d];
    groups *= counts[d];
  }
  uint32_t odd = 0;
  ((odd |= uint32_t(odd_start(get<I>(ins))) << I), ...);
  LaunchConfig config;
  config.block = dim3(groups >= 65536 ? 256 : 128);
  config.grid = dim3(ceil_div(groups, config.block.x, 1 << 20));
  config.dependent = true;
  using Results = Pack<First, Second>;
  if (groups < (int64_t(1) << 31)) {
    return launch(ctx, config, map_pairs_kernel<F, kCount, kDims, false, Pack<Ins...>, Results>, Space<kDims, false>(counts), groups, odd, ins, outs);
  }
  return launch(ctx, config, map_pairs_kernel<F, kCount, kDims, true, Pack<Ins...>, Results>, Space<kDims, true>(counts), groups, odd, ins, outs);
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_MAP_PAIRS_CUH_
