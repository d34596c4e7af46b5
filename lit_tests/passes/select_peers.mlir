// RUN: ait-opt %s -p 'select{target="cuda" arch="sm_90a"}' | filecheck %s
// RUN: ait-opt %s -p 'select{target="cuda" arch="sm_90a" peer-memory=false}' | filecheck %s --check-prefix=NCCL --check-prefix=OFF
// RUN: ait-opt %s -p 'select{target="rocm" arch="gfx90a"}' | filecheck %s --check-prefix=NCCL

// Cards write into each other's memory where a tensor fits. Groups of one member and of more than eight use NCCL, as other
// collectives do.
// CHECK-NOT: ait.peer_memory
// OFF: module attributes {{.*}}ait.peer_memory = false
// CHECK-LABEL: ait.graph @pair
// CHECK: ait.all_reduce sum %x {{.*}}kernel = #ait.kernel<"peers"
// CHECK: ait.all_reduce max %x {{.*}}kernel = #ait.kernel<"peers"
// CHECK: ait.all_gather {{.*}}kernel = #ait.kernel<"nccl"
// CHECK-LABEL: ait.graph @large
// CHECK: kernel = #ait.kernel<"nccl"
// CHECK-LABEL: ait.graph @many
// CHECK: kernel = #ait.kernel<"nccl"
// CHECK-LABEL: ait.graph @alone
// CHECK: kernel = #ait.kernel<"nccl"
// NCCL-NOT: "peers"
ait.graph @pair(%x: !ait.tensor<4 x 4096 x f16>) ranks {mesh = #sdy.mesh<["tp"=2]>} {
  %0 = ait.all_reduce sum %x over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 4096 x f16>
  %1 = ait.all_reduce max %x over ["tp"] of <["tp"=2]> : !ait.tensor<4 x 4096 x f16>
  %2 = ait.all_gather %1 dim 0 over ["tp"] of <["tp"=2]> : !ait.tensor<8 x 4096 x f16>
  ait.output "y" %0 : !ait.tensor<4 x 4096 x f16>
  ait.output "z" %2 : !ait.tensor<8 x 4096 x f16>
}
ait.graph @large(%x: !ait.tensor<4096 x 4096 x f16>) ranks {mesh = #sdy.mesh<["tp"=2]>} {
  %0 = ait.all_reduce sum %x over ["tp"] of <["tp"=2]> : !ait.tensor<4096 x 4096 x f16>
  ait.output "y" %0 : !ait.tensor<4096 x 4096 x f16>
}
ait.graph @many(%x: !ait.tensor<4096 x f16>) ranks {mesh = #sdy.mesh<["tp"=16]>} {
  %0 = ait.all_reduce sum %x over ["tp"] of <["tp"=16]> : !ait.tensor<4096 x f16>
  ait.output "y" %0 : !ait.tensor<4096 x f16>
}
ait.graph @alone(%x: !ait.tensor<4096 x f16>) ranks {mesh = #sdy.mesh<["dp"=2, "tp"=1]>} {
  %0 = ait.all_reduce sum %x over ["tp"] of <["dp"=2, "tp"=1]> : !ait.tensor<4096 x f16>
  ait.output "y" %0 : !ait.tensor<4096 x f16>
}
