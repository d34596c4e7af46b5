// RUN: ait-opt %s -p 'select{target="cuda"},bufferize,remove-copies,lower-copies,plan-memory,verify-plan' | filecheck %s
// RUN: ait-opt %s -p 'select{target="cuda"},bufferize,remove-copies,lower-copies,plan-memory,verify-plan' --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// Kernels that can read the value of a bound dim from memory are masked; the host waits before the first that cannot.
builtin.module {
  // CHECK-LABEL: ait_rt.program @elementwise
  // CHECK: ait_rt.launch @masked_select_0
  // CHECK-NEXT: ait_rt.launch @exp_1 ins(%y) outs(%z) workspace() masked "n" by %k stream 0
  // CHECK-NEXT: ait_rt.read_dim "n" from %k
  ait.graph @elementwise(%x: !ait.tensor<b x f32>, %m: !ait.tensor<b x i1>) dims {b = 0 to 8, n = 0 to b bound} {
    %y, %k = ait.masked_select %x, %m : !ait.tensor<n x f32>, !ait.tensor<i64>
    %z = ait.exp %y : !ait.tensor<n x f32>
    ait.output "z" %z : !ait.tensor<n x f32>
    ait.output "k" %k : !ait.tensor<i64>
  }

  // A softmax cannot, and after the wait no launch needs a mask.
  // CHECK-LABEL: ait_rt.program @rows
  // CHECK: ait_rt.launch @exp_{{.*}} masked "n" by %k stream 0
  // CHECK: ait_rt.read_dim "n" from %k
  // CHECK-NEXT: ait_rt.launch @softmax_{{.*}} workspace() stream 0
  // CHECK: ait_rt.launch @exp_{{.*}} workspace() stream 0
  // CHECK-NOT: ait_rt.read_dim
  ait.graph @rows(%x: !ait.tensor<b x 3 x f32>, %m: !ait.tensor<b x i1>) dims {b = 0 to 8, n = 0 to b bound} {
    %y, %k = ait.masked_select %x, %m : !ait.tensor<n x 3 x f32>, !ait.tensor<i64>
    %z = ait.exp %y : !ait.tensor<n x 3 x f32>
    %s = ait.softmax %z dim 1 : !ait.tensor<n x 3 x f32>
    %t = ait.exp %s : !ait.tensor<n x 3 x f32>
    ait.output "t" %t : !ait.tensor<n x 3 x f32>
  }

  // The dim is not the leading one of a permuted result, whose strides depend on it.
  // CHECK-LABEL: ait_rt.program @turned
  // CHECK: ait_rt.read_dim "n"
  // CHECK: ait_rt.launch @exp_{{.*}} workspace() stream 0
  ait.graph @turned(%x: !ait.tensor<b x 3 x f32>, %m: !ait.tensor<b x i1>) dims {b = 0 to 8, n = 0 to b bound} {
    %y, %k = ait.masked_select %x, %m : !ait.tensor<n x 3 x f32>, !ait.tensor<i64>
    %p = ait.permute %y [1, 0] : !ait.tensor<3 x n x f32>
    %z = ait.exp %p : !ait.tensor<3 x n x f32>
    ait.output "z" %z : !ait.tensor<3 x n x f32>
  }

  // A kernel is masked by one dim, the host waits for the other.
  // CHECK-LABEL: ait_rt.program @two
  // CHECK: ait_rt.read_dim "l"
  // CHECK: ait_rt.launch @add_{{.*}} workspace() masked "n" by %k stream 0
  // CHECK: ait_rt.read_dim "n"
  ait.graph @two(%x: !ait.tensor<b x f32>, %m: !ait.tensor<b x i1>, %o: !ait.tensor<b x i1>) dims {b = 0 to 8, n = 0 to b bound, l = 0 to b bound} {
    %y, %k = ait.masked_select %x, %m : !ait.tensor<n x f32>, !ait.tensor<i64>
    %v, %j = ait.masked_select %x, %o : !ait.tensor<l x f32>, !ait.tensor<i64>
    %c = ait.reshape %y : !ait.tensor<n x 1 x f32>
    %z = ait.add %c, %v : !ait.tensor<n x l x f32>
    ait.output "z" %z : !ait.tensor<n x l x f32>
  }
  // A launch writes the second row of a result, whose place the host must know: it waits before the view of the row.
  // CHECK-LABEL: ait_rt.program @joined
  // CHECK: ait_rt.launch @exp_{{.*}} workspace() masked "n"
  // CHECK-NEXT: ait_rt.read_dim "n" from
  // CHECK-NEXT: ait_rt.view %z offset (n)
  // CHECK: ait_rt.launch @tanh_{{.*}} workspace() masked "n"
  // CHECK-NOT: ait_rt.copy
  ait.graph @joined(%x: !ait.tensor<b x f32>, %m: !ait.tensor<b x i1>) dims {b = 0 to 8, n = 0 to b bound} {
    %y, %k = ait.masked_select %x, %m : !ait.tensor<n x f32>, !ait.tensor<i64>
    %e = ait.exp %y : !ait.tensor<n x f32>
    %f = ait.tanh %y : !ait.tensor<n x f32>
    %s = ait.reshape %e : !ait.tensor<1 x n x f32>
    %t = ait.reshape %f : !ait.tensor<1 x n x f32>
    %z = ait.concat %s, %t dim 0 : !ait.tensor<2 x n x f32>
    ait.output "z" %z : !ait.tensor<2 x n x f32>
  }
}
