// One decoder layer as in Llama, with shared heads of keys and values; every step an op of its own.
// Hidden size 1024, 16 heads of queries and 4 of keys and values, each of 64, feed-forward 2816, for any batch from 1 to 16
// and any sequence length from 1 to 2048. The cosines and sines of the angles of each position are inputs.
//
//   ait compile examples/llama_layer.mlir --target cpu --to planned
//   ait compile examples/llama_layer.mlir --target cuda --to planned

ait.graph @llama_layer(%x: !ait.tensor<batch x seq x 1024 x f16>, %cos: !ait.tensor<seq x 1 x 32 x f16>, %sin: !ait.tensor<seq x 1 x 32 x f16>) dims {batch = 1 to 16, seq = 1 to 2048 hints [512]} {
  // norm, then query, key and value: 16 heads of queries, 4 of keys and values
  %n0_g = ait.param "input_layernorm.weight" : !ait.tensor<1024 x f16>
  %n0 = ait.rms_norm %x scale %n0_g axes 1 eps 1e-05 : !ait.tensor<batch x seq x 1024 x f16>
  %q_w = ait.param "self_attn.q_proj.weight" : !ait.tensor<1024 x 1024 x f16>
  %q0 = ait.gemm rcr %n0, %q_w : !ait.tensor<batch x seq x 1024 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<batch x seq x 16 x 64 x f16>
  %k_w = ait.param "self_attn.k_proj.weight" : !ait.tensor<256 x 1024 x f16>
  %k0 = ait.gemm rcr %n0, %k_w : !ait.tensor<batch x seq x 256 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<batch x seq x 4 x 64 x f16>
  %v_w = ait.param "self_attn.v_proj.weight" : !ait.tensor<256 x 1024 x f16>
  %v0 = ait.gemm rcr %n0, %v_w : !ait.tensor<batch x seq x 256 x f16>
  %v1 = ait.reshape %v0 : !ait.tensor<batch x seq x 4 x 64 x f16>

  // rotary embedding: the first half of each head and the second are real and imaginary parts
  %q_a, %q_b = ait.split %q1 dim 3 : !ait.tensor<batch x seq x 16 x 32 x f16>, !ait.tensor<batch x seq x 16 x 32 x f16>
  %q_r0 = ait.mul %q_a, %cos : !ait.tensor<batch x seq x 16 x 32 x f16>
  %q_r1 = ait.mul %q_b, %sin : !ait.tensor<batch x seq x 16 x 32 x f16>
  %q_r = ait.sub %q_r0, %q_r1 : !ait.tensor<batch x seq x 16 x 32 x f16>
  %q_i0 = ait.mul %q_b, %cos : !ait.tensor<batch x seq x 16 x 32 x f16>
  %q_i1 = ait.mul %q_a, %sin : !ait.tensor<batch x seq x 16 x 32 x f16>
  %q_i = ait.add %q_i0, %q_i1 : !ait.tensor<batch x seq x 16 x 32 x f16>
  %q2 = ait.concat %q_r, %q_i dim 3 : !ait.tensor<batch x seq x 16 x 64 x f16>
  %q = ait.permute %q2 [0, 2, 1, 3] : !ait.tensor<batch x 16 x seq x 64 x f16>
  %k_a, %k_b = ait.split %k1 dim 3 : !ait.tensor<batch x seq x 4 x 32 x f16>, !ait.tensor<batch x seq x 4 x 32 x f16>
  %k_r0 = ait.mul %k_a, %cos : !ait.tensor<batch x seq x 4 x 32 x f16>
  %k_r1 = ait.mul %k_b, %sin : !ait.tensor<batch x seq x 4 x 32 x f16>
  %k_r = ait.sub %k_r0, %k_r1 : !ait.tensor<batch x seq x 4 x 32 x f16>
  %k_i0 = ait.mul %k_b, %cos : !ait.tensor<batch x seq x 4 x 32 x f16>
  %k_i1 = ait.mul %k_a, %sin : !ait.tensor<batch x seq x 4 x 32 x f16>
  %k_i = ait.add %k_i0, %k_i1 : !ait.tensor<batch x seq x 4 x 32 x f16>
  %k2 = ait.concat %k_r, %k_i dim 3 : !ait.tensor<batch x seq x 4 x 64 x f16>
  %k = ait.permute %k2 [0, 2, 1, 3] : !ait.tensor<batch x 4 x seq x 64 x f16>
  %v = ait.permute %v1 [0, 2, 1, 3] : !ait.tensor<batch x 4 x seq x 64 x f16>

  // softmax(q k^T / 8) v over the positions so far
  %c0 = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<batch x 16 x seq x 64 x f16>
  %c1 = ait.permute %c0 [0, 2, 1, 3] : !ait.tensor<batch x seq x 16 x 64 x f16>
  %c2 = ait.reshape %c1 : !ait.tensor<batch x seq x 1024 x f16>

  // projection and residual
  %o_w = ait.param "self_attn.o_proj.weight" : !ait.tensor<1024 x 1024 x f16>
  %o0 = ait.gemm rcr %c2, %o_w : !ait.tensor<batch x seq x 1024 x f16>
  %h = ait.add %x, %o0 : !ait.tensor<batch x seq x 1024 x f16>

  // down(silu(gate(n1)) * up(n1)) and residual
  %n1_g = ait.param "post_attention_layernorm.weight" : !ait.tensor<1024 x f16>
  %n1 = ait.rms_norm %h scale %n1_g axes 1 eps 1e-05 : !ait.tensor<batch x seq x 1024 x f16>
  %gate_w = ait.param "mlp.gate_proj.weight" : !ait.tensor<2816 x 1024 x f16>
  %gate0 = ait.gemm rcr %n1, %gate_w : !ait.tensor<batch x seq x 2816 x f16>
  %gate = ait.silu %gate0 : !ait.tensor<batch x seq x 2816 x f16>
  %up_w = ait.param "mlp.up_proj.weight" : !ait.tensor<2816 x 1024 x f16>
  %up = ait.gemm rcr %n1, %up_w : !ait.tensor<batch x seq x 2816 x f16>
  %m = ait.mul %gate, %up : !ait.tensor<batch x seq x 2816 x f16>
  %down_w = ait.param "mlp.down_proj.weight" : !ait.tensor<1024 x 2816 x f16>
  %d = ait.gemm rcr %m, %down_w : !ait.tensor<batch x seq x 1024 x f16>
  %y = ait.add %h, %d : !ait.tensor<batch x seq x 1024 x f16>
  ait.output "y" %y : !ait.tensor<batch x seq x 1024 x f16>
}
