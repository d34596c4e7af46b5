// RUN: ait-opt %s | ait-opt | filecheck %s

// CHECK-LABEL: ait.graph @rnn
ait.graph @rnn(%w: !ait.tensor<64 x 64 x f16>, %h0: !ait.tensor<b x 64 x f16>, %x: !ait.tensor<seq x b x 64 x f16>, %bias: !ait.tensor<1 x 1 x 64 x f16>) dims {seq = 0 to 64, b = 1 to 4} {
  // CHECK: %h, %ys = ait.recurrence %w init(%h0) with(%x, %bias) {
  // CHECK-NEXT: ^bb0(%product: f32, %now: f32, %same: f32, %before: f32):
  %h, %ys = ait.recurrence %w init(%h0) with(%x, %bias) {
  ^bb0(%product: f32, %now: f32, %same: f32, %before: f32):
    %s = ait.add %product, %now : f32
    %t = ait.add %s, %same : f32
    %after = ait.tanh %t : f32
    // CHECK: ait.yield %after, %after : f32, f32
    // CHECK-NEXT: } : !ait.tensor<b x 64 x f16>, !ait.tensor<seq x b x 64 x f16>
    ait.yield %after, %after : f32, f32
  } : !ait.tensor<b x 64 x f16>, !ait.tensor<seq x b x 64 x f16>
  ait.output "h" %h : !ait.tensor<b x 64 x f16>
  ait.output "ys" %ys : !ait.tensor<seq x b x 64 x f16>
}

// Two gates, two states, a mask, steps from the end.
// CHECK-LABEL: ait.graph @two
ait.graph @two(%w: !ait.tensor<16 x 8 x f32>, %h0: !ait.tensor<b x 8 x f32>, %c0: !ait.tensor<b x 8 x f64>, %seen: !ait.tensor<seq x b x 1 x i1>) dims {seq = 0 to 64, b = 1 to 4} {
  // CHECK: ait.recurrence %w init(%h0, %c0) with(%seen) reverse {
  // CHECK-NEXT: ^bb0(%p: f32, %q: f32, %going: i1, %old: f32, %cell: f64):
  %h, %c = ait.recurrence %w init(%h0, %c0) with(%seen) reverse {
  ^bb0(%p: f32, %q: f32, %going: i1, %old: f32, %cell: f64):
    %s = ait.add %p, %q : f32
    %new = ait.where %going, %s, %old : f32
    ait.yield %new, %cell : f32, f64
  } : !ait.tensor<b x 8 x f32>, !ait.tensor<b x 8 x f64>
  ait.output "h" %h : !ait.tensor<b x 8 x f32>
  ait.output "c" %c : !ait.tensor<b x 8 x f64>
}
