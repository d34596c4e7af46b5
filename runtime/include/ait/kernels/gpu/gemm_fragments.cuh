/// @file gemm_fragments.cuh
/// @brief The epilogue of the Hopper gemm: extra operands and results in the layout in which `wgmma` leaves its accumulators.
///
/// A thread holds pairs of neighbouring columns of two rows: extra operands are read in pairs, and results of 1 or 2 bytes go through a box of
/// shared memory, 16 rows a warp, from where the copy engine writes whole lines. Of further results of 2 bytes, four lanes exchange their
/// pairs, and each writes 16 bytes. The copy engine knows only rows that start on 16 bytes: where they start anywhere, extra operands are read
/// one by one, the warp writes the lines of its box, and further results and results of 1 byte are written in pairs.
#ifndef AIT_KERNELS_GPU_GEMM_FRAGMENTS_CUH_
#define AIT_KERNELS_GPU_GEMM_FRAGMENTS_CUH_

#include "ait/kernels/gpu/gemm_epilogue.cuh"
#include "ait/kernels/gpu/mma.cuh"
#include "ait/kernels/gpu/tma.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

/// @brief Two neighbouring columns as they lie in memory.
template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T v[2];
};

/// @brief Writes a pair, or its first element alone unless `both` exist. `kAligned`: it lies on the bytes of a pair, and both exist.
template <bool kAligned, class D>
__device__ __forceinline__ void store_pair(D* to, const Pair<D>& pair, bool both) {
  if (kAligned || (both && reinterpret_cast<uintptr_t>(to) % sizeof(Pair<D>) == 0)) {
    *reinterpret_cast<Pair<D>*>(to) = pair;
  } else {
    to[0] = pair.v[0];
    if (both) to[1] = pair.v[1];
  }
}

/// @brief The epilogue F as a kernel runs it whose store is `rounded_pair`: without the bounds at its end if the store keeps within them.
template <class F, class D, class = void>
struct Bounded {
  static constexpr bool kByStore = false;
  using Type = F;
};
template <class F, class D>
struct Bounded<F, D, std::void_t<typename F::BoundedByStore>> {
  static constexpr bool kByStore = is_float8<D>;
  using Type = std::conditional_t<kByStore, typename F::BoundedByStore, F>;
};

/// @brief A pair of results, rounded once. `kBounds`: beyond the largest number of an 8-bit float, the largest number.
template <class D, bool kBounds>
__device__ __forceinline__ Pair<D> rounded_pair(compute_t<D> first, compute_t<D> second) {
  if constexpr (kBounds) {
    return bit_cast<Pair<D>>(D::saturated(first, second));
  } else {
    return {{convert<D>(first), convert<D>(second)}};
  }
}

/// @brief Where the pairs of a thread are: two rows, and from `col` on two columns of every eight.
struct FragmentPlace {
  int64_t outer, inner;
  int rows[2];     ///< that exist: a row that does not is the last one
  bool exists[2];  ///< whether it does
  int col;
  int n, last;  ///< how many columns there are; the last column at which a pair of this thread may start, if rows are aligned
  bool whole;   ///< whether all columns exist
};

/// @brief Of the operands that `kVectors` describes, whether the first is one row that all rows share, or one column that all columns share. The
/// bits of an operand are `i` and `16 + i`, so that those of the others follow from a shift; there are at most 14 operands.
template <uint32_t kVectors>
inline constexpr bool is_one_row = (kVectors & 1) != 0;
template <uint32_t kVectors>
inline constexpr bool is_one_column = (kVectors >> 16 & 1) != 0;

/// @brief Of the extra operands, the first that the copy engine can bring to where the results will be: 2 bytes wide, with rows of its own.
/// -1 if there is none.
template <uint32_t kVectors, int kAt = 0>
constexpr int staged_operand() {
  return -1;
}
template <uint32_t kVectors, int kAt, class E, class... Rest>
constexpr int staged_operand() {
  if constexpr ((std::is_same_v<E, half> || std::is_same_v<E, bfloat16>) && !is_one_row<kVectors> && !is_one_column<kVectors>) {
    return kAt;
  } else {
    return staged_operand<(kVectors >> 1), kAt + 1, Rest...>();
  }
}

/// @brief The extra operands and further results of 16 rows and `kEights` times 8 columns: of each, the pairs of a thread. `run` is called for
/// the first element of a pair, then for the second; the further results are written in pairs.
/// @tparam kVectors which operands are one row or one column
/// @tparam kStaged the operand whose pairs `run` is given as words, as `load_matrix_x4` reads them; -1 for none
/// @tparam kAligned whether rows start on 16 bytes, and have a multiple of 8 columns
/// @tparam kPeriod after how many columns operands repeat, a multiple of 8, with aligned rows; 0: they do not
template <int kEights, uint32_t kVectors, int kStaged, bool kAligned, int kPeriod, class... E>
struct Fragments {
  static constexpr int kWords = 0;  ///< registers

  __device__ __forceinline__ void fetch(const Operands<>&, const FragmentPlace&) {}

  template <class F, class A, class O, class... Loaded>
  __device__ __forceinline__ void run(const uint32_t (&)[4], int, int, int, A acc, O& out, const Loaded&... loaded) {
    F::apply(acc, loaded..., out);
  }

  /// Runs F on the sums, the operands and all results of one element.
  template <class F, class... Values>
  __device__ __forceinline__ void finish(int, int, int, Values&... values) {
    F::apply(values...);
  }
};

template <int kEights, uint32_t kVectors, int kStaged, bool kAligned, int kPeriod, class E, class... Rest>
struct Fragments<kEights, kVectors, kStaged, kAligned, kPeriod, E, Rest...> {
  static_assert(kPeriod % 8 == 0 && (kPeriod == 0 || kAligned));
  static constexpr bool kVector = is_one_row<kVectors>, kColumn = is_one_column<kVectors>;
  static constexpr int kRows = kVector ? 1 : 2, kPairs = kStaged == 0 || kColumn ? 1 : kEights;
  using Others = Fragments<kEights, (kVectors >> 1), kStaged - 1, kAligned, kPeriod, Rest...>;
  static constexpr int kPairWords = kAligned ? int(sizeof(Pair<E>) + 3) / 4 : 2 * (int(sizeof(E) + 3) / 4);
  static constexpr int kWords = Others::kWords + (kStaged == 0 ? 0 : kPairs * kRows * kPairWords);
  Pair<E> pairs[kPairs][kRows];  ///< of a column, the first element of each
  Others rest;

  __device__ __forceinline__ void fetch(const Operands<E, Rest...>& operands, const FragmentPlace& at) {
    if constexpr (kStaged != 0) {
      const auto& x = operands.first;
      const E* const data = x.data + at.outer * x.outer + at.inner * x.inner;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const E* const row = data + (kVector ? 0 : at.rows[r] * x.row);
        if constexpr (kColumn) {
          pairs[0][r].v[0] = *row;
        } else if constexpr (!kAligned) {
          // A branch for rows that happen to be aligned pays where all threads take it.
          if (kVector && at.whole && reinterpret_cast<uintptr_t>(data) % sizeof(Pair<E>) == 0) {
#pragma unroll
            for (int i = 0; i < kEights; ++i) pairs[i][r] = *reinterpret_cast<const Pair<E>*>(row + at.col + i * 8);
          } else {
#pragma unroll
            for (int i = 0; i < kEights * 2; ++i) {
              const int col = at.col + i / 2 * 8 + i % 2;
              pairs[i / 2][r].v[i % 2] = row[col < at.n ? col : at.n - 1];
            }
          }
        } else if constexpr (kPeriod > 0) {
#pragma unroll
          for (int i = 0; i < kEights; ++i) pairs[i][r] = *reinterpret_cast<const Pair<E>*>(row + (at.col + i * 8) % kPeriod);
        } else if (at.whole) {
          const Pair<E>* const from = reinterpret_cast<const Pair<E>*>(row + at.col);
#pragma unroll
          for (int i = 0; i < kEights; ++i) pairs[i][r] = from[i * 4];
        } else {
#pragma unroll
          for (int i = 0; i < kEights; ++i) {
            const int col = at.col + i * 8;  // what does not exist is read from the last columns, and not used
            pairs[i][r] = *reinterpret_cast<const Pair<E>*>(row + (col < at.n ? col : at.last));
          }
        }
      }
    }
    rest.fetch(operands.rest, at);
  }

  /// The result of the eight columns `i`, row `r`, column `e` of the pair.
  template <class F, class A, class O, class... Loaded>
  __device__ __forceinline__ void run(const uint32_t (&words)[4], int i, int r, int e, A acc, O& out, const Loaded&... loaded) {
    if constexpr (kStaged == 0) {
      rest.template run<F>(words, i, r, e, acc, out, loaded..., convert<compute_t<E>>(bit_cast<Pair<E>>(words[i % 2 * 2 + r]).v[e]));
    } else if constexpr (kColumn) {
      rest.template run<F>(words, i, r, e, acc, out, loaded..., convert<compute_t<E>>(pairs[0][kVector ? 0 : r].v[0]));
    } else {
      rest.template run<F>(words, i, r, e, acc, out, loaded..., convert<compute_t<E>>(pairs[i][kVector ? 0 : r].v[e]));
    }
  }
};

/// @brief Writes a further result in the pairs in which a thread holds it.
template <class D, bool kAligned, bool kGathered>
struct FurtherStores {
  static constexpr int kWords = 5;
  D* rows[2];  ///< where the first pairs lie; null for a row that does not exist
  int left;    ///< how many columns there are from those on
  D first_of_pair;

  __device__ __forceinline__ void begin(const Matrices<D>& x, const FragmentPlace& at) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      rows[r] = at.exists[r] ? x.data + at.outer * x.outer + at.inner * x.inner + at.rows[r] * x.row + at.col : nullptr;
    }
    left = at.n - at.col;
  }

  /// Takes the elements in order: of eight columns `i`, row `r`, column `e` of the pair.
  __device__ __forceinline__ void put(int i, int r, int e, D value) {
    if (e == 0) {
      first_of_pair = value;
    } else if (rows[r] != nullptr && i * 8 < left) {
      store_pair<kAligned>(rows[r] + i * 8, Pair<D>{{first_of_pair, value}}, i * 8 + 1 < left);
    }
  }
};

/// @brief Writes a further result of 2 bytes in pieces of eight columns. Four lanes hold two rows of two times eight columns in pairs; each of
/// them gets one piece, so that what is stored are whole sectors.
template <class D>
struct FurtherStores<D, true, true> {
  static constexpr int kWords = 7;
  D* piece;  ///< where the first piece of this lane lies; null if its row does not exist
  int left;  ///< how many columns there are from that on
  D first_of_pair;
  uint32_t words[4];  ///< pairs of the piece of each lane

  __device__ __forceinline__ void begin(const Matrices<D>& x, const FragmentPlace& at) {
    const int lane = int(threadIdx.x) % 4, col = at.col - lane * 2 + lane % 2 * 8;
    const bool second = lane >= 2;
    const int64_t row = second ? at.rows[1] : at.rows[0];
    piece = (second ? at.exists[1] : at.exists[0]) ? x.data + at.outer * x.outer + at.inner * x.inner + row * x.row + col : nullptr;
    left = at.n - col;
  }

  __device__ __forceinline__ void put(int i, int r, int e, D value) {
    if (e == 0) {
      first_of_pair = value;
      return;
    }
    words[r * 2 + i % 2] = bit_cast<uint32_t>(Pair<D>{{first_of_pair, value}});
    if (i % 2 == 0 || r == 0) return;
    const bool odd = threadIdx.x % 2 != 0, second = threadIdx.x % 4 >= 2;
    uint32_t halves[2][2];  // of a piece of each row: the pairs of this lane and its neighbour
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const uint32_t even_word = words[row * 2], odd_word = words[row * 2 + 1];
      const uint32_t kept = odd ? odd_word : even_word, got = shuffle_xor(odd ? even_word : odd_word, 1);
      halves[row][0] = odd ? got : kept;
      halves[row][1] = odd ? kept : got;
    }
    struct alignas(16) Piece {
      uint32_t pairs[4];
    } whole;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t kept = second ? halves[1][half] : halves[0][half];
      const uint32_t got = shuffle_xor(second ? halves[0][half] : halves[1][half], 2);
      whole.pairs[half] = second ? got : kept;
      whole.pairs[2 + half] = second ? kept : got;
    }
    if (piece != nullptr && (i - 1) * 8 < left) *reinterpret_cast<Piece*>(piece + (i - 1) * 8) = whole;
  }
};

template <int kEights, uint32_t kVectors, int kStaged, bool kAligned, int kPeriod, class D, class... Rest>
struct Fragments<kEights, kVectors, kStaged, kAligned, kPeriod, Further<D>, Rest...> {
  using Others = Fragments<kEights, (kVectors >> 1), kStaged - 1, kAligned, kPeriod, Rest...>;
  using Stores = FurtherStores<D, kAligned, kAligned && sizeof(D) == 2 && kEights % 2 == 0>;
  static constexpr int kWords = Others::kWords + Stores::kWords;
  Stores stores;
  Others rest;

  __device__ __forceinline__ void fetch(const Operands<Further<D>, Rest...>& operands, const FragmentPlace& at) {
    stores.begin(operands.first, at);
    rest.fetch(operands.rest, at);
  }

  template <class F, class A, class O, class... Loaded>
  __device__ __forceinline__ void run(const uint32_t (&)[4], int i, int r, int e, A acc, O& out, const Loaded&... loaded) {
    finish<F>(i, r, e, acc, loaded..., out);
  }

  template <class F, class... Values>
  __device__ __forceinline__ void finish(int i, int r, int e, Values&... values) {
    compute_t<D> out;
    rest.template finish<F>(i, r, e, values..., out);
    stores.put(i, r, e, convert<D>(out));
  }
};

/// @brief The boxes of a warp in shared memory, which take turns: 16 rows of `kCols` (64 or 32) columns of `kSize` bytes, 2 or 1, in swizzled
/// lines. An operand of 2 bytes is copied into a box ahead of the results that take its place. One thread starts all copies of a warp.
template <int kCols, int kBoxes, int kSize = 2>
struct Boxes {
  static constexpr int kLine = kCols * kSize, kBytes = 16 * kLine;
  uint32_t base, barriers;
  RingPlace<kBoxes> place, ahead;

  static __device__ __forceinline__ uint32_t offset(int block) {
    const int lane = int(threadIdx.x) % 32, row = lane % 16;
    return place_of(row, block * 2 + lane / 16);
  }
  /// Where 16 bytes of a line lie: the copy engine permutes those of neighbouring lines.
  static __device__ __forceinline__ uint32_t place_of(int row, int chunk) {
    return uint32_t(row * kLine + (chunk ^ row / (128 / kLine) % (kLine / 16)) * 16);
  }
  /// Starts the copy of an operand to the next box. The first lane alone, when the stores from that box have read it.
  __device__ __forceinline__ void load(const CUtensorMap* map, int col, int row, int inner, int outer) {
    const uint32_t barrier = barriers + ahead.stage * 8;
    barrier_expect(barrier, kBytes);
    copy_box<false>(base + ahead.stage * kBytes, map, barrier, col, row, inner, outer, 0);
    ahead.next();
  }
  /// Waits for the operand in this turn's box, or until the box is free: of the copy engine, or of what the warp itself has read.
  template <bool kLoaded, bool kCopied>
  __device__ __forceinline__ void begin() {
    if constexpr (kLoaded) {
      barrier_wait(barriers + place.stage * 8, place.parity);
    } else {
      if (kCopied && threadIdx.x % 32 == 0) store_wait<kBoxes - 1>();
      __syncwarp();
    }
  }
  /// Writes a pair of results of 1 byte: of this lane's columns of the eight columns `eight`, in the lane's first row or 8 rows below.
  __device__ __forceinline__ void put_pair(int eight, int second, uint16_t pair) const {
    static_assert(kSize == 1);
    const int lane = int(threadIdx.x) % 32;
    store_shared_half_word(base + place.stage * kBytes + place_of(lane / 4 + second * 8, eight / 2) + eight % 2 * 8 + lane % 4 * 2, pair);
  }
  /// Reads the 16 x 16 operands at column 16 * `block`.
  __device__ __forceinline__ void get(int block, uint32_t (&words)[4]) const { load_matrix_x4(words, base + place.stage * kBytes + offset(block)); }
  /// Writes the results there.
  __device__ __forceinline__ void put(int block, const uint32_t (&words)[4]) const {
    store_matrix_x4(base + place.stage * kBytes + offset(block), words);
  }
  /// Writes the first `rows` rows and `cols` columns of the box to `to`, whose rows are `pitch` elements apart and start anywhere: pairs of
  /// columns from the first that lies on 4 bytes, and single elements at the ends.
  /// @tparam kBatch words of so many rows are read before the first is written
  template <int kBatch, class D>
  __device__ __forceinline__ void write(D* to, int64_t pitch, int rows, int cols) {
    static_assert(sizeof(D) == 2 && kSize == 2 && 8 % kBatch == 0);
    constexpr int kRowWords = kCols / 2;  // a row has 32 or 16 words: all of its lanes, or half of them
    const int lane = int(threadIdx.x) % 32, word = lane % kRowWords;
    const uint32_t box = base + place.stage * kBytes;
    __syncwarp();  // the results of all lanes are there
    const bool pairs = reinterpret_cast<uintptr_t>(to) % 4 == 0 && pitch % 2 == 0 && (cols >= kCols || cols % 2 == 0);
    if (kBatch > 2 && pairs) {  // with few registers, a second way would spill
      // All rows start on 4 bytes and have whole pairs: no element goes from lane to lane.
      constexpr int kStep = 32 / kRowWords, kRows = 16 / kStep;
      const int row = lane / kRowWords;
      D* at = to + row * pitch + word * 2;
      const bool column = word * 2 < cols;
#pragma unroll 1
      for (int first = 0; first < kRows; first += kBatch) {
        uint32_t words[kBatch];
#pragma unroll
        for (int i = 0; i < kBatch; ++i) words[i] = word_at(box, row + (first + i) * kStep, word);
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          if (column && row + (first + i) * kStep < rows) *reinterpret_cast<uint32_t*>(at) = words[i];
          at += pitch * kStep;
        }
      }
      place.next();
      return;
    }
#pragma unroll
    for (int c = 0; c < kRowWords / 16; ++c) {
      // Every other row, as these start alike: on 4 bytes, or 2 bytes off.
      const int row = c + lane / kRowWords, exist = cols < kCols ? cols : kCols;
      D* line = to + row * pitch;
      const int odd = int(reinterpret_cast<uintptr_t>(line) / 2 % 2), col = word * 2 + odd;
      const bool begins = odd != 0 && word == 0 && exist > 0, ends = col + 1 == exist, paired = col + 1 < exist;
      const bool alone = begins || ends, twice = begins && ends;  // one element alone, or both
      D *pair_at = line + col, *alone_at = begins ? line : pair_at;
      const uint32_t pair_shift = odd * 16, alone_shift = begins ? 0 : odd * 16;
#pragma unroll(kBatch > 2 ? 8 : 1)
      for (int first = 0; first < 8; first += kBatch) {
        uint32_t low[kBatch];
#pragma unroll
        for (int i = 0; i < kBatch; ++i) low[i] = word_at(box, row + (first + i) * 2, word);
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          const bool exists = row + (first + i) * 2 < rows;
          const uint32_t high = __shfl_down_sync(0xffffffffu, low[i], 1);
          const auto pair = bit_cast<Pair<D>>(__funnelshift_r(low[i], high, pair_shift));
          if (exists && paired) *reinterpret_cast<Pair<D>*>(pair_at) = pair;
          if (exists && alone) *alone_at = bit_cast<Pair<D>>(low[i] >> alone_shift).v[0];
          if (exists && twice) *pair_at = pair.v[0];
          pair_at += pitch * 2;
          alone_at += pitch * 2;
        }
      }
    }
    place.next();
  }
  /// Two neighbouring columns of the box.
  static __device__ __forceinline__ uint32_t word_at(uint32_t box, int row, int word) {
    return load_shared_word(box + place_of(row, word / 4) + word % 4 * 4);
  }
  /// Starts the copy of the box to memory if `exists`.
  __device__ __forceinline__ void end(const CUtensorMap* map, bool exists, int col, int row, int inner, int outer) {
    publish_to_copies();
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      if (exists) store_box(map, base + place.stage * kBytes, col, row, inner, outer);
      store_commit();
    }
    place.next();
  }
};

/// @brief The results that `finish_fragments` writes: `kM` times 64 rows, 16 a warp, and `kCols` columns, in rounds.
/// @tparam kHalves sums that a result is made of: the accumulators have so many times `kCols` columns
/// @tparam kBoxCols columns of a box; 0: results go to memory directly, as do those of 4 bytes, and those of 1 byte without `kAligned_`
/// @tparam kSpare registers beside the accumulators
/// @tparam kAligned_ whether rows of the result and of extra operands start on 16 bytes, and have a multiple of 8 columns
/// @tparam kHead_ columns of a head of which both halves make a result, a multiple of 16; extra operands have half as many; 0: there are none
template <int kM_, int kCols_, int kHalves_, int kBoxCols, int kSpare, bool kAligned_, int kHead_, uint32_t kVectors, class D, class... E>
struct FragmentRounds {
  static constexpr int kM = kM_, kCols = kCols_, kHalves = kHalves_, kHead = kHead_;
  static constexpr bool kAligned = kAligned_, kBytes = sizeof(D) == 1;
  static constexpr bool kBoxed = kBoxCols > 0 && (sizeof(D) == 2 || (kBytes && kAligned));
  static constexpr int kStaged = kBoxed && !kBytes && kAligned && kHead == 0 ? staged_operand<kVectors, 0, E...>() : -1;
  static constexpr int kPartCols = kBoxCols > 0 ? kBoxCols : kCols <= 32 ? kCols : kCols % 32 == 0 ? 32 : kCols % 16 == 0 ? 16 : 8;
  static constexpr int kEights = kPartCols / 8, kParts = kCols / kPartCols, kRounds = kM * kParts;
  using Extra = Fragments<kEights, kVectors, kStaged, kAligned, kHead / 2, E...>;
  /// Whether operands of the next round are read before one is finished, which takes registers.
  static constexpr bool kAhead = kSpare - 2 * Extra::kWords >= 56;
  static constexpr int kBatch = kSpare >= 64 ? 4 : 2;
  static_assert(kCols % kPartCols == 0);
  static_assert(kHead == 0 || (kHead % 16 == 0 && kCols % kHead == 0 && kHalves == 1), "a tile has whole heads");

  /// The eight columns in the other half of the head of eight columns of the tile, and whether they are in its first half.
  static constexpr int other(int eight) { return eight / (kHead / 8) * (kHead / 8) + (eight + kHead / 16) % (kHead / 8); }
  static constexpr bool is_first(int eight) { return eight % (kHead / 8) < kHead / 16; }
};

/// @brief Starts the copies of the staged operand of a tile, as many as there are boxes.
template <class Rounds, class Boxes, int kBoxes>
__device__ __forceinline__ void load_staged(const CUtensorMap* map, Boxes& boxes, int m0, int n0, int outer, int inner) {
  if constexpr (Rounds::kStaged >= 0) {
    if (threadIdx.x % 32 == 0) {
      store_wait<0>();
      for (int round = 0; round < (kBoxes < Rounds::kRounds ? kBoxes : Rounds::kRounds); ++round) {
        const int row = m0 + int(threadIdx.x) / 32 % 4 * 16 + round / Rounds::kParts * 64, col = n0 + round % Rounds::kParts * Rounds::kPartCols;
        boxes.load(map, col, row, inner, outer);
      }
    }
  }
}

/// @brief Reads the extra operands of a round.
template <class Rounds, class T, class D, class... E>
__device__ __forceinline__ void fetch_extra(const GemmArgs<T, D, E...>& args, typename Rounds::Extra& into, int round, int m0, int n0, int outer,
                                            int inner) {
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32 % 4, shift = lane % 4 * 2;
  const int row = m0 + warp * 16 + round / Rounds::kParts * 64 + lane / 4, col = n0 + round % Rounds::kParts * Rounds::kPartCols;
  FragmentPlace at{outer, inner, {}, {row < args.m, row + 8 < args.m}, col + shift, args.n, args.n - 8 + shift, col + Rounds::kPartCols <= args.n};
  at.rows[0] = at.exists[0] ? row : args.m - 1;
  at.rows[1] = at.exists[1] ? row + 8 : args.m - 1;
  into.fetch(args.operands, at);
}

/// @brief Runs the epilogue on the accumulators of a warpgroup, from row `m0` and column `n0` on, and writes the results. `ready` returns
/// when the accumulators are complete.
/// @param first the extra operands of the first round, if `kFetched`
/// @param turned of rounds with heads: the columns that are parts of heads, the first ones; F is given a column and its other, which counts as
/// negative in the first half. Others are stored as they are.
template <class Rounds, int kBoxes, class F, bool kFetched, class T, class D, class... E, class Boxes, class Ready>
__device__ __forceinline__ void finish_fragments(const GemmArgs<T, D, E...>& args, const typename Rounds::Extra& first, const CUtensorMap* to,
                                                 const CUtensorMap* staged, Boxes& boxes,
                                                 sum_t<T> (&acc)[Rounds::kM][Rounds::kHalves * Rounds::kCols / 2], int m0, int n0, int outer, int inner,
                                                 bool staged_inner, bool staged_outer, const Ready& ready, int turned = 0) {
  constexpr int kParts = Rounds::kParts, kPartCols = Rounds::kPartCols;
  constexpr bool kStaged = Rounds::kStaged >= 0, kBounds = Bounded<F, D>::kByStore;
  using Run = typename Bounded<F, D>::Type;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32 % 4;
  const int first_row = m0 + warp * 16, shift = lane % 4 * 2;
  typename Rounds::Extra extra[2];
  auto fetch = [&](int round, typename Rounds::Extra& into) { fetch_extra<Rounds>(args, into, round, m0, n0, outer, inner); };
  if constexpr (kFetched) {
    extra[0] = first;
  } else {
    fetch(0, extra[0]);
  }
  ready();
#pragma unroll
  for (int round = 0; round < Rounds::kRounds; ++round) {
    const int i = round / kParts, part = round % kParts;
    const int row = first_row + i * 64, col = n0 + part * kPartCols;
    if (round > 0 && !Rounds::kAhead) fetch(round, extra[round % 2]);
    if (Rounds::kAhead && round + 1 < Rounds::kRounds) fetch(round + 1, extra[(round + 1) % 2]);
    if constexpr (Rounds::kBoxed) boxes.template begin<kStaged, Rounds::kAligned>();
#pragma unroll
    for (int b = 0; b < (Rounds::kEights + 1) / 2; ++b) {
      uint32_t words[4] = {};
      if constexpr (kStaged) boxes.get(b, words);
      compute_t<D> out[2][2][2];  // columns, row, column of the pair
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int eight = b * 2 + c;
        if (eight >= Rounds::kEights) continue;
#pragma unroll
        for (int r = 0; r < 2; ++r)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int at = (part * Rounds::kEights + eight) * 4 + r * 2 + e;
            if constexpr (Rounds::kHead > 0) {
              const int own = part * Rounds::kEights + eight;
              const sum_t<T> other = acc[i][Rounds::other(own) * 4 + r * 2 + e];
              extra[round % 2].template run<Run>(words, eight, r, e, acc[i][at], out[c][r][e], Rounds::is_first(own) ? -other : other);
              if (col + eight * 8 >= turned) out[c][r][e] = acc[i][at];
            } else if constexpr (Rounds::kHalves == 2) {
              extra[round % 2].template run<Run>(words, eight, r, e, acc[i][at], out[c][r][e], acc[i][Rounds::kCols / 2 + at]);
            } else {
              extra[round % 2].template run<Run>(words, eight, r, e, acc[i][at], out[c][r][e]);
            }
          }
      }
      if constexpr (Rounds::kBoxed && Rounds::kBytes) {
#pragma unroll
        for (int c = 0; c < 2; ++c)
#pragma unroll
          for (int r = 0; r < 2; ++r) boxes.put_pair(b * 2 + c, r, bit_cast<uint16_t>(rounded_pair<D, kBounds>(out[c][r][0], out[c][r][1])));
      } else if constexpr (Rounds::kBoxed) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          const Pair<D> pair{{convert<D>(out[q / 2][q % 2][0]), convert<D>(out[q / 2][q % 2][1])}};
          words[q] = bit_cast<uint32_t>(pair);
        }
        boxes.put(b, words);
      } else {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          if (b * 2 + c >= Rounds::kEights) continue;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const int y = row + lane / 4 + r * 8, x = col + b * 16 + c * 8 + shift;
            const Pair<D> pair = rounded_pair<D, kBounds>(out[c][r][0], out[c][r][1]);
            if (y < args.m && x < args.n) {
              store_pair<Rounds::kAligned>(args.d.data + outer * args.d.outer + inner * args.d.inner + y * args.d.row + x, pair, x + 1 < args.n);
            }
          }
        }
      }
    }
    if constexpr (Rounds::kBoxed && Rounds::kAligned) {
      boxes.end(to, row < args.m && col < args.n, col, row, inner, outer);
    } else if constexpr (Rounds::kBoxed) {
      D* const corner = args.d.data + outer * args.d.outer + inner * args.d.inner + row * args.d.row + col;
      boxes.template write<Rounds::kBatch>(corner, args.d.row, args.m - row, args.n - col);
    }
    if constexpr (kStaged) {
      constexpr int kLater = kBoxes - 1;  // the box of the round before is filled for this round
      if (round >= 1 && round + kLater < Rounds::kRounds && lane == 0) {
        store_wait<1>();
        const int next = round + kLater;
        boxes.load(staged, n0 + next % kParts * kPartCols, first_row + next / kParts * 64, staged_inner ? inner : 0, staged_outer ? outer : 0);
      }
    }
  }
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_GEMM_FRAGMENTS_CUH_
