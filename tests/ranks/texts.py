"""Programs of several ranks that more than one file of tests runs."""

from __future__ import annotations

SMALL = """
ait.graph @small(%x: !ait.tensor<b x 4 x f32>) dims {b = 1 to 4} ranks {mesh = #sdy.mesh<["tp"=2]>} {
  %0 = ait.all_reduce sum %x over ["tp"] of <["tp"=2]> : !ait.tensor<b x 4 x f32>
  ait.output "y" %0 : !ait.tensor<b x 4 x f32>
}"""
SENT = SMALL.replace("all_reduce sum %x", "collective_permute %x [0 -> 1]")
