"""`quantize`: a PyTorch model with weights in few bits, and a report of what that changes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.driver import compile_module
from ait_mlir.errors import InputError
from ait_mlir.importers.checkpoints.stored import Array
from ait_mlir.importers.quantized.layers import layers_of, quantise_layers, with_outputs, without_outputs
from ait_mlir.importers.quantized.recipes import Recipe, recipe_named
from ait_mlir.importers.quantized.report import LayerReport, Report, divergence, relative_error
from ait_mlir.importers.torch.compiled import CompiledModule, build, from_torch
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.program import Imported
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model
from ait_mlir.runtime.data import to_numpy


@dataclass(frozen=True)
class Quantized:
    """A quantised model."""

    imported: Imported
    """The module, whose weights are stored numbers, and the arrays of its params."""
    report: Report

    def compile(self, target: str = "cpu", **settings: Any) -> CompiledModule:
        """The compiled model, which is called like the original one; `settings` are those of `CompileOptions`."""
        return build(self.imported, CompileOptions(target, **settings))


def quantize(
    model: Any,
    examples: Sequence[Any],
    recipe: str = "w8a16",
    *,
    leave_out: Sequence[str] = (),
    dynamic_shapes: Any = None,
    name: str | None = None,
) -> Quantized:
    """A PyTorch module with the weights of its linear layers in few bits, and the report of the change.

    `examples` are calls of the model: each is a tuple of positional arguments. The model is exported on the first, with
    `dynamic_shapes` as in `torch.export.export`; all are run on the CPU, with the model and with the quantised one.
    `recipe` is w8a8, w8a16 or w4a16 (`RECIPES`). Layers whose names match one of the patterns `leave_out` stay as they
    are. Raises `InputError` without examples, for an unknown recipe, for a pattern without a layer, for a model without
    linear layers, and for weights that are not finite.
    """
    chosen, calls = recipe_named(recipe), _calls(examples)
    imported = from_torch(model, calls[0], dynamic_shapes=dynamic_shapes, name=name)
    return quantize_imported(imported, [(call, {}) for call in calls], chosen, leave_out)


def quantize_imported(
    imported: Imported,
    calls: Sequence[tuple[Sequence[Any], Mapping[str, Any]]],
    recipe: Recipe,
    leave_out: Sequence[str] = (),
) -> Quantized:
    """As `quantize`, for an imported model; calls are positional and keyword arguments."""
    exact, constants = imported.module.clone(), dict(imported.constants)
    every, layers = layers_of(exact), layers_of(exact, leave_out)
    if not layers:
        raise InputError("the model has no linear layer to quantise" + (" that is not left out" if every else ""))
    names = with_outputs(exact, layers)
    module = exact.clone()
    weights = quantise_layers(layers_of(module, leave_out), constants, recipe)
    before = _run(imported, exact, imported.constants, calls)
    after = _run(imported, module, constants, calls)
    without_outputs(module, names)

    def results(runs: Sequence[Mapping[str, Array]], wanted: Sequence[str]) -> list[Array]:
        return [run[n] for run in runs for n in wanted]

    kinds = [value for kind, value in imported.outputs if kind == "output"]
    kl, top1 = divergence(results(after, kinds[:1]), results(before, kinds[:1]))
    rows = tuple(
        LayerReport(
            layer.name,
            weights[layer.name][0].shape,
            imported.constants[layer.weight].nbytes,
            weights[layer.name][0].nbytes,
            weights[layer.name][1],
            relative_error(results(after, names[layer.name]), results(before, names[layer.name])),
        )
        for layer in layers
    )
    report = Report(
        recipe.name,
        rows,
        tuple(layer.name for layer in every if layer.name not in weights),
        sum(array.nbytes for array in imported.constants.values()),
        sum(array.nbytes for array in constants.values()),
        relative_error(results(after, kinds), results(before, kinds)),
        kl,
        top1,
    )
    return Quantized(replace(imported, module=module, constants=constants), report)


def _calls(examples: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The examples as tuples of arguments."""
    calls: list[tuple[Any, ...]] = []
    for call in examples:
        if not isinstance(call, tuple | list):
            raise InputError(f"an example is a {type(call).__name__}, expected a tuple of the arguments of a call")
        calls.append(tuple(cast("Sequence[Any]", call)))
    if not calls:
        raise InputError("quantising needs examples: calls of the model, as tuples of its arguments; got none")
    return calls


def _run(
    imported: Imported,
    module: ModuleOp,
    constants: Mapping[str, Array],
    calls: Sequence[tuple[Sequence[Any], Mapping[str, Any]]],
) -> list[dict[str, Array]]:
    """The outputs of a module in each call, on the CPU."""
    with tempfile.TemporaryDirectory(prefix="ait_") as folder:
        file = Path(folder) / "model.ait"
        compile_module(module.clone(), CompileOptions("cpu"), output=file, constants=constants)
        with Model(file, verify_weights=False) as model:
            runs: list[dict[str, Array]] = []
            for args, kwargs in calls:
                leaves = torch.utils._pytree.tree_flatten((tuple(args), dict(kwargs)))[0]
                given = {item.name: to_numpy(leaves[item.leaf]) for item in imported.inputs.tensors}
                given |= {n: to_numpy(value).copy() for n, value in imported.state.items()}
                found = model.run_with_tensors(given)
                runs.append({n: np.array(to_numpy(value), copy=True) for n, value in found.items()})
    return runs
