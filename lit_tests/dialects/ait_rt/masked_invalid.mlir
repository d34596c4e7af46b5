// RUN: ait-opt %s -p verify-plan --split-input-file --verify-diagnostics

builtin.module attributes {ait.target = "cuda", ait.arch = "sm_90a"} {
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<n x f32>) dims {b = 1 to 8, n = 0 to b bound} {
    %1 = ait.relu %0 : !ait.tensor<n x f32>
    ait_rt.return %1 : !ait.tensor<n x f32>
  }
  ait_rt.program @type dims {b = 1 to 8, n = 0 to b bound} arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<n x f32>
    %k = ait_rt.input "k" : !ait_rt.buffer<i32>
    %y = ait_rt.output "y" : !ait_rt.buffer<n x f32>
    // expected-error @below {{ait_rt.launch: the value of 'n' is a number of type i64, got !ait_rt.buffer<i32>}}
    ait_rt.launch @relu ins(%x) outs(%y) workspace() masked "n" by %k stream 0
  }
}

// -----

builtin.module attributes {ait.target = "cuda", ait.arch = "sm_90a"} {
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<n x f32>) dims {b = 1 to 8, n = 0 to b bound} {
    %1 = ait.relu %0 : !ait.tensor<n x f32>
    ait_rt.return %1 : !ait.tensor<n x f32>
  }
  ait_rt.program @vector dims {b = 1 to 8, n = 0 to b bound} arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<n x f32>
    %k = ait_rt.input "k" : !ait_rt.buffer<2 x i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<n x f32>
    // expected-error @below {{ait_rt.launch: the value of 'n' is a number of type i64, got !ait_rt.buffer<2 x i64>}}
    ait_rt.launch @relu ins(%x) outs(%y) workspace() masked "n" by %k stream 0
  }
}

// -----

builtin.module attributes {ait.target = "cuda", ait.arch = "sm_90a"} {
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<n x f32>) dims {b = 1 to 8, n = 0 to b bound} {
    %1 = ait.relu %0 : !ait.tensor<n x f32>
    ait_rt.return %1 : !ait.tensor<n x f32>
  }
  ait_rt.program @dim dims {b = 1 to 8, n = 0 to b bound} arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<n x f32>
    %k = ait_rt.input "k" : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<n x f32>
    // expected-error @below {{ait_rt.launch: 'b' is no dim that an op binds; declare it as 'b = 0 to MOST bound'}}
    ait_rt.launch @relu ins(%x) outs(%y) workspace() masked "b" by %k stream 0
  }
}

// -----

builtin.module attributes {ait.target = "cuda", ait.arch = "sm_90a"} {
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<n x f32>) dims {b = 1 to 8, n = 0 to b bound} {
    %1 = ait.relu %0 : !ait.tensor<n x f32>
    ait_rt.return %1 : !ait.tensor<n x f32>
  }
  ait_rt.program @half dims {b = 1 to 8, n = 0 to b bound} arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<n x f32>
    %k = ait_rt.input "k" : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<n x f32>
    // expected-error @below {{ait_rt.launch: 'masked "DIM"' and 'by %n' belong together: which dim, and where its value lies}}
    ait_rt.launch @relu ins(%x) outs(%y) workspace() masked "n" stream 0
  }
}

// -----

builtin.module attributes {ait.target = "cuda", ait.arch = "sm_90a"} {
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<3 x n x f32>) dims {b = 1 to 8, n = 0 to b bound} {
    %1 = ait.relu %0 : !ait.tensor<3 x n x f32>
    ait_rt.return %1 : !ait.tensor<3 x n x f32>
  }
  ait_rt.program @inner dims {b = 1 to 8, n = 0 to b bound} arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<3 x n x f32>
    %k = ait_rt.input "k" : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<3 x n x f32>
    // expected-error @below {{ait_rt.launch: @relu cannot be masked: an inner dim or a stride of !ait_rt.buffer<3 x n x f32> depends on 'n'}}
    ait_rt.launch @relu ins(%x) outs(%y) workspace() masked "n" by %k stream 0
  }
}

// -----

builtin.module attributes {ait.target = "cuda", ait.arch = "sm_90a"} {
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<2*n x f32>) dims {b = 1 to 8, n = 0 to b bound} {
    %1 = ait.relu %0 : !ait.tensor<2*n x f32>
    ait_rt.return %1 : !ait.tensor<2*n x f32>
  }
  ait_rt.program @multiple dims {b = 1 to 8, n = 0 to b bound} arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<2*n x f32>
    %k = ait_rt.input "k" : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<2*n x f32>
    // expected-error @below {{ait_rt.launch: @relu cannot be masked: the leading dim of !ait_rt.buffer<(2*n) x f32> is not 'n'}}
    ait_rt.launch @relu ins(%x) outs(%y) workspace() masked "n" by %k stream 0
  }
}

// -----

builtin.module attributes {ait.target = "cpu", ait.arch = "native"} {
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<n x f32>) dims {b = 1 to 8, n = 0 to b bound} {
    %1 = ait.relu %0 : !ait.tensor<n x f32>
    ait_rt.return %1 : !ait.tensor<n x f32>
  }
  ait_rt.program @cpu dims {b = 1 to 8, n = 0 to b bound} arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<n x f32>
    %k = ait_rt.input "k" : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<n x f32>
    // expected-error @below {{ait_rt.launch: @relu cannot read dim 'n' from memory; let the host wait: ait_rt.read_dim}}
    ait_rt.launch @relu ins(%x) outs(%y) workspace() masked "n" by %k stream 0
  }
}

// -----

builtin.module attributes {ait.target = "cuda", ait.arch = "sm_90a"} {
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<n x f32>) dims {b = 1 to 8, n = 0 to b bound} {
    %1 = ait.relu %0 : !ait.tensor<n x f32>
    ait_rt.return %1 : !ait.tensor<n x f32>
  }
  ait_rt.program @unwritten dims {b = 1 to 8, n = 0 to b bound} arena (64) {
    %x = ait_rt.input "x" : !ait_rt.buffer<n x f32>
    %k = ait_rt.alloc at (0) : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<n x f32>
    // expected-error @below {{ait_rt.launch: reads %k, which nothing has written yet}}
    ait_rt.launch @relu ins(%x) outs(%y) workspace() masked "n" by %k stream 0
  }
}

// -----

builtin.module attributes {ait.target = "cuda", ait.arch = "sm_90a"} {
  ait_rt.kernel @abs "native" {} (%0: !ait.tensor<i64>) dims {b = 1 to 8, n = 0 to b bound} {
    %1 = ait.abs %0 : !ait.tensor<i64>
    ait_rt.return %1 : !ait.tensor<i64>
  }
  ait_rt.program @unled dims {b = 1 to 8, n = 0 to b bound} arena (0) {
    %k = ait_rt.input "k" : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<i64>
    // expected-error @below {{ait_rt.launch: @abs cannot be masked: the leading dim of !ait_rt.buffer<i64> is not 'n'}}
    ait_rt.launch @abs ins(%k) outs(%y) workspace() masked "n" by %k stream 0
  }
}
