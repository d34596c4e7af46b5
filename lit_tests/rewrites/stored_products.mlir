// RUN: ait-opt %s -p 'multiply-float8{target="cuda" arch="sm_90a"}' --check-semantics | filecheck %s

// Products of the same rows with stored params are one: with scales of rows, and of blocks.
// CHECK-LABEL: ait.graph @rows
ait.graph @rows(%q: !ait.tensor<s x 64 x f8E4M3FN>, %qs: !ait.tensor<s x 1 x f32>) dims {s = 1 to 9} {
  // CHECK-DAG:  [[W:%.+]] = ait.concat %w, %v dim 0 : !ait.tensor<40 x 64 x f8E4M3FN>
  // CHECK-DAG:  [[T:%.+]] = ait.concat %ws, %vs dim 0 : !ait.tensor<40 x 1 x f32>
  // CHECK:      [[P:%.+]] = ait.gemm rcr %q, [[W]] epilogue(%qs, {{.*}}) {
  // CHECK:      } : !ait.tensor<s x 40 x f16>
  // CHECK-NEXT: ait.split [[P]] dim 1 : !ait.tensor<s x 24 x f16>, !ait.tensor<s x 16 x f16>
  // CHECK-NOT:  ait.gemm
  // CHECK:      }
  %x = ait.dequantize %q scale %qs : !ait.tensor<s x 64 x f16>
  %w = ait.param "rows.w" : !ait.tensor<24 x 64 x f8E4M3FN>
  %ws = ait.param "rows.ws" : !ait.tensor<24 x 1 x f32>
  %c = ait.dequantize %w scale %ws : !ait.tensor<24 x 64 x f16>
  %y = ait.gemm rcr %x, %c : !ait.tensor<s x 24 x f16>
  %v = ait.param "rows.v" : !ait.tensor<16 x 64 x f8E4M3FN>
  %vs = ait.param "rows.vs" : !ait.tensor<16 x 1 x f32>
  %d = ait.dequantize %v scale %vs : !ait.tensor<16 x 64 x f16>
  %z = ait.gemm rcr %x, %d : !ait.tensor<s x 16 x f16>
  %t = ait.mul %y, %y : !ait.tensor<s x 24 x f16>
  %u = ait.mul %z, %z : !ait.tensor<s x 16 x f16>
  ait.output "t" %t : !ait.tensor<s x 24 x f16>
  ait.output "u" %u : !ait.tensor<s x 16 x f16>
}

// CHECK-LABEL: ait.graph @blocks
ait.graph @blocks(%q: !ait.tensor<s x 256 x f8E4M3FN>, %qs: !ait.tensor<s x 2 x f32>) dims {s = 1 to 9} {
  // CHECK-DAG: [[W:%.+]] = ait.concat %w, %v dim 0 : !ait.tensor<384 x 256 x f8E4M3FN>
  // CHECK-DAG: [[T:%.+]] = ait.concat %ws, %vs dim 0 : !ait.tensor<3 x 2 x f32>
  // CHECK:     ait.scaled_gemm %q by [[W]] rows %qs columns [[T]] group 128 block 128
  // CHECK-NOT: ait.scaled_gemm
  // CHECK:     }
  %x = ait.dequantize %q scale %qs blocks [1, 128] : !ait.tensor<s x 256 x f16>
  %w = ait.param "blocks.w" : !ait.tensor<256 x 256 x f8E4M3FN>
  %ws = ait.param "blocks.ws" : !ait.tensor<2 x 2 x f32>
  %c = ait.dequantize %w scale %ws blocks [128, 128] : !ait.tensor<256 x 256 x f16>
  %y = ait.gemm rcr %x, %c : !ait.tensor<s x 256 x f16>
  %v = ait.param "blocks.v" : !ait.tensor<128 x 256 x f8E4M3FN>
  %vs = ait.param "blocks.vs" : !ait.tensor<1 x 2 x f32>
  %d = ait.dequantize %v scale %vs blocks [128, 128] : !ait.tensor<128 x 256 x f16>
  %z = ait.gemm rcr %x, %d : !ait.tensor<s x 128 x f16>
  %t = ait.mul %y, %y : !ait.tensor<s x 256 x f16>
  %u = ait.mul %z, %z : !ait.tensor<s x 128 x f16>
  ait.output "t" %t : !ait.tensor<s x 256 x f16>
  ait.output "u" %u : !ait.tensor<s x 128 x f16>
}

// An activation of one product alone, one scale for all rows, rows that end inside of a block, other types of numbers and of scales, a weight
// that is an input, integers, and another input.
// CHECK-LABEL: ait.graph @others
ait.graph @others(%q: !ait.tensor<s x 256 x f8E4M3FN>, %p: !ait.tensor<s x 256 x f8E4M3FN>, %qs: !ait.tensor<f32>, %in: !ait.tensor<64 x 256 x f8E4M3FN>) dims {s = 1 to 9} {
  // CHECK-NOT: ait.concat
  // CHECK: ait.output "y0"
  %x = ait.dequantize %q scale %qs : !ait.tensor<s x 256 x f32>
  %r = ait.dequantize %p scale %qs : !ait.tensor<s x 256 x f32>
  %w = ait.param "others.w" : !ait.tensor<64 x 256 x f8E4M3FN>
  %rows = ait.param "others.rows" : !ait.tensor<64 x 1 x f32>
  %halves = ait.param "others.halves" : !ait.tensor<64 x 1 x f16>
  %one = ait.param "others.one" : !ait.tensor<1 x 1 x f32>
  %scalar = ait.param "others.scalar" : !ait.tensor<f32>
  %blocks = ait.param "others.blocks" : !ait.tensor<1 x 2 x f32>
  %e5 = ait.param "others.e5" : !ait.tensor<64 x 256 x f8E5M2>
  %i8 = ait.param "others.i8" : !ait.tensor<64 x 256 x i8>
  %i8b = ait.param "others.i8b" : !ait.tensor<64 x 256 x i8>
  %w0 = ait.dequantize %w scale %rows : !ait.tensor<64 x 256 x f32>
  %w1 = ait.dequantize %w scale %one : !ait.tensor<64 x 256 x f32>
  %w2 = ait.dequantize %w scale %blocks blocks [128, 128] : !ait.tensor<64 x 256 x f32>
  %w3 = ait.dequantize %w scale %halves : !ait.tensor<64 x 256 x f32>
  %w4 = ait.dequantize %e5 scale %rows : !ait.tensor<64 x 256 x f32>
  %w5 = ait.dequantize %in scale %rows : !ait.tensor<64 x 256 x f32>
  %w6 = ait.dequantize %i8 scale %rows : !ait.tensor<64 x 256 x f32>
  %w7 = ait.dequantize %w scale %scalar : !ait.tensor<64 x 256 x f32>
  %wb = ait.dequantize %i8b scale %rows : !ait.tensor<64 x 256 x f32>
  %y0 = ait.gemm rcr %x, %w0 : !ait.tensor<s x 64 x f32>
  %y1 = ait.gemm rcr %x, %w1 : !ait.tensor<s x 64 x f32>
  %y2 = ait.gemm rcr %x, %w2 : !ait.tensor<s x 64 x f32>
  %y3 = ait.gemm rcr %x, %w3 : !ait.tensor<s x 64 x f32>
  %y4 = ait.gemm rcr %x, %w4 : !ait.tensor<s x 64 x f32>
  %y5 = ait.gemm rcr %x, %w5 : !ait.tensor<s x 64 x f32>
  %y6 = ait.gemm rcr %x, %w6 : !ait.tensor<s x 64 x f32>
  %y7 = ait.gemm rcr %x, %w7 : !ait.tensor<s x 64 x f32>
  %y8 = ait.gemm rcr %r, %w0 : !ait.tensor<s x 64 x f32>
  %y9 = ait.gemm rcr %x, %w0 : !ait.tensor<s x 64 x f32>
  %yb = ait.gemm rcr %x, %wb : !ait.tensor<s x 64 x f32>
  %nb = ait.mul %yb, %yb : !ait.tensor<s x 64 x f32>
  %g = ait.gelu %y9 : !ait.tensor<s x 64 x f32>
  %n1 = ait.neg %y1 : !ait.tensor<s x 64 x f32>
  %n2 = ait.neg %y2 : !ait.tensor<s x 64 x f32>
  %n0 = ait.mul %y0, %y0 : !ait.tensor<s x 64 x f32>
  %n7 = ait.mul %y7, %y7 : !ait.tensor<s x 64 x f32>
  %n3 = ait.mul %y3, %y3 : !ait.tensor<s x 64 x f32>
  %n4 = ait.mul %y4, %y4 : !ait.tensor<s x 64 x f32>
  %n5 = ait.mul %y5, %y5 : !ait.tensor<s x 64 x f32>
  %n6 = ait.mul %y6, %y6 : !ait.tensor<s x 64 x f32>
  %n8 = ait.mul %y8, %y8 : !ait.tensor<s x 64 x f32>
  ait.output "y0" %n0 : !ait.tensor<s x 64 x f32>
  ait.output "y1" %n1 : !ait.tensor<s x 64 x f32>
  ait.output "y2" %n2 : !ait.tensor<s x 64 x f32>
  ait.output "y3" %n3 : !ait.tensor<s x 64 x f32>
  ait.output "y4" %n4 : !ait.tensor<s x 64 x f32>
  ait.output "y5" %n5 : !ait.tensor<s x 64 x f32>
  ait.output "y6" %n6 : !ait.tensor<s x 64 x f32>
  ait.output "y7" %n7 : !ait.tensor<s x 64 x f32>
  ait.output "y8" %n8 : !ait.tensor<s x 64 x f32>
  ait.output "yb" %nb : !ait.tensor<s x 64 x f32>
  ait.output "y9" %g : !ait.tensor<s x 64 x f32>
}
