// RUN: ait-opt %s -p verify-plan | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

builtin.module attributes {ait.target = "cuda", ait.arch = "sm_90a"} {
  ait_rt.kernel @select "native" {} (%0: !ait.tensor<b x f32>, %1: !ait.tensor<b x i1>) dims {b = 1 to 8, n = 0 to b bound} {
    %2, %3 = ait.masked_select %0, %1 : !ait.tensor<n x f32>, !ait.tensor<i64>
    ait_rt.return %2, %3 : !ait.tensor<n x f32>, !ait.tensor<i64>
  }
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<n x f32>) dims {b = 1 to 8, n = 0 to b bound} {
    %1 = ait.relu %0 : !ait.tensor<n x f32>
    ait_rt.return %1 : !ait.tensor<n x f32>
  }
  // CHECK-LABEL: ait_rt.program @masked
  ait_rt.program @masked dims {b = 1 to 8, n = 0 to b bound} arena (8448) {
    %x = ait_rt.input "x" : !ait_rt.buffer<b x f32>
    %m = ait_rt.input "m" : !ait_rt.buffer<b x i1>
    %z = ait_rt.output "z" : !ait_rt.buffer<n x f32>
    %k = ait_rt.output "k" : !ait_rt.buffer<i64>
    %y = ait_rt.alloc at (0) : !ait_rt.buffer<n x f32>
    %w = ait_rt.alloc at (256) : !ait_rt.buffer<8192 x i8>
    ait_rt.launch @select ins(%x, %m) outs(%y, %k) workspace(%w) stream 0
    // CHECK: ait_rt.launch @relu ins(%y) outs(%z) workspace() masked "n" by %k stream 0
    // GENERIC: "ait_rt.launch"(%y, %z, %k) <{{{.*}}masked = "n"{{.*}}operandSegmentSizes = array<i32: 1, 1, 0, 1>
    ait_rt.launch @relu ins(%y) outs(%z) workspace() masked "n" by %k stream 0
    ait_rt.read_dim "n" from %k
  }
}
