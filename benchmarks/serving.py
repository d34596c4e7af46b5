"""The cost of a request to a served model beside one to a deployment of Ray Serve that does nothing.

    python -m benchmarks.serving

Both have one replica on the same machine, get the same body, and answer with the same bytes. Each round sends requests
to one, then to the other, over open connections; a ratio is the median over the rounds. The model is one small launch,
so that all but the launch is the cost of serving. The last column has `batch_wait_timeout_s`, and so Serve's batching.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ait_mlir.driver import compile_module, read_module
from ait_mlir.errors import AitError
from ait_mlir.options import CompileOptions
from ait_mlir.serve import messages
from benchmarks import measure

TEXT = """
ait.graph @tiny(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 64} {
  %y = ait.relu %x : !ait.tensor<b x 8 x f32>
  ait.output "y" %y : !ait.tensor<b x 8 x f32>
}
"""
PORT, CONNECTIONS = 8765, 8
Times: TypeAlias = list[list[float]]
"""Milliseconds by route and round."""


class Nothing:
    """A deployment that reads a request and answers with the same bytes each time."""

    def __init__(self, answer: bytes) -> None:
        from starlette.responses import Response

        self.answer, self.response = answer, Response

    async def __call__(self, request: Any) -> Any:
        await request.body()
        return self.response(self.answer, media_type="application/octet-stream")


@contextmanager
def cluster() -> Iterator[None]:
    """Ray Serve on this machine, behind `PORT`."""
    import ray
    from ray import serve

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet = {"log_level": "ERROR", "enable_access_log": False}
    try:
        ray.init(
            num_cpus=2,
            object_store_memory=200 << 20,
            include_dashboard=False,
            logging_level="ERROR",
            log_to_driver=False,
        )
        serve.start(http_options={"host": "127.0.0.1", "port": PORT}, logging_config=quiet)
        yield
    finally:
        serve.shutdown()
        ray.shutdown()


def client(route: str, body: bytes, answer: bytes) -> Callable[[], float]:
    """A function that sends a request over a connection of its own, and returns the seconds until the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", PORT)

    def send() -> float:
        start = time.perf_counter()
        connection.request("POST", route, body)
        response = connection.getresponse()
        found = response.read()
        seconds = time.perf_counter() - start
        if response.status != 200 or found != answer:
            raise RuntimeError(f"{route} answered {response.status}: {found[:200]!r}")
        return seconds

    return send


def medians(routes: list[str], body: bytes, answer: bytes, requests: int, rounds: int) -> Times:
    """For each route the median milliseconds of a request in each round, the routes in turns."""
    clients = {route: client(route, body, answer) for route in routes}
    found: dict[str, list[float]] = {route: [] for route in routes}
    for number in range(rounds + 1):
        for route, send in clients.items():
            seconds = [send() for _ in range(requests)]
            found[route] += [statistics.median(seconds) * 1e3] if number else []  # the first round is a warm-up
    return list(found.values())


def busy(routes: list[str], body: bytes, answer: bytes, connections: int, requests: int, rounds: int) -> Times:
    """For each route the milliseconds of a round divided by its requests, which come over several connections."""
    found: dict[str, list[float]] = {route: [] for route in routes}
    clients = {route: [client(route, body, answer) for _ in range(connections)] for route in routes}
    for number in range(rounds + 1):
        for route, sends in clients.items():
            with ThreadPoolExecutor(connections) as threads:
                start = time.perf_counter()
                list(threads.map(lambda send: [send() for _ in range(requests)], sends))
                ms = (time.perf_counter() - start) / requests / connections * 1e3
            found[route] += [ms] if number else []
    return list(found.values())


def row(name: str, times: Times) -> list[str]:
    """A row: the median over the rounds of each route, and of the ratio to the first route in the same round."""
    cells = [name, f"{statistics.median(times[0]):.2f}"]
    for values in times[1:]:
        ratio = statistics.median(value / nothing for value, nothing in zip(values, times[0], strict=True))
        cells += [f"{statistics.median(values):.2f}", f"{ratio:.2f}"]
    return cells


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=16, help="requests of a round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=60, help="rounds (default: %(default)s)")
    options = parser.parse_args()
    try:
        from ray import serve

        from ait_mlir.serve import deployment
    except (ImportError, AitError) as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 1
    x = np.random.default_rng(0).standard_normal((1, 8), np.float32)
    y = np.maximum(x, 0)
    bodies = {
        "json": (json.dumps({"inputs": {"x": x.tolist()}}).encode(), messages.write({"y": y}, "json")),
        "npy": (messages.write({"x": x}, "npy"), messages.write({"y": y}, "npy")),
    }
    rows = [["ms of a request", "nothing", "a model", "ratio", "waiting 0.1 ms", "ratio"]]
    with tempfile.TemporaryDirectory() as folder, cluster():
        path = Path(folder) / "tiny.mlir"
        path.write_text(TEXT)
        artifact = compile_module(read_module(path)[0], CompileOptions("cpu"), output=Path(folder) / "tiny.ait")
        actor = {"ray_actor_options": {"num_cpus": 0.5}}
        for route, seconds in (("model", 0.0), ("waiting", 0.0001)):
            made = deployment(artifact, name=route, batch_wait_timeout_s=seconds, **actor)
            serve.run(made, name=route, route_prefix=f"/{route}")
        for kind, (body, answer) in bodies.items():
            nothing = serve.deployment(Nothing, max_ongoing_requests=128, **actor).bind(answer)
            serve.run(nothing, name="nothing", route_prefix="/nothing")
            routes = ["/nothing", "/model", "/waiting"]
            rows.append(row(kind, medians(routes, body, answer, options.requests, options.rounds)))
            times = busy(routes, body, answer, CONNECTIONS, options.requests // 2, options.rounds)
            rows.append(row(f"{kind}, {CONNECTIONS} connections", times))
    print(measure.table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
