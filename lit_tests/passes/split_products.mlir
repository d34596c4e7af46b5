// RUN: ait-opt %s -p split-products | filecheck %s
// RUN: ait-opt %s -p 'split-products{target="cuda" arch="sm_90a"}' | filecheck %s --check-prefix=CARD
// RUN: ait-opt %s -p 'split-products{target="cpu"}' | filecheck %s --check-prefix=CPU

// CPU-NOT: ait.bmm

// Each multiprocessor sums a part of K; the sums are added in order, and rounded once. The parts are views.

// CHECK-LABEL: ait.graph @long
// CARD-LABEL: ait.graph @long
ait.graph @long(%x: !ait.tensor<64 x 1048576 x f16>, %y: !ait.tensor<1048576 x 64 x f16>) {
  // CHECK-NEXT: %0 = ait.reshape %x : !ait.tensor<64 x 128 x 8192 x f16>
  // CHECK-NEXT: %1 = ait.permute %0 [1, 0, 2] : !ait.tensor<128 x 64 x 8192 x f16>
  // CHECK-NEXT: %2 = ait.reshape %y : !ait.tensor<128 x 8192 x 64 x f16>
  // CHECK-NEXT: %3 = ait.bmm rrr %1, %2 epilogue() {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32):
  // CHECK-NEXT: ait.yield %{{.*}} : f32
  // CHECK-NEXT: } : !ait.tensor<128 x 64 x 64 x f32>
  // CHECK-NEXT: %[[SUM:.*]] = ait.reduce sum %3 dims [0] : !ait.tensor<64 x 64 x f32>
  // CHECK-NEXT: %[[CAST:.*]] = ait.cast %[[SUM]] : !ait.tensor<64 x 64 x f16>
  // CHECK-NEXT: ait.output "z" %[[CAST]]
  // CARD: ait.bmm rrr
  // CARD: ait.reduce sum %{{[0-9]+}} dims [0] : !ait.tensor<64 x 64 x f32>
  %0 = ait.gemm rrr %x, %y : !ait.tensor<64 x 64 x f16>
  ait.output "z" %0 : !ait.tensor<64 x 64 x f16>
}

// The other layouts, and f32, whose sums are not rounded.

// CHECK-LABEL: ait.graph @columns
ait.graph @columns(%x: !ait.tensor<100000 x m x f32>, %y: !ait.tensor<96 x 100000 x f32>) dims {m = 1 to 128} {
  // CHECK-NEXT: %0 = ait.reshape %x : !ait.tensor<{{[0-9]+}} x {{[0-9]+}} x m x f32>
  // CHECK-NEXT: %1 = ait.reshape %y : !ait.tensor<96 x {{[0-9]+}} x {{[0-9]+}} x f32>
  // CHECK-NEXT: %2 = ait.permute %1 [1, 0, 2]
  // CHECK-NEXT: %3 = ait.bmm ccr %0, %2 epilogue() {
  // CHECK: %[[SUM:.*]] = ait.reduce sum %3 dims [0] : !ait.tensor<m x 96 x f32>
  // CHECK-NEXT: ait.output "z" %[[SUM]]
  %0 = ait.gemm ccr %x, %y : !ait.tensor<m x 96 x f32>
  ait.output "z" %0 : !ait.tensor<m x 96 x f32>
}

// Stay: many tiles, short sums, a prime K, leading dims, a K of a run, a column-major result, an epilogue, a kernel.

// CHECK-LABEL: ait.graph @stay
// CHECK-NOT: ait.bmm
// CARD-LABEL: ait.graph @stay
// CARD-NOT: ait.bmm
ait.graph @stay(%x: !ait.tensor<64 x 65536 x f16>, %y: !ait.tensor<64 x 65536 x f16>, %w: !ait.tensor<8192 x 65536 x f16>, %s: !ait.tensor<64 x 8192 x f16>,
    %p: !ait.tensor<64 x 65537 x f16>, %l: !ait.tensor<2 x 8 x 65536 x f16>, %k: !ait.tensor<64 x k x f16>) dims {k = 1 to 100000} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<64 x 8192 x f16>
  %1 = ait.gemm rcr %s, %s : !ait.tensor<64 x 64 x f16>
  %2 = ait.gemm rcr %p, %p : !ait.tensor<64 x 64 x f16>
  %3 = ait.gemm rcr %l, %y : !ait.tensor<2 x 8 x 64 x f16>
  %4 = ait.gemm rcr %k, %k : !ait.tensor<64 x 64 x f16>
  %5 = ait.gemm rcc %x, %y : !ait.tensor<64 x 64 x f16>
  %6 = ait.gemm rcr %x, %y epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<64 x 64 x f16>
  %7 = ait.gemm rcr %x, %y {kernel = #ait.kernel<"native", {}>} : !ait.tensor<64 x 64 x f16>
  ait.output "a" %0 : !ait.tensor<64 x 8192 x f16>
  ait.output "b" %1 : !ait.tensor<64 x 64 x f16>
  ait.output "c" %2 : !ait.tensor<64 x 64 x f16>
  ait.output "d" %3 : !ait.tensor<2 x 8 x 64 x f16>
  ait.output "e" %4 : !ait.tensor<64 x 64 x f16>
  ait.output "f" %5 : !ait.tensor<64 x 64 x f16>
  ait.output "g" %6 : !ait.tensor<64 x 64 x f16>
  ait.output "h" %7 : !ait.tensor<64 x 64 x f16>
}
