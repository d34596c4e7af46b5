"""The table of architectures: what kernels ask of it, and architectures that it does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from ait_mlir.errors import ToolchainError
from ait_mlir.frontend import target as frontend_target
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_text
from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering import toolchain
from ait_mlir.lowering.module_target import make_target, target_of
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
    [("cpu", "znver4", "native"), ("cpu", "sm_90a", "native")],
)
def test_other_architectures_have_the_plain_row_of_their_kind(kind: str, arch: str, row: str) -> None:
    assert architecture(kind, arch) is ARCHITECTURES[row]  # pyright: ignore[reportArgumentType]


WAVES = "its waves have 32 lanes, the kernels need 64; expected one of gfx906, gfx908, gfx90a, gfx942"


@pytest.mark.parametrize("arch", ["gfx1010", "gfx1036", "gfx1100", "gfx1151", "gfx1201"])
def test_amd_architectures_with_waves_of_32_lanes_are_refused_by_name(arch: str) -> None:
    message = f"architecture {arch} of target rocm is not supported: {WAVES}"
    with pytest.raises(PassError, match=message):
        make_target("rocm", arch)
    with pytest.raises(ToolchainError, match=message):
        toolchain.toolchain("rocm", arch)
    with pytest.raises(ToolchainError, match=message):
        _ = Target("rocm", arch).row


@pytest.mark.parametrize("arch", ["gfx803", "gfx950", "gfx90a:xnack+", "sm_90a"])
def test_other_amd_architectures_without_a_row_are_refused(arch: str) -> None:
    with pytest.raises(ToolchainError, match="of target rocm is not supported; expected one of gfx906"):
        _ = Target("rocm", arch).row


def test_a_module_for_waves_of_32_lanes_is_refused() -> None:
    module = parse_text(context(), 'builtin.module attributes {ait.target = "rocm", ait.arch = "gfx1100"} {}')
    with pytest.raises(PassError, match=WAVES):
        target_of(module)


def machine(folder: Path, *versions: int) -> Path:
    """A folder as the AMD driver has it, with a CPU (version 0) or a card for each version."""
    for i, version in enumerate(versions):
        (folder / str(i)).mkdir(parents=True)
        (folder / str(i) / "properties").write_text(f"cpu_cores_count 8\ngfx_target_version {version}\nsimd_count 4\n")
    return folder


@pytest.mark.parametrize(
    ("versions", "cards", "chosen"),
    [((), (), "gfx90a"), ((0,), (), "gfx90a"), ((0, 90402), ("gfx942",), "gfx942"),
     ((0, 100306, 90010), ("gfx1036", "gfx90a"), "gfx90a"), ((0, *[90008] * 11), ("gfx908",) * 11, "gfx908")],
)  # fmt: skip
def test_the_default_is_the_first_amd_card_that_is_supported(
    versions: tuple[int, ...], cards: tuple[str, ...], chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "_KFD", machine(tmp_path, *versions))
    assert toolchain.detect_rocm_archs() == cards
    assert toolchain.default_arch("rocm") == make_target("rocm", "native").arch == chosen


def test_amd_cards_with_waves_of_32_lanes_are_refused_when_they_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "_KFD", machine(tmp_path, 0, 110000))
    with pytest.raises(ToolchainError, match=f"architecture gfx1100 .*{WAVES}, but the AMD cards .* are gfx1100; name"):
        toolchain.default_arch("rocm")
    monkeypatch.setattr(frontend_target, "detect_cuda_arch", lambda: None)
    monkeypatch.setattr(frontend_target, "_hip_devices", lambda: 1)
    assert frontend_target.detect_target() == frontend_target.Target("cpu")
    (tmp_path / "1" / "properties").write_text("gfx_target_version 90402\n")
    assert frontend_target.detect_target() == frontend_target.Target("rocm", "gfx942")


def test_capabilities_of_the_architecture_specific_set() -> None:
    assert Target("cuda", "sm_90a").has("wgmma", "clusters", "bulk_copies", "mma")
    assert Target("cuda", "sm_90").has("clusters") and not Target("cuda", "sm_90").has("wgmma")
    assert not Target("cuda", "sm_100a").has("wgmma")
    assert not Target("cuda", "sm_89").has("clusters")
    assert Target("rocm", "gfx942").has("mfma") and not Target("rocm", "gfx908").has("mfma")
    assert not Target("cpu", "native").has("mma")
