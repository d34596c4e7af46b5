// RUN: ait-opt %s -p 'group-products{target="cuda" arch="sm_90a"}' | filecheck %s
// RUN: ait-opt %s -p 'group-products{target="cpu"}' | filecheck %s --check-prefix=CPU
// RUN: ait-opt %s -p 'group-products{target="cuda" arch="sm_90a"},select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies,assign-streams,plan-memory,verify-plan' | filecheck %s --check-prefix=LAUNCH

// Only where estimates say that one launch is faster by far.

// CPU-NOT: ait.grouped_gemm

// Four products that take as long as a launch.
// CHECK-LABEL: ait.graph @small
// CHECK: ait.grouped_gemm rcr {{.*}} epilogue(%b0, %b1, %b2, %b3)
// CHECK-NOT: ait.gemm
// LAUNCH-LABEL: ait_rt.program @small
// LAUNCH-COUNT-1: ait_rt.launch @grouped_gemm_{{[0-9]+}} ins
// LAUNCH-NOT: ait_rt.launch
// LAUNCH: }
ait.graph @small(%x0: !ait.tensor<64 x 64 x f16>, %x1: !ait.tensor<64 x 64 x f16>, %x2: !ait.tensor<64 x 64 x f16>, %x3: !ait.tensor<64 x 64 x f16>) {
  %w0 = ait.param "w0" : !ait.tensor<64 x 64 x f16>
  %w1 = ait.param "w1" : !ait.tensor<64 x 64 x f16>
  %w2 = ait.param "w2" : !ait.tensor<64 x 64 x f16>
  %w3 = ait.param "w3" : !ait.tensor<64 x 64 x f16>
  %b0 = ait.param "b0" : !ait.tensor<64 x f16>
  %y0 = ait.gemm rcr %x0, %w0 epilogue(%b0) {
  ^bb0(%acc0: f32, %c0: f32):
    %s0 = ait.add %acc0, %c0 : f32
    ait.yield %s0 : f32
  } : !ait.tensor<64 x 64 x f16>
  %b1 = ait.param "b1" : !ait.tensor<64 x f16>
  %y1 = ait.gemm rcr %x1, %w1 epilogue(%b1) {
  ^bb0(%acc1: f32, %c1: f32):
    %s1 = ait.add %acc1, %c1 : f32
    ait.yield %s1 : f32
  } : !ait.tensor<64 x 64 x f16>
  %b2 = ait.param "b2" : !ait.tensor<64 x f16>
  %y2 = ait.gemm rcr %x2, %w2 epilogue(%b2) {
  ^bb0(%acc2: f32, %c2: f32):
    %s2 = ait.add %acc2, %c2 : f32
    ait.yield %s2 : f32
  } : !ait.tensor<64 x 64 x f16>
  %b3 = ait.param "b3" : !ait.tensor<64 x f16>
  %y3 = ait.gemm rcr %x3, %w3 epilogue(%b3) {
  ^bb0(%acc3: f32, %c3: f32):
    %s3 = ait.add %acc3, %c3 : f32
    ait.yield %s3 : f32
  } : !ait.tensor<64 x 64 x f16>
  ait.output "y0" %y0 : !ait.tensor<64 x 64 x f16>
  ait.output "y1" %y1 : !ait.tensor<64 x 64 x f16>
  ait.output "y2" %y2 : !ait.tensor<64 x 64 x f16>
  ait.output "y3" %y3 : !ait.tensor<64 x 64 x f16>
}

// Two are too few.
// CHECK-LABEL: ait.graph @two
// CHECK-NOT: ait.grouped_gemm
ait.graph @two(%x0: !ait.tensor<64 x 64 x f16>, %x1: !ait.tensor<64 x 64 x f16>) {
  %w0 = ait.param "w0" : !ait.tensor<64 x 64 x f16>
  %w1 = ait.param "w1" : !ait.tensor<64 x 64 x f16>
  %y0 = ait.gemm rcr %x0, %w0 : !ait.tensor<64 x 64 x f16>
  %y1 = ait.gemm rcr %x1, %w1 : !ait.tensor<64 x 64 x f16>
  ait.output "y0" %y0 : !ait.tensor<64 x 64 x f16>
  ait.output "y1" %y1 : !ait.tensor<64 x 64 x f16>
}

// Products that fill the card by themselves.
// CHECK-LABEL: ait.graph @large
// CHECK-NOT: ait.grouped_gemm
ait.graph @large(%x0: !ait.tensor<1024 x 1024 x f16>, %x1: !ait.tensor<1024 x 1024 x f16>, %x2: !ait.tensor<1024 x 1024 x f16>, %x3: !ait.tensor<1024 x 1024 x f16>) {
  %w0 = ait.param "w0" : !ait.tensor<1024 x 1024 x f16>
  %w1 = ait.param "w1" : !ait.tensor<1024 x 1024 x f16>
  %w2 = ait.param "w2" : !ait.tensor<1024 x 1024 x f16>
  %w3 = ait.param "w3" : !ait.tensor<1024 x 1024 x f16>
  %y0 = ait.gemm rcr %x0, %w0 : !ait.tensor<1024 x 1024 x f16>
  %y1 = ait.gemm rcr %x1, %w1 : !ait.tensor<1024 x 1024 x f16>
  %y2 = ait.gemm rcr %x2, %w2 : !ait.tensor<1024 x 1024 x f16>
  %y3 = ait.gemm rcr %x3, %w3 : !ait.tensor<1024 x 1024 x f16>
  ait.output "y0" %y0 : !ait.tensor<1024 x 1024 x f16>
  ait.output "y1" %y1 : !ait.tensor<1024 x 1024 x f16>
  ait.output "y2" %y2 : !ait.tensor<1024 x 1024 x f16>
  ait.output "y3" %y3 : !ait.tensor<1024 x 1024 x f16>
}

// Reading the weights is the work.
// CHECK-LABEL: ait.graph @weights
// CHECK-NOT: ait.grouped_gemm
ait.graph @weights(%x0: !ait.tensor<8 x 4096 x f16>, %x1: !ait.tensor<8 x 4096 x f16>, %x2: !ait.tensor<8 x 4096 x f16>, %x3: !ait.tensor<8 x 4096 x f16>) {
  %w0 = ait.param "w0" : !ait.tensor<4096 x 4096 x f16>
  %w1 = ait.param "w1" : !ait.tensor<4096 x 4096 x f16>
  %w2 = ait.param "w2" : !ait.tensor<4096 x 4096 x f16>
  %w3 = ait.param "w3" : !ait.tensor<4096 x 4096 x f16>
  %y0 = ait.gemm rcr %x0, %w0 : !ait.tensor<8 x 4096 x f16>
  %y1 = ait.gemm rcr %x1, %w1 : !ait.tensor<8 x 4096 x f16>
  %y2 = ait.gemm rcr %x2, %w2 : !ait.tensor<8 x 4096 x f16>
  %y3 = ait.gemm rcr %x3, %w3 : !ait.tensor<8 x 4096 x f16>
  ait.output "y0" %y0 : !ait.tensor<8 x 4096 x f16>
  ait.output "y1" %y1 : !ait.tensor<8 x 4096 x f16>
  ait.output "y2" %y2 : !ait.tensor<8 x 4096 x f16>
  ait.output "y3" %y3 : !ait.tensor<8 x 4096 x f16>
}

// Elements of four bytes.
// CHECK-LABEL: ait.graph @wide
// CHECK-NOT: ait.grouped_gemm
ait.graph @wide(%x0: !ait.tensor<64 x 64 x f32>, %x1: !ait.tensor<64 x 64 x f32>, %x2: !ait.tensor<64 x 64 x f32>, %x3: !ait.tensor<64 x 64 x f32>) {
  %w0 = ait.param "w0" : !ait.tensor<64 x 64 x f32>
  %w1 = ait.param "w1" : !ait.tensor<64 x 64 x f32>
  %w2 = ait.param "w2" : !ait.tensor<64 x 64 x f32>
  %w3 = ait.param "w3" : !ait.tensor<64 x 64 x f32>
  %y0 = ait.gemm rcr %x0, %w0 : !ait.tensor<64 x 64 x f32>
  %y1 = ait.gemm rcr %x1, %w1 : !ait.tensor<64 x 64 x f32>
  %y2 = ait.gemm rcr %x2, %w2 : !ait.tensor<64 x 64 x f32>
  %y3 = ait.gemm rcr %x3, %w3 : !ait.tensor<64 x 64 x f32>
  ait.output "y0" %y0 : !ait.tensor<64 x 64 x f32>
  ait.output "y1" %y1 : !ait.tensor<64 x 64 x f32>
  ait.output "y2" %y2 : !ait.tensor<64 x 64 x f32>
  ait.output "y3" %y3 : !ait.tensor<64 x 64 x f32>
}
