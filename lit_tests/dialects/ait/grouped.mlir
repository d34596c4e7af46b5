// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @plain
ait.graph @plain(%a: !ait.tensor<m x 16 x f16>, %v: !ait.tensor<24 x 16 x f16>, %b: !ait.tensor<7 x k x f16>, %w: !ait.tensor<32 x k x f16>) dims {m = 0 to 64, k = 0 to 64} {
  // CHECK: %0, %1 = ait.grouped_gemm rcr %a, %v, %b, %w : !ait.tensor<m x 24 x f16>, !ait.tensor<7 x 32 x f16>
  // GENERIC: "ait.grouped_gemm"(%a, %v, %b, %w) <{layout = "rcr", operandSegmentSizes = array<i32: 4, 0>}>
  %0, %1 = ait.grouped_gemm rcr %a, %v, %b, %w : !ait.tensor<m x 24 x f16>, !ait.tensor<7 x 32 x f16>
  ait.output "y" %0 : !ait.tensor<m x 24 x f16>
  ait.output "z" %1 : !ait.tensor<7 x 32 x f16>
}

// CHECK-LABEL: ait.graph @epilogue
ait.graph @epilogue(%a: !ait.tensor<m x 16 x f16>, %v: !ait.tensor<16 x 24 x f16>, %b: !ait.tensor<m x 8 x f16>, %w: !ait.tensor<8 x 32 x f16>, %c: !ait.tensor<24 x f32>, %d: !ait.tensor<m x 1 x f32>) dims {m = 0 to 64} {
  // CHECK: %0, %1 = ait.grouped_gemm rrr %a, %v, %b, %w epilogue(%c, %d) {
  // CHECK-NEXT: ^bb0(%acc: f32, %bias: f32):
  // CHECK: } {note} : !ait.tensor<m x 24 x bf16>, !ait.tensor<m x 32 x bf16>
  %0, %1 = ait.grouped_gemm rrr %a, %v, %b, %w epilogue(%c, %d) {
  ^bb0(%acc: f32, %bias: f32):
    %s = ait.add %acc, %bias : f32
    ait.yield %s : f32
  } {note} : !ait.tensor<m x 24 x bf16>, !ait.tensor<m x 32 x bf16>
  ait.output "y" %0 : !ait.tensor<m x 24 x bf16>
  ait.output "z" %1 : !ait.tensor<m x 32 x bf16>
}

// CHECK-LABEL: ait.graph @ragged
ait.graph @ragged(%a: !ait.tensor<t x 16 x bf16>, %b: !ait.tensor<g x 16 x 24 x bf16>, %ends: !ait.tensor<g x i32>, %r: !ait.tensor<t x 24 x bf16>) dims {t = 0 to 64, g = 0 to 8} {
  // CHECK: %0 = ait.ragged_gemm %a, %b to %ends : !ait.tensor<t x 24 x bf16>
  // GENERIC: "ait.ragged_gemm"(%a, %b, %ends)
  %0 = ait.ragged_gemm %a, %b to %ends : !ait.tensor<t x 24 x bf16>
  // CHECK: %1 = ait.ragged_gemm %a, %b to %ends epilogue(%r) {
  %1 = ait.ragged_gemm %a, %b to %ends epilogue(%r) {
  ^bb0(%acc: f32, %rest: f32):
    %s = ait.add %acc, %rest : f32
    ait.yield %s : f32
  } : !ait.tensor<t x 24 x bf16>
  ait.output "y" %0 : !ait.tensor<t x 24 x bf16>
  ait.output "z" %1 : !ait.tensor<t x 24 x bf16>
}

// CHECK-LABEL: ait.graph @norms
ait.graph @norms(%a: !ait.tensor<m x 16 x f16>, %b: !ait.tensor<m x k x f16>, %g: !ait.tensor<16 x f16>, %h: !ait.tensor<k x f16>, %r: !ait.tensor<m x 1 x f32>) dims {m = 0 to 64, k = 0 to 64} {
  // CHECK: %0, %1 = ait.grouped_norm layer %a, %b scale(%g, %h) bias(%g, %h) eps 1e-05 : !ait.tensor<m x 16 x f16>, !ait.tensor<m x k x f16>
  // GENERIC: "ait.grouped_norm"(%a, %b, %g, %h, %g, %h) <{kind = "layer", eps = {{.*}}, operandSegmentSizes = array<i32: 2, 2, 2, 0>}>
  %0, %1 = ait.grouped_norm layer %a, %b scale(%g, %h) bias(%g, %h) eps 1e-05 : !ait.tensor<m x 16 x f16>, !ait.tensor<m x k x f16>
  // CHECK: %2, %3 = ait.grouped_norm rms %a, %b bias(%g, %h) eps 0.0 epilogue(%r, %r) {
  // CHECK-NEXT: ^bb0(%n: f32, %f: f32):
  // CHECK: } {note} : !ait.tensor<m x 16 x bf16>, !ait.tensor<m x k x bf16>
  %2, %3 = ait.grouped_norm rms %a, %b bias(%g, %h) eps 0.0 epilogue(%r, %r) {
  ^bb0(%n: f32, %f: f32):
    %s = ait.mul %n, %f : f32
    ait.yield %s : f32
  } {note} : !ait.tensor<m x 16 x bf16>, !ait.tensor<m x k x bf16>
  ait.output "y" %0 : !ait.tensor<m x 16 x f16>
  ait.output "z" %1 : !ait.tensor<m x k x f16>
  ait.output "u" %2 : !ait.tensor<m x 16 x bf16>
  ait.output "v" %3 : !ait.tensor<m x k x bf16>
}
