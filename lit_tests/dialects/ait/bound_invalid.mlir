// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @expression(%x: !ait.tensor<b x f32>) dims {b = 1 to 8, n = 0 to 2*b} { // expected-error {{the greatest value of 'n' is 2*b, expected a number; a dim that an op binds when it runs ends with 'bound'}}
}

// -----

ait.graph @order(%x: !ait.tensor<b x f32>) dims {n = 0 to 2*b bound, b = 1 to 8} { // expected-error {{the bound of 'n' names 'b', which is not declared before it}}
}

// -----

// expected-error @below {{ait.graph: dim 'n' is to be bound, but no op binds it}}
ait.graph @never(%x: !ait.tensor<b x f32>) dims {b = 1 to 8, n = 0 to b bound} {
}

// -----

// expected-error @below {{ait.masked_select: binds dim 'n', which another op has bound}}
ait.graph @twice(%x: !ait.tensor<b x f32>, %m: !ait.tensor<b x i1>) dims {b = 1 to 8, n = 0 to b bound} {
  %y, %k = ait.masked_select %x, %m : !ait.tensor<n x f32>, !ait.tensor<i64>
  %z, %l = ait.masked_select %x, %m : !ait.tensor<n x f32>, !ait.tensor<i64>
}

// -----

// expected-error @below {{ait.graph: input 'y' has dim 'n', which an op binds; inputs cannot have it}}
ait.graph @input(%x: !ait.tensor<b x f32>, %m: !ait.tensor<b x i1>, %y: !ait.tensor<n x f32>) dims {b = 1 to 8, n = 0 to b bound} {
  %z, %k = ait.masked_select %x, %m : !ait.tensor<n x f32>, !ait.tensor<i64>
}

// -----

// expected-error @below {{ait.constant: uses dim 'n' before an op binds it}}
ait.graph @before(%x: !ait.tensor<b x f32>, %m: !ait.tensor<b x i1>) dims {b = 1 to 8, n = 0 to b bound} {
  %c = ait.constant 1.0 : !ait.tensor<n x f32>
  %y, %k = ait.masked_select %x, %m : !ait.tensor<n x f32>, !ait.tensor<i64>
}

// -----

ait.graph @mask(%x: !ait.tensor<b x f32>, %m: !ait.tensor<b x i8>) dims {b = 1 to 8, n = 0 to b bound} {
  // expected-error @below {{ait.masked_select: the mask must be i1, got i8}}
  %y, %k = ait.masked_select %x, %m : !ait.tensor<n x f32>, !ait.tensor<i64>
}

// -----

ait.graph @leading(%x: !ait.tensor<b x 4 x f32>, %m: !ait.tensor<4 x i1>) dims {b = 1 to 8, n = 0 to b bound} {
  // expected-error @below {{ait.masked_select: the mask has shape [4], expected leading dims of [b, 4]}}
  %y, %k = ait.masked_select %x, %m : !ait.tensor<n x 4 x f32>, !ait.tensor<i64>
}

// -----

ait.graph @rank(%x: !ait.tensor<b x 4 x f32>, %m: !ait.tensor<b x i1>) dims {b = 1 to 8, n = 0 to b bound} {
  // expected-error @below {{ait.masked_select: the first result must have the shape [a dim of its own, *[4]], got !ait.tensor<n x f32>}}
  %y, %k = ait.masked_select %x, %m : !ait.tensor<n x f32>, !ait.tensor<i64>
}

// -----

ait.graph @unbound(%x: !ait.tensor<b x f32>, %m: !ait.tensor<b x i1>) dims {b = 1 to 8, n = 0 to 8} {
  // expected-error @below {{ait.masked_select: dim n is declared as 'n = 0 to 8', expected 'n = 0 to b bound' or a bound that is proved to be as large}}
  %y, %k = ait.masked_select %x, %m : !ait.tensor<n x f32>, !ait.tensor<i64>
}

// -----

ait.graph @small(%x: !ait.tensor<b x f32>, %m: !ait.tensor<b x i1>) dims {b = 1 to 8, n = 0 to 7 bound} {
  // expected-error @below {{ait.masked_select: dim n is declared as 'n = 0 to 7 bound', expected 'n = 0 to b bound'}}
  %y, %k = ait.masked_select %x, %m : !ait.tensor<n x f32>, !ait.tensor<i64>
}

// -----

ait.graph @least(%x: !ait.tensor<b x f32>, %m: !ait.tensor<b x i1>) dims {b = 1 to 8, n = 1 to b bound} {
  // expected-error @below {{ait.masked_select: dim n is at least 1, but a mask may be false everywhere}}
  %y, %k = ait.masked_select %x, %m : !ait.tensor<n x f32>, !ait.tensor<i64>
}
