"""CUDA graphs of the caller: the launches of a plan as nodes of a `cudaGraph_t`, and scalars in device memory.

Calls of the CUDA driver through ctypes. The functions work on the primary context, which PyTorch and the runtime
library share.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from ait_mlir.errors import RunError
from ait_mlir.graph.cuda_driver import call_driver
from ait_mlir.graph.errors import cudnnGraphNotSupportedError
from ait_mlir.graph.execution import Runner

_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_KERNEL = 0  # CU_GRAPH_NODE_TYPE_KERNEL


class _KernelParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = [
        ("func", ctypes.c_void_p),
        *((name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")),
        ("params", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    ]


def _captured(runner: Runner, pack: Mapping[Any, Any], workspace: Any, graph: ctypes.c_void_p) -> None:
    """Record the launches of a plan into an empty graph."""
    stream, ended = ctypes.c_void_p(), ctypes.c_void_p()
    call_driver("cuStreamCreate", ctypes.byref(stream), ctypes.c_uint(1))
    try:
        call_driver(
            "cuStreamBeginCaptureToGraph", stream, graph, None, None, ctypes.c_size_t(0), ctypes.c_int(_RELAXED)
        )
        try:
            runner.execute(pack, workspace, stream.value or 0)
        finally:
            call_driver("cuStreamEndCapture", stream, ctypes.byref(ended))
    finally:
        call_driver("cuStreamDestroy_v2", stream)


def _nodes(graph: ctypes.c_void_p) -> list[ctypes.c_void_p]:
    count = ctypes.c_size_t()
    call_driver("cuGraphGetNodes", graph, None, ctypes.byref(count))
    found = (ctypes.c_void_p * count.value)()
    call_driver("cuGraphGetNodes", graph, found, ctypes.byref(count))
    return [ctypes.c_void_p(node) for node in found]


def populate(runner: Runner, pack: Mapping[Any, Any], workspace: Any, graph: int) -> None:
    """Add the launches of a plan to an empty `cudaGraph_t`, given by its address."""
    _need_card(runner)
    _captured(runner, pack, workspace, ctypes.c_void_p(int(graph)))


def update(runner: Runner, pack: Mapping[Any, Any], workspace: Any, graph: int) -> None:
    """Give the kernels of a graph from `populate` the tensors of another variant pack."""
    _need_card(runner)
    other = ctypes.c_void_p()
    call_driver("cuGraphCreate", ctypes.byref(other), ctypes.c_uint(0))
    try:
        _captured(runner, pack, workspace, other)
        old, new = _nodes(ctypes.c_void_p(int(graph))), _nodes(other)
        if len(old) != len(new):
            raise RunError(f"the CUDA graph has {len(old)} nodes, but the plan {len(new)}: populate it with this graph")
        for target, source in zip(old, new, strict=True):
            kind = ctypes.c_int()
            call_driver("cuGraphNodeGetType", source, ctypes.byref(kind))
            if kind.value == _KERNEL:
                params = _KernelParams()
                call_driver("cuGraphKernelNodeGetParams_v2", source, ctypes.byref(params))
                call_driver("cuGraphKernelNodeSetParams_v2", target, ctypes.byref(params))
            else:
                raise cudnnGraphNotSupportedError(
                    "update_cuda_graph updates kernels alone, but the plan has other nodes: populate a new CUDA graph"
                )
    finally:
        call_driver("cuGraphDestroy", other)


def _need_card(runner: Runner) -> None:
    if runner.binding.device == "cpu":
        raise cudnnGraphNotSupportedError(f"graph '{runner.binding.graph}' runs on the CPU, which has no CUDA graphs")
