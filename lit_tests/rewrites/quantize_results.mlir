// RUN: ait-opt %s -p 'quantize-results{target="cuda" arch="sm_90a"}' --check-semantics | filecheck %s
// RUN: ait-opt %s -p 'quantize-results{target="cpu"}' | filecheck %s --check-prefix CPU

// A product with a function in its epilogue stores floats of 8 bits. On a CPU the graph stays as it is.
// CHECK-LABEL: ait.graph @floats
// CPU-LABEL: ait.graph @floats
// CPU: ait.quantize
ait.graph @floats(%x: !ait.tensor<r x 64 x f16>, %w: !ait.tensor<96 x 64 x f16>, %b: !ait.tensor<96 x f16>) dims {r = 0 to 8} {
  // CHECK:      [[Y:%.+]] = ait.gemm rcr %x, %w epilogue(%b) {
  // CHECK:        [[G:%.+]] = ait.gelu
  // CHECK-NEXT:   [[S:%.+]] = ait.constant 0.25 : f32
  // CHECK-NEXT:   [[Q:%.+]] = ait.div [[G]], [[S]] : f32
  // CHECK-NEXT:   [[C:%.+]] = ait.clamp [[Q]] min -448.0 max 448.0 : f32
  // CHECK-NEXT:   [[E:%.+]] = ait.cast [[C]] : f8E4M3FN
  // CHECK-NEXT:   [[F:%.+]] = ait.cast [[E]] : f32
  // CHECK-NEXT:   ait.yield [[F]] : f32
  // CHECK-NEXT: } : !ait.tensor<r x 96 x f8E4M3FN>
  // CHECK-NEXT: ait.output "q" [[Y]]
  %y = ait.gemm rcr %x, %w epilogue(%b) {
  ^bb0(%acc: f32, %0: f32):
    %1 = ait.add %acc, %0 : f32
    %2 = ait.gelu %1 : f32
    ait.yield %2 : f32
  } : !ait.tensor<r x 96 x f16>
  %s = ait.constant 0.25 : !ait.tensor<f32>
  %q = ait.quantize %y scale %s : !ait.tensor<r x 96 x f8E4M3FN>
  ait.output "q" %q : !ait.tensor<r x 96 x f8E4M3FN>
}

// Integers with a zero point; scales and zero points are operands of the epilogue.
// CHECK-LABEL: ait.graph @integers
ait.graph @integers(%x: !ait.tensor<2 x r x 64 x f32>, %w: !ait.tensor<96 x 64 x f32>, %s: !ait.tensor<r x 1 x f16>, %z: !ait.tensor<1 x i32>) dims {r = 1 to 8} {
  // CHECK:      ait.gemm rcr %x, %w epilogue(%s, %z) {
  // CHECK-NEXT: ^bb0([[A:%.+]]: f32, [[S:%.+]]: f32, [[Z:%.+]]: i32):
  // CHECK-NEXT:   [[Q:%.+]] = ait.div [[A]], [[S]] : f32
  // CHECK-NEXT:   [[R:%.+]] = ait.round [[Q]] : f32
  // CHECK-NEXT:   [[F:%.+]] = ait.cast [[Z]] : f32
  // CHECK-NEXT:   [[M:%.+]] = ait.add [[R]], [[F]] : f32
  // CHECK-NEXT:   [[I:%.+]] = ait.cast [[M]] : ui8
  // CHECK-NEXT:   ait.yield [[I]] : ui8
  // CHECK-NEXT: } : !ait.tensor<2 x r x 96 x ui8>
  %y = ait.gemm rcr %x, %w : !ait.tensor<2 x r x 96 x f32>
  %q = ait.quantize %y scale %s zero %z : !ait.tensor<2 x r x 96 x ui8>
  ait.output "q" %q : !ait.tensor<2 x r x 96 x ui8>
}

// Products of heads, and of 8-bit floats with scales of blocks; behind a reshape, with one scale.
// CHECK-LABEL: ait.graph @others
ait.graph @others(%x: !ait.tensor<3 x r x 64 x f16>, %w: !ait.tensor<3 x 96 x 64 x f16>, %a: !ait.tensor<(2*r) x 128 x f8E4M3FN>, %b: !ait.tensor<16 x 128 x f8E5M2>, %m: !ait.tensor<(2*r) x 1 x f32>, %n: !ait.tensor<1 x 1 x f32>, %s: !ait.tensor<1 x f32>, %z: !ait.tensor<i8>) dims {r = 1 to 8} {
  // CHECK:     ait.bmm rcr %x, %w epilogue
  // CHECK:     } : !ait.tensor<3 x r x 96 x f8E5M2>
  // CHECK:     [[S:%.+]] = ait.reshape %s : !ait.tensor<f32>
  // CHECK:     [[Q:%.+]] = ait.scaled_gemm %a by %b rows %m columns %n group 128 block 128 epilogue([[S]], %z) {
  // CHECK:     } : !ait.tensor<(2*r) x 16 x i8>
  // CHECK:     [[V:%.+]] = ait.reshape [[Q]] : !ait.tensor<2 x r x 16 x i8>
  // CHECK:     [[R:%.+]] = ait.reshape [[V]] : !ait.tensor<r x 32 x i8>
  // CHECK-NOT: ait.quantize
  // CHECK:     ait.output "p" [[R]]
  %h = ait.bmm rcr %x, %w : !ait.tensor<3 x r x 96 x f16>
  %q = ait.quantize %h scale %s : !ait.tensor<3 x r x 96 x f8E5M2>
  %y = ait.scaled_gemm %a by %b rows %m columns %n group 128 block 128 : !ait.tensor<(2*r) x 16 x f32>
  %v = ait.reshape %y : !ait.tensor<2 x r x 16 x f32>
  %u = ait.reshape %v : !ait.tensor<r x 32 x f32>
  %p = ait.quantize %u scale %s zero %z : !ait.tensor<r x 32 x i8>
  ait.output "q" %q : !ait.tensor<3 x r x 96 x f8E5M2>
  ait.output "p" %p : !ait.tensor<r x 32 x i8>
}

// The product has another reader, or is an output; its kernel is selected; numbers of 16 and of 4 bits; f64; scales of groups.
// CHECK-LABEL: ait.graph @refused
ait.graph @refused(%x: !ait.tensor<r x 64 x f16>, %w: !ait.tensor<96 x 64 x f16>, %d: !ait.tensor<r x 64 x f64>, %e: !ait.tensor<96 x 64 x f64>, %t: !ait.tensor<r x 3 x f32>) dims {r = 1 to 8} {
  // CHECK-COUNT-7: ait.quantize
  %s = ait.constant 0.25 : !ait.tensor<f32>
  %y0 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %q0 = ait.quantize %y0 scale %s : !ait.tensor<r x 96 x i8>
  %p0 = ait.relu %y0 : !ait.tensor<r x 96 x f16>
  %y1 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %q1 = ait.quantize %y1 scale %s : !ait.tensor<r x 96 x i8>
  %y2 = ait.gemm rcr %x, %w {kernel = "native"} : !ait.tensor<r x 96 x f16>
  %q2 = ait.quantize %y2 scale %s : !ait.tensor<r x 96 x i8>
  %y3 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %q3 = ait.quantize %y3 scale %s : !ait.tensor<r x 96 x i16>
  %y4 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %q4 = ait.quantize %y4 scale %s : !ait.tensor<r x 96 x i4>
  %y5 = ait.gemm rcr %d, %e : !ait.tensor<r x 96 x f64>
  %q5 = ait.quantize %y5 scale %s : !ait.tensor<r x 96 x i8>
  %y6 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %q6 = ait.quantize %y6 scale %t blocks [1, 32] : !ait.tensor<r x 96 x i8>
  ait.output "q0" %q0 : !ait.tensor<r x 96 x i8>
  ait.output "p0" %p0 : !ait.tensor<r x 96 x f16>
  ait.output "q1" %q1 : !ait.tensor<r x 96 x i8>
  ait.output "y1" %y1 : !ait.tensor<r x 96 x f16>
  ait.output "q2" %q2 : !ait.tensor<r x 96 x i8>
  ait.output "q3" %q3 : !ait.tensor<r x 96 x i16>
  ait.output "q4" %q4 : !ait.tensor<r x 96 x i4>
  ait.output "q5" %q5 : !ait.tensor<r x 96 x i8>
  ait.output "q6" %q6 : !ait.tensor<r x 96 x i8>
}

// The scale follows from the product itself; the product has two results; a norm does not store such numbers; the
// product of a stored weight neither.
// CHECK-LABEL: ait.graph @other_ops
ait.graph @other_ops(%x: !ait.tensor<r x 64 x f16>, %w: !ait.tensor<96 x 64 x f16>, %n: !ait.tensor<96 x 64 x i8>, %c: !ait.tensor<96 x 1 x f16>) dims {r = 1 to 8} {
  // CHECK-COUNT-4: ait.quantize
  %s = ait.constant 0.25 : !ait.tensor<f32>
  %y0 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %a0 = ait.reduce max %y0 dims [0, 1] : !ait.tensor<f16>
  %q0 = ait.quantize %y0 scale %a0 : !ait.tensor<r x 96 x i8>
  %y1, %z1 = ait.gemm rcr %x, %w epilogue() {
  ^bb0(%acc: f32):
    %1 = ait.relu %acc : f32
    ait.yield %acc, %1 : f32, f32
  } : !ait.tensor<r x 96 x f16>, !ait.tensor<r x 96 x f16>
  %q1 = ait.quantize %y1 scale %s : !ait.tensor<r x 96 x i8>
  %y2 = ait.rms_norm %x axes 1 eps 1e-05 : !ait.tensor<r x 64 x f16>
  %q2 = ait.quantize %y2 scale %s : !ait.tensor<r x 64 x i8>
  %y3 = ait.stored_gemm %x by %n scale %c group 64 : !ait.tensor<r x 96 x f16>
  %q3 = ait.quantize %y3 scale %s : !ait.tensor<r x 96 x i8>
  ait.output "q0" %q0 : !ait.tensor<r x 96 x i8>
  ait.output "q1" %q1 : !ait.tensor<r x 96 x i8>
  ait.output "z1" %z1 : !ait.tensor<r x 96 x f16>
  ait.output "q2" %q2 : !ait.tensor<r x 64 x i8>
  ait.output "q3" %q3 : !ait.tensor<r x 96 x i8>
}

// Too many operands for a kernel, and too many loops over the batch.
// CHECK-LABEL: ait.graph @limits
ait.graph @limits(%x: !ait.tensor<2 x 3 x 4 x r x 64 x f16>, %w: !ait.tensor<96 x 64 x f16>, %s: !ait.tensor<2 x 1 x 4 x 1 x 1 x f32>, %t: !ait.tensor<r x 1 x f32>, %a: !ait.tensor<r x 64 x f16>, %e: !ait.tensor<14 x r x 96 x f16>) dims {r = 1 to 8} {
  // CHECK-COUNT-2: ait.quantize
  %y = ait.gemm rcr %x, %w : !ait.tensor<2 x 3 x 4 x r x 96 x f16>
  %q = ait.quantize %y scale %s : !ait.tensor<2 x 3 x 4 x r x 96 x i8>
  %e0, %e1, %e2, %e3, %e4, %e5, %e6, %e7, %e8, %e9, %e10, %e11, %e12, %e13 = ait.split %e dim 0 : !ait.tensor<1 x r x 96 x f16>, !ait.tensor<1 x r x 96 x f16>, !ait.tensor<1 x r x 96 x f16>, !ait.tensor<1 x r x 96 x f16>, !ait.tensor<1 x r x 96 x f16>, !ait.tensor<1 x r x 96 x f16>, !ait.tensor<1 x r x 96 x f16>, !ait.tensor<1 x r x 96 x f16>, !ait.tensor<1 x r x 96 x f16>, !ait.tensor<1 x r x 96 x f16>, !ait.tensor<1 x r x 96 x f16>, !ait.tensor<1 x r x 96 x f16>, !ait.tensor<1 x r x 96 x f16>, !ait.tensor<1 x r x 96 x f16>
  %f = ait.reshape %e0 : !ait.tensor<r x 96 x f16>
  %g = ait.gemm rcr %a, %w epilogue(%f, %f, %f, %f, %f, %f, %f, %f, %f, %f, %f, %f, %f, %f) {
  ^bb0(%acc: f32, %0: f32, %1: f32, %2: f32, %3: f32, %4: f32, %5: f32, %6: f32, %7: f32, %8: f32, %9: f32, %10: f32, %11: f32, %12: f32, %13: f32):
    %14 = ait.add %acc, %13 : f32
    ait.yield %14 : f32
  } : !ait.tensor<r x 96 x f16>
  %p = ait.quantize %g scale %t : !ait.tensor<r x 96 x i8>
  ait.output "q" %q : !ait.tensor<2 x 3 x 4 x r x 96 x i8>
  ait.output "p" %p : !ait.tensor<r x 96 x i8>
}

// A reshape with another reader, one of another op, one behind which rows have scales, or groups of a whole tensor.
// CHECK-LABEL: ait.graph @reshapes
ait.graph @reshapes(%x: !ait.tensor<r x 64 x f16>, %w: !ait.tensor<96 x 64 x f16>, %s: !ait.tensor<r x 1 x f32>, %t3: !ait.tensor<1 x 1 x 1 x f32>, %v: !ait.tensor<r x 96 x f16>) dims {r = 1 to 8} {
  // CHECK-COUNT-4: ait.quantize {{.*}} : !ait.tensor<{{.*}}r{{.*}} x {{(48|192)}} x i8>
  %c = ait.constant 0.25 : !ait.tensor<f32>
  %y0 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %v0 = ait.reshape %y0 : !ait.tensor<r x 2 x 48 x f16>
  %q0 = ait.quantize %v0 scale %c : !ait.tensor<r x 2 x 48 x i8>
  %v1 = ait.reshape %v : !ait.tensor<r x 2 x 48 x f16>
  %q1 = ait.quantize %v1 scale %c : !ait.tensor<r x 2 x 48 x i8>
  %y2 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %v2 = ait.reshape %y2 : !ait.tensor<2 x r x 48 x f16>
  %q2 = ait.quantize %v2 scale %s : !ait.tensor<2 x r x 48 x i8>
  %y3 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %v3 = ait.reshape %y3 : !ait.tensor<r x 2 x 48 x f16>
  %u3 = ait.quantize %v3 scale %t3 blocks [r, 2, 48] : !ait.tensor<r x 2 x 48 x i8>
  ait.output "q0" %q0 : !ait.tensor<r x 2 x 48 x i8>
  ait.output "v0" %v0 : !ait.tensor<r x 2 x 48 x f16>
  ait.output "q1" %q1 : !ait.tensor<r x 2 x 48 x i8>
  ait.output "q2" %q2 : !ait.tensor<2 x r x 48 x i8>
  ait.output "u3" %u3 : !ait.tensor<r x 2 x 48 x i8>
}

// Heads of query, key and value, with one scale for all three: the numbers are split, reshaped and permuted.
// CHECK-LABEL: ait.graph @heads
ait.graph @heads(%x: !ait.tensor<2 x r x 64 x f16>, %w: !ait.tensor<96 x 64 x f16>) dims {r = 1 to 8} {
  // CHECK:      [[N:%.+]] = ait.gemm rcr %x, %w epilogue() {
  // CHECK:      } : !ait.tensor<2 x r x 96 x f8E4M3FN>
  // CHECK-NEXT: [[P:%.+]], [[Q:%.+]] = ait.split [[N]] dim 2 : !ait.tensor<2 x r x 32 x f8E4M3FN>, !ait.tensor<2 x r x 64 x f8E4M3FN>
  // CHECK:      ait.reshape [[P]] : !ait.tensor<2 x r x 2 x 16 x f8E4M3FN>
  // CHECK:      ait.permute {{.*}} [0, 2, 1, 3] : !ait.tensor<2 x 2 x r x 16 x f8E4M3FN>
  // CHECK:      ait.reshape [[Q]] : !ait.tensor<2 x r x 4 x 16 x f8E4M3FN>
  // CHECK:      ait.permute {{.*}} [0, 2, 1, 3] : !ait.tensor<2 x 4 x r x 16 x f8E4M3FN>
  // CHECK-NOT:  ait.quantize
  // CHECK:      ait.output "q"
  %c = ait.constant 0.25 : !ait.tensor<f32>
  %d = ait.constant 0.25 : !ait.tensor<1 x f32>
  %y = ait.gemm rcr %x, %w : !ait.tensor<2 x r x 96 x f16>
  %a, %b = ait.split %y dim 2 : !ait.tensor<2 x r x 32 x f16>, !ait.tensor<2 x r x 64 x f16>
  %a0 = ait.reshape %a : !ait.tensor<2 x r x 2 x 16 x f16>
  %a1 = ait.permute %a0 [0, 2, 1, 3] : !ait.tensor<2 x 2 x r x 16 x f16>
  %p = ait.quantize %a1 scale %c : !ait.tensor<2 x 2 x r x 16 x f8E4M3FN>
  %b0 = ait.reshape %b : !ait.tensor<2 x r x 4 x 16 x f16>
  %b1 = ait.permute %b0 [0, 2, 1, 3] : !ait.tensor<2 x 4 x r x 16 x f16>
  %q = ait.quantize %b1 scale %d : !ait.tensor<2 x 4 x r x 16 x f8E4M3FN>
  ait.output "p" %p : !ait.tensor<2 x 2 x r x 16 x f8E4M3FN>
  ait.output "q" %q : !ait.tensor<2 x 4 x r x 16 x f8E4M3FN>
}

// A permute with another reader, one of no product, one behind which rows have scales.
// CHECK-LABEL: ait.graph @permutes
ait.graph @permutes(%x: !ait.tensor<r x 64 x f16>, %w: !ait.tensor<96 x 64 x f16>, %s: !ait.tensor<r x f32>, %v: !ait.tensor<r x 96 x f16>) dims {r = 1 to 8} {
  // CHECK-COUNT-3: ait.quantize {{.*}} : !ait.tensor<96 x r x i8>
  %c = ait.constant 0.25 : !ait.tensor<f32>
  %y0 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %v0 = ait.permute %y0 [1, 0] : !ait.tensor<96 x r x f16>
  %q0 = ait.quantize %v0 scale %c : !ait.tensor<96 x r x i8>
  %v1 = ait.permute %v [1, 0] : !ait.tensor<96 x r x f16>
  %q1 = ait.quantize %v1 scale %c : !ait.tensor<96 x r x i8>
  %y2 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %v2 = ait.permute %y2 [1, 0] : !ait.tensor<96 x r x f16>
  %q2 = ait.quantize %v2 scale %s : !ait.tensor<96 x r x i8>
  ait.output "q0" %q0 : !ait.tensor<96 x r x i8>
  ait.output "v0" %v0 : !ait.tensor<96 x r x f16>
  ait.output "q1" %q1 : !ait.tensor<96 x r x i8>
  ait.output "q2" %q2 : !ait.tensor<96 x r x i8>
}

// Parts with other scales, with types of their own, with a zero point, of which one is read, or an output; a product with
// another reader; a scale that is not known; parts of no product.
// CHECK-LABEL: ait.graph @splits
ait.graph @splits(%x: !ait.tensor<r x 64 x f16>, %w: !ait.tensor<96 x 64 x f16>, %v: !ait.tensor<r x 96 x f16>, %s: !ait.tensor<f32>, %t: !ait.tensor<f32>) dims {r = 1 to 8} {
  // CHECK-COUNT-14: ait.quantize
  %c = ait.constant 0.25 : !ait.tensor<f32>
  %d = ait.constant 0.5 : !ait.tensor<f32>
  %z = ait.constant 3 : !ait.tensor<i8>
  %y0 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %a0, %b0 = ait.split %y0 dim 1 : !ait.tensor<r x 48 x f16>, !ait.tensor<r x 48 x f16>
  %p0 = ait.quantize %a0 scale %c : !ait.tensor<r x 48 x i8>
  %q0 = ait.quantize %b0 scale %d : !ait.tensor<r x 48 x i8>
  %y1 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %a1, %b1 = ait.split %y1 dim 1 : !ait.tensor<r x 48 x f16>, !ait.tensor<r x 48 x f16>
  %p1 = ait.quantize %a1 scale %c : !ait.tensor<r x 48 x i8>
  %q1 = ait.quantize %b1 scale %c : !ait.tensor<r x 48 x f8E4M3FN>
  %y2 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %a2, %b2 = ait.split %y2 dim 1 : !ait.tensor<r x 48 x f16>, !ait.tensor<r x 48 x f16>
  %p2 = ait.quantize %a2 scale %c zero %z : !ait.tensor<r x 48 x i8>
  %q2 = ait.quantize %b2 scale %c zero %z : !ait.tensor<r x 48 x i8>
  %y3 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %a3, %b3 = ait.split %y3 dim 1 : !ait.tensor<r x 48 x f16>, !ait.tensor<r x 48 x f16>
  %p3 = ait.quantize %a3 scale %c : !ait.tensor<r x 48 x i8>
  %q3 = ait.quantize %b3 scale %c : !ait.tensor<r x 48 x i8>
  %y4 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %a4, %b4 = ait.split %y4 dim 1 : !ait.tensor<r x 48 x f16>, !ait.tensor<r x 48 x f16>
  %p4 = ait.quantize %a4 scale %c : !ait.tensor<r x 48 x i8>
  %q4 = ait.quantize %b4 scale %c : !ait.tensor<r x 48 x i8>
  %y5 = ait.gemm rcr %x, %w : !ait.tensor<r x 96 x f16>
  %a5, %b5 = ait.split %y5 dim 1 : !ait.tensor<r x 48 x f16>, !ait.tensor<r x 48 x f16>
  %p5 = ait.quantize %a5 scale %s : !ait.tensor<r x 48 x i8>
  %q5 = ait.quantize %b5 scale %t : !ait.tensor<r x 48 x i8>
  %a6, %b6 = ait.split %v dim 1 : !ait.tensor<r x 48 x f16>, !ait.tensor<r x 48 x f16>
  %p6 = ait.quantize %a6 scale %c : !ait.tensor<r x 48 x i8>
  %q6 = ait.quantize %b6 scale %c : !ait.tensor<r x 48 x i8>
  ait.output "p0" %p0 : !ait.tensor<r x 48 x i8>
  ait.output "q0" %q0 : !ait.tensor<r x 48 x i8>
  ait.output "p1" %p1 : !ait.tensor<r x 48 x i8>
  ait.output "q1" %q1 : !ait.tensor<r x 48 x f8E4M3FN>
  ait.output "p2" %p2 : !ait.tensor<r x 48 x i8>
  ait.output "q2" %q2 : !ait.tensor<r x 48 x i8>
  ait.output "p3" %p3 : !ait.tensor<r x 48 x i8>
  ait.output "q3" %q3 : !ait.tensor<r x 48 x i8>
  ait.output "a3" %a3 : !ait.tensor<r x 48 x f16>
  ait.output "p4" %p4 : !ait.tensor<r x 48 x i8>
  ait.output "q4" %q4 : !ait.tensor<r x 48 x i8>
  ait.output "y4" %y4 : !ait.tensor<r x 96 x f16>
  ait.output "p5" %p5 : !ait.tensor<r x 48 x i8>
  ait.output "q5" %q5 : !ait.tensor<r x 48 x i8>
  ait.output "p6" %p6 : !ait.tensor<r x 48 x i8>
  ait.output "q6" %q6 : !ait.tensor<r x 48 x i8>
}
