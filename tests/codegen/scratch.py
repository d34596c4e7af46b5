"""The scratch memory of HIP kernels, from clang's remarks about each kernel.

Scratch memory is a lane's part of the card's memory. Arrays that are indexed at run time, and registers that do not fit, go there:
it is slow, so kernels keep all they have in registers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

REMARKS = "-Rpass-analysis=kernel-resource-usage"
"""The flag for which clang writes the resources of each kernel to its standard error."""

ALLOWED = {
    r"cumulative_(chained_)?columns_kernelINS_9LogSumExp": "exp and log in each row; clang unrolls none of these loops",
    r"cumulative_chained_rows_kernelINS_9LogSumExp": "states of two numbers for eight lanes: clang unrolls only a part",
    r"conv_depthwise_window_kernel\w+ConvInputId": "windows of f64 do not fit in the registers",
    r"group_norm_cluster_kernel": "some tiles do not fit in the registers: 16 to 48 bytes",
    r"map_kernel\w+\d(erf|erfinv|lgamma)_": "functions of the device's library with many branches",
}
"""Patterns of the mangled names of the kernels that use scratch memory, and why."""

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
    """The kernels that use scratch memory but are not in `ALLOWED`; if all kernels are given, also needless entries of
    `ALLOWED`.
    """
    users = {name: size for name, size in kernels.items() if size > 0}
    found = [
        f"{name} uses {size} bytes of scratch memory a lane"
        for name, size in users.items()
        if not any(re.search(pattern, name) for pattern in ALLOWED)
    ]
    if complete:
        found += [
            f"no kernel {pattern} uses scratch memory any more: take it off the list in {__name__}"
            for pattern in ALLOWED
            if not any(re.search(pattern, name) for name in users)
        ]
    return found
