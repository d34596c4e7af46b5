"""The extension for VS Code: it fits the server, and is built from its lock file."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from ait_mlir.tools.language.server import PHASE, new_server

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "editors" / "vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text())


def test_the_extension_fits_the_server() -> None:
    source = (FOLDER / "src" / "extension.js").read_text()
    assert f'const PHASE = "{PHASE}"' in source and PHASE in new_server().protocol.fm.commands
    page = (ROOT / "docs" / "editors.md").read_text()
    settings = PACKAGE["contributes"]["configuration"]["properties"]
    asked = set(re.findall(r'settings\.get\("(\w+)"\)', source))
    assert {f"ait.{name}" for name in asked} == set(settings)
    assert {name for name in settings if f"`{name}`" not in page} == {"ait.arguments"}


def test_the_lock_file_is_of_the_public_registry() -> None:
    lock = json.loads((FOLDER / "package-lock.json").read_text())["packages"]
    assert lock[""]["devDependencies"] == PACKAGE["devDependencies"]
    entries = [entry for name, entry in lock.items() if name]
    assert all(entry["integrity"].startswith("sha512-") for entry in entries)
    assert {entry.get("resolved", "https://registry.npmjs.org/").split("/")[2] for entry in entries} == {
        "registry.npmjs.org"
    }


@pytest.mark.full
def test_the_extension_is_built(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path / "editors" / "vscode"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "*.vsix"))
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("*.py", "models", "cpp"))
    command = ["npm", "ci", "--no-audit", "--no-fund"]
    installed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    if installed.returncode != 0 and re.search("ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|E40[34]", installed.stderr):
        pytest.skip(f"the registry of npm cannot be reached: {installed.stderr[-200:]}")
    assert installed.returncode == 0, installed.stderr
    for step in (["npm", "test"], ["npm", "run", "package"]):
        done = subprocess.run(step, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    built = folder / "ait-mlir.vsix"
    with zipfile.ZipFile(built) as archive:
        names = {name.removeprefix("extension/") for name in archive.namelist()}
    assert {"dist/extension.js", "package.json", "syntaxes/mlir.tmLanguage.json"} <= names and len(names) < 10
    assert built.stat().st_size < 200_000
