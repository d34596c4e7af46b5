/// @file strided.h
/// @brief Strided copies as lines of pieces that lie next to each other.
#ifndef AIT_RUNTIME_STRIDED_H_
#define AIT_RUNTIME_STRIDED_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "device.h"

namespace ait::runtime {

/// @brief `count` pieces of `bytes`, at these distances in bytes.
struct StridedLines {
  int64_t count, to_stride, from_stride;
  size_t bytes;
};

/// @brief Calls `body(to, from, lines)` so often that the whole of `copy` is done. With `depth` 1 pieces are single elements; with 2 they are
/// the elements that are contiguous on both sides, where there are several, and the longest of the other axes is the line.
template <class Body>
void for_each_line(const StridedCopy& copy, int depth, Body&& body) {
  struct Axis {
    int64_t extent, to, from;
  };
  std::vector<Axis> axes;
  const auto element = static_cast<int64_t>(copy.element);
  for (size_t i = 0; i < copy.shape.size(); ++i) {
    if (copy.shape[i] == 0) return;
    if (copy.shape[i] > 1) axes.push_back({copy.shape[i], copy.to_strides[i] * element, copy.from_strides[i] * element});
  }
  size_t bytes = copy.element;
  while (depth > 1 && !axes.empty()) {
    const auto unit = static_cast<int64_t>(bytes);
    const auto next = std::find_if(axes.begin(), axes.end(), [unit](const Axis& axis) { return axis.to == unit && axis.from == unit; });
    if (next == axes.end()) break;
    bytes *= static_cast<size_t>(next->extent);
    axes.erase(next);
  }
  Axis line{1, 0, 0};
  if (!axes.empty()) {
    const auto found = depth == 1 ? axes.end() - 1
                                  : std::max_element(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.extent < b.extent; });
    line = *found;
    axes.erase(found);
  }
  const StridedLines lines{line.extent, line.to, line.from, bytes};
  std::vector<int64_t> at(axes.size());
  auto* to = static_cast<char*>(copy.to);
  const auto* from = static_cast<const char*>(copy.from);
  for (;;) {
    body(to, from, lines);
    size_t axis = axes.size();
    for (; axis-- > 0;) {
      to += axes[axis].to;
      from += axes[axis].from;
      if (++at[axis] < axes[axis].extent) break;
      to -= axes[axis].to * axes[axis].extent;
      from -= axes[axis].from * axes[axis].extent;
      at[axis] = 0;
    }
    if (axis == static_cast<size_t>(-1)) return;
  }
}

}  // namespace ait::runtime

#endif  // AIT_RUNTIME_STRIDED_H_
