// RUN: ait-opt %s -p order-scatters | filecheck %s
// RUN: ait-opt %s -p order-scatters --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// RUN: ait-opt %s -p 'order-scatters{target="cpu"}' | filecheck %s --check-prefix=CPU
// RUN: ait-opt %s -p 'order-scatters{target="cuda" arch="sm_90a"}' | filecheck %s --check-prefix=CARD
// RUN: ait-opt %s -p 'order-scatters{target="rocm" arch="gfx90a"}' | filecheck %s --check-prefix=CARD

// Scatters by equal indices share one order of their places, so that a card sorts these once.

// SEMANTICS: evaluations compared, no difference
// CPU-NOT: ait.order

// Two layers take the row of the edges anew, of other widths and types, along another dim, and combine otherwise.
// CHECK-LABEL: ait.graph @layers
// CHECK: [[FLAT:%.*]] = ait.reshape {{.*}} : !ait.tensor<edges x i64>
// CHECK: [[K:%.*]], [[P:%.*]] = ait.order [[FLAT]] sizes [500] : !ait.tensor<edges x i32>, !ait.tensor<edges x i32>
// CHECK-NEXT: ait.segment_loops add %x dims [0] kept [1] order [[K]], [[P]] of(%v) for (d0 = edges, d1 = 8) {
// CHECK-NOT: ait.order
// CHECK: ait.segment_loops max %y dims [1] kept [0] order [[K]], [[P]] of(%w) for (d0 = 3, d1 = edges) {
// CARD-LABEL: ait.graph @layers
// CARD: [[K:%.*]], [[P:%.*]] = ait.order
// CARD: ait.segment_loops add {{.*}} order [[K]], [[P]]
// CARD-NOT: ait.order
// CARD: ait.segment_loops max {{.*}} order [[K]], [[P]]
ait.graph @layers(%x: !ait.tensor<500 x 8 x f32>, %v: !ait.tensor<edges x 8 x f32>, %y: !ait.tensor<3 x 500 x f16>, %w: !ait.tensor<3 x edges x f16>, %i: !ait.tensor<2 x edges x i64>) dims {edges = 1 to 40000} {
  %0 = ait.slice %i offsets [1, 0] : !ait.tensor<1 x edges x i64>
  %1 = ait.reshape %0 : !ait.tensor<edges x 1 x i64>
  %2 = ait.scatter add %x, %v at(%1) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %3 = ait.slice %i offsets [1, 0] : !ait.tensor<1 x edges x i64>
  %4 = ait.scatter max %y, %w at(%3) dims [1] kept [0] : !ait.tensor<3 x 500 x f16>
  ait.output "y" %2 : !ait.tensor<500 x 8 x f32>
  ait.output "z" %4 : !ait.tensor<3 x 500 x f16>
}

// The other row of the edges, and elements of a tensor of another size, have orders of their own. On a card, a scatter of
// an order of its own needs no copy of the tensor; one that updates its tensor in place gains nothing.
// CHECK-LABEL: ait.graph @others
// CHECK-COUNT-3: ait.order
// CHECK-NOT: ait.order
// CARD-LABEL: ait.graph @others
// CARD: ait.order {{.*}} sizes [500]
// CARD: ait.segment_loops add %x
// CARD: ait.scatter add {{.*}} dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
// CARD: ait.order {{.*}} sizes [501]
// CARD: ait.segment_loops add %y
// CARD-NOT: ait.order
// CARD: ait.output
ait.graph @others(%x: !ait.tensor<500 x 8 x f32>, %v: !ait.tensor<9000 x 8 x f32>, %y: !ait.tensor<501 x 8 x f32>, %i: !ait.tensor<2 x 9000 x i64>) {
  %0 = ait.slice %i offsets [1, 0] : !ait.tensor<1 x 9000 x i64>
  %1 = ait.reshape %0 : !ait.tensor<9000 x 1 x i64>
  %2 = ait.scatter add %x, %v at(%1) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %3 = ait.slice %i offsets [0, 0] : !ait.tensor<1 x 9000 x i64>
  %4 = ait.reshape %3 : !ait.tensor<9000 x 1 x i64>
  %5 = ait.scatter add %2, %v at(%4) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %6 = ait.scatter add %y, %v at(%1) dims [0] kept [1] : !ait.tensor<501 x 8 x f32>
  ait.output "y" %5 : !ait.tensor<500 x 8 x f32>
  ait.output "z" %6 : !ait.tensor<501 x 8 x f32>
}

// Two index tensors, whose dims differ; their places are in the order of the space.
// CHECK-LABEL: ait.graph @pairs
// CHECK: [[A:%.*]] = ait.reshape %i : !ait.tensor<90 x 1 x i64>
// CHECK: [[K:%.*]], [[P:%.*]] = ait.order [[A]], %j sizes [7, 9] : !ait.tensor<9000 x i32>, !ait.tensor<9000 x i32>
// CHECK: ait.segment_loops add {{.*}} dims [0, 2] kept [1] order [[K]], [[P]]
// CHECK-NOT: ait.order
// CHECK: ait.scatter mul {{.*}} dims [0, 2] kept [1] order [[K]], [[P]]
// CARD-LABEL: ait.graph @pairs
// CARD: ait.order
// CARD-NOT: ait.order
// CARD: ait.output
ait.graph @pairs(%x: !ait.tensor<7 x 5 x 9 x f32>, %v: !ait.tensor<90 x 5 x 100 x f32>, %i: !ait.tensor<90 x 1 x 1 x i64>, %j: !ait.tensor<100 x i64>) {
  %0 = ait.scatter add %x, %v at(%i, %j) dims [0, 2] kept [1] : !ait.tensor<7 x 5 x 9 x f32>
  %1 = ait.scatter mul %0, %v at(%i, %j) dims [0, 2] kept [1] : !ait.tensor<7 x 5 x 9 x f32>
  ait.output "y" %1 : !ait.tensor<7 x 5 x 9 x f32>
}

// No order serves an index that differs along a kept dim, or one for all values.
// CHECK-LABEL: ait.graph @unordered
// CHECK-NOT: ait.order
// CHECK: ait.output
ait.graph @unordered(%x: !ait.tensor<500 x 8 x f32>, %v: !ait.tensor<9000 x 8 x f32>, %i: !ait.tensor<9000 x 8 x i64>, %j: !ait.tensor<1 x 1 x i64>) {
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %1 = ait.scatter add %0, %v at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %2 = ait.scatter add %1, %v at(%j) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  ait.output "y" %2 : !ait.tensor<500 x 8 x f32>
}

// A card does not sort few places, integers that atomics add, and values of which the last counts.
// CHECK-LABEL: ait.graph @unsorted
// CHECK-COUNT-3: ait.order
// CHECK-NOT: ait.order
// CARD-LABEL: ait.graph @unsorted
// CARD-NOT: ait.order
// CARD: ait.output
ait.graph @unsorted(%x: !ait.tensor<500 x 8 x f32>, %v: !ait.tensor<64 x 8 x f32>, %w: !ait.tensor<9000 x 8 x f32>, %y: !ait.tensor<500 x 8 x i32>, %u: !ait.tensor<9000 x 8 x i32>, %i: !ait.tensor<64 x 1 x i64>, %j: !ait.tensor<9000 x 1 x i64>, %k: !ait.tensor<9000 x 1 x i64>) {
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %1 = ait.scatter add %0, %v at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %2 = ait.scatter add %y, %u at(%j) dims [0] kept [1] : !ait.tensor<500 x 8 x i32>
  %3 = ait.scatter add %2, %u at(%j) dims [0] kept [1] : !ait.tensor<500 x 8 x i32>
  %4 = ait.scatter set %1, %w at(%k) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %5 = ait.scatter set %4, %w at(%k) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  ait.output "y" %5 : !ait.tensor<500 x 8 x f32>
  ait.output "z" %3 : !ait.tensor<500 x 8 x i32>
}

// The counts of a mean have the indices of the sums, but atomics count.
// CHECK-LABEL: ait.graph @mean
// CHECK: [[K:%.*]], [[P:%.*]] = ait.order %i
// CHECK: ait.scatter add %c, {{.*}} dims [0] kept [] order [[K]], [[P]] : !ait.tensor<500 x i32>
// CARD-LABEL: ait.graph @mean
// CARD: [[K:%.*]], [[P:%.*]] = ait.order
// CARD: ait.scatter add %c, %one at(%i) dims [0] kept [] : !ait.tensor<500 x i32>
// CARD: ait.segment_loops add %x {{.*}} order [[K]], [[P]]
// CARD: ait.scatter add {{.*}} order [[K]], [[P]]
ait.graph @mean(%x: !ait.tensor<500 x 8 x f32>, %v: !ait.tensor<9000 x 8 x f32>, %c: !ait.tensor<500 x i32>, %one: !ait.tensor<1 x i32>, %i: !ait.tensor<9000 x i64>) {
  %0 = ait.scatter add %c, %one at(%i) dims [0] kept [] : !ait.tensor<500 x i32>
  %1 = ait.reshape %i : !ait.tensor<9000 x 1 x i64>
  %2 = ait.scatter add %x, %v at(%1) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %3 = ait.scatter add %2, %v at(%1) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  ait.output "y" %3 : !ait.tensor<500 x 8 x f32>
  ait.output "c" %0 : !ait.tensor<500 x i32>
}

// A scatter with an order computes its values: rows of the layer before, scaled.
// CHECK-LABEL: ait.graph @messages
// CHECK: [[K:%.*]], [[P:%.*]] = ait.order %i
// CHECK: ait.segment_loops add %x dims [0] kept [1] order [[K]], [[P]] of(%j, %t) for (d0 = 9000, d1 = 8) {
// CHECK: ait.scatter_loops add {{.*}} dims [0] kept [1] order [[K]], [[P]] of({{.*}}) for (d0 = 9000, d1 = 8) {
// CHECK-NOT: ait.loops
// CHECK: ait.output
// CARD-LABEL: ait.graph @messages
// CARD: ait.segment_loops
// CARD: ait.scatter_loops
ait.graph @messages(%x: !ait.tensor<500 x 8 x f32>, %t: !ait.tensor<70 x 8 x f32>, %w: !ait.tensor<9000 x f32>, %i: !ait.tensor<9000 x i64>, %j: !ait.tensor<9000 x i64>) {
  %0 = ait.embedding %t, %j : !ait.tensor<9000 x 8 x f32>
  %1 = ait.reshape %i : !ait.tensor<9000 x 1 x i64>
  %2 = ait.scatter add %x, %0 at(%1) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %3 = ait.loops(%2, %j, %w) for (d0 = 9000, d1 = 8) {
  ^bb0(%4: !ait.tensor<500 x 8 x f32>, %5: !ait.tensor<9000 x i64>, %6: !ait.tensor<9000 x f32>):
    %7 = ait.at %5[d0] : i64
    %8 = ait.at %4[%7, d1] : f32
    %9 = ait.at %6[d0] : f32
    %10 = ait.mul %8, %9 : f32
    ait.yield %10 : f32
  } : !ait.tensor<9000 x 8 x f32>
  %11 = ait.scatter add %2, %3 at(%1) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  ait.output "y" %11 : !ait.tensor<500 x 8 x f32>
}

// Values that others read, one value for all places, a norm of rows, and values of an index that is divided stay apart.
// The first scatter reads its values from memory.
// CHECK-LABEL: ait.graph @apart
// CHECK: ait.segment_loops add %x dims [0] kept [1] order {{.*}} of(%0) for (d0 = 9000, d1 = 8) {
// CHECK-COUNT-3: ait.scatter add
// CHECK-NOT: ait.scatter_loops
// CHECK: ait.output
ait.graph @apart(%x: !ait.tensor<500 x 8 x f32>, %t: !ait.tensor<70 x 8 x f32>, %v: !ait.tensor<9000 x 8 x f32>, %u: !ait.tensor<900 x 8 x f32>, %i: !ait.tensor<9000 x 1 x i64>, %j: !ait.tensor<9000 x i64>) {
  %0 = ait.embedding %t, %j : !ait.tensor<9000 x 8 x f32>
  %1 = ait.scatter add %x, %0 at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %2 = ait.constant 1.0 : !ait.tensor<1 x 1 x f32>
  %3 = ait.scatter add %1, %2 at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %4 = ait.softmax %v dim 1 : !ait.tensor<9000 x 8 x f32>
  %5 = ait.scatter add %3, %4 at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %6 = ait.loops(%u) for (d0 = 9000, d1 = 8) {
  ^bb0(%7: !ait.tensor<900 x 8 x f32>):
    %8 = ait.at %7[d0 floordiv 10, d1] : f32
    ait.yield %8 : f32
  } : !ait.tensor<9000 x 8 x f32>
  %9 = ait.scatter add %5, %6 at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  ait.output "y" %9 : !ait.tensor<500 x 8 x f32>
  ait.output "v" %0 : !ait.tensor<9000 x 8 x f32>
}

// A result of its own where the tensor would be copied: a number that fills it, a param, an input.
// CHECK-LABEL: ait.graph @copied
// CHECK-COUNT-3: ait.segment_loops
// CARD-LABEL: ait.graph @copied
// CARD-COUNT-3: ait.segment_loops
ait.graph @copied(%x: !ait.tensor<nodes x 8 x f16>, %v: !ait.tensor<edges x 8 x f16>, %i: !ait.tensor<edges x 1 x i64>) dims {nodes = 1 to 500, edges = 0 to 9000} {
  %p = ait.param "p" : !ait.tensor<700 x 8 x f16>
  %n = ait.constant 0.0 : !ait.tensor<f16>
  %z = ait.expand %n : !ait.tensor<nodes x 8 x f16>
  %0 = ait.scatter add %z, %v at(%i) dims [0] kept [1] : !ait.tensor<nodes x 8 x f16>
  %1 = ait.scatter max %x, %v at(%i) dims [0] kept [1] : !ait.tensor<nodes x 8 x f16>
  %2 = ait.scatter mul %p, %v at(%i) dims [0] kept [1] : !ait.tensor<700 x 8 x f16>
  ait.output "z" %0 : !ait.tensor<nodes x 8 x f16>
  ait.output "x" %1 : !ait.tensor<nodes x 8 x f16>
  ait.output "p" %2 : !ait.tensor<700 x 8 x f16>
}

// In place of an input, of a value that an op computes, and where not all columns are combined with values.
// CHECK-LABEL: ait.graph @in_place
// CHECK-NOT: ait.segment_loops
// CHECK-COUNT-3: ait.scatter add {{.*}} order
// CARD-LABEL: ait.graph @in_place
// CARD-NOT: ait.segment_loops
// CARD: ait.output
ait.graph @in_place(%x: !ait.tensor<500 x 8 x f32> donated, %y: !ait.tensor<500 x 8 x f32>, %u: !ait.tensor<500 x 9 x f32>, %v: !ait.tensor<9000 x 8 x f32>, %i: !ait.tensor<9000 x 1 x i64>) {
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %1 = ait.tanh %y : !ait.tensor<500 x 8 x f32>
  %2 = ait.scatter add %1, %v at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %3 = ait.scatter add %u, %v at(%i) dims [0] kept [1] : !ait.tensor<500 x 9 x f32>
  ait.output "x" %0 in place of %x : !ait.tensor<500 x 8 x f32>
  ait.output "y" %2 : !ait.tensor<500 x 8 x f32>
  ait.output "u" %3 : !ait.tensor<500 x 9 x f32>
}

// What follows from single elements of a result of its own is computed where that is written: a mean of rows, with a
// bias; a cast of loops, one row of a dim of 1.
// CHECK-LABEL: ait.graph @followed
// CHECK: ait.segment_loops add {{.*}} of(%v) for (d0 = edges, d1 = 8) {
// CHECK: } then(%degree, %bias) {
// CHECK: ait.loops({{.*}}) for (e0 = nodes, e1 = 8) {
// CHECK: ait.segment_loops max {{.*}} of(%w) for (d0 = edges, d1 = 1) {
// CHECK: } then() {
// CHECK: } : !ait.tensor<nodes x 1 x f32>
// CARD-LABEL: ait.graph @followed
// CARD-COUNT-2: } then(
ait.graph @followed(%v: !ait.tensor<edges x 8 x f16>, %w: !ait.tensor<edges x 1 x f16>, %x: !ait.tensor<nodes x 1 x f16>, %i: !ait.tensor<edges x 1 x i64>, %degree: !ait.tensor<nodes x 1 x f16>, %bias: !ait.tensor<8 x f16>) dims {nodes = 1 to 500, edges = 0 to 9000} {
  %n = ait.constant 0.0 : !ait.tensor<f16>
  %z = ait.expand %n : !ait.tensor<nodes x 8 x f16>
  %0 = ait.scatter add %z, %v at(%i) dims [0] kept [1] : !ait.tensor<nodes x 8 x f16>
  %1 = ait.fused_elementwise(%0, %degree, %bias) {
  ^bb0(%2: f32, %3: f32, %4: f32):
    %5 = ait.div %2, %3 : f32
    %6 = ait.add %5, %4 : f32
    %7 = ait.relu %6 : f32
    ait.yield %7 : f32
  } : !ait.tensor<nodes x 8 x f16>
  %8 = ait.scatter max %x, %w at(%i) dims [0] kept [1] : !ait.tensor<nodes x 1 x f16>
  %9 = ait.cast %8 : !ait.tensor<nodes x 1 x f32>
  ait.output "y" %1 : !ait.tensor<nodes x 8 x f16>
  ait.output "m" %9 : !ait.tensor<nodes x 1 x f32>
}

// Not where others read the result, where elements of other places are read, in a fold, for more elements than the result
// has, and where the result takes the place of an input.
// CHECK-LABEL: ait.graph @not_followed
// CHECK-COUNT-5: ait.segment_loops
// CHECK-NOT: then
// CARD-LABEL: ait.graph @not_followed
// CARD-COUNT-5: ait.segment_loops
// CARD-NOT: then
ait.graph @not_followed(%x: !ait.tensor<500 x 8 x f32>, %r: !ait.tensor<500 x 8 x f32> donated, %u: !ait.tensor<3 x 500 x 8 x f32>, %v: !ait.tensor<9000 x 8 x f32>, %i: !ait.tensor<9000 x 1 x i64>) {
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %1 = ait.tanh %0 : !ait.tensor<500 x 8 x f32>
  %2 = ait.scatter max %x, %v at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %3 = ait.loops(%2) for (d0 = 500, d1 = 8) {
  ^bb0(%a: !ait.tensor<500 x 8 x f32>):
    %4 = ait.at %a[499 - d0, d1] : f32
    ait.yield %4 : f32
  } : !ait.tensor<500 x 8 x f32>
  %5 = ait.scatter min %x, %v at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %6 = ait.loops(%5) for (d0 = 500, d1 = 8) {
  ^bb0(%b: !ait.tensor<500 x 8 x f32>):
    %7 = ait.fold add for (k0 = 8) {
      %8 = ait.at %b[d0, k0] : f32
      ait.yield %8 : f32
    } : f32
    %9 = ait.at %b[d0, d1] : f32
    %10 = ait.div %9, %7 : f32
    ait.yield %10 : f32
  } : !ait.tensor<500 x 8 x f32>
  %11 = ait.scatter mul %x, %v at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %12 = ait.add %u, %11 : !ait.tensor<3 x 500 x 8 x f32>
  %n = ait.constant 1.0 : !ait.tensor<500 x 8 x f32>
  %13 = ait.scatter add %n, %v at(%i) dims [0] kept [1] : !ait.tensor<500 x 8 x f32>
  %14 = ait.add %r, %13 : !ait.tensor<500 x 8 x f32>
  ait.output "0" %0 : !ait.tensor<500 x 8 x f32>
  ait.output "1" %1 : !ait.tensor<500 x 8 x f32>
  ait.output "3" %3 : !ait.tensor<500 x 8 x f32>
  ait.output "6" %6 : !ait.tensor<500 x 8 x f32>
  ait.output "12" %12 : !ait.tensor<3 x 500 x 8 x f32>
  ait.output "r" %14 in place of %r : !ait.tensor<500 x 8 x f32>
}
