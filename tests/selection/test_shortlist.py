"""Which candidates are worth timing, given the views around an op."""

from __future__ import annotations

import pytest

from ait_mlir.dialects.ait.conv import ConvOp
from ait_mlir.driver import run_to_phase
from ait_mlir.ir.context import context
from ait_mlir.ir.parser import parse_source
from ait_mlir.ir.source import SourceText
from ait_mlir.lowering.candidates import candidates_of
from ait_mlir.lowering.kernels import Target
from ait_mlir.lowering.points import points_of
from ait_mlir.options import CompileOptions
from ait_mlir.selection.shortlist import best_by_estimate, worth_timing
from ait_mlir.selection.tasks import Task, make_task

CARD = Target("cuda", "sm_90a")


def task_of(first: bool, window: str = "64 x 3 x 3 x 1") -> Task:
    """A depthwise convolution of an image in channels-first order, or channels-last."""
    given, last = "8 x 64 x 28 x 28", "8 x 28 x 28 x 64"
    x, turned = (given, f"ait.permute %x [0, 2, 3, 1] : !ait.tensor<{last} x f16>") if first else (last, None)
    lines = [f"  %p = {turned}"] if turned else []
    module = parse_source(
        context(),
        SourceText(
            "text",
            f"ait.graph @g(%x: !ait.tensor<{x} x f16>) {{\n"
            + "\n".join(lines)
            + f"""
  %w = ait.param "w" : !ait.tensor<{window} x f16>
  %y = ait.conv {"%p" if first else "%x"}, %w pad [1, 1] groups 64 : !ait.tensor<{last} x f16>
  ait.output "y" %y : !ait.tensor<{last} x f16>
}}
""",
        ),
    )
    return make_task(next(op for op in module.walk() if isinstance(op, ConvOp)))


@pytest.mark.parametrize("first", [True, False], ids=["channels-first", "channels-last"])
def test_planes_are_for_images_that_others_copy(first: bool) -> None:
    task = task_of(first)
    found = worth_timing(task, points_of(task.scope), CARD)
    assert found and any("planes" in candidate.text for candidate in found) == first


def test_planes_are_never_chosen_by_estimate() -> None:
    assert "planes" not in best_by_estimate(list(candidates_of(task_of(True).op, CARD))).text


def test_planes_write_images_in_channels_first_order() -> None:
    """Without a copy before the convolution or behind it."""
    image = "!ait.tensor<8 x 64 x 28 x 28 x f16>"
    text = f"""ait.graph @g(%x: {image}) {{
  %w = ait.param "w" : !ait.tensor<64 x 3 x 3 x 1 x f16>
  %p = ait.permute %x [0, 2, 3, 1] : !ait.tensor<8 x 28 x 28 x 64 x f16>
  %y = ait.conv %p, %w pad [1, 1] groups 64 {{kernel = #ait.kernel<"planes", {{}}>}} : !ait.tensor<8 x 28 x 28 x 64 x f16>
  %q = ait.permute %y [0, 3, 1, 2] : {image}
  ait.output "y" %q : {image}
}}
"""
    planned = str(
        run_to_phase(parse_source(context(), SourceText("text", text)), "planned", CompileOptions("cuda", "sm_90a"))
    )
    assert planned.count("ait_rt.launch") == 1
