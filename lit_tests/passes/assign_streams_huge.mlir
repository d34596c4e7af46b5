// RUN: not ait-opt %s -p 'select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies,assign-streams' 2>&1 | filecheck %s

// 2^70 operations are too many for the estimate; the error is at their op
// CHECK: assign_streams_huge.mlir:7:3: error: pass 'assign-streams': a number in a dim expression is beyond 64 bits
ait.graph @g(%a: !ait.tensor<16777216 x 4194304 x f16>, %b: !ait.tensor<8388608 x 4194304 x f16>) {
  %1 = ait.relu %a : !ait.tensor<16777216 x 4194304 x f16>
  %2 = ait.gemm rcr %1, %b : (!ait.tensor<16777216 x 4194304 x f16>, !ait.tensor<8388608 x 4194304 x f16>) -> !ait.tensor<16777216 x 8388608 x f16>
  %3 = ait.gemm rcr %a, %b : (!ait.tensor<16777216 x 4194304 x f16>, !ait.tensor<8388608 x 4194304 x f16>) -> !ait.tensor<16777216 x 8388608 x f16>
  ait.output "y" %2 : !ait.tensor<16777216 x 8388608 x f16>
  ait.output "z" %3 : !ait.tensor<16777216 x 8388608 x f16>
}
