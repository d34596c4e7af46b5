"""`ait run`: runs an artifact once, and compares the outputs."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ait_mlir.errors import AitError, InputError
from ait_mlir.host.files import atomic_file, check_output
from ait_mlir.runtime.data import empty_strided
from ait_mlir.runtime.from_host import run_on_host
from ait_mlir.runtime.manifest import Manifest
from ait_mlir.runtime.model import Model
from ait_mlir.tools.commands.common import (
    EXAMPLE_ONLY,
    TRUST,
    Array,
    UsageError,
    as_raw,
    name_and_value,
    natural,
    parse_dims,
    parse_input,
    read_values,
    set_weights,
)
from ait_mlir.tools.comparison import TOLERANCE, Expected, compare, error_table, for_json

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ait_mlir.dialects.ait_rt.program import ProgramOp

_EXAMPLE = """examples:
  ait run ffn.ait --input x=random:8x768 --compare reference
  ait run ffn.ait --input x=@x.npy --compare y=expected.npy --output y=@y.npy
  ait run ffn.ait --dim batch=8           (random inputs of the shapes that the dims give)
  ait run model.onnx --compare onnxruntime
"""


def add(subparsers: Any) -> None:
    """Declare the command."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "run",
        help="run an artifact once",
        description="Run an artifact once; print or write its outputs, or compare them. "
        f"The machine code of the file runs, also where an option is refused later. {TRUST}",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument("artifact", help="a .ait file, or an .onnx file, which is compiled for the CPU first")
    p.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="random:8x768, zeros:8x768, ones:8x768, @file.npy",
    )
    p.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="dims of the inputs that are not given")
    p.add_argument("--output", action="append", default=[], metavar="NAME=@FILE.npy", help="write an output to a file")
    p.add_argument(
        "--compare",
        action="append",
        default=[],
        metavar="WHAT",
        help="'reference' (the meaning of the IR, in float64), 'onnxruntime' (of an .onnx file), FILE.npy or "
        "NAME=FILE.npy; exit code 1 if it differs",
    )
    p.add_argument(
        "--tolerance",
        type=float,
        help="largest error allowed, over the largest expected magnitude (default: by what the run rounds)",
    )
    p.add_argument("--weights", metavar="FILE", help="a safetensors file for constants, or 'random'")
    p.add_argument("--graph", action="store_true", help="as a CUDA graph (run three times)")
    p.add_argument("--seed", type=natural, default=0, help="of random inputs and weights (default: 0)")
    p.add_argument("--json", action="store_true", help="print statistics and errors of the outputs as one JSON object")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run and report; returns the exit code, 1 when a comparison fails."""
    with _opened(options) as model:
        _check_outputs(options, model.get_output_name_to_index_map())
        weights = set_weights(model, options.weights, options.seed)
        inputs = make_inputs(model, options)
        outputs = run_on_host(model, inputs, options.graph)
        shown = {name: _outside(options, name, array) for name, array in outputs.items()}
        if not options.json:
            for name, array in shown.items():
                print(f"{name}: {array.dtype.name} {list(array.shape)}  {summary(array)}")
        write_outputs(shown, options.output)
        expected = _expected(options, model, inputs, outputs, weights)
    errors = compare(outputs, expected, options.tolerance)
    if options.json:
        rows = {n: {"dtype": a.dtype.name, "shape": a.shape, **for_json(statistics(a))} for n, a in shown.items()}
        print(json.dumps({"outputs": rows, "errors": {name: found.for_json() for name, found in errors.items()}}))
    elif errors:
        print(error_table(errors))
    return int(not all(found.good for found in errors.values()))


@contextmanager
def _opened(options: argparse.Namespace) -> Generator[Model]:
    """The model of an artifact, or of an ONNX file, which is compiled for the CPU first."""
    options.onnx, options.holders = None, {}
    if not options.artifact.endswith(".onnx"):
        with Model(options.artifact) as model:
            yield model
        return
    from ait_mlir.importers.onnx import load_onnx

    with tempfile.TemporaryDirectory(prefix="ait_") as folder:
        options.onnx = options.artifact
        loaded = load_onnx(options.onnx)
        options.holders = loaded.imported.holders  # types that the artifact holds in others
        options.artifact = str(loaded.save(Path(folder) / "model.ait"))
        with Model(options.artifact) as model:
            yield model


def _outside(options: argparse.Namespace, name: str, array: Array) -> Array:
    """A tensor of the artifact in the element type of the ONNX model."""
    holder = options.holders.get(name)
    return array if holder is None else holder.given(array)


def _held(options: argparse.Namespace, name: str, array: Array) -> Array:
    """A tensor of the ONNX model in the element type of the artifact."""
    holder = options.holders.get(name)
    return array if holder is None else holder.held(array)


def _parsed(model: Model, options: argparse.Namespace, name: str, text: str, seed: int) -> Array:
    """An input from a text, in the element type of the artifact."""
    holder = options.holders.get(name)
    dtype = model.get_input_dtype(name) if holder is None else holder.outside.name
    return _held(options, name, parse_input(text, dtype, seed))


def make_inputs(model: Model, options: argparse.Namespace) -> dict[str, Array]:
    """The inputs from the command line, and random values for all other inputs."""
    given: dict[str, Array] = {}
    known = model.get_input_name_to_index_map()
    for text in options.input:
        name, value = name_and_value(text, "--input")
        if name not in known:
            raise UsageError(f"--input {text}: there is no input '{name}'; the inputs are {', '.join(known) or 'none'}")
        given[name] = _parsed(model, options, name, value, options.seed + known[name])
    if len(given) < len(known) or options.dim:
        dims = _dims_of(model, given, options.dim)
        shapes, strides = model.input_shapes(dims), model.input_strides(dims)
        for name in known.keys() - given.keys():
            text = "random:" + "x".join(map(str, shapes[name]))
            made = _parsed(model, options, name, text, options.seed + known[name])
            given[name] = empty_strided(made.dtype, made.shape, strides[name])
            given[name][...] = made
    return {name: given[name] for name in known}


def _dims_of(model: Model, given: Mapping[str, Array], texts: list[str]) -> dict[str, int]:
    """The values of all dims: from --dim, else from the given inputs, else the last hint or the maximum."""
    manifest = manifest_of(model)
    values = parse_dims(texts, manifest.dims)
    given_names = {text.partition("=")[0] for text in texts}
    ranges = {dim.name: dim for dim in manifest.dims}
    for tensor in [t for t in manifest.inputs if t.name in given]:
        shape = given[tensor.name].shape
        if len(shape) != len(tensor.shape):
            raise InputError(
                f"input '{tensor.name}' has rank {len(shape)} (shape {list(shape)}), expected rank {len(tensor.shape)}"
            )
        for axis, (dim, extent) in enumerate(zip(tensor.shape, shape, strict=True)):
            if dim in given_names and extent != values[dim]:
                raise UsageError(
                    f"--dim {dim}={values[dim]}: input '{tensor.name}' has extent {extent} on axis {axis}, "
                    f"so {dim} = {extent}; leave out --dim or change the input"
                )
            if dim in values and dim not in given_names:
                if not ranges[dim].lo <= extent <= ranges[dim].hi:
                    raise InputError(
                        f"input '{tensor.name}' has extent {extent} on axis {axis}, so {dim} = {extent}, "
                        f"expected a value from {ranges[dim].lo} to {ranges[dim].hi}"
                    )
                values[dim] = extent
    return values


def manifest_of(model: Model) -> Manifest:
    """The manifest of a model loaded from an artifact."""
    if model.manifest is None:
        raise UsageError(f"model {model.name} has no manifest")
    return model.manifest


def statistics(array: Array) -> dict[str, float | int]:
    """Mean, spread and range of the finite elements of an array, if there are any, and the number of all others."""
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    found: dict[str, float | int] = {"not_finite": wide.size - finite.size}
    if finite.size:
        with np.errstate(over="ignore", invalid="ignore"):
            measures = {"mean": finite.mean(), "std": finite.std(), "min": finite.min(), "max": finite.max()}
        found |= {name: float(value) for name, value in measures.items()}
    return found


def summary(array: Array) -> str:
    """The statistics of an array in words."""
    if array.size == 0:
        return "empty"
    found = statistics(array)
    bad = found.pop("not_finite")
    words = [f"{name} {value:.4g}" for name, value in found.items()]
    return "  ".join(words + [f"{bad} not finite"] * bool(bad))


def _check_outputs(options: argparse.Namespace, known: Mapping[str, int]) -> None:
    """Raise `AitError` for unknown names of outputs and for files that cannot be written, before the model runs."""
    for option in ("output", "compare"):
        for text in getattr(options, option):
            name, equals, _ = text.partition("=")
            if not equals and option == "compare":
                if text not in ("reference", "onnxruntime") and len(known) != 1:
                    raise UsageError(f"--compare {text}: say which output, as in {next(iter(known))}={text}")
                if text not in ("reference", "onnxruntime") and not Path(text).exists():
                    raise UsageError(
                        f"--compare {text}: there is no such file; expected reference, onnxruntime or a .npy file"
                    )
                continue
            name, value = name_and_value(text, f"--{option}")
            if name not in known:
                raise UsageError(
                    f"--{option} {text}: there is no output '{name}'; the outputs are {', '.join(known) or 'none'}"
                )
            if option == "output":
                check_output(Path(value.removeprefix("@")))


def write_outputs(outputs: Mapping[str, Array], texts: list[str]) -> None:
    """Write outputs as .npy files."""
    for text in texts:
        name, value = name_and_value(text, "--output")
        with atomic_file(Path(value.removeprefix("@"))) as file:
            np.save(file, as_raw(outputs[name]))


def _expected(
    options: argparse.Namespace,
    model: Model,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    weights: Mapping[str, Array],
) -> dict[str, Expected]:
    expected: dict[str, Expected] = {}
    for what in options.compare:
        if what == "onnxruntime":
            given = {name: _outside(options, name, array) for name, array in inputs.items()}
            found = _by_onnxruntime(options.onnx, given)
            expected |= {name: Expected(_held(options, name, array)) for name, array in found.items()}
            continue
        if what == "reference":
            if model.manifest is not None and model.manifest.ranks > 1:
                raise AitError(
                    "--compare reference needs the whole weights, but a rank has its pieces alone: "
                    "check the text with ait-opt -p partition --check-semantics"
                )
            expected |= evaluate_reference(options.artifact, model, inputs, outputs, weights)
            continue
        name, path = what.split("=", 1) if "=" in what else (next(iter(outputs)), what)
        expected[name] = Expected(read_values(path, outputs[name].dtype.name if name in outputs else ""))
    return expected


def _by_onnxruntime(path: str | None, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs that ONNX Runtime computes on the CPU."""
    if path is None:
        raise UsageError("--compare onnxruntime is for .onnx files; give the model instead of its artifact")
    try:
        runtime: Any = import_module("onnxruntime")
    except ImportError as error:
        raise UsageError(f"--compare onnxruntime needs onnxruntime ({error}); pip install onnxruntime") from None
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


def evaluate_reference(
    path: str, model: Model, inputs: Mapping[str, Array], outputs: Mapping[str, Array], weights: Mapping[str, Array]
) -> dict[str, Expected]:
    """The expected outputs of an artifact's program: in float64, and with each buffer rounded to its element type."""
    from ait_mlir import driver
    from ait_mlir.ir.context import context
    from ait_mlir.ir.parser import parse_source
    from ait_mlir.ir.source import SourceText
    from ait_mlir.reference.interpreter import run_program
    from ait_mlir.runtime import artifact

    module = parse_source(context(), SourceText(path, model.ir_text))
    manifest = manifest_of(model)
    dims = _dims_of_run(model, manifest, inputs)
    params = {**artifact.read(path, defer_weights=True).constants, **weights}
    program = driver.program_of(module)
    exact = run_program(module, program, inputs, params, dims, exact=True)
    stored = run_program(module, program, inputs, params, dims)
    ceiling, operands = _tolerance_of_buffers(program), tolerance_of_products(module)
    return {name: Expected(exact[name], stored[name], ceiling, operands) for name in outputs}


def _tolerance_of_buffers(program: ProgramOp) -> float:
    """The tolerance of the narrowest element type among the program's buffers."""
    from ait_mlir.dialects.ait.dtypes import BY_IR
    from ait_mlir.dialects.ait.types import ShapedType

    types = [result.type for op in program.walk() for result in op.results]
    names = {BY_IR[t.element_type].name for t in types if isinstance(t, ShapedType)}
    return max((TOLERANCE.get(name, 0.0) for name in names), default=0.0)


def tolerance_of_products(module: ModuleOp) -> float:
    """The tolerance of the type to which operands of f32 products are rounded; 0 if no operands are rounded.

    TF32 has as many bits as f16.
    """
    from ait_mlir.lowering.module_target import target_of
    from ait_mlir.selection.measure import multiplies_f32

    narrow = {"high": "float16", "medium": "bfloat16"}.get(target_of(module).precision)
    return TOLERANCE[narrow] if narrow and any(multiplies_f32(op) for op in module.walk()) else 0.0


def _dims_of_run(model: Model, manifest: Manifest, inputs: Mapping[str, Array]) -> dict[str, int]:
    """The dims of a run from the shapes of its inputs.

    Every dim determines the size of some input by itself, or multiplied by and added to a number.
    """
    from ait_mlir.dims import parse

    values: dict[str, int] = {}
    low, high = {d.name: d.lo for d in manifest.dims}, {d.name: d.lo + 1 for d in manifest.dims}
    for tensor in manifest.inputs:
        for text, extent in zip(tensor.shape, inputs[tensor.name].shape, strict=True):
            expression = parse(text)
            if len(expression.symbols) != 1:
                continue
            (name,) = expression.symbols
            base, step = expression.evaluate(low), expression.evaluate(high) - expression.evaluate(low)
            value = low[name] + (extent - base) // step if step else low[name]
            if name not in values and expression.evaluate({name: value}) == extent:
                values[name] = value
    in_strides = {name for tensor in manifest.inputs for text in tensor.strides for name in parse(text).symbols}
    values |= {name: low[name] for name in in_strides - values.keys()}  # where elements lie changes no result
    if missing := [d.name for d in manifest.dims if d.name not in values and not d.bound]:
        raise AitError(f"model {model.name}: the inputs do not give the value of {', '.join(missing)}")
    return values
