// RUN: ait-opt %s -p 'partition,multiply-float8{target="cuda" arch="sm_90a"},multiply-stored,convolve-stored{target="cuda" arch="sm_90a"},read-stored{target="cuda" arch="sm_90a"},widen-float8{target="cuda" arch="sm_90a"},narrow-row-ops,fuse-masked-attention,channels-last,unroll-scans,simplify,remove-duplicates,form-recurrences{target="cuda" arch="sm_90a"},fuse-attention,attend-float8{target="cuda" arch="sm_90a"},fuse-parallel-gemms,merge-parallel-gemms,simplify,rotate-products{target="cuda" arch="sm_90a"},pad-products{target="cuda" arch="sm_90a"},split-products{target="cuda" arch="sm_90a"},fuse-expand-bmm,expand-batches,fuse-bmm-permute,part-batches,fuse-epilogue,fuse-norm,fuse-elementwise,gate-products,fuse-siblings,fuse-results,store-heads{target="cuda" arch="sm_90a"},quantize-results{target="cuda" arch="sm_90a"},remove-duplicates,form-loops{target="cuda" arch="sm_90a"},quantize-attention{target="cuda" arch="sm_90a"},resolve-libraries,group-products{target="cuda" arch="sm_90a"},group-norms{target="cuda" arch="sm_90a"},group-embeddings{target="cuda" arch="sm_90a"},order-scatters{target="cuda" arch="sm_90a"},join-norms{target="cuda" arch="sm_90a"},select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies' | filecheck %s
// RUN: ait-opt %s -p 'partition,multiply-float8{target="cuda" arch="sm_90a"},multiply-stored,convolve-stored{target="cuda" arch="sm_90a"},read-stored{target="cuda" arch="sm_90a"},widen-float8{target="cuda" arch="sm_90a"},narrow-row-ops,fuse-masked-attention,channels-last,unroll-scans,simplify,remove-duplicates,form-recurrences{target="cuda" arch="sm_90a"},fuse-attention,attend-float8{target="cuda" arch="sm_90a"},fuse-parallel-gemms,merge-parallel-gemms,simplify,rotate-products{target="cuda" arch="sm_90a"},pad-products{target="cuda" arch="sm_90a"},split-products{target="cuda" arch="sm_90a"},fuse-expand-bmm,expand-batches,fuse-bmm-permute,part-batches,fuse-epilogue,fuse-norm,fuse-elementwise,gate-products,fuse-siblings,fuse-results,store-heads{target="cuda" arch="sm_90a"},quantize-results{target="cuda" arch="sm_90a"},remove-duplicates,form-loops{target="cuda" arch="sm_90a"},quantize-attention{target="cuda" arch="sm_90a"},resolve-libraries,group-products{target="cuda" arch="sm_90a"},group-norms{target="cuda" arch="sm_90a"},group-embeddings{target="cuda" arch="sm_90a"},order-scatters{target="cuda" arch="sm_90a"},join-norms{target="cuda" arch="sm_90a"},select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies' | filecheck %s --check-prefix=COUNT

// The launches of real networks' parts on a card, in the passes of a compilation up to its launches.

// A bottleneck of ResNet, its batch norms folded: nothing is added, clamped or scaled by a launch of its own.
// CHECK-LABEL: ait_rt.program @bottleneck
// CHECK: ait_rt.launch @gemm_rcr_bias_relu_{{[0-9]+}} ins
// CHECK: ait_rt.launch @conv_bias_relu_{{[0-9]+}} ins
// CHECK: ait_rt.launch @gemm_rcr_bias_add_relu_{{[0-9]+}} ins
// COUNT-LABEL: ait_rt.program @bottleneck
// COUNT-COUNT-3: ait_rt.launch
// COUNT-NOT: ait_rt.launch
// COUNT: }
ait.graph @bottleneck(%x: !ait.tensor<batch x 28 x 28 x 256 x f16>) dims {batch = 1 to 8} {
  %w1 = ait.param "conv1.weight" : !ait.tensor<64 x 1 x 1 x 256 x f16>
  %b1 = ait.param "conv1.bias" : !ait.tensor<64 x f16>
  %w2 = ait.param "conv2.weight" : !ait.tensor<64 x 3 x 3 x 64 x f16>
  %b2 = ait.param "conv2.bias" : !ait.tensor<64 x f16>
  %w3 = ait.param "conv3.weight" : !ait.tensor<256 x 1 x 1 x 64 x f16>
  %b3 = ait.param "conv3.bias" : !ait.tensor<256 x f16>
  %0 = ait.conv %x, %w1 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %1 = ait.add %0, %b1 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %2 = ait.relu %1 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %3 = ait.conv %2, %w2 pad [1, 1] : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %4 = ait.add %3, %b2 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %5 = ait.relu %4 : !ait.tensor<batch x 28 x 28 x 64 x f16>
  %6 = ait.conv %5, %w3 : !ait.tensor<batch x 28 x 28 x 256 x f16>
  %7 = ait.add %6, %b3 : !ait.tensor<batch x 28 x 28 x 256 x f16>
  %8 = ait.add %7, %x : !ait.tensor<batch x 28 x 28 x 256 x f16>
  %9 = ait.relu %8 : !ait.tensor<batch x 28 x 28 x 256 x f16>
  ait.output "y" %9 : !ait.tensor<batch x 28 x 28 x 256 x f16>
}

// The first bottleneck of a stage.
// CHECK-LABEL: ait_rt.program @downsample
// CHECK: ait_rt.launch @gemm_rcr_bias_relu_{{[0-9]+}} ins
// CHECK: ait_rt.launch @conv_bias_relu_{{[0-9]+}} ins
// CHECK: ait_rt.launch @conv_bias_{{[0-9]+}} ins
// CHECK: ait_rt.launch @gemm_rcr_bias_add_relu_{{[0-9]+}} ins
// COUNT-LABEL: ait_rt.program @downsample
// COUNT-COUNT-4: ait_rt.launch
// COUNT-NOT: ait_rt.launch
// COUNT: }
ait.graph @downsample(%x: !ait.tensor<batch x 28 x 28 x 256 x f16>) dims {batch = 1 to 8} {
  %w1 = ait.param "conv1.weight" : !ait.tensor<128 x 1 x 1 x 256 x f16>
  %b1 = ait.param "conv1.bias" : !ait.tensor<128 x f16>
  %w2 = ait.param "conv2.weight" : !ait.tensor<128 x 3 x 3 x 128 x f16>
  %b2 = ait.param "conv2.bias" : !ait.tensor<128 x f16>
  %w3 = ait.param "conv3.weight" : !ait.tensor<512 x 1 x 1 x 128 x f16>
  %b3 = ait.param "conv3.bias" : !ait.tensor<512 x f16>
  %w4 = ait.param "downsample.weight" : !ait.tensor<512 x 1 x 1 x 256 x f16>
  %b4 = ait.param "downsample.bias" : !ait.tensor<512 x f16>
  %0 = ait.conv %x, %w1 : !ait.tensor<batch x 28 x 28 x 128 x f16>
  %1 = ait.add %0, %b1 : !ait.tensor<batch x 28 x 28 x 128 x f16>
  %2 = ait.relu %1 : !ait.tensor<batch x 28 x 28 x 128 x f16>
  %3 = ait.conv %2, %w2 stride [2, 2] pad [1, 1] : !ait.tensor<batch x 14 x 14 x 128 x f16>
  %4 = ait.add %3, %b2 : !ait.tensor<batch x 14 x 14 x 128 x f16>
  %5 = ait.relu %4 : !ait.tensor<batch x 14 x 14 x 128 x f16>
  %6 = ait.conv %5, %w3 : !ait.tensor<batch x 14 x 14 x 512 x f16>
  %7 = ait.add %6, %b3 : !ait.tensor<batch x 14 x 14 x 512 x f16>
  %8 = ait.conv %x, %w4 stride [2, 2] : !ait.tensor<batch x 14 x 14 x 512 x f16>
  %9 = ait.add %8, %b4 : !ait.tensor<batch x 14 x 14 x 512 x f16>
  %10 = ait.add %7, %9 : !ait.tensor<batch x 14 x 14 x 512 x f16>
  %11 = ait.relu %10 : !ait.tensor<batch x 14 x 14 x 512 x f16>
  ait.output "y" %11 : !ait.tensor<batch x 14 x 14 x 512 x f16>
}

// A residual block of a UNet with its time embedding.
// CHECK-LABEL: ait_rt.program @unet
// CHECK: ait_rt.launch @group_norm_silu_{{[0-9]+}} ins
// CHECK: ait_rt.launch @fused_silu_{{[0-9]+}} ins
// CHECK: ait_rt.launch @gemm_rcr_bias_{{[0-9]+}} ins
// CHECK: ait_rt.launch @conv_bias_add_{{[0-9]+}} ins
// CHECK: ait_rt.launch @group_norm_silu_{{[0-9]+}} ins
// CHECK: ait_rt.launch @conv_bias_add_{{[0-9]+}} ins
// COUNT-LABEL: ait_rt.program @unet
// COUNT-COUNT-6: ait_rt.launch
// COUNT-NOT: ait_rt.launch
// COUNT: }
ait.graph @unet(%x: !ait.tensor<batch x 32 x 32 x 320 x f16>, %time: !ait.tensor<batch x 1280 x f16>) dims {batch = 1 to 8} {
  %g1 = ait.param "norm1.weight" : !ait.tensor<320 x f16>
  %h1 = ait.param "norm1.bias" : !ait.tensor<320 x f16>
  %w1 = ait.param "conv1.weight" : !ait.tensor<320 x 3 x 3 x 320 x f16>
  %b1 = ait.param "conv1.bias" : !ait.tensor<320 x f16>
  %wt = ait.param "time.weight" : !ait.tensor<320 x 1280 x f16>
  %bt = ait.param "time.bias" : !ait.tensor<320 x f16>
  %g2 = ait.param "norm2.weight" : !ait.tensor<320 x f16>
  %h2 = ait.param "norm2.bias" : !ait.tensor<320 x f16>
  %w2 = ait.param "conv2.weight" : !ait.tensor<320 x 3 x 3 x 320 x f16>
  %b2 = ait.param "conv2.bias" : !ait.tensor<320 x f16>
  %0 = ait.group_norm %x scale %g1 bias %h1 dim 3 groups 32 eps 1e-05 : !ait.tensor<batch x 32 x 32 x 320 x f16>
  %1 = ait.silu %0 : !ait.tensor<batch x 32 x 32 x 320 x f16>
  %2 = ait.conv %1, %w1 pad [1, 1] : !ait.tensor<batch x 32 x 32 x 320 x f16>
  %3 = ait.add %2, %b1 : !ait.tensor<batch x 32 x 32 x 320 x f16>
  %4 = ait.silu %time : !ait.tensor<batch x 1280 x f16>
  %5 = ait.gemm rcr %4, %wt : !ait.tensor<batch x 320 x f16>
  %6 = ait.add %5, %bt : !ait.tensor<batch x 320 x f16>
  %7 = ait.reshape %6 : !ait.tensor<batch x 1 x 1 x 320 x f16>
  %8 = ait.add %3, %7 : !ait.tensor<batch x 32 x 32 x 320 x f16>
  %9 = ait.group_norm %8 scale %g2 bias %h2 dim 3 groups 32 eps 1e-05 : !ait.tensor<batch x 32 x 32 x 320 x f16>
  %10 = ait.silu %9 : !ait.tensor<batch x 32 x 32 x 320 x f16>
  %11 = ait.conv %10, %w2 pad [1, 1] : !ait.tensor<batch x 32 x 32 x 320 x f16>
  %12 = ait.add %11, %b2 : !ait.tensor<batch x 32 x 32 x 320 x f16>
  %13 = ait.add %x, %12 : !ait.tensor<batch x 32 x 32 x 320 x f16>
  ait.output "y" %13 : !ait.tensor<batch x 32 x 32 x 320 x f16>
}

// The interaction of DLRM: the rows are put together by one launch, with the dense row beside which the pairs are written.
// CHECK-LABEL: ait_rt.program @dlrm
// CHECK: ait_rt.launch @dlrm_copies_{{[0-9]+}} ins
// CHECK: ait_rt.launch @bmm_rcr_{{[0-9]+}} ins
// CHECK: ait_rt.launch @gather_{{[0-9]+}} ins
// COUNT-LABEL: ait_rt.program @dlrm
// COUNT-COUNT-3: ait_rt.launch
// COUNT-NOT: ait_rt.launch
// COUNT: }
ait.graph @dlrm(%dense: !ait.tensor<batch x 64 x f16>, %sparse: !ait.tensor<batch x 26 x 64 x f16>, %pairs: !ait.tensor<1 x 351 x i64>) dims {batch = 1 to 8} {
  %0 = ait.reshape %dense : !ait.tensor<batch x 1 x 64 x f16>
  %1 = ait.concat %0, %sparse dim 1 : !ait.tensor<batch x 27 x 64 x f16>
  %2 = ait.permute %1 [0, 2, 1] : !ait.tensor<batch x 64 x 27 x f16>
  %3 = ait.bmm rrr %1, %2 : !ait.tensor<batch x 27 x 27 x f16>
  %4 = ait.reshape %3 : !ait.tensor<batch x 729 x f16>
  %5 = ait.gather %4 at(%pairs) dims [1] kept [0] : !ait.tensor<batch x 351 x f16>
  %6 = ait.concat %dense, %5 dim 1 : !ait.tensor<batch x 415 x f16>
  ait.output "y" %6 : !ait.tensor<batch x 415 x f16>
}

// A Swin block: the norm writes its windows, one copy back.
// CHECK-LABEL: ait_rt.program @swin
// CHECK: ait_rt.launch @loops_{{[0-9]+}} ins
// CHECK: ait_rt.launch @gemm_rcr_bias_{{[0-9]+}} ins
// CHECK: ait_rt.launch @attention_{{[0-9]+}} ins
// CHECK: ait_rt.launch @gemm_rcr_bias_{{[0-9]+}} ins
// CHECK: ait_rt.launch @swin_copy_{{[0-9]+}} ins
// CHECK: ait_rt.launch @add_layer_norm_{{[0-9]+}} ins
// CHECK: ait_rt.launch @gemm_rcr_bias_gelu_{{[0-9]+}} ins
// CHECK: ait_rt.launch @gemm_rcr_bias_add_{{[0-9]+}} ins
// COUNT-LABEL: ait_rt.program @swin
// COUNT-COUNT-8: ait_rt.launch
// COUNT-NOT: ait_rt.launch
// COUNT: }
ait.graph @swin(%x: !ait.tensor<2 x 56 x 56 x 96 x f16>) {
  %0 = ait.param "n1.weight" : !ait.tensor<96 x f16>
  %1 = ait.param "n1.bias" : !ait.tensor<96 x f16>
  %2 = ait.layer_norm %x scale %0 bias %1 axes 1 eps 1e-05 : !ait.tensor<2 x 56 x 56 x 96 x f16>
  %3 = ait.reshape %2 : !ait.tensor<2 x 8 x 7 x 8 x 7 x 96 x f16>
  %4 = ait.permute %3 [0, 1, 3, 2, 4, 5] : !ait.tensor<2 x 8 x 8 x 7 x 7 x 96 x f16>
  %5 = ait.reshape %4 : !ait.tensor<128 x 49 x 96 x f16>
  %6 = ait.param "qkv.weight" : !ait.tensor<288 x 96 x f16>
  %7 = ait.param "qkv.bias" : !ait.tensor<288 x f16>
  %8 = ait.gemm rcr %5, %6 : !ait.tensor<128 x 49 x 288 x f16>
  %9 = ait.add %8, %7 : !ait.tensor<128 x 49 x 288 x f16>
  %10 = ait.reshape %9 : !ait.tensor<128 x 49 x 3 x 3 x 32 x f16>
  %11 = ait.permute %10 [2, 0, 3, 1, 4] : !ait.tensor<3 x 128 x 3 x 49 x 32 x f16>
  %12, %13, %14 = ait.split %11 dim 0 : !ait.tensor<1 x 128 x 3 x 49 x 32 x f16>, !ait.tensor<1 x 128 x 3 x 49 x 32 x f16>, !ait.tensor<1 x 128 x 3 x 49 x 32 x f16>
  %15 = ait.reshape %12 : !ait.tensor<128 x 3 x 49 x 32 x f16>
  %16 = ait.reshape %13 : !ait.tensor<128 x 3 x 49 x 32 x f16>
  %17 = ait.reshape %14 : !ait.tensor<128 x 3 x 49 x 32 x f16>
  %18 = ait.constant 0.1767766952966369 : !ait.tensor<f16>
  %19 = ait.mul %15, %18 : !ait.tensor<128 x 3 x 49 x 32 x f16>
  %20 = ait.permute %16 [0, 1, 3, 2] : !ait.tensor<128 x 3 x 32 x 49 x f16>
  %21 = ait.bmm rrr %19, %20 : !ait.tensor<128 x 3 x 49 x 49 x f16>
  %22 = ait.param "bias" : !ait.tensor<1 x 3 x 49 x 49 x f16>
  %23 = ait.add %21, %22 : !ait.tensor<128 x 3 x 49 x 49 x f16>
  %24 = ait.softmax %23 dim 3 : !ait.tensor<128 x 3 x 49 x 49 x f16>
  %25 = ait.bmm rrr %24, %17 : !ait.tensor<128 x 3 x 49 x 32 x f16>
  %26 = ait.permute %25 [0, 2, 1, 3] : !ait.tensor<128 x 49 x 3 x 32 x f16>
  %27 = ait.reshape %26 : !ait.tensor<128 x 49 x 96 x f16>
  %28 = ait.param "p.weight" : !ait.tensor<96 x 96 x f16>
  %29 = ait.param "p.bias" : !ait.tensor<96 x f16>
  %30 = ait.gemm rcr %27, %28 : !ait.tensor<128 x 49 x 96 x f16>
  %31 = ait.add %30, %29 : !ait.tensor<128 x 49 x 96 x f16>
  %32 = ait.reshape %31 : !ait.tensor<2 x 8 x 8 x 7 x 7 x 96 x f16>
  %33 = ait.permute %32 [0, 1, 3, 2, 4, 5] : !ait.tensor<2 x 8 x 7 x 8 x 7 x 96 x f16>
  %34 = ait.reshape %33 : !ait.tensor<2 x 56 x 56 x 96 x f16>
  %35 = ait.add %x, %34 : !ait.tensor<2 x 56 x 56 x 96 x f16>
  %36 = ait.param "n2.weight" : !ait.tensor<96 x f16>
  %37 = ait.param "n2.bias" : !ait.tensor<96 x f16>
  %38 = ait.layer_norm %35 scale %36 bias %37 axes 1 eps 1e-05 : !ait.tensor<2 x 56 x 56 x 96 x f16>
  %39 = ait.param "f1.weight" : !ait.tensor<384 x 96 x f16>
  %40 = ait.param "f1.bias" : !ait.tensor<384 x f16>
  %41 = ait.gemm rcr %38, %39 : !ait.tensor<2 x 56 x 56 x 384 x f16>
  %42 = ait.add %41, %40 : !ait.tensor<2 x 56 x 56 x 384 x f16>
  %43 = ait.gelu %42 : !ait.tensor<2 x 56 x 56 x 384 x f16>
  %44 = ait.param "f2.weight" : !ait.tensor<96 x 384 x f16>
  %45 = ait.param "f2.bias" : !ait.tensor<96 x f16>
  %46 = ait.gemm rcr %43, %44 : !ait.tensor<2 x 56 x 56 x 96 x f16>
  %47 = ait.add %46, %45 : !ait.tensor<2 x 56 x 56 x 96 x f16>
  %48 = ait.add %35, %47 : !ait.tensor<2 x 56 x 56 x 96 x f16>
  ait.output "output" %48 : !ait.tensor<2 x 56 x 56 x 96 x f16>
}

// A Llama layer whose query heads share keys and values; the product rotates query and key.
// CHECK-LABEL: ait_rt.program @llama_layer
// CHECK: ait_rt.launch @rms_norm_{{[0-9]+}} ins
// CHECK: ait_rt.launch @rotated_gemm_{{[0-9]+}} ins
// CHECK: ait_rt.launch @attention_{{[0-9]+}} ins
// CHECK: ait_rt.launch @gemm_rcr_add_{{[0-9]+}} ins
// CHECK: ait_rt.launch @rms_norm_{{[0-9]+}} ins
// CHECK: ait_rt.launch @gated_gemm_rcr_silu_mul_{{[0-9]+}} ins
// CHECK: ait_rt.launch @gemm_rcr_add_{{[0-9]+}} ins
// COUNT-LABEL: ait_rt.program @llama_layer
// COUNT-COUNT-7: ait_rt.launch
// COUNT-NOT: ait_rt.launch
// COUNT: }
ait.graph @llama_layer(%x: !ait.tensor<batch x seq x 512 x f16>, %cos: !ait.tensor<batch x seq x 1 x 32 x f16>, %sin: !ait.tensor<batch x seq x 1 x 32 x f16>) dims {batch = 1 to 8, seq = 1 to 128} {
  %input_layernorm_weight = ait.param "input_layernorm_weight" : !ait.tensor<512 x f16>
  %0 = ait.rms_norm %x scale %input_layernorm_weight axes 1 eps 1e-05 : !ait.tensor<batch x seq x 512 x f16>
  %self_attn_q_proj_weight = ait.param "self_attn_q_proj_weight" : !ait.tensor<512 x 512 x f16>
  %1 = ait.gemm rcr %0, %self_attn_q_proj_weight : !ait.tensor<batch x seq x 512 x f16>
  %2 = ait.reshape %1 : !ait.tensor<batch x seq x 8 x 64 x f16>
  %3, %4 = ait.split %2 dim 3 : !ait.tensor<batch x seq x 8 x 32 x f16>, !ait.tensor<batch x seq x 8 x 32 x f16>
  %5 = ait.mul %3, %cos : !ait.tensor<batch x seq x 8 x 32 x f16>
  %6 = ait.mul %4, %sin : !ait.tensor<batch x seq x 8 x 32 x f16>
  %7 = ait.sub %5, %6 : !ait.tensor<batch x seq x 8 x 32 x f16>
  %8 = ait.mul %4, %cos : !ait.tensor<batch x seq x 8 x 32 x f16>
  %9 = ait.mul %3, %sin : !ait.tensor<batch x seq x 8 x 32 x f16>
  %10 = ait.add %8, %9 : !ait.tensor<batch x seq x 8 x 32 x f16>
  %11 = ait.concat %7, %10 dim 3 : !ait.tensor<batch x seq x 8 x 64 x f16>
  %12 = ait.permute %11 [0, 2, 1, 3] : !ait.tensor<batch x 8 x seq x 64 x f16>
  %self_attn_k_proj_weight = ait.param "self_attn_k_proj_weight" : !ait.tensor<128 x 512 x f16>
  %13 = ait.gemm rcr %0, %self_attn_k_proj_weight : !ait.tensor<batch x seq x 128 x f16>
  %14 = ait.reshape %13 : !ait.tensor<batch x seq x 2 x 64 x f16>
  %15, %16 = ait.split %14 dim 3 : !ait.tensor<batch x seq x 2 x 32 x f16>, !ait.tensor<batch x seq x 2 x 32 x f16>
  %17 = ait.mul %15, %cos : !ait.tensor<batch x seq x 2 x 32 x f16>
  %18 = ait.mul %16, %sin : !ait.tensor<batch x seq x 2 x 32 x f16>
  %19 = ait.sub %17, %18 : !ait.tensor<batch x seq x 2 x 32 x f16>
  %20 = ait.mul %16, %cos : !ait.tensor<batch x seq x 2 x 32 x f16>
  %21 = ait.mul %15, %sin : !ait.tensor<batch x seq x 2 x 32 x f16>
  %22 = ait.add %20, %21 : !ait.tensor<batch x seq x 2 x 32 x f16>
  %23 = ait.concat %19, %22 dim 3 : !ait.tensor<batch x seq x 2 x 64 x f16>
  %24 = ait.permute %23 [0, 2, 1, 3] : !ait.tensor<batch x 2 x seq x 64 x f16>
  %self_attn_v_proj_weight = ait.param "self_attn_v_proj_weight" : !ait.tensor<128 x 512 x f16>
  %25 = ait.gemm rcr %0, %self_attn_v_proj_weight : !ait.tensor<batch x seq x 128 x f16>
  %26 = ait.reshape %25 : !ait.tensor<batch x seq x 2 x 64 x f16>
  %27 = ait.permute %26 [0, 2, 1, 3] : !ait.tensor<batch x 2 x seq x 64 x f16>
  %28 = ait.attention %12, %24, %27 scale 0.125 causal : !ait.tensor<batch x 8 x seq x 64 x f16>
  %29 = ait.permute %28 [0, 2, 1, 3] : !ait.tensor<batch x seq x 8 x 64 x f16>
  %30 = ait.reshape %29 : !ait.tensor<batch x seq x 512 x f16>
  %self_attn_o_proj_weight = ait.param "self_attn_o_proj_weight" : !ait.tensor<512 x 512 x f16>
  %31 = ait.gemm rcr %30, %self_attn_o_proj_weight : !ait.tensor<batch x seq x 512 x f16>
  %32 = ait.add %x, %31 : !ait.tensor<batch x seq x 512 x f16>
  %post_attention_layernorm_weight = ait.param "post_attention_layernorm_weight" : !ait.tensor<512 x f16>
  %33 = ait.rms_norm %32 scale %post_attention_layernorm_weight axes 1 eps 1e-05 : !ait.tensor<batch x seq x 512 x f16>
  %mlp_gate_proj_weight = ait.param "mlp_gate_proj_weight" : !ait.tensor<1024 x 512 x f16>
  %34 = ait.gemm rcr %33, %mlp_gate_proj_weight : !ait.tensor<batch x seq x 1024 x f16>
  %35 = ait.silu %34 : !ait.tensor<batch x seq x 1024 x f16>
  %mlp_up_proj_weight = ait.param "mlp_up_proj_weight" : !ait.tensor<1024 x 512 x f16>
  %36 = ait.gemm rcr %33, %mlp_up_proj_weight : !ait.tensor<batch x seq x 1024 x f16>
  %37 = ait.mul %35, %36 : !ait.tensor<batch x seq x 1024 x f16>
  %mlp_down_proj_weight = ait.param "mlp_down_proj_weight" : !ait.tensor<512 x 1024 x f16>
  %38 = ait.gemm rcr %37, %mlp_down_proj_weight : !ait.tensor<batch x seq x 512 x f16>
  %y = ait.add %32, %38 : !ait.tensor<batch x seq x 512 x f16>
  ait.output "y" %y : !ait.tensor<batch x seq x 512 x f16>
}

// A norm and what follows it: a gate by its own input, and the factor and the offset of each batch of a transformer
// that is told the time: a row stays in registers between them.
// CHECK-LABEL: ait_rt.program @gated_norm
// CHECK: ait_rt.launch @loops_{{[0-9]+}} ins
// COUNT-LABEL: ait_rt.program @gated_norm
// COUNT-COUNT-1: ait_rt.launch
// COUNT-NOT: ait_rt.launch
// COUNT: }
ait.graph @gated_norm(%x: !ait.tensor<batch x 256 x 1024 x f16>, %m: !ait.tensor<batch x 1 x 1024 x f16>, %a: !ait.tensor<batch x 1 x 1024 x f16>) dims {batch = 1 to 8} {
  %g = ait.param "norm.weight" : !ait.tensor<1024 x f16>
  %h = ait.param "norm.bias" : !ait.tensor<1024 x f16>
  %0 = ait.layer_norm %x scale %g bias %h axes 1 eps 1e-05 : !ait.tensor<batch x 256 x 1024 x f16>
  %1 = ait.sigmoid %0 : !ait.tensor<batch x 256 x 1024 x f16>
  %2 = ait.mul %x, %1 : !ait.tensor<batch x 256 x 1024 x f16>
  %3 = ait.rms_norm %2 axes 1 eps 1e-05 : !ait.tensor<batch x 256 x 1024 x f16>
  %4 = ait.mul %3, %m : !ait.tensor<batch x 256 x 1024 x f16>
  %5 = ait.add %4, %a : !ait.tensor<batch x 256 x 1024 x f16>
  ait.output "y" %5 : !ait.tensor<batch x 256 x 1024 x f16>
}

// A layer of BERT: query, key and value are one product.
// CHECK-LABEL: ait_rt.program @bert_layer
// CHECK: ait_rt.launch @gemm_rcr_bias_{{[0-9]+}} ins
// CHECK: ait_rt.launch @attention_{{[0-9]+}} ins
// CHECK: ait_rt.launch @gemm_rcr_bias_add_{{[0-9]+}} ins
// CHECK: ait_rt.launch @layer_norm_{{[0-9]+}} ins
// CHECK: ait_rt.launch @gemm_rcr_bias_gelu_{{[0-9]+}} ins
// CHECK: ait_rt.launch @gemm_rcr_bias_add_{{[0-9]+}} ins
// CHECK: ait_rt.launch @layer_norm_{{[0-9]+}} ins
// COUNT-LABEL: ait_rt.program @bert_layer
// COUNT-COUNT-7: ait_rt.launch
// COUNT-NOT: ait_rt.launch
// COUNT: }
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

// A gated MLP of 8-bit floats whose rows are quantised in the run: the norm quantises what it makes, and so does the gate, which reads one
// product.
// CHECK-LABEL: ait_rt.program @float8_mlp
// CHECK: ait_rt.launch @loops_{{[0-9]+}} ins(%x, {{.*}}) outs([[Q:%.*]], [[S:%.*]]) workspace
// CHECK: ait_rt.launch @gemm_rcr_mul_mul_{{[0-9]+}} ins([[Q]], {{.*}}[[S]]
// CHECK: ait_rt.launch @loops_{{[0-9]+}} ins({{.*}}) outs([[R:%.*]], [[T:%.*]]) workspace
// CHECK: ait_rt.launch @gemm_rcr_mul_mul_add_{{[0-9]+}} ins([[R]], {{.*}}[[T]]
// COUNT-LABEL: ait_rt.program @float8_mlp
// COUNT-COUNT-4: ait_rt.launch
// COUNT-NOT: ait_rt.launch
// COUNT: }
ait.graph @float8_mlp(%x: !ait.tensor<batch x 512 x 1024 x f16>) dims {batch = 1 to 4} {
  %n = ait.param "norm.weight" : !ait.tensor<1024 x f16>
  %g = ait.param "gate.weight" : !ait.tensor<2816 x 1024 x f8E4M3FN>
  %gs = ait.param "gate.scale" : !ait.tensor<2816 x 1 x f32>
  %u = ait.param "up.weight" : !ait.tensor<2816 x 1024 x f8E4M3FN>
  %us = ait.param "up.scale" : !ait.tensor<2816 x 1 x f32>
  %d = ait.param "down.weight" : !ait.tensor<1024 x 2816 x f8E4M3FN>
  %ds = ait.param "down.scale" : !ait.tensor<1024 x 1 x f32>
  %most = ait.constant 448.0 : !ait.tensor<f32>
  %tiny = ait.constant 1.0e-20 : !ait.tensor<f32>
  %0 = ait.rms_norm %x scale %n axes 1 eps 1e-05 : !ait.tensor<batch x 512 x 1024 x f16>
  %1 = ait.cast %0 : !ait.tensor<batch x 512 x 1024 x f32>
  %2 = ait.abs %1 : !ait.tensor<batch x 512 x 1024 x f32>
  %3 = ait.reduce max %2 dims [2] : !ait.tensor<batch x 512 x f32>
  %4 = ait.reshape %3 : !ait.tensor<batch x 512 x 1 x f32>
  %5 = ait.div %4, %most : !ait.tensor<batch x 512 x 1 x f32>
  %6 = ait.max %5, %tiny : !ait.tensor<batch x 512 x 1 x f32>
  %7 = ait.quantize %0 scale %6 : !ait.tensor<batch x 512 x 1024 x f8E4M3FN>
  %8 = ait.dequantize %7 scale %6 : !ait.tensor<batch x 512 x 1024 x f16>
  %9 = ait.dequantize %g scale %gs : !ait.tensor<2816 x 1024 x f16>
  %10 = ait.dequantize %u scale %us : !ait.tensor<2816 x 1024 x f16>
  %11 = ait.gemm rcr %8, %9 : !ait.tensor<batch x 512 x 2816 x f16>
  %12 = ait.silu %11 : !ait.tensor<batch x 512 x 2816 x f16>
  %13 = ait.gemm rcr %8, %10 : !ait.tensor<batch x 512 x 2816 x f16>
  %14 = ait.mul %12, %13 : !ait.tensor<batch x 512 x 2816 x f16>
  %15 = ait.cast %14 : !ait.tensor<batch x 512 x 2816 x f32>
  %16 = ait.abs %15 : !ait.tensor<batch x 512 x 2816 x f32>
  %17 = ait.reduce max %16 dims [2] : !ait.tensor<batch x 512 x f32>
  %18 = ait.reshape %17 : !ait.tensor<batch x 512 x 1 x f32>
  %19 = ait.div %18, %most : !ait.tensor<batch x 512 x 1 x f32>
  %20 = ait.max %19, %tiny : !ait.tensor<batch x 512 x 1 x f32>
  %21 = ait.quantize %14 scale %20 : !ait.tensor<batch x 512 x 2816 x f8E4M3FN>
  %22 = ait.dequantize %21 scale %20 : !ait.tensor<batch x 512 x 2816 x f16>
  %23 = ait.dequantize %d scale %ds : !ait.tensor<1024 x 2816 x f16>
  %24 = ait.gemm rcr %22, %23 : !ait.tensor<batch x 512 x 1024 x f16>
  %25 = ait.add %24, %x : !ait.tensor<batch x 512 x 1024 x f16>
  ait.output "y" %25 : !ait.tensor<batch x 512 x 1024 x f16>
}
