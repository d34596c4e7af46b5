// RUN: ait-opt %s -p 'rotate-products{target="cuda" arch="sm_90a"}' | filecheck %s
// RUN: ait-opt %s -p 'rotate-products{target="cuda" arch="sm_80"}' | filecheck %s --check-prefix=NONE
// RUN: ait-opt %s -p 'rotate-products{target="rocm" arch="gfx90a"}' | filecheck %s --check-prefix=NONE
// RUN: ait-opt %s -p 'rotate-products{target="cpu"}' | filecheck %s --check-prefix=NONE

// Only where a kernel has tiles of whole heads, and estimates say that one of them is faster than the product and a pass.

// NONE-NOT: ait.rotated_gemm

// CHECK-LABEL: ait.graph @small
// CHECK: ait.rotated_gemm %x, %w {{.*}} heads 8 size 64
ait.graph @small(%x: !ait.tensor<b x 512 x f16>, %c: !ait.tensor<b x 1 x 32 x f16>, %s: !ait.tensor<b x 1 x 32 x f16>) dims {b = 1 to 512} {
  %w = ait.param "w" : !ait.tensor<512 x 512 x f16>
  %p = ait.gemm rcr %x, %w : !ait.tensor<b x 512 x f16>
  %r = ait.reshape %p : !ait.tensor<b x 8 x 64 x f16>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<b x 8 x 32 x f16>, !ait.tensor<b x 8 x 32 x f16>
  %q1 = ait.mul %qa, %c : !ait.tensor<b x 8 x 32 x f16>
  %q2 = ait.mul %qb, %s : !ait.tensor<b x 8 x 32 x f16>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<b x 8 x 32 x f16>
  %q4 = ait.mul %qb, %c : !ait.tensor<b x 8 x 32 x f16>
  %q5 = ait.mul %qa, %s : !ait.tensor<b x 8 x 32 x f16>
  %q6 = ait.add %q4, %q5 : !ait.tensor<b x 8 x 32 x f16>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<b x 8 x 64 x f16>
  ait.output "q" %q : !ait.tensor<b x 8 x 64 x f16>
}

// Four rows: a streaming product is faster than any tile.
// CHECK-LABEL: ait.graph @few_rows
// CHECK-NOT: ait.rotated_gemm
ait.graph @few_rows(%x: !ait.tensor<4 x 4096 x f16>, %c: !ait.tensor<4 x 1 x 64 x f16>, %s: !ait.tensor<4 x 1 x 64 x f16>) {
  %w = ait.param "w" : !ait.tensor<8192 x 4096 x f16>
  %p = ait.gemm rcr %x, %w : !ait.tensor<4 x 8192 x f16>
  %r = ait.reshape %p : !ait.tensor<4 x 64 x 128 x f16>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<4 x 64 x 64 x f16>, !ait.tensor<4 x 64 x 64 x f16>
  %q1 = ait.mul %qa, %c : !ait.tensor<4 x 64 x 64 x f16>
  %q2 = ait.mul %qb, %s : !ait.tensor<4 x 64 x 64 x f16>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<4 x 64 x 64 x f16>
  %q4 = ait.mul %qb, %c : !ait.tensor<4 x 64 x 64 x f16>
  %q5 = ait.mul %qa, %s : !ait.tensor<4 x 64 x 64 x f16>
  %q6 = ait.add %q4, %q5 : !ait.tensor<4 x 64 x 64 x f16>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<4 x 64 x 128 x f16>
  ait.output "q" %q : !ait.tensor<4 x 64 x 128 x f16>
}

// Elements of four bytes; heads of 40 columns, which no tile has whole.
// CHECK-LABEL: ait.graph @wide
// CHECK-NOT: ait.rotated_gemm
ait.graph @wide(%x: !ait.tensor<b x 512 x f32>, %c: !ait.tensor<b x 1 x 32 x f32>, %s: !ait.tensor<b x 1 x 32 x f32>) dims {b = 1 to 512} {
  %w = ait.param "w" : !ait.tensor<512 x 512 x f32>
  %p = ait.gemm rcr %x, %w : !ait.tensor<b x 512 x f32>
  %r = ait.reshape %p : !ait.tensor<b x 8 x 64 x f32>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<b x 8 x 32 x f32>, !ait.tensor<b x 8 x 32 x f32>
  %q1 = ait.mul %qa, %c : !ait.tensor<b x 8 x 32 x f32>
  %q2 = ait.mul %qb, %s : !ait.tensor<b x 8 x 32 x f32>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<b x 8 x 32 x f32>
  %q4 = ait.mul %qb, %c : !ait.tensor<b x 8 x 32 x f32>
  %q5 = ait.mul %qa, %s : !ait.tensor<b x 8 x 32 x f32>
  %q6 = ait.add %q4, %q5 : !ait.tensor<b x 8 x 32 x f32>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<b x 8 x 64 x f32>
  ait.output "q" %q : !ait.tensor<b x 8 x 64 x f32>
}
// CHECK-LABEL: ait.graph @odd_heads
// CHECK-NOT: ait.rotated_gemm
ait.graph @odd_heads(%x: !ait.tensor<b x 512 x f16>, %c: !ait.tensor<b x 1 x 20 x f16>, %s: !ait.tensor<b x 1 x 20 x f16>) dims {b = 1 to 512} {
  %w = ait.param "w" : !ait.tensor<320 x 512 x f16>
  %p = ait.gemm rcr %x, %w : !ait.tensor<b x 320 x f16>
  %r = ait.reshape %p : !ait.tensor<b x 8 x 40 x f16>
  %qa, %qb = ait.split %r dim 2 : !ait.tensor<b x 8 x 20 x f16>, !ait.tensor<b x 8 x 20 x f16>
  %q1 = ait.mul %qa, %c : !ait.tensor<b x 8 x 20 x f16>
  %q2 = ait.mul %qb, %s : !ait.tensor<b x 8 x 20 x f16>
  %q3 = ait.sub %q1, %q2 : !ait.tensor<b x 8 x 20 x f16>
  %q4 = ait.mul %qb, %c : !ait.tensor<b x 8 x 20 x f16>
  %q5 = ait.mul %qa, %s : !ait.tensor<b x 8 x 20 x f16>
  %q6 = ait.add %q4, %q5 : !ait.tensor<b x 8 x 20 x f16>
  %q = ait.concat %q3, %q6 dim 2 : !ait.tensor<b x 8 x 40 x f16>
  ait.output "q" %q : !ait.tensor<b x 8 x 40 x f16>
}
