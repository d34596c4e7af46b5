// RUN: ait-opt %s -p remove-copies | filecheck %s
// RUN: ait-opt %s -p remove-copies --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// Nested concats: what kernels write part by part is written into a part of another buffer at once. @relu takes any
// strides, @softmax only rows whose elements stand side by side.
builtin.module attributes {ait.target = "cpu", ait.arch = "native"} {
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<4 x 3 x 1 x f32>) {
    %1 = ait.relu %0 : !ait.tensor<4 x 3 x 1 x f32>
    ait_rt.return %1 : !ait.tensor<4 x 3 x 1 x f32>
  }
  ait_rt.kernel @softmax "native" {} (%0: !ait.tensor<4 x 3 x 2 x f32>) {
    %1 = ait.softmax %0 dim 2 : !ait.tensor<4 x 3 x 2 x f32>
    ait_rt.return %1 : !ait.tensor<4 x 3 x 2 x f32>
  }
  ait_rt.kernel @update "native" {} (%0: !ait.tensor<4 x 3 x 1 x f32>, %1: !ait.tensor<1 x 3 x 1 x f32>, %2: !ait.tensor<i64>) {
    %3 = ait.update_slice %0, %1 at %2 dim 0 : !ait.tensor<4 x 3 x 1 x f32>
    ait_rt.return %3 : !ait.tensor<4 x 3 x 1 x f32>
  }

  // As it is.
  // CHECK-LABEL: ait_rt.program @whole arena
  // CHECK-NOT: ait_rt.alloc
  // CHECK: [[T:%.*]] = ait_rt.view %y offset (4) strides [10, 2, 1]
  // CHECK-NEXT: [[P:%.*]] = ait_rt.view [[T]] offset (0) strides [10, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
  // CHECK-NEXT: ait_rt.launch @relu ins(%x) outs([[P]])
  // CHECK-NEXT: [[Q:%.*]] = ait_rt.view [[T]] offset (1) strides [10, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
  // CHECK-NEXT: ait_rt.launch @relu ins(%z) outs([[Q]])
  // CHECK-NOT: ait_rt.copy %c
  // CHECK-NOT: ait_rt.copy %v
  ait_rt.program @whole arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<4 x 2 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 5 x 2 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    %t = ait_rt.view %y offset (4) strides [10, 2, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
    ait_rt.copy %c to %t
    %rest = ait_rt.view %y offset (0) strides [10, 2, 1] : !ait_rt.buffer<4 x 2 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // In another shape.
  // CHECK-LABEL: ait_rt.program @reshaped arena
  // CHECK-NOT: ait_rt.alloc
  // CHECK: [[T:%.*]] = ait_rt.view %y offset (2) strides [8, 1]
  // CHECK-NEXT: [[P:%.*]] = ait_rt.view [[T]] offset (0) strides [8, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
  // CHECK-NEXT: ait_rt.launch @relu ins(%x) outs([[P]])
  // CHECK-NEXT: [[Q:%.*]] = ait_rt.view [[T]] offset (1) strides [8, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
  // CHECK-NEXT: ait_rt.launch @relu ins(%z) outs([[Q]])
  // CHECK-NOT: ait_rt.copy %c
  // CHECK-NOT: ait_rt.copy %v
  ait_rt.program @reshaped arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<4 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 8 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    %v = ait_rt.view %c offset (0) strides [6, 1] : !ait_rt.buffer<4 x 6 x f32>
    %t = ait_rt.view %y offset (2) strides [8, 1] : !ait_rt.buffer<4 x 6 x f32>
    ait_rt.copy %v to %t
    %rest = ait_rt.view %y offset (0) strides [8, 1] : !ait_rt.buffer<4 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // What follows stays as it is.

  // Something reads the buffer itself.
  // CHECK-LABEL: ait_rt.program @beside arena
  // CHECK: ait_rt.copy %c to %t
  ait_rt.program @beside arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<4 x 2 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 5 x 2 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<4 x 3 x 2 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    %t = ait_rt.view %y offset (4) strides [10, 2, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
    ait_rt.launch @softmax ins(%c) outs(%w) workspace() stream 0
    ait_rt.copy %c to %t
    %rest = ait_rt.view %y offset (0) strides [10, 2, 1] : !ait_rt.buffer<4 x 2 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // The view is read by another operation.
  // CHECK-LABEL: ait_rt.program @view_read arena
  // CHECK: ait_rt.copy %v to %t
  ait_rt.program @view_read arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<4 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 8 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<4 x 6 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    %v = ait_rt.view %c offset (0) strides [6, 1] : !ait_rt.buffer<4 x 6 x f32>
    %t = ait_rt.view %y offset (2) strides [8, 1] : !ait_rt.buffer<4 x 6 x f32>
    ait_rt.copy %v to %t
    ait_rt.copy %v to %w
    %rest = ait_rt.view %y offset (0) strides [8, 1] : !ait_rt.buffer<4 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // A copy writes a part.
  // CHECK-LABEL: ait_rt.program @part_copied arena
  // CHECK: ait_rt.copy %c to %t
  ait_rt.program @part_copied arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<4 x 2 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 5 x 2 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.copy %z to %q
    %t = ait_rt.view %y offset (4) strides [10, 2, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
    ait_rt.copy %c to %t
    %rest = ait_rt.view %y offset (0) strides [10, 2, 1] : !ait_rt.buffer<4 x 2 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // The view moves elements.
  // CHECK-LABEL: ait_rt.program @permuted arena
  // CHECK: ait_rt.copy %v to %t
  ait_rt.program @permuted arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<3 x 4 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<3 x 4 x 4 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    %v = ait_rt.view %c offset (0) strides [2, 6, 1] : !ait_rt.buffer<3 x 4 x 2 x f32>
    %t = ait_rt.view %y offset (2) strides [16, 4, 1] : !ait_rt.buffer<3 x 4 x 2 x f32>
    ait_rt.copy %v to %t
    %rest = ait_rt.view %y offset (0) strides [16, 4, 1] : !ait_rt.buffer<3 x 4 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // The view shows some of the elements.
  // CHECK-LABEL: ait_rt.program @some arena
  // CHECK: ait_rt.copy %v to %t
  ait_rt.program @some arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<3 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<3 x 8 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    %v = ait_rt.view %c offset (0) strides [6, 1] : !ait_rt.buffer<3 x 6 x f32>
    %t = ait_rt.view %y offset (2) strides [8, 1] : !ait_rt.buffer<3 x 6 x f32>
    ait_rt.copy %v to %t
    %rest = ait_rt.view %y offset (0) strides [8, 1] : !ait_rt.buffer<3 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // No strides say where the parts would lie.
  // CHECK-LABEL: ait_rt.program @no_strides arena
  // CHECK: ait_rt.copy %v to %t
  ait_rt.program @no_strides arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<3 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<3 x 10 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    %v = ait_rt.view %c offset (0) strides [8, 1] : !ait_rt.buffer<3 x 8 x f32>
    %t = ait_rt.view %y offset (2) strides [10, 1] : !ait_rt.buffer<3 x 8 x f32>
    ait_rt.copy %v to %t
    %rest = ait_rt.view %y offset (0) strides [10, 1] : !ait_rt.buffer<3 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // A kernel needs elements side by side.
  // CHECK-LABEL: ait_rt.program @refused arena
  // CHECK: ait_rt.copy %c to %t
  ait_rt.program @refused arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<4 x 3 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 3 x 4 x 2 x f32>
    %u = ait_rt.input "u" : !ait_rt.buffer<4 x 3 x 2 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 4 x f32>
    %p = ait_rt.view %c offset (0) strides [12, 4, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
    ait_rt.launch @softmax ins(%u) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (2) strides [12, 4, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
    ait_rt.launch @softmax ins(%u) outs(%q) workspace() stream 0
    %t = ait_rt.view %y offset (1) strides [24, 8, 2] : !ait_rt.buffer<4 x 3 x 4 x f32>
    ait_rt.copy %c to %t
    %rest = ait_rt.view %y offset (0) strides [24, 8, 2] : !ait_rt.buffer<4 x 3 x 4 x f32>
    ait_rt.copy %e to %rest
  }

  // A part is no stretch along one dim.
  // CHECK-LABEL: ait_rt.program @other_part arena
  // CHECK: ait_rt.copy %c to %t
  ait_rt.program @other_part arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<4 x 2 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 5 x 2 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [3, 1, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (12) strides [3, 1, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    %t = ait_rt.view %y offset (4) strides [10, 2, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
    ait_rt.copy %c to %t
    %rest = ait_rt.view %y offset (0) strides [10, 2, 1] : !ait_rt.buffer<4 x 2 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // A launch updates a part of the target.
  // CHECK-LABEL: ait_rt.program @updated arena
  // CHECK: ait_rt.copy %c to %t
  ait_rt.program @updated arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<4 x 2 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %n = ait_rt.input "n" : !ait_rt.buffer<1 x 3 x 1 x f32>
    %i = ait_rt.input "i" : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 5 x 2 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    %t = ait_rt.view %y offset (4) strides [10, 2, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
    ait_rt.copy %c to %t
    %s = ait_rt.view %y offset (4) strides [10, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @update ins(%s, %n, %i) outs(%s) workspace() stream 0
    %rest = ait_rt.view %y offset (0) strides [10, 2, 1] : !ait_rt.buffer<4 x 2 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // The same in another shape.
  // CHECK-LABEL: ait_rt.program @updated_reshaped arena
  // CHECK: ait_rt.copy %v to %t
  ait_rt.program @updated_reshaped arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<4 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %n = ait_rt.input "n" : !ait_rt.buffer<1 x 3 x 1 x f32>
    %i = ait_rt.input "i" : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 8 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    %v = ait_rt.view %c offset (0) strides [6, 1] : !ait_rt.buffer<4 x 6 x f32>
    %t = ait_rt.view %y offset (2) strides [8, 1] : !ait_rt.buffer<4 x 6 x f32>
    ait_rt.copy %v to %t
    %s = ait_rt.view %y offset (2) strides [8, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @update ins(%s, %n, %i) outs(%s) workspace() stream 0
    %rest = ait_rt.view %y offset (0) strides [8, 1] : !ait_rt.buffer<4 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // The buffer is made once and copied in each step.
  // CHECK-LABEL: ait_rt.program @in_a_loop arena
  // CHECK: ait_rt.copy %c to %t
  ait_rt.program @in_a_loop arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<2 x 4 x 2 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<2 x 4 x 5 x 2 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    ait_rt.loop step to (2) {
      %t = ait_rt.view %y offset (40*step + 4) strides [10, 2, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
      ait_rt.copy %c to %t
    }
    %rest = ait_rt.view %y offset (0) strides [40, 10, 2, 1] : !ait_rt.buffer<2 x 4 x 2 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // The same in another shape.
  // CHECK-LABEL: ait_rt.program @in_a_loop_reshaped arena
  // CHECK: ait_rt.copy %v to %t
  ait_rt.program @in_a_loop_reshaped arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<2 x 4 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<2 x 4 x 8 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    ait_rt.loop step to (2) {
      %v = ait_rt.view %c offset (0) strides [6, 1] : !ait_rt.buffer<4 x 6 x f32>
      %t = ait_rt.view %y offset (32*step + 2) strides [8, 1] : !ait_rt.buffer<4 x 6 x f32>
      ait_rt.copy %v to %t
    }
    %rest = ait_rt.view %y offset (0) strides [32, 8, 1] : !ait_rt.buffer<2 x 4 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // A launch updates a part after it was copied.
  // CHECK-LABEL: ait_rt.program @updated_later arena
  // CHECK: ait_rt.copy %c to %t
  ait_rt.program @updated_later arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<4 x 2 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %n = ait_rt.input "n" : !ait_rt.buffer<1 x 3 x 1 x f32>
    %i = ait_rt.input "i" : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 5 x 2 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    %t = ait_rt.view %y offset (4) strides [10, 2, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
    ait_rt.copy %c to %t
    ait_rt.launch @update ins(%p, %n, %i) outs(%p) workspace() stream 0
    ait_rt.launch @relu ins(%p) outs(%w) workspace() stream 0
    %rest = ait_rt.view %y offset (0) strides [10, 2, 1] : !ait_rt.buffer<4 x 2 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // The same in another shape.
  // CHECK-LABEL: ait_rt.program @updated_later_reshaped arena
  // CHECK: ait_rt.copy %v to %t
  ait_rt.program @updated_later_reshaped arena (0) {
    %e = ait_rt.input "e" : !ait_rt.buffer<4 x 2 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %n = ait_rt.input "n" : !ait_rt.buffer<1 x 3 x 1 x f32>
    %i = ait_rt.input "i" : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 8 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    %v = ait_rt.view %c offset (0) strides [6, 1] : !ait_rt.buffer<4 x 6 x f32>
    %t = ait_rt.view %y offset (2) strides [8, 1] : !ait_rt.buffer<4 x 6 x f32>
    ait_rt.copy %v to %t
    ait_rt.launch @update ins(%p, %n, %i) outs(%p) workspace() stream 0
    ait_rt.launch @relu ins(%p) outs(%w) workspace() stream 0
    %rest = ait_rt.view %y offset (0) strides [8, 1] : !ait_rt.buffer<4 x 2 x f32>
    ait_rt.copy %e to %rest
  }

  // The buffer is the first carried value of a loop, which overwrites it before a part is read.
  // CHECK-LABEL: ait_rt.program @carried arena
  // CHECK: ait_rt.copy %c to %t
  ait_rt.program @carried arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 3 x 2 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    %d = ait_rt.alloc : !ait_rt.buffer<2 x 24 x f32>
    %t = ait_rt.view %d offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
    ait_rt.copy %c to %t
    ait_rt.loop step to (4) carry(%d) {
      %do = ait_rt.view %d offset (24*(step mod 2)) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
      %dn = ait_rt.view %d offset (24*((step + 1) mod 2)) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
      %de = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
      ait_rt.launch @softmax ins(%do) outs(%de) workspace() stream 0
      ait_rt.launch @softmax ins(%de) outs(%dn) workspace() stream 0
    }
    %dl = ait_rt.view %d offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
    ait_rt.copy %dl to %y
    ait_rt.launch @relu ins(%p) outs(%w) workspace() stream 0
  }

  // The same in another shape.
  // CHECK-LABEL: ait_rt.program @carried_reshaped arena
  // CHECK: ait_rt.copy %v to %t
  ait_rt.program @carried_reshaped arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %z = ait_rt.input "z" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 3 x 2 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<4 x 3 x 1 x f32>
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
    %p = ait_rt.view %c offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%x) outs(%p) workspace() stream 0
    %q = ait_rt.view %c offset (1) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 1 x f32>
    ait_rt.launch @relu ins(%z) outs(%q) workspace() stream 0
    %d = ait_rt.alloc : !ait_rt.buffer<2 x 24 x f32>
    %v = ait_rt.view %c offset (0) strides [6, 1] : !ait_rt.buffer<4 x 6 x f32>
    %t = ait_rt.view %d offset (0) strides [6, 1] : !ait_rt.buffer<4 x 6 x f32>
    ait_rt.copy %v to %t
    ait_rt.loop step to (4) carry(%d) {
      %do = ait_rt.view %d offset (24*(step mod 2)) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
      %dn = ait_rt.view %d offset (24*((step + 1) mod 2)) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
      %de = ait_rt.alloc : !ait_rt.buffer<4 x 3 x 2 x f32>
      ait_rt.launch @softmax ins(%do) outs(%de) workspace() stream 0
      ait_rt.launch @softmax ins(%de) outs(%dn) workspace() stream 0
    }
    %dl = ait_rt.view %d offset (0) strides [6, 2, 1] : !ait_rt.buffer<4 x 3 x 2 x f32>
    ait_rt.copy %dl to %y
    ait_rt.launch @relu ins(%p) outs(%w) workspace() stream 0
  }
}
