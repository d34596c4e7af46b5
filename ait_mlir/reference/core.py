"""The evaluator, and the registry from op name to the op's semantics on NumPy arrays.

Floats of any element type are held as float64, and only an explicit `ait.cast` rounds. With ``rounding=True`` every
result is rounded to its element type, as in a plain implementation that stores each result. Integers are held in their
own width and wrap, `i1` is bool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ait_mlir.dialects.ait.bits import from_bits, known_number
from ait_mlir.dialects.ait.dtypes import DTYPES, Float8, compute_type, constant_type, is_float
from ait_mlir.dialects.ait.elementwise import ElementwiseOp
from ait_mlir.dialects.ait.ranks import ALONE, Part, Ranks
from ait_mlir.dialects.ait.traits import Collective
from ait_mlir.dialects.ait.types import ShapeAttr, TensorType
from ait_mlir.dialects.ait.view import SplitOp, UnaryViewOp, filling
from ait_mlir.dtypes import numpy_dtype
from ait_mlir.outside import row_of

Array: TypeAlias = npt.NDArray[Any]
Arrays: TypeAlias = Sequence[Array]
DType: TypeAlias = np.dtype[Any]
OpT = TypeVar("OpT", bound=Operation)
RuleOf: TypeAlias = "Callable[[OpT, Arrays, Evaluation], Arrays]"
Rule: TypeAlias = "RuleOf[Operation]"
Members: TypeAlias = Sequence[Arrays]
"""The operands, or the results, of each member of a group of ranks."""
RuleOfMembers: TypeAlias = "Callable[[OpT, Members, Evaluation], Members]"
"""The rule of a collective."""
RuleT = TypeVar("RuleT", bound=Callable[..., Any])


class EvaluationError(Exception):
    """The reference cannot evaluate an op; the message names the op, the found and the expected input."""


class WrongReference(EvaluationError):
    """The reference that an author wrote for an op raises an error, or returns arrays that do not fit the results."""

    def __init__(self, message: str, op: Operation) -> None:
        super().__init__(message)
        self.op = op


STORAGE: Mapping[Attribute, DType] = {d.ir: numpy_dtype(d.name) for d in DTYPES}
FLOAT64 = np.dtype(np.float64)


def storage_dtype(element_type: Attribute) -> DType:
    """Return the NumPy dtype that stores an element type; raise `EvaluationError` for a type without storage."""
    dtype = STORAGE.get(element_type)
    if dtype is None:
        raise EvaluationError(
            f"no storage for element type {element_type}: expected one of {', '.join(map(str, STORAGE))}"
        )
    return dtype


def is_integer(dtype: DType) -> bool:
    """Whether a dtype holds integers, including integers of 4 bits, which have another kind in NumPy."""
    return dtype.kind in "iu" or dtype.name in ("int4", "uint4")


def value_dtype(element_type: Attribute) -> DType:
    """Return the dtype that values are held in while evaluating: float64 for floats, a byte for 4 bits, else the
    storage dtype."""
    return FLOAT64 if is_float(element_type) else storage_dtype(compute_type(element_type))


def element_type_of(type_: Attribute) -> Attribute:
    """Return the element type of a tensor type, or the type itself when it is a scalar."""
    return type_.element_type if isinstance(type_, TensorType) else type_


def widen(array: Array, element_type: Attribute) -> Array:
    """Return an array of any dtype as values of an element type (floats as float64), without rounding."""
    return np.asarray(array).astype(value_dtype(element_type), copy=False)


def round_to(array: Array, element_type: Attribute) -> Array:
    """Return float64 values rounded to an element type (to nearest, ties to even)."""
    if storage_dtype(element_type) == array.dtype:
        return array
    return to_storage(array, element_type).astype(value_dtype(element_type))


def to_storage(array: Array, element_type: Attribute) -> Array:
    """Return values as an array of the dtype that stores an element type; floats are rounded once."""
    with np.errstate(all="ignore"):
        if isinstance(element_type, Float8) and array.dtype == np.float64:
            array = _to_odd(array)
        return array.astype(storage_dtype(element_type))


def _to_odd(array: Array) -> Array:
    """Return float64 values as float32 that round to the same float of 8 bits: truncated, with a sticky last bit.

    The package ml_dtypes converts by way of float32, and would round twice.
    """
    nearest = array.astype(np.float32)
    bits = np.atleast_1d(nearest).view(np.uint32)
    exact = (nearest == array) | np.isnan(array)
    truncated = bits - (np.abs(nearest) > np.abs(array)).astype(np.uint32)
    return np.where(exact, bits, truncated | np.uint32(1)).view(np.float32).reshape(array.shape)


UNROUNDED = "ait.unrounded"
"""An attribute of a constant: the reference uses this number in place of the rounded one."""

RULES: dict[str, Rule] = {}
"""The semantics of each op, by op name."""


def reference(*op_classes: type[OpT]) -> Callable[[RuleT], RuleT]:
    """Register a function as the semantics of ops of these classes, a `RuleOf` or, for collectives, a `RuleOfMembers`;
    `ValueError` if an op has semantics already.

    `ait_mlir/families.py` lists the registered families.
    """

    def register(rule: RuleT) -> RuleT:
        for name in (op_class.name for op_class in op_classes):
            if name in RULES:
                raise ValueError(f"{name} has two meanings, in {_place(RULES[name])} and {_place(rule)}; remove one")
            RULES[name] = cast(Rule, rule)
        return rule

    return register


def rule_of(op: Operation) -> Rule | None:
    """The semantics of an op; an operator from outside brings its own."""
    row = row_of(type(op))
    return RULES.get(op.name) if row is None else row.rule


def _place(rule: object) -> str:
    code = getattr(rule, "__code__", None)
    return "an unknown file" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


@dataclass
class Evaluation:
    """One run of the reference: the dims, the parameters, the values so far and the outputs."""

    dims: Mapping[str, int]
    params: Mapping[str, Array] = field(default_factory=dict[str, Array])
    rounding: bool = False
    ranks: Ranks = ALONE
    rank: int = 0
    outputs: dict[str, Array] = field(default_factory=dict[str, Array])

    def bind(self, dim: str, value: int) -> None:
        """Set a dim to the value that an op computed."""
        self.dims = {**self.dims, dim: value}

    def shape(self, type_: Attribute) -> tuple[int, ...]:
        """Return the shape of a tensor type at the dims of this run, () for a scalar."""
        return tuple(dim.evaluate(self.dims) for dim in type_.dims) if isinstance(type_, TensorType) else ()

    def number(self, attribute: Attribute) -> float:
        """Return the number of a property, which may depend on dims of this run."""
        if isinstance(attribute, ShapeAttr):
            return from_bits(attribute.data[0].evaluate(self.dims))
        number = known_number(attribute)
        assert number is not None, "a number or its bits"
        return number

    def run_ops(self, ops: Iterable[Operation], env: dict[SSAValue, Array]) -> tuple[Array, ...]:
        """Evaluate ops in order, and return the operands of the terminator, if there is one.

        `env` holds the values from outside; a value is removed after its last use by these ops.
        """
        return run_together([self], ops, [env])[0]

    def run_op(self, op: Operation, arrays: list[Array]) -> list[Array]:
        """Evaluate one op on the values of its operands; tensor results have exactly the shapes of their types."""
        rule = rule_of(op)
        if rule is None:
            raise EvaluationError(
                f"{op.name} has no reference semantics: register one with @reference in ait_mlir/reference/"
            )
        return self.results_of(op, rule(op, _read(op, arrays), self))

    def results_of(self, op: Operation, arrays: Arrays) -> list[Array]:
        """The results that a rule has made for an op, checked, and rounded if this run rounds. Numbers that fill a
        tensor are rounded where they are read.
        """
        results: list[Array] = []
        for array, result in zip(arrays, op.results, strict=True):
            self._check(op, result.type, array)
            rounds = self.rounding and filling(result) is None
            results.append(round_to(array, element_type_of(result.type)) if rounds else array)
        return results

    def run_region(self, region: Region, arguments: Sequence[Array]) -> tuple[Array, ...]:
        """Evaluate a region of scalar ops on whole arrays at once, and return the values that it yields.

        The arguments broadcast against each other. A yielded array may be smaller than their common shape and
        broadcast.
        """
        block: Block = region.block
        env: dict[SSAValue, Array] = {}
        for argument, array in zip(block.args, arguments, strict=True):
            env[argument] = round_to(array, argument.type) if self.rounding else array
        return self.run_ops(block.ops, env)

    def whole(self, arrays: Sequence[Array], op: Operation) -> Arrays:
        """Return an array for each result of an op, in the result's shape."""
        return [np.broadcast_to(x, self.shape(result.type)) for x, result in zip(arrays, op.results, strict=True)]

    def _check(self, op: Operation, type_: Attribute, array: Array) -> None:
        if array.dtype != value_dtype(element_type_of(type_)):
            raise EvaluationError(f"the reference of {op.name} made {array.dtype} where the type is {type_}")
        if isinstance(type_, TensorType) and array.shape != self.shape(type_):
            raise EvaluationError(
                f"the reference of {op.name} made shape {array.shape} where {type_} is {self.shape(type_)}"
            )


def _read(op: Operation, arrays: list[Array]) -> list[Array]:
    """The operands as an op reads them: elementwise ops and views read constants of one f16 or bf16 number in f32.

    Other ops read the constant as a stored tensor, so its number is rounded to the element type.
    """
    if isinstance(op, ElementwiseOp | UnaryViewOp | SplitOp):
        return arrays
    read: list[Array] = []
    for value, array in zip(op.operands, arrays, strict=True):
        element = element_type_of(value.type)
        constant = filling(value) if element != constant_type(element) else None
        is_rounded = constant is not None and UNROUNDED not in constant.attributes
        read.append(round_to(array, element) if is_rounded else array)
    return read


class OnRank(Protocol):
    """A run on one rank."""

    @property
    def ranks(self) -> Ranks: ...
    @property
    def rank(self) -> int: ...


def piece(run: OnRank, part: Part, name: str, whole: Array) -> Array:
    """A rank's piece of an input or param."""
    whole = np.asarray(whole)
    return whole[run.ranks.place(part, name, whole.shape, run.rank)]


def run_together(
    runs: Sequence[Evaluation], ops: Iterable[Operation], envs: Sequence[dict[SSAValue, Array]]
) -> list[tuple[Array, ...]]:
    """Evaluate ops in order, each on all ranks before the next one; return each rank's operands of the terminator.

    The rule of a collective gets the operands of each member of a group and returns the results of each.
    """
    ops = list(ops)
    uses = Counter(operand for op in ops for operand in op.operands)
    with np.errstate(all="ignore"):
        for op in ops:
            try:
                arrays = [[env[operand] for operand in op.operands] for env in envs]
            except KeyError:
                raise EvaluationError(
                    f"{op.name} uses a value that is defined outside of its region or after it"
                ) from None
            if op.name in TERMINATORS:
                return [tuple(found) for found in arrays]
            if isinstance(op, Collective):
                results = meet(runs, op, arrays)
            else:
                results = [run.run_op(op, found) for run, found in zip(runs, arrays, strict=True)]
            for env, found in zip(envs, results, strict=True):
                env.update(zip(op.results, found, strict=True))
            for operand in op.operands:
                uses[operand] -= 1
                if not uses[operand]:
                    for env in envs:
                        del env[operand]
    return [() for _ in runs]


def meet(runs: Sequence[Evaluation], op: Collective, arrays: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Evaluate a collective on all ranks."""
    mesh = op.ranks()
    if len(runs) != mesh.size:
        raise EvaluationError(f"{op.name} needs the {mesh.size} ranks of {mesh}, got {len(runs)}")
    results: list[list[Array]] = []
    for rank, run in enumerate(runs):
        group = mesh.group(rank, op.group_axes())
        found = cast("RuleOfMembers[Operation]", RULES[op.name])(op, [arrays[member] for member in group], run)
        results.append(run.results_of(op, found[group.index(rank)]))
    return results


TERMINATORS = frozenset(("ait.yield", "ait_rt.return"))
