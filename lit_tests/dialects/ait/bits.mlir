// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @norms
// CHECK-SAME: dims {b = 0 to 4, e = 1 to 2139095039 hints [925353388] given}
ait.graph @norms(%x: !ait.tensor<b x 4 x 8 x f16>) dims {b = 0 to 4, e = 1 to 2139095039 hints [925353388] given} {
  // CHECK: ait.layer_norm %x axes 1 eps bits(e) : !ait.tensor<b x 4 x 8 x f16>
  // GENERIC: eps = #ait.shape<e>
  %0 = ait.layer_norm %x axes 1 eps bits(e) : !ait.tensor<b x 4 x 8 x f16>
  // CHECK-NEXT: ait.group_norm %0 dim 1 groups 2 eps bits(e)
  %1 = ait.group_norm %0 dim 1 groups 2 eps bits(e) : !ait.tensor<b x 4 x 8 x f16>
  // CHECK-NEXT: ait.rms_norm %1 axes 1 eps bits(925353388)
  %2 = ait.rms_norm %1 axes 1 eps bits(925353388) : !ait.tensor<b x 4 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<b x 4 x 8 x f16>
}

// CHECK-LABEL: ait.graph @attention
ait.graph @attention(%q: !ait.tensor<b x 2 x 4 x 8 x f16>) dims {b = 0 to 4, s = 1 to 2139095039 given} {
  // CHECK: ait.attention %q, %q, %q scale bits(s) causal : !ait.tensor<b x 2 x 4 x 8 x f16>
  %0 = ait.attention %q, %q, %q scale bits(s) causal : !ait.tensor<b x 2 x 4 x 8 x f16>
  ait.output "y" %0 : !ait.tensor<b x 2 x 4 x 8 x f16>
}
