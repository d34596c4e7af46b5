// RUN: ait-opt %s -p 'store-heads{target="cuda" arch="sm_90a"}' | filecheck %s --check-prefix=CUDA

// Many narrow heads, for each of which a batched product would read the rows again: a copy is faster.
// CUDA-LABEL: ait.graph @narrow
ait.graph @narrow(%x: !ait.tensor<8192 x 4096 x f16>) {
  %w = ait.param "w" : !ait.tensor<4096 x 4096 x f16>
  // CUDA: ait.gemm rcr
  // CUDA: ait.permute
  %0 = ait.gemm rcr %x, %w : !ait.tensor<8192 x 4096 x f16>
  %1 = ait.reshape %0 : !ait.tensor<8 x 1024 x 512 x 8 x f16>
  %2 = ait.permute %1 [0, 2, 1, 3] : !ait.tensor<8 x 512 x 1024 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<8 x 512 x 1024 x 8 x f16>
}
