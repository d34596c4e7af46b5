// RUN: ait-opt %s -p multiply-planes --check-semantics | filecheck %s

// The planes of channels-first images are the rows of a factor; bias, activation and residual are in the order of the planes.

// CHECK-LABEL: ait.graph @images
ait.graph @images(%x: !ait.tensor<n x 8 x 8 x 10 x f32>, %r: !ait.tensor<n x 6 x 8 x 10 x f32>) dims {n = 0 to 3} {
  // CHECK-NEXT: %w = ait.param "images.w" : !ait.tensor<6 x 8 x f32>
  // CHECK-NEXT: %b = ait.param "images.b" : !ait.tensor<6 x f32>
  // CHECK-NEXT: %0 = ait.reshape %x : !ait.tensor<n x 8 x 80 x f32>
  // CHECK-NEXT: %1 = ait.bmm rrr tf32 %w, %0 : !ait.tensor<n x 6 x 80 x f32>
  // CHECK-NEXT: %2 = ait.reshape %b : !ait.tensor<6 x 1 x f32>
  // CHECK-NEXT: %3 = ait.add %1, %2 : !ait.tensor<n x 6 x 80 x f32>
  // CHECK-NEXT: %4 = ait.relu %3 : !ait.tensor<n x 6 x 80 x f32>
  // CHECK-NEXT: %5 = ait.reshape %4 : !ait.tensor<n x 6 x 8 x 10 x f32>
  // CHECK-NEXT: %6 = ait.add %5, %r
  %w = ait.param "images.w" : !ait.tensor<6 x 8 x f32>
  %b = ait.param "images.b" : !ait.tensor<6 x f32>
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<n x 8 x 10 x 8 x f32>
  %1 = ait.gemm rcr tf32 %0, %w : !ait.tensor<n x 8 x 10 x 6 x f32>
  %2 = ait.add %1, %b : !ait.tensor<n x 8 x 10 x 6 x f32>
  %3 = ait.relu %2 : !ait.tensor<n x 8 x 10 x 6 x f32>
  %4 = ait.permute %3 [0, 3, 1, 2] : !ait.tensor<n x 6 x 8 x 10 x f32>
  %5 = ait.add %4, %r : !ait.tensor<n x 6 x 8 x 10 x f32>
  ait.output "y" %5 : !ait.tensor<n x 6 x 8 x 10 x f32>
}

// One image is no batch. The weight has whole accesses only along its other dim. An activation before the product is computed before the image was turned; the bias is defined last.

// CHECK-LABEL: ait.graph @volume
ait.graph @volume(%x: !ait.tensor<1 x 5 x 4 x 4 x 8 x f32>) {
  // CHECK: %[[X:.*]] = ait.relu %x : !ait.tensor<1 x 5 x 4 x 4 x 8 x f32>
  // CHECK-NEXT: %[[P:.*]] = ait.reshape %[[X]] : !ait.tensor<5 x 128 x f32>
  // CHECK-NEXT: %[[W:.*]] = ait.permute %w [1, 0] : !ait.tensor<5 x 4 x f32>
  // CHECK-NEXT: %[[Y:.*]] = ait.gemm crr %[[W]], %[[P]] : !ait.tensor<4 x 128 x f32>
  // CHECK: ait.mul %{{.*}}, %[[Y]] : !ait.tensor<4 x 128 x f32>
  %w = ait.param "volume.w" : !ait.tensor<4 x 5 x f32>
  %0 = ait.permute %x [0, 2, 3, 4, 1] : !ait.tensor<1 x 4 x 4 x 8 x 5 x f32>
  %1 = ait.relu %0 : !ait.tensor<1 x 4 x 4 x 8 x 5 x f32>
  %2 = ait.gemm rcr %1, %w : !ait.tensor<1 x 4 x 4 x 8 x 4 x f32>
  %3 = ait.constant [1.0, 2.0, 3.0, 4.0] : !ait.tensor<1 x 4 x f32>
  %4 = ait.mul %3, %2 : !ait.tensor<1 x 4 x 4 x 8 x 4 x f32>
  %half = ait.constant 0.5 : !ait.tensor<f32>
  %5 = ait.mul %4, %half : !ait.tensor<1 x 4 x 4 x 8 x 4 x f32>
  %6 = ait.permute %5 [0, 4, 1, 2, 3] : !ait.tensor<1 x 4 x 4 x 4 x 8 x f32>
  ait.output "y" %6 : !ait.tensor<1 x 4 x 4 x 4 x 8 x f32>
}

// Left alone: rows of planes, or those of the weight along both dims, are not whole accesses of 16 bytes; small planes.

// CHECK-LABEL: ait.graph @odd_places
ait.graph @odd_places(%x: !ait.tensor<2 x 8 x 9 x 9 x f32>) {
  // CHECK: ait.gemm rcr
  %w = ait.param "odd_places.w" : !ait.tensor<8 x 8 x f32>
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<2 x 9 x 9 x 8 x f32>
  %1 = ait.gemm rcr %0, %w : !ait.tensor<2 x 9 x 9 x 8 x f32>
  %2 = ait.permute %1 [0, 3, 1, 2] : !ait.tensor<2 x 8 x 9 x 9 x f32>
  ait.output "y" %2 : !ait.tensor<2 x 8 x 9 x 9 x f32>
}

// CHECK-LABEL: ait.graph @odd_weight
ait.graph @odd_weight(%x: !ait.tensor<2 x 12 x 8 x 8 x f16>) {
  // CHECK: ait.gemm rcr
  %w = ait.param "odd_weight.w" : !ait.tensor<12 x 12 x f16>
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<2 x 8 x 8 x 12 x f16>
  %1 = ait.gemm rcr %0, %w : !ait.tensor<2 x 8 x 8 x 12 x f16>
  %2 = ait.permute %1 [0, 3, 1, 2] : !ait.tensor<2 x 12 x 8 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<2 x 12 x 8 x 8 x f16>
}

// CHECK-LABEL: ait.graph @small_planes
ait.graph @small_planes(%x: !ait.tensor<2 x 8 x 4 x 4 x f32>) {
  // CHECK: ait.gemm rcr
  %w = ait.param "small_planes.w" : !ait.tensor<8 x 8 x f32>
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<2 x 4 x 4 x 8 x f32>
  %1 = ait.gemm rcr %0, %w : !ait.tensor<2 x 4 x 4 x 8 x f32>
  %2 = ait.permute %1 [0, 3, 1, 2] : !ait.tensor<2 x 8 x 4 x 4 x f32>
  ait.output "y" %2 : !ait.tensor<2 x 8 x 4 x 4 x f32>
}

// Left alone: another result layout, an epilogue, a chosen kernel, a weight that is an input, a result that others read, one that stays
// channels-last, and an image that was channels-last before.

// CHECK-LABEL: ait.graph @columns
ait.graph @columns(%x: !ait.tensor<2 x 8 x 8 x 8 x f32>) {
  // CHECK: ait.gemm rrr
  %w = ait.param "columns.w" : !ait.tensor<8 x 8 x f32>
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<2 x 8 x 8 x 8 x f32>
  %1 = ait.gemm rrr %0, %w : !ait.tensor<2 x 8 x 8 x 8 x f32>
  %2 = ait.permute %1 [0, 3, 1, 2] : !ait.tensor<2 x 8 x 8 x 8 x f32>
  ait.output "y" %2 : !ait.tensor<2 x 8 x 8 x 8 x f32>
}

// CHECK-LABEL: ait.graph @epilogue
ait.graph @epilogue(%x: !ait.tensor<2 x 8 x 8 x 8 x f32>) {
  // CHECK: ait.gemm rcr
  %w = ait.param "epilogue.w" : !ait.tensor<8 x 8 x f32>
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<2 x 8 x 8 x 8 x f32>
  %1 = ait.gemm rcr %0, %w epilogue() {
  ^bb0(%acc: f32):
    %3 = ait.relu %acc : f32
    ait.yield %3 : f32
  } : !ait.tensor<2 x 8 x 8 x 8 x f32>
  %2 = ait.permute %1 [0, 3, 1, 2] : !ait.tensor<2 x 8 x 8 x 8 x f32>
  ait.output "y" %2 : !ait.tensor<2 x 8 x 8 x 8 x f32>
}

// CHECK-LABEL: ait.graph @chosen
ait.graph @chosen(%x: !ait.tensor<2 x 8 x 8 x 8 x f32>) {
  // CHECK: ait.gemm rcr
  %w = ait.param "chosen.w" : !ait.tensor<8 x 8 x f32>
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<2 x 8 x 8 x 8 x f32>
  %1 = ait.gemm rcr %0, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<2 x 8 x 8 x 8 x f32>
  %2 = ait.permute %1 [0, 3, 1, 2] : !ait.tensor<2 x 8 x 8 x 8 x f32>
  ait.output "y" %2 : !ait.tensor<2 x 8 x 8 x 8 x f32>
}

// CHECK-LABEL: ait.graph @given
ait.graph @given(%x: !ait.tensor<2 x 8 x 8 x 8 x f32>, %w: !ait.tensor<8 x 8 x f32>) {
  // CHECK: ait.gemm rcr
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<2 x 8 x 8 x 8 x f32>
  %1 = ait.gemm rcr %0, %w : !ait.tensor<2 x 8 x 8 x 8 x f32>
  %2 = ait.permute %1 [0, 3, 1, 2] : !ait.tensor<2 x 8 x 8 x 8 x f32>
  ait.output "y" %2 : !ait.tensor<2 x 8 x 8 x 8 x f32>
}

// CHECK-LABEL: ait.graph @read_twice
ait.graph @read_twice(%x: !ait.tensor<2 x 8 x 8 x 8 x f32>) {
  // CHECK: ait.gemm rcr
  %w = ait.param "read_twice.w" : !ait.tensor<8 x 8 x f32>
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<2 x 8 x 8 x 8 x f32>
  %1 = ait.gemm rcr %0, %w : !ait.tensor<2 x 8 x 8 x 8 x f32>
  %2 = ait.permute %1 [0, 3, 1, 2] : !ait.tensor<2 x 8 x 8 x 8 x f32>
  ait.output "y" %2 : !ait.tensor<2 x 8 x 8 x 8 x f32>
  ait.output "z" %1 : !ait.tensor<2 x 8 x 8 x 8 x f32>
}

// CHECK-LABEL: ait.graph @stays_last
ait.graph @stays_last(%x: !ait.tensor<2 x 8 x 8 x 8 x f32>) {
  // CHECK: ait.gemm rcr
  %w = ait.param "stays_last.w" : !ait.tensor<8 x 8 x f32>
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<2 x 8 x 8 x 8 x f32>
  %1 = ait.gemm rcr %0, %w : !ait.tensor<2 x 8 x 8 x 8 x f32>
  ait.output "y" %1 : !ait.tensor<2 x 8 x 8 x 8 x f32>
}

// CHECK-LABEL: ait.graph @other_order
ait.graph @other_order(%x: !ait.tensor<2 x 8 x 8 x 8 x f32>) {
  // CHECK: ait.gemm rcr
  %w = ait.param "other_order.w" : !ait.tensor<8 x 8 x f32>
  %0 = ait.permute %x [0, 3, 2, 1] : !ait.tensor<2 x 8 x 8 x 8 x f32>
  %1 = ait.gemm rcr %0, %w : !ait.tensor<2 x 8 x 8 x 8 x f32>
  %2 = ait.permute %1 [0, 3, 1, 2] : !ait.tensor<2 x 8 x 8 x 8 x f32>
  ait.output "y" %2 : !ait.tensor<2 x 8 x 8 x 8 x f32>
}
