// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @cumsum
ait.graph @cumsum(%x: !ait.tensor<b x s x 8 x f16>) dims {b = 0 to 4, s = 0 to 4} {
  // CHECK: ait.cumsum %x dim 1 : !ait.tensor<b x s x 8 x f16>
  // GENERIC: "ait.cumsum"(%x) <{dim = 1 : i64}> : (!ait.tensor<b x s x 8 x f16>) -> !ait.tensor<b x s x 8 x f16>
  %0 = ait.cumsum %x dim 1 : !ait.tensor<b x s x 8 x f16>
  // CHECK-NEXT: ait.cumsum %0 dim 0 exclusive : !ait.tensor<b x s x 8 x f16>
  // GENERIC: <{dim = 0 : i64, exclusive}>
  %1 = ait.cumsum %0 dim 0 exclusive : !ait.tensor<b x s x 8 x f16>
  // CHECK-NEXT: ait.cumsum %1 dim 2 reverse : !ait.tensor<b x s x 8 x f16>
  // GENERIC: <{dim = 2 : i64, reverse}>
  %2 = ait.cumsum %1 dim 2 reverse : !ait.tensor<b x s x 8 x f16>
  // CHECK-NEXT: ait.cumsum %2 dim 2 exclusive reverse {note} : !ait.tensor<b x s x 8 x f16>
  %3 = ait.cumsum %2 dim 2 exclusive reverse {note} : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %3 : !ait.tensor<b x s x 8 x f16>
}
