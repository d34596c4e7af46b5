"""Graphs as text, compiled for the CPU, run through `Model` and compared with the reference.

Many graphs go into one program, and all of its kernels into one file, so that the compiler reads our headers once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.types import tensor_type
from ait_mlir.driver import emit, literal_array, run_to_phase
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, parse_text
from ait_mlir.ir.source import SourceText
from ait_mlir.lowering.build import build_library
from ait_mlir.lowering.kernels import Target
from ait_mlir.options import CompileOptions
from ait_mlir.passes.checks.check_semantics import moved_outputs, param_types
from ait_mlir.reference import evaluate_graph
from ait_mlir.reference.sampling import RandomParams, index_bound, random_input
from ait_mlir.runtime import Model
from ait_mlir.runtime.data import empty_strided

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
Dims = Mapping[str, int]
CPU = Target("cpu", "native")

ERROR_RATIO, ERROR_ULPS = 4.0, 8.0
"""How far from the exact result a run may be: this many times the error of a plain implementation that rounds after
every op, or of what an ulp in the inputs does, plus this many ulps of the largest value of the output."""
DISTURBANCES = 8
_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


@dataclass
class Compiled:
    """A graph as it was written, its planned program, and the model that was made from it."""

    graph: GraphOp
    planned: ModuleOp
    model: Model
    params: RandomParams

    def inputs(self, dims: Dims, seed: int = 0, special: bool = False) -> Arrays:
        """Random inputs at some dims, which lie as the model reads them."""
        made: Arrays = {}
        strides = self.model.input_strides({name: dims[name] for name in self.model.dims})
        for name, value in self.graph.inputs():
            type_ = tensor_type(value)
            shape = tuple(d.evaluate(dims) for d in type_.dims)
            array = np.asarray(random_input(name, shape, type_, index_bound(value), seed, special))
            made[name] = empty_strided(array.dtype, shape, strides[name])
            made[name][...] = array
        return made

    def run(self, inputs: Arrays) -> Arrays:
        """The outputs of a run, which works on copies of the state; everything that was not written is NaN, or -1."""
        with self.model.private_state(inputs) as own:
            outputs = self.model.make_outputs(own)
            for array in outputs:
                if not any(array is value for value in own.values()):
                    array[...] = np.full(array.nbytes, 0xFF, np.uint8).view(array.dtype).reshape(array.shape)
            return self.model.run(own, outputs)

    def problems(self, dims: Dims, seed: int = 0, special: bool = False) -> list[str]:
        """Run at some dims, on request with NaN and infinities in the inputs; returns the errors of each output."""
        inputs = self.inputs(dims, seed, special)
        found = self.run(inputs)
        exact = evaluate_graph(self.graph, inputs, self.params, dims)
        plain = evaluate_graph(self.graph, inputs, self.params, dims, rounding=True)
        moved = moved_outputs(self.graph)
        told: list[str] = []
        for name, array in found.items():
            problem = difference(array, exact[name], [plain[name]], name in moved)
            if problem is not None and name not in moved:
                problem = difference(array, exact[name], [plain[name], *self.disturbed(inputs, dims, name)], False)
            if problem is not None:
                told.append(f"output {name!r} at {dict(dims)}: {problem}")
        return told

    def disturbed(self, inputs: Arrays, dims: Dims, output: str) -> list[Array]:
        """Exact results for inputs and params that are each off by an ulp: how much the graph magnifies errors."""
        return [
            evaluate_graph(self.graph, nudged(inputs, seed), nudged(self.params, seed), dims)[output]
            for seed in range(DISTURBANCES)
        ]


def nudged(arrays: Mapping[str, Array], seed: int) -> Arrays:
    """The floats of some arrays, in float64, each off by up to an ulp of its dtype."""
    rng = np.random.default_rng(seed)
    out: Arrays = {}
    for name in arrays:
        array = arrays[name]
        epsilon = _EPSILON.get(array.dtype.name)
        if epsilon is None:
            out[name] = array
        else:
            out[name] = array.astype(np.float64) * (1 + epsilon * rng.uniform(-1, 1, array.shape))
    return out


def difference(found: Array, exact: Array, others: Sequence[Array], moved: bool) -> str | None:
    """How an output is wrong, None if it is not: by rounding, or bitwise where elements only move or are integers.

    `others` are other results that are as good as can be asked for.
    """
    if found.shape != exact.shape:
        return f"shape {found.shape} instead of {exact.shape}"
    if found.dtype.name not in _EPSILON or moved:
        wrong = different(found, exact)
        close = 0 if moved else max(different(other, exact) for other in others)  # comparisons of what is nearly equal
        return f"{wrong} of {found.size} elements differ, {close} by rounding" if wrong > ERROR_RATIO * close else None
    got = found.astype(np.float64)
    with np.errstate(all="ignore"):
        largest = float(np.finfo(found.dtype).max) if found.dtype.name != "bfloat16" else 3.3e38
        exact = np.where(np.abs(exact) > largest, np.sign(exact) * np.inf, exact)
        usual = np.isfinite(exact)
        for other in others:  # where one of them is not finite, rounding decides
            usual &= np.isfinite(other)
        if not np.isfinite(got[usual]).all():
            return f"{(~np.isfinite(got[usual])).sum()} elements are not finite"
        agreed = ~np.isfinite(exact)
        for other in others:
            agreed &= np.where(np.abs(other) > largest, np.sign(other) * np.inf, other) == exact
            agreed |= np.isnan(exact) & np.isnan(other)
        if different(got[agreed], exact[agreed]):
            return f"{different(got[agreed], exact[agreed])} elements are not the NaN or infinity they must be"
        if not usual.any():
            return None
        plain_error = max(np.abs(other - exact)[usual].max() for other in others)
        scale = np.abs(exact)[usual].max()
        error = np.abs(got - exact)[usual]
    allowed = ERROR_RATIO * plain_error + ERROR_ULPS * _EPSILON[found.dtype.name] * scale
    if error.max() <= allowed:
        return None
    return f"an error of {error.max():.3g}, {plain_error:.3g} for a plain implementation, {scale:.3g} the largest value"


def different(a: Array, b: Array) -> int:
    """How many elements differ; NaN is NaN."""
    return int(((a != b) & ~((a != a) & (b != b))).sum())


def parse_graph(text: str) -> tuple[ModuleOp, GraphOp]:
    """Parse and verify a module of one graph."""
    module = parse_text(context(), text)
    check(module, SourceText("test.mlir", text))
    (graph,) = (op for op in module.ops if isinstance(op, GraphOp))
    return module, graph


def compile_graph(text: str, folder: Path, one_file: bool = True, target: Target = CPU) -> Compiled:
    """Compile the graph in a text for a CPU, by default from one file, and give its params random values."""
    graph = parse_graph(text)[1]
    planned = parse_graph(text)[0]
    run_to_phase(planned, "planned", CompileOptions("cpu", target.arch))
    code = emit(planned)
    sources = [text for name, text in code.files.items() if name.endswith(".cc")]
    headers = {name: text for name, text in code.files.items() if name.endswith(".h")}
    files = headers | {"all.cc": "\n".join(sources)} if one_file else code.files
    library = build_library(files, target, folder)
    module = graph.parent_op()
    assert isinstance(module, ModuleOp)
    params = RandomParams(param_types(module), 0)
    literals = {name: literal_array(value) for name, value in code.literals.items()}
    model = Model.from_library(library, "cpu", constants=literals)
    for name in model.get_constant_names(unset_only=True):
        model.set_constant(name, np.asarray(params[name]))
    return Compiled(graph, planned, model, params)


_GRAPH = re.compile(r"ait\.graph @\w+\((?P<inputs>.*?)\) dims \{(?P<dims>.*?)\} \{\n(?P<body>.*)\}\n", re.DOTALL)


def renamed(text: str, number: int) -> tuple[str, str, str]:
    """Inputs, dims and body of a random graph, with names that no other graph has."""
    match = _GRAPH.fullmatch(text)
    assert match is not None, text
    parts: list[str] = []
    for part in match.group("inputs", "dims", "body"):
        part = re.sub(r"\b([bs])\b", rf"\g<1>{number}", part)
        part = re.sub(r"%(\w+)", rf"%g{number}_\1", part)
        parts.append(re.sub(r'"(\w+)"', rf'"g{number}_\1"', part))
    return parts[0], parts[1], parts[2]


def joined(texts: Sequence[str]) -> str:
    """One graph that contains several random graphs side by side, with an input that binds the dims of each."""
    inputs: list[str] = []
    dims: list[str] = []
    bodies: list[str] = []
    for number, text in enumerate(texts):
        its_inputs, its_dims, body = renamed(text, number)
        inputs += [its_inputs, f"%g{number}_dims: !ait.tensor<b{number} x s{number} x i8>"]
        dims.append(its_dims)
        bodies.append(body)
    return f"ait.graph @all({', '.join(inputs)}) dims {{{', '.join(dims)}}} {{\n{''.join(bodies)}}}\n"
