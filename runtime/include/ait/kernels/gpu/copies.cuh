/// @file copies.cuh
/// @brief Several copies between strided buffers in one launch, from a table of pieces in the arguments of the kernel.
#ifndef AIT_KERNELS_GPU_COPIES_CUH_
#define AIT_KERNELS_GPU_COPIES_CUH_

#include <stddef.h>
#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/copy_plan.h"
#include "ait/kernels/gpu/copy.cuh"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

namespace detail {

inline constexpr int kTableRank = 3;                   ///< dims of a piece in the table
inline constexpr int kTableThreads = 256;
inline constexpr uint32_t kTableWords = 4 * kTableThreads;  ///< words that a block copies
inline constexpr int64_t kOwnLaunch = 256 * 1024;      ///< bytes from which a piece that is no run of whole words is copied by its own launch

/// A piece of the table: a copy of words of `width` bytes, the strides in words.
struct TablePiece {
  const void* in;
  void* out;
  uint32_t words;
  uint16_t width, rank;
  Divider sizes[kTableRank - 1];  ///< of the dims behind the first
  int64_t in_strides[kTableRank], out_strides[kTableRank];
};

/// The pieces of a launch, and the first block of each.
template <int kArgumentBytes>
struct PieceTable {
  static constexpr int kPieces = (kArgumentBytes - 16) / int(sizeof(TablePiece) + sizeof(uint32_t));

  uint32_t count;
  uint32_t first[kPieces + 1];
  TablePiece pieces[kPieces];
};

template <class Word>
__device__ __forceinline__ void copy_words(const TablePiece& piece, uint32_t block) {
  const Word* const in = static_cast<const Word*>(piece.in);
  Word* const out = static_cast<Word*>(piece.out);
#pragma unroll
  for (uint32_t i = 0; i < kTableWords; i += kTableThreads) {
    uint32_t linear = block * kTableWords + i + threadIdx.x;
    if (linear >= piece.words) return;
    int64_t from = 0, to = 0;
    for (int d = piece.rank - 1; d > 0; --d) {
      const uint32_t quotient = piece.sizes[d - 1].divide(linear);
      const int64_t coordinate = linear - quotient * piece.sizes[d - 1].divisor;
      from += coordinate * piece.in_strides[d];
      to += coordinate * piece.out_strides[d];
      linear = quotient;
    }
    out[to + linear * piece.out_strides[0]] = in[from + linear * piece.in_strides[0]];
  }
}

template <int kArgumentBytes>
__global__ void __launch_bounds__(kTableThreads) copy_pieces_kernel(const AIT_GRID_CONSTANT PieceTable<kArgumentBytes> table) {
  wait_for_previous();
  allow_next();
  uint32_t low = 0, high = table.count;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (table.first[middle] <= blockIdx.x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const TablePiece& piece = table.pieces[low];
  const uint32_t block = blockIdx.x - table.first[low];
  switch (piece.width) {
    case 16: return copy_words<uint4>(piece, block);
    case 8: return copy_words<uint2>(piece, block);
    case 4: return copy_words<uint32_t>(piece, block);
    case 2: return copy_words<uint16_t>(piece, block);
    default: return copy_words<uint8_t>(piece, block);
  }
}

/// Whether a piece is copied by the table: it has few dims and is small, or consists of whole words of 16 bytes.
template <size_t kBytes>
bool fits_table(const CopyPiece<kBytes>& piece, int64_t bytes) {
  const int64_t elements = piece.elements();
  return piece.plan.rank <= kTableRank && elements < int64_t(1) << 31 &&
         (elements * static_cast<int64_t>(kBytes) < kOwnLaunch || bytes >= 16);
}

/// The piece in words of `bytes` bytes.
template <size_t kBytes>
TablePiece table_piece(const CopyPiece<kBytes>& piece, int64_t bytes) {
  const int64_t factor = bytes / static_cast<int64_t>(kBytes);
  TablePiece made = {};
  made.in = piece.in;
  made.out = piece.out;
  made.words = static_cast<uint32_t>(piece.elements() / factor);
  made.width = static_cast<uint16_t>(bytes);
  made.rank = static_cast<uint16_t>(piece.plan.rank);
  for (int d = 0; d < piece.plan.rank; ++d) {
    const bool whole = d == piece.plan.rank - 1 && factor > 1;  // contiguous on both sides
    const CopyDim& dim = piece.plan.dims[d];
    if (d > 0) made.sizes[d - 1] = Divider(static_cast<uint32_t>(whole ? dim.size / factor : dim.size));
    made.in_strides[d] = whole ? 1 : dim.in / factor;
    made.out_strides[d] = whole ? 1 : dim.out / factor;
  }
  return made;
}
}  // namespace detail

/// @brief The copies of all pieces, none of which overlaps another, in launches of up to `kArgumentBytes` of arguments. Large pieces that the table
/// would copy in small words get a launch of their own.
template <int kArgumentBytes, size_t kBytes, size_t kCount>
int32_t copies(const Context& ctx, const CopyPiece<kBytes> (&pieces)[kCount]) {
  using Table = detail::PieceTable<kArgumentBytes>;
  static_assert(sizeof(Table) <= kArgumentBytes, "a table must fit into the arguments of a kernel");
  static_assert(kBytes <= 16, "the widest word has 16 bytes");
  for (size_t at = 0; at < kCount;) {
    Table table;
    table.count = 0;
    uint32_t blocks = 0;
    for (; at < kCount && table.count < Table::kPieces; ++at) {
      CopyPiece<kBytes> piece = pieces[at];
      if (piece.plan.empty) continue;
      if (piece.plan.rank == 0) piece.plan.dims[piece.plan.rank++] = {1, 1, 1};
      const int64_t bytes = detail::access_bytes(piece.plan, kBytes, piece.in, piece.out);
      if (!detail::fits_table(piece, bytes)) {
        if (const int32_t status = copy(ctx, piece)) return status;
        continue;
      }
      const detail::TablePiece made = detail::table_piece(piece, bytes < static_cast<int64_t>(kBytes) ? int64_t(kBytes) : bytes);
      table.first[table.count] = blocks;
      table.pieces[table.count++] = made;
      blocks += (made.words + detail::kTableWords - 1) / detail::kTableWords;
    }
    if (table.count == 0) continue;
    LaunchConfig config;
    config.grid = dim3(blocks);
    config.block = dim3(detail::kTableThreads);
    config.dependent = true;
    if (const int32_t status = launch(ctx, config, detail::copy_pieces_kernel<kArgumentBytes>, table)) return status;
  }
  return 0;
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_COPIES_CUH_
