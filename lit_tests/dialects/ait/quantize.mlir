// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @types
ait.graph @types(%a: !ait.tensor<b x f8E4M3FN>, %b: !ait.tensor<b x f8E5M2>, %c: !ait.tensor<b x f8E8M0FNU>, %d: !ait.tensor<b x i4>, %e: !ait.tensor<b x ui4>) dims {b = 1 to 8} {
  // CHECK: ait.cast %a : !ait.tensor<b x f32>
  %0 = ait.cast %a : !ait.tensor<b x f32>
  // CHECK-NEXT: ait.cast %0 : !ait.tensor<b x f8E5M2>
  %1 = ait.cast %0 : !ait.tensor<b x f8E5M2>
  // CHECK-NEXT: ait.constant [0.5, 448.0] : !ait.tensor<2 x f8E4M3FN>
  %2 = ait.constant [0.5, 448.0] : !ait.tensor<2 x f8E4M3FN>
  // CHECK-NEXT: ait.constant [-8, 7] : !ait.tensor<2 x i4>
  %3 = ait.constant [-8, 7] : !ait.tensor<2 x i4>
  // CHECK-NEXT: ait.concat %b, %1 dim 0 : !ait.tensor<(2*b) x f8E5M2>
  %4 = ait.concat %b, %1 dim 0 : !ait.tensor<(2*b) x f8E5M2>
  // CHECK-NEXT: ait.param "w" : !ait.tensor<4 x f8E8M0FNU>
  %5 = ait.param "w" : !ait.tensor<4 x f8E8M0FNU>
  ait.output "c" %c : !ait.tensor<b x f8E8M0FNU>
  ait.output "d" %d : !ait.tensor<b x i4>
  ait.output "e" %e : !ait.tensor<b x ui4>
}

// CHECK-LABEL: ait.graph @scales
ait.graph @scales(%x: !ait.tensor<b x 768 x f16>, %one: !ait.tensor<f32>, %rows: !ait.tensor<b x 1 x f32>, %groups: !ait.tensor<b x 6 x f8E8M0FNU>, %tiles: !ait.tensor<(b ceildiv 2) x 6 x f32>, %z: !ait.tensor<ui8>) dims {b = 1 to 8} {
  // CHECK: %0 = ait.quantize %x scale %one : !ait.tensor<b x 768 x f8E4M3FN>
  // GENERIC: "ait.quantize"(%x, %one) <{operandSegmentSizes = array<i32: 1, 1, 0>}>
  %0 = ait.quantize %x scale %one : !ait.tensor<b x 768 x f8E4M3FN>
  // CHECK-NEXT: %1 = ait.quantize %x scale %rows : !ait.tensor<b x 768 x i8>
  %1 = ait.quantize %x scale %rows : !ait.tensor<b x 768 x i8>
  // CHECK-NEXT: %2 = ait.quantize %x scale %groups blocks [1, 128] : !ait.tensor<b x 768 x f8E4M3FN>
  // GENERIC: blocks = #ait.shape<1, 128>
  %2 = ait.quantize %x scale %groups blocks [1, 128] : !ait.tensor<b x 768 x f8E4M3FN>
  // CHECK-NEXT: %3 = ait.quantize %x scale %tiles blocks [2, 128] {note} : !ait.tensor<b x 768 x i4>
  %3 = ait.quantize %x scale %tiles blocks [2, 128] {note} : !ait.tensor<b x 768 x i4>
  // CHECK-NEXT: %4 = ait.quantize %x scale %one zero %z : !ait.tensor<b x 768 x ui8>
  %4 = ait.quantize %x scale %one zero %z : !ait.tensor<b x 768 x ui8>
  // CHECK-NEXT: %5 = ait.dequantize %4 scale %one zero %z : !ait.tensor<b x 768 x f16>
  %5 = ait.dequantize %4 scale %one zero %z : !ait.tensor<b x 768 x f16>
  // CHECK-NEXT: %6 = ait.dequantize %2 scale %groups blocks [1, 128] : !ait.tensor<b x 768 x f32>
  %6 = ait.dequantize %2 scale %groups blocks [1, 128] : !ait.tensor<b x 768 x f32>
  // A block of a whole dim needs no proof that the dim is a multiple of anything.
  // CHECK-NEXT: %7 = ait.quantize %x scale %rows blocks [1, 768] : !ait.tensor<b x 768 x f8E5M2>
  %7 = ait.quantize %x scale %rows blocks [1, 768] : !ait.tensor<b x 768 x f8E5M2>
  ait.output "y" %6 : !ait.tensor<b x 768 x f32>
}

// CHECK-LABEL: ait.graph @packed
ait.graph @packed(%x: !ait.tensor<4 x n x ui8>, %y: !ait.tensor<4 x ui8>) dims {n = 1 to 8} {
  // CHECK: ait.unpack %x : !ait.tensor<4 x (2*n) x i4>
  %0 = ait.unpack %x : !ait.tensor<4 x (2*n) x i4>
  // CHECK-NEXT: ait.unpack %y : !ait.tensor<7 x ui4>
  %1 = ait.unpack %y : !ait.tensor<7 x ui4>
  ait.output "a" %0 : !ait.tensor<4 x (2*n) x i4>
}
