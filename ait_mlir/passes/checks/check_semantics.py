"""`--check-semantics`: checks that no pass changes the outputs of a module.

After each pass the reference runs every graph and program in float64 and compares with the outputs before the pass.
It tries the declared minimum of the dims, the maximum (reduced until the work fits `WORK_BUDGET`) and a random point
between. The random point is tried twice, the second time with NaN, infinities and a negative zero among the inputs.
A copy of the module, with dims declared from 0 up, goes through the same passes. It runs with all dims at 0, with all
dims at 1, and with each of the first four dims at 0 and the others above.

Floats agree if they differ by at most 1e-9 of the largest value in the output (plus 1e-12) and are NaN or infinite
at the same positions. Integers, and outputs whose elements are only moved, must agree bitwise. Programs run in the
interpreter's exact mode, so the same bound holds for them. A read of bytes that belong to another buffer is a
difference. A program with streams runs in a random order that its events allow.

A constant stands for every number that its element type rounds to it, unless it is 0 or a power of two. If a pass
replaces such constants, or only adds some, and outputs differ, the checker searches for numbers within half a step of
the type that explain the difference; with them, the outputs must agree as above.

If the reference of an operator from outside fails at declared dims, or returns arrays that do not fit its results, that
is an error before any pass runs. At other dims, and with NaN among the inputs, the point is skipped.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from ait_mlir.dialects.ait.data import GraphOp, OutputOp
from ait_mlir.dialects.ait.ranks import ranks_of
from ait_mlir.dialects.ait.traits import Cost
from ait_mlir.dialects.ait.types import DimsAttr, ShapedType, TensorType, tensor_type
from ait_mlir.dialects.ait_rt.buffers import InputOp
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.dims import Dim, Scope
from ait_mlir.passes.checks.rounded_constants import Refit, replaced_constants
from ait_mlir.passes.step_order import has_streams, shuffled
from ait_mlir.reference import EvaluationError, evaluate_graph, run_program
from ait_mlir.reference.core import Array, WrongReference
from ait_mlir.reference.sampling import RandomParams, index_bound, is_scale, middle, random_input, reduced_maximum

WORK_BUDGET = 2 * 10**9
"""Operations of one evaluation at the reduced maximum: a fraction of a second on two cores."""
RELATIVE, ABSOLUTE = 1e-9, 1e-12
SINGLE_ZEROS = 4
"""The number of dims that are each tried at 0 with the other dims above 0."""

Dims = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Point:
    """A point at which a module is evaluated: dims, and whether the inputs hold NaN and infinities."""

    dims: Dims
    special: bool = False

    def __str__(self) -> str:
        at = ", ".join(f"{name} = {value}" for name, value in self.dims)
        return (f" at {at}" if at else "") + (" with NaN and infinities" if self.special else "")


Key = tuple[str, Point]
Outputs = dict[str, Array]


@dataclass(frozen=True)
class Difference:
    """An output that a pass changed, or a module that the reference cannot run any more."""

    pass_name: str
    symbol: str
    point: Point
    detail: str

    def __str__(self) -> str:
        return f"pass '{self.pass_name}' changes the meaning of @{self.symbol}{self.point}: {self.detail}"


class SemanticsChecker:
    """Compares the outputs of a module after each pass with the outputs before it.

    ```python
    checker = SemanticsChecker(module)
    for p in passes:
        p.apply(ctx, module)
        checker.after(p.name, module, lambda copy: p.apply(ctx, copy))
    for difference in checker.differences: print(difference)
    ```

    `checks` counts the compared evaluations; `skipped` has the reason for each skipped point. Raises
    `WrongReference` for an operator from outside whose reference is wrong at dims that the module declares.
    """

    def __init__(self, module: ModuleOp, seed: int = 0, budget: int = WORK_BUDGET) -> None:
        self.differences: list[Difference] = []
        self.skipped: list[str] = []
        self.checks = 0
        self.changed = False
        """Whether a compared pass has changed the module."""
        self.assumed = False
        """Whether a pass that an assumption of the module allows, and that is not compared, has changed the module."""
        self.seed = seed
        self._params = RandomParams(param_types(module), seed)
        declared: dict[str, list[Point]] = {}
        for name, root in callables(module).items():
            scope = cast(DimsAttr, root.properties["dims"]).data
            top = reduced_maximum(root, scope, budget)
            between = middle(scope, top, seed)
            given = {d.name: d.usual for d in scope if d.is_given}
            tried = [p | given for p in (scope.minimum_env(), top, between)]
            points = dict.fromkeys(tuple(p.items()) for p in tried)
            declared[name] = [*(Point(p) for p in points), Point(tuple(tried[-1].items()), special=True)]
        self._subjects = [_Subject(self, module, declared, is_declared=True)]
        wide = widened(module)
        if wide is None:
            self.skipped.append("dims at 0 and 1: the module is not valid when its dims are declared from there")
        else:
            self._wide, points = wide
            self._subjects.append(_Subject(self, self._wide, points))

    def after(
        self, pass_name: str, module: ModuleOp, apply: Callable[[ModuleOp], None] | None = None
    ) -> list[Difference]:
        """Compare with the outputs before the pass, return the differences, and keep the new outputs for the next pass.
        `apply` runs the same pass on the widened copy; without it, or if it fails there, the copy is dropped.
        """
        before = len(self.differences)
        self._subjects[0].compare(pass_name, module)
        if len(self._subjects) > 1:
            try:
                if apply is None:
                    raise ValueError("the pass cannot be run on a copy")
                apply(self._wide)
                self._wide.verify()
            except (DiagnosticException, ValueError) as e:
                self.skipped.append(f"dims at 0 and 1 from pass '{pass_name}' on: {str(e).strip().splitlines()[0]}")
                self._subjects.pop()
            else:
                self._subjects[1].compare(pass_name, self._wide)
        return self.differences[before:]

    def inputs(self, root: Operation, dims: Mapping[str, int], special: bool = False) -> dict[str, Array]:
        """Return random inputs for a graph or program at some dims; with `special`, NaN and infinities among them."""
        ranks = ranks_of(root)
        return {
            name: random_input(
                name,
                tuple(d.evaluate(dims) for d in ranks.whole("inputs", name, cast(ShapedType, value.type).dims)),
                cast(ShapedType, value.type),
                index_bound(value),
                self.seed,
                special,
                is_scale(value),
            )
            for name, value in named_inputs(root)
        }

    def summary(self) -> str:
        """A sentence about the comparison when there were no differences."""
        if self.checks:
            return f"{self.checks} evaluations compared, no difference"
        if self.changed:
            return "nothing was compared: the reference could not run"
        other = ", but for what its assumptions allow" if self.assumed else ""
        return f"nothing was compared: no pass changed the module{other}"

    @property
    def params(self) -> Mapping[str, Array]:
        """The random parameters, by name."""
        return self._params


class _Subject:
    """One module during a pipeline: its inputs, fixed at the start, and its latest outputs at each point."""

    def __init__(
        self,
        checker: SemanticsChecker,
        module: ModuleOp,
        points: Mapping[str, list[Point]],
        is_declared: bool = False,
    ) -> None:
        self.checker = checker
        self.text, self.module = str(module), module.clone()
        self.inputs: dict[Key, dict[str, Array]] = {}
        self.outputs: dict[Key, Outputs] = {}
        self.bitwise: dict[str, set[str]] = {}
        for name, root in callables(module).items():
            self.bitwise[name] = moved_outputs(root)
            for point in points[name]:
                key = (name, point)
                self.inputs[key] = checker.inputs(root, dict(point.dims), point.special)
                try:
                    self.outputs[key] = self.evaluate(module, root, key)
                except EvaluationError as e:
                    if isinstance(e, WrongReference) and is_declared and not point.special:
                        raise WrongReference(f"{e}{point}", e.op) from e
                    checker.skipped.append(f"@{name}{point}: {e}")

    def evaluate(self, module: ModuleOp, root: Operation, key: Key) -> Outputs:
        inputs, params, dims = self.inputs[key], self.checker.params, dict(key[1].dims)
        if isinstance(root, GraphOp):
            return evaluate_graph(root, inputs, params, dims)
        order = None
        if isinstance(root, ProgramOp) and has_streams(root):
            order = shuffled(root, random.Random(f"{key}"))
        return run_program(module, root, inputs, params, dims, exact=True, strict=True, order=order)

    def compare(self, pass_name: str, module: ModuleOp) -> None:
        text = str(module)
        if text == self.text:
            return
        self.text = text
        self.checker.changed = True
        found = callables(module)
        before, self.module = self.module, module.clone()
        details: dict[Key, list[str]] = {}
        old = dict(self.outputs)
        for key, expected in old.items():
            name = key[0]
            if name not in found:
                self.report(pass_name, key, "it is gone")
                continue
            try:
                outputs = self.evaluate(module, found[name], key)
            except EvaluationError as e:
                self.report(pass_name, key, str(e))
                continue
            self.checker.checks += 1
            details[key] = compare_outputs(expected, outputs, self.bitwise[name])
            self.outputs[key] = outputs
        for name in dict.fromkeys(key[0] for key, found_details in details.items() if found_details):
            wrong = [key for key, found_details in details.items() if found_details and key[0] == name]
            after = self.module.clone()
            refit = self.refit(name, before, after, self.outputs, wrong)
            wanted = self.outputs
            if refit is None:  # the pass replaced no constants, but may have added some
                refit, wanted = self.refit(name, after, before, old, wrong), old
            for key in wrong:
                for detail in self.compare_refitted(refit, key, wanted[key], details[key]):
                    self.report(pass_name, key, detail)

    def refit(
        self, name: str, module: ModuleOp, other: ModuleOp, wanted: Mapping[Key, Outputs], keys: Sequence[Key]
    ) -> Refit | None:
        """The module with other numbers for the constants that have fewer uses in the other module, whose outputs are
        `wanted`; None if there are no such constants.

        The numbers are fitted at the point with the most output elements.
        """
        root = callables(module)[name]
        fewer = replaced_constants(module, root, other, callables(other)[name])
        if not fewer:
            return None
        key = max(keys, key=lambda k: (not k[1].special, sum(array.size for array in wanted[k].values())))
        refit = Refit(module, root, fewer)
        try:
            refit.fit(lambda: self.evaluate(module, root, key), wanted[key])
        except EvaluationError:
            return None
        return refit

    def compare_refitted(self, refit: Refit | None, key: Key, wanted: Outputs, details: list[str]) -> list[str]:
        """The differences that remain with the refitted module: none if it explains them, else `details`."""
        if refit is None:
            return details
        try:
            found = self.evaluate(refit.module, refit.root, key)
        except EvaluationError:
            return details
        return details if compare_outputs(wanted, found, self.bitwise[key[0]]) else []

    def report(self, pass_name: str, key: Key, detail: str) -> None:
        self.checker.differences.append(Difference(pass_name, *key, detail))


def callables(module: ModuleOp) -> dict[str, GraphOp | ProgramOp]:
    """Return the graphs and programs of a module by name."""
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, GraphOp | ProgramOp)}


def named_inputs(root: Operation) -> list[tuple[str, SSAValue]]:
    """Return names and values of the inputs of a graph or program."""
    if isinstance(root, GraphOp):
        return root.inputs()
    return [(op.buffer_name.data, op.buffer) for op in cast(ProgramOp, root).block.ops if isinstance(op, InputOp)]


def param_types(module: ModuleOp) -> dict[str, ShapedType]:
    """Return the types of all parameters by name; of a param of which each rank has a piece, that of the whole."""
    types: dict[str, ShapedType] = {}
    for root in callables(module).values():
        ranks = ranks_of(root)
        if isinstance(root, GraphOp):
            found = [(op.param_name.data, tensor_type(op.output)) for op in root.params()]
        else:
            found = [(name, t) for part, name, t in root.named_tensors() if part == "params"]
        for name, t in found:
            types[name] = TensorType.get(ranks.whole("params", name, t.dims), t.element_type)
    return types


def moved_outputs(root: Operation) -> set[str]:
    """Return the outputs of a graph whose elements are only moved, so that they must stay bitwise the same."""
    if not isinstance(root, GraphOp):
        return set()
    moved: set[SSAValue] = set(root.block.args)
    outputs: set[str] = set()
    for op in root.block.ops:
        if isinstance(op, OutputOp) and op.value in moved:
            outputs.add(op.output_name.data)
        elif not op.operands or (isinstance(op, Cost) and op.MOVES_ONLY):
            moved.update(op.results if all(operand in moved for operand in op.operands) else ())
    return outputs


def compare_outputs(expected: Outputs, found: Outputs, bitwise: set[str]) -> list[str]:
    """Return a text for each difference between two sets of outputs."""
    details = [f"output {name!r} is gone" for name in expected if name not in found]
    details += [f"output {name!r} is new" for name in found if name not in expected]
    for name, a in expected.items():
        detail = compare_arrays(a, found[name], name in bitwise) if name in found else None
        if detail is not None:
            details.append(f"output {name!r}: {detail}")
    return details


def compare_arrays(expected: Array, found: Array, bitwise: bool) -> str | None:
    """Return a description of the difference between two arrays; None if they agree."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return f"it was {expected.dtype} of shape {expected.shape}, it is {found.dtype} of shape {found.shape}"
    with np.errstate(all="ignore"):
        same = (expected == found) | ((expected != expected) & (found != found))
        if expected.dtype.kind == "f" and not bitwise:
            finite = np.abs(expected[np.isfinite(expected)])
            bound = RELATIVE * (float(finite.max()) if finite.size else 0.0) + ABSOLUTE
            same |= np.abs(expected - found) <= bound
        if same.all():
            return None
        gap = np.abs(expected.astype(np.float64) - found.astype(np.float64))
        places = np.argwhere(~same)
        worst = tuple(int(i) for i in places[int(np.argmax(np.nan_to_num(gap[~same], nan=np.inf)))])
        return (
            f"{len(places)} of {expected.size} elements differ, most at {list(worst)}: "
            f"{found[worst]} instead of {expected[worst]}, a difference of {gap[worst]:.3g}"
        )


def widened(module: ModuleOp) -> tuple[ModuleOp, dict[str, list[Point]]] | None:
    """A copy of a module with dims declared from 0 up, or from 1 if 0 is not valid, and the points to try."""
    for low in (0, 1):
        copy = module.clone()
        for op in copy.walk():
            dims = op.properties.get("dims")
            if isinstance(dims, DimsAttr):
                op.properties["dims"] = DimsAttr(widened_scope(dims.data, low))
        try:
            copy.verify()
        except VerifyException:
            continue
        return copy, {name: small_points(root.dims.data, low) for name, root in callables(copy).items()}
    return None


def widened_scope(scope: Scope, low: int) -> Scope:
    """The same dims from `low` up, at least to 1."""
    dims: list[Dim] = []
    for d in scope:
        hi = d.hi if d.upper is None else Scope(dims).bounds(d.upper)[1]
        widened = Dim(d.name, min(low, d.lo), max(1, hi), d.hints, d.upper, d.jagged)
        dims.append(d if d.is_given else widened)
    return Scope(dims)


def small_points(scope: Scope, low: int) -> list[Point]:
    """Return the point with all dims at 1 and, if dims may be 0, all dims at 0 and each of the first few dims at 0."""
    names = [d.name for d in scope]
    tried = [dict.fromkeys(names, 1)]
    if low == 0:
        small = {d.name: min(3, d.hi) for d in scope}
        tried += [dict.fromkeys(names, 0), *(small | {name: 0} for name in names[:SINGLE_ZEROS])]
    given = {d.name: d.usual for d in scope if d.is_given}
    return [Point(dims) for dims in dict.fromkeys(tuple((p | given).items()) for p in tried)]
