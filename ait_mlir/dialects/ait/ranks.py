"""The ranks that run a graph or program: their mesh, and of which tensors each rank has a piece.

```mlir
ait.graph @f(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 4} ranks {
    mesh = #sdy.mesh<["tp"=2]>, params = {w = #sdy.sharding<@mesh, [{"tp"}, {}]>}} {
```
Types are those of one rank's piece. A tensor without a sharding is the same on each rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute, Operation

from ait_mlir.dialects.ait.base import AitOp
from ait_mlir.dialects.ait.traits import Collective
from ait_mlir.dialects.ait.types import Shape, ShapedType, shape_text
from ait_mlir.dialects.sdy import Mesh, MeshAttr, Sharding, ShardingAttr

Part = Literal["inputs", "params", "outputs"]
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True)
class Ranks:
    """A mesh, and the shardings of inputs, params and outputs by name."""

    mesh: Mesh
    shardings: Mapping[tuple[Part, str], Sharding]

    def attribute(self) -> DictionaryAttr:
        """The property `ranks` of a graph or program."""
        found: dict[str, Attribute] = {"mesh": MeshAttr(self.mesh)}
        for part in PARTS:
            rows: dict[str, Attribute] = {n: ShardingAttr(s) for (p, n), s in self.shardings.items() if p == part}
            if rows:
                found[part] = DictionaryAttr(rows)
        return DictionaryAttr(found)

    def whole(self, part: Part, name: str, dims: Shape) -> Shape:
        """The shape of the whole tensor of which each rank has a piece of this shape."""
        sharding = self.shardings.get((part, name))
        if sharding is None:
            return dims
        return tuple(dim * self.mesh.extent(axes) for dim, axes in zip(dims, sharding.dims, strict=True))

    def place(self, part: Part, name: str, shape: Sequence[int], rank: int) -> tuple[slice, ...]:
        """The place of a rank's piece in the whole tensor, whose shape is given."""
        sharding = self.shardings.get((part, name))
        axes = [()] * len(shape) if sharding is None else sharding.dims
        sizes = [extent // self.mesh.extent(a) for extent, a in zip(shape, axes, strict=True)]
        starts = [self.mesh.index(rank, a) * size for a, size in zip(axes, sizes, strict=True)]
        return tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))


ALONE = Ranks(Mesh(()), {})
"""One process, which has everything."""


def ranks_of(root: Operation) -> Ranks:
    """The ranks of a graph or program: those that it states, else those of its collectives; `ALONE` without both."""
    given = root.properties.get("ranks")
    if isinstance(given, DictionaryAttr):
        rows: dict[tuple[Part, str], Sharding] = {}
        for part in PARTS:
            if isinstance(found := given.data.get(part), DictionaryAttr):
                rows |= {(part, name): cast(ShardingAttr, sharding).data for name, sharding in found.data.items()}
        return Ranks(cast(MeshAttr, given.data["mesh"]).data, rows)
    found = next(collectives(root), None)
    return ALONE if found is None else Ranks(found.ranks(), {})


def collectives(root: Operation) -> Iterator[Collective]:
    """The collectives in the body of a graph."""
    return (op for region in root.regions for block in region.blocks for op in block.ops if isinstance(op, Collective))


def check_sharding(op: AitOp, what: str, mesh: Mesh, sharding: Sharding, t: ShapedType) -> None:
    """Raise unless a sharding names axes of the mesh and has as many dims as the tensor."""
    if unknown := [axis for axis in sharding.axes if axis not in mesh.names]:
        raise op.fail(f"the sharding of {what} names axis '{unknown[0]}', but the mesh is {mesh}")
    if len(sharding.dims) != t.rank:
        raise op.fail(f"the sharding of {what} has {len(sharding.dims)} dims, but its shape is {shape_text(t.dims)}")


def check_ranks(op: AitOp, tensors: Iterable[tuple[Part, str, ShapedType]]) -> None:
    """Raise unless the property `ranks` is valid, and all collectives are of its mesh."""
    given = op.properties.get("ranks")
    if isinstance(given, DictionaryAttr):
        if not isinstance(given.data.get("mesh"), MeshAttr):
            raise op.fail('ranks need a mesh, as in ranks {mesh = #sdy.mesh<["tp"=2]>}')
        for part, rows in given.data.items():
            if part != "mesh" and part not in PARTS:
                raise op.fail(f"ranks have a mesh, {', '.join(PARTS)}; got '{part}'")
            shardings = rows.data.values() if isinstance(rows, DictionaryAttr) else ()
            if part != "mesh" and not (shardings and all(isinstance(s, ShardingAttr) for s in shardings)):
                raise op.fail(f"the {part} of ranks are shardings by name")
        ranks = ranks_of(op)
        known = {(part, name): t for part, name, t in tensors}
        for (part, name), sharding in ranks.shardings.items():
            if (part, name) in known:
                check_sharding(op, f"'{name}'", ranks.mesh, sharding, known[part, name])
            elif part != "params":  # nothing may read a param any more
                raise op.fail(f"ranks shard '{name}' of the {part}, but there is no such tensor")
    mesh = None
    for collective in collectives(op):
        mesh = mesh or ranks_of(op).mesh
        if collective.ranks() != mesh:
            raise op.fail(f"{collective.name} is of the mesh {collective.ranks()}, but the ranks are of {mesh}")
