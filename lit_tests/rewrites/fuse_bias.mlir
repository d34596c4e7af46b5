// RUN: ait-opt %s -p fuse-bias | filecheck %s
// RUN: ait-opt %s -p fuse-bias --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// The bias may be either operand of the add.
// CHECK-LABEL: ait.graph @gemm_left
ait.graph @gemm_left(%x: !ait.tensor<m x 8 x f32>, %w: !ait.tensor<16 x 8 x f32>) dims {m = 1 to 4} {
  %c = ait.param "c" : !ait.tensor<16 x f32>
  // CHECK: ait.gemm rcr %x, %w epilogue(%c)
  %0 = ait.gemm rcr %x, %w : !ait.tensor<m x 16 x f32>
  %1 = ait.add %c, %0 : !ait.tensor<m x 16 x f32>
  ait.output "y" %1 : !ait.tensor<m x 16 x f32>
}

// The product itself is an output, too.
// CHECK-LABEL: ait.graph @gemm_used
ait.graph @gemm_used(%x: !ait.tensor<m x 8 x f32>, %w: !ait.tensor<16 x 8 x f32>) dims {m = 1 to 4} {
  %c = ait.param "c" : !ait.tensor<16 x f32>
  // CHECK: ait.gemm rcr %x, %w :
  // CHECK-NEXT: ait.add
  %0 = ait.gemm rcr %x, %w : !ait.tensor<m x 16 x f32>
  %1 = ait.add %0, %c : !ait.tensor<m x 16 x f32>
  ait.output "z" %0 : !ait.tensor<m x 16 x f32>
  ait.output "y" %1 : !ait.tensor<m x 16 x f32>
}

// A number for each row is no bias, nor is one for each element.
// CHECK-LABEL: ait.graph @gemm_rows
ait.graph @gemm_rows(%x: !ait.tensor<m x 8 x f32>, %w: !ait.tensor<16 x 8 x f32>, %r: !ait.tensor<m x 1 x f32>, %f: !ait.tensor<m x 16 x f32>) dims {m = 1 to 4} {
  // CHECK: ait.gemm rcr %x, %w :
  // CHECK: ait.gemm rcr %x, %w :
  %0 = ait.gemm rcr %x, %w : !ait.tensor<m x 16 x f32>
  %1 = ait.add %0, %r : !ait.tensor<m x 16 x f32>
  %2 = ait.gemm rcr %x, %w : !ait.tensor<m x 16 x f32>
  %3 = ait.add %2, %f : !ait.tensor<m x 16 x f32>
  ait.output "y" %1 : !ait.tensor<m x 16 x f32>
  ait.output "z" %3 : !ait.tensor<m x 16 x f32>
}

// The bias has more dims than the product.
// CHECK-LABEL: ait.graph @gemm_larger
ait.graph @gemm_larger(%x: !ait.tensor<m x 8 x f32>, %w: !ait.tensor<16 x 8 x f32>) dims {m = 1 to 4} {
  %c = ait.param "c" : !ait.tensor<1 x 1 x 16 x f32>
  // CHECK: ait.gemm rcr %x, %w :
  %0 = ait.gemm rcr %x, %w : !ait.tensor<m x 16 x f32>
  %1 = ait.add %0, %c : !ait.tensor<1 x m x 16 x f32>
  ait.output "y" %1 : !ait.tensor<1 x m x 16 x f32>
}

// The product has an epilogue already.
// CHECK-LABEL: ait.graph @gemm_epilogue
ait.graph @gemm_epilogue(%x: !ait.tensor<m x 8 x f32>, %w: !ait.tensor<16 x 8 x f32>) dims {m = 1 to 4} {
  %c = ait.param "c" : !ait.tensor<16 x f32>
  // CHECK: ait.gemm rcr %x, %w epilogue() {
  // CHECK: ait.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: ait.add
  %0 = ait.gemm rcr %x, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<m x 16 x f32>
  %1 = ait.add %0, %c : !ait.tensor<m x 16 x f32>
  ait.output "y" %1 : !ait.tensor<m x 16 x f32>
}

// The product has a kernel already.
// CHECK-LABEL: ait.graph @gemm_selected
ait.graph @gemm_selected(%x: !ait.tensor<m x 8 x f32>, %w: !ait.tensor<16 x 8 x f32>) dims {m = 1 to 4} {
  %c = ait.param "c" : !ait.tensor<16 x f32>
  // CHECK: ait.gemm rcr %x, %w {kernel
  %0 = ait.gemm rcr %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<m x 16 x f32>
  %1 = ait.add %0, %c : !ait.tensor<m x 16 x f32>
  ait.output "y" %1 : !ait.tensor<m x 16 x f32>
}

// The bias may be either operand of the add.
// CHECK-LABEL: ait.graph @bmm_left
ait.graph @bmm_left(%x: !ait.tensor<b x m x 8 x f32>, %w: !ait.tensor<b x 16 x 8 x f32>) dims {b = 1 to 3, m = 1 to 4} {
  %c = ait.param "c" : !ait.tensor<16 x f32>
  // CHECK: ait.bmm rcr %x, %w epilogue(%c)
  %0 = ait.bmm rcr %x, %w : !ait.tensor<b x m x 16 x f32>
  %1 = ait.add %c, %0 : !ait.tensor<b x m x 16 x f32>
  ait.output "y" %1 : !ait.tensor<b x m x 16 x f32>
}

// The product itself is an output, too.
// CHECK-LABEL: ait.graph @bmm_used
ait.graph @bmm_used(%x: !ait.tensor<b x m x 8 x f32>, %w: !ait.tensor<b x 16 x 8 x f32>) dims {b = 1 to 3, m = 1 to 4} {
  %c = ait.param "c" : !ait.tensor<16 x f32>
  // CHECK: ait.bmm rcr %x, %w :
  // CHECK-NEXT: ait.add
  %0 = ait.bmm rcr %x, %w : !ait.tensor<b x m x 16 x f32>
  %1 = ait.add %0, %c : !ait.tensor<b x m x 16 x f32>
  ait.output "z" %0 : !ait.tensor<b x m x 16 x f32>
  ait.output "y" %1 : !ait.tensor<b x m x 16 x f32>
}

// A number for each row is no bias, nor is one for each element.
// CHECK-LABEL: ait.graph @bmm_rows
ait.graph @bmm_rows(%x: !ait.tensor<b x m x 8 x f32>, %w: !ait.tensor<b x 16 x 8 x f32>, %r: !ait.tensor<m x 1 x f32>, %f: !ait.tensor<m x 16 x f32>) dims {b = 1 to 3, m = 1 to 4} {
  // CHECK: ait.bmm rcr %x, %w :
  // CHECK: ait.bmm rcr %x, %w :
  %0 = ait.bmm rcr %x, %w : !ait.tensor<b x m x 16 x f32>
  %1 = ait.add %0, %r : !ait.tensor<b x m x 16 x f32>
  %2 = ait.bmm rcr %x, %w : !ait.tensor<b x m x 16 x f32>
  %3 = ait.add %2, %f : !ait.tensor<b x m x 16 x f32>
  ait.output "y" %1 : !ait.tensor<b x m x 16 x f32>
  ait.output "z" %3 : !ait.tensor<b x m x 16 x f32>
}

// The bias has more dims than the product.
// CHECK-LABEL: ait.graph @bmm_larger
ait.graph @bmm_larger(%x: !ait.tensor<b x m x 8 x f32>, %w: !ait.tensor<b x 16 x 8 x f32>) dims {b = 1 to 3, m = 1 to 4} {
  %c = ait.param "c" : !ait.tensor<1 x 1 x 1 x 16 x f32>
  // CHECK: ait.bmm rcr %x, %w :
  %0 = ait.bmm rcr %x, %w : !ait.tensor<b x m x 16 x f32>
  %1 = ait.add %0, %c : !ait.tensor<1 x b x m x 16 x f32>
  ait.output "y" %1 : !ait.tensor<1 x b x m x 16 x f32>
}

// The product has an epilogue already.
// CHECK-LABEL: ait.graph @bmm_epilogue
ait.graph @bmm_epilogue(%x: !ait.tensor<b x m x 8 x f32>, %w: !ait.tensor<b x 16 x 8 x f32>) dims {b = 1 to 3, m = 1 to 4} {
  %c = ait.param "c" : !ait.tensor<16 x f32>
  // CHECK: ait.bmm rcr %x, %w epilogue() {
  // CHECK: ait.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: ait.add
  %0 = ait.bmm rcr %x, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<b x m x 16 x f32>
  %1 = ait.add %0, %c : !ait.tensor<b x m x 16 x f32>
  ait.output "y" %1 : !ait.tensor<b x m x 16 x f32>
}

// The product has a kernel already.
// CHECK-LABEL: ait.graph @bmm_selected
ait.graph @bmm_selected(%x: !ait.tensor<b x m x 8 x f32>, %w: !ait.tensor<b x 16 x 8 x f32>) dims {b = 1 to 3, m = 1 to 4} {
  %c = ait.param "c" : !ait.tensor<16 x f32>
  // CHECK: ait.bmm rcr %x, %w {kernel
  %0 = ait.bmm rcr %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x m x 16 x f32>
  %1 = ait.add %0, %c : !ait.tensor<b x m x 16 x f32>
  ait.output "y" %1 : !ait.tensor<b x m x 16 x f32>
}
