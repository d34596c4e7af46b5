// RUN: ait-opt %s -p transpose-products | filecheck %s
// RUN: ait-opt %s -p transpose-products,transpose-products | filecheck %s
// RUN: ait-opt %s -p transpose-products --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// CHECK-LABEL: ait.graph @transposed
ait.graph @transposed(%x: !ait.tensor<b x 3 x s x 8 x f32>, %z: !ait.tensor<b x 3 x 8 x 5 x f32>, %w: !ait.tensor<4 x 8 x f32>) dims {b = 0 to 3, s = 1 to 4} {
  // CHECK-NEXT: [[Y0:%.*]] = ait.bmm rrc %x, %z : !ait.tensor<b x 3 x 5 x s x f32>
  %0 = ait.bmm rrr %x, %z : !ait.tensor<b x 3 x s x 5 x f32>
  %1 = ait.permute %0 [0, 1, 3, 2] : !ait.tensor<b x 3 x 5 x s x f32>
  // the batch moves, too
  // CHECK-NEXT: [[P:%.*]] = ait.bmm rrc %x, %z : !ait.tensor<b x 3 x 5 x s x f32>
  // CHECK-NEXT: [[Y1:%.*]] = ait.permute [[P]] [1, 0, 2, 3] : !ait.tensor<3 x b x 5 x s x f32>
  %2 = ait.bmm rrr %x, %z : !ait.tensor<b x 3 x s x 5 x f32>
  %3 = ait.permute %2 [1, 0, 3, 2] : !ait.tensor<3 x b x 5 x s x f32>
  // and from column-major back
  // CHECK-NEXT: [[Y2:%.*]] = ait.gemm rcr %w, %w : !ait.tensor<4 x 4 x f32>
  %4 = ait.gemm rcc %w, %w : !ait.tensor<4 x 4 x f32>
  %5 = ait.permute %4 [1, 0] : !ait.tensor<4 x 4 x f32>
  // CHECK-NEXT: ait.output "y0" [[Y0]]
  // CHECK-NEXT: ait.output "y1" [[Y1]]
  // CHECK-NEXT: ait.output "y2" [[Y2]]
  ait.output "y0" %1 : !ait.tensor<b x 3 x 5 x s x f32>
  ait.output "y1" %3 : !ait.tensor<3 x b x 5 x s x f32>
  ait.output "y2" %5 : !ait.tensor<4 x 4 x f32>
}

// Another permutation, rows in two dims, another user of the product, an epilogue, a chosen kernel.
// CHECK-LABEL: ait.graph @not_transposed
ait.graph @not_transposed(%x: !ait.tensor<2 x 3 x 8 x f32>, %z: !ait.tensor<2 x 3 x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>) {
  // CHECK: ait.bmm rcr
  // CHECK-NEXT: ait.permute
  %0 = ait.bmm rcr %x, %z : !ait.tensor<2 x 3 x 3 x f32>
  %1 = ait.permute %0 [1, 0, 2] : !ait.tensor<3 x 2 x 3 x f32>
  // CHECK: ait.gemm rcr
  // CHECK-NEXT: ait.permute
  %2 = ait.gemm rcr %x, %w : !ait.tensor<2 x 3 x 4 x f32>
  %3 = ait.permute %2 [0, 2, 1] : !ait.tensor<2 x 4 x 3 x f32>
  // CHECK: ait.bmm rcr
  // CHECK-NEXT: ait.permute
  %4 = ait.bmm rcr %x, %z : !ait.tensor<2 x 3 x 3 x f32>
  %5 = ait.permute %4 [0, 2, 1] : !ait.tensor<2 x 3 x 3 x f32>
  // CHECK: ait.bmm rcr
  %6 = ait.bmm rcr %x, %z epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<2 x 3 x 3 x f32>
  // CHECK: ait.permute
  %7 = ait.permute %6 [0, 2, 1] : !ait.tensor<2 x 3 x 3 x f32>
  // CHECK: ait.bmm rcr
  // CHECK-NEXT: ait.permute
  %8 = ait.bmm rcr %x, %z {kernel = #ait.kernel<"native", {}>} : !ait.tensor<2 x 3 x 3 x f32>
  %9 = ait.permute %8 [0, 2, 1] : !ait.tensor<2 x 3 x 3 x f32>
  ait.output "y1" %1 : !ait.tensor<3 x 2 x 3 x f32>
  ait.output "y3" %3 : !ait.tensor<2 x 4 x 3 x f32>
  ait.output "y4" %4 : !ait.tensor<2 x 3 x 3 x f32>
  ait.output "y5" %5 : !ait.tensor<2 x 3 x 3 x f32>
  ait.output "y7" %7 : !ait.tensor<2 x 3 x 3 x f32>
  ait.output "y9" %9 : !ait.tensor<2 x 3 x 3 x f32>
}

// CHECK-LABEL: ait.graph @repeated
ait.graph @repeated(%x: !ait.tensor<1 x 3 x 8 x f32>, %z: !ait.tensor<b x 8 x 5 x f32>, %w: !ait.tensor<8 x 3 x f32>) dims {b = 0 to 3} {
  %0 = ait.expand %x : !ait.tensor<b x 3 x 8 x f32>
  // CHECK-NEXT: ait.bmm rrr %x, %z : !ait.tensor<b x 3 x 5 x f32>
  %1 = ait.bmm rrr %0, %z : !ait.tensor<b x 3 x 5 x f32>
  %2 = ait.expand %w : !ait.tensor<b x 8 x 3 x f32>
  // CHECK-NEXT: ait.bmm crr %z, %w epilogue() {
  %3 = ait.bmm crr %z, %2 epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<b x 5 x 3 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 3 x 5 x f32>
  ait.output "y3" %3 : !ait.tensor<b x 5 x 3 x f32>
}

// A dim of the matrices is expanded, too; both operands are; the other operand has no such batch; a chosen kernel.
// CHECK-LABEL: ait.graph @not_repeated
ait.graph @not_repeated(%x: !ait.tensor<1 x 1 x 8 x f32>, %z: !ait.tensor<b x 8 x 5 x f32>, %v: !ait.tensor<1 x 8 x 8 x f32>, %u: !ait.tensor<8 x 5 x f32>) dims {b = 1 to 3} {
  // CHECK-NEXT: ait.expand
  // CHECK-NEXT: ait.bmm
  %0 = ait.expand %x : !ait.tensor<b x 16 x 8 x f32>
  %1 = ait.bmm rrr %0, %z : !ait.tensor<b x 16 x 5 x f32>
  // CHECK-NEXT: ait.expand
  // CHECK-NEXT: ait.bmm
  %2 = ait.expand %v : !ait.tensor<b x 8 x 8 x f32>
  %3 = ait.bmm rrr %2, %2 : !ait.tensor<b x 8 x 8 x f32>
  // CHECK-NEXT: ait.expand
  // CHECK-NEXT: ait.bmm
  %4 = ait.expand %v : !ait.tensor<b x 8 x 8 x f32>
  %5 = ait.bmm rrr %4, %u : !ait.tensor<b x 8 x 5 x f32>
  // CHECK-NEXT: ait.expand
  // CHECK-NEXT: ait.bmm
  %6 = ait.expand %v : !ait.tensor<b x 8 x 8 x f32>
  %7 = ait.bmm rrr %6, %z {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 8 x 5 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 16 x 5 x f32>
  ait.output "y3" %3 : !ait.tensor<b x 8 x 8 x f32>
  ait.output "y5" %5 : !ait.tensor<b x 8 x 5 x f32>
  ait.output "y7" %7 : !ait.tensor<b x 8 x 5 x f32>
}
