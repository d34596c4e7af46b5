// RUN: ait-opt %s -p unroll-scans --check-semantics | filecheck %s
// RUN: ait-opt %s -p 'unroll-scans{limit=1}' | filecheck %s --check-prefix=LIMIT
// RUN: ait-opt %s -p unroll-scans,simplify,fuse-elementwise | filecheck %s --check-prefix=FUSED

// Two steps of one op each; the stacked result is a concatenation.
// CHECK-LABEL: ait.graph @forward
// LIMIT-LABEL: ait.graph @forward
ait.graph @forward(%x: !ait.tensor<2 x n x f32>, %h0: !ait.tensor<n x f32>) dims {n = 0 to 4} {
  // CHECK-NEXT: [[S0:%.*]] = ait.slice %x offsets [0, 0] : !ait.tensor<1 x n x f32>
  // CHECK-NEXT: [[X0:%.*]] = ait.reshape [[S0]] : !ait.tensor<n x f32>
  // CHECK-NEXT: [[A0:%.*]] = ait.add [[X0]], %h0
  // CHECK-NEXT: [[P0:%.*]] = ait.reshape [[A0]] : !ait.tensor<1 x n x f32>
  // CHECK-NEXT: [[S1:%.*]] = ait.slice %x offsets [1, 0] : !ait.tensor<1 x n x f32>
  // CHECK-NEXT: [[X1:%.*]] = ait.reshape [[S1]] : !ait.tensor<n x f32>
  // CHECK-NEXT: [[A1:%.*]] = ait.add [[X1]], [[A0]]
  // CHECK-NEXT: [[P1:%.*]] = ait.reshape [[A1]] : !ait.tensor<1 x n x f32>
  // CHECK-NEXT: [[YS:%.*]] = ait.concat [[P0]], [[P1]] dim 0 : !ait.tensor<2 x n x f32>
  // CHECK-NEXT: ait.output "h" [[A1]]
  // CHECK-NEXT: ait.output "ys" [[YS]]
  // LIMIT: ait.scan
  %h, %ys = ait.scan %x init(%h0) dim 0 {
  ^bb0(%xt: !ait.tensor<n x f32>, %s: !ait.tensor<n x f32>):
    %a = ait.add %xt, %s : !ait.tensor<n x f32>
    ait.yield %a, %a : !ait.tensor<n x f32>, !ait.tensor<n x f32>
  } : !ait.tensor<n x f32>, !ait.tensor<2 x n x f32>
  ait.output "h" %h : !ait.tensor<n x f32>
  ait.output "ys" %ys : !ait.tensor<2 x n x f32>
}

// In reverse the last slice comes first, and the slices stay where their index is.
// CHECK-LABEL: ait.graph @backward
ait.graph @backward(%x: !ait.tensor<n x 2 x f32>, %h0: !ait.tensor<n x f32>) dims {n = 0 to 4} {
  // CHECK-NEXT: ait.slice %x offsets [0, 1]
  // CHECK: [[P1:%.*]] = ait.reshape %{{.*}} : !ait.tensor<n x 1 x f32>
  // CHECK-NEXT: ait.slice %x offsets [0, 0]
  // CHECK: [[P0:%.*]] = ait.reshape %{{.*}} : !ait.tensor<n x 1 x f32>
  // CHECK-NEXT: ait.concat [[P0]], [[P1]] dim 1 : !ait.tensor<n x 2 x f32>
  %h, %ys = ait.scan %x init(%h0) dim 1 reverse {
  ^bb0(%xt: !ait.tensor<n x f32>, %s: !ait.tensor<n x f32>):
    %a = ait.add %xt, %s : !ait.tensor<n x f32>
    ait.yield %a, %a : !ait.tensor<n x f32>, !ait.tensor<n x f32>
  } : !ait.tensor<n x f32>, !ait.tensor<n x 2 x f32>
  ait.output "h" %h : !ait.tensor<n x f32>
  ait.output "ys" %ys : !ait.tensor<n x 2 x f32>
}

// Without a step the carried values are the first ones, and the stacked result has no elements; carried values may
// change places, and be yielded as they are.
// CHECK-LABEL: ait.graph @none
ait.graph @none(%x: !ait.tensor<0 x n x f32>, %a0: !ait.tensor<n x f32>, %b0: !ait.tensor<n x f32>) dims {n = 0 to 4} {
  // CHECK-NEXT: [[YS:%.*]] = ait.constant 0 : !ait.tensor<0 x n x f32>
  // CHECK-NEXT: ait.output "a" %a0
  // CHECK-NEXT: ait.output "b" %b0
  // CHECK-NEXT: ait.output "ys" [[YS]]
  %a, %b, %ys = ait.scan %x init(%a0, %b0) dim 0 {
  ^bb0(%xt: !ait.tensor<n x f32>, %s: !ait.tensor<n x f32>, %t: !ait.tensor<n x f32>):
    ait.yield %t, %s, %xt : !ait.tensor<n x f32>, !ait.tensor<n x f32>, !ait.tensor<n x f32>
  } : !ait.tensor<n x f32>, !ait.tensor<n x f32>, !ait.tensor<0 x n x f32>
  ait.output "a" %a : !ait.tensor<n x f32>
  ait.output "b" %b : !ait.tensor<n x f32>
  ait.output "ys" %ys : !ait.tensor<0 x n x f32>
}

// A dynamic length stays a loop, around an inner scan that is unrolled.
// CHECK-LABEL: ait.graph @dynamic
ait.graph @dynamic(%x: !ait.tensor<n x 1 x f32>, %h0: !ait.tensor<f32>) dims {n = 0 to 4} {
  // CHECK-NEXT: ait.scan %x
  // CHECK-NOT: ait.scan
  // CHECK: ait.output
  %h = ait.scan %x init(%h0) dim 0 {
  ^bb0(%row: !ait.tensor<1 x f32>, %s: !ait.tensor<f32>):
    %t = ait.scan %row init(%s) dim 0 {
    ^bb1(%e: !ait.tensor<f32>, %u: !ait.tensor<f32>):
      %v = ait.add %e, %u : !ait.tensor<f32>
      ait.yield %v : !ait.tensor<f32>
    } : !ait.tensor<f32>
    ait.yield %t : !ait.tensor<f32>
  } : !ait.tensor<f32>
  ait.output "h" %h : !ait.tensor<f32>
}

// One step: its slice is the stacked result, and nothing else uses it.
// FUSED-LABEL: ait.graph @one_step
ait.graph @one_step(%x: !ait.tensor<1 x 8 x f32>, %h: !ait.tensor<8 x f32>) {
  // FUSED: ait.fused_elementwise(
  // FUSED: ait.output
  %last, %all = ait.scan %x init(%h) dim 0 {
  ^bb0(%xt: !ait.tensor<8 x f32>, %old: !ait.tensor<8 x f32>):
    %sum = ait.add %xt, %old : !ait.tensor<8 x f32>
    ait.yield %sum, %sum : !ait.tensor<8 x f32>, !ait.tensor<8 x f32>
  } : !ait.tensor<8 x f32>, !ait.tensor<1 x 8 x f32>
  ait.output "y" %all : !ait.tensor<1 x 8 x f32>
}
