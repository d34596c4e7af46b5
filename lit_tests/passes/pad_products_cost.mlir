// RUN: ait-opt %s -p 'pad-products{target="cuda" arch="sm_90a"}' | filecheck %s
// RUN: ait-opt %s -p 'pad-products{target="cuda" arch="sm_90a" weights=true}' | filecheck %s --check-prefix=WEIGHTS
// RUN: ait-opt %s -p 'pad-products{target="cuda" arch="sm_80"}' | filecheck %s --check-prefix=NONE
// RUN: ait-opt %s -p 'pad-products{target="rocm" arch="gfx90a"}' | filecheck %s --check-prefix=NONE
// RUN: ait-opt %s -p 'pad-products{target="cpu"}' | filecheck %s --check-prefix=NONE

// Only where estimates are fitted to the card, and say that it is faster with what it costs to fill.

// NONE-NOT: ait.{{pad|concat}}

// Rows of 1,023 elements start on odd addresses: a kernel copies them, or a weight is filled before the run does.
// CHECK-LABEL: ait.graph @long
// CHECK-NOT: ait.{{pad|concat}}
// WEIGHTS-LABEL: ait.graph @long
// WEIGHTS: [[X:%.*]] = ait.concat %x, {{.*}} dim 1 : !ait.tensor<2048 x 1024 x f16>
// WEIGHTS-NEXT: [[W:%.*]] = ait.pad constant %w before [0, 0] : !ait.tensor<4096 x 1024 x f16>
// WEIGHTS-NEXT: ait.gemm rcr {{.*}} : !ait.tensor<2048 x 4096 x f16>
ait.graph @long(%x: !ait.tensor<2048 x 1023 x f16>) {
  %w = ait.param "w" : !ait.tensor<4096 x 1023 x f16>
  %y = ait.gemm rcr %x, %w : !ait.tensor<2048 x 4096 x f16>
  ait.output "y" %y : !ait.tensor<2048 x 4096 x f16>
}

// A launch that fills the weight does not pay for few rows; that it is filled before the run does.
// CHECK-LABEL: ait.graph @few_rows
// CHECK-NOT: ait.{{pad|concat}}
// WEIGHTS-LABEL: ait.graph @few_rows
// WEIGHTS: ait.concat %x
// WEIGHTS: ait.pad constant %w
ait.graph @few_rows(%x: !ait.tensor<m x 1023 x f16>) dims {m = 1 to 128} {
  %w = ait.param "w" : !ait.tensor<4096 x 1023 x f16>
  %y = ait.gemm rcr %x, %w : !ait.tensor<m x 4096 x f16>
  ait.output "y" %y : !ait.tensor<m x 4096 x f16>
}

// Rows so short that the filled weight is large and much larger: it would not be kept.
// WEIGHTS-LABEL: ait.graph @short
// WEIGHTS-NOT: ait.{{pad|concat}}
ait.graph @short(%x: !ait.tensor<32 x 9 x f16>) {
  %w = ait.param "w" : !ait.tensor<65536 x 9 x f16>
  %y = ait.gemm rcr %x, %w : !ait.tensor<32 x 65536 x f16>
  ait.output "y" %y : !ait.tensor<32 x 65536 x f16>
}

// A batched product of two inputs: a kernel copies their rows to boundaries of 16 bytes, and the result needs no cut.
// CHECK-LABEL: ait.graph @batched
// CHECK-NOT: ait.{{pad|concat}}
// WEIGHTS-LABEL: ait.graph @batched
// WEIGHTS-NOT: ait.{{pad|concat}}
ait.graph @batched(%x: !ait.tensor<16 x 1024 x 1023 x f16>, %y: !ait.tensor<16 x 1023 x 1023 x f16>) {
  %0 = ait.bmm rrr %x, %y : !ait.tensor<16 x 1024 x 1023 x f16>
  ait.output "y" %0 : !ait.tensor<16 x 1024 x 1023 x f16>
}

// Odd columns of the result alone: the kernels store those as fast. Few sums: the launch that fills costs more.
// CHECK-LABEL: ait.graph @no_gain
// CHECK-NOT: ait.{{pad|concat}}
// WEIGHTS-LABEL: ait.graph @no_gain
// WEIGHTS-NOT: ait.{{pad|concat}}
ait.graph @no_gain(%x: !ait.tensor<2048 x 1024 x f16>, %v: !ait.tensor<32 x 511 x f16>) {
  %w0 = ait.param "w0" : !ait.tensor<4095 x 1024 x f16>
  %w1 = ait.param "w1" : !ait.tensor<512 x 511 x f16>
  %0 = ait.gemm rcr %x, %w0 : !ait.tensor<2048 x 4095 x f16>
  %1 = ait.gemm rcr %v, %w1 : !ait.tensor<32 x 512 x f16>
  ait.output "y0" %0 : !ait.tensor<2048 x 4095 x f16>
  ait.output "y1" %1 : !ait.tensor<32 x 512 x f16>
}

// What an elementwise op computes for the product alone is written into the larger tensor; other users need it as it is.
// CHECK-LABEL: ait.graph @written
// CHECK: [[X:%.*]] = ait.add %x, %r
// CHECK: ait.concat [[X]], {{.*}} dim 1 : !ait.tensor<8192 x 864 x f16>
// CHECK: ait.gemm rrr {{.*}} : !ait.tensor<8192 x 818 x f16>
// CHECK-LABEL: ait.graph @read_again
// CHECK-NOT: ait.{{pad|concat}}
ait.graph @written(%x: !ait.tensor<8192 x 859 x f16>, %r: !ait.tensor<8192 x 859 x f16>, %w: !ait.tensor<859 x 818 x f16>) {
  %s = ait.add %x, %r : !ait.tensor<8192 x 859 x f16>
  %y = ait.gemm rrr %s, %w : !ait.tensor<8192 x 818 x f16>
  ait.output "y" %y : !ait.tensor<8192 x 818 x f16>
}
ait.graph @read_again(%x: !ait.tensor<8192 x 859 x f16>, %r: !ait.tensor<8192 x 859 x f16>, %w: !ait.tensor<859 x 818 x f16>) {
  %s = ait.add %x, %r : !ait.tensor<8192 x 859 x f16>
  %y = ait.gemm rrr %s, %w : !ait.tensor<8192 x 818 x f16>
  ait.output "s" %s : !ait.tensor<8192 x 859 x f16>
  ait.output "y" %y : !ait.tensor<8192 x 818 x f16>
}

// A value that follows from params, but not its size, is not kept, so that it is filled in each run.
// WEIGHTS-LABEL: ait.graph @of_a_batch
// WEIGHTS-NOT: ait.pad
ait.graph @of_a_batch(%x: !ait.tensor<b x 4 x 16 x f16>) dims {b = 1 to 8} {
  %v = ait.param "v" : !ait.tensor<1 x 16 x 7 x f16>
  %w = ait.expand %v : !ait.tensor<b x 16 x 7 x f16>
  %y = ait.bmm rrr %x, %w : !ait.tensor<b x 4 x 7 x f16>
  ait.output "y" %y : !ait.tensor<b x 4 x 7 x f16>
}
