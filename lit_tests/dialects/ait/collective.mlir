// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: ait-opt %s -p remove-duplicates,simplify --check-semantics | filecheck %s --check-prefix=ONCE

// CHECK: sdy.mesh @mesh = <["dp"=2, "tp"=2]>
// GENERIC: "sdy.mesh"() <{sym_name = "mesh", mesh = #sdy.mesh<["dp"=2, "tp"=2]>}> : () -> ()
sdy.mesh @mesh = <["dp"=2, "tp"=2]>

// CHECK: ait.graph @all(%x: !ait.tensor<(4*b) x 8 x f32>) dims {b = 0 to 4} ranks {mesh = #sdy.mesh<["dp"=2, "tp"=2]>, inputs = {x = #sdy.sharding<@mesh, [{}, {"dp"}]>}, outputs = {y = #sdy.sharding<@mesh, [{}, {"tp", "dp"}]>}} {
ait.graph @all(%x: !ait.tensor<(4*b) x 8 x f32>) dims {b = 0 to 4}
    ranks {mesh = #sdy.mesh<["dp"=2, "tp"=2]>, inputs = {x = #sdy.sharding<@mesh, [{}, {"dp"}]>},
           outputs = {y = #sdy.sharding<@mesh, [{}, {"tp", "dp"}]>}} {
  // CHECK-NEXT: ait.all_reduce sum %x over ["tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<(4*b) x 8 x f32>
  // GENERIC: "ait.all_reduce"(%x) <{kind = "sum", axes = ["tp"], mesh = #sdy.mesh<["dp"=2, "tp"=2]>}>
  %0 = ait.all_reduce sum %x over ["tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<(4*b) x 8 x f32>
  // CHECK-NEXT: ait.all_gather %0 dim 1 over ["tp", "dp"] of <["dp"=2, "tp"=2]> : !ait.tensor<(4*b) x 32 x f32>
  %1 = ait.all_gather %0 dim 1 over ["tp", "dp"] of <["dp"=2, "tp"=2]> : !ait.tensor<(4*b) x 32 x f32>
  // CHECK-NEXT: ait.all_slice %1 dim 0 over ["tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<(2*b) x 32 x f32>
  %2 = ait.all_slice %1 dim 0 over ["tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<(2*b) x 32 x f32>
  // CHECK-NEXT: ait.all_to_all %2 split 0 concat 1 over ["dp"] of <["dp"=2, "tp"=2]> : !ait.tensor<b x 64 x f32>
  %3 = ait.all_to_all %2 split 0 concat 1 over ["dp"] of <["dp"=2, "tp"=2]> : !ait.tensor<b x 64 x f32>
  // CHECK-NEXT: ait.broadcast %3 root 1 over ["dp"] of <["dp"=2, "tp"=2]> : !ait.tensor<b x 64 x f32>
  %4 = ait.broadcast %3 root 1 over ["dp"] of <["dp"=2, "tp"=2]> : !ait.tensor<b x 64 x f32>
  // CHECK-NEXT: ait.reduce_scatter max %4 dim 1 over ["dp", "tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<b x 16 x f32>
  %5 = ait.reduce_scatter max %4 dim 1 over ["dp", "tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<b x 16 x f32>
  ait.output "y" %5 : !ait.tensor<b x 16 x f32>
}

// An elementwise op does not cross a sum over ranks, a product has no collective in its epilogue, and equal collectives
// are one.
// CHECK: ait.graph @fusion(%x: !ait.tensor<4 x 8 x f32> {sdy.sharding = #sdy.sharding<@mesh, [{"dp", ?}, {?}]>}) {
// ONCE: ait.graph @fusion
ait.graph @fusion(%x: !ait.tensor<4 x 8 x f32> {sdy.sharding = #sdy.sharding<@mesh, [{"dp", ?}, {?}]>}) {
  // CHECK-NEXT: ait.param "w" {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tp"}]>} : !ait.tensor<8 x 8 x f32>
  %w = ait.param "w" {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tp"}]>} : !ait.tensor<8 x 8 x f32>
  // ONCE: %[[P:.*]] = ait.gemm rcr %x, %w :
  %0 = ait.gemm rcr %x, %w : !ait.tensor<4 x 8 x f32>
  // ONCE-NEXT: %[[R:.*]] = ait.all_reduce sum %[[P]] over ["tp"]
  // ONCE-NOT: all_reduce
  %1 = ait.all_reduce sum %0 over ["tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<4 x 8 x f32>
  %2 = ait.all_reduce sum %0 over ["tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<4 x 8 x f32>
  %3 = ait.relu %1 : !ait.tensor<4 x 8 x f32>
  %4 = ait.add %3, %2 : !ait.tensor<4 x 8 x f32>
  ait.output "y" %4 : !ait.tensor<4 x 8 x f32>
}

// CHECK-LABEL: ait.graph @ring
ait.graph @ring(%x: !ait.tensor<b x 8 x i1>) dims {b = 0 to 4} ranks {mesh = #sdy.mesh<["dp"=2, "tp"=2]>,
    inputs = {x = #sdy.sharding<@mesh, [{"dp", "tp"}, {}]>}, outputs = {y = #sdy.sharding<@mesh, [{"dp", "tp"}, {}]>}} {
  // CHECK: ait.collective_permute %x [0 -> 1, 1 -> 2, 3 -> 3] over ["dp", "tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<b x 8 x i1>
  // GENERIC: "ait.collective_permute"(%x) <{pairs = {{\[\[}}0 : i64, 1 : i64], [1 : i64, 2 : i64], [3 : i64, 3 : i64]], axes = ["dp", "tp"], mesh = #sdy.mesh<["dp"=2, "tp"=2]>}>
  %0 = ait.collective_permute %x [0 -> 1, 1 -> 2, 3 -> 3] over ["dp", "tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<b x 8 x i1>
  // CHECK-NEXT: ait.collective_permute %0 [1 -> 0] over ["tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<b x 8 x i1>
  %1 = ait.collective_permute %0 [1 -> 0] over ["tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<b x 8 x i1>
  ait.output "y" %1 : !ait.tensor<b x 8 x i1>
}

// CHECK-LABEL: ait.graph @norms
ait.graph @norms(%x: !ait.tensor<b x 8 x f16>, %r: !ait.tensor<b x 8 x f16>) dims {b = 0 to 4} ranks {mesh = #sdy.mesh<["dp"=2, "tp"=2]>} {
  %g = ait.param "g" : !ait.tensor<8 x f16>
  // CHECK: %y, %s = ait.reduced_norm %x add %r scale %g bias %g axes 1 eps 1e-05 centred over ["tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f16>
  %y, %s = ait.reduced_norm %x add %r scale %g bias %g axes 1 eps 1e-05 centred over ["tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f16>
  // CHECK-NEXT: %z, %t = ait.reduced_norm %y add %s axes 2 eps 0.0 over ["dp", "tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f16>
  %z, %t = ait.reduced_norm %y add %s axes 2 eps 0.0 over ["dp", "tp"] of <["dp"=2, "tp"=2]> : !ait.tensor<b x 8 x f16>, !ait.tensor<b x 8 x f16>
  ait.output "z" %z : !ait.tensor<b x 8 x f16>
  ait.output "t" %t : !ait.tensor<b x 8 x f16>
}
