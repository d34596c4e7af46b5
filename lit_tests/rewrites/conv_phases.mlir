// RUN: ait-opt %s -p phase-convolutions,simplify --check-semantics | filecheck %s

// Windows as large as the step: a product has all phases as columns, and their places are interleaved. Bias and relu are computed before.

// CHECK-LABEL: ait.graph @whole
ait.graph @whole(%x: !ait.tensor<n x h x 5 x 6 x f32>) dims {n = 0 to 3, h = 1 to 9} {
  // CHECK-NEXT: %w = ait.param "whole.w" : !ait.tensor<8 x 2 x 3 x 6 x f32>
  // CHECK-NEXT: %b = ait.param "whole.b" : !ait.tensor<1 x 8 x f32>
  // CHECK-NEXT: %0 = ait.reshape %w : !ait.tensor<8 x 2 x 1 x 3 x 1 x 6 x f32>
  // CHECK-NEXT: %1 = ait.permute %0 [1, 3, 0, 2, 4, 5] : !ait.tensor<2 x 3 x 8 x 1 x 1 x 6 x f32>
  // CHECK-NEXT: %2 = ait.reshape %1 : !ait.tensor<48 x 6 x f32>
  // CHECK-NEXT: %3 = ait.gemm rcr %x, %2 : !ait.tensor<n x h x 5 x 48 x f32>
  // CHECK-NEXT: %4 = ait.expand %b : !ait.tensor<6 x 8 x f32>
  // CHECK-NEXT: %5 = ait.reshape %4 : !ait.tensor<48 x f32>
  // CHECK-NEXT: %6 = ait.add %5, %3 : !ait.tensor<n x h x 5 x 48 x f32>
  // CHECK-NEXT: %7 = ait.relu %6 : !ait.tensor<n x h x 5 x 48 x f32>
  // CHECK-NEXT: %8 = ait.reshape %7 : !ait.tensor<n x h x 5 x 2 x 3 x 8 x f32>
  // CHECK-NEXT: %9 = ait.permute %8 [0, 1, 3, 2, 4, 5] : !ait.tensor<n x h x 2 x 5 x 3 x 8 x f32>
  // CHECK-NEXT: %10 = ait.reshape %9 : !ait.tensor<n x (2*h) x 15 x 8 x f32>
  // CHECK-NEXT: ait.output "y" %10
  %w = ait.param "whole.w" : !ait.tensor<8 x 2 x 3 x 6 x f32>
  %b = ait.param "whole.b" : !ait.tensor<1 x 8 x f32>
  %0 = ait.conv %x, %w transposed stride [2, 3] : !ait.tensor<n x (2*h) x 15 x 8 x f32>
  %1 = ait.add %b, %0 : !ait.tensor<n x (2*h) x 15 x 8 x f32>
  %2 = ait.relu %1 : !ait.tensor<n x (2*h) x 15 x 8 x f32>
  ait.output "y" %2 : !ait.tensor<n x (2*h) x 15 x 8 x f32>
}

// A bias that is defined after the convolution is added to the product.

// CHECK-LABEL: ait.graph @late_bias
ait.graph @late_bias(%x: !ait.tensor<n x h x 5 x 6 x f32>) dims {n = 0 to 3, h = 1 to 9} {
  // CHECK: %[[Y:.*]] = ait.gemm rcr %x, %{{[0-9]+}} : !ait.tensor<n x h x 5 x 12 x f32>
  // CHECK: ait.add %[[Y]], %{{[0-9]+}} : !ait.tensor<n x h x 5 x 12 x f32>
  %w = ait.param "late_bias.w" : !ait.tensor<2 x 2 x 3 x 6 x f32>
  %0 = ait.conv %x, %w transposed stride [2, 3] : !ait.tensor<n x (2*h) x 15 x 2 x f32>
  %b = ait.constant [1.0, 2.0] : !ait.tensor<2 x f32>
  %1 = ait.add %0, %b : !ait.tensor<n x (2*h) x 15 x 2 x f32>
  ait.output "y" %1 : !ait.tensor<n x (2*h) x 15 x 2 x f32>
}

// A permute to channels-first is part of the interleaving. Phases along the rows are then parts of their own, here of a batched product, those along
// the columns channels: so are they where places are cut off, for windows twice as large as the step.

// CHECK-LABEL: ait.graph @first
ait.graph @first(%x: !ait.tensor<n x h x 5 x 6 x f32>) dims {n = 0 to 3, h = 1 to 9} {
  // CHECK: %[[X:.*]] = ait.reshape %x : !ait.tensor<1 x n x (5*h) x 6 x f32>
  // CHECK-NEXT: %[[Y:.*]] = ait.bmm rcr %[[X]], %{{[0-9]+}} : !ait.tensor<2 x n x (5*h) x 24 x f32>
  // CHECK: ait.concat %{{[0-9]+}}, %{{[0-9]+}} dim 3 : !ait.tensor<n x 8 x h x 2 x 15 x f32>
  // CHECK-NEXT: ait.reshape %{{[0-9]+}} : !ait.tensor<n x 8 x (2*h) x 15 x f32>
  // CHECK: %[[EVEN:.*]] = ait.conv %x, %{{[0-9]+}} pad [1, 1, 0, 1] : !ait.tensor<n x h x 6 x 16 x f32>
  // CHECK: %[[ODD:.*]] = ait.conv %x, %{{[0-9]+}} pad [0, 1, 1, 1] : !ait.tensor<n x h x 6 x 16 x f32>
  // CHECK-NEXT: %[[A:.*]] = ait.reshape %[[EVEN]] : !ait.tensor<n x h x 12 x 8 x f32>
  // CHECK-NEXT: %[[B:.*]] = ait.slice %[[A]] offsets [0, 0, 1, 0] : !ait.tensor<n x h x 10 x 8 x f32>
  // CHECK-NEXT: %[[C:.*]] = ait.reshape %[[ODD]] : !ait.tensor<n x h x 12 x 8 x f32>
  // CHECK-NEXT: %[[D:.*]] = ait.slice %[[C]] offsets [0, 0, 1, 0] : !ait.tensor<n x h x 10 x 8 x f32>
  // CHECK-NEXT: %[[E:.*]] = ait.permute %[[B]] [0, 3, 1, 2] : !ait.tensor<n x 8 x h x 10 x f32>
  // CHECK-NEXT: %[[F:.*]] = ait.permute %[[D]] [0, 3, 1, 2] : !ait.tensor<n x 8 x h x 10 x f32>
  // CHECK-NEXT: %[[G:.*]] = ait.reshape %[[E]] : !ait.tensor<n x 8 x h x 1 x 10 x f32>
  // CHECK-NEXT: %[[H:.*]] = ait.reshape %[[F]] : !ait.tensor<n x 8 x h x 1 x 10 x f32>
  // CHECK-NEXT: %[[I:.*]] = ait.concat %[[G]], %[[H]] dim 3 : !ait.tensor<n x 8 x h x 2 x 10 x f32>
  // CHECK-NEXT: ait.reshape %[[I]] : !ait.tensor<n x 8 x (2*h) x 10 x f32>
  %w = ait.param "first.w" : !ait.tensor<8 x 2 x 3 x 6 x f32>
  %v = ait.param "first.v" : !ait.tensor<8 x 4 x 4 x 6 x f32>
  %0 = ait.conv %x, %w transposed stride [2, 3] : !ait.tensor<n x (2*h) x 15 x 8 x f32>
  %1 = ait.permute %0 [0, 3, 1, 2] : !ait.tensor<n x 8 x (2*h) x 15 x f32>
  %2 = ait.conv %x, %v transposed stride [2, 2] pad [1, 1] : !ait.tensor<n x (2*h) x 10 x 8 x f32>
  %3 = ait.permute %2 [0, 3, 1, 2] : !ait.tensor<n x 8 x (2*h) x 10 x f32>
  ait.output "y" %1 : !ait.tensor<n x 8 x (2*h) x 15 x f32>
  ait.output "z" %3 : !ait.tensor<n x 8 x (2*h) x 10 x f32>
}

// Three taps with a step of two: each phase is a convolution, of 1, 2, 2 and 4 taps. A sum with an image comes after them.

// CHECK-LABEL: ait.graph @parts
ait.graph @parts(%x: !ait.tensor<n x h x 5 x 3 x f32>, %r: !ait.tensor<n x (2*h) x 9 x 4 x f32>) dims {n = 0 to 3, h = 1 to 9} {
  // CHECK: ait.gemm rcr %x, %{{[0-9]+}} : !ait.tensor<n x h x 5 x 4 x f32>
  // CHECK: ait.conv %x, %{{[0-9]+}} pad [0, 0, 0, 1] : !ait.tensor<n x h x 5 x 4 x f32>
  // CHECK: ait.conv %x, %{{[0-9]+}} pad [0, 0, 1, 0] : !ait.tensor<n x h x 5 x 4 x f32>
  // CHECK: ait.conv %x, %{{[0-9]+}} pad [0, 0, 1, 1] : !ait.tensor<n x h x 5 x 4 x f32>
  // CHECK: ait.concat %{{[0-9]+}}, %{{[0-9]+}} dim 2 : !ait.tensor<n x h x 2 x 9 x 4 x f32>
  // CHECK-NEXT: %[[ALL:.*]] = ait.reshape %{{[0-9]+}} : !ait.tensor<n x (2*h) x 9 x 4 x f32>
  // CHECK-NEXT: ait.add %[[ALL]], %r
  %w = ait.param "parts.w" : !ait.tensor<4 x 3 x 3 x 3 x f32>
  %0 = ait.conv %x, %w transposed stride [2, 2] pad [1, 1] output_pad [1, 0] : !ait.tensor<n x (2*h) x 9 x 4 x f32>
  %1 = ait.add %0, %r : !ait.tensor<n x (2*h) x 9 x 4 x f32>
  ait.output "y" %1 : !ait.tensor<n x (2*h) x 9 x 4 x f32>
}

// Without steps, the window is mirrored. Where pads are wider than the window, x is cut. A phase between dilated taps is zero, besides its bias. The
// result of @others is read twice, once before the relu.

// CHECK-LABEL: ait.graph @others
// CHECK: ait.conv %x, %{{[0-9]+}} pad [3, 0] dilation [2, 1] groups 2 : !ait.tensor<n x (h + 2) x 3 x 4 x f32>
// CHECK: ait.slice %{{.*}} offsets [0, 1, 0, 0] : !ait.tensor<n x (h - 2) x 5 x 6 x f32>
// CHECK: ait.expand %{{[0-9]+}} : !ait.tensor<n x (h + 1) x 5 x 4 x f32>
// CHECK: ait.relu
ait.graph @others(%x: !ait.tensor<n x h x 5 x 6 x f32>, %l: !ait.tensor<n x h x 8 x f32>, %v: !ait.tensor<n x h x 3 x 2 x 4 x f32>) dims {n = 0 to 3, h = 4 to 9} {
  %a = ait.param "others.a" : !ait.tensor<4 x 3 x 3 x 3 x f32>
  %b = ait.param "others.b" : !ait.tensor<6 x 1 x 1 x 6 x f32>
  %c = ait.param "others.c" : !ait.tensor<4 x 2 x 3 x 3 x f32>
  %d = ait.param "others.d" : !ait.tensor<8 x 6 x 1 x f32>
  %e = ait.param "others.e" : !ait.tensor<6 x 4 x 2 x 3 x 4 x f32>
  %g = ait.param "others.g" : !ait.tensor<4 x f32>
  %f = ait.param "others.f" : !ait.tensor<3 x 4 x 8 x f32>
  %k = ait.constant 2.0 : !ait.tensor<f32>
  %0 = ait.conv %x, %a transposed pad [1, 2] dilation [2, 1] groups 2 : !ait.tensor<n x (h + 2) x 3 x 4 x f32>
  %1 = ait.conv %x, %b transposed pad [1, 0] : !ait.tensor<n x (h - 2) x 5 x 6 x f32>
  %2 = ait.conv %x, %c transposed stride [2, 1] pad [0, 1] dilation [2, 1] groups 2 : !ait.tensor<n x (2*h + 1) x 5 x 4 x f32>
  %3 = ait.add %2, %g : !ait.tensor<n x (2*h + 1) x 5 x 4 x f32>
  %4 = ait.relu %3 : !ait.tensor<n x (2*h + 1) x 5 x 4 x f32>
  %5 = ait.mul %3, %4 : !ait.tensor<n x (2*h + 1) x 5 x 4 x f32>
  %6 = ait.conv %l, %d transposed stride [3] pad [4] groups 8 : !ait.tensor<n x (3*h - 5) x 8 x f32>
  %7 = ait.mul %k, %6 : !ait.tensor<n x (3*h - 5) x 8 x f32>
  %8 = ait.conv %v, %e transposed stride [2, 2, 2] pad [1, 0, 1] : !ait.tensor<n x (2*h) x 6 x 3 x 6 x f32>
  %9 = ait.conv %l, %f transposed stride [2] pad [3, 0] output_pad [1] : !ait.tensor<n x (2*h) x 3 x f32>
  %10 = ait.permute %9 [0, 2, 1] : !ait.tensor<n x 3 x (2*h) x f32>
  ait.output "a" %0 : !ait.tensor<n x (h + 2) x 3 x 4 x f32>
  ait.output "b" %1 : !ait.tensor<n x (h - 2) x 5 x 6 x f32>
  ait.output "c" %5 : !ait.tensor<n x (2*h + 1) x 5 x 4 x f32>
  ait.output "d" %7 : !ait.tensor<n x (3*h - 5) x 8 x f32>
  ait.output "e" %8 : !ait.tensor<n x (2*h) x 6 x 3 x 6 x f32>
  ait.output "f" %10 : !ait.tensor<n x 3 x (2*h) x f32>
}

// Stay: a weight that is an input, an epilogue, a kernel that is chosen, more phases than convolutions that one may become, an image that may be
// smaller than its pads.

// CHECK-LABEL: ait.graph @stay
// CHECK-COUNT-5: ait.conv %x, %{{[a-z]}} transposed
ait.graph @stay(%x: !ait.tensor<n x h x 5 x 6 x f32>, %i: !ait.tensor<4 x 2 x 2 x 6 x f32>) dims {n = 0 to 3, h = 3 to 9} {
  %w = ait.param "stay.w" : !ait.tensor<4 x 2 x 2 x 6 x f32>
  %v = ait.param "stay.v" : !ait.tensor<6 x 5 x 5 x 1 x f32>
  %0 = ait.conv %x, %i transposed stride [2, 2] : !ait.tensor<n x (2*h) x 10 x 4 x f32>
  %1 = ait.conv %x, %w transposed stride [2, 2] epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<n x (2*h) x 10 x 4 x f32>
  %2 = ait.conv %x, %w transposed stride [2, 2] {kernel = #ait.kernel<"native", {}>} : !ait.tensor<n x (2*h) x 10 x 4 x f32>
  %3 = ait.conv %x, %v transposed stride [5, 5] groups 6 : !ait.tensor<n x (5*h) x 25 x 6 x f32>
  %4 = ait.conv %x, %w transposed pad [2, 0] : !ait.tensor<n x (h - 3) x 6 x 4 x f32>
  ait.output "a" %0 : !ait.tensor<n x (2*h) x 10 x 4 x f32>
  ait.output "b" %1 : !ait.tensor<n x (2*h) x 10 x 4 x f32>
  ait.output "c" %2 : !ait.tensor<n x (2*h) x 10 x 4 x f32>
  ait.output "d" %3 : !ait.tensor<n x (5*h) x 25 x 6 x f32>
  ait.output "e" %4 : !ait.tensor<n x (h - 3) x 6 x 4 x f32>
}
