// RUN: ait-opt %s -p merge-parallel-gemms | filecheck %s
// RUN: ait-opt %s -p merge-parallel-gemms --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// Query, key and value as one product; weights of different sizes, params defined where they are used first.
// CHECK-LABEL: ait.graph @qkv
ait.graph @qkv(%x: !ait.tensor<b x s x 4 x f16>) dims {b = 0 to 4, s = 1 to 8} {
  // CHECK-NEXT: %qw = ait.param "qw"
  // CHECK-NEXT: %qb = ait.param "qb"
  // CHECK-NEXT: %kw = ait.param "kw"
  // CHECK-NEXT: %vw = ait.param "vw"
  // CHECK-NEXT: [[W:%.*]] = ait.concat %qw, %kw, %vw dim 0 : !ait.tensor<18 x 4 x f16>
  // CHECK-NEXT: [[Y:%.*]] = ait.gemm rcr %x, [[W]] : !ait.tensor<b x s x 18 x f16>
  // CHECK-NEXT: %kb = ait.param "kb"
  // CHECK-NEXT: %vb = ait.param "vb"
  // CHECK-NEXT: [[B:%.*]] = ait.concat %qb, %kb, %vb dim 0 : !ait.tensor<18 x f16>
  // CHECK-NEXT: [[Z:%.*]] = ait.add [[Y]], [[B]] : !ait.tensor<b x s x 18 x f16>
  // CHECK-NEXT: %q1, %k1, %v1 = ait.split [[Z]] dim 2 : !ait.tensor<b x s x 8 x f16>, !ait.tensor<b x s x 8 x f16>, !ait.tensor<b x s x 2 x f16>
  // CHECK-NEXT: ait.output "q" %q1
  %qw = ait.param "qw" : !ait.tensor<8 x 4 x f16>
  %qb = ait.param "qb" : !ait.tensor<8 x f16>
  %q0 = ait.gemm rcr %x, %qw : !ait.tensor<b x s x 8 x f16>
  %q1 = ait.add %q0, %qb : !ait.tensor<b x s x 8 x f16>
  %kw = ait.param "kw" : !ait.tensor<8 x 4 x f16>
  %kb = ait.param "kb" : !ait.tensor<8 x f16>
  %k0 = ait.gemm rcr %x, %kw : !ait.tensor<b x s x 8 x f16>
  %k1 = ait.add %kb, %k0 : !ait.tensor<b x s x 8 x f16>
  %vw = ait.param "vw" : !ait.tensor<2 x 4 x f16>
  %vb = ait.param "vb" : !ait.tensor<2 x f16>
  %v0 = ait.gemm rcr %x, %vw : !ait.tensor<b x s x 2 x f16>
  %v1 = ait.add %v0, %vb : !ait.tensor<b x s x 2 x f16>
  ait.output "q" %q1 : !ait.tensor<b x s x 8 x f16>
  ait.output "k" %k1 : !ait.tensor<b x s x 8 x f16>
  ait.output "v" %v1 : !ait.tensor<b x s x 2 x f16>
}

// One part has no bias: the others' adds stay apart.
// CHECK-LABEL: ait.graph @some_biases
ait.graph @some_biases(%x: !ait.tensor<b x 4 x f16>) dims {b = 1 to 4} {
  %u = ait.param "u" : !ait.tensor<8 x 4 x f16>
  %v = ait.param "v" : !ait.tensor<8 x 4 x f16>
  %c = ait.param "c" : !ait.tensor<8 x f16>
  // CHECK: ait.gemm rcr %x, {{.*}} : !ait.tensor<b x 16 x f16>
  // CHECK-NEXT: [[U:%.*]], [[V:%.*]] = ait.split
  // CHECK-NEXT: ait.add [[U]], %c
  // CHECK-NEXT: ait.mul [[V]], %c
  %0 = ait.gemm rcr %x, %u : !ait.tensor<b x 8 x f16>
  %1 = ait.gemm rcr %x, %v : !ait.tensor<b x 8 x f16>
  %2 = ait.add %0, %c : !ait.tensor<b x 8 x f16>
  %3 = ait.mul %1, %c : !ait.tensor<b x 8 x f16>
  ait.output "y2" %2 : !ait.tensor<b x 8 x f16>
  ait.output "y3" %3 : !ait.tensor<b x 8 x f16>
}

// A part with an activation of its own stays apart, as its product computes that in its epilogue; the others become one. Where the activation
// meets another part, as in a gate, all are one.
// CHECK-LABEL: ait.graph @activations
ait.graph @activations(%x: !ait.tensor<b x 4 x f16>, %z: !ait.tensor<b x 4 x f16>) dims {b = 1 to 4} {
  %u = ait.param "activations.u" : !ait.tensor<8 x 4 x f16>
  %v = ait.param "activations.v" : !ait.tensor<8 x 4 x f16>
  %w = ait.param "activations.w" : !ait.tensor<8 x 4 x f16>
  %c = ait.param "activations.c" : !ait.tensor<8 x f16>
  // CHECK: ait.gemm rcr %x, {{.*}} : !ait.tensor<b x 16 x f16>
  // CHECK: ait.gemm rcr %x, %v : !ait.tensor<b x 8 x f16>
  // CHECK: ait.relu
  // CHECK: ait.gemm rcr %z, {{.*}} : !ait.tensor<b x 16 x f16>
  // CHECK: ait.silu
  %0 = ait.gemm rcr %x, %u : !ait.tensor<b x 8 x f16>
  %1 = ait.gemm rcr %x, %v : !ait.tensor<b x 8 x f16>
  %2 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f16>
  %3 = ait.add %1, %c : !ait.tensor<b x 8 x f16>
  %4 = ait.relu %3 : !ait.tensor<b x 8 x f16>
  %5 = ait.mul %0, %c : !ait.tensor<b x 8 x f16>
  %6 = ait.add %2, %c : !ait.tensor<b x 8 x f16>
  %7 = ait.gemm rcr %z, %u : !ait.tensor<b x 8 x f16>
  %8 = ait.gemm rcr %z, %v : !ait.tensor<b x 8 x f16>
  %9 = ait.silu %7 : !ait.tensor<b x 8 x f16>
  %10 = ait.mul %9, %8 : !ait.tensor<b x 8 x f16>
  ait.output "activated" %4 : !ait.tensor<b x 8 x f16>
  ait.output "scaled" %5 : !ait.tensor<b x 8 x f16>
  ait.output "moved" %6 : !ait.tensor<b x 8 x f16>
  ait.output "gated" %10 : !ait.tensor<b x 8 x f16>
}

// What is added is no bias: not a param, of another shape, or added to a part that has a second use.
// CHECK-LABEL: ait.graph @no_biases
ait.graph @no_biases(%x: !ait.tensor<b x 4 x f16>, %z: !ait.tensor<2 x f16>) dims {b = 1 to 4} {
  %c = ait.param "c" : !ait.tensor<2 x f16>
  %d = ait.param "d" : !ait.tensor<1 x 2 x f16>
  // CHECK-COUNT-4: ait.split
  // CHECK-NOT: ait.concat
  %0, %1 = ait.split %x dim 1 : !ait.tensor<b x 2 x f16>, !ait.tensor<b x 2 x f16>
  %2 = ait.add %0, %c : !ait.tensor<b x 2 x f16>
  %3 = ait.add %1, %z : !ait.tensor<b x 2 x f16>
  %x1 = ait.exp %x : !ait.tensor<b x 4 x f16>
  %4, %5 = ait.split %x1 dim 1 : !ait.tensor<b x 2 x f16>, !ait.tensor<b x 2 x f16>
  %6 = ait.add %4, %c : !ait.tensor<b x 2 x f16>
  %7 = ait.add %5, %d : !ait.tensor<b x 2 x f16>
  %x2 = ait.exp %x1 : !ait.tensor<b x 4 x f16>
  %8, %9 = ait.split %x2 dim 1 : !ait.tensor<b x 2 x f16>, !ait.tensor<b x 2 x f16>
  %10 = ait.add %8, %c : !ait.tensor<b x 2 x f16>
  %11 = ait.add %9, %c : !ait.tensor<b x 2 x f16>
  %x3 = ait.exp %x2 : !ait.tensor<b x 4 x f16>
  %12, %13 = ait.split %x3 dim 1 : !ait.tensor<b x 2 x f16>, !ait.tensor<b x 2 x f16>
  %14 = ait.sub %12, %c : !ait.tensor<b x 2 x f16>
  %15 = ait.sub %13, %c : !ait.tensor<b x 2 x f16>
  // CHECK: ait.output
  ait.output "y2" %2 : !ait.tensor<b x 2 x f16>
  ait.output "y3" %3 : !ait.tensor<b x 2 x f16>
  ait.output "y6" %6 : !ait.tensor<b x 2 x f16>
  ait.output "y7" %7 : !ait.tensor<b x 2 x f16>
  ait.output "y9" %9 : !ait.tensor<b x 2 x f16>
  ait.output "y10" %10 : !ait.tensor<b x 2 x f16>
  ait.output "y11" %11 : !ait.tensor<b x 2 x f16>
  ait.output "y14" %14 : !ait.tensor<b x 2 x f16>
  ait.output "y15" %15 : !ait.tensor<b x 2 x f16>
}

// A split along another dim than the last has no bias per part; with a shared input the add would be one more pass over it.
// CHECK-LABEL: ait.graph @bias_of_rows
ait.graph @bias_of_rows(%x: !ait.tensor<4 x 2 x f16>) {
  %c = ait.param "c" : !ait.tensor<2 x f16>
  // CHECK-NOT: ait.concat
  // CHECK: ait.split %x dim 0
  // CHECK-NOT: ait.concat
  // CHECK: ait.split {{.*}} dim 1
  // CHECK-NOT: ait.concat
  // CHECK: ait.output
  %1 = ait.exp %x : !ait.tensor<4 x 2 x f16>
  %2 = ait.reshape %1 : !ait.tensor<2 x 4 x f16>
  %3, %4 = ait.split %x dim 0 : !ait.tensor<2 x 2 x f16>, !ait.tensor<2 x 2 x f16>
  %5 = ait.add %3, %c : !ait.tensor<2 x 2 x f16>
  %6 = ait.add %4, %c : !ait.tensor<2 x 2 x f16>
  %7, %8 = ait.split %2 dim 1 : !ait.tensor<2 x 2 x f16>, !ait.tensor<2 x 2 x f16>
  %9 = ait.add %7, %c : !ait.tensor<2 x 2 x f16>
  %10 = ait.add %8, %c : !ait.tensor<2 x 2 x f16>
  ait.output "y2" %2 : !ait.tensor<2 x 4 x f16>
  ait.output "y5" %5 : !ait.tensor<2 x 2 x f16>
  ait.output "y6" %6 : !ait.tensor<2 x 2 x f16>
  ait.output "y9" %9 : !ait.tensor<2 x 2 x f16>
  ait.output "y10" %10 : !ait.tensor<2 x 2 x f16>
}

// One gemm alone; B no param; another input; another layout; an epilogue; a selected one; an output; the input as B.
// CHECK-LABEL: ait.graph @not_parallel
ait.graph @not_parallel(%x: !ait.tensor<4 x 4 x f16>, %z: !ait.tensor<4 x 4 x f16>) {
  %w = ait.param "w" : !ait.tensor<4 x 4 x f16>
  // CHECK-NOT: ait.concat
  // CHECK-COUNT-8: ait.gemm
  // CHECK-NOT: ait.concat
  %0 = ait.gemm rcr %x, %w : !ait.tensor<4 x 4 x f16>
  %1 = ait.gemm rcr %x, %z : !ait.tensor<4 x 4 x f16>
  %2 = ait.gemm rcr %z, %w : !ait.tensor<4 x 4 x f16>
  %3 = ait.gemm rrr %x, %w : !ait.tensor<4 x 4 x f16>
  %4 = ait.gemm rcr %x, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<4 x 4 x f16>
  %5 = ait.gemm rcr %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<4 x 4 x f16>
  %6 = ait.gemm rcr %x, %w : !ait.tensor<4 x 4 x f16>
  %7 = ait.gemm rcr %w, %x : !ait.tensor<4 x 4 x f16>
  %8 = ait.exp %0 : !ait.tensor<4 x 4 x f16>
  // CHECK: ait.output
  ait.output "y1" %1 : !ait.tensor<4 x 4 x f16>
  ait.output "y2" %2 : !ait.tensor<4 x 4 x f16>
  ait.output "y3" %3 : !ait.tensor<4 x 4 x f16>
  ait.output "y4" %4 : !ait.tensor<4 x 4 x f16>
  ait.output "y5" %5 : !ait.tensor<4 x 4 x f16>
  ait.output "y6" %6 : !ait.tensor<4 x 4 x f16>
  ait.output "y7" %7 : !ait.tensor<4 x 4 x f16>
  ait.output "y8" %8 : !ait.tensor<4 x 4 x f16>
}
