"""A graph API in the manner of cuDNN's Python package, on the kernels of this compiler.

    import ait_mlir.graph as cudnn

Scripts that build graphs with cuDNN's low-level Python API run after this change of the import, on CUDA and on the CPU.
`docs/graph_api.md` says what is the same and what is refused.
"""

from __future__ import annotations

from ait_mlir.graph import ops
from ait_mlir.graph.compilation import knob
from ait_mlir.graph.decorators import graph, graph_cache, jit
from ait_mlir.graph.device import DeviceProperties, create_device_properties
from ait_mlir.graph.enums import (
    NodeType,
    attention_implementation,
    behavior_note,
    build_plan_policy,
    convolution_mode,
    cuda_graph_retention,
    data_type,
    diagonal_alignment,
    heur_mode,
    knob_type,
    moe_grouped_matmul_mode,
    norm_forward_phase,
    numerical_note,
    padding_mode,
    reduction_mode,
    resample_mode,
    reshape_mode,
    scalar_type,
    tensor_reordering,
)
from ait_mlir.graph.errors import (
    ArtifactError,
    GraphError,
    InputError,
    StepError,
    cudnnGraphNotSupportedError,
    get_last_error_string,
)
from ait_mlir.graph.handle import (
    Handle,
    backend_version,
    backend_version_string,
    create_handle,
    destroy_handle,
    get_stream,
    set_stream,
)
from ait_mlir.graph.kernel_cache import KernelCache, create_kernel_cache
from ait_mlir.graph.nodes import Node
from ait_mlir.graph.pygraph import pygraph
from ait_mlir.graph.tensor import tensor
from ait_mlir.graph.wrapper import Graph

Tensor = tensor
__version__ = "1.32.0"
"""The version of `nvidia-cudnn-frontend` whose names this package has."""


def sdpa_capabilities() -> frozenset[str]:
    """The names of attention features that scripts query. None of the features that cuDNN's package names is available
    here.
    """
    return frozenset()


__all__ = [
    "ArtifactError",
    "DeviceProperties",
    "Graph",
    "GraphError",
    "Handle",
    "InputError",
    "KernelCache",
    "Node",
    "NodeType",
    "StepError",
    "Tensor",
    "attention_implementation",
    "backend_version",
    "backend_version_string",
    "behavior_note",
    "build_plan_policy",
    "convolution_mode",
    "create_device_properties",
    "create_handle",
    "create_kernel_cache",
    "cuda_graph_retention",
    "cudnnGraphNotSupportedError",
    "data_type",
    "destroy_handle",
    "diagonal_alignment",
    "get_last_error_string",
    "get_stream",
    "graph",
    "graph_cache",
    "heur_mode",
    "jit",
    "knob",
    "knob_type",
    "moe_grouped_matmul_mode",
    "norm_forward_phase",
    "numerical_note",
    "ops",
    "padding_mode",
    "pygraph",
    "reduction_mode",
    "resample_mode",
    "reshape_mode",
    "scalar_type",
    "sdpa_capabilities",
    "set_stream",
    "tensor",
    "tensor_reordering",
]
