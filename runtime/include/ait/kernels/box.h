/// @file box.h
/// @brief Boxes by their corners, for host and device.
#ifndef AIT_KERNELS_BOX_H_
#define AIT_KERNELS_BOX_H_

#include <stdint.h>

#include "ait/types.h"

namespace ait {

/// @brief Corners x1, y1, x2, y2, and the area.
template <class A>
struct Box {
  A x1, y1, x2, y2, area;

  template <class T>
  static AIT_FN Box read(const T* from) {
    Box box{convert<A>(from[0]), convert<A>(from[1]), convert<A>(from[2]), convert<A>(from[3]), A(0)};
    box.area = (box.x2 - box.x1) * (box.y2 - box.y1);
    return box;
  }
};

/// @brief Whether the intersection over union of two boxes is above `iou`.
template <class A>
AIT_FN bool overlap(const Box<A>& a, const Box<A>& b, A iou) {
  const A x1 = a.x1 > b.x1 ? a.x1 : b.x1, y1 = a.y1 > b.y1 ? a.y1 : b.y1;
  const A x2 = a.x2 < b.x2 ? a.x2 : b.x2, y2 = a.y2 < b.y2 ? a.y2 : b.y2;
  const A width = x2 > x1 ? x2 - x1 : A(0), height = y2 > y1 ? y2 - y1 : A(0);
  const A inside = width * height;
  return inside / (a.area + b.area - inside) > iou;
}

}  // namespace ait
#endif  // AIT_KERNELS_BOX_H_
