"""Damaged and forged files in the loaders of Python: `python -m tests.fuzz.load --count 100000`.

Each seed makes one file: an artifact, a safetensors file of weights, an .npy file or a request to a server, with bytes, values of its JSON, or
places of its parts changed. Half of the artifacts have the right hashes for that, as a forger would write them. A loader
may take the file or raise an `AitError`, nothing else; of a file that it takes, all is read and printed. Nothing of a
file is loaded as code. What has passed is remembered in build/fuzz_load; a file that failed is written there.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import json
import random
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from blake3 import blake3

from ait_mlir.errors import AitError
from ait_mlir.runtime import artifact
from ait_mlir.runtime.manifest import DimInfo, KernelLibraryInfo, Manifest, TensorInfo
from ait_mlir.runtime.safetensors_part import encode
from ait_mlir.serve import messages
from ait_mlir.tools.commands import common, inspect
from tests.fuzz.ranges import Campaign, Tried

RANGE = 200
KINDS = (
    "bytes",
    "manifest",
    "manifest text",
    "header",
    "header text",
    "places",
    "ir",
    "weights",
    "weights text",
    "npy",
    "request",
)
_STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 7, 4096, 1 << 31, 1 << 62, (1 << 63) - 1, 1 << 63, -(1 << 63), 1 << 70, 10**400),
    *(0.5, -0.0, 1e308, float("inf"), float("nan")),
    *(
        "",
        "x",
        "a" * 64,
        "0" * 64,
        "../../../etc/passwd",
        "/dev/zero",
        "\0",
        "\ud800",
        "\x1b[2J\x07",
        "\u202e",
        "n" * 5000,
    ),
    *("float32", "bfloat16", "F32", "F8_E4M3", "complex64", "O", "batch", "1 +", "9" * 30, "b*" * 500 + "b"),
    *([], {}, [0, 0], [[]], [None], [-1, 4], [4, 0], [0, 1 << 63], {"": ""}, {"name": {}}, [1 << 20] * 3, [0] * 100),
)
_DEEP = (b"[" * 100_000, b'{"a":' * 5_000, b"[" * 70 + b"]" * 70, b'{"a": 1, "a": 2}', b"NaN", b"1e999", b"9" * 5_000)


@functools.cache
def good_artifact() -> bytes:
    """An artifact whose library is no library: nothing here loads one."""
    stored = b"\x7fELF of a kernel library"
    with tempfile.TemporaryDirectory() as folder:
        kernels = Path(folder) / "kernels.so"
        kernels.write_bytes(stored)
        sha256 = artifact._sha256(stored)
        manifest = Manifest(
            name="tiny",
            target="cpu",
            arch="native",
            inputs=(TensorInfo("x", "float32", ("batch", "8")), TensorInfo("state", "float16", ("batch",), "", ("2",))),
            outputs=(TensorInfo("y", "float32", ("batch", "8")), TensorInfo("new", "float16", ("batch",), "state")),
            dims=(DimInfo("batch", 1, 8, (4, 8)), DimInfo("count", 0, 64, (), "8*batch")),
            kernel_libraries=(KernelLibraryInfo("mine", sha256), KernelLibraryInfo("theirs", "1" * 64, "/nowhere.so")),
        )
        path = Path(folder) / "tiny.ait"
        artifact.write(path, manifest, "// IR\n", b"\x7fELF of a model", tensors(), {sha256: kernels})
        return path.read_bytes()


def tensors() -> dict[str, np.ndarray[Any, Any]]:
    return {
        "w": np.arange(12, dtype=np.float32).reshape(3, 4),
        "b": np.ones(3, np.int64),
        "m": np.zeros((0, 2), np.bool_),
    }


@functools.cache
def good_weights() -> bytes:
    return b"".join(map(bytes, encode(tensors())))


@functools.cache
def good_npy() -> bytes:
    data = io.BytesIO()
    np.save(data, np.arange(6, dtype=np.float32).reshape(2, 3))
    return data.getvalue()


@functools.cache
def good_request() -> bytes:
    values = {"w": [[1, 2.5]], "b": [1, -2], "m": [[True], [False]], "h": [[0.5]], "q": [3, -8], "e": [[448]]}
    return json.dumps({"inputs": values}).encode()


INPUTS = tuple(
    TensorInfo(name, dtype, ("2",))
    for name, dtype in zip("wbmhqe", ("float32", "int64", "bool", "bfloat16", "int4", "float8_e4m3fn"), strict=True)
)
"""The inputs of the model that a request is for."""


def changed_bytes(draw: random.Random, data: bytes) -> bytes:
    """Bytes with one to three places changed, removed, repeated or cut off."""
    new = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        at, size = draw.randrange(len(new) + 1), draw.choice((1, 1, 2, 4, 8, 64))
        match draw.randrange(6):
            case 0:
                new[at : at + size] = draw.randbytes(size)
            case 1:
                del new[at : at + size]
            case 2:
                new[at:at] = new[at : at + size]
            case 3:
                new[at : at + 1] = bytes([new[at] ^ 1 << draw.randrange(8)]) if at < len(new) else b""
            case 4:
                new[at : at + size] = draw.choice((b"\0", b"\xff", b"9", b"-", b'"', b"[", b"}")) * size
            case _:
                del new[at:]
    return bytes(new)


def changed_value(draw: random.Random, value: Any) -> Any:
    """JSON with one value, at any depth, replaced, removed, renamed or taken from elsewhere in it."""
    value = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        inner = pending.pop()
        rows: Iterable[Any] = inner if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        for key in rows:
            places.append((inner, key))
            pending.append(inner[key])
    for _ in range(draw.randint(1, 2)):
        holder, key = draw.choice(places)
        with contextlib.suppress(KeyError, IndexError):  # a place that is gone by now
            match draw.randrange(5):
                case 0:
                    del holder[key]
                case 1:
                    other, where = draw.choice(places)
                    holder[key] = copy.deepcopy(other[where])
                case 2 if isinstance(holder[key], int):
                    holder[key] += draw.choice((-4096, -8, -1, 1, 8, 4096))
                case 3 if isinstance(holder, dict):
                    holder[draw.choice(("", "__metadata__", "extra", "\x1b[31m"))] = holder.pop(key)
                case _:
                    holder[key] = copy.deepcopy(draw.choice(_STRANGE))
    return value


def changed_text(draw: random.Random, text: bytes) -> bytes:
    """A text of JSON with bytes changed, or with another one in it."""
    if draw.randrange(4):
        return changed_bytes(draw, text)
    at = draw.randrange(len(text) + 1)
    return text[:at] + draw.choice(_DEEP) + text[at + draw.randrange(40) :]


def forged(manifest: bytes | dict[str, Any], parts: dict[str, bytes] | None = None) -> bytes:
    """The good artifact with another manifest, or with other parts, and with the right hashes for both."""
    good = good_artifact()
    if isinstance(manifest, dict) and parts:
        for name, data in parts.items():
            entry = manifest["parts"][name]
            room = -(-entry["size"] // 4096) * 4096
            data = data[:room]
            good = good[: entry["offset"]] + data.ljust(room, b"\0") + good[entry["offset"] + room :]
            entry["size"], entry["blake3"] = len(data), blake3(data).hexdigest()
        last = max(entry["offset"] + entry["size"] for entry in manifest["parts"].values())
        good = good[:last].ljust(last, b"\0")
    text = json.dumps(manifest).encode() if isinstance(manifest, dict) else manifest
    first = int(good_manifest()["parts"]["ir"]["offset"])
    if 64 + len(text) > first:
        text = text[: first - 64]
    head = good[:16] + len(text).to_bytes(8, "little") + len(good).to_bytes(8, "little") + blake3(text).digest()
    return (head + text).ljust(first, b"\0") + good[first:]


def good_manifest() -> dict[str, Any]:
    good = good_artifact()
    return json.loads(good[64 : 64 + int.from_bytes(good[16:24], "little")])


def part(name: str) -> bytes:
    entry = good_manifest()["parts"][name]
    return good_artifact()[entry["offset"] : entry["offset"] + entry["size"]]


def with_header(data: bytes, change: Any, draw: random.Random) -> bytes:
    """A safetensors file with another header."""
    size = int.from_bytes(data[:8], "little")
    header = change(draw, data[8 : 8 + size].rstrip())[:size].ljust(size)
    length = draw.choice((size,) * 16 + (0, size + 1, 1 << 40, (1 << 64) - 1))
    return length.to_bytes(8, "little") + header + data[8 + size :]


def changed_json(draw: random.Random, text: bytes) -> bytes:
    return json.dumps(changed_value(draw, json.loads(text))).encode()


def case(seed: int) -> tuple[str, bytes]:
    """The kind and the bytes of the file of a seed."""
    draw = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    match kind:
        case "bytes":
            return kind, changed_bytes(draw, good_artifact())
        case "manifest":
            return kind, forged(changed_value(draw, good_manifest()))
        case "manifest text":
            return kind, forged(changed_text(draw, json.dumps(good_manifest()).encode()))
        case "header":
            return kind, forged(good_manifest(), {"constants": with_header(part("constants"), changed_json, draw)})
        case "header text":
            return kind, forged(good_manifest(), {"constants": with_header(part("constants"), changed_text, draw)})
        case "places":
            manifest = good_manifest()
            name = draw.choice(sorted(manifest["parts"]))
            manifest["parts"][name] = changed_value(draw, manifest["parts"][name])
            return kind, forged(manifest)
        case "ir":
            return kind, forged(good_manifest(), {"ir": changed_bytes(draw, part("ir"))})
        case "weights":
            return kind, with_header(good_weights(), changed_json, draw)
        case "weights text":
            return kind, with_header(good_weights(), changed_text, draw)
        case "npy":
            return kind, changed_bytes(draw, good_npy())
        case _:
            changes = (
                lambda: changed_json(draw, good_request()),
                lambda: changed_text(draw, good_request()),
                lambda: changed_bytes(draw, good_npy()),
                lambda: with_header(good_weights(), changed_json, draw),
            )
            return kind, draw.choice(changes)()


def load(kind: str, path: Path) -> None:
    """Load a file as the commands do, short of its code; read and print all of it."""
    if kind == "npy":
        common.read_npy(str(path)).tobytes()
    elif kind == "request":
        for inputs in (INPUTS, INPUTS[:1]):
            messages.write(messages.read(path.read_bytes(), inputs), "json")
    elif kind.startswith("weights"):
        for array in common.read_weights(str(path)).values():
            array.tobytes()
    else:
        loaded = artifact.read(path)
        for array in loaded.constants.values():
            array.tobytes()
        with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")):
            inspect._print_manifest(loaded)
            sys.stdout.flush()
        artifact.check_machine(loaded.manifest, lambda: "sm_90a")


def try_seed(seed: int, folder: Path) -> str:
    """The failure of a seed, or "taken" or "refused"."""
    kind, data = case(seed)
    path = folder / f"{seed}.file"
    path.write_bytes(data)
    try:
        load(kind, path)
    except AitError as error:
        assert str(error)
    except (Exception, RecursionError) as error:
        return f"seed {seed} ({kind}): {type(error).__name__}: {error}"
    finally:
        path.unlink()
    return ""


def try_range(first: int) -> Tried:
    """Try a range of seeds."""
    with tempfile.TemporaryDirectory() as folder:
        told = [(seed, try_seed(seed, Path(folder))) for seed in range(first, first + RANGE)]
    return Tried(first, RANGE, [(seed, text) for seed, text in told if text])


def save(seed: int, folder: Path) -> None:
    """Write the file of a seed that failed."""
    (folder / f"seed_{seed}.file").write_bytes(case(seed)[1])


CAMPAIGN = Campaign("files", "files loaded or refused", RANGE, try_range, save)

if __name__ == "__main__":
    sys.exit(CAMPAIGN.main("Damaged and forged files in the loaders of Python.", "build/fuzz_load"))
