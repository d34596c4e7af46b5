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
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TypeVar, cast

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait import elementwise as e
from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import BY_IR, compute_type, integer_range, is_float, is_float8
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dialects.outside import Elementwise
from ait_mlir.lowering.authored import scalar_cpp
from ait_mlir.lowering.cpp import element_type, literal

_Op = TypeVar("_Op", bound=Operation)

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
FLOAT8_FORMS = NARROW_FORMS | {e.DivOp: "ait::div_float8({0}, {1})"}
"""The same if it is rounded to a float of 8 bits. The quotient by a scale is rounded as the exact one."""
MAX_WORDS = 4
"""The most ops that the name of a functor lists."""
SMALLEST_DIVISOR = 2.0**-120
"""The reciprocals of smaller numbers, and of numbers above the reciprocal of this one, are not normal floats."""
KEEP_RELATIVE_ERROR = (e.MulOp, e.DivOp, e.NegOp, e.ClampOp, e.YieldOp)
"""Ops whose relative error is at most the sum of their operands' relative errors: no digits cancel."""


def functor(region: Region, name: str, stored: Sequence[Attribute] = ()) -> str:
    """The region as `struct NAME` with `apply(inputs..., outputs&...)`: block arguments in, yielded values out.

    `name` is an identifier made by the caller. `stored` are the element types to which a GPU kernel rounds the outputs:
    if all have at most 2 bytes, cheaper functions are exact enough, and casts to an 8-bit float are left to the store.
    The struct of a region that ends with a clamp to the range of the 8-bit float that it stores has a second one,
    `BoundedByStore`, without the clamp. Raises `ValueError` for an op that a region must not contain.
    """
    block = region.blocks[0]
    terminator = block.last_op
    if not isinstance(terminator, e.YieldOp):
        raise ValueError("a region ends with ait.yield")
    names, forms = _names(block), _forms(stored)
    arguments = [element_type(a.type) for a in block.args]
    outputs = [element_type(v.type) for v in terminator.operands]

    def struct(name: str, results: Sequence[SSAValue], inner: str = "") -> str:
        left_out = _made_by_store(terminator, results)
        lines = _statements(block, forms, left_out)
        lines += [f"out{i} = {names[v]};" for i, v in enumerate(results)]
        return _struct(name, arguments, outputs, lines, inner)

    results = [
        _before_casts(v, stored[i]) if i < len(stored) and is_float8(stored[i]) else v
        for i, v in enumerate(terminator.operands)
    ]
    inner = ""
    if len(stored) == 1 and is_float8(stored[0]) and (value := _before_range(results[0], stored[0])) is not None:
        inner = struct("BoundedByStore", [value])
    return struct(name, results, inner)


def _forms(stored: Sequence[Attribute]) -> Mapping[type[Operation], str]:
    """The cheaper functions that are exact enough for results of these element types."""
    if not stored or not all(isinstance(t, Float16Type | BFloat16Type) or is_float8(t) for t in stored):
        return {}
    return FLOAT8_FORMS if any(is_float8(t) for t in stored) else NARROW_FORMS


def _before_casts(value: SSAValue, stored: Attribute) -> SSAValue:
    """The value before casts to the stored type and back, which storing it rounds alike; `value` if there are none."""
    back = _maker(value, e.CastOp)
    to = None if back is None else _maker(back.operands[0], e.CastOp)
    if to is None or to.results[0].type != stored or to.operands[0].type != value.type:
        return value
    return to.operands[0]


def _before_range(value: SSAValue, stored: Attribute) -> SSAValue | None:
    """The value that a clamp to the range of the stored type bounds, if there is one."""
    clamp, largest = _maker(value, e.ClampOp), BY_IR[stored].largest
    return clamp.operands[0] if clamp is not None and clamp.bounds == (-largest, largest) else None


def _maker(value: SSAValue, kind: type[_Op]) -> _Op | None:
    """The op of this kind that makes the value, if the value has one use."""
    return value.owner if isinstance(value.owner, kind) and value.has_one_use() else None


def _made_by_store(terminator: e.YieldOp, results: Sequence[SSAValue]) -> set[Operation]:
    """The ops between the values that a functor returns and those that the region yields."""
    found: set[Operation] = set()
    for value, result in zip(terminator.operands, results, strict=True):
        while value is not result:
            assert isinstance(value.owner, Operation)
            found.add(value.owner)
            value = value.owner.operands[0]
    return found


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


def _struct(name: str, inputs: Sequence[str], outputs: Sequence[str], lines: Sequence[str], inner: str = "") -> str:
    """A functor; `inner` is a struct within it."""
    parameters = [f"{t} in{i}" for i, t in enumerate(inputs)] + [f"{t}& out{i}" for i, t in enumerate(outputs)]
    body = "".join(f"    {line}\n" for line in lines)
    within = "".join(f"  {line}\n" for line in inner.splitlines())
    return f"struct {name} {{\n{within}  static AIT_FN void apply({', '.join(parameters)}) {{\n{body}  }}\n}};\n"


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


def _only_scaled(value: SSAValue, ends: Set[Operation]) -> bool:
    """Whether the region's results are at most as sensitive to a relative error of `value` as `value` itself.

    `ends` are ops that are left to the store."""
    readers = [use.operation for use in value.uses if use.operation not in ends]
    return all(
        isinstance(op, KEEP_RELATIVE_ERROR) and all(_only_scaled(r, ends) for r in op.results) for op in readers
    )


def _statements(block: Block, forms: Mapping[type[Operation], str], ends: Set[Operation]) -> list[str]:
    """The statements of a region, without `ends`; `forms` are cheaper functions that its results allow."""
    names = _names(block)
    lines: list[str] = []
    for op in (op for op in block.ops if op not in ends):
        for result in op.results:
            operands = [names[v] for v in op.operands]
            types = [v.type for v in op.operands]
            value = narrow_expression(op, operands, forms) if forms and _only_scaled(result, ends) else None
            if value is None:
                value = scalar_expression(op, operands, types, result.type)
            lines.append(f"const {element_type(result.type)} {names[result]} = {value};")
    return lines


def narrow_expression(op: Operation, operands: Sequence[str], forms: Mapping[type[Operation], str]) -> str | None:
    """The cheaper C++ of an op whose result is only scaled before it is rounded to 1 or 2 bytes, if there is one;
    `forms` are the functions that this allows."""
    form = forms.get(type(op))
    if form is None or not isinstance(op.results[0].type, Float32Type):
        return None
    factor = _reciprocal(op, exact=forms is FLOAT8_FORMS)
    return form.format(*operands) if factor is None else f"ait::mul<float>({operands[0]}, {factor})"


def _reciprocal(op: Operation, exact: bool) -> str | None:
    """The reciprocal that replaces a division by a constant; None if it would overflow, lose digits, or, if `exact`, be
    rounded."""
    divisor = op.operands[1].owner if isinstance(op, e.DivOp) else None
    if not isinstance(divisor, ConstantOp) or not SMALLEST_DIVISOR <= abs(_constant(divisor)) <= 1 / SMALLEST_DIVISOR:
        return None
    if exact and abs(math.frexp(_constant(divisor))[0]) != 0.5:
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
