// RUN: ait-opt %s -p group-norms | filecheck %s
// RUN: ait-opt %s -p group-norms --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// The norms of two towers; what read the first one stands behind the group.
// CHECK-LABEL: ait.graph @towers
ait.graph @towers(%x: !ait.tensor<batch x 8 x f32>, %z: !ait.tensor<batch x 16 x f32>) dims {batch = 0 to 4} {
  %g = ait.param "g" : !ait.tensor<8 x f32>
  %b = ait.param "b" : !ait.tensor<8 x f32>
  %h = ait.param "h" : !ait.tensor<16 x f32>
  %c = ait.param "c" : !ait.tensor<16 x f32>
  // CHECK: [[Y:%.*]], [[Z:%.*]] = ait.grouped_norm layer %x, %z scale(%g, %h) bias(%b, %c) eps 1e-05 : !ait.tensor<batch x 8 x f32>, !ait.tensor<batch x 16 x f32>
  // CHECK: ait.tanh [[Y]]
  // CHECK: ait.output "y2" [[Z]]
  %0 = ait.layer_norm %x scale %g bias %b axes 1 eps 1e-05 : !ait.tensor<batch x 8 x f32>
  %1 = ait.tanh %0 : !ait.tensor<batch x 8 x f32>
  %2 = ait.layer_norm %z scale %h bias %c axes 1 eps 1e-05 : !ait.tensor<batch x 16 x f32>
  ait.output "y1" %1 : !ait.tensor<batch x 8 x f32>
  ait.output "y2" %2 : !ait.tensor<batch x 16 x f32>
}

// Of the parts of a split, without factors, with a gate by the input.
// CHECK-LABEL: ait.graph @parts
ait.graph @parts(%x: !ait.tensor<2 x 3 x 20 x f32>) {
  // CHECK: [[P:%.*]], [[Q:%.*]] = ait.split
  // CHECK: ait.grouped_norm rms [[P]], [[Q]] eps 1e-06 epilogue([[P]], [[Q]]) {
  // CHECK-NOT: ait.rms_norm
  %p, %q = ait.split %x dim 2 : !ait.tensor<2 x 3 x 8 x f32>, !ait.tensor<2 x 3 x 12 x f32>
  %0 = ait.rms_norm %p axes 1 eps 1e-06 epilogue(%p) {
  ^bb0(%n0: f32, %p_1: f32):
    %s0 = ait.sigmoid %n0 : f32
    %m0 = ait.mul %p_1, %s0 : f32
    ait.yield %m0 : f32
  } : !ait.tensor<2 x 3 x 8 x f32>
  %1 = ait.rms_norm %q axes 1 eps 1e-06 epilogue(%q) {
  ^bb0(%n1: f32, %q_1: f32):
    %s1 = ait.sigmoid %n1 : f32
    %m1 = ait.mul %q_1, %s1 : f32
    ait.yield %m1 : f32
  } : !ait.tensor<2 x 3 x 12 x f32>
  ait.output "y1" %0 : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y2" %1 : !ait.tensor<2 x 3 x 12 x f32>
}

// Rows of 8 and 31 are one group, rows of 32 and 40 another one: the longest are less than four times the shortest.
// CHECK-LABEL: ait.graph @lengths
ait.graph @lengths(%a: !ait.tensor<2 x 8 x f32>, %b: !ait.tensor<2 x 32 x f32>, %c: !ait.tensor<2 x 31 x f32>, %d: !ait.tensor<2 x 40 x f32>) {
  // CHECK: ait.grouped_norm layer %a, %c eps
  // CHECK: ait.grouped_norm layer %b, %d eps
  %0 = ait.layer_norm %a axes 1 eps 1e-05 : !ait.tensor<2 x 8 x f32>
  %1 = ait.layer_norm %b axes 1 eps 1e-05 : !ait.tensor<2 x 32 x f32>
  %2 = ait.layer_norm %c axes 1 eps 1e-05 : !ait.tensor<2 x 31 x f32>
  %3 = ait.layer_norm %d axes 1 eps 1e-05 : !ait.tensor<2 x 40 x f32>
  ait.output "y0" %0 : !ait.tensor<2 x 8 x f32>
  ait.output "y1" %1 : !ait.tensor<2 x 32 x f32>
  ait.output "y2" %2 : !ait.tensor<2 x 31 x f32>
  ait.output "y3" %3 : !ait.tensor<2 x 40 x f32>
}

// One after another; another kind; another eps; other rows; a scale beside none; a bias beside none; another type; two
// axes; a prologue; selected; another epilogue; an epilogue operand of one element a row beside one of whole rows.
// CHECK-LABEL: ait.graph @single
ait.graph @single(%x: !ait.tensor<m x 4 x f32>, %z: !ait.tensor<5 x 4 x f32>, %n: !ait.tensor<m x 4 x f16>, %c: !ait.tensor<m x 1 x f32>) dims {m = 1 to 4} {
  // CHECK-NOT: ait.grouped_norm
  %g = ait.param "g" : !ait.tensor<4 x f32>
  %0 = ait.layer_norm %x axes 1 eps 1e-05 : !ait.tensor<m x 4 x f32>
  %1 = ait.layer_norm %0 axes 1 eps 1e-05 : !ait.tensor<m x 4 x f32>
  %2 = ait.rms_norm %x axes 1 eps 1e-05 : !ait.tensor<m x 4 x f32>
  %3 = ait.layer_norm %x axes 1 eps 1e-06 : !ait.tensor<m x 4 x f32>
  %4 = ait.layer_norm %z axes 1 eps 1e-05 : !ait.tensor<5 x 4 x f32>
  %5 = ait.layer_norm %x scale %g axes 1 eps 1e-05 : !ait.tensor<m x 4 x f32>
  %6 = ait.layer_norm %x bias %g axes 1 eps 1e-05 : !ait.tensor<m x 4 x f32>
  %7 = ait.layer_norm %n axes 1 eps 1e-05 : !ait.tensor<m x 4 x f16>
  %8 = ait.layer_norm %x axes 2 eps 1e-05 : !ait.tensor<m x 4 x f32>
  %9 = ait.layer_norm %x axes 1 eps 1e-05 prologue(%c) {
  ^bb0(%x_1: f32, %c_1: f32):
    %s9 = ait.add %x_1, %c_1 : f32
    ait.yield %s9 : f32
  } : !ait.tensor<m x 4 x f32>
  %10 = ait.layer_norm %x axes 1 eps 1e-05 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<m x 4 x f32>
  %11 = ait.layer_norm %x axes 1 eps 1e-05 epilogue(%x) {
  ^bb0(%n11: f32, %x_2: f32):
    %s11 = ait.add %n11, %x_2 : f32
    ait.yield %s11 : f32
  } : !ait.tensor<m x 4 x f32>
  %12 = ait.layer_norm %x axes 1 eps 1e-05 epilogue(%c) {
  ^bb0(%n12: f32, %c_2: f32):
    %s12 = ait.add %n12, %c_2 : f32
    ait.yield %s12 : f32
  } : !ait.tensor<m x 4 x f32>
  %13 = ait.layer_norm %n axes 1 eps 1e-05 epilogue() {
  ^bb0(%n13: f32):
    ait.yield %n13 : f32
  } : !ait.tensor<m x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<m x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<m x 4 x f32>
  ait.output "y3" %3 : !ait.tensor<m x 4 x f32>
  ait.output "y4" %4 : !ait.tensor<5 x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<m x 4 x f32>
  ait.output "y6" %6 : !ait.tensor<m x 4 x f32>
  ait.output "y7" %7 : !ait.tensor<m x 4 x f16>
  ait.output "y8" %8 : !ait.tensor<m x 4 x f32>
  ait.output "y9" %9 : !ait.tensor<m x 4 x f32>
  ait.output "y10" %10 : !ait.tensor<m x 4 x f32>
  ait.output "y11" %11 : !ait.tensor<m x 4 x f32>
  ait.output "y12" %12 : !ait.tensor<m x 4 x f32>
  ait.output "y13" %13 : !ait.tensor<m x 4 x f32>
}

// Results of other types; inputs of other types; another epilogue of the same operands; epilogue operands of other types.
// CHECK-LABEL: ait.graph @unlike
ait.graph @unlike(%x: !ait.tensor<2 x 4 x f32>, %n: !ait.tensor<2 x 4 x f16>) {
  // CHECK-NOT: ait.grouped_norm
  %0 = ait.layer_norm %x axes 1 eps 1e-05 epilogue() {
  ^bb0(%a0: f32):
    %r0 = ait.relu %a0 : f32
    ait.yield %r0 : f32
  } : !ait.tensor<2 x 4 x f32>
  %1 = ait.layer_norm %x axes 1 eps 1e-05 epilogue() {
  ^bb0(%a1: f32):
    %r1 = ait.relu %a1 : f32
    ait.yield %r1 : f32
  } : !ait.tensor<2 x 4 x f16>
  %2 = ait.layer_norm %n axes 1 eps 1e-05 epilogue() {
  ^bb0(%a2: f32):
    %r2 = ait.relu %a2 : f32
    ait.yield %r2 : f32
  } : !ait.tensor<2 x 4 x f32>
  %3 = ait.layer_norm %x axes 1 eps 1e-05 epilogue(%x) {
  ^bb0(%a3: f32, %x3: f32):
    %r3 = ait.add %a3, %x3 : f32
    ait.yield %r3 : f32
  } : !ait.tensor<2 x 4 x f32>
  %4 = ait.layer_norm %x axes 1 eps 1e-05 epilogue(%x) {
  ^bb0(%a4: f32, %x4: f32):
    %r4 = ait.mul %a4, %x4 : f32
    ait.yield %r4 : f32
  } : !ait.tensor<2 x 4 x f32>
  %5 = ait.layer_norm %x axes 1 eps 1e-05 epilogue(%n) {
  ^bb0(%a5: f32, %x5: f32):
    %r5 = ait.add %a5, %x5 : f32
    ait.yield %r5 : f32
  } : !ait.tensor<2 x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<2 x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<2 x 4 x f16>
  ait.output "y2" %2 : !ait.tensor<2 x 4 x f32>
  ait.output "y3" %3 : !ait.tensor<2 x 4 x f32>
  ait.output "y4" %4 : !ait.tensor<2 x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<2 x 4 x f32>
}

// Norms whose mean is bounded stay alone: a grouped norm adds its eps.
// CHECK-LABEL: ait.graph @bounded
// CHECK-NOT: ait.grouped_norm
// CHECK: ait.output
ait.graph @bounded(%p: !ait.tensor<m x 4 x f32>, %q: !ait.tensor<m x 4 x f32>) dims {m = 0 to 4} {
  %0 = ait.rms_norm %p axes 1 eps 0.5 bounded : !ait.tensor<m x 4 x f32>
  %1 = ait.rms_norm %q axes 1 eps 0.5 bounded : !ait.tensor<m x 4 x f32>
  ait.output "y" %0 : !ait.tensor<m x 4 x f32>
  ait.output "z" %1 : !ait.tensor<m x 4 x f32>
}
