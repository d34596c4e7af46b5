// Each pass with its time, and below it its patterns, most often applied first; then ops that had lost their uses.
// RUN: ait-opt %s -p simplify,fuse-epilogue,remove-no-ops --print-stats 2>&1 | filecheck %s

// CHECK:      {{[0-9.]+}} ms  simplify
// CHECK-NEXT: {{[0-9.]+}} ms  fuse-epilogue
// CHECK-NEXT: {{[0-9.]+}} ms       2 x join_epilogue
// CHECK-NEXT: {{ }}2 x dead op removed
// CHECK-NEXT: {{[0-9.]+}} ms  remove-no-ops
// CHECK-NOT:  ms
ait.graph @layer(%x: !ait.tensor<4 x 8 x f32>, %w: !ait.tensor<8 x 8 x f32>, %b: !ait.tensor<8 x f32>) {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<4 x 8 x f32>
  %1 = ait.add %0, %b : !ait.tensor<4 x 8 x f32>
  %2 = ait.relu %1 : !ait.tensor<4 x 8 x f32>
  ait.output "y" %2 : !ait.tensor<4 x 8 x f32>
}
