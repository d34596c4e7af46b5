// RUN: ait-opt %s -p fuse-attention | filecheck %s
// RUN: ait-opt %s -p fuse-attention --check-semantics | filecheck %s --check-prefix=SAME
// SAME: builtin.module

// Scores that are capped, with a mask: scales in front are the op's, what is added last is the mask.
// CHECK-LABEL: ait.graph @capped
ait.graph @capped(%q: !ait.tensor<b x 4 x s x 8 x f16>, %k: !ait.tensor<b x 4 x l x 8 x f16>, %m: !ait.tensor<b x 1 x 1 x l x f16>) dims {b = 1 to 4, s = 2 to 8, l = 2 to 8} {
  // CHECK-NEXT: [[Y:%.*]] = ait.attention %q, %k, %k mask %m scale 0.005 nan_rows scores() {
  // CHECK-NEXT: ^bb0([[S:%.*]]: f32):
  // CHECK-NEXT:   [[C:%.*]] = ait.constant 50.0 : f32
  // CHECK-NEXT:   [[T:%.*]] = ait.tanh [[S]] : f32
  // CHECK-NEXT:   [[R:%.*]] = ait.mul [[T]], [[C]] : f32
  // CHECK-NEXT:   ait.yield [[R]] : f32
  // CHECK-NEXT: } : !ait.tensor<b x 4 x s x 8 x f16>
  // CHECK-NEXT: ait.output "y" [[Y]]
  %c = ait.constant 0.25 : !ait.tensor<f16>
  %d = ait.constant 50.0 : !ait.tensor<f16>
  %0 = ait.bmm rcr %q, %k : !ait.tensor<b x 4 x s x l x f16>
  %1 = ait.mul %0, %c : !ait.tensor<b x 4 x s x l x f16>
  %2 = ait.div %1, %d : !ait.tensor<b x 4 x s x l x f16>
  %3 = ait.tanh %2 : !ait.tensor<b x 4 x s x l x f16>
  %4 = ait.mul %3, %d : !ait.tensor<b x 4 x s x l x f16>
  %5 = ait.add %4, %m : !ait.tensor<b x 4 x s x l x f16>
  %6 = ait.softmax %5 dim 3 : !ait.tensor<b x 4 x s x l x f16>
  %7 = ait.bmm rrr %6, %k : !ait.tensor<b x 4 x s x 8 x f16>
  ait.output "y" %7 : !ait.tensor<b x 4 x s x 8 x f16>
}

// Batch and heads are one dim in the products, two in the softmax; each operand moves to where both are.
// CHECK-LABEL: ait.graph @reshaped
ait.graph @reshaped(%q: !ait.tensor<12 x s x 8 x f16>, %v: !ait.tensor<12 x s x 6 x f16>, %a: !ait.tensor<12 x 1 x s x f16>, %m: !ait.tensor<3 x 1 x s x s x f16>) dims {s = 2 to 8} {
  // CHECK: [[A:%.*]] = ait.reshape %a : !ait.tensor<3 x 4 x 1 x s x f16>
  // CHECK: [[Y:%.*]] = ait.attention {{%.*}}, {{%.*}}, {{%.*}} mask %m scale 1.0 nan_rows scores([[A]]) {
  // CHECK: } : !ait.tensor<3 x 4 x s x 6 x f16>
  // CHECK: ait.reshape [[Y]] : !ait.tensor<12 x s x 6 x f16>
  // CHECK-NOT: ait.softmax
  %0 = ait.bmm rcr %q, %q : !ait.tensor<12 x s x s x f16>
  %1 = ait.add %0, %a : !ait.tensor<12 x s x s x f16>
  %2 = ait.reshape %1 : !ait.tensor<3 x 4 x s x s x f16>
  %3 = ait.add %2, %m : !ait.tensor<3 x 4 x s x s x f16>
  %4 = ait.softmax %3 dim 3 : !ait.tensor<3 x 4 x s x s x f16>
  %5 = ait.reshape %4 : !ait.tensor<12 x s x s x f16>
  %6 = ait.bmm rrr %5, %v : !ait.tensor<12 x s x 6 x f16>
  ait.output "y" %6 : !ait.tensor<12 x s x 6 x f16>
}

// The windows of an image have masks: these repeat for each image, which no stride says, so they are spread.
// CHECK-LABEL: ait.graph @windows
ait.graph @windows(%q: !ait.tensor<6 x 4 x 5 x 8 x f32>, %m: !ait.tensor<3 x 1 x 5 x 5 x f32>) {
  // CHECK: [[E:%.*]] = ait.expand %m : !ait.tensor<2 x 3 x 1 x 5 x 5 x f32>
  // CHECK: ait.attention
  // CHECK-NOT: ait.softmax
  %0 = ait.bmm rcr %q, %q : !ait.tensor<6 x 4 x 5 x 5 x f32>
  %1 = ait.reshape %0 : !ait.tensor<2 x 3 x 4 x 5 x 5 x f32>
  %2 = ait.add %1, %m : !ait.tensor<2 x 3 x 4 x 5 x 5 x f32>
  %3 = ait.reshape %2 : !ait.tensor<6 x 4 x 5 x 5 x f32>
  %4 = ait.softmax %3 dim 3 : !ait.tensor<6 x 4 x 5 x 5 x f32>
  %5 = ait.bmm rrr %4, %q : !ait.tensor<6 x 4 x 5 x 8 x f32>
  ait.output "y" %5 : !ait.tensor<6 x 4 x 5 x 8 x f32>
}

// What is used elsewhere, what changes the shape, another dim, an epilogue: no attention.
// CHECK-LABEL: ait.graph @other_users
ait.graph @other_users(%q: !ait.tensor<b x 4 x s x 8 x f32>, %m: !ait.tensor<b x 4 x s x s x f32>, %w: !ait.tensor<b x 8 x s x s x f32>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK-NOT: ait.attention
  // CHECK: ait.output "y5"
  // the product is an output, too
  %0 = ait.bmm rcr %q, %q : !ait.tensor<b x 4 x s x s x f32>
  %1 = ait.tanh %0 : !ait.tensor<b x 4 x s x s x f32>
  %2 = ait.softmax %1 dim 3 : !ait.tensor<b x 4 x s x s x f32>
  %3 = ait.bmm rrr %2, %q : !ait.tensor<b x 4 x s x 8 x f32>
  ait.output "p0" %0 : !ait.tensor<b x 4 x s x s x f32>
  ait.output "y0" %3 : !ait.tensor<b x 4 x s x 8 x f32>
  // the changed scores are
  %4 = ait.bmm rcr %q, %q : !ait.tensor<b x 4 x s x s x f32>
  %5 = ait.tanh %4 : !ait.tensor<b x 4 x s x s x f32>
  %6 = ait.softmax %5 dim 3 : !ait.tensor<b x 4 x s x s x f32>
  %7 = ait.bmm rrr %6, %q : !ait.tensor<b x 4 x s x 8 x f32>
  ait.output "p1" %5 : !ait.tensor<b x 4 x s x s x f32>
  ait.output "y1" %7 : !ait.tensor<b x 4 x s x 8 x f32>
  // the weights are
  %8 = ait.bmm rcr %q, %q : !ait.tensor<b x 4 x s x s x f32>
  %9 = ait.tanh %8 : !ait.tensor<b x 4 x s x s x f32>
  %10 = ait.softmax %9 dim 3 : !ait.tensor<b x 4 x s x s x f32>
  %11 = ait.bmm rrr %10, %q : !ait.tensor<b x 4 x s x 8 x f32>
  ait.output "p2" %10 : !ait.tensor<b x 4 x s x s x f32>
  ait.output "y2" %11 : !ait.tensor<b x 4 x s x 8 x f32>
  // the softmax is over rows
  %12 = ait.bmm rcr %q, %q : !ait.tensor<b x 4 x s x s x f32>
  %13 = ait.tanh %12 : !ait.tensor<b x 4 x s x s x f32>
  %14 = ait.softmax %13 dim 2 : !ait.tensor<b x 4 x s x s x f32>
  %15 = ait.bmm rrr %14, %q : !ait.tensor<b x 4 x s x 8 x f32>
  ait.output "y3" %15 : !ait.tensor<b x 4 x s x 8 x f32>
  // the first product has an epilogue
  %16 = ait.bmm rcr %q, %q epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<b x 4 x s x s x f32>
  %17 = ait.tanh %16 : !ait.tensor<b x 4 x s x s x f32>
  %18 = ait.softmax %17 dim 3 : !ait.tensor<b x 4 x s x s x f32>
  %19 = ait.bmm rrr %18, %q : !ait.tensor<b x 4 x s x 8 x f32>
  ait.output "y4" %19 : !ait.tensor<b x 4 x s x 8 x f32>
  // the second one has
  %20 = ait.bmm rcr %q, %q : !ait.tensor<b x 4 x s x s x f32>
  %21 = ait.tanh %20 : !ait.tensor<b x 4 x s x s x f32>
  %22 = ait.softmax %21 dim 3 : !ait.tensor<b x 4 x s x s x f32>
  %23 = ait.bmm rrr %22, %q epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<b x 4 x s x 8 x f32>
  ait.output "y5" %23 : !ait.tensor<b x 4 x s x 8 x f32>
}

// Heads that are too wide, a product that a kernel was chosen for, scores that an operand enlarges, too many operands.
// CHECK-LABEL: ait.graph @misfits
ait.graph @misfits(%q: !ait.tensor<b x 4 x s x 264 x f32>, %o: !ait.tensor<b x 1 x s x 8 x f32>, %w: !ait.tensor<b x 4 x s x s x f32>, %a: !ait.tensor<s x f32>, %c: !ait.tensor<s x f32>, %d: !ait.tensor<s x f32>, %e: !ait.tensor<s x f32>, %f: !ait.tensor<s x f32>, %g: !ait.tensor<s x f32>, %h: !ait.tensor<s x f32>, %x: !ait.tensor<b x 4 x s x 8 x f32>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK-NOT: ait.attention
  // CHECK: ait.output "y3"
  %0 = ait.bmm rcr %q, %q : !ait.tensor<b x 4 x s x s x f32>
  %1 = ait.tanh %0 : !ait.tensor<b x 4 x s x s x f32>
  %2 = ait.softmax %1 dim 3 : !ait.tensor<b x 4 x s x s x f32>
  %3 = ait.bmm rrr %2, %q : !ait.tensor<b x 4 x s x 264 x f32>
  ait.output "y0" %3 : !ait.tensor<b x 4 x s x 264 x f32>
  %4 = ait.bmm rcr %x, %x : !ait.tensor<b x 4 x s x s x f32>
  %5 = ait.tanh %4 : !ait.tensor<b x 4 x s x s x f32>
  %6 = ait.softmax %5 dim 3 : !ait.tensor<b x 4 x s x s x f32>
  %7 = ait.bmm rrr %6, %x {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 4 x s x 8 x f32>
  ait.output "y1" %7 : !ait.tensor<b x 4 x s x 8 x f32>
  %8 = ait.bmm rcr %o, %o : !ait.tensor<b x 1 x s x s x f32>
  %9 = ait.mul %8, %w : !ait.tensor<b x 4 x s x s x f32>
  %10 = ait.softmax %9 dim 3 : !ait.tensor<b x 4 x s x s x f32>
  %11 = ait.bmm rrr %10, %x : !ait.tensor<b x 4 x s x 8 x f32>
  ait.output "y2" %11 : !ait.tensor<b x 4 x s x 8 x f32>
  %12 = ait.bmm rcr %x, %x : !ait.tensor<b x 4 x s x s x f32>
  %13 = ait.mul %12, %a : !ait.tensor<b x 4 x s x s x f32>
  %14 = ait.mul %13, %c : !ait.tensor<b x 4 x s x s x f32>
  %15 = ait.mul %14, %d : !ait.tensor<b x 4 x s x s x f32>
  %16 = ait.mul %15, %e : !ait.tensor<b x 4 x s x s x f32>
  %17 = ait.mul %16, %f : !ait.tensor<b x 4 x s x s x f32>
  %18 = ait.mul %17, %g : !ait.tensor<b x 4 x s x s x f32>
  %19 = ait.mul %18, %h : !ait.tensor<b x 4 x s x s x f32>
  %20 = ait.softmax %19 dim 3 : !ait.tensor<b x 4 x s x s x f32>
  %21 = ait.bmm rrr %20, %x : !ait.tensor<b x 4 x s x 8 x f32>
  ait.output "y3" %21 : !ait.tensor<b x 4 x s x 8 x f32>
}

// A bias plus padding, and slopes times places, are computed in the kernel; they may have other users.
// CHECK-LABEL: ait.graph @computed
ait.graph @computed(%q: !ait.tensor<b x 4 x s x 8 x f16>, %bias: !ait.tensor<4 x s x s x f16>, %m: !ait.tensor<b x 1 x 1 x s x f16>, %slope: !ait.tensor<4 x 1 x 1 x f16>, %place: !ait.tensor<s x f16>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK: ait.attention %q, %q, %q scale 0.5 scores(%bias, %m) {
  // CHECK: ait.attention %q, %q, %q scale 0.5 causal log_sums scores(%slope, %place) {
  %0 = ait.add %bias, %m : !ait.tensor<b x 4 x s x s x f16>
  %1 = ait.attention %q, %q, %q mask %0 scale 0.5 : !ait.tensor<b x 4 x s x 8 x f16>
  %2 = ait.mul %slope, %place : !ait.tensor<4 x 1 x s x f16>
  %3, %sums = ait.attention %q, %q, %q mask %2 scale 0.5 causal log_sums : !ait.tensor<b x 4 x s x 8 x f16>, !ait.tensor<b x 4 x s x f32>
  ait.output "bias" %0 : !ait.tensor<b x 4 x s x s x f16>
  ait.output "y" %1 : !ait.tensor<b x 4 x s x 8 x f16>
  ait.output "z" %3 : !ait.tensor<b x 4 x s x 8 x f16>
  ait.output "sums" %sums : !ait.tensor<b x 4 x s x f32>
}

// Not in the kernel: what a tensor of the same size is read for, what is not cheap, and where a kernel was chosen.
// CHECK-LABEL: ait.graph @not_computed
ait.graph @not_computed(%q: !ait.tensor<b x 4 x s x 8 x f16>, %bias: !ait.tensor<4 x s x s x f16>, %other: !ait.tensor<4 x s x s x f16>, %slope: !ait.tensor<4 x 1 x 1 x f16>, %place: !ait.tensor<s x f16>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK: [[A:%.*]] = ait.add %bias, %other
  // CHECK: ait.attention %q, %q, %q mask [[A]] scale 0.5 :
  // CHECK: [[P:%.*]] = ait.pow %slope, %place
  // CHECK: ait.attention %q, %q, %q mask [[P]] scale 0.5 :
  // CHECK: [[M:%.*]] = ait.mul %slope, %place
  // CHECK: ait.attention %q, %q, %q mask [[M]] scale 0.5 {
  %0 = ait.add %bias, %other : !ait.tensor<4 x s x s x f16>
  %1 = ait.attention %q, %q, %q mask %0 scale 0.5 : !ait.tensor<b x 4 x s x 8 x f16>
  %2 = ait.pow %slope, %place : !ait.tensor<4 x 1 x s x f16>
  %3 = ait.attention %q, %q, %q mask %2 scale 0.5 : !ait.tensor<b x 4 x s x 8 x f16>
  %4 = ait.mul %slope, %place : !ait.tensor<4 x 1 x s x f16>
  %5 = ait.attention %q, %q, %q mask %4 scale 0.5 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 4 x s x 8 x f16>
  ait.output "x" %1 : !ait.tensor<b x 4 x s x 8 x f16>
  ait.output "y" %3 : !ait.tensor<b x 4 x s x 8 x f16>
  ait.output "z" %5 : !ait.tensor<b x 4 x s x 8 x f16>
}

// Dims of 1 in front of a mask, and an expand of it, are not needed; a reshape of rows and columns is.
// CHECK-LABEL: ait.graph @broadcast
ait.graph @broadcast(%q: !ait.tensor<b x 4 x s x 8 x f16>, %m: !ait.tensor<s x s x f16>, %n: !ait.tensor<4 x 1 x s x f16>, %flat: !ait.tensor<(s * s) x f16>) dims {b = 1 to 4, s = 2 to 8} {
  // CHECK-NEXT: [[Y:%.*]] = ait.attention %q, %q, %q mask %m scale 0.5 :
  // CHECK-NEXT: [[Z:%.*]] = ait.attention %q, %q, %q mask %n scale 0.5 :
  // CHECK-NEXT: [[F:%.*]] = ait.reshape %flat
  // CHECK-NEXT: ait.attention %q, %q, %q mask [[F]] scale 0.5 :
  %0 = ait.reshape %m : !ait.tensor<1 x 1 x s x s x f16>
  %1 = ait.attention %q, %q, %q mask %0 scale 0.5 : !ait.tensor<b x 4 x s x 8 x f16>
  %2 = ait.expand %n : !ait.tensor<b x 4 x s x s x f16>
  %3 = ait.attention %q, %q, %q mask %2 scale 0.5 : !ait.tensor<b x 4 x s x 8 x f16>
  %4 = ait.reshape %flat : !ait.tensor<s x s x f16>
  %5 = ait.attention %q, %q, %q mask %4 scale 0.5 : !ait.tensor<b x 4 x s x 8 x f16>
  ait.output "y" %1 : !ait.tensor<b x 4 x s x 8 x f16>
  ait.output "z" %3 : !ait.tensor<b x 4 x s x 8 x f16>
  ait.output "f" %5 : !ait.tensor<b x 4 x s x 8 x f16>
}

// The second product multiplies with columns of values: no attention.
// CHECK-LABEL: ait.graph @columns_of_values
ait.graph @columns_of_values(%q: !ait.tensor<b x 4 x 8 x 8 x f16>, %h: !ait.tensor<8 x 8 x f16>) dims {b = 1 to 2} {
  // CHECK-NOT: ait.attention
  // CHECK: ait.output
  %0 = ait.bmm rcr %q, %q : !ait.tensor<b x 4 x 8 x 8 x f16>
  %1 = ait.tanh %0 : !ait.tensor<b x 4 x 8 x 8 x f16>
  %2 = ait.add %1, %h : !ait.tensor<b x 4 x 8 x 8 x f16>
  %3 = ait.softmax %2 dim 3 : !ait.tensor<b x 4 x 8 x 8 x f16>
  %4 = ait.bmm rcr %3, %q : !ait.tensor<b x 4 x 8 x 8 x f16>
  ait.output "y" %4 : !ait.tensor<b x 4 x 8 x 8 x f16>
}

// A selected kernel keeps the mask that it was selected for.
// CHECK-LABEL: ait.graph @selected_with_broadcast_mask
ait.graph @selected_with_broadcast_mask(%q: !ait.tensor<b x 4 x 8 x 8 x f16>, %m: !ait.tensor<1 x 8 x f16>) dims {b = 1 to 2} {
  // CHECK: [[M:%.*]] = ait.expand %m : !ait.tensor<8 x 8 x f16>
  // CHECK-NEXT: ait.attention %q, %q, %q mask [[M]]
  %0 = ait.expand %m : !ait.tensor<8 x 8 x f16>
  %1 = ait.attention %q, %q, %q mask %0 scale 0.5 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 4 x 8 x 8 x f16>
  ait.output "y" %1 : !ait.tensor<b x 4 x 8 x 8 x f16>
}
