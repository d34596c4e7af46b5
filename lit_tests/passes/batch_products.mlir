// RUN: ait-opt %s -p 'batch-products{target="cuda" arch="sm_90a"}' | filecheck %s
// RUN: ait-opt %s -p 'batch-products{target="cuda" arch="sm_90a"},batch-products{target="cuda" arch="sm_90a"}' | filecheck %s
// RUN: ait-opt %s -p 'batch-products{target="cuda" arch="sm_90a"}' --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// CHECK-LABEL: ait.graph @parts
ait.graph @parts(%x: !ait.tensor<b x 24 x f16>) dims {b = 0 to 64} {
  // CHECK: [[X:%.*]] = ait.reshape %x : !ait.tensor<b x 3 x 8 x f16>
  // CHECK-NEXT: [[A:%.*]] = ait.permute [[X]] [1, 0, 2]
  // CHECK-NEXT: [[V:%.*]] = ait.concat %w0, %w1, %w2 dim 0
  // CHECK-NEXT: [[W:%.*]] = ait.reshape [[V]] : !ait.tensor<3 x 16 x 8 x f16>
  // CHECK-NEXT: [[P:%.*]] = ait.bmm rcr [[A]], [[W]] : !ait.tensor<3 x b x 16 x f16>
  // CHECK-NEXT: [[C:%.*]] = ait.concat %v0, %v1, %v2 dim 0
  // CHECK-NEXT: [[B:%.*]] = ait.reshape [[C]] : !ait.tensor<3 x 1 x 16 x f16>
  // CHECK-NEXT: [[S:%.*]] = ait.add [[P]], [[B]]
  // CHECK-NEXT: [[R:%.*]] = ait.permute [[S]] [1, 0, 2]
  // CHECK-NEXT: [[Y:%.*]] = ait.reshape [[R]] : !ait.tensor<b x 48 x f16>
  // CHECK-NEXT: ait.output "y" [[Y]]
  %w0 = ait.param "w0" : !ait.tensor<16 x 8 x f16>
  %w1 = ait.param "w1" : !ait.tensor<16 x 8 x f16>
  %w2 = ait.param "w2" : !ait.tensor<16 x 8 x f16>
  %v0 = ait.param "v0" : !ait.tensor<16 x f16>
  %v1 = ait.param "v1" : !ait.tensor<16 x f16>
  %v2 = ait.param "v2" : !ait.tensor<16 x f16>
  // CHECK-NOT: ait.split
  %0, %1, %2 = ait.split %x dim 1 : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f16>
  %3 = ait.gemm rcr %0, %w0 : !ait.tensor<b x 16 x f16>
  %4 = ait.gemm rcr %1, %w1 : !ait.tensor<b x 16 x f16>
  %5 = ait.gemm rcr %2, %w2 : !ait.tensor<b x 16 x f16>
  %6 = ait.add %3, %v0 : !ait.tensor<b x 16 x f16>
  %7 = ait.add %v1, %4 : !ait.tensor<b x 16 x f16>
  %8 = ait.add %5, %v2 : !ait.tensor<b x 16 x f16>
  %9 = ait.concat %6, %7, %8 dim 1 : !ait.tensor<b x 48 x f16>
  ait.output "y" %9 : !ait.tensor<b x 48 x f16>
}

// Parts in another order, not all parts, other sizes, one bias of two, another user of a product, rows joined, no params.
// CHECK-LABEL: ait.graph @others
// CHECK-NOT: ait.bmm
ait.graph @others(%x: !ait.tensor<4 x 16 x f16>, %u: !ait.tensor<16 x 8 x f16>) {
  %w0 = ait.param "w0" : !ait.tensor<16 x 8 x f16>
  %w1 = ait.param "w1" : !ait.tensor<16 x 8 x f16>
  %w2 = ait.param "w2" : !ait.tensor<24 x 8 x f16>
  %v0 = ait.param "v0" : !ait.tensor<16 x f16>
  %0, %1 = ait.split %x dim 1 : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
  %2 = ait.gemm rcr %0, %w0 : !ait.tensor<4 x 16 x f16>
  %3 = ait.gemm rcr %1, %w1 : !ait.tensor<4 x 16 x f16>
  %4 = ait.concat %3, %2 dim 1 : !ait.tensor<4 x 32 x f16>
  %5 = ait.gemm rcr %0, %w0 : !ait.tensor<4 x 16 x f16>
  %6 = ait.gemm rcr %0, %w1 : !ait.tensor<4 x 16 x f16>
  %7 = ait.concat %5, %6 dim 1 : !ait.tensor<4 x 32 x f16>
  %8 = ait.gemm rcr %0, %w0 : !ait.tensor<4 x 16 x f16>
  %9 = ait.gemm rcr %1, %w2 : !ait.tensor<4 x 24 x f16>
  %10 = ait.concat %8, %9 dim 1 : !ait.tensor<4 x 40 x f16>
  %11 = ait.gemm rcr %0, %w0 : !ait.tensor<4 x 16 x f16>
  %12 = ait.add %11, %v0 : !ait.tensor<4 x 16 x f16>
  %13 = ait.gemm rcr %1, %w1 : !ait.tensor<4 x 16 x f16>
  %14 = ait.concat %12, %13 dim 1 : !ait.tensor<4 x 32 x f16>
  %15 = ait.gemm rcr %0, %w0 : !ait.tensor<4 x 16 x f16>
  %16 = ait.gemm rcr %1, %w1 : !ait.tensor<4 x 16 x f16>
  %17 = ait.concat %15, %16 dim 1 : !ait.tensor<4 x 32 x f16>
  %18 = ait.gemm rcr %0, %w0 : !ait.tensor<4 x 16 x f16>
  %19 = ait.gemm rcr %1, %w1 : !ait.tensor<4 x 16 x f16>
  %20 = ait.concat %18, %19 dim 0 : !ait.tensor<8 x 16 x f16>
  %21 = ait.gemm rcr %0, %u : !ait.tensor<4 x 16 x f16>
  %22 = ait.gemm rcr %1, %u : !ait.tensor<4 x 16 x f16>
  %23 = ait.concat %21, %22 dim 1 : !ait.tensor<4 x 32 x f16>
  %24, %25 = ait.split %x dim 1 : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
  %26 = ait.gemm rcr %0, %w0 : !ait.tensor<4 x 16 x f16>
  %27 = ait.gemm rcr %25, %w1 : !ait.tensor<4 x 16 x f16>
  %28 = ait.concat %26, %27 dim 1 : !ait.tensor<4 x 32 x f16>
  ait.output "y4" %4 : !ait.tensor<4 x 32 x f16>
  ait.output "y7" %7 : !ait.tensor<4 x 32 x f16>
  ait.output "y10" %10 : !ait.tensor<4 x 40 x f16>
  ait.output "y14" %14 : !ait.tensor<4 x 32 x f16>
  ait.output "y15" %15 : !ait.tensor<4 x 16 x f16>
  ait.output "y17" %17 : !ait.tensor<4 x 32 x f16>
  ait.output "y20" %20 : !ait.tensor<8 x 16 x f16>
  ait.output "y23" %23 : !ait.tensor<4 x 32 x f16>
  ait.output "y28" %28 : !ait.tensor<4 x 32 x f16>
}
