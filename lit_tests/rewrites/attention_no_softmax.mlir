// RUN: ait-opt %s -p fuse-attention | filecheck %s
// RUN: ait-opt %s -p fuse-attention --check-semantics | filecheck %s --check-prefix=SAME
// SAME: builtin.module

// Two products with a scale, a bias and an activation between them.
// CHECK-LABEL: ait.graph @activation
ait.graph @activation(%q: !ait.tensor<b x 4 x s x 8 x f16>, %k: !ait.tensor<b x 4 x l x 8 x f16>, %v: !ait.tensor<b x 4 x l x 6 x f16>, %a: !ait.tensor<4 x s x l x f16>) dims {b = 0 to 4, s = 1 to 8, l = 1 to 8} {
  // CHECK-NEXT: [[Y:%.*]] = ait.attention %q, %k, %v scale 0.25 no_softmax scores(%a) {
  // CHECK-NEXT: ^bb0([[S:%.*]]: f32, [[A:%.*]]: f32):
  // CHECK-NEXT:   [[T:%.*]] = ait.add [[S]], [[A]] : f32
  // CHECK-NEXT:   [[R:%.*]] = ait.silu [[T]] : f32
  // CHECK-NEXT:   ait.yield [[R]] : f32
  // CHECK-NEXT: } : !ait.tensor<b x 4 x s x 6 x f16>
  // CHECK-NEXT: ait.output "y" [[Y]]
  %c = ait.constant 0.25 : !ait.tensor<f16>
  %0 = ait.bmm rcr %q, %k : !ait.tensor<b x 4 x s x l x f16>
  %1 = ait.mul %0, %c : !ait.tensor<b x 4 x s x l x f16>
  %2 = ait.add %1, %a : !ait.tensor<b x 4 x s x l x f16>
  %3 = ait.silu %2 : !ait.tensor<b x 4 x s x l x f16>
  %4 = ait.bmm rrr %3, %v : !ait.tensor<b x 4 x s x 6 x f16>
  ait.output "y" %4 : !ait.tensor<b x 4 x s x 6 x f16>
}

// Scores that are used as they are, of one head, and what is added last stays in the region: there is no mask.
// CHECK-LABEL: ait.graph @plain
ait.graph @plain(%q: !ait.tensor<b x s x 8 x f16>, %m: !ait.tensor<s x s x f16>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK: [[Y:%.*]] = ait.attention {{%.*}}, {{%.*}}, {{%.*}} scale 1.0 no_softmax : !ait.tensor<b x 1 x s x 8 x f16>
  // CHECK: [[Z:%.*]] = ait.attention {{%.*}}, {{%.*}}, {{%.*}} scale 1.0 no_softmax scores(%m) {
  // CHECK-NOT: ait.bmm
  %0 = ait.bmm rcr %q, %q : !ait.tensor<b x s x s x f16>
  %1 = ait.bmm rrr %0, %q : !ait.tensor<b x s x 8 x f16>
  %2 = ait.bmm rcr %1, %q : !ait.tensor<b x s x s x f16>
  %3 = ait.add %2, %m : !ait.tensor<b x s x s x f16>
  %4 = ait.bmm rrr %3, %q : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %4 : !ait.tensor<b x s x 8 x f16>
}

// Scores above the diagonal are 0: the region compares the positions.
// CHECK-LABEL: ait.graph @triangle
ait.graph @triangle(%q: !ait.tensor<2 x 4 x s x 8 x f16>, %r: !ait.tensor<s x 1 x i32>, %c: !ait.tensor<1 x s x i32>) dims {s = 2 to 8} {
  // CHECK: ait.attention %q, %q, %q scale 1.0 no_softmax scores(%r, %c) {
  // CHECK: ait.compare ge
  // CHECK: ait.where
  // CHECK-NOT: ait.bmm
  %zero = ait.constant 0.0 : !ait.tensor<f16>
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 4 x s x s x f16>
  %1 = ait.sigmoid %0 : !ait.tensor<2 x 4 x s x s x f16>
  %2 = ait.compare ge %r, %c : !ait.tensor<s x s x i1>
  %3 = ait.where %2, %1, %zero : !ait.tensor<2 x 4 x s x s x f16>
  %4 = ait.bmm rrr %3, %q : !ait.tensor<2 x 4 x s x 8 x f16>
  ait.output "y" %4 : !ait.tensor<2 x 4 x s x 8 x f16>
}

// The scores have another use, as an output: they are stored anyway.
// CHECK-LABEL: ait.graph @used_twice
ait.graph @used_twice(%q: !ait.tensor<2 x 4 x 8 x 8 x f16>) {
  // CHECK-NOT: ait.attention
  // CHECK: ait.output "s"
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %1 = ait.tanh %0 : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %2 = ait.bmm rrr %1, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<2 x 4 x 8 x 8 x f16>
  ait.output "s" %1 : !ait.tensor<2 x 4 x 8 x 8 x f16>
}

// The values are made of the same scores.
// CHECK-LABEL: ait.graph @values_of_scores
ait.graph @values_of_scores(%q: !ait.tensor<2 x 4 x 8 x 8 x f16>) {
  // CHECK-NOT: ait.attention
  // CHECK: ait.output
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %1 = ait.tanh %0 : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %2 = ait.bmm rrr %1, %0 : !ait.tensor<2 x 4 x 8 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<2 x 4 x 8 x 8 x f16>
}

// The scores are the second factor.
// CHECK-LABEL: ait.graph @other_order
ait.graph @other_order(%q: !ait.tensor<2 x 4 x 8 x 8 x f16>, %v: !ait.tensor<2 x 4 x 8 x 8 x f16>) {
  // CHECK-NOT: ait.attention
  // CHECK: ait.output
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %1 = ait.tanh %0 : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %2 = ait.bmm rrr %v, %1 : !ait.tensor<2 x 4 x 8 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<2 x 4 x 8 x 8 x f16>
}

// A function that moves elements is none of each score.
// CHECK-LABEL: ait.graph @permuted
ait.graph @permuted(%q: !ait.tensor<2 x 4 x 8 x 8 x f16>) {
  // CHECK-NOT: ait.attention
  // CHECK: ait.output
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %1 = ait.permute %0 [0, 1, 3, 2] : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %2 = ait.tanh %1 : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %3 = ait.bmm rrr %2, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  ait.output "y" %3 : !ait.tensor<2 x 4 x 8 x 8 x f16>
}

// Rows of more than 128 columns are faster as two products.
// CHECK-LABEL: ait.graph @wide
ait.graph @wide(%q: !ait.tensor<2 x 4 x 8 x 128 x f16>, %v: !ait.tensor<2 x 4 x 8 x 136 x f16>, %w: !ait.tensor<2 x 4 x 8 x 128 x f16>) {
  // CHECK: [[S:%.*]] = ait.bmm rcr %q, %q
  // CHECK: ait.bmm rrr {{%.*}}, %v
  // CHECK: ait.attention %q, %q, %w scale 1.0 no_softmax scores()
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %1 = ait.tanh %0 : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %2 = ait.bmm rrr %1, %v : !ait.tensor<2 x 4 x 8 x 136 x f16>
  %3 = ait.bmm rcr %q, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %4 = ait.tanh %3 : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %5 = ait.bmm rrr %4, %w : !ait.tensor<2 x 4 x 8 x 128 x f16>
  ait.output "y" %2 : !ait.tensor<2 x 4 x 8 x 136 x f16>
  ait.output "z" %5 : !ait.tensor<2 x 4 x 8 x 128 x f16>
}

// A second product with an epilogue, or with a kernel, is left as it is.
// CHECK-LABEL: ait.graph @finished
ait.graph @finished(%q: !ait.tensor<2 x 4 x 8 x 8 x f16>) {
  // CHECK-NOT: ait.attention
  // CHECK: ait.output "z"
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %1 = ait.tanh %0 : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %2 = ait.bmm rrr %1, %q epilogue() {
  ^bb0(%acc: f32):
    %3 = ait.relu %acc : f32
    ait.yield %3 : f32
  } : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %4 = ait.bmm rcr %q, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %5 = ait.tanh %4 : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %6 = ait.bmm rrr %5, %q {kernel = #ait.kernel<"native", {}>} : !ait.tensor<2 x 4 x 8 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<2 x 4 x 8 x 8 x f16>
  ait.output "z" %6 : !ait.tensor<2 x 4 x 8 x 8 x f16>
}

// The second product multiplies with columns of values.
// CHECK-LABEL: ait.graph @columns_of_values
ait.graph @columns_of_values(%q: !ait.tensor<2 x 4 x 8 x 8 x f16>) {
  // CHECK-NOT: ait.attention
  // CHECK: ait.output
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %1 = ait.tanh %0 : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %2 = ait.bmm rcr %1, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<2 x 4 x 8 x 8 x f16>
}

// Products of f32 stay two: a GPU computes attention of f32 in plain arithmetic.
// CHECK-LABEL: ait.graph @wide_elements
ait.graph @wide_elements(%q: !ait.tensor<2 x 4 x 8 x 8 x f32>) {
  // CHECK-NOT: ait.attention
  // CHECK: ait.output
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 4 x 8 x 8 x f32>
  %1 = ait.tanh %0 : !ait.tensor<2 x 4 x 8 x 8 x f32>
  %2 = ait.bmm rrr %1, %q : !ait.tensor<2 x 4 x 8 x 8 x f32>
  ait.output "y" %2 : !ait.tensor<2 x 4 x 8 x 8 x f32>
}

// Many columns of few rows are faster as two products; 512 columns, or 4 times the rows, are not many.
// CHECK-LABEL: ait.graph @few_rows
ait.graph @few_rows(%q: !ait.tensor<1 x 2 x s x 8 x f16>, %k: !ait.tensor<1 x 2 x 513 x 8 x f16>) dims {s = 1 to 4} {
  // CHECK: ait.bmm rcr %q, %k
  // CHECK: ait.bmm rrr {{.*}}, %k
  // CHECK-NOT: ait.attention
  // CHECK: ait.output
  %0 = ait.bmm rcr %q, %k : !ait.tensor<1 x 2 x s x 513 x f16>
  %1 = ait.tanh %0 : !ait.tensor<1 x 2 x s x 513 x f16>
  %2 = ait.bmm rrr %1, %k : !ait.tensor<1 x 2 x s x 8 x f16>
  ait.output "y" %2 : !ait.tensor<1 x 2 x s x 8 x f16>
}

// CHECK-LABEL: ait.graph @few_columns
ait.graph @few_columns(%q: !ait.tensor<1 x 2 x s x 8 x f16>, %k: !ait.tensor<1 x 2 x 512 x 8 x f16>) dims {s = 1 to 4} {
  // CHECK: ait.attention %q, %k, %k scale 1.0 no_softmax
  // CHECK-NOT: ait.bmm
  // CHECK: ait.output
  %0 = ait.bmm rcr %q, %k : !ait.tensor<1 x 2 x s x 512 x f16>
  %1 = ait.tanh %0 : !ait.tensor<1 x 2 x s x 512 x f16>
  %2 = ait.bmm rrr %1, %k : !ait.tensor<1 x 2 x s x 8 x f16>
  ait.output "y" %2 : !ait.tensor<1 x 2 x s x 8 x f16>
}

// CHECK-LABEL: ait.graph @many_rows
ait.graph @many_rows(%q: !ait.tensor<1 x 1 x s x 8 x f16>, %k: !ait.tensor<1 x 1 x (4*s) x 8 x f16>, %l: !ait.tensor<1 x 1 x (4*s + 1) x 8 x f16>) dims {s = 128 to 130} {
  // CHECK: [[Y:%.*]] = ait.attention %q, %k, %k scale 1.0 no_softmax
  // CHECK: ait.bmm rcr [[Y]], %l
  // CHECK: ait.bmm rrr {{.*}}, %l
  // CHECK: ait.output
  %0 = ait.bmm rcr %q, %k : !ait.tensor<1 x 1 x s x (4*s) x f16>
  %1 = ait.tanh %0 : !ait.tensor<1 x 1 x s x (4*s) x f16>
  %2 = ait.bmm rrr %1, %k : !ait.tensor<1 x 1 x s x 8 x f16>
  %3 = ait.bmm rcr %2, %l : !ait.tensor<1 x 1 x s x (4*s + 1) x f16>
  %4 = ait.tanh %3 : !ait.tensor<1 x 1 x s x (4*s + 1) x f16>
  %5 = ait.bmm rrr %4, %l : !ait.tensor<1 x 1 x s x 8 x f16>
  ait.output "y" %5 : !ait.tensor<1 x 1 x s x 8 x f16>
}

// The region rounds where the graph casts.
// CHECK-LABEL: ait.graph @casts
ait.graph @casts(%q: !ait.tensor<2 x 4 x 8 x 8 x f16>) {
  // CHECK: ait.attention %q, %q, %q scale 1.0 no_softmax scores() {
  // CHECK-NEXT: ^bb0([[S:%.*]]: f32):
  // CHECK-NEXT:   [[N:%.*]] = ait.cast [[S]] : bf16
  // CHECK-NEXT:   [[W:%.*]] = ait.cast [[N]] : f32
  // CHECK-NEXT:   [[T:%.*]] = ait.tanh [[W]] : f32
  // CHECK-NEXT:   [[H:%.*]] = ait.cast [[T]] : f16
  // CHECK-NEXT:   [[Y:%.*]] = ait.cast [[H]] : f32
  // CHECK-NEXT:   ait.yield [[Y]] : f32
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %1 = ait.cast %0 : !ait.tensor<2 x 4 x 8 x 8 x bf16>
  %2 = ait.tanh %1 : !ait.tensor<2 x 4 x 8 x 8 x bf16>
  %3 = ait.cast %2 : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %4 = ait.bmm rrr %3, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  ait.output "y" %4 : !ait.tensor<2 x 4 x 8 x 8 x f16>
}

// The second product is one of other elements.
// CHECK-LABEL: ait.graph @other_elements
ait.graph @other_elements(%q: !ait.tensor<2 x 4 x 8 x 8 x f16>, %v: !ait.tensor<2 x 4 x 8 x 8 x f32>) {
  // CHECK-NOT: ait.attention
  // CHECK: ait.output
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 4 x 8 x 8 x f16>
  %1 = ait.cast %0 : !ait.tensor<2 x 4 x 8 x 8 x f32>
  %2 = ait.bmm rrr %1, %v : !ait.tensor<2 x 4 x 8 x 8 x f32>
  ait.output "y" %2 : !ait.tensor<2 x 4 x 8 x 8 x f32>
}
