// RUN: ait-opt %s -p verify-plan --split-input-file --verify-diagnostics

ait_rt.program @type dims {b = 1 to 8, n = 0 to b bound} arena (0) {
  %k = ait_rt.input "k" : !ait_rt.buffer<i32>
  // expected-error @below {{ait_rt.read_dim: reads a number of type i64, got !ait_rt.buffer<i32>}}
  ait_rt.read_dim "n" from %k
}

// -----

ait_rt.program @dim dims {b = 1 to 8} arena (0) {
  %k = ait_rt.input "k" : !ait_rt.buffer<i64>
  // expected-error @below {{ait_rt.read_dim: 'b' is no dim that an op binds; declare it as 'b = 0 to MOST bound'}}
  ait_rt.read_dim "b" from %k
}

// -----

ait_rt.program @unwritten dims {b = 1 to 8, n = 0 to b bound} arena (64) {
  %k = ait_rt.alloc at (0) : !ait_rt.buffer<i64>
  // expected-error @below {{ait_rt.read_dim: reads %k, which nothing has written yet}}
  ait_rt.read_dim "n" from %k
}

// -----

ait_rt.kernel @relu "native" {} (%0: !ait.tensor<n x f32>) dims {b = 1 to 8, n = 0 to b bound} {
  %1 = ait.relu %0 : !ait.tensor<n x f32>
  ait_rt.return %1 : !ait.tensor<n x f32>
}
ait_rt.program @unread dims {b = 1 to 8, n = 0 to b bound} arena (0) {
  %x = ait_rt.input "x" : !ait_rt.buffer<n x f32>
  %k = ait_rt.input "k" : !ait_rt.buffer<i64>
  %y = ait_rt.output "y" : !ait_rt.buffer<n x f32>
  // expected-error @below {{ait_rt.launch: uses dim 'n', which no ait_rt.read_dim has read yet}}
  ait_rt.launch @relu ins(%x) outs(%y) workspace() stream 0
  ait_rt.read_dim "n" from %k
}
