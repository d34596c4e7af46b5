// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @pool
ait.graph @pool(%x: !ait.tensor<b x h x 9 x 8 x f16>) dims {b = 0 to 4, h = 1 to 64} {
  // CHECK: ait.pool max %x window [3, 3] stride [2, 2] pad [1, 1] dilation [1, 2] ceil : !ait.tensor<b x {{.*}} x 4 x 8 x f16>
  // GENERIC: <{kind = "max", window = [3 : i64, 3 : i64], stride = [2 : i64, 2 : i64], pad = [1 : i64, 1 : i64], dilation = [1 : i64, 2 : i64], ceil}>
  %0 = ait.pool max %x window [3, 3] stride [2, 2] pad [1, 1] dilation [1, 2] ceil : !ait.tensor<b x (min(h floordiv 2 + 1, (h + 1) ceildiv 2)) x 4 x 8 x f16>
  // CHECK-NEXT: ait.pool max %x window [1, 2] stride [1, 2] : !ait.tensor<b x h x 4 x 8 x f16>, !ait.tensor<b x h x 4 x 8 x i64>
  %1, %2 = ait.pool max %x window [1, 2] stride [1, 2] : !ait.tensor<b x h x 4 x 8 x f16>, !ait.tensor<b x h x 4 x 8 x i64>
  // CHECK-NEXT: ait.pool mean %x window [2, 2] pad [1, 0, 0, 1] exclude_pad divisor 5 {note} : !ait.tensor<b x h x 9 x 8 x f16>
  %3 = ait.pool mean %x window [2, 2] pad [1, 0, 0, 1] exclude_pad divisor 5 {note} : !ait.tensor<b x h x 9 x 8 x f16>
  // CHECK-NEXT: ait.adaptive_pool mean %x : !ait.tensor<b x 7 x h x 8 x f16>
  %4 = ait.adaptive_pool mean %x : !ait.tensor<b x 7 x h x 8 x f16>
  // CHECK-NEXT: ait.adaptive_pool max %x : !ait.tensor<b x 2 x 3 x 8 x f16>, !ait.tensor<b x 2 x 3 x 8 x i32>
  // GENERIC: "ait.adaptive_pool"(%x) <{kind = "max"}>
  %5, %6 = ait.adaptive_pool max %x : !ait.tensor<b x 2 x 3 x 8 x f16>, !ait.tensor<b x 2 x 3 x 8 x i32>
  ait.output "y" %0 : !ait.tensor<b x (min(h floordiv 2 + 1, (h + 1) ceildiv 2)) x 4 x 8 x f16>
}

// CHECK-LABEL: ait.graph @fold
ait.graph @fold(%x: !ait.tensor<b x 4 x 3 x h x 5 x f16>) dims {b = 1 to 4, h = 1 to 8} {
  // CHECK-NEXT: ait.overlap_add %x stride [2, 1] dilation [1, 2] before [1, 0] {note} : !ait.tensor<b x (2*h) x 9 x f16>
  %0 = ait.overlap_add %x stride [2, 1] dilation [1, 2] before [1, 0] {note} : !ait.tensor<b x (2*h) x 9 x f16>
  // CHECK-NEXT: ait.overlap_add %x stride [1, 1] : !ait.tensor<b x (h + 3) x 7 x f16>
  %1 = ait.overlap_add %x stride [1, 1] : !ait.tensor<b x (h + 3) x 7 x f16>
  ait.output "y" %1 : !ait.tensor<b x (h + 3) x 7 x f16>
}
