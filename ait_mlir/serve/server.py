"""A model that serves requests: it joins those that wait, runs them in threads, and changes its weights under load."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias, cast

import numpy as np

from ait_mlir.dtypes import numpy_dtype
from ait_mlir.errors import ArtifactError, InputError, RunError
from ait_mlir.runtime import AITData, Model, artifact
from ait_mlir.runtime.from_host import Array, run_on_host
from ait_mlir.runtime.manifest import Manifest
from ait_mlir.runtime.safetensors_part import decode
from ait_mlir.serve.joining import BatchDim, Request, find_batch_dim, join, joined_shapes, request_of, split, take
from ait_mlir.serve.rows import problem_of_rows, random_inputs, small_dims

Found: TypeAlias = dict[str, Array] | Exception
Answer: TypeAlias = asyncio.Future[dict[str, Array]]
_ADDRESS = 1 << 12
_SIGNATURES = 1 << 12
"""The most names, shapes and dtypes of requests whose check is remembered."""
_SHORT = 0.0005
"""Seconds of a run that takes the event loop less time than to hand it to a thread and back."""
_GROWTH = 1.25
"""How much longer than before a run is taken to be after one that was long: others may use the processor."""


@dataclass(eq=False)
class Waiting(Request):
    """A request that waits for its answer."""

    answer: Answer


class Server:
    """Answers requests to the model of an artifact. All methods but the constructor are called on one event loop.

    `batch` is the dim to join requests along, True for the first one that can be, False for none. A run has at most
    `max_rows` rows, and as many runs as the model has runtimes are under way at the same time. `on_run` is told of
    each run: its rows and its seconds.

    A batch dim that was found by the shapes, but whose rows influence each other in runs with random inputs, is not
    used; one that was named is an `InputError` then. With `map_weights`, the servers of a machine share weights on a
    CPU. Other errors are those of `Model`.
    """

    def __init__(
        self,
        path: str,
        batch: str | bool = True,
        max_rows: int | None = None,
        num_runtimes: int = 1,
        on_run: Callable[[int, float], None] = lambda rows, seconds: None,
        map_weights: bool = False,
    ) -> None:
        self.path = path
        self.weights: str | None = None
        """The file of the weights; None for those of the artifact."""
        self.unused_dim = ""
        """Why requests are not joined along the dim that the shapes allow, or ""."""
        self._maps = map_weights
        self._model = Model(path, num_runtimes, map_constants=map_weights)
        self.manifest = cast(Manifest, self._model.manifest)
        self._dtypes = {tensor.name: numpy_dtype(tensor.dtype) for tensor in self.manifest.outputs}
        self._wanted = batch
        self.dim: BatchDim | None = find_batch_dim(self.manifest, batch)
        self._max_rows = max_rows
        self._on_run = on_run
        self._waiting: list[Waiting] = []
        self._shapes = lru_cache(_SIGNATURES)(self._infer)
        self._threads = ThreadPoolExecutor(num_runtimes, "runs")
        self._free = num_runtimes
        self._seconds: dict[int, float] = {}
        """The seconds of a run with inputs of so many bytes, by the number of bits of their number."""
        self._changing = asyncio.Lock()
        self._is_in_doubt = False
        self._has_weights = False
        self._check_weights()

    @property
    def limit(self) -> int:
        """The most rows of a run of several requests; 1 if requests are not joined."""
        return 1 if self.dim is None else min(self.dim.hi, self._max_rows or self.dim.hi)

    def request(self, inputs: Mapping[str, Array]) -> Request:
        """The request with these inputs. Raises `InputError` like `Model.run` unless they fit the model."""
        self._require_weights()
        for name, x in inputs.items():
            if not isinstance(cast(object, x), np.ndarray):
                raise InputError(f"input '{name}' is a {type(x).__name__}, expected a NumPy array")
            if not x.dtype.isnative:
                raise InputError(f"input '{name}' has the byte order of another processor")
        shapes = self._shapes(tuple((name, x.shape, x.dtype.name) for name, x in inputs.items()))
        # the runtime takes such arrays as they are
        return request_of({n: np.require(x, requirements=["C", "A", "W"]) for n, x in inputs.items()}, shapes, self.dim)

    def _infer(self, tensors: tuple[tuple[str, Any, Any], ...]) -> Mapping[str, tuple[int, ...]]:
        """The shapes of the outputs for inputs of these names, shapes and dtypes, which are checked."""
        # no data are read, so any address serves each target
        return self._model.infer_output_shapes({name: AITData(_ADDRESS, *info) for name, *info in tensors})

    def submit(self, requests: Sequence[Request]) -> list[Answer]:
        """Queue requests; returns their answers, of which each has the outputs or an error of its own."""
        loop = asyncio.get_running_loop()
        added = [Waiting(r.inputs, r.shapes, r.rows, r.key, loop.create_future()) for r in requests]
        self._waiting += added
        self._begin(loop)
        return [request.answer for request in added]

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin the runs that can begin: short ones here, others in threads."""
        while self._waiting and self._free:
            taken = [r for r in take(self._waiting, self.limit) if not r.answer.done()]  # others were cancelled
            if not taken:
                continue
            if self._seconds.get(_size(taken), 1.0) < _SHORT:
                _answer(taken, self._run(taken))
                continue
            self._free -= 1
            run = loop.run_in_executor(self._threads, self._run, taken)
            run.add_done_callback(partial(self._end, loop, taken))

    def _end(self, loop: asyncio.AbstractEventLoop, taken: Sequence[Waiting], run: asyncio.Future[list[Found]]) -> None:
        self._free += 1
        _answer(taken, run.result())
        self._begin(loop)

    def _run(self, requests: Sequence[Request]) -> list[Found]:
        """Run requests together. If that fails, each is run for itself, so that it gets its own outputs or error."""
        start = time.perf_counter()
        try:
            outputs = self._model_run(join(requests, self.dim), requests)
        except Exception as error:
            if len(requests) > 1:
                return [result for request in requests for result in self._run([request])]
            if isinstance(error, RunError) and self._model.target == "cpu":
                return [InputError(str(error))]  # there, values alone make a run fail, as an index outside of a table
            self._is_in_doubt = self._is_in_doubt or not isinstance(error, InputError)
            return [error]
        seconds = time.perf_counter() - start
        size = _size(requests)
        self._seconds[size] = min(seconds, _GROWTH * self._seconds.get(size, seconds))
        self._on_run(sum(request.rows for request in requests), seconds)
        return [*split(outputs, requests)]

    def _model_run(self, inputs: Mapping[str, Array], requests: Sequence[Request]) -> Mapping[str, Array]:
        """The outputs of the model for the inputs of requests that share a run."""
        model = self._model
        if model.target != "cpu" or model.state:
            return run_on_host(model, inputs)
        shapes = joined_shapes(requests)  # `run_on_host` would infer them again
        return model.run(inputs, {name: np.empty(shape, self._dtypes[name]) for name, shape in shapes.items()})

    async def set_weights(self, weights: str | None) -> None:
        """Run with the weights of a safetensors file; None for those of the artifact. Runs go on meanwhile, and each
        reads the old weights or the new ones.

        A constant of the model that the file lacks has the value of the artifact, whatever was set before. Raises
        `InputError` for names, shapes or dtypes that are not those of the model; the weights stay as they were then.
        """
        async with self._changing:
            if weights == self.weights:
                return
            await asyncio.get_running_loop().run_in_executor(None, partial(self._set_weights, weights))

    def _set_weights(self, weights: str | None) -> None:
        if weights is None:
            # the old one is freed after its last run
            self._model = Model(self.path, self._model.num_runtimes, map_constants=self._maps)
        elif self._maps:
            digest = _digest(weights)
            self._model.map_double_buffer_constants(digest, partial(self._complete, weights, digest))
            self._model.swap_constants()
        elif self._has_weights:
            self._model.set_many_double_buffer_constants(self._complete(weights))
            self._model.swap_constants()
        else:
            self._model.set_many_constants(self._complete(weights))
        self.weights = weights
        if not self._has_weights:
            self._check_weights()

    def _complete(self, path: str, digest: str = "") -> dict[str, Any]:
        """The values of all constants: those of a file, and for the others those of the artifact. With `digest`, raises
        `InputError` for a file with another one."""
        given = read_weights(path)
        if digest and _digest(path) != digest:
            raise InputError(f"the weights {path} were written while they were read: give new weights a new path")
        names = self._model.get_constant_names(False)
        if unknown := sorted(given.keys() - set(names)):
            raise InputError(f"{path} has '{unknown[0]}', which model {self._model.name} does not have")
        lacking = [name for name in names if name not in given]
        stored = artifact.read(self.path).constants if lacking else {}
        if nowhere := [name for name in lacking if name not in stored]:
            raise InputError(f"{path} lacks '{nowhere[0]}', which the artifact does not have either")
        return {**given, **{name: stored[name] for name in lacking}}

    def _require_weights(self) -> None:
        if not self._has_weights:
            unset = self._model.get_constant_names(unset_only=True)
            raise InputError(
                f"constant '{unset[0]}' of model {self._model.name} has no value: deploy it with a file of weights"
            )

    def _check_weights(self) -> None:
        """Note whether all constants have values; if so, check that the rows of a batch are independent."""
        self._has_weights = not self._model.get_constant_names(unset_only=True)
        if not self._has_weights:
            return
        if self.dim is not None and (problem := problem_of_rows(self._model, self.dim)):
            if isinstance(self._wanted, str):
                raise InputError(f"requests cannot be joined along dim '{self._wanted}': {problem}")
            self.dim, self.unused_dim = None, f"{self.dim.name}: {problem}"

    async def check_health(self) -> None:
        """Raise an error if the model has no weights, or cannot run any more: after a failed run it is run again."""
        self._require_weights()
        if self._is_in_doubt:
            await asyncio.get_running_loop().run_in_executor(None, self._run_again)

    def _run_again(self) -> None:
        run_on_host(self._model, random_inputs(self._model, small_dims(self._model), 0))
        self._is_in_doubt = False

    def description(self) -> dict[str, Any]:
        """What a client has to know, as JSON."""
        dim = self.dim
        return {
            "model": self.manifest.name,
            "target": self.manifest.target,
            **{
                role: {t.name: {"dtype": t.dtype, "shape": list(t.shape)} for t in tensors}
                for role, tensors in (("inputs", self.manifest.inputs), ("outputs", self.manifest.outputs))
            },
            "dims": {d.name: [d.lo, d.hi] for d in self.manifest.dims},
            "batch": None if dim is None else {"dim": dim.name, "rows": self.limit},
            "not_joined_along": self.unused_dim or None,
            "weights": None if self.weights is None else os.path.basename(self.weights),
        }


def _answer(requests: Sequence[Waiting], results: Sequence[Found]) -> None:
    """Give requests their results, but for those that were cancelled."""
    for request, result in zip(requests, results, strict=True):
        if request.answer.done():
            continue
        if isinstance(result, Exception):
            request.answer.set_exception(result)
        else:
            request.answer.set_result(result)


def read_weights(path: str) -> dict[str, Array]:
    """The tensors of a safetensors file. Raises `InputError`."""
    try:
        return decode(np.fromfile(path, np.uint8), f"{path} is")
    except OSError as error:
        raise InputError(f"the weights {path} cannot be read: {error.strerror}") from None
    except ArtifactError as error:
        raise InputError(str(error)) from None


def _digest(path: str) -> str:
    """The BLAKE3 of a file of weights. Raises `InputError`."""
    digest = artifact.parallel_blake3()
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 24):
                digest.update(block)
    except OSError as error:
        raise InputError(f"the weights {path} cannot be read: {error.strerror}") from None
    return digest.hexdigest()


def _size(requests: Sequence[Request]) -> int:
    return sum(x.nbytes for request in requests for x in request.inputs.values()).bit_length()
