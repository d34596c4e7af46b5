// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @rank(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.resize: x and the result are [batch, 1 to 3 spatial dims, channels], got [4, 8] and [4, 8]}}
  %0 = ait.resize linear %x : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @ranks(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.resize: x and the result are [batch, 1 to 3 spatial dims, channels], got [1, 4, 8] and [1, 4, 4, 8]}}
  %0 = ait.resize linear %x : !ait.tensor<1 x 4 x 4 x 8 x f16>
}

// -----

ait.graph @integers(%x: !ait.tensor<1 x 4 x 8 x i32>) {
  // expected-error @below {{ait.resize: linear needs a floating-point type, got i32; convert with ait.cast}}
  %0 = ait.resize linear %x : !ait.tensor<1 x 4 x 8 x i32>
}

// -----

ait.graph @corners(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.resize: align_corners is for linear and cubic, not for nearest}}
  %0 = ait.resize nearest %x align_corners : !ait.tensor<1 x 4 x 8 x f16>
}

// -----

ait.graph @scales(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.resize: scales are [1.0, 2.0], expected 1 numbers above 0, or 0 where the sizes say it}}
  %0 = ait.resize nearest %x scales [1.0, 2.0] : !ait.tensor<1 x 4 x 8 x f16>
}

// -----

ait.graph @infinite(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.resize: scales are [inf], expected 1 numbers above 0, or 0 where the sizes say it}}
  %0 = ait.resize nearest %x scales [inf] : !ait.tensor<1 x 4 x 8 x f16>
}

// -----

ait.graph @empty(%x: !ait.tensor<1 x 0 x 8 x f16>) {
  // expected-error @below {{ait.resize: spatial dim 0 of x is 0, expected it to be proved at least 1}}
  %0 = ait.resize nearest %x : !ait.tensor<1 x 4 x 8 x f16>
}

// -----

ait.graph @channels(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.resize: the result is !ait.tensor<1 x 4 x 4 x f16>, expected !ait.tensor<1 x 4 x 8 x f16>}}
  %0 = ait.resize nearest %x : !ait.tensor<1 x 4 x 4 x f16>
}

// -----

ait.graph @mode(%x: !ait.tensor<1 x 4 x 8 x f16>) {
  // expected-error @below {{ait.resize: unknown mode "area"; expected one of nearest, nearest_exact, linear, cubic}}
  %0 = "ait.resize"(%x) <{mode = "area"}> : (!ait.tensor<1 x 4 x 8 x f16>) -> !ait.tensor<1 x 5 x 8 x f16>
}

// -----

ait.graph @grid_rank(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %g: !ait.tensor<1 x 9 x 2 x f16>) {
  // expected-error @below {{ait.grid_sample: x is [N, H, W, C] and the grid [N, OH, OW, 2], got [1, 8, 8, 4] and [1, 9, 2]}}
  %0 = ait.grid_sample linear zeros %x, %g : !ait.tensor<1 x 3 x 3 x 4 x f16>
}

// -----

ait.graph @grid_pairs(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %g: !ait.tensor<1 x 3 x 3 x 3 x f16>) {
  // expected-error @below {{ait.grid_sample: x is [N, H, W, C] and the grid [N, OH, OW, 2], got [1, 8, 8, 4] and [1, 3, 3, 3]}}
  %0 = ait.grid_sample linear zeros %x, %g : !ait.tensor<1 x 3 x 3 x 4 x f16>
}

// -----

ait.graph @grid_type(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %g: !ait.tensor<1 x 3 x 3 x 2 x f32>) {
  // expected-error @below {{ait.grid_sample: needs one floating-point type, got f16 and f32}}
  %0 = ait.grid_sample linear zeros %x, %g : !ait.tensor<1 x 3 x 3 x 4 x f16>
}

// -----

ait.graph @grid_batch(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %g: !ait.tensor<2 x 3 x 3 x 2 x f16>) {
  // expected-error @below {{ait.grid_sample: dim 0 of the grid is 2, but x has 1}}
  %0 = ait.grid_sample linear zeros %x, %g : !ait.tensor<1 x 3 x 3 x 4 x f16>
}

// -----

ait.graph @grid_empty(%x: !ait.tensor<1 x 0 x 8 x 4 x f16>, %g: !ait.tensor<1 x 3 x 3 x 2 x f16>) {
  // expected-error @below {{ait.grid_sample: H and W of x are 0 and 8, expected at least 1}}
  %0 = ait.grid_sample linear zeros %x, %g : !ait.tensor<1 x 3 x 3 x 4 x f16>
}

// -----

ait.graph @grid_mode(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %g: !ait.tensor<1 x 3 x 3 x 2 x f16>) {
  // expected-error @below {{ait.grid_sample: unknown outside "wrap"; expected one of zeros, border, reflection}}
  %0 = "ait.grid_sample"(%x, %g) <{mode = "linear", outside = "wrap"}> : (!ait.tensor<1 x 8 x 8 x 4 x f16>, !ait.tensor<1 x 3 x 3 x 2 x f16>) -> !ait.tensor<1 x 3 x 3 x 4 x f16>
}
