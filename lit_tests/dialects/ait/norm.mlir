// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @softmax
ait.graph @softmax(%x: !ait.tensor<b x s x 8 x f16>) dims {b = 0 to 4, s = 1 to 4} {
  // CHECK: ait.softmax %x dim 2 : !ait.tensor<b x s x 8 x f16>
  // GENERIC: "ait.softmax"(%x) <{dim = 2 : i64}> : (!ait.tensor<b x s x 8 x f16>) -> !ait.tensor<b x s x 8 x f16>
  %0 = ait.softmax %x dim 2 : !ait.tensor<b x s x 8 x f16>
  // CHECK-NEXT: ait.softmax %0 dim 0
  %1 = ait.softmax %0 dim 0 : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %1 : !ait.tensor<b x s x 8 x f16>
}

// CHECK-LABEL: ait.graph @layer_norm
ait.graph @layer_norm(%x: !ait.tensor<b x 4 x 8 x f16>, %g: !ait.tensor<8 x f16>, %b: !ait.tensor<8 x f16>, %g2: !ait.tensor<4 x 8 x f16>) dims {b = 0 to 4} {
  // CHECK: ait.layer_norm %x scale %g bias %b axes 1 eps 1e-05 : !ait.tensor<b x 4 x 8 x f16>
  // GENERIC: "ait.layer_norm"(%x, %g, %b) <{axes = 1 : i64, eps = 1.000000e-05 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({
  %0 = ait.layer_norm %x scale %g bias %b axes 1 eps 1.0e-05 : !ait.tensor<b x 4 x 8 x f16>
  // CHECK-NEXT: ait.layer_norm %0 axes 1 eps 0.001 : !ait.tensor<b x 4 x 8 x f16>
  // GENERIC: operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>
  %1 = ait.layer_norm %0 axes 1 eps 0.001 : !ait.tensor<b x 4 x 8 x f16>
  // CHECK-NEXT: ait.layer_norm %1 scale %g2 axes 2 eps 0.0 : !ait.tensor<b x 4 x 8 x f16>
  // GENERIC: operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>
  %2 = ait.layer_norm %1 scale %g2 axes 2 eps 0.0 : !ait.tensor<b x 4 x 8 x f16>
  // CHECK-NEXT: ait.layer_norm %2 bias %b axes 1
  // GENERIC: operandSegmentSizes = array<i32: 1, 0, 1, 0, 0>
  %3 = ait.layer_norm %2 bias %b axes 1 eps 1.0e-12 : !ait.tensor<b x 4 x 8 x f16>
  ait.output "y" %3 : !ait.tensor<b x 4 x 8 x f16>
}

// CHECK-LABEL: ait.graph @prologue
ait.graph @prologue(%x: !ait.tensor<b x 8 x f16>, %r: !ait.tensor<8 x f16>, %g: !ait.tensor<8 x f16>) dims {b = 0 to 4} {
  // CHECK: %0, %1 = ait.layer_norm %x scale %g axes 1 eps 1e-05 prologue(%r) {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
  // GENERIC: operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>
  %0, %1 = ait.layer_norm %x scale %g axes 1 eps 1.0e-05 prologue(%r) {
  ^bb0(%a: f32, %c: f32):
    %s = ait.add %a, %c : f32
    // CHECK: ait.yield %{{.*}}, %{{.*}} : f32, f32
    ait.yield %s, %s : f32, f32
  // CHECK-NEXT: } : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f32>
  } : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f32>
  ait.output "y" %0 : !ait.tensor<b x 8 x f16>
  ait.output "sum" %1 : !ait.tensor<b x 8 x f32>
}

// CHECK-LABEL: ait.graph @epilogue
ait.graph @epilogue(%x: !ait.tensor<b x 8 x f16>, %r: !ait.tensor<8 x f16>) dims {b = 0 to 4} {
  // CHECK: ait.layer_norm %x axes 1 eps 1e-05 epilogue(%x) {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
  // GENERIC: operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>
  %0 = ait.layer_norm %x axes 1 eps 1.0e-05 epilogue(%x) {
  ^bb0(%a: f32, %c: f32):
    %s = ait.sigmoid %a : f32
    %m = ait.mul %s, %c : f32
    ait.yield %m : f32
  // CHECK: } : !ait.tensor<b x 8 x f32>
  } : !ait.tensor<b x 8 x f32>
  // CHECK: %1, %2 = ait.rms_norm %x axes 1 eps 1e-05 prologue(%r) {
  // GENERIC: operandSegmentSizes = array<i32: 1, 0, 0, 1, 0>
  %1, %2 = ait.rms_norm %x axes 1 eps 1.0e-05 prologue(%r) {
  ^bb0(%a: f32, %c: f32):
    %s = ait.add %a, %c : f32
    ait.yield %s, %s : f32, f32
  // CHECK: } epilogue() {
  } epilogue() {
  ^bb0(%a: f32):
    %s = ait.silu %a : f32
    ait.yield %s : f32
  // CHECK: } : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f16>
  } : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f16>
  ait.output "y" %0 : !ait.tensor<b x 8 x f32>
  ait.output "z" %1 : !ait.tensor<b x 8 x f16>
  ait.output "sum" %2 : !ait.tensor<b x 8 x f16>
}

// CHECK-LABEL: ait.graph @rms_norm
ait.graph @rms_norm(%x: !ait.tensor<b x 8 x f16>, %g: !ait.tensor<8 x f16>) dims {b = 0 to 4} {
  // CHECK: ait.rms_norm %x scale %g axes 1 eps 1e-05 : !ait.tensor<b x 8 x f16>
  // GENERIC: "ait.rms_norm"(%x, %g) <{axes = 1 : i64, eps = 1.000000e-05 : f64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}> ({
  %0 = ait.rms_norm %x scale %g axes 1 eps 1.0e-05 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %1, %2 = ait.rms_norm %0 axes 1 eps 0.001 prologue(%x) {
  %1, %2 = ait.rms_norm %0 axes 1 eps 0.001 prologue(%x) {
  ^bb0(%a: f32, %c: f32):
    %s = ait.add %a, %c : f32
    // CHECK: ait.yield %{{.*}}, %{{.*}} : f32, f32
    ait.yield %s, %s : f32, f32
  } : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f16>
  ait.output "y" %1 : !ait.tensor<b x 8 x f16>
  ait.output "sum" %2 : !ait.tensor<b x 8 x f16>
}

// CHECK-LABEL: ait.graph @group_norm
ait.graph @group_norm(%x: !ait.tensor<b x s x 32 x f16>, %g: !ait.tensor<32 x f16>) dims {b = 0 to 4, s = 0 to 4} {
  // CHECK: ait.group_norm %x dim 2 groups 4 eps 1e-05 : !ait.tensor<b x s x 32 x f16>
  %0 = ait.group_norm %x dim 2 groups 4 eps 1e-05 : !ait.tensor<b x s x 32 x f16>
  // CHECK-NEXT: ait.group_norm %0 scale %g bias %g dim 2 groups 32 eps 0.1 epilogue(%x) {
  %1 = ait.group_norm %0 scale %g bias %g dim 2 groups 32 eps 0.1 epilogue(%x) {
  ^bb0(%acc: f32, %r: f32):
    %2 = ait.silu %acc : f32
    %3 = ait.add %2, %r : f32
    ait.yield %3 : f32
  } : !ait.tensor<b x s x 32 x f32>
  ait.output "y" %1 : !ait.tensor<b x s x 32 x f32>
}
