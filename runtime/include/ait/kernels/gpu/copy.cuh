/// @file copy.cuh
/// @brief Copies between strided buffers: permute, slice, concat, expand; in accesses of 16 bytes wherever rows are contiguous on both sides.
#ifndef AIT_KERNELS_GPU_COPY_CUH_
#define AIT_KERNELS_GPU_COPY_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/copy_plan.h"
#include "ait/kernels/gpu/copy_rows.cuh"
#include "ait/kernels/gpu/copy_tiled.cuh"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

namespace detail {

/// A copy of words, the strides in words.
template <bool kWide>
struct StridedCopy {
  int rank;
  int64_t words;
  CopyDim dims[kMaxCopyRank];
  Divider sizes[kMaxCopyRank];

  /// The plan with its last dim counted in words of `factor` elements, the other strides divided by it.
  StridedCopy(const CopyPlan& plan, int64_t factor) : rank(plan.rank), words(1) {
    for (int d = 0; d < rank; ++d) {
      const bool inner = d == rank - 1;
      const CopyDim dim = plan.dims[d];
      dims[d] = factor == 1 ? dim : CopyDim{inner ? dim.size / factor : dim.size, inner ? 1 : dim.in / factor, inner ? 1 : dim.out / factor};
      words *= dims[d].size;
      if constexpr (!kWide) sizes[d] = Divider(static_cast<uint32_t>(dims[d].size));
    }
  }
};

template <class Word, bool kWide>
__global__ void copy_strided_kernel(StridedCopy<kWide> plan, const Word* in, Word* out) {
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t word = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; word < plan.words; word += stride) {
    int64_t from = 0, to = 0;
    if constexpr (kWide) {
      int64_t linear = word;
      for (int d = plan.rank - 1; d >= 0; --d) {
        const int64_t quotient = linear / plan.dims[d].size;
        const int64_t coordinate = linear - quotient * plan.dims[d].size;
        from += coordinate * plan.dims[d].in;
        to += coordinate * plan.dims[d].out;
        linear = quotient;
      }
    } else {
      uint32_t linear = static_cast<uint32_t>(word);
      for (int d = plan.rank - 1; d > 0; --d) {
        const uint32_t quotient = plan.sizes[d].divide(linear);
        const int64_t coordinate = linear - quotient * plan.sizes[d].divisor;
        from += coordinate * plan.dims[d].in;
        to += coordinate * plan.dims[d].out;
        linear = quotient;
      }
      from += linear * plan.dims[0].in;
      to += linear * plan.dims[0].out;
    }
    out[to] = in[from];
  }
}

template <class Word, bool kWide = false>
int32_t launch_strided(const Context& ctx, const CopyPlan& plan, int64_t factor, const void* in, void* out) {
  const StridedCopy<kWide> strided(plan, factor);
  LaunchConfig config;
  config.block = dim3(strided.words >= 65536 ? 256 : 128);
  config.grid = dim3(ceil_div(strided.words, config.block.x, 1 << 20));
  config.dependent = true;
  return launch(ctx, config, copy_strided_kernel<Word, kWide>, strided, static_cast<const Word*>(in), static_cast<Word*>(out));
}

/// The widest access, in bytes, that both sides allow along a contiguous last dim.
inline int64_t access_bytes(const CopyPlan& plan, int64_t element, const void* in, const void* out) {
  uintptr_t bits = reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(out) | 16;
  for (int d = 0; d < plan.rank; ++d) {
    const CopyDim& dim = plan.dims[d];
    if (d == plan.rank - 1) {
      if (dim.in != 1 || dim.out != 1) return element;
      bits |= static_cast<uintptr_t>(dim.size * element);
    } else {
      bits |= static_cast<uintptr_t>(dim.in * element) | static_cast<uintptr_t>(dim.out * element);
    }
  }
  return static_cast<int64_t>(bits & (~bits + 1));  // the lowest bit
}

/// @brief Turns tiles of words, if words of a whole last dim lie along a dim of the input and along another of the output; sets `fits`. Read in the order of
/// the output, words that lie apart would each cost a sector of 32 bytes.
template <class Word>
int32_t launch_words(const Context& ctx, const CopyPlan& plan, const void* in, void* out, bool& fits) {
  const CopyPlan words = plan.of_words();
  const int unit = words.input_unit_dim();
  fits = unit >= 0 && words.dims[words.rank - 1].out == 1 && words.dims[words.rank - 1].size > kFew && words.dims[unit].size > kFew;
  if (!fits) return 0;
  TiledCopy tiled(words, unit);
  return launch_tiles(ctx, tiled, static_cast<const Word*>(in), static_cast<Word*>(out));
}
}  // namespace detail

/// @brief The copy of one piece, of fewer than 2^31 elements if it is `kLean`: then it has half the kernels, which compile in half the time, and only
/// short rows and columns off boundaries of 16 bytes take longer.
template <bool kLean = false, size_t kBytes>
int32_t copy(const Context& ctx, const CopyPiece<kBytes>& piece) {
  using Element = word_t<kBytes>;
  constexpr int64_t kElement = kBytes;
  CopyPlan plan = piece.plan;
  const void* const in = piece.in;
  void* const out = piece.out;
  if (plan.empty) return 0;
  if (plan.rank == 0) plan.dims[plan.rank++] = {1, 1, 1};
  const int64_t elements = piece.elements();
  if constexpr (!kLean) {
    if (elements >= int64_t(1) << 31) return detail::launch_strided<Element, true>(ctx, plan, 1, in, out);
  }
  const CopyDim& inner = plan.dims[plan.rank - 1];
  const int unit = plan.input_unit_dim();
  if (inner.out == 1 && inner.in != 1 && inner.in != 0 && unit >= 0) return detail::launch_tiled<Element, kLean>(ctx, plan, unit, in, out);
  const int64_t bytes = detail::access_bytes(plan, kElement, in, out);
  if constexpr (kElement < 16) {
    const bool rows = bytes < 16 && inner.in == 1 && inner.out == 1 && inner.size * kElement >= detail::kShortRow;
    if (rows) return detail::launch_rows<Element>(ctx, plan, elements / inner.size, in, out);
  }
  if constexpr (!kLean && kElement < 16) {
    const int64_t last = inner.size * kElement;
    bool fits = false;
    int32_t status = 0;
    if (plan.rank > 2 && inner.size > 1 && inner.in == 1 && inner.out == 1 && bytes >= last) {
      if constexpr (kElement < 4) {
        if (last == 4) status = detail::launch_words<uint32_t>(ctx, plan, in, out, fits);
      }
      if constexpr (kElement < 8) {
        if (last == 8) status = detail::launch_words<uint2>(ctx, plan, in, out, fits);
      }
      if (last == 16) status = detail::launch_words<uint4>(ctx, plan, in, out, fits);
    }
    if (fits) return status;
  }
  if (bytes >= 16) return detail::launch_strided<uint4>(ctx, plan, 16 / kElement, in, out);
  if constexpr (!kLean) {
    if (bytes >= 8 && kElement < 8) return detail::launch_strided<uint2>(ctx, plan, 8 / kElement, in, out);
    if (bytes >= 4 && kElement < 4) return detail::launch_strided<uint32_t>(ctx, plan, 4 / kElement, in, out);
  }
  return detail::launch_strided<Element>(ctx, plan, 1, in, out);
}

/// @brief out[i, j, ...] = in[i, j, ...], bit for bit; strides in elements, 0 in the input where it is broadcast.
template <class T, size_t kRank>
int32_t copy(const Context& ctx, const int64_t (&sizes)[kRank], const T* in, const int64_t (&in_strides)[kRank], T* out,
             const int64_t (&out_strides)[kRank]) {
  return copy(ctx, copy_piece(sizes, in, in_strides, out, out_strides));
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_COPY_CUH_
