// RUN: ait-opt %s -p 'multiply-float8{target="cuda" arch="sm_90a"}' --check-semantics | filecheck %s

// Scales of groups along rows are scales of the rows of another shape.
// CHECK-LABEL: ait.graph @groups
ait.graph @groups(%x: !ait.tensor<b x s x 256 x f16>, %t: !ait.tensor<b x s x 2 x f32>, %k: !ait.tensor<b x (128*s) x f16>, %u: !ait.tensor<b x s x f32>) dims {b = 0 to 3, s = 1 to 9} {
  // CHECK-DAG:  [[X:%.+]] = ait.reshape %x : !ait.tensor<b x s x 2 x 128 x f16>
  // CHECK-DAG:  [[T:%.+]] = ait.reshape %t : !ait.tensor<b x s x 2 x 1 x f32>
  // CHECK:      [[Q:%.+]] = ait.quantize [[X]] scale [[T]] : !ait.tensor<b x s x 2 x 128 x f8E4M3FN>
  // CHECK-NEXT: ait.reshape [[Q]] : !ait.tensor<b x s x 256 x f8E4M3FN>
  // CHECK:      ait.quantize {{.*}} : !ait.tensor<b x s x 128 x i8>
  %y = ait.quantize %x scale %t blocks [1, 1, 128] : !ait.tensor<b x s x 256 x f8E4M3FN>
  %z = ait.quantize %k scale %u blocks [1, 128] : !ait.tensor<b x (128*s) x i8>
  ait.output "y" %y : !ait.tensor<b x s x 256 x f8E4M3FN>
  ait.output "z" %z : !ait.tensor<b x (128*s) x i8>
}

// Blocks of rows, a smaller last group, groups of one number, one group, a zero point, no blocks.
// CHECK-LABEL: ait.graph @others
ait.graph @others(%x: !ait.tensor<4 x 256 x f16>, %a: !ait.tensor<2 x 2 x f32>, %b: !ait.tensor<4 x 3 x f32>, %c: !ait.tensor<4 x 256 x f32>, %d: !ait.tensor<4 x 1 x f32>, %e: !ait.tensor<4 x 2 x f32>, %z: !ait.tensor<4 x 2 x i8>) {
  // CHECK-NOT: ait.reshape
  // CHECK: }
  %y0 = ait.quantize %x scale %a blocks [2, 128] : !ait.tensor<4 x 256 x f8E4M3FN>
  %y1 = ait.quantize %x scale %b blocks [1, 96] : !ait.tensor<4 x 256 x f8E4M3FN>
  %y2 = ait.quantize %x scale %c blocks [1, 1] : !ait.tensor<4 x 256 x f8E4M3FN>
  %y3 = ait.quantize %x scale %d blocks [1, 256] : !ait.tensor<4 x 256 x f8E4M3FN>
  %y4 = ait.quantize %x scale %e zero %z blocks [1, 128] : !ait.tensor<4 x 256 x i8>
  %y5 = ait.quantize %x scale %d : !ait.tensor<4 x 256 x f8E4M3FN>
  ait.output "y0" %y0 : !ait.tensor<4 x 256 x f8E4M3FN>
  ait.output "y1" %y1 : !ait.tensor<4 x 256 x f8E4M3FN>
  ait.output "y2" %y2 : !ait.tensor<4 x 256 x f8E4M3FN>
  ait.output "y3" %y3 : !ait.tensor<4 x 256 x f8E4M3FN>
  ait.output "y4" %y4 : !ait.tensor<4 x 256 x i8>
  ait.output "y5" %y5 : !ait.tensor<4 x 256 x f8E4M3FN>
}
