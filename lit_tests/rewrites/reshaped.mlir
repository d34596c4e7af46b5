// RUN: ait-opt %s -p fuse-epilogue | filecheck %s
// RUN: ait-opt %s -p fuse-epilogue --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// An activation of tokens that a convolution of images has computed.
// CHECK-LABEL: ait.graph @activation
// CHECK: %[[Y:[0-9]+]] = ait.conv %x, %w pad [1, 1] groups 4 epilogue(%c) {
// CHECK-NEXT: ^bb0(%acc: f32, [[C:%.*]]: f32):
// CHECK-NEXT: [[S:%.*]] = ait.add %acc, [[C]] : f32
// CHECK-NEXT: [[G:%.*]] = ait.gelu [[S]] : f32
// CHECK-NEXT: ait.yield [[G]] : f32
// CHECK-NEXT: } : !ait.tensor<b x h x 3 x 4 x f16>
// CHECK-NEXT: %[[R:[0-9]+]] = ait.reshape %[[Y]] : !ait.tensor<b x (3*h) x 4 x f16>
// CHECK-NEXT: ait.output "y" %[[R]]
ait.graph @activation(%x: !ait.tensor<b x h x 3 x 4 x f16>) dims {b = 0 to 2, h = 1 to 3} {
  %w = ait.param "w" : !ait.tensor<4 x 3 x 3 x 1 x f16>
  %c = ait.param "c" : !ait.tensor<4 x f16>
  %0 = ait.conv %x, %w pad [1, 1] groups 4 : !ait.tensor<b x h x 3 x 4 x f16>
  %1 = ait.add %0, %c : !ait.tensor<b x h x 3 x 4 x f16>
  %2 = ait.reshape %1 : !ait.tensor<b x (3*h) x 4 x f16>
  %3 = ait.gelu %2 : !ait.tensor<b x (3*h) x 4 x f16>
  ait.output "y" %3 : !ait.tensor<b x (3*h) x 4 x f16>
}

// A bias, a factor for each channel with dims of 1 before it, a number, a residual, and one that is reshaped already;
// their place as operands stays.
// CHECK-LABEL: ait.graph @operands
// CHECK: [[F:%.*]] = ait.reshape %f : !ait.tensor<4 x f16>
// CHECK: [[R:%.*]] = ait.reshape %r : !ait.tensor<b x 6 x 4 x f16>
// CHECK: ait.gemm rcr %x, %w epilogue(%c, [[F]], %k, [[R]], %q) {
// CHECK-NEXT: ^bb0(%acc: f32, [[C:%.*]]: f32, [[F:%.*]]: f32, [[K:%.*]]: f32, [[R:%.*]]: f32, [[Q:%.*]]: f32):
// CHECK-NEXT: [[T0:%.*]] = ait.add %acc, [[C]] : f32
// CHECK-NEXT: [[T1:%.*]] = ait.sub [[F]], [[T0]] : f32
// CHECK-NEXT: [[T2:%.*]] = ait.mul [[T1]], [[K]] : f32
// CHECK-NEXT: [[T3:%.*]] = ait.sub [[R]], [[T2]] : f32
// CHECK-NEXT: [[T4:%.*]] = ait.add [[T3]], [[Q]] : f32
// CHECK-NEXT: ait.yield [[T4]] : f32
// CHECK-NEXT: } : !ait.tensor<b x 6 x 4 x f16>
// CHECK-NEXT: ait.reshape {{.*}} : !ait.tensor<b x 2 x 3 x 4 x f16>
// CHECK-NEXT: ait.output
ait.graph @operands(%x: !ait.tensor<b x 6 x 3 x f16>, %w: !ait.tensor<4 x 3 x f16>, %f: !ait.tensor<1 x 1 x 4 x f16>, %k: !ait.tensor<f16>, %r: !ait.tensor<b x 2 x 3 x 4 x f16>, %q: !ait.tensor<b x 6 x 4 x f16>) dims {b = 0 to 2} {
  %c = ait.param "c" : !ait.tensor<4 x f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 6 x 4 x f16>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %2 = ait.add %1, %c : !ait.tensor<b x 2 x 3 x 4 x f16>
  %3 = ait.sub %f, %2 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %4 = ait.mul %3, %k : !ait.tensor<b x 2 x 3 x 4 x f16>
  %5 = ait.sub %r, %4 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %7 = ait.reshape %q : !ait.tensor<b x 2 x 3 x 4 x f16>
  %8 = ait.add %5, %7 : !ait.tensor<b x 2 x 3 x 4 x f16>
  ait.output "y" %8 : !ait.tensor<b x 2 x 3 x 4 x f16>
}

// What is read twice, by different ways, joins at once: x * sigmoid(1.7 x).
// CHECK-LABEL: ait.graph @group
// CHECK: ait.gemm rcr %x, %w epilogue() {
// CHECK-NEXT: ^bb0(%acc: f32):
// CHECK-NEXT: [[K:%.*]] = ait.constant 1.7
// CHECK-NEXT: [[M:%.*]] = ait.mul %acc, [[K]] : f32
// CHECK-NEXT: [[S:%.*]] = ait.sigmoid [[M]] : f32
// CHECK-NEXT: [[P:%.*]] = ait.mul %acc, [[S]] : f32
// CHECK-NEXT: ait.yield [[P]] : f32
// CHECK-NEXT: } : !ait.tensor<b x 6 x 4 x f32>
// CHECK-NEXT: ait.reshape
// CHECK-NEXT: ait.output
ait.graph @group(%x: !ait.tensor<b x 6 x 3 x f32>, %w: !ait.tensor<4 x 3 x f32>) dims {b = 1 to 2} {
  %k = ait.constant 1.7 : !ait.tensor<f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 6 x 4 x f32>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x 4 x f32>
  %2 = ait.mul %1, %k : !ait.tensor<b x 2 x 3 x 4 x f32>
  %3 = ait.sigmoid %2 : !ait.tensor<b x 2 x 3 x 4 x f32>
  %4 = ait.mul %1, %3 : !ait.tensor<b x 2 x 3 x 4 x f32>
  ait.output "y" %4 : !ait.tensor<b x 2 x 3 x 4 x f32>
}

// A norm, too.
// CHECK-LABEL: ait.graph @norm
// CHECK: ait.layer_norm %x axes 1 eps 1e-05 epilogue() {
// CHECK: ait.relu
// CHECK: } : !ait.tensor<b x 6 x f16>
// CHECK-NEXT: ait.reshape
// CHECK-NEXT: ait.output
ait.graph @norm(%x: !ait.tensor<b x 6 x f16>) dims {b = 1 to 2} {
  %0 = ait.layer_norm %x axes 1 eps 1e-05 : !ait.tensor<b x 6 x f16>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x f16>
  %2 = ait.relu %1 : !ait.tensor<b x 2 x 3 x f16>
  ait.output "y" %2 : !ait.tensor<b x 2 x 3 x f16>
}

// What follows stays as it is.

// The product is an output.
// CHECK-LABEL: ait.graph @product_output(
// CHECK-NOT: epilogue
// CHECK: ait.reshape %0
// CHECK: ait.output
ait.graph @product_output(%x: !ait.tensor<b x 6 x 3 x f16>, %w: !ait.tensor<4 x 3 x f16>) dims {b = 1 to 2} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 6 x 4 x f16>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %2 = ait.relu %1 : !ait.tensor<b x 2 x 3 x 4 x f16>
  ait.output "p" %0 : !ait.tensor<b x 6 x 4 x f16>
  ait.output "y" %2 : !ait.tensor<b x 2 x 3 x 4 x f16>
}

// The reshape is an output.
// CHECK-LABEL: ait.graph @reshape_output(
// CHECK-NOT: epilogue
// CHECK: ait.reshape %0
// CHECK: ait.output
ait.graph @reshape_output(%x: !ait.tensor<b x 6 x 3 x f16>, %w: !ait.tensor<4 x 3 x f16>) dims {b = 1 to 2} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 6 x 4 x f16>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %2 = ait.relu %1 : !ait.tensor<b x 2 x 3 x 4 x f16>
  ait.output "p" %1 : !ait.tensor<b x 2 x 3 x 4 x f16>
  ait.output "y" %2 : !ait.tensor<b x 2 x 3 x 4 x f16>
}

// Another operation than an elementwise one reads the product.
// CHECK-LABEL: ait.graph @product_read(
// CHECK-NOT: epilogue
// CHECK: ait.reshape %0
// CHECK: ait.output
ait.graph @product_read(%x: !ait.tensor<b x 6 x 3 x f16>, %w: !ait.tensor<4 x 3 x f16>) dims {b = 1 to 2} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 6 x 4 x f16>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %2 = ait.relu %1 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %3 = ait.softmax %0 dim 2 : !ait.tensor<b x 6 x 4 x f16>
  ait.output "y" %2 : !ait.tensor<b x 2 x 3 x 4 x f16>
  ait.output "p" %3 : !ait.tensor<b x 6 x 4 x f16>
}

// Another operation than an elementwise one reads the reshape.
// CHECK-LABEL: ait.graph @reshape_read(
// CHECK-NOT: epilogue
// CHECK: ait.reshape %0
// CHECK: ait.output
ait.graph @reshape_read(%x: !ait.tensor<b x 6 x 3 x f16>, %w: !ait.tensor<4 x 3 x f16>) dims {b = 1 to 2} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 6 x 4 x f16>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %2 = ait.relu %1 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %3 = ait.softmax %1 dim 3 : !ait.tensor<b x 2 x 3 x 4 x f16>
  ait.output "y" %2 : !ait.tensor<b x 2 x 3 x 4 x f16>
  ait.output "p" %3 : !ait.tensor<b x 2 x 3 x 4 x f16>
}

// An operand has an element for each dim that the reshape has made.
// CHECK-LABEL: ait.graph @rows(
// CHECK-NOT: epilogue
// CHECK: ait.reshape %0
// CHECK: ait.output
ait.graph @rows(%x: !ait.tensor<b x 6 x 3 x f16>, %w: !ait.tensor<4 x 3 x f16>, %r: !ait.tensor<3 x 4 x f16>) dims {b = 1 to 2} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 6 x 4 x f16>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %2 = ait.add %1, %r : !ait.tensor<b x 2 x 3 x 4 x f16>
  ait.output "y" %2 : !ait.tensor<b x 2 x 3 x 4 x f16>
}

// A sum that is larger.
// CHECK-LABEL: ait.graph @wider(
// CHECK-NOT: epilogue
// CHECK: ait.reshape %0
// CHECK: ait.output
ait.graph @wider(%x: !ait.tensor<b x 6 x 3 x f16>, %w: !ait.tensor<4 x 3 x f16>, %r: !ait.tensor<5 x 1 x 2 x 3 x 4 x f16>) dims {b = 1 to 2} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 6 x 4 x f16>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %2 = ait.add %1, %r : !ait.tensor<5 x b x 2 x 3 x 4 x f16>
  ait.output "y" %2 : !ait.tensor<5 x b x 2 x 3 x 4 x f16>
}

// The residual is moved elements, which a reshape would have to copy.
// CHECK-LABEL: ait.graph @moved(
// CHECK-NOT: epilogue
// CHECK: ait.reshape %0
// CHECK: ait.output
ait.graph @moved(%x: !ait.tensor<b x 6 x 3 x f16>, %w: !ait.tensor<4 x 3 x f16>, %r: !ait.tensor<b x 4 x 3 x 2 x f16>) dims {b = 1 to 2} {
  %p = ait.permute %r [0, 3, 2, 1] : !ait.tensor<b x 2 x 3 x 4 x f16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 6 x 4 x f16>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %2 = ait.add %1, %p : !ait.tensor<b x 2 x 3 x 4 x f16>
  ait.output "y" %2 : !ait.tensor<b x 2 x 3 x 4 x f16>
}

// The result is no float.
// CHECK-LABEL: ait.graph @compared(
// CHECK-NOT: epilogue
// CHECK: ait.reshape %0
// CHECK: ait.output
ait.graph @compared(%x: !ait.tensor<b x 6 x 3 x f16>, %w: !ait.tensor<4 x 3 x f16>, %r: !ait.tensor<f16>) dims {b = 1 to 2} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 6 x 4 x f16>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %2 = ait.compare lt %1, %r : !ait.tensor<b x 2 x 3 x 4 x i1>
  ait.output "y" %2 : !ait.tensor<b x 2 x 3 x 4 x i1>
}

// A cast, which others move behind views.
// CHECK-LABEL: ait.graph @cast(
// CHECK-NOT: epilogue
// CHECK: ait.reshape %0
// CHECK: ait.output
ait.graph @cast(%x: !ait.tensor<b x 6 x 3 x f16>, %w: !ait.tensor<4 x 3 x f16>) dims {b = 1 to 2} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 6 x 4 x f16>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %2 = ait.cast %1 : !ait.tensor<b x 2 x 3 x 4 x f32>
  ait.output "y" %2 : !ait.tensor<b x 2 x 3 x 4 x f32>
}

// A kernel has been chosen.
// CHECK-LABEL: ait.graph @chosen(
// CHECK-NOT: epilogue
// CHECK: ait.reshape %0
// CHECK: ait.output
ait.graph @chosen(%x: !ait.tensor<b x 6 x 3 x f16>, %w: !ait.tensor<4 x 3 x f16>) dims {b = 1 to 2} {
  %0 = ait.gemm rcr %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 6 x 4 x f16>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x 4 x f16>
  %2 = ait.relu %1 : !ait.tensor<b x 2 x 3 x 4 x f16>
  ait.output "y" %2 : !ait.tensor<b x 2 x 3 x 4 x f16>
}

// Another view than a reshape.
// CHECK-LABEL: ait.graph @permuted(
// CHECK-NOT: epilogue
// CHECK: ait.permute %0
// CHECK: ait.output
ait.graph @permuted(%x: !ait.tensor<b x 6 x 3 x f16>, %w: !ait.tensor<4 x 3 x f16>) dims {b = 1 to 2} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 6 x 4 x f16>
  %1 = ait.permute %0 [0, 2, 1] : !ait.tensor<b x 4 x 6 x f16>
  %2 = ait.relu %1 : !ait.tensor<b x 4 x 6 x f16>
  ait.output "y" %2 : !ait.tensor<b x 4 x 6 x f16>
}
