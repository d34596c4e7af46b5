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

// The length as a square root: divided by, or 1 over it.
// CHECK-LABEL: ait.graph @rms_norm_by_sqrt
ait.graph @rms_norm_by_sqrt(%x: !ait.tensor<b x 8 x f32>) dims {b = 1 to 4} {
  // CHECK-NEXT: [[Y:%.+]] = ait.rms_norm %x axes 1
  // CHECK-NEXT: [[Z:%.+]] = ait.rms_norm %x axes 1
  // CHECK-NEXT: ait.output "y0" [[Y]]
  // CHECK-NEXT: ait.output "y1" [[Z]]
  %eps = ait.constant 1e-06 : !ait.tensor<f32>
  %one = ait.constant 1.0 : !ait.tensor<f32>
  %0 = ait.mul %x, %x : !ait.tensor<b x 8 x f32>
  %1 = ait.reduce mean %0 dims [1] : !ait.tensor<b x f32>
  %2 = ait.reshape %1 : !ait.tensor<b x 1 x f32>
  %3 = ait.add %2, %eps : !ait.tensor<b x 1 x f32>
  %4 = ait.sqrt %3 : !ait.tensor<b x 1 x f32>
  %5 = ait.div %x, %4 : !ait.tensor<b x 8 x f32>
  %6 = ait.mul %x, %x : !ait.tensor<b x 8 x f32>
  %7 = ait.reduce mean %6 dims [1] : !ait.tensor<b x f32>
  %8 = ait.reshape %7 : !ait.tensor<b x 1 x f32>
  %9 = ait.add %8, %eps : !ait.tensor<b x 1 x f32>
  %10 = ait.sqrt %9 : !ait.tensor<b x 1 x f32>
  %11 = ait.div %one, %10 : !ait.tensor<b x 1 x f32>
  %12 = ait.mul %x, %11 : !ait.tensor<b x 8 x f32>
  ait.output "y0" %5 : !ait.tensor<b x 8 x f32>
  ait.output "y1" %12 : !ait.tensor<b x 8 x f32>
}

// The root has another user, too, and stays.
// CHECK-LABEL: ait.graph @rsqrt_and_sqrt
ait.graph @rsqrt_and_sqrt(%x: !ait.tensor<4 x f32>) {
  // CHECK-DAG: ait.sqrt %x
  // CHECK-DAG: ait.rsqrt %x
  %one = ait.constant 1.0 : !ait.tensor<f32>
  %0 = ait.sqrt %x : !ait.tensor<4 x f32>
  %1 = ait.div %one, %0 : !ait.tensor<4 x f32>
  ait.output "y0" %0 : !ait.tensor<4 x f32>
  ait.output "y1" %1 : !ait.tensor<4 x f32>
}

// Another number, a larger shape, the operands in the other order: no rsqrt.
// CHECK-LABEL: ait.graph @no_rsqrt
ait.graph @no_rsqrt(%x: !ait.tensor<4 x f32>) {
  // CHECK-NOT: ait.rsqrt
  %one = ait.constant 1.0 : !ait.tensor<f32>
  %two = ait.constant 2.0 : !ait.tensor<f32>
  %large = ait.constant 1.0 : !ait.tensor<3 x 4 x f32>
  %0 = ait.sqrt %x : !ait.tensor<4 x f32>
  %1 = ait.div %two, %0 : !ait.tensor<4 x f32>
  %2 = ait.div %large, %0 : !ait.tensor<3 x 4 x f32>
  %3 = ait.div %0, %one : !ait.tensor<4 x f32>
  ait.output "y0" %1 : !ait.tensor<4 x f32>
  ait.output "y1" %2 : !ait.tensor<3 x 4 x f32>
  ait.output "y2" %3 : !ait.tensor<4 x f32>
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

// The same of the length as a square root.
// CHECK-LABEL: ait.graph @no_rms_norm_by_sqrt
ait.graph @no_rms_norm_by_sqrt(%x: !ait.tensor<4 x 4 x f32>, %z: !ait.tensor<4 x 4 x f32>) {
  // CHECK-NOT: ait.rms_norm
  %eps = ait.constant 1e-06 : !ait.tensor<f32>
  %minus = ait.constant -1e-06 : !ait.tensor<f32>
  %two = ait.constant [0.5, 0.25, 1.0, 2.0] : !ait.tensor<4 x 1 x f32>
  %large = ait.constant 1e-06 : !ait.tensor<2 x 4 x 1 x f32>
  %0 = ait.mul %z, %x : !ait.tensor<4 x 4 x f32>
  %1 = ait.reduce mean %0 dims [1] : !ait.tensor<4 x f32>
  %2 = ait.reshape %1 : !ait.tensor<4 x 1 x f32>
  %3 = ait.add %2, %eps : !ait.tensor<4 x 1 x f32>
  %4 = ait.sqrt %3 : !ait.tensor<4 x 1 x f32>
  %5 = ait.div %x, %4 : !ait.tensor<4 x 4 x f32>
  %6 = ait.mul %x, %z : !ait.tensor<4 x 4 x f32>
  %7 = ait.reduce mean %6 dims [1] : !ait.tensor<4 x f32>
  %8 = ait.reshape %7 : !ait.tensor<4 x 1 x f32>
  %9 = ait.add %8, %eps : !ait.tensor<4 x 1 x f32>
  %10 = ait.sqrt %9 : !ait.tensor<4 x 1 x f32>
  %11 = ait.div %x, %10 : !ait.tensor<4 x 4 x f32>
  %12 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %13 = ait.reduce mean %12 dims [1] : !ait.tensor<4 x f32>
  %14 = ait.reshape %13 : !ait.tensor<4 x 1 x f32>
  %15 = ait.add %14, %eps : !ait.tensor<4 x 1 x f32>
  %16 = ait.sqrt %15 : !ait.tensor<4 x 1 x f32>
  %17 = ait.div %z, %16 : !ait.tensor<4 x 4 x f32>
  %18 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %19 = ait.reduce sum %18 dims [1] : !ait.tensor<4 x f32>
  %20 = ait.reshape %19 : !ait.tensor<4 x 1 x f32>
  %21 = ait.add %20, %eps : !ait.tensor<4 x 1 x f32>
  %22 = ait.sqrt %21 : !ait.tensor<4 x 1 x f32>
  %23 = ait.div %x, %22 : !ait.tensor<4 x 4 x f32>
  %24 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %25 = ait.reduce mean %24 dims [0] : !ait.tensor<4 x f32>
  %26 = ait.reshape %25 : !ait.tensor<4 x 1 x f32>
  %27 = ait.add %26, %eps : !ait.tensor<4 x 1 x f32>
  %28 = ait.sqrt %27 : !ait.tensor<4 x 1 x f32>
  %29 = ait.div %x, %28 : !ait.tensor<4 x 4 x f32>
  %30 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %31 = ait.reduce mean %30 dims [1] : !ait.tensor<4 x f32>
  %32 = ait.reshape %31 : !ait.tensor<1 x 4 x f32>
  %33 = ait.add %32, %eps : !ait.tensor<1 x 4 x f32>
  %34 = ait.sqrt %33 : !ait.tensor<1 x 4 x f32>
  %35 = ait.div %x, %34 : !ait.tensor<4 x 4 x f32>
  %36 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %37 = ait.reduce mean %36 dims [1] : !ait.tensor<4 x f32>
  %38 = ait.reshape %37 : !ait.tensor<4 x 1 x f32>
  %39 = ait.add %38, %minus : !ait.tensor<4 x 1 x f32>
  %40 = ait.sqrt %39 : !ait.tensor<4 x 1 x f32>
  %41 = ait.div %x, %40 : !ait.tensor<4 x 4 x f32>
  %42 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %43 = ait.reduce mean %42 dims [1] : !ait.tensor<4 x f32>
  %44 = ait.reshape %43 : !ait.tensor<4 x 1 x f32>
  %45 = ait.add %44, %two : !ait.tensor<4 x 1 x f32>
  %46 = ait.sqrt %45 : !ait.tensor<4 x 1 x f32>
  %47 = ait.div %x, %46 : !ait.tensor<4 x 4 x f32>
  %48 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %49 = ait.reduce mean %48 dims [1] : !ait.tensor<4 x f32>
  %50 = ait.reshape %49 : !ait.tensor<4 x 1 x f32>
  %51 = ait.add %50, %large : !ait.tensor<2 x 4 x 1 x f32>
  %52 = ait.sqrt %51 : !ait.tensor<2 x 4 x 1 x f32>
  %53 = ait.div %x, %52 : !ait.tensor<2 x 4 x 4 x f32>
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

// To length one: with a least length, which is bounded, or without, where a row of zeros is NaN; the root before or
// behind the reshape.
// CHECK-LABEL: ait.graph @length_one
ait.graph @length_one(%x: !ait.tensor<b x 4 x f32>) dims {b = 0 to 4} {
  // CHECK-NEXT: ait.rms_norm %x axes 1 eps 0.0025000000000000005 bounded epilogue() {
  // CHECK-NEXT: ^bb0([[A:%.*]]: f32):
  // CHECK-NEXT: [[F:%.*]] = ait.constant 0.5 : f32
  // CHECK-NEXT: [[M:%.*]] = ait.mul [[A]], [[F]] : f32
  // CHECK-NEXT: ait.yield [[M]] : f32
  // CHECK-NEXT: } : !ait.tensor<b x 4 x f32>
  // CHECK-NEXT: ait.rms_norm %x axes 1 eps 0.0 bounded epilogue() {
  // CHECK: ait.rms_norm %x axes 1 eps 0.0025000000000000005 bounded epilogue() {
  // CHECK: ait.rms_norm %x axes 1 eps 0.0 bounded epilogue() {
  // CHECK-NOT: ait.div
  // CHECK: ait.output
  %0 = ait.mul %x, %x : !ait.tensor<b x 4 x f32>
  %1 = ait.reduce sum %0 dims [1] : !ait.tensor<b x f32>
  %2 = ait.reshape %1 : !ait.tensor<b x 1 x f32>
  %3 = ait.sqrt %2 : !ait.tensor<b x 1 x f32>
  %4 = ait.clamp %3 min 0.1 : !ait.tensor<b x 1 x f32>
  %5 = ait.div %x, %4 : !ait.tensor<b x 4 x f32>
  %6 = ait.div %x, %3 : !ait.tensor<b x 4 x f32>
  %7 = ait.sqrt %1 : !ait.tensor<b x f32>
  %8 = ait.reshape %7 : !ait.tensor<b x 1 x f32>
  %9 = ait.clamp %8 min 0.1 : !ait.tensor<b x 1 x f32>
  %10 = ait.div %x, %9 : !ait.tensor<b x 4 x f32>
  %11 = ait.div %x, %8 : !ait.tensor<b x 4 x f32>
  ait.output "y0" %5 : !ait.tensor<b x 4 x f32>
  ait.output "y1" %6 : !ait.tensor<b x 4 x f32>
  ait.output "y2" %10 : !ait.tensor<b x 4 x f32>
  ait.output "y3" %11 : !ait.tensor<b x 4 x f32>
}

// Another value, reduction, dim, shape of the divisor or of the result, or bound.
// CHECK-LABEL: ait.graph @no_length_one
ait.graph @no_length_one(%x: !ait.tensor<4 x 4 x f32>, %z: !ait.tensor<4 x 4 x f32>, %n: !ait.tensor<4 x n x f32>, %g: !ait.tensor<4 x 4 x f16>) dims {n = 1 to 4} {
  // CHECK-NOT: ait.rms_norm
  %a0 = ait.mul %z, %x : !ait.tensor<4 x 4 x f32>
  %b0 = ait.reduce sum %a0 dims [1] : !ait.tensor<4 x f32>
  %c0 = ait.reshape %b0 : !ait.tensor<4 x 1 x f32>
  %d0 = ait.sqrt %c0 : !ait.tensor<4 x 1 x f32>
  %e0 = ait.clamp %d0 min 0.1 : !ait.tensor<4 x 1 x f32>
  %f0 = ait.div %x, %e0 : !ait.tensor<4 x 4 x f32>
  ait.output "y0" %f0 : !ait.tensor<4 x 4 x f32>
  %a1 = ait.mul %x, %z : !ait.tensor<4 x 4 x f32>
  %b1 = ait.reduce sum %a1 dims [1] : !ait.tensor<4 x f32>
  %c1 = ait.reshape %b1 : !ait.tensor<4 x 1 x f32>
  %d1 = ait.sqrt %c1 : !ait.tensor<4 x 1 x f32>
  %e1 = ait.clamp %d1 min 0.1 : !ait.tensor<4 x 1 x f32>
  %f1 = ait.div %x, %e1 : !ait.tensor<4 x 4 x f32>
  ait.output "y1" %f1 : !ait.tensor<4 x 4 x f32>
  %a2 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b2 = ait.reduce sum %a2 dims [1] : !ait.tensor<4 x f32>
  %c2 = ait.reshape %b2 : !ait.tensor<4 x 1 x f32>
  %d2 = ait.sqrt %c2 : !ait.tensor<4 x 1 x f32>
  %e2 = ait.clamp %d2 min 0.1 : !ait.tensor<4 x 1 x f32>
  %f2 = ait.div %z, %e2 : !ait.tensor<4 x 4 x f32>
  ait.output "y2" %f2 : !ait.tensor<4 x 4 x f32>
  %a3 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b3 = ait.reduce max %a3 dims [1] : !ait.tensor<4 x f32>
  %c3 = ait.reshape %b3 : !ait.tensor<4 x 1 x f32>
  %d3 = ait.sqrt %c3 : !ait.tensor<4 x 1 x f32>
  %e3 = ait.clamp %d3 min 0.1 : !ait.tensor<4 x 1 x f32>
  %f3 = ait.div %x, %e3 : !ait.tensor<4 x 4 x f32>
  ait.output "y3" %f3 : !ait.tensor<4 x 4 x f32>
  %a4 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b4 = ait.reduce sum %a4 dims [0] : !ait.tensor<4 x f32>
  %c4 = ait.reshape %b4 : !ait.tensor<4 x 1 x f32>
  %d4 = ait.sqrt %c4 : !ait.tensor<4 x 1 x f32>
  %e4 = ait.clamp %d4 min 0.1 : !ait.tensor<4 x 1 x f32>
  %f4 = ait.div %x, %e4 : !ait.tensor<4 x 4 x f32>
  ait.output "y4" %f4 : !ait.tensor<4 x 4 x f32>
  %a5 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b5 = ait.reduce sum %a5 dims [1] : !ait.tensor<4 x f32>
  %c5 = ait.reshape %b5 : !ait.tensor<1 x 4 x f32>
  %d5 = ait.sqrt %c5 : !ait.tensor<1 x 4 x f32>
  %e5 = ait.clamp %d5 min 0.1 : !ait.tensor<1 x 4 x f32>
  %f5 = ait.div %x, %e5 : !ait.tensor<4 x 4 x f32>
  ait.output "y5" %f5 : !ait.tensor<4 x 4 x f32>
  %a6 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b6 = ait.reduce sum %a6 dims [1] : !ait.tensor<4 x f32>
  %c6 = ait.reshape %b6 : !ait.tensor<1 x 4 x 1 x f32>
  %d6 = ait.sqrt %c6 : !ait.tensor<1 x 4 x 1 x f32>
  %e6 = ait.clamp %d6 min 0.1 : !ait.tensor<1 x 4 x 1 x f32>
  %f6 = ait.div %x, %e6 : !ait.tensor<1 x 4 x 4 x f32>
  ait.output "y6" %f6 : !ait.tensor<1 x 4 x 4 x f32>
  %a7 = ait.mul %n, %n : !ait.tensor<4 x n x f32>
  %b7 = ait.reduce sum %a7 dims [1] : !ait.tensor<4 x f32>
  %c7 = ait.reshape %b7 : !ait.tensor<4 x 1 x f32>
  %d7 = ait.sqrt %c7 : !ait.tensor<4 x 1 x f32>
  %e7 = ait.clamp %d7 min 0.1 : !ait.tensor<4 x 1 x f32>
  %f7 = ait.div %n, %e7 : !ait.tensor<4 x n x f32>
  ait.output "y7" %f7 : !ait.tensor<4 x n x f32>
  %a8 = ait.mul %z, %x : !ait.tensor<4 x 4 x f32>
  %b8 = ait.reduce sum %a8 dims [1] : !ait.tensor<4 x f32>
  %c8 = ait.reshape %b8 : !ait.tensor<4 x 1 x f32>
  %d8 = ait.sqrt %c8 : !ait.tensor<4 x 1 x f32>
  %f8 = ait.div %x, %d8 : !ait.tensor<4 x 4 x f32>
  ait.output "y8" %f8 : !ait.tensor<4 x 4 x f32>
  %a9 = ait.mul %x, %z : !ait.tensor<4 x 4 x f32>
  %b9 = ait.reduce sum %a9 dims [1] : !ait.tensor<4 x f32>
  %c9 = ait.reshape %b9 : !ait.tensor<4 x 1 x f32>
  %d9 = ait.sqrt %c9 : !ait.tensor<4 x 1 x f32>
  %f9 = ait.div %x, %d9 : !ait.tensor<4 x 4 x f32>
  ait.output "y9" %f9 : !ait.tensor<4 x 4 x f32>
  %a10 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b10 = ait.reduce sum %a10 dims [1] : !ait.tensor<4 x f32>
  %c10 = ait.reshape %b10 : !ait.tensor<4 x 1 x f32>
  %d10 = ait.sqrt %c10 : !ait.tensor<4 x 1 x f32>
  %f10 = ait.div %z, %d10 : !ait.tensor<4 x 4 x f32>
  ait.output "y10" %f10 : !ait.tensor<4 x 4 x f32>
  %a11 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b11 = ait.reduce max %a11 dims [1] : !ait.tensor<4 x f32>
  %c11 = ait.reshape %b11 : !ait.tensor<4 x 1 x f32>
  %d11 = ait.sqrt %c11 : !ait.tensor<4 x 1 x f32>
  %f11 = ait.div %x, %d11 : !ait.tensor<4 x 4 x f32>
  ait.output "y11" %f11 : !ait.tensor<4 x 4 x f32>
  %a12 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b12 = ait.reduce sum %a12 dims [0] : !ait.tensor<4 x f32>
  %c12 = ait.reshape %b12 : !ait.tensor<4 x 1 x f32>
  %d12 = ait.sqrt %c12 : !ait.tensor<4 x 1 x f32>
  %f12 = ait.div %x, %d12 : !ait.tensor<4 x 4 x f32>
  ait.output "y12" %f12 : !ait.tensor<4 x 4 x f32>
  %a13 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b13 = ait.reduce sum %a13 dims [1] : !ait.tensor<4 x f32>
  %c13 = ait.reshape %b13 : !ait.tensor<1 x 4 x f32>
  %d13 = ait.sqrt %c13 : !ait.tensor<1 x 4 x f32>
  %f13 = ait.div %x, %d13 : !ait.tensor<4 x 4 x f32>
  ait.output "y13" %f13 : !ait.tensor<4 x 4 x f32>
  %a14 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b14 = ait.reduce sum %a14 dims [1] : !ait.tensor<4 x f32>
  %c14 = ait.reshape %b14 : !ait.tensor<1 x 4 x 1 x f32>
  %d14 = ait.sqrt %c14 : !ait.tensor<1 x 4 x 1 x f32>
  %f14 = ait.div %x, %d14 : !ait.tensor<1 x 4 x 4 x f32>
  ait.output "y14" %f14 : !ait.tensor<1 x 4 x 4 x f32>
  %a15 = ait.mul %n, %n : !ait.tensor<4 x n x f32>
  %b15 = ait.reduce sum %a15 dims [1] : !ait.tensor<4 x f32>
  %c15 = ait.reshape %b15 : !ait.tensor<4 x 1 x f32>
  %d15 = ait.sqrt %c15 : !ait.tensor<4 x 1 x f32>
  %f15 = ait.div %n, %d15 : !ait.tensor<4 x n x f32>
  ait.output "y15" %f15 : !ait.tensor<4 x n x f32>
  %a16 = ait.mul %z, %x : !ait.tensor<4 x 4 x f32>
  %b16 = ait.reduce sum %a16 dims [1] : !ait.tensor<4 x f32>
  %c16 = ait.sqrt %b16 : !ait.tensor<4 x f32>
  %d16 = ait.reshape %c16 : !ait.tensor<4 x 1 x f32>
  %e16 = ait.clamp %d16 min 0.1 : !ait.tensor<4 x 1 x f32>
  %f16 = ait.div %x, %e16 : !ait.tensor<4 x 4 x f32>
  ait.output "y16" %f16 : !ait.tensor<4 x 4 x f32>
  %a17 = ait.mul %x, %z : !ait.tensor<4 x 4 x f32>
  %b17 = ait.reduce sum %a17 dims [1] : !ait.tensor<4 x f32>
  %c17 = ait.sqrt %b17 : !ait.tensor<4 x f32>
  %d17 = ait.reshape %c17 : !ait.tensor<4 x 1 x f32>
  %e17 = ait.clamp %d17 min 0.1 : !ait.tensor<4 x 1 x f32>
  %f17 = ait.div %x, %e17 : !ait.tensor<4 x 4 x f32>
  ait.output "y17" %f17 : !ait.tensor<4 x 4 x f32>
  %a18 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b18 = ait.reduce sum %a18 dims [1] : !ait.tensor<4 x f32>
  %c18 = ait.sqrt %b18 : !ait.tensor<4 x f32>
  %d18 = ait.reshape %c18 : !ait.tensor<4 x 1 x f32>
  %e18 = ait.clamp %d18 min 0.1 : !ait.tensor<4 x 1 x f32>
  %f18 = ait.div %z, %e18 : !ait.tensor<4 x 4 x f32>
  ait.output "y18" %f18 : !ait.tensor<4 x 4 x f32>
  %a19 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b19 = ait.reduce max %a19 dims [1] : !ait.tensor<4 x f32>
  %c19 = ait.sqrt %b19 : !ait.tensor<4 x f32>
  %d19 = ait.reshape %c19 : !ait.tensor<4 x 1 x f32>
  %e19 = ait.clamp %d19 min 0.1 : !ait.tensor<4 x 1 x f32>
  %f19 = ait.div %x, %e19 : !ait.tensor<4 x 4 x f32>
  ait.output "y19" %f19 : !ait.tensor<4 x 4 x f32>
  %a20 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b20 = ait.reduce sum %a20 dims [0] : !ait.tensor<4 x f32>
  %c20 = ait.sqrt %b20 : !ait.tensor<4 x f32>
  %d20 = ait.reshape %c20 : !ait.tensor<4 x 1 x f32>
  %e20 = ait.clamp %d20 min 0.1 : !ait.tensor<4 x 1 x f32>
  %f20 = ait.div %x, %e20 : !ait.tensor<4 x 4 x f32>
  ait.output "y20" %f20 : !ait.tensor<4 x 4 x f32>
  %a21 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b21 = ait.reduce sum %a21 dims [1] : !ait.tensor<4 x f32>
  %c21 = ait.sqrt %b21 : !ait.tensor<4 x f32>
  %d21 = ait.reshape %c21 : !ait.tensor<1 x 4 x f32>
  %e21 = ait.clamp %d21 min 0.1 : !ait.tensor<1 x 4 x f32>
  %f21 = ait.div %x, %e21 : !ait.tensor<4 x 4 x f32>
  ait.output "y21" %f21 : !ait.tensor<4 x 4 x f32>
  %a22 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b22 = ait.reduce sum %a22 dims [1] : !ait.tensor<4 x f32>
  %c22 = ait.sqrt %b22 : !ait.tensor<4 x f32>
  %d22 = ait.reshape %c22 : !ait.tensor<1 x 4 x 1 x f32>
  %e22 = ait.clamp %d22 min 0.1 : !ait.tensor<1 x 4 x 1 x f32>
  %f22 = ait.div %x, %e22 : !ait.tensor<1 x 4 x 4 x f32>
  ait.output "y22" %f22 : !ait.tensor<1 x 4 x 4 x f32>
  %a23 = ait.mul %n, %n : !ait.tensor<4 x n x f32>
  %b23 = ait.reduce sum %a23 dims [1] : !ait.tensor<4 x f32>
  %c23 = ait.sqrt %b23 : !ait.tensor<4 x f32>
  %d23 = ait.reshape %c23 : !ait.tensor<4 x 1 x f32>
  %e23 = ait.clamp %d23 min 0.1 : !ait.tensor<4 x 1 x f32>
  %f23 = ait.div %n, %e23 : !ait.tensor<4 x n x f32>
  ait.output "y23" %f23 : !ait.tensor<4 x n x f32>
  %a24 = ait.mul %z, %x : !ait.tensor<4 x 4 x f32>
  %b24 = ait.reduce sum %a24 dims [1] : !ait.tensor<4 x f32>
  %c24 = ait.sqrt %b24 : !ait.tensor<4 x f32>
  %d24 = ait.reshape %c24 : !ait.tensor<4 x 1 x f32>
  %f24 = ait.div %x, %d24 : !ait.tensor<4 x 4 x f32>
  ait.output "y24" %f24 : !ait.tensor<4 x 4 x f32>
  %a25 = ait.mul %x, %z : !ait.tensor<4 x 4 x f32>
  %b25 = ait.reduce sum %a25 dims [1] : !ait.tensor<4 x f32>
  %c25 = ait.sqrt %b25 : !ait.tensor<4 x f32>
  %d25 = ait.reshape %c25 : !ait.tensor<4 x 1 x f32>
  %f25 = ait.div %x, %d25 : !ait.tensor<4 x 4 x f32>
  ait.output "y25" %f25 : !ait.tensor<4 x 4 x f32>
  %a26 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b26 = ait.reduce sum %a26 dims [1] : !ait.tensor<4 x f32>
  %c26 = ait.sqrt %b26 : !ait.tensor<4 x f32>
  %d26 = ait.reshape %c26 : !ait.tensor<4 x 1 x f32>
  %f26 = ait.div %z, %d26 : !ait.tensor<4 x 4 x f32>
  ait.output "y26" %f26 : !ait.tensor<4 x 4 x f32>
  %a27 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b27 = ait.reduce max %a27 dims [1] : !ait.tensor<4 x f32>
  %c27 = ait.sqrt %b27 : !ait.tensor<4 x f32>
  %d27 = ait.reshape %c27 : !ait.tensor<4 x 1 x f32>
  %f27 = ait.div %x, %d27 : !ait.tensor<4 x 4 x f32>
  ait.output "y27" %f27 : !ait.tensor<4 x 4 x f32>
  %a28 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b28 = ait.reduce sum %a28 dims [0] : !ait.tensor<4 x f32>
  %c28 = ait.sqrt %b28 : !ait.tensor<4 x f32>
  %d28 = ait.reshape %c28 : !ait.tensor<4 x 1 x f32>
  %f28 = ait.div %x, %d28 : !ait.tensor<4 x 4 x f32>
  ait.output "y28" %f28 : !ait.tensor<4 x 4 x f32>
  %a29 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b29 = ait.reduce sum %a29 dims [1] : !ait.tensor<4 x f32>
  %c29 = ait.sqrt %b29 : !ait.tensor<4 x f32>
  %d29 = ait.reshape %c29 : !ait.tensor<1 x 4 x f32>
  %f29 = ait.div %x, %d29 : !ait.tensor<4 x 4 x f32>
  ait.output "y29" %f29 : !ait.tensor<4 x 4 x f32>
  %a30 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b30 = ait.reduce sum %a30 dims [1] : !ait.tensor<4 x f32>
  %c30 = ait.sqrt %b30 : !ait.tensor<4 x f32>
  %d30 = ait.reshape %c30 : !ait.tensor<1 x 4 x 1 x f32>
  %f30 = ait.div %x, %d30 : !ait.tensor<1 x 4 x 4 x f32>
  ait.output "y30" %f30 : !ait.tensor<1 x 4 x 4 x f32>
  %a31 = ait.mul %n, %n : !ait.tensor<4 x n x f32>
  %b31 = ait.reduce sum %a31 dims [1] : !ait.tensor<4 x f32>
  %c31 = ait.sqrt %b31 : !ait.tensor<4 x f32>
  %d31 = ait.reshape %c31 : !ait.tensor<4 x 1 x f32>
  %f31 = ait.div %n, %d31 : !ait.tensor<4 x n x f32>
  ait.output "y31" %f31 : !ait.tensor<4 x n x f32>
  %a32 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b32 = ait.reduce sum %a32 dims [1] : !ait.tensor<4 x f32>
  %c32 = ait.reshape %b32 : !ait.tensor<4 x 1 x f32>
  %d32 = ait.sqrt %c32 : !ait.tensor<4 x 1 x f32>
  %e32 = ait.clamp %d32 max 0.1 : !ait.tensor<4 x 1 x f32>
  %f32 = ait.div %x, %e32 : !ait.tensor<4 x 4 x f32>
  ait.output "y32" %f32 : !ait.tensor<4 x 4 x f32>
  %a33 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b33 = ait.reduce sum %a33 dims [1] : !ait.tensor<4 x f32>
  %c33 = ait.sqrt %b33 : !ait.tensor<4 x f32>
  %d33 = ait.reshape %c33 : !ait.tensor<4 x 1 x f32>
  %e33 = ait.clamp %d33 max 0.1 : !ait.tensor<4 x 1 x f32>
  %f33 = ait.div %x, %e33 : !ait.tensor<4 x 4 x f32>
  ait.output "y33" %f33 : !ait.tensor<4 x 4 x f32>
  %a34 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b34 = ait.reduce sum %a34 dims [1] : !ait.tensor<4 x f32>
  %c34 = ait.reshape %b34 : !ait.tensor<4 x 1 x f32>
  %d34 = ait.sqrt %c34 : !ait.tensor<4 x 1 x f32>
  %e34 = ait.clamp %d34 min 0.1 max 9.0 : !ait.tensor<4 x 1 x f32>
  %f34 = ait.div %x, %e34 : !ait.tensor<4 x 4 x f32>
  ait.output "y34" %f34 : !ait.tensor<4 x 4 x f32>
  %a35 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b35 = ait.reduce sum %a35 dims [1] : !ait.tensor<4 x f32>
  %c35 = ait.sqrt %b35 : !ait.tensor<4 x f32>
  %d35 = ait.reshape %c35 : !ait.tensor<4 x 1 x f32>
  %e35 = ait.clamp %d35 min 0.1 max 9.0 : !ait.tensor<4 x 1 x f32>
  %f35 = ait.div %x, %e35 : !ait.tensor<4 x 4 x f32>
  ait.output "y35" %f35 : !ait.tensor<4 x 4 x f32>
  %a36 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b36 = ait.reduce sum %a36 dims [1] : !ait.tensor<4 x f32>
  %c36 = ait.reshape %b36 : !ait.tensor<4 x 1 x f32>
  %d36 = ait.sqrt %c36 : !ait.tensor<4 x 1 x f32>
  %e36 = ait.clamp %d36 min 0.0 : !ait.tensor<4 x 1 x f32>
  %f36 = ait.div %x, %e36 : !ait.tensor<4 x 4 x f32>
  ait.output "y36" %f36 : !ait.tensor<4 x 4 x f32>
  %a37 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b37 = ait.reduce sum %a37 dims [1] : !ait.tensor<4 x f32>
  %c37 = ait.sqrt %b37 : !ait.tensor<4 x f32>
  %d37 = ait.reshape %c37 : !ait.tensor<4 x 1 x f32>
  %e37 = ait.clamp %d37 min 0.0 : !ait.tensor<4 x 1 x f32>
  %f37 = ait.div %x, %e37 : !ait.tensor<4 x 4 x f32>
  ait.output "y37" %f37 : !ait.tensor<4 x 4 x f32>
  %a38 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b38 = ait.reduce sum %a38 dims [1] : !ait.tensor<4 x f32>
  %c38 = ait.reshape %b38 : !ait.tensor<4 x 1 x f32>
  %d38 = ait.sqrt %c38 : !ait.tensor<4 x 1 x f32>
  %e38 = ait.clamp %d38 min -0.1 : !ait.tensor<4 x 1 x f32>
  %f38 = ait.div %x, %e38 : !ait.tensor<4 x 4 x f32>
  ait.output "y38" %f38 : !ait.tensor<4 x 4 x f32>
  %a39 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b39 = ait.reduce sum %a39 dims [1] : !ait.tensor<4 x f32>
  %c39 = ait.sqrt %b39 : !ait.tensor<4 x f32>
  %d39 = ait.reshape %c39 : !ait.tensor<4 x 1 x f32>
  %e39 = ait.clamp %d39 min -0.1 : !ait.tensor<4 x 1 x f32>
  %f39 = ait.div %x, %e39 : !ait.tensor<4 x 4 x f32>
  ait.output "y39" %f39 : !ait.tensor<4 x 4 x f32>
  %a40 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b40 = ait.reduce sum %a40 dims [1] : !ait.tensor<4 x f32>
  %c40 = ait.reshape %b40 : !ait.tensor<4 x 1 x f32>
  %d40 = ait.sqrt %c40 : !ait.tensor<4 x 1 x f32>
  %e40 = ait.clamp %d40 min 1e-17 : !ait.tensor<4 x 1 x f32>
  %f40 = ait.div %x, %e40 : !ait.tensor<4 x 4 x f32>
  ait.output "y40" %f40 : !ait.tensor<4 x 4 x f32>
  %a41 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b41 = ait.reduce sum %a41 dims [1] : !ait.tensor<4 x f32>
  %c41 = ait.sqrt %b41 : !ait.tensor<4 x f32>
  %d41 = ait.reshape %c41 : !ait.tensor<4 x 1 x f32>
  %e41 = ait.clamp %d41 min 1e-17 : !ait.tensor<4 x 1 x f32>
  %f41 = ait.div %x, %e41 : !ait.tensor<4 x 4 x f32>
  ait.output "y41" %f41 : !ait.tensor<4 x 4 x f32>
  // CHECK: ait.output
}

// The reshape last.
// CHECK-LABEL: ait.graph @length_one_reshaped
// CHECK-NEXT: ait.rms_norm %x axes 1 eps 0.0025000000000000005 bounded epilogue() {
// CHECK-NOT: ait.div
// CHECK: ait.output
ait.graph @length_one_reshaped(%x: !ait.tensor<4 x 4 x f32>) {
  %a0 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b0 = ait.reduce sum %a0 dims [1] : !ait.tensor<4 x f32>
  %c0 = ait.sqrt %b0 : !ait.tensor<4 x f32>
  %d0 = ait.clamp %c0 min 0.1 : !ait.tensor<4 x f32>
  %e0 = ait.reshape %d0 : !ait.tensor<4 x 1 x f32>
  %f0 = ait.div %x, %e0 : !ait.tensor<4 x 4 x f32>
  ait.output "y0" %f0 : !ait.tensor<4 x 4 x f32>
}

// CHECK-LABEL: ait.graph @no_length_one_reshaped
ait.graph @no_length_one_reshaped(%x: !ait.tensor<4 x 4 x f32>, %z: !ait.tensor<4 x 4 x f32>, %n: !ait.tensor<4 x n x f32>) dims {n = 1 to 4} {
  // CHECK-NOT: ait.rms_norm
  %a0 = ait.mul %z, %x : !ait.tensor<4 x 4 x f32>
  %b0 = ait.reduce sum %a0 dims [1] : !ait.tensor<4 x f32>
  %c0 = ait.sqrt %b0 : !ait.tensor<4 x f32>
  %d0 = ait.clamp %c0 min 0.1 : !ait.tensor<4 x f32>
  %e0 = ait.reshape %d0 : !ait.tensor<4 x 1 x f32>
  %f0 = ait.div %x, %e0 : !ait.tensor<4 x 4 x f32>
  ait.output "y0" %f0 : !ait.tensor<4 x 4 x f32>
  %a1 = ait.mul %x, %z : !ait.tensor<4 x 4 x f32>
  %b1 = ait.reduce sum %a1 dims [1] : !ait.tensor<4 x f32>
  %c1 = ait.sqrt %b1 : !ait.tensor<4 x f32>
  %d1 = ait.clamp %c1 min 0.1 : !ait.tensor<4 x f32>
  %e1 = ait.reshape %d1 : !ait.tensor<4 x 1 x f32>
  %f1 = ait.div %x, %e1 : !ait.tensor<4 x 4 x f32>
  ait.output "y1" %f1 : !ait.tensor<4 x 4 x f32>
  %a2 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b2 = ait.reduce sum %a2 dims [1] : !ait.tensor<4 x f32>
  %c2 = ait.sqrt %b2 : !ait.tensor<4 x f32>
  %d2 = ait.clamp %c2 min 0.1 : !ait.tensor<4 x f32>
  %e2 = ait.reshape %d2 : !ait.tensor<4 x 1 x f32>
  %f2 = ait.div %z, %e2 : !ait.tensor<4 x 4 x f32>
  ait.output "y2" %f2 : !ait.tensor<4 x 4 x f32>
  %a3 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b3 = ait.reduce max %a3 dims [1] : !ait.tensor<4 x f32>
  %c3 = ait.sqrt %b3 : !ait.tensor<4 x f32>
  %d3 = ait.clamp %c3 min 0.1 : !ait.tensor<4 x f32>
  %e3 = ait.reshape %d3 : !ait.tensor<4 x 1 x f32>
  %f3 = ait.div %x, %e3 : !ait.tensor<4 x 4 x f32>
  ait.output "y3" %f3 : !ait.tensor<4 x 4 x f32>
  %a4 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b4 = ait.reduce sum %a4 dims [0] : !ait.tensor<4 x f32>
  %c4 = ait.sqrt %b4 : !ait.tensor<4 x f32>
  %d4 = ait.clamp %c4 min 0.1 : !ait.tensor<4 x f32>
  %e4 = ait.reshape %d4 : !ait.tensor<4 x 1 x f32>
  %f4 = ait.div %x, %e4 : !ait.tensor<4 x 4 x f32>
  ait.output "y4" %f4 : !ait.tensor<4 x 4 x f32>
  %a5 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b5 = ait.reduce sum %a5 dims [1] : !ait.tensor<4 x f32>
  %c5 = ait.sqrt %b5 : !ait.tensor<4 x f32>
  %d5 = ait.clamp %c5 min 0.1 : !ait.tensor<4 x f32>
  %e5 = ait.reshape %d5 : !ait.tensor<1 x 4 x f32>
  %f5 = ait.div %x, %e5 : !ait.tensor<4 x 4 x f32>
  ait.output "y5" %f5 : !ait.tensor<4 x 4 x f32>
  %a6 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b6 = ait.reduce sum %a6 dims [1] : !ait.tensor<4 x f32>
  %c6 = ait.sqrt %b6 : !ait.tensor<4 x f32>
  %d6 = ait.clamp %c6 min 0.1 : !ait.tensor<4 x f32>
  %e6 = ait.reshape %d6 : !ait.tensor<1 x 4 x 1 x f32>
  %f6 = ait.div %x, %e6 : !ait.tensor<1 x 4 x 4 x f32>
  ait.output "y6" %f6 : !ait.tensor<1 x 4 x 4 x f32>
  %a7 = ait.mul %n, %n : !ait.tensor<4 x n x f32>
  %b7 = ait.reduce sum %a7 dims [1] : !ait.tensor<4 x f32>
  %c7 = ait.sqrt %b7 : !ait.tensor<4 x f32>
  %d7 = ait.clamp %c7 min 0.1 : !ait.tensor<4 x f32>
  %e7 = ait.reshape %d7 : !ait.tensor<4 x 1 x f32>
  %f7 = ait.div %n, %e7 : !ait.tensor<4 x n x f32>
  ait.output "y7" %f7 : !ait.tensor<4 x n x f32>
  %a8 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b8 = ait.reduce sum %a8 dims [1] : !ait.tensor<4 x f32>
  %c8 = ait.sqrt %b8 : !ait.tensor<4 x f32>
  %d8 = ait.clamp %c8 max 0.1 : !ait.tensor<4 x f32>
  %e8 = ait.reshape %d8 : !ait.tensor<4 x 1 x f32>
  %f8 = ait.div %x, %e8 : !ait.tensor<4 x 4 x f32>
  ait.output "y8" %f8 : !ait.tensor<4 x 4 x f32>
  %a9 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b9 = ait.reduce sum %a9 dims [1] : !ait.tensor<4 x f32>
  %c9 = ait.sqrt %b9 : !ait.tensor<4 x f32>
  %d9 = ait.clamp %c9 min 0.1 max 9.0 : !ait.tensor<4 x f32>
  %e9 = ait.reshape %d9 : !ait.tensor<4 x 1 x f32>
  %f9 = ait.div %x, %e9 : !ait.tensor<4 x 4 x f32>
  ait.output "y9" %f9 : !ait.tensor<4 x 4 x f32>
  %a10 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b10 = ait.reduce sum %a10 dims [1] : !ait.tensor<4 x f32>
  %c10 = ait.sqrt %b10 : !ait.tensor<4 x f32>
  %d10 = ait.clamp %c10 min 0.0 : !ait.tensor<4 x f32>
  %e10 = ait.reshape %d10 : !ait.tensor<4 x 1 x f32>
  %f10 = ait.div %x, %e10 : !ait.tensor<4 x 4 x f32>
  ait.output "y10" %f10 : !ait.tensor<4 x 4 x f32>
  %a11 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b11 = ait.reduce sum %a11 dims [1] : !ait.tensor<4 x f32>
  %c11 = ait.sqrt %b11 : !ait.tensor<4 x f32>
  %d11 = ait.clamp %c11 min -0.1 : !ait.tensor<4 x f32>
  %e11 = ait.reshape %d11 : !ait.tensor<4 x 1 x f32>
  %f11 = ait.div %x, %e11 : !ait.tensor<4 x 4 x f32>
  ait.output "y11" %f11 : !ait.tensor<4 x 4 x f32>
  %a12 = ait.mul %x, %x : !ait.tensor<4 x 4 x f32>
  %b12 = ait.reduce sum %a12 dims [1] : !ait.tensor<4 x f32>
  %c12 = ait.sqrt %b12 : !ait.tensor<4 x f32>
  %d12 = ait.clamp %c12 min 1e-17 : !ait.tensor<4 x f32>
  %e12 = ait.reshape %d12 : !ait.tensor<4 x 1 x f32>
  %f12 = ait.div %x, %e12 : !ait.tensor<4 x 4 x f32>
  ait.output "y12" %f12 : !ait.tensor<4 x 4 x f32>
  // CHECK: ait.output
}
