// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @rank(%x: !ait.tensor<8 x 8 x f16>) {
  // expected-error @below {{ait.pool: x is [batch, 1 to 3 spatial dims, channels], got [8, 8]}}
  %0 = ait.pool max %x window [2] : !ait.tensor<8 x 7 x f16>
}

// -----

ait.graph @integers(%x: !ait.tensor<1 x 8 x 8 x i32>) {
  // expected-error @below {{ait.pool: mean needs a floating-point type, got i32; convert with ait.cast}}
  %0 = ait.pool mean %x window [2] : !ait.tensor<1 x 7 x 8 x i32>
}

// -----

ait.graph @booleans(%x: !ait.tensor<1 x 8 x 8 x i1>) {
  // expected-error @below {{ait.pool: max needs numbers, got i1; convert with ait.cast}}
  %0 = ait.pool max %x window [2] : !ait.tensor<1 x 7 x 8 x i1>
}

// -----

ait.graph @window(%x: !ait.tensor<1 x 8 x 8 x 8 x f16>) {
  // expected-error @below {{ait.pool: window is [2], expected 2 numbers, each at least 1}}
  %0 = ait.pool max %x window [2] : !ait.tensor<1 x 7 x 8 x 8 x f16>
}

// -----

ait.graph @stride(%x: !ait.tensor<1 x 8 x 8 x f16>) {
  // expected-error @below {{ait.pool: stride is [0], expected 1 numbers, each at least 1}}
  %0 = ait.pool max %x window [2] stride [0] : !ait.tensor<1 x 7 x 8 x f16>
}

// -----

ait.graph @dilation(%x: !ait.tensor<1 x 8 x 8 x f16>) {
  // expected-error @below {{ait.pool: dilation is [1, 1], expected 1 numbers, each at least 1}}
  %0 = ait.pool max %x window [2] dilation [1, 1] : !ait.tensor<1 x 7 x 8 x f16>
}

// -----

ait.graph @pad(%x: !ait.tensor<1 x 8 x 8 x f16>) {
  // expected-error @below {{ait.pool: pad is [1, 0, 1], expected 1 or 2 numbers, each at least 0}}
  %0 = ait.pool max %x window [2] pad [1, 0, 1] : !ait.tensor<1 x 7 x 8 x f16>
}

// -----

ait.graph @wide_pad(%x: !ait.tensor<1 x 8 x 8 x f16>) {
  // expected-error @below {{ait.pool: pad is 0, 2 of spatial dim 0: a window of 2 would hold pad alone}}
  %0 = ait.pool max %x window [2] pad [0, 2] : !ait.tensor<1 x 9 x 8 x f16>
}

// -----

ait.graph @reach(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.pool: a window reaches over 5 along spatial dim 0, where x with its pad has 4}}
  %0 = ait.pool max %x window [3] dilation [2] : !ait.tensor<1 x 0 x 8 x f16>
}

// -----

ait.graph @max_divides(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.pool: max divides by nothing; exclude_pad and divisor are for mean}}
  %0 = ait.pool max %x window [3] exclude_pad : !ait.tensor<1 x 2 x 8 x f16>
}

// -----

ait.graph @divisor(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.pool: the divisor is 0}}
  %0 = ait.pool mean %x window [3] divisor 0 : !ait.tensor<1 x 2 x 8 x f16>
}

// -----

ait.graph @result(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.pool: the result is !ait.tensor<1 x 3 x 8 x f16>, expected !ait.tensor<1 x 2 x 8 x f16>}}
  %0 = ait.pool mean %x window [3] : !ait.tensor<1 x 3 x 8 x f16>
}

// -----

ait.graph @adaptive_rank(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.adaptive_pool: the result has shape [1, 8], expected 3 dims as x has}}
  %0 = ait.adaptive_pool mean %x : !ait.tensor<1 x 8 x f16>
}

// -----

ait.graph @adaptive_channels(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.adaptive_pool: the result is !ait.tensor<1 x 2 x 4 x f16>, expected !ait.tensor<1 x 2 x 8 x f16>}}
  %0 = ait.adaptive_pool mean %x : !ait.tensor<1 x 2 x 4 x f16>
}

// -----

ait.graph @adaptive_empty(%x: !ait.tensor<1 x 0 x 8 x f16>) {
  // expected-error @below {{ait.adaptive_pool: spatial dim 0 is 0 in x and 2 in the result, expected both to be proved at least 1}}
  %0 = ait.adaptive_pool mean %x : !ait.tensor<1 x 2 x 8 x f16>
}

// -----

ait.graph @adaptive_none(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.adaptive_pool: spatial dim 0 is 4 in x and 0 in the result, expected both to be proved at least 1}}
  %0 = ait.adaptive_pool mean %x : !ait.tensor<1 x 0 x 8 x f16>
}

// -----

ait.graph @mean_places(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.pool: has 2 results; max has values and maybe places, mean has values alone}}
  %0, %1 = ait.pool mean %x window [3] : !ait.tensor<1 x 2 x 8 x f16>, !ait.tensor<1 x 2 x 8 x i64>
}

// -----

ait.graph @places_type(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.pool: places are i32 or i64, not f32}}
  %0, %1 = ait.pool max %x window [3] : !ait.tensor<1 x 2 x 8 x f16>, !ait.tensor<1 x 2 x 8 x f32>
}

// -----

ait.graph @kind(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.pool: unknown kind "least"; expected one of max, mean}}
  %0 = "ait.pool"(%x) <{kind = "least", window = [3 : i64]}> : (!ait.tensor<1 x 4 x 8 x f16>) -> !ait.tensor<1 x 2 x 8 x f16>
}

// -----

ait.graph @fold_booleans(%x: !ait.tensor<4 x 3 x 8 x i1>) {
  // expected-error @below {{ait.overlap_add: sums of i1 have no meaning; convert with ait.cast}}
  %y = ait.overlap_add %x stride [1] : !ait.tensor<4 x 10 x i1>
}

// -----

ait.graph @fold_numbers(%x: !ait.tensor<4 x 3 x 8 x f16>) {
  // expected-error @below {{ait.overlap_add: stride, dilation and before have one number each for 1 to 3 dims}}
  %y = ait.overlap_add %x stride [1] before [0, 0] : !ait.tensor<4 x 10 x f16>
}

// -----

ait.graph @fold_stride(%x: !ait.tensor<4 x 3 x 8 x f16>) {
  // expected-error @below {{ait.overlap_add: stride is [0], expected at least 1}}
  %y = ait.overlap_add %x stride [0] : !ait.tensor<4 x 10 x f16>
}

// -----

ait.graph @fold_rank(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.overlap_add: x has shape [4, 8] and the result [4, 10]; expected 1 more dims of x, a window and a number of windows for each of the last 1 dims of the result}}
  %y = ait.overlap_add %x stride [1] : !ait.tensor<4 x 10 x f16>
}

// -----

ait.graph @fold_leading(%x: !ait.tensor<4 x 3 x 8 x f16>) {
  // expected-error @below {{ait.overlap_add: the leading dims of x, [4], are not those of the result, [5]}}
  %y = ait.overlap_add %x stride [1] : !ait.tensor<5 x 10 x f16>
}

// -----

ait.graph @fold_undeclared(%x: !ait.tensor<4 x 3 x 8 x f16>) {
  // expected-error @below {{ait.overlap_add: dim 'n' of !ait.tensor<4 x n x f16> is not declared; add it to the dims {...} around it}}
  %y = ait.overlap_add %x stride [1] : !ait.tensor<4 x n x f16>
}
