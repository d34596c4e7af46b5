/// @file cuda.h
/// @brief The driver's tensor maps.
#ifndef AIT_EMULATOR_CUDA_H_
#define AIT_EMULATOR_CUDA_H_

#include <stdint.h>

#include "emulator/bulk.h"

using cuuint32_t = uint32_t;
using cuuint64_t = uint64_t;
enum CUresult { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1 };
struct alignas(64) CUtensorMap {
  ait::emulator::TensorMap map;
};
enum CUtensorMapDataType { CU_TENSOR_MAP_DATA_TYPE_UINT8, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, CU_TENSOR_MAP_DATA_TYPE_FLOAT32 };

inline int element_bytes_of(CUtensorMapDataType type) {
  return type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 ? 4 : type == CU_TENSOR_MAP_DATA_TYPE_UINT8 ? 1 : 2;
}

enum CUtensorMapInterleave { CU_TENSOR_MAP_INTERLEAVE_NONE };
enum CUtensorMapSwizzle { CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_128B };
enum CUtensorMapL2promotion { CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_256B };
enum CUtensorMapFloatOOBfill { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE };

inline CUresult cuTensorMapEncodeTiled(CUtensorMap* to, CUtensorMapDataType type, cuuint32_t rank, void* data, const cuuint64_t* dims,
                                       const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* steps, CUtensorMapInterleave,
                                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  ait::emulator::TensorMap map;
  map.data = static_cast<char*>(data);
  map.rank = int(rank);
  map.element_bytes = element_bytes_of(type);
  map.swizzle_bytes = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 0 : 16u << int(swizzle);
  for (int d = 0; d < map.rank && d < map.kMostDims; ++d) {
    map.dims[d] = dims[d], map.box[d] = box[d], map.strides[d] = d == 0 ? uint64_t(map.element_bytes) : strides[d - 1];
    if (steps[d] != 1) return CUDA_ERROR_INVALID_VALUE;  // are not emulated
  }
  if (ait::emulator::map_problem(map) != nullptr) return CUDA_ERROR_INVALID_VALUE;
  to->map = map;
  return CUDA_SUCCESS;
}

/// Of rank 4 or 5: channels, x, y, maybe z, images.
inline CUresult cuTensorMapEncodeIm2col(CUtensorMap* to, CUtensorMapDataType type, cuuint32_t rank, void* data, const cuuint64_t* dims,
                                        const cuuint64_t* strides, const int* low, const int* high, cuuint32_t channels, cuuint32_t places,
                                        const cuuint32_t* steps, CUtensorMapInterleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                        CUtensorMapFloatOOBfill) {
  ait::emulator::TensorMap map;
  map.windows = true;
  map.data = static_cast<char*>(data);
  map.rank = int(rank);
  map.element_bytes = element_bytes_of(type);
  map.swizzle_bytes = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 0 : 16u << int(swizzle);
  for (int d = 0; d < map.rank && d < map.kMostDims; ++d) {
    map.dims[d] = dims[d], map.strides[d] = d == 0 ? uint64_t(map.element_bytes) : strides[d - 1];
  }
  map.box[0] = channels, map.box[1] = places;
  for (int d = 0; d < map.spatial() && d < 3; ++d) map.low[d] = low[d], map.high[d] = high[d], map.steps[d] = steps[d + 1];
  if (steps[0] != 1 || steps[map.rank - 1] != 1 || ait::emulator::map_problem(map) != nullptr) return CUDA_ERROR_INVALID_VALUE;
  to->map = map;
  return CUDA_SUCCESS;
}

#endif  // AIT_EMULATOR_CUDA_H_
