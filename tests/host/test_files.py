"""Files that commands write: what is replaced, what is written through, and what stays as it was."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from ait_mlir.errors import AitError
from ait_mlir.host.files import atomic_file, write_atomic
from ait_mlir.tools import ait_opt, cli


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_mode_that_the_umask_allows(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_atomic(tmp_path / "new", b"text")
    finally:
        os.umask(old)
    assert mode(tmp_path / "new") == 0o640


def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_bytes(b"old")
    path.chmod(0o604)
    write_atomic(path, b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", 0o604)


@pytest.mark.parametrize("exists", [True, False])
def test_links_are_followed_and_stay_links(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    if exists:
        target.write_bytes(b"old")
    (tmp_path / "inner").symlink_to("folder/target")
    (tmp_path / "outer").symlink_to(tmp_path / "inner")
    write_atomic(tmp_path / "outer", b"new")
    assert (tmp_path / "outer").is_symlink() and (tmp_path / "inner").is_symlink()
    assert target.read_bytes() == b"new" and not target.is_symlink()
    assert os.listdir(tmp_path / "folder") == ["target"]


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(AitError, match="too many symbolic links"):
        write_atomic(tmp_path / "a", b"new")


def test_a_folder_is_an_error_and_stays(tmp_path: Path) -> None:
    with pytest.raises(AitError, match="is a folder"):
        write_atomic(tmp_path, b"new")
    assert ait_opt.main([write_graph(tmp_path), "-o", str(tmp_path)]) == 1


def test_folders_are_not_made(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("none/file")
    (tmp_path / "file").write_bytes(b"old")
    for place, reason in (("none/new", "none does not exist"), ("link", "none does not exist"), ("file/x", "no folder")):
        with pytest.raises(AitError, match=rf"{place} cannot be written: .*{reason}"):
            write_atomic(tmp_path / place, b"new")
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


@pytest.mark.parametrize(
    "command",
    ["compile --to planned -o", "compile -o", "compile --emit kernels -o", "compile --emit module -o", "reduce -o",
     "bisect -o", "import -o", "quantize -o"],
)  # fmt: skip
def test_commands_refuse_a_missing_folder_before_they_work(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*args: object, **kwargs: object) -> None:
        raise AssertionError("the work has begun")

    for place in ("ait_mlir.driver.plan_model", "ait_mlir.driver.run_to_phase", "ait_mlir.tools.commands.import_.load"):
        monkeypatch.setattr(place, work)
    name, *options = command.split()
    more = {"reduce": ["--command", "false"], "quantize": ["--recipe", "w8a16"]}.get(name, [])
    source = "model.py:build" if name in ("import", "quantize") else write_graph(tmp_path)
    assert cli.main([name, source, *more, *options, str(tmp_path / "no" / "file")]) == 1
    assert f"{tmp_path}/no/file cannot be written: {tmp_path}/no does not exist" in capsys.readouterr().err


def test_a_text_for_standard_output_has_the_name_minus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compile", write_graph(tmp_path), "--to", "imported", "-o", "-"]) == 0
    assert "ait.graph @g" in capsys.readouterr().out and not Path("-").exists()


def test_a_pipe_is_written_through(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_atomic(pipe, b"text")
    reader.join()
    assert read == [b"text"] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_written_through(tmp_path: Path) -> None:
    null = tmp_path / "null"
    try:
        os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root can make a device")
    before = null.stat()
    assert ait_opt.main([write_graph(tmp_path), "-o", str(null)]) == 0
    after = null.stat()
    assert (after.st_mode, after.st_rdev, after.st_ino) == (before.st_mode, before.st_rdev, before.st_ino)
    assert sorted(os.listdir(tmp_path)) == ["graph.mlir", "null"]


def test_an_open_file_of_a_process_is_written_through(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w+b") as file:
        inode = os.fstat(file.fileno()).st_ino
        write_atomic(Path(f"/proc/self/fd/{file.fileno()}"), b"text")
        (tmp_path / "link").symlink_to(f"/proc/self/fd/{file.fileno()}")
        write_atomic(tmp_path / "link", b"more")
        assert file.read() == b"more"
    assert (tmp_path / "open").stat().st_ino == inode


def test_an_error_within_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "link").symlink_to("old")
    with pytest.raises(KeyboardInterrupt), atomic_file(tmp_path / "link") as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert (tmp_path / "old").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["link", "old"]


def write_graph(folder: Path) -> str:
    path = folder / "graph.mlir"
    path.write_text('ait.graph @g(%x: !ait.tensor<4 x f32>) {\n  ait.output "y" %x : !ait.tensor<4 x f32>\n}\n')
    return str(path)


def test_content_is_never_readable_for_more_than_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before the mode is set, either: who opens a file in time could read on."""
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o600)
    modes: list[int] = []
    real = os.open

    def opened(name: Path, flags: int, mode: int = 0o777) -> int:
        handle = real(name, flags, mode)
        modes.append(stat.S_IMODE(os.fstat(handle).st_mode))
        return handle

    monkeypatch.setattr(os, "open", opened)
    with atomic_file(path) as file:
        file.write(b"new")
        assert modes == [0o600]
    assert mode(path) == 0o600


def test_a_file_of_other_content_does_not_run_as_another_user(tmp_path: Path) -> None:
    path = tmp_path / "tool"
    path.write_bytes(b"old")
    path.chmod(0o6755)
    write_atomic(path, b"new")
    assert mode(path) == 0o755


def test_a_program_can_be_run_if_the_umask_allows(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        with atomic_file(tmp_path / "library.so", executable=True) as file:
            file.write(b"code")
    finally:
        os.umask(old)
    assert mode(tmp_path / "library.so") == 0o750


@pytest.mark.parametrize("name", ["é" * 127, "x" * 255])
def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path, name: str) -> None:
    write_atomic(tmp_path / name, b"text")
    assert os.listdir(tmp_path) == [name]


def test_a_full_disk_is_named() -> None:
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        write_atomic(Path("/dev/full"), b"text")
