"""A `gemm` or `bmm` in the common form of all kernels: d = epilogue(a @ b), with rows, columns, batches and strides.

A column-major result is the row-major result of the swapped product, so kernels only know results [..., m, n]:
`Problem.of` swaps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, f64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.gemm import ContractionOp, MatrixOp, ScaledGemmOp, StoredGemmOp
from ait_mlir.dialects.ait.grouped import GroupedGemmOp
from ait_mlir.dialects.ait.strided import contiguous_strides, is_contiguous
from ait_mlir.dialects.ait.syntax import rounding
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.dialects.ait.types import TensorType, scope_of, tensor_type
from ait_mlir.dims import Expr, Scope
from ait_mlir.lowering.cpp import element_type
from ait_mlir.lowering.kernels.amounts import estimate_env
from ait_mlir.lowering.kernels.base import Arg, Emission, Launch, Strides, Target
from ait_mlir.lowering.kernels.loops import ONE, ZERO, Loop, broadcast_strides, collapse, named_numbers, nest
from ait_mlir.lowering.regions import functor, functor_name
from ait_mlir.lowering.target import Precision


@dataclass(frozen=True)
class Matrix:
    """One operand: the strides of its rows, columns and batches, in elements. For `b` rows run along k."""

    arg: Arg
    row: Expr
    col: Expr
    batch: tuple[Expr, ...]

    def cpp(self, place: str, cpp_dims: Mapping[str, str], const: bool = True) -> str:
        """`ait::gpu::Matrices<const ait::half>{input0, /*row=*/768, /*col=*/1, /*outer=*/0, /*inner=*/0}`"""
        outer, inner = (*(ZERO,) * (2 - len(self.batch)), *self.batch)
        name = self.arg.name
        strides = named_numbers(cpp_dims, f"{name}_", row=self.row, col=self.col, outer=outer, inner=inner)
        kind = ("const " if const else "") + element_type(self.arg.type.element_type)
        return f"ait::{place}::Matrices<{kind}>{{{name}, {strides}}}"


@dataclass(frozen=True)
class Problem:
    """`d[batch, m, n] = epilogue(a[batch, m, k] @ b[batch, k, n])`; `batch`: loops over batches, outermost first. Of a
    gated product b has twice as many columns: `d = epilogue(a @ b[.., :n], a @ b[.., n:])`. `further` are the results
    of the epilogue after d."""

    m: Expr
    n: Expr
    k: Expr
    batch: tuple[Expr, ...]
    a: Matrix
    b: Matrix
    d: Matrix
    extras: tuple[Matrix, ...]
    further: tuple[Matrix, ...] = ()

    @staticmethod
    def of(op: ContractionOp, ins: Sequence[Arg], outs: Sequence[Arg]) -> Problem:
        """The problem with these buffers. Leading dims of a gemm join m if the strides of all buffers allow it."""
        out, *further = outs
        layout, shape = op.layout.data, out.type.dims
        a_mk, b_kn = _pair(ins[0], layout[0] == "r"), _pair(ins[1], layout[1] == "r")
        first, first_mk, second, second_kn = ins[0], a_mk, ins[1], b_kn
        if layout[2] == "c":  # the swapped product
            first, first_mk, second, second_kn = ins[1], (b_kn[1], b_kn[0]), ins[0], (a_mk[1], a_mk[0])
        beside = [*ins[2:], *further]
        extras = [broadcast_strides(e, shape) for e in beside]
        lead = len(shape) - 2
        # The steps along the rows, then along the batches, of the first matrix, the result, extras and further results.
        rows = [first_mk[0], out.strides[-2], *(e[lead] for e in extras)]
        if isinstance(op, MatrixOp):
            # Loops over the leading dims and m: the innermost is m, the others are batches that share b.
            own = first.strides[:lead] if first is ins[0] else (ZERO,) * lead
            outer = [own, out.strides[:lead], *(e[:lead] for e in extras)]
            columns = [(*steps, row) for steps, row in zip(outer, rows, strict=True)]
            *loops, innermost = collapse(nest(shape[: lead + 1], columns), scope_of(op))
            m, rows = innermost.size, list(innermost.strides)
            if m.as_int() == 1:  # the row stride is never used, so it becomes the row's length, which kernels prefer
                rows = [op.split_a()[2], shape[-1], *(ZERO for _ in ins[2:]), *(shape[-1] for _ in further)]
            batches = [*_columns(loops, len(columns)), (ZERO,) * len(loops)]
        else:
            outer = [broadcast_strides(_leading(first), shape[:lead]), out.strides[:lead], *(e[:lead] for e in extras)]
            outer.append(broadcast_strides(_leading(second), shape[:lead]))
            loops = [x for x in collapse(nest(shape[:lead], outer), scope_of(op)) if x.size.as_int() != 1]
            m, batches = shape[-2], _columns(loops, len(outer))
        matrices = [
            Matrix(arg, row, strides[-1], steps)
            for arg, row, strides, steps in zip(beside, rows[2:], extras, batches[2:-1], strict=True)
        ]
        return Problem(
            m,
            shape[-1],
            op.split_a()[2],
            tuple(loop.size for loop in loops),
            Matrix(first, rows[0], first_mk[1], batches[0]),
            Matrix(second, second_kn[0], second_kn[1], batches[-1]),
            Matrix(out, rows[1], out.strides[-1], batches[1]),
            tuple(matrices[: len(ins) - 2]),
            tuple(matrices[len(ins) - 2 :]),
        )

    @staticmethod
    def contiguous(op: ContractionOp, position: int | None = None, strides: Strides = ()) -> Problem:
        """The problem with row-major buffers, except that operand `position` (results follow the operands) has these
        strides. The last problem is cached, because estimates request it once for each configuration."""
        global _last
        types = tuple([value.type for value in (*op.operands, *op.results)])
        given = (op, op.layout, types, scope_of(op), position, strides)
        last = _last  # other threads set it, too
        if last is None or last[0] != given:
            last = _last = given, Problem.of(op, *contiguous_args(op, position, strides))
        return last[1]

    def turned(self) -> Problem:
        """The transposed product of a single column without batches: d^T = b^T @ a^T, of a single row."""

        def turn(x: Matrix, row: Expr) -> Matrix:  # a single row: its stride is never used, and is the row's length
            return replace(x, row=row, col=x.row)

        n = self.m
        return Problem(
            *(self.n, n, self.k, ()),
            turn(self.b, self.k),
            replace(self.a, row=self.a.col, col=self.a.row),
            turn(self.d, n),
            tuple(turn(x, ZERO) for x in self.extras),
            tuple(turn(x, n) for x in self.further),
        )

    def shape_cpp(self, place: str, cpp_dims: Mapping[str, str]) -> str:
        outer, inner = (*(ONE,) * (2 - len(self.batch)), *self.batch)
        numbers = named_numbers(cpp_dims, "", m=self.m, n=self.n, k=self.k, outer=outer, inner=inner)
        return f"ait::{place}::GemmShape{{{numbers}}}"

    def extras_cpp(self, place: str, cpp_dims: Mapping[str, str]) -> str:
        """The operands that the epilogue reads and the further results that it writes, as an argument of templates."""
        read = [x.cpp(place, cpp_dims) for x in self.extras]
        written = [x.cpp(place, cpp_dims, const=False) for x in self.further]
        return f"ait::{place}::operands({', '.join([*read, *written])})"

    def results(self) -> tuple[Matrix, ...]:
        return self.d, *self.further

    def matrices(self) -> tuple[Matrix, ...]:
        return self.a, self.b, *self.extras, *self.results()

    def one_of(self, name: str) -> Matrix:
        """The matrix in the buffer `name`."""
        return next(x for x in self.matrices() if x.arg.name == name)

    def arguments(self, launch: Launch[Any]) -> tuple[str, str, str]:
        """The arguments of our templates, as C++: context and shape; a and b; the result and extra operands."""
        place, dims = launch.place, launch.dims
        return (
            f"ctx, {self.shape_cpp(place, dims)}",
            f"{self.a.cpp(place, dims)}, {self.b.cpp(place, dims)}",
            f"{self.d.cpp(place, dims, const=False)}, {self.extras_cpp(place, dims)}",
        )

    def sizes(self, scope: Scope) -> tuple[int, int, int, int]:
        """m, n, k and the number of batches at `estimate_env`."""
        env = estimate_env(scope)
        batches = 1
        for dim in self.batch:
            batches *= dim.evaluate(env)
        return self.m.evaluate(env), self.n.evaluate(env), self.k.evaluate(env), batches


_last: tuple[object, Problem] | None = None
"""The last arguments and result of `Problem.contiguous`."""


def contiguous_args(
    op: Operation, position: int | None = None, strides: Strides = ()
) -> tuple[Sequence[Arg], Sequence[Arg]]:
    """The buffers of an op's operands and of its results, row-major; the buffer at `position` (results follow the
    operands) has `strides`."""
    args: list[Arg] = []
    for i, value in enumerate((*op.operands, *op.results)):
        t = tensor_type(value)
        args.append(Arg(arg_name(op, i), t, strides if i == position else contiguous_strides(t.dims)))
    return args[: len(op.operands)], args[len(op.operands) :]


MAX_OPERANDS, LARGEST = 16, 2**31 - 1
"""The most operands of a product, and the largest size of it, that its kernels take."""


def extents_fit(op: StoredGemmOp | ScaledGemmOp) -> bool:
    """Whether a product with scales has few enough operands, and sizes that 32 bits hold."""
    extents, scope = op.extents(), scope_of(op)
    is_small = all(scope.bounds(e)[1] <= LARGEST for e in (extents.m, extents.n, extents.k))
    return is_small and len(op.operands) <= MAX_OPERANDS


def lies_in_rows(op: StoredGemmOp | ScaledGemmOp, position: int, strides: Strides, scope: Scope, matrices: int) -> bool:
    """Whether the strides of an operand or result suit the kernels of products with scales.

    The first `matrices` operands and the result need rows of adjacent elements. The scales and zero points must be
    row-major; operands of the epilogue may have any strides.
    """
    if position < matrices or position == len(op.operands):
        return strides[1].as_int() == 1
    is_own = position < len(op.own_operands)
    return not is_own or is_contiguous(tensor_type(op.operands[position]).dims, strides, scope)


def arg_name(op: Operation, position: int) -> str:
    """The C++ name of the buffer of operand `position`; results follow the operands."""
    count = len(op.operands)
    return f"input{position}" if position < count else f"output{position - count}"


def _pair(arg: Arg, straight: bool) -> tuple[Expr, Expr]:
    """The strides of the last two dims, swapped unless `straight`."""
    first, second = arg.strides[-2:]
    return (first, second) if straight else (second, first)


def _leading(arg: Arg) -> Arg:
    """The batch dims of a bmm operand."""
    return Arg(arg.name, TensorType.get(arg.type.dims[:-2], arg.type.element_type), arg.strides[:-2], arg.constant)


def _columns(loops: Sequence[Loop], operands: int) -> list[tuple[Expr, ...]]:
    """For each operand, its strides in all loops."""
    return [tuple(loop.strides[i] for loop in loops) for i in range(operands)]


def matrices_beside(op: HasEpilogue) -> int:
    """The number of tensors of the result's shape that the epilogue reads, or writes in addition to the result."""
    shape = tensor_type(op.results[0]).dims
    return sum(tensor_type(v).dims == shape for v in op.epilogue_operands) + len(op.results) - 1


def is_narrow(kind: Attribute) -> bool:
    """Whether the element type is f16 or bf16, which tensor cores multiply."""
    return isinstance(kind, Float16Type | BFloat16Type)


def precision_of(op: Operation, target: Target) -> Precision:
    """How the products of an op may be computed: as the setting says, or at least as `high` for an op with `tf32` on a
    CUDA card. Only f32 may be rounded.
    """
    if not isinstance(tensor_type(op.operands[0]).element_type, Float32Type):
        return "highest"
    rounds = target.kind == "cuda" and target.precision == "highest" and bool(rounding(op))
    return "high" if rounds else target.precision


def keeps_f32(op: Operation, target: Target) -> bool:
    """Whether products are computed without rounding operands."""
    return precision_of(op, target) == "highest"


def library_precision(op: Operation, target: Target) -> str | None:
    """The `ait_precision` of a library call; None for the highest."""
    return None if keeps_f32(op, target) else f"AIT_PRECISION_{precision_of(op, target).upper()}"


def on_mma(op: Operation, target: Target) -> bool:
    """Whether mma.sync may multiply the operands: f16, bf16, or f32 that may be rounded to TF32."""
    return target.has("mma") and (is_narrow(tensor_type(op.operands[0]).element_type) or not keeps_f32(op, target))


def in_halves(k: int, kind: Attribute) -> int:
    """K in elements of 2 bytes, the unit of tensor-core tiles; f32 takes twice the space and time."""
    return k * BY_IR[kind].bytes // 2


def epilogue_functor(op: HasEpilogue | GroupedGemmOp, place: str) -> tuple[str, str]:
    """The C++ definition of the epilogue's functor, empty without an epilogue, and the functor's type."""
    if not op.epilogue.blocks:
        return "", f"ait::{place}::NoEpilogue"
    stored = [tensor_type(r).element_type for r in op.results] if place == "gpu" else []
    name = functor_name(op.epilogue.block.ops)
    return functor(op.epilogue, name, stored), name


def call_template(
    launch: Launch[ContractionOp], header: str, template: str, more: str = "", problem: Problem | None = None
) -> Emission:
    """The call of one of our templates, for the problem of the launch or another form of it. `{epilogue}` in `template`
    is replaced by the functor; `more` is appended to the arguments."""
    problem = problem or Problem.of(launch.op, launch.ins, launch.outs)
    definition, functor = epilogue_functor(launch.op, launch.place)
    arguments = ", ".join(problem.arguments(launch)) + more
    call = f"return ait::{launch.place}::{template.replace('{epilogue}', functor)}({arguments});\n"
    return Emission(("ait/math.h", launch.header(header)), definition, call)


# ** epilogues of the gemm libraries **


@dataclass(frozen=True)
class LibraryEpilogue:
    """activation(acc + bias + residual): the operand positions of bias and residual, and the activation."""

    bias: int | None = None
    residual: int | None = None
    activation: str | None = None

    @property
    def flags(self) -> int:
        """The bits of `ait_epilogue`."""
        return (self.bias is not None) | {None: 0, "ait.relu": 2, "ait.fast_gelu": 4}[self.activation]


ACTIVATIONS = ("ait.relu", "ait.fast_gelu")


def library_epilogue(op: HasEpilogue) -> LibraryEpilogue | None:
    """The epilogue in the form of gemm libraries; None if they cannot compute all of it."""
    if not op.epilogue.blocks:
        return LibraryEpilogue()
    if len(op.results) > 1:
        return None
    length, found = _scan(op)
    last = op.epilogue.block.last_op
    assert last is not None
    inner = [o for o in op.epilogue.block.ops if o.name not in ("ait.constant", "ait.yield")]
    whole = length == len(inner)
    yielded = inner[-1].results[0] if inner else op.epilogue.block.args[0]
    return found if whole and last.operands[0] is yielded else None


def _scan(op: HasEpilogue) -> tuple[int, LibraryEpilogue]:
    block: Block = op.epilogue.block
    out = tensor_type(op.results[0])
    kind = tensor_type(op.operands[0]).element_type
    value: SSAValue = block.args[0]
    bias = residual = activation = None
    length = 0
    for inner in block.ops:
        if activation is not None or kind == f64:
            break
        if inner.name == "ait.constant":
            continue
        if inner.name == "ait.add":
            others = [v for v in inner.operands if v is not value]
            if len(others) != 1 or not isinstance(others[0].owner, Block):
                break
            position = 1 + list(block.args).index(others[0])  # pyright: ignore[reportArgumentType]
            t = cast(TensorType, op.operands[position].type)
            if bias is None and _is_bias(t, out, kind):
                bias = position
            elif residual is None and t.element_type == kind and t.dims == out.dims:
                residual = position
            else:
                break
        elif inner.name in ACTIVATIONS and inner.operands[0] is value:
            activation = inner.name
        else:
            break
        if list(value.uses)[1:]:
            break
        value = inner.results[0]
        length += 1
    return length, LibraryEpilogue(bias, residual, activation)


def _is_bias(t: TensorType, out: TensorType, kind: Attribute) -> bool:
    """Whether a tensor has one value for each column: its last dim is the result's, all others are literal 1s."""
    return (
        t.element_type == kind
        and t.rank >= 1
        and t.dims[-1] is out.dims[-1]
        and all(d.as_int() == 1 for d in t.dims[:-1])
    )
