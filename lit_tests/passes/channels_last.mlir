// RUN: ait-opt %s -p channels-last --check-semantics | filecheck %s

// Elementwise ops, broadcast values, reductions and concatenations between two convolutions are computed channels-last.

// CHECK-LABEL: ait.graph @block
ait.graph @block(%x: !ait.tensor<n x 6 x 8 x 8 x f16>, %w: !ait.tensor<6 x 3 x 3 x 6 x f16>, %s: !ait.tensor<6 x f16>) dims {n = 1 to 4} {
  // CHECK-NEXT: %0 = ait.permute %x [0, 2, 3, 1]
  // CHECK-NEXT: %1 = ait.conv %0, %w pad [1, 1] : !ait.tensor<n x 8 x 8 x 6 x f16>
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<n x 8 x 8 x 6 x f16>
  %1 = ait.conv %0, %w pad [1, 1] : !ait.tensor<n x 8 x 8 x 6 x f16>
  %2 = ait.permute %1 [0, 3, 1, 2] : !ait.tensor<n x 6 x 8 x 8 x f16>
  // CHECK-NEXT: %2 = ait.reshape %s : !ait.tensor<6 x 1 x 1 x f16>
  // CHECK-NEXT: %3 = ait.reshape %2 : !ait.tensor<6 x f16>
  // CHECK-NEXT: %4 = ait.mul %1, %3 : !ait.tensor<n x 8 x 8 x 6 x f16>
  %3 = ait.reshape %s : !ait.tensor<6 x 1 x 1 x f16>
  %4 = ait.mul %2, %3 : !ait.tensor<n x 6 x 8 x 8 x f16>
  // CHECK-NEXT: %5 = ait.relu %4 : !ait.tensor<n x 8 x 8 x 6 x f16>
  %5 = ait.relu %4 : !ait.tensor<n x 6 x 8 x 8 x f16>
  // CHECK-NEXT: %6 = ait.reduce mean %5 dims [1, 2] : !ait.tensor<n x 6 x f16>
  // CHECK-NEXT: %7 = ait.reshape %6 : !ait.tensor<n x 6 x 1 x 1 x f16>
  // CHECK-NEXT: %8 = ait.reshape %7 : !ait.tensor<n x 1 x 1 x 6 x f16>
  // CHECK-NEXT: %9 = ait.mul %5, %8 : !ait.tensor<n x 8 x 8 x 6 x f16>
  %6 = ait.reduce mean %5 dims [2, 3] : !ait.tensor<n x 6 x f16>
  %7 = ait.reshape %6 : !ait.tensor<n x 6 x 1 x 1 x f16>
  %8 = ait.mul %5, %7 : !ait.tensor<n x 6 x 8 x 8 x f16>
  // CHECK-NEXT: %10 = ait.add %9, %1
  %9 = ait.add %8, %2 : !ait.tensor<n x 6 x 8 x 8 x f16>
  // CHECK-NEXT: %11 = ait.concat %10, %5 dim 3
  // CHECK-NEXT: %12 = ait.slice %11 offsets [0, 0, 1, 3] : !ait.tensor<n x 8 x 7 x 6 x f16>
  // CHECK-NEXT: %13 = ait.softmax %12 dim 3
  %10 = ait.concat %9, %5 dim 1 : !ait.tensor<n x 12 x 8 x 8 x f16>
  %11 = ait.slice %10 offsets [0, 3, 0, 1] : !ait.tensor<n x 6 x 8 x 7 x f16>
  %12 = ait.softmax %11 dim 1 : !ait.tensor<n x 6 x 8 x 7 x f16>
  // CHECK-NEXT: %14 = ait.conv %13, %w
  // CHECK-NEXT: %15 = ait.permute %14 [0, 3, 1, 2]
  // CHECK-NEXT: ait.output "y" %15
  %13 = ait.permute %12 [0, 2, 3, 1] : !ait.tensor<n x 8 x 7 x 6 x f16>
  %14 = ait.conv %13, %w : !ait.tensor<n x 6 x 5 x 6 x f16>
  %15 = ait.permute %14 [0, 3, 1, 2] : !ait.tensor<n x 6 x 6 x 5 x f16>
  ait.output "y" %15 : !ait.tensor<n x 6 x 6 x 5 x f16>
}

// Flattened places are tokens: [N, C, H, W] to [N, C, H * W] to [N, H * W, C] is a reshape, there and back.

// CHECK-LABEL: ait.graph @tokens
ait.graph @tokens(%x: !ait.tensor<n x 8 x 8 x 6 x f16>, %w: !ait.tensor<6 x 3 x 3 x 6 x f16>) dims {n = 1 to 4} {
  // CHECK-NEXT: %0 = ait.conv
  // CHECK-NEXT: %1 = ait.reshape %0 : !ait.tensor<n x 64 x 6 x f16>
  // CHECK-NEXT: %2 = ait.layer_norm %1 axes 1
  // CHECK-NEXT: %3 = ait.reshape %2 : !ait.tensor<n x 8 x 8 x 6 x f16>
  // CHECK-NEXT: %4 = ait.add %0, %3
  // CHECK-NEXT: %5, %6 = ait.split %4 dim 3
  // CHECK-NEXT: %7 = ait.permute %5 [0, 3, 1, 2]
  // CHECK-NEXT: ait.output "y" %7
  %0 = ait.conv %x, %w pad [1, 1] : !ait.tensor<n x 8 x 8 x 6 x f16>
  %1 = ait.permute %0 [0, 3, 1, 2] : !ait.tensor<n x 6 x 8 x 8 x f16>
  %2 = ait.reshape %1 : !ait.tensor<n x 6 x 64 x f16>
  %3 = ait.permute %2 [0, 2, 1] : !ait.tensor<n x 64 x 6 x f16>
  %4 = ait.layer_norm %3 axes 1 eps 1e-05 : !ait.tensor<n x 64 x 6 x f16>
  %5 = ait.permute %4 [0, 2, 1] : !ait.tensor<n x 6 x 64 x f16>
  %6 = ait.reshape %5 : !ait.tensor<n x 6 x 8 x 8 x f16>
  %7 = ait.add %1, %6 : !ait.tensor<n x 6 x 8 x 8 x f16>
  %8, %9 = ait.split %7 dim 1 : !ait.tensor<n x 2 x 8 x 8 x f16>, !ait.tensor<n x 4 x 8 x 8 x f16>
  ait.output "y" %8 : !ait.tensor<n x 2 x 8 x 8 x f16>
}

// One place: channels-first and channels-last are one order. Operands with all channels and places, which do not come
// from a convolution, are permuted if they are params.

// CHECK-LABEL: ait.graph @single
ait.graph @single(%x: !ait.tensor<n x 8 x 8 x 6 x f16>, %w: !ait.tensor<6 x 8 x 8 x 6 x f16>, %v: !ait.tensor<6 x 3 x 3 x 6 x f16>) dims {n = 1 to 4} {
  // CHECK: %0 = ait.conv %x, %w
  // CHECK-NEXT: %1 = ait.reshape %0 : !ait.tensor<n x 6 x f16>
  // CHECK-NEXT: ait.output "y" %1
  // CHECK-NEXT: %2 = ait.conv
  // CHECK-NEXT: %3 = ait.permute %p [0, 2, 3, 1]
  // CHECK-NEXT: %4 = ait.add %2, %3
  // CHECK-NEXT: %5 = ait.reduce max %4 dims [2] : !ait.tensor<n x 8 x 6 x f16>
  // CHECK-NEXT: %6 = ait.permute %5 [0, 2, 1] : !ait.tensor<n x 6 x 8 x f16>
  // CHECK-NEXT: ait.output "z" %6
  %p = ait.param "p" : !ait.tensor<1 x 6 x 8 x 8 x f16>
  %0 = ait.conv %x, %w : !ait.tensor<n x 1 x 1 x 6 x f16>
  %1 = ait.permute %0 [0, 3, 1, 2] : !ait.tensor<n x 6 x 1 x 1 x f16>
  %2 = ait.reshape %1 : !ait.tensor<n x 6 x f16>
  ait.output "y" %2 : !ait.tensor<n x 6 x f16>
  %3 = ait.conv %x, %v pad [1, 1] : !ait.tensor<n x 8 x 8 x 6 x f16>
  %4 = ait.permute %3 [0, 3, 1, 2] : !ait.tensor<n x 6 x 8 x 8 x f16>
  %5 = ait.add %4, %p : !ait.tensor<n x 6 x 8 x 8 x f16>
  %6 = ait.reduce max %5 dims [3] : !ait.tensor<n x 6 x 8 x f16>
  ait.output "z" %6 : !ait.tensor<n x 6 x 8 x f16>
}

// ** what stays **

// An operand that would have to move in every run, and ops whose dims are not alike.

// CHECK-LABEL: ait.graph @stays
ait.graph @stays(%x: !ait.tensor<n x 8 x 8 x 6 x f16>, %w: !ait.tensor<6 x 3 x 3 x 6 x f16>, %r: !ait.tensor<n x 6 x 8 x 8 x f16>, %q: !ait.tensor<6 x 8 x 8 x f16>) dims {n = 1 to 4} {
  // CHECK-NEXT: %0 = ait.conv
  // CHECK-NEXT: %1 = ait.permute %0 [0, 3, 1, 2]
  // CHECK-NEXT: %2 = ait.add %1, %r : !ait.tensor<n x 6 x 8 x 8 x f16>
  // CHECK-NEXT: %3 = ait.add %1, %q : !ait.tensor<n x 6 x 8 x 8 x f16>
  // CHECK-NEXT: %4 = ait.layer_norm %1 axes 3
  // CHECK-NEXT: %5 = ait.reshape %1 : !ait.tensor<n x 384 x f16>
  // CHECK-NEXT: %6 = ait.reshape %1 : !ait.tensor<n x 2 x 3 x 64 x f16>
  // CHECK-NEXT: %7 = ait.relu %r
  %0 = ait.conv %x, %w pad [1, 1] : !ait.tensor<n x 8 x 8 x 6 x f16>
  %1 = ait.permute %0 [0, 3, 1, 2] : !ait.tensor<n x 6 x 8 x 8 x f16>
  %2 = ait.add %1, %r : !ait.tensor<n x 6 x 8 x 8 x f16>
  %3 = ait.add %1, %q : !ait.tensor<n x 6 x 8 x 8 x f16>
  %4 = ait.layer_norm %1 axes 3 eps 1e-05 : !ait.tensor<n x 6 x 8 x 8 x f16>
  %5 = ait.reshape %1 : !ait.tensor<n x 384 x f16>
  %6 = ait.reshape %1 : !ait.tensor<n x 2 x 3 x 64 x f16>
  %7 = ait.relu %r : !ait.tensor<n x 6 x 8 x 8 x f16>
  ait.output "a" %2 : !ait.tensor<n x 6 x 8 x 8 x f16>
  ait.output "b" %3 : !ait.tensor<n x 6 x 8 x 8 x f16>
  ait.output "c" %4 : !ait.tensor<n x 6 x 8 x 8 x f16>
  ait.output "d" %5 : !ait.tensor<n x 384 x f16>
  ait.output "e" %6 : !ait.tensor<n x 2 x 3 x 64 x f16>
  ait.output "f" %7 : !ait.tensor<n x 6 x 8 x 8 x f16>
}

// A graph without such ops is left alone: the permutes of attention are no layouts.

// CHECK-LABEL: ait.graph @heads
ait.graph @heads(%x: !ait.tensor<n x 8 x 4 x 6 x f16>) dims {n = 1 to 4} {
  // CHECK-NEXT: %0 = ait.permute %x [0, 3, 1, 2]
  // CHECK-NEXT: %1 = ait.relu %0 : !ait.tensor<n x 6 x 8 x 4 x f16>
  %0 = ait.permute %x [0, 3, 1, 2] : !ait.tensor<n x 6 x 8 x 4 x f16>
  %1 = ait.relu %0 : !ait.tensor<n x 6 x 8 x 4 x f16>
  ait.output "y" %1 : !ait.tensor<n x 6 x 8 x 4 x f16>
}

// Patches that a product made: tokens, or an image, without a copy.

// CHECK-LABEL: ait.graph @patches
ait.graph @patches(%x: !ait.tensor<n x 16 x 12 x f16>, %w: !ait.tensor<6 x 12 x f16>) dims {n = 1 to 4} {
  // CHECK-NEXT: %0 = ait.gemm
  // CHECK-NEXT: %1 = ait.reshape %0 : !ait.tensor<n x 4 x 4 x 6 x f16>
  // CHECK-NEXT: %2 = ait.reshape %1 : !ait.tensor<n x 16 x 6 x f16>
  // CHECK-NEXT: %3 = ait.relu %2
  // CHECK-NEXT: ait.output "y" %3
  %0 = ait.gemm rcr %x, %w : !ait.tensor<n x 16 x 6 x f16>
  %1 = ait.reshape %0 : !ait.tensor<n x 4 x 4 x 6 x f16>
  %2 = ait.permute %1 [0, 3, 1, 2] : !ait.tensor<n x 6 x 4 x 4 x f16>
  %3 = ait.reshape %2 : !ait.tensor<n x 6 x 16 x f16>
  %4 = ait.permute %3 [0, 2, 1] : !ait.tensor<n x 16 x 6 x f16>
  %5 = ait.relu %4 : !ait.tensor<n x 16 x 6 x f16>
  ait.output "y" %5 : !ait.tensor<n x 16 x 6 x f16>
}

// A group norm names its channels; its scale and bias stay as they are.

// CHECK-LABEL: ait.graph @group_norm
ait.graph @group_norm(%x: !ait.tensor<n x 8 x 8 x 6 x f16>, %w: !ait.tensor<6 x 3 x 3 x 6 x f16>, %s: !ait.tensor<6 x f16>) dims {n = 1 to 4} {
  // CHECK-NEXT: %0 = ait.conv
  // CHECK-NEXT: %1 = ait.group_norm %0 scale %s bias %s dim 3 groups 2 eps 1e-05 : !ait.tensor<n x 8 x 8 x 6 x f16>
  // CHECK-NEXT: %2 = ait.conv %1
  // CHECK-NEXT: ait.output "y" %2
  %0 = ait.conv %x, %w pad [1, 1] : !ait.tensor<n x 8 x 8 x 6 x f16>
  %1 = ait.permute %0 [0, 3, 1, 2] : !ait.tensor<n x 6 x 8 x 8 x f16>
  %2 = ait.group_norm %1 scale %s bias %s dim 1 groups 2 eps 1e-05 : !ait.tensor<n x 6 x 8 x 8 x f16>
  %3 = ait.permute %2 [0, 2, 3, 1] : !ait.tensor<n x 8 x 8 x 6 x f16>
  %4 = ait.conv %3, %w : !ait.tensor<n x 6 x 6 x 6 x f16>
  ait.output "y" %4 : !ait.tensor<n x 6 x 6 x 6 x f16>
}

// A region may have operands that broadcast by position: such an op stays as it is.

// CHECK-LABEL: ait.graph @group_norm_with_an_epilogue
ait.graph @group_norm_with_an_epilogue(%x: !ait.tensor<n x 8 x 8 x 6 x f16>, %w: !ait.tensor<6 x 3 x 3 x 6 x f16>) dims {n = 1 to 4} {
  // CHECK: ait.group_norm {{.*}} dim 1 groups 2
  %0 = ait.conv %x, %w pad [1, 1] : !ait.tensor<n x 8 x 8 x 6 x f16>
  %1 = ait.permute %0 [0, 3, 1, 2] : !ait.tensor<n x 6 x 8 x 8 x f16>
  %2 = ait.group_norm %1 dim 1 groups 2 eps 1e-05 epilogue() {
  ^bb0(%acc: f32):
    %r = ait.silu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<n x 6 x 8 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<n x 6 x 8 x 8 x f16>
}

// A pad between a pool and an upsampling keeps its dims.

// CHECK-LABEL: ait.graph @padded
ait.graph @padded(%x: !ait.tensor<n x 8 x 8 x 6 x f16>) dims {n = 1 to 4} {
  // CHECK-NEXT: %0 = ait.pool max %x window [2, 2]
  // CHECK-NEXT: %1 = ait.pad constant %0 before [0, 2, -1, 1] value 0.5 : !ait.tensor<n x 9 x 5 x 7 x f16>
  // CHECK-NEXT: %2 = ait.resize nearest %1 : !ait.tensor<n x 18 x 10 x 7 x f16>
  // CHECK-NEXT: ait.output "y" %2
  %0 = ait.pool max %x window [2, 2] : !ait.tensor<n x 7 x 7 x 6 x f16>
  %1 = ait.permute %0 [0, 3, 1, 2] : !ait.tensor<n x 6 x 7 x 7 x f16>
  %2 = ait.pad constant %1 before [0, 1, 2, -1] value 0.5 : !ait.tensor<n x 7 x 9 x 5 x f16>
  %3 = ait.permute %2 [0, 2, 3, 1] : !ait.tensor<n x 9 x 5 x 7 x f16>
  %4 = ait.resize nearest %3 : !ait.tensor<n x 18 x 10 x 7 x f16>
  ait.output "y" %4 : !ait.tensor<n x 18 x 10 x 7 x f16>
}
