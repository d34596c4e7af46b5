"""Operators read and write parts of other tensors in place, by strides."""

from __future__ import annotations

import os
from collections.abc import Mapping

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from ait_mlir.compiler.transform.apply import dump, writable
from ait_mlir.dialects.ait.strided import contiguous_strides
from ait_mlir.dialects.ait_rt import buffers as rt
from ait_mlir.dialects.ait_rt.program import LaunchOp
from ait_mlir.dialects.ait_rt.types import BufferType
from ait_mlir.dims import const
from ait_mlir.frontend.accessor import TensorAccessor
from ait_mlir.frontend.lift import Emission, emit
from ait_mlir.frontend.target import detect_target
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.ir.context import context
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.passes.parse import parse_passes

__all__ = ["TensorAccessor", "detect_target", "transform_strided_ops"]

_MARK = "transform_strided_ops"


def transform_strided_ops(sorted_graph: list[Tensor], workdir: str | os.PathLike[str] | None = None) -> list[Tensor]:
    """The given list, with attributes that show the accesses in place of the lowered program.

    The transformation works on buffers and launches (`remove-copies`); the operators stay the same. A copy of the graph
    is lowered for the CPU without fusion, and written to `workdir`. From this copy come the attributes

    - `_attrs["nop"]` of an operator without a launch, such as a split whose parts are read in place;
    - `_attrs["output_accessors"]` of other operators, a `TensorAccessor` for each result of the last launch;
    - `_attrs["input_accessors"]` of operators with one launch, in the order of the operands in the IR;
    - `_attrs["is_view_of"]` of a tensor that is written into its part of another tensor, such as a concatenation.
    """
    emission = emit(sorted_graph)
    directory = writable(workdir)
    owners: dict[str, Tensor] = {}
    for i, (tensor, value) in enumerate(emission.values.items()):
        value.name_hint = f"value{i}"  # a number behind an underscore would be cut off
        owners[value.name_hint] = tensor
    ops = [s.op for snapshots in emission.groups.values() for s in snapshots]
    marks: dict[int, Operation] = {}
    for i, op in enumerate(ops):
        marks[i] = op
        op.location = FileLineColLoc(StringAttr(_MARK), IntAttr(i), IntAttr(0))
    names = _named(emission)
    passes = parse_passes('select{target="cpu"},bufferize,remove-copies')
    run_passes(context(), emission.module, passes, verify="end")
    launches: dict[Operation, list[LaunchOp]] = {}
    for launch in [op for op in emission.module.walk() if isinstance(op, LaunchOp)]:
        if isinstance(launch.location, FileLineColLoc) and launch.location.filename.data == _MARK:
            launches.setdefault(marks[launch.location.line.data], []).append(launch)
    for operator, snapshots in emission.groups.items():
        found = [launch for s in snapshots for launch in launches.get(s.op, [])]
        operator.attrs["nop"] = not found
        if not found:
            continue
        if len(found) == 1:
            operator.attrs["input_accessors"] = [_accessor(v, owners, names) for v in found[0].ins]
        operator.attrs["output_accessors"] = outs = [_accessor(v, owners, names) for v in found[-1].outs]
        for tensor, accessor in zip(operator.outputs, outs, strict=False):
            if accessor.tensor not in (None, tensor) and not accessor.whole:
                tensor.attrs["is_view_of"] = accessor.tensor
    if directory is not None:
        dump(directory, "transform_strided_ops", sorted_graph, emission.module)
    return list(sorted_graph)


def _named(emission: Emission) -> dict[str, Tensor]:
    """The inputs, weights and outputs by the names that the program gives their buffers."""
    values = {value: tensor for tensor, value in emission.values.items()}
    graph = emission.graph
    found = {name: values[v] for name, v in graph.inputs() if v in values}
    found |= {op.param_name.data: values[op.output] for op in graph.params() if op.output in values}
    return found | {op.output_name.data: values[op.value] for op in graph.outputs() if op.value in values}


def _accessor(buffer: SSAValue, owners: Mapping[str, Tensor], names: Mapping[str, Tensor]) -> TensorAccessor:
    """The place of a buffer in the tensor that owns its root."""
    root, offset = buffer, const(0)
    while isinstance(root.owner, rt.ViewOp):
        root, offset = root.owner.source, offset + root.owner.offset.data[0]
    if isinstance(buffer.owner, rt.ViewOp):
        strides = buffer.owner.strides.data
    else:
        assert isinstance(buffer.type, BufferType)
        strides = contiguous_strides(buffer.type.dims)
    owner = root.owner
    tensor: Tensor | None = None
    if isinstance(owner, rt.InputOp | rt.DestinationOp):
        tensor = names.get(owner.buffer_name.data)
    elif isinstance(owner, rt.ConstantOp) and len(owner.param_names()) == 1:
        tensor = names.get(owner.param_names()[0])
    elif root.name_hint is not None:
        tensor = owners.get(root.name_hint)
    return TensorAccessor(tensor, str(offset), tuple(map(str, strides)), root is buffer)
