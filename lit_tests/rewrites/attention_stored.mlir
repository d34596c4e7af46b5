// RUN: ait-opt %s -p 'attend-float8{target="cuda" arch="sm_90a"}' --check-semantics | filecheck %s
// RUN: ait-opt %s -p 'attend-float8{target="cuda" arch="sm_80"}' | filecheck %s --check-prefix OTHER

// Scales of q and k are part of the scale, that of v is beside it; other cards keep the values.
// CHECK-LABEL: ait.graph @scales
// OTHER-LABEL: ait.graph @scales
// OTHER: ait.attention %0, %1, %2 scale 0.125 causal :
ait.graph @scales(%q: !ait.tensor<b x 4 x r x 64 x f8E4M3FN>, %k: !ait.tensor<b x 2 x c x 64 x f8E4M3FN>, %v: !ait.tensor<b x 2 x c x 48 x f8E4M3FN>) dims {b = 1 to 2, r = 1 to 80, c = 1 to 80} {
  // CHECK:      [[Y:%.+]] = ait.attention %q, %k, %v scale 0.015625 causal value_scale 0.03125 : !ait.tensor<b x 4 x r x 48 x f16>
  // CHECK-NEXT: ait.output "y" [[Y]]
  %s = ait.constant 0.5 : !ait.tensor<f32>
  %t = ait.constant 0.25 : !ait.tensor<1 x f32>
  %u = ait.constant 0.03125 : !ait.tensor<1 x 1 x 1 x 1 x f16>
  %0 = ait.dequantize %q scale %s : !ait.tensor<b x 4 x r x 64 x f16>
  %1 = ait.dequantize %k scale %t : !ait.tensor<b x 2 x c x 64 x f16>
  %2 = ait.dequantize %v scale %u : !ait.tensor<b x 2 x c x 48 x f16>
  %y = ait.attention %0, %1, %2 scale 0.125 causal : !ait.tensor<b x 4 x r x 48 x f16>
  ait.output "y" %y : !ait.tensor<b x 4 x r x 48 x f16>
}

// With a mask, changed scores and a second result; values that something else reads, too.
// CHECK-LABEL: ait.graph @forms
ait.graph @forms(%q: !ait.tensor<2 x 4 x r x 128 x f8E4M3FN>, %m: !ait.tensor<r x r x bf16>, %c: !ait.tensor<4 x 1 x r x f32>) dims {r = 1 to 80} {
  // CHECK: [[D:%.+]] = ait.dequantize %q
  // CHECK: [[Y:%.+]], [[L:%.+]] = ait.attention %q, %q, %q mask %m scale 0.0625 log_sums value_scale 0.5 scores(%c) {
  // CHECK: ait.output "v" [[D]]
  // CHECK: ait.output "y" [[Y]]
  %s = ait.constant 0.5 : !ait.tensor<f32>
  %0 = ait.dequantize %q scale %s : !ait.tensor<2 x 4 x r x 128 x bf16>
  %y, %l = ait.attention %0, %0, %0 mask %m scale 0.25 log_sums scores(%c) {
  ^bb0(%x: f32, %b: f32):
    %a = ait.add %x, %b : f32
    ait.yield %a : f32
  } : !ait.tensor<2 x 4 x r x 128 x bf16>, !ait.tensor<2 x 4 x r x f32>
  ait.output "v" %0 : !ait.tensor<2 x 4 x r x 128 x bf16>
  ait.output "y" %y : !ait.tensor<2 x 4 x r x 128 x bf16>
  ait.output "l" %l : !ait.tensor<2 x 4 x r x f32>
}

// Other numbers of 8 bits; of one operand no numbers; scales of heads, of groups, of a run; a scale of the run for scores.
// CHECK-LABEL: ait.graph @other_operands
ait.graph @other_operands(%q: !ait.tensor<2 x 4 x r x 64 x f8E4M3FN>, %e: !ait.tensor<2 x 4 x r x 64 x f8E5M2>, %h: !ait.tensor<2 x 4 x r x 64 x f16>, %p: !ait.tensor<1 x f32>, %n: !ait.tensor<1 x 4 x 1 x 1 x f32>) dims {r = 1 to 80, num = 1 to 2139095039 hints [1040187392] given} {
  // CHECK-NOT: value_scale
  %s = ait.constant 0.5 : !ait.tensor<f32>
  %z = ait.constant 0.0 : !ait.tensor<f32>
  %0 = ait.dequantize %q scale %s : !ait.tensor<2 x 4 x r x 64 x f16>
  %1 = ait.dequantize %e scale %s : !ait.tensor<2 x 4 x r x 64 x f16>
  %2 = ait.dequantize %q scale %p : !ait.tensor<2 x 4 x r x 64 x f16>
  %3 = ait.dequantize %q scale %n : !ait.tensor<2 x 4 x r x 64 x f16>
  %y0 = ait.attention %1, %0, %0 scale 0.25 : !ait.tensor<2 x 4 x r x 64 x f16>
  %y1 = ait.attention %0, %1, %0 scale 0.25 : !ait.tensor<2 x 4 x r x 64 x f16>
  %y2 = ait.attention %0, %0, %1 scale 0.25 : !ait.tensor<2 x 4 x r x 64 x f16>
  %y3 = ait.attention %2, %0, %0 scale 0.25 : !ait.tensor<2 x 4 x r x 64 x f16>
  %y4 = ait.attention %0, %3, %0 scale 0.25 : !ait.tensor<2 x 4 x r x 64 x f16>
  %y5 = ait.attention %0, %0, %2 scale 0.25 : !ait.tensor<2 x 4 x r x 64 x f16>
  %y6 = ait.attention %h, %0, %0 scale 0.25 : !ait.tensor<2 x 4 x r x 64 x f16>
  %y7 = ait.attention %0, %h, %0 scale 0.25 : !ait.tensor<2 x 4 x r x 64 x f16>
  %y8 = ait.attention %0, %0, %h scale 0.25 : !ait.tensor<2 x 4 x r x 64 x f16>
  %y9 = ait.attention %0, %0, %0 scale bits(num) : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y0" %y0 : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y1" %y1 : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y2" %y2 : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y3" %y3 : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y4" %y4 : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y5" %y5 : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y6" %y6 : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y7" %y7 : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y8" %y8 : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y9" %y9 : !ait.tensor<2 x 4 x r x 64 x f16>
}

// Two pieces; no softmax; few rows; f32; a selected kernel; heads that are too wide, or whose rows do not start on 16 bytes.
// CHECK-LABEL: ait.graph @other_forms
ait.graph @other_forms(%q: !ait.tensor<2 x 4 x r x 64 x f8E4M3FN>, %f: !ait.tensor<2 x 4 x 64 x 64 x f8E4M3FN>, %w: !ait.tensor<2 x 4 x r x 144 x f8E4M3FN>, %n: !ait.tensor<2 x 4 x r x 56 x f8E4M3FN>) dims {r = 1 to 80} {
  // CHECK-NOT: value_scale
  %s = ait.constant 0.5 : !ait.tensor<f32>
  %0 = ait.dequantize %q scale %s : !ait.tensor<2 x 4 x r x 64 x f16>
  %1 = ait.dequantize %f scale %s : !ait.tensor<2 x 4 x 64 x 64 x f16>
  %2 = ait.dequantize %w scale %s : !ait.tensor<2 x 4 x r x 144 x f16>
  %3 = ait.dequantize %n scale %s : !ait.tensor<2 x 4 x r x 56 x f16>
  %4 = ait.dequantize %q scale %s : !ait.tensor<2 x 4 x r x 64 x f32>
  %y0 = ait.attention %0, %0, %0 then %0, %0 scale 0.25 : !ait.tensor<2 x 4 x r x 64 x f16>
  %y1 = ait.attention %0, %0, %0 scale 0.25 no_softmax : !ait.tensor<2 x 4 x r x 64 x f16>
  %y2 = ait.attention %1, %0, %0 scale 0.25 : !ait.tensor<2 x 4 x 64 x 64 x f16>
  %y3 = ait.attention %4, %4, %4 scale 0.25 : !ait.tensor<2 x 4 x r x 64 x f32>
  %y4 = ait.attention %0, %0, %0 scale 0.25 {kernel = "hopper"} : !ait.tensor<2 x 4 x r x 64 x f16>
  %y5 = ait.attention %2, %2, %0 scale 0.25 : !ait.tensor<2 x 4 x r x 64 x f16>
  %y6 = ait.attention %0, %0, %2 scale 0.25 : !ait.tensor<2 x 4 x r x 144 x f16>
  %y7 = ait.attention %3, %3, %0 scale 0.25 : !ait.tensor<2 x 4 x r x 64 x f16>
  %y8 = ait.attention %0, %0, %3 scale 0.25 : !ait.tensor<2 x 4 x r x 56 x f16>
  ait.output "y0" %y0 : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y1" %y1 : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y2" %y2 : !ait.tensor<2 x 4 x 64 x 64 x f16>
  ait.output "y3" %y3 : !ait.tensor<2 x 4 x r x 64 x f32>
  ait.output "y4" %y4 : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y5" %y5 : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y6" %y6 : !ait.tensor<2 x 4 x r x 144 x f16>
  ait.output "y7" %y7 : !ait.tensor<2 x 4 x r x 64 x f16>
  ait.output "y8" %y8 : !ait.tensor<2 x 4 x r x 56 x f16>
}
