// RUN: ait-opt %s -p simplify | filecheck %s
// RUN: ait-opt %s -p simplify --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// As timm writes it: every other element, negated, beside its neighbour; tables for all elements.
// CHECK-LABEL: ait.graph @every_other
ait.graph @every_other(%x: !ait.tensor<b x s x 8 x f16>, %c: !ait.tensor<s x 8 x f16>, %s: !ait.tensor<s x 8 x f16>) dims {b = 1 to 2, s = 0 to 3} {
  // CHECK-NEXT: %[[X:[0-9]+]] = ait.reshape %x : !ait.tensor<b x s x 4 x 2 x f16>
  // CHECK-NEXT: %[[A:[0-9]+]], %[[B:[0-9]+]] = ait.split %[[X]] dim 3
  // CHECK-NEXT: %[[C:[0-9]+]] = ait.reshape %c : !ait.tensor<s x 4 x 2 x f16>
  // CHECK-NEXT: %[[C0:[0-9]+]], %[[C1:[0-9]+]] = ait.split %[[C]] dim 2
  // CHECK-NEXT: %[[S:[0-9]+]] = ait.reshape %s : !ait.tensor<s x 4 x 2 x f16>
  // CHECK-NEXT: %[[S0:[0-9]+]], %[[S1:[0-9]+]] = ait.split %[[S]] dim 2
  // CHECK-NEXT: %[[AC:[0-9]+]] = ait.mul %[[A]], %[[C0]]
  // CHECK-NEXT: %[[BS:[0-9]+]] = ait.mul %[[B]], %[[S0]]
  // CHECK-NEXT: %[[FIRST:[0-9]+]] = ait.sub %[[AC]], %[[BS]]
  // CHECK-NEXT: %[[BC:[0-9]+]] = ait.mul %[[B]], %[[C1]]
  // CHECK-NEXT: %[[AS:[0-9]+]] = ait.mul %[[A]], %[[S1]]
  // CHECK-NEXT: %[[SECOND:[0-9]+]] = ait.add %[[BC]], %[[AS]]
  // CHECK-NEXT: %[[Y:[0-9]+]] = ait.concat %[[FIRST]], %[[SECOND]] dim 3
  // CHECK-NEXT: ait.reshape %[[Y]] : !ait.tensor<b x s x 8 x f16>
  // CHECK-NEXT: ait.output
  %p = ait.reshape %x : !ait.tensor<b x s x 4 x 2 x f16>
  %u = ait.slice %p offsets [0, 0, 0, 1] : !ait.tensor<b x s x 4 x 1 x f16>
  %v = ait.slice %p offsets [0, 0, 0, 0] : !ait.tensor<b x s x 4 x 1 x f16>
  %u1 = ait.reshape %u : !ait.tensor<b x s x 4 x f16>
  %n1 = ait.neg %u1 : !ait.tensor<b x s x 4 x f16>
  %n = ait.reshape %n1 : !ait.tensor<b x s x 4 x 1 x f16>
  %j = ait.concat %n, %v dim 3 : !ait.tensor<b x s x 4 x 2 x f16>
  %t = ait.reshape %j : !ait.tensor<b x s x 8 x f16>
  %l = ait.mul %x, %c : !ait.tensor<b x s x 8 x f16>
  %r = ait.mul %t, %s : !ait.tensor<b x s x 8 x f16>
  %y = ait.add %l, %r : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 8 x f16>
}

// As transformers and lucidrains' rotary-embedding-torch write it: pairs that are parted; sums and products in the other order.
// CHECK-LABEL: ait.graph @unbound(
// CHECK-NOT: ait.neg
// CHECK: ait.sub
// CHECK: ait.concat
// CHECK: ait.output
ait.graph @unbound(%x: !ait.tensor<b x s x 8 x f16>, %c: !ait.tensor<s x 8 x f16>, %s: !ait.tensor<s x 8 x f16>) dims {b = 1 to 2, s = 0 to 3} {
  %p = ait.reshape %x : !ait.tensor<b x s x 4 x 2 x f16>
  %v, %u = ait.split %p dim 3 : !ait.tensor<b x s x 4 x 1 x f16>, !ait.tensor<b x s x 4 x 1 x f16>
  %n = ait.neg %u : !ait.tensor<b x s x 4 x 1 x f16>
  %j = ait.concat %n, %v dim 3 : !ait.tensor<b x s x 4 x 2 x f16>
  %t = ait.reshape %j : !ait.tensor<b x s x 8 x f16>
  %l = ait.mul %c, %x : !ait.tensor<b x s x 8 x f16>
  %r = ait.mul %s, %t : !ait.tensor<b x s x 8 x f16>
  %y = ait.add %r, %l : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 8 x f16>
}

// No rotation: the first elements are negated, and stand first.
// CHECK-LABEL: ait.graph @other_elements(
// CHECK: ait.neg
// CHECK-NOT: ait.sub
// CHECK: ait.output
ait.graph @other_elements(%x: !ait.tensor<b x s x 8 x f16>, %c: !ait.tensor<s x 8 x f16>, %s: !ait.tensor<s x 8 x f16>) dims {b = 1 to 2, s = 0 to 3} {
  %p = ait.reshape %x : !ait.tensor<b x s x 4 x 2 x f16>
  %u = ait.slice %p offsets [0, 0, 0, 0] : !ait.tensor<b x s x 4 x 1 x f16>
  %v = ait.slice %p offsets [0, 0, 0, 1] : !ait.tensor<b x s x 4 x 1 x f16>
  %u1 = ait.reshape %u : !ait.tensor<b x s x 4 x f16>
  %n1 = ait.neg %u1 : !ait.tensor<b x s x 4 x f16>
  %n = ait.reshape %n1 : !ait.tensor<b x s x 4 x 1 x f16>
  %j = ait.concat %n, %v dim 3 : !ait.tensor<b x s x 4 x 2 x f16>
  %t = ait.reshape %j : !ait.tensor<b x s x 8 x f16>
  %l = ait.mul %x, %c : !ait.tensor<b x s x 8 x f16>
  %r = ait.mul %t, %s : !ait.tensor<b x s x 8 x f16>
  %y = ait.add %l, %r : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 8 x f16>
}

// No rotation: both are the first elements.
// CHECK-LABEL: ait.graph @same_elements(
// CHECK: ait.neg
// CHECK-NOT: ait.sub
// CHECK: ait.output
ait.graph @same_elements(%x: !ait.tensor<b x s x 8 x f16>, %c: !ait.tensor<s x 8 x f16>, %s: !ait.tensor<s x 8 x f16>) dims {b = 1 to 2, s = 0 to 3} {
  %p = ait.reshape %x : !ait.tensor<b x s x 4 x 2 x f16>
  %u = ait.slice %p offsets [0, 0, 0, 0] : !ait.tensor<b x s x 4 x 1 x f16>
  %v = ait.slice %p offsets [0, 0, 0, 0] : !ait.tensor<b x s x 4 x 1 x f16>
  %u1 = ait.reshape %u : !ait.tensor<b x s x 4 x f16>
  %n1 = ait.neg %u1 : !ait.tensor<b x s x 4 x f16>
  %n = ait.reshape %n1 : !ait.tensor<b x s x 4 x 1 x f16>
  %j = ait.concat %n, %v dim 3 : !ait.tensor<b x s x 4 x 2 x f16>
  %t = ait.reshape %j : !ait.tensor<b x s x 8 x f16>
  %l = ait.mul %x, %c : !ait.tensor<b x s x 8 x f16>
  %r = ait.mul %t, %s : !ait.tensor<b x s x 8 x f16>
  %y = ait.add %l, %r : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 8 x f16>
}

// No rotation: what stands second is negated.
// CHECK-LABEL: ait.graph @second_negated(
// CHECK: ait.neg
// CHECK-NOT: ait.sub
// CHECK: ait.output
ait.graph @second_negated(%x: !ait.tensor<b x s x 8 x f16>, %c: !ait.tensor<s x 8 x f16>, %s: !ait.tensor<s x 8 x f16>) dims {b = 1 to 2, s = 0 to 3} {
  %p = ait.reshape %x : !ait.tensor<b x s x 4 x 2 x f16>
  %u = ait.slice %p offsets [0, 0, 0, 1] : !ait.tensor<b x s x 4 x 1 x f16>
  %v = ait.slice %p offsets [0, 0, 0, 0] : !ait.tensor<b x s x 4 x 1 x f16>
  %u1 = ait.reshape %u : !ait.tensor<b x s x 4 x f16>
  %n1 = ait.neg %u1 : !ait.tensor<b x s x 4 x f16>
  %n = ait.reshape %n1 : !ait.tensor<b x s x 4 x 1 x f16>
  %j = ait.concat %v, %n dim 3 : !ait.tensor<b x s x 4 x 2 x f16>
  %t = ait.reshape %j : !ait.tensor<b x s x 8 x f16>
  %l = ait.mul %x, %c : !ait.tensor<b x s x 8 x f16>
  %r = ait.mul %t, %s : !ait.tensor<b x s x 8 x f16>
  %y = ait.add %l, %r : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 8 x f16>
}

// No rotation: the parts stand in their order.
// CHECK-LABEL: ait.graph @parts_in_order(
// CHECK: ait.neg
// CHECK-NOT: ait.sub
// CHECK: ait.output
ait.graph @parts_in_order(%x: !ait.tensor<b x s x 8 x f16>, %c: !ait.tensor<s x 8 x f16>, %s: !ait.tensor<s x 8 x f16>) dims {b = 1 to 2, s = 0 to 3} {
  %p = ait.reshape %x : !ait.tensor<b x s x 4 x 2 x f16>
  %u, %v = ait.split %p dim 3 : !ait.tensor<b x s x 4 x 1 x f16>, !ait.tensor<b x s x 4 x 1 x f16>
  %u1 = ait.reshape %u : !ait.tensor<b x s x 4 x f16>
  %n1 = ait.neg %u1 : !ait.tensor<b x s x 4 x f16>
  %n = ait.reshape %n1 : !ait.tensor<b x s x 4 x 1 x f16>
  %j = ait.concat %n, %v dim 3 : !ait.tensor<b x s x 4 x 2 x f16>
  %t = ait.reshape %j : !ait.tensor<b x s x 8 x f16>
  %l = ait.mul %x, %c : !ait.tensor<b x s x 8 x f16>
  %r = ait.mul %t, %s : !ait.tensor<b x s x 8 x f16>
  %y = ait.add %l, %r : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 8 x f16>
}

// No rotation: the cosines are for another value.
// CHECK-LABEL: ait.graph @other_value(
// CHECK: ait.neg
// CHECK-NOT: ait.sub
// CHECK: ait.output
ait.graph @other_value(%x: !ait.tensor<b x s x 8 x f16>, %c: !ait.tensor<s x 8 x f16>, %s: !ait.tensor<s x 8 x f16>, %z: !ait.tensor<b x s x 8 x f16>) dims {b = 1 to 2, s = 0 to 3} {
  %p = ait.reshape %x : !ait.tensor<b x s x 4 x 2 x f16>
  %u = ait.slice %p offsets [0, 0, 0, 1] : !ait.tensor<b x s x 4 x 1 x f16>
  %v = ait.slice %p offsets [0, 0, 0, 0] : !ait.tensor<b x s x 4 x 1 x f16>
  %u1 = ait.reshape %u : !ait.tensor<b x s x 4 x f16>
  %n1 = ait.neg %u1 : !ait.tensor<b x s x 4 x f16>
  %n = ait.reshape %n1 : !ait.tensor<b x s x 4 x 1 x f16>
  %j = ait.concat %n, %v dim 3 : !ait.tensor<b x s x 4 x 2 x f16>
  %t = ait.reshape %j : !ait.tensor<b x s x 8 x f16>
  %l = ait.mul %z, %c : !ait.tensor<b x s x 8 x f16>
  %r = ait.mul %t, %s : !ait.tensor<b x s x 8 x f16>
  %y = ait.add %l, %r : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 8 x f16>
}

// No rotation: one cosine for all elements of a row.
// CHECK-LABEL: ait.graph @one_cosine(
// CHECK: ait.neg
// CHECK-NOT: ait.sub
// CHECK: ait.output
ait.graph @one_cosine(%x: !ait.tensor<b x s x 8 x f16>, %c: !ait.tensor<s x 1 x f16>, %s: !ait.tensor<s x 8 x f16>) dims {b = 1 to 2, s = 0 to 3} {
  %p = ait.reshape %x : !ait.tensor<b x s x 4 x 2 x f16>
  %u = ait.slice %p offsets [0, 0, 0, 1] : !ait.tensor<b x s x 4 x 1 x f16>
  %v = ait.slice %p offsets [0, 0, 0, 0] : !ait.tensor<b x s x 4 x 1 x f16>
  %u1 = ait.reshape %u : !ait.tensor<b x s x 4 x f16>
  %n1 = ait.neg %u1 : !ait.tensor<b x s x 4 x f16>
  %n = ait.reshape %n1 : !ait.tensor<b x s x 4 x 1 x f16>
  %j = ait.concat %n, %v dim 3 : !ait.tensor<b x s x 4 x 2 x f16>
  %t = ait.reshape %j : !ait.tensor<b x s x 8 x f16>
  %l = ait.mul %x, %c : !ait.tensor<b x s x 8 x f16>
  %r = ait.mul %t, %s : !ait.tensor<b x s x 8 x f16>
  %y = ait.add %l, %r : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 8 x f16>
}

// No rotation: one sine for all elements of a row.
// CHECK-LABEL: ait.graph @one_sine(
// CHECK: ait.neg
// CHECK-NOT: ait.sub
// CHECK: ait.output
ait.graph @one_sine(%x: !ait.tensor<b x s x 8 x f16>, %s: !ait.tensor<s x 1 x f16>, %c: !ait.tensor<s x 8 x f16>) dims {b = 1 to 2, s = 0 to 3} {
  %p = ait.reshape %x : !ait.tensor<b x s x 4 x 2 x f16>
  %u = ait.slice %p offsets [0, 0, 0, 1] : !ait.tensor<b x s x 4 x 1 x f16>
  %v = ait.slice %p offsets [0, 0, 0, 0] : !ait.tensor<b x s x 4 x 1 x f16>
  %u1 = ait.reshape %u : !ait.tensor<b x s x 4 x f16>
  %n1 = ait.neg %u1 : !ait.tensor<b x s x 4 x f16>
  %n = ait.reshape %n1 : !ait.tensor<b x s x 4 x 1 x f16>
  %j = ait.concat %n, %v dim 3 : !ait.tensor<b x s x 4 x 2 x f16>
  %t = ait.reshape %j : !ait.tensor<b x s x 8 x f16>
  %l = ait.mul %x, %c : !ait.tensor<b x s x 8 x f16>
  %r = ait.mul %t, %s : !ait.tensor<b x s x 8 x f16>
  %y = ait.add %l, %r : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 8 x f16>
}

// No rotation: the sum is larger than x.
// CHECK-LABEL: ait.graph @larger(
// CHECK: ait.neg
// CHECK-NOT: ait.sub
// CHECK: ait.output
ait.graph @larger(%x: !ait.tensor<b x s x 8 x f16>, %c: !ait.tensor<2 x 1 x s x 8 x f16>, %s: !ait.tensor<s x 8 x f16>) dims {b = 1 to 2, s = 0 to 3} {
  %p = ait.reshape %x : !ait.tensor<b x s x 4 x 2 x f16>
  %u = ait.slice %p offsets [0, 0, 0, 1] : !ait.tensor<b x s x 4 x 1 x f16>
  %v = ait.slice %p offsets [0, 0, 0, 0] : !ait.tensor<b x s x 4 x 1 x f16>
  %u1 = ait.reshape %u : !ait.tensor<b x s x 4 x f16>
  %n1 = ait.neg %u1 : !ait.tensor<b x s x 4 x f16>
  %n = ait.reshape %n1 : !ait.tensor<b x s x 4 x 1 x f16>
  %j = ait.concat %n, %v dim 3 : !ait.tensor<b x s x 4 x 2 x f16>
  %t = ait.reshape %j : !ait.tensor<b x s x 8 x f16>
  %l = ait.mul %x, %c : !ait.tensor<2 x b x s x 8 x f16>
  %r = ait.mul %t, %s : !ait.tensor<b x s x 8 x f16>
  %y = ait.add %l, %r : !ait.tensor<2 x b x s x 8 x f16>
  ait.output "y" %y : !ait.tensor<2 x b x s x 8 x f16>
}

// No rotation of neighbours: groups of four.
// CHECK-LABEL: ait.graph @fours(
// CHECK: ait.neg
// CHECK-NOT: ait.sub
// CHECK: ait.output
ait.graph @fours(%x: !ait.tensor<b x s x 8 x f16>, %c: !ait.tensor<s x 8 x f16>, %s: !ait.tensor<s x 8 x f16>) dims {b = 1 to 2, s = 0 to 3} {
  %p = ait.reshape %x : !ait.tensor<b x s x 2 x 4 x f16>
  %u = ait.slice %p offsets [0, 0, 0, 2] : !ait.tensor<b x s x 2 x 2 x f16>
  %v = ait.slice %p offsets [0, 0, 0, 0] : !ait.tensor<b x s x 2 x 2 x f16>
  %n = ait.neg %u : !ait.tensor<b x s x 2 x 2 x f16>
  %j = ait.concat %n, %v dim 3 : !ait.tensor<b x s x 2 x 4 x f16>
  %t = ait.reshape %j : !ait.tensor<b x s x 8 x f16>
  %l = ait.mul %x, %c : !ait.tensor<b x s x 8 x f16>
  %r = ait.mul %t, %s : !ait.tensor<b x s x 8 x f16>
  %y = ait.add %l, %r : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 8 x f16>
}

// No rotation: the pairs are of two values.
// CHECK-LABEL: ait.graph @two_values(
// CHECK: ait.neg
// CHECK-NOT: ait.sub
// CHECK: ait.output
ait.graph @two_values(%x: !ait.tensor<b x s x 8 x f16>, %c: !ait.tensor<s x 8 x f16>, %s: !ait.tensor<s x 8 x f16>, %z: !ait.tensor<b x s x 8 x f16>) dims {b = 1 to 2, s = 0 to 3} {
  %p = ait.reshape %x : !ait.tensor<b x s x 4 x 2 x f16>
  %q = ait.reshape %z : !ait.tensor<b x s x 4 x 2 x f16>
  %u = ait.slice %p offsets [0, 0, 0, 1] : !ait.tensor<b x s x 4 x 1 x f16>
  %v = ait.slice %q offsets [0, 0, 0, 0] : !ait.tensor<b x s x 4 x 1 x f16>
  %n = ait.neg %u : !ait.tensor<b x s x 4 x 1 x f16>
  %j = ait.concat %n, %v dim 3 : !ait.tensor<b x s x 4 x 2 x f16>
  %t = ait.reshape %j : !ait.tensor<b x s x 8 x f16>
  %l = ait.mul %x, %c : !ait.tensor<b x s x 8 x f16>
  %r = ait.mul %t, %s : !ait.tensor<b x s x 8 x f16>
  %y = ait.add %l, %r : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 8 x f16>
}

// No rotation: nothing is negated.
// CHECK-LABEL: ait.graph @no_neg(
// CHECK: ait.abs
// CHECK-NOT: ait.sub
// CHECK: ait.output
ait.graph @no_neg(%x: !ait.tensor<b x s x 8 x f16>, %c: !ait.tensor<s x 8 x f16>, %s: !ait.tensor<s x 8 x f16>) dims {b = 1 to 2, s = 0 to 3} {
  %p = ait.reshape %x : !ait.tensor<b x s x 4 x 2 x f16>
  %u = ait.slice %p offsets [0, 0, 0, 1] : !ait.tensor<b x s x 4 x 1 x f16>
  %v = ait.slice %p offsets [0, 0, 0, 0] : !ait.tensor<b x s x 4 x 1 x f16>
  %u1 = ait.reshape %u : !ait.tensor<b x s x 4 x f16>
  %n1 = ait.abs %u1 : !ait.tensor<b x s x 4 x f16>
  %n = ait.reshape %n1 : !ait.tensor<b x s x 4 x 1 x f16>
  %j = ait.concat %n, %v dim 3 : !ait.tensor<b x s x 4 x 2 x f16>
  %t = ait.reshape %j : !ait.tensor<b x s x 8 x f16>
  %l = ait.mul %x, %c : !ait.tensor<b x s x 8 x f16>
  %r = ait.mul %t, %s : !ait.tensor<b x s x 8 x f16>
  %y = ait.add %l, %r : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 8 x f16>
}

// No rotation: the negated elements stand before all others.
// CHECK-LABEL: ait.graph @end_to_end(
// CHECK: ait.neg
// CHECK-NOT: ait.sub
// CHECK: ait.output
ait.graph @end_to_end(%x: !ait.tensor<b x s x 8 x f16>, %c: !ait.tensor<s x 8 x f16>, %s: !ait.tensor<s x 8 x f16>) dims {b = 1 to 2, s = 0 to 3} {
  %p = ait.reshape %x : !ait.tensor<b x s x 4 x 2 x f16>
  %u = ait.slice %p offsets [0, 0, 0, 1] : !ait.tensor<b x s x 4 x 1 x f16>
  %v = ait.slice %p offsets [0, 0, 0, 0] : !ait.tensor<b x s x 4 x 1 x f16>
  %n = ait.neg %u : !ait.tensor<b x s x 4 x 1 x f16>
  %j = ait.concat %n, %v dim 2 : !ait.tensor<b x s x 8 x 1 x f16>
  %t = ait.reshape %j : !ait.tensor<b x s x 8 x f16>
  %l = ait.mul %x, %c : !ait.tensor<b x s x 8 x f16>
  %r = ait.mul %t, %s : !ait.tensor<b x s x 8 x f16>
  %y = ait.add %l, %r : !ait.tensor<b x s x 8 x f16>
  ait.output "y" %y : !ait.tensor<b x s x 8 x f16>
}

// Scalars of a region are no pairs.
// CHECK-LABEL: ait.graph @scalars(
// CHECK: ait.add
// CHECK: ait.output
ait.graph @scalars(%x: !ait.tensor<4 x f64>, %c: !ait.tensor<4 x f64>) {
  %0 = ait.fused_elementwise(%x, %c) {
  ^bb0(%a: f64, %b: f64):
    %l = ait.mul %a, %b : f64
    %r = ait.mul %b, %a : f64
    %y = ait.add %l, %r : f64
    ait.yield %y : f64
  } : !ait.tensor<4 x f64>
  ait.output "y" %0 : !ait.tensor<4 x f64>
}

// No rotation: one number is added to what is turned.
// CHECK-LABEL: ait.graph @one_number(
// CHECK: ait.neg
// CHECK-NOT: ait.sub
// CHECK: ait.output
ait.graph @one_number(%z: !ait.tensor<s x 8 x f16>, %x: !ait.tensor<f16>, %c: !ait.tensor<f16>, %s: !ait.tensor<s x 8 x f16>) dims {s = 0 to 3} {
  %p = ait.reshape %z : !ait.tensor<s x 4 x 2 x f16>
  %v, %u = ait.split %p dim 2 : !ait.tensor<s x 4 x 1 x f16>, !ait.tensor<s x 4 x 1 x f16>
  %n = ait.neg %u : !ait.tensor<s x 4 x 1 x f16>
  %j = ait.concat %n, %v dim 2 : !ait.tensor<s x 4 x 2 x f16>
  %t = ait.reshape %j : !ait.tensor<s x 8 x f16>
  %l = ait.mul %x, %c : !ait.tensor<f16>
  %r = ait.mul %t, %s : !ait.tensor<s x 8 x f16>
  %y = ait.add %l, %r : !ait.tensor<s x 8 x f16>
  ait.output "y" %y : !ait.tensor<s x 8 x f16>
}
