// RUN: ait-opt %s -p simplify | filecheck %s
// RUN: ait-opt %s -p simplify --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// CHECK-LABEL: ait.graph @identities
ait.graph @identities(%x: !ait.tensor<b x 4 x f32>) dims {b = 0 to 8} {
  %0 = ait.reshape %x : !ait.tensor<b x 4 x f32>
  %1 = ait.expand %0 : !ait.tensor<b x 4 x f32>
  %2 = ait.slice %1 offsets [0, 0] : !ait.tensor<b x 4 x f32>
  %3 = ait.permute %2 [0, 1] : !ait.tensor<b x 4 x f32>
  %4 = ait.split %3 dim 0 : !ait.tensor<b x 4 x f32>
  %5 = ait.concat %4 dim 1 : !ait.tensor<b x 4 x f32>
  // CHECK-NEXT: ait.output "y" %x
  ait.output "y" %5 : !ait.tensor<b x 4 x f32>
}

// A transpose of a square is not the identity although its type is.
// CHECK-LABEL: ait.graph @no_identities
ait.graph @no_identities(%x: !ait.tensor<4 x 4 x f32>) {
  // CHECK-NEXT: ait.permute %x [1, 0]
  // CHECK-NEXT: ait.reshape
  // CHECK-NEXT: ait.expand
  // CHECK-NEXT: ait.slice
  %0 = ait.permute %x [1, 0] : !ait.tensor<4 x 4 x f32>
  %1 = ait.reshape %0 : !ait.tensor<1 x 16 x f32>
  %2 = ait.expand %1 : !ait.tensor<3 x 16 x f32>
  %3 = ait.slice %2 offsets [0, 0] : !ait.tensor<3 x 8 x f32>
  ait.output "y" %3 : !ait.tensor<3 x 8 x f32>
}

// CHECK-LABEL: ait.graph @compositions
ait.graph @compositions(%x: !ait.tensor<b x s x 12 x f32>) dims {b = 1 to 8, s = 4 to 16} {
  // CHECK-NEXT: %0 = ait.reshape %x : !ait.tensor<b x s x 3 x 4 x f32>
  %0 = ait.reshape %x : !ait.tensor<(b * s) x 12 x f32>
  %1 = ait.reshape %0 : !ait.tensor<b x s x 3 x 4 x f32>
  // CHECK-NEXT: %1 = ait.permute %0 [2, 0, 3, 1] : !ait.tensor<3 x b x 4 x s x f32>
  %2 = ait.permute %1 [0, 2, 1, 3] : !ait.tensor<b x 3 x s x 4 x f32>
  %3 = ait.permute %2 [1, 0, 3, 2] : !ait.tensor<3 x b x 4 x s x f32>
  // CHECK-NEXT: %2 = ait.slice %1 offsets [1, 0, 1, 3] : !ait.tensor<1 x b x 2 x 1 x f32>
  %4 = ait.slice %3 offsets [1, 0, 0, 1] : !ait.tensor<2 x b x 4 x (s - 1) x f32>
  %5 = ait.slice %4 offsets [0, 0, 1, 2] : !ait.tensor<1 x b x 2 x 1 x f32>
  // CHECK-NEXT: %3 = ait.expand %2 : !ait.tensor<5 x b x 2 x 7 x f32>
  %6 = ait.expand %5 : !ait.tensor<1 x b x 2 x 7 x f32>
  %7 = ait.expand %6 : !ait.tensor<5 x b x 2 x 7 x f32>
  ait.output "y" %7 : !ait.tensor<5 x b x 2 x 7 x f32>
}

// The inner view stays where it has another use.
// CHECK-LABEL: ait.graph @shared_views
ait.graph @shared_views(%x: !ait.tensor<b x 2 x 3 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: %0 = ait.permute %x [2, 0, 1]
  // CHECK-NEXT: %1 = ait.permute %x [1, 2, 0]
  %0 = ait.permute %x [2, 0, 1] : !ait.tensor<3 x b x 2 x f32>
  %1 = ait.permute %0 [2, 0, 1] : !ait.tensor<2 x 3 x b x f32>
  ait.output "y0" %0 : !ait.tensor<3 x b x 2 x f32>
  ait.output "y1" %1 : !ait.tensor<2 x 3 x b x f32>
}

// CHECK-LABEL: ait.graph @inverses
ait.graph @inverses(%x: !ait.tensor<b x 6 x f32>, %z: !ait.tensor<b x 2 x f32>) dims {b = 1 to 8} {
  %0, %1 = ait.split %x dim 1 : !ait.tensor<b x 2 x f32>, !ait.tensor<b x 4 x f32>
  %2 = ait.concat %0, %1 dim 1 : !ait.tensor<b x 6 x f32>
  %3 = ait.concat %z, %2 dim 1 : !ait.tensor<b x 8 x f32>
  %4, %5 = ait.split %3 dim 1 : !ait.tensor<b x 2 x f32>, !ait.tensor<b x 6 x f32>
  // CHECK-NEXT: ait.output "y0" %z
  // CHECK-NEXT: ait.output "y1" %x
  ait.output "y0" %4 : !ait.tensor<b x 2 x f32>
  ait.output "y1" %5 : !ait.tensor<b x 6 x f32>
}

// Parts in another order, another dim, a part of another split, other sizes.
// CHECK-LABEL: ait.graph @no_inverses
ait.graph @no_inverses(%x: !ait.tensor<4 x 4 x f32>, %z: !ait.tensor<4 x 4 x f32>) {
  // CHECK-COUNT-2: ait.split
  %0, %1 = ait.split %x dim 1 : !ait.tensor<4 x 2 x f32>, !ait.tensor<4 x 2 x f32>
  %2, %3 = ait.split %z dim 1 : !ait.tensor<4 x 2 x f32>, !ait.tensor<4 x 2 x f32>
  // CHECK-COUNT-6: ait.concat
  %4 = ait.concat %1, %0 dim 1 : !ait.tensor<4 x 4 x f32>
  %5 = ait.concat %0, %1 dim 0 : !ait.tensor<8 x 2 x f32>
  %6 = ait.concat %0, %3 dim 1 : !ait.tensor<4 x 4 x f32>
  %7 = ait.concat %0, %1, %2 dim 1 : !ait.tensor<4 x 6 x f32>
  %8 = ait.concat %x, %z dim 1 : !ait.tensor<4 x 8 x f32>
  %9 = ait.concat %x, %z dim 0 : !ait.tensor<8 x 4 x f32>
  // CHECK-COUNT-3: ait.split
  %10, %11 = ait.split %8 dim 1 : !ait.tensor<4 x 3 x f32>, !ait.tensor<4 x 5 x f32>
  %12, %13 = ait.split %9 dim 1 : !ait.tensor<8 x 2 x f32>, !ait.tensor<8 x 2 x f32>
  %14, %15, %16 = ait.split %9 dim 0 : !ait.tensor<4 x 4 x f32>, !ait.tensor<2 x 4 x f32>, !ait.tensor<2 x 4 x f32>
  ait.output "y4" %4 : !ait.tensor<4 x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<8 x 2 x f32>
  ait.output "y6" %6 : !ait.tensor<4 x 4 x f32>
  ait.output "y7" %7 : !ait.tensor<4 x 6 x f32>
  ait.output "y10" %10 : !ait.tensor<4 x 3 x f32>
  ait.output "y12" %12 : !ait.tensor<8 x 2 x f32>
  ait.output "y15" %15 : !ait.tensor<2 x 4 x f32>
}

// CHECK-LABEL: ait.graph @transposes
ait.graph @transposes(%x: !ait.tensor<8 x m x f32>, %q: !ait.tensor<b x 5 x 3 x 8 x f32>) dims {m = 1 to 8, b = 1 to 4} {
  %w0 = ait.param "w0" : !ait.tensor<8 x 8 x f32>
  // CHECK: ait.gemm crr %x, %w0
  %0 = ait.permute %x [1, 0] : !ait.tensor<m x 8 x f32>
  %1 = ait.permute %w0 [1, 0] : !ait.tensor<8 x 8 x f32>
  %2 = ait.gemm rcr %0, %1 : !ait.tensor<m x 8 x f32>
  // keys as [batch, heads, size, length], as Hugging Face writes them
  // CHECK-NEXT: [[Q:%.*]] = ait.permute %q [0, 2, 1, 3] : !ait.tensor<b x 3 x 5 x 8 x f32>
  // CHECK-NEXT: [[K:%.*]] = ait.permute %q [0, 2, 1, 3] : !ait.tensor<b x 3 x 5 x 8 x f32>
  // CHECK-NEXT: [[SCORES:%.*]] = ait.bmm rcr [[Q]], [[K]] : !ait.tensor<b x 3 x 5 x 5 x f32>
  %3 = ait.permute %q [0, 2, 1, 3] : !ait.tensor<b x 3 x 5 x 8 x f32>
  %4 = ait.permute %q [0, 2, 3, 1] : !ait.tensor<b x 3 x 8 x 5 x f32>
  %5 = ait.bmm rrr %3, %4 : !ait.tensor<b x 3 x 5 x 5 x f32>
  // CHECK-NEXT: ait.bmm crr [[SCORES]], [[Q]] epilogue() {
  %6 = ait.permute %5 [0, 1, 3, 2] : !ait.tensor<b x 3 x 5 x 5 x f32>
  %7 = ait.bmm rrr %6, %3 epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<b x 3 x 5 x 8 x f32>
  ait.output "y0" %2 : !ait.tensor<m x 8 x f32>
  ait.output "y1" %7 : !ait.tensor<b x 3 x 5 x 8 x f32>
}

// The leading dims of A, a permutation of others than the last two, and what is selected already.
// CHECK-LABEL: ait.graph @no_transposes
ait.graph @no_transposes(%x: !ait.tensor<b x 8 x m x f32>, %z: !ait.tensor<8 x 8 x f32>) dims {m = 1 to 8, b = 1 to 4} {
  %w0 = ait.param "w0" : !ait.tensor<8 x 8 x f32>
  // CHECK: %0 = ait.permute %x [0, 2, 1]
  // CHECK-NEXT: %1 = ait.gemm rcr %0, %w0
  %0 = ait.permute %x [0, 2, 1] : !ait.tensor<b x m x 8 x f32>
  %1 = ait.gemm rcr %0, %w0 : !ait.tensor<b x m x 8 x f32>
  // CHECK-NEXT: %2 = ait.permute %x [1, 0, 2]
  // CHECK-NEXT: %3 = ait.bmm rcr %2, %2
  %2 = ait.permute %x [1, 0, 2] : !ait.tensor<8 x b x m x f32>
  %3 = ait.bmm rcr %2, %2 : !ait.tensor<8 x b x b x f32>
  // CHECK-NEXT: %4 = ait.permute %z [1, 0]
  // CHECK-NEXT: %5 = ait.permute %w0 [1, 0]
  // CHECK-NEXT: ait.gemm rcr %4, %w0
  // CHECK-NEXT: ait.gemm rcr {{.*}}, %5
  // CHECK-NEXT: ait.bmm rcr %4, %w0
  // CHECK-NEXT: ait.bmm rcr {{.*}}, %5
  %4 = ait.permute %z [1, 0] : !ait.tensor<8 x 8 x f32>
  %5 = ait.permute %w0 [1, 0] : !ait.tensor<8 x 8 x f32>
  %6 = ait.gemm rcr %4, %w0 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<8 x 8 x f32>
  %7 = ait.gemm rcr %6, %5 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<8 x 8 x f32>
  %8 = ait.bmm rcr %4, %w0 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<8 x 8 x f32>
  %9 = ait.bmm rcr %8, %5 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<8 x 8 x f32>
  ait.output "y1" %1 : !ait.tensor<b x m x 8 x f32>
  ait.output "y3" %3 : !ait.tensor<8 x b x b x f32>
  ait.output "y7" %7 : !ait.tensor<8 x 8 x f32>
  ait.output "y9" %9 : !ait.tensor<8 x 8 x f32>
}

// An expand that feeds a product stays: it enlarges M.
// CHECK-LABEL: ait.graph @expand_of_rows
ait.graph @expand_of_rows(%x: !ait.tensor<1 x 1 x 64 x f32>, %w: !ait.tensor<4 x 64 x 8 x f32>) {
  // CHECK-NEXT: ait.expand %x
  // CHECK-NEXT: ait.bmm rrr
  %0 = ait.expand %x : !ait.tensor<4 x 16 x 64 x f32>
  %1 = ait.bmm rrr %0, %w : !ait.tensor<4 x 16 x 8 x f32>
  ait.output "y" %1 : !ait.tensor<4 x 16 x 8 x f32>
}

// Products of 8-bit floats read operands whose rows lie along k: a transpose becomes a layout only if they do then.
// CHECK-LABEL: ait.graph @transposes_of_float8
ait.graph @transposes_of_float8(%x: !ait.tensor<64 x m x f8E4M3FN>, %w: !ait.tensor<64 x 24 x f8E4M3FN>, %u: !ait.tensor<m x 64 x f8E4M3FN>) dims {m = 1 to 8} {
  // CHECK: [[V:%.*]] = ait.permute %x [1, 0] : !ait.tensor<m x 64 x f8E4M3FN>
  // CHECK: [[W:%.*]] = ait.permute %w [1, 0] : !ait.tensor<24 x 64 x f8E4M3FN>
  // CHECK: ait.gemm rcr [[V]], [[W]] : !ait.tensor<m x 24 x f32>
  // CHECK: ait.gemm rrr %u, %w : !ait.tensor<m x 24 x f32>
  %v = ait.permute %x [1, 0] : !ait.tensor<m x 64 x f8E4M3FN>
  %t = ait.permute %w [1, 0] : !ait.tensor<24 x 64 x f8E4M3FN>
  %0 = ait.gemm rcr %v, %t : !ait.tensor<m x 24 x f32>
  %1 = ait.permute %u [1, 0] : !ait.tensor<64 x m x f8E4M3FN>
  %2 = ait.gemm crr %1, %w : !ait.tensor<m x 24 x f32>
  ait.output "y" %0 : !ait.tensor<m x 24 x f32>
  ait.output "z" %2 : !ait.tensor<m x 24 x f32>
}

// CHECK-LABEL: ait.graph @transposes_of_float8_batches
ait.graph @transposes_of_float8_batches(%x: !ait.tensor<3 x 64 x m x f8E4M3FN>, %w: !ait.tensor<3 x 64 x 24 x f8E4M3FN>) dims {m = 1 to 8} {
  // CHECK: [[V:%.*]] = ait.permute %x [0, 2, 1] : !ait.tensor<3 x m x 64 x f8E4M3FN>
  // CHECK: [[W:%.*]] = ait.permute %w [0, 2, 1] : !ait.tensor<3 x 24 x 64 x f8E4M3FN>
  // CHECK: ait.bmm rcr [[V]], [[W]] : !ait.tensor<3 x m x 24 x f32>
  %v = ait.permute %x [0, 2, 1] : !ait.tensor<3 x m x 64 x f8E4M3FN>
  %t = ait.permute %w [0, 2, 1] : !ait.tensor<3 x 24 x 64 x f8E4M3FN>
  %0 = ait.bmm rcr %v, %t : !ait.tensor<3 x m x 24 x f32>
  ait.output "y" %0 : !ait.tensor<3 x m x 24 x f32>
}
