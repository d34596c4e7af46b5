// RUN: ait-opt %s -p 'select{target="cpu"},bufferize,remove-copies' | filecheck %s
// RUN: ait-opt %s -p 'select{target="cpu"},bufferize,remove-copies,lower-copies,plan-memory,verify-plan' --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// A row written into a cache, and read with it: neither is copied.
// CHECK-LABEL: ait_rt.program @cache
ait.graph @cache(%k: !ait.tensor<2 x n x 4 x f32> donated, %r: !ait.tensor<2 x 1 x 4 x f32>, %p: !ait.tensor<i64>) dims {n = 1 to 9} {
  %new = ait.update_slice %k, %r at %p dim 1 : !ait.tensor<2 x n x 4 x f32>
  %t = ait.permute %new [1, 0, 2] : !ait.tensor<n x 2 x 4 x f32>
  %y = ait.relu %t : !ait.tensor<n x 2 x 4 x f32>
  // CHECK-NOT: ait_rt.copy
  // CHECK: ait_rt.launch @{{.*}} ins(%k, %r, %p) outs(%k)
  // CHECK-NOT: ait_rt.copy
  // CHECK: ait_rt.launch
  ait.output "k" %new in place of %k : !ait.tensor<2 x n x 4 x f32>
  ait.output "y" %y : !ait.tensor<n x 2 x 4 x f32>
}

// The old value is read before: by a view that is copied first, and by an output that stands before the update.
// CHECK-LABEL: ait_rt.program @read_before
ait.graph @read_before(%k: !ait.tensor<8 x 4 x f32> donated, %r: !ait.tensor<1 x 4 x f32>, %p: !ait.tensor<i64>) {
  ait.output "old" %k : !ait.tensor<8 x 4 x f32>
  %s = ait.softmax %k dim 1 : !ait.tensor<8 x 4 x f32>
  // CHECK: ait_rt.copy %k to %{{.*}}
  // CHECK: ait_rt.launch @softmax{{.*}} ins(%k)
  // CHECK: ait_rt.launch @update{{.*}} ins(%k, %r, %p) outs(%k)
  %new = ait.update_slice %k, %r at %p dim 0 : !ait.tensor<8 x 4 x f32>
  ait.output "k" %new in place of %k : !ait.tensor<8 x 4 x f32>
  ait.output "s" %s : !ait.tensor<8 x 4 x f32>
}

// Several updates of one cache, through views.
// CHECK-LABEL: ait_rt.program @chain
ait.graph @chain(%k: !ait.tensor<8 x 4 x f32> donated, %r: !ait.tensor<1 x 2 x 2 x f32>, %p: !ait.tensor<i64>) {
  %0 = ait.reshape %k : !ait.tensor<8 x 2 x 2 x f32>
  // CHECK: ait_rt.launch @update{{.*}} ins(%[[V:.*]], %r, %p) outs(%[[V]])
  %1 = ait.update_slice %0, %r at %p dim 0 : !ait.tensor<8 x 2 x 2 x f32>
  %2 = ait.update_slice %1, %r at %p dim 0 : !ait.tensor<8 x 2 x 2 x f32>
  // CHECK: ait_rt.launch @update{{.*}} ins(%[[W:.*]], %r, %p) outs(%[[W]])
  // CHECK-NOT: ait_rt.copy
  %3 = ait.reshape %2 : !ait.tensor<8 x 4 x f32>
  ait.output "k" %3 in place of %k : !ait.tensor<8 x 4 x f32>
}

// Without donation the tensor is copied to where the result goes, and updated there.
// CHECK-LABEL: ait_rt.program @pure
ait.graph @pure(%k: !ait.tensor<8 x 4 x f32>, %r: !ait.tensor<1 x 4 x f32>, %p: !ait.tensor<i64>) {
  %new = ait.update_slice %k, %r at %p dim 0 : !ait.tensor<8 x 4 x f32>
  // CHECK: ait_rt.copy %k to %[[Y:.*]]
  // CHECK-NEXT: ait_rt.launch @update{{.*}} ins(%[[Y]], %r, %p) outs(%[[Y]])
  ait.output "y" %new : !ait.tensor<8 x 4 x f32>
}

// What a launch has made is updated where it lies, unless it is needed again: as an output, or by another reader.
// CHECK-LABEL: ait_rt.program @made
ait.graph @made(%k: !ait.tensor<8 x 4 x f32>, %r: !ait.tensor<1 x 4 x f32>, %p: !ait.tensor<i64>) {
  %0 = ait.softmax %k dim 1 : !ait.tensor<8 x 4 x f32>
  %1 = ait.softmax %k dim 0 : !ait.tensor<8 x 4 x f32>
  // CHECK: ait_rt.launch @softmax{{.*}} ins(%k) outs(%[[MADE:.*]]) w
  // CHECK: ait_rt.launch @softmax{{.*}} ins(%k) outs(%[[KEPT:.*]]) w
  // CHECK: ait_rt.launch @update{{.*}} ins(%[[MADE]], %r, %p) outs(%[[MADE]])
  // CHECK-NEXT: ait_rt.copy %[[KEPT]] to %[[COPY:.*]]
  // CHECK-NEXT: ait_rt.launch @update{{.*}} ins(%[[COPY]], %r, %p) outs(%[[COPY]])
  %2 = ait.update_slice %0, %r at %p dim 0 : !ait.tensor<8 x 4 x f32>
  %3 = ait.update_slice %1, %r at %p dim 0 : !ait.tensor<8 x 4 x f32>
  %4 = ait.relu %1 : !ait.tensor<8 x 4 x f32>
  ait.output "y" %2 : !ait.tensor<8 x 4 x f32>
  ait.output "z" %3 : !ait.tensor<8 x 4 x f32>
  ait.output "w" %4 : !ait.tensor<8 x 4 x f32>
}

// Running statistics: each element is computed from the old one at its place alone.
// CHECK-LABEL: ait_rt.program @running
ait.graph @running(%mean: !ait.tensor<4 x f32> donated, %x: !ait.tensor<8 x 4 x f32>) {
  %0 = ait.reduce mean %x dims [0] : !ait.tensor<4 x f32>
  // CHECK: ait_rt.launch @add{{.*}} ins(%mean, %{{.*}}) outs(%mean)
  %1 = ait.add %mean, %0 : !ait.tensor<4 x f32>
  ait.output "mean" %1 in place of %mean : !ait.tensor<4 x f32>
}

// The result of any launch, once nothing reads the old value.
// CHECK-LABEL: ait_rt.program @replaced
ait.graph @replaced(%s: !ait.tensor<4 x 4 x f32> donated) {
  %0 = ait.exp %s : !ait.tensor<4 x 4 x f32>
  // CHECK: ait_rt.launch @softmax{{.*}} ins(%{{.*}}) outs(%s)
  %1 = ait.softmax %0 dim 1 : !ait.tensor<4 x 4 x f32>
  ait.output "s" %1 in place of %s : !ait.tensor<4 x 4 x f32>
}

// Not written at all, and copies that are allowed: two inputs that change places, a transposition in place.
// CHECK-LABEL: ait_rt.program @swapped
ait.graph @swapped(%a: !ait.tensor<4 x 4 x f32> donated, %b: !ait.tensor<4 x 4 x f32> donated, %c: !ait.tensor<4 x 4 x f32> donated, %d: !ait.tensor<4 x 4 x f32> donated) {
  %0 = ait.permute %d [1, 0] : !ait.tensor<4 x 4 x f32>
  // CHECK: ait_rt.copy %a to %[[A:.*]]
  // CHECK: ait_rt.copy %{{.*}} to %[[D:.*]]
  // CHECK-NEXT: ait_rt.copy %b to %a
  // CHECK-NEXT: ait_rt.copy %[[A]] to %b
  // CHECK-NEXT: ait_rt.copy %[[D]] to %d
  ait.output "a" %b in place of %a or copy : !ait.tensor<4 x 4 x f32>
  ait.output "b" %a in place of %b or copy : !ait.tensor<4 x 4 x f32>
  ait.output "c" %c in place of %c : !ait.tensor<4 x 4 x f32>
  ait.output "d" %0 in place of %d or copy : !ait.tensor<4 x 4 x f32>
}

// A copy that is allowed stays at the end, where nothing reads the old value any more: no kernel writes there before.
// CHECK-LABEL: ait_rt.program @late
ait.graph @late(%s: !ait.tensor<4 x 4 x f32> donated) {
  %0 = ait.softmax %s dim 1 : !ait.tensor<4 x 4 x f32>
  %1 = ait.softmax %s dim 0 : !ait.tensor<4 x 4 x f32>
  // CHECK-COUNT-2: ait_rt.launch @softmax{{.*}} ins(%s)
  // CHECK: ait_rt.copy %{{.*}} to %s
  ait.output "s" %0 in place of %s or copy : !ait.tensor<4 x 4 x f32>
  ait.output "t" %1 : !ait.tensor<4 x 4 x f32>
}

// What repeats a computed tensor is copied before it is updated: its elements share memory.
// CHECK-LABEL: ait_rt.program @repeated
ait.graph @repeated(%k: !ait.tensor<8 x 4 x f32>, %r: !ait.tensor<1 x 8 x 4 x f32>, %p: !ait.tensor<i64>) {
  %0 = ait.softmax %k dim 1 : !ait.tensor<8 x 4 x f32>
  %1 = ait.expand %0 : !ait.tensor<3 x 8 x 4 x f32>
  // CHECK: ait_rt.launch @softmax{{.*}} ins(%k) outs(%[[MADE:.*]]) w
  // CHECK: %[[V:.*]] = ait_rt.view %[[MADE]] offset (0) strides [0, 4, 1]
  // CHECK: ait_rt.copy %[[V]] to %[[Y:.*]]
  // CHECK: ait_rt.launch @update{{.*}} ins(%[[Y]], %r, %p) outs(%[[Y]])
  %new = ait.update_slice %1, %r at %p dim 0 : !ait.tensor<3 x 8 x 4 x f32>
  ait.output "y" %new : !ait.tensor<3 x 8 x 4 x f32>
}
