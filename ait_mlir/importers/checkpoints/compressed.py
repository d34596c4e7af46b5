"""compressed-tensors: packed and plain integers, and 8-bit floats, by the groups of the config."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from ait_mlir.importers.checkpoints.files import Files
from ait_mlir.importers.checkpoints.gptq import by_groups
from ait_mlir.importers.checkpoints.stored import Activations, Array, Scaled, StoredWeight
from ait_mlir.importers.checkpoints.words import centred, in_rows, unpacked
from ait_mlir.runtime.json_values import JsonValue

FORMATS = ("pack-quantized", "int-quantized", "float-quantized", "naive-quantized")
PARTS = ("input_scale", "weight_packed", "weight_shape", "weight_zero_point", "weight_g_idx")


@dataclass(frozen=True)
class Scheme:
    """How a group of the config stores its weights."""

    bits: int
    is_float: bool
    strategy: str
    group: int
    block: tuple[int, int]
    symmetric: bool
    by_activations: bool
    targets: tuple[str, ...]
    activations: Activations | None
    """How the activations that the weight is multiplied with are rounded. A static scale is not in the config but in a
    tensor of the checkpoint."""

    @classmethod
    def of(cls, group: JsonValue) -> Scheme | None:
        """The scheme of a group; None if its weights are not quantised."""
        weights = group.get("weights", None)
        if weights.is_null():
            return None
        strategy = weights.get("strategy", None)
        known = ("tensor", "channel", "group", "block")
        if strategy.is_null() or strategy.text() not in known:
            strategy.refuse(f"one of {', '.join(known)}")
        kind, bits = weights.get("type", "int"), weights.at("num_bits")
        if kind.text() not in ("int", "float"):
            kind.refuse("int or float")
        is_float = kind.text() == "float"
        if bits.whole() not in ((8,) if is_float else (4, 8)):
            bits.refuse("8" if is_float else "4 or 8")
        size = weights.at("group_size").whole(1) if strategy.text() == "group" else 0
        sizes = weights.at("block_structure").wholes(1) if strategy.text() == "block" else (1, 1)
        if len(sizes) != 2:
            weights.at("block_structure").refuse("two numbers")
        order = weights.get("actorder", None)
        moved = not order.is_null() and order.text() == "group"
        symmetric = weights.get("symmetric", True).flag()
        targets = group.at("targets").texts()
        block, activations = (sizes[0], sizes[1]), _activations(group.get("input_activations", None))
        return cls(bits.whole(), is_float, strategy.text(), size, block, symmetric, moved, targets, activations)

    def places(self, rows: int, columns: int) -> tuple[tuple[int, ...], tuple[int, int] | None]:
        """The shape of the scales of a weight, and the size of a block; None where scales broadcast."""
        if self.strategy == "tensor":
            return (1,), None
        if self.strategy == "channel":
            return (rows, 1), None
        size = (1, self.group) if self.strategy == "group" else self.block
        return (-(-rows // size[0]), -(-columns // size[1])), size


def _activations(given: JsonValue) -> Activations | None:
    """How the config rounds activations: to symmetric numbers of 8 bits with scales of rows or groups that are found in
    the run, or with one scale for all runs. None for floats and for other schemes, for which activations stay floats.
    """
    if given.is_null() or given.at("num_bits").whole() != 8 or not given.get("symmetric", True).flag():
        return None
    element = {"float": "float8_e4m3fn", "int": "int8"}.get(given.get("type", "int").text())
    strategy, dynamic = given.get("strategy", "tensor"), given.get("dynamic", False)
    if element is None or strategy.is_null() or dynamic.is_text():
        return None
    if dynamic.flag():
        groups = {"token": None, "group": given.get("group_size", None)}
        if strategy.text() not in groups:
            return None
        size = groups[strategy.text()]
        return Activations(element, None if size is None else size.whole(1))
    return Activations(element, is_static=True) if strategy.text() == "tensor" else None


def read(files: Files, config: JsonValue) -> tuple[dict[str, StoredWeight], set[str]]:
    """The weights by name, and the names of the tensors that they are made of. Raises `JsonError` for a config that is
    not read."""
    formats = [config.get("format", "naive-quantized")]
    groups = list(config.at("config_groups").members().values())
    formats += [form for group in groups if not (form := group.get("format", None)).is_null()]
    for form in formats:
        if form.text() not in (*FORMATS, *(["mixed-precision"] if len(formats) > 1 else [])):
            form.refuse(f"one of {', '.join(FORMATS)}")
    schemes = [scheme for group in groups if (scheme := Scheme.of(group)) is not None]
    found: dict[str, StoredWeight] = {}
    used: set[str] = set()
    for name in files:
        module, _, last = name.rpartition(".")
        if last not in ("weight_packed", "weight_scale"):
            continue
        weight = f"{module}.weight"
        if last == "weight_scale" and f"{module}.weight_packed" not in files and weight not in files:
            raise files.fail(name, f"has no weight beside it: neither {weight} nor {module}.weight_packed")
        if weight not in found:
            found[weight] = _weight(files, module, _scheme(files, name, module, schemes))
            used |= {weight, f"{module}.weight_scale", *(f"{module}.{part}" for part in PARTS)}
    for name in files:
        if name not in used and files.tensor(name).dtype.name in ("int8", "float8_e4m3fn", "float8_e5m2"):
            raise files.fail(name, f"is quantised but has no scales: there is no {name}_scale")
    return found, used


def _scheme(files: Files, name: str, module: str, schemes: list[Scheme]) -> Scheme:
    """The scheme of a module: the first with a target that names the module, else the first whose targets are classes.
    """

    def names(target: str) -> bool:
        if target.startswith("re:"):
            return re.match(target[3:], module) is not None
        return target == module or module.endswith(f".{target}")

    named = [s for s in schemes if any(names(t) for t in s.targets)]
    classes = [s for s in schemes if any(re.fullmatch(r"[A-Z]\w*", t) for t in s.targets)]
    if not (chosen := named or classes):
        raise files.fail(name, "is in no group of the config: no target is this module")
    return chosen[0]


def _weight(files: Files, module: str, scheme: Scheme) -> StoredWeight:
    is_packed = f"{module}.weight_packed" in files
    if is_packed:
        element, data, columns = _unpacked(files, f"{module}.weight_packed", f"{module}.weight_shape", scheme)
    else:
        element = "float8_e4m3fn" if scheme.is_float else "int8"
        data = files.matrix(f"{module}.weight", (element,))
        columns = data.shape[1]
    rows = data.shape[0]
    shape, blocks = scheme.places(rows, columns)
    name = f"{module}.weight_scale"
    if shape == (1,) and name in files and files.tensor(name).shape == ():
        shape = ()
    scale = files.scale(name, shape)
    zero = _zero(files, f"{module}.weight_zero_point", scheme, is_packed, scale.shape, rows)
    if scheme.strategy == "tensor":
        scale, zero = scale.reshape(()), None if zero is None else zero.reshape(())
    scaled = Scaled(element, columns, data, scale, blocks, zero)
    activations = scheme.activations
    if activations is not None and activations.is_static:
        given = files.scale(f"{module}.input_scale")
        if given.size != 1:
            raise files.fail(f"{module}.input_scale", f"has shape {list(given.shape)}, expected one number")
        activations = replace(activations, scale=float(given.astype(np.float32).reshape(())))
    if scheme.strategy != "group":
        return StoredWeight(scale.dtype.name, scaled, activations=activations)
    order = by_groups(files, f"{module}.weight_g_idx", columns, scheme.group, scheme.by_activations)
    if order is None:
        return StoredWeight(scale.dtype.name, scaled, activations=activations)
    places = np.argsort(order, kind="stable").astype(np.int64)
    return StoredWeight(scale.dtype.name, scaled.with_columns(order), order=places, activations=activations)


def _unpacked(files: Files, name: str, shape_name: str, scheme: Scheme) -> tuple[str, Array, int]:
    """The element type and the bytes of packed numbers, and the number of columns."""
    words = files.matrix(name, ("int32",))
    shape = [int(n) for n in files.tensor(shape_name, ("int64", "int32"), (2,))]
    rows, columns = shape
    if scheme.is_float:
        raise files.fail(name, "is packed, but the config says that the weights are floats")
    if columns < 1 or words.shape != (rows, -(-columns * scheme.bits // 32)):
        expected = [rows, -(-columns * scheme.bits // 32)]
        raise files.fail(
            name,
            f"has shape {list(words.shape)}, expected {expected}: {scheme.bits} bits each of the {rows} x {columns} "
            f"numbers that {shape_name!r} says",
        )
    element, data = centred(in_rows(words, scheme.bits, columns), scheme.bits)
    return element, data, columns


def _zero(files: Files, name: str, scheme: Scheme, is_packed: bool, shape: tuple[int, ...], rows: int) -> Array | None:
    """The zero points, of the shape of the scales; None without them."""
    if scheme.symmetric:
        if name in files and files.tensor(name).astype(np.float32).any():
            raise files.fail(name, "is not 0, but the config says that the weights are symmetric")
        return None
    if name not in files:
        raise files.fail(name, "is missing: the config says that the weights are not symmetric")
    if not is_packed or scheme.strategy not in ("group", "channel"):
        return files.tensor(name, ("int8",), shape)
    words = files.tensor(name, ("int32",), (-(-rows * scheme.bits // 32), shape[1]))
    numbers = unpacked(words.T, scheme.bits)[:, :rows].T.astype(np.int16) - 2 ** (scheme.bits - 1)
    return np.ascontiguousarray(numbers.astype(np.int8))
