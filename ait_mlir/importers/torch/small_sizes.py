"""Decisions of a model that differ for dynamic dims of 0 and 1.

A trace of PyTorch takes each dynamic dim to be 2 or more, and records no condition for it. So `if x.shape[0] == 1`
and `x.squeeze(0)` are decided as for large sizes. Where the model decides otherwise for a size that the dim may have,
the traced program is compared with the model at this size.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import traceback
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ait_mlir.importers.torch.errors import NO_PLACE, ImportFailure, place_in_source, place_of
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.signature import read_inputs

SMALL = (0, 1)
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
"""Methods of a size of PyTorch, functions of `operator`."""
TOLERANCE = 1e-2
"""The difference of equal results, in parts of the largest number; another kernel may compute them."""


@dataclass(frozen=True)
class Comparison:
    """Two sizes, as expressions of SymPy, that a model compares, and the place in the model."""

    compare: Callable[[int, int], bool]
    a: Any
    b: Any
    place: str

    def at(self, sizes: Mapping[Any, int]) -> bool | None:
        """The result for some sizes; None if it needs others."""
        a, b = _value(self.a, sizes), _value(self.b, sizes)
        return None if a is None or b is None else self.compare(a, b)


class SmallSizes:
    """The comparisons of sizes that a model makes during a trace."""

    def __init__(self) -> None:
        self.compared: list[Comparison] = []

    @contextlib.contextmanager
    def watched(self) -> Generator[None]:
        """A context for a trace whose comparisons of sizes are recorded."""
        self.compared.clear()
        node = torch.fx.experimental.sym_node.SymNode
        with contextlib.ExitStack() as stack:
            for name in COMPARISONS:
                compare = getattr(node, name)
                stack.callback(setattr, node, name, compare)
                setattr(node, name, self._recorded(compare, getattr(operator, name)))
            yield

    def _recorded(self, compare: Callable[..., Any], operation: Callable[[int, int], bool]) -> Callable[..., Any]:
        """`compare`, which records the comparisons of the model."""

        @functools.wraps(compare)
        def compared(a: Any, b: Any) -> Any:
            if _asks_model() and a.has_hint() and b.has_hint():
                place = place_in_source("".join(traceback.format_stack()), fallback=NO_PLACE)
                self.compared.append(Comparison(operation, a.expr, b.expr, place))
            return compare(a, b)

        return compared

    def minima(
        self, module: Any, program: Any, given: tuple[Any, Any], dims: Mapping[tuple[int, int], Any]
    ) -> dict[str, int]:
        """The minima of dims, by name, from which on a program computes what the module computes, for dims without a
        declared minimum that may be smaller.

        `given` are the example arguments, `dims` the declared dims by leaf and axis. Raises `ImportFailure` for a dim
        with a declared minimum.
        """
        least = self._least(module, program, given)
        needed: dict[str, int] = {}
        for item in read_inputs(program).tensors if least else ():
            for axis, size in enumerate(item.node.meta["val"].shape):
                dim = dims.get((item.leaf, axis))
                if dim is None or not _is_dynamic(size) or str(size.node.expr) not in least:
                    continue
                name, (minimum, place) = str(dim.__name__), least[str(size.node.expr)]
                if dim.min > 0:
                    raise ImportFailure(
                        f"the model computes something else if {name} is {minimum - 1}, as it decides at {place}: "
                        f"declare Dim({name!r}, min={minimum}); a second import can be for the size {minimum - 1}"
                    )
                needed[name] = minimum
        return needed

    def _least(self, module: Any, program: Any, given: tuple[Any, Any]) -> dict[str, tuple[int, str]]:
        """The least size of each dim, by its symbol, and the place of the decision; of dims that are a symbol alone."""
        sizes = [s for item in read_inputs(program).tensors for s in item.node.meta["val"].shape if _is_dynamic(s)]
        leaves = torch.utils._pytree.tree_leaves(given)
        if not sizes or any(torch.is_tensor(x) and x.device.type == "meta" for x in leaves):
            return {}
        symbols = {symbol for size in sizes for symbol in size.node.expr.free_symbols}
        hints = {size.node.expr: int(size.node.hint) for size in sizes if size.node.expr in symbols}
        imported = functools.cache(lambda: _as_imported(program))
        found: dict[str, tuple[int, str]] = {}
        for symbol in hints:
            low = program.range_constraints[symbol].lower if symbol in program.range_constraints else max(SMALL) + 1
            for size in (s for s in SMALL if s >= low):
                at = {**hints, symbol: size}
                other = [c.place for c in self.compared if c.at(at) is not c.at(hints)]
                other += [place_of(n) for n in program.graph.nodes if _drops_a_dim(n, at)]
                if other and not _agree(module, imported, _resized(program, given, at)):
                    found[str(symbol)] = size + 1, other[0]
        return found


def _asks_model() -> bool:
    """Whether the condition that is being decided is the model's, or that of a layer, and not of an operation."""
    frame = inspect.currentframe()
    own = (__file__, torch.__file__, torch.fx.experimental.sym_node.__file__)
    while frame is not None and frame.f_code.co_filename in own:
        frame = frame.f_back
    if frame is None:
        return False
    file = Path(frame.f_code.co_filename)
    library = Path(torch.__file__).parent
    return library not in file.parents or library / "nn" in file.parents or file == library / "functional.py"


def _value(expr: Any, sizes: Mapping[Any, int]) -> int | None:
    """The value of an expression of SymPy at some sizes; None if it has others."""
    try:
        value = expr.subs(sizes)
    except (ArithmeticError, TypeError, ValueError):  # such as a remainder by 0
        return None
    return int(value) if value.is_Integer else None


def _is_dynamic(size: Any) -> bool:
    return isinstance(size, torch.SymInt)


def _squeezed(node: Any) -> dict[int, Any] | None:
    """The sizes, by axis, of the dims that a node drops where they are 1; None for other nodes."""
    aten = torch.ops.aten
    if node.target not in (aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims):
        return None
    shape = node.args[0].meta["val"].shape
    named = node.args[1] if len(node.args) > 1 else range(len(shape))
    axes = [d % max(len(shape), 1) for d in ([named] if isinstance(named, int) else named)]
    return {axis: shape[axis] for axis in axes if shape}


def _drops_a_dim(node: Any, at: Mapping[Any, int]) -> bool:
    """Whether a node drops a dynamic dim at some sizes."""
    dims = _squeezed(node) or {}
    return any(_value(size.node.expr, at) == 1 for size in dims.values() if _is_dynamic(size))


def _as_imported(program: Any) -> Any:
    """A program as a module in which no dynamic dim is dropped."""
    module = program.module(check_guards=False)
    for node in module.graph.nodes:
        if (dims := _squeezed(node)) is not None:
            node.target = torch.ops.aten.squeeze.dims
            node.args = node.args[0], [axis for axis, size in dims.items() if not _is_dynamic(size)]
    module.recompile()
    return module


def _resized(program: Any, given: tuple[Any, Any], at: Mapping[Any, int]) -> tuple[Any, Any] | None:
    """The first elements of the example arguments, as many as some sizes say; None if the example has fewer.

    Integers on a GPU become 0: they may be indices, and an index out of range ends all work of the process there.
    """
    leaves, spec = torch.utils._pytree.tree_flatten(given)
    for item in read_inputs(program).tensors:
        for axis, size in enumerate(item.node.meta["val"].shape):
            if _is_dynamic(size):
                length = _value(size.node.expr, at)
                if length is None or length > leaves[item.leaf].shape[axis]:
                    return None
                leaves[item.leaf] = leaves[item.leaf].narrow(axis, 0, length)
    leaves = [x.new_zeros(x.shape) if torch.is_tensor(x) and x.is_cuda and _is_whole(x) else x for x in leaves]
    return torch.utils._pytree.tree_unflatten(leaves, spec)


def _is_whole(x: Any) -> bool:
    return not (x.is_floating_point() or x.is_complex())


def _agree(module: Any, imported: Callable[[], Any], given: tuple[Any, Any] | None) -> bool:
    """Whether a module and its program compute the same, or one of them cannot be called: the module takes no such
    sizes, PyTorch has no scan without steps, or there are no arguments.
    """
    if given is None:
        return True
    try:
        expected, found = _called(module, given), _called(imported(), given)
    except Exception:
        return True
    return len(found) == len(expected) and all(map(_same, found, expected))


def _called(module: Any, given: tuple[Any, Any]) -> list[Any]:
    """The results of a call that changes no buffer and no argument."""
    tree = torch.utils._pytree
    args, kwargs = tree.tree_map_only(torch.Tensor, torch.clone, given)
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
    with torch.no_grad():
        return tree.tree_leaves(torch.func.functional_call(module, buffers, args, kwargs))


def _same(found: Any, expected: Any) -> bool:
    if not torch.is_tensor(found) or not torch.is_tensor(expected):
        return type(found) is type(expected) and (torch.is_tensor(found) or bool(found == expected))
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if _is_whole(found):
        return torch.equal(found, expected)
    largest = expected.nan_to_num(0, 0, 0).abs().max().item() if expected.numel() else 0
    return torch.allclose(found, expected, rtol=0, atol=TOLERANCE * largest, equal_nan=True)
