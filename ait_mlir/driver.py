"""Compiles a module to an artifact: runs the phases, emits C++, builds the library, writes the file."""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.foreign import CallFfiOp
from ait_mlir.dialects.ait.naming import derived_name
from ait_mlir.dialects.ait.ranks import ALONE, Ranks, ranks_of
from ait_mlir.dialects.ait_rt.buffers import ConstantOp, NamedBufferOp
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.dialects.sdy import parse_axes
from ait_mlir.dims import Dim
from ait_mlir.errors import AitError, CompileError, InputError, SlowLaunchWarning, printable
from ait_mlir.folding import Folding, needs_kernels
from ait_mlir.host.cache import Scratch
from ait_mlir.host.kernel_libraries import KernelLibrary, find_kernel_library
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, op_place, parse_source
from ait_mlir.ir.pipeline import Observer, PassError, diagnostic, errors_with_places, run_passes
from ait_mlir.ir.source import SourceError, SourceText, decode
from ait_mlir.lowering.emit import Source, emit_program
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.kernels.outside import called_library
from ait_mlir.lowering.module_target import make_target, target_of
from ait_mlir.lowering.tables import Literal as TableLiteral
from ait_mlir.lowering.toolchain import detect_cuda_arch
from ait_mlir.options import CompileOptions
from ait_mlir.passes.bufferize import check_outputs
from ait_mlir.passes.fold_params import fold_params, foldable_params
from ait_mlir.passes.launch_cost import slow_launches
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.partition import declare_mesh, is_sharded
from ait_mlir.passes.pipelines import PHASES, passes_between, phase_index
from ait_mlir.reference.folds import Fold, write_folds

Arrays = Mapping[str, NDArray[Any]]


def read_module(path: str | os.PathLike[str]) -> tuple[ModuleOp, SourceText]:
    """Parse and verify a file; raises `SourceError` with source locations, `OSError` if it cannot be read."""
    source = decode(Path(path).read_bytes(), os.fspath(path))
    module = parse_source(context(), source)
    check(module, source)
    return module, source


def run_to_phase(
    module: ModuleOp,
    phase: str,
    options: CompileOptions = CompileOptions(),
    *,
    known: Collection[str] = (),
    folding: Folding | None = None,
    source: SourceText | None = None,
    observe: Observer | None = None,
) -> ModuleOp:
    """Run the pipeline in place up to `phase`, at most `planned`, verifying at each phase; returns the module.

    With `options.fold`, and `known`, `folding` or "load", values that no input changes become new params: values of
    constants and of params with `known` data, with "load" values of any params. `folding` gets their folds and computes
    them; a value that it cannot compute stays in the graph.
    """
    target, start, selection = options.device, options.start or phase_of(module), options.selection()
    passes_between(start, phase)  # refuses the wrong order
    if phase != start:
        with errors_with_places(f"phase {phase!r}", module, source):
            check_outputs(module)
    if options.mesh:
        if not any(isinstance(op, GraphOp) and is_sharded(op) for op in module.ops):
            raise AitError(
                f"mesh {options.mesh!r} divides nothing: no param, input, output or op of the module has a sharding "
                "(docs/ranks.md), or the module is partitioned already"
            )
        declare_mesh(module, parse_axes(options.mesh))
    ctx = context()
    for before, after in pairwise(PHASES[phase_index(start) : phase_index(phase) + 1]):
        pipeline = passes_between(
            before,
            after,
            target.kind,
            target.arch,
            selection,
            without=options.without,
            streams=options.streams,
            waves=options.waves,
        )
        run_passes(ctx, module, parse_passes(pipeline), source=source, verify="end", observe=observe)
        folds = options.fold and not any(ranks_of(op) is not ALONE for op in module.ops)  # a rank has other data
        if after == "simplified" and folds and (known or folding is not None or options.fold == "load"):
            compute = None if folding is None else folding.compute
            with errors_with_places("folding of params", module, source):
                now = folding is not None and options.fold != "load"
                found = fold_params(module, known, target, unbound=options.fold == "load", outside=now, compute=compute)
            if folding is not None:
                folding.folds += found
                folding.foldable = foldable_params(module)
    return module


def phase_of(module: ModuleOp) -> str:
    """The phase from which compilation can continue: planned or bufferized for a program, imported or selected for a
    graph. A program without buffers of its own looks the same in both phases; it is bufferized, and its streams are
    assigned again."""
    for op in module.ops:
        if isinstance(op, ProgramOp):
            return "planned" if next(_buffers(op), None) is not None and has_places(op) else "bufferized"
    return "selected" if "ait.target" in module.attributes else "imported"


def has_places(program: ProgramOp) -> bool:
    """Whether every buffer of a program has its place in the arena."""
    return all(buffer.properties.get("offset") is not None for buffer in _buffers(program))


def _buffers(program: ProgramOp) -> Iterator[Operation]:
    return (op for op in program.body.walk() if op.name == "ait_rt.alloc")


def program_of(module: ModuleOp) -> ProgramOp:
    """The program of a module; raises `CompileError` unless there is exactly one."""
    programs = [op for op in module.ops if isinstance(op, ProgramOp)]
    if len(programs) != 1:
        raise CompileError(f"a model is one program; the module has {len(programs)}")
    return programs[0]


def emit(
    module: ModuleOp,
    source: SourceText | None = None,
    entry: str = "ait_model_get",
    inspected: bool = False,
    verified: bool = False,
) -> Source:
    """The C++ of a planned module; `entry` is its function that returns the table of the model. With `inspected`, runs
    can show what each launch computes.

    The plan is verified first, because it may come from a text file, unless this process has `verified` it. Raises
    `SourceError` if the module is not planned, and `CompileError` unless it has one program.
    """
    program = program_of(module)
    if not verified:
        run_passes(context(), module, parse_passes("verify-plan"), source=source, verify=False)
    with errors_with_places("C++", module, source):
        return emit_program(module, program, target_of(module), entry, inspected, copies=True)


def plan_model(
    module: ModuleOp,
    options: CompileOptions,
    *,
    constants: Arrays | None = None,
    place: Path | None = None,
    source: SourceText | None = None,
    observe: Observer | None = None,
) -> Folding:
    """Run the phases up to `planned`; returns the constants that are computed from others, with their values.

    Large values are in files in the folder `place`, if it exists.
    """
    spill = place if place is not None and place.is_dir() else None
    folding = Folding(constants or {}, options.device, spill, kernel_value, options.fold_by)
    run_to_phase(module, "planned", options, known=folding.data.keys(), folding=folding, source=source, observe=observe)
    return folding


def compile_module(
    module: ModuleOp,
    options: CompileOptions = CompileOptions(),
    *,
    output: str | os.PathLike[str],
    constants: Arrays | None = None,
    name: str | None = None,
    workdir: str | os.PathLike[str] | None = None,
    source: SourceText | None = None,
    observe: Observer | None = None,
) -> Path:
    """Compile a module to the artifact `output` and return its path. The module is modified.

    `constants` are the data of params by name; params without data must be set on the loaded model. If `workdir` is
    given, the sources and the IR are kept there. A `SlowLaunchWarning` names each launch that is estimated at several
    times the floor of its work. Raises `SourceError` for wrong IR, `CompileError` if the C++ compiler
    reports errors.
    """
    from ait_mlir.lowering.build import build_library
    from ait_mlir.lowering.toolchain import cpu_features
    from ait_mlir.runtime import artifact
    from ait_mlir.runtime.manifest import KernelLibraryInfo, Variant

    features = {cpu: cpu_features(cpu) for cpu in options.cpus}  # refuses unknown CPUs before the work begins
    is_planned = (options.start or phase_of(module)) == "planned"
    folding = plan_model(
        module, options, constants=constants, place=Path(output).parent, source=source, observe=observe
    )
    program = program_of(module)
    warn_of_slow_launches(module, program)
    code = emit(module, source, inspected=options.inspected, verified=not is_planned)
    files = code.joined()
    with nullcontext(Path(workdir)) if workdir is not None else Scratch() as folder:
        folder.mkdir(parents=True, exist_ok=True)
        text = str(module) + "\n"
        if workdir is not None:
            (folder / "planned.mlir").write_text(text, encoding="utf-8")
            for file, content in files.items():
                (folder / file).write_text(content, encoding="utf-8")
        library = build_library(files, target_of(module), folder)
        data = constants_of(program, code, folding)
        libraries = called_libraries(module, source)
        folds = write_folds(folding.folds) if folding.folds else ""
        manifest = _manifest(module, program, name or program.sym_name.data, folds, folding.foldable)
        stored = options.store_kernel_libraries
        called = tuple(KernelLibraryInfo(k.name, k.sha256, "" if stored else str(k.path)) for k in libraries)
        variants = tuple(Variant(cpu, needed) for cpu, needed in features.items() if cpu != manifest.arch)
        built = {
            variant.arch: build_library(files, replace(target_of(module), arch=variant.arch), folder / variant.arch)
            for variant in variants
        }
        ranks = ranks_of(program)
        pieces = [pieces_of(ranks, data, rank) for rank in range(ranks.mesh.size)]
        manifest = replace(manifest, kernel_libraries=called, variants=variants, ranks=len(pieces))
        stored_libraries = {k.sha256: k.path for k in libraries}
        return artifact.write(output, manifest, text, library, pieces[0], stored_libraries, built, pieces[1:])


def pieces_of(ranks: Ranks, data: dict[str, Any], rank: int) -> dict[str, Any]:
    """The constants of a rank. Raises `AitError` for a param whose data do not have the shape of the whole."""
    if ranks is ALONE:
        return data
    return {name: np.ascontiguousarray(a[ranks.place("params", name, a.shape, rank)]) for name, a in data.items()}


def warn_of_slow_launches(module: ModuleOp, program: ProgramOp) -> None:
    """A `SlowLaunchWarning` at the model's line for each kernel that is estimated far above its floor."""
    for slow in slow_launches(module, program, target_of(module)):
        file, line, _ = op_place(slow.launch) or (program.sym_name.data, 1, 1)
        op = derived_name(slow.kernel.compute_op())
        text = (
            f"{op} (kernel {slow.kernel.provider.data}) is estimated at {slow.seconds * 1e6:.0f} us, "
            f"{slow.seconds / slow.floor:.0f} times the {slow.floor * 1e6:.0f} us that its bytes or operations take"
        )
        warnings.warn_explicit(printable(text), SlowLaunchWarning, file, line)


def called_libraries(module: ModuleOp, source: SourceText | None = None) -> list[KernelLibrary]:
    """The kernel libraries that a module calls; `SourceError` if the file of one is gone or has another hash."""
    found: dict[str, KernelLibrary] = {}
    target = target_of(module)
    for op in module.walk():
        if (own := called_library(op, target)) is not None:
            found[own.sha256] = own
        if not isinstance(op, CallFfiOp) or op.library_name is None or op.sha256 is None or op.sha256.data in found:
            continue
        try:
            library = find_kernel_library(op.library_name)
        except InputError as error:
            raise SourceError([diagnostic("C++", PassError(str(error), op), source)]) from None
        if library.sha256 != op.sha256.data:
            found_in = f"kernel library '{library.name}' ({library.path})"
            message = f"{found_in} has SHA-256 {library.sha256}, expected {op.sha256.data}"
            raise SourceError([diagnostic("C++", PassError(message, op), source)])
        found[library.sha256] = library
    return list(found.values())


def constants_of(program: ProgramOp, code: Source, folding: Folding) -> dict[str, Any]:
    """The constants of a program by name, if their data are known."""
    return _folded(program, folding) | {n: literal_array(x) for n, x in code.literals.items()}


def _folded(program: ProgramOp, folding: Folding) -> dict[str, Any]:
    """The data of params and the values of folds; a param that only computed folds read is left out."""
    data, folds = dict(folding.data), folding.folds
    if not folds:
        return data
    read = {name for op in program.body.walk() if isinstance(op, ConstantOp) for name in op.param_names()}
    computed = {fold.name: folding.values[fold.name] for fold in folds if fold.name in folding.values}
    sources = {source for fold in folds if fold.name in computed for source in fold.source_types()}
    sources -= {source for fold in folds if fold.name not in computed for source in fold.source_types()}
    kept = {name: array for name, array in data.items() if name in read or name not in sources}
    return kept | {name: value for name, value in computed.items() if name in read}


def literal_array(literal: TableLiteral) -> NDArray[Any]:
    """The array of a literal in its element type."""
    from ait_mlir.dtypes import numpy_dtype

    dtype = numpy_dtype(literal.dtype.name)
    if len(literal.values) == 1:
        return np.full(literal.shape, literal.values[0], dtype=dtype)
    return np.array(literal.values, dtype=dtype).reshape(literal.shape)


def kernel_value(fold: Fold, data: Arrays, target: Target) -> NDArray[Any]:
    """The value of a fold, computed by a model that is compiled for it."""
    from ait_mlir.lowering.build import build_library
    from ait_mlir.runtime.model import Model

    target = _at_hand(target)
    module = ModuleOp([fold.graph.clone()])
    run_to_phase(module, "planned", CompileOptions(target.kind, target.arch))
    code = emit(module)
    constants = {name: literal_array(value) for name, value in code.literals.items()}
    constants |= {name: data[name] for name in fold.source_types()}
    with tempfile.TemporaryDirectory(prefix="ait_fold_") as folder:
        library = build_library(code.joined(), target, folder)
        with Model.from_library(library, target.kind, constants=constants) as model:
            output = model.allocate_data(model.get_output_maximum_shape("value"), model.get_output_dtype("value"))
            try:
                model.run({}, {"value": output})
                return model.ait_data_to_numpy(output)
            finally:
                model.free_memory(output.data_ptr)


def value_at_load(fold: Fold, data: Arrays, target: Target) -> NDArray[Any]:
    """The value of a fold of a loaded model: by kernels where they pay and can be compiled here, else by the reference.

    The kernels are in the cache from the second time on.
    """
    if fold.only_moves or not needs_kernels(fold):
        return fold.value(data)
    try:
        return kernel_value(fold, data, target)
    except AitError:  # where a model runs there may be no compiler
        return fold.value(data)


def _at_hand(target: Target) -> Target:
    """The target, if this machine has such a device; else this machine's CPU."""
    from ait_mlir.lowering.toolchain import default_arch

    if target.kind == "cuda" and detect_cuda_arch() == target.arch:
        return target
    return make_target("cpu", default_arch("cpu"))


def dim_info(dim: Dim) -> Any:
    """A dim in the form of the manifest."""
    from ait_mlir.runtime.manifest import DimInfo

    return DimInfo(dim.name, dim.lo, dim.hi, tuple(dim.hints), "" if dim.upper is None else str(dim.upper))


def _manifest(module: ModuleOp, program: ProgramOp, name: str, folds: str, foldable: Sequence[str]) -> Any:
    from ait_mlir.lowering.toolchain import cpu_features
    from ait_mlir.runtime.manifest import Manifest, TensorInfo, producers

    target = target_of(module)

    def tensor(op: NamedBufferOp) -> TensorInfo:
        dtype, place = BY_IR[op.buffer_type.element_type].name, next(iter(op.operands), None)
        taken = place.owner.buffer_name.data if place is not None and isinstance(place.owner, NamedBufferOp) else ""
        strides = () if op.strides is None else op.strides.data
        return TensorInfo(op.buffer_name.data, dtype, tuple(map(str, op.dims)), taken, tuple(map(str, strides)))

    return Manifest(
        name=re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "model",
        target=target.kind,
        arch=target.arch,
        inputs=tuple(map(tensor, program.inputs())),
        outputs=tuple(map(tensor, program.outputs())),
        dims=tuple(map(dim_info, program.scope.dims)),
        instruction_sets=cpu_features(target.arch) if target.kind == "cpu" else (),
        producers=producers(),
        precision=target.precision,
        folds=folds,
        foldable=tuple(foldable),
    )


__all__ = [
    "PHASES",
    "SourceError",
    "compile_module",
    "emit",
    "literal_array",
    "phase_of",
    "plan_model",
    "program_of",
    "read_module",
    "run_to_phase",
]
