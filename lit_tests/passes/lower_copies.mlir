// RUN: ait-opt %s -p lower-copies | filecheck %s
// RUN: ait-opt %s -p lower-copies --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

builtin.module attributes {ait.target = "cpu", ait.arch = "native"} {
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<4 x f32>) {
    %1 = ait.relu %0 : !ait.tensor<4 x f32>
    ait_rt.return %1 : !ait.tensor<4 x f32>
  }

  // Parts of a concat and outputs: one launch, with the types of the pieces.
  // CHECK: ait_rt.kernel @pieces_copies_0 "native" {} (%0: !ait.tensor<b x 2 x f32>, %1: !ait.tensor<b x 3 x i32>) dims {b = 0 to 4} {
  // CHECK-NEXT: ait.copies
  // CHECK-LABEL: ait_rt.program @pieces
  // CHECK: ait_rt.launch @pieces_copies_0 ins(%x, %z) outs({{.*}}, %w)
  // CHECK-NOT: ait_rt.launch
  ait_rt.program @pieces dims {b = 0 to 4} arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<b x 2 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<b x 3 x i32>
    %y = ait_rt.output "y" : !ait_rt.buffer<b x 2 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<b x 3 x i32>
    %p = ait_rt.view %y offset (0) strides [2, 1] : !ait_rt.buffer<b x 2 x f32>
    ait_rt.copy %x to %p
    ait_rt.copy %z to %w
  }

  // The second one reads what the first one wrote.
  // CHECK-LABEL: ait_rt.program @chain
  // CHECK-COUNT-2: ait_rt.launch @chain_copy_0
  ait_rt.program @chain arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x f32>
    %a = ait_rt.alloc : !ait_rt.buffer<4 x f32>
    ait_rt.copy %x to %a
    ait_rt.copy %a to %y
  }

  // The third one writes what the second one read.
  // CHECK-LABEL: ait_rt.program @overwrite
  // CHECK: ait_rt.launch @relu
  // CHECK-NEXT: ait_rt.launch @overwrite_copy_0 ins(%a) outs(%y)
  // CHECK-NEXT: ait_rt.launch @overwrite_copy_0 ins(%x) outs(%a)
  // CHECK-NEXT: ait_rt.launch @relu
  ait_rt.program @overwrite arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<4 x f32>
    %a = ait_rt.alloc : !ait_rt.buffer<4 x f32>
    ait_rt.launch @relu ins(%x) outs(%a) workspace() stream 0
    ait_rt.copy %a to %y
    ait_rt.copy %x to %a
    ait_rt.launch @relu ins(%a) outs(%z) workspace() stream 0
  }

  // Written twice: the order decides.
  // CHECK-LABEL: ait_rt.program @twice
  // CHECK-COUNT-2: ait_rt.launch @twice_copy_0
  ait_rt.program @twice arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x f32>
    ait_rt.copy %x to %y
    ait_rt.copy %z to %y
  }

  // State, elements of another size, a launch in between.
  // CHECK-LABEL: ait_rt.program @apart
  // CHECK-COUNT-6: ait_rt.launch
  ait_rt.program @apart arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x f32>
    %h = ait_rt.input "h" : !ait_rt.buffer<4 x f16>
    %k = ait_rt.input "k" donated : !ait_rt.buffer<4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x f32>
    %g = ait_rt.output "g" : !ait_rt.buffer<4 x f16>
    %z = ait_rt.output "z" : !ait_rt.buffer<4 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<4 x f32>
    %v = ait_rt.output "v" : !ait_rt.buffer<4 x f32>
    %c = ait_rt.output "c" in place of %k : !ait_rt.buffer<4 x f32>
    ait_rt.copy %x to %y
    ait_rt.copy %h to %g
    ait_rt.copy %x to %z
    ait_rt.launch @relu ins(%x) outs(%w) workspace() stream 0
    ait_rt.copy %x to %v
    ait_rt.copy %x to %k
  }
}
