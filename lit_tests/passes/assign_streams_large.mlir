// RUN: ait-opt %s -p 'select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies,assign-streams,plan-memory,verify-plan' 2>&1 | filecheck %s

// each launch fills the card
// CHECK-LABEL: ait_rt.program @large
// CHECK-NOT: ait_rt.record
// CHECK-NOT: stream 1
ait.graph @large(%x: !ait.tensor<rows x 1024 x f16>) dims {rows = 1 to 32768} {
  %1 = ait.softmax %x dim 1 : !ait.tensor<rows x 1024 x f16>
  %2 = ait.softmax %1 dim 1 : !ait.tensor<rows x 1024 x f16>
  %3 = ait.relu %x : !ait.tensor<rows x 1024 x f16>
  %4 = ait.softmax %3 dim 1 : !ait.tensor<rows x 1024 x f16>
  ait.output "y" %2 : !ait.tensor<rows x 1024 x f16>
  ait.output "z" %4 : !ait.tensor<rows x 1024 x f16>
}
