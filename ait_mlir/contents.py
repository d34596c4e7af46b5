"""The contents of an artifact that follow from a planned module: manifest, C++, constants, kernel libraries."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from ait_mlir.dialects.ait.dtypes import BY_IR
from ait_mlir.dialects.ait.foreign import CallFfiOp
from ait_mlir.dialects.ait.naming import derived_name
from ait_mlir.dialects.ait.ranks import ALONE, Ranks, ranks_of
from ait_mlir.dialects.ait_rt.buffers import ConstantOp, NamedBufferOp
from ait_mlir.dialects.ait_rt.program import ProgramOp
from ait_mlir.dims import Dim
from ait_mlir.errors import CompileError, InputError, printable
from ait_mlir.folding import Folding
from ait_mlir.host.kernel_libraries import KernelLibrary, find_kernel_library
from ait_mlir.ir.parser import op_place
from ait_mlir.ir.pipeline import PassError, diagnostic
from ait_mlir.ir.source import SourceError, SourceText
from ait_mlir.lowering.emit import Source
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.kernels.outside import called_library
from ait_mlir.lowering.module_target import make_target, target_of
from ait_mlir.lowering.tables import Literal
from ait_mlir.passes.launch_cost import slow_launches
from ait_mlir.reference.folds import all_folds_text, write_folds

if TYPE_CHECKING:
    from ait_mlir.runtime.manifest import Manifest

Warned = tuple[str, str, int]
"""The text of a warning, and its file and line."""


@dataclass(frozen=True)
class Plan:
    """A planned model."""

    name: str
    """The name of the program."""
    manifest: Manifest
    """Without instruction sets, variants, libraries and ranks."""
    ir: str
    """The planned module as text."""
    files: Mapping[str, str]
    """The C++ by the names of the files."""
    literals: Mapping[str, Literal]
    """The constants whose numbers are in the module, by name."""
    folds: str
    """All folds of the module (`reference/folds.py`) as text."""
    read: tuple[str, ...]
    """The names of the constants that the program reads."""
    slow: tuple[Warned, ...]
    """The warnings about slow launches."""
    libraries: tuple[KernelLibrary, ...] = ()
    """The kernel libraries that the model calls."""
    ranks: Ranks = ALONE

    @property
    def target(self) -> Target:
        """The target of the C++."""
        return make_target(self.manifest.target, self.manifest.arch)


def plan_of(
    module: ModuleOp, code: Source, folding: Folding, slow: tuple[Warned, ...], source: SourceText | None = None
) -> Plan:
    """The plan of a planned module. Raises like `called_libraries`."""
    program = program_of(module)
    return Plan(
        program.sym_name.data,
        manifest_of(module, program, write_folds(folding.folds) if folding.folds else "", folding.foldable),
        str(module) + "\n",
        code.joined(),
        code.literals,
        all_folds_text(folding.folds),
        _read_names(program),
        slow,
        tuple(called_libraries(module, source)),
        ranks_of(program),
    )


def program_of(module: ModuleOp) -> ProgramOp:
    """The program of a module; raises `CompileError` unless there is exactly one."""
    programs = [op for op in module.ops if isinstance(op, ProgramOp)]
    if len(programs) != 1:
        raise CompileError(f"a model is one program; the module has {len(programs)}")
    return programs[0]


def pieces_of(ranks: Ranks, data: dict[str, Any], rank: int) -> dict[str, Any]:
    """The constants of a rank. Raises `AitError` for a param whose data do not have the shape of the whole."""
    if ranks is ALONE:
        return data
    return {name: np.ascontiguousarray(a[ranks.place("params", name, a.shape, rank)]) for name, a in data.items()}


def slow_warnings(module: ModuleOp, program: ProgramOp) -> tuple[Warned, ...]:
    """The text of the warning for each slow launch, and its place in the model."""
    found: list[Warned] = []
    for slow in slow_launches(module, program, target_of(module)):
        file, line, _ = op_place(slow.launch) or (program.sym_name.data, 1, 1)
        op = derived_name(slow.kernel.compute_op())
        text = (
            f"{op} (kernel {slow.kernel.provider.data}) is estimated at {slow.seconds * 1e6:.0f} us, "
            f"{slow.seconds / slow.floor:.0f} times the {slow.floor * 1e6:.0f} us that its bytes or operations take"
        )
        found.append((printable(text), file, line))
    return tuple(found)


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
    return known_constants(_read_names(program), code.literals, folding)


def known_constants(read: Collection[str], literals: Mapping[str, Literal], folding: Folding) -> dict[str, Any]:
    """The data of the constants that a program reads, if they are known, and those of other params."""
    return _folded(read, folding) | {name: literal_array(x) for name, x in literals.items()}


def _read_names(program: ProgramOp) -> tuple[str, ...]:
    """The names of the constants that a program reads."""
    names = (name for op in program.body.walk() if isinstance(op, ConstantOp) for name in op.param_names())
    return tuple(dict.fromkeys(names))


def _folded(read: Collection[str], folding: Folding) -> dict[str, Any]:
    """The data of params and the values of folds; a param that only computed folds read is left out."""
    data, folds = dict(folding.data), folding.folds
    if not folds:
        return data
    computed = {fold.name: folding.values[fold.name] for fold in folds if fold.name in folding.values}
    sources = {source for fold in folds if fold.name in computed for source in fold.source_types()}
    sources -= {source for fold in folds if fold.name not in computed for source in fold.source_types()}
    kept = {name: array for name, array in data.items() if name in read or name not in sources}
    return kept | {name: value for name, value in computed.items() if name in read}


def literal_array(literal: Literal) -> NDArray[Any]:
    """The array of a literal in its element type."""
    from ait_mlir.dtypes import numpy_dtype

    dtype = numpy_dtype(literal.dtype.name)
    if len(literal.values) == 1:
        return np.full(literal.shape, literal.values[0], dtype=dtype)
    return np.array(literal.values, dtype=dtype).reshape(literal.shape)


def dim_info(dim: Dim) -> Any:
    """A dim in the form of the manifest."""
    from ait_mlir.runtime.manifest import DimInfo

    return DimInfo(dim.name, dim.lo, dim.hi, tuple(dim.hints), "" if dim.upper is None else str(dim.upper))


def model_name(name: str) -> str:
    """A name that an artifact may have."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "model"


def manifest_of(module: ModuleOp, program: ProgramOp, folds: str, foldable: Sequence[str]) -> Manifest:
    """The manifest without instruction sets, variants, libraries and ranks."""
    from ait_mlir.runtime.manifest import Manifest, TensorInfo, producers

    target = target_of(module)

    def tensor(op: NamedBufferOp) -> TensorInfo:
        dtype, place = BY_IR[op.buffer_type.element_type].name, next(iter(op.operands), None)
        taken = place.owner.buffer_name.data if place is not None and isinstance(place.owner, NamedBufferOp) else ""
        strides = () if op.strides is None else op.strides.data
        return TensorInfo(op.buffer_name.data, dtype, tuple(map(str, op.dims)), taken, tuple(map(str, strides)))

    return Manifest(
        name=model_name(program.sym_name.data),
        target=target.kind,
        arch=target.arch,
        inputs=tuple(map(tensor, program.inputs())),
        outputs=tuple(map(tensor, program.outputs())),
        dims=tuple(map(dim_info, program.scope.dims)),
        producers=producers(),
        precision=target.precision,
        folds=folds,
        foldable=tuple(foldable),
    )
