/// @file attention.cuh
/// @brief softmax(changed(q @ k^T * scale)) @ v without the scores in memory, for CUDA and HIP; attention_scores.cuh says how scores are changed.
///
/// `attention_mma` is the tensor-core form (CUDA, half and bfloat16), after FlashAttention-2 (Dao, 2023): a block owns rows of q, walks over
/// tiles of k and v, and keeps a running maximum and sum per row. `attention_simt` is the same walk in ordinary arithmetic for every type.
#ifndef AIT_KERNELS_GPU_ATTENTION_CUH_
#define AIT_KERNELS_GPU_ATTENTION_CUH_

#include <stdint.h>

#include "ait/gpu/gpu.h"
#include "ait/kernels/attention_window.h"
#include "ait/kernels/gpu/attention_scores.cuh"
#include "ait/math.h"
#include "ait/types.h"

namespace ait::gpu {

/// @brief A [batch, head, row, column] tensor whose columns are contiguous.
template <class T>
struct Heads {
  T* data;
  int64_t batch, head, row;
};

/// @brief Where the logarithm of the sum of the exponentials of each row of scores goes: [batch, head, row]; `data` is null if nobody wants it.
template <class A>
struct LogSums {
  A* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;

  __device__ __forceinline__ void store(int64_t at_batch, int64_t at_head, int64_t at_row, A value) const {
    if (data != nullptr) data[at_batch * batch + at_head * head + at_row * row] = value;
  }
};

/// @brief The rows of the result are rounded to their type, and nothing else.
struct PlainRows {};

/// @brief The rows of the result are rounded to D, of q, k and v of 8 bits.
template <class D>
struct RoundedRows {
  Heads<D> o;
};

/// @brief The rows of the result become numbers of 8 bits, divided by a scale.
/// @tparam kByRow whether each row of a head has a scale of its own, its largest magnitude divided by `largest`, and at least `least`
template <class D, bool kByRow>
struct NumberRows {
  Heads<D> o;
  float scale;                 ///< of all rows, unless `kByRow`
  float largest = 0, least = 0;
  LogSums<float> scales = {};  ///< where the scales of rows go

  /// @brief The scale of a row. @param most its largest magnitude
  __device__ __forceinline__ float of_row(float most) const { return kByRow ? ait::max(most / largest, least) : scale; }
  /// @brief The number of a value, to the nearest one, within the range of the type.
  static __device__ __forceinline__ D number(float value, float scale) {
    if constexpr (is_float8<D>) {
      constexpr float kMost = std::is_same_v<D, float8_e4m3fn> ? 448.f : 57344.f;
      return convert<D>(ait::clamp(value / scale, -kMost, kMost));
    } else {
      return ait::cast<D>(ait::round(value / scale));
    }
  }
  /// @brief The numbers of two quotients, the first in the lower byte.
  static __device__ __forceinline__ uint32_t pair(float first, float second) {
    if constexpr (is_float8<D>) {
      return D::saturated(first, second);
    } else {
      return uint32_t(uint8_t(ait::cast<D>(ait::round(first)))) | uint32_t(uint8_t(ait::cast<D>(ait::round(second)))) << 8;
    }
  }
};

template <class W>
inline constexpr bool stores_numbers = false;
template <class D, bool kByRow>
inline constexpr bool stores_numbers<NumberRows<D, kByRow>> = true;

/// @brief Where the rows of the result go if they are not numbers with a scale.
template <class T>
__host__ __device__ __forceinline__ Heads<T> rows_of(const PlainRows&, const Heads<T>& o) { return o; }
template <class D, class T>
__host__ __device__ __forceinline__ Heads<D> rows_of(const RoundedRows<D>& rows, const Heads<T>&) { return rows.o; }

/// @brief Sizes: q is [batch, heads, rows, depth], k [batch, heads / group, cols, depth], v and the result have `width` columns.
struct AttentionShape {
  int64_t batch, heads, rows, cols, depth, width;
  float scale;
  int64_t group = 1;            ///< heads of q that share one of k and v
  int64_t window = kNoWindow;   ///< a row sees columns less than this away from the one at which it stands
  bool top_left = false;        ///< whether row r stands at column r, else at r + cols - rows
  bool nan_rows = false;        ///< whether a row that sees no column becomes NaN, else 0
  float value_scale = 1;        ///< what v is multiplied by

  int64_t shift() const { return top_left ? 0 : cols - rows; }
};

/// @brief Keys and values in one piece.
struct OnePiece {};

/// @brief The rows of keys and values after the first `first` rows, which are in `k` and `v`.
template <class T>
struct SecondPiece {
  Heads<const T> k, v;
  int64_t first;
};

/// @brief The rows of one head of k or of v, which may be in two pieces.
template <class T, bool kTwo>
struct HeadRows {
  const T* data;  ///< row 0
  int64_t pitch;
  const T* next;  ///< row `split`, of the second piece
  int64_t next_pitch;
  int split;

  __device__ __forceinline__ HeadRows(const Heads<const T>& x, const Heads<const T>& second, int first, int64_t batch, int64_t head)
      : data(x.data + batch * x.batch + head * x.head), pitch(x.row), next(second.data + batch * second.batch + head * second.head),
        next_pitch(second.row), split(first) {}

  __device__ __forceinline__ const T* at(int row) const {
    if constexpr (kTwo) {
      if (row >= split) return next + int64_t(row - split) * next_pitch;
    }
    return data + int64_t(row) * pitch;
  }
  /// Counts rows from `rows` on.
  __device__ __forceinline__ void advance(int rows) { data += int64_t(rows) * pitch, split -= rows; }
  /// Counts columns from `columns` on.
  __device__ __forceinline__ void skip_columns(int columns) { data += columns, next += columns; }
};

/// @brief Which columns rows see. Row r stands at column r + shift.
struct Sight {
  int rows, cols, shift, window;

  /// @brief The columns [first, end) that some of the rows [row0, row0 + count) see; empty if end <= first.
  template <bool kCausal, bool kWindow>
  __device__ __forceinline__ void columns(int row0, int count, int& first, int& end) const {
    first = 0, end = cols;
    const int last = (row0 + count < rows ? row0 + count : rows) - 1 + shift;  // where the last row stands
    if constexpr (kCausal) end = last + 1 < end ? last + 1 : end;
    if constexpr (kWindow) {
      const int lowest = row0 + shift - window + 1;
      first = lowest > 0 ? lowest : 0;
      if constexpr (!kCausal) end = last + window < end ? last + window : end;
    }
    if (end < first) end = first;
  }

  /// @brief Whether a row that stands at column `at` sees column `col`.
  template <bool kCausal, bool kWindow>
  __device__ __forceinline__ bool sees(int at, int col) const {
    bool seen = col < cols;
    if constexpr (kCausal) seen = seen && col <= at;
    if constexpr (kWindow) seen = seen && col > at - window && col < at + window;
    return seen;
  }
};

/// @tparam S what becomes of the scores: `PlainScores` or `ChangedScores`
template <class T, class S>
struct AttentionArgs {
  int heads, rows, cols, depth, width;
  float scale;
  bool aligned;          ///< q, k and v can be read in 16-byte pieces
  bool result_aligned;
  bool paired;           ///< `S::paired`, of an even number of columns
  Heads<const T> q, k, v;
  Heads<T> o;
  S scores;
  LogSums<compute_t<T>> log_sums;
  int group, window;
  int shift;                      ///< row r stands at column r + shift
  Heads<const T> next_k, next_v;  ///< the second piece, whose rows start at `first`
  int first;
  bool nan_rows;                  ///< whether a row that sees no column becomes NaN, else 0
  float value_scale;              ///< what v is multiplied by

  template <bool kTwo>
  __device__ __forceinline__ HeadRows<T, kTwo> k_rows(int64_t batch, int64_t head) const { return {k, next_k, first, batch, head}; }
  template <bool kTwo>
  __device__ __forceinline__ HeadRows<T, kTwo> v_rows(int64_t batch, int64_t head) const { return {v, next_v, first, batch, head}; }

  /// @brief What the weighted sum of a row is multiplied by. @param sum of the weights: 0 only where the row sees no column
  template <class A>
  __device__ __forceinline__ A share(A sum) const {
    return !S::kSoftmax ? A(value_scale) : sum == A(0) ? (nan_rows ? A(NAN) : A(0)) : A(value_scale) / sum;
  }
  __device__ __forceinline__ Sight sight() const { return {rows, cols, shift, window}; }
  template <bool kCausal, bool kWindow>
  __device__ __forceinline__ void columns(int row0, int count, int& from, int& end) const {
    sight().template columns<kCausal, kWindow>(row0, count, from, end);
  }
  template <bool kCausal, bool kWindow>
  __device__ __forceinline__ bool sees(int at, int col) const {
    return sight().template sees<kCausal, kWindow>(at, col);
  }
};

template <class T>
inline bool heads_aligned(const Heads<T>& x) {
  constexpr int64_t kElements = 16 / sizeof(T);
  return reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && x.batch % kElements == 0 && x.head % kElements == 0 && x.row % kElements == 0;
}

template <class T, class S>
inline AttentionArgs<T, S> attention_args(const AttentionShape& s, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                                          const S& scores, const LogSums<compute_t<T>>& log_sums, OnePiece = {}) {
  return {int(s.heads), int(s.rows), int(s.cols), int(s.depth), int(s.width), s.scale,
          heads_aligned(q) && heads_aligned(k) && heads_aligned(v), heads_aligned(o), s.cols % 2 == 0 && scores.paired(), q, k, v, o, scores, log_sums,
          int(s.group), int(s.window < s.rows + s.cols ? s.window : s.rows + s.cols), int(s.shift()), {}, {}, int(s.cols), s.nan_rows && s.cols > 0,
          s.value_scale};
}

template <class T, class S>
inline AttentionArgs<T, S> attention_args(const AttentionShape& s, Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                                          const S& scores, const LogSums<compute_t<T>>& log_sums, SecondPiece<T> second) {
  AttentionArgs<T, S> args = attention_args(s, q, k, v, o, scores, log_sums);
  args.aligned = args.aligned && heads_aligned(second.k) && heads_aligned(second.v);
  args.next_k = second.k, args.next_v = second.v, args.first = int(second.first);
  return args;
}

}  // namespace ait::gpu

#include "ait/kernels/gpu/attention_mma.cuh"
#include "ait/kernels/gpu/attention_simt.cuh"

#endif  // AIT_KERNELS_GPU_ATTENTION_CUH_
