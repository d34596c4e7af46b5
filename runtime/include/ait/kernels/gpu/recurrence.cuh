/// @file recurrence.cuh
/// @brief All steps of a recurrence in one launch: the weight stays in registers and shared memory, the state in shared memory.
///
/// Rows of the batch do not depend on each other, so a cluster of blocks has some rows and needs no other blocks. Each block of a cluster owns some
/// columns of the state with all of their gates. In a step it multiplies the whole state of its rows with its rows of the weight on tensor cores, computes
/// the new elements of its columns, writes the elements of h into its shared memory, and waits for the cluster; the others read them there.
///
/// The weight is the left factor: the 16 rows of a tile are two halves of 8 columns of the state for one gate each, so that a thread has all gates of an
/// element. The columns of a tile are 8 rows of the batch.
#ifndef AIT_KERNELS_GPU_RECURRENCE_CUH_
#define AIT_KERNELS_GPU_RECURRENCE_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/operand.h"
#include "ait/math.h"

namespace ait::gpu {

/// @brief How a recurrence is shared out.
/// @tparam kGatesOf gates of an element; @tparam kHiddenOf columns of a state
/// @tparam kClusterOf blocks of a cluster; @tparam kRowsOf rows of the batch that it has, a multiple of 8
/// @tparam kAcrossOf warps of a block that own different columns; @tparam kSplitOf warps that share the sums over h of the same columns
template <int kGatesOf, int kHiddenOf, int kClusterOf, int kRowsOf, int kAcrossOf, int kSplitOf>
struct RecurrencePlan {
  static constexpr int kGates = kGatesOf, kHidden = kHiddenOf, kCluster = kClusterOf, kRows = kRowsOf, kAcross = kAcrossOf, kSplit = kSplitOf;
  static constexpr int kWarps = kAcross * kSplit, kThreads = 32 * kWarps;
  static constexpr int kParts = kGates % 2 == 0 ? 1 : 2;             ///< columns of a set, in eights
  static constexpr int kTilesOfSet = kGates * kParts / 2;            ///< tiles of 16 rows of the weight that compute a set
  static constexpr int kSetColumns = 8 * kParts;
  static constexpr int kOwn = ((kHidden + kCluster - 1) / kCluster + kSetColumns * kAcross - 1) / (kSetColumns * kAcross);  ///< sets of a warp
  static constexpr int kColumns = kOwn * kAcross * kSetColumns;      ///< of a block
  static constexpr int kTiles = kOwn * kTilesOfSet;                  ///< of a warp
  static constexpr int kBatches = kRows / 8;                         ///< columns of tiles
  static constexpr int kChunkColumns = 32;                           ///< of h: two products
  static constexpr int kChunks = ((kHidden + kChunkColumns - 1) / kChunkColumns + kSplit - 1) / kSplit;  ///< of a warp
  static constexpr int kAhead = kChunks < 4 ? kChunks : 4;           ///< chunks of h that a thread reads before it multiplies
  static constexpr int kFragments = kTiles * kChunks * 2;            ///< of the weight, of a warp
  static constexpr int kInRegisters = kFragments < 32 ? kFragments : 32;
  static constexpr int kInShared = kFragments - kInRegisters;
  static constexpr int kPitch = (2 * kColumns + 127) / 128 * 128 + 64;  ///< bytes of a row of h: 8 lanes read two rows without a conflict
  static constexpr int kChains = kTiles * kBatches >= 4 ? 1 : kTiles * kBatches >= 2 ? 2 : 4;  ///< sums that a thread adds up beside each other
  static constexpr int kStateBytes = 2 * kRows * kPitch;
  static constexpr int kWeightBytes = kWarps * kInShared * 32 * 16;
  static constexpr int kSumBytes = (kSplit - 1) * kAcross * kTiles * kBatches * 32 * 16;
  static constexpr int kSharedBytes = kStateBytes + kWeightBytes + kSumBytes;
  static constexpr int kElements = kOwn * kParts * kBatches * 2;     ///< of the state, of a thread
  static_assert(kRows % 8 == 0 && kGates >= 1 && kHidden >= 1, "rows of the batch are taken in eights");
};

#if defined(AIT_CUDA)
namespace detail {
/// What a thread keeps of an input for its elements: the values as stored, so that no thread waits for them before it uses them.
template <class Op, int kCount>
struct Stored {
  typename Op::Value v[kCount];
  __device__ __forceinline__ typename Op::Compute value(int i) const { return convert<typename Op::Compute>(v[i]); }
};
/// The same in the compute type.
template <class Op, int kCount>
struct Computed {
  typename Op::Compute v[kCount];
};
template <class Ops, int kCount>
struct OfThread;
template <class... Ops, int kCount>
struct OfThread<Pack<Ops...>, kCount> {
  using Values = Pack<Stored<Ops, kCount>...>;
  using Results = Pack<Computed<Ops, kCount>...>;
};

/// Calls `f(a, b)` for the members of two lists.
template <class A, class B, size_t... I, class F>
__device__ __forceinline__ void for_both(const A& a, B& b, std::index_sequence<I...>, F&& f) {
  (f(get<I>(a), get<I>(b)), ...);
}

template <class Op>
__device__ __forceinline__ typename Op::Element* element_of(const Op& op, int64_t row, int64_t column) {
  constexpr int kLast = Op::kRank - 1;
  return op.data + row * op.strides[kLast - 1] + (Op::kInner == Inner::zero ? 0 : Op::kInner == Inner::unit ? column : column * op.strides[kLast]);
}

/// Calls the cell for element `i` of a thread: gates, inputs and states in; new states and stacked results out.
template <class F, int kGates, size_t... G, class Now, size_t... I, class States, size_t... S, class Stacked, size_t... O>
__device__ __forceinline__ void apply_cell(int i, const float (&gates)[kGates], std::index_sequence<G...>, const Now& now, std::index_sequence<I...>,
                                           const States& before, States& after, std::index_sequence<S...>, Stacked& stacked,
                                           std::index_sequence<O...>) {
  F::apply(gates[G]..., get<I>(now).value(i)..., get<S>(before).v[i]..., get<S>(after).v[i]..., get<O>(stacked).v[i]...);
}

/// Eight neighbours of a row of the weight, as words; zeros from element `count` on.
template <class W>
__device__ __forceinline__ uint4 load_eight(const W* from, int count, bool aligned) {
  if (count >= 8 && aligned) return *reinterpret_cast<const uint4*>(from);
  uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    if (j < count) words[j / 2] |= static_cast<uint32_t>(bit_cast<uint16_t>(from[j])) << (j % 2 * 16);
  }
  return {words[0], words[1], words[2], words[3]};
}
}  // namespace detail

/// @tparam F the cell: `apply(gates..., inputs..., states..., new states&..., stacked&...)`
/// @tparam kConstant nothing ever writes the weight
template <class F, class Plan, bool kConstant, class W, class Init, class Inputs, class Finals, class Outs>
__global__ void __launch_bounds__(Plan::kThreads, 1)
    recurrence_kernel(int64_t steps, int64_t batch, bool reverse, const W* weight, Init init, Inputs inputs, Finals finals, Outs outs) {
  static_assert(is_narrow_float<W>, "the tensor cores take half and bfloat16");
  constexpr int kElements = Plan::kElements, kTiles = Plan::kTiles, kBatches = Plan::kBatches, kGates = Plan::kGates, kHidden = Plan::kHidden;
  constexpr bool kAlone = Plan::kCluster == 1;
  AIT_DYNAMIC_SHARED(16, recurrence_shared);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int across = warp % Plan::kAcross, split = warp / Plan::kAcross, eighth = lane / 4, quarter = lane % 4;
  const int rank = static_cast<int>(blockIdx.x % Plan::kCluster), first_column = rank * Plan::kColumns;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x / Plan::kCluster) * Plan::kRows;
  char* const state = recurrence_shared;  // h before and after a step
  uint4* const more = reinterpret_cast<uint4*>(recurrence_shared + Plan::kStateBytes) + warp * Plan::kInShared * 32 + lane;
  float4* const sums = reinterpret_cast<float4*>(recurrence_shared + Plan::kStateBytes + Plan::kWeightBytes) + across * kTiles * kBatches * 32 + lane;

  // ** the weight: fragments in the order of tiles within a product, products within a chunk, chunks **
  uint32_t fragments[Plan::kInRegisters][4];
  const auto load_weight = [&] {
    const bool aligned = kHidden % 8 == 0 && reinterpret_cast<uintptr_t>(weight) % 16 == 0;
#pragma unroll
    for (int j = 0; j < Plan::kChunks; ++j) {
      const int k = (split * Plan::kChunks + j) * Plan::kChunkColumns + quarter * 8;
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        uint4 halves[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int place = 2 * (t % Plan::kTilesOfSet) + half, gate = place % kGates;
          const int column = first_column + (t / Plan::kTilesOfSet * Plan::kAcross + across) * Plan::kSetColumns + place / kGates * 8 + eighth;
          const int count = column < kHidden ? kHidden - k : 0;
          halves[half] = detail::load_eight(weight + (static_cast<int64_t>(gate) * kHidden + column) * kHidden + k, count, aligned);
        }
#pragma unroll
        for (int product = 0; product < 2; ++product) {
          const int f = (j * 2 + product) * kTiles + t;
          const uint4 words = product == 0 ? uint4{halves[0].x, halves[1].x, halves[0].y, halves[1].y}
                                           : uint4{halves[0].z, halves[1].z, halves[0].w, halves[1].w};
          if (f < Plan::kInRegisters) {
            uint32_t(&kept)[4] = fragments[f < Plan::kInRegisters ? f : 0];
            kept[0] = words.x, kept[1] = words.y, kept[2] = words.z, kept[3] = words.w;
          } else {
            more[(f - Plan::kInRegisters) * 32] = words;  // only this thread reads it
          }
        }
      }
    }
  };
  allow_next();
  if constexpr (kConstant) load_weight();
  wait_for_previous();
  if constexpr (!kConstant) load_weight();

  // ** the elements of this thread; of warps that share sums, those of the first **
  const auto row_of = [&](int i) { return i / 2 % kBatches * 8 + quarter * 2 + i % 2; };
  const auto column_of = [&](int i) {
    const int part = i / (2 * kBatches);
    return (part / Plan::kParts * Plan::kAcross + across) * Plan::kSetColumns + part % Plan::kParts * 8 + eighth;
  };
  const auto exists = [&](int i) { return first_row + row_of(i) < batch && first_column + column_of(i) < kHidden; };
  typename detail::OfThread<Init, kElements>::Results states;
  typename detail::OfThread<Inputs, kElements>::Values now;
  const auto step_of = [&](int64_t t) { return reverse ? steps - 1 - t : t; };
  const auto read_inputs = [&](int64_t t) {
    detail::for_both(inputs, now, typename Inputs::Indices{}, [&](const auto& op, auto& kept) {
      if (t > 0 && op.strides[0] == 0) return;
#pragma unroll
      for (int i = 0; i < kElements; ++i) {
        if (exists(i)) kept.v[i] = detail::element_of(op, first_row + row_of(i), first_column + column_of(i))[step_of(t) * op.strides[0]];
      }
    });
  };
  const auto publish = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      W* const to = reinterpret_cast<W*>(state + (buffer * Plan::kRows + row_of(i)) * Plan::kPitch) + column_of(i);
      *to = convert<W>(first_column + column_of(i) < kHidden ? get<0>(states).v[i] : 0.f);
    }
  };
  if (split == 0) {
    detail::for_both(inputs, now, typename Inputs::Indices{}, [&](const auto& op, auto& kept) {
#pragma unroll
      for (int i = 0; i < kElements; ++i) kept.v[i] = typename std::remove_reference_t<decltype(op)>::Value{};
    });
    detail::for_both(init, states, typename Init::Indices{}, [&](const auto& op, auto& kept) {
      using Compute = typename std::remove_reference_t<decltype(op)>::Compute;
#pragma unroll
      for (int i = 0; i < kElements; ++i) {
        kept.v[i] = exists(i) ? convert<Compute>(*detail::element_of(op, first_row + row_of(i), first_column + column_of(i))) : Compute(0);
      }
    });
    publish(0);
    if (steps > 0) read_inputs(0);
  }
  if constexpr (kAlone) {
    __syncthreads();
  } else {
    cluster_barrier();
  }

  for (int64_t t = 0; t < steps; ++t) {
    const int buffer = static_cast<int>(t & 1);
    float sum[Plan::kChains][kTiles][kBatches][4] = {};
#pragma unroll
    for (int first = 0; first < Plan::kChunks; first += Plan::kAhead) {
      uint4 h[Plan::kAhead][kBatches];
#pragma unroll
      for (int at = 0; at < Plan::kAhead * kBatches; ++at) {
        const int j = first + at / kBatches, b = at % kBatches;
        const int eight = (split * Plan::kChunks + j) * 4 + quarter, owner = eight / (Plan::kColumns / 8);  // columns of h, in eights
        const char* const from = state + (buffer * Plan::kRows + b * 8 + eighth) * Plan::kPitch + (eight - owner * (Plan::kColumns / 8)) * 16;
        h[at / kBatches][b] = {0, 0, 0, 0};
        if (j < Plan::kChunks && eight * 8 < kHidden) {
          if constexpr (kAlone) {
            h[at / kBatches][b] = *reinterpret_cast<const uint4*>(from);
          } else {
            h[at / kBatches][b] = bit_cast<uint4>(load_cluster_float4(shared_address(from), static_cast<uint32_t>(owner)));
          }
        }
      }
#pragma unroll
      for (int at = 0; at < 2 * Plan::kAhead; ++at) {
        const int j = first + at / 2, product = at % 2;
        if (j >= Plan::kChunks) continue;
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          const int f = (j * 2 + product) * kTiles + tile;
          uint32_t a[4];
          if (f < Plan::kInRegisters) {
            const uint32_t(&kept)[4] = fragments[f < Plan::kInRegisters ? f : 0];
            a[0] = kept[0], a[1] = kept[1], a[2] = kept[2], a[3] = kept[3];
          } else {
            const uint4 words = more[(f - Plan::kInRegisters) * 32];
            a[0] = words.x, a[1] = words.y, a[2] = words.z, a[3] = words.w;
          }
#pragma unroll
          for (int b = 0; b < kBatches; ++b) {
            const uint4& columns = h[at / 2][b];
            mma_16x8x16<W>(sum[(j * 2 + product) % Plan::kChains][tile][b], a, product == 0 ? columns.x : columns.z,
                           product == 0 ? columns.y : columns.w);
          }
        }
      }
    }
#pragma unroll
    for (int chain = 1; chain < Plan::kChains; ++chain) {
#pragma unroll
      for (int at = 0; at < kTiles * kBatches * 4; ++at) {
        sum[0][at / 4 / kBatches][at / 4 % kBatches][at % 4] += sum[chain][at / 4 / kBatches][at / 4 % kBatches][at % 4];
      }
    }
    if constexpr (Plan::kSplit > 1) {  // the first warps add up what the others found
      constexpr int kOfSplit = Plan::kAcross * kTiles * kBatches * 32;
      if (split > 0) {
#pragma unroll
        for (int at = 0; at < kTiles * kBatches; ++at) {
          const float(&found)[4] = sum[0][at / kBatches][at % kBatches];
          sums[(split - 1) * kOfSplit + at * 32] = {found[0], found[1], found[2], found[3]};
        }
      }
      __syncthreads();
      if (split == 0) {
#pragma unroll
        for (int other = 0; other < Plan::kSplit - 1; ++other) {
#pragma unroll
          for (int at = 0; at < kTiles * kBatches; ++at) {
            const float4 found = sums[other * kOfSplit + at * 32];
            float(&own)[4] = sum[0][at / kBatches][at % kBatches];
            own[0] += found.x, own[1] += found.y, own[2] += found.z, own[3] += found.w;
          }
        }
      }
    }
    typename detail::OfThread<Outs, kElements>::Results stacked;
    if (split == 0) {
      const auto before = states;
#pragma unroll
      for (int i = 0; i < kElements; ++i) {
        float gates[kGates];
        const int part = i / (2 * kBatches), b = i / 2 % kBatches;
#pragma unroll
        for (int g = 0; g < kGates; ++g) {
          const int place = part % Plan::kParts * kGates + g;
          gates[g] = sum[0][part / Plan::kParts * Plan::kTilesOfSet + place / 2][b][place % 2 * 2 + i % 2];
        }
        detail::apply_cell<F>(i, gates, std::make_index_sequence<kGates>{}, now, typename Inputs::Indices{}, before, states, typename Init::Indices{},
                              stacked, typename Outs::Indices{});
      }
      if (t + 1 < steps) publish(buffer ^ 1);
    }
    if constexpr (!kAlone) cluster_arrive();  // after the last step: nobody ends while others read its shared memory
    if (split == 0) {
      detail::for_both(outs, stacked, typename Outs::Indices{}, [&](const auto& op, auto& kept) {
        using Value = typename std::remove_reference_t<decltype(op)>::Value;
#pragma unroll
        for (int i = 0; i < kElements; ++i) {
          if (exists(i)) {
            detail::element_of(op, first_row + row_of(i), first_column + column_of(i))[step_of(t) * op.strides[0]] = convert<Value>(kept.v[i]);
          }
        }
      });
      if (t + 1 < steps) read_inputs(t + 1);
    }
    if constexpr (kAlone) {
      __syncthreads();
    } else {
      cluster_wait();
    }
  }
  if (split == 0) {
    detail::for_both(finals, states, typename Finals::Indices{}, [&](const auto& op, auto& kept) {
      using Value = typename std::remove_reference_t<decltype(op)>::Value;
#pragma unroll
      for (int i = 0; i < kElements; ++i) {
        if (exists(i)) *detail::element_of(op, first_row + row_of(i), first_column + column_of(i)) = convert<Value>(kept.v[i]);
      }
    });
  }
}

/// @brief Runs `steps` steps on `batch` rows, from the last step on if `reverse`. The weight is row-major.
/// @param init, finals the states [B, H] before and after, h first
/// @param inputs, outs [S, B, H]; an input may have strides of 0
template <class F, class Plan, bool kConstant, class W, class Init, class Inputs, class Finals, class Outs>
int32_t recurrence(const Context& ctx, int64_t steps, int64_t batch, bool reverse, const W* weight, const Init& init, const Inputs& inputs,
                   const Finals& finals, const Outs& outs) {
  LaunchConfig config;
  config.block = dim3(Plan::kThreads);
  config.grid = dim3(grid_size((batch + Plan::kRows - 1) / Plan::kRows * Plan::kCluster));
  config.cluster = Plan::kCluster;
  config.shared_bytes = Plan::kSharedBytes;
  config.dependent = true;
  return launch(ctx, config, recurrence_kernel<F, Plan, kConstant, W, Init, Inputs, Finals, Outs>, steps, batch, reverse, weight, init, inputs, finals,
                outs);
}
#endif  // AIT_CUDA

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_RECURRENCE_CUH_
