// RUN: ait-opt %s -p simplify | filecheck %s
// RUN: ait-opt %s -p simplify --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// Numbers as near as the element type holds them.
// CHECK-LABEL: ait.graph @gelu
ait.graph @gelu(%x: !ait.tensor<4 x f32>) {
  // CHECK-NEXT: %0 = ait.gelu %x
  // CHECK-NEXT: %1 = ait.gelu %x
  // CHECK-NEXT: ait.output
  %half = ait.constant 0.5 : !ait.tensor<f32>
  %one = ait.constant 1.0 : !ait.tensor<1 x f32>
  %r = ait.constant 0.7071067811865476 : !ait.tensor<f32>
  %q = ait.constant 1.4142135623730951 : !ait.tensor<f32>
  %0 = ait.mul %x, %r : !ait.tensor<4 x f32>
  %1 = ait.erf %0 : !ait.tensor<4 x f32>
  %2 = ait.add %1, %one : !ait.tensor<4 x f32>
  %3 = ait.mul %x, %half : !ait.tensor<4 x f32>
  %4 = ait.mul %3, %2 : !ait.tensor<4 x f32>
  %5 = ait.div %x, %q : !ait.tensor<4 x f32>
  %6 = ait.erf %5 : !ait.tensor<4 x f32>
  %7 = ait.add %6, %one : !ait.tensor<4 x f32>
  %8 = ait.mul %x, %half : !ait.tensor<4 x f32>
  %9 = ait.mul %8, %7 : !ait.tensor<4 x f32>
  ait.output "y0" %4 : !ait.tensor<4 x f32>
  ait.output "y1" %9 : !ait.tensor<4 x f32>
}

// CHECK-LABEL: ait.graph @fast_gelu
ait.graph @fast_gelu(%x: !ait.tensor<4 x f32>) {
  // CHECK-NEXT: %0 = ait.fast_gelu %x
  // CHECK-NEXT: ait.output
  %half = ait.constant 0.5 : !ait.tensor<f32>
  %one = ait.constant 1.0 : !ait.tensor<1 x f32>
  %c = ait.constant 0.044715 : !ait.tensor<f32>
  %s = ait.constant 0.7978845608028654 : !ait.tensor<f32>
  %0 = ait.mul %x, %x : !ait.tensor<4 x f32>
  %1 = ait.mul %0, %x : !ait.tensor<4 x f32>
  %2 = ait.mul %1, %c : !ait.tensor<4 x f32>
  %3 = ait.add %x, %2 : !ait.tensor<4 x f32>
  %4 = ait.mul %3, %s : !ait.tensor<4 x f32>
  %5 = ait.tanh %4 : !ait.tensor<4 x f32>
  %6 = ait.add %5, %one : !ait.tensor<4 x f32>
  %7 = ait.mul %x, %half : !ait.tensor<4 x f32>
  %8 = ait.mul %7, %6 : !ait.tensor<4 x f32>
  ait.output "y0" %8 : !ait.tensor<4 x f32>
}

// CHECK-LABEL: ait.graph @gelu_f16
ait.graph @gelu_f16(%x: !ait.tensor<4 x f16>) {
  // CHECK-NEXT: %0 = ait.gelu %x
  // CHECK-NEXT: %1 = ait.gelu %x
  // CHECK-NEXT: ait.output
  %half = ait.constant 0.5 : !ait.tensor<f16>
  %one = ait.constant 1.0 : !ait.tensor<1 x f16>
  %r = ait.constant 0.7071067811865476 : !ait.tensor<f16>
  %q = ait.constant 1.4142135623730951 : !ait.tensor<f16>
  %0 = ait.mul %x, %r : !ait.tensor<4 x f16>
  %1 = ait.erf %0 : !ait.tensor<4 x f16>
  %2 = ait.add %1, %one : !ait.tensor<4 x f16>
  %3 = ait.mul %x, %half : !ait.tensor<4 x f16>
  %4 = ait.mul %3, %2 : !ait.tensor<4 x f16>
  %5 = ait.div %x, %q : !ait.tensor<4 x f16>
  %6 = ait.erf %5 : !ait.tensor<4 x f16>
  %7 = ait.add %6, %one : !ait.tensor<4 x f16>
  %8 = ait.mul %x, %half : !ait.tensor<4 x f16>
  %9 = ait.mul %8, %7 : !ait.tensor<4 x f16>
  ait.output "y0" %4 : !ait.tensor<4 x f16>
  ait.output "y1" %9 : !ait.tensor<4 x f16>
}

// CHECK-LABEL: ait.graph @fast_gelu_f16
ait.graph @fast_gelu_f16(%x: !ait.tensor<4 x f16>) {
  // CHECK-NEXT: %0 = ait.fast_gelu %x
  // CHECK-NEXT: ait.output
  %half = ait.constant 0.5 : !ait.tensor<f16>
  %one = ait.constant 1.0 : !ait.tensor<1 x f16>
  %c = ait.constant 0.044715 : !ait.tensor<f16>
  %s = ait.constant 0.7978845608028654 : !ait.tensor<f16>
  %0 = ait.mul %x, %x : !ait.tensor<4 x f16>
  %1 = ait.mul %0, %x : !ait.tensor<4 x f16>
  %2 = ait.mul %1, %c : !ait.tensor<4 x f16>
  %3 = ait.add %x, %2 : !ait.tensor<4 x f16>
  %4 = ait.mul %3, %s : !ait.tensor<4 x f16>
  %5 = ait.tanh %4 : !ait.tensor<4 x f16>
  %6 = ait.add %5, %one : !ait.tensor<4 x f16>
  %7 = ait.mul %x, %half : !ait.tensor<4 x f16>
  %8 = ait.mul %7, %6 : !ait.tensor<4 x f16>
  ait.output "y0" %8 : !ait.tensor<4 x f16>
}
