// RUN: ait-opt %s -p resolve-libraries --split-input-file --verify-diagnostics | filecheck %s

// A call that has the hash of its library keeps it; a function that the process registers has none.
// CHECK-LABEL: ait.graph @kept
ait.graph @kept(%x: !ait.tensor<4 x f32>) {
  // CHECK: ait.call_ffi @lib "f"(%x) sha256 "00{{0*}}" : !ait.tensor<4 x f32>
  %y = ait.call_ffi @lib "f"(%x) sha256 "0000000000000000000000000000000000000000000000000000000000000000" : !ait.tensor<4 x f32>
  // CHECK-NEXT: ait.call_ffi "f"(%y) : !ait.tensor<4 x f32>
  %z = ait.call_ffi "f"(%y) : !ait.tensor<4 x f32>
  ait.output "z" %z : !ait.tensor<4 x f32>
}

// -----

ait.graph @unknown(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{there is no kernel library 'no_such_library': name its file (--library no_such_library=FILE, ait_mlir.add_kernel_library), or add its folder to AIT_KERNEL_PATH}}
  %y = ait.call_ffi @no_such_library "f"(%x) : !ait.tensor<4 x f32>
  ait.output "y" %y : !ait.tensor<4 x f32>
}
