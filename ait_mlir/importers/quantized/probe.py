"""A float model in which each layer can be quantised by itself, without compiling again."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Block, SSAValue

from ait_mlir.building.writer import Writer
from ait_mlir.compositions.quantize import rounded
from ait_mlir.dialects.ait.data import OutputOp
from ait_mlir.dialects.ait.dtypes import BY_NAME
from ait_mlir.dialects.ait.types import TensorType, as_shape, tensor_type
from ait_mlir.dims import product
from ait_mlir.driver import compile_module
from ait_mlir.errors import InputError
from ait_mlir.importers.checkpoints.params import WriterBefore
from ait_mlir.importers.checkpoints.stored import Array
from ait_mlir.importers.quantized.layers import (
    Attended,
    Layer,
    Range,
    attentions_of,
    element_of_range,
    graph_in,
    layers_of,
    needs_range,
    remove_unused,
)
from ait_mlir.importers.quantized.recipes import Recipe
from ait_mlir.importers.torch.library import torch
from ait_mlir.importers.torch.program import Imported
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model
from ait_mlir.runtime.data import to_numpy

Call = tuple[Sequence[Any], Mapping[str, Any]]
"""Positional and keyword arguments."""
Outputs = list[dict[str, Array]]
"""The outputs of each call, by name."""
NUMBER = TensorType.get(as_shape([1]), f32)


def inputs_of(imported: Imported, call: Call) -> dict[str, Any]:
    """The inputs of an imported model by name, with the values of its state."""
    args, kwargs = call
    leaves = torch.utils._pytree.tree_flatten((tuple(args), dict(kwargs)))[0]
    given = {item.name: to_numpy(leaves[item.leaf]) for item in imported.inputs.tensors}
    return given | {n: to_numpy(value).copy() for n, value in imported.state.items()}


def run_calls(model: Model, imported: Imported, calls: Sequence[Call]) -> Outputs:
    """The outputs of the imported model, or of a changed one, in each call."""
    runs: Outputs = []
    for call in calls:
        found = model.run_with_tensors(inputs_of(imported, call))
        runs.append({n: np.array(to_numpy(value), copy=True) for n, value in found.items()})
    return runs


class Probe:
    """A model whose layers read their exact or their rounded operands, as each run says; layers' results are outputs.

    A layer that is on reads the values of its quantised weight, and the other factor as the recipe rounds it: the
    arithmetic of the quantised model, in floats. Use it in a `with` block.
    """

    def __init__(
        self, imported: Imported, module: ModuleOp, recipe: Recipe, leave_out: Sequence[str], calls: Sequence[Call]
    ) -> None:
        self._imported, self._recipe, self.calls = imported, recipe, calls
        module, constants = module.clone(), dict(imported.constants)
        layers = layers_of(module, recipe, leave_out)
        self.exact = {layer.name: layer.whole(constants) for layer in layers}
        """The weights, as their readers read them."""
        self.stored = {layer.name: recipe.store(layer.rows(self.exact[layer.name])) for layer in layers}
        self.rounded = {layer.name: layer.of_rows(self.stored[layer.name].values()) for layer in layers}
        self.shapes = {layer.name: layer.stored_shape for layer in layers}
        """The shapes of the weights, with a row for each column of the result."""
        self._elements = {
            layer.name: element_of_range(layer, recipe) for layer in layers if needs_range(layer, recipe)
        }
        self.results = {layer.name: [f"layer {layer.name} {i}" for i in range(len(layer.readers))] for layer in layers}
        """The names of the outputs with the results of a layer, by its name."""
        attentions = attentions_of(module, recipe, leave_out)
        self.attentions = {at.name: at.shape for at in attentions}
        """The attentions whose q, k and v are rounded: heads, and columns of a head."""
        self._elements |= {name: BY_NAME[recipe.element].ir for name in self.attentions}
        self.results |= {at.name: [f"layer {at.name} 0"] for at in attentions}
        for layer in layers:
            self._switch(module, layer)
        for at in attentions:
            self._switch_attention(module, at)
        remove_unused(module, constants)
        self._folder = tempfile.TemporaryDirectory(prefix="ait_")
        file = Path(self._folder.name) / "model.ait"
        compile_module(module, CompileOptions("cpu"), output=file)
        self._model = Model(file, verify_weights=False)
        self.names = [*self.exact, *self.attentions]
        """What can be quantised: the layers and the attentions."""
        off = {f"switch {name}": np.zeros(1, np.float32) for name in self.names}
        scales = {f"scale {name}": np.ones(1, np.float32) for name in self._elements}
        weights = {f"weight {name}": array for name, array in self.exact.items()}
        self._known = set(self._model.get_constant_names(unbound_constants_only=False))
        self._on: frozenset[str] = frozenset()
        self._set({**constants, **weights, **off, **scales})
        self.outputs = run_calls(self._model, imported, calls)
        """What the float model gives."""
        self.ranges = {name: self._range(name) for name in self._elements}
        """The scales of the other factors, by layer."""
        self._set({f"scale {name}": np.array([r.scale], np.float32) for name, r in self.ranges.items()})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._model.close()
        self._folder.cleanup()

    def run(self, on: Collection[str]) -> Outputs:
        """The outputs with these layers quantised, by name, and the others exact."""
        turned = self._on ^ frozenset(on)
        weights = [name for name in turned if name in self.exact]
        values = {f"weight {name}": (self.rounded if name in on else self.exact)[name] for name in weights}
        self._set({**values, **{f"switch {name}": np.array([name in on], np.float32) for name in turned}})
        self._on = frozenset(on)
        return run_calls(self._model, self._imported, self.calls)

    def _set(self, values: Mapping[str, Array]) -> None:
        self._model.set_constants({name: value for name, value in values.items() if name in self._known})

    def _switch(self, module: ModuleOp, layer: Layer) -> None:
        """Let a layer read a weight that is set, and the chosen other factor where the recipe rounds it."""
        name, block = layer.name, graph_in(module).block
        assert block.first_op is not None
        start = WriterBefore(block.first_op)
        weight = start.param(f"weight {name}", tensor_type(layer.value))
        for i, reader in enumerate(layer.readers):
            w, x = WriterBefore(reader), reader.operands[0]
            activations = self._recipe.activations
            if activations is not None and name in self._elements:
                reader.operands[0] = self._in_range(name, i, start, w, block, x)
            elif activations is not None:
                on = w.compare("gt", start.param(f"switch {name}", NUMBER), 0.5)
                reader.operands[0] = w.where(on, activations.rounded(w, x), x)
            reader.operands[1] = weight
            block.add_op(OutputOp(self.results[name][i], reader.results[0]))

    def _switch_attention(self, module: ModuleOp, at: Attended) -> None:
        """Let an attention read its exact or its rounded q, k and v."""
        block = graph_in(module).block
        assert block.first_op is not None
        start, w = WriterBefore(block.first_op), WriterBefore(at.op)
        for i in range(3):
            at.op.operands[i] = self._in_range(at.name, i, start, w, block, at.op.operands[i])
        block.add_op(OutputOp(self.results[at.name][0], at.op.output))

    def _in_range(self, name: str, i: int, start: Writer, w: Writer, block: Block, x: SSAValue) -> SSAValue:
        """The exact or the rounded x, as a run says; its largest magnitude is output `i` of the ranges of a layer."""
        on = w.compare("gt", start.param(f"switch {name}", NUMBER), 0.5)
        flat = w.reshape(w.pointwise("abs", w.cast(x, f32)), [product(tensor_type(x).dims)])
        block.add_op(OutputOp(f"range {name} {i}", w.reduce("max", flat, [0], keep=True)))
        near = rounded(w, x, self._elements[name], scale=start.param(f"scale {name}", NUMBER))
        return w.where(on, near, x)

    def _range(self, name: str) -> Range:
        """The scale of what a layer multiplies with its weight, or of q, k and v, from the largest magnitude in the
        examples."""
        keys = [f"range {name} {i}" for i in range(3 if name in self.attentions else len(self.results[name]))]
        found = [run[key] for run in self.outputs for key in keys]
        most = float(max(array.max(initial=-np.inf) for array in found))
        if not np.isfinite(most):
            what = "no elements" if most < 0 else "a number that is not finite"
            raise InputError(f"the examples give layer {name!r} {what}, so no scale can be found for it")
        return Range.of(self._elements[name], most)
