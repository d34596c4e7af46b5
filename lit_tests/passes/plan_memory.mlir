// RUN: ait-opt %s -p 'select{target="cpu"},bufferize,plan-memory{strategy="naive"},verify-plan' --check-semantics 2>&1 | filecheck %s --check-prefix=NAIVE
// RUN: ait-opt %s -p 'select{target="cpu"},bufferize,plan-memory{strategy="greedy" report=true},verify-plan' 2>&1 | filecheck %s --check-prefix=GREEDY
// RUN: ait-opt %s -p 'select{target="cpu"},bufferize,plan-memory{strategy="search" seconds=5 report=true},verify-plan' 2>&1 | filecheck %s --check-prefix=GREEDY
// RUN: ait-opt %s -p 'select{target="cpu"},bufferize,plan-memory{strategy="exact" report=true},verify-plan' 2>&1 | filecheck %s --check-prefix=GREEDY

// 32 bytes a row; each value is read by the next op only
ait.graph @chain(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 64} {
  %1 = ait.softmax %x dim 1 : !ait.tensor<b x 8 x f32>
  %2 = ait.softmax %1 dim 1 : !ait.tensor<b x 8 x f32>
  %3 = ait.softmax %2 dim 1 : !ait.tensor<b x 8 x f32>
  %4 = ait.softmax %3 dim 1 : !ait.tensor<b x 8 x f32>
  ait.output "y" %4 : !ait.tensor<b x 8 x f32>
}

// NAIVE: no difference
// NAIVE: arena (256*(b ceildiv 2))
// NAIVE: ait_rt.alloc at (0)
// NAIVE: ait_rt.alloc at (64*(b ceildiv 2))
// NAIVE: ait_rt.alloc at (128*(b ceildiv 2))
// NAIVE: ait_rt.alloc at (192*(b ceildiv 2))

// 64 rows: two places of 64 * 32 bytes
// GREEDY: @chain: an arena of 4096 bytes; proved to be the smallest
// GREEDY: arena (128*(b ceildiv 2))
// GREEDY: ait_rt.alloc at (0)
// GREEDY: ait_rt.alloc at (64*(b ceildiv 2))
// GREEDY: ait_rt.alloc at (0)
// GREEDY: ait_rt.alloc at (64*(b ceildiv 2))
