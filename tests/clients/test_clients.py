"""The harness of the suites of clients: how imports change, what a test shows, and that nothing is run twice or left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ait_mlir.frontend.errors import BuildError
from tests.alone import each_alone
from tests.clients import run
from tests.clients.judge import WrongNumbers, judged
from tests.clients.suites import SUITES, changed, methods
from tests.clients.unfair import UNFAIR, documented, unfair

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("suite", "before", "after"),
    [
        ("aitemplate", "from aitemplate.compiler import ops", "from ait_mlir.compiler import ops"),
        ("aitemplate", "import aitemplate.testing.jagged_utils as j", "import ait_mlir.testing.jagged_utils as j"),
        ("cudnn", "import cudnn", "import ait_mlir.graph as cudnn"),
        ("cudnn", "    from cudnn.experimental.ops import a", "    from ait_mlir.graph.experimental.ops import a"),
        ("cudnn", "import cudnn_other, cudnn", "import cudnn_other, cudnn"),
        ("cudnn", "cudnn.pygraph(from_cudnn)", "cudnn.pygraph(from_cudnn)"),
    ],
)
def test_imports_change(suite: str, before: str, after: str) -> None:
    assert changed(before, SUITES[suite], "cuda") == after


def test_scripts_for_a_card_become_scripts_for_the_cpu() -> None:
    text = 'x = f(device="cuda", to=torch.device(\'cuda:0\')).cuda(); torch.cuda.synchronize(); cuda_x'
    assert changed(text, SUITES["cudnn"], "cuda") == text
    assert changed(text, SUITES["cudnn"], "cpu") == (
        'x = f(device="cpu", to=torch.device("cpu")).cpu(); host_cuda.synchronize(); cuda_x'
    )


def test_asserts_of_soft_suites_become_calls() -> None:
    text = "def f():\n    assert (\n        g() == 2\n    ), 'two'\n"
    assert changed(text, SUITES["aitemplate"], "cpu") == "def f():\n    soft_assert(g() == 2, 'g() == 2')"
    assert changed(text, SUITES["cudnn"], "cpu") == text


def test_methods_of_a_text() -> None:
    text = "def test_a(): ...\nclass B:\n    def test_c(self): ...\n    def d(self): ...\n    x = 1\ndef helper(): ..."
    assert list(methods(text)) == ["test_a", "B::test_c"]


@pytest.mark.parametrize(
    ("raised", "deviations", "kind"),
    [
        (None, [], "pass"),
        (None, ["count == 1"], "stricter"),
        (WrongNumbers("1 of 2 differ"), ["count == 1"], "wrong"),
        (AssertionError("'a' != 'b'"), [], "stricter"),
        (pytest.fail.Exception("no launch"), [], "stricter"),
        (BuildError("two ranges"), [], "refused"),  # an AssertionError, too
        (BuildError("two ranges"), ["count == 1"], "stricter"),
        (IndexError("no operator 3"), [], "error"),
        (IndexError("no operator 3"), ["count == 1"], "stricter"),
        (pytest.skip.Exception("needs ROCm"), [], "skipped"),
        (pytest.skip.Exception("cudnnGraphNotSupportedError('no kernel')"), [], "refused"),
        (pytest.fail.Exception("cudnnGraphNotSupportedError('no kernel')"), [], "refused"),
        (AssertionError("max_diff 0.5"), [], "wrong"),
        (AttributeError("'NoneType' object has no attribute '_attrs'"), [], "error"),
        (AttributeError("'StableSet' object has no attribute '_d'"), [], "unfair"),
        (RuntimeError("\"addmm_impl_cpu_\" not implemented for 'Half'"), [], "unfair"),
    ],
)
def test_what_a_test_shows(raised: BaseException | None, deviations: Sequence[str], kind: str) -> None:
    assert judged(raised, deviations, "/nowhere")[0] == kind


def test_files_that_cannot_be_imported() -> None:
    assert run.judge_import("E   ModuleNotFoundError: No module named 'ait_mlir.backend.x'\n") == (
        "refused",
        "ModuleNotFoundError: No module named 'ait_mlir.backend.x'",
    )
    assert run.judge_import("E   ModuleNotFoundError: No module named 'cutlass'")[0] == "unfair"
    assert run.judge_import("E   SyntaxError: invalid syntax")[0] == "error"


def test_order_is_drawn_once() -> None:
    names = [f"{file}::{number}" for file in "ab" for number in range(50)]
    drawn = run.drawn(names)
    assert drawn == run.drawn(names[::-1])
    assert drawn != names and sorted(drawn) == sorted(names)
    parts = [run.drawn(names, None, number, 3) for number in (1, 2, 3)]
    assert sorted(name for part in parts for name in part) == sorted(names)
    assert len(run.drawn(names, 7)) == 14


def test_reasons_name_tests() -> None:
    nan = "Greatest absolute difference: nan at index (0,)"
    assert documented("cpu", "ops/test_attention.py::A::test_mem_eff_attention_1", nan)
    assert documented("cpu", "ops/test_attention.py::A::test_flash_attention_1", nan) is None
    assert documented("cpu", "ops/test_attention.py::A::test_mem_eff_attention_1", "Greatest absolute difference: 2") is None
    assert unfair("cudnn", "cpu", "test/python/test_conv_reduction.py::test_reduction")
    assert unfair("cudnn", "cuda", "test/python/test_conv_reduction.py::test_reduction") is None
    assert unfair("aitemplate", "cpu", "tests/unittest/ops/test_gemm.py::A::test_b") is None
    assert all(why and not why.endswith(".") for rows in UNFAIR.values() for _, why in rows)


CLIENT = """
import os, sys, time, unittest
import torch
from aitemplate.frontend import Tensor

class Client(unittest.TestCase):
    def test_pass(self):
        self.assertTrue(torch.allclose(torch.ones(2).cuda(), torch.ones(2, device="cuda")))
        assert Tensor(shape=[2], name="x")._attrs["name"] == "x"
    def test_stricter(self):
        assert 1 == 2, "one launch"
        self.assertEqual("gemm", "bmm")
        torch.testing.assert_close(torch.ones(2), torch.ones(2))
    def test_wrong_after_stricter(self):
        self.assertEqual(1, 2)
        torch.testing.assert_close(torch.ones(2), torch.zeros(2))
    def test_wrong(self):
        self.assertTrue(torch.allclose(torch.ones(2), torch.zeros(2)))
    def test_wrong_plain(self):
        assert torch.equal(torch.ones(2), torch.zeros(2))
    def test_wrong_bound(self):
        self.assertLess((torch.ones(2) - 0.5).max().item(), 1e-3)
    def test_false_is_expected(self):
        self.assertFalse(torch.equal(torch.ones(2), torch.zeros(2)))
        self.assertEqual(1, 2)
    def test_looks_for_another_graph(self):
        self.assertEqual(None._attrs["op"], "permute")
    def test_refused(self):
        Tensor(shape=[2], dtype="nonsense")
    def test_error(self):
        Tensor(shape=[2]).unknown
    def test_skipped(self):
        self.skipTest("needs ROCm")
    def test_timeout(self):
        time.sleep(600)
    def test_crash(self):
        os.write(2, b"last words")
        os.abort()
"""


def test_no_card_is_asked_for_before_processes_are_forked() -> None:
    code = f"import importlib, sys; [importlib.import_module(m) for m in {run.PRELOADED}]; print('tvm_ffi' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True, check=True)
    assert ran.stdout == "False\n"


def test_a_suite_runs_once(tmp_path: Path) -> None:
    tests = tmp_path / "checkout" / "tests" / "unittest"
    tests.mkdir(parents=True)
    (tests / "test_client.py").write_text(CLIENT)
    (tests / "test_other.py").write_text("import aitemplate.unknown\ndef test_a(): ...\n")
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "tests.clients.run", "--suite", "aitemplate", "--checkout", str(tmp_path / "checkout")]
    command += ["--out", str(out), "--jobs", "2", "--per-test", "12"]
    first = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    found = {row["test"].rpartition("::test_")[2]: row for row in rows}
    kinds = {name: row["kind"] for name, row in found.items()}
    assert kinds == {
        "pass": "pass", "stricter": "stricter", "wrong_after_stricter": "wrong", "wrong": "wrong", "wrong_plain": "wrong",
        "wrong_bound": "wrong", "false_is_expected": "stricter", "looks_for_another_graph": "stricter", "refused": "refused", "error": "error", "skipped": "skipped",
        "timeout": "timeout", "crash": "crash", "a": "refused",
    }  # fmt: skip
    assert found["stricter"]["compared"] == found["pass"]["compared"] == 1
    assert "last words" in found["crash"]["reason"]
    assert "13 fair: 1 pass, 3 with a stricter assertion, 4 wrong" in first.stdout
    out.write_text(out.read_text() + '{"test": "cut o')
    second = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True)
    assert second.stdout.count("Client::test_wrong (") == 0
    assert "0 of 14 tests were not tried" in second.stdout


def gone(pid: int) -> bool:
    """Whether a process ends soon."""
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or ") Z " in Path(f"/proc/{pid}/stat").read_text():
            return True
        time.sleep(0.05)
    return False


def _spawn(_: str, file: Path) -> str:
    file.write_text(str(subprocess.Popen(["sleep", "600"]).pid))
    time.sleep(600)
    return "slept"


def test_children_end_with_their_test(tmp_path: Path) -> None:
    found = dict(each_alone({"a": tmp_path / "pid"}, _spawn, lambda stage, error: stage, limit=1))
    assert found == {"a": "time"}
    assert gone(int((tmp_path / "pid").read_text()))


def test_tests_end_with_the_harness(tmp_path: Path) -> None:
    code = f"""
import os, time
from pathlib import Path
from tests.alone import each_alone
def work(name, file):
    file.with_suffix(".part").write_text(str(os.getpid()))
    file.with_suffix(".part").rename(file)
    time.sleep(600)
list(each_alone({{"a": Path({str(tmp_path)!r}) / "pid"}}, work, lambda stage, error: stage))
"""
    harness = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    while not (tmp_path / "pid").exists():
        assert harness.poll() is None
        time.sleep(0.05)
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait()
    assert gone(int((tmp_path / "pid").read_text()))
