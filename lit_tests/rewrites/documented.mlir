// RUN: ait-opt %s -p remove-no-ops | filecheck %s --check-prefix=NO
// RUN: ait-opt %s -p remove-elementwise-no-ops | filecheck %s --check-prefix=NEUTRAL
// RUN: ait-opt %s -p merge-view-ops | filecheck %s --check-prefix=MERGE
// RUN: ait-opt %s -p transform-permute-to-reshape | filecheck %s --check-prefix=ONES
// RUN: ait-opt %s -p fuse-permute-bmm-and-gemm | filecheck %s --check-prefix=TRANSPOSE
// RUN: ait-opt %s -p process-singleton-elementwise | filecheck %s --check-prefix=SINGLE
// RUN: ait-opt %s -p transform-special-ops | filecheck %s --check-prefix=SPECIAL
// RUN: ait-opt %s -p remove-no-ops --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// RUN: ait-opt %s -p remove-elementwise-no-ops --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// RUN: ait-opt %s -p merge-view-ops --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// RUN: ait-opt %s -p transform-permute-to-reshape --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// RUN: ait-opt %s -p fuse-permute-bmm-and-gemm --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// RUN: ait-opt %s -p process-singleton-elementwise --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// RUN: ait-opt %s -p transform-special-ops --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// Views, splits and concats that do nothing go; neutral numbers and chains of views stay.
// NO-LABEL: ait.graph @no_ops
// NEUTRAL-LABEL: ait.graph @no_ops
// MERGE-LABEL: ait.graph @no_ops
ait.graph @no_ops(%x: !ait.tensor<b x 4 x f32>) dims {b = 0 to 8} {
  // NO-NEXT: ait.constant
  // NO-NEXT: ait.add %x
  // NO-NEXT: ait.reshape
  // NO-NEXT: ait.reshape
  // NEUTRAL-NOT: ait.add
  // NEUTRAL: ait.split
  // NEUTRAL-NEXT: [[Z:%.*]] = ait.concat
  // NEUTRAL-NOT: ait.add
  // NEUTRAL: ait.reshape [[Z]] : !ait.tensor<(4*b) x f32>
  // NEUTRAL-NEXT: ait.reshape
  // MERGE: ait.split
  // MERGE-NEXT: ait.concat
  // MERGE-NEXT: ait.constant
  // MERGE-NEXT: ait.add
  // MERGE-NEXT: ait.reshape {{.*}} : !ait.tensor<4 x b x f32>
  // MERGE-NEXT: ait.output
  %0 = ait.reshape %x : !ait.tensor<b x 4 x f32>
  %1 = ait.split %0 dim 0 : !ait.tensor<b x 4 x f32>
  %2 = ait.concat %1 dim 1 : !ait.tensor<b x 4 x f32>
  %zero = ait.constant 0.0 : !ait.tensor<f32>
  %3 = ait.add %2, %zero : !ait.tensor<b x 4 x f32>
  %4 = ait.reshape %3 : !ait.tensor<(4*b) x f32>
  %5 = ait.reshape %4 : !ait.tensor<4 x b x f32>
  ait.output "y" %5 : !ait.tensor<4 x b x f32>
}

// A dim of 1 moves past others: no element moves. A dim that may be 1 is not the constant 1.
// ONES-LABEL: ait.graph @ones
ait.graph @ones(%x: !ait.tensor<256 x 5 x 1 x b x f32>) dims {b = 1 to 8} {
  // ONES-NEXT: ait.reshape %x : !ait.tensor<256 x 5 x b x 1 x f32>
  // ONES-NEXT: ait.reshape %x : !ait.tensor<1 x 256 x 5 x b x f32>
  // ONES-NEXT: ait.permute %x [0, 3, 1, 2]
  %0 = ait.permute %x [0, 1, 3, 2] : !ait.tensor<256 x 5 x b x 1 x f32>
  %1 = ait.permute %x [2, 0, 1, 3] : !ait.tensor<1 x 256 x 5 x b x f32>
  %2 = ait.permute %x [0, 3, 1, 2] : !ait.tensor<256 x b x 5 x 1 x f32>
  ait.output "y0" %0 : !ait.tensor<256 x 5 x b x 1 x f32>
  ait.output "y1" %1 : !ait.tensor<1 x 256 x 5 x b x f32>
  ait.output "y2" %2 : !ait.tensor<256 x b x 5 x 1 x f32>
}

// TRANSPOSE-LABEL: ait.graph @transposes
ait.graph @transposes(%x: !ait.tensor<m x 8 x f32>, %a: !ait.tensor<2 x m x 8 x f32>) dims {m = 1 to 8} {
  %w = ait.param "w" : !ait.tensor<8 x 8 x f32>
  // TRANSPOSE: ait.gemm rrr %x, %w
  %0 = ait.permute %w [1, 0] : !ait.tensor<8 x 8 x f32>
  %1 = ait.gemm rcr %x, %0 : !ait.tensor<m x 8 x f32>
  // TRANSPOSE-NEXT: ait.bmm rcr %a, %a
  %2 = ait.permute %a [0, 2, 1] : !ait.tensor<2 x 8 x m x f32>
  %3 = ait.bmm rrr %a, %2 : !ait.tensor<2 x m x m x f32>
  // TRANSPOSE-NEXT: ait.permute
  %4 = ait.permute %1 [1, 0] : !ait.tensor<8 x m x f32>
  ait.output "y1" %4 : !ait.tensor<8 x m x f32>
  ait.output "y3" %3 : !ait.tensor<2 x m x m x f32>
}

// SINGLE-LABEL: ait.graph @singletons
ait.graph @singletons(%x: !ait.tensor<b x 4 x f32>) dims {b = 0 to 8} {
  // SINGLE-COUNT-2: ait.fused_elementwise
  // SINGLE: ait.softmax
  %0 = ait.relu %x : !ait.tensor<b x 4 x f32>
  %1 = ait.tanh %0 : !ait.tensor<b x 4 x f32>
  %2 = ait.softmax %1 dim 1 : !ait.tensor<b x 4 x f32>
  ait.output "y" %2 : !ait.tensor<b x 4 x f32>
}

// SPECIAL-LABEL: ait.graph @special
ait.graph @special(%x: !ait.tensor<2 x 4 x 4 x 8 x f32>, %a: !ait.tensor<4 x 1 x f32>, %b: !ait.tensor<1 x 6 x f32>) {
  %w1 = ait.param "w1" : !ait.tensor<16 x 1 x 1 x 8 x f32>
  %w3 = ait.param "w3" : !ait.tensor<16 x 3 x 3 x 8 x f32>
  // SPECIAL: ait.gemm
  // SPECIAL: ait.conv
  // SPECIAL: ait.mul %a, %b
  %0 = ait.conv %x, %w1 : !ait.tensor<2 x 4 x 4 x 16 x f32>
  %1 = ait.conv %x, %w3 : !ait.tensor<2 x 2 x 2 x 16 x f32>
  %2 = ait.gemm rrr %a, %b : !ait.tensor<4 x 6 x f32>
  ait.output "y0" %0 : !ait.tensor<2 x 4 x 4 x 16 x f32>
  ait.output "y1" %1 : !ait.tensor<2 x 2 x 2 x 16 x f32>
  ait.output "y2" %2 : !ait.tensor<4 x 6 x f32>
}
