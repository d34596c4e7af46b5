// RUN: ait-opt %s -p 'pad-products{target="cuda" arch="sm_90a" weights=true}' | filecheck %s

// A concat writes into rows with zeros behind, and the weight is padded when the model is compiled.
// CHECK-LABEL: ait.graph @joined
// CHECK: ait.concat %a, %b, {{.*}} dim 1 : !ait.tensor<batch x 480 x f16>
// CHECK: ait.pad constant %w before [0, 0] : !ait.tensor<1024 x 480 x f16>
// CHECK: ait.gemm rcr {{.*}} : !ait.tensor<batch x 1024 x f16>
ait.graph @joined(%a: !ait.tensor<batch x 128 x f16>, %b: !ait.tensor<batch x 351 x f16>) dims {batch = 1 to 4096} {
  %w = ait.param "w" : !ait.tensor<1024 x 479 x f16>
  %s = ait.concat %a, %b dim 1 : !ait.tensor<batch x 479 x f16>
  %y = ait.gemm rcr %s, %w : !ait.tensor<batch x 1024 x f16>
  ait.output "y" %y : !ait.tensor<batch x 1024 x f16>
}

// Another user reads the result of the concat, so that zeros would be a launch: nothing is padded.
// CHECK-LABEL: ait.graph @read_again
// CHECK-NOT: 480
ait.graph @read_again(%a: !ait.tensor<batch x 128 x f16>, %b: !ait.tensor<batch x 351 x f16>) dims {batch = 1 to 4096} {
  %w = ait.param "w" : !ait.tensor<1024 x 479 x f16>
  %s = ait.concat %a, %b dim 1 : !ait.tensor<batch x 479 x f16>
  %y = ait.gemm rcr %s, %w : !ait.tensor<batch x 1024 x f16>
  ait.output "y" %y : !ait.tensor<batch x 1024 x f16>
  ait.output "s" %s : !ait.tensor<batch x 479 x f16>
}
