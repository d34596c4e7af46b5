/// @file gemm_shape.h
/// @brief The parts that all gemms of the CPU share: their sizes, and memory for a thread.
#ifndef AIT_KERNELS_CPU_GEMM_SHAPE_H_
#define AIT_KERNELS_CPU_GEMM_SHAPE_H_

#include <stdint.h>
#include <stdlib.h>

namespace ait::cpu {

/// @brief Sizes of `d[o, b] = epilogue(a[o, b] @ b[o, b])`: d is [outer, inner, m, n].
struct GemmShape {
  int64_t m, n, k;
  int64_t outer = 1, inner = 1;
};

/// @brief Scratch memory of a thread, kept from call to call.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { free(data_); }

  /// At least `bytes` bytes, 64-byte aligned, with undefined contents; null if there is no memory.
  void* get(size_t bytes) {
    if (bytes > size_) {
      free(data_);
      size_ = (bytes + 4095) / 4096 * 4096;
      data_ = aligned_alloc(64, size_);
      if (data_ == nullptr) size_ = 0;
    }
    return data_;
  }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace ait::cpu
#endif  // AIT_KERNELS_CPU_GEMM_SHAPE_H_
