// RUN: ait-opt %s -p simplify | filecheck %s
// RUN: ait-opt %s -p simplify --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// CHECK-LABEL: ait.graph @right_neutral
ait.graph @right_neutral(%x: !ait.tensor<b x 4 x f32>) dims {b = 1 to 8} {
  %zero = ait.constant 0.0 : !ait.tensor<f32>
  %one = ait.constant 1 : !ait.tensor<1 x f32>
  %0 = ait.add %x, %zero : !ait.tensor<b x 4 x f32>
  %1 = ait.sub %0, %zero : !ait.tensor<b x 4 x f32>
  %2 = ait.mul %1, %one : !ait.tensor<b x 4 x f32>
  %3 = ait.div %2, %one : !ait.tensor<b x 4 x f32>
  // CHECK-NEXT: ait.output "y" %x
  ait.output "y" %3 : !ait.tensor<b x 4 x f32>
}

// CHECK-LABEL: ait.graph @left_neutral
ait.graph @left_neutral(%x: !ait.tensor<b x 4 x i32>) dims {b = 1 to 8} {
  %zero = ait.constant [0, 0, 0, 0] : !ait.tensor<4 x i32>
  %one = ait.constant 1 : !ait.tensor<i32>
  %0 = ait.add %zero, %x : !ait.tensor<b x 4 x i32>
  %1 = ait.mul %one, %0 : !ait.tensor<b x 4 x i32>
  // CHECK-NEXT: ait.output "y" %x
  ait.output "y" %1 : !ait.tensor<b x 4 x i32>
}

// 0 - x and 1 / x are no identities.
// CHECK-LABEL: ait.graph @operand_order
ait.graph @operand_order(%x: !ait.tensor<b x 4 x f32>) dims {b = 1 to 8} {
  %zero = ait.constant 0.0 : !ait.tensor<f32>
  %one = ait.constant 1.0 : !ait.tensor<f32>
  // CHECK: ait.sub
  // CHECK-NEXT: ait.div
  %0 = ait.sub %zero, %x : !ait.tensor<b x 4 x f32>
  %1 = ait.div %one, %0 : !ait.tensor<b x 4 x f32>
  ait.output "y" %1 : !ait.tensor<b x 4 x f32>
}

// CHECK-LABEL: ait.graph @other_constants
ait.graph @other_constants(%x: !ait.tensor<4 x f32>) {
  %zero = ait.constant 0.0 : !ait.tensor<f32>
  %one = ait.constant 1.0 : !ait.tensor<f32>
  %mixed = ait.constant [0.0, 0.0, 0.0, 1.0] : !ait.tensor<4 x f32>
  // CHECK: %0 = ait.add %x, %one
  // CHECK-NEXT: %1 = ait.sub %0, %one
  // CHECK-NEXT: %2 = ait.mul %1, %zero
  // CHECK-NEXT: %3 = ait.div %2, %mixed
  // CHECK-NEXT: %4 = ait.add %one, %3
  // CHECK-NEXT: %5 = ait.mul %zero, %4
  // CHECK-NEXT: %6 = ait.add %mixed, %5
  %0 = ait.add %x, %one : !ait.tensor<4 x f32>
  %1 = ait.sub %0, %one : !ait.tensor<4 x f32>
  %2 = ait.mul %1, %zero : !ait.tensor<4 x f32>
  %3 = ait.div %2, %mixed : !ait.tensor<4 x f32>
  %4 = ait.add %one, %3 : !ait.tensor<4 x f32>
  %5 = ait.mul %zero, %4 : !ait.tensor<4 x f32>
  %6 = ait.add %mixed, %5 : !ait.tensor<4 x f32>
  ait.output "y" %6 : !ait.tensor<4 x f32>
}

// The constant makes the result larger than the operand, in rank or in a dim of 1.
// CHECK-LABEL: ait.graph @broadcast
ait.graph @broadcast(%x: !ait.tensor<4 x f32>, %z: !ait.tensor<1 x f32>) {
  %zero = ait.constant 0.0 : !ait.tensor<1 x 4 x f32>
  %one = ait.constant 1.0 : !ait.tensor<1 x 1 x 4 x f32>
  %wide = ait.constant 1.0 : !ait.tensor<3 x 1 x 1 x 4 x f32>
  %more = ait.constant 0.0 : !ait.tensor<1 x 1 x 1 x 1 x 1 x f32>
  %five = ait.constant 0.0 : !ait.tensor<5 x f32>
  %last = ait.constant 1.0 : !ait.tensor<6 x 5 x f32>
  // CHECK: ait.add %x
  // CHECK-NEXT: ait.mul
  // CHECK-NEXT: ait.div
  // CHECK-NEXT: ait.sub
  %0 = ait.add %x, %zero : !ait.tensor<1 x 4 x f32>
  %1 = ait.mul %0, %one : !ait.tensor<1 x 1 x 4 x f32>
  %2 = ait.div %1, %wide : !ait.tensor<3 x 1 x 1 x 4 x f32>
  %3 = ait.sub %2, %more : !ait.tensor<1 x 3 x 1 x 1 x 4 x f32>
  // CHECK-NEXT: ait.add %five, %z
  // CHECK-NEXT: ait.mul %last
  %4 = ait.add %five, %z : !ait.tensor<5 x f32>
  %5 = ait.mul %last, %4 : !ait.tensor<6 x 5 x f32>
  ait.output "y" %3 : !ait.tensor<1 x 3 x 1 x 1 x 4 x f32>
  ait.output "z" %5 : !ait.tensor<6 x 5 x f32>
}

// CHECK-LABEL: ait.graph @unary
ait.graph @unary(%x: !ait.tensor<b x 4 x f32>) dims {b = 0 to 8} {
  %0 = ait.neg %x : !ait.tensor<b x 4 x f32>
  %1 = ait.neg %0 : !ait.tensor<b x 4 x f32>
  // CHECK-NEXT: %0 = ait.relu %x
  %2 = ait.relu %1 : !ait.tensor<b x 4 x f32>
  %3 = ait.relu %2 : !ait.tensor<b x 4 x f32>
  %4 = ait.max %3, %3 : !ait.tensor<b x 4 x f32>
  %5 = ait.min %4, %4 : !ait.tensor<b x 4 x f32>
  // CHECK-NEXT: %1 = ait.exp %0
  // CHECK-NEXT: %2 = ait.exp %1
  %6 = ait.exp %5 : !ait.tensor<b x 4 x f32>
  %7 = ait.exp %6 : !ait.tensor<b x 4 x f32>
  // CHECK-NEXT: %3 = ait.max %2, %1
  // CHECK-NEXT: ait.min %3, %1
  %8 = ait.max %7, %6 : !ait.tensor<b x 4 x f32>
  %9 = ait.min %8, %6 : !ait.tensor<b x 4 x f32>
  ait.output "y" %9 : !ait.tensor<b x 4 x f32>
}

// CHECK-LABEL: ait.graph @where
ait.graph @where(%c: !ait.tensor<3 x 4 x i1>, %x: !ait.tensor<3 x 4 x f32>, %z: !ait.tensor<4 x f32>) {
  // CHECK-NEXT: %0 = ait.where %c, %z, %z
  // CHECK-NEXT: %1 = ait.where %c, %x, %0
  %0 = ait.where %c, %x, %x : !ait.tensor<3 x 4 x f32>
  %1 = ait.where %c, %z, %z : !ait.tensor<3 x 4 x f32>
  %2 = ait.where %c, %0, %1 : !ait.tensor<3 x 4 x f32>
  ait.output "y" %2 : !ait.tensor<3 x 4 x f32>
}

// CHECK-LABEL: ait.graph @casts
ait.graph @casts(%x: !ait.tensor<4 x f16>, %i: !ait.tensor<4 x i32>) {
  %0 = ait.cast %x : !ait.tensor<4 x f16>
  %1 = ait.cast %0 : !ait.tensor<4 x f32>
  // f16 to f32 and back loses nothing
  %2 = ait.cast %1 : !ait.tensor<4 x f16>
  // CHECK-NEXT: %0 = ait.cast %x : !ait.tensor<4 x f64>
  %3 = ait.cast %1 : !ait.tensor<4 x f64>
  // CHECK-NEXT: %1 = ait.cast %x : !ait.tensor<4 x bf16>
  // CHECK-NEXT: %2 = ait.cast %1 : !ait.tensor<4 x f16>
  %4 = ait.cast %2 : !ait.tensor<4 x bf16>
  %5 = ait.cast %4 : !ait.tensor<4 x f16>
  // 25 bits and more do not fit into f32
  // CHECK-NEXT: %3 = ait.cast %i : !ait.tensor<4 x f32>
  // CHECK-NEXT: %4 = ait.cast %3 : !ait.tensor<4 x i32>
  %6 = ait.cast %i : !ait.tensor<4 x f32>
  %7 = ait.cast %6 : !ait.tensor<4 x i32>
  ait.output "y0" %3 : !ait.tensor<4 x f64>
  ait.output "y1" %5 : !ait.tensor<4 x f16>
  ait.output "y2" %7 : !ait.tensor<4 x i32>
}

// CHECK-LABEL: ait.graph @silu
ait.graph @silu(%x: !ait.tensor<b x 4 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: %0 = ait.silu %x
  // CHECK-NEXT: %1 = ait.silu %0
  %0 = ait.sigmoid %x : !ait.tensor<b x 4 x f32>
  %1 = ait.mul %x, %0 : !ait.tensor<b x 4 x f32>
  %2 = ait.sigmoid %1 : !ait.tensor<b x 4 x f32>
  %3 = ait.mul %2, %1 : !ait.tensor<b x 4 x f32>
  ait.output "y" %3 : !ait.tensor<b x 4 x f32>
}

// The sigmoid stays where it has another use, or is that of another value.
// CHECK-LABEL: ait.graph @no_silu
ait.graph @no_silu(%x: !ait.tensor<4 x f32>, %z: !ait.tensor<4 x f32>) {
  // CHECK-NOT: ait.silu
  %0 = ait.sigmoid %x : !ait.tensor<4 x f32>
  %1 = ait.mul %x, %0 : !ait.tensor<4 x f32>
  %2 = ait.sigmoid %z : !ait.tensor<4 x f32>
  %3 = ait.mul %2, %z : !ait.tensor<4 x f32>
  %4 = ait.sigmoid %3 : !ait.tensor<4 x f32>
  %5 = ait.mul %x, %4 : !ait.tensor<4 x f32>
  %6 = ait.sigmoid %5 : !ait.tensor<4 x f32>
  %7 = ait.mul %6, %x : !ait.tensor<4 x f32>
  // CHECK: ait.output "y0"
  ait.output "y0" %0 : !ait.tensor<4 x f32>
  ait.output "y1" %1 : !ait.tensor<4 x f32>
  ait.output "y2" %2 : !ait.tensor<4 x f32>
  ait.output "y3" %7 : !ait.tensor<4 x f32>
}

// An operation that nothing uses goes, an output stays.
// CHECK-LABEL: ait.graph @dead
ait.graph @dead(%x: !ait.tensor<4 x f32>) {
  // CHECK-NEXT: ait.output "y" %x
  // CHECK-NEXT: }
  %w = ait.param "w" : !ait.tensor<4 x f32>
  %0 = ait.add %x, %w : !ait.tensor<4 x f32>
  %1 = ait.exp %0 : !ait.tensor<4 x f32>
  ait.output "y" %x : !ait.tensor<4 x f32>
}

// CHECK-LABEL: ait.graph @powers
ait.graph @powers(%x: !ait.tensor<b x 4 x f32>) dims {b = 1 to 8} {
  %one = ait.constant 1.0 : !ait.tensor<f32>
  %two = ait.constant 2.0 : !ait.tensor<1 x f32>
  // CHECK-NEXT: [[S:%.*]] = ait.mul %x, %x : !ait.tensor<b x 4 x f32>
  // CHECK-NEXT: ait.output "y" [[S]]
  %0 = ait.pow %x, %one : !ait.tensor<b x 4 x f32>
  %1 = ait.pow %0, %two : !ait.tensor<b x 4 x f32>
  ait.output "y" %1 : !ait.tensor<b x 4 x f32>
}

// Other powers, and powers of a larger shape.
// CHECK-LABEL: ait.graph @no_powers
ait.graph @no_powers(%x: !ait.tensor<4 x f32>) {
  %three = ait.constant 3.0 : !ait.tensor<f32>
  %ones = ait.constant 1.0 : !ait.tensor<3 x 4 x f32>
  %twos = ait.constant 2.0 : !ait.tensor<3 x 4 x f32>
  // CHECK: %0 = ait.pow %x, %three
  // CHECK-NEXT: %1 = ait.pow %0, %ones
  // CHECK-NEXT: %2 = ait.pow %0, %twos
  %0 = ait.pow %x, %three : !ait.tensor<4 x f32>
  %1 = ait.pow %0, %ones : !ait.tensor<3 x 4 x f32>
  %2 = ait.pow %0, %twos : !ait.tensor<3 x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<3 x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<3 x 4 x f32>
}
