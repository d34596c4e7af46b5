// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait_rt.program @events arena (0) {
ait_rt.program @events arena (0) {
  // CHECK: ait_rt.record event 0 stream 0
  // GENERIC: "ait_rt.record"() <{event = 0 : i64, stream = 0 : i64}> : () -> ()
  ait_rt.record event 0 stream 0
  // CHECK-NEXT: ait_rt.wait event 0 stream 15
  // GENERIC-NEXT: "ait_rt.wait"() <{event = 0 : i64, stream = 15 : i64}> : () -> ()
  ait_rt.wait event 0 stream 15
}

// CHECK-LABEL: ait_rt.program @recorded dims {n = 1 to 8} arena (4*n) streams if recorded {
// GENERIC: streams_if_recorded
ait_rt.program @recorded dims {n = 1 to 8} arena (4*n) streams if recorded {
}
