// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @arguments
ait.graph @arguments(%x: !ait.tensor<b x 8 x f32>, %w: !ait.tensor<8 x bf16>) dims {b = 1 to 4} {
  // CHECK: %y = ait.call_ffi @lib "f"(%x, none, 0.5, -3, true, false, "a\22b", (2*b + 1), %w) : !ait.tensor<b x 8 x f32>
  // GENERIC: "ait.call_ffi"(%x, %w) <{library = @lib, function = "f", arguments = [unit, @none, 5.000000e-01 : f64, -3 : i64, true, false, "a\22b", @size, unit], sizes = #ait.shape<2*b + 1>}> : (!ait.tensor<b x 8 x f32>, !ait.tensor<8 x bf16>) -> !ait.tensor<b x 8 x f32>
  %y = ait.call_ffi @lib "f"(%x, none, 0.5, -3, true, false, "a\22b", (2*b + 1), %w) : !ait.tensor<b x 8 x f32>
  // CHECK-NEXT: ait.call_ffi @lib "inf"(%y, inf, nan, 1e-06) strided :
  // GENERIC: <{library = @lib, function = "inf", arguments = [unit, 0x7ff0000000000000 : f64, 0x7ff8000000000000 : f64, 1.000000e-06 : f64], strided}>
  %z = ait.call_ffi @lib "inf"(%y, inf, nan, 1e-06) strided : !ait.tensor<b x 8 x f32>
  ait.output "z" %z : !ait.tensor<b x 8 x f32>
}

// CHECK-LABEL: ait.graph @places
ait.graph @places(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 4} {
  // CHECK: %y, %n = ait.call_ffi @"my-lib.1" "two"(result, %x, workspace, result) workspace (4*b) {note} : !ait.tensor<b x 8 x f32>, !ait.tensor<i32>
  %y, %n = ait.call_ffi @"my-lib.1" "two"(result, %x, workspace, result) workspace (4*b) {note} : !ait.tensor<b x 8 x f32>, !ait.tensor<i32>
  // CHECK-NEXT: ait.call_ffi "registered.name"(%y) workspace (16) : !ait.tensor<b x f32>
  %z = ait.call_ffi "registered.name"(%y) workspace (16) : (!ait.tensor<b x 8 x f32>) -> !ait.tensor<b x f32>
  // CHECK-NEXT: ait.call_ffi @lib "none"() sha256 "00{{0*}}" : !ait.tensor<b x f32>
  %u = ait.call_ffi @lib "none"() sha256 "0000000000000000000000000000000000000000000000000000000000000000" : !ait.tensor<b x f32>
  ait.output "z" %z : !ait.tensor<b x f32>
  ait.output "u" %u : !ait.tensor<b x f32>
}
