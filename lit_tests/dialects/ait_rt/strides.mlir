// RUN: ait-opt %s -p verify-plan | filecheck %s

ait_rt.kernel @relu_0 "native" {} (%0: !ait.tensor<n x 8 x f32>) dims {n = 0 to 4, p = 1 to 8} {
  %1 = ait.relu %0 : !ait.tensor<n x 8 x f32>
  ait_rt.return %1 : !ait.tensor<n x 8 x f32>
}

// The buffer ends with the last element: there is no rest of a row behind it.
// CHECK-LABEL: ait_rt.program @f
ait_rt.program @f dims {n = 0 to 4, p = 1 to 8} arena (0) {
  // CHECK: %x = ait_rt.input "x" shape [n, 8] strides [8*p, 1] : !ait_rt.buffer<(max(0, 8*n*p - 8*p + 8)) x f32>
  %x = ait_rt.input "x" shape [n, 8] strides [8*p, 1] : !ait_rt.buffer<(max(0, 8*n*p - 8*p + 8)) x f32>
  // CHECK: %y = ait_rt.output "y" shape [n, 8] strides [1, 4] : !ait_rt.buffer<(n + 28) x f32>
  %y = ait_rt.output "y" shape [n, 8] strides [1, 4] : !ait_rt.buffer<(n + 28) x f32>
  %v = ait_rt.view %x offset (0) strides [8*p, 1] : !ait_rt.buffer<n x 8 x f32>
  %w = ait_rt.view %y offset (0) strides [1, 4] : !ait_rt.buffer<n x 8 x f32>
  ait_rt.launch @relu_0 ins(%v) outs(%w) workspace() stream 0
}
