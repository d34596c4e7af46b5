// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @shapes(%a: !ait.tensor<b x 8 x f16>, %b: !ait.tensor<s x 8 x f16>) dims {b = 1 to 4, s = 1 to 4} {
  // expected-error @below {{ait.add: dim 0 of rhs is s, but lhs has b there (shapes [b, 8], [s, 8])}}
  %0 = ait.add %a, %b : !ait.tensor<b x 8 x f16>
}

// -----

// A named dim never broadcasts, not even one that may be 1.
ait.graph @named_one(%a: !ait.tensor<b x f16>, %b: !ait.tensor<4 x f16>) dims {b = 1 to 1000} {
  // expected-error @below {{ait.mul: dim 0 of rhs is 4, but lhs has b there}}
  %0 = ait.mul %a, %b : !ait.tensor<4 x f16>
}

// -----

ait.graph @result_shape(%a: !ait.tensor<b x 8 x f16>, %b: !ait.tensor<8 x f16>) dims {b = 1 to 4} {
  // expected-error @below {{ait.add: the result is !ait.tensor<8 x f16>, expected !ait.tensor<b x 8 x f16>}}
  %0 = ait.add %a, %b : !ait.tensor<8 x f16>
}

// -----

ait.graph @result_element(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.gelu: the result is !ait.tensor<8 x f32>, expected !ait.tensor<8 x f16>}}
  %0 = ait.gelu %a : !ait.tensor<8 x f32>
}

// -----

ait.graph @mixed(%a: !ait.tensor<8 x f16>, %b: !ait.tensor<8 x f32>) {
  // expected-error @below {{ait.add: rhs has element type f32, but lhs has f16}}
  %0 = ait.add %a, %b : !ait.tensor<8 x f16>
}

// -----

ait.graph @integer_gelu(%a: !ait.tensor<8 x i32>) {
  // expected-error @below {{ait.gelu: needs a floating-point type, got i32; convert with ait.cast}}
  %0 = ait.gelu %a : !ait.tensor<8 x i32>
}

// -----

ait.graph @too_many(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{Expected 1 operand, but got 2}}
  %0 = ait.relu %a, %a : !ait.tensor<8 x f16>
}

// -----

ait.graph @predicate(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{expected one of eq, ne, lt, le, gt, ge}}
  %0 = ait.compare below %a, %a : !ait.tensor<8 x i1>
}

// -----

ait.graph @generic_predicate(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.compare: unknown predicate "below"; expected one of eq, ne, lt, le, gt, ge}}
  %0 = "ait.compare"(%a, %a) <{predicate = "below"}> : (!ait.tensor<8 x f16>, !ait.tensor<8 x f16>) -> !ait.tensor<8 x i1>
}

// -----

ait.graph @compare_result(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.compare: the result is !ait.tensor<8 x f16>, expected !ait.tensor<8 x i1>}}
  %0 = ait.compare lt %a, %a : !ait.tensor<8 x f16>
}

// -----

ait.graph @condition(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.where: condition has element type f16, expected i1}}
  %0 = ait.where %a, %a, %a : !ait.tensor<8 x f16>
}

// -----

ait.graph @branches(%c: !ait.tensor<8 x i1>, %a: !ait.tensor<8 x f16>, %b: !ait.tensor<8 x f32>) {
  // expected-error @below {{ait.where: b has element type f32, but a has f16}}
  %0 = ait.where %c, %a, %b : !ait.tensor<8 x f16>
}

// -----

ait.graph @cast_shape(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.cast: the result is !ait.tensor<4 x f32>, expected !ait.tensor<8 x f32>}}
  %0 = ait.cast %a : !ait.tensor<4 x f32>
}

// -----

ait.graph @cast_scalar(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.cast: the result f32 must be a tensor like the input !ait.tensor<8 x f16>}}
  %0 = ait.cast %a : f32
}

// -----

ait.graph @bitcast_narrow(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.bitcast: takes f32, i32, f64, i64, got f16}}
  %0 = ait.bitcast %a : !ait.tensor<8 x i16>
}

// -----

ait.graph @bitcast_bool(%a: !ait.tensor<8 x i1>) {
  // expected-error @below {{ait.bitcast: takes f32, i32, f64, i64, got i1}}
  %0 = ait.bitcast %a : !ait.tensor<8 x f32>
}

// -----

ait.graph @bitcast_width(%a: !ait.tensor<8 x f32>) {
  // expected-error @below {{ait.bitcast: the result is !ait.tensor<8 x i64>, expected !ait.tensor<8 x i32>}}
  %0 = ait.bitcast %a : !ait.tensor<8 x i64>
}

// -----

ait.graph @bitcast_itself(%a: !ait.tensor<8 x f32>) {
  // expected-error @below {{ait.bitcast: the result is !ait.tensor<8 x f32>, expected !ait.tensor<8 x i32>}}
  %0 = ait.bitcast %a : !ait.tensor<8 x f32>
}

// -----

ait.graph @bitcast_shape(%a: !ait.tensor<8 x f32>) {
  // expected-error @below {{ait.bitcast: the result is !ait.tensor<4 x i32>, expected !ait.tensor<8 x i32>}}
  %0 = ait.bitcast %a : !ait.tensor<4 x i32>
}

// -----

ait.graph @bitcast_scalar(%a: !ait.tensor<8 x f32>) {
  // expected-error @below {{ait.bitcast: the result is i32, expected !ait.tensor<8 x i32>}}
  %0 = ait.bitcast %a : i32
}

// -----

ait.graph @block_arguments(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.fused_elementwise: the region takes (f16), expected (f32)}}
  %0 = ait.fused_elementwise(%a) {
  ^bb0(%x: f16):
    ait.yield %x : f16
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @yields(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.fused_elementwise: the region yields (f32, f32), expected (f32)}}
  %0 = ait.fused_elementwise(%a) {
  ^bb0(%x: f32):
    ait.yield %x, %x : f32, f32
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @no_results(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.fused_elementwise: needs at least one result}}
  "ait.fused_elementwise"(%a) ({
  ^bb0(%x: f32):
    ait.yield %x : f32
  }) : (!ait.tensor<8 x f16>) -> ()
}

// -----

ait.graph @no_yield(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.fused_elementwise: the region must end with ait.yield}}
  %0 = ait.fused_elementwise(%a) {
  ^bb0(%x: f32):
    // expected-error @below {{terminates block in single-block region but is not a terminator}}
    %1 = ait.relu %x : f32
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @result_shapes(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.fused_elementwise: result 1 has shape [1], but result 0 has [8]}}
  %0, %1 = ait.fused_elementwise(%a) {
  ^bb0(%x: f32):
    ait.yield %x, %x : f32, f32
  } : !ait.tensor<8 x f16>, !ait.tensor<1 x f16>
}

// -----

ait.graph @operand_too_large(%a: !ait.tensor<8 x f16>, %b: !ait.tensor<2 x 8 x f16>) {
  // expected-error @below {{ait.fused_elementwise: operand 1 has shape [2, 8], of higher rank than [8]}}
  %0 = ait.fused_elementwise(%a, %b) {
  ^bb0(%x: f32, %y: f32):
    ait.yield %x : f32
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @operand_shape(%a: !ait.tensor<8 x f16>, %b: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.fused_elementwise: operand 1 has shape [4], which does not broadcast to [8]: 4 is not 8}}
  %0 = ait.fused_elementwise(%a, %b) {
  ^bb0(%x: f32, %y: f32):
    ait.yield %x : f32
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @other_ops(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.fused_elementwise: the region holds ait.param; only elementwise ops and constants are allowed there}}
  %0 = ait.fused_elementwise(%a) {
  ^bb0(%x: f32):
    %1 = ait.param "w" : !ait.tensor<f32>
    ait.yield %x : f32
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @tensor_inside(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.fused_elementwise: ait.constant in the region makes a tensor; the region works on scalars}}
  %0 = ait.fused_elementwise(%a) {
  ^bb0(%x: f32):
    %1 = ait.constant 1.0 : !ait.tensor<f32>
    ait.yield %x : f32
  } : !ait.tensor<8 x f16>
}

// -----

ait.graph @scalar_and_tensor(%a: !ait.tensor<8 x f32>) {
  // expected-error @below {{ait.fused_elementwise: ait.add in the region uses a value from outside of it}}
  %0 = ait.fused_elementwise(%a) {
  ^bb0(%x: f32):
    // expected-error @below {{ait.add: operands must be all tensors or all scalars, got f32, !ait.tensor<8 x f32>}}
    %1 = ait.add %x, %a : f32
    ait.yield %x : f32
  } : !ait.tensor<8 x f32>
}

// -----

ait.graph @integer_floor(%a: !ait.tensor<8 x i32>) {
  // expected-error @below {{ait.floor: needs a floating-point type, got i32; convert with ait.cast}}
  %0 = ait.floor %a : !ait.tensor<8 x i32>
}

// -----

ait.graph @float_bits(%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.bit_and: needs an integer type, got f16; convert with ait.cast}}
  %0 = ait.bit_and %a, %a : !ait.tensor<8 x f16>
}

// -----

ait.graph @integer_pow(%a: !ait.tensor<8 x i64>) {
  // expected-error @below {{ait.pow: needs a floating-point type, got i64; convert with ait.cast}}
  %0 = ait.pow %a, %a : !ait.tensor<8 x i64>
}

// -----

ait.graph @operand_type() {
  %0 = "ait.constant"() <{value = 1 : i64}> : () -> !ait.tensor<i64>
  %1 = ait.fused_elementwise(%0) {
  ^bb0(%x: i64):
    // expected-error @below {{ait.constant: type index is neither a tensor nor an element type}}
    %z = "ait.constant"() <{value = 1 : i64}> : () -> index
    // expected-error @below {{ait.add: operand type index is neither a tensor nor an element type}}
    %y = "ait.add"(%z, %z) : (index, index) -> i64
    ait.yield %x : i64
  } : !ait.tensor<i64>
}

// -----

ait.graph @clamp_without_bounds(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.clamp: needs a bound: min, max or both}}
  %0 = ait.clamp %x : !ait.tensor<4 x f16>
}

// -----

ait.graph @clamp_booleans(%x: !ait.tensor<4 x i1>) {
  // expected-error @below {{ait.clamp: cannot clamp i1; use ait.where}}
  %0 = ait.clamp %x min 0 : !ait.tensor<4 x i1>
}

// -----

ait.graph @clamp_nan(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.clamp: max nan is no bound; leave it out, or use ait.constant for NaN}}
  %0 = ait.clamp %x min 0 max nan : !ait.tensor<4 x f16>
}

// -----

ait.graph @clamp_integers_at_points(%x: !ait.tensor<4 x i32>) {
  // expected-error @below {{ait.clamp: min 0.5 has a point, but the input is i32}}
  %0 = ait.clamp %x min 0.5 : !ait.tensor<4 x i32>
}

// -----

ait.graph @clamp_below_the_type(%x: !ait.tensor<4 x ui8>) {
  // expected-error @below {{ait.clamp: min -1 does not fit in ui8}}
  %0 = ait.clamp %x min -1 : !ait.tensor<4 x ui8>
}

// -----

ait.graph @clamp_beyond_the_type(%x: !ait.tensor<4 x i8>) {
  // expected-error @below {{ait.clamp: max 128 does not fit in i8}}
  %0 = ait.clamp %x max 128 : !ait.tensor<4 x i8>
}

// -----

ait.graph @clamp_result(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.clamp: the result is !ait.tensor<4 x f32>, expected !ait.tensor<4 x f16>}}
  %0 = ait.clamp %x min 0.0 : !ait.tensor<4 x f32>
}
