"""Gives names to tensors, operators and dims without a name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ait_mlir.frontend.intvar import UNNAMED, IntVar, IntVarTensor, merge_symbols
from ait_mlir.frontend.jagged import JaggedIntVar
from ait_mlir.frontend.lift import check_sorted
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.utils.graph_utils import get_sorted_ops

__all__ = ["IntVar", "IntVarTensor", "JaggedIntVar", "dedup_symbolic_name", "name_graph"]

_KEYWORDS = frozenset(
    [
        "alignas",
        "alignof",
        "and",
        "asm",
        "auto",
        "bool",
        "break",
        "case",
        "catch",
        "char",
        "class",
        "const",
        "constexpr",
        "continue",
        "decltype",
        "default",
        "delete",
        "do",
        "double",
        "else",
        "enum",
        "explicit",
        "export",
        "extern",
        "false",
        "float",
        "for",
        "friend",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "mutable",
        "namespace",
        "new",
        "not",
        "nullptr",
        "operator",
        "or",
        "private",
        "protected",
        "public",
        "register",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "template",
        "this",
        "throw",
        "true",
        "try",
        "typedef",
        "typeid",
        "typename",
        "union",
        "unsigned",
        "using",
        "virtual",
        "void",
        "volatile",
        "while",
        "xor",
    ]
)


def name_graph(sorted_graph: Sequence[Tensor], reset_counters: bool = False) -> None:
    """Name each tensor, operator and dim without a name; all names are unique and valid names of C variables.

    A given name that is not valid is changed (`encoder.weight` to `encoder_weight`) and kept in
    `_attrs["original_name"]`. Each graph counts names from the start, so `reset_counters` has no effect.
    """
    check_sorted(sorted_graph)
    taken: set[str] = set()
    for tensor in sorted_graph:
        if tensor.name is not None:
            name = _unique(_identifier(tensor.name), taken)
            if name != tensor.name:
                tensor.attrs["original_name"] = tensor.attrs["original_name"] or tensor.name
                tensor.name = name
    for op in get_sorted_ops(sorted_graph):
        if op.attrs["name"] is None:
            op.attrs["name"] = _unique(_identifier(str(op.attrs["op"])), taken)
    for tensor in sorted_graph:
        if tensor.name is None:
            ops = list(tensor.src_ops())
            base = f"{ops[0].attrs['name']}_{ops[0].outputs.index(tensor)}" if ops else "constant"
            tensor.name = _unique(base, taken)
    for tensor in sorted_graph:
        for axis, dim in enumerate(tensor.shape()):
            if str(dim.expr).startswith(UNNAMED) and dim.name is None:
                dim.rename(_unique(f"{tensor.name}_dim_{axis}", taken))


def dedup_symbolic_name(sorted_graph: Sequence[Tensor]) -> None:
    """Check that equal dims have one name.

    Dims are interned expressions: equal dims are one object and share their name from the start. Two IntVars of one
    name must have one range, else `BuildError` is raised.
    """
    check_sorted(sorted_graph)
    merge_symbols(*(tensor.symbols for tensor in sorted_graph))


def _identifier(name: str) -> str:
    found = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{found}" if not found or found[0].isdigit() or found in _KEYWORDS else found


def _unique(name: str, taken: set[str]) -> str:
    found, n = name, 1
    while found in taken:
        found, n = f"{name}_{n}", n + 1
    taken.add(found)
    return found
