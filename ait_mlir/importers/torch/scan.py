"""Imports `torch.ops.higher_order.scan`, a loop over slices with carried values, as `ait.scan`. PyTorch moves the
scanned dim to the front; a scan in reverse flips its inputs and its stacked results.
"""

from __future__ import annotations

from typing import Any


def is_scan(node: Any) -> bool:
    """Whether a node is PyTorch's scan."""
    return node.op == "call_function" and str(node.target) == "scan" and len(node.args) == 4


def is_reversed(node: Any) -> bool:
    """Whether all inputs of a scan are flipped and all its used stacked results are flipped back."""
    stacked = [u for u in node.users if len(node.args[1]) <= u.args[1]]
    return all(map(_flips, node.args[2])) and all(_flips(user) for item in stacked for user in item.users)


def is_flip_of_scan(node: Any) -> bool:
    """Whether a node flips an input or a result of a scan that runs in reverse."""
    if not _flips(node):
        return False
    source = node.args[0]
    makers = [source.args[0]] if str(source.target).endswith("getitem>") else []
    scans = [scan for scan in (*makers, *node.users) if is_scan(scan)]
    read_by_scans = all(is_scan(user) for user in node.users)
    return bool(scans) and all(map(is_reversed, scans)) and (read_by_scans or bool(makers and is_scan(makers[0])))


def _flips(node: Any) -> bool:
    return str(getattr(node, "target", "")) == "aten.flip.default" and list(node.args[1]) == [0]
