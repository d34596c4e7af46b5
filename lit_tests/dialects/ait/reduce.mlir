// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @reduce
ait.graph @reduce(%x: !ait.tensor<b x s x 8 x f16>, %i: !ait.tensor<4 x i8>) dims {b = 0 to 4, s = 1 to 4} {
  // CHECK: ait.reduce sum %x dims [1] : !ait.tensor<b x 8 x f16>
  // GENERIC: "ait.reduce"(%x) <{kind = "sum", dims = [1 : i64]}> : (!ait.tensor<b x s x 8 x f16>) -> !ait.tensor<b x 8 x f16>
  %0 = ait.reduce sum %x dims [1] : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: ait.reduce mean %x dims [0, 1, 2] : !ait.tensor<f16>
  %1 = ait.reduce mean %x dims [0, 1, 2] : !ait.tensor<f16>
  // CHECK-NEXT: ait.reduce max %x dims [] : !ait.tensor<b x s x 8 x f16>
  %2 = ait.reduce max %x dims [] : !ait.tensor<b x s x 8 x f16>
  // CHECK-NEXT: ait.reduce min %i dims [0] : !ait.tensor<i8>
  %3 = ait.reduce min %i dims [0] : !ait.tensor<i8>
  // CHECK-NEXT: ait.reduce var %2 dims [0, 2] correction 1 : !ait.tensor<s x f16>
  // GENERIC: <{kind = "var", dims = [0 : i64, 2 : i64], correction = 1 : i64}>
  %4 = ait.reduce var %2 dims [0, 2] correction 1 : !ait.tensor<s x f16>
  ait.output "y" %4 : !ait.tensor<s x f16>
}

// CHECK-LABEL: ait.graph @select
ait.graph @select(%x: !ait.tensor<b x s x 8 x f16>) dims {b = 0 to 4, s = 1 to 4} {
  // CHECK: ait.argmax %x dim 1 : !ait.tensor<b x 8 x i64>
  // GENERIC: "ait.argmax"(%x) <{dim = 1 : i64}>
  %0 = ait.argmax %x dim 1 : !ait.tensor<b x 8 x i64>
  // CHECK-NEXT: %1, %2 = ait.topk %x k 8 : !ait.tensor<b x s x 8 x f16>, !ait.tensor<b x s x 8 x i32>
  // GENERIC: "ait.topk"(%x) <{k = 8 : i64}>
  %1, %2 = ait.topk %x k 8 : !ait.tensor<b x s x 8 x f16>, !ait.tensor<b x s x 8 x i32>
  // CHECK-NEXT: ait.argmax %x dim 1 smallest : !ait.tensor<b x 8 x i64>
  %least = ait.argmax %x dim 1 smallest : !ait.tensor<b x 8 x i64>
  // CHECK-NEXT: ait.topk %x k 2 dim 2 smallest : !ait.tensor<b x s x 2 x f16>, !ait.tensor<b x s x 2 x i32>
  %lv, %lp = ait.topk %x k 2 dim 2 smallest : !ait.tensor<b x s x 2 x f16>, !ait.tensor<b x s x 2 x i32>
  ait.output "y" %1 : !ait.tensor<b x s x 8 x f16>
}
