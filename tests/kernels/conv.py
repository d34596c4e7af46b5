"""Cases of convolutions for each provider: the forms of the specification that it matches, on its kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ait_mlir.dialects.ait.types import scope_of
from ait_mlir.lowering.kernels import Kernel, Target, kernels_for
from ait_mlir.lowering.kernels.conv_hopper import HopperConv
from ait_mlir.lowering.kernels.conv_patch import TILES as PATCH_TILES
from ait_mlir.lowering.kernels.gemm_hopper import TILES as HOPPER_TILES
from ait_mlir.lowering.kernels.gemm_hopper import HopperTile
from ait_mlir.lowering.kernels.gemm_tiles import TILES
from tests.kernels.harness import Case
from tests.kernels.library_gemm import on_kernel
from tests.specs.draw import draw
from tests.specs.spec import Consumer


def forms_of(provider: str, target: Target, consumer: Consumer) -> dict[str, Case]:
    """The forms that a provider matches, at each element type."""
    return {
        name: on_kernel(found.case, provider)
        for name, found in draw(consumer, ["conv"]).items()
        if (kernel := _kernel(provider, found.case, target)) is not None and _accepts(kernel, found.case)
    }


def _kernel(provider: str, case: Case, target: Target) -> Kernel[Any] | None:
    return next((k for k in kernels_for(case.op, target) if k.provider == provider), None)


def _accepts(kernel: Kernel[Any], case: Case) -> bool:
    """Whether the kernel can read and write the strides of the case."""
    ins, outs = case.args()
    return all(kernel.accepts(case.op, i, arg.strides, scope_of(case.op)) for i, arg in enumerate((*ins, *outs)))


def mma_cases(consumer: Consumer) -> Iterator[tuple[str, Case]]:
    """Each tile on one of the forms, and each form on one of the tiles; those whose K is long enough also split."""
    forms = forms_of("mma", Target("cuda", "sm_90a"), consumer)
    names = list(forms)
    for i in range(max(len(names), len(TILES))):
        name, tile = names[i % len(names)], TILES[i % len(TILES)]
        split = (1, 2, 4)[i % 3] if tile.m * tile.n <= 64 * 64 else 1
        yield f"{i}-{name}", on_kernel(forms[name], "mma", tile.config() | {"split": split})


def grouped_cases(consumer: Consumer) -> Iterator[tuple[str, Case]]:
    """Each form; the weight of every other one may be read early. Then images that share a tile, several tiles of an
    image, and more groups than a block has."""
    for i, (name, case) in enumerate(forms_of("grouped", Target("cuda", "sm_90a"), consumer).items()):
        yield f"grouped-{name}", on_kernel(case, "grouped", None, (1,) if i % 2 else ())
    for name, x, w, y, clauses in (
        ("images", "5 x 7 x 7 x 64", "64 x 3 x 3 x 8", "5 x 7 x 7 x 64", "pad [1, 1] groups 8"),
        ("tiles", "2 x 39 x 41 x 32", "32 x 3 x 3 x 4", "2 x 20 x 21 x 32", "stride [2, 2] pad [1, 1] groups 8"),
        ("parts", "1 x 20 x 20 x 160", "160 x 3 x 3 x 4", "1 x 20 x 20 x 160", "pad [1, 1] groups 40"),
    ):
        tensors = [f"!ait.tensor<{shape} x f16>" for shape in (x, w, y)]
        text = (
            f"ait.graph @g(%x: {tensors[0]}, %w: {tensors[1]}) {{\n"
            f'  %y = ait.conv %x, %w {clauses} : {tensors[2]}\n  ait.output "y" %y : {tensors[2]}\n}}'
        )
        yield f"grouped-{name}-f16", on_kernel(Case(text, [{}]), "grouped")


def planes_cases(consumer: Consumer) -> Iterator[tuple[str, Case]]:
    """Each form; then images in channels-first order: many small ones, several bands of lines, wide ones, steps, and
    groups of several channels, more than a block has."""
    for name, case in forms_of("planes", Target("cuda", "sm_90a"), consumer).items():
        yield f"planes-{name}", on_kernel(case, "planes")
    for name, x, w, y, clauses, kind in (
        ("small", (3, 7, 7, 70), (70, 3, 3, 1), (3, 7, 7, 70), "pad [1, 1] groups 70", "f16"),
        ("bands", (2, 45, 150, 3), (3, 7, 7, 1), (2, 45, 150, 3), "pad [3, 3] groups 3", "bf16"),
        ("steps", (2, 29, 31, 6), (6, 3, 5, 1), (2, 15, 16, 6), "stride [2, 2] pad [1, 2] groups 6", "f32"),
        ("groups", (2, 12, 13, 64), (16, 4, 4, 16), (2, 11, 12, 16), "pad [1, 1] groups 4", "f32"),
        ("many", (1, 9, 40, 4), (66, 3, 3, 2), (1, 9, 40, 66), "pad [1, 1] groups 2", "f16"),
        ("doubled", (2, 20, 20, 4), (12, 3, 3, 1), (2, 20, 20, 12), "pad [1, 1] groups 4", "f32"),
        ("deep", (2, 30, 27, 64), (16, 4, 4, 32), (2, 29, 26, 16), "pad [1, 1] groups 2", "f32"),
        ("one", (1, 8, 9, 62), (2, 9, 9, 31), (1, 4, 5, 2), "stride [2, 2] pad [4, 4] groups 2", "f16"),
    ):
        tensors = [f"!ait.tensor<{' x '.join(map(str, dims))} x {kind}>" for dims in (x, w, y)]
        text = (
            f"ait.graph @g(%x: {tensors[0]}, %w: {tensors[1]}) {{\n"
            f'  %y = ait.conv %x, %w {clauses} : {tensors[2]}\n  ait.output "y" %y : {tensors[2]}\n}}'
        )
        yield f"planes-{name}-{kind}", on_kernel(Case(text, [{}], {0: _planes(x), 2: _planes(y)}), "planes")


def _planes(dims: tuple[int, ...]) -> tuple[str, ...]:
    """The strides of [images, lines, places, channels] in channels-first order."""
    _, lines, places, channels = dims
    return str(lines * places * channels), str(places), "1", str(lines * places)


def patch_cases(consumer: Consumer) -> Iterator[tuple[str, Case]]:
    """Each form on one of the tiles, and each tile; the weight of every other one may be read early. Then images that
    share a tile, several tiles of an image, few and odd channels, many columns, and results off boundaries."""
    for i, (name, case) in enumerate(forms_of("patch", Target("cuda", "sm_90a"), consumer).items()):
        tile = PATCH_TILES[i % len(PATCH_TILES)]
        yield f"patch{i}-{name}", on_kernel(case, "patch", tile.config(), (1,) if i % 2 else ())
    for i, (name, x, w, y, clauses, options) in enumerate(
        (
            ("images", "5 x 7 x 7 x 16", "24 x 3 x 3 x 16", "5 x 7 x 7 x 24", "pad [1, 1]", {}),
            ("tiles", "2 x 39 x 41 x 8", "16 x 5 x 5 x 8", "2 x 20 x 21 x 16", "stride [2, 2] pad [2, 2]", {}),
            ("three", "2 x 33 x 30 x 3", "16 x 7 x 7 x 3", "2 x 17 x 15 x 16", "stride [2, 2] pad [3, 3]", {}),
            ("dilated", "1 x 20 x 21 x 24", "20 x 3 x 3 x 24", "1 x 20 x 21 x 20", "pad [2, 2] dilation [2, 2]", {}),
            ("wide", "2 x 12 x 12 x 32", "136 x 3 x 3 x 32", "2 x 12 x 12 x 136", "pad [1, 1]", {}),
            ("odd", "2 x 12 x 13 x 12", "13 x 3 x 3 x 12", "2 x 12 x 13 x 13", "pad [1, 1]", {"offset": 1}),
            ("line", "3 x 50 x 40", "16 x 5 x 40", "3 x 50 x 16", "pad [2]", {}),
            ("one", "1 x 1 x 1 x 8", "8 x 3 x 3 x 8", "1 x 1 x 1 x 8", "pad [1, 1]", {}),
        )
    ):
        tensors = [f"!ait.tensor<{shape} x f16>" for shape in (x, w, y)]
        text = (
            f"ait.graph @g(%x: {tensors[0]}, %w: {tensors[1]}) {{\n"
            f'  %y = ait.conv %x, %w {clauses} : {tensors[2]}\n  ait.output "y" %y : {tensors[2]}\n}}'
        )
        case = Case(text, [{}], **options)  # type: ignore[arg-type]
        yield f"patch-{name}-f16", on_kernel(case, "patch", PATCH_TILES[i % len(PATCH_TILES)].config())


def hopper_cases(consumer: Consumer) -> Iterator[tuple[str, Case]]:
    """Each tile on one of the forms, and each form on one of the tiles; the weight may be read early."""
    forms = forms_of("hopper", Target("cuda", "sm_90a"), consumer)
    names = list(forms)
    kernel, target = HopperConv(), Target("cuda", "sm_90a")
    for i in range(max(len(names), len(HOPPER_TILES))):
        name, tile = names[i % len(names)], HOPPER_TILES[i % len(HOPPER_TILES)]
        if kernel.config_problem(forms[name].op, tile.config(), target) is not None:
            tile = HopperTile.of(kernel.configs(forms[name].op, target)[i % 2])
        yield f"hopper{i}-{name}", on_kernel(forms[name], "hopper", tile.config(), (1,) if i % 2 else ())
