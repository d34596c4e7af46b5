// RUN: ait-opt %s -p 'form-loops{target="cuda" arch="sm_90a"},select{target="cuda" arch="sm_90a"}' | filecheck %s

// Eight rows would be eight blocks: each is split.
// CHECK-LABEL: ait.graph @larger_image_of_few_groups
// CHECK-NEXT: ait.loops
// CHECK: kernel = #ait.kernel<"split", {
ait.graph @larger_image_of_few_groups(%x: !ait.tensor<2 x 96 x 96 x 32 x f16>, %g: !ait.tensor<32 x f16>, %h: !ait.tensor<32 x f16>) {
  %n = ait.group_norm %x scale %g bias %h dim 3 groups 4 eps 1e-05 : !ait.tensor<2 x 96 x 96 x 32 x f16>
  %y = ait.resize nearest %n : !ait.tensor<2 x 192 x 192 x 32 x f16>
  ait.output "y" %y : !ait.tensor<2 x 192 x 192 x 32 x f16>
}

// A row for each channel would store elements that lie apart.
// CHECK-LABEL: ait.graph @larger_image_of_many_rows
// CHECK-NEXT: ait.group_norm
// CHECK-NEXT: ait.resize
ait.graph @larger_image_of_many_rows(%x: !ait.tensor<2 x 48 x 48 x 64 x f16>, %g: !ait.tensor<64 x f16>, %h: !ait.tensor<64 x f16>) {
  %n = ait.group_norm %x scale %g bias %h dim 3 groups 4 eps 1e-05 : !ait.tensor<2 x 48 x 48 x 64 x f16>
  %y = ait.resize nearest %n : !ait.tensor<2 x 96 x 96 x 64 x f16>
  ait.output "y" %y : !ait.tensor<2 x 96 x 96 x 64 x f16>
}

// Planes store their elements side by side, and there are blocks enough.
// CHECK-LABEL: ait.graph @larger_planes
// CHECK-NEXT: ait.loops
ait.graph @larger_planes(%x: !ait.tensor<8 x 512 x 48 x 48 x f16>) {
  %n = ait.layer_norm %x axes 2 eps 1e-05 : !ait.tensor<8 x 512 x 48 x 48 x f16>
  %r = ait.reshape %n : !ait.tensor<4096 x 48 x 48 x 1 x f16>
  %y = ait.resize nearest %r : !ait.tensor<4096 x 96 x 96 x 1 x f16>
  ait.output "y" %y : !ait.tensor<4096 x 96 x 96 x 1 x f16>
}
