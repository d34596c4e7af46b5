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

// CHECK-LABEL: ait.graph @embeddings
ait.graph @embeddings(%i: !ait.tensor<b x i64>, %j: !ait.tensor<b x s x i64>) dims {b = 0 to 4, s = 1 to 8} {
  %t = ait.param "t" : !ait.tensor<100 x 16 x f16>
  %u = ait.param "u" : !ait.tensor<7 x 1 x f16>
  // CHECK: ait.grouped_embedding %t, %i, %u, %j : !ait.tensor<b x 16 x f16>, !ait.tensor<b x s x 1 x f16>
  // GENERIC: "ait.grouped_embedding"(%t, %i, %u, %j) : (!ait.tensor<100 x 16 x f16>, !ait.tensor<b x i64>, !ait.tensor<7 x 1 x f16>, !ait.tensor<b x s x i64>) -> (!ait.tensor<b x 16 x f16>, !ait.tensor<b x s x 1 x f16>)
  %0, %1 = ait.grouped_embedding %t, %i, %u, %j : !ait.tensor<b x 16 x f16>, !ait.tensor<b x s x 1 x f16>
  ait.output "y" %0 : !ait.tensor<b x 16 x f16>
  ait.output "z" %1 : !ait.tensor<b x s x 1 x f16>
}

// CHECK-LABEL: ait.graph @gather
ait.graph @gather(%x: !ait.tensor<b x 10 x 64 x f16>, %i: !ait.tensor<b x s x 1 x i64>, %j: !ait.tensor<7 x i64>, %k: !ait.tensor<1 x 7 x 1 x i64>) dims {b = 0 to 4, s = 1 to 8} {
  // CHECK: ait.gather %x at(%i) dims [1] kept [0, 2] : !ait.tensor<b x s x 64 x f16>
  // GENERIC: "ait.gather"(%x, %i) <{dims = [1 : i64], kept = [0 : i64, 2 : i64]}> : (!ait.tensor<b x 10 x 64 x f16>, !ait.tensor<b x s x 1 x i64>) -> !ait.tensor<b x s x 64 x f16>
  %0 = ait.gather %x at(%i) dims [1] kept [0, 2] : !ait.tensor<b x s x 64 x f16>
  // CHECK-NEXT: ait.gather %x at(%i, %j) dims [2, 1] kept [0] : !ait.tensor<b x s x 7 x f16>
  %1 = ait.gather %x at(%i, %j) dims [2, 1] kept [0] : !ait.tensor<b x s x 7 x f16>
  // CHECK-NEXT: ait.gather %x at(%k) dims [1] kept [0, 2] says "no such row" : !ait.tensor<b x 7 x 64 x f16>
  %2 = ait.gather %x at(%k) dims [1] kept [0, 2] says "no such row" : !ait.tensor<b x 7 x 64 x f16>
  ait.output "y" %0 : !ait.tensor<b x s x 64 x f16>
}

// CHECK-LABEL: ait.graph @scatter
ait.graph @scatter(%x: !ait.tensor<9 x 64 x f16>, %v: !ait.tensor<s x 64 x f16>, %i: !ait.tensor<s x 1 x i32>, %j: !ait.tensor<s x i32>) dims {s = 0 to 8} {
  // CHECK: ait.scatter set %x, %v at(%i) dims [0] kept [1] : !ait.tensor<9 x 64 x f16>
  // GENERIC: "ait.scatter"(%x, %v, %i) <{kind = "set", dims = [0 : i64], kept = [1 : i64]}> : (!ait.tensor<9 x 64 x f16>, !ait.tensor<s x 64 x f16>, !ait.tensor<s x 1 x i32>) -> !ait.tensor<9 x 64 x f16>
  %0 = ait.scatter set %x, %v at(%i) dims [0] kept [1] : !ait.tensor<9 x 64 x f16>
  // CHECK-NEXT: ait.scatter add
  %1 = ait.scatter add %x, %v at(%i) dims [0] kept [1] : !ait.tensor<9 x 64 x f16>
  // CHECK-NEXT: ait.scatter mul
  %2 = ait.scatter mul %x, %v at(%i) dims [0] kept [1] : !ait.tensor<9 x 64 x f16>
  // CHECK-NEXT: ait.scatter max
  %3 = ait.scatter max %x, %v at(%i) dims [0] kept [1] : !ait.tensor<9 x 64 x f16>
  // CHECK-NEXT: ait.scatter min
  %4 = ait.scatter min %x, %v at(%i) dims [0] kept [1] : !ait.tensor<9 x 64 x f16>
  %flat = ait.reshape %i : !ait.tensor<s x i32>
  %k, %p = ait.order %flat sizes [9] : !ait.tensor<s x i32>, !ait.tensor<s x i32>
  // CHECK: ait.scatter add %x, %v at(%i) dims [0] kept [1] order %k, %p {note} : !ait.tensor<9 x 64 x f16>
  // GENERIC: "ait.scatter"(%x, %v, %i, %k, %p) <{kind = "add", dims = [0 : i64], kept = [1 : i64]}> {note}
  %5 = ait.scatter add %x, %v at(%i) dims [0] kept [1] order %k, %p {note} : !ait.tensor<9 x 64 x f16>
  ait.output "y" %0 : !ait.tensor<9 x 64 x f16>
}

// An order is made of the same view of the same value, or of equal values, also through reshapes.
ait.graph @orders(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 5 x f16>, %i: !ait.tensor<2 x 3 x i64>, %w: !ait.tensor<3 x 3 x f16>, %j: !ait.tensor<3 x i64>) {
  %0 = ait.slice %i offsets [1, 0] : !ait.tensor<1 x 3 x i64>
  %1 = ait.reshape %0 : !ait.tensor<3 x i64>
  %k, %p = ait.order %1 sizes [4] : !ait.tensor<3 x i32>, !ait.tensor<3 x i32>
  %2 = ait.slice %i offsets [1, 0] : !ait.tensor<1 x 3 x i64>
  %3 = ait.reshape %2 : !ait.tensor<3 x 1 x i64>
  // CHECK: order %k, %p
  %4 = ait.scatter add %x, %v at(%3) dims [0] kept [1] order %k, %p : !ait.tensor<4 x 5 x f16>
  %5 = ait.abs %1 : !ait.tensor<3 x i64>
  %l, %q = ait.order %5 sizes [4] : !ait.tensor<3 x i32>, !ait.tensor<3 x i32>
  %6 = ait.reshape %0 : !ait.tensor<3 x i64>
  %7 = ait.abs %6 : !ait.tensor<3 x i64>
  %8 = ait.reshape %7 : !ait.tensor<3 x 1 x i64>
  // CHECK: order %l, %q
  %9 = ait.scatter add %4, %v at(%8) dims [0] kept [1] order %l, %q : !ait.tensor<4 x 5 x f16>
  %10 = ait.reshape %j : !ait.tensor<3 x 1 x i64>
  %m, %r = ait.order %10, %j sizes [4, 5] : !ait.tensor<9 x i32>, !ait.tensor<9 x i32>
  // CHECK: order %m, %r
  %11 = ait.scatter add %9, %w at(%10, %j) dims [0, 1] kept [] order %m, %r : !ait.tensor<4 x 5 x f16>
  ait.output "y" %11 : !ait.tensor<4 x 5 x f16>
}
