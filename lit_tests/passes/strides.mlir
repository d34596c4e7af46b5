// RUN: ait-opt %s -p 'simplify,select{target="cpu"},bufferize,remove-copies,lower-copies,plan-memory,verify-plan' --split-input-file | filecheck %s
// RUN: ait-opt %s -p 'simplify,select{target="cpu"},bufferize,remove-copies,lower-copies,plan-memory,verify-plan' --split-input-file --check-semantics -o /dev/null 2>&1 | filecheck %s --check-prefix=SAME

// SAME: {{.*}}evaluations compared, no difference
// SAME-NOT: changes the meaning

// Kernels read and write the caller's memory.
// CHECK: ait_rt.program @in_place
// CHECK: %[[X:.*]] = ait_rt.view %x offset (0) strides [c*h*w, 1, c*w, c]
// CHECK-NEXT: %[[A:.*]] = ait_rt.view %0 offset (0) strides [c*h*w, 1, c*w, c]
// CHECK-NEXT: ait_rt.launch @relu_0 ins(%[[X]]) outs(%[[A]]) workspace() stream 0
// CHECK-NEXT: }
ait.graph @in_place(%x: !ait.tensor<n x c x h x w x f32> strides [c*h*w, 1, c*w, c]) dims {n = 1 to 4, c = 1 to 8, h = 1 to 16, w = 1 to 16} {
  %0 = ait.relu %x : !ait.tensor<n x c x h x w x f32>
  ait.output "a" %0 strides [c*h*w, 1, c*w, c] : !ait.tensor<n x c x h x w x f32>
}

// -----

// Channels last, as a network in the other order sees them: one launch, no copy.
// CHECK: ait_rt.program @conv
// CHECK: %[[X:.*]] = ait_rt.view %x offset (0) strides [3*h*w, 3*w, 3, 1] : !ait_rt.buffer<n x h x w x 3 x f32>
// CHECK: %[[V:.*]] = ait_rt.view %0 offset (0) strides [16*h*w, 1, 16*w, 16] : !ait_rt.buffer<n x 16 x h x w x f32>
// CHECK-NEXT: %[[A:.*]] = ait_rt.view %[[V]] offset (0) strides [16*h*w, 16*w, 16, 1] : !ait_rt.buffer<n x h x w x 16 x f32>
// CHECK-NEXT: ait_rt.launch @conv_0 ins(%[[X]], %w) outs(%[[A]]) workspace() stream 0
// CHECK-NEXT: }
ait.graph @conv(%x: !ait.tensor<n x 3 x h x w x f32> strides [3*h*w, 1, 3*w, 3]) dims {n = 1 to 4, h = 8 to 16, w = 8 to 16} {
  %w = ait.param "w" : !ait.tensor<16 x 3 x 3 x 3 x f32>
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<n x h x w x 3 x f32>
  %1 = ait.conv %0, %w pad [1, 1] : !ait.tensor<n x h x w x 16 x f32>
  %2 = ait.permute %1 [0, 3, 1, 2] : !ait.tensor<n x 16 x h x w x f32>
  ait.output "a" %2 strides [16*h*w, 1, 16*w, 16] : !ait.tensor<n x 16 x h x w x f32>
}

// -----

// The same without strides at the output: the kernel would write each channel apart from the next, so a copy is left.
// CHECK: ait_rt.program @conv_out
// CHECK: ait_rt.launch @conv_0 ins(%{{.*}}, %w) outs(%[[Y:.*]]) workspace() stream 0
// CHECK: ait_rt.launch @{{.*}}copy_0 ins(%{{.*}}) outs(%0) workspace() stream 0
ait.graph @conv_out(%x: !ait.tensor<n x 3 x h x w x f32> strides [3*h*w, 1, 3*w, 3]) dims {n = 1 to 4, h = 8 to 16, w = 8 to 16} {
  %w = ait.param "w" : !ait.tensor<16 x 3 x 3 x 3 x f32>
  %0 = ait.permute %x [0, 2, 3, 1] : !ait.tensor<n x h x w x 3 x f32>
  %1 = ait.conv %0, %w pad [1, 1] : !ait.tensor<n x h x w x 16 x f32>
  %2 = ait.permute %1 [0, 3, 1, 2] : !ait.tensor<n x 16 x h x w x f32>
  ait.output "a" %2 : !ait.tensor<n x 16 x h x w x f32>
}

// -----

// Rows of a wider matrix: the product reads them where they are, and writes the left part of another one.
// CHECK: ait_rt.program @rows
// CHECK: %[[X:.*]] = ait_rt.view %x offset (0) strides [8*p, 1] : !ait_rt.buffer<n x 64 x f32>
// CHECK-NEXT: %[[Y:.*]] = ait_rt.view %0 offset (0) strides [96, 1] : !ait_rt.buffer<n x 32 x f32>
// CHECK-NEXT: ait_rt.launch @gemm_rcr_0 ins(%[[X]], %w) outs(%[[Y]]) workspace() stream 0
// CHECK-NEXT: }
ait.graph @rows(%x: !ait.tensor<n x 64 x f32> strides [8*p, 1]) dims {n = 1 to 64, p = 8 to 32} {
  %w = ait.param "w" : !ait.tensor<32 x 64 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<n x 32 x f32>
  ait.output "y" %0 strides [96, 1] : !ait.tensor<n x 32 x f32>
}

// -----

// A kernel that takes no strides reads a copy, and its result is copied.
// CHECK: ait_rt.program @copied
// CHECK: ait_rt.launch @{{.*}}copy_0 ins(%{{.*}}) outs(%[[C:.*]]) workspace()
// CHECK: ait_rt.launch @call_ffi_0 ins(%[[C]]) outs(%[[Y:.*]]) workspace()
// CHECK: ait_rt.launch @{{.*}}copy_0 ins(%[[Y]])
ait.graph @copied(%x: !ait.tensor<n x 8 x f32> strides [1, n]) dims {n = 2 to 64} {
  %0 = ait.call_ffi "f"(%x) : !ait.tensor<n x 8 x f32>
  ait.output "y" %0 strides [1, n] : !ait.tensor<n x 8 x f32>
}

// -----

// An input that is an output, in another order; no elements; dims of 1.
// CHECK: ait_rt.program @moved
// CHECK: ait_rt.launch @moved_copies_0
ait.graph @moved(%x: !ait.tensor<n x 8 x f32> strides [8, 1], %e: !ait.tensor<0 x 8 x f32> strides [1, 1], %o: !ait.tensor<1 x n x f32> strides [5, 2]) dims {n = 0 to 64} {
  ait.output "y" %x strides [1, n] : !ait.tensor<n x 8 x f32>
  ait.output "e" %e strides [8, 1] : !ait.tensor<0 x 8 x f32>
  ait.output "o" %o strides [1, 3] : !ait.tensor<1 x n x f32>
}
