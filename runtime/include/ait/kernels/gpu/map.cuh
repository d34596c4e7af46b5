/// @file map.cuh
/// @brief Elementwise kernels: one functor over strided, broadcast operands, several results.
///
/// Where every access of 16 bytes is aligned, a thread computes groups of neighbours along the innermost dim. Else the space is cut, as if it
/// had one dim, where the first result is aligned: operands that lie in memory as the space does are read and written in 16 bytes all the
/// same, shifted where they begin elsewhere, and only the others element by element. Results whose rows lie apart, on boundaries of 16 bytes, are
/// written row by row: then operands may be shifted in each row.
#ifndef AIT_KERNELS_GPU_MAP_CUH_
#define AIT_KERNELS_GPU_MAP_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/map_pairs.cuh"
#include "ait/kernels/gpu/map_repeat.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/math.h"

namespace ait::gpu {

namespace detail {
/// Groups that a thread reads before it computes the first of them, so that enough bytes are on their way.
inline constexpr int64_t kFewGroups = 132 * 8192;  ///< with no more groups than this each has a thread of its own
template <class... Ins>
inline constexpr int kMapUnroll = sizeof...(Ins) <= 1 ? 4 : sizeof...(Ins) <= 3 ? 2 : 1;

template <int kCount, class... Ops>
using Raws = Pack<Raw<Ops, kCount>...>;

/// F on what was read: the results as values.
template <class F, int kCount, class RawsOf, class... Ins, size_t... I, class... Outs, size_t... O>
__device__ __forceinline__ Pack<Values<typename Outs::Compute, kCount>...> compute_raws(const RawsOf& raws, const Pack<Ins...>&,
                                                                                        std::index_sequence<I...> in_indices,
                                                                                        const Pack<Outs...>&, std::index_sequence<O...> out_indices) {
  const Pack<Values<typename Ins::Compute, kCount>...> values = pack(get<I>(raws).values()...);
  Pack<Values<typename Outs::Compute, kCount>...> results;
  apply_values<F, kCount>(values, in_indices, results, out_indices);
  return results;
}

/// F on `kCount` elements from these coordinates on.
template <class F, int kCount, int kRank, class... Ins, size_t... I, class... Outs, size_t... O>
__device__ __forceinline__ void map_group(const int64_t (&coordinate)[kRank], const Pack<Ins...>& ins, std::index_sequence<I...> in_indices,
                                          const Pack<Outs...>& outs, std::index_sequence<O...> out_indices) {
  const Raws<kCount, Ins...> raws = pack(load_raw<kCount>(get<I>(ins), at<kCount>(get<I>(ins), coordinate))...);
  const auto results = compute_raws<F, kCount>(raws, ins, in_indices, outs, out_indices);
  (store_values<kCount>(get<O>(outs), at<kCount>(get<O>(outs), coordinate), get<O>(results)), ...);
}

template <class F, int kCount, int kRank, bool kWide, class... Ins, size_t... I, class... Outs, size_t... O>
__device__ __forceinline__ void map_groups(const Space<kRank, kWide>& groups_of, int64_t groups, int each, const Pack<Ins...>& ins,
                                           std::index_sequence<I...> in_indices, const Pack<Outs...>& outs, std::index_sequence<O...> out_indices) {
  using Index = typename Space<kRank, kWide>::Index;
  constexpr int kUnroll = kMapUnroll<Ins...>;
  const int64_t block = static_cast<int64_t>(blockDim.x) * each;
  for (int64_t first = blockIdx.x * block + threadIdx.x; first < groups; first += gridDim.x * block) {
    Raws<kCount, Ins...> raws[kUnroll];
    int64_t coordinate[kUnroll][kRank];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t group = first + u * blockDim.x;
      if (u >= each || group >= groups) continue;
      groups_of.split(static_cast<Index>(group), coordinate[u]);
      raws[u] = pack(load_raw<kCount>(get<I>(ins), at<kCount>(get<I>(ins), coordinate[u]))...);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (u >= each || first + u * blockDim.x >= groups) continue;
      const auto results = compute_raws<F, kCount>(raws[u], ins, in_indices, outs, out_indices);
      (store_values<kCount>(get<O>(outs), at<kCount>(get<O>(outs), coordinate[u]), get<O>(results)), ...);
    }
  }
}
}  // namespace detail

/// A thread computes `each` groups of `kCount` neighbours along the innermost dim, a block's width apart. `tail` elements behind the last
/// group of a one-dim space are done one by one.
template <class F, int kCount, int kRank, bool kWide, class Ins, class Outs>
__global__ void map_kernel(Space<kRank, kWide> groups_of, int64_t groups, int64_t tail, int each, Ins ins, Outs outs) {
  wait_for_previous();
  allow_next();
  const typename Ins::Indices in_indices;
  const typename Outs::Indices out_indices;
  detail::map_groups<F, kCount>(groups_of, groups, each, ins, in_indices, outs, out_indices);
  if constexpr (kRank == 1 && kCount > 1) {
    const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (first < tail) {
      const int64_t coordinate[1] = {groups * kCount + first};
      detail::map_group<F, 1>(coordinate, ins, in_indices, outs, out_indices);
    }
  }
}

namespace detail {
/// `kCount` elements of a space from element `first` on, some of which may be before its beginning or behind its end.
template <int kCount, int kRank, bool kWide>
struct Stretch {
  using Index = typename Space<kRank, kWide>::Index;
  using Offset = std::conditional_t<kWide, int64_t, int>;
  const Space<kRank, kWide>& space;
  Offset first, total;
  int64_t coordinate[kRank];  ///< of the first element
  bool within;                ///< they are all there, and in one row

  __device__ __forceinline__ Stretch(const Space<kRank, kWide>& of, int64_t from, int64_t count)
      : space(of), first(static_cast<Offset>(from)), total(static_cast<Offset>(count)) {
    within = first >= 0 && first + kCount <= total;
    if (within) {
      space.split(static_cast<Index>(first), coordinate);
      within = coordinate[kRank - 1] + kCount <= space.last();
    }
  }

  __device__ __forceinline__ bool exists() const { return first < total && first > -kCount; }
  __device__ __forceinline__ bool has(int j) const { return first + j >= 0 && first + j < total; }
  /// Where it begins in an operand that lies in memory as the space does.
  template <class Op>
  __device__ __forceinline__ typename Op::Element* begin(const Op& operand) const {
    return operand.data + first;
  }
  /// Whether the words around them exist, too.
  __device__ __forceinline__ bool deep() const { return first >= 16 && first + kCount + 16 <= total; }
  __device__ __forceinline__ uint32_t live() const {
    constexpr uint32_t kAll = (1u << kCount) - 1;
    const Offset left = total - first;
    const uint32_t below = left >= kCount ? kAll : (1u << left) - 1;
    return first >= 0 ? below : below & ~((1u << -first) - 1);
  }

  /// Where element `j`, which must be there, is in an operand.
  template <class Op>
  __device__ __forceinline__ typename Op::Element* place(const Op& operand, int j) const {
    int64_t own[kRank];
    space.split(static_cast<Index>(first + j), own);
    return at<1>(operand, own);
  }
};

/// The stretches of a space that is cut as if it had one dim. The first begins `phase` elements before it.
template <int kCount, int kRank, bool kWide>
struct FlatStretches {
  Space<kRank, kWide> space;
  int64_t total;
  int phase;

  __device__ __forceinline__ int64_t count() const { return (total + phase + kCount - 1) / kCount; }
  __device__ __forceinline__ Stretch<kCount, kRank, kWide> at(int64_t number) const { return {space, number * kCount - phase, total}; }
};

/// `kCount` elements of a row of a matrix from column `first` on, some of which may be behind its end.
template <int kCount>
struct RowStretch {
  int64_t coordinate[2];
  int first, total;  ///< columns
  bool within;

  __device__ __forceinline__ RowStretch(uint32_t row, int from, int columns)
      : coordinate{row, from}, first(from), total(columns), within(from + kCount <= columns) {}

  __device__ __forceinline__ bool exists() const { return true; }
  __device__ __forceinline__ bool has(int j) const { return first + j < total; }
  template <class Op>
  __device__ __forceinline__ typename Op::Element* begin(const Op& operand) const {
    return operand.data + coordinate[0] * operand.strides[0] + first;
  }
  __device__ __forceinline__ bool deep() const { return first >= kCount && first + 2 * kCount <= total; }
  __device__ __forceinline__ uint32_t live() const {
    constexpr uint32_t kAll = (1u << kCount) - 1;
    return within ? kAll : (1u << (total - first)) - 1;
  }
  template <class Op>
  __device__ __forceinline__ typename Op::Element* place(const Op& operand, int j) const {
    const int64_t own[2] = {coordinate[0], first + j};
    return gpu::at<1>(operand, own);
  }
};

/// The stretches of the rows of a matrix.
template <int kCount>
struct RowStretches {
  Divider chunks;  ///< of a row
  uint32_t total;
  int columns;

  __device__ __forceinline__ int64_t count() const { return total; }
  __device__ __forceinline__ RowStretch<kCount> at(int64_t number) const {
    const uint32_t row = chunks.divide(static_cast<uint32_t>(number));
    return {row, static_cast<int>(static_cast<uint32_t>(number) - row * chunks.divisor) * kCount, columns};
  }
};

/// Writes those elements of a stretch that exist.
template <int kCount, class S, class Op>
__device__ __forceinline__ void write_stretch(const S& stretch, const Op& operand, bool linear, const Values<typename Op::Compute, kCount>& values) {
  typename Op::Value raw[kCount];
#pragma unroll
  for (int j = 0; j < kCount; ++j) raw[j] = convert<typename Op::Value>(values.v[j]);
  if (Op::kInner == Inner::unit && linear) {
    store_within<kCount>(stretch.begin(operand), stretch.first, stretch.total - stretch.first, raw);
    return;
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    if (stretch.has(j)) *stretch.place(operand, j) = raw[j];
  }
}

/// What is read of one operand for a stretch: `begin`, then `end`, then `elements`, each after that of all others. `kSame`: operands that lie as the
/// space does begin at the same boundaries as its stretches.
template <class Op, int kCount, bool kSame>
struct StretchRead {
  using T = typename Op::Value;
  static constexpr bool kByWords = Op::kInner == Inner::unit && sizeof(T) * kCount % 16 == 0;
  std::conditional_t<kByWords, Words<T, kByWords ? kCount : 16, !kSame>, Raw<Op, kCount, false>> data;

  /// `linear`: the operand lies in memory as the space does.
  template <class S>
  __device__ __forceinline__ void begin(const S& stretch, const Op& operand, bool linear) {
    if constexpr (kByWords) {
      if (linear) data.read(stretch.begin(operand), stretch.deep());
    }
  }
  template <class S>
  __device__ __forceinline__ void end(const S& stretch, const Op& operand, bool linear) {
    if constexpr (!kByWords) {
      T elements[kCount];
      one_by_one(stretch, operand, elements);
      data.set(elements);
    }
  }
  template <class S>
  __device__ __forceinline__ Raw<Op, kCount, false> elements(const S& stretch, const Op& operand, bool linear) const {
    if constexpr (kByWords) {
      T elements[kCount];
      if (linear) {
        data.elements(stretch.begin(operand), stretch.deep(), stretch.live(), elements);
      } else {
        one_by_one(stretch, operand, elements);
      }
      Raw<Op, kCount, false> result;
      result.set(elements);
      return result;
    } else {
      return data;
    }
  }

 private:
  template <class S>
  static __device__ __forceinline__ void one_by_one(const S& stretch, const Op& operand, T (&to)[kCount]) {
    if (stretch.within) {
      const auto* from = at<1>(operand, stretch.coordinate);
      const int64_t step = Op::kInner == Inner::zero ? 0 : Op::kInner == Inner::unit ? 1 : operand.strides[Op::kRank - 1];
#pragma unroll
      for (int j = 0; j < kCount; ++j) to[j] = from[j * step];
    } else {
#pragma unroll
      for (int j = 0; j < kCount; ++j) to[j] = stretch.has(j) ? *stretch.place(operand, j) : T{};
    }
  }
};

template <class F, int kCount, bool kSame, class Stretches, class... Ins, size_t... I, class... Outs, size_t... O>
__device__ __forceinline__ void map_stretches(const Stretches& stretches, int each, uint64_t linear, const Pack<Ins...>& ins,
                                              std::index_sequence<I...> in_indices, const Pack<Outs...>& outs,
                                              std::index_sequence<O...> out_indices) {
  constexpr int kUnroll = kMapUnroll<Ins...> < 2 ? 1 : 2;
  const int64_t block = static_cast<int64_t>(blockDim.x) * each, count = stretches.count();
  for (int64_t number = blockIdx.x * block + threadIdx.x; number < count; number += gridDim.x * block) {
    Pack<StretchRead<Ins, kCount, kSame>...> reads[kUnroll];
    const auto for_stretches = [&](auto visit) {
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int64_t own = number + u * blockDim.x;
        if (u >= each || own >= count) continue;
        const auto stretch = stretches.at(own);
        if (stretch.exists()) visit(stretch, u);
      }
    };
    for_stretches([&](const auto& stretch, int u) { (get<I>(reads[u]).begin(stretch, get<I>(ins), (linear >> I & 1) != 0), ...); });
    for_stretches([&](const auto& stretch, int u) { (get<I>(reads[u]).end(stretch, get<I>(ins), (linear >> I & 1) != 0), ...); });
    for_stretches([&](const auto& stretch, int u) {
      const Pack<Raw<Ins, kCount, false>...> raws = pack(get<I>(reads[u]).elements(stretch, get<I>(ins), (linear >> I & 1) != 0)...);
      const auto results = compute_raws<F, kCount>(raws, ins, in_indices, outs, out_indices);
      (write_stretch<kCount>(stretch, get<O>(outs), (linear >> (sizeof...(I) + O) & 1) != 0, get<O>(results)), ...);
    });
  }
}
}  // namespace detail

/// A thread computes `each` stretches of `kCount` elements of the space, a block's width apart; the first of all begins `phase` elements before
/// it. `linear` has a bit for each operand, inputs first, that lies in memory as the space does.
template <class F, int kCount, bool kSame, int kRank, bool kWide, class Ins, class Outs>
__global__ void __launch_bounds__(256)
    map_flat_kernel(Space<kRank, kWide> space, int64_t total, int phase, int each, uint64_t linear, Ins ins, Outs outs) {
  wait_for_previous();
  allow_next();
  const detail::FlatStretches<kCount, kRank, kWide> stretches{space, total, phase};
  detail::map_stretches<F, kCount, kSame>(stretches, each, linear, ins, typename Ins::Indices{}, outs, typename Outs::Indices{});
}

/// The same for the stretches of rows. `linear` has a bit for each operand whose rows are contiguous.
template <class F, int kCount, class Ins, class Outs>
__global__ void __launch_bounds__(256) map_pitched_kernel(detail::RowStretches<kCount> stretches, int each, uint64_t linear, Ins ins, Outs outs) {
  wait_for_previous();
  allow_next();
  detail::map_stretches<F, kCount, false>(stretches, each, linear, ins, typename Ins::Indices{}, outs, typename Outs::Indices{});
}

namespace detail {
template <class F, int kCount, size_t kRank, class... Ins, class... Outs>
int32_t launch_map(const Context& ctx, const int64_t (&sizes)[kRank], const Pack<Ins...>& ins, const Pack<Outs...>& outs) {
  constexpr int kDims = static_cast<int>(kRank);
  int64_t counts[kRank];
  int64_t groups = 1;
  for (int d = 0; d < kDims; ++d) {
    counts[d] = d == kDims - 1 ? sizes[d] / kCount : sizes[d];
    groups *= counts[d];
  }
  const int64_t tail = sizes[kRank - 1] % kCount;  // not 0 for one dim only
  const int each = groups <= kFewGroups ? 1 : kMapUnroll<Ins...>;
  LaunchConfig config;
  config.block = dim3(groups >= 65536 ? 256 : 128);
  config.grid = dim3(ceil_div(groups < 1 ? 1 : groups, static_cast<int64_t>(config.block.x) * each, 1 << 20));
  config.dependent = true;
  if (groups < (int64_t(1) << 31)) {
    return launch(ctx, config, map_kernel<F, kCount, kDims, false, Pack<Ins...>, Pack<Outs...>>, Space<kDims, false>(counts), groups, tail, each, ins,
                  outs);
  }
  return launch(ctx, config, map_kernel<F, kCount, kDims, true, Pack<Ins...>, Pack<Outs...>>, Space<kDims, true>(counts), groups, tail, each, ins,
                outs);
}

/// Whether an operand lies in memory as a row-major space of these sizes.
template <size_t kRank, class Op>
bool is_linear(const int64_t (&sizes)[kRank], const Op& operand) {
  int64_t step = 1;
  bool linear = Op::kInner == Inner::unit;
  for (int d = static_cast<int>(kRank) - 1; d >= 0; --d) {
    linear = linear && (sizes[d] == 1 || operand.strides[d] == step);
    step *= sizes[d];
  }
  return linear;
}

/// Whether an operand begins as many elements behind a boundary of chunks as `phase`.
template <int kCount, class Op>
bool same_boundary(const Op& operand, int64_t phase) {
  return Op::kInner != Inner::unit || (static_cast<int64_t>(reinterpret_cast<uintptr_t>(operand.data) / sizeof(typename Op::Value)) - phase) % kCount == 0;
}

template <class F, int kCount, size_t kRank, class... Ins, size_t... I, class... Outs, size_t... O>
int32_t launch_flat(const Context& ctx, const int64_t (&sizes)[kRank], const Pack<Ins...>& ins, std::index_sequence<I...>, const Pack<Outs...>& outs,
                    std::index_sequence<O...>) {
  constexpr int kDims = static_cast<int>(kRank);
  using Out = std::decay_t<decltype(get<0>(outs))>;
  static_assert(sizeof...(I) + sizeof...(O) <= 64, "a bit for each operand");
  int64_t total = 1;
  for (int d = 0; d < kDims; ++d) total *= sizes[d];
  uint64_t linear = 0;
  ((linear |= uint64_t(is_linear(sizes, get<I>(ins))) << I), ...);
  ((linear |= uint64_t(is_linear(sizes, get<O>(outs))) << (sizeof...(I) + O)), ...);
  constexpr uintptr_t kLine = 128;  // a warp's accesses fill lines
  const int phase = static_cast<int>(reinterpret_cast<uintptr_t>(get<0>(outs).data) % kLine / sizeof(typename Out::Value));
  LaunchConfig config;
  const int each = total <= kFewGroups * kCount || kMapUnroll<Ins...> < 2 ? 1 : 2;
  config.block = dim3(total >= 65536 * kCount ? 256 : 128);
  config.grid = dim3(ceil_div(total + phase, static_cast<int64_t>(config.block.x) * kCount * each, 1 << 20));
  config.dependent = true;
  if (total < (int64_t(1) << 31) - (int64_t(1) << 20)) {
    if constexpr (kRank == 1) {
      if ((same_boundary<kCount>(get<I>(ins), phase) && ...)) {
        return launch(ctx, config, map_flat_kernel<F, kCount, true, kDims, false, Pack<Ins...>, Pack<Outs...>>, Space<kDims, false>(sizes), total,
                      phase, each, linear, ins, outs);
      }
    }
    return launch(ctx, config, map_flat_kernel<F, kCount, false, kDims, false, Pack<Ins...>, Pack<Outs...>>, Space<kDims, false>(sizes), total, phase, each,
                  linear, ins, outs);
  }
  return launch(ctx, config, map_flat_kernel<F, kCount, false, kDims, true, Pack<Ins...>, Pack<Outs...>>, Space<kDims, true>(sizes), total, phase, each, linear,
                ins, outs);
}

/// Launches `map_pitched_kernel` if the rows of the first result begin on boundaries of 16 bytes.
template <class F, int kCount, class... Ins, class... Outs>
int32_t launch_pitched(const Context& ctx, const int64_t (&sizes)[2], const Pack<Ins...>& ins, const Pack<Outs...>& outs, bool& done) {
  static_assert(sizeof...(Ins) + sizeof...(Outs) <= 64, "a bit for each operand");
  const int64_t chunks = (sizes[1] + kCount - 1) / kCount, total = chunks * sizes[0];
  if (!may_access<kCount>(get<0>(outs)) || total >= (int64_t(1) << 31) - (int64_t(1) << 20)) return 0;
  done = true;
  uint64_t linear = 0;
  int bit = 0;
  ((linear |= uint64_t(Ins::kInner == Inner::unit) << bit++), ...);
  ((linear |= uint64_t(Outs::kInner == Inner::unit) << bit++), ...);
  LaunchConfig config;
  const int each = total <= kFewGroups || kMapUnroll<Ins...> < 2 ? 1 : 2;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(total, static_cast<int64_t>(config.block.x) * each, 1 << 20));
  config.dependent = true;
  const RowStretches<kCount> stretches{Divider(static_cast<uint32_t>(chunks)), static_cast<uint32_t>(total), static_cast<int>(sizes[1])};
  return launch(ctx, config, map_pitched_kernel<F, kCount, Pack<Ins...>, Pack<Outs...>>, stretches, each, linear, ins, outs);
}

template <int kCount, class... Ops, size_t... I>
bool all_may_access(const Pack<Ops...>& operands, std::index_sequence<I...>) {
  return (may_access<kCount>(get<I>(operands)) && ... && true);
}
}  // namespace detail

/// @brief outs[...] = F(ins[...]) over an iteration space of `sizes`.
///
/// The operands have a stride for each dim of the space (0 where they are broadcast). An output may be the very buffer of an input with the
/// same strides; no other overlap is allowed.
/// @tparam kRepeated a bit for each input that is one row for all of a space of two dims, whose rows need not be of whole chunks
/// @tparam kPitched whether rows of results of two dims lie apart, on boundaries of 16 bytes, and have no whole chunks
template <class F, uint64_t kRepeated = 0, bool kPitched = false, size_t kRank, class... Ins, class... Outs>
int32_t map(const Context& ctx, const int64_t (&sizes)[kRank], const Pack<Ins...>& ins, const Pack<Outs...>& outs) {
  for (size_t d = 0; d < kRank; ++d) {
    if (sizes[d] <= 0) return 0;
  }
  if constexpr (detail::kMayBePairs<Pack<Ins...>, Pack<Outs...>>) {
    bool done = false;
    const int32_t status = detail::launch_pairs<F>(ctx, sizes, ins, std::index_sequence_for<Ins...>{}, outs, done);
    if (done) return status;
  }
  // Where no operand has neighbours side by side, a thread takes one element: those of a warp then fall into few lines.
  constexpr bool kChunks = ((Ins::kInner == Inner::unit) || ... || false) || ((Outs::kInner == Inner::unit) || ... || false);
  constexpr int kCount = kChunks ? vector_width<Ins..., Outs...>() : 1;
  const bool whole = kRank == 1 || sizes[kRank - 1] % kCount == 0;
  if (whole && detail::all_may_access<kCount>(ins, std::index_sequence_for<Ins...>{}) &&
      detail::all_may_access<kCount>(outs, std::index_sequence_for<Outs...>{})) {
    return detail::launch_map<F, kCount>(ctx, sizes, ins, outs);
  }
#if defined(AIT_CUDA)
  if constexpr (kRepeated != 0) {
    static_assert(kRank == 2, "rows that repeat");
    bool done = false;
    const int32_t status =
        detail::launch_repeat<F, kRepeated, kCount>(ctx, sizes, ins, std::index_sequence_for<Ins...>{}, outs, std::index_sequence_for<Outs...>{}, done);
    if (done) return status;
  }
#endif
  if constexpr (kPitched) {
    static_assert(kRank == 2, "rows that lie apart");
    bool done = false;
    const int32_t status = detail::launch_pitched<F, kCount>(ctx, sizes, ins, outs, done);
    if (done) return status;
  }
  return detail::launch_flat<F, kCount>(ctx, sizes, ins, std::index_sequence_for<Ins...>{}, outs, std::index_sequence_for<Outs...>{});
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_MAP_CUH_
