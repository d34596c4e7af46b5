// RUN: ait-opt %s -p form-recurrences --check-semantics | filecheck %s
// RUN: ait-opt %s -p 'form-recurrences{target="cuda" arch="sm_90a"}' | filecheck %s --check-prefix=CUDA
// RUN: ait-opt %s -p 'form-recurrences{target="cpu"}' | filecheck %s --check-prefix=CPU

// A bias is an input that is the same in each step.
// CHECK-LABEL: ait.graph @rnn
// CUDA-LABEL: ait.graph @rnn
// CUDA: ait.recurrence
// CPU-LABEL: ait.graph @rnn
// CPU: ait.scan
ait.graph @rnn(%x: !ait.tensor<s x b x 64 x f16>, %h0: !ait.tensor<b x 64 x f16>) dims {s = 0 to 64, b = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<64 x 64 x f16>
  %bias = ait.param "b" : !ait.tensor<64 x f16>
  // CHECK: %[[B:.*]] = ait.reshape %bias : !ait.tensor<1 x 1 x 64 x f16>
  // CHECK-NEXT: %h, %ys = ait.recurrence %w init(%h0) with(%x, %[[B]]) {
  // CHECK-NEXT: ^bb0(%[[P:.*]]: f32, %[[X:.*]]: f32, %[[C:.*]]: f32, %{{.*}}: f32):
  // CHECK-NEXT: %[[S:.*]] = ait.add %[[P]], %[[C]] : f32
  // CHECK-NEXT: %[[T:.*]] = ait.add %[[X]], %[[S]] : f32
  // CHECK-NEXT: %[[H:.*]] = ait.tanh %[[T]] : f32
  // CHECK-NEXT: ait.yield %[[H]], %[[H]] : f32, f32
  %h, %ys = ait.scan %x init(%h0) with(%w, %bias) dim 0 {
  ^bb0(%xt: !ait.tensor<b x 64 x f16>, %old: !ait.tensor<b x 64 x f16>, %u: !ait.tensor<64 x 64 x f16>, %c: !ait.tensor<64 x f16>):
    %p = ait.gemm rcr %old, %u : !ait.tensor<b x 64 x f16>
    %q = ait.add %p, %c : !ait.tensor<b x 64 x f16>
    %t = ait.add %xt, %q : !ait.tensor<b x 64 x f16>
    %new = ait.tanh %t : !ait.tensor<b x 64 x f16>
    ait.yield %new, %new : !ait.tensor<b x 64 x f16>, !ait.tensor<b x 64 x f16>
  } : !ait.tensor<b x 64 x f16>, !ait.tensor<s x b x 64 x f16>
  ait.output "h" %h : !ait.tensor<b x 64 x f16>
  ait.output "ys" %ys : !ait.tensor<s x b x 64 x f16>
}

// The columns of a product are gates; the second carried value is h; a sequence that has ended keeps its state; steps run along dim 1.
// CHECK-LABEL: ait.graph @gates
ait.graph @gates(%x: !ait.tensor<b x s x 16 x f32>, %going: !ait.tensor<b x s x i1>, %c0: !ait.tensor<b x 8 x f32>, %h0: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<16 x 8 x f32>) dims {s = 0 to 64, b = 1 to 4} {
  // CHECK: ait.recurrence %w init(%h0, %c0) with({{.*}}) reverse {
  // CHECK: ait.where
  // CHECK: ait.yield {{.*}} : f32, f32, f32
  // CHECK-NEXT: } : !ait.tensor<b x 8 x f32>, !ait.tensor<b x 8 x f32>, !ait.tensor<s x b x 8 x f32>
  // CHECK-NEXT: ait.permute {{.*}} [1, 0, 2] : !ait.tensor<b x s x 8 x f32>
  %c, %h, %unused, %ys = ait.scan %x, %going init(%c0, %h0) with(%w) dim 1 reverse {
  ^bb0(%xt: !ait.tensor<b x 16 x f32>, %on: !ait.tensor<b x i1>, %cell: !ait.tensor<b x 8 x f32>, %old: !ait.tensor<b x 8 x f32>, %u: !ait.tensor<16 x 8 x f32>):
    %p = ait.gemm rcr %old, %u : !ait.tensor<b x 16 x f32>
    %t = ait.add %xt, %p : !ait.tensor<b x 16 x f32>
    %f, %g = ait.split %t dim 1 : !ait.tensor<b x 8 x f32>, !ait.tensor<b x 8 x f32>
    %sf = ait.sigmoid %f : !ait.tensor<b x 8 x f32>
    %kept = ait.mul %sf, %cell : !ait.tensor<b x 8 x f32>
    %tg = ait.tanh %g : !ait.tensor<b x 8 x f32>
    %next = ait.add %kept, %tg : !ait.tensor<b x 8 x f32>
    %new = ait.tanh %next : !ait.tensor<b x 8 x f32>
    %mask = ait.reshape %on : !ait.tensor<b x 1 x i1>
    %after = ait.where %mask, %new, %old : !ait.tensor<b x 8 x f32>
    %cell1 = ait.where %mask, %next, %cell : !ait.tensor<b x 8 x f32>
    ait.yield %cell1, %after, %kept, %after : !ait.tensor<b x 8 x f32>, !ait.tensor<b x 8 x f32>, !ait.tensor<b x 8 x f32>, !ait.tensor<b x 8 x f32>
  } : !ait.tensor<b x 8 x f32>, !ait.tensor<b x 8 x f32>, !ait.tensor<b x s x 8 x f32>, !ait.tensor<b x s x 8 x f32>
  ait.output "c" %c : !ait.tensor<b x 8 x f32>
  ait.output "h" %h : !ait.tensor<b x 8 x f32>
  ait.output "ys" %ys : !ait.tensor<b x s x 8 x f32>
}

// One row: a product with a vector is a product all the same.
// CHECK-LABEL: ait.graph @one_row
// CUDA-LABEL: ait.graph @one_row
ait.graph @one_row(%x: !ait.tensor<s x 1 x 64 x bf16>, %h0: !ait.tensor<1 x 64 x bf16>, %w: !ait.tensor<64 x 64 x bf16>) dims {s = 0 to 64} {
  // CHECK: ait.recurrence %w init(%h0) with(%x) reverse {
  // CUDA: ait.recurrence
  %h = ait.scan %x init(%h0) with(%w) dim 0 reverse {
  ^bb0(%xt: !ait.tensor<1 x 64 x bf16>, %old: !ait.tensor<1 x 64 x bf16>, %u: !ait.tensor<64 x 64 x bf16>):
    %p = ait.gemm rcr %old, %u : !ait.tensor<1 x 64 x bf16>
    %t = ait.add %p, %xt : !ait.tensor<1 x 64 x bf16>
    %new = ait.tanh %t : !ait.tensor<1 x 64 x bf16>
    ait.yield %new : !ait.tensor<1 x 64 x bf16>
  } : !ait.tensor<1 x 64 x bf16>
  ait.output "h" %h : !ait.tensor<1 x 64 x bf16>
}

// Products of h with several weights become one; nobody needs the second half of the second weight.
// CHECK-LABEL: ait.graph @several_weights
ait.graph @several_weights(%x: !ait.tensor<s x b x 8 x f32>, %h0: !ait.tensor<b x 8 x f32>, %v: !ait.tensor<8 x 8 x f32>, %w: !ait.tensor<16 x 8 x f32>) dims {s = 0 to 64, b = 1 to 4} {
  // CHECK: %[[W:.*]] = ait.slice %w offsets [0, 0] : !ait.tensor<8 x 8 x f32>
  // CHECK-NEXT: %[[ALL:.*]] = ait.concat %v, %[[W]] dim 0 : !ait.tensor<16 x 8 x f32>
  // CHECK-NEXT: ait.recurrence %[[ALL]] init(%h0) with(%x) {
  %h = ait.scan %x init(%h0) with(%v, %w) dim 0 {
  ^bb0(%xt: !ait.tensor<b x 8 x f32>, %old: !ait.tensor<b x 8 x f32>, %u: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<16 x 8 x f32>):
    %p = ait.gemm rcr %old, %u : !ait.tensor<b x 8 x f32>
    %q = ait.gemm rcr %old, %z : !ait.tensor<b x 16 x f32>
    %r = ait.slice %q offsets [0, 0] : !ait.tensor<b x 8 x f32>
    %t = ait.mul %p, %r : !ait.tensor<b x 8 x f32>
    %new = ait.add %t, %xt : !ait.tensor<b x 8 x f32>
    ait.yield %new : !ait.tensor<b x 8 x f32>
  } : !ait.tensor<b x 8 x f32>
  ait.output "h" %h : !ait.tensor<b x 8 x f32>
}

// A second product waits for the first one.
// CHECK-LABEL: ait.graph @projected
// CHECK: ait.scan
ait.graph @projected(%x: !ait.tensor<s x b x 8 x f32>, %h0: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<8 x 8 x f32>) dims {s = 0 to 64, b = 1 to 4} {
  %h = ait.scan %x init(%h0) with(%w) dim 0 {
  ^bb0(%xt: !ait.tensor<b x 8 x f32>, %old: !ait.tensor<b x 8 x f32>, %u: !ait.tensor<8 x 8 x f32>):
    %p = ait.gemm rcr %old, %u : !ait.tensor<b x 8 x f32>
    %t = ait.add %p, %xt : !ait.tensor<b x 8 x f32>
    %new = ait.gemm rcr %t, %u : !ait.tensor<b x 8 x f32>
    ait.yield %new : !ait.tensor<b x 8 x f32>
  } : !ait.tensor<b x 8 x f32>
  ait.output "h" %h : !ait.tensor<b x 8 x f32>
}

// An element depends on its whole row, on other columns of the state, or on its place.
// CHECK-LABEL: ait.graph @normed
// CHECK: ait.scan
ait.graph @normed(%x: !ait.tensor<s x b x 8 x f32>, %h0: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<8 x 8 x f32>) dims {s = 0 to 64, b = 1 to 4} {
  %h = ait.scan %x init(%h0) with(%w) dim 0 {
  ^bb0(%xt: !ait.tensor<b x 8 x f32>, %old: !ait.tensor<b x 8 x f32>, %u: !ait.tensor<8 x 8 x f32>):
    %p = ait.gemm rcr %old, %u : !ait.tensor<b x 8 x f32>
    %t = ait.add %p, %xt : !ait.tensor<b x 8 x f32>
    %new = ait.softmax %t dim 1 : !ait.tensor<b x 8 x f32>
    ait.yield %new : !ait.tensor<b x 8 x f32>
  } : !ait.tensor<b x 8 x f32>
  ait.output "h" %h : !ait.tensor<b x 8 x f32>
}

// CHECK-LABEL: ait.graph @moved
// CHECK: ait.scan
ait.graph @moved(%x: !ait.tensor<s x b x 8 x f32>, %h0: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<8 x 8 x f32>) dims {s = 0 to 64, b = 1 to 4} {
  %h = ait.scan %x init(%h0) with(%w) dim 0 {
  ^bb0(%xt: !ait.tensor<b x 8 x f32>, %old: !ait.tensor<b x 8 x f32>, %u: !ait.tensor<8 x 8 x f32>):
    %p = ait.gemm rcr %old, %u : !ait.tensor<b x 8 x f32>
    %a, %c = ait.split %old dim 1 : !ait.tensor<b x 4 x f32>, !ait.tensor<b x 4 x f32>
    %turned = ait.concat %c, %a dim 1 : !ait.tensor<b x 8 x f32>
    %t = ait.add %p, %xt : !ait.tensor<b x 8 x f32>
    %new = ait.add %t, %turned : !ait.tensor<b x 8 x f32>
    ait.yield %new : !ait.tensor<b x 8 x f32>
  } : !ait.tensor<b x 8 x f32>
  ait.output "h" %h : !ait.tensor<b x 8 x f32>
}

// A carried value of another shape, and a step without a product.
// CHECK-LABEL: ait.graph @counted
// CHECK: ait.scan
// CHECK: ait.scan
ait.graph @counted(%x: !ait.tensor<s x b x 8 x f32>, %h0: !ait.tensor<b x 8 x f32>, %n0: !ait.tensor<b x f32>, %w: !ait.tensor<8 x 8 x f32>) dims {s = 0 to 64, b = 1 to 4} {
  %h, %n = ait.scan %x init(%h0, %n0) with(%w) dim 0 {
  ^bb0(%xt: !ait.tensor<b x 8 x f32>, %old: !ait.tensor<b x 8 x f32>, %k: !ait.tensor<b x f32>, %u: !ait.tensor<8 x 8 x f32>):
    %p = ait.gemm rcr %old, %u : !ait.tensor<b x 8 x f32>
    %new = ait.add %p, %xt : !ait.tensor<b x 8 x f32>
    %more = ait.exp %k : !ait.tensor<b x f32>
    ait.yield %new, %more : !ait.tensor<b x 8 x f32>, !ait.tensor<b x f32>
  } : !ait.tensor<b x 8 x f32>, !ait.tensor<b x f32>
  %m = ait.scan %x init(%h0) dim 0 {
  ^bb0(%xt: !ait.tensor<b x 8 x f32>, %old: !ait.tensor<b x 8 x f32>):
    %new = ait.add %old, %xt : !ait.tensor<b x 8 x f32>
    ait.yield %new : !ait.tensor<b x 8 x f32>
  } : !ait.tensor<b x 8 x f32>
  ait.output "h" %h : !ait.tensor<b x 8 x f32>
  ait.output "n" %n : !ait.tensor<b x f32>
  ait.output "m" %m : !ait.tensor<b x 8 x f32>
}

// No kernel for f64.
// CUDA-LABEL: ait.graph @wide
// CUDA: ait.scan
ait.graph @wide(%x: !ait.tensor<s x b x 64 x f64>, %h0: !ait.tensor<b x 64 x f64>, %w: !ait.tensor<64 x 64 x f64>) dims {s = 0 to 64, b = 1 to 4} {
  %h = ait.scan %x init(%h0) with(%w) dim 0 {
  ^bb0(%xt: !ait.tensor<b x 64 x f64>, %old: !ait.tensor<b x 64 x f64>, %u: !ait.tensor<64 x 64 x f64>):
    %p = ait.gemm rcr %old, %u : !ait.tensor<b x 64 x f64>
    %new = ait.add %p, %xt : !ait.tensor<b x 64 x f64>
    ait.yield %new : !ait.tensor<b x 64 x f64>
  } : !ait.tensor<b x 64 x f64>
  ait.output "h" %h : !ait.tensor<b x 64 x f64>
}
