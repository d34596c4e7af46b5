/// @file map_rows.cuh
/// @brief Elementwise kernels over rows that begin anywhere, where an operand is one row for all of them: a bias of odd length.
#ifndef AIT_KERNELS_GPU_MAP_ROWS_CUH_
#define AIT_KERNELS_GPU_MAP_ROWS_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"

#ifndef AIT_MAP_ROWS
#define AIT_MAP_ROWS 32
#endif
namespace ait::gpu {

namespace detail {
/// Where element `i` of a row is.
template <class Op>
__device__ __forceinline__ typename Op::Element* in_row(const Op& operand, int64_t row, int64_t i) {
  return operand.data + row * operand.strides[0] + (Op::kInner == Inner::zero ? 0 : i);
}

/// F on `kCount` elements from `i` on of the rows from `first` on, `step` apart; several are read before the first is used. Operands with a bit in
/// `held` are the same in all rows.
template <class F, int kCount, class... Ins, size_t... I, class... Outs, size_t... O>
__device__ __forceinline__ void map_column(int64_t first, int64_t rows, int64_t step, int64_t i, uint64_t held, const Pack<Ins...>& ins,
                                           std::index_sequence<I...> in_indices, const Pack<Outs...>& outs, std::index_sequence<O...> out_indices) {
  constexpr int kUnroll = 4;
  Raws<kCount, Ins...> raws[kUnroll];
  const auto hold = [&](auto& raw, const auto& operand, bool is_held) {
    using Op = std::decay_t<decltype(operand)>;
    if (!is_held) return;
    constexpr int kOwn = sizeof(raw.v) / sizeof(raw.v[0]);
#pragma unroll
    for (int j = 0; j < kOwn; ++j) raw.v[j] = *in_row<Op>(operand, 0, i + j);
  };
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) (hold(get<I>(raws[u]), get<I>(ins), (held >> I & 1) != 0), ...);
  const auto read = [&](auto& raw, const auto& operand, int64_t row, bool is_held) {
    using Op = std::decay_t<decltype(operand)>;
    if (is_held) return;
    const auto own = load_raw<kCount>(operand, in_row<Op>(operand, row, i));
    constexpr int kOwn = sizeof(raw.v) / sizeof(raw.v[0]);
#pragma unroll
    for (int j = 0; j < kOwn; ++j) raw.v[j] = own.v[j];
  };
  for (int64_t row = first; row < rows; row += kUnroll * step) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (row + u * step < rows) (read(get<I>(raws[u]), get<I>(ins), row + u * step, (held >> I & 1) != 0), ...);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (row + u * step >= rows) continue;
      const auto results = compute_raws<F, kCount>(raws[u], ins, in_indices, outs, out_indices);
      (store_values<kCount>(get<O>(outs), in_row(get<O>(outs), row + u * step, i), get<O>(results)), ...);
    }
  }
}

/// Rows of a map are cut at lines of the first result, and a group has at least so many of them.
inline constexpr int64_t kMapBoundary = 128, kRowsOfGroup = AIT_MAP_ROWS;
}  // namespace detail

/// Rows that begin anywhere, in chunks of `kCount` that begin at boundaries in all operands. A thread has a chunk, or an element of those at the
/// ends, of every row of a group, all of which begin equally far from a line; so what is one row for all is read once. A group has `chunks` such
/// threads, whole warps, and a warp for the ends.
template <class F, int kCount, class Ins, class Outs>
__global__ void __launch_bounds__(256) map_rows_kernel(int64_t rows, int length, int chunks, int groups, uint64_t held, Ins ins, Outs outs) {
  wait_for_previous();
  allow_next();
  using Out = std::decay_t<decltype(get<0>(outs))>;
  constexpr int kOfLine = static_cast<int>(detail::kMapBoundary / sizeof(typename Out::Value));
  const int blocks = (chunks + kWarpSize + blockDim.x - 1) / blockDim.x, group = blockIdx.x / blocks;
  const int number = (blockIdx.x - group * blocks) * blockDim.x + threadIdx.x;
  const auto* begin = detail::in_row(get<0>(outs), group, 0);
  const int phase = static_cast<int>(reinterpret_cast<uintptr_t>(begin) / sizeof(typename Out::Value) % kOfLine);
  if (number < chunks) {
    const int i = number * kCount - phase;
    if (i < 0 || i + kCount > length) return;
    detail::map_column<F, kCount>(group, rows, groups, i, held, ins, typename Ins::Indices{}, outs, typename Outs::Indices{});
  } else {
    const int head = (kCount - phase % kCount) % kCount, tail = (length - head) % kCount, edge = number - chunks;
    if (edge >= head + tail) return;
    const int i = edge < head ? edge : length - tail + edge - head;
    detail::map_column<F, 1>(group, rows, groups, i, held, ins, typename Ins::Indices{}, outs, typename Outs::Indices{});
  }
}

namespace detail {
/// How an operand lies beside the rows of the first result: not as they do; one row, or element, for all; or as they do.
enum class Beside { apart, held, along };
template <int kCount, class Op, class Out>
Beside beside(const Op& operand, const Out& out) {
  constexpr int64_t kSize = sizeof(typename Op::Value);
  if (Op::kInner == Inner::strided) return Beside::apart;
  if (operand.strides[0] == 0) return Beside::held;
  if (Op::kInner == Inner::zero) return Beside::along;
  const int64_t places = static_cast<int64_t>(reinterpret_cast<uintptr_t>(operand.data) / kSize) -
                         static_cast<int64_t>(reinterpret_cast<uintptr_t>(out.data) / sizeof(typename Out::Value));
  const bool same = kSize * kCount % 16 == 0 && places % kCount == 0 && (operand.strides[0] - out.strides[0]) % kCount == 0;
  return same ? Beside::along : Beside::apart;
}

/// Launches map_rows_kernel where rows are many and all operands lie well; `done` says whether they do.
template <class F, int kCount, class... Ins, size_t... I, class... Outs, size_t... O>
int32_t launch_map_rows(const Context& ctx, const int64_t (&sizes)[2], const Pack<Ins...>& ins, std::index_sequence<I...>, const Pack<Outs...>& outs,
                        std::index_sequence<O...>, bool& done) {
  using Out = std::decay_t<decltype(get<0>(outs))>;
  constexpr int64_t kOfLine = kMapBoundary / sizeof(typename Out::Value);
  if (Out::kInner != Inner::unit || sizes[1] < 2 * kOfLine || sizes[1] > int64_t(1) << 30) return 0;
  uint64_t held = 0;
  bool fits = true;
  const auto look = [&](const auto& operand, uint64_t bit) {
    const Beside lies = beside<kCount>(operand, get<0>(outs));
    if (lies == Beside::held) held |= bit;
    fits = fits && lies != Beside::apart;
  };
  (look(get<I>(ins), uint64_t(1) << I), ...);
  ((fits = fits && beside<kCount>(get<O>(outs), get<0>(outs)) == Beside::along), ...);
  int64_t period = 1;  // rows until they lie alike again
  while (get<0>(outs).strides[0] * period % kOfLine != 0) period *= 2;
  const int64_t chunks = ((sizes[1] + kOfLine - 1) / kCount + kWarpSize) / kWarpSize * kWarpSize, threads = chunks + kWarpSize;
  const int64_t blocks = (threads + 255) / 256, groups = sizes[0] / kRowsOfGroup / period * period;
  if (!fits || held == 0 || groups == 0) return 0;
  LaunchConfig config;
  config.block = dim3(static_cast<uint32_t>((threads / blocks + kWarpSize - 1) / kWarpSize * kWarpSize));
  config.grid = dim3(static_cast<uint32_t>(groups * ((threads + config.block.x - 1) / config.block.x)));
  config.dependent = true;
  done = true;
  return launch(ctx, config, map_rows_kernel<F, kCount, Pack<Ins...>, Pack<Outs...>>, sizes[0], static_cast<int>(sizes[1]), static_cast<int>(chunks),
                static_cast<int>(groups), held, ins, outs);
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_MAP_ROWS_CUH_
