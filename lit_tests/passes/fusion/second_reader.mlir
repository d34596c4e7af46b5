// RUN: ait-opt %s -p 'simplify,fuse-expand-bmm,fuse-attention,merge-parallel-gemms,simplify,fuse-epilogue,fuse-norm,fuse-elementwise' | filecheck %s
// RUN: ait-opt %s -p 'simplify,fuse-expand-bmm,fuse-attention,merge-parallel-gemms,simplify,fuse-epilogue,fuse-norm,fuse-elementwise' --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// A sigmoid with a second reader joins the product; what reads it stays outside.
// CHECK-LABEL: ait.graph @two_readers
ait.graph @two_readers(%x: !ait.tensor<m x 8 x f32>, %r: !ait.tensor<m x 4 x f32>) dims {m = 1 to 4} {
  // CHECK: [[S:%.*]] = ait.gemm rcr %x, %w epilogue(%b) {
  // CHECK: ait.sigmoid
  // CHECK-NEXT: ait.yield
  // CHECK: [[P:%.*]] = ait.fused_elementwise([[S]], %r)
  // CHECK: [[T:%.*]] = ait.softmax [[S]] dim 1
  // CHECK-NEXT: ait.output "y" [[P]]
  // CHECK-NEXT: ait.output "z" [[T]]
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %b = ait.param "b" : !ait.tensor<4 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<m x 4 x f32>
  %1 = ait.add %0, %b : !ait.tensor<m x 4 x f32>
  %2 = ait.sigmoid %1 : !ait.tensor<m x 4 x f32>
  %3 = ait.mul %2, %r : !ait.tensor<m x 4 x f32>
  %4 = ait.softmax %2 dim 1 : !ait.tensor<m x 4 x f32>
  ait.output "y" %3 : !ait.tensor<m x 4 x f32>
  ait.output "z" %4 : !ait.tensor<m x 4 x f32>
}

// Its kin: the second reader is an output; the product itself has a second reader.
// CHECK-LABEL: ait.graph @kin
ait.graph @kin(%x: !ait.tensor<m x 8 x f32>, %z: !ait.tensor<m x 8 x f32>) dims {m = 1 to 4} {
  // CHECK: [[S:%.*]] = ait.gemm rcr %x, %w epilogue() {
  // CHECK: ait.sigmoid
  // CHECK-NEXT: ait.yield
  // CHECK: [[T:%.*]] = ait.fused_elementwise([[S]])
  // CHECK: [[Y:%.*]] = ait.gemm rcr %z, %w : !ait.tensor<m x 4 x f32>
  // CHECK: ait.softmax [[Y]]
  // CHECK: ait.output "y1" [[S]]
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<m x 4 x f32>
  %1 = ait.sigmoid %0 : !ait.tensor<m x 4 x f32>
  %2 = ait.tanh %1 : !ait.tensor<m x 4 x f32>
  %3 = ait.gemm rcr %z, %w : !ait.tensor<m x 4 x f32>
  %4 = ait.sigmoid %3 : !ait.tensor<m x 4 x f32>
  %5 = ait.softmax %3 dim 1 : !ait.tensor<m x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<m x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<m x 4 x f32>
  ait.output "y4" %4 : !ait.tensor<m x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<m x 4 x f32>
}
