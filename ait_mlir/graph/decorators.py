"""Helpers for functions that make graphs: `graph` opens a graph, `jit` builds it, `graph_cache` caches it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

from ait_mlir.graph.enums import data_type, heur_mode
from ait_mlir.graph.handle import Handle
from ait_mlir.graph.pygraph import pygraph
from ait_mlir.graph.tensor import tensor


@contextmanager
def graph(
    handle: Handle | None,
    name: str = "graph",
    io_data_type: Any = data_type.HALF,
    intermediate_data_type: Any = data_type.FLOAT,
    compute_data_type: Any = data_type.FLOAT,
    **kwargs: Any,
) -> Generator[tuple[pygraph, list[tensor]]]:
    """A new graph and an empty list for its tensors: `with graph(handle) as (g, tensors)`."""
    yield (
        pygraph(
            name=name,
            handle=handle,
            io_data_type=io_data_type,
            intermediate_data_type=intermediate_data_type,
            compute_data_type=compute_data_type,
            **kwargs,
        ),
        [],
    )


def jit(heur_modes: Sequence[heur_mode] | heur_mode = heur_mode.A, **_: Any) -> Callable[..., Any]:
    """A decorator that builds the graph that a function makes. The function returns a graph and tensors; the decorated
    function returns the built graph and the UIDs of the tensors."""
    modes = [heur_modes] if isinstance(heur_modes, heur_mode) else list(heur_modes)

    def decorator(function: Callable[..., tuple[pygraph, Sequence[tensor]]]) -> Callable[..., Any]:
        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> tuple[pygraph, list[int]]:
            made, tensors = function(*args, **kwargs)
            if made.get_execution_plan_count() == 0:
                made.build(modes)
            return made, [t.get_uid() for t in tensors]

        return wrapper

    return decorator


def graph_cache(key_fn: Callable[..., Hashable], maxsize: int = 256) -> Callable[..., Any]:
    """A decorator that caches a function's results by `key_fn(arguments)`, at most `maxsize`, least recently used first
    out."""

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        kept: OrderedDict[Hashable, Any] = OrderedDict()

        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            key = key_fn(*args, **kwargs)
            if key in kept:
                kept.move_to_end(key)
                return kept[key]
            kept[key] = result = function(*args, **kwargs)
            while len(kept) > maxsize:
                kept.popitem(last=False)
            return result

        return wrapper

    return decorator
