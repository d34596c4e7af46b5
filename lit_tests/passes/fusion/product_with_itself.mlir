// RUN: ait-opt %s -p 'simplify,fuse-expand-bmm,fuse-attention,merge-parallel-gemms,simplify,fuse-epilogue,fuse-norm,fuse-elementwise' | filecheck %s
// RUN: ait-opt %s -p 'simplify,fuse-expand-bmm,fuse-attention,merge-parallel-gemms,simplify,fuse-epilogue,fuse-norm,fuse-elementwise' --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// What reads a product twice joins it: y + y and y * y behind a product or a convolution with a bias.
// CHECK-LABEL: ait.graph @twice
ait.graph @twice(%x: !ait.tensor<m x 8 x f32>, %i: !ait.tensor<2 x 4 x 4 x 2 x f32>) dims {m = 1 to 4} {
  // CHECK: ait.gemm rcr %x, %w epilogue(%b) {
  // CHECK: [[Y:%.*]] = ait.add %acc, %b
  // CHECK-NEXT: [[Z:%.*]] = ait.add [[Y]], [[Y]]
  // CHECK-NEXT: ait.yield [[Z]]
  // CHECK: ait.conv %i, %v epilogue(%c) {
  // CHECK: [[Y:%.*]] = ait.add %acc{{.*}}, %c
  // CHECK-NEXT: [[Z:%.*]] = ait.mul [[Y]], [[Y]]
  // CHECK-NEXT: ait.yield [[Z]]
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %b = ait.param "b" : !ait.tensor<4 x f32>
  %v = ait.param "v" : !ait.tensor<3 x 3 x 3 x 2 x f32>
  %c = ait.param "c" : !ait.tensor<3 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<m x 4 x f32>
  %1 = ait.add %0, %b : !ait.tensor<m x 4 x f32>
  %2 = ait.add %1, %1 : !ait.tensor<m x 4 x f32>
  %3 = ait.conv %i, %v : !ait.tensor<2 x 2 x 2 x 3 x f32>
  %4 = ait.add %3, %c : !ait.tensor<2 x 2 x 2 x 3 x f32>
  %5 = ait.mul %4, %4 : !ait.tensor<2 x 2 x 2 x 3 x f32>
  ait.output "y" %2 : !ait.tensor<m x 4 x f32>
  ait.output "z" %5 : !ait.tensor<2 x 2 x 2 x 3 x f32>
}

// Its kin: by different ways, y / exp(y); y is an output besides.
// CHECK-LABEL: ait.graph @kin
ait.graph @kin(%x: !ait.tensor<m x 8 x f32>, %z: !ait.tensor<m x 8 x f32>) dims {m = 1 to 4} {
  // CHECK: ait.gemm rcr %x, %w epilogue() {
  // CHECK: [[E:%.*]] = ait.exp %acc
  // CHECK-NEXT: [[Q:%.*]] = ait.div %acc, [[E]]
  // CHECK-NEXT: ait.yield [[Q]]
  // CHECK: [[Y:%.*]] = ait.gemm rcr %z, %w : !ait.tensor<m x 4 x f32>
  // CHECK-NEXT: ait.fused_elementwise([[Y]])
  // CHECK: ait.output "y3" [[Y]]
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<m x 4 x f32>
  %1 = ait.exp %0 : !ait.tensor<m x 4 x f32>
  %2 = ait.div %0, %1 : !ait.tensor<m x 4 x f32>
  %3 = ait.gemm rcr %z, %w : !ait.tensor<m x 4 x f32>
  %4 = ait.add %3, %3 : !ait.tensor<m x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<m x 4 x f32>
  ait.output "y3" %3 : !ait.tensor<m x 4 x f32>
  ait.output "y4" %4 : !ait.tensor<m x 4 x f32>
}
