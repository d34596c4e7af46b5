// RUN: ait-opt %s -p group-embeddings | filecheck %s
// RUN: ait-opt %s -p group-embeddings --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// RUN: ait-opt %s -p 'group-embeddings{target="cpu"}' | filecheck %s --check-prefix=CPU
// RUN: ait-opt %s -p 'group-embeddings{target="cuda" arch="sm_90a"},select{target="cuda" arch="sm_90a"},bufferize,remove-copies,lower-copies,assign-streams,plan-memory,verify-plan' | filecheck %s --check-prefix=LAUNCH
// RUN: ait-opt %s -p 'group-embeddings{target="rocm" arch="gfx90a"},select{target="rocm" arch="gfx90a"},bufferize,remove-copies,lower-copies,assign-streams,plan-memory,verify-plan' | filecheck %s --check-prefix=LAUNCH

// Embeddings that do not wait for each other are one launch on a card.

// SEMANTICS: evaluations compared, no difference
// CPU-NOT: ait.grouped_embedding

// The tables of a recommender: the launch writes into the concatenation, and reads the columns of the ids where they lie.
// CHECK-LABEL: ait.graph @tables
// CHECK: %{{.*}}, %{{.*}}, %{{.*}} = ait.grouped_embedding %t, [[I:%.*]], %u, [[J:%.*]], %t, [[K:%.*]] :
// CHECK-NOT: ait.embedding
// LAUNCH-LABEL: ait_rt.program @tables
// LAUNCH: ait_rt.launch @grouped_embedding_{{[0-9]+}} ins(
// LAUNCH-NOT: ait_rt.launch
// LAUNCH: }
ait.graph @tables(%ids: !ait.tensor<b x 3 x i64>) dims {b = 1 to 64} {
  %t = ait.param "t" : !ait.tensor<100 x 16 x f16>
  %u = ait.param "u" : !ait.tensor<50 x 8 x f16>
  %0 = ait.slice %ids offsets [0, 0] : !ait.tensor<b x 1 x i64>
  %1 = ait.reshape %0 : !ait.tensor<b x i64>
  %2 = ait.embedding %t, %1 : !ait.tensor<b x 16 x f16>
  %3 = ait.slice %ids offsets [0, 1] : !ait.tensor<b x 1 x i64>
  %4 = ait.reshape %3 : !ait.tensor<b x i64>
  %5 = ait.embedding %u, %4 : !ait.tensor<b x 8 x f16>
  %6 = ait.slice %ids offsets [0, 2] : !ait.tensor<b x 1 x i64>
  %7 = ait.reshape %6 : !ait.tensor<b x i64>
  %8 = ait.embedding %t, %7 : !ait.tensor<b x 16 x f16>
  %9 = ait.concat %2, %5, %8 dim 1 : !ait.tensor<b x 40 x f16>
  ait.output "y" %9 : !ait.tensor<b x 40 x f16>
}

// Another element type, other ids, one that waits for another, and one with a kernel stay alone.
// CHECK-LABEL: ait.graph @apart
// CHECK-NOT: ait.grouped_embedding
// CHECK: ait.output
ait.graph @apart(%i: !ait.tensor<4 x i64>, %j: !ait.tensor<4 x i32>, %t: !ait.tensor<9 x 8 x f16>, %u: !ait.tensor<9 x 8 x f32>, %n: !ait.tensor<9 x 1 x i64>) {
  %0 = ait.embedding %t, %i : !ait.tensor<4 x 8 x f16>
  %1 = ait.embedding %t, %j : !ait.tensor<4 x 8 x f16>
  %2 = ait.embedding %u, %i : !ait.tensor<4 x 8 x f32>
  %3 = ait.embedding %n, %i : !ait.tensor<4 x 1 x i64>
  %4 = ait.reshape %3 : !ait.tensor<4 x i64>
  %5 = ait.embedding %t, %4 : !ait.tensor<4 x 8 x f16>
  %6 = ait.embedding %t, %i {kernel = #ait.kernel<"native", {}>} : !ait.tensor<4 x 8 x f16>
  ait.output "y0" %0 : !ait.tensor<4 x 8 x f16>
  ait.output "y1" %1 : !ait.tensor<4 x 8 x f16>
  ait.output "y2" %2 : !ait.tensor<4 x 8 x f32>
  ait.output "y5" %5 : !ait.tensor<4 x 8 x f16>
  ait.output "y6" %6 : !ait.tensor<4 x 8 x f16>
}
