// RUN: ait-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{ait.graph: input 'x' is donated, but no output takes its place; write 'in place of %x' at an output, or leave out 'donated'}}
ait.graph @untaken(%x: !ait.tensor<4 x f16> donated) {
  ait.output "y" %x : !ait.tensor<4 x f16>
}

// -----

ait.graph @not_donated(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.output: 'y' takes the place of input 'x', which is not donated; write 'donated' behind its type}}
  ait.output "y" %x in place of %x : !ait.tensor<4 x f16>
}

// -----

ait.graph @no_input(%x: !ait.tensor<4 x f16> donated) {
  %0 = ait.relu %x : !ait.tensor<4 x f16>
  // expected-error @below {{ait.output: 'y' takes the place of a value that is no input of the graph}}
  ait.output "y" %x in place of %0 : !ait.tensor<4 x f16>
}

// -----

ait.graph @type(%x: !ait.tensor<4 x f16> donated, %z: !ait.tensor<5 x f16>) {
  // expected-error @below {{ait.output: 'y' is !ait.tensor<5 x f16>, but input 'x', the place of which it takes, is !ait.tensor<4 x f16>}}
  ait.output "y" %z in place of %x : !ait.tensor<5 x f16>
}

// -----

// expected-error @below {{ait.output: outputs 'y' and 'z' take the place of one input}}
ait.graph @twice(%x: !ait.tensor<4 x f16> donated) {
  ait.output "y" %x in place of %x : !ait.tensor<4 x f16>
  ait.output "z" %x in place of %x : !ait.tensor<4 x f16>
}

// -----

// expected-error @below {{ait.graph: input 'w' is donated, but there is no such input}}
"ait.graph"() <{sym_name = "names", dims = #ait.dims<>, input_names = ["x"], donated_names = ["w"]}> ({
^bb0(%x: !ait.tensor<f16>):
}) : () -> ()

// -----

ait.graph @copy(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.output: allows a copy, but takes the place of no input}}
  "ait.output"(%x) <{output_name = "y", or_copy}> : (!ait.tensor<4 x f16>) -> ()
}

// -----

ait.graph @element(%x: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<1 x 8 x f32>, %p: !ait.tensor<i64>) {
  // expected-error @below {{ait.update_slice: rows are f32, the tensor is f16}}
  %0 = ait.update_slice %x, %r at %p dim 0 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @rows(%x: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<1 x 7 x f16>, %p: !ait.tensor<i64>) {
  // expected-error @below {{ait.update_slice: rows have shape [1, 7], which is not that of the tensor, [4, 8], but for dim 0}}
  %0 = ait.update_slice %x, %r at %p dim 0 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @rank(%x: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<8 x f16>, %p: !ait.tensor<i64>) {
  // expected-error @below {{ait.update_slice: rows have shape [8], which is not that of the tensor, [4, 8], but for dim 0}}
  %0 = ait.update_slice %x, %r at %p dim 0 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @room(%x: !ait.tensor<n x 8 x f16>, %r: !ait.tensor<2 x 8 x f16>, %p: !ait.tensor<i64>) dims {n = 0 to 1} {
  // expected-error @below {{ait.update_slice: 2 rows do not fit into dim 0, which is n}}
  %0 = ait.update_slice %x, %r at %p dim 0 : !ait.tensor<n x 8 x f16>
}

// -----

ait.graph @position(%x: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<1 x 8 x f16>, %p: !ait.tensor<f32>) {
  // expected-error @below {{ait.update_slice: the position must be i32 or i64, got f32}}
  %0 = ait.update_slice %x, %r at %p dim 0 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @places(%x: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<2 x 8 x f16>, %p: !ait.tensor<3 x i64>) {
  // expected-error @below {{ait.update_slice: the position must be of rank 0 or have the shape [2], a place for each row; got [3]}}
  %0 = ait.update_slice %x, %r at %p dim 0 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @axis(%x: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<1 x 8 x f16>, %p: !ait.tensor<i64>) {
  // expected-error @below {{ait.update_slice: dim 2 of a tensor with 2 dims}}
  %0 = ait.update_slice %x, %r at %p dim 2 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @result(%x: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<1 x 8 x f16>, %p: !ait.tensor<i64>) {
  // expected-error @below {{ait.update_slice: the result is !ait.tensor<1 x 8 x f16>, expected !ait.tensor<4 x 8 x f16>}}
  %0 = ait.update_slice %x, %r at %p dim 0 : !ait.tensor<1 x 8 x f16>
}
