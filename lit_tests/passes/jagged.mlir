// A jagged dim is known before the first launch: nothing waits for it, and memory grows with its total.
// RUN: ait-opt %s -p 'fuse-elementwise,select{target="cpu"},bufferize,remove-copies,lower-copies,plan-memory,verify-plan' --check-semantics 2>&1 | filecheck %s

// CHECK: // semantics: {{.*}} evaluations compared, no difference
ait.graph @sequences(%x: !ait.tensor<total x 8 x f16>, %o: !ait.tensor<(b + 1) x i32>, %d: !ait.tensor<b x 5 x 8 x f16>)
  dims {total = 0 to 900, b = 0 to 9, words = jagged(total, b, 0 to 5)} {
  // CHECK: ait_rt.program @sequences dims {total = 0 to 900, b = 0 to 9, words = jagged(total, b, 0 to 5)} arena (64*(total ceildiv 4))
  // CHECK-NOT: read_dim
  // CHECK: ait_rt.launch @padded_to_jagged_0 ins(%d, %o) outs([[taken:%[a-z0-9]+]])
  // CHECK-NEXT: [[rows:%[a-z0-9]+]] = ait_rt.view %x offset (0) strides [8, 1] : !ait_rt.buffer<words x 8 x f16>
  // CHECK-NEXT: ait_rt.launch @fused_add_relu_1 ins([[rows]], [[taken]]) outs([[sums:%[a-z0-9]+]]) workspace() stream 0
  // CHECK-NEXT: ait_rt.launch @jagged_to_padded_2 ins([[sums]], %o)
  // CHECK-NOT: read_dim
  %0 = ait.make_jagged %x offsets(%o) : !ait.tensor<words x 8 x f16>
  %1 = ait.padded_to_jagged %d offsets(%o) : !ait.tensor<words x 8 x f16>
  %2 = ait.add %0, %1 : !ait.tensor<words x 8 x f16>
  %3 = ait.relu %2 : !ait.tensor<words x 8 x f16>
  %4 = ait.jagged_to_padded %3 offsets(%o) value 0.5 : !ait.tensor<b x 5 x 8 x f16>
  ait.output "y" %4 : !ait.tensor<b x 5 x 8 x f16>
  ait.output "z" %3 : !ait.tensor<words x 8 x f16>
}
