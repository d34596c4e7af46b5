// RUN: ait-opt %s -p pad-products | filecheck %s
// RUN: ait-opt %s -p pad-products --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// RUN: ait-opt %s -p 'pad-products{weights=true}' | filecheck %s --check-prefix=WEIGHTS
// SEMANTICS: no difference

// CHECK-LABEL: ait.graph @odd
// WEIGHTS-LABEL: ait.graph @odd
ait.graph @odd(%x: !ait.tensor<m x 7 x f16>, %z: !ait.tensor<2 x 5 x 4 x bf16>, %v: !ait.tensor<2 x 4 x 3 x bf16>) dims {m = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<5 x 7 x f16>
  %u = ait.param "u" : !ait.tensor<16 x 7 x f16>
  // Products of one operand share what fills it.
  // CHECK: [[Z:%.*]] = ait.expand {{.*}} : !ait.tensor<m x 1 x f16>
  // CHECK-NEXT: [[X:%.*]] = ait.concat %x, [[Z]] dim 1 : !ait.tensor<m x 8 x f16>
  // CHECK-NEXT: [[W:%.*]] = ait.pad constant %w before [0, 0] : !ait.tensor<8 x 8 x f16>
  // CHECK-NEXT: [[Y:%.*]] = ait.gemm rcr [[X]], [[W]] : !ait.tensor<m x 8 x f16>
  // CHECK-NEXT: ait.slice [[Y]] offsets [0, 0] : !ait.tensor<m x 5 x f16>
  // CHECK-NEXT: [[U:%.*]] = ait.pad constant %u before [0, 0] : !ait.tensor<16 x 8 x f16>
  // CHECK-NEXT: ait.gemm rcr [[X]], [[U]] : !ait.tensor<m x 16 x f16>
  // WEIGHTS: ait.gemm rcr {{.*}} : !ait.tensor<m x 8 x f16>
  // WEIGHTS: ait.gemm rcr {{.*}} : !ait.tensor<m x 16 x f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<m x 5 x f16>
  %1 = ait.gemm rcr %x, %u : !ait.tensor<m x 16 x f16>
  // M is the length of rows where the result is stored in columns.
  // CHECK: ait.concat %z, {{.*}} dim 1 : !ait.tensor<2 x 8 x 4 x bf16>
  // CHECK: [[Z:%.*]] = ait.concat {{.*}} dim 2 : !ait.tensor<2 x 8 x 8 x bf16>
  // CHECK: ait.concat %v, {{.*}} dim 1 : !ait.tensor<2 x 8 x 3 x bf16>
  // CHECK: [[V:%.*]] = ait.concat {{.*}} dim 2 : !ait.tensor<2 x 8 x 8 x bf16>
  // CHECK-NEXT: [[T:%.*]] = ait.bmm rrc [[Z]], [[V]] : !ait.tensor<2 x 8 x 8 x bf16>
  // CHECK-NEXT: ait.slice [[T]] offsets [0, 0, 0] : !ait.tensor<2 x 3 x 5 x bf16>
  // WEIGHTS-NOT: ait.pad
  %2 = ait.bmm rrc %z, %v : !ait.tensor<2 x 3 x 5 x bf16>
  ait.output "y0" %0 : !ait.tensor<m x 5 x f16>
  ait.output "y1" %1 : !ait.tensor<m x 16 x f16>
  ait.output "y2" %2 : !ait.tensor<2 x 3 x 5 x bf16>
}

// A concat that nothing else reads takes the zeros.
// CHECK-LABEL: ait.graph @joined
// CHECK: ait.concat %x, %y, %{{[0-9]+}} dim 1 : !ait.tensor<m x 8 x f16>
// CHECK: [[C:%.*]] = ait.concat %y, %x dim 1 : !ait.tensor<m x 7 x f16>
// CHECK: ait.concat [[C]], %{{[0-9]+}} dim 1 : !ait.tensor<m x 8 x f16>
// CHECK: [[D:%.*]] = ait.concat %v, %v dim 0 : !ait.tensor<8 x 7 x f16>
// CHECK: ait.concat [[D]], %{{[0-9]+}} dim 1 : !ait.tensor<8 x 8 x f16>
// WEIGHTS-LABEL: ait.graph @joined
ait.graph @joined(%x: !ait.tensor<m x 3 x f16>, %y: !ait.tensor<m x 4 x f16>, %v: !ait.tensor<4 x 7 x f16>) dims {m = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<16 x 7 x f16>
  %c = ait.concat %x, %y dim 1 : !ait.tensor<m x 7 x f16>
  %0 = ait.gemm rcr %c, %w : !ait.tensor<m x 16 x f16>
  %d = ait.concat %y, %x dim 1 : !ait.tensor<m x 7 x f16>
  %1 = ait.gemm rcr %d, %w : !ait.tensor<m x 16 x f16>
  %e = ait.concat %v, %v dim 0 : !ait.tensor<8 x 7 x f16>
  %2 = ait.gemm rcr %e, %w : !ait.tensor<8 x 16 x f16>
  ait.output "y0" %0 : !ait.tensor<m x 16 x f16>
  ait.output "y1" %1 : !ait.tensor<m x 16 x f16>
  ait.output "d" %d : !ait.tensor<m x 7 x f16>
  ait.output "y2" %2 : !ait.tensor<8 x 16 x f16>
}

// Four-byte elements; whole accesses; sizes of 1; an odd number of rows; an epilogue; a selected product.
// CHECK-LABEL: ait.graph @none
// CHECK-NOT: ait.{{pad|concat}}
ait.graph @none(%x: !ait.tensor<3 x 7 x f32>, %y: !ait.tensor<3 x 8 x f16>, %z: !ait.tensor<3 x 1 x f16>, %v: !ait.tensor<3 x 7 x f16>) {
  %w = ait.param "w" : !ait.tensor<5 x 7 x f32>
  %w2 = ait.param "w2" : !ait.tensor<16 x 8 x f16>
  %w3 = ait.param "w3" : !ait.tensor<8 x 1 x f16>
  %w4 = ait.param "w4" : !ait.tensor<4 x 7 x f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<3 x 5 x f32>
  %1 = ait.gemm rcr %y, %w2 : !ait.tensor<3 x 16 x f16>
  %2 = ait.gemm rcr %z, %w3 : !ait.tensor<3 x 8 x f16>
  %3 = ait.gemm rcr %v, %w4 epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<3 x 4 x f16>
  %4 = ait.gemm rcr %v, %w4 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<3 x 4 x f16>
  ait.output "y0" %0 : !ait.tensor<3 x 5 x f32>
  ait.output "y1" %1 : !ait.tensor<3 x 16 x f16>
  ait.output "y2" %2 : !ait.tensor<3 x 8 x f16>
  ait.output "y3" %3 : !ait.tensor<3 x 4 x f16>
  ait.output "y4" %4 : !ait.tensor<3 x 4 x f16>
}
