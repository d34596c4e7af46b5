// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @reshape(%x: !ait.tensor<b x 12 x f16>) dims {b = 1 to 4} {
  // expected-error @below {{ait.reshape: [b, 12] has 12*b elements, [b, 3, 5] has 15*b}}
  %0 = ait.reshape %x : !ait.tensor<b x 3 x 5 x f16>
}

// -----

ait.graph @reshape_element(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.reshape: the result has element type bf16, but the input f16}}
  %0 = ait.reshape %x : !ait.tensor<2 x 2 x bf16>
}

// -----

ait.graph @permutation(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.permute: [0, 0] is no permutation of the 2 dims of [4, 8]}}
  %0 = ait.permute %x [0, 0] : !ait.tensor<4 x 4 x f16>
}

// -----

ait.graph @short_permutation(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.permute: [0] is no permutation of the 2 dims of [4, 8]}}
  %0 = ait.permute %x [0] : !ait.tensor<4 x f16>
}

// -----

ait.graph @permuted(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.permute: the result is !ait.tensor<4 x 8 x f16>, expected !ait.tensor<8 x 4 x f16>}}
  %0 = ait.permute %x [1, 0] : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @expand(%x: !ait.tensor<b x f16>) dims {b = 1 to 4} {
  // expected-error @below {{ait.expand: the input has shape [b], which does not broadcast to [4]: b is not 4}}
  %0 = ait.expand %x : !ait.tensor<4 x f16>
}

// -----

ait.graph @expand_rank(%x: !ait.tensor<1 x 4 x f16>) {
  // expected-error @below {{ait.expand: the input has shape [1, 4], of higher rank than [4]}}
  %0 = ait.expand %x : !ait.tensor<4 x f16>
}

// -----

ait.graph @slice_outside(%x: !ait.tensor<s x f16>) dims {s = 1 to 4} {
  // expected-error @below {{ait.slice: in dim 0, s - 1 to s + 1 cannot be proved to lie in 0 to s}}
  %0 = ait.slice %x offsets [s - 1] : !ait.tensor<2 x f16>
}

// -----

ait.graph @slice_negative(%x: !ait.tensor<s x f16>) dims {s = 0 to 4} {
  // expected-error @below {{ait.slice: in dim 0, s - 1 to s cannot be proved to lie in 0 to s}}
  %0 = ait.slice %x offsets [s - 1] : !ait.tensor<1 x f16>
}

// -----

ait.graph @slice_rank(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.slice: 1 offsets and a result of rank 2 for an input of rank 2}}
  %0 = ait.slice %x offsets [0] : !ait.tensor<2 x 8 x f16>
}

// -----

ait.graph @slice_undeclared(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.slice: dim 'n' of !ait.tensor<n x f16> is not declared; add it to the dims}}
  %0 = ait.slice %x offsets [n] : !ait.tensor<1 x f16>
}

// -----

ait.graph @split_dim(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.split: dim 2 is out of range for shape [4, 8]}}
  %0 = ait.split %x dim 2 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @split_sum(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.split: sizes [3, 4] do not add up to dim 1 of the input, 8}}
  %0, %1 = ait.split %x dim 1 : !ait.tensor<4 x 3 x f16>, !ait.tensor<4 x 4 x f16>
}

// -----

ait.graph @split_rank(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.split: result 1 has rank 1, but the input has 2}}
  %0, %1 = ait.split %x dim 1 : !ait.tensor<4 x 4 x f16>, !ait.tensor<4 x f16>
}

// -----

ait.graph @split_other(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.split: result 1 is !ait.tensor<2 x 4 x f16>, expected !ait.tensor<4 x 4 x f16>}}
  %0, %1 = ait.split %x dim 1 : !ait.tensor<4 x 4 x f16>, !ait.tensor<2 x 4 x f16>
}

// -----

ait.graph @split_nothing(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.split: needs at least one result}}
  "ait.split"(%x) <{dim = 1 : i64}> : (!ait.tensor<4 x 8 x f16>) -> ()
}

// -----

ait.graph @concat_nothing() {
  // expected-error @below {{ait.concat: needs at least one operand}}
  %0 = "ait.concat"() <{dim = 1 : i64}> : () -> !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @concat_element(%x: !ait.tensor<4 x f16>, %y: !ait.tensor<4 x f32>) {
  // expected-error @below {{ait.concat: operand 1 has element type f32, but operand 0 has f16}}
  %0 = ait.concat %x, %y dim 0 : !ait.tensor<8 x f16>
}

// -----

ait.graph @concat_shape(%x: !ait.tensor<4 x 8 x f16>, %y: !ait.tensor<2 x 8 x f16>) {
  // expected-error @below {{ait.concat: operand 1 has shape [2, 8], but operand 0 has [4, 8]; they may differ in dim 1 only}}
  %0 = ait.concat %x, %y dim 1 : !ait.tensor<4 x 16 x f16>
}

// -----

ait.graph @concat_rank_0(%x: !ait.tensor<f16>) {
  // expected-error @below {{ait.concat: dim 0 is out of range for shape []}}
  %0 = ait.concat %x, %x dim 0 : !ait.tensor<2 x f16>
}

// -----

ait.graph @copies_of_nothing() {
  // expected-error @below {{ait.copies: needs at least one operand}}
  "ait.copies"() : () -> ()
}

// -----

ait.graph @copies_of_two_sizes(%x: !ait.tensor<4 x f16>, %y: !ait.tensor<4 x f32>) {
  // expected-error @below {{ait.copies: the elements of operand 1 (f32) have 4 bytes, but those of operand 0 (f16) have 2}}
  %0, %1 = ait.copies %x, %y : !ait.tensor<4 x f16>, !ait.tensor<4 x f32>
}

// -----

ait.graph @copies_type(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.copies: the result is !ait.tensor<2 x f16>, expected !ait.tensor<4 x f16>}}
  %0 = ait.copies %x : !ait.tensor<2 x f16>
}

// -----

ait.graph @concat_size(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.concat: the result is !ait.tensor<7 x f16>, expected !ait.tensor<8 x f16>}}
  %0 = ait.concat %x, %x dim 0 : !ait.tensor<7 x f16>
}
