/// @file copy_few.cuh
/// @brief Copies that turn a dim of few elements, as colours of pixels: a thread has all of them at a place, or at some neighbouring places.
#ifndef AIT_KERNELS_GPU_COPY_FEW_CUH_
#define AIT_KERNELS_GPU_COPY_FEW_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/copy_plan.h"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

namespace detail {

inline constexpr int kTileThreads = 256;

/// Rows or columns of a matrix that are few, so that a tile would be almost empty.
inline constexpr int kFew = 8;

/// @brief The dims of a copy of which one has up to kFew elements.
struct FewDims {
  int rank;  ///< of the outer dims
  const CopyDim* outer;
  CopyDim few, many;
};

/// The places of copies with one dim of `few` elements, up to kFew: a thread has some neighbours along the dim of `many`, and all of the few.
struct FewCopy {
  int rank;
  uint32_t total;
  CopyDim few, many, outer[kMaxCopyRank];
  Divider runs, sizes[kMaxCopyRank];  ///< runs of neighbours along `many`

  FewCopy(const FewDims& dims, int64_t run) : rank(dims.rank), few(dims.few), many(dims.many) {
    int64_t count = many.size / run;
    runs = Divider(static_cast<uint32_t>(count));
    for (int d = 0; d < rank; ++d) {
      outer[d] = dims.outer[d];
      sizes[d] = Divider(static_cast<uint32_t>(outer[d].size));
      count *= outer[d].size;
    }
    total = static_cast<uint32_t>(count);
  }
  /// @brief Where item `index` begins on both sides, in elements.
  __device__ __forceinline__ void begin(uint32_t index, int run, int64_t& from, int64_t& to) const {
    uint32_t linear = runs.divide(index);
    const int64_t place = static_cast<int64_t>(index - linear * runs.divisor) * run;
    from = place * many.in, to = place * many.out;
    for (int d = rank - 1; d >= 0; --d) {
      const uint32_t quotient = sizes[d].divide(linear);
      const int64_t coordinate = linear - quotient * sizes[d].divisor;
      from += coordinate * outer[d].in, to += coordinate * outer[d].out;
      linear = quotient;
    }
  }
};

/// A thread copies the few elements at a place. Neighbours access neighbouring memory on the side where that dim is contiguous, and the same lines on the
/// other side.
template <class Word>
__global__ void __launch_bounds__(kTileThreads) copy_few_kernel(FewCopy plan, const Word* in, Word* out) {
  wait_for_previous();
  allow_next();
  const uint32_t stride = gridDim.x * kTileThreads;
  for (uint32_t index = blockIdx.x * kTileThreads + threadIdx.x; index < plan.total; index += stride) {
    int64_t from, to;
    plan.begin(index, 1, from, to);
    Word words[kFew];
#pragma unroll
    for (int i = 0; i < kFew; ++i) {
      if (i < plan.few.size) words[i] = in[from + i * plan.few.in];
    }
#pragma unroll
    for (int i = 0; i < kFew; ++i) {
      if (i < plan.few.size) out[to + i * plan.few.out] = words[i];
    }
  }
}

/// Neighbours along the dim of many that a thread copies, so that their few elements fill words of 16 bytes.
template <class Word, int kCount>
inline constexpr int kMixedRun = kCount % 2 != 0 ? 16 / int(sizeof(Word)) : kCount * sizeof(Word) < 16 ? 16 / (kCount * int(sizeof(Word))) : 1;

/// The `kCount` elements at each place are contiguous on one side, as colours of pixels, and the places are on the other, as planes. A thread reads and
/// writes words on both sides.
/// @tparam kSplits whether the output is planes, else the input
template <class Word, int kCount, bool kSplits>
__global__ void __launch_bounds__(kTileThreads) copy_mixed_kernel(FewCopy plan, const Word* in, Word* out) {
  constexpr int kRun = kMixedRun<Word, kCount>;
  wait_for_previous();
  allow_next();
  const uint32_t stride = gridDim.x * kTileThreads;
  for (uint32_t index = blockIdx.x * kTileThreads + threadIdx.x; index < plan.total; index += stride) {
    int64_t from, to;
    plan.begin(index, kRun, from, to);
    Word mixed[kRun * kCount], planes[kCount][kRun];
    if constexpr (kSplits) {
      load<kRun * kCount>(in + from, mixed);
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) load<kRun>(in + from + i * plan.few.in, planes[i]);
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int j = 0; j < kRun; ++j) {
        if constexpr (kSplits) {
          planes[i][j] = mixed[j * kCount + i];
        } else {
          mixed[j * kCount + i] = planes[i][j];
        }
      }
    }
    if constexpr (kSplits) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) store<kRun>(out + to + i * plan.few.out, planes[i]);
    } else {
      store<kRun * kCount>(out + to, mixed);
    }
  }
}

inline LaunchConfig few_config(const FewCopy& plan) {
  LaunchConfig config;
  config.dependent = true;
  config.block = dim3(kTileThreads);
  config.grid = dim3(ceil_div(plan.total, kTileThreads, 1 << 20));
  return config;
}

/// @brief Copies with `kCount` elements at a place by words, if all words are aligned; sets `fits`.
template <class Word, int kCount>
int32_t launch_mixed(const Context& ctx, const FewDims& dims, const Word* in, Word* out, bool& fits) {
  constexpr int64_t kRun = kMixedRun<Word, kCount>, kSize = sizeof(Word), kPlane = kAccessBytes<Word, kRun>, kMixed = kAccessBytes<Word, kRun * kCount>;
  const CopyDim &few = dims.few, &many = dims.many;
  fits = false;
  if (few.size != kCount || many.size % kRun != 0) return 0;
  const bool splits = few.in == 1 && many.in == kCount && many.out == 1, joins = few.out == 1 && many.out == kCount && many.in == 1;
  if (!splits && !joins) return 0;
  const int64_t of_in = splits ? kMixed : kPlane, of_out = splits ? kPlane : kMixed;
  fits = reinterpret_cast<uintptr_t>(in) % of_in == 0 && reinterpret_cast<uintptr_t>(out) % of_out == 0;
  fits = fits && (splits ? few.out : few.in) * kSize % kPlane == 0;
  for (int d = 0; d < dims.rank; ++d) fits = fits && dims.outer[d].in * kSize % of_in == 0 && dims.outer[d].out * kSize % of_out == 0;
  if (!fits) return 0;
  const FewCopy copy(dims, kRun);
  const LaunchConfig config = few_config(copy);
  return launch(ctx, config, splits ? copy_mixed_kernel<Word, kCount, true> : copy_mixed_kernel<Word, kCount, false>, copy, in, out);
}

/// @brief Copies places of up to kFew elements; with `kLean` by no words, which need more kernels.
template <bool kLean, class Word>
int32_t launch_few(const Context& ctx, const FewDims& dims, const Word* in, Word* out) {
  if constexpr (!kLean && sizeof(Word) < 16) {
    bool fits = false;
    int32_t status = launch_mixed<Word, 2>(ctx, dims, in, out, fits);
    if (!fits) status = launch_mixed<Word, 3>(ctx, dims, in, out, fits);
    if (!fits) status = launch_mixed<Word, 4>(ctx, dims, in, out, fits);
    if (fits) return status;
  }
  const FewCopy copy(dims, 1);
  return launch(ctx, few_config(copy), copy_few_kernel<Word>, copy, in, out);
}

}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_COPY_FEW_CUH_
