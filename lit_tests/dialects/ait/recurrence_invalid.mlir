// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @g(%w: !ait.tensor<8 x 8 x f16>, %h0: !ait.tensor<b x 8 x f16>, %c0: !ait.tensor<b x 8 x f16>, %x: !ait.tensor<seq x b x 8 x f16>) dims {seq = 0 to 64, b = 1 to 4} {
  // expected-error @below {{ait.recurrence: carries no state; init(...) holds h, then further states}}
  %r = ait.recurrence %w init() with(%x) {
  ^bb0(%g: f32, %now: f32, %h: f32):
    ait.yield %g : f32
  } : !ait.tensor<b x 8 x f16>
}

// -----

ait.graph @g(%w: !ait.tensor<8 x 8 x f16>, %h0: !ait.tensor<b x 8 x f16>, %c0: !ait.tensor<b x 8 x f16>, %x: !ait.tensor<seq x b x 8 x f16>) dims {seq = 0 to 64, b = 1 to 4} {
  // expected-error @below {{ait.recurrence: has no inputs; the first one of with(...) has the number of steps}}
  %r = ait.recurrence %w init(%h0) with() {
  ^bb0(%g: f32, %now: f32, %h: f32):
    ait.yield %g : f32
  } : !ait.tensor<b x 8 x f16>
}

// -----

ait.graph @g(%w: !ait.tensor<8 x 8 x f16>, %h0: !ait.tensor<b x 8 x i32>, %c0: !ait.tensor<b x 8 x f16>, %x: !ait.tensor<seq x b x 8 x f16>) dims {seq = 0 to 64, b = 1 to 4} {
  // expected-error @below {{ait.recurrence: state 0 is !ait.tensor<b x 8 x i32>, expected [B, H] of floats}}
  %r = ait.recurrence %w init(%h0) with(%x) {
  ^bb0(%g: f32, %now: f32, %h: f32):
    ait.yield %g : f32
  } : !ait.tensor<b x 8 x i32>
}

// -----

ait.graph @g(%w: !ait.tensor<8 x 8 x f16>, %h0: !ait.tensor<b x 8 x f16>, %c0: !ait.tensor<b x 9 x f16>, %x: !ait.tensor<seq x b x 8 x f16>) dims {seq = 0 to 64, b = 1 to 4} {
  // expected-error @below {{ait.recurrence: state 1 has shape [b, 9], state 0 has [b, 8]}}
  %r, %s = ait.recurrence %w init(%h0, %c0) with(%x) {
  ^bb0(%g: f32, %now: f32, %h: f32, %c: f32):
    ait.yield %g, %c : f32, f32
  } : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 9 x f16>
}

// -----

ait.graph @g(%w: !ait.tensor<8 x 8 x f16>, %h0: !ait.tensor<b x 8 x f16>, %c0: !ait.tensor<b x 8 x f16>, %x: !ait.tensor<seq x 8 x f16>) dims {seq = 0 to 64, b = 1 to 4} {
  // expected-error @below {{ait.recurrence: input 0 has rank 2, expected 3: steps, rows, columns}}
  %r = ait.recurrence %w init(%h0) with(%x) {
  ^bb0(%g: f32, %now: f32, %h: f32):
    ait.yield %g : f32
  } : !ait.tensor<b x 8 x f16>
}

// -----

ait.graph @g(%w: !ait.tensor<8 x 8 x f16>, %h0: !ait.tensor<b x 8 x f16>, %c0: !ait.tensor<b x 8 x f16>, %x: !ait.tensor<seq x 3 x 8 x f16>) dims {seq = 0 to 64, b = 1 to 4} {
  // expected-error @below {{ait.recurrence: input 0 has shape [seq, 3, 8], which does not broadcast to [seq, b, 8]: 3 is not b}}
  %r = ait.recurrence %w init(%h0) with(%x) {
  ^bb0(%g: f32, %now: f32, %h: f32):
    ait.yield %g : f32
  } : !ait.tensor<b x 8 x f16>
}

// -----

ait.graph @g(%w: !ait.tensor<8 x 8 x f16>, %h0: !ait.tensor<b x 8 x f16>, %c0: !ait.tensor<b x 8 x f16>, %x: !ait.tensor<seq x b x 8 x f16>) dims {seq = 0 to 64, b = 1 to 4} {
  // expected-error @below {{ait.recurrence: the region takes 2 values, expected at least 3: gates, inputs and states}}
  %r = ait.recurrence %w init(%h0) with(%x) {
  ^bb0(%now: f32, %h: f32):
    ait.yield %h : f32
  } : !ait.tensor<b x 8 x f16>
}

// -----

ait.graph @g(%w: !ait.tensor<9 x 8 x f16>, %h0: !ait.tensor<b x 8 x f16>, %c0: !ait.tensor<b x 8 x f16>, %x: !ait.tensor<seq x b x 8 x f16>) dims {seq = 0 to 64, b = 1 to 4} {
  // expected-error @below {{ait.recurrence: the weight has shape [9, 8], expected [8, 8] for 1 gates}}
  %r = ait.recurrence %w init(%h0) with(%x) {
  ^bb0(%g: f32, %now: f32, %h: f32):
    ait.yield %g : f32
  } : !ait.tensor<b x 8 x f16>
}

// -----

ait.graph @g(%w: !ait.tensor<8 x 8 x f32>, %h0: !ait.tensor<b x 8 x f16>, %c0: !ait.tensor<b x 8 x f16>, %x: !ait.tensor<seq x b x 8 x f16>) dims {seq = 0 to 64, b = 1 to 4} {
  // expected-error @below {{ait.recurrence: the weight has element type f32, but state 0 has f16}}
  %r = ait.recurrence %w init(%h0) with(%x) {
  ^bb0(%g: f32, %now: f32, %h: f32):
    ait.yield %g : f32
  } : !ait.tensor<b x 8 x f16>
}

// -----

ait.graph @g(%w: !ait.tensor<8 x 8 x f16>, %h0: !ait.tensor<b x 8 x f16>, %c0: !ait.tensor<b x 8 x f16>, %x: !ait.tensor<seq x b x 8 x f16>) dims {seq = 0 to 64, b = 1 to 4} {
  // expected-error @below {{ait.recurrence: the region takes (f32, i1, f32), expected (f32, f32, f32)}}
  %r = ait.recurrence %w init(%h0) with(%x) {
  ^bb0(%g: f32, %now: i1, %h: f32):
    ait.yield %g : f32
  } : !ait.tensor<b x 8 x f16>
}

// -----

ait.graph @g(%w: !ait.tensor<8 x 8 x f16>, %h0: !ait.tensor<b x 8 x f16>, %c0: !ait.tensor<b x 8 x f16>, %x: !ait.tensor<seq x b x 8 x f16>) dims {seq = 0 to 64, b = 1 to 4} {
  // expected-error @below {{ait.recurrence: the region yields (f32, f32), expected (f32)}}
  %r = ait.recurrence %w init(%h0) with(%x) {
  ^bb0(%g: f32, %now: f32, %h: f32):
    ait.yield %g, %g : f32, f32
  } : !ait.tensor<b x 8 x f16>
}

// -----

ait.graph @g(%w: !ait.tensor<8 x 8 x f16>, %h0: !ait.tensor<b x 8 x f16>, %c0: !ait.tensor<b x 8 x f16>, %x: !ait.tensor<seq x b x 8 x f16>) dims {seq = 0 to 64, b = 1 to 4} {
  // expected-error @below {{ait.recurrence: stacked result 0 has shape [b, 8], expected [seq, b, 8]: steps, rows, columns}}
  %r, %s = ait.recurrence %w init(%h0) with(%x) {
  ^bb0(%g: f32, %now: f32, %h: f32):
    ait.yield %g, %g : f32, f32
  } : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f16>
}
