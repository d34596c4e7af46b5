"""Random graphs of small tensors, as text: ops of `tests/graph_ops.py`, and any form of any op of `tests/specs`.

They have several outputs, outputs that are inputs, parameters or constants, dead code, and strides of inputs and
outputs.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ait_mlir.dims import Expr, Scope, const, parse, product, sym
from tests.graph_ops import SIZES, Body, Shape, Value
from tests.kernels import loops, random_loops
from tests.specs import ROWS
from tests.specs.spec import Form, Spec


@dataclass
class Generator(Body):
    """Makes one graph."""

    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    due: list[tuple[Spec, list[Form]]] = field(default_factory=list)
    """Ops of the specifications that the graph must have."""
    layouts: random.Random = field(default_factory=random.Random)
    """Draws the strides, apart from the ops."""

    # ** any op **

    def specified(self) -> Value:
        """Any form of any op of `tests/specs`, on values that fit, or on new inputs; its dims are
        those of the graph or small.
        """
        rng = self.rng
        spec, forms = self.due.pop() if self.due else rng.choice(SPECIFIED)
        form = rng.choice(forms)
        t = self.dtype if self.dtype in spec.types_of(form) else rng.choice(spec.types_of(form))
        typed = form.typed(t)
        sizes: dict[str, Expr] = {}
        for dim in Scope.parse(spec.dims).dims:
            names = [n for n, (low, _) in self.ranges.items() if low >= dim.lo]
            fixed = [n for n in SIZES if n >= dim.lo] or [dim.lo]
            sizes[dim.name] = sym(rng.choice(names)) if names and rng.random() < 0.6 else const(rng.choice(fixed))
        operands: list[Value] = []
        for i, text in enumerate(typed.operands):
            dims, dtype = shape_of(text, sizes)
            if i in form.below:
                operands.append(self.input(dims, dtype))
                continue
            found = [v for v in self.values if v.dims == dims and v.dtype == dtype]
            operands.append(rng.choice(found) if found and rng.random() < 0.8 else self.input(dims, dtype))
        written = re.sub(r"%(\w+)", lambda m: f"%s{len(self.lines)}_{m[1]}", typed.text)
        for name, operand in zip("abcdefghij", operands, strict=False):
            written = re.sub(rf"%s{len(self.lines)}_{name}\b", operand.name, written)
        dims_text = {name: f"({size})" if size.as_int() is None else str(size) for name, size in sizes.items()}
        written = re.sub(r"(?<![%\w])\w+", lambda m: dims_text.get(m[0], m[0]), written)
        return self.emit(f"ait.{written}", *(shape_of(text, sizes) for text in typed.results))[0]

    def input(self, dims: Shape, dtype: str) -> Value:
        """A further input of the graph."""
        value = Value(f"%in{len(self.inputs)}", dims, dtype)
        self.inputs.append(value)
        self.values.append(value)
        return value

    # ** graphs **

    def graph(self, name: str, ops: int) -> str:
        """The text of a graph with at least some ops."""
        rng = self.rng
        self.dtype = rng.choice(("f32", "f32", "f16", "bf16", "f64"))
        self.ranges = {"b": rng.choice(((1, 3), (0, 4), (2, 2))), "s": rng.choice(((1, 5), (1, 7), (2, 6)))}
        batch, length = sym("b"), sym("s")
        shapes: list[Shape] = [
            (batch, length, self.size()),
            (batch, self.size()),
            (),
            (length,),
            (self.size(), const(1), batch),
            (const(rng.choice((0, 1, 6))), self.size()),
        ]
        for dims in rng.sample(shapes, rng.choice((1, 2, 3))):
            self.inputs.append(Value(f"%in{len(self.inputs)}", dims, self.dtype))
        if rng.random() < 0.3:
            self.inputs.append(Value("%ids", (batch, length), rng.choice(("i32", "i64"))))
        self.values += self.inputs
        kinds = [
            *[self.unary, self.binary] * 4,
            *[self.linear, self.norm, self.reshape, self.permute, self.slice, self.concat] * 2,
            *[
                self.choose,
                self.cast,
                self.parallel,
                self.gated,
                self.rotated,
                self.column_gemm,
                self.batched,
                self.attention,
                self.grouped_attention,
            ],
            *[self.softmax, self.reduce, self.expand, self.split, self.embedding],
            *[self.specified] * 3,
        ]
        while len(self.lines) < ops:
            rng.choice(kinds)()
        while self.due:
            self.specified()
        self.outputs()
        dims_text = ", ".join(f"{n} = {low} to {high}" for n, (low, high) in self.ranges.items())
        arguments = ", ".join(f"{v.name}: {v.type}{self.strides(v)}" for v in self.inputs)
        body = "".join(f"  {line}\n" for line in self.lines)
        return f"ait.graph @{name}({arguments}) dims {{{dims_text}}} {{\n{body}}}\n"

    def outputs(self) -> None:
        """Name some values as outputs: the last values, other values at random, one value twice, an input."""
        rng = self.rng
        chosen = [self.values[-1], *rng.sample(self.values, min(len(self.values), rng.choice((0, 1, 2, 4))))]
        if rng.random() < 0.2:
            chosen.append(chosen[0])
        if rng.random() < 0.15:
            chosen.append(self.inputs[0])
        for i, value in enumerate(chosen):
            self.lines.append(f'ait.output "y{i}" {value.name}{self.strides(value)} : {value.type}')

    def strides(self, value: Value) -> str:
        """Mostly nothing; else strides of the dims in any order, with or without gaps."""
        rng = self.layouts
        if rng.random() > 0.2:
            return ""
        found: dict[int, Expr] = {}
        step = const(rng.choice((1, 1, 1, 2)))
        for axis in rng.sample(range(len(value.dims)), len(value.dims)):
            found[axis] = step
            step = step * value.dims[axis] * rng.choice((1, 1, 1, 3))
        return f" strides [{', '.join(str(found[axis]) for axis in range(len(value.dims)))}]"


def shape_of(text: str, sizes: Mapping[str, Expr]) -> tuple[Shape, str]:
    """Dims and element type of the text of a type of a form, with `sizes` for its dims."""
    *dims, dtype = text.split(" x ")
    return tuple(parse(d).substitute(sizes) for d in dims), dtype


def is_small(form: Form) -> bool:
    """Whether a form has at most some hundred elements where dims are small."""
    sizes = [product(shape_of(text, {})[0]) for text in form.operands]
    return all(s.substitute(dict.fromkeys(s.symbols, const(1))).evaluate({}) <= 400 for s in sizes)


SPECIFIED: list[tuple[Spec, list[Form]]] = [
    *((spec, forms) for spec in ROWS if (forms := [f for f in spec.forms_of("graphs") if is_small(f)])),
    (loops.SPEC, [random_loops.random_form(seed) for seed in range(60)]),
]
"""What random graphs draw of the specifications; graphs of consecutive seeds have one op after the other for sure."""


def random_graph(seed: int) -> str:
    """The text of the random graph of a seed: 3 to 30 ops on tensors of at most some hundred elements."""
    rng = random.Random(seed)
    return Generator(rng, due=[SPECIFIED[seed % len(SPECIFIED)]], layouts=random.Random(-1 - seed)).graph(
        f"random_{seed}", rng.choice((3, 6, 10, 15, 30))
    )
