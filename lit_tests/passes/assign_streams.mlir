// RUN: ait-opt %s -p 'select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies,assign-streams{streams=3 report=true},plan-memory,verify-plan' --check-semantics 2>&1 | filecheck %s
// RUN: ait-opt %s -p 'select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies,assign-streams{streams=1},plan-memory,verify-plan' | filecheck %s --check-prefix=ONE
// RUN: ait-opt %s -p 'select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies,assign-streams{gain=0.9},plan-memory,verify-plan' | filecheck %s --check-prefix=ONE
// RUN: ait-opt %s -p 'select{target="cpu"},bufferize,remove-copies,lower-copies,assign-streams,plan-memory,verify-plan' | filecheck %s --check-prefix=ONE

// ONE-NOT: ait_rt.record
// ONE-NOT: stream 1

// CHECK: @branches: 2 streams in recorded runs, 
// CHECK: @chain: 1 stream,
// CHECK: @small: 1 stream,
// CHECK: @state: 2 streams in recorded runs, 
// CHECK: @long: 2 streams, 
// CHECK: semantics: {{[0-9]+}} evaluations compared, no difference

// two chains that write into one buffer; what a plain run takes is the time of the host, which the events would add to
// CHECK-LABEL: ait_rt.program @branches
// CHECK-SAME: streams if recorded
// CHECK: ait_rt.launch {{.*}} stream 0
// CHECK-NEXT: ait_rt.record event 0 stream 0
// CHECK: ait_rt.launch {{.*}} stream 0
// CHECK: ait_rt.wait event 0 stream 1
// CHECK-NEXT: ait_rt.launch {{.*}} stream 1
// CHECK: ait_rt.launch {{.*}} stream 1
// CHECK: ait_rt.record event 1 stream 1
// CHECK-NEXT: ait_rt.wait event 1 stream 0
// CHECK-NEXT: ait_rt.launch {{.*}} stream 0
ait.graph @branches(%x: !ait.tensor<64 x 64 x f16>) {
  %1 = ait.softmax %x dim 1 : !ait.tensor<64 x 64 x f16>
  %2 = ait.softmax %1 dim 0 : !ait.tensor<64 x 64 x f16>
  %a = ait.softmax %2 dim 0 : !ait.tensor<64 x 64 x f16>
  %b = ait.softmax %a dim 0 : !ait.tensor<64 x 64 x f16>
  %3 = ait.softmax %b dim 0 : !ait.tensor<64 x 64 x f16>
  %4 = ait.softmax %3 dim 0 : !ait.tensor<64 x 64 x f16>
  %5 = ait.softmax %1 dim 1 : !ait.tensor<64 x 64 x f16>
  %c = ait.softmax %5 dim 1 : !ait.tensor<64 x 64 x f16>
  %d = ait.softmax %c dim 1 : !ait.tensor<64 x 64 x f16>
  %6 = ait.softmax %d dim 1 : !ait.tensor<64 x 64 x f16>
  %7 = ait.softmax %6 dim 1 : !ait.tensor<64 x 64 x f16>
  %8 = ait.concat %4, %7 dim 1 : !ait.tensor<64 x 128 x f16>
  %9 = ait.softmax %8 dim 1 : !ait.tensor<64 x 128 x f16>
  ait.output "y" %9 : !ait.tensor<64 x 128 x f16>
}

// each launch reads what the one before has written
// CHECK-LABEL: ait_rt.program @chain
// CHECK-NOT: ait_rt.record
// CHECK-NOT: stream 1
ait.graph @chain(%x: !ait.tensor<64 x 64 x f16>) {
  %1 = ait.softmax %x dim 1 : !ait.tensor<64 x 64 x f16>
  %2 = ait.softmax %1 dim 0 : !ait.tensor<64 x 64 x f16>
  %3 = ait.softmax %2 dim 1 : !ait.tensor<64 x 64 x f16>
  ait.output "y" %3 : !ait.tensor<64 x 64 x f16>
}

// two launches a branch, too short for events
// CHECK-LABEL: ait_rt.program @small
// CHECK-NOT: ait_rt.record
// CHECK-NOT: stream 1
ait.graph @small(%x: !ait.tensor<64 x 64 x f16>) {
  %1 = ait.softmax %x dim 1 : !ait.tensor<64 x 64 x f16>
  %2 = ait.softmax %1 dim 0 : !ait.tensor<64 x 64 x f16>
  %3 = ait.softmax %x dim 0 : !ait.tensor<64 x 64 x f16>
  %4 = ait.softmax %3 dim 1 : !ait.tensor<64 x 64 x f16>
  ait.output "y" %2 : !ait.tensor<64 x 64 x f16>
  ait.output "z" %4 : !ait.tensor<64 x 64 x f16>
}

// what is written in place of the state comes after what reads it, on another stream or not
// CHECK-LABEL: ait_rt.program @state
// CHECK: ait_rt.launch {{.*}} stream 1
ait.graph @state(%x: !ait.tensor<64 x 64 x f16>, %s: !ait.tensor<64 x 64 x f16> donated) {
  %1 = ait.softmax %s dim 1 : !ait.tensor<64 x 64 x f16>
  %2 = ait.softmax %1 dim 0 : !ait.tensor<64 x 64 x f16>
  %a = ait.softmax %2 dim 1 : !ait.tensor<64 x 64 x f16>
  %b = ait.softmax %a dim 0 : !ait.tensor<64 x 64 x f16>
  %3 = ait.softmax %b dim 1 : !ait.tensor<64 x 64 x f16>
  %4 = ait.softmax %x dim 1 : !ait.tensor<64 x 64 x f16>
  %c = ait.softmax %4 dim 1 : !ait.tensor<64 x 64 x f16>
  %d = ait.softmax %c dim 0 : !ait.tensor<64 x 64 x f16>
  %5 = ait.softmax %d dim 0 : !ait.tensor<64 x 64 x f16>
  %6 = ait.softmax %5 dim 1 : !ait.tensor<64 x 64 x f16>
  %7 = ait.add %s, %6 : !ait.tensor<64 x 64 x f16>
  ait.output "y" %3 : !ait.tensor<64 x 64 x f16>
  ait.output "s" %7 in place of %s : !ait.tensor<64 x 64 x f16>
}

// a plain run gains, too: the launches take longer than the host needs for them
// CHECK-LABEL: ait_rt.program @long
// CHECK-NOT: streams if recorded
// CHECK: ait_rt.launch {{.*}} stream 1
ait.graph @long(%x: !ait.tensor<64 x 65536 x f16>) {
  %w0 = ait.param "w0" : !ait.tensor<256 x 65536 x f16>
  %w1 = ait.param "w1" : !ait.tensor<256 x 65536 x f16>
  %0 = ait.relu %x : !ait.tensor<64 x 65536 x f16>
  %1 = ait.gemm rcr %x, %w0 : !ait.tensor<64 x 256 x f16>
  %2 = ait.gemm rcr %0, %w1 : !ait.tensor<64 x 256 x f16>
  %3 = ait.softmax %1 dim 1 : !ait.tensor<64 x 256 x f16>
  %4 = ait.softmax %2 dim 1 : !ait.tensor<64 x 256 x f16>
  ait.output "y" %3 : !ait.tensor<64 x 256 x f16>
  ait.output "z" %4 : !ait.tensor<64 x 256 x f16>
}
