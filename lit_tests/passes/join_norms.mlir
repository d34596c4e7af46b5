// RUN: ait-opt %s -p join-norms --check-semantics | filecheck %s
// RUN: ait-opt %s -p 'join-norms{target="cuda" arch="sm_90a"}' | filecheck %s --check-prefix=CARD
// RUN: ait-opt %s -p 'join-norms{target="cuda" arch="sm_90a" peer-memory=false}' | filecheck %s --check-prefix=OFF
// RUN: ait-opt %s -p 'join-norms{target="rocm" arch="gfx90a"}' | filecheck %s --check-prefix=OFF

// OFF-NOT: ait.reduced_norm
// CARD-COUNT-3: ait.reduced_norm
// CARD-NOT: ait.reduced_norm

// A sum over all ranks, a residual and a norm, in both orders of the addition; the sum with the residual is read again.
// CHECK-LABEL: ait.graph @both
// CHECK: %n, %s = ait.reduced_norm %x add %r scale %g axes 1 eps 1e-05 over ["tp"] of <["tp"=2]> : !ait.tensor<b x 64 x f16>, !ait.tensor<b x 64 x f16>
// CHECK-NEXT: %y, {{.*}} = ait.reduced_norm %n add %s scale %g bias %g axes 1 eps 1e-05 centred over ["tp"] of <["tp"=2]>
// CHECK-NEXT: ait.output "y" %y
ait.graph @both(%x: !ait.tensor<b x 64 x f16>, %r: !ait.tensor<b x 64 x f16>) dims {b = 0 to 8} ranks {mesh = #sdy.mesh<["tp"=2]>} {
  %g = ait.param "g" : !ait.tensor<64 x f16>
  %0 = ait.all_reduce sum %x over ["tp"] of <["tp"=2]> : !ait.tensor<b x 64 x f16>
  %n, %s = ait.rms_norm %r scale %g axes 1 eps 1e-05 prologue(%0) {
  ^bb0(%1: f32, %2: f32):
    %3 = ait.add %1, %2 : f32
    ait.yield %3, %3 : f32, f32
  } : !ait.tensor<b x 64 x f16>, !ait.tensor<b x 64 x f16>
  %4 = ait.all_reduce sum %n over ["tp"] of <["tp"=2]> : !ait.tensor<b x 64 x f16>
  %y = ait.layer_norm %4 scale %g bias %g axes 1 eps 1e-05 prologue(%s) {
  ^bb0(%5: f32, %6: f32):
    %7 = ait.add %6, %5 : f32
    ait.yield %7 : f32
  } : !ait.tensor<b x 64 x f16>
  ait.output "y" %y : !ait.tensor<b x 64 x f16>
}

// Rows of several dims, and no factors.
// CHECK-LABEL: ait.graph @two_dims
// CHECK: ait.reduced_norm %x add %r axes 2 eps 0.0 over
ait.graph @two_dims(%x: !ait.tensor<3 x 4 x 8 x f32>, %r: !ait.tensor<3 x 4 x 8 x f32>) ranks {mesh = #sdy.mesh<["tp"=2]>} {
  %0 = ait.all_reduce sum %x over ["tp"] of <["tp"=2]> : !ait.tensor<3 x 4 x 8 x f32>
  %y = ait.rms_norm %0 axes 2 eps 0.0 prologue(%r) {
  ^bb0(%1: f32, %2: f32):
    %3 = ait.add %1, %2 : f32
    ait.yield %3 : f32
  } : !ait.tensor<3 x 4 x 8 x f32>
  ait.output "y" %y : !ait.tensor<3 x 4 x 8 x f32>
}

// The kernel has rows of one length in whole chunks of 16 bytes.
// CHECK-LABEL: ait.graph @any_length
// CHECK: ait.reduced_norm %x add %r axes 1
ait.graph @any_length(%x: !ait.tensor<3 x s x f16>, %r: !ait.tensor<3 x s x f16>) dims {s = 1 to 64} ranks {mesh = #sdy.mesh<["tp"=2]>} {
  %0 = ait.all_reduce sum %x over ["tp"] of <["tp"=2]> : !ait.tensor<3 x s x f16>
  %y = ait.rms_norm %0 axes 1 eps 1e-05 prologue(%r) {
  ^bb0(%1: f32, %2: f32):
    %3 = ait.add %1, %2 : f32
    ait.yield %3 : f32
  } : !ait.tensor<3 x s x f16>
  ait.output "y" %y : !ait.tensor<3 x s x f16>
}

// CHECK-LABEL: ait.graph @read_twice
// CHECK: ait.all_reduce
// CHECK: ait.rms_norm
ait.graph @read_twice(%x: !ait.tensor<3 x 64 x f16>, %r: !ait.tensor<3 x 64 x f16>) ranks {mesh = #sdy.mesh<["tp"=2]>} {
  %0 = ait.all_reduce sum %x over ["tp"] of <["tp"=2]> : !ait.tensor<3 x 64 x f16>
  %y = ait.rms_norm %0 axes 1 eps 1e-05 prologue(%r) {
  ^bb0(%1: f32, %2: f32):
    %3 = ait.add %1, %2 : f32
    ait.yield %3 : f32
  } : !ait.tensor<3 x 64 x f16>
  ait.output "y" %y : !ait.tensor<3 x 64 x f16>
  ait.output "z" %0 : !ait.tensor<3 x 64 x f16>
}

// CHECK-LABEL: ait.graph @added_to_itself
// CHECK: ait.all_reduce
// CHECK: ait.rms_norm
ait.graph @added_to_itself(%x: !ait.tensor<3 x 64 x f16>) ranks {mesh = #sdy.mesh<["tp"=2]>} {
  %0 = ait.all_reduce sum %x over ["tp"] of <["tp"=2]> : !ait.tensor<3 x 64 x f16>
  %y = ait.rms_norm %0 axes 1 eps 1e-05 prologue(%0) {
  ^bb0(%1: f32, %2: f32):
    %3 = ait.add %1, %2 : f32
    ait.yield %3 : f32
  } : !ait.tensor<3 x 64 x f16>
  ait.output "y" %y : !ait.tensor<3 x 64 x f16>
}

// CHECK-LABEL: ait.graph @largest
// CHECK: ait.all_reduce max
// CHECK: ait.rms_norm
ait.graph @largest(%x: !ait.tensor<3 x 64 x f16>, %r: !ait.tensor<3 x 64 x f16>) ranks {mesh = #sdy.mesh<["tp"=2]>} {
  %0 = ait.all_reduce max %x over ["tp"] of <["tp"=2]> : !ait.tensor<3 x 64 x f16>
  %y = ait.rms_norm %0 axes 1 eps 1e-05 prologue(%r) {
  ^bb0(%1: f32, %2: f32):
    %3 = ait.add %1, %2 : f32
    ait.yield %3 : f32
  } : !ait.tensor<3 x 64 x f16>
  ait.output "y" %y : !ait.tensor<3 x 64 x f16>
}

// A residual of one row, another function of the two, a further result of the sum alone, a lower bound, and an epilogue.
// CHECK-LABEL: ait.graph @other_norms
// CHECK-NOT: ait.reduced_norm
ait.graph @other_norms(%x: !ait.tensor<3 x 64 x f16>, %r: !ait.tensor<3 x 64 x f16>, %one: !ait.tensor<64 x f16>) ranks {mesh = #sdy.mesh<["tp"=2]>} {
  %0 = ait.all_reduce sum %x over ["tp"] of <["tp"=2]> : !ait.tensor<3 x 64 x f16>
  %a = ait.rms_norm %0 axes 1 eps 1e-05 prologue(%one) {
  ^bb0(%1: f32, %2: f32):
    %3 = ait.add %1, %2 : f32
    ait.yield %3 : f32
  } : !ait.tensor<3 x 64 x f16>
  %4 = ait.all_reduce sum %a over ["tp"] of <["tp"=2]> : !ait.tensor<3 x 64 x f16>
  %b = ait.rms_norm %4 axes 1 eps 1e-05 prologue(%r) {
  ^bb0(%5: f32, %6: f32):
    %7 = ait.sub %5, %6 : f32
    ait.yield %7 : f32
  } : !ait.tensor<3 x 64 x f16>
  %8 = ait.all_reduce sum %b over ["tp"] of <["tp"=2]> : !ait.tensor<3 x 64 x f16>
  %c, %d = ait.rms_norm %8 axes 1 eps 1e-05 prologue(%r) {
  ^bb0(%9: f32, %10: f32):
    %11 = ait.add %9, %10 : f32
    ait.yield %11, %9 : f32, f32
  } : !ait.tensor<3 x 64 x f16>, !ait.tensor<3 x 64 x f16>
  %12 = ait.all_reduce sum %c over ["tp"] of <["tp"=2]> : !ait.tensor<3 x 64 x f16>
  %e = ait.rms_norm %12 axes 1 eps 1e-05 bounded prologue(%d) {
  ^bb0(%13: f32, %14: f32):
    %15 = ait.add %13, %14 : f32
    ait.yield %15 : f32
  } : !ait.tensor<3 x 64 x f16>
  %16 = ait.all_reduce sum %e over ["tp"] of <["tp"=2]> : !ait.tensor<3 x 64 x f16>
  %f = ait.rms_norm %16 axes 1 eps 1e-05 prologue(%r) {
  ^bb0(%17: f32, %18: f32):
    %19 = ait.add %17, %18 : f32
    ait.yield %19 : f32
  } epilogue() {
  ^bb0(%20: f32):
    %21 = ait.relu %20 : f32
    ait.yield %21 : f32
  } : !ait.tensor<3 x 64 x f16>
  ait.output "y" %f : !ait.tensor<3 x 64 x f16>
}
