"""Matrix products. A composite name lists the steps after the product: `gemm_rcr_bias_gelu`, `bmm_rrr_add`.

Letters give the storage of A, B and the result: `r` row-major, `c` column-major. With `rcr`, A is [..., M, K], B is
[N, K] and the result is [..., M, N]. A composite becomes one product and one elementwise op for each word behind the
layout; fusing them again is the work of the passes.
"""

from __future__ import annotations

from typing import ClassVar

from ait_mlir.dialects.ait import gemm as ait
from ait_mlir.frontend.operator import Operator
from ait_mlir.frontend.ops.elementwise import FuncEnum, elementwise
from ait_mlir.frontend.ops.epilogue import ACTIVATIONS, COMBINERS, apply_steps, operands_of, steps_of
from ait_mlir.frontend.tensor import Tensor

__all__ = [
    "bmm_ccc", "bmm_ccc_add", "bmm_ccr", "bmm_ccr_add", "bmm_crc", "bmm_crc_add", "bmm_crr", "bmm_crr_add",
    "bmm_rcc", "bmm_rcc_add", "bmm_rcr", "bmm_rcr_add", "bmm_rcr_n1", "bmm_rrc", "bmm_rrc_add", "bmm_rrr",
    "bmm_rrr_add", "bmm_rrr_k1_tanh", "dual_bmm_rrr_div", "dual_gemm_rcr_fast_gelu", "dual_gemm_rcr_silu",
    "gemm_rcr", "gemm_rcr_bias", "gemm_rcr_bias_add", "gemm_rcr_bias_add_add", "gemm_rcr_bias_add_add_relu",
    "gemm_rcr_bias_add_relu", "gemm_rcr_bias_fast_gelu", "gemm_rcr_bias_gelu", "gemm_rcr_bias_hardswish",
    "gemm_rcr_bias_mul", "gemm_rcr_bias_mul_add", "gemm_rcr_bias_mul_tanh", "gemm_rcr_bias_relu",
    "gemm_rcr_bias_sigmoid", "gemm_rcr_bias_sigmoid_mul", "gemm_rcr_bias_sigmoid_mul_tanh", "gemm_rcr_bias_swish",
    "gemm_rcr_bias_tanh", "gemm_rcr_fast_gelu", "gemm_rrr", "gemm_rrr_bias", "gemm_rrr_small_nk",
]  # fmt: skip

OPERANDS = ("bias", "d0", "d1")


class contraction(Operator):
    """A product of `a` and `b`, then the steps of its name; `bias`, `add` and `mul` each take the next of `extras`.

    They may also be given as `bias=`, `d0=` and `d1=`, the tensor that a bmm adds as `c=`.
    """

    op_class: ClassVar[type[ait.GemmOp] | type[ait.BmmOp]]
    layout: ClassVar[str]
    steps: ClassVar[tuple[str, ...]]

    def __init__(self) -> None:
        self._attrs["alpha"] = 1.0
        sources = [step for step in self.steps if step in COMBINERS and step != "bias"]
        self._attrs["num_sources"] = len(sources) if self.op_class is ait.GemmOp else 0

    def __call__(self, a: Tensor, b: Tensor, *extras: Tensor, **named: Tensor) -> Tensor:
        self.begin(a, b, *extras, *named.values())
        operands = operands_of(self, self.steps, OPERANDS if self.op_class is ait.GemmOp else ("c",), extras, named)
        y = self.emit_one(self.op_class, [a, b], {"layout": self.layout}, regions=1)
        return self.finish(apply_steps(self, self.steps, y, operands))


def _define(name: str) -> type[contraction]:
    """The operator class that a composite name describes."""
    family, layout, *rest = name.split("_", 2)
    steps = steps_of("".join(rest))
    op_class = ait.GemmOp if family == "gemm" else ait.BmmOp
    doc = f"{contraction.__doc__}\n\nSteps: {', '.join(('product ' + layout, *steps))}."
    namespace = {"op_class": op_class, "layout": layout, "steps": steps, "__doc__": doc, "__module__": __name__}
    return type(name, (contraction,), namespace)


gemm_rcr = _define("gemm_rcr")
gemm_rrr = _define("gemm_rrr")
gemm_rcr_bias = _define("gemm_rcr_bias")
gemm_rrr_bias = _define("gemm_rrr_bias")
gemm_rcr_bias_relu = _define("gemm_rcr_bias_relu")
gemm_rcr_bias_sigmoid = _define("gemm_rcr_bias_sigmoid")
gemm_rcr_bias_tanh = _define("gemm_rcr_bias_tanh")
gemm_rcr_bias_gelu = _define("gemm_rcr_bias_gelu")
gemm_rcr_bias_fast_gelu = _define("gemm_rcr_bias_fast_gelu")
gemm_rcr_bias_swish = _define("gemm_rcr_bias_swish")
gemm_rcr_bias_hardswish = _define("gemm_rcr_bias_hardswish")
gemm_rcr_fast_gelu = _define("gemm_rcr_fast_gelu")
gemm_rcr_bias_add = _define("gemm_rcr_bias_add")
gemm_rcr_bias_add_add = _define("gemm_rcr_bias_add_add")
gemm_rcr_bias_add_relu = _define("gemm_rcr_bias_add_relu")
gemm_rcr_bias_add_add_relu = _define("gemm_rcr_bias_add_add_relu")
gemm_rcr_bias_mul = _define("gemm_rcr_bias_mul")
gemm_rcr_bias_mul_add = _define("gemm_rcr_bias_mul_add")
gemm_rcr_bias_mul_tanh = _define("gemm_rcr_bias_mul_tanh")
gemm_rcr_bias_sigmoid_mul = _define("gemm_rcr_bias_sigmoid_mul")
gemm_rcr_bias_sigmoid_mul_tanh = _define("gemm_rcr_bias_sigmoid_mul_tanh")
bmm_rcr = _define("bmm_rcr")
bmm_rrr = _define("bmm_rrr")
bmm_crr = _define("bmm_crr")
bmm_ccr = _define("bmm_ccr")
bmm_rcc = _define("bmm_rcc")
bmm_rrc = _define("bmm_rrc")
bmm_crc = _define("bmm_crc")
bmm_ccc = _define("bmm_ccc")
bmm_rcr_add = _define("bmm_rcr_add")
bmm_rrr_add = _define("bmm_rrr_add")
bmm_crr_add = _define("bmm_crr_add")
bmm_ccr_add = _define("bmm_ccr_add")
bmm_rcc_add = _define("bmm_rcc_add")
bmm_rrc_add = _define("bmm_rrc_add")
bmm_crc_add = _define("bmm_crc_add")
bmm_ccc_add = _define("bmm_ccc_add")


class gemm_rrr_small_nk(gemm_rrr):
    """a @ b, documented for small K and N; any sizes are accepted, and selection chooses the kernel."""


class bmm_rcr_n1(Operator):
    """alpha * (a @ b^T) with a single row of b: a is [B, M, K], b [B, 1, K], the result [B, M, 1]."""

    def __call__(self, a: Tensor, b: Tensor, alpha: float = 1.0) -> Tensor:
        if b.rank < 2 or b.type.dims[-2].as_int() != 1:
            raise self.fail(f"b must have one row, [B, 1, K], found {b.describe()}")
        self._attrs["alpha"] = alpha
        y = bmm_rcr()(a, b)
        return self.finish(y if alpha == 1.0 else y * alpha)


class bmm_rrr_k1_tanh(Operator):
    """tanh(a @ b) with K = 1: a is [B, M, 1], b [B, 1, N]. With K = 0 the result is 0."""

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        k = (None, None) if a.rank < 2 or b.rank < 2 else (a.type.dims[-1].as_int(), b.type.dims[-2].as_int())
        if k not in ((0, 0), (1, 1)):
            raise self.fail("sums have more than one product; a must be [B, M, 1], b [B, 1, N]")
        return self.finish(elementwise(FuncEnum.TANH)(a * b if k == (1, 1) else bmm_rrr()(a, b)))


class dual_bmm_rrr_div(Operator):
    """(a @ b) / (a @ bias), with `bias` like b or with a single column: a is [B, M, K], b [B, K, N]."""

    def __call__(self, a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
        if bias.rank != b.rank or (bias.type.dims[-1].as_int() != 1 and bias.type.dims[-1] is not b.type.dims[-1]):
            raise self.fail(f"the second factor must be like b, {b.describe()}, or have one column")
        return self.finish(bmm_rrr()(a, b) / bmm_rrr()(a, bias))


class dual_gemm(Operator):
    """f(a @ b^T) * (a @ bias^T), with f the activation of the name: SwiGLU, GeGLU (arXiv:2002.05202).

    a is [..., M, K], b and `bias`, the second factor, are [N, K]; `bias` may be [1, K], one column for all N. The
    passes make one product of both, and one pass over its halves.
    """

    activation: ClassVar[str]

    def __call__(self, a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
        gate, value = gemm_rcr()(a, b), gemm_rcr()(a, bias)
        if gate.type != value.type and value.type.dims[-1].as_int() != 1:
            raise self.fail(f"the second factor must be like b, {b.describe()}, or have one row")
        return self.finish(elementwise(ACTIVATIONS[self.activation])(gate) * value)


class dual_gemm_rcr_silu(dual_gemm):
    """silu(a @ b^T) * (a @ bias^T)."""

    activation = "silu"


class dual_gemm_rcr_fast_gelu(dual_gemm):
    """gelu(a @ b^T) * (a @ bias^T), gelu in the tanh form."""

    activation = "fast_gelu"
