// RUN: ait-opt %s -p quantize-attention --check-semantics | filecheck %s
// RUN: ait-opt %s -p 'quantize-attention{target="cuda" arch="sm_90a"}' | filecheck %s

// One scale for all values.
// CHECK-LABEL: ait.graph @one_scale
ait.graph @one_scale(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK:      [[N:%.+]] = ait.attention %q, %k, %v scale 0.125 causal result_scale 0.25 : !ait.tensor<b x 4 x s x 32 x f8E4M3FN>
  // CHECK-NEXT: [[P:%.+]] = ait.permute [[N]] [0, 2, 1, 3] : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>
  // CHECK-NEXT: [[R:%.+]] = ait.reshape [[P]] : !ait.tensor<b x s x 128 x f8E4M3FN>
  // CHECK-NEXT: ait.output "n" [[R]]
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n = ait.loops(%o) for (d0 = b, d1 = s, d2 = 128) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2 floordiv 32, d1, d2 mod 32] : f32
    %c = ait.constant 0.25 : f32
    %r = ait.div %e, %c : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g : f32
  } : !ait.tensor<b x s x 128 x f8E4M3FN>
  ait.output "n" %n : !ait.tensor<b x s x 128 x f8E4M3FN>
}

// Integers, of all rows in one dim; a second result stays.
// CHECK-LABEL: ait.graph @integers
ait.graph @integers(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK:     ait.attention %q, %k, %v scale 0.125 causal log_sums result_scale 0.25 : !ait.tensor<b x 4 x s x 32 x i8>, !ait.tensor<b x 4 x s x f32>
  // CHECK-NOT: ait.loops
  %o, %l = ait.attention %q, %k, %v scale 0.125 causal log_sums : !ait.tensor<b x 4 x s x 32 x f16>, !ait.tensor<b x 4 x s x f32>
  %n = ait.loops(%o) for (d0 = b*s, d1 = 128) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0 floordiv s, d1 floordiv 32, d0 mod s, d1 mod 32] : f32
    %c = ait.constant 0.25 : f32
    %r = ait.div %e, %c : f32
    %m = ait.round %r : f32
    %f = ait.cast %m : i8
    ait.yield %f : i8
  } : !ait.tensor<(b*s) x 128 x i8>
  ait.output "n" %n : !ait.tensor<(b*s) x 128 x i8>
  ait.output "l" %l : !ait.tensor<b x 4 x s x f32>
}

// A scale for each row of a head.
// CHECK-LABEL: ait.graph @scales_of_heads
ait.graph @scales_of_heads(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK:      [[N:%.+]], [[S:%.+]] = ait.attention %q, %k, %v scale 0.125 causal largest 448.0 least 1.0{{[0-9]*}}e-30
  // CHECK-SAME:   : !ait.tensor<b x 4 x s x 32 x f8E4M3FN>, !ait.tensor<b x 4 x s x f32>
  // CHECK:      [[P:%.+]] = ait.permute [[N]] [0, 2, 1, 3]
  // CHECK:      [[Q:%.+]] = ait.reshape [[P]] : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>
  // CHECK:      [[T:%.+]] = ait.permute [[S]] [0, 2, 1] : !ait.tensor<b x s x 4 x f32>
  // CHECK:      [[U:%.+]] = ait.reshape [[T]] : !ait.tensor<b x s x 4 x 1 x f32>
  // CHECK:      ait.output "n" [[Q]]
  // CHECK:      ait.output "p" [[U]]
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n, %p = ait.loops(%o) for (d0 = b, d1 = s, d2 = 4, d3 = 32) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2, d1, d3] : f32
    %h = ait.fold max for (k0 = 32) {
      %w = ait.at %x[d0, d2, d1, k0] : f32
      %a = ait.abs %w : f32
      ait.yield %a : f32
    } : f32
    %z = ait.constant 448.0 : f32
    %y = ait.div %h, %z : f32
    %t = ait.constant 1.0e-30 : f32
    %u = ait.max %y, %t : f32
    %r = ait.div %e, %u : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g, %u : f32, f32
  } : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>, !ait.tensor<b x s x 4 x 1 x f32>
  ait.output "n" %n : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>
  ait.output "p" %p : !ait.tensor<b x s x 4 x 1 x f32>
}

// The columns of all heads lie side by side.
// CHECK-LABEL: ait.graph @other_places
ait.graph @other_places(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-COUNT-1: ait.loops
  // CHECK-NOT: result_scale
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n = ait.loops(%o) for (d0 = b, d1 = s, d2 = 128) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2 mod 4, d1, d2 floordiv 4] : f32
    %c = ait.constant 0.25 : f32
    %r = ait.div %e, %c : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g : f32
  } : !ait.tensor<b x s x 128 x f8E4M3FN>
  ait.output "n" %n : !ait.tensor<b x s x 128 x f8E4M3FN>
}

// The range is another.
// CHECK-LABEL: ait.graph @other_clamp
ait.graph @other_clamp(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: result_scale
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n = ait.loops(%o) for (d0 = b, d1 = s, d2 = 128) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2 floordiv 32, d1, d2 mod 32] : f32
    %c = ait.constant 0.25 : f32
    %r = ait.div %e, %c : f32
    %m = ait.clamp %r min -448.0 max 440.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g : f32
  } : !ait.tensor<b x s x 128 x f8E4M3FN>
  ait.output "n" %n : !ait.tensor<b x s x 128 x f8E4M3FN>
}

// The values are multiplied.
// CHECK-LABEL: ait.graph @not_a_quotient
ait.graph @not_a_quotient(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: result_scale
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n = ait.loops(%o) for (d0 = b, d1 = s, d2 = 128) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2 floordiv 32, d1, d2 mod 32] : f32
    %c = ait.constant 0.25 : f32
    %r = ait.mul %e, %c : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g : f32
  } : !ait.tensor<b x s x 128 x f8E4M3FN>
  ait.output "n" %n : !ait.tensor<b x s x 128 x f8E4M3FN>
}

// The divisor is no number.
// CHECK-LABEL: ait.graph @scale_of_each_value
ait.graph @scale_of_each_value(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: result_scale
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n = ait.loops(%o) for (d0 = b, d1 = s, d2 = 128) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2 floordiv 32, d1, d2 mod 32] : f32
    %c = ait.exp %e : f32
    %r = ait.div %e, %c : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g : f32
  } : !ait.tensor<b x s x 128 x f8E4M3FN>
  ait.output "n" %n : !ait.tensor<b x s x 128 x f8E4M3FN>
}

// Something else reads the floats.
// CHECK-LABEL: ait.graph @two_readers
ait.graph @two_readers(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: result_scale
  // CHECK: ait.loops
  // CHECK: ait.output "o"
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n = ait.loops(%o) for (d0 = b, d1 = s, d2 = 128) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2 floordiv 32, d1, d2 mod 32] : f32
    %c = ait.constant 0.25 : f32
    %r = ait.div %e, %c : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g : f32
  } : !ait.tensor<b x s x 128 x f8E4M3FN>
  ait.output "n" %n : !ait.tensor<b x s x 128 x f8E4M3FN>
  ait.output "o" %o : !ait.tensor<b x 4 x s x 32 x f16>
}

// The kernel is chosen.
// CHECK-LABEL: ait.graph @selected
ait.graph @selected(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: result_scale
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal {kernel = "native"} : !ait.tensor<b x 4 x s x 32 x f16>
  %n = ait.loops(%o) for (d0 = b, d1 = s, d2 = 128) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2 floordiv 32, d1, d2 mod 32] : f32
    %c = ait.constant 0.25 : f32
    %r = ait.div %e, %c : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g : f32
  } : !ait.tensor<b x s x 128 x f8E4M3FN>
  ait.output "n" %n : !ait.tensor<b x s x 128 x f8E4M3FN>
}

// The result has a scale already.
// CHECK-LABEL: ait.graph @two_quotients
ait.graph @two_quotients(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK: result_scale 0.5
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 result_scale 0.5 : !ait.tensor<b x 4 x s x 32 x f8E4M3FN>
  %n = ait.loops(%o) for (d0 = b, d1 = s, d2 = 128) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f8E4M3FN>):
    %e = ait.at %x[d0, d2 floordiv 32, d1, d2 mod 32] : f32
    %c = ait.constant 0.25 : f32
    %r = ait.div %e, %c : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g : f32
  } : !ait.tensor<b x s x 128 x f8E4M3FN>
  ait.output "n" %n : !ait.tensor<b x s x 128 x f8E4M3FN>
}

// A number outside of the result, which is never read.
// CHECK-LABEL: ait.graph @elsewhere
ait.graph @elsewhere(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: result_scale
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n = ait.loops(%o) for (d0 = b, d1 = s, d2 = 128) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2 floordiv 32, d1, d2 mod 32] else 1.0 : f32
    %c = ait.constant 0.25 : f32
    %r = ait.div %e, %c : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g : f32
  } : !ait.tensor<b x s x 128 x f8E4M3FN>
  ait.output "n" %n : !ait.tensor<b x s x 128 x f8E4M3FN>
}

// The smallest magnitude.
// CHECK-LABEL: ait.graph @smallest
ait.graph @smallest(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: largest
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n, %p = ait.loops(%o) for (d0 = b, d1 = s, d2 = 4, d3 = 32) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2, d1, d3] : f32
    %h = ait.fold min for (k0 = 32) {
      %w = ait.at %x[d0, d2, d1, k0] : f32
      %a = ait.abs %w : f32
      ait.yield %a : f32
    } : f32
    %z = ait.constant 448.0 : f32
    %y = ait.div %h, %z : f32
    %t = ait.constant 1.0e-30 : f32
    %u = ait.max %y, %t : f32
    %r = ait.div %e, %u : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g, %u : f32, f32
  } : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>, !ait.tensor<b x s x 4 x 1 x f32>
  ait.output "n" %n : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>
  ait.output "p" %p : !ait.tensor<b x s x 4 x 1 x f32>
}

// A part of a row.
// CHECK-LABEL: ait.graph @half_of_a_row
ait.graph @half_of_a_row(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: largest
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n, %p = ait.loops(%o) for (d0 = b, d1 = s, d2 = 4, d3 = 32) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2, d1, d3] : f32
    %h = ait.fold max for (k0 = 16) {
      %w = ait.at %x[d0, d2, d1, k0] : f32
      %a = ait.abs %w : f32
      ait.yield %a : f32
    } : f32
    %z = ait.constant 448.0 : f32
    %y = ait.div %h, %z : f32
    %t = ait.constant 1.0e-30 : f32
    %u = ait.max %y, %t : f32
    %r = ait.div %e, %u : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g, %u : f32, f32
  } : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>, !ait.tensor<b x s x 4 x 1 x f32>
  ait.output "n" %n : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>
  ait.output "p" %p : !ait.tensor<b x s x 4 x 1 x f32>
}

// The scale of another row.
// CHECK-LABEL: ait.graph @next_row
ait.graph @next_row(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: largest
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n, %p = ait.loops(%o) for (d0 = b, d1 = s, d2 = 4, d3 = 32) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2, d1, d3] : f32
    %h = ait.fold max for (k0 = 32) {
      %w = ait.at %x[d0, d2, 0, k0] : f32
      %a = ait.abs %w : f32
      ait.yield %a : f32
    } : f32
    %z = ait.constant 448.0 : f32
    %y = ait.div %h, %z : f32
    %t = ait.constant 1.0e-30 : f32
    %u = ait.max %y, %t : f32
    %r = ait.div %e, %u : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g, %u : f32, f32
  } : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>, !ait.tensor<b x s x 4 x 1 x f32>
  ait.output "n" %n : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>
  ait.output "p" %p : !ait.tensor<b x s x 4 x 1 x f32>
}

// No magnitude.
// CHECK-LABEL: ait.graph @signed
ait.graph @signed(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: largest
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n, %p = ait.loops(%o) for (d0 = b, d1 = s, d2 = 4, d3 = 32) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2, d1, d3] : f32
    %h = ait.fold max for (k0 = 32) {
      %w = ait.at %x[d0, d2, d1, k0] : f32
      %a = ait.neg %w : f32
      ait.yield %a : f32
    } : f32
    %z = ait.constant 448.0 : f32
    %y = ait.div %h, %z : f32
    %t = ait.constant 1.0e-30 : f32
    %u = ait.max %y, %t : f32
    %r = ait.div %e, %u : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g, %u : f32, f32
  } : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>, !ait.tensor<b x s x 4 x 1 x f32>
  ait.output "n" %n : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>
  ait.output "p" %p : !ait.tensor<b x s x 4 x 1 x f32>
}

// A sum, not at least a number.
// CHECK-LABEL: ait.graph @plus
ait.graph @plus(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: largest
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n, %p = ait.loops(%o) for (d0 = b, d1 = s, d2 = 4, d3 = 32) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2, d1, d3] : f32
    %h = ait.fold max for (k0 = 32) {
      %w = ait.at %x[d0, d2, d1, k0] : f32
      %a = ait.abs %w : f32
      ait.yield %a : f32
    } : f32
    %z = ait.constant 448.0 : f32
    %y = ait.div %h, %z : f32
    %t = ait.constant 1.0e-30 : f32
    %u = ait.add %y, %t : f32
    %r = ait.div %e, %u : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g, %u : f32, f32
  } : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>, !ait.tensor<b x s x 4 x 1 x f32>
  ait.output "n" %n : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>
  ait.output "p" %p : !ait.tensor<b x s x 4 x 1 x f32>
}

// A product, not a quotient.
// CHECK-LABEL: ait.graph @times
ait.graph @times(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: largest
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n, %p = ait.loops(%o) for (d0 = b, d1 = s, d2 = 4, d3 = 32) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2, d1, d3] : f32
    %h = ait.fold max for (k0 = 32) {
      %w = ait.at %x[d0, d2, d1, k0] : f32
      %a = ait.abs %w : f32
      ait.yield %a : f32
    } : f32
    %z = ait.constant 0.002 : f32
    %y = ait.mul %h, %z : f32
    %t = ait.constant 1.0e-30 : f32
    %u = ait.max %y, %t : f32
    %r = ait.div %e, %u : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g, %u : f32, f32
  } : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>, !ait.tensor<b x s x 4 x 1 x f32>
  ait.output "n" %n : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>
  ait.output "p" %p : !ait.tensor<b x s x 4 x 1 x f32>
}

// The scale may be 0.
// CHECK-LABEL: ait.graph @nothing_at_least
ait.graph @nothing_at_least(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: largest
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n, %p = ait.loops(%o) for (d0 = b, d1 = s, d2 = 4, d3 = 32) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2, d1, d3] : f32
    %h = ait.fold max for (k0 = 32) {
      %w = ait.at %x[d0, d2, d1, k0] : f32
      %a = ait.abs %w : f32
      ait.yield %a : f32
    } : f32
    %z = ait.constant 448.0 : f32
    %y = ait.div %h, %z : f32
    %t = ait.constant 0.0 : f32
    %u = ait.max %y, %t : f32
    %r = ait.div %e, %u : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g, %u : f32, f32
  } : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>, !ait.tensor<b x s x 4 x 1 x f32>
  ait.output "n" %n : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>
  ait.output "p" %p : !ait.tensor<b x s x 4 x 1 x f32>
}

// Another number is stored.
// CHECK-LABEL: ait.graph @other_scale
ait.graph @other_scale(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: largest
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n, %p = ait.loops(%o) for (d0 = b, d1 = s, d2 = 4, d3 = 32) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2, d1, d3] : f32
    %h = ait.fold max for (k0 = 32) {
      %w = ait.at %x[d0, d2, d1, k0] : f32
      %a = ait.abs %w : f32
      ait.yield %a : f32
    } : f32
    %z = ait.constant 448.0 : f32
    %y = ait.div %h, %z : f32
    %t = ait.constant 1.0e-30 : f32
    %u = ait.max %y, %t : f32
    %r = ait.div %e, %u : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g, %y : f32, f32
  } : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>, !ait.tensor<b x s x 4 x 1 x f32>
  ait.output "n" %n : !ait.tensor<b x s x 4 x 32 x f8E4M3FN>
  ait.output "p" %p : !ait.tensor<b x s x 4 x 1 x f32>
}

// A scale for a row of all heads.
// CHECK-LABEL: ait.graph @whole_rows
ait.graph @whole_rows(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: largest
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n, %p = ait.loops(%o) for (d0 = b, d1 = s, d2 = 128) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2 floordiv 32, d1, d2 mod 32] : f32
    %h = ait.fold max for (k0 = 128) {
      %w = ait.at %x[d0, k0 floordiv 32, d1, k0 mod 32] : f32
      %a = ait.abs %w : f32
      ait.yield %a : f32
    } : f32
    %z = ait.constant 448.0 : f32
    %y = ait.div %h, %z : f32
    %t = ait.constant 1.0e-30 : f32
    %u = ait.max %y, %t : f32
    %r = ait.div %e, %u : f32
    %m = ait.clamp %r min -448.0 max 448.0 : f32
    %f = ait.cast %m : f8E4M3FN
    %g = ait.cast %f : f32
    ait.yield %g, %u : f32, f32
  } : !ait.tensor<b x s x 128 x f8E4M3FN>, !ait.tensor<b x s x 1 x f32>
  ait.output "n" %n : !ait.tensor<b x s x 128 x f8E4M3FN>
  ait.output "p" %p : !ait.tensor<b x s x 1 x f32>
}

// Floats of 16 bits are no numbers with a scale.
// CHECK-LABEL: ait.graph @halves
ait.graph @halves(%q: !ait.tensor<b x 4 x s x 32 x f16>, %k: !ait.tensor<b x 2 x s x 32 x f16>, %v: !ait.tensor<b x 2 x s x 32 x f16>) dims {b = 1 to 2, s = 8 to 24} {
  // CHECK-NOT: result_scale
  // CHECK: ait.loops
  // CHECK: }
  %o = ait.attention %q, %k, %v scale 0.125 causal : !ait.tensor<b x 4 x s x 32 x f16>
  %n = ait.loops(%o) for (d0 = b, d1 = s, d2 = 128) {
  ^bb0(%x: !ait.tensor<b x 4 x s x 32 x f16>):
    %e = ait.at %x[d0, d2 floordiv 32, d1, d2 mod 32] : f32
    %c = ait.constant 0.25 : f32
    %r = ait.div %e, %c : f32
    %m = ait.clamp %r min -65504.0 max 65504.0 : f32
    %f = ait.cast %m : f16
    %g = ait.cast %f : f32
    ait.yield %g : f32
  } : !ait.tensor<b x s x 128 x f16>
  ait.output "n" %n : !ait.tensor<b x s x 128 x f16>
}
