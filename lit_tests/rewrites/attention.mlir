// RUN: ait-opt %s -p simplify,fuse-attention | filecheck %s
// RUN: ait-opt %s -p simplify,fuse-attention --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference
// Every variant with every precondition broken in turn: tests/rewrites/test_attention.py.

// Keys come transposed, as Hugging Face writes them; the mask is added to the scores of all heads and rows.
// CHECK-LABEL: ait.graph @masked
ait.graph @masked(%x: !ait.tensor<b x s x 3 x 8 x f32>, %m: !ait.tensor<b x 1 x 1 x s x f32>) dims {b = 0 to 4, s = 1 to 8} {
  // CHECK-NEXT: [[Q:%.*]] = ait.permute %x [0, 2, 1, 3]
  // CHECK-NEXT: [[K:%.*]] = ait.permute %x [0, 2, 1, 3]
  // CHECK-NEXT: [[Y:%.*]] = ait.attention [[Q]], [[K]], [[Q]] mask %m scale 0.125 nan_rows : !ait.tensor<b x 3 x s x 8 x f32>
  // CHECK-NEXT: ait.output "y" [[Y]]
  %c = ait.constant 8.0 : !ait.tensor<f32>
  %q = ait.permute %x [0, 2, 1, 3] : !ait.tensor<b x 3 x s x 8 x f32>
  %k = ait.permute %x [0, 2, 3, 1] : !ait.tensor<b x 3 x 8 x s x f32>
  %s = ait.bmm rrr %q, %k : !ait.tensor<b x 3 x s x s x f32>
  %t = ait.div %s, %c : !ait.tensor<b x 3 x s x s x f32>
  %u = ait.add %t, %m : !ait.tensor<b x 3 x s x s x f32>
  %p = ait.softmax %u dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %y = ait.bmm rrr %p, %q : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y" %y : !ait.tensor<b x 3 x s x 8 x f32>
}

// With batch and heads in one dim; the reshapes become one.
// CHECK-LABEL: ait.graph @batch_of_heads
ait.graph @batch_of_heads(%x: !ait.tensor<b x 3 x s x 8 x f32>) dims {b = 1 to 4, s = 1 to 8} {
  // CHECK: ait.attention {{.*}} scale 1.0 nan_rows : !ait.tensor<(3*b) x 1 x s x 8 x f32>
  // CHECK: ait.output
  %q = ait.reshape %x : !ait.tensor<(3*b) x s x 8 x f32>
  %s = ait.bmm rcr %q, %q : !ait.tensor<(3*b) x s x s x f32>
  %p = ait.softmax %s dim 2 : !ait.tensor<(3*b) x s x s x f32>
  %y = ait.bmm rrr %p, %q : !ait.tensor<(3*b) x s x 8 x f32>
  %z = ait.reshape %y : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y" %z : !ait.tensor<b x 3 x s x 8 x f32>
}

// softmax(q @ k) * 2 scales what the softmax gives; (q @ k + m) * 2 scales the mask, too, and 2 / (q @ k) is no scale: regions.
// CHECK-LABEL: ait.graph @scaled_elsewhere
ait.graph @scaled_elsewhere(%q: !ait.tensor<b x 3 x s x 8 x f32>, %m: !ait.tensor<s x s x f32>) dims {b = 1 to 4, s = 1 to 8} {
  // CHECK: ait.softmax
  // CHECK: [[A:%.*]] = ait.attention {{.*}} scale 1.0 nan_rows scores(%m) {
  // CHECK-NEXT: ^bb0([[S:%.*]]: f32, [[M:%.*]]: f32):
  // CHECK-NEXT: [[T:%.*]] = ait.add [[S]], [[M]] : f32
  // CHECK-NEXT: [[C:%.*]] = ait.constant 2.0 : f32
  // CHECK-NEXT: ait.mul [[T]], [[C]] : f32
  // CHECK: ait.attention [[A]], %q, %q scale 1.0 nan_rows scores() {
  // CHECK: ait.div {{.*}} : f32
  %c = ait.constant 2.0 : !ait.tensor<f32>
  %0 = ait.bmm rcr %q, %q : !ait.tensor<b x 3 x s x s x f32>
  %1 = ait.softmax %0 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %2 = ait.mul %1, %c : !ait.tensor<b x 3 x s x s x f32>
  %3 = ait.bmm rrr %2, %q : !ait.tensor<b x 3 x s x 8 x f32>
  %4 = ait.bmm rcr %3, %q : !ait.tensor<b x 3 x s x s x f32>
  %5 = ait.add %4, %m : !ait.tensor<b x 3 x s x s x f32>
  %6 = ait.mul %5, %c : !ait.tensor<b x 3 x s x s x f32>
  %7 = ait.softmax %6 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %8 = ait.bmm rrr %7, %q : !ait.tensor<b x 3 x s x 8 x f32>
  // a scale and a divisor that are no constants
  %9 = ait.bmm rcr %8, %q : !ait.tensor<b x 3 x s x s x f32>
  %10 = ait.div %c, %9 : !ait.tensor<b x 3 x s x s x f32>
  %11 = ait.softmax %10 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %12 = ait.bmm rrr %11, %q : !ait.tensor<b x 3 x s x 8 x f32>
  // CHECK: ait.output
  ait.output "y" %12 : !ait.tensor<b x 3 x s x 8 x f32>
}

// One key head for all query heads: the batch dims differ.
// CHECK-LABEL: ait.graph @shared_keys
ait.graph @shared_keys(%q: !ait.tensor<b x 3 x s x 8 x f32>, %k: !ait.tensor<b x 1 x s x 8 x f32>) dims {b = 1 to 4, s = 1 to 8} {
  // CHECK-NOT: ait.attention
  %0 = ait.bmm rcr %q, %k : !ait.tensor<b x 3 x s x s x f32>
  %1 = ait.softmax %0 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %2 = ait.bmm rrr %1, %k : !ait.tensor<b x 3 x s x 8 x f32>
  // CHECK: ait.output
  ait.output "y" %2 : !ait.tensor<b x 3 x s x 8 x f32>
}
