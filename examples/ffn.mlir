// The feed-forward block of a transformer: two linear layers with bias, gelu between them, for any batch from 1 to 64.
//
//   ait-opt examples/ffn.mlir -p simplify,fuse-epilogue
//   ait compile examples/ffn.mlir --target cpu -o ffn.ait

ait.graph @ffn(%x: !ait.tensor<batch x 768 x f16>) dims {batch = 1 to 64} {
  %up_w = ait.param "up.weight" : !ait.tensor<3072 x 768 x f16>
  %up_b = ait.param "up.bias" : !ait.tensor<3072 x f16>
  %0 = ait.gemm rcr %x, %up_w : !ait.tensor<batch x 3072 x f16>
  %1 = ait.add %0, %up_b : !ait.tensor<batch x 3072 x f16>
  %2 = ait.gelu %1 : !ait.tensor<batch x 3072 x f16>
  %down_w = ait.param "down.weight" : !ait.tensor<768 x 3072 x f16>
  %down_b = ait.param "down.bias" : !ait.tensor<768 x f16>
  %3 = ait.gemm rcr %2, %down_w : !ait.tensor<batch x 768 x f16>
  %4 = ait.add %3, %down_b : !ait.tensor<batch x 768 x f16>
  ait.output "y" %4 : !ait.tensor<batch x 768 x f16>
}
