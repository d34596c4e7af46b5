// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @rank(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.pad: 1 pads and a result of rank 2 for an input of rank 2}}
  %0 = ait.pad constant %x before [0] : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @undeclared(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.pad: dim 'n' of before [0, n] is not declared; add it to the dims {...} around it}}
  %0 = ait.pad constant %x before [0, n] : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @types(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.pad: the result is !ait.tensor<4 x f32>, expected !ait.tensor<4 x f16>}}
  %0 = ait.pad constant %x before [0] : !ait.tensor<4 x f32>
}

// -----

ait.graph @value(%x: !ait.tensor<4 x i8>) {
  // expected-error @below {{ait.pad: value 128 does not fit in i8}}
  %0 = ait.pad constant %x before [1] value 128 : !ait.tensor<5 x i8>
}

// -----

ait.graph @point(%x: !ait.tensor<4 x i32>) {
  // expected-error @below {{ait.pad: value 0.5 does not fit in i32}}
  %0 = ait.pad constant %x before [1] value 0.5 : !ait.tensor<5 x i32>
}

// -----

ait.graph @truth(%x: !ait.tensor<4 x i1>) {
  // expected-error @below {{ait.pad: value 2 does not fit in i1}}
  %0 = ait.pad constant %x before [1] value 2 : !ait.tensor<5 x i1>
}

// -----

ait.graph @needless(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.pad: value is for constant, not for reflect}}
  %0 = ait.pad reflect %x before [1] value 0.5 : !ait.tensor<5 x f16>
}

// -----

ait.graph @reflect(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.pad: pads dim 0 of [4] by 4, which is not proved to be at most 3, as reflect needs}}
  %0 = ait.pad reflect %x before [4] : !ait.tensor<8 x f16>
}

// -----

ait.graph @reflect_behind(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.pad: pads dim 0 of [4] by 4, which is not proved to be at most 3, as reflect needs}}
  %0 = ait.pad reflect %x before [0] : !ait.tensor<8 x f16>
}

// -----

ait.graph @circular(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.pad: pads dim 0 of [4] by 5, which is not proved to be at most 4, as circular needs}}
  %0 = ait.pad circular %x before [5] : !ait.tensor<9 x f16>
}

// -----

ait.graph @replicate(%x: !ait.tensor<0 x f16>) {
  // expected-error @below {{ait.pad: dim 0 is 0, which is not proved to be at least 1: nothing to replicate}}
  %0 = ait.pad replicate %x before [1] : !ait.tensor<1 x f16>
}

// -----

ait.graph @mode(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.pad: unknown mode "wrap"; expected one of constant, reflect, replicate, circular}}
  %0 = "ait.pad"(%x) <{mode = "wrap", before = #ait.shape<1>}> : (!ait.tensor<4 x f16>) -> !ait.tensor<5 x f16>
}
