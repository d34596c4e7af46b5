// RUN: ait-opt %s -p apply-padding | filecheck %s
// RUN: ait-opt %s -p apply-padding --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// CHECK-LABEL: ait.graph @odd
ait.graph @odd(%x: !ait.tensor<m x 7 x f16>, %z: !ait.tensor<2 x 5 x 4 x bf16>, %v: !ait.tensor<2 x 4 x 3 x bf16>) dims {m = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<5 x 7 x f16>
  // CHECK: [[X:%.*]] = ait.pad constant %x before [0, 0] : !ait.tensor<m x 8 x f16>
  // CHECK-NEXT: [[W:%.*]] = ait.pad constant %w before [0, 0] : !ait.tensor<6 x 8 x f16>
  // CHECK-NEXT: [[Y:%.*]] = ait.gemm rcr [[X]], [[W]] : !ait.tensor<m x 6 x f16>
  // CHECK-NEXT: ait.slice [[Y]] offsets [0, 0] : !ait.tensor<m x 5 x f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<m x 5 x f16>
  // M of A is the length of rows of the result alone where it is stored in columns.
  // CHECK-NEXT: [[Z:%.*]] = ait.pad constant %z before [0, 0, 0] : !ait.tensor<2 x 6 x 4 x bf16>
  // CHECK-NEXT: [[V:%.*]] = ait.pad constant %v before [0, 0, 0] : !ait.tensor<2 x 4 x 4 x bf16>
  // CHECK-NEXT: [[U:%.*]] = ait.bmm rrc [[Z]], [[V]] : !ait.tensor<2 x 4 x 6 x bf16>
  // CHECK-NEXT: ait.slice [[U]] offsets [0, 0, 0] : !ait.tensor<2 x 3 x 5 x bf16>
  %1 = ait.bmm rrc %z, %v : !ait.tensor<2 x 3 x 5 x bf16>
  ait.output "y0" %0 : !ait.tensor<m x 5 x f16>
  ait.output "y1" %1 : !ait.tensor<2 x 3 x 5 x bf16>
}

// Four-byte elements; even sizes; sizes of 1; an odd number of rows; two results; a selected product.
// CHECK-LABEL: ait.graph @not_odd
ait.graph @not_odd(%x: !ait.tensor<3 x 7 x f32>, %y: !ait.tensor<3 x 8 x f16>, %z: !ait.tensor<3 x 1 x f16>, %v: !ait.tensor<3 x 7 x f16>) {
  // CHECK-NOT: ait.pad
  %w = ait.param "w" : !ait.tensor<5 x 7 x f32>
  %w2 = ait.param "w2" : !ait.tensor<6 x 8 x f16>
  %w3 = ait.param "w3" : !ait.tensor<2 x 1 x f16>
  %w4 = ait.param "w4" : !ait.tensor<4 x 7 x f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<3 x 5 x f32>
  %1 = ait.gemm rcr %y, %w2 : !ait.tensor<3 x 6 x f16>
  %2 = ait.gemm rcr %z, %w3 : !ait.tensor<3 x 2 x f16>
  %3, %further = ait.gemm rcr %v, %w4 epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r, %acc : f32, f32
  } : !ait.tensor<3 x 4 x f16>, !ait.tensor<3 x 4 x f16>
  %4 = ait.gemm rcr %v, %w4 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<3 x 4 x f16>
  %5 = ait.reshape %v : !ait.tensor<1 x 3 x 7 x f16>
  %7 = ait.bmm rcr %5, %w4 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<1 x 3 x 4 x f16>
  ait.output "y0" %0 : !ait.tensor<3 x 5 x f32>
  ait.output "y3b" %further : !ait.tensor<3 x 4 x f16>
  ait.output "y7" %7 : !ait.tensor<1 x 3 x 4 x f16>
  ait.output "y1" %1 : !ait.tensor<3 x 6 x f16>
  ait.output "y2" %2 : !ait.tensor<3 x 2 x f16>
  ait.output "y3" %3 : !ait.tensor<3 x 4 x f16>
  ait.output "y4" %4 : !ait.tensor<3 x 4 x f16>
}

// The operands of an epilogue get zeros where they have the rows or columns of the result; numbers and single rows stay.
// CHECK-LABEL: ait.graph @epilogues
ait.graph @epilogues(%x: !ait.tensor<m x 7 x f16>, %c: !ait.tensor<5 x f16>, %d: !ait.tensor<m x 5 x f16>, %e: !ait.tensor<m x 1 x f16>, %y: !ait.tensor<7 x 3 x f16>, %f: !ait.tensor<5 x 3 x f16>,
    %g: !ait.tensor<5 x 1 x f16>) dims {m = 1 to 4} {
  %w = ait.param "epilogues.w" : !ait.tensor<5 x 7 x f16>
  // CHECK: [[X:%.*]] = ait.pad constant %x before [0, 0] : !ait.tensor<m x 8 x f16>
  // CHECK-NEXT: [[W:%.*]] = ait.pad constant %w before [0, 0] : !ait.tensor<6 x 8 x f16>
  // CHECK-NEXT: [[C:%.*]] = ait.pad constant %c before [0] : !ait.tensor<6 x f16>
  // CHECK-NEXT: [[D:%.*]] = ait.pad constant %d before [0, 0] : !ait.tensor<m x 6 x f16>
  // CHECK-NEXT: [[Y:%.*]] = ait.gemm rcr [[X]], [[W]] epilogue([[C]], [[D]], %e) {
  // CHECK: } : !ait.tensor<m x 6 x f16>
  // CHECK-NEXT: ait.slice [[Y]] offsets [0, 0] : !ait.tensor<m x 5 x f16>
  %0 = ait.gemm rcr %x, %w epilogue(%c, %d, %e) {
  ^bb0(%acc: f32, %a: f32, %b: f32, %r: f32):
    %s = ait.add %acc, %a : f32
    %t = ait.mul %s, %b : f32
    %u = ait.add %t, %r : f32
    ait.yield %u : f32
  } : !ait.tensor<m x 5 x f16>
  // CHECK-NEXT: [[Y:%.*]] = ait.pad constant %y before [0, 0] : !ait.tensor<8 x 4 x f16>
  // CHECK-NEXT: [[W:%.*]] = ait.pad constant %w before [0, 0] : !ait.tensor<5 x 8 x f16>
  // CHECK-NEXT: [[F:%.*]] = ait.pad constant %f before [0, 0] : !ait.tensor<5 x 4 x f16>
  // CHECK-NEXT: ait.gemm ccc [[Y]], [[W]] epilogue([[F]], %g) {
  // CHECK: } : !ait.tensor<5 x 4 x f16>
  %1 = ait.gemm ccc %y, %w epilogue(%f, %g) {
  ^bb0(%acc: f32, %a: f32, %b: f32):
    %s = ait.add %acc, %a : f32
    %t = ait.mul %s, %b : f32
    ait.yield %t : f32
  } : !ait.tensor<5 x 3 x f16>
  ait.output "y0" %0 : !ait.tensor<m x 5 x f16>
  ait.output "y1" %1 : !ait.tensor<5 x 3 x f16>
}
