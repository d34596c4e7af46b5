// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @bags
ait.graph @bags(%ids: !ait.tensor<n x i64>, %o: !ait.tensor<(b + 1) x i64>, %w: !ait.tensor<n x f16>) dims {b = 0 to 9, n = 0 to 90} {
  %table = ait.param "words" : !ait.tensor<100 x 16 x f16>
  // CHECK: ait.embedding_bag sum %table, %ids, %o weights %w padding 3 closed : !ait.tensor<b x 16 x f16>
  // GENERIC: "ait.embedding_bag"(%table, %ids, %o, %w) <{kind = "sum", padding = 3 : i64, closed}> : (!ait.tensor<100 x 16 x f16>, !ait.tensor<n x i64>, !ait.tensor<(b + 1) x i64>, !ait.tensor<n x f16>) -> !ait.tensor<b x 16 x f16>
  %0 = ait.embedding_bag sum %table, %ids, %o weights %w padding 3 closed : !ait.tensor<b x 16 x f16>
  // CHECK-NEXT: ait.embedding_bag mean %table, %ids, %o : !ait.tensor<(b + 1) x 16 x f16>
  %1 = ait.embedding_bag mean %table, %ids, %o : !ait.tensor<(b + 1) x 16 x f16>
  // CHECK-NEXT: ait.embedding_bag max %table, %ids, %o : !ait.tensor<(b + 1) x 16 x f16>
  %2 = ait.embedding_bag max %table, %ids, %o : !ait.tensor<(b + 1) x 16 x f16>
  ait.output "y" %0 : !ait.tensor<b x 16 x f16>
}

// CHECK-LABEL: ait.graph @jagged
// CHECK-SAME: dims {total = 0 to 900, b = 1 to 9, s = 0 to 90, words = jagged(total, b, 0 to 100), nested = jagged(total, b, 0 to 10, 1 to 20) hints [50]}
ait.graph @jagged(%x: !ait.tensor<total x 8 x 4 x f16>, %o: !ait.tensor<(b + 1) x i32>, %p: !ait.tensor<(s + 1) x i32>, %v: !ait.tensor<b x 8 x 100 x f16>)
  dims {total = 0 to 900, b = 1 to 9, s = 0 to 90, words = jagged(total, b, 0 to 100), nested = jagged(total, b, 0 to 10, 1 to 20) hints [50]} {
  // CHECK: ait.make_jagged %x offsets(%o) : !ait.tensor<words x 8 x 4 x f16>
  %0 = ait.make_jagged %x offsets(%o) : !ait.tensor<words x 8 x 4 x f16>
  // CHECK-NEXT: ait.make_jagged %x offsets(%o, %p) : !ait.tensor<nested x 8 x 4 x f16>
  %1 = ait.make_jagged %x offsets(%o, %p) : !ait.tensor<nested x 8 x 4 x f16>
  // CHECK-NEXT: ait.jagged_to_padded %0 offsets(%o) value 0.5 : !ait.tensor<b x 100 x 8 x 4 x f16>
  %2 = ait.jagged_to_padded %0 offsets(%o) value 0.5 : !ait.tensor<b x 100 x 8 x 4 x f16>
  // CHECK-NEXT: ait.jagged_to_padded %1 offsets(%o, %p) value 0.0 : !ait.tensor<b x 10 x 20 x 8 x 4 x f16>
  %3 = ait.jagged_to_padded %1 offsets(%o, %p) value 0.0 : !ait.tensor<b x 10 x 20 x 8 x 4 x f16>
  // CHECK-NEXT: ait.padded_to_jagged %3 offsets(%o, %p) : !ait.tensor<nested x 8 x 4 x f16>
  %4 = ait.padded_to_jagged %3 offsets(%o, %p) : !ait.tensor<nested x 8 x 4 x f16>
  // CHECK-NEXT: ait.jagged_vector_product %v, %0 offsets(%o) : !ait.tensor<b x 8 x 4 x f16>
  %5 = ait.jagged_vector_product %v, %0 offsets(%o) : !ait.tensor<b x 8 x 4 x f16>
  // CHECK-NEXT: ait.add %0, %0 : !ait.tensor<words x 8 x 4 x f16>
  %6 = ait.add %0, %0 : !ait.tensor<words x 8 x 4 x f16>
  ait.output "y" %6 : !ait.tensor<words x 8 x 4 x f16>
}

// The longest sequence may be a dim, whose value a run knows from an input.
// CHECK-LABEL: ait.graph @longest
// CHECK-SAME: dims {total = 0 to 900, b = 1 to 9, s = 0 to 90, words = jagged(total, b, 0 to s)}
ait.graph @longest(%x: !ait.tensor<total x 4 x f16>, %o: !ait.tensor<(b + 1) x i32>, %d: !ait.tensor<b x s x 4 x f16>)
  dims {total = 0 to 900, b = 1 to 9, s = 0 to 90, words = jagged(total, b, 0 to s)} {
  // CHECK: ait.padded_to_jagged %d offsets(%o) : !ait.tensor<words x 4 x f16>
  %0 = ait.padded_to_jagged %d offsets(%o) : !ait.tensor<words x 4 x f16>
  // CHECK-NEXT: ait.jagged_to_padded %0 offsets(%o) value 0.0 : !ait.tensor<b x s x 4 x f16>
  %1 = ait.jagged_to_padded %0 offsets(%o) value 0.0 : !ait.tensor<b x s x 4 x f16>
  ait.output "y" %1 : !ait.tensor<b x s x 4 x f16>
}
