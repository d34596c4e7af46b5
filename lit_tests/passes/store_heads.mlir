// RUN: ait-opt %s -p store-heads | filecheck %s
// RUN: ait-opt %s -p store-heads --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// RUN: ait-opt %s -p 'store-heads{target="cuda" arch="sm_90a"}' | filecheck %s --check-prefix=CUDA
// SEMANTICS: no difference

// Heads that an output has: the product writes them, without a copy. The columns of its bias become heads, too.
// CHECK-LABEL: ait.graph @written
// CUDA-LABEL: ait.graph @written
ait.graph @written(%x: !ait.tensor<(4*b) x 16 x f16>, %w: !ait.tensor<24 x 16 x f16>, %c: !ait.tensor<24 x f16>) dims {b = 1 to 8} {
  // CHECK: ait.bmm rcr {{.*}} epilogue({{.*}}) {
  // CHECK: } : !ait.tensor<b x 2 x 4 x 12 x f16>
  // CHECK-NEXT: ait.output
  // CUDA: ait.bmm rcr
  %0 = ait.gemm rcr %x, %w epilogue(%c) {
  ^bb0(%acc: f32, %d: f32):
    %s = ait.add %acc, %d : f32
    ait.yield %s : f32
  } : !ait.tensor<(4*b) x 24 x f16>
  %1 = ait.reshape %0 : !ait.tensor<b x 4 x 2 x 12 x f16>
  %2 = ait.permute %1 [0, 2, 1, 3] : !ait.tensor<b x 2 x 4 x 12 x f16>
  ait.output "y" %2 : !ait.tensor<b x 2 x 4 x 12 x f16>
}

// Others read the heads in place; an output is no heads, or not permuted.
// CHECK-LABEL: ait.graph @read
ait.graph @read(%x: !ait.tensor<8 x 16 x f16>, %w: !ait.tensor<24 x 16 x f16>) {
  // CHECK-COUNT-3: ait.gemm
  // CHECK-NOT: ait.bmm rcr
  // CHECK: ait.output "y3"
  %0 = ait.gemm rcr %x, %w : !ait.tensor<8 x 24 x f16>
  %1 = ait.reshape %0 : !ait.tensor<2 x 4 x 2 x 12 x f16>
  %2 = ait.permute %1 [0, 2, 1, 3] : !ait.tensor<2 x 2 x 4 x 12 x f16>
  %3 = ait.softmax %2 dim 3 : !ait.tensor<2 x 2 x 4 x 12 x f16>
  %4 = ait.gemm rcr %x, %w : !ait.tensor<8 x 24 x f16>
  %5 = ait.reshape %4 : !ait.tensor<2 x 4 x 2 x 12 x f16>
  %6 = ait.permute %5 [1, 2, 0, 3] : !ait.tensor<4 x 2 x 2 x 12 x f16>
  %7 = ait.gemm rcr %x, %w : !ait.tensor<8 x 24 x f16>
  %8 = ait.reshape %7 : !ait.tensor<2 x 4 x 2 x 12 x f16>
  ait.output "y3" %3 : !ait.tensor<2 x 2 x 4 x 12 x f16>
  ait.output "y6" %6 : !ait.tensor<4 x 2 x 2 x 12 x f16>
  ait.output "y8" %8 : !ait.tensor<2 x 4 x 2 x 12 x f16>
}
