// RUN: ait-opt %s -p remove-copies | filecheck %s
// RUN: ait-opt %s -p remove-copies --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// Copies in the steps of a loop, and to the values that a loop carries.
builtin.module attributes {ait.target = "cpu", ait.arch = "native"} {
  ait_rt.kernel @relu "native" {} (%0: !ait.tensor<2 x 3 x 4 x f32>) {
    %1 = ait.relu %0 : !ait.tensor<2 x 3 x 4 x f32>
    ait_rt.return %1 : !ait.tensor<2 x 3 x 4 x f32>
  }
  ait_rt.kernel @add "native" {} (%0: !ait.tensor<8 x f32>, %1: !ait.tensor<8 x f32>) {
    %2 = ait.add %0, %1 : !ait.tensor<8 x f32>
    ait_rt.return %2 : !ait.tensor<8 x f32>
  }
  ait_rt.kernel @exp "native" {} (%0: !ait.tensor<8 x f32>) {
    %1 = ait.exp %0 : !ait.tensor<8 x f32>
    ait_rt.return %1 : !ait.tensor<8 x f32>
  }
  ait_rt.kernel @softmax "native" {} (%0: !ait.tensor<8 x 1 x f32>) {
    %1 = ait.softmax %0 dim 1 : !ait.tensor<8 x 1 x f32>
    ait_rt.return %1 : !ait.tensor<8 x 1 x f32>
  }

  ait_rt.kernel @abs "native" {} (%0: !ait.tensor<i64>) {
    %1 = ait.abs %0 : !ait.tensor<i64>
    ait_rt.return %1 : !ait.tensor<i64>
  }

  // What a step makes it writes to its slice of the output.
  // CHECK-LABEL: ait_rt.program @steps
  ait_rt.program @steps arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 8 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 8 x f32>
    ait_rt.loop step to (4) {
      %xt = ait_rt.view %x offset (8*step) strides [1] : !ait_rt.buffer<8 x f32>
      // CHECK: [[Y:%.*]] = ait_rt.view %y offset (8*step)
      // CHECK-NEXT: ait_rt.launch @exp ins(%xt) outs([[Y]])
      // CHECK-NEXT: }
      %a = ait_rt.alloc : !ait_rt.buffer<8 x f32>
      ait_rt.launch @exp ins(%xt) outs(%a) workspace() stream 0
      %yt = ait_rt.view %y offset (8*step) strides [1] : !ait_rt.buffer<8 x f32>
      ait_rt.copy %a to %yt
    }
  }

  // What is made once, before the loop, is copied in each step: as it is, or permuted.
  // CHECK-LABEL: ait_rt.program @made_before
  ait_rt.program @made_before arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<8 x f32>
    %u = ait_rt.input "u" : !ait_rt.buffer<2 x 3 x 4 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 8 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<4 x 24 x f32>
    // CHECK: ait_rt.launch @exp ins(%x) outs(%a)
    // CHECK: ait_rt.launch @relu ins(%u) outs(%b)
    // CHECK: ait_rt.loop
    // CHECK: ait_rt.copy %a to
    // CHECK: ait_rt.copy %c to
    %a = ait_rt.alloc : !ait_rt.buffer<8 x f32>
    ait_rt.launch @exp ins(%x) outs(%a) workspace() stream 0
    %b = ait_rt.alloc : !ait_rt.buffer<2 x 3 x 4 x f32>
    ait_rt.launch @relu ins(%u) outs(%b) workspace() stream 0
    %c = ait_rt.view %b offset (0) strides [4, 12, 1] : !ait_rt.buffer<3 x 2 x 4 x f32>
    ait_rt.loop step to (4) {
      %yt = ait_rt.view %y offset (8*step) strides [1] : !ait_rt.buffer<8 x f32>
      ait_rt.copy %a to %yt
      %zt = ait_rt.view %z offset (24*step) strides [8, 4, 1] : !ait_rt.buffer<3 x 2 x 4 x f32>
      ait_rt.copy %c to %zt
    }
  }

  // What is made before the loop is not made in what the loop allocates.
  // CHECK-LABEL: ait_rt.program @allocated_in_the_loop
  ait_rt.program @allocated_in_the_loop arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<8 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<4 x 8 x f32>
    // CHECK: ait_rt.launch @exp ins(%x) outs(%a)
    // CHECK: ait_rt.loop
    // CHECK: ait_rt.copy %v to %b
    %a = ait_rt.alloc : !ait_rt.buffer<8 x f32>
    ait_rt.launch @exp ins(%x) outs(%a) workspace() stream 0
    %v = ait_rt.view %a offset (0) strides [1, 7] : !ait_rt.buffer<8 x 1 x f32>
    ait_rt.loop step to (4) {
      %b = ait_rt.alloc : !ait_rt.buffer<8 x 1 x f32>
      ait_rt.copy %v to %b
      %yt = ait_rt.view %y offset (8*step) strides [1, 1] : !ait_rt.buffer<8 x 1 x f32>
      ait_rt.launch @softmax ins(%b) outs(%yt) workspace() stream 0
    }
  }

  // CHECK-LABEL: ait_rt.program @read_in_the_loop
  ait_rt.program @read_in_the_loop dims {n = 0 to 4 bound} arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<i64>
    // CHECK: ait_rt.launch @abs ins(%x) outs(%a)
    // CHECK: ait_rt.loop
    // CHECK: ait_rt.copy %a to %b
    %a = ait_rt.alloc : !ait_rt.buffer<i64>
    ait_rt.launch @abs ins(%x) outs(%a) workspace() stream 0
    ait_rt.loop step to (2) {
      %b = ait_rt.alloc : !ait_rt.buffer<i64>
      ait_rt.copy %a to %b
      ait_rt.read_dim "n" from %b
    }
  }

  // The first carried value is made in its place, unless something else reads it: the loop overwrites it.
  // CHECK-LABEL: ait_rt.program @carried
  ait_rt.program @carried arena (0) {
    %x = ait_rt.input "x" : !ait_rt.buffer<4 x 8 x f32>
    %i = ait_rt.input "i" : !ait_rt.buffer<8 x f32>
    %y = ait_rt.output "y" : !ait_rt.buffer<8 x f32>
    %z = ait_rt.output "z" : !ait_rt.buffer<8 x f32>
    %w = ait_rt.output "w" : !ait_rt.buffer<8 x f32>
    // CHECK: [[C0:%.*]] = ait_rt.view %c offset (0)
    // CHECK-NEXT: ait_rt.launch @exp ins(%i) outs([[C0]])
    // CHECK: ait_rt.launch @exp ins(%i) outs(%b)
    // CHECK: ait_rt.copy %b to
    %a = ait_rt.alloc : !ait_rt.buffer<8 x f32>
    ait_rt.launch @exp ins(%i) outs(%a) workspace() stream 0
    %c = ait_rt.alloc : !ait_rt.buffer<2 x 64 x f32>
    %c0 = ait_rt.view %c offset (0) strides [1] : !ait_rt.buffer<8 x f32>
    ait_rt.copy %a to %c0
    %b = ait_rt.alloc : !ait_rt.buffer<8 x f32>
    ait_rt.launch @exp ins(%i) outs(%b) workspace() stream 0
    %d = ait_rt.alloc : !ait_rt.buffer<2 x 64 x f32>
    %d0 = ait_rt.view %d offset (0) strides [1] : !ait_rt.buffer<8 x f32>
    ait_rt.copy %b to %d0
    ait_rt.loop step to (4) carry(%c, %d) {
      %xt = ait_rt.view %x offset (8*step) strides [1] : !ait_rt.buffer<8 x f32>
      %co = ait_rt.view %c offset (64*(step mod 2)) strides [1] : !ait_rt.buffer<8 x f32>
      %cn = ait_rt.view %c offset (64*((step + 1) mod 2)) strides [1] : !ait_rt.buffer<8 x f32>
      %ce = ait_rt.alloc : !ait_rt.buffer<8 x f32>
      ait_rt.launch @exp ins(%co) outs(%ce) workspace() stream 0
      ait_rt.launch @add ins(%xt, %ce) outs(%cn) workspace() stream 0
      %do = ait_rt.view %d offset (64*(step mod 2)) strides [1] : !ait_rt.buffer<8 x f32>
      %dn = ait_rt.view %d offset (64*((step + 1) mod 2)) strides [1] : !ait_rt.buffer<8 x f32>
      %de = ait_rt.alloc : !ait_rt.buffer<8 x f32>
      ait_rt.launch @exp ins(%do) outs(%de) workspace() stream 0
      ait_rt.launch @add ins(%xt, %de) outs(%dn) workspace() stream 0
    }
    %cl = ait_rt.view %c offset (0) strides [1] : !ait_rt.buffer<8 x f32>
    ait_rt.copy %cl to %y
    %dl = ait_rt.view %d offset (0) strides [1] : !ait_rt.buffer<8 x f32>
    ait_rt.copy %dl to %z
    ait_rt.launch @exp ins(%b) outs(%w) workspace() stream 0
  }
}
