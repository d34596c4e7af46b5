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
  static AIT_FN void apply(float i0, float i1, float& o0) {
    const float v0 = ait::add<float>(i0, i1);
    const float v1 = ait::gelu(v0);
    o0 = v1;
  }
};
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import Float32Type, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.lowering.cpp import element_type, literal

UNARY = frozenset(f"ait.{op}" for op in (
    "neg", "exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "relu", "gelu", "fast_gelu", "silu",
    "abs", "floor", "sin", "cos", "log1p", "expm1",
))  # fmt: skip
BINARY = frozenset(f"ait.{op}" for op in ("add", "sub", "mul", "div", "max", "min", "pow"))
PREDICATES = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


NARROW_FORMS = {"ait.gelu": "gelu_narrow", "ait.fast_gelu": "fast_gelu_narrow", "ait.silu": "silu_narrow"}
"""Functions with a cheaper form, exact enough where the result is rounded to 2 bytes."""
KEEP_RELATIVE_ERROR = frozenset(("ait.mul", "ait.div", "ait.neg", "ait.yield"))
"""Ops whose relative error is at most the sum of their operands': no digits cancel."""


def functor(region: Region, name: str, narrow: bool = False) -> str:
    """The region as `struct NAME` with `apply(inputs..., outputs&...)`: inputs as block arguments, an output per yield.

    `name` is an identifier made by the caller; `narrow` says that every output will be rounded to 2 bytes. Raises
    `ValueError` for an op that no region may hold.
    """
    block = region.blocks[0]
    arguments = [element_type(a.type) for a in block.args]
    terminator = block.last_op
    if terminator is None or terminator.name != "ait.yield":
        raise ValueError("a region ends with ait.yield")
    lines = _statements(block, narrow)
    names = _names(block)
    outputs = [element_type(v.type) for v in terminator.operands]
    lines += [f"o{i} = {names[v]};" for i, v in enumerate(terminator.operands)]
    return _struct(name, arguments, outputs, lines)


def op_functor(op: Operation, name: str) -> str:
    """An elementwise op on tensors as a functor on one element of each.

    Floats narrower than f32 are given and returned as f32; storing the result rounds it.
    """
    inputs = [compute_type(cast(TensorType, v.type).element_type) for v in op.operands]
    outputs = [compute_type(cast(TensorType, v.type).element_type) for v in op.results]
    value = _expression(op, [f"i{i}" for i in range(len(inputs))], inputs, outputs[0])
    return _struct(name, [element_type(t) for t in inputs], [element_type(t) for t in outputs], [f"o0 = {value};"])


def identity_functor(t: Attribute, name: str) -> str:
    """The functor that passes one value of the compute type of `t`."""
    kind = element_type(compute_type(t))
    return _struct(name, [kind], [kind], ["o0 = i0;"])


def _struct(name: str, inputs: Sequence[str], outputs: Sequence[str], lines: Sequence[str]) -> str:
    parameters = [f"{t} i{i}" for i, t in enumerate(inputs)] + [f"{t}& o{i}" for i, t in enumerate(outputs)]
    body = "".join(f"    {line}\n" for line in lines)
    return f"struct {name} {{\n  static AIT_FN void apply({', '.join(parameters)}) {{\n{body}  }}\n}};\n"


def _names(block: Block) -> dict[SSAValue, str]:
    names: dict[SSAValue, str] = {a: f"i{i}" for i, a in enumerate(block.args)}
    results = (r for op in block.ops for r in op.results)
    names.update((r, f"v{i}") for i, r in enumerate(results))
    return names


def _only_scaled(value: SSAValue) -> bool:
    """Whether a relative error of `value` is no larger in whatever the region yields."""
    return all(
        use.operation.name in KEEP_RELATIVE_ERROR and all(_only_scaled(r) for r in use.operation.results)
        for use in value.uses
    )


def _statements(block: Block, narrow: bool) -> list[str]:
    names = _names(block)
    lines: list[str] = []
    for op in block.ops:
        for result in op.results:
            operands = [names[v] for v in op.operands]
            types = [v.type for v in op.operands]
            if narrow and op.name in NARROW_FORMS and isinstance(result.type, Float32Type) and _only_scaled(result):
                value = f"ait::{NARROW_FORMS[op.name]}({operands[0]})"
            else:
                value = _expression(op, operands, types, result.type)
            lines.append(f"const {element_type(result.type)} {names[result]} = {value};")
    return lines


def _expression(op: Operation, operands: Sequence[str], types: Sequence[Attribute], result: Attribute) -> str:
    """The C++ expression of one op; `types` are the scalar types of the operands, `result` that of the value."""
    if op.name in UNARY:
        return f"ait::{op.name[4:]}({operands[0]})"
    if op.name in BINARY:
        return f"ait::{op.name[4:]}<{element_type(result)}>({', '.join(operands)})"
    if op.name == "ait.compare":
        predicate = cast(StringAttr, op.properties["predicate"]).data
        if predicate not in PREDICATES:
            raise ValueError(f"ait.compare has the unknown predicate {predicate!r}")
        return f"ait::compare_{predicate}<{element_type(types[0])}>({', '.join(operands)})"
    if op.name == "ait.where":
        return f"ait::where<{element_type(result)}>({', '.join(operands)})"
    if op.name == "ait.cast":
        return f"ait::cast<{element_type(result)}>({operands[0]})"
    if op.name == "ait.constant":
        return literal(_constant(op), result)
    raise ValueError(f"{op.name} cannot stand in a region of a native kernel")


def _constant(op: Operation) -> float | int:
    """The value of a scalar `ait.constant`."""
    (value,) = cast(ConstantOp, op).values()
    return value
