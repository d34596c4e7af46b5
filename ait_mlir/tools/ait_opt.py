"""`ait-opt`: parse IR, run passes, print IR."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import StringIO
from pathlib import Path
from textwrap import wrap
from time import perf_counter
from typing import TYPE_CHECKING, TextIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from ait_mlir.errors import AitError
from ait_mlir.host import progress
from ait_mlir.host.files import check_output, check_report, write_atomic
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import check, op_place, parse_source
from ait_mlir.ir.pipeline import run_passes
from ait_mlir.ir.source import Diagnostic, SourceError, SourceText, decode
from ait_mlir.outside import load
from ait_mlir.passes.parse import parse_passes
from ait_mlir.passes.pipelines import PASSES
from ait_mlir.rewrites.engine.driver import Application, Statistics, counted_rewrites
from ait_mlir.tools import print_ir
from ait_mlir.tools.checks import blocks, inserted, without_checks
from ait_mlir.tools.ending import ended_cleanly, internal_error
from ait_mlir.tools.expectations import expectations, unmet
from ait_mlir.tools.explain import Trace, explanation
from ait_mlir.tools.print_ir import Times, printed_ir
from ait_mlir.tools.versions import VersionAction

if TYPE_CHECKING:
    from ait_mlir.passes.checks.check_semantics import Difference, SemanticsChecker

EXAMPLE = """examples:
  ait-opt examples/ffn.mlir -p simplify,fuse-epilogue
  ait-opt examples/ffn.mlir -p 'apply-patterns{file="my_patterns.mlir"}' --check-semantics
"""


Show = Callable[[ModuleOp, SourceText], str]


class Options(argparse.Namespace):
    input: str
    output: str | None
    passes: str
    split_input_file: bool
    verify_diagnostics: bool
    print_op_generic: bool
    print_between_passes: bool
    print_debuginfo: bool
    time_passes: bool
    print_stats: bool
    check_semantics: bool
    disable_verify: bool
    allow_unregistered_dialect: bool
    list_passes: bool
    list_constraints: bool
    load: list[str]
    mlir_print_ir_before: list[str]
    mlir_print_ir_before_all: bool
    mlir_print_ir_after: list[str]
    mlir_print_ir_after_all: bool
    mlir_print_ir_after_change: bool
    mlir_print_ir_after_failure: bool
    mlir_timing: bool
    generate_checks: bool
    explain: bool
    report: str | None


class _Parser(argparse.ArgumentParser):
    """Reports wrong options as `ait-opt: error: ...` with exit code 1."""

    def error(self, message: str):  # type: ignore[override]
        print(f"{self.prog}: error: {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(1)


def argument_parser() -> argparse.ArgumentParser:
    p = _Parser(
        prog="ait-opt",
        description="Parse IR, run passes, print IR.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("input", nargs="?", default="-", help="an .mlir file, or - for standard input")
    p.add_argument("-o", "--output", help="write there; '-' and the default are standard output")
    p.add_argument("-p", "--passes", default="", help="passes to run, as in 'simplify,fuse-epilogue'")
    p.add_argument(
        "--load",
        action="append",
        default=[],
        metavar="FILE",
        help="run a Python file that defines operators: only one that you trust (docs/trust.md)",
    )
    for flags, text in (
        ("--split-input-file", "treat the parts between '// -----' lines as files of their own"),
        (
            "--verify-diagnostics",
            "compare the errors with the '// expected-error {{...}}' comments; a difference fails",
        ),
        (
            "--generate-checks",
            "print the input as a test: with FileCheck lines for the output, and a RUN line if it has none",
        ),
        ("--explain", "print, instead of the IR, what each pass changed, by which patterns, and their laws"),
        ("--print-op-generic --mlir-print-op-generic", "print the form that mlir-opt reads"),
        ("--print-between-passes", "print the IR after each pass to standard error"),
        ("--print-debuginfo --mlir-print-debuginfo", "print locations"),
        ("--time-passes", "print the time of each pass to standard error"),
        (
            "--print-stats --mlir-pass-statistics",
            "print the time of each pass and how often each pattern was applied to standard error",
        ),
        ("--check-semantics", "run the reference before and after each pass and compare"),
        ("--disable-verify", "do not verify the input and after each pass"),
        ("--allow-unregistered-dialect", "accept ops of dialects that are not known"),
        ("--list-passes", "print the names of all passes and stop"),
        ("--list-constraints", "print the constraints, finders and native rewrites that patterns may call, and stop"),
    ):
        p.add_argument(*flags.split(), action="store_true", help=text)
    p.add_argument("--version", action=VersionAction)
    p.add_argument("--report", metavar="FILE", help="write a page (HTML) to step through the passes")
    print_ir.add_options(p)
    return p


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns its exit code."""

    def command() -> int:
        options = argument_parser().parse_args(args, namespace=Options())
        with progress.shown():
            return run(options, sys.stdout, sys.stderr)

    return ended_cleanly("ait-opt", command)


def pattern_functions() -> str:
    """A list of the functions that patterns may call: name, kinds of arguments, first paragraph of the docstring."""
    from ait_mlir.rewrites.apply import universe

    known = universe()
    lines: list[str] = []
    for registry in (known.constraints, known.finders, known.natives):
        lines.append(f"{registry.what}s")
        for entry in (registry.entries[name] for name in sorted(registry.entries)):
            lines += ["", f"  {entry.name}({', '.join(entry.params)})"]
            lines += wrap(entry.summary, 96, initial_indent=" " * 4, subsequent_indent=" " * 4)
        lines.append("")
    return "\n".join(lines)


def run(options: Options, out: TextIO, err: TextIO, show: Show | None = None, stdin: bytes | None = None) -> int:
    """Run with given streams; returns the exit code: 0, or 1 after an error.

    `show` gives the text to print for a module after its passes, and for the part of the source that it comes from; by
    default it is the module's text. `stdin` is the input of `-`, by default standard input.
    """
    if options.list_passes:
        out.write("\n".join(sorted(PASSES)) + "\n")
        return 0
    try:
        for path in options.load:
            load(path)
    except AitError as e:
        err.write(f"ait-opt: error: {e}\n")
        return 1
    if options.list_constraints:
        out.write(pattern_functions())
        return 0
    try:
        chunks = read_chunks(options, stdin)
        wanted = [expectations(source) if options.verify_diagnostics else [] for source in chunks]
        parse_passes(options.passes)
        printed_ir(options, partial(print_module, options), err)
        if options.report is not None:
            check_report(Path(options.report), options.input, options.output)
        if options.output not in (None, "-"):
            check_output(Path(options.output))
        if options.explain and options.generate_checks:
            raise AitError("--explain and --generate-checks both replace the printed IR; give one of them")
    except SourceError as e:
        err.write(f"{e}\n")
        return 1
    except AitError as e:
        err.write(f"ait-opt: error: {e}\n")
        return 1
    except OSError as e:
        err.write(f"ait-opt: error: cannot read {options.input}: {e.strerror}\n")
        return 1
    texts: list[str] = []
    if options.generate_checks:
        texts += run_line_of(options, chunks[0].text)
        show = with_checks(options)
    failed = False
    for i, source in enumerate(chunks):
        if i > 0:
            texts.append("// -----\n")
        found: list[Diagnostic] = []
        try:
            module, trace = process(options, source, err)
            if trace is not None and options.report is not None:
                report_page(options, source, module, trace, i if len(chunks) > 1 else None)
            if trace is not None and options.explain:
                texts.append(explanation(trace))
            else:
                texts.append(print_module(options, module) if show is None else show(module, source))
        except SourceError as e:
            found = e.diagnostics
        except AitError as e:
            err.write(f"ait-opt: error: {e}\n")
            failed = True
            continue
        except Exception as e:
            if os.environ.get("AIT_TRACEBACK"):
                raise
            err.write(f"{internal_error('ait-opt', e)}\n")
            failed = True
            continue
        for diagnostic in unmet(source, wanted[i], found) if options.verify_diagnostics else found:
            err.write(f"{diagnostic}\n")
            failed = True
    if failed and not options.split_input_file:
        return 1
    text = "".join(texts)
    if options.output in (None, "-"):
        out.write(text)
    else:
        try:
            write_atomic(Path(options.output), text.encode())
        except OSError as e:
            err.write(f"ait-opt: error: cannot write {options.output}: {e.strerror}\n")
            return 1
        except AitError as e:
            err.write(f"ait-opt: error: {e}\n")
            return 1
    return int(failed)


def read_chunks(options: Options, stdin: bytes | None = None) -> list[SourceText]:
    """The input as one source, or as its parts."""
    if options.input == "-":
        name, data = "<stdin>", sys.stdin.buffer.read() if stdin is None else stdin
    else:
        name, data = options.input, Path(options.input).read_bytes()
    source = decode(data, name)
    if not options.split_input_file:
        return [source]
    chunks: list[SourceText] = []
    line = 0
    for part in re.split(r"^// -----[^\n]*\n", source.text, flags=re.MULTILINE):
        chunks.append(SourceText(name, part, line))
        line += part.count("\n") + 1
    return chunks


def is_free_of_reference(p: ModulePass, module: ModuleOp) -> bool:
    """Whether a pass may change the reference's results, because the module states an assumption that allows it."""
    from ait_mlir.passes.patterns import AssumingPatternPass

    return isinstance(p, AssumingPatternPass) and p.applies_to(module)


def process(options: Options, source: SourceText, err: TextIO) -> tuple[ModuleOp, Trace | None]:
    """Parse and run the passes; returns the module, and a record of the passes if an option shows it. Raises
    `SourceError`."""
    begin = perf_counter()
    ctx = context()
    ctx.allow_unregistered = options.allow_unregistered_dialect
    add_xdsl_dialects(ctx)
    module = parse_source(ctx, source)
    if not options.disable_verify:
        check(module, source)
    printed, times = printed_ir(options, partial(print_module, options), err), Times()
    times.add("Parser", perf_counter() - begin)
    checker = semantics_checker(module, source) if options.check_semantics else None

    def observe(p: ModulePass, module: ModuleOp, seconds: float) -> None:
        nonlocal checker, running
        running = None
        printed.ended(p, module)
        times.add(p.name, seconds)
        if trace is not None:
            trace.observe(p, module, seconds)
        taken = statistics.taken() if trace is None else trace.taken
        if options.print_stats:
            err.write("".join(statistics_lines(p.name, seconds, taken)))
        if options.time_passes:
            err.write(f"{seconds * 1e3:10.2f} ms  {p.name}\n")
        if options.print_between_passes:
            err.write(f"// IR after {p.name}\n{print_module(options, module)}")
        if checker is not None:
            if is_free_of_reference(p, module):
                # The framework's own error measures changes that an assumption allows; later passes keep the result.
                checks, checker = checker.checks, semantics_checker(module, source)
                checker.checks, checker.assumed = checks, True
                return
            found = checker.after(p.name, module, lambda copy: p.apply(ctx, copy))
            statistics.taken()  # of the pass on the copy
            if found:
                raise SourceError(list(dict.fromkeys(located(d, taken.applications, symbols, source) for d in found)))

    running: ModulePass | None = None
    symbols: dict[Operation, str] = {}

    def starting(p: ModulePass, module: ModuleOp) -> None:
        nonlocal running, symbols
        running = p
        if checker is not None:
            symbols = symbols_of_ops(module)
        printed.starting(p, module)

    with counted_rewrites() as statistics:
        trace = Trace(statistics, module) if options.explain or options.report is not None else None
        try:
            run_passes(
                ctx,
                module,
                parse_passes(options.passes),
                source=source,
                verify=not options.disable_verify,
                verified=not options.disable_verify,
                observe=observe,
                starting=starting,
            )
        except Exception:
            if running is not None:
                printed.failed(running, module)
            raise
    if checker is not None:
        err.write(f"// semantics: {checker.summary()}\n")
        err.writelines(f"// semantics: not tried: {reason}\n" for reason in checker.skipped)
    if options.mlir_timing:
        err.write(times.report(perf_counter() - begin))
    return module, trace


def report_page(options: Options, source: SourceText, module: ModuleOp, trace: Trace, part: int | None) -> None:
    """Write the page of a run; with `part`, of this part of a split file, its number in the name of the page."""
    from ait_mlir.selection.select import Selections
    from ait_mlir.tools.page import page

    assert options.report is not None
    path = Path(options.report)
    path = path if part is None else path.with_name(f"{path.stem}-{part}{path.suffix}")
    write_atomic(path, page(Path(source.name).name, trace, Selections(), None, module, {}).encode())


def with_checks(options: Options) -> Show:
    """What `--generate-checks` prints: the source with checks of the module, in place of those generated before."""

    def show(module: ModuleOp, source: SourceText) -> str:
        return inserted(without_checks(source.text, ["CHECK"]), blocks(module, generic=options.print_op_generic))

    return show


def run_line_of(options: Options, text: str) -> list[str]:
    """The RUN line of a test with these options; none if the text has one."""
    if re.search(r"^\s*//\s*RUN:", text, re.MULTILINE):
        return []
    flags = ("split_input_file", "print_op_generic", "allow_unregistered_dialect", "disable_verify")
    words = ["ait-opt", "%s", *(["-p", _from_the_test(options)] if options.passes else [])]
    words += [f"--{flag.replace('_', '-')}" for flag in flags if getattr(options, flag)]
    return [f"// RUN: {shlex.join(words)} | filecheck %s\n\n".replace("'%s'", "%s")]


def _from_the_test(options: Options) -> str:
    """The passes, with `%S/` before files beside the input, so that the test runs from any folder."""

    def beside(found: re.Match[str]) -> str:
        path = Path(found[1])
        is_beside = not path.is_absolute() and options.input != "-" and (Path(options.input).parent / path).is_file()
        return f'file="%S/{path}"' if is_beside else found[0]

    return re.sub(r'\bfile="([^"%]+)"', beside, options.passes)


def semantics_checker(module: ModuleOp, source: SourceText) -> SemanticsChecker:
    """The checker of a module; raises `SourceError` at an op whose reference is wrong."""
    from ait_mlir.passes.checks.check_semantics import SemanticsChecker
    from ait_mlir.reference.core import WrongReference

    try:
        return SemanticsChecker(module)
    except WrongReference as e:
        file, line, column = op_place(e.op) or (source.name, 1, 1)
        text = source.line_text(line) if file == source.name else ""
        raise SourceError([Diagnostic(file, line, column, str(e), text)]) from None


def symbols_of_ops(module: ModuleOp) -> dict[Operation, str]:
    """The symbol of the graph or program that contains each op; also for the graph or program itself."""
    from ait_mlir.passes.checks.check_semantics import callables

    return {op: name for name, root in callables(module).items() for op in root.walk()}


def located(
    difference: Difference, applied: Sequence[Application], symbols: Mapping[Operation, str], source: SourceText
) -> Diagnostic:
    """The error for a pass that changed a result: at the first op of the graph or program that a pattern replaced, else
    at the graph or program. `symbols` is that of the ops before the pass.
    """
    at = next((op for op, name in symbols.items() if name == difference.symbol), None)
    message = str(difference)
    roots = [(a.pattern, value.owner) for a in applied for value in a.replaced[:1]]
    replaced = [(p, op) for p, op in roots if isinstance(op, Operation) and symbols.get(op) == difference.symbol]
    if replaced:
        pattern, at = replaced[0]
        message += f"; pattern '{pattern}' replaced this op"
        message += f", the first of {len(replaced)}" if len(replaced) > 1 else ""
    file, line, column = (op_place(at) if at is not None else None) or (source.name, 1, 1)
    return Diagnostic(file, line, column, message, source.line_text(line) if file == source.name else "")


def statistics_lines(name: str, seconds: float, statistics: Statistics) -> list[str]:
    """The lines of `--print-stats` for a pass: its time, then for each pattern the number and the time of its rewrites,
    most frequent first. Only the pass's time includes matching, because all patterns are matched together."""
    lines = [f"{seconds * 1e3:10.2f} ms  {name}\n"]
    for pattern, count in sorted(statistics.applied.items(), key=lambda row: (-row[1], row[0])):
        lines.append(f"{statistics.seconds[pattern] * 1e3:14.2f} ms  {count:6} x {pattern}\n")
    if statistics.removed:
        lines.append(f"{statistics.removed:24} x dead op removed\n")
    return lines


def add_xdsl_dialects(ctx: Context) -> None:
    """Make xDSL's own dialects available too; each loads on first use."""
    from xdsl.dialects import get_all_dialects

    known = set(ctx.registered_dialect_names)
    for name, factory in get_all_dialects().items():
        if name not in known:
            ctx.register_dialect(name, factory)


def print_module(options: Options, module: ModuleOp, generic: bool = False) -> str:
    """The text of a module. The implicit top-level module is left out, as in MLIR's own tools it is not needed to
    parse."""
    stream = StringIO()
    printer = Printer(
        stream=stream,
        print_generic_format=generic or options.print_op_generic,
        print_debuginfo=options.print_debuginfo,
    )
    printer.print_op(module)
    return stream.getvalue() + "\n"


if __name__ == "__main__":
    sys.exit(main())
