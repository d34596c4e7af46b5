"""Prints the nodes of a nest as C++ statements, for a thread that computes one element or `kLanes` neighbours.

The lanes are neighbours along one axis. Values that depend on it are computed in a loop over lanes, all others before
it. A read that walks the axis with step 1 is one access of a vector.

    ait::half at0_lanes[kLanes];
    ait::gpu::load_lanes(input0 + offset, at0_lanes);
    for (int j = 0; j < kLanes; ++j) {
      const float at0 = ait::convert<float>(at0_lanes[j]);
      const float exp0 = ait::exp(at0);
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Self

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, i1
from xdsl.ir import Attribute, Operation, SSAValue

from ait_mlir.dialects.ait.data import ConstantOp
from ait_mlir.dialects.ait.dtypes import BY_IR, compute_type, is_float
from ait_mlir.dialects.ait.elementwise import AbsOp, DivOp, ExpOp, ReluOp, SigmoidOp, SiluOp, TanhOp
from ait_mlir.dialects.ait.loops import AtOp, FoldOp
from ait_mlir.dialects.ait.region import YieldOp
from ait_mlir.dims import Expr
from ait_mlir.lowering.cpp import cstr, element_type, literal
from ait_mlir.lowering.loops.nest import (
    Axis,
    Count,
    Fold,
    Nest,
    Node,
    Picks,
    Read,
    Scalar,
    alignment,
    are_in_step,
    operands_of,
    picked,
    step,
    walk,
)
from ait_mlir.lowering.loops.text import IndexText, Lines, Numbers
from ait_mlir.lowering.regions import KEEP_RELATIVE_ERROR, NARROW_FORMS, narrow_expression, scalar_expression, word_of

Place = Literal["cpu", "gpu"]
UNROLLED = 64
"""Folds of at most so many steps, with those around them, are written out by the compiler."""
LOOPS_FORMS: dict[type[Operation], str] = NARROW_FORMS | {ExpOp: "ait::exp_narrow({0})"}
"""Cheaper functions for results that are rounded to 2 bytes: those of all regions and more."""
KEEP_DIGITS = (*KEEP_RELATIVE_ERROR, AbsOp, ReluOp, TanhOp, SiluOp, SigmoidOp)
"""Ops of loops whose results have as many right digits as their operands. Silu and sigmoid of x < 0 lose a few: their
relative error is up to 1 + |x| times that of x, and from -88 on their result is 0."""
STRUCTS = {"add": "ait::Sum", "mul": "ait::Prod", "max": "ait::Max", "min": "ait::Min", "moments": "ait::Moments"}
FIELDS = {"moments": ("count", "sum", "squares")}


@dataclass
class Accumulator:
    """The C++ of a fold's state: the struct that joins values, the state's type and initial value."""

    fold: Fold

    @property
    def value_type(self) -> str:
        return element_type(self.fold.results[0].type)

    @property
    def word(self) -> str:
        """The name of a state: `sum`, `max`."""
        return {"add": "sum", "mul": "product"}.get(self.fold.kind, self.fold.kind)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a state that is a struct."""
        return ("value", "place") if self.fold.has_place else FIELDS.get(self.fold.kind, ())

    @property
    def kind(self) -> str:
        """`ait::Max`, or `ait::Best<true>` for the largest value and its place."""
        if self.fold.has_place:
            return f"ait::Best<{'true' if self.fold.kind == 'argmax' else 'false'}>"
        return STRUCTS[self.fold.kind]

    @property
    def type(self) -> str:
        """The type of the state, as `ait/kernels/reduction.h` has it: sums of integers wrap."""
        if self.fold.has_place:
            return f"ait::Placed<{self.value_type}, Index>"
        if self.fold.kind == "moments":
            return f"ait::MomentsOf<{self.value_type}>"
        dtype = BY_IR[self.fold.results[0].type]
        if dtype.is_float:
            return self.value_type
        if self.fold.kind in ("add", "mul"):
            return "uint64_t" if dtype.bytes == 8 else "uint32_t"
        return self.value_type if dtype.bytes >= 4 else "int32_t"

    @property
    def start(self) -> str:
        return f"{self.kind}::start<{self.value_type}, {self.type}>()"

    def joined(self, state: str, value: str, place: str, in_order: bool = False) -> str:
        """The state joined with one more value; `in_order` if the value comes after all values of the state."""
        if self.fold.kind == "moments":
            return f"{self.kind}::join_next({state}, {value})"
        given = f"{self.type}{{{value}, {place}}}" if self.fold.has_place else self.cast(value, self.type)
        return f"{self.kind}::join{'_next' if in_order and self.fold.has_place else ''}({state}, {given})"

    def results(self, state: str) -> list[str]:
        """The C++ of the fold's results."""
        if self.fold.has_place:
            return [f"{state}.value", f"static_cast<int64_t>({state}.place)"]
        if self.fold.kind == "moments":
            return [f"{state}.sum", f"{state}.distances()"]
        return [self.cast(state, self.value_type)]

    def cast(self, value: str, to: str) -> str:
        return value if self.type == self.value_type else f"static_cast<{to}>({value})"


HIDDEN_ZERO = "hidden_zero"
"""A number in the code of a CPU; see `hidden_zero` in `ait/kernels/cpu/loops.h`."""


def is_of_conditions(value: SSAValue) -> bool:
    """Whether a scalar is computed from conditions, without a load or a fold between."""
    seen, todo = set[SSAValue](), [value]
    while todo:
        if (x := todo.pop()) in seen:
            continue
        seen.add(x)
        if x.type == i1:
            return True
        if isinstance(x.owner, Operation) and not x.owner.regions and not isinstance(x.owner, AtOp):
            todo += x.owner.operands
    return False


@dataclass
class Body:
    """Prints nodes as statements into `lines`. `index.variables` maps each axis in scope to its C++ variable."""

    nest: Nest
    place: Place
    lines: Lines
    index: IndexText
    lane: str | None = None
    """The axis whose neighbours are the lanes."""
    lanes: int = 1
    """The neighbours of an access, if accesses must be aligned."""
    width: str = "kLanes"
    """The C++ of how many lanes there are."""
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    arrays: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values that have an element for each lane."""
    kept: Callable[[SSAValue], str | None] = lambda value: None
    """The C++ of an element or of another value for lane `j`, if it is in registers or in shared memory already."""
    put: Callable[[SSAValue], str | None] = lambda value: None
    """The register of a value for lane `j`, if code after the nodes takes it from there."""
    staged: Callable[[Read], tuple[str, str] | None] = lambda read: None
    """The array in shared memory that has the element of a read, and its place there; None if it is not there."""
    divisors: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """The C++ variable with the reciprocal of a value by which many are divided."""
    scaled: dict[tuple[SSAValue, bool], bool] = field(default_factory=dict[tuple[SSAValue, bool], bool])
    clamps: bool = False
    """Whether a read on a GPU at an index outside of its tensor reads another element instead, whose value does not
    count. Without branches, the reads of several calls wait for memory together."""
    unrolled: int = 1
    """How often the compiler writes out what is printed now."""
    vectors: list[tuple[Read, str, int]] = field(default_factory=list[tuple[Read, str, int]])
    """The reads that were printed as accesses of lanes, with the axis of these and their number."""
    counts: Counter[str] = field(default_factory=Counter[str])
    users: Mapping[SSAValue, frozenset[str]] = field(default_factory=dict[SSAValue, frozenset[str]])

    @classmethod
    def of(cls, nest: Nest, place: Place, numbers: Numbers) -> Self:
        axes = frozenset(dim.name for dim in nest.scope.dims if dim.name not in nest.around)
        return cls(nest, place, Lines(), IndexText(nest.scope, axes, numbers), users=nest.users())

    # ** names **

    def new(self, word: str) -> str:
        """A unique name that begins with `word`: `exp0`, `exp1`."""
        self.counts[word] += 1
        return f"{word}{self.counts[word] - 1}"

    def ref(self, value: SSAValue) -> str:
        """The C++ of a value; within the loop over lanes, its element for the lane."""
        return f"{self.names[value]}[j]" if value in self.arrays else self.names[value]

    def in_lanes(self, value: SSAValue) -> bool:
        return self.lane is not None and self.lane in self.users[value]

    def lane_type(self, element: Attribute) -> str:
        """The C++ type of an element of an array for lanes."""
        return element_type(element)

    # ** nodes **

    def print_nodes(
        self,
        nodes: Sequence[Node],
        finish: Callable[[], Sequence[str]] = lambda: (),
        used: Sequence[SSAValue] = (),
        later: frozenset[SSAValue] = frozenset(),
        each: bool = False,
    ) -> None:
        """Print the nodes, then the lines that `finish` returns.

        `used` are the values in these lines: if one has an element for each lane, or if `each` is set, the lines are
        inside the loop over lanes. `later` are the values that code after the nodes needs; they stay in arrays.
        """
        rest: list[Node] = []
        for node in nodes:
            if any(self.in_lanes(v) for v in node.results):
                rest.append(node)
            elif isinstance(node, Fold):
                self.print_fold(node)
            else:
                self.lines.add(*self.statements(node))
        group: list[Node] = []
        for i, node in enumerate(rest):
            if not isinstance(node, Fold):
                group.append(node)
                continue
            self.print_group(
                group, lambda: (), later.union(used, (v for other in rest[i:] for v in operands_of(other)))
            )
            group = []
            self.print_fold(node)
        each = self.lane is not None and (each or any(self.in_lanes(v) for v in used))
        self.print_group(group, finish, later, each)

    def print_group(
        self,
        nodes: Sequence[Node],
        finish: Callable[[], Sequence[str]],
        later: frozenset[SSAValue],
        always: bool = False,
    ) -> None:
        """Print one loop over lanes with the statements of the nodes. Values in `later` are stored in arrays."""
        if not nodes and not always:
            self.lines.add(*finish())
            return
        for node in nodes:
            if isinstance(node, Read):
                self.print_vector_read(node)
        arrays = [v for node in nodes for v in node.results if v in later]
        for v in arrays:
            self.lines.add(f"{self.lane_type(v.type)} {self.new_array(v)}[{self.width}];")
        assert self.lane is not None
        before = self.index.variables.get(self.lane)
        assert before is not None
        self.index.variables[self.lane] = here = f"{before}_j"
        body: list[str] = []
        for node in nodes:
            body += self.statements(node)
        body += finish()
        self.index.variables[self.lane] = before
        self.each_lane(body, before, here)

    def each_lane(self, body: Sequence[str], before: str = "", here: str = "") -> None:
        """A loop over the lanes `j`."""
        if self.place == "gpu":
            self.lines.add("#pragma unroll")
        else:
            self.lines.add("#pragma GCC ivdep")
        with self.lines.braces(f"for (int j = 0; j < {self.width}; ++j)"):
            if here and any(here in line for line in body):
                self.lines.add(f"const Index {here} = {before} + j;")
            self.lines.add(*body)

    def name(self, value: SSAValue) -> str:
        """The name of a value, from the kind of its op."""
        if value not in self.names:
            owner = value.owner
            is_read = isinstance(owner, AtOp)
            self.names[value] = self.new(
                "at" if is_read else word_of(owner) if isinstance(owner, Operation) else "value"
            )
        return self.names[value]

    def new_array(self, value: SSAValue) -> str:
        self.arrays.add(value)
        return self.name(value)

    # ** reads **

    def is_vector(self, read: Read) -> bool:
        """Whether the lanes read neighbouring elements, so that one access reads all of them."""
        if self.lane is None or any(self.in_lanes(g.value) for g in read.gathers):
            return False
        if self.lanes == 1 and any(self.lane in index.symbols for index, _ in read.guards):
            return False
        found = step(read.offset, self.lane)
        if found is None or found.as_int() != 1 or not are_in_step(self.nest, read, self.lane, self.lanes):
            return False
        return self.lanes == 1 or alignment(self.nest, read, self.lane, self.lanes) is not None

    def picked(self, read: Read) -> Picks | None:
        """The accesses that the lanes share, if they do; see `nest.picked`."""
        if self.lane is None or self.lanes == 1:
            return None
        return picked(self.nest, read, self.lane, self.lanes)

    def source(self, read: Read) -> tuple[str, str]:
        """The C++ of the array that a read takes its element from, and of its place there."""
        return self.staged(read) or (f"input{read.tensor}", self.offset(read))

    def is_clamped(self, read: Read) -> bool:
        """Whether a read happens in any case, at index 0 instead of a value outside of its dim."""
        only_values = self.clamps and not read.guards and self.staged(read) is None and self.picked(read) is None
        return only_values and bool(read.gathers) and all(self.nest.scope.positive(g.size) for g in read.gathers)

    def pointer(self, read: Read) -> str:
        """`input0 + (offset)`."""
        array, place = self.source(read)
        return f"{array} + ({place})"

    def offset(self, read: Read) -> str:
        text = self.index.text(read.offset)
        for g in read.gathers:
            place = f"static_cast<Index>({self.ref(g.value)})"
            if self.place == "cpu" and is_of_conditions(g.value):
                place = f"({place} ^ {HIDDEN_ZERO})"
            if self.is_clamped(read):
                place = f"(ait::within({self.ref(g.value)}, {self.index.numbers.text(g.size)}) ? {place} : 0)"
            text += f" + {place} * {self.index.numbers.text(g.stride)}"
        return text

    def inside(self, read: Read) -> str:
        """The condition that a read is within its tensor; empty if it always is."""
        parts: list[str] = []
        for index, size in read.guards:
            text = self.index.text(index)
            if not self.nest.scope.le(0, index):
                parts.append(f"{text} >= 0")
            if not self.nest.scope.lt(index, size):
                parts.append(f"{text} < {self.index.numbers.text(size)}")
        for g in read.gathers:
            parts.append(f"ait::within({self.ref(g.value)}, {self.index.numbers.text(g.size)})")
        return " && ".join(parts)

    def fill(self, read: Read) -> str:
        """The value of a read outside of its tensor."""
        compute = compute_type(read.element)
        if read.fill is not None:
            return literal(read.fill, compute)
        return literal(float("nan") if is_float(compute) else 0, compute)

    def print_vector_read(self, read: Read) -> None:
        """Print the access that reads the elements of all lanes, if one access can; it stands before the loop over
        lanes.
        """
        pick = self.picked(read)
        if self.kept(read.result) is not None or (pick is None and not self.is_vector(read)):
            return
        assert self.lane is not None
        self.vectors.append((read, self.lane, self.lanes))
        name = self.name(read.result)
        t = self.lane_type(read.element if self.place == "gpu" else compute_type(read.element))
        if pick is not None:
            self.print_picks(read, pick, name, t)
            return
        self.lines.add(f"{t} {name}_lanes[{self.width}];")
        call = f"ait::{self.place}::load_lanes({self.pointer(read)}, {name}_lanes)"
        inside = self.inside(read)
        if not inside:
            self.lines.add(f"{call};")
            return
        condition = "" if self.is_clamped(read) else f"if ({name}_inside) "
        self.lines.add(f"const bool {name}_inside = {inside};", f"{condition}{call};")
        self.complain(read, f"!{name}_inside")

    def print_picks(self, read: Read, pick: Picks, name: str, t: str) -> None:
        """Print the accesses that lanes share, and which element each lane takes. With one lane it is the first."""
        sizes = [f"[{self.width} > 1 ? {n} : 1]" for n in (len(pick.starts), pick.count)]
        self.lines.add(f"{t} {name}_lanes{''.join(sizes)};")
        for word, numbers in (("access", pick.accesses), ("place", pick.places)):
            self.lines.add(f"constexpr int {name}_{word}[] = {{{', '.join(map(str, numbers))}}};")
        inside = self.inside(read)
        if inside:
            self.lines.add(f"const bool {name}_inside = {inside};")
        with self.lines.braces(f"if ({name}_inside)") if inside else nullcontext():
            self.lines.add(f"const auto* const {name}_from = {self.pointer(read)};")
            with self.lines.braces(f"if constexpr ({self.width} > 1)", "} else {"):
                for i, start in enumerate(pick.starts):
                    at = f"{name}_from + ({self.index.text(start)})"
                    self.lines.add(f"ait::{self.place}::load_lanes({at}, {name}_lanes[{i}]);")
            self.lines.add(f"  ait::{self.place}::load_lanes({name}_from, {name}_lanes[0]);", "}")
        self.complain(read, f"!{name}_inside")

    def complain(self, read: Read, outside: str) -> None:
        """On a CPU, print the statement that records an invalid index, if the read has no `else`."""
        if self.place == "cpu" and read.fill is None and read.gathers:
            self.lines.add(f"if ({outside}) {self.noted(read)}")

    def noted(self, read: Read) -> str:
        text = "".join(
            f" outside.note({self.ref(g.value)}, {g.dim}, {self.index.numbers.text(g.size)}"
            f"{f', {cstr(g.says)}' if g.says else ''});"
            for g in read.gathers
        )
        return f"{{{text} }}"

    def read_value(self, read: Read, name: str) -> list[str]:
        """The statements that define the value of a read."""
        compute = element_type(compute_type(read.element))
        kept, pick = self.kept(read.result), self.picked(read)
        if kept is not None or pick is not None or self.is_vector(read):
            lanes = self.names[read.result]
            parts = ("access", "place") if pick is not None else ()
            which = "".join(f"[{self.width} > 1 ? {lanes}_{part}[j] : 0]" for part in parts) or "[j]"
            source = f"{lanes}_lanes{which}" if kept is None else kept
            value = f"ait::convert<{compute}>({source})"
            inside = self.inside(read) if kept is not None else f"{lanes}_inside" if self.inside(read) else ""
            return [f"{compute} {name} = {f'{inside} ? {value} : {self.fill(read)}' if inside else value};"]
        inside = self.inside(read)
        array, place = self.source(read)
        value = f"ait::convert<{compute}>({array}[{place}])"
        if not inside:
            return [f"{compute} {name} = {value};"]
        if self.is_clamped(read):
            return [f"{compute} {name} = ait::where<{compute}>({inside}, {value}, {self.fill(read)});"]
        lines = [f"{compute} {name} = {inside} ? {value} : {self.fill(read)};"]
        if self.place == "cpu" and read.fill is None and read.gathers:
            lines.append(f"if (!({inside})) {self.noted(read)}")
        return lines

    # ** statements **

    def statements(self, node: Node) -> list[str]:
        """The statements of a read, an index or a scalar op: they define a constant, or an element of an array."""
        assert not isinstance(node, Fold)
        (result,) = node.results
        is_array = result in self.arrays
        if isinstance(node, Read):
            name = f"{self.names[result]}_j" if is_array else self.name(result)
            lines = self.read_value(node, name)
            lines[0] = f"const {lines[0]}"
            return [*lines, f"{self.ref(result)} = {name};"] if is_array else lines
        value = self.kept(result) or (self.counted(node.value) if isinstance(node, Count) else self.scalar(node))
        name = self.ref(result) if is_array else self.name(result)
        left = [] if (place := self.put(result)) is None else [f"{place} = {name};"]
        return [f"{name} = {value};" if is_array else f"const {element_type(result.type)} {name} = {value};", *left]

    @cached_property
    def is_narrow(self) -> bool:
        """Whether every result is rounded to 2 bytes."""
        return all(isinstance(t, Float16Type | BFloat16Type) for t in self.nest.elements)

    def only_scaled(self, value: SSAValue, summed: bool = False) -> bool:
        """Whether a relative error of a value is no larger in the results: the value is only scaled, or its
        exponentials are summed. With `summed`, it may be a term of any sum: an error of a few units in the last place
        is no more than what the additions round.
        """
        key = (value, summed)
        if (found := self.scaled.get(key)) is None:
            found = self.scaled[key] = all(self._keeps_error(use.operation, value, summed) for use in value.uses)
        return found

    def _keeps_error(self, op: Operation, value: SSAValue, summed: bool) -> bool:
        if isinstance(op, YieldOp) and isinstance(fold := op.parent_op(), FoldOp):
            is_exact = fold.kind.data == "add" and (summed or isinstance(value.owner, ExpOp))
            return is_exact and all(self.only_scaled(r, summed) for r in fold.results)
        return isinstance(op, KEEP_DIGITS) and all(self.only_scaled(r, summed) for r in op.results)

    def may_be_narrow(self, op: Operation) -> bool:
        """Whether a function is exact enough in its form for results that are rounded to 2 bytes."""
        return self.is_narrow and self.only_scaled(op.results[0], summed=isinstance(op, DivOp))

    def print_divisors(self, nodes: Sequence[Node]) -> None:
        """Print the reciprocals of values that are computed before `nodes` and by which `nodes` divide.

        Only divisions of f32 whose results are rounded to 2 bytes use a reciprocal.
        """
        inside = {v for node in walk(nodes) for v in node.results}
        for node in walk(nodes):
            if not isinstance(node, Scalar) or not isinstance(node.op, DivOp) or not self.may_be_narrow(node.op):
                continue
            by = node.op.operands[1]
            is_known = by in self.divisors or by in inside or isinstance(by.owner, ConstantOp)
            if is_known or not isinstance(by.type, Float32Type):
                continue
            self.divisors[by] = name = self.new("divisor")
            if by in self.arrays:
                self.lines.add(f"ait::Divisor {name}[{self.width}];")
                self.each_lane([f"{name}[j] = ait::divisor_narrow({self.ref(by)});"])
            else:
                self.lines.add(f"const ait::Divisor {name} = ait::divisor_narrow({self.ref(by)});")

    def counted(self, e: Expr) -> str:
        """The C++ of an index expression as a scalar."""
        return f"static_cast<int64_t>({self.index.text(e)})"

    def scalar(self, node: Scalar) -> str:
        op = node.op
        if self.may_be_narrow(op):
            if isinstance(op, DivOp) and (divisor := self.divisors.get(op.operands[1])) is not None:
                place = "[j]" if op.operands[1] in self.arrays else ""
                return f"ait::div_by_narrow({self.ref(op.operands[0])}, {divisor}{place})"
            cheaper = narrow_expression(op, [self.ref(v) for v in op.operands], LOOPS_FORMS)
            if cheaper is not None:
                return cheaper
        return scalar_expression(
            op, [self.ref(v) for v in op.operands], [v.type for v in op.operands], op.results[0].type
        )

    # ** folds within a thread **

    def print_fold(self, fold: Fold) -> None:
        """Print a fold that one thread computes."""
        acc = Accumulator(fold)
        state = self.declare(acc)
        laned = self.in_lanes(fold.value)
        points = fold.points.as_int()
        unrolls = self.place == "gpu" and points is not None and self.unrolled * points <= UNROLLED
        run, part = self.run_of(fold), state
        for axis in fold.axes[:-1] if run else fold.axes:
            self.open_loop(axis, unrolls)
        if run:
            last = fold.axes[-1]
            first, end = self.new("first"), self.new("end")
            size = self.index.numbers.text(last.count)
            self.lines.add(f"for (Index {first} = 0; {first} < {size}; {first} += {run}) {{")
            self.lines.depth += 1
            part = self.declare(acc)
            self.lines.add(f"const Index {end} = {first} + {run} < {size} ? {first} + {run} : {size};")
            self.open_loop(last, begin=first, end=end)
        around, self.unrolled = self.unrolled, self.unrolled * (points if unrolls and points else 1)
        self.print_nodes(fold.nodes, lambda: [self.join_line(acc, part, laned, in_order=True)], [fold.value])
        self.unrolled = around
        if run:
            self.close_loops(1)
            if laned:
                self.each_lane([f"{state}[j] = {acc.kind}::join({state}[j], {part}[j]);"])
            else:
                self.lines.add(f"{state} = {acc.kind}::join({state}, {part});")
        self.close_loops(len(fold.axes))
        self.take_results(fold, state)

    def run_of(self, fold: Fold) -> int:
        """The number of values along the last axis of a fold that are joined first, before they are joined to its
        state.

        0 if each value is joined to the state at once.
        """
        return 0

    def open_loop(self, axis: Axis, unrolls: bool = False, begin: str = "0", end: str = "") -> None:
        """Print the head of a loop over an axis, or over a part of it."""
        variable = self.variable(axis)
        if unrolls:
            self.lines.add("#pragma unroll")
        end = end or self.index.numbers.text(axis.count)
        self.lines.add(f"for (Index {variable} = {begin}; {variable} < {end}; ++{variable}) {{")
        self.lines.depth += 1

    def close_loops(self, count: int) -> None:
        """Print the ends of loops."""
        for _ in range(count):
            self.lines.depth -= 1
            self.lines.add("}")

    def join_line(self, acc: Accumulator, state: str, laned: bool, in_order: bool = False) -> str:
        """The statement that joins a value to the state of a fold; `in_order` if it comes after all values of the
        state.
        """
        target = f"{state}[j]" if laned else state
        place = f"static_cast<Index>({self.index.text(acc.fold.place)})" if acc.fold.has_place else ""
        return f"{target} = {acc.joined(target, self.ref(acc.fold.value), place, in_order)};"

    def declare(self, acc: Accumulator, laned: bool | None = None) -> str:
        """Declare the state of a fold with its initial value; an array if the fold's value has an element for each
        lane.
        """
        state = self.new(acc.word)
        if laned or (laned is None and self.in_lanes(acc.fold.value)):
            self.lines.add(f"{acc.type} {state}[{self.width}];")
            self.each_lane([f"{state}[j] = {acc.start};"])
        else:
            self.lines.add(f"{acc.type} {state} = {acc.start};")
        return state

    def take_results(self, fold: Fold, state: str, is_array: bool | None = None) -> None:
        """Define the results of a fold from its state. If the state is an array, the results are arrays, too."""
        acc = Accumulator(fold)
        laned = self.in_lanes(fold.results[0])
        values = acc.results(f"{state}[j]" if laned else f"{state}[0]" if is_array else state)
        suffixes = ("", "_place" if fold.has_place else "_squares")
        for result, suffix, value in zip(fold.results, suffixes, values, strict=False):
            t = element_type(result.type)
            if not laned:
                self.names[result] = f"{state}_value{suffix}"
                self.lines.add(f"const {t} {self.names[result]} = {value};")
            else:
                self.names[result] = f"{state}_values{suffix}"
                self.arrays.add(result)
                self.lines.add(f"{self.lane_type(result.type)} {self.names[result]}[{self.width}];")
                self.each_lane([f"{self.ref(result)} = {value};"])

    def variable(self, axis: Axis) -> str:
        """The C++ variable of an axis, which has the axis's name."""
        self.index.variables[axis.name] = name = axis.name if axis.name[1:].isdigit() else self.new("axis")
        return name
