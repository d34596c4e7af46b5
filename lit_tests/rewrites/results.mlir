// RUN: ait-opt %s -p fuse-epilogue,fuse-elementwise,fuse-siblings,fuse-results | filecheck %s
// RUN: ait-opt %s -p fuse-epilogue,fuse-elementwise,fuse-siblings,fuse-results --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// The sum is stored for whoever reads it later, and what the next layer reads is computed beside it.
// CHECK-LABEL: ait.graph @residual
ait.graph @residual(%x: !ait.tensor<b x 8 x f16>, %w: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<b x 4 x f16>, %s: !ait.tensor<4 x f16>) dims {b = 0 to 8} {
  // CHECK-NEXT: [[Z:%.*]], [[H:%.*]] = ait.gemm rcr %x, %w epilogue(%r, %s) {
  // CHECK-NEXT: ^bb0([[ACC:%.*]]: f32, [[R:%.*]]: f32, [[S:%.*]]: f32):
  // CHECK-NEXT: [[A:%.*]] = ait.add [[ACC]], [[R]] : f32
  // CHECK-NEXT: [[B:%.*]] = ait.mul [[A]], [[S]] : f32
  // CHECK-NEXT: [[C:%.*]] = ait.relu [[B]] : f32
  // CHECK-NEXT: ait.yield [[A]], [[C]] : f32, f32
  // CHECK-NEXT: } : !ait.tensor<b x 4 x f16>, !ait.tensor<b x 4 x f16>
  // CHECK-NEXT: ait.output "z" [[Z]]
  // CHECK-NEXT: ait.output "h" [[H]]
  // CHECK-NEXT: }
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f16>
  %1 = ait.add %0, %r : !ait.tensor<b x 4 x f16>
  %2 = ait.mul %1, %s : !ait.tensor<b x 4 x f16>
  %3 = ait.relu %2 : !ait.tensor<b x 4 x f16>
  ait.output "z" %1 : !ait.tensor<b x 4 x f16>
  ait.output "h" %3 : !ait.tensor<b x 4 x f16>
}

// A product without an epilogue gets one, and its first result is the accumulator.
// CHECK-LABEL: ait.graph @plain
ait.graph @plain(%x: !ait.tensor<b x 3 x 8 x f32>, %w: !ait.tensor<b x 4 x 8 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: [[Z:%.*]], [[H:%.*]] = ait.bmm rcr %x, %w epilogue() {
  // CHECK-NEXT: ^bb0([[ACC:%.*]]: f32):
  // CHECK-NEXT: [[C:%.*]] = ait.tanh [[ACC]] : f32
  // CHECK-NEXT: ait.yield [[ACC]], [[C]] : f32, f32
  // CHECK-NEXT: } : !ait.tensor<b x 3 x 4 x f32>, !ait.tensor<b x 3 x 4 x f32>
  %0 = ait.bmm rcr %x, %w : !ait.tensor<b x 3 x 4 x f32>
  %1 = ait.tanh %0 : !ait.tensor<b x 3 x 4 x f32>
  ait.output "z" %0 : !ait.tensor<b x 3 x 4 x f32>
  ait.output "h" %1 : !ait.tensor<b x 3 x 4 x f32>
}

// Each result has its own element type. The product stands where the operation stood, behind what that reads.
// CHECK-LABEL: ait.graph @later
ait.graph @later(%x: !ait.tensor<1 x 5 x 5 x 8 x f16>, %w: !ait.tensor<4 x 3 x 3 x 8 x f16>, %v: !ait.tensor<4 x 1 x 1 x 8 x f16>) {
  // CHECK-NEXT: [[V:%.*]] = ait.conv %x, %v
  // CHECK-NEXT: [[Z:%.*]], [[H:%.*]] = ait.conv %x, %w pad [1, 1] epilogue([[V]]) {
  // CHECK: ait.yield {{%.*}}, {{%.*}} : f32, f32
  // CHECK-NEXT: } : !ait.tensor<1 x 5 x 5 x 4 x f16>, !ait.tensor<1 x 5 x 5 x 4 x f32>
  // CHECK-NEXT: ait.concat [[Z]], [[V]]
  %0 = ait.conv %x, %w pad [1, 1] : !ait.tensor<1 x 5 x 5 x 4 x f16>
  %1 = ait.conv %x, %v : !ait.tensor<1 x 5 x 5 x 4 x f16>
  %2 = ait.cast %0 : !ait.tensor<1 x 5 x 5 x 4 x f32>
  %3 = ait.cast %1 : !ait.tensor<1 x 5 x 5 x 4 x f32>
  %4 = ait.mul %2, %3 : !ait.tensor<1 x 5 x 5 x 4 x f32>
  %5 = ait.concat %0, %1 dim 3 : !ait.tensor<1 x 5 x 5 x 8 x f16>
  ait.output "z" %5 : !ait.tensor<1 x 5 x 5 x 8 x f16>
  ait.output "h" %4 : !ait.tensor<1 x 5 x 5 x 4 x f32>
}

// Others read the product before the operation stands: it moves to the product.
// CHECK-LABEL: ait.graph @earlier
ait.graph @earlier(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.param "s"
  // CHECK-NEXT: [[Z:%.*]], [[H:%.*]] = ait.gemm rcr %x, %w epilogue(
  // CHECK: ait.softmax [[Z]] dim 1
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f32>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<b x 4 x f32>
  %s = ait.param "s" : !ait.tensor<4 x f32>
  %2 = ait.mul %0, %s : !ait.tensor<b x 4 x f32>
  ait.output "y" %1 : !ait.tensor<b x 4 x f32>
  ait.output "h" %2 : !ait.tensor<b x 4 x f32>
}

// The operations that read one product have become one launch before; all they make are results.
// CHECK-LABEL: ait.graph @three
ait.graph @three(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: {{%.*}}, {{%.*}}, {{%.*}} = ait.gemm rcr %x, %w epilogue() {
  // CHECK-NOT: ait.fused_elementwise
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f32>
  %1 = ait.relu %0 : !ait.tensor<b x 4 x f32>
  %2 = ait.tanh %0 : !ait.tensor<b x 4 x f32>
  ait.output "x" %0 : !ait.tensor<b x 4 x f32>
  ait.output "y" %1 : !ait.tensor<b x 4 x f32>
  ait.output "z" %2 : !ait.tensor<b x 4 x f32>
}

// Nothing but the operations reads the product: its own result is none any more.
// CHECK-LABEL: ait.graph @only
ait.graph @only(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: {{%.*}}, {{%.*}}, {{%.*}} = ait.gemm rcr %x, %w epilogue() {
  // CHECK-NOT: ait.fused_elementwise
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f32>
  %1 = ait.relu %0 : !ait.tensor<b x 4 x f32>
  %2 = ait.tanh %0 : !ait.tensor<b x 4 x f32>
  %3 = ait.exp %0 : !ait.tensor<b x 4 x f32>
  ait.output "x" %1 : !ait.tensor<b x 4 x f32>
  ait.output "y" %2 : !ait.tensor<b x 4 x f32>
  ait.output "z" %3 : !ait.tensor<b x 4 x f32>
}

// Four results are too many.
// CHECK-LABEL: ait.graph @four
ait.graph @four(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.gemm rcr %x, %w :
  // CHECK-NEXT: ait.fused_elementwise
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f32>
  %1 = ait.relu %0 : !ait.tensor<b x 4 x f32>
  %2 = ait.tanh %0 : !ait.tensor<b x 4 x f32>
  %3 = ait.exp %0 : !ait.tensor<b x 4 x f32>
  ait.output "w" %0 : !ait.tensor<b x 4 x f32>
  ait.output "x" %1 : !ait.tensor<b x 4 x f32>
  ait.output "y" %2 : !ait.tensor<b x 4 x f32>
  ait.output "z" %3 : !ait.tensor<b x 4 x f32>
}

// The operation computes more elements than the product has.
// CHECK-LABEL: ait.graph @broadcast
ait.graph @broadcast(%x: !ait.tensor<1 x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>, %r: !ait.tensor<b x 4 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.gemm rcr %x, %w :
  // CHECK-NEXT: ait.fused_elementwise
  %0 = ait.gemm rcr %x, %w : !ait.tensor<1 x 4 x f32>
  %1 = ait.add %0, %r : !ait.tensor<b x 4 x f32>
  ait.output "z" %0 : !ait.tensor<1 x 4 x f32>
  ait.output "h" %1 : !ait.tensor<b x 4 x f32>
}

// Kernels of products of integers write such integers, too.
// CHECK-LABEL: ait.graph @bytes
ait.graph @bytes(%x: !ait.tensor<b x 8 x i8>, %w: !ait.tensor<4 x 8 x i8>) dims {b = 1 to 8} {
  // CHECK:      ait.gemm rcr %x, %w epilogue() {
  // CHECK:      } : !ait.tensor<b x 4 x f32>, !ait.tensor<b x 4 x i8>
  // CHECK-NOT:  ait.fused_elementwise
  %0 = ait.gemm rcr %x, %w epilogue() {
  ^bb0(%acc: i32):
    %f = ait.cast %acc : f32
    ait.yield %f : f32
  } : !ait.tensor<b x 4 x f32>
  %1 = ait.round %0 : !ait.tensor<b x 4 x f32>
  %2 = ait.cast %1 : !ait.tensor<b x 4 x i8>
  ait.output "z" %0 : !ait.tensor<b x 4 x f32>
  ait.output "h" %2 : !ait.tensor<b x 4 x i8>
}

// CHECK-LABEL: ait.graph @condition_of_bytes
ait.graph @condition_of_bytes(%x: !ait.tensor<b x 8 x i8>, %w: !ait.tensor<4 x 8 x i8>, %r: !ait.tensor<b x 4 x i32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.gemm rcr %x, %w :
  // CHECK-NEXT: ait.fused_elementwise
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x i32>
  %1 = ait.compare lt %0, %r : !ait.tensor<b x 4 x i1>
  ait.output "z" %0 : !ait.tensor<b x 4 x i32>
  ait.output "h" %1 : !ait.tensor<b x 4 x i1>
}

// Kernels of products of floats write floats.
// CHECK-LABEL: ait.graph @narrow
ait.graph @narrow(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.gemm rcr %x, %w :
  // CHECK-NEXT: ait.fused_elementwise
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f32>
  %1 = ait.cast %0 : !ait.tensor<b x 4 x i8>
  ait.output "z" %0 : !ait.tensor<b x 4 x f32>
  ait.output "h" %1 : !ait.tensor<b x 4 x i8>
}

// CHECK-LABEL: ait.graph @mask
ait.graph @mask(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>, %r: !ait.tensor<b x 4 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.gemm rcr %x, %w :
  // CHECK-NEXT: ait.fused_elementwise
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f32>
  %1 = ait.compare lt %0, %r : !ait.tensor<b x 4 x i1>
  ait.output "z" %0 : !ait.tensor<b x 4 x f32>
  ait.output "h" %1 : !ait.tensor<b x 4 x i1>
}

// The reduction computes what it reads, also beside another result of the same launch.
// CHECK-LABEL: ait.graph @reduced
ait.graph @reduced(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: [[Z:%.*]] = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f32>
  // CHECK-NEXT: [[A:%.*]] = ait.fused_elementwise
  // CHECK: ait.reduce max [[A]]
  %z = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f32>
  %a = ait.abs %z : !ait.tensor<b x 4 x f32>
  %m = ait.reduce max %a dims [1] : !ait.tensor<b x f32>
  ait.output "z" %z : !ait.tensor<b x 4 x f32>
  ait.output "m" %m : !ait.tensor<b x f32>
}

// What the operation reads is computed from the product.
// CHECK-LABEL: ait.graph @cycle
ait.graph @cycle(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.gemm rcr %x, %w :
  // CHECK-NEXT: ait.softmax
  // CHECK-NEXT: ait.fused_elementwise
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f32>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<b x 4 x f32>
  %2 = ait.mul %0, %1 : !ait.tensor<b x 4 x f32>
  ait.output "z" %0 : !ait.tensor<b x 4 x f32>
  ait.output "h" %2 : !ait.tensor<b x 4 x f32>
}

// A gated product has one result.
// CHECK-LABEL: ait.graph @gated
ait.graph @gated(%x: !ait.tensor<b x 8 x f16>, %w: !ait.tensor<8 x 8 x f16>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.gated_gemm rcr %x, %w
  // CHECK: ait.fused_elementwise
  %0 = ait.gated_gemm rcr %x, %w epilogue() {
  ^bb0(%gate: f32, %up: f32):
    %g = ait.mul %gate, %up : f32
    ait.yield %g : f32
  } : !ait.tensor<b x 4 x f16>
  %1 = ait.relu %0 : !ait.tensor<b x 4 x f16>
  ait.output "z" %0 : !ait.tensor<b x 4 x f16>
  ait.output "h" %1 : !ait.tensor<b x 4 x f16>
}

// The kernel of the product is chosen already.
// CHECK-LABEL: ait.graph @selected
ait.graph @selected(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.gemm rcr %x, %w {kernel
  // CHECK-NEXT: ait.fused_elementwise
  %0 = ait.gemm rcr %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 4 x f32>
  %1 = ait.relu %0 : !ait.tensor<b x 4 x f32>
  ait.output "z" %0 : !ait.tensor<b x 4 x f32>
  ait.output "h" %1 : !ait.tensor<b x 4 x f32>
}

// The kernel of the operation is chosen already.
// CHECK-LABEL: ait.graph @selected_operation
ait.graph @selected_operation(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.gemm rcr %x, %w :
  // CHECK-NEXT: ait.fused_elementwise
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f32>
  %1 = ait.fused_elementwise(%0) {
  ^bb0(%a: f32):
    %s = ait.relu %a : f32
    ait.yield %s : f32
  } {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 4 x f32>
  ait.output "z" %0 : !ait.tensor<b x 4 x f32>
  ait.output "h" %1 : !ait.tensor<b x 4 x f32>
}

// 16 operands are as many as kernels of products take.
// CHECK-LABEL: ait.graph @sixteen
ait.graph @sixteen(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>, %e0: !ait.tensor<b x 4 x f32>, %e1: !ait.tensor<b x 4 x f32>, %e2: !ait.tensor<b x 4 x f32>, %e3: !ait.tensor<b x 4 x f32>, %e4: !ait.tensor<b x 4 x f32>, %e5: !ait.tensor<b x 4 x f32>, %e6: !ait.tensor<b x 4 x f32>, %e7: !ait.tensor<b x 4 x f32>, %e8: !ait.tensor<b x 4 x f32>, %e9: !ait.tensor<b x 4 x f32>, %e10: !ait.tensor<b x 4 x f32>, %e11: !ait.tensor<b x 4 x f32>, %e12: !ait.tensor<b x 4 x f32>, %e13: !ait.tensor<b x 4 x f32>) dims {b = 1 to 2} {
  // CHECK-NEXT: {{%.*}}, {{%.*}} = ait.gemm rcr %x, %w epilogue(
  // CHECK-NOT: ait.fused_elementwise
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f32>
  %1 = ait.add %0, %e0 : !ait.tensor<b x 4 x f32>
  %2 = ait.add %1, %e1 : !ait.tensor<b x 4 x f32>
  %3 = ait.add %2, %e2 : !ait.tensor<b x 4 x f32>
  %4 = ait.add %3, %e3 : !ait.tensor<b x 4 x f32>
  %5 = ait.add %4, %e4 : !ait.tensor<b x 4 x f32>
  %6 = ait.add %5, %e5 : !ait.tensor<b x 4 x f32>
  %7 = ait.add %6, %e6 : !ait.tensor<b x 4 x f32>
  %8 = ait.add %7, %e7 : !ait.tensor<b x 4 x f32>
  %9 = ait.add %8, %e8 : !ait.tensor<b x 4 x f32>
  %10 = ait.add %9, %e9 : !ait.tensor<b x 4 x f32>
  %11 = ait.add %10, %e10 : !ait.tensor<b x 4 x f32>
  %12 = ait.add %11, %e11 : !ait.tensor<b x 4 x f32>
  %13 = ait.add %12, %e12 : !ait.tensor<b x 4 x f32>
  %14 = ait.add %13, %e13 : !ait.tensor<b x 4 x f32>
  ait.output "z" %0 : !ait.tensor<b x 4 x f32>
  ait.output "h" %14 : !ait.tensor<b x 4 x f32>
}

// One more is too many.
// CHECK-LABEL: ait.graph @seventeen
ait.graph @seventeen(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>, %e0: !ait.tensor<b x 4 x f32>, %e1: !ait.tensor<b x 4 x f32>, %e2: !ait.tensor<b x 4 x f32>, %e3: !ait.tensor<b x 4 x f32>, %e4: !ait.tensor<b x 4 x f32>, %e5: !ait.tensor<b x 4 x f32>, %e6: !ait.tensor<b x 4 x f32>, %e7: !ait.tensor<b x 4 x f32>, %e8: !ait.tensor<b x 4 x f32>, %e9: !ait.tensor<b x 4 x f32>, %e10: !ait.tensor<b x 4 x f32>, %e11: !ait.tensor<b x 4 x f32>, %e12: !ait.tensor<b x 4 x f32>, %e13: !ait.tensor<b x 4 x f32>, %e14: !ait.tensor<b x 4 x f32>) dims {b = 1 to 2} {
  // CHECK-NEXT: ait.gemm rcr %x, %w :
  // CHECK-NEXT: ait.fused_elementwise
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f32>
  %1 = ait.add %0, %e0 : !ait.tensor<b x 4 x f32>
  %2 = ait.add %1, %e1 : !ait.tensor<b x 4 x f32>
  %3 = ait.add %2, %e2 : !ait.tensor<b x 4 x f32>
  %4 = ait.add %3, %e3 : !ait.tensor<b x 4 x f32>
  %5 = ait.add %4, %e4 : !ait.tensor<b x 4 x f32>
  %6 = ait.add %5, %e5 : !ait.tensor<b x 4 x f32>
  %7 = ait.add %6, %e6 : !ait.tensor<b x 4 x f32>
  %8 = ait.add %7, %e7 : !ait.tensor<b x 4 x f32>
  %9 = ait.add %8, %e8 : !ait.tensor<b x 4 x f32>
  %10 = ait.add %9, %e9 : !ait.tensor<b x 4 x f32>
  %11 = ait.add %10, %e10 : !ait.tensor<b x 4 x f32>
  %12 = ait.add %11, %e11 : !ait.tensor<b x 4 x f32>
  %13 = ait.add %12, %e12 : !ait.tensor<b x 4 x f32>
  %14 = ait.add %13, %e13 : !ait.tensor<b x 4 x f32>
  %15 = ait.add %14, %e14 : !ait.tensor<b x 4 x f32>
  ait.output "z" %0 : !ait.tensor<b x 4 x f32>
  ait.output "h" %15 : !ait.tensor<b x 4 x f32>
}

// An operand that would need a third loop over the batch stays out of the product.
// CHECK-LABEL: ait.graph @batch_in_three_loops
ait.graph @batch_in_three_loops(%x: !ait.tensor<b x 3 x 2 x 4 x 8 x f32>, %y: !ait.tensor<b x 3 x 2 x 8 x 4 x f32>, %c: !ait.tensor<b x 1 x 2 x 4 x 4 x f32>) dims {b = 0 to 3} {
  // CHECK-NEXT: [[P:%.*]] = ait.bmm rrr %x, %y : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  // CHECK-NEXT: ait.output "z" [[P]]
  // CHECK-NEXT: ait.fused_elementwise([[P]], %c)
  %0 = ait.bmm rrr %x, %y : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  ait.output "z" %0 : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  %1 = ait.mul %0, %c : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  %2 = ait.relu %1 : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
  ait.output "h" %2 : !ait.tensor<b x 3 x 2 x 4 x 4 x f32>
}
