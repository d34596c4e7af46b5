// One encoder layer of BERT-base, written as a paper would write it: no fusion, every step an op of its own.
// Hidden size 768, 12 heads of 64, feed-forward 3072, for any batch from 1 to 64 and any sequence length from 1 to 512.
//
//   ait compile examples/bert_layer.mlir --target cpu --to planned
//   ait compile examples/bert_layer.mlir --target cuda --to planned

ait.graph @bert_layer(%x: !ait.tensor<batch x seq x 768 x f16>) dims {batch = 1 to 64, seq = 1 to 512 hints [128, 384]} {
  // query, key and value: [batch, heads, seq, head size]
  %q_w = ait.param "attention.query.weight" : !ait.tensor<768 x 768 x f16>
  %q_b = ait.param "attention.query.bias" : !ait.tensor<768 x f16>
  %q0 = ait.gemm rcr %x, %q_w : !ait.tensor<batch x seq x 768 x f16>
  %q1 = ait.add %q0, %q_b : !ait.tensor<batch x seq x 768 x f16>
  %q2 = ait.reshape %q1 : !ait.tensor<batch x seq x 12 x 64 x f16>
  %q = ait.permute %q2 [0, 2, 1, 3] : !ait.tensor<batch x 12 x seq x 64 x f16>
  %k_w = ait.param "attention.key.weight" : !ait.tensor<768 x 768 x f16>
  %k_b = ait.param "attention.key.bias" : !ait.tensor<768 x f16>
  %k0 = ait.gemm rcr %x, %k_w : !ait.tensor<batch x seq x 768 x f16>
  %k1 = ait.add %k0, %k_b : !ait.tensor<batch x seq x 768 x f16>
  %k2 = ait.reshape %k1 : !ait.tensor<batch x seq x 12 x 64 x f16>
  %k = ait.permute %k2 [0, 2, 1, 3] : !ait.tensor<batch x 12 x seq x 64 x f16>
  %v_w = ait.param "attention.value.weight" : !ait.tensor<768 x 768 x f16>
  %v_b = ait.param "attention.value.bias" : !ait.tensor<768 x f16>
  %v0 = ait.gemm rcr %x, %v_w : !ait.tensor<batch x seq x 768 x f16>
  %v1 = ait.add %v0, %v_b : !ait.tensor<batch x seq x 768 x f16>
  %v2 = ait.reshape %v1 : !ait.tensor<batch x seq x 12 x 64 x f16>
  %v = ait.permute %v2 [0, 2, 1, 3] : !ait.tensor<batch x 12 x seq x 64 x f16>

  // softmax(q k^T / 8) v
  %scale = ait.constant 0.125 : !ait.tensor<f16>
  %s0 = ait.bmm rcr %q, %k : !ait.tensor<batch x 12 x seq x seq x f16>
  %s1 = ait.mul %s0, %scale : !ait.tensor<batch x 12 x seq x seq x f16>
  %p = ait.softmax %s1 dim 3 : !ait.tensor<batch x 12 x seq x seq x f16>
  %c0 = ait.bmm rrr %p, %v : !ait.tensor<batch x 12 x seq x 64 x f16>
  %c1 = ait.permute %c0 [0, 2, 1, 3] : !ait.tensor<batch x seq x 12 x 64 x f16>
  %c = ait.reshape %c1 : !ait.tensor<batch x seq x 768 x f16>

  // projection, residual, norm
  %o_w = ait.param "attention.output.weight" : !ait.tensor<768 x 768 x f16>
  %o_b = ait.param "attention.output.bias" : !ait.tensor<768 x f16>
  %o0 = ait.gemm rcr %c, %o_w : !ait.tensor<batch x seq x 768 x f16>
  %o1 = ait.add %o0, %o_b : !ait.tensor<batch x seq x 768 x f16>
  %o2 = ait.add %o1, %x : !ait.tensor<batch x seq x 768 x f16>
  %an_g = ait.param "attention.norm.weight" : !ait.tensor<768 x f16>
  %an_b = ait.param "attention.norm.bias" : !ait.tensor<768 x f16>
  %a = ait.layer_norm %o2 scale %an_g bias %an_b axes 1 eps 1e-12 : !ait.tensor<batch x seq x 768 x f16>

  // feed-forward, residual, norm
  %up_w = ait.param "intermediate.weight" : !ait.tensor<3072 x 768 x f16>
  %up_b = ait.param "intermediate.bias" : !ait.tensor<3072 x f16>
  %f0 = ait.gemm rcr %a, %up_w : !ait.tensor<batch x seq x 3072 x f16>
  %f1 = ait.add %f0, %up_b : !ait.tensor<batch x seq x 3072 x f16>
  %f2 = ait.gelu %f1 : !ait.tensor<batch x seq x 3072 x f16>
  %down_w = ait.param "output.weight" : !ait.tensor<768 x 3072 x f16>
  %down_b = ait.param "output.bias" : !ait.tensor<768 x f16>
  %f3 = ait.gemm rcr %f2, %down_w : !ait.tensor<batch x seq x 768 x f16>
  %f4 = ait.add %f3, %down_b : !ait.tensor<batch x seq x 768 x f16>
  %f5 = ait.add %f4, %a : !ait.tensor<batch x seq x 768 x f16>
  %on_g = ait.param "output.norm.weight" : !ait.tensor<768 x f16>
  %on_b = ait.param "output.norm.bias" : !ait.tensor<768 x f16>
  %y = ait.layer_norm %f5 scale %on_g bias %on_b axes 1 eps 1e-12 : !ait.tensor<batch x seq x 768 x f16>
  ait.output "y" %y : !ait.tensor<batch x seq x 768 x f16>
}
