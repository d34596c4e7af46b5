// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait_rt.program @count dims {b = 1 to 8, n = 0 to b bound} arena (0) {
ait_rt.program @count dims {b = 1 to 8, n = 0 to b bound} arena (0) {
  %x = ait_rt.input "x" : !ait_rt.buffer<b x f32>
  %k = ait_rt.input "k" : !ait_rt.buffer<i64>
  // CHECK: ait_rt.read_dim "n" from %k
  // GENERIC: "ait_rt.read_dim"(%k) <{dim = "n"}> : (!ait_rt.buffer<i64>) -> ()
  ait_rt.read_dim "n" from %k
}
