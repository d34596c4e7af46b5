// RUN: ait-opt %s -p fuse-elementwise --check-semantics | filecheck %s --check-prefix=FUSED
// RUN: ait-opt %s -p simplify --check-semantics | filecheck %s --check-prefix=SIMPLE
// RUN: ait-opt %s -p simplify,remove-duplicates --check-semantics | filecheck %s --check-prefix=MERGED

// The number of a constant of f16 enters a region as f32.
// FUSED-LABEL: ait.graph @number
// FUSED: ait.constant 0.10000000149011612 : f32
ait.graph @number(%x: !ait.tensor<4 x f16>, %y: !ait.tensor<4 x f16>) {
  %a = ait.constant 0.1 : !ait.tensor<f16>
  %0 = ait.mul %x, %a : !ait.tensor<4 x f16>
  %1 = ait.add %0, %y : !ait.tensor<4 x f16>
  ait.output "y" %1 : !ait.tensor<4 x f16>
}

// So does the number of a view of a constant.
// FUSED-LABEL: ait.graph @view
// FUSED: ait.fused_elementwise(%x, %y)
// FUSED: ait.constant 0.10000000149011612 : f32
ait.graph @view(%x: !ait.tensor<4 x f16>, %y: !ait.tensor<4 x f16>) {
  %a = ait.constant 0.1 : !ait.tensor<f16>
  %b = ait.expand %a : !ait.tensor<4 x f16>
  %0 = ait.mul %x, %b : !ait.tensor<4 x f16>
  %1 = ait.add %0, %y : !ait.tensor<4 x f16>
  ait.output "y" %1 : !ait.tensor<4 x f16>
}

// A number that f16 rounds to 1 is not neutral.
// SIMPLE-LABEL: ait.graph @neutral
// SIMPLE: ait.mul %x, %a
// SIMPLE-NEXT: ait.output "y"
ait.graph @neutral(%x: !ait.tensor<4 x f16>) {
  %a = ait.constant 1.0001 : !ait.tensor<f16>
  %b = ait.constant 1.0 : !ait.tensor<f16>
  %0 = ait.mul %x, %a : !ait.tensor<4 x f16>
  %1 = ait.mul %0, %b : !ait.tensor<4 x f16>
  ait.output "y" %1 : !ait.tensor<4 x f16>
}

// A number and the number that f16 stores for it are two constants.
// MERGED-LABEL: ait.graph @two
// MERGED: ait.constant 0.1 :
// MERGED: ait.constant 0.0999755859375 :
ait.graph @two(%x: !ait.tensor<4 x f16>) {
  %a = ait.constant 0.1 : !ait.tensor<f16>
  %b = ait.constant 0.0999755859375 : !ait.tensor<f16>
  %0 = ait.mul %x, %a : !ait.tensor<4 x f16>
  %1 = ait.mul %x, %b : !ait.tensor<4 x f16>
  ait.output "y" %0 : !ait.tensor<4 x f16>
  ait.output "z" %1 : !ait.tensor<4 x f16>
}
