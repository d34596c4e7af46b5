// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @kind(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{expected one of sum, prod, mean, max, min, var}}
  %0 = ait.reduce product %x dims [1] : !ait.tensor<4 x f16>
}

// -----

ait.graph @range(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.reduce: dims [2] are out of range for shape [4, 8]}}
  %0 = ait.reduce sum %x dims [2] : !ait.tensor<4 x f16>
}

// -----

ait.graph @ascending(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.reduce: dims [1, 0] are not ascending}}
  %0 = ait.reduce sum %x dims [1, 0] : !ait.tensor<f16>
}

// -----

ait.graph @twice(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.reduce: dims [1, 1] are not ascending}}
  %0 = ait.reduce sum %x dims [1, 1] : !ait.tensor<4 x f16>
}

// -----

ait.graph @mean_of_integers(%x: !ait.tensor<4 x i32>) {
  // expected-error @below {{ait.reduce: mean needs a floating-point type, got i32; convert with ait.cast}}
  %0 = ait.reduce mean %x dims [0] : !ait.tensor<i32>
}

// -----

ait.graph @booleans(%x: !ait.tensor<4 x i1>) {
  // expected-error @below {{ait.reduce: sum of i1 has no meaning; convert with ait.cast}}
  %0 = ait.reduce sum %x dims [0] : !ait.tensor<i1>
}

// -----

ait.graph @correction(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.reduce: correction 1 of mean; only var has one, 0 or more}}
  %0 = ait.reduce mean %x dims [0] correction 1 : !ait.tensor<f16>
}

// -----

ait.graph @negative_correction(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.reduce: correction -1 of var; only var has one, 0 or more}}
  %0 = ait.reduce var %x dims [0] correction -1 : !ait.tensor<f16>
}

// -----

ait.graph @result(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.reduce: the result is !ait.tensor<4 x 1 x f16>, expected !ait.tensor<4 x f16>}}
  %0 = ait.reduce sum %x dims [1] : !ait.tensor<4 x 1 x f16>
}

// -----

ait.graph @argmax_dim(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.argmax: dim 2 is out of range for shape [4, 8]}}
  %0 = ait.argmax %x dim 2 : !ait.tensor<4 x i64>
}

// -----

ait.graph @argmax_type(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.argmax: places are i32 or i64, not i8}}
  %0 = ait.argmax %x dim 1 : !ait.tensor<4 x i8>
}

// -----

ait.graph @argmax_booleans(%x: !ait.tensor<4 x 8 x i1>) {
  // expected-error @below {{ait.argmax: a largest i1 has no meaning; convert with ait.cast}}
  %0 = ait.argmax %x dim 1 : !ait.tensor<4 x i64>
}

// -----

ait.graph @argmax_empty(%x: !ait.tensor<4 x 0 x f16>) {
  // expected-error @below {{ait.argmax: dim 1 of the input is 0, which is not proved to be at least 1}}
  %0 = ait.argmax %x dim 1 : !ait.tensor<4 x i64>
}

// -----

ait.graph @topk_rank(%x: !ait.tensor<f16>) {
  // expected-error @below {{ait.topk: the input has no dim to choose from}}
  %0, %1 = ait.topk %x k 1 : !ait.tensor<1 x f16>, !ait.tensor<1 x i64>
}

// -----

ait.graph @topk_k(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.topk: k is 9, expected 1 to 8, dim 1 of the input, proved to be as many}}
  %0, %1 = ait.topk %x k 9 : !ait.tensor<4 x 9 x f16>, !ait.tensor<4 x 9 x i64>
}

// -----

ait.graph @topk_zero(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.topk: k is 0, expected 1 to 8}}
  %0, %1 = ait.topk %x k 0 : !ait.tensor<4 x 0 x f16>, !ait.tensor<4 x 0 x i64>
}

// -----

ait.graph @topk_booleans(%x: !ait.tensor<4 x 8 x i1>) {
  // expected-error @below {{ait.topk: a largest i1 has no meaning; convert with ait.cast}}
  %0, %1 = ait.topk %x k 1 : !ait.tensor<4 x 1 x i1>, !ait.tensor<4 x 1 x i64>
}

// -----

ait.graph @topk_places(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.topk: places are i32 or i64, not f16}}
  %0, %1 = ait.topk %x k 1 : !ait.tensor<4 x 1 x f16>, !ait.tensor<4 x 1 x f16>
}

// -----

ait.graph @topk_dim(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.topk: dim 2 is out of range for shape [4, 8]}}
  %v, %p = ait.topk %x k 2 dim 2 : !ait.tensor<4 x 2 x f16>, !ait.tensor<4 x 2 x i64>
}
