"""The target of a module, as attributes: `attributes {ait.target = "cuda", ait.arch = "sm_90a"}`.

`ait.precision = "high"` says that products of f32 need not be exact, `ait.deterministic = false` that runs need not
give the same bits, `ait.peer_memory = false` that the cards of ranks do not write into each other's memory.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import BoolAttr, ModuleOp, StringAttr

from ait_mlir.ir.pipeline import PassError
from ait_mlir.lowering.target import DEFAULT_ARCH, Precision, Target, architecture_problem, precision_problem
from ait_mlir.lowering.toolchain import default_arch


def make_target(
    kind: str, arch: str = "", precision: str = "highest", deterministic: bool = True, peer_memory: bool = True
) -> Target:
    """The target of a kind, `cpu`, `cuda` or `rocm`, and an architecture, by default the one of this machine.

    Raises `PassError` for an unknown kind or precision, and for an architecture that the kernels do not support.
    """
    if kind not in DEFAULT_ARCH:
        raise PassError(f"unknown target {kind!r}; expected one of {', '.join(DEFAULT_ARCH)}")
    if arch and not all(c.isalnum() or c in "_-" for c in arch):
        raise PassError(f"no architecture: {arch!r}; expected one like {DEFAULT_ARCH[kind]!r}")
    if arch == "native" and kind != "cpu":
        arch = default_arch(cast(Any, kind))
    arch = arch or DEFAULT_ARCH[kind]
    for problem in (precision_problem(precision), architecture_problem(cast(Any, kind), arch)):
        if problem is not None:
            raise PassError(problem)
    return Target(kind, arch, cast(Precision, precision), deterministic, peer_memory)


def set_target(module: ModuleOp, target: Target) -> None:
    module.attributes["ait.target"] = StringAttr(target.kind)
    module.attributes["ait.arch"] = StringAttr(target.arch)
    module.attributes.pop("ait.precision", None)
    if target.precision != "highest":
        module.attributes["ait.precision"] = StringAttr(target.precision)
    module.attributes.pop("ait.deterministic", None)
    if not target.deterministic:
        module.attributes["ait.deterministic"] = BoolAttr.from_bool(False)
    module.attributes.pop("ait.peer_memory", None)
    if not target.peer_memory:
        module.attributes["ait.peer_memory"] = BoolAttr.from_bool(False)


def target_of(module: ModuleOp) -> Target:
    """The target that selection wrote into the module; `PassError` when there is none."""
    kind, arch = module.attributes.get("ait.target"), module.attributes.get("ait.arch")
    if not isinstance(kind, StringAttr) or not isinstance(arch, StringAttr):
        raise PassError("the module has no target; run the pass 'select{target=\"cpu\"}' first")
    precision = module.attributes.get("ait.precision", StringAttr("highest"))
    precision = precision.data if isinstance(precision, StringAttr) else str(precision)
    deterministic = module.attributes.get("ait.deterministic") != BoolAttr.from_bool(False)
    peer_memory = module.attributes.get("ait.peer_memory") != BoolAttr.from_bool(False)
    return make_target(kind.data, arch.data, precision, deterministic, peer_memory)
