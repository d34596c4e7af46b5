// RUN: ait-opt %s -p fuse-elementwise,fuse-siblings | filecheck %s
// RUN: ait-opt %s -p fuse-elementwise,fuse-siblings --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// ** What computes the same of neighbouring parts is one **

// Query and key, with four heads and two.
// CHECK-LABEL: ait.graph @rotations
// CHECK: [[QK:%.*]] = ait.slice %x offsets [0, 0, 0] : !ait.tensor<b x 5 x 96 x f16>
// CHECK: [[HEADS:%.*]] = ait.reshape [[QK]] : !ait.tensor<b x 5 x 6 x 16 x f16>
// CHECK: [[A:%.*]] = ait.slice [[HEADS]] offsets [0, 0, 0, 0] : !ait.tensor<b x 5 x 6 x 8 x f16>
// CHECK: [[B:%.*]] = ait.slice {{.*}} offsets [0, 0, 0, 8] : !ait.tensor<b x 5 x 6 x 8 x f16>
// CHECK: [[R:%.*]], [[I:%.*]] = ait.fused_elementwise([[A]], %c, [[B]], %s)
// CHECK: } : !ait.tensor<b x 5 x 6 x 8 x f16>, !ait.tensor<b x 5 x 6 x 8 x f16>
// CHECK-NEXT: [[BOTH:%.*]] = ait.concat [[R]], [[I]] dim 3 : !ait.tensor<b x 5 x 6 x 16 x f16>
// CHECK-NEXT: [[Q:%.*]], [[K:%.*]] = ait.split [[BOTH]] dim 2
// CHECK-NOT: ait.fused_elementwise
// CHECK-DAG: ait.softmax [[Q]]
// CHECK-DAG: ait.softmax [[K]]
ait.graph @rotations(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<5 x 1 x 8 x f16>, %s: !ait.tensor<5 x 1 x 8 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qa, %qb = ait.split %q1 dim 3 : !ait.tensor<b x 5 x 4 x 8 x f16>, !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr0 = ait.mul %qa, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr1 = ait.mul %qb, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr2 = ait.sub %qr0, %qr1 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr3 = ait.mul %qb, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr4 = ait.mul %qa, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr5 = ait.add %qr3, %qr4 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %q = ait.concat %qr2, %qr5 dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ka, %kb = ait.split %k1 dim 3 : !ait.tensor<b x 5 x 2 x 8 x f16>, !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr0 = ait.mul %ka, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr1 = ait.mul %kb, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr2 = ait.sub %kr0, %kr1 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr3 = ait.mul %kb, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr4 = ait.mul %ka, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr5 = ait.add %kr3, %kr4 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %k = ait.concat %kr2, %kr5 dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %y = ait.softmax %q dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %z = ait.softmax %k dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "v" %v : !ait.tensor<b x 5 x 32 x f16>
}

// Seen through a permutation and slices; read as they are.
// CHECK-LABEL: ait.graph @transposed
// CHECK: ait.permute {{.*}} [0, 2, 1, 3] : !ait.tensor<b x 6 x 5 x 16 x f16>
// CHECK: [[BOTH:%.*]] = ait.fused_elementwise
// CHECK: } : !ait.tensor<b x 6 x 5 x 8 x f16>
// CHECK-NEXT: ait.split [[BOTH]] dim 1 : !ait.tensor<b x 4 x 5 x 8 x f16>, !ait.tensor<b x 2 x 5 x 8 x f16>
// CHECK-NOT: ait.fused_elementwise
ait.graph @transposed(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<5 x 8 x f16>, %s: !ait.tensor<5 x 8 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %q2 = ait.permute %q1 [0, 2, 1, 3] : !ait.tensor<b x 4 x 5 x 16 x f16>
  %k2 = ait.permute %k1 [0, 2, 1, 3] : !ait.tensor<b x 2 x 5 x 16 x f16>
  %qa = ait.slice %q2 offsets [0, 0, 0, 0] : !ait.tensor<b x 4 x 5 x 8 x f16>
  %qb = ait.slice %q2 offsets [0, 0, 0, 8] : !ait.tensor<b x 4 x 5 x 8 x f16>
  %qr = ait.mul %qa, %c : !ait.tensor<b x 4 x 5 x 8 x f16>
  %qi = ait.mul %qb, %s : !ait.tensor<b x 4 x 5 x 8 x f16>
  %qy = ait.add %qr, %qi : !ait.tensor<b x 4 x 5 x 8 x f16>
  %ka = ait.slice %k2 offsets [0, 0, 0, 0] : !ait.tensor<b x 2 x 5 x 8 x f16>
  %kb = ait.slice %k2 offsets [0, 0, 0, 8] : !ait.tensor<b x 2 x 5 x 8 x f16>
  %kr = ait.mul %ka, %c : !ait.tensor<b x 2 x 5 x 8 x f16>
  %ki = ait.mul %kb, %s : !ait.tensor<b x 2 x 5 x 8 x f16>
  %ky = ait.add %kr, %ki : !ait.tensor<b x 2 x 5 x 8 x f16>
  %y = ait.softmax %qy dim 3 : !ait.tensor<b x 4 x 5 x 8 x f16>
  %z = ait.softmax %ky dim 3 : !ait.tensor<b x 2 x 5 x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x 4 x 5 x 8 x f16>
  ait.output "z" %z : !ait.tensor<b x 2 x 5 x 8 x f16>
}

// ** What must stay **

// The second rotates the other way.
// CHECK-LABEL: ait.graph @another_function
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @another_function(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<5 x 1 x 8 x f16>, %s: !ait.tensor<5 x 1 x 8 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qa, %qb = ait.split %q1 dim 3 : !ait.tensor<b x 5 x 4 x 8 x f16>, !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr0 = ait.mul %qa, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr1 = ait.mul %qb, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr2 = ait.sub %qr0, %qr1 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr3 = ait.mul %qb, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr4 = ait.mul %qa, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr5 = ait.add %qr3, %qr4 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %q = ait.concat %qr2, %qr5 dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ka, %kb = ait.split %k1 dim 3 : !ait.tensor<b x 5 x 2 x 8 x f16>, !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr0 = ait.mul %ka, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr1 = ait.mul %kb, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr2 = ait.sub %kr0, %kr1 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr3 = ait.mul %kb, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr4 = ait.mul %ka, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr5 = ait.sub %kr3, %kr4 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %k = ait.concat %kr2, %kr5 dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %y = ait.softmax %q dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %z = ait.softmax %k dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "v" %v : !ait.tensor<b x 5 x 32 x f16>
}

// Other angles for the key.
// CHECK-LABEL: ait.graph @another_table
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @another_table(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<5 x 1 x 8 x f16>, %s: !ait.tensor<5 x 1 x 8 x f16>, %c2: !ait.tensor<5 x 1 x 8 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qa, %qb = ait.split %q1 dim 3 : !ait.tensor<b x 5 x 4 x 8 x f16>, !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr0 = ait.mul %qa, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr1 = ait.mul %qb, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr2 = ait.sub %qr0, %qr1 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr3 = ait.mul %qb, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr4 = ait.mul %qa, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr5 = ait.add %qr3, %qr4 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %q = ait.concat %qr2, %qr5 dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ka, %kb = ait.split %k1 dim 3 : !ait.tensor<b x 5 x 2 x 8 x f16>, !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr0 = ait.mul %ka, %c2 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr1 = ait.mul %kb, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr2 = ait.sub %kr0, %kr1 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr3 = ait.mul %kb, %c2 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr4 = ait.mul %ka, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr5 = ait.add %kr3, %kr4 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %k = ait.concat %kr2, %kr5 dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %y = ait.softmax %q dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %z = ait.softmax %k dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "v" %v : !ait.tensor<b x 5 x 32 x f16>
}

// The key does not lie behind the query, but behind the value.
// CHECK-LABEL: ait.graph @not_neighbours
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @not_neighbours(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<5 x 1 x 8 x f16>, %s: !ait.tensor<5 x 1 x 8 x f16>) dims {b = 1 to 3} {
  %q0, %v, %k0 = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qa, %qb = ait.split %q1 dim 3 : !ait.tensor<b x 5 x 4 x 8 x f16>, !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr0 = ait.mul %qa, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr1 = ait.mul %qb, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr2 = ait.sub %qr0, %qr1 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr3 = ait.mul %qb, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr4 = ait.mul %qa, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr5 = ait.add %qr3, %qr4 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %q = ait.concat %qr2, %qr5 dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ka, %kb = ait.split %k1 dim 3 : !ait.tensor<b x 5 x 2 x 8 x f16>, !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr0 = ait.mul %ka, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr1 = ait.mul %kb, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr2 = ait.sub %kr0, %kr1 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr3 = ait.mul %kb, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr4 = ait.mul %ka, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr5 = ait.add %kr3, %kr4 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %k = ait.concat %kr2, %kr5 dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %y = ait.softmax %q dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %z = ait.softmax %k dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "v" %v : !ait.tensor<b x 5 x 32 x f16>
}

// The key lies in front of the query.
// CHECK-LABEL: ait.graph @key_in_front
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @key_in_front(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<5 x 1 x 8 x f16>, %s: !ait.tensor<5 x 1 x 8 x f16>) dims {b = 1 to 3} {
  %k0, %q0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qa, %qb = ait.split %q1 dim 3 : !ait.tensor<b x 5 x 4 x 8 x f16>, !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr0 = ait.mul %qa, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr1 = ait.mul %qb, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr2 = ait.sub %qr0, %qr1 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr3 = ait.mul %qb, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr4 = ait.mul %qa, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr5 = ait.add %qr3, %qr4 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %q = ait.concat %qr2, %qr5 dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ka, %kb = ait.split %k1 dim 3 : !ait.tensor<b x 5 x 2 x 8 x f16>, !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr0 = ait.mul %ka, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr1 = ait.mul %kb, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr2 = ait.sub %kr0, %kr1 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr3 = ait.mul %kb, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr4 = ait.mul %ka, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr5 = ait.add %kr3, %kr4 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %k = ait.concat %kr2, %kr5 dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %y = ait.softmax %q dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %z = ait.softmax %k dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "v" %v : !ait.tensor<b x 5 x 32 x f16>
}

// Parts of two tensors.
// CHECK-LABEL: ait.graph @of_two_tensors
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @of_two_tensors(%x: !ait.tensor<b x 5 x 128 x f16>, %x2: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<5 x 1 x 8 x f16>, %s: !ait.tensor<5 x 1 x 8 x f16>) dims {b = 1 to 3} {
  %q0, %k3, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q3, %k0, %v3 = ait.split %x2 dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qa, %qb = ait.split %q1 dim 3 : !ait.tensor<b x 5 x 4 x 8 x f16>, !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr0 = ait.mul %qa, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr1 = ait.mul %qb, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr2 = ait.sub %qr0, %qr1 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr3 = ait.mul %qb, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr4 = ait.mul %qa, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr5 = ait.add %qr3, %qr4 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %q = ait.concat %qr2, %qr5 dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ka, %kb = ait.split %k1 dim 3 : !ait.tensor<b x 5 x 2 x 8 x f16>, !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr0 = ait.mul %ka, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr1 = ait.mul %kb, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr2 = ait.sub %kr0, %kr1 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr3 = ait.mul %kb, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr4 = ait.mul %ka, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr5 = ait.add %kr3, %kr4 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %k = ait.concat %kr2, %kr5 dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %y = ait.softmax %q dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %z = ait.softmax %k dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "v" %v : !ait.tensor<b x 5 x 32 x f16>
}

// One is transposed otherwise: what is a head of one is a place of the other.
// CHECK-LABEL: ait.graph @other_permutation
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @other_permutation(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<8 x f16>, %s: !ait.tensor<8 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %q2 = ait.permute %q1 [0, 2, 1, 3] : !ait.tensor<b x 4 x 5 x 16 x f16>
  %k2 = ait.reshape %k1 : !ait.tensor<b x 2 x 5 x 16 x f16>
  %qa = ait.slice %q2 offsets [0, 0, 0, 0] : !ait.tensor<b x 4 x 5 x 8 x f16>
  %qb = ait.slice %q2 offsets [0, 0, 0, 8] : !ait.tensor<b x 4 x 5 x 8 x f16>
  %qr = ait.mul %qa, %c : !ait.tensor<b x 4 x 5 x 8 x f16>
  %qi = ait.mul %qb, %s : !ait.tensor<b x 4 x 5 x 8 x f16>
  %qy = ait.add %qr, %qi : !ait.tensor<b x 4 x 5 x 8 x f16>
  %ka = ait.slice %k2 offsets [0, 0, 0, 0] : !ait.tensor<b x 2 x 5 x 8 x f16>
  %kb = ait.slice %k2 offsets [0, 0, 0, 8] : !ait.tensor<b x 2 x 5 x 8 x f16>
  %kr = ait.mul %ka, %c : !ait.tensor<b x 2 x 5 x 8 x f16>
  %ki = ait.mul %kb, %s : !ait.tensor<b x 2 x 5 x 8 x f16>
  %ky = ait.add %kr, %ki : !ait.tensor<b x 2 x 5 x 8 x f16>
  %y = ait.softmax %qy dim 3 : !ait.tensor<b x 4 x 5 x 8 x f16>
  %z = ait.softmax %ky dim 3 : !ait.tensor<b x 2 x 5 x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x 4 x 5 x 8 x f16>
  ait.output "z" %z : !ait.tensor<b x 2 x 5 x 8 x f16>
}

// The query gives its first elements, the key its last.
// CHECK-LABEL: ait.graph @other_halves
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @other_halves(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<8 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qa = ait.slice %q1 offsets [0, 0, 0, 0] : !ait.tensor<b x 5 x 4 x 8 x f16>
  %ka = ait.slice %k1 offsets [0, 0, 0, 8] : !ait.tensor<b x 5 x 2 x 8 x f16>
  %qy = ait.mul %qa, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %ky = ait.mul %ka, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %y = ait.softmax %qy dim 3 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %z = ait.softmax %ky dim 3 : !ait.tensor<b x 5 x 2 x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 8 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 2 x 8 x f16>
}

// The query gives some of its heads: between these and the key lie others.
// CHECK-LABEL: ait.graph @some_heads
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @some_heads(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<16 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qa = ait.slice %q1 offsets [0, 0, 0, 0] : !ait.tensor<b x 5 x 3 x 16 x f16>
  %ka = ait.slice %k1 offsets [0, 0, 0, 0] : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qy = ait.mul %qa, %c : !ait.tensor<b x 5 x 3 x 16 x f16>
  %ky = ait.mul %ka, %c : !ait.tensor<b x 5 x 2 x 16 x f16>
  %y = ait.softmax %qy dim 3 : !ait.tensor<b x 5 x 3 x 16 x f16>
  %z = ait.softmax %ky dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 3 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 2 x 16 x f16>
}

// Heads of two widths differ in two dims.
// CHECK-LABEL: ait.graph @other_width
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @other_width(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<5 x 1 x 1 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 1 x 32 x f16>
  %qy = ait.mul %q1, %c : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ky = ait.mul %k1, %c : !ait.tensor<b x 5 x 1 x 32 x f16>
  %y = ait.softmax %qy dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %z = ait.softmax %ky dim 3 : !ait.tensor<b x 5 x 1 x 32 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 1 x 32 x f16>
}

// The table has a row for each head: one for both would need a concat.
// CHECK-LABEL: ait.graph @table_of_heads
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @table_of_heads(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<4 x 16 x f16>, %d: !ait.tensor<2 x 16 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qy = ait.mul %q1, %c : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ky = ait.mul %k1, %d : !ait.tensor<b x 5 x 2 x 16 x f16>
  %y = ait.softmax %qy dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %z = ait.softmax %ky dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 2 x 16 x f16>
}

// Nothing that both read is cut.
// CHECK-LABEL: ait.graph @no_parts
// CHECK-NOT: ait.split
ait.graph @no_parts(%c: !ait.tensor<5 x 1 x 16 x f16>, %d: !ait.tensor<b x 1 x 1 x 1 x f16>) dims {b = 1 to 3} {
  %qy = ait.mul %c, %d : !ait.tensor<b x 5 x 1 x 16 x f16>
  ait.output "y" %qy : !ait.tensor<b x 5 x 1 x 16 x f16>
}

// A part that is an output is written where the caller wants it.
// CHECK-LABEL: ait.graph @an_output
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @an_output(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<16 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qy = ait.mul %q1, %c : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ky = ait.mul %k1, %c : !ait.tensor<b x 5 x 2 x 16 x f16>
  %z = ait.softmax %qy dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "k" %ky : !ait.tensor<b x 5 x 2 x 16 x f16>
}

// A key that joins a cache is written there.
// CHECK-LABEL: ait.graph @a_cache
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @a_cache(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<5 x 1 x 8 x f16>, %s: !ait.tensor<5 x 1 x 8 x f16>, %old: !ait.tensor<b x 3 x 2 x 16 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qa, %qb = ait.split %q1 dim 3 : !ait.tensor<b x 5 x 4 x 8 x f16>, !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr0 = ait.mul %qa, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr1 = ait.mul %qb, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr2 = ait.sub %qr0, %qr1 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr3 = ait.mul %qb, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr4 = ait.mul %qa, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr5 = ait.add %qr3, %qr4 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %q = ait.concat %qr2, %qr5 dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ka, %kb = ait.split %k1 dim 3 : !ait.tensor<b x 5 x 2 x 8 x f16>, !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr0 = ait.mul %ka, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr1 = ait.mul %kb, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr2 = ait.sub %kr0, %kr1 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr3 = ait.mul %kb, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr4 = ait.mul %ka, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr5 = ait.add %kr3, %kr4 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %k = ait.concat %kr2, %kr5 dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %all = ait.concat %old, %k dim 1 : !ait.tensor<b x 8 x 2 x 16 x f16>
  %y = ait.softmax %q dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %z = ait.softmax %all dim 3 : !ait.tensor<b x 8 x 2 x 16 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 8 x 2 x 16 x f16>
}

// The halves of the query are joined, those of the key are not.
// CHECK-LABEL: ait.graph @one_joined
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @one_joined(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<5 x 1 x 8 x f16>, %s: !ait.tensor<5 x 1 x 8 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qa, %qb = ait.split %q1 dim 3 : !ait.tensor<b x 5 x 4 x 8 x f16>, !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr0 = ait.mul %qa, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr1 = ait.mul %qb, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr2 = ait.sub %qr0, %qr1 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr3 = ait.mul %qb, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr4 = ait.mul %qa, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr5 = ait.add %qr3, %qr4 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %q = ait.concat %qr2, %qr5 dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ka, %kb = ait.split %k1 dim 3 : !ait.tensor<b x 5 x 2 x 8 x f16>, !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr0 = ait.mul %ka, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr1 = ait.mul %kb, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr2 = ait.sub %kr0, %kr1 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr3 = ait.mul %kb, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr4 = ait.mul %ka, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr5 = ait.add %kr3, %kr4 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %y = ait.softmax %q dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %z0 = ait.softmax %kr2 dim 3 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %z1 = ait.softmax %kr5 dim 3 : !ait.tensor<b x 5 x 2 x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z0" %z0 : !ait.tensor<b x 5 x 2 x 8 x f16>
  ait.output "z1" %z1 : !ait.tensor<b x 5 x 2 x 8 x f16>
}

// The halves of the key are joined the other way round.
// CHECK-LABEL: ait.graph @joined_in_another_order
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @joined_in_another_order(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<5 x 1 x 8 x f16>, %s: !ait.tensor<5 x 1 x 8 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qa, %qb = ait.split %q1 dim 3 : !ait.tensor<b x 5 x 4 x 8 x f16>, !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr0 = ait.mul %qa, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr1 = ait.mul %qb, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr2 = ait.sub %qr0, %qr1 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr3 = ait.mul %qb, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr4 = ait.mul %qa, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr5 = ait.add %qr3, %qr4 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %q = ait.concat %qr2, %qr5 dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ka, %kb = ait.split %k1 dim 3 : !ait.tensor<b x 5 x 2 x 8 x f16>, !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr0 = ait.mul %ka, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr1 = ait.mul %kb, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr2 = ait.sub %kr0, %kr1 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr3 = ait.mul %kb, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr4 = ait.mul %ka, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr5 = ait.add %kr3, %kr4 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %k = ait.concat %kr5, %kr2 dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %y = ait.softmax %q dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %z = ait.softmax %k dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "v" %v : !ait.tensor<b x 5 x 32 x f16>
}

// The halves of the key are joined as heads.
// CHECK-LABEL: ait.graph @joined_along_another_dim
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @joined_along_another_dim(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<5 x 1 x 8 x f16>, %s: !ait.tensor<5 x 1 x 8 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qa, %qb = ait.split %q1 dim 3 : !ait.tensor<b x 5 x 4 x 8 x f16>, !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr0 = ait.mul %qa, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr1 = ait.mul %qb, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr2 = ait.sub %qr0, %qr1 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr3 = ait.mul %qb, %c : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr4 = ait.mul %qa, %s : !ait.tensor<b x 5 x 4 x 8 x f16>
  %qr5 = ait.add %qr3, %qr4 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %q = ait.concat %qr2, %qr5 dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ka, %kb = ait.split %k1 dim 3 : !ait.tensor<b x 5 x 2 x 8 x f16>, !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr0 = ait.mul %ka, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr1 = ait.mul %kb, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr2 = ait.sub %kr0, %kr1 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr3 = ait.mul %kb, %c : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr4 = ait.mul %ka, %s : !ait.tensor<b x 5 x 2 x 8 x f16>
  %kr5 = ait.add %kr3, %kr4 : !ait.tensor<b x 5 x 2 x 8 x f16>
  %k = ait.concat %kr2, %kr5 dim 2 : !ait.tensor<b x 5 x 4 x 8 x f16>
  %y = ait.softmax %q dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %z = ait.softmax %k dim 3 : !ait.tensor<b x 5 x 4 x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 4 x 8 x f16>
  ait.output "v" %v : !ait.tensor<b x 5 x 32 x f16>
}

// A kernel is chosen for one of them.
// CHECK-LABEL: ait.graph @selected_0
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @selected_0(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<16 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qy = ait.fused_elementwise(%q1, %c) {
  ^bb0(%qy0: f32, %qy1: f32):
    %qy2 = ait.mul %qy0, %qy1 : f32
    ait.yield %qy2 : f32
  } {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ky = ait.fused_elementwise(%k1, %c) {
  ^bb0(%ky0: f32, %ky1: f32):
    %ky2 = ait.mul %ky0, %ky1 : f32
    ait.yield %ky2 : f32
  } : !ait.tensor<b x 5 x 2 x 16 x f16>
  %y = ait.softmax %qy dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %z = ait.softmax %ky dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 2 x 16 x f16>
}

// A kernel is chosen for one of them.
// CHECK-LABEL: ait.graph @selected_1
// CHECK: ait.fused_elementwise
// CHECK: ait.fused_elementwise
ait.graph @selected_1(%x: !ait.tensor<b x 5 x 128 x f16>, %c: !ait.tensor<16 x f16>) dims {b = 1 to 3} {
  %q0, %k0, %v = ait.split %x dim 2 : !ait.tensor<b x 5 x 64 x f16>, !ait.tensor<b x 5 x 32 x f16>, !ait.tensor<b x 5 x 32 x f16>
  %q1 = ait.reshape %q0 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %k1 = ait.reshape %k0 : !ait.tensor<b x 5 x 2 x 16 x f16>
  %qy = ait.fused_elementwise(%q1, %c) {
  ^bb0(%qy0: f32, %qy1: f32):
    %qy2 = ait.mul %qy0, %qy1 : f32
    ait.yield %qy2 : f32
  } : !ait.tensor<b x 5 x 4 x 16 x f16>
  %ky = ait.fused_elementwise(%k1, %c) {
  ^bb0(%ky0: f32, %ky1: f32):
    %ky2 = ait.mul %ky0, %ky1 : f32
    ait.yield %ky2 : f32
  } {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 5 x 2 x 16 x f16>
  %y = ait.softmax %qy dim 3 : !ait.tensor<b x 5 x 4 x 16 x f16>
  %z = ait.softmax %ky dim 3 : !ait.tensor<b x 5 x 2 x 16 x f16>
  ait.output "y" %y : !ait.tensor<b x 5 x 4 x 16 x f16>
  ait.output "z" %z : !ait.tensor<b x 5 x 2 x 16 x f16>
}
