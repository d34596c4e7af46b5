// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64} {
  // expected-error @below {{ait.scan: scans nothing: its length is that of the tensors it takes slices of}}
  %r = ait.scan init(%h0) dim 0 {
  ^bb0(%h: !ait.tensor<8 x f16>):
    ait.yield %h : !ait.tensor<8 x f16>
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64} {
  // expected-error @below {{ait.scan: dim 2 is out of range for scanned tensor 0, of shape [seq, 8]}}
  %r = ait.scan %x init(%h0) dim 2 {
  ^bb0(%xt: !ait.tensor<8 x f16>, %h: !ait.tensor<8 x f16>):
    ait.yield %h : !ait.tensor<8 x f16>
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %z: !ait.tensor<9 x 8 x f16>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64} {
  // expected-error @below {{ait.scan: scanned tensor 1 has 9 slices, tensor 0 has seq}}
  %r = ait.scan %x, %z init(%h0) dim 0 {
  ^bb0(%xt: !ait.tensor<8 x f16>, %zt: !ait.tensor<8 x f16>, %h: !ait.tensor<8 x f16>):
    ait.yield %h : !ait.tensor<8 x f16>
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64} {
  // expected-error @below {{ait.scan: a step takes (!ait.tensor<1 x 8 x f16>, !ait.tensor<8 x f16>), expected (!ait.tensor<8 x f16>, !ait.tensor<8 x f16>): slices, carried and captured values}}
  %r = ait.scan %x init(%h0) dim 0 {
  ^bb0(%xt: !ait.tensor<1 x 8 x f16>, %h: !ait.tensor<8 x f16>):
    ait.yield %h : !ait.tensor<8 x f16>
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64} {
  // expected-error @below {{ait.scan: a step yields 1 values, but 2 are carried}}
  %r = ait.scan %x init(%h0, %h0) dim 0 {
  ^bb0(%xt: !ait.tensor<8 x f16>, %h: !ait.tensor<8 x f16>, %k: !ait.tensor<8 x f16>):
    ait.yield %h : !ait.tensor<8 x f16>
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64} {
  // expected-error @below {{ait.scan: carried value 0 is !ait.tensor<8 x f16>, a step yields !ait.tensor<8 x f32>: its type may not change}}
  %r = ait.scan %x init(%h0) dim 0 {
  ^bb0(%xt: !ait.tensor<8 x f16>, %h: !ait.tensor<8 x f16>):
    %c = ait.cast %h : !ait.tensor<8 x f32>
    ait.yield %c : !ait.tensor<8 x f32>
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64} {
  // expected-error @below {{ait.scan: result 1 is !ait.tensor<8 x f16>, expected !ait.tensor<seq x 8 x f16>}}
  %r, %s = ait.scan %x init(%h0) dim 0 {
  ^bb0(%xt: !ait.tensor<8 x f16>, %h: !ait.tensor<8 x f16>):
    ait.yield %h, %xt : !ait.tensor<8 x f16>, !ait.tensor<8 x f16>
  } : !ait.tensor<8 x f16>, !ait.tensor<8 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64} {
  // expected-error @below {{ait.scan: slices of stacked result 0 have shape [], too few dims for dim 1}}
  %r, %s = ait.scan %x init(%h0) dim 1 {
  ^bb0(%xt: !ait.tensor<seq x f16>, %h: !ait.tensor<8 x f16>):
    %s = ait.reduce sum %h dims [0] : !ait.tensor<f16>
    ait.yield %h, %s : !ait.tensor<8 x f16>, !ait.tensor<f16>
  } : !ait.tensor<8 x f16>, !ait.tensor<8 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64} {
  // expected-error @below {{ait.scan: the region must end with ait.yield}}
  %r = ait.scan %x init(%h0) dim 0 {
  ^bb0(%xt: !ait.tensor<8 x f16>, %h: !ait.tensor<8 x f16>):
    ait_rt.return %h : !ait.tensor<8 x f16>
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64} {
  // expected-error @below {{ait.scan: ait.exp in a step uses a value from outside of it; capture it by with(...)}}
  %r = ait.scan %x init(%h0) dim 0 {
  ^bb0(%xt: !ait.tensor<8 x f16>, %h: !ait.tensor<8 x f16>):
    %e = ait.exp %h0 : !ait.tensor<8 x f16>
    ait.yield %e : !ait.tensor<8 x f16>
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64} {
  // expected-error @below {{ait.scan: ait.yield in a step uses a value from outside of it; capture it by with(...)}}
  %r = ait.scan %x init(%h0) dim 0 {
  ^bb0(%xt: !ait.tensor<8 x f16>, %h: !ait.tensor<8 x f16>):
    ait.yield %h0 : !ait.tensor<8 x f16>
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64} {
  // expected-error @below {{ait.scan: param 'w' stands in a step; declare it outside and capture it}}
  %r = ait.scan %x init(%h0) dim 0 {
  ^bb0(%xt: !ait.tensor<8 x f16>, %h: !ait.tensor<8 x f16>):
    %w = ait.param "w" : !ait.tensor<8 x f16>
    ait.yield %w : !ait.tensor<8 x f16>
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64} {
  // expected-error @below {{ait.scan: a step holds ait_rt.alloc; only ops on tensors are allowed there}}
  %r = ait.scan %x init(%h0) dim 0 {
  ^bb0(%xt: !ait.tensor<8 x f16>, %h: !ait.tensor<8 x f16>):
    %a = ait_rt.alloc : !ait_rt.buffer<8 x f16>
    ait.yield %h : !ait.tensor<8 x f16>
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64} {
  // expected-error @below {{ait.scan: ait.constant in a step works on scalars; a step works on tensors}}
  %r = ait.scan %x init(%h0) dim 0 {
  ^bb0(%xt: !ait.tensor<8 x f16>, %h: !ait.tensor<8 x f16>):
    %c = ait.constant 1.0 : f32
    ait.yield %h : !ait.tensor<8 x f16>
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<seq x 8 x f16>, %m: !ait.tensor<seq x i1>, %h0: !ait.tensor<8 x f16>) dims {seq = 0 to 64, count = 0 to seq bound} {
  %k, %n = ait.masked_select %x, %m : !ait.tensor<count x 8 x f16>, !ait.tensor<i64>
  // expected-error @below {{ait.scan: !ait.tensor<count x 8 x f16> has dim 'count', which an op binds; a loop needs sizes that the host knows}}
  %r = ait.scan %k init(%h0) dim 0 {
  ^bb0(%xt: !ait.tensor<8 x f16>, %h: !ait.tensor<8 x f16>):
    ait.yield %h : !ait.tensor<8 x f16>
  } : !ait.tensor<8 x f16>
}
