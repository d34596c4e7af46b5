"""`examples/serve.py` as a user runs it: requests, bad requests, a change of weights and a killed replica under load."""

from __future__ import annotations

import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray.serve", reason="the extra `ray` is not installed")

from ait_mlir.runtime import Model
from examples import serve as example
from tests.examples.support import ROOT, make_tools

pytestmark = pytest.mark.full  # starting and stopping Ray alone takes 20 s
CONNECTIONS = 4


class Program:
    """The running example, and local models with the weights that it serves."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "examples/serve.py", "--port", str(self.port), "--layers", "1", "--hidden", "64"]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=make_tools(folder / "bin"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.printed = [self.line() for _ in range(3)]
        self.text, images, encoder = example.build(folder, 1, 64, "cpu")
        self.encoder, self.images = encoder, Model(images)
        self.models = [Model(self.text)]

    def line(self) -> str:
        """The next line that the program prints, but for those of Ray."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(("curl", "the text")):
                return line
        raise AssertionError(f"the program ended with {self.process.wait()}")

    def change_weights(self) -> None:
        assert self.process.stdin is not None
        model = Model(self.text)
        model.set_many_constants(example.random_weights(self.encoder, len(self.models)))
        self.models.append(model)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.line() == f"the text encoder has the weights text-{len(self.models) - 1}.safetensors\n"

    def replicas(self) -> dict[int, str]:
        """The processes of the replicas of the text encoder, and when each has started."""
        found: dict[int, str] = {}
        for folder in Path("/proc").iterdir():
            try:
                if "ServeReplica:text" in (folder / "cmdline").read_text() and self.process.pid in ancestors(folder):
                    found[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()[19]
            except (OSError, ValueError):
                continue
        return found

    def post(self, route: str, body: bytes, connection: http.client.HTTPConnection | None = None) -> tuple[int, bytes]:
        connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", route, body)
        response = connection.getresponse()
        return response.status, response.read()


def ancestors(folder: Path) -> Iterator[int]:
    while folder.name not in ("0", "1"):
        folder = folder.parent / (folder / "stat").read_text().rpartition(")")[2].split()[1]
        yield int(folder.name)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    made = Program(tmp_path_factory.mktemp("serve"))
    yield made
    made.process.send_signal(signal.SIGINT)
    assert made.process.wait(60) == 0


def ids_of(number: int) -> Any:
    """The ids of a text: its length and its number of texts change from request to request."""
    random = np.random.default_rng(number)
    return random.integers(0, example.VOCABULARY, (1 + number % 3 // 2, (5, 9, 33)[number % 3]))


def body_of(ids: Any) -> bytes:
    return json.dumps({"inputs": {"ids": ids.tolist()}}).encode()


def fits(model: Model, ids: Any, content: bytes) -> bool:
    expected = model.run_with_tensors({"ids": ids})["vector"]
    found = np.asarray(json.loads(content)["outputs"]["vector"])
    return found.shape == expected.shape and np.allclose(found, expected, atol=1e-4)


class Load:
    """Requests from several connections until `stop`: the ids of each, its status and its answer."""

    def __init__(self, program: Program) -> None:
        self.program, self.done = program, threading.Event()
        self.seen: list[tuple[Any, int, bytes]] = []
        self.threads = [threading.Thread(target=self.send, args=(n,)) for n in range(CONNECTIONS)]
        for thread in self.threads:
            thread.start()

    def send(self, number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.program.port, timeout=60)
        while not self.done.is_set():
            number += CONNECTIONS
            ids = ids_of(number)
            self.seen.append((ids, *self.program.post("/text", body_of(ids), connection)))

    def wait(self, count: int) -> None:
        """Wait for so many further answers."""
        until = len(self.seen) + count
        while len(self.seen) < until:
            assert all(thread.is_alive() for thread in self.threads)
            time.sleep(0.01)

    def stop(self) -> list[tuple[Any, int, bytes]]:
        self.done.set()
        for thread in self.threads:
            thread.join()
        return self.seen


def test_the_printed_commands_run(program: Program) -> None:
    text, images, about = program.printed
    found = subprocess.run(text, shell=True, capture_output=True, text=True, check=True).stdout
    assert fits(program.models[-1], np.array([[17, 4, 256]]), found.encode())
    described = json.loads(subprocess.run(about, shell=True, capture_output=True, text=True, check=True).stdout)
    assert described["batch"] == {"dim": "batch", "rows": example.BATCH}
    image = images.split("@")[1].split()[0]
    status, content = program.post("/images", Path(image).read_bytes())
    expected = program.images.run_with_tensors({"image": np.load(image)})["logits"]
    assert status == 200 and np.allclose(np.load(io.BytesIO(content)), expected, atol=1e-4)


def test_bad_requests_are_refused_among_good_ones(program: Program) -> None:
    bad = {
        b"{": "neither JSON nor",
        b'{"inputs": {"words": [[1]]}}': "there is no input 'words'",
        b'{"inputs": {"ids": [[1.5]]}}': "input 'ids' is int64: expected integers",
        b'{"inputs": {"ids": [1]}}': "input 'ids'",
        body_of(np.zeros((1, 129), int)): "input 'ids' has extent 129 on axis 1, so seq = 129",
        body_of(np.zeros((17, 1), int)): "input 'ids' has extent 17 on axis 0, so batch = 17",
    }
    load = Load(program)
    for body, told in bad.items():
        status, content = program.post("/text", body)
        assert status == 400 and told in json.loads(content)["error"] and b"Traceback" not in content
    load.wait(10)
    assert all(status == 200 and fits(program.models[-1], ids, content) for ids, status, content in load.stop())


def test_weights_change_under_load(program: Program) -> None:
    before = program.replicas()
    load = Load(program)
    load.wait(20)
    program.change_weights()
    changed = len(load.seen) + CONNECTIONS  # requests that were sent before the change may be answered after it
    load.wait(20)
    old, new = program.models[-2:]
    for number, (ids, status, content) in enumerate(load.stop()):
        assert status == 200 and (fits(new, ids, content) or (number < changed and fits(old, ids, content)))
    assert program.replicas() == before and len(before) == 2


def test_a_killed_replica_loses_no_request_that_waits(program: Program) -> None:
    before = program.replicas()
    load = Load(program)
    load.wait(20)
    os.kill(next(iter(before)), signal.SIGKILL)
    load.wait(100)
    deadline = time.monotonic() + 120
    while len(now := program.replicas()) < 2 or now == before:
        assert time.monotonic() < deadline, "the killed replica was not replaced"
        time.sleep(0.5)
    load.wait(20)
    failed = 0
    for ids, status, content in load.stop():
        assert b"Traceback" not in content
        if status == 200:
            assert fits(program.models[-1], ids, content)
        else:
            assert status >= 500
            failed += 1
    assert failed <= CONNECTIONS  # those that the replica had begun


def test_a_wrong_option_is_told_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "examples/serve.py", "--hidden", "65"]
    done = subprocess.run(command, cwd=ROOT, env=make_tools(tmp_path), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.endswith("--hidden 65: expected a multiple of 64\n")
