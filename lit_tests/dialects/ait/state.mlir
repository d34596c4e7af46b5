// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @step(%cache: !ait.tensor<b x 512 x 64 x f16> donated, "the rows" %rows: !ait.tensor<b x 1 x 64 x f16>, %at: !ait.tensor<i64>) dims {b = 1 to 4} {
// GENERIC: "ait.graph"() <{sym_name = "step", dims = #ait.dims<b = 1 to 4>, input_names = ["cache", "the rows", "at"], donated_names = ["cache"]}> ({
ait.graph @step(%cache: !ait.tensor<b x 512 x 64 x f16> donated, "the rows" %rows: !ait.tensor<b x 1 x 64 x f16>, %at: !ait.tensor<i64>) dims {b = 1 to 4} {
  // CHECK-NEXT: ait.update_slice %cache, %rows at %at dim 1 : !ait.tensor<b x 512 x 64 x f16>
  // GENERIC: "ait.update_slice"(%cache, %rows, %at) <{dim = 1 : i64}>
  %new = ait.update_slice %cache, %rows at %at dim 1 : !ait.tensor<b x 512 x 64 x f16>
  // CHECK-NEXT: ait.output "cache" %new in place of %cache : !ait.tensor<b x 512 x 64 x f16>
  // GENERIC: "ait.output"(%new, %cache) <{output_name = "cache"}>
  ait.output "cache" %new in place of %cache : !ait.tensor<b x 512 x 64 x f16>
}

// CHECK-LABEL: ait.graph @mean(%mean: !ait.tensor<8 x f32> donated, "any name" %{{.*}}: !ait.tensor<8 x f32> donated) {
ait.graph @mean(%mean: !ait.tensor<8 x f32> donated, "any name" %var: !ait.tensor<8 x f32> donated) {
  %0 = ait.relu %mean : !ait.tensor<8 x f32>
  // CHECK: ait.output "mean" %{{.*}} in place of %mean or copy {note = 1 : i64} : !ait.tensor<8 x f32>
  // GENERIC: "ait.output"(%{{.*}}, %mean) <{output_name = "mean", or_copy}>
  ait.output "mean" %0 in place of %mean or copy {note = 1 : i64} : !ait.tensor<8 x f32>
  // CHECK: ait.output "var" %var in place of %var : !ait.tensor<8 x f32>
  ait.output "var" %var in place of %var : !ait.tensor<8 x f32>
}

// A place for each row, in i32; no rows at all; a dim that is known to hold the rows.
// CHECK-LABEL: ait.graph @places
ait.graph @places(%x: !ait.tensor<9 x (n + 2) x i64>, %rows: !ait.tensor<9 x n x i64>, %at: !ait.tensor<n x i32>, %zero: !ait.tensor<0 x (n + 2) x i64>, %none: !ait.tensor<0 x i32>) dims {n = 0 to 8} {
  // CHECK-NEXT: ait.update_slice %x, %rows at %at dim 1 : !ait.tensor<9 x (n + 2) x i64>
  %0 = ait.update_slice %x, %rows at %at dim 1 : !ait.tensor<9 x (n + 2) x i64>
  // CHECK-NEXT: ait.update_slice %{{.*}}, %zero at %none dim 0 : !ait.tensor<9 x (n + 2) x i64>
  %1 = ait.update_slice %0, %zero at %none dim 0 : !ait.tensor<9 x (n + 2) x i64>
  ait.output "y" %1 : !ait.tensor<9 x (n + 2) x i64>
}
