// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @order
ait.graph @order(%x: !ait.tensor<b x s x f16>, %q: !ait.tensor<b x 3 x f16>, %i: !ait.tensor<b x s x i32>, %y: !ait.tensor<b x n x f16>, %z: !ait.tensor<3 x n x f16>) dims {b = 0 to 4, s = 0 to 4, n = 1 to 4} {
  // CHECK: %v, %p = ait.sort %x dim 1 : !ait.tensor<b x s x f16>, !ait.tensor<b x s x i64>
  // GENERIC: "ait.sort"(%x) <{dim = 1 : i64}>
  %v, %p = ait.sort %x dim 1 : !ait.tensor<b x s x f16>, !ait.tensor<b x s x i64>
  // CHECK-NEXT: ait.sort %x dim 0 descending {note} : !ait.tensor<b x s x f16>, !ait.tensor<b x s x i32>
  // GENERIC: <{dim = 0 : i64, descending}>
  %v1, %p1 = ait.sort %x dim 0 descending {note} : !ait.tensor<b x s x f16>, !ait.tensor<b x s x i32>
  // CHECK-NEXT: ait.kth_value %y k [n ceildiv 2] dim 1 nan_first {note} : !ait.tensor<b x f16>, !ait.tensor<b x i64>
  // GENERIC: "ait.kth_value"(%y) <{k = #ait.shape<n ceildiv 2>, dim = 1 : i64, nan_first}>
  %v2, %p2 = ait.kth_value %y k [n ceildiv 2] dim 1 nan_first {note} : !ait.tensor<b x f16>, !ait.tensor<b x i64>
  // CHECK-NEXT: ait.kth_value %z k [1] dim 0 : !ait.tensor<n x f16>, !ait.tensor<n x i32>
  %v3, %p3 = ait.kth_value %z k [1] dim 0 : !ait.tensor<n x f16>, !ait.tensor<n x i32>
  // CHECK-NEXT: ait.search_sorted %v, %q : !ait.tensor<b x 3 x i64>
  %0 = ait.search_sorted %v, %q : !ait.tensor<b x 3 x i64>
  // CHECK-NEXT: ait.search_sorted %v, %q right {note} : !ait.tensor<b x 3 x i32>
  // GENERIC: "ait.search_sorted"(%v, %q) <{right}> {note}
  %1 = ait.search_sorted %v, %q right {note} : !ait.tensor<b x 3 x i32>
  // CHECK-NEXT: ait.histogram %i bins 8 {note} : !ait.tensor<8 x i64>
  // GENERIC: "ait.histogram"(%i) <{bins = 8 : i64}> {note}
  %2 = ait.histogram %i bins 8 {note} : !ait.tensor<8 x i64>
  // CHECK-NEXT: ait.order %i sizes [n + 3] {note} : !ait.tensor<(b*s) x i32>, !ait.tensor<(b*s) x i32>
  // GENERIC: "ait.order"(%i) <{sizes = #ait.shape<n + 3>}> {note}
  %k, %o = ait.order %i sizes [n + 3] {note} : !ait.tensor<(b*s) x i32>, !ait.tensor<(b*s) x i32>
  // CHECK-NEXT: ait.order %i, %i sizes [3, 5] :
  %k1, %o1 = ait.order %i, %i sizes [3, 5] : !ait.tensor<b*s x i32>, !ait.tensor<b*s x i32>
  ait.output "y" %2 : !ait.tensor<8 x i64>
}
