/// @file row.cuh
/// @brief Kernels that reduce over each row and keep its shape: softmax, layer_norm and rms_norm.
///
/// A row belongs to a group of threads, a warp or a block, that keeps it in registers, or in shared memory where it is longer: memory is read
/// once. Rows too long for that are read again for each pass. What is done with a row is a policy, written once for all. Accesses are of 16
/// bytes; rows that do not begin at such a boundary are cut at those of the result, and operands that lie differently are shifted.
#ifndef AIT_KERNELS_GPU_ROW_CUH_
#define AIT_KERNELS_GPU_ROW_CUH_

#include <math.h>
#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/gpu/multiprocessors.h"
#include "ait/kernels/gpu/row_bulk.cuh"
#include "ait/kernels/gpu/row_group.cuh"
#include "ait/kernels/gpu/row_policies.cuh"
#include "ait/kernels/gpu/row_ring.cuh"
#include "ait/kernels/gpu/row_split.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/math.h"

namespace ait::gpu {

/// Threads of a block whose warps have a row each.
inline constexpr int kWarpRowThreads = 128;

/// Fewer rows than this leave the card idle enough that the time of one row counts; with more, registers do.
inline constexpr int64_t kFewRows = 2048;

/// Threads of a multiprocessor with a chunk each that keep its memory busy. While a launch has fewer, a lane with two chunks only adds to the time of
/// its row; with more, it has twice the bytes on their way, and half the exchanges with other lanes. Measured with 2,048 to 32,768 rows of 128 f16.
inline constexpr int64_t kFillingThreads = 512;

/// Blocks that an SM should have room for, so that some wait for memory while others compute: a bound on registers. AMD counts otherwise.
template <int kGroup, int kItems, detail::Cut kCut, detail::Few kFew, class Ins>
constexpr int row_blocks() {
#if defined(AIT_HIP)
  return 1;
#else
  if (kItems == detail::kInShared) return kGroup <= 512 ? 2 : 1;
  // 32 warps have 64 registers, without spills, and 4096 rows are on the card at once: with 28 warps a tenth of them would come after the others.
  if (kGroup == kWarpSize && (kItems == 3 || kItems == 4) && kFew == detail::Few::chunks && Ins::kSize == 1) return 8;
  if (kGroup <= kWarpSize || kItems <= 0 || kItems > 2) return 1;  // these would spill
  constexpr int kThreads = kCut == detail::Cut::whole ? 1024 : kCut == detail::Cut::same ? 768 : 512;
  return kGroup < kThreads ? kThreads / kGroup : 1;
#endif
}

template <class F, int kGroup, int kItems, int kVec, detail::Cut kCut, detail::Few kFew, int kOuter, int kRowRank, class Policy, class Ins, class Outs>
__global__ void __launch_bounds__(kGroup > kWarpSize ? kGroup : kWarpRowThreads, (row_blocks<kGroup, kItems, kCut, kFew, Ins>()))
    row_kernel(RowSpace<kOuter, kRowRank> space, int pitch, Ins ins, Outs outs, Policy policy) {
  using R = detail::Row<F, kGroup, kItems, kVec, kCut, kFew, kRowRank, Ins, Outs>;
  // Lanes of a warp take part in each other's shuffles, so a warp walks on as one; groups behind the last row hold nothing.
  constexpr int kSpan = kGroup < kWarpSize ? kWarpSize : kGroup;
  constexpr int kRowsOfSpan = kSpan / kGroup;
  const int64_t rows_of_block = blockDim.x / kGroup;
  __shared__ typename R::C shared[R::Reducer::kShared];
  R row;
  for (int d = 0; d < kRowRank; ++d) row.sizes[d] = space.row[d];
  row.lane = threadIdx.x % kGroup;
  row.reducer.shared = shared;
  if constexpr (kItems == detail::kInShared) {
    AIT_DYNAMIC_SHARED(16, row_shared);
    row.shared = reinterpret_cast<uint4*>(row_shared);
    row.pitch = pitch;
  }
  typename Policy::template Early<R> early;
  if constexpr (R::kEarly) {
    allow_next();  // the launch after this one waits for it, which waits for the one before
    row.cut(static_cast<typename R::Index>(space.length));
    if constexpr (Policy::kConstant) policy.read_early(row, early);
    wait_for_previous();
    if constexpr (!Policy::kConstant) policy.read_early(row, early);
  } else {
    wait_for_previous();
    allow_next();
  }
  for (int64_t base = blockIdx.x * rows_of_block + threadIdx.x / kSpan * kRowsOfSpan; base < space.rows; base += gridDim.x * rows_of_block) {
    const int64_t index = base + threadIdx.x % kSpan / kGroup;
    const bool present = index < space.rows;
    int64_t coordinate[kOuter];
    coordinates<kOuter>(present ? index : base, space.outer, coordinate);
    row.move(ins, outs, coordinate, std::make_index_sequence<Ins::kSize>{}, std::make_index_sequence<Outs::kSize>{});
    row.cut(present ? static_cast<typename R::Index>(space.length) : 0);
    row.load();
    policy(row, early, detail::all_at_row(policy.extras, coordinate, typename Policy::Extras::Indices{}));
  }
}

namespace detail {
template <class Outs>
using FirstOf = std::decay_t<decltype(get<0>(std::declval<Outs&>()))>;

/// `kMany`: rows are not few.
template <class F, int kGroup, int kItems, int kVec, Cut kCut, bool kFull = false, bool kMany = false, int kOuter, int kRowRank, class Policy,
          class Ins, class Outs>
int32_t launch_group(const Context& ctx, const RowSpace<kOuter, kRowRank>& space, const Ins& ins, const Outs& outs, const Policy& policy) {
  constexpr bool kWarpRows = kGroup <= kWarpSize;
  LaunchConfig config;
  const int threads = !kWarpRows ? kGroup : space.rows * kGroup < 64 * kWarpRowThreads ? kWarpSize : kWarpRowThreads;
  config.block = dim3(static_cast<uint32_t>(threads));
  config.grid = dim3(ceil_div(space.rows, threads / kGroup, 1 << 20));
  config.dependent = true;
  int pitch = 0;
  if constexpr (kItems == kInShared) {
    using R = Row<F, kGroup, kItems, kVec, kCut, Few::unknown, kRowRank, Ins, Outs>;
    pitch = static_cast<int>(chunks_of<kVec, kCut, Ins, FirstOf<Outs>>(space.length));
    config.shared_bytes = static_cast<uint32_t>(pitch * sizeof(typename R::Held));
  }
  const auto with = [&](auto few) {
    return launch(ctx, config, row_kernel<F, kGroup, kItems, kVec, kCut, decltype(few)::value, kOuter, kRowRank, Policy, Ins, Outs>, space, pitch, ins,
                  outs, policy);
  };
  if constexpr (kFull && !kMany && Policy::kHasEarly && kGroup * kItems <= 512) {
    if (space.rows < kFewRows) return with(std::integral_constant<Few, Few::rows>{});
  }
  return with(std::integral_constant<Few, kFull ? Few::chunks : Few::unknown>{});
}

/// Rows that no registers hold: in shared memory where they fit.
template <class F, int kVec, Cut kCut, int kOuter, int kRowRank, class Policy, class Ins, class Outs>
int32_t launch_long(const Context& ctx, const RowSpace<kOuter, kRowRank>& space, const Ins& ins, const Outs& outs, const Policy& policy) {
  using R = Row<F, kWarpSize, kInShared, kVec, kCut, Few::unknown, kRowRank, Ins, Outs>;
  if constexpr (sizeof(typename R::Held) % 16 == 0) {
    constexpr int64_t kReserved = 2048;  // what the reductions need, and what the system takes of each block
    const int64_t bytes = chunks_of<kVec, kCut, Ins, FirstOf<Outs>>(space.length) * static_cast<int64_t>(sizeof(typename R::Held)) + kReserved;
    const int64_t limit = shared_limit();
    if (2 * bytes <= limit) return launch_group<F, 512, kInShared, kVec, kCut>(ctx, space, ins, outs, policy);
    if (bytes <= limit) return launch_group<F, 1024, kInShared, kVec, kCut>(ctx, space, ins, outs, policy);
  }
  return launch_group<F, 512, kReadAgain, kVec, kCut>(ctx, space, ins, outs, policy);
}

/// The smallest multiple of the warp that is no smaller.
constexpr int whole_warps(int64_t threads) { return static_cast<int>((threads + kWarpSize - 1) / kWarpSize * kWarpSize); }

/// Chooses the group by the length of the row in chunks of `kVec`; only groups that some length from `kLow` to `kHigh` needs are compiled.
template <class F, int kVec, Cut kCut, int64_t kLow, int64_t kHigh, int kOuter, int kRowRank, class Policy, class Ins, class Outs>
int32_t launch_length(const Context& ctx, const RowSpace<kOuter, kRowRank>& space, const Ins& ins, const Outs& outs, const Policy& policy) {
  const int64_t chunks = chunks_of<kVec, kCut, Ins, FirstOf<Outs>>(space.length);
  constexpr int64_t kFewest = chunks_of<kVec, kCut, Ins, FirstOf<Outs>>(kLow), kMost = chunks_of<kVec, kCut, Ins, FirstOf<Outs>>(kHigh);
  if constexpr (kFewest == kMost && kMost > 4 * kWarpSize && kMost <= 2048) {  // one length: as many threads as it needs
    constexpr int kItems = kMost <= 512 ? 2 : kMost <= 768 ? 3 : 4;
    constexpr int kGroup = whole_warps((kMost + kItems - 1) / kItems);
    constexpr bool kFull = kCut == Cut::whole && kLow == kHigh && kMost == kGroup * kItems;
    return launch_group<F, kGroup, kItems, kVec, kCut, kFull>(ctx, space, ins, outs, policy);
  } else {
    constexpr bool kOneLength = kLow == kHigh;
    constexpr int64_t kTwoFrom = kOneLength ? 1 : 8;
    constexpr bool kTwo = kVec > 1 && kMost > kTwoFrom && kFewest <= 32;
#define AIT_ROW_GROUP(FROM, GROUP, ITEMS, MANY)                                                                                         \
  if constexpr (kMost > (FROM) && kFewest <= static_cast<int64_t>(GROUP) * (ITEMS)) {                                                   \
    constexpr bool kFull = kCut == Cut::whole && kOneLength && kMost == (GROUP) * (ITEMS);                                              \
    if (chunks <= (GROUP) * (ITEMS)) return launch_group<F, GROUP, ITEMS, kVec, kCut, kFull, MANY>(ctx, space, ins, outs, policy);      \
  }
    if constexpr (kTwo) {
      if (chunks > kTwoFrom && space.rows * chunks > multiprocessors() * kFillingThreads) {
        if constexpr (kOneLength) {
          AIT_ROW_GROUP(1, 1, 2, true)
          AIT_ROW_GROUP(2, 2, 2, true)
          AIT_ROW_GROUP(4, 4, 2, true)
        }
        AIT_ROW_GROUP(8, 8, 2, true)
        AIT_ROW_GROUP(16, 16, 2, true)
      }
    }
    if constexpr (kOneLength) {  // no lane without a chunk: the others have the more bytes on their way
      AIT_ROW_GROUP(0, 1, 1, false)
      AIT_ROW_GROUP(1, 2, 1, false)
      AIT_ROW_GROUP(2, 4, 1, false)
    }
    if constexpr (kVec > 1 || kOneLength) {
      AIT_ROW_GROUP(kOneLength ? 4 : 0, 8, 1, false)
      if constexpr (kOneLength || !kTwo) {  // else a warp does for so few rows, which is compiled anyway
        AIT_ROW_GROUP(8, 16, 1, false)
      }
      AIT_ROW_GROUP(16, 32, 1, false)
    }
    AIT_ROW_GROUP(kOneLength ? 32 : 0, kWarpSize, 1, false)
    AIT_ROW_GROUP(kWarpSize, kWarpSize, 2, false)
    AIT_ROW_GROUP(2 * kWarpSize, kWarpSize, 3, false)
    AIT_ROW_GROUP(3 * kWarpSize, kWarpSize, 4, false)
    AIT_ROW_GROUP(4 * kWarpSize, 256, 2, false)
    AIT_ROW_GROUP(512, 256, 4, false)
    AIT_ROW_GROUP(1024, 512, 4, false)
#undef AIT_ROW_GROUP
    if constexpr (kMost > 2048) return launch_long<F, kVec, kCut>(ctx, space, ins, outs, policy);
    return ctx.fail("a row is longer than its dims allow");
  }
}

/// Where the rows of an operand begin, in elements behind boundaries of `kVec`: of the first row, and how this changes along each dim.
template <int kVec, int kOuter>
struct Boundaries {
  int64_t first = -1;
  int64_t steps[kOuter];
  bool same = true;  ///< for all operands so far

  template <class Op>
  void add(const Op& operand) {
    if constexpr (Op::kInner != Inner::zero) {
      if (Op::kInner == Inner::strided || sizeof(typename Op::Value) * kVec % 16 != 0) {
        same = false;
        return;
      }
      const bool begun = first >= 0;
      const int64_t own = static_cast<int64_t>(reinterpret_cast<uintptr_t>(operand.data) / sizeof(typename Op::Value) % kVec);
      same = same && (!begun || own == first);
      first = own;
      for (int d = 0; d < kOuter; ++d) {
        const int64_t step = (operand.strides[d] % kVec + kVec) % kVec;
        same = same && (!begun || step == steps[d]);
        steps[d] = step;
      }
    }
  }
};

/// As launch_length, but split, by bulk copies or through a ring where rows are of one length, and but for the first many.
template <class F, int kVec, Cut kCut, int64_t kLow, int64_t kHigh, int kOuter, class Policy, class Ins, class Outs>
int32_t launch_many(const Context& ctx, const RowSpace<kOuter, 1>& space, const Ins& ins, const Outs& outs, const Policy& policy) {
#if defined(AIT_CUDA)
  bool done = false;
  if constexpr (kLow == kHigh && kOuter <= 1 && kVec > 1 && kCut == Cut::whole && std::is_same<Policy, Softmax>::value) {
    const int32_t status = launch_split<kVec, kHigh>(ctx, space.rows, get<0>(ins), get<0>(outs), policy, done);
    if (done) return status;
  }
  if constexpr (kLow == kHigh && kOuter == 1 && kVec > 1 && Policy::kPlain) {
    int32_t status = launch_bulk<F, kVec, kCut, kHigh>(ctx, space.rows, ins, typename Ins::Indices{}, outs, typename Outs::Indices{}, policy, done);
    if (!done) status = launch_ring<F, kVec, kCut, kHigh>(ctx, space.rows, ins, typename Ins::Indices{}, outs, typename Outs::Indices{}, policy, done);
    if (done) return status;
  }
#endif
  return launch_length<F, kVec, kCut, kLow, kHigh>(ctx, space, ins, outs, policy);
}

/// Chooses how rows are cut. `kStep` is known to divide the length.
template <class F, int kRowRank, int64_t kLow, int64_t kHigh, int kStep, size_t kRank, class Policy, class... Ins, size_t... I, class... Outs,
          size_t... O>
int32_t launch_rows(const Context& ctx, const int64_t (&sizes)[kRank], const Pack<Ins...>& ins, std::index_sequence<I...>,
                    const Pack<Outs...>& outs, std::index_sequence<O...>, const Policy& policy) {
  constexpr int kOuter = static_cast<int>(kRank) - kRowRank;
  RowSpace<kOuter, kRowRank> space;
  space.rows = space.length = 1;
  for (int d = 0; d < kOuter; ++d) space.rows *= space.outer[d] = sizes[d];
  for (int d = 0; d < kRowRank; ++d) space.length *= space.row[d] = sizes[kOuter + d];
  if (space.rows <= 0 || space.length <= 0) return 0;
  constexpr int kVec = vector_width<Ins..., Outs...>();
  if constexpr (kRowRank > 1) {
    return launch_length<F, 1, Cut::whole, kLow, kHigh>(ctx, space, ins, outs, policy);
  } else {
    if constexpr (!(kLow == kHigh && kLow % kVec != 0)) {
      const bool aligned = (may_access<kVec>(get<I>(ins)) && ... && true) && (may_access<kVec>(get<O>(outs)) && ... && true) &&
                           policy.template may_access<kVec>();
      if (aligned && space.length % kVec == 0) return launch_many<F, kVec, Cut::whole, kLow, kHigh>(ctx, space, ins, outs, policy);
    }
    if constexpr (kStep % kVec == 0 && kLow != kHigh) {
      return launch_long<F, kVec, Cut::mixed>(ctx, space, ins, outs, policy);  // misaligned buffers only
    } else {
      if constexpr (kStep % kVec != 0) {
        Boundaries<kVec, kOuter> boundaries;
        (boundaries.add(get<I>(ins)), ...);
        (boundaries.add(get<O>(outs)), ...);
        if (boundaries.same) return launch_many<F, kVec, Cut::same, kLow, kHigh>(ctx, space, ins, outs, policy);
      }
      return launch_length<F, kVec, Cut::mixed, kLow, kHigh>(ctx, space, ins, outs, policy);
    }
  }
}
}  // namespace detail

/// @brief Normalises the rows of s to mean 0 and variance 1, then scales and shifts them: out0 = (s - mean) / sqrt(variance + eps) * scale + bias.
///
/// `s` is the first result of F over the inputs; its further results are stored in the further outputs. The last `kRowRank` of the sizes are
/// the row, of `kLow` to `kHigh` elements, a multiple of `kStep`. `scale` and `bias` are contiguous rows, or null; `kConstant`:
/// nothing ever writes them. With an epilogue `E`, out0 is E of that and of the elements of `extras`.
template <class F, int kRowRank, int64_t kLow, int64_t kHigh, int kStep, bool kConstant, class E = void, size_t kRank, class... Ins, class... Outs,
          class S, class Extras = Pack<>>
int32_t layer_norm(const Context& ctx, const int64_t (&sizes)[kRank], const Pack<Ins...>& ins, const Pack<Outs...>& outs, const S* scale,
                   const S* bias, double eps, const Extras& extras = {}) {
  const RowNorm<S, true, kConstant, E, Extras> policy{scale, bias, eps, extras};
  return detail::launch_rows<F, kRowRank, kLow, kHigh, kStep>(ctx, sizes, ins, std::index_sequence_for<Ins...>{}, outs,
                                                              std::index_sequence_for<Outs...>{}, policy);
}

/// @brief Divides the rows of s by the root of their mean square: out0 = s / sqrt(mean(s^2) + eps) * scale + bias; otherwise as layer_norm. A negative
/// eps bounds the mean from below by -eps instead.
template <class F, int kRowRank, int64_t kLow, int64_t kHigh, int kStep, bool kConstant, class E = void, size_t kRank, class... Ins, class... Outs,
          class S, class Extras = Pack<>>
int32_t rms_norm(const Context& ctx, const int64_t (&sizes)[kRank], const Pack<Ins...>& ins, const Pack<Outs...>& outs, const S* scale,
                 const S* bias, double eps, const Extras& extras = {}) {
  const RowNorm<S, false, kConstant, E, Extras> policy{scale, bias, eps, extras};
  return detail::launch_rows<F, kRowRank, kLow, kHigh, kStep>(ctx, sizes, ins, std::index_sequence_for<Ins...>{}, outs,
                                                              std::index_sequence_for<Outs...>{}, policy);
}

// ---- softmax over a dim that is not the last --------------------------------------------------------------------------------------------

/// A thread has a row; neighbours have the rows beside it, so that accesses are side by side. Sums are compensated: they are long.
template <int kOuter, class In, class Out>
__global__ void softmax_columns_kernel(RowSpace<kOuter, 1> space, In in, Out out) {
  using C = typename In::Compute;
  using T = typename Out::Value;
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; index < space.rows; index += stride) {
    int64_t coordinate[kOuter];
    coordinates<kOuter>(index, space.outer, coordinate);
    const auto* from = detail::at_row(in, coordinate).data;
    T* to = detail::at_row(out, coordinate).data;
    const int64_t step_in = in.strides[kOuter], step_out = out.strides[kOuter];
    C top = -INFINITY;
#pragma unroll 4
    for (int64_t i = 0; i < space.length; ++i) {
      const C x = convert<C>(from[i * step_in]);
      top = x > top ? x : top;
    }
    C total = 0, lost = 0;
#pragma unroll 4
    for (int64_t i = 0; i < space.length; ++i) {
      const C term = ait::exp(convert<C>(from[i * step_in]) - top) - lost;
      const C next = total + term;
      lost = (next - total) - term;
      total = next;
    }
    const C inverse = C(1) / total;
#pragma unroll 4
    for (int64_t i = 0; i < space.length; ++i) to[i * step_out] = convert<T>(ait::exp(convert<C>(from[i * step_in]) - top) * inverse);
  }
}

/// @brief out = exp(in - max) / sum(exp(in - max)) along the last of the sizes, of `kLow` to `kHigh` elements, a multiple of `kStep`.
/// A row with NaN or +inf, or of -inf alone, becomes NaN.
template <int64_t kLow, int64_t kHigh, int kStep, size_t kRank, class In, class Out>
int32_t softmax(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, const Out& out) {
  static_assert(kRank >= 2, "the row and at least one dim around it");
  if constexpr (In::kInner == Inner::unit && Out::kInner == Inner::unit) {
    return detail::launch_rows<PassThrough, 1, kLow, kHigh, kStep>(ctx, sizes, pack(in), std::index_sequence<0>{}, pack(out),
                                                                   std::index_sequence<0>{}, Softmax{});
  } else {
    constexpr int kOuter = static_cast<int>(kRank) - 1;
    RowSpace<kOuter, 1> space;
    space.rows = 1;
    for (int d = 0; d < kOuter; ++d) space.rows *= space.outer[d] = sizes[d];
    space.length = space.row[0] = sizes[kOuter];
    if (space.rows <= 0 || space.length <= 0) return 0;
    LaunchConfig config;
    config.block = dim3(128);
    config.grid = dim3(ceil_div(space.rows, 128, 1 << 20));
    config.dependent = true;
    return launch(ctx, config, softmax_columns_kernel<kOuter, In, Out>, space, in, out);
  }
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_ROW_CUH_
