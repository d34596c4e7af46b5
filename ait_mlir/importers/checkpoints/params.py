"""Puts the weights of a checkpoint, as they are stored, in place of the params of an imported model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Operation, SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.compositions.index import slices_at
from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.data import GraphOp, ParamOp
from ait_mlir.dialects.ait.dtypes import BY_IR, is_float
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.types import TensorType, as_shape, tensor_type
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.importers.checkpoints.checkpoint import Checkpoint
from ait_mlir.importers.checkpoints.errors import CheckpointError
from ait_mlir.importers.checkpoints.stored import Activations, Array, StoredWeight

Made = dict[tuple[SSAValue, Activations], SSAValue]
"""Rounded values by the values and how they are rounded."""
MADE = "constant."
"""How the names of params begin that an importer computed; no checkpoint has them."""


@dataclass
class Replaced:
    """What became of the params of a model."""

    stored: list[str] = field(default_factory=list[str])
    """Params that are now computed from the stored numbers."""
    plain: list[str] = field(default_factory=list[str])
    """Params with a tensor of the checkpoint."""
    kept: list[str] = field(default_factory=list[str])
    """Params that keep the value of the model."""


class WriterBefore(Writer):
    """Writes before an op of a graph."""

    def __init__(self, place: Operation) -> None:
        block = place.parent
        assert block is not None
        super().__init__(block)
        self._place = place

    def insert(self, op: AitOp) -> Operation:
        self.block.insert_op_before(op, self._place)
        return op


def after(value: SSAValue) -> Operation:
    """The op before which ops may use a value."""
    owner = value.owner
    place = owner.next_op if isinstance(owner, Operation) else owner.first_op
    assert place is not None
    return place


def use_checkpoint(
    module: ModuleOp,
    constants: dict[str, Array],
    checkpoint: Checkpoint,
    *,
    names: Callable[[str], str] | None = None,
    keep: Sequence[str] = (),
) -> Replaced:
    """Let a module read the weights of a checkpoint as they are stored; `constants` get the stored arrays.

    A quantised weight becomes `ait.dequantize` of its stored numbers, in the type of the param. Where its columns are
    in another order, the products with it read x in that order, and they round x where the checkpoint says so. Other
    tensors replace the value of a param, converted to its type. `names` gives the name in the checkpoint for the name
    of a param; by default they are equal, or for GGUF those of the models of `transformers`. Params
    whose names match one of the patterns `keep` keep their value. Raises `CheckpointError` for a param that the
    checkpoint does not have, and for one of another shape.
    """
    graph = next(op for op in module.ops if isinstance(op, GraphOp))
    done, made = Replaced(), Made()
    for param in list(graph.params()):
        name = param.param_name.data
        if name.startswith(MADE) or any(fnmatchcase(name, pattern) for pattern in keep):
            done.kept.append(name)
            continue
        wanted = names(name) if names is not None else name
        found = checkpoint.get(wanted)
        if isinstance(found, StoredWeight):
            _store(param, constants, checkpoint, wanted, found, made)
            done.stored.append(name)
        elif found is not None:
            constants[name] = _converted(param, checkpoint, wanted, found)
            done.plain.append(name)
        else:
            also = "" if wanted == name else f", under the name {wanted!r}"
            raise CheckpointError(
                f"{checkpoint.path}: the model's param {name!r} is not in the checkpoint{also}; give its name there, "
                "or keep the model's value"
            )
    return done


def _store(
    param: ParamOp,
    constants: dict[str, Array],
    checkpoint: Checkpoint,
    wanted: str,
    weight: StoredWeight,
    made: Made,
) -> None:
    t, name = tensor_type(param.output), param.param_name.data
    _check_shape(param, checkpoint, wanted, weight.shape)
    if not is_float(t.element_type):
        raise CheckpointError(
            f"{checkpoint.path}: tensor {wanted!r} is a quantised weight, but the model's param {name!r} has elements "
            f"of {t.element_type}"
        )
    if weight.order is not None and (products := _products(param)):
        weight = _with_ordered_rows(products, weight, name, constants)
    if weight.activations is not None:
        for op in _products(param):
            op.operands[0] = _rounded(op.a, weight.activations, made)
    value = weight.write(WriterBefore(param), name, t.element_type)
    param.output.replace_all_uses_with(value)
    param.detach()
    param.erase()
    constants.pop(name, None)
    constants.update(weight.parts(name))


def _rounded(x: SSAValue, how: Activations, made: Made) -> SSAValue:
    """The rounded values of x, once for all products that round it alike."""
    if (x, how) not in made:
        made[x, how] = how.rounded(WriterBefore(after(x)), x)
    return made[x, how]


def _products(param: ParamOp) -> list[GemmOp]:
    """The products x @ w^T that read a weight; none if something else reads it, too."""
    users = [use.operation for use in param.output.uses if use.index == 1]
    products = [op for op in users if isinstance(op, GemmOp) and op.layout.data == "rcr" and not op.epilogue.blocks]
    return products if len(products) == len(list(param.output.uses)) else []


def _with_ordered_rows(
    products: Sequence[GemmOp], weight: StoredWeight, name: str, constants: dict[str, Array]
) -> StoredWeight:
    """Let products read x in the order of the stored columns; returns the weight without its order."""
    assert weight.order is not None
    columns = np.argsort(weight.order).astype(np.int64)
    constants[f"{name}.columns"] = columns
    t = TensorType.get(as_shape(columns.shape), i64)
    for product in products:
        w = WriterBefore(product)
        rows = slices_at(w, product.a, tensor_type(product.a).rank - 1, w.param(f"{name}.columns", t))
        product.operands[0] = w.full(rows)
    return replace(weight, order=None)


def _converted(param: ParamOp, checkpoint: Checkpoint, wanted: str, array: Array) -> Array:
    _check_shape(param, checkpoint, wanted, array.shape)
    found, meant = array.dtype.name, BY_IR[tensor_type(param.output).element_type]
    is_number = "float" in found
    if found != meant.name and not (is_number and meant.is_float):
        raise CheckpointError(
            f"{checkpoint.path}: tensor {wanted!r} has dtype {found}, but the model's param has elements of "
            f"{meant.mlir}"
        )
    return array.astype(numpy_dtype(meant.name))


def _check_shape(param: ParamOp, checkpoint: Checkpoint, wanted: str, shape: tuple[int, ...]) -> None:
    meant = tensor_type(param.output).static_shape()
    if meant != shape:
        raise CheckpointError(
            f"{checkpoint.path}: tensor {wanted!r} has shape {list(shape)}, but the model's param "
            f"{param.param_name.data!r} has shape {list(meant or ())}"
        )
