"""Scatters in an order of values that a region computes, on a GPU: in place, or with a result of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from xdsl.ir import Attribute, SSAValue

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.dialects.ait.scatter_loops import OrderedLoops, ScatterLoopsOp, SegmentLoopsOp
from ait_mlir.dialects.ait.strided import contiguous_strides, is_contiguous
from ait_mlir.dialects.ait.syntax import int_list
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Scope
from ait_mlir.lowering.cpp import CppText, comment, element_type
from ait_mlir.lowering.kernels.amounts import bytes_moved
from ait_mlir.lowering.kernels.base import Arg, Emission, Kernel, Launch, Strides
from ait_mlir.lowering.kernels.loops import ONE, ZERO, Loop, braces, collapse, single, sizes, steps
from ait_mlir.lowering.loops.body import Body
from ait_mlir.lowering.loops.gpu_kernel import is_wide
from ait_mlir.lowering.loops.nest import Axis, Nest, Read, alignment, axes_text, nest_of, picked
from ait_mlir.lowering.loops.text import Numbers
from ait_mlir.lowering.target import Target


def nest_of_values(op: OrderedLoops | LoopsOp, ins: Sequence[Strides] | None = None) -> Nest | None:
    """The nest of the values, with an axis for each iteration dim that has not size 1; None where reads divide an
    index. `ins` are the strides of the tensors that it reads, by default row-major.
    """
    nest = nest_of(op, ins, merge=False)
    return nest if [a.count for a in nest.axes] == [n for n in op.sizes if n is not ONE] else None


def is_order_contiguous(op: OrderedLoops, position: int, strides: Strides, scope: Scope) -> bool:
    """Whether an operand may have strides: keys and places are contiguous, others have any."""
    return position not in (1, 2) or all(stride.as_int() == 1 for stride in strides)


class ScatterLoopsKernel(Kernel[ScatterLoopsOp]):
    """`ait.scatter_loops` in place, any strides of the tensor: `OrderedScatterKernel`, which computes a value where it
    is combined, and rounds it to the type of the tensor before.
    """

    name = "scatter_loops"
    ops = (ScatterLoopsOp,)
    gpu_only = True

    def matches(self, op: ScatterLoopsOp, target: Target) -> bool:
        return target.is_gpu and nest_of_values(op) is not None

    def accepts(self, op: ScatterLoopsOp, position: int, strides: Strides, scope: Scope) -> bool:
        return is_order_contiguous(op, position, strides, scope)

    def seconds(self, op: ScatterLoopsOp, target: Target) -> float:
        return target.launch_seconds + 2 * bytes_moved(op, scope_of(op)) / target.bandwidth

    def emit(self, launch: Launch[ScatterLoopsOp]) -> Emission:
        keys, places = launch.ins[1:3]
        values, space = Values(launch), Space(launch)
        body = (
            f"return ait::gpu::scatter_ordered<{space.groups}>(ctx, {space.text}, {values.made()}, "
            f"{launch.outs[0].name}, {keys.name}, {places.name}, {values.in_words()});\n"
        )
        headers = (launch.header("scatter_sorted"), launch.header("loops"))
        return Emission(headers, CppText(values.definition()), CppText(body))


class SegmentLoopsKernel(Kernel[SegmentLoopsOp]):
    """`ait.segment_loops`: a block computes neighbouring elements of the result, from any strides of the tensor."""

    name = "segment_loops"
    ops = (SegmentLoopsOp,)
    gpu_only = True

    def matches(self, op: SegmentLoopsOp, target: Target) -> bool:
        nests = [nest_of_values(each) for each in (op, op.following) if each is not None]
        return target.is_gpu and None not in nests

    def accepts(self, op: SegmentLoopsOp, position: int, strides: Strides, scope: Scope) -> bool:
        if position == len(op.operands) and op.following is not None:
            return is_contiguous(tensor_type(op.output).dims, strides, scope)
        return is_order_contiguous(op, position, strides, scope)

    def seconds(self, op: SegmentLoopsOp, target: Target) -> float:
        return target.launch_seconds + 2 * bytes_moved(op, scope_of(op)) / target.bandwidth

    def emit(self, launch: Launch[SegmentLoopsOp]) -> Emission:
        x, keys, places = launch.ins[:3]
        values, space, cpp = Values(launch), Space(launch, x), launch.dims
        loops = launch.op.following
        following = None if loops is None else Following(launch, loops)
        finish = "ait::gpu::detail::PlainSegments{}" if following is None else following.made()
        in_words = [v for f in (values, following) if f is not None and (v := f.in_words()) != "true"]
        body = (
            f"return ait::gpu::scatter_segments<{space.groups}, {space.lines}>(ctx, {space.text}, {values.made()}, "
            f"{x.name}, "
            f"{braces((x.strides[d] for d in int_list(launch.op.dims)), cpp)}, {steps(space.columns, 2, cpp)}, "
            f"{launch.outs[0].name}, {keys.name}, {places.name}, {finish}, {' && '.join(in_words) or 'true'});\n"
        )
        headers = (launch.header("scatter_segments"), launch.header("loops"))
        texts = [f.definition() for f in (values, following) if f is not None]
        return Emission(headers, CppText("\n".join(texts)), CppText(body))


class Space:
    """The C++ of the space of a launch. Its loops have the strides of the values, of the result, and of the tensor `x`
    if the values are combined with another one than the result.
    """

    def __init__(self, launch: Launch[ScatterLoopsOp] | Launch[SegmentLoopsOp], x: Arg | None = None) -> None:
        op, cpp, (y,) = launch.op, launch.dims, launch.outs
        dims, kept = int_list(op.dims), int_list(op.kept)
        rest = [d for d in range(tensor_type(op.input).rank) if d not in dims]
        whole = [y] if x is None else [y, x]
        along = {at: [t.strides[d] for t in whole] for d, at in zip(rest, kept, strict=True)}
        loops = [
            Loop(size, (stride, *along.get(at, [ZERO] * len(whole))))
            for at, (size, stride) in enumerate(zip(op.sizes, contiguous_strides(op.sizes), strict=True))
        ]
        one = single(1 + len(whole))
        serial, self.columns = (
            collapse([loops[at] for at in chosen] or [one], launch.scope)
            for chosen in ([at for at in range(len(loops)) if at not in along], sorted(along))
        )
        nested = [*serial, one, *self.columns]
        none = braces([ZERO] * len(nested), cpp)
        self.groups = f"ait::{op.kind.data.capitalize()}Element, {len(serial)}, 1"
        """The template arguments: how values are combined, the loops of places and those of rows."""
        is_line = bool(along) and len(serial) == len(dims) == 1
        steps_of_line = [*serial[0].strides[:1], *(y.strides[d] for d in dims)]
        self.lines = "true" if is_line and all(by.as_int() == 1 for by in steps_of_line) else "false"
        """Whether indices name elements, and values have places, side by side in memory."""
        self.text = (
            f"ait::indexed_space({sizes(nested, cpp)}, {steps(nested, 0, cpp)}, {steps(nested, 1, cpp)}, "
            f"{{{', '.join(['static_cast<const int32_t*>(nullptr)'] * len(dims))}}}, "
            f"{{{', '.join([none] * len(dims))}}}, {braces((y.type.dims[d] for d in dims), cpp)}, "
            f"{braces((y.strides[d] for d in dims), cpp)})"
        )


class Functor:
    """A struct that computes neighbouring elements from their offset in row-major order: a method on lanes along the
    last axis, or on a single element.
    """

    word: ClassVar[str]
    comment: ClassVar[str]

    def __init__(
        self, launch: Launch[Any], nest: Nest, inputs: Mapping[int, Arg], element: Attribute, lanes: int
    ) -> None:
        """`inputs` are the tensors in memory by their number in the nest, `lanes` 0 if neighbours are not along the
        last axis.
        """
        self.launch, self.nest, self.inputs, self.lanes = launch, nest, inputs, lanes
        self.element = element_type(element)
        self.lane: Axis | None = nest.axes[-1] if lanes else None
        self.index = "int64_t" if is_wide(nest) else "int32_t"
        self.numbers = Numbers()
        self.body = Body.of(nest, "gpu", self.numbers)
        self.body.clamps = True

    def print(self) -> None:
        body, lines = self.body, self.body.lines
        names = {axis: body.variable(axis) for axis in self.nest.axes}
        lines.add(f"using Index = {self.index};")
        if names:
            rest = body.new("rest")
            lines.add(f"Index {rest} = static_cast<Index>(offset);")
            first, *inner = self.nest.axes
            for axis in reversed(inner):
                size = self.numbers.text(axis.count)
                lines.add(
                    f"const Index {names[axis]} = ait::remainder<Index>({rest}, {size});",
                    f"{rest} = ait::quotient<Index>({rest}, {size});",
                )
            lines.add(f"const Index {names[first]} = {rest};")
        if self.lane is not None:
            body.lane, body.lanes = self.lane.name, self.lanes
        (value,) = self.nest.yields
        place = "0" if self.lane is None else "j"
        body.print_nodes(
            self.nest.nodes,
            lambda: [f"result[{place}] = ait::convert<{self.element}>({body.ref(value)});"],
            [value],
            each=True,
        )

    def method(self) -> str:
        """The first lines of the method, up to its brace."""
        raise NotImplementedError

    def definition(self) -> str:
        """The C++ of the functor's type."""
        fields = [f"const {element_type(a.type.element_type)}* input{i};" for i, a in self.inputs.items()]
        fields += [f"{self.index} {name};" for name in self.numbers.names.values()]
        text = "".join(
            line if line.startswith("#") else f"    {line}" for line in self.body.lines.text().splitlines(True)
        )
        axes = f"{comment(text_of)}\n" if (text_of := axes_text(self.nest)) else ""
        return (
            f"{comment(self.comment)}\n{axes}struct {self.word}_@ID@ {{\n"
            + "".join(f"  {field}\n" for field in fields)
            + f"  {self.method()} {{\n{text}  }}\n}};\n"
        )

    def made(self) -> str:
        """The functor, from the arguments of the launch."""
        given = [a.name for a in self.inputs.values()]
        given += [f"static_cast<{self.index}>({self.launch.cpp(e)})" for e in self.numbers.names]
        return f"{self.word}_@ID@{{{', '.join(given)}}}"

    def in_words(self) -> str:
        """Whether neighbours may be computed together: operands that are read in words begin on one."""
        if self.lane is None:
            return "false"
        checks: dict[str, None] = {}
        for read, lane, lanes in self.body.vectors:
            checks[f"ait::gpu::is_aligned<{lanes}>({self.inputs[read.tensor].name})"] = None
            if picked(self.nest, read, lane, lanes) is None:
                for e in alignment(self.nest, read, lane, lanes) or []:
                    if not self.nest.around.divisible(e, lanes):
                        checks[f"{self.launch.cpp(e)} % {lanes} == 0"] = None
        return " && ".join(checks) or "true"


def lanes_of_columns(op: OrderedLoops) -> int:
    """The neighbours of a word of the tensor."""
    return 16 // BY_IR[tensor_type(op.input).element_type].bytes


class Values(Functor):
    """Computes the values of a scatter from an offset in the space."""

    word = "values"
    comment = "Computes neighbouring values from an offset in the space on."

    def __init__(self, launch: Launch[ScatterLoopsOp] | Launch[SegmentLoopsOp]) -> None:
        op, last = launch.op, len(launch.op.sizes) - 1
        inputs = launch.ins[op.FIRST_INPUT : op.FIRST_INPUT + len(op.inputs)]
        nest = nest_of_values(op, [a.strides for a in inputs])
        assert nest is not None, "the kernel matches"
        is_lane = nest.axes and op.sizes[last] is not ONE and last in int_list(op.kept)
        lanes = lanes_of_columns(op) if is_lane else 0
        super().__init__(launch, nest, dict(enumerate(inputs)), op.values_type.element_type, lanes)
        self.print()

    def method(self) -> str:
        return (
            f"template <int kLanes>\n  __device__ __forceinline__ void load(int64_t offset, {self.element} "
            "(&result)[kLanes]) const"
        )


class Following(Functor):
    """Computes elements of a result from what is combined, and from the offset of the first in the result."""

    word = "following"
    comment = "Computes neighbouring elements of the result from what is combined."

    def __init__(self, launch: Launch[SegmentLoopsOp], loops: LoopsOp) -> None:
        op = launch.op
        extras = launch.ins[op.FIRST_INPUT + len(op.inputs) :]
        whole = contiguous_strides(tensor_type(op.input).dims)
        arguments: list[SSAValue] = list(op.then.block.args)
        given = {i: arguments.index(v) for i, v in enumerate(loops.operands)}
        inputs = {i: extras[at - 1] for i, at in given.items() if at}
        strides = [inputs[i].strides if i in inputs else whole for i in given]
        nest = nest_of_values(loops, strides)
        assert nest is not None, "the kernel matches"
        last = len(loops.sizes) - 1
        is_lane = nest.axes and loops.sizes[last] is not ONE and last not in int_list(op.dims)
        lanes = lanes_of_columns(op) if is_lane else 0
        super().__init__(launch, nest, inputs, tensor_type(op.output).element_type, lanes)
        sums = {node.result for node in nest.nodes if isinstance(node, Read) and node.tensor not in inputs}
        self.body.kept = lambda value: f"sums[{'j' if lanes else '0'}]" if value in sums else None
        self.print()

    def method(self) -> str:
        return (
            "template <class A, int kLanes>\n  __device__ __forceinline__ void apply(int64_t offset, "
            f"const A (&sums)[kLanes], {self.element} (&result)[kLanes]) const"
        )


KERNELS = (ScatterLoopsKernel(), SegmentLoopsKernel())
