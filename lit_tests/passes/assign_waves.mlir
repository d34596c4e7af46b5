// RUN: ait-opt %s -p 'select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies,assign-streams{streams=2 waves=2},plan-memory,verify-plan' --check-semantics 2>&1 | filecheck %s
// RUN: ait-opt %s -p 'select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies,assign-streams{streams=3 waves=99},plan-memory,verify-plan' --check-semantics 2>&1 | filecheck %s --check-prefix=WIDE
// RUN: ait-opt %s -p 'select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies,assign-streams{streams=3 waves=1},plan-memory,verify-plan' --check-semantics 2>&1 | filecheck %s --check-prefix=ONE

// CHECK: semantics: {{[0-9]+}} evaluations compared, no difference
// WIDE: semantics: {{[0-9]+}} evaluations compared, no difference
// ONE: semantics: {{[0-9]+}} evaluations compared, no difference

// Launches that do not wait for each other are in one wave, in the order of their steps and not of the graph; a wave waits for the one
// before it. At most two are in a wave: the third of the first step is alone.
// CHECK-LABEL: ait_rt.program @waves
// CHECK: ait_rt.launch @softmax_0 {{.*}} stream 0
// CHECK: ait_rt.launch @reduce_{{.*}} stream 1
// CHECK: ait_rt.wait event {{.}} stream 0
// CHECK: ait_rt.launch @reduce_{{.*}} stream 0
// CHECK: ait_rt.launch @softmax_1 {{.*}} stream 0
// CHECK: ait_rt.launch @fused_exp_mul_{{.*}} stream 1
// WIDE-LABEL: ait_rt.program @waves
// WIDE: ait_rt.launch @softmax_0 {{.*}} stream 0
// WIDE: ait_rt.launch @reduce_{{.*}} stream 1
// WIDE: ait_rt.launch @reduce_{{.*}} stream 2
// ONE-NOT: stream 1
// ONE-NOT: ait_rt.record
ait.graph @waves(%x: !ait.tensor<b x 64 x f16>) dims {b = 1 to 64} {
  %0 = ait.softmax %x dim 1 : !ait.tensor<b x 64 x f16>
  %1 = ait.softmax %0 dim 0 : !ait.tensor<b x 64 x f16>
  %2 = ait.reduce sum %x dims [1] : !ait.tensor<b x f16>
  %3 = ait.reduce max %x dims [1] : !ait.tensor<b x f16>
  %4 = ait.fused_elementwise(%2, %3) {
  ^bb0(%s: f32, %m: f32):
    %e = ait.exp %s : f32
    %f = ait.mul %e, %m : f32
    ait.yield %f : f32
  } : !ait.tensor<b x f16>
  ait.output "y" %1 : !ait.tensor<b x 64 x f16>
  ait.output "z" %4 : !ait.tensor<b x f16>
}

// The host waits for a count behind all launches before it; what depends on the count comes later.
// CHECK-LABEL: ait_rt.program @waits
// CHECK: ait_rt.launch @softmax
// CHECK: ait_rt.launch @masked_select
// CHECK: ait_rt.read_dim "n"
// CHECK: ait_rt.launch @softmax
ait.graph @waits(%x: !ait.tensor<b x 3 x f32>, %m: !ait.tensor<b x i1>) dims {b = 0 to 8, n = 0 to b bound} {
  %0 = ait.softmax %x dim 1 : !ait.tensor<b x 3 x f32>
  %y, %k = ait.masked_select %x, %m : !ait.tensor<n x 3 x f32>, !ait.tensor<i64>
  %s = ait.softmax %y dim 1 : !ait.tensor<n x 3 x f32>
  ait.output "a" %0 : !ait.tensor<b x 3 x f32>
  ait.output "s" %s : !ait.tensor<n x 3 x f32>
}
