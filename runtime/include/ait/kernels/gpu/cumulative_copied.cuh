/// @file cumulative_copied.cuh
/// @brief Cumulative sums down columns whose tiles are copied to shared memory ahead of time (CUDA).
#ifndef AIT_KERNELS_GPU_CUMULATIVE_COPIED_CUH_
#define AIT_KERNELS_GPU_CUMULATIVE_COPIED_CUH_

#include "ait/kernels/gpu/scan_tile.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

namespace detail {
/// @brief As `ScanColumns`, for words of 16 bytes: a thread's part of a tile is in shared memory, copied there while the tile before it was worked on.
template <class R, bool kExclusive, int kVec, int kOuter, class In, class Out>
struct CopiedColumns : ScanColumns<R, kExclusive, kVec, kOuter, In, Out, 8> {
  static constexpr int kRows = 8;
  using Base = ScanColumns<R, kExclusive, kVec, kOuter, In, Out, kRows>;
  using A = typename Base::A;
  using T = typename Base::T;
  using Slot = uint4 (*)[kScanThreads];  ///< a word for each row and thread
  static constexpr int kTile = kScanParts * kRows;
  static constexpr uint32_t kSlotBytes = 16 * kRows * kScanThreads;
  using Base::Base;

  __device__ __forceinline__ bool has(int64_t from, int r) const { return this->present && Base::row(from, r) < this->length; }

  /// Starts to copy what this thread has of a tile.
  __device__ __forceinline__ void start(int64_t from, Slot to) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (has(from, r)) copy_async_16(shared_address(&to[r][threadIdx.x]), this->in.data + Base::row(from, r) * this->in.strides[kOuter], 16);
    }
    copy_async_commit();
  }

  static __device__ __forceinline__ void widen_row(Slot slot, int r, A (&to)[kVec]) {
    const uint4 word = slot[r][threadIdx.x];
    T elements[kVec];
    copy_bytes(&elements, &word, sizeof(word));
#pragma unroll
    for (int j = 0; j < kVec; ++j) to[j] = Base::widen(elements[j]);
  }

  /// Writes what this thread's part has of each column to `shared`.
  __device__ __forceinline__ void sum(int64_t from, Slot slot, A* shared) const {
    A sums[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) sums[j] = scan_start<R, In>();
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (!has(from, r)) continue;
      A x[kVec];
      widen_row(slot, r, x);
#pragma unroll
      for (int j = 0; j < kVec; ++j) sums[j] = R::join(sums[j], x[j]);
    }
#pragma unroll
    for (int j = 0; j < kVec; ++j) shared[Base::place(threadIdx.x / kScanLanes, j)] = sums[j];
  }

  /// Writes the sums, with what comes before this thread's part.
  __device__ __forceinline__ void write(int64_t from, Slot slot, const A (&before)[kVec]) const {
    A within[kVec];
#pragma unroll
    for (int j = 0; j < kVec; ++j) within[j] = scan_start<R, In>();
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (!has(from, r)) continue;
      A x[kVec];
      widen_row(slot, r, x);
      typename Out::Value raw[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        const A through = R::join(within[j], x[j]);
        raw[j] = convert<typename Out::Value>(element_of<typename In::Compute>(R::join(before[j], kExclusive ? within[j] : through)));
        within[j] = through;
      }
      store<kVec>(this->out.data + Base::row(from, r) * this->out.strides[kOuter], raw);
    }
  }
};
}  // namespace detail

/// `cumulative_columns_kernel` for words of 16 bytes: a tile is on its way to shared memory while the one before it is summed and stored.
template <class R, bool kExclusive, int kVec, int kOuter, class In, class Out>
__global__ void __launch_bounds__(kScanThreads, 2) cumulative_copied_columns_kernel(RowSpace<kOuter, 1> space, In in, Out out) {
  using Columns = detail::CopiedColumns<R, kExclusive, kVec, kOuter, In, Out>;
  using A = typename Columns::A;
  AIT_DYNAMIC_SHARED(16, scan_tiles);
  const auto slot = [&](int turn) { return reinterpret_cast<typename Columns::Slot>(scan_tiles) + turn * Columns::kRows; };
  __shared__ A shared[2][kScanParts * Columns::kColumns];  // in turn, so that two barriers a tile are enough
  wait_for_previous();
  allow_next();
  const int part = threadIdx.x / kScanLanes;
  const int64_t step = static_cast<int64_t>(gridDim.x) * Columns::kColumns;
  int turn = 0;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * Columns::kColumns; first < space.rows; first += step) {
    const Columns columns(space, in, out, first);
    A carry = detail::scan_start<R, In>();  // of one column
    columns.start(0, slot(turn));
    for (int64_t from = 0; from < space.length; from += Columns::kTile, turn ^= 1) {
      columns.start(from + Columns::kTile, slot(turn ^ 1));  // behind the last one, nothing
      copy_async_wait<1>();
      columns.sum(from, slot(turn), shared[turn]);
      __syncthreads();
      if (static_cast<int>(threadIdx.x) < Columns::kColumns) carry = Columns::join_parts(shared[turn], carry);
      __syncthreads();
      A before[kVec];
#pragma unroll
      for (int j = 0; j < kVec; ++j) before[j] = shared[turn][Columns::place(part, j)];
      columns.write(from, slot(turn), before);
    }
  }
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_CUMULATIVE_COPIED_CUH_
