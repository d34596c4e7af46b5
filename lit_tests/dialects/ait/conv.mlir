// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @conv2d
ait.graph @conv2d(%x: !ait.tensor<b x h x 17 x 8 x f16>, %w: !ait.tensor<12 x 3 x 5 x 8 x f16>, %g: !ait.tensor<12 x 3 x 5 x 4 x f16>, %v: !ait.tensor<12 x f16>) dims {b = 0 to 4, h = 3 to 64} {
  // CHECK: ait.conv2d %x, %w : !ait.tensor<b x (h - 2) x 13 x 12 x f16>
  // GENERIC: "ait.conv2d"(%x, %w) <{stride = [1 : i64, 1 : i64], pad = [0 : i64, 0 : i64, 0 : i64, 0 : i64], dilation = [1 : i64, 1 : i64], groups = 1 : i64}> ({
  %0 = ait.conv2d %x, %w : !ait.tensor<b x (h - 2) x 13 x 12 x f16>
  // CHECK-NEXT: ait.conv2d %x, %w stride [2, 1] pad [1, 2] : !ait.tensor<b x (h ceildiv 2) x 17 x 12 x f16>
  // GENERIC: stride = [2 : i64, 1 : i64], pad = [1 : i64, 2 : i64, 1 : i64, 2 : i64]
  %1 = ait.conv2d %x, %w stride [2, 1] pad [1, 2] dilation [1, 1] groups 1 : !ait.tensor<b x (h ceildiv 2) x 17 x 12 x f16>
  // CHECK-NEXT: ait.conv2d %x, %g pad [2, 0, 2, 1] dilation [2, 3] groups 2 epilogue(%v) {
  // CHECK-NEXT: ^bb0(%acc: f32, %bias: f32):
  %2 = ait.conv2d %x, %g pad [2, 0, 2, 1] dilation [2, 3] groups 2 epilogue(%v) {
  ^bb0(%acc: f32, %bias: f32):
    %s = ait.add %acc, %bias : f32
    ait.yield %s : f32
  } : !ait.tensor<b x h x 6 x 12 x f16>
  ait.output "a" %0 : !ait.tensor<b x (h - 2) x 13 x 12 x f16>
  ait.output "b" %1 : !ait.tensor<b x (h ceildiv 2) x 17 x 12 x f16>
  ait.output "c" %2 : !ait.tensor<b x h x 6 x 12 x f16>
}
