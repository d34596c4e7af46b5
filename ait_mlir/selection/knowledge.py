"""Known times of the candidates of a task, for this code and this setting, from the cache and from the package."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ait_mlir.lowering.candidates import Candidate
from ait_mlir.lowering.points import Point
from ait_mlir.selection.ranges import Times, TimesAtPoint
from ait_mlir.selection.tasks import Task
from ait_mlir.selection.timings import Record, Setting, Shipped, TimingCache, TimingKey

Algorithm = tuple[int, ...]


@dataclass(frozen=True)
class Knowledge:
    """Known times, and known library algorithms. `source` gives the digest of a candidate's code, None without code."""

    setting: Setting
    cache: TimingCache | None
    shipped: Shipped | None
    source: Callable[[Task, Candidate], str | None]

    def key(self, task: Task, point: Point, candidate: Candidate) -> TimingKey | None:
        source = self.source(task, candidate)
        if source is None:
            return None
        return TimingKey(task.key, ",".join(map(str, point)), candidate.text, source, self.setting)

    def at(self, task: Task, point: Point, candidates: Sequence[Candidate]) -> dict[Candidate, Times | None]:
        """The known times of these candidates at a point."""
        keys = {key: candidate for candidate in candidates if (key := self.key(task, point, candidate)) is not None}
        times: dict[Candidate, Times | None] = {}
        if (record := self._record(task, point)) is not None:
            for candidate in keys.values():
                if candidate in record.times:
                    times[candidate] = record.times[candidate]
        if self.cache is not None:
            times |= {keys[key]: t for key, t in self.cache.times(keys).items()}
        return times

    def elsewhere(
        self, task: Task, candidates: Sequence[Candidate], known: Collection[Point]
    ) -> dict[Point, dict[Candidate, Times | None]]:
        """The package's times at further points within the ranges of the dims, if they include all `candidates`. A
        choice without a card uses the same times.
        """
        found: dict[Point, dict[Candidate, Times | None]] = {}
        for record in self._records(task):
            if record.point in known or any(candidate not in record.times for candidate in candidates):
                continue
            if all(d.lo <= n <= d.hi for d, n in zip(task.scope.dims, record.point, strict=True)):
                times = self.at(task, record.point, candidates)
                if len(times) == len(candidates):
                    found[record.point] = times
        return found

    def keep(self, task: Task, point: Point, times: TimesAtPoint) -> None:
        if self.cache is not None:
            keyed = ((self.key(task, point, candidate), t) for candidate, t in times.items())
            self.cache.keep_times({key: t for key, t in keyed if key is not None})

    def algorithms(self, task: Task, point: Point, candidate: Candidate) -> list[Algorithm] | None:
        """The algorithms of a candidate's library at a point, best estimate first; None if they are unknown."""
        key = self.key(task, point, candidate)
        if key is None:
            return []
        found = None if self.cache is None else self.cache.choice(_list_key(key), json.loads)
        if found is not None:
            return [tuple(parts) for parts in found]
        record = self._record(task, point)
        if record is None or candidate not in record.times:
            return None
        return [w.algorithm for w in record.times if w.algorithm and w.naming(()) == candidate]

    def keep_algorithms(self, task: Task, point: Point, candidate: Candidate, found: Sequence[Algorithm]) -> None:
        key = self.key(task, point, candidate)
        if self.cache is not None and key is not None:
            self.cache.keep_choice(_list_key(key), json.dumps(found))

    def _records(self, task: Task) -> Sequence[Record]:
        if self.shipped is None or self.shipped.setting != self.setting:
            return ()
        return self.shipped.by_op.get(task.key, ())

    def _record(self, task: Task, point: Point) -> Record | None:
        """The package's times at a point; None unless all of them were taken with the current code.

        A part of the times would be compared with times from this card, and the other card may have been some percent
        faster or slower.
        """
        return next((r for r in self._records(task) if r.point == point and self._is_current(task, r)), None)

    def _is_current(self, task: Task, record: Record) -> bool:
        return all((self.source(task, candidate) or "")[:16] == t.source for candidate, t in record.times.items())


def _list_key(key: TimingKey) -> str:
    return f"algorithms {key.digest()}"


__all__ = ["Algorithm", "Knowledge"]
