// RUN: ait-opt %s | ait-opt | filecheck %s

// CHECK-LABEL: ait.graph @rnn
ait.graph @rnn(%x: !ait.tensor<seq x b x 8 x f16>, %h0: !ait.tensor<b x 8 x f16>) dims {seq = 0 to 64, b = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<8 x 8 x f16>
  // CHECK: %h, %ys = ait.scan %x init(%h0) with(%w) dim 0 {
  // CHECK-NEXT: ^bb0(%xt: !ait.tensor<b x 8 x f16>, %before: !ait.tensor<b x 8 x f16>, %u: !ait.tensor<8 x 8 x f16>):
  %h, %ys = ait.scan %x init(%h0) with(%w) dim 0 {
  ^bb0(%xt: !ait.tensor<b x 8 x f16>, %before: !ait.tensor<b x 8 x f16>, %u: !ait.tensor<8 x 8 x f16>):
    %p = ait.gemm rcr %before, %u : !ait.tensor<b x 8 x f16>
    %s = ait.add %xt, %p : !ait.tensor<b x 8 x f16>
    %after = ait.tanh %s : !ait.tensor<b x 8 x f16>
    // CHECK: ait.yield %after, %after : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f16>
    // CHECK-NEXT: } : !ait.tensor<b x 8 x f16>, !ait.tensor<seq x b x 8 x f16>
    ait.yield %after, %after : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f16>
  } : !ait.tensor<b x 8 x f16>, !ait.tensor<seq x b x 8 x f16>
  ait.output "h" %h : !ait.tensor<b x 8 x f16>
  ait.output "ys" %ys : !ait.tensor<seq x b x 8 x f16>
}

// CHECK-LABEL: ait.graph @map
ait.graph @map(%x: !ait.tensor<b x seq x f32>, %y: !ait.tensor<2 x seq x i32>) dims {seq = 0 to 64, b = 1 to 4} {
  // CHECK: %zs, %ws = ait.scan %x, %y dim 1 reverse {
  %zs, %ws = ait.scan %x, %y dim 1 reverse {
  ^bb0(%xt: !ait.tensor<b x f32>, %yt: !ait.tensor<2 x i32>):
    %e = ait.exp %xt : !ait.tensor<b x f32>
    ait.yield %e, %yt : !ait.tensor<b x f32>, !ait.tensor<2 x i32>
  // CHECK: } : !ait.tensor<b x seq x f32>, !ait.tensor<2 x seq x i32>
  } : !ait.tensor<b x seq x f32>, !ait.tensor<2 x seq x i32>
  ait.output "zs" %zs : !ait.tensor<b x seq x f32>
  ait.output "ws" %ws : !ait.tensor<2 x seq x i32>
}

// CHECK-LABEL: ait.graph @nested
ait.graph @nested(%x: !ait.tensor<n x m x f32>, %h0: !ait.tensor<f32>) dims {n = 0 to 3, m = 0 to 3} {
  // CHECK: ait.scan %x init(%h0) dim 0 {
  %h = ait.scan %x init(%h0) dim 0 {
  ^bb0(%row: !ait.tensor<m x f32>, %s: !ait.tensor<f32>):
    // CHECK: ait.scan %row init(%s) dim 0 {
    %t = ait.scan %row init(%s) dim 0 {
    ^bb1(%e: !ait.tensor<f32>, %u: !ait.tensor<f32>):
      %v = ait.add %e, %u : !ait.tensor<f32>
      ait.yield %v : !ait.tensor<f32>
    } : !ait.tensor<f32>
    ait.yield %t : !ait.tensor<f32>
  } : !ait.tensor<f32>
  ait.output "h" %h : !ait.tensor<f32>
}
