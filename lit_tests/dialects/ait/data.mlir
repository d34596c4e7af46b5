// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// An input whose name is no identifier has it in quotes.
// CHECK-LABEL: ait.graph @names(%x: !ait.tensor<b x f16>, "input ids/0" %{{.*}}: !ait.tensor<i64>) dims {b = 1 to 4 hints [2, 4], s = 0 to 1024} {
// GENERIC: "ait.graph"() <{sym_name = "names", dims = #ait.dims<b = 1 to 4 hints [2, 4], s = 0 to 1024>, input_names = ["x", "input ids/0"]}> ({
ait.graph @names(%x: !ait.tensor<b x f16>, "input ids/0" %ids: !ait.tensor<i64>) dims {b = 1 to 4 hints [2, 4], s = 0 to 1024} {
  // CHECK-NEXT: ait.output "any name, even \22this\22" %x : !ait.tensor<b x f16>
  ait.output "any name, even \22this\22" %x : !ait.tensor<b x f16>
  // One value may have several names, and an input may be an output.
  // Other letters than ASCII print escaped, as MLIR does.
  // CHECK-NEXT: ait.output "caf\C3\A9" %x
  ait.output "café" %x : !ait.tensor<b x f16>
  // CHECK-NEXT: ait.output "again" %x
  ait.output "again" %x : !ait.tensor<b x f16>
}

// CHECK-LABEL: ait.graph @empty() {
ait.graph @empty() {
}

// CHECK-LABEL: ait.graph @params
ait.graph @params() {
  // CHECK-NEXT: ait.param "encoder.layer.0.weight" : !ait.tensor<4 x 8 x f16>
  // GENERIC: "ait.param"() <{param_name = "encoder.layer.0.weight"}> : () -> !ait.tensor<4 x 8 x f16>
  %0 = ait.param "encoder.layer.0.weight" : !ait.tensor<4 x 8 x f16>
  // CHECK-NEXT: ait.param "encoder.layer.0.weight"
  %1 = ait.param "encoder.layer.0.weight" : !ait.tensor<4 x 8 x f16>
  ait.output "y" %1 : !ait.tensor<4 x 8 x f16>
}

// CHECK-LABEL: ait.graph @constants
ait.graph @constants() dims {b = 1 to 4} {
  // CHECK-NEXT: ait.constant 0.5 : !ait.tensor<b x f16>
  // GENERIC: "ait.constant"() <{value = 5.000000e-01 : f64}> : () -> !ait.tensor<b x f16>
  %0 = ait.constant 0.5 : !ait.tensor<b x f16>
  // CHECK-NEXT: ait.constant 7 : !ait.tensor<f32>
  %1 = ait.constant 7 : !ait.tensor<f32>
  // CHECK-NEXT: ait.constant [1, 2, 3] : !ait.tensor<3 x i64>
  // GENERIC: "ait.constant"() <{value = [1 : i64, 2 : i64, 3 : i64]}> : () -> !ait.tensor<3 x i64>
  %2 = ait.constant [1, 2, 3] : !ait.tensor<3 x i64>
  // CHECK-NEXT: ait.constant [0.1, -2.5, 1e-30, inf, -inf, nan] : !ait.tensor<2 x 3 x f64>
  %3 = ait.constant [0.1, -2.5, 1.0e-30, inf, -inf, nan] : !ait.tensor<2 x 3 x f64>
  // CHECK-NEXT: ait.constant [] : !ait.tensor<0 x f16>
  %4 = ait.constant [] : !ait.tensor<0 x f16>
  // CHECK-NEXT: ait.constant [1, 0] : !ait.tensor<2 x i1>
  %5 = ait.constant [true, false] : !ait.tensor<2 x i1>
  // CHECK-NEXT: ait.constant -inf : !ait.tensor<bf16>
  %6 = ait.constant -inf : !ait.tensor<bf16>
  ait.output "y" %3 : !ait.tensor<2 x 3 x f64>
}

// Dim expressions print in their normal form.
// CHECK-LABEL: ait.graph @dims(%x: !ait.tensor<(2*s + 1) x (s floordiv 2) x (b*s) x f16>)
ait.graph @dims(%x: !ait.tensor<(1 + s * 2) x (s floordiv 2) x (s * b) x f16>) dims {b = 1 to 4, s = 1 to 8} {
}
