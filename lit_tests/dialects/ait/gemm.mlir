// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @layouts
ait.graph @layouts(%mk: !ait.tensor<m x 16 x f16>, %km: !ait.tensor<16 x m x f16>, %kn: !ait.tensor<16 x 8 x f16>, %nk: !ait.tensor<8 x 16 x f16>) dims {m = 1 to 64} {
  // CHECK: ait.gemm rrr %mk, %kn : !ait.tensor<m x 8 x f16>
  // GENERIC: "ait.gemm"(%mk, %kn) <{layout = "rrr"}> ({
  // GENERIC-NEXT: }) : (!ait.tensor<m x 16 x f16>, !ait.tensor<16 x 8 x f16>) -> !ait.tensor<m x 8 x f16>
  %0 = ait.gemm rrr %mk, %kn : !ait.tensor<m x 8 x f16>
  // CHECK-NEXT: ait.gemm rrc %mk, %kn : !ait.tensor<8 x m x f16>
  %1 = ait.gemm rrc %mk, %kn : !ait.tensor<8 x m x f16>
  // CHECK-NEXT: ait.gemm rcr %mk, %nk : !ait.tensor<m x 8 x f16>
  %2 = ait.gemm rcr %mk, %nk : !ait.tensor<m x 8 x f16>
  // CHECK-NEXT: ait.gemm rcc %mk, %nk : !ait.tensor<8 x m x f16>
  %3 = ait.gemm rcc %mk, %nk : !ait.tensor<8 x m x f16>
  // CHECK-NEXT: ait.gemm crr %km, %kn : !ait.tensor<m x 8 x f16>
  %4 = ait.gemm crr %km, %kn : !ait.tensor<m x 8 x f16>
  // CHECK-NEXT: ait.gemm crc %km, %kn : !ait.tensor<8 x m x f16>
  %5 = ait.gemm crc %km, %kn : !ait.tensor<8 x m x f16>
  // CHECK-NEXT: ait.gemm ccr %km, %nk : !ait.tensor<m x 8 x f16>
  %6 = ait.gemm ccr %km, %nk : !ait.tensor<m x 8 x f16>
  // CHECK-NEXT: ait.gemm ccc %km, %nk : !ait.tensor<8 x m x f16>
  %7 = ait.gemm ccc %km, %nk : !ait.tensor<8 x m x f16>
  ait.output "y" %7 : !ait.tensor<8 x m x f16>
}

// Leading dims of A belong to M.
// CHECK-LABEL: ait.graph @leading
ait.graph @leading(%x: !ait.tensor<b x s x 16 x bf16>, %w: !ait.tensor<8 x 16 x bf16>) dims {b = 0 to 4, s = 1 to 8} {
  // CHECK: ait.gemm rcr %x, %w : !ait.tensor<b x s x 8 x bf16>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x s x 8 x bf16>
  ait.output "y" %0 : !ait.tensor<b x s x 8 x bf16>
}

// Products of integers of 8 bits have sums in i32.
// CHECK-LABEL: ait.graph @bytes
ait.graph @bytes(%x: !ait.tensor<s x 16 x i8>, %u: !ait.tensor<s x 16 x ui8>, %w: !ait.tensor<8 x 16 x i8>, %c: !ait.tensor<8 x f32>) dims {s = 1 to 8} {
  // CHECK: ait.gemm rcr %x, %w : !ait.tensor<s x 8 x i32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<s x 8 x i32>
  // CHECK-NEXT: ait.bmm rcr %u, %w : !ait.tensor<s x 8 x i32>
  %1 = ait.bmm rcr %u, %w : !ait.tensor<s x 8 x i32>
  // CHECK-NEXT: ait.gemm rcr %u, %w epilogue(%c) {
  // CHECK-NEXT: ^bb0(%acc: i32, %scale: f32):
  %2 = ait.gemm rcr %u, %w epilogue(%c) {
  ^bb0(%acc: i32, %scale: f32):
    %f = ait.cast %acc : f32
    %y = ait.mul %f, %scale : f32
    ait.yield %y : f32
  } : !ait.tensor<s x 8 x f16>
  ait.output "y" %2 : !ait.tensor<s x 8 x f16>
}

// CHECK-LABEL: ait.graph @batched
ait.graph @batched(%q: !ait.tensor<b x 12 x s x 64 x f32>, %k: !ait.tensor<b x 12 x l x 64 x f32>, %one: !ait.tensor<1 x 64 x s x f32>, %w: !ait.tensor<64 x 32 x f32>) dims {b = 1 to 4, s = 1 to 8, l = 1 to 8} {
  // CHECK: ait.bmm rcr %q, %k : !ait.tensor<b x 12 x s x l x f32>
  // GENERIC: "ait.bmm"(%q, %k) <{layout = "rcr"}>
  %0 = ait.bmm rcr %q, %k : !ait.tensor<b x 12 x s x l x f32>
  // CHECK-NEXT: ait.bmm rcc %q, %k : !ait.tensor<b x 12 x l x s x f32>
  %1 = ait.bmm rcc %q, %k : !ait.tensor<b x 12 x l x s x f32>
  // CHECK-NEXT: ait.bmm crr %one, %w : !ait.tensor<1 x s x 32 x f32>
  %2 = ait.bmm crr %one, %w : !ait.tensor<1 x s x 32 x f32>
  // CHECK-NEXT: ait.bmm rrr %q, %one : !ait.tensor<b x 12 x s x s x f32>
  %3 = ait.bmm rrr %q, %one : !ait.tensor<b x 12 x s x s x f32>
  ait.output "y" %3 : !ait.tensor<b x 12 x s x s x f32>
}

// The accumulator and narrow operands arrive in f32; the yield is rounded once.
// CHECK-LABEL: ait.graph @epilogue
ait.graph @epilogue(%x: !ait.tensor<m x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>, %b: !ait.tensor<8 x f16>, %r: !ait.tensor<m x 8 x f32>) dims {m = 1 to 64} {
  // CHECK: %0 = ait.gemm rcr %x, %w epilogue(%b, %r) {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32):
  // GENERIC: "ait.gemm"(%x, %w, %b, %r) <{layout = "rcr"}> ({
  // GENERIC-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32):
  %0 = ait.gemm rcr %x, %w epilogue(%b, %r) {
  ^bb0(%acc: f32, %bias: f32, %residual: f32):
    // CHECK-NEXT: ait.add %{{.*}}, %{{.*}} : f32
    %s = ait.add %acc, %bias : f32
    // CHECK-NEXT: ait.gelu
    %g = ait.gelu %s : f32
    // CHECK-NEXT: ait.add
    %t = ait.add %g, %residual : f32
    // CHECK-NEXT: ait.yield %{{.*}} : f32
    ait.yield %t : f32
  // CHECK-NEXT: } : !ait.tensor<m x 8 x f16>
  } : !ait.tensor<m x 8 x f16>
  // CHECK-NEXT: %1 = ait.gemm rcr %x, %w epilogue() {
  %1 = ait.gemm rcr %x, %w epilogue() {
  ^bb0(%acc_1: f32):
    %u = ait.relu %acc_1 : f32
    ait.yield %u : f32
  // CHECK: } {kernel = #ait.kernel<"cublaslt", {id = 66 : i64}>} : !ait.tensor<m x 8 x f32>
  } {kernel = #ait.kernel<"cublaslt", {id = 66 : i64}>} : !ait.tensor<m x 8 x f32>
  ait.output "y" %0 : !ait.tensor<m x 8 x f16>
  ait.output "z" %1 : !ait.tensor<m x 8 x f32>
}

// Both sums of a result, then the other operands; 2*n columns of B make n of the result.
// CHECK-LABEL: ait.graph @gated
ait.graph @gated(%x: !ait.tensor<b x s x k x f16>, %w: !ait.tensor<(2*n) x k x f16>, %v: !ait.tensor<k x 6 x f16>, %r: !ait.tensor<n x f16>) dims {b = 0 to 4, s = 1 to 8, k = 0 to 9, n = 0 to 9} {
  // CHECK: %0 = ait.gated_gemm rcr %x, %w epilogue(%r) {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32):
  // GENERIC: "ait.gated_gemm"(%x, %w, %r) <{layout = "rcr"}> ({
  // GENERIC-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32):
  %0 = ait.gated_gemm rcr %x, %w epilogue(%r) {
  ^bb0(%gate: f32, %up: f32, %bias: f32):
    %g = ait.silu %gate : f32
    %p = ait.mul %g, %up : f32
    %q = ait.add %p, %bias : f32
    ait.yield %q : f32
  // CHECK: } : !ait.tensor<b x s x n x f16>
  } : !ait.tensor<b x s x n x f16>
  // CHECK-NEXT: %1 = ait.gated_gemm rrr %x, %v epilogue() {
  %1 = ait.gated_gemm rrr %x, %v epilogue() {
  ^bb0(%a: f32, %c: f32):
    ait.yield %c : f32
  // CHECK: } {kernel = #ait.kernel<"hopper", {}>} : !ait.tensor<b x s x 3 x f32>
  } {kernel = #ait.kernel<"hopper", {}>} : !ait.tensor<b x s x 3 x f32>
  ait.output "y" %0 : !ait.tensor<b x s x n x f16>
  ait.output "z" %1 : !ait.tensor<b x s x 3 x f32>
}

// CHECK-LABEL: ait.graph @rotated
ait.graph @rotated(%x: !ait.tensor<batch x seq x 512 x f16>, %w: !ait.tensor<768 x 512 x f16>, %c: !ait.tensor<seq x 32 x f16>, %s: !ait.tensor<32 x f16>) dims {batch = 0 to 8, seq = 0 to 128} {
  // CHECK: %0 = ait.rotated_gemm %x, %w cosines %c sines %s heads 10 size 64 : !ait.tensor<batch x seq x 768 x f16>
  %0 = ait.rotated_gemm %x, %w cosines %c sines %s heads 10 size 64 : !ait.tensor<batch x seq x 768 x f16>
  ait.output "y" %0 : !ait.tensor<batch x seq x 768 x f16>
}

// CHECK-LABEL: ait.graph @stored
ait.graph @stored(%x: !ait.tensor<m x 64 x f16>, %b: !ait.tensor<24 x 64 x i8>, %p: !ait.tensor<24 x 32 x ui8>, %s: !ait.tensor<24 x 2 x f32>, %z: !ait.tensor<24 x 2 x ui8>, %r: !ait.tensor<24 x f16>) dims {m = 0 to 8} {
  // CHECK: %0 = ait.stored_gemm %x by %b scale %s group 32 : !ait.tensor<m x 24 x f16>
  // GENERIC: "ait.stored_gemm"(%x, %b, %s) <{group = 32 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({
  %0 = ait.stored_gemm %x by %b scale %s group 32 : !ait.tensor<m x 24 x f16>
  // CHECK: %1 = ait.stored_gemm %x by %p scale %s zero %z group 48 epilogue(%r) {
  %1 = ait.stored_gemm %x by %p scale %s zero %z group 48 epilogue(%r) {
  ^bb0(%acc: f32, %bias: f32):
    %t = ait.add %acc, %bias : f32
    ait.yield %t : f32
  } : !ait.tensor<m x 24 x f16>
  // CHECK: %2 = ait.stored_gemm %x by %p scale %s group 32 signed : !ait.tensor<m x 24 x f16>
  %2 = ait.stored_gemm %x by %p scale %s group 32 signed : !ait.tensor<m x 24 x f16>
  ait.output "0" %0 : !ait.tensor<m x 24 x f16>
  ait.output "1" %1 : !ait.tensor<m x 24 x f16>
  ait.output "2" %2 : !ait.tensor<m x 24 x f16>
}

// Rows of one number: a byte has a number of 8 bits, or one of 4 bits with a sign.
// CHECK-LABEL: ait.graph @stored_one
ait.graph @stored_one(%x: !ait.tensor<m x 1 x f32>, %w: !ait.tensor<24 x 1 x ui8>, %s: !ait.tensor<24 x 1 x f32>) dims {m = 0 to 8} {
  // CHECK: ait.stored_gemm %x by %w scale %s group 3 : !ait.tensor<m x 24 x f32>
  %0 = ait.stored_gemm %x by %w scale %s group 3 : !ait.tensor<m x 24 x f32>
  // CHECK: ait.stored_gemm %x by %w scale %s group 4 signed : !ait.tensor<m x 24 x f32>
  %1 = ait.stored_gemm %x by %w scale %s group 4 signed : !ait.tensor<m x 24 x f32>
  ait.output "0" %0 : !ait.tensor<m x 24 x f32>
  ait.output "1" %1 : !ait.tensor<m x 24 x f32>
}

// CHECK-LABEL: ait.graph @scaled
ait.graph @scaled(%x: !ait.tensor<m x 300 x f8E4M3FN>, %w: !ait.tensor<200 x 300 x f8E5M2>, %s: !ait.tensor<m x 3 x f32>, %t: !ait.tensor<2 x 3 x f32>, %r: !ait.tensor<200 x f16>) dims {m = 0 to 8} {
  // CHECK: %0 = ait.scaled_gemm %x by %w rows %s columns %t group 128 block 128 : !ait.tensor<m x 200 x f32>
  %0 = ait.scaled_gemm %x by %w rows %s columns %t group 128 block 128 : !ait.tensor<m x 200 x f32>
  // CHECK: %1 = ait.scaled_gemm %x by %w rows %s columns %t group 128 block 128 epilogue(%r) {
  %1 = ait.scaled_gemm %x by %w rows %s columns %t group 128 block 128 epilogue(%r) {
  ^bb0(%acc: f32, %bias: f32):
    %y = ait.add %acc, %bias : f32
    ait.yield %y : f32
  } : !ait.tensor<m x 200 x f16>
  ait.output "0" %0 : !ait.tensor<m x 200 x f32>
  ait.output "1" %1 : !ait.tensor<m x 200 x f16>
}

// An epilogue may yield several values: each is a result with its own element type.
// CHECK-LABEL: ait.graph @several
ait.graph @several(%x: !ait.tensor<m x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>, %q: !ait.tensor<2 x m x 16 x f16>, %v: !ait.tensor<8 x 1 x f16>) dims {m = 1 to 64} {
  // CHECK: %0, %1, %2 = ait.gemm rcr %x, %w epilogue() {
  // CHECK-NEXT: ^bb0([[ACC:%.*]]: f32):
  // CHECK-NEXT: [[G:%.*]] = ait.gelu [[ACC]] : f32
  // CHECK-NEXT: ait.yield [[G]], [[ACC]], [[G]] : f32, f32, f32
  // CHECK-NEXT: } : !ait.tensor<m x 8 x f16>, !ait.tensor<m x 8 x f32>, !ait.tensor<m x 8 x bf16>
  // GENERIC: "ait.gemm"(%x, %w) <{layout = "rcr"}> ({
  // GENERIC: }) : (!ait.tensor<m x 16 x f16>, !ait.tensor<8 x 16 x f16>) -> (!ait.tensor<m x 8 x f16>, !ait.tensor<m x 8 x f32>, !ait.tensor<m x 8 x bf16>)
  %0, %1, %2 = ait.gemm rcr %x, %w epilogue() {
  ^bb0(%acc: f32):
    %g = ait.gelu %acc : f32
    ait.yield %g, %acc, %g : f32, f32, f32
  } : !ait.tensor<m x 8 x f16>, !ait.tensor<m x 8 x f32>, !ait.tensor<m x 8 x bf16>
  // CHECK-NEXT: %3, %4 = ait.bmm rcc %q, %w epilogue(%v) {
  %3, %4 = ait.bmm rcc %q, %w epilogue(%v) {
  ^bb0(%acc_1: f32, %r: f32):
    %s = ait.add %acc_1, %r : f32
    ait.yield %s, %acc_1 : f32, f32
  } : !ait.tensor<2 x 8 x m x f16>, !ait.tensor<2 x 8 x m x f16>
  ait.output "y" %3 : !ait.tensor<2 x 8 x m x f16>
}

// CHECK-LABEL: ait.graph @without_a_configuration
ait.graph @without_a_configuration(%x: !ait.tensor<8 x 4 x f16>) {
  // CHECK: ait.relu %x {kernel = #ait.kernel<"native", {}>}
  %0 = ait.relu %x {kernel = #ait.kernel<"native">} : !ait.tensor<8 x 4 x f16>
  ait.output "y" %0 : !ait.tensor<8 x 4 x f16>
}

// Products of floats of 8 bits have sums of f32.
// CHECK-LABEL: ait.graph @float8
ait.graph @float8(%x: !ait.tensor<2 x 16 x f8E4M3FN>, %w: !ait.tensor<8 x 16 x f8E5M2>) {
  // CHECK: ait.gemm rcr %x, %w : !ait.tensor<2 x 8 x f32>
  %0 = ait.gemm rcr %x, %w : !ait.tensor<2 x 8 x f32>
  ait.output "y" %0 : !ait.tensor<2 x 8 x f32>
}
