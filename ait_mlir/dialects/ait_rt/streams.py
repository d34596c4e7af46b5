"""Events that order launches on different streams."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.irdl import irdl_op_definition, prop_def

from ait_mlir.dialects.ait.base import AitOp, ResultTypes
from ait_mlir.dialects.ait.syntax import INT, Prop, Syntax
from ait_mlir.dialects.ait_rt.loop import LoopOp
from ait_mlir.dialects.ait_rt.program import MAX_STREAMS

MAX_EVENTS = 1 << 16


class EventOp(AitOp):
    """Base of the ops on events. An event is a number; each is recorded once."""

    SYNTAX: ClassVar[Syntax] = (Prop("event", INT), Prop("stream", INT))

    event = prop_def(IntegerAttr)
    stream = prop_def(IntegerAttr)

    def __init__(self, event: int, stream: int) -> None:
        super().__init__(properties={"event": IntegerAttr(event, i64), "stream": IntegerAttr(stream, i64)})

    @property
    def number(self) -> int:
        return self.event.value.data

    @property
    def on(self) -> int:
        """The number of the op's stream."""
        return self.stream.value.data

    def infer_result_types(self) -> ResultTypes:
        if not 0 <= self.number < MAX_EVENTS:
            raise self.fail(f"event {self.number}, expected a number from 0 to {MAX_EVENTS - 1}")
        if not 0 <= self.on < MAX_STREAMS:
            raise self.fail(f"stream {self.on}, expected a number from 0 to {MAX_STREAMS - 1}")
        if isinstance(self.parent_op(), LoopOp):
            raise self.fail("is in a loop, the launches of which are all on stream 0")
        return []


@irdl_op_definition
class RecordOp(EventOp):
    """Record an event: it happens when all earlier launches on this stream have ended.

    ```mlir
    ait_rt.record event 0 stream 0
    ```
    """

    name = "ait_rt.record"


@irdl_op_definition
class WaitOp(EventOp):
    """Let later launches on a stream wait until an event has happened. The host does not wait.

    ```mlir
    ait_rt.wait event 0 stream 1
    ```
    """

    name = "ait_rt.wait"


OPS = (RecordOp, WaitOp)
