// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @reshape
ait.graph @reshape(%x: !ait.tensor<b x s x 768 x f16>) dims {b = 0 to 4, s = 1 to 8} {
  // CHECK: ait.reshape %x : !ait.tensor<b x s x 12 x 64 x f16>
  // GENERIC: "ait.reshape"(%x) : (!ait.tensor<b x s x 768 x f16>) -> !ait.tensor<b x s x 12 x 64 x f16>
  %0 = ait.reshape %x : !ait.tensor<b x s x 12 x 64 x f16>
  // CHECK-NEXT: ait.reshape %0 : !ait.tensor<(b*s) x 768 x f16>
  %1 = ait.reshape %0 : !ait.tensor<(b*s) x 768 x f16>
  // CHECK-NEXT: ait.reshape %1 : !ait.tensor<(768*b*s) x f16>
  %2 = ait.reshape %1 : !ait.tensor<(s*b*768) x f16>
  ait.output "y" %2 : !ait.tensor<(768*b*s) x f16>
}

// A tensor of one element has any rank.
// CHECK-LABEL: ait.graph @rank_0
ait.graph @rank_0(%x: !ait.tensor<f32>) {
  // CHECK: ait.reshape %x : !ait.tensor<1 x 1 x f32>
  %0 = ait.reshape %x : !ait.tensor<1 x 1 x f32>
  // CHECK-NEXT: ait.reshape %0 : !ait.tensor<f32>
  %1 = ait.reshape %0 : !ait.tensor<f32>
  ait.output "y" %1 : !ait.tensor<f32>
}

// CHECK-LABEL: ait.graph @permute
ait.graph @permute(%x: !ait.tensor<b x s x 8 x i1>, %n: !ait.tensor<f64>) dims {b = 0 to 4, s = 1 to 8} {
  // CHECK: ait.permute %x [2, 0, 1] : !ait.tensor<8 x b x s x i1>
  // GENERIC: "ait.permute"(%x) <{permutation = [2 : i64, 0 : i64, 1 : i64]}>
  %0 = ait.permute %x [2, 0, 1] : !ait.tensor<8 x b x s x i1>
  // CHECK-NEXT: ait.permute %n [] : !ait.tensor<f64>
  %1 = ait.permute %n [] : !ait.tensor<f64>
  ait.output "y" %0 : !ait.tensor<8 x b x s x i1>
  ait.output "z" %1 : !ait.tensor<f64>
}

// CHECK-LABEL: ait.graph @expand
ait.graph @expand(%x: !ait.tensor<1 x 8 x i64>, %n: !ait.tensor<f64>) dims {b = 0 to 4} {
  // CHECK: ait.expand %x : !ait.tensor<3 x b x 8 x i64>
  // GENERIC: "ait.expand"(%x) : (!ait.tensor<1 x 8 x i64>) -> !ait.tensor<3 x b x 8 x i64>
  %0 = ait.expand %x : !ait.tensor<3 x b x 8 x i64>
  // CHECK-NEXT: ait.expand %n : !ait.tensor<b x f64>
  %1 = ait.expand %n : !ait.tensor<b x f64>
  ait.output "y" %0 : !ait.tensor<3 x b x 8 x i64>
  ait.output "z" %1 : !ait.tensor<b x f64>
}

// Offsets and sizes are proved to lie inside.
// CHECK-LABEL: ait.graph @slice
ait.graph @slice(%x: !ait.tensor<b x s x 8 x f16>) dims {b = 1 to 4, s = 1 to 8} {
  // CHECK: ait.slice %x offsets [0, s - 1, 2] : !ait.tensor<b x 1 x 4 x f16>
  // GENERIC: "ait.slice"(%x) <{offsets = #ait.shape<0, s - 1, 2>}>
  %0 = ait.slice %x offsets [0, s - 1, 2] : !ait.tensor<b x 1 x 4 x f16>
  // CHECK-NEXT: ait.slice %x offsets [b - 1, 0, 0] : !ait.tensor<1 x s x 8 x f16>
  %1 = ait.slice %x offsets [b - 1, 0, 0] : !ait.tensor<1 x s x 8 x f16>
  // CHECK-NEXT: ait.slice %x offsets [0, 1, 0] : !ait.tensor<b x (s - 1) x 8 x f16>
  %2 = ait.slice %x offsets [0, 1, 0] : !ait.tensor<b x (s - 1) x 8 x f16>
  ait.output "y" %0 : !ait.tensor<b x 1 x 4 x f16>
  ait.output "z" %2 : !ait.tensor<b x (s - 1) x 8 x f16>
}

// CHECK-LABEL: ait.graph @split
ait.graph @split(%x: !ait.tensor<b x 12 x f16>, %h: !ait.tensor<(2*b) x f16>) dims {b = 0 to 4} {
  // CHECK: %0, %1, %2 = ait.split %x dim 1 : !ait.tensor<b x 4 x f16>, !ait.tensor<b x 0 x f16>, !ait.tensor<b x 8 x f16>
  // GENERIC: "ait.split"(%x) <{dim = 1 : i64}> : (!ait.tensor<b x 12 x f16>) -> (!ait.tensor<b x 4 x f16>, !ait.tensor<b x 0 x f16>, !ait.tensor<b x 8 x f16>)
  %0, %1, %2 = ait.split %x dim 1 : !ait.tensor<b x 4 x f16>, !ait.tensor<b x 0 x f16>, !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %3, %4 = ait.split %h dim 0 : !ait.tensor<b x f16>, !ait.tensor<b x f16>
  %3, %4 = ait.split %h dim 0 : !ait.tensor<b x f16>, !ait.tensor<b x f16>
  // CHECK-NEXT: %5 = ait.split %x dim 0 : !ait.tensor<b x 12 x f16>
  %5 = ait.split %x dim 0 : !ait.tensor<b x 12 x f16>
  ait.output "y" %2 : !ait.tensor<b x 8 x f16>
}

// CHECK-LABEL: ait.graph @concat
ait.graph @concat(%x: !ait.tensor<b x 12 x f16>, %y: !ait.tensor<b x 4 x f16>, %z: !ait.tensor<s x 4 x f16>) dims {b = 0 to 4, s = 1 to 8} {
  // CHECK: ait.concat %x, %y dim 1 : !ait.tensor<b x 16 x f16>
  // GENERIC: "ait.concat"(%x, %y) <{dim = 1 : i64}>
  %0 = ait.concat %x, %y dim 1 : !ait.tensor<b x 16 x f16>
  // CHECK-NEXT: ait.concat %y, %z, %y dim 0 : !ait.tensor<(2*b + s) x 4 x f16>
  %1 = ait.concat %y, %z, %y dim 0 : !ait.tensor<(b + s + b) x 4 x f16>
  // CHECK-NEXT: ait.concat %z dim 1 : !ait.tensor<s x 4 x f16>
  %2 = ait.concat %z dim 1 : !ait.tensor<s x 4 x f16>
  ait.output "y" %0 : !ait.tensor<b x 16 x f16>
  ait.output "z" %1 : !ait.tensor<(2*b + s) x 4 x f16>
}

// CHECK-LABEL: ait.graph @copies
ait.graph @copies(%x: !ait.tensor<b x 12 x f16>, %y: !ait.tensor<4 x bf16>) dims {b = 0 to 4} {
  // CHECK: %0, %1 = ait.copies %x, %y : !ait.tensor<b x 12 x f16>, !ait.tensor<4 x bf16>
  // GENERIC: "ait.copies"(%x, %y) : (!ait.tensor<b x 12 x f16>, !ait.tensor<4 x bf16>) -> (!ait.tensor<b x 12 x f16>, !ait.tensor<4 x bf16>)
  %0, %1 = ait.copies %x, %y : !ait.tensor<b x 12 x f16>, !ait.tensor<4 x bf16>
  ait.output "y" %0 : !ait.tensor<b x 12 x f16>
  ait.output "z" %1 : !ait.tensor<4 x bf16>
}
