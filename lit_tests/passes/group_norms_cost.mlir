// RUN: ait-opt %s -p 'group-norms{target="cuda" arch="sm_90a"}' | filecheck %s
// RUN: ait-opt %s -p 'group-norms{target="rocm" arch="gfx90a"}' | filecheck %s
// RUN: ait-opt %s -p 'group-norms{target="cpu"}' | filecheck %s --check-prefix=CPU
// RUN: ait-opt %s -p 'group-norms{target="cuda" arch="sm_90a"},select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies,assign-streams,plan-memory,verify-plan' | filecheck %s --check-prefix=LAUNCH

// Only where estimates say that one launch is faster by far.

// CPU-NOT: ait.grouped_norm

// The parts of a split, which are read where they lie.
// CHECK-LABEL: ait.graph @parts
// CHECK: ait.grouped_norm layer
// CHECK-NOT: ait.layer_norm
// LAUNCH-LABEL: ait_rt.program @parts
// LAUNCH: [[P:%.*]] = ait_rt.view %x offset (0) strides [640, 1]
// LAUNCH: [[Q:%.*]] = ait_rt.view %x offset (256) strides [640, 1]
// LAUNCH: ait_rt.launch @grouped_norm_{{[0-9]+}} ins([[P]], [[Q]], %g, %h) outs(%0, %1)
// LAUNCH-NOT: ait_rt.launch
// LAUNCH: }
ait.graph @parts(%x: !ait.tensor<batch x 640 x f16>) dims {batch = 1 to 64} {
  %g = ait.param "g" : !ait.tensor<256 x f16>
  %h = ait.param "h" : !ait.tensor<384 x f16>
  %p, %q = ait.split %x dim 1 : !ait.tensor<batch x 256 x f16>, !ait.tensor<batch x 384 x f16>
  %0 = ait.layer_norm %p scale %g axes 1 eps 1e-05 : !ait.tensor<batch x 256 x f16>
  %1 = ait.layer_norm %q scale %h axes 1 eps 1e-05 : !ait.tensor<batch x 384 x f16>
  ait.output "y0" %0 : !ait.tensor<batch x 256 x f16>
  ait.output "y1" %1 : !ait.tensor<batch x 384 x f16>
}

// The two towers of a recommender: the same depth.
// CHECK-LABEL: ait.graph @towers
// CHECK: ait.grouped_norm layer
// CHECK-NOT: ait.layer_norm
// LAUNCH-LABEL: ait_rt.program @towers
// LAUNCH: ait_rt.launch @gemm_rcr_bias_relu_{{[0-9]+}} ins
// LAUNCH: ait_rt.launch @gemm_rcr_bias_relu_{{[0-9]+}} ins
// LAUNCH: ait_rt.launch @grouped_norm_{{[0-9]+}} ins
// LAUNCH: ait_rt.launch @bmm_rcr_{{[0-9]+}} ins
// LAUNCH-NOT: ait_rt.launch
// LAUNCH: }
ait.graph @towers(%user: !ait.tensor<batch x 512 x f16>, %item: !ait.tensor<batch x 256 x f16>) dims {batch = 1 to 256} {
  %w = ait.param "user.weight" : !ait.tensor<128 x 512 x f16>
  %b = ait.param "user.bias" : !ait.tensor<128 x f16>
  %v = ait.param "item.weight" : !ait.tensor<128 x 256 x f16>
  %c = ait.param "item.bias" : !ait.tensor<128 x f16>
  %g = ait.param "user.norm" : !ait.tensor<128 x f16>
  %h = ait.param "item.norm" : !ait.tensor<128 x f16>
  %0 = ait.gemm rcr %user, %w epilogue(%b) {
  ^bb0(%acc0: f32, %b_1: f32):
    %s0 = ait.add %acc0, %b_1 : f32
    %r0 = ait.relu %s0 : f32
    ait.yield %r0 : f32
  } : !ait.tensor<batch x 128 x f16>
  %1 = ait.layer_norm %0 scale %g axes 1 eps 1e-05 : !ait.tensor<batch x 128 x f16>
  %2 = ait.gemm rcr %item, %v epilogue(%c) {
  ^bb0(%acc2: f32, %c_1: f32):
    %s2 = ait.add %acc2, %c_1 : f32
    %r2 = ait.relu %s2 : f32
    ait.yield %r2 : f32
  } : !ait.tensor<batch x 128 x f16>
  %3 = ait.layer_norm %2 scale %h axes 1 eps 1e-05 : !ait.tensor<batch x 128 x f16>
  %4 = ait.reshape %1 : !ait.tensor<batch x 1 x 128 x f16>
  %5 = ait.reshape %3 : !ait.tensor<batch x 1 x 128 x f16>
  %6 = ait.bmm rcr %4, %5 : !ait.tensor<batch x 1 x 1 x f16>
  ait.output "y" %6 : !ait.tensor<batch x 1 x 1 x f16>
}

// Launches and nothing else, which cost a CPU next to nothing.
// CHECK-LABEL: ait.graph @tiny
// CHECK: ait.grouped_norm layer %x, %z, %u
ait.graph @tiny(%x: !ait.tensor<1 x 8 x f16>, %z: !ait.tensor<1 x 8 x f16>, %u: !ait.tensor<1 x 8 x f16>) {
  %0 = ait.layer_norm %x axes 1 eps 1e-05 : !ait.tensor<1 x 8 x f16>
  %1 = ait.layer_norm %z axes 1 eps 1e-05 : !ait.tensor<1 x 8 x f16>
  %2 = ait.layer_norm %u axes 1 eps 1e-05 : !ait.tensor<1 x 8 x f16>
  ait.output "y0" %0 : !ait.tensor<1 x 8 x f16>
  ait.output "y1" %1 : !ait.tensor<1 x 8 x f16>
  ait.output "y2" %2 : !ait.tensor<1 x 8 x f16>
}

// Norms that fill the card by themselves.
// CHECK-LABEL: ait.graph @large
// CHECK-NOT: ait.grouped_norm
ait.graph @large(%x: !ait.tensor<16384 x 1024 x f16>, %z: !ait.tensor<16384 x 1024 x f16>) {
  %0 = ait.layer_norm %x axes 1 eps 1e-05 : !ait.tensor<16384 x 1024 x f16>
  %1 = ait.layer_norm %z axes 1 eps 1e-05 : !ait.tensor<16384 x 1024 x f16>
  ait.output "y0" %0 : !ait.tensor<16384 x 1024 x f16>
  ait.output "y1" %1 : !ait.tensor<16384 x 1024 x f16>
}
