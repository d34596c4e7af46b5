"""The groups of `torch.distributed` in a program that PyTorch exported for one of several ranks.

A collective names its group. The group is that of axes of a mesh, which the caller names, or which follows from the
process groups of this process.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.ranks import Part, Ranks, collectives
from ait_mlir.dialects.sdy import Mesh, Sharding
from ait_mlir.importers.errors import ImportFailure, NotSupported
from ait_mlir.importers.torch.library import torch

MESH = "mesh"
"""The name of the mesh in a module."""
_ONE_AXIS = "ranks"
"""The axis of a mesh that nobody names."""


@dataclass
class Groups:
    """The mesh of a program's ranks, and the axes of its groups by name."""

    mesh: Mesh | None = None
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    weights: Mapping[str, Sharding] = field(default_factory=dict[str, Sharding])
    """The divided weights by name."""

    def axes(self, name: str, size: int | None = None) -> tuple[str, ...]:
        """The axes of a group of `size` members. Raises `NotSupported` for a group that is not one of the mesh."""
        axes = self.named.get(name) or self._of_process(name)
        assert self.mesh is not None
        if size is not None and self.mesh.extent(axes) != size:
            raise NotSupported(
                f"the group {name!r} has {size} ranks, but the mesh {self.mesh} has {self.mesh.extent(axes)} over "
                f"{', '.join(axes)}"
            )
        return axes

    def _of_process(self, name: str) -> tuple[str, ...]:
        """The axes whose group in the mesh has the same ranks as a process group of this process."""
        known = process_group(name)
        if known is None:
            if self.mesh is not None and len(self.mesh.axes) == 1 and not self.named:
                return self.mesh.names
            raise NotSupported(
                f"the group {name!r} is not a group of torch.distributed in this process; give the mesh and the axes "
                f'of the group, as in mesh="tp=2", groups={{{name!r}: "tp"}}'
            )
        rank, world, members = known
        if self.mesh is None:
            self.mesh = Mesh(((_ONE_AXIS, world),))
        if self.mesh.size != world:
            raise NotSupported(f"torch.distributed has {world} ranks, but the mesh {self.mesh} has {self.mesh.size}")
        for count in range(1, len(self.mesh.axes) + 1):
            for axes in itertools.permutations(self.mesh.names, count):
                if self.mesh.group(rank, axes) == members:
                    return axes
        raise NotSupported(
            f"the group {name!r} has the ranks {', '.join(map(str, members))}, which no axes of the mesh {self.mesh} "
            'have; give a mesh with such axes, as in mesh="dp=2,tp=2"'
        )


def groups_of(mesh: Mesh | None, groups: Mapping[str, object] | None, module: Any) -> Groups:
    """The groups of an import: those that the caller gives, else of the meshes of the module's weights.

    Raises `ImportFailure` for axes that the mesh does not have.
    """
    mesh = mesh or _mesh_of(module)
    named: dict[str, tuple[str, ...]] = {}
    for name, given in (groups or {}).items():
        axes = (given,) if isinstance(given, str) else given
        found = tuple(map(str, cast("Sequence[object]", axes))) if isinstance(axes, list | tuple) else ()
        if mesh is None or not found or not set(found) <= set(mesh.names):
            have = "there is no mesh" if mesh is None else f"the mesh is {mesh}"
            raise ImportFailure(f"groups: {name!r} has {given!r}, expected axes of the mesh; {have}")
        named[name] = found
    return Groups(mesh, named)


def process_group(name: str) -> tuple[int, int, list[int]] | None:
    """This process's rank, the number of ranks, and the ranks of a process group; None if there is no such group."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized():
        return None
    try:
        group = distributed.distributed_c10d._resolve_process_group(name)
    except (RuntimeError, ValueError, LookupError):
        return None
    return distributed.get_rank(), distributed.get_world_size(), list(distributed.get_process_group_ranks(group))


def is_fake() -> bool:
    """Whether the groups of this process are those of tests, which exchange nothing."""
    return bool(torch.distributed.is_initialized() and torch.distributed.get_backend() == "fake")


def root_of(weight: Any) -> Any:
    """The whole mesh of devices of which a divided weight may use some axes."""
    mesh = weight.device_mesh
    return mesh._get_root_mesh() if hasattr(mesh, "_get_root_mesh") else mesh


def _mesh_of(module: Any) -> Mesh | None:
    """The mesh with names of the weights that `parallelize_module` has divided; None if there is none."""
    for weight in sharded_weights(module).values():
        root = root_of(weight)
        names = root.mesh_dim_names or (("tp",) if root.ndim == 1 else None)
        if names is not None:
            return Mesh(tuple(zip(map(str, names), map(int, root.mesh.shape), strict=True)))
    return None


def sharded_weights(module: Any) -> dict[str, Any]:
    """The weights of a module that are tensors of `torch.distributed.tensor`, by name."""
    if not torch.distributed.is_available() or not isinstance(module, torch.nn.Module):
        return {}
    found = (*module.named_parameters(), *module.named_buffers())
    return {name: value for name, value in found if hasattr(value, "device_mesh") and hasattr(value, "placements")}


def state_ranks(graph: GraphOp, groups: Groups) -> None:
    """Let a graph with collectives, or with divided weights, say which ranks run it. Inputs and outputs are the same on
    each rank.
    """
    if groups.weights or next(collectives(graph), None) is not None:
        assert groups.mesh is not None
        shardings: dict[tuple[Part, str], Sharding] = {("params", name): s for name, s in groups.weights.items()}
        graph.ranks = Ranks(groups.mesh, shardings).attribute()
