/// @file gemm_grouped.cuh
/// @brief Several products in one launch: `gemm_grouped` computes problems of different sizes; `gemm_ragged` computes groups of rows of one matrix,
/// each times its own matrix b. The ends of the groups are known only when the kernel runs.
#ifndef AIT_KERNELS_GPU_GEMM_GROUPED_CUH_
#define AIT_KERNELS_GPU_GEMM_GROUPED_CUH_

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/gemm_mma.cuh"
#include "ait/kernels/gpu/gemm_simt.cuh"

#if defined(AIT_GPU)
namespace ait::gpu {

/// @brief Launches the kernel of tiles on several products, one block for each tile that there can be.
template <class Tile, bool kAK, bool kBK, class F, class T, class Launch>
int32_t launch_products(const Context& ctx, const Launch& products, int64_t blocks, bool aligned) {
  LaunchConfig config;
  config.grid = dim3(grid_size(blocks));
  config.block = dim3(Tile::kThreads);
  config.shared_bytes = Tile::kSharedBytes;
  config.dependent = true;
  if constexpr (std::is_same_v<Tile, SimtTile>) {
    return launch(ctx, config, gemm_simt_kernel<F, 1, T, Launch>, products);
  } else {
#if defined(AIT_CUDA)
    return aligned ? launch(ctx, config, gemm_mma_kernel<Tile, kAK, kBK, true, F, Launch>, products)
                   : launch(ctx, config, gemm_mma_kernel<Tile, kAK, kBK, false, F, Launch>, products);
#endif
  }
}

// ** problems of different sizes **

/// @brief One problem of `gemm_grouped`.
template <class T, class D, class... E>
struct GroupedProblem {
  GemmShape shape;
  Matrices<const T> a, b;
  Matrices<D> d;
  Operands<E...> operands;
};

template <class T, class D, class... E>
inline GroupedProblem<T, D, E...> grouped_problem(const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d,
                                                  Operands<E...> operands) {
  return {shape, a, b, d, operands};
}

/// @brief A launch of several products: the problems, and the first block of each.
template <class T, class D, class... E>
struct GroupedProducts {
  /// The problems that fit into 4 KiB, the size of kernel arguments that every device accepts.
  static constexpr int kProblems = 3840 / int(sizeof(GemmArgs<T, D, E...>) + sizeof(int));
  static_assert(kProblems > 0, "a problem with so many extra operands does not fit into the arguments of a kernel");

  int count;
  int first[kProblems + 1];
  GemmArgs<T, D, E...> problems[kProblems];

  template <class Tile>
  __device__ __forceinline__ BlockTile<T> find(uint32_t block) const {
    int problem = 0;
    while (problem + 1 < count && int(block) >= first[problem + 1]) ++problem;
    const GemmArgs<T, D, E...>& args = problems[problem];
    return {TileIndex(block - uint32_t(first[problem]), args.tiles_m, args.tiles_n).of(args, Tile::kM, Tile::kCols), problem};
  }

  __device__ __forceinline__ const GemmArgs<T, D, E...>& product(int number) const { return problems[number]; }
};

/// @brief d_i = F(a_i @ b_i, operands_i...) for every problem, in launches of up to `GroupedProducts::kProblems`.
/// @tparam kAK, kBK whether K is the contiguous dim of every a and of every b; with `SimtTile` any strides are allowed
template <class Tile, bool kAK, bool kBK, class F, size_t kCount, class T, class D, class... E>
int32_t gemm_grouped(const Context& ctx, const GroupedProblem<T, D, E...> (&problems)[kCount]) {
  using Launch = GroupedProducts<T, D, E...>;
  for (size_t at = 0; at < kCount;) {
    Launch products = {};
    bool aligned = true;
    int64_t blocks = 0;
    for (; at < kCount && products.count < Launch::kProblems; ++at) {
      const GroupedProblem<T, D, E...>& p = problems[at];
      if (p.shape.m == 0 || p.shape.n == 0) continue;
      const GemmArgs<T, D, E...> found = gemm_args<1>(p.shape, p.a, p.b, p.d, p.operands, Tile::kM, Tile::kCols);
      aligned = aligned && found.a_aligned && found.b_aligned;
      products.problems[products.count] = found;
      products.first[products.count++] = int(blocks);
      blocks += int64_t(found.tiles_m) * found.tiles_n;
    }
    if (products.count == 0) continue;
    products.first[products.count] = int(blocks);
    const int32_t status = launch_products<Tile, kAK, kBK, F, T>(ctx, products, blocks, aligned);
    if (status != 0) return status;
  }
  return 0;
}

// ** groups of rows **

/// @brief The group of a tile. The tiles of a group begin at its first row, so a tile never covers two groups.
struct RaggedTile {
  int group;     ///< for rows after the last group, the number of groups
  int m0, m;     ///< the first row of the tile; the end of the group
  bool exists;

  /// The tile with number `tile`. An end that is below the previous one or outside of the rows is clamped.
  template <class I>
  __device__ __forceinline__ RaggedTile(const I* ends, int groups, int rows, int tile, int height) {
    m0 = 0, m = 0, exists = false;
    for (group = 0; group <= groups; ++group) {
      const I found = group < groups ? ends[group] : I(rows);
      const int end = found > I(rows) ? rows : (found > I(m) ? int(found) : m);
      const int tiles = (end - m + height - 1) / height;
      m0 = m + tile * height, m = end;
      if ((exists = tile < tiles)) return;
      tile -= tiles;
    }
  }
};

/// @brief A launch of the products of groups of rows, whose ends are read from memory.
template <class I, class T, class D, class... E>
struct RaggedProducts {
  GemmArgs<T, D, E...> args;
  const I* ends;
  int groups;

  template <class Tile>
  __device__ __forceinline__ BlockTile<T> find(uint32_t block) const {
    wait_for_previous();
    const TileIndex index(block, args.tiles_m, args.tiles_n);
    const RaggedTile tile(ends, groups, args.m, index.m, Tile::kM);
    const bool sums = tile.group < groups;
    const T* const b = args.b.data + (sums ? tile.group : 0) * args.b.inner;
    return {{0, 0, args.a.data, b, tile.m0, index.n * Tile::kCols, tile.m, sums ? args.k : 0, args.n}, 0, tile.exists};
  }

  __device__ __forceinline__ const GemmArgs<T, D, E...>& product(int) const { return args; }
};

/// @brief d = F(a[begin:end] @ b[group], operands...) for each group of rows; rows after the last group are F(0, operands...).
///
/// `shape` is that of all rows, `b.inner` the distance of the matrices b. Group g has the rows from the end of group g - 1 up to `ends[g]`.
template <class Tile, bool kAK, bool kBK, class F, class I, class T, class D, class... E>
int32_t gemm_ragged(const Context& ctx, const GemmShape& shape, Matrices<const T> a, Matrices<const T> b, Matrices<D> d, Operands<E...> operands,
                    const I* ends, int64_t groups) {
  if (shape.m == 0 || shape.n == 0) return 0;
  GemmArgs<T, D, E...> args = gemm_args<1>(shape, a, b, d, operands, Tile::kM, Tile::kCols);
  const int64_t filled = groups + 1 < shape.m ? groups + 1 : shape.m;  // groups that can have rows
  args.tiles_m = int((shape.m + filled * (Tile::kM - 1)) / Tile::kM);
  const RaggedProducts<I, T, D, E...> products{args, ends, int(groups)};
  return launch_products<Tile, kAK, kBK, F, T>(ctx, products, int64_t(args.tiles_m) * args.tiles_n, args.a_aligned && args.b_aligned);
}

}  // namespace ait::gpu
#endif  // AIT_GPU
#endif  // AIT_KERNELS_GPU_GEMM_GROUPED_CUH_
