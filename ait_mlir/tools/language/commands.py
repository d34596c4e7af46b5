"""Runs `ait-opt` and `ait` on a text, in a process of its own: no crash, hang or use of memory ends the server."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ait_mlir.host.cache import Scratch
from ait_mlir.passes.pipelines import PHASES

SECONDS = 300
"""A command that takes longer is ended."""
SHOWN = PHASES[1:-1]
"""The phases that a text can be run to."""


@cache
def shown_folder() -> Path:
    """The folder of the texts that commands show; it goes when the server ends."""
    return Path(_folders.enter_context(Scratch()))


_folders = contextlib.ExitStack()
atexit.register(_folders.close)


@dataclass(frozen=True)
class Output:
    """What a command printed: the text, or the errors if it failed."""

    text: str
    failed: bool


async def run_to_phase(name: str, text: str, phase: str, target: str) -> Output:
    """The text at a phase."""
    return await _run(name, text, "cli", ["compile", "FILE", "--target", target, "--to", phase])


async def run_passes(name: str, text: str, passes: str, check: bool) -> Output:
    """The text after passes; with `check`, the result of `--check-semantics` instead."""
    options = ["FILE", "-p", passes]
    found = await _run(name, text, "ait_opt", [*options, "--check-semantics"] if check else options, both=check)
    if not check or found.failed:
        return found
    told = [line for line in found.text.splitlines() if line.startswith("// semantics:")]
    return Output("\n".join([f"// checked: {passes}", *told, ""]), False)


async def _run(name: str, text: str, tool: str, options: list[str], both: bool = False) -> Output:
    with Scratch() as folder:
        file = folder / (Path(name).name or "text.mlir")
        file = file.with_suffix(".mlir")
        file.write_text(text, encoding="utf-8", errors="replace")
        given = [str(file) if option == "FILE" else option for option in options]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", f"ait_mlir.tools.{tool}", *given),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), SECONDS)
        except TimeoutError:
            return Output(f"the command took more than {SECONDS} seconds and was ended", True)
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
        errors = err.decode(errors="replace").replace(str(file), name)
        if process.returncode != 0:
            return Output(errors or f"the command ended with code {process.returncode}", True)
        shown = out.decode(errors="replace")
        return Output(errors + shown if both else shown, False)
