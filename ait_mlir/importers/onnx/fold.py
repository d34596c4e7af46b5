"""Computes nodes whose inputs are known while importing: numbers by onnx's own evaluator, dims by rules here."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import i1

from ait_mlir.dialects.ait.dtypes import BY_NAME, STORED_ONLY, is_float
from ait_mlir.dims import DimError, Expr, Scope, const, floordiv, maximum, minimum, mod, product, total
from ait_mlir.importers.onnx.call import Call, NotSupported
from ait_mlir.importers.onnx.known import LONGEST, Known, element_type, known, objects

RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}
OTHERS = {"Constant", "Optional", "OptionalGetElement", "OptionalHasElement", "Identity", "Dropout", "ImageDecoder"}
"""Operators that their rows compute, whatever their inputs."""


def folded(c: Call) -> Any:
    """The results of a node that is computed here; None for other nodes."""
    node = c.node
    if node.domain not in ("", "ai.onnx") or node.op_type in RANDOM | OTHERS or not c.inputs:
        return None
    given = [v for v in c.inputs if v is not None]
    if not given or not all(isinstance(v, Known) and not v.is_weight for v in given):
        return None
    tensors = cast("list[Known]", given)
    if any(t.array.size > LONGEST for t in tensors) or any(a.type in (5, 10) for a in node.attribute):
        return None
    if not any(t.has_dims for t in tensors):
        made = _computed(c)
        if made is not None or any(t.array.dtype.kind not in "iu" for t in tensors):
            return made  # onnx's evaluator lacks old versions of some operators, which the rules have
    rule = RULES.get(node.op_type)
    try:
        return None if rule is None else rule(c)
    except (NotSupported, DimError, ValueError, IndexError, TypeError, AttributeError):
        return None  # the row writes the values, or says what is wrong


def _computed(c: Call) -> Any:
    """The results of a node on numbers; None if they are too large, or of types that the dialect lacks."""
    from onnx.reference import ReferenceEvaluator  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    if (size := _size(c)) is not None and size > LONGEST:
        return None
    names = list(c.node.input)
    feeds = {n: v.array for n, v in zip(names, c.inputs, strict=True) if n and v is not None}
    try:
        evaluator: Any = ReferenceEvaluator(c.node, opsets={c.node.domain: c.version})
        with np.errstate(all="ignore"):
            found: list[Any] = evaluator.run(None, feeds)
        return tuple(_known(value) for value in found)
    except Exception:
        return None  # the row writes the values, or says what is wrong


def _size(c: Call) -> int | None:
    """The number of elements of a result whose shape the inputs give; None for other operators."""
    if c.node.op_type == "ConstantOfShape":
        return math.prod(c.ints(0))
    if c.node.op_type in ("Expand", "Tile", "Reshape"):
        return math.prod(max(n, 1) for n in c.ints(1)) * (c.array(0).size if c.node.op_type == "Tile" else 1)
    if c.node.op_type == "Range":
        start, limit, delta = (float(c.array(i).reshape(-1)[0]) for i in range(3))
        return max(0, math.ceil((limit - start) / delta)) if delta else 0
    if c.node.op_type in ("Pad", "CenterCropPad", "OneHot", "Resize", "Upsample", "EyeLike"):
        return LONGEST + 1
    return None


def _known(value: Any) -> Known:
    if isinstance(value, list):
        raise TypeError("a sequence, which its row makes")
    array = np.asarray(value)
    return Known(array, BY_NAME[array.dtype.name].ir)


# ** rules for tensors with dims **

Rule = Callable[[Call], Any]


def _elementwise(compute: Callable[..., Any]) -> Rule:
    def rule(c: Call) -> Known | None:
        if any(is_float(t.element) for t in c.inputs):
            return None
        arrays = [objects(t) for t in c.inputs]
        made = np.frompyfunc(compute, len(arrays), 1)(*arrays)
        return known(np.asarray(made, dtype=object), c.inputs[0].element)

    return rule


def _divided(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return floordiv(_expr(a), _expr(b))


def _expr(n: Any) -> Expr:
    return n if isinstance(n, Expr) else const(int(n))


def _modulo(a: Any, b: Any) -> Any:
    return a % b if isinstance(a, int) and isinstance(b, int) else mod(_expr(a), _expr(b))


def _relation(holds: Callable[[Scope, Expr, Expr], bool], fails: Callable[[Scope, Expr, Expr], bool]) -> Rule:
    """A rule for comparisons of dims: each must have the same result for all values of the dims, else it is not
    computed.
    """

    def rule(c: Call) -> Known | None:
        a, b = np.broadcast_arrays(*(objects(t) for t in c.inputs))
        results: list[bool] = []
        for x, y in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True):
            x, y = _expr(x), _expr(y)
            if holds(c.w.scope, x, y):
                results.append(True)
            elif fails(c.w.scope, x, y):
                results.append(False)
            else:
                return None
        return Known(np.array(results, bool).reshape(a.shape), i1)

    return rule


def _moved(move: Callable[[Call, NDArray[Any]], Any]) -> Rule:
    """A rule that moves elements of the first input."""

    def rule(c: Call) -> Known | None:
        made = move(c, objects(c.inputs[0]))
        return None if made is None else known(made, c.inputs[0].element)

    return rule


def _gather(c: Call, x: NDArray[Any]) -> NDArray[Any]:
    taken = np.take(np.arange(x.size).reshape(x.shape), c.array(1).astype(int), axis=c.attr("axis", 0))
    return x.reshape(-1)[taken] if taken.ndim else _scalar(x.reshape(-1)[int(taken)])


def _scalar(value: Any) -> NDArray[Any]:
    made = np.empty((), dtype=object)
    made[()] = value
    return made


def _slice(c: Call, x: NDArray[Any]) -> NDArray[Any]:
    starts, ends = c.int_list("starts", 1) or [], c.int_list("ends", 2) or []
    axes = c.int_list("axes", 3, list(range(len(starts)))) or []
    steps = c.ints(4) if c.has(4) else [1] * len(starts)
    index: list[slice] = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        stop = None if step < 0 and end < -x.shape[axis] else end
        index[axis] = slice(start, stop, step)
    return x[tuple(index)]


def _squeeze(c: Call, x: NDArray[Any]) -> NDArray[Any]:
    axes = c.int_list("axes", 1)
    return np.squeeze(x) if axes is None else np.squeeze(x, axis=tuple(axes))


def _unsqueeze(c: Call, x: NDArray[Any]) -> NDArray[Any]:
    return np.expand_dims(x, tuple(c.int_list("axes", 1) or []))


def _reshape(c: Call, x: NDArray[Any]) -> NDArray[Any]:
    shape = c.int_list("shape", 1) or []
    if not c.attr("allowzero", 0):
        shape = [x.shape[i] if n == 0 else n for i, n in enumerate(shape)]
    return x.reshape(shape)


def _transpose(c: Call, x: NDArray[Any]) -> NDArray[Any]:
    return np.transpose(x, c.attr("perm"))


def _expand(c: Call, x: NDArray[Any]) -> NDArray[Any]:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(c.ints(1))))


def _tile(c: Call, x: NDArray[Any]) -> NDArray[Any]:
    return np.tile(x, c.ints(1))


def _concat(c: Call) -> Known:
    return known(np.concatenate([objects(t) for t in c.inputs], axis=c.attr("axis", 0)), c.inputs[0].element)


def _split(c: Call) -> Any:
    x, axis = objects(c.inputs[0]), c.attr("axis", 0)
    sizes = c.int_list("split", 1)
    if sizes is None:
        count = len(c.node.output)
        size = -(-x.shape[axis] // count)
        sizes = [min(size, x.shape[axis] - i * size) for i in range(count)]
    parts = np.split(x, np.cumsum(sizes)[:-1].tolist(), axis=axis)
    return tuple(known(p, c.inputs[0].element) for p in parts)


def _cast(c: Call) -> Known | None:
    to = element_type(c.attr("to"))
    return None if is_float(to) or to == i1 or to in STORED_ONLY else Known(c.inputs[0].array, to)


def _where(c: Call) -> Known | None:
    condition = c.inputs[0].array
    if condition.dtype == object:
        return None
    a, b = (objects(t) for t in c.inputs[1:])
    condition, a, b = np.broadcast_arrays(condition, a, b)
    return known(np.where(condition, a, b), c.inputs[1].element)


def _reduction(reduce: Callable[[list[Expr]], Expr]) -> Rule:
    def rule(c: Call) -> Known | None:
        x = objects(c.inputs[0])
        axes = c.int_list("axes", 1)
        if x.ndim != 1 or (axes is not None and axes not in ([0], [-1], [])):
            return None
        found = _scalar(reduce(c.inputs[0].exprs()))
        return known(found.reshape(1) if c.attr("keepdims", 1) else found, c.inputs[0].element)

    return rule


RULES: dict[str, Rule] = {
    "Add": _elementwise(operator.add),
    "Sub": _elementwise(operator.sub),
    "Mul": _elementwise(operator.mul),
    "Div": _elementwise(_divided),
    "Mod": _elementwise(_modulo),
    "Neg": _elementwise(operator.neg),
    "Max": _elementwise(lambda *a: functools.reduce(maximum, map(_expr, a))),
    "Min": _elementwise(lambda *a: functools.reduce(minimum, map(_expr, a))),
    "Equal": _relation(lambda s, a, b: s.equal(a, b), lambda s, a, b: s.lt(a, b) or s.lt(b, a)),
    "Less": _relation(lambda s, a, b: s.lt(a, b), lambda s, a, b: s.le(b, a)),
    "LessOrEqual": _relation(lambda s, a, b: s.le(a, b), lambda s, a, b: s.lt(b, a)),
    "Greater": _relation(lambda s, a, b: s.lt(b, a), lambda s, a, b: s.le(a, b)),
    "GreaterOrEqual": _relation(lambda s, a, b: s.le(b, a), lambda s, a, b: s.lt(a, b)),
    "Gather": _moved(_gather),
    "Slice": _moved(_slice),
    "Squeeze": _moved(_squeeze),
    "Unsqueeze": _moved(_unsqueeze),
    "Reshape": _moved(_reshape),
    "Transpose": _moved(_transpose),
    "Expand": _moved(_expand),
    "Tile": _moved(_tile),
    "Concat": _concat,
    "Split": _split,
    "Cast": _cast,
    "Where": _where,
    "ReduceProd": _reduction(product),
    "ReduceSum": _reduction(total),
}
