// RUN: ait-opt %s -p 'select{target="cpu"}' --verify-diagnostics

// An op that only a GPU has a kernel for names the targets that have one.
ait.graph @g(%x: !ait.tensor<9 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>, %i: !ait.tensor<6 x i64>) {
  %k, %p = ait.order %i sizes [9] : !ait.tensor<6 x i32>, !ait.tensor<6 x i32>
  // expected-error @below {{compile for cuda or rocm, which have one}}
  %y = ait.scatter_loops add %x dims [0] kept [1] order %k, %p of(%w) for (d0 = 6, d1 = 4) {
  ^bb0(%a: !ait.tensor<6 x 4 x f16>):
    %v = ait.at %a[d0, d1] : f32
    ait.yield %v : f32
  } : !ait.tensor<9 x 4 x f16>
  ait.output "y" %y : !ait.tensor<9 x 4 x f16>
}
