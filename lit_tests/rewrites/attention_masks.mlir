// RUN: ait-opt %s -p "fuse-masked-attention{assume=true}" | filecheck %s
// What is done here changes what infinite scores and rows without a column become: tests/rewrites/test_attention_masks.py
// compares the meaning of the graphs for finite scores.

// masked_fill(mask, -inf), and where(mask, scores, -1e9): the mask is added.
// CHECK-LABEL: ait.graph @chosen
ait.graph @chosen(%q: !ait.tensor<b x 3 x s x 8 x f32>, %h: !ait.tensor<b x 1 x 1 x s x i1>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK: [[M0:%.*]] = ait.where %h, {{.*}} : !ait.tensor<b x 1 x 1 x s x f32>
  // CHECK-NEXT: [[Y0:%.*]] = ait.attention %q, %q, %q mask [[M0]] scale 0.5
  // CHECK: [[M1:%.*]] = ait.where %h, {{.*}} : !ait.tensor<b x 1 x 1 x s x f32>
  // CHECK-NEXT: [[Y1:%.*]] = ait.attention [[Y0]], %q, %q mask [[M1]] scale 1.0
  // CHECK-NEXT: ait.output "y" [[Y1]]
  %c = ait.constant 0.5 : !ait.tensor<f32>
  %i = ait.constant -inf : !ait.tensor<f32>
  %n = ait.constant -1e9 : !ait.tensor<f32>
  %0 = ait.bmm rcr %q, %q : !ait.tensor<b x 3 x s x s x f32>
  %1 = ait.mul %0, %c : !ait.tensor<b x 3 x s x s x f32>
  %2 = ait.where %h, %i, %1 : !ait.tensor<b x 3 x s x s x f32>
  %3 = ait.softmax %2 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %4 = ait.bmm rrr %3, %q : !ait.tensor<b x 3 x s x 8 x f32>
  %5 = ait.bmm rcr %4, %q : !ait.tensor<b x 3 x s x s x f32>
  %6 = ait.where %h, %5, %n : !ait.tensor<b x 3 x s x s x f32>
  %7 = ait.softmax %6 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %8 = ait.bmm rrr %7, %q : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y" %8 : !ait.tensor<b x 3 x s x 8 x f32>
}

// Nothing is added: the number is not far below 0, what is chosen is used elsewhere, the scores are enlarged or no products.
// CHECK-LABEL: ait.graph @not_chosen
ait.graph @not_chosen(%q: !ait.tensor<b x 3 x s x 8 x f32>, %o: !ait.tensor<b x 3 x 1 x s x f32>, %h: !ait.tensor<b x 1 x s x s x i1>, %w: !ait.tensor<b x 3 x s x s x f32>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK-NOT: ait.add
  // CHECK: ait.output
  %i = ait.constant -3.4028234663852886e+38 : !ait.tensor<f32>
  %n = ait.constant -100.0 : !ait.tensor<f32>
  %one = ait.bmm rcr %o, %o : !ait.tensor<b x 3 x 1 x 1 x f32>
  %0 = ait.bmm rcr %q, %q : !ait.tensor<b x 3 x s x s x f32>
  %1 = ait.where %h, %n, %0 : !ait.tensor<b x 3 x s x s x f32>
  %2 = ait.softmax %1 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %3 = ait.where %h, %0, %n : !ait.tensor<b x 3 x s x s x f32>
  %4 = ait.softmax %3 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %5 = ait.where %h, %i, %0 : !ait.tensor<b x 3 x s x s x f32>
  %6 = ait.softmax %5 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %7 = ait.where %h, %0, %i : !ait.tensor<b x 3 x s x s x f32>
  %8 = ait.softmax %7 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %9 = ait.where %h, %i, %one : !ait.tensor<b x 3 x s x s x f32>
  %10 = ait.softmax %9 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %11 = ait.where %h, %one, %i : !ait.tensor<b x 3 x s x s x f32>
  %12 = ait.softmax %11 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %13 = ait.where %h, %i, %o : !ait.tensor<b x 3 x s x s x f32>
  %14 = ait.softmax %13 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %15 = ait.exp %w : !ait.tensor<b x 3 x s x s x f32>
  %16 = ait.where %h, %i, %15 : !ait.tensor<b x 3 x s x s x f32>
  %17 = ait.softmax %16 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %18 = ait.where %h, %15, %i : !ait.tensor<b x 3 x s x s x f32>
  %19 = ait.softmax %18 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  ait.output "y0" %2 : !ait.tensor<b x 3 x s x s x f32>
  ait.output "y1" %4 : !ait.tensor<b x 3 x s x s x f32>
  ait.output "y2" %6 : !ait.tensor<b x 3 x s x s x f32>
  ait.output "y3" %5 : !ait.tensor<b x 3 x s x s x f32>
  ait.output "y4" %8 : !ait.tensor<b x 3 x s x s x f32>
  ait.output "y5" %7 : !ait.tensor<b x 3 x s x s x f32>
  ait.output "y6" %10 : !ait.tensor<b x 3 x s x s x f32>
  ait.output "y7" %12 : !ait.tensor<b x 3 x s x s x f32>
  ait.output "y8" %14 : !ait.tensor<b x 3 x s x s x f32>
  ait.output "y9" %17 : !ait.tensor<b x 3 x s x s x f32>
  ait.output "y10" %19 : !ait.tensor<b x 3 x s x s x f32>
}

// The least number of f16: a mask of the input may hide a whole row, whose scores would then differ in f32. Rows of a triangle
// have a score that is kept.
// CHECK-LABEL: ait.graph @least_of_f16
ait.graph @least_of_f16(%q: !ait.tensor<b x 3 x s x 8 x f16>, %h: !ait.tensor<b x 1 x 1 x s x i1>) dims {b = 1 to 4, s = 1 to 8} {
  // CHECK: [[S:%.*]] = ait.bmm rcr %q, %q
  // CHECK: [[A:%.*]] = ait.where %h, [[S]], %n
  // CHECK-NEXT: ait.softmax [[A]] dim 3
  // CHECK-NEXT: [[B:%.*]] = ait.where %h, %n, [[S]]
  // CHECK-NEXT: ait.softmax [[B]] dim 3
  // CHECK: [[C:%.*]] = ait.where {{%.*}}, {{%.*}}, %n : !ait.tensor<s x s x f16>
  // CHECK-NEXT: [[D:%.*]] = ait.add [[S]], [[C]]
  // CHECK-NEXT: ait.softmax [[D]] dim 3
  %n = ait.constant -65504.0 : !ait.tensor<f16>
  %0 = ait.bmm rcr %q, %q : !ait.tensor<b x 3 x s x s x f16>
  %1 = ait.where %h, %0, %n : !ait.tensor<b x 3 x s x s x f16>
  %2 = ait.softmax %1 dim 3 : !ait.tensor<b x 3 x s x s x f16>
  %3 = ait.where %h, %n, %0 : !ait.tensor<b x 3 x s x s x f16>
  %4 = ait.softmax %3 dim 3 : !ait.tensor<b x 3 x s x s x f16>
  %all = ait.constant [0, 1, 2, 3, 4, 5, 6, 7] : !ait.tensor<8 x i64>
  %i = ait.slice %all offsets [0] : !ait.tensor<s x i64>
  %r = ait.reshape %i : !ait.tensor<s x 1 x i64>
  %c = ait.compare ge %r, %i : !ait.tensor<s x s x i1>
  %5 = ait.where %c, %0, %n : !ait.tensor<b x 3 x s x s x f16>
  %6 = ait.softmax %5 dim 3 : !ait.tensor<b x 3 x s x s x f16>
  ait.output "y0" %2 : !ait.tensor<b x 3 x s x s x f16>
  ait.output "y1" %4 : !ait.tensor<b x 3 x s x s x f16>
  ait.output "y2" %6 : !ait.tensor<b x 3 x s x s x f16>
}

// The triangle from positions, as where(i >= j, 0, least) and as where(j - 1 >= i, least, 0); rows that end at
// the last column; another mask beside it.
// CHECK-LABEL: ait.graph @triangle
ait.graph @triangle(%q: !ait.tensor<b x 3 x s x 8 x f32>, %k: !ait.tensor<b x 3 x (s + 2) x 8 x f32>, %m: !ait.tensor<b x 1 x 1 x s x f32>) dims {b = 1 to 4, s = 1 to 8} {
  // CHECK-NEXT: [[A:%.*]] = ait.attention %q, %q, %q scale 0.5 causal
  // CHECK-NEXT: [[B:%.*]] = ait.attention [[A]], %q, %q scale 0.5 causal
  // CHECK-NEXT: [[C:%.*]] = ait.attention [[B]], %k, %k scale 0.5 causal
  // CHECK-NEXT: [[D:%.*]] = ait.attention [[C]], %q, %q mask %m scale 0.5 causal
  // CHECK-NEXT: ait.output "y" [[D]]
  %n = ait.constant [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] : !ait.tensor<10 x i64>
  %zero = ait.constant 0.0 : !ait.tensor<f32>
  %least = ait.constant -3.4028234663852886e+38 : !ait.tensor<f32>
  %less = ait.constant -1 : !ait.tensor<i64>
  %i = ait.slice %n offsets [0] : !ait.tensor<s x i64>
  %r = ait.reshape %i : !ait.tensor<s x 1 x i64>
  %0 = ait.compare ge %r, %i : !ait.tensor<s x s x i1>
  %1 = ait.where %0, %zero, %least : !ait.tensor<s x s x f32>
  %2 = ait.attention %q, %q, %q mask %1 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  %j = ait.add %i, %less : !ait.tensor<s x i64>
  %3 = ait.compare ge %j, %r : !ait.tensor<s x s x i1>
  %4 = ait.where %3, %least, %zero : !ait.tensor<s x s x f32>
  %5 = ait.attention %2, %q, %q mask %4 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  %o = ait.slice %n offsets [2] : !ait.tensor<s x i64>
  %p = ait.reshape %o : !ait.tensor<1 x s x 1 x i64>
  %l = ait.slice %n offsets [0] : !ait.tensor<(s + 2) x i64>
  %6 = ait.compare ge %p, %l : !ait.tensor<1 x s x (s + 2) x i1>
  %7 = ait.where %6, %zero, %least : !ait.tensor<1 x s x (s + 2) x f32>
  %8 = ait.attention %5, %k, %k mask %7 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  %9 = ait.where %0, %m, %least : !ait.tensor<b x 1 x s x s x f32>
  %10 = ait.attention %8, %q, %q mask %9 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y" %10 : !ait.tensor<b x 3 x s x 8 x f32>
}

// No triangle: another comparison, a number that hides little, a diagonal further on, columns for rows, or values that do not count.
// CHECK-LABEL: ait.graph @no_triangle
ait.graph @no_triangle(%q: !ait.tensor<b x 3 x s x 8 x f32>, %t: !ait.tensor<s x i64>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK-NOT: causal
  // CHECK: ait.output
  %n = ait.constant [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] : !ait.tensor<10 x i64>
  %m = ait.constant [0, 1, 2, 4, 3, 5, 6, 7, 8, 9] : !ait.tensor<10 x i64>
  %zero = ait.constant 0.0 : !ait.tensor<f32>
  %least = ait.constant -3.4028234663852886e+38 : !ait.tensor<f32>
  %low = ait.constant -2.0 : !ait.tensor<f32>
  %i = ait.slice %n offsets [0] : !ait.tensor<s x i64>
  %i1 = ait.slice %n offsets [1] : !ait.tensor<s x i64>
  %u = ait.slice %m offsets [0] : !ait.tensor<s x i64>
  %r = ait.reshape %i : !ait.tensor<s x 1 x i64>
  %r1 = ait.reshape %i1 : !ait.tensor<s x 1 x i64>
  %ge = ait.compare ge %r, %i : !ait.tensor<s x s x i1>
  %gt = ait.compare gt %r, %i : !ait.tensor<s x s x i1>
  %lt = ait.compare lt %r, %i1 : !ait.tensor<s x s x i1>
  %up = ait.compare ge %i, %r : !ait.tensor<s x s x i1>
  %far = ait.compare ge %r1, %i : !ait.tensor<s x s x i1>
  %input = ait.compare ge %r, %t : !ait.tensor<s x s x i1>
  %mixed = ait.compare ge %r, %u : !ait.tensor<s x s x i1>
  %m0 = ait.where %gt, %zero, %least : !ait.tensor<s x s x f32>
  %0 = ait.attention %q, %q, %q mask %m0 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  %m1 = ait.where %lt, %least, %zero : !ait.tensor<s x s x f32>
  %1 = ait.attention %0, %q, %q mask %m1 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  %m3 = ait.where %ge, %zero, %low : !ait.tensor<s x s x f32>
  %3 = ait.attention %1, %q, %q mask %m3 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  %m4 = ait.where %up, %zero, %least : !ait.tensor<s x s x f32>
  %4 = ait.attention %3, %q, %q mask %m4 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  %m5 = ait.where %up, %least, %zero : !ait.tensor<s x s x f32>
  %5 = ait.attention %4, %q, %q mask %m5 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  %m6 = ait.where %far, %zero, %least : !ait.tensor<s x s x f32>
  %6 = ait.attention %5, %q, %q mask %m6 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  %m7 = ait.where %input, %zero, %least : !ait.tensor<s x s x f32>
  %7 = ait.attention %6, %q, %q mask %m7 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  %m8 = ait.where %mixed, %zero, %least : !ait.tensor<s x s x f32>
  %8 = ait.attention %7, %q, %q mask %m8 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y" %8 : !ait.tensor<b x 3 x s x 8 x f32>
}

// No triangle behind the diagonal, with a number that hides little or by another comparison.
// CHECK-LABEL: ait.graph @no_hidden_triangle
ait.graph @no_hidden_triangle(%q: !ait.tensor<b x 3 x s x 8 x f32>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK-NOT: causal :
  // CHECK: ait.output
  %n = ait.constant [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] : !ait.tensor<10 x i64>
  %zero = ait.constant 0.0 : !ait.tensor<f32>
  %least = ait.constant -3.4028234663852886e+38 : !ait.tensor<f32>
  %low = ait.constant -2.0 : !ait.tensor<f32>
  %less = ait.constant -1 : !ait.tensor<i64>
  %i = ait.slice %n offsets [0] : !ait.tensor<s x i64>
  %r = ait.reshape %i : !ait.tensor<s x 1 x i64>
  %j = ait.add %i, %less : !ait.tensor<s x i64>
  %behind = ait.compare ge %j, %r : !ait.tensor<s x s x i1>
  %beyond = ait.compare gt %j, %r : !ait.tensor<s x s x i1>
  %m1 = ait.where %behind, %low, %zero : !ait.tensor<s x s x f32>
  %1 = ait.attention %q, %q, %q mask %m1 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  %m2 = ait.where %beyond, %least, %zero : !ait.tensor<s x s x f32>
  %2 = ait.attention %1, %q, %q mask %m2 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y" %2 : !ait.tensor<b x 3 x s x 8 x f32>
}

// No triangle where an earlier row may see nothing, and none of an attention that has its kernel.
// CHECK-LABEL: ait.graph @rows_without_columns
ait.graph @rows_without_columns(%q: !ait.tensor<b x 3 x s x 8 x f32>, %k: !ait.tensor<b x 3 x l x 8 x f32>) dims {b = 1 to 4, s = 1 to 8, l = 1 to 8} {
  // CHECK-NOT: causal :
  // CHECK-NOT: causal {
  // CHECK: ait.output
  %n = ait.constant [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] : !ait.tensor<10 x i64>
  %zero = ait.constant 0.0 : !ait.tensor<f32>
  %least = ait.constant -3.4028234663852886e+38 : !ait.tensor<f32>
  %less = ait.constant -1 : !ait.tensor<i64>
  %i = ait.slice %n offsets [0] : !ait.tensor<s x i64>
  %j = ait.slice %n offsets [0] : !ait.tensor<l x i64>
  %r = ait.reshape %i : !ait.tensor<s x 1 x i64>
  %0 = ait.compare ge %r, %j : !ait.tensor<s x l x i1>
  %1 = ait.where %0, %zero, %least : !ait.tensor<s x l x f32>
  %2 = ait.attention %q, %k, %k mask %1 scale 0.5 : !ait.tensor<b x 3 x s x 8 x f32>
  %3 = ait.compare ge %r, %i : !ait.tensor<s x s x i1>
  %4 = ait.where %3, %zero, %least : !ait.tensor<s x s x f32>
  %5 = ait.attention %2, %q, %q mask %4 scale 0.5 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 3 x s x 8 x f32>
  %h = ait.add %i, %less : !ait.tensor<s x i64>
  %6 = ait.compare ge %h, %r : !ait.tensor<s x s x i1>
  %7 = ait.where %6, %least, %zero : !ait.tensor<s x s x f32>
  %8 = ait.attention %5, %q, %q mask %7 scale 0.5 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y" %8 : !ait.tensor<b x 3 x s x 8 x f32>
}

// What changes scores before they are masked stays with the products; a band behind the diagonal of a causal mask is a window.
// CHECK-LABEL: ait.graph @capped_band
ait.graph @capped_band(%q: !ait.tensor<b x 3 x s x 8 x f32>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK: ait.attention %q, %q, %q scale 1.0 causal window 3 nan_rows scores() {
  // CHECK: ait.tanh
  %zero = ait.constant 0.0 : !ait.tensor<f32>
  %low = ait.constant -1e9 : !ait.tensor<f32>
  %two = ait.constant 2 : !ait.tensor<i64>
  %n = ait.constant [0, 1, 2, 3, 4, 5, 6, 7] : !ait.tensor<8 x i64>
  %i = ait.slice %n offsets [0] : !ait.tensor<s x i64>
  %r = ait.reshape %i : !ait.tensor<s x 1 x i64>
  %c = ait.add %i, %two : !ait.tensor<s x i64>
  %band = ait.compare ge %c, %r : !ait.tensor<s x s x i1>
  %seen = ait.compare ge %r, %i : !ait.tensor<s x s x i1>
  %0 = ait.where %band, %zero, %low : !ait.tensor<s x s x f32>
  %1 = ait.where %seen, %0, %low : !ait.tensor<s x s x f32>
  %m = ait.reshape %1 : !ait.tensor<1 x 1 x s x s x f32>
  %2 = ait.bmm rcr %q, %q : !ait.tensor<b x 3 x s x s x f32>
  %3 = ait.tanh %2 : !ait.tensor<b x 3 x s x s x f32>
  %4 = ait.add %3, %m : !ait.tensor<b x 3 x s x s x f32>
  %5 = ait.softmax %4 dim 3 : !ait.tensor<b x 3 x s x s x f32>
  %6 = ait.bmm rrr %5, %q : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y" %6 : !ait.tensor<b x 3 x s x 8 x f32>
}

// No window: attention is not causal, the mask is not far below 0, and the band is in front of the diagonal.
// CHECK-LABEL: ait.graph @no_window
ait.graph @no_window(%q: !ait.tensor<b x 3 x s x 8 x f32>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK-NOT: window
  // CHECK: ait.output "y2"
  %zero = ait.constant 0.0 : !ait.tensor<f32>
  %low = ait.constant -1e9 : !ait.tensor<f32>
  %high = ait.constant -1.0 : !ait.tensor<f32>
  %two = ait.constant 2 : !ait.tensor<i64>
  %less = ait.constant -2 : !ait.tensor<i64>
  %n = ait.constant [0, 1, 2, 3, 4, 5, 6, 7] : !ait.tensor<8 x i64>
  %i = ait.slice %n offsets [0] : !ait.tensor<s x i64>
  %r = ait.reshape %i : !ait.tensor<s x 1 x i64>
  %c = ait.add %i, %two : !ait.tensor<s x i64>
  %d = ait.add %i, %less : !ait.tensor<s x i64>
  %band = ait.compare ge %c, %r : !ait.tensor<s x s x i1>
  %front = ait.compare ge %d, %r : !ait.tensor<s x s x i1>
  %m0 = ait.where %band, %zero, %low : !ait.tensor<s x s x f32>
  %y0 = ait.attention %q, %q, %q mask %m0 scale 1.0 : !ait.tensor<b x 3 x s x 8 x f32>
  %m1 = ait.where %band, %zero, %high : !ait.tensor<s x s x f32>
  %y1 = ait.attention %q, %q, %q mask %m1 scale 1.0 causal : !ait.tensor<b x 3 x s x 8 x f32>
  %m2 = ait.where %front, %zero, %low : !ait.tensor<s x s x f32>
  %y2 = ait.attention %q, %q, %q mask %m2 scale 1.0 causal : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y0" %y0 : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y1" %y1 : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y2" %y2 : !ait.tensor<b x 3 x s x 8 x f32>
}

// A band and a triangle that the scores are multiplied with are no masks; nor do others become a window: another comparison
// of positions, a number that hides little, an attention that has its kernel.
// CHECK-LABEL: ait.graph @operand_of_scores
ait.graph @operand_of_scores(%q: !ait.tensor<b x 3 x s x 8 x f32>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK: ait.attention %q, %q, %q scale 1.0 scores(
  // CHECK: ait.attention %q, %q, %q scale 1.0 scores(
  // CHECK: ait.attention %q, %q, %q scale 1.0 causal scores(
  // CHECK: ait.attention %q, %q, %q scale 1.0 causal scores(
  // CHECK: ait.output "y3"
  %zero = ait.constant 0.0 : !ait.tensor<f32>
  %low = ait.constant -1e9 : !ait.tensor<f32>
  %two = ait.constant 2 : !ait.tensor<i64>
  %less = ait.constant -1 : !ait.tensor<i64>
  %n = ait.constant [0, 1, 2, 3, 4, 5, 6, 7] : !ait.tensor<8 x i64>
  %i = ait.slice %n offsets [0] : !ait.tensor<s x i64>
  %r = ait.reshape %i : !ait.tensor<s x 1 x i64>
  %c = ait.add %i, %two : !ait.tensor<s x i64>
  %j = ait.add %i, %less : !ait.tensor<s x i64>
  %seen = ait.compare ge %r, %i : !ait.tensor<s x s x i1>
  %behind = ait.compare ge %j, %r : !ait.tensor<s x s x i1>
  %band = ait.compare ge %c, %r : !ait.tensor<s x s x i1>
  %beyond = ait.compare ge %r, %c : !ait.tensor<s x s x i1>
  %m0 = ait.where %seen, %zero, %low : !ait.tensor<s x s x f32>
  %y0 = ait.attention %q, %q, %q scale 1.0 scores(%m0) {
  ^bb0(%score: f32, %m: f32):
    %p = ait.mul %score, %m : f32
    ait.yield %p : f32
  } : !ait.tensor<b x 3 x s x 8 x f32>
  %m1 = ait.where %behind, %low, %zero : !ait.tensor<s x s x f32>
  %y1 = ait.attention %q, %q, %q scale 1.0 scores(%m1) {
  ^bb0(%score: f32, %m: f32):
    %p = ait.mul %score, %m : f32
    ait.yield %p : f32
  } : !ait.tensor<b x 3 x s x 8 x f32>
  %m2 = ait.where %band, %zero, %low : !ait.tensor<s x s x f32>
  %y2 = ait.attention %q, %q, %q scale 1.0 causal scores(%m2) {
  ^bb0(%score: f32, %m: f32):
    %p = ait.mul %score, %m : f32
    ait.yield %p : f32
  } : !ait.tensor<b x 3 x s x 8 x f32>
  %m3 = ait.where %beyond, %low, %zero : !ait.tensor<s x s x f32>
  %y3 = ait.attention %q, %q, %q scale 1.0 causal scores(%m3) {
  ^bb0(%score: f32, %m: f32):
    %p = ait.mul %score, %m : f32
    ait.yield %p : f32
  } : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y0" %y0 : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y1" %y1 : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y2" %y2 : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y3" %y3 : !ait.tensor<b x 3 x s x 8 x f32>
}

// CHECK-LABEL: ait.graph @hidden_band
ait.graph @hidden_band(%q: !ait.tensor<b x 3 x s x 8 x f32>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK: ait.attention %q, %q, %q scale 1.0 causal window 2 :
  %zero = ait.constant 0.0 : !ait.tensor<f32>
  %low = ait.constant -1e9 : !ait.tensor<f32>
  %two = ait.constant 2 : !ait.tensor<i64>
  %n = ait.constant [0, 1, 2, 3, 4, 5, 6, 7] : !ait.tensor<8 x i64>
  %i = ait.slice %n offsets [0] : !ait.tensor<s x i64>
  %r = ait.reshape %i : !ait.tensor<s x 1 x i64>
  %c = ait.add %i, %two : !ait.tensor<s x i64>
  %beyond = ait.compare ge %r, %c : !ait.tensor<s x s x i1>
  %m = ait.where %beyond, %low, %zero : !ait.tensor<s x s x f32>
  %y = ait.attention %q, %q, %q mask %m scale 1.0 causal : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y" %y : !ait.tensor<b x 3 x s x 8 x f32>
}

// CHECK-LABEL: ait.graph @other_bands
ait.graph @other_bands(%q: !ait.tensor<b x 3 x s x 8 x f32>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK-NOT: window
  // CHECK: ait.output "y4"
  %zero = ait.constant 0.0 : !ait.tensor<f32>
  %low = ait.constant -1e9 : !ait.tensor<f32>
  %high = ait.constant -1.0 : !ait.tensor<f32>
  %two = ait.constant 2 : !ait.tensor<i64>
  %n = ait.constant [0, 1, 2, 3, 4, 5, 6, 7] : !ait.tensor<8 x i64>
  %i = ait.slice %n offsets [0] : !ait.tensor<s x i64>
  %r = ait.reshape %i : !ait.tensor<s x 1 x i64>
  %c = ait.add %i, %two : !ait.tensor<s x i64>
  %band = ait.compare ge %c, %r : !ait.tensor<s x s x i1>
  %beyond = ait.compare ge %r, %c : !ait.tensor<s x s x i1>
  %near = ait.compare gt %c, %r : !ait.tensor<s x s x i1>
  %far = ait.compare gt %r, %c : !ait.tensor<s x s x i1>
  %m0 = ait.where %near, %zero, %low : !ait.tensor<s x s x f32>
  %y0 = ait.attention %q, %q, %q mask %m0 scale 1.0 causal : !ait.tensor<b x 3 x s x 8 x f32>
  %m1 = ait.where %far, %low, %zero : !ait.tensor<s x s x f32>
  %y1 = ait.attention %q, %q, %q mask %m1 scale 1.0 causal : !ait.tensor<b x 3 x s x 8 x f32>
  %m2 = ait.where %beyond, %high, %zero : !ait.tensor<s x s x f32>
  %y2 = ait.attention %q, %q, %q mask %m2 scale 1.0 causal : !ait.tensor<b x 3 x s x 8 x f32>
  %m3 = ait.where %band, %zero, %low : !ait.tensor<s x s x f32>
  %y3 = ait.attention %q, %q, %q mask %m3 scale 1.0 causal {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 3 x s x 8 x f32>
  %m4 = ait.where %beyond, %low, %zero : !ait.tensor<s x s x f32>
  %y4 = ait.attention %q, %q, %q mask %m4 scale 1.0 causal {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y0" %y0 : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y1" %y1 : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y2" %y2 : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y3" %y3 : !ait.tensor<b x 3 x s x 8 x f32>
  ait.output "y4" %y4 : !ait.tensor<b x 3 x s x 8 x f32>
}
