"""Shared code of the subcommands: weights, inputs from the command line, dims."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from ait_mlir.dtypes import BEYOND_NUMPY, numpy_dtype
from ait_mlir.errors import AitError, InputError
from ait_mlir.host.files import check_output, is_written_through, write_atomic
from ait_mlir.runtime.manifest import DimInfo
from ait_mlir.runtime.model import Model
from ait_mlir.runtime.safetensors_part import decode

Array = np.ndarray[Any, Any]
EXAMPLE_ONLY = argparse.RawDescriptionHelpFormatter


TRUST = "Give it only what you trust: docs/trust.md."
"""The end of the description of each command that may run code from outside."""


class UsageError(AitError):
    """The command line is wrong."""


def note(text: str) -> None:
    """Print a note on stderr."""
    print(f"ait: note: {text}", file=sys.stderr)


def tell_written(output: Path, told: str | None = None) -> None:
    """Say that a command wrote a file: `told`, or else its size.

    The line goes to stderr if the file is a device, a pipe or an open file, which may be stdout itself.
    """
    if is_written_through(output):
        print(f"wrote {output}" if told is None else told, file=sys.stderr)
    else:
        print(f"wrote {output} ({output.stat().st_size} bytes)" if told is None else told)


def check_text(output: str | None) -> None:
    """Raise `AitError` if `write_text` cannot write to `output`; call it before the work begins."""
    if output not in (None, "-"):
        check_output(Path(output))


def write_text(output: str | None, text: str) -> None:
    """Write a text to a file; None and "-" are standard output."""
    if output in (None, "-"):
        sys.stdout.write(text)
    else:
        write_atomic(Path(output), text.encode())


def read_weights(path: str) -> dict[str, Array]:
    """The tensors of a safetensors file, mapped into memory rather than read."""
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"{path}: there is no such file of weights")
    try:
        return decode(np.memmap(file, dtype=np.uint8, mode="r"))
    except AitError as error:
        raise UsageError(f"{path}: {error}") from error
    except ValueError as error:
        raise UsageError(f"{path} is no safetensors file: {error}") from error


def natural(text: str) -> int:
    """A whole number from 0, for `type=` of an option."""
    if not re.fullmatch(r"\d{1,18}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to 10^18")
    return int(text)


def name_and_value(text: str, what: str) -> tuple[str, str]:
    """The parts of NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise UsageError(f"{what} {text!r}: expected NAME=VALUE")
    return name, value


def add_precision(parser: argparse.ArgumentParser) -> None:
    """Declare `--precision`; the compiler checks the name."""
    parser.add_argument(
        "--precision",
        default="highest",
        metavar="NAME",
        help="of products, convolutions and attention of f32 on a GPU: highest (exact, the default), high (TF32) or "
        "medium (bf16). On CUDA, ops with the word tf32 are TF32 at highest, too",
    )


def add_trust_pickle(parser: argparse.ArgumentParser) -> None:
    """Declare `--trust-pickle`."""
    parser.add_argument(
        "--trust-pickle",
        action="store_true",
        help="let PyTorch run the code that FILE.pt2 may hold; without this option such a file is refused",
    )


def parse_dims(texts: Iterable[str], dims: Sequence[DimInfo]) -> dict[str, int]:
    """The values of all dims that inputs determine: from NAME=NUMBER, else the last hint, else the maximum."""
    known = {dim.name: dim for dim in dims if not dim.bound}
    values = {dim.name: dim.hints[-1] if dim.hints else dim.hi for dim in known.values()}
    for text in texts:
        name, value = name_and_value(text, "--dim")
        if name not in known:
            raise UsageError(f"--dim {text}: there is no dim '{name}'; the dims are {', '.join(known) or 'none'}")
        if not re.fullmatch(r"\d{1,12}", value) or not known[name].lo <= int(value) <= known[name].hi:
            raise UsageError(f"--dim {text}: expected a whole number from {known[name].lo} to {known[name].hi}")
        values[name] = int(value)
    return values


def parse_input(text: str, dtype: str, seed: int) -> Array:
    """An input from `random:8x768`, `zeros:8x768`, `ones:8x768` or `@file.npy`."""
    if text.startswith("@"):
        array = _raw(text[1:], dtype) if dtype in BEYOND_NUMPY else read_npy(text[1:])
        if array.dtype != numpy_dtype(dtype):
            raise InputError(f"{text[1:]} has dtype {array.dtype}, expected {dtype}")
        return array
    kind, _, shape_text = text.partition(":")
    if kind not in ("random", "zeros", "ones"):
        raise UsageError(f"{text!r} is no input: expected random:8x768, zeros:8x768, ones:8x768 or @file.npy")
    return filled(kind, parse_shape(shape_text), dtype, seed)


def parse_shape(text: str) -> tuple[int, ...]:
    """`8x768` as (8, 768); empty text, or `scalar`, as ()."""
    if text in ("", "scalar"):
        return ()
    if not re.fullmatch(r"\d{1,12}(x\d{1,12})*", text):
        raise UsageError(f"{text!r} is no shape: expected numbers with x between them, as in 8x768")
    return tuple(int(part) for part in text.split("x"))


def filled(kind: str, shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Zeros, ones, or random numbers: normal floats, powers of 2 for scales, integers 0 and 1, booleans."""
    if math.prod(shape) > 1 << 48:
        raise UsageError(f"{'x'.join(map(str, shape))} is too large a shape: no tensor has more than 2^48 elements")
    if kind == "zeros":
        return np.zeros(shape, numpy_dtype(dtype))
    if kind == "ones":
        return np.ones(shape, numpy_dtype(dtype))
    random = np.random.default_rng(seed)
    if dtype == "float8_e8m0fnu":  # a scale
        return np.exp2(random.integers(-4, 5, shape)).astype(numpy_dtype(dtype))
    if dtype.startswith(("int", "uint", "bool")):
        return np.asarray(random.integers(0, 2, shape)).astype(numpy_dtype(dtype))
    return np.asarray(random.standard_normal(shape, np.float32)).astype(numpy_dtype(dtype))


def read_npy(path: str) -> Array:
    """An array from a .npy file; objects are refused."""
    try:
        found = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file") from None
    except Exception as error:  # NumPy reads the header with Python's own parser
        raise UsageError(f"{path} is no .npy file: {error}") from error
    if not isinstance(found, np.ndarray):
        raise UsageError(f"{path} is no .npy file: it holds several arrays")
    return cast(Array, found)


def _raw(path: str, dtype: str) -> Array:
    """The array of a .npy file of a type that NumPy does not have, and writes as raw data: bfloat16, 8-bit floats."""
    array, kind = read_npy(path), numpy_dtype(dtype)
    if array.dtype.itemsize != kind.itemsize or array.dtype.kind not in "Vui":
        raise InputError(f"{path} has dtype {array.dtype}, expected the {8 * kind.itemsize}-bit data of {dtype}")
    return array.view(kind)


def read_values(path: str, dtype: str) -> Array:
    """An array from a .npy file to compare with one of `dtype`; raw data are of this type."""
    array = read_npy(path)
    return _raw(path, dtype) if array.dtype.kind == "V" and dtype in BEYOND_NUMPY else array


def as_raw(array: Array) -> Array:
    """An array as a .npy file holds it: raw data of a type that NumPy does not have."""
    return array.view(f"V{array.itemsize}") if array.dtype.name in BEYOND_NUMPY else array


def set_weights(model: Model, weights: str | None, seed: int) -> dict[str, Array]:
    """Set the constants that a model's artifact does not hold; returns the constants that were set.

    `weights` is a safetensors file or `random`. If it is None, the constants are random, too, and a note says so.
    """
    unset = model.get_constant_names(unset_only=True)
    values: Mapping[str, Array] = {}
    if weights is not None and weights != "random":
        values = read_weights(weights)
        known = set(model.get_constant_names(False))
        if unknown := sorted(values.keys() - known):
            note(f"{weights} holds {len(unknown)} tensors that the model does not know, the first '{unknown[0]}'")
    elif unset and weights is None:
        note(f"{len(unset)} constants have no value, random ones are used: give them with --weights FILE")
    done: dict[str, Array] = {}
    for name in model.get_constant_names(False) if values else unset:
        if name in values:
            done[name] = values[name]
        elif name in unset:
            done[name] = random_constant(name, model.constant_shape(name), model.constant_dtype(name), seed)
    if values and (left := [name for name in unset if name not in values]):
        raise UsageError(f"{weights} lacks {len(left)} constants that the artifact does not hold, first '{left[0]}'")
    model.set_constants(done)
    return done


def random_constant(name: str, shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Random values like a trained model's: a matrix has spread 1 / sqrt(its last dim), a vector is around 1/2."""
    values = filled("random", shape, dtype, abs(hash_name(name) + seed))
    if values.dtype.kind in "iub":
        return values
    wide = values.astype(np.float32)
    wide = wide / max(1, shape[-1]) ** 0.5 if len(shape) > 1 else wide / 2 + 0.5
    return np.asarray(wide).astype(values.dtype)


def hash_name(name: str) -> int:
    """A number for a name, the same in every process."""
    import zlib

    return zlib.crc32(name.encode())


def text_of_bytes(count: float) -> str:
    """A readable size: 512 B, 1.5 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
