"""Decisions of a model by sizes, which a trace takes as for the example.

PyTorch takes each dynamic dim of a trace to be 2 or more, and accepts that two sizes which differ in the example are
equal in a call. So `if x.shape[0] == 1`, `x.squeeze(0)` and `if x.shape[1] == y.shape[1]` may be decided otherwise for
sizes that the dims allow. There the traced program is compared with the model.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import operator
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ait_mlir.importers.torch.errors import NO_PLACE, ImportFailure, place_in_source, place_of
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.signature import read_inputs
from ait_mlir.importers.torch.trials import SMALLEST, tried

SMALL = (0, 1)
MOST = 16
"""The most sizes for which model and program are compared."""
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
"""Methods of a size of PyTorch, functions of `operator`."""
TOLERANCE = 1e-2
"""The difference of equal results, in parts of the largest number; another kernel may compute them."""

Sizes = Mapping[Any, int]
"""Sizes by the symbols of SymPy."""


@dataclass(frozen=True)
class Comparison:
    """Two sizes, as expressions of SymPy, that a model compares, and the place in the model."""

    compare: Callable[[int, int], bool]
    a: Any
    b: Any
    place: str

    def at(self, sizes: Sizes) -> bool | None:
        """The result for some sizes; None if it needs others."""
        a, b = _value(self.a, sizes), _value(self.b, sizes)
        return None if a is None or b is None else self.compare(a, b)

    def otherwise(self, usual: Sizes, ranges: Mapping[Any, tuple[int, int]]) -> Iterator[dict[Any, int]]:
        """Sizes within the ranges that change the result: small ones and one other, of one symbol, else of two."""
        symbols = [s for s in usual if s in self.a.free_symbols | self.b.free_symbols]
        result = self.at(usual)
        if result is None:
            return
        numbers = {int(n) for side in (self.a, self.b) for n in side.atoms() if n.is_Integer} | {*usual.values()}
        largest = max(SMALLEST, *numbers) + 1  # a call with the largest size may take all of the memory
        within = {s: tried(low, min(high, largest), numbers) for s in symbols for low, high in [ranges[s]]}
        found = False
        for symbol in symbols:
            others = 0
            for n in within[symbol]:
                if (n in SMALL or not others) and self.at({**usual, symbol: n}) is not result:
                    found, others = True, others + (n not in SMALL)
                    yield {symbol: n}
        if found:
            return
        for one, two in itertools.combinations(symbols, 2):
            pairs = ({one: n, two: m} for n, m in itertools.product(within[one], within[two]))
            yield from itertools.islice((moved for moved in pairs if self.at({**usual, **moved}) is not result), 1)


class Decisions:
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
        """The minima by name that dims without a declared one need so that a program computes what the module computes.

        `given` are the example arguments, `dims` the declared dims by leaf and axis. Raises `ImportFailure` for other
        sizes for which they differ.
        """
        declared: dict[Any, Any] = {}
        for item in read_inputs(program).tensors:
            for axis, size in enumerate(item.node.meta["val"].shape):
                if _is_dynamic(size) and (dim := dims.get((item.leaf, axis))) is not None:
                    declared[size.node.expr] = dim
        needed: dict[str, int] = {}
        for moved, place in self._differences(module, program, given):
            names = {symbol: str(getattr(declared.get(symbol), "__name__", symbol)) for symbol in moved}
            if any(n < needed.get(names[symbol], 0) for symbol, n in moved.items()):
                continue
            if all(n in SMALL and symbol in declared and declared[symbol].min == 0 for symbol, n in moved.items()):
                needed |= {names[symbol]: n + 1 for symbol, n in moved.items()}
                continue
            sizes = ", ".join(f"{names[symbol]} = {n}" for symbol, n in moved.items())
            minima = " and ".join(f"Dim({names[s]!r}, min={n + 1})" for s, n in moved.items())
            advice = f"declare {minima}" if all(n in SMALL for n in moved.values()) else "leave them out of the ranges"
            raise ImportFailure(
                f"the model computes something else for {sizes} than for the example's sizes: it decides at {place}; "
                f"{advice}, and import it a second time for them"
            )
        return needed

    def _differences(self, module: Any, program: Any, given: tuple[Any, Any]) -> Iterator[tuple[dict[Any, int], str]]:
        """The sizes that differ from those of the example where the program is not the module, and the place of the
        decision."""
        sizes = [s for item in read_inputs(program).tensors for s in item.node.meta["val"].shape if _is_dynamic(s)]
        leaves = torch.utils._pytree.tree_leaves(given)
        if not sizes or any(torch.is_tensor(x) and x.device.type == "meta" for x in leaves) or _has_loops(program):
            return
        alone = {s.node.expr: int(s.node.hint) for s in sizes if s.node.expr in program.range_constraints}
        ranges = {s: (int(r.lower), _upper(r)) for s, r in program.range_constraints.items() if s in alone}
        compared = list(dict.fromkeys([*self.compared, *_dropped(program)]))
        imported = functools.cache(lambda: _as_imported(program))
        for moved, place in itertools.islice(_moves(compared, alone, ranges), MOST):
            resized = _resized(program, given, {**alone, **moved})
            if resized is not None and not _agree(module, imported, resized):
                yield moved, place


def _moves(
    compared: Iterable[Comparison], usual: Sizes, ranges: Mapping[Any, tuple[int, int]]
) -> Iterator[tuple[dict[Any, int], str]]:
    """Sizes that change the result of a comparison, each once: small ones first, at last those with further sizes of 1,
    by which a model may decide behind the first decision."""
    found = [(moved, c.place) for c in compared for moved in c.otherwise(usual, ranges)]
    small = [one for one in found if all(n in SMALL for n in one[0].values())]
    both = [
        ({**moved, other: 1}, place)
        for moved, place in found
        for other, (low, high) in ranges.items()
        if other not in moved and low <= 1 <= high and usual[other] != 1
    ]
    seen: set[frozenset[tuple[Any, int]]] = set()
    for moved, place in (*small, *found, *both):
        if (key := frozenset(moved.items())) not in seen:
            seen.add(key)
            yield moved, place


def _has_loops(program: Any) -> bool:
    """Whether a program has loops or branches of its own, which PyTorch would compile to call the model."""
    return any(isinstance(node.target, torch._ops.HigherOrderOperator) for node in program.graph.nodes)


def _upper(of: Any) -> int:
    """The largest value of a range; a large number if it has none."""
    return int(of.upper) if of.upper.is_Integer else 1 << 20


def _asks_model() -> bool:
    """Whether the sizes that are being compared are compared by the model or a layer, and not by an operation."""
    frame = inspect.currentframe()
    own = (__file__, torch.__file__, torch.fx.experimental.sym_node.__file__)
    while frame is not None and frame.f_code.co_filename in own:
        frame = frame.f_back
    if frame is None:
        return False
    file = Path(frame.f_code.co_filename)
    library = Path(torch.__file__).parent
    return library not in file.parents or library / "nn" in file.parents or file == library / "functional.py"


def _value(expr: Any, sizes: Sizes) -> int | None:
    """The value of an expression of SymPy at some sizes; None if it has others."""
    try:
        value = expr.subs(sizes)
    except (ArithmeticError, TypeError, ValueError):  # such as a remainder by 0
        return None
    return int(value) if value.is_Integer else None


def _is_dynamic(size: Any) -> bool:
    return isinstance(size, torch.SymInt)


# ** squeezed dims **


def _squeezed(node: Any) -> dict[int, Any] | None:
    """The sizes, by axis, of the dims that a node drops where they are 1; None for other nodes."""
    aten = torch.ops.aten
    if node.target not in (aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims):
        return None
    shape = node.args[0].meta["val"].shape
    named = node.args[1] if len(node.args) > 1 else range(len(shape))
    axes = [d % max(len(shape), 1) for d in ([named] if isinstance(named, int) else named)]
    return {axis: shape[axis] for axis in axes if shape}


def _dropped(program: Any) -> Iterator[Comparison]:
    """The comparisons with 1 by which a program drops dynamic dims."""
    for node in program.graph.nodes:
        for size in (_squeezed(node) or {}).values():
            if _is_dynamic(size):
                yield Comparison(operator.eq, size.node.expr, size.node.expr**0, place_of(node))


def _as_imported(program: Any) -> Any:
    """A program as a module in which no dynamic dim is dropped."""
    module = program.module(check_guards=False)
    for node in module.graph.nodes:
        if (dims := _squeezed(node)) is not None:
            node.target = torch.ops.aten.squeeze.dims
            node.args = node.args[0], [axis for axis, size in dims.items() if not _is_dynamic(size)]
    module.recompile()
    return module


# ** calls of model and program **


def _resized(program: Any, given: tuple[Any, Any], at: Sizes) -> tuple[Any, Any] | None:
    """The example arguments with some sizes: their first elements, or these again and again. None if there are none.

    Integers on a GPU become 0: they may be indices, and an index out of range ends all work of the process there.
    """
    leaves, spec = torch.utils._pytree.tree_flatten(given)
    for item in read_inputs(program).tensors:
        for axis, size in enumerate(item.node.meta["val"].shape):
            if _is_dynamic(size):
                length, x = _value(size.node.expr, at), leaves[item.leaf]
                if length is None or length < 0 or (length and not x.shape[axis]):
                    return None
                places = torch.arange(length, device=x.device) % max(x.shape[axis], 1)
                leaves[item.leaf] = x.index_select(axis, places)
    leaves = [torch.zeros_like(x) if torch.is_tensor(x) and x.is_cuda and _is_whole(x) else x for x in leaves]
    return torch.utils._pytree.tree_unflatten(leaves, spec)


def _is_whole(x: Any) -> bool:
    return not (x.is_floating_point() or x.is_complex())


def _agree(module: Any, imported: Callable[[], Any], given: tuple[Any, Any]) -> bool:
    """Whether a module and its program compute the same, also where equal numbers of the arguments are random ones, or
    whether this is unknown: the program cannot be called, as PyTorch has no scan without steps, or the module writes to
    what is not its own.
    """
    drawn = torch.utils._pytree.tree_map_only(torch.Tensor, _drawn, given)
    for arguments in (given, drawn):
        try:
            expected = _called(module, arguments, _OwnMemory())
        except _NotOwn:
            return True
        except Exception:  # of the model
            expected = None
        try:
            found = _called(imported(), arguments)
        except Exception:
            return True
        if expected is None:
            return arguments is drawn  # the model may refuse the numbers
        if len(found[0]) != len(expected[0]) or not all(map(_same, found[0], expected[0])):
            return False
        if not all(_same(found[1][name], expected[1][name]) for name in found[1].keys() & expected[1].keys()):
            return False
    return True


def _drawn(x: Any) -> Any:
    """Random numbers in place of floats and bools that are all equal."""
    if x.numel() < 2 or not (x.is_floating_point() or x.dtype == torch.bool) or not (x == x.flatten()[0]).all():
        return x
    drawn = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    return (drawn > 0 if x.dtype == torch.bool else drawn).to(x.device, x.dtype)


class _NotOwn(Exception):
    """A call writes to a tensor that it has not made."""


class _OwnMemory(torch.utils._python_dispatch.TorchDispatchMode):
    """A context in which only tensors that are made in it can be written."""

    @functools.cached_property
    def own(self) -> set[int]:
        """The addresses of their memory."""
        return set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        leaves, schema = torch.utils._pytree.tree_leaves, func._schema
        if schema.is_mutable:
            given = [*zip(schema.arguments, args, strict=False)]
            given += [(a, kwargs[a.name]) for a in schema.arguments if a.name in (kwargs or {})]
            for argument, value in given:
                is_written = argument.alias_info is not None and argument.alias_info.is_write
                if is_written and any(_address(x) not in self.own for x in leaves(value) if torch.is_tensor(x)):
                    raise _NotOwn
        found = func(*args, **(kwargs or {}))
        self.own |= {_address(x) for x in leaves(found) if torch.is_tensor(x)}
        return found


def _address(x: Any) -> int:
    return int(x.untyped_storage().data_ptr())


def _called(module: Any, given: tuple[Any, Any], mode: Any = None) -> tuple[list[Any], dict[str, Any]]:
    """The results of a call, and the buffers after it; the module's buffers and the arguments stay as they are."""
    tree = torch.utils._pytree
    with torch.no_grad(), torch.random.fork_rng(devices=()), mode or contextlib.nullcontext():
        args, kwargs = tree.tree_map_only(torch.Tensor, torch.clone, given)
        buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
        return tree.tree_leaves(torch.func.functional_call(module, buffers, args, kwargs)), buffers


def _same(found: Any, expected: Any) -> bool:
    if not torch.is_tensor(found) or not torch.is_tensor(expected):
        return type(found) is type(expected) and (torch.is_tensor(found) or bool(found == expected))
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if _is_whole(found):
        return torch.equal(found, expected)
    largest = expected.nan_to_num(0, 0, 0).abs().max().item() if expected.numel() else 0
    return torch.allclose(found, expected, rtol=0, atol=TOLERANCE * largest, equal_nan=True)
