// RUN: ait-opt %s -p fuse-attention | filecheck %s
// RUN: ait-opt %s -p fuse-attention --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// A cache and the new token: nothing is laid end to end.
// CHECK-LABEL: ait.graph @cache
ait.graph @cache(%q: !ait.tensor<b x 4 x 1 x 8 x f32>, %k: !ait.tensor<b x 2 x l x 8 x f32>, %v: !ait.tensor<b x 2 x l x 5 x f32>, %k1: !ait.tensor<b x 2 x 1 x 8 x f32>, %v1: !ait.tensor<b x 2 x 1 x 5 x f32>) dims {b = 0 to 4, l = 0 to 8} {
  // CHECK-NEXT: [[Y:%.*]] = ait.attention %q, %k, %v then %k1, %v1 scale 0.5 causal : !ait.tensor<b x 4 x 1 x 5 x f32>
  // CHECK-NEXT: ait.output "y" [[Y]]
  %0 = ait.concat %k, %k1 dim 2 : !ait.tensor<b x 2 x (l + 1) x 8 x f32>
  %1 = ait.concat %v, %v1 dim 2 : !ait.tensor<b x 2 x (l + 1) x 5 x f32>
  %y = ait.attention %q, %0, %1 scale 0.5 causal : !ait.tensor<b x 4 x 1 x 5 x f32>
  ait.output "y" %y : !ait.tensor<b x 4 x 1 x 5 x f32>
}

// Several new tokens, a window, and a mask over the columns of both pieces.
// CHECK-LABEL: ait.graph @masked
ait.graph @masked(%q: !ait.tensor<b x 2 x s x 8 x f32>, %k: !ait.tensor<b x 2 x l x 8 x f32>, %n: !ait.tensor<b x 2 x s x 8 x f32>, %m: !ait.tensor<b x 1 x 1 x (l + s) x f32>) dims {b = 1 to 4, s = 1 to 64, l = 0 to 8} {
  // CHECK-NEXT: [[Y:%.*]] = ait.attention %q, %k, %k then %n, %n mask %m scale 0.5 causal window 9 : !ait.tensor<b x 2 x s x 8 x f32>
  // CHECK-NEXT: ait.output
  %0 = ait.concat %k, %n dim 2 : !ait.tensor<b x 2 x (l + s) x 8 x f32>
  %1 = ait.concat %k, %n dim 2 : !ait.tensor<b x 2 x (l + s) x 8 x f32>
  %y = ait.attention %q, %0, %1 mask %m scale 0.5 causal window 9 : !ait.tensor<b x 2 x s x 8 x f32>
  ait.output "y" %y : !ait.tensor<b x 2 x s x 8 x f32>
}

// Many rows read keys and values many times, by kernels that take them in one piece.
// CHECK-LABEL: ait.graph @many_rows
ait.graph @many_rows(%q: !ait.tensor<1 x 1 x 65 x 8 x f32>, %k: !ait.tensor<1 x 1 x 4 x 8 x f32>) {
  // CHECK: ait.attention %q, %0, %1 scale
  // CHECK: ait.output
  %0 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x 8 x 8 x f32>
  %1 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x 8 x 8 x f32>
  %y = ait.attention %q, %0, %1 scale 0.5 : !ait.tensor<1 x 1 x 65 x 8 x f32>
  ait.output "y" %y : !ait.tensor<1 x 1 x 65 x 8 x f32>
}

// Keys and values are cut at different rows.
// CHECK-LABEL: ait.graph @cut_differently
ait.graph @cut_differently(%q: !ait.tensor<1 x 1 x 2 x 8 x f32>, %k: !ait.tensor<1 x 1 x 4 x 8 x f32>, %v: !ait.tensor<1 x 1 x 3 x 8 x f32>) {
  // CHECK: ait.attention %q, %0, %1 scale
  // CHECK: ait.attention %q, %2, %3 mask %m scale
  // CHECK: ait.output
  %0 = ait.concat %k, %v dim 2 : !ait.tensor<1 x 1 x 7 x 8 x f32>
  %1 = ait.concat %v, %k dim 2 : !ait.tensor<1 x 1 x 7 x 8 x f32>
  %y = ait.attention %q, %0, %1 scale 0.5 : !ait.tensor<1 x 1 x 2 x 8 x f32>
  %m = ait.slice %q offsets [0, 0, 0, 1] : !ait.tensor<1 x 1 x 2 x 7 x f32>
  %2 = ait.concat %k, %v dim 2 : !ait.tensor<1 x 1 x 7 x 8 x f32>
  %3 = ait.concat %v, %k dim 2 : !ait.tensor<1 x 1 x 7 x 8 x f32>
  %z = ait.attention %q, %2, %3 mask %m scale 0.5 : !ait.tensor<1 x 1 x 2 x 8 x f32>
  ait.output "y" %y : !ait.tensor<1 x 1 x 2 x 8 x f32>
  ait.output "z" %z : !ait.tensor<1 x 1 x 2 x 8 x f32>
}

// The concatenation is made anyway: it is an output, too.
// CHECK-LABEL: ait.graph @keys_are_output
ait.graph @keys_are_output(%q: !ait.tensor<1 x 1 x 2 x 8 x f32>, %k: !ait.tensor<1 x 1 x l x 8 x f32>, %m: !ait.tensor<2 x (2*l) x f32>) dims {l = 0 to 5} {
  // CHECK: ait.attention %q, %0, %1 scale
  // CHECK: ait.attention %q, %0, %2 mask %m scale
  %0 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x (2*l) x 8 x f32>
  %1 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x (2*l) x 8 x f32>
  %2 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x (2*l) x 8 x f32>
  %y = ait.attention %q, %0, %1 scale 0.5 : !ait.tensor<1 x 1 x 2 x 8 x f32>
  %z = ait.attention %q, %0, %2 mask %m scale 0.5 : !ait.tensor<1 x 1 x 2 x 8 x f32>
  ait.output "y" %y : !ait.tensor<1 x 1 x 2 x 8 x f32>
  ait.output "z" %z : !ait.tensor<1 x 1 x 2 x 8 x f32>
  ait.output "k" %0 : !ait.tensor<1 x 1 x (2*l) x 8 x f32>
}

// CHECK-LABEL: ait.graph @values_are_output
ait.graph @values_are_output(%q: !ait.tensor<1 x 1 x 2 x 8 x f32>, %k: !ait.tensor<1 x 1 x l x 8 x f32>, %m: !ait.tensor<2 x (2*l) x f32>) dims {l = 0 to 5} {
  // CHECK: ait.attention %q, %0, %1 scale
  // CHECK: ait.attention %q, %2, %1 mask %m scale
  %0 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x (2*l) x 8 x f32>
  %1 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x (2*l) x 8 x f32>
  %2 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x (2*l) x 8 x f32>
  %y = ait.attention %q, %0, %1 scale 0.5 : !ait.tensor<1 x 1 x 2 x 8 x f32>
  %z = ait.attention %q, %2, %1 mask %m scale 0.5 : !ait.tensor<1 x 1 x 2 x 8 x f32>
  ait.output "y" %y : !ait.tensor<1 x 1 x 2 x 8 x f32>
  ait.output "z" %z : !ait.tensor<1 x 1 x 2 x 8 x f32>
  ait.output "v" %1 : !ait.tensor<1 x 1 x (2*l) x 8 x f32>
}

// Heads, or columns, laid end to end; the second piece of the others is empty.
// CHECK-LABEL: ait.graph @other_dims
ait.graph @other_dims(%q: !ait.tensor<1 x 1 x 2 x 8 x f32>, %x: !ait.tensor<1 x 1 x 4 x 4 x f32>, %k: !ait.tensor<1 x 1 x 4 x 8 x f32>, %none: !ait.tensor<1 x 1 x 0 x 8 x f32>, %m: !ait.tensor<2 x 4 x f32>) {
  // CHECK: ait.attention %q, %0, %1 scale
  // CHECK: ait.attention %q, %2, %3 scale
  // CHECK: ait.attention %q, %4, %5 mask %m scale
  // CHECK: ait.attention %q, %6, %7 mask %m scale
  %0 = ait.concat %x, %x dim 3 : !ait.tensor<1 x 1 x 4 x 8 x f32>
  %1 = ait.concat %k, %none dim 2 : !ait.tensor<1 x 1 x 4 x 8 x f32>
  %y = ait.attention %q, %0, %1 scale 0.5 : !ait.tensor<1 x 1 x 2 x 8 x f32>
  %2 = ait.concat %k, %none dim 2 : !ait.tensor<1 x 1 x 4 x 8 x f32>
  %3 = ait.concat %x, %x dim 3 : !ait.tensor<1 x 1 x 4 x 8 x f32>
  %z = ait.attention %q, %2, %3 scale 0.5 : !ait.tensor<1 x 1 x 2 x 8 x f32>
  %4 = ait.concat %x, %x dim 3 : !ait.tensor<1 x 1 x 4 x 8 x f32>
  %5 = ait.concat %k, %none dim 2 : !ait.tensor<1 x 1 x 4 x 8 x f32>
  %u = ait.attention %q, %4, %5 mask %m scale 0.5 : !ait.tensor<1 x 1 x 2 x 8 x f32>
  %6 = ait.concat %k, %none dim 2 : !ait.tensor<1 x 1 x 4 x 8 x f32>
  %7 = ait.concat %x, %x dim 3 : !ait.tensor<1 x 1 x 4 x 8 x f32>
  %w = ait.attention %q, %6, %7 mask %m scale 0.5 : !ait.tensor<1 x 1 x 2 x 8 x f32>
  ait.output "y" %y : !ait.tensor<1 x 1 x 2 x 8 x f32>
  ait.output "z" %z : !ait.tensor<1 x 1 x 2 x 8 x f32>
  ait.output "u" %u : !ait.tensor<1 x 1 x 2 x 8 x f32>
  ait.output "w" %w : !ait.tensor<1 x 1 x 2 x 8 x f32>
}

// Three pieces; and pieces of pieces.
// CHECK-LABEL: ait.graph @three
ait.graph @three(%q: !ait.tensor<1 x 1 x 2 x 8 x f32>, %k: !ait.tensor<1 x 1 x 4 x 8 x f32>) {
  // CHECK: ait.attention %q, %0, %1 scale
  // CHECK: ait.attention %q, %2, %3 then %k, %k scale
  %0 = ait.concat %k, %k, %k dim 2 : !ait.tensor<1 x 1 x 12 x 8 x f32>
  %1 = ait.concat %k, %k, %k dim 2 : !ait.tensor<1 x 1 x 12 x 8 x f32>
  %y = ait.attention %q, %0, %1 scale 0.5 : !ait.tensor<1 x 1 x 2 x 8 x f32>
  %2 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x 8 x 8 x f32>
  %3 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x 8 x 8 x f32>
  %4 = ait.concat %2, %k dim 2 : !ait.tensor<1 x 1 x 12 x 8 x f32>
  %5 = ait.concat %3, %k dim 2 : !ait.tensor<1 x 1 x 12 x 8 x f32>
  %z = ait.attention %q, %4, %5 scale 0.5 : !ait.tensor<1 x 1 x 2 x 8 x f32>
  ait.output "y" %y : !ait.tensor<1 x 1 x 2 x 8 x f32>
  ait.output "z" %z : !ait.tensor<1 x 1 x 2 x 8 x f32>
}

// Kernels that were chosen for one piece stay.
// CHECK-LABEL: ait.graph @chosen
ait.graph @chosen(%q: !ait.tensor<1 x 1 x 65 x 8 x f32>, %k: !ait.tensor<1 x 1 x 4 x 8 x f32>, %p: !ait.tensor<1 x 1 x 1 x 8 x f32>, %m: !ait.tensor<8 x f32>) {
  // CHECK: ait.attention %p, %0, %1 scale
  // CHECK: ait.attention %p, %2, %3 mask %m scale
  // CHECK: ait.attention %q, %4, %5 mask %m scale
  %0 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x 8 x 8 x f32>
  %1 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x 8 x 8 x f32>
  %y = ait.attention %p, %0, %1 scale 0.5 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<1 x 1 x 1 x 8 x f32>
  %2 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x 8 x 8 x f32>
  %3 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x 8 x 8 x f32>
  %z = ait.attention %p, %2, %3 mask %m scale 0.5 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<1 x 1 x 1 x 8 x f32>
  %4 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x 8 x 8 x f32>
  %5 = ait.concat %k, %k dim 2 : !ait.tensor<1 x 1 x 8 x 8 x f32>
  %w = ait.attention %q, %4, %5 mask %m scale 0.5 : !ait.tensor<1 x 1 x 65 x 8 x f32>
  ait.output "y" %y : !ait.tensor<1 x 1 x 1 x 8 x f32>
  ait.output "z" %z : !ait.tensor<1 x 1 x 1 x 8 x f32>
  ait.output "w" %w : !ait.tensor<1 x 1 x 65 x 8 x f32>
}
