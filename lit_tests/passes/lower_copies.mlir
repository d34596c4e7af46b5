// RUN: ait-opt %s -p lower-copies | filecheck %s
// RUN: ait-opt %s -p lower-copies --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

builtin.module attributes {ait.target = "cpu", ait.arch = "native"} {
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<4 x f32>) {
    %1 = ait.relu %0 : !ait.tensor<4 x f32>
    ait_rt.return %1 : !ait.tensor<4 x f32>
  }

  ait_rt.kernel @relu_8 "native" {} (%0: !ait.tensor<8 x f32>) {
    %1 = ait.relu %0 : !ait.tensor<8 x f32>
    ait_rt.return %1 : !ait.tensor<8 x f32>
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

  // State, elements of another size.
  // CHECK-LABEL: ait_rt.program @apart
  // CHECK: ait_rt.launch @apart_copies_0 ins(%x, %x) outs(%y, %z)
  // CHECK-NEXT: ait_rt.launch @apart_copy_1 ins(%h) outs(%g)
  // CHECK-NEXT: ait_rt.launch @relu
  // CHECK-NEXT: ait_rt.launch @apart_copy_2 ins(%x) outs(%k)
  ait_rt.program @apart arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x f32>
    %h = ait_rt.input "h" : !ait_rt.buffer<4 x f16>
    %k = ait_rt.input "k" donated : !ait_rt.buffer<4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x f32>
    %g = ait_rt.output "g" : !ait_rt.buffer<4 x f16>
    %z = ait_rt.output "z" : !ait_rt.buffer<4 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<4 x f32>
    %c = ait_rt.output "c" in place of %k : !ait_rt.buffer<4 x f32>
    ait_rt.copy %x to %y
    ait_rt.copy %h to %g
    ait_rt.copy %x to %z
    ait_rt.launch @relu ins(%x) outs(%w) workspace() stream 0
    ait_rt.copy %x to %k
  }

  // Copies of parts of one buffer are one launch, also where something needs the first part before the second one is
  // copied, and where another part of their target is written in between.
  // CHECK-LABEL: ait_rt.program @gathered
  // CHECK: ait_rt.launch @relu_8 ins(%x) outs([[A:%.*]]) workspace
  // CHECK: ait_rt.launch @gathered_copies_0 ins({{.*}}, {{.*}}) outs({{.*}}, {{.*}})
  // CHECK-NEXT: ait_rt.launch @relu
  // CHECK: ait_rt.launch @relu
  // CHECK-NOT: ait_rt.launch
  // CHECK: }
  ait_rt.program @gathered arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<8 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<8 x f32>
    %a = ait_rt.alloc : !ait_rt.buffer<8 x f32>
    ait_rt.launch @relu_8 ins(%x) outs(%a) workspace() stream 0
    %0 = ait_rt.view %a offset (0) strides [1] : !ait_rt.buffer<4 x f32>
    %b = ait_rt.alloc : !ait_rt.buffer<4 x f32>
    ait_rt.copy %0 to %b
    ait_rt.launch @relu ins(%b) outs(%y) workspace() stream 0
    %1 = ait_rt.view %z offset (0) strides [1] : !ait_rt.buffer<4 x f32>
    ait_rt.launch @relu ins(%b) outs(%1) workspace() stream 0
    %2 = ait_rt.view %a offset (4) strides [1] : !ait_rt.buffer<4 x f32>
    %3 = ait_rt.view %z offset (4) strides [1] : !ait_rt.buffer<4 x f32>
    ait_rt.copy %2 to %3
  }

  // What is copied changes in between.
  // CHECK-LABEL: ait_rt.program @changed
  // CHECK: ait_rt.launch @relu
  // CHECK-NEXT: ait_rt.launch @changed_copy_0 ins(%a) outs(%y)
  // CHECK-NEXT: ait_rt.launch @relu
  // CHECK-NEXT: ait_rt.launch @changed_copy_0 ins(%a) outs(%z)
  ait_rt.program @changed arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x f32>
    %t = ait_rt.input "t" : !ait_rt.buffer<4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<4 x f32>
    %a = ait_rt.alloc : !ait_rt.buffer<4 x f32>
    ait_rt.launch @relu ins(%x) outs(%a) workspace() stream 0
    ait_rt.copy %a to %y
    ait_rt.launch @relu ins(%t) outs(%a) workspace() stream 0
    ait_rt.copy %a to %z
  }

  // What is written is read in between.
  // CHECK-LABEL: ait_rt.program @read
  // CHECK: ait_rt.launch @read_copies_0 ins(%x, %t) outs(%y, %v)
  // CHECK-NEXT: ait_rt.launch @relu
  // CHECK-NEXT: ait_rt.launch @read_copy_1 ins(%x) outs(%v)
  ait_rt.program @read arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x f32>
    %t = ait_rt.input "t" : !ait_rt.buffer<4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x f32>
    %v = ait_rt.output "v" : !ait_rt.buffer<4 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<4 x f32>
    ait_rt.copy %x to %y
    ait_rt.copy %t to %v
    ait_rt.launch @relu ins(%v) outs(%w) workspace() stream 0
    ait_rt.copy %x to %v
  }

  // What is written was written as a whole in between, by a launch.
  // CHECK-LABEL: ait_rt.program @written
  // CHECK: ait_rt.launch @written_copy_0 ins(%x) outs(%y)
  // CHECK-NEXT: ait_rt.launch @relu
  // CHECK-NEXT: ait_rt.launch @written_copy_0 ins(%x) outs(%v)
  ait_rt.program @written arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x f32>
    %t = ait_rt.input "t" : !ait_rt.buffer<4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x f32>
    %v = ait_rt.output "v" : !ait_rt.buffer<4 x f32>
    ait_rt.copy %x to %y
    ait_rt.launch @relu ins(%t) outs(%v) workspace() stream 0
    ait_rt.copy %x to %v
  }

  // Too much is launched in between.
  // CHECK-LABEL: ait_rt.program @far
  // CHECK-NOT: far_copies
  // CHECK: ait_rt.launch @far_copy_0 ins(%x) outs(%y)
  // CHECK-COUNT-8: ait_rt.launch @relu
  // CHECK: ait_rt.launch @far_copy_0 ins(%x) outs(%z)
  ait_rt.program @far arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<4 x f32>
    %o0 = ait_rt.output "o0" : !ait_rt.buffer<4 x f32>
    %o1 = ait_rt.output "o1" : !ait_rt.buffer<4 x f32>
    %o2 = ait_rt.output "o2" : !ait_rt.buffer<4 x f32>
    %o3 = ait_rt.output "o3" : !ait_rt.buffer<4 x f32>
    %o4 = ait_rt.output "o4" : !ait_rt.buffer<4 x f32>
    %o5 = ait_rt.output "o5" : !ait_rt.buffer<4 x f32>
    %o6 = ait_rt.output "o6" : !ait_rt.buffer<4 x f32>
    %o7 = ait_rt.output "o7" : !ait_rt.buffer<4 x f32>
    ait_rt.copy %x to %y
    ait_rt.launch @relu ins(%x) outs(%o0) workspace() stream 0
    ait_rt.launch @relu ins(%x) outs(%o1) workspace() stream 0
    ait_rt.launch @relu ins(%x) outs(%o2) workspace() stream 0
    ait_rt.launch @relu ins(%x) outs(%o3) workspace() stream 0
    ait_rt.launch @relu ins(%x) outs(%o4) workspace() stream 0
    ait_rt.launch @relu ins(%x) outs(%o5) workspace() stream 0
    ait_rt.launch @relu ins(%x) outs(%o6) workspace() stream 0
    ait_rt.launch @relu ins(%x) outs(%o7) workspace() stream 0
    ait_rt.copy %x to %z
  }
}
