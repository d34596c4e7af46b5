"""Scaled dot-product attention as one op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, UnitAttr, f64, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def, var_operand_def

from ait_mlir.dialects.ait.base import AitOp, check_broadcastable
from ait_mlir.dialects.ait.dtypes import is_float
from ait_mlir.dialects.ait.syntax import INT, NUMBER, Flag, Operand, Operands, Prop, Several, Syntax
from ait_mlir.dialects.ait.traits import Cost, Pure
from ait_mlir.dialects.ait.types import TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, Scope, product, total

Check = tuple[str, TensorType, int, str, str, Expr]
"""An operand, its type, a dim that must equal one of another operand, what it counts, whose, and that dim."""


@irdl_op_definition
class AttentionOp(Cost, AitOp):
    """softmax(scale * q @ k^T + mask) @ v (arXiv:1706.03762), scores never stored.

    q [B, H, S, D], k [B, G, L, D], v [B, G, L, E] give [B, H, S, E]; G divides H, and each head of k and v serves H / G
    neighbouring heads of q (arXiv:2305.13245). The additive mask broadcasts to [B, H, S, L]. The position of row s is
    column s + L - S, so the last row is at the last column. `causal` hides the columns after the row's position;
    `window W` hides columns at a distance of W or more on either side. It is unspecified whether a NaN or infinity in a
    hidden column reaches the result.

    Keys and values may have a second piece, `then`, of equal length for both. Its rows follow those of k and v, and L
    is the total length. A cache and the rows of a new token then need no concatenation.

    ```mlir
    %o = ait.attention %q, %k, %v mask %m scale 0.125 causal window 128 : !ait.tensor<batch x 12 x seq x 64 x f16>
    %p = ait.attention %q, %k, %v then %k1, %v1 scale 0.125 causal : !ait.tensor<batch x 12 x 1 x 64 x f16>
    ```
    """

    name = "ait.attention"
    SYNTAX: ClassVar[Syntax] = (
        Operands(("q", "k", "v")),
        Several("then", 2, "a second k and a second v"),
        Operand("mask", "mask", optional=True),
        Prop("scale", NUMBER),
        Flag("causal"),
        Prop("window", INT, optional=True),
    )
    WORK: ClassVar[int] = 5
    """Operations for each score in addition to the two products: those of softmax."""

    q = operand_def(TensorType)
    k = operand_def(TensorType)
    v = operand_def(TensorType)
    rest = var_operand_def(TensorType)
    scale = prop_def(FloatAttr)
    causal = opt_prop_def(UnitAttr)
    window = opt_prop_def(IntegerAttr)
    output = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(
        self,
        q: SSAValue | Operation,
        k: SSAValue | Operation,
        v: SSAValue | Operation,
        scale: float,
        mask: SSAValue | Operation | None = None,
        causal: bool = False,
        window: int | None = None,
        then: tuple[SSAValue | Operation, SSAValue | Operation] | None = None,
    ) -> None:
        q = SSAValue.get(q)
        super().__init__(
            operands=[q, k, v, [*(then or ()), *(() if mask is None else (mask,))]],
            properties={
                "scale": FloatAttr(scale, f64),
                "causal": UnitAttr() if causal else None,
                "window": None if window is None else IntegerAttr(window, i64),
            },
            result_types=[q.type],
        )
        (inferred,) = self.infer_result_types()
        self.results[0]._type = inferred  # pyright: ignore[reportPrivateUsage]

    # The operands are q, k, v, then those of a second piece, then the mask, so their number says which are there.

    @property
    def mask(self) -> SSAValue | None:
        return self.operands[-1] if len(self.operands) % 2 == 0 else None

    @property
    def then(self) -> tuple[SSAValue, SSAValue] | None:
        """The second piece of k and of v."""
        return (self.operands[3], self.operands[4]) if len(self.operands) >= 5 else None

    @property
    def length(self) -> Expr:
        """L: the rows of k in all pieces."""
        pieces = (self.k,) if self.then is None else (self.k, self.then[0])
        return total([tensor_type(piece).dims[2] for piece in pieces])

    def elements(self) -> Expr:
        return product(tensor_type(self.q).dims[:3]) * self.length

    def flops(self) -> Expr:
        depth, width = tensor_type(self.q).dims[3], tensor_type(self.v).dims[3]
        return self.elements() * (2 * (depth + width) + self.WORK)

    def checks_of_second_piece(self, q: TensorType, k: TensorType, v: TensorType) -> list[Check]:
        """What the second piece of k and of v has in common with the first."""
        assert self.then is not None
        next_k, next_v = (tensor_type(x) for x in self.then)
        names = ("the second k", next_k, "k", k), ("the second v", next_v, "v", v)
        same = ((0, "batch"), (1, "heads"), (3, "head size"))
        checks = [(n, t, axis, what, whose, p.dims[axis]) for n, t, whose, p in names for axis, what in same]
        return [*checks, ("the second v", next_v, 2, "length", "the second k", next_k.dims[2])]

    def infer_result_types(self) -> Sequence[Attribute]:
        if len(self.operands) > 6:
            raise self.fail(f"takes q, k, v, a second k and v, and a mask at most, got {len(self.operands)} operands")
        pieced = self.then is not None
        names = ("q", "k", "v", "the second k", "the second v")[: 5 if pieced else 3]
        types = [self.expect_tensor(x, n) for x, n in zip(self.operands[: len(names)], names, strict=True)]
        q, k, v = types[:3]
        for n, t in zip(names, types, strict=True):
            if t.rank != 4:
                raise self.fail(f"{n} must have 4 dims [batch, heads, length, head size], got {shape_text(t.dims)}")
            if t.element_type != q.element_type:
                raise self.fail(f"{n} has element type {t.element_type}, but q has {q.element_type}")
        if not is_float(q.element_type):
            raise self.fail(f"needs a floating-point type, got {q.element_type}")
        scope = scope_of(self)
        checks = [
            ("k", k, 0, "batch", "q", q.dims[0]),
            ("v", v, 0, "batch", "q", q.dims[0]),
            ("k", k, 3, "head size", "q", q.dims[3]),
        ]
        if self.then is not None:
            checks += self.checks_of_second_piece(q, k, v)
        for name, t, axis, what, whose, other in checks:
            if not scope.equal(t.dims[axis], other):
                raise self.fail(f"{what} of {name} is {t.dims[axis]}, but of {whose} {other}")
        heads, groups = q.dims[1], k.dims[1]
        if not scope.equal(heads, groups) and not divides(groups.as_int(), heads, scope):
            raise self.fail(f"heads of k is {groups}, which is not proved to divide the {heads} heads of q")
        if not scope.equal(groups, v.dims[1]):
            raise self.fail(f"heads of v is {v.dims[1]}, but of k {groups}")
        if self.window is not None and self.window.value.data < 1:
            raise self.fail(f"window must be at least 1, got {self.window.value.data}")
        if not scope.equal(k.dims[2], v.dims[2]):
            raise self.fail(f"length of v is {v.dims[2]}, but of k {k.dims[2]}")
        if self.mask is not None:
            m = self.expect_tensor(self.mask, "the mask")
            check_broadcastable(self, "the mask", m.dims, (*q.dims[:3], self.length))
            if not is_float(m.element_type):
                raise self.fail(f"the mask is added and must be floating-point, got {m.element_type}")
        return [TensorType.get((*q.dims[:3], v.dims[3]), q.element_type)]


def divides(divisor: int | None, e: Expr, scope: Scope) -> bool:
    """Whether a known number is proved to divide a dim."""
    return divisor is not None and divisor >= 1 and scope.divisible(e, divisor)


OPS = (AttentionOp,)
