// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @rank(%x: !ait.tensor<4 x 8 x 8 x f16>, %w: !ait.tensor<4 x 3 x 3 x 8 x f16>) {
  // expected-error @below {{ait.conv: x [N, sizes..., Cin] and the weight [Cout, taps..., Cin / groups] have one to three sizes, got [4, 8, 8] and [4, 3, 3, 8]}}
  %0 = ait.conv %x, %w : !ait.tensor<4 x 6 x 6 x 4 x f16>
}

// -----

ait.graph @types(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %w: !ait.tensor<4 x 3 x 3 x 4 x f32>) {
  // expected-error @below {{ait.conv: the weight has element type f32, but x has f16}}
  %0 = ait.conv %x, %w : !ait.tensor<1 x 6 x 6 x 4 x f16>
}

// -----

ait.graph @integers(%x: !ait.tensor<1 x 8 x 8 x 4 x i32>, %w: !ait.tensor<4 x 3 x 3 x 4 x i32>) {
  // expected-error @below {{ait.conv: needs a floating-point type, or integers of 8 bits, got i32}}
  %0 = ait.conv %x, %w : !ait.tensor<1 x 6 x 6 x 4 x i32>
}

// -----

ait.graph @stride(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %w: !ait.tensor<4 x 3 x 3 x 4 x f16>) {
  // expected-error @below {{ait.conv: stride is [0, 1], expected 2 numbers, each at least 1}}
  %0 = ait.conv %x, %w stride [0, 1] : !ait.tensor<1 x 6 x 6 x 4 x f16>
}

// -----

ait.graph @pad(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %w: !ait.tensor<4 x 3 x 3 x 4 x f16>) {
  // expected-error @below {{ait.conv: pad is [1, 1, 1], expected 2 or 4 numbers, each at least 0}}
  %0 = ait.conv %x, %w pad [1, 1, 1] : !ait.tensor<1 x 8 x 8 x 4 x f16>
}

// -----

ait.graph @negative_pad(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %w: !ait.tensor<4 x 3 x 3 x 4 x f16>) {
  // expected-error @below {{ait.conv: pad is [-1, 0], expected 2 or 4 numbers, each at least 0}}
  %0 = ait.conv %x, %w pad [-1, 0] : !ait.tensor<1 x 4 x 6 x 4 x f16>
}

// -----

ait.graph @groups(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %w: !ait.tensor<4 x 3 x 3 x 4 x f16>) {
  // expected-error @below {{ait.conv: groups is 3, expected a divisor of 4, the channels of the result}}
  %0 = ait.conv %x, %w groups 3 : !ait.tensor<1 x 6 x 6 x 4 x f16>
}

// -----

ait.graph @channels(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %w: !ait.tensor<4 x 3 x 3 x 4 x f16>) {
  // expected-error @below {{ait.conv: x has 4 channels, but the weight is for 4 in each of 2 groups (shapes [1, 8, 8, 4] and [4, 3, 3, 4])}}
  %0 = ait.conv %x, %w groups 2 : !ait.tensor<1 x 6 x 6 x 4 x f16>
}

// -----

ait.graph @window(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %w: !ait.tensor<4 x h x 3 x 4 x f16>) dims {h = 1 to 4} {
  // expected-error @below {{ait.conv: the height of the weight is h, expected a number, at least 1}}
  %0 = ait.conv %x, %w : !ait.tensor<1 x 6 x 6 x 4 x f16>
}

// -----

ait.graph @too_wide(%x: !ait.tensor<1 x 8 x s x 4 x f16>, %w: !ait.tensor<4 x 3 x 3 x 4 x f16>) dims {s = 1 to 9} {
  // expected-error @below {{ait.conv: the window reaches over 5 along width, where x with its pad has s + 2}}
  %0 = ait.conv %x, %w pad [0, 1] dilation [1, 2] : !ait.tensor<1 x 6 x (s - 2) x 4 x f16>
}

// -----

ait.graph @result(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %w: !ait.tensor<4 x 3 x 3 x 4 x f16>) {
  // expected-error @below {{ait.conv: the result is !ait.tensor<1 x 8 x 8 x 4 x f16>, expected !ait.tensor<1 x 6 x 6 x 4 x f16>}}
  %0 = ait.conv %x, %w : !ait.tensor<1 x 8 x 8 x 4 x f16>
}

// -----

ait.graph @epilogue(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %w: !ait.tensor<4 x 3 x 3 x 4 x f16>, %v: !ait.tensor<6 x f16>) {
  // expected-error @below {{ait.conv: epilogue operand 0 has shape [6], which does not broadcast to [1, 6, 6, 4]: 6 is not 4}}
  %0 = ait.conv %x, %w epilogue(%v) {
  ^bb0(%acc: f32, %b: f32):
    %s = ait.add %acc, %b : f32
    ait.yield %s : f32
  } : !ait.tensor<1 x 6 x 6 x 4 x f16>
}

// -----

ait.graph @ranks(%x: !ait.tensor<4 x 8 x f16>, %w: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{have one to three sizes, got [4, 8] and [4, 8]}}
  %0 = ait.conv %x, %w : !ait.tensor<4 x 4 x f16>
}

// -----

ait.graph @output_pad(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %w: !ait.tensor<4 x 3 x 3 x 4 x f16>) {
  // expected-error @below {{ait.conv: output_pad is of transposed convolutions; write pad}}
  %0 = ait.conv %x, %w output_pad [1, 1] : !ait.tensor<1 x 6 x 6 x 4 x f16>
}

// -----

ait.graph @wide_output_pad(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %w: !ait.tensor<4 x 3 x 3 x 4 x f16>) {
  // expected-error @below {{ait.conv: output_pad is 2, expected less than stride or dilation, 2}}
  %0 = ait.conv %x, %w transposed stride [2, 2] output_pad [1, 2] : !ait.tensor<1 x 18 x 19 x 4 x f16>
}

// -----

ait.graph @nothing(%x: !ait.tensor<1 x h x 8 x 4 x f16>, %w: !ait.tensor<4 x 3 x 3 x 4 x f16>) dims {h = 0 to 4} {
  // expected-error @below {{ait.conv: the result has h - 2 places along height, which may be fewer than none}}
  %0 = ait.conv %x, %w transposed pad [2, 2] : !ait.tensor<1 x (h - 2) x 6 x 4 x f16>
}

// -----

ait.graph @too_many(%x: !ait.tensor<1 x 8 x 8 x 4 x f16>, %w: !ait.tensor<4 x 3 x 3 x 4 x f16>) {
  // expected-error @below {{ait.conv: has 4 results, expected 1 to 3}}
  %0, %1, %2, %3 = ait.conv %x, %w epilogue() {
  ^bb0(%acc: f32):
    ait.yield %acc, %acc, %acc, %acc : f32, f32, f32, f32
  } : !ait.tensor<1 x 6 x 6 x 4 x f16>, !ait.tensor<1 x 6 x 6 x 4 x f16>, !ait.tensor<1 x 6 x 6 x 4 x f16>, !ait.tensor<1 x 6 x 6 x 4 x f16>
}
