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

// A K without divisors: what equal parts leave is a product of its own.

// CHECK-LABEL: ait.graph @rest
// CARD-LABEL: ait.graph @rest
ait.graph @rest(%x: !ait.tensor<422942 x 128 x f16>, %y: !ait.tensor<422942 x 8 x f16>) {
  // CHECK-NEXT: %0 = ait.slice %x offsets [0, 0] : !ait.tensor<422928 x 128 x f16>
  // CHECK-NEXT: %1 = ait.reshape %0 : !ait.tensor<66 x 6408 x 128 x f16>
  // CHECK-NEXT: %2 = ait.slice %y offsets [0, 0] : !ait.tensor<422928 x 8 x f16>
  // CHECK-NEXT: %3 = ait.reshape %2 : !ait.tensor<66 x 6408 x 8 x f16>
  // CHECK-NEXT: %4 = ait.bmm crr %1, %3 epilogue() {
  // CHECK: %[[SUM:.*]] = ait.reduce sum %4 dims [0] : !ait.tensor<128 x 8 x f32>
  // CHECK-NEXT: %[[A:.*]] = ait.slice %x offsets [422928, 0] : !ait.tensor<14 x 128 x f16>
  // CHECK-NEXT: %[[B:.*]] = ait.slice %y offsets [422928, 0] : !ait.tensor<14 x 8 x f16>
  // CHECK-NEXT: %[[REST:.*]] = ait.gemm crr %[[A]], %[[B]] epilogue() {
  // CHECK: %[[ALL:.*]] = ait.add %[[SUM]], %[[REST]] : !ait.tensor<128 x 8 x f32>
  // CHECK-NEXT: %[[CAST:.*]] = ait.cast %[[ALL]] : !ait.tensor<128 x 8 x f16>
  // CHECK-NEXT: ait.output "z" %[[CAST]]
  // CARD: ait.bmm crr
  %0 = ait.gemm crr %x, %y : !ait.tensor<128 x 8 x f16>
  ait.output "z" %0 : !ait.tensor<128 x 8 x f16>
}

// Rows of a multiple of 8 elements: the rest starts on 16 bytes, too.

// CHECK-LABEL: ait.graph @rest_of_rows
ait.graph @rest_of_rows(%x: !ait.tensor<24 x 18488 x f32>, %y: !ait.tensor<16 x 18488 x f32>) {
  // CHECK-NEXT: %0 = ait.slice %x offsets [0, 0] : !ait.tensor<24 x 17952 x f32>
  // CHECK-NEXT: %1 = ait.reshape %0 : !ait.tensor<24 x 132 x 136 x f32>
  // CHECK: %[[SUM:.*]] = ait.reduce sum %{{[0-9]+}} dims [0] : !ait.tensor<24 x 16 x f32>
  // CHECK-NEXT: %[[A:.*]] = ait.slice %x offsets [0, 17952] : !ait.tensor<24 x 536 x f32>
  // CHECK-NEXT: %[[B:.*]] = ait.slice %y offsets [0, 17952] : !ait.tensor<16 x 536 x f32>
  // CHECK-NEXT: %[[REST:.*]] = ait.gemm rcr %[[A]], %[[B]] epilogue() {
  // CHECK: %[[ALL:.*]] = ait.add %[[SUM]], %[[REST]]
  // CHECK-NEXT: ait.output "z" %[[ALL]]
  %0 = ait.gemm rcr %x, %y : !ait.tensor<24 x 16 x f32>
  ait.output "z" %0 : !ait.tensor<24 x 16 x f32>
}

// Rows off 16 bytes are filled up with zeros, and no rest is left; wide elements may start anywhere.

// CHECK-LABEL: ait.graph @filled
// CARD-LABEL: ait.graph @filled
ait.graph @filled(%x: !ait.tensor<33 x 426361 x f16>, %y: !ait.tensor<64 x 426361 x f16>, %v: !ait.tensor<16 x 594078 x f32>, %w: !ait.tensor<8 x 594078 x f32>) {
  // CHECK-NEXT: %0 = ait.pad constant %x before [0, 0] : !ait.tensor<33 x 426624 x f16>
  // CHECK-NEXT: %1 = ait.reshape %0 : !ait.tensor<33 x 132 x 3232 x f16>
  // CHECK: ait.pad constant %y before [0, 0] : !ait.tensor<64 x 426624 x f16>
  // CHECK: ait.reduce sum
  // CHECK-NEXT: ait.cast
  // CHECK-NEXT: ait.slice %v
  // CARD: ait.bmm rcr
  // CARD: ait.bmm rcr
  %0 = ait.gemm rcr %x, %y : !ait.tensor<33 x 64 x f16>
  %1 = ait.gemm rcr %v, %w : !ait.tensor<16 x 8 x f32>
  ait.output "z" %0 : !ait.tensor<33 x 64 x f16>
  ait.output "u" %1 : !ait.tensor<16 x 8 x f32>
}

// Stay: many tiles, short sums, leading dims, a K of a run, a column-major result, an epilogue, a kernel.

// CHECK-LABEL: ait.graph @stay
// CHECK-NOT: ait.bmm
// CARD-LABEL: ait.graph @stay
// CARD-NOT: ait.bmm
ait.graph @stay(%x: !ait.tensor<64 x 65536 x f16>, %y: !ait.tensor<64 x 65536 x f16>, %w: !ait.tensor<8192 x 65536 x f16>, %s: !ait.tensor<64 x 8192 x f16>,
    %l: !ait.tensor<2 x 8 x 65536 x f16>, %k: !ait.tensor<64 x k x f16>) dims {k = 1 to 100000} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<64 x 8192 x f16>
  %1 = ait.gemm rcr %s, %s : !ait.tensor<64 x 64 x f16>
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
  ait.output "d" %3 : !ait.tensor<2 x 8 x 64 x f16>
  ait.output "e" %4 : !ait.tensor<64 x 64 x f16>
  ait.output "f" %5 : !ait.tensor<64 x 64 x f16>
  ait.output "g" %6 : !ait.tensor<64 x 64 x f16>
  ait.output "h" %7 : !ait.tensor<64 x 64 x f16>
}
