// RUN: ait-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{ait.graph: two inputs are named 'x'}}
ait.graph @inputs("x" %a: !ait.tensor<f16>, "x" %b: !ait.tensor<f16>) {
}

// -----

// expected-error @below {{ait.graph: two outputs are named 'y'}}
ait.graph @outputs(%a: !ait.tensor<f16>) {
  ait.output "y" %a : !ait.tensor<f16>
  ait.output "y" %a : !ait.tensor<f16>
}

// -----

// expected-error @below {{ait.graph: input 'a' must be a tensor, got f16}}
ait.graph @scalar(%a: f16) {
}

// -----

// expected-error @below {{ait.graph: dim 'n' of !ait.tensor<n x f16> is not declared}}
ait.graph @undeclared(%a: !ait.tensor<n x f16>) dims {b = 1 to 4} {
}

// -----

// expected-error @below {{ait.graph: has 1 inputs, but 2 input names}}
"ait.graph"() <{sym_name = "names", dims = #ait.dims<>, input_names = ["x", "y"]}> ({
^bb0(%x: !ait.tensor<f16>):
}) : () -> ()

// -----

// expected-error @below {{ait.graph: param 'w' has two types, !ait.tensor<4 x f16> and !ait.tensor<5 x f16>}}
ait.graph @param_types() {
  %0 = ait.param "w" : !ait.tensor<4 x f16>
  %1 = ait.param "w" : !ait.tensor<5 x f16>
}

// -----

ait.graph @param_shape() dims {b = 1 to 4} {
  // expected-error @below {{ait.param: param 'w' must have a static shape, got [b]}}
  %0 = ait.param "w" : !ait.tensor<b x f16>
}

// -----

ait.graph @param_name() {
  // expected-error @below {{ait.param: needs a name}}
  %0 = ait.param "" : !ait.tensor<4 x f16>
}

// -----

ait.graph @param_type() {
  // expected-error @below {{f16 should be of base attribute ait.tensor}}
  %0 = "ait.param"() <{param_name = "w"}> : () -> f16
}

// -----

ait.graph @output_name(%a: !ait.tensor<f16>) {
  // expected-error @below {{ait.output: needs a name}}
  ait.output "" %a : !ait.tensor<f16>
}

// -----

ait.graph @output_type(%a: !ait.tensor<f16>) {
  // expected-error @below {{operand is used with type !ait.tensor<f32>, but has been previously used or defined with type !ait.tensor<f16>}}
  ait.output "y" %a : !ait.tensor<f32>
}

// -----

ait.graph @constant_size() {
  // expected-error @below {{ait.constant: 2 numbers cannot fill !ait.tensor<3 x f16>, which has 3 elements}}
  %0 = ait.constant [1.0, 2.0] : !ait.tensor<3 x f16>
}

// -----

ait.graph @constant_dynamic() dims {b = 2 to 2} {
  // expected-error @below {{ait.constant: 2 numbers cannot fill !ait.tensor<b x f16>, which has b elements}}
  %0 = ait.constant [1.0, 2.0] : !ait.tensor<b x f16>
}

// -----

ait.graph @constant_integer() {
  // expected-error @below {{ait.constant: a number with a point cannot be of type i32}}
  %0 = ait.constant 1.0 : !ait.tensor<i32>
}

// -----

ait.graph @constant_above() {
  // expected-error @below {{ait.constant: 256 does not fit in ui8}}
  %0 = ait.constant [255, 256] : !ait.tensor<2 x ui8>
}

// -----

ait.graph @constant_below() {
  // expected-error @below {{ait.constant: -1 does not fit in ui8}}
  %0 = ait.constant -1 : !ait.tensor<ui8>
}

// -----

ait.graph @constant_scalar() {
  // expected-error @below {{ait.constant: needs a tensor type, got f32; scalars stand in the regions of ops only}}
  %0 = ait.constant 1.0 : f32
}

// -----

ait.graph @constant_list() {
  // expected-error @below {{ait.constant: a list needs a tensor type, got f32}}
  %0 = ait.constant [1.0] : f32
}

// -----

ait.graph @constant_type(%a: !ait.tensor<4 x f32>) {
  %0 = ait.fused_elementwise(%a) {
  ^bb0(%x: f32):
    // expected-error @below {{ait.constant: type i7 is neither a tensor nor an element type}}
    %c = ait.constant 1 : i7
    ait.yield %x : f32
  } : !ait.tensor<4 x f32>
}

// -----

// expected-error @below {{empty range}}
ait.graph @empty_range(%a: !ait.tensor<b x f16>) dims {b = 4 to 1} {
}

// -----

// expected-error @below {{dim 'b' is declared twice}}
ait.graph @declared_twice(%a: !ait.tensor<b x f16>) dims {b = 1 to 4, b = 1 to 8} {
}

// -----

// expected-error @below {{has the hint 9 outside its range 1 to 4}}
ait.graph @hint(%a: !ait.tensor<b x f16>) dims {b = 1 to 4 hints [9]} {
}

// -----

// expected-error @below {{element type expected (f16, bf16, f32, f64, i1, i8, i32, i64, ui8, i16, f8E4M3FN, f8E5M2, f8E8M0FNU, i4, ui4)}}
ait.graph @element(%a: !ait.tensor<4 x ui16>) {
}

// -----

// expected-error @below {{a dim cannot be negative: -4}}
ait.graph @negative(%a: !ait.tensor<(-4) x f16>) {
}

// -----

// expected-error @below {{a dim is at most 2^40}}
ait.graph @large_dim(%a: !ait.tensor<1099511627777 x i8>) {
}

// -----

// expected-error @below {{the tensor takes more than 2^48 bytes: [16777216, 16777216, 2]}}
ait.graph @large(%a: !ait.tensor<16777216 x 16777216 x 2 x i8>) {
}

// -----

// expected-error @below {{ait.graph: dim b - 2 of !ait.tensor<(b - 2) x f16> is not proved to be at least 0; it is at least -1}}
ait.graph @negative_range(%a: !ait.tensor<(b - 2) x f16>) dims {b = 1 to 4} {
}

// -----

ait.graph @negative_result(%a: !ait.tensor<1 x f16>) dims {b = 1 to 4} {
  // expected-error @below {{ait.expand: dim b - 2 of !ait.tensor<(b - 2) x f16> is not proved to be at least 0; it is at least -1}}
  %0 = ait.expand %a : !ait.tensor<(b - 2) x f16>
}

// -----

// expected-error @below {{ait.graph: dim 4 floordiv b divides by b, which is not proved to be at least 1}}
ait.graph @divisor(%a: !ait.tensor<(4 floordiv b) x f16>) dims {b = 0 to 4} {
}

// -----

%0 = ait.param "w" : !ait.tensor<8 x f16>
// expected-error @below {{ait.output: stands in the body of an ait.graph only}}
ait.output "y" %0 : !ait.tensor<8 x f16>

// -----

ait.graph @no_value() {
  // expected-error @below {{property 'value' expected in operation 'ait.constant'}}
  %0 = "ait.constant"() <{values = 1 : i64}> : () -> !ait.tensor<i64>
  ait.output "y" %0 : !ait.tensor<i64>
}
