// RUN: ait-opt %s -p simplify,fuse-attention | filecheck %s
// RUN: ait-opt %s -p simplify,fuse-attention --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// Heads that are repeated are shared: as repeat_kv of transformers writes it, with a mask and without.
// CHECK-LABEL: ait.graph @repeated
ait.graph @repeated(%q: !ait.tensor<b x 6 x s x 8 x f32>, %k: !ait.tensor<b x 2 x l x 8 x f32>, %v: !ait.tensor<b x 2 x l x 4 x f32>, %m: !ait.tensor<s x l x f32>) dims {b = 1 to 4, s = 1 to 8, l = 1 to 8} {
  // CHECK-NEXT: ait.attention %q, %k, %v mask %m scale 0.5 : !ait.tensor<b x 6 x s x 4 x f32>
  // CHECK-NEXT: ait.attention %q, %k, %v scale 0.5 causal : !ait.tensor<b x 6 x s x 4 x f32>
  // CHECK-NEXT: ait.output
  %k0 = ait.reshape %k : !ait.tensor<b x 2 x 1 x l x 8 x f32>
  %k1 = ait.expand %k0 : !ait.tensor<b x 2 x 3 x l x 8 x f32>
  %k2 = ait.reshape %k1 : !ait.tensor<b x 6 x l x 8 x f32>
  %v0 = ait.reshape %v : !ait.tensor<b x 2 x 1 x l x 4 x f32>
  %v1 = ait.expand %v0 : !ait.tensor<b x 2 x 3 x l x 4 x f32>
  %v2 = ait.reshape %v1 : !ait.tensor<b x 6 x l x 4 x f32>
  %0 = ait.attention %q, %k2, %v2 mask %m scale 0.5 : !ait.tensor<b x 6 x s x 4 x f32>
  %1 = ait.attention %q, %k2, %v2 scale 0.5 causal : !ait.tensor<b x 6 x s x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<b x 6 x s x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 6 x s x 4 x f32>
}

// Not shared: heads in another order, other numbers of heads of k and v, or with a kernel already.
// CHECK-LABEL: ait.graph @not_repeated
ait.graph @not_repeated(%q: !ait.tensor<b x 6 x s x 8 x f32>, %k: !ait.tensor<b x 2 x s x 8 x f32>, %v: !ait.tensor<b x 3 x s x 8 x f32>, %m: !ait.tensor<s x s x f32>) dims {b = 1 to 4, s = 1 to 8} {
  // CHECK-NOT: ait.attention %q, %k,
  // CHECK: ait.output
  %k0 = ait.reshape %k : !ait.tensor<b x 2 x 1 x s x 8 x f32>
  %k1 = ait.expand %k0 : !ait.tensor<b x 2 x 3 x s x 8 x f32>
  %k2 = ait.reshape %k1 : !ait.tensor<b x 6 x s x 8 x f32>
  %w0 = ait.reshape %k : !ait.tensor<b x 1 x 2 x s x 8 x f32>
  %w1 = ait.expand %w0 : !ait.tensor<b x 3 x 2 x s x 8 x f32>
  %w2 = ait.reshape %w1 : !ait.tensor<b x 6 x s x 8 x f32>
  %v0 = ait.reshape %v : !ait.tensor<b x 3 x 1 x s x 8 x f32>
  %v1 = ait.expand %v0 : !ait.tensor<b x 3 x 2 x s x 8 x f32>
  %v2 = ait.reshape %v1 : !ait.tensor<b x 6 x s x 8 x f32>
  %0 = ait.attention %q, %w2, %k2 scale 0.5 : !ait.tensor<b x 6 x s x 8 x f32>
  %1 = ait.attention %q, %k2, %w2 scale 0.5 : !ait.tensor<b x 6 x s x 8 x f32>
  %2 = ait.attention %q, %k2, %v2 scale 0.5 : !ait.tensor<b x 6 x s x 8 x f32>
  %3 = ait.attention %q, %k2, %k2 scale 0.5 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 6 x s x 8 x f32>
  %4 = ait.attention %q, %k2, %q scale 0.5 : !ait.tensor<b x 6 x s x 8 x f32>
  %m0 = ait.attention %q, %w2, %k2 mask %m scale 0.5 : !ait.tensor<b x 6 x s x 8 x f32>
  %m1 = ait.attention %q, %k2, %w2 mask %m scale 0.5 : !ait.tensor<b x 6 x s x 8 x f32>
  %m2 = ait.attention %q, %k2, %v2 mask %m scale 0.5 : !ait.tensor<b x 6 x s x 8 x f32>
  %m3 = ait.attention %q, %k2, %k2 mask %m scale 0.5 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 6 x s x 8 x f32>
  %m4 = ait.attention %q, %k2, %q mask %m scale 0.5 : !ait.tensor<b x 6 x s x 8 x f32>
  ait.output "y0" %0 : !ait.tensor<b x 6 x s x 8 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 6 x s x 8 x f32>
  ait.output "y2" %2 : !ait.tensor<b x 6 x s x 8 x f32>
  ait.output "y3" %3 : !ait.tensor<b x 6 x s x 8 x f32>
  ait.output "y4" %4 : !ait.tensor<b x 6 x s x 8 x f32>
  ait.output "z0" %m0 : !ait.tensor<b x 6 x s x 8 x f32>
  ait.output "z1" %m1 : !ait.tensor<b x 6 x s x 8 x f32>
  ait.output "z2" %m2 : !ait.tensor<b x 6 x s x 8 x f32>
  ait.output "z3" %m3 : !ait.tensor<b x 6 x s x 8 x f32>
  ait.output "z4" %m4 : !ait.tensor<b x 6 x s x 8 x f32>
}

// Keys and values in pieces: only the first piece has repeated heads.
// CHECK-LABEL: ait.graph @repeated_then
ait.graph @repeated_then(%q: !ait.tensor<b x 6 x s x 8 x f32>, %k: !ait.tensor<b x 2 x s x 8 x f32>, %l: !ait.tensor<b x 6 x 1 x 8 x f32>) dims {b = 1 to 4, s = 1 to 8} {
  // CHECK: [[K:%.*]] = ait.reshape
  // CHECK: [[R:%.*]] = ait.expand
  // CHECK: [[H:%.*]] = ait.reshape [[R]]
  // CHECK: ait.attention %q, [[H]], [[H]] then %l, %l
  %k0 = ait.reshape %k : !ait.tensor<b x 2 x 1 x s x 8 x f32>
  %k1 = ait.expand %k0 : !ait.tensor<b x 2 x 3 x s x 8 x f32>
  %k2 = ait.reshape %k1 : !ait.tensor<b x 6 x s x 8 x f32>
  %0 = ait.attention %q, %k2, %k2 then %l, %l scale 0.5 : !ait.tensor<b x 6 x s x 8 x f32>
  ait.output "y" %0 : !ait.tensor<b x 6 x s x 8 x f32>
}
