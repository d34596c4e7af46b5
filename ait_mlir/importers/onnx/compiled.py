"""`load_onnx`: imports, compiles and loads an ONNX model."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ait_mlir.arguments import checked
from ait_mlir.errors import InputError
from ait_mlir.frontend.target import Target, as_target
from ait_mlir.host.files import copy_atomic
from ait_mlir.importers.errors import ImportFailure
from ait_mlir.importers.onnx.program import Imported, import_model

if TYPE_CHECKING:
    from ait_mlir.options import CompileOptions, Measure
    from ait_mlir.runtime import Model


@checked(ImportFailure)
def load_onnx(
    source: Any,
    *,
    target: Target | str = "cpu",
    name: str | None = None,
    dims: Mapping[str, tuple[int, int]] | None = None,
    hints: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, Any] | None = None,
    forms: Mapping[str, Any] | None = None,
    workdir: str | Path | None = None,
    measure: Measure = "auto",
    budget: float | None = None,
    precision: str = "highest",
    num_runtimes: int = 1,
) -> LoadedOnnx:
    """Import, compile and load an ONNX file or a `ModelProto`.

    `dims`, `hints`, `values` and `forms` are explained in `import_model`, `measure`, `budget` and `precision` in
    `CompileOptions`, `num_runtimes` in `Model`. Raises `ImportFailure` for a model that cannot be imported.
    """
    from ait_mlir.options import CompileOptions

    chosen = as_target(target)
    options = CompileOptions(chosen.kind, chosen.arch, measure=measure, budget=budget, precision=precision)
    imported = import_model(source, name, dims=dims, hints=hints, values=values, forms=forms)
    return build(imported, options, workdir=workdir, num_runtimes=num_runtimes)


def build(
    imported: Imported, options: CompileOptions, *, workdir: str | Path | None = None, num_runtimes: int = 1
) -> LoadedOnnx:
    """Compile an imported model and load it."""
    from ait_mlir.driver import compile_module
    from ait_mlir.runtime import Model

    folder = Path(tempfile.mkdtemp(prefix="ait_"))  # only its owner can read it: the artifact has the weights
    file = folder / "model.ait"
    try:
        module = imported.module.clone()
        compile_module(module, options, output=file, constants=imported.constants, workdir=workdir)
        # this process has just written the file: its weights need no second hash
        loaded = LoadedOnnx(imported, Model(file, num_runtimes=num_runtimes, verify_weights=False), file)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(loaded, _remove, folder, os.getpid())
    return loaded


def _remove(folder: Path, owner: int) -> None:
    """Remove a temporary folder, unless this is a fork of the process that made it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


class LoadedOnnx:
    """A compiled ONNX model; `model` is the `Model` that runs it."""

    def __init__(self, imported: Imported, model: Model, artifact: Path) -> None:
        self.imported = imported
        self.model = model
        self._artifact = artifact

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The outputs by name, of inputs in the order of the model or by name. Raises `InputError` for inputs that do
        not fit.
        """
        names = self.imported.inputs
        if len(args) > len(names):
            raise InputError(f"the model has {len(names)} inputs, got {len(args)}")
        given = dict(zip(names, args, strict=False))
        if twice := sorted(given.keys() & kwargs.keys()):
            raise InputError(f"input {twice[0]!r} is given twice")
        return self.run({**given, **kwargs})

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name, of inputs by name; a sequence is a list, and an optional without a value None."""
        return self.imported.named(self.model.run_with_tensors(self.imported.tensors(inputs)))

    @checked(InputError)
    def save(self, path: str | Path) -> Path:
        """Write the artifact, for `ait_mlir.runtime.Model` and `ait run`; returns its path."""
        target = Path(path)
        copy_atomic(self._artifact, target)
        return target

    def __repr__(self) -> str:
        return f"<LoadedOnnx of {self.model!r}>"
