"""Artifacts: what they hold, and that damaged ones are refused before anything is loaded."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from blake3 import blake3
from safetensors.torch import load as load_safetensors

from ait_mlir.errors import ArtifactError
from ait_mlir.runtime import Model, artifact, safetensors_part
from ait_mlir.runtime.data import to_numpy
from ait_mlir.runtime.manifest import Manifest
from ait_mlir.runtime.safetensors_part import Deferred
from tests.runtime.conftest import B, W, tiny_inputs, tiny_reference


def test_round_trip(tiny_artifact: Path, manifest: Manifest) -> None:
    loaded = artifact.read(tiny_artifact)
    assert loaded.ir_text == "// IR\n"
    assert (loaded.manifest.inputs, loaded.manifest.outputs) == (manifest.inputs, manifest.outputs)
    assert loaded.manifest.dims == manifest.dims
    assert loaded.manifest.producers["xdsl"] and loaded.manifest.instruction_sets
    np.testing.assert_array_equal(loaded.constants["w"], W)
    np.testing.assert_array_equal(loaded.constants["b"], B)
    assert not loaded.constants["w"].flags.writeable


def test_a_model_runs_from_its_artifact(tiny_artifact: Path) -> None:
    x, m = tiny_inputs(3 - 1, 4)
    with Model(tiny_artifact, num_runtimes=2) as model:
        assert model.manifest is not None and model.ir_text == "// IR\n"
        np.testing.assert_allclose(model.run_with_tensors([x, m])["y"], tiny_reference(x, m)[0], rtol=1e-6)


def test_constants_are_safetensors_on_a_page(tmp_path: Path, manifest: Manifest, library: Path) -> None:
    random = np.random.default_rng(0)
    constants = {
        "a.weight": random.random((3, 5), np.float32),
        "ids": np.arange(7),
        "mask": np.array([True, False]),
        "half": np.float16([1.5]),
        "bf": np.arange(5, dtype=ml_dtypes.bfloat16),
        "empty": np.zeros((0, 4), np.float64),
        "scalar": np.array(3, np.int8),
        "strided": random.random((4, 6))[:, ::2],
    }
    path = artifact.write(tmp_path / "c.ait", manifest, "", library, constants)
    loaded = artifact.read(path)
    part = loaded.parts["constants"]
    offset, size = part.offset, part.size
    assert offset % 4096 == 0
    raw = path.read_bytes()[offset : offset + size]
    assert (8 + int.from_bytes(raw[:8], "little")) % 4096 == 0
    theirs = load_safetensors(raw)
    for name, value in constants.items():
        ours = loaded.constants[name]
        assert ours.dtype == value.dtype and ours.shape == value.shape and ours.tobytes() == value.tobytes(), name
        assert ours.ctypes.data % ours.itemsize == 0
        assert to_numpy(theirs[name]).tobytes() == value.tobytes()


def test_deferred_constants_are_made_one_at_a_time(tmp_path: Path, manifest: Manifest, library: Path) -> None:
    made: list[str] = []
    written: list[str] = []

    def deferred(name: str) -> Deferred:
        def make() -> np.ndarray[Any, Any]:
            made.append(name)
            return np.full((300, 7), len(made), np.float32)

        return Deferred((300, 7), np.dtype(np.float32), make)

    constants = {name: deferred(name) for name in "abc"}
    for _ in safetensors_part.encode_data(constants):
        written.append(made[-1])
        assert len(made) == len(written)
    made.clear()
    loaded = artifact.read(artifact.write(tmp_path / "c.ait", manifest, "", library, constants))
    assert {name: value[0, 0] for name, value in loaded.constants.items()} == {"a": 1, "b": 2, "c": 3}


def test_hashes_are_blake3(tiny_artifact: Path) -> None:
    raw = tiny_artifact.read_bytes()
    size = int.from_bytes(raw[16:24], "little")
    assert raw[32:64] == blake3(raw[64 : 64 + size]).digest()
    for part in json.loads(raw[64 : 64 + size])["parts"].values():
        assert blake3(raw[part["offset"] : part["offset"] + part["size"]]).hexdigest() == part["blake3"]


def test_what_an_artifact_cannot_hold(tmp_path: Path, manifest: Manifest, library: Path) -> None:
    with pytest.raises(ArtifactError, match="constant 'c' has dtype complex64"):
        artifact.write(tmp_path / "c.ait", manifest, "", library, {"c": np.zeros(1, np.complex64)})
    with pytest.raises(ArtifactError, match="cannot be the name of a model"):
        artifact.write(tmp_path / "c.ait", dataclasses.replace(manifest, name='x"; y'), "", library, {})
    assert list(tmp_path.iterdir()) == []


def test_every_bit_of_header_and_manifest_counts(tiny_artifact: Path, tmp_path: Path) -> None:
    good = tiny_artifact.read_bytes()
    size = int.from_bytes(good[16:24], "little")
    flipped = tmp_path / "flipped.ait"
    for bit in range(8 * (64 + size + 16)):
        flip_and_refuse(good, bit, flipped)


@pytest.mark.parametrize("count", [300, pytest.param(1000, marks=pytest.mark.full)])
def test_flipped_bits_are_refused(tiny_artifact: Path, tmp_path: Path, count: int) -> None:
    good = tiny_artifact.read_bytes()
    for bit in np.random.default_rng(1).integers(0, 8 * len(good), count):
        flip_and_refuse(good, int(bit), tmp_path / "flipped.ait")


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.full)])
def test_truncated_files_are_refused(tiny_artifact: Path, tmp_path: Path, count: int) -> None:
    """Also where the header says that the file is so short."""
    good = tiny_artifact.read_bytes()
    path = tmp_path / "cut.ait"
    for size in map(int, np.random.default_rng(3).integers(0, len(good), count)):
        for header in (good[24:32], size.to_bytes(8, "little")):
            path.unlink(missing_ok=True)
            path.write_bytes((good[:24] + header + good[32:])[:size])
            with pytest.raises(ArtifactError, match=r"truncated|damaged"):
                artifact.read(path)


def flip_and_refuse(good: bytes, bit: int, path: Path) -> None:
    bad = bytearray(good)
    bad[bit // 8] ^= 1 << (bit % 8)
    path.unlink(missing_ok=True)
    path.write_bytes(bad)
    with pytest.raises(ArtifactError):
        artifact.read(path)


def test_truncated_and_extended_files_are_refused(tiny_artifact: Path, tmp_path: Path) -> None:
    good = tiny_artifact.read_bytes()
    for size in [0, 1, 63, 64, 65, 4096, len(good) // 2, len(good) - 4096, len(good) - 1]:
        path = tmp_path / f"cut{size}.ait"
        path.write_bytes(good[:size])
        with pytest.raises(ArtifactError, match="truncated"):
            Model(path)
    path = tmp_path / "long.ait"
    path.write_bytes(good + b"\0")
    with pytest.raises(ArtifactError, match="truncated or damaged"):
        Model(path)


def test_damaged_weights_are_refused_unless_told_not_to_look(tiny_artifact: Path) -> None:
    with tiny_artifact.open("r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)
        file.seek(-1, 2)
        file.write(bytes([last[0] ^ 1]))
    with pytest.raises(ArtifactError, match="part 'constants' does not have the hash"):
        Model(tiny_artifact)
    assert artifact.read(tiny_artifact, verify_weights=False).manifest.name == "tiny"


def test_code_is_checked_even_when_weights_are_not(tiny_artifact: Path) -> None:
    part = artifact.read(tiny_artifact).parts["library"]
    raw = bytearray(tiny_artifact.read_bytes())
    raw[part.offset + part.size // 2] ^= 4
    tiny_artifact.unlink()
    tiny_artifact.write_bytes(raw)
    with pytest.raises(ArtifactError, match="part 'library' does not have the hash"):
        Model(tiny_artifact, verify_weights=False)


def test_another_version_is_refused_by_its_number(tiny_artifact: Path) -> None:
    raw = bytearray(tiny_artifact.read_bytes())
    raw[8] = 7
    tiny_artifact.unlink()
    tiny_artifact.write_bytes(raw)
    with pytest.raises(ArtifactError, match="has artifact format 7, expected 2: compile the model again"):
        Model(tiny_artifact)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "tpu"}, "is for target 'tpu', which this ait_mlir does not know"),
        (
            {"instruction_sets": ("avx9000",)},
            r"a CPU with features that this one lacks \(native needs avx9000\): compile it here",
        ),
    ],
)
def test_another_machine_is_refused(
    tmp_path: Path, manifest: Manifest, library: Path, change: dict[str, object], message: str
) -> None:
    other = dataclasses.replace(manifest, **change)
    path = artifact.write(tmp_path / "other.ait", other, "", library, {})
    with pytest.raises(ArtifactError, match=message):
        Model(path)


@pytest.mark.parametrize(
    ("arch", "card", "fits"),
    [
        ("sm_90a", "sm_90a", True),
        ("sm_90a", "sm_100a", False),
        ("sm_80", "sm_86", True),
        ("sm_86", "sm_80", False),
        ("sm_80", "sm_90a", False),
        ("sm_90a", None, True),  # no card: the device says so, in better words
    ],
)
def test_which_card_runs_which_code(manifest: Manifest, arch: str, card: str | None, fits: bool) -> None:
    cuda = dataclasses.replace(manifest, target="cuda", arch=arch)
    if fits:
        artifact.check_machine(cuda, lambda: card)
        return
    with pytest.raises(ArtifactError, match=f"compiled for {arch}, this card is {card}"):
        artifact.check_machine(cuda, lambda: card)


@pytest.mark.parametrize(
    ("arch", "cards", "message"),
    [
        ("gfx90a", ("gfx90a",), None),
        ("gfx90a", ("gfx1036", "gfx90a"), None),
        ("gfx90a", (), None),  # no card: the device says so, in better words
        ("gfx90a", ("gfx942", "gfx942"), "compiled for gfx90a, the AMD cards of this machine are gfx942: compile it"),
        (
            "gfx1100",
            ("gfx1100",),
            "compiled for gfx1100: .* its waves have 32 lanes, the kernels need 64; expected one of",
        ),
    ],
)
def test_which_amd_card_runs_which_code(
    manifest: Manifest, arch: str, cards: tuple[str, ...], message: str | None
) -> None:
    rocm = dataclasses.replace(manifest, target="rocm", arch=arch)
    if message is None:
        artifact.check_machine(rocm, lambda: None, lambda: cards)
        return
    with pytest.raises(ArtifactError, match=message):
        artifact.check_machine(rocm, lambda: None, lambda: cards)


def test_a_library_for_another_target_is_refused(tmp_path: Path, manifest: Manifest, library: Path) -> None:
    wrong = library.read_bytes().replace(b"\0cpu\0", b"\0gpu\0")
    path = artifact.write(tmp_path / "wrong.ait", manifest, "", wrong, {})
    with pytest.raises(ArtifactError, match="was compiled for target gpu, this runtime runs target cpu"):
        Model(path)


def test_not_an_artifact(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="there is no such artifact"):
        Model(tmp_path / "missing.ait")
    with pytest.raises(ArtifactError, match="cannot be read"):
        Model(tmp_path)
    (tmp_path / "x.ait").write_text(json.dumps({"name": "x"}) * 50)
    with pytest.raises(ArtifactError, match="is no artifact: it does not begin with the magic number"):
        Model(tmp_path / "x.ait")


def test_a_damaged_copy_in_the_cache_is_replaced(tiny_artifact: Path) -> None:
    loaded = artifact.read(tiny_artifact)
    copy = loaded.extract_library()
    good = copy.read_bytes()
    copy.unlink()  # not written in place: the library may be loaded
    copy.write_bytes(good[:-100])
    assert loaded.extract_library().read_bytes() == good


def test_a_failed_write_leaves_the_old_file(tiny_artifact: Path, manifest: Manifest, library: Path) -> None:
    good = tiny_artifact.read_bytes()
    with pytest.raises(ArtifactError):
        artifact.write(tiny_artifact, manifest, "new", library, {"c": np.zeros(1, np.complex128)})
    assert tiny_artifact.read_bytes() == good
    assert [path.name for path in tiny_artifact.parent.iterdir()] == ["tiny.ait"]
