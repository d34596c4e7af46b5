// RUN: ait-opt %s -p multiply-float8 --check-semantics | filecheck %s
// RUN: ait-opt %s -p 'multiply-float8{target="cuda" arch="sm_90a"}' | filecheck %s
// RUN: ait-opt %s -p 'multiply-float8{target="cuda" arch="sm_80"},multiply-float8{target="cpu"},widen-float8{target="cuda" arch="sm_89"}' | filecheck %s --check-prefix=SAME
// RUN: ait-opt %s -p 'widen-float8{target="cuda" arch="sm_80"}' --check-semantics | filecheck %s --check-prefix=WIDE

// The product of the stored numbers; scales by row and by column come behind the sums.
// CHECK-LABEL: ait.graph @scales
// SAME-LABEL: ait.graph @scales
// SAME:       ait.gemm rcr %a, %c : !ait.tensor<b x s x 24 x f16>
ait.graph @scales(%x: !ait.tensor<b x s x 64 x f8E4M3FN>, %xs: !ait.tensor<b x s x 1 x f32>, %w: !ait.tensor<24 x 64 x f8E5M2>, %ws: !ait.tensor<24 x 1 x f32>) dims {b = 1 to 3, s = 1 to 9} {
  // CHECK-NOT:  dequantize
  // CHECK:      [[C:%.+]] = ait.reshape %ws : !ait.tensor<1 x 24 x f32>
  // CHECK-NEXT: ait.gemm rcr %x, %w epilogue(%xs, [[C]]) {
  // CHECK-NEXT: ^bb0(%acc: f32, [[S:%.+]]: f32, [[T:%.+]]: f32):
  // CHECK-NEXT:   [[G:%.+]] = ait.mul %acc, [[S]] : f32
  // CHECK-NEXT:   [[H:%.+]] = ait.mul [[G]], [[T]] : f32
  // CHECK-NEXT:   ait.yield [[H]] : f32
  // CHECK-NEXT: } : !ait.tensor<b x s x 24 x f16>
  %a = ait.dequantize %x scale %xs : !ait.tensor<b x s x 64 x f16>
  %c = ait.dequantize %w scale %ws : !ait.tensor<24 x 64 x f16>
  %y = ait.gemm rcr %a, %c : !ait.tensor<b x s x 24 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 24 x f16>
}

// Blocks that are whole along k are rows and columns.
// CHECK-LABEL: ait.graph @blocks
ait.graph @blocks(%x: !ait.tensor<s x 64 x f8E4M3FN>, %xs: !ait.tensor<s x 1 x f32>, %w: !ait.tensor<24 x 64 x f8E4M3FN>, %ws: !ait.tensor<24 x 1 x f32>) dims {s = 1 to 9} {
  // CHECK: ait.gemm rcr %x, %w epilogue(%xs, {{.*}}) {
  %a = ait.dequantize %x scale %xs blocks [1, 64] : !ait.tensor<s x 64 x f32>
  %c = ait.dequantize %w scale %ws blocks [1, 64] : !ait.tensor<24 x 64 x f32>
  %y = ait.gemm rcr %a, %c : !ait.tensor<s x 24 x f32>
  ait.output "y" %y : !ait.tensor<s x 24 x f32>
}

// Rows of both operands lie along k, also of products that were written so.
// CHECK-LABEL: ait.graph @along_k
// WIDE-LABEL:  ait.graph @along_k
ait.graph @along_k(%x: !ait.tensor<b x 64 x s x f8E4M3FN>, %w: !ait.tensor<64 x 24 x f8E4M3FN>, %k: !ait.tensor<b x 64 x 24 x f8E4M3FN>, %q: !ait.tensor<s x 64 x f8E4M3FN>, %one: !ait.tensor<f32>) dims {b = 1 to 3, s = 1 to 9} {
  // CHECK-DAG: [[X:%.+]] = ait.permute %x [0, 2, 1] : !ait.tensor<b x s x 64 x f8E4M3FN>
  // CHECK-DAG: [[K:%.+]] = ait.permute %k [0, 2, 1] : !ait.tensor<b x 24 x 64 x f8E4M3FN>
  // CHECK:     ait.bmm rcc [[X]], [[K]] : !ait.tensor<b x 24 x s x f32>
  // CHECK:     [[W:%.+]] = ait.permute %w [1, 0] : !ait.tensor<24 x 64 x f8E4M3FN>
  // CHECK:     ait.gemm rcr %q, [[W]] epilogue(%one, %one) {
  // WIDE-DAG:  [[X:%.+]] = ait.cast %x : !ait.tensor<b x 64 x s x f16>
  // WIDE-DAG:  [[K:%.+]] = ait.cast %k : !ait.tensor<b x 64 x 24 x f16>
  // WIDE:      ait.bmm crc [[X]], [[K]] epilogue() {
  // WIDE-NEXT: ^bb0([[ACC:%.+]]: f32):
  // WIDE-NEXT:   ait.yield [[ACC]] : f32
  // WIDE-NEXT: } : !ait.tensor<b x 24 x s x f32>
  %y = ait.bmm crc %x, %k : !ait.tensor<b x 24 x s x f32>
  %a = ait.dequantize %q scale %one : !ait.tensor<s x 64 x f32>
  %c = ait.dequantize %w scale %one : !ait.tensor<64 x 24 x f32>
  %z = ait.gemm rrr %a, %c : !ait.tensor<s x 24 x f32>
  ait.output "y" %y : !ait.tensor<b x 24 x s x f32>
  ait.output "z" %z : !ait.tensor<s x 24 x f32>
}

// A product with an epilogue keeps it.
// WIDE-LABEL: ait.graph @epilogue
ait.graph @epilogue(%x: !ait.tensor<9 x 64 x f8E4M3FN>, %w: !ait.tensor<24 x 64 x f8E5M2>, %v: !ait.tensor<24 x f16>) {
  // WIDE:      ait.gemm rcr {{.*}}, {{.*}} epilogue(%v) {
  // WIDE-NEXT: ^bb0(%acc: f32, %b: f32):
  // WIDE-NEXT:   %s = ait.add %acc, %b : f32
  %y = ait.gemm rcr %x, %w epilogue(%v) {
  ^bb0(%acc: f32, %b: f32):
    %s = ait.add %acc, %b : f32
    ait.yield %s : f32
  } : !ait.tensor<9 x 24 x f16>
  ait.output "y" %y : !ait.tensor<9 x 24 x f16>
}

// The sums of each group of 128 along k are scaled. The last group and the last block of rows may be smaller.
// CHECK-LABEL: ait.graph @groups
// SAME-LABEL:  ait.graph @groups
// SAME:        ait.gemm rcr %a, %c : !ait.tensor<b x s x 200 x f16>
ait.graph @groups(%x: !ait.tensor<b x s x 272 x f8E4M3FN>, %xs: !ait.tensor<b x s x 3 x f32>, %w: !ait.tensor<200 x 272 x f8E5M2>, %ws: !ait.tensor<2 x 3 x bf16>) dims {b = 1 to 3, s = 1 to 9} {
  // CHECK-DAG:  [[X:%.+]] = ait.reshape %x : !ait.tensor<(b*s) x 272 x f8E4M3FN>
  // CHECK-DAG:  [[S:%.+]] = ait.reshape %xs : !ait.tensor<(b*s) x 3 x f32>
  // CHECK-DAG:  [[T:%.+]] = ait.cast %ws : !ait.tensor<2 x 3 x f32>
  // CHECK:      [[Y:%.+]] = ait.scaled_gemm [[X]] by %w rows [[S]] columns [[T]] group 128 block 128 epilogue() {
  // CHECK:      } : !ait.tensor<(b*s) x 200 x f16>
  // CHECK-NEXT: ait.reshape [[Y]] : !ait.tensor<b x s x 200 x f16>
  %a = ait.dequantize %x scale %xs blocks [1, 1, 128] : !ait.tensor<b x s x 272 x f16>
  %c = ait.dequantize %w scale %ws blocks [128, 128] : !ait.tensor<200 x 272 x f16>
  %y = ait.gemm rcr %a, %c : !ait.tensor<b x s x 200 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 200 x f16>
}

// Groups of another size, blocks of rows of the first factor, blocks that no tile divides, scales of whole rows, odd rows, another layout, an
// epilogue, a selected kernel, sums in f64, integers.
// CHECK-LABEL: ait.graph @no_groups
ait.graph @no_groups(%x: !ait.tensor<8 x 256 x f8E4M3FN>, %s: !ait.tensor<8 x 2 x f32>, %s4: !ait.tensor<8 x 4 x f32>, %sb: !ait.tensor<4 x 2 x f32>, %w: !ait.tensor<64 x 256 x f8E4M3FN>, %t: !ait.tensor<1 x 2 x f32>, %t4: !ait.tensor<1 x 4 x f32>, %t24: !ait.tensor<3 x 2 x f32>, %r: !ait.tensor<64 x 1 x f32>, %xo: !ait.tensor<8 x 250 x f8E4M3FN>, %wo: !ait.tensor<64 x 250 x f8E4M3FN>, %v: !ait.tensor<256 x 64 x f8E4M3FN>, %tv: !ait.tensor<2 x 1 x f32>, %i: !ait.tensor<64 x 256 x i8>, %j: !ait.tensor<8 x 256 x i8>) {
  // CHECK-NOT: scaled_gemm
  // CHECK: ait.output "y0"
  %a = ait.dequantize %x scale %s blocks [1, 128] : !ait.tensor<8 x 256 x f32>
  %a64 = ait.dequantize %x scale %s4 blocks [1, 64] : !ait.tensor<8 x 256 x f32>
  %ab = ait.dequantize %x scale %sb blocks [2, 128] : !ait.tensor<8 x 256 x f32>
  %ao = ait.dequantize %xo scale %s blocks [1, 128] : !ait.tensor<8 x 250 x f32>
  %ad = ait.dequantize %x scale %s blocks [1, 128] : !ait.tensor<8 x 256 x f64>
  %c = ait.dequantize %w scale %t blocks [64, 128] : !ait.tensor<64 x 256 x f32>
  %c64 = ait.dequantize %w scale %t4 blocks [64, 64] : !ait.tensor<64 x 256 x f32>
  %c24 = ait.dequantize %w scale %t24 blocks [24, 128] : !ait.tensor<64 x 256 x f32>
  %cr = ait.dequantize %w scale %r : !ait.tensor<64 x 256 x f32>
  %co = ait.dequantize %wo scale %t blocks [64, 128] : !ait.tensor<64 x 250 x f32>
  %cv = ait.dequantize %v scale %tv blocks [128, 128] : !ait.tensor<256 x 64 x f32>
  %cd = ait.dequantize %w scale %t blocks [64, 128] : !ait.tensor<64 x 256 x f64>
  %ci = ait.dequantize %i scale %t blocks [64, 128] : !ait.tensor<64 x 256 x f32>
  %aj = ait.dequantize %j scale %s blocks [1, 128] : !ait.tensor<8 x 256 x f32>
  %y0 = ait.gemm rcr %a64, %c64 : !ait.tensor<8 x 64 x f32>
  %y1 = ait.gemm rcr %ab, %c : !ait.tensor<8 x 64 x f32>
  %y2 = ait.gemm rcr %a, %c24 : !ait.tensor<8 x 64 x f32>
  %y3 = ait.gemm rcr %a, %cr : !ait.tensor<8 x 64 x f32>
  %y4 = ait.gemm rcr %ao, %co : !ait.tensor<8 x 64 x f32>
  %y5 = ait.gemm rrr %a, %cv : !ait.tensor<8 x 64 x f32>
  %y6 = ait.gemm rcr %a, %c epilogue() {
  ^bb0(%acc: f32):
    %z = ait.relu %acc : f32
    ait.yield %z : f32
  } : !ait.tensor<8 x 64 x f32>
  %y7 = ait.gemm rcr %a, %c {kernel = #ait.kernel<"native">} : !ait.tensor<8 x 64 x f32>
  %y8 = ait.gemm rcr %ad, %cd : !ait.tensor<8 x 64 x f64>
  %y9 = ait.gemm rcr %a, %ci : !ait.tensor<8 x 64 x f32>
  %ya = ait.gemm rcr %a64, %c : !ait.tensor<8 x 64 x f32>
  %yb = ait.gemm rcr %aj, %c : !ait.tensor<8 x 64 x f32>
  ait.output "y0" %y0 : !ait.tensor<8 x 64 x f32>
  ait.output "y1" %y1 : !ait.tensor<8 x 64 x f32>
  ait.output "y2" %y2 : !ait.tensor<8 x 64 x f32>
  ait.output "y3" %y3 : !ait.tensor<8 x 64 x f32>
  ait.output "y4" %y4 : !ait.tensor<8 x 64 x f32>
  ait.output "y5" %y5 : !ait.tensor<8 x 64 x f32>
  ait.output "y6" %y6 : !ait.tensor<8 x 64 x f32>
  ait.output "y7" %y7 : !ait.tensor<8 x 64 x f32>
  ait.output "y8" %y8 : !ait.tensor<8 x 64 x f64>
  ait.output "y9" %y9 : !ait.tensor<8 x 64 x f32>
  ait.output "ya" %ya : !ait.tensor<8 x 64 x f32>
  ait.output "yb" %yb : !ait.tensor<8 x 64 x f32>
}

// Scales that differ along k, blocks along k or of rows, sums in f64, an epilogue, a selected kernel, rows of the first or of the result that
// lie across, other types.
// CHECK-LABEL: ait.graph @others
// WIDE-LABEL:  ait.graph @others
ait.graph @others(%x: !ait.tensor<8 x 64 x f8E4M3FN>, %one: !ait.tensor<f32>, %g: !ait.tensor<24 x 2 x f32>, %h: !ait.tensor<2 x 1 x f32>, %k: !ait.tensor<64 x f32>, %w: !ait.tensor<24 x 64 x f8E4M3FN>, %i: !ait.tensor<24 x 64 x i8>, %t: !ait.tensor<64 x 8 x f8E4M3FN>, %two: !ait.tensor<f64>, %j: !ait.tensor<8 x 64 x i8>) {
  // CHECK-NOT: %w epilogue(%
  // CHECK-NOT: ait.permute
  // CHECK:     ait.output "y0"
  // WIDE-NOT:  ait.cast
  // WIDE:      ait.output "y0"
  %a = ait.dequantize %x scale %one : !ait.tensor<8 x 64 x f32>
  %a1 = ait.dequantize %x scale %k : !ait.tensor<8 x 64 x f32>
  %a2 = ait.dequantize %x scale %h blocks [4, 64] : !ait.tensor<8 x 64 x f32>
  %a3 = ait.dequantize %x scale %two : !ait.tensor<8 x 64 x f64>
  %a4 = ait.dequantize %t scale %one : !ait.tensor<64 x 8 x f32>
  %a5 = ait.dequantize %j scale %one : !ait.tensor<8 x 64 x f32>
  %w0 = ait.dequantize %w scale %one : !ait.tensor<24 x 64 x f32>
  %w1 = ait.dequantize %w scale %g blocks [1, 32] : !ait.tensor<24 x 64 x f32>
  %w2 = ait.dequantize %w scale %k : !ait.tensor<24 x 64 x f32>
  %w3 = ait.dequantize %w scale %two : !ait.tensor<24 x 64 x f64>
  %w4 = ait.dequantize %i scale %one : !ait.tensor<24 x 64 x f32>
  %y0 = ait.gemm rcr %a1, %w0 : !ait.tensor<8 x 24 x f32>
  %y1 = ait.gemm rcr %a2, %w0 : !ait.tensor<8 x 24 x f32>
  %y2 = ait.gemm rcr %a3, %w3 : !ait.tensor<8 x 24 x f64>
  %y3 = ait.gemm rcr %a, %w1 : !ait.tensor<8 x 24 x f32>
  %y4 = ait.gemm rcr %a, %w2 : !ait.tensor<8 x 24 x f32>
  %y5 = ait.gemm rcr %a, %w4 : !ait.tensor<8 x 24 x f32>
  %z2 = ait.gemm rcr %a5, %w0 : !ait.tensor<8 x 24 x f32>
  %y6 = ait.gemm rcr %a, %w0 epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<8 x 24 x f32>
  %y7 = ait.gemm rcr %a, %w0 {kernel = #ait.kernel<"native">} : !ait.tensor<8 x 24 x f32>
  %y8 = ait.gemm ccr %a4, %w0 : !ait.tensor<8 x 24 x f32>
  %y9 = ait.gemm rcc %a, %w0 : !ait.tensor<24 x 8 x f32>
  %z0 = ait.gemm rcr %x, %w {kernel = #ait.kernel<"native">} : !ait.tensor<8 x 24 x f32>
  %z1 = ait.gemm ccr %t, %w {kernel = #ait.kernel<"native">} : !ait.tensor<8 x 24 x f32>
  ait.output "y0" %y0 : !ait.tensor<8 x 24 x f32>
  ait.output "y1" %y1 : !ait.tensor<8 x 24 x f32>
  ait.output "y2" %y2 : !ait.tensor<8 x 24 x f64>
  ait.output "y3" %y3 : !ait.tensor<8 x 24 x f32>
  ait.output "y4" %y4 : !ait.tensor<8 x 24 x f32>
  ait.output "y5" %y5 : !ait.tensor<8 x 24 x f32>
  ait.output "y6" %y6 : !ait.tensor<8 x 24 x f32>
  ait.output "y7" %y7 : !ait.tensor<8 x 24 x f32>
  ait.output "y8" %y8 : !ait.tensor<8 x 24 x f32>
  ait.output "y9" %y9 : !ait.tensor<24 x 8 x f32>
  ait.output "z0" %z0 : !ait.tensor<8 x 24 x f32>
  ait.output "z1" %z1 : !ait.tensor<8 x 24 x f32>
  ait.output "z2" %z2 : !ait.tensor<8 x 24 x f32>
}
