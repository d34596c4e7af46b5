// RUN: ait-opt %s -p 'quantize-attention{target="cuda" arch="sm_90a"}' | filecheck %s
// RUN: ait-opt %s -p 'quantize-attention{target="cuda" arch="sm_80"}' | filecheck %s --check-prefix PLAIN

// Of long sequences only the kernel for Hopper stores numbers as fast as it stores floats.
// CHECK-LABEL: ait.graph @long
// CHECK: ait.attention {{.*}} result_scale 0.25
// CHECK-NOT: ait.loops
// PLAIN-LABEL: ait.graph @long
// PLAIN-NOT: result_scale
// PLAIN: ait.loops
ait.graph @long(%q: !ait.tensor<b x 4 x s x 128 x f16>, %k: !ait.tensor<b x 4 x s x 128 x f16>) dims {b = 1 to 8, s = 512 to 1024} {
  %o = ait.attention %q, %k, %k scale 0.125 causal : !ait.tensor<b x 4 x s x 128 x f16>
  %n = ait.loops(%o) for (d0 = b, d1 = s, d2 = 512) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 128 x f16>):
    %e = ait.at %x[d0, d2 floordiv 128, d1, d2 mod 128] : f32
    %c = ait.constant 0.25 : f32
    %r = ait.div %e, %c : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g : f32
  } : !ait.tensor<b x s x 512 x f8E4M3FN>
  ait.output "n" %n : !ait.tensor<b x s x 512 x f8E4M3FN>
}
