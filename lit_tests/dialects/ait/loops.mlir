// RUN: ait-opt %s | ait-opt | filecheck %s

// CHECK-LABEL: ait.graph @logsumexp
ait.graph @logsumexp(%x: !ait.tensor<rows x 4096 x f16>) dims {rows = 0 to 64} {
  // CHECK: %y = ait.loops(%x) for (d0 = rows) {
  // CHECK-NEXT: ^bb0(%a: !ait.tensor<rows x 4096 x f16>):
  %y = ait.loops(%x) for (d0 = rows) {
  ^bb0(%a: !ait.tensor<rows x 4096 x f16>):
    // CHECK-NEXT: %m = ait.fold max for (k0 = 4096) {
    // CHECK-NEXT: %v = ait.at %a[d0, k0] : f32
    // CHECK-NEXT: ait.yield %v : f32
    // CHECK-NEXT: } : f32
    %m = ait.fold max for (k0 = 4096) {
      %v = ait.at %a[d0, k0] : f32
      ait.yield %v : f32
    } : f32
    %s = ait.fold add for (k0 = 4096) {
      %v = ait.at %a[d0, k0] : f32
      %d = ait.sub %v, %m : f32
      %e = ait.exp %d : f32
      ait.yield %e : f32
    } : f32
    %l = ait.log %s : f32
    %r = ait.add %l, %m : f32
    ait.yield %r : f32
  // CHECK: } : !ait.tensor<rows x f16>
  } : !ait.tensor<rows x f16>
  ait.output "y" %y : !ait.tensor<rows x f16>
}

// The folds do not depend on d1.
// CHECK-LABEL: ait.graph @softmax_of_a_middle_dim
ait.graph @softmax_of_a_middle_dim(%x: !ait.tensor<b x s x 256 x f32>) dims {b = 1 to 8, s = 0 to 1024} {
  // CHECK: ait.loops(%x) for (d0 = b, d1 = s, d2 = 256) {
  %y = ait.loops(%x) for (d0 = b, d1 = s, d2 = 256) {
  ^bb0(%a: !ait.tensor<b x s x 256 x f32>):
    // CHECK: ait.fold max for (k0 = s) {
    // CHECK-NEXT: ait.at %a[d0, k0, d2] : f32
    %m = ait.fold max for (k0 = s) {
      %v = ait.at %a[d0, k0, d2] : f32
      ait.yield %v : f32
    } : f32
    %t = ait.fold add for (k0 = s) {
      %v = ait.at %a[d0, k0, d2] : f32
      %d = ait.sub %v, %m : f32
      %e = ait.exp %d : f32
      ait.yield %e : f32
    } : f32
    %v = ait.at %a[d0, d1, d2] : f32
    %d = ait.sub %v, %m : f32
    %e = ait.exp %d : f32
    %r = ait.div %e, %t : f32
    ait.yield %r : f32
  } : !ait.tensor<b x s x 256 x f32>
  ait.output "y" %y : !ait.tensor<b x s x 256 x f32>
}

// CHECK-LABEL: ait.graph @resize_of_a_sum
ait.graph @resize_of_a_sum(%x: !ait.tensor<n x c x h x w x f16>, %z: !ait.tensor<n x c x h x w x f16>) dims {n = 1 to 2, c = 1 to 8, h = 1 to 9, w = 0 to 9} {
  %y = ait.loops(%x, %z) for (d0 = n, d1 = c, d2 = 2*h, d3 = 2*w) {
  ^bb0(%a: !ait.tensor<n x c x h x w x f16>, %b: !ait.tensor<n x c x h x w x f16>):
    // CHECK: ait.at %a[d0, d1, d2 floordiv 2, d3 floordiv 2] : f32
    %u = ait.at %a[d0, d1, d2 floordiv 2, d3 floordiv 2] : f32
    %v = ait.at %b[d0, d1, d2 floordiv 2, d3 floordiv 2] : f32
    %r = ait.add %u, %v : f32
    ait.yield %r : f32
  } : !ait.tensor<n x c x (2*h) x (2*w) x f16>
  ait.output "y" %y : !ait.tensor<n x c x (2*h) x (2*w) x f16>
}

// Reflect at the edges, and zeros behind them.
// CHECK-LABEL: ait.graph @pads
ait.graph @pads(%x: !ait.tensor<n x 8 x i32>) dims {n = 4 to 64} {
  %y, %z = ait.loops(%x) for (d0 = n + 6, d1 = 14) {
  ^bb0(%a: !ait.tensor<n x 8 x i32>):
    // CHECK: ait.at %a[n - max(-n + max(-d0 + 3, d0 - 3) + 1, n - max(-d0 + 3, d0 - 3) - 1) - 1, d1 floordiv 2] : i32
    %u = ait.at %a[n - 1 - max(n - 1 - max(d0 - 3, 3 - d0), max(d0 - 3, 3 - d0) - n + 1), d1 floordiv 2] : i32
    // CHECK: ait.at %a[d0 - 3, d1 - 3] else -7 : i32
    %v = ait.at %a[d0 - 3, d1 - 3] else -7 : i32
    ait.yield %u, %v : i32, i32
  } : !ait.tensor<(n + 6) x 14 x i32>, !ait.tensor<(n + 6) x 14 x i32>
  ait.output "y" %y : !ait.tensor<(n + 6) x 14 x i32>
  ait.output "z" %z : !ait.tensor<(n + 6) x 14 x i32>
}

// The largest magnitude of a row, beside the row divided by it.
// CHECK-LABEL: ait.graph @row_and_number
ait.graph @row_and_number(%x: !ait.tensor<b x 8 x f16>) dims {b = 0 to 64} {
  %y, %s = ait.loops(%x) for (d0 = b, d1 = 8) {
  ^bb0(%a: !ait.tensor<b x 8 x f16>):
    %m = ait.fold max for (k0 = 8) {
      %v = ait.at %a[d0, k0] : f32
      %w = ait.abs %v : f32
      ait.yield %w : f32
    } : f32
    %v = ait.at %a[d0, d1] : f32
    %q = ait.div %v, %m : f32
    ait.yield %q, %m : f32, f32
  // CHECK: } : !ait.tensor<b x 8 x f8E4M3FN>, !ait.tensor<b x 1 x f32>
  } : !ait.tensor<b x 8 x f8E4M3FN>, !ait.tensor<b x 1 x f32>
  ait.output "y" %y : !ait.tensor<b x 8 x f8E4M3FN>
  ait.output "s" %s : !ait.tensor<b x 1 x f32>
}

// CHECK-LABEL: ait.graph @embedding
ait.graph @embedding(%t: !ait.tensor<100 x 24 x bf16>, %ids: !ait.tensor<b x s x i64>) dims {b = 1 to 8, s = 0 to 64} {
  %y = ait.loops(%t, %ids) for (d0 = b, d1 = s, d2 = 24) {
  ^bb0(%table: !ait.tensor<100 x 24 x bf16>, %index: !ait.tensor<b x s x i64>):
    %id = ait.at %index[d0, d1] : i64
    // CHECK: ait.at %table[%id, d2] else 0.5 : f32
    %v = ait.at %table[%id, d2] else 0.5 : f32
    ait.yield %v : f32
  } : !ait.tensor<b x s x 24 x bf16>
  ait.output "y" %y : !ait.tensor<b x s x 24 x bf16>
}

// CHECK-LABEL: ait.graph @named
ait.graph @named(%t: !ait.tensor<100 x 24 x bf16>, %ids: !ait.tensor<b x i64>) dims {b = 1 to 8} {
  %y = ait.loops(%t, %ids) for (d0 = b) {
  ^bb0(%table: !ait.tensor<100 x 24 x bf16>, %index: !ait.tensor<b x i64>):
    %id = ait.at %index[d0] : i64
    // CHECK: ait.at %table[%id, %id] says "id {index} is not below {size}", "" : f32
    %v = ait.at %table[%id, %id] says "id {index} is not below {size}", "" : f32
    ait.yield %v : f32
  } : !ait.tensor<b x bf16>
  ait.output "y" %y : !ait.tensor<b x bf16>
}

// A mask of the places up to a row's own, the place of the largest element, a scalar.
// CHECK-LABEL: ait.graph @places
ait.graph @places(%x: !ait.tensor<b x s x f32>) dims {b = 1 to 8, s = 1 to 64} {
  %m = ait.loops() for (d0 = s, d1 = s) {
    // CHECK: ait.index (d0 + 1) : i64
    %row = ait.index (d0 + 1) : i64
    %column = ait.index (d1) : i64
    %r = ait.compare lt %column, %row : i1
    ait.yield %r : i1
  } : !ait.tensor<s x s x i1>
  %p = ait.loops(%x) for (d0 = b) {
  ^bb0(%a: !ait.tensor<b x s x f32>):
    // CHECK: ait.fold argmax for (k0 = s) {
    // CHECK: } : f32, i64
    %v, %place = ait.fold argmax for (k0 = s) {
      %e = ait.at %a[d0, k0] : f32
      ait.yield %e : f32
    } : f32, i64
    ait.yield %place : i64
  } : !ait.tensor<b x i64>
  // CHECK: ait.loops(%x) for () {
  %t = ait.loops(%x) for () {
  ^bb1(%a: !ait.tensor<b x s x f32>):
    // CHECK: ait.fold mul for (k0 = b, k1 = s) {
    %v = ait.fold mul for (k0 = b, k1 = s) {
      // CHECK: ait.fold add for (k2 = 2) {
      %e = ait.fold add for (k2 = 2) {
        %f = ait.at %a[k0, max(k1 - k2, 0)] : f32
        ait.yield %f : f32
      } : f32
      ait.yield %e : f32
    } : f32
    ait.yield %v : f32
  } : !ait.tensor<f32>
  ait.output "m" %m : !ait.tensor<s x s x i1>
  ait.output "p" %p : !ait.tensor<b x i64>
  ait.output "t" %t : !ait.tensor<f32>
}

// The windows that read an element, added: a fold of 3 rows of windows with steps of 2.
// CHECK-LABEL: ait.graph @col2im
ait.graph @col2im(%x: !ait.tensor<n x 3 x l x f32>) dims {n = 1 to 4, l = 0 to 64} {
  %y = ait.loops(%x) for (d0 = n, d1 = 2*l + 1) {
  ^bb0(%a: !ait.tensor<n x 3 x l x f32>):
    %s = ait.fold add for (k0 = 3) {
      %v = ait.at %a[d0, k0, (d1 - k0) floordiv 2] else 0.0 : f32
      %zero = ait.constant 0.0 : f32
      %none = ait.constant 0 : i64
      %rest = ait.index ((d1 - k0) mod 2) : i64
      %hit = ait.compare eq %rest, %none : i1
      %w = ait.where %hit, %v, %zero : f32
      ait.yield %w : f32
    } : f32
    ait.yield %s : f32
  } : !ait.tensor<n x (2*l + 1) x f32>
  ait.output "y" %y : !ait.tensor<n x (2*l + 1) x f32>
}

// Rows chosen by one row of the edges, added to rows that another names.
// CHECK-LABEL: ait.graph @scatter
ait.graph @scatter(%x: !ait.tensor<n x 4 x f16>, %i: !ait.tensor<e x i64>, %j: !ait.tensor<e x i64>) dims {n = 1 to 9, e = 0 to 64} {
  %k, %p = ait.order %i sizes [n] : !ait.tensor<e x i32>, !ait.tensor<e x i32>
  // CHECK: ait.scatter_loops add %x dims [0] kept [1] order %k, %p of(%x, %j) for (d0 = e, d1 = 4) {
  // CHECK-NEXT: ^bb0(%a: !ait.tensor<n x 4 x f16>, %b: !ait.tensor<e x i64>):
  // CHECK: } {note} : !ait.tensor<n x 4 x f16>
  %y = ait.scatter_loops add %x dims [0] kept [1] order %k, %p of(%x, %j) for (d0 = e, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>, %b: !ait.tensor<e x i64>):
    %f = ait.at %b[d0] : i64
    %v = ait.at %a[%f, d1] : f32
    ait.yield %v : f32
  } {note} : !ait.tensor<n x 4 x f16>
  ait.output "y" %y : !ait.tensor<n x 4 x f16>
}

// The same with a result of its own; the tensor may be a number that fills a shape.
// CHECK-LABEL: ait.graph @segments
ait.graph @segments(%h: !ait.tensor<n x 4 x f16>, %i: !ait.tensor<e x i64>, %j: !ait.tensor<e x i64>) dims {n = 1 to 9, e = 0 to 64} {
  %k, %p = ait.order %i sizes [n] : !ait.tensor<e x i32>, !ait.tensor<e x i32>
  %x = ait.constant 0.0 : !ait.tensor<n x 4 x f16>
  // CHECK: ait.segment_loops add %x dims [0] kept [1] order %k, %p of(%h, %j) for (d0 = e, d1 = 4) {
  // CHECK-NEXT: ^bb0(%a: !ait.tensor<n x 4 x f16>, %b: !ait.tensor<e x i64>):
  // CHECK: } {note} : !ait.tensor<n x 4 x f16>
  %y = ait.segment_loops add %x dims [0] kept [1] order %k, %p of(%h, %j) for (d0 = e, d1 = 4) {
  ^bb0(%a: !ait.tensor<n x 4 x f16>, %b: !ait.tensor<e x i64>):
    %f = ait.at %b[d0] : i64
    %v = ait.at %a[%f, d1] : f32
    ait.yield %v : f32
  } {note} : !ait.tensor<n x 4 x f16>
  ait.output "y" %y : !ait.tensor<n x 4 x f16>
}

// What is combined, and what follows from it: with an operand of its own, and an index along a dim of 1.
// CHECK-LABEL: ait.graph @followed
ait.graph @followed(%x: !ait.tensor<n x 1 x f16>, %v: !ait.tensor<e x 1 x f16>, %i: !ait.tensor<e x i64>, %b: !ait.tensor<n x f32>) dims {n = 1 to 9, e = 0 to 64} {
  %k, %p = ait.order %i sizes [n] : !ait.tensor<e x i32>, !ait.tensor<e x i32>
  // CHECK: } then(%b) {
  // CHECK-NEXT: ^bb0(%s: !ait.tensor<n x 1 x f16>, %c: !ait.tensor<n x f32>):
  // CHECK-NEXT: %r = ait.loops(%c, %s) for (e0 = n, e1 = 1) {
  // CHECK: ait.yield %r : !ait.tensor<n x 1 x f32>
  // CHECK-NEXT: } {note} : !ait.tensor<n x 1 x f32>
  %y = ait.segment_loops max %x dims [0] kept [1] order %k, %p of(%v) for (d0 = e, d1 = 1) {
  ^bb0(%a: !ait.tensor<e x 1 x f16>):
    %f = ait.at %a[d0, d1] : f32
    ait.yield %f : f32
  } then(%b) {
  ^bb0(%s: !ait.tensor<n x 1 x f16>, %c: !ait.tensor<n x f32>):
    %r = ait.loops(%c, %s) for (e0 = n, e1 = 1) {
    ^bb0(%d: !ait.tensor<n x f32>, %t: !ait.tensor<n x 1 x f16>):
      %w = ait.at %t[e0, 0] : f32
      %u = ait.at %d[e0] : f32
      %z = ait.sub %w, %u : f32
      ait.yield %z : f32
    } : !ait.tensor<n x 1 x f32>
    ait.yield %r : !ait.tensor<n x 1 x f32>
  } {note} : !ait.tensor<n x 1 x f32>
  ait.output "y" %y : !ait.tensor<n x 1 x f32>
}
