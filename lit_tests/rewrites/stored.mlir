// RUN: ait-opt %s -p multiply-stored --check-semantics | filecheck %s

// Packed numbers with zero points for groups along k; leading dims of x are rows.
// CHECK-LABEL: ait.graph @packed
ait.graph @packed(%x: !ait.tensor<b x s x 1024 x f16>) dims {b = 1 to 2, s = 1 to 32} {
  // CHECK-NOT:  dequantize
  // CHECK:      [[F:%.+]] = ait.reshape %x : !ait.tensor<(b*s) x 1024 x f16>
  // CHECK-NEXT: [[Y:%.+]] = ait.stored_gemm [[F]] by %w scale %s zero %z group 128 : !ait.tensor<(b*s) x 520 x f16>
  // CHECK-NEXT: ait.reshape [[Y]] : !ait.tensor<b x s x 520 x f16>
  %w = ait.param "w" : !ait.tensor<520 x 512 x ui8>
  %s = ait.param "s" : !ait.tensor<520 x 8 x f16>
  %z = ait.param "z" : !ait.tensor<520 x 8 x ui8>
  %q = ait.unpack %w : !ait.tensor<520 x 1024 x ui4>
  %v = ait.dequantize %q scale %s zero %z blocks [1, 128] : !ait.tensor<520 x 1024 x f16>
  %y = ait.gemm rcr %x, %v : !ait.tensor<b x s x 520 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 520 x f16>
}

// Bytes with a scale for each row; a block that is larger than a row is one group; packed numbers with a sign.
// CHECK-LABEL: ait.graph @rows
ait.graph @rows(%x: !ait.tensor<s x 1024 x f32>) dims {s = 1 to 16} {
  // CHECK: ait.stored_gemm %x by %w scale %s group 1024 : !ait.tensor<s x 520 x f32>
  // CHECK: ait.stored_gemm %x by %w scale %s group 1024 : !ait.tensor<s x 520 x f32>
  // CHECK: ait.stored_gemm %x by %p scale %s group 1024 signed : !ait.tensor<s x 520 x f32>
  %w = ait.param "w" : !ait.tensor<520 x 1024 x i8>
  %p = ait.param "p" : !ait.tensor<520 x 512 x ui8>
  %s = ait.param "s" : !ait.tensor<520 x 1 x f32>
  %v = ait.dequantize %w scale %s : !ait.tensor<520 x 1024 x f32>
  %u = ait.dequantize %w scale %s blocks [1, 4096] : !ait.tensor<520 x 1024 x f32>
  %q = ait.unpack %p : !ait.tensor<520 x 1024 x i4>
  %t = ait.dequantize %q scale %s : !ait.tensor<520 x 1024 x f32>
  %y = ait.gemm rcr %x, %v : !ait.tensor<s x 520 x f32>
  %r = ait.gemm rcr %x, %u : !ait.tensor<s x 520 x f32>
  %m = ait.gemm rcr %x, %t : !ait.tensor<s x 520 x f32>
  ait.output "y" %y : !ait.tensor<s x 520 x f32>
  ait.output "r" %r : !ait.tensor<s x 520 x f32>
  ait.output "m" %m : !ait.tensor<s x 520 x f32>
}

// Stored integers on both sides are multiplied as integers.
// CHECK-LABEL: ait.graph @integers
ait.graph @integers(%x: !ait.tensor<s x 1024 x i8>, %t: !ait.tensor<s x 1 x f32>) dims {s = 1 to 4} {
  // CHECK-NOT: stored_gemm
  // CHECK:     ait.gemm rcr %x, %w epilogue(
  %w = ait.param "w" : !ait.tensor<520 x 1024 x i8>
  %s = ait.param "s" : !ait.tensor<520 x 1 x f32>
  %v = ait.dequantize %w scale %s : !ait.tensor<520 x 1024 x f32>
  %u = ait.dequantize %x scale %t : !ait.tensor<s x 1024 x f32>
  %y = ait.gemm rcr %u, %v : !ait.tensor<s x 520 x f32>
  ait.output "y" %y : !ait.tensor<s x 520 x f32>
}

// A small weight is computed before the run; an input is no weight.
// CHECK-LABEL: ait.graph @small
ait.graph @small(%x: !ait.tensor<s x 64 x f32>, %in: !ait.tensor<8192 x 64 x i8>, %t: !ait.tensor<8192 x 1 x f32>) dims {s = 1 to 4} {
  // CHECK-NOT: stored_gemm
  %w = ait.param "w" : !ait.tensor<32 x 64 x i8>
  %s = ait.param "s" : !ait.tensor<32 x 1 x f32>
  %v = ait.dequantize %w scale %s : !ait.tensor<32 x 64 x f32>
  %u = ait.dequantize %in scale %t : !ait.tensor<8192 x 64 x f32>
  %y = ait.gemm rcr %x, %v : !ait.tensor<s x 32 x f32>
  %z = ait.gemm rcr %x, %u : !ait.tensor<s x 8192 x f32>
  ait.output "y" %y : !ait.tensor<s x 32 x f32>
  ait.output "z" %z : !ait.tensor<s x 8192 x f32>
}

// More rows, f64, other layouts, an epilogue, a chosen kernel.
// CHECK-LABEL: ait.graph @products
ait.graph @products(%x: !ait.tensor<s x 1024 x f32>, %h: !ait.tensor<h x 1024 x f16>, %d: !ait.tensor<3 x 1024 x f64>, %e: !ait.tensor<3 x 1024 x f32>, %n: !ait.tensor<3 x 520 x f32>) dims {s = 1 to 17, h = 1 to 65} {
  // CHECK-NOT: stored_gemm
  %w = ait.param "w" : !ait.tensor<520 x 1024 x i8>
  %s = ait.param "s" : !ait.tensor<520 x 1 x f32>
  %v = ait.dequantize %w scale %s : !ait.tensor<520 x 1024 x f32>
  %u = ait.dequantize %w scale %s : !ait.tensor<520 x 1024 x f64>
  %y0 = ait.gemm rcr %x, %v : !ait.tensor<s x 520 x f32>
  %v16 = ait.dequantize %w scale %s : !ait.tensor<520 x 1024 x f16>
  %y5 = ait.gemm rcr %h, %v16 : !ait.tensor<h x 520 x f16>
  ait.output "5" %y5 : !ait.tensor<h x 520 x f16>
  %y1 = ait.gemm rcr %d, %u : !ait.tensor<3 x 520 x f64>
  %y2 = ait.gemm rrr %n, %v : !ait.tensor<3 x 1024 x f32>
  %y3 = ait.gemm rcr %e, %v epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<3 x 520 x f32>
  %y4 = ait.gemm rcr %e, %v {kernel = #ait.kernel<"native", {}>} : !ait.tensor<3 x 520 x f32>
  ait.output "0" %y0 : !ait.tensor<s x 520 x f32>
  ait.output "1" %y1 : !ait.tensor<3 x 520 x f64>
  ait.output "2" %y2 : !ait.tensor<3 x 1024 x f32>
  ait.output "3" %y3 : !ait.tensor<3 x 520 x f32>
  ait.output "4" %y4 : !ait.tensor<3 x 520 x f32>
}

// Scales for columns, for one number, for blocks of several rows, of 8-bit floats; zero points of 4 bits, for other groups; odd groups of packed
// numbers; numbers of 16 bits.
// CHECK-LABEL: ait.graph @scales
ait.graph @scales(%x: !ait.tensor<3 x 1024 x f32>) {
  // CHECK-NOT: stored_gemm
  %w = ait.param "w" : !ait.tensor<520 x 1024 x i8>
  %p = ait.param "p" : !ait.tensor<520 x 512 x ui8>
  %h = ait.param "h" : !ait.tensor<520 x 1024 x i16>
  %one = ait.param "one" : !ait.tensor<f32>
  %k = ait.param "k" : !ait.tensor<1024 x f32>
  %s = ait.param "s" : !ait.tensor<520 x 1 x f32>
  %b = ait.param "b" : !ait.tensor<260 x 8 x f32>
  %g = ait.param "g" : !ait.tensor<520 x 1 x f8E8M0FNU>
  %z4 = ait.param "z4" : !ait.tensor<520 x 1 x ui4>
  %z1 = ait.param "z1" : !ait.tensor<i8>
  %o = ait.param "o" : !ait.tensor<520 x 342 x f32>
  %q = ait.unpack %p : !ait.tensor<520 x 1024 x ui4>
  %w0 = ait.dequantize %w scale %one : !ait.tensor<520 x 1024 x f32>
  %w1 = ait.dequantize %w scale %k : !ait.tensor<520 x 1024 x f32>
  %w2 = ait.dequantize %w scale %b blocks [2, 128] : !ait.tensor<520 x 1024 x f32>
  %w3 = ait.dequantize %w scale %g : !ait.tensor<520 x 1024 x f32>
  %w4 = ait.dequantize %w scale %s zero %z4 : !ait.tensor<520 x 1024 x f32>
  %w5 = ait.dequantize %w scale %s zero %z1 : !ait.tensor<520 x 1024 x f32>
  %w6 = ait.dequantize %q scale %o blocks [1, 3] : !ait.tensor<520 x 1024 x f32>
  %w7 = ait.dequantize %h scale %s : !ait.tensor<520 x 1024 x f32>
  %y0 = ait.gemm rcr %x, %w0 : !ait.tensor<3 x 520 x f32>
  %y1 = ait.gemm rcr %x, %w1 : !ait.tensor<3 x 520 x f32>
  %y2 = ait.gemm rcr %x, %w2 : !ait.tensor<3 x 520 x f32>
  %y3 = ait.gemm rcr %x, %w3 : !ait.tensor<3 x 520 x f32>
  %y4 = ait.gemm rcr %x, %w4 : !ait.tensor<3 x 520 x f32>
  %y5 = ait.gemm rcr %x, %w5 : !ait.tensor<3 x 520 x f32>
  %y6 = ait.gemm rcr %x, %w6 : !ait.tensor<3 x 520 x f32>
  %y7 = ait.gemm rcr %x, %w7 : !ait.tensor<3 x 520 x f32>
  ait.output "0" %y0 : !ait.tensor<3 x 520 x f32>
  ait.output "1" %y1 : !ait.tensor<3 x 520 x f32>
  ait.output "2" %y2 : !ait.tensor<3 x 520 x f32>
  ait.output "3" %y3 : !ait.tensor<3 x 520 x f32>
  ait.output "4" %y4 : !ait.tensor<3 x 520 x f32>
  ait.output "5" %y5 : !ait.tensor<3 x 520 x f32>
  ait.output "6" %y6 : !ait.tensor<3 x 520 x f32>
  ait.output "7" %y7 : !ait.tensor<3 x 520 x f32>
}

// The same of packed numbers: an input, a small weight, more rows, another layout, an epilogue, a chosen kernel.
// CHECK-LABEL: ait.graph @packed_products
ait.graph @packed_products(%x: !ait.tensor<s x 1024 x f32>, %e: !ait.tensor<3 x 1024 x f32>, %n: !ait.tensor<3 x 520 x f32>, %in: !ait.tensor<520 x 512 x ui8>) dims {s = 1 to 17} {
  // CHECK-NOT: stored_gemm
  %p = ait.param "p" : !ait.tensor<520 x 512 x ui8>
  %l = ait.param "l" : !ait.tensor<8 x 512 x ui8>
  %s = ait.param "s" : !ait.tensor<520 x 8 x f32>
  %t = ait.param "t" : !ait.tensor<8 x 8 x f32>
  %q = ait.unpack %p : !ait.tensor<520 x 1024 x i4>
  %r = ait.unpack %in : !ait.tensor<520 x 1024 x i4>
  %k = ait.unpack %l : !ait.tensor<8 x 1024 x i4>
  %v = ait.dequantize %q scale %s blocks [1, 128] : !ait.tensor<520 x 1024 x f32>
  %w = ait.dequantize %r scale %s blocks [1, 128] : !ait.tensor<520 x 1024 x f32>
  %u = ait.dequantize %k scale %t blocks [1, 128] : !ait.tensor<8 x 1024 x f32>
  %y0 = ait.gemm rcr %e, %w : !ait.tensor<3 x 520 x f32>
  %y1 = ait.gemm rcr %e, %u : !ait.tensor<3 x 8 x f32>
  %y2 = ait.gemm rcr %x, %v : !ait.tensor<s x 520 x f32>
  %y3 = ait.gemm rrr %n, %v : !ait.tensor<3 x 1024 x f32>
  %y4 = ait.gemm rcr %e, %v epilogue() {
  ^bb0(%acc: f32):
    %g = ait.relu %acc : f32
    ait.yield %g : f32
  } : !ait.tensor<3 x 520 x f32>
  %y5 = ait.gemm rcr %e, %v {kernel = #ait.kernel<"native", {}>} : !ait.tensor<3 x 520 x f32>
  ait.output "0" %y0 : !ait.tensor<3 x 520 x f32>
  ait.output "1" %y1 : !ait.tensor<3 x 8 x f32>
  ait.output "2" %y2 : !ait.tensor<s x 520 x f32>
  ait.output "3" %y3 : !ait.tensor<3 x 1024 x f32>
  ait.output "4" %y4 : !ait.tensor<3 x 520 x f32>
  ait.output "5" %y5 : !ait.tensor<3 x 520 x f32>
}
