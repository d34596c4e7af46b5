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
