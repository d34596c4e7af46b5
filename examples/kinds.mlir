// One op of each kind that the compiler knows beside products and rows: a convolution, sums along a dim, a reduction to one number, loops over
// a dynamic and over a fixed length, a dim that a run binds, and state that is updated in place.
//
//   ait-opt examples/kinds.mlir -p simplify,fuse-epilogue,fuse-elementwise --check-semantics
//   ait compile examples/kinds.mlir --target cpu -o kinds.ait
//   ait run kinds.ait --dim b=3 --dim len=5 --compare reference
ait.graph @kinds(%x: !ait.tensor<b x 8 x 8 x 16 x f32>, %w: !ait.tensor<32 x 3 x 3 x 8 x f32>, %bias: !ait.tensor<32 x f32>,
                 %mask: !ait.tensor<b x i1>, %steps: !ait.tensor<len x b x 32 x f32>, %start: !ait.tensor<b x 32 x f32>,
                 %few: !ait.tensor<100 x b x 32 x f32>, %cache: !ait.tensor<b x 64 x 32 x f32> donated,
                 %at: !ait.tensor<i64>)
    dims {b = 1 to 4, len = 0 to 9, kept = 0 to b bound} {
  %c = ait.conv %x, %w stride [2, 2] pad [2, 2] dilation [2, 2] groups 2 : !ait.tensor<b x 4 x 4 x 32 x f32>
  %cb = ait.add %c, %bias : !ait.tensor<b x 4 x 4 x 32 x f32>
  %cl = ait.clamp %cb min 0.0 max 6.0 : !ait.tensor<b x 4 x 4 x 32 x f32>
  %sums = ait.cumulative sum %cl dim 1 : !ait.tensor<b x 4 x 4 x 32 x f32>
  %all = ait.reduce sum %cl dims [0, 1, 2, 3] : !ait.tensor<f32>

  %last, %states = ait.scan %steps init(%start) dim 0 {
  ^bb0(%now: !ait.tensor<b x 32 x f32>, %before: !ait.tensor<b x 32 x f32>):
    %s = ait.add %now, %before : !ait.tensor<b x 32 x f32>
    %t = ait.tanh %s : !ait.tensor<b x 32 x f32>
    ait.yield %t, %t : !ait.tensor<b x 32 x f32>, !ait.tensor<b x 32 x f32>
  } : !ait.tensor<b x 32 x f32>, !ait.tensor<len x b x 32 x f32>

  %sum = ait.scan %few init(%start) dim 0 reverse {
  ^bb0(%now: !ait.tensor<b x 32 x f32>, %before: !ait.tensor<b x 32 x f32>):
    %s = ait.sub %now, %before : !ait.tensor<b x 32 x f32>
    ait.yield %s : !ait.tensor<b x 32 x f32>
  } : !ait.tensor<b x 32 x f32>

  %row = ait.reshape %last : !ait.tensor<b x 1 x 32 x f32>
  %new = ait.update_slice %cache, %row at %at dim 1 : !ait.tensor<b x 64 x 32 x f32>
  %chosen, %count = ait.masked_select %last, %mask : !ait.tensor<kept x 32 x f32>, !ait.tensor<i64>
  %grown = ait.exp %chosen : !ait.tensor<kept x 32 x f32>

  ait.output "sums" %sums : !ait.tensor<b x 4 x 4 x 32 x f32>
  ait.output "all" %all : !ait.tensor<f32>
  ait.output "states" %states : !ait.tensor<len x b x 32 x f32>
  ait.output "sum" %sum : !ait.tensor<b x 32 x f32>
  ait.output "cache" %new in place of %cache : !ait.tensor<b x 64 x 32 x f32>
  ait.output "grown" %grown : !ait.tensor<kept x 32 x f32>
}
