// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @compute(%x: !ait.tensor<4 x f8E4M3FN>) {
  // expected-error @below {{ait.add: cannot compute in f8E4M3FN, which only stores values; convert with ait.cast before and behind}}
  %0 = ait.add %x, %x : !ait.tensor<4 x f8E4M3FN>
}

// -----

ait.graph @sum(%x: !ait.tensor<4 x i4>) {
  // expected-error @below {{ait.reduce: cannot compute in i4, which only stores values}}
  %0 = ait.reduce sum %x dims [0] : !ait.tensor<i4>
}

// -----

ait.graph @scatter(%x: !ait.tensor<4 x f8E5M2>, %y: !ait.tensor<2 x f8E5M2>, %i: !ait.tensor<2 x 1 x i64>) {
  // expected-error @below {{ait.scatter: cannot add f8E5M2; cast them, or use 'set'}}
  %0 = ait.scatter add %x, %y at(%i) dims [0] kept [0] : !ait.tensor<4 x f8E5M2>
}

// -----

ait.graph @constant() {
  // expected-error @below {{does not fit in i4}}
  %0 = ait.constant 8 : !ait.tensor<2 x i4>
}

// -----

ait.graph @name(%x: !ait.tensor<4 x f8E4M3FNUZ>) {
// expected-error @above {{element type expected}}
}

// -----

ait.graph @result(%x: !ait.tensor<4 x f16>, %s: !ait.tensor<f32>) {
  // expected-error @below {{ait.quantize: the result has element type i32, expected one of i8, ui8, i16, i4, ui4, f8E4M3FN, f8E5M2}}
  %0 = ait.quantize %x scale %s : !ait.tensor<4 x i32>
}

// -----

ait.graph @input(%x: !ait.tensor<4 x i8>, %s: !ait.tensor<f32>) {
  // expected-error @below {{ait.quantize: the input has element type i8, expected one of f16, bf16, f32, f64}}
  %0 = ait.quantize %x scale %s : !ait.tensor<4 x i8>
}

// -----

ait.graph @back(%x: !ait.tensor<4 x f8E8M0FNU>, %s: !ait.tensor<f32>) {
  // expected-error @below {{ait.dequantize: the input has element type f8E8M0FNU, expected one of}}
  %0 = ait.dequantize %x scale %s : !ait.tensor<4 x f16>
}

// -----

ait.graph @scale(%x: !ait.tensor<4 x f16>, %s: !ait.tensor<i8>) {
  // expected-error @below {{ait.quantize: the scale has element type i8, expected a float}}
  %0 = ait.quantize %x scale %s : !ait.tensor<4 x i8>
}

// -----

ait.graph @length(%x: !ait.tensor<4 x 8 x f16>, %s: !ait.tensor<4 x f32>) {
  // expected-error @below {{ait.quantize: the scale has shape [4], which does not broadcast to [4, 8]: 4 is not 8}}
  %0 = ait.quantize %x scale %s : !ait.tensor<4 x 8 x i8>
}

// -----

ait.graph @groups(%x: !ait.tensor<4 x 300 x f16>, %s: !ait.tensor<4 x 2 x f32>) {
  // expected-error @below {{ait.quantize: the scale has shape [4, 2], expected [4, 3]: a number for each block of [1, 128] in [4, 300]}}
  %0 = ait.quantize %x scale %s blocks [1, 128] : !ait.tensor<4 x 300 x i8>
}

// -----

ait.graph @rank(%x: !ait.tensor<4 x 256 x f16>, %s: !ait.tensor<2 x f32>) {
  // expected-error @below {{ait.quantize: blocks has 1 sizes for an input of shape [4, 256]}}
  %0 = ait.quantize %x scale %s blocks [128] : !ait.tensor<4 x 256 x i8>
}

// -----

ait.graph @empty(%x: !ait.tensor<4 x n x f16>, %s: !ait.tensor<4 x 1 x f32>) dims {n = 0 to 8} {
  // expected-error @below {{ait.quantize: a block has size n, which is not proved to be at least 1}}
  %0 = ait.quantize %x scale %s blocks [1, n] : !ait.tensor<4 x n x i8>
}

// -----

ait.graph @undeclared(%x: !ait.tensor<4 x 8 x f16>, %s: !ait.tensor<4 x 1 x f32>) {
  // expected-error @below {{ait.quantize: dim 'n' of blocks is not declared}}
  %0 = ait.quantize %x scale %s blocks [1, n] : !ait.tensor<4 x 8 x i8>
}

// -----

ait.graph @zero_of_floats(%x: !ait.tensor<4 x f16>, %s: !ait.tensor<f32>, %z: !ait.tensor<i8>) {
  // expected-error @below {{ait.quantize: a zero point is for integers, but the result is f8E4M3FN; leave out 'zero'}}
  %0 = ait.quantize %x scale %s zero %z : !ait.tensor<4 x f8E4M3FN>
}

// -----

ait.graph @zero_type(%x: !ait.tensor<4 x f16>, %s: !ait.tensor<f32>, %z: !ait.tensor<f32>) {
  // expected-error @below {{ait.quantize: the zero point has element type f32, expected an integer}}
  %0 = ait.quantize %x scale %s zero %z : !ait.tensor<4 x i8>
}

// -----

ait.graph @zero_shape(%x: !ait.tensor<4 x 256 x f16>, %s: !ait.tensor<4 x 2 x f32>, %z: !ait.tensor<i8>) {
  // expected-error @below {{ait.quantize: the zero point has shape [], expected that of the scale, [4, 2]}}
  %0 = ait.quantize %x scale %s zero %z blocks [1, 128] : !ait.tensor<4 x 256 x i8>
}

// -----

ait.graph @zero_length(%x: !ait.tensor<4 x 8 x f16>, %s: !ait.tensor<f32>, %z: !ait.tensor<3 x i8>) {
  // expected-error @below {{ait.quantize: the zero point has shape [3], which does not broadcast to [4, 8]: 3 is not 8}}
  %0 = ait.quantize %x scale %s zero %z : !ait.tensor<4 x 8 x i8>
}

// -----

ait.graph @none(%x: !ait.tensor<4 x f16>) {
  %s = ait.constant 0.0 : !ait.tensor<f32>
  // expected-error @below {{ait.quantize: the scale is 0.0, expected finite numbers above 0}}
  %0 = ait.quantize %x scale %s : !ait.tensor<4 x i8>
}

// -----

ait.graph @negative(%x: !ait.tensor<2 x i8>) {
  %s = ait.constant [1.0, -1.0] : !ait.tensor<2 x f32>
  // expected-error @below {{ait.dequantize: the scale is -1.0, expected finite numbers above 0}}
  %0 = ait.dequantize %x scale %s : !ait.tensor<2 x f16>
}

// -----

ait.graph @nan(%x: !ait.tensor<4 x f16>) {
  %s = ait.constant nan : !ait.tensor<f32>
  // expected-error @below {{ait.quantize: the scale is nan, expected finite numbers above 0}}
  %0 = ait.quantize %x scale %s : !ait.tensor<4 x i8>
}

// -----

ait.graph @keyword(%x: !ait.tensor<4 x f16>, %s: !ait.tensor<f32>) {
  // expected-error @below {{ait.quantize: expected 'scale'}}
  %0 = ait.quantize %x, %s : !ait.tensor<4 x i8>
}

// -----

ait.graph @other_shape(%x: !ait.tensor<4 x f16>, %s: !ait.tensor<f32>) {
  // expected-error @below {{ait.quantize: the result is !ait.tensor<5 x i8>, expected !ait.tensor<4 x i8>}}
  %0 = ait.quantize %x scale %s : !ait.tensor<5 x i8>
}

// -----

ait.graph @bytes(%x: !ait.tensor<4 x i8>) {
  // expected-error @below {{ait.unpack: reads i4 or ui4 from ui8, got i4 from i8}}
  %0 = ait.unpack %x : !ait.tensor<8 x i4>
}

// -----

ait.graph @scalar(%x: !ait.tensor<ui8>) {
  // expected-error @below {{ait.unpack: the input and the result have one rank of at least 1, got 0 and 0}}
  %0 = ait.unpack %x : !ait.tensor<i4>
}

// -----

ait.graph @twice(%x: !ait.tensor<4 x ui8>) {
  // expected-error @below {{ait.unpack: the last dim of the result is 6, expected 8 or 7: 4 bytes of the input hold two each}}
  %0 = ait.unpack %x : !ait.tensor<6 x i4>
}
