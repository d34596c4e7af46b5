// RUN: ait-opt %s -p 'shard-params{plan="layers.*.up=colwise,layers.*.down=rowwise,table=rowwise,turned=colwise" mesh="tp=2"}' | filecheck %s
// RUN: ait-opt %s -p 'shard-params{plan="*=colwise,layers.*.*=colwise" mesh="dp=2,tp=2"}' | filecheck %s --check-prefix=ALL
// RUN: ait-opt %s -p 'shard-params{plan=""}' | filecheck %s --check-prefix=NONE

// A sharding of the text stays. A weight that is turned before the product is divided along the same dim of the result.
// CHECK: sdy.mesh @mesh = <["tp"=2]>
// NONE-NOT: sdy
// CHECK: ait.param "table" {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>} : !ait.tensor<16 x 8 x f32>
// ALL: ait.param "table" {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tp"}]>} : !ait.tensor<16 x 8 x f32>
// CHECK: ait.param "layers.0.up.weight" {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>} : !ait.tensor<32 x 8 x f32>
// CHECK: ait.param "layers.0.up.bias" {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}]>} : !ait.tensor<32 x f32>
// CHECK: ait.param "layers.0.down.weight" {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tp"}]>} : !ait.tensor<8 x 32 x f32>
// ALL: ait.param "layers.0.down.weight" {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>} : !ait.tensor<8 x 32 x f32>
// CHECK: ait.param "layers.0.down.bias" : !ait.tensor<8 x f32>
// CHECK: ait.param "turned" {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>} : !ait.tensor<4 x 8 x f32>
// CHECK: ait.param "other" : !ait.tensor<4 x 4 x f32>
ait.graph @block(%ids: !ait.tensor<b x i64>) dims {b = 1 to 4} {
  %table = ait.param "table" : !ait.tensor<16 x 8 x f32>
  %x = ait.embedding %table, %ids : !ait.tensor<b x 8 x f32>
  %up = ait.param "layers.0.up.weight" : !ait.tensor<32 x 8 x f32>
  %0 = ait.gemm rcr %x, %up : !ait.tensor<b x 32 x f32>
  %up_bias = ait.param "layers.0.up.bias" : !ait.tensor<32 x f32>
  %1 = ait.add %0, %up_bias : !ait.tensor<b x 32 x f32>
  %down = ait.param "layers.0.down.weight" : !ait.tensor<8 x 32 x f32>
  %2 = ait.gemm rcr %1, %down : !ait.tensor<b x 8 x f32>
  %down_bias = ait.param "layers.0.down.bias" : !ait.tensor<8 x f32>
  %3 = ait.add %2, %down_bias : !ait.tensor<b x 8 x f32>
  %turned = ait.param "turned" : !ait.tensor<4 x 8 x f32>
  %4 = ait.permute %turned [1, 0] : !ait.tensor<8 x 4 x f32>
  %5 = ait.gemm rrr %3, %4 : !ait.tensor<b x 4 x f32>
  %other = ait.param "other" : !ait.tensor<4 x 4 x f32>
  %6 = ait.gemm rcr %5, %other : !ait.tensor<b x 4 x f32>
  ait.output "y" %6 : !ait.tensor<b x 4 x f32>
}
