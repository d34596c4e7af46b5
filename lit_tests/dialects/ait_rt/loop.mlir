// RUN: ait-opt %s | ait-opt | filecheck %s

// CHECK-LABEL: ait_rt.kernel @add_0
ait_rt.kernel @add_0 "native" {} (%a: !ait.tensor<8 x f32>, %b: !ait.tensor<8 x f32>) dims {seq = 0 to 9} {
  %0 = ait.add %a, %b : !ait.tensor<8 x f32>
  ait_rt.return %0 : !ait.tensor<8 x f32>
}
// CHECK-LABEL: ait_rt.program @sum
ait_rt.program @sum dims {seq = 0 to 9} arena (0) {
  %x = ait_rt.input "x" : !ait_rt.buffer<seq x 8 x f32>
  %c = ait_rt.alloc : !ait_rt.buffer<2 x 64 x f32>
  // CHECK: ait_rt.loop step to (seq) carry(%c) {
  // CHECK-NEXT: %xt = ait_rt.view %x offset (8*step) strides [1] : !ait_rt.buffer<8 x f32>
  ait_rt.loop step to (seq) carry(%c) {
    %xt = ait_rt.view %x offset (8*step) strides [1] : !ait_rt.buffer<8 x f32>
    %old = ait_rt.view %c offset (64*(step mod 2)) strides [1] : !ait_rt.buffer<8 x f32>
    %new = ait_rt.view %c offset (64*((step + 1) mod 2)) strides [1] : !ait_rt.buffer<8 x f32>
    ait_rt.launch @add_0 ins(%xt, %old) outs(%new) workspace() stream 0
  }
  // CHECK: ait_rt.loop i to (2*seq) {
  ait_rt.loop i to (2*seq) {
    // CHECK-NEXT: ait_rt.loop j to (3) attributes {note = "inner"} {
    ait_rt.loop j to (3) attributes {note = "inner"} {
      %a = ait_rt.alloc : !ait_rt.buffer<8 x f32>
    }
  }
  // CHECK: ait_rt.loop k to (1) {
  // CHECK-NEXT: }
  ait_rt.loop k to (1) {}
}
