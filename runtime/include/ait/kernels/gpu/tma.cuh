/// @file tma.cuh
/// @brief Bulk tensor copies of Hopper (sm_90 and later): tensor maps on the host, rings of stages on the device.
#ifndef AIT_KERNELS_GPU_TMA_CUH_
#define AIT_KERNELS_GPU_TMA_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/bulk.cuh"

#if defined(AIT_CUDA)
namespace ait::gpu {

// ** host **

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                 const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill);
using EncodeWindow = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const int*,
                                  const int*, cuuint32_t, cuuint32_t, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                  CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/// @brief A function of the driver, so that nothing links against it; null where it has none.
template <class Function>
Function driver_function(const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const Error error = cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found);
#else
  const Error error = cudaGetDriverEntryPoint(name, &entry, cudaEnableDefault, &found);
#endif
  return error == kSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(entry) : nullptr;
}

inline EncodeTiled encode_tiled() {
  static const EncodeTiled function = driver_function<EncodeTiled>("cuTensorMapEncodeTiled");
  return function;
}

inline EncodeWindow encode_window() {
  static const EncodeWindow function = driver_function<EncodeWindow>("cuTensorMapEncodeIm2col");
  return function;
}

template <class T>
constexpr CUtensorMapDataType kMapType = sizeof(T) == 1            ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                         : std::is_same_v<T, half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                                   : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;

/// @brief A batch of matrices of elements of 1 or 2 bytes as the copy engine sees it: [outer, inner, lines, units] with units contiguous. A box
/// is `box_units` units, one line of 32, 64 or 128 bytes in shared memory, swizzled, by `box_lines` lines. What lies outside reads as zero and is
/// not written.
/// @param pitch elements from line to line, a multiple of 16 bytes; as are the batch strides, and `data` is 16-byte aligned
/// @return whether the driver took it
template <class T>
bool tensor_map(CUtensorMap* map, const T* data, int64_t units, int64_t lines, int64_t pitch, int64_t inner, int64_t inner_stride,
                int64_t outer, int64_t outer_stride, int box_lines, int box_units = 128 / sizeof(T)) {
  constexpr int kBytes = sizeof(T);
  static_assert(kBytes <= 2, "elements have 1 or 2 bytes");
  const EncodeTiled encode = encode_tiled();
  if (encode == nullptr) return false;
  // A dim of size 1, or one that broadcasts, is never stepped along; its stride only has to be valid.
  const bool steps_inner = inner > 1 && inner_stride != 0, steps_outer = outer > 1 && outer_stride != 0;
  const cuuint64_t dims[4] = {cuuint64_t(units), cuuint64_t(lines), cuuint64_t(steps_inner ? inner : 1), cuuint64_t(steps_outer ? outer : 1)};
  const int64_t line = lines > 1 ? pitch : 16 / kBytes;
  const cuuint64_t strides[3] = {cuuint64_t(line) * kBytes, cuuint64_t(steps_inner ? inner_stride : line) * kBytes,
                                 cuuint64_t(steps_outer ? outer_stride : line) * kBytes};
  const cuuint32_t box[4] = {cuuint32_t(box_units), cuuint32_t(box_lines), 1, 1}, steps[4] = {1, 1, 1, 1};
  const int line_bytes = box_units * kBytes;
  const auto swizzle = line_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                       : line_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                          : CU_TENSOR_MAP_SWIZZLE_32B;
  return encode(map, kMapType<T>, 4, const_cast<T*>(data), dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/// @brief The input of a convolution as the copy engine sees it: images of 2-byte elements, [image, y, x, channel] or, with R = 3,
/// [image, z, y, x, channel], with channels contiguous. A box is 64 channels at `box_places` places of the window, row by row and image by
/// image, swizzled. What lies outside reads as zero.
/// @param sizes, strides of these dims; the strides in elements, multiples of 8; `data` is 16-byte aligned
/// @param low where the window begins at the first place, along the spatial dims: -pad
/// @param places, step of the window along these: how many places, and how far from one to the next
/// @return whether the driver took it
template <int R, class T>
bool window_map(CUtensorMap* map, const T* data, const int64_t (&sizes)[R + 2], const int64_t (&strides)[R + 1], const int (&low)[R],
                const int (&places)[R], const int (&step)[R], int box_places) {
  static_assert(sizeof(T) == 2, "elements have 2 bytes");
  const EncodeWindow encode = encode_window();
  if (encode == nullptr) return false;
  cuuint64_t dims[R + 2], bytes[R + 1];
  for (int d = 0; d < R + 2; ++d) dims[d] = cuuint64_t(sizes[R + 1 - d]);
  for (int d = 0; d < R + 1; ++d) bytes[d] = cuuint64_t(sizes[R - d] > 1 ? strides[R - d] : 8) * 2;  // of a dim of size 1, any will do
  // The last place counts, so the corner behind is where that begins, relative to the last element.
  int first[R], last[R];
  cuuint32_t steps[R + 2] = {};
  steps[0] = steps[R + 1] = 1;
  for (int d = 0; d < R; ++d) {
    first[R - 1 - d] = low[d];
    last[R - 1 - d] = low[d] + (places[d] - 1) * step[d] + 1 - int(sizes[d + 1]);
    steps[R - d] = cuuint32_t(step[d]);
  }
  return encode(map, kMapType<T>, R + 2, const_cast<T*>(data), dims, bytes, first, last, 64, cuuint32_t(box_places), steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// ** device **

/// @brief A place in the ring of stages.
template <int kStages>
struct RingPlace {
  uint32_t stage = 0, parity = 0;

  __device__ __forceinline__ void next() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
  __device__ __forceinline__ void skip(uint32_t steps) {
    const uint32_t to = stage + steps;
    parity ^= (to / kStages) & 1;
    stage = to % kStages;
  }
};

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_TMA_CUH_
