/// @file mfma_layout.h
/// @brief Which elements of the matrices a lane of a wave holds in AMD's matrix instructions `mfma.f32.SxSxD`, S 32 or 16 and D 256 / S.
///
/// `tests/emulator/mfma_registers.txt` has AMD's own table; `test_mfma_layout.py` compares.
#ifndef AIT_KERNELS_GPU_MFMA_LAYOUT_H_
#define AIT_KERNELS_GPU_MFMA_LAYOUT_H_

namespace ait::gpu {

/// @tparam kSize_ 32 or 16: rows and columns of the result
template <int kSize_>
struct MfmaLayout {
  static_assert(kSize_ == 32 || kSize_ == 16, "32 x 32 x 8 and 16 x 16 x 16");
  static constexpr int kSize = kSize_, kDepth = 256 / kSize;
  static constexpr int kElements = kSize * kSize / 64;  ///< accumulators of a lane

  /// The row of a, the column of b and the column of c that a lane holds elements of.
  static constexpr int line(int lane) { return lane % kSize; }
  /// The first of the four k whose elements of a and b a lane holds.
  static constexpr int k(int lane) { return 4 * (lane / kSize); }
  /// The row of accumulator `r` of a lane.
  static constexpr int row(int lane, int r) { return 8 * (r / 4) + 4 * (lane / kSize) + r % 4; }
};

}  // namespace ait::gpu
#endif  // AIT_KERNELS_GPU_MFMA_LAYOUT_H_
