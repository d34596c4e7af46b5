"""PyTorch's own samples of its operations, imported and compared with PyTorch; `python -m tests.importers.opinfo` counts.

PyTorch tests each of its operations with samples: zero-dim and empty tensors, broadcasting, strided views, negative dims,
each option. A sample is a call. Those of one operation are one model, which is imported and run by the reference in float64.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import traceback
import types
import unittest
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from ait_mlir.dialects.ait.data import OutputOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.importers.torch import Imported, ImportFailure, UnsupportedOps, from_torch
from ait_mlir.importers.torch.call import element_type
from ait_mlir.importers.torch.rows import TABLE
from ait_mlir.reference import evaluate_graph
from tests.importers.opinfo_places import are_places, misplaced

Array = np.ndarray[Any, Any]
TOGETHER = 24
"""The most samples in one model."""


UNDEFINED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
"""Operations that return memory as it is: only shapes and dtypes are compared."""


@cache
def operations() -> dict[str, Any]:
    """PyTorch's descriptions of its operations, by name and variant.

    The module that has them needs the package expecttest for its own tests, which do not run here.
    """
    if "expecttest" not in sys.modules:
        try:
            importlib.import_module("expecttest")
        except ImportError:
            stand_in = types.ModuleType("expecttest")
            vars(stand_in)["TestCase"] = unittest.TestCase
            sys.modules["expecttest"] = stand_in
    found = importlib.import_module("torch.testing._internal.common_methods_invocations").op_db
    return {op.full_name: op for op in found}


def is_complex(result: object) -> bool:
    return isinstance(result, torch.Tensor) and result.is_complex()


def with_rows() -> list[str]:
    """The operations that have the name of a row."""
    rows = {name.split(".")[1] for name in TABLE}
    return [name for name, op in operations().items() if rows & {op.aten_name, op.name.rpartition(".")[2]}]


@dataclass
class Sample:
    """One call of an operation."""

    name: str
    function: Any
    tensors: list[torch.Tensor]
    spec: Any
    leaves: list[Any]
    """The arguments that are no tensors, with None where there is one."""
    places: list[int]
    is_undefined: bool = False
    """Whether the values of the result are not defined."""
    outcome: str = "not run"
    """`passed`, `refused: reason`, `wrong: how` or `crashed: how`."""

    @staticmethod
    def of(op: Any, sample: Any) -> Sample:
        leaves, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        tensors = [leaves[i].detach() for i in places]
        others = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        return Sample(op.full_name, op.op, tensors, spec, others, places, op.name in UNDEFINED)

    def arguments(self, tensors: Sequence[torch.Tensor]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of the call with these tensors."""
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return list(args), kwargs

    def call(self, tensors: Sequence[torch.Tensor]) -> list[Any]:
        """The results on these tensors, in a flat list; complex results as pairs."""
        args, kwargs = self.arguments(tensors)
        results = pytree.tree_leaves(self.function(*args, **kwargs))
        return [torch.view_as_real(r.resolve_conj()) if is_complex(r) else r for r in results if r is not None]

    def wanted(self, wide: bool) -> list[Any] | None:
        """What PyTorch returns, in float64 if `wide`; None if it has no such kernel."""
        try:
            with torch.no_grad():
                copies = [t.clone() for t in self.tensors]
                return self.call([t.double() if wide and t.is_floating_point() else t for t in copies])
        except Exception:
            return None


class Calls(torch.nn.Module):
    """Several samples side by side."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        super().__init__()
        self.samples = samples

    def forward(self, *tensors: torch.Tensor) -> list[list[Any]]:
        results: list[list[Any]] = []
        at = 0
        for sample in self.samples:
            results.append(sample.call(tensors[at : at + len(sample.tensors)]))
            at += len(sample.tensors)
        return results


def samples_of(op: Any, dtype: torch.dtype) -> list[Sample]:
    """The samples of an operation, the same in each run; none if PyTorch has none for this dtype."""
    if not op.supports_dtype(dtype, "cpu"):
        return []
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [Sample.of(op, sample) for sample in op.sample_inputs("cpu", dtype)]


def spread(samples: Sequence[Sample], count: int | None) -> list[Sample]:
    """At most `count` samples, from the first to the last in equal steps."""
    if count is None or len(samples) <= count:
        return list(samples)
    return [samples[i * len(samples) // count] for i in range(count)]


# ** running **


def run(samples: Sequence[Sample]) -> None:
    """Import each sample, evaluate it in float64, and record its outcome."""
    for at in range(0, len(samples), TOGETHER):
        group = samples[at : at + TOGETHER]
        try:
            imported = imported_calls(group)
        except Exception:  # one of them: each alone says which
            for sample in group:
                _run_alone(sample)
            continue
        _evaluate(group, imported)


def imported_calls(samples: Sequence[Sample]) -> Imported:
    """The module of several samples."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensors = [t.clone() for s in samples for t in s.tensors]
        imported = from_torch(Calls(samples).eval(), tuple(tensors))
    imported.module.verify()
    return imported


def _run_alone(sample: Sample) -> None:
    try:
        imported = imported_calls([sample])
    except ImportFailure as error:
        sample.outcome = f"refused: {reason(error)}"
        return
    except Exception as error:
        sample.outcome = crash(error)
        return
    _evaluate([sample], imported)


def crash(error: Exception) -> str:
    """An exception that no user may see, with the line that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"crashed: {type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"


def reason(error: ImportFailure) -> str:
    """A refusal in one line, without places."""
    if isinstance(error, UnsupportedOps):
        return "; ".join(sorted({f"{item.operation}: {item.advice}" for item in error.found}))
    text = re.sub(r"( at )?/\S+:\d+ in \w+(: .*?\))?(?=[:;]|$)", "", str(error)).removeprefix(": ")
    return re.sub(r"\s+", " ", text)


def arrays_of(samples: Sequence[Sample], imported: Imported) -> dict[str, Array]:
    """The inputs of the module by name."""
    tensors = [t for sample in samples for t in sample.tensors]
    return {item.name: as_array(tensors[item.leaf]) for item in imported.inputs.tensors}


def as_array(tensor: torch.Tensor) -> Array:
    """A tensor as an array; NumPy has no bfloat16."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def _evaluate(samples: Sequence[Sample], imported: Imported) -> None:
    try:
        with np.errstate(all="ignore"):
            found = evaluate_graph(imported.graph, arrays_of(samples, imported), imported.constants, {})
    except Exception as error:
        if len(samples) > 1:
            for sample in samples:
                _run_alone(sample)
        else:
            samples[0].outcome = crash(error)
        return
    compare(samples, imported, found)


def compare(samples: Sequence[Sample], imported: Imported, found: Mapping[str, Array]) -> None:
    """Note for each sample whether its results are PyTorch's."""
    types = {op.output_name.data: tensor_type(op.value) for op in imported.graph.walk() if isinstance(op, OutputOp)}
    outputs = iter(imported.outputs)
    for sample in samples:
        narrow, wide = sample.wanted(False), sample.wanted(True)
        args, kwargs = sample.arguments(sample.tensors)
        assert narrow is not None
        problem = None
        for i, want in enumerate(narrow):
            kind, value = next(outputs)
            if problem is not None:
                continue
            if kind == "constant":
                problem = None if value == want else f"{value} instead of {want}"
            elif kind == "number":
                problem = difference(np.asarray(found[value]), torch.tensor(want), torch.tensor(want))
            elif types[value].element_type != element_type(want.dtype):
                problem = f"{types[value].element_type} instead of {want.dtype}"
            elif sample.is_undefined:
                problem = None if found[value].shape == tuple(want.shape) else f"shape {found[value].shape}"
            elif are_places(sample.name, i, kwargs):
                problem = misplaced(sample.name, args, kwargs, np.asarray(found[value]), want)
            else:
                truth = wide[i] if wide is not None and len(wide) == len(narrow) else want
                problem = difference(np.asarray(found[value]), want, truth)
            problem = None if problem is None else f"result {i}: {problem}"
        sample.outcome = "passed" if problem is None else f"wrong: {problem}"


ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 8e-2}


def difference(got: Array, want: torch.Tensor, truth: torch.Tensor) -> str | None:
    """How a result differs from PyTorch's in the dtype of the sample and from that in float64; None
    if from one of them not.
    """
    if got.shape != tuple(want.shape):
        return f"shape {got.shape} instead of {tuple(want.shape)}"
    if not want.is_floating_point():
        wrong = int((got != as_array(want)).sum())
        return f"{wrong} of {got.size} elements differ" if wrong and (got != as_array(truth)).any() else None
    errors: list[float] = []
    for other in (want, truth):
        exact = as_array(other).astype(np.float64)
        scale = np.abs(exact[np.isfinite(exact)]).max(initial=0)
        with np.errstate(all="ignore"):
            error = np.where((got == exact) | (np.isnan(got) & np.isnan(exact)), 0, np.abs(got - exact))
        error = np.where(np.isnan(error), np.inf, error) / (
            1 + np.where(np.isfinite(exact), np.abs(exact), 0) + scale / 16
        )
        errors.append(float(error.max(initial=0)))
    return f"an error of {min(errors):.3g}" if min(errors) > ROUNDING[want.dtype] else None


# ** counting **


@dataclass
class Count:
    """The outcomes of the samples of one operation."""

    name: str
    outcomes: list[str] = field(default_factory=list[str])

    @property
    def passed(self) -> int:
        return self.outcomes.count("passed")

    @property
    def bugs(self) -> list[str]:
        return [o for o in self.outcomes if o.startswith(("wrong", "crashed"))]

    @property
    def refused(self) -> Counter[str]:
        return Counter(o.removeprefix("refused: ") for o in self.outcomes if o.startswith("refused"))

    def __str__(self) -> str:
        head = f"{self.name:45} {len(self.outcomes):5} {self.passed:6} {self.refused.total():7} {len(self.bugs):5}"
        reasons = [f"{times} x {told}" for told, times in self.refused.most_common(3)]
        return "\n".join([head, *(f"    {line[:200]}" for line in (*reasons, *sorted(set(self.bugs))[:3]))])


HEAD = f"{'operation':45} {'samples':>5} {'passed':>6} {'refused':>7} {'bugs':>4}"


def summary(samples: Iterable[Sample]) -> str:
    """How many samples of each operation passed: `add 6, mul 6`."""
    return ", ".join(f"{name} {n}" for name, n in Counter(s.name for s in samples if s.outcome == "passed").items())


def count(name: str, dtypes: Iterable[torch.dtype] = (torch.float32,), most: int | None = None) -> Count:
    """Run at most so many samples of an operation in each dtype."""
    op = operations()[name]
    found = Count(name)
    for dtype in dtypes:
        chosen = spread(samples_of(op, dtype), most)
        run(chosen)
        found.outcomes += [s.outcome for s in chosen]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="operations, by default all")
    parser.add_argument("--most", type=int, help="the most samples of an operation in a dtype")
    parser.add_argument("--dtypes", default="float32,int64,bool")
    given = parser.parse_args()
    dtypes = [getattr(torch, name) for name in given.dtypes.split(",")]
    print(HEAD)
    counts: list[Count] = []
    for name in given.names or operations():
        counts.append(count(name, dtypes, given.most))
        print(counts[-1], flush=True)
    totals = [sum(c.passed for c in counts), sum(c.refused.total() for c in counts), sum(len(c.bugs) for c in counts)]
    print(f"{sum(bool(c.passed) for c in counts)} operations with samples that pass")
    print(f"{sum(len(c.outcomes) for c in counts)} samples: {totals[0]} passed, {totals[1]} refused, {totals[2]} bugs")


if __name__ == "__main__":
    main()
