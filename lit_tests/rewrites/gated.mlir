// RUN: ait-opt %s -p 'simplify,merge-parallel-gemms,fuse-epilogue,fuse-elementwise,fuse-siblings,select{target="cpu"},bufferize,remove-copies' | filecheck %s
// RUN: ait-opt %s -p 'simplify,merge-parallel-gemms,fuse-epilogue,fuse-elementwise,fuse-siblings' --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// silu(x W0^T) * (x W1^T): one product, and one pass over its halves where they are.
// CHECK-LABEL: ait_rt.program @swiglu
// CHECK: [[W:%.*]] = ait_rt.constant ["w0", "w1"] rows [6, 6]
// CHECK: ait_rt.launch @gemm_rcr_{{[0-9]+}} ins(%x, [[W]]) outs([[H:%.*]]) workspace
// CHECK-NEXT: [[A:%.*]] = ait_rt.view [[H]] offset (0) strides [12, 1] : !ait_rt.buffer<b x 6 x f16>
// CHECK-NEXT: [[B:%.*]] = ait_rt.view [[H]] offset (6) strides [12, 1] : !ait_rt.buffer<b x 6 x f16>
// CHECK-NEXT: ait_rt.launch @fused_silu_mul_{{[0-9]+}} ins([[A]], [[B]]) outs(%{{.*}}) workspace
// CHECK-NOT: ait_rt.copy
ait.graph @swiglu(%x: !ait.tensor<b x 4 x f16>) dims {b = 1 to 8} {
  %w0 = ait.param "w0" : !ait.tensor<6 x 4 x f16>
  %w1 = ait.param "w1" : !ait.tensor<6 x 4 x f16>
  %0 = ait.gemm rcr %x, %w0 : !ait.tensor<b x 6 x f16>
  %1 = ait.silu %0 : !ait.tensor<b x 6 x f16>
  %2 = ait.gemm rcr %x, %w1 : !ait.tensor<b x 6 x f16>
  %3 = ait.mul %1, %2 : !ait.tensor<b x 6 x f16>
  ait.output "y" %3 : !ait.tensor<b x 6 x f16>
}

// With biases and the tanh form of gelu; the value comes before the gate.
// CHECK-LABEL: ait_rt.program @geglu
// CHECK: ait_rt.launch @gemm_rcr_bias_{{[0-9]+}}
// CHECK-NEXT: ait_rt.view %{{.*}} offset (6) strides [12, 1]
// CHECK-NEXT: ait_rt.view %{{.*}} offset (0) strides [12, 1]
// CHECK-NEXT: ait_rt.launch @fused_fast_gelu_mul_{{[0-9]+}}
// CHECK-NOT: ait_rt.copy
ait.graph @geglu(%x: !ait.tensor<b x 4 x f16>) dims {b = 1 to 8} {
  %w0 = ait.param "w0" : !ait.tensor<6 x 4 x f16>
  %w1 = ait.param "w1" : !ait.tensor<6 x 4 x f16>
  %c0 = ait.param "c0" : !ait.tensor<6 x f16>
  %c1 = ait.param "c1" : !ait.tensor<6 x f16>
  %0 = ait.gemm rcr %x, %w0 : !ait.tensor<b x 6 x f16>
  %1 = ait.add %0, %c0 : !ait.tensor<b x 6 x f16>
  %2 = ait.gemm rcr %x, %w1 : !ait.tensor<b x 6 x f16>
  %3 = ait.add %2, %c1 : !ait.tensor<b x 6 x f16>
  %4 = ait.fast_gelu %3 : !ait.tensor<b x 6 x f16>
  %5 = ait.mul %1, %4 : !ait.tensor<b x 6 x f16>
  ait.output "y" %5 : !ait.tensor<b x 6 x f16>
}

// Products of two inputs stay two: the epilogue of one reads the other.
// CHECK-LABEL: ait_rt.program @two_inputs
// CHECK: ait_rt.launch @gemm_rcr_{{[0-9]+}} ins(%z,
// CHECK: ait_rt.launch @gemm_rcr_silu_mul_{{[0-9]+}} ins(%x,
// CHECK-NOT: ait_rt.launch
ait.graph @two_inputs(%x: !ait.tensor<b x 4 x f16>, %z: !ait.tensor<b x 4 x f16>) dims {b = 1 to 8} {
  %w0 = ait.param "w0" : !ait.tensor<6 x 4 x f16>
  %w1 = ait.param "w1" : !ait.tensor<6 x 4 x f16>
  %0 = ait.gemm rcr %x, %w0 : !ait.tensor<b x 6 x f16>
  %1 = ait.silu %0 : !ait.tensor<b x 6 x f16>
  %2 = ait.gemm rcr %z, %w1 : !ait.tensor<b x 6 x f16>
  %3 = ait.mul %1, %2 : !ait.tensor<b x 6 x f16>
  ait.output "y" %3 : !ait.tensor<b x 6 x f16>
}

// A rotary embedding: one pass, from the halves of each head to the halves of the result.
// CHECK-LABEL: ait_rt.program @rotary
// CHECK: ait_rt.launch @fused_{{.*}}_{{[0-9]+}} ins({{.*}}) outs(%{{.*}}, %{{.*}}) workspace
// CHECK-NOT: ait_rt.launch
// CHECK-NOT: ait_rt.copy
ait.graph @rotary(%x: !ait.tensor<b x s x 3 x 8 x f16>, %cos: !ait.tensor<s x 1 x 4 x f16>, %sin: !ait.tensor<s x 1 x 4 x f16>) dims {b = 1 to 8, s = 1 to 4} {
  %0, %1 = ait.split %x dim 3 : !ait.tensor<b x s x 3 x 4 x f16>, !ait.tensor<b x s x 3 x 4 x f16>
  %2 = ait.mul %0, %cos : !ait.tensor<b x s x 3 x 4 x f16>
  %3 = ait.mul %1, %sin : !ait.tensor<b x s x 3 x 4 x f16>
  %4 = ait.sub %2, %3 : !ait.tensor<b x s x 3 x 4 x f16>
  %5 = ait.mul %1, %cos : !ait.tensor<b x s x 3 x 4 x f16>
  %6 = ait.mul %0, %sin : !ait.tensor<b x s x 3 x 4 x f16>
  %7 = ait.add %5, %6 : !ait.tensor<b x s x 3 x 4 x f16>
  %8 = ait.concat %4, %7 dim 3 : !ait.tensor<b x s x 3 x 8 x f16>
  ait.output "y" %8 : !ait.tensor<b x s x 3 x 8 x f16>
}
