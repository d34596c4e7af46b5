// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @dim(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.cumulative: dim 2 is out of range for shape [4, 8]}}
  %0 = ait.cumulative sum %x dim 2 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @negative_dim(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.cumulative: dim -1 is out of range for shape [4, 8]}}
  %0 = ait.cumulative sum %x dim -1 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @rank_0(%x: !ait.tensor<f32>) {
  // expected-error @below {{ait.cumulative: dim 0 is out of range for shape []}}
  %0 = ait.cumulative sum %x dim 0 : !ait.tensor<f32>
}

// -----

ait.graph @booleans(%x: !ait.tensor<4 x i1>) {
  // expected-error @below {{ait.cumulative: sum of i1 has no meaning; convert with ait.cast}}
  %0 = ait.cumulative sum %x dim 0 : !ait.tensor<4 x i1>
}

// -----

ait.graph @result(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.cumulative: the result is !ait.tensor<4 x f16>, expected !ait.tensor<4 x 8 x f16>}}
  %0 = ait.cumulative sum %x dim 1 : !ait.tensor<4 x f16>
}

// -----

ait.graph @kind(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{expected one of sum, prod, max, min, logsumexp}}
  %0 = ait.cumulative mean %x dim 1 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @integers(%x: !ait.tensor<4 x i32>) {
  // expected-error @below {{ait.cumulative: logsumexp needs a floating-point type, got i32; convert with ait.cast}}
  %0 = ait.cumulative logsumexp %x dim 0 : !ait.tensor<4 x i32>
}
