// RUN: ait-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{ait.graph: input 'x' has strides [8], expected 2 of them for !ait.tensor<4 x 8 x f16>}}
ait.graph @rank(%x: !ait.tensor<4 x 8 x f16> strides [8]) {
}

// -----

// expected-error @below {{ait.graph: dim 'p' of the strides of input 'x' is not declared; add it to the dims {...} around it}}
ait.graph @undeclared(%x: !ait.tensor<4 x 8 x f16> strides [p, 1]) {
}

// -----

// expected-error @below {{ait.graph: stride p - 9 of input 'x' is not proved to be at least 0}}
ait.graph @negative(%x: !ait.tensor<4 x 8 x f16> strides [p - 9, 1]) dims {p = 8 to 64} {
}

// -----

// expected-error @below {{ait.graph: strides [p, 1] of input 'x' are not proved to give each element of !ait.tensor<4 x 8 x f16> a place of its own}}
ait.graph @overlap(%x: !ait.tensor<4 x 8 x f16> strides [p, 1]) dims {p = 7 to 64} {
}

// -----

// expected-error @below {{ait.graph: strides [0, 1] of input 'x' are not proved to give each element of !ait.tensor<4 x 8 x f16> a place of its own}}
ait.graph @repeated(%x: !ait.tensor<4 x 8 x f16> strides [0, 1]) {
}

// -----

// expected-error @below {{ait.graph: strides [0] of input 'x' are not proved to give each element of !ait.tensor<4 x f16> a place of its own}}
ait.graph @one_place(%x: !ait.tensor<4 x f16> strides [0]) {
}

// -----

// expected-error @below {{ait.graph: input 'x' is donated and has strides; a donated input is row-major}}
ait.graph @donated(%x: !ait.tensor<4 x 8 x f16> strides [16, 1] donated) {
  ait.output "y" %x in place of %x : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @in_place(%x: !ait.tensor<4 x 8 x f16> donated) {
  // expected-error @below {{ait.output: output 'y' is in place of an input and has strides; such memory is row-major}}
  ait.output "y" %x strides [16, 1] in place of %x : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @of_output(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.output: strides [4, 1] of output 'y' are not proved to give each element of !ait.tensor<4 x 8 x f16> a place of its own}}
  ait.output "y" %x strides [4, 1] : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @bound(%x: !ait.tensor<b x f16>, %m: !ait.tensor<b x i1>) dims {b = 1 to 64, count = 0 to b bound} {
  %y, %n = ait.masked_select %x, %m : !ait.tensor<count x f16>, !ait.tensor<i64>
  // expected-error @below {{ait.output: output 'y' has strides, but !ait.tensor<count x f16> has a dim that an op binds or that is jagged}}
  ait.output "y" %y strides [2] : !ait.tensor<count x f16>
}

// -----

ait.graph @by_bound(%x: !ait.tensor<b x f16>, %m: !ait.tensor<b x i1>) dims {b = 1 to 64, count = 0 to b bound} {
  %y, %n = ait.masked_select %x, %m : !ait.tensor<count x f16>, !ait.tensor<i64>
  // expected-error @below {{ait.output: output 'y' has strides [count] with dim 'count', which an op binds}}
  ait.output "y" %x strides [count] : !ait.tensor<b x f16>
}

// -----

// expected-error @below {{ait.graph: input 'y' has strides, but there is no such input}}
"ait.graph"() <{sym_name = "gone", dims = #ait.dims<>, input_names = ["x"], input_strides = {y = #ait.shape<1>}}> ({
^bb0(%x: !ait.tensor<4 x f16>):
}) : () -> ()

// -----

// expected-error @below {{ait.graph: the strides of input 'x' are unit, expected a shape as in #ait.shape<8*n, 1>}}
"ait.graph"() <{sym_name = "no_shape", dims = #ait.dims<>, input_names = ["x"], input_strides = {x}}> ({
^bb0(%x: !ait.tensor<4 x f16>):
}) : () -> ()
