// RUN: ait-opt %s -p remove-no-ops | filecheck %s
// RUN: ait-opt %s -p remove-no-ops --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// An elementwise op repeats its operands by itself, in either place.
// CHECK-LABEL: ait.graph @broadcast
ait.graph @broadcast(%x: !ait.tensor<b x 2 x 4 x f32>, %y: !ait.tensor<1 x 2 x 4 x f32>, %z: !ait.tensor<1 x 1 x 1 x f32>, %v: !ait.tensor<4 x f32>) dims {b = 0 to 8} {
  // CHECK-NEXT: ait.add %x, %y : !ait.tensor<b x 2 x 4 x f32>
  // CHECK-NEXT: ait.sub %z, %x : !ait.tensor<b x 2 x 4 x f32>
  // CHECK-NEXT: ait.mul %x, %v : !ait.tensor<b x 2 x 4 x f32>
  // CHECK-NEXT: ait.output
  %0 = ait.expand %y : !ait.tensor<b x 2 x 4 x f32>
  %1 = ait.add %x, %0 : !ait.tensor<b x 2 x 4 x f32>
  %2 = ait.expand %z : !ait.tensor<b x 2 x 4 x f32>
  %3 = ait.sub %2, %x : !ait.tensor<b x 2 x 4 x f32>
  %4 = ait.expand %v : !ait.tensor<b x 2 x 4 x f32>
  %5 = ait.mul %x, %4 : !ait.tensor<b x 2 x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 2 x 4 x f32>
  ait.output "y3" %3 : !ait.tensor<b x 2 x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<b x 2 x 4 x f32>
}

// No other operand has the shape of the result; ops that are not elementwise: a concatenation, a region, a product of
// square matrices, whose operands have the shape of the result.
// CHECK-LABEL: ait.graph @no_broadcast
ait.graph @no_broadcast(%x: !ait.tensor<1 x 4 x f32>, %y: !ait.tensor<1 x 4 x f32>, %z: !ait.tensor<3 x 4 x f32>, %w: !ait.tensor<4 x 4 x f32>) {
  // CHECK-NEXT: [[X:%.*]] = ait.expand %x : !ait.tensor<3 x 4 x f32>
  // CHECK-NEXT: ait.add %x, [[X]] : !ait.tensor<3 x 4 x f32>
  // CHECK-NEXT: ait.tanh [[X]]
  // CHECK-NEXT: ait.concat [[X]], %z dim 0
  // CHECK-NEXT: [[Y:%.*]] = ait.expand %y : !ait.tensor<3 x 4 x f32>
  // CHECK-NEXT: ait.fused_elementwise([[Y]], %z) {
  // CHECK: [[W:%.*]] = ait.expand %x : !ait.tensor<4 x 4 x f32>
  // CHECK-NEXT: ait.gemm rrr %w, [[W]]
  %0 = ait.expand %x : !ait.tensor<3 x 4 x f32>
  %1 = ait.add %x, %0 : !ait.tensor<3 x 4 x f32>
  %2 = ait.tanh %0 : !ait.tensor<3 x 4 x f32>
  %3 = ait.concat %0, %z dim 0 : !ait.tensor<6 x 4 x f32>
  %4 = ait.expand %y : !ait.tensor<3 x 4 x f32>
  %5 = ait.fused_elementwise(%4, %z) {
  ^bb0(%a: f32, %b: f32):
    %s = ait.add %a, %b : f32
    ait.yield %s : f32
  } : !ait.tensor<3 x 4 x f32>
  %6 = ait.expand %x : !ait.tensor<4 x 4 x f32>
  %7 = ait.gemm rrr %w, %6 : !ait.tensor<4 x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<3 x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<3 x 4 x f32>
  ait.output "y3" %3 : !ait.tensor<6 x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<3 x 4 x f32>
  ait.output "y7" %7 : !ait.tensor<4 x 4 x f32>
}
