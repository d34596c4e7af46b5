/// @file recurrence.cuh
/// @brief All steps of a recurrence in one launch: the weight stays in registers and shared memory, the state in shared memory.
///
/// Rows of the batch do not depend on each other, so a cluster of blocks has some rows and needs no other blocks. Each block of a cluster owns some
/// columns of the state with all of their gates. In a step it multiplies the whole state of its rows with its rows of the weight, computes the new elements
/// of its columns, writes the elements of h into its shared memory, and waits for the cluster; the others copy them from there.
///
/// The weight is the left factor: the 16 rows of a tile are two halves of 8 columns of the state for one gate each, so that a thread has all gates of an
/// element. The columns of a tile are 8 rows of the batch. Half and bfloat16 are multiplied on tensor cores; of floats, a thread multiplies two rows of a
/// tile and a quarter of the columns of h with 8 rows of the batch, and the four threads of a row of the tile add up what they found.
#ifndef AIT_KERNELS_GPU_RECURRENCE_CUH_
#define AIT_KERNELS_GPU_RECURRENCE_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/cluster.cuh"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/operand.h"
#include "ait/math.h"

namespace ait::gpu {

/// @brief How a recurrence is shared out.
/// @tparam kGatesOf gates of an element; @tparam kHiddenOf columns of a state
/// @tparam kClusterOf blocks of a cluster; @tparam kRowsOf rows of the batch that it has, a multiple of 8
/// @tparam kAcrossOf warps of a block that own different columns; @tparam kSplitOf warps that share the sums over h of the same columns
/// @tparam kBytesOf bytes of an element of the weight
template <int kGatesOf, int kHiddenOf, int kClusterOf, int kRowsOf, int kAcrossOf, int kSplitOf, int kBytesOf>
struct RecurrencePlan {
  static constexpr int kGates = kGatesOf, kHidden = kHiddenOf, kCluster = kClusterOf, kRows = kRowsOf, kAcross = kAcrossOf, kSplit = kSplitOf,
                       kBytes = kBytesOf;
  static constexpr int kWarps = kAcross * kSplit, kThreads = 32 * kWarps;
  static constexpr int kParts = kGates % 2 == 0 ? 1 : 2;             ///< columns of a set, in eights
  static constexpr int kTilesOfSet = kGates * kParts / 2;            ///< tiles of 16 rows of the weight that compute a set
  static constexpr int kSetColumns = 8 * kParts;
  static constexpr int kOwn = ((kHidden + kCluster - 1) / kCluster + kSetColumns * kAcross - 1) / (kSetColumns * kAcross);  ///< sets of a warp
  static constexpr int kColumns = kOwn * kAcross * kSetColumns;      ///< of a block
  static constexpr int kTiles = kOwn * kTilesOfSet;                  ///< of a warp
  static constexpr int kBatches = kRows / 8;                         ///< columns of tiles
  static constexpr int kChunkColumns = 32;                           ///< of h: two products on tensor cores
  static constexpr int kChunks = ((kHidden + kChunkColumns - 1) / kChunkColumns + kSplit - 1) / kSplit;  ///< of a warp
  static constexpr int kFragments = kTiles * kChunks * kBytes;       ///< of the weight, of a warp: 16 bytes of each thread
  static constexpr int kMostInRegisters = kBytes == 2 ? 32 : 24;     ///< sums of floats take more registers
  static constexpr int kInRegisters = kFragments < kMostInRegisters ? kFragments : kMostInRegisters;
  static constexpr int kInShared = kFragments - kInRegisters;
  static constexpr int pitch(int columns) { return (kBytes * columns + 127) / 128 * 128 + 64; }  ///< 8 lanes read two rows without a conflict
  static constexpr int kPitch = pitch(kColumns);                     ///< bytes from row to row of h in its block
  static constexpr int kWholePitch = pitch(kCluster * kColumns);     ///< the same of all columns
  static constexpr int kChains = kTiles * kBatches >= 4 ? 1 : kTiles * kBatches >= 2 ? 2 : 4;  ///< sums that a thread adds up beside each other
  static constexpr int kStateBytes = 2 * kRows * kPitch;
  static constexpr int kWholeBytes = kCluster == 1 ? 0 : kRows * kWholePitch;
  static constexpr int kWeightBytes = kWarps * kInShared * 32 * 16;
  static constexpr int kSumBytes = (kSplit - 1) * kAcross * kTiles * kBatches * 32 * 16;
  static constexpr int kSharedBytes = kStateBytes + kWholeBytes + kWeightBytes + kSumBytes;
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
struct Eight {
  static constexpr int kWords = 2 * static_cast<int>(sizeof(W));
  uint32_t word[kWords];
};
template <class W>
__device__ __forceinline__ Eight<W> load_eight(const W* from, int count, bool aligned) {
  Eight<W> eight = {};
  if (count >= 8 && aligned) {
#pragma unroll
    for (int i = 0; i < Eight<W>::kWords; i += 4) {
      const uint4 words = reinterpret_cast<const uint4*>(from)[i / 4];
      eight.word[i] = words.x, eight.word[i + 1] = words.y, eight.word[i + 2] = words.z, eight.word[i + 3] = words.w;
    }
    return eight;
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    if (j >= count) continue;
    if constexpr (sizeof(W) == 2) {
      eight.word[j / 2] |= static_cast<uint32_t>(bit_cast<uint16_t>(from[j])) << (j % 2 * 16);
    } else {
      eight.word[j] = bit_cast<uint32_t>(from[j]);
    }
  }
  return eight;
}

/// The sums over four neighbouring lanes of their `v`: lane l gets those of elements 2 (l % 4) + {0, 1}.
__device__ __forceinline__ void add_quarters(const float (&v)[8], int quarter, float& first, float& second) {
  float kept[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const bool upper = quarter >= 2;
    const float received = shuffle_xor(upper ? v[i] : v[i + 4], 2);
    kept[i] = (upper ? v[i + 4] : v[i]) + received;
  }
  const bool odd = quarter % 2 != 0;
  const float received[2] = {shuffle_xor(odd ? kept[0] : kept[2], 1), shuffle_xor(odd ? kept[1] : kept[3], 1)};
  first = (odd ? kept[2] : kept[0]) + received[0];
  second = (odd ? kept[3] : kept[1]) + received[1];
}
}  // namespace detail

/// @tparam F the cell: `apply(gates..., inputs..., states..., new states&..., stacked&...)`
/// @tparam kConstant nothing ever writes the weight
template <class F, class Plan, bool kConstant, class W, class Init, class Inputs, class Finals, class Outs>
__global__ void __launch_bounds__(Plan::kThreads, 1)
    recurrence_kernel(int64_t steps, int64_t batch, bool reverse, const W* weight, Init init, Inputs inputs, Finals finals, Outs outs) {
  static_assert(sizeof(W) == Plan::kBytes && (is_narrow_float<W> || std::is_same_v<W, float>));
  constexpr int kElements = Plan::kElements, kTiles = Plan::kTiles, kBatches = Plan::kBatches, kGates = Plan::kGates, kHidden = Plan::kHidden;
  constexpr bool kAlone = Plan::kCluster == 1, kNarrow = Plan::kBytes == 2;
  AIT_DYNAMIC_SHARED(16, recurrence_shared);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int across = warp % Plan::kAcross, split = warp / Plan::kAcross, eighth = lane / 4, quarter = lane % 4;
  const int rank = static_cast<int>(blockIdx.x % Plan::kCluster), first_column = rank * Plan::kColumns;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x / Plan::kCluster) * Plan::kRows;
  char* const state = recurrence_shared;  // own columns of h, before and after a step
  char* const whole = recurrence_shared + Plan::kStateBytes;  // all columns before a step
  char* const weights = whole + Plan::kWholeBytes;
  uint4* const more = reinterpret_cast<uint4*>(weights) + warp * Plan::kInShared * 32 + lane;
  float4* const sums = reinterpret_cast<float4*>(weights + Plan::kWeightBytes) + across * kTiles * kBatches * 32 + lane;

  // ** the weight: fragments of 4 words of each thread **
  uint32_t fragments[Plan::kInRegisters][4];
  const auto keep = [&](int f, uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3) {
    if (f < Plan::kInRegisters) {
      uint32_t(&kept)[4] = fragments[f < Plan::kInRegisters ? f : 0];
      kept[0] = w0, kept[1] = w1, kept[2] = w2, kept[3] = w3;
    } else {
      more[(f - Plan::kInRegisters) * 32] = {w0, w1, w2, w3};  // only this thread reads it
    }
  };
  const auto fragment = [&](int f, uint32_t(&words)[4]) {
    if (f < Plan::kInRegisters) {
      const uint32_t(&kept)[4] = fragments[f < Plan::kInRegisters ? f : 0];
      words[0] = kept[0], words[1] = kept[1], words[2] = kept[2], words[3] = kept[3];
    } else {
      const uint4 found = more[(f - Plan::kInRegisters) * 32];
      words[0] = found.x, words[1] = found.y, words[2] = found.z, words[3] = found.w;
    }
  };
  // Of two bytes, a fragment is the left factor of product 0 or 1 of a chunk; of floats, a half of one of two rows of a tile.
  const auto number = [](int j, int tile, int part) {
    return kNarrow ? (j * 2 + part) * kTiles + tile : (j * kTiles + tile) * 4 + part;
  };
  const auto load_weight = [&] {
    const bool aligned = kHidden * Plan::kBytes % 16 == 0 && reinterpret_cast<uintptr_t>(weight) % 16 == 0;
#pragma unroll
    for (int j = 0; j < Plan::kChunks; ++j) {
      const int k = (split * Plan::kChunks + j) * Plan::kChunkColumns + quarter * 8;
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        detail::Eight<W> halves[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int place = 2 * (t % Plan::kTilesOfSet) + half, gate = place % kGates;
          const int column = first_column + (t / Plan::kTilesOfSet * Plan::kAcross + across) * Plan::kSetColumns + place / kGates * 8 + eighth;
          const int count = column < kHidden ? kHidden - k : 0;
          halves[half] = detail::load_eight(weight + (static_cast<int64_t>(gate) * kHidden + column) * kHidden + k, count, aligned);
        }
        const auto &low = halves[0].word, &high = halves[1].word;
        if constexpr (kNarrow) {
          keep(number(j, t, 0), low[0], high[0], low[1], high[1]);
          keep(number(j, t, 1), low[2], high[2], low[3], high[3]);
        } else {
          constexpr int k4 = kNarrow ? 0 : 4;  // of the second half
          keep(number(j, t, 0), low[0], low[1], low[2], low[3]);
          keep(number(j, t, 1), low[k4], low[k4 + 1], low[k4 + 2], low[k4 + 3]);
          keep(number(j, t, 2), high[0], high[1], high[2], high[3]);
          keep(number(j, t, 3), high[k4], high[k4 + 1], high[k4 + 2], high[k4 + 3]);
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
    const char* h = state + buffer * Plan::kRows * Plan::kPitch;
    if constexpr (!kAlone) {  // copy the columns of the other blocks
      constexpr int kOfBlock = Plan::kColumns * Plan::kBytes / 16, kOfRow = Plan::kCluster * kOfBlock, kWords = Plan::kRows * kOfRow;
      constexpr int kEach = (kWords + Plan::kThreads - 1) / Plan::kThreads, kAtATime = kEach < 4 ? kEach : 4;
#pragma unroll 1
      for (int first = static_cast<int>(threadIdx.x); first < kWords; first += kAtATime * Plan::kThreads) {
        float4 words[kAtATime];
#pragma unroll
        for (int i = 0; i < kAtATime; ++i) {
          const int at = first + i * Plan::kThreads, row = at / kOfRow, word = at - row * kOfRow, owner = word / kOfBlock;
          const char* const from = h + row * Plan::kPitch + (word - owner * kOfBlock) * 16;
          if (at < kWords) words[i] = load_cluster_float4(shared_address(from), static_cast<uint32_t>(owner));
        }
#pragma unroll
        for (int i = 0; i < kAtATime; ++i) {
          const int at = first + i * Plan::kThreads, row = at / kOfRow;
          if (at < kWords) *reinterpret_cast<float4*>(whole + row * Plan::kWholePitch + (at - row * kOfRow) * 16) = words[i];
        }
      }
      __syncthreads();
      h = whole;
    }
    float sum[kTiles][kBatches][4];
    if constexpr (kNarrow) {
      float chains[Plan::kChains][kTiles][kBatches][4] = {};
#pragma unroll
      for (int j = 0; j < Plan::kChunks; ++j) {
        const int k = (split * Plan::kChunks + j) * Plan::kChunkColumns + quarter * 8;
        uint4 columns[kBatches];
#pragma unroll
        for (int b = 0; b < kBatches; ++b) {
          columns[b] = {0, 0, 0, 0};
          if (k < kHidden) columns[b] = *reinterpret_cast<const uint4*>(h + (b * 8 + eighth) * Plan::kWholePitch + k * Plan::kBytes);
        }
#pragma unroll
        for (int part = 0; part < 2; ++part) {
#pragma unroll
          for (int tile = 0; tile < kTiles; ++tile) {
            uint32_t a[4];
            fragment(number(j, tile, part), a);
#pragma unroll
            for (int b = 0; b < kBatches; ++b) {
              mma_16x8x16<W>(chains[(j * 2 + part) % Plan::kChains][tile][b], a, part == 0 ? columns[b].x : columns[b].z,
                             part == 0 ? columns[b].y : columns[b].w);
            }
          }
        }
      }
#pragma unroll
      for (int at = 0; at < kTiles * kBatches * 4; ++at) {
        float& found = sum[at / 4 / kBatches][at / 4 % kBatches][at % 4];
        found = chains[0][at / 4 / kBatches][at / 4 % kBatches][at % 4];
#pragma unroll
        for (int chain = 1; chain < Plan::kChains; ++chain) found += chains[chain][at / 4 / kBatches][at / 4 % kBatches][at % 4];
      }
    } else {
      float parts[kTiles][2][kBatches][8] = {};
#pragma unroll
      for (int j = 0; j < Plan::kChunks; ++j) {
        const int k = (split * Plan::kChunks + j) * Plan::kChunkColumns + quarter * 8;
#pragma unroll
        for (int half = 0; half < 2; ++half) {  // of the 8 columns of a thread
          if (k + 4 * half >= kHidden) continue;
#pragma unroll
          for (int row = 0; row < Plan::kRows; ++row) {
            const float4 columns = *reinterpret_cast<const float4*>(h + row * Plan::kWholePitch + (k + 4 * half) * Plan::kBytes);
#pragma unroll
            for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
              for (int side = 0; side < 2; ++side) {
                uint32_t w[4];
                fragment(number(j, tile, 2 * side + half), w);
                float& found = parts[tile][side][row / 8][row % 8];
                found = fmaf(bit_cast<float>(w[0]), columns.x, found);
                found = fmaf(bit_cast<float>(w[1]), columns.y, found);
                found = fmaf(bit_cast<float>(w[2]), columns.z, found);
                found = fmaf(bit_cast<float>(w[3]), columns.w, found);
              }
            }
          }
        }
      }
#pragma unroll
      for (int at = 0; at < kTiles * 2 * kBatches; ++at) {
        const int tile = at / 2 / kBatches, side = at / kBatches % 2, b = at % kBatches;
        detail::add_quarters(parts[tile][side][b], quarter, sum[tile][b][2 * side], sum[tile][b][2 * side + 1]);
      }
    }
    if constexpr (Plan::kSplit > 1) {  // the first warps add up what the others found
      constexpr int kOfSplit = Plan::kAcross * kTiles * kBatches * 32;
      if (split > 0) {
#pragma unroll
        for (int at = 0; at < kTiles * kBatches; ++at) {
          const float(&found)[4] = sum[at / kBatches][at % kBatches];
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
            float(&own)[4] = sum[at / kBatches][at % kBatches];
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
          gates[g] = sum[part / Plan::kParts * Plan::kTilesOfSet + place / 2][b][place % 2 * 2 + i % 2];
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
