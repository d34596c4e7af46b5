// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait_rt.kernel @linear_0 "openblas" {algo = 17 : i64} (%a: !ait.tensor<b x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) dims {b = 1 to 4} {
// GENERIC: "ait_rt.kernel"() <{sym_name = "linear_0", provider = "openblas", config = {algo = 17 : i64}, dims = #ait.dims<b = 1 to 4>}> ({
// GENERIC-NEXT: ^bb0(%a: !ait.tensor<b x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>):
ait_rt.kernel @linear_0 "openblas" {algo = 17 : i64} (%a: !ait.tensor<b x 16 x f16>, %w: !ait.tensor<8 x 16 x f16>) dims {b = 1 to 4} {
  // CHECK-NEXT: %0 = ait.gemm rcr %a, %w : !ait.tensor<b x 8 x f16>
  %0 = ait.gemm rcr %a, %w : !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: ait_rt.return %0 : !ait.tensor<b x 8 x f16>
  // GENERIC: "ait_rt.return"(%0) : (!ait.tensor<b x 8 x f16>) -> ()
  ait_rt.return %0 : !ait.tensor<b x 8 x f16>
}

// CHECK-LABEL: ait_rt.kernel @relu_0 "native" {} (%a: !ait.tensor<b x 8 x f16>) dims {b = 1 to 4} {
ait_rt.kernel @relu_0 "native" {} (%a: !ait.tensor<b x 8 x f16>) dims {b = 1 to 4} {
  %0 = ait.relu %a : !ait.tensor<b x 8 x f16>
  ait_rt.return %0 : !ait.tensor<b x 8 x f16>
}

// CHECK-LABEL: ait_rt.program @two_halves dims {b = 1 to 4} arena (48*b + 64) {
// GENERIC: "ait_rt.program"() <{sym_name = "two_halves", dims = #ait.dims<b = 1 to 4>, arena = #ait.shape<48*b + 64>}> ({
ait_rt.program @two_halves dims {b = 1 to 4} arena (b*48 + 64) {
  // CHECK-NEXT: %x = ait_rt.input "x" : !ait_rt.buffer<b x 16 x f16>
  // GENERIC-NEXT: %x = "ait_rt.input"() <{buffer_name = "x"}> : () -> !ait_rt.buffer<b x 16 x f16>
  %x = ait_rt.input "x" : !ait_rt.buffer<b x 16 x f16>
  // CHECK-NEXT: %y = ait_rt.output "y" : !ait_rt.buffer<b x 16 x f16>
  // GENERIC-NEXT: "ait_rt.output"() <{buffer_name = "y"}>
  %y = ait_rt.output "y" : !ait_rt.buffer<b x 16 x f16>
  // CHECK-NEXT: %w = ait_rt.constant ["q.weight", "k.weight"] rows [6, 2] : !ait_rt.buffer<8 x 16 x f16>
  // GENERIC-NEXT: "ait_rt.constant"() <{params = ["q.weight", "k.weight"], row_counts = [6 : i64, 2 : i64]}>
  %w = ait_rt.constant ["q.weight", "k.weight"] rows [6, 2] : !ait_rt.buffer<8 x 16 x f16>
  // CHECK-NEXT: %p = ait_rt.constant ["q.weight", "k.weight"] rows [6, 2] panels nk : !ait_rt.buffer<8 x 16 x f32>
  // GENERIC-NEXT: "ait_rt.constant"() <{params = ["q.weight", "k.weight"], row_counts = [6 : i64, 2 : i64], panels = "nk"}>
  %p = ait_rt.constant ["q.weight", "k.weight"] rows [6, 2] panels nk : !ait_rt.buffer<8 x 16 x f32>
  // CHECK-NEXT: %g = ait_rt.constant ["conv.weight"] panels winograd : !ait_rt.buffer<8 x 3 x 3 x 16 x f16>
  // GENERIC-NEXT: %g = "ait_rt.constant"() <{params = ["conv.weight"], panels = "winograd"}>
  %g = ait_rt.constant ["conv.weight"] panels winograd : !ait_rt.buffer<8 x 3 x 3 x 16 x f16>
  // CHECK-NEXT: %c = ait_rt.constant value 0.125 : !ait_rt.buffer<f16>
  // GENERIC-NEXT: "ait_rt.constant"() <{value = 1.250000e-01 : f64}>
  %c = ait_rt.constant value 0.125 : !ait_rt.buffer<f16>
  // CHECK-NEXT: ait_rt.constant value [1, 2, 3] : !ait_rt.buffer<3 x i32>
  %i = ait_rt.constant value [1, 2, 3] : !ait_rt.buffer<3 x i32>
  // CHECK-NEXT: %h = ait_rt.alloc at (64) : !ait_rt.buffer<b x 8 x f16>
  // GENERIC: "ait_rt.alloc"() <{offset = #ait.shape<64>}>
  %h = ait_rt.alloc at (64) : !ait_rt.buffer<b x 8 x f16>
  // CHECK-NEXT: %s = ait_rt.alloc : !ait_rt.buffer<16 x i8>
  %s = ait_rt.alloc : !ait_rt.buffer<16 x i8>
  // CHECK-NEXT: ait_rt.alloc at (16*b + 64) : !ait_rt.buffer<b x 16 x f16>
  %t = ait_rt.alloc at (64 + 16*b) : !ait_rt.buffer<b x 16 x f16>
  // CHECK-NEXT: ait_rt.launch @linear_0 ins(%x, %w) outs(%h) workspace(%s) stream 0
  // GENERIC: "ait_rt.launch"(%x, %w, %h, %s) <{kernel = @linear_0, stream = 0 : i64, operandSegmentSizes = array<i32: 2, 1, 1, 0>}>
  ait_rt.launch @linear_0 ins(%x, %w) outs(%h) workspace(%s) stream 0
  // CHECK-NEXT: %left = ait_rt.view %y offset (0) strides [16, 1] : !ait_rt.buffer<b x 8 x f16>
  // GENERIC: "ait_rt.view"(%y) <{offset = #ait.shape<0>, strides = #ait.shape<16, 1>}>
  %left = ait_rt.view %y offset (0) strides [16, 1] : !ait_rt.buffer<b x 8 x f16>
  // CHECK-NEXT: %right = ait_rt.view %y offset (8) strides [16, 1] : !ait_rt.buffer<b x 8 x f16>
  %right = ait_rt.view %y offset (8) strides [16, 1] : !ait_rt.buffer<b x 8 x f16>
  // CHECK-NEXT: ait_rt.launch @relu_0 ins(%h) outs(%left) workspace() stream 0
  ait_rt.launch @relu_0 ins(%h) outs(%left) workspace() stream 0
  // CHECK-NEXT: ait_rt.copy %h to %right
  // GENERIC: "ait_rt.copy"(%h, %right) : (!ait_rt.buffer<b x 8 x f16>, !ait_rt.buffer<b x 8 x f16>) -> ()
  ait_rt.copy %h to %right
}
