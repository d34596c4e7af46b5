// RUN: ait-opt %s -p simplify | filecheck %s
// RUN: ait-opt %s -p "narrow-row-ops{assume=true}" | filecheck %s
// RUN: ait-opt %s -p simplify --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// Norms as models spell them out: with a weight on either side, and without one.
// CHECK-LABEL: ait.graph @rms_norm
ait.graph @rms_norm(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 4} {
  // CHECK: ait.rms_norm %x scale %w axes 1 eps 9.99
  // CHECK-NEXT: ait.rms_norm %x scale %w axes 1
  // CHECK-NEXT: ait.rms_norm %x axes 1
  // CHECK-NEXT: ait.output
  %w = ait.param "w" : !ait.tensor<8 x f32>
  %eps = ait.constant 1e-06 : !ait.tensor<f32>
  %0 = ait.mul %x, %x : !ait.tensor<b x 8 x f32>
  %1 = ait.reduce mean %0 dims [1] : !ait.tensor<b x f32>
  %2 = ait.reshape %1 : !ait.tensor<b x 1 x f32>
  %3 = ait.add %2, %eps : !ait.tensor<b x 1 x f32>
  %4 = ait.rsqrt %3 : !ait.tensor<b x 1 x f32>
  %5 = ait.mul %x, %4 : !ait.tensor<b x 8 x f32>
  %6 = ait.mul %x, %x : !ait.tensor<b x 8 x f32>
  %7 = ait.reduce mean %6 dims [1] : !ait.tensor<b x f32>
  %8 = ait.reshape %7 : !ait.tensor<b x 1 x f32>
  %9 = ait.add %8, %eps : !ait.tensor<b x 1 x f32>
  %10 = ait.rsqrt %9 : !ait.tensor<b x 1 x f32>
  %11 = ait.mul %x, %10 : !ait.tensor<b x 8 x f32>
  %12 = ait.mul %w, %5 : !ait.tensor<b x 8 x f32>
  %13 = ait.mul %11, %w : !ait.tensor<b x 8 x f32>
  %14 = ait.mul %x, %x : !ait.tensor<b x 8 x f32>
  %15 = ait.reduce mean %14 dims [1] : !ait.tensor<b x f32>
  %16 = ait.reshape %15 : !ait.tensor<b x 1 x f32>
  %17 = ait.add %16, %eps : !ait.tensor<b x 1 x f32>
  %18 = ait.rsqrt %17 : !ait.tensor<b x 1 x f32>
  %19 = ait.mul %x, %18 : !ait.tensor<b x 8 x f32>
  ait.output "y0" %12 : !ait.tensor<b x 8 x f32>
  ait.output "y1" %13 : !ait.tensor<b x 8 x f32>
  ait.output "y2" %19 : !ait.tensor<b x 8 x f32>
}

// Another value, reduction, dim, shape, or a number that no norm has.
// CHECK-LABEL: ait.graph @no_rms_norm
ait.graph @no_rms_norm(%x: !ait.tensor<4 x 4 x f32>, %z: !ait.tensor<4 x 4 x f32>) {
  // CHECK-NOT: ait.rms_norm
  %eps = ait.constant 1e-06 : !ait.tensor<f32>
  %minus = ait.constant -1e-06 : !ait.tensor<f32>
  %two = ait.constant [0.5, 0.25, 1.0, 2.0] : !ait.tensor<4 x 1 x f32>
  %large = ait.constant 1e-06 : !ait.tensor<2 x 4 x 1 x f32>
  %0 = ait.mul %z, %x : !ait.tensor<4 x 4 x f32>
  %1 = ait.reduce mean %0 dims [1] : !ait.tensor<4 x f32>
  %2 = ait.reshape %1 : !ait.tensor<4 x 1 x f32>
  %3 = ait.add %2, %eps : !ait.tensor<4 x 1 x f32>
  %4 = ait.rsqrt %3 : !ait.tensor<4 x 1 x f32>
  %5 = ait.mul %x, %4 : !ait.tensor<4 x 4 x f32>
  %6 = ait.mul %x, %z : !ait.tensor<4 x 4 x f32>
  %7 = ait.reduce mean %6 dims [1] : !ait.tensor<4 x f32>
  %8 = ait.reshape %7 : !ait.tensor<4 x 1 x f32>
  %9 = ait.add %8, %eps : !ait.tensor<4 x 1 x f32>
  %10 = ait.rsqrt %9 : !ait.tensor<4 x 1 x f32>
  %11 = ait.mul %x, %10 : !ait.tensor<4 x 4 x f32>
  %12 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %13 = ait.reduce mean %12 dims [1] : !ait.tensor<4 x f32>
  %14 = ait.reshape %13 : !ait.tensor<4 x 1 x f32>
  %15 = ait.add %14, %eps : !ait.tensor<4 x 1 x f32>
  %16 = ait.rsqrt %15 : !ait.tensor<4 x 1 x f32>
  %17 = ait.mul %z, %16 : !ait.tensor<4 x 4 x f32>
  %18 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %19 = ait.reduce sum %18 dims [1] : !ait.tensor<4 x f32>
  %20 = ait.reshape %19 : !ait.tensor<4 x 1 x f32>
  %21 = ait.add %20, %eps : !ait.tensor<4 x 1 x f32>
  %22 = ait.rsqrt %21 : !ait.tensor<4 x 1 x f32>
  %23 = ait.mul %x, %22 : !ait.tensor<4 x 4 x f32>
  %24 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %25 = ait.reduce mean %24 dims [0] : !ait.tensor<4 x f32>
  %26 = ait.reshape %25 : !ait.tensor<4 x 1 x f32>
  %27 = ait.add %26, %eps : !ait.tensor<4 x 1 x f32>
  %28 = ait.rsqrt %27 : !ait.tensor<4 x 1 x f32>
  %29 = ait.mul %x, %28 : !ait.tensor<4 x 4 x f32>
  %30 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %31 = ait.reduce mean %30 dims [1] : !ait.tensor<4 x f32>
  %32 = ait.reshape %31 : !ait.tensor<1 x 4 x f32>
  %33 = ait.add %32, %eps : !ait.tensor<1 x 4 x f32>
  %34 = ait.rsqrt %33 : !ait.tensor<1 x 4 x f32>
  %35 = ait.mul %x, %34 : !ait.tensor<4 x 4 x f32>
  %36 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %37 = ait.reduce mean %36 dims [1] : !ait.tensor<4 x f32>
  %38 = ait.reshape %37 : !ait.tensor<4 x 1 x f32>
  %39 = ait.add %38, %minus : !ait.tensor<4 x 1 x f32>
  %40 = ait.rsqrt %39 : !ait.tensor<4 x 1 x f32>
  %41 = ait.mul %x, %40 : !ait.tensor<4 x 4 x f32>
  %42 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %43 = ait.reduce mean %42 dims [1] : !ait.tensor<4 x f32>
  %44 = ait.reshape %43 : !ait.tensor<4 x 1 x f32>
  %45 = ait.add %44, %two : !ait.tensor<4 x 1 x f32>
  %46 = ait.rsqrt %45 : !ait.tensor<4 x 1 x f32>
  %47 = ait.mul %x, %46 : !ait.tensor<4 x 4 x f32>
  %48 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %49 = ait.reduce mean %48 dims [1] : !ait.tensor<4 x f32>
  %50 = ait.reshape %49 : !ait.tensor<4 x 1 x f32>
  %51 = ait.add %50, %large : !ait.tensor<2 x 4 x 1 x f32>
  %52 = ait.rsqrt %51 : !ait.tensor<2 x 4 x 1 x f32>
  %53 = ait.mul %x, %52 : !ait.tensor<2 x 4 x 4 x f32>
  ait.output "y0" %5 : !ait.tensor<4 x 4 x f32>
  ait.output "y1" %11 : !ait.tensor<4 x 4 x f32>
  ait.output "y2" %17 : !ait.tensor<4 x 4 x f32>
  ait.output "y3" %23 : !ait.tensor<4 x 4 x f32>
  ait.output "y4" %29 : !ait.tensor<4 x 4 x f32>
  ait.output "y5" %35 : !ait.tensor<4 x 4 x f32>
  ait.output "y6" %41 : !ait.tensor<4 x 4 x f32>
  ait.output "y7" %47 : !ait.tensor<4 x 4 x f32>
  ait.output "y8" %53 : !ait.tensor<2 x 4 x 4 x f32>
}

// A weight of another shape, a norm of two dims or one that others use, too, or that has its kernel.
// CHECK-LABEL: ait.graph @no_scale
ait.graph @no_scale(%x: !ait.tensor<4 x 8 x f32>) {
  // CHECK-NOT: scale
  %w = ait.param "w" : !ait.tensor<8 x f32>
  %v = ait.param "v" : !ait.tensor<4 x 1 x f32>
  %0 = ait.rms_norm %x axes 1 eps 1e-06 : !ait.tensor<4 x 8 x f32>
  %1 = ait.mul %0, %v : !ait.tensor<4 x 8 x f32>
  %2 = ait.mul %v, %0 : !ait.tensor<4 x 8 x f32>
  %3 = ait.rms_norm %x axes 2 eps 1e-06 : !ait.tensor<4 x 8 x f32>
  %4 = ait.mul %3, %w : !ait.tensor<4 x 8 x f32>
  %5 = ait.rms_norm %x axes 2 eps 1e-06 : !ait.tensor<4 x 8 x f32>
  %6 = ait.mul %w, %5 : !ait.tensor<4 x 8 x f32>
  %7 = ait.rms_norm %x axes 1 eps 1e-06 : !ait.tensor<4 x 8 x f32>
  %8 = ait.mul %7, %w : !ait.tensor<4 x 8 x f32>
  %9 = ait.mul %w, %7 : !ait.tensor<4 x 8 x f32>
  %10 = ait.rms_norm %x axes 1 eps 1e-06 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<4 x 8 x f32>
  %11 = ait.mul %10, %w : !ait.tensor<4 x 8 x f32>
  %12 = ait.rms_norm %x axes 1 eps 1e-06 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<4 x 8 x f32>
  %13 = ait.mul %w, %12 : !ait.tensor<4 x 8 x f32>
  %14 = ait.rms_norm %x axes 1 eps 1e-06 : !ait.tensor<4 x 8 x f32>
  %15 = ait.mul %14, %v : !ait.tensor<4 x 8 x f32>
  %16 = ait.rms_norm %x axes 1 eps 1e-06 : !ait.tensor<4 x 8 x f32>
  %17 = ait.mul %v, %16 : !ait.tensor<4 x 8 x f32>
  // CHECK: ait.output "y0"
  ait.output "y0" %1 : !ait.tensor<4 x 8 x f32>
  ait.output "y1" %2 : !ait.tensor<4 x 8 x f32>
  ait.output "y2" %4 : !ait.tensor<4 x 8 x f32>
  ait.output "y3" %6 : !ait.tensor<4 x 8 x f32>
  ait.output "y4" %8 : !ait.tensor<4 x 8 x f32>
  ait.output "y5" %9 : !ait.tensor<4 x 8 x f32>
  ait.output "y6" %11 : !ait.tensor<4 x 8 x f32>
  ait.output "y7" %13 : !ait.tensor<4 x 8 x f32>
  ait.output "y8" %15 : !ait.tensor<4 x 8 x f32>
  ait.output "y9" %17 : !ait.tensor<4 x 8 x f32>
}

// A factor behind an epilogue is no scale of the norm.
// CHECK-LABEL: ait.graph @factor_behind_epilogue
ait.graph @factor_behind_epilogue(%x: !ait.tensor<4 x 8 x f32>) {
  // CHECK: ait.rms_norm %x axes 1 eps 0.001 epilogue() {
  // CHECK: ait.mul %{{.*}}, %w
  // CHECK: ait.rms_norm %x axes 1 eps 0.001 epilogue() {
  // CHECK: ait.mul %w, %{{.*}}
  %w = ait.param "w" : !ait.tensor<8 x f32>
  %0 = ait.rms_norm %x axes 1 eps 0.001 epilogue() {
  ^bb0(%a: f32):
    %s = ait.silu %a : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 8 x f32>
  %1 = ait.mul %0, %w : !ait.tensor<4 x 8 x f32>
  ait.output "y" %1 : !ait.tensor<4 x 8 x f32>
  %2 = ait.rms_norm %x axes 1 eps 0.001 epilogue() {
  ^bb0(%a: f32):
    %s = ait.silu %a : f32
    ait.yield %s : f32
  } : !ait.tensor<4 x 8 x f32>
  %3 = ait.mul %w, %2 : !ait.tensor<4 x 8 x f32>
  ait.output "z" %3 : !ait.tensor<4 x 8 x f32>
}
