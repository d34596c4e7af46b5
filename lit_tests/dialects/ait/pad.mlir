// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @pad
ait.graph @pad(%x: !ait.tensor<b x s x 8 x f16>, %i: !ait.tensor<4 x i1>) dims {b = 0 to 4, s = 1 to 64} {
  // CHECK: ait.pad constant %x before [0, s, -1] value 0.5 : !ait.tensor<b x (2*s + 1) x 6 x f16>
  // GENERIC: <{mode = "constant", before = #ait.shape<0, s, -1>, value = 5.000000e-01 : f64}>
  %0 = ait.pad constant %x before [0, s, -1] value 0.5 : !ait.tensor<b x (2*s + 1) x 6 x f16>
  // CHECK-NEXT: ait.pad reflect %x before [0, 0, 7] : !ait.tensor<b x s x 22 x f16>
  %1 = ait.pad reflect %x before [0, 0, 7] : !ait.tensor<b x s x 22 x f16>
  // CHECK-NEXT: ait.pad replicate %x before [0, 9, 0] {note} : !ait.tensor<b x (s + 9) x 8 x f16>
  %2 = ait.pad replicate %x before [0, 9, 0] {note} : !ait.tensor<b x (s + 9) x 8 x f16>
  // CHECK-NEXT: ait.pad circular %x before [0, s, 0] : !ait.tensor<b x (3*s) x 8 x f16>
  %3 = ait.pad circular %x before [0, s, 0] : !ait.tensor<b x (3*s) x 8 x f16>
  // CHECK-NEXT: ait.pad constant %i before [1] value 1 : !ait.tensor<6 x i1>
  %4 = ait.pad constant %i before [1] value true : !ait.tensor<6 x i1>
  ait.output "y" %0 : !ait.tensor<b x (2*s + 1) x 6 x f16>
}
