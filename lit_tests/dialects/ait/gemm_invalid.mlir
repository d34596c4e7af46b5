// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @layout(%a: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{expected a layout, one of rrr, rrc, rcr, rcc, crr, crc, ccr, ccc}}
  %0 = ait.gemm rxr %a, %a : !ait.tensor<8 x 8 x f16>
}

// -----

ait.graph @generic_layout(%a: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gemm: unknown layout "abc"; expected one of rrr}}
  %0 = "ait.gemm"(%a, %a) <{layout = "abc"}> ({}) : (!ait.tensor<8 x 16 x f16>, !ait.tensor<8 x 16 x f16>) -> !ait.tensor<8 x 8 x f16>
}

// -----

ait.graph @rank(%a: !ait.tensor<16 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gemm: A and B need at least 2 dims, got [16] and [8, 16]}}
  %0 = ait.gemm rcr %a, %w : !ait.tensor<8 x f16>
}

// -----

ait.graph @elements(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f32>) {
  // expected-error @below {{ait.gemm: B has element type f32, but A has f16}}
  %0 = ait.gemm rcr %a, %w : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @integers(%a: !ait.tensor<4 x 16 x i32>, %w: !ait.tensor<8 x 16 x i32>) {
  // expected-error @below {{ait.gemm: needs a floating-point type, or integers or floats of 8 bits, got i32}}
  %0 = ait.gemm rcr %a, %w : !ait.tensor<4 x 8 x i32>
}

// -----

ait.graph @sum(%a: !ait.tensor<m x 16 x f16>, %w: !ait.tensor<8 x k x f16>) dims {m = 1 to 4, k = 1 to 64} {
  // expected-error @below {{ait.gemm: A sums over 16 (shape [m, 16]), but B over k (shape [8, k]), layout rcr}}
  %0 = ait.gemm rcr %a, %w : !ait.tensor<m x 8 x f16>
}

// -----

ait.graph @batched_b(%a: !ait.tensor<2 x 4 x 16 x f16>, %w: !ait.tensor<2 x 8 x 16 x f16>) {
  // expected-error @below {{ait.gemm: B has rank 3, expected 2; ait.bmm multiplies batches}}
  %0 = ait.gemm rcr %a, %w : !ait.tensor<2 x 4 x 8 x f16>
}

// -----

ait.graph @column_a(%a: !ait.tensor<2 x 16 x 4 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gemm: A has rank 3; with layout ccr it must have rank 2}}
  %0 = ait.gemm ccr %a, %w : !ait.tensor<2 x 4 x 8 x f16>
}

// -----

ait.graph @result(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gemm: the result is !ait.tensor<8 x 4 x f16>, expected !ait.tensor<4 x 8 x f16>}}
  %0 = ait.gemm rcr %a, %w : !ait.tensor<8 x 4 x f16>
}

// -----

ait.graph @batch(%a: !ait.tensor<b x 4 x 16 x f16>, %w: !ait.tensor<c x 8 x 16 x f16>) dims {b = 1 to 4, c = 1 to 4} {
  // expected-error @below {{ait.bmm: dim 0 of the batch of B is c, but the batch of A has b there}}
  %0 = ait.bmm rcr %a, %w : !ait.tensor<b x 4 x 8 x f16>
}

// -----

ait.graph @arguments(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>, %c: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.gemm: the epilogue takes (f32), expected (f32, f32)}}
  %0 = ait.gemm rcr %a, %w epilogue(%c) {
  ^bb0(%acc: f32):
    ait.yield %acc : f32
  } : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @operand(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>, %c: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.gemm: epilogue operand 0 has shape [4], which does not broadcast to [4, 8]: 4 is not 8}}
  %0 = ait.gemm rcr %a, %w epilogue(%c) {
  ^bb0(%acc: f32, %x: f32):
    ait.yield %acc : f32
  } : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @yield(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gemm: the region yields (i1), expected (f32)}}
  %0 = ait.gemm rcr %a, %w epilogue() {
  ^bb0(%acc: f32):
    %c = ait.compare lt %acc, %acc : i1
    ait.yield %c : i1
  } : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @no_region(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>, %c: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.gemm: has epilogue operands but no epilogue region}}
  %0 = "ait.gemm"(%a, %w, %c) <{layout = "rcr"}> ({}) : (!ait.tensor<4 x 16 x f16>, !ait.tensor<8 x 16 x f16>, !ait.tensor<8 x f16>) -> !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @two_blocks(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gemm: the epilogue must have one block, it has 2}}
  %0 = ait.gemm rcr %a, %w epilogue() {
  ^bb0(%acc: f32):
    ait.yield %acc : f32
  ^bb1(%other: f32):
    ait.yield %other : f32
  } : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @odd(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<n x 16 x f16>) dims {n = 2 to 8} {
  // expected-error @below {{ait.gated_gemm: B has n columns, which are not proved to be even; a gated product has two halves}}
  %0 = ait.gated_gemm rcr %a, %w epilogue() {
  ^bb0(%g: f32, %u: f32):
    ait.yield %g : f32
  } : !ait.tensor<4 x 4 x f16>
}

// -----

ait.graph @whole(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gated_gemm: the result is !ait.tensor<4 x 8 x f16>, expected !ait.tensor<4 x 4 x f16>}}
  %0 = ait.gated_gemm rcr %a, %w epilogue() {
  ^bb0(%g: f32, %u: f32):
    ait.yield %g : f32
  } : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @column_major(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gated_gemm: layout rcc stores the result column-major; a gated product is row-major}}
  %0 = ait.gated_gemm rcc %a, %w epilogue() {
  ^bb0(%g: f32, %u: f32):
    ait.yield %g : f32
  } : !ait.tensor<4 x 4 x f16>
}

// -----

ait.graph @no_gate(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gated_gemm: has no epilogue, which says what becomes of the two halves of the product}}
  %0 = ait.gated_gemm rcr %a, %w : !ait.tensor<4 x 4 x f16>
}

// -----

ait.graph @one_sum(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gated_gemm: the epilogue takes (f32), expected (f32, f32)}}
  %0 = ait.gated_gemm rcr %a, %w epilogue() {
  ^bb0(%g: f32):
    ait.yield %g : f32
  } : !ait.tensor<4 x 4 x f16>
}

// -----

ait.graph @batches(%a: !ait.tensor<2 x 4 x 16 x f16>, %w: !ait.tensor<2 x 8 x 16 x f16>) {
  // expected-error @below {{ait.gated_gemm: B has rank 3, expected 2; ait.bmm multiplies batches}}
  %0 = ait.gated_gemm rcr %a, %w epilogue() {
  ^bb0(%g: f32, %u: f32):
    ait.yield %g : f32
  } : !ait.tensor<2 x 4 x 4 x f16>
}

// -----

ait.graph @rotated_rank(%x: !ait.tensor<8 x f16>, %w: !ait.tensor<32 x 8 x f16>, %c: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.rotated_gemm: A needs at least 2 dims and B has 2, got [8] and [32, 8]}}
  %y = ait.rotated_gemm %x, %w cosines %c sines %c heads 2 size 8 : !ait.tensor<32 x f16>
}

// -----

ait.graph @bytes_and_floats(%a: !ait.tensor<4 x 16 x i8>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gemm: B has element type f16, but A has i8}}
  %0 = ait.gemm rcr %a, %w : !ait.tensor<4 x 8 x i32>
}

// -----

ait.graph @sums_of_bytes(%a: !ait.tensor<4 x 16 x i8>, %w: !ait.tensor<8 x 16 x i8>) {
  // expected-error @below {{ait.gemm: the result is !ait.tensor<4 x 8 x i8>, expected !ait.tensor<4 x 8 x i32>}}
  %0 = ait.gemm rcr %a, %w : !ait.tensor<4 x 8 x i8>
}

// -----

ait.graph @gated_bytes(%a: !ait.tensor<4 x 16 x i8>, %w: !ait.tensor<8 x 16 x i8>) {
  // expected-error @below {{ait.gated_gemm: needs a floating-point type, got i8}}
  %0 = ait.gated_gemm rcr %a, %w epilogue() {
  ^bb0(%p: i32, %q: i32):
    %s = ait.add %p, %q : i32
    ait.yield %s : i32
  } : !ait.tensor<4 x 4 x i32>
}

// -----

ait.graph @rotated_types(%x: !ait.tensor<3 x 8 x f16>, %w: !ait.tensor<32 x 8 x f32>, %c: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.rotated_gemm: B has element type f32, but A has f16}}
  %y = ait.rotated_gemm %x, %w cosines %c sines %c heads 2 size 8 : !ait.tensor<3 x 32 x f16>
}

// -----

ait.graph @rotated_integers(%x: !ait.tensor<3 x 8 x i32>, %w: !ait.tensor<32 x 8 x i32>, %c: !ait.tensor<4 x i32>) {
  // expected-error @below {{ait.rotated_gemm: needs a floating-point type, got i32}}
  %y = ait.rotated_gemm %x, %w cosines %c sines %c heads 2 size 8 : !ait.tensor<3 x 32 x i32>
}

// -----

ait.graph @rotated_sums(%x: !ait.tensor<3 x 9 x f16>, %w: !ait.tensor<32 x 8 x f16>, %c: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.rotated_gemm: A sums over 9 (shape [3, 9]), but B over 8}}
  %y = ait.rotated_gemm %x, %w cosines %c sines %c heads 2 size 8 : !ait.tensor<3 x 32 x f16>
}

// -----

ait.graph @rotated_odd(%x: !ait.tensor<3 x 8 x f16>, %w: !ait.tensor<32 x 8 x f16>, %c: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.rotated_gemm: has 2 heads of 9 columns; expected at least 1, of an even number of columns}}
  %y = ait.rotated_gemm %x, %w cosines %c sines %c heads 2 size 9 : !ait.tensor<3 x 32 x f16>
}

// -----

ait.graph @rotated_none(%x: !ait.tensor<3 x 8 x f16>, %w: !ait.tensor<32 x 8 x f16>, %c: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.rotated_gemm: has 0 heads of 8 columns; expected at least 1, of an even number of columns}}
  %y = ait.rotated_gemm %x, %w cosines %c sines %c heads 0 size 8 : !ait.tensor<3 x 32 x f16>
}

// -----

ait.graph @rotated_more(%x: !ait.tensor<3 x 8 x f16>, %w: !ait.tensor<32 x 8 x f16>, %c: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.rotated_gemm: 5 heads of 8 columns are more than the 32 columns of the product}}
  %y = ait.rotated_gemm %x, %w cosines %c sines %c heads 5 size 8 : !ait.tensor<3 x 32 x f16>
}

// -----

ait.graph @rotated_table(%x: !ait.tensor<3 x 8 x f16>, %w: !ait.tensor<32 x 8 x f16>, %c: !ait.tensor<3 x 8 x f16>) {
  // expected-error @below {{ait.rotated_gemm: the cosines have shape [3, 8], expected 4 in the last dim}}
  %y = ait.rotated_gemm %x, %w cosines %c sines %c heads 2 size 8 : !ait.tensor<3 x 32 x f16>
}

// -----

ait.graph @rotated_table_type(%x: !ait.tensor<3 x 8 x f16>, %w: !ait.tensor<32 x 8 x f16>, %c: !ait.tensor<3 x 4 x f32>) {
  // expected-error @below {{ait.rotated_gemm: the cosines have element type f32, but A has f16}}
  %y = ait.rotated_gemm %x, %w cosines %c sines %c heads 2 size 8 : !ait.tensor<3 x 32 x f16>
}

// -----

ait.graph @rotated_rows(%x: !ait.tensor<3 x 8 x f16>, %w: !ait.tensor<32 x 8 x f16>, %c: !ait.tensor<2 x 4 x f16>) {
  // expected-error @below {{ait.rotated_gemm: the rows of the cosines has shape [2], which does not broadcast}}
  %y = ait.rotated_gemm %x, %w cosines %c sines %c heads 2 size 8 : !ait.tensor<3 x 32 x f16>
}

// -----

ait.graph @further_without_epilogue(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gemm: has 2 results but no epilogue region, which yields them}}
  %0, %1 = ait.gemm rcr %a, %w : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @too_many(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gemm: has 4 results, expected 1 to 3}}
  %0, %1, %2, %3 = ait.gemm rcr %a, %w epilogue() {
  ^bb0(%acc: f32):
    ait.yield %acc, %acc, %acc, %acc : f32, f32, f32, f32
  } : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @more_yields(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gemm: the region yields (f32, f32), expected (f32)}}
  %0 = ait.gemm rcr %a, %w epilogue() {
  ^bb0(%acc: f32):
    ait.yield %acc, %acc : f32, f32
  } : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @fewer_yields(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gemm: the region yields (f32), expected (f32, f32)}}
  %0, %1 = ait.gemm rcr %a, %w epilogue() {
  ^bb0(%acc: f32):
    ait.yield %acc : f32
  } : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @further_shape(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gemm: result 1 is !ait.tensor<8 x f16>, expected !ait.tensor<4 x 8 x f16>}}
  %0, %1 = ait.gemm rcr %a, %w epilogue() {
  ^bb0(%acc: f32):
    ait.yield %acc, %acc : f32, f32
  } : !ait.tensor<4 x 8 x f16>, !ait.tensor<8 x f16>
}

// -----

ait.graph @gated_further(%a: !ait.tensor<4 x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gated_gemm: has 2 results, expected one}}
  %0, %1 = ait.gated_gemm rcr %a, %w epilogue() {
  ^bb0(%gate: f32, %up: f32):
    ait.yield %gate, %up : f32, f32
  } : !ait.tensor<4 x 4 x f16>, !ait.tensor<4 x 4 x f16>
}

// -----

ait.graph @provider(%x: !ait.tensor<8 x 4 x f16>) {
  // expected-error @below {{the provider of a kernel expected, as in 'native'}}
  %0 = ait.relu %x {kernel = #ait.kernel<{}>} : !ait.tensor<8 x 4 x f16>
  ait.output "y" %0 : !ait.tensor<8 x 4 x f16>
}

// -----

ait.graph @configuration(%x: !ait.tensor<8 x 4 x f16>) {
  // expected-error @below {{a configuration expected, as in {split = 2 : i64}}}
  %0 = ait.relu %x {kernel = #ait.kernel<"native", 3>} : !ait.tensor<8 x 4 x f16>
  ait.output "y" %0 : !ait.tensor<8 x 4 x f16>
}

// -----

ait.graph @float8_sums(%a: !ait.tensor<2 x 16 x f8E4M3FN>, %w: !ait.tensor<8 x 16 x f8E5M2>) {
  // expected-error @below {{ait.gemm: the result is !ait.tensor<2 x 8 x f16>, expected !ait.tensor<2 x 8 x f32>}}
  %0 = ait.gemm rcr %a, %w : !ait.tensor<2 x 8 x f16>
}

// -----

ait.graph @float8_by_another(%a: !ait.tensor<2 x 16 x f8E4M3FN>, %w: !ait.tensor<8 x 16 x f16>) {
  // expected-error @below {{ait.gemm: B has element type f16, but A has f8E4M3FN}}
  %0 = ait.gemm rcr %a, %w : !ait.tensor<2 x 8 x f32>
}

// -----

ait.graph @scales(%a: !ait.tensor<2 x 16 x f8E8M0FNU>) {
  // expected-error @below {{ait.gemm: needs a floating-point type, or integers or floats of 8 bits, got f8E8M0FNU}}
  %0 = ait.gemm rcr %a, %a : !ait.tensor<2 x 2 x f32>
}

// -----

ait.graph @float8_without_an_epilogue(%a: !ait.tensor<2 x 16 x f8E4M3FN>) {
  // expected-error @below {{ait.gemm: the result is !ait.tensor<2 x 2 x f8E4M3FN>, expected !ait.tensor<2 x 2 x f32>}}
  %0 = ait.gemm rcr %a, %a : !ait.tensor<2 x 2 x f8E4M3FN>
}

// -----

ait.graph @float8_scales_as_result(%a: !ait.tensor<2 x 16 x f8E4M3FN>) {
  // expected-error @below {{ait.gemm: cannot compute in f8E8M0FNU, which only stores values}}
  %0 = ait.gemm rcr %a, %a epilogue() {
  ^bb0(%acc: f32):
    ait.yield %acc : f32
  } : !ait.tensor<2 x 2 x f8E8M0FNU>
}

// -----

ait.graph @float8_operand_of_epilogue(%a: !ait.tensor<2 x 16 x f16>, %b: !ait.tensor<2 x f8E4M3FN>) {
  // expected-error @below {{ait.gemm: cannot compute in f8E4M3FN, which only stores values}}
  %0 = ait.gemm rcr %a, %a epilogue(%b) {
  ^bb0(%acc: f32, %in: f32):
    %y = ait.add %acc, %in : f32
    ait.yield %y : f32
  } : !ait.tensor<2 x 2 x f16>
}

// -----

ait.graph @stored_gemm_with_float8(%a: !ait.tensor<2 x 16 x f16>, %w: !ait.tensor<4 x 16 x i8>, %s: !ait.tensor<4 x 1 x f32>) {
  // expected-error @below {{ait.stored_gemm: cannot compute in f8E4M3FN, which only stores values}}
  %0 = ait.stored_gemm %a by %w scale %s group 16 epilogue() {
  ^bb0(%acc: f32):
    ait.yield %acc : f32
  } : !ait.tensor<2 x 4 x f8E4M3FN>
}

// -----

ait.graph @gated_float8(%a: !ait.tensor<2 x 16 x f8E4M3FN>) {
  // expected-error @below {{ait.gated_gemm: needs a floating-point type, got f8E4M3FN}}
  %0 = ait.gated_gemm rcr %a, %a epilogue() {
  ^bb0(%gate: f32, %up: f32):
    ait.yield %gate : f32
  } : !ait.tensor<2 x 1 x f32>
}

// -----

ait.graph @stored_rank(%a: !ait.tensor<2 x 4 x 8 x f16>, %w: !ait.tensor<6 x 8 x i8>, %s: !ait.tensor<6 x 1 x f16>) {
  // expected-error @below {{ait.stored_gemm: A and the numbers have 2 dims, got [2, 4, 8] and [6, 8]}}
  %0 = ait.stored_gemm %a by %w scale %s group 8 : !ait.tensor<2 x 6 x f16>
}

// -----

ait.graph @stored_wide(%a: !ait.tensor<4 x 8 x f64>, %w: !ait.tensor<6 x 8 x i8>, %s: !ait.tensor<6 x 1 x f16>) {
  // expected-error @below {{ait.stored_gemm: A has element type f64, expected f16, bf16 or f32}}
  %0 = ait.stored_gemm %a by %w scale %s group 8 : !ait.tensor<4 x 6 x f64>
}

// -----

ait.graph @stored_numbers(%a: !ait.tensor<4 x 8 x f16>, %w: !ait.tensor<6 x 8 x i4>, %s: !ait.tensor<6 x 1 x f16>) {
  // expected-error @below {{ait.stored_gemm: the numbers have element type i4, expected i8 or ui8}}
  %0 = ait.stored_gemm %a by %w scale %s group 8 : !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @stored_columns(%a: !ait.tensor<4 x 8 x f16>, %w: !ait.tensor<6 x 4 x i8>, %s: !ait.tensor<6 x 1 x f16>) {
  // expected-error @below {{ait.stored_gemm: the numbers have shape [6, 4] of i8 for rows of 8: expected 8 in the last dim, or 4 of ui8, which hold two each}}
  %0 = ait.stored_gemm %a by %w scale %s group 8 : !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @stored_signed(%a: !ait.tensor<4 x 8 x f16>, %w: !ait.tensor<6 x 8 x ui8>, %s: !ait.tensor<6 x 1 x f16>) {
  // expected-error @below {{ait.stored_gemm: 'signed' is for numbers of 4 bits; those of 8 bits have i8 or ui8}}
  %0 = ait.stored_gemm %a by %w scale %s group 8 signed : !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @stored_odd_group(%a: !ait.tensor<4 x 8 x f16>, %w: !ait.tensor<6 x 4 x ui8>, %s: !ait.tensor<6 x 3 x f16>) {
  // expected-error @below {{ait.stored_gemm: group is 3, expected at least 1, and even for numbers of 4 bits}}
  %0 = ait.stored_gemm %a by %w scale %s group 3 : !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @stored_no_group(%a: !ait.tensor<4 x 8 x f16>, %w: !ait.tensor<6 x 8 x i8>, %s: !ait.tensor<6 x 3 x f16>) {
  // expected-error @below {{ait.stored_gemm: group is 0, expected at least 1}}
  %0 = ait.stored_gemm %a by %w scale %s group 0 : !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @stored_scale_type(%a: !ait.tensor<4 x 8 x f16>, %w: !ait.tensor<6 x 8 x i8>, %s: !ait.tensor<6 x 1 x f64>) {
  // expected-error @below {{ait.stored_gemm: the scale has element type f64, expected f16, bf16 or f32}}
  %0 = ait.stored_gemm %a by %w scale %s group 8 : !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @stored_scale_shape(%a: !ait.tensor<4 x 8 x f16>, %w: !ait.tensor<6 x 8 x i8>, %s: !ait.tensor<6 x 1 x f16>) {
  // expected-error @below {{ait.stored_gemm: the scale has shape [6, 1], expected [6, 2]: a number for each group of 4 along 8}}
  %0 = ait.stored_gemm %a by %w scale %s group 4 : !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @stored_zero_type(%a: !ait.tensor<4 x 8 x f16>, %w: !ait.tensor<6 x 8 x i8>, %s: !ait.tensor<6 x 1 x f16>) {
  // expected-error @below {{ait.stored_gemm: the zero point has element type f16, expected i8 or ui8}}
  %0 = ait.stored_gemm %a by %w scale %s zero %s group 8 : !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @stored_zero_shape(%a: !ait.tensor<4 x 8 x f16>, %w: !ait.tensor<6 x 8 x i8>, %s: !ait.tensor<6 x 1 x f16>) {
  // expected-error @below {{ait.stored_gemm: the zero point has shape [6, 8], expected [6, 1]}}
  %0 = ait.stored_gemm %a by %w scale %s zero %w group 8 : !ait.tensor<4 x 6 x f16>
}

// -----

ait.graph @scaled_rank(%a: !ait.tensor<2 x 4 x 8 x f8E4M3FN>, %w: !ait.tensor<6 x 8 x f8E4M3FN>, %s: !ait.tensor<4 x 1 x f32>, %t: !ait.tensor<1 x 1 x f32>) {
  // expected-error @below {{ait.scaled_gemm: A and B have 2 dims, got [2, 4, 8] and [6, 8]}}
  %0 = ait.scaled_gemm %a by %w rows %s columns %t group 8 block 6 : !ait.tensor<4 x 6 x f32>
}

// -----

ait.graph @scaled_type(%a: !ait.tensor<4 x 8 x f8E4M3FN>, %w: !ait.tensor<6 x 8 x i8>, %s: !ait.tensor<4 x 1 x f32>, %t: !ait.tensor<1 x 1 x f32>) {
  // expected-error @below {{ait.scaled_gemm: B has element type i8, expected f8E4M3FN or f8E5M2}}
  %0 = ait.scaled_gemm %a by %w rows %s columns %t group 8 block 6 : !ait.tensor<4 x 6 x f32>
}

// -----

ait.graph @scaled_sums(%a: !ait.tensor<4 x 8 x f8E4M3FN>, %w: !ait.tensor<6 x 9 x f8E4M3FN>, %s: !ait.tensor<4 x 1 x f32>, %t: !ait.tensor<1 x 1 x f32>) {
  // expected-error @below {{ait.scaled_gemm: A sums over 8 (shape [4, 8]), but B over 9 (shape [6, 9])}}
  %0 = ait.scaled_gemm %a by %w rows %s columns %t group 8 block 6 : !ait.tensor<4 x 6 x f32>
}

// -----

ait.graph @scaled_group(%a: !ait.tensor<4 x 8 x f8E4M3FN>, %w: !ait.tensor<6 x 8 x f8E4M3FN>, %s: !ait.tensor<4 x 1 x f32>, %t: !ait.tensor<1 x 1 x f32>) {
  // expected-error @below {{ait.scaled_gemm: group is 0 and block is 6, expected at least 1}}
  %0 = ait.scaled_gemm %a by %w rows %s columns %t group 0 block 6 : !ait.tensor<4 x 6 x f32>
}

// -----

ait.graph @scaled_scale(%a: !ait.tensor<4 x 8 x f8E4M3FN>, %w: !ait.tensor<6 x 8 x f8E4M3FN>, %s: !ait.tensor<4 x 1 x f16>, %t: !ait.tensor<1 x 1 x f32>) {
  // expected-error @below {{ait.scaled_gemm: the scales of rows have element type f16, expected f32}}
  %0 = ait.scaled_gemm %a by %w rows %s columns %t group 8 block 6 : !ait.tensor<4 x 6 x f32>
}

// -----

ait.graph @scaled_rows(%a: !ait.tensor<4 x 8 x f8E4M3FN>, %w: !ait.tensor<6 x 8 x f8E4M3FN>, %s: !ait.tensor<4 x 1 x f32>, %t: !ait.tensor<1 x 2 x f32>) {
  // expected-error @below {{ait.scaled_gemm: the scales of rows have shape [4, 1], expected [4, 2]: a number for each 4 along a row of A}}
  %0 = ait.scaled_gemm %a by %w rows %s columns %t group 4 block 6 : !ait.tensor<4 x 6 x f32>
}

// -----

ait.graph @scaled_columns(%a: !ait.tensor<4 x 8 x f8E4M3FN>, %w: !ait.tensor<6 x 8 x f8E4M3FN>, %s: !ait.tensor<4 x 2 x f32>, %t: !ait.tensor<1 x 2 x f32>) {
  // expected-error @below {{ait.scaled_gemm: the scales of columns have shape [1, 2], expected [2, 2]: a number for each 4 along 5 rows of B}}
  %0 = ait.scaled_gemm %a by %w rows %s columns %t group 4 block 5 : !ait.tensor<4 x 6 x f32>
}
