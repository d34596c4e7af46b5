// RUN: ait-opt %s -p simplify | filecheck %s
// RUN: ait-opt %s -p simplify --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// An operand of a product over several tensors, as torch.einsum writes it.
// CHECK-LABEL: ait.graph @operand
ait.graph @operand(%x: !ait.tensor<b x s x 8 x f32>, %y: !ait.tensor<b x 8 x s x f32>) dims {b = 0 to 8, s = 1 to 5} {
  // CHECK-NEXT: ait.bmm ccr %y, %x
  %0 = ait.reshape %y : !ait.tensor<b x 8 x s x 1 x f32>
  %1 = ait.permute %0 [0, 2, 3, 1] : !ait.tensor<b x s x 1 x 8 x f32>
  %2 = ait.reshape %1 : !ait.tensor<b x s x 8 x f32>
  %3 = ait.permute %x [0, 2, 1] : !ait.tensor<b x 8 x s x f32>
  %4 = ait.bmm rrr %2, %3 : !ait.tensor<b x s x s x f32>
  ait.output "y" %4 : !ait.tensor<b x s x s x f32>
}

// Only dims of 1 move.
// CHECK-LABEL: ait.graph @nothing
ait.graph @nothing(%x: !ait.tensor<b x 4 x 8 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.output "y" %x
  %0 = ait.reshape %x : !ait.tensor<b x 1 x 4 x 1 x 8 x f32>
  %1 = ait.permute %0 [1, 0, 2, 4, 3] : !ait.tensor<1 x b x 4 x 8 x 1 x f32>
  %2 = ait.reshape %1 : !ait.tensor<b x 4 x 8 x f32>
  ait.output "y" %2 : !ait.tensor<b x 4 x 8 x f32>
}

// Dims of 1 of the input and of the result stay a reshape; the permute has another reader.
// CHECK-LABEL: ait.graph @dims_of_one
ait.graph @dims_of_one(%x: !ait.tensor<1 x b x 1 x 4 x f32>) dims {b = 1 to 8} {
  // CHECK: [[P:%.+]] = ait.permute %x [3, 1, 0, 2] : !ait.tensor<4 x b x 1 x 1 x f32>
  // CHECK: [[R:%.+]] = ait.reshape [[P]] : !ait.tensor<4 x 1 x b x f32>
  // CHECK: ait.output "y" [[R]]
  %0 = ait.reshape %x : !ait.tensor<b x 4 x 1 x f32>
  %1 = ait.permute %0 [1, 0, 2] : !ait.tensor<4 x b x 1 x f32>
  %2 = ait.reshape %1 : !ait.tensor<4 x 1 x b x f32>
  ait.output "y" %2 : !ait.tensor<4 x 1 x b x f32>
  ait.output "z" %1 : !ait.tensor<4 x b x 1 x f32>
}

// The first reshape splits a dim.
// CHECK-LABEL: ait.graph @splits
ait.graph @splits(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.reshape
  // CHECK-NEXT: ait.permute %0 [1, 0, 2]
  // CHECK-NEXT: ait.reshape
  %0 = ait.reshape %x : !ait.tensor<b x 2 x 4 x f32>
  %1 = ait.permute %0 [1, 0, 2] : !ait.tensor<2 x b x 4 x f32>
  %2 = ait.reshape %1 : !ait.tensor<2 x 1 x b x 4 x f32>
  ait.output "y" %2 : !ait.tensor<2 x 1 x b x 4 x f32>
}

// The last reshape joins dims.
// CHECK-LABEL: ait.graph @joins
ait.graph @joins(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 8} {
  // CHECK-NEXT: ait.reshape
  // CHECK-NEXT: ait.permute %0 [2, 1, 0]
  // CHECK-NEXT: ait.reshape
  %0 = ait.reshape %x : !ait.tensor<b x 1 x 8 x f32>
  %1 = ait.permute %0 [2, 1, 0] : !ait.tensor<8 x 1 x b x f32>
  %2 = ait.reshape %1 : !ait.tensor<(8*b) x f32>
  ait.output "y" %2 : !ait.tensor<(8*b) x f32>
}

// A dim that can be 1 in a run is not one of 1.
// CHECK-LABEL: ait.graph @dynamic
ait.graph @dynamic(%x: !ait.tensor<b x s x f32>) dims {b = 0 to 8, s = 1 to 8} {
  // CHECK: ait.permute %x [1, 0]
  %0 = ait.reshape %x : !ait.tensor<1 x b x s x f32>
  %1 = ait.permute %0 [0, 2, 1] : !ait.tensor<1 x s x b x f32>
  %2 = ait.reshape %1 : !ait.tensor<s x b x f32>
  ait.output "y" %2 : !ait.tensor<s x b x f32>
}
