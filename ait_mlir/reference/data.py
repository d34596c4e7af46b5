"""Reference semantics of parameters, constants and outputs."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import FloatAttr

from ait_mlir.dialects.ait.data import ConstantOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.dtypes import constant_type
from ait_mlir.reference.core import (
    UNROUNDED,
    Arrays,
    Evaluation,
    EvaluationError,
    element_type_of,
    piece,
    reference,
    storage_dtype,
    value_dtype,
    widen,
)


@reference(ParamOp)
def _(op: ParamOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    name = op.param_name.data
    if name not in ev.params:
        raise EvaluationError(f"no value for parameter {name!r}")
    return (widen(piece(ev, "params", name, ev.params[name]), element_type_of(op.results[0].type)),)


@reference(ConstantOp)
def _(op: ConstantOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    type_ = op.results[0].type
    element_type = element_type_of(type_)
    stored = element_type if op.splat() is None else constant_type(element_type)
    values = np.array(op.values()).astype(storage_dtype(stored)).astype(value_dtype(element_type))
    shape = ev.shape(type_)
    if isinstance(number := op.attributes.get(UNROUNDED), FloatAttr):
        return (np.full(shape, number.value.data),)
    return (np.broadcast_to(values.reshape(-1)[0], shape) if values.size == 1 else values.reshape(shape),)


@reference(OutputOp)
def _(op: OutputOp, arrays: Arrays, ev: Evaluation) -> Arrays:
    ev.outputs[op.output_name.data] = np.array(arrays[0])
    return ()
