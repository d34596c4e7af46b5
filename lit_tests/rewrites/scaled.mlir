// RUN: ait-opt %s -p multiply-stored --check-semantics | filecheck %s

// The product of the stored numbers; scales by row and by column come behind the sums.
// CHECK-LABEL: ait.graph @scales
ait.graph @scales(%x: !ait.tensor<b x s x 64 x i8>, %xs: !ait.tensor<b x s x 1 x f32>, %w: !ait.tensor<24 x 64 x i8>, %ws: !ait.tensor<24 x 1 x f32>) dims {b = 1 to 3, s = 1 to 9} {
  // CHECK-NOT:  dequantize
  // CHECK:      [[C:%.+]] = ait.reshape %ws : !ait.tensor<1 x 24 x f32>
  // CHECK-NEXT: ait.gemm rcr %x, %w epilogue(%xs, [[C]]) {
  // CHECK-NEXT: ^bb0(%acc: i32, [[S:%.+]]: f32, [[T:%.+]]: f32):
  // CHECK-NEXT:   [[F:%.+]] = ait.cast %acc : f32
  // CHECK-NEXT:   [[G:%.+]] = ait.mul [[F]], [[S]] : f32
  // CHECK-NEXT:   [[H:%.+]] = ait.mul [[G]], [[T]] : f32
  // CHECK-NEXT:   ait.yield [[H]] : f32
  // CHECK-NEXT: } : !ait.tensor<b x s x 24 x f16>
  %a = ait.dequantize %x scale %xs : !ait.tensor<b x s x 64 x f16>
  %c = ait.dequantize %w scale %ws : !ait.tensor<24 x 64 x f16>
  %y = ait.gemm rcr %a, %c : !ait.tensor<b x s x 24 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 24 x f16>
}

// Zero points are sums of rows and columns.
// CHECK-LABEL: ait.graph @zeros
ait.graph @zeros(%x: !ait.tensor<s x 64 x ui8>, %z: !ait.tensor<ui8>, %w: !ait.tensor<64 x 24 x i8>, %v: !ait.tensor<24 x i8>, %t: !ait.tensor<f32>) dims {s = 1 to 9} {
  // CHECK:      ait.reduce sum {{.*}} dims [1] : !ait.tensor<s x i32>
  // CHECK:      ait.reduce sum {{.*}} dims [0] : !ait.tensor<24 x i32>
  // CHECK:      ait.gemm rrr %x, %w epilogue(
  // CHECK-NEXT: ^bb0(%acc: i32, {{.*}}: i32, {{.*}}: i32, {{.*}}: i32, {{.*}}: i32, {{.*}}: f32, {{.*}}: f32):
  %a = ait.dequantize %x scale %t zero %z : !ait.tensor<s x 64 x f32>
  %c = ait.dequantize %w scale %t zero %v : !ait.tensor<64 x 24 x f32>
  %y = ait.gemm rrr %a, %c : !ait.tensor<s x 24 x f32>
  ait.output "y" %y : !ait.tensor<s x 24 x f32>
}

// CHECK-LABEL: ait.graph @batches
ait.graph @batches(%q: !ait.tensor<b x 3 x s x 16 x i8>, %k: !ait.tensor<b x 3 x s x 16 x ui8>, %s: !ait.tensor<b x 3 x s x 1 x f64>, %z: !ait.tensor<b x 1 x s x 1 x i8>) dims {b = 1 to 2, s = 1 to 9} {
  // CHECK: ait.bmm rcr %q, %k epilogue(
  %a = ait.dequantize %q scale %s zero %z : !ait.tensor<b x 3 x s x 16 x f64>
  %c = ait.dequantize %k scale %s zero %z : !ait.tensor<b x 3 x s x 16 x f64>
  %y = ait.bmm rcr %a, %c : !ait.tensor<b x 3 x s x s x f64>
  ait.output "y" %y : !ait.tensor<b x 3 x s x s x f64>
}

// Blocks along k, scales and zero points that differ along k, 8-bit floats, 16-bit integers.
// CHECK-LABEL: ait.graph @along_k
ait.graph @along_k(%x: !ait.tensor<s x 64 x i8>, %one: !ait.tensor<f32>, %g: !ait.tensor<24 x 2 x f32>, %k: !ait.tensor<64 x f32>, %z: !ait.tensor<64 x i8>, %w: !ait.tensor<24 x 64 x i8>, %h: !ait.tensor<24 x 64 x i16>, %f: !ait.tensor<24 x 64 x f8E4M3FN>) dims {s = 1 to 9} {
  // CHECK-NOT: ait.gemm rcr %x
  %a = ait.dequantize %x scale %one : !ait.tensor<s x 64 x f32>
  %a1 = ait.dequantize %x scale %k : !ait.tensor<s x 64 x f32>
  %a2 = ait.dequantize %x scale %one zero %z : !ait.tensor<s x 64 x f32>
  %w0 = ait.dequantize %w scale %g blocks [1, 32] : !ait.tensor<24 x 64 x f32>
  %w1 = ait.dequantize %w scale %k : !ait.tensor<24 x 64 x f32>
  %w2 = ait.dequantize %w scale %one zero %z : !ait.tensor<24 x 64 x f32>
  %w3 = ait.dequantize %h scale %one : !ait.tensor<24 x 64 x f32>
  %w4 = ait.dequantize %f scale %one : !ait.tensor<24 x 64 x f32>
  %w5 = ait.dequantize %w scale %one : !ait.tensor<24 x 64 x f32>
  %y0 = ait.gemm rcr %a, %w0 : !ait.tensor<s x 24 x f32>
  %y1 = ait.gemm rcr %a, %w1 : !ait.tensor<s x 24 x f32>
  %y2 = ait.gemm rcr %a, %w2 : !ait.tensor<s x 24 x f32>
  %y3 = ait.gemm rcr %a, %w3 : !ait.tensor<s x 24 x f32>
  %y4 = ait.gemm rcr %a, %w4 : !ait.tensor<s x 24 x f32>
  %y5 = ait.gemm rcr %a1, %w5 : !ait.tensor<s x 24 x f32>
  %y6 = ait.gemm rcr %a2, %w5 : !ait.tensor<s x 24 x f32>
  // CHECK: ait.output "y0"
  ait.output "y0" %y0 : !ait.tensor<s x 24 x f32>
  ait.output "y1" %y1 : !ait.tensor<s x 24 x f32>
  ait.output "y2" %y2 : !ait.tensor<s x 24 x f32>
  ait.output "y3" %y3 : !ait.tensor<s x 24 x f32>
  ait.output "y4" %y4 : !ait.tensor<s x 24 x f32>
  ait.output "y5" %y5 : !ait.tensor<s x 24 x f32>
  ait.output "y6" %y6 : !ait.tensor<s x 24 x f32>
}

// The first operand has other types, or blocks; sums that may be too large; an epilogue; a selected kernel; columns.
// CHECK-LABEL: ait.graph @others
ait.graph @others(%h: !ait.tensor<9 x 64 x i16>, %x: !ait.tensor<9 x 64 x i8>, %g: !ait.tensor<9 x 2 x f32>, %one: !ait.tensor<f32>, %w: !ait.tensor<24 x 64 x i8>, %long: !ait.tensor<2 x 140000 x i8>, %v: !ait.tensor<64 x 9 x i8>) {
  // CHECK-NOT: i32
  %a0 = ait.dequantize %h scale %one : !ait.tensor<9 x 64 x f32>
  %a1 = ait.dequantize %x scale %g blocks [1, 32] : !ait.tensor<9 x 64 x f32>
  %a2 = ait.dequantize %x scale %one : !ait.tensor<9 x 64 x f32>
  %c = ait.dequantize %w scale %one : !ait.tensor<24 x 64 x f32>
  %l = ait.dequantize %long scale %one : !ait.tensor<2 x 140000 x f32>
  %y0 = ait.gemm rcr %a0, %c : !ait.tensor<9 x 24 x f32>
  %y1 = ait.gemm rcr %a1, %c : !ait.tensor<9 x 24 x f32>
  %y2 = ait.gemm rcr %l, %l : !ait.tensor<2 x 2 x f32>
  %y3 = ait.gemm rcr %a2, %c epilogue() {
  ^bb0(%acc: f32):
    %t = ait.relu %acc : f32
    ait.yield %t : f32
  } : !ait.tensor<9 x 24 x f32>
  %y4 = ait.gemm rcr %a2, %c {kernel = #ait.kernel<"native">} : !ait.tensor<9 x 24 x f32>
  %a5 = ait.dequantize %v scale %one : !ait.tensor<64 x 9 x f32>
  %y5 = ait.gemm ccr %a5, %c : !ait.tensor<9 x 24 x f32>
  %y6 = ait.gemm rcc %a2, %c : !ait.tensor<24 x 9 x f32>
  // CHECK: ait.output "y0"
  ait.output "y0" %y0 : !ait.tensor<9 x 24 x f32>
  ait.output "y5" %y5 : !ait.tensor<9 x 24 x f32>
  ait.output "y6" %y6 : !ait.tensor<24 x 9 x f32>
  ait.output "y1" %y1 : !ait.tensor<9 x 24 x f32>
  ait.output "y2" %y2 : !ait.tensor<2 x 2 x f32>
  ait.output "y3" %y3 : !ait.tensor<9 x 24 x f32>
  ait.output "y4" %y4 : !ait.tensor<9 x 24 x f32>
}
