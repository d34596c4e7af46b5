// RUN: ait-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{ait_rt.kernel: @two must hold one op and ait_rt.return, it holds 3 ops}}
ait_rt.kernel @two "native" {} (%a: !ait.tensor<8 x f16>) {
  %0 = ait.relu %a : !ait.tensor<8 x f16>
  %1 = ait.neg %0 : !ait.tensor<8 x f16>
  ait_rt.return %1 : !ait.tensor<8 x f16>
}

// -----

// expected-error @below {{ait_rt.kernel: the op of @order must take the kernel's arguments in order}}
ait_rt.kernel @order "native" {} (%a: !ait.tensor<8 x f16>, %b: !ait.tensor<8 x f16>) {
  %0 = ait.sub %b, %a : !ait.tensor<8 x f16>
  ait_rt.return %0 : !ait.tensor<8 x f16>
}

// -----

// expected-error @below {{ait_rt.kernel: @results must return the results of its op in order}}
ait_rt.kernel @results "native" {} (%a: !ait.tensor<8 x f16>) {
  %0 = ait.relu %a : !ait.tensor<8 x f16>
  ait_rt.return %0, %0 : !ait.tensor<8 x f16>, !ait.tensor<8 x f16>
}

// -----

ait_rt.kernel @disagree "native" {} (%a: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.relu: the result is !ait.tensor<9 x f16>, expected !ait.tensor<8 x f16>}}
  %0 = ait.relu %a : !ait.tensor<9 x f16>
  ait_rt.return %0 : !ait.tensor<9 x f16>
}
