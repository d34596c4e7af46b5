// RUN: ait-opt %s -p simplify | filecheck %s
// RUN: ait-opt %s -p simplify --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// CHECK-LABEL: ait.graph @again
ait.graph @again(%q: !ait.tensor<b x 256 x ui8>, %s: !ait.tensor<b x 2 x f32>, %z: !ait.tensor<b x 2 x ui8>) dims {b = 1 to 8} {
  %0 = ait.dequantize %q scale %s zero %z blocks [1, 128] : !ait.tensor<b x 256 x f16>
  %1 = ait.quantize %0 scale %s zero %z blocks [1, 128] : !ait.tensor<b x 256 x ui8>
  // CHECK: ait.output "y" %q : !ait.tensor<b x 256 x ui8>
  ait.output "y" %1 : !ait.tensor<b x 256 x ui8>
}

// CHECK-LABEL: ait.graph @floats
ait.graph @floats(%q: !ait.tensor<8 x f8E4M3FN>, %s: !ait.tensor<f32>) {
  %0 = ait.dequantize %q scale %s : !ait.tensor<8 x f32>
  %1 = ait.quantize %0 scale %s : !ait.tensor<8 x f8E4M3FN>
  // CHECK: ait.output "y" %q : !ait.tensor<8 x f8E4M3FN>
  ait.output "y" %1 : !ait.tensor<8 x f8E4M3FN>
}

// The values of rounded numbers are not the numbers.
// CHECK-LABEL: ait.graph @values
ait.graph @values(%x: !ait.tensor<8 x f32>, %s: !ait.tensor<f32>) {
  // CHECK: ait.quantize
  // CHECK-NEXT: ait.dequantize
  %0 = ait.quantize %x scale %s : !ait.tensor<8 x i8>
  %1 = ait.dequantize %0 scale %s : !ait.tensor<8 x f32>
  ait.output "y" %1 : !ait.tensor<8 x f32>
}

// CHECK-LABEL: ait.graph @other_type
ait.graph @other_type(%q: !ait.tensor<8 x i8>, %s: !ait.tensor<f32>) {
  %0 = ait.dequantize %q scale %s : !ait.tensor<8 x f32>
  // CHECK: ait.quantize
  %1 = ait.quantize %0 scale %s : !ait.tensor<8 x ui8>
  ait.output "y" %1 : !ait.tensor<8 x ui8>
}

// CHECK-LABEL: ait.graph @other_scale
ait.graph @other_scale(%q: !ait.tensor<8 x i8>, %s: !ait.tensor<f32>, %t: !ait.tensor<f32>) {
  %0 = ait.dequantize %q scale %s : !ait.tensor<8 x f32>
  // CHECK: ait.quantize
  %1 = ait.quantize %0 scale %t : !ait.tensor<8 x i8>
  ait.output "y" %1 : !ait.tensor<8 x i8>
}

// CHECK-LABEL: ait.graph @other_blocks
ait.graph @other_blocks(%q: !ait.tensor<4 x 2 x i8>, %s: !ait.tensor<4 x 1 x f32>) {
  %0 = ait.dequantize %q scale %s : !ait.tensor<4 x 2 x f32>
  // CHECK: ait.quantize
  %1 = ait.quantize %0 scale %s blocks [1, 2] : !ait.tensor<4 x 2 x i8>
  ait.output "y" %1 : !ait.tensor<4 x 2 x i8>
}

// An infinity becomes the largest number.
// CHECK-LABEL: ait.graph @infinity
ait.graph @infinity(%q: !ait.tensor<8 x f8E5M2>, %s: !ait.tensor<f32>) {
  %0 = ait.dequantize %q scale %s : !ait.tensor<8 x f32>
  // CHECK: ait.quantize
  %1 = ait.quantize %0 scale %s : !ait.tensor<8 x f8E5M2>
  ait.output "y" %1 : !ait.tensor<8 x f8E5M2>
}
