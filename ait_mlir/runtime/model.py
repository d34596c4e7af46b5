"""`Model`: a compiled model that runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from ait_mlir.delegation import Delegation
from ait_mlir.errors import ArtifactError, InputError, RunError
from ait_mlir.lowering.toolchain import TargetKind, detect_cuda_arch
from ait_mlir.runtime import artifact
from ait_mlir.runtime.benchmark import Measurements
from ait_mlir.runtime.constants import ModelConstants
from ait_mlir.runtime.inspection import Inspection
from ait_mlir.runtime.kinds import AITemplateAllocatorKind
from ait_mlir.runtime.loading import runtime_library
from ait_mlir.runtime.manifest import Manifest
from ait_mlir.runtime.memory import DeviceMemory
from ait_mlir.runtime.on_host import HostOutputs
from ait_mlir.runtime.opened import OpenedLibrary, Tensors, as_runtimes
from ait_mlir.runtime.ranks import connect_library, own_device, rank_among, together
from ait_mlir.runtime.run_arguments import RunArguments
from ait_mlir.runtime.running import Runner
from ait_mlir.runtime.state import ModelState


def _from_path(cls: type[Model], path: str, num_runtimes: int, device: int | None) -> Model:
    return cls(path, num_runtimes, device=device)


def _from_bytes(cls: type[Model], content: bytes, num_runtimes: int, device: int | None) -> Model:
    return cls.from_bytes(content, num_runtimes, device=device)


_of = Delegation["Model"]().method


class Model:
    """A model loaded from an artifact.

    The constants of the artifact are copied to the device when the model is loaded; constants that it does not hold
    must be set with `set_constant` before the first run. `num_runtimes` runs, at most 4096, can execute at the same
    time; further runs wait. All methods may be called from several threads. The model stays usable after an error.
    `allocator_kind` says where the scratch memory of runs comes from.

    On a host with several GPUs a run is on the device of its tensors. The first run on a device copies the constants
    there, and each device has `num_runtimes` runtimes of its own. With `device`, the model uses that device alone and
    refuses tensors on others. `AITData` and memory that the model allocates are on `device`, by default the first one.

    Models of one file share the constants on a device, if `share_constants` is left True and the weights are verified;
    a model whose constants are set gets a copy of its own. The constants are freed with the last model. With
    `map_constants`, a model for the CPU also shares them with the other processes of this user on the machine: the
    first one writes a file in the cache, which all map. A warning tells that this cannot be done.

    A model can be pickled: by the path of its artifact, or, with `pickle_by="bytes"`, with the content of the file,
    for processes that do not see it. The copy is loaded with the constants of the artifact and the same arguments. A
    model whose constants were set cannot be pickled or copied.

    Raises `ArtifactError` when the artifact is damaged or not for this machine, `OutOfMemoryError`, `RunError` when
    the device is missing, `ToolchainError` when the runtime library has to be built and there is no C++ compiler.
    """

    _content: bytes | None = None
    rank: int = 0
    """The number of this process among those that run the model."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        num_runtimes: int = 1,
        allocator_kind: AITemplateAllocatorKind | None = None,
        *,
        device: int | None = None,
        verify_weights: bool = True,
        share_constants: bool = True,
        map_constants: bool = False,
        pickle_by: Literal["path", "bytes"] = "path",
    ) -> None:
        if allocator_kind is not None and not isinstance(allocator_kind, AITemplateAllocatorKind):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"allocator_kind is {allocator_kind!r}, expected an AITemplateAllocatorKind")
        if pickle_by not in ("path", "bytes"):
            raise InputError(f'pickle_by is {pickle_by!r}, expected "path" or "bytes"')
        as_runtimes(num_runtimes)  # a wrong number is refused before the file is read
        self._pickle_by = pickle_by
        loaded = artifact.read(path, verify_weights=verify_weights, defer_weights=True)
        self._path: Path | None = loaded.path.absolute()
        manifest = loaded.manifest
        if manifest.target not in ("cpu", "cuda", "rocm"):
            raise ArtifactError(f"{path} is for target '{manifest.target}', which this ait_mlir does not know")
        is_framework = allocator_kind is AITemplateAllocatorKind.FRAMEWORK
        is_shared = share_constants and verify_weights
        maps = map_constants and is_shared and manifest.target == "cpu"
        if manifest.ranks == 1:
            self._open(loaded, manifest.target, num_runtimes, device, is_framework, is_shared, maps)
            return
        loaded = replace(loaded, rank=rank_among(manifest.ranks, loaded.digest))
        with together(manifest.ranks, loaded.digest):
            if manifest.target != "cpu":
                device = own_device() if device is None else device
                connect_library(manifest.target)
            self._open(loaded, manifest.target, num_runtimes, device, is_framework, is_shared, maps)

    def _open(
        self,
        loaded: artifact.Artifact,
        target: TargetKind,
        num_runtimes: int,
        device: int | None,
        is_framework: bool,
        is_shared: bool,
        maps: bool,
    ) -> None:
        """Load code and constants of a rank."""
        manifest = loaded.manifest
        artifact.check_machine(manifest, lambda: detect_cuda_arch(device or 0))
        self.rank = loaded.rank
        if maps or (
            is_shared
            and runtime_library(target).has_constants(
                "cpu" if target == "cpu" else f"{target}:{device or 0}", loaded.constants_key
            )
        ):
            loaded.check_constants()
        else:
            _ = loaded.constants  # all of the file is checked before any of its code is loaded
        libraries = loaded.kernel_library_files()
        opened = OpenedLibrary(loaded.extract_library(), target, num_runtimes, device, libraries, is_framework)
        self._set_parts(opened, manifest, loaded.ir_text)
        self._constants.load(loaded, is_shared, maps)

    def _set_parts(self, library: OpenedLibrary, manifest: Manifest | None, ir_text: str) -> None:
        self.manifest = manifest
        """The description of the artifact; None for a model without one."""
        self.ir_text = ir_text
        self.name, self.target, self.num_runtimes = library.name, library.target, library.num_runtimes
        self.dims, self.state, self.device = library.dims, library.state, library.device
        self._library = library
        self._memory = DeviceMemory(library)
        self._state = ModelState(library, self._memory)
        self._constants = ModelConstants(library, self._memory, manifest)
        arguments = RunArguments(library, self._constants, self._state)
        self._inspection = Inspection(library, arguments)
        self._runner = Runner(library, self._constants, self._state, arguments, self._inspection)
        self._measurements = Measurements(library, self._state, arguments, self._runner)
        self._on_host = HostOutputs(library, self._memory, self._runner)
        self.run_torch = self._runner.run_torch

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
        opened = OpenedLibrary(Path(library), target, num_runtimes, device, arenas_of_framework=is_framework)
        model._path = None
        model._set_parts(opened, None, "")
        model.set_constants(constants or {})
        model._constants.changed = False
        return model

    sorted_graph: Callable[[], list[Any]] | None = None
    """The function that `debug_sorted_graph` calls; set by `compile_model`."""

    @property
    def debug_sorted_graph(self) -> list[Any]:
        """The sorted tensors of the model's graph in the documented operators.

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
        if self._constants.changed and (self._path is not None or self._content is not None):
            raise InputError(
                f"constants of model {self.name} were set since it was loaded, and a copy or pickle would have those "
                "of its artifact: load the artifact again and set them there, or compile the model with these values"
            )
        options = (self.num_runtimes, self._library.given_device)
        if self._path is not None and self._pickle_by == "path":
            return _from_path, (type(self), str(self._path), *options)
        content = self._content if self._path is None else self._path.read_bytes()
        if content is None:
            raise InputError(f"model {self.name} has no artifact, so it cannot be pickled: load it from one")
        return _from_bytes, (type(self), content, *options)

    def close(self) -> None:
        """Wait for the runs under way and free the model. Further calls raise `RunError`; closing twice is fine.

        Raises `RunError` if the device of its runs has failed, also by one that nobody waited for; the model is freed.
        """
        self._library.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except RunError:
            if error is None:  # else the error under way is the reason
                raise

    def run(
        self,
        inputs: Tensors,
        outputs: Tensors,
        stream_ptr: int | None = None,
        sync: bool = True,
        graph_mode: bool = False,
        *,
        workspace: Any = None,
    ) -> dict[str, Any]:
        """Run the model on `inputs`, into the buffers `outputs`; return the outputs by name with their actual shapes.

        A buffer may be larger than its output in any dim; the result is then its leading elements, as a view (for
        `AITData`, another `AITData`). Tensors may have any strides: those that kernels cannot use where they are, are
        copied on the device, in the same stream (`stats()["copies"]` counts them). `workspace` is scratch memory for
        the run instead of the model's own: a contiguous tensor of at least `arena_bytes(dims)` bytes, and of the copies
        beyond that, at a multiple of 256 bytes. No other run may use it at the same time.

        The run is launched on the stream with the address `stream_ptr` (stream 0 by default). With `sync` the call
        waits for it. Without `sync`, keep the tensors alive and unchanged until the stream is done. `graph_mode`
        launches the whole run as one CUDA graph: the first run with given dims and addresses launches kernels, the
        second one records the graph, later ones replay it. Of 16 graphs, the oldest of the same dims is updated for
        other addresses.

        The run is on the device of the tensors, unless the model was loaded for one `device`; a model that has not run
        on that device first copies its constants there. Tensors on several devices are refused.

        Raises `InputError` before anything is launched, `RunError` when the model fails, `OutOfMemoryError`.
        """
        return self._runner.run(inputs, outputs, stream_ptr, sync, graph_mode, workspace)

    def run_with_tensors(
        self,
        inputs: Tensors,
        outputs: Tensors | None = None,
        stream_ptr: int | None = None,
        sync: bool = True,
        graph_mode: bool = False,
    ) -> dict[str, Any]:
        """`run`, on the current stream of PyTorch or CuPy when the tensors are on a device and no stream is given.

        Without `outputs`, the call allocates them, in the framework of the inputs: PyTorch if one is a torch tensor,
        else CuPy, JAX, or NumPy. JAX arrays cannot be written, so they cannot be outputs; JAX has no streams to name,
        so the call waits for such inputs and for the run.
        """
        return self._runner.run_with_tensors(inputs, outputs, stream_ptr, sync, graph_mode)

    @property
    def reports_nan_and_inf(self) -> bool:
        """Whether each run reports, on stderr, the results of launches that have NaN or infinite values."""
        return self._inspection.of_nan_and_inf

    @reports_nan_and_inf.setter
    def reports_nan_and_inf(self, value: bool) -> None:
        self._inspection.report(value, self._inspection.of_all_outputs)

    @property
    def reports_all_outputs(self) -> bool:
        """Whether each run reports the results of all launches."""
        return self._inspection.of_all_outputs

    @reports_all_outputs.setter
    def reports_all_outputs(self, value: bool) -> None:
        self._inspection.report(self._inspection.of_nan_and_inf, value)

    def __repr__(self) -> str:
        return f"<Model {self._library.describe()}>"

    # ** the methods of the parts **

    devices = _of(lambda self: self._library, OpenedLibrary.devices)
    device_of = _of(lambda self: self._library, OpenedLibrary.device_of)
    get_num_runtimes = _of(lambda self: self._library, OpenedLibrary.get_num_runtimes)
    get_input_name_to_index_map = _of(lambda self: self._library, OpenedLibrary.get_input_name_to_index_map)
    get_output_name_to_index_map = _of(lambda self: self._library, OpenedLibrary.get_output_name_to_index_map)
    get_output_maximum_shape = _of(lambda self: self._library, OpenedLibrary.get_output_maximum_shape)
    get_output_dtype = _of(lambda self: self._library, OpenedLibrary.get_output_dtype)
    get_input_dtype = _of(lambda self: self._library, OpenedLibrary.get_input_dtype)
    input_shapes = _of(lambda self: self._library, OpenedLibrary.input_shapes)
    input_strides = _of(lambda self: self._library, OpenedLibrary.input_strides)
    output_shapes = _of(lambda self: self._library, OpenedLibrary.output_shapes)
    output_strides = _of(lambda self: self._library, OpenedLibrary.output_strides)
    arena_bytes = _of(lambda self: self._library, OpenedLibrary.arena_bytes)
    allocate_memory = _of(lambda self: self._memory, DeviceMemory.allocate_memory)
    free_memory = _of(lambda self: self._memory, DeviceMemory.free_memory)
    allocate_gpu_memory = _of(lambda self: self._memory, DeviceMemory.allocate_gpu_memory)
    free_gpu_memory = _of(lambda self: self._memory, DeviceMemory.free_gpu_memory)
    memcpy = _of(lambda self: self._memory, DeviceMemory.memcpy)
    allocate_data = _of(lambda self: self._memory, DeviceMemory.allocate_data)
    numpy_to_ait_data = _of(lambda self: self._memory, DeviceMemory.numpy_to_ait_data)
    ait_data_to_numpy = _of(lambda self: self._memory, DeviceMemory.ait_data_to_numpy)
    allocated_bytes = _of(lambda self: self._memory, DeviceMemory.allocated_bytes)
    set_state = _of(lambda self: self._state, ModelState.set_state)
    private_state = _of(lambda self: self._state, ModelState.private_state)
    get_constant_names = _of(lambda self: self._constants, ModelConstants.get_constant_names)
    get_constant_folding_input_names = _of(
        lambda self: self._constants, ModelConstants.get_constant_folding_input_names
    )
    constant_shape = _of(lambda self: self._constants, ModelConstants.constant_shape)
    constant_dtype = _of(lambda self: self._constants, ModelConstants.constant_dtype)
    set_constant = _of(lambda self: self._constants, ModelConstants.set_constant)
    set_constants = _of(lambda self: self._constants, ModelConstants.set_constants)
    set_double_buffer_constant = _of(lambda self: self._constants, ModelConstants.set_double_buffer_constant)
    set_many_double_buffer_constants = _of(
        lambda self: self._constants, ModelConstants.set_many_double_buffer_constants
    )
    map_double_buffer_constants = _of(lambda self: self._constants, ModelConstants.map_double_buffer_constants)
    swap_constants = _of(lambda self: self._constants, ModelConstants.swap_constants)
    fold_constants = _of(lambda self: self._constants, ModelConstants.fold_constants)
    infer_output_shapes = _of(lambda self: self._runner, Runner.infer_output_shapes)
    make_outputs = _of(lambda self: self._runner, Runner.make_outputs)
    synchronize = _of(lambda self: self._runner, Runner.synchronize)
    run_async = _of(lambda self: self._runner, Runner.run_async)
    stats = _of(lambda self: self._runner, Runner.stats)
    graph_stats = _of(lambda self: self._runner, Runner.graph_stats)
    inspect = _of(lambda self: self._inspection, Inspection.inspect)
    benchmark = _of(lambda self: self._measurements, Measurements.benchmark)
    benchmark_with_tensors = _of(lambda self: self._measurements, Measurements.benchmark_with_tensors)
    profile = _of(lambda self: self._measurements, Measurements.profile)
    profile_with_tensors = _of(lambda self: self._measurements, Measurements.profile_with_tensors)
    _run_with_outputs_on_host = _of(lambda self: self._on_host, HostOutputs.run)
    _run_with_tensors_outputs_on_host = _of(lambda self: self._on_host, HostOutputs.run_with_tensors)
    get_output_name_to_idx = get_output_name_to_index_map
    get_input_name_to_idx = get_input_name_to_index_map
    set_many_constants = set_constants
    set_constant_with_tensor = set_constant
    set_many_constants_with_tensors = set_constants
    set_double_buffer_constant_with_tensor = set_double_buffer_constant
    set_many_double_buffer_constants_with_tensors = set_many_double_buffer_constants
