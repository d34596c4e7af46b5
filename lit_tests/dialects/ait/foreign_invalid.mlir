// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @no_results(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{has no results; the function writes its results into tensors, whose types follow the colon}}
  ait.call_ffi @lib "f"(%x)
}

// -----

ait.graph @missing_result(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{has 2 results, but 'result' stands 1 times in its arguments}}
  %y, %z = ait.call_ffi @lib "f"(result, %x) : !ait.tensor<4 x f32>, !ait.tensor<4 x f32>
}

// -----

ait.graph @workspace(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{'workspace' stands 1 times in its arguments; expected it once at most, and 'workspace (BYTES)' after them}}
  %y = ait.call_ffi @lib "f"(%x, workspace) : !ait.tensor<4 x f32>
}

// -----

ait.graph @workspaces(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{'workspace' stands 2 times in its arguments}}
  %y = ait.call_ffi @lib "f"(workspace, %x, workspace) workspace (4) : !ait.tensor<4 x f32>
}

// -----

ait.graph @negative_workspace(%x: !ait.tensor<b x f32>) dims {b = 1 to 4} {
  // expected-error @below {{the workspace, b - 2 bytes, is not proved to be at least 0}}
  %y = ait.call_ffi @lib "f"(%x) workspace (b - 2) : !ait.tensor<4 x f32>
}

// -----

ait.graph @size(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{dim 'n' of an argument is not declared}}
  %y = ait.call_ffi @lib "f"(%x, (2*n)) : !ait.tensor<4 x f32>
}

// -----

ait.graph @result_dim(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{dim 'n' of !ait.tensor<n x f32> is not declared}}
  %y = ait.call_ffi @lib "f"(%x) : !ait.tensor<n x f32>
}

// -----

ait.graph @hash(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{sha256 is 'abc', expected 64 hexadecimal digits}}
  %y = ait.call_ffi @lib "f"(%x) sha256 "abc" : !ait.tensor<4 x f32>
}

// -----

ait.graph @hash_without_library(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{sha256 is that of a library, but the function is one that the process has registered}}
  %y = ait.call_ffi "f"(%x) sha256 "0000000000000000000000000000000000000000000000000000000000000000" : !ait.tensor<4 x f32>
}

// -----

ait.graph @no_name(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{the function needs a name}}
  %y = ait.call_ffi @lib ""(%x) : !ait.tensor<4 x f32>
}

// -----

ait.graph @library_name(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{library 'a:b': expected letters, digits, '_', '.', '-' and '$'}}
  %y = ait.call_ffi @"a:b" "f"(%x) : !ait.tensor<4 x f32>
}

// -----

ait.graph @operands(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{has 1 operands, but its arguments name 2}}
  %y = "ait.call_ffi"(%x) <{library = @lib, function = "f", arguments = [unit, unit]}> : (!ait.tensor<4 x f32>) -> !ait.tensor<4 x f32>
}

// -----

ait.graph @sizes(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{has 0 sizes, but its arguments name 1}}
  %y = "ait.call_ffi"(%x) <{library = @lib, function = "f", arguments = [unit, @size]}> : (!ait.tensor<4 x f32>) -> !ait.tensor<4 x f32>
}

// -----

ait.graph @argument(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{argument 1 is [1 : i64], expected an operand, none, a number, a text, or a dim expression}}
  %y = "ait.call_ffi"(%x) <{library = @lib, function = "f", arguments = [unit, [1]]}> : (!ait.tensor<4 x f32>) -> !ait.tensor<4 x f32>
}

// -----

ait.graph @word(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{a number expected}}
  %y = ait.call_ffi @lib "f"(%x, nothing) : !ait.tensor<4 x f32>
}

// -----

ait.graph @loader(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{function 'ffi.ModuleLoadFromFile' is one of tvm-ffi's own, which programs may not call}}
  %y = ait.call_ffi "ffi.ModuleLoadFromFile"("/tmp/library.so") : !ait.tensor<4 x f32>
}

// -----

ait.graph @echo(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{function 'testing.echo' is one of tvm-ffi's own}}
  %y = ait.call_ffi "testing.echo"(%x) : !ait.tensor<4 x f32>
}
