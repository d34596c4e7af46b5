// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @embedding
ait.graph @embedding(%ids: !ait.tensor<b x s x i64>, %one: !ait.tensor<i32>) dims {b = 0 to 4, s = 1 to 8} {
  %table = ait.param "words" : !ait.tensor<100 x 16 x f16>
  // CHECK: ait.embedding %table, %ids : !ait.tensor<b x s x 16 x f16>
  // GENERIC: "ait.embedding"(%table, %ids) : (!ait.tensor<100 x 16 x f16>, !ait.tensor<b x s x i64>) -> !ait.tensor<b x s x 16 x f16>
  %0 = ait.embedding %table, %ids : !ait.tensor<b x s x 16 x f16>
  // CHECK-NEXT: ait.embedding %table, %one : !ait.tensor<16 x f16>
  %1 = ait.embedding %table, %one : !ait.tensor<16 x f16>
  ait.output "y" %0 : !ait.tensor<b x s x 16 x f16>
}
