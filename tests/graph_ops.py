"""Hand-written ops of random graphs: shapes of graphs that often reveal bugs of compilers.

Rank 0 and 1, dims of 0 and 1 and dynamic ones, broadcasting on either side, one value used twice by one op, concat of
one input, reshape of reshape, and the chains that passes look for: linear layers with epilogues, parallel ones,
attention, residual and norm.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ait_mlir.dims import Expr, const, product, sym, total
from tests.specs.spec import FLOATS

SMOOTH = ("neg", "tanh", "erf", "sigmoid", "relu", "gelu", "fast_gelu", "silu", "abs", "sin", "cos")
ROUGH = ("exp", "log", "sqrt", "rsqrt", "log1p", "expm1")
PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")
SIZES = (1, 1, 2, 3, 4, 5, 8)

Shape = tuple[Expr, ...]


@dataclass(frozen=True)
class Value:
    """A value of the graph being made."""

    name: str
    dims: Shape
    dtype: str

    @property
    def type(self) -> str:
        return tensor(self.dims, self.dtype)

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS


def tensor(dims: Shape, dtype: str) -> str:
    """The text of a tensor type."""
    return "!ait.tensor<" + "".join(f"({d}) x " if d.as_int() is None else f"{d} x " for d in dims) + dtype + ">"


@dataclass
class Body:
    """The ops of one graph, each on values that are there; a method writes one op or a few that passes look for."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    params: int = 0
    dtype: str = "f32"

    # ** values **

    def emit(self, body: str, *results: tuple[Shape, str]) -> list[Value]:
        """Write one op and return its results."""
        made = [Value(f"%v{len(self.values) + i}", dims, dtype) for i, (dims, dtype) in enumerate(results)]
        self.values += made
        self.lines.append(f"{', '.join(v.name for v in made)} = {body} : {', '.join(v.type for v in made)}")
        return made

    def param(self, dims: Shape, dtype: str | None = None) -> Value:
        """A parameter; sometimes one that exists already."""
        self.params += 1
        return self.emit(f'ait.param "w{self.params}"', (dims, dtype or self.dtype))[0]

    def constant(self, number: float, dims: Shape = (), dtype: str | None = None) -> Value:
        dtype = dtype or self.dtype
        text = str(abs(int(number)) if dtype == "ui8" else int(number)) if dtype not in FLOATS else repr(float(number))
        return self.emit(f"ait.constant {text}", (dims, dtype))[0]

    def pick(self, floats: bool | None = True, rank: int = 0, dtype: str | None = None) -> Value:
        """A value of at least some rank, rather a recent one; makes one if there is none."""
        found = [
            v
            for v in self.values
            if len(v.dims) >= rank
            and (floats is None or v.is_float == floats)
            and v.dtype != "i1"
            and dtype in (None, v.dtype)
        ]
        if not found:
            return self.param(tuple(const(self.rng.choice(SIZES)) for _ in range(max(rank, 1))), dtype)
        recent = found[-4:]
        return self.rng.choice(recent if self.rng.random() < 0.7 else found)

    def size(self) -> Expr:
        return const(self.rng.choice(SIZES))

    # ** ops **

    def unary(self) -> Value:
        x = self.pick()
        name = self.rng.choice(SMOOTH) if self.rng.random() < 0.9 else self.rng.choice(ROUGH)
        return self.emit(f"ait.{name} {x.name}", (x.dims, x.dtype))[0]

    def partner(self, x: Value) -> Value:
        """A value that broadcasts with `x`, to a shape at least as large as its own."""
        rng = self.rng
        same = [v for v in self.values if v.dtype == x.dtype and broadcast(x.dims, v.dims) is not None]
        match rng.randrange(6):
            case 0:
                return x
            case 1:
                return self.constant(rng.choice((0, 1, -1, 0.5, 2, 0.1)), (), x.dtype)
            case 2 if x.dims and all(d.as_int() is not None for d in x.dims[-1:]):
                return self.param(x.dims[-1:], x.dtype)
            case 3:
                return self.constant(rng.choice((0, 1, 0.5)), x.dims, x.dtype)
            case 4:
                return self.constant(rng.choice((1, 3)), tuple(const(1) for _ in x.dims), x.dtype)
        return rng.choice(same)

    def binary(self) -> Value:
        x = self.pick(None if self.rng.random() < 0.2 else True)
        y = self.partner(x)
        names = ("add", "sub", "mul", "max", "min", "add", "mul", "div") if x.is_float else ("add", "sub", "mul", "max")
        a, b = (x, y) if self.rng.random() < 0.6 else (y, x)
        dims = broadcast(a.dims, b.dims)
        assert dims is not None
        return self.emit(f"ait.{self.rng.choice(names)} {a.name}, {b.name}", (dims, a.dtype))[0]

    def choose(self) -> Value:
        x = self.pick()
        y = self.partner(x)
        dims = broadcast(x.dims, y.dims)
        assert dims is not None
        predicate = self.rng.choice(PREDICATES)
        c = self.emit(f"ait.compare {predicate} {x.name}, {y.name}", (dims, "i1"))[0]
        return self.emit(f"ait.where {c.name}, {y.name}, {x.name}", (dims, x.dtype))[0]

    def cast(self) -> Value:
        x = self.pick(None)
        return self.emit(f"ait.cast {x.name}", (x.dims, self.rng.choice(("f32", "f64", self.dtype))))[0]

    def linear(self, source: Value | None = None, size: Expr | None = None) -> Value:
        """A gemm, often with bias, activation and residual."""
        rng = self.rng
        x = source or self.pick(rank=2)
        if x.dims[-1].as_int() is None:
            return x
        n = size or self.size()
        layout = rng.choice(("rcr", "rcr", "rcr", "rrr") if len(x.dims) > 2 else ("rcr", "rrr", "rcc", "rrc"))
        w = self.param((n, x.dims[-1]) if layout[1] == "c" else (x.dims[-1], n), x.dtype)
        dims = (*x.dims[:-1], n) if layout[2] == "r" else (n, x.dims[0])
        y = self.emit(f"ait.gemm {layout} {x.name}, {w.name}", (dims, x.dtype))[0]
        if rng.random() < 0.7 and y.dims[-1].as_int() is not None:
            bias = self.param(y.dims[-1:], x.dtype)
            y = self.emit(f"ait.add {y.name}, {bias.name}", (dims, x.dtype))[0]
        if rng.random() < 0.5:
            y = self.emit(f"ait.{rng.choice(SMOOTH)} {y.name}", (dims, x.dtype))[0]
        if rng.random() < 0.4 and y.dims == x.dims:
            y = self.emit(f"ait.add {y.name}, {x.name}", (dims, x.dtype))[0]
        return y

    def parallel(self) -> Value:
        """Two or three linear layers on one value."""
        x = self.pick(rank=2)
        n = self.size()
        made = [self.linear(x, n if self.rng.random() < 0.6 else None) for _ in range(self.rng.choice((2, 3)))]
        return made[-1]

    def gated(self) -> Value:
        """A function of two linear layers on one value, mostly silu(gate) * up."""
        x = self.pick(rank=2)
        if x.dims[-1].as_int() is None:
            return x
        dims, t = (*x.dims[:-1], self.size()), x.dtype
        parts: list[Value] = []
        for _ in range(2):
            w = self.param((dims[-1], x.dims[-1]), t)
            parts.append(self.emit(f"ait.gemm rcr {x.name}, {w.name}", (dims, t))[0])
        gate = self.emit(f"ait.{self.rng.choice(SMOOTH)} {parts[0].name}", (dims, t))[0]
        a, b = (gate, parts[1]) if self.rng.random() < 0.5 else (parts[1], gate)
        return self.emit(f"ait.{self.rng.choice(('mul', 'mul', 'sub'))} {a.name}, {b.name}", (dims, t))[0]

    def rotated(self) -> Value:
        """A product of heads, some of which are turned as in rotary position embeddings."""
        rng = self.rng
        x = self.pick(rank=2)
        if x.dims[-1].as_int() is None:
            return x
        rows, t, half, heads = x.dims[:-1], x.dtype, rng.choice((1, 2)), rng.choice((1, 2, 3))
        others = rng.choice((0, 2 * half))
        columns = [const(2 * half * heads), const(others)][: 2 if others else 1]
        w = self.param((const(2 * half * heads + others), x.dims[-1]), t)
        y = self.emit(f"ait.gemm rcr {x.name}, {w.name}", ((*rows, const(2 * half * heads + others)), t))[0]
        if others:
            y = self.emit(f"ait.split {y.name} dim {len(rows)}", *(((*rows, n), t) for n in columns))[0]
        whole, part = (*rows, const(heads), const(2 * half)), (*rows, const(heads), const(half))
        y = self.emit(f"ait.reshape {y.name}", (whole, t))[0]
        a, b = self.emit(f"ait.split {y.name} dim {len(rows) + 1}", (part, t), (part, t))
        c, s = self.param((const(half),), t), self.param((const(half),), t)

        def of(name: str, left: Value, right: Value) -> Value:
            return self.emit(f"ait.{name} {left.name}, {right.name}", (part, t))[0]

        first = of("sub", of("mul", a, c), of("mul", b, s))
        second = of("add", of("mul", b, c), of("mul", a, s))
        return self.emit(f"ait.concat {first.name}, {second.name} dim {len(rows) + 1}", (whole, t))[0]

    def column_gemm(self) -> Value:
        x = self.pick(rank=2)
        if len(x.dims) != 2 or x.dims[0].as_int() is None:
            return x
        n = self.size()
        w = self.param((x.dims[0], n), x.dtype)
        return self.emit(f"ait.gemm crr {x.name}, {w.name}", ((x.dims[1], n), x.dtype))[0]

    def batched(self) -> Value:
        """x @ x^T or its kin, in a random layout."""
        x = self.pick(rank=2)
        rest, m, k = x.dims[:-2], x.dims[-2], x.dims[-1]
        layout, dims = self.rng.choice((("rcr", (m, m)), ("rcc", (m, m)), ("crr", (k, k)), ("crc", (k, k))))
        return self.emit(f"ait.bmm {layout} {x.name}, {x.name}", ((*rest, *dims), x.dtype))[0]

    def attention(self) -> Value:
        """Heads cut from one value, scores, scale, mask, softmax or another function, values."""
        rng = self.rng
        x = self.pick(rank=3)
        if len(x.dims) != 3 or x.dims[2].as_int() is None:
            return x
        b, s, heads, size = x.dims[0], x.dims[1], self.size(), self.size()
        t = x.dtype
        parts: list[Value] = []
        for _ in range(3):
            w = self.param((heads * size, x.dims[2]), t)
            y = self.emit(f"ait.gemm rcr {x.name}, {w.name}", ((b, s, heads * size), t))[0]
            y = self.emit(f"ait.reshape {y.name}", ((b, s, heads, size), t))[0]
            parts.append(self.emit(f"ait.permute {y.name} [0, 2, 1, 3]", ((b, heads, s, size), t))[0])
        q, k, v = parts
        shape = (b, heads, s, s)
        p = self.emit(f"ait.bmm rcr {q.name}, {k.name}", (shape, t))[0]
        if rng.random() < 0.8:
            c = self.constant(rng.choice((0.125, 0.5, 1.0)), (), t)
            p = self.emit(f"ait.{rng.choice(('mul', 'div'))} {p.name}, {c.name}", (shape, t))[0]
        if rng.random() < 0.4:
            mask = self.emit(f"ait.constant {rng.choice((0.0, -1.0))}", ((s, s), t))[0]
            p = self.emit(f"ait.add {p.name}, {mask.name}", (shape, t))[0]
        weights = rng.choice(("softmax", "softmax", "softmax", "tanh", "sigmoid"))
        p = self.emit(f"ait.{weights} {p.name}" + " dim 3" * (weights == "softmax"), (shape, t))[0]
        y = self.emit(f"ait.bmm rrr {p.name}, {v.name}", ((b, heads, s, size), t))[0]
        y = self.emit(f"ait.permute {y.name} [0, 2, 1, 3]", ((b, s, heads, size), t))[0]
        return self.emit(f"ait.reshape {y.name}", ((b, s, heads * size), t))[0]

    def grouped_attention(self) -> Value:
        """The op itself, k and v with fewer heads than q; hidden columns would leave open where a NaN in them shows."""
        x = self.pick(rank=3)
        if len(x.dims) != 3 or x.dims[2].as_int() is None:
            return x
        (b, s, c), groups, heads = x.dims, self.size(), self.rng.choice((1, 2, 3))
        k = self.emit(f"ait.reshape {x.name}", ((b, const(1), s, c), x.dtype))[0]
        k = self.emit(f"ait.expand {k.name}", ((b, groups, s, c), x.dtype))[0]
        q = self.emit(f"ait.expand {k.name}", ((b, groups, s, c), x.dtype))[0]
        q = self.emit(f"ait.concat {', '.join([q.name] * heads)} dim 1", ((b, groups * heads, s, c), x.dtype))[0]
        return self.emit(f"ait.attention {q.name}, {k.name}, {k.name} scale 0.5", (q.dims, x.dtype))[0]

    def softmax(self) -> Value:
        x = self.pick(rank=1)
        return self.emit(f"ait.softmax {x.name} dim {self.rng.randrange(len(x.dims))}", (x.dims, x.dtype))[0]

    def norm(self) -> Value:
        """A norm, sometimes of a sum that is used again."""
        rng = self.rng
        x = self.pick(rank=1)
        if rng.random() < 0.5:
            y = self.partner(x)
            dims = broadcast(x.dims, y.dims)
            assert dims is not None
            x = self.emit(f"ait.add {x.name}, {y.name}", (dims, x.dtype))[0]
        axes = 1 if rng.random() < 0.8 else len(x.dims)
        row = x.dims[len(x.dims) - axes :]
        affine = ""
        if all(d.as_int() is not None for d in row):
            for keyword in ("scale", "bias"):
                if rng.random() < 0.7:
                    affine += f" {keyword} {self.param(row, x.dtype).name}"
        name = rng.choice(("layer_norm", "rms_norm"))
        return self.emit(
            f"ait.{name} {x.name}{affine} axes {axes} eps {rng.choice(('0.001', '1e-05'))}", (x.dims, x.dtype)
        )[0]

    def reduce(self) -> Value:
        """Over some dims; an argmax would jump where two elements are nearly equal."""
        x = self.pick(rank=1)
        axes = [i for i in range(len(x.dims)) if self.rng.random() < 0.5]
        kind = self.rng.choice(("sum", "mean", "max", "min", "var", "var correction 1"))
        kind, _, correction = kind.partition(" ")
        dims = tuple(d for i, d in enumerate(x.dims) if i not in axes)
        return self.emit(f"ait.reduce {kind} {x.name} dims {axes} {correction}".rstrip(), (dims, x.dtype))[0]

    def reshape(self) -> Value:
        """Merge all dims, cut the last one, or add a dim of 1."""
        x = self.pick(None)
        last = x.dims[-1].as_int() if x.dims else None
        match self.rng.randrange(4):
            case 0:
                dims: Shape = (product(x.dims),)
            case 1 if last is not None and last % 2 == 0:
                dims = (*x.dims[:-1], const(2), const(last // 2))
            case 2 if len(x.dims) >= 2:
                dims = (x.dims[0] * x.dims[1], *x.dims[2:])
            case _:
                at = self.rng.randrange(len(x.dims) + 1)
                dims = (*x.dims[:at], const(1), *x.dims[at:])
        if len(dims) > 5:
            return x
        return self.emit(f"ait.reshape {x.name}", (dims, x.dtype))[0]

    def permute(self) -> Value:
        x = self.pick(None)
        order = list(range(len(x.dims)))
        self.rng.shuffle(order)
        return self.emit(f"ait.permute {x.name} {order}", (tuple(x.dims[i] for i in order), x.dtype))[0]

    def expand(self) -> Value:
        x = self.pick(None)
        dims = tuple(self.size() if d.as_int() == 1 and self.rng.random() < 0.5 else d for d in x.dims)
        dims = (self.size(), *dims) if self.rng.random() < 0.4 and len(dims) < 4 else dims
        return self.emit(f"ait.expand {x.name}", (dims, x.dtype))[0]

    def slice(self) -> Value:
        """Cut one dim; a dynamic one at a proved place."""
        x = self.pick(None, rank=1)
        at = self.rng.randrange(len(x.dims))
        extent = x.dims[at]
        offsets, dims = [const(0)] * len(x.dims), list(x.dims)
        n = extent.as_int()
        if n is not None:
            low = self.rng.randrange(n + 1)
            offsets[at], dims[at] = const(low), const(self.rng.randrange(n - low + 1))
        elif extent == sym("s"):
            offsets[at], dims[at] = self.rng.choice(
                ((extent - 1, const(1)), (const(1), extent - 1), (const(0), extent))
            )
        text = ", ".join(map(str, offsets))
        return self.emit(f"ait.slice {x.name} offsets [{text}]", (tuple(dims), x.dtype))[0]

    def split(self) -> Value:
        x = self.pick(None, rank=1)
        at = self.rng.randrange(len(x.dims))
        n = x.dims[at].as_int()
        if n is None or n == 0:
            return x
        cut = self.rng.randrange(n + 1)
        sizes = [c for c in (cut, n - cut) if c or self.rng.random() < 0.3]
        results = [((*x.dims[:at], const(c), *x.dims[at + 1 :]), x.dtype) for c in sizes]
        return self.rng.choice(self.emit(f"ait.split {x.name} dim {at}", *results))

    def concat(self) -> Value:
        x = self.pick(None, rank=1)
        at = self.rng.randrange(len(x.dims))
        fits = [
            v
            for v in self.values
            if v.dtype == x.dtype
            and len(v.dims) == len(x.dims)
            and all(i == at or a is b for i, (a, b) in enumerate(zip(v.dims, x.dims, strict=True)))
        ]
        parts = [self.rng.choice(fits) for _ in range(self.rng.choice((1, 2, 2, 3)))]
        dims = (*x.dims[:at], total([p.dims[at] for p in parts]), *x.dims[at + 1 :])
        return self.emit(f"ait.concat {', '.join(p.name for p in parts)} dim {at}", (dims, x.dtype))[0]

    def embedding(self) -> Value:
        ids = self.rng.choice([v for v in self.inputs if v.dtype[0] == "i"] or self.inputs)
        if ids.dtype not in ("i32", "i64"):
            return ids
        n = self.size()
        table = self.param((const(11), n))
        return self.emit(f"ait.embedding {table.name}, {ids.name}", ((*ids.dims, n), self.dtype))[0]


def broadcast(a: Shape, b: Shape) -> Shape | None:
    """The NumPy broadcast of two shapes, None when they do not fit; a named dim fits itself alone."""
    rank = max(len(a), len(b))
    out: list[Expr] = []
    for x, y in zip((const(1),) * (rank - len(a)) + a, (const(1),) * (rank - len(b)) + b, strict=True):
        if x is y or y.as_int() == 1:
            out.append(x)
        elif x.as_int() == 1:
            out.append(y)
        else:
            return None
    return tuple(out)
