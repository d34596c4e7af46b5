// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @cumsum
ait.graph @cumsum(%x: !ait.tensor<b x s x 8 x f16>) dims {b = 0 to 4, s = 0 to 4} {
  // CHECK: ait.cumulative sum %x dim 1 : !ait.tensor<b x s x 8 x f16>
  // GENERIC: "ait.cumulative"(%x) <{kind = "sum", dim = 1 : i64}> : (!ait.tensor<b x s x 8 x f16>) -> !ait.tensor<b x s x 8 x f16>
  %0 = ait.cumulative sum %x dim 1 : !ait.tensor<b x s x 8 x f16>
  // CHECK-NEXT: ait.cumulative sum %0 dim 0 exclusive : !ait.tensor<b x s x 8 x f16>
  // GENERIC: <{kind = "sum", dim = 0 : i64, exclusive}>
  %1 = ait.cumulative sum %0 dim 0 exclusive : !ait.tensor<b x s x 8 x f16>
  // CHECK-NEXT: ait.cumulative sum %1 dim 2 reverse : !ait.tensor<b x s x 8 x f16>
  // GENERIC: <{kind = "sum", dim = 2 : i64, reverse}>
  %2 = ait.cumulative sum %1 dim 2 reverse : !ait.tensor<b x s x 8 x f16>
  // CHECK-NEXT: ait.cumulative sum %2 dim 2 exclusive reverse {note} : !ait.tensor<b x s x 8 x f16>
  %3 = ait.cumulative sum %2 dim 2 exclusive reverse {note} : !ait.tensor<b x s x 8 x f16>
  // CHECK-NEXT: ait.cumulative prod %3 dim 1 :
  %4 = ait.cumulative prod %3 dim 1 : !ait.tensor<b x s x 8 x f16>
  // CHECK-NEXT: ait.cumulative max %4 dim 1 :
  %5 = ait.cumulative max %4 dim 1 : !ait.tensor<b x s x 8 x f16>
  // CHECK-NEXT: ait.cumulative min %5 dim 1 :
  %6 = ait.cumulative min %5 dim 1 : !ait.tensor<b x s x 8 x f16>
  // CHECK-NEXT: ait.cumulative logsumexp %6 dim 1 :
  %7 = ait.cumulative logsumexp %6 dim 1 : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %7 : !ait.tensor<b x s x 8 x f16>
}
