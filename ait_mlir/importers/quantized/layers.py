"""The layers of an imported model whose weights can be quantised, and their quantised form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from xdsl.dialects.builtin import ModuleOp, i8
from xdsl.ir import SSAValue

from ait_mlir.compositions.quantize import dequantize, dynamic_scale, quantize
from ait_mlir.dialects.ait.data import GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.gemm import GemmOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.errors import InputError
from ait_mlir.importers.checkpoints.params import WriterBefore
from ait_mlir.importers.checkpoints.stored import Array, StoredWeight
from ait_mlir.importers.quantized.recipes import Recipe

TYPES = ("float16", "bfloat16", "float32")


@dataclass(frozen=True)
class Layer:
    """A weight of a model, and the products with it."""

    name: str
    """The name of the weight without `.weight`."""
    param: ParamOp
    products: tuple[GemmOp, ...]

    @property
    def weight(self) -> str:
        """The name of the param."""
        return self.param.param_name.data


def layers_of(module: ModuleOp, leave_out: Sequence[str] = ()) -> list[Layer]:
    """The weights that only products by rows or by columns read, in the order of the model.

    Layers whose names match one of the patterns `leave_out` are missing. Raises `InputError` for a pattern that no
    layer matches.
    """
    graph = next(op for op in module.ops if isinstance(op, GraphOp))
    found: list[Layer] = []
    for param in graph.params():
        products = [use.operation for use in param.output.uses if use.index == 1]
        plain = [
            p for p in products if isinstance(p, GemmOp) and p.layout.data in ("rcr", "rrr") and not p.epilogue.blocks
        ]
        t = tensor_type(param.output)
        if plain and len(plain) == len(list(param.output.uses)) and BY_IR[t.element_type].name in TYPES:
            name = param.param_name.data
            found.append(Layer(name.removesuffix(".weight"), param, tuple(plain)))
    for pattern in leave_out:
        if not any(fnmatchcase(layer.name, pattern) for layer in found):
            names = ", ".join(layer.name for layer in found[:8]) or "none"
            raise InputError(f"no layer matches {pattern!r}, which is to be left out; the layers are {names}")
    return [layer for layer in found if not any(fnmatchcase(layer.name, pattern) for pattern in leave_out)]


def with_outputs(module: ModuleOp, layers: Sequence[Layer]) -> dict[str, list[str]]:
    """Make the results of layers outputs of the module; returns the names of the outputs by the name of the layer."""
    graph = next(op for op in module.ops if isinstance(op, GraphOp))
    names: dict[str, list[str]] = {}
    for layer in layers:
        names[layer.name] = [f"layer {layer.name} {i}" for i in range(len(layer.products))]
        for name, product in zip(names[layer.name], layer.products, strict=True):
            graph.block.add_op(OutputOp(name, product.output))
    return names


def without_outputs(module: ModuleOp, names: Mapping[str, Sequence[str]]) -> None:
    """Undo `with_outputs`."""
    graph = next(op for op in module.ops if isinstance(op, GraphOp))
    added = {name for own in names.values() for name in own}
    for op in list(graph.block.ops):
        if isinstance(op, OutputOp) and op.output_name.data in added:
            op.detach()
            op.erase()


def quantise_layers(
    layers: Sequence[Layer], constants: dict[str, Array], recipe: Recipe
) -> Mapping[str, tuple[StoredWeight, float]]:
    """Let the products of layers read quantised weights; returns the weights, and their relative error, by layer.

    `constants` get the stored arrays in place of the weights.
    """
    done: dict[str, tuple[StoredWeight, float]] = {}
    rows: dict[SSAValue, SSAValue] = {}
    for layer in layers:
        by_rows = layer.products[0].layout.data == "rcr"
        whole = constants.pop(layer.weight)
        whole = whole if by_rows else np.ascontiguousarray(whole.T)
        if not np.isfinite(whole.astype(np.float32)).all():
            raise InputError(f"the weight {layer.weight!r} has numbers that are not finite, which no scale fits")
        stored = recipe.store(whole)
        element = tensor_type(layer.param.output).element_type
        value = stored.write(WriterBefore(layer.param), layer.weight, element)
        constants.update(stored.parts(layer.weight))
        for product in layer.products:
            w, x = WriterBefore(product), product.a
            if recipe.quantises_rows:
                if x not in rows:
                    scale = dynamic_scale(w, x, i8, [*(1 for _ in tensor_type(x).dims[:-1]), None])
                    rows[x] = dequantize(w, quantize(w, x, scale, i8), scale, tensor_type(x).element_type)
                x = rows[x]
            product.output.replace_all_uses_with(w.put(GemmOp("rcr", x, value)))
            product.detach()
            product.erase()
        layer.param.detach()
        layer.param.erase()
        error = np.linalg.norm(stored.values().astype(np.float32) - whole) / max(float(np.linalg.norm(whole)), 1e-30)
        done[layer.name] = stored, float(error)
    return done
