"""Runs the commands that write files as root, in a mount namespace with devices of its own, and prints what changed.

`unshare --mount --propagation private python -m tests.tools.sandbox FOLDER [--careless]`. Prints, as JSON, the commands
that failed and the changes outside of temporary folders: of /dev, /etc, the home directory, this repository, and of what
else lies in the directory of the cache. With `--careless`, one command replaces /dev/null, as an atomic write would that
does not look where it writes.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from ait_mlir.host.cache import FOLDER
from ait_mlir.tools import ait_opt, cli
from tests.tools.test_cli import MODEL

ROOT = Path(__file__).parents[2]
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9)}
LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
NOT_OURS = {"__pycache__", ".git", ".venv", "build", ".pytest_cache", ".ruff_cache", ".hypothesis", "chromium", "dconf", FOLDER}
"""Folders that other processes write to, such as tests beside this one, and the cache."""
COMMANDS = """
ait-opt tiny.mlir -o OUT
ait-opt tiny.mlir -p simplify --check-semantics -o OUT
ait compile tiny.mlir --to planned -o OUT
ait compile tiny.mlir --to source -o OUT
ait compile tiny.mlir --to planned --report OUT -o planned.mlir
ait compile tiny.mlir --workdir work -o OUT
ait compile tiny.mlir --emit module -o OUT
ait compile tiny.mlir -o tiny.ait
ait run tiny.ait --output y=@OUT
ait reduce tiny.mlir --command false -o OUT
ait inspect tiny.ait
ait cache
"""
Changes = dict[str, str]


def own_devices() -> None:
    """Hide the devices of the machine behind new ones."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/dev"], check=True)
    old = os.umask(0)
    for name, numbers in DEVICES.items():
        os.mknod(f"/dev/{name}", stat.S_IFCHR | 0o666, os.makedev(*numbers))
    os.umask(old)
    for name, target in LINKS.items():
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/shm", 0o1777)


def snapshot(places: list[Path]) -> dict[str, tuple[int, ...]]:
    """Mode, owner, device, inode, size and time of the last change of everything at these places."""
    found: dict[str, tuple[int, ...]] = {}
    for place in places:
        for folder, folders, files in os.walk(place):
            folders[:] = [name for name in folders if name not in NOT_OURS]
            for name in (*folders, *files):
                with contextlib.suppress(FileNotFoundError):
                    s = os.lstat(os.path.join(folder, name))
                    time = 0 if stat.S_ISCHR(s.st_mode) or stat.S_ISDIR(s.st_mode) else s.st_mtime_ns
                    size = s.st_size if stat.S_ISREG(s.st_mode) else 0
                    found[os.path.join(folder, name)] = s.st_mode, s.st_uid, s.st_gid, s.st_rdev, s.st_ino, size, time
    return found


def changes(before: dict[str, tuple[int, ...]], after: dict[str, tuple[int, ...]]) -> Changes:
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return {name: f"{before.get(name)} -> {after.get(name)}" for name in sorted(names)}


def lines() -> Iterator[str]:
    """The commands of this page on each output, and those of the lit tests that write files."""
    for line in COMMANDS.strip().splitlines():
        outputs = ["/dev/null", "link", "kept", "new"] if "OUT" in line else [""]
        yield from (re.sub(r"\bOUT\b", out, line) for out in outputs)
    for path in sorted((ROOT / "lit_tests").rglob("*.mlir")):
        for run in re.findall(r"^// RUN: (ait-opt .* -o .*)$", path.read_text(), re.MULTILINE):
            yield re.split(r"2>|\|", run)[0].replace("%s", str(path))


def status(line: str) -> int:
    """The exit code of a command, run in this process."""
    tool, *arguments = shlex.split(line)
    main: Callable[[list[str]], int] = {"ait": cli.main, "ait-opt": ait_opt.main}[tool]
    with contextlib.redirect_stdout(io.StringIO()):
        return main(arguments)


def run(folder: Path, careless: bool) -> dict[str, Changes]:
    own_devices()
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    (home / "mine").write_text("mine")
    os.environ["HOME"] = str(home)
    os.chdir(work)
    Path("tiny.mlir").write_text(MODEL)
    Path("link").symlink_to("/dev/null")
    Path("kept").write_text("")
    Path("kept").chmod(0o604)
    places = [Path("/dev"), Path("/etc"), home, ROOT, Path(os.environ["AIT_CACHE_DIR"])]
    before = snapshot(places)
    failed: Changes = {}
    for line in ["ait-opt tiny.mlir -o new"] if careless else lines():
        if (code := status(line)) != 0:
            failed[line] = str(code)
    if careless:
        Path("/dev/shm/new").write_text("")
        os.replace("/dev/shm/new", "/dev/null")
    kept = stat.S_IMODE(Path("kept").stat().st_mode)
    if kept != 0o604 or not Path("link").is_symlink():
        failed["kept and link"] = f"{kept:o}, {Path('link').is_symlink()}"
    return {"failed": failed, "changed": changes(before, snapshot(places))}


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    print(json.dumps(run(Path(sys.argv[1]), "--careless" in sys.argv)))
