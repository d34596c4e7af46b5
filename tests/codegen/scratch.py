"""Scratch memory of HIP kernels, from what clang says of each kernel that it compiles.

Scratch memory is a lane's part of the card's memory. Arrays that are indexed at run time, and registers that do not fit, go there:
it is slow, so kernels keep all they have in registers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

REMARKS = "-Rpass-analysis=kernel-resource-usage"
"""The flag for which clang writes the resources of each kernel to its standard error."""

ALLOWED = {
    "cumulative_chained_columns_kernelINS_9LogSumExp": "exp and log in each row: too many loops to unroll, or in f64 too few registers",
}
"""The part of a mangled name of the kernels that use scratch memory, and why."""

_REMARK = re.compile(r"remark: .*?(?:Function Name: (?P<name>\S+)|ScratchSize \[bytes/lane\]: (?P<bytes>\d+))")


def scratch_bytes(remarks: str) -> dict[str, int]:
    """The bytes a lane of each kernel, by mangled name."""
    found: dict[str, int] = {}
    name = ""
    for match in _REMARK.finditer(remarks):
        if match["name"] is not None:
            name = match["name"]
        else:
            found[name] = int(match["bytes"])
    return found


def problems(kernels: Mapping[str, int], complete: bool) -> list[str]:
    """The kernels that use scratch memory and may not; if these are all kernels, also what `ALLOWED` need not name."""
    users = {name: size for name, size in kernels.items() if size > 0}
    found = [
        f"{name} uses {size} bytes of scratch memory a lane"
        for name, size in users.items()
        if not _is_allowed(name, ALLOWED)
    ]
    if complete:
        found += [
            f"no kernel {part} uses scratch memory any more: take it off the list in {__name__}"
            for part in ALLOWED
            if not any(_is_allowed(name, [part]) for name in users)
        ]
    return found


def _is_allowed(name: str, parts: Iterable[str]) -> bool:
    return any(part in name for part in parts)
