// RUN: ait-opt %s -p 'simplify,fuse-expand-bmm,fuse-attention,merge-parallel-gemms,simplify,fuse-epilogue,fuse-norm,fuse-elementwise' | filecheck %s
// RUN: ait-opt %s -p 'simplify,fuse-expand-bmm,fuse-attention,merge-parallel-gemms,simplify,fuse-epilogue,fuse-norm,fuse-elementwise' --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// A factor of a sum multiplies all of it: (a @ b + c) * 3.
// CHECK-LABEL: ait.graph @of_sum
ait.graph @of_sum(%a: !ait.tensor<2 x 4 x 8 x f32>, %b: !ait.tensor<2 x 8 x 4 x f32>, %c: !ait.tensor<2 x 4 x 4 x f32>) {
  // CHECK-NEXT: ait.bmm rrr %a, %b epilogue(%c) {
  // CHECK: [[S:%.*]] = ait.add %acc, %c
  // CHECK: [[P:%.*]] = ait.mul [[S]], %{{.*}}
  // CHECK-NEXT: ait.yield [[P]]
  %k = ait.constant 3.0 : !ait.tensor<f32>
  %0 = ait.bmm rrr %a, %b : !ait.tensor<2 x 4 x 4 x f32>
  %1 = ait.add %0, %c : !ait.tensor<2 x 4 x 4 x f32>
  %2 = ait.mul %1, %k : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y" %2 : !ait.tensor<2 x 4 x 4 x f32>
}

// Its kin: two factors, one before and one behind the sum, stay two; a difference keeps its order.
// CHECK-LABEL: ait.graph @kin
ait.graph @kin(%a: !ait.tensor<2 x 4 x 8 x f32>, %b: !ait.tensor<2 x 8 x 4 x f32>, %c: !ait.tensor<2 x 4 x 4 x f32>) {
  // CHECK: ait.bmm rrr %a, %b epilogue(%c) {
  // CHECK: [[P:%.*]] = ait.mul %acc
  // CHECK: [[D:%.*]] = ait.sub %c{{.*}}, [[P]]
  // CHECK: [[Q:%.*]] = ait.mul [[D]]
  // CHECK-NEXT: ait.yield [[Q]]
  %k = ait.constant 3.0 : !ait.tensor<f32>
  %h = ait.constant 0.5 : !ait.tensor<f32>
  %0 = ait.bmm rrr %a, %b : !ait.tensor<2 x 4 x 4 x f32>
  %1 = ait.mul %0, %h : !ait.tensor<2 x 4 x 4 x f32>
  %2 = ait.sub %c, %1 : !ait.tensor<2 x 4 x 4 x f32>
  %3 = ait.mul %2, %k : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y" %3 : !ait.tensor<2 x 4 x 4 x f32>
}
