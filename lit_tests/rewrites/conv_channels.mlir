// RUN: ait-opt %s -p 'block-channels{assume=true}' | filecheck %s --check-prefix=BLOCKS
// RUN: ait-opt %s -p block-channels,fill-channels --check-semantics | filecheck %s

// Blocks of 2 x 2 places become 16 channels. The window begins at an odd place, so a zero goes before it. The pads along the columns are written,
// so that no line of a window leaves the input.

// BLOCKS-LABEL: ait.graph @stem
// CHECK-LABEL: ait.graph @stem
// CHECK: ait.pad constant %x before [0, 0, 0, 0] : !ait.tensor<n x (2*h) x 24 x 8 x f16>
// CHECK: ait.pad constant %w before [0, 0, 0, 0] : !ait.tensor<8 x 7 x 7 x 8 x f16>
ait.graph @stem(%x: !ait.tensor<n x (2*h) x 24 x 3 x f16>) dims {n = 0 to 3, h = 1 to 9} {
  // BLOCKS: %0 = ait.reshape %x : !ait.tensor<n x h x 2 x 12 x 2 x 3 x f16>
  // BLOCKS-NEXT: %1 = ait.permute %0 [0, 1, 3, 2, 4, 5]
  // BLOCKS-NEXT: %2 = ait.pad constant %1 before [0, 0, 2, 0, 0, 0] : !ait.tensor<n x h x 15 x 2 x 2 x 4 x f16>
  // BLOCKS-NEXT: %3 = ait.reshape %2 : !ait.tensor<n x h x 15 x 16 x f16>
  // BLOCKS-NEXT: %4 = ait.pad constant %w before [0, 1, 1, 0] : !ait.tensor<8 x 8 x 8 x 4 x f16>
  // BLOCKS-NEXT: %5 = ait.reshape %4 : !ait.tensor<8 x 4 x 2 x 4 x 2 x 4 x f16>
  // BLOCKS-NEXT: %6 = ait.permute %5 [0, 1, 3, 2, 4, 5]
  // BLOCKS-NEXT: %7 = ait.reshape %6 : !ait.tensor<8 x 4 x 4 x 16 x f16>
  // BLOCKS-NEXT: %8 = ait.conv %3, %7 pad [2, 0, 1, 0] : !ait.tensor<n x h x 12 x 8 x f16>
  %w = ait.param "stem.w" : !ait.tensor<8 x 7 x 7 x 3 x f16>
  %0 = ait.conv %x, %w stride [2, 2] pad [3, 3] : !ait.tensor<n x h x 12 x 8 x f16>
  ait.output "y" %0 : !ait.tensor<n x h x 12 x 8 x f16>
}

// Even pads need no zero in front; a window of 2 x 3 reads 1 x 2 blocks. One channel is filled, four are not.

// BLOCKS-LABEL: ait.graph @even_pads
// BLOCKS: ait.pad constant %w before [0, 0, 0, 0] : !ait.tensor<8 x 2 x 4 x 4 x bf16>
// BLOCKS: ait.conv %{{[0-9]+}}, %{{[0-9]+}} : !ait.tensor<2 x 3 x 5 x 8 x bf16>
// BLOCKS: ait.conv %{{.*}}, %{{.*}} pad [1, 0, 0, 0] : !ait.tensor<2 x 3 x 4 x 8 x bf16>
ait.graph @even_pads(%x: !ait.tensor<2 x 6 x 8 x 1 x bf16>, %z: !ait.tensor<2 x 6 x 8 x 4 x bf16>) {
  %w = ait.param "even_pads.w" : !ait.tensor<8 x 2 x 3 x 1 x bf16>
  %v = ait.param "even_pads.v" : !ait.tensor<8 x 3 x 3 x 4 x bf16>
  %0 = ait.conv %x, %w stride [2, 2] pad [0, 2] : !ait.tensor<2 x 3 x 5 x 8 x bf16>
  %1 = ait.conv %z, %v stride [2, 2] pad [1, 1] : !ait.tensor<2 x 3 x 4 x 8 x bf16>
  ait.output "a" %0 : !ait.tensor<2 x 3 x 5 x 8 x bf16>
  ait.output "b" %1 : !ait.tensor<2 x 3 x 4 x 8 x bf16>
}

// Other windows get zeros behind their channels: odd sizes, other steps, more channels, a window that ends before the blocks do, one with gaps.

// BLOCKS-LABEL: ait.graph @eights
// BLOCKS-NOT: ait.pad
// BLOCKS: ait.output "a"
// CHECK-LABEL: ait.graph @eights
// CHECK-COUNT-5: ait.pad constant %{{.*}} before [0, 0, 0, 0] : !ait.tensor<n x {{.*}} x 8 x f16>
// CHECK-NOT: ait.reshape
// CHECK: ait.output "a"
ait.graph @eights(%x: !ait.tensor<n x h x 9 x 3 x f16>, %y: !ait.tensor<n x 8 x 8 x 5 x f16>, %z: !ait.tensor<n x 6 x 8 x 3 x f16>) dims {n = 0 to 2, h = 2 to 5} {
  %w = ait.param "eights.w" : !ait.tensor<8 x 3 x 3 x 3 x f16>
  %v = ait.param "eights.v" : !ait.tensor<8 x 3 x 3 x 5 x f16>
  %u = ait.param "eights.u" : !ait.tensor<8 x 2 x 2 x 3 x f16>
  %0 = ait.conv %x, %w stride [2, 2] pad [1, 1] : !ait.tensor<n x ((h + 1) floordiv 2) x 5 x 8 x f16>
  %1 = ait.conv %z, %w stride [2, 1] pad [1, 1] : !ait.tensor<n x 3 x 8 x 8 x f16>
  %2 = ait.conv %y, %v stride [2, 2] pad [1, 1] : !ait.tensor<n x 4 x 4 x 8 x f16>
  %3 = ait.conv %z, %u stride [2, 2] dilation [2, 2] : !ait.tensor<n x 2 x 3 x 8 x f16>
  %4 = ait.conv %z, %w : !ait.tensor<n x 4 x 6 x 8 x f16>
  ait.output "a" %0 : !ait.tensor<n x ((h + 1) floordiv 2) x 5 x 8 x f16>
  ait.output "b" %1 : !ait.tensor<n x 3 x 8 x 8 x f16>
  ait.output "c" %2 : !ait.tensor<n x 4 x 4 x 8 x f16>
  ait.output "d" %3 : !ait.tensor<n x 2 x 3 x 8 x f16>
  ait.output "e" %4 : !ait.tensor<n x 4 x 6 x 8 x f16>
}

// What stays: f32, groups, transposed ones, whole eights, single elements, a weight that is an input, an epilogue, a kernel that is chosen.

// BLOCKS-LABEL: ait.graph @stay
// BLOCKS-NOT: ait.pad
// BLOCKS: ait.output "a"
// CHECK-LABEL: ait.graph @stay
// CHECK-NOT: ait.pad
// CHECK: ait.output "a"
ait.graph @stay(%x: !ait.tensor<2 x 6 x 8 x 3 x f16>, %f: !ait.tensor<2 x 6 x 8 x 3 x f32>, %e: !ait.tensor<2 x 6 x 8 x 8 x f16>, %i: !ait.tensor<8 x 3 x 3 x 3 x f16>) {
  %w = ait.param "stay.w" : !ait.tensor<8 x 3 x 3 x 3 x f16>
  %wf = ait.param "stay.wf" : !ait.tensor<8 x 3 x 3 x 3 x f32>
  %wg = ait.param "stay.wg" : !ait.tensor<9 x 3 x 3 x 1 x f16>
  %we = ait.param "stay.we" : !ait.tensor<8 x 3 x 3 x 8 x f16>
  %wp = ait.param "stay.wp" : !ait.tensor<8 x 1 x 1 x 3 x f16>
  %0 = ait.conv %f, %wf stride [2, 2] pad [1, 1] : !ait.tensor<2 x 3 x 4 x 8 x f32>
  %1 = ait.conv %x, %wg stride [2, 2] pad [1, 1] groups 3 : !ait.tensor<2 x 3 x 4 x 9 x f16>
  %2 = ait.conv %x, %w transposed stride [2, 2] : !ait.tensor<2 x 13 x 17 x 8 x f16>
  %3 = ait.conv %e, %we stride [2, 2] pad [1, 1] : !ait.tensor<2 x 3 x 4 x 8 x f16>
  %4 = ait.conv %x, %wp stride [2, 2] : !ait.tensor<2 x 3 x 4 x 8 x f16>
  %5 = ait.conv %x, %i stride [2, 2] pad [1, 1] : !ait.tensor<2 x 3 x 4 x 8 x f16>
  %6 = ait.conv %x, %i pad [1, 1] : !ait.tensor<2 x 6 x 8 x 8 x f16>
  %7 = ait.conv %x, %w stride [2, 2] pad [1, 1] epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<2 x 3 x 4 x 8 x f16>
  %8 = ait.conv %x, %w pad [1, 1] epilogue() {
  ^bb0(%acc: f32):
    %r = ait.relu %acc : f32
    ait.yield %r : f32
  } : !ait.tensor<2 x 6 x 8 x 8 x f16>
  %9 = ait.conv %x, %w stride [2, 2] pad [1, 1] {kernel = #ait.kernel<"native", {}>} : !ait.tensor<2 x 3 x 4 x 8 x f16>
  %10 = ait.conv %x, %w pad [1, 1] {kernel = #ait.kernel<"native", {}>} : !ait.tensor<2 x 6 x 8 x 8 x f16>
  ait.output "a" %0 : !ait.tensor<2 x 3 x 4 x 8 x f32>
  ait.output "b" %1 : !ait.tensor<2 x 3 x 4 x 9 x f16>
  ait.output "c" %2 : !ait.tensor<2 x 13 x 17 x 8 x f16>
  ait.output "d" %3 : !ait.tensor<2 x 3 x 4 x 8 x f16>
  ait.output "e" %4 : !ait.tensor<2 x 3 x 4 x 8 x f16>
  ait.output "f" %5 : !ait.tensor<2 x 3 x 4 x 8 x f16>
  ait.output "g" %6 : !ait.tensor<2 x 6 x 8 x 8 x f16>
  ait.output "h" %7 : !ait.tensor<2 x 3 x 4 x 8 x f16>
  ait.output "i" %8 : !ait.tensor<2 x 6 x 8 x 8 x f16>
  ait.output "j" %9 : !ait.tensor<2 x 3 x 4 x 8 x f16>
  ait.output "k" %10 : !ait.tensor<2 x 6 x 8 x 8 x f16>
}
