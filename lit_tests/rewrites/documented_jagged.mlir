// RUN: ait-opt %s -p dedup-make-jagged-ops,make-inputs-jagged | filecheck %s
// RUN: ait-opt %s -p dedup-make-jagged-ops,make-inputs-jagged --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
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

// Views of one total in several places become one of each input with so many rows; what is computed of these is jagged, too.
// CHECK-LABEL: ait.graph @places
ait.graph @places(%x: !ait.tensor<total x 4 x f32>, %y: !ait.tensor<total x 4 x f32>, %z: !ait.tensor<total x 2 x f32>, %o: !ait.tensor<(batch + 1) x i32>, %w: !ait.tensor<4 x 2 x f32>)
  dims {total = 0 to 640, batch = 1 to 8, words = jagged(total, batch, 0 to 80)} {
  // CHECK-NEXT: [[X:%.*]] = ait.make_jagged %x offsets(%o) : !ait.tensor<words x 4 x f32>
  // CHECK-NEXT: [[Y:%.*]] = ait.make_jagged %y offsets(%o) : !ait.tensor<words x 4 x f32>
  // CHECK-NEXT: [[Z:%.*]] = ait.make_jagged %z offsets(%o) : !ait.tensor<words x 2 x f32>
  // CHECK-NEXT: [[A:%.*]] = ait.gemm rrr [[X]], %w : !ait.tensor<words x 2 x f32>
  // CHECK-NEXT: [[B:%.*]] = ait.gemm rrr [[Y]], %w : !ait.tensor<words x 2 x f32>
  // CHECK-NEXT: [[C:%.*]] = ait.add [[A]], [[B]] : !ait.tensor<words x 2 x f32>
  // CHECK-NEXT: [[D:%.*]] = ait.tanh [[Z]] : !ait.tensor<words x 2 x f32>
  // CHECK-NEXT: ait.output "c" [[C]]
  // CHECK-NEXT: ait.output "d" [[D]]
  %0 = ait.gemm rrr %x, %w : !ait.tensor<total x 2 x f32>
  %1 = ait.make_jagged %0 offsets(%o) : !ait.tensor<words x 2 x f32>
  %2 = ait.make_jagged %y offsets(%o) : !ait.tensor<words x 4 x f32>
  %3 = ait.gemm rrr %2, %w : !ait.tensor<words x 2 x f32>
  %4 = ait.add %1, %3 : !ait.tensor<words x 2 x f32>
  %5 = ait.tanh %z : !ait.tensor<total x 2 x f32>
  ait.output "c" %4 : !ait.tensor<words x 2 x f32>
  ait.output "d" %5 : !ait.tensor<total x 2 x f32>
}

// One view alone; a view from an input to an output; no input with so many rows; offsets that are computed; rows that another op
// counts; views of all inputs already.
// CHECK-LABEL: ait.graph @alone
ait.graph @alone(%x: !ait.tensor<total x 4 x f32>, %o: !ait.tensor<(batch + 1) x i32>)
  dims {total = 0 to 640, batch = 1 to 8, words = jagged(total, batch, 0 to 80)} {
  // CHECK-NEXT: ait.tanh %x
  // CHECK-NEXT: ait.make_jagged
  %0 = ait.tanh %x : !ait.tensor<total x 4 x f32>
  %1 = ait.make_jagged %0 offsets(%o) : !ait.tensor<words x 4 x f32>
  ait.output "y" %1 : !ait.tensor<words x 4 x f32>
}

// CHECK-LABEL: ait.graph @ends
ait.graph @ends(%x: !ait.tensor<total x 4 x f32>, %o: !ait.tensor<(batch + 1) x i32>)
  dims {total = 0 to 640, batch = 1 to 8, words = jagged(total, batch, 0 to 80)} {
  // CHECK-NEXT: ait.tanh %x
  // CHECK-NEXT: ait.make_jagged
  // CHECK-NEXT: ait.make_jagged %x
  %0 = ait.tanh %x : !ait.tensor<total x 4 x f32>
  %1 = ait.make_jagged %0 offsets(%o) : !ait.tensor<words x 4 x f32>
  %2 = ait.make_jagged %x offsets(%o) : !ait.tensor<words x 4 x f32>
  ait.output "y" %1 : !ait.tensor<words x 4 x f32>
  ait.output "x" %2 : !ait.tensor<words x 4 x f32>
}

// CHECK-LABEL: ait.graph @no_input
ait.graph @no_input(%x: !ait.tensor<1 x total x f32>, %o: !ait.tensor<(batch + 1) x i32>)
  dims {total = 0 to 640, batch = 1 to 8, words = jagged(total, batch, 0 to 80)} {
  // CHECK-COUNT-2: ait.reshape
  // CHECK-COUNT-2: ait.make_jagged
  %0 = ait.reshape %x : !ait.tensor<total x 1 x f32>
  %1 = ait.reshape %x : !ait.tensor<total x f32>
  %2 = ait.make_jagged %0 offsets(%o) : !ait.tensor<words x 1 x f32>
  %3 = ait.make_jagged %1 offsets(%o) : !ait.tensor<words x f32>
  ait.output "y" %2 : !ait.tensor<words x 1 x f32>
  ait.output "z" %3 : !ait.tensor<words x f32>
}

// CHECK-LABEL: ait.graph @computed
ait.graph @computed(%x: !ait.tensor<total x 4 x f32>, %l: !ait.tensor<(batch + 1) x i64>)
  dims {total = 0 to 640, batch = 1 to 8, words = jagged(total, batch, 0 to 80)} {
  // CHECK: ait.tanh %x
  // CHECK-NEXT: ait.make_jagged
  // CHECK-NEXT: ait.make_jagged %x
  %o = ait.cast %l : !ait.tensor<(batch + 1) x i32>
  %0 = ait.tanh %x : !ait.tensor<total x 4 x f32>
  %1 = ait.make_jagged %0 offsets(%o) : !ait.tensor<words x 4 x f32>
  %2 = ait.make_jagged %x offsets(%o) : !ait.tensor<words x 4 x f32>
  %3 = ait.add %1, %2 : !ait.tensor<words x 4 x f32>
  ait.output "y" %3 : !ait.tensor<words x 4 x f32>
}

// CHECK-LABEL: ait.graph @counted
ait.graph @counted(%x: !ait.tensor<total x 4 x f32>, %o: !ait.tensor<(batch + 1) x i32>)
  dims {total = 0 to 640, batch = 1 to 8, words = jagged(total, batch, 0 to 80)} {
  // CHECK: ait.reshape {{.*}} : !ait.tensor<(2*total) x 2 x f32>
  // CHECK-COUNT-2: ait.make_jagged
  %0 = ait.tanh %x : !ait.tensor<total x 4 x f32>
  %1 = ait.reshape %0 : !ait.tensor<(2*total) x 2 x f32>
  %2 = ait.make_jagged %0 offsets(%o) : !ait.tensor<words x 4 x f32>
  %3 = ait.make_jagged %x offsets(%o) : !ait.tensor<words x 4 x f32>
  %4 = ait.add %2, %3 : !ait.tensor<words x 4 x f32>
  ait.output "y" %4 : !ait.tensor<words x 4 x f32>
  ait.output "z" %1 : !ait.tensor<(2*total) x 2 x f32>
}
