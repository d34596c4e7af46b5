"""The `ait_rt` dialect: buffers, views and launches. Only this dialect has aliasing."""

from __future__ import annotations

from xdsl.ir import Dialect

from ait_mlir.dialects.ait import ops_of
from ait_mlir.dialects.ait_rt import buffers, loop, program, streams
from ait_mlir.dialects.ait_rt.types import BufferType

AIT_RT = Dialect("ait_rt", ops_of((program, buffers, loop, streams)), [BufferType])
