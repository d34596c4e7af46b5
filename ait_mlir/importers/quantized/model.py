"""`quantize`: a PyTorch model with weights in few bits, and a report of what that changes."""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp

from ait_mlir.arguments import checked
from ait_mlir.dialects.ait.data import OutputOp
from ait_mlir.dialects.ait.dtypes import BY_NAME
from ait_mlir.driver import compile_module
from ait_mlir.errors import InputError
from ait_mlir.importers.checkpoints.stored import Array
from ait_mlir.importers.quantized.layers import (
    attentions_of,
    graph_in,
    layers_of,
    prepared,
    quantise_attentions,
    quantise_layers,
    remove_unused,
)
from ait_mlir.importers.quantized.probe import Call, Outputs, Probe, inputs_of, run_calls
from ait_mlir.importers.quantized.recipes import Recipe, recipe_named
from ait_mlir.importers.quantized.report import LayerReport, Report, Times, divergence, relative_error
from ait_mlir.importers.torch.compiled import CompiledModule, build, from_torch
from ait_mlir.importers.torch.program import Imported
from ait_mlir.options import CompileOptions
from ait_mlir.runtime import Model

RUNS = 7
"""The runs of which a time is the median."""


@dataclass(frozen=True)
class Quantized:
    """A quantised model."""

    imported: Imported
    """The module, whose weights are stored numbers, and the arrays of its params."""
    report: Report

    def compile(self, target: str = "cpu", **settings: Any) -> CompiledModule:
        """The compiled model, which is called like the original one; `settings` are those of `CompileOptions`."""
        return build(self.imported, CompileOptions(target, **settings))


@checked(InputError)
def quantize(
    model: Any,
    examples: Sequence[Any],
    recipe: str = "w8a16",
    *,
    leave_out: Sequence[str] = (),
    max_kl: float | None = None,
    timed: bool = False,
    dynamic_shapes: Any = None,
    name: str | None = None,
) -> Quantized:
    """A PyTorch module with the weights of its linear layers and convolutions in few bits, and a report of the change.

    `examples` are calls of the model: each is a tuple of positional arguments. The model is exported on the first, with
    `dynamic_shapes` as in `torch.export.export`; all are run on the CPU, with the model and with the quantised one, and
    give the scales for all runs. `recipe` is one of `RECIPES`, such as w8a16 or fp8-static. Layers whose
    names match one of the patterns `leave_out` stay as they are. With `max_kl`, so do the layers that do most harm,
    until the Kullback-Leibler divergence of the results from those of the model is at most this number of nats; the
    harm of a layer is the divergence with this layer quantised and no other. With `timed`, the report has the times of
    a run.

    Raises `InputError` without examples, for an unknown recipe, for a pattern without a layer, for a model without
    linear layers and convolutions, for weights and examples that are not finite, and for a bound that no quantised
    layer keeps.
    """
    chosen, calls = recipe_named(recipe), _calls(examples)
    imported = from_torch(model, calls[0], dynamic_shapes=dynamic_shapes, name=name)
    return quantize_imported(imported, [(call, {}) for call in calls], chosen, leave_out, max_kl=max_kl, timed=timed)


def quantize_imported(
    imported: Imported,
    calls: Sequence[Call],
    recipe: Recipe,
    leave_out: Sequence[str] = (),
    *,
    max_kl: float | None = None,
    timed: bool = False,
) -> Quantized:
    """As `quantize`, for an imported model; calls are positional and keyword arguments."""
    if max_kl is not None and not max_kl > 0:
        raise InputError(f"max_kl is {max_kl}, expected a number of nats above 0")
    module = prepared(imported.module)
    every = layers_of(module, recipe)
    if not layers_of(module, recipe, leave_out):
        raise InputError(
            f"the model has no linear layer{' or convolution' * recipe.convolves} to quantise"
            + (" that is not left out" if every else "")
        )
    main = next(value for kind, value in imported.outputs if kind == "output")
    with Probe(imported, module, recipe, leave_out, calls) as probe:
        found = _Search(probe, main, max_kl)
        chosen = list(probe.names)
        harm = found.harm() if max_kl is not None else {}
        if max_kl is not None:
            chosen = found.within(harm, max_kl)
        while True:
            made, after = _quantised(imported, module, probe, recipe, chosen)
            kl, top1 = divergence(_all(after, [main]), _all(probe.outputs, [main]))
            if max_kl is None or (kl is not None and kl <= max_kl):
                break
            chosen = found.without_worst(chosen, harm, max_kl, kl)
        rows = tuple(
            LayerReport(
                name,
                *_weight_row(probe, name),
                relative_error(_all(after, probe.results[name]), _all(probe.outputs, probe.results[name])),
                harm.get(name),
            )
            for name in chosen
        )
        kinds = [value for kind, value in imported.outputs if kind == "output"]
        report = Report(
            recipe.name,
            rows,
            tuple(part.name for part in (*every, *attentions_of(module, recipe)) if part.name not in chosen),
            sum(array.nbytes for array in imported.constants.values()),
            sum(array.nbytes for array in made.constants.values()),
            relative_error(_all(after, kinds), _all(probe.outputs, kinds)),
            kl,
            top1,
            harm={name: harm[name] for name in harm if name not in chosen},
            times=Times(_seconds(imported, calls[0]), _seconds(made, calls[0])) if timed else None,
        )
    return Quantized(made, report)


@dataclass(frozen=True)
class _Search:
    """The choice of layers by what they change in the first result of the model, the output `main`."""

    probe: Probe
    main: str
    max_kl: float | None

    def kl(self, on: Collection[str]) -> float:
        """The divergence with these layers quantised."""
        kl, _ = divergence(_all(self.probe.run(on), [self.main]), _all(self.probe.outputs, [self.main]))
        if kl is None:
            raise InputError(
                "max_kl bounds the divergence of the softmax along the last dim of the first result, which has no last "
                "dim of at least 2"
            )
        return kl if math.isfinite(kl) else math.inf

    def harm(self) -> dict[str, float]:
        """The divergence with each layer quantised alone, by name."""
        return {name: self.kl([name]) for name in self.probe.names}

    def within(self, harm: Mapping[str, float], max_kl: float) -> list[str]:
        """The layers to quantise: as many of those with the least harm as stay within the bound together."""
        order = sorted(harm, key=lambda name: harm[name])
        if harm[order[0]] > max_kl:
            raise InputError(
                f"no layer can be quantised within a divergence of {max_kl:g}: {order[0]!r}, which changes the results "
                f"least, alone reaches {harm[order[0]]:.3g}"
            )
        low, high = 1, len(order)  # the first `low` are within the bound
        if self.kl(order) <= max_kl:
            low = high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.kl(order[:middle]) <= max_kl else (low, middle)
        return [name for name in harm if name in order[:low]]

    def without_worst(self, chosen: list[str], harm: Mapping[str, float], max_kl: float, kl: float | None) -> list[str]:
        """The chosen layers without the one that does most harm, because integers gave a larger divergence, `kl`."""
        if len(chosen) == 1:
            reached = f"{chosen[0]!r} alone reaches {kl or 0:.3g}"
            raise InputError(f"no layer can be quantised within a divergence of {max_kl:g}: {reached}")
        worst = max(chosen, key=lambda name: harm[name])
        return [name for name in chosen if name != worst]


def _quantised(
    imported: Imported, module: ModuleOp, probe: Probe, recipe: Recipe, chosen: Collection[str]
) -> tuple[Imported, Outputs]:
    """The model with these layers quantised, and its outputs and those of the layers in the calls of the probe."""
    module, constants = module.clone(), dict(imported.constants)
    layers = [layer for layer in layers_of(module, recipe) if layer.name in chosen]
    attentions = [at for at in attentions_of(module, recipe) if at.name in chosen]
    places = [(layer.name, [reader.results[0] for reader in layer.readers]) for layer in layers]
    places += [(at.name, [at.op.results[0]]) for at in attentions]
    block, added = graph_in(module).block, list[OutputOp]()
    for name, values in places:
        added += [OutputOp(key, value) for key, value in zip(probe.results[name], values, strict=True)]
    block.add_ops(added)
    quantise_layers(layers, constants, recipe, probe.stored, probe.ranges)
    quantise_attentions(attentions, BY_NAME[recipe.element].ir, probe.ranges)
    remove_unused(module, constants)
    outputs = _run(imported, module, constants, probe.calls)
    for op in added:
        op.detach()
        op.erase()
    return replace(imported, module=module, constants=constants), outputs


def _weight_row(probe: Probe, name: str) -> tuple[tuple[int, ...], int, int, float]:
    """Shape, bytes before and after, and error of a layer's weight; an attention has none."""
    if name in probe.attentions:
        return probe.attentions[name], 0, 0, 0.0
    exact, stored = probe.exact[name], probe.stored[name]
    return probe.shapes[name], exact.nbytes, stored.nbytes, relative_error([probe.rounded[name]], [exact])


def _all(runs: Outputs, names: Sequence[str]) -> list[Array]:
    """These outputs of all runs."""
    return [run[name] for run in runs for name in names]


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
    imported: Imported, module: ModuleOp, constants: Mapping[str, Array], calls: Sequence[Call]
) -> Outputs:
    """The outputs of a module in each call, on the CPU."""
    with tempfile.TemporaryDirectory(prefix="ait_") as folder:
        file = Path(folder) / "model.ait"
        compile_module(module.clone(), CompileOptions("cpu"), output=file, constants=constants)
        with Model(file, verify_weights=False) as model:
            return run_calls(model, imported, calls)


def _seconds(imported: Imported, call: Call) -> float:
    """The median time of a run of the compiled model on the CPU, after one that is not counted."""
    with tempfile.TemporaryDirectory(prefix="ait_") as folder:
        file = Path(folder) / "model.ait"
        compile_module(imported.module.clone(), CompileOptions("cpu"), output=file, constants=imported.constants)
        with Model(file, verify_weights=False) as model:
            given, times = inputs_of(imported, call), list[float]()
            for _ in range(RUNS + 1):
                start = time.perf_counter()
                model.run_with_tensors(given)
                times.append(time.perf_counter() - start)
    return statistics.median(times[1:])
