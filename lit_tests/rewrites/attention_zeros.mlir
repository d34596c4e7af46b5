// RUN: ait-opt %s -p fuse-attention | filecheck %s
// RUN: ait-opt %s -p fuse-attention --check-semantics | filecheck %s --check-prefix=SAME
// SAME: builtin.module

// Scores above the diagonal are 0, as where(i >= j, s, 0) and as where(j - 1 >= i, 0, s), of products and of an attention.
// CHECK-LABEL: ait.graph @triangle
ait.graph @triangle(%q: !ait.tensor<b x 2 x s x 8 x f16>) dims {b = 1 to 4, s = 1 to 8} {
  // CHECK: [[A:%.*]] = ait.attention %q, %q, %q scale 1.0 causal top_left no_softmax scores() {
  // CHECK-NEXT: ^bb0([[S:%.*]]: f32):
  // CHECK-NEXT:   [[T:%.*]] = ait.silu [[S]] : f32
  // CHECK-NEXT:   ait.yield [[T]] : f32
  // CHECK-NEXT: }
  // CHECK: [[B:%.*]] = ait.attention [[A]], %q, %q scale 1.0 causal top_left no_softmax : !ait.tensor<b x 2 x s x 8 x f16>
  // CHECK-NEXT: ait.output "y" [[B]]
  %n = ait.constant [0, 1, 2, 3, 4, 5, 6, 7] : !ait.tensor<8 x i32>
  %zero = ait.constant 0.0 : !ait.tensor<f16>
  %less = ait.constant -1 : !ait.tensor<i32>
  %i = ait.slice %n offsets [0] : !ait.tensor<s x i32>
  %r = ait.reshape %i : !ait.tensor<s x 1 x i32>
  %j = ait.add %i, %less : !ait.tensor<s x i32>
  %0 = ait.bmm rcr %q, %q : !ait.tensor<b x 2 x s x s x f16>
  %1 = ait.silu %0 : !ait.tensor<b x 2 x s x s x f16>
  %2 = ait.compare ge %r, %i : !ait.tensor<s x s x i1>
  %3 = ait.where %2, %1, %zero : !ait.tensor<b x 2 x s x s x f16>
  %4 = ait.bmm rrr %3, %q : !ait.tensor<b x 2 x s x 8 x f16>
  %5 = ait.bmm rcr %4, %q : !ait.tensor<b x 2 x s x s x f16>
  %6 = ait.compare ge %j, %r : !ait.tensor<s x s x i1>
  %7 = ait.where %6, %zero, %5 : !ait.tensor<b x 2 x s x s x f16>
  %8 = ait.bmm rrr %7, %q : !ait.tensor<b x 2 x s x 8 x f16>
  ait.output "y" %8 : !ait.tensor<b x 2 x s x 8 x f16>
}

// More columns than rows: the diagonal from the first column, or the one to the last column, with fewer columns, too.
// CHECK-LABEL: ait.graph @diagonals
ait.graph @diagonals(%q: !ait.tensor<b x 2 x s x 8 x f16>, %k: !ait.tensor<b x 2 x (s + 2) x 8 x f16>) dims {b = 1 to 4, s = 1 to 8} {
  // CHECK: ait.attention %q, %k, %k scale 1.0 causal top_left no_softmax :
  // CHECK: ait.attention {{%.*}}, %k, %k scale 1.0 causal no_softmax :
  // CHECK: ait.attention %k, {{%.*}}, {{%.*}} scale 1.0 causal no_softmax :
  // CHECK-NOT: ait.bmm
  %n = ait.constant [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] : !ait.tensor<10 x i32>
  %zero = ait.constant 0.0 : !ait.tensor<f16>
  %two = ait.constant 2 : !ait.tensor<i32>
  %i = ait.slice %n offsets [0] : !ait.tensor<s x i32>
  %i2 = ait.slice %n offsets [2] : !ait.tensor<s x i32>
  %l = ait.slice %n offsets [0] : !ait.tensor<(s + 2) x i32>
  %r = ait.reshape %i : !ait.tensor<s x 1 x i32>
  %r2 = ait.reshape %i2 : !ait.tensor<s x 1 x i32>
  %c = ait.reshape %l : !ait.tensor<(s + 2) x 1 x i32>
  %w = ait.add %i, %two : !ait.tensor<s x i32>
  %0 = ait.bmm rcr %q, %k : !ait.tensor<b x 2 x s x (s + 2) x f16>
  %1 = ait.compare ge %r, %l : !ait.tensor<s x (s + 2) x i1>
  %2 = ait.where %1, %0, %zero : !ait.tensor<b x 2 x s x (s + 2) x f16>
  %3 = ait.bmm rrr %2, %k : !ait.tensor<b x 2 x s x 8 x f16>
  %4 = ait.bmm rcr %3, %k : !ait.tensor<b x 2 x s x (s + 2) x f16>
  %5 = ait.compare ge %r2, %l : !ait.tensor<s x (s + 2) x i1>
  %6 = ait.where %5, %4, %zero : !ait.tensor<b x 2 x s x (s + 2) x f16>
  %7 = ait.bmm rrr %6, %k : !ait.tensor<b x 2 x s x 8 x f16>
  %8 = ait.bmm rcr %k, %7 : !ait.tensor<b x 2 x (s + 2) x s x f16>
  %9 = ait.compare ge %c, %w : !ait.tensor<(s + 2) x s x i1>
  %10 = ait.where %9, %8, %zero : !ait.tensor<b x 2 x (s + 2) x s x f16>
  %11 = ait.bmm rrr %10, %7 : !ait.tensor<b x 2 x (s + 2) x 8 x f16>
  ait.output "y" %11 : !ait.tensor<b x 2 x (s + 2) x 8 x f16>
}

// The scores read the comparison elsewhere, too.
// CHECK-LABEL: ait.graph @read_twice
ait.graph @read_twice(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>) {
  // CHECK: ait.attention %q, %q, %q scale 1.0 causal top_left no_softmax scores({{%.*}}, {{%.*}}) {
  // CHECK: ait.where
  // CHECK-NEXT: ait.yield
  %i = ait.constant [0, 1, 2, 3] : !ait.tensor<4 x i32>
  %r = ait.reshape %i : !ait.tensor<4 x 1 x i32>
  %0 = ait.compare ge %r, %i : !ait.tensor<4 x 4 x i1>
  %1 = ait.attention %q, %q, %q scale 1.0 no_softmax scores(%0) {
  ^bb0(%s: f32, %m: i1):
    %zero = ait.constant 0.0 : f32
    %two = ait.constant 2.0 : f32
    %t = ait.where %m, %s, %two : f32
    %u = ait.where %m, %t, %zero : f32
    ait.yield %u : f32
  } : !ait.tensor<2 x 2 x 4 x 8 x f16>
  ait.output "y" %1 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// Constants that count along one of several dims.
// CHECK-LABEL: ait.graph @constants
ait.graph @constants(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>) {
  // CHECK: ait.attention %q, %q, %q scale 1.0 causal top_left no_softmax :
  // CHECK-NEXT: ait.output
  %r = ait.constant [0, 1, 2, 3] : !ait.tensor<1 x 4 x 1 x i32>
  %i = ait.constant [0, 1, 2, 3] : !ait.tensor<1 x 4 x i32>
  %zero = ait.constant 0.0 : !ait.tensor<f16>
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %1 = ait.compare ge %r, %i : !ait.tensor<1 x 4 x 4 x i1>
  %2 = ait.where %1, %0, %zero : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %3 = ait.bmm rrr %2, %q : !ait.tensor<2 x 2 x 4 x 8 x f16>
  ait.output "y" %3 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// A number that all elements have counts nothing.
// CHECK-LABEL: ait.graph @one_number
ait.graph @one_number(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>) {
  // CHECK-NOT: causal
  // CHECK: ait.output
  %n = ait.constant 0 : !ait.tensor<4 x i32>
  %r = ait.reshape %n : !ait.tensor<4 x 1 x i32>
  %i = ait.constant [0, 1, 2, 3] : !ait.tensor<4 x i32>
  %zero = ait.constant 0.0 : !ait.tensor<f16>
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %1 = ait.compare ge %r, %i : !ait.tensor<4 x 4 x i1>
  %2 = ait.where %1, %0, %zero : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %3 = ait.bmm rrr %2, %q : !ait.tensor<2 x 2 x 4 x 8 x f16>
  ait.output "y" %3 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// No triangle of zeros: below the diagonal, another comparison or diagonal, another number, columns for rows, values
// that do not count.
// CHECK-LABEL: ait.graph @no_triangle
ait.graph @no_triangle(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>, %t: !ait.tensor<4 x i32>, %b: !ait.tensor<4 x 4 x i1>) {
  // CHECK-NOT: causal
  // CHECK: ait.output
  %i = ait.constant [0, 1, 2, 3] : !ait.tensor<4 x i32>
  %h = ait.constant [1, 2, 3, 4] : !ait.tensor<4 x i32>
  %r = ait.reshape %i : !ait.tensor<4 x 1 x i32>
  %zero = ait.constant 0.0 : !ait.tensor<f16>
  %one = ait.constant 1.0 : !ait.tensor<f16>
  %le = ait.compare le %r, %i : !ait.tensor<4 x 4 x i1>
  %gt = ait.compare gt %r, %i : !ait.tensor<4 x 4 x i1>
  %ge = ait.compare ge %r, %i : !ait.tensor<4 x 4 x i1>
  %up = ait.compare ge %i, %r : !ait.tensor<4 x 4 x i1>
  %far = ait.compare ge %r, %h : !ait.tensor<4 x 4 x i1>
  %input = ait.compare ge %r, %t : !ait.tensor<4 x 4 x i1>
  %s0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %w0 = ait.where %le, %s0, %zero : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %0 = ait.bmm rrr %w0, %q : !ait.tensor<2 x 2 x 4 x 8 x f16>
  %s1 = ait.bmm rcr %0, %q : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %w1 = ait.where %gt, %s1, %zero : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %1 = ait.bmm rrr %w1, %q : !ait.tensor<2 x 2 x 4 x 8 x f16>
  %s2 = ait.bmm rcr %1, %q : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %w2 = ait.where %ge, %s2, %one : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %2 = ait.bmm rrr %w2, %q : !ait.tensor<2 x 2 x 4 x 8 x f16>
  %s3 = ait.bmm rcr %2, %q : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %w3 = ait.where %ge, %zero, %s3 : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %3 = ait.bmm rrr %w3, %q : !ait.tensor<2 x 2 x 4 x 8 x f16>
  %s4 = ait.bmm rcr %3, %q : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %w4 = ait.where %up, %s4, %zero : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %4 = ait.bmm rrr %w4, %q : !ait.tensor<2 x 2 x 4 x 8 x f16>
  %s5 = ait.bmm rcr %4, %q : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %w5 = ait.where %far, %s5, %zero : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %5 = ait.bmm rrr %w5, %q : !ait.tensor<2 x 2 x 4 x 8 x f16>
  %s6 = ait.bmm rcr %5, %q : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %w6 = ait.where %input, %s6, %zero : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %6 = ait.bmm rrr %w6, %q : !ait.tensor<2 x 2 x 4 x 8 x f16>
  %s7 = ait.bmm rcr %6, %q : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %w7 = ait.where %b, %s7, %zero : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %7 = ait.bmm rrr %w7, %q : !ait.tensor<2 x 2 x 4 x 8 x f16>
  ait.output "y" %7 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// A score of 0 has a weight in a softmax.
// CHECK-LABEL: ait.graph @softmax
ait.graph @softmax(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>) {
  // CHECK-NOT: causal
  // CHECK: ait.output
  %i = ait.constant [0, 1, 2, 3] : !ait.tensor<4 x i32>
  %r = ait.reshape %i : !ait.tensor<4 x 1 x i32>
  %zero = ait.constant 0.0 : !ait.tensor<f16>
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %1 = ait.compare ge %r, %i : !ait.tensor<4 x 4 x i1>
  %2 = ait.where %1, %0, %zero : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %3 = ait.softmax %2 dim 3 : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %4 = ait.bmm rrr %3, %q : !ait.tensor<2 x 2 x 4 x 8 x f16>
  ait.output "y" %4 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// What follows the choice makes another number of 0; a condition of the scores themselves.
// CHECK-LABEL: ait.graph @not_last
ait.graph @not_last(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>) {
  // CHECK-NOT: causal
  // CHECK: ait.output
  %i = ait.constant [0, 1, 2, 3] : !ait.tensor<4 x i32>
  %r = ait.reshape %i : !ait.tensor<4 x 1 x i32>
  %zero = ait.constant 0.0 : !ait.tensor<f16>
  %0 = ait.bmm rcr %q, %q : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %1 = ait.compare ge %r, %i : !ait.tensor<4 x 4 x i1>
  %2 = ait.where %1, %0, %zero : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %3 = ait.sigmoid %2 : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %4 = ait.bmm rrr %3, %q : !ait.tensor<2 x 2 x 4 x 8 x f16>
  %5 = ait.bmm rcr %4, %q : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %6 = ait.compare ge %5, %zero : !ait.tensor<2 x 2 x 4 x 4 x i1>
  %7 = ait.where %6, %5, %zero : !ait.tensor<2 x 2 x 4 x 4 x f16>
  %8 = ait.bmm rrr %7, %q : !ait.tensor<2 x 2 x 4 x 8 x f16>
  ait.output "y" %8 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// Columns that are hidden from another diagonal on, in a window, or already; an attention with a kernel.
// CHECK-LABEL: ait.graph @hidden_already
ait.graph @hidden_already(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>) {
  // CHECK: ait.attention %q, %q, %q scale 1.0 top_left no_softmax scores
  // CHECK: ait.attention {{%.*}}, %q, %q scale 1.0 window 2 no_softmax scores
  // CHECK: ait.attention {{%.*}}, %q, %q scale 1.0 causal no_softmax scores
  // CHECK: ait.attention {{%.*}}, %q, %q scale 1.0 no_softmax scores
  %i = ait.constant [0, 1, 2, 3] : !ait.tensor<4 x i32>
  %r = ait.reshape %i : !ait.tensor<4 x 1 x i32>
  %c = ait.compare ge %r, %i : !ait.tensor<4 x 4 x i1>
  %0 = ait.attention %q, %q, %q scale 1.0 top_left no_softmax scores(%c) {
  ^bb0(%s: f32, %m: i1):
    %zero = ait.constant 0.0 : f32
    %u = ait.where %m, %s, %zero : f32
    ait.yield %u : f32
  } : !ait.tensor<2 x 2 x 4 x 8 x f16>
  %1 = ait.attention %0, %q, %q scale 1.0 window 2 no_softmax scores(%c) {
  ^bb0(%s: f32, %m: i1):
    %zero = ait.constant 0.0 : f32
    %u = ait.where %m, %s, %zero : f32
    ait.yield %u : f32
  } : !ait.tensor<2 x 2 x 4 x 8 x f16>
  %2 = ait.attention %1, %q, %q scale 1.0 causal no_softmax scores(%c) {
  ^bb0(%s: f32, %m: i1):
    %zero = ait.constant 0.0 : f32
    %u = ait.where %m, %s, %zero : f32
    ait.yield %u : f32
  } : !ait.tensor<2 x 2 x 4 x 8 x f16>
  %3 = ait.attention %2, %q, %q scale 1.0 no_softmax scores(%c) {
  ^bb0(%s: f32, %m: i1):
    %zero = ait.constant 0.0 : f32
    %u = ait.where %m, %s, %zero : f32
    ait.yield %u : f32
  } {kernel = #ait.kernel<"native", {}>} : !ait.tensor<2 x 2 x 4 x 8 x f16>
  ait.output "y" %3 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}
