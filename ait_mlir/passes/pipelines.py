"""The named phases and the passes that lead to each."""

from __future__ import annotations

from collections.abc import Sequence

from ait_mlir.errors import AitError

PHASES: tuple[str, ...] = (
    "imported",
    "simplified",
    "fused",
    "selected",
    "bufferized",
    "planned",
    "source",
    "built",
)
"""In order. `source` and `built` are made by `ait_mlir.lowering` from a planned module."""

PASSES_TO: dict[str, str] = {
    "imported": "",
    "simplified": "simplify",
    "fused": "fuse-attention,merge-parallel-gemms,simplify,fuse-epilogue,fuse-norm,fuse-elementwise,gate-products,"
    "fuse-siblings",
    "selected": "select{{{target}}}",
    "bufferized": "bufferize,remove-copies,lower-copies",
    "planned": "plan-memory,verify-plan",
}


def passes_between(start: str, end: str, target: str = "cpu", arch: str = "", selection: str = "") -> str:
    """The pipeline that takes a module from phase `start` to phase `end`; `AitError` for an unknown phase or the
    wrong order. `selection` are further options of `select`."""
    for phase in (start, end):
        if phase not in PHASES:
            raise AitError(f"unknown phase {phase!r}; the phases are {', '.join(PHASES)}")
    first, last = PHASES.index(start), PHASES.index(end)
    if first > last:
        raise AitError(f"phase {end!r} comes before {start!r}; the phases are {', '.join(PHASES)}")
    options = f'target="{target}"' + (f' arch="{arch}"' if arch else "") + (f" {selection}" if selection else "")
    steps: Sequence[str] = [PASSES_TO[p].format(target=options) for p in PHASES[first + 1 : last + 1] if p in PASSES_TO]
    return ",".join(s for s in steps if s)
