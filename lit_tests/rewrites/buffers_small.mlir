// RUN: ait-opt %s -p remove-copies | filecheck %s
// RUN: ait-opt %s -p remove-copies --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// On a GPU a launch takes longer than a few stores that lie apart.
builtin.module attributes {ait.target = "cuda", ait.arch = "sm_90a"} {
  ait_rt.kernel @few "native" {} (%0: !ait.tensor<13 x 128 x 3 x f32>) {
    %1 = ait.reduce max %0 dims [2] : !ait.tensor<13 x 128 x f32>
    ait_rt.return %1 : !ait.tensor<13 x 128 x f32>
  }
  ait_rt.kernel @many "native" {} (%0: !ait.tensor<513 x 128 x 3 x f32>) {
    %1 = ait.reduce max %0 dims [2] : !ait.tensor<513 x 128 x f32>
    ait_rt.return %1 : !ait.tensor<513 x 128 x f32>
  }
  ait_rt.kernel @sample "native" {} (%0: !ait.tensor<257 x 5 x 5 x 16 x f32>, %1: !ait.tensor<257 x 4 x 6 x 2 x f32>) {
    %2 = ait.grid_sample linear zeros %0, %1 : !ait.tensor<257 x 4 x 6 x 16 x f32>
    ait_rt.return %2 : !ait.tensor<257 x 4 x 6 x 16 x f32>
  }
  ait_rt.kernel @few_sums "native" {} (%0: !ait.tensor<64 x 32 x f32>) {
    %1 = ait.cumulative sum %0 dim 1 : !ait.tensor<64 x 32 x f32>
    ait_rt.return %1 : !ait.tensor<64 x 32 x f32>
  }
  ait_rt.kernel @many_sums "native" {} (%0: !ait.tensor<4096 x 32 x f32>) {
    %1 = ait.cumulative sum %0 dim 1 : !ait.tensor<4096 x 32 x f32>
    ait_rt.return %1 : !ait.tensor<4096 x 32 x f32>
  }
  ait_rt.kernel @columns "native" {} (%0: !ait.tensor<4096 x 32 x 1 x f32>) {
    %1 = ait.cumulative sum %0 dim 0 : !ait.tensor<4096 x 32 x 1 x f32>
    ait_rt.return %1 : !ait.tensor<4096 x 32 x 1 x f32>
  }

  // CHECK-LABEL: ait_rt.program @few_elements
  ait_rt.program @few_elements arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<13 x 128 x 3 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<128 x 13 x f32>
    // CHECK: [[V:%.*]] = ait_rt.view %y offset (0) strides [1, 13]
    // CHECK-NEXT: ait_rt.launch @few ins(%x) outs([[V]])
    // CHECK-NOT: ait_rt.copy
    %a = ait_rt.alloc : !ait_rt.buffer<13 x 128 x f32>
    ait_rt.launch @few ins(%x) outs(%a) workspace() stream 0
    %t = ait_rt.view %a offset (0) strides [1, 128] : !ait_rt.buffer<128 x 13 x f32>
    ait_rt.copy %t to %y
  }

  // CHECK-LABEL: ait_rt.program @many_elements
  ait_rt.program @many_elements arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<513 x 128 x 3 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<128 x 513 x f32>
    // CHECK: ait_rt.launch @many ins(%x) outs([[A:%.*]]) workspace
    // CHECK: ait_rt.copy
    %a = ait_rt.alloc : !ait_rt.buffer<513 x 128 x f32>
    ait_rt.launch @many ins(%x) outs(%a) workspace() stream 0
    %t = ait_rt.view %a offset (0) strides [1, 128] : !ait_rt.buffer<128 x 513 x f32>
    ait_rt.copy %t to %y
  }

  // A sampling writes any order as fast.
  // CHECK-LABEL: ait_rt.program @planes
  ait_rt.program @planes arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<257 x 5 x 5 x 16 x f32>
    %g = ait_rt.input "g" : !ait_rt.buffer<257 x 4 x 6 x 2 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<257 x 16 x 4 x 6 x f32>
    // CHECK: [[P:%.*]] = ait_rt.view %y offset (0) strides [384, 6, 1, 24]
    // CHECK-NEXT: ait_rt.launch @sample ins(%x, %g) outs([[P]])
    // CHECK-NOT: ait_rt.copy
    %a = ait_rt.alloc : !ait_rt.buffer<257 x 4 x 6 x 16 x f32>
    ait_rt.launch @sample ins(%x, %g) outs(%a) workspace() stream 0
    %t = ait_rt.view %a offset (0) strides [384, 1, 96, 16] : !ait_rt.buffer<257 x 16 x 4 x 6 x f32>
    ait_rt.copy %t to %y
  }

  // Cumulative sums read few elements in any order.
  // CHECK-LABEL: ait_rt.program @few_cumulative
  ait_rt.program @few_cumulative arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<32 x 64 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<64 x 32 x f32>
    // CHECK-NOT: ait_rt.copy
    %t = ait_rt.view %x offset (0) strides [1, 64] : !ait_rt.buffer<64 x 32 x f32>
    %a = ait_rt.alloc : !ait_rt.buffer<64 x 32 x f32>
    ait_rt.copy %t to %a
    ait_rt.launch @few_sums ins(%a) outs(%y) workspace() stream 0
  }

  // Many are copied first, unless neighbours in memory are neighbours along the last dim.
  // CHECK-LABEL: ait_rt.program @many_cumulative
  ait_rt.program @many_cumulative arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<32 x 4096 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4096 x 32 x f32>
    // CHECK: ait_rt.copy
    %t = ait_rt.view %x offset (0) strides [1, 4096] : !ait_rt.buffer<4096 x 32 x f32>
    %a = ait_rt.alloc : !ait_rt.buffer<4096 x 32 x f32>
    ait_rt.copy %t to %a
    ait_rt.launch @many_sums ins(%a) outs(%y) workspace() stream 0
  }
  // CHECK-LABEL: ait_rt.program @part_cumulative
  ait_rt.program @part_cumulative arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4096 x 64 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4096 x 32 x f32>
    // CHECK: [[T:%.*]] = ait_rt.view %x offset (32) strides [64, 1]
    // CHECK-NEXT: ait_rt.launch @many_sums ins([[T]]) outs(%y)
    %t = ait_rt.view %x offset (32) strides [64, 1] : !ait_rt.buffer<4096 x 32 x f32>
    %a = ait_rt.alloc : !ait_rt.buffer<4096 x 32 x f32>
    ait_rt.copy %t to %a
    ait_rt.launch @many_sums ins(%a) outs(%y) workspace() stream 0
  }
  // CHECK-LABEL: ait_rt.program @cumulative_of_columns
  ait_rt.program @cumulative_of_columns arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4096 x 64 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4096 x 32 x 1 x f32>
    // CHECK-NOT: ait_rt.copy
    %t = ait_rt.view %x offset (0) strides [64, 1, 7] : !ait_rt.buffer<4096 x 32 x 1 x f32>
    %a = ait_rt.alloc : !ait_rt.buffer<4096 x 32 x 1 x f32>
    ait_rt.copy %t to %a
    ait_rt.launch @columns ins(%a) outs(%y) workspace() stream 0
  }
}
