// RUN: ait-opt %s -p partition --split-input-file --verify-diagnostics

// expected-error @below {{graph @no_mesh has shardings, and the module declares 0 meshes, expected one: sdy.mesh @mesh = <["tp"=2]>}}
ait.graph @no_mesh(%x: !ait.tensor<4 x f32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}]>}) {
  ait.output "y" %x : !ait.tensor<4 x f32>
}

// -----

sdy.mesh @a = <["tp"=2]>
sdy.mesh @b = <["tp"=2]>
// expected-error @below {{graph @meshes has shardings, and the module declares 2 meshes, expected one}}
ait.graph @meshes(%x: !ait.tensor<4 x f32> {sdy.sharding = #sdy.sharding<@a, [{"tp"}]>}) {
  ait.output "y" %x : !ait.tensor<4 x f32>
}

// -----

sdy.mesh @mesh = <["tp"=2]>
ait.graph @name(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{the sharding of param 'w' names the mesh @m, but the module declares @mesh}}
  %w = ait.param "w" {sdy.sharding = #sdy.sharding<@m, [{"tp"}]>} : !ait.tensor<4 x f32>
  %0 = ait.add %x, %w : !ait.tensor<4 x f32>
  ait.output "y" %0 : !ait.tensor<4 x f32>
}

// -----

sdy.mesh @mesh = <["tp"=2]>
ait.graph @axis(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{the sharding of param 'w' names axis 'dp', but the mesh is <["tp"=2]>}}
  %w = ait.param "w" {sdy.sharding = #sdy.sharding<@mesh, [{"dp"}]>} : !ait.tensor<4 x f32>
  %0 = ait.add %x, %w : !ait.tensor<4 x f32>
  ait.output "y" %0 : !ait.tensor<4 x f32>
}

// -----

sdy.mesh @mesh = <["tp"=2]>
ait.graph @dims(%x: !ait.tensor<4 x f32>) {
  %0 = ait.relu %x : !ait.tensor<4 x f32>
  // expected-error @below {{the sharding of output 'y' has 2 dims, but its shape is [4]}}
  ait.output "y" %0 {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>} : !ait.tensor<4 x f32>
}

// -----

sdy.mesh @mesh = <["tp"=4]>
ait.graph @divides(%x: !ait.tensor<6 x f32>) {
  // expected-error @below {{dim 0 of the result of ait.relu, 6, is not proved to be a multiple of 4, the number of ranks over tp; write it as a multiple, such as (2*n), or leave the dim whole}}
  %0 = ait.relu %x {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}]>} : !ait.tensor<6 x f32>
  ait.output "y" %0 : !ait.tensor<6 x f32>
}

// -----

sdy.mesh @mesh = <["tp"=2]>
// expected-error @below {{dim 0 of input 'x', b, is not proved to be a multiple of 2, the number of ranks over tp; write it as a multiple, such as (2*n), or leave the dim whole}}
ait.graph @input(%x: !ait.tensor<b x f32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}]>}) dims {b = 2 to 4} {
  ait.output "y" %x : !ait.tensor<b x f32>
}

// -----

sdy.mesh @mesh = <["tp"=2]>
ait.graph @kind(%x: !ait.tensor<4 x f32>) {
  // expected-error @below {{the result of ait.relu has sdy.sharding = "tp", expected a #sdy.sharding}}
  %0 = ait.relu %x {sdy.sharding = "tp"} : !ait.tensor<4 x f32>
  ait.output "y" %0 : !ait.tensor<4 x f32>
}

// -----

sdy.mesh @mesh = <["tp"=2]>
// expected-error @below {{input 'x' has a sharding and strides; leave out one of them}}
ait.graph @strides(%x: !ait.tensor<4 x f32> strides [2] {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}]>}) {
  ait.output "y" %x : !ait.tensor<4 x f32>
}

// -----

sdy.mesh @mesh = <["tp"=2]>
ait.graph @output_strides(%x: !ait.tensor<4 x f32>) {
  %0 = ait.relu %x : !ait.tensor<4 x f32>
  // expected-error @below {{output 'y' has a sharding and strides; leave out one of them}}
  ait.output "y" %0 strides [2] {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}]>} : !ait.tensor<4 x f32>
}

// -----

sdy.mesh @mesh = <["tp"=2]>
ait.graph @state(%c: !ait.tensor<4 x f32> donated) {
  %0 = ait.relu %c : !ait.tensor<4 x f32>
  // expected-error @below {{output 'c' has another sharding than the input whose place it takes}}
  ait.output "c" %0 in place of %c {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}]>} : !ait.tensor<4 x f32>
}

// -----

sdy.mesh @mesh = <["tp"=2]>
ait.graph @twice(%x: !ait.tensor<4 x f32>, %y: !ait.tensor<4 x f32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}]>}) {
  %w = ait.param "w" {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}]>} : !ait.tensor<4 x f32>
  // expected-error @below {{param 'w' is read twice, in two shardings; give both the same}}
  %v = ait.param "w" {sdy.sharding = #sdy.sharding<@mesh, [{}]>} : !ait.tensor<4 x f32>
  %0 = ait.add %x, %w : !ait.tensor<4 x f32>
  %1 = ait.add %0, %v : !ait.tensor<4 x f32>
  ait.output "y" %1 : !ait.tensor<4 x f32>
}
