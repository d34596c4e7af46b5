// RUN: ait-opt %s -p dedup-make-jagged-ops | filecheck %s
// RUN: ait-opt %s -p dedup-make-jagged-ops --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// One view for two of one tensor; other offsets and another tensor have their own.
// CHECK-LABEL: ait.graph @views
ait.graph @views(%x: !ait.tensor<total x 4 x f32>, %z: !ait.tensor<total x 4 x f32>, %o: !ait.tensor<(batch + 1) x i32>, %p: !ait.tensor<(batch + 1) x i32>)
  dims {total = 0 to 640, batch = 1 to 8, words = jagged(total, batch, 0 to 80), marks = jagged(total, batch, 0 to 80)} {
  // CHECK-NEXT: [[X:%.*]] = ait.make_jagged %x offsets(%o)
  // CHECK-NEXT: ait.relu [[X]]
  // CHECK-NEXT: [[Z:%.*]] = ait.make_jagged %z offsets(%o)
  // CHECK-NEXT: [[M:%.*]] = ait.make_jagged %x offsets(%p)
  // CHECK-NEXT: ait.tanh [[X]]
  // CHECK-NEXT: ait.tanh [[Z]]
  // CHECK-NEXT: ait.tanh [[M]]
  %0 = ait.make_jagged %x offsets(%o) : !ait.tensor<words x 4 x f32>
  %1 = ait.relu %0 : !ait.tensor<words x 4 x f32>
  %2 = ait.make_jagged %x offsets(%o) : !ait.tensor<words x 4 x f32>
  %3 = ait.make_jagged %z offsets(%o) : !ait.tensor<words x 4 x f32>
  %4 = ait.make_jagged %x offsets(%p) : !ait.tensor<marks x 4 x f32>
  %5 = ait.tanh %2 : !ait.tensor<words x 4 x f32>
  %6 = ait.tanh %3 : !ait.tensor<words x 4 x f32>
  %7 = ait.tanh %4 : !ait.tensor<marks x 4 x f32>
  ait.output "y1" %1 : !ait.tensor<words x 4 x f32>
  ait.output "y5" %5 : !ait.tensor<words x 4 x f32>
  ait.output "y6" %6 : !ait.tensor<words x 4 x f32>
  ait.output "y7" %7 : !ait.tensor<marks x 4 x f32>
}
