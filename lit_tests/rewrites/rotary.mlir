// RUN: ait-opt %s -p simplify | filecheck %s
// RUN: ait-opt %s -p simplify --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// As transformers writes it: tables for both halves, x * cos + rotate_half(x) * sin.
// CHECK-LABEL: ait.graph @rotate_half
ait.graph @rotate_half(%x: !ait.tensor<b x 4 x s x 8 x f32>, %f: !ait.tensor<s x 4 x f32>) dims {b = 1 to 2, s = 1 to 5} {
  // CHECK-NEXT: %[[COS:[0-9]+]] = ait.cos %f : !ait.tensor<s x 4 x f32>
  // CHECK-NEXT: %[[SIN:[0-9]+]] = ait.sin %f : !ait.tensor<s x 4 x f32>
  // CHECK-NEXT: %[[C:[0-9]+]] = ait.reshape %[[COS]] : !ait.tensor<1 x 1 x s x 4 x f32>
  // CHECK-NEXT: %[[S:[0-9]+]] = ait.reshape %[[SIN]] : !ait.tensor<1 x 1 x s x 4 x f32>
  // CHECK-NEXT: %[[A:[0-9]+]] = ait.slice %x offsets [0, 0, 0, 0] : !ait.tensor<b x 4 x s x 4 x f32>
  // CHECK-NEXT: %[[B:[0-9]+]] = ait.slice %x offsets [0, 0, 0, 4] : !ait.tensor<b x 4 x s x 4 x f32>
  // CHECK-NEXT: %[[AC:[0-9]+]] = ait.mul %[[A]], %[[C]]
  // CHECK-NEXT: %[[BS:[0-9]+]] = ait.mul %[[B]], %[[S]]
  // CHECK-NEXT: %[[FIRST:[0-9]+]] = ait.sub %[[AC]], %[[BS]]
  // CHECK-NEXT: %[[BC:[0-9]+]] = ait.mul %[[B]], %[[C]]
  // CHECK-NEXT: %[[AS:[0-9]+]] = ait.mul %[[A]], %[[S]]
  // CHECK-NEXT: %[[SECOND:[0-9]+]] = ait.add %[[BC]], %[[AS]]
  // CHECK-NEXT: ait.concat %[[FIRST]], %[[SECOND]] dim 3
  // CHECK-NEXT: ait.output
  %0 = ait.concat %f, %f dim 1 : !ait.tensor<s x 8 x f32>
  %1 = ait.cos %0 : !ait.tensor<s x 8 x f32>
  %2 = ait.sin %0 : !ait.tensor<s x 8 x f32>
  %3 = ait.reshape %1 : !ait.tensor<1 x 1 x s x 8 x f32>
  %4 = ait.reshape %2 : !ait.tensor<1 x 1 x s x 8 x f32>
  %5 = ait.mul %x, %3 : !ait.tensor<b x 4 x s x 8 x f32>
  %6 = ait.slice %x offsets [0, 0, 0, 0] : !ait.tensor<b x 4 x s x 4 x f32>
  %7 = ait.slice %x offsets [0, 0, 0, 4] : !ait.tensor<b x 4 x s x 4 x f32>
  %8 = ait.neg %7 : !ait.tensor<b x 4 x s x 4 x f32>
  %9 = ait.concat %8, %6 dim 3 : !ait.tensor<b x 4 x s x 8 x f32>
  %10 = ait.mul %9, %4 : !ait.tensor<b x 4 x s x 8 x f32>
  %11 = ait.add %5, %10 : !ait.tensor<b x 4 x s x 8 x f32>
  ait.output "y" %11 : !ait.tensor<b x 4 x s x 8 x f32>
}

// With chunk, and tables that are given.
// CHECK-LABEL: ait.graph @chunked
ait.graph @chunked(%x: !ait.tensor<s x 8 x f32>, %c: !ait.tensor<s x 4 x f32>, %d: !ait.tensor<s x 4 x f32>) dims {s = 1 to 5} {
  // CHECK-NEXT: %[[A:[0-9]+]], %[[B:[0-9]+]] = ait.split %x dim 1
  // CHECK-NEXT: %[[AC:[0-9]+]] = ait.mul %[[A]], %c
  // CHECK-NEXT: %[[BS:[0-9]+]] = ait.mul %[[B]], %d
  // CHECK-NEXT: %[[FIRST:[0-9]+]] = ait.sub %[[AC]], %[[BS]]
  // CHECK-NEXT: %[[BC:[0-9]+]] = ait.mul %[[B]], %c
  // CHECK-NEXT: %[[AS:[0-9]+]] = ait.mul %[[A]], %d
  // CHECK-NEXT: %[[SECOND:[0-9]+]] = ait.add %[[BC]], %[[AS]]
  // CHECK-NEXT: ait.concat %[[FIRST]], %[[SECOND]] dim 1
  // CHECK-NEXT: ait.output
  %0 = ait.concat %c, %c dim 1 : !ait.tensor<s x 8 x f32>
  %1 = ait.concat %d, %d dim 1 : !ait.tensor<s x 8 x f32>
  %2, %3 = ait.split %x dim 1 : !ait.tensor<s x 4 x f32>, !ait.tensor<s x 4 x f32>
  %4 = ait.neg %3 : !ait.tensor<s x 4 x f32>
  %5 = ait.concat %4, %2 dim 1 : !ait.tensor<s x 8 x f32>
  %6 = ait.mul %x, %0 : !ait.tensor<s x 8 x f32>
  %7 = ait.mul %5, %1 : !ait.tensor<s x 8 x f32>
  %8 = ait.add %6, %7 : !ait.tensor<s x 8 x f32>
  ait.output "y" %8 : !ait.tensor<s x 8 x f32>
}

// What is doubled along another dim stays so through a cast; a reshape that splits the doubled dim, or moves it, is left.
// CHECK-LABEL: ait.graph @doubled
ait.graph @doubled(%x: !ait.tensor<2 x 4 x f32>) {
  // CHECK-NEXT: %[[H:[0-9]+]] = ait.cast %x : !ait.tensor<2 x 4 x f64>
  // CHECK-NEXT: %[[Y0:[0-9]+]] = ait.concat %[[H]], %[[H]] dim 0
  // CHECK-NEXT: %[[D0:[0-9]+]] = ait.concat %x, %x dim 0
  // CHECK-NEXT: %[[Y1:[0-9]+]] = ait.reshape %[[D0]] : !ait.tensor<4 x 1 x 4 x f32>
  // CHECK-NEXT: %[[D1:[0-9]+]] = ait.concat %x, %x dim 1
  // CHECK-NEXT: %[[Y2:[0-9]+]] = ait.reshape %[[D1]] : !ait.tensor<2 x 2 x 4 x f32>
  // CHECK-NEXT: ait.output
  %0 = ait.concat %x, %x dim 0 : !ait.tensor<4 x 4 x f32>
  %1 = ait.cast %0 : !ait.tensor<4 x 4 x f64>
  %2 = ait.concat %x, %x dim 0 : !ait.tensor<4 x 4 x f32>
  %3 = ait.reshape %2 : !ait.tensor<4 x 1 x 4 x f32>
  %4 = ait.concat %x, %x dim 1 : !ait.tensor<2 x 8 x f32>
  %5 = ait.reshape %4 : !ait.tensor<2 x 2 x 4 x f32>
  ait.output "y0" %1 : !ait.tensor<4 x 4 x f64>
  ait.output "y1" %3 : !ait.tensor<4 x 1 x 4 x f32>
  ait.output "y2" %5 : !ait.tensor<2 x 2 x 4 x f32>
}

// Two different values are not one twice.
// CHECK-LABEL: ait.graph @not_doubled
ait.graph @not_doubled(%x: !ait.tensor<2 x 4 x f32>, %z: !ait.tensor<2 x 4 x f32>) {
  // CHECK-NEXT: ait.concat
  // CHECK-NEXT: ait.cos
  // CHECK-NEXT: ait.concat
  // CHECK-NEXT: ait.reshape
  // CHECK-NEXT: ait.output
  %0 = ait.concat %x, %z dim 1 : !ait.tensor<2 x 8 x f32>
  %1 = ait.cos %0 : !ait.tensor<2 x 8 x f32>
  %2 = ait.concat %x, %z dim 1 : !ait.tensor<2 x 8 x f32>
  %3 = ait.reshape %2 : !ait.tensor<1 x 2 x 8 x f32>
  ait.output "y0" %1 : !ait.tensor<2 x 8 x f32>
  ait.output "y1" %3 : !ait.tensor<1 x 2 x 8 x f32>
}

// No rotation: the halves are of another value.
// CHECK-LABEL: ait.graph @slice_other_x
ait.graph @slice_other_x(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a = ait.slice %z offsets [0, 0] : !ait.tensor<8 x 4 x f32>
  %b = ait.slice %z offsets [0, 4] : !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: the tables' halves differ.
// CHECK-LABEL: ait.graph @slice_different_tables
ait.graph @slice_different_tables(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a = ait.slice %x offsets [0, 0] : !ait.tensor<8 x 4 x f32>
  %b = ait.slice %x offsets [0, 4] : !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: the sines' halves differ.
// CHECK-LABEL: ait.graph @slice_different_sines
ait.graph @slice_different_sines(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a = ait.slice %x offsets [0, 0] : !ait.tensor<8 x 4 x f32>
  %b = ait.slice %x offsets [0, 4] : !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: the sum is larger than x.
// CHECK-LABEL: ait.graph @slice_enlarged
ait.graph @slice_enlarged(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a = ait.slice %x offsets [0, 0] : !ait.tensor<8 x 4 x f32>
  %b = ait.slice %x offsets [0, 4] : !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %c3 = ait.reshape %c : !ait.tensor<8 x 1 x 4 x f32>
  %cos = ait.concat %c3, %c3 dim 2 : !ait.tensor<8 x 1 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x 8 x f32>
}

// No rotation: the cosines are doubled along the rows.
// CHECK-LABEL: ait.graph @slice_tables_of_rows
ait.graph @slice_tables_of_rows(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a = ait.slice %x offsets [0, 0] : !ait.tensor<8 x 4 x f32>
  %b = ait.slice %x offsets [0, 4] : !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %r = ait.reshape %c : !ait.tensor<4 x 8 x f32>
  %cos = ait.concat %r, %r dim 0 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: the sines are doubled along the rows.
// CHECK-LABEL: ait.graph @slice_sines_of_rows
ait.graph @slice_sines_of_rows(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a = ait.slice %x offsets [0, 0] : !ait.tensor<8 x 4 x f32>
  %b = ait.slice %x offsets [0, 4] : !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %r = ait.reshape %d : !ait.tensor<4 x 8 x f32>
  %sin = ait.concat %r, %r dim 0 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: the halves are of another value.
// CHECK-LABEL: ait.graph @split_other_x
ait.graph @split_other_x(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a, %b = ait.split %z dim 1 : !ait.tensor<8 x 4 x f32>, !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: the tables' halves differ.
// CHECK-LABEL: ait.graph @split_different_tables
ait.graph @split_different_tables(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a, %b = ait.split %x dim 1 : !ait.tensor<8 x 4 x f32>, !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: the sines' halves differ.
// CHECK-LABEL: ait.graph @split_different_sines
ait.graph @split_different_sines(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a, %b = ait.split %x dim 1 : !ait.tensor<8 x 4 x f32>, !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: the sum is larger than x.
// CHECK-LABEL: ait.graph @split_enlarged
ait.graph @split_enlarged(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a, %b = ait.split %x dim 1 : !ait.tensor<8 x 4 x f32>, !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %c3 = ait.reshape %c : !ait.tensor<8 x 1 x 4 x f32>
  %cos = ait.concat %c3, %c3 dim 2 : !ait.tensor<8 x 1 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x 8 x f32>
}

// No rotation: the cosines are doubled along the rows.
// CHECK-LABEL: ait.graph @split_tables_of_rows
ait.graph @split_tables_of_rows(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a, %b = ait.split %x dim 1 : !ait.tensor<8 x 4 x f32>, !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %r = ait.reshape %c : !ait.tensor<4 x 8 x f32>
  %cos = ait.concat %r, %r dim 0 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: the sines are doubled along the rows.
// CHECK-LABEL: ait.graph @split_sines_of_rows
ait.graph @split_sines_of_rows(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a, %b = ait.split %x dim 1 : !ait.tensor<8 x 4 x f32>, !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %r = ait.reshape %d : !ait.tensor<4 x 8 x f32>
  %sin = ait.concat %r, %r dim 0 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: the first half is of another value.
// CHECK-LABEL: ait.graph @slice_one_of_z
ait.graph @slice_one_of_z(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a = ait.slice %z offsets [0, 0] : !ait.tensor<8 x 4 x f32>
  %b = ait.slice %x offsets [0, 4] : !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: the second half is of another value.
// CHECK-LABEL: ait.graph @slice_two_of_z
ait.graph @slice_two_of_z(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a = ait.slice %x offsets [0, 0] : !ait.tensor<8 x 4 x f32>
  %b = ait.slice %z offsets [0, 4] : !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: both are the second half.
// CHECK-LABEL: ait.graph @slice_second_twice
ait.graph @slice_second_twice(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a = ait.slice %x offsets [0, 4] : !ait.tensor<8 x 4 x f32>
  %b = ait.slice %x offsets [0, 4] : !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: both are the first half.
// CHECK-LABEL: ait.graph @slice_first_twice
ait.graph @slice_first_twice(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a = ait.slice %x offsets [0, 0] : !ait.tensor<8 x 4 x f32>
  %b = ait.slice %x offsets [0, 0] : !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: the first half is that of the rows.
// CHECK-LABEL: ait.graph @slice_first_of_rows
ait.graph @slice_first_of_rows(%x: !ait.tensor<8 x 8 x f32>, %z: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %e = ait.slice %x offsets [0, 0] : !ait.tensor<4 x 8 x f32>
  %a = ait.reshape %e : !ait.tensor<8 x 4 x f32>
  %b = ait.slice %x offsets [0, 4] : !ait.tensor<8 x 4 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 4 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: the halves are those of the rows.
// CHECK-LABEL: ait.graph @split_of_rows
ait.graph @split_of_rows(%x: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a, %b = ait.split %x dim 0 : !ait.tensor<4 x 8 x f32>, !ait.tensor<4 x 8 x f32>
  %n = ait.neg %b : !ait.tensor<4 x 8 x f32>
  %t = ait.concat %n, %a dim 0 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}

// No rotation: the parts are no halves.
// CHECK-LABEL: ait.graph @split_unequal
ait.graph @split_unequal(%x: !ait.tensor<8 x 8 x f32>, %c: !ait.tensor<8 x 4 x f32>, %d: !ait.tensor<8 x 4 x f32>) {
  // CHECK-NOT: ait.sub
  // CHECK: ait.output
  %a, %b = ait.split %x dim 1 : !ait.tensor<8 x 3 x f32>, !ait.tensor<8 x 5 x f32>
  %n = ait.neg %b : !ait.tensor<8 x 5 x f32>
  %t = ait.concat %n, %a dim 1 : !ait.tensor<8 x 8 x f32>
  %cos = ait.concat %c, %c dim 1 : !ait.tensor<8 x 8 x f32>
  %sin = ait.concat %d, %d dim 1 : !ait.tensor<8 x 8 x f32>
  %p = ait.mul %x, %cos : !ait.tensor<8 x 8 x f32>
  %q = ait.mul %t, %sin : !ait.tensor<8 x 8 x f32>
  %y = ait.add %p, %q : !ait.tensor<8 x 8 x f32>
  ait.output "y" %y : !ait.tensor<8 x 8 x f32>
}
