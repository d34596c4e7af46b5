"""Keeps planned models in the cache, so that a model that is compiled again is not planned again.

A plan is what an artifact needs except for the data of its params: the planned IR, the C++, the manifest. Its key has
everything that planning reads: the module with the places of its ops, the names of the params with data, the options,
the sources and tables of the package, and the properties of this machine that choose kernels. The numbers in params are
no part of the key, because planning does not read them: values that follow from params are computed again from the data
(`folding.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp

from ait_mlir import outside
from ait_mlir.contents import Plan
from ait_mlir.dialects.ait.dtypes import BY_NAME
from ait_mlir.dialects.ait.ranks import ALONE
from ait_mlir.errors import AitError
from ait_mlir.host.cache import cache_dir, keep_bytes, kept_bytes
from ait_mlir.host.cpu import has_bf16_tiles, instruction_sets
from ait_mlir.host.files import sha256_file
from ait_mlir.host.settings import keeps_plans
from ait_mlir.host.sources import package_digest, tables_digest
from ait_mlir.ir.parser import op_place
from ait_mlir.lowering.build import header_tree
from ait_mlir.lowering.estimates import table_for
from ait_mlir.lowering.tables import Literal
from ait_mlir.lowering.toolchain import toolchain
from ait_mlir.options import CompileOptions
from ait_mlir.runtime.json_values import JsonValue
from ait_mlir.runtime.manifest import manifest_from_json, producers
from ait_mlir.selection.measure import current_setting
from ait_mlir.selection.select import Selections, are_selections_kept
from ait_mlir.selection.timings import TimingCache


@dataclass(frozen=True)
class Key:
    """The key of a plan."""

    digest: str
    options: CompileOptions
    times: str
    """The state of the times that choose kernels, before the module is planned; "" if only the package's times count.
    """

    def is_whole(self, selections: Selections) -> bool:
        """Whether an equal module gets the same plan, from the choices of its kernels: where times count, each op must
        have one. A compilation that times kernels changes the state, so only a later one, which finds all times, is
        kept."""
        return not self.times or (
            all(row.reason != "estimate" for row in selections.rows) and _times(self.options) == self.times
        )


def key_of(module: ModuleOp, options: CompileOptions, known: Collection[str]) -> Key | None:
    """The key of the plan of a module, whose params `known` have data; None if plans like this one are not kept.

    No plan is kept that depends on operators from outside, and none for a compilation that prints or records the
    choices of kernels.
    """
    sources, tables = package_digest(), tables_digest()
    if sources is None or tables is None or not keeps_plans() or outside.rows():
        return None
    if options.report or are_selections_kept():
        return None
    try:
        device, selection, estimates = options.device, options.selection(), table_for(options.device.arch)
        times = _times(options)
    except (AitError, OSError):
        return None  # planning raises the error with a place in the module
    plain = replace(
        options,
        arch=device.arch,
        cpus=(),
        without=tuple(sorted(options.without)),
        measure=False,
        budget=None,
        store_kernel_libraries=True,
        cluster="",
    )
    machine = (has_bf16_tiles(), sorted(instruction_sets())) if device.kind == "cpu" else ()
    named = (estimates,) if os.environ.get("AIT_ESTIMATES") else ()  # the table of the package is in `tables`
    digest = hashlib.sha256()
    parts = (sources, tables, plain, selection, times, device, machine, named, producers(), sorted(known), str(module))
    for part in parts:
        text = str(part).encode(errors="surrogatepass")
        digest.update(len(text).to_bytes(8, "little") + text)
    for place in (op_place(op) for op in module.walk()):
        digest.update(repr(place).encode())
    return Key(digest.hexdigest(), options, times)


def _times(options: CompileOptions) -> str:
    """The state of the measured times by which `options` choose kernels: the file of times, and the setting that makes
    them valid.
    """
    selection = options.selection()
    if "measure=" not in selection and "known=" not in selection:
        return ""
    device, path = options.device, TimingCache().path
    tools, headers = toolchain(device.kind, device.arch), header_tree()
    kept = sha256_file(path) if path.is_file() else ""
    return repr((kept, current_setting(device.kind), tools.identity, tools.compile_flags, headers))


def kept_plan(key: Key) -> Plan | None:
    """The plan that was kept under a key; None if there is none, or if it is damaged."""
    with contextlib.suppress(AitError, OSError, ValueError):
        if (data := kept_bytes(_path(key.digest), key.digest)) is not None:
            return _plan_of(json.loads(zlib.decompress(data)))
    return None


def keep_plan(key: Key, plan: Plan) -> None:
    """Keep a plan, unless it has files outside of the cache or several ranks. Without room nothing is kept."""
    if plan.libraries or plan.ranks is not ALONE:
        return
    text = json.dumps(dict(_members(plan)))
    with contextlib.suppress(AitError, OSError):
        keep_bytes(zlib.compress(text.encode(), 1), _path(key.digest), key.digest)


def _path(key: str) -> Path:
    return cache_dir() / "plans" / key[:2] / key


def _members(plan: Plan) -> Iterator[tuple[str, Any]]:
    """The members of the JSON object of a plan."""
    yield "manifest", asdict(plan.manifest)
    yield "literals", {name: (x.values, x.shape, x.dtype.name) for name, x in plan.literals.items()}
    for name in ("name", "ir", "files", "folds", "read", "slow"):
        yield name, getattr(plan, name)


def _plan_of(members: Mapping[str, Any]) -> Plan:
    """The plan that `_members` wrote as a JSON object. The caller has checked the digest of the file."""
    literals = cast("Mapping[str, tuple[list[Any], list[int], str]]", members["literals"])
    return Plan(
        name=members["name"],
        manifest=manifest_from_json(JsonValue(members["manifest"], "manifest")),
        ir=members["ir"],
        files=members["files"],
        literals={
            name: Literal(tuple(values), tuple(shape), BY_NAME[dtype])
            for name, (values, shape, dtype) in literals.items()
        },
        folds=members["folds"],
        read=tuple(members["read"]),
        slow=tuple((text, file, line) for text, file, line in members["slow"]),
    )
