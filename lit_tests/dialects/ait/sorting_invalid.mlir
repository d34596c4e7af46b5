// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @range(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.sort: dim 2 is out of range for shape [4, 8]}}
  %v, %p = ait.sort %x dim 2 : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x i64>
}

// -----

ait.graph @places(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.sort: places are i32 or i64, not f16}}
  %v, %p = ait.sort %x dim 1 : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @kth_dim(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.kth_value: dim 2 is out of range for shape [4, 8]}}
  %v, %p = ait.kth_value %x k [1] dim 2 : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x i64>
}

// -----

ait.graph @kth_two(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.kth_value: k is [1, 2], expected one number}}
  %v, %p = ait.kth_value %x k [1, 2] dim 1 : !ait.tensor<4 x f16>, !ait.tensor<4 x i64>
}

// -----

ait.graph @kth_undeclared(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.kth_value: dim 'n' of !ait.tensor<n x f16> is not declared; add it to the dims {...} around it}}
  %v, %p = ait.kth_value %x k [n] dim 1 : !ait.tensor<4 x f16>, !ait.tensor<4 x i64>
}

// -----

ait.graph @kth_outside(%x: !ait.tensor<4 x s x f16>) dims {s = 1 to 8} {
  // expected-error @below {{ait.kth_value: k is 2, which is not proved to be 1 to s, the size of dim 1}}
  %v, %p = ait.kth_value %x k [2] dim 1 : !ait.tensor<4 x f16>, !ait.tensor<4 x i64>
}

// -----

ait.graph @kth_none(%x: !ait.tensor<4 x s x f16>) dims {s = 1 to 8} {
  // expected-error @below {{ait.kth_value: k is s - 1, which is not proved to be 1 to s, the size of dim 1}}
  %v, %p = ait.kth_value %x k [s - 1] dim 1 : !ait.tensor<4 x f16>, !ait.tensor<4 x i64>
}

// -----

ait.graph @kth_integers(%x: !ait.tensor<4 x 8 x i32>) {
  // expected-error @below {{ait.kth_value: nan_first needs a floating-point type, got i32}}
  %v, %p = ait.kth_value %x k [1] dim 1 nan_first : !ait.tensor<4 x i32>, !ait.tensor<4 x i64>
}

// -----

ait.graph @sorted_scalar(%x: !ait.tensor<f16>) {
  // expected-error @below {{ait.search_sorted: sorted has no dim to search in}}
  %y = ait.search_sorted %x, %x : !ait.tensor<i64>
}

// -----

ait.graph @types(%x: !ait.tensor<4 x f16>, %v: !ait.tensor<4 x f32>) {
  // expected-error @below {{ait.search_sorted: values are f32, but sorted is f16}}
  %y = ait.search_sorted %x, %v : !ait.tensor<4 x i64>
}

// -----

ait.graph @booleans(%x: !ait.tensor<4 x i1>) {
  // expected-error @below {{ait.search_sorted: a search in i1 has no meaning; convert with ait.cast}}
  %y = ait.search_sorted %x, %x : !ait.tensor<4 x i64>
}

// -----

ait.graph @rows(%x: !ait.tensor<3 x 4 x f16>, %v: !ait.tensor<2 x 5 x f16>) {
  // expected-error @below {{ait.search_sorted: sorted has rows for [3], but values have shape [2, 5]; expected one row, or one for each index in the dims of values but the last}}
  %y = ait.search_sorted %x, %v : !ait.tensor<2 x 5 x i64>
}

// -----

ait.graph @floats(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.histogram: counts integers, got f16; convert with ait.cast}}
  %y = ait.histogram %x bins 4 : !ait.tensor<4 x i64>
}

// -----

ait.graph @bins(%x: !ait.tensor<4 x i32>) {
  // expected-error @below {{ait.histogram: bins is 0, expected at least 1}}
  %y = ait.histogram %x bins 0 : !ait.tensor<0 x i64>
}

// -----

ait.graph @order_sizes(%i: !ait.tensor<4 x i32>) {
  // expected-error @below {{ait.order: 1 index tensors for 2 sizes; expected one or more, a size for each}}
  %k, %p = ait.order %i sizes [3, 5] : !ait.tensor<4 x i32>, !ait.tensor<4 x i32>
}

// -----

ait.graph @order_types(%i: !ait.tensor<4 x i32>, %j: !ait.tensor<4 x i64>) {
  // expected-error @below {{ait.order: indices must be all i32 or all i64, got i32, i64}}
  %k, %p = ait.order %i, %j sizes [3, 5] : !ait.tensor<4 x i32>, !ait.tensor<4 x i32>
}

// -----

ait.graph @order_shapes(%i: !ait.tensor<4 x i32>, %j: !ait.tensor<3 x i32>) {
  // expected-error @below {{ait.order: dim 0 of index 1 is 3, but index 0 has 4 there (shapes [4], [3])}}
  %k, %p = ait.order %i, %j sizes [3, 5] : !ait.tensor<4 x i32>, !ait.tensor<4 x i32>
}

// -----

ait.graph @order_undeclared(%i: !ait.tensor<4 x i32>) {
  // expected-error @below {{ait.order: dim 'n' of !ait.tensor<n x i32> is not declared}}
  %k, %p = ait.order %i sizes [n] : !ait.tensor<4 x i32>, !ait.tensor<4 x i32>
}

// -----

ait.graph @order_negative(%i: !ait.tensor<n x i32>) dims {n = 0 to 4} {
  // expected-error @below {{ait.order: size n - 1 is not proved to be at least 0}}
  %k, %p = ait.order %i sizes [n - 1] : !ait.tensor<n x i32>, !ait.tensor<n x i32>
}

// -----

ait.graph @order_many(%i: !ait.tensor<4 x i64>) {
  // expected-error @below {{ait.order: 3000000000 elements, which are not proved to be at most 2^31 - 1}}
  %k, %p = ait.order %i, %i sizes [3, 1000000000] : !ait.tensor<4 x i32>, !ait.tensor<4 x i32>
}

// -----

ait.graph @order_result(%i: !ait.tensor<4 x i64>) {
  // expected-error @below {{ait.order: result 1 is !ait.tensor<4 x i64>, expected !ait.tensor<4 x i32>}}
  %k, %p = ait.order %i sizes [3] : !ait.tensor<4 x i32>, !ait.tensor<4 x i64>
}
