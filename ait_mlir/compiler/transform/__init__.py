"""The documented transformations of graphs: sorted tensors in, the transformed list out.

Each function runs passes of ours on the module of the graph (`rows.py`, `docs/passes.md`). It can be imported from its
documented module and from here.
"""

from __future__ import annotations

from ait_mlir.compiler.transform import transform_utils
from ait_mlir.compiler.transform.apply_padding import apply_padding
from ait_mlir.compiler.transform.bind_constants import bind_constants
from ait_mlir.compiler.transform.constant_folding import constant_folding
from ait_mlir.compiler.transform.fuse_conv_elementwise import fuse_conv_elementwise
from ait_mlir.compiler.transform.fuse_group_ops import (
    fuse_group_gemm_ops,
    fuse_group_layernorm_ops,
    fuse_group_ops,
)
from ait_mlir.compiler.transform.fuse_mm_elementwise import fuse_mm_elementwise
from ait_mlir.compiler.transform.fuse_ops import fuse_elementwise, process_singleton_elementwise
from ait_mlir.compiler.transform.fuse_parallel_gemms import fuse_parallel_gemms, fuse_single_source_parallel_gemms
from ait_mlir.compiler.transform.fuse_permute_bmm import fuse_permute_bmm_and_gemm
from ait_mlir.compiler.transform.mark_param_tensor import mark_param_tensor, mark_special_views
from ait_mlir.compiler.transform.memory_planning import (
    greedy_by_size_memory_planning,
    naive_memory_planning,
    simple_multistream_memory_planning,
)
from ait_mlir.compiler.transform.name_graph import dedup_symbolic_name, name_graph
from ait_mlir.compiler.transform.optimize_graph import optimize_graph
from ait_mlir.compiler.transform.paths import make_modules
from ait_mlir.compiler.transform.profile import profile
from ait_mlir.compiler.transform.refine_graph import refine_graph
from ait_mlir.compiler.transform.remove_no_ops import remove_no_ops
from ait_mlir.compiler.transform.remove_unused_ops import remove_unused_ops
from ait_mlir.compiler.transform.toposort import toposort
from ait_mlir.compiler.transform.transform_memory_ops import transform_memory_ops
from ait_mlir.compiler.transform.transform_odd_alignment import transform_odd_alignment
from ait_mlir.compiler.transform.transform_special_ops import transform_special_ops
from ait_mlir.compiler.transform.transform_strided_ops import transform_strided_ops
from ait_mlir.name_modules import make_callable

__all__ = [
    "apply_padding",
    "bind_constants",
    "constant_folding",
    "dedup_symbolic_name",
    "fuse_conv_elementwise",
    "fuse_elementwise",
    "fuse_group_gemm_ops",
    "fuse_group_layernorm_ops",
    "fuse_group_ops",
    "fuse_mm_elementwise",
    "fuse_parallel_gemms",
    "fuse_permute_bmm_and_gemm",
    "fuse_single_source_parallel_gemms",
    "greedy_by_size_memory_planning",
    "mark_param_tensor",
    "mark_special_views",
    "naive_memory_planning",
    "name_graph",
    "optimize_graph",
    "process_singleton_elementwise",
    "profile",
    "refine_graph",
    "remove_no_ops",
    "remove_unused_ops",
    "simple_multistream_memory_planning",
    "toposort",
    "transform_memory_ops",
    "transform_odd_alignment",
    "transform_special_ops",
    "transform_strided_ops",
    "transform_utils",
]

make_modules(__name__)
make_callable(f"{__name__}.fuse_ops", f"{__name__}.memory_planning")
