/// @file cumulative_chained.cuh
/// @brief Sums (products, extremes and so on) of all elements up to each one, where rows or columns are few and long: blocks share one, tile by tile.
///
/// A block reads a tile, waits for the sum of the tiles before it (`chain.cuh`), and writes: elements are read and written once.
#ifndef AIT_KERNELS_GPU_CUMULATIVE_CHAINED_CUH_
#define AIT_KERNELS_GPU_CUMULATIVE_CHAINED_CUH_

#include <stdint.h>

#include "ait/kernels/gpu/chain.cuh"
#include "ait/kernels/gpu/cumulative.cuh"

namespace ait::gpu {

/// Sums that a block fetches at once: a lane each along a row; one after the other of a column.
inline constexpr int kRowFan = 32, kColumnFan = 16;
/// Blocks of columns on a multiprocessor: of as many as are asked for, the compiler limits the registers. With four, sums of 64 bits go to scratch
/// memory on AMD cards.
template <class R, int kVec, class In>
inline constexpr int kColumnBlocks = kVec == 8 || (kWarpSize == 64 && sizeof(detail::scan_acc_t<R, In>) == 8) ? 2 : 4;

/// A block has a tile of a row, as many bytes of each type: it waits for the blocks before it as long. The tile is in shared memory, so that six blocks fit
/// on a multiprocessor, and is summed twice: for what comes after it, and once it is known what comes before it.
template <class R, bool kExclusive, bool kReverse, int kVec, int kOuter, class In, class Out, class Chain>
__global__ void __launch_bounds__(kScanThreads, 6) cumulative_chained_rows_kernel(RowSpace<kOuter, 1> space, In in, Out out, Chain chain) {
  using Row = detail::ScanRow<R, kVec, kReverse, In, Out>;
  using A = typename Row::A;
  constexpr int kAhead = kChainAhead;
  const A none = detail::scan_start<R, In>();
  AIT_DYNAMIC_SHARED(16, chained_tile);
  auto* const held = reinterpret_cast<typename Row::Word(*)[kScanThreads]>(chained_tile);
  __shared__ A shared[kScanWarps], sums[3];
  __shared__ uint32_t number;
  wait_for_previous();
  allow_next();
  const int64_t taken = chain.take(number), tile = taken / chain.chains, index = taken % chain.chains;
  int64_t coordinate[kOuter];
  coordinates<kOuter>(index, space.outer, coordinate);
  const Row row(in, out, coordinate, space.length);
  const int64_t first = tile * (kScanThreads * kAhead) + threadIdx.x / kWarpSize * kWarpSize * kAhead + threadIdx.x % kWarpSize;
  row.template start_copies<kAhead>(first, held);
  Row::finish_copies();
  const auto chunk = [&](int u, A(&x)[kVec]) {
    typename Row::T raw[kVec];
    const typename Row::Word word = held[u][threadIdx.x];
    copy_bytes(&raw, &word, sizeof(raw));
    return Row::template scan<kExclusive>(raw, x);
  };
  A before[kAhead], within, total;
#pragma unroll
  for (int u = 0; u < kAhead; ++u) {
    A x[kVec];
    before[u] = chunk(u, x);
  }
  detail::join_warps<R>(detail::scan_before<R, kWarpSize>(before, none), none, shared, within, total);
  const A all = R::join(chain.before(index, tile, total, none, sums), within);
#pragma unroll
  for (int u = 0; u < kAhead; ++u) {
    A x[kVec];
    chunk(u, x);
#pragma unroll
    for (int j = 0; j < kVec; ++j) x[j] = R::join(before[u], x[j]);
    row.write(first + u * kWarpSize, all, x);
  }
}

/// A block has a tile of `kTileColumns` neighbouring columns. A thread tells and reads the sums of one column, 8 bytes each, of up to 31 tiles: of f16 a
/// tile has 64 KB, and these up to 64 KB, which L2 holds.
template <class R, bool kExclusive, int kVec, int kOuter, class In, class Out, class Chain>
__global__ void __launch_bounds__(kScanThreads, (kColumnBlocks<R, kVec, In>))
    cumulative_chained_columns_kernel(RowSpace<kOuter, 1> space, In in, Out out, Chain chain) {
  using Columns = detail::ScanColumns<R, kExclusive, kVec, kOuter, In, Out>;
  using A = typename Columns::A;
  constexpr int kColumns = Columns::kColumns;
  __shared__ A shared[kScanParts * kColumns];
  __shared__ A carried[kColumns];
  __shared__ uint32_t number;
  wait_for_previous();
  allow_next();
  const int64_t taken = chain.take(number), tile = taken / chain.chains, index = taken % chain.chains;
  Columns columns(space, in, out, index * kColumns);
  const int64_t from = tile * kColumnTile<kVec>;
  columns.read(from, shared);
  __syncthreads();
  const A none = detail::scan_start<R, In>();
  A total = none;
  if (static_cast<int>(threadIdx.x) < kColumns) total = Columns::join_parts(shared, none);
  const A sum = chain.before(index, tile, total, none, nullptr);
  if (static_cast<int>(threadIdx.x) < kColumns) carried[threadIdx.x] = sum;
  __syncthreads();
  A before[kVec];
#pragma unroll
  for (int j = 0; j < kVec; ++j) before[j] = R::join(carried[Columns::place(0, j)], shared[Columns::place(threadIdx.x / kScanLanes, j)]);
  columns.write(from, before);
}

namespace detail {
template <class Chain, class... Params>
int32_t launch_chained(const Context& ctx, const Chain& chain, uint32_t shared_bytes, void (*kernel)(Params...), const Params&... arguments) {
  if (const int32_t status = fill_bytes(ctx, chain.next, 0, static_cast<size_t>(chain.cleared()))) return status;
  LaunchConfig config;
  config.block = dim3(kScanThreads);
  config.grid = dim3(grid_size(chain.tiles * chain.chains));
  config.dependent = true;
  config.shared_bytes = shared_bytes;
  return launch(ctx, config, kernel, arguments...);
}

template <class R, bool kExclusive, int kVec, int kOuter, class In, class Out>
int32_t chain_columns(const Context& ctx, const RowSpace<kOuter, 1>& space, const In& in, const Out& out, void* workspace) {
  using Chain = Chains<R, scan_acc_t<R, In>, kTileColumns<kVec>, kColumnFan>;
  const Chain chain((space.rows + kTileColumns<kVec> - 1) / kTileColumns<kVec>, (space.length + kColumnTile<kVec> - 1) / kColumnTile<kVec>, workspace);
  return launch_chained(ctx, chain, 0, cumulative_chained_columns_kernel<R, kExclusive, kVec, kOuter, In, Out, Chain>, space, in, out, chain);
}
}  // namespace detail

/// @brief `cumulative` for few long rows or columns.
/// @param workspace aligned to 16 bytes, of `ait_mlir/lowering/kernels/cumulative.py: chained_bytes`
template <class R, bool kExclusive, bool kReverse, bool kColumns, size_t kRank, class In, class Out>
int32_t cumulative_chained(const Context& ctx, const int64_t (&sizes)[kRank], const In& in, const Out& out, void* workspace) {
  constexpr int kOuter = static_cast<int>(kRank) - 1;
  const auto space = detail::scan_space<kOuter>(sizes);
  if (space.rows <= 0 || space.length <= 0) return 0;
  if constexpr (kColumns) {
    constexpr int kVec = vector_width<In, Out>();
    const In from = kReverse ? detail::reversed(in, space.length) : in;
    const Out to = kReverse ? detail::reversed(out, space.length) : out;
    if (detail::may_access_columns<kVec>(space, from) && detail::may_access_columns<kVec>(space, to)) {
      return detail::chain_columns<R, kExclusive, kVec>(ctx, space, from, to, workspace);
    }
    return detail::chain_columns<R, kExclusive, 1>(ctx, space, from, to, workspace);
  } else {
    constexpr int kVec = In::kInner == Inner::unit ? vector_width<In>() : 1;
    using Chain = Chains<R, detail::scan_acc_t<R, In>, 1, kRowFan>;
    // A row that begins between two boundaries has a chunk more.
    const Chain chain(space.rows, (space.length + kVec - 1 + kRowTile<kVec> - 1) / kRowTile<kVec>, workspace);
    return detail::launch_chained(ctx, chain, uint32_t(sizeof(typename In::Value) * kRowTile<kVec>),
                                  cumulative_chained_rows_kernel<R, kExclusive, kReverse, kVec, kOuter, In, Out, Chain>, space, in, out, chain);
  }
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_CUMULATIVE_CHAINED_CUH_
