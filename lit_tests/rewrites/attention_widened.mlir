// RUN: ait-opt %s -p 'widen-float8{target="cpu"}' --check-semantics | filecheck %s
// RUN: ait-opt %s -p 'widen-float8{target="cuda" arch="sm_90a"}' | filecheck %s --check-prefix CARD

// Values in the type of the result; numbers of 8 bits follow from f16.
// CHECK-LABEL: ait.graph @widened
// CARD-LABEL: ait.graph @widened
// CARD-COUNT-3: ait.attention %q, %k, %k
ait.graph @widened(%q: !ait.tensor<b x 4 x r x 16 x f8E4M3FN>, %k: !ait.tensor<b x 2 x r x 16 x f8E4M3FN>) dims {b = 1 to 2, r = 1 to 9} {
  // CHECK-DAG: [[Q:%.+]] = ait.cast %q : !ait.tensor<b x 4 x r x 16 x bf16>
  // CHECK-DAG: [[K:%.+]] = ait.cast %k : !ait.tensor<b x 2 x r x 16 x bf16>
  // CHECK-DAG: [[S:%.+]] = ait.constant 0.5 : !ait.tensor<f32>
  // CHECK-DAG: [[V:%.+]] = ait.dequantize %k scale [[S]] : !ait.tensor<b x 2 x r x 16 x bf16>
  // CHECK:     ait.attention [[Q]], [[K]], [[V]] scale 0.125 causal log_sums :
  // CHECK:     [[W:%.+]] = ait.cast %k : !ait.tensor<b x 2 x r x 16 x f32>
  // CHECK:     ait.attention {{.*}} scale 0.25 : !ait.tensor<b x 4 x r x 16 x f32>
  // CHECK:     [[H:%.+]] = ait.cast %q : !ait.tensor<b x 4 x r x 16 x f16>
  // CHECK:     ait.attention [[H]], {{.*}} scale 0.25 result_scale 0.5 : !ait.tensor<b x 4 x r x 16 x f8E4M3FN>
  %x, %l = ait.attention %q, %k, %k scale 0.125 causal log_sums value_scale 0.5 : !ait.tensor<b x 4 x r x 16 x bf16>, !ait.tensor<b x 4 x r x f32>
  %y = ait.attention %q, %k, %k scale 0.25 : !ait.tensor<b x 4 x r x 16 x f32>
  %z = ait.attention %q, %k, %k scale 0.25 value_scale 2.0 result_scale 0.5 : !ait.tensor<b x 4 x r x 16 x f8E4M3FN>
  ait.output "x" %x : !ait.tensor<b x 4 x r x 16 x bf16>
  ait.output "l" %l : !ait.tensor<b x 4 x r x f32>
  ait.output "y" %y : !ait.tensor<b x 4 x r x 16 x f32>
  ait.output "z" %z : !ait.tensor<b x 4 x r x 16 x f8E4M3FN>
}

// A selected kernel stays, and so do floats.
// CHECK-LABEL: ait.graph @kept
ait.graph @kept(%q: !ait.tensor<1 x 4 x r x 16 x f8E4M3FN>, %h: !ait.tensor<1 x 4 x r x 16 x f16>) dims {r = 1 to 9} {
  // CHECK-NOT: ait.cast
  %y = ait.attention %q, %q, %q scale 0.25 {kernel = "native"} : !ait.tensor<1 x 4 x r x 16 x f16>
  %z = ait.attention %h, %h, %h scale 0.25 : !ait.tensor<1 x 4 x r x 16 x f16>
  ait.output "y" %y : !ait.tensor<1 x 4 x r x 16 x f16>
  ait.output "z" %z : !ait.tensor<1 x 4 x r x 16 x f16>
}
