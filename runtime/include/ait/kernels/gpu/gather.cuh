/// @file gather.cuh
/// @brief Rows of a table, chosen by ids.
#ifndef AIT_KERNELS_GPU_GATHER_CUH_
#define AIT_KERNELS_GPU_GATHER_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"

namespace ait::gpu {

/// @brief The table and the strides of ids and result, rows counted in words.
template <int kRank>
struct GatherSpace {
  int64_t sizes[kRank], id_strides[kRank], out_strides[kRank];
  int64_t count, rows, words, table_stride;
};

/// The bits of NaN in each element of a word for float types, of 0 for others.
template <class T, class Word>
__device__ __forceinline__ Word missing_word() {
  constexpr int kCount = sizeof(Word) / sizeof(T);
  T values[kCount];
  for (int i = 0; i < kCount; ++i) {
    if constexpr (std::is_integral_v<T>) {
      values[i] = T(0);
    } else {
      values[i] = convert<T>(compute_t<T>(NAN));
    }
  }
  Word word;
  copy_bytes(&word, &values, sizeof(Word));
  return word;
}

/// Words of a row that each thread has on its way at once.
inline constexpr int kGatherUnroll = 4;

/// Rows `first`, `first + step` ... of the result. Blocks along y share a row.
template <class T, class Word, int kRank, class Id>
__device__ __forceinline__ void gather_rows(const GatherSpace<kRank>& space, const Word* table, const Id* ids, Word* out, int64_t first,
                                            int64_t step) {
  constexpr int kUnroll = kGatherUnroll;
  const int64_t span = static_cast<int64_t>(kUnroll) * blockDim.x;
  for (int64_t i = first; i < space.count; i += step) {
    int64_t coordinate[kRank];
    coordinates<kRank>(i, space.sizes, coordinate);
    int64_t from = 0, to = 0;
#pragma unroll
    for (int d = 0; d < kRank; ++d) {
      from += coordinate[d] * space.id_strides[d];
      to += coordinate[d] * space.out_strides[d];
    }
    const int64_t id = static_cast<int64_t>(ids[from]);
    const bool known = id >= 0 && id < space.rows;
    const Word* row = table + (known ? id : 0) * space.table_stride;
    for (int64_t word = blockIdx.y * span + threadIdx.x; word < space.words; word += gridDim.y * span) {
      Word words[kUnroll];
#pragma unroll
      for (int k = 0; k < kUnroll; ++k) {
        const int64_t w = word + k * blockDim.x;
        if (w < space.words) words[k] = known ? row[w] : missing_word<T, Word>();
      }
#pragma unroll
      for (int k = 0; k < kUnroll; ++k) {
        const int64_t w = word + k * blockDim.x;
        if (w < space.words) out[to + w] = words[k];
      }
    }
  }
}

/// A row of threads (threadIdx.y) takes an id at a time.
template <class T, class Word, int kRank, class Id>
__global__ void __launch_bounds__(128) gather_kernel(GatherSpace<kRank> space, const Word* table, const Id* ids, Word* out) {
  wait_for_previous();
  allow_next();
  gather_rows<T>(space, table, ids, out, static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y, static_cast<int64_t>(gridDim.x) * blockDim.y);
}

/// @brief A table, the ids of its rows, and where the rows go. In words of 16 bytes if `wide`, else in elements.
template <int kRank, class T, class Id>
struct Lookup {
  GatherSpace<kRank> space;
  const T* table;
  const Id* ids;
  T* out;
  bool wide;
};

/// @brief The lookup of ids of shape `sizes`; the arguments are those of `gather`.
template <size_t kRank, class T, class Id>
Lookup<static_cast<int>(kRank), T, Id> lookup(const int64_t (&sizes)[kRank], const T* table, int64_t rows, int64_t width, int64_t table_stride,
                                              const Id* ids, const int64_t (&id_strides)[kRank], T* out, const int64_t (&out_strides)[kRank]) {
  constexpr int64_t kSize = sizeof(T), kFactor = 16 / kSize;
  Lookup<static_cast<int>(kRank), T, Id> made{{}, table, ids, out, false};
  made.space.count = 1;
  uintptr_t bits = reinterpret_cast<uintptr_t>(table) | reinterpret_cast<uintptr_t>(out) | static_cast<uintptr_t>(width * kSize) |
                   static_cast<uintptr_t>(table_stride * kSize);
  for (size_t d = 0; d < kRank; ++d) {
    made.space.count *= made.space.sizes[d] = sizes[d];
    made.space.id_strides[d] = id_strides[d];
    bits |= static_cast<uintptr_t>(out_strides[d] * kSize);
  }
  made.wide = bits % 16 == 0;
  const int64_t factor = made.wide ? kFactor : 1;
  for (size_t d = 0; d < kRank; ++d) made.space.out_strides[d] = out_strides[d] / factor;
  made.space.rows = rows;
  made.space.words = width / factor;
  made.space.table_stride = table_stride / factor;
  return made;
}

/// @brief The lookups of a launch, and the first block of each.
template <int kRank, class T, class Id>
struct Lookups {
  using One = Lookup<kRank, T, Id>;
  /// Those that fit into 4 KiB, the size of kernel arguments that every device accepts.
  static constexpr int kTables = 3840 / int(sizeof(One) + sizeof(int));

  int count;
  int first[kTables + 1];
  One tables[kTables];
};

/// Each table has blocks of its own.
template <int kRank, class T, class Id>
__global__ void __launch_bounds__(128) gather_grouped_kernel(const AIT_GRID_CONSTANT Lookups<kRank, T, Id> group) {
  wait_for_previous();
  allow_next();
  int number = 0;
  while (number + 1 < group.count && int(blockIdx.x) >= group.first[number + 1]) ++number;
  const Lookup<kRank, T, Id>& one = group.tables[number];
  const int64_t first = static_cast<int64_t>(blockIdx.x - group.first[number]) * blockDim.y + threadIdx.y;
  const int64_t step = static_cast<int64_t>(group.first[number + 1] - group.first[number]) * blockDim.y;
  if (one.wide) {
    gather_rows<T>(one.space, reinterpret_cast<const uint4*>(one.table), one.ids, reinterpret_cast<uint4*>(one.out), first, step);
  } else {
    using Word = word_t<sizeof(T)>;
    gather_rows<T>(one.space, reinterpret_cast<const Word*>(one.table), one.ids, reinterpret_cast<Word*>(one.out), first, step);
  }
}

namespace detail {
/// Blocks from which on a launch fills a card.
constexpr int64_t kGatherBlocks = 4096;

/// Blocks of 128 threads, a row of them for an id; rows have up to `words` words.
inline LaunchConfig gather_config(int64_t words) {
  LaunchConfig config;
  uint32_t lanes = 8;
  while (lanes < 32 && lanes < words) lanes *= 2;
  config.block = dim3(lanes, 128 / lanes);
  config.dependent = true;
  return config;
}

/// `blocks` along x, and as many along y as long rows need to fill a card.
inline dim3 gather_grid(const LaunchConfig& config, int64_t blocks, int64_t words) {
  const int64_t span = static_cast<int64_t>(kGatherUnroll) * config.block.x, parts = (words + span - 1) / span;
  const int64_t wanted = (kGatherBlocks + blocks - 1) / blocks;
  return dim3(grid_size(blocks), grid_size(parts < wanted ? parts : wanted));
}

template <class Word, int kRank, class T, class Id>
int32_t launch_gather(const Context& ctx, const Lookup<kRank, T, Id>& one) {
  LaunchConfig config = gather_config(one.space.words);
  config.grid = gather_grid(config, ceil_div(one.space.count, config.block.y, 1 << 20), one.space.words);
  return launch(ctx, config, gather_kernel<T, Word, kRank, Id>, one.space, reinterpret_cast<const Word*>(one.table), one.ids,
                reinterpret_cast<Word*>(one.out));
}
}  // namespace detail

/// @brief out[..., :] = table[ids[...], :] over ids of shape `sizes`.
///
/// Rows have `width` elements, contiguous on both sides; `table_stride` separates the rows of the table. `ids` and `out` have a stride for
/// each dim of `sizes`. The row of an id outside of the table is NaN, or 0 for integers; nothing outside of the table is read.
template <size_t kRank, class T, class Id>
int32_t gather(const Context& ctx, const int64_t (&sizes)[kRank], const T* table, int64_t rows, int64_t width, int64_t table_stride,
               const Id* ids, const int64_t (&id_strides)[kRank], T* out, const int64_t (&out_strides)[kRank]) {
  const auto one = lookup(sizes, table, rows, width, table_stride, ids, id_strides, out, out_strides);
  if (one.space.count <= 0 || width <= 0) return 0;
  if (one.wide) return detail::launch_gather<uint4>(ctx, one);
  return detail::launch_gather<word_t<sizeof(T)>>(ctx, one);
}

/// @brief `gather` for each of the lookups, in launches of as many as fit into the arguments of one.
template <int kRank, class T, class Id, size_t kCount>
int32_t gather_grouped(const Context& ctx, const Lookup<kRank, T, Id> (&lookups)[kCount]) {
  for (size_t at = 0; at < kCount;) {
    Lookups<kRank, T, Id> group = {};
    size_t end = at;
    int64_t words = 0, tables = 0;
    for (; end < kCount && tables < group.kTables; ++end) {
      if (lookups[end].space.count <= 0 || lookups[end].space.words <= 0) continue;
      ++tables;
      words = lookups[end].space.words > words ? lookups[end].space.words : words;
    }
    LaunchConfig config = detail::gather_config(words);
    int64_t blocks = 0;
    for (; at < end; ++at) {
      const Lookup<kRank, T, Id>& one = lookups[at];
      if (one.space.count <= 0 || one.space.words <= 0) continue;
      group.tables[group.count] = one;
      group.first[group.count++] = static_cast<int>(blocks);
      blocks += ceil_div(one.space.count, config.block.y, 1 << 20);
    }
    if (group.count == 0) continue;
    group.first[group.count] = static_cast<int>(blocks);
    config.grid = detail::gather_grid(config, blocks, words);
    if (const int32_t status = launch(ctx, config, gather_grouped_kernel<kRank, T, Id>, group)) return status;
  }
  return 0;
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_GATHER_CUH_
