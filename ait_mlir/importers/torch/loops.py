"""Python loops over a dynamic dim become scans.

PyTorch unrolls `for t in range(x.shape[1])`, which fixes the dim. Where a trace meets such a loop with a dim that it
does not know, it starts again with the code of the function converted:

```python
for t in range(n):                       def step(carried, slices):
    h = f(x[:, t], h)                        h, = carried
    rows.append(h)                 ->        x_t, t = slices
                                             h = f(x_t, h)
                                             return (h,), ([h],)

                                         (h,), stacked = run(step, n, (h,), [(x, 1)], ["rows"])
                                         rows = collected(rows, stacked[0])
```

Variables that the body reads before it writes them are carried; values appended to a list or written to `y[:, t]` are
results of each step.

A condition by the value of a tensor becomes a choice, if both sides only set variables (`choice_code.condition_at`).

A loop with a known number of steps is unrolled by the trace. Forward substitution, which writes each row of a matrix in
turn, is the exception: it becomes a few products of matrices (`loop_code.substituted_rows`).
"""

from __future__ import annotations

import ast
import contextlib
import gc
import inspect
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, cast

from ait_mlir.importers.torch.choice_code import condition_at
from ait_mlir.importers.torch.choices import watched
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.loop_code import compiled, loop_around, loop_at, source, substituted_rows
from ait_mlir.importers.torch.steps import LoopError, is_dynamic
from ait_mlir.importers.torch.tracing import TraceAgain


class LoopFound(TraceAgain):
    """A trace has met a loop over a dynamic dim, or a condition by the value of a tensor."""


@dataclass(frozen=True)
class Converted:
    """A function whose loops at some lines become scans, and conditions choices."""

    functions: list[FunctionType]
    lines: frozenset[int]
    code: CodeType


class Loops:
    """The loops over dynamic dims that the traces of one model have met."""

    def __init__(self) -> None:
        self.converted: dict[CodeType, Converted] = {}
        """The converted functions, by their original code."""
        self.originals: dict[CodeType, CodeType] = {}
        self.refused: list[str] = []
        """Why loops stay as they are."""
        self.written: dict[tuple[CodeType, int], int | None] = {}
        """By a line that writes a part of a tensor: the line of its loop, if that is forward substitution."""

    @contextlib.contextmanager
    def watched(self) -> Generator[None]:
        """A context for traces: functions with loops run their converted code, and a further loop raises `LoopFound`.
        """
        kept = torch.SymInt.__index__

        def index(size: Any) -> int:
            frame = inspect.currentframe()
            assert frame is not None and frame.f_back is not None
            frame = frame.f_back
            if is_dynamic(size) and self._converts(frame.f_code, frame.f_lineno):
                raise LoopFound(f"{frame.f_code.co_filename}:{frame.f_lineno}")
            return kept(size)

        scan = cast(Any, type(torch.ops.higher_order.scan))
        call = scan.__call__

        def scanned(op: Any, step: Any, init: Any, xs: Any, captured: Sequence[Any]) -> Any:
            """PyTorch's scan, with captured plain tensors copied: its trace refuses constants that a step captures."""
            return call(op, step, init, xs, tuple(t.clone() if type(t) is torch.Tensor else t for t in captured))

        with contextlib.ExitStack() as stack:
            stack.enter_context(watched())
            stack.enter_context(_RowsWatched(self))
            stack.callback(setattr, torch.SymInt, "__index__", kept)
            stack.callback(setattr, scan, "__call__", call)
            torch.SymInt.__index__, scan.__call__ = index, scanned
            for original, found in self.converted.items():
                for function in found.functions:
                    stack.callback(setattr, function, "__code__", original)
                    function.__code__ = found.code
            yield

    def writes_rows(self, code: CodeType, line: int) -> bool:
        """Whether this line is in a loop of forward substitution; the next trace then converts the loop."""
        if code in self.originals:  # the loop stayed as it is
            return False
        if (code, line) not in self.written:
            tree = source(code)
            loop = None if tree is None else loop_around(tree, line)
            self.written[code, line] = None if loop is None or substituted_rows(loop) is None else loop.iter.lineno
        start = self.written[code, line]
        return start is not None and self._converts(code, start)

    def chooses(self, code: CodeType, line: int) -> bool:
        """Whether a condition that can become a choice is at this line; the next trace then converts it."""
        return self._converts(code, line, condition_at)

    def _converts(
        self, code: CodeType, line: int, found_at: Callable[[ast.AST, int], ast.For | ast.If | None] = loop_at
    ) -> bool:
        """Whether a loop that can be converted starts at this line; the next trace then converts it."""
        original = self.originals.get(code, code)
        known = self.converted.get(original)
        try:
            tree = source(original)
            if tree is None or (loop := found_at(tree, line)) is None:
                return False
            lines = frozenset((*(known.lines if known else ()), loop.lineno))
            functions = known.functions if known else _functions(original)
            if not functions or (known and lines == known.lines):
                raise LoopError("its function is made anew in each call")
            made = Converted(functions, lines, compiled(tree, original, lines))
        except LoopError as error:
            reason = f"the loop at {original.co_filename}:{line} cannot become a scan: {error}"
            if reason not in self.refused:
                self.refused.append(reason)
            return False
        self.converted[original] = made
        self.originals[made.code] = original
        return True


_Mode: Any = torch.overrides.TorchFunctionMode


class _RowsWatched(_Mode):  # pyright: ignore[reportUntypedBaseClass]
    """A context for a trace that raises `LoopFound` where a loop of forward substitution writes its first row, and
    where the value of a tensor decides between two sides that can both be computed.
    """

    def __init__(self, loops: Loops) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.loops = loops

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.compiler.is_dynamo_compiling() or func not in (torch.Tensor.__setitem__, torch.Tensor.__bool__):
            return func(*args, **(kwargs or {}))
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_name == "__torch_function__":
            frame = frame.f_back
        if func is torch.Tensor.__setitem__:
            if frame is not None and self.loops.writes_rows(frame.f_code, frame.f_lineno):
                raise LoopFound(f"{frame.f_code.co_filename}:{frame.f_lineno}")
            return func(*args, **(kwargs or {}))
        try:
            return func(*args, **(kwargs or {}))
        except Exception as error:  # the trace has no value
            if frame is not None and self.loops.chooses(frame.f_code, frame.f_lineno):
                raise LoopFound(f"{frame.f_code.co_filename}:{frame.f_lineno}") from error
            raise


def _functions(code: CodeType) -> list[FunctionType]:
    return [f for f in gc.get_referrers(code) if isinstance(f, FunctionType) and f.__code__ is code]


__all__ = ["Loops"]
