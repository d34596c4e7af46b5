"""The kernel that a schedule prints on a GPU, and its launch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dims import Expr, product, total
from ait_mlir.lowering.cpp import CppText, comment, element_type
from ait_mlir.lowering.kernels.base import Emission, Launch
from ait_mlir.lowering.loops.body import Body
from ait_mlir.lowering.loops.moments import in_one_pass
from ait_mlir.lowering.loops.nest import (
    SHORT,
    Axis,
    Fold,
    Nest,
    Node,
    Read,
    alignment,
    axes_text,
    nest_of,
    picked,
    step,
)
from ait_mlir.lowering.loops.rows import Rows, fitting, later_values, results_of_rows, rows_of, rows_of_gpu
from ait_mlir.lowering.loops.text import Numbers, comment_of

BLOCK = 256
"""Threads of a block where the schedule does not say how many."""
STATIC_SHARED = 48 * 1024
"""Bytes of shared memory that a kernel may declare."""
NARROW = 2**31 - 2**24
"""Indices that are proved to be below are counted in 32 bits; a thread counts a little beyond the last element."""
NARROW_RUN = 2**30
"""In a run whose tensors and loops have fewer elements, indices have 32 bits: terms of offsets are below twice that."""


@dataclass
class Shared:
    """The buffers in shared memory through which threads join their states. Two are used in turn, so that one barrier
    is enough.
    """

    bytes: list[str] = field(default_factory=list[str])
    used: int = 0

    def next(self, size: str) -> str:
        """The buffer for the next join, of `size` bytes."""
        self.used += 1
        self.bytes.append(size)
        return f"shared{self.used % 2}"

    def declarations(self) -> list[str]:
        found: list[str] = []
        for turn in (1, 0):
            sizes = self.bytes[1 - turn :: 2]
            if sizes:
                size = sizes[0]
                for other in dict.fromkeys(sizes[1:]):
                    size = f"({size}) > ({other}) ? ({size}) : ({other})" if other != size else size
                found.append(f"__shared__ __align__(16) char shared{turn}[{size}];")
        return found


class GpuLoops(ABC):
    """The code of one launch: each schedule is a subclass that prints the body of the kernel."""

    kind: ClassVar[str]
    """The schedule in the name of the kernel."""
    serial: ClassVar[bool] = False
    """Whether one thread computes each fold."""
    shortest: ClassVar[int] = SHORT
    """The fewest elements of a part of the results' axis, as of `nest_of`."""

    def __init__(self, launch: Launch[LoopsOp]) -> None:
        self.launch, self.config = launch, launch.config
        strides = [a.strides for a in launch.ins], [a.strides for a in launch.outs]
        nest = nest_of(launch.op, *strides, shortest=self.shortest)
        self.nest = in_one_pass(nest) if self.config.get("once") else nest
        self.numbers = Numbers()
        self.body = Body.of(self.nest, "gpu", self.numbers)
        self.body.lanes = self.lanes = self.config["lanes"]
        self.rows = rows_of(self.nest, serial=True) if self.serial else rows_of_gpu(self.nest)
        self.of_rows = results_of_rows(self.nest, self.rows)
        """The results that a row stores before the walk over its other results."""
        self.others = tuple(i for i in range(len(self.nest.yields)) if i not in self.of_rows)
        self.shared = Shared()
        self.checks: dict[Expr, None] = {}
        """Numbers that must be multiples of the lanes."""
        self.pointers: dict[str, None] = {}
        """Tensors that are accessed in lanes."""
        self.name = f"loops_{self.kind}"
        self.staged_result: Callable[[int], tuple[str, str] | None] = lambda i: None
        """The array in shared memory that takes the elements of a result, and their place there; None if none does."""
        self.turned: tuple[int, ...] = ()
        """The results whose array is a tile that a block turns: a thread has neighbours of it side by side."""
        self.exact: dict[SSAValue, tuple[str, Attribute]] = {}
        """The C++ of values for lane `j` as a tensor has them, and their type there: they are stored as they are."""

    @abstractmethod
    def print_body(self) -> tuple[str, int, str]:
        """Print the body of the kernel; the number of blocks in C++, the threads of a block, and a comment."""

    # ** the kernel **

    def emit(self) -> Emission:
        blocks, block, what = self.print_body()
        for read, lane, lanes in self.body.vectors:
            if self.body.staged(read) is not None:
                continue
            self.pointers[f"input{read.tensor}"] = None
            if picked(self.nest, read, lane, lanes) is None:
                for e in alignment(self.nest, read, lane, lanes) or []:
                    self.need(e)
        self.is_wide = is_wide(self.nest)
        name = f"{self.name}_kernel_@ID@"
        kernel = self.kernel(name, block, what)
        return Emission((self.launch.header("loops"),), CppText(kernel), CppText(self.host(name, blocks, block)))

    def kernel(self, name: str, block: int, what: str) -> str:
        parameters = [
            *(f"const {element_type(a.type.element_type)}* __restrict__ {a.name}" for a in self.launch.ins),
            *(f"{element_type(a.type.element_type)}* __restrict__ {a.name}" for a in self.launch.outs),
            *(f"{element_type(a.type.element_type)}* {a.name}" for a in self.launch.between),
            *(f"{'Index' if self.is_wide else 'int32_t'} {n}" for n in self.numbers.names.values()),
        ]
        axes = f"{comment(text)}\n" if (text := axes_text(self.nest)) else ""
        sizes = f"{comment(comment_of(self.numbers.names))}\n" if self.numbers.names else ""
        head = [
            *(() if self.is_wide else ("using Index = int32_t;",)),
            *self.shared.declarations(),
            "ait::gpu::wait_for_previous();",
            "ait::gpu::allow_next();",
        ]
        text = "".join(f"  {line}\n" for line in head)
        text += "".join(
            line if line.startswith("#") else f"  {line}" for line in self.body.lines.text().splitlines(True)
        )
        return (
            f"{comment(what)}\n{axes}{sizes}template <int kLanes{', class Index' if self.is_wide else ''}>\n"
            f"__global__ void __launch_bounds__({block}) {name}({', '.join(parameters)}) {{\n{text}}}\n"
        )

    def host(self, name: str, blocks: str, block: int) -> str:
        """The host code that chooses an instance of the kernel and launches it."""
        launch = self.launch
        arguments = [a.name for a in (*launch.ins, *launch.outs, *launch.between)]
        arguments += [launch.cpp(e) for e in self.numbers.names]
        aligned = [f"ait::gpu::is_aligned<{self.lanes}>({p})" for p in self.pointers]
        checks = [f"{launch.cpp(e)} % {self.lanes} == 0" for e in self.checks]
        index = ", int32_t" if self.is_wide else ""
        lines: list[str] = []
        if self.is_wide:
            most = [f"{launch.cpp(e)} < {NARROW_RUN}" for e in extents(self.launch, self.nest)]
            lines.append(f"const bool is_narrow = {' && '.join(dict.fromkeys(most)) or 'true'};")
            checks = ["is_narrow", *checks]
        kernel, lanes = f"{name}<{self.lanes}{index}>", str(self.lanes)
        if self.lanes > 1 and (aligned or checks):
            lines.append(f"const bool is_vector = {' && '.join([*checks, *aligned])};")
            kernel, lanes = f"is_vector ? {kernel} : {name}<1{index}>", f"is_vector ? {lanes} : 1"
        if "lanes" in blocks:
            lines.append(f"const int64_t lanes = {lanes};")
        lines += [
            "ait::gpu::LaunchConfig config;",
            f"config.grid = dim3(ait::gpu::grid_size({blocks}));",
            f"config.block = dim3({block});",
            "config.dependent = true;",
        ]
        given = ", ".join(arguments)
        if self.is_wide:
            lines.append(f"if (!is_narrow) return ait::gpu::launch(ctx, config, {name}<1, int64_t>, {given});")
        lines += [
            f"const auto kernel = {kernel};",
            f"return ait::gpu::launch(ctx, config, kernel, {given});",
        ]
        return "".join(f"{line}\n" for line in lines)

    # ** for all schedules **

    def fit(self, lane: Axis | None) -> None:
        """Reduce the number of lanes if strides have split their axis into shorter axes."""
        self.lanes = self.body.lanes = 1 if lane is None else fitting(lane.count, self.lanes)

    def set_lane(self, lane: Axis | None) -> None:
        self.body.lane = None if lane is None else lane.name
        if lane is not None:
            self.need(lane.count)

    def need(self, e: Expr) -> None:
        """Require that this number is a multiple of the lanes; otherwise the kernel for single elements runs."""
        if self.lanes > 1 and not self.nest.around.divisible(e, self.lanes):
            self.checks[e] = None

    def chunks(self, total: Expr, lane: Axis | None) -> str:
        return self.numbers.text(total) + (" / kLanes" if lane is not None else "")

    def split(self, linear: str, axes: Sequence[Axis], lane: Axis | None) -> None:
        """Define the variables of axes from a linear index, the last axis fastest; the axis of lanes is counted in
        lanes.
        """
        body, lines = self.body, self.body.lines
        names = {a.name: body.variable(a) for a in axes}
        order = [a for a in axes if a is not lane] + ([lane] if lane is not None else [])
        if len(order) == 1:
            lines.add(f"const Index {names[order[0].name]} = {linear}{' * kLanes' if lane is not None else ''};")
            return
        if not order:
            return
        rest = body.new("rest")
        lines.add(f"Index {rest} = {linear};")
        for axis in reversed(order[1:]):
            size = self.numbers.text(axis.count) + (" / kLanes" if axis is lane else "")
            value = f"ait::remainder<Index>({rest}, {size})"
            lines.add(
                f"const Index {names[axis.name]} = {value}{' * kLanes' if axis is lane else ''};",
                f"{rest} = ait::quotient<Index>({rest}, {size});",
            )
        lines.add(f"const Index {names[order[0].name]} = {rest};")

    def vector_along(self, read: Read, lane: str) -> bool:
        found = step(read.offset, lane)
        if found is None or found.as_int() != 1 or read.guards or read.gathers:
            return False
        return self.lanes == 1 or alignment(self.nest, read, lane, self.lanes) is not None

    def print_results(self, rows: Rows, condition: str) -> None:
        """Print the values that a row computes once, and its result if it has only one."""
        body = self.body
        if rows.rest:
            body.print_nodes(rows.once, later=later_values(self.nest, rows.once))
            return
        self.print_stores(rows.once, condition, self.others)

    # ** results **

    def print_stores(self, nodes: Sequence[Node], condition: str, which: Sequence[int]) -> None:
        """Print nodes, and the stores of the results `which` that follow from them, where a condition holds."""
        if not which:
            return
        for i in which:
            if self.is_vector_store(i):
                t = element_type(self.launch.outs[i].type.element_type)
                self.body.lines.add(f"{t} result{i}[kLanes];")
        used = [self.nest.yields[i] for i in which]
        self.body.print_nodes(nodes, lambda: self.stores(condition, which), used, each=True)
        for i in which:
            if self.is_vector_store(i):
                self.flush_store(i, condition)

    def stores(self, condition: str, which: Sequence[int]) -> list[str]:
        body = self.body
        lines: list[str] = []
        for i in which:
            t = element_type(self.launch.outs[i].type.element_type)
            value, element = self.nest.yields[i], self.launch.outs[i].type.element_type
            exact, as_read = self.exact.get(value, ("", None))
            stored = exact if as_read == element else f"ait::convert<{t}>({body.ref(value)})"
            if self.is_vector_store(i):
                lines.append(f"result{i}[j] = {stored};")
            else:
                array, place = self.stored(i)
                lines.append(self.guarded(i, condition, f"{array}[{place}] = {stored};"))
        return lines

    def guarded(self, i: int, condition: str, store: str) -> str:
        """The statement that stores a result if a condition holds; along axes where it has size 1, only the first index
        stores.
        """
        axes = [a for a in self.nest.once_along(i) if i not in self.of_rows or a in self.rows.group]
        parts = [*([condition] if condition else []), *(f"{self.body.index.variables[a.name]} == 0" for a in axes)]
        return f"if ({' && '.join(parts)}) {store}" if parts else store

    def stored(self, i: int) -> tuple[str, str]:
        """The C++ of the array that takes the elements of a result, and of their place there."""
        return self.staged_result(i) or (f"output{i}", self.body.index.text(self.nest.offsets[i]))

    def is_vector_store(self, i: int) -> bool:
        lane, offset = self.body.lane, self.nest.offsets[i]
        if i in self.turned:
            return lane is not None
        found = None if lane is None else step(offset, lane)
        if lane is None or found is None or found.as_int() != 1:
            return False
        return self.lanes == 1 or alignment(self.nest, offset, lane, self.lanes) is not None

    def flush_store(self, i: int, condition: str) -> None:
        """Print the store of all lanes of a result."""
        function, (array, place) = "keep_lanes", self.stored(i)
        if self.staged_result(i) is None:
            function = "store_lanes"
            self.pointers[f"output{i}"] = None
            assert self.body.lane is not None
            for e in alignment(self.nest, self.nest.offsets[i], self.body.lane, self.lanes) or []:
                self.need(e)
        store = f"ait::gpu::{function}({array} + ({place}), result{i});"
        self.body.lines.add(self.guarded(i, condition, store))


def extents(launch: Launch[LoopsOp], nest: Nest) -> list[Expr]:
    """Upper limits of the indices in a launch: the last offset of each tensor, and the points of the results and of
    each fold.

    Known limits below `NARROW_RUN` are left out.
    """
    tensors = [
        total((d - 1) * s for d, s in zip(a.type.dims, a.strides, strict=True)) for a in (*launch.ins, *launch.outs)
    ]
    folds = [fold.points for fold in nest.walk() if isinstance(fold, Fold)]
    found = (*tensors, product(a.count for a in nest.axes), *folds)
    return [e for e in found if (known := e.as_int()) is None or known >= NARROW_RUN]


def is_wide(nest: Nest) -> bool:
    """Whether indices may need more than 31 bits."""
    exprs = [read.offset for read in nest.reads()] + [i for read in nest.reads() for i, _ in read.guards]
    exprs += [*nest.offsets, product(a.count for a in nest.axes)]
    exprs += [fold.points for fold in nest.walk() if isinstance(fold, Fold)]
    gathered = [g.size * g.stride for read in nest.reads() for g in read.gathers]
    return any(nest.scope.magnitude(e) >= NARROW for e in [*exprs, *gathered])
