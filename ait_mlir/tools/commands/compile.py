"""`ait compile`: IR text or a saved PyTorch program to an artifact, or to any phase before it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ait_mlir.errors import AitError
from ait_mlir.host.files import check_report, write_atomic
from ait_mlir.host.kernel_libraries import add_kernel_library
from ait_mlir.tools.commands.common import (
    EXAMPLE_ONLY,
    TRUST,
    UsageError,
    add_precision,
    add_trust_pickle,
    check_text,
    name_and_value,
    note,
    parse_dims,
    random_constant,
    read_weights,
    tell_written,
    write_text,
)

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ait_mlir.ir.pipeline import Observer
    from ait_mlir.ir.source import SourceText
    from ait_mlir.options import CompileOptions

_EXAMPLE = """examples:
  ait compile examples/ffn.mlir --target cpu -o ffn.ait --weights ffn.safetensors
  ait compile examples/ffn.mlir --target cuda --to planned > ffn.planned.mlir
  ait compile ffn.planned.mlir --from planned --target cuda -o ffn.ait
  ait compile bert.pt2 --target cpu -o bert.ait
  ait compile examples/ffn.mlir --to planned --report ffn.html -o ffn.planned.mlir
"""


def add(subparsers: Any) -> None:
    """Declare the command."""
    p: argparse.ArgumentParser = subparsers.add_parser(
        "compile",
        help="compile IR text to an artifact, or to a phase before it",
        description="Compile IR text to an artifact, or print it at a phase before that. "
        f"Text and weights are only read; --load, --library and --trust-pickle let code of their files run. {TRUST}",
        epilog=_EXAMPLE,
        formatter_class=EXAMPLE_ONLY,
    )
    p.add_argument("file", help="an .mlir file, an .onnx file, or a .pt2 file that torch.export.save has written")
    p.add_argument("--target", choices=("cpu", "cuda", "rocm"), default="cpu", help="default: cpu")
    p.add_argument(
        "--arch", default="", help="such as sm_90a, gfx90a or native (default: the card or CPU that is here)"
    )
    p.add_argument(
        "--cpu",
        action="append",
        default=[],
        metavar="ARCH",
        help="another CPU than this one, such as x86-64-v3; if it is given several times, the artifact has code for "
        "each of them, and a load takes the best one that its CPU can run",
    )
    p.add_argument(
        "-o",
        "--output",
        help="where to write (default: NAME.ait for an artifact, else standard output, which '-' names, too)",
    )
    p.add_argument(
        "--to",
        default="built",
        metavar="PHASE",
        help="imported, canonical, simplified, fused, selected, bufferized, planned, source (C++) or built (default)",
    )
    p.add_argument(
        "--from", dest="start", metavar="PHASE", help="the phase that the file is at (default: seen from its ops)"
    )
    p.add_argument("--weights", metavar="FILE", help="a safetensors file with values of the params, or 'random'")
    p.add_argument("--name", help="the name of the model (default: that of its graph)")
    p.add_argument("--workdir", help="keep the generated sources and the planned IR there")
    p.add_argument(
        "--measure",
        action="store_true",
        default="auto",
        help="choose all kernels by their times on the card (default: those that can be measured within --budget "
        "seconds if there is a card, else by estimate); what was measured before is not measured again",
    )
    p.add_argument(
        "--no-measure", dest="measure", action="store_false", help="choose kernels by estimate, and by known times"
    )
    p.add_argument(
        "--budget",
        type=float,
        metavar="SECONDS",
        help="for measuring, compiling of candidates included (default: AIT_MEASURE_BUDGET, else 20)",
    )
    p.add_argument(
        "--points",
        default="hints",
        help="at which values of the dims: hints, min, max, or several with a plus between (default: hints)",
    )
    add_precision(p)
    p.add_argument(
        "--streams",
        type=int,
        metavar="N",
        help="the most streams of a GPU that a run may use, 0 or 1 for one (default: several where estimates say that "
        "it pays)",
    )
    p.add_argument(
        "--mesh",
        default="",
        metavar="AXES",
        help="the ranks that run the model, as in tp=2 or dp=2,tp=4, in place of the mesh that the text declares; "
        "shardings in the text say which pieces each rank has",
    )
    p.add_argument(
        "--plan",
        default="",
        metavar="NAME=STYLE,...",
        help="which weights the ranks divide: names of modules or params with *, and colwise or rowwise, as in "
        "layers.*.up=colwise,layers.*.down=rowwise",
    )
    p.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="PASS",
        help="leave out an optimization, such as fuse-epilogue; may be given several times",
    )
    p.add_argument(
        "--emit",
        choices=("artifact", "module", "kernels"),
        default="artifact",
        help="an artifact (default), or a library for tvm-ffi: the model as one function, or each kernel as a function",
    )
    p.add_argument(
        "--library",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="a kernel library that the model calls as @NAME (others are found in AIT_KERNEL_PATH)",
    )
    p.add_argument(
        "--reference-libraries",
        action="store_true",
        help="let the artifact refer to the files of kernel libraries instead of storing them",
    )
    add_trust_pickle(p)
    p.add_argument(
        "--ray",
        dest="cluster",
        default="",
        metavar="ADDRESS",
        help="compile kernels on the machines of a Ray cluster that have the toolchain; ADDRESS is auto, HOST:PORT or "
        "ray://HOST:PORT. The artifact is the same",
    )
    p.add_argument("--times", action="store_true", help="print the times of the fastest kernels, and what was chosen")
    p.add_argument(
        "--report",
        metavar="FILE",
        help="write a page (HTML) with the changes of each pass, the patterns applied, the launches and the arena",
    )
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compile; returns the exit code."""
    from ait_mlir import driver
    from ait_mlir.dialects.ait_rt.program import ProgramOp
    from ait_mlir.rewrites.engine.driver import counted_rewrites
    from ait_mlir.selection.select import kept_selections
    from ait_mlir.tools.explain import Trace
    from ait_mlir.tools.page import page

    if options.to not in driver.PHASES:
        raise UsageError(f"--to {options.to}: the phases are {', '.join(driver.PHASES)}")
    if options.start is not None and options.start not in driver.PHASES[:-2]:
        raise UsageError(f"--from {options.start}: a file can be at {', '.join(driver.PHASES[:-2])}")
    for text in options.library:
        add_kernel_library(*name_and_value(text, "--library"))
    module, source, stored = read_model(options.file, options.trust_pickle)
    weights = stored if options.weights is None else weights_of(options.weights, module, options.file)
    chosen = _chosen(options)
    if options.emit != "artifact":
        if options.report is not None:
            raise UsageError(f"--report shows how an artifact is compiled; leave out --emit {options.emit}")
        return _export(options, chosen, module, source, weights)
    if options.report is None:
        return _compile(options, chosen, module, source, weights, None)
    check_report(Path(options.report), options.file, options.output, options.weights)
    with counted_rewrites() as statistics, kept_selections() as selections:
        trace = Trace(statistics, module)
        code = _compile(options, chosen, module, source, weights, trace.observe)
    program = next((op for op in module.ops if isinstance(op, ProgramOp)), None)
    if program is None or not driver.has_places(program):
        program, dims = None, {}
    else:
        dims = parse_dims([], list(map(driver.dim_info, program.scope.dims)))
    text = page(Path(options.file).name, trace, selections, program, module, dims)
    write_atomic(Path(options.report), text.encode())
    return code


def _chosen(options: argparse.Namespace) -> CompileOptions:
    """The compile options given on the command line."""
    from ait_mlir.options import CompileOptions

    if options.cpu and (options.target != "cpu" or options.arch):
        raise UsageError("--cpu names the CPUs of target cpu: leave out --arch, or --cpu")
    if len(options.cpu) > 1 and (options.emit != "artifact" or options.to != "built"):
        given = f"--to {options.to}" if options.emit == "artifact" else f"--emit {options.emit}"
        raise UsageError(f"only an artifact has code for several CPUs: with {given}, give --cpu once")
    names = ("target", "start", "measure", "budget", "points", "precision", "streams", "mesh", "plan", "without")
    return CompileOptions(
        **{name: getattr(options, name) for name in names},
        arch=options.cpu[0] if options.cpu else options.arch,
        cpus=options.cpu,
        store_kernel_libraries=not options.reference_libraries,
        cluster=options.cluster,
        report=options.times,
    )


def _compile(
    options: argparse.Namespace,
    chosen: CompileOptions,
    module: ModuleOp,
    source: SourceText | None,
    weights: dict[str, Any],
    observe: Observer | None,
) -> int:
    """Compile to an artifact, or print the requested phase."""
    from ait_mlir import driver

    if options.to == "built":
        output = Path(options.output or Path(options.file).stem + ".ait")
        driver.compile_module(
            module,
            chosen,
            output=output,
            constants=weights,
            name=options.name,
            workdir=options.workdir,
            source=source,
            observe=observe,
        )
        tell_written(output)
        return 0
    check_text(options.output)
    stop = "planned" if options.to == "source" else options.to
    driver.run_to_phase(module, stop, chosen, source=source, observe=observe)
    if options.to == "source":
        files = driver.emit(module, source).joined()
        names = sorted(files, key=lambda name: (name != "program.cc", name))
        text = "\n".join(f"// ---- {name}\n{files[name]}" for name in names)
    else:
        text = str(module) + "\n"
    write_text(options.output, text)
    return 0


def read_model(path: str, trust_pickle: bool) -> tuple[ModuleOp, SourceText | None, dict[str, Any]]:
    """The module of a file, its source text (None for a saved program), and the weights in the file."""
    from ait_mlir import driver

    if path.endswith((".pt2", ".onnx")):
        from ait_mlir.tools.commands.import_ import load

        imported = load(path, trust_pickle=trust_pickle)
        return imported.module, None, imported.constants
    try:
        module, source = driver.read_module(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    return module, source, {}


def _export(
    options: argparse.Namespace,
    chosen: CompileOptions,
    module: ModuleOp,
    source: SourceText | None,
    weights: dict[str, Any],
) -> int:
    """Write a library for tvm-ffi."""
    from ait_mlir.export import export_kernels, export_module

    if options.to != "built":
        raise UsageError(f"--emit {options.emit} writes a library; leave out --to {options.to}")
    output = Path(options.output or Path(options.file).stem + ".so")
    if options.emit == "module":
        export_module(module, chosen, output=output, name=options.name, constants=weights, source=source)
    else:
        left_out = export_kernels(module, chosen, output=output, source=source)[1]
        for name, reason in left_out.items():
            note(f"kernel {name} is left out: {reason}")
    tell_written(output)
    return 0


def weights_of(text: str | None, module: ModuleOp, file: str) -> dict[str, Any]:
    """The values of params for the artifact, checked against the params of the module."""
    if text is None:
        return {}
    params = param_types(module)
    if text == "random":
        return {name: random_constant(name, shape, dtype, 0) for name, (shape, dtype) in params.items()}
    values = read_weights(text)
    if unknown := sorted(values.keys() - params.keys()):
        note(f"{len(unknown)} tensors of {text} are no params of {file}, the first '{unknown[0]}': left out")
    if missing := sorted(params.keys() - values.keys()):
        note(f"{len(missing)} params have no value in {text}, the first '{missing[0]}': to be set on the model")
    for name, (shape, dtype) in params.items():
        if name in values and (values[name].shape != shape or values[name].dtype.name != dtype):
            found = f"{values[name].dtype.name} {list(values[name].shape)}"
            raise AitError(f"{text}: '{name}' is {found}, but the param is {dtype} {list(shape)}")
    return {name: values[name] for name in params if name in values}


def param_types(module: ModuleOp) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and dtype of each param of a module, at any phase."""
    from ait_mlir.dialects.ait.data import ParamOp
    from ait_mlir.dialects.ait.dtypes import BY_IR
    from ait_mlir.dialects.ait.types import ShapedType
    from ait_mlir.dialects.ait_rt.buffers import ConstantOp

    found: dict[str, tuple[tuple[int, ...], str]] = {}
    for op in module.walk():
        if not isinstance(op, ParamOp | ConstantOp):
            continue
        type_ = cast(ShapedType, op.results[0].type)
        shape, dtype = type_.static_shape(), BY_IR[type_.element_type].name
        if shape is None:
            continue
        if isinstance(op, ParamOp):
            found[op.param_name.data] = shape, dtype
            continue
        rows = op.rows() or [None] * len(op.param_names())
        for name, count in zip(op.param_names(), rows, strict=True):
            found[name] = shape if count is None else (count, *shape[1:]), dtype
    return found
