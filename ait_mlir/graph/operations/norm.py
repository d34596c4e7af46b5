"""Normalisations. `epsilon` is a scalar tensor; its number is an argument of the code, or a constant of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from xdsl.ir import Region, SSAValue

from ait_mlir.dialects.ait.dtypes import compute_type
from ait_mlir.dialects.ait.norm import GroupNormOp, LayerNormOp, NormOp, RmsNormOp
from ait_mlir.dialects.ait.types import ShapeAttr, tensor_type
from ait_mlir.graph.enums import FLOATS, data_type, ir_type, norm_forward_phase
from ait_mlir.graph.layout import in_order_of
from ait_mlir.graph.lowering import Lowering
from ait_mlir.graph.nodes import REQUIRED, Dims, Node, Operation, Shapes
from ait_mlir.graph.tensor import as_indices, tensor

Check = Callable[[Node], None]


def _is_training(node: Node) -> bool:
    return node["norm_forward_phase"] is norm_forward_phase.TRAINING


def _axes(node: Node, first: int = 0) -> tuple[int, ...]:
    """The normalised dims: all dims in which the scale is not 1; without a scale all but the first."""
    dims = node.dims("input")
    if node.has("scale"):
        scale = _row_dims(node, "scale")
        found = tuple(a for a in range(first, len(dims)) if scale[a] != 1)
        if found:
            return found
    return tuple(range(1, len(dims)))


def _row(first: int) -> Callable[[Node], Sequence[int]]:
    """A function that gives the normalised dims of a node, from dim `first` on."""
    return lambda node: [node.dims("input")[a] for a in _axes(node, first)]


def _row_dims(node: Node, name: str) -> Dims:
    """The dims of a scale or bias, extended to the input's rank; each must be 1 or equal to the input's."""
    dims, given = node.dims("input"), node.dims(name)
    padded = (1,) * (len(dims) - len(given)) + given
    if len(padded) != len(dims) or any(n not in (1, m) for n, m in zip(padded, dims, strict=True)):
        raise node.wrong(
            f"{node.inputs[name].label} has dims {list(given)}, which do not fit those of the input {list(dims)}"
        )
    return padded


def _infer(first: int, *stats: str) -> Callable[[Node], Shapes]:
    def infer(node: Node) -> Shapes:
        dims = node.dims("input")
        if len(dims) < 2:
            raise node.wrong(f"{node.inputs['input'].label} has dims {list(dims)}, expected [rows, sizes...]")
        axes = _axes(node, first)
        for name in ("scale", "bias"):
            if node.has(name):
                _row_dims(node, name)
        one = tuple(1 if a in axes else n for a, n in enumerate(dims))
        return {"Y": (dims, in_order_of(dims, node.strides("input"))), **dict.fromkeys(stats, (one, None))}

    return infer


def _present(*stats: str) -> Callable[[Node], Sequence[str]]:
    return lambda node: ("Y", *stats) if _is_training(node) else ("Y",)


def _check(node: Node) -> None:
    for t in node.inputs.values():
        if t.dtype not in FLOATS:
            raise node.unsupported(f"{t.label} has data type {t.dtype.name}; norms are of floats")
    phase = node.attributes.get("norm_forward_phase", norm_forward_phase.INFERENCE)
    if phase not in (norm_forward_phase.INFERENCE, norm_forward_phase.TRAINING):
        raise node.unsupported(f"norm_forward_phase is {phase!r}, expected INFERENCE or TRAINING")
    if "epsilon" in node.inputs:
        eps = node.inputs["epsilon"]
        if not eps.is_by_value and not eps.is_constant:
            raise node.unsupported(
                f"{eps.label} lies in memory of the device; epsilon is a scalar: set_is_pass_by_value(True), a CPU "
                "tensor of one element, or tensor_scalar"
            )


def _eps(w: Lowering, eps: tensor) -> float | ShapeAttr:
    number = w.number_or_bits(eps)
    if number is None or (not isinstance(number, ShapeAttr) and not number >= 0):
        raise w.fail(f"{eps.label} is {number}, expected a number that is not negative")
    return number


def _takes_number(node: Node) -> bool:
    """Whether epsilon can be an argument of the code. It cannot for training statistics, which compute with it as a
    tensor, nor for f64, because an argument has the digits of f32.
    """
    return not _is_training(node) and node.compute_float() is data_type.FLOAT


def _common(node: Node, names: Sequence[str]) -> data_type:
    """The common data type of these inputs; if they differ, the node's compute type."""
    dtypes = {node.inputs[n].dtype for n in names if node.has(n)}
    if len(dtypes) == 1 and node.compute is not data_type.DOUBLE:
        return dtypes.pop()
    return node.compute_float()


def _rows(w: Lowering, value: SSAValue, axes: Dims) -> SSAValue:
    """A tensor with the normalised dims moved to the end."""
    rank = tensor_type(value).rank
    return w.permute(value, [*(a for a in range(rank) if a not in axes), *axes])


def _back(w: Lowering, value: SSAValue, axes: Dims) -> SSAValue:
    """The inverse of `_rows`."""
    rank = tensor_type(value).rank
    order = [*(a for a in range(rank) if a not in axes), *axes]
    return w.permute(value, [order.index(a) for a in range(rank)])


def _norm(
    w: Lowering, op_class: type[NormOp], node: Node, axes: Dims, rows: Sequence[str], eps: float | ShapeAttr
) -> SSAValue:
    """The normalised input with scale and bias, rounded only if the node's output has the type of the op."""
    dtype = _common(node, ("input", *rows))
    element = ir_type(dtype, node.label)
    axes = _up_to_last(node, axes)
    x = _rows(w, w.cast(w.value(node.inputs["input"]), element), axes)
    dims = w.dims(x)
    row = dims[len(dims) - len(axes) :]
    extra = [
        None if name not in rows or not node.has(name) else w.reshape(
            w.expand(w.cast(w.value(node.inputs[name]), element), _own_row(node, name, axes)), row
        )
        for name in ("scale", "bias")
    ]  # fmt: skip
    region, results = None, None
    if w.is_wide(node.outputs["Y"], dtype) and compute_type(element) != element:
        region, results = w.identity_region(element), [w.type(dims, compute_type(element))]
    count = len(axes)
    op = op_class(x, extra[0], extra[1], count, eps, prologue=region or Region(), result_types=results)
    return _back(w, w.put(op, infer=False), axes)


def _up_to_last(node: Node, axes: Dims) -> Dims:
    """The normalised dims, extended by following dims of 1, which do not change the result. So no permute is needed
    that would prevent fusing later ops as an epilogue."""
    behind = range(min(axes), len(node.dims("input")))
    return tuple(behind) if all(a in axes or node.dims("input")[a] == 1 for a in behind) else axes


def _own_row(node: Node, name: str, axes: Dims) -> Dims:
    """The dims of a scale or bias, with the input's sizes along the normalised dims."""
    dims, given = node.dims("input"), _row_dims(node, name)
    return tuple(dims[a] if a in axes else given[a] for a in range(len(dims)))[-len(node.dims(name)) :]


def _statistics(w: Lowering, node: Node, axes: Dims, eps: float | ShapeAttr, centered: bool) -> dict[str, SSAValue]:
    """Mean and 1 / sqrt(variance + epsilon), or 1 / sqrt(mean square + epsilon)."""
    assert not isinstance(eps, ShapeAttr), "a constant in training"
    x = w.wide(node.inputs["input"], node.compute_float())
    found: dict[str, SSAValue] = {}
    if centered:
        found["MEAN"] = w.reduce("mean", x, axes, keep=True)
        spread = w.reduce("var", x, axes, keep=True)
    else:
        spread = w.reduce("mean", w.mul(x, x), axes, keep=True)
    found["INV_VARIANCE"] = w.pointwise("rsqrt", w.add(spread, eps))
    return found


def _lower_norm(op_class: type[NormOp]) -> Callable[[Node, Lowering], Mapping[str, SSAValue]]:
    def lower(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
        axes, eps = _axes(node), _eps(w, node.inputs["epsilon"])
        found = {"Y": _norm(w, op_class, node, axes, ("scale", "bias"), eps)}
        if _is_training(node):
            found |= _statistics(w, node, axes, eps, op_class is LayerNormOp)
        return found

    return lower


def _lower_adaptive(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    """Write an adaptive norm, whose scale and bias differ in each batch."""
    axes, eps = _axes(node, 1), _eps(w, node.inputs["epsilon"])
    dtype = node.compute_float()
    x = _rows(w, w.wide(node.inputs["input"], dtype), axes)
    y = _back(w, w.put(LayerNormOp(x, None, None, len(axes), eps), infer=False), axes)
    y = w.mul(y, w.wide(node.inputs["scale"], dtype))
    if node.has("bias"):
        y = w.add(y, w.wide(node.inputs["bias"], dtype))
    found = {"Y": y}
    return found | _statistics(w, node, axes, eps, True) if _is_training(node) else found


# ** norms of channels **


def _infer_instance(node: Node) -> Shapes:
    dims = node.dims("input")
    if len(dims) < 3:
        raise node.wrong(f"the input is [N, C, sizes...], found {list(dims)}")
    _check_channels(node, ("scale", "bias"))
    stats = ((*dims[:2], *(1 for _ in dims[2:])), None)
    return {"Y": (dims, in_order_of(dims, node.strides("input"))), "MEAN": stats, "INV_VARIANCE": stats}


def _check_channels(node: Node, names: Sequence[str]) -> None:
    if len(node.dims("input")) < 2:
        label, dims = node.inputs["input"].label, list(node.dims("input"))
        raise node.wrong(f"{label} has dims {dims}, expected [N, C, sizes...]")
    channels = (1, node.dims("input")[1], *(1 for _ in node.dims("input")[2:]))
    for name in names:
        if node.has(name) and node.dims(name) != channels:
            raise node.wrong(
                f"{node.inputs[name].label} has dims {list(node.dims(name))}, expected {list(channels)}: one for each "
                "channel"
            )


def _lower_instance(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    dims, eps = node.dims("input"), _eps(w, node.inputs["epsilon"])
    out = node.outputs["Y"]
    dtype = _common(node, ("input", "scale", "bias"))
    if w.is_wide(out, dtype):
        dtype = node.compute_float()
    element, rank = ir_type(dtype, node.label), len(dims)
    x = w.cast(w.value(node.inputs["input"]), element)
    last = node.strides("input")[1] == 1 and dims[1] > 1
    x = w.permute(x, [0, *range(2, rank), 1]) if last else x
    scale, bias = (
        w.reshape(w.cast(w.value(node.inputs[n]), element), [dims[1]]) if node.has(n) else None
        for n in ("scale", "bias")
    )
    y = w.put(GroupNormOp(x, scale, bias, rank - 1 if last else 1, int(dims[1]), eps))
    y = w.permute(y, [0, rank - 1, *range(1, rank - 1)]) if last else y
    found = {"Y": y}
    return found | _statistics(w, node, tuple(range(2, rank)), eps, True) if _is_training(node) else found


def _infer_batch(node: Node) -> Shapes:
    dims = node.dims("input")
    _check_channels(node, ("mean", "inv_variance", "scale", "bias"))
    return {"Y": (dims, in_order_of(dims, node.strides("input")))}


def _lower_batch(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    x, mean, inverse, scale, bias = (
        w.wide(node.inputs[n], node.compute_float()) for n in ("input", "mean", "inv_variance", "scale", "bias")
    )
    normal = w.mul(w.sub(x, mean), inverse)
    return {"Y": w.add(w.mul(normal, scale), bias)}


def _infer_batch_training(node: Node) -> Shapes:
    dims = node.dims("input")
    _check_channels(node, ("scale", "bias", "in_running_mean", "in_running_var"))
    one = (tuple(n if a == 1 else 1 for a, n in enumerate(dims)), None)
    stats = ("MEAN", "INV_VARIANCE", "NEXT_RUNNING_MEAN", "NEXT_RUNNING_VAR")
    return {"Y": (dims, in_order_of(dims, node.strides("input"))), **dict.fromkeys(stats, one)}


def _check_batch_training(node: Node) -> None:
    if node["peer_stats"] is not None and as_indices(node["peer_stats"]) != ():  # an empty list names no device
        raise node.unsupported("peer_stats are of several devices: leave them out")
    running = [n for n in ("in_running_mean", "in_running_var", "momentum") if node.has(n)]
    if len(running) not in (0, 3):
        raise node.wrong("in_running_mean, in_running_var and momentum are given together, or none is")
    _check(node)


def _present_batch(node: Node) -> Sequence[str]:
    running = ("NEXT_RUNNING_MEAN", "NEXT_RUNNING_VAR") if node.has("in_running_mean") else ()
    return ("Y", "MEAN", "INV_VARIANCE", *running)


def _lower_batch_training(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    """Write the norm by the statistics of the batch; the running variance is that of a sample, as in PyTorch."""
    dtype, dims = node.compute_float(), node.dims("input")
    axes = [a for a in range(len(dims)) if a != 1]
    x, scale, bias = (w.wide(node.inputs[n], dtype) for n in ("input", "scale", "bias"))
    mean, var = (w.reduce(kind, x, axes, keep=True) for kind in ("mean", "var"))
    inverse = w.pointwise("rsqrt", w.add(var, _constant_eps(w, node)))
    found = {"Y": w.add(w.mul(w.mul(w.sub(x, mean), inverse), scale), bias), "MEAN": mean, "INV_VARIANCE": inverse}
    if node.has("in_running_mean"):
        count = prod(int(dims[a]) for a in axes)
        momentum = w.wide(node.inputs["momentum"], dtype)
        sample = w.mul(var, count / max(1, count - 1))
        for name, port, new in (("MEAN", "mean", mean), ("VAR", "var", sample)):
            old = w.wide(node.inputs[f"in_running_{port}"], dtype)
            found[f"NEXT_RUNNING_{name}"] = w.add(old, w.mul(momentum, w.sub(new, old)))
    return found


def _constant_eps(w: Lowering, node: Node) -> float:
    eps = _eps(w, node.inputs["epsilon"])
    assert not isinstance(eps, ShapeAttr), "a constant in training"
    return eps


def _infer_sums(node: Node) -> Shapes:
    _check_channels(node, ())
    dims = node.dims("input")
    one = (tuple(n if a == 1 else 1 for a, n in enumerate(dims)), None)
    return {"SUM": one, "SQ_SUM": one}


def _lower_sums(node: Node, w: Lowering) -> Mapping[str, SSAValue]:
    x = w.wide(node.inputs["input"], node.compute_float())
    axes = [a for a in range(len(w.dims(x))) if a != 1]
    return {"SUM": w.reduce("sum", x, axes, keep=True), "SQ_SUM": w.reduce("sum", w.mul(x, x), axes, keep=True)}


_TENSORS = ("input", "scale", "bias", "epsilon")
_PHASE = {"norm_forward_phase": REQUIRED}

OPERATIONS = (
    Operation(
        "layernorm",
        _TENSORS,
        ("Y", "MEAN", "INV_VARIANCE"),
        _infer(0, "MEAN", "INV_VARIANCE"),
        _lower_norm(LayerNormOp),
        optional=("scale", "bias"),
        attributes=_PHASE,
        present=_present("MEAN", "INV_VARIANCE"),
        check=_check,
        takes_number=_takes_number,
        faster=_row(0),
        doc="Normalises the dims where the scale is not 1. In the TRAINING phase also mean and 1 / sqrt(var + eps).",
    ),
    Operation(
        "rmsnorm",
        _TENSORS,
        ("Y", "INV_VARIANCE"),
        _infer(0, "INV_VARIANCE"),
        _lower_norm(RmsNormOp),
        optional=("scale", "bias"),
        attributes=_PHASE,
        present=_present("INV_VARIANCE"),
        check=_check,
        takes_number=_takes_number,
        faster=_row(0),
        doc="Divides by the root of the mean square over the dims where the scale is not 1.",
    ),
    Operation(
        "adalayernorm",
        _TENSORS,
        ("Y", "MEAN", "INV_VARIANCE"),
        _infer(1, "MEAN", "INV_VARIANCE"),
        _lower_adaptive,
        optional=("bias",),
        attributes=_PHASE,
        present=_present("MEAN", "INV_VARIANCE"),
        check=_check,
        takes_number=_takes_number,
        faster=_row(1),
        doc="layernorm with a scale and a bias for each batch.",
    ),
    Operation(
        "instancenorm",
        _TENSORS,
        ("Y", "MEAN", "INV_VARIANCE"),
        _infer_instance,
        _lower_instance,
        optional=("scale", "bias"),
        attributes=_PHASE,
        present=_present("MEAN", "INV_VARIANCE"),
        check=_check,
        takes_number=_takes_number,
        doc="Normalises each channel of each image.",
    ),
    Operation(
        "batchnorm",
        ("input", "scale", "bias", "in_running_mean", "in_running_var", "epsilon", "momentum"),
        ("Y", "MEAN", "INV_VARIANCE", "NEXT_RUNNING_MEAN", "NEXT_RUNNING_VAR"),
        _infer_batch_training,
        _lower_batch_training,
        optional=("in_running_mean", "in_running_var", "momentum"),
        attributes={"peer_stats": None},
        present=_present_batch,
        check=_check_batch_training,
        doc="Normalises each channel by the mean and the variance of the batch, and updates running ones.",
    ),
    Operation(
        "batchnorm_inference",
        ("input", "mean", "inv_variance", "scale", "bias"),
        ("Y",),
        _infer_batch,
        _lower_batch,
        check=_check,
        doc="(input - mean) * inv_variance * scale + bias, with one of each for a channel.",
    ),
    Operation(
        "genstats",
        ("input",),
        ("SUM", "SQ_SUM"),
        _infer_sums,
        _lower_sums,
        check=_check,
        doc="Sum and sum of squares of each channel.",
    ),
)
