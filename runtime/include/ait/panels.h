/// @file panels.h
/// @brief Matrices stored in panels: how weights lie for the CPU's packed gemm.
///
/// A [k, n] matrix is cut into panels of `kPanelColumns` neighbouring columns; a panel holds its columns for k = 0, then for k = 1, and so
/// on, so that a product streams through it once, in order. The last panel is filled up with zeros. Elements of 2 bytes are widened to 4
/// where they are multiplied: a panel of them has as many columns as one of f32, and half the bytes. Elements of 1 byte lie in fours: a panel
/// has k = 0 to 3 of its first column, of its second and so on, then k = 4 to 7, and zeros after the last k. The layout is the same for all
/// processors.
#ifndef AIT_PANELS_H_
#define AIT_PANELS_H_

#include <stdint.h>

#include "ait/types.h"

namespace ait {

/// Bytes of a line of a panel in the compute type: three vector registers of AVX-512, six of AVX.
inline constexpr int64_t kPanelBytes = 192;

/// @brief Columns of a panel.
template <class T>
inline constexpr int64_t kPanelColumns = kPanelBytes / int64_t(sizeof(T) < 4 ? 4 : sizeof(T));

/// @brief Steps of k of a column that lie side by side.
template <class T>
inline constexpr int64_t kPanelSteps = sizeof(T) == 1 ? 4 : 1;

/// Products for a tile of 2 x 2 results of a window of 3 x 3: see `ait/kernels/cpu/conv_winograd.h`.
inline constexpr int64_t kWinogradTaps = 16;

}  // namespace ait
#endif  // AIT_PANELS_H_
