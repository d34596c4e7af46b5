"""The cases that run on the emulator, by family of kernels, at small sizes, and how each is checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ait_mlir.lowering.kernels.gemm_hopper import HopperTile
from ait_mlir.lowering.kernels.gemm_mfma import TILES as MFMA_TILES
from ait_mlir.lowering.kernels.gemm_tiles import TILES
from ait_mlir.lowering.toolchain import cpp_root
from tests.emulator.library import Kind
from tests.kernels import attention_gpu, hopper, test_copy, test_gather, test_map, test_reduce, test_row
from tests.kernels.contractions import BIAS_GELU, BIAS_RESIDUAL, TANH_MUL_ADD, attention_cases, contraction, gemm_cases
from tests.kernels.harness import Case, Library, check
from tests.kernels.library_gemm import on_kernel
from tests.kernels.reduce_split import check_split, split_cases
from tests.kernels.stream import stream_cases

Env = Mapping[str, int]
Check = Callable[[Library, Case, str], None]
"""Runs a case, whose name ends with its element type, and compares."""

NOT_EMULATED: dict[Kind, dict[str, str]] = {
    "cuda": {
        "gemm_mfma_kernel": "HIP only",
    },
    "rocm": {
        "attention_hopper_kernel": "CUDA only",
        "attention_mma_kernel": "CUDA only",
        "attention_split_kernel": "CUDA only",
        "gemm_mma_kernel": "CUDA only",
        "map_repeat_kernel": "CUDA only",
        "row_bulk_kernel": "CUDA only",
        "row_ring_kernel": "CUDA only",
        "row_split_kernel": "CUDA only",
        "reduce_shared_columns_kernel": "CUDA only",
        "gemm_stream_kernel": "CUDA only",
        "gemm_wgmma_kernel": "CUDA only",
    },
}
"""Kernel templates that no case here runs, and why."""


@dataclass(frozen=True)
class Family:
    """Cases by name, which ends with the element type, and the templates that they must reach on each target."""

    templates: dict[Kind, frozenset[str]]
    cases: dict[str, Case]
    check: Check


def templates() -> set[str]:
    """The names of all kernels in the headers of the runtime."""
    found: set[str] = set()
    for path in sorted((cpp_root() / "include/ait/kernels/gpu").glob("*.cuh")):
        found.update(re.findall(r"__global__[^;{]*?\b(\w+_kernel)\(", path.read_text(), re.DOTALL))
    return found


def at(case: Case, envs: Sequence[Env]) -> Case:
    """The same case at other dims."""
    return replace(case, envs=envs)


def _type(name: str) -> str:
    return name.rpartition("-")[2]


def in_turn(cases: Mapping[str, Case]) -> Iterator[tuple[str, Case]]:
    """Of cases that exist in f16 and bf16, each in one of them."""
    forms = list(dict.fromkeys(name.rpartition("-")[0] for name in cases))
    for i, form in enumerate(forms):
        name = next(n for n in (f"{form}-{('f16', 'bf16')[i % 2]}", f"{form}-f16", f"{form}-bf16", form) if n in cases)
        yield name, cases[name]


def within(ulps: Mapping[str, float], floor: Mapping[str, float]) -> Check:
    """A check with bounds by element type."""

    def checked(library: Library, case: Case, name: str) -> None:
        check(library, case, ulps[_type(name)], floor[_type(name)])

    return checked


FLOATS = ("f16", "bf16", "f32", "f64")
MULTIPROCESSORS = 4
"""Of the emulated card."""


# ** the memory-bound families **


def _maps() -> Iterator[tuple[str, Case]]:
    envs = ({"n": 1}, {"n": 7}, {"n": 1031})
    for (op, t), case in test_map.UNARY_CASES.items():
        if t == ("f16", "f32")[test_map.UNARY.index(op) % 2] or op in ("exp", "gelu"):
            yield f"{op}-{t}", at(case, envs)
    for (op, t), case in {**test_map.BINARY_CASES, **test_map.COMPARE_CASES}.items():
        if t in ("f16", "i32") or op == "add":
            yield f"{op}-{t}", at(case, envs)
    for (a, b), case in test_map.CAST_CASES.items():
        if a == "f16" or b == "bf16" or "i8" in (a, b):
            yield f"cast-{a}-{b}", at(case, envs)
    small = [{"b": 2, "s": 5}, {"b": 1, "s": 1}, {"b": 0, "s": 3}, {"b": 5, "s": 21}]
    for name, case in test_map.LAYOUT_CASES.items():
        yield name, at(case, small)
    for name, case in test_map.REPEAT_CASES.items():
        yield name, at(case, case.envs[:2])


def _rows() -> Iterator[tuple[str, Case]]:
    envs = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 2, "s": 131})
    everywhere = {**test_row.SOFTMAX, **test_row.NORM, **test_row.PROLOGUE}
    forms = list(dict.fromkeys(name.rpartition("-")[0] for name in everywhere))
    for name, case in everywhere.items():
        # each form in one element type: a case costs half a second of the compiler
        if FLOATS[forms.index(name.rpartition("-")[0]) % 4] == _type(name):
            yield name, at(case, envs)
    for length, t in (
        (768, "f16"),
        (1000, "f16"),
        (4096, "f32"),
        (9000, "f16"),
        (4097, "f16"),
        (20001, "f16"),
    ):  # a warp, a block, more than a block holds, rows that begin anywhere, shared memory
        yield f"long-softmax-{length}-{t}", at(test_row.softmax(f"b x {length}", 1, t), [{"b": 3, "s": 1}])
        norm = test_row.layer_norm(f"b x {length}", str(length), t, 1)
        yield f"long-norm-{length}-{t}", at(norm, [{"b": 3, "s": 1}])
    yield from test_row.RING.items()
    yield from test_row.short(MULTIPROCESSORS).items()
    for name, shape in (("many", "2100 x 64"), ("few", "9 x 64")):  # with factors that any launch may have written
        yield f"{name}-norm-f16", test_row.layer_norm(shape, "64", "f16", 1)
        yield f"{name}-rms-f16", test_row.layer_norm(shape, "64", "f16", 1, "scale %g", op="rms_norm")


def _reductions() -> Iterator[tuple[str, Case]]:
    envs = ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 2, "s": 0}, {"b": 0, "s": 4}, {"b": 2, "s": 131})
    for i, (name, case) in enumerate({**test_reduce.REDUCE, **test_reduce.INTEGERS}.items()):
        if i % 3 == 0 or _type(name) == "f32":
            yield name, at(case, envs)
    for name in ("sum-f16", "var-f32"):
        yield f"shared-{name}", test_reduce.LONG[name]
    for name in ("last-sum-f16", "last-var-f32", "first-max-f16", "outer-two-sum-f16", "outer-two-mean-f32"):
        yield f"long-{name}", at(test_reduce.REDUCE[name], [{"b": 2, "s": 1537}])


def _selections() -> Iterator[tuple[str, Case]]:
    for name, case in {**test_reduce.ARGMAX, **test_reduce.TOPK}.items():
        yield name, at(case, [{"b": 3, "s": 5}, {"b": 1, "s": 3}, {"b": 2, "s": 300}])


def _check_reduction(library: Library, case: Case, name: str) -> None:
    if _type(name) in FLOATS:
        test_reduce.check_reduce(library, case, _type(name))
    else:
        check(library, case, 0)


def _check_rows_of_table(library: Library, case: Case, name: str) -> None:
    rng = np.random.default_rng(0)
    for shape in ((3, 5), (1, 1), (0, 4), (2, 70)):
        table, ids = library_inputs(case, shape, rng)
        (got,) = library.run(case, {"b": shape[0], "s": shape[1]}, [table, ids])
        np.testing.assert_array_equal(got, np.asarray(table).astype(got.dtype)[ids])


def library_inputs(case: Case, shape: tuple[int, int], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A table of small numbers, exact in every type, and ids."""
    kind = np.int32 if "x i32>" in case.text else np.int64
    return rng.integers(-9, 10, (11, 24)), rng.integers(0, 11, shape).astype(kind)


# ** contractions and attention **

SMALL_GEMMS = ({"b": 2, "m": 37, "n": 45, "k": 70}, {"b": 1, "m": 1, "n": 1, "k": 1}, {"b": 2, "m": 5, "n": 7, "k": 0})
TILE_ENVS = (
    {"b": 1, "m": 65, "n": 72, "k": 200},
    {"b": 1, "m": 33, "n": 37, "k": 71},
    {"b": 1, "m": 1, "n": 8, "k": 8},
)


def _gemms(types: Iterable[str]) -> Iterator[tuple[str, Case]]:
    for name, case in gemm_cases().items():
        if _type(name) in types:
            yield name, at(case, SMALL_GEMMS)


def _tiles() -> Iterator[tuple[str, Case]]:
    for i, tile in enumerate(TILES):
        for split in (1, 2, 4) if tile.m * tile.n <= 64 * 64 else (1,):
            for layout, t in (("rcr", ("f16", "bf16")[i % 2]), ("crr", ("bf16", "f16")[i % 2])):
                body, extras = (BIAS_GELU, [("n", t)]) if layout == "rcr" else (BIAS_RESIDUAL, [("n", t), ("m x n", t)])
                case = contraction("gemm", layout, t, TILE_ENVS, extras=extras, body=body)
                name = "x".join(map(str, tile.values()[:7])) + f"-{split}-{layout}-{t}"
                yield name, on_kernel(case, "native", tile.config() | {"split": split})
            t = ("bf16", "f16")[i % 2]
            case = contraction("gated_gemm", "rcr", t, TILE_ENVS, extras=[("m x n", t)], body=TANH_MUL_ADD)
            name = "gated-" + "x".join(map(str, tile.values()[:7])) + f"-{split}-{t}"
            yield name, on_kernel(case, "native", tile.config() | {"split": split})


def _streams() -> Iterator[tuple[str, Case]]:
    for name, case in stream_cases().items():
        few = [env for env in case.envs if env["n"] * env["k"] < 400 or name.startswith(("16", "64x2x16x1x1x2"))]
        yield name, on_kernel(at(case, few), case.provider, case.config)  # none is constant: nothing is read early


def _splits() -> Iterator[tuple[str, Case]]:
    for name, case in in_turn(attention_gpu.split_cases()):
        few = [env for env in case.envs if env["b"] * env["s"] * env["l"] < 2500]
        yield name, on_kernel(at(case, few), case.provider, case.config)


ROUNDS = {"b": 1, "m": 200, "n": 33, "k": 25}
"""More tiles than blocks run at once, and in all more steps than a ring has stages."""
FORMS = ("gelu", "offset", "wide", "shared", "one", "heads", "odd", "odd-ccr", "odd-bmm", "odd-rows", "odd-wide", "odd-mask", "odd-view")  # fmt: skip


def _hoppers() -> Iterator[tuple[str, Case]]:
    cases = hopper.hopper_cases()
    tiles = [name for name in cases if name[0].isdigit()]
    splits = [name for name in cases if name.startswith("split")]
    # each tile with rows that start anywhere or not; the second operand, a weight, may be read early
    for i, name in enumerate(tiles):
        case = cases[name if i % 2 == 0 else f"odd-{name}"]
        envs = [ROUNDS, case.envs[1]] if i % 2 == 0 else [{**ROUNDS, "n": 255, "k": 9}, case.envs[2]]
        yield name, on_kernel(at(case, envs), case.provider, case.config, case.constants)
    for name in splits:
        case = cases[name]
        yield name, on_kernel(at(case, case.envs[:2]), case.provider, case.config, case.constants)
    plain = {name: case for name, case in cases.items() if name.rpartition("-")[0] in FORMS or name.startswith("gemm-")}
    for name, case in in_turn(plain):
        few = [env for env in case.envs if env["b"] * env["m"] > 0 and env["m"] * env["n"] < 17000]
        yield name, on_kernel(at(case, few[-2:]), "hopper", cases[name].config)
    gated = {name: case for name, case in cases.items() if name.startswith("gated-")}
    for i, (name, case) in enumerate(gated.items()):
        few = [env for env in case.envs if env["b"] * env["m"] > 0 and env["m"] * env["n"] < 17000]
        rounds = [{**ROUNDS, "n": (33, 255)[i % 2], "k": 9}] if any(map(str.isdigit, name.split("-")[-2])) else []
        yield name, on_kernel(at(case, [*rounds, few[-2]]), case.provider, case.config, case.constants)
    for layout in ("rcr", "crr"):
        case = hopper.made("gemm", layout, "f16", [{"b": 1, "m": 41, "n": 33, "k": 25}], "mnk")
        yield f"cluster4-{layout}-f16", on_kernel(case, "hopper", HopperTile(64, 128, 4, 4, 1, 1).config())


def _hopper_attentions() -> Iterator[tuple[str, Case]]:
    cases = attention_gpu.hopper_cases()
    tiles = {name: case for name, case in cases.items() if name[0].isdigit()}
    for name, case in (*tiles.items(), *in_turn({name: case for name, case in cases.items() if name not in tiles})):
        few = [env for env in case.envs if env["b"] * env["s"] * env["l"] < 40000 and env["l"] * env["s"] > 1]
        yield name, on_kernel(at(case, few), "hopper", cases[name].config)


def _check_hopper(library: Library, case: Case, name: str) -> None:
    check(library, case, CONTRACTION_ULPS["f32" if "wide" in name else _type(name)], GEMM_FLOOR[_type(name)])


def _mfmas() -> Iterator[tuple[str, Case]]:
    narrow = {name: case for name, case in gemm_cases().items() if _type(name) in ("f16", "bf16")}
    for i, (name, case) in enumerate(in_turn(narrow)):
        tile = MFMA_TILES[i % len(MFMA_TILES)]
        yield name, on_kernel(at(case, SMALL_GEMMS), "mfma", tile.config())
    for i, tile in enumerate(MFMA_TILES):
        for layout, t in (("rcr", ("f16", "bf16")[i % 2]), ("crr", ("bf16", "f16")[i % 2])):
            case = contraction(
                "gemm", layout, t, [{"b": 1, "m": 200, "n": 136, "k": 136}], extras=[("n", t)], body=BIAS_GELU
            )
            yield f"{'x'.join(map(str, tile.values()))}-{layout}-{t}", on_kernel(case, "mfma", tile.config())


def _attentions(types: Iterable[str]) -> Iterator[tuple[str, Case]]:
    envs = ({"b": 2, "s": 37, "l": 70, "d": 24}, {"b": 1, "s": 1, "l": 1, "d": 1}, {"b": 1, "s": 0, "l": 7, "d": 8})
    for name, case in attention_cases().items():
        if _type(name) in types:
            yield name, at(case, envs if "window-50" not in name else [*envs[:2], {"b": 1, "s": 3, "l": 133, "d": 16}])


GEMM_FLOOR = {"f16": 2e-6, "bf16": 2e-6, "f32": 2e-6, "f64": 1e-14}
# The weights of the tensor-core form are rounded to the element type before the second product.
ATTENTION_FLOOR = {"f16": 1e-3, "bf16": 8e-3, "f32": 2e-5, "f64": 3e-14}
EXACT = dict.fromkeys(("i1", "i8", "i32", "i64"), 0.0)
MAP_ULPS = {"f16": 0.51, "bf16": 0.51, "f32": 4.0, "f64": 8.0} | EXACT
MAP_FLOOR = {"f16": 3e-7, "bf16": 3e-7, "f32": 3e-7, "f64": 1e-15} | EXACT
ROW_ULPS = {"f16": 0.6, "bf16": 0.51, "f32": 16.0, "f64": 64.0}
ROW_FLOOR = {"f16": 1e-6, "bf16": 1e-6, "f32": 1e-6, "f64": 1e-14}
CONTRACTION_ULPS = {"f16": 0.6, "bf16": 0.6, "f32": 2.0, "f64": 2.0}


def on_both(*names: str) -> dict[Kind, frozenset[str]]:
    return {"cuda": frozenset(names), "rocm": frozenset(names)}


FAMILIES = {
    "map": Family(
        {
            "cuda": frozenset({"map_repeat_kernel", "map_kernel", "map_flat_kernel"}),
            "rocm": frozenset({"map_kernel", "map_flat_kernel"}),
        },
        dict(_maps()),
        within(MAP_ULPS, MAP_FLOOR),
    ),
    "copy": Family(
        on_both("copy_strided_kernel", "copy_tiled_kernel", "copy_squares_kernel", "copy_rows_kernel"),
        {
            name: at(case, (*case.envs[:3], *({"b": 24, "s": s} for s in (40, 41) if name.startswith("transpose-"))))
            for name, case in test_copy.CASES.items()
        },
        lambda library, case, _: test_copy.check_bits(library, case),
    ),
    "gather": Family(
        on_both("gather_kernel"), {"-".join(key): case for key, case in test_gather.CASES.items()}, _check_rows_of_table
    ),
    "row": Family(
        {
            "cuda": frozenset(
                {"row_bulk_kernel", "row_ring_kernel", "row_split_kernel", "row_kernel", "softmax_columns_kernel"}
            ),
            "rocm": frozenset({"row_kernel", "softmax_columns_kernel"}),
        },
        dict(_rows()),
        within(ROW_ULPS, ROW_FLOOR),
    ),
    "reduce": Family(
        {
            "cuda": frozenset({"reduce_rows_kernel", "reduce_columns_kernel", "reduce_shared_columns_kernel"}),
            "rocm": frozenset({"reduce_rows_kernel", "reduce_columns_kernel"}),
        },
        dict(_reductions()),
        _check_reduction,
    ),
    "reduce-split": Family(
        on_both("reduce_part_rows_kernel", "reduce_part_columns_kernel", "reduce_join_kernel"),
        dict(split_cases()),
        check_split,
    ),
    "select": Family(
        on_both("select_kernel"), dict(_selections()), lambda library, case, _: test_reduce.check_select(library, case)
    ),
    "gemm": Family(
        {"cuda": frozenset({"gemm_mma_kernel", "gemm_simt_kernel"}), "rocm": frozenset({"gemm_simt_kernel"})},
        dict(_gemms(("f16", "bf16", "f32"))),
        within(CONTRACTION_ULPS, GEMM_FLOOR),
    ),
    "tiles": Family({"cuda": frozenset({"gemm_mma_kernel"})}, dict(_tiles()), within(CONTRACTION_ULPS, GEMM_FLOOR)),
    "stream": Family(
        {"cuda": frozenset({"gemm_stream_kernel"})}, dict(_streams()), within(CONTRACTION_ULPS, GEMM_FLOOR)
    ),
    "hopper": Family({"cuda": frozenset({"gemm_wgmma_kernel"})}, dict(_hoppers()), _check_hopper),
    "mfma": Family({"rocm": frozenset({"gemm_mfma_kernel"})}, dict(_mfmas()), within(CONTRACTION_ULPS, GEMM_FLOOR)),
    "split": Family(
        {"cuda": frozenset({"attention_split_kernel"})}, dict(_splits()), within(CONTRACTION_ULPS, ATTENTION_FLOOR)
    ),
    "flash": Family(
        {"cuda": frozenset({"attention_hopper_kernel"})},
        dict(_hopper_attentions()),
        within(CONTRACTION_ULPS, ATTENTION_FLOOR),
    ),
    "attention": Family(
        {
            "cuda": frozenset({"attention_mma_kernel", "attention_simt_kernel"}),
            "rocm": frozenset({"attention_simt_kernel"}),
        },
        dict(_attentions(("f16", "bf16", "f32"))),
        within(CONTRACTION_ULPS, ATTENTION_FLOOR),
    ),
}
