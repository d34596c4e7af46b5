// RUN: ait-opt %s -p fuse-norm | filecheck %s
// RUN: ait-opt %s -p fuse-norm --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// CHECK-LABEL: ait.graph @residual
ait.graph @residual(%x: !ait.tensor<b x 4 x f16>, %r: !ait.tensor<b x 4 x f16>) dims {b = 0 to 8} {
  %g = ait.param "g" : !ait.tensor<4 x f16>
  %c = ait.param "c" : !ait.tensor<4 x f16>
  // CHECK: ait.layer_norm %x scale %g bias %c axes 1 eps {{.*}} prologue(%r) {
  // CHECK-NEXT: ^bb0([[X:%.*]]: f32, [[R:%.*]]: f32):
  // CHECK-NEXT: [[S:%.*]] = ait.add [[X]], [[R]] : f32
  // CHECK-NEXT: ait.yield [[S]] : f32
  // CHECK-NEXT: } : !ait.tensor<b x 4 x f16>
  %0 = ait.add %x, %r : !ait.tensor<b x 4 x f16>
  %1 = ait.layer_norm %0 scale %g bias %c axes 1 eps 0.00001 : !ait.tensor<b x 4 x f16>
  ait.output "y" %1 : !ait.tensor<b x 4 x f16>
}

// The sum that a later residual needs is the second result.
// CHECK-LABEL: ait.graph @sum_is_used
ait.graph @sum_is_used(%x: !ait.tensor<b x 4 x f16>, %r: !ait.tensor<b x 4 x f16>) dims {b = 1 to 8} {
  // CHECK-NEXT: %0, %1 = ait.layer_norm %x axes 1 eps {{.*}} prologue(%r) {
  // CHECK: ait.yield [[S:%.*]], [[S]] : f32, f32
  // CHECK-NEXT: } : !ait.tensor<b x 4 x f16>, !ait.tensor<b x 4 x f16>
  // CHECK-NEXT: ait.add %0, %1
  // CHECK-NEXT: ait.output
  // CHECK-NEXT: ait.output "sum" %1
  %0 = ait.add %x, %r : !ait.tensor<b x 4 x f16>
  %1 = ait.layer_norm %0 axes 1 eps 0.00001 : !ait.tensor<b x 4 x f16>
  %2 = ait.add %1, %0 : !ait.tensor<b x 4 x f16>
  ait.output "y" %2 : !ait.tensor<b x 4 x f16>
  ait.output "sum" %0 : !ait.tensor<b x 4 x f16>
}

// The operand of the sum's shape is the input, wherever it stands; x + x has no other operand.
// CHECK-LABEL: ait.graph @either_order
ait.graph @either_order(%x: !ait.tensor<b x 4 x f16>) dims {b = 1 to 8} {
  %c = ait.param "c" : !ait.tensor<4 x f16>
  // CHECK: [[A:%.*]] = ait.layer_norm %x axes 1 eps {{.*}} prologue(%c) {
  // CHECK: [[S:%.*]] = ait.add [[C:%.*]], [[X:%.*]] : f32
  // CHECK: ait.layer_norm [[A]] axes 1 eps {{.*}} prologue() {
  // CHECK-NEXT: ^bb0([[B:%.*]]: f32):
  // CHECK-NEXT: ait.add [[B]], [[B]]
  %0 = ait.add %c, %x : !ait.tensor<b x 4 x f16>
  %1 = ait.layer_norm %0 axes 1 eps 0.00001 : !ait.tensor<b x 4 x f16>
  %2 = ait.add %1, %1 : !ait.tensor<b x 4 x f16>
  %3 = ait.layer_norm %2 axes 1 eps 0.00001 : !ait.tensor<b x 4 x f16>
  ait.output "y" %3 : !ait.tensor<b x 4 x f16>
}

// Neither operand has the shape of the sum.
// CHECK-LABEL: ait.graph @broadcast
ait.graph @broadcast(%x: !ait.tensor<3 x 1 x f32>, %r: !ait.tensor<1 x 4 x f32>) {
  // CHECK-NEXT: ait.add
  // CHECK-NEXT: ait.layer_norm %0 axes 1 eps {{.*}} : !ait.tensor<3 x 4 x f32>
  %0 = ait.add %x, %r : !ait.tensor<3 x 4 x f32>
  %1 = ait.layer_norm %0 axes 1 eps 0.00001 : !ait.tensor<3 x 4 x f32>
  ait.output "y" %1 : !ait.tensor<3 x 4 x f32>
}

// The sum is needed before the norm.
// CHECK-LABEL: ait.graph @used_before
ait.graph @used_before(%x: !ait.tensor<b x 4 x f32>, %c: !ait.tensor<4 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: %0 = ait.add %x, %x
  // CHECK-NEXT: %1 = ait.exp %0
  // CHECK-NEXT: %2 = ait.add %c, %x
  // CHECK-NEXT: %3 = ait.exp %2
  // CHECK-NEXT: %4 = ait.layer_norm %0
  // CHECK-NEXT: %5 = ait.layer_norm %2
  %0 = ait.add %x, %x : !ait.tensor<b x 4 x f32>
  %1 = ait.exp %0 : !ait.tensor<b x 4 x f32>
  %2 = ait.add %c, %x : !ait.tensor<b x 4 x f32>
  %3 = ait.exp %2 : !ait.tensor<b x 4 x f32>
  %4 = ait.layer_norm %0 axes 1 eps 0.00001 : !ait.tensor<b x 4 x f32>
  %5 = ait.layer_norm %2 axes 1 eps 0.00001 : !ait.tensor<b x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 4 x f32>
  ait.output "y3" %3 : !ait.tensor<b x 4 x f32>
  ait.output "y4" %4 : !ait.tensor<b x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<b x 4 x f32>
}

// A norm that is selected already keeps what it has.
// CHECK-LABEL: ait.graph @selected
ait.graph @selected(%x: !ait.tensor<b x 4 x f32>, %c: !ait.tensor<4 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: %0 = ait.add %x, %c
  // CHECK-NEXT: %1 = ait.add %c, %x
  // CHECK-NEXT: ait.layer_norm %0
  // CHECK-NEXT: ait.layer_norm %1
  %0 = ait.add %x, %c : !ait.tensor<b x 4 x f32>
  %1 = ait.add %c, %x : !ait.tensor<b x 4 x f32>
  %2 = ait.layer_norm %0 axes 1 eps 0.00001 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 4 x f32>
  %3 = ait.layer_norm %1 axes 1 eps 0.00001 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<b x 4 x f32>
  ait.output "y3" %3 : !ait.tensor<b x 4 x f32>
}

// A prologue that is there stays, behind the sum; its results come before the sum.
// CHECK-LABEL: ait.graph @prologue_grows
ait.graph @prologue_grows(%x: !ait.tensor<b x 4 x f32>, %c: !ait.tensor<4 x f32>) dims {b = 1 to 8} {
  %g = ait.param "g" : !ait.tensor<4 x f32>
  // CHECK: %0, %1, %2 = ait.layer_norm %x scale %g axes 1 eps {{.*}} prologue(%c) {
  // CHECK-NEXT: ^bb0([[X:%.*]]: f32, [[C:%.*]]: f32):
  // CHECK-NEXT: [[S:%.*]] = ait.add [[X]], [[C]] : f32
  // CHECK-NEXT: [[R:%.*]] = ait.mul [[S]], [[C]] : f32
  // CHECK-NEXT: ait.yield [[R]], [[R]], [[S]] : f32, f32, f32
  // CHECK: ait.output "r" %1
  // CHECK-NEXT: ait.output "s" %2
  %0 = ait.add %x, %c : !ait.tensor<b x 4 x f32>
  %1, %2 = ait.layer_norm %0 scale %g axes 1 eps 0.00001 prologue(%c) {
  ^bb0(%a: f32, %b: f32):
    %r = ait.mul %a, %b : f32
    ait.yield %r, %r : f32, f32
  } : !ait.tensor<b x 4 x f32>, !ait.tensor<b x 4 x f32>
  ait.output "y" %1 : !ait.tensor<b x 4 x f32>
  ait.output "r" %2 : !ait.tensor<b x 4 x f32>
  ait.output "s" %0 : !ait.tensor<b x 4 x f32>
}

// Only the last sum is kept for others; one inside that others need before the norm is not taken in.
// CHECK-LABEL: ait.graph @shared_inside
ait.graph @shared_inside(%x: !ait.tensor<b x 4 x f32>, %c: !ait.tensor<4 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: %0 = ait.add %x, %c
  // CHECK-NEXT: %1 = ait.exp %0
  // CHECK-NEXT: ait.layer_norm %0 axes 1 eps {{.*}} prologue(%1) {
  %0 = ait.add %x, %c : !ait.tensor<b x 4 x f32>
  %1 = ait.exp %0 : !ait.tensor<b x 4 x f32>
  %2 = ait.add %0, %1 : !ait.tensor<b x 4 x f32>
  %3 = ait.layer_norm %2 axes 1 eps 0.00001 : !ait.tensor<b x 4 x f32>
  ait.output "y" %3 : !ait.tensor<b x 4 x f32>
}

// A constant becomes part of a region, so it cannot be what the norm reads; the other operand of the sum is.
// CHECK-LABEL: ait.graph @constant_residual
ait.graph @constant_residual(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 4} {
  %c = ait.constant 3.0 : !ait.tensor<b x 8 x f32>
  %s = ait.add %c, %x : !ait.tensor<b x 8 x f32>
  // CHECK: ait.layer_norm %x axes 1 eps 0.001 prologue() {
  %y = ait.layer_norm %s axes 1 eps 0.001 : !ait.tensor<b x 8 x f32>
  ait.output "y" %y : !ait.tensor<b x 8 x f32>
}

// CHECK-LABEL: ait.graph @constant_sum
ait.graph @constant_sum() dims {b = 1 to 4} {
  %c = ait.constant 3.0 : !ait.tensor<b x 8 x f32>
  // CHECK: ait.add
  %s = ait.add %c, %c : !ait.tensor<b x 8 x f32>
  // CHECK-NEXT: ait.layer_norm
  // CHECK-NOT: prologue
  %y = ait.layer_norm %s axes 1 eps 0.001 : !ait.tensor<b x 8 x f32>
  ait.output "y" %y : !ait.tensor<b x 8 x f32>
}

// The sum of three embeddings is computed by the norm; a constant is added in its place.
// CHECK-LABEL: ait.graph @embeddings
ait.graph @embeddings(%x: !ait.tensor<b x 4 x f16>, %p: !ait.tensor<b x 4 x f16>, %t: !ait.tensor<4 x f16>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.layer_norm %x axes 1 eps {{.*}} prologue(%t, %p) {
  // CHECK-NEXT: ^bb0([[X:%.*]]: f32, [[T:%.*]]: f32, [[P:%.*]]: f32):
  // CHECK-NEXT: [[C:%.*]] = ait.constant 0.5 : f32
  // CHECK-NEXT: [[A:%.*]] = ait.add [[X]], [[C]] : f32
  // CHECK-NEXT: [[B:%.*]] = ait.add [[A]], [[P]] : f32
  // CHECK-NEXT: [[S:%.*]] = ait.add [[B]], [[T]] : f32
  // CHECK-NEXT: ait.yield [[S]], [[S]] : f32, f32
  // CHECK-NEXT: } : !ait.tensor<b x 4 x f16>, !ait.tensor<b x 4 x f16>
  %half = ait.constant 0.5 : !ait.tensor<f16>
  %0 = ait.add %half, %x : !ait.tensor<b x 4 x f16>
  %1 = ait.add %0, %p : !ait.tensor<b x 4 x f16>
  %2 = ait.add %1, %t : !ait.tensor<b x 4 x f16>
  %3 = ait.layer_norm %2 axes 1 eps 0.00001 : !ait.tensor<b x 4 x f16>
  ait.output "y" %3 : !ait.tensor<b x 4 x f16>
  ait.output "sum" %2 : !ait.tensor<b x 4 x f16>
}

// rms_norm is a norm like layer_norm.
// CHECK-LABEL: ait.graph @rms_norm
ait.graph @rms_norm(%x: !ait.tensor<b x 4 x f16>, %r: !ait.tensor<b x 4 x f16>) dims {b = 0 to 8} {
  %g = ait.param "g" : !ait.tensor<4 x f16>
  // CHECK: %0, %1 = ait.rms_norm %x scale %g axes 1 eps {{.*}} prologue(%r) {
  // CHECK: ait.yield [[S:%.*]], [[S]] : f32, f32
  %0 = ait.add %x, %r : !ait.tensor<b x 4 x f16>
  %1 = ait.rms_norm %0 scale %g axes 1 eps 0.00001 : !ait.tensor<b x 4 x f16>
  ait.output "y" %1 : !ait.tensor<b x 4 x f16>
  ait.output "sum" %0 : !ait.tensor<b x 4 x f16>
}

// Softmax is no norm: it has no prologue.
// CHECK-LABEL: ait.graph @softmax
ait.graph @softmax(%x: !ait.tensor<b x 4 x f16>, %r: !ait.tensor<b x 4 x f16>) dims {b = 0 to 8} {
  // CHECK-NEXT: ait.add
  // CHECK-NEXT: ait.softmax
  %0 = ait.add %x, %r : !ait.tensor<b x 4 x f16>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<b x 4 x f16>
  ait.output "y" %1 : !ait.tensor<b x 4 x f16>
  %2 = ait.add %r, %x : !ait.tensor<b x 4 x f16>
  %3 = ait.softmax %2 dim 1 : !ait.tensor<b x 4 x f16>
  ait.output "z" %3 : !ait.tensor<b x 4 x f16>
}

// An epilogue stays behind the sum; but the sum stays by itself where the epilogue reads it.
// CHECK-LABEL: ait.graph @epilogue_stays
ait.graph @epilogue_stays(%x: !ait.tensor<b x 4 x f16>, %r: !ait.tensor<b x 4 x f16>) dims {b = 1 to 8} {
  // CHECK-NEXT: %0, %1 = ait.layer_norm %x axes 1 eps {{.*}} prologue(%r) {
  // CHECK: } epilogue(%r) {
  // CHECK-NEXT: ^bb0([[A:%.*]]: f32, [[C:%.*]]: f32):
  // CHECK-NEXT: ait.mul [[A]], [[C]] : f32
  %0 = ait.add %x, %r : !ait.tensor<b x 4 x f16>
  %1 = ait.layer_norm %0 axes 1 eps 0.00001 epilogue(%r) {
  ^bb0(%a: f32, %c: f32):
    %s = ait.mul %a, %c : f32
    ait.yield %s : f32
  } : !ait.tensor<b x 4 x f16>
  ait.output "y" %1 : !ait.tensor<b x 4 x f16>
  ait.output "sum" %0 : !ait.tensor<b x 4 x f16>
  // CHECK: [[T:%.*]] = ait.add %x, %r
  // CHECK-NEXT: ait.rms_norm [[T]] axes 1 eps {{.*}} epilogue([[T]]) {
  %2 = ait.add %x, %r : !ait.tensor<b x 4 x f16>
  %3 = ait.rms_norm %2 axes 1 eps 0.00001 epilogue(%2) {
  ^bb0(%a: f32, %c: f32):
    %s = ait.mul %a, %c : f32
    ait.yield %s : f32
  } : !ait.tensor<b x 4 x f16>
  ait.output "z" %3 : !ait.tensor<b x 4 x f16>
}
