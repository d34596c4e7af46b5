// RUN: ait-opt %s -p 'select{target="cpu"},bufferize' --split-input-file --verify-diagnostics

ait.graph @read_after(%k: !ait.tensor<8 x 4 x f32> donated, %r: !ait.tensor<1 x 4 x f32>, %p: !ait.tensor<i64>) {
  %new = ait.update_slice %k, %r at %p dim 0 : !ait.tensor<8 x 4 x f32>
  %s = ait.softmax %k dim 1 : !ait.tensor<8 x 4 x f32>
  // expected-error @below {{output 'k' cannot take the place of input 'k': ait.softmax (%s) reads the old value after ait.update_slice (%new) has written the new one; read it before; write 'in place of %k or copy' to allow a copy}}
  ait.output "k" %new in place of %k : !ait.tensor<8 x 4 x f32>
  ait.output "s" %s : !ait.tensor<8 x 4 x f32>
}

// -----

ait.graph @old_output(%k: !ait.tensor<8 x 4 x f32> donated, %r: !ait.tensor<1 x 4 x f32>, %p: !ait.tensor<i64>) {
  %new = ait.update_slice %k, %r at %p dim 0 : !ait.tensor<8 x 4 x f32>
  // expected-error @below {{output 'old' reads the old value after ait.update_slice (%new) has written the new one}}
  ait.output "k" %new in place of %k : !ait.tensor<8 x 4 x f32>
  ait.output "old" %k : !ait.tensor<8 x 4 x f32>
}

// -----

ait.graph @own_rows(%k: !ait.tensor<8 x 4 x f32> donated, %p: !ait.tensor<i64>) {
  %r = ait.slice %k offsets [2, 0] : !ait.tensor<1 x 4 x f32>
  %new = ait.update_slice %k, %r at %p dim 0 : !ait.tensor<8 x 4 x f32>
  // expected-error @below {{ait.update_slice (%new) also reads it as another operand}}
  ait.output "k" %new in place of %k : !ait.tensor<8 x 4 x f32>
}

// -----

ait.graph @elements(%k: !ait.tensor<4 x 4 x f32> donated) {
  %new = ait.softmax %k dim 1 : !ait.tensor<4 x 4 x f32>
  // expected-error @below {{ait.softmax (%new) reads elements of the old value after others have been written}}
  ait.output "k" %new in place of %k : !ait.tensor<4 x 4 x f32>
}

// -----

ait.graph @order(%k: !ait.tensor<4 x 4 x f32> donated) {
  %t = ait.permute %k [1, 0] : !ait.tensor<4 x 4 x f32>
  %new = ait.add %k, %t : !ait.tensor<4 x 4 x f32>
  // expected-error @below {{ait.add (%new) reads the old value in another order than it writes the new one}}
  ait.output "k" %new in place of %k : !ait.tensor<4 x 4 x f32>
}

// -----

ait.graph @later_view(%k: !ait.tensor<4 x 4 x f32> donated, %x: !ait.tensor<4 x 4 x f32>) {
  %t = ait.permute %k [1, 0] : !ait.tensor<4 x 4 x f32>
  %new = ait.add %k, %x : !ait.tensor<4 x 4 x f32>
  %y = ait.relu %t : !ait.tensor<4 x 4 x f32>
  // expected-error @below {{ait.relu (%y) reads the old value after ait.add (%new) has made the new one}}
  ait.output "k" %new in place of %k : !ait.tensor<4 x 4 x f32>
  ait.output "y" %y : !ait.tensor<4 x 4 x f32>
}

// -----

ait.graph @moved(%k: !ait.tensor<4 x 4 x f32> donated) {
  %t = ait.permute %k [1, 0] : !ait.tensor<4 x 4 x f32>
  // expected-error @below {{its value is made by ait.permute, which moves the elements of others}}
  ait.output "k" %t in place of %k : !ait.tensor<4 x 4 x f32>
}

// -----

ait.graph @input(%k: !ait.tensor<4 x f32> donated, %x: !ait.tensor<4 x f32>) {
  // expected-error @below {{output 'k' cannot take the place of input 'k': its value is another input}}
  ait.output "k" %x in place of %k : !ait.tensor<4 x f32>
}

// -----

ait.graph @weight(%k: !ait.tensor<4 x f32> donated) {
  %w = ait.param "w" : !ait.tensor<4 x f32>
  // expected-error @below {{its value is param 'w'}}
  ait.output "k" %w in place of %k : !ait.tensor<4 x f32>
}
