// RUN: ait-opt %s -p 'simplify,fuse-expand-bmm,fuse-attention,merge-parallel-gemms,simplify,fuse-epilogue,fuse-norm,fuse-elementwise' | filecheck %s
// RUN: ait-opt %s -p 'simplify,fuse-expand-bmm,fuse-attention,merge-parallel-gemms,simplify,fuse-epilogue,fuse-norm,fuse-elementwise' --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// A factor behind a softmax does not join the product before it: softmax(a @ b) * 2 is not softmax(2 a @ b).
// CHECK-LABEL: ait.graph @behind
ait.graph @behind(%a: !ait.tensor<2 x 4 x 8 x f32>, %b: !ait.tensor<2 x 8 x 4 x f32>) {
  // CHECK-NEXT: [[S:%.*]] = ait.bmm rrr %a, %b : !ait.tensor<2 x 4 x 4 x f32>
  // CHECK-NEXT: [[P:%.*]] = ait.softmax [[S]] dim 2
  // CHECK-NEXT: ait.fused_elementwise([[P]])
  // CHECK: ait.mul
  %two = ait.constant 2.0 : !ait.tensor<f32>
  %0 = ait.bmm rrr %a, %b : !ait.tensor<2 x 4 x 4 x f32>
  %1 = ait.softmax %0 dim 2 : !ait.tensor<2 x 4 x 4 x f32>
  %2 = ait.mul %1, %two : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y" %2 : !ait.tensor<2 x 4 x 4 x f32>
}

// Its kin: a factor directly behind the product joins it; one behind a sum over rows does not.
// CHECK-LABEL: ait.graph @kin
ait.graph @kin(%a: !ait.tensor<2 x 4 x 8 x f32>, %b: !ait.tensor<2 x 8 x 4 x f32>) {
  // CHECK: [[S:%.*]] = ait.bmm rrr %a, %b epilogue() {
  // CHECK: ait.mul
  // CHECK: ait.softmax [[S]] dim 2
  // CHECK: [[T:%.*]] = ait.bmm rrr %a, %b : !ait.tensor<2 x 4 x 4 x f32>
  // CHECK-NEXT: ait.reduce max [[T]]
  // CHECK-NEXT: ait.fused_elementwise
  %two = ait.constant -2.0 : !ait.tensor<f32>
  %0 = ait.bmm rrr %a, %b : !ait.tensor<2 x 4 x 4 x f32>
  %1 = ait.mul %0, %two : !ait.tensor<2 x 4 x 4 x f32>
  %2 = ait.softmax %1 dim 2 : !ait.tensor<2 x 4 x 4 x f32>
  %3 = ait.bmm rrr %a, %b : !ait.tensor<2 x 4 x 4 x f32>
  %4 = ait.reduce max %3 dims [2] : !ait.tensor<2 x 4 x f32>
  %5 = ait.mul %4, %two : !ait.tensor<2 x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<2 x 4 x f32>
}
