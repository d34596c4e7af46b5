"""Imports a network, compiles it and compares it with PyTorch at several sizes of one artifact: in f32 on the CPU, or in
half precision on a card.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from ait_mlir.errors import AitError
from ait_mlir.importers.torch import from_torch
from ait_mlir.importers.torch.compiled import CompiledModule, build
from ait_mlir.importers.torch.errors import UnsupportedOps
from ait_mlir.importers.torch.program import Imported
from ait_mlir.options import CompileOptions
from benchmarks import measure
from tests import tiers
from tests.importers.models import tensors
from tests.networks.network import Arguments, Network, made

SIZES = ((1, 9), (3, 16))
"""Batch and length of the runs; the network is exported on others."""
EXPORTED = (2, 7)
LEAST = 256
"""The least count of compared numbers of a result: runs are repeated until there are as many."""


@dataclass
class Outcome:
    """The result of checking a network."""

    missing: list[tuple[str, int, str]] = field(default_factory=list[tuple[str, int, str]])
    """The operations that cannot be imported: name, uses, first place."""
    error: str = ""
    """Why the network fails, in one paragraph; empty if it does not."""
    stage: str = ""
    """The last stage: `import`, `compile`, `run` or `done`."""
    launches: int = 0
    ratios: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """For each result our max error and RMSE over eager's."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """The time of each stage."""

    @property
    def passed(self) -> bool:
        return self.stage == "done" and not self.error


@dataclass(frozen=True)
class Place:
    """Where networks run, and in which type of floats."""

    target: str = "cpu"
    dtype: torch.dtype = torch.float32

    def given(self, network: Network, batch: int, length: int) -> dict[str, torch.Tensor]:
        """The arguments of a call."""
        given = network.arguments(batch, length if network.has_any_length else EXPORTED[1])
        return {n: self.placed(t).to(self.target) for n, t in given.items()}

    def placed(self, value: Any) -> Any:
        """A tensor or a module with floats of the type."""
        is_float = isinstance(value, torch.nn.Module) or value.is_floating_point()
        return value.to(self.dtype) if is_float and self.dtype != torch.float32 else value


CPU = Place()


def imported(model: torch.nn.Module, network: Network, place: Place = CPU) -> Imported:
    """The network as a module, with its dynamic dims."""
    return from_torch(model, (), place.given(network, *EXPORTED), dynamic_shapes=dict(network.dynamic) or None)


def compiled(module: Imported, place: Place = CPU) -> CompiledModule:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIT_OPTIMIZE", tiers.QUICK)
        return build(module, CompileOptions(place.target, measure=False))


def compare(
    ours: CompiledModule, model: torch.nn.Module, network: Network, place: Place = CPU
) -> list[measure.Accuracy]:
    """The errors of each result that holds floats; raises `AssertionError` where others differ."""
    exact = copy.deepcopy(model).double()
    if hasattr(exact, "set_experts_implementation"):
        exact.set_experts_implementation("eager")  # PyTorch has no grouped product in float64
    sides: list[list[list[torch.Tensor]]] = []
    with torch.no_grad():
        for batch, length in SIZES:
            found = 0
            while found < LEAST:
                given = place.given(network, batch, length)
                eager = tensors(model(**given))
                sides.append([tensors(ours(**given)), eager, tensors(exact(**_double(given)))])
                found += max(64, min((t.numel() for t in eager if t.is_floating_point()), default=LEAST))
    results: list[measure.Accuracy] = []
    for i in range(len(sides[0][1])):
        mine, eager, truth = (torch.cat([side[k][i].flatten() for side in sides]) for k in range(3))
        if eager.is_floating_point():
            known = bool(eager.isfinite().any()) or not truth.isfinite().any()
            assert known, f"PyTorch's result {i} overflows in every element: there is nothing to compare"
            results.append(measure.accuracy(mine, eager, truth))
        else:
            assert torch.equal(mine, eager), f"result {i} differs"
    return results


def _error_of_eager(model: torch.nn.Module, network: Network, place: Place) -> str:
    """The error of a call in PyTorch; empty if there is none."""
    try:
        with torch.no_grad():
            model(**place.given(network, *EXPORTED))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _double(given: Arguments) -> Mapping[str, Any]:
    return {n: t.double() if t.is_floating_point() else t for n, t in given.items()}


def check(network: Network, import_only: bool = False, place: Place = CPU) -> Outcome:
    """Every stage in turn, up to the first that fails. Only errors that a user may see, and those of PyTorch itself,
    end a stage in order.
    """
    outcome, start = Outcome(stage="make"), time.perf_counter()
    model: Any = None

    def reach(stage: str) -> None:
        nonlocal start
        now = time.perf_counter()
        outcome.seconds[outcome.stage], start, outcome.stage = round(now - start, 1), now, stage

    try:
        model = place.placed(made(network)).to(place.target)
        reach("import")
        module = imported(model, network, place)
        reach("done" if import_only else "compile")
        if import_only:
            return outcome
        ours = compiled(module, place)
        reach("run")
        outcome.launches = ours.model.ir_text.count("ait_rt.launch")
        results = compare(ours, model, network, place)
        outcome.ratios = [(r.max_ratio, r.rmse_ratio) for r in results]
        reach("done")
        if not all(r.passed for r in results):
            outcome.error = "the errors are larger than eager's"
    except Exception as error:
        if model is not None and (found := _error_of_eager(model, network, place)):
            outcome.error = f"PyTorch itself fails: {found}"
        elif isinstance(error, UnsupportedOps):
            outcome.missing = [(item.operation, item.count, f"{item.place} ({item.advice})") for item in error.found]
            outcome.error = f"{len(error.found)} operations cannot be imported"
        elif isinstance(error, AitError | AssertionError):
            outcome.error = str(error)
        else:
            raise
    outcome.seconds.setdefault(outcome.stage, round(time.perf_counter() - start, 1))
    return outcome
