// RUN: ait-opt %s -p form-loops --check-semantics | filecheck %s
// RUN: ait-opt %s -p 'form-loops,select{target="cuda" arch="sm_90a"}' | filecheck %s --check-prefix=SELECTED

// A pool reads an image as it lies: no permute is left.
// CHECK-LABEL: ait.graph @pool_of_an_image
ait.graph @pool_of_an_image(%x: !ait.tensor<b x 3 x 8 x 8 x f16>) dims {b = 1 to 8} {
  // CHECK-NEXT: %y = ait.loops(%x) for (d0 = b, d1 = 3, d2 = 4, d3 = 4) {
  // CHECK: ait.fold max for (k0 = 2, k1 = 2) {
  // CHECK-NEXT: ait.at %{{.*}}[d0, d1, 2*d2 + k0, 2*d3 + k1] : f32
  // CHECK: ait.output
  %p = ait.permute %x [0, 2, 3, 1] : !ait.tensor<b x 8 x 8 x 3 x f16>
  %q = ait.pool max %p window [2, 2] stride [2, 2] : !ait.tensor<b x 4 x 4 x 3 x f16>
  %y = ait.permute %q [0, 3, 1, 2] : !ait.tensor<b x 3 x 4 x 4 x f16>
  ait.output "y" %y : !ait.tensor<b x 3 x 4 x 4 x f16>
}

// CHECK-LABEL: ait.graph @resize_of_a_sum
// SELECTED-LABEL: ait.graph @resize_of_a_sum
// SELECTED: ait.loops
// SELECTED: } {kernel = #ait.kernel<"native", {
ait.graph @resize_of_a_sum(%x: !ait.tensor<b x h x 8 x 3 x f16>, %z: !ait.tensor<3 x f16>) dims {b = 1 to 8, h = 1 to 9} {
  // CHECK: for (d0 = b, d1 = 2*h, d2 = 16, d3 = 3) {
  // CHECK: ait.at %{{.*}}[d0, d1 floordiv 2, d2 floordiv 2, d3] : f32
  // CHECK: ait.at %{{.*}}[d3] : f32
  // CHECK: ait.add
  %s = ait.add %x, %z : !ait.tensor<b x h x 8 x 3 x f16>
  %y = ait.resize nearest %s : !ait.tensor<b x (2*h) x 16 x 3 x f16>
  ait.output "y" %y : !ait.tensor<b x (2*h) x 16 x 3 x f16>
}

// A roll and its activation: the indices are constants, so they become an expression.
// CHECK-LABEL: ait.graph @roll
ait.graph @roll(%x: !ait.tensor<b x 5 x f32>) dims {b = 1 to 8} {
  // CHECK: %y = ait.loops(%x) for (d0 = b, d1 = 5) {
  // CHECK-NEXT: ^{{.*}}
  // CHECK-NEXT: ait.at %{{.*}}[d0, (d1 + 3) mod 5] : f32
  // CHECK-NEXT: ait.sigmoid
  %i = ait.constant [-2, -1, 0, 1, 2] : !ait.tensor<1 x 5 x i64>
  %g = ait.gather %x at(%i) dims [1] kept [0] : !ait.tensor<b x 5 x f32>
  %y = ait.sigmoid %g : !ait.tensor<b x 5 x f32>
  ait.output "y" %y : !ait.tensor<b x 5 x f32>
}

// The rows are short, and few: several threads compute one.
// CHECK-LABEL: ait.graph @softmax_of_a_middle_dim
// SELECTED-LABEL: ait.graph @softmax_of_a_middle_dim
// SELECTED: ait.loops
// SELECTED: } {kernel = #ait.kernel<"rows", {
ait.graph @softmax_of_a_middle_dim(%x: !ait.tensor<b x 32 x 8 x f32>) dims {b = 1 to 8} {
  // CHECK: for (d0 = b, d1 = 32, d2 = 8) {
  // CHECK: ait.fold max for (k0 = 32) {
  // CHECK-NEXT: ait.at %{{.*}}[d0, k0, d2] : f32
  // CHECK: ait.fold add for (k0 = 32) {
  // CHECK: ait.exp
  // CHECK: ait.at %{{.*}}[d0, d1, d2] : f32
  // CHECK: ait.div
  %y = ait.softmax %x dim 1 : !ait.tensor<b x 32 x 8 x f32>
  ait.output "y" %y : !ait.tensor<b x 32 x 8 x f32>
}

// The windows of a signal, added where they overlap: each is padded to the length of the result.
// CHECK-LABEL: ait.graph @col2im
// SELECTED-LABEL: ait.graph @col2im
// SELECTED: ait.loops
// SELECTED: } {kernel = #ait.kernel<"native", {
ait.graph @col2im(%x: !ait.tensor<b x 3 x 6 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: %y = ait.loops(%x) for (d0 = b, d1 = 8) {
  // CHECK: ait.at %{{.*}}[d0, 0, d1] else 0.0 : f32
  // CHECK: ait.at %{{.*}}[d0, 1, d1 - 1] else 0.0 : f32
  // CHECK: ait.at %{{.*}}[d0, 2, d1 - 2] else 0.0 : f32
  // CHECK: ait.output
  %0, %1, %2 = ait.split %x dim 1 : !ait.tensor<b x 1 x 6 x f32>, !ait.tensor<b x 1 x 6 x f32>, !ait.tensor<b x 1 x 6 x f32>
  %3 = ait.pad constant %0 before [0, 0, 0] : !ait.tensor<b x 1 x 8 x f32>
  %4 = ait.pad constant %1 before [0, 0, 1] : !ait.tensor<b x 1 x 8 x f32>
  %5 = ait.pad constant %2 before [0, 0, 2] : !ait.tensor<b x 1 x 8 x f32>
  %6 = ait.add %3, %4 : !ait.tensor<b x 1 x 8 x f32>
  %7 = ait.add %6, %5 : !ait.tensor<b x 1 x 8 x f32>
  %y = ait.reshape %7 : !ait.tensor<b x 8 x f32>
  ait.output "y" %y : !ait.tensor<b x 8 x f32>
}

// The loss of a row: one fold for the maximum, one for the sum, and the logit that the label names.
// CHECK-LABEL: ait.graph @loss_of_a_row
// SELECTED-LABEL: ait.graph @loss_of_a_row
// SELECTED: ait.loops
// SELECTED: } {kernel = #ait.kernel<"rows", {
ait.graph @loss_of_a_row(%x: !ait.tensor<b x 100 x f16>, %label: !ait.tensor<b x 1 x i64>) dims {b = 1 to 8} {
  // CHECK-NEXT: %y = ait.loops(%label, %x) for (d0 = b) {
  // CHECK: ait.at %{{.*}}[d0, 0] : i64
  // CHECK: %[[PLACE:.*]] = ait.where
  // CHECK: ait.fold max
  // CHECK: ait.fold add
  // CHECK: ait.at %{{.*}}[d0, %[[PLACE]]] says "gather: index {stored} of index tensor 0 is outside of its dim, which has {size}" : f32
  // CHECK: ait.output
  %p = ait.softmax %x dim 1 : !ait.tensor<b x 100 x f16>
  %l = ait.log %p : !ait.tensor<b x 100 x f16>
  %g = ait.gather %l at(%label) dims [1] kept [0] : !ait.tensor<b x 1 x f16>
  %n = ait.neg %g : !ait.tensor<b x 1 x f16>
  %y = ait.reshape %n : !ait.tensor<b x f16>
  ait.output "y" %y : !ait.tensor<b x f16>
}
