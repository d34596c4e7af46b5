// RUN: ait-opt %s -p fuse-elementwise | filecheck %s
// RUN: ait-opt %s -p fuse-elementwise --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// CHECK-LABEL: ait.graph @singleton
ait.graph @singleton(%x: !ait.tensor<b x 4 x f16>) dims {b = 0 to 8} {
  // CHECK-NEXT: ait.fused_elementwise(%x) {
  // CHECK-NEXT: ^bb0([[X:%.*]]: f32):
  // CHECK-NEXT: [[Y:%.*]] = ait.silu [[X]] : f32
  // CHECK-NEXT: ait.yield [[Y]] : f32
  // CHECK-NEXT: } : !ait.tensor<b x 4 x f16>
  %0 = ait.silu %x : !ait.tensor<b x 4 x f16>
  ait.output "y" %0 : !ait.tensor<b x 4 x f16>
}

// Broadcast operands and constants join; an intermediate with another use becomes a result.
// CHECK-LABEL: ait.graph @several_results
ait.graph @several_results(%x: !ait.tensor<b x 4 x f16>, %z: !ait.tensor<4 x f16>) dims {b = 1 to 8} {
  %half = ait.constant 0.5 : !ait.tensor<f16>
  // CHECK-NEXT: [[P:%.*]], [[Q:%.*]] = ait.fused_elementwise(%x, %z) {
  // CHECK-NEXT: ^bb0([[X:%.*]]: f32, [[Z:%.*]]: f32):
  // CHECK-NEXT: [[A:%.*]] = ait.neg [[X]] : f32
  // CHECK-NEXT: [[B:%.*]] = ait.mul [[A]], [[Z]] : f32
  // CHECK-NEXT: [[H:%.*]] = ait.constant 0.5 : f32
  // CHECK-NEXT: [[C:%.*]] = ait.add [[H]], [[B]] : f32
  // CHECK-NEXT: [[D:%.*]] = ait.add [[C]], [[A]] : f32
  // CHECK-NEXT: ait.yield [[B]], [[D]] : f32, f32
  // CHECK-NEXT: } : !ait.tensor<b x 4 x f16>, !ait.tensor<b x 4 x f16>
  // CHECK-NEXT: ait.softmax [[P]]
  // CHECK-NEXT: ait.output "y" [[Q]]
  %0 = ait.neg %x : !ait.tensor<b x 4 x f16>
  %1 = ait.mul %0, %z : !ait.tensor<b x 4 x f16>
  %2 = ait.add %half, %1 : !ait.tensor<b x 4 x f16>
  %3 = ait.add %2, %0 : !ait.tensor<b x 4 x f16>
  %4 = ait.softmax %1 dim 1 : !ait.tensor<b x 4 x f16>
  ait.output "y" %3 : !ait.tensor<b x 4 x f16>
  ait.output "s" %4 : !ait.tensor<b x 4 x f16>
}

// The softmax stands between the two and reads the first: together they would need each other.
// CHECK-LABEL: ait.graph @cycle
ait.graph @cycle(%x: !ait.tensor<b x 4 x f16>) dims {b = 1 to 8} {
  // CHECK-NEXT: [[A:%.*]] = ait.fused_elementwise(%x)
  // CHECK: [[S:%.*]] = ait.softmax [[A]]
  // CHECK-NEXT: ait.fused_elementwise([[A]], [[S]])
  %0 = ait.exp %x : !ait.tensor<b x 4 x f16>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<b x 4 x f16>
  %2 = ait.add %0, %1 : !ait.tensor<b x 4 x f16>
  ait.output "y" %2 : !ait.tensor<b x 4 x f16>
}

// The softmax stands between the two, but what the second reads is there before it.
// CHECK-LABEL: ait.graph @merged_at_producer
ait.graph @merged_at_producer(%x: !ait.tensor<b x 4 x f16>) dims {b = 1 to 8} {
  // CHECK-NEXT: [[A:%.*]], [[B:%.*]] = ait.fused_elementwise(%x)
  // CHECK: [[S:%.*]] = ait.softmax [[A]]
  // CHECK-NEXT: ait.output "y" [[B]]
  %0 = ait.exp %x : !ait.tensor<b x 4 x f16>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<b x 4 x f16>
  %2 = ait.add %0, %x : !ait.tensor<b x 4 x f16>
  ait.output "y" %2 : !ait.tensor<b x 4 x f16>
  ait.output "s" %1 : !ait.tensor<b x 4 x f16>
}

// Of another shape: the first would be computed once for every row.
// CHECK-LABEL: ait.graph @other_shape
ait.graph @other_shape(%x: !ait.tensor<b x 4 x f16>, %z: !ait.tensor<4 x f16>) dims {b = 1 to 8} {
  // CHECK-NEXT: [[A:%.*]] = ait.fused_elementwise(%z)
  // CHECK: } : !ait.tensor<4 x f16>
  // CHECK-NEXT: ait.fused_elementwise(%x, [[A]])
  %0 = ait.exp %z : !ait.tensor<4 x f16>
  %1 = ait.add %x, %0 : !ait.tensor<b x 4 x f16>
  ait.output "y" %1 : !ait.tensor<b x 4 x f16>
}

// The larger region takes in the smaller one, whichever comes first.
// CHECK-LABEL: ait.graph @join_of_chains
ait.graph @join_of_chains(%x: !ait.tensor<b x 4 x f32>, %z: !ait.tensor<b x 4 x f32>, %v: !ait.tensor<b x 4 x f32>, %w: !ait.tensor<4 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: %0, %1 = ait.fused_elementwise(%x, %z, %v, %w) {
  // CHECK-NEXT: ^bb0([[X:%.*]]: f32, [[Z:%.*]]: f32, [[V:%.*]]: f32, [[W:%.*]]: f32):
  // CHECK-NEXT: [[A:%.*]] = ait.mul [[V]], [[W]] : f32
  // CHECK-NEXT: [[B:%.*]] = ait.exp [[X]] : f32
  // CHECK-NEXT: [[C:%.*]] = ait.exp [[B]] : f32
  // CHECK-NEXT: [[D:%.*]] = ait.add [[C]], [[Z]] : f32
  // CHECK-NEXT: [[E:%.*]] = ait.sub [[D]], [[A]] : f32
  // CHECK-NEXT: ait.yield [[A]], [[E]] : f32, f32
  %0 = ait.exp %x : !ait.tensor<b x 4 x f32>
  %1 = ait.exp %0 : !ait.tensor<b x 4 x f32>
  %2 = ait.add %1, %z : !ait.tensor<b x 4 x f32>
  %3 = ait.mul %v, %w : !ait.tensor<b x 4 x f32>
  %4 = ait.sub %2, %3 : !ait.tensor<b x 4 x f32>
  ait.output "y3" %3 : !ait.tensor<b x 4 x f32>
  ait.output "y4" %4 : !ait.tensor<b x 4 x f32>
}

// Integers, conditions, and casts that round.
// CHECK-LABEL: ait.graph @types
ait.graph @types(%x: !ait.tensor<b x 4 x f16>, %i: !ait.tensor<4 x i32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.fused_elementwise(%x, %i) {
  // CHECK-NEXT: ^bb0([[X:%.*]]: f32, [[I:%.*]]: i32):
  // CHECK-NEXT: [[A:%.*]] = ait.cast [[X]] : bf16
  // CHECK-NEXT: [[B:%.*]] = ait.cast [[A]] : f32
  // CHECK-NEXT: [[J:%.*]] = ait.cast [[B]] : i32
  // CHECK-NEXT: [[C:%.*]] = ait.compare lt [[J]], [[I]] : i1
  // CHECK-NEXT: [[E:%.*]] = ait.where [[C]], [[I]], [[J]] : i32
  // CHECK-NEXT: ait.yield [[E]] : i32
  // CHECK-NEXT: } : !ait.tensor<b x 4 x i32>
  %0 = ait.cast %x : !ait.tensor<b x 4 x bf16>
  %1 = ait.cast %0 : !ait.tensor<b x 4 x i32>
  %2 = ait.compare lt %1, %i : !ait.tensor<b x 4 x i1>
  %3 = ait.where %2, %i, %1 : !ait.tensor<b x 4 x i32>
  ait.output "y" %3 : !ait.tensor<b x 4 x i32>
}

// What is selected already stays as it is, the first as well as the second.
// CHECK-LABEL: ait.graph @selected
ait.graph @selected(%x: !ait.tensor<b x 4 x f32>) dims {b = 1 to 8} {
  // CHECK-COUNT-3: ait.fused_elementwise
  %0 = ait.fused_elementwise(%x) {
  ^bb0(%a: f32):
    %r = ait.relu %a : f32
    ait.yield %r : f32
  } : !ait.tensor<b x 4 x f32>
  %1 = ait.fused_elementwise(%0) {
  ^bb0(%a: f32):
    %r = ait.exp %a : f32
    ait.yield %r : f32
  } {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 4 x f32>
  %2 = ait.exp %1 : !ait.tensor<b x 4 x f32>
  ait.output "y" %2 : !ait.tensor<b x 4 x f32>
}

// Dims of 1 in front change nothing: both are one.
// CHECK-LABEL: ait.graph @leading_ones
ait.graph @leading_ones(%p: !ait.tensor<s x 1 x f32>, %f: !ait.tensor<4 x f32>) dims {s = 0 to 8} {
  // CHECK-NEXT: [[Y:%.*]] = ait.fused_elementwise(%p, %f) {
  // CHECK: } : !ait.tensor<1 x 1 x s x 4 x f16>
  // CHECK-NEXT: ait.output "y" [[Y]]
  %0 = ait.mul %p, %f : !ait.tensor<s x 4 x f32>
  %1 = ait.reshape %0 : !ait.tensor<1 x 1 x s x 4 x f32>
  %2 = ait.cos %1 : !ait.tensor<1 x 1 x s x 4 x f32>
  %3 = ait.cast %2 : !ait.tensor<1 x 1 x s x 4 x f16>
  ait.output "y" %3 : !ait.tensor<1 x 1 x s x 4 x f16>
}

// Others read it without them.
// CHECK-LABEL: ait.graph @leading_ones_two_readers
ait.graph @leading_ones_two_readers(%x: !ait.tensor<s x 4 x f32>) dims {s = 1 to 8} {
  // CHECK: ait.reshape
  %0 = ait.exp %x : !ait.tensor<s x 4 x f32>
  %1 = ait.reshape %0 : !ait.tensor<1 x s x 4 x f32>
  ait.output "y0" %0 : !ait.tensor<s x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<1 x s x 4 x f32>
}

// Not in front; not that alone; none at all.
// CHECK-LABEL: ait.graph @no_leading_ones
ait.graph @no_leading_ones(%x: !ait.tensor<s x 4 x f32>) dims {s = 1 to 8} {
  // CHECK-COUNT-4: ait.reshape
  %0 = ait.exp %x : !ait.tensor<s x 4 x f32>
  %1 = ait.reshape %0 : !ait.tensor<s x 4 x 1 x f32>
  %2 = ait.softmax %x dim 1 : !ait.tensor<s x 4 x f32>
  %3 = ait.exp %2 : !ait.tensor<s x 4 x f32>
  %4 = ait.reshape %3 : !ait.tensor<1 x 4 x s x f32>
  %5 = ait.softmax %2 dim 1 : !ait.tensor<s x 4 x f32>
  %6 = ait.exp %5 : !ait.tensor<s x 4 x f32>
  %7 = ait.reshape %6 : !ait.tensor<s x 1 x 4 x f32>
  %8 = ait.softmax %5 dim 1 : !ait.tensor<s x 4 x f32>
  %9 = ait.exp %8 : !ait.tensor<s x 4 x f32>
  %10 = ait.reshape %9 : !ait.tensor<(4*s) x f32>
  ait.output "y1" %1 : !ait.tensor<s x 4 x 1 x f32>
  ait.output "y4" %4 : !ait.tensor<1 x 4 x s x f32>
  ait.output "y7" %7 : !ait.tensor<s x 1 x 4 x f32>
  ait.output "y10" %10 : !ait.tensor<(4*s) x f32>
}

// CHECK-LABEL: ait.graph @leading_ones_selected
ait.graph @leading_ones_selected(%x: !ait.tensor<s x 4 x f32>) dims {s = 1 to 8} {
  // CHECK: ait.reshape
  %0 = ait.fused_elementwise(%x) {
  ^bb0(%a: f32):
    %r = ait.relu %a : f32
    ait.yield %r : f32
  } {kernel = #ait.kernel<"native", {}>} : !ait.tensor<s x 4 x f32>
  %1 = ait.reshape %0 : !ait.tensor<1 x s x 4 x f32>
  ait.output "y" %1 : !ait.tensor<1 x s x 4 x f32>
}

// A kernel takes 32 operands and results: 31 tensors and their sum.
// CHECK-LABEL: ait.graph @sum_of_31
ait.graph @sum_of_31(%x0: !ait.tensor<b x 4 x f32>, %x1: !ait.tensor<b x 4 x f32>, %x2: !ait.tensor<b x 4 x f32>, %x3: !ait.tensor<b x 4 x f32>, %x4: !ait.tensor<b x 4 x f32>, %x5: !ait.tensor<b x 4 x f32>, %x6: !ait.tensor<b x 4 x f32>, %x7: !ait.tensor<b x 4 x f32>, %x8: !ait.tensor<b x 4 x f32>, %x9: !ait.tensor<b x 4 x f32>, %x10: !ait.tensor<b x 4 x f32>, %x11: !ait.tensor<b x 4 x f32>, %x12: !ait.tensor<b x 4 x f32>, %x13: !ait.tensor<b x 4 x f32>, %x14: !ait.tensor<b x 4 x f32>, %x15: !ait.tensor<b x 4 x f32>, %x16: !ait.tensor<b x 4 x f32>, %x17: !ait.tensor<b x 4 x f32>, %x18: !ait.tensor<b x 4 x f32>, %x19: !ait.tensor<b x 4 x f32>, %x20: !ait.tensor<b x 4 x f32>, %x21: !ait.tensor<b x 4 x f32>, %x22: !ait.tensor<b x 4 x f32>, %x23: !ait.tensor<b x 4 x f32>, %x24: !ait.tensor<b x 4 x f32>, %x25: !ait.tensor<b x 4 x f32>, %x26: !ait.tensor<b x 4 x f32>, %x27: !ait.tensor<b x 4 x f32>, %x28: !ait.tensor<b x 4 x f32>, %x29: !ait.tensor<b x 4 x f32>, %x30: !ait.tensor<b x 4 x f32>) dims {b = 1 to 2} {
  // CHECK-COUNT-1: ait.fused_elementwise
  // CHECK-NOT: ait.fused_elementwise
  %s1 = ait.add %x0, %x1 : !ait.tensor<b x 4 x f32>
  %s2 = ait.add %s1, %x2 : !ait.tensor<b x 4 x f32>
  %s3 = ait.add %s2, %x3 : !ait.tensor<b x 4 x f32>
  %s4 = ait.add %s3, %x4 : !ait.tensor<b x 4 x f32>
  %s5 = ait.add %s4, %x5 : !ait.tensor<b x 4 x f32>
  %s6 = ait.add %s5, %x6 : !ait.tensor<b x 4 x f32>
  %s7 = ait.add %s6, %x7 : !ait.tensor<b x 4 x f32>
  %s8 = ait.add %s7, %x8 : !ait.tensor<b x 4 x f32>
  %s9 = ait.add %s8, %x9 : !ait.tensor<b x 4 x f32>
  %s10 = ait.add %s9, %x10 : !ait.tensor<b x 4 x f32>
  %s11 = ait.add %s10, %x11 : !ait.tensor<b x 4 x f32>
  %s12 = ait.add %s11, %x12 : !ait.tensor<b x 4 x f32>
  %s13 = ait.add %s12, %x13 : !ait.tensor<b x 4 x f32>
  %s14 = ait.add %s13, %x14 : !ait.tensor<b x 4 x f32>
  %s15 = ait.add %s14, %x15 : !ait.tensor<b x 4 x f32>
  %s16 = ait.add %s15, %x16 : !ait.tensor<b x 4 x f32>
  %s17 = ait.add %s16, %x17 : !ait.tensor<b x 4 x f32>
  %s18 = ait.add %s17, %x18 : !ait.tensor<b x 4 x f32>
  %s19 = ait.add %s18, %x19 : !ait.tensor<b x 4 x f32>
  %s20 = ait.add %s19, %x20 : !ait.tensor<b x 4 x f32>
  %s21 = ait.add %s20, %x21 : !ait.tensor<b x 4 x f32>
  %s22 = ait.add %s21, %x22 : !ait.tensor<b x 4 x f32>
  %s23 = ait.add %s22, %x23 : !ait.tensor<b x 4 x f32>
  %s24 = ait.add %s23, %x24 : !ait.tensor<b x 4 x f32>
  %s25 = ait.add %s24, %x25 : !ait.tensor<b x 4 x f32>
  %s26 = ait.add %s25, %x26 : !ait.tensor<b x 4 x f32>
  %s27 = ait.add %s26, %x27 : !ait.tensor<b x 4 x f32>
  %s28 = ait.add %s27, %x28 : !ait.tensor<b x 4 x f32>
  %s29 = ait.add %s28, %x29 : !ait.tensor<b x 4 x f32>
  %s30 = ait.add %s29, %x30 : !ait.tensor<b x 4 x f32>
  ait.output "y" %s30 : !ait.tensor<b x 4 x f32>
}

// One more is too many.
// CHECK-LABEL: ait.graph @sum_of_32
ait.graph @sum_of_32(%x0: !ait.tensor<b x 4 x f32>, %x1: !ait.tensor<b x 4 x f32>, %x2: !ait.tensor<b x 4 x f32>, %x3: !ait.tensor<b x 4 x f32>, %x4: !ait.tensor<b x 4 x f32>, %x5: !ait.tensor<b x 4 x f32>, %x6: !ait.tensor<b x 4 x f32>, %x7: !ait.tensor<b x 4 x f32>, %x8: !ait.tensor<b x 4 x f32>, %x9: !ait.tensor<b x 4 x f32>, %x10: !ait.tensor<b x 4 x f32>, %x11: !ait.tensor<b x 4 x f32>, %x12: !ait.tensor<b x 4 x f32>, %x13: !ait.tensor<b x 4 x f32>, %x14: !ait.tensor<b x 4 x f32>, %x15: !ait.tensor<b x 4 x f32>, %x16: !ait.tensor<b x 4 x f32>, %x17: !ait.tensor<b x 4 x f32>, %x18: !ait.tensor<b x 4 x f32>, %x19: !ait.tensor<b x 4 x f32>, %x20: !ait.tensor<b x 4 x f32>, %x21: !ait.tensor<b x 4 x f32>, %x22: !ait.tensor<b x 4 x f32>, %x23: !ait.tensor<b x 4 x f32>, %x24: !ait.tensor<b x 4 x f32>, %x25: !ait.tensor<b x 4 x f32>, %x26: !ait.tensor<b x 4 x f32>, %x27: !ait.tensor<b x 4 x f32>, %x28: !ait.tensor<b x 4 x f32>, %x29: !ait.tensor<b x 4 x f32>, %x30: !ait.tensor<b x 4 x f32>, %x31: !ait.tensor<b x 4 x f32>) dims {b = 1 to 2} {
  // CHECK-COUNT-2: ait.fused_elementwise
  %s1 = ait.add %x0, %x1 : !ait.tensor<b x 4 x f32>
  %s2 = ait.add %s1, %x2 : !ait.tensor<b x 4 x f32>
  %s3 = ait.add %s2, %x3 : !ait.tensor<b x 4 x f32>
  %s4 = ait.add %s3, %x4 : !ait.tensor<b x 4 x f32>
  %s5 = ait.add %s4, %x5 : !ait.tensor<b x 4 x f32>
  %s6 = ait.add %s5, %x6 : !ait.tensor<b x 4 x f32>
  %s7 = ait.add %s6, %x7 : !ait.tensor<b x 4 x f32>
  %s8 = ait.add %s7, %x8 : !ait.tensor<b x 4 x f32>
  %s9 = ait.add %s8, %x9 : !ait.tensor<b x 4 x f32>
  %s10 = ait.add %s9, %x10 : !ait.tensor<b x 4 x f32>
  %s11 = ait.add %s10, %x11 : !ait.tensor<b x 4 x f32>
  %s12 = ait.add %s11, %x12 : !ait.tensor<b x 4 x f32>
  %s13 = ait.add %s12, %x13 : !ait.tensor<b x 4 x f32>
  %s14 = ait.add %s13, %x14 : !ait.tensor<b x 4 x f32>
  %s15 = ait.add %s14, %x15 : !ait.tensor<b x 4 x f32>
  %s16 = ait.add %s15, %x16 : !ait.tensor<b x 4 x f32>
  %s17 = ait.add %s16, %x17 : !ait.tensor<b x 4 x f32>
  %s18 = ait.add %s17, %x18 : !ait.tensor<b x 4 x f32>
  %s19 = ait.add %s18, %x19 : !ait.tensor<b x 4 x f32>
  %s20 = ait.add %s19, %x20 : !ait.tensor<b x 4 x f32>
  %s21 = ait.add %s20, %x21 : !ait.tensor<b x 4 x f32>
  %s22 = ait.add %s21, %x22 : !ait.tensor<b x 4 x f32>
  %s23 = ait.add %s22, %x23 : !ait.tensor<b x 4 x f32>
  %s24 = ait.add %s23, %x24 : !ait.tensor<b x 4 x f32>
  %s25 = ait.add %s24, %x25 : !ait.tensor<b x 4 x f32>
  %s26 = ait.add %s25, %x26 : !ait.tensor<b x 4 x f32>
  %s27 = ait.add %s26, %x27 : !ait.tensor<b x 4 x f32>
  %s28 = ait.add %s27, %x28 : !ait.tensor<b x 4 x f32>
  %s29 = ait.add %s28, %x29 : !ait.tensor<b x 4 x f32>
  %s30 = ait.add %s29, %x30 : !ait.tensor<b x 4 x f32>
  %s31 = ait.add %s30, %x31 : !ait.tensor<b x 4 x f32>
  ait.output "y" %s31 : !ait.tensor<b x 4 x f32>
}
