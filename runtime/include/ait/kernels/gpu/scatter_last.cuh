/// @file scatter_last.cuh
/// @brief Elements replaced by index with the last of their values, without a sort: first each element learns the last place that names it, then the
/// values of these places are written.
#ifndef AIT_KERNELS_GPU_SCATTER_LAST_CUH_
#define AIT_KERNELS_GPU_SCATTER_LAST_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/scatter_sorted.cuh"
#include "ait/kernels/gpu/vector.cuh"

namespace ait::gpu {

/// @brief For each target of each row 1 more than the last place that names it; 0 if there is none. Neighbours are targets, or rows if `columns`.
struct LastPlaces {
  uint32_t* numbers;
  int64_t rows, targets, places;
  bool columns;

  __device__ __forceinline__ uint32_t* of(int64_t row, int64_t target) const {
    return numbers + (columns ? target * rows + row : row * targets + target);
  }
  struct Place {
    int64_t row, place;
  };
  /// Row and place of a number, such that neighbours read neighbouring indices.
  __device__ __forceinline__ Place split(int64_t number) const {
    const detail::Quotient parts = detail::divide(number, columns ? rows : places);
    return {columns ? parts.rest : parts.quotient, columns ? parts.quotient : parts.rest};
  }
};

template <class Space>
__global__ void __launch_bounds__(256) scatter_find_kernel(Space space, LastPlaces last, int64_t count) {
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
#pragma unroll 4
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const auto [row, place] = last.split(i);
    const int64_t target = space.target(row, place);
    if (target >= 0) atomicMax(last.of(row, target), static_cast<uint32_t>(place) + 1);
  }
}

/// A thread has `kVec` columns of a place.
template <int kVec, class Space>
__global__ void __launch_bounds__(256) scatter_last_kernel(Space space, LastPlaces last, int64_t chunks, int64_t count) {
  using T = typename Space::Value;
  wait_for_previous();
  allow_next();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
#pragma unroll 4
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const auto [number, chunk] = detail::divide(i, chunks);
    const auto [row, place] = last.split(number);
    const int64_t target = space.target(row, place);
    if (target < 0 || *last.of(row, target) != static_cast<uint32_t>(place) + 1) continue;
    int64_t dense = space.dense_of_place(place), whole = space.whole_of_target(target);
    space.template step<Space::kSerial, Space::kKeyed>(row, dense, whole);
    space.template step<Space::kSerial + Space::kKeyed, Space::kFree>(chunk * kVec, dense, whole);
    T values[kVec];
    load<kVec>(space.values + dense, values);
    store<kVec>(space.out + whole, values);
  }
}

namespace detail {
/// @param columns whether neighbouring indices in memory belong to neighbouring rows
/// @param workspace 4 bytes for each target of each row
template <int kVec, class Space>
int32_t scatter_last(const Context& ctx, const Space& space, bool columns, void* workspace) {
  const LastPlaces last{static_cast<uint32_t*>(workspace), space.rows(), space.targets(), space.places(), columns};
  if (last.places >= UINT32_MAX) return ctx.fail("scatter: more than 2^32 - 2 places that may name one element");
  const int64_t count = last.rows * last.places, chunks = space.columns() / kVec;
  if (const int32_t status = fill_bytes(ctx, workspace, 0, static_cast<size_t>(last.rows * last.targets * 4))) return status;
  LaunchConfig config;
  config.block = dim3(256);
  config.grid = dim3(ceil_div(count, 256, 1 << 20));
  config.dependent = true;
  if (const int32_t status = launch(ctx, config, scatter_find_kernel<Space>, space, last, count)) return status;
  config.grid = dim3(ceil_div(count * chunks, 256, 1 << 20));
  return launch(ctx, config, scatter_last_kernel<kVec, Space>, space, last, chunks, count * chunks);
}
}  // namespace detail

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SCATTER_LAST_CUH_
