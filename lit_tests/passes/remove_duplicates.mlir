// RUN: ait-opt %s -p remove-duplicates | filecheck %s
// RUN: ait-opt %s -p remove-duplicates,remove-duplicates | filecheck %s
// RUN: ait-opt %s -p remove-duplicates --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// Equal ops on equal operands, through views and constants, which stay; operands of a sum in either order.
// CHECK-LABEL: ait.graph @duplicates
ait.graph @duplicates(%x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<b x 4 x f32>) dims {b = 0 to 8} {
  // CHECK-NEXT: %0 = ait.slice
  // CHECK-NEXT: [[C:%.*]] = ait.constant
  // CHECK-NEXT: [[M:%.*]] = ait.mul %0, [[C]]
  // CHECK-NEXT: [[S:%.*]] = ait.softmax [[M]]
  // CHECK-NEXT: [[A:%.*]] = ait.add %x, %z
  // CHECK-NEXT: [[D:%.*]] = ait.mul [[A]], [[A]]
  // CHECK-NEXT: ait.output "y0" [[S]]
  // CHECK-NEXT: ait.output "y1" [[S]]
  // CHECK-NEXT: ait.output "y2" [[D]]
  %0 = ait.slice %x offsets [0, 1] : !ait.tensor<b x 2 x f32>
  %1 = ait.constant 2.0 : !ait.tensor<f32>
  %2 = ait.mul %0, %1 : !ait.tensor<b x 2 x f32>
  %3 = ait.softmax %2 dim 1 : !ait.tensor<b x 2 x f32>
  %4 = ait.slice %x offsets [0, 1] : !ait.tensor<b x 2 x f32>
  %5 = ait.constant 2.0 : !ait.tensor<f32>
  %6 = ait.mul %4, %5 : !ait.tensor<b x 2 x f32>
  %7 = ait.softmax %6 dim 1 : !ait.tensor<b x 2 x f32>
  %8 = ait.add %x, %z : !ait.tensor<b x 4 x f32>
  %9 = ait.add %z, %x : !ait.tensor<b x 4 x f32>
  %10 = ait.mul %8, %9 : !ait.tensor<b x 4 x f32>
  %11 = ait.exp %x : !ait.tensor<b x 4 x f32>
  ait.output "y0" %3 : !ait.tensor<b x 2 x f32>
  ait.output "y1" %7 : !ait.tensor<b x 2 x f32>
  ait.output "y2" %10 : !ait.tensor<b x 4 x f32>
}

// Operands of a difference in the other order, other properties, another type, another epilogue, x + x beside x + z.
// CHECK-LABEL: ait.graph @no_duplicates
ait.graph @no_duplicates(%x: !ait.tensor<4 x 4 x f32>, %z: !ait.tensor<4 x 4 x f32>) {
  // CHECK-COUNT-2: ait.sub
  %0 = ait.sub %x, %z : !ait.tensor<4 x 4 x f32>
  %1 = ait.sub %z, %x : !ait.tensor<4 x 4 x f32>
  // CHECK-COUNT-2: ait.softmax
  %2 = ait.softmax %x dim 0 : !ait.tensor<4 x 4 x f32>
  %3 = ait.softmax %x dim 1 : !ait.tensor<4 x 4 x f32>
  // CHECK-COUNT-2: ait.cast
  %4 = ait.cast %x : !ait.tensor<4 x 4 x f16>
  %5 = ait.cast %x : !ait.tensor<4 x 4 x bf16>
  // CHECK-COUNT-2: ait.gemm
  %6 = ait.gemm rcr %x, %z epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<4 x 4 x f32>
  %7 = ait.gemm rcr %x, %z epilogue() {
  ^bb0(%acc: f32):
    %r = ait.tanh %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<4 x 4 x f32>
  // CHECK-COUNT-3: ait.add
  %8 = ait.add %x, %x : !ait.tensor<4 x 4 x f32>
  %9 = ait.add %x, %z : !ait.tensor<4 x 4 x f32>
  %10 = ait.add %z, %z : !ait.tensor<4 x 4 x f32>
  // CHECK-COUNT-11: ait.output
  ait.output "y0" %0 : !ait.tensor<4 x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<4 x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<4 x 4 x f32>
  ait.output "y3" %3 : !ait.tensor<4 x 4 x f32>
  ait.output "y4" %4 : !ait.tensor<4 x 4 x f16>
  ait.output "y5" %5 : !ait.tensor<4 x 4 x bf16>
  ait.output "y6" %6 : !ait.tensor<4 x 4 x f32>
  ait.output "y7" %7 : !ait.tensor<4 x 4 x f32>
  ait.output "y8" %8 : !ait.tensor<4 x 4 x f32>
  ait.output "y9" %9 : !ait.tensor<4 x 4 x f32>
  ait.output "y10" %10 : !ait.tensor<4 x 4 x f32>
}

// After fusion: two launches that compute the same are one.
// CHECK-LABEL: ait.graph @fused
ait.graph @fused(%x: !ait.tensor<4 x f32>) {
  // CHECK-COUNT-1: ait.fused_elementwise
  // CHECK-NOT: ait.fused_elementwise
  %0 = ait.fused_elementwise(%x) {
  ^bb0(%a: f32):
    %r = ait.relu %a : f32
    ait.yield %r : f32
  } : !ait.tensor<4 x f32>
  %1 = ait.fused_elementwise(%x) {
  ^bb0(%a: f32):
    %r = ait.relu %a : f32
    ait.yield %r : f32
  } : !ait.tensor<4 x f32>
  ait.output "y0" %0 : !ait.tensor<4 x f32>
  ait.output "y1" %1 : !ait.tensor<4 x f32>
}

// Two values that each replace an input in its memory stay two.
// CHECK-LABEL: ait.graph @states
ait.graph @states(%x: !ait.tensor<4 x f32>, %k: !ait.tensor<4 x f32> donated, %v: !ait.tensor<4 x f32> donated) {
  // CHECK-COUNT-2: ait.relu
  %0 = ait.relu %x : !ait.tensor<4 x f32>
  %1 = ait.relu %x : !ait.tensor<4 x f32>
  ait.output "k" %0 in place of %k : !ait.tensor<4 x f32>
  ait.output "v" %1 in place of %v : !ait.tensor<4 x f32>
}

// Each body of a scan for itself.
// CHECK-LABEL: ait.graph @steps
ait.graph @steps(%x: !ait.tensor<s x 4 x f32>, %h: !ait.tensor<4 x f32>) dims {s = 1 to 5} {
  // CHECK: ait.scan
  // CHECK-COUNT-1: ait.tanh
  // CHECK-NOT: ait.tanh
  %0, %1 = ait.scan %x init(%h) dim 0 {
  ^bb0(%a: !ait.tensor<4 x f32>, %c: !ait.tensor<4 x f32>):
    %t = ait.tanh %c : !ait.tensor<4 x f32>
    %u = ait.tanh %c : !ait.tensor<4 x f32>
    %n = ait.add %t, %a : !ait.tensor<4 x f32>
    ait.yield %n, %u : !ait.tensor<4 x f32>, !ait.tensor<4 x f32>
  } : !ait.tensor<4 x f32>, !ait.tensor<s x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<4 x f32>
  ait.output "y1" %1 : !ait.tensor<s x 4 x f32>
}
