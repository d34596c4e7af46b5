// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @rank(%q: !ait.tensor<2 x 4 x 8 x f16>, %k: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: q must have 4 dims [batch, heads, length, head size], got [2, 4, 8]}}
  %0 = ait.attention %q, %k, %k scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @element(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>, %k: !ait.tensor<2 x 1 x 4 x 8 x f32>) {
  // expected-error @below {{ait.attention: v has element type f32, but q has f16}}
  %0 = ait.attention %q, %q, %k scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @integers(%q: !ait.tensor<2 x 1 x 4 x 8 x i32>) {
  // expected-error @below {{ait.attention: needs a floating-point type, got i32}}
  %0 = ait.attention %q, %q, %q scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x i32>
}

// -----

ait.graph @batch(%q: !ait.tensor<b x 1 x 4 x 8 x f16>, %k: !ait.tensor<2 x 1 x 4 x 8 x f16>) dims {b = 1 to 2} {
  // expected-error @below {{ait.attention: batch of k is 2, but of q b}}
  %0 = ait.attention %q, %k, %k scale 1.0 : !ait.tensor<b x 1 x 4 x 8 x f16>
}

// -----

ait.graph @heads(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>, %v: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: heads of v is 1, but of k 2}}
  %0 = ait.attention %q, %q, %v scale 1.0 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// -----

ait.graph @head_size(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>, %k: !ait.tensor<2 x 1 x 4 x 16 x f16>) {
  // expected-error @below {{ait.attention: head size of k is 16, but of q 8}}
  %0 = ait.attention %q, %k, %k scale 1.0 : !ait.tensor<2 x 1 x 4 x 16 x f16>
}

// -----

ait.graph @length(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>, %v: !ait.tensor<2 x 1 x 5 x 8 x f16>) {
  // expected-error @below {{ait.attention: length of v is 5, but of k 4}}
  %0 = ait.attention %q, %q, %v scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @mask(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>, %m: !ait.tensor<4 x 5 x f16>) {
  // expected-error @below {{ait.attention: the mask has shape [4, 5], which does not broadcast to [2, 1, 4, 4]: 5 is not 4}}
  %0 = ait.attention %q, %q, %q mask %m scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @boolean_mask(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>, %m: !ait.tensor<4 x 4 x i1>) {
  // expected-error @below {{ait.attention: the mask is added and must be floating-point, got i1}}
  %0 = ait.attention %q, %q, %q mask %m scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @result(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>, %v: !ait.tensor<2 x 1 x 4 x 16 x f16>) {
  // expected-error @below {{ait.attention: the result is !ait.tensor<2 x 1 x 4 x 8 x f16>, expected !ait.tensor<2 x 1 x 4 x 16 x f16>}}
  %0 = ait.attention %q, %q, %v scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @groups(%q: !ait.tensor<2 x 6 x 4 x 8 x f16>, %k: !ait.tensor<2 x 4 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: heads of k is 4, which is not proved to divide the 6 heads of q}}
  %0 = ait.attention %q, %k, %k scale 1.0 : !ait.tensor<2 x 6 x 4 x 8 x f16>
}

// -----

ait.graph @window(%q: !ait.tensor<2 x 6 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: window must be at least 1, got 0}}
  %0 = ait.attention %q, %q, %q scale 1.0 window 0 : !ait.tensor<2 x 6 x 4 x 8 x f16>
}

// -----

ait.graph @second_rank(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>, %k: !ait.tensor<2 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: the second k must have 4 dims [batch, heads, length, head size], got [2, 4, 8]}}
  %0 = ait.attention %q, %q, %q then %k, %q scale 1.0 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// -----

ait.graph @second_element(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>, %k: !ait.tensor<2 x 2 x 4 x 8 x f32>) {
  // expected-error @below {{ait.attention: the second v has element type f32, but q has f16}}
  %0 = ait.attention %q, %q, %q then %q, %k scale 1.0 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// -----

ait.graph @second_batch(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>, %k: !ait.tensor<1 x 2 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: batch of the second k is 1, but of k 2}}
  %0 = ait.attention %q, %q, %q then %k, %q scale 1.0 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// -----

ait.graph @second_heads(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>, %k: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: heads of the second v is 1, but of v 2}}
  %0 = ait.attention %q, %q, %q then %q, %k scale 1.0 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// -----

ait.graph @second_head_size(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>, %k: !ait.tensor<2 x 2 x 4 x 16 x f16>) {
  // expected-error @below {{ait.attention: head size of the second v is 16, but of v 8}}
  %0 = ait.attention %q, %q, %q then %q, %k scale 1.0 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// -----

ait.graph @second_length(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>, %k: !ait.tensor<2 x 2 x 3 x 8 x f16>) {
  // expected-error @below {{ait.attention: length of the second v is 3, but of the second k 4}}
  %0 = ait.attention %q, %q, %q then %q, %k scale 1.0 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// -----

ait.graph @mask_of_one_piece(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>, %m: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.attention: the mask has shape [4], which does not broadcast to [2, 2, 4, 8]: 4 is not 8}}
  %0 = ait.attention %q, %q, %q then %q, %q mask %m scale 1.0 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// -----

ait.graph @second_k_alone(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>) {
  // expected-error @below {{expected a second k and a second v after 'then', got 1 operands}}
  %0 = ait.attention %q, %q, %q then %q mask %q scale 1.0 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// -----

ait.graph @too_many(%q: !ait.tensor<2 x 2 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: takes q, k, v, a second k and v, and a mask at most, got 7 operands}}
  %0 = ait.attention %q, %q, %q, %q, %q, %q, %q scale 1.0 : !ait.tensor<2 x 2 x 4 x 8 x f16>
}

// -----

ait.graph @ragged_three(%q: !ait.tensor<2 x 4 x 3 x 8 x f16>, %k: !ait.tensor<2 x 2 x 5 x 8 x f16>, %n: !ait.tensor<2 x i32>) {
  // expected-error @below {{ait.ragged_attention: takes q, k and v, got 2 operands before the first keyword}}
  %0 = ait.ragged_attention %q, %k columns %n scale 1.0 : !ait.tensor<2 x 4 x 3 x 8 x f16>
}

// -----

ait.graph @ragged_rank(%q: !ait.tensor<2 x 4 x 3 x 8 x f16>, %k: !ait.tensor<2 x 2 x 5 x 8 x f16>, %n: !ait.tensor<2 x i32>) {
  // expected-error @below {{ait.ragged_attention: v must have 4 dims, got [2]}}
  %0 = ait.ragged_attention %q, %k, %n columns %n scale 1.0 : !ait.tensor<2 x 4 x 3 x 8 x f16>
}

// -----

ait.graph @ragged_element(%q: !ait.tensor<2 x 4 x 3 x 8 x f16>, %k: !ait.tensor<2 x 2 x 5 x 8 x f16>, %n: !ait.tensor<2 x i32>, %v: !ait.tensor<2 x 2 x 5 x 8 x f32>) {
  // expected-error @below {{ait.ragged_attention: v has element type f32, expected that of q, a float}}
  %0 = ait.ragged_attention %q, %k, %v columns %n scale 1.0 : !ait.tensor<2 x 4 x 3 x 8 x f16>
}

// -----

ait.graph @ragged_window(%q: !ait.tensor<2 x 4 x 3 x 8 x f16>, %k: !ait.tensor<2 x 2 x 5 x 8 x f16>, %n: !ait.tensor<2 x i32>) {
  // expected-error @below {{ait.ragged_attention: window must be at least 1, got 0}}
  %0 = ait.ragged_attention %q, %k, %k columns %n scale 1.0 window 0 : !ait.tensor<2 x 4 x 3 x 8 x f16>
}

// -----

ait.graph @ragged_heads(%q: !ait.tensor<2 x 4 x 3 x 8 x f16>, %k: !ait.tensor<2 x 2 x 5 x 8 x f16>, %n: !ait.tensor<2 x i32>, %v: !ait.tensor<2 x 3 x 5 x 8 x f16>) {
  // expected-error @below {{ait.ragged_attention: heads of k is 3, which is not proved to divide the 4 heads of q}}
  %0 = ait.ragged_attention %q, %v, %v columns %n scale 1.0 : !ait.tensor<2 x 4 x 3 x 8 x f16>
}

// -----

ait.graph @ragged_length(%q: !ait.tensor<2 x 4 x 3 x 8 x f16>, %k: !ait.tensor<2 x 2 x 5 x 8 x f16>, %n: !ait.tensor<2 x i32>, %v: !ait.tensor<2 x 2 x 6 x 8 x f16>) {
  // expected-error @below {{ait.ragged_attention: length of v is 6, but of k 5}}
  %0 = ait.ragged_attention %q, %k, %v columns %n scale 1.0 : !ait.tensor<2 x 4 x 3 x 8 x f16>
}

// -----

ait.graph @ragged_batch(%q: !ait.tensor<2 x 4 x 3 x 8 x f16>, %k: !ait.tensor<2 x 2 x 5 x 8 x f16>, %n: !ait.tensor<2 x i32>, %v: !ait.tensor<3 x 2 x 5 x 8 x f16>) {
  // expected-error @below {{ait.ragged_attention: batch of k is 3, but of q 2}}
  %0 = ait.ragged_attention %q, %v, %v columns %n scale 1.0 : !ait.tensor<2 x 4 x 3 x 8 x f16>
}

// -----

ait.graph @ragged_none(%q: !ait.tensor<2 x 4 x 3 x 8 x f16>, %k: !ait.tensor<2 x 2 x 5 x 8 x f16>, %n: !ait.tensor<2 x i32>) {
  // expected-error @below {{ait.ragged_attention: needs `columns`, the length of each sequence, or `segments`, their offsets, and not both}}
  %0 = ait.ragged_attention %q, %k, %k rows %n scale 1.0 : !ait.tensor<2 x 4 x 3 x 8 x f16>
}

// -----

ait.graph @ragged_kinds(%q: !ait.tensor<2 x 4 x 3 x 8 x f16>, %k: !ait.tensor<2 x 2 x 5 x 8 x f16>, %n: !ait.tensor<2 x i32>, %m: !ait.tensor<2 x i64>) {
  // expected-error @below {{ait.ragged_attention: the integers must be all i32 or all i64, got i32, i64}}
  %0 = ait.ragged_attention %q, %k, %k columns %n rows %m scale 1.0 : !ait.tensor<2 x 4 x 3 x 8 x f16>
}

// -----

ait.graph @ragged_table(%q: !ait.tensor<2 x 4 x 3 x 8 x f16>, %k: !ait.tensor<2 x 2 x 5 x 8 x f16>, %n: !ait.tensor<2 x i32>) {
  // expected-error @below {{ait.ragged_attention: `pages` must have 2 dims, got [2]}}
  %0 = ait.ragged_attention %q, %k, %k columns %n pages %n scale 1.0 : !ait.tensor<2 x 4 x 3 x 8 x f16>
}

// -----

ait.graph @ragged_sequences(%q: !ait.tensor<2 x 4 x 3 x 8 x f16>, %k: !ait.tensor<2 x 2 x 5 x 8 x f16>, %n: !ait.tensor<2 x i32>, %m: !ait.tensor<3 x i32>) {
  // expected-error @below {{ait.ragged_attention: `rows` is for 3 sequences, but the batch of q is 2}}
  %0 = ait.ragged_attention %q, %k, %k columns %n rows %m scale 1.0 : !ait.tensor<2 x 4 x 3 x 8 x f16>
}

// -----

ait.graph @packed_rows(%x: !ait.tensor<1 x 4 x 9 x 8 x f16>, %q: !ait.tensor<2 x 4 x 9 x 8 x f16>, %n: !ait.tensor<3 x i32>, %z: !ait.tensor<0 x i32>, %k: !ait.tensor<1 x 4 x 5 x 8 x f16>) {
  // expected-error @below {{ait.ragged_attention: with `segments` there are no `rows` and no `pages`}}
  %0 = ait.ragged_attention %x, %x, %x rows %n segments %n scale 1.0 : !ait.tensor<1 x 4 x 9 x 8 x f16>
}

// -----

ait.graph @packed_offsets(%x: !ait.tensor<1 x 4 x 9 x 8 x f16>, %q: !ait.tensor<2 x 4 x 9 x 8 x f16>, %n: !ait.tensor<3 x i32>, %z: !ait.tensor<0 x i32>, %k: !ait.tensor<1 x 4 x 5 x 8 x f16>) {
  // expected-error @below {{ait.ragged_attention: `segments` has 0 offsets, expected one more than sequences}}
  %0 = ait.ragged_attention %x, %x, %x segments %z scale 1.0 : !ait.tensor<1 x 4 x 9 x 8 x f16>
}

// -----

ait.graph @packed_batch(%x: !ait.tensor<1 x 4 x 9 x 8 x f16>, %q: !ait.tensor<2 x 4 x 9 x 8 x f16>, %n: !ait.tensor<3 x i32>, %z: !ait.tensor<0 x i32>, %k: !ait.tensor<1 x 4 x 5 x 8 x f16>) {
  // expected-error @below {{ait.ragged_attention: the batch of packed q is 2, expected 1}}
  %0 = ait.ragged_attention %q, %q, %q segments %n scale 1.0 : !ait.tensor<2 x 4 x 9 x 8 x f16>
}

// -----

ait.graph @packed_length(%x: !ait.tensor<1 x 4 x 9 x 8 x f16>, %q: !ait.tensor<2 x 4 x 9 x 8 x f16>, %n: !ait.tensor<3 x i32>, %z: !ait.tensor<0 x i32>, %k: !ait.tensor<1 x 4 x 5 x 8 x f16>) {
  // expected-error @below {{ait.ragged_attention: length of k is 5, but of q 9}}
  %0 = ait.ragged_attention %x, %k, %k segments %n scale 1.0 : !ait.tensor<1 x 4 x 9 x 8 x f16>
}

// -----

ait.graph @sums_without_flag(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: has 2 results, expected 1: `log_sums` and `largest` ask for one each}}
  %0, %1 = ait.attention %q, %q, %q scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f16>, !ait.tensor<2 x 1 x 4 x f32>
}

// -----

ait.graph @flag_without_sums(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: has 1 results, expected 2: `log_sums` and `largest` ask for one each}}
  %0 = ait.attention %q, %q, %q scale 1.0 log_sums : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @narrow_sums(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: result 1 is !ait.tensor<2 x 1 x 4 x f16>, expected !ait.tensor<2 x 1 x 4 x f32>}}
  %0, %1 = ait.attention %q, %q, %q scale 1.0 log_sums : !ait.tensor<2 x 1 x 4 x 8 x f16>, !ait.tensor<2 x 1 x 4 x f16>
}

// -----

ait.graph @score_operand(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>, %b: !ait.tensor<4 x 5 x f16>) {
  // expected-error @below {{ait.attention: operand 0 of the scores has shape [4, 5], which does not broadcast to [2, 1, 4, 4]: 5 is not 4}}
  %0 = ait.attention %q, %q, %q scale 1.0 scores(%b) {
  ^bb0(%s: f32, %x: f32):
    ait.yield %x : f32
  } : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @score_arguments(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>, %b: !ait.tensor<4 x 4 x f16>) {
  // expected-error @below {{ait.attention: the region of the scores takes (f32, f16), expected (f32, f32)}}
  %0 = ait.attention %q, %q, %q scale 1.0 scores(%b) {
  ^bb0(%s: f32, %x: f16):
    ait.yield %s : f32
  } : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @score_yield(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>, %b: !ait.tensor<4 x 4 x i32>) {
  // expected-error @below {{ait.attention: the region yields (i32), expected (f32)}}
  %0 = ait.attention %q, %q, %q scale 1.0 scores(%b) {
  ^bb0(%s: f32, %x: i32):
    ait.yield %x : i32
  } : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @score_ops(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: the region of the scores holds ait.param; only elementwise ops and constants are allowed there}}
  %0 = ait.attention %q, %q, %q scale 1.0 scores() {
  ^bb0(%s: f32):
    %p = ait.param "p" : !ait.tensor<4 x f32>
    ait.yield %s : f32
  } : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @mask_without_softmax(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>, %m: !ait.tensor<4 x 4 x f16>) {
  // expected-error @below {{ait.attention: has no softmax, so a mask cannot hide columns; the region of the scores can}}
  %0 = ait.attention %q, %q, %q mask %m scale 1.0 no_softmax : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @sums_without_softmax(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: has no softmax, so there are no sums of exponentials}}
  %0, %1 = ait.attention %q, %q, %q scale 1.0 no_softmax log_sums : !ait.tensor<2 x 1 x 4 x 8 x f16>, !ait.tensor<2 x 1 x 4 x f32>
}

// -----

ait.graph @largest_alone(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: needs both `largest` and `least`, which make the scale of a row}}
  %0, %1 = ait.attention %q, %q, %q scale 1.0 largest 448.0 : !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>, !ait.tensor<2 x 1 x 4 x f32>
}

// -----

ait.graph @least_alone(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: needs both `largest` and `least`, which make the scale of a row}}
  %0 = ait.attention %q, %q, %q scale 1.0 least 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>
}

// -----

ait.graph @two_scales(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: has a `result_scale`, so `largest` and `least` make no scales of rows; leave these out}}
  %0, %1 = ait.attention %q, %q, %q scale 1.0 result_scale 1.0 largest 448.0 least 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>, !ait.tensor<2 x 1 x 4 x f32>
}

// -----

ait.graph @scale_of_0(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: result_scale is 0.0, expected a finite number above 0}}
  %0 = ait.attention %q, %q, %q scale 1.0 result_scale 0.0 : !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>
}

// -----

ait.graph @least_infinite(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: least is inf, expected a finite number above 0}}
  %0, %1 = ait.attention %q, %q, %q scale 1.0 largest 448.0 least inf : !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>, !ait.tensor<2 x 1 x 4 x f32>
}

// -----

ait.graph @largest_negative(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: largest is -448.0, expected a finite number above 0}}
  %0, %1 = ait.attention %q, %q, %q scale 1.0 largest -448.0 least 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>, !ait.tensor<2 x 1 x 4 x f32>
}

// -----

ait.graph @half_with_a_scale(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: the result has element type f16, expected i8, ui8, f8E4M3FN or f8E5M2 with a scale}}
  %0 = ait.attention %q, %q, %q scale 1.0 result_scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @double_with_a_scale(%q: !ait.tensor<2 x 1 x 4 x 8 x f64>) {
  // expected-error @below {{ait.attention: q has element type f64, expected f16, bf16 or f32 for numbers of 8 bits}}
  %0 = ait.attention %q, %q, %q scale 1.0 result_scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>
}

// -----

ait.graph @without_scales(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: has 1 results, expected 2: `log_sums` and `largest` ask for one each}}
  %0 = ait.attention %q, %q, %q scale 1.0 largest 448.0 least 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>
}

// -----

ait.graph @bytes_without_a_scale(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: cannot compute in f8E4M3FN, which only stores values}}
  %0 = ait.attention %q, %q, %q scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>
}

// -----

ait.graph @scales_of_another_shape(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: result 1 is !ait.tensor<2 x 1 x 4 x 1 x f32>, expected !ait.tensor<2 x 1 x 4 x f32>}}
  %0, %1 = ait.attention %q, %q, %q scale 1.0 largest 448.0 least 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>, !ait.tensor<2 x 1 x 4 x 1 x f32>
}

// -----

ait.graph @value_scale_of_halves(%q: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: has a `value_scale`, which is for q, k and v of f8E4M3FN, got f16}}
  %0 = ait.attention %q, %q, %q scale 1.0 value_scale 0.5 : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @value_scale_negative(%q: !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>) {
  // expected-error @below {{ait.attention: value_scale is -0.5, expected a finite number above 0}}
  %0 = ait.attention %q, %q, %q scale 1.0 value_scale -0.5 : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @double_of_float8(%q: !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>) {
  // expected-error @below {{ait.attention: the result has element type f64, expected f16, bf16 or f32 of q of f8E4M3FN}}
  %0 = ait.attention %q, %q, %q scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f64>
}

// -----

ait.graph @float8_without_a_scale(%q: !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>) {
  // expected-error @below {{ait.attention: the result has element type f8E4M3FN, expected f16, bf16 or f32 of q of f8E4M3FN}}
  %0 = ait.attention %q, %q, %q scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>
}

// -----

ait.graph @other_floats_of_8_bits(%q: !ait.tensor<2 x 1 x 4 x 8 x f8E5M2>) {
  // expected-error @below {{ait.attention: cannot compute in f8E5M2, which only stores values}}
  %0 = ait.attention %q, %q, %q scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @float8_and_halves(%q: !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>, %k: !ait.tensor<2 x 1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.attention: k has element type f16, but q has f8E4M3FN}}
  %0 = ait.attention %q, %k, %k scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f16>
}

// -----

ait.graph @float8_in_pieces(%q: !ait.tensor<2 x 1 x 4 x 8 x f8E4M3FN>) {
  // expected-error @below {{ait.attention: cannot compute in f8E4M3FN, which only stores values}}
  %0 = ait.attention %q, %q, %q then %q, %q scale 1.0 : !ait.tensor<2 x 1 x 4 x 8 x f16>
}
