// RUN: ait-opt %s -p convolve-stored --check-semantics | filecheck %s

// The convolution of the stored numbers; both scales come behind the sums, and what follows makes integers again.
// CHECK-LABEL: ait.graph @image
ait.graph @image(%x: !ait.tensor<b x 9 x 9 x 8 x ui8>, %w: !ait.tensor<6 x 3 x 3 x 8 x i8>, %t: !ait.tensor<6 x 1 x 1 x 1 x f32>, %bias: !ait.tensor<6 x f32>) dims {b = 1 to 3} {
  // CHECK-NOT:  ait.dequantize
  // CHECK:      ait.conv %x, %w stride [2, 2] pad [1, 1] epilogue([[S:%.+]]) {
  // CHECK-NEXT: ^bb0([[A:%.+]]: i32, [[T:%.+]]: f32):
  // CHECK-NEXT:   [[F:%.+]] = ait.cast [[A]] : f32
  // CHECK-NEXT:   [[G:%.+]] = ait.mul [[F]], [[T]] : f32
  // CHECK-NEXT:   ait.yield [[G]] : f32
  // CHECK-NEXT: } : !ait.tensor<b x 5 x 5 x 6 x f32>
  // CHECK:      [[R:%.+]] = ait.relu
  // CHECK:      [[D:%.+]] = ait.div [[R]]
  // CHECK-NEXT: [[N:%.+]] = ait.round [[D]]
  // CHECK-NEXT: ait.cast [[N]] : !ait.tensor<b x 5 x 5 x 6 x ui8>
  // CHECK-NOT:  ait.quantize
  %s = ait.constant 0.02 : !ait.tensor<f32>
  %a = ait.dequantize %x scale %s : !ait.tensor<b x 9 x 9 x 8 x f32>
  %c = ait.dequantize %w scale %t : !ait.tensor<6 x 3 x 3 x 8 x f32>
  %y = ait.conv %a, %c stride [2, 2] pad [1, 1] : !ait.tensor<b x 5 x 5 x 6 x f32>
  %z = ait.add %y, %bias : !ait.tensor<b x 5 x 5 x 6 x f32>
  %r = ait.relu %z : !ait.tensor<b x 5 x 5 x 6 x f32>
  %q = ait.quantize %r scale %s : !ait.tensor<b x 5 x 5 x 6 x ui8>
  ait.output "y" %q : !ait.tensor<b x 5 x 5 x 6 x ui8>
}

// A window of one element is a product; the result may be narrow.
// CHECK-LABEL: ait.graph @point
ait.graph @point(%x: !ait.tensor<b x h x 5 x 8 x i8>, %s: !ait.tensor<1 x f16>, %w: !ait.tensor<6 x 1 x 1 x 8 x i8>, %t: !ait.tensor<f32>) dims {b = 0 to 3, h = 1 to 4} {
  // CHECK: ait.gemm rcr %x, {{.*}} epilogue(
  // CHECK: } : !ait.tensor<b x h x 5 x 6 x f16>
  %a = ait.dequantize %x scale %s : !ait.tensor<b x h x 5 x 8 x f16>
  %c = ait.dequantize %w scale %t : !ait.tensor<6 x 1 x 1 x 8 x f16>
  %y = ait.conv %a, %c : !ait.tensor<b x h x 5 x 6 x f16>
  ait.output "y" %y : !ait.tensor<b x h x 5 x 6 x f16>
}

// Behind views: channels moved last, and rows of a matrix as windows.
// CHECK-LABEL: ait.graph @views
ait.graph @views(%x: !ait.tensor<b x 4 x 7 x ui8>, %s: !ait.tensor<1 x 1 x 1 x f32>, %w: !ait.tensor<6 x 12 x i8>, %v: !ait.tensor<6 x 4 x 3 x ui8>, %t: !ait.tensor<6 x 1 x f64>, %u: !ait.tensor<6 x 1 x 1 x f32>) dims {b = 1 to 3} {
  // CHECK:     [[X:%.+]] = ait.permute %x [0, 2, 1] : !ait.tensor<b x 7 x 4 x ui8>
  // CHECK:     [[W:%.+]] = ait.reshape %w : !ait.tensor<6 x 3 x 4 x i8>
  // CHECK:     ait.conv [[X]], [[W]] epilogue(
  // CHECK:     [[V:%.+]] = ait.permute %v [0, 2, 1] : !ait.tensor<6 x 3 x 4 x ui8>
  // CHECK:     ait.conv {{.*}}, [[V]]
  %a = ait.dequantize %x scale %s : !ait.tensor<b x 4 x 7 x f64>
  %b = ait.permute %a [0, 2, 1] : !ait.tensor<b x 7 x 4 x f64>
  %c = ait.dequantize %w scale %t : !ait.tensor<6 x 12 x f64>
  %d = ait.reshape %c : !ait.tensor<6 x 3 x 4 x f64>
  %e = ait.dequantize %v scale %u : !ait.tensor<6 x 4 x 3 x f64>
  %f = ait.permute %e [0, 2, 1] : !ait.tensor<6 x 3 x 4 x f64>
  %y = ait.conv %b, %d : !ait.tensor<b x 5 x 6 x f64>
  %z = ait.conv %b, %f pad [1] : !ait.tensor<b x 7 x 6 x f64>
  ait.output "y" %y : !ait.tensor<b x 5 x 6 x f64>
  ait.output "z" %z : !ait.tensor<b x 7 x 6 x f64>
}

// Zero points, scales of channels of x, scales of another dim of the weight, 8-bit floats, sums that may be too large.
// CHECK-LABEL: ait.graph @kept
ait.graph @kept(%x: !ait.tensor<b x 9 x 6 x i8>, %w: !ait.tensor<6 x 3 x 6 x i8>, %s: !ait.tensor<f32>, %t: !ait.tensor<6 x 1 x 1 x f32>, %c: !ait.tensor<6 x f32>, %z: !ait.tensor<i8>, %f: !ait.tensor<6 x 3 x 6 x f8E4M3FN>, %g: !ait.tensor<b x 9 x 90000 x i8>, %k: !ait.tensor<6 x 3 x 90000 x i8>) dims {b = 1 to 2} {
  // CHECK-NOT: ait.conv {{.*}} epilogue(
  %a = ait.dequantize %x scale %s : !ait.tensor<b x 9 x 6 x f32>
  %a1 = ait.dequantize %x scale %s zero %z : !ait.tensor<b x 9 x 6 x f32>
  %a2 = ait.dequantize %x scale %c : !ait.tensor<b x 9 x 6 x f32>
  %w0 = ait.dequantize %w scale %t : !ait.tensor<6 x 3 x 6 x f32>
  %w1 = ait.dequantize %w scale %s zero %z : !ait.tensor<6 x 3 x 6 x f32>
  %w2 = ait.dequantize %w scale %c : !ait.tensor<6 x 3 x 6 x f32>
  %w3 = ait.dequantize %f scale %s : !ait.tensor<6 x 3 x 6 x f32>
  %w4 = ait.permute %w0 [2, 1, 0] : !ait.tensor<6 x 3 x 6 x f32>
  %big = ait.dequantize %g scale %s : !ait.tensor<b x 9 x 90000 x f32>
  %wide = ait.dequantize %k scale %s : !ait.tensor<6 x 3 x 90000 x f32>
  %y0 = ait.conv %a1, %w0 : !ait.tensor<b x 7 x 6 x f32>
  %y1 = ait.conv %a2, %w0 : !ait.tensor<b x 7 x 6 x f32>
  %y2 = ait.conv %a, %w1 : !ait.tensor<b x 7 x 6 x f32>
  %y3 = ait.conv %a, %w2 : !ait.tensor<b x 7 x 6 x f32>
  %y4 = ait.conv %a, %w3 : !ait.tensor<b x 7 x 6 x f32>
  %y5 = ait.conv %a, %w4 : !ait.tensor<b x 7 x 6 x f32>
  %y6 = ait.conv %big, %wide : !ait.tensor<b x 7 x 6 x f32>
  ait.output "0" %y0 : !ait.tensor<b x 7 x 6 x f32>
  ait.output "1" %y1 : !ait.tensor<b x 7 x 6 x f32>
  ait.output "2" %y2 : !ait.tensor<b x 7 x 6 x f32>
  ait.output "3" %y3 : !ait.tensor<b x 7 x 6 x f32>
  ait.output "4" %y4 : !ait.tensor<b x 7 x 6 x f32>
  ait.output "5" %y5 : !ait.tensor<b x 7 x 6 x f32>
  ait.output "6" %y6 : !ait.tensor<b x 7 x 6 x f32>
}

// A convolution that computes more than sums, or whose kernel is chosen.
// CHECK-LABEL: ait.graph @kept_convolutions
ait.graph @kept_convolutions(%x: !ait.tensor<b x 9 x 6 x i8>, %w: !ait.tensor<6 x 3 x 6 x i8>, %s: !ait.tensor<f32>) dims {b = 1 to 2} {
  // CHECK: ait.conv %a, %c epilogue() {
  // CHECK: ait.conv %a, %c {kernel
  %a = ait.dequantize %x scale %s : !ait.tensor<b x 9 x 6 x f32>
  %c = ait.dequantize %w scale %s : !ait.tensor<6 x 3 x 6 x f32>
  %y = ait.conv %a, %c epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<b x 7 x 6 x f32>
  %z = ait.conv %a, %c {kernel = #ait.kernel<"native">} : !ait.tensor<b x 7 x 6 x f32>
  ait.output "y" %y : !ait.tensor<b x 7 x 6 x f32>
  ait.output "z" %z : !ait.tensor<b x 7 x 6 x f32>
}

// Integers of 16 bits, blocks, and values that follow from no sums of integers stay quantised by the op.
// CHECK-LABEL: ait.graph @quantised
ait.graph @quantised(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<4 x 8 x f32>, %q: !ait.tensor<b x 8 x i8>, %r: !ait.tensor<4 x 8 x i8>, %s: !ait.tensor<f32>, %g: !ait.tensor<b x 2 x f32>) dims {b = 1 to 2} {
  // CHECK-COUNT-4: ait.quantize
  // CHECK-NOT: ait.quantize
  %y = ait.gemm rcr %x, %w : !ait.tensor<b x 4 x f32>
  %z = ait.gemm rcr %q, %r : !ait.tensor<b x 4 x i32>
  %f = ait.cast %z : !ait.tensor<b x 4 x f32>
  %a = ait.quantize %y scale %s : !ait.tensor<b x 4 x i8>
  %b = ait.quantize %f scale %s : !ait.tensor<b x 4 x i16>
  %c = ait.quantize %f scale %g blocks [1, 2] : !ait.tensor<b x 4 x i8>
  %d = ait.quantize %x scale %s : !ait.tensor<b x 8 x i8>
  %e = ait.quantize %f scale %s : !ait.tensor<b x 4 x i8>
  ait.output "a" %a : !ait.tensor<b x 4 x i8>
  ait.output "b" %b : !ait.tensor<b x 4 x i16>
  ait.output "c" %c : !ait.tensor<b x 4 x i8>
  ait.output "d" %d : !ait.tensor<b x 8 x i8>
  ait.output "e" %e : !ait.tensor<b x 4 x i8>
}
