// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @conv
ait.graph @conv(%x: !ait.tensor<b x h x 17 x 8 x f16>, %w: !ait.tensor<12 x 3 x 5 x 8 x f16>, %g: !ait.tensor<12 x 3 x 5 x 4 x f16>, %v: !ait.tensor<12 x f16>) dims {b = 0 to 4, h = 3 to 64} {
  // CHECK: ait.conv %x, %w : !ait.tensor<b x (h - 2) x 13 x 12 x f16>
  // GENERIC: "ait.conv"(%x, %w) ({
  %0 = ait.conv %x, %w stride [1, 1] pad [0, 0] dilation [1, 1] groups 1 : !ait.tensor<b x (h - 2) x 13 x 12 x f16>
  // CHECK-NEXT: ait.conv %x, %w stride [2, 1] pad [1, 2] : !ait.tensor<b x (h ceildiv 2) x 17 x 12 x f16>
  // GENERIC: "ait.conv"(%x, %w) <{stride = [2 : i64, 1 : i64], pad = [1 : i64, 2 : i64]}>
  %1 = ait.conv %x, %w stride [2, 1] pad [1, 2] dilation [1, 1] groups 1 : !ait.tensor<b x (h ceildiv 2) x 17 x 12 x f16>
  // CHECK-NEXT: ait.conv %x, %g pad [2, 0, 2, 1] dilation [2, 3] groups 2 epilogue(%v) {
  // CHECK-NEXT: ^bb0(%acc: f32, %bias: f32):
  %2 = ait.conv %x, %g pad [2, 0, 2, 1] dilation [2, 3] groups 2 epilogue(%v) {
  ^bb0(%acc: f32, %bias: f32):
    %s = ait.add %acc, %bias : f32
    ait.yield %s : f32
  } : !ait.tensor<b x h x 6 x 12 x f16>
  ait.output "a" %0 : !ait.tensor<b x (h - 2) x 13 x 12 x f16>
  ait.output "b" %1 : !ait.tensor<b x (h ceildiv 2) x 17 x 12 x f16>
  ait.output "c" %2 : !ait.tensor<b x h x 6 x 12 x f16>
}

// The sum and what the next layer reads of it are two results.
// CHECK-LABEL: ait.graph @several
ait.graph @several(%x: !ait.tensor<b x 9 x 8 x f16>, %w: !ait.tensor<4 x 3 x 8 x f16>, %r: !ait.tensor<b x 7 x 4 x f16>) dims {b = 0 to 4} {
  // CHECK: %0, %1 = ait.conv %x, %w epilogue(%r) {
  // CHECK: ait.yield %{{.*}}, %{{.*}} : f32, f32
  // CHECK-NEXT: } : !ait.tensor<b x 7 x 4 x f16>, !ait.tensor<b x 7 x 4 x f32>
  // GENERIC: }) : (!ait.tensor<b x 9 x 8 x f16>, !ait.tensor<4 x 3 x 8 x f16>, !ait.tensor<b x 7 x 4 x f16>) -> (!ait.tensor<b x 7 x 4 x f16>, !ait.tensor<b x 7 x 4 x f32>)
  %0, %1 = ait.conv %x, %w epilogue(%r) {
  ^bb0(%acc: f32, %before: f32):
    %s = ait.add %acc, %before : f32
    %a = ait.relu %s : f32
    ait.yield %s, %a : f32, f32
  } : !ait.tensor<b x 7 x 4 x f16>, !ait.tensor<b x 7 x 4 x f32>
  ait.output "y" %1 : !ait.tensor<b x 7 x 4 x f32>
}

// CHECK-LABEL: ait.graph @ranks
ait.graph @ranks(%x: !ait.tensor<b x h x 8 x f16>, %w: !ait.tensor<4 x 3 x 8 x f16>, %y: !ait.tensor<b x 5 x 6 x h x 2 x f16>, %v: !ait.tensor<4 x 2 x 3 x 1 x 2 x f16>) dims {b = 0 to 4, h = 3 to 64} {
  // CHECK: ait.conv %x, %w pad [1] : !ait.tensor<b x h x 4 x f16>
  %0 = ait.conv %x, %w pad [1] : !ait.tensor<b x h x 4 x f16>
  // CHECK-NEXT: ait.conv %x, %w pad [2, 0] : !ait.tensor<b x h x 4 x f16>
  %1 = ait.conv %x, %w pad [2, 0] : !ait.tensor<b x h x 4 x f16>
  // CHECK-NEXT: ait.conv %y, %v stride [1, 2, 1] : !ait.tensor<b x 4 x 2 x h x 4 x f16>
  %2 = ait.conv %y, %v stride [1, 2, 1] : !ait.tensor<b x 4 x 2 x h x 4 x f16>
  ait.output "a" %0 : !ait.tensor<b x h x 4 x f16>
  ait.output "b" %1 : !ait.tensor<b x h x 4 x f16>
  ait.output "c" %2 : !ait.tensor<b x 4 x 2 x h x 4 x f16>
}

// CHECK-LABEL: ait.graph @transposed
ait.graph @transposed(%x: !ait.tensor<b x h x 5 x 8 x f16>, %w: !ait.tensor<4 x 3 x 3 x 8 x f16>) dims {b = 0 to 4, h = 1 to 64} {
  // CHECK: ait.conv %x, %w transposed stride [2, 2] pad [1, 1] output_pad [1, 0] : !ait.tensor<b x (2*h) x 9 x 4 x f16>
  // GENERIC: "ait.conv"(%x, %w) <{{{.*}}output_pad = [1 : i64, 0 : i64]{{.*}}}>
  %0 = ait.conv %x, %w transposed stride [2, 2] pad [1, 1] output_pad [1, 0] : !ait.tensor<b x (2*h) x 9 x 4 x f16>
  ait.output "a" %0 : !ait.tensor<b x (2*h) x 9 x 4 x f16>
}
