// RUN: ait-opt %s -p 'partition,multiply-float8{target="cuda" arch="sm_90a"},multiply-stored,convolve-stored{target="cuda" arch="sm_90a"},read-stored{target="cuda" arch="sm_90a"},widen-float8{target="cuda" arch="sm_90a"},narrow-row-ops,fuse-masked-attention,channels-last,unroll-scans,simplify,remove-duplicates,form-recurrences{target="cuda" arch="sm_90a"},fuse-attention,attend-float8{target="cuda" arch="sm_90a"},fuse-parallel-gemms,merge-parallel-gemms,simplify,rotate-products{target="cuda" arch="sm_90a"},pad-products{target="cuda" arch="sm_90a"},split-products{target="cuda" arch="sm_90a"},fuse-expand-bmm,expand-batches,fuse-bmm-permute,part-batches,fuse-epilogue,fuse-norm,fuse-elementwise,gate-products,fuse-siblings,fuse-results,store-heads{target="cuda" arch="sm_90a"},quantize-results{target="cuda" arch="sm_90a"},remove-duplicates,form-loops{target="cuda" arch="sm_90a"},quantize-attention{target="cuda" arch="sm_90a"},resolve-libraries,group-products{target="cuda" arch="sm_90a"},group-norms{target="cuda" arch="sm_90a"},group-embeddings{target="cuda" arch="sm_90a"},order-scatters{target="cuda" arch="sm_90a"},join-norms{target="cuda" arch="sm_90a"},select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies' | filecheck %s
// RUN: ait-opt %s -p 'partition,multiply-float8{target="cpu"},multiply-stored,convolve-stored{target="cpu"},read-stored{target="cpu"},widen-float8{target="cpu"},narrow-row-ops,fuse-masked-attention,channels-last,unroll-scans,simplify,remove-duplicates,form-recurrences{target="cpu"},fuse-attention,attend-float8{target="cpu"},fuse-parallel-gemms,merge-parallel-gemms,simplify,rotate-products{target="cpu"},pad-products{target="cpu"},split-products{target="cpu"},fuse-expand-bmm,expand-batches,fuse-bmm-permute,part-batches,fuse-epilogue,fuse-norm,fuse-elementwise,gate-products,fuse-siblings,fuse-results,store-heads{target="cpu"},quantize-results{target="cpu"},remove-duplicates,form-loops{target="cpu"},quantize-attention{target="cpu"},resolve-libraries,group-products{target="cpu"},group-norms{target="cpu"},group-embeddings{target="cpu"},order-scatters{target="cpu"},join-norms{target="cpu"},select{target="cpu"},bufferize,remove-copies,lower-copies' | filecheck %s

// The operators of b2b products are one launch each, with a triangle of zeros or without.

// classic_b2b_bmm: sigmoid(0.5 * q @ k^T + d) * 2 @ v, zeros above the diagonal.
// CHECK-LABEL: ait_rt.program @classic
// CHECK-COUNT-1: ait_rt.launch @attention
// CHECK-NOT: ait_rt.launch
// CHECK-LABEL: ait_rt.program @fmha_style
// CHECK-COUNT-1: ait_rt.launch @attention
// CHECK-NOT: ait_rt.launch
// CHECK-LABEL: ait_rt.program @below
// CHECK-COUNT-1: ait_rt.launch @attention
// CHECK-NOT: ait_rt.launch
// CHECK: }
ait.graph @classic(%q: !ait.tensor<b x 64 x 16 x f16>, %k: !ait.tensor<b x 64 x 16 x f16>, %v: !ait.tensor<b x 64 x 8 x f16>, %d: !ait.tensor<b x 64 x 64 x f16>) dims {b = 1 to 8} {
  %half = ait.constant 0.5 : !ait.tensor<f16>
  %two = ait.constant 2.0 : !ait.tensor<f16>
  %zero = ait.constant 0.0 : !ait.tensor<f16>
  %i = ait.constant [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63] : !ait.tensor<64 x i32>
  %r = ait.reshape %i : !ait.tensor<64 x 1 x i32>
  %c = ait.reshape %i : !ait.tensor<1 x 64 x i32>
  %kept = ait.compare ge %r, %c : !ait.tensor<64 x 64 x i1>
  %0 = ait.bmm rcr %q, %k : !ait.tensor<b x 64 x 64 x f16>
  %1 = ait.mul %0, %half : !ait.tensor<b x 64 x 64 x f16>
  %2 = ait.add %1, %d : !ait.tensor<b x 64 x 64 x f16>
  %3 = ait.sigmoid %2 : !ait.tensor<b x 64 x 64 x f16>
  %4 = ait.mul %3, %two : !ait.tensor<b x 64 x 64 x f16>
  %5 = ait.where %kept, %4, %zero : !ait.tensor<b x 64 x 64 x f16>
  %6 = ait.bmm rrr %5, %v : !ait.tensor<b x 64 x 8 x f16>
  ait.output "y" %6 : !ait.tensor<b x 64 x 8 x f16>
}

// fmha_style_b2b_bmm: heads beside rows, and a length that changes.
ait.graph @fmha_style(%q: !ait.tensor<b x s x 4 x 16 x f16>, %k: !ait.tensor<b x s x 4 x 16 x f16>, %v: !ait.tensor<b x s x 4 x 8 x f16>) dims {b = 1 to 8, s = 1 to 2048} {
  %half = ait.constant 0.5 : !ait.tensor<f16>
  %qh = ait.permute %q [0, 2, 1, 3] : !ait.tensor<b x 4 x s x 16 x f16>
  %kh = ait.permute %k [0, 2, 1, 3] : !ait.tensor<b x 4 x s x 16 x f16>
  %vh = ait.permute %v [0, 2, 1, 3] : !ait.tensor<b x 4 x s x 8 x f16>
  %0 = ait.bmm rcr %qh, %kh : !ait.tensor<b x 4 x s x s x f16>
  %1 = ait.mul %0, %half : !ait.tensor<b x 4 x s x s x f16>
  %2 = ait.silu %1 : !ait.tensor<b x 4 x s x s x f16>
  %3 = ait.bmm rrr %2, %vh : !ait.tensor<b x 4 x s x 8 x f16>
  %4 = ait.permute %3 [0, 2, 1, 3] : !ait.tensor<b x s x 4 x 8 x f16>
  ait.output "y" %4 : !ait.tensor<b x s x 4 x 8 x f16>
}

// Zeros below the diagonal: the region compares the positions.
ait.graph @below(%q: !ait.tensor<b x 4 x 8 x 16 x f16>) dims {b = 1 to 8} {
  %zero = ait.constant 0.0 : !ait.tensor<f16>
  %i = ait.constant [0, 1, 2, 3, 4, 5, 6, 7] : !ait.tensor<8 x i32>
  %r = ait.reshape %i : !ait.tensor<8 x 1 x i32>
  %kept = ait.compare le %r, %i : !ait.tensor<8 x 8 x i1>
  %0 = ait.bmm rcr %q, %q : !ait.tensor<b x 4 x 8 x 8 x f16>
  %1 = ait.relu %0 : !ait.tensor<b x 4 x 8 x 8 x f16>
  %2 = ait.where %kept, %1, %zero : !ait.tensor<b x 4 x 8 x 8 x f16>
  %3 = ait.bmm rrr %2, %q : !ait.tensor<b x 4 x 8 x 16 x f16>
  ait.output "y" %3 : !ait.tensor<b x 4 x 8 x 16 x f16>
}
