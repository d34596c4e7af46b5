"""`ait import`: a PyTorch or ONNX model as IR text with its weights beside it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ait_mlir.errors import AitError
from ait_mlir.host.files import atomic_file, check_output
from ait_mlir.tools.commands.common import EXAMPLE_ONLY, TRUST, UsageError, add_trust_pickle, tell_written

if TYPE_CHECKING:
    from ait_mlir.importers.onnx import Imported as ImportedOnnx
    from ait_mlir.importers.torch import Imported

_EXAMPLE = """examples:
  ait import bert.pt2 -o bert.mlir          # and bert.safetensors
  ait import model.onnx                     # model.mlir and model.safetensors
  ait import llama.py:build --checkpoint Llama-8B-AWQ  # weights as they are stored
  ait import --check model.py:build         # everything that cannot be imported, at once
  ait compile bert.mlir --weights bert.safetensors -o bert.ait

A .pt2 file is what torch.export.save writes. One that would run code is refused, unless --trust-pickle is given.
FILE.py is run. build() returns (module, example_inputs) or
(module, example_inputs, dynamic_shapes), or a dict with these names and example_kwargs.
"""


def add(subparsers: Any) -> None:
    """Declare the command."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "import",
        help="turn a PyTorch or ONNX model into IR text and weights",
        description="Turn a PyTorch or ONNX model into IR text and a safetensors file of its weights. "
        f"FILE.py is run, also with --check; FILE.pt2 is refused if it would run code. {TRUST}",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument("source", metavar="MODEL", help="FILE.onnx, FILE.pt2, or FILE.py:FUNCTION")
    p.add_argument("-o", "--output", metavar="FILE.mlir", help="where to write the IR (default: NAME.mlir)")
    p.add_argument("--weights", metavar="FILE", help="where to write the weights (default: beside the IR)")
    p.add_argument(
        "--checkpoint",
        metavar="PATH",
        help="a GGUF file or a folder of safetensors whose weights replace the model's, as they are stored",
    )
    p.add_argument(
        "--keep",
        metavar="PATTERN",
        action="append",
        default=[],
        help="with --checkpoint: params of these names keep the model's values, as in '*.inv_freq'; may be repeated",
    )
    p.add_argument("--name", help="the name of the model (default: that of its file or class)")
    phases = ("imported", "canonical")
    p.add_argument("--to", default="canonical", choices=phases, help="the phase to write (default: canonical)")
    p.add_argument("--check", action="store_true", help="write nothing; say whether the model can be imported")
    add_trust_pickle(p)
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Import; returns the exit code."""
    stem = Path(options.source.partition(".py:")[2] or options.source).stem
    output = Path(options.output or f"{stem}.mlir")
    weights = weights_beside(output, options.weights)
    if not options.check:
        for path in (output, weights):
            check_output(path)
    imported = load(options.source, options.name, trust_pickle=options.trust_pickle)
    stored = ""
    if options.checkpoint is not None:
        from ait_mlir.importers.checkpoints import read_checkpoint, use_checkpoint

        done = use_checkpoint(
            imported.module, imported.constants, read_checkpoint(options.checkpoint), keep=options.keep
        )
        stored = f", of them {len(done.stored)} as stored; {len(done.kept)} kept"
    elif options.keep:
        raise UsageError("--keep is for --checkpoint, which is not given")
    params = len(imported.constants)
    size = sum(array.nbytes for array in imported.constants.values())
    summary = f"{imported.operations} operations, {params} weights of {size} bytes{stored}"
    if options.check:
        print(f"{options.source} can be imported: {summary}")
        return 0
    from ait_mlir.driver import run_to_phase
    from ait_mlir.runtime.safetensors_part import encode

    with atomic_file(weights) as data, atomic_file(output) as text:  # both or none
        data.writelines(encode(imported.constants))
        text.write((str(run_to_phase(imported.module, options.to)) + "\n").encode())
    tell_written(output, f"wrote {output} and {weights}: {summary}")
    return 0


def weights_beside(output: Path, weights: str | None) -> Path:
    """Where the weights of a text are written: by default beside it."""
    found = Path(weights or output.with_suffix(".safetensors"))
    if found == output:
        raise UsageError(f"{output} cannot hold both the IR and the weights; give --weights another name")
    if weights is None and output.exists() and not output.is_file():
        raise UsageError(f"{output} is no regular file, so weights cannot be put beside it: name theirs with --weights")
    return found


def load(source: str, name: str | None = None, *, trust_pickle: bool = False) -> Imported | ImportedOnnx:
    """The model that FILE.onnx or FILE.pt2 holds, or that FUNCTION of FILE.py returns."""
    file, colon, function = source.rpartition(":")
    if colon and file.endswith(".py"):
        return _built(file, function, name)
    if source.endswith(".onnx"):
        from ait_mlir.importers.onnx import import_model

        return import_model(source, name)
    if not source.endswith(".pt2"):
        raise UsageError(f"{source}: expected FILE.onnx, FILE.pt2, as torch.export.save writes it, or FILE.py:FUNCTION")
    return import_pt2(source, name, trust_pickle=trust_pickle)


def import_pt2(path: str, name: str | None = None, *, trust_pickle: bool = False) -> Imported:
    """The module of a saved program."""
    from ait_mlir.importers.torch import from_torch, read_program

    return from_torch(read_program(path, trust_pickle=trust_pickle), name=name or Path(path).stem)


def made_by(file: str, function: str) -> dict[str, Any]:
    """What FUNCTION of FILE.py returns: `module`, and `example_inputs`, `example_kwargs` and `dynamic_shapes` if it
    gives them."""
    if not Path(file).is_file():
        raise UsageError(f"{file}: there is no such file")
    spec = spec_from_file_location(Path(file).stem, file)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.path.insert(0, str(Path(file).resolve().parent))
    try:
        spec.loader.exec_module(module)
        build = getattr(module, function, None)
        if not callable(build):
            raise UsageError(f"{file} has no function {function!r}")
        made: Any = build()
    except AitError:
        raise
    except Exception as error:
        raise UsageError(f"{file}:{function} failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    keys = ("module", "example_inputs", "example_kwargs", "dynamic_shapes")
    if isinstance(made, Mapping):
        given = dict(cast("Mapping[str, Any]", made))
        if unknown := sorted(given.keys() - set(keys)):
            raise UsageError(f"{file}:{function} returns {unknown[0]!r}; expected {', '.join(keys)}")
        return {"module": None, **given}
    if not isinstance(made, tuple) or not 2 <= len(cast("tuple[Any, ...]", made)) <= 3:
        found = type(cast(object, made)).__name__
        raise UsageError(f"{file}:{function} returns {found}; expected (module, example_inputs[, dynamic_shapes])")
    return dict(zip(("module", "example_inputs", "dynamic_shapes"), cast("tuple[Any, ...]", made), strict=False))


def _built(file: str, function: str, name: str | None) -> Imported:
    from ait_mlir.importers.torch import from_torch

    given = made_by(file, function)
    return from_torch(given.pop("module"), **given, name=name)
