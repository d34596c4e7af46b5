// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @undeclared(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.layer_norm: dim 'e' of eps is not declared; add it to the dims {...} around it}}
  %0 = ait.layer_norm %x axes 1 eps bits(e) : !ait.tensor<4 x 8 x f16>
  ait.output "y" %0 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @zero(%x: !ait.tensor<4 x 8 x f16>) dims {e = 0 to 100 given} {
  // expected-error @below {{ait.rms_norm: eps has bits from 0 to 100, expected 1 to 2139095039: positive numbers of f32}}
  %0 = ait.rms_norm %x axes 1 eps bits(e) : !ait.tensor<4 x 8 x f16>
  ait.output "y" %0 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @infinite(%q: !ait.tensor<1 x 2 x 4 x 8 x f16>) dims {e = 1 to 2139095040 given} {
  // expected-error @below {{ait.attention: scale has bits from 1 to 2139095040, expected 1 to 2139095039}}
  %0 = ait.attention %q, %q, %q scale bits(e) : !ait.tensor<1 x 2 x 4 x 8 x f16>
  ait.output "y" %0 : !ait.tensor<1 x 2 x 4 x 8 x f16>
}

// -----

ait.graph @two(%x: !ait.tensor<4 x 8 x f16>) dims {e = 1 to 100 given} {
  // expected-error @below {{one dim expression expected}}
  %0 = ait.rms_norm %x axes 1 eps bits(e, e) : !ait.tensor<4 x 8 x f16>
}

// -----

"ait.graph"() <{sym_name = "none", dims = #ait.dims<>, input_names = ["x"]}> ({
^bb0(%x: !ait.tensor<4 x 8 x f16>):
  // expected-error @below {{the bits of a number are one dim expression, got 0}}
  %0 = "ait.layer_norm"(%x) <{axes = 1 : i64, eps = #ait.shape<>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> ({
  }, {
  }) : (!ait.tensor<4 x 8 x f16>) -> !ait.tensor<4 x 8 x f16>
}) : () -> ()

// -----

"ait.graph"() <{sym_name = "several", dims = #ait.dims<e = 1 to 100 given>, input_names = ["q"]}> ({
^bb0(%q: !ait.tensor<1 x 2 x 4 x 8 x f16>):
  // expected-error @below {{the bits of a number are one dim expression, got 2}}
  %0 = "ait.attention"(%q, %q, %q) <{scale = #ait.shape<e, e>}> : (!ait.tensor<1 x 2 x 4 x 8 x f16>, !ait.tensor<1 x 2 x 4 x 8 x f16>, !ait.tensor<1 x 2 x 4 x 8 x f16>) -> !ait.tensor<1 x 2 x 4 x 8 x f16>
}) : () -> ()
