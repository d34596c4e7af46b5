// RUN: ait-opt %s -p merge-concats | filecheck %s
// RUN: ait-opt %s -p simplify | filecheck %s
// RUN: ait-opt %s -p merge-concats,merge-concats | filecheck %s
// RUN: ait-opt %s -p merge-concats --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// ** concat of concats **

// CHECK-LABEL: ait.graph @nested_concats
ait.graph @nested_concats(%a: !ait.tensor<b x 1 x f32>, %c: !ait.tensor<b x s x f32>, %d: !ait.tensor<b x 3 x f32>) dims {b = 0 to 4, s = 0 to 3} {
  %0 = ait.concat %a, %c dim 1 : !ait.tensor<b x (s + 1) x f32>
  %1 = ait.concat %d, %a dim 1 : !ait.tensor<b x 4 x f32>
  %2 = ait.concat %0, %d, %1 dim 1 : !ait.tensor<b x (s + 8) x f32>
  // CHECK-NEXT: %0 = ait.concat %c, %a, %c, %d, %d, %a dim 1 : !ait.tensor<b x (2*s + 8) x f32>
  %3 = ait.concat %c, %2 dim 1 : !ait.tensor<b x (2*s + 8) x f32>
  // CHECK-NEXT: ait.output
  ait.output "y" %3 : !ait.tensor<b x (2*s + 8) x f32>
}

// Another dim, a second user, an output, twice in one concat, a reshape that parts the joints.
// CHECK-LABEL: ait.graph @separate_concats
ait.graph @separate_concats(%a: !ait.tensor<2 x 2 x f32>, %c: !ait.tensor<2 x 2 x f32>) {
  // CHECK-COUNT-9: ait.concat
  %0 = ait.concat %a, %c dim 0 : !ait.tensor<4 x 2 x f32>
  %1 = ait.concat %0, %0 dim 1 : !ait.tensor<4 x 4 x f32>
  %2 = ait.concat %c, %a dim 0 : !ait.tensor<4 x 2 x f32>
  %3 = ait.concat %2, %a dim 0 : !ait.tensor<6 x 2 x f32>
  %4 = ait.relu %2 : !ait.tensor<4 x 2 x f32>
  %5 = ait.concat %c, %c dim 0 : !ait.tensor<4 x 2 x f32>
  %6 = ait.concat %5, %a dim 0 : !ait.tensor<6 x 2 x f32>
  %7 = ait.concat %a, %c dim 1 : !ait.tensor<2 x 4 x f32>
  %8 = ait.concat %7, %7 dim 1 : !ait.tensor<2 x 8 x f32>
  %9 = ait.concat %c, %a dim 1 : !ait.tensor<2 x 4 x f32>
  // CHECK-NOT: ait.concat
  ait.output "y1" %1 : !ait.tensor<4 x 4 x f32>
  ait.output "y3" %3 : !ait.tensor<6 x 2 x f32>
  ait.output "y4" %4 : !ait.tensor<4 x 2 x f32>
  ait.output "y5" %5 : !ait.tensor<4 x 2 x f32>
  ait.output "y6" %6 : !ait.tensor<6 x 2 x f32>
  ait.output "y8" %8 : !ait.tensor<2 x 8 x f32>
  ait.output "y9" %9 : !ait.tensor<2 x 4 x f32>
}

// CHECK-LABEL: ait.graph @empty_operands
ait.graph @empty_operands(%a: !ait.tensor<b x 0 x f32>, %c: !ait.tensor<b x 2 x f32>, %d: !ait.tensor<b x s x f32>) dims {b = 1 to 4, s = 0 to 2} {
  // CHECK-NEXT: [[Y0:%.*]] = ait.concat %c, %d dim 1
  %0 = ait.concat %a, %c, %a, %d dim 1 : !ait.tensor<b x (s + 2) x f32>
  %1 = ait.concat %a, %a dim 1 : !ait.tensor<b x 0 x f32>
  // CHECK-NEXT: ait.output "y0" [[Y0]]
  // CHECK-NEXT: ait.output "y1" %a
  ait.output "y0" %0 : !ait.tensor<b x (s + 2) x f32>
  ait.output "y1" %1 : !ait.tensor<b x 0 x f32>
}

// ** split of splits **

// CHECK-LABEL: ait.graph @nested_splits
ait.graph @nested_splits(%x: !ait.tensor<b x (s + 7) x f32>) dims {b = 0 to 4, s = 0 to 3} {
  // CHECK-NEXT: %0, %1, %2, %3 = ait.split %x dim 1 : !ait.tensor<b x s x f32>, !ait.tensor<b x 2 x f32>, !ait.tensor<b x 4 x f32>, !ait.tensor<b x 1 x f32>
  // CHECK-NOT: ait.split
  %0, %1 = ait.split %x dim 1 : !ait.tensor<b x (s + 6) x f32>, !ait.tensor<b x 1 x f32>
  %2, %3 = ait.split %0 dim 1 : !ait.tensor<b x s x f32>, !ait.tensor<b x 6 x f32>
  %4, %5 = ait.split %3 dim 1 : !ait.tensor<b x 2 x f32>, !ait.tensor<b x 4 x f32>
  %6 = ait.relu %4 : !ait.tensor<b x 2 x f32>
  %7 = ait.relu %5 : !ait.tensor<b x 4 x f32>
  // CHECK: ait.output "y1" %3
  // CHECK: ait.output "y2" %0
  ait.output "y1" %1 : !ait.tensor<b x 1 x f32>
  ait.output "y2" %2 : !ait.tensor<b x s x f32>
  ait.output "y6" %6 : !ait.tensor<b x 2 x f32>
  ait.output "y7" %7 : !ait.tensor<b x 4 x f32>
}

// Another dim; a part that is used otherwise, too.
// CHECK-LABEL: ait.graph @separate_splits
ait.graph @separate_splits(%x: !ait.tensor<4 x 4 x f32>) {
  // CHECK-COUNT-3: ait.split
  %0, %1 = ait.split %x dim 1 : !ait.tensor<4 x 2 x f32>, !ait.tensor<4 x 2 x f32>
  %2, %3 = ait.split %0 dim 0 : !ait.tensor<1 x 2 x f32>, !ait.tensor<3 x 2 x f32>
  %4, %5 = ait.split %1 dim 1 : !ait.tensor<4 x 1 x f32>, !ait.tensor<4 x 1 x f32>
  ait.output "y1" %1 : !ait.tensor<4 x 2 x f32>
  ait.output "y2" %2 : !ait.tensor<1 x 2 x f32>
  ait.output "y3" %3 : !ait.tensor<3 x 2 x f32>
  ait.output "y4" %4 : !ait.tensor<4 x 1 x f32>
  ait.output "y5" %5 : !ait.tensor<4 x 1 x f32>
}

// ** neighbours **

// CHECK-LABEL: ait.graph @neighbours
ait.graph @neighbours(%x: !ait.tensor<b x (s + 9) x f32>, %z: !ait.tensor<b x 2 x f32>) dims {b = 0 to 4, s = 0 to 3} {
  %0, %1, %2, %3 = ait.split %x dim 1 : !ait.tensor<b x 1 x f32>, !ait.tensor<b x s x f32>, !ait.tensor<b x 4 x f32>, !ait.tensor<b x 4 x f32>
  // CHECK: [[XS:%.*]] = ait.slice %x offsets [0, 1] : !ait.tensor<b x (s + 4) x f32>
  // CHECK-NEXT: [[Y0:%.*]] = ait.concat %z, [[XS]], %z dim 1
  %4 = ait.concat %z, %1, %2, %z dim 1 : !ait.tensor<b x (s + 8) x f32>
  %5 = ait.slice %x offsets [0, s + 1] : !ait.tensor<b x 3 x f32>
  %6 = ait.slice %x offsets [0, s + 4] : !ait.tensor<b x 5 x f32>
  // CHECK-NEXT: [[Y1:%.*]] = ait.slice %x offsets [0, s + 1] : !ait.tensor<b x 8 x f32>
  // CHECK-NEXT: ait.output "y0" [[Y0]]
  // CHECK-NEXT: ait.output "y1" [[Y1]]
  %7 = ait.concat %5, %6 dim 1 : !ait.tensor<b x 8 x f32>
  ait.output "y0" %4 : !ait.tensor<b x (s + 8) x f32>
  ait.output "y1" %7 : !ait.tensor<b x 8 x f32>
}

// In the other order, with a gap, of two tensors, other rows, along another dim.
// CHECK-LABEL: ait.graph @no_neighbours
ait.graph @no_neighbours(%x: !ait.tensor<4 x 6 x f32>, %z: !ait.tensor<4 x 6 x f32>) {
  %0 = ait.slice %x offsets [0, 0] : !ait.tensor<2 x 2 x f32>
  %1 = ait.slice %x offsets [0, 2] : !ait.tensor<2 x 2 x f32>
  %2 = ait.slice %x offsets [0, 4] : !ait.tensor<2 x 2 x f32>
  %3 = ait.slice %z offsets [0, 2] : !ait.tensor<2 x 2 x f32>
  %4 = ait.slice %x offsets [1, 2] : !ait.tensor<2 x 2 x f32>
  // CHECK: ait.concat %1, %0 dim 1
  // CHECK: ait.concat %0, %2 dim 1
  // CHECK: ait.concat %0, %3 dim 1
  // CHECK: ait.concat %0, %4 dim 1
  // CHECK: ait.concat %0, %1 dim 0
  %5 = ait.concat %1, %0 dim 1 : !ait.tensor<2 x 4 x f32>
  %6 = ait.concat %0, %2 dim 1 : !ait.tensor<2 x 4 x f32>
  %7 = ait.concat %0, %3 dim 1 : !ait.tensor<2 x 4 x f32>
  %8 = ait.concat %0, %4 dim 1 : !ait.tensor<2 x 4 x f32>
  %9 = ait.concat %0, %1 dim 0 : !ait.tensor<4 x 2 x f32>
  ait.output "y5" %5 : !ait.tensor<2 x 4 x f32>
  ait.output "y6" %6 : !ait.tensor<2 x 4 x f32>
  ait.output "y7" %7 : !ait.tensor<2 x 4 x f32>
  ait.output "y8" %8 : !ait.tensor<2 x 4 x f32>
  ait.output "y9" %9 : !ait.tensor<4 x 2 x f32>
}

// ** pieces of a concat **

// CHECK-LABEL: ait.graph @slices_of_operands
ait.graph @slices_of_operands(%a: !ait.tensor<4 x 3 x f32>, %c: !ait.tensor<4 x s x f32>, %d: !ait.tensor<4 x 5 x f32>) dims {s = 1 to 4} {
  // CHECK-NEXT: [[C:%.*]] = ait.concat %a, %c, %d dim 1
  %0 = ait.concat %a, %c, %d dim 1 : !ait.tensor<4 x (s + 8) x f32>
  // CHECK-NEXT: [[Y0:%.*]] = ait.slice %a offsets [1, 1] : !ait.tensor<2 x 2 x f32>
  %1 = ait.slice %0 offsets [1, 1] : !ait.tensor<2 x 2 x f32>
  // CHECK-NEXT: [[Y1:%.*]] = ait.slice %d offsets [0, 1] : !ait.tensor<4 x 4 x f32>
  %2 = ait.slice %0 offsets [0, s + 4] : !ait.tensor<4 x 4 x f32>
  // one that may reach into the next operand, and one that does
  // CHECK-NEXT: [[Y2:%.*]] = ait.slice [[C]] offsets [0, 3] : !ait.tensor<4 x 2 x f32>
  %3 = ait.slice %0 offsets [0, 3] : !ait.tensor<4 x 2 x f32>
  // CHECK-NEXT: [[Y3:%.*]] = ait.slice [[C]] offsets [0, 2] : !ait.tensor<4 x 2 x f32>
  %4 = ait.slice %0 offsets [0, 2] : !ait.tensor<4 x 2 x f32>
  // CHECK-NEXT: ait.output "y1" [[Y0]]
  ait.output "y1" %1 : !ait.tensor<2 x 2 x f32>
  ait.output "y2" %2 : !ait.tensor<4 x 4 x f32>
  ait.output "y3" %3 : !ait.tensor<4 x 2 x f32>
  ait.output "y4" %4 : !ait.tensor<4 x 2 x f32>
}

// CHECK-LABEL: ait.graph @cuts_between_operands
ait.graph @cuts_between_operands(%a: !ait.tensor<b x 2 x f32>, %c: !ait.tensor<b x s x f32>, %d: !ait.tensor<b x 4 x f32>) dims {b = 0 to 4, s = 0 to 3} {
  %0 = ait.concat %a, %c, %d dim 1 : !ait.tensor<b x (s + 6) x f32>
  // CHECK-NEXT: [[AC:%.*]] = ait.concat %a, %c dim 1 : !ait.tensor<b x (s + 2) x f32>
  // CHECK-NEXT: [[D0:%.*]], [[D1:%.*]] = ait.split %d dim 1 : !ait.tensor<b x 1 x f32>, !ait.tensor<b x 3 x f32>
  %1, %2, %3 = ait.split %0 dim 1 : !ait.tensor<b x (s + 2) x f32>, !ait.tensor<b x 1 x f32>, !ait.tensor<b x 3 x f32>
  // CHECK-NEXT: ait.output "y1" [[AC]]
  // CHECK-NEXT: ait.output "y2" [[D0]]
  // CHECK-NEXT: ait.output "y3" [[D1]]
  ait.output "y1" %1 : !ait.tensor<b x (s + 2) x f32>
  ait.output "y2" %2 : !ait.tensor<b x 1 x f32>
  ait.output "y3" %3 : !ait.tensor<b x 3 x f32>
}

// Of a concat that others use, parts are taken from the operands only where that needs no new concat.
// CHECK-LABEL: ait.graph @cuts_of_shared_concats
ait.graph @cuts_of_shared_concats(%a: !ait.tensor<2 x 2 x f32>, %c: !ait.tensor<2 x 2 x f32>, %d: !ait.tensor<2 x 2 x f32>) {
  // CHECK-NEXT: [[X:%.*]] = ait.concat %a, %c dim 1
  %0 = ait.concat %a, %c dim 1 : !ait.tensor<2 x 4 x f32>
  // CHECK-NEXT: {{.*}} = ait.split %a dim 1
  %1, %2, %3 = ait.split %0 dim 1 : !ait.tensor<2 x 1 x f32>, !ait.tensor<2 x 1 x f32>, !ait.tensor<2 x 2 x f32>
  // CHECK-NEXT: [[Z:%.*]] = ait.concat %a, %c, %d dim 1
  %4 = ait.concat %a, %c, %d dim 1 : !ait.tensor<2 x 6 x f32>
  // CHECK-NEXT: {{.*}} = ait.split [[Z]] dim 1
  %5, %6 = ait.split %4 dim 1 : !ait.tensor<2 x 4 x f32>, !ait.tensor<2 x 2 x f32>
  // CHECK-NEXT: ait.output "y0" [[X]]
  // CHECK: ait.output "y3" %c
  ait.output "y0" %0 : !ait.tensor<2 x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<2 x 1 x f32>
  ait.output "y2" %2 : !ait.tensor<2 x 1 x f32>
  ait.output "y3" %3 : !ait.tensor<2 x 2 x f32>
  ait.output "y4" %4 : !ait.tensor<2 x 6 x f32>
  ait.output "y5" %5 : !ait.tensor<2 x 4 x f32>
  ait.output "y6" %6 : !ait.tensor<2 x 2 x f32>
}

// Another dim; cuts inside of operands.
// CHECK-LABEL: ait.graph @cuts_elsewhere
ait.graph @cuts_elsewhere(%a: !ait.tensor<4 x 4 x f32>, %c: !ait.tensor<4 x s x f32>) dims {s = 2 to 6} {
  // CHECK-COUNT-2: ait.concat
  // CHECK-COUNT-2: ait.split
  %0 = ait.concat %a, %c dim 1 : !ait.tensor<4 x (s + 4) x f32>
  %1 = ait.concat %c, %a dim 1 : !ait.tensor<4 x (s + 4) x f32>
  %2, %3 = ait.split %0 dim 0 : !ait.tensor<3 x (s + 4) x f32>, !ait.tensor<1 x (s + 4) x f32>
  %4, %5 = ait.split %1 dim 1 : !ait.tensor<4 x 4 x f32>, !ait.tensor<4 x s x f32>
  ait.output "y2" %2 : !ait.tensor<3 x (s + 4) x f32>
  ait.output "y3" %3 : !ait.tensor<1 x (s + 4) x f32>
  ait.output "y4" %4 : !ait.tensor<4 x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<4 x s x f32>
}

// ** reshapes between concats **

// CHECK-LABEL: ait.graph @reshapes_between
ait.graph @reshapes_between(%a: !ait.tensor<b x s x 4 x f32>, %c: !ait.tensor<b x 2 x 4 x f32>, %d: !ait.tensor<b x 8 x f32>, %z: !ait.tensor<b x 1 x 2 x 2 x f32>) dims {b = 0 to 4, s = 0 to 3} {
  %0 = ait.concat %a, %c dim 1 : !ait.tensor<b x (s + 2) x 4 x f32>
  %1 = ait.reshape %0 : !ait.tensor<b x (s + 2) x 2 x 2 x f32>
  %2 = ait.concat %d, %d dim 1 : !ait.tensor<b x 16 x f32>
  %3 = ait.reshape %2 : !ait.tensor<b x 4 x 2 x 2 x f32>
  // CHECK-NEXT: [[A:%.*]] = ait.reshape %a : !ait.tensor<b x s x 2 x 2 x f32>
  // CHECK-NEXT: [[C:%.*]] = ait.reshape %c : !ait.tensor<b x 2 x 2 x 2 x f32>
  // CHECK-NEXT: [[D0:%.*]] = ait.reshape %d : !ait.tensor<b x 2 x 2 x 2 x f32>
  // CHECK-NEXT: [[D1:%.*]] = ait.reshape %d : !ait.tensor<b x 2 x 2 x 2 x f32>
  // CHECK-NEXT: [[Y:%.*]] = ait.concat %z, [[A]], [[C]], [[D0]], [[D1]] dim 1
  // CHECK-NEXT: ait.output "y" [[Y]]
  %4 = ait.concat %z, %1, %3 dim 1 : !ait.tensor<b x (s + 7) x 2 x 2 x f32>
  ait.output "y" %4 : !ait.tensor<b x (s + 7) x 2 x 2 x f32>
}

// An operand is no whole number of rows, the joints are not along the dim, the reshape or the concat has another user.
// CHECK-LABEL: ait.graph @no_reshapes_between
ait.graph @no_reshapes_between(%a: !ait.tensor<2 x 3 x f32>, %c: !ait.tensor<2 x 5 x f32>, %d: !ait.tensor<2 x 4 x f32>, %z: !ait.tensor<2 x 2 x 4 x f32>, %e: !ait.tensor<2 x s x f32>, %f: !ait.tensor<2 x (8 - s) x f32>) dims {s = 1 to 8} {
  %0 = ait.concat %a, %c dim 1 : !ait.tensor<2 x 8 x f32>
  %1 = ait.reshape %0 : !ait.tensor<2 x 2 x 4 x f32>
  // CHECK: ait.concat %{{[0-9]+}}, %z dim 1
  %2 = ait.concat %1, %z dim 1 : !ait.tensor<2 x 4 x 4 x f32>
  %3 = ait.concat %d, %d dim 1 : !ait.tensor<2 x 8 x f32>
  %4 = ait.reshape %3 : !ait.tensor<2 x 2 x 4 x f32>
  // CHECK: ait.concat %{{[0-9]+}}, %z dim 0
  %5 = ait.concat %4, %z dim 0 : !ait.tensor<4 x 2 x 4 x f32>
  %6 = ait.concat %d, %d dim 1 : !ait.tensor<2 x 8 x f32>
  %7 = ait.reshape %6 : !ait.tensor<2 x 2 x 4 x f32>
  // CHECK: ait.concat %{{[0-9]+}}, %z dim 1
  %8 = ait.concat %7, %z dim 1 : !ait.tensor<2 x 4 x 4 x f32>
  %9 = ait.concat %d, %d dim 1 : !ait.tensor<2 x 8 x f32>
  %10 = ait.reshape %9 : !ait.tensor<2 x 2 x 4 x f32>
  // CHECK: ait.concat %{{[0-9]+}}, %z dim 1
  %11 = ait.concat %10, %z dim 1 : !ait.tensor<2 x 4 x 4 x f32>
  %12 = ait.concat %e, %f dim 1 : !ait.tensor<2 x 8 x f32>
  %13 = ait.reshape %12 : !ait.tensor<2 x 2 x 4 x f32>
  // CHECK: ait.concat %{{[0-9]+}}, %z dim 1
  %14 = ait.concat %13, %z dim 1 : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y2" %2 : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<4 x 2 x 4 x f32>
  ait.output "y7" %7 : !ait.tensor<2 x 2 x 4 x f32>
  ait.output "y8" %8 : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y9" %9 : !ait.tensor<2 x 8 x f32>
  ait.output "y11" %11 : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y14" %14 : !ait.tensor<2 x 4 x 4 x f32>
}
