"""Stored measurements: times in a database of the cache directory, and the times of the package."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ait_mlir.errors import AitError
from ait_mlir.host.cache import cache_dir
from ait_mlir.host.files import write_atomic
from ait_mlir.lowering.candidates import Candidate
from ait_mlir.selection.ranges import Times
from ait_mlir.selection.structures import VERSION

TABLES = (
    "times (key TEXT PRIMARY KEY, seconds REAL, spread REAL, what TEXT, made REAL)",
    "choices (key TEXT PRIMARY KEY, choice TEXT, made REAL)",
)
T = TypeVar("T")
METHOD = 2
"""The version of the method of measurement; ops with times of another version are measured again."""


@dataclass(frozen=True)
class Setting:
    """The properties of a machine that influence times."""

    card: str
    driver: str
    cuda: str
    libraries: str


@dataclass(frozen=True)
class TimingKey:
    """Everything that a time depends on."""

    op: str
    """The key of the task (structures.py): ops, element types, and the views that give operands their strides."""
    point: str
    candidate: str
    """Kernels and configurations, as `Candidate.text`."""
    source: str
    """A digest of generated code, headers, compiler and flags."""
    setting: Setting
    method: int = METHOD
    structure: int = VERSION

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


class TimingCache:
    """Times and choices by key, in a file that processes share.

    Writers wait for each other, and rows are written atomically. A file of the cache that is not a database is renamed;
    a file that the user named stays, with an error. A row without a valid time or choice is ignored.
    """

    def __init__(self, path: Path | None = None) -> None:
        named = path or os.environ.get("AIT_TIMINGS")
        self.is_ours = not named
        self.path = Path(named) if named else cache_dir() / "timings-1.sqlite3"

    @contextlib.contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        if (self.path.exists() and not self.path.is_file()) or (self.is_ours and self.path.is_symlink()):
            raise sqlite3.OperationalError("it is no regular file")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise sqlite3.OperationalError(f"{self.path.parent} cannot be made: {error.strerror}") from error
        connection = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        try:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables and "times" not in tables:
                raise sqlite3.OperationalError("it is a database of another program")
            for table in TABLES:
                connection.execute(f"CREATE TABLE IF NOT EXISTS {table}")
            yield connection
        finally:
            connection.close()

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with self._open() as connection:
                return work(connection)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) or not self.is_ours:
                advice = "AIT_TIMINGS names another file"
                raise AitError(f"the cache of timings {self.path} cannot be used: {error}; {advice}") from error
            with contextlib.suppress(OSError):
                self.path.rename(self.path.with_suffix(f".broken-{time.time_ns()}"))
            with self._open() as connection:
                return work(connection)

    def times(self, keys: Iterable[TimingKey]) -> dict[TimingKey, Times | None]:
        """The known times of these keys; None for a candidate that could not run."""
        wanted = {key.digest(): key for key in keys}

        def work(connection: sqlite3.Connection) -> dict[TimingKey, Times | None]:
            found: dict[TimingKey, Times | None] = {}
            names = list(wanted)
            for i in range(0, len(names), 500):
                some = names[i : i + 500]
                rows = connection.execute(
                    f"SELECT key, seconds, spread FROM times WHERE key IN ({','.join('?' * len(some))})", some
                )
                for name, seconds, spread in rows:
                    if seconds is None:
                        found[wanted[name]] = None
                    elif (times := _times(seconds, spread)) is not None:
                        found[wanted[name]] = times
            return found

        return self._run(work)

    def keep_times(self, rows: Mapping[TimingKey, Times | None]) -> None:
        made = time.time()
        values = [
            (k.digest(), None if t is None else t.seconds, None if t is None else t.spread, json.dumps(asdict(k)), made)
            for k, t in rows.items()
        ]
        self._write("INSERT OR REPLACE INTO times VALUES (?, ?, ?, ?, ?)", values)

    def choice(self, key: str, read: Callable[[str], T]) -> T | None:
        """The stored value, converted by `read`; None if there is none or `read` fails."""
        rows = self._read("SELECT choice FROM choices WHERE key = ?", key)
        return _readable(lambda: read(rows[0][0])) if rows else None

    def keep_choice(self, key: str, choice: str) -> None:
        row = [(key, choice, time.time())]
        self._write("INSERT OR REPLACE INTO choices VALUES (?, ?, ?)", row)

    def other_versions(self) -> str:
        """A sentence for an error message if the file has times of another version, which do not count; else ""."""
        count = 0
        for (text,) in self._read("SELECT what FROM times"):
            versions = _readable(lambda text=text: (json.loads(text)["method"], json.loads(text)["structure"]))
            count += versions != (METHOD, VERSION)
        return f"{self.path} has {count} times of another version, which do not count; " if count else ""

    def _read(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        def work(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            return connection.execute(statement, values).fetchall()

        return self._run(work)

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(statement, rows)
            connection.execute("COMMIT")

        self._run(work)

    def known(self) -> list[tuple[tuple[str, tuple[int, ...]], Candidate, Times]]:
        """All times of candidates that could run: op and point, candidate, time with the digest of the timed code."""
        found: list[tuple[tuple[str, tuple[int, ...]], Candidate, Times]] = []
        for text, seconds, spread in self._read("SELECT what, seconds, spread FROM times WHERE seconds IS NOT NULL"):
            times = _times(seconds, spread)
            fields = _readable(functools.partial(_key_fields, text))
            if times is not None and fields is not None:
                place, candidate, source = fields
                found.append((place, candidate, replace(times, source=source[:16])))
        return found


def _times(seconds: Any, spread: Any) -> Times | None:
    return Times(seconds, spread) if isinstance(seconds, float) and isinstance(spread, float) else None


def _key_fields(text: str) -> tuple[tuple[str, tuple[int, ...]], Candidate, str]:
    """The parts of a key, read from its JSON text: the op with its sizes, the candidate, the digest of its code."""
    what: dict[str, Any] = json.loads(text)
    point = tuple(int(n) for n in what["point"].split(",") if n)
    return (str(what["op"]), point), Candidate.read(what["candidate"]), str(what["source"])


def _readable(read: Callable[[], T]) -> T | None:
    """The result of `read` on a text; None if the text is damaged."""
    try:
        return read()
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None


@dataclass(frozen=True)
class Record:
    """The package's times of a task's candidates at one point, each with the digest of its code."""

    op: str
    point: tuple[int, ...]
    static: str
    """Digest of the key with numbers for dims."""
    times: Mapping[Candidate, Times]


@dataclass(frozen=True)
class Shipped:
    """The package's times of one card."""

    arch: str
    setting: Setting
    records: tuple[Record, ...]

    @functools.cached_property
    def by_op(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = {}
        for record in self.records:
            found.setdefault(record.op, []).append(record)
        return found

    @functools.cached_property
    def by_static(self) -> dict[str, Record]:
        return {record.static: record for record in self.records}


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def joined(before: Iterable[Record], after: Iterable[Record]) -> tuple[Record, ...]:
    """The records of both. A later record with a new time of any candidate at a point replaces the earlier one of that
    point, because all candidates were timed again. Otherwise the candidates of both are joined."""
    found = {(r.op, r.point): r for r in before}
    for r in after:
        old = found.get((r.op, r.point), r)
        again = not old.times.keys().isdisjoint(r.times)
        found[r.op, r.point] = r if again else replace(r, times={**old.times, **r.times})
    return tuple(found.values())


def read_shipped(path: Path, any_structure: bool = False) -> Shipped:
    """Read a file that `write_shipped` wrote; `AitError` for any other file. Records with keys of another version of
    the structure are left out, unless `any_structure`."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["method"] != METHOD or (data["structure"] != VERSION and not any_structure):
            return Shipped(data["arch"], Setting(**data["setting"]), ())
        records: list[Record] = []
        for item in data["records"]:
            times = {Candidate.of_parts(w): Times(us * 1e-6, spread, s) for w, us, spread, s in item["times"]}
            op = json.dumps(data["ops"][item["op"]], separators=(",", ":"))
            records.append(Record(op, tuple(item["point"]), item["static"], times))
        return Shipped(data["arch"], Setting(**data["setting"]), tuple(records))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise AitError(f"{path} is no file of shipped timings: {error}") from error


def _written(candidate: Candidate, t: Times) -> list[Any]:
    """A candidate, its time in microseconds, the spread, and the digest of its code."""
    return [json.loads(candidate.text), float(f"{t.seconds * 1e6:.4g}"), round(t.spread, 4), t.source]


def write_shipped(path: Path, shipped: Shipped, command: str) -> None:
    """Write timings as text, one record a line, in an order that does not depend on when they were taken."""
    ops = sorted({r.op for r in shipped.records})
    numbers = {op: i for i, op in enumerate(ops)}
    records = sorted(shipped.records, key=lambda r: (numbers[r.op], r.point))
    lines: list[str] = []
    for r in records:
        ordered = sorted(r.times.items(), key=lambda item: (item[1].seconds, item[0].text))
        times = [_written(candidate, t) for candidate, t in ordered]
        item = {"op": numbers[r.op], "point": r.point, "static": r.static, "times": times}
        lines.append(json.dumps(item, separators=(",", ":")))
    head = {"arch": shipped.arch, "method": METHOD, "structure": VERSION, "command": command}
    text = json.dumps(head | {"setting": asdict(shipped.setting)}, indent=1)[:-2]
    text += ',\n "ops": [\n' + ",\n".join(ops) + '\n],\n "records": [\n' + ",\n".join(lines) + "\n]}\n"
    write_atomic(path, text.encode())


@functools.cache
def shipped_for(arch: str) -> Shipped | None:
    """The package's timings for an architecture; None if it has none."""
    folder = Path(__file__).resolve().parent.parent / "timings"
    for path in sorted(folder.glob("*.json")):
        shipped = read_shipped(path)
        if shipped.arch == arch:
            return shipped
    return None
