"""Runs passes on a graph of the builder; the common part of all documented transformations.

A transformation takes sorted tensors, emits them as a module, runs passes of `ait-opt` on it, and makes tensors of the
result (`ait_mlir.frontend.lift`). The given graph stays as it is. If the passes change nothing, the given tensors are
returned; otherwise all tensors of the result are new, with the names, data and marks of the tensors that they replace.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ait_mlir.compiler.transform.rows import CONTRACTIONS, TRANSFORMATIONS
from ait_mlir.dialects.ait.traits import HasEpilogue
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.lift import emit, lift
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.ir.context import context
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.passes.parse import parse_passes
from ait_mlir.rewrites.apply import Applies, held
from ait_mlir.utils.graph_utils import get_sorted_ops


def transform(
    name: str,
    sorted_graph: Sequence[Tensor],
    workdir: str | os.PathLike[str] | None,
    passes: str,
    only: Applies | None = None,
) -> list[Tensor]:
    """The graph after a pipeline of passes; products and convolutions for which `only` returns False stay unchanged.

    With a `workdir`, `NAME.mlir`, `NAME_graph.txt` and `NAME_pseudo_code.txt` are written there. Raises `BuildError`
    for a list that is not sorted or not closed, and for a `workdir` that cannot be written.
    """
    emission = emit(sorted_graph)
    directory = writable(workdir)
    before = str(emission.module)
    with held(emission.module, only):
        run_passes(context(), emission.module, parse_passes(passes), verify="end")
    result = list(sorted_graph) if str(emission.module) == before else lift(emission)
    if directory is not None:
        dump(directory, name, result, emission.module)
    return result


def apply(name: str, sorted_graph: Sequence[Tensor], workdir: str | os.PathLike[str] | None = None) -> list[Tensor]:
    """The graph after the documented transformation of this name (`rows.py`)."""
    only = CONTRACTIONS.get(name, ())

    def applies(op: Operation) -> bool:
        return not isinstance(op, HasEpilogue) or op.name in only

    return transform(name, sorted_graph, workdir, TRANSFORMATIONS[name], applies if only else None)


def writable(workdir: str | os.PathLike[str] | None) -> Path | None:
    """The directory, created if it does not exist; `BuildError` if it cannot be written."""
    if workdir is None:
        return None
    directory = Path(workdir)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"the workdir {str(directory)!r} cannot be made: {error.strerror}") from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise BuildError(f"the workdir {str(directory)!r} cannot be written; give a directory that can, or None")
    return directory


def dump(directory: Path, name: str, tensors: Sequence[Tensor], module: ModuleOp) -> None:
    """Write a graph: as IR, as a list of tensors, and as pseudo code."""
    files = {
        f"{name}.mlir": str(module) + "\n",
        f"{name}_graph.txt": "".join(f"{tensor.pseudo_code()}\n" for tensor in tensors),
        f"{name}_pseudo_code.txt": "".join(f"{op.pseudo_code(True)}\n" for op in get_sorted_ops(tensors)),
    }
    for file, text in files.items():
        try:
            (directory / file).write_text(text)
        except OSError as error:
            raise BuildError(f"{str(directory / file)!r} cannot be written: {error.strerror}") from None
