// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @resize
ait.graph @resize(%x: !ait.tensor<b x h x 9 x 8 x f16>, %i: !ait.tensor<b x 4 x 8 x i32>) dims {b = 0 to 4, h = 1 to 64} {
  // CHECK: ait.resize linear %x align_corners : !ait.tensor<b x (2*h) x 4 x 8 x f16>
  // GENERIC: "ait.resize"(%x) <{mode = "linear", align_corners}>
  %0 = ait.resize linear %x align_corners : !ait.tensor<b x (2*h) x 4 x 8 x f16>
  // CHECK-NEXT: ait.resize cubic %x scales [1.5, 0.0] {note} : !ait.tensor<b x 7 x h x 8 x f16>
  // GENERIC: scales = [1.500000e+00 : f64, 0.000000e+00 : f64]
  %1 = ait.resize cubic %x scales [1.5, 0.0] {note} : !ait.tensor<b x 7 x h x 8 x f16>
  // CHECK-NEXT: ait.resize nearest_exact %x : !ait.tensor<b x h x 9 x 8 x f16>
  %2 = ait.resize nearest_exact %x : !ait.tensor<b x h x 9 x 8 x f16>
  // CHECK-NEXT: ait.resize nearest %i : !ait.tensor<b x 9 x 8 x i32>
  %3 = ait.resize nearest %i : !ait.tensor<b x 9 x 8 x i32>
  ait.output "y" %0 : !ait.tensor<b x (2*h) x 4 x 8 x f16>
}

// CHECK-LABEL: ait.graph @grid_sample
ait.graph @grid_sample(%x: !ait.tensor<b x 5 x 9 x 8 x f16>, %g: !ait.tensor<b x 2 x h x 2 x f16>) dims {b = 0 to 4, h = 0 to 64} {
  // CHECK: ait.grid_sample linear zeros %x, %g : !ait.tensor<b x 2 x h x 8 x f16>
  // GENERIC: "ait.grid_sample"(%x, %g) <{mode = "linear", outside = "zeros"}>
  %0 = ait.grid_sample linear zeros %x, %g : !ait.tensor<b x 2 x h x 8 x f16>
  // CHECK-NEXT: ait.grid_sample cubic reflection %x, %g align_corners {note} : !ait.tensor<b x 2 x h x 8 x f16>
  %1 = ait.grid_sample cubic reflection %x, %g align_corners {note} : !ait.tensor<b x 2 x h x 8 x f16>
  ait.output "y" %1 : !ait.tensor<b x 2 x h x 8 x f16>
}
