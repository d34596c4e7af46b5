// RUN: ait-opt %s -p fuse-expand-bmm | filecheck %s --check-prefix=EXPAND
// RUN: ait-opt %s -p expand-batches | filecheck %s --check-prefix=LOOPS
// RUN: ait-opt %s -p fuse-bmm-permute | filecheck %s --check-prefix=STORED
// RUN: ait-opt %s -p fuse-mm-reshape-permute | filecheck %s --check-prefix=HEADS
// RUN: ait-opt %s -p fuse-parallel-gemms | filecheck %s --check-prefix=SIDE
// RUN: ait-opt %s -p join-parallel-gemms | filecheck %s --check-prefix=JOIN
// RUN: ait-opt %s -p part-batches | filecheck %s --check-prefix=BATCH
// RUN: ait-opt %s -p fuse-expand-bmm,expand-batches,fuse-bmm-permute,fuse-mm-reshape-permute,fuse-parallel-gemms,join-parallel-gemms --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// What the other factor has in its batch need not be repeated; a factor of two dims has no batch.
// EXPAND-LABEL: ait.graph @repeated
ait.graph @repeated(%x: !ait.tensor<1 x 3 x 4 x f32>, %v: !ait.tensor<4 x 2 x f32>, %z: !ait.tensor<b x 4 x 2 x f32>) dims {b = 1 to 4} {
  // EXPAND-NEXT: ait.bmm rrr %x, %z : !ait.tensor<b x 3 x 2 x f32>
  %0 = ait.expand %x : !ait.tensor<b x 3 x 4 x f32>
  %1 = ait.bmm rrr %0, %z : !ait.tensor<b x 3 x 2 x f32>
  // EXPAND-NEXT: ait.bmm crr %z, %v epilogue
  %2 = ait.expand %v : !ait.tensor<b x 4 x 2 x f32>
  %3 = ait.bmm crr %z, %2 epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<b x 2 x 2 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 3 x 2 x f32>
  ait.output "y3" %3 : !ait.tensor<b x 2 x 2 x f32>
}

// An expand that also enlarges M; one whose batch the other factor does not have; a product that is selected already.
// EXPAND-LABEL: ait.graph @not_repeated
ait.graph @not_repeated(%x: !ait.tensor<1 x 1 x 4 x f32>, %z: !ait.tensor<5 x 4 x 2 x f32>, %v: !ait.tensor<1 x 4 x 2 x f32>) {
  // EXPAND-NEXT: %0 = ait.expand %x : !ait.tensor<5 x 3 x 4 x f32>
  // EXPAND-NEXT: ait.bmm rrr %0, %z
  %0 = ait.expand %x : !ait.tensor<5 x 3 x 4 x f32>
  %1 = ait.bmm rrr %0, %z : !ait.tensor<5 x 3 x 2 x f32>
  // EXPAND-NEXT: %2 = ait.expand %x : !ait.tensor<5 x 1 x 4 x f32>
  // EXPAND-NEXT: ait.bmm rrr %2, %v
  // EXPAND-NEXT: ait.bmm rrr %2, %z
  %2 = ait.expand %x : !ait.tensor<5 x 1 x 4 x f32>
  %3 = ait.bmm rrr %2, %v : !ait.tensor<5 x 1 x 2 x f32>
  %4 = ait.bmm rrr %2, %z {kernel = #ait.kernel<"native", {}>} : !ait.tensor<5 x 1 x 2 x f32>
  // EXPAND-NEXT: %5 = ait.expand %v : !ait.tensor<5 x 4 x 2 x f32>
  // EXPAND-NEXT: ait.bmm rrr %x, %5
  // EXPAND-NEXT: ait.bmm crr %z, %5
  %5 = ait.expand %v : !ait.tensor<5 x 4 x 2 x f32>
  %6 = ait.bmm rrr %x, %5 : !ait.tensor<5 x 1 x 2 x f32>
  %7 = ait.bmm crr %z, %5 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<5 x 2 x 2 x f32>
  ait.output "y1" %1 : !ait.tensor<5 x 3 x 2 x f32>
  ait.output "y3" %3 : !ait.tensor<5 x 1 x 2 x f32>
  ait.output "y4" %4 : !ait.tensor<5 x 1 x 2 x f32>
  ait.output "y6" %6 : !ait.tensor<5 x 1 x 2 x f32>
  ait.output "y7" %7 : !ait.tensor<5 x 2 x 2 x f32>
}

// Without the expand the product would have three loops over its batch; with two loops it goes.
// EXPAND-LABEL: ait.graph @three_loops
ait.graph @three_loops(%x: !ait.tensor<2 x 3 x 2 x 4 x f32>, %z: !ait.tensor<2 x 1 x 4 x 2 x f32>, %u: !ait.tensor<2 x 1 x 2 x 2 x 4 x f32>, %v: !ait.tensor<2 x 3 x 2 x 4 x 2 x f32>) {
  // EXPAND-NEXT: ait.bmm rrr %x, %z : !ait.tensor<2 x 3 x 2 x 2 x f32>
  %0 = ait.expand %z : !ait.tensor<2 x 3 x 4 x 2 x f32>
  %1 = ait.bmm rrr %x, %0 : !ait.tensor<2 x 3 x 2 x 2 x f32>
  // EXPAND-NEXT: [[U:%.*]] = ait.expand %u : !ait.tensor<2 x 3 x 2 x 2 x 4 x f32>
  // EXPAND-NEXT: ait.bmm rrr [[U]], %v
  %2 = ait.expand %u : !ait.tensor<2 x 3 x 2 x 2 x 4 x f32>
  %3 = ait.bmm rrr %2, %v : !ait.tensor<2 x 3 x 2 x 2 x 2 x f32>
  ait.output "y1" %1 : !ait.tensor<2 x 3 x 2 x 2 x f32>
  ait.output "y3" %3 : !ait.tensor<2 x 3 x 2 x 2 x 2 x f32>
}

// Three loops over the batch: of both factors, of the first with an epilogue. Two loops; a product that is selected already.
// LOOPS-LABEL: ait.graph @many_loops
ait.graph @many_loops(%x: !ait.tensor<b x 1 x 3 x 2 x 4 x f32>, %y: !ait.tensor<1 x 5 x 1 x 4 x 2 x f32>, %z: !ait.tensor<b x 5 x 3 x 4 x 2 x f32>, %u: !ait.tensor<b x 1 x 1 x 2 x 4 x f32>) dims {b = 2 to 4} {
  // LOOPS-NEXT: [[Y:%.*]] = ait.expand %y : !ait.tensor<b x 5 x 3 x 4 x 2 x f32>
  // LOOPS-NEXT: [[X:%.*]] = ait.expand %x : !ait.tensor<b x 5 x 3 x 2 x 4 x f32>
  // LOOPS-NEXT: ait.bmm rrr [[X]], [[Y]] : !ait.tensor<b x 5 x 3 x 2 x 2 x f32>
  %0 = ait.bmm rrr %x, %y : !ait.tensor<b x 5 x 3 x 2 x 2 x f32>
  // LOOPS-NEXT: [[X:%.*]] = ait.expand %x : !ait.tensor<b x 5 x 3 x 2 x 4 x f32>
  // LOOPS-NEXT: ait.bmm rrr [[X]], %z epilogue
  // LOOPS: ait.bmm rrr %u, %z
  // LOOPS-NEXT: ait.bmm rrr %u, %y
  // LOOPS-NEXT: ait.bmm rrr %x, %z {kernel
  %1 = ait.bmm rrr %x, %z epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<b x 5 x 3 x 2 x 2 x f32>
  %2 = ait.bmm rrr %u, %z : !ait.tensor<b x 5 x 3 x 2 x 2 x f32>
  %3 = ait.bmm rrr %u, %y : !ait.tensor<b x 5 x 1 x 2 x 2 x f32>
  %4 = ait.bmm rrr %x, %z {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 5 x 3 x 2 x 2 x f32>
  ait.output "y0" %0 : !ait.tensor<b x 5 x 3 x 2 x 2 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 5 x 3 x 2 x 2 x f32>
  ait.output "y2" %2 : !ait.tensor<b x 5 x 3 x 2 x 2 x f32>
  ait.output "y3" %3 : !ait.tensor<b x 5 x 1 x 2 x 2 x f32>
  ait.output "y4" %4 : !ait.tensor<b x 5 x 3 x 2 x 2 x f32>
}

// STORED-LABEL: ait.graph @stored
ait.graph @stored(%x: !ait.tensor<b x 3 x 4 x f32>, %z: !ait.tensor<b x 5 x 4 x f32>, %a: !ait.tensor<3 x 4 x f32>) dims {b = 1 to 4} {
  // STORED-NEXT: ait.bmm rcc %x, %z : !ait.tensor<b x 5 x 3 x f32>
  %0 = ait.bmm rcr %x, %z : !ait.tensor<b x 3 x 5 x f32>
  %1 = ait.permute %0 [0, 2, 1] : !ait.tensor<b x 5 x 3 x f32>
  // STORED-NEXT: ait.bmm rcr %x, %z : !ait.tensor<b x 3 x 5 x f32>
  %2 = ait.bmm rcc %x, %z : !ait.tensor<b x 5 x 3 x f32>
  %3 = ait.permute %2 [0, 2, 1] : !ait.tensor<b x 3 x 5 x f32>
  // STORED-NEXT: ait.gemm rcc %a, %a : !ait.tensor<3 x 3 x f32>
  %4 = ait.gemm rcr %a, %a : !ait.tensor<3 x 3 x f32>
  %5 = ait.permute %4 [1, 0] : !ait.tensor<3 x 3 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 5 x 3 x f32>
  ait.output "y3" %3 : !ait.tensor<b x 3 x 5 x f32>
  ait.output "y5" %5 : !ait.tensor<3 x 3 x f32>
}

// Another order; another reader; an epilogue; a selected product; leading dims of a gemm, which belong to M.
// STORED-LABEL: ait.graph @not_stored
ait.graph @not_stored(%x: !ait.tensor<2 x 3 x 4 x f32>, %z: !ait.tensor<2 x 5 x 4 x f32>) {
  %w = ait.param "w" : !ait.tensor<5 x 4 x f32>
  // STORED: ait.bmm rcr %x, %z : !ait.tensor<2 x 3 x 5 x f32>
  // STORED-NEXT: ait.permute %{{.*}} [1, 0, 2]
  %0 = ait.bmm rcr %x, %z : !ait.tensor<2 x 3 x 5 x f32>
  %1 = ait.permute %0 [1, 0, 2] : !ait.tensor<3 x 2 x 5 x f32>
  // STORED-NEXT: [[Y:%.*]] = ait.bmm rcr %z, %x : !ait.tensor<2 x 5 x 3 x f32>
  // STORED-NEXT: ait.permute [[Y]] [0, 2, 1]
  %2 = ait.bmm rcr %z, %x : !ait.tensor<2 x 5 x 3 x f32>
  %3 = ait.permute %2 [0, 2, 1] : !ait.tensor<2 x 3 x 5 x f32>
  // STORED-NEXT: [[Y:%.*]] = ait.bmm rcr %x, %x epilogue() {
  // STORED: } : !ait.tensor<2 x 3 x 3 x f32>
  // STORED-NEXT: ait.permute [[Y]] [0, 2, 1]
  %4 = ait.bmm rcr %x, %x epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<2 x 3 x 3 x f32>
  %5 = ait.permute %4 [0, 2, 1] : !ait.tensor<2 x 3 x 3 x f32>
  // STORED-NEXT: [[Y:%.*]] = ait.bmm rcr %z, %z {
  // STORED-NEXT: ait.permute [[Y]] [0, 2, 1]
  %6 = ait.bmm rcr %z, %z {kernel = #ait.kernel<"native", {}>} : !ait.tensor<2 x 5 x 5 x f32>
  %7 = ait.permute %6 [0, 2, 1] : !ait.tensor<2 x 5 x 5 x f32>
  // STORED-NEXT: [[Y:%.*]] = ait.gemm rcr %x, %w
  // STORED-NEXT: ait.permute [[Y]] [0, 2, 1]
  %8 = ait.gemm rcr %x, %w : !ait.tensor<2 x 3 x 5 x f32>
  %9 = ait.permute %8 [0, 2, 1] : !ait.tensor<2 x 5 x 3 x f32>
  ait.output "y1" %1 : !ait.tensor<3 x 2 x 5 x f32>
  ait.output "y2" %2 : !ait.tensor<2 x 5 x 3 x f32>
  ait.output "y3" %3 : !ait.tensor<2 x 3 x 5 x f32>
  ait.output "y5" %5 : !ait.tensor<2 x 3 x 3 x f32>
  ait.output "y7" %7 : !ait.tensor<2 x 5 x 5 x f32>
  ait.output "y9" %9 : !ait.tensor<2 x 5 x 3 x f32>
}

// The same of a gemm; a permute that moves nothing.
// STORED-LABEL: ait.graph @gemm_not_stored
ait.graph @gemm_not_stored(%x: !ait.tensor<3 x 4 x f32>, %z: !ait.tensor<5 x 4 x f32>) {
  // STORED-NEXT: [[Y:%.*]] = ait.gemm rcr %x, %z
  // STORED-NEXT: ait.permute [[Y]] [1, 0]
  %0 = ait.gemm rcr %x, %z : !ait.tensor<3 x 5 x f32>
  %1 = ait.permute %0 [1, 0] : !ait.tensor<5 x 3 x f32>
  // STORED-NEXT: [[Y:%.*]] = ait.gemm rcr %x, %x epilogue() {
  // STORED: } : !ait.tensor<3 x 3 x f32>
  // STORED-NEXT: ait.permute [[Y]] [1, 0]
  %2 = ait.gemm rcr %x, %x epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<3 x 3 x f32>
  %3 = ait.permute %2 [1, 0] : !ait.tensor<3 x 3 x f32>
  // STORED-NEXT: [[Y:%.*]] = ait.gemm rcr %z, %z {
  // STORED-NEXT: ait.permute [[Y]] [1, 0]
  %4 = ait.gemm rcr %z, %z {kernel = #ait.kernel<"native", {}>} : !ait.tensor<5 x 5 x f32>
  %5 = ait.permute %4 [1, 0] : !ait.tensor<5 x 5 x f32>
  // STORED-NEXT: [[Y:%.*]] = ait.gemm rcr %z, %x : !ait.tensor<5 x 3 x f32>
  // STORED-NEXT: ait.permute [[Y]] [0, 1]
  %6 = ait.gemm rcr %z, %x : !ait.tensor<5 x 3 x f32>
  %7 = ait.permute %6 [0, 1] : !ait.tensor<5 x 3 x f32>
  ait.output "y0" %0 : !ait.tensor<3 x 5 x f32>
  ait.output "y1" %1 : !ait.tensor<5 x 3 x f32>
  ait.output "y3" %3 : !ait.tensor<3 x 3 x f32>
  ait.output "y5" %5 : !ait.tensor<5 x 5 x f32>
  ait.output "y7" %7 : !ait.tensor<5 x 3 x f32>
}

// HEADS-LABEL: ait.graph @heads
ait.graph @heads(%x: !ait.tensor<b x s x 8 x f32>) dims {b = 1 to 3, s = 1 to 4} {
  %w = ait.param "w" : !ait.tensor<12 x 8 x f32>
  // HEADS: [[X:%.*]] = ait.reshape %x : !ait.tensor<b x 1 x s x 8 x f32>
  // HEADS-NEXT: [[W:%.*]] = ait.reshape %w : !ait.tensor<3 x 4 x 8 x f32>
  // HEADS-NEXT: ait.bmm rcr [[X]], [[W]] : !ait.tensor<b x 3 x s x 4 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x s x 12 x f32>
  %1 = ait.reshape %0 : !ait.tensor<b x s x 3 x 4 x f32>
  %2 = ait.permute %1 [0, 2, 1, 3] : !ait.tensor<b x 3 x s x 4 x f32>
  ait.output "y" %2 : !ait.tensor<b x 3 x s x 4 x f32>
}

// Weights with rows of K; a bias; a function behind it; a batched product, with weights of its own batch or of none.
// HEADS-LABEL: ait.graph @further_heads
ait.graph @further_heads(%x: !ait.tensor<(2*b) x 8 x f32>, %y: !ait.tensor<b x 3 x 8 x f32>, %z: !ait.tensor<8 x 12 x f32>, %u: !ait.tensor<b x 12 x 8 x f32>, %c: !ait.tensor<12 x f32>)
  dims {b = 1 to 3} {
  // HEADS: [[X:%.*]] = ait.reshape %x : !ait.tensor<b x 1 x 2 x 8 x f32>
  // HEADS-NEXT: [[W:%.*]] = ait.reshape %z : !ait.tensor<8 x 3 x 4 x f32>
  // HEADS-NEXT: [[V:%.*]] = ait.permute [[W]] [1, 0, 2] : !ait.tensor<3 x 8 x 4 x f32>
  // HEADS-NEXT: [[C:%.*]] = ait.reshape %c : !ait.tensor<3 x 1 x 4 x f32>
  // HEADS-NEXT: ait.bmm rrr [[X]], [[V]] epilogue([[C]]) {
  // HEADS: ait.add
  // HEADS: ait.relu
  // HEADS: } : !ait.tensor<b x 3 x 2 x 4 x f32>
  %0 = ait.gemm rrr %x, %z epilogue(%c) {
  ^bb0(%acc: f32, %d: f32):
    %s = ait.add %acc, %d : f32
    %r = ait.relu %s : f32
    ait.yield %r : f32
  } : !ait.tensor<(2*b) x 12 x f32>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x 4 x f32>
  %2 = ait.permute %1 [0, 2, 1, 3] : !ait.tensor<b x 3 x 2 x 4 x f32>
  // HEADS-NEXT: [[X:%.*]] = ait.reshape %y : !ait.tensor<b x 1 x 3 x 8 x f32>
  // HEADS-NEXT: [[W:%.*]] = ait.reshape %u : !ait.tensor<b x 3 x 4 x 8 x f32>
  // HEADS-NEXT: ait.bmm rcr [[X]], [[W]] : !ait.tensor<b x 3 x 3 x 4 x f32>
  %3 = ait.bmm rcr %y, %u : !ait.tensor<b x 3 x 12 x f32>
  %4 = ait.reshape %3 : !ait.tensor<b x 3 x 3 x 4 x f32>
  %5 = ait.permute %4 [0, 2, 1, 3] : !ait.tensor<b x 3 x 3 x 4 x f32>
  // HEADS-NEXT: [[X:%.*]] = ait.reshape %y : !ait.tensor<b x 1 x 3 x 8 x f32>
  // HEADS-NEXT: [[W:%.*]] = ait.reshape %z : !ait.tensor<8 x 2 x 6 x f32>
  // HEADS-NEXT: [[V:%.*]] = ait.permute [[W]] [1, 0, 2] : !ait.tensor<2 x 8 x 6 x f32>
  // HEADS-NEXT: ait.bmm rrr [[X]], [[V]] : !ait.tensor<b x 2 x 3 x 6 x f32>
  %6 = ait.bmm rrr %y, %z : !ait.tensor<b x 3 x 12 x f32>
  %7 = ait.reshape %6 : !ait.tensor<b x 3 x 2 x 6 x f32>
  %8 = ait.permute %7 [0, 2, 1, 3] : !ait.tensor<b x 2 x 3 x 6 x f32>
  ait.output "y2" %2 : !ait.tensor<b x 3 x 2 x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<b x 3 x 3 x 4 x f32>
  ait.output "y8" %8 : !ait.tensor<b x 2 x 3 x 6 x f32>
}

// Parts that join rows and columns; another order; other readers; a selected product; a result in columns; an epilogue that adds a
// number for each row, or a whole matrix, or that has two results.
// HEADS-LABEL: ait.graph @no_heads
ait.graph @no_heads(%x: !ait.tensor<4 x 6 x f32>, %z: !ait.tensor<4 x 12 x f32>, %r: !ait.tensor<4 x 1 x f32>) {
  %w = ait.param "w" : !ait.tensor<12 x 6 x f32>
  // HEADS-COUNT-9: ait.permute
  %0 = ait.gemm rcr %x, %w : !ait.tensor<4 x 12 x f32>
  %1 = ait.reshape %0 : !ait.tensor<2 x 4 x 3 x 2 x f32>
  %2 = ait.permute %1 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 4 x 2 x f32>
  %3 = ait.gemm rcr %x, %w : !ait.tensor<4 x 12 x f32>
  %4 = ait.reshape %3 : !ait.tensor<2 x 2 x 3 x 4 x f32>
  %5 = ait.permute %4 [0, 2, 3, 1] : !ait.tensor<2 x 3 x 4 x 2 x f32>
  %6 = ait.gemm rcr %x, %w : !ait.tensor<4 x 12 x f32>
  %7 = ait.reshape %6 : !ait.tensor<2 x 2 x 3 x 4 x f32>
  %8 = ait.permute %7 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 2 x 4 x f32>
  %9 = ait.gemm rcr %x, %w : !ait.tensor<4 x 12 x f32>
  %10 = ait.reshape %9 : !ait.tensor<2 x 2 x 3 x 4 x f32>
  %11 = ait.permute %10 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 2 x 4 x f32>
  %12 = ait.gemm rcr %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<4 x 12 x f32>
  %13 = ait.reshape %12 : !ait.tensor<2 x 2 x 3 x 4 x f32>
  %14 = ait.permute %13 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 2 x 4 x f32>
  %15 = ait.gemm rcc %w, %x : !ait.tensor<4 x 12 x f32>
  %16 = ait.reshape %15 : !ait.tensor<2 x 2 x 3 x 4 x f32>
  %17 = ait.permute %16 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 2 x 4 x f32>
  %18 = ait.gemm rcr %x, %w epilogue(%r) {
  ^bb0(%acc: f32, %e: f32):
    %s = ait.add %acc, %e : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 12 x f32>
  %19 = ait.reshape %18 : !ait.tensor<2 x 2 x 3 x 4 x f32>
  %20 = ait.permute %19 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 2 x 4 x f32>
  %21 = ait.gemm rcr %x, %w epilogue(%z) {
  ^bb0(%acc: f32, %e: f32):
    %s = ait.add %acc, %e : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 12 x f32>
  %22 = ait.reshape %21 : !ait.tensor<2 x 2 x 3 x 4 x f32>
  %23 = ait.permute %22 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 2 x 4 x f32>
  %24, %25 = ait.gemm rcr %x, %w epilogue() {
  ^bb0(%acc: f32):
    %s = ait.relu %acc : f32
    ait.yield %acc, %s : f32, f32
  } : !ait.tensor<4 x 12 x f32>, !ait.tensor<4 x 12 x f32>
  %26 = ait.reshape %24 : !ait.tensor<2 x 2 x 3 x 4 x f32>
  %27 = ait.permute %26 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 2 x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<2 x 3 x 4 x 2 x f32>
  ait.output "y5" %5 : !ait.tensor<2 x 3 x 4 x 2 x f32>
  ait.output "y6" %6 : !ait.tensor<4 x 12 x f32>
  ait.output "y8" %8 : !ait.tensor<2 x 3 x 2 x 4 x f32>
  ait.output "y10" %10 : !ait.tensor<2 x 2 x 3 x 4 x f32>
  ait.output "y11" %11 : !ait.tensor<2 x 3 x 2 x 4 x f32>
  ait.output "y14" %14 : !ait.tensor<2 x 3 x 2 x 4 x f32>
  ait.output "y17" %17 : !ait.tensor<2 x 3 x 2 x 4 x f32>
  ait.output "y20" %20 : !ait.tensor<2 x 3 x 2 x 4 x f32>
  ait.output "y23" %23 : !ait.tensor<2 x 3 x 2 x 4 x f32>
  ait.output "y25" %25 : !ait.tensor<4 x 12 x f32>
  ait.output "y27" %27 : !ait.tensor<2 x 3 x 2 x 4 x f32>
}

// Batched products that are no heads: a first factor stored in columns; parts that cut the rows; a first factor with a batch of two dims.
// HEADS-LABEL: ait.graph @no_batched_heads
ait.graph @no_batched_heads(%y: !ait.tensor<2 x 6 x 4 x f32>, %t: !ait.tensor<2 x 12 x 6 x f32>, %v: !ait.tensor<2 x 2 x 3 x 6 x f32>) {
  // HEADS-COUNT-3: ait.permute
  %0 = ait.bmm ccr %y, %t : !ait.tensor<2 x 4 x 12 x f32>
  %1 = ait.reshape %0 : !ait.tensor<2 x 4 x 3 x 4 x f32>
  %2 = ait.permute %1 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 4 x 4 x f32>
  %3 = ait.bmm crr %y, %y : !ait.tensor<2 x 4 x 4 x f32>
  %4 = ait.reshape %3 : !ait.tensor<4 x 2 x 2 x 2 x f32>
  %5 = ait.permute %4 [0, 2, 1, 3] : !ait.tensor<4 x 2 x 2 x 2 x f32>
  %6 = ait.bmm rcr %v, %t : !ait.tensor<2 x 2 x 3 x 12 x f32>
  %7 = ait.reshape %6 : !ait.tensor<4 x 3 x 3 x 4 x f32>
  %8 = ait.permute %7 [0, 2, 1, 3] : !ait.tensor<4 x 3 x 3 x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<2 x 3 x 4 x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<4 x 2 x 2 x 2 x f32>
  ait.output "y8" %8 : !ait.tensor<4 x 3 x 3 x 4 x f32>
}

// Batched products that are no heads: other readers of the product and of its parts; a selected product; a result in columns; an
// epilogue that adds a number for each row.
// HEADS-LABEL: ait.graph @batched_no_heads
ait.graph @batched_no_heads(%q: !ait.tensor<2 x 4 x 6 x f32>, %t: !ait.tensor<2 x 12 x 6 x f32>, %e: !ait.tensor<4 x 1 x f32>) {
  // HEADS-COUNT-5: ait.permute
  // HEADS-NEXT: ait.output "y2"
  %0 = ait.bmm rcr %q, %t : !ait.tensor<2 x 4 x 12 x f32>
  %1 = ait.reshape %0 : !ait.tensor<2 x 4 x 3 x 4 x f32>
  %2 = ait.permute %1 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 4 x 4 x f32>
  %3 = ait.bmm rcr %q, %t : !ait.tensor<2 x 4 x 12 x f32>
  %4 = ait.reshape %3 : !ait.tensor<2 x 4 x 3 x 4 x f32>
  %5 = ait.permute %4 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 4 x 4 x f32>
  %6 = ait.bmm rcr %q, %t {kernel = #ait.kernel<"native", {}>} : !ait.tensor<2 x 4 x 12 x f32>
  %7 = ait.reshape %6 : !ait.tensor<2 x 4 x 3 x 4 x f32>
  %8 = ait.permute %7 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 4 x 4 x f32>
  %9 = ait.bmm rcc %t, %q : !ait.tensor<2 x 4 x 12 x f32>
  %10 = ait.reshape %9 : !ait.tensor<2 x 4 x 3 x 4 x f32>
  %11 = ait.permute %10 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 4 x 4 x f32>
  %12 = ait.bmm rcr %q, %t epilogue(%e) {
  ^bb0(%acc: f32, %d: f32):
    %s = ait.add %acc, %d : f32
    ait.yield %s : f32
  } : !ait.tensor<2 x 4 x 12 x f32>
  %13 = ait.reshape %12 : !ait.tensor<2 x 4 x 3 x 4 x f32>
  %14 = ait.permute %13 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 4 x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<2 x 3 x 4 x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<2 x 4 x 12 x f32>
  ait.output "y5" %5 : !ait.tensor<2 x 3 x 4 x 4 x f32>
  ait.output "y4" %4 : !ait.tensor<2 x 4 x 3 x 4 x f32>
  ait.output "y8" %8 : !ait.tensor<2 x 3 x 4 x 4 x f32>
  ait.output "y11" %11 : !ait.tensor<2 x 3 x 4 x 4 x f32>
  ait.output "y14" %14 : !ait.tensor<2 x 3 x 4 x 4 x f32>
}

// The heads are part of the batch: the product gets them as a dim, and is stored in the order of the permute.
// BATCH-LABEL: ait.graph @heads_behind_rows
ait.graph @heads_behind_rows(%x: !ait.tensor<(2*b) x 3 x 8 x f32>, %y: !ait.tensor<(2*b) x 8 x 5 x f32>) dims {b = 0 to 3} {
  // BATCH-NEXT: [[X:%.*]] = ait.reshape %x : !ait.tensor<b x 2 x 3 x 8 x f32>
  // BATCH-NEXT: [[Y:%.*]] = ait.reshape %y : !ait.tensor<b x 2 x 8 x 5 x f32>
  // BATCH-NEXT: [[Z:%.*]] = ait.bmm rrr [[X]], [[Y]] : !ait.tensor<b x 2 x 3 x 5 x f32>
  // BATCH-NEXT: ait.permute [[Z]] [0, 2, 1, 3] : !ait.tensor<b x 3 x 2 x 5 x f32>
  %0 = ait.bmm rrr %x, %y : !ait.tensor<(2*b) x 3 x 5 x f32>
  %1 = ait.reshape %0 : !ait.tensor<b x 2 x 3 x 5 x f32>
  %2 = ait.permute %1 [0, 2, 1, 3] : !ait.tensor<b x 3 x 2 x 5 x f32>
  ait.output "y" %2 : !ait.tensor<b x 3 x 2 x 5 x f32>
}

// Another order; an epilogue; a selected product; a factor without the batch; parts that cut the rows.
// BATCH-LABEL: ait.graph @no_heads_behind_rows
ait.graph @no_heads_behind_rows(%x: !ait.tensor<4 x 3 x 8 x f32>, %y: !ait.tensor<4 x 8 x 6 x f32>, %w: !ait.tensor<8 x 6 x f32>) {
  // BATCH-COUNT-5: ait.bmm rrr %x
  %0 = ait.bmm rrr %x, %y : !ait.tensor<4 x 3 x 6 x f32>
  %1 = ait.reshape %0 : !ait.tensor<2 x 2 x 3 x 6 x f32>
  %2 = ait.permute %1 [1, 2, 0, 3] : !ait.tensor<2 x 3 x 2 x 6 x f32>
  %9 = ait.bmm rrr %x, %y epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<4 x 3 x 6 x f32>
  %10 = ait.reshape %9 : !ait.tensor<2 x 2 x 3 x 6 x f32>
  %11 = ait.permute %10 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 2 x 6 x f32>
  %12 = ait.bmm rrr %x, %y {kernel = #ait.kernel<"native", {}>} : !ait.tensor<4 x 3 x 6 x f32>
  %13 = ait.reshape %12 : !ait.tensor<2 x 2 x 3 x 6 x f32>
  %14 = ait.permute %13 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 2 x 6 x f32>
  %15 = ait.bmm rrr %x, %w : !ait.tensor<4 x 3 x 6 x f32>
  %16 = ait.reshape %15 : !ait.tensor<2 x 2 x 3 x 6 x f32>
  %17 = ait.permute %16 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 2 x 6 x f32>
  %18 = ait.bmm rrr %x, %y : !ait.tensor<4 x 3 x 6 x f32>
  %19 = ait.reshape %18 : !ait.tensor<4 x 3 x 2 x 3 x f32>
  %20 = ait.permute %19 [0, 2, 1, 3] : !ait.tensor<4 x 2 x 3 x 3 x f32>
  ait.output "y2" %2 : !ait.tensor<2 x 3 x 2 x 6 x f32>
  ait.output "y11" %11 : !ait.tensor<2 x 3 x 2 x 6 x f32>
  ait.output "y14" %14 : !ait.tensor<2 x 3 x 2 x 6 x f32>
  ait.output "y17" %17 : !ait.tensor<2 x 3 x 2 x 6 x f32>
  ait.output "y20" %20 : !ait.tensor<4 x 2 x 3 x 3 x f32>
}

// The product, or its parts, have other readers: no second product is computed.
// BATCH-LABEL: ait.graph @heads_with_readers
ait.graph @heads_with_readers(%x: !ait.tensor<4 x 3 x 8 x f32>, %y: !ait.tensor<4 x 8 x 6 x f32>) {
  // BATCH-COUNT-2: ait.bmm
  // BATCH-NOT: ait.bmm
  %3 = ait.bmm rrr %x, %y : !ait.tensor<4 x 3 x 6 x f32>
  %4 = ait.reshape %3 : !ait.tensor<2 x 2 x 3 x 6 x f32>
  %5 = ait.permute %4 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 2 x 6 x f32>
  %6 = ait.bmm rrr %x, %y : !ait.tensor<4 x 3 x 6 x f32>
  %7 = ait.reshape %6 : !ait.tensor<2 x 2 x 3 x 6 x f32>
  %8 = ait.permute %7 [0, 2, 1, 3] : !ait.tensor<2 x 3 x 2 x 6 x f32>
  ait.output "y3" %3 : !ait.tensor<4 x 3 x 6 x f32>
  ait.output "y5" %5 : !ait.tensor<2 x 3 x 2 x 6 x f32>
  ait.output "y7" %7 : !ait.tensor<2 x 2 x 3 x 6 x f32>
  ait.output "y8" %8 : !ait.tensor<2 x 3 x 2 x 6 x f32>
}

// Neighbours of one size become one batched product, whatever computes what they multiply; others stay in their places.
// JOIN-LABEL: ait.graph @neighbours
ait.graph @neighbours(%x: !ait.tensor<m x 4 x f32>, %y: !ait.tensor<m x 4 x f32>, %z: !ait.tensor<m x 4 x f32>) dims {m = 0 to 4} {
  %w0 = ait.param "w0" : !ait.tensor<3 x 4 x f32>
  %w1 = ait.param "w1" : !ait.tensor<3 x 4 x f32>
  %w2 = ait.param "w2" : !ait.tensor<2 x 4 x f32>
  %b0 = ait.param "b0" : !ait.tensor<3 x f32>
  %b1 = ait.param "b1" : !ait.tensor<3 x f32>
  // JOIN: [[Z:%.*]] = ait.gemm rcr %z, %w2
  // JOIN: [[X:%.*]] = ait.concat {{.*}} dim 1 : !ait.tensor<m x 8 x f32>
  // JOIN-NEXT: [[R:%.*]] = ait.reshape [[X]] : !ait.tensor<m x 2 x 4 x f32>
  // JOIN-NEXT: [[A:%.*]] = ait.permute [[R]] [1, 0, 2]
  // JOIN: ait.bmm rcr [[A]], {{.*}} : !ait.tensor<2 x m x 3 x f32>
  // JOIN: [[Y:%.*]] = ait.reshape {{.*}} : !ait.tensor<m x 6 x f32>
  // JOIN-NEXT: ait.concat [[Z]], [[Y]], %z dim 1 : !ait.tensor<m x 12 x f32>
  %0 = ait.tanh %x : !ait.tensor<m x 4 x f32>
  %1 = ait.gemm rcr %0, %w0 : !ait.tensor<m x 3 x f32>
  %2 = ait.add %1, %b0 : !ait.tensor<m x 3 x f32>
  %3 = ait.gemm rcr %y, %w1 : !ait.tensor<m x 3 x f32>
  %4 = ait.add %b1, %3 : !ait.tensor<m x 3 x f32>
  %5 = ait.gemm rcr %z, %w2 : !ait.tensor<m x 2 x f32>
  %6 = ait.concat %5, %2, %4, %z dim 1 : !ait.tensor<m x 12 x f32>
  ait.output "y" %6 : !ait.tensor<m x 12 x f32>
}

// A product that is also an output, a bias that is none, a product without a bias, a weight that is an input, one input for both, rows that
// are joined, a selected product, an epilogue, another layout, another dim 0.
// JOIN-LABEL: ait.graph @strangers
ait.graph @strangers(%x0: !ait.tensor<4 x 4 x f32>, %x1: !ait.tensor<4 x 4 x f32>, %x2: !ait.tensor<4 x 4 x f32>, %x3: !ait.tensor<4 x 4 x f32>, %x4: !ait.tensor<4 x 4 x f32>,
    %x5: !ait.tensor<4 x 4 x f32>, %x6: !ait.tensor<4 x 4 x f32>, %x7: !ait.tensor<4 x 4 x f32>, %x8: !ait.tensor<4 x 4 x f32>, %x9: !ait.tensor<4 x 4 x f32>, %i: !ait.tensor<4 x 4 x f32>) {
  %w = ait.param "w" : !ait.tensor<4 x 4 x f32>
  %c = ait.param "c" : !ait.tensor<4 x f32>
  %d = ait.param "d" : !ait.tensor<1 x 4 x f32>
  // JOIN-NOT: ait.bmm
  %0 = ait.gemm rcr %x0, %w : !ait.tensor<4 x 4 x f32>
  %1 = ait.gemm rcr %x1, %w : !ait.tensor<4 x 4 x f32>
  %2 = ait.add %1, %d : !ait.tensor<4 x 4 x f32>
  %3 = ait.gemm rcr %x2, %w : !ait.tensor<4 x 4 x f32>
  %4 = ait.gemm rcr %x3, %i : !ait.tensor<4 x 4 x f32>
  %5 = ait.gemm rcr %x4, %w : !ait.tensor<4 x 4 x f32>
  %6 = ait.add %5, %c : !ait.tensor<4 x 4 x f32>
  %7 = ait.gemm rcr %x5, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<4 x 4 x f32>
  %8 = ait.gemm rcr %x6, %w epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<4 x 4 x f32>
  %9 = ait.gemm rrr %x7, %w : !ait.tensor<4 x 4 x f32>
  %10 = ait.concat %0, %2, %3, %4, %6, %7, %8, %9 dim 1 : !ait.tensor<4 x 32 x f32>
  %11 = ait.gemm rcr %x8, %w : !ait.tensor<4 x 4 x f32>
  %12 = ait.gemm rcr %x8, %w : !ait.tensor<4 x 4 x f32>
  %13 = ait.concat %11, %12 dim 1 : !ait.tensor<4 x 8 x f32>
  %14 = ait.tanh %x9 : !ait.tensor<4 x 4 x f32>
  %15 = ait.tanh %i : !ait.tensor<4 x 4 x f32>
  %16 = ait.gemm rcr %14, %w : !ait.tensor<4 x 4 x f32>
  %17 = ait.gemm rcr %15, %w : !ait.tensor<4 x 4 x f32>
  %18 = ait.concat %16, %17 dim 0 : !ait.tensor<8 x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<4 x 4 x f32>
  ait.output "y10" %10 : !ait.tensor<4 x 32 x f32>
  ait.output "y13" %13 : !ait.tensor<4 x 8 x f32>
  // JOIN: ait.output "y18"
  ait.output "y18" %18 : !ait.tensor<8 x 4 x f32>
}

// SIDE-LABEL: ait.graph @side_by_side
ait.graph @side_by_side(%x: !ait.tensor<m x 8 x f32>) dims {m = 1 to 4} {
  %w0 = ait.param "w0" : !ait.tensor<3 x 4 x f32>
  %w1 = ait.param "w1" : !ait.tensor<3 x 4 x f32>
  %b0 = ait.param "b0" : !ait.tensor<3 x f32>
  %b1 = ait.param "b1" : !ait.tensor<3 x f32>
  // SIDE-NOT: ait.gemm
  // SIDE: ait.permute {{.*}} [1, 0, 2] : !ait.tensor<2 x m x 4 x f32>
  // SIDE: [[V:%.*]] = ait.concat %w0, %w1 dim 0 : !ait.tensor<6 x 4 x f32>
  // SIDE-NEXT: [[W:%.*]] = ait.reshape [[V]] : !ait.tensor<2 x 3 x 4 x f32>
  // SIDE-NEXT: ait.bmm rcr {{%.*}}, [[W]] : !ait.tensor<2 x m x 3 x f32>
  // SIDE: ait.add
  // SIDE-NEXT: ait.permute
  // SIDE-NEXT: ait.reshape {{.*}} : !ait.tensor<m x 6 x f32>
  %0, %1 = ait.split %x dim 1 : !ait.tensor<m x 4 x f32>, !ait.tensor<m x 4 x f32>
  %2 = ait.gemm rcr %0, %w0 : !ait.tensor<m x 3 x f32>
  %3 = ait.add %2, %b0 : !ait.tensor<m x 3 x f32>
  %4 = ait.gemm rcr %1, %w1 : !ait.tensor<m x 3 x f32>
  %5 = ait.add %4, %b1 : !ait.tensor<m x 3 x f32>
  %6 = ait.concat %3, %5 dim 1 : !ait.tensor<m x 6 x f32>
  ait.output "y" %6 : !ait.tensor<m x 6 x f32>
}

// The parts in another order; a product with another reader; one bias alone; along the rows.
// SIDE-LABEL: ait.graph @not_side_by_side
ait.graph @not_side_by_side(%x: !ait.tensor<2 x 8 x f32>) {
  %w0 = ait.param "w0" : !ait.tensor<3 x 4 x f32>
  %w1 = ait.param "w1" : !ait.tensor<3 x 4 x f32>
  %b0 = ait.param "b0" : !ait.tensor<3 x f32>
  // SIDE-NOT: ait.bmm
  %0, %1 = ait.split %x dim 1 : !ait.tensor<2 x 4 x f32>, !ait.tensor<2 x 4 x f32>
  %2 = ait.gemm rcr %0, %w0 : !ait.tensor<2 x 3 x f32>
  %3 = ait.gemm rcr %1, %w1 : !ait.tensor<2 x 3 x f32>
  %4 = ait.concat %3, %2 dim 1 : !ait.tensor<2 x 6 x f32>
  %5 = ait.gemm rcr %0, %w0 : !ait.tensor<2 x 3 x f32>
  %6 = ait.gemm rcr %1, %w1 : !ait.tensor<2 x 3 x f32>
  %7 = ait.concat %5, %6 dim 1 : !ait.tensor<2 x 6 x f32>
  %8 = ait.gemm rcr %0, %w0 : !ait.tensor<2 x 3 x f32>
  %9 = ait.gemm rcr %1, %w1 : !ait.tensor<2 x 3 x f32>
  %10 = ait.add %9, %b0 : !ait.tensor<2 x 3 x f32>
  %11 = ait.concat %8, %10 dim 1 : !ait.tensor<2 x 6 x f32>
  %12 = ait.gemm rcr %0, %w0 : !ait.tensor<2 x 3 x f32>
  %13 = ait.gemm rcr %1, %w1 : !ait.tensor<2 x 3 x f32>
  %14 = ait.concat %12, %13 dim 0 : !ait.tensor<4 x 3 x f32>
  ait.output "y4" %4 : !ait.tensor<2 x 6 x f32>
  ait.output "y6" %6 : !ait.tensor<2 x 3 x f32>
  ait.output "y7" %7 : !ait.tensor<2 x 6 x f32>
  ait.output "y11" %11 : !ait.tensor<2 x 6 x f32>
  ait.output "y14" %14 : !ait.tensor<4 x 3 x f32>
}
