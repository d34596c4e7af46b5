// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @layout(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<6 x 8 x f16>) {
  // expected-error @below {{expected a layout, one of rrr, rcr, crr, ccr}}
  %r0 = ait.grouped_gemm rrc %a, %b : !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @count(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<6 x 8 x f16>, %c: !ait.tensor<3 x 8 x f16>) {
  // expected-error @below {{ait.grouped_gemm: has 3 matrices and 1 results; expected A and B for each result}}
  %r0 = ait.grouped_gemm rcr %a, %b, %c : !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @rank(%a: !ait.tensor<2 x 4 x 8 x f16>, %b: !ait.tensor<6 x 8 x f16>) {
  // expected-error @below {{ait.grouped_gemm: A and B of product 0 need 2 dims, got [2, 4, 8] and [6, 8]}}
  %r0 = ait.grouped_gemm rcr %a, %b : !ait.tensor<2 x 4 x 6 x f16>
}

// -----

ait.graph @types(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<6 x 8 x f32>) {
  // expected-error @below {{ait.grouped_gemm: B of product 0 has element type f32, but A has f16}}
  %r0 = ait.grouped_gemm rcr %a, %b : !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @integers(%a: !ait.tensor<4 x 8 x i32>, %b: !ait.tensor<6 x 8 x i32>) {
  // expected-error @below {{ait.grouped_gemm: product 0 needs a floating-point type, got i32}}
  %r0 = ait.grouped_gemm rcr %a, %b : !ait.tensor<4 x 6 x i32>
}

// -----

ait.graph @sums(%a: !ait.tensor<4 x 8 x f16>, %w: !ait.tensor<8 x 6 x f16>, %c: !ait.tensor<4 x 9 x f16>) {
  // expected-error @below {{ait.grouped_gemm: A of product 1 sums over 8 (shape [4, 8]), but B over 4 (shape [4, 9]), layout rrr}}
  %r0, %r1 = ait.grouped_gemm rrr %a, %w, %a, %c : !ait.tensor<4 x 6 x f16>, !ait.tensor<4 x 9 x f16>
}

// -----

ait.graph @mixed(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<6 x 8 x f16>, %c: !ait.tensor<4 x 8 x f32>, %d: !ait.tensor<6 x 8 x f32>) {
  // expected-error @below {{ait.grouped_gemm: product 1 is of f32, but product 0 of f16}}
  %r0, %r1 = ait.grouped_gemm rcr %a, %b, %c, %d : !ait.tensor<4 x 6 x f16>, !ait.tensor<4 x 6 x f32>
}

// -----

ait.graph @uneven(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<6 x 8 x f16>, %c: !ait.tensor<6 x f16>) {
  // expected-error @below {{ait.grouped_gemm: has 1 epilogue operands for 2 products}}
  %r0, %r1 = ait.grouped_gemm rcr %a, %b, %a, %b epilogue(%c) {
  ^bb0(%acc: f32, %x: f32):
    %s = ait.relu %acc : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 6 x f16>, !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @broadcast(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<6 x 8 x f16>, %c: !ait.tensor<6 x f16>, %d: !ait.tensor<7 x f16>) {
  // expected-error @below {{ait.grouped_gemm: epilogue operand 0 of product 1 has shape [7], which does not broadcast to [4, 6]: 7 is not 6}}
  %r0, %r1 = ait.grouped_gemm rcr %a, %b, %a, %b epilogue(%c, %d) {
  ^bb0(%acc: f32, %x: f32):
    %s = ait.relu %acc : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 6 x f16>, !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @kinds(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<6 x 8 x f16>, %c: !ait.tensor<6 x f16>, %d: !ait.tensor<6 x f32>) {
  // expected-error @below {{ait.grouped_gemm: the epilogue operands of product 1 are f32, but those of product 0 f16}}
  %r0, %r1 = ait.grouped_gemm rcr %a, %b, %a, %b epilogue(%c, %d) {
  ^bb0(%acc: f32, %x: f32):
    %s = ait.relu %acc : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 6 x f16>, !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @results(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<6 x 8 x f16>) {
  // expected-error @below {{ait.grouped_gemm: the results have element types f16, f32, expected one for all}}
  %r0, %r1 = ait.grouped_gemm rcr %a, %b, %a, %b epilogue() {
  ^bb0(%acc: f32):
    %s = ait.relu %acc : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 6 x f16>, !ait.tensor<4 x 6 x f32>
}

// -----

ait.graph @arguments(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<6 x 8 x f16>) {
  // expected-error @below {{ait.grouped_gemm: the epilogue takes (f16), expected (f32)}}
  %r0 = ait.grouped_gemm rcr %a, %b epilogue() {
  ^bb0(%acc: f16):
    ait.yield %acc : f16
  } : !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @shape(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<6 x 8 x f16>) {
  // expected-error @below {{ait.grouped_gemm: the result is !ait.tensor<4 x 7 x f16>, expected !ait.tensor<4 x 6 x f16>}}
  %r0 = ait.grouped_gemm rcr %a, %b : !ait.tensor<4 x 7 x f16>
}

// -----

ait.graph @ragged_rank(%a: !ait.tensor<t x 8 x f16>, %b: !ait.tensor<8 x 5 x f16>, %e: !ait.tensor<3 x i32>) dims {t = 0 to 9} {
  // expected-error @below {{ait.ragged_gemm: A [T, K] has 2 dims and B [G, K, N] has 3, got [t, 8] and [8, 5]}}
  %r0 = ait.ragged_gemm %a, %b to %e : !ait.tensor<t x 5 x f16>
}

// -----

ait.graph @ragged_types(%a: !ait.tensor<t x 8 x f16>, %b: !ait.tensor<3 x 8 x 5 x f32>, %e: !ait.tensor<3 x i32>) dims {t = 0 to 9} {
  // expected-error @below {{ait.ragged_gemm: B has element type f32, but A has f16}}
  %r0 = ait.ragged_gemm %a, %b to %e : !ait.tensor<t x 5 x f16>
}

// -----

ait.graph @ragged_integers(%a: !ait.tensor<t x 8 x i8>, %b: !ait.tensor<3 x 8 x 5 x i8>, %e: !ait.tensor<3 x i32>) dims {t = 0 to 9} {
  // expected-error @below {{ait.ragged_gemm: needs a floating-point type, got i8}}
  %r0 = ait.ragged_gemm %a, %b to %e : !ait.tensor<t x 5 x f16>
}

// -----

ait.graph @ragged_sums(%a: !ait.tensor<t x 8 x f16>, %b: !ait.tensor<3 x 9 x 5 x f16>, %e: !ait.tensor<3 x i32>) dims {t = 0 to 9} {
  // expected-error @below {{ait.ragged_gemm: A sums over 8 (shape [t, 8]), but B over 9 (shape [3, 9, 5])}}
  %r0 = ait.ragged_gemm %a, %b to %e : !ait.tensor<t x 5 x f16>
}

// -----

ait.graph @ends_type(%a: !ait.tensor<t x 8 x f16>, %b: !ait.tensor<3 x 8 x 5 x f16>, %e: !ait.tensor<3 x f32>) dims {t = 0 to 9} {
  // expected-error @below {{ait.ragged_gemm: ends must be i32 or i64, got f32}}
  %r0 = ait.ragged_gemm %a, %b to %e : !ait.tensor<t x 5 x f16>
}

// -----

ait.graph @ends_shape(%a: !ait.tensor<t x 8 x f16>, %b: !ait.tensor<3 x 8 x 5 x f16>, %e: !ait.tensor<4 x i32>) dims {t = 0 to 9} {
  // expected-error @below {{ait.ragged_gemm: ends has shape [4], expected [3]: the end of each group of B}}
  %r0 = ait.ragged_gemm %a, %b to %e : !ait.tensor<t x 5 x f16>
}

// -----

ait.graph @ends_rank(%a: !ait.tensor<t x 8 x f16>, %b: !ait.tensor<3 x 8 x 5 x f16>, %e: !ait.tensor<3 x 1 x i32>) dims {t = 0 to 9} {
  // expected-error @below {{ait.ragged_gemm: ends has shape [3, 1], expected [3]: the end of each group of B}}
  %r0 = ait.ragged_gemm %a, %b to %e : !ait.tensor<t x 5 x f16>
}

// -----

ait.graph @ragged_result(%a: !ait.tensor<t x 8 x f16>, %b: !ait.tensor<3 x 8 x 5 x f16>, %e: !ait.tensor<3 x i32>) dims {t = 0 to 9} {
  // expected-error @below {{ait.ragged_gemm: the result is !ait.tensor<t x 6 x f16>, expected !ait.tensor<t x 5 x f16>}}
  %r0 = ait.ragged_gemm %a, %b to %e : !ait.tensor<t x 6 x f16>
}

// -----

ait.graph @unknown_layout(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<6 x 8 x f16>) {
  // expected-error @below {{ait.grouped_gemm: unknown layout "rcc"; expected one of rrr, rcr, crr, ccr}}
  %0 = "ait.grouped_gemm"(%a, %b) <{layout = "rcc", operandSegmentSizes = array<i32: 2, 0>}> ({}) : (!ait.tensor<4 x 8 x f16>, !ait.tensor<6 x 8 x f16>) -> !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @no_region(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<6 x 8 x f16>, %c: !ait.tensor<6 x f16>) {
  // expected-error @below {{ait.grouped_gemm: has epilogue operands but no epilogue region}}
  %0 = "ait.grouped_gemm"(%a, %b, %c) <{layout = "rcr", operandSegmentSizes = array<i32: 2, 1>}> ({}) : (!ait.tensor<4 x 8 x f16>, !ait.tensor<6 x 8 x f16>, !ait.tensor<6 x f16>) -> !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @kind(%a: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{expected a norm, one of layer, rms}}
  %r0 = ait.grouped_norm group %a eps 1e-05 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @inputs(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.grouped_norm: has 2 inputs and 1 results; expected one for each result}}
  %r0 = ait.grouped_norm layer %a, %b eps 1e-05 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @scales(%a: !ait.tensor<4 x 8 x f16>, %g: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.grouped_norm: has 1 scales for 2 norms; expected one for each, or none}}
  %r0, %r1 = ait.grouped_norm layer %a, %a scale(%g) eps 1e-05 : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @biases(%a: !ait.tensor<4 x 8 x f16>, %g: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.grouped_norm: has 1 biases for 2 norms; expected one for each, or none}}
  %r0, %r1 = ait.grouped_norm layer %a, %a bias(%g) eps 1e-05 : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @eps(%a: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.grouped_norm: eps must not be negative, got -1.0}}
  %r0 = ait.grouped_norm layer %a eps -1.0 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @scalar(%a: !ait.tensor<f16>) {
  // expected-error @below {{ait.grouped_norm: input 0 has no dim to normalise}}
  %r0 = ait.grouped_norm layer %a eps 1e-05 : !ait.tensor<f16>
}

// -----

ait.graph @whole_numbers(%a: !ait.tensor<4 x 8 x i32>) {
  // expected-error @below {{ait.grouped_norm: norm 0 needs a floating-point type, got i32}}
  %r0 = ait.grouped_norm layer %a eps 1e-05 : !ait.tensor<4 x 8 x i32>
}

// -----

ait.graph @mixed_norms(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.grouped_norm: norm 1 is of f32, but norm 0 of f16}}
  %r0, %r1 = ait.grouped_norm layer %a, %b eps 1e-05 : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @scale_shape(%a: !ait.tensor<4 x 8 x f16>, %g: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.grouped_norm: scale 0 has shape [4], expected [8]}}
  %r0 = ait.grouped_norm layer %a scale(%g) eps 1e-05 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @bias_type(%a: !ait.tensor<4 x 8 x f16>, %g: !ait.tensor<8 x f32>) {
  // expected-error @below {{ait.grouped_norm: bias 0 has element type f32, but the input has f16}}
  %r0 = ait.grouped_norm layer %a bias(%g) eps 1e-05 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @norm_extras(%a: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<4 x 9 x f16>) {
  // expected-error @below {{ait.grouped_norm: epilogue operand 0 of norm 1 has shape [4, 8], which does not broadcast}}
  %r0, %r1 = ait.grouped_norm layer %a, %b eps 1e-05 epilogue(%a, %a) {
  ^bb0(%n: f32, %x: f32):
    %s = ait.add %n, %x : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 9 x f16>
}

// -----

ait.graph @norm_operands(%a: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.grouped_norm: has 1 epilogue operands for 2 norms}}
  %r0, %r1 = ait.grouped_norm layer %a, %a eps 1e-05 epilogue(%a) {
  ^bb0(%n: f32):
    ait.yield %n : f32
  } : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
}
