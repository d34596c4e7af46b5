"""The backend interface of `onnx`: tools that take an `onnx.backend.base.Backend` run models with this compiler.

```python
import onnx
from ait_mlir.importers.onnx import backend

outputs = backend.prepare(onnx.load("model.onnx"), "CPU").run([x])
```
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np

from ait_mlir.errors import InputError
from ait_mlir.importers.onnx.compiled import build
from ait_mlir.importers.onnx.errors import UnsupportedOps
from ait_mlir.importers.onnx.forms import form_of, is_tensor
from ait_mlir.importers.onnx.library import onnx
from ait_mlir.importers.onnx.program import Imported, import_model
from ait_mlir.runtime.from_host import run_on_host

base: Any = import_module("onnx.backend.base")

Runner = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Runs an imported model on inputs by name; returns the outputs of its module by name."""

TARGETS = {"CPU": "cpu", "CUDA": "cuda"}


def compiled(imported: Imported, target: str) -> Runner:
    """Runs a model compiled for a target. Inputs are NumPy arrays, which are copied to a card and back, or tensors on
    the device of the model."""
    from ait_mlir.options import CompileOptions

    model = build(imported, CompileOptions(target)).model

    def run(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        if not all(isinstance(value, np.ndarray | np.generic) for value in inputs.values()):
            return model.run_with_tensors(inputs)
        return run_on_host(model, {name: np.asarray(value) for name, value in inputs.items()})

    return run


class Rep(base.BackendRep):
    """A prepared model. If values of inputs decide shapes, it is compiled once for each of these values."""

    def __init__(
        self, model: Any, target: str, make: Callable[[Imported, str], Runner] = compiled, title: str = "model"
    ) -> None:
        self._model, self._target, self._make, self._title = model, target, make, title
        initialized = {t.name for t in model.graph.initializer}
        self.inputs = [i.name for i in model.graph.input if i.name not in initialized]
        self._types = {i.name: i.type for i in model.graph.input}
        self.needed: set[str] = set()
        """The inputs that decide shapes."""
        self._made: dict[Any, tuple[Imported, Runner]] = {}
        self._nested = [i.name for i in model.graph.input if not is_tensor(i.type)]
        """The inputs that are sequences or optionals; the model is compiled for each of their forms."""
        try:
            if not self._nested:
                self._made[()] = self._built({}, {})
        except UnsupportedOps as error:
            if not error.needed:
                raise
            self.needed.update(error.needed)

    def _built(self, values: Mapping[str, Any], forms: Mapping[str, Any]) -> tuple[Imported, Runner]:
        imported = import_model(self._model, self._title, values=values, forms=forms)
        return imported, self._make(imported, self._target)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs in the order of the model, of inputs in its order or by name."""
        given = self._named(inputs)
        forms = {name: given[name] for name in self._nested}
        shapes = repr([(name, form_of(name, self._types[name], value)) for name, value in forms.items()])
        while True:
            values = {name: np.asarray(given[name]) for name in sorted(self.needed)}
            fixed = tuple((name, v.shape, v.dtype.str, v.tobytes()) for name, v in values.items())
            key = (*fixed, shapes) if forms else fixed
            try:
                if key not in self._made:
                    self._made[key] = self._built(values, forms)
                break
            except UnsupportedOps as error:
                if not set(error.needed) - self.needed:
                    raise
                self.needed.update(error.needed)
        imported, runner = self._made[key]
        found = imported.named(runner(imported.tensors({name: given[name] for name in imported.inputs})))
        return tuple(found[item.name] for item in self._model.graph.output)

    def _named(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, Mapping):
            given = dict(cast("Mapping[str, Any]", inputs))
        else:
            listed: Sequence[Any] = cast("Sequence[Any]", inputs if isinstance(inputs, list | tuple) else [inputs])
            if len(listed) != len(self.inputs):
                raise InputError(f"the model has {len(self.inputs)} inputs, got {len(listed)}")
            given = dict(zip(self.inputs, listed, strict=True))
        if missing := [name for name in self.inputs if name not in given]:
            raise InputError(f"no value for input {missing[0]!r}")
        return given


class AitBackend(base.Backend):
    """Compiles models for the CPU, or for CUDA where this machine has a card."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Rep:
        """The model, imported and, unless values of its inputs decide shapes, compiled."""
        return Rep(model, cls._target(device))

    @classmethod
    def run_node(
        cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """The results of one node on arrays."""
        arrays = [np.asarray(x) for x in inputs]
        names = [n for n in node.input if n]
        helper = onnx.helper
        values = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in zip(names, arrays, strict=True)
        ]
        results = [helper.make_empty_tensor_value_info(n) for n in node.output if n]
        opsets = [helper.make_opsetid(node.domain, kwargs.get("opset_version", onnx.defs.onnx_opset_version()))]
        model = helper.make_model(helper.make_graph([node], "node", values, results), opset_imports=opsets)
        return Rep(onnx.shape_inference.infer_shapes(model), cls._target(device)).run(arrays)

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model can be imported, maybe for given values of some inputs."""
        try:
            import_model(model)
        except UnsupportedOps as error:
            return bool(error.needed)
        except Exception:
            return False
        return True

    @classmethod
    def supports_device(cls, device: str) -> bool:
        kind = device.partition(":")[0]
        if kind == "CUDA":
            from ait_mlir.lowering.toolchain import detect_cuda_arch

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return bool(detect_cuda_arch())
        return kind == "CPU"

    @classmethod
    def _target(cls, device: str) -> str:
        kind = device.partition(":")[0]
        if kind not in TARGETS:
            raise InputError(f"device {device!r} is not supported; expected one of {', '.join(TARGETS)}")
        return TARGETS[kind]


prepare = AitBackend.prepare
run_node = AitBackend.run_node
run_model = AitBackend.run_model
supports_device = AitBackend.supports_device
is_compatible = AitBackend.is_compatible

__all__ = ["AitBackend", "Rep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]
