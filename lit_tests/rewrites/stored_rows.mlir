// RUN: ait-opt %s -p 'read-stored{target="cpu"}' --check-semantics | filecheck %s
// RUN: ait-opt %s -p 'read-stored{target="cuda" arch="sm_90a"}' | filecheck %s --check-prefix=CARD

// CARD-NOT: ait.stored_gemm

// Any number of rows, on a CPU.
// CHECK-LABEL: ait.graph @rows
ait.graph @rows(%x: !ait.tensor<s x 1024 x f32>, %h: !ait.tensor<s x 1024 x f16>) dims {s = 1 to 300} {
  // CHECK: ait.stored_gemm %x by %w scale %s group 1024 : !ait.tensor<s x 520 x f32>
  // CHECK: ait.stored_gemm %h by %p scale %t group 128 signed : !ait.tensor<s x 520 x f16>
  %w = ait.param "w" : !ait.tensor<520 x 1024 x i8>
  %p = ait.param "p" : !ait.tensor<520 x 512 x ui8>
  %s = ait.param "s" : !ait.tensor<520 x 1 x f32>
  %t = ait.param "t" : !ait.tensor<520 x 8 x f16>
  %v = ait.dequantize %w scale %s : !ait.tensor<520 x 1024 x f32>
  %q = ait.unpack %p : !ait.tensor<520 x 1024 x i4>
  %u = ait.dequantize %q scale %t blocks [1, 128] : !ait.tensor<520 x 1024 x f16>
  %y = ait.gemm rcr %x, %v : !ait.tensor<s x 520 x f32>
  %z = ait.gemm rcr %h, %u : !ait.tensor<s x 520 x f16>
  ait.output "y" %y : !ait.tensor<s x 520 x f32>
  ait.output "z" %z : !ait.tensor<s x 520 x f16>
}

// f64, an input, a small weight, a scale for each column, another layout, an epilogue, a chosen kernel.
// CHECK-LABEL: ait.graph @kept
ait.graph @kept(%x: !ait.tensor<s x 1024 x f32>, %d: !ait.tensor<s x 1024 x f64>, %i: !ait.tensor<520 x 1024 x i8>, %t: !ait.tensor<1024 x s x f32>) dims {s = 1 to 20} {
  // CHECK-NOT: ait.stored_gemm
  %w = ait.param "w" : !ait.tensor<520 x 1024 x i8>
  %few = ait.param "few" : !ait.tensor<8 x 1024 x i8>
  %s = ait.param "s" : !ait.tensor<520 x 1 x f32>
  %one = ait.param "one" : !ait.tensor<8 x 1 x f32>
  %c = ait.param "c" : !ait.tensor<1024 x f32>
  %p = ait.param "p" : !ait.tensor<520 x 512 x ui8>
  %o = ait.param "o" : !ait.tensor<8 x 512 x ui8>
  %q = ait.unpack %p : !ait.tensor<520 x 1024 x i4>
  %r = ait.unpack %o : !ait.tensor<8 x 1024 x i4>
  %v0 = ait.dequantize %w scale %s : !ait.tensor<520 x 1024 x f64>
  %v1 = ait.dequantize %i scale %s : !ait.tensor<520 x 1024 x f32>
  %v2 = ait.dequantize %few scale %one : !ait.tensor<8 x 1024 x f32>
  %v3 = ait.dequantize %w scale %c : !ait.tensor<520 x 1024 x f32>
  %v4 = ait.dequantize %w scale %s : !ait.tensor<520 x 1024 x f32>
  %p0 = ait.dequantize %q scale %s : !ait.tensor<520 x 1024 x f64>
  %p2 = ait.dequantize %r scale %one : !ait.tensor<8 x 1024 x f32>
  %p3 = ait.dequantize %q scale %c : !ait.tensor<520 x 1024 x f32>
  %p4 = ait.dequantize %q scale %s : !ait.tensor<520 x 1024 x f32>
  %y0 = ait.gemm rcr %d, %v0 : !ait.tensor<s x 520 x f64>
  %y1 = ait.gemm rcr %x, %v1 : !ait.tensor<s x 520 x f32>
  %y2 = ait.gemm rcr %x, %v2 : !ait.tensor<s x 8 x f32>
  %y3 = ait.gemm rcr %x, %v3 : !ait.tensor<s x 520 x f32>
  %y4 = ait.gemm ccr %t, %v4 : !ait.tensor<s x 520 x f32>
  %y5 = ait.gemm rcr %x, %v4 epilogue() {
  ^bb0(%acc: f32):
    %n = ait.neg %acc : f32
    ait.yield %n : f32
  } : !ait.tensor<s x 520 x f32>
  %y6 = ait.gemm rcr %x, %v4 {kernel = #ait.kernel<"native">} : !ait.tensor<s x 520 x f32>
  %z0 = ait.gemm rcr %d, %p0 : !ait.tensor<s x 520 x f64>
  %z2 = ait.gemm rcr %x, %p2 : !ait.tensor<s x 8 x f32>
  %z3 = ait.gemm rcr %x, %p3 : !ait.tensor<s x 520 x f32>
  %z4 = ait.gemm ccr %t, %p4 : !ait.tensor<s x 520 x f32>
  %z5 = ait.gemm rcr %x, %p4 epilogue() {
  ^bb0(%acc: f32):
    %n = ait.neg %acc : f32
    ait.yield %n : f32
  } : !ait.tensor<s x 520 x f32>
  %z6 = ait.gemm rcr %x, %p4 {kernel = #ait.kernel<"native">} : !ait.tensor<s x 520 x f32>
  ait.output "0" %y0 : !ait.tensor<s x 520 x f64>
  ait.output "1" %y1 : !ait.tensor<s x 520 x f32>
  ait.output "2" %y2 : !ait.tensor<s x 8 x f32>
  ait.output "3" %y3 : !ait.tensor<s x 520 x f32>
  ait.output "4" %y4 : !ait.tensor<s x 520 x f32>
  ait.output "5" %y5 : !ait.tensor<s x 520 x f32>
  ait.output "6" %y6 : !ait.tensor<s x 520 x f32>
  ait.output "p0" %z0 : !ait.tensor<s x 520 x f64>
  ait.output "p2" %z2 : !ait.tensor<s x 8 x f32>
  ait.output "p3" %z3 : !ait.tensor<s x 520 x f32>
  ait.output "p4" %z4 : !ait.tensor<s x 520 x f32>
  ait.output "p5" %z5 : !ait.tensor<s x 520 x f32>
  ait.output "p6" %z6 : !ait.tensor<s x 520 x f32>
}
