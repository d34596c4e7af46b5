"""Joins requests along the batch dim of a model: which dim that is, which requests one run takes, the parts of its
outputs."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ait_mlir.errors import InputError
from ait_mlir.runtime.from_host import Array
from ait_mlir.runtime.manifest import Manifest

_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class BatchDim:
    """A dim along which requests are joined: axis 0 of all outputs and of the inputs `of`, and in no other axis."""

    name: str
    lo: int
    hi: int
    of: tuple[str, ...]


@dataclass(eq=False)
class Request:
    """The inputs of a request by name, and the shapes of its outputs. Requests with equal keys may share a run; `rows`
    is the size along the batch dim."""

    inputs: Mapping[str, Array]
    shapes: Mapping[str, tuple[int, ...]]
    rows: int
    key: Hashable


R = TypeVar("R", bound=Request)


def find_batch_dim(manifest: Manifest, wanted: str | bool = True) -> BatchDim | None:
    """The batch dim of a model: the dim `wanted`, or with True the first dim that can be one; None if there is none.

    Raises `InputError` if the dim `wanted` does not exist or cannot be a batch dim.
    """
    if wanted is False:
        return None
    if wanted is not True and wanted not in (names := [dim.name for dim in manifest.dims]):
        raise InputError(f"model {manifest.name} has no dim '{wanted}'; its dims are {', '.join(names) or 'none'}")
    for dim in manifest.dims:
        if wanted is not True and dim.name != wanted:
            continue
        if not (problem := _problem(manifest, dim.name)):
            of = tuple(tensor.name for tensor in manifest.inputs if dim.name in _names(tensor.shape))
            return BatchDim(dim.name, dim.lo, dim.hi, of)
        if wanted is not True:
            raise InputError(f"requests cannot be joined along dim '{wanted}' of model {manifest.name}: {problem}")
    return None


def _problem(manifest: Manifest, name: str) -> str:
    """Why a dim cannot be the batch dim, by the shapes alone; "" if it can."""
    (dim,) = [dim for dim in manifest.dims if dim.name == name]
    if dim.bound:
        return "a run computes its size"
    if dim.lo == dim.hi:
        return f"its size is always {dim.lo}"
    if not any(name in _names(tensor.shape) for tensor in manifest.inputs):
        return "no input has it"
    bound = {dim.name for dim in manifest.dims if dim.bound}
    for role, tensors in (("input", manifest.inputs), ("output", manifest.outputs)):
        for tensor in tensors:
            if name in _names(tensor.shape[1:]) or (tensor.shape[:1] != (name,) and name in _names(tensor.shape)):
                return f"{role} '{tensor.name}' of shape [{', '.join(tensor.shape)}] has it in an axis besides axis 0"
            if role == "output" and tensor.shape[:1] != (name,):
                return f"output '{tensor.name}' of shape [{', '.join(tensor.shape)}] does not have it"
            if bound & _names(tensor.shape):
                return f"the values of all rows together determine the shape of {role} '{tensor.name}'"
    return ""


def _names(shape: Sequence[str]) -> set[str]:
    """The dims in the expressions of a shape."""
    return {name for extent in shape for name in _NAME.findall(extent)}


def request_of(inputs: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], dim: BatchDim | None) -> Request:
    """The request with these inputs, which fit the model, and outputs of these shapes.

    Requests share a run if the inputs with the batch dim agree in all other axes, and the other inputs in all bits.
    """
    if dim is None:
        return Request(inputs, shapes, 1, None)
    key = tuple(
        (x.shape[1:] if name in dim.of else (x.shape, x.tobytes()), x.dtype.str) for name, x in sorted(inputs.items())
    )
    return Request(inputs, shapes, inputs[dim.of[0]].shape[0], key)


def take(waiting: list[R], limit: int) -> list[R]:
    """Remove the requests of the next run from those that wait, and return them.

    They are the first request and, in their order, all with its key, as long as they have at most `limit` rows
    together. The first request is taken in any case.
    """
    taken, rows = [waiting[0]], waiting[0].rows
    for request in waiting[1:]:
        if request.key == taken[0].key:
            if rows + request.rows > limit:
                break  # none overtakes an earlier one with its key
            taken.append(request)
            rows += request.rows
    found = set(map(id, taken))
    waiting[:] = [request for request in waiting if id(request) not in found]
    return taken


def join(requests: Sequence[Request], dim: BatchDim | None) -> Mapping[str, Array]:
    """The inputs of a run for requests that share it."""
    if dim is None or len(requests) == 1:
        return requests[0].inputs
    return {
        name: np.concatenate([request.inputs[name] for request in requests]) if name in dim.of else x
        for name, x in requests[0].inputs.items()
    }


def joined_shapes(requests: Sequence[Request]) -> Mapping[str, tuple[int, ...]]:
    """The shapes of the outputs of a run for requests that share it."""
    if len(requests) == 1:
        return requests[0].shapes
    rows = sum(request.rows for request in requests)
    return {name: (rows, *shape[1:]) for name, shape in requests[0].shapes.items()}


def split(outputs: Mapping[str, Array], requests: Sequence[Request]) -> list[dict[str, Array]]:
    """The outputs of each request that shared a run."""
    if len(requests) == 1:
        return [dict(outputs)]
    ends = np.cumsum([request.rows for request in requests]).tolist()
    return [
        {name: y[end - request.rows : end] for name, y in outputs.items()}
        for request, end in zip(requests, ends, strict=True)
    ]
