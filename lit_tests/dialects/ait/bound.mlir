// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: ait-opt %s -p 'select{target="cpu"},bufferize,remove-copies,lower-copies,plan-memory,verify-plan' --check-semantics 2>&1 | filecheck %s --check-prefix=PLANNED
// PLANNED: no difference

// The elements of a mask, the rows of a matrix, and both used in ops of their size.
// CHECK-LABEL: ait.graph @selected(%x: !ait.tensor<b x 8 x f32>, %m: !ait.tensor<b x 8 x i1>, %rows: !ait.tensor<b x i1>) dims {b = 0 to 50 hints [8], count = 0 to 8*b bound, kept = 0 to b hints [4] bound} {
// GENERIC: dims = #ait.dims<b = 0 to 50 hints [8], count = 0 to 8*b bound, kept = 0 to b hints [4] bound>
ait.graph @selected(%x: !ait.tensor<b x 8 x f32>, %m: !ait.tensor<b x 8 x i1>, %rows: !ait.tensor<b x i1>) dims {b = 0 to 50 hints [8], count = 0 to 8*b bound, kept = 0 to b hints [4] bound} {
  // CHECK-NEXT: %y, %n = ait.masked_select %x, %m : !ait.tensor<count x f32>, !ait.tensor<i64>
  // GENERIC: "ait.masked_select"(%x, %m) : (!ait.tensor<b x 8 x f32>, !ait.tensor<b x 8 x i1>) -> (!ait.tensor<count x f32>, !ait.tensor<i64>)
  %y, %n = ait.masked_select %x, %m : !ait.tensor<count x f32>, !ait.tensor<i64>
  // CHECK-NEXT: %{{.*}} = ait.masked_select %x, %rows : !ait.tensor<kept x 8 x f32>, !ait.tensor<i64>
  %r, %k = ait.masked_select %x, %rows : !ait.tensor<kept x 8 x f32>, !ait.tensor<i64>
  %s = ait.reshape %y : !ait.tensor<1 x count x f32>
  %t = ait.permute %r [1, 0] : !ait.tensor<8 x kept x f32>
  %u = ait.exp %t : !ait.tensor<8 x kept x f32>
  ait.output "y" %s : !ait.tensor<1 x count x f32>
  ait.output "n" %n : !ait.tensor<i64>
  ait.output "u" %u : !ait.tensor<8 x kept x f32>
}

// A bound may name a dim that is bound before, and be larger than what is selected from.
// CHECK-LABEL: ait.graph @again
// CHECK-SAME: dims {b = 1 to 9, first = 0 to 2*b + 1 bound, second = 0 to 2*first bound}
ait.graph @again(%x: !ait.tensor<b x f32>, %m: !ait.tensor<b x i1>) dims {b = 1 to 9, first = 0 to 2*b + 1 bound, second = 0 to 2*first bound} {
  %y, %n = ait.masked_select %x, %m : !ait.tensor<first x f32>, !ait.tensor<i64>
  %0 = ait.constant 0.5 : !ait.tensor<f32>
  %1 = ait.compare gt %y, %0 : !ait.tensor<first x i1>
  %z, %k = ait.masked_select %y, %1 : !ait.tensor<second x f32>, !ait.tensor<i64>
  ait.output "z" %z : !ait.tensor<second x f32>
}
