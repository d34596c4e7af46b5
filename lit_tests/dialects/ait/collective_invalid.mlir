// RUN: ait-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{axis 'tp' stands twice}}
sdy.mesh @mesh = <["tp"=2, "tp"=2]>

// -----

// expected-error @below {{a mesh has 1 to 65536 ranks}}
sdy.mesh @mesh = <["tp"=0]>

// -----

// expected-error @below {{a mesh needs an axis, as in <["tp"=2]>}}
sdy.mesh @mesh = <[]>

// -----

// expected-error @below {{an axis needs a name without NUL characters}}
sdy.mesh @mesh = <[""=2]>

// -----

ait.graph @axis(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.all_reduce: axis 'dp' is not in the mesh <["tp"=2]>}}
  %0 = ait.all_reduce sum %x over ["dp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @no_axis(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.all_reduce: needs at least one axis}}
  %0 = ait.all_reduce sum %x over [] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @axis_twice(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.all_reduce: an axis stands twice in ['tp', 'tp']}}
  %0 = "ait.all_reduce"(%x) <{kind = "sum", axes = ["tp", "tp"], mesh = #sdy.mesh<["tp"=2]>}> : (!ait.tensor<4 x 8 x f32>) -> !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @kind(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{expected one of sum, prod, max, min}}
  %0 = ait.all_reduce mean %x over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @generic_kind(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.all_reduce: unknown kind "mean"; expected one of sum, prod, max, min}}
  %0 = "ait.all_reduce"(%x) <{kind = "mean", axes = ["tp"], mesh = #sdy.mesh<["tp"=2]>}> : (!ait.tensor<4 x 8 x f32>) -> !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @booleans(%x: !ait.tensor<4 x 8 x i1>) {
  // expected-error @below {{ait.reduce_scatter: max of i1 has no meaning; convert with ait.cast}}
  %0 = ait.reduce_scatter max %x dim 0 over ["tp"] of <["tp"=2]> : !ait.tensor<2 x 8 x i1>
}

// -----

ait.graph @gathered(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.all_gather: the result is !ait.tensor<4 x 8 x f32>, expected !ait.tensor<8 x 8 x f32>}}
  %0 = ait.all_gather %x dim 0 over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @divides(%x: !ait.tensor<b x 8 x f32>) dims {b = 2 to 4} {
  // expected-error @below {{ait.reduce_scatter: dim 0 of [b, 8] is not proved to be a multiple of 2, the number of ranks over tp}}
  %0 = ait.reduce_scatter sum %x dim 0 over ["tp"] of <["tp"=2]> : !ait.tensor<b x 8 x f32>
}

// -----

ait.graph @splits(%x: !ait.tensor<4 x 9 x f32>) {
  // expected-error @below {{ait.all_to_all: dim 1 of [4, 9] is not proved to be a multiple of 4, the number of ranks over dp, tp}}
  %0 = ait.all_to_all %x split 1 concat 0 over ["dp", "tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<16 x 2 x f32>
}

// -----

ait.graph @dim(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.all_slice: dim 2 is out of range for shape [4, 8]}}
  %0 = ait.all_slice %x dim 2 over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @root(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.broadcast: root is 2, expected 0 to 1, a member of the group}}
  %0 = ait.broadcast %x root 2 over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @target(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.collective_permute: member 2 receives, expected 0 to 1, a member of the group}}
  %0 = ait.collective_permute %x [0 -> 2] over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @source(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.collective_permute: member -1 sends, expected 0 to 1, a member of the group}}
  %0 = ait.collective_permute %x [1 -> 0, -1 -> 1] over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @sends_twice(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.collective_permute: member 0 sends twice, expected at most once}}
  %0 = ait.collective_permute %x [0 -> 1, 0 -> 0] over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @receives_twice(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.collective_permute: member 1 receives twice, expected at most once}}
  %0 = ait.collective_permute %x [0 -> 1, 1 -> 1] over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @no_pair(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.collective_permute: needs at least one pair of members, as in [0 -> 1]}}
  %0 = ait.collective_permute %x [] over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @three(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.collective_permute: a pair is [0, 1, 0], expected a source and a target}}
  %0 = "ait.collective_permute"(%x) <{pairs = [[0, 1, 0]], axes = ["tp"], mesh = #sdy.mesh<["tp"=2]>}> : (!ait.tensor<4 x 8 x f32>) -> !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @arrow(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{Expected}}
  %0 = ait.collective_permute %x [0, 1] over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @shape(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{ait.collective_permute: the result is !ait.tensor<8 x 8 x f32>, expected !ait.tensor<4 x 8 x f32>}}
  %0 = ait.collective_permute %x [0 -> 1] over ["tp"] of <["tp"=2]> : !ait.tensor<8 x 8 x f32>
}

// -----

ait.graph @send(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{Operation ait.send is not registered; ait.collective_permute sends from one rank and receives on another}}
  %0 = ait.send %x to 1 over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @recv(%x: !ait.tensor<4 x 8 x f32>) {
  // expected-error @below {{Operation ait.recv is not registered; ait.collective_permute sends from one rank and receives on another}}
  %0 = ait.recv from 0 over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

// expected-error @below {{ait.graph: ait.all_reduce is of the mesh <["tp"=4]>, but the ranks are of <["tp"=2]>}}
ait.graph @meshes(%x: !ait.tensor<4 x 8 x f32>) {
  %0 = ait.all_reduce sum %x over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
  %1 = ait.all_reduce sum %0 over ["tp"] of <["tp"=4]> : !ait.tensor<4 x 8 x f32>
}

// -----

// expected-error @below {{ait.graph: ait.all_reduce is of the mesh <["tp"=2]>, but the ranks are of <["tp"=4]>}}
ait.graph @other_mesh(%x: !ait.tensor<4 x 8 x f32>) ranks {mesh = #sdy.mesh<["tp"=4]>} {
  %0 = ait.all_reduce sum %x over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f32>
}

// -----

// expected-error @below {{ait.graph: ranks need a mesh, as in ranks {mesh = #sdy.mesh<["tp"=2]>}}}
ait.graph @no_mesh(%x: !ait.tensor<4 x 8 x f32>) ranks {} {
}

// -----

// expected-error @below {{ait.graph: ranks have a mesh, inputs, params, outputs; got 'input'}}
ait.graph @part(%x: !ait.tensor<4 x f32>) ranks {mesh = #sdy.mesh<["tp"=2]>, input = {x = #sdy.sharding<@m, [{}]>}} {
}

// -----

// expected-error @below {{ait.graph: the inputs of ranks are shardings by name}}
ait.graph @not_sharded(%x: !ait.tensor<4 x f32>) ranks {mesh = #sdy.mesh<["tp"=2]>, inputs = {x = 1 : i64}} {
}

// -----

// expected-error @below {{ait.graph: ranks shard 'z' of the inputs, but there is no such tensor}}
ait.graph @name(%x: !ait.tensor<4 x f32>) ranks {mesh = #sdy.mesh<["tp"=2]>, inputs = {z = #sdy.sharding<@m, [{}]>}} {
}

// -----

// expected-error @below {{ait.graph: the sharding of 'x' names axis 'dp', but the mesh is <["tp"=2]>}}
ait.graph @unknown(%x: !ait.tensor<4 x f32>) ranks {mesh = #sdy.mesh<["tp"=2]>, inputs = {x = #sdy.sharding<@m, [{"dp"}]>}} {
}

// -----

// expected-error @below {{ait.graph: the sharding of 'x' has 2 dims, but its shape is [4]}}
ait.graph @dims(%x: !ait.tensor<4 x f32>) ranks {mesh = #sdy.mesh<["tp"=2]>, inputs = {x = #sdy.sharding<@m, [{}, {}]>}} {
}

// -----

// expected-error @below {{an input has the attribute sdy.sharding only}}
ait.graph @attribute(%x: !ait.tensor<4 x f32> {note}) {
}

// -----

// expected-error @below {{ait.graph: input 'x' has 1 : i64, expected a #sdy.sharding}}
ait.graph @number(%x: !ait.tensor<4 x f32> {sdy.sharding = 1 : i64}) {
}

// -----

// expected-error @below {{axis 'tp' stands twice}}
ait.graph @twice(%x: !ait.tensor<4 x 4 x f32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {"tp"}]>}) {
}

// -----

ait.graph @steps(%x: !ait.tensor<4 x 8 x f32>, %h: !ait.tensor<8 x f32>) {
  %last, %y = ait.scan %x init(%h) with() dim 0 {
  ^bb0(%row: !ait.tensor<8 x f32>, %c: !ait.tensor<8 x f32>):
    // expected-error @below {{ait.all_reduce: stands in ait.scan; ranks meet in the body of an ait.graph only}}
    %n = ait.all_reduce sum %c over ["tp"] of <["tp"=2]> : !ait.tensor<8 x f32>
    ait.yield %n, %n : !ait.tensor<8 x f32>, !ait.tensor<8 x f32>
  } : !ait.tensor<8 x f32>, !ait.tensor<4 x 8 x f32>
}

// -----

ait.graph @norm_axes(%x: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<4 x 8 x f16>, %g: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.reduced_norm: axes is 3, expected 1 to 2 for shape [4, 8]}}
  %y, %s = ait.reduced_norm %x add %r scale %g axes 3 eps 1e-05 over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @norm_type(%x: !ait.tensor<4 x 8 x i32>, %r: !ait.tensor<4 x 8 x i32>, %g: !ait.tensor<8 x i32>) {
  // expected-error @below {{ait.reduced_norm: needs a floating-point type, got i32}}
  %y, %s = ait.reduced_norm %x add %r scale %g axes 1 eps 1e-05 over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x i32>, !ait.tensor<4 x 8 x i32>
}

// -----

ait.graph @norm_eps(%x: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<4 x 8 x f16>, %g: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.reduced_norm: eps must not be negative, got -1.0}}
  %y, %s = ait.reduced_norm %x add %r scale %g axes 1 eps -1.0 over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @norm_residual(%x: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<1 x 8 x f16>, %g: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.reduced_norm: the residual has shape [1, 8], expected [4, 8]}}
  %y, %s = ait.reduced_norm %x add %r scale %g axes 1 eps 1e-05 over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @norm_residual_type(%x: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<4 x 8 x f32>, %g: !ait.tensor<8 x f16>) {
  // expected-error @below {{ait.reduced_norm: the residual has element type f32, but the input has f16}}
  %y, %s = ait.reduced_norm %x add %r scale %g axes 1 eps 1e-05 over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @norm_scale(%x: !ait.tensor<4 x 8 x f16>, %r: !ait.tensor<4 x 8 x f16>, %g: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.reduced_norm: scale has shape [4], expected [8]}}
  %y, %s = ait.reduced_norm %x add %r scale %g axes 1 eps 1e-05 over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 8 x f16>, !ait.tensor<4 x 8 x f16>
}
