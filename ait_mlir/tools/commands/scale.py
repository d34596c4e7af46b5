"""`ait scale`: estimates a model on more and more cards."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ait_mlir.errors import AitError
from ait_mlir.ir.source import SourceError
from ait_mlir.tools.commands.common import (
    EXAMPLE_ONLY,
    TRUST,
    UsageError,
    add_precision,
    add_trust_pickle,
    note,
    parse_dims,
)
from ait_mlir.tools.report import table

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ait_mlir.dialects.sdy import Mesh
    from ait_mlir.lowering.links import Cluster, Link

_EXAMPLE = """examples:
  ait scale block.mlir --plan 'layers.*.up=colwise,layers.*.down=rowwise' --dim batch=1
  ait scale block.mlir --mesh tp=4 --mesh tp=8 --link 417,21 --cards 1024 --json
"""
_MOST_CARDS = 1024
_USUAL = ("tp=1", "tp=2", "tp=4", "tp=8")


@dataclass(frozen=True)
class Row:
    """The estimate of one mesh. Times are in seconds, sizes in bytes of one rank."""

    mesh: str
    ranks: int
    replicas: int
    """How many copies of the model the cards run at the same time."""
    seconds: float
    computing: float
    exchanging: float
    weights: int
    arena: int
    sent: int

    @property
    def runs_per_second(self) -> float:
        """Runs of all replicas."""
        return self.replicas / self.seconds if self.seconds else 0.0


def add(subparsers: Any) -> None:
    """Declare the command."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "scale",
        help="estimate the time and memory of a model on several cards",
        description="Divide a model over meshes of ranks and print, for each mesh, the estimated time of a run, the "
        "bytes that a rank sends, and its memory. Nothing runs, and no card is needed: docs/scale.md has the formulas. "
        f"--load and --trust-pickle let code of their files run. {TRUST}",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument("file", help="FILE.mlir, FILE.pt2 or FILE.onnx")
    p.add_argument("--target", default="cuda", help="cuda (default), rocm or cpu")
    p.add_argument("--arch", default="", help="the architecture of the cards, as for ait compile")
    p.add_argument("--plan", default="", metavar="NAME=STYLE,...", help="what ranks divide, as for ait compile")
    p.add_argument(
        "--mesh",
        action="append",
        default=[],
        metavar="AXES",
        help=f"a mesh, as in tp=2; may be given several times (default: {', '.join(_USUAL)})",
    )
    p.add_argument(
        "--cards", type=int, metavar="N", help=f"the number of cards, up to {_MOST_CARDS}; the rest run replicas"
    )
    p.add_argument(
        "--link", metavar="GB/S,US", help="in a node: GB/s of a card, and us of a collective of no bytes (NCCL on H200)"
    )
    p.add_argument("--network", metavar="GB/S,US", help="between nodes (50,30)")
    p.add_argument("--node", type=int, default=8, metavar="N", help="cards of a node (8)")
    p.add_argument("--dim", action="append", default=[], metavar="NAME=NUMBER", help="the value of a dim")
    add_precision(p)
    add_trust_pickle(p)
    p.add_argument("--json", action="store_true", help="print a JSON list of rows; sizes in bytes, times in seconds")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the table; returns the exit code."""
    from ait_mlir.dialects.sdy import parse_axes
    from ait_mlir.lowering.links import DEFAULT, WITH_PEERS, Cluster
    from ait_mlir.tools.commands.compile import read_model

    meshes = [parse_axes(text) for text in options.mesh or _USUAL]
    cards = max(mesh.size for mesh in meshes) if options.cards is None else options.cards
    for mesh in meshes:
        if mesh.size > _MOST_CARDS:
            raise UsageError(f"--mesh: {mesh} has {mesh.size} ranks, expected at most {_MOST_CARDS}")
    if not 1 <= cards <= _MOST_CARDS:
        raise UsageError(f"--cards {cards}: expected a number from 1 to {_MOST_CARDS}")
    if not 1 <= options.node <= _MOST_CARDS:
        raise UsageError(f"--node {options.node}: expected a number from 1 to {_MOST_CARDS}")
    usual = WITH_PEERS if options.target == "cuda" else DEFAULT
    cluster = replace(usual, node=options.node, between=_link(options.network, "--network", DEFAULT.between))
    if options.link is not None:
        cluster = Cluster(options.node, _link(options.link, "--link", DEFAULT.inside), cluster.between)
    module, _, _ = read_model(options.file, options.trust_pickle)
    _fix_dims(module, options.dim)
    rows: list[Row] = []
    refused: dict[str, str] = {}
    for text, mesh in zip(options.mesh or _USUAL, meshes, strict=True):
        if mesh.size > cards:
            refused[text] = f"it has {mesh.size} ranks, there are {cards} cards"
            continue
        try:
            rows.append(_estimate(module.clone(), text, mesh, cards, cluster, options))
        except AitError as error:
            refused[text] = _reason(error)
    if not rows:
        raise AitError(f"no mesh divides the model; {next(iter(refused))}: {next(iter(refused.values()))}")
    if options.json:
        print(json.dumps([{**asdict(row), "runs_per_second": row.runs_per_second} for row in rows]))
    else:
        _print(rows)
    for text, reason in refused.items():
        note(f"{text} is left out: {reason}")
    return 0


def _reason(error: AitError) -> str:
    """The first message of an error, without its place."""
    if isinstance(error, SourceError) and error.diagnostics:
        return error.diagnostics[0].message
    return str(error).splitlines()[0]


def _link(text: str | None, option: str, usual: Link) -> Link:
    """A link from GB/S,US; `UsageError` for another text."""
    from ait_mlir.lowering.links import Link

    if text is None:
        return usual
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?),(\d{1,6}(?:\.\d{1,6})?)", text)
    if found is None or float(found[1]) == 0:
        raise UsageError(f"{option} {text!r}: expected GB/s above 0 and microseconds, as in 417,21")
    return Link(float(found[1]) * 1e9, float(found[2]) * 1e-6)


def _fix_dims(module: ModuleOp, texts: list[str]) -> None:
    """Let estimates be made for the given values of dims."""
    from ait_mlir.dialects.ait.data import GraphOp
    from ait_mlir.dialects.ait.types import DimsAttr
    from ait_mlir.dims import Scope
    from ait_mlir.driver import dim_info

    graphs = [op for op in module.ops if isinstance(op, GraphOp)]
    if len(graphs) != 1:
        raise UsageError(f"the file has {len(graphs)} graphs, expected one")
    (graph,) = graphs
    values = parse_dims(texts, list(map(dim_info, graph.scope.dims)))
    dims = [replace(d, hints=(values[d.name],)) if d.name in values else d for d in graph.scope.dims]
    graph.properties["dims"] = DimsAttr(Scope(dims))


def _estimate(
    module: ModuleOp, text: str, mesh: Mesh, cards: int, cluster: Cluster, options: argparse.Namespace
) -> Row:
    """The estimate of one mesh; the model is partitioned, planned and counted."""
    from ait_mlir.dialects.ait.collective import CollectiveOp, ReducedNormOp
    from ait_mlir.dialects.ait.data import GraphOp
    from ait_mlir.dialects.ait_rt.loop import loops_around, program_ops
    from ait_mlir.dialects.ait_rt.program import KernelOp, LaunchOp
    from ait_mlir.driver import program_of, run_to_phase
    from ait_mlir.lowering.kernels.amounts import bytes_moved, estimate_env
    from ait_mlir.lowering.links import collective_seconds, sent_bytes, whole_bytes
    from ait_mlir.lowering.module_target import target_of
    from ait_mlir.options import CompileOptions
    from ait_mlir.passes.launch_cost import launch_cost
    from ait_mlir.passes.partition import is_sharded
    from ait_mlir.tools.report import report

    chosen = CompileOptions(options.target, options.arch, precision=options.precision, fold=False)
    if mesh.size > 1 or any(isinstance(op, GraphOp) and is_sharded(op) for op in module.ops):
        chosen = replace(chosen, mesh=text, plan=options.plan)
    run_to_phase(module, "planned", chosen)
    program, target = program_of(module), target_of(module)
    env = estimate_env(program.scope)
    launches: Counter[str] = Counter()
    for op in program_ops(program.block):
        if isinstance(op, LaunchOp):
            steps = 1
            for loop in loops_around(op):
                steps *= loop.count.evaluate(env)
            launches[op.kernel_name] += steps
    computing = exchanging = sent = 0.0
    for kernel in (op for op in module.ops if isinstance(op, KernelOp)):
        count, op = launches[kernel.sym_name.data], kernel.compute_op()
        if isinstance(op, CollectiveOp):
            whole = whole_bytes(op, env)
            exchanging += count * collective_seconds(op, whole, cluster)
            sent += count * sent_bytes(op, whole)
            if isinstance(op, ReducedNormOp):
                computing += count * bytes_moved(op, program.scope) / target.bandwidth
        else:
            computing += count * launch_cost(kernel, target).seconds
    counted = report(module, program, env)
    return Row(
        text,
        mesh.size,
        cards // mesh.size,
        computing + exchanging,
        computing,
        exchanging,
        counted.constants,
        counted.arena,
        round(sent),
    )


def _print(rows: list[Row]) -> None:
    """The rows as a table; speed-up is that over the first row for one run."""
    head = ("mesh", "ranks", "ms", "computing", "exchanging", "speed-up", "weights MB", "arena MB", "sent MB", "runs/s")
    lines = [
        (
            row.mesh,
            str(row.ranks),
            f"{row.seconds * 1e3:.3f}",
            f"{row.computing * 1e3:.3f}",
            f"{row.exchanging * 1e3:.3f}",
            f"{rows[0].seconds / row.seconds:.2f}" if row.seconds else "-",
            f"{row.weights / 1e6:.2f}",
            f"{row.arena / 1e6:.2f}",
            f"{row.sent / 1e6:.3f}",
            f"{row.runs_per_second:.0f}",
        )
        for row in rows
    ]
    print(table([head, *lines], right=range(1, len(head))))
