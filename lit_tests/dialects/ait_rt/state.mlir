// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait_rt.program @step arena (0) {
ait_rt.program @step arena (0) {
  // CHECK-NEXT: %k = ait_rt.input "cache" donated : !ait_rt.buffer<8 x 4 x f16>
  // GENERIC: %k = "ait_rt.input"() <{buffer_name = "cache", donated}>
  %k = ait_rt.input "cache" donated : !ait_rt.buffer<8 x 4 x f16>
  %x = ait_rt.input "x" : !ait_rt.buffer<8 x 4 x f16>
  // CHECK: ait_rt.output "cache" in place of %k : !ait_rt.buffer<8 x 4 x f16>
  // GENERIC: "ait_rt.output"(%k) <{buffer_name = "cache"}>
  %c = ait_rt.output "cache" in place of %k : !ait_rt.buffer<8 x 4 x f16>
  // CHECK-NEXT: ait_rt.copy %x to %k
  ait_rt.copy %x to %k
}
