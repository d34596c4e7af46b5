"""`make playground`: the page with everything that it loads, in `build/playground`.

Needs node and npm; npm brings Pyodide, CodeMirror and esbuild in the versions of `package-lock.json`. The Python
packages are those of the environment that runs this script.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from time import perf_counter

from ait_mlir.tools.language import html, tokens

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DEFAULT, WORK = ROOT / "build" / "playground", ROOT / "build" / "playground-work"
NODE_NEEDED = 20
PACKAGES = ("xdsl", "jinja2", "markupsafe", "immutabledict", "ordered_set", "typing_extensions", "sympy", "mpmath")
"""The dependencies, pure Python all of them, that the compiler loads from a text to C++."""
LEFT_OUT = re.compile(
    r"(^|/)(__pycache__|tests?|testing)/|^xdsl/(interactive|frontend|tools|backend/(riscv|x86))/"
    r"|^ait_mlir/(importers|graph|operators|compiler|testing)/|^(sympy|mpmath)/(?!__init__)"
)
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
SUFFIXES = (".py", ".j2", ".json")


class Missing(Exception):
    """A tool of the build is missing."""


def build(output: Path = DEFAULT, work: Path = WORK) -> None:
    """Write the page to `output`; `work` keeps the npm packages for the next build.

    Raises `Missing` without node, npm or a package, and `CalledProcessError` if a tool fails.
    """
    check_node()
    modules = node_modules(work)
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    stage(work / "python")
    run("node", HERE / "pack.mjs", modules / "pyodide", work / "python", output)
    (work / "tokens.json").write_text(json.dumps(token_table()), encoding="utf-8")
    shutil.copy(HERE / "page.mjs", work / "page.mjs")
    run(
        modules / ".bin" / "esbuild", work / "page.mjs", "--bundle", "--minify", "--format=esm", "--log-level=warning",
        f"--outfile={output / 'page.js'}", cwd=work,
    )  # fmt: skip
    for name in ("index.html", "style.css", "worker.mjs"):
        shutil.copy(HERE / name, output / name)
    (output / "tokens.css").write_text(token_colours(), encoding="utf-8")
    (output / "examples.json").write_text(json.dumps(examples()), encoding="utf-8")
    (output / "pyodide").mkdir()
    for name in PYODIDE:
        shutil.copy(modules / "pyodide" / name, output / "pyodide" / name)


def check_node() -> None:
    """Raise `Missing` unless node of a version that Pyodide runs in, and npm, are there."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise Missing(f"no {tool} found; the playground needs node {NODE_NEEDED} or newer with npm")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").partition(".")[0]) < NODE_NEEDED:
        raise Missing(f"node is {version}; the playground needs node {NODE_NEEDED} or newer")


def node_modules(work: Path) -> Path:
    """The npm packages of the lock file, installed in `work` if they are not there yet."""
    work.mkdir(parents=True, exist_ok=True)
    lock, modules = HERE / "package-lock.json", work / "node_modules"
    installed = work / "package-lock.json"
    if not modules.is_dir() or not installed.is_file() or installed.read_bytes() != lock.read_bytes():
        shutil.rmtree(modules, ignore_errors=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, work / name)
        try:
            run("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", cwd=work)
        except subprocess.CalledProcessError:
            shutil.rmtree(modules, ignore_errors=True)
            raise Missing("npm could not install the packages of docs/playground/package-lock.json") from None
    return modules


def stage(folder: Path) -> None:
    """Copy the Python files and data of the page to `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(HERE / "standins.py", folder / "standins.py")
    for name in ("ait_mlir", *PACKAGES):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise Missing(f"no Python package {name}; run make setup")
        origin = Path(spec.origin)
        if origin.name != "__init__.py":
            shutil.copy(origin, folder / origin.name)
            continue
        copy_tree(origin.parent, folder)
    copy_tree(ROOT / "examples" / "models", folder / "examples")
    shutil.copy(ROOT / "examples" / "__init__.py", folder / "examples" / "__init__.py")


def copy_tree(package: Path, folder: Path) -> None:
    for path in package.rglob("*"):
        name = path.relative_to(package.parent).as_posix()
        if path.suffix in SUFFIXES and not LEFT_OUT.search(name):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def token_table() -> dict[str, object]:
    """The regular expressions of the IR's tokens, as JavaScript writes them."""
    pattern = re.sub(r"\\#", "#", re.sub(r"\s+", "", tokens.TOKEN.pattern.replace("[^\\s]", "\\S")))
    script = pattern.replace("(?P<", "(?<").replace("*+", "*")
    return {"kinds": list(tokens.Kind.__args__), "token": script, "element": tokens.ELEMENT.pattern}


def token_colours() -> str:
    """The colours of the IR's tokens, those of modules in notebooks."""
    return html.STYLE.removeprefix("<style>").removesuffix("</style>")


def examples() -> list[dict[str, str]]:
    """The texts of `examples/`, and scripts of the builder."""
    found = [
        {"kind": "ir", "title": f"{path.name}: {title_of_ir(path)}", "text": path.read_text(encoding="utf-8")}
        for path in sorted((ROOT / "examples").glob("*.mlir"), key=lambda path: path.stat().st_size)
    ]
    for path in sorted((HERE / "scripts").glob("*.py"), key=lambda path: path.stat().st_size):
        text = path.read_text(encoding="utf-8")
        title = (ast.get_docstring(ast.parse(text)) or path.stem).partition("\n")[0].rstrip(".")
        found.append({"kind": "python", "title": f"{path.name}: {title}", "text": text})
    return found


def title_of_ir(path: Path) -> str:
    """The first sentence of the comment at the top."""
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = " ".join(line[2:].strip() for line in takewhile(lambda line: line.startswith("//"), lines))
    return re.split(r"[.:;](?:\s|$)", comment, maxsplit=1)[0]


def run(*command: object, cwd: Path | None = None) -> None:
    subprocess.run(list(map(str, command)), cwd=cwd, check=True)


def main() -> int:
    start = perf_counter()
    try:
        build()
    except (Missing, subprocess.CalledProcessError) as error:
        print(f"playground: error: {error}", file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in DEFAULT.rglob("*") if path.is_file())
    print(f"{DEFAULT.relative_to(ROOT)}: {size / 1e6:.1f} MB in {perf_counter() - start:.0f} s")
    print(f"open it: python3 -m http.server --bind 127.0.0.1 -d {DEFAULT.relative_to(ROOT)} 8000")
    return 0


if __name__ == "__main__":
    sys.exit(main())
