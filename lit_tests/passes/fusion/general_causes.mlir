// RUN: ait-opt %s -p 'simplify,fuse-expand-bmm,fuse-attention,merge-parallel-gemms,simplify,fuse-epilogue,fuse-norm,fuse-elementwise' | filecheck %s
// RUN: ait-opt %s -p 'simplify,fuse-expand-bmm,fuse-attention,merge-parallel-gemms,simplify,fuse-epilogue,fuse-norm,fuse-elementwise' --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// An attribute is combined with the one before, not overwritten: two permutes are one.
// CHECK-LABEL: ait.graph @combined
ait.graph @combined(%x: !ait.tensor<2 x 3 x 4 x f32>) {
  // CHECK-NEXT: [[P:%.*]] = ait.permute %x [2, 0, 1] : !ait.tensor<4 x 2 x 3 x f32>
  // CHECK-NEXT: ait.output "y1" [[P]]
  %0 = ait.permute %x [1, 2, 0] : !ait.tensor<3 x 4 x 2 x f32>
  %1 = ait.permute %0 [1, 2, 0] : !ait.tensor<4 x 2 x 3 x f32>
  ait.output "y1" %1 : !ait.tensor<4 x 2 x 3 x f32>
}

// Two factors of the scores are one scale, their product.
// CHECK-LABEL: ait.graph @factors
ait.graph @factors(%q: !ait.tensor<2 x 4 x 8 x f32>, %k: !ait.tensor<2 x 4 x 8 x f32>, %v: !ait.tensor<2 x 4 x 8 x f32>) {
  // CHECK: ait.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.5 nan_rows : !ait.tensor<2 x 1 x 4 x 8 x f32>
  %three = ait.constant 3.0 : !ait.tensor<f32>
  %half = ait.constant 0.5 : !ait.tensor<f32>
  %0 = ait.bmm rcr %q, %k : !ait.tensor<2 x 4 x 4 x f32>
  %1 = ait.mul %0, %three : !ait.tensor<2 x 4 x 4 x f32>
  %2 = ait.mul %1, %half : !ait.tensor<2 x 4 x 4 x f32>
  %3 = ait.softmax %2 dim 2 : !ait.tensor<2 x 4 x 4 x f32>
  %4 = ait.bmm rrr %3, %v : !ait.tensor<2 x 4 x 8 x f32>
  ait.output "y" %4 : !ait.tensor<2 x 4 x 8 x f32>
}

// Probabilities that are an output are not hidden in an attention.
// CHECK-LABEL: ait.graph @output_inside
ait.graph @output_inside(%q: !ait.tensor<2 x 4 x 8 x f32>, %k: !ait.tensor<2 x 4 x 8 x f32>, %v: !ait.tensor<2 x 4 x 8 x f32>) {
  // CHECK-NEXT: ait.bmm rcr %q, %k : !ait.tensor<2 x 4 x 4 x f32>
  // CHECK-NEXT: [[P:%.*]] = ait.softmax
  // CHECK-NEXT: [[Y:%.*]] = ait.bmm rrr [[P]], %v : !ait.tensor<2 x 4 x 8 x f32>
  // CHECK-NEXT: ait.output "p" [[P]]
  // CHECK-NEXT: ait.output "y" [[Y]]
  %0 = ait.bmm rcr %q, %k : !ait.tensor<2 x 4 x 4 x f32>
  %1 = ait.softmax %0 dim 2 : !ait.tensor<2 x 4 x 4 x f32>
  %2 = ait.bmm rrr %1, %v : !ait.tensor<2 x 4 x 8 x f32>
  ait.output "p" %1 : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y" %2 : !ait.tensor<2 x 4 x 8 x f32>
}

// A quotient and a difference keep the order of their operands; a column beside a square product is not a row.
// CHECK-LABEL: ait.graph @order
ait.graph @order(%a: !ait.tensor<4 x 8 x f32>, %b: !ait.tensor<8 x 4 x f32>, %c: !ait.tensor<4 x 1 x f32>, %r: !ait.tensor<4 x f32>) {
  // CHECK-NEXT: ait.gemm rrr %a, %b epilogue(%c, %r) {
  // CHECK-NEXT: ^bb0(%acc: f32, [[C:%.*]]: f32, [[R:%.*]]: f32):
  // CHECK-NEXT: [[Q:%.*]] = ait.div [[C]], %acc
  // CHECK-NEXT: [[D:%.*]] = ait.sub [[Q]], [[R]]
  // CHECK-NEXT: ait.yield [[D]]
  %0 = ait.gemm rrr %a, %b : !ait.tensor<4 x 4 x f32>
  %1 = ait.div %c, %0 : !ait.tensor<4 x 4 x f32>
  %2 = ait.sub %1, %r : !ait.tensor<4 x 4 x f32>
  ait.output "y" %2 : !ait.tensor<4 x 4 x f32>
}
