// RUN: ait-opt %s -p 'simplify,fuse-expand-bmm,fuse-attention,merge-parallel-gemms,simplify,fuse-epilogue,fuse-norm,fuse-elementwise' | filecheck %s
// RUN: ait-opt %s -p 'simplify,fuse-expand-bmm,fuse-attention,merge-parallel-gemms,simplify,fuse-epilogue,fuse-norm,fuse-elementwise' --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// An expand that feeds a batched product stays if it enlarges M, too: [1, 1, 64] to [4, 16, 64].
// CHECK-LABEL: ait.graph @rows
ait.graph @rows(%x: !ait.tensor<1 x 1 x 64 x f32>, %w: !ait.tensor<4 x 64 x 8 x f32>) {
  // CHECK-NEXT: [[X:%.*]] = ait.expand %x : !ait.tensor<4 x 16 x 64 x f32>
  // CHECK-NEXT: ait.bmm rrr [[X]], %w : !ait.tensor<4 x 16 x 8 x f32>
  %0 = ait.expand %x : !ait.tensor<4 x 16 x 64 x f32>
  %1 = ait.bmm rrr %0, %w : !ait.tensor<4 x 16 x 8 x f32>
  ait.output "y" %1 : !ait.tensor<4 x 16 x 8 x f32>
}

// Its kin: the columns of the other factor; K of both; and an expand of the batch alone, which goes.
// CHECK-LABEL: ait.graph @kin
ait.graph @kin(%x: !ait.tensor<4 x 3 x 6 x f32>, %v: !ait.tensor<1 x 6 x 1 x f32>, %a: !ait.tensor<1 x 3 x 1 x f32>, %b: !ait.tensor<1 x 5 x f32>) {
  // CHECK-NEXT: [[V:%.*]] = ait.expand %v : !ait.tensor<4 x 6 x 2 x f32>
  // CHECK-NEXT: ait.bmm rrr %x, [[V]]
  // CHECK-NEXT: [[A:%.*]] = ait.expand %a : !ait.tensor<4 x 3 x 5 x f32>
  // CHECK-NEXT: [[B:%.*]] = ait.expand %b : !ait.tensor<7 x 5 x f32>
  // CHECK-NEXT: ait.bmm rcr [[A]], [[B]] : !ait.tensor<4 x 3 x 7 x f32>
  // CHECK-NEXT: ait.bmm rrr %x, %v : !ait.tensor<4 x 3 x 1 x f32>
  %0 = ait.expand %v : !ait.tensor<4 x 6 x 2 x f32>
  %1 = ait.bmm rrr %x, %0 : !ait.tensor<4 x 3 x 2 x f32>
  %2 = ait.expand %a : !ait.tensor<4 x 3 x 5 x f32>
  %3 = ait.expand %b : !ait.tensor<7 x 5 x f32>
  %4 = ait.bmm rcr %2, %3 : !ait.tensor<4 x 3 x 7 x f32>
  %5 = ait.expand %v : !ait.tensor<4 x 6 x 1 x f32>
  %6 = ait.bmm rrr %x, %5 : !ait.tensor<4 x 3 x 1 x f32>
  ait.output "y1" %1 : !ait.tensor<4 x 3 x 2 x f32>
  ait.output "y4" %4 : !ait.tensor<4 x 3 x 7 x f32>
  ait.output "y6" %6 : !ait.tensor<4 x 3 x 1 x f32>
}
