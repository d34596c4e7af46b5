"""`Model`: a compiled model that runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ait_mlir.errors import ArtifactError, RunError
from ait_mlir.lowering.toolchain import TargetKind, detect_cuda_arch
from ait_mlir.runtime import artifact
from ait_mlir.runtime.benchmark import MeasuredModel


class Model(MeasuredModel):
    """A model loaded from an artifact.

    The constants of the artifact are copied to the device when the model is loaded; constants that it does not hold
    must be set with `set_constant` before the first run. `num_runtimes` runs can execute at the same time; further
    runs wait. All methods may be called from several threads. The model stays usable after an error.

    Raises `ArtifactError` when the artifact is damaged or not for this machine, `OutOfMemoryError`, `RunError` when
    the device is missing, `ToolchainError` when the runtime library has to be built and there is no C++ compiler.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        num_runtimes: int = 1,
        *,
        device: int = 0,
        verify_weights: bool = True,
    ) -> None:
        loaded = artifact.read(path, verify_weights=verify_weights)
        manifest = loaded.manifest
        if manifest.target not in ("cpu", "cuda", "rocm"):
            raise ArtifactError(f"{path} is for target '{manifest.target}', which this ait_mlir does not know")
        artifact.check_machine(manifest, lambda: detect_cuda_arch(device))
        libraries = loaded.kernel_library_files()
        self._open(loaded.extract_library(), manifest.target, num_runtimes, device, libraries)
        self.manifest: artifact.Manifest | None = manifest
        self.ir_text: str = loaded.ir_text
        self._open_constants()
        self._load_constants(loaded.constants, loaded.release)

    @classmethod
    def from_library(
        cls,
        library: str | os.PathLike[str],
        target: TargetKind,
        *,
        constants: Mapping[str, Any] | None = None,
        num_runtimes: int = 1,
        device: int = 0,
    ) -> Self:
        """A model from a model library that was just built, without an artifact."""
        model = cls.__new__(cls)
        model._open(Path(library), target, num_runtimes, device)
        model.manifest = None
        model.ir_text = ""
        model._open_constants()
        model.set_constants(constants or {})
        return model

    sorted_graph: Callable[[], list[Any]] | None = None
    """What `debug_sorted_graph` calls; set by `compile_model`."""

    @property
    def debug_sorted_graph(self) -> list[Any]:
        """The tensors of the builder that `compile_model` was given, each after those that it depends on.

        For tests of models. The model does not keep the tensors: raises `RunError` when they are gone, and for a model
        that was loaded from a file.
        """
        if self.sorted_graph is None:
            raise RunError("only a model that compile_model returned has the graph that it was compiled from")
        return self.sorted_graph()

    def close(self) -> None:
        """Free the model. Further calls raise `RunError`; closing twice is fine."""
        self._run = self._module = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
