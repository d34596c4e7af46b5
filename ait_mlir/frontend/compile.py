"""`compile_model`: from tensors to a loaded model."""

from __future__ import annotations

import functools
import math
import re
import weakref
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from ait_mlir import callers, hooks
from ait_mlir.dialects.ait.data import GraphOp, ParamOp
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.errors import RunError
from ait_mlir.frontend.compile_options import (
    AITDebugSettings,
    cards_of,
    check_debug_settings,
    force_profiler_cache,
    points_of,
    streams_of_environment,
    waves_of_environment,
)
from ait_mlir.frontend.constant_data import check_data
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.graph import bound_data, build_module
from ait_mlir.frontend.target import Target, as_target
from ait_mlir.frontend.tensor import Tensor, normalize_dtype
from ait_mlir.frontend.wiring import toposort
from ait_mlir.host.card import read_memory
from ait_mlir.host.settings import MEASURE_DEVICES
from ait_mlir.runtime.data import AITData, as_address, as_whole, is_torch, to_numpy
from ait_mlir.runtime.frameworks import is_jax

if TYPE_CHECKING:
    from ait_mlir.options import Measure
    from ait_mlir.runtime import AITemplateAllocatorKind, Model

_NOT_IN_FILES = re.compile(r"[^A-Za-z0-9_.-]")


def compile_model(
    tensor: Tensor | Sequence[Tensor],
    target: Target | str,
    workdir: str | Path = "./tmp",
    name: str | None = None,
    profile_devs: Sequence[int] | None = None,
    dynamic_profiling_strategy: object = None,
    dll_name: str | None = None,
    num_runtimes: int = 1,
    profile_dir: str | Path | None = None,
    constants: Mapping[str, Any] | None = None,
    allocator_kind: AITemplateAllocatorKind | None = None,
    debug_settings: AITDebugSettings | None = None,
    do_optimize_graph: bool = True,
    profile_timeout: float | None = None,
    *,
    test_name: str | None = None,
    do_constant_folding: bool | Literal["load"] = True,
    measure: Measure = "auto",
    budget: float | None = None,
    precision: str = "highest",
    streams: int | None = None,
    cluster: str = "",
) -> Model:
    """Compile the model that computes `tensor` and load it.

    The artifact is `WORKDIR/NAME.ait`; its sources and IR are in `WORKDIR/NAME/`. In the name, characters that some
    file systems do not allow become "_". `constants` are the weights' data by name: NumPy arrays, torch tensors, JAX
    arrays or `AITData` of the weights' shape and dtype. Weights without data must be set on the model before it runs.

    `measure`, `budget`, `precision`, `streams` and `cluster` are explained in `CompileOptions`;
    `do_constant_folding` is its `fold`. Where `streams` is None, `AIT_MULTISTREAM_MODE` decides: 0 for one stream, 1
    for one and `AIT_MULTISTREAM_EXTRA_STREAMS` (4) more, on which launches run in waves of at most
    `AIT_MULTISTREAM_MAX_MEM_PARALLEL_OPS`. Where `AIT_FORCE_PROFILER_CACHE` is 1, `measure` is "known".
    `do_optimize_graph=False` leaves out all fusions and simplifications.

    The other arguments are AITemplate's. `name` is also called `test_name`. `profile_devs` are numbers of cards of one
    kind, which time kernels at the same time; `profile_timeout` is another name of `budget`; `profile_dir` has no
    meaning, as times and kernels are in the cache. `dynamic_profiling_strategy` says at which sizes of dynamic dims
    kernels are chosen: their hints (the default), MIN or MAX. With `dll_name` the artifact is `WORKDIR/NAME/DLL_NAME`.
    `allocator_kind`: see `AITemplateAllocatorKind`. `debug_settings`: see `AITDebugSettings`. Operators of the model
    without a name get one in `_attrs["name"]`.

    Raises `BuildError` for an invalid model or argument, a constant whose name is nearly a weight's, and data of
    another shape or dtype. Other constants without a weight are left out with a warning.
    """
    name = _one_name(name, test_name)
    check_debug_settings(debug_settings)
    debug = debug_settings or AITDebugSettings()
    library = None if dll_name is None else file_name(dll_name)
    points, cards = points_of(dynamic_profiling_strategy), cards_of(profile_devs)
    chosen = as_target(target)
    if not hasattr(tensor, "__iter__") and not isinstance(tensor, Tensor):
        raise BuildError(f"a model is made of a tensor or a list of tensors; found {tensor!r}")
    outputs = [tensor] if isinstance(tensor, Tensor) else list(tensor)
    module = build_module(tensor, name)
    if constants and not hasattr(constants, "items"):
        raise BuildError(f"constants are data by the name of their weights; found {constants!r}")
    data = bind_constants(module, bound_data(tensor), constants or {})
    # imported here, because building a model needs neither the compiler nor the runtime
    from ait_mlir.driver import compile_module
    from ait_mlir.options import CompileOptions
    from ait_mlir.passes.pipelines import OPTIMIZATIONS
    from ait_mlir.runtime import Model

    options = CompileOptions(
        chosen.kind,
        chosen.arch,
        measure="known" if force_profiler_cache() else measure,
        budget=profile_timeout if budget is None else budget,
        precision=precision,
        streams=streams_of_environment() if streams is None else streams,
        waves=waves_of_environment() if streams is None else 0,
        points=points,
        fold=do_constant_folding,
        without=() if do_optimize_graph else OPTIMIZATIONS,
        inspected=debug.check_all_nan_and_inf or debug.check_all_outputs,
        cluster=cluster,
    )
    folder = Path(workdir) / name
    folder.mkdir(parents=True, exist_ok=True)
    output = folder.with_name(f"{name}.ait") if library is None else folder / library
    before = MEASURE_DEVICES.set(cards)
    try:
        artifact = compile_module(module, options, output=output, constants=data, name=name, workdir=folder)
    finally:
        MEASURE_DEVICES.reset(before)
    name_operators(outputs)
    # this process has just written the file: its weights need no second hash
    model = Model(artifact, num_runtimes, allocator_kind, verify_weights=False)
    model.reports_nan_and_inf, model.reports_all_outputs = debug.check_all_nan_and_inf, debug.check_all_outputs
    model.sorted_graph = functools.partial(
        sorted_graph, [weakref.ref(t) for t in outputs], do_optimize_graph, do_constant_folding is not False
    )
    return model


def name_operators(outputs: Sequence[Tensor]) -> None:
    """Give the operators of a compiled model that have no name one: `gemm_rcr_0`, `layernorm_1`."""
    operators = list(dict.fromkeys(op for tensor in toposort(outputs) for op in tensor.src_ops()))
    for i, operator in enumerate(operators):
        if operator.attrs["name"] is None:
            operator.attrs["name"] = f"{operator.attrs['op']}_{i}"


def _one_name(name: str | None, test_name: str | None) -> str:
    found = name if test_name is None else test_name
    if found is None or (name is not None and test_name is not None):
        raise BuildError("compile_model has one name, as name or as test_name")
    return file_name(found)


def safe_compile_model(*args: Any, **kwargs: Any) -> Model:
    """The same as `compile_model`. AITemplate's function gives each test its own directory; here compilations in one
    directory do not disturb each other."""
    return compile_model(*args, **kwargs)


def file_name(name: object) -> str:
    """`name` as a file name: other characters than letters, digits, "_", "-" and "." become "_"."""
    if not isinstance(name, str):
        raise BuildError(f"the name of a file is a string; found {name!r}")
    found = _NOT_IN_FILES.sub("_", name)
    if "/" in name or not found or found.endswith((".", "-")):
        raise BuildError(f'"{name}" cannot name a file; use letters, digits, "_", "-" and "."')
    return found


def sorted_graph(outputs: Sequence[weakref.ref[Tensor]], optimize: bool, fold: bool) -> list[Tensor]:
    """The sorted tensors of the graph that computes `outputs`, in the documented operators.

    Raises `RunError` if the tensors are gone.
    """
    tensors = [tensor for ref in outputs if (tensor := ref()) is not None]
    if len(tensors) < len(outputs):
        raise RunError("the tensors that the model was compiled from are gone; keep its outputs to see its graph")
    return hooks.documented_graph(tensors, optimize, fold)


def bind_constants(
    module: ModuleOp, bound: Mapping[str, NDArray[Any]], constants: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    """The checked data of the weights of `module` that have data: bound before, or in `constants`, never both.

    Data without a weight of that name are left out with a warning, because a PyTorch state dict may have unused
    tensors.
    """
    params = {op.param_name.data: op for op in module.walk() if isinstance(op, ParamOp)}
    graphs = [op for op in module.walk() if isinstance(op, GraphOp)]
    inputs = {name for graph in graphs for name, _ in graph.inputs()}
    outputs = {output.output_name.data for graph in graphs for output in graph.outputs()}
    data = {name: value for name, value in bound.items() if name in params}
    for name, value in constants.items():
        if name in bound:
            raise BuildError(f"Tensor {name} is already bound! Leave it out of constants, or do not bind data to it")
        if name not in params:
            if name in inputs:
                raise BuildError(f"Cannot bind input tensor {name}: each run is given it; a weight has no is_input")
            if name in outputs:
                raise BuildError(f"Cannot bind non-constant tensor {name}: the model computes it")
            if close := get_close_matches(name, params, 1, 0.75):
                raise BuildError(f'the model has no weight "{name}"; did you mean "{close[0]}"?')
            callers.warn(f'the model has no weight "{name}"; it is left out')
            continue
        data[name] = as_array(value)
        check_data(f'the weight "{name}"', params[name].output.type, data[name])
    return data


def as_array(value: Any) -> NDArray[Any]:
    """A NumPy array, or a torch tensor, JAX array or `AITData` on any device, as a contiguous NumPy array."""
    if isinstance(value, AITData):
        return _copied(value)
    if not isinstance(value, np.ndarray) and not is_torch(value) and not is_jax(value):
        raise BuildError(
            f"constants are NumPy arrays, torch tensors, JAX arrays or AITData; found {type(value).__name__}"
        )
    array = to_numpy(value)
    return np.ascontiguousarray(array).reshape(array.shape)


def _copied(data: AITData) -> NDArray[Any]:
    """A copy of the memory that an `AITData` names, on a CUDA card or the host."""
    try:
        shape, dtype = [as_whole("an extent", n) for n in data.shape], numpy_dtype(normalize_dtype(data.dtype))
        memory = read_memory(as_address(data.data_ptr), math.prod(shape) * dtype.itemsize)
        return np.frombuffer(memory, dtype).reshape(shape)
    except (OverflowError, TypeError, ValueError) as error:
        raise BuildError(f"a constant is {data}, expected AITData(address, extents, dtype): {error}") from None
