"""Runs ninja: the build file of some sources, the progress, and the error when a compiler refuses a source."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ait_mlir.errors import CompileError, ToolchainError
from ait_mlir.host.cache import CONTROL, cache_dir
from ait_mlir.host.processes import started
from ait_mlir.host.progress import step
from ait_mlir.host.settings import whole_number
from ait_mlir.lowering.precompiled import include_flags
from ait_mlir.lowering.toolchain import Toolchain, compiler_environment

_ERROR_LINE = re.compile(r"(error|fatal|undefined reference|multiple definition|Killed|ptxas)", re.IGNORECASE)
_FOR_SHELL = re.compile(r'[$`"\\]')
"""The characters with a special meaning for a shell between double quotes."""
_SHOWN_ERROR_LINES = 12
_STEP = re.compile(r"\[(\d+)/\d+\] (\S*)")
"""Ninja's line for a step that has ended: how many have ended, and the name of its file."""
ONCE = " (once)"
"""The end of the label of a build that all later models share; without a progress bar, a line announces that build."""


@dataclass(frozen=True)
class Unit:
    """A source to compile: its file, its key, and the path of its object."""

    source: Path
    key: str
    tools: Toolchain | None = None
    """Its compiler and flags, if not those of the whole library."""
    cost: int = 0
    """An estimate of its time in a joined unit (`lowering/joining.py`); 0 if it is compiled alone."""
    parts: tuple[Unit, ...] = ()
    """The units that a joined unit has."""

    @property
    def object(self) -> Path:
        return object_of(self.key)


def object_of(key: str) -> Path:
    """The path of the object of a unit in the cache."""
    return cache_dir() / "objects" / key[:2] / f"{key}.o"


def build_file(tools: Toolchain, missing: Mapping[str, Unit], objects: Iterable[str] | None) -> str:
    """The build file of the missing objects and, if `objects` are given, of the library that links them."""
    used = Counter(unit.tools or tools for unit in missing.values())
    rules = {t: f"compile{i}" for i, t in enumerate(used)}
    for t in (tools, *used):
        _usable(t, str(cache_dir()))
    lines = [
        f"rule {rule}\n  command = {_compile_command(t, used[t])}\n  description = $out" for t, rule in rules.items()
    ]
    for name, unit in missing.items():
        t = unit.tools or tools
        lines += [_variable(f"source_{name}", t, unit.source), f"build {name}: {rules[t]} ${{source_{name}}}"]
        if t.keeps_names:
            lines += [f"  name = {unit.source.name}"]
    if objects is not None:
        link = f"{_command(tools, [str(tools.compiler)])} $in -o $out {_command(tools, tools.link_flags)}"
        names = list(objects)
        lines += [f"rule link\n  command = {link}\n  description = $out"]
        lines += [_variable(f"object_{i}", tools, Path(name)) for i, name in enumerate(names)]
        lines += [f"build model.so: link {' '.join(f'${{object_{i}}}' for i in range(len(names)))}"]
    return "\n".join(lines) + "\n"


def _compile_command(tools: Toolchain, sources: int) -> str:
    """The command that makes an object. The object depends neither on the folder of its source nor on the process.

    nvcc names temporary files that it keeps by the source, others by the number of its process, which would be in the
    object. They are removed at once: for a kernel they are ten times as large as its object.
    """
    command = _command(tools, [str(tools.compiler), *tools.compile_flags, *include_flags(tools, sources)])
    if not tools.keeps_names:
        return f"{command} -c $in -o $out"
    named = "-keep -keep-dir $out.d -Xcudafe --orig_src_path_name=/$name"
    return f"mkdir -p $out.d && {command} {named} -c $in -o $out && rm -r $out.d"


def _command(tools: Toolchain, words: Iterable[str]) -> str:
    return " ".join(shlex.quote(_usable(tools, word)) for word in words).replace("$", "$$")


def _variable(name: str, tools: Toolchain, path: Path) -> str:
    """The definition of a ninja variable for a path, with `$` escaped; in a build line `|` could not be written. Ninja
    quotes `$in` for the shell by itself."""
    return f"{name} = {_usable(tools, str(path)).replace('$', '$$')}"


def _usable(tools: Toolchain, text: str) -> str:
    """A path or flag for a compiler. Raises `CompileError` if ninja or a shell would change it."""
    if CONTROL.search(text):
        raise CompileError(f"a build cannot use the path {text!r}, which has a line break or a control character")
    if tools.uses_shell and _FOR_SHELL.search(text):
        raise CompileError(
            f"a build cannot use the path {text!r}: {tools.compiler.name} gives it to a shell, which would run what is "
            'behind $ or ` in it; AIT_CACHE_DIR and the working directory must be free of $, `, " and \\'
        )
    return text


def ninja_output(
    scratch: Path,
    tools: Toolchain,
    steps: int,
    label: str,
    made: Callable[[str], None],
    keep_going: bool = False,
    stop: threading.Event | None = None,
) -> tuple[int, list[str]]:
    """Run ninja on the build file in `scratch`, at most until `stop` is set; returns its exit status and its lines.

    `made` is called with the name of each object or library when it is complete, while others are still compiled.

    The compilers start in `scratch` and make their temporary files there, too: some leave empty folders, and nvcc
    cannot use every folder name.
    """
    environment = {**compiler_environment(tools), "NINJA_STATUS": "[%f/%t] ", "TMPDIR": "."}
    command = [str(find_ninja()), "-C", str(scratch), "-j", str(jobs()), *(("-k", "0") if keep_going else ())]
    output: list[str] = []
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment) as process:
        assert process.stdout is not None
        if stop is not None:
            threading.Thread(target=_end_when, args=(process, stop), daemon=True).start()
        with Progress(steps, label) as progress:
            name = ""  # of a step that has ended; the next line says if it failed
            for line in process.stdout:
                output.append(line.rstrip("\n"))
                if name and not line.startswith("FAILED: "):
                    made(name)
                name = ""
                if match := _STEP.match(line):
                    progress.reached(int(match[1]))
                    name = match[2]
            if name:
                made(name)
    return process.returncode, output


def _end_when(process: subprocess.Popen[str], stop: threading.Event) -> None:
    """End ninja when `stop` is set; it then removes incomplete files."""
    while process.poll() is None:
        if stop.wait(0.05):
            process.terminate()
            return


def failure(output: Sequence[str], missing: Mapping[str, Unit]) -> str:
    """The error of compilers, from their output: which source they refuse, and their first errors."""
    failed = next((line for line in output if line.startswith("FAILED: ")), "")
    unit = next(
        (unit for name, unit in missing.items() if failed.endswith(f" {name}") or failed.endswith(f" {name} ")), None
    )
    start = output.index(failed) + 2 if failed else 0  # the line after FAILED is the command
    errors = list(itertools.takewhile(lambda line: not re.match(r"\[\d+/\d+\]|ninja: ", line), output[start:]))
    first = next((i for i, line in enumerate(errors) if _ERROR_LINE.search(line)), 0)
    errors = errors[first : first + _SHOWN_ERROR_LINES]
    shown = "\n".join("  " + line for line in (_by_author(errors, unit.source) if unit and errors else errors))
    what = f"the compiler refused {unit.source}" if unit else "the library could not be linked"
    return f"{what}:\n{shown}"


def _by_author(errors: list[str], source: Path) -> list[str]:
    """The compiler's messages with the places of authors: first a line that names the author's kernel that the source
    calls; then a place at each line of the source or of its headers with the expression of an operator from
    outside."""
    from ait_mlir.lowering.authored import places_of_expressions, refused_kernel

    refused = re.compile(rf"({re.escape(str(source.parent))}/[\w.-]+)[:(](\d+)[:)]\S*:? *(?=.*error)")
    kernel = refused_kernel(source.read_text(encoding="utf-8"), errors[0])
    shown = [] if kernel is None else [kernel]
    for message in errors:
        match = refused.match(message)
        number = int(match[2]) if match else 0
        lines = Path(match[1]).read_text(encoding="utf-8").split("\n") if match else []
        places = places_of_expressions(lines[number - 1]) if 0 < number <= len(lines) else []
        shown.append(f"{' or '.join(places)}: {message[match.end() :]}" if match and places else message)
    return shown


class Progress:
    """A progress bar on stderr if it is a terminal; otherwise one line if the build is `once` for all models."""

    def __init__(self, total: int, label: str) -> None:
        self._bar = None
        step("")  # the bar has the line
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=total, desc=label, unit="file", file=sys.stderr, leave=False)
        elif label.endswith(ONCE):
            print(label, file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def reached(self, count: int) -> None:
        if self._bar is not None:
            self._bar.update(count - self._bar.n)


def find_ninja() -> Path:
    """The path of ninja: from the pip package, else from PATH."""
    try:
        import ninja

        packaged = Path(ninja.BIN_DIR) / "ninja"
        if packaged.is_file():
            return packaged
    except ImportError:
        pass
    if (found := shutil.which("ninja")) is None:
        raise ToolchainError("ninja was not found: install it (pip install ninja)")
    return Path(found)


def jobs() -> int:
    """The number of compilers to run at once: `AIT_BUILD_JOBS`, else one for each CPU that this process may use."""
    return whole_number("AIT_BUILD_JOBS", 4096) or len(os.sched_getaffinity(0))
