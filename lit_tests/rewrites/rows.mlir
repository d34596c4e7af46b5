// RUN: ait-opt %s -p simplify | filecheck %s
// RUN: ait-opt %s -p "narrow-row-ops{assume=true}" | filecheck %s
// RUN: ait-opt %s -p simplify --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// A product on rows that are laid flat and parted again is one on the rows as they are.
// CHECK-LABEL: ait.graph @flat
ait.graph @flat(%x: !ait.tensor<b x s x 4 x f32>) dims {b = 1 to 3, s = 1 to 3} {
  // CHECK-NEXT: %w = ait.param
  // CHECK-NEXT: %v = ait.param
  // CHECK-NEXT: %c = ait.param
  // CHECK-NEXT: %[[P0:[0-9]+]] = ait.gemm rcr %x, %w : !ait.tensor<b x s x 8 x f32>
  // CHECK-NEXT: %[[Y0:[0-9a-z]+]] = ait.add %[[P0]], %c : !ait.tensor<b x s x 8 x f32>
  // CHECK-NEXT: %[[Y1:[0-9a-z]+]] = ait.gemm rcr %x, %w : !ait.tensor<b x s x 8 x f32>
  // CHECK-NEXT: %[[P2:[0-9]+]] = ait.gemm rrr %x, %v : !ait.tensor<b x s x 8 x f32>
  // CHECK-NEXT: %[[Y2:[0-9a-z]+]] = ait.add %[[P2]], %c : !ait.tensor<b x s x 8 x f32>
  // CHECK-NEXT: %[[Y3:[0-9a-z]+]] = ait.gemm rrr %x, %v : !ait.tensor<b x s x 8 x f32>
  // CHECK-NEXT: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %v = ait.param "v" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f0 = ait.reshape %x : !ait.tensor<(b*s) x 4 x f32>
  %p0 = ait.gemm rcr %f0, %w : !ait.tensor<(b*s) x 8 x f32>
  %s0 = ait.add %p0, %c : !ait.tensor<(b*s) x 8 x f32>
  %y0 = ait.reshape %s0 : !ait.tensor<b x s x 8 x f32>
  %f1 = ait.reshape %x : !ait.tensor<(b*s) x 4 x f32>
  %p1 = ait.gemm rcr %f1, %w : !ait.tensor<(b*s) x 8 x f32>
  %y1 = ait.reshape %p1 : !ait.tensor<b x s x 8 x f32>
  %f2 = ait.reshape %x : !ait.tensor<(b*s) x 4 x f32>
  %p2 = ait.gemm rrr %f2, %v : !ait.tensor<(b*s) x 8 x f32>
  %s2 = ait.add %p2, %c : !ait.tensor<(b*s) x 8 x f32>
  %y2 = ait.reshape %s2 : !ait.tensor<b x s x 8 x f32>
  %f3 = ait.reshape %x : !ait.tensor<(b*s) x 4 x f32>
  %p3 = ait.gemm rrr %f3, %v : !ait.tensor<(b*s) x 8 x f32>
  %y3 = ait.reshape %p3 : !ait.tensor<b x s x 8 x f32>
  ait.output "y0" %y0 : !ait.tensor<b x s x 8 x f32>
  ait.output "y1" %y1 : !ait.tensor<b x s x 8 x f32>
  ait.output "y2" %y2 : !ait.tensor<b x s x 8 x f32>
  ait.output "y3" %y3 : !ait.tensor<b x s x 8 x f32>
}

// The rows are cut in other ways.
// CHECK-LABEL: ait.graph @rcr_plain_other_rows
ait.graph @rcr_plain_other_rows(%x: !ait.tensor<3 x 2 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rcr %f, %w : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// What is laid flat is not the rows.
// CHECK-LABEL: ait.graph @rcr_plain_other_width
ait.graph @rcr_plain_other_width(%x: !ait.tensor<2 x 3 x 4 x 1 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rcr %f, %w : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// Three rows of four are no row of twelve.
// CHECK-LABEL: ait.graph @rcr_plain_wider_rows
ait.graph @rcr_plain_wider_rows(%x: !ait.tensor<2 x 12 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rcr %f, %w : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<2 x 24 x f32>
  ait.output "y" %y : !ait.tensor<2 x 24 x f32>
}

// The flat product is used twice.
// CHECK-LABEL: ait.graph @rcr_plain_used
ait.graph @rcr_plain_used(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rcr %f, %w : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "z" %p : !ait.tensor<6 x 8 x f32>
}

// The product has its kernel.
// CHECK-LABEL: ait.graph @rcr_plain_selected
ait.graph @rcr_plain_selected(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rcr %f, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// The product has an epilogue.
// CHECK-LABEL: ait.graph @rcr_plain_fused
ait.graph @rcr_plain_fused(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: epilogue
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rcr %f, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// A vector has no rows.
// CHECK-LABEL: ait.graph @rcr_plain_vector
ait.graph @rcr_plain_vector(%x: !ait.tensor<4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<1 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %x2 = ait.reshape %x : !ait.tensor<1 x 4 x f32>
  %p = ait.gemm rcr %x2, %w : !ait.tensor<1 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<8 x f32>
  ait.output "y" %y : !ait.tensor<8 x f32>
}

// The rows are cut in other ways.
// CHECK-LABEL: ait.graph @rcr_bias_other_rows
ait.graph @rcr_bias_other_rows(%x: !ait.tensor<3 x 2 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rcr %f, %w : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// What is laid flat is not the rows.
// CHECK-LABEL: ait.graph @rcr_bias_other_width
ait.graph @rcr_bias_other_width(%x: !ait.tensor<2 x 3 x 4 x 1 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rcr %f, %w : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// Three rows of four are no row of twelve.
// CHECK-LABEL: ait.graph @rcr_bias_wider_rows
ait.graph @rcr_bias_wider_rows(%x: !ait.tensor<2 x 12 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rcr %f, %w : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 24 x f32>
  ait.output "y" %y : !ait.tensor<2 x 24 x f32>
}

// The flat product is used twice.
// CHECK-LABEL: ait.graph @rcr_bias_used
ait.graph @rcr_bias_used(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rcr %f, %w : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "z" %p : !ait.tensor<6 x 8 x f32>
}

// The product has its kernel.
// CHECK-LABEL: ait.graph @rcr_bias_selected
ait.graph @rcr_bias_selected(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rcr %f, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// The product has an epilogue.
// CHECK-LABEL: ait.graph @rcr_bias_fused
ait.graph @rcr_bias_fused(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: epilogue
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rcr %f, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// A vector has no rows.
// CHECK-LABEL: ait.graph @rcr_bias_vector
ait.graph @rcr_bias_vector(%x: !ait.tensor<4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<1 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %x2 = ait.reshape %x : !ait.tensor<1 x 4 x f32>
  %p = ait.gemm rcr %x2, %w : !ait.tensor<1 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<1 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<8 x f32>
  ait.output "y" %y : !ait.tensor<8 x f32>
}

// A bias for each row is none for all.
// CHECK-LABEL: ait.graph @rcr_bias_bias_of_rows
ait.graph @rcr_bias_bias_of_rows(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<6 x 8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rcr %f, %w : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// The flat sum is used twice.
// CHECK-LABEL: ait.graph @rcr_bias_sum_used
ait.graph @rcr_bias_sum_used(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rcr %f, %w : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "z" %s : !ait.tensor<6 x 8 x f32>
}

// The rows are cut in other ways.
// CHECK-LABEL: ait.graph @rrr_plain_other_rows
ait.graph @rrr_plain_other_rows(%x: !ait.tensor<3 x 2 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rrr %f, %w : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// What is laid flat is not the rows.
// CHECK-LABEL: ait.graph @rrr_plain_other_width
ait.graph @rrr_plain_other_width(%x: !ait.tensor<2 x 3 x 4 x 1 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rrr %f, %w : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// Three rows of four are no row of twelve.
// CHECK-LABEL: ait.graph @rrr_plain_wider_rows
ait.graph @rrr_plain_wider_rows(%x: !ait.tensor<2 x 12 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rrr %f, %w : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<2 x 24 x f32>
  ait.output "y" %y : !ait.tensor<2 x 24 x f32>
}

// The flat product is used twice.
// CHECK-LABEL: ait.graph @rrr_plain_used
ait.graph @rrr_plain_used(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rrr %f, %w : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "z" %p : !ait.tensor<6 x 8 x f32>
}

// The product has its kernel.
// CHECK-LABEL: ait.graph @rrr_plain_selected
ait.graph @rrr_plain_selected(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rrr %f, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// The product has an epilogue.
// CHECK-LABEL: ait.graph @rrr_plain_fused
ait.graph @rrr_plain_fused(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: epilogue
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rrr %f, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// A vector has no rows.
// CHECK-LABEL: ait.graph @rrr_plain_vector
ait.graph @rrr_plain_vector(%x: !ait.tensor<4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<1 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %x2 = ait.reshape %x : !ait.tensor<1 x 4 x f32>
  %p = ait.gemm rrr %x2, %w : !ait.tensor<1 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<8 x f32>
  ait.output "y" %y : !ait.tensor<8 x f32>
}

// The rows are cut in other ways.
// CHECK-LABEL: ait.graph @rrr_bias_other_rows
ait.graph @rrr_bias_other_rows(%x: !ait.tensor<3 x 2 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rrr %f, %w : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// What is laid flat is not the rows.
// CHECK-LABEL: ait.graph @rrr_bias_other_width
ait.graph @rrr_bias_other_width(%x: !ait.tensor<2 x 3 x 4 x 1 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rrr %f, %w : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// Three rows of four are no row of twelve.
// CHECK-LABEL: ait.graph @rrr_bias_wider_rows
ait.graph @rrr_bias_wider_rows(%x: !ait.tensor<2 x 12 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rrr %f, %w : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 24 x f32>
  ait.output "y" %y : !ait.tensor<2 x 24 x f32>
}

// The flat product is used twice.
// CHECK-LABEL: ait.graph @rrr_bias_used
ait.graph @rrr_bias_used(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rrr %f, %w : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "z" %p : !ait.tensor<6 x 8 x f32>
}

// The product has its kernel.
// CHECK-LABEL: ait.graph @rrr_bias_selected
ait.graph @rrr_bias_selected(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rrr %f, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// The product has an epilogue.
// CHECK-LABEL: ait.graph @rrr_bias_fused
ait.graph @rrr_bias_fused(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: epilogue
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rrr %f, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// A vector has no rows.
// CHECK-LABEL: ait.graph @rrr_bias_vector
ait.graph @rrr_bias_vector(%x: !ait.tensor<4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<1 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %x2 = ait.reshape %x : !ait.tensor<1 x 4 x f32>
  %p = ait.gemm rrr %x2, %w : !ait.tensor<1 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<1 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<8 x f32>
  ait.output "y" %y : !ait.tensor<8 x f32>
}

// A bias for each row is none for all.
// CHECK-LABEL: ait.graph @rrr_bias_bias_of_rows
ait.graph @rrr_bias_bias_of_rows(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<6 x 8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rrr %f, %w : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
}

// The flat sum is used twice.
// CHECK-LABEL: ait.graph @rrr_bias_sum_used
ait.graph @rrr_bias_sum_used(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ait.tensor<6 x 8 x f32>
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<6 x 4 x f32>
  %p = ait.gemm rrr %f, %w : !ait.tensor<6 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<6 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "z" %s : !ait.tensor<6 x 8 x f32>
}

// Another layout.
// CHECK-LABEL: ait.graph @ccr
ait.graph @ccr(%x: !ait.tensor<2 x 2 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ccr %f
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<4 x 4 x f32>
  %p = ait.gemm ccr %f, %w : !ait.tensor<4 x 8 x f32>
  %y = ait.reshape %p : !ait.tensor<2 x 2 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 2 x 8 x f32>
}

// Another layout, with a bias.
// CHECK-LABEL: ait.graph @ccr_bias
ait.graph @ccr_bias(%x: !ait.tensor<2 x 2 x 4 x f32>) {
  // CHECK: ait.gemm
  // CHECK-SAME: ccr %f
  // CHECK-NOT: ait.gemm
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<8 x f32>
  %f = ait.reshape %x : !ait.tensor<4 x 4 x f32>
  %p = ait.gemm ccr %f, %w : !ait.tensor<4 x 8 x f32>
  %s = ait.add %p, %c : !ait.tensor<4 x 8 x f32>
  %y = ait.reshape %s : !ait.tensor<2 x 2 x 8 x f32>
  ait.output "y" %y : !ait.tensor<2 x 2 x 8 x f32>
}

// Of a norm of which only some rows are read, only these are computed.
// CHECK-LABEL: ait.graph @first_row
ait.graph @first_row(%x: !ait.tensor<b x 5 x 4 x f32>) dims {b = 1 to 3} {
  // CHECK: %[[X0:[0-9]+]] = ait.slice %x offsets [0, 0, 0] : !ait.tensor<b x 1 x 4 x f32>
  // CHECK-NEXT: ait.layer_norm %[[X0]] scale %w bias %c axes 1
  // CHECK-NEXT: %[[X1:[0-9]+]] = ait.slice %x offsets [0, 2, 0] : !ait.tensor<b x 2 x 4 x f32>
  // CHECK-NEXT: ait.rms_norm %[[X1]] axes 1
  // CHECK-NEXT: ait.output
  %w = ait.param "w" : !ait.tensor<4 x f32>
  %c = ait.param "c" : !ait.tensor<4 x f32>
  %0 = ait.layer_norm %x scale %w bias %c axes 1 eps 1e-05 : !ait.tensor<b x 5 x 4 x f32>
  %1 = ait.slice %0 offsets [0, 0, 0] : !ait.tensor<b x 1 x 4 x f32>
  %2 = ait.rms_norm %x axes 1 eps 1e-05 : !ait.tensor<b x 5 x 4 x f32>
  %3 = ait.slice %2 offsets [0, 2, 0] : !ait.tensor<b x 2 x 4 x f32>
  ait.output "y0" %1 : !ait.tensor<b x 1 x 4 x f32>
  ait.output "y1" %3 : !ait.tensor<b x 2 x 4 x f32>
}

// Part of each row, a norm of two dims that are cut, one that others read, that has its kernel, or a prologue; a softmax.
// CHECK-LABEL: ait.graph @not_of_a_slice
ait.graph @not_of_a_slice(%x: !ait.tensor<5 x 4 x f32>) {
  // CHECK-NOT: ait.slice %x
  // CHECK: ait.output
  %0 = ait.layer_norm %x axes 1 eps 1e-05 : !ait.tensor<5 x 4 x f32>
  %1 = ait.slice %0 offsets [0, 0] : !ait.tensor<5 x 2 x f32>
  %2 = ait.layer_norm %x axes 2 eps 1e-05 : !ait.tensor<5 x 4 x f32>
  %3 = ait.slice %2 offsets [0, 0] : !ait.tensor<1 x 4 x f32>
  %4 = ait.layer_norm %x axes 1 eps 1e-05 : !ait.tensor<5 x 4 x f32>
  %5 = ait.slice %4 offsets [0, 0] : !ait.tensor<1 x 4 x f32>
  %6 = ait.layer_norm %x axes 1 eps 1e-05 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<5 x 4 x f32>
  %7 = ait.slice %6 offsets [0, 0] : !ait.tensor<1 x 4 x f32>
  %8 = ait.layer_norm %x axes 1 eps 1e-05 prologue() {
  ^bb0(%e: f32):
    %r = ait.relu %e : f32
    ait.yield %r : f32
  } : !ait.tensor<5 x 4 x f32>
  %9 = ait.slice %8 offsets [0, 0] : !ait.tensor<1 x 4 x f32>
  %10 = ait.softmax %x dim 1 : !ait.tensor<5 x 4 x f32>
  %11 = ait.slice %10 offsets [0, 0] : !ait.tensor<1 x 4 x f32>
  ait.output "y0" %1 : !ait.tensor<5 x 2 x f32>
  ait.output "y1" %3 : !ait.tensor<1 x 4 x f32>
  ait.output "y2" %5 : !ait.tensor<1 x 4 x f32>
  ait.output "y3" %4 : !ait.tensor<5 x 4 x f32>
  ait.output "y4" %7 : !ait.tensor<1 x 4 x f32>
  ait.output "y5" %9 : !ait.tensor<1 x 4 x f32>
  ait.output "y6" %11 : !ait.tensor<1 x 4 x f32>
}

// One column times one row: a product of each element with each.
// CHECK-LABEL: ait.graph @column_and_row
ait.graph @column_and_row(%x: !ait.tensor<b x 4 x 1 x f32>, %y: !ait.tensor<b x 1 x s x f32>) dims {b = 1 to 3, s = 1 to 3} {
  // CHECK-NEXT: %w = ait.param
  // CHECK-NEXT: ait.mul %x, %y : !ait.tensor<b x 4 x s x f32>
  // CHECK-NEXT: ait.mul %x, %w : !ait.tensor<b x 4 x 5 x f32>
  // CHECK-NEXT: ait.output
  %w = ait.param "w" : !ait.tensor<1 x 5 x f32>
  %0 = ait.bmm rrr %x, %y : !ait.tensor<b x 4 x s x f32>
  %1 = ait.gemm rrr %x, %w : !ait.tensor<b x 4 x 5 x f32>
  ait.output "y0" %0 : !ait.tensor<b x 4 x s x f32>
  ait.output "y1" %1 : !ait.tensor<b x 4 x 5 x f32>
}

// Two columns, another layout, an epilogue, a kernel.
// CHECK-LABEL: ait.graph @no_column
ait.graph @no_column(%x: !ait.tensor<2 x 4 x 1 x f32>, %y: !ait.tensor<2 x 1 x 4 x f32>, %z: !ait.tensor<2 x 4 x 2 x f32>, %u: !ait.tensor<2 x 2 x 4 x f32>) {
  // CHECK-NOT: ait.mul
  // CHECK: ait.output
  %w = ait.param "w" : !ait.tensor<1 x 5 x f32>
  %v = ait.param "v" : !ait.tensor<2 x 5 x f32>
  %c = ait.param "c" : !ait.tensor<4 x 1 x f32>
  %0 = ait.bmm rrr %z, %u : !ait.tensor<2 x 4 x 4 x f32>
  %1 = ait.gemm rrr %z, %v : !ait.tensor<2 x 4 x 5 x f32>
  %2 = ait.bmm rcr %x, %x : !ait.tensor<2 x 4 x 4 x f32>
  %3 = ait.gemm rcr %x, %c : !ait.tensor<2 x 4 x 4 x f32>
  %4 = ait.bmm rrr %x, %y epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<2 x 4 x 4 x f32>
  %5 = ait.gemm rrr %x, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<2 x 4 x 5 x f32>
  %6 = ait.bmm rrr %x, %y {kernel = #ait.kernel<"native", {}>} : !ait.tensor<2 x 4 x 4 x f32>
  %7 = ait.gemm rrr %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<2 x 4 x 5 x f32>
  ait.output "y0" %0 : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<2 x 4 x 5 x f32>
  ait.output "y2" %2 : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y3" %3 : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y4" %4 : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<2 x 4 x 5 x f32>
  ait.output "y6" %6 : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y7" %7 : !ait.tensor<2 x 4 x 5 x f32>
}
