/// @file copy_plan.h
/// @brief The loop nest of a copy between strided buffers, simplified at run time, when all sizes are known.
#ifndef AIT_KERNELS_COPY_PLAN_H_
#define AIT_KERNELS_COPY_PLAN_H_

#include <stddef.h>
#include <stdint.h>

#include "ait/model_abi.h"
#include "ait/types.h"

namespace ait {

inline constexpr int kMaxCopyRank = AIT_MAX_COPY_RANK;

/// @brief One dim of a copy: its size and the step of both sides, in elements.
struct CopyDim {
  int64_t size, in, out;
};

struct CopyPlan {
  int rank = 0;        ///< 0 for a single element
  bool empty = false;
  CopyDim dims[kMaxCopyRank];

  /// @brief The dim along which the input is contiguous and which is not the last, or -1.
  int input_unit_dim() const {
    for (int d = 0; d + 1 < rank; ++d) {
      if (dims[d].in == 1) return d;
    }
    return -1;
  }

  /// @brief The same copy of words: the elements of the last dim, which is contiguous on both sides, and by whose size the other strides are divisible.
  CopyPlan of_words() const {
    CopyPlan words = *this;
    const int64_t size = dims[--words.rank].size;
    for (int d = 0; d < words.rank; ++d) words.dims[d].in /= size, words.dims[d].out /= size;
    return words;
  }
};

/// @brief Drops dims of size 1, sorts the others so that the output is written in order, and merges dims through which both sides step as one.
template <size_t kRank>
CopyPlan plan_copy(const int64_t (&sizes)[kRank], const int64_t (&in)[kRank], const int64_t (&out)[kRank]) {
  static_assert(kRank <= kMaxCopyRank, "a copy has at most 16 dims");
  CopyPlan plan;
  for (size_t d = 0; d < kRank; ++d) {
    if (sizes[d] <= 0) plan.empty = true;
    if (sizes[d] == 1) continue;
    int at = plan.rank++;
    for (; at > 0 && plan.dims[at - 1].out < out[d]; --at) plan.dims[at] = plan.dims[at - 1];
    plan.dims[at] = {sizes[d], in[d], out[d]};
  }
  int kept = 0;
  for (int d = 0; d < plan.rank; ++d) {
    const CopyDim dim = plan.dims[d];
    CopyDim* last = kept > 0 ? &plan.dims[kept - 1] : nullptr;
    if (last != nullptr && last->in == dim.in * dim.size && last->out == dim.out * dim.size) {
      *last = {last->size * dim.size, dim.in, dim.out};
    } else {
      plan.dims[kept++] = dim;
    }
  }
  plan.rank = kept;
  return plan;
}

template <size_t kBytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using Type = uint8_t;
};
template <>
struct UnsignedOf<2> {
  using Type = uint16_t;
};
template <>
struct UnsignedOf<4> {
  using Type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using Type = uint64_t;
};

/// @brief One of several copies: elements of `kBytes` bytes from `in` to `out`.
template <size_t kBytes>
struct CopyPiece {
  const typename UnsignedOf<kBytes>::Type* in;
  typename UnsignedOf<kBytes>::Type* out;
  CopyPlan plan;

  int64_t elements() const {
    int64_t count = plan.empty ? 0 : 1;
    for (int d = 0; d < plan.rank; ++d) count *= plan.dims[d].size;
    return count;
  }
};

/// @brief The piece out[i, j, ...] = in[i, j, ...]; strides in elements.
template <class In, class Out, size_t kRank>
CopyPiece<sizeof(Out)> copy_piece(const int64_t (&sizes)[kRank], const In* in, const int64_t (&in_strides)[kRank], Out* out,
                                  const int64_t (&out_strides)[kRank]) {
  static_assert(sizeof(In) == sizeof(Out), "a copy keeps the size of elements");
  using Word = typename UnsignedOf<sizeof(Out)>::Type;
  return {reinterpret_cast<const Word*>(in), reinterpret_cast<Word*>(out), plan_copy(sizes, in_strides, out_strides)};
}

}  // namespace ait
#endif  // AIT_KERNELS_COPY_PLAN_H_
