// RUN: ait-opt %s -p simplify | filecheck %s
// RUN: ait-opt %s -p simplify --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// Activations as models spell them out.
// CHECK-LABEL: ait.graph @gelu
ait.graph @gelu(%x: !ait.tensor<4 x f64>) {
  // CHECK-NEXT: %0 = ait.gelu %x
  // CHECK-NEXT: %1 = ait.gelu %x
  // CHECK-NEXT: ait.output
  %half = ait.constant 0.5 : !ait.tensor<f64>
  %one = ait.constant 1.0 : !ait.tensor<1 x f64>
  %r = ait.constant 0.7071067811865476 : !ait.tensor<f64>
  %q = ait.constant 1.4142135623730951 : !ait.tensor<f64>
  %0 = ait.mul %x, %r : !ait.tensor<4 x f64>
  %1 = ait.erf %0 : !ait.tensor<4 x f64>
  %2 = ait.add %1, %one : !ait.tensor<4 x f64>
  %3 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %4 = ait.mul %3, %2 : !ait.tensor<4 x f64>
  %5 = ait.div %x, %q : !ait.tensor<4 x f64>
  %6 = ait.erf %5 : !ait.tensor<4 x f64>
  %7 = ait.add %6, %one : !ait.tensor<4 x f64>
  %8 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %9 = ait.mul %8, %7 : !ait.tensor<4 x f64>
  ait.output "y0" %4 : !ait.tensor<4 x f64>
  ait.output "y1" %9 : !ait.tensor<4 x f64>
}

// CHECK-LABEL: ait.graph @fast_gelu
ait.graph @fast_gelu(%x: !ait.tensor<4 x f64>) {
  // CHECK-NEXT: %0 = ait.fast_gelu %x
  // CHECK-NEXT: ait.output
  %half = ait.constant 0.5 : !ait.tensor<f64>
  %one = ait.constant 1.0 : !ait.tensor<1 x f64>
  %c = ait.constant 0.044715 : !ait.tensor<f64>
  %s = ait.constant 0.7978845608028654 : !ait.tensor<f64>
  %0 = ait.mul %x, %x : !ait.tensor<4 x f64>
  %1 = ait.mul %0, %x : !ait.tensor<4 x f64>
  %2 = ait.mul %1, %c : !ait.tensor<4 x f64>
  %3 = ait.add %x, %2 : !ait.tensor<4 x f64>
  %4 = ait.mul %3, %s : !ait.tensor<4 x f64>
  %5 = ait.tanh %4 : !ait.tensor<4 x f64>
  %6 = ait.add %5, %one : !ait.tensor<4 x f64>
  %7 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %8 = ait.mul %7, %6 : !ait.tensor<4 x f64>
  ait.output "y0" %8 : !ait.tensor<4 x f64>
}

// Another value, another number, a larger shape: no gelu.
// CHECK-LABEL: ait.graph @no_gelu
ait.graph @no_gelu(%x: !ait.tensor<4 x f64>, %z: !ait.tensor<4 x f64>) {
  // CHECK-NOT: gelu
  %half = ait.constant 0.5 : !ait.tensor<f64>
  %one = ait.constant 1.0 : !ait.tensor<1 x f64>
  %r = ait.constant 0.7071067811865476 : !ait.tensor<f64>
  %q = ait.constant 1.4142135623730951 : !ait.tensor<f64>
  %s = ait.constant 0.7978845608028654 : !ait.tensor<f64>
  %two = ait.constant 2.0 : !ait.tensor<f64>
  %w = ait.constant 1.0 : !ait.tensor<2 x 4 x f64>
  %0 = ait.mul %z, %r : !ait.tensor<4 x f64>
  %1 = ait.erf %0 : !ait.tensor<4 x f64>
  %2 = ait.add %1, %one : !ait.tensor<4 x f64>
  %3 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %4 = ait.mul %3, %2 : !ait.tensor<4 x f64>
  %5 = ait.mul %x, %r : !ait.tensor<4 x f64>
  %6 = ait.erf %5 : !ait.tensor<4 x f64>
  %7 = ait.add %6, %one : !ait.tensor<4 x f64>
  %8 = ait.mul %x, %two : !ait.tensor<4 x f64>
  %9 = ait.mul %8, %7 : !ait.tensor<4 x f64>
  %10 = ait.mul %x, %r : !ait.tensor<4 x f64>
  %11 = ait.erf %10 : !ait.tensor<4 x f64>
  %12 = ait.add %11, %one : !ait.tensor<4 x f64>
  %13 = ait.mul %x, %x : !ait.tensor<4 x f64>
  %14 = ait.mul %13, %12 : !ait.tensor<4 x f64>
  %15 = ait.mul %x, %s : !ait.tensor<4 x f64>
  %16 = ait.erf %15 : !ait.tensor<4 x f64>
  %17 = ait.add %16, %one : !ait.tensor<4 x f64>
  %18 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %19 = ait.mul %18, %17 : !ait.tensor<4 x f64>
  %20 = ait.mul %x, %r : !ait.tensor<4 x f64>
  %21 = ait.erf %20 : !ait.tensor<4 x f64>
  %22 = ait.add %21, %half : !ait.tensor<4 x f64>
  %23 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %24 = ait.mul %23, %22 : !ait.tensor<4 x f64>
  %25 = ait.mul %x, %r : !ait.tensor<4 x f64>
  %26 = ait.erf %25 : !ait.tensor<4 x f64>
  %27 = ait.add %26, %w : !ait.tensor<2 x 4 x f64>
  %28 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %29 = ait.mul %28, %27 : !ait.tensor<2 x 4 x f64>
  %30 = ait.div %z, %q : !ait.tensor<4 x f64>
  %31 = ait.erf %30 : !ait.tensor<4 x f64>
  %32 = ait.add %31, %one : !ait.tensor<4 x f64>
  %33 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %34 = ait.mul %33, %32 : !ait.tensor<4 x f64>
  %35 = ait.div %x, %q : !ait.tensor<4 x f64>
  %36 = ait.erf %35 : !ait.tensor<4 x f64>
  %37 = ait.add %36, %one : !ait.tensor<4 x f64>
  %38 = ait.mul %x, %two : !ait.tensor<4 x f64>
  %39 = ait.mul %38, %37 : !ait.tensor<4 x f64>
  %40 = ait.div %x, %q : !ait.tensor<4 x f64>
  %41 = ait.erf %40 : !ait.tensor<4 x f64>
  %42 = ait.add %41, %one : !ait.tensor<4 x f64>
  %43 = ait.mul %x, %x : !ait.tensor<4 x f64>
  %44 = ait.mul %43, %42 : !ait.tensor<4 x f64>
  %45 = ait.div %x, %s : !ait.tensor<4 x f64>
  %46 = ait.erf %45 : !ait.tensor<4 x f64>
  %47 = ait.add %46, %one : !ait.tensor<4 x f64>
  %48 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %49 = ait.mul %48, %47 : !ait.tensor<4 x f64>
  %50 = ait.div %x, %q : !ait.tensor<4 x f64>
  %51 = ait.erf %50 : !ait.tensor<4 x f64>
  %52 = ait.add %51, %half : !ait.tensor<4 x f64>
  %53 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %54 = ait.mul %53, %52 : !ait.tensor<4 x f64>
  %55 = ait.div %x, %q : !ait.tensor<4 x f64>
  %56 = ait.erf %55 : !ait.tensor<4 x f64>
  %57 = ait.add %56, %w : !ait.tensor<2 x 4 x f64>
  %58 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %59 = ait.mul %58, %57 : !ait.tensor<2 x 4 x f64>
  ait.output "y0" %4 : !ait.tensor<4 x f64>
  ait.output "y1" %9 : !ait.tensor<4 x f64>
  ait.output "y2" %14 : !ait.tensor<4 x f64>
  ait.output "y3" %19 : !ait.tensor<4 x f64>
  ait.output "y4" %24 : !ait.tensor<4 x f64>
  ait.output "y5" %29 : !ait.tensor<2 x 4 x f64>
  ait.output "y6" %34 : !ait.tensor<4 x f64>
  ait.output "y7" %39 : !ait.tensor<4 x f64>
  ait.output "y8" %44 : !ait.tensor<4 x f64>
  ait.output "y9" %49 : !ait.tensor<4 x f64>
  ait.output "y10" %54 : !ait.tensor<4 x f64>
  ait.output "y11" %59 : !ait.tensor<2 x 4 x f64>
}

// CHECK-LABEL: ait.graph @no_fast_gelu
ait.graph @no_fast_gelu(%x: !ait.tensor<4 x f64>, %z: !ait.tensor<4 x f64>) {
  // CHECK-NOT: gelu
  %half = ait.constant 0.5 : !ait.tensor<f64>
  %one = ait.constant 1.0 : !ait.tensor<1 x f64>
  %c = ait.constant 0.044715 : !ait.tensor<f64>
  %s = ait.constant 0.7978845608028654 : !ait.tensor<f64>
  %two = ait.constant 2.0 : !ait.tensor<f64>
  %w = ait.constant 1.0 : !ait.tensor<2 x 4 x f64>
  %0 = ait.mul %z, %x : !ait.tensor<4 x f64>
  %1 = ait.mul %0, %x : !ait.tensor<4 x f64>
  %2 = ait.mul %1, %c : !ait.tensor<4 x f64>
  %3 = ait.add %x, %2 : !ait.tensor<4 x f64>
  %4 = ait.mul %3, %s : !ait.tensor<4 x f64>
  %5 = ait.tanh %4 : !ait.tensor<4 x f64>
  %6 = ait.add %5, %one : !ait.tensor<4 x f64>
  %7 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %8 = ait.mul %7, %6 : !ait.tensor<4 x f64>
  %9 = ait.mul %x, %z : !ait.tensor<4 x f64>
  %10 = ait.mul %9, %x : !ait.tensor<4 x f64>
  %11 = ait.mul %10, %c : !ait.tensor<4 x f64>
  %12 = ait.add %x, %11 : !ait.tensor<4 x f64>
  %13 = ait.mul %12, %s : !ait.tensor<4 x f64>
  %14 = ait.tanh %13 : !ait.tensor<4 x f64>
  %15 = ait.add %14, %one : !ait.tensor<4 x f64>
  %16 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %17 = ait.mul %16, %15 : !ait.tensor<4 x f64>
  %18 = ait.mul %x, %x : !ait.tensor<4 x f64>
  %19 = ait.mul %18, %z : !ait.tensor<4 x f64>
  %20 = ait.mul %19, %c : !ait.tensor<4 x f64>
  %21 = ait.add %x, %20 : !ait.tensor<4 x f64>
  %22 = ait.mul %21, %s : !ait.tensor<4 x f64>
  %23 = ait.tanh %22 : !ait.tensor<4 x f64>
  %24 = ait.add %23, %one : !ait.tensor<4 x f64>
  %25 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %26 = ait.mul %25, %24 : !ait.tensor<4 x f64>
  %27 = ait.mul %x, %x : !ait.tensor<4 x f64>
  %28 = ait.mul %27, %x : !ait.tensor<4 x f64>
  %29 = ait.mul %28, %c : !ait.tensor<4 x f64>
  %30 = ait.add %z, %29 : !ait.tensor<4 x f64>
  %31 = ait.mul %30, %s : !ait.tensor<4 x f64>
  %32 = ait.tanh %31 : !ait.tensor<4 x f64>
  %33 = ait.add %32, %one : !ait.tensor<4 x f64>
  %34 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %35 = ait.mul %34, %33 : !ait.tensor<4 x f64>
  %36 = ait.mul %x, %x : !ait.tensor<4 x f64>
  %37 = ait.mul %36, %x : !ait.tensor<4 x f64>
  %38 = ait.mul %37, %c : !ait.tensor<4 x f64>
  %39 = ait.add %x, %38 : !ait.tensor<4 x f64>
  %40 = ait.mul %39, %s : !ait.tensor<4 x f64>
  %41 = ait.tanh %40 : !ait.tensor<4 x f64>
  %42 = ait.add %41, %one : !ait.tensor<4 x f64>
  %43 = ait.mul %z, %half : !ait.tensor<4 x f64>
  %44 = ait.mul %43, %42 : !ait.tensor<4 x f64>
  %45 = ait.mul %x, %x : !ait.tensor<4 x f64>
  %46 = ait.mul %45, %x : !ait.tensor<4 x f64>
  %47 = ait.mul %46, %c : !ait.tensor<4 x f64>
  %48 = ait.add %x, %47 : !ait.tensor<4 x f64>
  %49 = ait.mul %48, %s : !ait.tensor<4 x f64>
  %50 = ait.tanh %49 : !ait.tensor<4 x f64>
  %51 = ait.add %50, %one : !ait.tensor<4 x f64>
  %52 = ait.mul %x, %two : !ait.tensor<4 x f64>
  %53 = ait.mul %52, %51 : !ait.tensor<4 x f64>
  %54 = ait.mul %x, %x : !ait.tensor<4 x f64>
  %55 = ait.mul %54, %x : !ait.tensor<4 x f64>
  %56 = ait.mul %55, %s : !ait.tensor<4 x f64>
  %57 = ait.add %x, %56 : !ait.tensor<4 x f64>
  %58 = ait.mul %57, %s : !ait.tensor<4 x f64>
  %59 = ait.tanh %58 : !ait.tensor<4 x f64>
  %60 = ait.add %59, %one : !ait.tensor<4 x f64>
  %61 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %62 = ait.mul %61, %60 : !ait.tensor<4 x f64>
  %63 = ait.mul %x, %x : !ait.tensor<4 x f64>
  %64 = ait.mul %63, %x : !ait.tensor<4 x f64>
  %65 = ait.mul %64, %c : !ait.tensor<4 x f64>
  %66 = ait.add %x, %65 : !ait.tensor<4 x f64>
  %67 = ait.mul %66, %c : !ait.tensor<4 x f64>
  %68 = ait.tanh %67 : !ait.tensor<4 x f64>
  %69 = ait.add %68, %one : !ait.tensor<4 x f64>
  %70 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %71 = ait.mul %70, %69 : !ait.tensor<4 x f64>
  %72 = ait.mul %x, %x : !ait.tensor<4 x f64>
  %73 = ait.mul %72, %x : !ait.tensor<4 x f64>
  %74 = ait.mul %73, %c : !ait.tensor<4 x f64>
  %75 = ait.add %x, %74 : !ait.tensor<4 x f64>
  %76 = ait.mul %75, %s : !ait.tensor<4 x f64>
  %77 = ait.tanh %76 : !ait.tensor<4 x f64>
  %78 = ait.add %77, %half : !ait.tensor<4 x f64>
  %79 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %80 = ait.mul %79, %78 : !ait.tensor<4 x f64>
  %81 = ait.mul %x, %x : !ait.tensor<4 x f64>
  %82 = ait.mul %81, %x : !ait.tensor<4 x f64>
  %83 = ait.mul %82, %c : !ait.tensor<4 x f64>
  %84 = ait.add %x, %83 : !ait.tensor<4 x f64>
  %85 = ait.mul %84, %s : !ait.tensor<4 x f64>
  %86 = ait.tanh %85 : !ait.tensor<4 x f64>
  %87 = ait.add %86, %w : !ait.tensor<2 x 4 x f64>
  %88 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %89 = ait.mul %88, %87 : !ait.tensor<2 x 4 x f64>
  ait.output "y0" %8 : !ait.tensor<4 x f64>
  ait.output "y1" %17 : !ait.tensor<4 x f64>
  ait.output "y2" %26 : !ait.tensor<4 x f64>
  ait.output "y3" %35 : !ait.tensor<4 x f64>
  ait.output "y4" %44 : !ait.tensor<4 x f64>
  ait.output "y5" %53 : !ait.tensor<4 x f64>
  ait.output "y6" %62 : !ait.tensor<4 x f64>
  ait.output "y7" %71 : !ait.tensor<4 x f64>
  ait.output "y8" %80 : !ait.tensor<4 x f64>
  ait.output "y9" %89 : !ait.tensor<2 x 4 x f64>
}

// The same with the cube as a product: x * sqrt(2 / pi) * (1 + 0.044715 * x * x).
// CHECK-LABEL: ait.graph @fast_gelu_by_factors
ait.graph @fast_gelu_by_factors(%x: !ait.tensor<4 x f64>, %z: !ait.tensor<4 x f64>) {
  // CHECK-NEXT: {{%.*}} = ait.fast_gelu %x
  // CHECK-NEXT: ait.output
  %half = ait.constant 0.5 : !ait.tensor<f64>
  %one = ait.constant 1.0 : !ait.tensor<1 x f64>
  %c = ait.constant 0.044715 : !ait.tensor<f64>
  %s = ait.constant 0.7978845608028654 : !ait.tensor<f64>
  %f0_0 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %f0_1 = ait.mul %x, %s : !ait.tensor<4 x f64>
  %f0_2 = ait.mul %x, %c : !ait.tensor<4 x f64>
  %f0_3 = ait.mul %f0_2, %x : !ait.tensor<4 x f64>
  %f0_4 = ait.add %f0_3, %one : !ait.tensor<4 x f64>
  %f0_5 = ait.mul %f0_1, %f0_4 : !ait.tensor<4 x f64>
  %f0_6 = ait.tanh %f0_5 : !ait.tensor<4 x f64>
  %f0_7 = ait.add %f0_6, %one : !ait.tensor<4 x f64>
  %f0_8 = ait.mul %f0_0, %f0_7 : !ait.tensor<4 x f64>
  ait.output "y0" %f0_8 : !ait.tensor<4 x f64>
}

// Another value, another number, a larger shape.
// CHECK-LABEL: ait.graph @no_fast_gelu_by_factors
ait.graph @no_fast_gelu_by_factors(%x: !ait.tensor<4 x f64>, %z: !ait.tensor<4 x f64>) {
  // CHECK-NOT: gelu
  // CHECK: ait.output
  %half = ait.constant 0.5 : !ait.tensor<f64>
  %one = ait.constant 1.0 : !ait.tensor<1 x f64>
  %c = ait.constant 0.044715 : !ait.tensor<f64>
  %s = ait.constant 0.7978845608028654 : !ait.tensor<f64>
  %two = ait.constant 2.0 : !ait.tensor<f64>
  %w = ait.constant 1.0 : !ait.tensor<2 x 4 x f64>
  %f0_0 = ait.mul %z, %half : !ait.tensor<4 x f64>
  %f0_1 = ait.mul %x, %s : !ait.tensor<4 x f64>
  %f0_2 = ait.mul %x, %c : !ait.tensor<4 x f64>
  %f0_3 = ait.mul %f0_2, %x : !ait.tensor<4 x f64>
  %f0_4 = ait.add %f0_3, %one : !ait.tensor<4 x f64>
  %f0_5 = ait.mul %f0_1, %f0_4 : !ait.tensor<4 x f64>
  %f0_6 = ait.tanh %f0_5 : !ait.tensor<4 x f64>
  %f0_7 = ait.add %f0_6, %one : !ait.tensor<4 x f64>
  %f0_8 = ait.mul %f0_0, %f0_7 : !ait.tensor<4 x f64>
  %f1_0 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %f1_1 = ait.mul %z, %s : !ait.tensor<4 x f64>
  %f1_2 = ait.mul %x, %c : !ait.tensor<4 x f64>
  %f1_3 = ait.mul %f1_2, %x : !ait.tensor<4 x f64>
  %f1_4 = ait.add %f1_3, %one : !ait.tensor<4 x f64>
  %f1_5 = ait.mul %f1_1, %f1_4 : !ait.tensor<4 x f64>
  %f1_6 = ait.tanh %f1_5 : !ait.tensor<4 x f64>
  %f1_7 = ait.add %f1_6, %one : !ait.tensor<4 x f64>
  %f1_8 = ait.mul %f1_0, %f1_7 : !ait.tensor<4 x f64>
  %f2_0 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %f2_1 = ait.mul %x, %s : !ait.tensor<4 x f64>
  %f2_2 = ait.mul %z, %c : !ait.tensor<4 x f64>
  %f2_3 = ait.mul %f2_2, %x : !ait.tensor<4 x f64>
  %f2_4 = ait.add %f2_3, %one : !ait.tensor<4 x f64>
  %f2_5 = ait.mul %f2_1, %f2_4 : !ait.tensor<4 x f64>
  %f2_6 = ait.tanh %f2_5 : !ait.tensor<4 x f64>
  %f2_7 = ait.add %f2_6, %one : !ait.tensor<4 x f64>
  %f2_8 = ait.mul %f2_0, %f2_7 : !ait.tensor<4 x f64>
  %f3_0 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %f3_1 = ait.mul %x, %s : !ait.tensor<4 x f64>
  %f3_2 = ait.mul %x, %c : !ait.tensor<4 x f64>
  %f3_3 = ait.mul %f3_2, %z : !ait.tensor<4 x f64>
  %f3_4 = ait.add %f3_3, %one : !ait.tensor<4 x f64>
  %f3_5 = ait.mul %f3_1, %f3_4 : !ait.tensor<4 x f64>
  %f3_6 = ait.tanh %f3_5 : !ait.tensor<4 x f64>
  %f3_7 = ait.add %f3_6, %one : !ait.tensor<4 x f64>
  %f3_8 = ait.mul %f3_0, %f3_7 : !ait.tensor<4 x f64>
  %f4_0 = ait.mul %x, %two : !ait.tensor<4 x f64>
  %f4_1 = ait.mul %x, %s : !ait.tensor<4 x f64>
  %f4_2 = ait.mul %x, %c : !ait.tensor<4 x f64>
  %f4_3 = ait.mul %f4_2, %x : !ait.tensor<4 x f64>
  %f4_4 = ait.add %f4_3, %one : !ait.tensor<4 x f64>
  %f4_5 = ait.mul %f4_1, %f4_4 : !ait.tensor<4 x f64>
  %f4_6 = ait.tanh %f4_5 : !ait.tensor<4 x f64>
  %f4_7 = ait.add %f4_6, %one : !ait.tensor<4 x f64>
  %f4_8 = ait.mul %f4_0, %f4_7 : !ait.tensor<4 x f64>
  %f5_0 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %f5_1 = ait.mul %x, %s : !ait.tensor<4 x f64>
  %f5_2 = ait.mul %x, %two : !ait.tensor<4 x f64>
  %f5_3 = ait.mul %f5_2, %x : !ait.tensor<4 x f64>
  %f5_4 = ait.add %f5_3, %one : !ait.tensor<4 x f64>
  %f5_5 = ait.mul %f5_1, %f5_4 : !ait.tensor<4 x f64>
  %f5_6 = ait.tanh %f5_5 : !ait.tensor<4 x f64>
  %f5_7 = ait.add %f5_6, %one : !ait.tensor<4 x f64>
  %f5_8 = ait.mul %f5_0, %f5_7 : !ait.tensor<4 x f64>
  %f6_0 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %f6_1 = ait.mul %x, %two : !ait.tensor<4 x f64>
  %f6_2 = ait.mul %x, %c : !ait.tensor<4 x f64>
  %f6_3 = ait.mul %f6_2, %x : !ait.tensor<4 x f64>
  %f6_4 = ait.add %f6_3, %one : !ait.tensor<4 x f64>
  %f6_5 = ait.mul %f6_1, %f6_4 : !ait.tensor<4 x f64>
  %f6_6 = ait.tanh %f6_5 : !ait.tensor<4 x f64>
  %f6_7 = ait.add %f6_6, %one : !ait.tensor<4 x f64>
  %f6_8 = ait.mul %f6_0, %f6_7 : !ait.tensor<4 x f64>
  %f7_0 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %f7_1 = ait.mul %x, %s : !ait.tensor<4 x f64>
  %f7_2 = ait.mul %x, %c : !ait.tensor<4 x f64>
  %f7_3 = ait.mul %f7_2, %x : !ait.tensor<4 x f64>
  %f7_4 = ait.add %f7_3, %two : !ait.tensor<4 x f64>
  %f7_5 = ait.mul %f7_1, %f7_4 : !ait.tensor<4 x f64>
  %f7_6 = ait.tanh %f7_5 : !ait.tensor<4 x f64>
  %f7_7 = ait.add %f7_6, %two : !ait.tensor<4 x f64>
  %f7_8 = ait.mul %f7_0, %f7_7 : !ait.tensor<4 x f64>
  %f8_0 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %f8_1 = ait.mul %x, %s : !ait.tensor<4 x f64>
  %f8_2 = ait.mul %x, %c : !ait.tensor<4 x f64>
  %f8_3 = ait.mul %f8_2, %x : !ait.tensor<4 x f64>
  %f8_4 = ait.add %f8_3, %two : !ait.tensor<4 x f64>
  %f8_5 = ait.mul %f8_1, %f8_4 : !ait.tensor<4 x f64>
  %f8_6 = ait.tanh %f8_5 : !ait.tensor<4 x f64>
  %f8_7 = ait.add %f8_6, %one : !ait.tensor<4 x f64>
  %f8_8 = ait.mul %f8_0, %f8_7 : !ait.tensor<4 x f64>
  %f9_0 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %f9_1 = ait.mul %x, %s : !ait.tensor<4 x f64>
  %f9_2 = ait.mul %x, %c : !ait.tensor<4 x f64>
  %f9_3 = ait.mul %f9_2, %x : !ait.tensor<4 x f64>
  %f9_4 = ait.add %f9_3, %one : !ait.tensor<4 x f64>
  %f9_5 = ait.mul %f9_1, %f9_4 : !ait.tensor<4 x f64>
  %f9_6 = ait.tanh %f9_5 : !ait.tensor<4 x f64>
  %f9_7 = ait.add %f9_6, %two : !ait.tensor<4 x f64>
  %f9_8 = ait.mul %f9_0, %f9_7 : !ait.tensor<4 x f64>
  %f10_0 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %f10_1 = ait.mul %x, %s : !ait.tensor<4 x f64>
  %f10_2 = ait.mul %x, %c : !ait.tensor<4 x f64>
  %f10_3 = ait.mul %f10_2, %x : !ait.tensor<4 x f64>
  %f10_4 = ait.add %f10_3, %w : !ait.tensor<2 x 4 x f64>
  %f10_5 = ait.mul %f10_1, %f10_4 : !ait.tensor<2 x 4 x f64>
  %f10_6 = ait.tanh %f10_5 : !ait.tensor<2 x 4 x f64>
  %f10_7 = ait.add %f10_6, %w : !ait.tensor<2 x 4 x f64>
  %f10_8 = ait.mul %f10_0, %f10_7 : !ait.tensor<2 x 4 x f64>
  %f11_0 = ait.mul %x, %z : !ait.tensor<4 x f64>
  %f11_1 = ait.mul %x, %s : !ait.tensor<4 x f64>
  %f11_2 = ait.mul %x, %c : !ait.tensor<4 x f64>
  %f11_3 = ait.mul %f11_2, %x : !ait.tensor<4 x f64>
  %f11_4 = ait.add %f11_3, %one : !ait.tensor<4 x f64>
  %f11_5 = ait.mul %f11_1, %f11_4 : !ait.tensor<4 x f64>
  %f11_6 = ait.tanh %f11_5 : !ait.tensor<4 x f64>
  %f11_7 = ait.add %f11_6, %one : !ait.tensor<4 x f64>
  %f11_8 = ait.mul %f11_0, %f11_7 : !ait.tensor<4 x f64>
  %f12_0 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %f12_1 = ait.mul %x, %s : !ait.tensor<4 x f64>
  %f12_2 = ait.mul %x, %z : !ait.tensor<4 x f64>
  %f12_3 = ait.mul %f12_2, %x : !ait.tensor<4 x f64>
  %f12_4 = ait.add %f12_3, %one : !ait.tensor<4 x f64>
  %f12_5 = ait.mul %f12_1, %f12_4 : !ait.tensor<4 x f64>
  %f12_6 = ait.tanh %f12_5 : !ait.tensor<4 x f64>
  %f12_7 = ait.add %f12_6, %one : !ait.tensor<4 x f64>
  %f12_8 = ait.mul %f12_0, %f12_7 : !ait.tensor<4 x f64>
  %f13_0 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %f13_1 = ait.mul %x, %z : !ait.tensor<4 x f64>
  %f13_2 = ait.mul %x, %c : !ait.tensor<4 x f64>
  %f13_3 = ait.mul %f13_2, %x : !ait.tensor<4 x f64>
  %f13_4 = ait.add %f13_3, %one : !ait.tensor<4 x f64>
  %f13_5 = ait.mul %f13_1, %f13_4 : !ait.tensor<4 x f64>
  %f13_6 = ait.tanh %f13_5 : !ait.tensor<4 x f64>
  %f13_7 = ait.add %f13_6, %one : !ait.tensor<4 x f64>
  %f13_8 = ait.mul %f13_0, %f13_7 : !ait.tensor<4 x f64>
  %f14_0 = ait.mul %x, %half : !ait.tensor<4 x f64>
  %f14_1 = ait.mul %x, %s : !ait.tensor<4 x f64>
  %f14_2 = ait.mul %x, %c : !ait.tensor<4 x f64>
  %f14_3 = ait.mul %f14_2, %x : !ait.tensor<4 x f64>
  %f14_4 = ait.add %f14_3, %z : !ait.tensor<4 x f64>
  %f14_5 = ait.mul %f14_1, %f14_4 : !ait.tensor<4 x f64>
  %f14_6 = ait.tanh %f14_5 : !ait.tensor<4 x f64>
  %f14_7 = ait.add %f14_6, %z : !ait.tensor<4 x f64>
  %f14_8 = ait.mul %f14_0, %f14_7 : !ait.tensor<4 x f64>
  ait.output "y0" %f0_8 : !ait.tensor<4 x f64>
  ait.output "y1" %f1_8 : !ait.tensor<4 x f64>
  ait.output "y2" %f2_8 : !ait.tensor<4 x f64>
  ait.output "y3" %f3_8 : !ait.tensor<4 x f64>
  ait.output "y4" %f4_8 : !ait.tensor<4 x f64>
  ait.output "y5" %f5_8 : !ait.tensor<4 x f64>
  ait.output "y6" %f6_8 : !ait.tensor<4 x f64>
  ait.output "y7" %f7_8 : !ait.tensor<4 x f64>
  ait.output "y8" %f8_8 : !ait.tensor<4 x f64>
  ait.output "y9" %f9_8 : !ait.tensor<4 x f64>
  ait.output "y10" %f10_8 : !ait.tensor<2 x 4 x f64>
  ait.output "y11" %f11_8 : !ait.tensor<4 x f64>
  ait.output "y12" %f12_8 : !ait.tensor<4 x f64>
  ait.output "y13" %f13_8 : !ait.tensor<4 x f64>
  ait.output "y14" %f14_8 : !ait.tensor<4 x f64>
}
