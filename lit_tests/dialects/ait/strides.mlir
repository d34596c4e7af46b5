// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: ait-opt %s --print-op-generic | ait-opt | filecheck %s

// Dims in another order, rows further apart than they are long, and columns first.
// CHECK-LABEL: ait.graph @f(%x: !ait.tensor<n x c x h x w x f16> strides [c*h*w, 1, c*w, c], "any name" %{{.*}}: !ait.tensor<n x 8 x f16> strides [8*p, 1], %z: !ait.tensor<4 x n x f16>) dims
// GENERIC: input_strides = {x = #ait.shape<c*h*w, 1, c*w, c>, "any name" = #ait.shape<8*p, 1>}
ait.graph @f(%x: !ait.tensor<n x c x h x w x f16> strides [c*h*w, 1, c*w, c], "any name" %y: !ait.tensor<n x 8 x f16> strides [8*p, 1], %z: !ait.tensor<4 x n x f16>) dims {n = 1 to 4, c = 0 to 8, h = 1 to 16, w = 1 to 16, p = 1 to 64} {
  // CHECK: ait.output "a" %x strides [c*h*w, 1, c*w, c] : !ait.tensor<n x c x h x w x f16>
  // GENERIC: "ait.output"(%x) <{output_name = "a", strides = #ait.shape<c*h*w, 1, c*w, c>}>
  ait.output "a" %x strides [c*h*w, 1, w*c, c] : !ait.tensor<n x c x h x w x f16>
  // CHECK: ait.output "b" %z strides [1, 4] : !ait.tensor<4 x n x f16>
  ait.output "b" %z strides [1, 4] : !ait.tensor<4 x n x f16>
}

// A stride of a dim of 1, or of a tensor without elements, may be anything.
// CHECK-LABEL: ait.graph @one(%x: !ait.tensor<1 x 8 x f16> strides [3, 1], %y: !ait.tensor<0 x 8 x f16> strides [0, 1])
ait.graph @one(%x: !ait.tensor<1 x 8 x f16> strides [3, 1], %y: !ait.tensor<0 x 8 x f16> strides [0, 1]) {
}
