// RUN: ait-opt %s -p "narrow-row-ops{assume=true}" | filecheck %s
// RUN: ait-opt %s -p simplify | filecheck %s --check-prefix=CASTS
// CASTS: ait.cast

// As Llama and T5 write their norms in half precision: widened, normalised, narrowed, scaled.
// CHECK-LABEL: ait.graph @llama
ait.graph @llama(%x: !ait.tensor<b x 8 x f16>) dims {b = 1 to 4} {
  // CHECK-NEXT: %w = ait.param
  // CHECK-NEXT: %[[Y:[0-9]+]] = ait.rms_norm %x scale %w axes 1 eps {{.*}} : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: ait.output
  %w = ait.param "w" : !ait.tensor<8 x f16>
  %eps = ait.constant 1e-06 : !ait.tensor<f32>
  %0 = ait.cast %x : !ait.tensor<b x 8 x f32>
  %1 = ait.mul %0, %0 : !ait.tensor<b x 8 x f32>
  %2 = ait.reduce mean %1 dims [1] : !ait.tensor<b x f32>
  %3 = ait.reshape %2 : !ait.tensor<b x 1 x f32>
  %4 = ait.add %3, %eps : !ait.tensor<b x 1 x f32>
  %5 = ait.rsqrt %4 : !ait.tensor<b x 1 x f32>
  %6 = ait.mul %0, %5 : !ait.tensor<b x 8 x f32>
  %7 = ait.cast %6 : !ait.tensor<b x 8 x f16>
  %8 = ait.mul %w, %7 : !ait.tensor<b x 8 x f16>
  ait.output "y" %8 : !ait.tensor<b x 8 x f16>
}

// CHECK-LABEL: ait.graph @row_ops
ait.graph @row_ops(%x: !ait.tensor<4 x 8 x f16>, %z: !ait.tensor<4 x 8 x bf16>) {
  // CHECK-NEXT: ait.softmax %x dim 1 : !ait.tensor<4 x 8 x f16>
  // CHECK-NEXT: ait.softmax %z dim 0 : !ait.tensor<4 x 8 x bf16>
  // CHECK-NEXT: ait.rms_norm %x axes 2 eps {{.*}} : !ait.tensor<4 x 8 x f16>
  // CHECK-NEXT: ait.output
  %0 = ait.cast %x : !ait.tensor<4 x 8 x f32>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<4 x 8 x f32>
  %2 = ait.cast %1 : !ait.tensor<4 x 8 x f16>
  %3 = ait.cast %z : !ait.tensor<4 x 8 x f32>
  %4 = ait.softmax %3 dim 0 : !ait.tensor<4 x 8 x f32>
  %5 = ait.cast %4 : !ait.tensor<4 x 8 x bf16>
  %6 = ait.cast %x : !ait.tensor<4 x 8 x f32>
  %7 = ait.rms_norm %6 axes 2 eps 1e-06 : !ait.tensor<4 x 8 x f32>
  %8 = ait.cast %7 : !ait.tensor<4 x 8 x f16>
  ait.output "y0" %2 : !ait.tensor<4 x 8 x f16>
  ait.output "y1" %5 : !ait.tensor<4 x 8 x bf16>
  ait.output "y2" %8 : !ait.tensor<4 x 8 x f16>
}

// A type that is wider than what kernels compute in.
// CHECK-LABEL: ait.graph @softmax_in_f64
ait.graph @softmax_in_f64(%x: !ait.tensor<4 x 8 x f16>) {
  // CHECK: ait.softmax
  // CHECK-SAME: !ait.tensor<4 x 8 x f64>
  // CHECK-NOT: ait.softmax
  // CHECK: ait.output
  %0 = ait.cast %x : !ait.tensor<4 x 8 x f64>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<4 x 8 x f64>
  %2 = ait.cast %1 : !ait.tensor<4 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<4 x 8 x f16>
}

// Integers are not computed with.
// CHECK-LABEL: ait.graph @softmax_of_integers
ait.graph @softmax_of_integers(%x: !ait.tensor<4 x 8 x i32>) {
  // CHECK: ait.softmax
  // CHECK-SAME: !ait.tensor<4 x 8 x f32>
  // CHECK-NOT: ait.softmax
  // CHECK: ait.output
  %0 = ait.cast %x : !ait.tensor<4 x 8 x f32>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<4 x 8 x f32>
  %2 = ait.cast %1 : !ait.tensor<4 x 8 x i32>
  ait.output "y" %2 : !ait.tensor<4 x 8 x i32>
}

// The result is of another type.
// CHECK-LABEL: ait.graph @softmax_to_another
ait.graph @softmax_to_another(%x: !ait.tensor<4 x 8 x f16>) {
  // CHECK: ait.softmax
  // CHECK-SAME: !ait.tensor<4 x 8 x f32>
  // CHECK-NOT: ait.softmax
  // CHECK: ait.output
  %0 = ait.cast %x : !ait.tensor<4 x 8 x f32>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<4 x 8 x f32>
  %2 = ait.cast %1 : !ait.tensor<4 x 8 x bf16>
  ait.output "y" %2 : !ait.tensor<4 x 8 x bf16>
}

// What is wide is used, too.
// CHECK-LABEL: ait.graph @softmax_used
ait.graph @softmax_used(%x: !ait.tensor<4 x 8 x f16>) {
  // CHECK: ait.softmax
  // CHECK-SAME: !ait.tensor<4 x 8 x f32>
  // CHECK-NOT: ait.softmax
  // CHECK: ait.output
  %0 = ait.cast %x : !ait.tensor<4 x 8 x f32>
  %1 = ait.softmax %0 dim 1 : !ait.tensor<4 x 8 x f32>
  %2 = ait.cast %1 : !ait.tensor<4 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<4 x 8 x f16>
  ait.output "z" %1 : !ait.tensor<4 x 8 x f32>
}

// It has its kernel.
// CHECK-LABEL: ait.graph @softmax_selected
ait.graph @softmax_selected(%x: !ait.tensor<4 x 8 x f16>) {
  // CHECK: ait.softmax
  // CHECK-SAME: !ait.tensor<4 x 8 x f32>
  // CHECK-NOT: ait.softmax
  // CHECK: ait.output
  %0 = ait.cast %x : !ait.tensor<4 x 8 x f32>
  %1 = ait.softmax %0 dim 1 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<4 x 8 x f32>
  %2 = ait.cast %1 : !ait.tensor<4 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<4 x 8 x f16>
}

// A type that is wider than what kernels compute in.
// CHECK-LABEL: ait.graph @rms_norm_in_f64
ait.graph @rms_norm_in_f64(%x: !ait.tensor<4 x 8 x f16>) {
  // CHECK: ait.rms_norm
  // CHECK-SAME: !ait.tensor<4 x 8 x f64>
  // CHECK-NOT: ait.rms_norm
  // CHECK: ait.output
  %0 = ait.cast %x : !ait.tensor<4 x 8 x f64>
  %1 = ait.rms_norm %0 axes 1 eps 1e-06 : !ait.tensor<4 x 8 x f64>
  %2 = ait.cast %1 : !ait.tensor<4 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<4 x 8 x f16>
}

// Integers are not computed with.
// CHECK-LABEL: ait.graph @rms_norm_of_integers
ait.graph @rms_norm_of_integers(%x: !ait.tensor<4 x 8 x i32>) {
  // CHECK: ait.rms_norm
  // CHECK-SAME: !ait.tensor<4 x 8 x f32>
  // CHECK-NOT: ait.rms_norm
  // CHECK: ait.output
  %0 = ait.cast %x : !ait.tensor<4 x 8 x f32>
  %1 = ait.rms_norm %0 axes 1 eps 1e-06 : !ait.tensor<4 x 8 x f32>
  %2 = ait.cast %1 : !ait.tensor<4 x 8 x i32>
  ait.output "y" %2 : !ait.tensor<4 x 8 x i32>
}

// The result is of another type.
// CHECK-LABEL: ait.graph @rms_norm_to_another
ait.graph @rms_norm_to_another(%x: !ait.tensor<4 x 8 x f16>) {
  // CHECK: ait.rms_norm
  // CHECK-SAME: !ait.tensor<4 x 8 x f32>
  // CHECK-NOT: ait.rms_norm
  // CHECK: ait.output
  %0 = ait.cast %x : !ait.tensor<4 x 8 x f32>
  %1 = ait.rms_norm %0 axes 1 eps 1e-06 : !ait.tensor<4 x 8 x f32>
  %2 = ait.cast %1 : !ait.tensor<4 x 8 x bf16>
  ait.output "y" %2 : !ait.tensor<4 x 8 x bf16>
}

// What is wide is used, too.
// CHECK-LABEL: ait.graph @rms_norm_used
ait.graph @rms_norm_used(%x: !ait.tensor<4 x 8 x f16>) {
  // CHECK: ait.rms_norm
  // CHECK-SAME: !ait.tensor<4 x 8 x f32>
  // CHECK-NOT: ait.rms_norm
  // CHECK: ait.output
  %0 = ait.cast %x : !ait.tensor<4 x 8 x f32>
  %1 = ait.rms_norm %0 axes 1 eps 1e-06 : !ait.tensor<4 x 8 x f32>
  %2 = ait.cast %1 : !ait.tensor<4 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<4 x 8 x f16>
  ait.output "z" %1 : !ait.tensor<4 x 8 x f32>
}

// It has its kernel.
// CHECK-LABEL: ait.graph @rms_norm_selected
ait.graph @rms_norm_selected(%x: !ait.tensor<4 x 8 x f16>) {
  // CHECK: ait.rms_norm
  // CHECK-SAME: !ait.tensor<4 x 8 x f32>
  // CHECK-NOT: ait.rms_norm
  // CHECK: ait.output
  %0 = ait.cast %x : !ait.tensor<4 x 8 x f32>
  %1 = ait.rms_norm %0 axes 1 eps 1e-06 {kernel = #ait.kernel<"native", {}>} : !ait.tensor<4 x 8 x f32>
  %2 = ait.cast %1 : !ait.tensor<4 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<4 x 8 x f16>
}

// The norm has a prologue.
// CHECK-LABEL: ait.graph @rms_norm_fused
ait.graph @rms_norm_fused(%x: !ait.tensor<4 x 8 x f16>) {
  // CHECK: ait.rms_norm
  // CHECK-SAME: prologue
  // CHECK-NOT: ait.rms_norm
  // CHECK: ait.output
  %0 = ait.cast %x : !ait.tensor<4 x 8 x f32>
  %1 = ait.rms_norm %0 axes 1 eps 1e-06 prologue() {
  ^bb0(%e: f32):
    %r = ait.relu %e : f32
    ait.yield %r : f32
  } : !ait.tensor<4 x 8 x f32>
  %2 = ait.cast %1 : !ait.tensor<4 x 8 x f16>
  ait.output "y" %2 : !ait.tensor<4 x 8 x f16>
}
