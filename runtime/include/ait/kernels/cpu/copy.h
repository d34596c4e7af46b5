/// @file copy.h
/// @brief Copies between strided buffers: permute, slice, concat, expand.
#ifndef AIT_KERNELS_CPU_COPY_H_
#define AIT_KERNELS_CPU_COPY_H_

#include <stdint.h>
#include <string.h>

#include "ait/context.h"
#include "ait/kernels/copy_plan.h"
#include "ait/parallel.h"

namespace ait::cpu {

namespace detail {
inline constexpr int64_t kTile = 32;
inline constexpr int64_t kParallelBytes = 256 * 1024;
inline constexpr int64_t kRunBytes = 64 * 1024;  // longer runs are cut, so that threads share them

/// The offsets of both sides at the linear index `linear` over `count` dims.
struct Offsets {
  int64_t in = 0, out = 0;
  Offsets(const CopyDim* dims, int count, int64_t linear) {
    for (int d = count - 1; d >= 0; --d) {
      const int64_t quotient = linear / dims[d].size;
      const int64_t coordinate = linear - quotient * dims[d].size;
      in += coordinate * dims[d].in;
      out += coordinate * dims[d].out;
      linear = quotient;
    }
  }
};

/// The offsets of both sides at one linear index after the other over `count` dims, without a division for each.
class OffsetWalk {
 public:
  OffsetWalk(const CopyDim* dims, int count, int64_t linear) : dims_(dims), count_(count) {
    for (int d = count - 1; d >= 0; --d) {
      const int64_t quotient = linear / dims[d].size;
      place_[d] = linear - quotient * dims[d].size;
      in += place_[d] * dims[d].in;
      out += place_[d] * dims[d].out;
      linear = quotient;
    }
  }
  void next() {
    for (int d = count_ - 1; d >= 0; --d) {
      in += dims_[d].in;
      out += dims_[d].out;
      if (++place_[d] < dims_[d].size) return;
      in -= dims_[d].size * dims_[d].in;
      out -= dims_[d].size * dims_[d].out;
      place_[d] = 0;
    }
  }
  int64_t in = 0, out = 0;

 private:
  const CopyDim* dims_;
  int count_;
  int64_t place_[kMaxCopyRank];
};

inline int64_t total(const CopyPlan& plan) {
  int64_t elements = 1;
  for (int d = 0; d < plan.rank; ++d) elements *= plan.dims[d].size;
  return elements;
}

/// Both sides contiguous along the last dim.
template <class Word>
void copy_runs(const CopyPlan& plan, const Word* in, Word* out) {
  const int outer = plan.rank - 1;
  const int64_t n = plan.dims[outer].size;
  const int64_t run = kRunBytes / static_cast<int64_t>(sizeof(Word));
  const int64_t parts = (n + run - 1) / run;
  const int64_t elements = total(plan);
  const bool is_shared = elements * static_cast<int64_t>(sizeof(Word)) >= kParallelBytes;
  if (parts == 1) {
    parallel_ranges(elements / n, is_shared, [=](int64_t first, int64_t last) {
      OffsetWalk at(plan.dims, outer, first);
      for (int64_t row = first; row < last; ++row, at.next()) memcpy(out + at.out, in + at.in, static_cast<size_t>(n) * sizeof(Word));
    });
    return;
  }
  parallel_for(elements / n * parts, is_shared, [=](int64_t task) {
    const int64_t row = task / parts;
    const int64_t begin = (task - row * parts) * run;
    const int64_t count = n - begin < run ? n - begin : run;
    const Offsets at(plan.dims, outer, row);
    memcpy(out + at.out + begin, in + at.in + begin, static_cast<size_t>(count) * sizeof(Word));
  });
}

/// Rows [begin, end) of kColumns elements, where the input is contiguous along the rows.
template <int kColumns, class Word>
void copy_columns(const CopyDim& rows, const CopyDim& columns, int64_t begin, int64_t end, const Word* in, Word* out) {
  const int64_t from = columns.in, to = columns.out, step = rows.out;
  for (int64_t r = begin; r < end; ++r) {
    Word row[kColumns];
    for (int c = 0; c < kColumns; ++c) row[c] = in[r + c * from];
    for (int c = 0; c < kColumns; ++c) out[r * step + c * to] = row[c];
  }
}

/// The input is contiguous along dim `unit`, the output is written along the last one: tile by tile, so that both stay in cache.
template <class Word>
void copy_tiles(const CopyPlan& plan, int unit, const Word* in, Word* out) {
  CopyDim outer[kMaxCopyRank];
  int rank = 0;
  for (int d = 0; d + 1 < plan.rank; ++d) {
    if (d != unit) outer[rank++] = plan.dims[d];
  }
  const CopyDim rows = plan.dims[unit], columns = plan.dims[plan.rank - 1];
  const int64_t bands = (rows.size + kTile - 1) / kTile;
  const int64_t elements = total(plan);
  const int64_t tasks = elements / (rows.size * columns.size) * bands;
  parallel_for(tasks, elements * static_cast<int64_t>(sizeof(Word)) >= kParallelBytes, [=](int64_t task) {
    const Offsets at(outer, rank, task / bands);
    const int64_t first_row = task % bands * kTile;
    const int64_t end_row = first_row + kTile < rows.size ? first_row + kTile : rows.size;
    const Word* const from_rows = in + at.in;
    Word* const to_rows = out + at.out;
    switch (columns.size) {  // channels of images, written out
      case 2: return copy_columns<2>(rows, columns, first_row, end_row, from_rows, to_rows);
      case 3: return copy_columns<3>(rows, columns, first_row, end_row, from_rows, to_rows);
      case 4: return copy_columns<4>(rows, columns, first_row, end_row, from_rows, to_rows);
    }
    for (int64_t first = 0; first < columns.size; first += kTile) {
      const int64_t end = first + kTile < columns.size ? first + kTile : columns.size;
      for (int64_t r = first_row; r < end_row; ++r) {
        const Word* from = from_rows + r;
        Word* to = to_rows + r * rows.out;
        for (int64_t c = first; c < end; ++c) to[c * columns.out] = from[c * columns.in];
      }
    }
  });
}

/// Any strides.
template <class Word>
void copy_strided(const CopyPlan& plan, const Word* in, Word* out) {
  const int outer = plan.rank - 1;
  const CopyDim inner = plan.dims[outer];
  const int64_t elements = total(plan);
  parallel_ranges(elements / inner.size, elements * static_cast<int64_t>(sizeof(Word)) >= kParallelBytes, [=](int64_t first, int64_t last) {
    OffsetWalk at(plan.dims, outer, first);
    for (int64_t row = first; row < last; ++row, at.next()) {
      for (int64_t i = 0; i < inner.size; ++i) out[at.out + i * inner.out] = in[at.in + i * inner.in];
    }
  });
}
}  // namespace detail

/// @brief The copy of one piece.
template <size_t kBytes>
void copy(const CopyPiece<kBytes>& piece) {
  const CopyPlan& plan = piece.plan;
  if (plan.empty) return;
  if (plan.rank == 0) {
    memcpy(piece.out, piece.in, kBytes);
  } else if (plan.dims[plan.rank - 1].in == 1 && plan.dims[plan.rank - 1].out == 1) {
    detail::copy_runs(plan, piece.in, piece.out);
  } else if (plan.input_unit_dim() >= 0) {
    detail::copy_tiles(plan, plan.input_unit_dim(), piece.in, piece.out);
  } else {
    detail::copy_strided(plan, piece.in, piece.out);
  }
}

/// @brief out[i, j, ...] = in[i, j, ...], bit for bit; strides in elements, 0 in the input where it is broadcast.
template <class T, size_t kRank>
int32_t copy(const Context&, const int64_t (&sizes)[kRank], const T* in, const int64_t (&in_strides)[kRank], T* out,
             const int64_t (&out_strides)[kRank]) {
  copy(copy_piece(sizes, in, in_strides, out, out_strides));
  return 0;
}

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_COPY_H_
