/// @file row_read.cuh
/// @brief Where rows lie, where they are cut, and how the chunks of an operand are read.
#ifndef AIT_KERNELS_GPU_ROW_READ_CUH_
#define AIT_KERNELS_GPU_ROW_READ_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"

namespace ait::gpu {

/// @brief The iteration space of a row kernel: the sizes of the dims outside of the row, and of those that form it.
template <int kOuter, int kRowRank>
struct RowSpace {
  int64_t outer[kOuter];
  int64_t row[kRowRank];
  int64_t rows, length;
};

namespace detail {
/// Where element `i` of the row is, from its first.
template <int kRowRank, class Op>
__device__ __forceinline__ int64_t row_offset(const Op& operand, int64_t i, const int64_t (&sizes)[kRowRank]) {
  if constexpr (kRowRank == 1) {
    return Op::kInner == Inner::zero ? 0 : Op::kInner == Inner::unit ? i : i * operand.strides[Op::kRank - 1];
  } else {
    int64_t offset = 0;
#pragma unroll
    for (int d = kRowRank - 1; d > 0; --d) {
      const int64_t quotient = i / sizes[d];
      offset += (i - quotient * sizes[d]) * operand.strides[Op::kRank - kRowRank + d];
      i = quotient;
    }
    return offset + i * operand.strides[Op::kRank - kRowRank];
  }
}

/// The operand, moved to the row with these outer coordinates.
template <int kOuter, class Op>
__device__ __forceinline__ Op at_row(Op operand, const int64_t (&coordinate)[kOuter]) {
#pragma unroll
  for (int d = 0; d < kOuter; ++d) operand.data += coordinate[d] * operand.strides[d];
  return operand;
}

/// All operands, moved to the row with these outer coordinates.
template <int kOuter, class... Ops, size_t... I>
__device__ __forceinline__ Pack<Ops...> all_at_row(const Pack<Ops...>& operands, const int64_t (&coordinate)[kOuter], std::index_sequence<I...>) {
  return pack(at_row(get<I>(operands), coordinate)...);
}

/// Held in shared memory, not in registers; and not held, but read again for each pass.
inline constexpr int kInShared = -1, kReadAgain = 0;

/// How rows lie: chunks of 16 bytes in all operands; cut at the boundaries of the first result, which are those of all operands; or of some.
enum class Cut { whole, same, mixed };

/// What is known of a launch at compile time: nothing, that every lane has all of its chunks, or that, and that rows are few.
enum class Few { unknown, chunks, rows };

/// Rows are cut so that the first access of a group begins at a boundary of so many bytes of the first result: a line where a row has one operand,
/// a sector of memory where it has more, so that rows just above a power of two need no further chunk.
template <class Ins>
inline constexpr size_t kBoundary = Ins::kSize == 1 ? 128 : 32;

/// Chunks of so many bytes between two boundaries.
template <class Ins, size_t kChunkBytes, size_t kBoundaryOf = kBoundary<Ins>>
inline constexpr int kBoundaryChunks = kChunkBytes < kBoundaryOf ? static_cast<int>(kBoundaryOf / kChunkBytes) : 1;

/// Chunks that the threads of a row have to hold, where so many lie between two boundaries.
template <int kVec, Cut kCut>
constexpr int64_t chunks_of(int64_t length, int boundary_chunks) {
  if (kCut == Cut::whole) return (length + kVec - 1) / kVec;
  const int64_t inside = length < kVec ? 0 : (length - kVec) / kVec - 1;  // those at the ends are elements
  const int64_t chunks = inside + boundary_chunks - 1;
  return chunks < 1 ? 1 : chunks;
}
template <int kVec, Cut kCut, class Ins, class Out>
constexpr int64_t chunks_of(int64_t length) {
  return chunks_of<kVec, kCut>(length, kBoundaryChunks<Ins, sizeof(typename Out::Value) * kVec>);
}

/// What a thread has read of one operand for the neighbours of a chunk.
template <class Op, int kCount, Cut kCut>
struct RowRead {
  using T = typename Op::Value;
  static constexpr bool kByWords = Op::kInner == Inner::unit && sizeof(T) * kCount % 16 == 0;
  static constexpr bool kSplat = Op::kInner == Inner::zero;
  struct Elements {
    T v[kSplat ? 1 : kCount];
  };
  using Data = std::conditional_t<kByWords, Words<T, kByWords ? kCount : 16, kCut == Cut::mixed>, Elements>;
  Data data;

  /// Begins to read; where words are read, those around the elements exist, and the first element is `lead` elements behind the first word.
  __device__ __forceinline__ void read(const Op& operand, const T* from, int lead) {
    if constexpr (kByWords) {
      data.read_aligned(from - lead);
    } else if constexpr (kSplat) {
      data.v[0] = *from;
    } else {
#pragma unroll
      for (int j = 0; j < kCount; ++j) data.v[j] = from[Op::kInner == Inner::unit ? j : j * operand.strides[Op::kRank - 1]];
    }
  }
  __device__ __forceinline__ Elements elements(int lead) const {
    if constexpr (kByWords) {
      Elements result;
      data.elements_behind(static_cast<uint32_t>(lead) * static_cast<uint32_t>(sizeof(T)), result.v);
      return result;
    } else {
      return data;
    }
  }
};
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_ROW_READ_CUH_
