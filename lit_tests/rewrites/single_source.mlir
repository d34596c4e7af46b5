// RUN: ait-opt %s -p merge-single-source-gemms,fuse-bias | filecheck %s
// RUN: ait-opt %s -p merge-single-source-gemms,fuse-bias --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// Whatever reads the products: those with a bias become one, those without one another.
// CHECK-LABEL: ait.graph @kinds
ait.graph @kinds(%x: !ait.tensor<b x 4 x f16>) dims {b = 0 to 4} {
  %u = ait.param "u" : !ait.tensor<8 x 4 x f16>
  %v = ait.param "v" : !ait.tensor<2 x 4 x f16>
  %c = ait.param "c" : !ait.tensor<8 x f16>
  %d = ait.param "d" : !ait.tensor<2 x f16>
  // CHECK: [[W:%.*]] = ait.concat %u, %v dim 0 : !ait.tensor<10 x 4 x f16>
  // CHECK: [[B:%.*]] = ait.concat %c, %d dim 0 : !ait.tensor<10 x f16>
  // CHECK-NEXT: [[Y:%.*]] = ait.gemm rcr %x, [[W]] epilogue([[B]]) {
  // CHECK: ait.split [[Y]] dim 1
  // CHECK: [[V:%.*]] = ait.concat %v, %u dim 0
  // CHECK-NEXT: [[Z:%.*]] = ait.gemm rcr %x, [[V]] : !ait.tensor<b x 10 x f16>
  // CHECK-NEXT: ait.split [[Z]] dim 1
  // CHECK-NOT: ait.gemm
  %0 = ait.gemm rcr %x, %u : !ait.tensor<b x 8 x f16>
  %1 = ait.add %0, %c : !ait.tensor<b x 8 x f16>
  %2 = ait.relu %1 : !ait.tensor<b x 8 x f16>
  %3 = ait.gemm rcr %x, %v : !ait.tensor<b x 2 x f16>
  %4 = ait.gemm rcr %x, %v : !ait.tensor<b x 2 x f16>
  %5 = ait.add %d, %4 : !ait.tensor<b x 2 x f16>
  %6 = ait.relu %5 : !ait.tensor<b x 2 x f16>
  %7 = ait.gemm rcr %x, %u : !ait.tensor<b x 8 x f16>
  %8 = ait.sigmoid %3 : !ait.tensor<b x 2 x f16>
  %9 = ait.sigmoid %7 : !ait.tensor<b x 8 x f16>
  ait.output "y2" %2 : !ait.tensor<b x 8 x f16>
  ait.output "y6" %6 : !ait.tensor<b x 2 x f16>
  ait.output "y8" %8 : !ait.tensor<b x 2 x f16>
  ait.output "y9" %9 : !ait.tensor<b x 8 x f16>
}

// One product alone, one that is an output, another source, a weight that is an input, one that is selected.
// CHECK-LABEL: ait.graph @apart
ait.graph @apart(%x: !ait.tensor<b x 4 x f16>, %z: !ait.tensor<b x 4 x f16>, %i: !ait.tensor<8 x 4 x f16>) dims {b = 1 to 4} {
  %u = ait.param "apart.u" : !ait.tensor<8 x 4 x f16>
  // CHECK-COUNT-5: ait.gemm rcr
  // CHECK-NOT: ait.split
  %0 = ait.gemm rcr %x, %u : !ait.tensor<b x 8 x f16>
  %1 = ait.relu %0 : !ait.tensor<b x 8 x f16>
  %2 = ait.gemm rcr %x, %u : !ait.tensor<b x 8 x f16>
  %3 = ait.gemm rcr %z, %u : !ait.tensor<b x 8 x f16>
  %4 = ait.relu %3 : !ait.tensor<b x 8 x f16>
  %5 = ait.gemm rcr %x, %i : !ait.tensor<b x 8 x f16>
  %6 = ait.relu %5 : !ait.tensor<b x 8 x f16>
  %7 = ait.gemm rcr %x, %u {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 8 x f16>
  %8 = ait.tanh %7 : !ait.tensor<b x 8 x f16>
  // CHECK: ait.output
  ait.output "y1" %1 : !ait.tensor<b x 8 x f16>
  ait.output "y2" %2 : !ait.tensor<b x 8 x f16>
  ait.output "y4" %4 : !ait.tensor<b x 8 x f16>
  ait.output "y6" %6 : !ait.tensor<b x 8 x f16>
  ait.output "y8" %8 : !ait.tensor<b x 8 x f16>
}

// A bias of the columns joins its product; a number for each row does not, nor one that a second reader keeps apart, nor a sum
// that broadcasts the product, nor one behind an epilogue or a selected product.
// CHECK-LABEL: ait.graph @biases
ait.graph @biases(%x: !ait.tensor<3 x 4 x f32>, %y: !ait.tensor<b x 3 x 4 x f32>, %c: !ait.tensor<1 x 8 x f32>, %r: !ait.tensor<3 x 1 x f32>, %t: !ait.tensor<2 x 3 x 8 x f32>, %u: !ait.tensor<8 x 4 x f32>)
  dims {b = 1 to 4} {
  // CHECK: ait.bmm rcr %y, %u epilogue(%c) {
  // CHECK: ait.gemm rcr %x, %u : !ait.tensor<3 x 8 x f32>
  // CHECK-NEXT: ait.add {{.*}} %r
  // CHECK-NEXT: [[G:%.*]] = ait.gemm
  // CHECK-NEXT: ait.add [[G]], %c
  // CHECK-NEXT: [[G:%.*]] = ait.gemm
  // CHECK-NEXT: ait.add [[G]], %t
  // CHECK-NEXT: [[G:%.*]] = ait.gemm rcr %x, %u epilogue() {
  // CHECK: ait.add [[G]], %c
  // CHECK-NEXT: [[G:%.*]] = ait.gemm rcr %x, %u {kernel
  // CHECK-NEXT: ait.add [[G]], %c
  %0 = ait.bmm rcr %y, %u : !ait.tensor<b x 3 x 8 x f32>
  %1 = ait.add %c, %0 : !ait.tensor<b x 3 x 8 x f32>
  %2 = ait.gemm rcr %x, %u : !ait.tensor<3 x 8 x f32>
  %3 = ait.add %2, %r : !ait.tensor<3 x 8 x f32>
  %4 = ait.gemm rcr %x, %u : !ait.tensor<3 x 8 x f32>
  %5 = ait.add %4, %c : !ait.tensor<3 x 8 x f32>
  %6 = ait.gemm rcr %x, %u : !ait.tensor<3 x 8 x f32>
  %7 = ait.add %6, %t : !ait.tensor<2 x 3 x 8 x f32>
  %8 = ait.gemm rcr %x, %u epilogue() {
  ^bb0(%acc: f32):
    %s = ait.relu %acc : f32
    ait.yield %s : f32
  } : !ait.tensor<3 x 8 x f32>
  %9 = ait.add %8, %c : !ait.tensor<3 x 8 x f32>
  %10 = ait.gemm rcr %x, %u {kernel = #ait.kernel<"native", {}>} : !ait.tensor<3 x 8 x f32>
  %11 = ait.add %10, %c : !ait.tensor<3 x 8 x f32>
  ait.output "y1" %1 : !ait.tensor<b x 3 x 8 x f32>
  ait.output "y3" %3 : !ait.tensor<3 x 8 x f32>
  ait.output "y4" %4 : !ait.tensor<3 x 8 x f32>
  ait.output "y5" %5 : !ait.tensor<3 x 8 x f32>
  ait.output "y7" %7 : !ait.tensor<2 x 3 x 8 x f32>
  ait.output "y9" %9 : !ait.tensor<3 x 8 x f32>
  ait.output "y11" %11 : !ait.tensor<3 x 8 x f32>
}
