// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @softmax_dim(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.softmax: dim 2 is out of range for shape [4, 8]}}
  %0 = ait.softmax %x dim 2 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @negative_dim(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.softmax: dim -1 is out of range for shape [4, 8]}}
  %0 = ait.softmax %x dim -1 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @rank_0(%x: !ait.tensor<f16>) {
  // expected-error @below {{ait.softmax: dim 0 is out of range for shape []}}
  %0 = ait.softmax %x dim 0 : !ait.tensor<f16>
}

// -----

ait.graph @softmax_integers(%x: !ait.tensor<4 x i32>) {
  // expected-error @below {{ait.softmax: needs a floating-point type, got i32}}
  %0 = ait.softmax %x dim 0 : !ait.tensor<4 x i32>
}

// -----

ait.graph @axes(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.layer_norm: axes is 3, expected 1 to 2 for shape [4, 8]}}
  %0 = ait.layer_norm %x axes 3 eps 0.001 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @no_axes(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.layer_norm: axes is 0, expected 1 to 2 for shape [4, 8]}}
  %0 = ait.layer_norm %x axes 0 eps 0.001 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @norm_integers(%x: !ait.tensor<4 x i64>) {
  // expected-error @below {{ait.layer_norm: needs a floating-point type, got i64}}
  %0 = ait.layer_norm %x axes 1 eps 0.001 : !ait.tensor<4 x i64>
}

// -----

ait.graph @eps(%x: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.layer_norm: eps must not be negative, got -0.001}}
  %0 = ait.layer_norm %x axes 1 eps -0.001 : !ait.tensor<4 x f16>
}

// -----

ait.graph @scale(%x: !ait.tensor<4 x 8 x f16>, %g: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.layer_norm: scale has shape [4], expected [8]}}
  %0 = ait.layer_norm %x scale %g axes 1 eps 0.001 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @bias(%x: !ait.tensor<4 x 8 x f16>, %b: !ait.tensor<8 x f32>) {
  // expected-error @below {{ait.layer_norm: bias has element type f32, but the input has f16}}
  %0 = ait.layer_norm %x bias %b axes 1 eps 0.001 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @two_results(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.layer_norm: has prologue operands or several results but no prologue region}}
  %0, %1 = ait.layer_norm %x axes 1 eps 0.001 : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @prologue_operand(%x: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<2 x 8 x f16>) {
  // expected-error @below {{ait.layer_norm: prologue operand 0 has shape [2, 8], which does not broadcast to [4, 8]: 2 is not 4}}
  %0 = ait.layer_norm %x axes 1 eps 0.001 prologue(%r) {
  ^bb0(%a: f32, %b: f32):
    ait.yield %a : f32
  } : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @prologue_yield(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.layer_norm: the region yields (f32), expected (f32, f32)}}
  %0, %1 = ait.layer_norm %x axes 1 eps 0.001 prologue() {
  ^bb0(%a: f32):
    ait.yield %a : f32
  } : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @keyword(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{expected 'axes'}}
  %0 = ait.layer_norm %x eps 0.001 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @rms_scale(%x: !ait.tensor<4 x 8 x f16>, %g: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.rms_norm: scale has shape [4], expected [8]}}
  %0 = ait.rms_norm %x scale %g axes 1 eps 0.001 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @group_dim(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.group_norm: dim 0 is not a dim behind the first of shape [4, 8]}}
  %0 = ait.group_norm %x dim 0 groups 2 eps 1e-05 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @group_integers(%x: !ait.tensor<4 x 8 x i32>) {
  // expected-error @below {{ait.group_norm: needs a floating-point type, got i32}}
  %0 = ait.group_norm %x dim 1 groups 2 eps 1e-05 : !ait.tensor<4 x 8 x i32>
}

// -----

ait.graph @group_count(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.group_norm: 3 groups are not proved to divide dim 1 of the input, 8 channels}}
  %0 = ait.group_norm %x dim 1 groups 3 eps 1e-05 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @group_eps(%x: !ait.tensor<4 x 8 x f16>) {
  // expected-error @below {{ait.group_norm: eps must not be negative, got -1.0}}
  %0 = ait.group_norm %x dim 1 groups 2 eps -1.0 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @group_scale(%x: !ait.tensor<4 x 8 x f16>, %g: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.group_norm: scale has shape [4], expected [8]}}
  %0 = ait.group_norm %x scale %g dim 1 groups 2 eps 1e-05 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @group_bias(%x: !ait.tensor<4 x 8 x f16>, %g: !ait.tensor<8 x f32>) {
  // expected-error @below {{ait.group_norm: bias has element type f32, but the input has f16}}
  %0 = ait.group_norm %x bias %g dim 1 groups 2 eps 1e-05 : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @epilogue_operands(%x: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<3 x f16>) {
  // expected-error @below {{ait.layer_norm: epilogue operand 0}}
  %0 = ait.layer_norm %x axes 1 eps 0.001 epilogue(%r) {
  ^bb0(%a: f32, %c: f32):
    %s = ait.add %a, %c : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 8 x f16>
}

// -----

// Rows are computed in one type.
ait.graph @epilogue_type(%x: !ait.tensor<4 x 8 x f16>, %d: !ait.tensor<8 x f64>) {
  // expected-error @below {{ait.rms_norm: the epilogue yields f64, but rows are computed in f32}}
  %0 = ait.rms_norm %x axes 1 eps 0.001 epilogue(%d) {
  ^bb0(%a: f32, %c: f64):
    ait.yield %c : f64
  } : !ait.tensor<4 x 8 x f64>
}
