/// @file attention_simt.cuh
/// @brief Attention in ordinary arithmetic, for every float type on CUDA and HIP. Included by attention.cuh.
#ifndef AIT_KERNELS_GPU_ATTENTION_SIMT_CUH_
#define AIT_KERNELS_GPU_ATTENTION_SIMT_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/attention.cuh"
#include "ait/math.h"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief A block owns 32 rows of q, four threads each; a step takes 32 rows of k and v.
///
/// Heads with more columns than `kDepth` are read in parts: a score is added up over the parts of q and k, and the walk over k is repeated for each
/// part of the result. Scores are thus computed once for each `kDepth` columns of v, but neither shared memory nor registers grow with heads.
/// @tparam kDepth_ columns of q, k, v and the result, rounded up to a multiple of 4, or of a part of them
template <int kDepth_>
struct AttentionSimtTile {
  static constexpr int kDepth = kDepth_, kRows = 32, kCols = 32, kTeam = 4, kThreads = kRows * kTeam;
  static constexpr int kPitch = kDepth + 1;
  template <class A>
  static constexpr int shared_bytes() { return int(sizeof(A)) * (2 * kRows * kPitch + kRows * (kCols + 1)); }
  static_assert(kDepth % kTeam == 0);
};

/// @brief Loads columns from `first` on of rows from `row0` on; `rows` and `columns` exist in all, the rest is zero.
template <class Tile, class A, class Rows>
__device__ __forceinline__ void load_rows_simt(A* to, const Rows& from, int row0, int rows, int first, int columns) {
  for (int id = int(threadIdx.x); id < Tile::kRows * Tile::kDepth; id += Tile::kThreads) {
    const int row = id / Tile::kDepth, col = id % Tile::kDepth;
    to[row * Tile::kPitch + col] = row0 + row < rows && first + col < columns ? convert<A>(from.at(row0 + row)[first + col]) : A(0);
  }
}

/// @brief Rows [row0, row0 + Tile::kRows) of a head, of which those from `first_row` on are written to `o`, which points to row 0.
/// @tparam Rows,KvRows where the rows of q and those of k and v lie: `at(row)`
/// @param numbers what is written in place of the rows, or `PlainRows`; rows with a scale have at most `Tile::kDepth` columns
template <class Tile, bool kCausal, bool kWindow, class T, class S, class Rows, class KvRows, class O, class W = PlainRows>
__device__ __forceinline__ void attention_simt_rows(const AttentionArgs<T, S>& args, const Rows& q, const KvRows& k, const KvRows& v, O* o,
                                                    int row0, int first_row, int64_t head, int64_t batch, const W& numbers = {}) {
  using A = compute_t<T>;
  constexpr int kTeam = Tile::kTeam, kCols = Tile::kCols, kPitch = Tile::kPitch;
  constexpr bool kSoftmax = S::kSoftmax;
  AIT_DYNAMIC_SHARED(16, shared_simt);
  A* q_tile = reinterpret_cast<A*>(shared_simt);
  A* kv_tile = q_tile + Tile::kRows * kPitch;  // k, then v of the same step
  A* p_tile = kv_tile + Tile::kRows * kPitch;  // [kRows][kCols + 1]

  const int row = int(threadIdx.x) / kTeam, member = int(threadIdx.x) % kTeam;
  const int my_row = row0 + row;
  const int shift = args.shift;
  int first, visible;
  args.template columns<kCausal, kWindow>(row0, Tile::kRows, first, visible);
  const ScoreLine<S> line(args.scores, batch, head, my_row < args.rows ? my_row : args.rows - 1);
  const bool whole = args.depth <= Tile::kDepth;
  if (whole) load_rows_simt<Tile>(q_tile, q, row0, args.rows, 0, args.depth);

  for (int begin = 0; begin < args.width; begin += Tile::kDepth) {  // of the columns of the result
    A out[Tile::kDepth / kTeam];
#pragma unroll
    for (int i = 0; i < Tile::kDepth / kTeam; ++i) out[i] = A(0);
    A top = A(-INFINITY), sum = A(0);
    for (int col0 = first; col0 < visible; col0 += kCols) {
      A score[kCols / kTeam];
      A high = A(-INFINITY);
#pragma unroll
      for (int c = 0; c < kCols / kTeam; ++c) score[c] = A(0);
      int depth = 0;
      do {
        __syncthreads();
        if (!whole) load_rows_simt<Tile>(q_tile, q, row0, args.rows, depth, args.depth);
        load_rows_simt<Tile>(kv_tile, k, col0, args.cols, depth, args.depth);
        __syncthreads();
        for (int d = 0; d < Tile::kDepth; ++d) {
          const A x = q_tile[row * kPitch + d];
#pragma unroll
          for (int c = 0; c < kCols / kTeam; ++c) score[c] += x * kv_tile[(c * kTeam + member) * kPitch + d];
        }
        depth += Tile::kDepth;
      } while (depth < args.depth);
#pragma unroll
      for (int c = 0; c < kCols / kTeam; ++c) {
        const int col = col0 + c * kTeam + member;
        score[c] *= A(args.scale);
        score[c] = args.template sees<kCausal, kWindow>(my_row + shift, col) ? line.changed(score[c], col) : A(kSoftmax ? -INFINITY : 0);
        high = score[c] > high || score[c] != score[c] ? score[c] : high;
      }
#pragma unroll
      for (int mask = 1; mask < kTeam; mask *= 2) {
        const A other = shuffle_xor(high, mask);
        high = other > high || other != other ? other : high;
      }
      const A now = high > top || high != high ? high : top;
      const A base = now == A(-INFINITY) ? A(0) : now;
      const A keep = kSoftmax ? ait::exp(top - base) : A(1);
      top = now;
      A part = A(0);
#pragma unroll
      for (int c = 0; c < kCols / kTeam; ++c) {
        const A p = kSoftmax ? ait::exp(score[c] - base) : score[c];
        p_tile[row * (kCols + 1) + c * kTeam + member] = p;
        part += p;
      }
#pragma unroll
      for (int mask = 1; mask < kTeam; mask *= 2) part += shuffle_xor(part, mask);
      sum = sum * keep + part;
      __syncthreads();
      load_rows_simt<Tile>(kv_tile, v, col0, args.cols, begin, args.width);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < Tile::kDepth / kTeam; ++i) out[i] *= keep;
      for (int c = 0; c < kCols; ++c) {
        const A p = p_tile[row * (kCols + 1) + c];
#pragma unroll
        for (int i = 0; i < Tile::kDepth / kTeam; ++i) out[i] += p * kv_tile[c * kPitch + i * kTeam + member];
      }
    }
    if (begin + Tile::kDepth >= args.width) allow_next();

    const A scale_out = args.share(sum);
    A most = A(0);
    if constexpr (stores_numbers<W>) {  // all lanes of a team are here
#pragma unroll
      for (int i = 0; i < Tile::kDepth / kTeam; ++i) most = ait::max(most, ait::abs(out[i] * scale_out));
#pragma unroll
      for (int mask = 1; mask < kTeam; mask *= 2) most = ait::max(most, shuffle_xor(most, mask));
    }
    if (my_row < first_row || my_row >= args.rows) continue;
    if (member == 0 && begin == 0) args.log_sums.store(batch, head, my_row, top + ait::log(sum));
    if constexpr (stores_numbers<W>) {
      const float scale = numbers.of_row(float(most));
      if (member == 0 && begin == 0) numbers.scales.store(batch, head, my_row, scale);
      auto* const at = numbers.o.data + batch * numbers.o.batch + head * numbers.o.head + int64_t(my_row) * numbers.o.row + begin;
#pragma unroll
      for (int i = 0; i < Tile::kDepth / kTeam; ++i) {
        if (begin + i * kTeam + member < args.width) at[i * kTeam + member] = W::number(float(out[i] * scale_out), scale);
      }
    } else {
      auto* const to = o + int64_t(my_row) * rows_of(numbers, args.o).row + begin;
#pragma unroll
      for (int i = 0; i < Tile::kDepth / kTeam; ++i) {
        if (begin + i * kTeam + member < args.width) to[i * kTeam + member] = convert<std::remove_reference_t<decltype(*to)>>(out[i] * scale_out);
      }
    }
  }
}

template <class Tile, bool kCausal, bool kWindow, bool kTwo, class T, class S, class W>
__global__ void __launch_bounds__(Tile::kThreads) attention_simt_kernel(const AttentionArgs<T, S> args, const W numbers) {
  wait_for_previous();
  const int64_t head = blockIdx.y, batch = blockIdx.z, kv = head / args.group;
  const HeadRows<T, false> q(args.q, args.q, 0, batch, head);
  const HeadRows<T, kTwo> k = args.template k_rows<kTwo>(batch, kv), v = args.template v_rows<kTwo>(batch, kv);
  if constexpr (stores_numbers<W>) {
    attention_simt_rows<Tile, kCausal, kWindow>(args, q, k, v, args.o.data, int(blockIdx.x) * Tile::kRows, 0, head, batch, numbers);
  } else {
    const auto o = rows_of(numbers, args.o);
    attention_simt_rows<Tile, kCausal, kWindow>(args, q, k, v, o.data + batch * o.batch + head * o.head, int(blockIdx.x) * Tile::kRows, 0, head,
                                                batch, numbers);
  }
}

/// @brief Launches `attention_simt_kernel`. Heads may have any number of columns.
/// @param numbers what is written in place of `o`, of heads of at most `Tile::kDepth` columns, or `PlainRows`
template <class Tile, bool kCausal, bool kWindow, class T, class S, class Pieces = OnePiece, class W = PlainRows>
int32_t attention_simt(const Context& ctx, const AttentionShape& shape, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                       const S& scores, const LogSums<compute_t<T>>& log_sums = {}, Pieces pieces = {}, const W& numbers = {}) {
  if (shape.rows == 0 || shape.width == 0 || shape.batch * shape.heads == 0) return 0;
  if (shape.heads > 65535 || shape.batch > 65535) return ctx.fail("attention: more than 65535 heads or batches");
  LaunchConfig config;
  config.grid = dim3(grid_size((shape.rows + Tile::kRows - 1) / Tile::kRows), grid_size(shape.heads), grid_size(shape.batch));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = uint32_t(Tile::template shared_bytes<compute_t<T>>());
  config.dependent = true;
  constexpr bool kTwo = !std::is_same_v<Pieces, OnePiece>;
  return launch(ctx, config, attention_simt_kernel<Tile, kCausal, kWindow, kTwo, T, S, W>,
                attention_args(shape, q, k, v, o, scores, log_sums, pieces), numbers);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_ATTENTION_SIMT_CUH_
