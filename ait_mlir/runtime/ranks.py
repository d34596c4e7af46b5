"""The processes that run one model, one for each rank: how they find each other, and what they must agree on.

`mpirun` starts processes that Open MPI connects. `torchrun`, and whoever else sets RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT, starts processes that find each other by the store of `torch.distributed`; each two of them then have a
socket. The runtime library of the CPU has these connections, that of a GPU calls it.
"""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import os
import secrets
import socket
import sys
import time
from collections.abc import Generator
from datetime import timedelta
from typing import Any, cast

from ait_mlir.errors import AitError, RunError
from ait_mlir.host.settings import whole_number
from ait_mlir.lowering.build import build_runtime
from ait_mlir.lowering.target import TargetKind
from ait_mlir.runtime.loading import runtime_library

_SECONDS = 300
"""How long a rank waits for another one, unless `AIT_RANKS_TIMEOUT` says otherwise."""
_PREFIX = "ait_mlir/ranks"
_TOKEN_BYTES = 16
_joined = False


def rank_among(ranks: int, digest: int) -> int:
    """This process's number among the ranks that run one model, all of which must have the same digest.

    Raises `RunError` with the reason: there are more or fewer processes, what connects them is missing, one does not
    answer or has another file.
    """
    _join()
    return _agree(ranks, digest, "")


@contextlib.contextmanager
def together(ranks: int, digest: int) -> Generator[None]:
    """A context that all ranks leave without an error, or none: the error of one is a `RunError` on the others."""
    try:
        yield
    except AitError as error:
        with contextlib.suppress(RunError):
            _agree(ranks, digest, str(error) or type(error).__name__)
        raise
    _agree(ranks, digest, "")


def own_device() -> int | None:
    """The number of this rank's card on its host, as `torchrun` or `mpirun` say; None if they do not."""
    for name in ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"):
        if (text := os.environ.get(name, "")).isdecimal():
            return int(text)
    return None


def connect_library(kind: TargetKind) -> None:
    """Let the runtime library of a GPU use the connections of this process."""
    link = _library().ait_ranks_link
    link.restype = ctypes.c_void_p
    runtime_library(kind).use_ranks_link(link())


def _library() -> ctypes.CDLL:
    runtime_library("cpu")
    return ctypes.CDLL(str(build_runtime("cpu")))


def _agree(ranks: int, digest: int, problem: str) -> int:
    """This process's number; raises `RunError` with the problem of any rank."""
    rank, reason = ctypes.c_int64(), ctypes.create_string_buffer(1024)
    failed = _library().ait_ranks_agree(
        ctypes.c_int64(ranks),
        ctypes.c_uint64(digest),
        ctypes.c_char_p(problem.encode()),
        ctypes.byref(rank),
        reason,
        ctypes.c_int64(len(reason)),
    )
    if failed:
        raise RunError(reason.value.decode(errors="replace"))
    return rank.value


def _join() -> None:
    """Connect the processes that `torchrun` started, at the first call. Open MPI connects those of `mpirun`."""
    global _joined
    seconds = whole_number("AIT_RANKS_TIMEOUT", 1_000_000) or _SECONDS  # which the runtime library reads, too
    if _joined or "OMPI_COMM_WORLD_SIZE" in os.environ or not _is_started_by_torch():
        return
    store, rank, size = _store(seconds)
    sockets = connect(store, rank, size, seconds)
    _library().ait_ranks_join(ctypes.c_int64(rank), ctypes.c_int64(size), (ctypes.c_int32 * size)(*sockets))
    _joined = True


def _group() -> Any:
    """`torch.distributed`, if this process has a group of real processes there; else None."""
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return None if distributed.get_backend() == "fake" else distributed


def _is_started_by_torch() -> bool:
    return _group() is not None or ("RANK" in os.environ and "WORLD_SIZE" in os.environ)


def _store(seconds: float) -> tuple[Any, int, int]:
    """The store of `torch.distributed`, this process's number and the number of processes."""
    if (group := _group()) is not None:
        return group.distributed_c10d._get_default_store(), group.get_rank(), group.get_world_size()
    try:
        import torch.distributed as distributed
    except ImportError as error:
        raise RunError(
            f"RANK and WORLD_SIZE are set, but the store of torch.distributed cannot be used ({error}): pip install "
            "torch, or start the ranks with mpirun"
        ) from error
    wait = timedelta(seconds=seconds)
    named = f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}"
    try:
        store, rank, size = next(iter(cast(Any, distributed).rendezvous("env://", timeout=wait)))
    except Exception as error:  # torch raises many kinds: a wrong number, a port in use, nobody there
        place = f"{os.environ.get('MASTER_ADDR', '?')}:{os.environ.get('MASTER_PORT', '?')}"
        raise RunError(f"{named}: the ranks do not meet at {place} (MASTER_ADDR, MASTER_PORT): {error}") from error
    return store, int(rank), int(size)


def connect(store: Any, rank: int, size: int, seconds: float) -> list[int]:
    """A socket to each other rank, by its number; -1 for the own one. Each rank listens, and a later one connects.

    `store` has `set`, `get`, `wait` and `check` of `torch.distributed.Store`. Raises `RunError` with the ranks that do
    not come within `seconds`.
    """
    until = time.monotonic() + seconds
    found = [-1] * size
    own = _own_address(os.environ.get("MASTER_ADDR") or "127.0.0.1")
    family = socket.AF_INET6 if ipaddress.ip_address(own).version == 6 else socket.AF_INET
    with contextlib.ExitStack() as opened:
        server = opened.enter_context(socket.create_server((own, 0), family=family, backlog=size))
        if rank == 0:
            store.set(f"{_PREFIX}/token", secrets.token_hex(_TOKEN_BYTES))
        store.set(f"{_PREFIX}/{rank}", f"{own} {server.getsockname()[1]}")
        names = [f"{_PREFIX}/{other}" for other in range(size)]
        try:
            store.wait([*names, f"{_PREFIX}/token"], timedelta(seconds=seconds))
        except Exception as error:  # torch raises RuntimeErrors of several classes
            missing = [other for other, name in enumerate(names) if not store.check([name])]
            raise _late(rank, size, missing, seconds) from error
        token = bytes(store.get(f"{_PREFIX}/token"))
        try:
            for other in range(rank):
                host, port = bytes(store.get(names[other])).decode().split()
                made = socket.create_connection((host, int(port)), timeout=max(until - time.monotonic(), 0.001))
                opened.callback(made.close)
                made.sendall(token + rank.to_bytes(4))
                found[other] = _kept(made)
            while -1 in found[rank + 1 :]:
                server.settimeout(max(until - time.monotonic(), 0.001))
                made, _ = server.accept()
                with contextlib.closing(made):
                    made.settimeout(max(until - time.monotonic(), 0.001))
                    said = made.recv(len(token) + 4, socket.MSG_WAITALL)
                    other = int.from_bytes(said[len(token) :])
                    if secrets.compare_digest(said[: len(token)], token) and rank < other < size:
                        found[other] = _kept(made)
        except OSError as error:
            for number in filter(lambda number: number >= 0, found):
                os.close(number)
            missing = [other for other, number in enumerate(found) if number < 0 and other != rank]
            raise _late(rank, size, missing, seconds) from error
    return found


def _kept(made: socket.socket) -> int:
    """The number of a copy of a socket, which stays open."""
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return os.dup(made.fileno())


def _late(rank: int, size: int, missing: list[int], seconds: float) -> RunError:
    named = ", ".join(f"rank {other}" for other in missing) or "another rank"
    return RunError(f"rank {rank} of {size}: {named} did not come within {seconds:g} seconds (AIT_RANKS_TIMEOUT)")


def _own_address(master: str) -> str:
    """The address of this host that the host `master` sees."""
    try:
        family, _, _, _, address = socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError as error:
        raise RunError(f"MASTER_ADDR is {master!r}, which this host cannot reach: {error}") from error
