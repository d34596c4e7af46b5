"""The cases that run on the emulator, by family of kernels, at small sizes, and how each is checked.

The families of `tests/specs` come first; then what only some templates do: long rows through shared memory, tiles, rings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ait_mlir.dialects.ait.gemm import ContractionOp
from ait_mlir.lowering.kernels.gemm_hopper import HopperTile
from ait_mlir.lowering.kernels.gemm_mfma import TILES as MFMA_TILES
from ait_mlir.lowering.kernels.gemm_tiles import TILES
from ait_mlir.lowering.toolchain import cpp_root
from tests import tiers
from tests.emulator.library import TARGETS, Kind
from tests.kernels import attention_float8, attention_gpu, attention_ragged, hopper, loops, random_loops, rows
from tests.kernels.contractions import BIAS_GELU, BIAS_RESIDUAL, TANH_MUL_ADD, contraction, gemm_cases
from tests.kernels.conv import grouped_cases, hopper_cases, mma_cases, patch_cases, planes_cases
from tests.kernels.copies import copies_cases
from tests.kernels.group_norm import group_norm_cases
from tests.kernels.harness import Case, Library, check, random_inputs
from tests.kernels.library_gemm import ConfiguredCase, on_kernel
from tests.kernels.masked import check_masked, masked_cases
from tests.kernels.recurrence import recurrence_cases
from tests.kernels.reduce_split import check_split, split_cases
from tests.kernels.scaled import scaled_cases
from tests.kernels.scatter import check_ordered, ordered_cases
from tests.kernels.stored import stored_cases
from tests.kernels.stream import stream_cases
from tests.specs.draw import Drawn, draw, sample
from tests.specs.gemm import GEMM, SCALED_GEMM
from tests.specs.recurrence import STATES
from tests.specs.tolerance import BITS, PRODUCTS, SUMS

Env = Mapping[str, int]
Check = Callable[[Library, Case, str], None]
"""Runs a case, whose name ends with its element type, and compares."""

KINDS: tuple[Kind, ...] = ("cuda", "rocm")
NOT_EMULATED: dict[Kind, dict[str, str]] = {
    "cuda": {
        "gemm_mfma_kernel": "HIP only",
        "all_reduce_peers_kernel": "in test_peers.py",
        "reduced_norm_peers_kernel": "in test_peers.py",
        "scatter_wide_rows_kernel": "in test_scatter_order.py",
    },
    "rocm": {
        "all_reduce_peers_kernel": "CUDA only",
        "reduced_norm_peers_kernel": "CUDA only",
        "align_rows_kernel": "CUDA only",
        "attention_hopper_kernel": "CUDA only",
        "attention_mma_kernel": "CUDA only",
        "attention_ragged_mma_kernel": "CUDA only",
        "attention_split_kernel": "CUDA only",
        "conv_grouped_kernel": "CUDA only",
        "conv_patch_kernel": "CUDA only",
        "conv_mma_kernel": "CUDA only",
        "cumulative_copied_columns_kernel": "CUDA only",
        "gemm_mma_kernel": "CUDA only",
        "gemm_rotated_simt_kernel": "CUDA only",
        "map_repeat_kernel": "CUDA only",
        "radix_cluster_kernel": "CUDA only",
        "recurrence_kernel": "CUDA only",
        "row_bulk_kernel": "CUDA only",
        "row_ring_kernel": "CUDA only",
        "row_split_kernel": "CUDA only",
        "scatter_wide_rows_kernel": "in test_scatter_order.py",
        "reduce_shared_columns_kernel": "CUDA only",
        "gemm_scaled_kernel": "CUDA only",
        "gemm_stored_mma_kernel": "CUDA only",
        "gemm_stream_kernel": "CUDA only",
        "gemm_wgmma_kernel": "CUDA only",
    },
}
"""Kernel templates that no case here runs, and why."""


@dataclass(frozen=True)
class Family:
    """The templates that some cases must reach on each target, and how the cases are made and checked."""

    templates: dict[Kind, frozenset[str]]
    make: Callable[[], dict[str, Case]]
    """The cases of the tier by name, which ends with the element type."""
    check: Check
    arguments: tuple[str, ...] = ()
    """The types that some kernel must have as a template argument."""


def templates() -> set[str]:
    """The names of all kernels in the headers of the runtime."""
    found: set[str] = set()
    for path in sorted((cpp_root() / "include/ait/kernels/gpu").glob("*.cuh")):
        found.update(re.findall(r"__global__[^;{]*?\b(\w+_kernel)\(", path.read_text(), re.DOTALL))
    return found


def at(case: Case, envs: Sequence[Env]) -> Case:
    """The same case at other dims."""
    return replace(case, envs=envs)


def as_run(case: Case) -> Case:
    """A case of rows: `make test` compiles few of the kernels for other lengths than those that it runs."""
    return case if tiers.FULL else case.no_larger()


def filling(case: Case) -> Case:
    """A case of spatial dims at sizes that fill the emulated card, too: then a thread computes several places."""
    return at(case, [*case.envs, {"b": 3, "h": 33}])


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


# ** the specifications **


def _check_drawn(drawn: Mapping[str, Drawn], library: Library, case: Case, name: str) -> None:
    found = drawn[name]
    found.spec.close.on_gpu().check(library, case, found.type)
    if found.spec.special is not None:
        found.spec.close.check_special(library, case, found.spec.special, found.type)


def share(make: Callable[[], Iterator[tuple[str, Case]]], turn: int = 0, of: int = 2) -> Callable[[], dict[str, Case]]:
    """Of cases that cost the compiler much, one in `of` in `make test`."""

    def made() -> dict[str, Case]:
        cases = dict(make())
        return tiers.of_tier(cases, tiers.one_in(of, cases, turn))

    return made


def on_both(
    name: str, templates: Sequence[str], make: Callable[[], Mapping[str, Case]], check: Check
) -> dict[str, Family]:
    """A family of the same cases on both targets; in `make test` each has half of them."""
    return {
        f"{name}-{kind}": Family({kind: frozenset(templates)}, share(lambda: iter(make().items()), turn), check)
        for turn, kind in enumerate(KINDS)
    }


def drawn_families(
    family: str,
    *templates: str,
    cuda: Sequence[str] = (),
    prepared: Callable[[Case], Case] = lambda case: case,
    arguments: tuple[str, ...] = (),
) -> dict[str, Family]:
    """The cases of a family of specifications on each target; of the templates those of `cuda` are for CUDA alone."""
    families: dict[str, Family] = {}
    for kind in KINDS:
        drawn = tiers.of_tier(draw(kind, [family]), sample(kind, [family]))
        families[f"{family}-{kind}"] = Family(
            {kind: frozenset((*templates, *(cuda if kind == "cuda" else ())))},
            lambda drawn=drawn: {name: prepared(found.case) for name, found in drawn.items()},
            partial(_check_drawn, drawn),
            arguments,
        )
    return families


# ** few long rows **


def chained_cumsums() -> dict[str, Case]:
    """The forms of cumsum whose blocks pass sums on: those that lie row-major."""
    drawn = {name: found for name, found in draw("gpu", ["cumulative"]).items() if not found.form.strides}
    forms = list(dict.fromkeys(found.form.name for found in drawn.values()))
    cases: dict[str, Case] = {}
    for name, found in drawn.items():
        types = found.spec.types_of(found.form)
        if found.type in (types[forms.index(found.form.name) % len(types)], types[0]):
            cases[f"chained-{name}"] = on_kernel(found.case, "chained")
    # more tiles of columns than a block asks for at once
    t = "!ait.tensor<4500 x 40 x f16>"
    text = f'ait.graph @g(%x: {t}) {{\n  %y = ait.cumulative sum %x dim 0 : {t}\n  ait.output "y" %y : {t}\n}}'
    cases["chained-tall-f16"] = on_kernel(Case(text, [{}]), "chained")
    return cases


# ** long and short rows **


def _rows() -> Iterator[tuple[str, Case]]:
    for length, t in (
        (768, "f16"),
        (1000, "f16"),
        (4096, "f32"),
        (9000, "f16"),
        (4097, "f16"),
        (20001, "f16"),
    ):  # a warp, a block, more than a block holds, rows that begin anywhere, shared memory
        yield f"long-softmax-{length}-{t}", at(rows.softmax(f"b x {length}", 1, t), [{"b": 3, "s": 1}])
        norm = rows.layer_norm(f"b x {length}", str(length), t, 1)
        yield f"long-norm-{length}-{t}", at(norm, [{"b": 3, "s": 1}])
    yield from rows.RING.items()
    for name, case in rows.short(MULTIPROCESSORS).items():
        yield name, as_run(case)
    for name, shape in (("many", "2100 x 64"), ("few", "9 x 64")):  # with factors that any launch may have written
        yield f"{name}-norm-f16", rows.layer_norm(shape, "64", "f16", 1)
        yield f"{name}-rms-f16", rows.layer_norm(shape, "64", "f16", 1, "scale %g", op="rms_norm")


# ** contractions and attention **

SMALL_GEMMS = ({"b": 2, "m": 37, "n": 45, "k": 70}, {"b": 1, "m": 1, "n": 1, "k": 1}, {"b": 2, "m": 5, "n": 7, "k": 0})
TILE_ENVS = (
    {"b": 1, "m": 65, "n": 72, "k": 200},
    {"b": 1, "m": 33, "n": 37, "k": 71},
    {"b": 1, "m": 1, "n": 8, "k": 8},
)


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
FORMS = ("gelu", "offset", "columns", "odd-columns", "wide", "shared", "one", "heads", "odd", "odd-ccr", "odd-bmm", "odd-rows", "odd-wide", "odd-mask", "odd-view")  # fmt: skip


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
    rotated = {name: case for name, case in cases.items() if name.startswith("rotated-")}
    for name, case in rotated.items():
        few = [env for env in case.envs if 0 < env["b"] * env["m"] < 300]
        yield name, on_kernel(at(case, few[-2:]), case.provider, case.config, case.constants)
    for layout in ("rcr", "crr"):
        case = hopper.made("gemm", layout, "f16", [{"b": 1, "m": 41, "n": 33, "k": 25}], "mnk")
        yield f"cluster4-{layout}-f16", on_kernel(case, "hopper", HopperTile(64, 128, 4, 4, 1, 1).config())
    # rows of the factors that start anywhere are copied first
    yield from hopper.padded_cases().items()
    # several results
    for name, case in in_turn({name: case for name, case in cases.items() if "summed" in name}):
        few = [env for env in case.envs if env["b"] * env["m"] > 0 and env["m"] * env["n"] < 17000]
        rounds = [{**ROUNDS, "n": 255, "k": 9} if "odd" in name else ROUNDS] if case.constants else []
        yield name, on_kernel(at(case, [*rounds, *few[-2:]]), case.provider, case.config, case.constants)


def _hopper_bytes() -> Iterator[tuple[str, Case]]:
    for i, (name, case) in enumerate(hopper.byte_cases().items()):
        yield name, on_kernel(at(case, case.envs[i % 3 : i % 3 + 1]), "hopper", case.config, case.constants)


    for name, case in hopper.number_cases().items():
        yield name, on_kernel(at(case, [case.envs[i] for i in (0, 2, 6)]), "hopper", case.config)


def _check_sums(library: Library, case: Case, name: str) -> None:
    PRODUCTS.on_gpu().check(library, case, _type(name))
    if name.startswith("rows-numbers"):
        hopper.check_quotients(library, case)


def _hopper_attentions() -> Iterator[tuple[str, Case]]:
    cases = attention_gpu.hopper_cases()
    tiles = {name: case for name, case in cases.items() if name[0].isdigit()}
    for name, case in (*tiles.items(), *in_turn({name: case for name, case in cases.items() if name not in tiles})):
        few = [env for env in case.envs if env["b"] * env["s"] * env["l"] < 40000 and env["l"] * env["s"] > 1]
        yield name, on_kernel(at(case, few), "hopper", cases[name].config)


def _number_attentions() -> Iterator[tuple[str, Case]]:
    for name, case in in_turn(attention_gpu.number_cases()):
        few = [env for env in case.envs if env["b"] * env["s"] * env["l"] < 6000 and env["l"] * env["s"] > 1]
        assert isinstance(case, ConfiguredCase)
        yield name, on_kernel(at(case, few), "hopper", case.config)


def _check_numbers(library: Library, case: Case, name: str) -> None:
    check(library, case, attention_gpu.NUMBER_ULPS, ATTENTION_FLOOR[_type(name)])


def _float8_attentions() -> Iterator[tuple[str, Case]]:
    for name, case in attention_float8.cases().items():
        few = [env for env in case.envs if 0 < env["b"] * env["s"] * env["l"] < 40000]
        yield name, on_kernel(at(case, few), "hopper", case.config)


def _ragged_attentions() -> Iterator[tuple[str, Case]]:
    cases = attention_ragged.hopper_cases()
    tiles = {name: case for name, case in cases.items() if name[0].isdigit()}
    for name, case in (*tiles.items(), *in_turn({name: case for name, case in cases.items() if name not in tiles})):
        few = [env for env in case.envs if env["b"] * env.get("s", 1) * env["l"] < 60000]
        yield name, on_kernel(at(case, few), "hopper", cases[name].config)


def _check_ragged(library: Library, case: Case, name: str) -> None:
    attention_ragged.check_poisoned(library, case, CONTRACTION_ULPS[_type(name)], ATTENTION_FLOOR[_type(name)])


def _check_hopper(library: Library, case: Case, name: str) -> None:
    check(library, case, CONTRACTION_ULPS["f32" if "wide" in name else _type(name)], GEMM_FLOOR[_type(name)])


def _mfmas() -> Iterator[tuple[str, Case]]:
    narrow = {
        name: case
        for name, case in gemm_cases().items()
        if _type(name) in ("f16", "bf16") and isinstance(case.op, ContractionOp)
    }
    for i, (name, case) in enumerate(in_turn(narrow)):
        tile = MFMA_TILES[i % len(MFMA_TILES)]
        yield name, on_kernel(at(case, SMALL_GEMMS), "mfma", tile.config())
    for i, tile in enumerate(MFMA_TILES):
        for layout, t in (("rcr", ("f16", "bf16")[i % 2]), ("crr", ("bf16", "f16")[i % 2])):
            case = contraction(
                "gemm", layout, t, [{"b": 1, "m": 200, "n": 136, "k": 136}], extras=[("n", t)], body=BIAS_GELU
            )
            yield f"{'x'.join(map(str, tile.values()))}-{layout}-{t}", on_kernel(case, "mfma", tile.config())
        case = GEMM.case(GEMM.find("bytes-moved"), "i8", few=True)
        yield f"{'x'.join(map(str, tile.values()))}-moved-i8", on_kernel(case, "mfma", tile.config())


GEMM_FLOOR = {"f16": 2e-6, "bf16": 2e-6, "f32": 2e-6, "f64": 1e-14, "i8": 0.0}
# The weights of the tensor-core form are rounded to the element type before the second product.
ATTENTION_FLOOR = {"f16": 1e-3, "bf16": 8e-3, "f32": 2e-5, "f64": 3e-14}
ROW_ULPS = {"f16": 0.6, "bf16": 0.51, "f32": 16.0, "f64": 64.0}
ROW_FLOOR = {"f16": 1e-6, "bf16": 1e-6, "f32": 1e-6, "f64": 1e-14}
CONTRACTION_ULPS = {"f16": 0.6, "bf16": 0.6, "f32": 2.0, "f64": 2.0, "i8": 0.0}


def _check_grouped(library: Library, case: Case, name: str) -> None:
    """Also that an infinity in the first group of channels stays there, though warps multiply several groups."""
    within(CONTRACTION_ULPS, GEMM_FLOOR)(library, case, name)
    inputs = random_inputs(case, case.envs[0])
    inputs[0][..., 0] = np.inf
    for result in library.run(case, case.envs[0], inputs):
        first = result.shape[-1] // case.op.num_groups()
        finite = np.isfinite(result.astype(np.float64))
        assert finite[..., first:].all() and not finite[..., :first].all()


def _random_loops(kind: Kind) -> dict[str, Case]:
    return dict(random_loops.random_cases(TARGETS[kind], range(200 if tiers.FULL else 16)))


ROW = ("row_kernel", "softmax_columns_kernel", "group_factors_kernel")
REDUCE = (
    "reduce_rows_kernel",
    "reduce_columns_kernel",
    "select_kernel",
    "topk_warp_kernel",
    "topk_part_kernel",
    "topk_join_kernel",
)
GROUPED = ("gemm_simt_kernel", "norm_grouped_kernel")
INDEX = (
    "gather_kernel",
    "gather_grouped_kernel",
    "update_kernel",
    "compact_count_kernel",
    "compact_kernel",
    "take_kernel",
    "scatter_kernel",
    "scatter_block_kernel",
    "scatter_rows_kernel",
    "scatter_find_kernel",
    "scatter_last_kernel",
    "scatter_sorted_kernel",
)
JAGGED = ("embedding_bag_kernel", "jagged_pad_kernel", "jagged_unpad_kernel", "jagged_vector_product_kernel")
CONV = ("conv_simt_kernel", "conv_depthwise_kernel", "conv_depthwise_lines_kernel", "conv_depthwise_window_kernel")
COPIES = (
    "copy_strided_kernel",
    "copy_few_kernel",
    "copy_mixed_kernel",
    "copy_tiled_kernel",
    "copy_squares_kernel",
    "copy_rows_kernel",
    "copy_pieces_kernel",
)

SORTING = (
    "sort_short_kernel",
    "sort_row_kernel",
    "sort_columns_kernel",
    "kth_value_kernel",
    "kth_tile_kernel",
    "radix_count_kernel",
    "radix_pass_kernel",
    "search_kernel",
    "histogram_kernel",
    "order_block_kernel",
)
DETECTION = ("roi_align_kernel", "nms_overlap_kernel", "nms_pick_kernel")
CUMULATIVE = ("cumulative_rows_kernel", "cumulative_blocks_kernel", "cumulative_columns_kernel")
MAPS = ("map_kernel", "map_flat_kernel", "map_pitched_kernel", "map_pairs_kernel")
ORDERED = ordered_cases()


def _counts(name: str) -> tuple[int, ...]:
    """Numbers of places: with 20,000 for 600 elements, a block of a kernel of segments has one element."""
    return (1, 300, 4200, 20000) if name.startswith(("segments", "followed")) else (1, 300, 4200)


FAMILIES = {
    **drawn_families("elementwise", *MAPS, cuda=["map_repeat_kernel"]),
    **drawn_families("norm", *ROW, prepared=as_run),
    **drawn_families("quantize"),
    **drawn_families("reduce", *REDUCE, cuda=["reduce_shared_columns_kernel"]),
    **drawn_families("cumulative", *CUMULATIVE, cuda=["cumulative_copied_columns_kernel"]),
    **on_both(
        "cumulative-chained",
        ("cumulative_chained_rows_kernel", "cumulative_chained_columns_kernel"),
        chained_cumsums,
        lambda library, case, name: SUMS.check(library, case, _type(name)),
    ),
    "recurrence": drawn_families("recurrence", cuda=["recurrence_kernel"])["recurrence-cuda"],
    "recurrence-plans": Family(
        {"cuda": frozenset({"recurrence_kernel"})},
        lambda: dict(recurrence_cases()),
        lambda library, case, name: STATES.check(library, case, _type(name)),
    ),
    **drawn_families("sorting", *SORTING, cuda=["radix_cluster_kernel"]),
    **on_both("masked", ("map_masked_kernel",), masked_cases, check_masked),
    **drawn_families("view", *COPIES),
    "copies": Family(
        dict.fromkeys(KINDS, frozenset({"copy_pieces_kernel", "copy_strided_kernel"})),
        lambda: dict(copies_cases()),
        lambda library, case, name: BITS.check(library, case, _type(name)),
    ),
    **drawn_families("index", *INDEX, cuda=["radix_cluster_kernel"]),
    "scatter-atomic": Family(
        dict.fromkeys(KINDS, frozenset({"scatter_atomic_kernel", "scatter_counters_kernel"})),
        lambda: {
            name: on_kernel(found.case, "atomic")
            for name, found in draw("cuda", ["index"]).items()
            if name in ("scatter-add-rows-i64", "scatter-add-two-i64", "scatter-add-counts-i64")
        },
        lambda library, case, name: BITS.check(library, case, _type(name)),
    ),
    "scatter-ordered": Family(
        {
            kind: frozenset(
                {"scatter_ordered_kernel", "scatter_segments_kernel", "scatter_lines_kernel", "order_block_kernel", sort}
            )
            for kind, sort in (("cuda", "radix_cluster_kernel"), ("rocm", "radix_pass_kernel"))
        },
        lambda: ORDERED,
        lambda library, case, name: check_ordered(library, ORDERED["order"], case, _counts(name)) if name != "order" else None,
    ),
    **drawn_families("jagged", *JAGGED),
    **drawn_families(
        "gemm",
        "gemm_simt_kernel",
        "gemm_stored_kernel",
        cuda=["gemm_mma_kernel", "gemm_scaled_kernel", "gemm_wgmma_kernel"],
    ),
    **drawn_families("grouped", *GROUPED, cuda=["gemm_mma_kernel"], arguments=("GroupedProducts", "RaggedProducts")),
    **drawn_families("conv", *CONV),
    **drawn_families("pad", "pad_kernel", "pad_rows_kernel"),
    **drawn_families("resize", "resize_kernel", "resize_double_kernel", "grid_sample_kernel", "grid_sample_planes_kernel", prepared=filling),
    **drawn_families("detection", *DETECTION),
    **drawn_families("pool", "pool_kernel", "pool_tile_kernel", "overlap_add_kernel", prepared=filling),
    **drawn_families(
        "attention",
        "attention_simt_kernel",
        "attention_ragged_kernel",
        cuda=["attention_mma_kernel", "attention_ragged_mma_kernel"],
    ),
    "row-cuda": Family(
        {"cuda": frozenset({"row_bulk_kernel", "row_ring_kernel", "row_split_kernel", "row_kernel"})},
        share(_rows, of=3),
        within(ROW_ULPS, ROW_FLOOR),
    ),
    "row-rocm": Family({"rocm": frozenset({"row_kernel"})}, share(_rows, 1, of=4), within(ROW_ULPS, ROW_FLOOR)),
    "group-norm-cuda": Family(
        {"cuda": frozenset({"group_norm_cluster_kernel"})},
        share(lambda: iter(group_norm_cases().items())),
        within(ROW_ULPS, ROW_FLOOR),
    ),
    "group-norm-rocm": Family(
        {"rocm": frozenset({"group_norm_cluster_kernel"})},
        share(lambda: iter(group_norm_cases(clusters=False).items()), 1, of=4),
        within(ROW_ULPS, ROW_FLOOR),
    ),
    "conv-mma": Family(
        {"cuda": frozenset({"conv_mma_kernel"})}, share(lambda: mma_cases("cuda")), within(CONTRACTION_ULPS, GEMM_FLOOR)
    ),
    "conv-grouped": Family(
        {"cuda": frozenset({"conv_grouped_kernel"})},
        lambda: dict(grouped_cases("cuda")),
        _check_grouped,
    ),
    **{
        f"conv-planes-{kind}": Family(
            {kind: frozenset({"conv_planes_kernel"})},
            share(lambda kind=kind: planes_cases(kind), turn, of=2 + 2 * turn),
            within(CONTRACTION_ULPS, GEMM_FLOOR),
        )
        for turn, kind in enumerate(KINDS)
    },
    "conv-patch": Family(
        {"cuda": frozenset({"conv_patch_kernel"})},
        lambda: dict(patch_cases("cuda")),
        within(CONTRACTION_ULPS, GEMM_FLOOR),
    ),
    "conv-hopper": Family(
        {"cuda": frozenset({"gemm_wgmma_kernel"})},
        share(lambda: hopper_cases("cuda")),
        within(CONTRACTION_ULPS, GEMM_FLOOR),
    ),
    "tiles": Family({"cuda": frozenset({"gemm_mma_kernel"})}, share(_tiles), within(CONTRACTION_ULPS, GEMM_FLOOR)),
    **{
        f"loops-{kind}": Family(
            {kind: frozenset()},
            share(
                lambda kind=kind: iter({**dict(loops.cases(TARGETS[kind])), **_random_loops(kind)}.items()),
                turn,
                of=2 + 2 * turn,
            ),
            loops.check_loops,
        )
        for turn, kind in enumerate(KINDS)
    },
    **on_both(
        "reduce-split",
        ("reduce_part_rows_kernel", "reduce_part_columns_kernel", "reduce_join_kernel"),
        split_cases,
        check_split,
    ),
    "stream": Family(
        {"cuda": frozenset({"gemm_stream_kernel"})}, lambda: dict(_streams()), within(CONTRACTION_ULPS, GEMM_FLOOR)
    ),
    "hopper-bytes": Family({"cuda": frozenset({"gemm_wgmma_kernel"})}, lambda: dict(_hopper_bytes()), _check_sums),
    "scaled": Family(
        {"cuda": frozenset({"gemm_mma_kernel", "gemm_wgmma_kernel"})},
        share(lambda: iter(scaled_cases(few=True).items())),
        lambda library, case, name: SCALED_GEMM.close.on_gpu().check(library, case, _type(name)),
        arguments=("ScaledProduct", "InScaledMatrices"),
    ),
    "stored": Family(
        {"cuda": frozenset({"gemm_stored_mma_kernel"})},
        lambda: dict(stored_cases(few=True)),
        within(CONTRACTION_ULPS, GEMM_FLOOR),
    ),
    "hopper": Family(
        {"cuda": frozenset({"gemm_wgmma_kernel", "gemm_rotated_simt_kernel", "align_rows_kernel"})},
        share(_hoppers, turn=1, of=3),
        _check_hopper,
    ),
    "mfma": Family({"rocm": frozenset({"gemm_mfma_kernel"})}, share(_mfmas), within(CONTRACTION_ULPS, GEMM_FLOOR)),
    "split": Family(
        {"cuda": frozenset({"attention_split_kernel"})},
        lambda: dict(_splits()),
        within(CONTRACTION_ULPS, ATTENTION_FLOOR),
    ),
    "flash": Family(
        {"cuda": frozenset({"attention_hopper_kernel"})},
        share(_hopper_attentions, of=3),
        within(CONTRACTION_ULPS, ATTENTION_FLOOR),
    ),
    "flash-numbers": Family(
        {"cuda": frozenset({"attention_hopper_kernel"})}, lambda: dict(_number_attentions()), _check_numbers
    ),
    "flash-float8": Family(
        {"cuda": frozenset({"attention_hopper_kernel"})},
        share(_float8_attentions, of=4),
        lambda library, case, name: attention_float8.check(library, case),
    ),
    "flash-ragged": Family({"cuda": frozenset({"attention_hopper_kernel"})}, share(_ragged_attentions), _check_ragged),
}
