// RUN: ait-opt %s -p rotate-products | filecheck %s
// RUN: ait-opt %s -p rotate-products --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// Queries and keys are turned, values are not.
// CHECK-LABEL: ait.graph @parts
ait.graph @parts(%x: !ait.tensor<b x s x 6 x f32>, %c: !ait.tensor<b x s x 1 x 2 x f32>, %s: !ait.tensor<s x 1 x 2 x f32>) dims {b = 0 to 3, s = 0 to 4} {
  // CHECK: [[C:%.*]] = ait.reshape %c : !ait.tensor<b x s x 2 x f32>
  // CHECK: [[S:%.*]] = ait.reshape %s : !ait.tensor<1 x s x 2 x f32>
  // CHECK: [[P:%.*]] = ait.rotated_gemm %x, %w cosines [[C]] sines [[S]] heads 3 size 4 : !ait.tensor<b x s x 20 x f32>
  // CHECK: [[Q:%.*]], [[K:%.*]], [[V:%.*]] = ait.split [[P]] dim 2
  // CHECK: [[QR:%.*]] = ait.reshape [[Q]]
  // CHECK: [[KR:%.*]] = ait.reshape [[K]]
  // CHECK: ait.output "q" [[QR]]
  // CHECK: ait.output "k" [[KR]]
  // CHECK: ait.output "v" [[V]]
  %w = ait.param "parts.w" : !ait.tensor<20 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<b x s x 20 x f32>
  %q0, %k0, %v = ait.split %p dim 2 : !ait.tensor<b x s x 8 x f32>, !ait.tensor<b x s x 4 x f32>, !ait.tensor<b x s x 8 x f32>
  %qr = ait.reshape %q0 : !ait.tensor<b x s x 2 x 4 x f32>
  %qa, %qb = ait.split %qr dim 3 : !ait.tensor<b x s x 2 x 2 x f32>, !ait.tensor<b x s x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<b x s x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<b x s x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<b x s x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<b x s x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<b x s x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<b x s x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 3 : !ait.tensor<b x s x 2 x 4 x f32>
  %kr = ait.reshape %k0 : !ait.tensor<b x s x 1 x 4 x f32>
  %ka, %kb = ait.split %kr dim 3 : !ait.tensor<b x s x 1 x 2 x f32>, !ait.tensor<b x s x 1 x 2 x f32>
  %k1 = ait.mul %ka, %c : !ait.tensor<b x s x 1 x 2 x f32>
  %k2 = ait.mul %kb, %s : !ait.tensor<b x s x 1 x 2 x f32>
  %k3 = ait.sub %k1, %k2 : !ait.tensor<b x s x 1 x 2 x f32>
  %k4 = ait.mul %kb, %c : !ait.tensor<b x s x 1 x 2 x f32>
  %k5 = ait.mul %ka, %s : !ait.tensor<b x s x 1 x 2 x f32>
  %k6 = ait.add %k5, %k4 : !ait.tensor<b x s x 1 x 2 x f32>
  %k = ait.concat %k3, %k6 dim 3 : !ait.tensor<b x s x 1 x 4 x f32>
  ait.output "q" %q : !ait.tensor<b x s x 2 x 4 x f32>
  ait.output "k" %k : !ait.tensor<b x s x 1 x 4 x f32>
  ait.output "v" %v : !ait.tensor<b x s x 8 x f32>
}

// A product of one part, its heads before the rows; the angles are read behind the product.
// CHECK-LABEL: ait.graph @heads_first
ait.graph @heads_first(%x: !ait.tensor<b x s x 6 x f32>, %a: !ait.tensor<1 x s x 2 x f32>) dims {b = 0 to 3, s = 0 to 4} {
  // CHECK: [[C:%.*]] = ait.cos %a
  // CHECK: [[S:%.*]] = ait.sin %a
  // CHECK: ait.rotated_gemm %x, %w cosines {{%.*}} sines {{%.*}} heads 2 size 4
  // CHECK: [[T:%.*]] = ait.permute {{%.*}} [0, 2, 1, 3]
  // CHECK: ait.output "q" [[T]]
  %w = ait.param "heads_first.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<b x s x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<b x s x 2 x 4 x f32>
  %t = ait.permute %r [0, 2, 1, 3] : !ait.tensor<b x 2 x s x 4 x f32>
  %c = ait.cos %a : !ait.tensor<1 x s x 2 x f32>
  %s = ait.sin %a : !ait.tensor<1 x s x 2 x f32>
  %qa = ait.slice %t offsets [0, 0, 0, 0] : !ait.tensor<b x 2 x s x 2 x f32>
  %qb = ait.slice %t offsets [0, 0, 0, 2] : !ait.tensor<b x 2 x s x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<b x 2 x s x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<b x 2 x s x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<b x 2 x s x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<b x 2 x s x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<b x 2 x s x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<b x 2 x s x 2 x f32>
  %q = ait.concat %q3, %q6 dim 3 : !ait.tensor<b x 2 x s x 4 x f32>
  ait.output "q" %q : !ait.tensor<b x 2 x s x 4 x f32>
}

// The second part is turned by other angles.
// CHECK-LABEL: ait.graph @other_tables
ait.graph @other_tables(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %d: !ait.tensor<3 x 1 x 2 x f32>) {
  // CHECK: ait.rotated_gemm %x, %w cosines {{%.*}} sines {{%.*}} heads 1 size 4
  // CHECK: ait.mul {{%.*}}, %d
  // CHECK: ait.concat
  %w = ait.param "other_tables.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %q0, %k0 = ait.split %p dim 1 : !ait.tensor<3 x 4 x f32>, !ait.tensor<3 x 4 x f32>
  %qr = ait.reshape %q0 : !ait.tensor<3 x 1 x 4 x f32>
  %qa, %qb = ait.split %qr dim 2 : !ait.tensor<3 x 1 x 2 x f32>, !ait.tensor<3 x 1 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 1 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 1 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 1 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 1 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 1 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 1 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 1 x 4 x f32>
  %kr = ait.reshape %k0 : !ait.tensor<3 x 1 x 4 x f32>
  %ka, %kb = ait.split %kr dim 2 : !ait.tensor<3 x 1 x 2 x f32>, !ait.tensor<3 x 1 x 2 x f32>
  %k1 = ait.mul %ka, %d : !ait.tensor<3 x 1 x 2 x f32>
  %k2 = ait.mul %kb, %s : !ait.tensor<3 x 1 x 2 x f32>
  %k3 = ait.sub %k1, %k2 : !ait.tensor<3 x 1 x 2 x f32>
  %k4 = ait.mul %kb, %d : !ait.tensor<3 x 1 x 2 x f32>
  %k5 = ait.mul %ka, %s : !ait.tensor<3 x 1 x 2 x f32>
  %k6 = ait.add %k4, %k5 : !ait.tensor<3 x 1 x 2 x f32>
  %k = ait.concat %k3, %k6 dim 2 : !ait.tensor<3 x 1 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 1 x 4 x f32>
  ait.output "k" %k : !ait.tensor<3 x 1 x 4 x f32>
}

// The first part is not turned.
// CHECK-LABEL: ait.graph @second_part
ait.graph @second_part(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "second_part.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %v, %k0 = ait.split %p dim 1 : !ait.tensor<3 x 4 x f32>, !ait.tensor<3 x 4 x f32>
  %kr = ait.reshape %k0 : !ait.tensor<3 x 1 x 4 x f32>
  %ka, %kb = ait.split %kr dim 2 : !ait.tensor<3 x 1 x 2 x f32>, !ait.tensor<3 x 1 x 2 x f32>
  %k1 = ait.mul %ka, %c : !ait.tensor<3 x 1 x 2 x f32>
  %k2 = ait.mul %kb, %s : !ait.tensor<3 x 1 x 2 x f32>
  %k3 = ait.sub %k1, %k2 : !ait.tensor<3 x 1 x 2 x f32>
  %k4 = ait.mul %kb, %c : !ait.tensor<3 x 1 x 2 x f32>
  %k5 = ait.mul %ka, %s : !ait.tensor<3 x 1 x 2 x f32>
  %k6 = ait.add %k4, %k5 : !ait.tensor<3 x 1 x 2 x f32>
  %k = ait.concat %k3, %k6 dim 2 : !ait.tensor<3 x 1 x 4 x f32>
  ait.output "v" %v : !ait.tensor<3 x 4 x f32>
  ait.output "k" %k : !ait.tensor<3 x 1 x 4 x f32>
}

// The product is read as it is, too.
// CHECK-LABEL: ait.graph @read_twice
ait.graph @read_twice(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "read_twice.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "p" %p : !ait.tensor<3 x 8 x f32>
}

// So are its heads.
// CHECK-LABEL: ait.graph @heads_read
ait.graph @heads_read(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "heads_read.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "r" %r : !ait.tensor<3 x 2 x 4 x f32>
}

// So is half of its heads.
// CHECK-LABEL: ait.graph @half_read
ait.graph @half_read(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "half_read.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "a" %qa : !ait.tensor<3 x 2 x 2 x f32>
}

// So is a step of the rotation.
// CHECK-LABEL: ait.graph @step_read
ait.graph @step_read(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "step_read.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "u" %q1 : !ait.tensor<3 x 2 x 2 x f32>
}

// So is a half of the result.
// CHECK-LABEL: ait.graph @end_read
ait.graph @end_read(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "end_read.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "u" %q3 : !ait.tensor<3 x 2 x 2 x f32>
}

// Another layout.
// CHECK-LABEL: ait.graph @layout
ait.graph @layout(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "layout.w" : !ait.tensor<6 x 8 x f32>
  %p = ait.gemm rrr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
}

// Selected already.
// CHECK-LABEL: ait.graph @selected
ait.graph @selected(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "selected.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
}

// An epilogue.
// CHECK-LABEL: ait.graph @epilogue
ait.graph @epilogue(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "epilogue.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w epilogue() {
  ^bb0(%acc: f32):
    %e = ait.relu %acc : f32
    ait.yield %e : f32
  } : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
}

// The angles of each head are its own.
// CHECK-LABEL: ait.graph @of_heads
ait.graph @of_heads(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "of_heads.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %h : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %h : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
}

// a c + b s.
// CHECK-LABEL: ait.graph @added
ait.graph @added(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "added.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.add %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
}

// b s - a c.
// CHECK-LABEL: ait.graph @mirrored
ait.graph @mirrored(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "mirrored.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q2, %q1 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
}

// The halves of the result change places.
// CHECK-LABEL: ait.graph @swapped
ait.graph @swapped(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "swapped.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q6, %q3 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
}

// Cosines alone.
// CHECK-LABEL: ait.graph @one_table
ait.graph @one_table(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "one_table.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
}

// The halves are not those of a head.
// CHECK-LABEL: ait.graph @halves
ait.graph @halves(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "halves.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa = ait.slice %r offsets [0, 0, 1] : !ait.tensor<3 x 2 x 2 x f32>
  %qb = ait.slice %r offsets [0, 0, 2] : !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
}

// The reshape parts rows, not columns.
// CHECK-LABEL: ait.graph @rows_parted
ait.graph @rows_parted(%x: !ait.tensor<6 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "rows_parted.w" : !ait.tensor<4 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<6 x 4 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
}

// The permute moves rows past each other.
// CHECK-LABEL: ait.graph @moved
ait.graph @moved(%x: !ait.tensor<2 x 3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "moved.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<2 x 3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<2 x 3 x 2 x 4 x f32>
  %t = ait.permute %r [1, 0, 2, 3] : !ait.tensor<3 x 2 x 2 x 4 x f32>
  %qa, %qb = ait.split %t dim 3 : !ait.tensor<3 x 2 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 3 : !ait.tensor<3 x 2 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 2 x 4 x f32>
}

// The product is split along its rows.
// CHECK-LABEL: ait.graph @split_rows
ait.graph @split_rows(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<1 x 1 x 2 x f32>, %s: !ait.tensor<1 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "split_rows.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %p0, %p1 = ait.split %p dim 0 : !ait.tensor<1 x 8 x f32>, !ait.tensor<2 x 8 x f32>
  %r = ait.reshape %p0 : !ait.tensor<1 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<1 x 2 x 2 x f32>, !ait.tensor<1 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<1 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<1 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<1 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<1 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<1 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<1 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<1 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<1 x 2 x 4 x f32>
  ait.output "p" %p1 : !ait.tensor<2 x 8 x f32>
}

// Something else reads the heads, before their halves.
// CHECK-LABEL: ait.graph @heads_read_before
ait.graph @heads_read_before(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "heads_read_before.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %u = ait.relu %r : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "u" %u : !ait.tensor<3 x 2 x 4 x f32>
}

// The same beside slices.
// CHECK-LABEL: ait.graph @three_readers
ait.graph @three_readers(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "three_readers.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa = ait.slice %r offsets [0, 0, 0] : !ait.tensor<3 x 2 x 2 x f32>
  %qb = ait.slice %r offsets [0, 0, 2] : !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "r" %r : !ait.tensor<3 x 2 x 4 x f32>
}

// The second slice is no half.
// CHECK-LABEL: ait.graph @second_half
ait.graph @second_half(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "second_half.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa = ait.slice %r offsets [0, 0, 0] : !ait.tensor<3 x 2 x 2 x f32>
  %qb = ait.slice %r offsets [0, 0, 1] : !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
}

// b c - a s.
// CHECK-LABEL: ait.graph @subtracted
ait.graph @subtracted(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "subtracted.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.sub %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
}

// b c + h, and a s goes elsewhere.
// CHECK-LABEL: ait.graph @other_sum
ait.graph @other_sum(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "other_sum.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %h : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "u" %q5 : !ait.tensor<3 x 2 x 2 x f32>
}

// The second half of the result is read as well.
// CHECK-LABEL: ait.graph @second_end_read
ait.graph @second_end_read(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "second_end_read.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "u" %q6 : !ait.tensor<3 x 2 x 2 x f32>
}

// So is b s.
// CHECK-LABEL: ait.graph @crossed_read
ait.graph @crossed_read(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "crossed_read.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "u" %q2 : !ait.tensor<3 x 2 x 2 x f32>
}

// So is a s.
// CHECK-LABEL: ait.graph @last_read
ait.graph @last_read(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "last_read.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "u" %q5 : !ait.tensor<3 x 2 x 2 x f32>
}

// All pairs of a head are turned by one angle.
// CHECK-LABEL: ait.graph @one_angle
ait.graph @one_angle(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 1 x f32>, %s: !ait.tensor<3 x 1 x 1 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "one_angle.w" : !ait.tensor<8 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 8 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 2 x 2 x f32>, !ait.tensor<3 x 2 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 4 x f32>
}

// The halves are heads.
// CHECK-LABEL: ait.graph @pairs_of_heads
ait.graph @pairs_of_heads(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 1 x f32>, %s: !ait.tensor<3 x 1 x 1 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "pairs_of_heads.w" : !ait.tensor<4 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 4 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 2 x f32>
  %qa, %qb = ait.split %r dim 1 : !ait.tensor<3 x 1 x 2 x f32>, !ait.tensor<3 x 1 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 1 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 1 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 1 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 1 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 1 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 1 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 1 : !ait.tensor<3 x 2 x 2 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 2 x f32>
}

// The same, side by side.
// CHECK-LABEL: ait.graph @heads_side_by_side
ait.graph @heads_side_by_side(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 1 x f32>, %s: !ait.tensor<3 x 1 x 1 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "heads_side_by_side.w" : !ait.tensor<4 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 4 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 2 x f32>
  %qa, %qb = ait.split %r dim 1 : !ait.tensor<3 x 1 x 2 x f32>, !ait.tensor<3 x 1 x 2 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 1 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 1 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 1 x 2 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 1 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 1 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 1 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 1 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 1 x 4 x f32>
}

// The permute moves the heads behind their columns.
// CHECK-LABEL: ait.graph @columns_last
ait.graph @columns_last(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 1 x f32>, %s: !ait.tensor<3 x 1 x 1 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "columns_last.w" : !ait.tensor<4 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 4 x f32>
  %r = ait.reshape %p : !ait.tensor<3 x 2 x 2 x f32>
  %t = ait.permute %r [0, 2, 1] : !ait.tensor<3 x 2 x 2 x f32>
  %qa, %qb = ait.split %t dim 2 : !ait.tensor<3 x 2 x 1 x f32>, !ait.tensor<3 x 2 x 1 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<3 x 2 x 1 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 2 x 1 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 2 x 1 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<3 x 2 x 1 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 2 x 1 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 2 x 1 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 2 x 2 x f32>
  ait.output "q" %q : !ait.tensor<3 x 2 x 2 x f32>
}

// The product computes the angles, too.
// CHECK-LABEL: ait.graph @own_angles
ait.graph @own_angles(%x: !ait.tensor<3 x 6 x f32>, %c: !ait.tensor<3 x 1 x 2 x f32>, %s: !ait.tensor<3 x 1 x 2 x f32>, %h: !ait.tensor<3 x 2 x 2 x f32>) {
  // CHECK-NOT: ait.rotated_gemm
  %w = ait.param "own_angles.w" : !ait.tensor<6 x 6 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<3 x 6 x f32>
  %p0, %p1 = ait.split %p dim 1 : !ait.tensor<3 x 4 x f32>, !ait.tensor<3 x 2 x f32>
  %a = ait.reshape %p1 : !ait.tensor<3 x 1 x 2 x f32>
  %cos = ait.cos %a : !ait.tensor<3 x 1 x 2 x f32>
  %r = ait.reshape %p0 : !ait.tensor<3 x 1 x 4 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<3 x 1 x 2 x f32>, !ait.tensor<3 x 1 x 2 x f32>
  %q1 = ait.mul %qa, %cos : !ait.tensor<3 x 1 x 2 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<3 x 1 x 2 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<3 x 1 x 2 x f32>
  %q4 = ait.mul %qb, %cos : !ait.tensor<3 x 1 x 2 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<3 x 1 x 2 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<3 x 1 x 2 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<3 x 1 x 4 x f32>
  ait.output "q" %q : !ait.tensor<3 x 1 x 4 x f32>
}
