"""Writes models and kernels as libraries of tvm-ffi, which run without ait_mlir.

`export_module` writes a whole model as one function, `export_kernels` each kernel of a model as a function. The library
holds the runtime library and the generated code; the weights follow the library in the same file.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from blake3 import blake3
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ait_mlir.contents import called_libraries, constants_of
from ait_mlir.dialects.ait.data import GraphOp, OutputOp
from ait_mlir.dialects.ait.traits import ViewLike
from ait_mlir.dialects.ait.types import KernelAttr, tensor_type
from ait_mlir.dialects.ait_rt.program import KernelOp
from ait_mlir.driver import Arrays, emit, kernel_value, plan_model, program_of, run_to_phase
from ait_mlir.errors import AitError, CompileError
from ait_mlir.folding import Folding
from ait_mlir.host.cache import Scratch
from ait_mlir.host.files import atomic_file, check_output
from ait_mlir.host.kernel_libraries import KernelLibrary
from ait_mlir.ir.pipeline import PassError
from ait_mlir.ir.source import SourceText
from ait_mlir.lowering.module_target import set_target, target_of
from ait_mlir.lowering.ray_cluster import compiling_on
from ait_mlir.lowering.sources import Source
from ait_mlir.lowering.target import Target, TargetKind
from ait_mlir.lowering.template import render
from ait_mlir.options import CompileOptions
from ait_mlir.runtime.safetensors_part import PAGE, Deferred, data_offsets, encode_data
from ait_mlir.selection.meter import plan

_MAGIC = b"AITWGHT1"
"""How the footer after the weights begins. Where they begin, their size (both u64), zeros and their BLAKE3 follow."""


@dataclass(frozen=True)
class _Function:
    """One function of an exported library: its name, the C++ of its program with the entry, and its constants."""

    name: str
    entry: str
    code: Source
    constants: Mapping[str, Any]


def export_module(
    module: ModuleOp,
    options: CompileOptions = CompileOptions(),
    *,
    output: str | os.PathLike[str],
    name: str | None = None,
    constants: Arrays | None = None,
    num_runtimes: int = 1,
    source: SourceText | None = None,
) -> Path:
    """Compile a module to a tvm-ffi library with one function, called like its graph; returns the path.

    `NAME(inputs..., outputs...)` writes the outputs, `NAME(inputs...)` allocates and returns them. `NAME_set_constant`
    sets params whose data are not in `constants`, `NAME_describe` returns the table of the model as JSON. At most
    `num_runtimes` calls run at the same time. The kernel libraries that the model calls become a part of the file. The
    module is modified. Raises `SourceError` for wrong IR and for kernel libraries whose files are gone or have changed,
    `CompileError` if the C++ compiler reports errors.
    """
    check_output(Path(output))
    folding = plan_model(module, options, constants=constants, place=Path(output).parent, source=source)
    program = program_of(module)
    entry = "ait_exported_model_0"
    code = emit(module, source, entry)
    function = _Function(
        function_name(name or program.sym_name.data), entry, code, constants_of(program, code, folding)
    )
    libraries = called_libraries(module, source)
    with compiling_on(options.cluster):
        return _write([function], libraries, target_of(module), Path(output), num_runtimes)


def export_kernels(
    module: ModuleOp,
    options: CompileOptions = CompileOptions(),
    *,
    output: str | os.PathLike[str],
    source: SourceText | None = None,
) -> tuple[Path, dict[str, str]]:
    """Write every kernel of a model as a function of a tvm-ffi library; returns the path, and the kernels that were
    left out.

    A function is called like the op of its kernel: with operands and tensors for the results, or with operands only,
    and then returns the results. Weights are operands, too, as they are in the model; a kernel that wants them in
    panels is replaced by the best one that does not. A kernel whose dims do not follow from the shapes of its operands
    is left out, with the reason. Raises like `export_module`.
    """
    check_output(Path(output))
    plan_model(module, options, source=source)
    functions: list[_Function] = []
    left_out: dict[str, str] = {}
    for kernel in module.ops:
        if not isinstance(kernel, KernelOp) or isinstance(kernel.compute_op(), ViewLike):
            continue  # a copy from one order to another is no kernel by itself
        entry = f"ait_exported_model_{len(functions)}"
        try:
            functions.append(_kernel_function(kernel, target_of(module), entry))
        except (AitError, PassError, ValueError) as error:
            left_out[kernel.sym_name.data] = str(error).strip().splitlines()[0]
    if not functions:
        raise CompileError("no kernel of the model can be exported")
    libraries = called_libraries(module, source)
    with compiling_on(options.cluster):
        return _write(functions, libraries, target_of(module), Path(output), 1), left_out


def function_name(text: str) -> str:
    """A valid name of a tvm-ffi function: letters, digits and '_', with a letter first."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return name if re.match(r"[A-Za-z]", name) else f"model_{name}"


def _kernel_function(kernel: KernelOp, target: Target, entry: str) -> _Function:
    """The op of a kernel as a graph of its own, compiled with the kernel's choice if it can take plain operands."""
    op = kernel.compute_op()
    names = [f"a{i}" for i in range(len(op.operands))]
    first: ValueError | AitError | PassError | None = None
    for pinned in (True, False):
        graph = GraphOp(
            f"{kernel.sym_name.data}_program",
            [(n, tensor_type(v)) for n, v in zip(names, op.operands, strict=True)],
            kernel.scope,
        )
        mapping: dict[SSAValue, SSAValue] = dict(zip(op.operands, graph.block.args, strict=True))
        copy = op.clone(mapping)
        graph.block.add_op(copy)
        for i, result in enumerate(copy.results):
            graph.block.add_op(OutputOp(f"y{i}", result))
        single = ModuleOp([graph])
        set_target(single, target)
        if pinned:
            copy.attributes["kernel"] = KernelAttr(kernel.provider, kernel.config)
        try:
            if not pinned:
                run_to_phase(single, "selected", CompileOptions(target.kind, target.arch, start="fused"))
            plan(single)
            single.verify()
            code = emit(single, None, entry)
        except (AitError, PassError, ValueError) as error:
            first = first or error
            continue
        program = program_of(single)
        constants = constants_of(program, code, Folding({}, target, None, kernel_value))
        return _Function(function_name(kernel.sym_name.data), entry, code, constants)
    assert first is not None
    raise first


def _write(
    functions: Sequence[_Function], called: Sequence[KernelLibrary], target: Target, output: Path, num_runtimes: int
) -> Path:
    """Build the library and write it with weights and kernel libraries after it, whole or not at all."""
    from ait_mlir.lowering.build import build_exported

    weights: dict[str, Any] = {
        f"{i}:{name}": array for i, f in enumerate(functions) for name, array in f.constants.items()
    }
    weights |= {f"library:{library.sha256}": np.fromfile(library.path, np.uint8) for library in called}
    offsets = data_offsets(weights)
    rows = [
        {
            "name": f.name,
            "entry": f.entry,
            "weights": [{"name": name, "offset": offsets[f"{i}:{name}"]} for name in f.constants],
        }
        for i, f in enumerate(functions)
    ]
    exports = render(
        "exports.j2",
        title="Functions for tvm-ffi: " + ", ".join(f.name for f in functions),
        functions=rows,
        num_runtimes=num_runtimes,
        libraries=_library_places(target.kind),
        kernel_libraries=[
            {
                "sha256": library.sha256,
                "offset": offsets[f"library:{library.sha256}"],
                "bytes": weights[f"library:{library.sha256}"].nbytes,
            }
            for library in called
        ],
    )
    sources: dict[str, str] = {}
    for i, f in enumerate(functions):
        files = f.code.joined()
        sources[f"program_{i}.cc"] = files.pop("program.cc")
        sources |= files
    with Scratch() as folder:
        library = build_exported(sources, str(exports), target, folder)
        with atomic_file(output, executable=True) as file:
            with library.open("rb") as built:
                shutil.copyfileobj(built, file, 1 << 20)
            if weights:
                _append(file, weights)
    return output


def _append(file: Any, weights: Mapping[str, Any | Deferred]) -> None:
    """Write the weights and the footer after a library."""
    begin = -(-file.tell() // PAGE) * PAGE
    file.seek(begin)
    digest, size = blake3(), 0
    for piece in encode_data(weights):
        file.write(piece)
        digest.update(piece)
        size += len(piece)
    file.write(_MAGIC + begin.to_bytes(8, "little") + size.to_bytes(8, "little") + bytes(8) + digest.digest())


def _library_places(kind: TargetKind) -> list[dict[str, Any]]:
    """The paths of the libraries that implement the services of a target on this machine; names for the loader come
    last.
    """
    from ait_mlir.runtime.loading import library_places

    return [{"key": key, "places": found} for key, found in library_places(kind).items()]
