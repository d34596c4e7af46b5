// RUN: ait-opt %s -p simplify | filecheck %s
// RUN: ait-opt %s -p simplify --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// In any order of operands; constants of rank 0, of dims of 1, and lists of equal numbers.
// CHECK-LABEL: ait.graph @min_of_max
ait.graph @min_of_max(%x: !ait.tensor<b x 4 x f32>) dims {b = 0 to 8} {
  %a = ait.constant -0.5 : !ait.tensor<f32>
  %b = ait.constant [1.5, 1.5, 1.5, 1.5] : !ait.tensor<4 x f32>
  // CHECK-NEXT: %0 = ait.clamp %x min -0.5 max 1.5 : !ait.tensor<b x 4 x f32>
  %0 = ait.max %x, %a : !ait.tensor<b x 4 x f32>
  %1 = ait.min %0, %b : !ait.tensor<b x 4 x f32>
  // CHECK-NEXT: %1 = ait.clamp %0 min 0.0 max 1.0
  %zero = ait.constant 0.0 : !ait.tensor<1 x f32>
  %one = ait.constant 1.0 : !ait.tensor<f32>
  %2 = ait.max %zero, %1 : !ait.tensor<b x 4 x f32>
  %3 = ait.min %one, %2 : !ait.tensor<b x 4 x f32>
  // CHECK-NEXT: ait.output "y" %1
  ait.output "y" %3 : !ait.tensor<b x 4 x f32>
}

// min(max(x, 2), 1) is 1 wherever x is a number: so is the clamp.
// CHECK-LABEL: ait.graph @crossed
ait.graph @crossed(%x: !ait.tensor<4 x f32>) {
  %a = ait.constant 2.0 : !ait.tensor<f32>
  %b = ait.constant 1.0 : !ait.tensor<f32>
  // CHECK-NEXT: ait.clamp %x min 2.0 max 1.0
  %0 = ait.max %x, %a : !ait.tensor<4 x f32>
  %1 = ait.min %0, %b : !ait.tensor<4 x f32>
  ait.output "y" %1 : !ait.tensor<4 x f32>
}

// A bound is the number as f32: it is not rounded to f16.
// CHECK-LABEL: ait.graph @unrounded
ait.graph @unrounded(%x: !ait.tensor<4 x f16>, %i: !ait.tensor<b x i32>) dims {b = 1 to 8} {
  %a = ait.constant -0.1 : !ait.tensor<f16>
  %b = ait.constant 0.1 : !ait.tensor<f16>
  // CHECK-NEXT: ait.clamp %x min -0.10000000149011612 max 0.10000000149011612
  %0 = ait.max %x, %a : !ait.tensor<4 x f16>
  %1 = ait.min %0, %b : !ait.tensor<4 x f16>
  // CHECK-NEXT: ait.clamp %i min -3 max 7
  %low = ait.constant -3 : !ait.tensor<i32>
  %high = ait.constant 7 : !ait.tensor<i32>
  %2 = ait.min %i, %high : !ait.tensor<b x i32>
  %3 = ait.max %2, %low : !ait.tensor<b x i32>
  ait.output "y" %1 : !ait.tensor<4 x f16>
  ait.output "z" %3 : !ait.tensor<b x i32>
}

// CHECK-LABEL: ait.graph @max_of_min
ait.graph @max_of_min(%x: !ait.tensor<4 x f32>) {
  %a = ait.constant 1.0 : !ait.tensor<f32>
  %b = ait.constant 1.0 : !ait.tensor<f32>
  // CHECK-NEXT: ait.clamp %x min 1.0 max 1.0
  %0 = ait.min %b, %x : !ait.tensor<4 x f32>
  %1 = ait.max %a, %0 : !ait.tensor<4 x f32>
  ait.output "y" %1 : !ait.tensor<4 x f32>
}

// max(min(x, 1), 2) is 2, a clamp would give 1.
// CHECK-LABEL: ait.graph @max_of_min_crossed
ait.graph @max_of_min_crossed(%x: !ait.tensor<4 x f32>) {
  %a = ait.constant 2.0 : !ait.tensor<f32>
  %b = ait.constant 1.0 : !ait.tensor<f32>
  // CHECK: ait.min
  // CHECK-NEXT: ait.max
  %0 = ait.min %x, %b : !ait.tensor<4 x f32>
  %1 = ait.max %0, %a : !ait.tensor<4 x f32>
  ait.output "y" %1 : !ait.tensor<4 x f32>
}

// NaN is no bound: the result is NaN.
// CHECK-LABEL: ait.graph @nan
ait.graph @nan(%x: !ait.tensor<4 x f32>) {
  %nan = ait.constant nan : !ait.tensor<f32>
  %b = ait.constant 1.0 : !ait.tensor<f32>
  // CHECK: ait.max
  // CHECK-NEXT: ait.min
  %0 = ait.max %x, %nan : !ait.tensor<4 x f32>
  %1 = ait.min %0, %b : !ait.tensor<4 x f32>
  // CHECK-NEXT: ait.max
  // CHECK-NEXT: ait.min
  %2 = ait.max %x, %b : !ait.tensor<4 x f32>
  %3 = ait.min %2, %nan : !ait.tensor<4 x f32>
  // CHECK-NEXT: ait.relu
  // CHECK-NEXT: ait.min
  %4 = ait.relu %x : !ait.tensor<4 x f32>
  %5 = ait.min %4, %nan : !ait.tensor<4 x f32>
  // CHECK-NEXT: ait.min
  // CHECK-NEXT: ait.max
  %6 = ait.min %x, %b : !ait.tensor<4 x f32>
  %7 = ait.max %6, %nan : !ait.tensor<4 x f32>
  ait.output "y1" %1 : !ait.tensor<4 x f32>
  ait.output "y3" %3 : !ait.tensor<4 x f32>
  ait.output "y5" %5 : !ait.tensor<4 x f32>
  ait.output "y7" %7 : !ait.tensor<4 x f32>
}

// CHECK-LABEL: ait.graph @booleans
ait.graph @booleans(%x: !ait.tensor<4 x i1>) {
  %a = ait.constant 0 : !ait.tensor<i1>
  %b = ait.constant 1 : !ait.tensor<i1>
  // CHECK: ait.max
  // CHECK-NEXT: ait.min
  // CHECK-NEXT: ait.max
  %0 = ait.max %x, %a : !ait.tensor<4 x i1>
  %1 = ait.min %0, %b : !ait.tensor<4 x i1>
  %2 = ait.max %1, %a : !ait.tensor<4 x i1>
  ait.output "y" %2 : !ait.tensor<4 x i1>
}

// Bounds that are no numbers of the program, or differ from element to element.
// CHECK-LABEL: ait.graph @other_bounds
ait.graph @other_bounds(%x: !ait.tensor<4 x f32>, %s: !ait.tensor<f32>) {
  %b = ait.constant 1.0 : !ait.tensor<f32>
  %list = ait.constant [1.0, 2.0, 3.0, 4.0] : !ait.tensor<4 x f32>
  // CHECK: ait.max
  // CHECK-NEXT: ait.min
  // CHECK-NEXT: ait.max
  // CHECK-NEXT: ait.relu
  // CHECK-NEXT: ait.min
  %0 = ait.max %x, %s : !ait.tensor<4 x f32>
  %1 = ait.min %0, %b : !ait.tensor<4 x f32>
  %2 = ait.max %1, %list : !ait.tensor<4 x f32>
  %3 = ait.relu %2 : !ait.tensor<4 x f32>
  %4 = ait.min %3, %s : !ait.tensor<4 x f32>
  ait.output "y" %4 : !ait.tensor<4 x f32>
}

// A constant may make the result larger than x.
// CHECK-LABEL: ait.graph @larger
ait.graph @larger(%x: !ait.tensor<4 x f32>, %v: !ait.tensor<b x 1 x f32>) dims {b = 1 to 8} {
  %a = ait.constant 0.0 : !ait.tensor<3 x 4 x f32>
  %b = ait.constant 1.0 : !ait.tensor<f32>
  %wide = ait.constant 6.0 : !ait.tensor<2 x f32>
  // CHECK: ait.max
  // CHECK-NEXT: ait.min
  %0 = ait.max %x, %a : !ait.tensor<3 x 4 x f32>
  %1 = ait.min %0, %b : !ait.tensor<3 x 4 x f32>
  // CHECK-NEXT: ait.min
  // CHECK-NEXT: ait.max
  %2 = ait.min %x, %b : !ait.tensor<4 x f32>
  %3 = ait.max %2, %a : !ait.tensor<3 x 4 x f32>
  // CHECK-NEXT: ait.relu
  // CHECK-NEXT: ait.min
  %4 = ait.relu %v : !ait.tensor<b x 1 x f32>
  %5 = ait.min %4, %wide : !ait.tensor<b x 2 x f32>
  ait.output "y" %1 : !ait.tensor<3 x 4 x f32>
  ait.output "z" %3 : !ait.tensor<3 x 4 x f32>
  ait.output "w" %5 : !ait.tensor<b x 2 x f32>
}

// What others use stays.
// CHECK-LABEL: ait.graph @more_uses
ait.graph @more_uses(%x: !ait.tensor<4 x f32>) {
  %a = ait.constant 0.5 : !ait.tensor<f32>
  %b = ait.constant 1.0 : !ait.tensor<f32>
  // CHECK: ait.max
  // CHECK-NEXT: ait.min
  // CHECK-NEXT: ait.min
  // CHECK-NEXT: ait.max
  // CHECK-NEXT: ait.relu
  // CHECK-NEXT: ait.min
  %0 = ait.max %x, %a : !ait.tensor<4 x f32>
  %1 = ait.min %0, %b : !ait.tensor<4 x f32>
  %2 = ait.min %x, %b : !ait.tensor<4 x f32>
  %3 = ait.max %2, %a : !ait.tensor<4 x f32>
  %4 = ait.relu %x : !ait.tensor<4 x f32>
  %5 = ait.min %4, %b : !ait.tensor<4 x f32>
  ait.output "y0" %0 : !ait.tensor<4 x f32>
  ait.output "y1" %1 : !ait.tensor<4 x f32>
  ait.output "y2" %2 : !ait.tensor<4 x f32>
  ait.output "y3" %3 : !ait.tensor<4 x f32>
  ait.output "y4" %4 : !ait.tensor<4 x f32>
  ait.output "y5" %5 : !ait.tensor<4 x f32>
}

// CHECK-LABEL: ait.graph @relu
ait.graph @relu(%x: !ait.tensor<4 x f32>, %i: !ait.tensor<b x i8>) dims {b = 1 to 8} {
  %six = ait.constant 6.0 : !ait.tensor<f32>
  %n = ait.constant 6 : !ait.tensor<i8>
  // CHECK-NEXT: ait.clamp %x min 0.0 max 6.0
  %0 = ait.relu %x : !ait.tensor<4 x f32>
  %1 = ait.min %six, %0 : !ait.tensor<4 x f32>
  // CHECK-NEXT: ait.clamp %i min 0 max 6
  %2 = ait.relu %i : !ait.tensor<b x i8>
  %3 = ait.min %2, %n : !ait.tensor<b x i8>
  // CHECK-NEXT: ait.relu
  %4 = ait.clamp %1 min 0.0 : !ait.tensor<4 x f32>
  // CHECK-NEXT: ait.relu
  %5 = ait.clamp %3 min 0 : !ait.tensor<b x i8>
  // CHECK-NEXT: ait.clamp {{.*}} min 0.0 max 1.0
  %6 = ait.clamp %4 min 0.0 max 1.0 : !ait.tensor<4 x f32>
  // CHECK-NEXT: ait.clamp {{.*}} min -1.0
  %7 = ait.clamp %6 min -1.0 : !ait.tensor<4 x f32>
  ait.output "y" %7 : !ait.tensor<4 x f32>
  ait.output "z" %5 : !ait.tensor<b x i8>
}
