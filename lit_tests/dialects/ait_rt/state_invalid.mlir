// RUN: ait-opt %s -p verify-plan --split-input-file --verify-diagnostics

// expected-error @below {{ait_rt.program: input 'k' is donated, and 0 outputs take its place, expected 1}}
ait_rt.program @untaken arena (0) {
  %k = ait_rt.input "k" donated : !ait_rt.buffer<8 x f16>
}

// -----

// expected-error @below {{ait_rt.program: input 'k' is donated, and 2 outputs take its place, expected 1}}
ait_rt.program @twice arena (0) {
  %k = ait_rt.input "k" donated : !ait_rt.buffer<8 x f16>
  %a = ait_rt.output "a" in place of %k : !ait_rt.buffer<8 x f16>
  %b = ait_rt.output "b" in place of %k : !ait_rt.buffer<8 x f16>
}

// -----

ait_rt.program @input arena (0) {
  %k = ait_rt.input "k" : !ait_rt.buffer<8 x f16>
  // expected-error @below {{ait_rt.output: 'a' takes the place of what is no donated input}}
  %a = ait_rt.output "a" in place of %k : !ait_rt.buffer<8 x f16>
}

// -----

ait_rt.program @type arena (0) {
  %k = ait_rt.input "k" donated : !ait_rt.buffer<8 x f16>
  // expected-error @below {{ait_rt.output: 'a' is !ait_rt.buffer<4 x f16>, but input 'k', the place of which it takes, is !ait_rt.buffer<8 x f16>}}
  %a = ait_rt.output "a" in place of %k : !ait_rt.buffer<4 x f16>
}

// -----

ait_rt.program @used arena (0) {
  %k = ait_rt.input "k" donated : !ait_rt.buffer<8 x f16>
  %x = ait_rt.input "x" : !ait_rt.buffer<8 x f16>
  // expected-error @below {{ait_rt.output: 'a' is used; use the input the place of which it takes}}
  %a = ait_rt.output "a" in place of %k : !ait_rt.buffer<8 x f16>
  ait_rt.copy %x to %a
}

// -----

builtin.module attributes {ait.target = "cpu", ait.arch = "native"} {
  ait_rt.kernel @update "native" {} (%0: !ait.tensor<8 x 4 x f32>, %1: !ait.tensor<1 x 4 x f32>, %2: !ait.tensor<i64>) {
    %3 = ait.update_slice %0, %1 at %2 dim 0 : !ait.tensor<8 x 4 x f32>
    ait_rt.return %3 : !ait.tensor<8 x 4 x f32>
  }
  ait_rt.program @elsewhere arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<8 x 4 x f32>
    %r = ait_rt.input "r" : !ait_rt.buffer<1 x 4 x f32>
    %p = ait_rt.input "p" : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<8 x 4 x f32>
    // expected-error @below {{ait_rt.launch: @update updates operand 0, so its result must be the same buffer}}
    ait_rt.launch @update ins(%x, %r, %p) outs(%y) workspace() stream 0
  }
}

// -----

builtin.module attributes {ait.target = "cpu", ait.arch = "native"} {
  ait_rt.kernel @update "native" {} (%0: !ait.tensor<8 x 4 x f32>, %1: !ait.tensor<1 x 4 x f32>, %2: !ait.tensor<i64>) {
    %3 = ait.update_slice %0, %1 at %2 dim 0 : !ait.tensor<8 x 4 x f32>
    ait_rt.return %3 : !ait.tensor<8 x 4 x f32>
  }
  ait_rt.program @rows arena (0) {
    %x = ait_rt.input "x" donated : !ait_rt.buffer<8 x 4 x f32>
    %p = ait_rt.input "p" : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" in place of %x : !ait_rt.buffer<8 x 4 x f32>
    %r = ait_rt.view %x offset (4) strides [4, 1] : !ait_rt.buffer<1 x 4 x f32>
    // expected-error @below {{ait_rt.launch: @update writes input 'x' over an operand}}
    ait_rt.launch @update ins(%x, %r, %p) outs(%x) workspace() stream 0
  }
}
