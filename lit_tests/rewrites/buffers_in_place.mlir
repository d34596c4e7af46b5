// RUN: ait-opt %s -p remove-copies | filecheck %s
// RUN: ait-opt %s -p remove-copies --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// Copies from and to buffers that are written more than once: donated inputs, and what a launch updates.
builtin.module attributes {ait.target = "cpu", ait.arch = "native"} {
  ait_rt.kernel @update "native" {} (%0: !ait.tensor<4 x 4 x f32>, %1: !ait.tensor<1 x 4 x f32>, %2: !ait.tensor<i64>) {
    %3 = ait.update_slice %0, %1 at %2 dim 0 : !ait.tensor<4 x 4 x f32>
    ait_rt.return %3 : !ait.tensor<4 x 4 x f32>
  }
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<4 x 4 x f32>) {
    %1 = ait.relu %0 : !ait.tensor<4 x 4 x f32>
    ait_rt.return %1 : !ait.tensor<4 x 4 x f32>
  }
  ait_rt.kernel @relu1 "native" {} (%0: !ait.tensor<4 x f32>) {
    %1 = ait.relu %0 : !ait.tensor<4 x f32>
    ait_rt.return %1 : !ait.tensor<4 x f32>
  }
  ait_rt.kernel @relu3 "native" {} (%0: !ait.tensor<2 x 3 x 4 x f32>) {
    %1 = ait.relu %0 : !ait.tensor<2 x 3 x 4 x f32>
    ait_rt.return %1 : !ait.tensor<2 x 3 x 4 x f32>
  }

  // The source is read instead of its copy by what stands before the update.
  // CHECK-LABEL: ait_rt.program @read_before
  ait_rt.program @read_before arena (0) {
    %k = ait_rt.input "k" donated : !ait_rt.buffer<4 x 4 x f32>
    %r = ait_rt.input "r" : !ait_rt.buffer<1 x 4 x f32>
    %p = ait_rt.input "p" : !ait_rt.buffer<i64>
    %o = ait_rt.output "k" in place of %k : !ait_rt.buffer<4 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 4 x f32>
    // CHECK-NOT: ait_rt.copy
    // CHECK: ait_rt.launch @relu ins(%k) outs(%y)
    %a = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %k to %a
    ait_rt.launch @relu ins(%a) outs(%y) workspace() stream 0
    ait_rt.launch @update ins(%k, %r, %p) outs(%k) workspace() stream 0
  }

  // The copy holds the old value for a reader after the update: of a donated input, of any other buffer.
  // CHECK-LABEL: ait_rt.program @read_after
  ait_rt.program @read_after arena (0) {
    %k = ait_rt.input "k" donated : !ait_rt.buffer<4 x 4 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 4 x f32>
    %r = ait_rt.input "r" : !ait_rt.buffer<1 x 4 x f32>
    %p = ait_rt.input "p" : !ait_rt.buffer<i64>
    %o = ait_rt.output "k" in place of %k : !ait_rt.buffer<4 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<4 x 4 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<4 x 4 x f32>
    // CHECK: ait_rt.copy %k to %a
    // CHECK: ait_rt.launch @relu ins(%a) outs(%y)
    %a = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %k to %a
    ait_rt.launch @update ins(%k, %r, %p) outs(%k) workspace() stream 0
    ait_rt.launch @relu ins(%a) outs(%y) workspace() stream 0
    // CHECK: ait_rt.copy %b to %c
    // CHECK: ait_rt.launch @relu ins(%c) outs(%z)
    %b = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @relu ins(%x) outs(%b) workspace() stream 0
    %c = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %b to %c
    ait_rt.launch @update ins(%b, %r, %p) outs(%b) workspace() stream 0
    ait_rt.launch @relu ins(%c) outs(%z) workspace() stream 0
    ait_rt.launch @relu ins(%b) outs(%w) workspace() stream 0
  }

  // The steps of a loop write the donated input, row by row; a loop that reads the copy may stand before them.
  // CHECK-LABEL: ait_rt.program @written_in_a_loop
  ait_rt.program @written_in_a_loop arena (0) {
    %k = ait_rt.input "k" donated : !ait_rt.buffer<4 x 4 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 4 x f32>
    %o = ait_rt.output "k" in place of %k : !ait_rt.buffer<4 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<3 x 16 x f32>
    // CHECK: ait_rt.copy %k to %a
    // CHECK-NOT: ait_rt.copy
    %a = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %k to %a
    // CHECK: ait_rt.launch @relu ins(%k)
    %b = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %k to %b
    ait_rt.loop i to (3) {
      %zi = ait_rt.view %z offset (16*i) strides [4, 1] : !ait_rt.buffer<4 x 4 x f32>
      ait_rt.launch @relu ins(%b) outs(%zi) workspace() stream 0
    }
    ait_rt.loop j to (4) {
      %xj = ait_rt.view %x offset (4*j) strides [1] : !ait_rt.buffer<4 x f32>
      %kj = ait_rt.view %k offset (4*j) strides [1] : !ait_rt.buffer<4 x f32>
      ait_rt.launch @relu1 ins(%xj) outs(%kj) workspace() stream 0
    }
    // CHECK: ait_rt.launch @relu ins(%a) outs(%y)
    ait_rt.launch @relu ins(%a) outs(%y) workspace() stream 0
  }

  // An output holds what its source held before the update, in the source's shape or in another.
  // CHECK-LABEL: ait_rt.program @output_before
  ait_rt.program @output_before arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 4 x f32>
    %r = ait_rt.input "r" : !ait_rt.buffer<1 x 4 x f32>
    %p = ait_rt.input "p" : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<2 x 8 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<4 x 4 x f32>
    %v = ait_rt.output "v" : !ait_rt.buffer<4 x 4 x f32>
    // CHECK: ait_rt.copy %a to %y
    %a = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @relu ins(%x) outs(%a) workspace() stream 0
    ait_rt.copy %a to %y
    ait_rt.launch @update ins(%a, %r, %p) outs(%a) workspace() stream 0
    ait_rt.launch @relu ins(%a) outs(%w) workspace() stream 0
    // CHECK: ait_rt.copy %c to %z
    %b = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @relu ins(%x) outs(%b) workspace() stream 0
    %c = ait_rt.view %b offset (0) strides [8, 1] : !ait_rt.buffer<2 x 8 x f32>
    ait_rt.copy %c to %z
    ait_rt.launch @update ins(%b, %r, %p) outs(%b) workspace() stream 0
    ait_rt.launch @relu ins(%b) outs(%v) workspace() stream 0
  }

  // A buffer that is updated before it is copied is the output from the start, in its own shape or in another.
  // CHECK-LABEL: ait_rt.program @output_after
  ait_rt.program @output_after arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 4 x f32>
    %r = ait_rt.input "r" : !ait_rt.buffer<1 x 4 x f32>
    %p = ait_rt.input "p" : !ait_rt.buffer<i64>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<2 x 8 x f32>
    // CHECK-NOT: ait_rt.copy
    // CHECK: ait_rt.launch @relu ins(%x) outs(%y)
    // CHECK-NEXT: ait_rt.launch @update ins(%y, %r, %p) outs(%y)
    %a = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @relu ins(%x) outs(%a) workspace() stream 0
    ait_rt.launch @update ins(%a, %r, %p) outs(%a) workspace() stream 0
    ait_rt.copy %a to %y
    // CHECK-NEXT: [[B:%.*]] = ait_rt.view %z offset (0) strides [4, 1]
    // CHECK-NEXT: ait_rt.launch @relu ins(%x) outs([[B]])
    // CHECK-NEXT: ait_rt.launch @update ins([[B]], %r, %p) outs([[B]])
    // CHECK-NEXT: }
    %b = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @relu ins(%x) outs(%b) workspace() stream 0
    ait_rt.launch @update ins(%b, %r, %p) outs(%b) workspace() stream 0
    %c = ait_rt.view %b offset (0) strides [8, 1] : !ait_rt.buffer<2 x 8 x f32>
    ait_rt.copy %c to %z
  }

  // No kernel writes a donated input before others have read its old value, as it is or permuted; nor a buffer that is
  // updated, if what the kernel makes is read again.
  // CHECK-LABEL: ait_rt.program @write_late
  ait_rt.program @write_late arena (0) {
    %k = ait_rt.input "k" donated : !ait_rt.buffer<4 x 4 x f32>
    %m = ait_rt.input "m" donated : !ait_rt.buffer<3 x 2 x 4 x f32>
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 4 x f32>
    %u = ait_rt.input "u" : !ait_rt.buffer<2 x 3 x 4 x f32>
    %r = ait_rt.input "r" : !ait_rt.buffer<1 x 4 x f32>
    %p = ait_rt.input "p" : !ait_rt.buffer<i64>
    %ko = ait_rt.output "k" in place of %k : !ait_rt.buffer<4 x 4 x f32>
    %mo = ait_rt.output "m" in place of %m : !ait_rt.buffer<3 x 2 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 4 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<3 x 2 x 4 x f32>
    %v = ait_rt.output "v" : !ait_rt.buffer<4 x 4 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<4 x 4 x f32>
    // CHECK: ait_rt.launch @relu ins(%x) outs(%a)
    // CHECK-NEXT: ait_rt.launch @relu ins(%k) outs(%y)
    // CHECK-NEXT: ait_rt.copy %a to %k
    %a = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @relu ins(%x) outs(%a) workspace() stream 0
    ait_rt.launch @relu ins(%k) outs(%y) workspace() stream 0
    ait_rt.copy %a to %k
    // CHECK: ait_rt.launch @relu3 ins(%u) outs(%b)
    // CHECK: ait_rt.copy %m to %z
    // CHECK: ait_rt.copy %{{.*}} to %m
    %b = ait_rt.alloc : !ait_rt.buffer<2 x 3 x 4 x f32>
    ait_rt.launch @relu3 ins(%u) outs(%b) workspace() stream 0
    ait_rt.copy %m to %z
    %c = ait_rt.view %b offset (0) strides [4, 12, 1] : !ait_rt.buffer<3 x 2 x 4 x f32>
    ait_rt.copy %c to %m
    // CHECK: ait_rt.copy %d to %e
    // CHECK: ait_rt.launch @update ins(%e, %r, %p) outs(%e)
    %d = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.launch @relu ins(%x) outs(%d) workspace() stream 0
    %e = ait_rt.alloc : !ait_rt.buffer<4 x 4 x f32>
    ait_rt.copy %d to %e
    ait_rt.launch @update ins(%e, %r, %p) outs(%e) workspace() stream 0
    ait_rt.launch @relu ins(%d) outs(%v) workspace() stream 0
    ait_rt.launch @relu ins(%e) outs(%w) workspace() stream 0
  }
}
