// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @unary(%x: !ait.tensor<b x 8 x f16>) dims {b = 0 to 4} {
// GENERIC-LABEL: "ait.graph"() <{sym_name = "unary", dims = #ait.dims<b = 0 to 4>, input_names = ["x"]}> ({
ait.graph @unary(%x: !ait.tensor<b x 8 x f16>) dims {b = 0 to 4} {
  // CHECK: %0 = ait.neg %x : !ait.tensor<b x 8 x f16>
  // GENERIC: %0 = "ait.neg"(%x) : (!ait.tensor<b x 8 x f16>) -> !ait.tensor<b x 8 x f16>
  %0 = ait.neg %x : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %1 = ait.exp %0 : !ait.tensor<b x 8 x f16>
  // GENERIC: %1 = "ait.exp"(%0)
  %1 = ait.exp %0 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %2 = ait.log %1
  // GENERIC: "ait.log"
  %2 = ait.log %1 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %3 = ait.sqrt %2
  // GENERIC: "ait.sqrt"
  %3 = ait.sqrt %2 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %4 = ait.rsqrt %3
  // GENERIC: "ait.rsqrt"
  %4 = ait.rsqrt %3 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %5 = ait.tanh %4
  // GENERIC: "ait.tanh"
  %5 = ait.tanh %4 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %6 = ait.erf %5
  // GENERIC: "ait.erf"
  %6 = ait.erf %5 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %7 = ait.sigmoid %6
  // GENERIC: "ait.sigmoid"
  %7 = ait.sigmoid %6 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %8 = ait.relu %7
  // GENERIC: "ait.relu"
  %8 = ait.relu %7 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %9 = ait.gelu %8
  // GENERIC: "ait.gelu"
  %9 = ait.gelu %8 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %10 = ait.fast_gelu %9
  // GENERIC: "ait.fast_gelu"
  %10 = ait.fast_gelu %9 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %11 = ait.silu %10
  // GENERIC: "ait.silu"
  %11 = ait.silu %10 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %12 = ait.abs %11
  // GENERIC: "ait.abs"
  %12 = ait.abs %11 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %13 = ait.floor %12
  // GENERIC: "ait.floor"
  %13 = ait.floor %12 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %14 = ait.sin %13
  // GENERIC: "ait.sin"
  %14 = ait.sin %13 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %15 = ait.cos %14
  // GENERIC: "ait.cos"
  %15 = ait.cos %14 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %16 = ait.log1p %15
  // GENERIC: "ait.log1p"
  %16 = ait.log1p %15 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %17 = ait.expm1 %16
  // GENERIC: "ait.expm1"
  %17 = ait.expm1 %16 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %18 = ait.asin %17
  // GENERIC: "ait.asin"
  %18 = ait.asin %17 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %19 = ait.acos %18
  // GENERIC: "ait.acos"
  %19 = ait.acos %18 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %20 = ait.atan %19
  // GENERIC: "ait.atan"
  %20 = ait.atan %19 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %21 = ait.sinh %20
  // GENERIC: "ait.sinh"
  %21 = ait.sinh %20 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %22 = ait.cosh %21
  // GENERIC: "ait.cosh"
  %22 = ait.cosh %21 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %23 = ait.asinh %22
  // GENERIC: "ait.asinh"
  %23 = ait.asinh %22 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %24 = ait.acosh %23
  // GENERIC: "ait.acosh"
  %24 = ait.acosh %23 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %25 = ait.atanh %24
  // GENERIC: "ait.atanh"
  %25 = ait.atanh %24 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %26 = ait.erfc %25
  // GENERIC: "ait.erfc"
  %26 = ait.erfc %25 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %27 = ait.erfinv %26
  // GENERIC: "ait.erfinv"
  %27 = ait.erfinv %26 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %28 = ait.lgamma %27
  // GENERIC: "ait.lgamma"
  %28 = ait.lgamma %27 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %29 = ait.digamma %28
  // GENERIC: "ait.digamma"
  %29 = ait.digamma %28 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %30 = ait.log2 %29
  // GENERIC: "ait.log2"
  %30 = ait.log2 %29 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %31 = ait.log10 %30
  // GENERIC: "ait.log10"
  %31 = ait.log10 %30 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %32 = ait.tan %31
  // GENERIC: "ait.tan"
  %32 = ait.tan %31 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %33 = ait.exp2 %32
  // GENERIC: "ait.exp2"
  %33 = ait.exp2 %32 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: ait.output "y" %33 : !ait.tensor<b x 8 x f16>
  // GENERIC: "ait.output"(%33) <{output_name = "y"}> : (!ait.tensor<b x 8 x f16>) -> ()
  ait.output "y" %33 : !ait.tensor<b x 8 x f16>
}

// Broadcasting: literal 1s and missing leading dims stretch, whichever operand has them.
// CHECK-LABEL: ait.graph @binary
ait.graph @binary(%a: !ait.tensor<b x 1 x 8 x f32>, %b: !ait.tensor<s x 8 x f32>, %c: !ait.tensor<f32>) dims {b = 1 to 4, s = 1 to 4} {
  // CHECK: %0 = ait.add %a, %b : !ait.tensor<b x s x 8 x f32>
  // GENERIC: "ait.add"(%a, %b) : (!ait.tensor<b x 1 x 8 x f32>, !ait.tensor<s x 8 x f32>) -> !ait.tensor<b x s x 8 x f32>
  %0 = ait.add %a, %b : !ait.tensor<b x s x 8 x f32>
  // CHECK-NEXT: %1 = ait.sub %b, %a : !ait.tensor<b x s x 8 x f32>
  // GENERIC: "ait.sub"
  %1 = ait.sub %b, %a : !ait.tensor<b x s x 8 x f32>
  // CHECK-NEXT: %2 = ait.mul %0, %c : !ait.tensor<b x s x 8 x f32>
  // GENERIC: "ait.mul"
  %2 = ait.mul %0, %c : !ait.tensor<b x s x 8 x f32>
  // CHECK-NEXT: %3 = ait.div %c, %1 : !ait.tensor<b x s x 8 x f32>
  // GENERIC: "ait.div"
  %3 = ait.div %c, %1 : !ait.tensor<b x s x 8 x f32>
  // CHECK-NEXT: %4 = ait.max %2, %3
  // GENERIC: "ait.max"
  %4 = ait.max %2, %3 : !ait.tensor<b x s x 8 x f32>
  // CHECK-NEXT: %5 = ait.min %4, %4
  // GENERIC: "ait.min"
  %5 = ait.min %4, %4 : !ait.tensor<b x s x 8 x f32>
  // CHECK-NEXT: %6 = ait.pow %5, %c
  // GENERIC: "ait.pow"
  %6 = ait.pow %5, %c : !ait.tensor<b x s x 8 x f32>
  // CHECK-NEXT: %7 = ait.atan2 %6, %c
  // GENERIC: "ait.atan2"
  %7 = ait.atan2 %6, %c : !ait.tensor<b x s x 8 x f32>
  // CHECK-NEXT: %8 = ait.hypot %7, %c
  // GENERIC: "ait.hypot"
  %8 = ait.hypot %7, %c : !ait.tensor<b x s x 8 x f32>
  ait.output "y" %8 : !ait.tensor<b x s x 8 x f32>
}

// CHECK-LABEL: ait.graph @integers
ait.graph @integers(%a: !ait.tensor<3 x i32>, %b: !ait.tensor<3 x i32>) {
  // CHECK: ait.add %a, %b : !ait.tensor<3 x i32>
  %0 = ait.add %a, %b : !ait.tensor<3 x i32>
  // CHECK-NEXT: ait.div %0, %b : !ait.tensor<3 x i32>
  %1 = ait.div %0, %b : !ait.tensor<3 x i32>
  // CHECK-NEXT: ait.neg %1 : !ait.tensor<3 x i32>
  %2 = ait.neg %1 : !ait.tensor<3 x i32>
  // CHECK-NEXT: ait.relu %2 : !ait.tensor<3 x i32>
  %3 = ait.relu %2 : !ait.tensor<3 x i32>
  // CHECK-NEXT: ait.abs %3 : !ait.tensor<3 x i32>
  %4 = ait.abs %3 : !ait.tensor<3 x i32>
  // CHECK-NEXT: ait.gcd %4, %b : !ait.tensor<3 x i32>
  %5 = ait.gcd %4, %b : !ait.tensor<3 x i32>
  ait.output "y" %5 : !ait.tensor<3 x i32>
}

// CHECK-LABEL: ait.graph @choose
ait.graph @choose(%a: !ait.tensor<b x f16>, %b: !ait.tensor<1 x f16>) dims {b = 1 to 4} {
  // CHECK: %0 = ait.compare eq %a, %b : !ait.tensor<b x i1>
  // GENERIC: "ait.compare"(%a, %b) <{predicate = "eq"}> : (!ait.tensor<b x f16>, !ait.tensor<1 x f16>) -> !ait.tensor<b x i1>
  %0 = ait.compare eq %a, %b : !ait.tensor<b x i1>
  // CHECK-NEXT: ait.compare ne
  %1 = ait.compare ne %a, %b : !ait.tensor<b x i1>
  // CHECK-NEXT: ait.compare lt
  %2 = ait.compare lt %a, %b : !ait.tensor<b x i1>
  // CHECK-NEXT: ait.compare le
  %3 = ait.compare le %a, %b : !ait.tensor<b x i1>
  // CHECK-NEXT: ait.compare gt
  %4 = ait.compare gt %a, %b : !ait.tensor<b x i1>
  // CHECK-NEXT: ait.compare ge
  %5 = ait.compare ge %a, %b : !ait.tensor<b x i1>
  // CHECK-NEXT: %6 = ait.where %5, %a, %b : !ait.tensor<b x f16>
  // GENERIC: "ait.where"(%5, %a, %b) : (!ait.tensor<b x i1>, !ait.tensor<b x f16>, !ait.tensor<1 x f16>) -> !ait.tensor<b x f16>
  %6 = ait.where %5, %a, %b : !ait.tensor<b x f16>
  ait.output "y" %6 : !ait.tensor<b x f16>
}

// CHECK-LABEL: ait.graph @casts
ait.graph @casts(%a: !ait.tensor<b x f32>) dims {b = 1 to 4} {
  // CHECK: ait.cast %a : !ait.tensor<b x f16>
  // GENERIC: "ait.cast"(%a) : (!ait.tensor<b x f32>) -> !ait.tensor<b x f16>
  %0 = ait.cast %a : !ait.tensor<b x f16>
  // CHECK-NEXT: ait.cast %0 : !ait.tensor<b x bf16>
  %1 = ait.cast %0 : !ait.tensor<b x bf16>
  // CHECK-NEXT: ait.cast %1 : !ait.tensor<b x f64>
  %2 = ait.cast %1 : !ait.tensor<b x f64>
  // CHECK-NEXT: ait.cast %2 : !ait.tensor<b x i8>
  %3 = ait.cast %2 : !ait.tensor<b x i8>
  // CHECK-NEXT: ait.cast %3 : !ait.tensor<b x i64>
  %4 = ait.cast %3 : !ait.tensor<b x i64>
  // CHECK-NEXT: ait.cast %4 : !ait.tensor<b x i1>
  %5 = ait.cast %4 : !ait.tensor<b x i1>
  ait.output "y" %5 : !ait.tensor<b x i1>
}

// CHECK-LABEL: ait.graph @bitcasts
ait.graph @bitcasts(%a: !ait.tensor<b x f32>, %b: !ait.tensor<b x f64>, %c: !ait.tensor<b x f32>) dims {b = 1 to 4} {
  // CHECK: ait.bitcast %a : !ait.tensor<b x i32>
  // GENERIC: "ait.bitcast"(%a) : (!ait.tensor<b x f32>) -> !ait.tensor<b x i32>
  %0 = ait.bitcast %a : !ait.tensor<b x i32>
  // CHECK-NEXT: ait.bitcast %0 : !ait.tensor<b x f32>
  %1 = ait.bitcast %0 : !ait.tensor<b x f32>
  // CHECK-NEXT: ait.bitcast %b : !ait.tensor<b x i64>
  %2 = ait.bitcast %b : !ait.tensor<b x i64>
  // CHECK-NEXT: ait.bitcast %2 : !ait.tensor<b x f64>
  %3 = ait.bitcast %2 : !ait.tensor<b x f64>
  // CHECK-NEXT: ait.fused_elementwise(%1, %c)
  %4 = ait.fused_elementwise(%1, %c) {
  ^bb0(%x: f32, %y: f32):
    // CHECK: ait.bitcast %{{.*}} : i32
    // GENERIC: "ait.bitcast"(%{{.*}}) : (f32) -> i32
    %n = ait.bitcast %x : i32
    // CHECK-NEXT: ait.bitcast %{{.*}} : f32
    %f = ait.bitcast %n : f32
    %s = ait.add %f, %y : f32
    ait.yield %s : f32
  } : !ait.tensor<b x f32>
  ait.output "y" %3 : !ait.tensor<b x f64>
  ait.output "z" %4 : !ait.tensor<b x f32>
}

// The operand types may be given; they are not printed.
// CHECK-LABEL: ait.graph @long_form
ait.graph @long_form(%a: !ait.tensor<f32>) {
  // CHECK: ait.add %a, %a : !ait.tensor<f32>
  %0 = ait.add %a, %a : (!ait.tensor<f32>, !ait.tensor<f32>) -> !ait.tensor<f32>
  // CHECK-NEXT: ait.relu %0 {note = "kept"} : !ait.tensor<f32>
  %1 = ait.relu %0 {note = "kept"} : (!ait.tensor<f32>) -> (!ait.tensor<f32>)
  ait.output "y" %1 : !ait.tensor<f32>
}

// CHECK-LABEL: ait.graph @fused
ait.graph @fused(%a: !ait.tensor<b x 8 x f16>, %b: !ait.tensor<8 x f32>, %i: !ait.tensor<i64>) dims {b = 1 to 4} {
  // CHECK: %0, %1 = ait.fused_elementwise(%a, %b, %i) {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: i64):
  // GENERIC: "ait.fused_elementwise"(%a, %b, %i) ({
  // GENERIC-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: i64):
  %0, %1 = ait.fused_elementwise(%a, %b, %i) {
  ^bb0(%x: f32, %y: f32, %n: i64):
    // CHECK-NEXT: ait.constant 0.5 : f32
    // GENERIC-NEXT: "ait.constant"() <{value = 5.000000e-01 : f64}> : () -> f32
    %half = ait.constant 0.5 : f32
    // CHECK-NEXT: ait.mul
    // GENERIC-NEXT: "ait.mul"(%{{.*}}, %{{.*}}) : (f32, f32) -> f32
    %s = ait.mul %x, %half : f32
    // CHECK-NEXT: ait.cast %{{.*}} : f32
    %f = ait.cast %n : f32
    // CHECK-NEXT: ait.compare lt %{{.*}}, %{{.*}} : i1
    %c = ait.compare lt %s, %f : i1
    // CHECK-NEXT: ait.where %{{.*}}, %{{.*}}, %{{.*}} : f32
    %w = ait.where %c, %s, %y : f32
    // CHECK-NEXT: ait.yield %{{.*}}, %{{.*}} : f32, i1
    ait.yield %w, %c : f32, i1
  // CHECK-NEXT: } : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x i1>
  } : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x i1>
  ait.output "y" %0 : !ait.tensor<b x 8 x f16>
  ait.output "below" %1 : !ait.tensor<b x 8 x i1>
}

// CHECK-LABEL: ait.graph @clamp
ait.graph @clamp(%x: !ait.tensor<b x 8 x f16>, %i: !ait.tensor<b x i8>) dims {b = 0 to 4} {
  // CHECK: %0 = ait.clamp %x min 0.0 max 6.0 : !ait.tensor<b x 8 x f16>
  // GENERIC: "ait.clamp"(%x) <{min = 0.000000e+00 : f64, max = 6.000000e+00 : f64}>
  %0 = ait.clamp %x min 0.0 max 6.0 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %1 = ait.clamp %0 min -1 : !ait.tensor<b x 8 x f16>
  %1 = ait.clamp %0 min -1 : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %2 = ait.clamp %1 max inf : !ait.tensor<b x 8 x f16>
  %2 = ait.clamp %1 max inf : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %3 = ait.clamp %i min -128 max 127 : !ait.tensor<b x i8>
  %3 = ait.clamp %i min -128 max 127 : !ait.tensor<b x i8>
  // CHECK-NEXT: ait.fused_elementwise
  %4 = ait.fused_elementwise(%2) {
  ^bb0(%a: f32):
    // CHECK: ait.clamp {{.*}} min 1e-05 : f32
    %b = ait.clamp %a min 1e-05 : f32
    ait.yield %b : f32
  } : !ait.tensor<b x 8 x f16>
  ait.output "y" %4 : !ait.tensor<b x 8 x f16>
  ait.output "z" %3 : !ait.tensor<b x i8>
}

// CHECK-LABEL: ait.graph @bits
ait.graph @bits(%a: !ait.tensor<b x 8 x i32>, %c: !ait.tensor<8 x i32>, %x: !ait.tensor<8 x f16>) dims {b = 1 to 4} {
  // CHECK: %0 = ait.bit_and %a, %c : !ait.tensor<b x 8 x i32>
  %0 = ait.bit_and %a, %c : !ait.tensor<b x 8 x i32>
  // CHECK-NEXT: %1 = ait.bit_or %0, %c : !ait.tensor<b x 8 x i32>
  %1 = ait.bit_or %0, %c : !ait.tensor<b x 8 x i32>
  // CHECK-NEXT: %2 = ait.bit_xor %1, %c : !ait.tensor<b x 8 x i32>
  %2 = ait.bit_xor %1, %c : !ait.tensor<b x 8 x i32>
  // CHECK-NEXT: %3 = ait.shift_left %2, %c : !ait.tensor<b x 8 x i32>
  %3 = ait.shift_left %2, %c : !ait.tensor<b x 8 x i32>
  // CHECK-NEXT: %4 = ait.shift_right %3, %c : !ait.tensor<b x 8 x i32>
  %4 = ait.shift_right %3, %c : !ait.tensor<b x 8 x i32>
  // CHECK-NEXT: %5 = ait.rem %4, %c : !ait.tensor<b x 8 x i32>
  %5 = ait.rem %4, %c : !ait.tensor<b x 8 x i32>
  // CHECK-NEXT: %6 = ait.rem %x, %x : !ait.tensor<8 x f16>
  %6 = ait.rem %x, %x : !ait.tensor<8 x f16>
  ait.output "y" %5 : !ait.tensor<b x 8 x i32>
  ait.output "z" %6 : !ait.tensor<8 x f16>
}

// CHECK-LABEL: ait.graph @round
ait.graph @round(%x: !ait.tensor<4 x f16>) {
  // CHECK: ait.round %x : !ait.tensor<4 x f16>
  // GENERIC: "ait.round"
  %0 = ait.round %x : !ait.tensor<4 x f16>
  ait.output "y" %0 : !ait.tensor<4 x f16>
}
