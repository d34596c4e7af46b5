"""The table of ATen operations: a row writes one operation in `ait`; a file holds one family.

A key of `ROWS` is the name of an overload, or the names of several overloads that one row writes, with spaces between.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from ait_mlir import outside
from ait_mlir.families import modules
from ait_mlir.importers.torch.call import Row

MODULES = (
    "complex", "elementwise", "functions", "contraction", "conv", "pad", "pool", "detection", "resize",
    "attention", "norm", "reduction", "sorting", "quantize", "data_dependent", "cumulative", "recurrent", "view",
    "jagged", "data", "index", "scatter", "rearrange", "collective",
)  # fmt: skip
"""The files of rows. An operation has one row, but for those of complex numbers, which other rows replace."""


def joined(files: Sequence[ModuleType]) -> dict[str, Row]:
    """The rows of all files by name. A row of another file replaces the row of that name in the first file.

    Raises `ValueError`, with both places, if two files other than the first have a row of one name.
    """
    found: dict[str, tuple[Row, ModuleType]] = {}
    for file in files:
        for name, row in ((n, row) for names, row in file.ROWS.items() for n in names.split()):
            if name in found and found[name][1] is not files[0]:
                places = f"{_place(found[name][1], name)} and {_place(file, name)}"
                raise ValueError(f"two rows import {name}: {places}; remove one of them")
            found[name] = row, file
    return {name: row for name, (row, _) in found.items()}


def _place(file: ModuleType, name: str) -> str:
    """File and line of a row; only the file if the code composes the name of the row from parts."""
    path = Path(str(file.__file__))
    lines = path.read_text(encoding="utf-8").splitlines()
    spelled = rf'[" ]{re.escape(name)}[" ]', f'"{name.split(".")[1]}"'
    found = (f"{path}:{i}" for text in spelled for i, line in enumerate(lines, 1) if re.search(text, line))
    return next(found, str(path))


TABLE: dict[str, Row] = joined(modules(__name__, MODULES))
"""Rows by the name of the overload as PyTorch prints it: `aten.add.Tensor`."""


def row_named(name: str) -> Row | None:
    """The row of an overload: from the table, or of a user's operator."""
    if (own := TABLE.get(name)) is not None:
        return own
    return next((row.torch[name] for row in outside.rows().values() if name in row.torch), None)


_RANDOM = "random numbers are not supported; make them an input, or call model.eval() before the export"
_VALUE = "a value of a tensor decides what is computed; decide by shapes, or use torch.where"
_FLOW = "control flow is not supported; compute both sides and choose with torch.where"
_FAST_PATH = "call torch.backends.mha.set_fastpath_enabled(False) first: PyTorch then shows what the layer is made of"
_ANY = "write it with other operations, or add an operator with a row for it (docs/add_an_operator.md)"

ADVICE: dict[str, str] = {
    "rand": _RANDOM,
    "bernoulli": _RANDOM,
    "normal": _RANDOM,
    "multinomial": _RANDOM,
    "item": _VALUE,
    "_local_scalar_dense": _VALUE,
    "_transformer_encoder_layer_fwd": _FAST_PATH,
    "_native_multi_head_attention": _FAST_PATH,
    "cond": _FLOW,
    "while_loop": "loops over values are not supported; unroll the loop",
}
"""Advice for operations that no row can translate, by the start of their name."""


def advice(name: str) -> str:
    """Advice for an operation that has no row."""
    bare = name.removeprefix("aten.")
    return next((reason for start, reason in ADVICE.items() if bare.startswith(start)), _ANY)
