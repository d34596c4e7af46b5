"""onnx's backend suite on the importer: each test passes, is refused with a reason, or fails.

    python -m tests.from_onnx.suite [NAME...] [--by reference|cpu|emitted] [--part 3/8] [--table]

`cpu` compiles each test and runs it; `emitted` writes the CUDA sources of each test and runs the reference. What was found
for exactly these sources is remembered in build/onnx-suite and not computed again.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from ait_mlir.dialects.ait.dtypes import BY_NAME
from ait_mlir.driver import emit, plan_model
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.importers.errors import ImportFailure
from ait_mlir.importers.onnx.backend import Rep, compiled
from ait_mlir.importers.onnx.program import Imported
from ait_mlir.options import CompileOptions
from ait_mlir.reference import evaluate_graph
from tests import full


@dataclass(frozen=True)
class Outcome:
    kind: str
    """passed, refused or failed"""
    reason: str = ""
    error: float = float("inf")
    """The largest difference of a test that failed with outputs of the right shapes and types."""


def by_reference(imported: Imported, target: str) -> Any:
    """Runs the imported module in the reference semantics, without compiling it."""
    graph = imported.graph
    outputs = {op.output_name.data: op.value.type.element_type for op in graph.outputs()}
    names = {str(ir): name for name, row in BY_NAME.items() for ir in [row.ir]}

    def run(inputs: Mapping[str, Any]) -> dict[str, Any]:
        dims = dims_of(graph, inputs)
        with np.errstate(all="ignore"):
            found = evaluate_graph(graph, inputs, imported.constants, dims)
            return {
                name: np.asarray(value).astype(numpy_dtype(BY_NAME[names[str(outputs[name])]].name))
                for name, value in found.items()
            }

    return run


def emitted(imported: Imported, target: str) -> Any:
    """Writes the sources for a card of Hopper's, then runs in the reference semantics."""
    module = imported.module.clone()
    plan_model(module, CompileOptions("cuda", "sm_90a", measure=False), constants=imported.constants)
    emit(module)
    return by_reference(imported, target)


def dims_of(graph: Any, inputs: Mapping[str, Any]) -> dict[str, int]:
    """The dims of a run from the shapes of its inputs."""
    dims: dict[str, int] = {}
    for name, value in graph.inputs():
        for e, n in zip(value.type.dims, np.shape(inputs[name]), strict=True):
            if len(e.symbols) == 1:
                (symbol,) = e.symbols
                start = e.evaluate({symbol: 0})
                dims.setdefault(symbol, (n - start) // (e.evaluate({symbol: 1}) - start))
    return dims


def read(path: Path, type_: Any) -> Any:
    """An input or output of a test."""
    data = path.read_bytes()
    kind = type_.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def outcome(case: Any, make: Any = by_reference) -> Outcome:
    """The result of a test of the suite."""
    model, sets = _data(case)
    try:
        rep = Rep(model, "cpu", make)
        for inputs, expected in sets:
            found = rep.run([*inputs])
            for name, a, b in zip((o.name for o in model.graph.output), found, expected, strict=True):
                if problem := difference(a, b, case.rtol, case.atol):
                    return Outcome("failed", f"{name}: {problem.text}", problem.error)
    except ImportFailure as error:
        return Outcome("refused", str(error).strip().splitlines()[-1].strip())
    except Exception as error:
        return Outcome("failed", f"{type(error).__name__}: {error}")
    return Outcome("passed")


def _data(case: Any) -> tuple[Any, list[tuple[list[Any], list[Any]]]]:
    """The model of a test, and inputs with the outputs that are expected."""
    if case.model is not None:
        return case.model, [([*map(_array, given)], [*map(_array, expected)]) for given, expected in case.data_sets]
    if case.url is not None:  # a network of the package, without its weights; onnx's runner makes these inputs
        path = Path(onnx.__file__).parents[1] / case.url
        model = onnx.load(path)
        shapes = [[d.dim_value or 1 for d in item.type.tensor_type.shape.dim] for item in _inputs(model)]
        inputs = [(np.arange(n := math.prod(shape)).reshape(shape) / n).astype(np.float32) for shape in shapes]
        outputs = [path.with_name(f"{path.stem}_output_{i}.pb") for i in range(len(model.graph.output))]
        return model, [(inputs, [read(o, t.type) for o, t in zip(outputs, model.graph.output, strict=True)])]
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets: list[tuple[list[Any], list[Any]]] = []
    for d in sorted(folder.glob("test_data_set*")):
        files = [(d / f"input_{i}.pb", item.type) for i, item in enumerate(_inputs(model))]
        inputs = [read(path, type_) for path, type_ in files if path.exists()]
        sets.append((inputs, [read(d / f"output_{i}.pb", t.type) for i, t in enumerate(model.graph.output)]))
    return model, sets


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _inputs(model: Any) -> list[Any]:
    initialized = {t.name for t in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in initialized]


@dataclass(frozen=True)
class Difference:
    text: str
    error: float = float("inf")
    """The largest difference of an element; infinite if the kinds, the shapes or the types differ."""


def difference(found: Any, expected: Any, rtol: float, atol: float) -> Difference | None:
    """How an output differs from the expected one; None if it does not."""
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return Difference(f"found {type(found).__name__}, expected a sequence of {len(expected)}")
        each = (difference(a, b, rtol, atol) for a, b in zip(found, expected, strict=True))
        return max((d for d in each if d), key=lambda d: d.error, default=None)
    if expected is None or found is None:
        return None if found is expected else Difference(f"found {found}, expected {expected}")
    a, b = np.asarray(found), np.asarray(expected)
    if a.shape != b.shape or a.dtype != b.dtype:
        return Difference(f"found {a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}")
    if b.dtype.kind in "fV" or b.dtype.name in ("bfloat16",):
        a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
            error = float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)), initial=0))
            return Difference(f"differs by {error}", error if np.isfinite(error) else float("inf"))
    return None


NEARER = {
    f"test_attention_4d_{name}": "onnx rounds scores and sums to 10 bits: up to 4.9e-4 from the reference"
    for name in ("fp16", "causal_fp16", "causal_fp16_expanded")
}
"""The tests for which compiled numbers that are not the expected ones may be as near to the reference, and why."""


def as_near(case: Any, make: Any = None) -> bool:
    """Whether the outputs of a compiled test are as near to the reference semantics as those that onnx expects, by the
    largest difference of an element. onnx rounds each step of a test of narrow floats. `make` compiles, for the CPU if
    it is None.
    """
    model, sets = _data(case)
    exact, ours = (Rep(model, "cpu", make) for make in (by_reference, make or compiled))
    for inputs, expected in sets:
        for true, found, other in zip(exact.run([*inputs]), ours.run([*inputs]), expected, strict=True):
            if not all(isinstance(a, np.ndarray) and a.shape == true.shape for a in (true, found, other)):
                return False
            near, far = (np.max(np.abs(a.astype(np.float64) - true), initial=0) for a in (found, other))
            if not near <= far:
                return False
    return True


KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
MAKERS: dict[str, Any] = {"reference": by_reference, "cpu": compiled, "emitted": emitted}


def cases(kinds: tuple[str, ...] = KINDS) -> list[Any]:
    """The tests of the suite whose files the package brings; the kind `real` has nine networks at full size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for kind in kinds for case in load_model_tests(kind=kind)]


def operator_of(case: Any) -> str:
    """The operator that a test is about."""
    if case.url is not None:
        return case.name.removeprefix("test_")
    model = case.model or onnx.load(os.path.join(case.model_dir, "model.onnx"))
    if "_expanded" in case.name or len(model.graph.node) != 1:
        return case.name.removeprefix("test_").split("_")[0]
    node = model.graph.node[0]
    return f"{node.domain}.{node.op_type}".lstrip(".")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of tests")
    parser.add_argument("--by", choices=[*MAKERS], default="reference", help="what runs a test")
    parser.add_argument("--table", action="store_true", help="print the table by operator")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)} and real")
    parser.add_argument("--part", type=full.shard, default=(1, 1), help="with 3/8 the third of eight parts")
    options = parser.parse_args()
    number, parts = options.part
    done = full.ROOT / "build" / "onnx-suite" / f"{options.by}-{full.sources_digest()[:16]}"
    done.mkdir(parents=True, exist_ok=True)
    rows: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    reasons: dict[str, set[str]] = collections.defaultdict(set)
    total: collections.Counter[str] = collections.Counter()
    for case in cases(tuple(options.kinds.split(",")))[number - 1 :: parts]:
        if options.names and not any(n in case.name for n in options.names):
            continue
        file = done / f"{case.kind}-{case.name}.json"
        if file.exists():
            found = Outcome(**json.loads(file.read_text()))
        else:
            found = outcome(case, MAKERS[options.by])
            file.write_text(json.dumps(asdict(found)))
        operator = operator_of(case)
        total[found.kind] += 1
        rows[operator][found.kind] += 1
        if found.kind != "passed":
            reasons[operator].add(found.reason[:200])
            if not options.table:
                print(f"{found.kind} {case.name}: {found.reason[:300]}", flush=True)
    if options.table:
        print("| operator | passed | refused | failed | why |\n|---|---|---|---|---|")
        for operator, counts in sorted(rows.items()):
            why = "; ".join(sorted(reasons[operator])[:3]).replace("|", "\\|")
            print(f"| {operator} | {counts['passed']} | {counts['refused']} | {counts['failed']} | {why} |")
    print(dict(total))


if __name__ == "__main__":
    main()
