// RUN: ait-opt %s -p fuse-elementwise,fuse-siblings | filecheck %s
// RUN: ait-opt %s -p fuse-elementwise,fuse-siblings --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// ** Both read one large tensor **

// The halves of a rotation are read once.
// CHECK-LABEL: ait.graph @rotation
ait.graph @rotation(%x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<b x 4 x f32>, %c: !ait.tensor<4 x f32>, %s: !ait.tensor<4 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: [[P:%.*]], [[Q:%.*]] = ait.fused_elementwise(
  // CHECK: ait.yield [[A:%.*]], [[B:%.*]] : f32, f32
  // CHECK-NEXT: } : !ait.tensor<b x 4 x f32>, !ait.tensor<b x 4 x f32>
  // CHECK-NEXT: ait.concat [[P]], [[Q]] dim 1
  %0 = ait.mul %x, %c : !ait.tensor<b x 4 x f32>
  %1 = ait.mul %z, %s : !ait.tensor<b x 4 x f32>
  %2 = ait.sub %0, %1 : !ait.tensor<b x 4 x f32>
  %3 = ait.mul %z, %c : !ait.tensor<b x 4 x f32>
  %4 = ait.mul %x, %s : !ait.tensor<b x 4 x f32>
  %5 = ait.add %3, %4 : !ait.tensor<b x 4 x f32>
  %6 = ait.concat %2, %5 dim 1 : !ait.tensor<b x 8 x f32>
  ait.output "y" %6 : !ait.tensor<b x 8 x f32>
}

// Two sums of 16 tensors, of which they share one: 31 operands and 2 results are too many.
// CHECK-LABEL: ait.graph @siblings_of_too_many
ait.graph @siblings_of_too_many(%x0: !ait.tensor<b x 4 x f32>, %x1: !ait.tensor<b x 4 x f32>, %x2: !ait.tensor<b x 4 x f32>, %x3: !ait.tensor<b x 4 x f32>, %x4: !ait.tensor<b x 4 x f32>, %x5: !ait.tensor<b x 4 x f32>, %x6: !ait.tensor<b x 4 x f32>, %x7: !ait.tensor<b x 4 x f32>, %x8: !ait.tensor<b x 4 x f32>, %x9: !ait.tensor<b x 4 x f32>, %x10: !ait.tensor<b x 4 x f32>, %x11: !ait.tensor<b x 4 x f32>, %x12: !ait.tensor<b x 4 x f32>, %x13: !ait.tensor<b x 4 x f32>, %x14: !ait.tensor<b x 4 x f32>, %x15: !ait.tensor<b x 4 x f32>, %x16: !ait.tensor<b x 4 x f32>, %x17: !ait.tensor<b x 4 x f32>, %x18: !ait.tensor<b x 4 x f32>, %x19: !ait.tensor<b x 4 x f32>, %x20: !ait.tensor<b x 4 x f32>, %x21: !ait.tensor<b x 4 x f32>, %x22: !ait.tensor<b x 4 x f32>, %x23: !ait.tensor<b x 4 x f32>, %x24: !ait.tensor<b x 4 x f32>, %x25: !ait.tensor<b x 4 x f32>, %x26: !ait.tensor<b x 4 x f32>, %x27: !ait.tensor<b x 4 x f32>, %x28: !ait.tensor<b x 4 x f32>, %x29: !ait.tensor<b x 4 x f32>, %x30: !ait.tensor<b x 4 x f32>) dims {b = 1 to 2} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %p0 = ait.add %x0, %x1 : !ait.tensor<b x 4 x f32>
  %p1 = ait.add %p0, %x2 : !ait.tensor<b x 4 x f32>
  %p2 = ait.add %p1, %x3 : !ait.tensor<b x 4 x f32>
  %p3 = ait.add %p2, %x4 : !ait.tensor<b x 4 x f32>
  %p4 = ait.add %p3, %x5 : !ait.tensor<b x 4 x f32>
  %p5 = ait.add %p4, %x6 : !ait.tensor<b x 4 x f32>
  %p6 = ait.add %p5, %x7 : !ait.tensor<b x 4 x f32>
  %p7 = ait.add %p6, %x8 : !ait.tensor<b x 4 x f32>
  %p8 = ait.add %p7, %x9 : !ait.tensor<b x 4 x f32>
  %p9 = ait.add %p8, %x10 : !ait.tensor<b x 4 x f32>
  %p10 = ait.add %p9, %x11 : !ait.tensor<b x 4 x f32>
  %p11 = ait.add %p10, %x12 : !ait.tensor<b x 4 x f32>
  %p12 = ait.add %p11, %x13 : !ait.tensor<b x 4 x f32>
  %p13 = ait.add %p12, %x14 : !ait.tensor<b x 4 x f32>
  %p14 = ait.add %p13, %x15 : !ait.tensor<b x 4 x f32>
  %q0 = ait.add %x0, %x16 : !ait.tensor<b x 4 x f32>
  %q1 = ait.add %q0, %x17 : !ait.tensor<b x 4 x f32>
  %q2 = ait.add %q1, %x18 : !ait.tensor<b x 4 x f32>
  %q3 = ait.add %q2, %x19 : !ait.tensor<b x 4 x f32>
  %q4 = ait.add %q3, %x20 : !ait.tensor<b x 4 x f32>
  %q5 = ait.add %q4, %x21 : !ait.tensor<b x 4 x f32>
  %q6 = ait.add %q5, %x22 : !ait.tensor<b x 4 x f32>
  %q7 = ait.add %q6, %x23 : !ait.tensor<b x 4 x f32>
  %q8 = ait.add %q7, %x24 : !ait.tensor<b x 4 x f32>
  %q9 = ait.add %q8, %x25 : !ait.tensor<b x 4 x f32>
  %q10 = ait.add %q9, %x26 : !ait.tensor<b x 4 x f32>
  %q11 = ait.add %q10, %x27 : !ait.tensor<b x 4 x f32>
  %q12 = ait.add %q11, %x28 : !ait.tensor<b x 4 x f32>
  %q13 = ait.add %q12, %x29 : !ait.tensor<b x 4 x f32>
  %q14 = ait.add %q13, %x30 : !ait.tensor<b x 4 x f32>
  ait.output "y" %p14 : !ait.tensor<b x 4 x f32>
  ait.output "z" %q14 : !ait.tensor<b x 4 x f32>
}

// What both read has the shape of one of the two only.
// CHECK-LABEL: ait.graph @sibling_is_larger
ait.graph @sibling_is_larger(%x: !ait.tensor<1 x 4 x f32>, %z: !ait.tensor<b x 4 x f32>) dims {b = 2 to 8} {
  // CHECK: ait.fused_elementwise
  // CHECK: ait.softmax
  // CHECK: ait.fused_elementwise
  %0 = ait.mul %x, %z : !ait.tensor<b x 4 x f32>
  %1 = ait.softmax %z dim 1 : !ait.tensor<b x 4 x f32>
  %2 = ait.exp %x : !ait.tensor<1 x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<b x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<1 x 4 x f32>
}

// CHECK-LABEL: ait.graph @sibling_is_smaller
ait.graph @sibling_is_smaller(%x: !ait.tensor<1 x 4 x f32>, %z: !ait.tensor<b x 4 x f32>) dims {b = 2 to 8} {
  // CHECK: ait.fused_elementwise
  // CHECK: ait.softmax
  // CHECK: ait.fused_elementwise
  %0 = ait.exp %x : !ait.tensor<1 x 4 x f32>
  %1 = ait.softmax %z dim 1 : !ait.tensor<b x 4 x f32>
  %2 = ait.mul %x, %z : !ait.tensor<b x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<1 x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<b x 4 x f32>
}

// The second depends on the first through the softmax.
// CHECK-LABEL: ait.graph @dependent_siblings
ait.graph @dependent_siblings(%x: !ait.tensor<b x 4 x f32>) dims {b = 1 to 8} {
  // CHECK: ait.fused_elementwise(%x)
  // CHECK: [[S:%.*]] = ait.softmax
  // CHECK-NEXT: ait.fused_elementwise(%x, [[S]])
  %0 = ait.exp %x : !ait.tensor<b x 4 x f32>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<b x 4 x f32>
  %2 = ait.mul %x, %1 : !ait.tensor<b x 4 x f32>
  ait.output "y" %2 : !ait.tensor<b x 4 x f32>
}

// Both orders of a pair of which one is selected already.
// CHECK-LABEL: ait.graph @selected_siblings
ait.graph @selected_siblings(%x: !ait.tensor<b x 4 x f32>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %0 = ait.exp %x : !ait.tensor<b x 4 x f32>
  %1 = ait.fused_elementwise(%x) {
  ^bb0(%a: f32):
    %r = ait.relu %a : f32
    ait.yield %r : f32
  } {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<b x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 4 x f32>
}

// CHECK-LABEL: ait.graph @selected_sibling_first
ait.graph @selected_sibling_first(%x: !ait.tensor<b x 4 x f32>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %0 = ait.fused_elementwise(%x) {
  ^bb0(%a: f32):
    %r = ait.relu %a : f32
    ait.yield %r : f32
  } {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 4 x f32>
  %1 = ait.exp %x : !ait.tensor<b x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<b x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 4 x f32>
}

// ** Nothing is launched between them, and both read one tensor **

// Query and key: parts of one product, rotated by the same angles. The views of the second part make way.
// CHECK-LABEL: ait.graph @query_and_key
ait.graph @query_and_key(%p: !ait.tensor<b x s x 64 x f16>, %c: !ait.tensor<b x s x 1 x 8 x f16>, %s: !ait.tensor<b x s x 1 x 8 x f16>) dims {b = 0 to 2, s = 1 to 3} {
  // CHECK-NEXT: [[Q:%.*]], [[K:%.*]] = ait.split %p dim 2
  // CHECK-NEXT: [[QH:%.*]] = ait.reshape [[Q]]
  // CHECK-NEXT: [[Q0:%.*]], [[Q1:%.*]] = ait.split [[QH]] dim 3
  // CHECK-NEXT: [[KH:%.*]] = ait.reshape [[K]]
  // CHECK-NEXT: [[K0:%.*]], [[K1:%.*]] = ait.split [[KH]] dim 3
  // CHECK-NEXT: [[A:%.*]], [[B:%.*]], [[C:%.*]], [[D:%.*]] = ait.fused_elementwise([[Q0]], %c, [[Q1]], %s, [[K0]], [[K1]]) {
  // CHECK: ait.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, f32, f32
  // CHECK-NEXT: } : !ait.tensor<b x s x 2 x 8 x f16>, !ait.tensor<b x s x 2 x 8 x f16>, !ait.tensor<b x s x 2 x 8 x f16>, !ait.tensor<b x s x 2 x 8 x f16>
  // CHECK-NEXT: ait.concat [[A]], [[B]] dim 3
  // CHECK-NEXT: ait.permute
  // CHECK-NEXT: ait.concat [[C]], [[D]] dim 3
  %q, %k = ait.split %p dim 2 : !ait.tensor<b x s x 32 x f16>, !ait.tensor<b x s x 32 x f16>
  %qh = ait.reshape %q : !ait.tensor<b x s x 2 x 16 x f16>
  %q0, %q1 = ait.split %qh dim 3 : !ait.tensor<b x s x 2 x 8 x f16>, !ait.tensor<b x s x 2 x 8 x f16>
  %0 = ait.mul %q0, %c : !ait.tensor<b x s x 2 x 8 x f16>
  %1 = ait.mul %q1, %s : !ait.tensor<b x s x 2 x 8 x f16>
  %2 = ait.sub %0, %1 : !ait.tensor<b x s x 2 x 8 x f16>
  %3 = ait.mul %q1, %c : !ait.tensor<b x s x 2 x 8 x f16>
  %4 = ait.mul %q0, %s : !ait.tensor<b x s x 2 x 8 x f16>
  %5 = ait.add %3, %4 : !ait.tensor<b x s x 2 x 8 x f16>
  %6 = ait.concat %2, %5 dim 3 : !ait.tensor<b x s x 2 x 16 x f16>
  %7 = ait.permute %6 [0, 2, 1, 3] : !ait.tensor<b x 2 x s x 16 x f16>
  %kh = ait.reshape %k : !ait.tensor<b x s x 2 x 16 x f16>
  %k0, %k1 = ait.split %kh dim 3 : !ait.tensor<b x s x 2 x 8 x f16>, !ait.tensor<b x s x 2 x 8 x f16>
  %8 = ait.mul %k0, %c : !ait.tensor<b x s x 2 x 8 x f16>
  %9 = ait.mul %k1, %s : !ait.tensor<b x s x 2 x 8 x f16>
  %10 = ait.sub %8, %9 : !ait.tensor<b x s x 2 x 8 x f16>
  %11 = ait.mul %k1, %c : !ait.tensor<b x s x 2 x 8 x f16>
  %12 = ait.mul %k0, %s : !ait.tensor<b x s x 2 x 8 x f16>
  %13 = ait.add %11, %12 : !ait.tensor<b x s x 2 x 8 x f16>
  %14 = ait.concat %10, %13 dim 3 : !ait.tensor<b x s x 2 x 16 x f16>
  ait.output "q" %7 : !ait.tensor<b x 2 x s x 16 x f16>
  ait.output "k" %14 : !ait.tensor<b x s x 2 x 16 x f16>
}

// Three with a row in common, the second of which takes it first; what is used inside is an output, too, and one stands between.
// CHECK-LABEL: ait.graph @three
ait.graph @three(%x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<b x 4 x f32>, %v: !ait.tensor<b x 4 x f32>, %c: !ait.tensor<4 x f32>) dims {b = 0 to 8} {
  // CHECK-NEXT: [[A:%.*]], [[B:%.*]], [[C:%.*]], [[D:%.*]] = ait.fused_elementwise(%x, %c, %z, %v) {
  // CHECK: } : !ait.tensor<b x 4 x f32>, !ait.tensor<b x 4 x f32>, !ait.tensor<b x 4 x f32>, !ait.tensor<b x 4 x f32>
  // CHECK-NEXT: ait.output "y0" [[A]]
  // CHECK-NEXT: ait.output "y1" [[B]]
  // CHECK-NEXT: ait.output "y2" [[C]]
  // CHECK-NEXT: ait.output "y3" [[D]]
  %0 = ait.mul %x, %c : !ait.tensor<b x 4 x f32>
  %1 = ait.neg %0 : !ait.tensor<b x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<b x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 4 x f32>
  %2 = ait.sub %c, %z : !ait.tensor<b x 4 x f32>
  %3 = ait.div %v, %c : !ait.tensor<b x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<b x 4 x f32>
  ait.output "y3" %3 : !ait.tensor<b x 4 x f32>
}

// Dims that are equal, though not written alike; one that may be 1.
// CHECK-LABEL: ait.graph @equal_dims
ait.graph @equal_dims(%x: !ait.tensor<((b + n) floordiv 1) x 4 x f32>, %z: !ait.tensor<(n + b) x 4 x f32>, %c: !ait.tensor<(n + b) x 4 x f32>) dims {b = 1 to 2, n = 0 to 2} {
  // CHECK-NEXT: ait.fused_elementwise
  // CHECK-NOT: ait.fused_elementwise
  // CHECK: ait.output
  %0 = ait.mul %x, %c : !ait.tensor<(b + n) x 4 x f32>
  %1 = ait.mul %z, %c : !ait.tensor<(b + n) x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<(b + n) x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<(b + n) x 4 x f32>
}

// Dims of the same range, which may be different.
// CHECK-LABEL: ait.graph @unequal_dims
ait.graph @unequal_dims(%x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<n x 4 x f32>, %c: !ait.tensor<4 x f32>) dims {b = 1 to 8, n = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %0 = ait.mul %x, %c : !ait.tensor<b x 4 x f32>
  %1 = ait.mul %z, %c : !ait.tensor<n x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<b x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<n x 4 x f32>
}

// The row itself has another shape than what it broadcasts to.
// CHECK-LABEL: ait.graph @other_shape
ait.graph @other_shape(%x: !ait.tensor<b x 4 x f32>, %c: !ait.tensor<4 x f32>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %0 = ait.mul %x, %c : !ait.tensor<b x 4 x f32>
  %1 = ait.exp %c : !ait.tensor<4 x f32>
  ait.output "y0" %0 : !ait.tensor<b x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<4 x f32>
}

// Nothing in common but a number, as a constant and as a tensor of one element.
// CHECK-LABEL: ait.graph @share_a_number
ait.graph @share_a_number(%x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<b x 4 x f32>, %n: !ait.tensor<1 x 1 x f32>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %c = ait.constant 0.5 : !ait.tensor<f32>
  %0 = ait.mul %x, %c : !ait.tensor<b x 4 x f32>
  %1 = ait.mul %0, %n : !ait.tensor<b x 4 x f32>
  %2 = ait.add %z, %c : !ait.tensor<b x 4 x f32>
  %3 = ait.add %2, %n : !ait.tensor<b x 4 x f32>
  ait.output "y0" %1 : !ait.tensor<b x 4 x f32>
  ait.output "y1" %3 : !ait.tensor<b x 4 x f32>
}

// A softmax stands between them: what the second makes would live while it runs, or what the first reads.
// CHECK-LABEL: ait.graph @launch_between
ait.graph @launch_between(%x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<b x 4 x f32>, %c: !ait.tensor<4 x f32>) dims {b = 1 to 8} {
  // CHECK: ait.fused_elementwise(%x, %c)
  // CHECK: ait.softmax %z
  // CHECK-NEXT: ait.fused_elementwise(%z, %c)
  %0 = ait.mul %x, %c : !ait.tensor<b x 4 x f32>
  %1 = ait.softmax %z dim 1 : !ait.tensor<b x 4 x f32>
  %2 = ait.mul %z, %c : !ait.tensor<b x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<b x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<b x 4 x f32>
}

// The second reads a view of what the first makes.
// CHECK-LABEL: ait.graph @dependent_neighbours
ait.graph @dependent_neighbours(%x: !ait.tensor<4 x 4 x f32>, %c: !ait.tensor<4 x f32>) {
  // CHECK: ait.fused_elementwise(%x, %c)
  // CHECK: [[T:%.*]] = ait.permute
  // CHECK-NEXT: ait.fused_elementwise([[T]], %c)
  %0 = ait.mul %x, %c : !ait.tensor<4 x 4 x f32>
  %1 = ait.permute %0 [1, 0] : !ait.tensor<4 x 4 x f32>
  %2 = ait.mul %1, %c : !ait.tensor<4 x 4 x f32>
  ait.output "y" %2 : !ait.tensor<4 x 4 x f32>
}

// What is selected stays as it is, first or second.
// CHECK-LABEL: ait.graph @selected_neighbours
ait.graph @selected_neighbours(%x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<b x 4 x f32>, %v: !ait.tensor<b x 4 x f32>, %c: !ait.tensor<4 x f32>) dims {b = 1 to 8} {
  // CHECK-COUNT-3: ait.fused_elementwise
  %0 = ait.mul %x, %c : !ait.tensor<b x 4 x f32>
  %1 = ait.fused_elementwise(%z, %c) {
  ^bb0(%a: f32, %d: f32):
    %r = ait.add %a, %d : f32
    ait.yield %r : f32
  } {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 4 x f32>
  %2 = ait.mul %v, %c : !ait.tensor<b x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<b x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<b x 4 x f32>
}

// The rows of one lie across boundaries of 16 bytes: as one, no access of the other would be whole. One that is read so,
// one that is written so, and both, which would need registers for all that they have on the way.
// CHECK-LABEL: ait.graph @misaligned_operand
ait.graph @misaligned_operand(%x: !ait.tensor<b x 8 x f16>, %w: !ait.tensor<b x 24 x f16>, %c: !ait.tensor<8 x f16>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %z = ait.slice %w offsets [0, 4] : !ait.tensor<b x 8 x f16>
  %0 = ait.mul %x, %c : !ait.tensor<b x 8 x f16>
  %1 = ait.mul %z, %c : !ait.tensor<b x 8 x f16>
  ait.output "y0" %0 : !ait.tensor<b x 8 x f16>
  ait.output "y1" %1 : !ait.tensor<b x 8 x f16>
}

// CHECK-LABEL: ait.graph @misaligned_rows
ait.graph @misaligned_rows(%x: !ait.tensor<b x 8 x f16>, %w: !ait.tensor<b x 20 x f16>, %c: !ait.tensor<8 x f16>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %z, %v = ait.split %w dim 1 : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 12 x f16>
  %0 = ait.mul %x, %c : !ait.tensor<b x 8 x f16>
  %1 = ait.mul %z, %c : !ait.tensor<b x 8 x f16>
  ait.output "y0" %0 : !ait.tensor<b x 8 x f16>
  ait.output "y1" %1 : !ait.tensor<b x 8 x f16>
}

// CHECK-LABEL: ait.graph @misaligned_result
ait.graph @misaligned_result(%x: !ait.tensor<b x 8 x f16>, %z: !ait.tensor<b x 8 x f16>, %v: !ait.tensor<b x 4 x f16>, %c: !ait.tensor<8 x f16>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %0 = ait.mul %x, %c : !ait.tensor<b x 8 x f16>
  %1 = ait.mul %z, %c : !ait.tensor<b x 8 x f16>
  %2 = ait.concat %v, %1, %v dim 1 : !ait.tensor<b x 16 x f16>
  ait.output "y0" %0 : !ait.tensor<b x 8 x f16>
  ait.output "y1" %2 : !ait.tensor<b x 16 x f16>
}

// CHECK-LABEL: ait.graph @misaligned_rows_of_first_result
ait.graph @misaligned_rows_of_first_result(%x: !ait.tensor<b x 8 x f16>, %z: !ait.tensor<b x 8 x f16>, %v: !ait.tensor<b x 4 x f16>, %c: !ait.tensor<8 x f16>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %0 = ait.mul %x, %c : !ait.tensor<b x 8 x f16>
  %1 = ait.mul %z, %c : !ait.tensor<b x 8 x f16>
  %2 = ait.concat %0, %v dim 1 : !ait.tensor<b x 12 x f16>
  ait.output "y0" %2 : !ait.tensor<b x 12 x f16>
  ait.output "y1" %1 : !ait.tensor<b x 8 x f16>
}

// CHECK-LABEL: ait.graph @both_misaligned
ait.graph @both_misaligned(%u: !ait.tensor<b x 20 x f16>, %w: !ait.tensor<b x 24 x f16>, %c: !ait.tensor<8 x f16>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %x, %v = ait.split %u dim 1 : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 12 x f16>
  %z = ait.slice %w offsets [0, 4] : !ait.tensor<b x 8 x f16>
  %0 = ait.mul %x, %c : !ait.tensor<b x 8 x f16>
  %1 = ait.mul %z, %c : !ait.tensor<b x 8 x f16>
  ait.output "y0" %0 : !ait.tensor<b x 8 x f16>
  ait.output "y1" %1 : !ait.tensor<b x 8 x f16>
}

// Parts of whole chunks, of a part of whole chunks.
// CHECK-LABEL: ait.graph @aligned
ait.graph @aligned(%x: !ait.tensor<b x 8 x f16>, %w: !ait.tensor<b x 48 x f16>, %c: !ait.tensor<8 x f16>) dims {b = 1 to 8} {
  // CHECK: ait.fused_elementwise
  // CHECK-NOT: ait.fused_elementwise
  // CHECK: ait.output
  %0 = ait.mul %x, %c : !ait.tensor<b x 8 x f16>
  %p = ait.slice %w offsets [0, 16] : !ait.tensor<b x 32 x f16>
  %h = ait.reshape %p : !ait.tensor<b x 2 x 16 x f16>
  %v, %t = ait.split %h dim 2 : !ait.tensor<b x 2 x 8 x f16>, !ait.tensor<b x 2 x 8 x f16>
  %i = ait.slice %t offsets [0, 1, 0] : !ait.tensor<b x 1 x 8 x f16>
  %z = ait.reshape %i : !ait.tensor<b x 8 x f16>
  %1 = ait.mul %z, %c : !ait.tensor<b x 8 x f16>
  %2 = ait.concat %x, %1 dim 1 : !ait.tensor<b x 16 x f16>
  ait.output "y0" %0 : !ait.tensor<b x 8 x f16>
  ait.output "y1" %2 : !ait.tensor<b x 16 x f16>
}

// Chunks of different numbers of elements.
// CHECK-LABEL: ait.graph @other_chunks
ait.graph @other_chunks(%x: !ait.tensor<b x 8 x f16>, %z: !ait.tensor<b x 8 x f32>, %c: !ait.tensor<8 x f32>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %0 = ait.cast %x : !ait.tensor<b x 8 x f32>
  %1 = ait.mul %0, %c : !ait.tensor<b x 8 x f32>
  %2 = ait.mul %z, %c : !ait.tensor<b x 8 x f32>
  ait.output "y0" %1 : !ait.tensor<b x 8 x f32>
  ait.output "y1" %2 : !ait.tensor<b x 8 x f32>
}

// Operands and results that are as many as a thread holds.
// CHECK-LABEL: ait.graph @as_many_as_fit
ait.graph @as_many_as_fit(%x0: !ait.tensor<b x 4 x f32>, %x1: !ait.tensor<b x 4 x f32>, %x2: !ait.tensor<b x 4 x f32>, %x3: !ait.tensor<b x 4 x f32>, %x4: !ait.tensor<b x 4 x f32>, %x5: !ait.tensor<b x 4 x f32>, %z0: !ait.tensor<b x 4 x f32>, %z1: !ait.tensor<b x 4 x f32>, %z2: !ait.tensor<b x 4 x f32>, %z3: !ait.tensor<b x 4 x f32>, %z4: !ait.tensor<b x 4 x f32>, %z5: !ait.tensor<b x 4 x f32>, %z6: !ait.tensor<b x 4 x f32>, %c: !ait.tensor<4 x f32>) dims {b = 1 to 2} {
  // CHECK: ait.fused_elementwise
  // CHECK-NOT: ait.fused_elementwise
  // CHECK: ait.output
  %0 = ait.add %c, %x0 : !ait.tensor<b x 4 x f32>
  %1 = ait.add %0, %x1 : !ait.tensor<b x 4 x f32>
  %2 = ait.add %1, %x2 : !ait.tensor<b x 4 x f32>
  %3 = ait.add %2, %x3 : !ait.tensor<b x 4 x f32>
  %4 = ait.add %3, %x4 : !ait.tensor<b x 4 x f32>
  %5 = ait.add %4, %x5 : !ait.tensor<b x 4 x f32>
  %6 = ait.add %c, %z0 : !ait.tensor<b x 4 x f32>
  %7 = ait.add %6, %z1 : !ait.tensor<b x 4 x f32>
  %8 = ait.add %7, %z2 : !ait.tensor<b x 4 x f32>
  %9 = ait.add %8, %z3 : !ait.tensor<b x 4 x f32>
  %10 = ait.add %9, %z4 : !ait.tensor<b x 4 x f32>
  %11 = ait.add %10, %z5 : !ait.tensor<b x 4 x f32>
  %12 = ait.add %11, %z6 : !ait.tensor<b x 4 x f32>
  ait.output "y0" %5 : !ait.tensor<b x 4 x f32>
  ait.output "y1" %12 : !ait.tensor<b x 4 x f32>
}

// One more.
// CHECK-LABEL: ait.graph @too_many
ait.graph @too_many(%x0: !ait.tensor<b x 4 x f32>, %x1: !ait.tensor<b x 4 x f32>, %x2: !ait.tensor<b x 4 x f32>, %x3: !ait.tensor<b x 4 x f32>, %x4: !ait.tensor<b x 4 x f32>, %x5: !ait.tensor<b x 4 x f32>, %x6: !ait.tensor<b x 4 x f32>, %z0: !ait.tensor<b x 4 x f32>, %z1: !ait.tensor<b x 4 x f32>, %z2: !ait.tensor<b x 4 x f32>, %z3: !ait.tensor<b x 4 x f32>, %z4: !ait.tensor<b x 4 x f32>, %z5: !ait.tensor<b x 4 x f32>, %z6: !ait.tensor<b x 4 x f32>, %c: !ait.tensor<4 x f32>) dims {b = 1 to 2} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %0 = ait.add %c, %x0 : !ait.tensor<b x 4 x f32>
  %1 = ait.add %0, %x1 : !ait.tensor<b x 4 x f32>
  %2 = ait.add %1, %x2 : !ait.tensor<b x 4 x f32>
  %3 = ait.add %2, %x3 : !ait.tensor<b x 4 x f32>
  %4 = ait.add %3, %x4 : !ait.tensor<b x 4 x f32>
  %5 = ait.add %4, %x5 : !ait.tensor<b x 4 x f32>
  %6 = ait.add %5, %x6 : !ait.tensor<b x 4 x f32>
  %7 = ait.add %c, %z0 : !ait.tensor<b x 4 x f32>
  %8 = ait.add %7, %z1 : !ait.tensor<b x 4 x f32>
  %9 = ait.add %8, %z2 : !ait.tensor<b x 4 x f32>
  %10 = ait.add %9, %z3 : !ait.tensor<b x 4 x f32>
  %11 = ait.add %10, %z4 : !ait.tensor<b x 4 x f32>
  %12 = ait.add %11, %z5 : !ait.tensor<b x 4 x f32>
  %13 = ait.add %12, %z6 : !ait.tensor<b x 4 x f32>
  ait.output "y0" %6 : !ait.tensor<b x 4 x f32>
  ait.output "y1" %13 : !ait.tensor<b x 4 x f32>
}

// ** What is small and cheap is computed by the one that reads it **

// Angles of token positions: one cast an element instead of a launch.
// CHECK-LABEL: ait.graph @positions
ait.graph @positions(%p: !ait.tensor<b x s x 1 x i64>, %f: !ait.tensor<4 x f32>) dims {b = 0 to 2, s = 1 to 3} {
  // CHECK-NEXT: [[C:%.*]], [[S:%.*]] = ait.fused_elementwise(%f, %p) {
  // CHECK-NEXT: ^bb0([[F:%.*]]: f32, [[P:%.*]]: i64):
  // CHECK-NEXT: [[T:%.*]] = ait.cast [[P]] : f32
  // CHECK-NEXT: [[A:%.*]] = ait.mul [[T]], [[F]] : f32
  // CHECK-NEXT: ait.cos [[A]] : f32
  // CHECK-NEXT: ait.sin [[A]] : f32
  // CHECK: } : !ait.tensor<b x s x 4 x f32>, !ait.tensor<b x s x 4 x f32>
  %0 = ait.cast %p : !ait.tensor<b x s x 1 x f32>
  %1 = ait.mul %0, %f : !ait.tensor<b x s x 4 x f32>
  %2 = ait.cos %1 : !ait.tensor<b x s x 4 x f32>
  %3 = ait.sin %1 : !ait.tensor<b x s x 4 x f32>
  ait.output "c" %2 : !ait.tensor<b x s x 4 x f32>
  ait.output "s" %3 : !ait.tensor<b x s x 4 x f32>
}

// Two readers that become one.
// CHECK-LABEL: ait.graph @readers_merge
ait.graph @readers_merge(%p: !ait.tensor<b x 1 x i64>, %x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<b x 4 x f32>) dims {b = 0 to 2} {
  // CHECK-NEXT: ait.fused_elementwise(
  // CHECK-NOT: ait.fused_elementwise
  // CHECK: ait.output
  %0 = ait.cast %p : !ait.tensor<b x 1 x f32>
  %1 = ait.mul %x, %0 : !ait.tensor<b x 4 x f32>
  %2 = ait.add %z, %0 : !ait.tensor<b x 4 x f32>
  ait.output "y0" %1 : !ait.tensor<b x 4 x f32>
  ait.output "y1" %2 : !ait.tensor<b x 4 x f32>
}

// A row of no more bytes than what it becomes, in four operations.
// CHECK-LABEL: ait.graph @row
ait.graph @row(%x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<4 x f32>) dims {b = 0 to 2} {
  // CHECK-NEXT: ait.fused_elementwise(%z, %x) {
  // CHECK-NOT: ait.fused_elementwise
  // CHECK: ait.output
  %half = ait.constant 0.5 : !ait.tensor<f32>
  %0 = ait.mul %z, %half : !ait.tensor<4 x f32>
  %1 = ait.abs %0 : !ait.tensor<4 x f32>
  %2 = ait.max %1, %half : !ait.tensor<4 x f32>
  %3 = ait.neg %2 : !ait.tensor<4 x f32>
  %4 = ait.mul %x, %3 : !ait.tensor<b x 4 x f32>
  ait.output "y" %4 : !ait.tensor<b x 4 x f32>
}

// One operation more.
// CHECK-LABEL: ait.graph @row_of_five
ait.graph @row_of_five(%x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<4 x f32>) dims {b = 0 to 2} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %half = ait.constant 0.5 : !ait.tensor<f32>
  %0 = ait.mul %z, %half : !ait.tensor<4 x f32>
  %1 = ait.abs %0 : !ait.tensor<4 x f32>
  %2 = ait.max %1, %half : !ait.tensor<4 x f32>
  %3 = ait.neg %2 : !ait.tensor<4 x f32>
  %4 = ait.sub %3, %half : !ait.tensor<4 x f32>
  %5 = ait.mul %x, %4 : !ait.tensor<b x 4 x f32>
  ait.output "y" %5 : !ait.tensor<b x 4 x f32>
}

// A division is not cheap, nor is a function.
// CHECK-LABEL: ait.graph @costly
ait.graph @costly(%x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<b x 4 x f32>, %p: !ait.tensor<b x 1 x f32>, %q: !ait.tensor<b x 1 x f32>, %r: !ait.tensor<b x 1 x f32>) dims {b = 1 to 8} {
  // CHECK: ait.div
  // CHECK: ait.fused_elementwise
  // CHECK: ait.exp
  // CHECK: ait.fused_elementwise
  %0 = ait.div %p, %q : !ait.tensor<b x 1 x f32>
  %1 = ait.mul %x, %0 : !ait.tensor<b x 4 x f32>
  %2 = ait.exp %r : !ait.tensor<b x 1 x f32>
  %3 = ait.mul %1, %2 : !ait.tensor<b x 4 x f32>
  ait.output "y" %3 : !ait.tensor<b x 4 x f32>
}

// Others read the result: it is an output; a softmax reads it; a reader of another shape, which stays one of two.
// CHECK-LABEL: ait.graph @other_readers
ait.graph @other_readers(%p: !ait.tensor<b x 1 x f32>, %q: !ait.tensor<b x 1 x f32>, %r: !ait.tensor<b x 1 x f32>, %x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<b x 8 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.fused_elementwise(%p, %q, %r)
  // CHECK: ait.softmax
  // CHECK-NEXT: ait.fused_elementwise
  // CHECK: ait.fused_elementwise
  %0 = ait.neg %p : !ait.tensor<b x 1 x f32>
  %1 = ait.add %0, %q : !ait.tensor<b x 1 x f32>
  %2 = ait.mul %1, %r : !ait.tensor<b x 1 x f32>
  %s = ait.softmax %1 dim 1 : !ait.tensor<b x 1 x f32>
  %3 = ait.mul %x, %0 : !ait.tensor<b x 4 x f32>
  %4 = ait.mul %3, %1 : !ait.tensor<b x 4 x f32>
  %5 = ait.mul %4, %2 : !ait.tensor<b x 4 x f32>
  %6 = ait.mul %z, %2 : !ait.tensor<b x 8 x f32>
  ait.output "y0" %0 : !ait.tensor<b x 1 x f32>
  ait.output "y1" %5 : !ait.tensor<b x 4 x f32>
  ait.output "y2" %6 : !ait.tensor<b x 8 x f32>
  ait.output "s" %s : !ait.tensor<b x 1 x f32>
}

// A row of i64 is read once for each element: twice the bytes of what it becomes. So is one element where rows have one.
// CHECK-LABEL: ait.graph @more_bytes
ait.graph @more_bytes(%x: !ait.tensor<b x 4 x f32>, %p: !ait.tensor<4 x i64>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %0 = ait.cast %p : !ait.tensor<4 x f32>
  %1 = ait.mul %x, %0 : !ait.tensor<b x 4 x f32>
  ait.output "y" %1 : !ait.tensor<b x 4 x f32>
}

// CHECK-LABEL: ait.graph @rows_of_one
ait.graph @rows_of_one(%x: !ait.tensor<b x 4 x 1 x f32>, %p: !ait.tensor<b x 1 x 1 x i64>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %0 = ait.cast %p : !ait.tensor<b x 1 x 1 x f32>
  %1 = ait.mul %x, %0 : !ait.tensor<b x 4 x 1 x f32>
  ait.output "y" %1 : !ait.tensor<b x 4 x 1 x f32>
}

// Something narrower than all that the reader accesses would make its chunks longer.
// CHECK-LABEL: ait.graph @narrow
ait.graph @narrow(%x: !ait.tensor<b x 4 x f32>, %p: !ait.tensor<b x 1 x i1>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %0 = ait.cast %p : !ait.tensor<b x 1 x f32>
  %1 = ait.mul %x, %0 : !ait.tensor<b x 4 x f32>
  ait.output "y" %1 : !ait.tensor<b x 4 x f32>
}

// Selected, first or second.
// CHECK-LABEL: ait.graph @selected_reader
ait.graph @selected_reader(%x: !ait.tensor<b x 4 x f32>, %p: !ait.tensor<b x 1 x f32>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %0 = ait.neg %p : !ait.tensor<b x 1 x f32>
  %1 = ait.fused_elementwise(%x, %0) {
  ^bb0(%a: f32, %d: f32):
    %r = ait.mul %a, %d : f32
    ait.yield %r : f32
  } {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 4 x f32>
  ait.output "y" %1 : !ait.tensor<b x 4 x f32>
}

// CHECK-LABEL: ait.graph @selected_small
ait.graph @selected_small(%x: !ait.tensor<b x 4 x f32>, %p: !ait.tensor<b x 1 x f32>) dims {b = 1 to 8} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %0 = ait.fused_elementwise(%p) {
  ^bb0(%a: f32):
    %r = ait.neg %a : f32
    ait.yield %r : f32
  } {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 1 x f32>
  %1 = ait.mul %x, %0 : !ait.tensor<b x 4 x f32>
  ait.output "y" %1 : !ait.tensor<b x 4 x f32>
}

// The reader of so many.
// CHECK-LABEL: ait.graph @reader_of_as_many_as_fit
ait.graph @reader_of_as_many_as_fit(%x0: !ait.tensor<b x 4 x f32>, %x1: !ait.tensor<b x 4 x f32>, %x2: !ait.tensor<b x 4 x f32>, %x3: !ait.tensor<b x 4 x f32>, %x4: !ait.tensor<b x 4 x f32>, %x5: !ait.tensor<b x 4 x f32>, %x6: !ait.tensor<b x 4 x f32>, %x7: !ait.tensor<b x 4 x f32>, %x8: !ait.tensor<b x 4 x f32>, %x9: !ait.tensor<b x 4 x f32>, %x10: !ait.tensor<b x 4 x f32>, %x11: !ait.tensor<b x 4 x f32>, %p: !ait.tensor<b x 1 x f32>, %q: !ait.tensor<b x 1 x f32>, %r: !ait.tensor<b x 1 x f32>) dims {b = 1 to 2} {
  // CHECK: ait.fused_elementwise
  // CHECK-NOT: ait.fused_elementwise
  // CHECK: ait.output
  %0 = ait.add %p, %q : !ait.tensor<b x 1 x f32>
  %1 = ait.add %0, %r : !ait.tensor<b x 1 x f32>
  %2 = ait.add %1, %x0 : !ait.tensor<b x 4 x f32>
  %3 = ait.add %2, %x1 : !ait.tensor<b x 4 x f32>
  %4 = ait.add %3, %x2 : !ait.tensor<b x 4 x f32>
  %5 = ait.add %4, %x3 : !ait.tensor<b x 4 x f32>
  %6 = ait.add %5, %x4 : !ait.tensor<b x 4 x f32>
  %7 = ait.add %6, %x5 : !ait.tensor<b x 4 x f32>
  %8 = ait.add %7, %x6 : !ait.tensor<b x 4 x f32>
  %9 = ait.add %8, %x7 : !ait.tensor<b x 4 x f32>
  %10 = ait.add %9, %x8 : !ait.tensor<b x 4 x f32>
  %11 = ait.add %10, %x9 : !ait.tensor<b x 4 x f32>
  %12 = ait.add %11, %x10 : !ait.tensor<b x 4 x f32>
  %13 = ait.add %12, %x11 : !ait.tensor<b x 4 x f32>
  ait.output "y" %13 : !ait.tensor<b x 4 x f32>
}

// One more.
// CHECK-LABEL: ait.graph @reader_of_too_many
ait.graph @reader_of_too_many(%x0: !ait.tensor<b x 4 x f32>, %x1: !ait.tensor<b x 4 x f32>, %x2: !ait.tensor<b x 4 x f32>, %x3: !ait.tensor<b x 4 x f32>, %x4: !ait.tensor<b x 4 x f32>, %x5: !ait.tensor<b x 4 x f32>, %x6: !ait.tensor<b x 4 x f32>, %x7: !ait.tensor<b x 4 x f32>, %x8: !ait.tensor<b x 4 x f32>, %x9: !ait.tensor<b x 4 x f32>, %x10: !ait.tensor<b x 4 x f32>, %x11: !ait.tensor<b x 4 x f32>, %x12: !ait.tensor<b x 4 x f32>, %p: !ait.tensor<b x 1 x f32>, %q: !ait.tensor<b x 1 x f32>, %r: !ait.tensor<b x 1 x f32>) dims {b = 1 to 2} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %0 = ait.add %p, %q : !ait.tensor<b x 1 x f32>
  %1 = ait.add %0, %r : !ait.tensor<b x 1 x f32>
  %2 = ait.add %1, %x0 : !ait.tensor<b x 4 x f32>
  %3 = ait.add %2, %x1 : !ait.tensor<b x 4 x f32>
  %4 = ait.add %3, %x2 : !ait.tensor<b x 4 x f32>
  %5 = ait.add %4, %x3 : !ait.tensor<b x 4 x f32>
  %6 = ait.add %5, %x4 : !ait.tensor<b x 4 x f32>
  %7 = ait.add %6, %x5 : !ait.tensor<b x 4 x f32>
  %8 = ait.add %7, %x6 : !ait.tensor<b x 4 x f32>
  %9 = ait.add %8, %x7 : !ait.tensor<b x 4 x f32>
  %10 = ait.add %9, %x8 : !ait.tensor<b x 4 x f32>
  %11 = ait.add %10, %x9 : !ait.tensor<b x 4 x f32>
  %12 = ait.add %11, %x10 : !ait.tensor<b x 4 x f32>
  %13 = ait.add %12, %x11 : !ait.tensor<b x 4 x f32>
  %14 = ait.add %13, %x12 : !ait.tensor<b x 4 x f32>
  ait.output "y" %14 : !ait.tensor<b x 4 x f32>
}
