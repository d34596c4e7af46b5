// RUN: ait-opt %s -p remove-copies | filecheck %s
// RUN: ait-opt %s -p remove-copies --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// @relu takes any strides, @softmax only rows whose elements stand side by side.
builtin.module attributes {ait.target = "cpu", ait.arch = "native"} {
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<4 x 4 x f32>) {
    %1 = ait.fused_elementwise(%0) {
    ^bb0(%2: f32):
      %3 = ait.relu %2 : f32
      ait.yield %3 : f32
    } : !ait.tensor<4 x 4 x f32>
    ait_rt.return %1 : !ait.tensor<4 x 4 x f32>
  }
  ait_rt.kernel @softmax "native" {} (%0: !ait.tensor<4 x 4 x f32>) {
    %1 = ait.softmax %0 dim 1 : !ait.tensor<4 x 4 x f32>
    ait_rt.return %1 : !ait.tensor<4 x 4 x f32>
  }

  ait_rt.kernel @relu3 "native" {} (%0: !ait.tensor<2 x 3 x 4 x f32>) {
    %1 = ait.relu %0 : !ait.tensor<2 x 3 x 4 x f32>
    ait_rt.return %1 : !ait.tensor<2 x 3 x 4 x f32>
  }
  ait_rt.kernel @softmax3 "native" {} (%0: !ait.tensor<3 x 2 x 4 x f32>) {
    %1 = ait.softmax %0 dim 2 : !ait.tensor<3 x 2 x 4 x f32>
    ait_rt.return %1 : !ait.tensor<3 x 2 x 4 x f32>
  }
  ait_rt.kernel @relu4 "native" {} (%0: !ait.tensor<1 x 2 x 3 x 4 x f32>) {
    %1 = ait.relu %0 : !ait.tensor<1 x 2 x 3 x 4 x f32>
    ait_rt.return %1 : !ait.tensor<1 x 2 x 3 x 4 x f32>
  }
  ait_rt.kernel @bmm "native" {} (%0: !ait.tensor<2 x 3 x 2 x 5 x 4 x f32>, %1: !ait.tensor<2 x 3 x 2 x 5 x 4 x f32>) {
    %2 = ait.bmm rcr %0, %1 : !ait.tensor<2 x 3 x 2 x 5 x 5 x f32>
    ait_rt.return %2 : !ait.tensor<2 x 3 x 2 x 5 x 5 x f32>
  }

  // A transposed input is read in place by @relu, and copied for @softmax.
  // CHECK-LABEL: ait_rt.program @reads
  ait_rt.program @reads arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<4 x 4 x f32>
    // CHECK: [[T:%.*]] = ait_rt.view %x offset (0) strides [1, 4]
    // CHECK-NEXT: ait_rt.launch @relu ins([[T]]) outs(%y)
    %t = ait_rt.view %x offset (0) strides [1, 4] : !ait_rt.buffer<4 x 4 x f32>
    %a = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %t to %a
    ait_rt.launch @relu ins(%a) outs(%y) workspace() stream 0
    // CHECK-NEXT: [[B:%.*]] = ait_rt.alloc
    // CHECK-NEXT: ait_rt.copy [[T]] to [[B]]
    // CHECK-NEXT: ait_rt.launch @softmax ins([[B]]) outs(%z)
    %b = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %t to %b
    ait_rt.launch @softmax ins(%b) outs(%z) workspace() stream 0
  }

  // One reader of two does not accept the strides.
  // CHECK-LABEL: ait_rt.program @reads_of_two
  ait_rt.program @reads_of_two arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<4 x 4 x f32>
    // CHECK: ait_rt.copy
    %t = ait_rt.view %x offset (0) strides [1, 4] : !ait_rt.buffer<4 x 4 x f32>
    %a = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %t to %a
    ait_rt.launch @relu ins(%a) outs(%y) workspace() stream 0
    ait_rt.launch @softmax ins(%a) outs(%z) workspace() stream 0
  }

  // What is an output is written there; two kernels write their parts of a concat, which is defined before them.
  // CHECK-LABEL: ait_rt.program @writes
  ait_rt.program @writes arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 8 x f32>
    // CHECK: [[L:%.*]] = ait_rt.view %y offset (0) strides [8, 1]
    // CHECK-NEXT: ait_rt.launch @softmax ins(%x) outs([[L]])
    // CHECK-NEXT: [[R:%.*]] = ait_rt.view %y offset (4) strides [8, 1]
    // CHECK-NEXT: ait_rt.launch @relu ins([[L]]) outs([[R]])
    // CHECK-NEXT: }
    %a = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @softmax ins(%x) outs(%a) workspace() stream 0
    %b = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @relu ins(%a) outs(%b) workspace() stream 0
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 8 x f32>
    %0 = ait_rt.view %c offset (0) strides [8, 1] : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %a to %0
    %1 = ait_rt.view %c offset (4) strides [8, 1] : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %b to %1
    ait_rt.copy %c to %y
  }

  // The writer does not accept the strides of a view, and a second part of the output is not where it writes.
  // CHECK-LABEL: ait_rt.program @refused_writes
  ait_rt.program @refused_writes arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 4 x f32>
    // CHECK: [[A:%.*]] = ait_rt.alloc
    // CHECK-NEXT: ait_rt.launch @softmax ins(%x) outs([[A]])
    // CHECK-NEXT: [[T:%.*]] = ait_rt.view %y offset (0) strides [1, 4]
    // CHECK-NEXT: ait_rt.copy [[A]] to [[T]]
    %a = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @softmax ins(%x) outs(%a) workspace() stream 0
    %t = ait_rt.view %y offset (0) strides [1, 4] : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %a to %t
  }

  // Kernels write the parts of an output at once, also where others read a part of it. What copies write is copied on.
  // CHECK-LABEL: ait_rt.program @parts
  ait_rt.program @parts arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 8 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<4 x 16 x f32>
    %s = ait_rt.output "s" : !ait_rt.buffer<4 x 4 x f32>
    // CHECK-NOT: ait_rt.alloc : !ait_rt.buffer<4 x 8 x f32>
    // CHECK: [[A:%.*]] = ait_rt.view %y offset (0) strides [8, 1] : !ait_rt.buffer<4 x 4 x f32>
    // CHECK-NEXT: ait_rt.launch @softmax ins(%x) outs([[A]])
    // CHECK-NEXT: [[B:%.*]] = ait_rt.view %y offset (4) strides [8, 1] : !ait_rt.buffer<4 x 4 x f32>
    // CHECK-NEXT: ait_rt.launch @relu ins(%x) outs([[B]])
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 8 x f32>
    %0 = ait_rt.view %c offset (0) strides [8, 1] : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @softmax ins(%x) outs(%0) workspace() stream 0
    %1 = ait_rt.view %c offset (4) strides [8, 1] : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @relu ins(%x) outs(%1) workspace() stream 0
    ait_rt.copy %c to %y
    %2 = ait_rt.view %y offset (0) strides [8, 1] : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @relu ins(%2) outs(%s) workspace() stream 0
    // CHECK: [[D:%.*]] = ait_rt.alloc : !ait_rt.buffer<4 x 16 x f32>
    // CHECK: ait_rt.copy [[D]] to
    %d = ait_rt.alloc : !ait_rt.buffer<4 x 16 x f32>
    %3 = ait_rt.view %d offset (0) strides [16, 1] : !ait_rt.buffer<4 x 8 x f32>
    ait_rt.copy %y to %3
    %4 = ait_rt.view %d offset (8) strides [16, 1] : !ait_rt.buffer<4 x 8 x f32>
    ait_rt.copy %y to %4
    %5 = ait_rt.view %z offset (0) strides [16, 1] : !ait_rt.buffer<4 x 16 x f32>
    ait_rt.copy %d to %5
  }

  // A kernel writes through the inverse of the permutation that its result is copied through: into an output, into a
  // part of a concat.
  // CHECK-LABEL: ait_rt.program @permuted
  ait_rt.program @permuted arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<2 x 3 x 4 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<3 x 2 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<3 x 2 x 4 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<3 x 4 x 4 x f32>
    // CHECK: [[I:%.*]] = ait_rt.view %y offset (0) strides [4, 8, 1]
    // CHECK-NEXT: ait_rt.launch @relu3 ins(%x) outs([[I]])
    %a = ait_rt.alloc : !ait_rt.buffer<2 x 3 x 4 x f32>
    ait_rt.launch @relu3 ins(%x) outs(%a) workspace() stream 0
    %t = ait_rt.view %a offset (0) strides [4, 12, 1] : !ait_rt.buffer<3 x 2 x 4 x f32>
    ait_rt.copy %t to %y
    // CHECK-NEXT: [[P:%.*]] = ait_rt.view %w offset (8) strides [16, 4, 1]
    // CHECK-NEXT: [[J:%.*]] = ait_rt.view [[P]] offset (0) strides [4, 16, 1]
    // CHECK-NEXT: ait_rt.launch @relu3 ins(%x) outs([[J]])
    %b = ait_rt.alloc : !ait_rt.buffer<2 x 3 x 4 x f32>
    ait_rt.launch @relu3 ins(%x) outs(%b) workspace() stream 0
    %u = ait_rt.view %b offset (0) strides [4, 12, 1] : !ait_rt.buffer<3 x 2 x 4 x f32>
    %p = ait_rt.view %w offset (8) strides [16, 4, 1] : !ait_rt.buffer<3 x 2 x 4 x f32>
    ait_rt.copy %u to %p
    // CHECK-NEXT: [[Q:%.*]] = ait_rt.view %w offset (0) strides [16, 4, 1]
    // CHECK-NEXT: ait_rt.launch @softmax3 ins(%z) outs([[Q]])
    // CHECK-NEXT: }
    %q = ait_rt.view %w offset (0) strides [16, 4, 1] : !ait_rt.buffer<3 x 2 x 4 x f32>
    ait_rt.launch @softmax3 ins(%z) outs(%q) workspace() stream 0
  }

  // The result is read in the written order, too; or the last dim moves; or the writer has too many loops.
  // CHECK-LABEL: ait_rt.program @refused_permuted
  ait_rt.program @refused_permuted arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<2 x 3 x 4 x f32>
    %v = ait_rt.input "v" : !ait_rt.buffer<4 x 4 x f32>
    %m = ait_rt.input "m" : !ait_rt.buffer<2 x 3 x 2 x 5 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<3 x 2 x 4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<2 x 3 x 4 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<4 x 4 x f32>
    %n = ait_rt.output "n" : !ait_rt.buffer<2 x 3 x 2 x 5 x 5 x f32>
    // CHECK-COUNT-3: ait_rt.copy
    // CHECK-NEXT: }
    %a = ait_rt.alloc : !ait_rt.buffer<2 x 3 x 4 x f32>
    ait_rt.launch @relu3 ins(%x) outs(%a) workspace() stream 0
    %t = ait_rt.view %a offset (0) strides [4, 12, 1] : !ait_rt.buffer<3 x 2 x 4 x f32>
    ait_rt.copy %t to %y
    ait_rt.launch @relu3 ins(%a) outs(%z) workspace() stream 0
    %b = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @relu ins(%v) outs(%b) workspace() stream 0
    %u = ait_rt.view %b offset (0) strides [1, 4] : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %u to %w
    %c = ait_rt.alloc : !ait_rt.buffer<2 x 3 x 2 x 5 x 5 x f32>
    ait_rt.launch @bmm ins(%m, %m) outs(%c) workspace() stream 0
    %s = ait_rt.view %c offset (0) strides [25, 50, 150, 5, 1] : !ait_rt.buffer<2 x 3 x 2 x 5 x 5 x f32>
    ait_rt.copy %s to %n
  }

  // Dims of 1 that the view lacks, or has in addition, are in no one's way.
  // CHECK-LABEL: ait_rt.program @dims_of_one
  ait_rt.program @dims_of_one arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<1 x 2 x 3 x 4 x f32>
    %v = ait_rt.input "v" : !ait_rt.buffer<2 x 3 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<3 x 2 x 4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<3 x 1 x 2 x 4 x f32>
    // CHECK: [[I:%.*]] = ait_rt.view %y offset (0) strides [24, 4, 8, 1] : !ait_rt.buffer<1 x 2 x 3 x 4 x f32>
    // CHECK-NEXT: ait_rt.launch @relu4 ins(%x) outs([[I]])
    %a = ait_rt.alloc : !ait_rt.buffer<1 x 2 x 3 x 4 x f32>
    ait_rt.launch @relu4 ins(%x) outs(%a) workspace() stream 0
    %t = ait_rt.view %a offset (0) strides [4, 12, 1] : !ait_rt.buffer<3 x 2 x 4 x f32>
    ait_rt.copy %t to %y
    // CHECK-NEXT: [[J:%.*]] = ait_rt.view %z offset (0) strides [4, 8, 1] : !ait_rt.buffer<2 x 3 x 4 x f32>
    // CHECK-NEXT: ait_rt.launch @relu3 ins(%v) outs([[J]])
    // CHECK-NEXT: }
    %b = ait_rt.alloc : !ait_rt.buffer<2 x 3 x 4 x f32>
    ait_rt.launch @relu3 ins(%v) outs(%b) workspace() stream 0
    %u = ait_rt.view %b offset (0) strides [4, 4, 12, 1] : !ait_rt.buffer<3 x 1 x 2 x 4 x f32>
    ait_rt.copy %u to %z
  }

  // A part of the buffer, and a view that repeats it, show something else.
  // CHECK-LABEL: ait_rt.program @other_dims
  ait_rt.program @other_dims arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<1 x 2 x 3 x 4 x f32>
    %v = ait_rt.input "v" : !ait_rt.buffer<2 x 3 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<3 x 4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<3 x 5 x 2 x 4 x f32>
    // CHECK-COUNT-2: ait_rt.copy
    // CHECK-NEXT: }
    %a = ait_rt.alloc : !ait_rt.buffer<1 x 2 x 3 x 4 x f32>
    ait_rt.launch @relu4 ins(%x) outs(%a) workspace() stream 0
    %t = ait_rt.view %a offset (0) strides [4, 1] : !ait_rt.buffer<3 x 4 x f32>
    ait_rt.copy %t to %y
    %b = ait_rt.alloc : !ait_rt.buffer<2 x 3 x 4 x f32>
    ait_rt.launch @relu3 ins(%v) outs(%b) workspace() stream 0
    %u = ait_rt.view %b offset (0) strides [4, 0, 12, 1] : !ait_rt.buffer<3 x 5 x 2 x 4 x f32>
    ait_rt.copy %u to %z
  }

  // A view that repeats elements has no inverse.
  // CHECK-LABEL: ait_rt.program @no_permutation
  ait_rt.program @no_permutation arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 4 x f32>
    // CHECK: ait_rt.copy
    %a = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @relu ins(%x) outs(%a) workspace() stream 0
    %t = ait_rt.view %a offset (0) strides [1, 0] : !ait_rt.buffer<4 x 4 x f32>
    %b = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %t to %b
    ait_rt.launch @softmax ins(%b) outs(%y) workspace() stream 0
  }

  // What is an output in another shape is written there, whoever else reads it.
  // CHECK-LABEL: ait_rt.program @reshaped
  ait_rt.program @reshaped arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<2 x 1 x 8 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<4 x 4 x f32>
    // CHECK: [[A:%.*]] = ait_rt.view %y offset (0) strides [4, 1] : !ait_rt.buffer<4 x 4 x f32>
    // CHECK-NEXT: ait_rt.launch @softmax ins(%x) outs([[A]])
    // CHECK-NEXT: ait_rt.launch @relu ins([[A]]) outs(%z)
    // CHECK-NEXT: }
    %a = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @softmax ins(%x) outs(%a) workspace() stream 0
    %v = ait_rt.view %a offset (0) strides [8, 3, 1] : !ait_rt.buffer<2 x 1 x 8 x f32>
    ait_rt.copy %v to %y
    ait_rt.launch @relu ins(%a) outs(%z) workspace() stream 0
  }

  // A part, another order, a target that is a part or has parts.
  // CHECK-LABEL: ait_rt.program @not_reshaped
  ait_rt.program @not_reshaped arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<2 x 4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<2 x 8 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<4 x 4 x f32>
    %u = ait_rt.output "u" : !ait_rt.buffer<4 x 4 x f32>
    %s = ait_rt.output "s" : !ait_rt.buffer<16 x f32>
    %t = ait_rt.output "t" : !ait_rt.buffer<4 x 4 x f32>
    // CHECK: [[A:%.*]] = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    // CHECK: ait_rt.copy {{.*}} to %y
    %a = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @softmax ins(%x) outs(%a) workspace() stream 0
    %0 = ait_rt.view %a offset (0) strides [4, 1] : !ait_rt.buffer<2 x 4 x f32>
    ait_rt.copy %0 to %y
    // CHECK: [[B:%.*]] = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    // CHECK: ait_rt.copy {{.*}} to %u
    %b = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @softmax ins(%x) outs(%b) workspace() stream 0
    %1 = ait_rt.view %b offset (0) strides [1, 4] : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %1 to %u
    ait_rt.launch @softmax ins(%b) outs(%w) workspace() stream 0
    // CHECK: [[C:%.*]] = ait_rt.alloc : !ait_rt.buffer<2 x 4 x f32>
    // CHECK: ait_rt.copy
    // CHECK: ait_rt.copy
    %c = ait_rt.alloc : !ait_rt.buffer<2 x 4 x f32>
    %2 = ait_rt.view %x offset (0) strides [8, 1] : !ait_rt.buffer<2 x 4 x f32>
    ait_rt.copy %2 to %c
    %3 = ait_rt.view %c offset (0) strides [4, 1] : !ait_rt.buffer<2 x 4 x f32>
    %4 = ait_rt.view %z offset (0) strides [8, 1] : !ait_rt.buffer<2 x 4 x f32>
    ait_rt.copy %3 to %4
    %5 = ait_rt.view %z offset (4) strides [8, 1] : !ait_rt.buffer<2 x 4 x f32>
    ait_rt.copy %2 to %5
    // CHECK: [[D:%.*]] = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    // CHECK: ait_rt.copy {{.*}} to %s
    %d = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @softmax ins(%x) outs(%d) workspace() stream 0
    %6 = ait_rt.view %d offset (0) strides [1] : !ait_rt.buffer<16 x f32>
    ait_rt.copy %6 to %s
    %7 = ait_rt.view %s offset (0) strides [4, 1] : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @relu ins(%7) outs(%t) workspace() stream 0
  }
}
