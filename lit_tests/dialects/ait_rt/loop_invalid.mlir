// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait_rt.program @taken dims {seq = 0 to 9} arena (0) {
  // expected-error @below {{ait_rt.loop: the induction dim 'seq' is declared around the loop; give it another name}}
  ait_rt.loop seq to (4) {}
}

// -----

ait_rt.program @taken_by_a_loop arena (0) {
  ait_rt.loop i to (4) {
    // expected-error @below {{ait_rt.loop: the induction dim 'i' is declared around the loop; give it another name}}
    ait_rt.loop i to (4) {}
  }
}

// -----

ait_rt.program @reserved arena (0) {
  // expected-error @below {{ait_rt.loop: 'mod' is a reserved word and cannot name a dim; choose another name}}
  ait_rt.loop mod to (4) {}
}

// -----

ait_rt.program @undeclared arena (0) {
  // expected-error @below {{ait_rt.loop: dim 'n' of the length is not declared; add it to the dims {...} around it}}
  ait_rt.loop i to (n) {}
}

// -----

ait_rt.program @negative dims {n = 0 to 4} arena (0) {
  // expected-error @below {{ait_rt.loop: the length n - 1 is not proved to be at least 0}}
  ait_rt.loop i to (n - 1) {}
}

// -----

ait_rt.program @carries_an_output arena (0) {
  %y = ait_rt.output "y" : !ait_rt.buffer<8 x f32>
  // expected-error @below {{ait_rt.loop: carries values between steps in allocations only}}
  ait_rt.loop i to (4) carry(%y) {}
}

// -----

ait_rt.program @holds_an_input arena (0) {
  // expected-error @below {{ait_rt.loop: holds ait_rt.input, which stands outside of loops}}
  ait_rt.loop i to (4) {
    %x = ait_rt.input "x" : !ait_rt.buffer<8 x f32>
  }
}

// -----

ait_rt.program @grows arena (0) {
  // expected-error @below {{ait_rt.loop: !ait_rt.buffer<(i + 1) x f32> has a dim that changes from step to step}}
  ait_rt.loop i to (4) {
    %a = ait_rt.alloc : !ait_rt.buffer<(i + 1) x f32>
  }
}

// -----

ait_rt.program @outside arena (0) {
  %x = ait_rt.input "x" : !ait_rt.buffer<4 x 8 x f32>
  ait_rt.loop i to (4) {}
  // expected-error @below {{ait_rt.view: dim 'i' of the view is not declared; add it to the dims {...} around it}}
  %v = ait_rt.view %x offset (8*i) strides [1] : !ait_rt.buffer<8 x f32>
}
