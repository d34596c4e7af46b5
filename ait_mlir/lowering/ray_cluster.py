"""Compiles on the machines of a Ray cluster that have the toolchain.

Ray starts the work, chooses the machine and starts it again on another one when a machine or a process ends. The
machines have ait_mlir installed. An object is the same on each machine that is used, and the library is linked as on
one machine, so an artifact has the bytes that it has without a cluster.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ait_mlir.errors import AitError, CompileError, InputError, ToolchainError
from ait_mlir.lowering.compilers import THIS_MACHINE, Work, compiling_with
from ait_mlir.lowering.ninja import Progress, Unit
from ait_mlir.lowering.remote import Made, Offer, adopted, compile_job, job_of, link_job, offer
from ait_mlir.lowering.target import TargetKind
from ait_mlir.lowering.toolchain import MadeOf, Toolchain, optimization

ANSWER_SECONDS = 60.0
"""A machine that has not said by then which compiler it has is not used."""
_CONNECT_SECONDS = 10.0
_TICK = 1.0
"""Seconds between two looks at the machines while nothing ends."""
RETRIES = 3
"""How often a job is started again after its machine or process has ended."""


@dataclass(eq=False)
class RayCluster:
    """The compilers of the cluster to which this process is connected."""

    address: str
    ray: Any
    fitting: dict[MadeOf, list[str]] = field(default_factory=dict[MadeOf, list[str]])
    """The machines to use for a compiler, by their ids in Ray."""
    adopted: dict[MadeOf, Toolchain] = field(default_factory=dict[MadeOf, Toolchain])
    """The compilers that this machine lacks."""

    # ** which machines **

    def toolchain(self, kind: TargetKind, arch: str) -> Toolchain:
        """The compiler for a target: this machine's if it has one, else that of most machines of the cluster."""
        try:
            return THIS_MACHINE.toolchain(kind, arch)
        except ToolchainError as error:
            made_of = kind, arch, optimization()
            if made_of not in self.adopted:
                offers = self._offers(made_of)
                digests = [found.digest for found in offers.values() if found.digest]
                if not digests:
                    raise ToolchainError(
                        f"{error}; nor has any machine of the Ray cluster {self.address}:\n{_refusals(offers)}"
                    ) from None
                most = max(sorted(set(digests)), key=digests.count)
                self.fitting[made_of] = [node for node, found in offers.items() if found.digest == most]
                self.adopted[made_of] = adopted(offers[self.fitting[made_of][0]])
            return self.adopted[made_of]

    def _machines(self, made_of: MadeOf) -> list[str]:
        """The ids of the machines that make the objects of this machine. Raises `ToolchainError` if there is none."""
        if made_of not in self.fitting:
            offers, wanted = self._offers(made_of), offer(made_of)
            fitting = [node for node, found in offers.items() if not found.misfit(wanted)]
            if not fitting:
                what = " ".join(map(str, made_of[:2]))
                raise ToolchainError(
                    f"no machine of the Ray cluster {self.address} makes objects for {what} that are equal to those of "
                    f"{wanted.machine}:\n{_refusals(offers, wanted)}"
                )
            self.fitting[made_of] = fitting
        return self.fitting[made_of]

    def _offers(self, made_of: MadeOf) -> dict[str, Offer]:
        """What each machine with CPUs for work has."""
        asked = self.ray.remote(offer)
        nodes = {n["NodeID"]: n["NodeManagerHostname"] for n in self._alive() if n["Resources"].get("CPU", 0) > 0}
        at = {node: asked.options(num_cpus=0, max_retries=1, label_selector=_on([node])) for node in nodes}
        refs: dict[Any, str] = {task.remote(made_of): node for node, task in at.items()}
        done: list[Any] = []
        if refs:
            done, _ = self.ray.wait(list(refs), num_returns=len(refs), timeout=ANSWER_SECONDS)
        offers: dict[str, Offer] = {}
        for ref, node in refs.items():
            problem = f"it did not answer within {ANSWER_SECONDS:.0f} s"
            try:
                offers[node] = self.ray.get(ref) if ref in done else Offer(nodes[node], problem=problem)
            except Exception as error:  # a machine without ait_mlir, or with one whose code differs
                offers[node] = Offer(nodes[node], problem=f"it cannot run ait_mlir ({_first_line(error)})")
        return offers

    def _alive(self) -> list[dict[str, Any]]:
        return [node for node in self.ray.nodes() if node["Alive"]]

    # ** work **

    def run(self, work: Work) -> tuple[int, list[str]]:
        """Compile on the cluster what models need, and the rest here, with ninja's exit status and output."""
        here = {name: unit for name, unit in work.missing.items() if (unit.tools or work.tools).made_of is None}
        there = {n: u for n, u in work.missing.items() if n not in here and not (work.folder / n).is_file()}
        status, output = self._compile(work, there) if there else (0, [])
        if status != 0 or (work.objects is None and not here):
            return status, output
        if work.objects is not None and work.tools.made_of in self.adopted and not here:
            return self._link(work, work.objects)
        return THIS_MACHINE.run(replace(work, missing=here))

    def _compile(self, work: Work, units: Mapping[str, Unit]) -> tuple[int, list[str]]:
        from ait_mlir.lowering.ray_library import exceptions

        started = self.ray.remote(compile_job)
        refs: dict[Any, str] = {}
        nodes: set[str] = set()
        for name, unit in units.items():
            job = job_of(unit, work.tools)
            machines = self._machines(job.made_of)
            nodes.update(machines)
            options = started.options(
                name=f"ait: {unit.source.name}",
                num_cpus=1,
                max_retries=RETRIES,
                retry_exceptions=[OSError],
                label_selector=_on(machines),
            )
            refs[options.remote(job)] = name
        status, output, ended = 0, list[str](), 0
        try:
            with Progress(len(units) + (work.objects is not None), work.label) as progress:
                while refs and not (work.stop is not None and work.stop.is_set()):
                    done, _ = self.ray.wait(list(refs), num_returns=1, timeout=_TICK)
                    if not done:
                        self._check_alive(nodes, units[next(iter(refs.values()))])
                    for ref in done:
                        name = refs.pop(ref)
                        try:
                            made: Made = self.ray.get(ref)
                        except exceptions.RayError as error:
                            raise self._failed(units[name], error) from None
                        ended += 1
                        progress.reached(ended)
                        if made.errors:
                            status = 1
                            output += _as_here(made, name, units[name], work.folder)
                        else:
                            _write(work.folder / name, made)
                            work.made(name)
                    if status and not work.keep_going:
                        break
        finally:
            for ref in refs:
                self.ray.cancel(ref, force=True)
        return status, output

    def _check_alive(self, nodes: set[str], unit: Unit) -> None:
        """Raise `CompileError` if none of these machines is left."""
        if nodes.isdisjoint(node["NodeID"] for node in self._alive()):
            raise CompileError(
                f"{unit.source.name} was not compiled: no machine of the Ray cluster {self.address} that could is left"
            )

    def _failed(self, unit: Unit, error: Any) -> AitError:
        """The error for a job that Ray has given up."""
        cause = getattr(error, "cause", None)
        if isinstance(cause, AitError):
            return cause
        why = f"{type(cause or error).__name__}: {_first_line(cause or error)}"
        return CompileError(
            f"{unit.source.name} was not compiled on the Ray cluster {self.address}, though it was started up to "
            f"{RETRIES + 1} times: {why}"
        )

    def _link(self, work: Work, objects: Sequence[str]) -> tuple[int, list[str]]:
        """Link a library on the cluster, for a compiler that this machine lacks."""
        from ait_mlir.lowering.ray_library import exceptions

        made_of = work.tools.made_of
        assert made_of is not None
        options = self.ray.remote(link_job).options(
            num_cpus=1, max_retries=RETRIES, label_selector=_on(self._machines(made_of))
        )
        data = [(work.folder / name).read_bytes() for name in objects]  # a kept object has an absolute path
        try:
            made: Made = self.ray.get(options.remote(made_of, data))
        except exceptions.RayError as error:
            raise self._failed(Unit(Path("the library"), ""), error) from None
        if made.errors:
            return 1, list(made.errors)
        _write(work.folder / "model.so", made)
        return 0, []


def _refusals(offers: Mapping[str, Offer], wanted: Offer | None = None) -> str:
    """A line for each machine that was asked, with the reason why it is not used."""
    if not offers:
        return "  it has no machine with CPUs for work"
    return "\n".join(
        f"  {found.machine} (node {node[:8]}): {found.problem if wanted is None else found.misfit(wanted)}"
        for node, found in offers.items()
    )


def _on(nodes: Sequence[str]) -> dict[str, str]:
    """The option of Ray for a task that one of these machines runs."""
    return {"ray.io/node-id": f"in({','.join(nodes)})"}


def _as_here(made: Made, name: str, unit: Unit, folder: Path) -> list[str]:
    """The output of a compiler on another machine, with the paths that its sources have here."""
    sources = str((unit.parts or (unit,))[0].source.parent)
    scratch = str(Path(made.folder).parent)
    lines = [line.replace(made.folder, sources).replace(scratch, str(folder)) for line in made.errors]
    return [f"FAILED: {name}" if line.startswith("FAILED: ") else line for line in lines]


def _write(path: Path, made: Made) -> None:
    """Write what a machine made; under another name first, so that a file that is there is complete."""
    if hashlib.sha256(made.data).hexdigest() != made.sha256:
        raise CompileError(f"{path.name} arrived damaged from {made.machine}")
    before = path.with_name(path.name + ".part")
    before.write_bytes(made.data)
    before.rename(path)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines and "Traceback" in str(error) else (lines or [""])[0]


@contextlib.contextmanager
def compiling_on(address: str) -> Generator[None]:
    """A context in which model libraries are compiled on the Ray cluster at an address; "" is this machine.

    The address is Ray's: `auto`, `HOST:PORT` on a machine of the cluster, `ray://HOST:PORT` elsewhere. A process that
    is connected already stays so. Raises `ToolchainError` without Ray, `InputError` if no cluster answers.
    """
    if not address:
        yield
        return
    with _connected(address) as ray, compiling_with(RayCluster(address, ray)):
        yield


@contextlib.contextmanager
def _connected(address: str) -> Generator[Any]:
    from ait_mlir.lowering.ray_library import ray

    if ray.is_initialized():
        yield ray
        return
    _check_address(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error", configure_logging=False)
    except Exception as error:  # of several kinds, some of them RuntimeError
        raise InputError(f"no Ray cluster answers at {address!r}: {_first_line(error)}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Refuse an address that nobody listens to, for which Ray would wait long."""
    if address == "auto":
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"the address of a Ray cluster is {address!r}, expected auto, HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except OSError as error:
        raise InputError(f"no Ray cluster answers at {address!r}: {error.strerror or error}") from None
