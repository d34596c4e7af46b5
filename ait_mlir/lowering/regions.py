"""Regions on scalars, printed as C++ functors.

```mlir
^bb0(%acc: f32, %bias: f32):
  %s = ait.add %acc, %bias : f32
  %g = ait.gelu %s : f32
  ait.yield %g : f32
```
becomes
```cpp
struct NAME {
  static AIT_FN void apply(float in0, float in1, float& out0) {
    const float add0 = ait::add<float>(in0, in1);
    const float gelu0 = ait::gelu(add0);
    out0 = gelu0;
  }
};
```
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait import elementwise as e
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import compute_type, integer_range, is_float
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dialects.outside import Elementwise
from ait_mlir.lowering.authored import scalar_cpp
from ait_mlir.lowering.cpp import element_type, literal

EXPRESSIONS: dict[type[Operation], str] = {
    **{op: f"ait::{op.name.removeprefix('ait.')}({{0}})" for op in e.UNARY},
    **{op: f"ait::{op.name.removeprefix('ait.')}<{{result}}>({{0}}, {{1}})" for op in e.BINARY},
    e.ClampOp: "ait::clamp<{result}>({0}, {low}, {high})",
    e.CompareOp: "ait::compare_{predicate}<{operand}>({0}, {1})",
    e.WhereOp: "ait::where<{result}>({0}, {1}, {2})",
    e.CastOp: "ait::cast<{result}>({0})",
    e.BitcastOp: "ait::bit_cast<{result}>({0})",
}
"""The C++ of every `ScalarLike` op: `{0}` is its first operand, `{operand}` and `{result}` are C++ types, `{low}` and
`{high}` the bounds of a clamp. The functions are in `ait/math.h`; those of unary and binary ops have the op's name."""

if _missing := [op.name for op in e.ELEMENTWISE if op not in EXPRESSIONS]:
    raise ValueError(f"{', '.join(_missing)} of {e.__file__} must have a row in EXPRESSIONS of {__file__}; add it")

NARROW_FORMS: dict[type[Operation], str] = {
    e.GeluOp: "ait::gelu_narrow({0})",
    e.FastGeluOp: "ait::fast_gelu_narrow({0})",
    e.SiluOp: "ait::silu_narrow({0})",
    e.SigmoidOp: "ait::sigmoid_narrow({0})",
    e.DivOp: "ait::div_narrow({0}, {1})",
}
"""Functions with a cheaper form that is exact enough if the result is rounded to 2 bytes."""
MAX_WORDS = 4
"""The most ops that the name of a functor lists."""
SMALLEST_DIVISOR = 2.0**-120
"""The reciprocals of smaller numbers, and of numbers above the reciprocal of this one, are not normal floats."""
KEEP_RELATIVE_ERROR = (e.MulOp, e.DivOp, e.NegOp, e.YieldOp)
"""Ops whose relative error is at most the sum of their operands' relative errors: no digits cancel."""


def functor(region: Region, name: str, narrow: bool = False) -> str:
    """The region as `struct NAME` with `apply(inputs..., outputs&...)`: block arguments in, yielded values out.

    `name` is an identifier made by the caller; `narrow` means that every output will be rounded to 2 bytes. Raises
    `ValueError` for an op that a region must not contain.
    """
    block = region.blocks[0]
    arguments = [element_type(a.type) for a in block.args]
    terminator = block.last_op
    if not isinstance(terminator, e.YieldOp):
        raise ValueError("a region ends with ait.yield")
    lines = _statements(block, narrow)
    names = _names(block)
    outputs = [element_type(v.type) for v in terminator.operands]
    lines += [f"out{i} = {names[v]};" for i, v in enumerate(terminator.operands)]
    return _struct(name, arguments, outputs, lines)


def functor_name(ops: Iterable[Operation]) -> str:
    """A name for the functor of these ops that depends only on the ops: `add_gelu_@ID@`."""
    words = [word_of(op) for op in ops if not isinstance(op, ConstantOp | e.YieldOp)]
    short = "_".join(words) if len(words) <= MAX_WORDS else f"{'_'.join(words[: MAX_WORDS - 1])}_and_more"
    return f"{short or 'pass'}_@ID@"


def op_functor(op: Operation, name: str) -> str:
    """An elementwise op on tensors as a functor on one element of each.

    Floats narrower than f32 are given and returned as f32; storing the result rounds it.
    """
    inputs = [compute_type(cast(TensorType, v.type).element_type) for v in op.operands]
    stored = [cast(TensorType, v.type).element_type for v in op.results]
    outputs = [compute_type(t) for t in stored]
    # A cast to 4 bits saturates there; the store would wrap.
    value = scalar_expression(op, [f"in{i}" for i in range(len(inputs))], inputs, _target(op, stored[0], outputs[0]))
    return _struct(name, [element_type(t) for t in inputs], [element_type(t) for t in outputs], [f"out0 = {value};"])


def _target(op: Operation, stored: Attribute, computed: Attribute) -> Attribute:
    """The type that the expression of an op has: that of the stored result for a cast to a narrow integer."""
    return stored if isinstance(op, e.CastOp) and not is_float(stored) else computed


def identity_functor(t: Attribute, name: str) -> str:
    """The functor that passes one value of the compute type of `t`."""
    kind = element_type(compute_type(t))
    return _struct(name, [kind], [kind], ["out0 = in0;"])


def _struct(name: str, inputs: Sequence[str], outputs: Sequence[str], lines: Sequence[str]) -> str:
    parameters = [f"{t} in{i}" for i, t in enumerate(inputs)] + [f"{t}& out{i}" for i, t in enumerate(outputs)]
    body = "".join(f"    {line}\n" for line in lines)
    return f"struct {name} {{\n  static AIT_FN void apply({', '.join(parameters)}) {{\n{body}  }}\n}};\n"


def _names(block: Block) -> dict[SSAValue, str]:
    """The inputs by number, and each result by the word of its op: `add0`, `gelu0`, `add1`."""
    names: dict[SSAValue, str] = {a: f"in{i}" for i, a in enumerate(block.args)}
    count: Counter[str] = Counter()
    for op in block.ops:
        for result in op.results:
            word = word_of(op)
            names[result] = f"{word}{count[word]}"
            count[word] += 1
    return names


def word_of(op: Operation) -> str:
    """The C++ word for a result of an op; `value` for operators from outside, whose names may be any text."""
    if isinstance(op, ConstantOp):
        return "constant"
    return op.name.partition(".")[2] if type(op) in EXPRESSIONS else "value"


def _only_scaled(value: SSAValue) -> bool:
    """Whether the region's results are at most as sensitive to a relative error of `value` as `value` itself."""
    return all(
        isinstance(use.operation, KEEP_RELATIVE_ERROR) and all(_only_scaled(r) for r in use.operation.results)
        for use in value.uses
    )


def _statements(block: Block, narrow: bool) -> list[str]:
    names = _names(block)
    lines: list[str] = []
    for op in block.ops:
        for result in op.results:
            operands = [names[v] for v in op.operands]
            types = [v.type for v in op.operands]
            value = narrow_expression(op, operands) if narrow and _only_scaled(result) else None
            if value is None:
                value = scalar_expression(op, operands, types, result.type)
            lines.append(f"const {element_type(result.type)} {names[result]} = {value};")
    return lines


def narrow_expression(
    op: Operation, operands: Sequence[str], more: Mapping[type[Operation], str] = MappingProxyType({})
) -> str | None:
    """The cheaper C++ of an op whose result is only scaled before it is rounded to 2 bytes, if there is one; `more` are
    forms beside `NARROW_FORMS`."""
    form = NARROW_FORMS.get(type(op)) or more.get(type(op))
    if form is None or not isinstance(op.results[0].type, Float32Type):
        return None
    factor = _reciprocal(op)
    return form.format(*operands) if factor is None else f"ait::mul<float>({operands[0]}, {factor})"


def _reciprocal(op: Operation) -> str | None:
    """The reciprocal that replaces a division by a constant; None if it would overflow or lose digits."""
    divisor = op.operands[1].owner if isinstance(op, e.DivOp) else None
    if not isinstance(divisor, ConstantOp) or not SMALLEST_DIVISOR <= abs(_constant(divisor)) <= 1 / SMALLEST_DIVISOR:
        return None
    return literal(1 / _constant(divisor), op.results[0].type)


def scalar_expression(op: Operation, operands: Sequence[str], types: Sequence[Attribute], result: Attribute) -> str:
    """The C++ expression of one op; `types` are the scalar types of the operands, `result` that of the value."""
    if isinstance(op, ConstantOp):
        return literal(_constant(op), result)
    if isinstance(op, Elementwise):
        return scalar_cpp(op, operands, element_type(result))
    form = EXPRESSIONS.get(type(op))
    if form is None:
        raise ValueError(f"{op.name} cannot stand in a region of a native kernel")
    predicate = op.predicate.data if isinstance(op, e.CompareOp) else ""
    if isinstance(op, e.CompareOp) and predicate not in e.PREDICATES:
        raise ValueError(f"ait.compare has the unknown predicate {predicate!r}")
    low, high = _bounds(op, result) if isinstance(op, e.ClampOp) else ("", "")
    return form.format(
        *operands,
        result=element_type(result),
        operand=element_type(types[0]),
        predicate=predicate,
        low=low,
        high=high,
    )


def _bounds(op: e.ClampOp, t: Attribute) -> tuple[str, str]:
    """The bounds of a clamp as C++; a missing bound is the end of the type's range."""
    ends = integer_range(t) or (-math.inf, math.inf)
    low, high = (end if bound is None else bound for bound, end in zip(op.bounds, ends, strict=True))
    return literal(low, t), literal(high, t)


def _constant(op: ConstantOp) -> float | int:
    """The value of a scalar `ait.constant`."""
    (value,) = op.values()
    return value
