// RUN: ait-opt %s -p group-products | filecheck %s
// RUN: ait-opt %s -p group-products --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// What read the first product stands behind the group.
// CHECK-LABEL: ait.graph @independent
ait.graph @independent(%x: !ait.tensor<4 x 8 x f32>, %z: !ait.tensor<2 x 16 x f32>) {
  %v = ait.param "v" : !ait.tensor<6 x 8 x f32>
  %w = ait.param "w" : !ait.tensor<10 x 16 x f32>
  %b = ait.param "b" : !ait.tensor<6 x f32>
  %c = ait.param "c" : !ait.tensor<10 x f32>
  // CHECK: [[Y:%.*]], [[Z:%.*]] = ait.grouped_gemm rcr %x, %v, %z, %w epilogue(%b, %c)
  // CHECK: ait.softmax [[Y]]
  %0 = ait.gemm rcr %x, %v epilogue(%b) {
  ^bb0(%acc: f32, %bias: f32):
    %s = ait.add %acc, %bias : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 6 x f32>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<4 x 6 x f32>
  %2 = ait.gemm rcr %z, %w epilogue(%c) {
  ^bb0(%acc: f32, %bias: f32):
    %s = ait.add %acc, %bias : f32
    ait.yield %s : f32
  } : !ait.tensor<2 x 10 x f32>
  ait.output "y1" %1 : !ait.tensor<4 x 6 x f32>
  ait.output "y2" %2 : !ait.tensor<2 x 10 x f32>
}

// A grouped product has one result for each product.
// CHECK-LABEL: ait.graph @several_results
ait.graph @several_results(%x: !ait.tensor<4 x 8 x f32>, %z: !ait.tensor<2 x 16 x f32>, %v: !ait.tensor<6 x 8 x f32>, %w: !ait.tensor<10 x 16 x f32>) {
  // CHECK-NOT: ait.grouped_gemm
  // CHECK-COUNT-2: ait.gemm
  %0, %1 = ait.gemm rcr %x, %v epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %acc, %r : f32, f32
  } : !ait.tensor<4 x 6 x f32>, !ait.tensor<4 x 6 x f32>
  %2, %3 = ait.gemm rcr %z, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %acc, %r : f32, f32
  } : !ait.tensor<2 x 10 x f32>, !ait.tensor<2 x 10 x f32>
  ait.output "y0" %0 : !ait.tensor<4 x 6 x f32>
  ait.output "y1" %1 : !ait.tensor<4 x 6 x f32>
  ait.output "y2" %2 : !ait.tensor<2 x 10 x f32>
  ait.output "y3" %3 : !ait.tensor<2 x 10 x f32>
}

// One after another; another layout; another epilogue; a size that is not known; more dims; selected; another operand.
// CHECK-LABEL: ait.graph @single
ait.graph @single(%x: !ait.tensor<4 x 4 x f32>, %d: !ait.tensor<m x 4 x f32>, %t: !ait.tensor<2 x 3 x 4 x f32>) dims {m = 1 to 4} {
  // CHECK-NOT: ait.grouped_gemm
  %w = ait.param "w" : !ait.tensor<4 x 4 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<4 x 4 x f32>
  %1 = ait.gemm rcr %0, %w : !ait.tensor<4 x 4 x f32>
  %2 = ait.gemm rrr %x, %w : !ait.tensor<4 x 4 x f32>
  %3 = ait.gemm rcr %x, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<4 x 4 x f32>
  %4 = ait.gemm rcr %d, %w : !ait.tensor<m x 4 x f32>
  %5 = ait.gemm rcr %t, %w : !ait.tensor<2 x 3 x 4 x f32>
  %6 = ait.gemm rcr %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<4 x 4 x f32>
  %7 = ait.gemm rcr %x, %w epilogue(%x) {
  ^bb0(%acc: f32, %r: f32):
    %s = ait.add %acc, %r : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 4 x f32>
  %8 = ait.gemm rcr %x, %w epilogue(%x) {
  ^bb0(%acc: f32, %r: f32):
    %s = ait.add %acc, %r : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<4 x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<4 x 4 x f32>
  ait.output "y3" %3 : !ait.tensor<4 x 4 x f32>
  ait.output "y4" %4 : !ait.tensor<m x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<2 x 3 x 4 x f32>
  ait.output "y6" %6 : !ait.tensor<4 x 4 x f32>
  ait.output "y7" %7 : !ait.tensor<4 x 4 x f32>
  ait.output "y8" %8 : !ait.tensor<4 x 4 x f32>
}

// Products of 8-bit floats have kernels of their own.
// CHECK-LABEL: ait.graph @float8
ait.graph @float8(%x: !ait.tensor<4 x 16 x f8E4M3FN>, %z: !ait.tensor<4 x 16 x f8E4M3FN>) {
  // CHECK-NOT: ait.grouped_gemm
  // CHECK: ait.output
  %v = ait.param "v" : !ait.tensor<6 x 16 x f8E4M3FN>
  %w = ait.param "w" : !ait.tensor<6 x 16 x f8E4M3FN>
  %0 = ait.gemm rcr %x, %v : !ait.tensor<4 x 6 x f32>
  %1 = ait.gemm rcr %z, %w : !ait.tensor<4 x 6 x f32>
  ait.output "y" %0 : !ait.tensor<4 x 6 x f32>
  ait.output "z" %1 : !ait.tensor<4 x 6 x f32>
}

// So have products that store 8-bit floats.
// CHECK-LABEL: ait.graph @float8_results
ait.graph @float8_results(%x: !ait.tensor<4 x 16 x f16>, %z: !ait.tensor<4 x 16 x f16>) {
  // CHECK-NOT: ait.grouped_gemm
  // CHECK: ait.output
  %v = ait.param "v" : !ait.tensor<6 x 16 x f16>
  %w = ait.param "w" : !ait.tensor<6 x 16 x f16>
  %0 = ait.gemm rcr %x, %v epilogue() {
  ^bb0(%acc: f32):
    %c = ait.clamp %acc min -448.0 max 448.0 : f32
    ait.yield %c : f32
  } : !ait.tensor<4 x 6 x f8E4M3FN>
  %1 = ait.gemm rcr %z, %w epilogue() {
  ^bb0(%acc: f32):
    %c = ait.clamp %acc min -448.0 max 448.0 : f32
    ait.yield %c : f32
  } : !ait.tensor<4 x 6 x f8E4M3FN>
  ait.output "y" %0 : !ait.tensor<4 x 6 x f8E4M3FN>
  ait.output "z" %1 : !ait.tensor<4 x 6 x f8E4M3FN>
}
