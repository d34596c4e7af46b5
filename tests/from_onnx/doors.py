"""The launches of networks by `torch.onnx` and by `torch.export`: `python -m tests.from_onnx.doors [NAME...]`.

Each row has the launches of a network by both importers on the CPU, planned and not built, and those that only one of
them has. What was found for exactly these sources is remembered in build/doors and not computed again; so are the ONNX
files, for exactly these networks.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import io
import json
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ait_mlir.dialects.ait.naming import derived_name
from ait_mlir.dialects.ait_rt.loop import program_ops
from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp
from ait_mlir.driver import program_of, run_to_phase
from ait_mlir.errors import AitError
from ait_mlir.importers.onnx import import_model
from ait_mlir.options import CompileOptions
from tests.alone import each_alone
from tests.networks.check import CPU, EXPORTED, imported
from tests.networks.network import Network, made
from tests.networks.networks import NETWORKS
from tests.networks.run import ROOT, SECONDS, digest, import_libraries

FOLDER = ROOT / "build" / "doors"
PLAIN_INPUT = Network(torch.nn.Identity, lambda batch, length: {"input": torch.zeros(batch, length)})
EXPORTED_FROM = ("tests/networks",)
SOURCES = ("ait_mlir", *EXPORTED_FROM)
ONNX_ONLY = ("ait_mlir/importers/onnx",)


@dataclass
class Launches:
    """The launches of a network by one importer."""

    names: dict[str, int] = field(default_factory=dict[str, int])
    """How many launches have a derived name, such as `gemm_rcr_bias_gelu`."""
    error: str = ""
    """Why there are none."""
    stage: str = ""
    """`export`, `import` or `plan`: what failed."""

    @property
    def count(self) -> int:
        return sum(self.names.values())


@dataclass
class Doors:
    """A network by both importers."""

    torch: Launches
    onnx: Launches

    @property
    def same(self) -> bool:
        """Whether both are there, with the same number of launches of each kind."""
        return not self.torch.error and not self.onnx.error and not difference(self.torch.names, self.onnx.names)


def launches(module: Any, known: Any) -> dict[str, int]:
    """The launches of a module on the CPU by derived name; values of the params `known` are folded, not computed."""
    run_to_phase(module, "planned", CompileOptions("cpu", "native", measure=False), known=known)
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
    run = [op for op in program_ops(program_of(module).block) if isinstance(op, LaunchOp)]
    return dict(Counter(derived_name(kernels[op.kernel_name].compute_op()) for op in run))


KINDS = (
    "attention", "gemm", "bmm", "conv", "layer_norm", "rms_norm", "group_norm", "softmax", "embedding", "pool",
    "recurrence",
)  # fmt: skip


def kind_of(name: str) -> str:
    """The op of a launch without what is joined to it; all other ops are loops over elements."""
    return next((kind for kind in KINDS if kind in name), "loops")


def kinds(names: dict[str, int]) -> Counter[str]:
    """Launches by kind."""
    found: Counter[str] = Counter()
    for name, count in names.items():
        found[kind_of(name)] += count
    return found


def difference(torch_names: dict[str, int], onnx_names: dict[str, int]) -> dict[str, int]:
    """How many more launches of each kind the import from ONNX has."""
    ours, theirs = kinds(onnx_names), kinds(torch_names)
    return {kind: ours[kind] - theirs[kind] for kind in sorted({*ours, *theirs}) if ours[kind] != theirs[kind]}


def exported(name: str, network: Network) -> Path:
    """The file that `torch.onnx` writes for a network; written once for exactly these networks."""
    folder = files() / name.replace(" ", "_")
    path = folder / "model.onnx"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        export(made(network), network, folder / "part.onnx")
        (folder / "part.onnx").rename(path)
    return path


def export(model: torch.nn.Module, network: Network, path: Path) -> None:
    """Write a network as a file, with the names of its dims and inputs."""
    told = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model, (), path, kwargs=CPU.given(network, *EXPORTED), dynamo=True, verbose=False, report=False,
            dynamic_shapes=dict(network.dynamic) or None,
        )  # fmt: skip


def dims_of(network: Network) -> dict[str, tuple[int, int]]:
    """The ranges of the dims of a network, which a file lacks."""
    return {d.__name__: (d.min, d.max) for axes in network.dynamic.values() for d in axes.values()}


def by_onnx(name: str, network: Network) -> Launches:
    try:
        path = exported(name, network)
    except Exception as error:  # whatever the exporter raises
        return Launches(stage="export", error=f"{type(error).__name__}: {error}")
    try:
        module = import_model(path, dims=dims_of(network))
    except AitError as error:
        return Launches(stage="import", error=str(error))
    return Launches(launches(module.module, module.constants.keys()))


def by_torch(name: str, network: Network) -> Launches:
    try:
        module = imported(made(network), network)
    except AitError as error:
        return Launches(stage="import", error=str(error))
    return Launches(launches(module.module, module.constants.keys()))


@functools.cache
def sides() -> tuple[tuple[Callable[[str, Network], Launches], Path], ...]:
    """How the launches of each side are found, and the folder of what was found for exactly these sources."""
    return (
        (by_torch, FOLDER / f"torch-{digest(SOURCES, without=ONNX_ONLY)}"),
        (by_onnx, FOLDER / f"onnx-{digest(SOURCES)}"),
    )


@functools.cache
def files() -> Path:
    """The folder of the ONNX files of exactly these networks."""
    return FOLDER / "files" / f"{digest(EXPORTED_FROM)}-{torch.__version__}"


def remembered(name: str, network: Network) -> Doors:
    """Both sides of a network; each is computed once for exactly these sources."""
    found: list[Launches] = []
    for compute, folder in sides():
        path = folder / f"{name.replace(' ', '_')}.json"
        if path.exists():
            found.append(Launches(**json.loads(path.read_text())))
            continue
        found.append(compute(name, network))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(dataclasses.asdict(found[-1])))
    return Doors(*found)


def row(name: str, doors: Doors) -> str:
    """One line, and below it the names of the launches that one side has more of."""
    for side, of in (("torch", doors.torch), ("onnx", doors.onnx)):
        if of.error:
            return f"failed  {name}: {side}: {of.stage}: {' | '.join(of.error.strip().splitlines())[:900]}"
    more = difference(doors.torch.names, doors.onnx.names)
    counts = f"{doors.torch.count} launches by torch.export, {doors.onnx.count} by torch.onnx"
    if not more:
        return f"same    {name}: {counts}"
    lines = [f"differs {name}: {counts}: {', '.join(f'{kind} {n:+}' for kind, n in more.items())}"]
    for title, one, other in (("torch.export", doors.torch, doors.onnx), ("torch.onnx", doors.onnx, doors.torch)):
        alone = Counter(one.names) - Counter(other.names)
        alone = {n: k for n, k in alone.items() if kind_of(n) in more}
        lines.append(f"        by {title} alone: {', '.join(f'{k} {n}' for n, k in sorted(alone.items())) or 'none'}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.from_onnx.doors", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of networks; default: all")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--limit", type=float, default=SECONDS, help="seconds for one network")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="seconds for all")
    args = parser.parse_args(argv)
    parts = args.names or [""]
    chosen = {name: network for part in parts for name, network in NETWORKS.items() if part in name}
    import_libraries()
    with tempfile.TemporaryDirectory() as folder:  # the exporter's tables are read before this process is forked
        export(torch.nn.Identity(), PLAIN_INPUT, Path(folder) / "model.onnx")
    sides(), files()

    def failed(stage: str, error: str) -> Doors:
        return Doors(Launches(), Launches(stage=stage, error=error))

    found: dict[str, Doors] = {}
    until = time.monotonic() + args.seconds
    for name, doors in each_alone(chosen, remembered, failed, args.jobs, 0, args.limit, until):
        found[name] = doors
        print(row(name, doors), flush=True)
    same = sum(doors.same for doors in found.values())
    print(f"{same} of {len(found)} networks have the same launches; {len(chosen) - len(found)} were not tried")
    return int(same < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
