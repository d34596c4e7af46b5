// RUN: ait-opt %s -p fold-factors | filecheck %s
// RUN: ait-opt %s -p fold-factors --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// The factor of a convolution may stand on either side; so may biases, factors and offsets of sums.

// CHECK-LABEL: ait.graph @factor_in_front
ait.graph @factor_in_front(%x: !ait.tensor<n x 6 x 5 x 8 x f32>) dims {n = 0 to 4} {
  // CHECK: [[W:%.*]] = ait.mul %w, %{{.*}} : !ait.tensor<6 x 3 x 3 x 8 x f32>
  // CHECK-NEXT: [[Y:%.*]] = ait.conv %x, [[W]]
  // CHECK-NEXT: ait.output "y" [[Y]]
  %w = ait.param "w" : !ait.tensor<6 x 3 x 3 x 8 x f32>
  %s = ait.param "s" : !ait.tensor<6 x f32>
  %0 = ait.conv %x, %w : !ait.tensor<n x 4 x 3 x 6 x f32>
  %1 = ait.mul %s, %0 : !ait.tensor<n x 4 x 3 x 6 x f32>
  ait.output "y" %1 : !ait.tensor<n x 4 x 3 x 6 x f32>
}

// CHECK-LABEL: ait.graph @factor_of_product_in_front
ait.graph @factor_of_product_in_front(%x: !ait.tensor<n x 8 x f32>) dims {n = 0 to 4} {
  // CHECK: [[W:%.*]] = ait.mul %w, %{{.*}} : !ait.tensor<6 x 8 x f32>
  // CHECK-NEXT: [[Y:%.*]] = ait.gemm rcr %x, [[W]]
  // CHECK-NEXT: ait.output "y" [[Y]]
  %w = ait.param "w" : !ait.tensor<6 x 8 x f32>
  %s = ait.param "s" : !ait.tensor<6 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<n x 6 x f32>
  %1 = ait.mul %s, %0 : !ait.tensor<n x 6 x f32>
  ait.output "y" %1 : !ait.tensor<n x 6 x f32>
}

// CHECK-LABEL: ait.graph @offset_in_front
ait.graph @offset_in_front(%x: !ait.tensor<n x 8 x f32>) dims {n = 0 to 4} {
  // CHECK: [[Y:%.*]] = ait.gemm rcr %x, %w
  // CHECK-NEXT: [[T:%.*]] = ait.add %b, %t
  // CHECK-NEXT: ait.add [[Y]], [[T]]
  // CHECK-NEXT: [[Y:%.*]] = ait.gemm rcr %x, %w
  // CHECK-NEXT: [[T:%.*]] = ait.add %b, %t
  // CHECK-NEXT: ait.add [[Y]], [[T]]
  // CHECK-NEXT: ait.output
  %w = ait.param "w" : !ait.tensor<6 x 8 x f32>
  %b = ait.param "b" : !ait.tensor<6 x f32>
  %t = ait.param "t" : !ait.tensor<6 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<n x 6 x f32>
  %1 = ait.add %0, %b : !ait.tensor<n x 6 x f32>
  %2 = ait.add %t, %1 : !ait.tensor<n x 6 x f32>
  %3 = ait.gemm rcr %x, %w : !ait.tensor<n x 6 x f32>
  %4 = ait.add %b, %3 : !ait.tensor<n x 6 x f32>
  %5 = ait.add %4, %t : !ait.tensor<n x 6 x f32>
  ait.output "y" %2 : !ait.tensor<n x 6 x f32>
  ait.output "z" %5 : !ait.tensor<n x 6 x f32>
}

// Convolutions that stay: another user, no row of factors, a factor or a weight that is an input, an epilogue, a kernel.

// CHECK-LABEL: ait.graph @convolutions_that_stay
ait.graph @convolutions_that_stay(%x: !ait.tensor<n x 6 x 5 x 8 x f32>, %v: !ait.tensor<6 x f32>, %u: !ait.tensor<6 x 3 x 3 x 8 x f32>) dims {n = 0 to 4} {
  // CHECK: %0 = ait.conv %x, %w
  // CHECK-NEXT: %1 = ait.mul %0, %s
  // CHECK-NEXT: %2 = ait.conv %x, %w
  // CHECK-NEXT: %3 = ait.mul %2, %one
  // CHECK-NEXT: %4 = ait.conv %x, %w
  // CHECK-NEXT: %5 = ait.mul %4, %v
  // CHECK-NEXT: %6 = ait.conv %x, %u
  // CHECK-NEXT: %7 = ait.mul %6, %s
  // CHECK-NEXT: %8 = ait.conv %x, %w epilogue() {
  // CHECK: %{{.*}} = ait.mul %8, %s
  // CHECK-NEXT: [[Y:%.*]] = ait.conv %x, %w {kernel
  // CHECK-NEXT: ait.mul [[Y]], %s
  %w = ait.param "w" : !ait.tensor<6 x 3 x 3 x 8 x f32>
  %s = ait.param "s" : !ait.tensor<6 x f32>
  %one = ait.param "one" : !ait.tensor<1 x 6 x f32>
  %0 = ait.conv %x, %w : !ait.tensor<n x 4 x 3 x 6 x f32>
  %1 = ait.mul %0, %s : !ait.tensor<n x 4 x 3 x 6 x f32>
  %2 = ait.conv %x, %w : !ait.tensor<n x 4 x 3 x 6 x f32>
  %3 = ait.mul %2, %one : !ait.tensor<n x 4 x 3 x 6 x f32>
  %4 = ait.conv %x, %w : !ait.tensor<n x 4 x 3 x 6 x f32>
  %5 = ait.mul %4, %v : !ait.tensor<n x 4 x 3 x 6 x f32>
  %6 = ait.conv %x, %u : !ait.tensor<n x 4 x 3 x 6 x f32>
  %7 = ait.mul %6, %s : !ait.tensor<n x 4 x 3 x 6 x f32>
  %8 = ait.conv %x, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<n x 4 x 3 x 6 x f32>
  %9 = ait.mul %8, %s : !ait.tensor<n x 4 x 3 x 6 x f32>
  %10 = ait.conv %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<n x 4 x 3 x 6 x f32>
  %11 = ait.mul %10, %s : !ait.tensor<n x 4 x 3 x 6 x f32>
  ait.output "a" %0 : !ait.tensor<n x 4 x 3 x 6 x f32>
  ait.output "b" %1 : !ait.tensor<n x 4 x 3 x 6 x f32>
  ait.output "c" %3 : !ait.tensor<n x 4 x 3 x 6 x f32>
  ait.output "d" %5 : !ait.tensor<n x 4 x 3 x 6 x f32>
  ait.output "e" %7 : !ait.tensor<n x 4 x 3 x 6 x f32>
  ait.output "f" %9 : !ait.tensor<n x 4 x 3 x 6 x f32>
  ait.output "g" %11 : !ait.tensor<n x 4 x 3 x 6 x f32>
}

// The rows of a weight [K, N] are not the columns of the result, even where it is square; what is no product has no bias.

// CHECK-LABEL: ait.graph @other_operations
ait.graph @other_operations(%x: !ait.tensor<n x 6 x f32>) dims {n = 0 to 4} {
  // CHECK: %0 = ait.gemm rrr %x, %w
  // CHECK-NEXT: %1 = ait.mul %0, %s
  // CHECK-NEXT: %2 = ait.relu %x
  // CHECK-NEXT: %3 = ait.add %2, %b
  // CHECK-NEXT: %4 = ait.mul %3, %s
  // CHECK-NEXT: %5 = ait.relu %x
  // CHECK-NEXT: %6 = ait.add %5, %b
  // CHECK-NEXT: %7 = ait.add %6, %s
  %w = ait.param "w" : !ait.tensor<6 x 6 x f32>
  %s = ait.param "s" : !ait.tensor<6 x f32>
  %b = ait.param "b" : !ait.tensor<6 x f32>
  %0 = ait.gemm rrr %x, %w : !ait.tensor<n x 6 x f32>
  %1 = ait.mul %0, %s : !ait.tensor<n x 6 x f32>
  %2 = ait.relu %x : !ait.tensor<n x 6 x f32>
  %3 = ait.add %2, %b : !ait.tensor<n x 6 x f32>
  %4 = ait.mul %3, %s : !ait.tensor<n x 6 x f32>
  %5 = ait.relu %x : !ait.tensor<n x 6 x f32>
  %6 = ait.add %5, %b : !ait.tensor<n x 6 x f32>
  %7 = ait.add %6, %s : !ait.tensor<n x 6 x f32>
  ait.output "a" %1 : !ait.tensor<n x 6 x f32>
  ait.output "b" %4 : !ait.tensor<n x 6 x f32>
  ait.output "c" %7 : !ait.tensor<n x 6 x f32>
}
