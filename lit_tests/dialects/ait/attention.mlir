// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @attention
ait.graph @attention(%q: !ait.tensor<b x 12 x s x 64 x f16>, %k: !ait.tensor<b x 12 x l x 64 x f16>, %v: !ait.tensor<b x 12 x l x 32 x f16>, %m: !ait.tensor<b x 1 x 1 x l x f32>) dims {b = 0 to 4, s = 1 to 8, l = 1 to 8} {
  // CHECK: ait.attention %q, %k, %v scale 0.125 : !ait.tensor<b x 12 x s x 32 x f16>
  // GENERIC: "ait.attention"(%q, %k, %v) <{scale = 1.250000e-01 : f64}>
  %0 = ait.attention %q, %k, %v scale 0.125 : !ait.tensor<b x 12 x s x 32 x f16>
  // CHECK-NEXT: ait.attention %q, %k, %v scale 1.0 causal : !ait.tensor<b x 12 x s x 32 x f16>
  // GENERIC: "ait.attention"(%q, %k, %v) <{scale = 1.000000e+00 : f64, causal}>
  %1 = ait.attention %q, %k, %v scale 1.0 causal : !ait.tensor<b x 12 x s x 32 x f16>
  // CHECK-NEXT: ait.attention %q, %k, %v mask %m scale 0.125 : !ait.tensor<b x 12 x s x 32 x f16>
  // GENERIC: "ait.attention"(%q, %k, %v, %m)
  %2 = ait.attention %q, %k, %v mask %m scale 0.125 : !ait.tensor<b x 12 x s x 32 x f16>
  // CHECK-NEXT: ait.attention %q, %k, %v mask %m scale 0.125 causal : !ait.tensor<b x 12 x s x 32 x f16>
  %3 = ait.attention %q, %k, %v mask %m scale 0.125 causal : !ait.tensor<b x 12 x s x 32 x f16>
  ait.output "y" %3 : !ait.tensor<b x 12 x s x 32 x f16>
}

// A second piece of keys and values, with and without a mask over the columns of both.
// CHECK-LABEL: ait.graph @pieces
ait.graph @pieces(%q: !ait.tensor<b x 12 x s x 64 x f16>, %k: !ait.tensor<b x 4 x l x 64 x f16>, %v: !ait.tensor<b x 4 x l x 32 x f16>, %n: !ait.tensor<b x 4 x s x 64 x f16>, %w: !ait.tensor<b x 4 x s x 32 x f16>, %m: !ait.tensor<b x 1 x 1 x (l + s) x f32>) dims {b = 0 to 4, s = 1 to 8, l = 0 to 8} {
  // CHECK: ait.attention %q, %k, %v then %n, %w scale 0.125 causal : !ait.tensor<b x 12 x s x 32 x f16>
  // GENERIC: "ait.attention"(%q, %k, %v, %n, %w) <{scale = 1.250000e-01 : f64, causal}>
  %0 = ait.attention %q, %k, %v then %n, %w scale 0.125 causal : !ait.tensor<b x 12 x s x 32 x f16>
  // CHECK-NEXT: ait.attention %q, %k, %v then %n, %w mask %m scale 0.125 window 3 : !ait.tensor<b x 12 x s x 32 x f16>
  // GENERIC: "ait.attention"(%q, %k, %v, %n, %w, %m) <{scale = 1.250000e-01 : f64, window = 3 : i64}>
  %1 = ait.attention %q, %k, %v then %n, %w mask %m scale 0.125 window 3 : !ait.tensor<b x 12 x s x 32 x f16>
  ait.output "y" %0 : !ait.tensor<b x 12 x s x 32 x f16>
  ait.output "z" %1 : !ait.tensor<b x 12 x s x 32 x f16>
}

// Each head of k and v serves three of q; a row sees 4 columns on each side, or behind it alone.
// CHECK-LABEL: ait.graph @groups
ait.graph @groups(%q: !ait.tensor<b x 12 x s x 64 x f16>, %k: !ait.tensor<b x 4 x s x 64 x f16>) dims {b = 0 to 4, s = 1 to 8} {
  // CHECK: ait.attention %q, %k, %k scale 0.125 window 5 : !ait.tensor<b x 12 x s x 64 x f16>
  // GENERIC: "ait.attention"(%q, %k, %k) <{scale = 1.250000e-01 : f64, window = 5 : i64}>
  %0 = ait.attention %q, %k, %k scale 0.125 window 5 : !ait.tensor<b x 12 x s x 64 x f16>
  // CHECK-NEXT: ait.attention %0, %k, %k scale 0.125 causal window 5 : !ait.tensor<b x 12 x s x 64 x f16>
  %1 = ait.attention %0, %k, %k scale 0.125 causal window 5 : !ait.tensor<b x 12 x s x 64 x f16>
  ait.output "y" %1 : !ait.tensor<b x 12 x s x 64 x f16>
}

// Sequences with lengths of their own: padded, in pages of a pool, packed.
// CHECK-LABEL: ait.graph @ragged
ait.graph @ragged(%q: !ait.tensor<b x 4 x s x 64 x f16>, %k: !ait.tensor<b x 2 x l x 64 x f16>, %pool: !ait.tensor<99 x 2 x 16 x 64 x f16>, %x: !ait.tensor<1 x 4 x t x 64 x f16>, %n: !ait.tensor<b x i32>, %table: !ait.tensor<b x 8 x i32>, %o: !ait.tensor<(b + 1) x i64>) dims {b = 1 to 4, s = 1 to 8, l = 1 to 8, t = 1 to 64} {
  // CHECK: ait.ragged_attention %q, %k, %k columns %n scale 0.125 : !ait.tensor<b x 4 x s x 64 x f16>
  // GENERIC: "ait.ragged_attention"(%q, %k, %k, %n) <{scale = 1.250000e-01 : f64, operandSegmentSizes = array<i32: 3, 1, 0, 0, 0>}>
  %0 = ait.ragged_attention %q, %k, %k columns %n scale 0.125 : !ait.tensor<b x 4 x s x 64 x f16>
  // CHECK-NEXT: ait.ragged_attention %q, %k, %k columns %n rows %n scale 0.125 causal window 3 : !ait.tensor<b x 4 x s x 64 x f16>
  %1 = ait.ragged_attention %q, %k, %k columns %n rows %n scale 0.125 causal window 3 : !ait.tensor<b x 4 x s x 64 x f16>
  // CHECK-NEXT: ait.ragged_attention %q, %pool, %pool columns %n pages %table scale 0.125 causal : !ait.tensor<b x 4 x s x 64 x f16>
  %2 = ait.ragged_attention %q, %pool, %pool columns %n pages %table scale 0.125 causal : !ait.tensor<b x 4 x s x 64 x f16>
  // CHECK-NEXT: ait.ragged_attention %x, %x, %x segments %o scale 0.125 : !ait.tensor<1 x 4 x t x 64 x f16>
  %3 = ait.ragged_attention %x, %x, %x segments %o scale 0.125 : !ait.tensor<1 x 4 x t x 64 x f16>
  ait.output "y" %3 : !ait.tensor<1 x 4 x t x 64 x f16>
}

// What becomes of scores, with a mask after it; rows that stand at the first columns; the logarithms of sums.
// CHECK-LABEL: ait.graph @scores
ait.graph @scores(%q: !ait.tensor<b x 12 x s x 64 x f16>, %k: !ait.tensor<b x 4 x l x 64 x f16>, %bias: !ait.tensor<12 x s x l x f16>, %m: !ait.tensor<b x 1 x 1 x l x f16>) dims {b = 0 to 4, s = 1 to 8, l = 1 to 8} {
  // CHECK: %y, %sums = ait.attention %q, %k, %k mask %m scale 0.125 causal top_left window 3 log_sums scores(%bias) {
  // CHECK-NEXT: ^bb0(%score: f32, %0: f32):
  // CHECK-NEXT:   %1 = ait.add %score, %0 : f32
  // CHECK-NEXT:   ait.yield %1 : f32
  // CHECK-NEXT: } : !ait.tensor<b x 12 x s x 64 x f16>, !ait.tensor<b x 12 x s x f32>
  // GENERIC: "ait.attention"(%q, %k, %k, %m, %bias) <{scale = 1.250000e-01 : f64, causal, top_left, window = 3 : i64, log_sums}> ({
  %y, %sums = ait.attention %q, %k, %k mask %m scale 0.125 causal top_left window 3 log_sums scores(%bias) {
  ^bb0(%score: f32, %0: f32):
    %1 = ait.add %score, %0 : f32
    ait.yield %1 : f32
  } : !ait.tensor<b x 12 x s x 64 x f16>, !ait.tensor<b x 12 x s x f32>
  ait.output "y" %y : !ait.tensor<b x 12 x s x 64 x f16>
  ait.output "sums" %sums : !ait.tensor<b x 12 x s x f32>
}

// The scores as weights, without a softmax.
// CHECK-LABEL: ait.graph @weights
ait.graph @weights(%q: !ait.tensor<b x 4 x s x 64 x f16>) dims {b = 0 to 4, s = 1 to 8} {
  // CHECK: ait.attention %q, %q, %q scale 0.125 causal no_softmax scores() {
  // CHECK: ait.attention %q, %q, %q scale 0.125 no_softmax : !ait.tensor<b x 4 x s x 64 x f16>
  // GENERIC: <{scale = 1.250000e-01 : f64, causal, no_softmax}> ({
  %0 = ait.attention %q, %q, %q scale 0.125 causal no_softmax scores() {
  ^bb0(%score: f32):
    %1 = ait.silu %score : f32
    ait.yield %1 : f32
  } : !ait.tensor<b x 4 x s x 64 x f16>
  %2 = ait.attention %q, %q, %q scale 0.125 no_softmax : !ait.tensor<b x 4 x s x 64 x f16>
  ait.output "y" %0 : !ait.tensor<b x 4 x s x 64 x f16>
  ait.output "z" %2 : !ait.tensor<b x 4 x s x 64 x f16>
}

// Results of 8 bits: one scale for all values, or one for each row of a head, which is the last result.
// CHECK-LABEL: ait.graph @numbers
ait.graph @numbers(%q: !ait.tensor<b x 4 x s x 64 x bf16>) dims {b = 0 to 4, s = 1 to 8} {
  // CHECK: %n = ait.attention %q, %q, %q scale 0.125 causal result_scale 0.5 : !ait.tensor<b x 4 x s x 64 x i8>
  // CHECK: %m, %l, %t = ait.attention %q, %q, %q scale 0.125 log_sums largest 448.0 least 0.25 : !ait.tensor<b x 4 x s x 64 x f8E4M3FN>, !ait.tensor<b x 4 x s x f32>, !ait.tensor<b x 4 x s x f32>
  // GENERIC: <{scale = 1.250000e-01 : f64, causal, result_scale = 5.000000e-01 : f64}>
  // GENERIC: <{scale = 1.250000e-01 : f64, log_sums, largest = 4.480000e+02 : f64, least = 2.500000e-01 : f64}>
  %n = ait.attention %q, %q, %q scale 0.125 causal result_scale 0.5 : !ait.tensor<b x 4 x s x 64 x i8>
  %m, %l, %t = ait.attention %q, %q, %q scale 0.125 log_sums largest 448.0 least 0.25 : !ait.tensor<b x 4 x s x 64 x f8E4M3FN>, !ait.tensor<b x 4 x s x f32>, !ait.tensor<b x 4 x s x f32>
  ait.output "n" %n : !ait.tensor<b x 4 x s x 64 x i8>
  ait.output "m" %m : !ait.tensor<b x 4 x s x 64 x f8E4M3FN>
  ait.output "l" %l : !ait.tensor<b x 4 x s x f32>
  ait.output "t" %t : !ait.tensor<b x 4 x s x f32>
}

// q, k and v of 8 bits: the result has the type that is written, or numbers with a scale.
// CHECK-LABEL: ait.graph @float8
ait.graph @float8(%q: !ait.tensor<b x 4 x s x 64 x f8E4M3FN>, %m: !ait.tensor<b x 1 x 1 x s x bf16>) dims {b = 0 to 4, s = 1 to 8} {
  // CHECK: %n = ait.attention %q, %q, %q scale 0.125 causal value_scale 0.5 : !ait.tensor<b x 4 x s x 64 x f16>
  // CHECK: %o = ait.attention %q, %q, %q mask %m scale 0.125 value_scale 2.0 result_scale 0.25 : !ait.tensor<b x 4 x s x 64 x f8E4M3FN>
  // GENERIC: <{scale = 1.250000e-01 : f64, causal, value_scale = 5.000000e-01 : f64}>
  // GENERIC: <{scale = 1.250000e-01 : f64, value_scale = 2.000000e+00 : f64, result_scale = 2.500000e-01 : f64}>
  %n = ait.attention %q, %q, %q scale 0.125 causal value_scale 0.5 : !ait.tensor<b x 4 x s x 64 x f16>
  %o = ait.attention %q, %q, %q mask %m scale 0.125 value_scale 2.0 result_scale 0.25 : !ait.tensor<b x 4 x s x 64 x f8E4M3FN>
  ait.output "n" %n : !ait.tensor<b x 4 x s x 64 x f16>
  ait.output "o" %o : !ait.tensor<b x 4 x s x 64 x f8E4M3FN>
}
