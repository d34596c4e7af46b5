"""The `ait_rt` dialect: buffers, views and launches. Only this dialect has aliasing."""

from __future__ import annotations

from xdsl.ir import Dialect

from ait_mlir.dialects.ait_rt import buffers, loop, program, streams
from ait_mlir.dialects.ait_rt.types import BufferType

AIT_RT = Dialect("ait_rt", [*program.OPS, *buffers.OPS, *loop.OPS, *streams.OPS], [BufferType])
