// RUN: ait-opt %s -p fuse-epilogue | filecheck %s
// RUN: ait-opt %s -p fuse-epilogue --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// CHECK-LABEL: ait.graph @bias_gelu_residual
ait.graph @bias_gelu_residual(%x: !ait.tensor<b x 4 x f16>, %r: !ait.tensor<b x 8 x f16>) dims {b = 0 to 8} {
  %w = ait.param "w" : !ait.tensor<8 x 4 x f16>
  %c = ait.param "c" : !ait.tensor<8 x f16>
  // CHECK: ait.gemm rcr %x, %w epilogue(%c, %r) {
  // CHECK-NEXT: ^bb0(%acc: f32, [[C:%.*]]: f32, [[R:%.*]]: f32):
  // the order is free: the product comes first
  // CHECK-NEXT: [[S:%.*]] = ait.add %acc, [[C]] : f32
  // CHECK-NEXT: [[G:%.*]] = ait.gelu [[S]] : f32
  // CHECK-NEXT: [[HALF:%.*]] = ait.constant 0.5 : f32
  // CHECK-NEXT: [[M:%.*]] = ait.mul [[G]], [[HALF]] : f32
  // CHECK-NEXT: [[D:%.*]] = ait.sub [[R]], [[M]] : f32
  // CHECK-NEXT: [[E:%.*]] = ait.add [[D]], [[C]] : f32
  // CHECK-NEXT: ait.yield [[E]] : f32
  // CHECK-NEXT: } : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: ait.output
  %half = ait.constant 0.5 : !ait.tensor<f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f16>
  %1 = ait.add %c, %0 : !ait.tensor<b x 8 x f16>
  %2 = ait.gelu %1 : !ait.tensor<b x 8 x f16>
  %3 = ait.mul %2, %half : !ait.tensor<b x 8 x f16>
  %4 = ait.sub %r, %3 : !ait.tensor<b x 8 x f16>
  %5 = ait.add %4, %c : !ait.tensor<b x 8 x f16>
  ait.output "y" %5 : !ait.tensor<b x 8 x f16>
}

// Both operands are the product: nothing of it is lost.
// CHECK-LABEL: ait.graph @twice
ait.graph @twice(%x: !ait.tensor<b x 3 x 4 x f32>, %z: !ait.tensor<b x 5 x 4 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.bmm rcr %x, %z epilogue() {
  // CHECK-NEXT: ^bb0(%acc: f32):
  // CHECK-NEXT: [[S:%.*]] = ait.add %acc, %acc : f32
  // CHECK-NEXT: [[M:%.*]] = ait.mul [[S]], [[S]] : f32
  // CHECK-NEXT: ait.yield [[M]] : f32
  %0 = ait.bmm rcr %x, %z : !ait.tensor<b x 3 x 5 x f32>
  %1 = ait.add %0, %0 : !ait.tensor<b x 3 x 5 x f32>
  %2 = ait.mul %1, %1 : !ait.tensor<b x 3 x 5 x f32>
  ait.output "y" %2 : !ait.tensor<b x 3 x 5 x f32>
}

// (A @ B + C) * k scales the sum.
// CHECK-LABEL: ait.graph @scale_of_sum
ait.graph @scale_of_sum(%x: !ait.tensor<b x 4 x f32>, %c: !ait.tensor<b x 1 x f32>, %k: !ait.tensor<f32>) dims {b = 1 to 8} {
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  // CHECK: ait.gemm rrr %x, %w epilogue(%c, %k) {
  // CHECK-NEXT: ^bb0(%acc: f32, [[C:%.*]]: f32, [[K:%.*]]: f32):
  // CHECK-NEXT: [[S:%.*]] = ait.add %acc, [[C]] : f32
  // CHECK-NEXT: [[M:%.*]] = ait.mul [[S]], [[K]] : f32
  // CHECK-NEXT: ait.yield [[M]] : f32
  %0 = ait.gemm rrr %x, %w : !ait.tensor<b x 8 x f32>
  %1 = ait.add %0, %c : !ait.tensor<b x 8 x f32>
  %2 = ait.mul %1, %k : !ait.tensor<b x 8 x f32>
  ait.output "y" %2 : !ait.tensor<b x 8 x f32>
}

// CHECK-LABEL: ait.graph @where_and_casts
ait.graph @where_and_casts(%x: !ait.tensor<b x 4 x f16>, %c: !ait.tensor<b x 8 x i1>, %z: !ait.tensor<8 x f16>) dims {b = 1 to 8} {
  %w = ait.param "w" : !ait.tensor<4 x 8 x f16>
  // CHECK: ait.gemm rrr %x, %w epilogue(%c, %z) {
  // CHECK-NEXT: ^bb0(%acc: f32, [[C:%.*]]: i1, [[Z:%.*]]: f32):
  // CHECK-NEXT: [[A:%.*]] = ait.where [[C]], %acc, [[Z]] : f32
  // CHECK-NEXT: [[B:%.*]] = ait.where [[C]], [[Z]], [[A]] : f32
  // an explicit cast rounds, also in a region
  // CHECK-NEXT: [[D:%.*]] = ait.cast [[B]] : bf16
  // CHECK-NEXT: [[E:%.*]] = ait.cast [[D]] : f32
  // CHECK-NEXT: [[F:%.*]] = ait.exp [[E]] : f32
  // CHECK-NEXT: ait.yield [[F]] : f32
  // CHECK-NEXT: } : !ait.tensor<b x 8 x f32>
  %0 = ait.gemm rrr %x, %w : !ait.tensor<b x 8 x f16>
  %1 = ait.where %c, %0, %z : !ait.tensor<b x 8 x f16>
  %2 = ait.where %c, %z, %1 : !ait.tensor<b x 8 x f16>
  %3 = ait.cast %2 : !ait.tensor<b x 8 x bf16>
  %4 = ait.cast %3 : !ait.tensor<b x 8 x f32>
  %5 = ait.exp %4 : !ait.tensor<b x 8 x f32>
  ait.output "y" %5 : !ait.tensor<b x 8 x f32>
}

// Of two products that one operation adds, the first takes in the other.
// CHECK-LABEL: ait.graph @two_products
ait.graph @two_products(%x: !ait.tensor<b x 4 x f32>) dims {b = 1 to 8} {
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  %v = ait.param "v" : !ait.tensor<8 x 4 x f32>
  // CHECK: %0 = ait.gemm rcr %x, %v : !ait.tensor<b x 8 x f32>
  // CHECK-NEXT: ait.gemm rrr %x, %w epilogue(%0) {
  %0 = ait.gemm rrr %x, %w : !ait.tensor<b x 8 x f32>
  %1 = ait.gemm rcr %x, %v : !ait.tensor<b x 8 x f32>
  %2 = ait.add %0, %1 : !ait.tensor<b x 8 x f32>
  ait.output "y" %2 : !ait.tensor<b x 8 x f32>
}

// A product with another use stays: in each operand position, as an output, and beside a second user.
// CHECK-LABEL: ait.graph @other_uses
ait.graph @other_uses(%x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<b x 8 x f32>, %c: !ait.tensor<b x 8 x i1>) dims {b = 1 to 8} {
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  // CHECK: %0 = ait.gemm rrr %x, %w : !ait.tensor<b x 8 x f32>
  // CHECK-NEXT: ait.relu
  // CHECK-NEXT: ait.sub
  // CHECK-NEXT: ait.sub
  // CHECK-NEXT: ait.where
  // CHECK-NEXT: ait.where
  // CHECK-NEXT: ait.output
  %0 = ait.gemm rrr %x, %w : !ait.tensor<b x 8 x f32>
  %1 = ait.relu %0 : !ait.tensor<b x 8 x f32>
  %2 = ait.sub %0, %z : !ait.tensor<b x 8 x f32>
  %3 = ait.sub %z, %0 : !ait.tensor<b x 8 x f32>
  %4 = ait.where %c, %0, %z : !ait.tensor<b x 8 x f32>
  %5 = ait.where %c, %z, %0 : !ait.tensor<b x 8 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 8 x f32>
  ait.output "y2" %2 : !ait.tensor<b x 8 x f32>
  ait.output "y3" %3 : !ait.tensor<b x 8 x f32>
  ait.output "y4" %4 : !ait.tensor<b x 8 x f32>
  ait.output "y5" %5 : !ait.tensor<b x 8 x f32>
}

// CHECK-LABEL: ait.graph @output_inside
ait.graph @output_inside(%x: !ait.tensor<b x 4 x f32>) dims {b = 1 to 8} {
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  // CHECK: [[Y:%.*]] = ait.gemm rrr %x, %w : !ait.tensor<b x 8 x f32>
  // CHECK-NEXT: ait.sigmoid [[Y]]
  %0 = ait.gemm rrr %x, %w : !ait.tensor<b x 8 x f32>
  %1 = ait.sigmoid %0 : !ait.tensor<b x 8 x f32>
  ait.output "y0" %0 : !ait.tensor<b x 8 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 8 x f32>
}

// The other operand makes the result larger, in rank or in a dim of 1.
// CHECK-LABEL: ait.graph @broadcast
ait.graph @broadcast(%x: !ait.tensor<1 x 4 x f32>, %z: !ait.tensor<3 x 8 x f32>, %c: !ait.tensor<2 x 1 x 8 x i1>) {
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  // CHECK: %0 = ait.gemm rrr %x, %w : !ait.tensor<1 x 8 x f32>
  // CHECK-NEXT: ait.add
  // CHECK-NEXT: ait.gemm rrr %x, %w : !ait.tensor<1 x 8 x f32>
  // CHECK-NEXT: ait.add
  // CHECK-NEXT: ait.gemm rrr %x, %w : !ait.tensor<1 x 8 x f32>
  // CHECK-NEXT: ait.where
  // CHECK-NEXT: ait.gemm rrr %x, %w : !ait.tensor<1 x 8 x f32>
  // CHECK-NEXT: ait.where
  %0 = ait.gemm rrr %x, %w : !ait.tensor<1 x 8 x f32>
  %1 = ait.add %0, %z : !ait.tensor<3 x 8 x f32>
  %2 = ait.gemm rrr %x, %w : !ait.tensor<1 x 8 x f32>
  %3 = ait.add %1, %2 : !ait.tensor<3 x 8 x f32>
  %4 = ait.gemm rrr %x, %w : !ait.tensor<1 x 8 x f32>
  %5 = ait.where %c, %4, %3 : !ait.tensor<2 x 3 x 8 x f32>
  %6 = ait.gemm rrr %x, %w : !ait.tensor<1 x 8 x f32>
  %7 = ait.where %c, %5, %6 : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y" %7 : !ait.tensor<2 x 3 x 8 x f32>
}

// A product gives floats.
// CHECK-LABEL: ait.graph @no_floats
ait.graph @no_floats(%x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<8 x f32>) dims {b = 1 to 8} {
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  // CHECK: [[A:%.*]] = ait.gemm rrr %x, %w : !ait.tensor<b x 8 x f32>
  // CHECK-NEXT: ait.cast [[A]] : !ait.tensor<b x 8 x i32>
  // CHECK-NEXT: [[B:%.*]] = ait.gemm rrr %x, %w : !ait.tensor<b x 8 x f32>
  // CHECK-NEXT: ait.compare lt [[B]], %z
  // CHECK-NEXT: [[C:%.*]] = ait.gemm rrr %x, %w : !ait.tensor<b x 8 x f32>
  // CHECK-NEXT: ait.compare lt %z, [[C]]
  %0 = ait.gemm rrr %x, %w : !ait.tensor<b x 8 x f32>
  %1 = ait.cast %0 : !ait.tensor<b x 8 x i32>
  %2 = ait.gemm rrr %x, %w : !ait.tensor<b x 8 x f32>
  %3 = ait.compare lt %2, %z : !ait.tensor<b x 8 x i1>
  %4 = ait.gemm rrr %x, %w : !ait.tensor<b x 8 x f32>
  %5 = ait.compare lt %z, %4 : !ait.tensor<b x 8 x i1>
  ait.output "y1" %1 : !ait.tensor<b x 8 x i32>
  ait.output "y3" %3 : !ait.tensor<b x 8 x i1>
  ait.output "y5" %5 : !ait.tensor<b x 8 x i1>
}

// What is selected already stays as it is.
// CHECK-LABEL: ait.graph @selected
ait.graph @selected(%x: !ait.tensor<b x 8 x f32>, %c: !ait.tensor<b x 8 x i1>) dims {b = 1 to 8} {
  %w = ait.param "w" : !ait.tensor<8 x 8 x f32>
  %z = ait.param "z" : !ait.tensor<8 x f32>
  // CHECK: ait.gemm
  // CHECK-NEXT: ait.relu
  // CHECK-NEXT: ait.gemm
  // CHECK-NEXT: ait.add
  // CHECK-NEXT: ait.gemm
  // CHECK-NEXT: ait.add
  // CHECK-NEXT: ait.gemm
  // CHECK-NEXT: ait.where
  // CHECK-NEXT: ait.gemm
  // CHECK-NEXT: ait.where
  %0 = ait.gemm rrr %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 8 x f32>
  %1 = ait.relu %0 : !ait.tensor<b x 8 x f32>
  %2 = ait.gemm rrr %1, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 8 x f32>
  %3 = ait.add %2, %z : !ait.tensor<b x 8 x f32>
  %4 = ait.gemm rrr %3, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 8 x f32>
  %5 = ait.add %z, %4 : !ait.tensor<b x 8 x f32>
  %6 = ait.gemm rrr %5, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 8 x f32>
  %7 = ait.where %c, %6, %z : !ait.tensor<b x 8 x f32>
  %8 = ait.gemm rrr %7, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 8 x f32>
  %9 = ait.where %c, %z, %8 : !ait.tensor<b x 8 x f32>
  ait.output "y" %9 : !ait.tensor<b x 8 x f32>
}

// Only contractions have an epilogue, only elementwise operations join one.
// CHECK-LABEL: ait.graph @other_operations
ait.graph @other_operations(%x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<b x 4 x f32>, %c: !ait.tensor<b x 4 x i1>) dims {b = 1 to 8} {
  %w = ait.param "w" : !ait.tensor<4 x 4 x f32>
  // CHECK: ait.gemm rrr %x, %w : !ait.tensor<b x 4 x f32>
  // CHECK-NEXT: ait.softmax
  // CHECK-NEXT: ait.relu
  // CHECK-NEXT: ait.softmax
  // CHECK-NEXT: ait.add
  // CHECK-NEXT: ait.softmax
  // CHECK-NEXT: ait.add
  // CHECK-NEXT: ait.softmax
  // CHECK-NEXT: ait.where
  // CHECK-NEXT: ait.softmax
  // CHECK-NEXT: ait.where
  // CHECK-NEXT: ait.output
  %0 = ait.gemm rrr %x, %w : !ait.tensor<b x 4 x f32>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<b x 4 x f32>
  %2 = ait.relu %1 : !ait.tensor<b x 4 x f32>
  %3 = ait.softmax %2 dim 1 : !ait.tensor<b x 4 x f32>
  %4 = ait.add %3, %z : !ait.tensor<b x 4 x f32>
  %5 = ait.softmax %4 dim 1 : !ait.tensor<b x 4 x f32>
  %6 = ait.add %z, %5 : !ait.tensor<b x 4 x f32>
  %7 = ait.softmax %6 dim 1 : !ait.tensor<b x 4 x f32>
  %8 = ait.where %c, %7, %z : !ait.tensor<b x 4 x f32>
  %9 = ait.softmax %8 dim 1 : !ait.tensor<b x 4 x f32>
  %10 = ait.where %c, %z, %9 : !ait.tensor<b x 4 x f32>
  ait.output "y" %10 : !ait.tensor<b x 4 x f32>
}

// A product is an operand of another product.
// CHECK-LABEL: ait.graph @no_elementwise
ait.graph @no_elementwise(%x: !ait.tensor<4 x 4 x f32>, %z: !ait.tensor<4 x 4 x f32>) {
  // CHECK-NEXT: %0 = ait.gemm rrr %x, %z : !ait.tensor<4 x 4 x f32>
  // CHECK-NEXT: %1 = ait.gemm rrr %0, %z : !ait.tensor<4 x 4 x f32>
  // CHECK-NEXT: %2 = ait.gemm rrr %x, %1 : !ait.tensor<4 x 4 x f32>
  // CHECK-NEXT: %3 = ait.gemm rrr %x, %2 epilogue(%z) {
  // CHECK: [[Y:%.*]] = ait.gemm rrr %x, %z epilogue(%3) {
  // CHECK: ait.output "y" [[Y]]
  %0 = ait.gemm rrr %x, %z : !ait.tensor<4 x 4 x f32>
  %1 = ait.gemm rrr %0, %z : !ait.tensor<4 x 4 x f32>
  %2 = ait.gemm rrr %x, %1 : !ait.tensor<4 x 4 x f32>
  %3 = ait.gemm rrr %x, %2 epilogue(%z) {
  ^bb0(%acc: f32, %r: f32):
    %s = ait.add %acc, %r : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 4 x f32>
  %4 = ait.gemm rrr %x, %z epilogue(%3) {
  ^bb0(%acc: f32, %r: f32):
    %s = ait.add %acc, %r : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 4 x f32>
  ait.output "y" %4 : !ait.tensor<4 x 4 x f32>
}

// A kernel takes 16 operands; the last add stays.
// CHECK-LABEL: ait.graph @too_many_operands
ait.graph @too_many_operands(%x: !ait.tensor<b x 8 x f32>, %c: !ait.tensor<b x 8 x i1>, %r0: !ait.tensor<b x 8 x f32>, %r1: !ait.tensor<b x 8 x f32>, %r2: !ait.tensor<b x 8 x f32>, %r3: !ait.tensor<b x 8 x f32>, %r4: !ait.tensor<b x 8 x f32>, %r5: !ait.tensor<b x 8 x f32>, %r6: !ait.tensor<b x 8 x f32>, %r7: !ait.tensor<b x 8 x f32>, %r8: !ait.tensor<b x 8 x f32>, %r9: !ait.tensor<b x 8 x f32>, %r10: !ait.tensor<b x 8 x f32>, %r11: !ait.tensor<b x 8 x f32>, %r12: !ait.tensor<b x 8 x f32>, %r13: !ait.tensor<b x 8 x f32>, %r14: !ait.tensor<b x 8 x f32>, %r15: !ait.tensor<b x 8 x f32>) dims {b = 1 to 8} {
  %w = ait.param "w" : !ait.tensor<8 x 8 x f32>
  // CHECK: ait.add [[A:%.*]], %r14 : !ait.tensor<b x 8 x f32>
  // CHECK: ait.add %r14, [[B:%.*]] : !ait.tensor<b x 8 x f32>
  // CHECK: ait.where %c, [[C:%.*]], %r15 : !ait.tensor<b x 8 x f32>
  // CHECK: ait.where %c, %r15, [[D:%.*]] : !ait.tensor<b x 8 x f32>
  %g0 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f32>
  %a0_0 = ait.add %g0, %r0 : !ait.tensor<b x 8 x f32>
  %a0_1 = ait.add %a0_0, %r1 : !ait.tensor<b x 8 x f32>
  %a0_2 = ait.add %a0_1, %r2 : !ait.tensor<b x 8 x f32>
  %a0_3 = ait.add %a0_2, %r3 : !ait.tensor<b x 8 x f32>
  %a0_4 = ait.add %a0_3, %r4 : !ait.tensor<b x 8 x f32>
  %a0_5 = ait.add %a0_4, %r5 : !ait.tensor<b x 8 x f32>
  %a0_6 = ait.add %a0_5, %r6 : !ait.tensor<b x 8 x f32>
  %a0_7 = ait.add %a0_6, %r7 : !ait.tensor<b x 8 x f32>
  %a0_8 = ait.add %a0_7, %r8 : !ait.tensor<b x 8 x f32>
  %a0_9 = ait.add %a0_8, %r9 : !ait.tensor<b x 8 x f32>
  %a0_10 = ait.add %a0_9, %r10 : !ait.tensor<b x 8 x f32>
  %a0_11 = ait.add %a0_10, %r11 : !ait.tensor<b x 8 x f32>
  %a0_12 = ait.add %a0_11, %r12 : !ait.tensor<b x 8 x f32>
  %a0_13 = ait.add %a0_12, %r13 : !ait.tensor<b x 8 x f32>
  %a0_14 = ait.add %a0_13, %r14 : !ait.tensor<b x 8 x f32>
  %g1 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f32>
  %a1_0 = ait.add %r0, %g1 : !ait.tensor<b x 8 x f32>
  %a1_1 = ait.add %r1, %a1_0 : !ait.tensor<b x 8 x f32>
  %a1_2 = ait.add %r2, %a1_1 : !ait.tensor<b x 8 x f32>
  %a1_3 = ait.add %r3, %a1_2 : !ait.tensor<b x 8 x f32>
  %a1_4 = ait.add %r4, %a1_3 : !ait.tensor<b x 8 x f32>
  %a1_5 = ait.add %r5, %a1_4 : !ait.tensor<b x 8 x f32>
  %a1_6 = ait.add %r6, %a1_5 : !ait.tensor<b x 8 x f32>
  %a1_7 = ait.add %r7, %a1_6 : !ait.tensor<b x 8 x f32>
  %a1_8 = ait.add %r8, %a1_7 : !ait.tensor<b x 8 x f32>
  %a1_9 = ait.add %r9, %a1_8 : !ait.tensor<b x 8 x f32>
  %a1_10 = ait.add %r10, %a1_9 : !ait.tensor<b x 8 x f32>
  %a1_11 = ait.add %r11, %a1_10 : !ait.tensor<b x 8 x f32>
  %a1_12 = ait.add %r12, %a1_11 : !ait.tensor<b x 8 x f32>
  %a1_13 = ait.add %r13, %a1_12 : !ait.tensor<b x 8 x f32>
  %a1_14 = ait.add %r14, %a1_13 : !ait.tensor<b x 8 x f32>
  %h0 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f32>
  %b0_0 = ait.add %h0, %r0 : !ait.tensor<b x 8 x f32>
  %b0_1 = ait.add %b0_0, %r1 : !ait.tensor<b x 8 x f32>
  %b0_2 = ait.add %b0_1, %r2 : !ait.tensor<b x 8 x f32>
  %b0_3 = ait.add %b0_2, %r3 : !ait.tensor<b x 8 x f32>
  %b0_4 = ait.add %b0_3, %r4 : !ait.tensor<b x 8 x f32>
  %b0_5 = ait.add %b0_4, %r5 : !ait.tensor<b x 8 x f32>
  %b0_6 = ait.add %b0_5, %r6 : !ait.tensor<b x 8 x f32>
  %b0_7 = ait.add %b0_6, %r7 : !ait.tensor<b x 8 x f32>
  %b0_8 = ait.add %b0_7, %r8 : !ait.tensor<b x 8 x f32>
  %b0_9 = ait.add %b0_8, %r9 : !ait.tensor<b x 8 x f32>
  %b0_10 = ait.add %b0_9, %r10 : !ait.tensor<b x 8 x f32>
  %b0_11 = ait.add %b0_10, %r11 : !ait.tensor<b x 8 x f32>
  %b0_12 = ait.add %b0_11, %r12 : !ait.tensor<b x 8 x f32>
  %b0_13 = ait.add %b0_12, %r13 : !ait.tensor<b x 8 x f32>
  %e0 = ait.where %c, %b0_13, %r15 : !ait.tensor<b x 8 x f32>
  %h1 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f32>
  %b1_0 = ait.add %h1, %r0 : !ait.tensor<b x 8 x f32>
  %b1_1 = ait.add %b1_0, %r1 : !ait.tensor<b x 8 x f32>
  %b1_2 = ait.add %b1_1, %r2 : !ait.tensor<b x 8 x f32>
  %b1_3 = ait.add %b1_2, %r3 : !ait.tensor<b x 8 x f32>
  %b1_4 = ait.add %b1_3, %r4 : !ait.tensor<b x 8 x f32>
  %b1_5 = ait.add %b1_4, %r5 : !ait.tensor<b x 8 x f32>
  %b1_6 = ait.add %b1_5, %r6 : !ait.tensor<b x 8 x f32>
  %b1_7 = ait.add %b1_6, %r7 : !ait.tensor<b x 8 x f32>
  %b1_8 = ait.add %b1_7, %r8 : !ait.tensor<b x 8 x f32>
  %b1_9 = ait.add %b1_8, %r9 : !ait.tensor<b x 8 x f32>
  %b1_10 = ait.add %b1_9, %r10 : !ait.tensor<b x 8 x f32>
  %b1_11 = ait.add %b1_10, %r11 : !ait.tensor<b x 8 x f32>
  %b1_12 = ait.add %b1_11, %r12 : !ait.tensor<b x 8 x f32>
  %b1_13 = ait.add %b1_12, %r13 : !ait.tensor<b x 8 x f32>
  %e1 = ait.where %c, %r15, %b1_13 : !ait.tensor<b x 8 x f32>
  ait.output "y0" %a0_14 : !ait.tensor<b x 8 x f32>
  ait.output "y1" %a1_14 : !ait.tensor<b x 8 x f32>
  ait.output "y2" %e0 : !ait.tensor<b x 8 x f32>
  ait.output "y3" %e1 : !ait.tensor<b x 8 x f32>
}

// An activation that reads the product twice joins as a whole, with what follows it: x * sigmoid(1.702 * x) + r.
// CHECK-LABEL: ait.graph @quick_gelu
ait.graph @quick_gelu(%x: !ait.tensor<b x 4 x f16>, %r: !ait.tensor<b x 8 x f16>) dims {b = 0 to 8} {
  %w = ait.param "w" : !ait.tensor<8 x 4 x f16>
  %c = ait.param "c" : !ait.tensor<8 x f16>
  // CHECK: ait.gemm rcr %x, %w epilogue(%c, %r) {
  // CHECK-NEXT: ^bb0(%acc: f32, [[C:%.*]]: f32, [[R:%.*]]: f32):
  // CHECK-NEXT: [[B:%.*]] = ait.add %acc, [[C]] : f32
  // CHECK-NEXT: [[K:%.*]] = ait.constant 1.70{{.*}} : f32
  // CHECK-NEXT: [[M:%.*]] = ait.mul [[B]], [[K]] : f32
  // CHECK-NEXT: [[S:%.*]] = ait.sigmoid [[M]] : f32
  // CHECK-NEXT: [[G:%.*]] = ait.mul [[B]], [[S]] : f32
  // CHECK-NEXT: [[Y:%.*]] = ait.add [[G]], [[R]] : f32
  // CHECK-NEXT: ait.yield [[Y]] : f32
  // CHECK-NEXT: } : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: ait.output
  %k = ait.constant 1.702 : !ait.tensor<f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f16>
  %1 = ait.add %0, %c : !ait.tensor<b x 8 x f16>
  %2 = ait.mul %1, %k : !ait.tensor<b x 8 x f16>
  %3 = ait.sigmoid %2 : !ait.tensor<b x 8 x f16>
  %4 = ait.mul %1, %3 : !ait.tensor<b x 8 x f16>
  %5 = ait.add %4, %r : !ait.tensor<b x 8 x f16>
  ait.output "y" %5 : !ait.tensor<b x 8 x f16>
}

// What ends it need not read the product itself, may choose, and may widen: where(x > 0, x, exp(x) - 1).
// CHECK-LABEL: ait.graph @elu
ait.graph @elu(%x: !ait.tensor<b x 4 x f16>) dims {b = 1 to 8} {
  %w = ait.param "w" : !ait.tensor<8 x 4 x f16>
  // CHECK: ait.gemm rcr %x, %w epilogue() {
  // CHECK: ait.where
  // CHECK: } : !ait.tensor<b x 8 x f32>
  // CHECK-NEXT: ait.output
  %zero = ait.constant 0.0 : !ait.tensor<f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f16>
  %1 = ait.cast %0 : !ait.tensor<b x 8 x f32>
  %2 = ait.expm1 %1 : !ait.tensor<b x 8 x f32>
  %3 = ait.compare gt %1, %zero : !ait.tensor<b x 8 x i1>
  %4 = ait.where %3, %1, %2 : !ait.tensor<b x 8 x f32>
  ait.output "y" %4 : !ait.tensor<b x 8 x f32>
}

// It stays: part of it is an output, or read by a softmax; it grows; the product is selected; the end is no float.
// CHECK-LABEL: ait.graph @no_group
ait.graph @no_group(%x: !ait.tensor<b x 4 x f32>, %h: !ait.tensor<2 x b x 8 x f32>) dims {b = 1 to 8} {
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  // CHECK-NOT: epilogue
  // CHECK: ait.output
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f32>
  %1 = ait.sigmoid %0 : !ait.tensor<b x 8 x f32>
  %2 = ait.mul %0, %1 : !ait.tensor<b x 8 x f32>
  %3 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f32>
  %4 = ait.exp %3 : !ait.tensor<b x 8 x f32>
  %5 = ait.mul %3, %4 : !ait.tensor<b x 8 x f32>
  %6 = ait.softmax %4 dim 1 : !ait.tensor<b x 8 x f32>
  %7 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f32>
  %8 = ait.mul %7, %h : !ait.tensor<2 x b x 8 x f32>
  %9 = ait.add %7, %8 : !ait.tensor<2 x b x 8 x f32>
  %10 = ait.gemm rcr %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 8 x f32>
  %11 = ait.tanh %10 : !ait.tensor<b x 8 x f32>
  %12 = ait.sub %10, %11 : !ait.tensor<b x 8 x f32>
  %13 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f32>
  %14 = ait.abs %13 : !ait.tensor<b x 8 x f32>
  %15 = ait.compare lt %13, %14 : !ait.tensor<b x 8 x i1>
  ait.output "y0" %1 : !ait.tensor<b x 8 x f32>
  ait.output "y1" %2 : !ait.tensor<b x 8 x f32>
  ait.output "y2" %5 : !ait.tensor<b x 8 x f32>
  ait.output "y3" %6 : !ait.tensor<b x 8 x f32>
  ait.output "y4" %9 : !ait.tensor<2 x b x 8 x f32>
  ait.output "y5" %12 : !ait.tensor<b x 8 x f32>
  ait.output "y6" %15 : !ait.tensor<b x 8 x i1>
}

// A kernel takes 16 operands: the last group stays.
// CHECK-LABEL: ait.graph @too_large_a_group
ait.graph @too_large_a_group(%x: !ait.tensor<b x 4 x f32>, %r0: !ait.tensor<b x 8 x f32>, %r1: !ait.tensor<b x 8 x f32>, %r2: !ait.tensor<b x 8 x f32>, %r3: !ait.tensor<b x 8 x f32>, %r4: !ait.tensor<b x 8 x f32>, %r5: !ait.tensor<b x 8 x f32>, %r6: !ait.tensor<b x 8 x f32>, %r7: !ait.tensor<b x 8 x f32>, %r8: !ait.tensor<b x 8 x f32>, %r9: !ait.tensor<b x 8 x f32>, %r10: !ait.tensor<b x 8 x f32>, %r11: !ait.tensor<b x 8 x f32>, %r12: !ait.tensor<b x 8 x f32>, %r13: !ait.tensor<b x 8 x f32>, %r14: !ait.tensor<b x 8 x f32>) dims {b = 1 to 8} {
  %w = ait.param "w" : !ait.tensor<8 x 4 x f32>
  // CHECK: ait.gemm rcr %x, %w epilogue(%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12) {
  // CHECK: [[A:%.*]] = ait.mul {{%.*}}, %r13 : !ait.tensor
  // CHECK-NEXT: [[B:%.*]] = ait.mul {{%.*}}, %r14 : !ait.tensor
  // CHECK-NEXT: ait.add [[A]], [[B]] : !ait.tensor
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f32>
  %a0 = ait.add %0, %r0 : !ait.tensor<b x 8 x f32>
  %a1 = ait.add %a0, %r1 : !ait.tensor<b x 8 x f32>
  %a2 = ait.add %a1, %r2 : !ait.tensor<b x 8 x f32>
  %a3 = ait.add %a2, %r3 : !ait.tensor<b x 8 x f32>
  %a4 = ait.add %a3, %r4 : !ait.tensor<b x 8 x f32>
  %a5 = ait.add %a4, %r5 : !ait.tensor<b x 8 x f32>
  %a6 = ait.add %a5, %r6 : !ait.tensor<b x 8 x f32>
  %a7 = ait.add %a6, %r7 : !ait.tensor<b x 8 x f32>
  %a8 = ait.add %a7, %r8 : !ait.tensor<b x 8 x f32>
  %a9 = ait.add %a8, %r9 : !ait.tensor<b x 8 x f32>
  %a10 = ait.add %a9, %r10 : !ait.tensor<b x 8 x f32>
  %a11 = ait.add %a10, %r11 : !ait.tensor<b x 8 x f32>
  %a12 = ait.add %a11, %r12 : !ait.tensor<b x 8 x f32>
  %m = ait.mul %a12, %r13 : !ait.tensor<b x 8 x f32>
  %n = ait.mul %a12, %r14 : !ait.tensor<b x 8 x f32>
  %y = ait.add %m, %n : !ait.tensor<b x 8 x f32>
  ait.output "y" %y : !ait.tensor<b x 8 x f32>
}

// What follows a gated product joins what is done with its sums; a row is a bias.
// CHECK-LABEL: ait.graph @after_gate
// CHECK: ait.gated_gemm rcr %x, %w epilogue(%r) {
// CHECK-NEXT: ^bb0([[G:%.*]]: f32, [[U:%.*]]: f32, [[R:%.*]]: f32):
// CHECK-NEXT: [[P:%.*]] = ait.mul [[G]], [[U]] : f32
// CHECK-NEXT: [[S:%.*]] = ait.add [[P]], [[R]] : f32
// CHECK-NEXT: ait.yield [[S]] : f32
ait.graph @after_gate(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>, %r: !ait.tensor<6 x f16>) dims {b = 1 to 8} {
  %0 = ait.gated_gemm rcr %x, %w epilogue() {
  ^bb0(%g: f32, %u: f32):
    %1 = ait.mul %g, %u : f32
    ait.yield %1 : f32
  } : !ait.tensor<b x 6 x f16>
  %2 = ait.add %r, %0 : !ait.tensor<b x 6 x f16>
  ait.output "y" %2 : !ait.tensor<b x 6 x f16>
}

// A convolution joins as a product does.
// CHECK-LABEL: ait.graph @convolution
// CHECK: %0 = ait.conv %x, %w pad [1, 1] epilogue(%b, %r) {
// CHECK-NEXT: ^bb0(%acc: f32, %b_1: f32, %r_1: f32):
// CHECK-NEXT: ait.add %acc, %b_1 : f32
// CHECK-NEXT: ait.add
// CHECK-NEXT: ait.relu
// CHECK: ait.output "y" %0
ait.graph @convolution(%x: !ait.tensor<n x 8 x 8 x 4 x f16>, %w: !ait.tensor<6 x 3 x 3 x 4 x f16>, %b: !ait.tensor<6 x f16>, %r: !ait.tensor<n x 8 x 8 x 6 x f16>) dims {n = 0 to 4} {
  %0 = ait.conv %x, %w pad [1, 1] : !ait.tensor<n x 8 x 8 x 6 x f16>
  %1 = ait.add %0, %b : !ait.tensor<n x 8 x 8 x 6 x f16>
  %2 = ait.add %r, %1 : !ait.tensor<n x 8 x 8 x 6 x f16>
  %3 = ait.relu %2 : !ait.tensor<n x 8 x 8 x 6 x f16>
  ait.output "y" %3 : !ait.tensor<n x 8 x 8 x 6 x f16>
}

// Used twice, or enlarged by the other operand: it stays alone.
// CHECK-LABEL: ait.graph @convolution_alone
// CHECK: ait.conv %x, %w : !ait.tensor<1 x 6 x 6 x 6 x f16>
// CHECK-NEXT: ait.add
ait.graph @convolution_alone(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %w: !ait.tensor<6 x 3 x 3 x 4 x f16>, %r: !ait.tensor<5 x 6 x 6 x 6 x f16>) {
  %0 = ait.conv %x, %w : !ait.tensor<1 x 6 x 6 x 6 x f16>
  %1 = ait.add %0, %r : !ait.tensor<5 x 6 x 6 x 6 x f16>
  ait.output "y" %1 : !ait.tensor<5 x 6 x 6 x 6 x f16>
  ait.output "z" %0 : !ait.tensor<1 x 6 x 6 x 6 x f16>
}

// A group norm takes an activation and a sum as a product does.

// CHECK-LABEL: ait.graph @group_norm_silu_residual
ait.graph @group_norm_silu_residual(%x: !ait.tensor<b x 4 x 8 x f16>, %s: !ait.tensor<8 x f16>, %r: !ait.tensor<b x 4 x 8 x f16>) dims {b = 1 to 8} {
  // CHECK: ait.group_norm %x bias %s dim 2 groups 2 eps 1e-05 epilogue(%r) {
  // CHECK: ait.silu
  // CHECK-NEXT: ait.add
  // CHECK: ait.output
  %0 = ait.group_norm %x bias %s dim 2 groups 2 eps 1e-05 : !ait.tensor<b x 4 x 8 x f16>
  %1 = ait.silu %0 : !ait.tensor<b x 4 x 8 x f16>
  %2 = ait.add %1, %r : !ait.tensor<b x 4 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<b x 4 x 8 x f16>
}

// An operand that was widened is read in its narrow type, and again where the wide value is used elsewhere, too. Casts
// that round or that change the kind of number stay.

// CHECK-LABEL: ait.graph @widened_operand
// CHECK: ait.gemm rcr %x, %w epilogue(%c) {
// CHECK-NEXT: ^bb0(%acc: f32, [[C:%.*]]: f32):
// CHECK-NEXT: ait.add %acc, [[C]] : f32
// CHECK: ait.output "y"
// CHECK: ait.gemm rcr %x, %w epilogue([[ROUNDED:%.*]], [[NUMBERS:%.*]]) {
// CHECK: ait.output "wide"
ait.graph @widened_operand(%x: !ait.tensor<b x 4 x f32>, %w: !ait.tensor<8 x 4 x f32>, %c: !ait.tensor<8 x bf16>, %d: !ait.tensor<8 x f64>, %n: !ait.tensor<8 x i32>) dims {b = 1 to 8} {
  %wide = ait.cast %c : !ait.tensor<8 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f32>
  %1 = ait.add %0, %wide : !ait.tensor<b x 8 x f32>
  ait.output "y" %1 : !ait.tensor<b x 8 x f32>
  %rounded = ait.cast %d : !ait.tensor<8 x f32>
  %numbers = ait.cast %n : !ait.tensor<8 x f32>
  %2 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f32>
  %3 = ait.add %2, %rounded : !ait.tensor<b x 8 x f32>
  %4 = ait.mul %3, %numbers : !ait.tensor<b x 8 x f32>
  ait.output "z" %4 : !ait.tensor<b x 8 x f32>
  ait.output "wide" %wide : !ait.tensor<8 x f32>
}

// A widened operand is read in its narrow type through views, too.

// CHECK-LABEL: ait.graph @view_of_widened_operand
// CHECK: [[V:%.*]] = ait.reshape %c : !ait.tensor<8 x bf16>
// CHECK: ait.gemm rcr %x, %w epilogue([[V]]) {
// CHECK: ait.output "y"
ait.graph @view_of_widened_operand(%x: !ait.tensor<b x 4 x f32>, %w: !ait.tensor<8 x 4 x f32>, %c: !ait.tensor<2 x 4 x bf16>) dims {b = 1 to 8} {
  %wide = ait.cast %c : !ait.tensor<2 x 4 x f32>
  %v = ait.reshape %wide : !ait.tensor<8 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f32>
  %1 = ait.add %0, %v : !ait.tensor<b x 8 x f32>
  ait.output "y" %1 : !ait.tensor<b x 8 x f32>
}

// A cast that rounds stays before each kind of view.

// CHECK-LABEL: ait.graph @view_of_rounding_cast
// CHECK: [[ROUNDED:%.*]] = ait.cast %d : !ait.tensor<1 x 4 x f32>
// CHECK-NEXT: ait.reshape [[ROUNDED]]
// CHECK-NEXT: ait.permute [[ROUNDED]]
// CHECK-NEXT: ait.expand [[ROUNDED]]
// CHECK-NEXT: ait.slice [[ROUNDED]]
// CHECK-NEXT: [[ALONE:%.*]] = ait.cast %d : !ait.tensor<1 x 4 x f32>
// CHECK-NEXT: ait.reshape [[ALONE]]
// CHECK-NEXT: [[ALONE:%.*]] = ait.cast %d : !ait.tensor<1 x 4 x f32>
// CHECK-NEXT: ait.permute [[ALONE]]
// CHECK-NEXT: [[ALONE:%.*]] = ait.cast %d : !ait.tensor<1 x 4 x f32>
// CHECK-NEXT: ait.expand [[ALONE]]
// CHECK-NEXT: [[ALONE:%.*]] = ait.cast %d : !ait.tensor<1 x 4 x f32>
// CHECK-NEXT: ait.slice [[ALONE]]
ait.graph @view_of_rounding_cast(%d: !ait.tensor<1 x 4 x f64>) {
  %0 = ait.cast %d : !ait.tensor<1 x 4 x f32>
  %1 = ait.reshape %0 : !ait.tensor<2 x 2 x f32>
  %2 = ait.permute %0 [1, 0] : !ait.tensor<4 x 1 x f32>
  %3 = ait.expand %0 : !ait.tensor<3 x 4 x f32>
  %4 = ait.slice %0 offsets [0, 1] : !ait.tensor<1 x 2 x f32>
  %5 = ait.cast %d : !ait.tensor<1 x 4 x f32>
  %6 = ait.reshape %5 : !ait.tensor<2 x 2 x f32>
  %7 = ait.cast %d : !ait.tensor<1 x 4 x f32>
  %8 = ait.permute %7 [1, 0] : !ait.tensor<4 x 1 x f32>
  %9 = ait.cast %d : !ait.tensor<1 x 4 x f32>
  %10 = ait.expand %9 : !ait.tensor<3 x 4 x f32>
  %11 = ait.cast %d : !ait.tensor<1 x 4 x f32>
  %12 = ait.slice %11 offsets [0, 1] : !ait.tensor<1 x 2 x f32>
  ait.output "a" %1 : !ait.tensor<2 x 2 x f32>
  ait.output "b" %2 : !ait.tensor<4 x 1 x f32>
  ait.output "c" %3 : !ait.tensor<3 x 4 x f32>
  ait.output "d" %4 : !ait.tensor<1 x 2 x f32>
  ait.output "e" %6 : !ait.tensor<2 x 2 x f32>
  ait.output "f" %8 : !ait.tensor<4 x 1 x f32>
  ait.output "g" %10 : !ait.tensor<3 x 4 x f32>
  ait.output "h" %12 : !ait.tensor<1 x 2 x f32>
}

// So does one that widens and has another user.

// CHECK-LABEL: ait.graph @view_of_shared_cast
// CHECK: [[WIDE:%.*]] = ait.cast %c : !ait.tensor<1 x 4 x f32>
// CHECK-NEXT: ait.reshape [[WIDE]]
// CHECK-NEXT: ait.output
// CHECK: [[WIDE:%.*]] = ait.cast %c : !ait.tensor<1 x 4 x f32>
// CHECK-NEXT: ait.permute [[WIDE]]
// CHECK-NEXT: ait.output
// CHECK: [[WIDE:%.*]] = ait.cast %c : !ait.tensor<1 x 4 x f32>
// CHECK-NEXT: ait.expand [[WIDE]]
// CHECK-NEXT: ait.output
// CHECK: [[WIDE:%.*]] = ait.cast %c : !ait.tensor<1 x 4 x f32>
// CHECK-NEXT: ait.slice [[WIDE]]
// CHECK-NEXT: ait.output
ait.graph @view_of_shared_cast(%c: !ait.tensor<1 x 4 x bf16>) {
  %0 = ait.cast %c : !ait.tensor<1 x 4 x f32>
  %1 = ait.reshape %0 : !ait.tensor<2 x 2 x f32>
  ait.output "a" %1 : !ait.tensor<2 x 2 x f32>
  ait.output "wide1" %0 : !ait.tensor<1 x 4 x f32>
  %2 = ait.cast %c : !ait.tensor<1 x 4 x f32>
  %3 = ait.permute %2 [1, 0] : !ait.tensor<4 x 1 x f32>
  ait.output "b" %3 : !ait.tensor<4 x 1 x f32>
  ait.output "wide2" %2 : !ait.tensor<1 x 4 x f32>
  %4 = ait.cast %c : !ait.tensor<1 x 4 x f32>
  %5 = ait.expand %4 : !ait.tensor<3 x 4 x f32>
  ait.output "c" %5 : !ait.tensor<3 x 4 x f32>
  ait.output "wide3" %4 : !ait.tensor<1 x 4 x f32>
  %6 = ait.cast %c : !ait.tensor<1 x 4 x f32>
  %7 = ait.slice %6 offsets [0, 1] : !ait.tensor<1 x 2 x f32>
  ait.output "d" %7 : !ait.tensor<1 x 2 x f32>
  ait.output "wide4" %6 : !ait.tensor<1 x 4 x f32>
}

// Norms of rows take what follows them, too: an activation, a gate that is their input, factors of each batch, a cast.

// CHECK-LABEL: ait.graph @layer_norm_sigmoid_mul
ait.graph @layer_norm_sigmoid_mul(%x: !ait.tensor<b x 4 x 8 x f16>) dims {b = 0 to 8} {
  // CHECK: ait.layer_norm %x scale %g axes 1 eps 1e-05 epilogue(%x) {
  // CHECK-NEXT: ^bb0(%acc: f32, [[X:%.*]]: f32):
  // CHECK-NEXT: [[S:%.*]] = ait.sigmoid %acc : f32
  // CHECK-NEXT: [[M:%.*]] = ait.mul [[S]], [[X]] : f32
  // CHECK-NEXT: ait.yield [[M]] : f32
  // CHECK-NEXT: } : !ait.tensor<b x 4 x 8 x f16>
  // CHECK-NEXT: ait.output
  %g = ait.param "g" : !ait.tensor<8 x f16>
  %0 = ait.layer_norm %x scale %g axes 1 eps 1e-05 : !ait.tensor<b x 4 x 8 x f16>
  %1 = ait.sigmoid %0 : !ait.tensor<b x 4 x 8 x f16>
  %2 = ait.mul %x, %1 : !ait.tensor<b x 4 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<b x 4 x 8 x f16>
}

// CHECK-LABEL: ait.graph @adaptive_rms_norm
ait.graph @adaptive_rms_norm(%x: !ait.tensor<b x 4 x 8 x f16>, %m: !ait.tensor<b x 1 x 8 x f16>, %a: !ait.tensor<b x 1 x 8 x f16>) dims {b = 1 to 8} {
  // CHECK: ait.rms_norm %x axes 1 eps 1e-05 epilogue(%m, %a) {
  // CHECK: } : !ait.tensor<b x 4 x 8 x f32>
  // CHECK-NEXT: ait.output
  %0 = ait.rms_norm %x axes 1 eps 1e-05 : !ait.tensor<b x 4 x 8 x f16>
  %1 = ait.mul %0, %m : !ait.tensor<b x 4 x 8 x f16>
  %2 = ait.add %1, %a : !ait.tensor<b x 4 x 8 x f16>
  %3 = ait.cast %2 : !ait.tensor<b x 4 x 8 x f32>
  ait.output "y" %3 : !ait.tensor<b x 4 x 8 x f32>
}

// What reads a norm twice joins at once.
// CHECK-LABEL: ait.graph @norm_read_twice
ait.graph @norm_read_twice(%x: !ait.tensor<b x 8 x f16>) dims {b = 1 to 8} {
  // CHECK: ait.layer_norm %x axes 1 eps 1e-05 epilogue() {
  // CHECK-NEXT: ^bb0(%acc: f32):
  // CHECK-NEXT: [[S:%.*]] = ait.sigmoid %acc : f32
  // CHECK-NEXT: ait.mul %acc, [[S]] : f32
  %0 = ait.layer_norm %x axes 1 eps 1e-05 : !ait.tensor<b x 8 x f16>
  %1 = ait.sigmoid %0 : !ait.tensor<b x 8 x f16>
  %2 = ait.mul %0, %1 : !ait.tensor<b x 8 x f16>
  ait.output "y" %2 : !ait.tensor<b x 8 x f16>
}

// Not a norm that others use as well, a result of another shape, one of another type of computation, directly or in a
// group; nor a norm with further results.
// CHECK-LABEL: ait.graph @norm_without_epilogue
ait.graph @norm_without_epilogue(%x: !ait.tensor<4 x 8 x f32>, %r: !ait.tensor<2 x 4 x 8 x f32>) {
  // CHECK-NOT: epilogue
  %0 = ait.layer_norm %x axes 1 eps 1e-05 : !ait.tensor<4 x 8 x f32>
  %1 = ait.relu %0 : !ait.tensor<4 x 8 x f32>
  ait.output "y0" %0 : !ait.tensor<4 x 8 x f32>
  ait.output "y1" %1 : !ait.tensor<4 x 8 x f32>
  %2 = ait.rms_norm %x axes 1 eps 1e-05 : !ait.tensor<4 x 8 x f32>
  %3 = ait.add %2, %r : !ait.tensor<2 x 4 x 8 x f32>
  ait.output "y2" %3 : !ait.tensor<2 x 4 x 8 x f32>
  %4 = ait.rms_norm %x axes 1 eps 1e-06 : !ait.tensor<4 x 8 x f32>
  %5 = ait.cast %4 : !ait.tensor<4 x 8 x f64>
  ait.output "y3" %5 : !ait.tensor<4 x 8 x f64>
  %6 = ait.rms_norm %x axes 1 eps 1e-04 : !ait.tensor<4 x 8 x f32>
  %7 = ait.cast %6 : !ait.tensor<4 x 8 x f64>
  %8 = ait.cast %6 : !ait.tensor<4 x 8 x f64>
  %9 = ait.mul %7, %8 : !ait.tensor<4 x 8 x f64>
  ait.output "y4" %9 : !ait.tensor<4 x 8 x f64>
  %10, %11 = ait.rms_norm %x axes 1 eps 1e-03 prologue(%x) {
  ^bb0(%a: f32, %c: f32):
    %s = ait.add %a, %c : f32
    ait.yield %s, %s : f32, f32
  } : !ait.tensor<4 x 8 x f32>, !ait.tensor<4 x 8 x f32>
  %12 = ait.relu %10 : !ait.tensor<4 x 8 x f32>
  %13 = ait.sigmoid %10 : !ait.tensor<4 x 8 x f32>
  %14 = ait.mul %12, %13 : !ait.tensor<4 x 8 x f32>
  ait.output "y5" %14 : !ait.tensor<4 x 8 x f32>
  ait.output "y6" %11 : !ait.tensor<4 x 8 x f32>
}

// What nothing reads is no reader: neither of the product nor of what its readers compute.
// CHECK-LABEL: ait.graph @dead_readers
ait.graph @dead_readers(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<4 x 8 x f32>
  // CHECK: ait.gemm rcr %x, %w epilogue() {
  // CHECK-NOT: ait.sin
  // CHECK: ait.output
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f32>
  %1 = ait.tanh %0 : !ait.tensor<b x 4 x f32>
  %2 = ait.mul %1, %0 : !ait.tensor<b x 4 x f32>
  %3 = ait.sin %0 : !ait.tensor<b x 4 x f32>
  %4 = ait.sin %1 : !ait.tensor<b x 4 x f32>
  ait.output "y" %2 : !ait.tensor<b x 4 x f32>
}

// Scales, moves and casts join a product of integers; a comparison does not.
// CHECK-LABEL: ait.graph @bytes
ait.graph @bytes(%x: !ait.tensor<b x 4 x i8>, %w: !ait.tensor<8 x 4 x i8>, %z: !ait.tensor<8 x i32>, %s: !ait.tensor<b x 1 x f32>) dims {b = 1 to 8} {
  // CHECK:      ait.gemm rcr %x, %w epilogue(%z, %s) {
  // CHECK-NEXT: ^bb0(%acc: i32, [[Z:%[0-9a-z_]+]]: i32, [[S:%[0-9a-z_]+]]: f32):
  // CHECK-NEXT:   ait.sub %acc, [[Z]] : i32
  // CHECK:        ait.mul
  // CHECK:        ait.cast {{.*}} : i8
  // CHECK:      } : !ait.tensor<b x 8 x i8>
  %p = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x i32>
  %moved = ait.sub %p, %z : !ait.tensor<b x 8 x i32>
  %f = ait.cast %moved : !ait.tensor<b x 8 x f32>
  %scaled = ait.mul %f, %s : !ait.tensor<b x 8 x f32>
  %q = ait.cast %scaled : !ait.tensor<b x 8 x i8>
  ait.output "q" %q : !ait.tensor<b x 8 x i8>
  // CHECK:      %p1 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x i32>
  // CHECK-NEXT: ait.compare lt %p1, %z
  %p1 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x i32>
  %less = ait.compare lt %p1, %z : !ait.tensor<b x 8 x i1>
  ait.output "less" %less : !ait.tensor<b x 8 x i1>
}

// No product stores 8-bit floats.
// CHECK-LABEL: ait.graph @stored_only
ait.graph @stored_only(%a: !ait.tensor<4 x 8 x f32>, %b: !ait.tensor<16 x 8 x f32>) {
  // CHECK: ait.gemm rcr %a, %b : !ait.tensor<4 x 16 x f32>
  // CHECK-NEXT: ait.cast
  %0 = ait.gemm rcr %a, %b : !ait.tensor<4 x 16 x f32>
  %1 = ait.cast %0 : !ait.tensor<4 x 16 x f8E5M2>
  ait.output "y" %1 : !ait.tensor<4 x 16 x f8E5M2>
}

// Kernels have two loops over the batch; an operand that repeats for the dim in the middle of three would need three.
// CHECK-LABEL: ait.graph @batch_in_three_loops
ait.graph @batch_in_three_loops(%x: !ait.tensor<b x 3 x 2 x 4 x 8 x f32>, %y: !ait.tensor<b x 3 x 2 x 8 x 4 x f32>, %c: !ait.tensor<b x 1 x 2 x 4 x 4 x f32>, %d: !ait.tensor<2 x 1 x 4 x f32>) dims {b = 0 to 3} {
  // CHECK:      [[P:%.*]] = ait.bmm rrr %x, %y : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  // CHECK-NEXT: ait.mul [[P]], %c
  %0 = ait.bmm rrr %x, %y : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  %1 = ait.mul %0, %c : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  ait.output "three" %1 : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  // an operand that repeats for the outer dims needs two
  // CHECK:      ait.bmm rrr %x, %y epilogue(%d) {
  // CHECK:      [[S:%.*]] = ait.bmm rrr %x, %y : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  // CHECK-NEXT: [[T:%.*]] = ait.sigmoid [[S]]
  // CHECK-NEXT: [[U:%.*]] = ait.mul [[T]], %c
  // CHECK-NEXT: ait.mul [[S]], [[U]]
  %2 = ait.bmm rrr %x, %y : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  %3 = ait.mul %2, %d : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  ait.output "two" %3 : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  %4 = ait.bmm rrr %x, %y : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  %5 = ait.sigmoid %4 : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  %6 = ait.mul %5, %c : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  %7 = ait.mul %4, %6 : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  ait.output "group" %7 : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
}

// The rows of a product with one matrix are a third loop.
// CHECK-LABEL: ait.graph @rows_in_four_loops
ait.graph @rows_in_four_loops(%x: !ait.tensor<b x 3 x 2 x 4 x 8 x f32>, %w: !ait.tensor<6 x 8 x f32>, %c: !ait.tensor<b x 1 x 2 x 4 x 6 x f32>, %d: !ait.tensor<b x 1 x 2 x 1 x 6 x f32>) dims {b = 0 to 3} {
  // CHECK-NEXT: ait.gemm rcr %x, %w epilogue(%c) {
  // CHECK:      [[P:%.*]] = ait.gemm rcr %x, %w : !ait.tensor<b x 3 x 2 x 4 x 6 x f32>
  // CHECK-NEXT: ait.mul [[P]], %d
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 3 x 2 x 4 x 6 x f32>
  %1 = ait.mul %0, %c : !ait.tensor<b x 3 x 2 x 4 x 6 x f32>
  ait.output "three" %1 : !ait.tensor<b x 3 x 2 x 4 x 6 x f32>
  %2 = ait.gemm rcr %x, %w : !ait.tensor<b x 3 x 2 x 4 x 6 x f32>
  %3 = ait.mul %2, %d : !ait.tensor<b x 3 x 2 x 4 x 6 x f32>
  ait.output "four" %3 : !ait.tensor<b x 3 x 2 x 4 x 6 x f32>
}
