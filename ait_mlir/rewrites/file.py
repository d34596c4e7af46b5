"""Pattern files: `pdl.pattern` operations in text, for `apply-patterns`."""

from __future__ import annotations

from pathlib import Path

from xdsl.context import Context
from xdsl.dialects import pdl
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Operation

from ait_mlir.dialects.ait import AIT
from ait_mlir.ir.parser import check, op_place, parse_source
from ait_mlir.ir.source import Diagnostic, SourceError, SourceText, decode
from ait_mlir.rewrites.apply import outside_operations, universe
from ait_mlir.rewrites.engine.compile import CompiledPatterns, compile_patterns
from ait_mlir.rewrites.engine.errors import PatternError


def load_patterns(ctx: Context, path: Path) -> CompiledPatterns:
    """Parse, verify and compile a file of patterns; raises `SourceError` at the place of the error."""
    try:
        source = decode(path.read_bytes(), str(path))
    except OSError as error:
        message = f"cannot read the pattern file: {error.strerror}"
        raise SourceError([Diagnostic(str(path), 1, 1, message)]) from None
    module = parse_source(ctx, source)
    check(module, source)
    patterns: list[pdl.PatternOp] = []
    for op in module.body.block.ops:
        if not isinstance(op, pdl.PatternOp):
            raise at(op, source, f"a pattern file holds pdl.pattern operations, found '{op.name}'")
        patterns.append(op)
    if not patterns:
        raise SourceError([Diagnostic(str(path), 1, 1, "the file has no pdl.pattern")])
    try:
        return compile_patterns(patterns, universe(named_operations(ctx, module)))
    except PatternError as error:
        raise at(error.op, source, error.message) from error


def named_operations(ctx: Context, patterns: ModuleOp) -> dict[str, type[Operation]]:
    """The operations that patterns may match: all of `ait` and from outside, and others that the patterns name."""
    operations: dict[str, type[Operation]] = {op.name: op for op in AIT.operations} | outside_operations()
    for op in patterns.walk():
        if isinstance(op, pdl.OperationOp) and op.opName is not None:
            found = ctx.get_optional_op(op.opName.data)
            if found is not None and not issubclass(found, UnregisteredOp):
                operations[found.name] = found
    return operations


def at(op: Operation, source: SourceText, message: str) -> SourceError:
    """An error at the place of an operation of the pattern file."""
    file, line, column = op_place(op) or (source.name, 1, 1)
    return SourceError([Diagnostic(file, line, column, message, source.line_text(line))])
