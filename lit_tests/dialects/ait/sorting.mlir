// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @order
ait.graph @order(%x: !ait.tensor<b x s x f16>, %q: !ait.tensor<b x 3 x f16>, %i: !ait.tensor<b x s x i32>) dims {b = 0 to 4, s = 0 to 4} {
  // CHECK: %v, %p = ait.sort %x dim 1 : !ait.tensor<b x s x f16>, !ait.tensor<b x s x i64>
  // GENERIC: "ait.sort"(%x) <{dim = 1 : i64}>
  %v, %p = ait.sort %x dim 1 : !ait.tensor<b x s x f16>, !ait.tensor<b x s x i64>
  // CHECK-NEXT: ait.sort %x dim 0 descending {note} : !ait.tensor<b x s x f16>, !ait.tensor<b x s x i32>
  // GENERIC: <{dim = 0 : i64, descending}>
  %v1, %p1 = ait.sort %x dim 0 descending {note} : !ait.tensor<b x s x f16>, !ait.tensor<b x s x i32>
  // CHECK-NEXT: ait.search_sorted %v, %q : !ait.tensor<b x 3 x i64>
  %0 = ait.search_sorted %v, %q : !ait.tensor<b x 3 x i64>
  // CHECK-NEXT: ait.search_sorted %v, %q right {note} : !ait.tensor<b x 3 x i32>
  // GENERIC: "ait.search_sorted"(%v, %q) <{right}> {note}
  %1 = ait.search_sorted %v, %q right {note} : !ait.tensor<b x 3 x i32>
  // CHECK-NEXT: ait.histogram %i bins 8 {note} : !ait.tensor<8 x i64>
  // GENERIC: "ait.histogram"(%i) <{bins = 8 : i64}> {note}
  %2 = ait.histogram %i bins 8 {note} : !ait.tensor<8 x i64>
  ait.output "y" %2 : !ait.tensor<8 x i64>
}
