"""Compiles a module to an artifact: runs the phases, emits C++, builds the library, writes the file."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ait_mlir.contents import (
    Plan,
    Warned,
    dim_info,
    known_constants,
    literal_array,
    model_name,
    pieces_of,
    plan_of,
    program_of,
    slow_warnings,
)
from ait_mlir.dialects.ait.data import GraphOp
from ait_mlir.dialects.ait.ranks import ALONE, ranks_of
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.dialects.sdy import parse_axes
from ait_mlir.errors import AitError, SlowLaunchWarning
from ait_mlir.folding import Folding, needs_kernels
from ait_mlir.host.cache import Scratch
from ait_mlir.host.files import check_output
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, parse_source
from ait_mlir.ir.pipeline import Observer, errors_with_places, run_passes
from ait_mlir.ir.source import SourceError, SourceText, decode
from ait_mlir.lowering.emit import Source, emit_program
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.module_target import make_target, target_of
from ait_mlir.lowering.toolchain import detect_cuda_arch
from ait_mlir.options import CompileOptions
from ait_mlir.passes.bufferize import check_outputs
from ait_mlir.passes.fold_params import fold_params, foldable_params
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.partition import declare_mesh, is_sharded
from ait_mlir.passes.pipelines import PHASES, passes_between, phase_index
from ait_mlir.passes.shard_params import ShardParamsPass
from ait_mlir.reference.folds import Fold, read_folds

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

    With `options.fold`, if `known` or `folding` is given, values that no input changes become new params: values that
    are computed only from constants and from params whose data are `known`; with `options.fold` "load", from any
    params. `folding` receives these folds and computes the values; a value that it cannot compute stays in the graph.
    """
    target, start, selection = options.device, options.start or phase_of(module), options.selection()
    passes_between(start, phase)  # refuses the wrong order
    if phase != start:
        with errors_with_places(f"phase {phase!r}", module, source):
            check_outputs(module)
    if options.plan:
        with errors_with_places("plan", module, source):
            ShardParamsPass(options.plan, options.mesh).apply(context(), module)
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
    folding = _folding(options, constants or {}, place)
    run_to_phase(module, "planned", options, known=folding.data.keys(), folding=folding, source=source, observe=observe)
    return folding


def _folding(options: CompileOptions, constants: Arrays, place: Path | None) -> Folding:
    spill = place if place is not None and place.is_dir() else None
    return Folding(constants, options.device, spill, kernel_value, options.fold_by)


def _plan(
    module: ModuleOp,
    options: CompileOptions,
    constants: Arrays,
    place: Path,
    source: SourceText | None,
    observe: Observer | None,
) -> tuple[Plan, Folding]:
    """The plan of a module and the values of its folds, from the cache if a plan of an equal module was kept and
    nobody observes the passes. Warns of slow launches."""
    from ait_mlir import kept_plans
    from ait_mlir.selection.select import Selections, kept_selections

    key = None if observe is not None else kept_plans.key_of(module, options, constants)
    if key is not None and (plan := kept_plans.kept_plan(key)) is not None:
        folding = _folding(options, constants, place)
        if folding.take(read_folds(plan.folds)):
            _warn(plan.slow)
            return plan, folding
    is_planned = (options.start or phase_of(module)) == "planned"
    with nullcontext(Selections()) if key is None else kept_selections() as selections:
        folding = plan_model(module, options, constants=constants, place=place, source=source, observe=observe)
    slow = slow_warnings(module, program_of(module))
    _warn(slow)
    code = emit(module, source, inspected=options.inspected, verified=not is_planned)
    plan = plan_of(module, code, folding, slow, source)
    if key is not None and key.is_whole(selections) and not folding.has_failed:
        kept_plans.keep_plan(key, plan)
    return plan, folding


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
    """Compile a module to the artifact `output` and return its path. The module may be modified.

    `constants` are the data of params by name; params without data must be set on the loaded model. If `workdir` is
    given, the sources and the IR are kept there. A `SlowLaunchWarning` names each launch that is estimated at several
    times the floor of its work. Raises `SourceError` for wrong IR, `CompileError` if the C++ compiler
    reports errors.
    """
    from ait_mlir.lowering.ray_cluster import compiling_on
    from ait_mlir.lowering.toolchain import cpu_features

    check_output(Path(output))  # before the work begins, like unknown CPUs
    features = {cpu: cpu_features(cpu) for cpu in options.cpus}
    with compiling_on(options.cluster):
        plan, folding = _plan(module, options, constants or {}, Path(output).parent, source, observe)
        with nullcontext(Path(workdir)) if workdir is not None else Scratch() as folder:
            folder.mkdir(parents=True, exist_ok=True)
            if workdir is not None:
                (folder / "planned.mlir").write_text(plan.ir, encoding="utf-8")
                for file, content in plan.files.items():
                    (folder / file).write_text(content, encoding="utf-8")
            return _built(plan, folding, features, options, Path(output), name, folder)


def _built(
    plan: Plan,
    folding: Folding,
    features: Mapping[str, tuple[str, ...]],
    options: CompileOptions,
    output: Path,
    name: str | None,
    folder: Path,
) -> Path:
    """Build the libraries of a plan, one more for each CPU of `features`, and write the artifact."""
    from ait_mlir.lowering.build import build_library
    from ait_mlir.lowering.toolchain import cpu_features
    from ait_mlir.runtime import artifact
    from ait_mlir.runtime.manifest import KernelLibraryInfo, Variant

    target = plan.target
    library = build_library(plan.files, target, folder)
    data = known_constants(plan.read, plan.literals, folding)
    stored = options.store_kernel_libraries
    called = tuple(KernelLibraryInfo(k.name, k.sha256, "" if stored else str(k.path)) for k in plan.libraries)
    variants = tuple(Variant(cpu, needed) for cpu, needed in features.items() if cpu != target.arch)
    built = {
        variant.arch: build_library(plan.files, replace(target, arch=variant.arch), folder / variant.arch)
        for variant in variants
    }
    pieces = [pieces_of(plan.ranks, data, rank) for rank in range(plan.ranks.mesh.size)]
    manifest = replace(
        plan.manifest,
        name=model_name(name or plan.name),
        instruction_sets=cpu_features(target.arch) if target.kind == "cpu" else (),
        kernel_libraries=called,
        variants=variants,
        ranks=len(pieces),
    )
    stored_libraries = {k.sha256: k.path for k in plan.libraries}
    return artifact.write(output, manifest, plan.ir, library, pieces[0], stored_libraries, built, pieces[1:])


def _warn(slow: Iterable[Warned]) -> None:
    for text, file, line in slow:
        warnings.warn_explicit(text, SlowLaunchWarning, file, line)


def kernel_value(fold: Fold, data: Arrays, target: Target) -> NDArray[Any]:
    """The value of a fold, computed by a model that is compiled for it."""
    from ait_mlir.lowering.build import build_library
    from ait_mlir.lowering.compilers import THIS_MACHINE, compiling_with
    from ait_mlir.runtime.model import Model

    target = _at_hand(target)
    module = ModuleOp([fold.graph.clone()])
    run_to_phase(module, "planned", CompileOptions(target.kind, target.arch))
    code = emit(module)
    constants = {name: literal_array(value) for name, value in code.literals.items()}
    constants |= {name: data[name] for name in fold.source_types()}
    with tempfile.TemporaryDirectory(prefix="ait_fold_") as folder:
        with compiling_with(THIS_MACHINE):  # the library runs here
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


__all__ = [
    "PHASES",
    "SourceError",
    "compile_module",
    "dim_info",
    "emit",
    "literal_array",
    "phase_of",
    "plan_model",
    "program_of",
    "read_module",
    "run_to_phase",
]
