"""Lets a trace read numbers from buffers: `int(self.length)` gives the buffer's number during a trace."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import Any

from ait_mlir.importers.torch.errors import ImportFailure
from ait_mlir.importers.torch.library import torch

LARGEST = 1024
"""The most elements of a buffer whose numbers are kept."""

_Mode: Any = torch.overrides.TorchFunctionMode
_SIZES: Any = (torch.SymInt, torch.SymFloat, torch.SymBool)
_LEAVES = frozenset((torch.Tensor, torch.Size, torch.dtype, torch.device, torch.layout, bool, int, type(None)))
"""Types of results that a trace looks into without a search."""
_READS = frozenset(
    getattr(torch.Tensor, name) for name in ("__bool__", "__float__", "__index__", "__int__", "item", "tolist")
)


def _changes(name: str) -> bool:
    """Whether a function of this name may change its operand, as `add_`, `__iadd__` and `__setitem__` do."""
    if name.startswith("__"):
        return name == "__setitem__" or (name.startswith("__i") and name not in ("__index__", "__int__", "__invert__"))
    return name.endswith("_")


def _tensors(result: Any) -> list[Any]:
    """The tensors in the result of a function."""
    leaves = [result] if type(result) in _LEAVES else torch.utils._pytree.tree_leaves(result)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _owner(node: Any) -> Any:
    """The node whose memory a view shows."""
    while node.op == "call_function" and node.args and hasattr(node.args[0], "op"):
        node = node.args[0]
    return node


class BufferNumbers(_Mode):  # pyright: ignore[reportUntypedBaseClass]
    """A context in which Python reads numbers from a module's buffers, and from values computed only from buffers.
    PyTorch's trace does not know their values.
    """

    def __init__(self, module: Any) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.module = module
        buffers = module.named_buffers()
        self.values = {n: b.detach().clone() for n, b in buffers if b.numel() <= LARGEST and b.device.type != "meta"}
        self.computed: dict[int, tuple[Any, Any]] = {}
        """By the identity of a tensor of the trace: the tensor, and its value."""
        self.others: dict[int, Any] = {}
        """By their identity, the tensors of the trace without a known value."""
        self.used: set[str] = set()
        """The buffers with numbers that were read."""
        self.sources: dict[int, set[str]] = {}
        self.places: list[tuple[str, dict[str, Any], str]] = []
        """Of each buffer with known numbers its name, and the table and the key of a module under which it is."""

    @contextlib.contextmanager
    def watched(self) -> Generator[None]:
        """A context for a trace in which Python can read the numbers of buffers."""
        if not self.values:
            yield
            return
        for kept in (self.computed, self.others, self.sources):
            kept.clear()
        found = ((prefix, owner._buffers) for prefix, owner in self.module.named_modules())
        named = ((f"{prefix}.{key}" if prefix else key, table, key) for prefix, table in found for key in table)
        self.places = [place for place in named if place[0] in self.values]
        functional = torch._subclasses.functional_tensor.FunctionalTensor
        kept = functional.tolist

        def to_list(tensor: Any) -> Any:
            found = self._value(tensor)
            return kept(tensor) if found is None else self._read(tensor, found, "tolist")

        functional.tolist = to_list
        try:
            with self:
                yield
        finally:
            functional.tolist = kept

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_dynamo_compiling():  # the step of a loop: Dynamo would trace this function
            return func(*args, **kwargs)
        if func in _READS and (found := self._value(args[0])) is not None:
            return self._read(args[0], found, func.__name__)
        result = func(*args, **kwargs)
        made = _tensors(result)
        if not made and not _changes(getattr(func, "__name__", "")):
            return result  # as most calls: PyTorch reads shapes and flags of tensors
        if not self._compute(func, args, kwargs, made):
            self.others.update((id(r), r) for r in made)
        return result

    def _value(self, tensor: Any) -> Any:
        """The value of a tensor of the trace; None if it depends on more than buffers."""
        if (entry := self.computed.get(id(tensor))) is not None and entry[0] is tensor:
            return entry[1]
        if self.others.get(id(tensor)) is tensor:
            return None
        for name, table, key in self.places:
            if table.get(key) is tensor:
                self.computed[id(tensor)] = tensor, self.values[name]
                self.sources[id(tensor)] = {name}
                return self.values[name]
        self.others[id(tensor)] = tensor
        return None

    def _read(self, tensor: Any, value: Any, how: str) -> Any:
        self.used |= self.sources[id(tensor)]
        with torch.utils._python_dispatch._disable_current_modes(), torch._C.DisableTorchFunction():
            return getattr(value, how)()

    def _compute(self, func: Any, args: Any, kwargs: Any, results: Sequence[Any]) -> bool:
        """Keep the values of results that depend only on whole numbers in buffers; returns whether they do."""
        tree = torch.utils._pytree
        leaves, spec = tree.tree_flatten((args, kwargs))
        given = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if _changes(getattr(func, "__name__", "")) or not given:
            for tensor in given:
                self.computed.pop(id(tensor), None)
            return False
        if not results or any(isinstance(leaf, _SIZES) for leaf in leaves):
            return False  # a size that varies would become that of the example
        values = {id(tensor): self._value(tensor) for tensor in given}
        if any(value is None or value.is_floating_point() for value in values.values()):
            return False
        known = [values.get(id(leaf), leaf) for leaf in leaves]
        with (
            contextlib.suppress(Exception),
            torch.utils._python_dispatch._disable_current_modes(),
            torch._C.DisableTorchFunction(),
        ):
            again = func(*(found := tree.tree_unflatten(known, spec))[0], **found[1])
            sources = set[str]().union(*(self.sources[id(tensor)] for tensor in given))
            for tensor, value in zip(results, tree.tree_leaves(again), strict=True):
                self.computed[id(tensor)], self.sources[id(tensor)] = (tensor, value), sources
            return True
        return False

    def check(self, program: Any) -> None:
        """Raise `ImportFailure` for a buffer whose number is read, and which the program changes."""
        signature = program.graph_signature
        changed = set(signature.buffers_to_mutate.values())
        for node in program.graph.nodes:  # in a program that is not functional yet
            if getattr(getattr(node.target, "_schema", None), "is_mutable", False):
                changed.add(signature.inputs_to_buffers.get(_owner(node.args[0]).name))
        for name in sorted(self.used & changed):
            raise ImportFailure(
                f"the model changes its buffer {name!r} and reads its number in Python; compute with the tensor"
            )
