"""Compiles artifacts of graphs, each in its own process, with kernels chosen by estimate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def compile_text(text: str, output: Path, target: str, *options: str) -> Path:
    """Compile a graph to `output`, and keep its text beside it; ends the program if that fails."""
    file = output.with_suffix(".mlir")
    file.write_text(text, encoding="utf-8")
    return compile_file(file, output, target, *options)


def compile_file(file: Path, output: Path, target: str, *options: str) -> Path:
    """Compile a file to `output`; ends the program if that fails. `options` are options of `ait compile`."""
    command = [sys.executable, "-m", "ait_mlir.tools.cli", "compile", str(file), "--target", target, "--no-measure"]
    done = subprocess.run([*command, "-o", str(output), *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"error: {output.name}: {done.stderr.strip()}")
    return output
