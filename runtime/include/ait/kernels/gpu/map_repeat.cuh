/// @file map_repeat.cuh
/// @brief Elementwise kernels of operands of which some are rows that repeat, where rows begin at no 16-byte boundary.
///
/// The space is cut as if it had one dim, so that no row has ends: other operands and results are read and written in aligned words. Each block
/// stays, and has the rows that repeat in shared memory, where a chunk that goes over the end of a row finds the beginning behind it.
#ifndef AIT_KERNELS_GPU_MAP_REPEAT_CUH_
#define AIT_KERNELS_GPU_MAP_REPEAT_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"

#if defined(AIT_CUDA)
namespace ait::gpu {

namespace detail {
inline constexpr int kRepeatThreads = 1024;

/// A row that repeats, in shared memory: of `length` elements, and as many from its beginning as a chunk at its end reaches.
template <class T, int kCount>
struct RepeatedRow {
  using Around = Words<T, kCount, true>;
  static constexpr int kOfWord = Around::kOfWord;

  /// Words of 16 bytes.
  static __host__ __device__ __forceinline__ int words(int length) { return (length - 1) / kOfWord + Around::kRead; }

  static __device__ __forceinline__ void fill(uint4* shared, const T* from, int length) {
    T* to = reinterpret_cast<T*>(shared);
    const int count = words(length) * kOfWord;
#pragma unroll 4
    for (int i = threadIdx.x; i < count; i += kRepeatThreads) to[i] = from[i < length ? i : i % length];
  }
  /// The elements from `first` on.
  static __device__ __forceinline__ void take(const uint4* shared, int first, T (&to)[kCount]) {
    Around around;
#pragma unroll
    for (int k = 0; k < Around::kRead; ++k) around.words[k] = shared[first / kOfWord + k];
    around.elements_behind(static_cast<uint32_t>(first % kOfWord * sizeof(T)), to);
  }
};

/// Operand `kIndex` in a kernel of operands that repeat or lie in memory as the space does.
template <uint64_t kRepeated, size_t kIndex, class Op, int kCount>
struct RepeatRead {
  using T = typename Op::Value;
  static constexpr bool kRepeats = (kRepeated >> kIndex & 1) != 0;
  static constexpr bool kLinear = !kRepeats && Op::kInner == Inner::unit;

  static __host__ __device__ __forceinline__ int shared_words(int length) { return kRepeats ? RepeatedRow<T, kCount>::words(length) : 0; }
  static __device__ __forceinline__ void begin(Raw<Op, kCount>& raw, const Op& operand, int64_t first) {
    if constexpr (kLinear) {
      raw.read(operand.data + first);
    } else if constexpr (!kRepeats) {
      raw.read(operand.data);
    }
  }
  static __device__ __forceinline__ void end(Raw<Op, kCount>& raw, const uint4* shared, int column) {
    if constexpr (kRepeats) {
      T elements[kCount];
      RepeatedRow<T, kCount>::take(shared, column, elements);
      raw.set(elements);
    }
  }
  static __device__ __forceinline__ Values<typename Op::Compute, 1> one(const Op& operand, int64_t i, int column) {
    return {convert<typename Op::Compute>(operand.data[kRepeats ? column : kLinear ? i : 0])};
  }
};

template <class F, uint64_t kRepeated, int kCount, class... Ins, size_t... I, class... Outs, size_t... O>
__device__ __forceinline__ void map_repeats(const Divider& length_of, uint32_t total, int head, int chunks, const Pack<Ins...>& ins,
                                            std::index_sequence<I...> in_indices, const Pack<Outs...>& outs, std::index_sequence<O...> out_indices) {
  constexpr int kUnroll = 4;
  AIT_DYNAMIC_SHARED(16, repeat_shared);
  const int length = static_cast<int>(length_of.divisor);
  const uint4* rows[sizeof...(Ins)];
  uint4* next = reinterpret_cast<uint4*>(repeat_shared);
  const auto place = [&](auto read, size_t index, const auto& operand) {
    rows[index] = next;
    if constexpr (decltype(read)::kRepeats) RepeatedRow<typename decltype(read)::T, kCount>::fill(next, operand.data, length);
    next += decltype(read)::shared_words(length);
  };
  (place(RepeatRead<kRepeated, I, Ins, kCount>{}, I, get<I>(ins)), ...);
  __syncthreads();
  const auto column = [&](uint32_t i) { return static_cast<int>(i - length_of.divide(i) * length_of.divisor); };
  const int block = kRepeatThreads * kUnroll;
  for (int first = blockIdx.x * block + threadIdx.x; first < chunks; first += gridDim.x * block) {
    Pack<Raw<Ins, kCount>...> raws[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int chunk = first + u * kRepeatThreads;
      if (chunk < chunks) (RepeatRead<kRepeated, I, Ins, kCount>::begin(get<I>(raws[u]), get<I>(ins), head + chunk * kCount), ...);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int chunk = first + u * kRepeatThreads;
      if (chunk >= chunks) continue;
      const int at = head + chunk * kCount, from = column(static_cast<uint32_t>(at));
      (RepeatRead<kRepeated, I, Ins, kCount>::end(get<I>(raws[u]), rows[I], from), ...);
      const Pack<Values<typename Ins::Compute, kCount>...> values = pack(get<I>(raws[u]).values()...);
      Pack<Values<typename Outs::Compute, kCount>...> results;
      apply_values<F, kCount>(values, in_indices, results, out_indices);
      (store_values<kCount>(get<O>(outs), get<O>(outs).data + at, get<O>(results)), ...);
    }
  }
  const uint32_t number = blockIdx.x * kRepeatThreads + threadIdx.x, ends = total - static_cast<uint32_t>(chunks) * kCount;
  if (number < ends) {  // the elements before and behind the chunks
    const uint32_t i = number < static_cast<uint32_t>(head) ? number : number + static_cast<uint32_t>(chunks) * kCount;
    const Pack<Values<typename Ins::Compute, 1>...> values = pack(RepeatRead<kRepeated, I, Ins, kCount>::one(get<I>(ins), i, column(i))...);
    Pack<Values<typename Outs::Compute, 1>...> results;
    apply_values<F, 1>(values, in_indices, results, out_indices);
    (store_values<1>(get<O>(outs), get<O>(outs).data + i, get<O>(results)), ...);
  }
}
}  // namespace detail

/// A block stays, and has a part of the chunks in each round. `kRepeated` has a bit for each input that repeats; the others lie in memory as the
/// space does, or are one element.
template <class F, uint64_t kRepeated, int kCount, class Ins, class Outs>
__global__ void __launch_bounds__(detail::kRepeatThreads, 1)
    map_repeat_kernel(Divider length, uint32_t total, int head, int chunks, Ins ins, Outs outs) {
  wait_for_previous();
  allow_next();
  detail::map_repeats<F, kRepeated, kCount>(length, total, head, chunks, ins, typename Ins::Indices{}, outs, typename Outs::Indices{});
}

namespace detail {
/// With fewer rows than this for each block, those that repeat cost more than they save.
inline constexpr int64_t kFewRepeats = 8;

template <class Op>
bool lies_as(const int64_t (&sizes)[2], const Op& operand) {
  return operand.strides[1] == 1 && operand.strides[0] == sizes[1];
}

/// Elements from the first of an operand to the first at a boundary of chunks.
template <int kCount, class Op>
int before_boundary(const Op& operand) {
  const auto number = static_cast<int64_t>(reinterpret_cast<uintptr_t>(operand.data) / sizeof(typename Op::Value));
  return static_cast<int>((kCount - number % kCount) % kCount);
}

/// Launches map_repeat_kernel where operands lie as it needs; `done` says whether they do.
template <class F, uint64_t kRepeated, int kCount, class... Ins, size_t... I, class... Outs, size_t... O>
int32_t launch_repeat(const Context& ctx, const int64_t (&sizes)[2], const Pack<Ins...>& ins, std::index_sequence<I...>, const Pack<Outs...>& outs,
                      std::index_sequence<O...>, bool& done) {
  const int64_t total = sizes[0] * sizes[1];
  const int head = before_boundary<kCount>(get<0>(outs));
  const auto fits = [&](auto read, const auto& operand) {
    using Read = decltype(read);
    if (Read::kRepeats) return operand.strides[0] == 0 && operand.strides[1] == 1;
    if (Read::kLinear) return lies_as(sizes, operand) && before_boundary<kCount>(operand) == head;
    return operand.strides[0] == 0 && operand.strides[1] == 0;
  };
  const bool good = (fits(RepeatRead<kRepeated, I, Ins, kCount>{}, get<I>(ins)) && ...) &&
                    ((Outs::kInner == Inner::unit && lies_as(sizes, get<O>(outs)) && before_boundary<kCount>(get<O>(outs)) == head) && ...);
  const int64_t blocks = multiprocessors();
  const bool many = blocks > 0 && sizes[0] >= blocks * kFewRepeats && total >= blocks * kRepeatThreads * kCount;
  if (!good || !many || total >= (int64_t(1) << 31) - (int64_t(1) << 24) || sizes[1] > (1 << 20)) return 0;
  const int length = static_cast<int>(sizes[1]);
  LaunchConfig config;
  config.shared_bytes = 16 * static_cast<uint32_t>((RepeatRead<kRepeated, I, Ins, kCount>::shared_words(length) + ...));
  if (config.shared_bytes > shared_limit()) return 0;
  config.block = dim3(kRepeatThreads);
  config.grid = dim3(grid_size(blocks));
  config.dependent = true;
  done = true;
  return launch(ctx, config, map_repeat_kernel<F, kRepeated, kCount, Pack<Ins...>, Pack<Outs...>>, Divider(static_cast<uint32_t>(length)),
                static_cast<uint32_t>(total), head, static_cast<int>((total - head) / kCount), ins, outs);
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_MAP_REPEAT_CUH_
