"""Cases of generated loops: texts of what networks have, and random nests."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence

from xdsl.ir import Operation

from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.lowering.kernels import Target, kernels_for
from ait_mlir.lowering.kernels.generated import nest_known
from ait_mlir.lowering.loops import moments
from tests import tiers
from tests.kernels.harness import Case, Library, random_inputs, reference
from tests.kernels.library_gemm import on_kernel
from tests.specs.loops import SPECS
from tests.specs.spec import Consumer, Form, Spec, form
from tests.specs.tolerance import Tolerance

CLOSE = Tolerance(
    {"f16": 0.6, "bf16": 0.6, "f32": 32, "f64": 64}, {"f16": 2e-6, "bf16": 2e-6, "f32": 2e-6, "f64": 1e-14}, terms=True
)


SOFTMAX = """for (r = ROWS, c = COLS) {
  %m = ait.fold max for (k = COLS) { %v = ait.at %a_[r, k] : S
    ait.yield %v : S } : S
  %s = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %d = ait.sub %v, %m : S
    %e = ait.exp %d : S
    ait.yield %e : S } : S
  %v = ait.at %a_[r, c] : S
  %d = ait.sub %v, %m : S
  %e = ait.exp %d : S
  %y = ait.div %e, %s : S
  ait.yield %y : S
}"""
LOGSUMEXP = """for (r = ROWS) {
  %m = ait.fold max for (k = COLS) { %v = ait.at %a_[r, k] : S
    ait.yield %v : S } : S
  %s = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %d = ait.sub %v, %m : S
    %e = ait.exp %d : S
    ait.yield %e : S } : S
  %l = ait.log %s : S
  %y = ait.add %l, %m : S
  ait.yield %y : S
}"""
MIDDLE = """for (r = OUTER, w = ROWS, c = COLS) {
  %m = ait.fold max for (k = ROWS) { %v = ait.at %a_[r, k, c] : S
    ait.yield %v : S } : S
  %s = ait.fold add for (k = ROWS) { %v = ait.at %a_[r, k, c] : S
    %d = ait.sub %v, %m : S
    %e = ait.exp %d : S
    ait.yield %e : S } : S
  %v = ait.at %a_[r, w, c] : S
  %d = ait.sub %v, %m : S
  %e = ait.exp %d : S
  %y = ait.div %e, %s : S
  ait.yield %y : S
}"""
VARIANCE = """for (r = OUTER, c = COLS) {
  %n = ait.constant COUNT : S
  %s = ait.fold add for (k = ROWS) { %v = ait.at %a_[r, k, c] : S
    ait.yield %v : S } : S
  %mean = ait.div %s, %n : S
  %q = ait.fold add for (k = ROWS) { %v = ait.at %a_[r, k, c] : S
    %d = ait.sub %v, %mean : S
    %dd = ait.mul %d, %d : S
    ait.yield %dd : S } : S
  %y = ait.div %q, %n : S
  ait.yield %y : S
}"""
COSINE = """for (r = ROWS) {
  %xy = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %w = ait.at %b_[r, k] : S
    %p = ait.mul %v, %w : S
    ait.yield %p : S } : S
  %xx = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %p = ait.mul %v, %v : S
    ait.yield %p : S } : S
  %yy = ait.fold add for (k = COLS) { %v = ait.at %b_[r, k] : S
    %p = ait.mul %v, %v : S
    ait.yield %p : S } : S
  %n = ait.mul %xx, %yy : S
  %e = ait.constant 1.0e-16 : S
  %c = ait.max %n, %e : S
  %i = ait.rsqrt %c : S
  %y = ait.mul %xy, %i : S
  ait.yield %y : S
}"""
_STATISTICS = """
  %n = ait.constant COUNT : S
  %s = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    ait.yield %v : S } : S
  %mean = ait.div %s, %n : S
  %q = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %d = ait.sub %v, %mean : S
    %dd = ait.mul %d, %d : S
    ait.yield %dd : S } : S
  %var = ait.div %q, %n : S"""
"""The mean and the variance of a row."""
MOMENTS = f"""for (r = ROWS) {{{_STATISTICS}
  ait.yield %var, %mean : S, S
}}"""
NORMED = """for (r = ROWS) {
  %xx = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %p = ait.mul %v, %v : S
    ait.yield %p : S } : S
  %n = ait.sqrt %xx : S
  %xy = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %q = ait.div %v, %n : S
    %w = ait.at %b_[r, k] : S
    %p = ait.mul %q, %w : S
    ait.yield %p : S } : S
  ait.yield %xy : S
}"""
PICKED = """for (r = ROWS) {
  %m = ait.fold max for (k = COLS) { %v = ait.at %a_[r, k] : S
    ait.yield %v : S } : S
  %s = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %d = ait.sub %v, %m : S
    %e = ait.exp %d : S
    ait.yield %e : S } : S
  %i = ait.at %b_[r] : i64
  %x = ait.at %a_[r, %i] : S
  %y = ait.sub %x, %m : S
  %z = ait.div %y, %s : S
  ait.yield %z : S
}"""
LAYER_NORM = f"""for (r = ROWS, c = COLS) {{{_STATISTICS}
  %eps = ait.constant 1.0e-5 : S
  %sum = ait.add %var, %eps : S
  %scale = ait.rsqrt %sum : S
  %v = ait.at %a_[r, c] : S
  %d = ait.sub %v, %mean : S
  %z = ait.mul %d, %scale : S
  %g = ait.at %b_[c] : S
  %y = ait.mul %z, %g : S
  ait.yield %y : S
}}"""
GROUP_NORM = """for (n = N, ch = 2*W, p = PLACES) {
  %n = ait.constant COUNT : S
  %s = ait.fold add for (k = W, l = PLACES) { %v = ait.at %a_[n, k + W*(ch floordiv W), l] : S
    ait.yield %v : S } : S
  %mean = ait.div %s, %n : S
  %q = ait.fold add for (k = W, l = PLACES) { %v = ait.at %a_[n, k + W*(ch floordiv W), l] : S
    %d = ait.sub %v, %mean : S
    %dd = ait.mul %d, %d : S
    ait.yield %dd : S } : S
  %var = ait.div %q, %n : S
  %v = ait.at %a_[n, ch, p] : S
  %d = ait.sub %v, %mean : S
  %z = ait.div %d, %var : S
  %g = ait.at %b_[ch] : S
  %y = ait.mul %z, %g : S
  ait.yield %y : S
}"""
DIVERGENCE = """for (r = ROWS) {
  %m = ait.fold max for (k = COLS) { %v = ait.at %a_[r, k] : S
    ait.yield %v : S } : S
  %n = ait.fold max for (k = COLS) { %v = ait.at %b_[r, k] : S
    %w = ait.silu %v : S
    ait.yield %w : S } : S
  %s = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %d = ait.sub %v, %m : S
    %e = ait.exp %d : S
    ait.yield %e : S } : S
  %t = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %d = ait.sub %v, %m : S
    %e = ait.exp %d : S
    %p = ait.div %e, %s : S
    %w = ait.at %b_[r, k] : S
    %g = ait.silu %w : S
    %h = ait.sub %g, %n : S
    %q = ait.mul %p, %h : S
    ait.yield %q : S } : S
  ait.yield %t : S
}"""
SHORT_TWICE = """for (r = ROWS, c = 6) {
  %m = ait.fold max for (k = 6) { %v = ait.at %a_[r, k] : S
    ait.yield %v : S } : S
  %n = ait.fold min for (k = 6) { %v = ait.at %b_[r, 5 - k] : S
    ait.yield %v : S } : S
  %v = ait.at %a_[r, c] : S
  %w = ait.at %b_[r, c] : S
  %d = ait.sub %v, %n : S
  %e = ait.sub %w, %m : S
  ait.yield %d, %e : S, S
}"""
SUM_ALL = """for () {
  %s = ait.fold add for (k = ROWS, l = COLS) { %v = ait.at %a_[k, l] : S
    ait.yield %v : S } : S
  ait.yield %s : S
}"""
MEAN_FIRST = """for (c = COLS) {
  %n = ait.constant COUNT : S
  %s = ait.fold add for (k = ROWS) { %v = ait.at %a_[k, c] : S
    ait.yield %v : S } : S
  %y = ait.div %s, %n : S
  ait.yield %y : S
}"""
ARGMAX = """for (r = ROWS) {
  %m, %p = ait.fold argmax for (k = COLS) { %v = ait.at %a_[r, k] : S
    ait.yield %v : S } : S, i64
  ait.yield %m, %p : S, i64
}"""
ARGMIN_COLUMNS = """for (c = COLS) {
  %m, %p = ait.fold argmin for (k = ROWS) { %v = ait.at %a_[k, c] : S
    ait.yield %v : S } : S, i64
  ait.yield %p : i64
}"""
POOL = """for (n = N, ch = C, y = (H - 1) floordiv 2 + 1, z = (W - 1) floordiv 2 + 1) {
  %m = ait.fold max for (k = 3, l = 3) { %v = ait.at %a_[n, ch, 2*y + k - 1, 2*z + l - 1] else -inf : S
    ait.yield %v : S } : S
  ait.yield %m : S
}"""
POOL_TURNED = """for (n = N, ch = C, y = (H - 1) floordiv 2 + 1, z = (W - 1) floordiv 2 + 1) {
  %m = ait.fold max for (k = 3, l = 3) { %v = ait.at %a_[n, 2*z + l - 1, 2*y + k - 1, ch] else -inf : S
    ait.yield %v : S } : S
  %w = ait.at %b_[n, ch, y, z] : S
  %r = ait.add %m, %w : S
  ait.yield %r : S
}"""
NEAREST = """for (n = N, ch = C, y = 2*H, z = 2*W) {
  %v = ait.at %a_[n, ch, y floordiv 2, z floordiv 2] : S
  ait.yield %v : S
}"""
REFLECT = """for (n = N, y = H + 6, z = W + 6) {
  %v = ait.at %a_[n, H - 1 - max(H - 1 - FROM_Y, FROM_Y - H + 1), W - 1 - max(W - 1 - FROM_Z, FROM_Z - W + 1)] : S
  ait.yield %v : S
}""".replace("FROM_Y", "max(y - 3, 3 - y)").replace("FROM_Z", "max(z - 3, 3 - z)")
SHUFFLE = """for (n = N, ch = C, y = 4*H, z = 4*W) {
  %v = ait.at %a_[n, 16*ch + 4*(y mod 4) + z mod 4, y floordiv 4, z floordiv 4] : S
  ait.yield %v : S
}"""
WINDOWS = """for (n = N, ch = 9*C, p = (H - 2) * (W - 2)) {
  %v = ait.at %a_[n, ch floordiv 9, (ch floordiv 3) mod 3 + p floordiv (W - 2), ch mod 3 + p mod (W - 2)] : S
  ait.yield %v : S
}"""
PADDED_WINDOWS = """for (n = N, ch = 9*C, p = H * W) {
  %v = ait.at %a_[n, p floordiv W + (ch floordiv 3) mod 3 - 1, p mod W + ch mod 3 - 1, ch floordiv 9] else 0.0 : S
  %y = ait.relu %v : S
  ait.yield %y : S
}"""
PERMUTE = """for (i = I, j = J, k = K) {
  %v = ait.at %a_[k, i, j] : S
  %w = ait.at %b_[i, j, k] : S
  %y = ait.add %v, %w : S
  ait.yield %y : S
}"""
SLICED_TURNED = """for (i = I, j = J) {
  %v = ait.at %a_[j, i + 3] : S
  %e = ait.exp %v : S
  %w = ait.at %b_[i, j] : S
  %y = ait.add %e, %w : S
  ait.yield %y : S
}"""
PADDED_TURNED = """for (n = 2, y = Y + 5, ch = C) {
  %v = ait.at %a_[n, ch, y - 2] else 0.0 : S
  %w = ait.at %b_[n, ch, y - 2] else 0.5 : S
  %z = ait.constant 2.0 : S
  %d = ait.mul %w, %z : S
  %s = ait.add %v, %d : S
  %x = ait.at %c_[n, y, ch] : S
  %y = ait.sub %s, %x : S
  ait.yield %y, %s : S, S
}"""
GATHER = """for (r = ROWS, c = COLS) {
  %i = ait.at %b_[r, c] : i64
  %v = ait.at %a_[r, %i] : S
  ait.yield %v : S
}"""
EMBEDDING = """for (r = ROWS, c = COLS) {
  %i = ait.at %b_[r] : i64
  %v = ait.at %a_[%i, c] else 0.5 : S
  ait.yield %v : S
}"""
TRIL = """for (r = ROWS, c = COLS) {
  %i = ait.index (r) : i64
  %j = ait.index (c) : i64
  %b = ait.compare le %j, %i : i1
  %v = ait.at %a_[r, c] : S
  %z = ait.constant 0.0 : S
  %y = ait.where %b, %v, %z : S
  ait.yield %y, %b : S, i1
}"""
FOLD = """for (n = N, z = 2*L + 1) {
  %s = ait.fold add for (k = 3) { %v = ait.at %a_[n, k, (z - k) floordiv 2] else 0.0 : S
    %z = ait.constant 0.0 : S
    %none = ait.constant 0 : i64
    %rest = ait.index ((z - k) mod 2) : i64
    %hit = ait.compare eq %rest, %none : i1
    %w = ait.where %hit, %v, %z : S
    ait.yield %w : S } : S
  ait.yield %s : S
}"""


SCALED = """for (r = ROWS, c = COLS) {
  %m = ait.fold max for (k = COLS) { %v = ait.at %a_[r, k] : S
    %w = ait.abs %v : S
    ait.yield %w : S } : S
  %e = ait.constant 1.0e-3 : S
  %s = ait.max %m, %e : S
  %v = ait.at %a_[r, c] : S
  %y = ait.div %v, %s : S
  %d = ait.add %v, %v : S
  ait.yield %y, %s, %d : S, S, S
}"""
"""A row divided by its largest magnitude, that number, and the row doubled."""
SCALED_COLUMNS = SCALED.replace("[r, k]", "[k, c]").replace("k = COLS", "k = ROWS")


_NORMED = """
  %v = ait.at %a_[r, SIZE*g + c] : S
  %u = ait.mul %v, %n : S
  %w = ait.at %b_[SIZE*g + c] : S
  %z = ait.mul %u, %w : S"""
SEGMENTS = f"""for (r = ROWS, g = GROUPS, c = SIZE) {{
  %xx = ait.fold add for (k = GROUPS*SIZE) {{ %v = ait.at %a_[r, k] : S
    %p = ait.mul %v, %v : S
    ait.yield %p : S }} : S
  %e = ait.constant 1.0e-3 : S
  %sum = ait.add %xx, %e : S
  %n = ait.rsqrt %sum : S
  %m = ait.fold max for (k = SIZE) {{{_NORMED.replace("+ c", "+ k")}
    %q = ait.abs %z : S
    ait.yield %q : S }} : S
  %s = ait.max %m, %e : S{_NORMED}
  %y = ait.div %z, %s : S
  ait.yield %y, %s : S, S
}}"""
"""A normalised row whose segments are divided by their largest magnitudes, and these numbers."""


def put(text: str, **sizes: object) -> str:
    """The text with sizes in place of the words in capitals."""
    for name, size in sizes.items():
        text = re.sub(rf"\b{name}\b", str(size) if str(size).replace(".", "").isalnum() else f"({size})", text)
    return text


def image(text: str, n: int, c: int, h: object, w: object) -> str:
    return put(text, N=n, C=c, H=h, W=w)


def nest(name: str, text: str, *operands: str, to: str | Sequence[str], **options: object) -> Form:
    """A form from the text behind the operands; `%a_` is the block argument of `%a`."""
    head, body = text.split("{", 1)
    inputs = ", ".join(f"%{n}" for n, _ in zip("abc", operands, strict=False))
    arguments = ", ".join(f"%{n}_: !ait.tensor<{t}>" for n, t in zip("abc", operands, strict=False))
    block = f"^bb0({arguments}):" if operands else ""
    if "envs" in options:
        options.setdefault("few", options["envs"])
    return form(name, f"loops({inputs}) {head}{{ {block} {body}", *operands, to=to, **options)


DIMS = "b = 0 to 70, s = 0 to 3000, u = 1 to 40, t = 1 to 3000000000"
ENVS = (
    {"b": 3, "s": 5, "u": 3, "t": 200},
    {"b": 0, "s": 4, "u": 8, "t": 200},
    {"b": 2, "s": 64, "u": 1, "t": 200},
    {"b": 5, "s": 333, "u": 7, "t": 200},
)
SMALL = ENVS[:2]
FLOATS = ("f16", "bf16", "f32", "f64")
ALL = (*FLOATS, "i32", "i8")
GPUS: frozenset[Consumer] = frozenset({"cuda", "rocm"})
FORMS = (
    nest("softmax", put(SOFTMAX, ROWS="b", COLS=512), "b x 512 x T", to="b x 512 x T", types=FLOATS),
    nest("softmax-odd", put(SOFTMAX, ROWS="b", COLS=77), "b x 77 x T", to="b x 77 x T"),
    nest("softmax-dynamic", put(SOFTMAX, ROWS="b", COLS="s"), "b x s x T", to="b x s x T", envs=ENVS),
    nest("softmax-shifted", put(SOFTMAX, ROWS="b", COLS=80), "b x 80 x T", to="b x 80 x T", offset=3),
    nest("logsumexp", put(LOGSUMEXP, ROWS="b", COLS=640), "b x 640 x T", to="b x T", types=FLOATS),
    nest("middle", put(MIDDLE, OUTER="b", ROWS=96, COLS=64), "b x 96 x 64 x T", to="b x 96 x 64 x T"),
    nest("middle-odd", put(MIDDLE, OUTER="b", ROWS=70, COLS=13), "b x 70 x 13 x T", to="b x 70 x 13 x T"),
    nest(
        "variance", put(VARIANCE, OUTER="b", ROWS=200, COLS=24, COUNT="200.0"), "b x 200 x 24 x T", to="b x 24 x T",
        types=FLOATS,
    ),
    nest("cosine", put(COSINE, ROWS="b", COLS=512), "b x 512 x T", "b x 512 x T", to="b x T"),
    nest(
        "moments", put(MOMENTS, ROWS="b", COLS=100, COUNT="100.0"), "b x 100 x T", to=("b x T", "b x T"),
        types=FLOATS,
    ),
    nest("normed", put(NORMED, ROWS="b", COLS=512), "b x 512 x T", "b x 512 x T", to="b x T", types=FLOATS),
    nest("picked", put(PICKED, ROWS="b", COLS=1000), "b x 1000 x T", "b x i64", to="b x T", below={1: 1000}),
    nest("norm", put(LAYER_NORM, ROWS="b", COLS=96, COUNT="96.0"), "b x 96 x T", "96 x T", to="b x 96 x T"),
    nest("sum-all", put(SUM_ALL, ROWS="b", COLS=1000), "b x 1000 x T", to="T", types=ALL),
    nest("mean-first", put(MEAN_FIRST, ROWS=300, COLS=72, COUNT="300.0"), "300 x 72 x T", to="72 x T", types=FLOATS),
    nest("argmax", put(ARGMAX, ROWS="b", COLS=300), "b x 300 x T", to=("b x T", "b x i64"), types=ALL),
    nest("argmin-columns", put(ARGMIN_COLUMNS, ROWS=300, COLS=40), "300 x 40 x T", to="40 x i64", types=("f16", "i32")),
    nest("pool", image(POOL, 2, 3, 13, 16), "2 x 3 x 13 x 16 x T", to="2 x 3 x 7 x 8 x T", types=FLOATS),
    nest(
        "pool-turned", image(POOL_TURNED, 2, 2, 41, 63), "2 x 63 x 41 x 2 x T", "2 x 2 x 21 x 32 x T",
        to="2 x 2 x 21 x 32 x T", types=FLOATS,
    ),
    nest("nearest", image(NEAREST, 2, 3, 5, 8), "2 x 3 x 5 x 8 x T", to="2 x 3 x 10 x 16 x T", types=(*ALL, "i1")),
    nest("nearest-dynamic", image(NEAREST, 2, 3, 5, "u"), "2 x 3 x 5 x u x T", to="2 x 3 x 10 x (2*u) x T", envs=ENVS),
    nest("reflect", put(REFLECT, N=2, H=7, W=10), "2 x 7 x 10 x T", to="2 x 13 x 16 x T"),
    nest("shuffle", image(SHUFFLE, 2, 2, 5, 6), "2 x 32 x 5 x 6 x T", to="2 x 2 x 20 x 24 x T"),
    nest("windows", image(WINDOWS, 2, 2, 5, 42), "2 x 2 x 5 x 42 x T", to="2 x 18 x 120 x T"),
    nest("windows-short", image(WINDOWS, 2, 2, 5, 8), "2 x 2 x 5 x 8 x T", to="2 x 18 x 18 x T"),
    nest("windows-dynamic", image(WINDOWS, 1, 2, 5, "u + 2"), "1 x 2 x 5 x (u + 2) x T", to="1 x 18 x (3*u) x T", envs=ENVS),
    nest("windows-turned", image(PADDED_WINDOWS, 2, 24, 5, 41), "2 x 5 x 41 x 24 x T", to="2 x 216 x 205 x T"),
    nest("permute", put(PERMUTE, I=24, J=16, K=40), "40 x 24 x 16 x T", "24 x 16 x 40 x T", to="24 x 16 x 40 x T"),
    nest("permute-odd", put(PERMUTE, I=5, J=7, K="s"), "s x 5 x 7 x T", "5 x 7 x s x T", to="5 x 7 x s x T"),
    nest(
        "padded-turned", put(PADDED_TURNED, Y=39, C=24), "2 x 24 x 39 x T", "2 x 24 x 39 x T", "2 x 44 x 24 x T",
        to=("2 x 44 x 24 x T", "2 x 44 x 24 x T"),
    ),
    nest("sliced-turned", put(SLICED_TURNED, I=16, J=24), "24 x 19 x T", "16 x 24 x T", to="16 x 24 x T"),
    nest("gather", put(GATHER, ROWS="b", COLS=33), "b x 50 x T", "b x 33 x i64", to="b x 33 x T", below={1: 50}),
    nest("embedding", put(EMBEDDING, ROWS="b", COLS=24), "100 x 24 x T", "b x i64", to="b x 24 x T", below={1: 120}),
    nest("tril", put(TRIL, ROWS=13, COLS=16), "13 x 16 x T", to=("13 x 16 x T", "13 x 16 x i1")),
    nest("fold", put(FOLD, N=2, L="u"), "2 x 3 x u x T", to="2 x (2*u + 1) x T", envs=ENVS),
    nest("sum-long", put(SUM_ALL, ROWS="b", COLS=30011), "b x 30011 x T", to="T", types=("f32", "i8"), without=GPUS),
    nest(
        "argmax-long", put(ARGMAX, ROWS=2, COLS="t"), "2 x t x T", to=("2 x T", "2 x i64"), without=GPUS,
        envs=({"b": 0, "s": 0, "u": 1, "t": 40001}, {"b": 0, "s": 0, "u": 1, "t": 5}),
    ),
    nest("wide", put(LOGSUMEXP, ROWS="b", COLS="t"), "b x t x T", to="b x T"),
    nest("view", put(SOFTMAX, ROWS="b", COLS=128), "b x 128 x T", to="b x 128 x T", strides={0: ("136", "1")}),
    nest(
        "permute-turned", put(PERMUTE, I=24, J=16, K=40), "40 x 24 x 16 x T", "24 x 16 x 40 x T", to="24 x 16 x 40 x T",
        strides={0: ("1", "640", "40"), 2: ("2000", "90", "2")},
    ),
    nest(
        "middle-turned", put(MIDDLE, OUTER="b", ROWS=40, COLS=24), "b x 40 x 24 x T", to="b x 40 x 24 x T",
        strides={0: ("960", "1", "40"), 1: ("2000", "1", "41")},
    ),
    nest(
        "group-norm", put(GROUP_NORM, N=2, W=6, PLACES=40, COUNT="240.0"), "2 x 12 x 40 x T", "12 x T",
        to="2 x 12 x 40 x T", types=FLOATS,
    ),
    nest(
        "segments", put(SEGMENTS, ROWS="b", GROUPS=5, SIZE=128), "b x 640 x T", "640 x T",
        to=("b x 5 x 128 x T", "b x 5 x 1 x T"), types=FLOATS,
    ),
    nest(
        "segments-shifted", put(SEGMENTS, ROWS="b", GROUPS=3, SIZE=64), "b x 192 x T", "192 x T",
        to=("b x 3 x 64 x T", "b x 3 x 1 x T"), offset=3,
    ),
    nest(
        "segments-dynamic", put(SEGMENTS, ROWS="b", GROUPS="u", SIZE=256), "b x (256*u) x T", "(256*u) x T",
        to=("b x u x 256 x T", "b x u x 1 x T"), envs=ENVS,
    ),
    nest("short", put(SOFTMAX, ROWS="b", COLS=7), "b x 7 x T", to="b x 7 x T"),
    nest("short-vectors", put(SOFTMAX, ROWS="b", COLS=12), "b x 12 x T", to="b x 12 x T", types=("f16", "bf16", "f32")),
    nest("short-shifted", put(SOFTMAX, ROWS="b", COLS=32), "b x 32 x T", to="b x 32 x T", offset=3),
    nest("short-turned", put(SOFTMAX, ROWS=40, COLS=10), "40 x 10 x T", to="40 x 10 x T", strides={1: ("1", "40")}),
    nest("short-unturned", put(SOFTMAX, ROWS=40, COLS=12), "40 x 12 x T", to="40 x 12 x T", strides={0: ("1", "40")}),
    nest("short-columns", put(MIDDLE, OUTER="b", ROWS=5, COLS=24), "b x 5 x 24 x T", to="b x 5 x 24 x T"),
    nest("short-norm", put(LAYER_NORM, ROWS="b", COLS=10, COUNT="10.0"), "b x 10 x T", "10 x T", to="b x 10 x T"),
    nest("short-twice", put(SHORT_TWICE, ROWS="b"), "b x 6 x T", "b x 6 x T", to=("b x 6 x T", "b x 6 x T")),
    nest("divergence", put(DIVERGENCE, ROWS="b", COLS=77), "b x 77 x T", "b x 77 x T", to="b x T"),
    nest("turned", put(SOFTMAX, ROWS=40, COLS=72), "40 x 72 x T", to="40 x 72 x T", strides={0: ("1", "40")}),
    nest("scaled", put(SCALED, ROWS="b", COLS=512), "b x 512 x T", to=("b x 512 x T", "b x 1 x f32", "b x 512 x T")),
    nest(
        "scaled-dynamic", put(SCALED, ROWS="b", COLS="s + 1"), "b x (s + 1) x T",
        to=("b x (s + 1) x T", "b x 1 x f32", "b x (s + 1) x T"), envs=ENVS,
    ),
    nest(
        "scaled-short", put(SCALED, ROWS="b", COLS=6), "b x 6 x T", to=("b x 6 x T", "b x 1 x f32", "b x 6 x T"),
        strides={1: ("7", "1"), 2: ("3", "1")},
    ),
    nest(
        "scaled-columns", put(SCALED_COLUMNS, ROWS=70, COLS=40), "70 x 40 x T",
        to=("70 x 40 x T", "1 x 40 x f32", "70 x 40 x T"),
    ),
)  # fmt: skip
SPEC = Spec("loops", FORMS, CLOSE, DIMS, SMALL, SMALL, ("f16", "f32"))


def few_blocks(config: dict[str, int]) -> dict[str, int]:
    """The configuration with fewer blocks that share a row, for the emulator."""
    return config | {"splits": min(config["splits"], 4)} if "splits" in config else config


def in_one_pass(op: Operation, configs: Sequence[dict[str, int]]) -> list[dict[str, int]]:
    """A configuration that computes moments in one pass, if the op has some and none of `configs` does so."""
    assert isinstance(op, LoopsOp)
    nest = nest_known(op)
    if moments.in_one_pass(nest) is nest or "kept" not in configs[0] or any("once" in config for config in configs):
        return []
    return [{**configs[0], "kept": 0, "once": 1}]


def cases(target: Target) -> Iterator[tuple[str, Case]]:
    """Each form on each kernel that takes it, with types and configurations in turn; of `make test-full`, all."""
    consumer = target.kind if target.is_gpu else "cpu"
    turn = int(target.kind == "rocm")
    for spec in (SPEC, *SPECS):
        forms: dict[str, list[str]] = {}
        for found, t in spec.keys(consumer):
            forms.setdefault(found.name, []).append(t)
        for name, types in forms.items():
            for t in types if tiers.FULL else [types[turn % len(types)]]:
                case = spec.case(spec.find(name), t, few=True)
                for kernel in kernels_for(case.op, target):
                    configs = kernel.configs(case.op, target)
                    chosen = configs if tiers.FULL else [configs[turn % len(configs)]]
                    for config in [*chosen, *in_one_pass(case.op, configs)]:
                        config = few_blocks(config)
                        tag = "".join(f"-{key}{value}" for key, value in config.items())
                        yield f"{name}-{kernel.provider}{tag}-{t}", on_kernel(case, kernel.provider, config)
            turn += 1


# ** random nests **

SIZES = (1, 2, 3, 5, 8, 12, 16, 33, "b", "u")
RANDOM_ENVS = ({"b": 3, "s": 0, "u": 5, "t": 1}, {"b": 8, "s": 0, "u": 16, "t": 1})
UNARY, BINARY = ("relu", "abs", "neg"), ("add", "sub", "max", "min")


class _Random:
    """A nest at random: reads that turn, step, flip, shift and share axes, folds along subsets of the axes, of which one
    may be a result of its own.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.t = self.draw.choice(("f16", "bf16", "f32", "f64", "i32", "i8"))
        self.scalar = "f64" if self.t == "f64" else "f32" if self.t in FLOATS else self.t
        self.shapes: list[str] = []
        self.count = 0

    def form(self) -> Form:
        rank = self.draw.randint(0, 4)
        axes = {f"j{i}": self.draw.choice(SIZES[:4] if rank > 2 else SIZES) for i in range(rank)}
        lines: list[str] = []
        values = [self.value(axes, lines) for _ in range(self.draw.randint(1, 3))]
        once: list[tuple[str, dict[str, int | str]]] = []
        for _ in range(self.draw.randint(0, 2)):
            kept = {name: size for name, size in axes.items() if self.draw.random() < 0.6}
            values.append(self.fold(kept, values if not kept else [], lines, deep=True))
            if kept and all(size != "b" for name, size in axes.items() if name not in kept):  # which may be 0
                once.append((values[-1], kept))
        while len(values) > 1 and self.draw.random() < 0.9:
            values = [self.op(self.draw.choice(BINARY), lines, *values[:2]), *values[2:]]
        values = values[:2]
        shape = " x ".join(_dim(size) for size in axes.values())
        to = tuple(f"{shape} x {self.t}" if shape else self.t for _ in values)
        if once and self.draw.random() < 0.6:
            value, kept = self.draw.choice(once)
            values.append(value)
            to += (" x ".join(_dim(size) if name in kept else "1" for name, size in axes.items()) + f" x {self.t}",)
        yields = f"ait.yield {', '.join(values)} : {', '.join(self.scalar for _ in values)}"
        text = f"for ({', '.join(f'{n} = {size}' for n, size in axes.items())}) {{ {' '.join((*lines, yields))} }}"
        return nest("random", text, *self.shapes, to=to, types=(self.t,), envs=RANDOM_ENVS)

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}_"

    def op(self, op: str, lines: list[str], *operands: str) -> str:
        name = self.name()
        lines.append(f"{name} = ait.{op} {', '.join(operands)} : {self.scalar}")
        return name

    def value(self, axes: dict[str, int | str], lines: list[str]) -> str:
        """A read, perhaps with a function of it."""
        read = self.read(axes, lines)
        return self.op(self.draw.choice(UNARY), lines, read) if self.draw.random() < 0.4 else read

    def read(self, axes: dict[str, int | str], lines: list[str]) -> str:
        names = [n for n in axes if self.draw.random() < 0.85]
        self.draw.shuffle(names)
        index: list[str] = []
        sizes: list[str] = []
        guarded = False
        for n in names:
            size, kind = axes[n], self.draw.randrange(8)
            if kind == 0:
                index.append(f"{size} - 1 - {n}")
                sizes.append(f"{size}")
            elif kind == 1:
                index.append(f"2*{n} + 1")
                sizes.append(f"2*{size}")
            elif kind == 2:
                index.append(f"{n} floordiv 2")
                sizes.append(f"({size} + 1) floordiv 2")
            elif kind == 3:
                index.append(f"{n} - 1")
                sizes.append(f"{size}")
                guarded = True
            else:
                index.append(n)
                sizes.append(f"{size}")
        if self.draw.random() < 0.2 and len(self.shapes) < 3:
            index.append("0")
            sizes.append("3")
        shape = " x ".join(f"({e})" for e in sizes)
        shape = f"{shape} x {self.t}" if shape else self.t
        if shape not in self.shapes:
            if len(self.shapes) >= 3:
                return self.constant(lines)
            self.shapes.append(shape)
        tensor = "abc"[self.shapes.index(shape)]
        name = self.name()
        other = f" else {1 if self.t in ('i32', 'i8') else 1.5}" if guarded else ""
        lines.append(f"{name} = ait.at %{tensor}_[{', '.join(index)}]{other} : {self.scalar}")
        return name

    def constant(self, lines: list[str]) -> str:
        name = self.name()
        lines.append(f"{name} = ait.constant {2 if self.t in ('i32', 'i8') else 0.5} : {self.scalar}")
        return name

    def fold(self, axes: dict[str, int | str], values: list[str], lines: list[str], deep: bool) -> str:
        kind = self.draw.choice(("add", "max", "min", "argmax"))
        count = self.draw.choice((3, 7, 40, 96, "u"))
        own: dict[str, int | str] = {f"k{self.count}": count}
        if self.draw.random() < 0.3:
            own[f"l{self.count}"] = self.draw.choice((2, 5))
        inner: list[str] = []
        value = self.value({**axes, **own}, inner)
        if deep and self.draw.random() < 0.3:
            other = self.fold({**axes, **own}, [], inner, deep=False) if count in (3, 7) else self.value(own, inner)
            value = self.op(self.draw.choice(BINARY), inner, value, other)
        if values and self.draw.random() < 0.5:
            value = self.op("sub", inner, value, values[0])
        nest_ = ", ".join(f"{n} = {size}" for n, size in own.items())
        name = self.name()
        types = f"{self.scalar}, i64" if kind == "argmax" else self.scalar
        results = f"{name}, {name}p" if kind == "argmax" else name
        lines.append(
            f"{results} = ait.fold {kind} for ({nest_}) {{ {' '.join(inner)} ait.yield {value} : {self.scalar} }} : {types}"
        )
        return name


def _dim(size: int | str) -> str:
    return f"{size}"


def random_form(seed: int) -> Form:
    """A nest at random, of a random element type."""
    return _Random(seed).form()


def random_cases(target: Target, seeds: Iterable[int]) -> Iterator[tuple[str, Case]]:
    """Nests at random, each on one of the kernels that take it."""
    for seed in seeds:
        found = random_form(seed)
        t = (found.types or FLOATS)[0]
        case = SPEC.case(found, t)
        kernels = kernels_for(case.op, target)
        kernel = kernels[seed % len(kernels)]
        configs = kernel.configs(case.op, target)
        config = few_blocks(configs[seed // len(kernels) % len(configs)])
        tag = "".join(f"-{key}{value}" for key, value in config.items())
        yield f"random{seed}-{kernel.provider}{tag}-{t}", on_kernel(case, kernel.provider, config)


def check_loops(library: Library, case: Case, name: str) -> None:
    """Compare a case, whose name ends with its element type, with the reference."""
    t = name.rpartition("-")[2]
    for env in case.envs:
        inputs = random_inputs(case, env)
        for got, want in zip(library.run(case, env, inputs), reference(case, env, inputs), strict=True):
            CLOSE.compare(got, want, t, inputs)
