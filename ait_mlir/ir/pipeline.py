"""Runs passes in order, verifies the module after each, and gives errors a place in the source."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ait_mlir.dims import DimError
from ait_mlir.errors import AitError
from ait_mlir.host import progress
from ait_mlir.ir.collector import rare_collections
from ait_mlir.ir.parser import check, op_place
from ait_mlir.ir.source import Diagnostic, SourceError, SourceText

Observer = Callable[[ModulePass, ModuleOp, float], None]
Starting = Callable[[ModulePass, ModuleOp], None]


class PassError(PassFailedException):
    """An error of a pass at an op."""

    def __init__(self, message: str, op: Operation | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.op = op


class TellingPass(ModulePass):
    """A pass that reports whether it changed the module; an unchanged module is not verified again."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.changes(ctx, op)

    def changes(self, ctx: Context, module: ModuleOp) -> bool:
        """Apply the pass; returns whether it changed the module."""
        raise NotImplementedError


def first_line(e: BaseException) -> str:
    """The first line of an error's message, or its type."""
    lines = str(e).strip().splitlines()
    return lines[0] if lines else type(e).__name__


def run_passes(
    ctx: Context,
    module: ModuleOp,
    passes: Sequence[ModulePass],
    *,
    source: SourceText | None = None,
    verify: bool | Literal["end"] = True,
    verified: bool = False,
    observe: Observer | None = None,
    starting: Starting | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> None:
    """Run passes in order. After each pass verify the ops that it changed and after the last all ops, or (`"end"`) only
    after the last; `SourceError` names the pass that failed. `verified`: the module was verified before. `starting` is
    called before each pass, `observe` after it, with its seconds by `clock`."""
    state = _state(module) if verified and verify is True else {}
    with rare_collections():
        _run(ctx, module, passes, source, verify, state, observe, starting, clock)


def _run(
    ctx: Context,
    module: ModuleOp,
    passes: Sequence[ModulePass],
    source: SourceText | None,
    verify: bool | Literal["end"],
    verified: _State,
    observe: Observer | None,
    starting: Starting | None,
    clock: Callable[[], float],
) -> None:
    stale = not verified
    for i, p in enumerate(passes, 1):
        progress.step(f"pass {p.name}")
        if starting is not None:
            starting(p, module)
        start = clock()
        with errors_with_places(f"pass {p.name!r}", module, source):
            if isinstance(p, TellingPass):
                stale |= p.changes(ctx, module)
            else:
                p.apply(ctx, module)
                stale = True
        seconds = clock() - start
        if stale and (verify is True or (verify == "end" and i == len(passes))):
            state = _state(module)
            if state != verified:
                _verify_after(p, module, source, None if i == len(passes) else _changed(state, verified))
            verified, stale = state, False
        if observe is not None:
            observe(p, module, seconds)


_State = dict[Operation, tuple[object, ...]]


def _state(module: ModuleOp) -> _State:
    """A snapshot, for each op, of everything that verification reads; unchanged ops have equal snapshots."""
    return {op: _state_of(op) for op in module.walk()}


def _state_of(op: Operation) -> tuple[object, ...]:
    operands = op._operands  # pyright: ignore[reportPrivateUsage]  # op.operands makes a view first
    return (
        op.parent,
        op.next_op is None,
        len(op.properties),
        *operands,
        *[operand.type for operand in operands],
        *[result.type for result in op.results],
        *op.properties,
        *op.properties.values(),
        *op.attributes,
        *op.attributes.values(),
        *[(block, *block.arg_types) for region in op.regions for block in region.blocks],
    )


def _changed(state: _State, verified: _State) -> list[Operation]:
    """The ops that changed since they were verified, the ops nested in them, and all ops whose verification may read
    other ops: ops with regions or symbol references."""
    changed: set[Operation] = set()
    found: list[Operation] = []
    for op, now in state.items():  # an op comes after its parent
        if verified.get(op) != now or op.parent_op() in changed:
            changed.add(op)
            found.append(op)
        elif op.regions or any(isinstance(value, SymbolRefAttr) for value in op.properties.values()):
            found.append(op)
    return found


def _verify_after(p: ModulePass, module: ModuleOp, source: SourceText | None, only: Sequence[Operation] | None) -> None:
    try:
        check(module, source, only)
    except SourceError as e:
        broken = [
            Diagnostic(d.file, d.line, d.column, f"after pass {p.name!r}: {d.message}", d.line_text)
            for d in e.diagnostics
        ]
        raise SourceError(broken) from None


_OF_THE_PROGRAM = (PassFailedException, VerifyException, DimError, OverflowError, MemoryError, RecursionError)
"""Errors that a program can cause, by an impossible request or by numbers that are too large."""


@contextmanager
def errors_with_places(who: str, module: ModuleOp, source: SourceText | None) -> Generator[None]:
    """Turn errors of a compilation step into `SourceError` at the op that the step was processing.

    An `AitError` stays unchanged, because its message is about the machine or the arguments of the call. Any other
    error is a bug: it gets a note with the place.
    """
    try:
        yield
    except AitError:
        raise
    except _OF_THE_PROGRAM as e:
        raise SourceError([diagnostic(who, e, source, module)]) from e
    except Exception as e:
        e.add_note(str(diagnostic(who, e, source, module)))
        raise


def _op_of(e: BaseException, module: ModuleOp | None) -> Operation | None:
    """The op of an error: its `op`; else the op with a place in a local variable of the innermost frame; else the
    first op of the module."""
    named: object = getattr(e, "op", None)
    if isinstance(named, Operation):
        return named
    found = None if module is None else next(iter(module.ops), None)
    for frame, _ in traceback.walk_tb(e.__traceback__):
        for value in frame.f_locals.values():
            if isinstance(value, Operation) and value is not module and op_place(value) is not None:
                found = value
    return found


def diagnostic(who: str, e: Exception, source: SourceText | None, module: ModuleOp | None = None) -> Diagnostic:
    """The diagnostic of an error of the step `who`, at the place of the error's op."""
    op = _op_of(e, module)
    place = None if op is None else op_place(op)
    message = f"{who}: {getattr(e, 'message', None) or first_line(e)}"
    if place is None:
        return Diagnostic(source.name if source is not None else "<ir>", 1, 1, message)
    text = source.line_text(place[1]) if source is not None and source.name == place[0] else ""
    return Diagnostic(*place, message, text)
