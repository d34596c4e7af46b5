"""Which group norms are one launch, how they are split, and configurations that the template would refuse."""

from __future__ import annotations

import re

import pytest

from ait_mlir.dialects.ait.types import scope_of, tensor_type
from ait_mlir.dims import parse
from ait_mlir.lowering.candidates import candidates_of
from ait_mlir.lowering.kernels import Target, kernel_of, kernels_for
from tests.kernels.group_norm import group_norm, plan, split
from tests.kernels.harness import Case, sources_of
from tests.kernels.library_gemm import on_kernel

CUDA, AMPERE, ROCM, CPU = (
    Target("cuda", "sm_90a"), Target("cuda", "sm_80"), Target("rocm", "gfx90a"), Target("cpu", "native"),
)  # fmt: skip


def norm(shape: str, groups: int, dim: int = 3) -> Case:
    return Case(
        f"ait.graph @g(%x: !ait.tensor<{shape}>) dims {{b = 1 to 2}} {{\n"
        f"  %y = ait.group_norm %x dim {dim} groups {groups} eps 1e-05 : !ait.tensor<{shape}>\n"
        f'  ait.output "y" %y : !ait.tensor<{shape}>\n}}'
    )


@pytest.mark.parametrize(
    ("shape", "groups", "dim", "target", "matches"),
    [
        ("b x 64 x 64 x 320 x f16", 32, 3, CUDA, True),
        ("b x 64 x 64 x 320 x f16", 32, 3, ROCM, True),
        ("b x 64 x 64 x 320 x f16", 32, 3, CPU, False),
        ("b x 64 x 64 x 320 x f64", 32, 3, CUDA, False),  # moments are floats
        ("b x 320 x 64 x 64 x f16", 32, 1, CUDA, False),  # the channels are not the last dim
        ("b x 64 x 64 x 128 x f16", 32, 3, CUDA, True),  # groups of 4 channels, two of an access
        ("b x 64 x 64 x 24 x f16", 24, 3, CUDA, True),
        ("b x 64 x 64 x 128 x f32", 32, 3, CUDA, True),  # accesses of 4
        ("b x 8 x 8 x 512 x f16", 1, 3, CUDA, True),
        ("b x 8 x 8 x 1024 x f16", 1, 3, CUDA, False),  # more channels than threads
        ("b x 8 x 8 x 36 x f16", 4, 3, CUDA, True),  # accesses of 4, since 36 channels are no whole accesses of 8
    ],
)
def test_matches(shape: str, groups: int, dim: int, target: Target, matches: bool) -> None:
    op = norm(shape, groups, dim).op
    assert ("cluster" in [k.provider for k in kernels_for(op, target)]) is matches


def test_plans_fill_the_card() -> None:
    """Whole groups and whole accesses, the least that has whole lines; a cluster where few blocks would be busy."""
    for shape, width, clusters in (
        ("b x 64 x 64 x 320 x f16", 40, {8}),
        ("b x 64 x 64 x 960 x f16", 120, {8}),
        ("b x 8 x 8 x 1280 x f16", 40, {1}),
    ):
        op = norm(shape, 32).op
        first = kernel_of("cluster", op, CUDA).configs(op, CUDA)[0]
        assert (first["width"], first["cluster"]) == (width, first["cluster"]) and first["cluster"] in clusters
    for target in (AMPERE, ROCM):
        assert {c["cluster"] for c in kernel_of("cluster", op, target).configs(op, target)} == {1}


@pytest.mark.parametrize(
    ("channels", "groups", "t", "elements", "of_group"),
    [
        (320, 32, "f16", 8, 0),
        (128, 32, "f16", 8, 4),
        (16, 8, "bf16", 8, 2),
        (16, 8, "f32", 4, 2),
        (24, 8, "bf16", 2, 0),
        (24, 24, "f16", 4, 1),
        (36, 4, "f16", 4, 0),
        (48, 8, "f32", 4, 0),
    ],
)
def test_an_access_has_channels_of_two_groups_or_some_whole_groups(
    channels: int, groups: int, t: str, elements: int, of_group: int
) -> None:
    case = on_kernel(norm(f"b x 9 x 9 x {channels} x {t}", groups), "cluster", {})
    text = "\n".join(sources_of([case], CUDA).values())
    assert re.search(rf"group_norm<epilogue_\w+, ait::gpu::NormPart::whole, {elements}, {of_group}, ", text)


def test_small_samples_may_be_shared_by_more_blocks() -> None:
    """16 channels in groups of 2 are one unit, or two: narrower than a line, which the cache has."""
    op = norm("b x 64 x 64 x 16 x f16", 8).op
    for provider in ("cluster", "split"):
        assert {c["width"] for c in kernel_of(provider, op, CUDA).configs(op, CUDA)} == {8, 16}


def test_two_launches_are_shared_by_as_many_blocks_as_a_card_runs() -> None:
    for shape, groups in (("b x 64 x 64 x 16 x f16", 8), ("b x 256 x 256 x 32 x f16", 32), ("b x 8 x 8 x 64 x f16", 8)):
        op = norm(shape, groups).op
        kernel = kernel_of("split", op, CUDA)
        for config in kernel.configs(op, CUDA):
            assert kernel.config_problem(op, config, CUDA) is None
            blocks = 2 * (tensor_type(op.operands[0]).dims[-1].as_int() or 0) // config["width"] * config["splits"]
            assert blocks <= 8 * CUDA.multiprocessors


def test_two_launches_pass_the_moments_of_each_block() -> None:
    case = group_norm("f16", 80, 8, split(40, 3, 2), provider="split")
    (found,) = kernel_of("split", case.op, CUDA).between(case.op, split(40, 3, 2), CUDA)
    assert str(found) == "!ait.tensor<b x 384 x f32>"  # 8 groups, 3 blocks, 4 slices, 4 numbers
    text = "\n".join(sources_of([case], CUDA).values())
    assert [f"NormPart::{part}" in text for part in ("moments", "result", "whole")] == [True, True, False]


def test_it_is_the_estimate_where_blocks_have_room() -> None:
    def best(shape: str, groups: int) -> str:
        found = min(candidates_of(norm(shape, groups).op, CUDA), key=lambda f: f.seconds)
        return found.kernels[0][0]

    assert best("b x 64 x 64 x 320 x f16", 32) == best("b x 8 x 8 x 2560 x f16", 32) == "cluster"
    assert best("b x 64 x 64 x 16 x f16", 8) == "split"  # a cluster is few blocks
    assert best("b x 1024 x 1024 x 256 x f16", 2) != "cluster"  # few blocks, which read twice


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"width": 12}, "width is 12, expected a multiple of 10"),
        ({"width": 30}, "width is 30, expected a multiple of 10, the channels of a group, that divides 80"),
        ({"width": 0}, "width is 0"),
        ({"cluster": 3}, "cluster is 3"),
        ({"items": 3}, "items is 3, expected one of 1, 2, 4, 8, 16"),
    ],
)
def test_bad_configurations(config: dict[str, int], message: str) -> None:
    case = group_norm("f16", 80, 8, plan(40, 1, 1))
    kernel = kernel_of("cluster", case.op, CUDA)
    assert message in (kernel.config_problem(case.op, config, CUDA) or "")
    assert kernel.config_problem(case.op, plan(40, 8, 4), CUDA) is None
    assert "cluster is 8" in (kernel.config_problem(case.op, plan(40, 8, 4), AMPERE) or "")
    two = kernel_of("split", case.op, CUDA)
    assert "splits is 257, expected 1 to 256" in (two.config_problem(case.op, split(40, 257, 1), CUDA) or "")
    assert "splits is 0" in (two.config_problem(case.op, split(40, 0, 1), CUDA) or "")
    assert two.config_problem(case.op, split(40, 7, 1), AMPERE) is None


def test_strides() -> None:
    op = group_norm("f16", 40, 4, {}, residual="b x 1 x 1 x 40").op
    kernel, scope = kernel_of("cluster", op, CUDA), scope_of(op)

    def accepts(position: int, *strides: str) -> bool:
        return kernel.accepts(op, position, tuple(parse(s) for s in strides), scope)

    assert accepts(0, "s*240", "240", "80", "1") and not accepts(0, "1", "240", "80", "3")
    assert accepts(1, "1") and not accepts(1, "2") and not accepts(2, "2")
    assert accepts(3, "80", "0", "0", "2") and accepts(4, "s*360", "360", "120", "3")
