"""`ait inspect`: the contents of an artifact and the launches of a run; loads and runs no code."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ait_mlir.runtime import artifact
from ait_mlir.runtime.artifact import Artifact
from ait_mlir.runtime.manifest import DimInfo
from ait_mlir.tools.commands.common import EXAMPLE_ONLY, TRUST, UsageError, add_precision, parse_dims, text_of_bytes
from ait_mlir.tools.report import Report, table

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_EXAMPLE = """examples:
  ait inspect ffn.ait
  ait inspect ffn.ait --launches --dim batch=8
  ait inspect examples/bert_layer.mlir --target cuda --launches     (IR text is planned first)
  ait inspect --ops
  ait inspect --ops ait.gemm        (one op, and how it is written)
"""


def add(subparsers: Any) -> None:
    """Declare the command."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "inspect",
        help="show what is in an artifact, and its launches",
        description="Show what is in an artifact, and with --launches what a run will do. "
        f"No code of the file is loaded or run; --load runs its file. {TRUST}",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument("file", nargs="?", help="a .ait file, or IR text at any phase; with --ops the name of one op")
    p.add_argument("--ops", action="store_true", help="every op: names in AITemplate, element types, kernels by target")
    p.add_argument(
        "--launches",
        action="store_true",
        help="each launch: op, kernel, shapes, bytes, flops, share of its floor; the totals",
    )
    p.add_argument(
        "--dim", action="append", default=[], metavar="NAME=N", help="default: the last hint, else the maximum"
    )
    p.add_argument("--ir", action="store_true", help="print the planned IR")
    p.add_argument(
        "--target", choices=("cpu", "cuda", "rocm"), default="cpu", help="for IR text that is not planned yet"
    )
    p.add_argument("--arch", default="", help="for IR text that is not planned yet")
    p.add_argument("--json", action="store_true", help="print manifest, launches and totals as one JSON object")
    add_precision(p)
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the requested information; returns the exit code."""
    if options.json and (options.ops or options.ir):
        raise UsageError("--json prints manifest and launches; leave out --ops and --ir")
    if options.ops:
        from ait_mlir.tools.operators import operator_page, operator_table

        print(operator_table() if options.file is None else operator_page(options.file))
        return 0
    if options.file is None:
        raise UsageError("name a file, or ask for --ops")
    if Path(options.file).suffix == ".mlir":
        module, dims = _plan(options)
        if options.json:
            print(json.dumps(_launches(module, parse_dims(options.dim, dims))))
            return 0
        if options.ir:
            print(module)
        if options.launches or not options.ir:
            _print_launches(module, parse_dims(options.dim, dims))
        return 0
    loaded = artifact.read(options.file)
    if options.ir:
        print(loaded.ir_text, end="")
        return 0
    dims = parse_dims(options.dim, loaded.manifest.dims)
    if options.json:
        found = {"manifest": asdict(loaded.manifest), "bytes": {name: p.size for name, p in loaded.parts.items()}}
        print(json.dumps(found | _launches(_parse(options.file, loaded.ir_text), dims)))
        return 0
    _print_manifest(loaded)
    if options.launches:
        print()
        _print_launches(_parse(options.file, loaded.ir_text), dims)
    return 0


def _plan(options: argparse.Namespace) -> tuple[ModuleOp, tuple[DimInfo, ...]]:
    from ait_mlir import driver
    from ait_mlir.options import CompileOptions

    try:
        module, source = driver.read_module(options.file)
    except OSError as error:
        raise UsageError(f"cannot read {options.file}: {error.strerror}") from error
    chosen = CompileOptions(options.target, options.arch, precision=options.precision)
    driver.run_to_phase(module, "planned", chosen, source=source)
    scope = driver.program_of(module).scope
    return module, tuple(map(driver.dim_info, scope.dims))


def _parse(name: str, text: str) -> ModuleOp:
    from ait_mlir.ir.context import context
    from ait_mlir.ir.parser import parse_source
    from ait_mlir.ir.source import SourceText

    return parse_source(context(), SourceText(name, text))


def _print_manifest(loaded: Artifact) -> None:
    manifest = loaded.manifest
    print(f"model     {manifest.name}")
    print(f"target    {manifest.target} {manifest.arch}")
    if manifest.precision != "highest":
        print(f"precision {manifest.precision}")
    if manifest.ranks > 1:
        print(f"ranks     {manifest.ranks}, each with constants of its own")
    for dim in manifest.dims:
        hints = f" hints {list(dim.hints)}" if dim.hints else ""
        bound = " bound by a launch" if dim.bound else ""
        print(f"dim       {dim.name} = {dim.lo} to {dim.bound or dim.hi}{hints}{bound}")
    for role, tensors in (("input", manifest.inputs), ("output", manifest.outputs)):
        for tensor in tensors:
            place = f" in place of input {tensor.in_place_of}" if tensor.in_place_of else ""
            strides = f" strides [{', '.join(tensor.strides)}]" if tensor.strides else ""
            print(f"{role:8}  {tensor.name}: {tensor.dtype} [{', '.join(tensor.shape)}]{strides}{place}")
    for arch, _, _ in manifest.libraries()[1:]:
        print(f"also for  {manifest.target} {arch}")
    sizes = {name: part.size for name, part in loaded.parts.items()}
    constants = loaded.constant_bytes()
    total = sum(constants.values())
    print(f"constants {len(constants)} bound, {text_of_bytes(total)}")
    parts = f"library {text_of_bytes(sizes['library'])}, IR {text_of_bytes(sizes['ir'])}"
    print(f"file      {text_of_bytes(loaded.bytes.size)}: {parts}")
    print(f"made by   {', '.join(f'{name} {version}' for name, version in manifest.producers.items())}")


def _launches(module: ModuleOp, dims: dict[str, int]) -> dict[str, Any]:
    """The launches of a program at these dims, and the totals, as JSON."""
    from ait_mlir import driver
    from ait_mlir.tools.report import report

    return {"dims": dims, **asdict(report(module, driver.program_of(module), dims))}


def _print_launches(module: ModuleOp, dims: dict[str, int]) -> None:
    from ait_mlir import driver
    from ait_mlir.tools.report import report

    found = report(module, driver.program_of(module), dims)
    shown = ", ".join(f"{name} = {value}" for name, value in dims.items())
    print(f"launches{' at ' + shown if shown else ''}")
    rows = [["", "op", "kernel", "shapes", "read", "written", "flops", "of floor"]]
    for i, launch in enumerate(found.launches):
        amounts = [str(launch.read), str(launch.written), str(launch.flops)]
        share = "" if launch.share is None else f"{launch.share:.0%}"
        rows.append([str(i), launch.op, launch.kernel, launch.shapes, *amounts, share])
    if found.streams > 1:
        for row, stream in zip(rows, ["stream", *(str(launch.stream) for launch in found.launches)], strict=True):
            row.append(stream)
    print(table(rows, right=(0, 4, 5, 6, 7, 8)))
    _print_totals(found)


def _print_totals(found: Report) -> None:
    ratio = f" ({found.bytes / found.floor:.3f} times)" if found.floor else ""
    print(f"launches  {len(found.launches)}")
    if found.streams > 1:
        plain = "; a run that is not recorded uses one, as events would cost the host more than they save"
        print(f"streams   {found.streams}, ordered by events{plain if found.streams_if_recorded else ''}")
    if found.waits:
        print(f"waits     the host waits for {', '.join(found.waits)}, between parts that can be recorded as graphs")
    print(f"bytes     {found.bytes} read and written by the launches")
    print(f"floor     {found.floor} for weights, inputs, outputs, and each intermediate written and read once{ratio}")
    print(f"flops     {found.flops}")
    print(f"arena     {found.arena} bytes, constants {found.constants} bytes")
