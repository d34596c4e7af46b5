"""The context for parsing text: our dialects, loaded on first use, and the operators from outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.context import Context
from xdsl.ir import Dialect, Operation

from ait_mlir import outside


def _ait() -> Dialect:
    from ait_mlir.dialects.ait import AIT

    return AIT


def _ait_rt() -> Dialect:
    from ait_mlir.dialects.ait_rt import AIT_RT

    return AIT_RT


def _pdl() -> Dialect:
    from xdsl.dialects.pdl import PDL

    return PDL


def _sdy() -> Dialect:
    from ait_mlir.dialects.sdy import SDY

    return SDY


DIALECTS: dict[str, Callable[[], Dialect]] = {"ait": _ait, "ait_rt": _ait_rt, "sdy": _sdy}


def _outside(name: str) -> Dialect:
    return Dialect(name, outside.dialects()[name])


class _Context(Context):
    """A context that looks up unknown dialects among the operators of installed packages."""

    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        dialect = name.partition(".")[0]
        if "." in name and dialect not in self.registered_dialect_names and dialect in outside.dialects():
            self.register_dialect(dialect, partial(_outside, dialect))
        return super().get_optional_op(name, dialect_stack=dialect_stack)


def context() -> Context:
    """A context with our dialects, `builtin`, the dialects of pattern files, and the operators from outside."""
    from xdsl.dialects.builtin import Builtin

    ctx = _Context()
    ctx.register_dialect("builtin", lambda: Builtin)
    ctx.register_dialect("pdl", _pdl)
    for name, factory in DIALECTS.items():
        ctx.register_dialect(name, factory)
    for name in outside.dialects(installed=False):
        ctx.register_dialect(name, partial(_outside, name))
    return ctx
