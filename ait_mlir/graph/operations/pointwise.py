"""Pointwise operations. They compute in the node's compute type and round once, to the type of the output."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import f64, i1, i32
from xdsl.ir import SSAValue

from ait_mlir.compositions import functions
from ait_mlir.compositions.rotary import rotated
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.graph.layout import strides_like
from ait_mlir.graph.lowering import Lowering
from ait_mlir.graph.nodes import REQUIRED, Node, Operation, Shapes, broadcast

Formula = Callable[[Lowering, Node, Sequence[SSAValue]], SSAValue]


def _infer(node: Node) -> Shapes:
    """The broadcast dims of the inputs, and the strides of the first input that has these dims."""
    names = node.operation.tensors
    dims = broadcast(node, names)
    axis = node.attributes.get("axis", 0)
    if isinstance(axis, bool) or not isinstance(axis, int) or not 0 <= axis < max(1, len(dims)):
        raise node.wrong(f"axis is {axis!r}, expected 0 to {len(dims) - 1} for dims {list(dims)}")
    like = next((node.strides(n) for n in names if node.dims(n) == dims), None)
    return {"OUT_0": (dims, None if like is None else strides_like(dims, like))}


def _check(node: Node) -> None:
    for name, value in node.attributes.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
        if value is not None and not is_number:
            raise node.wrong(f"{name} is {value!r}, expected a number")


def _lower(formula: Formula) -> Callable[[Node, Lowering], Mapping[str, SSAValue]]:
    def lower(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
        result = formula(w, node, w.wide_all(node, *node.operation.tensors))
        return {"OUT_0": w.expand(result, node.outputs["OUT_0"].dims or ())}

    return lower


def _condition(w: Lowering, node: Node, name: str) -> SSAValue:
    """An input as a condition: whether an element is not 0."""
    return w.cast(w.value(node.inputs[name]), i1)


# ** formulas **


def _ait(mnemonic: str) -> Formula:
    return lambda w, node, x: w.pointwise(mnemonic, *x)


def _of_one(function: Callable[[Lowering, SSAValue], SSAValue]) -> Formula:
    return lambda w, node, x: function(w, x[0])


def _softplus(w: Lowering, node: Node, x: Sequence[SSAValue]) -> SSAValue:
    """log(1 + exp(x)); x itself above a threshold, where the two differ by less than the type resolves."""
    return functions.softplus(w, x[0], threshold=40.0 if tensor_type(x[0]).element_type == f64 else 20.0)


def _relu(w: Lowering, node: Node, x: Sequence[SSAValue]) -> SSAValue:
    """ReLU: below `lower_clip` a line of slope `negative_slope` through that point; at most `upper_clip`."""
    lower, upper, slope = (node.attributes.get(n) for n in ("lower_clip", "upper_clip", "negative_slope"))
    result, value = x[0], x[0]
    if not slope:
        result = w.pointwise("relu", value) if not lower else w.maximum(value, lower)
    else:
        edge = w.scalar_like(lower or 0, value)
        line = w.mul(w.sub(value, edge) if lower else value, w.scalar_like(slope, value))
        result = w.where(w.compare("gt", value, edge), value, w.add(line, edge) if lower else line)
    return result if upper is None else w.minimum(result, w.scalar_like(upper, value))


def _swish(w: Lowering, node: Node, x: Sequence[SSAValue]) -> SSAValue:
    beta = node["swish_beta"]
    if beta is None or beta == 1:
        return w.pointwise("silu", x[0])
    inner = w.mul(x[0], w.scalar_like(beta, x[0]))
    return w.mul(x[0], w.pointwise("sigmoid", inner))


def _add_square(w: Lowering, node: Node, x: Sequence[SSAValue]) -> SSAValue:
    return w.add(x[0], w.mul(x[1], x[1]))


def _compare(predicate: str) -> Formula:
    return lambda w, node, x: w.compare(predicate, x[0], x[1])


def _logical_not(w: Lowering, node: Node, x: Sequence[SSAValue]) -> SSAValue:
    return functions.invert(w, _condition(w, node, "input"))


def _logical_and(w: Lowering, node: Node, x: Sequence[SSAValue]) -> SSAValue:
    return w.both(_condition(w, node, "a"), _condition(w, node, "b"))


def _logical_or(w: Lowering, node: Node, x: Sequence[SSAValue]) -> SSAValue:
    return w.either(_condition(w, node, "a"), _condition(w, node, "b"))


def _binary_select(w: Lowering, node: Node, x: Sequence[SSAValue]) -> SSAValue:
    return w.where(_condition(w, node, "mask"), x[0], x[1])


def _gen_index(w: Lowering, node: Node, x: Sequence[SSAValue]) -> SSAValue:
    dims = node.dims("input")
    axis: int = node["axis"]
    integer = tensor_type(x[0]).element_type
    counted = w.index(dims[axis], axis, len(dims), i32)
    return w.expand(counted if node.compute.name == "NOT_SET" else w.cast(counted, integer), dims)


# ** rotation **


def _infer_rope(node: Node) -> Shapes:
    dims, angles, size = node.dims("input"), node.dims("freqs"), node["rope_dim"]
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise node.wrong(f"rope_dim is {size!r}, expected a whole number")
    width = size or dims[-1]
    fits = len(angles) == len(dims) and all(n in (1, m) for n, m in zip(angles[:-1], dims[:-1], strict=True))
    if width > dims[-1] or width % 2 or angles[-1:] != (width,) or not fits:
        raise node.wrong(
            f"{node.inputs['freqs'].label} has dims {list(angles)}, expected {[*dims[:-1], width]} with 1 where they "
            f"repeat; {width} elements, an even number, of {dims[-1]} are rotated"
        )
    return {"OUT_0": (dims, strides_like(dims, node.strides("input")))}


def _lower_rope(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    x, angles = (w.wide(node.inputs[n], node.compute_float()) for n in ("input", "freqs"))
    return {"OUT_0": rotated(w, x, angles, float(node["output_scale"]))}


# ** the table **


def _row(name: str, tensors: tuple[str, ...], formula: Formula, doc: str = "", **attributes: Any) -> Operation:
    lower = _lower(formula)
    positional = (*attributes, "name", "compute_data_type")
    return Operation(
        name, tensors, ("OUT_0",), _infer, lower, attributes=attributes, positional=positional, check=_check, doc=doc
    )


def _same(w: Lowering, node: Node, x: Sequence[SSAValue]) -> SSAValue:
    return x[0]


_UNARY: dict[str, Formula] = {
    **{name: _ait(name) for name in ("abs", "cos", "erf", "exp", "floor", "gelu", "log", "neg", "rsqrt")},
    **{name: _ait(name) for name in ("sigmoid", "sin", "sqrt", "tan", "tanh")},
    "gelu_approx_tanh": _ait("fast_gelu"),
    "identity": _same,
    "ceil": _of_one(functions.ceil),
    "elu": _of_one(functions.elu),
    "logical_not": _logical_not,
    "reciprocal": _of_one(functions.reciprocal),
    "softplus": _softplus,
}
_BINARY: dict[tuple[str, ...], dict[str, Formula]] = {
    ("a", "b"): {
        **{name: _ait(name) for name in ("add", "sub", "mul", "div")},
        "add_square": _add_square,
        "logical_and": _logical_and,
        "logical_or": _logical_or,
    },
    ("input0", "input1"): {"max": _ait("max"), "min": _ait("min"), "mod": _ait("rem"), "pow": _ait("pow")},
    ("input", "comparison"): {
        f"cmp_{name}": _compare(predicate)
        for name, predicate in (("eq", "eq"), ("neq", "ne"), ("lt", "lt"), ("le", "le"), ("gt", "gt"), ("ge", "ge"))
    },
    ("input", "bias"): {"bias": _ait("add")},
    ("input", "scale"): {"scale": _ait("mul")},
}

OPERATIONS = (
    *(_row(name, ("input",), formula) for name, formula in _UNARY.items()),
    *(_row(name, tensors, f) for tensors, rows in _BINARY.items() for name, f in rows.items()),
    _row(
        "relu",
        ("input",),
        _relu,
        "max(x, lower_clip), at most upper_clip; below the lower clip the slope is negative_slope.",
        negative_slope=None,
        lower_clip=None,
        upper_clip=None,
    ),
    _row("leaky_relu", ("input",), _relu, "x above 0, negative_slope * x below.", negative_slope=REQUIRED),
    _row("swish", ("input",), _swish, "x * sigmoid(swish_beta * x).", swish_beta=None),
    _row("gen_index", ("input",), _gen_index, "The index of each element along one axis.", axis=REQUIRED),
    Operation(
        "rope",
        ("input", "freqs"),
        ("OUT_0",),
        _infer_rope,
        _lower_rope,
        attributes={"output_scale": 1.0, "rope_dim": 0},
        check=_check,
        fixed=lambda node: [node.dims("input")[-1], node.dims("freqs")[-1]],
        doc="The last rope_dim elements of each row (0: all), rotated in pairs of the two halves by the angles freqs. "
        "All elements are multiplied by output_scale.",
    ),
    _row("binary_select", ("input0", "input1", "mask"), _binary_select, "input0 where the mask is true, else input1."),
)
