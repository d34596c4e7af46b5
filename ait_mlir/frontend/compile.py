"""`compile_model`: from tensors to a loaded model."""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.data import ParamOp
from ait_mlir.errors import RunError
from ait_mlir.frontend.constant_data import check_data
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.graph import bound_data, build_module
from ait_mlir.frontend.target import Target, as_target
from ait_mlir.frontend.tensor import Tensor
from ait_mlir.frontend.wiring import toposort
from ait_mlir.runtime.data import is_torch, to_numpy

if TYPE_CHECKING:
    from ait_mlir.driver import Measure
    from ait_mlir.runtime import Model

_NOT_IN_FILES = re.compile(r"[^A-Za-z0-9_.-]")


def compile_model(
    tensor: Tensor | Sequence[Tensor],
    target: Target | str,
    workdir: str | Path,
    name: str,
    *,
    constants: Mapping[str, Any] | None = None,
    num_runtimes: int = 1,
    measure: Measure = "auto",
    budget: float | None = None,
) -> Model:
    """Compile the model that computes `tensor` and load it.

    The artifact is `WORKDIR/NAME.ait`; its sources and IR are in `WORKDIR/NAME/`. In the name, characters that some
    file systems do not allow become "_". `constants` are the weights' data by name: NumPy arrays or torch tensors of
    the weights' shape and dtype. Weights without data must be set on the model before it runs. With `measure` "auto",
    kernels are chosen by their times on the card, if there is one: those that are not known are measured within
    `budget` seconds (default: `AIT_MEASURE_BUDGET`, else 20), compiling included. With True all are measured; with
    False estimates decide.
    Raises `BuildError` for an invalid model, unknown constants, and data of another shape or dtype.
    """
    name = file_name(name)
    chosen = as_target(target)
    outputs = [tensor] if isinstance(tensor, Tensor) else list(tensor)
    module = build_module(tensor, name)
    data = bind_constants(module, bound_data(tensor), constants or {})
    # the compiler and the runtime are loaded once a model is compiled, not when one is written
    from ait_mlir.driver import compile_module
    from ait_mlir.runtime import Model

    directory = Path(workdir)
    directory.mkdir(parents=True, exist_ok=True)
    output = directory / f"{name}.ait"
    artifact = compile_module(
        module,
        chosen.kind,
        workdir=directory / name,
        name=name,
        constants=data,
        output=output,
        arch=chosen.arch,
        measure=measure,
        budget=budget,
    )
    # Written a moment ago by this process: its weights need no second hash.
    model = Model(artifact, num_runtimes=num_runtimes, verify_weights=False)
    model.sorted_graph = functools.partial(sorted_graph, [weakref.ref(t) for t in outputs])
    return model


def safe_compile_model(*args: Any, **kwargs: Any) -> Model:
    """`compile_model`. In AITemplate it gives each test a directory of its own; here compilations do not disturb one
    another in a directory."""
    return compile_model(*args, **kwargs)


def file_name(name: str) -> str:
    """`name` as a file name: other characters than letters, digits, "_", "-" and "." become "_"."""
    found = _NOT_IN_FILES.sub("_", name)
    if "/" in name or not found or found.endswith((".", "-")):
        raise BuildError(f'"{name}" cannot name a file; use letters, digits, "_", "-" and "."')
    return found


def sorted_graph(outputs: Sequence[weakref.ref[Tensor]]) -> list[Tensor]:
    """The tensors that these depend on; `RunError` if they are gone."""
    tensors = [tensor for ref in outputs if (tensor := ref()) is not None]
    if len(tensors) < len(outputs):
        raise RunError("the tensors that the model was compiled from are gone; keep its outputs to see its graph")
    return toposort(tensors)


def bind_constants(
    module: ModuleOp, bound: Mapping[str, NDArray[Any]], constants: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    """The checked data of the weights of `module` that have data; `constants` replace data bound before."""
    params = {op.param_name.data: op for op in module.walk() if isinstance(op, ParamOp)}
    data = dict(bound)
    for name, value in constants.items():
        if name not in params:
            close = get_close_matches(name, params, 1)
            hint = f'; did you mean "{close[0]}"?' if close else ""
            raise BuildError(f'the model has no weight "{name}"; it has {len(params)}{hint}')
        data[name] = as_array(value)
        check_data(f'the weight "{name}"', params[name].output.type, data[name])
    return data


def as_array(value: Any) -> NDArray[Any]:
    """A NumPy array, or a torch tensor on any device, as a contiguous NumPy array."""
    if not isinstance(value, np.ndarray) and not is_torch(value):
        raise BuildError(f"constants are NumPy arrays or torch tensors; found {type(value).__name__}")
    array = to_numpy(value)
    return np.ascontiguousarray(array).reshape(array.shape)
