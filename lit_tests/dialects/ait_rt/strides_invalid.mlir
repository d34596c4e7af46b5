// RUN: ait-opt %s -p verify-plan --split-input-file --verify-diagnostics

ait_rt.program @half arena (0) {
  // expected-error @below {{ait_rt.input: shape and strides are given together}}
  %x = ait_rt.input "x" shape [4, 8] : !ait_rt.buffer<32 x f32>
}

// -----

ait_rt.program @size arena (0) {
  // expected-error @below {{ait_rt.input: 'x' is !ait_rt.buffer<64 x f32>, but its strides need [56]}}
  %x = ait_rt.input "x" shape [4, 8] strides [16, 1] : !ait_rt.buffer<64 x f32>
}

// -----

ait_rt.program @overlap arena (0) {
  // expected-error @below {{ait_rt.output: strides [4, 1] of 'y' are not proved to give each element of !ait.tensor<4 x 8 x f32> a place of its own}}
  %y = ait_rt.output "y" shape [4, 8] strides [4, 1] : !ait_rt.buffer<20 x f32>
}

// -----

ait_rt.program @undeclared arena (0) {
  // expected-error @below {{dim 'n' of}}
  %x = ait_rt.input "x" shape [n, 8] strides [16, 1] : !ait_rt.buffer<56 x f32>
}
