// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait_rt.program @no_kernel arena (0) {
  // expected-error @below {{ait_rt.launch: no kernel @missing in this module}}
  ait_rt.launch @missing ins() outs() workspace() stream 0
}

// -----

ait_rt.kernel @relu_0 "native" {} (%a: !ait.tensor<8 x f16>) {
  %0 = ait.relu %a : !ait.tensor<8 x f16>
  ait_rt.return %0 : !ait.tensor<8 x f16>
}
ait_rt.program @operands arena (0) {
  %x = ait_rt.input "x" : !ait_rt.buffer<8 x f16>
  %y = ait_rt.output "y" : !ait_rt.buffer<8 x f16>
  // expected-error @below {{ait_rt.launch: @relu_0 has 1 ins, the launch gives 2}}
  ait_rt.launch @relu_0 ins(%x, %x) outs(%y) workspace() stream 0
}

// -----

ait_rt.kernel @relu_0 "native" {} (%a: !ait.tensor<8 x f16>) {
  %0 = ait.relu %a : !ait.tensor<8 x f16>
  ait_rt.return %0 : !ait.tensor<8 x f16>
}
ait_rt.program @types arena (0) {
  %x = ait_rt.input "x" : !ait_rt.buffer<8 x f16>
  %y = ait_rt.output "y" : !ait_rt.buffer<8 x f32>
  // expected-error @below {{ait_rt.launch: out 0 of @relu_0 is !ait.tensor<8 x f16>, the launch gives !ait_rt.buffer<8 x f32>}}
  ait_rt.launch @relu_0 ins(%x) outs(%y) workspace() stream 0
}

// -----

// expected-error @below {{ait_rt.program: two buffers of one kind are named 'x'}}
ait_rt.program @names arena (0) {
  %x = ait_rt.input "x" : !ait_rt.buffer<8 x f16>
  %y = ait_rt.input "x" : !ait_rt.buffer<8 x f16>
}

// -----

ait_rt.program @copy arena (0) {
  %x = ait_rt.input "x" : !ait_rt.buffer<8 x f16>
  %y = ait_rt.output "y" : !ait_rt.buffer<8 x f32>
  // expected-error @below {{ait_rt.copy: cannot copy !ait_rt.buffer<8 x f16> to !ait_rt.buffer<8 x f32>}}
  ait_rt.copy %x to %y
}

// -----

ait_rt.program @constant dims {b = 1 to 4} arena (0) {
  // expected-error @below {{ait_rt.constant: a constant must have a static shape, got !ait_rt.buffer<b x f16>}}
  %c = ait_rt.constant ["w"] : !ait_rt.buffer<b x f16>
}

// -----

ait_rt.program @no_constant arena (0) {
  // expected-error @below {{ait_rt.constant: names no param}}
  %c = ait_rt.constant [] : !ait_rt.buffer<4 x f16>
}

// -----

ait_rt.program @rows arena (0) {
  // expected-error @below {{ait_rt.constant: rows [3] of 2 params do not make up !ait_rt.buffer<4 x f16>}}
  %c = ait_rt.constant ["w", "v"] rows [3] : !ait_rt.buffer<4 x f16>
}

// -----

ait_rt.program @row_sum arena (0) {
  // expected-error @below {{ait_rt.constant: rows [3, 2] of 2 params do not make up !ait_rt.buffer<4 x f16>}}
  %c = ait_rt.constant ["w", "v"] rows [3, 2] : !ait_rt.buffer<4 x f16>
}

// -----

ait_rt.program @numbers arena (0) {
  // expected-error @below {{ait_rt.constant: 2 numbers cannot fill !ait_rt.buffer<4 x f16>}}
  %c = ait_rt.constant value [1.0, 2.0] : !ait_rt.buffer<4 x f16>
}

// -----

ait_rt.program @both arena (0) {
  // expected-error @below {{ait_rt.constant: holds either params or a literal}}
  %c = "ait_rt.constant"() : () -> !ait_rt.buffer<4 x f16>
}

// -----

ait_rt.program @panels arena (0) {
  // expected-error @below {{ait_rt.constant: has panels 'mn', expected nk, kn or winograd}}
  %c = ait_rt.constant ["w"] panels mn : !ait_rt.buffer<4 x 4 x f32>
}

// -----

ait_rt.program @integers_in_panels arena (0) {
  // expected-error @below {{ait_rt.constant: only params of floats, or of bytes, with two or more dims lie in panels, got !ait_rt.buffer<4 x 4 x i32>}}
  %c = ait_rt.constant ["w"] panels kn : !ait_rt.buffer<4 x 4 x i32>
}

// -----

ait_rt.program @flat_panels arena (0) {
  // expected-error @below {{ait_rt.constant: only params of floats, or of bytes, with two or more dims lie in panels, got !ait_rt.buffer<16 x f32>}}
  %c = ait_rt.constant ["w"] panels nk : !ait_rt.buffer<16 x f32>
}

// -----

ait_rt.program @literal_panels arena (0) {
  // expected-error @below {{ait_rt.constant: only params of floats, or of bytes, with two or more dims lie in panels}}
  %c = "ait_rt.constant"() <{value = [1.0, 2.0], panels = "nk"}> : () -> !ait_rt.buffer<1 x 2 x f32>
}

// -----

ait_rt.program @transformed_matrix arena (0) {
  // expected-error @below {{ait_rt.constant: only weights of n rows of 3 x 3 x channels f16, bf16 or f32 are transformed, got !ait_rt.buffer<9 x 8 x f32>}}
  %c = ait_rt.constant ["w"] panels winograd : !ait_rt.buffer<9 x 8 x f32>
}

// -----

ait_rt.program @transformed_window arena (0) {
  // expected-error @below {{ait_rt.constant: only weights of n rows of 3 x 3 x channels f16, bf16 or f32 are transformed, got !ait_rt.buffer<4 x 3 x 5 x 8 x f32>}}
  %c = ait_rt.constant ["w"] panels winograd : !ait_rt.buffer<4 x 3 x 5 x 8 x f32>
}

// -----

ait_rt.program @transformed_doubles arena (0) {
  // expected-error @below {{ait_rt.constant: only weights of n rows of 3 x 3 x channels f16, bf16 or f32 are transformed, got !ait_rt.buffer<4 x 3 x 3 x 8 x f64>}}
  %c = ait_rt.constant ["w"] panels winograd : !ait_rt.buffer<4 x 3 x 3 x 8 x f64>
}

// -----

ait_rt.program @tensor arena (0) {
  // expected-error @below {{should be of base attribute ait_rt.buffer}}
  %c = ait_rt.alloc : !ait.tensor<4 x f16>
}

// -----

ait_rt.program @view_rank arena (64) {
  %h = ait_rt.alloc at (0) : !ait_rt.buffer<4 x f16>
  // expected-error @below {{ait_rt.view: 2 strides for a view of rank 1}}
  %v = ait_rt.view %h offset (0) strides [1, 1] : !ait_rt.buffer<4 x f16>
}

// -----

ait_rt.program @view_element arena (64) {
  %h = ait_rt.alloc at (0) : !ait_rt.buffer<4 x f16>
  // expected-error @below {{ait_rt.view: the view has element type bf16, but the buffer f16}}
  %v = ait_rt.view %h offset (0) strides [1] : !ait_rt.buffer<4 x bf16>
}

// -----

ait_rt.program @view_dim arena (64) {
  %h = ait_rt.alloc at (0) : !ait_rt.buffer<4 x f16>
  // expected-error @below {{ait_rt.view: dim 'n' of the view is not declared; add it to the dims}}
  %v = ait_rt.view %h offset (n) strides [1] : !ait_rt.buffer<1 x f16>
}

// -----

ait_rt.program @undefined arena (64) {
  %y = ait_rt.output "y" : !ait_rt.buffer<4 x f16>
  // expected-error @below {{%x is not defined above this op}}
  ait_rt.copy %x to %y
}

// -----

// expected-error @below {{no closing ')' on this line}}
ait_rt.program @arena arena (64 {
}

// -----

// expected-error @below {{one dim expression expected}}
ait_rt.program @arenas arena (64, 32) {
}

// -----

// expected-error @below {{ait_rt.program: dim 'b' of the arena is not declared}}
ait_rt.program @arena_dim arena (64*b) {
}

// -----

ait_rt.program @offset_dim arena (64) {
  // expected-error @below {{ait_rt.alloc: dim 'b' of the offset is not declared}}
  %h = ait_rt.alloc at (64*b) : !ait_rt.buffer<4 x f16>
}

// -----

ait_rt.program @buffer_dim arena (64) {
  // expected-error @below {{ait_rt.alloc: dim 'b' of !ait_rt.buffer<b x f16> is not declared}}
  %h = ait_rt.alloc at (0) : !ait_rt.buffer<b x f16>
}

// -----

ait_rt.program @copy_into_input arena (0) {
  %x = ait_rt.input "x" : !ait_rt.buffer<8 x f16>
  %y = ait_rt.output "y" : !ait_rt.buffer<8 x f16>
  // expected-error @below {{ait_rt.copy: writes input 'x', which is the caller's; write an alloc or an output}}
  ait_rt.copy %y to %x
}

// -----

ait_rt.program @copy_into_constant arena (0) {
  %x = ait_rt.input "x" : !ait_rt.buffer<4 x f16>
  %c = ait_rt.constant ["w"] : !ait_rt.buffer<8 x f16>
  %v = ait_rt.view %c offset (2) strides [1] : !ait_rt.buffer<6 x f16>
  %u = ait_rt.view %v offset (1) strides [1] : !ait_rt.buffer<4 x f16>
  // expected-error @below {{ait_rt.copy: writes a constant, which all runs share; write an alloc or an output}}
  ait_rt.copy %x to %u
}

// -----

ait_rt.kernel @relu_0 "native" {} (%a: !ait.tensor<8 x f16>) {
  %0 = ait.relu %a : !ait.tensor<8 x f16>
  ait_rt.return %0 : !ait.tensor<8 x f16>
}
ait_rt.program @launch_into_input arena (0) {
  %x = ait_rt.input "x" : !ait_rt.buffer<8 x f16>
  %y = ait_rt.output "y" : !ait_rt.buffer<8 x f16>
  // expected-error @below {{ait_rt.launch: writes input 'x', which is the caller's}}
  ait_rt.launch @relu_0 ins(%x) outs(%x) workspace() stream 0
  // expected-error @below {{ait_rt.launch: writes input 'x', which is the caller's}}
  ait_rt.launch @relu_0 ins(%x) outs(%y) workspace(%x) stream 0
}

// -----

ait_rt.kernel @relu_0 "native" {} (%a: !ait.tensor<b x f16>) dims {b = 2 to 4} {
  %0 = ait.relu %a : !ait.tensor<b x f16>
  ait_rt.return %0 : !ait.tensor<b x f16>
}
ait_rt.program @ranges dims {b = 1 to 4} arena (0) {
  %x = ait_rt.input "x" : !ait_rt.buffer<b x f16>
  %y = ait_rt.output "y" : !ait_rt.buffer<b x f16>
  // expected-error @below {{ait_rt.launch: @relu_0 is for b = 2 to 4, the program has 1 to 4}}
  ait_rt.launch @relu_0 ins(%x) outs(%y) workspace() stream 0
}

// -----

ait_rt.program @own_name arena (0) {
  // expected-error @below {{names that start with '$' are the compiler's own}}
  %c = ait_rt.constant ["$literal.0"] : !ait_rt.buffer<8 x f16>
}

// -----

ait_rt.program @first arena (64) {
  %h = ait_rt.alloc at (0) : !ait_rt.buffer<4 x f16>
}
ait_rt.program @second arena (64) {
  %y = ait_rt.output "y" : !ait_rt.buffer<4 x f16>
  // expected-error @below {{%h is not defined above this op}}
  ait_rt.copy %h to %y
}
