// RUN: ait-opt %s -p 'apply-patterns{file="%S/Inputs/relu_of_neg.mlir"}' | filecheck %s
// RUN: ait-opt %s -p 'apply-patterns{file="%S/Inputs/relu_of_neg.mlir" reverse=true}' | filecheck %s

// CHECK-LABEL: ait.graph @f
ait.graph @f(%x: !ait.tensor<4 x f32>, %w: !ait.tensor<4 x 4 x f32>) {
  // CHECK-NEXT: [[A:%.*]] = ait.exp %x
  // CHECK-NEXT: [[N:%.*]] = ait.neg [[A]]
  // CHECK-NEXT: [[R:%.*]] = ait.relu [[N]]
  // CHECK-NEXT: [[M:%.*]] = ait.mul [[R]], [[N]]
  // CHECK-NEXT: [[S:%.*]] = ait.add [[M]], [[M]]
  // CHECK-NEXT: ait.log [[S]]
  %0 = ait.neg %x : !ait.tensor<4 x f32>
  %1 = ait.relu %0 : !ait.tensor<4 x f32>
  %2 = ait.neg %1 : !ait.tensor<4 x f32>
  %3 = ait.relu %2 : !ait.tensor<4 x f32>
  %4 = ait.mul %3, %2 : !ait.tensor<4 x f32>
  %5 = ait.log %4 : !ait.tensor<4 x f32>
  %6 = ait.log %5 : !ait.tensor<4 x f32>
  // CHECK-NEXT: ait.gemm rrr %w, %w epilogue() {
  // CHECK-NEXT: ^bb0([[ACC:%.*]]: f32):
  // CHECK-NEXT: ait.tanh [[ACC]] : f32
  %7 = ait.gemm rrr %w, %w : !ait.tensor<4 x 4 x f32>
  %8 = ait.tanh %7 : !ait.tensor<4 x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<4 x f32>
  ait.output "y6" %6 : !ait.tensor<4 x f32>
  ait.output "y8" %8 : !ait.tensor<4 x 4 x f32>
}
