// RUN: ait-opt %s -p simplify --check-semantics | filecheck %s
// RUN: ait-opt %s -p fold-factors --check-semantics | filecheck %s --check-prefix=FACTORS

// A window of one element is a product at each place.

// CHECK-LABEL: ait.graph @point
ait.graph @point(%x: !ait.tensor<n x h x 5 x 8 x f16>, %w: !ait.tensor<6 x 1 x 1 x 8 x f16>) dims {n = 0 to 4, h = 1 to 8} {
  // CHECK-NEXT: %0 = ait.reshape %w : !ait.tensor<6 x 8 x f16>
  // CHECK-NEXT: %1 = ait.gemm rcr %x, %0 : !ait.tensor<n x h x 5 x 6 x f16>
  %0 = ait.conv %x, %w dilation [2, 2] : !ait.tensor<n x h x 5 x 6 x f16>
  ait.output "y" %0 : !ait.tensor<n x h x 5 x 6 x f16>
}

// Steps, pads, groups, larger windows, an epilogue and a kernel that is chosen stay.

// CHECK-LABEL: ait.graph @points_that_stay
// CHECK-NOT: ait.gemm
// CHECK: ait.output "f"
ait.graph @points_that_stay(%x: !ait.tensor<n x 6 x 5 x 8 x f16>, %w: !ait.tensor<6 x 1 x 1 x 8 x f16>, %g: !ait.tensor<6 x 1 x 1 x 4 x f16>, %v: !ait.tensor<6 x 1 x 2 x 8 x f16>) dims {n = 0 to 4} {
  %0 = ait.conv %x, %w stride [2, 1] : !ait.tensor<n x 3 x 5 x 6 x f16>
  %1 = ait.conv %x, %w pad [0, 1] : !ait.tensor<n x 6 x 7 x 6 x f16>
  %2 = ait.conv %x, %g groups 2 : !ait.tensor<n x 6 x 5 x 6 x f16>
  %3 = ait.conv %x, %v : !ait.tensor<n x 6 x 4 x 6 x f16>
  %4 = ait.conv %x, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<n x 6 x 5 x 6 x f16>
  %5 = ait.conv %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<n x 6 x 5 x 6 x f16>
  %6 = ait.conv %x, %w transposed dilation [2, 1] output_pad [1, 0] : !ait.tensor<n x 7 x 5 x 6 x f16>
  ait.output "a" %0 : !ait.tensor<n x 3 x 5 x 6 x f16>
  ait.output "b" %1 : !ait.tensor<n x 6 x 7 x 6 x f16>
  ait.output "c" %2 : !ait.tensor<n x 6 x 5 x 6 x f16>
  ait.output "d" %3 : !ait.tensor<n x 6 x 4 x 6 x f16>
  ait.output "e" %4 : !ait.tensor<n x 6 x 5 x 6 x f16>
  ait.output "g" %5 : !ait.tensor<n x 6 x 5 x 6 x f16>
  ait.output "f" %6 : !ait.tensor<n x 7 x 5 x 6 x f16>
}

// A batch norm behind a convolution: (conv(x, w) + b) * s + t = conv(x, w * s) + (b * s + t).

// FACTORS-LABEL: ait.graph @batch_norm
ait.graph @batch_norm(%x: !ait.tensor<n x 6 x 5 x 8 x f16>) dims {n = 0 to 4} {
  // FACTORS: %0 = ait.sigmoid %s : !ait.tensor<6 x f16>
  // FACTORS: %[[C:.*]] = ait.reshape %0 : !ait.tensor<6 x 1 x 1 x 1 x f16>
  // FACTORS: %[[W:.*]] = ait.mul %w, %[[C]]
  // FACTORS: %[[Y:.*]] = ait.conv %x, %[[W]] pad [0, 1]
  // FACTORS: %[[B:.*]] = ait.mul %b, %0
  // FACTORS: %[[T:.*]] = ait.add %[[B]], %t
  // FACTORS: %[[Z:.*]] = ait.add %[[Y]], %[[T]]
  // FACTORS: ait.output "y" %[[Z]]
  %w = ait.param "window" : !ait.tensor<6 x 3 x 3 x 8 x f16>
  %b = ait.param "b" : !ait.tensor<6 x f16>
  %s = ait.param "s" : !ait.tensor<6 x f16>
  %t = ait.param "t" : !ait.tensor<6 x f16>
  %0 = ait.sigmoid %s : !ait.tensor<6 x f16>
  %1 = ait.conv %x, %w pad [0, 1] : !ait.tensor<n x 4 x 5 x 6 x f16>
  %2 = ait.add %b, %1 : !ait.tensor<n x 4 x 5 x 6 x f16>
  %3 = ait.mul %0, %2 : !ait.tensor<n x 4 x 5 x 6 x f16>
  %4 = ait.add %3, %t : !ait.tensor<n x 4 x 5 x 6 x f16>
  ait.output "y" %4 : !ait.tensor<n x 4 x 5 x 6 x f16>
}

// FACTORS-LABEL: ait.graph @product
ait.graph @product(%x: !ait.tensor<n x 8 x f16>) dims {n = 0 to 4} {
  // FACTORS: %0 = ait.reshape %s : !ait.tensor<6 x 1 x f16>
  // FACTORS-NEXT: %1 = ait.mul %w, %0
  // FACTORS-NEXT: %2 = ait.gemm rcr %x, %1
  // FACTORS-NEXT: ait.output "y" %2
  %w = ait.param "w" : !ait.tensor<6 x 8 x f16>
  %s = ait.param "s" : !ait.tensor<6 x f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<n x 6 x f16>
  %1 = ait.mul %0, %s : !ait.tensor<n x 6 x f16>
  ait.output "y" %1 : !ait.tensor<n x 6 x f16>
}

// ** what stays: a second use, no row, no params, an epilogue, a kernel that is chosen **

// FACTORS-LABEL: ait.graph @stays
// FACTORS: ait.mul %{{.*}}, %s
// FACTORS: ait.mul %{{.*}}, %one
// FACTORS: ait.mul %{{.*}}, %v
// FACTORS: ait.mul %{{.*}}, %s
// FACTORS: ait.mul %{{.*}}, %s
// FACTORS: ait.mul %{{.*}}, %s
// FACTORS: ait.output "a"
ait.graph @stays(%x: !ait.tensor<n x 8 x f16>, %v: !ait.tensor<6 x f16>, %u: !ait.tensor<6 x 8 x f16>) dims {n = 0 to 4} {
  %w = ait.param "w" : !ait.tensor<6 x 8 x f16>
  %s = ait.param "s" : !ait.tensor<6 x f16>
  %one = ait.param "one" : !ait.tensor<1 x 6 x f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<n x 6 x f16>
  %1 = ait.mul %0, %s : !ait.tensor<n x 6 x f16>
  %2 = ait.gemm rcr %x, %w : !ait.tensor<n x 6 x f16>
  %3 = ait.mul %2, %one : !ait.tensor<n x 6 x f16>
  %4 = ait.gemm rcr %x, %w : !ait.tensor<n x 6 x f16>
  %5 = ait.mul %4, %v : !ait.tensor<n x 6 x f16>
  %6 = ait.gemm rcr %x, %u : !ait.tensor<n x 6 x f16>
  %7 = ait.mul %6, %s : !ait.tensor<n x 6 x f16>
  %8 = ait.gemm rcr %x, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<n x 6 x f16>
  %9 = ait.mul %8, %s : !ait.tensor<n x 6 x f16>
  %10 = ait.gemm rcr %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<n x 6 x f16>
  %11 = ait.mul %10, %s : !ait.tensor<n x 6 x f16>
  ait.output "a" %1 : !ait.tensor<n x 6 x f16>
  ait.output "b" %0 : !ait.tensor<n x 6 x f16>
  ait.output "c" %3 : !ait.tensor<n x 6 x f16>
  ait.output "d" %5 : !ait.tensor<n x 6 x f16>
  ait.output "e" %7 : !ait.tensor<n x 6 x f16>
  ait.output "f" %9 : !ait.tensor<n x 6 x f16>
  ait.output "g" %11 : !ait.tensor<n x 6 x f16>
}

// Sums that have a second use, or an operand that is no row or does not follow from params.

// FACTORS-LABEL: ait.graph @sums_that_stay
ait.graph @sums_that_stay(%x: !ait.tensor<n x 8 x f16>, %v: !ait.tensor<6 x f16>) dims {n = 0 to 4} {
  %w = ait.param "w" : !ait.tensor<6 x 8 x f16>
  %s = ait.param "s" : !ait.tensor<6 x f16>
  %one = ait.param "one" : !ait.tensor<1 x 6 x f16>
  // FACTORS: %0 = ait.gemm rcr %x, %w
  // FACTORS-NEXT: %1 = ait.add %0, %s
  // FACTORS-NEXT: %2 = ait.mul %1, %s
  // FACTORS-NEXT: %3 = ait.add %1, %s
  // FACTORS-NEXT: %4 = ait.add %0, %v
  // FACTORS-NEXT: %5 = ait.mul %4, %s
  // FACTORS-NEXT: %6 = ait.add %0, %one
  // FACTORS-NEXT: %7 = ait.mul %6, %s
  // FACTORS-NEXT: %8 = ait.add %0, %s
  // FACTORS-NEXT: %9 = ait.mul %8, %v
  // FACTORS-NEXT: %10 = ait.add %0, %s
  // FACTORS-NEXT: %11 = ait.mul %10, %one
  // FACTORS-NEXT: %12 = ait.add %0, %v
  // FACTORS-NEXT: %13 = ait.add %12, %s
  // FACTORS-NEXT: %14 = ait.add %0, %one
  // FACTORS-NEXT: %15 = ait.add %14, %s
  // FACTORS-NEXT: %16 = ait.add %0, %s
  // FACTORS-NEXT: %17 = ait.add %16, %v
  // FACTORS-NEXT: %18 = ait.add %0, %s
  // FACTORS-NEXT: %19 = ait.add %18, %one
  %0 = ait.gemm rcr %x, %w : !ait.tensor<n x 6 x f16>
  %1 = ait.add %0, %s : !ait.tensor<n x 6 x f16>
  %2 = ait.mul %1, %s : !ait.tensor<n x 6 x f16>
  %3 = ait.add %1, %s : !ait.tensor<n x 6 x f16>
  %4 = ait.add %0, %v : !ait.tensor<n x 6 x f16>
  %5 = ait.mul %4, %s : !ait.tensor<n x 6 x f16>
  %6 = ait.add %0, %one : !ait.tensor<n x 6 x f16>
  %7 = ait.mul %6, %s : !ait.tensor<n x 6 x f16>
  %8 = ait.add %0, %s : !ait.tensor<n x 6 x f16>
  %9 = ait.mul %8, %v : !ait.tensor<n x 6 x f16>
  %10 = ait.add %0, %s : !ait.tensor<n x 6 x f16>
  %11 = ait.mul %10, %one : !ait.tensor<n x 6 x f16>
  %12 = ait.add %0, %v : !ait.tensor<n x 6 x f16>
  %13 = ait.add %12, %s : !ait.tensor<n x 6 x f16>
  %14 = ait.add %0, %one : !ait.tensor<n x 6 x f16>
  %15 = ait.add %14, %s : !ait.tensor<n x 6 x f16>
  %16 = ait.add %0, %s : !ait.tensor<n x 6 x f16>
  %17 = ait.add %16, %v : !ait.tensor<n x 6 x f16>
  %18 = ait.add %0, %s : !ait.tensor<n x 6 x f16>
  %19 = ait.add %18, %one : !ait.tensor<n x 6 x f16>
  ait.output "a" %2 : !ait.tensor<n x 6 x f16>
  ait.output "b" %3 : !ait.tensor<n x 6 x f16>
  ait.output "c" %5 : !ait.tensor<n x 6 x f16>
  ait.output "d" %7 : !ait.tensor<n x 6 x f16>
  ait.output "e" %9 : !ait.tensor<n x 6 x f16>
  ait.output "f" %11 : !ait.tensor<n x 6 x f16>
  ait.output "g" %13 : !ait.tensor<n x 6 x f16>
  ait.output "h" %15 : !ait.tensor<n x 6 x f16>
  ait.output "i" %17 : !ait.tensor<n x 6 x f16>
  ait.output "j" %19 : !ait.tensor<n x 6 x f16>
}
