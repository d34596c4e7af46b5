"""`Model`: a compiled model that runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from ait_mlir.errors import ArtifactError, InputError, RunError
from ait_mlir.lowering.toolchain import TargetKind, detect_cuda_arch
from ait_mlir.runtime import artifact
from ait_mlir.runtime.inspection import InspectedModel
from ait_mlir.runtime.kinds import AITemplateAllocatorKind
from ait_mlir.runtime.loading import runtime_library
from ait_mlir.runtime.manifest import Manifest
from ait_mlir.runtime.on_host import HostOutputModel
from ait_mlir.runtime.opened import as_runtimes


def _from_path(cls: type[Model], path: str, num_runtimes: int, device: int | None) -> Model:
    return cls(path, num_runtimes, device=device)


def _from_bytes(cls: type[Model], content: bytes, num_runtimes: int, device: int | None) -> Model:
    return cls.from_bytes(content, num_runtimes, device=device)


class Model(InspectedModel, HostOutputModel):
    """A model loaded from an artifact.

    The constants of the artifact are copied to the device when the model is loaded; constants that it does not hold
    must be set with `set_constant` before the first run. `num_runtimes` runs, at most 4096, can execute at the same
    time; further runs wait. All methods may be called from several threads. The model stays usable after an error.
    `allocator_kind` says where the scratch memory of runs comes from.

    On a host with several GPUs a run is on the device of its tensors. The first run on a device copies the constants
    there, and each device has `num_runtimes` runtimes of its own. With `device`, the model uses that device alone and
    refuses tensors on others. `AITData` and memory that the model allocates are on `device`, by default the first one.

    Models of one file share the constants on a device, if `share_constants` is left True and the weights are verified;
    a model whose constants are set gets a copy of its own. The constants are freed with the last model.

    A model can be pickled: by the path of its artifact, or, with `pickle_by="bytes"`, with the content of the file,
    for processes that do not see it. The copy is loaded with the constants of the artifact and the same arguments. A
    model whose constants were set cannot be pickled or copied.

    Raises `ArtifactError` when the artifact is damaged or not for this machine, `OutOfMemoryError`, `RunError` when
    the device is missing, `ToolchainError` when the runtime library has to be built and there is no C++ compiler.
    """

    _content: bytes | None = None

    def __init__(
        self,
        path: str | os.PathLike[str],
        num_runtimes: int = 1,
        allocator_kind: AITemplateAllocatorKind | None = None,
        *,
        device: int | None = None,
        verify_weights: bool = True,
        share_constants: bool = True,
        pickle_by: Literal["path", "bytes"] = "path",
    ) -> None:
        if allocator_kind is not None and not isinstance(allocator_kind, AITemplateAllocatorKind):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"allocator_kind is {allocator_kind!r}, expected an AITemplateAllocatorKind")
        if pickle_by not in ("path", "bytes"):
            raise InputError(f'pickle_by is {pickle_by!r}, expected "path" or "bytes"')
        num_runtimes = as_runtimes(num_runtimes)
        self._pickle_by = pickle_by
        loaded = artifact.read(path, verify_weights=verify_weights, defer_weights=True)
        self._path: Path | None = loaded.path.absolute()
        manifest = loaded.manifest
        if manifest.target not in ("cpu", "cuda", "rocm"):
            raise ArtifactError(f"{path} is for target '{manifest.target}', which this ait_mlir does not know")
        artifact.check_machine(manifest, lambda: detect_cuda_arch(device or 0))
        is_shared = share_constants and verify_weights
        if is_shared and runtime_library(manifest.target).has_constants(
            "cpu" if manifest.target == "cpu" else f"{manifest.target}:{device or 0}", loaded.constants_key
        ):
            loaded.check_constants()
        else:
            _ = loaded.constants  # all of the file is checked before any of its code is loaded
        libraries = loaded.kernel_library_files()
        is_framework = allocator_kind is AITemplateAllocatorKind.FRAMEWORK
        self._open(loaded.extract_library(), manifest.target, num_runtimes, device, libraries, is_framework)
        self.manifest: Manifest | None = manifest
        self.ir_text: str = loaded.ir_text
        self._open_constants()
        self._load_constants(loaded, is_shared)

    @classmethod
    def from_library(
        cls,
        library: str | os.PathLike[str],
        target: TargetKind,
        *,
        constants: Mapping[str, Any] | None = None,
        num_runtimes: int = 1,
        device: int | None = None,
        allocator_kind: AITemplateAllocatorKind | None = None,
    ) -> Self:
        """A model from a model library that was just built, without an artifact."""
        model = cls.__new__(cls)
        is_framework = allocator_kind is AITemplateAllocatorKind.FRAMEWORK
        model._open(Path(library), target, num_runtimes, device, arenas_of_framework=is_framework)
        model.manifest = None
        model.ir_text = ""
        model._path = None
        model._open_constants()
        model.set_constants(constants or {})
        model._changed = False
        return model

    sorted_graph: Callable[[], list[Any]] | None = None
    """What `debug_sorted_graph` calls; set by `compile_model`."""

    @property
    def debug_sorted_graph(self) -> list[Any]:
        """The graph of the model in the documented operators, as tensors, each after those that it depends on.

        For tests of models. The model does not keep the tensors that it was compiled from: raises `RunError` when they
        are gone, and for a model that was loaded from a file.
        """
        if self.sorted_graph is None:
            raise RunError("only a model that compile_model returned has the graph that it was compiled from")
        return self.sorted_graph()

    @classmethod
    def from_bytes(cls, content: bytes, num_runtimes: int = 1, *, device: int | None = None) -> Self:
        """A model from the content of an artifact, which is checked like a file."""
        try:
            content = bytes(memoryview(content))
        except TypeError:
            raise InputError(
                f"the content of an artifact is a {type(content).__name__}, expected bytes: Model(PATH) loads a file"
            ) from None
        with tempfile.NamedTemporaryFile(suffix=".ait") as file:
            file.write(content)
            file.flush()
            model = cls(file.name, num_runtimes, device=device, pickle_by="bytes")
        model._path, model._content = None, content
        return model

    def __reduce__(self) -> tuple[Any, ...]:
        if self._changed and (self._path is not None or self._content is not None):
            raise InputError(
                f"constants of model {self.name} were set since it was loaded, and a copy or pickle would have those "
                "of its artifact: load the artifact again and set them there, or compile the model with these values"
            )
        options = (self.num_runtimes, self._given_device)
        if self._path is not None and self._pickle_by == "path":
            return _from_path, (type(self), str(self._path), *options)
        content = self._content if self._path is None else self._path.read_bytes()
        if content is None:
            raise InputError(f"model {self.name} has no artifact, so it cannot be pickled: load it from one")
        return _from_bytes, (type(self), content, *options)

    def close(self) -> None:
        """Free the model. Further calls raise `RunError`; closing twice is fine."""
        self._run = self._run_whole = self._run_and_return = self._module = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
