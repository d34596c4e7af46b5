// RUN: not ait-opt %s -p 'select{target="cuda" arch="sm_90a"},assign-streams{streams=17}' 2>&1 | filecheck %s --check-prefix=MANY
// RUN: not ait-opt %s -p 'select{target="cuda" arch="sm_90a"},assign-streams{gain=1}' 2>&1 | filecheck %s --check-prefix=GAIN
// RUN: not ait-opt %s -p 'select{target="cuda" arch="sm_90a"},bufferize,plan-memory,assign-streams' 2>&1 | filecheck %s --check-prefix=LATE

// RUN: not ait-opt %s -p 'select{target="cuda" arch="sm_90a"},assign-streams{waves=-1}' 2>&1 | filecheck %s --check-prefix=WAVES

// WAVES: waves is -1, expected the launches of a wave, or 0
// MANY: streams is 17, expected a number from 0 to 16
// GAIN: gain is 1, expected a part from 0 to below 1
// LATE: the memory is planned for one stream; run 'assign-streams' before 'plan-memory'
ait.graph @two(%x: !ait.tensor<64 x 64 x f16>) {
  %1 = ait.softmax %x dim 1 : !ait.tensor<64 x 64 x f16>
  %2 = ait.softmax %1 dim 0 : !ait.tensor<64 x 64 x f16>
  ait.output "y" %2 : !ait.tensor<64 x 64 x f16>
}
