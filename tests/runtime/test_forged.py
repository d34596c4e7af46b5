"""Artifacts and safetensors files with the right hashes and the wrong content: each is refused by name."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blake3 import blake3

from ait_mlir.errors import AitError, ArtifactError
from ait_mlir.lowering.build import build_deploy_library
from ait_mlir.lowering.estimates import read_table
from ait_mlir.runtime import artifact
from ait_mlir.runtime.safetensors_part import decode, encode_header
from ait_mlir.selection.timings import read_shipped
from ait_mlir.tools.commands.common import UsageError, read_npy
from tests.fuzz import load


def set_at(value: Any, *path: Any) -> Any:
    """Sets the last item of `path`, at the place in the JSON that the others name."""
    *holders, key, new = path
    inner = value
    for holder in holders:
        inner = inner[holder]
    inner[key] = new
    return value


MANIFESTS = {
    "digest": (("kernel_libraries", 1, "sha256", "../../../tmp/x"), "sha256 is '../../../tmp/x', expected 64 hexa"),
    "hash": (("parts", "library", "blake3", "../x"), r"parts.library.blake3 is '../x', expected 64 hexadecimal"),
    "negative": (("parts", "constants", "size", -1), r"parts.constants.size is -1, expected a whole number from 0"),
    "large": (("parts", "constants", "size", 1 << 64), r"expected a whole number from 0 to 9223372036854775807"),
    "text": (("parts", "constants", "offset", "8192"), r"parts.constants.offset is '8192', expected a whole number"),
    "float": (("dims", 0, "lo", 1.5), r"dims\[0\].lo is 1.5, expected a whole number"),
    "order": (("dims", 0, "hi", 0), r"dims\[0\].hi is 0, expected a whole number from 1"),
    "list": (("inputs", 0, "shape", "batch"), r"inputs\[0\].shape is 'batch', expected a list"),
    "dtype": (("inputs", 0, "dtype", "complex64"), r"inputs\[0\].dtype is 'complex64', expected one of float16"),
    "donated": (("outputs", 1, "in_place_of", "z"), r"in_place_of is 'z', expected the name of an input"),
    "surrogate": (("inputs", 0, "name", "\ud800"), r"without halves of surrogate pairs"),
    "object": (("parts", []), r"the manifest.parts is \[\], expected an object"),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_manifest_with_a_wrong_value_is_refused(tmp_path: Path, case: str) -> None:
    change, message = MANIFESTS[case]
    path = tmp_path / "bad.ait"
    path.write_bytes(load.forged(set_at(load.good_manifest(), *change)))
    with pytest.raises(ArtifactError, match=rf"bad.ait has a malformed manifest: .*{message}"):
        artifact.read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[" * 3000, "deeper than 64 levels"),
        (b"[" * 66 + b"]" * 66, "deeper than 64 levels"),
        (b"[]", "expected an object"),
        (b'{"name": "a", "name": "b"}', "'name' twice"),
        (b'{"name": NaN}', "NaN is no number"),
        (b"\xff", "is no JSON"),
        (b"9" * 3000, "expected an object"),
    ],
)
def test_json_beyond_its_depth_or_range_is_refused(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "bad.ait"
    path.write_bytes(load.forged(text))
    with pytest.raises(ArtifactError, match=message):
        artifact.read(path)


def safetensors(header: Any, body: bytes = bytes(16)) -> np.ndarray[Any, np.dtype[np.uint8]]:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return np.frombuffer(len(text).to_bytes(8, "little") + text + body, np.uint8)


def tensor(begin: Any, end: Any, dtype: Any = "F32", shape: Any = (2,)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape) if isinstance(shape, tuple) else shape, "data_offsets": [begin, end]}


HEADERS: dict[str, tuple[Any, str]] = {
    "negative": ({"a": tensor(-8, 0)}, r"a.data_offsets\[0\] is -8, expected a whole number"),
    "reversed": ({"a": tensor(8, 0)}, "expected two numbers that are 8 apart"),
    "overlapping": ({"a": tensor(0, 8), "b": tensor(4, 12)}, "the bytes of 'b' overlap those of another tensor"),
    "the same": ({"a": tensor(0, 8), "b": tensor(0, 8)}, "the bytes of 'b' overlap"),
    "gap": ({"a": tensor(0, 8), "b": tensor(12, 20)}, "the bytes of 'b' leave a gap behind byte 8"),
    "rest": ({"a": tensor(0, 8)}, "the tensors have 8 bytes, but 16 follow the header"),
    "beyond": ({"a": tensor(0, 32, shape=(8,))}, "the tensors have 32 bytes, but 16 follow"),
    "twice": (b'{"a": {}, "a": {}}', "an object has 'a' twice"),
    "list": ([], r"the header is \[\], expected an object"),
    "tensor": ({"a": 3}, "a is 3, expected an object"),
    "dtype": ({"a": tensor(0, 8, "F4")}, "dtype is 'F4', expected one of F16"),
    "dtype of another kind": ({"a": tensor(0, 8, ["F32"])}, "expected a string"),
    "extent": ({"a": tensor(0, 8, shape=(-2,))}, r"shape\[0\] is -2, expected a whole number"),
    "extent of another kind": ({"a": tensor(0, 8, shape=(2.0,))}, r"shape\[0\] is 2.0, expected a whole number"),
    "shape": ({"a": tensor(0, 8, shape=2)}, "shape is 2, expected a list"),
    "elements": ({"a": tensor(0, 0, shape=(0, 1 << 40, 1 << 40))}, "elements"),
    "rank": ({"a": tensor(0, 4, shape=(1,) * 100)}, "expected at most 64 dims"),
    "offsets": ({"a": {**tensor(0, 8), "data_offsets": [0, 8, 16]}}, "expected two numbers"),
    "range": ({"a": tensor(0, 1 << 64)}, "expected a whole number from 0 to"),
    "depth": (b"[" * 100_000, "deeper than 64 levels"),
    "metadata": ({"__metadata__": {"a": 3}}, "__metadata__.a is 3, expected a string"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_of_safetensors_that_lies_is_refused(case: str) -> None:
    header, message = HEADERS[case]
    with pytest.raises(ArtifactError, match=rf"^the constants are no safetensors file: .*{message}"):
        decode(safetensors(header))


@pytest.mark.parametrize("data", [b"", b"\0" * 7, (1 << 63).to_bytes(8, "little"), (1 << 64) - 1])
def test_a_header_longer_than_its_file_is_refused(data: Any) -> None:
    raw = data if isinstance(data, bytes) else data.to_bytes(8, "little") + b"{}"
    with pytest.raises(ArtifactError, match="its header has"):
        decode(np.frombuffer(raw, np.uint8))


def test_what_a_safetensors_file_may_hold() -> None:
    found = decode(safetensors({"__metadata__": {"format": "pt"}, "b": tensor(8, 16, "I64", (1,)), "a": tensor(0, 8)}))
    assert {name: (a.dtype.name, a.shape) for name, a in found.items()} == {
        "b": ("int64", (1,)),
        "a": ("float32", (2,)),
    }


def test_a_sparse_file_is_refused_before_its_holes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap of gigabytes between two parts takes no room on the disk, and no time here."""
    hole = 1 << 34
    manifest = load.good_manifest()
    start = manifest["parts"]["constants"]["offset"]
    for part in manifest["parts"].values():
        part["offset"] += hole if part["offset"] >= start else 0
    good = load.forged(manifest)
    path = tmp_path / "sparse.ait"
    with path.open("wb") as file:
        file.write(good[:24] + (len(good) + hole).to_bytes(8, "little") + good[32:start])
        file.seek(start + hole)
        file.write(good[start:])
    assert os.stat(path).st_blocks * 512 < 1 << 20
    with pytest.raises(ArtifactError, match="part 'constants' is not where the manifest says"):
        artifact.read(path)


@pytest.mark.parametrize("name", ["ir", "library", "constants"])
def test_a_part_that_is_a_hole_is_refused_before_it_is_read(name: str, tmp_path: Path) -> None:
    """A small file that claims gigabytes: each loader says so, and reads none of them."""
    manifest, size = load.good_manifest(), 1 << 29
    start, end = (manifest["parts"][name][key] for key in ("offset", "size"))
    manifest["parts"][name]["size"], manifest["kernel_libraries"] = size, []
    for other in manifest["parts"].values():
        other["offset"] += size if other["offset"] > start else 0
    good = load.forged(manifest)
    path, rest = tmp_path / "hole.ait", b"" if name == "constants" else good[start + end :]
    with path.open("wb") as file:
        file.write(good[:24] + (start + size + len(rest)).to_bytes(8, "little") + good[32:start])
        file.truncate(start + size)
        file.seek(start + size)
        file.write(rest)
    assert os.stat(path).st_blocks * 512 < 1 << 20
    told = "the constants are no safetensors file" if name == "constants" else f"of part '{name}' were never written"
    with pytest.raises(ArtifactError, match=told):
        artifact.read(path)
    assert told in refusal_in_c(path)


@pytest.mark.parametrize("verify", [True, False])
def test_constants_that_are_a_hole_take_no_memory(verify: bool, tmp_path: Path) -> None:
    """A header that truly describes gigabytes of zeros, with their hash: they are hashed, and no page of them is
    touched."""
    manifest, size = load.good_manifest(), 3 << 29
    manifest["kernel_libraries"] = []
    place = manifest["parts"]["constants"]
    header, _ = encode_header({"w": np.broadcast_to(np.float32(0), (size // 4,))})
    digest = blake3(header)
    for _ in range(size >> 24):
        digest.update(bytes(1 << 24))
    place["size"], place["blake3"] = len(header) + size, digest.hexdigest()
    good = load.forged(manifest)
    path, end = tmp_path / "zeros.ait", place["offset"] + place["size"]
    with path.open("wb") as file:
        file.write(good[:24] + end.to_bytes(8, "little") + good[32 : place["offset"]] + header)
        file.truncate(end)
    read = f"artifact.read({str(path)!r}, verify_weights={verify})"
    program = f"from ait_mlir.runtime import artifact; a = {read}.constants; print(a['w'][-1], a['w'].nbytes); " + (
        # the most of this process: `ru_maxrss` also counts the process that started it
        "import re; print(int(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1]) // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    value, nbytes, megabytes = done.stdout.split()
    assert (float(value), int(nbytes)) == (0, size) and int(megabytes) < 600


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_regular_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    """Each loader reads no device, and waits for no writer of a pipe."""
    path = Path("/dev/zero") if kind == "device" else tmp_path / "pipe.ait"
    if kind == "pipe":
        os.mkfifo(path)
    loads = f"from ait_mlir.runtime import artifact; artifact.read({str(path)!r})"
    command = [sys.executable, "-c", loads]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert f"ArtifactError: {path} is no artifact: expected a regular file, not a pipe or device" in done.stderr
    assert f"{path} is no artifact: expected a regular file" in refusal_in_c(path)


def refusal_in_c(path: Path) -> str:
    """The error of the library for C and C++ programs."""
    api, model = ctypes.CDLL(str(build_deploy_library("cpu"))), ctypes.c_void_p()
    api.ait_last_error.restype = ctypes.c_char_p
    assert api.ait_model_load(os.fsencode(path), None, ctypes.byref(model)) == 2  # AIT_ARTIFACT_ERROR
    return api.ait_last_error().decode()


def test_a_header_of_safetensors_is_not_read_into_memory_for_its_length(tmp_path: Path) -> None:
    path = tmp_path / "sparse.safetensors"
    with path.open("wb") as file:
        file.write((1 << 34).to_bytes(8, "little") + b"{")
        file.truncate(1 << 35)
    with pytest.raises(ArtifactError, match="its header has 17179869184 bytes, expected at most 100000000"):
        decode(np.memmap(path, np.uint8, mode="r"))


def test_several_arrays_and_broken_headers_are_no_npy_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "many.npy", np.zeros(2))
    (tmp_path / "many.npy.npz").rename(tmp_path / "many.npy")
    with pytest.raises(UsageError, match="it holds several arrays"):
        read_npy(str(tmp_path / "many.npy"))
    good = load.good_npy()
    (tmp_path / "cut.npy").write_bytes(good.replace(b"}", b"("))
    with pytest.raises(UsageError, match=r"is no \.npy file"):
        read_npy(str(tmp_path / "cut.npy"))


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "1", '{"arch": [1e999]}', '{"method": 3}', "NaN", "\x00"])
def test_tables_of_times_and_estimates_that_are_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.json"
    path.write_text(text)
    with pytest.raises(AitError, match=r"table.json is no table of estimates"):
        read_table(path)
    with pytest.raises(AitError, match=r"table.json is no file of shipped timings"):
        read_shipped(path)
