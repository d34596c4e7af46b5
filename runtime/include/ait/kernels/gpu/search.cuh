/// @file search.cuh
/// @brief The places of values in sorted rows: one thread bisects for each value.
#ifndef AIT_KERNELS_GPU_SEARCH_CUH_
#define AIT_KERNELS_GPU_SEARCH_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/row_group.cuh"
#include "ait/kernels/gpu/vector.cuh"
#include "ait/kernels/operand.h"
#include "ait/kernels/order.h"

namespace ait::gpu {

inline constexpr int kSearchThreads = 256;

template <bool kRight, int kRank, class Rows, class Values, class Out>
__global__ void __launch_bounds__(kSearchThreads)
    search_kernel(RowSpace<kRank, 1> space, Rows rows, int64_t length, int64_t step, Values values, Out out) {
  wait_for_previous();
  allow_next();
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kSearchThreads + threadIdx.x; i < space.rows; i += static_cast<int64_t>(gridDim.x) * kSearchThreads) {
    int64_t coordinate[kRank];
    coordinates<kRank>(i, space.outer, coordinate);
    const int64_t found = search_sorted<kRight>(detail::at_row(rows, coordinate).data, length, step, *detail::at_row(values, coordinate).data);
    *detail::at_row(out, coordinate).data = static_cast<typename Out::Value>(found);
  }
}

/// @brief out = the number of the `length` elements of the sorted row that are before each value, including equal elements if kRight.
/// @param rows the first element of the row for each value; `step` separates its elements
template <bool kRight, size_t kRank, class Rows, class Values, class Out>
int32_t search(const Context& ctx, const int64_t (&sizes)[kRank], const Rows& rows, int64_t length, int64_t step, const Values& values,
               const Out& out) {
  RowSpace<static_cast<int>(kRank), 1> space;
  space.rows = 1;
  for (size_t d = 0; d < kRank; ++d) space.rows *= space.outer[d] = sizes[d];
  space.length = space.row[0] = 1;
  if (space.rows <= 0) return 0;
  LaunchConfig config;
  config.block = dim3(kSearchThreads);
  config.grid = dim3(ceil_div(space.rows, kSearchThreads, 1 << 20));
  config.dependent = true;
  return launch(ctx, config, search_kernel<kRight, static_cast<int>(kRank), Rows, Values, Out>, space, rows, length, step, values, out);
}

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_SEARCH_CUH_
