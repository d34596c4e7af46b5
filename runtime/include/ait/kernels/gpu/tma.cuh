/// @file tma.cuh
/// @brief Bulk tensor copies of Hopper (sm_90 and later): tensor maps on the host; barriers in shared memory and copies on the device.
#ifndef AIT_KERNELS_GPU_TMA_CUH_
#define AIT_KERNELS_GPU_TMA_CUH_

#include <stdint.h>

#include "ait/gpu/launch.h"
#include "ait/kernels/gpu/gemm_epilogue.cuh"

#if defined(AIT_CUDA)
#include <cuda.h>

namespace ait::gpu {

// ** host **

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                 const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill);

/// @brief The driver's `cuTensorMapEncodeTiled`, so that nothing links against the driver; null where it has none.
inline EncodeTiled encode_tiled() {
  static const EncodeTiled function = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const Error error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
#else
    const Error error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &found);
#endif
    return error == kSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<EncodeTiled>(entry) : nullptr;
  }();
  return function;
}

/// @brief A batch of matrices of 2-byte elements as the copy engine sees it: [outer, inner, lines, units] with units contiguous. A box is
/// `box_units` units, one line of 64 or 128 bytes in shared memory, swizzled, by `box_lines` lines. What lies outside reads as zero and is
/// not written.
/// @param pitch elements from line to line, a multiple of 8; as are the batch strides, and `data` is 16-byte aligned
/// @param box_units 64 or 32
/// @return whether the driver took it
template <class T>
bool tensor_map(CUtensorMap* map, const T* data, int64_t units, int64_t lines, int64_t pitch, int64_t inner, int64_t inner_stride,
                int64_t outer, int64_t outer_stride, int box_lines, int box_units = 64) {
  static_assert(sizeof(T) == 2, "elements have 2 bytes");
  const EncodeTiled encode = encode_tiled();
  if (encode == nullptr) return false;
  // A dim of size 1, or one that broadcasts, is never stepped along; its stride only has to be valid.
  const bool steps_inner = inner > 1 && inner_stride != 0, steps_outer = outer > 1 && outer_stride != 0;
  const cuuint64_t dims[4] = {cuuint64_t(units), cuuint64_t(lines), cuuint64_t(steps_inner ? inner : 1), cuuint64_t(steps_outer ? outer : 1)};
  const int64_t line = lines > 1 ? pitch : 8;
  const cuuint64_t strides[3] = {cuuint64_t(line) * 2, cuuint64_t(steps_inner ? inner_stride : line) * 2,
                                 cuuint64_t(steps_outer ? outer_stride : line) * 2};
  const cuuint32_t box[4] = {cuuint32_t(box_units), cuuint32_t(box_lines), 1, 1}, steps[4] = {1, 1, 1, 1};
  const auto type = std::is_same_v<T, half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  const auto swizzle = box_units == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B;
  return encode(map, type, 4, const_cast<T*>(data), dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
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

/// @brief Prepares a barrier whose phase ends after `arrivals` arrivals and the bytes announced.
__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// @brief Makes the barriers of this thread visible to the cluster and the copy engine.
__device__ __forceinline__ void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory"); }

/// @brief Arrives and announces `bytes` that copies will write.
__device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes) : "memory");
}

/// @brief Arrives.
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}

/// @brief Arrives at the same barrier in block `rank` of the cluster.
__device__ __forceinline__ void barrier_arrive(uint32_t barrier, uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}\n" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

/// @brief Waits until the phase of parity `parity` has ended.
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra.uni DONE;\n"
      "bra.uni WAIT;\n"
      "DONE:\n}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// @brief Starts the copy of a box to shared memory, to every block of `mask` if `kMulticast`, at the same place in each.
template <bool kMulticast>
__device__ __forceinline__ void copy_box(uint32_t to, const CUtensorMap* map, uint32_t barrier, int unit, int line, int inner, int outer,
                                         uint16_t mask) {
  if constexpr (kMulticast) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], "
        "%7;\n" ::"r"(to),
        "l"(map), "r"(barrier), "r"(unit), "r"(line), "r"(inner), "r"(outer), "h"(mask)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];\n" ::"r"(to),
        "l"(map), "r"(barrier), "r"(unit), "r"(line), "r"(inner), "r"(outer)
        : "memory");
  }
}

/// @brief Brings the bytes around an address into L2.
__device__ __forceinline__ void prefetch_line(const void* address) { asm volatile("prefetch.global.L2 [%0];\n" ::"l"(address) : "memory"); }

/// @brief Starts the copy of a box from shared memory, in the group that the next `store_commit` of this thread closes.
__device__ __forceinline__ void store_box(const CUtensorMap* map, uint32_t from, int unit, int line, int inner, int outer) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];\n" ::"l"(map), "r"(from), "r"(unit),
               "r"(line), "r"(inner), "r"(outer)
               : "memory");
}

/// @brief Closes the group of stores started by this thread since the last call.
__device__ __forceinline__ void store_commit() { asm volatile("cp.async.bulk.commit_group;\n" ::: "memory"); }

/// @brief Waits until all but the newest `kPending` groups of this thread have read shared memory.
template <int kPending>
__device__ __forceinline__ void store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(kPending) : "memory");
}

/// @brief Orders this thread's earlier writes to shared memory before copies that are started after a barrier.
__device__ __forceinline__ void publish_to_copies() { asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory"); }

/// @brief The address, in block `rank` of the cluster, of what lies at `address` in this one.
__device__ __forceinline__ uint32_t address_in(uint32_t address, uint32_t rank) {
  uint32_t remote;
  asm("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(remote) : "r"(address), "r"(rank));
  return remote;
}

/// @brief Writes 16 bytes to shared memory of a block of the cluster and counts them at a barrier of that block.
__device__ __forceinline__ void send(uint32_t to, uint32_t barrier, float a, float b, float c, float d) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, [%1];\n" ::"r"(to), "r"(barrier),
               "f"(a), "f"(b), "f"(c), "f"(d)
               : "memory");
}

/// @brief Brings a tensor map into the cache.
__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];\n" ::"l"(map) : "memory");
}

}  // namespace ait::gpu
#endif  // AIT_CUDA
#endif  // AIT_KERNELS_GPU_TMA_CUH_
