// RUN: ait-opt %s -p simplify | filecheck %s
// RUN: ait-opt %s -p simplify --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS

// SEMANTICS: evaluations compared, no difference

// Every id is a bag: the ids of a constant number, and the beginning of more offsets than there are ids.
// CHECK-LABEL: ait.graph @one_id_each
// CHECK: [[A:%.*]] = ait.embedding %t, %i : !ait.tensor<3 x 8 x f16>
// CHECK: [[B:%.*]] = ait.embedding %t, %j : !ait.tensor<b x 8 x f16>
// CHECK-NOT: ait.embedding_bag
ait.graph @one_id_each(%i: !ait.tensor<3 x i64>, %j: !ait.tensor<b x i32>, %t: !ait.tensor<9 x 8 x f16>) dims {b = 0 to 5} {
  %0 = ait.constant [0, 1, 2] : !ait.tensor<3 x i64>
  %1 = ait.embedding_bag mean %t, %i, %0 : !ait.tensor<3 x 8 x f16>
  %2 = ait.constant [0, 1, 2, 3, 4] : !ait.tensor<5 x i64>
  %3 = ait.slice %2 offsets [0] : !ait.tensor<b x i64>
  %4 = ait.embedding_bag sum %t, %j, %3 : !ait.tensor<b x 8 x f16>
  ait.output "y" %1 : !ait.tensor<3 x 8 x f16>
  ait.output "z" %4 : !ait.tensor<b x 8 x f16>
}

// One id, whose offset is a number without dims; offsets from a matrix.
// CHECK-LABEL: ait.graph @reshaped
// CHECK: ait.embedding %t, %i : !ait.tensor<1 x 8 x f16>
// CHECK: ait.embedding %t, %j : !ait.tensor<4 x 8 x f16>
ait.graph @reshaped(%i: !ait.tensor<1 x i64>, %j: !ait.tensor<4 x i64>, %t: !ait.tensor<9 x 8 x f16>) {
  %0 = ait.constant 0 : !ait.tensor<i64>
  %1 = ait.reshape %0 : !ait.tensor<1 x i64>
  %2 = ait.embedding_bag max %t, %i, %1 : !ait.tensor<1 x 8 x f16>
  %3 = ait.constant [0, 1, 2, 3] : !ait.tensor<2 x 2 x i64>
  %4 = ait.reshape %3 : !ait.tensor<4 x i64>
  %5 = ait.embedding_bag max %t, %j, %4 : !ait.tensor<4 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<1 x 8 x f16>
  ait.output "z" %5 : !ait.tensor<4 x 8 x f16>
}

// Columns of a matrix that counts up do not, and neither does one number for all.
// CHECK-LABEL: ait.graph @not_counting
// CHECK-COUNT-2: ait.embedding_bag
ait.graph @not_counting(%i: !ait.tensor<2 x i64>, %t: !ait.tensor<9 x 8 x f16>) {
  %0 = ait.constant [0, 1, 2, 3] : !ait.tensor<2 x 2 x i64>
  %1 = ait.slice %0 offsets [0, 0] : !ait.tensor<2 x 1 x i64>
  %2 = ait.reshape %1 : !ait.tensor<2 x i64>
  %3 = ait.embedding_bag sum %t, %i, %2 : !ait.tensor<2 x 8 x f16>
  %4 = ait.constant 0 : !ait.tensor<2 x i64>
  %5 = ait.embedding_bag sum %t, %i, %4 : !ait.tensor<2 x 8 x f16>
  ait.output "y" %3 : !ait.tensor<2 x 8 x f16>
  ait.output "z" %5 : !ait.tensor<2 x 8 x f16>
}

// Bags of two ids, empty bags, the end of the counting, more ids than bags, offsets of an input, weights, padding, and
// an end that is given.
// CHECK-LABEL: ait.graph @other_bags
// CHECK-COUNT-8: ait.embedding_bag
// CHECK-NOT: ait.embedding %
ait.graph @other_bags(%i: !ait.tensor<4 x i64>, %j: !ait.tensor<2 x i64>, %o: !ait.tensor<4 x i64>, %t: !ait.tensor<9 x 8 x f16>, %w: !ait.tensor<4 x f16>, %l: !ait.tensor<3 x i64>) {
  %two = ait.constant [0, 2] : !ait.tensor<2 x i64>
  %0 = ait.embedding_bag sum %t, %i, %two : !ait.tensor<2 x 8 x f16>
  %none = ait.constant [0, 0] : !ait.tensor<2 x i64>
  %1 = ait.embedding_bag sum %t, %j, %none : !ait.tensor<2 x 8 x f16>
  %counting = ait.constant [0, 1, 2, 3] : !ait.tensor<4 x i64>
  %late = ait.slice %counting offsets [2] : !ait.tensor<2 x i64>
  %2 = ait.embedding_bag sum %t, %j, %late : !ait.tensor<2 x 8 x f16>
  %short = ait.slice %counting offsets [0] : !ait.tensor<3 x i64>
  %3 = ait.embedding_bag sum %t, %i, %short : !ait.tensor<3 x 8 x f16>
  %4 = ait.embedding_bag sum %t, %i, %o : !ait.tensor<4 x 8 x f16>
  %5 = ait.embedding_bag sum %t, %i, %counting weights %w : !ait.tensor<4 x 8 x f16>
  %6 = ait.embedding_bag sum %t, %i, %counting padding 3 : !ait.tensor<4 x 8 x f16>
  %7 = ait.embedding_bag sum %t, %l, %counting closed : !ait.tensor<3 x 8 x f16>
  ait.output "y0" %0 : !ait.tensor<2 x 8 x f16>
  ait.output "y1" %1 : !ait.tensor<2 x 8 x f16>
  ait.output "y2" %2 : !ait.tensor<2 x 8 x f16>
  ait.output "y3" %3 : !ait.tensor<3 x 8 x f16>
  ait.output "y4" %4 : !ait.tensor<4 x 8 x f16>
  ait.output "y5" %5 : !ait.tensor<4 x 8 x f16>
  ait.output "y6" %6 : !ait.tensor<4 x 8 x f16>
  ait.output "y7" %7 : !ait.tensor<3 x 8 x f16>
}
