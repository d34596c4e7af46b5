// RUN: ait-opt %s -p 'simplify,select{target="cpu"},bufferize,remove-copies,lower-copies,plan-memory,verify-plan' --split-input-file | filecheck %s

// The workspace of a call is in the arena, 64-byte aligned. A function that reads no strides gets a copy of a transposed
// operand.
// CHECK: ait_rt.program @plain
// CHECK: %y = ait_rt.alloc at (0) : !ait_rt.buffer<b x 8 x f32>
// CHECK-NEXT: %[[WS:.*]] = ait_rt.alloc at (512*(b ceildiv 16)) : !ait_rt.buffer<(4*b) x i8>
// CHECK-NEXT: ait_rt.launch @call_ffi_0 ins(%x) outs(%y) workspace(%[[WS]]) stream 0
// CHECK: %[[T:.*]] = ait_rt.view %y offset (0) strides [1, 8]
// CHECK: ait_rt.launch @{{.*}}copy{{.*}} ins(%[[T]]) outs(%[[C:.*]]) workspace()
// CHECK: ait_rt.launch @call_ffi_1 ins(%[[C]]) outs(%p) workspace() stream 0
ait.graph @plain(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 4} {
  %y = ait.call_ffi "f"(%x) workspace (4*b) : !ait.tensor<b x 8 x f32>
  %t = ait.permute %y [1, 0] : !ait.tensor<8 x b x f32>
  %p = ait.call_ffi "g"(%t) : !ait.tensor<8 x b x f32>
  ait.output "p" %p : !ait.tensor<8 x b x f32>
}

// -----

// A function that reads strides gets the view.
// CHECK: ait_rt.program @strided
// CHECK: ait_rt.launch @call_ffi_0 ins(%x) outs(%y)
// CHECK-NEXT: %[[T:.*]] = ait_rt.view %y offset (0) strides [1, 8]
// CHECK-NEXT: ait_rt.launch @call_ffi_1 ins(%[[T]]) outs(%p) workspace() stream 0
ait.graph @strided(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 4} {
  %y = ait.call_ffi "f"(%x) : !ait.tensor<b x 8 x f32>
  %t = ait.permute %y [1, 0] : !ait.tensor<8 x b x f32>
  %p = ait.call_ffi "g"(%t) strided : !ait.tensor<8 x b x f32>
  ait.output "p" %p : !ait.tensor<8 x b x f32>
}

// -----

// A call with no user is none: a function computes from its arguments alone.
// CHECK: ait_rt.program @unused
// CHECK: ait_rt.launch @call_ffi_0
// CHECK-NOT: ait_rt.launch
ait.graph @unused(%x: !ait.tensor<8 x f32>) {
  %y = ait.call_ffi "f"(%x) : !ait.tensor<8 x f32>
  %z = ait.call_ffi "g"(%x) : !ait.tensor<8 x f32>
  ait.output "y" %y : !ait.tensor<8 x f32>
}
