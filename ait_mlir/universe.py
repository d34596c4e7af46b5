"""The `xdsl.universe` entry point for `xdsl-opt`: our dialects and passes, loaded on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xdsl.context import Context
from xdsl.ir import Dialect
from xdsl.universe import Universe

from ait_mlir import outside
from ait_mlir.passes.pipelines import PASSES


def _ait() -> Dialect:
    from ait_mlir.dialects.ait import AIT

    return AIT


def _ait_rt() -> Dialect:
    from ait_mlir.dialects.ait_rt import AIT_RT

    return AIT_RT


def _pdl() -> Dialect:
    from xdsl.dialects.pdl import PDL

    return PDL


DIALECTS: dict[str, Callable[[], Dialect]] = {"ait": _ait, "ait_rt": _ait_rt}
AIT_UNIVERSE = Universe(
    all_dialects=DIALECTS, all_passes={name: row.load for name, row in PASSES.items()}, all_targets={}
)


def context() -> Context:
    """A context that knows the dialects of this project, `builtin`, those that pattern files are written in, and the
    operators from outside."""
    from xdsl.dialects.builtin import Builtin

    ctx = Context()
    ctx.register_dialect("builtin", lambda: Builtin)
    ctx.register_dialect("pdl", _pdl)
    for name, factory in DIALECTS.items():
        ctx.register_dialect(name, factory)
    for name, ops in outside.dialects().items():
        ctx.register_dialect(name, partial(Dialect, name, ops))
    return ctx
