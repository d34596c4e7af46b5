"""The table of architectures: what kernels ask of it, and architectures that it does not have."""

from __future__ import annotations

import pytest

from ait_mlir.lowering.target import ARCHITECTURES, DEFAULT_ARCH, KINDS, Target, architecture


def test_default_architectures_have_rows_of_their_kind() -> None:
    assert {kind: ARCHITECTURES[DEFAULT_ARCH[kind]].kind for kind in KINDS} == {kind: kind for kind in KINDS}


@pytest.mark.parametrize(
    ("arch", "row"),
    [("sm_75", "sm_80"), ("sm_87", "sm_86"), ("sm_100a", "sm_100"), ("sm_103a", "sm_100"), ("sm_121f", "sm_120")],
)
def test_an_unknown_cuda_architecture_is_the_nearest_older_one(arch: str, row: str) -> None:
    assert architecture("cuda", arch) is ARCHITECTURES[row]


@pytest.mark.parametrize(
    ("kind", "arch", "row"),
    [("rocm", "gfx1100", "gfx"), ("cpu", "znver4", "native"), ("cpu", "sm_90a", "native")],
)
def test_other_architectures_have_the_plain_row_of_their_kind(kind: str, arch: str, row: str) -> None:
    assert architecture(kind, arch) is ARCHITECTURES[row]  # pyright: ignore[reportArgumentType]


def test_capabilities_of_the_architecture_specific_set() -> None:
    assert Target("cuda", "sm_90a").has("wgmma", "clusters", "bulk_copies", "mma")
    assert Target("cuda", "sm_90").has("clusters") and not Target("cuda", "sm_90").has("wgmma")
    assert not Target("cuda", "sm_100a").has("wgmma")
    assert not Target("cuda", "sm_89").has("clusters")
    assert Target("rocm", "gfx942").has("mfma") and not Target("rocm", "gfx908").has("mfma")
    assert not Target("cpu", "native").has("mma")
