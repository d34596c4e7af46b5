"""Cases of generated loops: the texts of `loop_texts.py` with sizes, element types and strides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation

from ait_mlir.dialects.ait.loops import LoopsOp
from ait_mlir.lowering.kernels import Target, kernels_for
from ait_mlir.lowering.kernels.generated import nest_known
from ait_mlir.lowering.loops import moments
from tests import tiers
from tests.kernels.harness import Case, Library, random_inputs, reference
from tests.kernels.library_gemm import on_kernel
from tests.kernels.loop_texts import (
    ARGMAX,
    ARGMIN_COLUMNS,
    COSINE,
    DIVERGENCE,
    EMBEDDING,
    FOLD,
    GATHER,
    GROUP_NORM,
    LAYER_NORM,
    LOGSUMEXP,
    MEAN_FIRST,
    MIDDLE,
    MOMENTS,
    NEAREST,
    NORMED,
    PADDED_BOXES,
    PADDED_TURNED,
    PADDED_WINDOWS,
    PARTS_TURNED,
    PERMUTE,
    PICKED,
    POOL,
    POOL_TURNED,
    REFLECT,
    SCALED,
    SCALED_COLUMNS,
    SEGMENTS,
    SEGMENTS_AND_ROW,
    SHORT_TWICE,
    SHUFFLE,
    SHUFFLED_BOXES,
    SLICED_TURNED,
    SOFTMAX,
    SUM_ALL,
    THREE_ORDERS,
    TRIL,
    TURNED_NORM,
    VARIANCE,
    WINDOWS,
    image,
    put,
)
from tests.specs.loops import SPECS
from tests.specs.spec import Consumer, Form, Spec, form
from tests.specs.tolerance import Tolerance

CLOSE = Tolerance(
    {"f16": 0.6, "bf16": 0.6, "f32": 32, "f64": 64}, {"f16": 2e-6, "bf16": 2e-6, "f32": 2e-6, "f64": 1e-14}, terms=True
)


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
    nest(
        "three-orders", put(THREE_ORDERS, I=19, J=36, K=8), "8 x 36 x 19 x T", "19 x 8 x 36 x T", "8 x T",
        to="19 x 36 x 8 x T", types=ALL,
    ),
    nest(
        "three-orders-dynamic", put(THREE_ORDERS, I="b", J="s", K="u"), "u x s x b x T", "b x u x s x T", "u x T",
        to="b x s x u x T", envs=ENVS[2:],
    ),
    nest(
        "padded-boxes", put(PADDED_BOXES, W=14, H=9, C=16, D=11), "16 x 11 x 9 x 14 x T", "16 x 11 x 9 x 14 x T",
        to="18 x 12 x 16 x 13 x T",
    ),
    nest("shuffled-boxes", put(SHUFFLED_BOXES, N=2, H=14, W=24), "2 x 2 x 24 x 14 x T", to="2 x 14 x 48 x T"),
    nest(
        "shuffled-shifted", put(SHUFFLED_BOXES, N="b", H=14, W=24), "b x 2 x 24 x 14 x T", to="b x 14 x 48 x T", offset=3,
    ),
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
    nest(
        "segments-and-row", put(SEGMENTS_AND_ROW, ROWS="b", GROUPS=5, SIZE=128), "b x 640 x T", "640 x T",
        to=("b x 5 x 128 x T", "b x 5 x 1 x f32", "b x 5 x 128 x T"), types=("f16", "bf16"),
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
    nest(
        "norm-turned", put(TURNED_NORM, ROWS=40, COLS=96, COUNT="96.0"), "40 x 96 x T", "96 x T",
        to=("96 x 40 x T", "1 x 40 x f32"),
    ),
    nest(
        "norm-turned-odd", put(TURNED_NORM, ROWS="b", COLS=77, COUNT="77.0"), "b x 77 x T", "77 x T",
        to=("77 x b x T", "1 x b x f32"), envs=ENVS,
    ),
    nest(
        "parts-turned", put(PARTS_TURNED, OUTER=2, ROWS=40, PARTS=3, COLS=24), "2 x 3 x 24 x 40 x T",
        to="2 x 40 x 3 x 24 x T",
    ),
    nest(
        "parts-turned-dynamic", put(PARTS_TURNED, OUTER="b", ROWS="u", PARTS=3, COLS="s"), "b x 3 x s x u x T",
        to="b x u x 3 x s x T", envs=ENVS,
    ),
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
    if not isinstance(op, LoopsOp):
        return []
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


def check_loops(library: Library, case: Case, name: str) -> None:
    """Compare a case, whose name ends with its element type, with the reference."""
    t = name.rpartition("-")[2]
    for env in case.envs:
        inputs = random_inputs(case, env)
        for got, want in zip(library.run(case, env, inputs), reference(case, env, inputs), strict=True):
            CLOSE.compare(got, want, t, inputs)
