// RUN: ait-opt %s -p 'shard-params{plan="w=colwise"}' --split-input-file --verify-diagnostics

// expected-error @below {{a plan needs one mesh, the module declares 0: give one, as in mesh="tp=2"}}
ait.graph @no_mesh(%x: !ait.tensor<4 x f32>) {
  %w = ait.param "w" : !ait.tensor<4 x f32>
  %0 = ait.add %x, %w : !ait.tensor<4 x f32>
  ait.output "y" %0 : !ait.tensor<4 x f32>
}

// -----

sdy.mesh @mesh = <["tp"=2]>
ait.graph @unread(%x: !ait.tensor<4 x 4 x f32>) {
  // expected-error @below {{no product and no embedding reads param 'w', so that colwise has no meaning; give it a sharding instead}}
  %w = ait.param "w" : !ait.tensor<4 x 4 x f32>
  %0 = ait.add %x, %w : !ait.tensor<4 x 4 x f32>
  ait.output "y" %0 : !ait.tensor<4 x 4 x f32>
}

// -----

sdy.mesh @mesh = <["tp"=2]>
ait.graph @both(%x: !ait.tensor<4 x 4 x f32>) {
  // expected-error @below {{param 'w' is a factor of products along different dims; give it a sharding instead}}
  %w = ait.param "w" : !ait.tensor<4 x 4 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<4 x 4 x f32>
  %1 = ait.gemm rrr %0, %w : !ait.tensor<4 x 4 x f32>
  ait.output "y" %1 : !ait.tensor<4 x 4 x f32>
}
