"""`ait quantize`: a model with weights in few bits, and what that changes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ait_mlir.host.files import atomic_file, check_output
from ait_mlir.tools.commands.common import EXAMPLE_ONLY, TRUST, UsageError, add_trust_pickle, tell_written
from ait_mlir.tools.commands.import_ import made_by, weights_beside

_EXAMPLE = """examples:
  ait quantize model.py:build --recipe w4a16 -o model.mlir    # and model.safetensors
  ait quantize model.pt2 --recipe w8a8 --leave-out lm_head --report model.json
  ait quantize model.py:build --recipe w8a8 --max-kl 0.01 --time
  ait compile model.mlir --weights model.safetensors -o model.ait

The report compares the model with the quantised one on the example inputs: those that build() returns, or those of the
.pt2 file. Recipes: w8a16 and w4a16 store weights, in 8 bits by row or 4 bits by groups of 128, and multiply floats;
w8a8 multiplies integers of 8 bits; fp8, fp8-static and fp8-block multiply 8-bit floats, with scales for rows, one scale
for all runs, or scales for blocks of 128; fp8-static-attention also rounds q, k and v of attention. Weights are rounded
to the nearest numbers. The example inputs also give the scales of fp8-static and of what convolutions read in w8a8, so
use inputs as the model gets them.
"""


def add(subparsers: Any) -> None:
    """Declare the command."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "quantize",
        help="store the weights of a PyTorch model in few bits, and report the error",
        description="Write a PyTorch model as IR text and a safetensors file with weights in few bits, and report the "
        f"error of each layer and of the results. FILE.py is run; FILE.pt2 is refused if it would run code. {TRUST}",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument("source", metavar="MODEL", help="FILE.pt2, or FILE.py:FUNCTION, as for ait import")
    recipes = "w8a8, w8a16, w4a16, fp8, fp8-static, fp8-static-attention or fp8-block (default: w8a16)"
    p.add_argument("--recipe", default="w8a16", help=recipes)
    p.add_argument(
        "--leave-out",
        metavar="PATTERN",
        action="append",
        default=[],
        help="layers of these names stay as they are, as in '*.lm_head'; may be repeated",
    )
    p.add_argument(
        "--max-kl",
        metavar="NATS",
        type=float,
        help="leave out the layers that do most harm, until the KL divergence of the results is at most this",
    )
    p.add_argument("--time", action="store_true", help="also compile both models alone, and report the time of a run")
    p.add_argument("-o", "--output", metavar="FILE.mlir", help="where to write the IR (default: NAME.mlir)")
    p.add_argument("--weights", metavar="FILE", help="where to write the weights (default: beside the IR)")
    p.add_argument("--report", metavar="FILE.json", help="also write the report as JSON")
    p.add_argument("--name", help="the name of the model (default: that of its file or class)")
    add_trust_pickle(p)
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Quantise; returns the exit code."""
    from ait_mlir.importers.quantized import quantize_imported, recipe_named

    stem = Path(options.source.partition(".py:")[2] or options.source).stem
    output = Path(options.output or f"{stem}.mlir")
    weights, recipe = weights_beside(output, options.weights), recipe_named(options.recipe)
    for path in (output, weights, *([] if options.report is None else [Path(options.report)])):
        check_output(path)
    imported, call = _model(options)
    bound, timed = options.max_kl, options.time
    found = quantize_imported(imported, [call], recipe, options.leave_out, max_kl=bound, timed=timed)
    from ait_mlir.driver import run_to_phase
    from ait_mlir.runtime.safetensors_part import encode

    with atomic_file(weights) as data, atomic_file(output) as text:  # both or none
        data.writelines(encode(found.imported.constants))
        text.write((str(run_to_phase(found.imported.module, "imported")) + "\n").encode())
    if options.report is not None:
        with atomic_file(Path(options.report)) as file:
            file.write((json.dumps(found.report.as_json(), indent=2) + "\n").encode())
    print(found.report)
    tell_written(output, f"wrote {output} and {weights}")
    return 0


def _model(options: argparse.Namespace) -> tuple[Any, tuple[tuple[Any, ...], dict[str, Any]]]:
    """The imported model and the call of its examples."""
    from ait_mlir.importers.torch import from_torch, read_program

    file, colon, function = options.source.rpartition(":")
    if colon and file.endswith(".py"):
        given = made_by(file, function)
        call = tuple(given.get("example_inputs") or ()), dict(given.get("example_kwargs") or {})
        return from_torch(given.pop("module"), **given, name=options.name), call
    if not options.source.endswith(".pt2"):
        raise UsageError(f"{options.source}: expected FILE.pt2, as torch.export.save writes it, or FILE.py:FUNCTION")
    program = read_program(options.source, trust_pickle=options.trust_pickle)
    if program.example_inputs is None:
        raise UsageError(f"{options.source} has no example inputs, which the report needs; use FILE.py:FUNCTION")
    args, kwargs = program.example_inputs
    return from_torch(program, name=options.name or Path(options.source).stem), (tuple(args), dict(kwargs))
