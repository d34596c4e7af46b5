"""A replica of a deployment: the class that Ray Serve starts in an actor."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from ait_mlir.errors import AitError, InputError
from ait_mlir.runtime.from_host import Array
from ait_mlir.serve import messages
from ait_mlir.serve.joining import Request
from ait_mlir.serve.ray_library import metrics, responses, serve
from ait_mlir.serve.server import Answer, Server

_LOG = logging.getLogger("ray.serve")
_SECONDS = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
_ROWS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]


class Replica:
    """Answers requests to the model of an artifact, over HTTP and by handles of Ray Serve."""

    def __init__(
        self,
        artifact: str,
        batch: str | bool,
        max_rows: int | None,
        wait_seconds: float,
        num_runtimes: int,
        map_weights: bool,
    ) -> None:
        self._requests = metrics.Counter(
            "ait_requests", description="Requests by their outcome: ok, refused, failed.", tag_keys=("outcome",)
        )
        self._rows = metrics.Histogram("ait_batch_rows", description="Rows of a run.", boundaries=_ROWS)
        self._seconds = metrics.Histogram("ait_run_seconds", description="Seconds of a run.", boundaries=_SECONDS)
        self._server = Server(artifact, batch, max_rows, num_runtimes, self._on_run, map_weights)
        self._wait_seconds = wait_seconds
        self._batched: Any = None

    async def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs for NumPy arrays by name, for callers with a handle of the deployment. Raises `InputError`."""
        with self._counting():
            return await self._answered(self._server.request(inputs))

    async def __call__(self, request: Any) -> Any:
        """The answer to a request over HTTP."""
        if request.method == "GET":
            return _json(200, self._server.description())
        if request.method != "POST":
            return _json(405, {"error": f"{request.method} is not supported: POST runs the model, GET describes it"})
        body: bytes = await request.body()
        format = messages.format_of(body)
        try:
            with self._counting():
                inputs = messages.read(body, self._server.manifest.inputs)
                outputs = await self._answered(self._server.request(inputs))
                return responses.Response(messages.write(outputs, format), media_type=messages.TYPES[format])
        except InputError as error:
            return _json(400, {"error": str(error)})
        except MemoryError as error:
            return _json(503, {"error": str(error) or "there is not enough memory"})
        except AitError as error:
            return _json(500, {"error": str(error)})
        except Exception:
            _LOG.exception("a request failed")
            return _json(500, {"error": "the request failed; the log of the replica has the reason"})

    @contextmanager
    def _counting(self) -> Generator[None]:
        """Count a request by its outcome."""
        outcome = "failed"
        try:
            yield
            outcome = "ok"
        except InputError:
            outcome = "refused"
            raise
        finally:
            self._requests.inc(tags={"outcome": outcome})

    async def reconfigure(self, user_config: Mapping[str, Any]) -> None:
        """Change the weights: `{"weights": FILE}`, or `{}` for those of the artifact."""
        if unknown := sorted(user_config.keys() - {"weights"}):
            raise InputError(f"user_config has '{unknown[0]}', expected 'weights' alone")
        await self._server.set_weights(user_config.get("weights"))

    async def check_health(self) -> None:
        """Raise an error if the model cannot run: Ray Serve then replaces this replica."""
        await self._server.check_health()

    async def _answered(self, request: Request) -> dict[str, Array]:
        if self._server.dim is None or not self._wait_seconds:
            (answer,) = self._server.submit([request])
            return await answer
        if self._batched is None:
            self._batched = serve.batch(max_batch_size=self._server.limit, batch_wait_timeout_s=self._wait_seconds)(
                self._queue
            )
        return await (await self._batched(request))

    async def _queue(self, requests: list[Request]) -> list[Answer]:
        """Queue requests that came together. It returns at once, so that others that come during a run can share the
        next run with them."""
        return self._server.submit(requests)

    def _on_run(self, rows: int, seconds: float) -> None:
        self._rows.observe(rows)
        self._seconds.observe(seconds)


def _json(status: int, content: Any) -> Any:
    return responses.Response(json.dumps(content), status, media_type="application/json")
