"""Finds the first pass, then the first launch, after which a model leaves its reference: `ait bisect`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from ait_mlir import driver
from ait_mlir.dialects.ait.data import ConstantOp, GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.naming import derived_name
from ait_mlir.dialects.ait.types import TensorType
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.errors import AitError
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import op_place
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.options import CompileOptions
from ait_mlir.reference.core import EvaluationError, storage_dtype
from ait_mlir.reference.graph import evaluate_graph
from ait_mlir.reference.interpreter import run_program
from ait_mlir.runtime.from_host import run_on_host
from ait_mlir.runtime.model import Model
from ait_mlir.tools.commands.run import tolerance_of_products
from ait_mlir.tools.comparison import TOLERANCE, Errors, Expected, measure
from ait_mlir.tools.reducer import Reducer, feed, sweep

Arrays = Mapping[str, NDArray[Any]]
Tell = Callable[[str], None]
WORK = 1 << 26
"""The scalar operations that an evaluation of the reference may take, unless dims are given."""


@dataclass(frozen=True)
class Case:
    """The values of a run. `tolerance` is the largest error over the largest magnitude of an output; None: by type."""

    dims: Mapping[str, int]
    inputs: Arrays
    params: Arrays
    tolerance: float | None = None


@dataclass(frozen=True)
class Culprit:
    """The first step after which a run leaves the reference: a pass, a launch, or the run of the whole program."""

    kind: str
    name: str
    place: str
    """`FILE:LINE:COL` of a launch's op, "" where there is none."""
    output: str
    errors: Errors
    reduced: ModuleOp
    """A smaller module that still leaves the reference, if one was found, else the module of the run."""


class _Left(Exception):
    """A pass has left the reference."""

    def __init__(self, p: ModulePass, output: str, errors: Errors) -> None:
        super().__init__(p.name)
        self.culprit, self.output, self.errors = p, output, errors


def graph_of(module: ModuleOp) -> GraphOp:
    """The only graph of a module; raises `AitError` for other modules."""
    graphs = [op for op in module.ops if isinstance(op, GraphOp)]
    if len(graphs) != 1 or any(isinstance(op, ProgramOp) for op in module.ops):
        raise AitError(f"bisect starts with one ait.graph before it is bufferized; found {len(graphs)} graphs")
    return graphs[0]


def bisect(module: ModuleOp, options: CompileOptions, case: Case, tell: Tell) -> Culprit | None:
    """The first pass, or else the first launch, after which a run at `case` leaves the reference; None if none does.

    Passes are compared by the reference of each state in float64, launches by their results on the target. Params are
    not folded. `tell` gets the progress. The module is not changed.
    """
    options = replace(options, fold=False)
    passes: list[ModulePass] = []
    found = _first_pass(module, options, case, passes, tell)
    if found is not None:
        tell(f"pass {found.culprit.name}: leaves the reference; reducing")
        reducer = Reducer(lambda smaller: _leaves(smaller, passes, case))
        small = reducer.reduce(module) if _leaves(module, passes, case) else module
        return Culprit("pass", found.culprit.name, "", found.output, found.errors, small)
    return _first_launch(module, options, case, tell)


def _first_pass(
    module: ModuleOp, options: CompileOptions, case: Case, passes: list[ModulePass], tell: Tell
) -> _Left | None:
    """The first pass that leaves the reference; `passes` gets all passes up to it."""
    expected = _outputs(module, case)
    own, text = module.clone(), str(module)

    def observe(p: ModulePass, now: ModuleOp, seconds: float) -> None:
        nonlocal text
        passes.append(p)
        if (after := str(now)) == text:
            return
        text = after
        tell(f"pass {p.name}")
        wrong = _difference(_outputs(now, case), expected, module, case.tolerance)
        if wrong is not None:
            raise _Left(p, *wrong)

    try:
        driver.run_to_phase(own, "planned", options, observe=observe)
    except _Left as left:
        return left
    return None


def _outputs(module: ModuleOp, case: Case) -> dict[str, NDArray[Any]]:
    """The outputs of a graph or program by the reference, in float64."""
    root = next(op for op in module.ops if isinstance(op, GraphOp | ProgramOp))
    if isinstance(root, GraphOp):
        return evaluate_graph(root, case.inputs, case.params, case.dims)
    return run_program(module, root, case.inputs, case.params, case.dims, exact=True)


def _difference(
    found: Arrays, expected: Arrays, module: ModuleOp, tolerance: float | None
) -> tuple[str, Errors] | None:
    """The first output that is farther from the expected than its tolerance, and its errors."""
    types = {o.output_name.data: cast(TensorType, o.value.type).element_type for o in graph_of(module).outputs()}
    for name, exact in expected.items():
        allowed = TOLERANCE.get(BY_IR[types[name]].name, 0.0) if tolerance is None else tolerance
        errors = measure(found[name], Expected(exact), allowed)
        if not errors.good:
            return name, errors
    return None


def _leaves(module: ModuleOp, passes: Sequence[ModulePass], case: Case) -> bool:
    """Whether these passes make a module leave the reference, with new random values for inputs that the case lacks."""
    from ait_mlir.passes.checks.check_semantics import SemanticsChecker

    root = graph_of(module)
    checker = SemanticsChecker(module, budget=1)
    dims = {d.name: min(max(case.dims.get(d.name, d.lo), d.lo), d.hi) for d in root.scope.dims}
    inputs = checker.inputs(root, dims)
    inputs |= {n: a for n, a in case.inputs.items() if n in inputs and a.shape == inputs[n].shape}
    own = Case(dims, inputs, case.params, case.tolerance)
    after = module.clone()
    try:
        run_passes(context(), after, list(passes), verify=False)
        return _difference(_outputs(after, own), _outputs(module, own), module, own.tolerance) is not None
    except (EvaluationError, AitError, DiagnosticException, KeyError, StopIteration):
        return False


def _first_launch(module: ModuleOp, options: CompileOptions, case: Case, tell: Tell) -> Culprit | None:
    """The first launch whose result leaves the reference on the target, when the outputs of a run do."""
    selected = driver.run_to_phase(module.clone(), "selected", options)
    tell("run on the target")
    wrong = next(iter(_wrong_outputs(selected, options, case)), None)
    if wrong is None:
        return None
    tell("run that keeps the result of each launch")
    exposed, places = _exposed(selected)
    ops = list(graph_of(selected).block.ops)
    bad = next(((name, e) for name, e in _wrong_outputs(exposed, options, case) if name in places), None)
    if bad is None:
        return Culprit(
            "run", "each launch alone is right; the memory plan, the streams or a view is not", "", *wrong, selected
        )
    number, result = places[bad[0]]
    op = ops[number]
    tell("run of the launch alone")
    small, cut = _alone(selected, number)
    values = evaluate_graph(graph_of(exposed), case.inputs, case.params, case.dims, rounding=True)
    by_place = {place: values[name] for name, place in places.items()}
    alone = dict(case.inputs) | {name: by_place[place] for name, place in cut.items() if place in by_place}
    types = {n: storage_dtype(cast(TensorType, v.type).element_type) for n, v in graph_of(small).inputs()}
    fails = types.keys() <= alone.keys() and any(
        _wrong_outputs(small, options, replace(case, inputs={n: alone[n].astype(t) for n, t in types.items()}))
    )
    kernel = op.attributes.get("kernel")
    name = f"{derived_name(op)} ({kernel})" if kernel is not None else derived_name(op)
    place = op_place(op)
    where = "" if place is None else ":".join(map(str, place))
    return Culprit("launch", name, where, f"result {result}", bad[1], small if fails else selected)


def _wrong_outputs(module: ModuleOp, options: CompileOptions, case: Case) -> Iterator[tuple[str, Errors]]:
    """The outputs of a run on the target that leave the reference of the module, in order, with their errors."""
    graph = graph_of(module)
    with tempfile.TemporaryDirectory(prefix="ait_bisect_") as folder:
        own, artifact = module.clone(), Path(folder) / "model.ait"
        constants = {op.param_name.data: case.params[op.param_name.data] for op in graph.params()}
        driver.compile_module(own, replace(options, start="selected"), output=artifact, constants=constants)
        with Model(str(artifact)) as model:
            found = run_on_host(model, case.inputs)
    exact = evaluate_graph(graph, case.inputs, case.params, case.dims)
    stored = evaluate_graph(graph, case.inputs, case.params, case.dims, rounding=True)
    names = {
        BY_IR[r.type.element_type].name for op in graph.walk() for r in op.results if isinstance(r.type, TensorType)
    }
    ceiling, operands = max((TOLERANCE.get(n, 0.0) for n in names), default=0.0), tolerance_of_products(module)
    for output in graph.outputs():
        name = output.output_name.data
        errors = measure(found[name], Expected(exact[name], stored[name], ceiling, operands), case.tolerance)
        if not errors.good:
            yield name, errors


def _exposed(module: ModuleOp) -> tuple[ModuleOp, dict[str, tuple[int, int]]]:
    """A copy of a module with the result of each op as an output; for each the number of the op and of the result."""
    copy = module.clone()
    graph = graph_of(copy)
    taken = {output.output_name.data for output in graph.outputs()}
    bound = {d.name for d in graph.scope.bound}
    places: dict[str, tuple[int, int]] = {}
    for number, op in enumerate(list(graph.block.ops)):
        for i, result in enumerate(op.results):
            type_ = result.type
            if isinstance(op, ParamOp | ConstantOp) or not isinstance(type_, TensorType):
                continue
            if any(set(dim.symbols) & bound for dim in type_.dims):
                continue  # its size is known only after the run
            name = next(n for k in range(len(taken) + 1) if (n := f"op{number}_{i}" + "_" * k) not in taken)
            taken.add(name)
            places[name] = number, i
            graph.block.add_op(OutputOp(name, result))
    order = sorted(graph.outputs(), key=lambda output: places.get(output.output_name.data, (1 << 60, 0)))
    for output in order:
        output.detach()
        graph.block.add_op(output)
    return copy, places


def _alone(module: ModuleOp, number: int) -> tuple[ModuleOp, dict[str, tuple[int, int]]]:
    """A copy of a module with one op of its graph, whose operands are inputs and whose results are outputs; for each
    new input the number of the op and of the result that it stands for."""
    copy = module.clone()
    graph = graph_of(copy)
    ops = list(graph.block.ops)
    op = ops[number]
    for output in graph.outputs():
        output.detach()
        output.erase()
    for i, result in enumerate(op.results):
        graph.block.add_op(OutputOp(f"y{i}", result))
    cut: dict[str, tuple[int, int]] = {}
    for owner in dict.fromkeys(operand.owner for operand in op.operands):
        if not isinstance(owner, Operation) or isinstance(owner, ParamOp | ConstantOp):
            continue
        before, used = len(graph.input_names.data), [i for i, result in enumerate(owner.results) if result.uses]
        feed(graph, owner)
        names = [name.data for name in graph.input_names.data[before:]]
        cut |= {name: (ops.index(owner), i) for name, i in zip(names, used, strict=True)}
    sweep(graph)
    left = {name.data for name in graph.input_names.data}
    return copy, {name: place for name, place in cut.items() if name in left}
