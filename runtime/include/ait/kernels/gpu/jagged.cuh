/// @file jagged.cuh
/// @brief Bags of rows, and sequences laid end to end. Offsets are clamped to the data: nothing outside of it is read.
#ifndef AIT_KERNELS_GPU_JAGGED_CUH_
#define AIT_KERNELS_GPU_JAGGED_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/jagged.h"
#include "ait/math.h"

namespace ait::gpu {

/// A row of threads (threadIdx.y) computes one bag at a time, each thread `kVector` neighbouring columns.
template <Bag kKind, int kVector, class T, class Id, class Offset>
__global__ void __launch_bounds__(128)
    embedding_bag_kernel(BagSpace space, const T* table, const Id* ids, const Offset* offsets, const T* weights, T* out) {
  using C = compute_t<T>;
  wait_for_previous();
  allow_next();
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; i < space.bags;
       i += static_cast<int64_t>(gridDim.x) * blockDim.y) {
    const Span bag = bag_span(space, offsets, i);
    for (int64_t first = static_cast<int64_t>(threadIdx.x) * kVector; first < space.width; first += static_cast<int64_t>(blockDim.x) * kVector) {
      C sums[kVector] = {};
      int64_t kept = 0;
      bool known = true;
#pragma unroll 4
      for (int64_t j = bag.begin; j < bag.end; ++j) {
        const int64_t id = static_cast<int64_t>(ids[j]);
        const bool inside = id >= 0 && id < space.rows;
        known = known && inside;
        if (!inside || id == space.padding) continue;
        T row[kVector];
        load(table + id * space.table_stride + first, row);
        const C weight = weights == nullptr ? C(1) : static_cast<C>(weights[j]);
#pragma unroll
        for (int c = 0; c < kVector; ++c) {
          const C value = static_cast<C>(row[c]);
          if constexpr (kKind == Bag::max) {
            sums[c] = kept == 0 ? value : max(sums[c], value);
          } else {
            sums[c] += weight * value;
          }
        }
        ++kept;
      }
      const C count = kKind == Bag::mean && kept > 0 ? static_cast<C>(kept) : C(1);
      T results[kVector];
#pragma unroll
      for (int c = 0; c < kVector; ++c) results[c] = convert<T>(known ? (kKind == Bag::mean ? sums[c] / count : sums[c]) : C(NAN));
      store(out + i * space.out_stride + first, results);
    }
  }
}

/// Each thread copies words; neighbouring threads copy neighbouring words of a row.
template <int kLevels, class Offset, class Word>
__global__ void __launch_bounds__(256) jagged_pad_kernel(JaggedSpace<kLevels, Offset> space, int64_t width, const Word* x, Word fill, Word* out) {
  wait_for_previous();
  allow_next();
  const int64_t places = space.places();
  for (int64_t place = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; place < places;
       place += static_cast<int64_t>(gridDim.x) * blockDim.y) {
    const int64_t row = space.row_at(place);
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x) out[place * width + c] = row < 0 ? fill : x[row * width + c];
  }
}

/// The inverse: each row finds its place by bisection.
template <int kLevels, class Offset, class Word>
__global__ void __launch_bounds__(256)
    jagged_unpad_kernel(JaggedSpace<kLevels, Offset> space, int64_t width, const Word* x, bool partial, Word* out) {
  wait_for_previous();
  allow_next();
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; row < space.total;
       row += static_cast<int64_t>(gridDim.x) * blockDim.y) {
    const int64_t place = space.place_of(row);
    if (partial && place < 0) continue;
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x) out[row * width + c] = place < 0 ? Word{} : x[place * width + c];
  }
}

/// A row of threads computes one head of a sequence at a time, each thread `kVector` neighbouring columns.
template <int kVector, class Offset, class T>
__global__ void __launch_bounds__(128) jagged_vector_product_kernel(JaggedSpace<1, Offset> space, int64_t heads, int64_t width, const T* vectors,
                                                                    const T* matrices, T* out) {
  using C = compute_t<T>;
  wait_for_previous();
  allow_next();
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; i < space.sequences[0] * heads;
       i += static_cast<int64_t>(gridDim.x) * blockDim.y) {
    Span rows = space.span(0, i / heads);
    if (rows.end - rows.begin > space.longest[0]) rows.end = rows.begin + space.longest[0];
    const T* vector = vectors + i * space.longest[0];
    for (int64_t first = static_cast<int64_t>(threadIdx.x) * kVector; first < width; first += static_cast<int64_t>(blockDim.x) * kVector) {
      C sums[kVector] = {};
#pragma unroll 4
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        T values[kVector];
        load(matrices + (row * heads + i % heads) * width + first, values);
        const C factor = static_cast<C>(vector[row - rows.begin]);
#pragma unroll
        for (int c = 0; c < kVector; ++c) sums[c] += factor * static_cast<C>(values[c]);
      }
      T results[kVector];
#pragma unroll
      for (int c = 0; c < kVector; ++c) results[c] = convert<T>(sums[c]);
      store(out + i * width + first, results);
    }
  }
}

namespace detail {
/// The shape of a block: rows of as many threads as `words` needs, at most `most`.
inline LaunchConfig rows_of_threads(int64_t rows, int64_t words, uint32_t threads, uint32_t most) {
  LaunchConfig config;
  uint32_t lanes = 8;
  while (lanes < most && lanes < words) lanes *= 2;
  config.block = dim3(lanes, threads / lanes);
  config.grid = dim3(ceil_div(rows, config.block.y, 1 << 20));
  config.dependent = true;
  return config;
}

template <Bag kKind, int kVector, class T, class Id, class Offset>
int32_t launch_bag(const Context& ctx, const BagSpace& space, const T* table, const Id* ids, const Offset* offsets, const T* weights, T* out) {
  const LaunchConfig config = rows_of_threads(space.bags, space.width / kVector, 128, 128);
  return launch(ctx, config, embedding_bag_kernel<kKind, kVector, T, Id, Offset>, space, table, ids, offsets, weights, out);
}

template <class Word, class T>
Word filled(T value) {
  T values[sizeof(Word) / sizeof(T)];
  for (T& one : values) one = value;
  Word word;
  copy_bytes(&word, &values, sizeof word);
  return word;
}

template <class Word, int kLevels, class Offset, class T>
int32_t launch_pad(const Context& ctx, const JaggedSpace<kLevels, Offset>& space, int64_t width, const T* x, T fill, T* out) {
  const int64_t words = width / static_cast<int64_t>(sizeof(Word) / sizeof(T));
  const LaunchConfig config = rows_of_threads(space.places(), words, 256, 256);
  return launch(ctx, config, jagged_pad_kernel<kLevels, Offset, Word>, space, words, reinterpret_cast<const Word*>(x), filled<Word>(fill),
                reinterpret_cast<Word*>(out));
}

template <class Word, int kLevels, class Offset, class T>
int32_t launch_unpad(const Context& ctx, const JaggedSpace<kLevels, Offset>& space, int64_t width, const T* x, bool partial, T* out) {
  const int64_t words = width / static_cast<int64_t>(sizeof(Word) / sizeof(T));
  const LaunchConfig config = rows_of_threads(space.total, words, 256, 256);
  return launch(ctx, config, jagged_unpad_kernel<kLevels, Offset, Word>, space, words, reinterpret_cast<const Word*>(x), partial,
                reinterpret_cast<Word*>(out));
}

template <int kVector, class Offset, class T>
int32_t launch_product(const Context& ctx, const JaggedSpace<1, Offset>& space, int64_t heads, int64_t width, const T* vectors,
                       const T* matrices, T* out) {
  const LaunchConfig config = rows_of_threads(space.sequences[0] * heads, width / kVector, 128, 128);
  return launch(ctx, config, jagged_vector_product_kernel<kVector, Offset, T>, space, heads, width, vectors, matrices, out);
}

/// Whether the rows of both tensors begin on 16 bytes.
template <class T>
bool whole_words(const T* a, const T* b, int64_t stride, int64_t other) {
  return (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) | static_cast<uintptr_t>((stride | other) * static_cast<int64_t>(sizeof(T)))) %
             16 ==
         0;
}
}  // namespace detail

/// @brief out[i, :] = the sum, mean or maximum of the rows of the table for the ids of bag i.
///
/// Rows are contiguous on both sides. `weights` (one for each id) may be null. The result for a bag with an id outside of the table is NaN.
template <Bag kKind, class T, class Id, class Offset>
int32_t embedding_bag(const Context& ctx, const BagSpace& space, const T* table, const Id* ids, const Offset* offsets, const T* weights, T* out) {
  if (space.bags <= 0 || space.width <= 0) return 0;
  constexpr int kVector = 16 / sizeof(T);
  if (space.width % kVector == 0 && detail::whole_words(table, out, space.table_stride, space.out_stride)) {
    return detail::launch_bag<kKind, kVector>(ctx, space, table, ids, offsets, weights, out);
  }
  return detail::launch_bag<kKind, 1>(ctx, space, table, ids, offsets, weights, out);
}

/// @brief out[place, :] = x[row, :] for each place of the padded form, or `value` if the sequence is shorter. Both are row-major.
template <int kLevels, class Offset, class T>
int32_t jagged_pad(const Context& ctx, const char*, const JaggedSpace<kLevels, Offset>& space, int64_t width, const T* x, double value, T* out) {
  if (space.places() <= 0 || width <= 0) return 0;
  const T fill = cast<T>(value);
  if (detail::whole_words(x, out, width, width)) return detail::launch_pad<uint4>(ctx, space, width, x, fill, out);
  return detail::launch_pad<word_t<sizeof(T)>>(ctx, space, width, x, fill, out);
}

/// @brief out[row, :] = x[place, :]; rows that belong to no sequence are 0, or not written if `partial`. Both are row-major.
template <int kLevels, class Offset, class T>
int32_t jagged_unpad(const Context& ctx, const char*, const JaggedSpace<kLevels, Offset>& space, int64_t width, const T* x, T* out,
                     bool partial = false) {
  if (space.total <= 0 || width <= 0) return 0;
  if (detail::whole_words(x, out, width, width)) return detail::launch_unpad<uint4>(ctx, space, width, x, partial, out);
  return detail::launch_unpad<word_t<sizeof(T)>>(ctx, space, width, x, partial, out);
}

/// @brief out[b, h, :] = the sum over the rows i of sequence b of vectors[b, h, i] * matrices[row, h, :]. All are row-major.
template <class Offset, class T>
int32_t jagged_vector_product(const Context& ctx, const char*, const JaggedSpace<1, Offset>& space, int64_t heads, int64_t width, const T* vectors,
                              const T* matrices, T* out) {
  if (space.sequences[0] * heads <= 0 || width <= 0) return 0;
  constexpr int kVector = 16 / sizeof(T);
  if (detail::whole_words(matrices, out, width, width)) return detail::launch_product<kVector>(ctx, space, heads, width, vectors, matrices, out);
  return detail::launch_product<1>(ctx, space, heads, width, vectors, matrices, out);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_JAGGED_CUH_
