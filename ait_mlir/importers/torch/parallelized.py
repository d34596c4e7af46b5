"""Modules that `parallelize_module` has divided: the program of one rank, on plain tensors.

`torch.export` cannot trace tensors of `torch.distributed.tensor` with dynamic dims, so they are traced away first: the
weights become this rank's pieces, and what PyTorch does between ranks becomes collectives. The result is a module that
is exported as any other.

The program must be that of every rank and of all sizes. It is traced again for another rank and for other sizes; a
program that differs is refused.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Collection, Generator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ait_mlir.dialects.sdy import Mesh, Sharding
from ait_mlir.importers.errors import ImportFailure
from ait_mlir.importers.torch.groups import MESH, is_fake, root_of, sharded_weights
from ait_mlir.importers.torch.library import quiet, torch
from ait_mlir.runtime.data import to_numpy


class _Pieces(torch.nn.Module):
    """A module whose submodules hold this rank's weights, under the names that they have in the module."""

    def __init__(self, weights: Mapping[str, Any]) -> None:
        torch.nn.Module.__init__(self)
        for name, weight in weights.items():
            place: Any = self
            *path, last = name.split(".")
            for part in path:
                if part not in place._modules:
                    place.add_module(part, torch.nn.Module())
                place = place._modules[part]
            place.register_parameter(last, torch.nn.Parameter(weight, requires_grad=False))
        self.eval()


class _Example(torch.nn.Module):
    """Takes the arguments of a module, to find the symbols of their dims."""

    def forward(self, *args: Any) -> Any:
        return [leaf + 0 for leaf in torch.utils._pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)]


def local_module(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> Any:
    """A module that computes what a module with tensors of `torch.distributed.tensor` computes on this rank.

    Raises `ImportFailure` for arguments that are not tensors by position, and for a program that differs between ranks
    or sizes.
    """
    if kwargs or not all(isinstance(value, torch.Tensor) for value in args):
        raise ImportFailure("a module divided by parallelize_module takes tensors by position only")
    with torch.no_grad():
        pieces = {
            name: (value.to_local() if hasattr(value, "to_local") else value).detach()
            for name, value in (*module.named_parameters(), *module.named_buffers())
        }
    with quiet():
        try:
            fakes = _fakes(module, args, dynamic_shapes)
            found = _traced(module, pieces, fakes)
            others = [("other sizes", _resized(module, args, fakes, dynamic_shapes), False)] if dynamic_shapes else []
            for what, given, elsewhere in (*others, ("another rank", fakes, True)):
                with _as_other_rank(module) if elsewhere else contextlib.nullcontext(True) as can:
                    again = _traced(module, pieces, given) if can else found
                if not _are_equal(found, again):
                    raise ImportFailure(
                        f"the program of this rank is not that of {what}: PyTorch puts numbers of the rank or of the "
                        "sizes into it. Compile the model before parallelize_module with a plan, as in "
                        'plan={"layers.*.up": "colwise"}, or leave out dynamic_shapes'
                    )
        except ImportFailure:
            raise
        except Exception as error:
            raise ImportFailure(f"PyTorch cannot trace the divided model: {error} ({type(error).__name__})") from error
    made, names = _Pieces(pieces), list(pieces)

    def forward(*given: Any) -> Any:
        weights = {**dict(made.named_parameters()), **dict(made.named_buffers())}
        return found({name: weights[name] for name in names}, *given)

    forward.__dict__["__signature__"] = inspect.signature(module.forward)
    made.__dict__["forward"] = forward
    return made


def _fakes(module: Any, args: Sequence[Any], dynamic_shapes: Any) -> list[Any]:
    """The arguments without data, with symbols for their dynamic dims."""
    example = _Example()
    if dynamic_shapes is not None:
        forward = example.forward

        def named(*given: Any) -> Any:
            return forward(*given)

        named.__dict__["__signature__"] = inspect.signature(module.forward)
        example.__dict__["forward"] = named
    program = torch.export.export(example, tuple(args), dynamic_shapes=dynamic_shapes, strict=False)
    return [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]


def _resized(module: Any, args: Sequence[Any], fakes: Sequence[Any], dynamic_shapes: Any) -> list[Any]:
    """`_fakes` of arguments whose dynamic dims have the next larger size, or the next smaller one."""
    sizes: dict[Any, int] = {}
    for size in (size for fake in fakes for size in fake.shape if not isinstance(size, int)):
        for symbol in size.node.expr.free_symbols:
            bounds, now = size.node.shape_env.var_to_range[symbol], int(size.node.shape_env.var_to_val[symbol])
            sizes[symbol] = now + 1 if now + 1 <= bounds.upper else now - 1
    other = [
        torch.empty([s if isinstance(s, int) else int(s.node.expr.subs(sizes)) for s in fake.shape], dtype=arg.dtype)
        for fake, arg in zip(fakes, args, strict=True)
    ]
    return _fakes(module, other, dynamic_shapes)


def _traced(module: Any, pieces: Mapping[str, Any], fakes: Sequence[Any]) -> Any:
    """The graph of a module on the pieces of its weights and on arguments without data."""
    divided = sharded_weights(module)
    whole = torch.distributed.tensor.DTensor

    def run(local: Mapping[str, Any], *given: Any) -> Any:
        weights: dict[str, Any] = {}
        for name, piece in local.items():
            weights[name] = piece
            if (of := divided.get(name)) is not None:
                weights[name] = whole.from_local(
                    piece, of.device_mesh, of.placements, run_check=False, shape=of.shape, stride=of.stride()
                )
        return torch.func.functional_call(module, weights, given)

    mode = fakes[0].fake_mode
    with torch.no_grad(), mode:
        local = {name: mode.from_tensor(piece, static_shapes=True) for name, piece in pieces.items()}
        return torch.fx.experimental.proxy_tensor.make_fx(run)(local, *fakes)


@contextlib.contextmanager
def _as_other_rank(module: Any) -> Generator[bool]:
    """A context in which the meshes of a module's weights say that this process is another rank; whether that works."""
    meshes = {id(m): m for value in sharded_weights(module).values() for m in (value.device_mesh, root_of(value))}
    kept: list[tuple[Any, Any]] = [(mesh, getattr(mesh, "_coordinate_on_dim", None)) for mesh in meshes.values()]
    if not kept or any(own is None for _, own in kept):
        yield False
        return
    try:
        for mesh, own in kept:
            mesh._coordinate_on_dim = own.__class__((n + 1) % size for n, size in zip(own, mesh.shape, strict=True))
        yield True
    finally:
        for mesh, own in kept:
            mesh._coordinate_on_dim = own


def _are_equal(a: Any, b: Any) -> bool:
    """Whether two graphs compute the same."""

    def constants(graph: Any) -> dict[str, Any]:
        return {n.target: getattr(graph, n.target) for n in graph.graph.nodes if n.op == "get_attr"}

    ours, theirs = constants(a), constants(b)
    same = all(
        torch.equal(value, theirs[name]) if isinstance(value, torch.Tensor) and name in theirs else name in theirs
        for name, value in ours.items()
    )
    return a.code == b.code and len(ours) == len(theirs) and same


def shardings_of(module: Any, mesh: Mesh) -> dict[str, Sharding]:
    """How the ranks of a mesh divide the weights of a module, by name. Raises `ImportFailure` for other divisions."""
    found: dict[str, Sharding] = {}
    for name, value in sharded_weights(module).items():
        own = value.device_mesh.mesh_dim_names or mesh.names
        dims: list[tuple[str, ...]] = [()] * value.ndim
        for axis, placement in zip(own, value.placements, strict=True):
            if type(placement).__name__ == "Shard":
                dims[placement.dim] = (*dims[placement.dim], str(axis))
            elif type(placement).__name__ != "Replicate":
                raise ImportFailure(f"the weight {name!r} has the placement {placement}, expected Shard or Replicate")
        for size, axes in zip(value.shape, dims, strict=True):
            if size % mesh.extent(axes):
                raise ImportFailure(
                    f"the weight {name!r} has {size} elements along a dim that {mesh.extent(axes)} ranks divide; "
                    "pieces of different sizes are not supported"
                )
        if any(dims):
            found[name] = Sharding(MESH, tuple(dims), (False,) * len(dims))
    return found


def whole_weights(module: Any, names: Collection[str]) -> dict[str, NDArray[Any] | None]:
    """The whole of some divided weights of a module by name, which all ranks exchange; None where this process has its
    piece only, because its group of processes is not real.
    """
    divided = {name: value for name, value in sharded_weights(module).items() if name in names}
    if is_fake():
        return dict.fromkeys(divided)
    with torch.no_grad():
        return {name: np.ascontiguousarray(to_numpy(value.full_tensor().detach())) for name, value in divided.items()}
