/// @file gemm_epilogue.cuh
/// @brief The parts that the native gemm kernels share: the description of a problem, extra operands of the epilogue, and the store of a result.
#ifndef AIT_KERNELS_GPU_GEMM_EPILOGUE_CUH_
#define AIT_KERNELS_GPU_GEMM_EPILOGUE_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"
#include "ait/kernels/further.h"
#include "ait/types.h"

namespace ait::gpu {

/// @brief A batch of matrices. Element (i, j) of batch (o, b) is `data[o * outer + b * inner + i * row + j * col]`; a stride of 0 broadcasts.
template <class T>
struct Matrices {
  T* data;
  int64_t row, col;
  int64_t outer = 0, inner = 0;
};

/// @brief A number of 8 bits of an operand of a product; its type names the element types of both operands: integers or floats.
template <class A, class B>
struct Byte {
  using First = A;
  using Second = B;
  using Sum = std::conditional_t<is_float8<A>, float, int32_t>;
  static_assert(is_float8<A> == is_float8<B>, "integers are multiplied by integers, floats by floats");
  uint8_t bits;
};

template <class T>
inline constexpr bool is_byte = false;
template <class A, class B>
inline constexpr bool is_byte<Byte<A, B>> = true;

/// @brief Whether the tensor cores add products of `T` with fewer bits than a float has, so that sums must not become long: about 14 bits, of
/// products of 8-bit floats.
template <class T>
inline constexpr bool has_short_sums = false;
template <class A, class B>
inline constexpr bool has_short_sums<Byte<A, B>> = is_float8<A>;

/// @brief Two and four neighbouring sums in one access.
template <class A>
struct alignas(8) SumPair {
  A v[2];
};
template <class A>
struct alignas(16) SumQuad {
  A v[4];
};

/// @brief The type of the sums of products of `T`, and of its elements in ordinary arithmetic.
template <class T>
struct SumOf {
  using Type = compute_t<T>;
};
template <class A, class B>
struct SumOf<Byte<A, B>> {
  using Type = typename Byte<A, B>::Sum;
};
template <class T>
using sum_t = typename SumOf<T>::Type;

/// @brief An element of operand a (`kOperand` 0) or b (1) as a number.
template <int kOperand, class T>
__device__ __forceinline__ sum_t<T> factor(T element) {
  return convert<compute_t<T>>(element);
}
template <int kOperand, class A, class B>
__device__ __forceinline__ sum_t<Byte<A, B>> factor(Byte<A, B> element) {
  return static_cast<sum_t<Byte<A, B>>>(bit_cast<std::conditional_t<kOperand == 0, A, B>>(element.bits));
}

/// @brief Matrices of numbers of 8 bits as matrices of bytes.
template <class T, class From>
inline Matrices<const T> as_bytes(const Matrices<From>& x) {
  static_assert(sizeof(From) == 1);
  return {reinterpret_cast<const T*>(x.data), x.row, x.col, x.outer, x.inner};
}

/// @brief Whether both are int8_t or uint8_t, or both floats of 8 bits.
template <class A, class B>
inline constexpr bool are_bytes = ((std::is_same_v<A, int8_t> || std::is_same_v<A, uint8_t>) && (std::is_same_v<B, int8_t> || std::is_same_v<B, uint8_t>)) ||
                                  (is_float8<A> && is_float8<B>);

/// @brief Whether 16-byte accesses along dimension "unit" are safe: it is contiguous and each of its rows starts 16-byte aligned.
template <class T>
inline bool rows_aligned(const Matrices<T>& x, int64_t unit, int64_t other) {
  constexpr int64_t kElements = 16 / sizeof(T);
  return unit == 1 && reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && other % kElements == 0 && x.outer % kElements == 0 &&
         x.inner % kElements == 0;
}

/// @brief The scales of a and b^T: a number for each `group` elements along K of a row of a, and of `block` rows of b^T.
struct BlockScales {
  const float* rows;     ///< [m, groups]
  const float* columns;  ///< [n / block, groups], rounded up
  int groups, group, block;
};

/// @brief The scales of a product, whose sizes are below 2^31.
inline BlockScales block_scales(const float* rows, const float* columns, int64_t groups, int64_t group, int64_t block) {
  return {rows, columns, int(groups), int(group), int(block)};
}

/// @brief Sizes of `d[o, b] = epilogue(a[o, b] @ b[o, b])`: d is [outer, inner, m, n].
struct GemmShape {
  int64_t m, n, k;
  int64_t outer = 1, inner = 1;
};

/// The result as the accumulator: an epilogue that does nothing.
struct NoEpilogue {
  template <class A, class O>
  static AIT_FN void apply(A acc, O& out) {
    out = static_cast<O>(acc);
  }
};

/// Columns that one thread finishes at a time.
inline constexpr int kSpan = 8;

template <class T>
struct Span {
  T v[kSpan];
};

/// @brief As much of `kSpan` neighbouring elements as one access takes.
template <class T>
inline constexpr int kPieces = kSpan * sizeof(T) < 16 ? 1 : kSpan * sizeof(T) / 16;

template <class T>
struct alignas(kSpan * sizeof(T) < 16 ? kSpan * sizeof(T) : 16) Piece {
  T v[kSpan / kPieces<T>];
};

/// @brief `kSpan` neighbouring elements as they lie in memory.
template <class T>
struct RawSpan {
  Piece<T> pieces[kPieces<T>];
};

/// @brief Reads `kSpan` neighbouring elements, of which `valid` exist; the others are not defined.
template <class T>
__device__ __forceinline__ void load_span(const T* from, int64_t stride, bool aligned, int valid, RawSpan<T>& to) {
  if (aligned && valid >= kSpan) {
#pragma unroll
    for (int p = 0; p < kPieces<T>; ++p) to.pieces[p] = reinterpret_cast<const Piece<T>*>(from)[p];
  } else {
#pragma unroll
    for (int i = 0; i < kSpan; ++i) {
      if (i < valid) to.pieces[i / (kSpan / kPieces<T>)].v[i % (kSpan / kPieces<T>)] = from[i * stride];
    }
  }
}

/// @brief Writes the first `valid` of `kSpan` results, rounded once to `T`.
template <class T>
__device__ __forceinline__ void store_span(T* to, int64_t stride, bool aligned, int valid, const Span<compute_t<T>>& from) {
  if (aligned && valid >= kSpan) {
#pragma unroll
    for (int p = 0; p < kPieces<T>; ++p) {
      Piece<T> piece;
#pragma unroll
      for (int i = 0; i < kSpan / kPieces<T>; ++i) piece.v[i] = convert<T>(from.v[p * (kSpan / kPieces<T>) + i]);
      reinterpret_cast<Piece<T>*>(to)[p] = piece;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kSpan; ++i) {
      if (i < valid) to[i * stride] = convert<T>(from.v[i]);
    }
  }
}

/// @brief Where a span is: the batch, the row, its first column, and how many of its columns exist.
struct SpanPlace {
  int64_t outer, inner, row, col;
  int valid;

  template <class T>
  __device__ __forceinline__ T* of(const Matrices<T>& x) const {
    return x.data + outer * x.outer + inner * x.inner + row * x.row + col * x.col;
  }
};

/// @brief The extra operands of an epilogue, then its further results: `fetch` reads a span of each operand, `run` hands them to the functor
/// lane by lane and writes the further results.
template <class... E>
struct Operands {
  struct Raw {};

  __device__ __forceinline__ void fetch(int64_t, int64_t, int64_t, int64_t, int, Raw&) const {}

  template <class F, class A, class O, class... Loaded>
  __device__ __forceinline__ void run(const SpanPlace& at, const Raw&, const Span<A>& acc, Span<O>& out, const Loaded&... loaded) const {
    finish<F>(at, acc, loaded..., out);
  }

  /// Runs F on spans of the sums, the operands and all results.
  template <class F, class... Spans>
  __device__ __forceinline__ void finish(const SpanPlace&, Spans&... spans) const {
#pragma unroll
    for (int i = 0; i < kSpan; ++i) F::apply(spans.v[i]...);
  }
};

template <class E, class... Rest>
struct Operands<E, Rest...> {
  Matrices<const E> first;
  bool aligned;
  Operands<Rest...> rest;

  struct Raw {
    RawSpan<E> first;
    typename Operands<Rest...>::Raw rest;
  };

  /// Reads columns col, col + 1 ... of a row, of which `valid` exist.
  __device__ __forceinline__ void fetch(int64_t outer, int64_t inner, int64_t row, int64_t col, int valid, Raw& raw) const {
    load_span<E>(SpanPlace{outer, inner, row, col, valid}.of(first), first.col, aligned, valid, raw.first);
    rest.fetch(outer, inner, row, col, valid, raw.rest);
  }

  template <class F, class A, class O, class... Loaded>
  __device__ __forceinline__ void run(const SpanPlace& at, const Raw& raw, const Span<A>& acc, Span<O>& out, const Loaded&... loaded) const {
    Span<compute_t<E>> values;
#pragma unroll
    for (int i = 0; i < kSpan; ++i) {
      values.v[i] = convert<compute_t<E>>(raw.first.pieces[i / (kSpan / kPieces<E>)].v[i % (kSpan / kPieces<E>)]);
    }
    rest.template run<F>(at, raw.rest, acc, out, loaded..., values);
  }
};

template <class D, class... Rest>
struct Operands<Further<D>, Rest...> {
  Matrices<D> first;
  bool aligned;
  Operands<Rest...> rest;

  struct Raw {};

  __device__ __forceinline__ void fetch(int64_t, int64_t, int64_t, int64_t, int, Raw&) const {}

  template <class F, class A, class O, class... Loaded>
  __device__ __forceinline__ void run(const SpanPlace& at, const Raw&, const Span<A>& acc, Span<O>& out, const Loaded&... loaded) const {
    finish<F>(at, acc, loaded..., out);
  }

  template <class F, class... Spans>
  __device__ __forceinline__ void finish(const SpanPlace& at, Spans&... spans) const {
    Span<compute_t<D>> out;
    rest.template finish<F>(at, spans..., out);
    store_span<D>(at.of(first), first.col, aligned, at.valid, out);
  }
};

/// @brief Gathers the extra operands of an epilogue, in the order of the region's arguments, and the further results, of which the elements are
/// not const.
inline Operands<> operands() { return {}; }

template <class T, class... Rest>
inline Operands<typename OperandOf<T>::Type, typename OperandOf<Rest>::Type...> operands(Matrices<T> first, Matrices<Rest>... rest) {
  return {first, rows_aligned(first, first.col, first.row), operands(rest...)};
}

/// @brief Everything a native gemm kernel is given.
template <class T, class D, class... E>
struct GemmArgs {
  int m, n, k;
  int inner;              ///< batches per outer batch
  int tiles_m, tiles_n;
  Matrices<const T> a, b;
  Matrices<D> d;
  bool a_aligned, b_aligned, d_aligned;  ///< 16-byte accesses are safe
  Operands<E...> operands;

  /// Finishes `kSpan` neighbouring columns of a row that exists: the epilogue, one rounding, the store.
  /// @param others further sums that the epilogue takes
  template <class F, class A, class... Others>
  __device__ __forceinline__ void finish(int64_t o, int64_t i, int row, int col, const Span<A>& acc,
                                         const typename Operands<E...>::Raw& raw, const Others&... others) const {
    finish_some<F>(o, i, row, col, n - col, acc, raw, others...);
  }

  /// The same for the first `valid` of them.
  template <class F, class A, class... Others>
  __device__ __forceinline__ void finish_some(int64_t o, int64_t i, int row, int col, int valid, const Span<A>& acc,
                                              const typename Operands<E...>::Raw& raw, const Others&... others) const {
    const SpanPlace at{o, i, row, col, valid};
    Span<compute_t<D>> out;
    operands.template run<F>(at, raw, acc, out, others...);
    store_span<D>(at.of(d), d.col, d_aligned, valid, out);
  }
};

/// @brief The work of a block: one tile of one matrix of results.
template <class T>
struct TileWork {
  int64_t outer, inner;  ///< the batch of d and of the extra operands
  const T *a, *b;        ///< the matrices of the batch
  int m0, n0;            ///< the first row and column of the tile
  int m, k, n;           ///< where rows end, how many products a sum has, and where columns end
};

/// @brief Which tile of which batch a block computes. Tiles go in groups of 8 along m, so that neighbours in time share operands in L2.
struct TileIndex {
  int batch, m, n;

  __device__ __forceinline__ TileIndex(uint32_t block, int tiles_m, int tiles_n) {
    const uint32_t tiles = uint32_t(tiles_m) * uint32_t(tiles_n);
    batch = int(block / tiles);
    const uint32_t tile = block % tiles;
    const uint32_t group = 8u * uint32_t(tiles_n);
    const uint32_t first = (tile / group) * 8u;
    const uint32_t height = uint32_t(tiles_m) - first < 8u ? uint32_t(tiles_m) - first : 8u;
    m = int(first + (tile % group) % height);
    n = int((tile % group) / height);
  }

  /// The tile of a product, of `tile_m` x `tile_n` results.
  template <class T, class D, class... E>
  __device__ __forceinline__ TileWork<T> of(const GemmArgs<T, D, E...>& args, int tile_m, int tile_n) const {
    const int64_t outer = batch / args.inner, inner = batch % args.inner;
    return {outer, inner, args.a.data + outer * args.a.outer + inner * args.a.inner, args.b.data + outer * args.b.outer + inner * args.b.inner,
            m * tile_m, n * tile_n, args.m, args.k, args.n};
  }
};

/// @brief What a block computes: a tile of a product, of which `split` blocks of a cluster each sum a part.
template <class T>
struct BlockTile {
  TileWork<T> work;
  int number = 0;           ///< of the product in its launch
  bool exists = true;       ///< false: the block has nothing to do
  int split = 1, rank = 0;  ///< the blocks that share the K of the tile, and which of them this one is
  bool early = false;       ///< whether b may be read before the launch before has ended
};

/// @brief A launch of one product. The kernels of tiles take a launch: `find` gives the tile of a block, `product` the arguments of its product.
///
/// `find` waits for the launch before if it reads memory. It returns no reference: clang for HIP would copy the arguments to scratch memory.
template <class T, class D, class... E>
struct OneProduct {
  GemmArgs<T, D, E...> args;

  template <class Tile>
  __device__ __forceinline__ BlockTile<T> find(uint32_t block) const {
    return {TileIndex(block, args.tiles_m, args.tiles_n).of(args, Tile::kM, Tile::kCols)};
  }

  __device__ __forceinline__ const GemmArgs<T, D, E...>& product(int) const { return args; }
};

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_GEMM_EPILOGUE_CUH_
