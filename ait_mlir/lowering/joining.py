"""Kernels of a GPU that are compiled together in one unit, and the objects of joined units in the cache.

nvcc spends 0.9 to 1.2 of the 1.3 to 2.0 s of a kernel on headers, which kernels of one unit read once. Where more
kernels are missing than compilers run at once, some are joined. Names of kernels, functors and structs of sizes have
digests, so their sources can stand in one unit; if a compiler refuses a joined unit, its kernels are compiled apart.

The cache keeps a joined object under the digest of the keys of its units, and for each of them a record of these keys.
A library takes the object only if it needs all its units from it. So no symbol is defined twice, and a kernel whose
headers have changed is never used: its key is another.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ait_mlir.host.cache import keep, keep_bytes
from ait_mlir.host.shared import obtain, share
from ait_mlir.lowering.ninja import Unit, object_of

MOST = 6
"""The kernels of a joined unit. More would be compiled in less time in all, but one compiler would take too long."""
_GENERATED = re.compile(r"(k|kernels)_\w+\.(cu|hip)")
"""The names of sources of kernels (`lowering/sources.py`)."""
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?!include\b|pragma\b)", re.MULTILINE)
"""A directive that could change the sources behind it, such as a macro of an author."""
_KEY = re.compile(r"[0-9a-f]{64}")
_RECORD = ".joined"
"""The suffix of the record of a unit whose kernels are in a joined object."""


def joined_cost(name: str, text: str, headers: Iterable[str]) -> int:
    """The estimated cost of compiling a source in a joined unit, in characters; 0 for a source that stays alone."""
    if not _GENERATED.fullmatch(name) or _DIRECTIVE.search(text):
        return 0
    return len(text) + sum(map(len, headers))


def joined_units(units: Sequence[Unit], jobs: int, folder: Path) -> list[Unit]:
    """The units to compile in place of `units` by `jobs` compilers at once; sources of joined units are in `folder`."""
    result: list[Unit] = []
    by_compiler: dict[object, list[Unit]] = {}
    for unit in units:
        by_compiler.setdefault((unit.tools, unit.source.suffix), []).append(unit)
    for compiled in by_compiler.values():
        alike = [unit for unit in compiled if unit.cost]
        result += [unit for unit in compiled if not unit.cost]
        free = max(1, jobs - (len(compiled) - len(alike)))
        count = free * math.ceil(len(alike) / (free * MOST))
        result += [joined(group, folder) for group in _balanced(alike, min(count, len(alike)))]
    return result


def _balanced(units: Sequence[Unit], count: int) -> list[list[Unit]]:
    """`units` in `count` groups of about the same cost, none empty."""
    groups: list[list[Unit]] = [[] for _ in range(count)]
    heap = [(0, i) for i in range(count)]
    for unit in sorted(units, key=lambda unit: (-unit.cost, unit.source.name)):
        cost, i = heapq.heappop(heap)
        groups[i].append(unit)
        if len(groups[i]) < MOST:
            heapq.heappush(heap, (cost + unit.cost, i))
    return groups


def joined(units: Sequence[Unit], folder: Path) -> Unit:
    """A unit that includes the sources of `units`, written to `folder`; one unit is taken as it is."""
    if len(units) == 1:
        return units[0]
    key = _joined_key([unit.key for unit in units])
    source = folder / f"joined_{key[:12]}{units[0].source.suffix}"
    source.write_text("".join(f'#include "{unit.source}"\n' for unit in units), encoding="utf-8")
    return Unit(source, key, units[0].tools, parts=tuple(units))


def _joined_key(keys: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(("joined", *keys)).encode()).hexdigest()


def keep_object(made: Path, unit: Unit) -> None:
    """Keep the object of a unit in the cache; with a joined unit, the records of its parts."""
    keep(made, unit.object, unit.key)
    share(unit.object, unit.key)
    for part in unit.parts:
        keep_bytes("\n".join(p.key for p in unit.parts).encode(), _record(part.key), part.key)
        share(_record(part.key), part.key)


def kept_objects(units: Sequence[Unit]) -> dict[str, Path]:
    """The object in the cache for each unit that has one, by the key of the unit. No object has a kernel twice, or a
    kernel that is not in `units`."""
    kept = obtain([(unit.object, unit.key) for unit in units])
    found = {unit.key: unit.object for unit, is_here in zip(units, kept, strict=True) if is_here}
    alone = [unit.key for unit in units if unit.cost and unit.key not in found]
    recorded = obtain([(_record(key), key) for key in alone])
    missing = set(alone)
    for unit_key in (key for key, is_here in zip(alone, recorded, strict=True) if is_here):
        keys = _keys_beside(unit_key) if unit_key in missing else ()
        if keys and missing.issuperset(keys):
            key = _joined_key(keys)
            if all(obtain([(object_of(key), key)])):
                found |= dict.fromkeys(keys, object_of(key))
                missing.difference_update(keys)
    return found


def _keys_beside(key: str) -> Sequence[str]:
    """The keys of the units of the joined object that has the unit of this key, from its record, which is kept."""
    try:
        keys = _record(key).read_text(encoding="ascii").split("\n")
    except (OSError, UnicodeDecodeError):
        return ()
    return keys if key in keys and all(map(_KEY.fullmatch, keys)) else ()


def _record(key: str) -> Path:
    return object_of(key).with_suffix(_RECORD)


__all__ = ["joined", "joined_cost", "joined_units", "keep_object", "kept_objects"]
