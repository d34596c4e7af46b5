"""Runs the code of native CPU kernels: one op a case, all cases of a suite in one library, called through ctypes.

Each case is the text of an `ait.graph` that holds one op. Its kernel function is made as the emitter makes it; its buffers are
NumPy arrays laid out with any strides inside of a larger canvas, so that writes outside of the result are seen.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Operation

from ait_mlir.dialects.ait import AIT
from ait_mlir.dialects.ait.data import GraphOp, OutputOp, ParamOp
from ait_mlir.dialects.ait.dtypes import BY_IR, f8E8M0FNU
from ait_mlir.dialects.ait.strided import contiguous_strides
from ait_mlir.dialects.ait.traits import BindsDim, UpdatesOperand
from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import Expr, parse
from ait_mlir.elements import kernel_op
from ait_mlir.ir.parser import parse_text
from ait_mlir.lowering.candidates import Candidate, Step
from ait_mlir.lowering.choices import Choice, Selected
from ait_mlir.lowering.cpp import dim_variable
from ait_mlir.lowering.kernels import Arg, Emission, Kernel, Launch, Target, kernels_for
from ait_mlir.lowering.sources import element_headers
from ait_mlir.reference.core import storage_dtype
from ait_mlir.reference.graph import evaluate_graph

CPU = Target("cpu", "native")
SUFFIX = {"cpu": "cc", "cuda": "cu", "rocm": "hip"}
CANVAS_MARGIN = 24
"""Elements behind the last one of each buffer, to see writes that go too far."""

PRELUDE = """\
#include <stdio.h>
#include "ait/context.h"
#include "ait/model_abi.h"
static int32_t test_fail(void* self, const char* message) {
  snprintf(static_cast<char*>(self), 512, "%s", message);
  return 1;
}
"""


CASE_HEADER = "case.h"
"""The header with `PRELUDE`, for translation units of one case."""
_LABEL = "@CASE@"
"""Stands for the label of a case in its code."""


def parse_graph(text: str) -> GraphOp:
    """The only graph of a text."""
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(AIT)
    module = parse_text(context, text)
    graph = next(op for op in module.walk() if isinstance(op, GraphOp))
    return graph


@dataclass
class Case:
    """One op: its text, its dims, and strides of operands or results (by position) that are not row-major."""

    text: str
    envs: Sequence[Mapping[str, int]] = ({},)
    strides: Mapping[int, Sequence[str]] = field(default_factory=dict)
    offset: int = 0
    """Elements before the first one of each buffer: an odd one misaligns it."""
    kernel: str | None = None
    constants: Sequence[int] = ()
    """The operands that nothing ever writes."""
    below: Mapping[int, int] = field(default_factory=dict[int, int])
    """Of operands that are indices: what all of them are below."""
    offsets: Mapping[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    """Of operands that are offsets of sequences: the rows there are, and the longest sequence."""
    within: Mapping[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    """Operands or results (by position) that lie in the buffer of an earlier one, so many elements behind its first."""
    unread: Sequence[int] = ()
    """The results (by position) that nobody reads, and that the kernel need not write."""

    @cached_property
    def graph(self) -> GraphOp:
        return parse_graph(self.text)

    @cached_property
    def specified(self) -> Operation:
        """The op of the text."""
        (found,) = (op for op in self.graph.block.ops if not isinstance(op, OutputOp | ParamOp))
        return found

    @cached_property
    def op(self) -> Operation:
        """The op that a kernel runs, with the operands of the op of the text."""
        found = kernel_op(self.specified)
        assert found.operands == self.specified.operands, f"the loops of {self.specified.name} have other operands"
        return found

    def no_larger(self) -> Self:
        """The case with dims that reach no further than in `envs`, and take two values or more.

        A template compiles a kernel for each length that the dims allow; of these the case runs a few.
        """
        scope = scope_of(self.op)
        most = {d.name: max(d.lo + 1, *(env.get(d.name, 0) for env in self.envs)) for d in scope.dims}
        dims = [d if d.upper is not None else replace(d, hi=min(d.hi, most[d.name])) for d in scope.dims]
        text = re.sub(r"(?<=dims \{)[^{}]+(?=\} \{)", ", ".join(map(str, dims)), self.text, count=1)
        return replace(self, text=text)

    def args(self) -> tuple[list[Arg], list[Arg]]:
        values = [*self.op.operands, *self.op.results]
        args: list[Arg] = []
        for i, value in enumerate(values):
            t = tensor_type(value)
            strides = tuple(parse(s) for s in self.strides[i]) if i in self.strides else contiguous_strides(t.dims)
            name = f"input{i}" if i < len(self.op.operands) else f"output{i - len(self.op.operands)}"
            args.append(Arg(name, t, strides, i in self.constants, i in self.unread))
        return args[: len(self.op.operands)], args[len(self.op.operands) :]

    def dims(self) -> list[str]:
        return [dim.name for dim in scope_of(self.op).dims]

    def chosen(self, target: Target) -> tuple[Kernel, Mapping[str, int]]:
        """The kernel that runs the case, and its configuration."""
        found = [k for k in kernels_for(self.op, target) if k.provider == "native"]
        assert found, f"no native kernel for {self.op.name}"
        return found[0], found[0].configs(self.op, target)[0]

    def selected(self, target: Target) -> Selected:
        """The choice of the case's kernel, with the layout of its workspace."""
        kernel, config = self.chosen(target)
        choice = Choice((Candidate.of(None, [(kernel.provider, config)]),))
        return Selected(self.op, choice, target, ((Step(self.op, kernel, config, ()),),))

    def workspace_bytes(self, target: Target, env: Mapping[str, int]) -> int:
        """Bytes of workspace at these dims: the buffers between the kernel's launches, and scratch memory."""
        return self.selected(target).workspace.evaluate(env)

    def between(self, target: Target) -> tuple[list[Arg], list[Expr], Expr]:
        """The buffers between the kernel's launches, their offsets in the workspace, and the offset of
        scratch memory.
        """
        ((step,),) = (selected := self.selected(target)).candidates
        buffers, scratch = selected.beside(step, (step,))
        args = [Arg(f"between{i}", b.type, contiguous_strides(b.type.dims)) for i, b in enumerate(buffers)]
        return args, [b.offset for b in buffers], scratch

    def emissions(self, target: Target) -> tuple[Emission, ...]:
        """The code of each launch."""
        kernel, config = self.chosen(target)
        ins, outs = self.args()
        dims = {name: dim_variable(i) for i, name in enumerate(self.dims())}
        emitted = kernel.emit(Launch(self.op, ins, outs, dims, config, target, self.between(target)[0]))
        return (emitted,) if isinstance(emitted, Emission) else emitted

    def code(self, index: int | str, target: Target = CPU) -> tuple[tuple[str, ...], str]:
        """Includes and the C++ of this case, as the emitter makes it: a function for each launch."""
        ins, outs = self.args()
        results = [*outs, *self.between(target)[0]]
        pointers = [f"const {cpp_type(a)}* {a.name}" for a in ins] + [f"{cpp_type(a)}* {a.name}" for a in results]
        dims = [dim_variable(i) for i in range(len(self.dims()))]
        parameters = ", ".join([*pointers, "void* workspace", *(f"int64_t {d}" for d in dims)])
        includes: dict[str, None] = {}
        lines: list[str] = []
        for name, emission in launch_names(index, self.emissions(target)):
            includes |= dict.fromkeys(emission.includes)
            lines += [
                emission.definitions.replace("@ID@", name),
                f"static int32_t k{name}(const ait::Context& ctx, {parameters}) {{",
                "  (void)ctx; (void)workspace;" + "".join(f" (void){d};" for d in dims),
                "  " + emission.body.replace("@ID@", name) + "}",
            ]
        return tuple(includes), "\n".join(lines)

    def entry(self, index: int | str, target: Target = CPU) -> str:
        """The function that runs the launches of a case, one after the other."""
        ins, outs = self.args()
        between, offsets, scratch = self.between(target)
        dims = {name: f"dims[{i}]" for i, name in enumerate(self.dims())}
        given = [f"static_cast<const {cpp_type(a)}*>(buffers[{i}])" for i, a in enumerate(ins)]
        given += [f"static_cast<{cpp_type(a)}*>(buffers[{i}])" for i, a in enumerate(outs, len(ins))]
        workspace = f"static_cast<char*>(buffers[{len(given)}])"
        for arg, offset in zip(between, offsets, strict=True):
            given.append(f"reinterpret_cast<{cpp_type(arg)}*>({workspace} + {offset.cpp(dims)})")
        arguments = ", ".join([*given, f"{workspace} + {scratch.cpp(dims)}", *dims.values()])
        calls = [f"k{name}(ctx, {arguments})" for name, _ in launch_names(index, self.emissions(target))]
        return (
            f'extern "C" int32_t run{index}(void* const* buffers, const int64_t* dims, char* message, void* stream) {{\n'
            f"  ait_host_v1 host = {{message, test_fail}};\n"
            f"  const ait::Context ctx{{stream, &host}};\n"
            f"  (void)buffers; (void)dims;\n"
            + "".join(f"  if (const int32_t status = {call}) return status;\n" for call in calls)
            + "  return 0;\n}\n"
        )


def launch_names(index: int | str, emissions: Sequence[Emission]) -> list[tuple[str, Emission]]:
    """The unique name of each launch of the case with this number or label: `3`, then `3_1`."""
    return [(f"{index}_{j}" if j else str(index), emission) for j, emission in enumerate(emissions)]


def cpp_type(arg: Arg) -> str:
    """The C++ element type of a buffer."""
    return BY_IR[arg.type.element_type].cpp


def source_of(cases: Sequence[Case], target: Target = CPU, first: int = 0) -> str:
    """One translation unit with all cases and their entry points, numbered from `first`."""
    includes: dict[str, None] = {}
    bodies: list[str] = []
    for i, case in enumerate(cases, first):
        paths, code = case.code(i, target)
        includes.update(dict.fromkeys(paths))
        bodies.append(code + "\n" + case.entry(i, target))
    code = "\n".join(bodies)
    includes = dict.fromkeys((*element_headers(code), *includes, "ait/dims.h"))
    return PRELUDE + "".join(f'#include "{p}"\n' for p in includes) + "\n" + code


def sources_of(cases: Sequence[Case], target: Target = CPU, size: int = 64) -> dict[str, str]:
    """The cases in translation units of `size`, so that they compile side by side."""
    return {
        f"cases{i}.{SUFFIX[target.kind]}": source_of(cases[i : i + size], target, i) for i in range(0, len(cases), size)
    }


def labeled_source(case: Case, target: Target) -> tuple[str, str]:
    """A label that the code of a case determines, and its translation unit, with names that have the label.

    The unit does not depend on the other cases of a library, and can stand in one unit with others.
    """
    includes, code = case.code(_LABEL, target)
    code = f"{code}\n{case.entry(_LABEL, target)}"
    headers = dict.fromkeys((CASE_HEADER, *element_headers(code), *includes, "ait/dims.h"))
    text = "".join(f'#include "{p}"\n' for p in headers) + f"\n{code}"
    label = hashlib.sha256(text.encode()).hexdigest()[:16]
    return label, text.replace(_LABEL, label)


class Library:
    """The compiled cases of a suite, for the CPU or for the card of this machine.

    For a card each case is a source of its own, so the cache has its object whichever other cases a library has; the
    build joins sources in units (`lowering/joining.py`).
    """

    def __init__(self, cases: Sequence[Case], workdir: Path, target: Target = CPU) -> None:
        from ait_mlir.lowering.build import build_library

        self.target = target
        self.index: dict[int, int | str] = {}
        sources = self.sources(cases, workdir)
        self.lib = ctypes.CDLL(str(build_library(sources, target, workdir)))

    def sources(self, cases: Sequence[Case], workdir: Path) -> dict[str, str]:
        """The sources of the library, by name; sets the number or label of each case."""
        if not self.target.is_gpu:
            self.index |= {id(case): i for i, case in enumerate(cases)}
            return sources_of(cases, self.target)
        sources = {CASE_HEADER: "#pragma once\n" + PRELUDE}
        for case in cases:
            self.index[id(case)], text = labeled_source(case, self.target)
            sources[f"k_{self.index[id(case)]}.{SUFFIX[self.target.kind]}"] = text
        return sources

    def call(
        self, case: Case, env: Mapping[str, int], pointers: Sequence[int], stream: int = 0, workspace: int = 0
    ) -> None:
        """Run a case on buffers at these addresses; raises `RuntimeError` with the message of a failed run."""
        buffers = (ctypes.c_void_p * (len(pointers) + 1))(*pointers, workspace or None)
        dims = (ctypes.c_int64 * max(1, len(case.dims())))(*(env[d] for d in case.dims()))
        message = ctypes.create_string_buffer(512)
        function: Any = self.lib[f"run{self.index[id(case)]}"]
        if function(buffers, dims, message, ctypes.c_void_p(stream)) != 0:
            raise RuntimeError(message.value.decode())

    def run(self, case: Case, env: Mapping[str, int], inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results of a case; checks that nothing was written beside them."""
        ins, outs = case.args()
        placed: list[tuple[np.ndarray, np.ndarray]] = []
        for i, arg in enumerate((*ins, *outs)):
            other, behind = case.within.get(i, (None, 0))
            canvas = None if other is None else placed[other][0]
            placed.append(lay_out(arg, env, case.offset + behind, canvas))
        for (_, view), array in zip(placed, inputs, strict=False):
            view[...] = array
        before = [canvas.copy() for canvas, _ in placed]
        if isinstance(case.op, UpdatesOperand):  # its result lies over its first operand, of which the rest stays
            placed[len(ins)][1][...] = inputs[0]
        if self.target.is_gpu:
            self._call_on_card(case, env, placed)
        else:
            workspace = scratch(case.workspace_bytes(self.target, env))
            self.call(case, env, [view.ctypes.data for _, view in placed], workspace=workspace.ctypes.data)
        written = [view for _, view in placed[len(ins) :]]
        results = [view.copy() for view in written]
        if isinstance(case.op, BindsDim):
            results[0] = results[0][: int(results[-1])]
        for view in written:
            view.view(f"u{view.itemsize}")[...] = int.from_bytes(b"\xa5" * view.itemsize, "little")
        for i, ((canvas, _), old) in enumerate(zip(placed, before, strict=True)):
            assert canvas.tobytes() == old.tobytes(), f"buffer {i} was written outside of the results"
        return results

    def _call_on_card(
        self, case: Case, env: Mapping[str, int], placed: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> None:
        import torch

        by_id = {id(canvas): torch.from_numpy(canvas.view(np.uint8)).cuda() for canvas, _ in placed}
        canvases = [by_id[id(canvas)] for canvas, _ in placed]
        offsets = [view.ctypes.data - canvas.ctypes.data for canvas, view in placed]
        workspace = torch.full((case.workspace_bytes(self.target, env),), 0xA5, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        pointers = [c.data_ptr() + o for c, o in zip(canvases, offsets, strict=True)]
        self.call(case, env, pointers, workspace=workspace.data_ptr())
        torch.cuda.synchronize()
        for (canvas, _), on_card in zip(placed, canvases, strict=True):
            canvas.view(np.uint8)[...] = on_card.cpu().numpy()


def scratch(size: int) -> np.ndarray:
    """A workspace of `size` bytes, aligned to 64, full of 0xa5."""
    raw = np.full(size + 64, 0xA5, np.uint8)
    return raw[-raw.ctypes.data % 64 :][:size]


def lay_out(
    arg: Arg, env: Mapping[str, int], offset: int, canvas: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """A canvas of 0xa5 bytes, aligned to 64 bytes, and a view with the strides of `arg` from its element `offset` on;
    of a given canvas, if there is one."""
    dtype = storage_dtype(arg.type.element_type)
    shape = [d.evaluate(env) for d in arg.type.dims]
    strides = [s.evaluate(env) for s in arg.strides]
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if all(shape) else 0
    size = (extent + offset + CANVAS_MARGIN) * dtype.itemsize
    if canvas is None:
        raw = np.full(size + 64, 0xA5, np.uint8)
        start = -raw.ctypes.data % 64
        canvas = raw[start : start + size].view(dtype)
    view = np.ndarray(shape, dtype, canvas, offset * dtype.itemsize, [s * dtype.itemsize for s in strides])
    return canvas, view


# ** values **


def random_inputs(case: Case, env: Mapping[str, int], seed: int = 0) -> list[np.ndarray]:
    """Normal floats with a few special values, small integers, booleans."""
    rng = np.random.default_rng(seed)
    arrays: list[np.ndarray] = []
    for position, value in enumerate(case.op.operands):
        t = tensor_type(value)
        shape = tuple(d.evaluate(env) for d in t.dims)
        dtype = storage_dtype(t.element_type)
        if dtype == np.bool_:
            arrays.append(rng.integers(0, 2, shape).astype(dtype))
        elif position in case.below:
            arrays.append(random_indices(rng, case.below[position], shape).astype(dtype))
        elif position in case.offsets:
            rows, longest = case.offsets[position]
            arrays.append(random_offsets(rng, shape[0], parse(rows).evaluate(env), longest).astype(dtype))
        elif t.element_type == f8E8M0FNU:
            arrays.append(np.exp2(rng.integers(-9, 10, shape)).astype(dtype))
        elif dtype.kind in "iu":
            arrays.append(rng.integers(-9, 10, shape).astype(dtype))
        else:
            arrays.append((rng.standard_normal(shape) * 2).astype(dtype))
    return arrays


def random_indices(rng: np.random.Generator, below: int, shape: tuple[int, ...]) -> np.ndarray:
    """Indices from 0 up, no two alike where that can be."""
    count = int(np.prod(shape))
    return np.resize(rng.permutation(max(below, 1)), count).reshape(shape) if count else np.zeros(shape)


def random_offsets(rng: np.random.Generator, count: int, rows: int, longest: int) -> np.ndarray:
    """Offsets that never fall, of sequences within `rows` rows and none above `longest`; some are empty."""
    lengths = rng.integers(0, longest + 1, count) * rng.integers(0, 2, count)
    return np.minimum(np.cumsum(lengths) - lengths[:1].sum(), rows)


def reference(case: Case, env: Mapping[str, int], inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results in float64 (integers in their own type)."""
    graph = case.graph
    by_value = dict(zip(case.op.operands, inputs, strict=True))
    named = {name: by_value[value] for name, value in graph.inputs() if value in by_value}
    named |= {
        name: np.zeros([d.evaluate(env) for d in tensor_type(v).dims])
        for name, v in graph.inputs()
        if v not in by_value
    }
    params = {p.param_name.data: by_value[p.output] for p in graph.params()}
    outputs = evaluate_graph(graph, named, params, env)
    order = {op.operands[0]: op.output_name.data for op in graph.outputs()}
    return [outputs[order[r]] for r in case.specified.results]


def ulp(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The distance from each value to its neighbour in `dtype`, as float64."""
    import ml_dtypes

    info = ml_dtypes.finfo(dtype)
    magnitude = np.maximum(np.abs(values.astype(np.float64)), float(info.tiny))
    return np.exp2(np.floor(np.log2(magnitude))) * float(info.eps)


def assert_close(
    got: np.ndarray, want: np.ndarray, ulps: float, floor: float = 0.0, stored: np.ndarray | None = None
) -> None:
    """Each value within `ulps` of its own dtype and `floor` times the largest; NaN and inf in the same places; integers equal.

    `stored` is a value on the way that the kernel under test also rounds to the dtype: half an ulp of it is allowed on top.
    """
    assert got.shape == want.shape
    if got.dtype.kind in "iub" or got.dtype.name in ("int4", "uint4"):
        np.testing.assert_array_equal(got, want)
        return
    with np.errstate(over="ignore"):
        rounded = want.astype(got.dtype).astype(np.float64)
    value = got.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(value), np.isnan(rounded))
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(value[~finite & ~np.isnan(rounded)], rounded[~finite & ~np.isnan(rounded)])
    if not finite.any():
        return
    scale = np.abs(want[finite]).max()
    allowed = ulps * ulp(want[finite], got.dtype) + floor * scale
    if stored is not None:
        allowed = allowed + 0.55 * ulp(stored[finite], got.dtype)
    error = np.abs(value[finite] - want[finite])
    worst = int(np.argmax(error - allowed))
    assert (error <= allowed).all(), (
        f"got {value[finite].ravel()[worst]!r}, expected {want[finite].ravel()[worst]!r}, "
        f"{(error / ulp(want[finite], got.dtype)).max():.2f} ulp"
    )


Stored = Callable[[list[np.ndarray], np.ndarray], np.ndarray]
"""From the inputs of a case and its exact result to the value on the way that the kernel rounds, too."""


def check(library: Library, case: Case, ulps: float, floor: float = 0.0, stored: Stored | None = None) -> None:
    """Run a case at each of its environments and compare with the reference."""
    for env in case.envs:
        inputs = random_inputs(case, env)
        for got, want in zip(library.run(case, env, inputs), reference(case, env, inputs), strict=True):
            assert_close(got, want, ulps, floor, None if stored is None else stored(inputs, want))
