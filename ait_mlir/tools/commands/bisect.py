"""`ait bisect`: finds the pass or the launch after which a model leaves its reference."""

from __future__ import annotations

import argparse
import json
from collections import ChainMap
from typing import Any, cast

from ait_mlir.tools.commands.common import (
    EXAMPLE_ONLY,
    TRUST,
    Array,
    UsageError,
    add_precision,
    add_trust_pickle,
    check_text,
    name_and_value,
    natural,
    note,
    parse_dims,
    parse_input,
    write_text,
)

_EXAMPLE = """First each pass is compared: by the reference, in float64, before and after it. If all passes are right,
the model is compiled and run, and the result of each launch is compared. A wrong pass gives a reduced text for
`ait compile`, a wrong launch a text with only its op, for `ait compile --from selected`. The exit code is 1 if
something is wrong.

examples:
  ait bisect model.mlir --dim batch=4 -o small.mlir
  ait bisect model.pt2 --target cuda --input x=@x.npy --tolerance 1e-3
"""


def add(subparsers: Any) -> None:
    """Declare the command."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "bisect",
        help="find the pass or launch after which a model leaves its reference",
        description=f"Find the first pass, then the first launch, after which a run leaves the reference. {TRUST}",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument("file", help="an .mlir file with ait.graph, or a .pt2 or .onnx file")
    p.add_argument("--target", choices=("cpu", "cuda", "rocm"), default="cpu", help="default: cpu")
    p.add_argument("--arch", default="", help="such as sm_90a or native (default: the card or CPU that is here)")
    p.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="random:8x768, zeros:8x768, ones:8x768, @file.npy (default: random values)",
    )
    p.add_argument(
        "--dim", action="append", default=[], metavar="NAME=N", help="a dim of the inputs that are not given"
    )
    p.add_argument(
        "--weights", metavar="FILE", help="a safetensors file with values of params (default: random values)"
    )
    p.add_argument(
        "--tolerance", type=float, help="largest error allowed, over the largest magnitude (default: by element type)"
    )
    p.add_argument("--without", action="append", default=[], metavar="PASS", help="leave out an optimization")
    p.add_argument("--seed", type=natural, default=0, help="of random inputs and weights (default: 0)")
    p.add_argument("-o", "--output", help="where to write the reduced text; '-' and the default are standard output")
    p.add_argument("--json", action="store_true", help="print the result, with the reduced text, as one JSON object")
    add_precision(p)
    add_trust_pickle(p)
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Bisect; returns the exit code."""
    from ait_mlir.options import CompileOptions
    from ait_mlir.passes.checks.check_semantics import SemanticsChecker
    from ait_mlir.tools.bisection import Case, bisect, graph_of
    from ait_mlir.tools.commands.compile import read_model, weights_of

    if options.tolerance is not None and not 0 <= options.tolerance < float("inf"):
        raise UsageError(f"--tolerance {options.tolerance}: expected a number, 0 or more")
    module, _, stored = read_model(options.file, options.trust_pickle)
    check_text(options.output)
    graph = graph_of(module)
    checker = SemanticsChecker(module, options.seed)
    weights = stored if options.weights is None else weights_of(options.weights, module, options.file)
    given = _inputs(options, module)
    dims = _dims(options, module, given)
    inputs = checker.inputs(graph, dims) | given
    params = ChainMap(weights, cast("dict[str, Array]", checker.params))
    chosen = CompileOptions(
        options.target, options.arch, precision=options.precision, without=options.without, measure=False
    )
    at = ", ".join(f"{name} = {value}" for name, value in dims.items()) or "fixed sizes"
    note(f"compares at {at}")
    found = bisect(module, chosen, Case(dims, inputs, params, options.tolerance), note)
    if found is None:
        print(json.dumps({"found": None}) if options.json else "no pass and no launch leaves the reference")
        return 0
    text = f"{found.reduced!s}\n"
    if options.json:
        row = {"found": found.kind, "name": found.name, "place": found.place, "output": found.output}
        print(json.dumps(row | found.errors.for_json() | {"text": text}))
    else:
        place = f"{found.place}: " if found.place else ""
        wrong = f"{found.errors.misplaced} elements are NaN or infinite, or should be" if found.errors.misplaced else ""
        wrong = wrong or f"the error is {found.errors.relative:.3g} of the largest magnitude"
        print(f"{place}the first wrong {found.kind}: {found.name}")
        print(f"  {found.output}: {wrong}, allowed is {found.errors.allowed:.3g}")
        ops = sum(len(list(op.walk())) - 1 for op in found.reduced.ops)
        print(f"  reduced to {ops} ops" if found.kind != "run" else f"  the text has {ops} ops")
    if options.output is not None or not options.json:
        write_text(options.output, text)
    if options.output not in (None, "-"):
        note(f"wrote {options.output}")
    return 1


def _inputs(options: argparse.Namespace, module: Any) -> dict[str, Array]:
    """The inputs from the command line."""
    from ait_mlir.dialects.ait.dtypes import BY_IR
    from ait_mlir.tools.bisection import graph_of

    known = dict(graph_of(module).inputs())
    given: dict[str, Array] = {}
    for text in options.input:
        name, value = name_and_value(text, "--input")
        if name not in known:
            raise UsageError(f"--input {text}: there is no input '{name}'; the inputs are {', '.join(known) or 'none'}")
        given[name] = parse_input(value, BY_IR[cast(Any, known[name].type).element_type].name, options.seed)
    return given


def _dims(options: argparse.Namespace, module: Any, given: dict[str, Array]) -> dict[str, int]:
    """The dims of a run: from --dim, else from the given inputs, else as large as the reference can compute soon."""
    from ait_mlir import driver
    from ait_mlir.reference.sampling import reduced_maximum
    from ait_mlir.tools.bisection import WORK, graph_of

    graph = graph_of(module)
    dims = reduced_maximum(graph, graph.scope, WORK)
    for name, value in graph.inputs():
        for dim, extent in zip(cast(Any, value.type).dims, given[name].shape if name in given else (), strict=False):
            if str(dim) not in dims:
                continue
            declared = graph.scope[str(dim)]
            if not declared.lo <= extent <= declared.hi:
                raise UsageError(
                    f"--input {name}: its shape gives {dim} = {extent}; expected {declared.lo} to {declared.hi}"
                )
            dims[str(dim)] = extent
    named = {text.partition("=")[0] for text in options.dim}
    parsed = parse_dims(options.dim, [driver.dim_info(dim) for dim in graph.scope.dims])
    return dims | {name: value for name, value in parsed.items() if name in named}
