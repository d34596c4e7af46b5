"""Operators as a user writes them: one with kernels, a pattern and a row for PyTorch, and an elementwise one."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ait_mlir.operators import (
    Cpp,
    Elementwise,
    FloatAttr,
    Jinja,
    Op,
    PatternBuilder,
    TensorType,
    constraint,
    operand_def,
    operator,
    opt_operand_def,
    pattern,
    prop_def,
    result_def,
)

CPU = """
#include <math.h>

template <class T>
void rotate(const ait::Context&, ait::Tensor<const T, 2> x, ait::Tensor<T, 2> y, double angle) {
  const float c = cosf(angle), s = sinf(angle);
  for (int64_t i = 0; i < x.elements(); i += 2) {
    const float a = ait::to_float(x[i]), b = ait::to_float(x[i + 1]);
    y[i] = ait::from_float<T>(c * a - s * b);
    y[i + 1] = ait::from_float<T>(s * a + c * b);
  }
}
"""

GPU = """
template <class T>
__global__ void rotate_kernel(const T* x, T* y, int64_t pairs, float c, float s) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  const float a = ait::to_float(x[2 * i]), b = ait::to_float(x[2 * i + 1]);
  y[2 * i] = ait::from_float<T>(c * a - s * b);
  y[2 * i + 1] = ait::from_float<T>(s * a + c * b);
}

void rotate(const ait::Context& ctx, ait::Tensor<const {{ x.dtype }}, 2> x, ait::Tensor<{{ y.dtype }}, 2> y, double angle) {
  const int64_t pairs = x.elements() / 2;
  if (pairs == 0) return;
  rotate_kernel<<<(pairs + 255) / 256, 256, 0, ait::stream_of(ctx)>>>(x.data, y.data, pairs, cosf(angle), sinf(angle));
}
"""


@constraint
def is_finite(angle: FloatAttr) -> bool:
    """The number is neither infinite nor NaN."""
    return np.isfinite(angle.value.data)


@pattern()
def negation_moves_out(p: PatternBuilder) -> None:
    """rotate(-x, a) = -rotate(x, a)"""
    x, angle = p.value(), p.attr()
    negative = p.op("ait.neg", [x])
    root = p.op("mine.rotate", [p.result(negative)], {"angle": angle})
    p.require("one_use", p.result(negative))
    p.require("is_finite", angle)
    turned = p.new("mine.rotate", [x], {"angle": angle})
    p.replace(root, p.new("ait.neg", [turned]))


@operator
class Rotate(Op):
    """Turn each pair of elements by an angle.

    ```mlir
    %y = mine.rotate %x angle 0.5 : !ait.tensor<batch x 8 x f32>
    ```
    """

    name = "mine.rotate"

    x = operand_def(TensorType)
    angle = prop_def(FloatAttr)
    y = result_def(TensorType)

    def infer_result_types(self):
        if self.x.type.rank != 2:
            raise self.fail(f"needs two dims, got {self.x.type}")
        return [self.x.type]

    @staticmethod
    def reference(x, *, angle):
        a, b = x[:, 0::2], x[:, 1::2]
        turned = np.cos(angle) * a - np.sin(angle) * b, np.sin(angle) * a + np.cos(angle) * b
        return np.stack(turned, axis=2).reshape(x.shape)

    kernels: ClassVar = {"cpu": Cpp(CPU), "gpu": Jinja(GPU)}
    patterns = (negation_moves_out,)
    torch = "mine::rotate"


@operator
class Power(Elementwise):
    """`scale` times the cube of x."""

    name = "mine.cube"

    x = operand_def()
    scale = prop_def(FloatAttr)
    y = result_def()

    cpp = "T(scale) * x * x * x"

    @staticmethod
    def reference(x, *, scale):
        return scale * x**3


@operator
class Shifted(Op):
    """x, plus a shift if there is one; also its negative."""

    name = "mine.shifted"

    x = operand_def(TensorType)
    shift = opt_operand_def(TensorType)
    plus = result_def(TensorType)
    minus = result_def(TensorType)

    def infer_result_types(self):
        return [self.x.type, self.x.type]

    @staticmethod
    def reference(x, shift):
        y = x if shift is None else x + shift
        return y, -y

    kernels: ClassVar = {
        "cpu": Cpp("""
template <class X, class Shift, class Y>
int32_t shifted(const ait::Context& ctx, X x, Shift shift, Y plus, Y minus) {
  if (x.elements() > 1000) return ctx.fail("more than 1000 elements");
  for (int64_t i = 0; i < x.elements(); ++i) {
    plus[i] = x[i];
    if constexpr (!std::is_same_v<Shift, decltype(nullptr)>) plus[i] = plus[i] + shift[i];
    minus[i] = -plus[i];
  }
  return 0;
}
""")
    }
