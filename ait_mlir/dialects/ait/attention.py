"""Scaled dot-product attention as one op."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, UnitAttr, f32, i32, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_region_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from ait_mlir.dialects.ait.base import PureOp, ResultTypes, Value, check_broadcastable
from ait_mlir.dialects.ait.bits import known_number
from ait_mlir.dialects.ait.dtypes import compute_type, f8E4M3FN, is_byte, is_computed_float, is_float, is_float8
from ait_mlir.dialects.ait.region import check_region, check_yield
from ait_mlir.dialects.ait.syntax import (
    INT,
    NUMBER,
    Flag,
    Operand,
    Operands,
    Prop,
    RegionClause,
    Several,
    Syntax,
)
from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import ShapeAttr, TensorType, scope_of, shape_text, tensor_type
from ait_mlir.dims import Expr, Scope, product, total


@dataclass(frozen=True)
class SameDim:
    """A dim on which two operands must agree."""

    counts: str
    """A noun for the dim in errors: batch, heads, ..."""
    name: str
    size: Expr
    other: str
    wanted: Expr


@irdl_op_definition
class AttentionOp(Cost, PureOp):
    """softmax(scale * q @ k^T + mask) @ v (arXiv:1706.03762), without storing the scores.

    q [B, H, S, D], k [B, G, L, D], v [B, G, L, E] give [B, H, S, E]; G divides H, and each head of k and v serves H / G
    neighbouring heads of q (arXiv:2305.13245). The additive mask broadcasts to [B, H, S, L]. The position of row s is
    column s + L - S, so the last row is at the last column; with `top_left` it is column s. `causal` hides the columns
    after the row's position; `window W` hides columns at a distance of W or more on either side. A mask of -inf hides a
    column, too. It is unspecified whether a NaN or infinity in a hidden column reaches the result.

    A row that sees no column is 0. With `nan_rows` it is NaN, as a softmax of only -inf is.

    `scores` is a region on scalars that changes the scaled scores before the mask is added: it takes a score in the
    compute type and the elements of operands that broadcast to [B, H, S, L], and yields a score. A bias of each head,
    slopes times distances (arXiv:2108.12409) and soft-capping (arXiv:2408.00118) are such regions.

    With `no_softmax` the changed scores are the weights, and weights of hidden columns are 0: two products with a
    function of each score between them. A mask is not allowed then; the region can add it.

    With `log_sums` there is a second result, the logarithm of the sum of the exponentials of the changed and masked
    scores that a row sees: [B, H, S], f32, or f64 if q is f64; -inf for a row that sees no column.

    With `result_scale` the result has numbers of 8 bits, as `ait.quantize` makes them with this scale. With `largest`
    and `least` each row of a head has a scale of its own: its largest magnitude divided by `largest`, at least `least`.
    These scales are the last result, [B, H, S] of f32.

    q, k and v of one piece may be f8E4M3FN. `scale` then contains the scales of q and k, v is multiplied by
    `value_scale`, 1 without it, and the type of the result is f16, bf16 or f32, or that of numbers with a scale.
    Kernels on tensor cores round the weights of a row to f8E4M3FN, too: to 4 significant bits, with the sum as it was.

    Keys and values may have a second piece, `then`, of equal length for both. Its rows follow those of k and v, and L
    is the total length. A cache and the rows of a new token then need no concatenation.

    ```mlir
    %o = ait.attention %q, %k, %v mask %m scale 0.125 causal window 128 : !ait.tensor<batch x 12 x seq x 64 x f16>
    %p = ait.attention %q, %k, %v then %k1, %v1 scale 0.125 causal : !ait.tensor<batch x 12 x 1 x 64 x f16>
    %n, %s = ait.attention %q, %k, %v scale 0.125 largest 448.0 least 1e-30
      : !ait.tensor<batch x 12 x seq x 64 x f8E4M3FN>, !ait.tensor<batch x 12 x seq x f32>
    %e = ait.attention %q8, %k8, %v8 scale 0.0005 value_scale 0.03 : !ait.tensor<batch x 12 x seq x 64 x f16>
    %r, %l = ait.attention %q, %k, %v scale 0.125 log_sums scores(%bias) {
    ^bb0(%score: f32, %0: f32):
      %1 = ait.add %score, %0 : f32
      ait.yield %1 : f32
    } : !ait.tensor<batch x 12 x seq x 64 x f16>, !ait.tensor<batch x 12 x seq x f32>
    ```
    """

    name = "ait.attention"
    SYNTAX: ClassVar[Syntax] = (
        Operands(("q", "k", "v")),
        Several("then", 2, "a second k and a second v", optional=True),
        Operand("mask", "mask", optional=True),
        Prop("scale", NUMBER),
        Flag("causal"),
        Flag("top_left"),
        Prop("window", INT, optional=True),
        Flag("no_softmax"),
        Flag("log_sums"),
        Flag("nan_rows"),
        Prop("value_scale", NUMBER, optional=True),
        Prop("result_scale", NUMBER, optional=True),
        Prop("largest", NUMBER, optional=True),
        Prop("least", NUMBER, optional=True),
        RegionClause("score_operands", "scores", optional=True),
    )
    WORK: ClassVar[int] = 5
    """Operations of the softmax for each score, in addition to the two products."""

    q = operand_def(TensorType)
    k = operand_def(TensorType)
    v = operand_def(TensorType)
    rest = var_operand_def(TensorType)
    scale = prop_def(FloatAttr | ShapeAttr)
    causal = opt_prop_def(UnitAttr)
    top_left = opt_prop_def(UnitAttr)
    window = opt_prop_def(IntegerAttr)
    no_softmax = opt_prop_def(UnitAttr)
    log_sums = opt_prop_def(UnitAttr)
    nan_rows = opt_prop_def(UnitAttr)
    value_scale = opt_prop_def(FloatAttr)
    result_scale = opt_prop_def(FloatAttr)
    largest = opt_prop_def(FloatAttr)
    least = opt_prop_def(FloatAttr)
    output = result_def(TensorType)
    sums = var_result_def(TensorType)
    change = opt_region_def()

    def __init__(
        self,
        q: Value,
        k: Value,
        v: Value,
        scale: float | ShapeAttr,
        mask: Value | None = None,
        causal: bool = False,
        window: int | None = None,
        then: tuple[Value, Value] | None = None,
        top_left: bool = False,
        log_sums: bool = False,
        score_operands: Sequence[SSAValue] = (),
        scores: Region | None = None,
    ) -> None:
        q = SSAValue.get(q)
        extras = [*(then or ()), *(() if mask is None else (mask,)), *score_operands]
        properties = {"scale": scale, "causal": causal, "top_left": top_left, "window": window, "log_sums": log_sums}
        self.set_up([q, k, v, extras], [q.type, [q.type] * log_sums], [scores], **properties)
        self.infer()

    # The operands are q, k, v, the second piece of k and v, the mask, the score operands. The region has an argument
    # for each score operand, so the number of operands tells which of the others are present.

    @property
    def scores(self) -> Region:
        """The region that changes the scaled scores; without blocks if there is none."""
        return self.change or Region()

    @property
    def changes_scores(self) -> bool:
        return self.change is not None and bool(self.change.blocks)

    @property
    def own_operands(self) -> Sequence[SSAValue]:
        """The operands before the score operands."""
        count = 0 if self.change is None or not self.change.blocks else len(self.change.blocks[0].args) - 1
        return self.operands[: max(3, len(self.operands) - count)]

    @property
    def score_operands(self) -> Sequence[SSAValue]:
        return self.operands[len(self.own_operands) :]

    @property
    def mask(self) -> SSAValue | None:
        own = self.own_operands
        return own[-1] if len(own) % 2 == 0 else None

    @property
    def then(self) -> tuple[SSAValue, SSAValue] | None:
        """The second pieces of k and v; None without them."""
        own = self.own_operands
        return (own[3], own[4]) if len(own) >= 5 else None

    @property
    def quantises(self) -> bool:
        """Whether the result has numbers of 8 bits with a scale."""
        return self.result_scale is not None or self.largest is not None

    @property
    def reads_float8(self) -> bool:
        """Whether q, k and v are floats of 8 bits."""
        return tensor_type(self.q).element_type == f8E4M3FN

    def computed_values(self) -> Sequence[SSAValue]:
        return (*self.operands[3 * int(self.reads_float8) :], *self.results[int(self.quantises) :])

    @property
    def length(self) -> Expr:
        """L: the rows of k in all pieces."""
        pieces = (self.k,) if self.then is None else (self.k, self.then[0])
        return total([tensor_type(piece).dims[2] for piece in pieces])

    def elements(self) -> Expr:
        return product(tensor_type(self.q).dims[:3]) * self.length

    def flops(self) -> Expr:
        depth, width = tensor_type(self.q).dims[3], tensor_type(self.v).dims[3]
        work = self.WORK if self.no_softmax is None else 0
        return self.elements() * (2 * (depth + width) + work + self.region_ops())

    def checks_of_second_piece(self, q: TensorType, k: TensorType, v: TensorType) -> list[SameDim]:
        """The dims that the second piece of k and of v shares with the first."""
        assert self.then is not None
        next_k, next_v = (tensor_type(x) for x in self.then)
        names = ("the second k", next_k, "k", k), ("the second v", next_v, "v", v)
        same = ((0, "batch"), (1, "heads"), (3, "head size"))
        shared = [SameDim(counts, n, t.dims[i], of, p.dims[i]) for n, t, of, p in names for i, counts in same]
        return [*shared, SameDim("length", "the second v", next_v.dims[2], "the second k", next_k.dims[2])]

    def infer_result_types(self) -> ResultTypes:
        if len(own := self.own_operands) > 6:
            raise self.fail(f"takes q, k, v, a second k and v, and a mask at most, got {len(own)} operands")
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
        if self.value_scale is not None:
            if not self.reads_float8:
                raise self.fail(f"has a `value_scale`, which is for q, k and v of f8E4M3FN, got {q.element_type}")
            self._check_positive("value_scale")
        known_number(self.scale)
        scope = scope_of(self)
        checks = [
            SameDim("batch", "k", k.dims[0], "q", q.dims[0]),
            SameDim("batch", "v", v.dims[0], "q", q.dims[0]),
            SameDim("head size", "k", k.dims[3], "q", q.dims[3]),
        ]
        if self.then is not None:
            checks += self.checks_of_second_piece(q, k, v)
        for dim in checks:
            if not scope.equal(dim.size, dim.wanted):
                raise self.fail(f"{dim.counts} of {dim.name} is {dim.size}, but of {dim.other} {dim.wanted}")
        heads, groups = q.dims[1], k.dims[1]
        if not scope.equal(heads, groups) and not divides(groups.as_int(), heads, scope):
            raise self.fail(f"heads of k is {groups}, which is not proved to divide the {heads} heads of q")
        if not scope.equal(groups, v.dims[1]):
            raise self.fail(f"heads of v is {v.dims[1]}, but of k {groups}")
        if self.window is not None and self.window.value.data < 1:
            raise self.fail(f"window must be at least 1, got {self.window.value.data}")
        if not scope.equal(k.dims[2], v.dims[2]):
            raise self.fail(f"length of v is {v.dims[2]}, but of k {k.dims[2]}")
        if self.no_softmax is not None and self.mask is not None:
            raise self.fail("has no softmax, so a mask cannot hide columns; the region of the scores can")
        if self.no_softmax is not None and self.log_sums is not None:
            raise self.fail("has no softmax, so there are no sums of exponentials")
        if self.no_softmax is not None and self.nan_rows is not None:
            raise self.fail("has no softmax, so a row that sees no column is 0, never NaN")
        if self.mask is not None:
            m = self.expect_tensor(self.mask, "the mask")
            check_broadcastable(self, "the mask", m.dims, (*q.dims[:3], self.length))
            if not is_float(m.element_type):
                raise self.fail(f"the mask is added and must be floating-point, got {m.element_type}")
        self._check_scores(q)
        found = [TensorType.get((*q.dims[:3], v.dims[3]), self._result_element(q))]
        if self.log_sums is not None:
            found.append(TensorType.get(q.dims[:3], compute_type(q.element_type)))
        if self.largest is not None:
            found.append(TensorType.get(q.dims[:3], f32))
        if len(found) != len(self.results):
            raise self.fail(
                f"has {len(self.results)} results, expected {len(found)}: `log_sums` and `largest` ask for one each"
            )
        return found

    def _result_element(self, q: TensorType) -> Attribute:
        """The element type of the result: that of q, or of the numbers of 8 bits."""
        if (self.largest is None) != (self.least is None):
            raise self.fail("needs both `largest` and `least`, which make the scale of a row")
        if not self.quantises:
            if not self.reads_float8:
                return q.element_type
            element = self.expect_tensor(self.output, "the result").element_type
            if not is_computed_float(element) or compute_type(element) != f32:
                raise self.fail(f"the result has element type {element}, expected f16, bf16 or f32 of q of f8E4M3FN")
            return element
        if self.result_scale is not None and self.largest is not None:
            raise self.fail("has a `result_scale`, so `largest` and `least` make no scales of rows; leave these out")
        for name in ("result_scale", "largest", "least"):
            self._check_positive(name)
        element = self.expect_tensor(self.output, "the result").element_type
        if not (is_float8(element) or is_byte(element)):
            raise self.fail(f"the result has element type {element}, expected i8, ui8, f8E4M3FN or f8E5M2 with a scale")
        if compute_type(q.element_type) != f32:
            raise self.fail(f"q has element type {q.element_type}, expected f16, bf16 or f32 for numbers of 8 bits")
        return element

    def _check_positive(self, name: str) -> None:
        number = getattr(self, name)
        if number is not None and not 0 < number.value.data < math.inf:
            raise self.fail(f"{name} is {number.value.data}, expected a finite number above 0")

    def _check_scores(self, q: TensorType) -> None:
        if not self.changes_scores:
            return
        extras = [self.expect_tensor(v, f"operand {i} of the scores") for i, v in enumerate(self.score_operands)]
        for i, t in enumerate(extras):
            check_broadcastable(self, f"operand {i} of the scores", t.dims, (*q.dims[:3], self.length))
        score = compute_type(q.element_type)
        arguments = [score, *(compute_type(t.element_type) for t in extras)]
        block = check_region(self, self.scores, arguments, "region of the scores")
        check_yield(self, block.last_op, [score])


@irdl_op_definition
class RaggedAttentionOp(Cost, PureOp):
    """Attention of sequences whose lengths are tensors: padded, packed one after the other, or in pages of a pool.

    Each sequence is computed as by `ait.attention`. A row without a visible column is 0.

    - Padded: q [B, H, S, D], k [B, G, L, D] and v [B, G, L, E]. `columns` [B] says how many rows of k and v each
      sequence has, `rows` [B] how many of q (default S); the result's other rows are 0.
    - Paged: k is a pool of pages [P, G, page, D], v a pool [P, G, page, E]. Column c of sequence b is row c % page of
      page `pages`[b, c / page]; `pages` is [B, N], and L is N * page. A cache of this form grows by a page at a time
      (arXiv:2309.06180).
    - Packed: q [1, H, T, D], k [1, G, T, D], v [1, G, T, E] hold the rows of all sequences; sequence b has the rows
      `segments`[b] up to `segments`[b + 1]. The result's rows outside of all sequences are 0.

    The position of row s of a sequence with r rows and c columns is its column s + c - r; `causal` and `window` are as
    in `ait.attention`. The integers are all i32 or all i64. For a length, page or offset outside of its dim and for
    offsets that decrease, the CPU fails and names the number; a GPU clamps it.

    ```mlir
    %o = ait.ragged_attention %q, %k, %v columns %n rows %m scale 0.125 causal : !ait.tensor<8 x 12 x s x 64 x f16>
    %p = ait.ragged_attention %q, %k, %v columns %n pages %table scale 0.125 causal : !ait.tensor<8 x 12 x 1 x 64 x f16>
    %r = ait.ragged_attention %q, %k, %v segments %offsets scale 0.125 : !ait.tensor<1 x 12 x total x 64 x f16>
    ```
    """

    name = "ait.ragged_attention"
    SYNTAX: ClassVar[Syntax] = (
        Operands(("qkv",)),
        Operand("columns", "columns", optional=True),
        Operand("rows", "rows", optional=True),
        Operand("pages", "pages", optional=True),
        Operand("segments", "segments", optional=True),
        Prop("scale", NUMBER),
        Flag("causal"),
        Prop("window", INT, optional=True),
    )
    SEGMENTED: ClassVar[bool] = True
    WORK: ClassVar[int] = AttentionOp.WORK

    qkv = var_operand_def(TensorType)
    columns = opt_operand_def(TensorType)
    rows = opt_operand_def(TensorType)
    pages = opt_operand_def(TensorType)
    segments = opt_operand_def(TensorType)
    scale = prop_def(FloatAttr | ShapeAttr)
    causal = opt_prop_def(UnitAttr)
    window = opt_prop_def(IntegerAttr)
    output = result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        qkv: Sequence[SSAValue],
        scale: float | ShapeAttr,
        columns: SSAValue | None = None,
        rows: SSAValue | None = None,
        pages: SSAValue | None = None,
        segments: SSAValue | None = None,
        causal: bool = False,
        window: int | None = None,
    ) -> None:
        self.set_up([qkv, columns, rows, pages, segments], scale=scale, causal=causal, window=window)

    @property
    def sequences(self) -> Expr:
        """The number of sequences."""
        if self.segments is not None:
            return tensor_type(self.segments).dims[0] - 1
        return tensor_type(self.qkv[0]).dims[0]

    @property
    def length(self) -> Expr:
        """The largest number of columns of a sequence."""
        rows = tensor_type(self.qkv[1]).dims[2]
        return rows if self.pages is None else rows * tensor_type(self.pages).dims[1]

    def flops(self) -> Expr:
        q, v = (tensor_type(x).dims for x in (self.qkv[0], self.qkv[2]))
        return product(q[:3]) * self.length * (2 * (q[3] + v[3]) + self.WORK)

    def integers(self) -> dict[str, SSAValue]:
        """The integer operands that the op has, by name."""
        found = {"columns": self.columns, "rows": self.rows, "pages": self.pages, "segments": self.segments}
        return {name: value for name, value in found.items() if value is not None}

    def infer_result_types(self) -> ResultTypes:
        if len(self.qkv) != 3:
            raise self.fail(f"takes q, k and v, got {len(self.qkv)} operands before the first keyword")
        names = ("q", "k", "v")
        types = [self.expect_tensor(x, n) for x, n in zip(self.qkv, names, strict=True)]
        for n, t in zip(names, types, strict=True):
            if t.rank != 4:
                raise self.fail(f"{n} must have 4 dims, got {shape_text(t.dims)}")
            if t.element_type != types[0].element_type or not is_float(t.element_type):
                raise self.fail(f"{n} has element type {t.element_type}, expected that of q, a float")
        q, k, v = types
        known_number(self.scale)
        if self.window is not None and self.window.value.data < 1:
            raise self.fail(f"window must be at least 1, got {self.window.value.data}")
        scope = scope_of(self)
        checks = [("k", k, 3, "head size", "q", q.dims[3]), ("v", v, 1, "heads", "k", k.dims[1])]
        checks += [("v", v, axis, what, "k", k.dims[axis]) for axis, what in ((0, "batch"), (2, "length"))]
        if self.pages is None:
            checks.append(("k", k, 0, "batch", "q", q.dims[0]))
        if self.segments is not None:
            checks.append(("k", k, 2, "length", "q", q.dims[2]))
        for name, t, axis, what, whose, other in checks:
            if not scope.equal(t.dims[axis], other):
                raise self.fail(f"{what} of {name} is {t.dims[axis]}, but of {whose} {other}")
        heads, groups = q.dims[1], k.dims[1]
        if not scope.equal(heads, groups) and not divides(groups.as_int(), heads, scope):
            raise self.fail(f"heads of k is {groups}, which is not proved to divide the {heads} heads of q")
        self._check_integers(q)
        return [TensorType.get((*q.dims[:3], v.dims[3]), q.element_type)]

    def _check_integers(self, q: TensorType) -> None:
        given = {name: self.expect_tensor(value, f"`{name}`") for name, value in self.integers().items()}
        if (self.segments is None) == (self.columns is None):
            raise self.fail("needs `columns`, the length of each sequence, or `segments`, their offsets, and not both")
        if self.segments is not None and len(given) > 1:
            raise self.fail("with `segments` there are no `rows` and no `pages`")
        kinds = {t.element_type for t in given.values()}
        if len(kinds) > 1 or not kinds <= {i32, i64}:
            raise self.fail(f"the integers must be all i32 or all i64, got {', '.join(sorted(map(str, kinds)))}")
        scope, batch = scope_of(self), q.dims[0]
        for name, t in given.items():
            rank = 2 if name == "pages" else 1
            if t.rank != rank:
                raise self.fail(f"`{name}` must have {rank} dims, got {shape_text(t.dims)}")
            if name != "segments" and not scope.equal(t.dims[0], batch):
                raise self.fail(f"`{name}` is for {t.dims[0]} sequences, but the batch of q is {batch}")
        if self.segments is not None:
            offsets = given["segments"].dims[0]
            if not scope.positive(offsets):
                raise self.fail(f"`segments` has {offsets} offsets, expected one more than sequences")
            if not scope.equal(batch, 1):
                raise self.fail(f"the batch of packed q is {batch}, expected 1")


def divides(divisor: int | None, e: Expr, scope: Scope) -> bool:
    """Whether a known number is proved to divide a dim."""
    return divisor is not None and divisor >= 1 and scope.divisible(e, divisor)


OPS = (AttentionOp, RaggedAttentionOp)
