// RUN: ait-opt %s -p 'narrow-row-ops,fuse-masked-attention,channels-last,unroll-scans,simplify,remove-duplicates,fuse-attention,fuse-parallel-gemms,merge-parallel-gemms,simplify,rotate-products{target="cuda" arch="sm_90a"},pad-products{target="cuda" arch="sm_90a"},fuse-expand-bmm,expand-batches,fuse-bmm-permute,fuse-epilogue,fuse-norm,fuse-elementwise,gate-products,fuse-siblings,remove-duplicates,resolve-libraries,group-products{target="cuda" arch="sm_90a"},group-norms{target="cuda" arch="sm_90a"},group-embeddings{target="cuda" arch="sm_90a"},order-scatters{target="cuda" arch="sm_90a"},select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies' | filecheck %s --check-prefix=APART
// RUN: ait-opt %s -p 'narrow-row-ops,fuse-masked-attention,channels-last,unroll-scans,simplify,remove-duplicates,fuse-attention,fuse-parallel-gemms,merge-parallel-gemms,simplify,rotate-products{target="cuda" arch="sm_90a"},pad-products{target="cuda" arch="sm_90a"},fuse-expand-bmm,expand-batches,fuse-bmm-permute,fuse-epilogue,fuse-norm,fuse-elementwise,gate-products,fuse-siblings,fuse-results,remove-duplicates,resolve-libraries,group-products{target="cuda" arch="sm_90a"},group-norms{target="cuda" arch="sm_90a"},group-embeddings{target="cuda" arch="sm_90a"},order-scatters{target="cuda" arch="sm_90a"},select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies' | filecheck %s
// RUN: ait-opt %s -p 'narrow-row-ops,fuse-masked-attention,channels-last,unroll-scans,simplify,remove-duplicates,fuse-attention,fuse-parallel-gemms,merge-parallel-gemms,simplify,rotate-products{target="cpu"},pad-products{target="cpu"},fuse-expand-bmm,expand-batches,fuse-bmm-permute,fuse-epilogue,fuse-norm,fuse-elementwise,gate-products,fuse-siblings,fuse-results,remove-duplicates,resolve-libraries,group-products{target="cpu"},group-norms{target="cpu"},group-embeddings{target="cpu"},order-scatters{target="cpu"},select{target="cpu"},bufferize,remove-copies,lower-copies' | filecheck %s
// RUN: ait-opt %s -p 'narrow-row-ops,fuse-masked-attention,channels-last,unroll-scans,simplify,remove-duplicates,fuse-attention,fuse-parallel-gemms,merge-parallel-gemms,simplify,rotate-products{target="rocm" arch="gfx90a"},pad-products{target="rocm" arch="gfx90a"},fuse-expand-bmm,expand-batches,fuse-bmm-permute,fuse-epilogue,fuse-norm,fuse-elementwise,gate-products,fuse-siblings,fuse-results,remove-duplicates,resolve-libraries,group-products{target="rocm" arch="gfx90a"},group-norms{target="rocm" arch="gfx90a"},group-embeddings{target="rocm" arch="gfx90a"},order-scatters{target="rocm" arch="gfx90a"},select{target="rocm" arch="gfx90a"},bufferize,remove-copies,lower-copies' | filecheck %s

// Products and convolutions whose result is read as it is and activated: the activation is a further result, not a launch.

// Two blocks of a pre-activation residual network (arXiv:1603.05027), the batch norms inside of a block folded: the sum goes to
// the next sum and, through a batch norm and a relu, to the next convolution.
// APART-LABEL: ait_rt.program @preactivation
// APART: ait_rt.launch @conv_{{[0-9]+}} ins
// APART: ait_rt.launch @fused_mul_add_relu_{{[0-9]+}} ins
// APART: ait_rt.launch @conv_bias_relu_{{[0-9]+}} ins
// APART: ait_rt.launch @conv_add_{{[0-9]+}} ins
// APART: ait_rt.launch @fused_mul_add_relu_{{[0-9]+}} ins
// APART: ait_rt.launch @conv_bias_relu_{{[0-9]+}} ins
// APART: ait_rt.launch @conv_add_mul_bias_relu_{{[0-9]+}} ins
// APART-NOT: ait_rt.launch
// APART: }
// CHECK-LABEL: ait_rt.program @preactivation
// CHECK: ait_rt.launch @conv_mul_bias_relu_{{[0-9]+}} ins({{.*}}) outs([[Z0:%.*]], [[H0:%.*]]) workspace
// CHECK: ait_rt.launch @conv_bias_relu_{{[0-9]+}} ins([[H0]], {{.*}}) outs([[A0:%.*]]) workspace
// CHECK: ait_rt.launch @conv_add_mul_bias_relu_{{[0-9]+}} ins([[A0]], {{%.*}}, [[Z0]], {{.*}}) outs([[Z1:%.*]], [[H1:%.*]]) workspace
// CHECK: ait_rt.launch @conv_bias_relu_{{[0-9]+}} ins([[H1]], {{.*}}) outs([[A1:%.*]]) workspace
// CHECK: ait_rt.launch @conv_add_mul_bias_relu_{{[0-9]+}} ins([[A1]], {{%.*}}, [[Z1]], {{.*}}) outs({{%.*}}) workspace
// CHECK-NOT: ait_rt.launch
// CHECK: }
ait.graph @preactivation(%x: !ait.tensor<batch x 28 x 28 x 32 x f16>) dims {batch = 1 to 8} {
  %w0 = ait.param "stem.weight" : !ait.tensor<64 x 3 x 3 x 32 x f16>
  %w1 = ait.param "conv1.weight" : !ait.tensor<64 x 3 x 3 x 64 x f16>
  %w2 = ait.param "conv2.weight" : !ait.tensor<64 x 3 x 3 x 64 x f16>
  %w3 = ait.param "conv3.weight" : !ait.tensor<64 x 3 x 3 x 64 x f16>
  %w4 = ait.param "conv4.weight" : !ait.tensor<64 x 3 x 3 x 64 x f16>
  %b1 = ait.param "conv1.bias" : !ait.tensor<64 x f16>
  %b3 = ait.param "conv3.bias" : !ait.tensor<64 x f16>
  %g0 = ait.param "norm0.scale" : !ait.tensor<64 x f16>
  %h0 = ait.param "norm0.shift" : !ait.tensor<64 x f16>
  %g1 = ait.param "norm1.scale" : !ait.tensor<64 x f16>
  %h1 = ait.param "norm1.shift" : !ait.tensor<64 x f16>
  %g2 = ait.param "norm2.scale" : !ait.tensor<64 x f16>
  %h2 = ait.param "norm2.shift" : !ait.tensor<64 x f16>
  %0 = ait.conv %x, %w0 pad [1, 1] : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %1 = ait.mul %0, %g0 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %2 = ait.add %1, %h0 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %3 = ait.relu %2 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %4 = ait.conv %3, %w1 pad [1, 1] : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %5 = ait.add %4, %b1 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %6 = ait.relu %5 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %7 = ait.conv %6, %w2 pad [1, 1] : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %8 = ait.add %7, %0 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %9 = ait.mul %8, %g1 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %10 = ait.add %9, %h1 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %11 = ait.relu %10 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %12 = ait.conv %11, %w3 pad [1, 1] : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %13 = ait.add %12, %b3 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %14 = ait.relu %13 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %15 = ait.conv %14, %w4 pad [1, 1] : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %16 = ait.add %15, %8 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %17 = ait.mul %16, %g2 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %18 = ait.add %17, %h2 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %19 = ait.relu %18 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  ait.output "y" %19 : !ait.tensor<batch x 28 x 28 x 64 x f16>
}
