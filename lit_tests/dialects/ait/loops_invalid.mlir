// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.at: has 1 indices for a tensor of shape [n, 4]}}
    %v = ait.at %a[d0] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.at: index d1 + 1 of dim 1 is not proved to be from 0 to 3; limit it by min and max, or give the value outside by else}}
    %v = ait.at %a[d0, d1 + 1] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.at: index d0 - 1 of dim 0 is not proved to be from 0 to n - 1; limit it by min and max, or give the value outside by else}}
    %v = ait.at %a[d0 - 1, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.at: dim 'd2' of an index is not declared; add it to the dims {...} around it}}
    %v = ait.at %a[d0, d2] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    %v = ait.at %a[d0, d1 floordiv (d0 + 1)] : f32
    // expected-error @below {{ait.at: dim d1 floordiv d0 divides by d0, which is not proved to be at least 1}}
    %w = ait.at %a[d0, d1 floordiv d0] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.loops: the region yields (f16), expected (f32)}}
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.at: the result is f16, expected f32}}
    %v = ait.at %a[d0, d1] : f16
    ait.yield %v : f16
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    %f = ait.constant 1.0 : f32
    // expected-error @below {{ait.at: an index has type f32, expected an integer}}
    %v = ait.at %a[d0, %f] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.index: dim 'd5' of an index is not declared; add it to the dims {...} around it}}
    %v = ait.index (d5) : i64
    %w = ait.at %a[d0, d1] : f32
    ait.yield %w : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.fold: iteration dim 'd1' is declared around the op, too; give it another name}}
    %v = ait.fold max for (d1 = 4) {
      %e = ait.at %a[d0, d1] : f32
      ait.yield %e : f32
    } : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.fold: iteration dim 'k0' is declared twice; give one another name}}
    %v = ait.fold max for (k0 = 4, k0 = 2) {
      %e = ait.at %a[d0, k0] : f32
      ait.yield %e : f32
    } : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.fold: the size d0 of 'k0' depends on iteration dim 'd0'}}
    %v = ait.fold max for (k0 = d0) {
      %e = ait.at %a[k0, d1] : f32
      ait.yield %e : f32
    } : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.fold: the size n - 2 of 'k0' is not proved to be at least 0}}
    %v = ait.fold max for (k0 = n - 2) {
      %e = ait.at %a[k0, d1] : f32
      ait.yield %e : f32
    } : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.fold: dim 'm' of an iteration is not declared; add it to the dims {...} around it}}
    %v = ait.fold max for (k0 = m) {
      %e = ait.at %a[d0, d1] : f32
      ait.yield %e : f32
    } : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.fold: add of i1 has no meaning; convert with ait.cast}}
    %v = ait.fold add for (k0 = 4) {
      %e = ait.at %a[d0, k0] : f32
      %f = ait.compare lt %e, %e : i1
      ait.yield %f : i1
    } : i1
    %w = ait.at %a[d0, d1] : f32
    ait.yield %w : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.fold: argmax needs a value, but n - 1 is not proved to be at least 1}}
    %v, %p = ait.fold argmax for (k0 = n - 1) {
      %e = ait.at %a[k0, d1] : f32
      ait.yield %e : f32
    } : f32, i64
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.fold: the region must end with ait.yield of one value}}
    %v = ait.fold max for (k0 = 4) {
      %e = ait.at %a[d0, k0] : f32
      ait.yield %e, %e : f32, f32
    } : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.loops: ait.yield in the region uses a value from outside of it; make it an operand}}
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.fold: the region must have one block without arguments}}
    %v = ait.fold max for (k0 = 4) {
    ^bb1(%z: f32):
      ait.yield %z : f32
    } : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.fold: the result is i32, expected f32}}
    %v = ait.fold max for (k0 = 4) {
      %e = ait.at %a[d0, k0] : f32
      ait.yield %e : f32
    } : i32
    %w = ait.constant 0.0 : f32
    ait.yield %w : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    // expected-error @below {{ait.fold: max has 1 results, not 2}}
    %w, %z = ait.fold max for (k0 = 4) {
      ait.yield %v : f32
    } : f32, i64
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.at: stands outside of the region of ait.loops}}
  %v = ait.at %x[0, 1] : f32
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.index: stands outside of the region of ait.loops}}
  %v = ait.index (n) : i64
}

// -----

ait.graph @g(%x: !ait.tensor<2 x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.loops: iteration dim 'n' is declared around the op, too; give it another name}}
  %y = ait.loops(%x) for (n = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<2 x 4 x f16>):
    %v = ait.at %a[0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.loops: the region takes (!ait.tensor<n x 4 x f32>), expected (!ait.tensor<n x 4 x f16>): the operands}}
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f32>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.loops: the region yields (f32, f32), expected (f32)}}
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v, %v : f32, f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.loops: the result is !ait.tensor<n x 5 x f16>, expected !ait.tensor<n x 4 x f16>}}
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 5 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.loops: result 1 has size 1 along iteration dim 'd1', but its value depends on 'd1'; give it the size 4}}
  %y, %z = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v, %v : f32, f32
  } : !ait.tensor<n x 4 x f16>, !ait.tensor<n x 1 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<4 x n x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.loops: result 1 has size 1 along iteration dim 'd1', whose size n is not proved to be at least 1}}
  %y, %z = ait.loops(%x) for (d0 = 4, d1 = n) {
  ^bb0(%a: !ait.tensor<4 x n x f16>):
    %v = ait.at %a[d0, d1] : f32
    %c = ait.constant 1.0 : f32
    ait.yield %v, %c : f32, f32
  } : !ait.tensor<4 x n x f16>, !ait.tensor<4 x 1 x f16>
}

// -----

ait.graph @g() {
  // expected-error @below {{ait.loops: needs at least one result}}
  "ait.loops"() <{iterations = #ait.iterations<d0 = 2>}> ({
    "ait.yield"() : () -> ()
  }) : () -> ()
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.loops: the region holds ait_rt.alloc; only elementwise ops, constants, ait.at, ait.fold and ait.index are allowed there}}
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    %w = ait_rt.alloc : !ait_rt.buffer<8 x f16>
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.loops: the region holds ait.softmax; only elementwise ops, constants, ait.at, ait.fold and ait.index are allowed there}}
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    %s = ait.softmax %a dim 1 : !ait.tensor<n x 4 x f16>
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.loops: ait.exp in the region uses a whole tensor; read its elements with ait.at}}
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    %s = ait.exp %a : !ait.tensor<n x 4 x f16>
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.loops: ait.at in the region uses a value from outside of it; make it an operand}}
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    %v = ait.at %x[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{'f16' is a reserved word and cannot name a dim; choose another name}}
  %y = ait.loops(%x) for (d0 = n, f16 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{an iteration dim and its size expected, as in 'i = rows'}}
  %y = ait.loops(%x) for (d0) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.loops: expected 'for (NAME = SIZE, ...)'}}
  %y = ait.loops(%x) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{expected a number, a dim or '(' in a dim expression, found the end of the text}}
    %v = ait.at %a[d0, d1 +] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{expected one of add, mul, max, min, argmax, argmin}}
    %v = ait.fold mean for (k0 = 4) {
      %e = ait.at %a[d0, k0] : f32
      ait.yield %e : f32
    } : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  // expected-error @below {{ait.loops: the nest has 33 dims, at most 32 are allowed}}
  %y = ait.loops() for (d0 = 1, d1 = 1, d2 = 1, d3 = 1, d4 = 1, d5 = 1, d6 = 1, d7 = 1, d8 = 1, d9 = 1, d10 = 1, d11 = 1, d12 = 1, d13 = 1, d14 = 1, d15 = 1, d16 = 1, d17 = 1, d18 = 1, d19 = 1, d20 = 1, d21 = 1, d22 = 1, d23 = 1, d24 = 1, d25 = 1, d26 = 1, d27 = 1, d28 = 1, d29 = 1, d30 = 1, d31 = 1, d32 = 1) {
    %v = ait.constant 1.0 : f32
    ait.yield %v : f32
  } : !ait.tensor<1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x f32>
}

// -----

ait.graph @g(%x: !ait.tensor<n x i8>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = 4) {
  ^bb0(%a: !ait.tensor<n x i8>):
    // expected-error @below {{ait.at: else 128 is no number of type i8}}
    %v = ait.at %a[d0] else 128 : i8
    ait.yield %v : i8
  } : !ait.tensor<4 x i8>
}

// -----

ait.graph @g(%x: !ait.tensor<8 x f32>, %i: !ait.tensor<4 x i64>) {
  %y = ait.loops(%x, %i) for (d0 = 4) {
  ^bb0(%a: !ait.tensor<8 x f32>, %b: !ait.tensor<4 x i64>):
    %k = ait.at %b[d0] : i64
    // expected-error @below {{ait.at: says has 2 errors for 1 values as indices}}
    %v = ait.at %a[%k] says "no {index}", "no {size}" : f32
    ait.yield %v : f32
  } : !ait.tensor<4 x f32>
}

// -----

ait.graph @g(%x: !ait.tensor<8 x f32>, %i: !ait.tensor<4 x i64>) {
  %y = ait.loops(%x, %i) for (d0 = 4) {
  ^bb0(%a: !ait.tensor<8 x f32>, %b: !ait.tensor<4 x i64>):
    %k = ait.at %b[d0] : i64
    // expected-error @below {{ait.at: says has 1 errors for 1 values as indices, and with else none is an error}}
    %v = ait.at %a[%k] else 0.0 says "no {index}" : f32
    ait.yield %v : f32
  } : !ait.tensor<4 x f32>
}

// -----

ait.graph @g() {
  // expected-error @below {{ait.loops: the region must have one block, it has 0}}
  %y = ait.loops() for (d0 = 4) {
  } : !ait.tensor<4 x f16>
}

// -----

ait.graph @g() {
  // expected-error @below {{ait.loops: the region must end with ait.yield}}
  %y = ait.loops() for (d0 = 4) {
  ^bb0:
  } : !ait.tensor<4 x f16>
}

// -----

ait.graph @g(%x: !ait.tensor<n x 4 x f16>) dims {n = 0 to 8} {
  %y = ait.loops(%x) for (d0 = n, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>):
    // expected-error @below {{ait.index: expression is one dim expression, got 0}}
    %i = "ait.index"() <{expression = #ait.shape<>}> : () -> i64
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<n x 4 x f16>
}

// -----

ait.graph @scatter_dims(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<6 x i32>) {
  // expected-error @below {{ait.scatter_loops: dims [2] are not one or more different dims of [9, 4]}}
  %y = ait.scatter_loops add %x dims [2] kept [1] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<9 x 4 x f16>
}

// -----

ait.graph @scatter_kept(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<6 x i32>) {
  // expected-error @below {{ait.scatter_loops: kept [0, 1] must name 1 different iteration dims, one for each other dim}}
  %y = ait.scatter_loops add %x dims [0] kept [0, 1] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<9 x 4 x f16>
}

// -----

ait.graph @scatter_wide(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<6 x i32>) {
  // expected-error @below {{ait.scatter_loops: iteration dim 0, 6, is not proved to fit into dim 1, 4}}
  %y = ait.scatter_loops add %x dims [0] kept [0] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<9 x 4 x f16>
}

// -----

ait.graph @scatter_keys(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<5 x i32>) {
  // expected-error @below {{ait.scatter_loops: the order's keys are !ait.tensor<5 x i32>, expected !ait.tensor<6 x i32>, one for each place}}
  %y = ait.scatter_loops add %x dims [0] kept [1] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<9 x 4 x f16>
}

// -----

ait.graph @scatter_key_type(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<6 x i64>) {
  // expected-error @below {{ait.scatter_loops: the order's keys are !ait.tensor<6 x i64>, expected !ait.tensor<6 x i32>, one for each place}}
  %y = ait.scatter_loops add %x dims [0] kept [1] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<9 x 4 x f16>
}

// -----

ait.graph @scatter_booleans(%x: !ait.tensor<9 x 4 x i1>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<6 x i32>) {
  // expected-error @below {{ait.scatter_loops: cannot add i1; convert with ait.cast before and behind}}
  %y = ait.scatter_loops add %x dims [0] kept [1] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<9 x 4 x i1>
}

// -----

ait.graph @scatter_fold(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<6 x i32>) {
  // expected-error @below {{ait.scatter_loops: the region holds ait.fold; a value is computed from single elements}}
  %y = ait.scatter_loops add %x dims [0] kept [1] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %s = ait.fold add for (k0 = 4) {
      %v = ait.at %a[d0, k0] : f32
      ait.yield %v : f32
    } : f32
    ait.yield %s : f32
  } : !ait.tensor<9 x 4 x f16>
}

// -----

ait.graph @scatter_unordered(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>) {
  // expected-error @below {{ait.scatter_loops: expected 'order' with keys and places}}
  %y = ait.scatter_loops add %x dims [0] kept [1] of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<9 x 4 x f16>
}

// -----

ait.graph @segments_narrow(%x: !ait.tensor<9 x 5 x f16>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<6 x i32>) {
  // expected-error @below {{ait.segment_loops: iteration dim 1, 4, is not proved to be dim 1 of the tensor, 5, whose elements are all written}}
  %y = ait.segment_loops add %x dims [0] kept [1] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<9 x 5 x f16>
}

// -----

ait.graph @then_argument(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<6 x i32>) {
  // expected-error @below {{ait.segment_loops: the region after then must have one block that takes (!ait.tensor<9 x 4 x f16>)}}
  %y = ait.segment_loops add %x dims [0] kept [1] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } then() {
  ^bb0(%s: !ait.tensor<9 x 4 x f32>):
    %r = ait.loops(%s) for (e0 = 9, e1 = 4) { ^bb0(%t: !ait.tensor<9 x 4 x f32>): %u = ait.at %t[e0, e1] : f32 ait.yield %u : f32 } : !ait.tensor<9 x 4 x f16>
    ait.yield %r : !ait.tensor<9 x 4 x f16>
  } : !ait.tensor<9 x 4 x f16>
}

// -----

ait.graph @then_two(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<6 x i32>) {
  // expected-error @below {{ait.segment_loops: the region after then must have one ait.loops of one result, and yield that}}
  %y = ait.segment_loops add %x dims [0] kept [1] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } then() {
  ^bb0(%s: !ait.tensor<9 x 4 x f16>):
    %r = ait.loops(%s) for (e0 = 9, e1 = 4) { ^bb0(%t: !ait.tensor<9 x 4 x f16>): %u = ait.at %t[e0, e1] : f32 ait.yield %u : f32 } : !ait.tensor<9 x 4 x f16>
    %q = ait.tanh %r : !ait.tensor<9 x 4 x f16>
    ait.yield %q : !ait.tensor<9 x 4 x f16>
  } : !ait.tensor<9 x 4 x f16>
}

// -----

ait.graph @then_yields(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<6 x i32>) {
  // expected-error @below {{ait.segment_loops: the region after then must yield its ait.loops, whose operands are the block's arguments}}
  %y = ait.segment_loops add %x dims [0] kept [1] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } then() {
  ^bb0(%s: !ait.tensor<9 x 4 x f16>):
    %r = ait.loops(%s) for (e0 = 9, e1 = 4) { ^bb0(%t: !ait.tensor<9 x 4 x f16>): %u = ait.at %t[e0, e1] : f32 ait.yield %u : f32 } : !ait.tensor<9 x 4 x f16>
    ait.yield %s : !ait.tensor<9 x 4 x f16>
  } : !ait.tensor<9 x 4 x f16>
}

// -----

ait.graph @then_place(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<6 x i32>) {
  // expected-error @below {{ait.segment_loops: after then the result is read at another index than its own}}
  %y = ait.segment_loops add %x dims [0] kept [1] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } then() {
  ^bb0(%s: !ait.tensor<9 x 4 x f16>):
    %r = ait.loops(%s) for (e0 = 9, e1 = 4) { ^bb0(%t: !ait.tensor<9 x 4 x f16>): %u = ait.at %t[8 - e0, e1] : f32 ait.yield %u : f32 } : !ait.tensor<9 x 4 x f16>
    ait.yield %r : !ait.tensor<9 x 4 x f16>
  } : !ait.tensor<9 x 4 x f16>
}

// -----

ait.graph @then_dims(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<6 x i32>) {
  // expected-error @below {{ait.segment_loops: after then the iteration dims must be those of [9, 4]}}
  %y = ait.segment_loops add %x dims [0] kept [1] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } then() {
  ^bb0(%s: !ait.tensor<9 x 4 x f16>):
    %r = ait.loops(%s) for (e0 = 9, e1 = 2) { ^bb0(%t: !ait.tensor<9 x 4 x f16>): %u = ait.at %t[e0, e1] : f32 ait.yield %u : f32 } : !ait.tensor<9 x 2 x f16>
    ait.yield %r : !ait.tensor<9 x 2 x f16>
  } : !ait.tensor<9 x 2 x f16>
}

// -----

ait.graph @then_fold(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<6 x i32>) {
  // expected-error @below {{ait.segment_loops: after then an ait.fold cannot stand: elements are computed one by one}}
  %y = ait.segment_loops add %x dims [0] kept [1] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } then() {
  ^bb0(%s: !ait.tensor<9 x 4 x f16>):
    %r = ait.loops(%s) for (e0 = 9, e1 = 4) { ^bb0(%t: !ait.tensor<9 x 4 x f16>): %f = ait.fold add for (k0 = 4) { %u = ait.at %t[e0, k0] : f32 ait.yield %u : f32 } : f32 ait.yield %f : f32 } : !ait.tensor<9 x 4 x f16>
    ait.yield %r : !ait.tensor<9 x 4 x f16>
  } : !ait.tensor<9 x 4 x f16>
}

// -----

ait.graph @then_once(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>, %k: !ait.tensor<6 x i32>) {
  // expected-error @below {{ait.segment_loops: after then the result must have the size of each iteration dim}}
  %y = ait.segment_loops add %x dims [0] kept [1] order %k, %k of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } then() {
  ^bb0(%s: !ait.tensor<9 x 4 x f16>):
    %r = ait.loops(%s) for (e0 = 9, e1 = 4) { ^bb0(%t: !ait.tensor<9 x 4 x f16>): %u = ait.constant 1.0 : f32 ait.yield %u : f32 } : !ait.tensor<9 x 1 x f16>
    ait.yield %r : !ait.tensor<9 x 1 x f16>
  } : !ait.tensor<9 x 1 x f16>
}
