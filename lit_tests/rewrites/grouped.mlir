// RUN: ait-opt %s -p fuse-epilogue | filecheck %s
// RUN: ait-opt %s -p fuse-epilogue --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// What follows a ragged product joins its epilogue; the ends of its groups stay what they are.
// CHECK-LABEL: ait.graph @joins
ait.graph @joins(%a: !ait.tensor<t x 8 x f32>, %b: !ait.tensor<3 x 8 x 4 x f32>, %ends: !ait.tensor<3 x i32>, %r: !ait.tensor<t x 4 x f32>) dims {t = 0 to 16} {
  // CHECK: ait.ragged_gemm %a, %b to %ends epilogue(%r) {
  // CHECK: ait.silu
  // CHECK: ait.mul
  // CHECK-NOT: ait.mul
  %0 = ait.ragged_gemm %a, %b to %ends : !ait.tensor<t x 4 x f32>
  %1 = ait.silu %0 : !ait.tensor<t x 4 x f32>
  %2 = ait.mul %1, %r : !ait.tensor<t x 4 x f32>
  ait.output "y" %2 : !ait.tensor<t x 4 x f32>
}
